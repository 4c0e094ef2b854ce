"""CoNLL files with faults: nothing is left out or invented without an error or a note that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.commands.main import main
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError
from entaug.formats.base import NO_MENTION, ReadReport
from entaug.formats.conll.layout import ConllDialect
from entaug.formats.files import open_file, target


def put(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_bytes(content.encode())
    return path


# --------------------------------------------------------------------------------------------------- number of columns

WIDTHS = {
    "a token with a space": ("Vera B-PER\nleft O\n\nLa Paz B-LOC\n\nBonn B-LOC\nwon O\n", 4, "3 columns where 2 are"),
    "a column is missing": ("Vera\tNN\tB-PER\nleft\tVB\tO\n\nBonn\tB-LOC\n\nx\tNN\tO\n", 4, "2 columns where 3 are"),
    "two rows on a line": ("Vera\tB-PER\nleft\tO\n\nBonn\tB-LOC\twon\tO\n\nx\tO\n", 4, "4 columns where 2 are"),
    "another separator": ("Vera\tNN\tB-PER\n\nBonn\tNN B-LOC\n\n" + "x\tNN\tO\n" * 50, 3, "2 columns where 3 are"),
    "a tab too many": ("Vera\tB-PER\n\nBonn\tB-LOC\t\n\nx\tO\n", 3, "3 columns where 2 are"),
    "a space too many": ("Vera B-PER\n\nBonn B-LOC \n\n" + "x O\n" * 50, 3, "3 columns where 2 are"),
    "within a row": ("Vera\tB-PER\rleft\tO\n\nx\tO\n", 1, "holds a carriage return within a line"),
    "in a token": ("La\rPaz\tB-LOC\n\nx\tO\n", 1, "holds a carriage return within a line"),
    "twice at the end": ("Vera\tO\r\n\r\nBonn\tB-LOC\r\r\n", 3, "holds a carriage return within a line"),
}


@pytest.mark.parametrize("case", WIDTHS)
def test_columns_are_checked_over_the_whole_file(tmp_path: Path, case: str) -> None:
    text, line, message = WIDTHS[case]
    path = put(tmp_path, "a.conll", text)
    with pytest.raises(InputError, match=rf"a\.conll:{line}: {message}"):
        entaug.read(path)
    errors = entaug.check(path).errors
    assert [error.split(";")[0].partition(".conll:")[2].startswith(f"{line}: {message}") for error in errors] == [True]


def test_every_such_sentence_is_reported(tmp_path: Path) -> None:
    good, narrow = "Vera\tNN\tB-PER\nleft\tVB\tO\n\n", "Bonn\tB-LOC\n\n"
    path = put(tmp_path, "a.tsv", (good * 300 + narrow) * 3)
    told = [f"{path}:{900 * i + i * 2 - 1}: 2 columns where 3 are expected" for i in (1, 2, 3)]
    assert [error.split(";")[0] for error in entaug.check(path).errors] == told


def test_repair_keeps_token_and_tag_and_counts(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conll", "Vera NN B-PER\nleft VB O\n\nBonn B-LOC\n\nwon NN VB O\n\n")
    reading = ReadReport(repair=True)
    sentences = list(open_file(path).sentences(reading))
    assert [s.tokens for s in sentences] == [("Vera", "left"), ("Bonn",), ("won",)]
    assert reading.repaired == {"ragged rows, only token and tag kept": 2}
    with pytest.raises(InputError, match="or pass `repair=True` to keep only token and tag"):
        entaug.read(path)
    with pytest.raises(
        InputError, match="2 columns where 3 are expected; correct the line, or name the `separator` an"
    ):
        entaug.read(put(tmp_path, "b.conll", "B-PER Vera NN\nO left VB\n\nB-LOC Bonn\n"))


def test_repair_is_not_advised_where_it_does_not_help(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conll", "Vera NN B-PER\nleft VB O\n\nBonn NN\n")
    for repair in (False, True):
        with pytest.raises(InputError, match=r"a\.conll:4: 2 columns where 3 are expected; [^`]*`separator`[^`]*$"):
            entaug.read(path, repair=repair)


def test_repair_splits_rows_of_another_separator(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conll", "Vera\tB-PER\nleft\tO\n\n" * 900 + "in _ _ O\nBonn _ _ B-LOC\n")
    [*_, last] = open_file(path).sentences(ReadReport(repair=True))
    assert (last.tokens, last.iob()) == (("in", "Bonn"), ["O", "B-LOC"])
    with pytest.raises(InputError, match=r"1 column where 2 are expected; .* or pass `repair=True`"):
        entaug.read(path)


PLAIN = Sentence(["Bonn"], [Mention("LOC", [(0, 1)])])
POS = PLAIN.with_(columns={"pos": ("NN",)})
BOTH = PLAIN.with_(columns={"lemma": ("bonn",), "pos": ("NN",)})


@pytest.mark.parametrize("corpus", [[PLAIN, POS], [POS, PLAIN], [BOTH, POS, PLAIN], [POS, BOTH]])
def test_all_sentences_of_a_file_are_written_with_the_same_columns(tmp_path: Path, corpus: list[Sentence]) -> None:
    names = list(dict.fromkeys(name for s in corpus for name in s.columns))
    entaug.write(corpus, tmp_path / "a.jsonl")
    entaug.write(corpus, tmp_path / "a.conll")
    entaug.write(iter(corpus), tmp_path / "b.conll")
    entaug.convert(tmp_path / "a.jsonl", tmp_path / "c.conll")
    for name in "abc":
        back = entaug.read(tmp_path / f"{name}.conll")
        assert [list(s.columns.values()) for s in back] == [
            [s.columns.get(name, ("_",)) for name in names] for s in corpus
        ]
    like = open_file(tmp_path / "a.conll")
    to = target(tmp_path / "d.conll", like=like)
    assert to.lost(PLAIN.with_(columns={"1": ("x",)})) == []
    assert to.lost(PLAIN.with_(columns={"stem": ("x",)})) == ["column 'stem'"]


def test_a_column_that_comes_late_is_a_loss(tmp_path: Path) -> None:
    entaug.write([POS] * 150 + [BOTH], tmp_path / "a.jsonl")
    with pytest.raises(EntaugError, match=r"cannot store column 'lemma' \(once\); pass `allow_loss=\['column'\]` to"):
        entaug.convert(tmp_path / "a.jsonl", tmp_path / "a.conll")
    assert entaug.convert(tmp_path / "a.jsonl", tmp_path / "a.conll", allow_loss=["column"]).lost == {
        "column 'lemma'": 1
    }
    assert [list(s.columns.values()) for s in entaug.read(tmp_path / "a.conll")] == [[("NN",)]] * 151


def test_columns_move_with_the_tag_column(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conll", "1\tVera\tNN\tx\tB-PER\n2\tleft\tVB\ty\tO\n\n")
    out = tmp_path / "b.conll"
    entaug.convert(path, out, write_options={"tag_column": 2})
    assert out.read_text() == "1\tVera\tB-PER\tNN\tx\n2\tleft\tO\tVB\ty\n\n"
    entaug.convert(path, out, write_options={"scheme": "IOBES"}, force=True)
    assert out.read_text() == path.read_text().replace("B-PER", "S-PER")


# ------------------------------------------------------------------------------------------------------ marks and space

DROPPED = "byte-order mark at the beginning of a line within the file dropped"
KEPT = "invisible byte-order mark (U+FEFF) within a line kept"
JOINED = {
    "a.conll": ("Vera\tB-PER\n\n", "Bonn\tB-LOC\n\n"),
    "a.jsonl": ('{"tokens":["Vera"]}\n', '{"tokens":["Bonn"]}\n'),
    "doccano.jsonl": ('{"text":"Vera","label":[[0,4,"PER"]]}\n', '{"text":"Bonn","label":[[0,4,"LOC"]]}\n'),
    "gliner.jsonl": (
        '{"tokenized_text":["Vera"],"ner":[[0,0,"PER"]]}\n',
        '{"tokenized_text":["Bonn"],"ner":[[0,0,"LOC"]]}\n',
    ),
    "inline.sgml": ("<PER>Vera</PER> sang\n", "<LOC>Bonn</LOC> fell\n"),
    "bartner.txt": ("Vera sang\n0,0 PER\n\n", "Bonn fell\n0,0 LOC\n\n"),
}


@pytest.mark.parametrize("name", JOINED)
def test_marks_of_joined_files_go_with_a_note(tmp_path: Path, name: str) -> None:
    first, second = JOINED[name]
    path = put(tmp_path, name, f"\ufeff{first}\ufeff{second}\ufeff{first}")
    clean = put(tmp_path, "clean" + name, first + second + first)
    options: dict[str, Any] = {"format": name.partition(".")[0]} if name[0] != "a" else {}
    reading = ReadReport()
    assert list(open_file(path, **options).sentences(reading)) == list(entaug.read(clean, **options))
    assert reading.notes[DROPPED] == 2
    reading = ReadReport()
    list(open_file(clean, **options).sentences(reading))
    assert DROPPED not in reading.notes


def test_marks_within_lines_are_noted_and_come_back(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conll", "\ufeff1\t\ufeffVera\tB-PER\n\n1\tBonn\ufeff\tB-LOC\n2\t\ufeff\ufeff\tO\n\n")
    reading = ReadReport()
    sentences = list(open_file(path).sentences(reading))
    assert [s.tokens for s in sentences] == [("\ufeffVera",), ("Bonn\ufeff", "\ufeff\ufeff")]
    assert reading.notes == {KEPT: 4}
    # In the first column, too: there each gets one more, which is dropped in reading.
    entaug.write([s.with_(columns={}) for s in sentences], tmp_path / "b.conll")
    assert [s.tokens for s in entaug.read(tmp_path / "b.conll")] == [s.tokens for s in sentences]


def test_white_space_around_a_tag_is_no_part_of_the_label(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", "Vera\tB-PER \nleft\tO \n\nBonn\tB-LOC\nwon\tO\n")
    reading = ReadReport()
    sentences = list(open_file(path).sentences(reading))
    assert [m.label for s in sentences for m in s.mentions] == ["PER", "LOC"]
    assert reading.notes == {"white space around a tag left out": 2}


def test_cells_as_csv_writes_them_are_noted(tmp_path: Path) -> None:
    rows = ['""""\tO', '"\tO', '""\tO', '"Vera"\tB-PER', '"""Vera"""\tB-PER', '"a""b"\tO', 'a"""b\tO']
    reading = ReadReport()
    [s] = open_file(put(tmp_path, "a.tsv", "\n".join(rows))).sentences(reading)
    assert s.tokens == tuple(row.split("\t")[0] for row in rows)
    assert reading.notes == {"cell in quotation marks as in CSV kept as it stands": 3}


def test_comments_between_rows_are_noted(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conll", "Vera B-PER\n#MeToo\nleft O\n\nBonn B-LOC\nwon O\n")
    reading = ReadReport()
    first, _ = open_file(path).sentences(reading)
    assert (first.tokens, first.fields) == (("Vera", "left"), {"comments": ["#MeToo"]})
    assert reading.notes == {"line with # between the rows of a sentence taken as a comment": 1}


# -------------------------------------------------------------------------------------------- mentions in other columns

# As LitBank has them, but for the order: the outer mention stands where there was room.
LAYERS = """\
the\tB-PER\tO\tO
aunt\tI-PER\tO\tO
of\tI-PER\tO\tO
Vera\tI-PER\tB-PER\tO
left\tO\tO\tO

