"""CoNLL-U: rows that are no words (ranges of words, empty nodes), and tags among attributes that only mentions have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, LossError, TagError
from entaug.formats.base import ReadReport
from entaug.formats.conll.format import EXTRA_ROWS
from entaug.formats.files import open_file, target
from entaug.methods import create_augmenter
from entaug.methods.augment import augment_file


def row(number: str, word: str, misc: str = "_") -> str:
    return f"{number}\t{word}\t{word.lower()}\tX\t_\t_\t0\tdep\t_\t{misc}\n"


def put(folder: Path, content: str, name: str = "a.conllu") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def read(path: Path, **options: Any) -> tuple[list[Sentence], ReadReport, str]:
    """The sentences, with the state of reading, and the file as it is written again."""
    opened = open_file(path, **options)
    reading = ReadReport()
    sentences = list(opened.sentences(reading))
    return sentences, reading, opened.heading + "".join(map(opened.encode, sentences))


RANGE = "CoNLL-U row of a range of words is no token; kept where the sentence stays the same"
EMPTY = "CoNLL-U row of an empty node is no token; kept where the sentence stays the same"

SPANISH = (
    "# sent_id = one\n# text = Nadia sale del bar al sol\n"
    + row("1", "Nadia", "NER=B-PER")
    + row("1.1", "ella")
    + row("2", "sale", "NER=O")
    + row("3-4", "del")
    + row("3", "de", "NER=O")
    + row("4", "el", "NER=O")
    + row("5", "bar", "NER=O")
    + row("6-7", "al")
    + row("6", "a", "NER=O")
    + row("7", "el", "NER=O")
    + row("8", "sol", "NER=O|SpaceAfter=No")
    + row("8.1", "fin")
    + row("8.2", "fin")
    + "\n"
)


def test_ranges_and_empty_nodes_are_no_tokens_and_come_back(tmp_path: Path) -> None:
    [s], reading, again = read(put(tmp_path, SPANISH))
    assert s.tokens == ("Nadia", "sale", "de", "el", "bar", "a", "el", "sol")
    assert s.mentions == (Mention("PER", [(0, 1)]),)
    assert s.spaces is None, "the words of a range are not those of the text"
    assert "0" not in s.columns
    assert reading.notes == {RANGE: 2, EMPTY: 3}
    assert again == SPANISH


def test_a_text_of_other_tokens_is_noted(tmp_path: Path) -> None:
    """As where a row was deleted: its number and its word are missing."""
    less = SPANISH.replace(row("2", "sale", "NER=O"), "")
    _, reading, again = read(put(tmp_path, SPANISH + less.replace("= one", "= two")))
    assert reading.notes["sentence whose token numbers do not count up: they are kept"] == 1
    assert reading.notes["comment with a text of other tokens: its white space is not read"] == 1
    assert again == SPANISH + less.replace("= one", "= two")


def test_the_white_space_is_known_where_the_words_are_those_of_the_text(tmp_path: Path) -> None:
    text = "# text = can not  go\n" + row("1-2", "cannot", "_") + row("1", "can", "NER=O") + row("2", "not", "NER=O")
    [s], _, again = read(put(tmp_path, text + row("3", "go", "NER=O") + "\n"))
    assert s.spaces == (" ", "  ", "")
    assert "1-2\tcannot" in again


@pytest.mark.parametrize("extra", ["", "1.1\tx\tx\tX\t_\t_\t0\tdep\t_\t_\n", "2-3\tx\tx\tX\t_\t_\t0\tdep\t_\t_\n"])
def test_one_sentence_is_enough_to_tell(tmp_path: Path, extra: str) -> None:
    rows = row("1", "Oslo", "NER=B-LOC") + extra + row("2", "fell", "NER=O") + row("3", "fast", "NER=O")
    [s], reading, again = read(put(tmp_path, rows + "\n"))
    assert s.tokens == ("Oslo", "fell", "fast")
    assert s.mentions == (Mention("LOC", [(0, 1)]),)
    assert reading.notes.total() == bool(extra)
    assert again == rows + "\n"


def test_other_files_with_numbered_rows(tmp_path: Path) -> None:
    rows = "1\tNadia\tB-PER\n2-3\tdel\t_\n2\tde\tO\n3\tel\tO\n\n"
    [s], _, again = read(put(tmp_path, rows, "a.iob2"))
    assert (s.tokens, s.mentions) == (("Nadia", "de", "el"), (Mention("PER", [(0, 1)]),))
    assert again == rows
    named = "# global.columns = ID FORM NER\n" + rows
    [s], _, again = read(put(tmp_path, named, "a.conllup"))
    assert (s.tokens, s.columns) == (("Nadia", "de", "el"), {})
    assert again == named
    # Where column 0 is said to hold the tokens, and where it does so, these are tokens.
    [s], reading, _ = read(put(tmp_path, rows.replace("_", "O"), "a.iob2"), token_column=0)
    assert s.tokens == ("1", "2-3", "2", "3")
    scores = "3-4 CD O\nwon VB O\n1.5 CD O\nBo NNP B-PER\n\n"
    [s], reading, again = read(put(tmp_path, scores, "a.conll"))
    assert s.tokens == ("3-4", "won", "1.5", "Bo")
    assert (again, reading.notes) == (scores, {})


def test_tags_of_ranges_are_noted(tmp_path: Path) -> None:
    text = row("1-2", "Delhi", "NER=B-LOC") + row("1", "Del", "NER=B-LOC") + row("2", "hi", "NER=O") + "\n"
    [s], reading, again = read(put(tmp_path, text))
    assert s.mentions == (Mention("LOC", [(0, 1)]),)
    assert reading.notes == {RANGE: 1, "tag of a range of words not read": 1}
    assert again == text


def test_faults_name_the_line_behind_a_range(tmp_path: Path) -> None:
    good = row("1", "Bo", "NER=B-PER") + "\n"
    bad = row("1-2", "del", "_") + row("1", "de", "NER=O") + row("2", "el", "NER=I-PER") + "\n"
    with pytest.raises(TagError, match=r"a\.conllu:5: I-PER after O"):
        entaug.read(put(tmp_path, good + bad))
    with pytest.raises(InputError, match=r"a\.conllu:3: no row of the sentence is a word"):
        entaug.read(put(tmp_path, good + row("1.1", "x") + "\n" + good))
    with pytest.raises(InputError, match=r"a\.conllu:4: 9 columns where 10 are expected"):
        entaug.read(put(tmp_path, good + row("1-2", "x") + row("1", "Bo").replace("\t0\t", "\t") + "\n"))


def test_numbers_that_do_not_begin_anew_are_no_tokens(tmp_path: Path) -> None:
    """The column of numbers became the text of the corpus."""
    words = [("Bo", "B-PER"), ("sang", "O"), ("well", "O")] * 4
    for gap in (0, 3):
        blocks = [
            "".join(f"{i + j + gap}\t{word}\t{tag}\n" for j, (word, tag) in enumerate(words[i : i + 3], start=1))
            for i in range(0, 12, 3)
        ]
        text = "\n".join(blocks) + "\n"
        sentences, reading, again = read(put(tmp_path, text, "a.tsv"))
        assert [s.tokens for s in sentences] == [("Bo", "sang", "well")] * 4
        num_odd = 4 - (gap == 0)
        assert reading.notes == {"sentence whose token numbers do not count up: they are kept": num_odd}
        assert again == text


def test_columns_that_name_the_document_are_no_tokens(tmp_path: Path) -> None:
    text = "".join(
        f"doc/{i}\t0\t{j}\t{word}\tNN\t{tag}\n" + "\n" * (j == 2)
        for i in range(4)
        for j, (word, tag) in enumerate([("Bo", "B-PER"), ("sang", "O"), ("well", "O")])
    )
    sentences, _, again = read(put(tmp_path, text, "a.conll"))
    assert [s.tokens for s in sentences] == [("Bo", "sang", "well")] * 4
    assert sentences[2].columns["0"] == ("doc/2",) * 3
    assert again == text


def test_offsets_of_characters_are_no_tokens(tmp_path: Path) -> None:
    """As brat's anntoconll.py writes them; the first offsets became the text."""
    rows = "B-PER\t0\t2\tBo\nO\t3\t7\tsang\nO\t8\t12\twell\n\n"
    later = "".join(f"B-PER\t{i}0\t{i}2\tBo\nO\t{i}3\t{i}7\tsang\nO\t{i}8\t{i + 1}2\twell\n\n" for i in range(2, 5))
    sentences, _, again = read(put(tmp_path, rows + later, "a.conll"))
    assert [s.tokens for s in sentences] == [("Bo", "sang", "well")] * 4
    assert again == rows + later


