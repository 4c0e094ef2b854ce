"""CoNLL with several tag columns, with named columns, with tags among attributes, and with a character a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Mention
from entaug.core.spacing import infer_spaces_of_characters
from entaug.core.tags import SCHEMES
from entaug.errors import InputError, LossError, ParameterError, TagError
from entaug.formats.base import ENTITY_FIELDS, LEVEL, ReadReport
from entaug.formats.conll.layout import ConllDialect
from entaug.formats.files import open_file, target
from entaug.methods import create_augmenter
from entaug.methods.augment import augment_file
from helpers.strategies import sentences


def put(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_bytes(content.encode())
    return path


def layout(path: Path, **options: Any) -> ConllDialect:
    dialect = open_file(path, **options).dialect
    assert isinstance(dialect, ConllDialect)
    return dialect


def again(path: Path, **options: Any) -> str:
    """A file read and written in its own layout."""
    opened = open_file(path, **options)
    text = "".join(opened.format.dump(s, opened.dialect) for s in opened.sentences())
    return opened.heading + text


GERMEVAL = """\
#\thttp://de.wikipedia.org/wiki/Troja [2009-10-17]
1\t„\tO\tO
2\tTroia\tB-OTH\tB-LOC
3\t-\tI-OTH\tO
4\tTraum\tI-OTH\tO
5\t“\tO\tO

#\thttp://de.wikipedia.org/wiki/Bonn [2010-01-02]
1\tin\tO\tO
2\tBonn\tB-LOC\tO
3\tdie\tO\tO
4\tTroia-Stadt\tB-LOCpart\tO
5\t#\tO\tO

"""


# ------------------------------------------------------------------------------------------------- several tag columns


def test_germeval_is_read_as_nested_and_comes_back(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", GERMEVAL)
    opened = open_file(path)
    assert opened.dialect.describe().endswith("tag in 2 and 3, outermost first, IOB2")
    first, second = entaug.read(path)
    assert first.tokens == ("„", "Troia", "-", "Traum", "“")
    assert first.mentions == (Mention("LOC", [(1, 2)]), Mention("OTH", [(1, 4)]))
    assert first.fields == {"comments": ["#\thttp://de.wikipedia.org/wiki/Troja [2009-10-17]"]}
    assert second.tokens[-1] == "#"
    assert not first.columns
    assert again(path) == GERMEVAL
    assert opened.format.lost(first, opened.dialect) == []


MULTICONER = """\
# id 3f2a-01\tdomain=en
the _ _ O
duke _ _ B-PER

# id 77b0-c4\tdomain=en
# _ _ O
rome _ _ B-LOC