Otto\tB-PER\tB-PER\tO
's\tO\tI-PER\tO
friend\tO\tI-PER\tO

Bonn\tB-LOC\tB-FAC\tO
hall\tO\tI-FAC\tO
fell\tO\tO\tO

Bonn\tB-LOC\tO\tO

"""


def note(column: int, used: str, every: str) -> str:
    return (
        f"mention in column {column} not read, tags are in column {used} "
        f"(nested mentions of all: `tag_columns='{every}'`; of this column alone: `tag_column={column}`)"
    )


def test_mentions_that_are_not_read_are_noted_with_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path, "a.tsv", LAYERS)
    reading = ReadReport()
    assert sum(len(s.mentions) for s in open_file(path).sentences(reading)) == 0
    assert reading.notes == {note(1, "3", "1,2,3"): 4, note(2, "3", "1,2,3"): 3, NO_MENTION: 1}
    reading = ReadReport()
    assert sum(len(s.mentions) for s in open_file(path, tag_columns="1,2,3").sentences(reading)) == 7
    assert reading.notes == {}
    assert main(["check", str(path)]) == 0
    assert "--tag-columns 1,2,3" in "".join(capsys.readouterr())


def test_only_mentions_that_are_not_read_count(tmp_path: Path) -> None:
    reading = ReadReport()
    twice = "Vera\tB-PER\tB-PER\nleft\tO\tO\n\nBonn\tB-LOC\tB-LOC\n\nx\tB-ORG\tO\n"
    list(open_file(put(tmp_path, "a.tsv", twice)).sentences(reading))
    assert reading.notes == {note(1, "2", "1,2"): 1}
    chunks = "Vera\tB-NP\tB-PER\nleft\tB-VP\tO\n\nBonn\tB-NP\tB-LOC\n"
    cases: list[tuple[str, dict[str, Any]]] = [(chunks, {}), (twice, {"tag_column": 2}), (twice, {"tag_column": 1})]
    for text, options in cases:
        reading = ReadReport()
        list(open_file(put(tmp_path, "a.tsv", text), **options).sentences(reading))
        assert reading.notes == {}
    other_scheme = "a\tU-X\tB-PER\nb\tO\tI-PER\nc\tL-Y\tO\n\n"
    reading = ReadReport()
    list(open_file(put(tmp_path, "a.tsv", other_scheme)).sentences(reading))
    assert reading.notes.total() == 1


def test_levels_that_are_deeper_than_any_mention_are_tag_columns_too(tmp_path: Path) -> None:
    nested = "the\tB-PER\tO\tO\naunt\tI-PER\tO\tO\nof\tI-PER\tO\tO\nVera\tI-PER\tB-PER\tO\n\nBonn\tB-LOC\tO\tO\n\n"
    file = open_file(put(tmp_path, "a.tsv", nested))
    assert isinstance(file.dialect, ConllDialect)
    assert file.dialect.tag_columns == (1, 2, 3)
    assert [len(s.mentions) for s in file.sentences()] == [2, 1]
    assert "".join(map(file.encode, file.sentences())) == nested


# ----------------------------------------------------------------------------------------------------- any fault at all

BASES = (
    "Vera\tB-PER\nleft\tO\n\nLa\tB-LOC\nPaz\tI-LOC\n.\tO\n\n",
    "Vera NNP B-PER\nleft VBD O\n\nLa NNP B-LOC\nPaz NNP I-LOC\n. . O\n\n",
    (
        "# sent_id = 1\n1\tVera\tB-PER\n2-3\tdel\t_\n2\tde\tO\n3\tel\tO\n\n"
        "# sent_id = 2\n1\tBonn\tB-LOC\n1.1\tx\t_\n2\t.\tO\n\n"
    ),
    "the\tB-PER\tO\naunt\tI-PER\tO\nof\tI-PER\tO\nVera\tI-PER\tB-PER\n\nBonn\tB-LOC\tO\nfell\tO\tO\n\n",
)
JUNK = [
    "\t",
    " ",
    "\n",
    "\r",
    "\r\n",
    '"',
    "#",
    "\ufeff",
    "\xa0",
    "_",
    "O",
    "B-X",
    "1-2",
    "1.1",
    "-DOCSTART-",
    "\\",
    ",",
]


@st.composite
def mutated(draw: Callable[[Any], Any]) -> str:
    """A file, some times over, with a few characters left out, replaced or added."""
    text: str = draw(st.sampled_from(BASES)) * draw(st.sampled_from([1, 1, 12]))
    text = text.replace("= 1", "= {}").replace("= 2", "= {}").format(*range(24))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text) - 1))
        what = draw(st.sampled_from(["", *JUNK]))
        text = text[:at] + what + text[at + draw(st.integers(0, 2)) :]
    return text.replace("\n", "\r\n") if draw(st.integers(0, 5)) == 0 else text


def cells(text: str, *, is_runs: bool) -> list[list[str]]:
    """What stands in a file, by row; comments are sorted, as they are written before the rows."""
    lines = [line for line in text.replace("\r\n", "\n").removeprefix("\ufeff").split("\n") if line.strip()]
    return [line.split() if is_runs else [line] for line in lines]


@settings(max_examples=examples(500))
@given(mutated())
@example("Vera\tB-PER\n\n\xa0\tO\n")
def test_what_is_read_without_a_note_is_what_stands_there(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, "a.conll", text)
    reading = ReadReport()
    try:
        file = open_file(path)
        sentences = list(file.sentences(reading))
    except EntaugError:
        return
    if reading.notes:
        return
    assert isinstance(file.dialect, ConllDialect)
    is_runs = file.dialect.separator == "runs"
    assert cells("".join(map(file.encode, sentences)), is_runs=is_runs) == cells(text, is_runs=is_runs)


@pytest.mark.parametrize("value", ["[]", "5", "null", '"lwtr"'])
def test_a_comment_that_only_begins_like_provenance_is_a_comment(tmp_path: Path, value: str) -> None:
    comment = f"# entaug = {value}"
    [sentence] = entaug.read(put(tmp_path, "a.conll", f"{comment}\nAda B-PER\nsang O\n"))
    assert (sentence.provenance, sentence.fields["comments"]) == (None, [comment])