# ------------------------------------------------------------------------------------------------ tags among attributes


@pytest.mark.parametrize("outside", ["_", "SpaceAfter=No", "Gloss=x|SpaceAfter=No"])
@pytest.mark.parametrize("key", ["NER", "name", "Mention"])
def test_words_outside_need_no_attribute(tmp_path: Path, outside: str, key: str) -> None:
    text = row("1", "Nadia", f"{key}=B-PER") + row("2", "Quill", f"SpaceAfter=No|{key}=I-PER")
    text += "".join(row(str(i), ".", outside) for i in range(3, 10)) + "\n"
    [s], reading, again = read(put(tmp_path, text))
    assert s.tokens[:3] == ("Nadia", "Quill", ".")
    assert s.mentions == (Mention("PER", [(0, 2)]),)
    assert (again, reading.notes) == (text, {})


def test_the_first_mention_may_come_late(tmp_path: Path) -> None:
    plain = row("1", "Well", "_") + row("2", ".", "SpaceAfter=No") + "\n"
    path = put(tmp_path, plain * 400 + row("1", "Bo", "NER=B-PER") + "\n")
    sentences, _, _ = read(path)
    assert (len(sentences), sentences[-1].mentions) == (401, (Mention("PER", [(0, 1)]),))
    with pytest.raises(InputError, match=r"a\.conllu:1: no column holds tags"):
        entaug.read(put(tmp_path, plain * 400))