"""


def test_multiconer_has_the_id_and_the_domain_of_a_sentence_in_a_comment(tmp_path: Path) -> None:
    path = put(tmp_path, "en_train.conll", MULTICONER)
    first, second = entaug.read(path)
    assert first.tokens == ("the", "duke")
    assert first.fields["comments"] == ["# id 3f2a-01\tdomain=en"]
    assert second.tokens == ("#", "rome")
    assert again(path) == MULTICONER
    tabs = put(tmp_path, "tabs.conll", MULTICONER.replace(" _ _ ", "\t_\t_\t"))
    assert [s.tokens for s in entaug.read(tabs)] == [first.tokens, second.tokens]
    # A token with a space ends with a tag, and is none.
    odd = put(tmp_path, "odd.conll", "# 1\tB-X\nof\tO\n\n# 2\tO\nKent\tB-X\n\n")
    assert [s.tokens[0] for s in entaug.read(odd)] == ["# 1", "# 2"]


def test_one_of_the_columns_can_be_asked_for(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", GERMEVAL)
    assert entaug.read(path, tag_column=3).labels == ("LOC",)
    assert entaug.read(path, tag_columns="2").labels == ("LOC", "LOCpart", "OTH")
    assert entaug.read(path, tag_columns=[-2, -1]) == entaug.read(path)
    assert entaug.read(path, tag_columns="3,2")[0].mentions == entaug.read(path)[0].mentions
    different: list[Any] = ["2,2", "a", "", "1,,2", [], 7]
    for wrong in different:
        with pytest.raises(ParameterError, match="must be different columns, outermost first, as 1,2, not"):
            entaug.read(path, tag_columns=wrong)
    with pytest.raises(ParameterError, match="no such column"):
        entaug.read(path, tag_columns="2,4")
    with pytest.raises(ParameterError, match="cannot hold both the token and its tag"):
        entaug.read(path, tag_columns="2,-2")
    with pytest.raises(ParameterError, match="cannot hold both the token and its tag"):
        entaug.read(path, token_column=2, tag_columns="2,3")


def rows(*of: tuple[str, str]) -> str:
    return "".join(f"w{i} {a} {b}\n" for i, (a, b) in enumerate(of))


NOT_NESTED = {
    "phrases and names": rows(("B-NP", "B-PER"), ("B-VP", "O"), ("B-NP", "O"), ("I-NP", "O")),
    "two taggers": rows(("B-PER", "B-PER"), ("O", "O"), ("B-LOC", "B-LOC"), ("I-LOC", "I-LOC")),
    "two annotators": rows(("B-PER", "O"), ("O", "B-PER"), ("B-LOC", "O"), ("I-LOC", "O"), ("B-LOC", "O")),
    "finer types": rows(("B-PER", "B-PER.NAM"), ("O", "O"), ("B-LOC", "B-LOC.NOM"), ("O", "O")),
    "nothing in the last": rows(("B-PER", "O"), ("O", "O"), ("B-LOC", "O")),
    "labels of its own": rows(("B-ORG", "O"), ("I-ORG", "B-NUM"), ("I-ORG", "O"), ("B-LOC", "O")),
}


@pytest.mark.parametrize("case", NOT_NESTED)
def test_other_second_columns_are_not_taken(tmp_path: Path, case: str) -> None:
    dialect = layout(put(tmp_path, "a.conll", NOT_NESTED[case]))
    assert (dialect.tag_column, dialect.tag_columns, dialect.other_tag_columns) == (-1, (), (1,))


def test_phrases_of_german_are_not_noted_as_mentions(tmp_path: Path) -> None:
    path = put(tmp_path, "deu.train", rows(("I-NC", "I-PER"), ("I-VC", "O"), ("I-PC", "O"), ("B-NC", "O")))
    assert entaug.read(path).notes == ()


def test_columns_are_found_where_nesting_comes_late_and_only_the_last_are_taken(tmp_path: Path) -> None:
    plain = rows(("B-ORG", "O"), ("I-ORG", "O"), ("O", "O"), ("B-LOC", "O")) + "\n"
    path = put(tmp_path, "a.conll", plain * 500 + rows(("B-ORG", "O"), ("I-ORG", "B-LOCderiv")) + "\n")
    assert layout(path).tag_columns == (1, 2)
    *_, last = entaug.read(path)
    assert last.mentions == (Mention("ORG", [(0, 2)]), Mention("LOCderiv", [(1, 2)]))
    many = put(tmp_path, "m.conll", rows(("B-ORG", "B-LOC"), ("I-ORG", "B-LOC"), ("I-ORG", "B-ORG"), ("B-LOC", "O")))
    assert layout(many).tag_columns == (1, 2), "more inside than outside, but shorter"
    # Phrases before two columns of names; and three levels.
    both = put(tmp_path, "b.conll", "a B-NP B-ORG O\nb I-NP I-ORG B-LOC\nc B-NP B-LOC O\nd O O O\n")
    dialect = layout(both)
    assert (dialect.tag_columns, dialect.other_tag_columns) == ((2, 3), (1,))
    assert entaug.read(both)[0].columns == {"1": ("B-NP", "I-NP", "B-NP", "O")}
    deep = "a B-ORG O O\nb I-ORG B-ORG O\nc I-ORG I-ORG B-LOC\n" + "d B-LOC O O\ne O O O\nf B-ORG O O\n" * 2
    assert layout(put(tmp_path, "c.conll", deep)).tag_columns == (1, 2, 3)


def test_which_column_is_kept_where_the_mentions_do_not_tell_it(tmp_path: Path) -> None:
    text = "a\tB-ORG\tB-LOC\nb\tO\tB-ORG\nc\tB-LOC\tB-ORG\nd\tB-LOC\tO\n\n"
    path = put(tmp_path, "a.tsv", text)
    options: dict[str, Any] = {"tag_columns": "1,2"}
    [s] = entaug.read(path, **options)
    assert [extra[LEVEL] for extra in s.fields[ENTITY_FIELDS]] == [1, 0, 1, 0, 1, 0]
    assert again(path, **options) == text
    to = open_file(path, **options)
    assert to.format.lost(s, to.dialect) == []
    one = target("x.tsv", "conll")
    assert one.format.lost(s, one.dialect) == [f"field '{ENTITY_FIELDS}'"]
    # By way of JSON lines too; where it cannot be so, mentions go where they fit.
    entaug.write([s], tmp_path / "a.jsonl")
    entaug.write(entaug.read(tmp_path / "a.jsonl"), tmp_path / "b.tsv", **options)
    assert (tmp_path / "b.tsv").read_text() == text
    wrong: list[Any] = [7, [{LEVEL: 0}] * 6, [{LEVEL: 2}] * 6, [{LEVEL: True}] * 6, [{}] * 6, [3] * 6]
    for fields in wrong:
        entaug.write([s.with_fields({ENTITY_FIELDS: fields})], tmp_path / "c.tsv", like=path, **options)
        assert entaug.read(tmp_path / "c.tsv", **options)[0].mentions == s.mentions


@settings(max_examples=examples(300))
@given(st.lists(sentences(gaps=False), min_size=1, max_size=4), st.sampled_from(SCHEMES), st.integers(2, 4))
def test_nested_round_trip(tmp_path: Path, corpus: list[Sentence], scheme: str, n: int) -> None:
    path = tmp_path / "a.conll"
    corpus = [s.with_(spaces=None, columns={}) for s in corpus]
    columns = list(range(1, n + 1))
    depth = max(sum(m.start <= i < m.end for m in s.mentions) for s in corpus for i in range(len(s)))
    by_hand: dict[str, Any] = {"tag_columns": columns, "scheme": scheme}
    if depth > n:
        with pytest.raises(LossError, match="needs tag column"):
            entaug.write(corpus, path, **by_hand)
        for overlap in ("outermost", "innermost"):
            entaug.write(corpus, path, overlap=overlap, **by_hand)
            to = target(path, overlap=overlap, **by_hand)
            kept = [to.format.as_stored(s, to.dialect) for s in corpus]
            assert list(entaug.read(path, separator="tab", token_column=0, **by_hand)) == kept
            assert all(set(k.mentions) <= set(s.mentions) for k, s in zip(kept, corpus, strict=True))
        return
    entaug.write(corpus, path, **by_hand)
    assert list(entaug.read(path, separator="tab", token_column=0, **by_hand)) == corpus
    back = again(path, separator="tab", token_column=0, **by_hand)
    assert back.encode() == path.read_bytes().removeprefix(b"\xef\xbb\xbf")


def test_outer_mentions_stand_first_and_too_many_levels_are_refused(tmp_path: Path) -> None:
    s = Sentence(
        list("abcde"), [Mention("O", [(0, 4)]), Mention("M", [(1, 4)]), Mention("I", [(1, 2)]), Mention("J", [(4, 5)])]
    )
    to = target(tmp_path / "a.conll", tag_columns="1,2,3")
    assert to.format.dump(s, to.dialect) == (
        "a\tB-O\tO\tO\nb\tI-O\tB-M\tB-I\nc\tI-O\tI-M\tO\nd\tI-O\tI-M\tO\ne\tB-J\tO\tO\n\n"
    )
    two = target(tmp_path / "a.conll", tag_columns="1,2")
    with pytest.raises(LossError, match=r"a nested mention \(I \[\(1, 2\)\]\) needs tag column 3 and there are 2"):
        two.format.dump(s, two.dialect)
    with pytest.raises(LossError, match="discontinuous"):
        two.format.dump(Sentence(["a", "b", "c"], [Mention("X", [(0, 1), (2, 3)])]), two.dialect)
    kept = {
        overlap: two.format.as_stored(s, target("a.conll", tag_columns="1,2", overlap=overlap).dialect).mentions
        for overlap in ("outermost", "innermost")
    }
    assert [m.label for m in kept["outermost"]] == ["O", "M", "J"]
    assert [m.label for m in kept["innermost"]] == ["I", "M", "J"]
    with pytest.raises(LossError, match="no place for the token in column 0 and the tag in column 3 and 4"):
        to.format.dump(Sentence(["a"]), target("a.conll", tag_columns="3,4").dialect)
    # Mentions that cross are not nested, and stand in two columns as well.
    crossing = Sentence(list("abc"), [Mention("X", [(0, 2)]), Mention("Y", [(1, 3)])])
    assert two.format.dump(crossing, two.dialect) == "a\tB-X\tO\nb\tI-X\tB-Y\nc\tO\tI-Y\n\n"


def test_faults_name_line_and_column_and_twice_is_once(tmp_path: Path) -> None:
    options: dict[str, Any] = {"tag_columns": "1,2", "scheme": "IOB2"}
    path = put(tmp_path, "a.tsv", "a\tB-X\tO\nb\tI-X\tI-Y\n")
    with pytest.raises(TagError, match=r"a\.tsv:2: column 2: I-Y after O: there is no Y mention"):
        entaug.read(path, **options)
    with pytest.raises(TagError, match=r"b\.tsv:2: column 2: I-Y after O"):  # as `tag_columns` counts
        entaug.read(put(tmp_path, "b.tsv", "1\ta\tO\tB-X\n2\tb\tI-Y\tI-X\n"), tag_columns="2,3", scheme="IOB2")
    assert entaug.read(path, repair=True, **options)[0].mentions[1] == Mention("Y", [(1, 2)])
    with pytest.raises(InputError, match=r"a\.tsv:2: 2 columns where 3 are expected"):
        entaug.read(put(tmp_path, "a.tsv", "a\tB-X\tO\nb\tI-X\n\nc\tO\tO\n\nd\tO\tO\n"), repair=True, **options)
    with pytest.raises(InputError, match=r"b\.tsv:5: 2 columns where 3 are expected"):
        entaug.read(put(tmp_path, "b.tsv", "a\tB-X\tO\n\nc\tO\tO\n\nd\tO\n"), **options)
    opened = open_file(put(tmp_path, "c.tsv", "a\tB-X\tB-X\nb\tO\tO\n"), **options)
    reading = ReadReport()
    assert [s.mentions for s in opened.sentences(reading)] == [(Mention("X", [(0, 1)]),)]
    assert reading.notes == {"mention that stands in two tag columns taken once": 1}


def test_nested_files_are_converted_and_augmented(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", GERMEVAL)
    entaug.convert(path, tmp_path / "a.jsonl")
    summary = entaug.convert(tmp_path / "a.jsonl", tmp_path / "b.tsv", write_options={"tag_columns": "1,2"})
    assert entaug.read(tmp_path / "b.tsv")[0].mentions == entaug.read(path)[0].mentions
    assert summary.lost == {}
    entaug.convert(path, tmp_path / "c.tsv", write_options={"scheme": "BMES"})
    assert layout(tmp_path / "c.tsv").scheme == "BMES"
    assert "4\tTraum\tE-OTH\tO\n" in (tmp_path / "c.tsv").read_text()
    augment_file(path, tmp_path / "d.tsv", create_augmenter("sis", seed=1, copies=4))
    both = list(entaug.read(tmp_path / "d.tsv"))
    assert len(both) > 2
    assert both[0] == entaug.read(path)[0]
    assert (tmp_path / "d.tsv").read_text().startswith(GERMEVAL)
    with pytest.raises(LossError, match="nested"):
        entaug.write(entaug.read(path), tmp_path / "e.tsv", like=path, tag_column=2)


# -------------------------------------------------------------------------------------------------------- CoNLL-U Plus

UNER = """\
# global.columns = ID FORM NER XNER MISC
# newdoc id = d
# sent_id = one
# text = Ada left Rome.
1\tAda\tB-PER\tB-PER\tann
2\tleft\tO\tO\t-
3\tRome\tB-LOC\tB-LOC\tann
4\t.\tO\tO\t-