def test_other_attributes_are_no_tags(tmp_path: Path) -> None:
    text = row("1", "Bo", "Ref=B-1|Gloss=Bo") + row("2", "sang", "Ref=x") + row("3", ".") + "\n"
    with pytest.raises(InputError, match="no column holds tags"):
        entaug.read(put(tmp_path, text))


def test_a_label_with_a_bar_is_no_attribute(tmp_path: Path) -> None:
    path = put(tmp_path, row("1", "Bo", "NER=B-PER") + row("2", "sang") + "\n")
    with pytest.raises(LossError, match=r"the tag 'B-A\|B' holds a bar, which stands between attributes"):
        entaug.write([Sentence(["Bo"], [Mention("A|B", [(0, 1)])])], tmp_path / "b.conllu", like=path)


# ------------------------------------------------------------------------------------------------- writing and changing


def test_by_way_of_json_lines_and_in_augmented_files(tmp_path: Path) -> None:
    other = row("1", "Otto", "NER=B-PER") + row("2", "duerme", "NER=O") + "\n"
    path = put(tmp_path, SPANISH + other)
    entaug.convert(path, tmp_path / "a.jsonl")
    entaug.write(entaug.read(tmp_path / "a.jsonl"), tmp_path / "b.conllu", like=path)
    assert (tmp_path / "b.conllu").read_text() == SPANISH + other
    summary = augment_file(path, tmp_path / "c.conllu", create_augmenter("mr", seed=1, p=1.0))
    text = (tmp_path / "c.conllu").read_text()
    assert text.startswith(SPANISH + other)
    assert summary.statistics.accepted
    assert text.count("3-4\tdel") == 1, "new sentences have their words alone"
    assert len(entaug.read(tmp_path / "c.conllu")) == 2 + summary.statistics.accepted
    # Another layout has no place for them, and it is said.
    [s, _] = entaug.read(path)
    two = target(tmp_path / "a.conll", tag_column=1)
    assert f"field '{EXTRA_ROWS}'" in two.lost(s)
    wrong: list[Any] = [7, [3], [[0, "x"]], [[9, "9.1" + "\t_" * 9]], [[0, "1\tx" + "\t_" * 8]], [["0", "1.1"]]]
    to = target(tmp_path / "d.conllu", like=open_file(path))
    for value in wrong:
        changed = s.with_(layout={EXTRA_ROWS: value})
        assert to.lost(changed) == [f"field '{EXTRA_ROWS}'"]
        assert len(to.encode(changed).splitlines()) == 1 + len(s) + 1


# ------------------------------------------------------------------------------------------ as a reader of others reads

FORMS = st.sampled_from(["Oslo", "a", "3-4", "1.5", "_", "#x", "de", "7", "é", '"'])


@st.composite
def conllu_sentences(draw: Callable[[Any], Any]) -> str:
    n = draw(st.integers(1, 6))
    lines = []
    position, open_label = 1, ""
    range_end = 0
    if draw(st.booleans()):
        lines.append(row("0.1", draw(FORMS)))
    while position <= n:
        if position > range_end and position < n and draw(st.booleans()):
            range_end = draw(st.integers(position + 1, n))
            lines.append(row(f"{position}-{range_end}", draw(FORMS), draw(st.sampled_from(["_", "SpaceAfter=No"]))))
        choices = ["_", "NER=O", "NER=B-PER", "NER=B-LOC|X=1"] + [f"A=b|NER=I-{open_label}"] * bool(open_label)
        misc = draw(st.sampled_from(choices))
        open_label = misc.partition("NER=")[2].partition("|")[0][2:]
        lines.append(row(str(position), draw(FORMS), misc))
        lines += [row(f"{position}.{number}", draw(FORMS)) for number in range(1, draw(st.integers(1, 3)))]
        position += 1
    return "".join(lines) + "\n"


@settings(max_examples=examples(200))
@given(st.lists(conllu_sentences(), min_size=1, max_size=5))
def test_words_are_those_of_the_library_conllu(tmp_path: Path, blocks: list[str]) -> None:
    conllu = pytest.importorskip("conllu")
    text = row("1", "Bo", "NER=B-PER") + "\n" + "".join(blocks)
    sentences, reading, again = read(put(tmp_path, text))
    trees = conllu.parse(text)
    assert [s.tokens for s in sentences] == [
        tuple(token["form"] for token in tree if isinstance(token["id"], int)) for tree in trees
    ]
    tags = [[(token["misc"] or {}).get("NER", "O") for token in tree if isinstance(token["id"], int)] for tree in trees]
    assert [s.iob() for s in sentences] == tags
    assert again == text
    assert reading.notes.total() == sum(not isinstance(token["id"], int) for tree in trees for token in tree)
    # And by way of JSON.
    lines = (entaug.Sentence.from_dict(orjson.loads(orjson.dumps(s.to_dict()))) for s in sentences)
    assert "".join(map(open_file(tmp_path / "a.conllu").encode, lines)) == text