# sent_id = two
1\tSo\tO\tB-PER\t-

"""


def test_a_first_line_names_the_columns_and_stays_the_first(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conllup", UNER)
    assert (layout(path).token_column, layout(path).tag_column, layout(path).tag_columns) == (1, 2, ())
    first, second = entaug.read(path)
    assert first.columns == {"XNER": ("B-PER", "O", "B-LOC", "O"), "MISC": ("ann", "-", "ann", "-")}
    assert (first.id, first.spaces) == ("one", (" ", " ", "", ""))
    assert first.fields["comments"] == ["# newdoc id = d", "# sent_id = one", "# text = Ada left Rome."]
    assert second.mentions == ()
    assert again(path) == UNER
    out = tmp_path / "b.conllup"
    entaug.write([second, first], out, like=path)
    assert out.read_text().splitlines()[:2] == [UNER.splitlines()[0], "# sent_id = two"]
    assert list(entaug.read(out)) == [second, first]
    odd = put(tmp_path, "c.conllup", UNER.replace("= ID FORM", "=  ID   FORM").replace("# glo", "#glo"))
    assert list(entaug.read(odd)) == [first, second]
    assert again(odd) == UNER
    entaug.write([], out, like=path)
    assert out.read_bytes() == b""


@pytest.mark.parametrize("only_new", [True, False])
def test_the_first_line_is_there_whatever_is_written(tmp_path: Path, only_new: bool) -> None:
    more = "# sent_id = three\n1\tBo\tB-PER\tO\t-\n2\tsaw\tO\tO\t-\n3\tOslo\tB-LOC\tO\t-\n\n"
    path = put(tmp_path, "a.conllup", UNER + more)
    out = tmp_path / "b.conllup"
    summary = augment_file(path, out, create_augmenter("mr", seed=1, copies=2), only_new=only_new)
    text = out.read_text()
    assert summary.statistics.accepted
    assert text.startswith(UNER if not only_new else UNER.splitlines()[0] + "\n# sent_id = one")
    assert text.count("global.columns") == 1
    assert layout(out) == layout(path)
    entaug.convert(put(tmp_path, "a.conllup", UNER), tmp_path / "c.conllup", write_options={"scheme": "BILOU"})
    assert (tmp_path / "c.conllup").read_text() == UNER.replace("B-PER\tB", "U-PER\tB").replace("B-LOC\tB", "U-LOC\tB")


@pytest.mark.parametrize(
    ("header", "row", "label"),
    [
        ("ID FORM MARCELL:NE MARCELL:NP", "1\tAda\tB-PER\tB-NP", "PER"),
        ("id form ner", "1\tAda\tB-PER", "PER"),
        ("ID FORM RELATE:NE", "1\tAda\tS-PER", "PER"),
        ("FORM NER:SPAN_SCORE NER:SPAN X", "Ada\t0.9\tS-PER\tS-X", "PER"),
        ("X TOKEN NE Y", "1.5\tAda\tB-PER\tO", "PER"),
        ("ID FORM", "1\tAda\tB-PER\tB-X", "X"),
        ("FORM FORM NE", "Ada\tB-X\tB-PER", "PER"),
        ("ID FORM POS", "7\tAda\tB-PER", "PER"),
    ],
)
def test_names_of_columns(tmp_path: Path, header: str, row: str, label: str) -> None:
    text = f"# global.columns = {header}\n{row}\n\n"
    path = put(tmp_path, "a.conllup", text)
    corpus = entaug.read(path)
    assert corpus.labels == (label,)
    assert corpus[0].tokens == ("Ada",) or "POS" in header
    assert again(path) == text


def test_a_sign_for_o_is_refused(tmp_path: Path) -> None:
    text = "# global.columns = ID FORM NE\n1\tAda\tB-PER\n2\tleft\t_\n3\tRome\tB-LOC\n\n1\tSo\t_\n\n"
    path = put(tmp_path, "a.conllup", text)
    with pytest.raises(InputError, match="no column holds tags"):
        entaug.read(path)
    with pytest.raises(InputError, match=r"a\.conllup:3: .*'_'"):
        entaug.read(path, tag_column=2)


def test_sentences_from_elsewhere_fill_named_columns(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conllup", UNER)
    to = target(tmp_path / "b.conllup", like=open_file(path))
    s = Sentence(["Bo"], [Mention("PER", [(0, 1)])], columns={"MISC": ("m",), "POS": ("NNP",)})
    assert to.format.dump(s, to.dialect) == "1\tBo\tB-PER\t_\tm\n\n"
    assert to.format.lost(s, to.dialect) == ["column 'POS'"]
    with pytest.raises(InputError, match=r"c\.conllup:2: 3 columns where 5 are expected"):
        list(to.format.read(put(tmp_path, "c.conllup", "\n1\tBo\tB-PER\n"), to.dialect, ReadReport()))


# ---------------------------------------------------------------------------------------------- attributes and prefixes

NORNE = """\
# sent_id = 1
1\tFinn\tFinn\tPROPN\t_\tGender=Masc\t0\troot\t_\tname=B-PER
2\tEilertsen\tEilertsen\tPROPN\t_\t_\t1\tname\t_\tSpaceAfter=No|name=I-PER
3\t.\t$.\tPUNCT\t_\t_\t1\tpunct\t_\tname=O|X=1

# sent_id = 2
1\tJa\tja\tX\t_\t_\t0\troot\t_\tname=O

"""


@pytest.mark.parametrize("key", ["name", "NER", "ner"])
def test_tags_among_attributes(tmp_path: Path, key: str) -> None:
    text = NORNE.replace("name=", f"{key}=")
    path = put(tmp_path, "a.conllu", text)
    opened = open_file(path)
    assert opened.dialect.describe() == f"CoNLL columns, tabs, token in column 1, tag in the last after {key}=, IOB2"
    first, second = entaug.read(path)
    assert first.mentions == (Mention("PER", [(0, 2)]),)
    assert first.columns["9"] == (f"{key}=", f"SpaceAfter=No|{key}=", f"{key}=|X=1")
    assert "9" not in second.columns
    assert again(path) == text
    made = first.edit([Edit(0, 2, ["Ada", "A.", "Byron"], [Mention("PER", [(0, 3)])])])
    dumped = opened.format.dump(made, opened.dialect)
    assert [line.split("\t")[9] for line in dumped.splitlines()[1:4]] == [f"{key}={t}-PER" for t in "BII"]
    assert entaug.read(path, tag_column=9) == entaug.read(path)
    out = tmp_path / "b.conllu"
    entaug.write([Sentence(["Bo"], [Mention("PER", [(0, 1)])])], out, token_column=0, tag_column=1, attribute=key)
    assert out.read_text() == f"Bo\t{key}=B-PER\n\n"


def test_attributes_in_another_column_by_hand(tmp_path: Path) -> None:
    text = "Ada\tNER=B-PER|x=B-X\tO\nleft\tNER=O|x=O\tO\n\n"
    path = put(tmp_path, "a.conllu", text)
    assert entaug.read(path).labels == ()
    assert entaug.read(path, tag_column=1).labels == ("PER",)
    assert entaug.read(path, tag_column=1, attribute="x").labels == ("X",)
    assert again(path, tag_column=1, attribute="x") == text


def test_prefixed_tokens_are_refused(tmp_path: Path) -> None:
    text = "token=Ada pos=NNP tag=B-PER\ntoken=left pos=VBD tag=O\n"
    with pytest.raises(InputError, match=r"a\.conll:1: all tokens begin with 'token='; remove it"):
        entaug.read(put(tmp_path, "a.conll", text))
    for language in ("en", "zh-min-nan", "simple"):  # WikiANN
        with pytest.raises(InputError, match=rf"b:1: all tokens begin with '{language}:'; remove it"):
            entaug.read(put(tmp_path, "b", f"{language}:Ada\tB-PER\n{language}:left\tO\n"))


def test_several_tags_in_a_cell_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.conll:2: several tags in a cell: 'B-ORG\|U-LOC'; write"):
        entaug.read(put(tmp_path, "a.conll", "Bank\tB-ORG\nRome\tB-ORG|U-LOC\nfell\tO\n"))
    long = "Ada\tB-PER\nleft\tO\n\n" * 400 + "Rome\tB-ORG|U-LOC\n"
    with pytest.raises(InputError, match=r"b\.conll:1201: several tags in a cell"):
        entaug.read(put(tmp_path, "b.conll", long))


# ---------------------------------------------------------------------------------------------------------- characters

RESUME = (
    "\n\n".join(
        "\n".join(f"{c} {t}" for c, t in zip(text, tags.split(), strict=True))
        for text, tags in [
            ("新华社上海二月十日电", "B-ORG M-ORG E-ORG B-GPE E-GPE O O O O O"),
            ("岛，1996年", "S-LOC O O O O O O"),  # noqa: RUF001
        ]
    )
    + "\n\n"
)


def test_characters_of_chinese_have_no_spaces(tmp_path: Path) -> None:
    path = put(tmp_path, "a.char.bmes", RESUME)
    opened = open_file(path)
    assert opened.dialect.describe() == "CoNLL columns, spaces, character in column 0, tag in the last, BMES"
    first, second = entaug.read(path)
    assert first.mentions == (Mention("ORG", [(0, 3)]), Mention("GPE", [(3, 5)]))
    assert (first.text, second.text) == ("新华社上海二月十日电", "岛，1996年")  # noqa: RUF001
    assert detokenize(first.tokens, first.spaces) == "新华社上海二月十日电"
    assert again(path) == RESUME
    assert opened.format.lost(first, opened.dialect) == []
    assert entaug.read(path, characters=False)[0].spaces is None
    entaug.convert(path, tmp_path / "a.jsonl")
    assert orjson.loads((tmp_path / "a.jsonl").read_bytes().splitlines()[0])["text"] == "新华社上海二月十日电"


def test_foreign_words_among_characters_keep_their_spaces(tmp_path: Path) -> None:
    assert infer_spaces_of_characters("听 Louis Armstrong , 1 9 的 A B".split()) == (
        "",
        " ",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
    )
    text = "获\tO\n奖\tO\n者\tO\nde\tB-X\namor\tI-X\n的\tO\n歌\tO\n" + "好\tO\n" * 40 + "\n"
    path = put(tmp_path, "a.tsv", text)
    [s] = entaug.read(path)
    assert s.text.startswith("获奖者de amor的歌好")
    assert again(path) == text


@pytest.mark.parametrize(
    "tokens",
    [
        "新华 社 上海 二月 十日 电 话 是 的 好 吗",
        "a b c d e f g h i j k l",
        "新 华",
        "é ا ب ت ث ج ح خ د ذ ر",  # noqa: RUF001
        "신 화 사 상 해 이 월 십 일 전 화",
    ],
    ids=["words", "letters", "too few", "Arabic", "Korean"],
)
def test_other_tokens_are_no_characters(tmp_path: Path, tokens: str) -> None:
    path = put(tmp_path, "a.tsv", "".join(f"{token}\tO\n" for token in tokens.split()))
    assert not layout(path).characters
    assert entaug.read(path)[0].spaces is None


def test_a_text_comment_goes_before(tmp_path: Path) -> None:
    text = "# text = 新华社 上海二月十日电\n" + RESUME
    first, _ = entaug.read(put(tmp_path, "a.tsv", text))
    assert first.text == "新华社 上海二月十日电"
    assert again(tmp_path / "a.tsv") == text


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES", "BMES"])
def test_short_mentions_do_not_tell_iobes_from_bmes(tmp_path: Path, scheme: str) -> None:
    short = Sentence(["a", "b"], [Mention("X", [(0, 2)])])
    long = Sentence(["a", "b", "c"], [Mention("X", [(0, 3)])])
    entaug.write([short] * 400 + [long], tmp_path / "a.conll", scheme=scheme)
    assert layout(tmp_path / "a.conll").scheme == scheme
    assert list(entaug.read(tmp_path / "a.conll"))[-1] == long


# ------------------------------------------------------------------------------------------------------------- corpora


@pytest.mark.corpora
@pytest.mark.parametrize("genre", ["news_train", "news_dev", "news_test", "twitter_dev", "twitter_test", "arto_dev"])
def test_danish_nested_files(corpora: Path, tmp_path: Path, genre: str) -> None:
    path = corpora / "danplus" / f"da_{genre}.tsv"
    opened = open_file(path)
    assert layout(path).tag_columns == (1, 2)
    reading = ReadReport(repair=True)
    gold = list(opened.sentences(reading))
    columns = [list(entaug.read(path, tag_column=c, scheme="IOB2", repair=True)) for c in (1, 2)]
    for s, outer, inner in zip(gold, *columns, strict=True):
        assert set(s.mentions) == {*outer.mentions, *inner.mentions}
    to = target(tmp_path / "a.tsv", like=opened)
    to.path.write_text("".join(to.format.dump(s, to.dialect) for s in gold), encoding="utf-8")
    assert layout(to.path) == opened.dialect
    assert list(entaug.read(to.path)) == gold
    if not reading.repaired:
        assert to.path.read_text(encoding="utf-8").rstrip("\n") == path.read_text(encoding="utf-8").rstrip("\n")


@pytest.mark.corpora
def test_genia_in_tag_columns(corpora: Path, tmp_path: Path) -> None:
    gold = list(entaug.read(corpora / "genia/nested-jsonl/test.jsonl"))
    depth = max(sum(m.start <= i < m.end for m in s.mentions) for s in gold for i in range(len(s)))
    path = tmp_path / "a.conll"
    with pytest.raises(LossError, match=f"needs tag column {depth} and there are {depth - 1}"):
        entaug.write(gold, path, tag_columns=list(range(1, depth)))
    entaug.write(gold, path, tag_columns=list(range(1, depth + 1)))
    assert layout(path).tag_columns == tuple(range(1, depth + 1))
    assert [(s.tokens, s.mentions) for s in entaug.read(path)] == [(s.tokens, s.mentions) for s in gold]


@pytest.mark.corpora
@pytest.mark.parametrize("name", ["hr_set/hr_set-ud-test", "da_ddt/da_ddt-ud-dev", "en_ewt/en_ewt-ud-test"])
def test_the_second_column_of_uner_is_not_taken(corpora: Path, tmp_path: Path, name: str) -> None:
    path = corpora / "uner" / f"{name}.iob2"
    assert (layout(path).tag_column, layout(path).tag_columns) == (2, ())
    assert again(path).rstrip("\n") == path.read_text(encoding="utf-8").rstrip("\n")
    # With the line that newer files begin with: the same, and the columns have names.
    named = tmp_path / "named.iob2"
    named.write_text("# global.columns = ID FORM NER XNER MISC\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    pairs = list(zip(entaug.read(path), entaug.read(named), strict=True))
    assert all(a == b.with_(columns=dict(zip("34", b.columns.values(), strict=True))) for a, b in pairs)
    assert all(list(b.columns) == ["XNER", "MISC"] for _, b in pairs)
    assert again(named).rstrip("\n") == named.read_text(encoding="utf-8").rstrip("\n")


@pytest.mark.corpora
def test_chinese_is_of_characters_and_others_are_not(corpora: Path) -> None:
    folder = corpora / "multiconer-v1" / "100"
    found = {file.name for file in folder.glob("*.conll") if layout(file, separator="runs").characters}
    assert len(found) == 1
    assert "zh" in found.pop()


# ----------------------------------------------------------------------------------------------- tags without prefixes

IO = "Ada\tPER\nQuill\tPER\nleft\tO\nRome\tLOC\n.\tO\n\nShe\tO\nis\tO\nin\tO\n#Oslo\tLOC\n.\tO\n\n"
IO_MENTIONS = [[("PER", 0, 2), ("LOC", 3, 4)], [("LOC", 3, 4)]]


def mentions_of(path: Path, **options: Any) -> list[list[tuple[str, int, int]]]:
    return [[(m.label, m.start, m.end) for m in sentence.mentions] for sentence in entaug.read(path, **options)]


@pytest.mark.parametrize("separator", ["\t", " "])
@pytest.mark.parametrize("further", ["", "NN"])
def test_tags_without_prefixes(tmp_path: Path, separator: str, further: str) -> None:
    text = IO.replace("\t", f"\t{further}\t" if further else "\t").replace("\t", separator)
    path = put(tmp_path, "a.conll", text)
    assert mentions_of(path) == IO_MENTIONS
    assert again(path) == text
    assert "IO (neighbours of one label are one mention)" in layout(path).describe()


def test_tags_without_prefixes_in_other_formats(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    corpus = entaug.read(put(tmp_path, "a.conll", IO))
    table = put(
        tmp_path, "a.csv", "sentence_id,word,ner\n1,Ada,PER\n1,Quill,PER\n1,left,O\n1,Rome,LOC\n1,.,O\n2,So,O\n"
    )
    assert mentions_of(table) == [IO_MENTIONS[0], []]
    lines = tmp_path / "a.jsonl"
    rows = [{"tokens": s.tokens, "ner_tags": s.iob("IO")} for s in corpus]
    lines.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    assert mentions_of(lines) == IO_MENTIONS
    assert again(lines).encode() == lines.read_bytes() + b"\n"
    for name, options in (("b.csv", {}), ("b.parquet", {"mentions": "tags"})):
        entaug.write(corpus, tmp_path / name, scheme="IO", **options)
        assert mentions_of(tmp_path / name) == IO_MENTIONS


def test_a_heading_is_no_mention_of_tags_without_prefixes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a.conll:1: begins with a heading: 'Token\\tNER'; delete the line"):
        entaug.read(put(tmp_path, "a.conll", f"Token\tNER\n{IO}"))
    with pytest.raises(InputError, match=r"no heading, and no column of tags|no column of labels is known"):
        entaug.read(put(tmp_path, "a.csv", IO.replace("\t", ",")))  # whose first row would be one


def test_few_words_without_a_mention_need_the_scheme(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conll", "Ada\tPER\nQuill\tPER\nleft\tO\n\n")
    with pytest.raises(InputError, match=r"no column holds tags .* `scheme='IO'`"):
        entaug.read(path)
    with pytest.raises(TagError, match=r"unknown tag 'PER' .* `scheme='IO'`"):
        entaug.read(path, tag_column=1)
    assert mentions_of(path, scheme="IO", tag_column=1) == [[("PER", 0, 2)]]
    mixed = put(tmp_path, "b.conll", f"{IO}Ada\tB-PER\n\n")
    with pytest.raises(TagError, match="unknown tag 'PER'"):
        entaug.read(mixed, tag_column=1)


def test_neighbours_that_would_be_one_mention_are_not_written(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conll", "So\tO\nAda\tPER\nmet\tO\nOtto\tPER\nin\tO\nold\tO\nRome\tLOC\n\n" * 3)
    assert layout(path).scheme == "IO"
    neighbours = Sentence(["Ada", "Otto", "left"], [Mention("PER", [(0, 1)]), Mention("PER", [(1, 2)])])
    with pytest.raises(LossError, match=r"two neighbouring mentions of PER would be read as one; .*'IOB2'"):
        entaug.write([neighbours], tmp_path / "b.conll", scheme="IO")
    augment_file(path, tmp_path / "new.conll", create_augmenter("sis", p=1.0, copies=5))
    new = entaug.read(tmp_path / "new.conll")
    assert len(new) > 3
    assert all(sorted(m.label for m in sentence.mentions) == ["LOC", "PER", "PER"] for sentence in new)


@pytest.mark.parametrize("name", ["a.conll", "a.csv"])
def test_a_label_with_white_space_at_its_edge_is_not_written(tmp_path: Path, name: str) -> None:
    padded = Sentence(["Ada", "left"], [Mention("PER\u2003", [(0, 1)])])
    with pytest.raises(LossError, match=r"the label 'PER\\u2003' has white space at its edge"):
        entaug.write([padded], tmp_path / name)
