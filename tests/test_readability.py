"""The blind reading: sheets without origin, marks, counts, and the agreement of two readers."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import readability
from entaug import Mention, Sentence
from method_pages import reading_of
from page_text import rows_of
from readability import Record

SENTENCE = Sentence("Ada Lovelace lives in Rome".split(), [Mention("PER", [(0, 2)]), Mention("LOC", [(4, 5)])])
TEXT = "[Ada Lovelace PER] lives in [Rome LOC]"


def result(method: str, *sentences: str, corpus: str = "N1", tried: int = 9) -> dict[str, Any]:
    return {"method": method, "corpus": corpus, "tried": tried, "sentences": list(sentences)}


def test_a_sentence_is_shown_with_its_labels() -> None:
    assert readability.shown(SENTENCE) == TEXT
    nested = Sentence("Bank of Rome".split(), [Mention("ORG", [(0, 3)]), Mention("LOC", [(2, 3)])])
    assert readability.shown(nested) == "[Bank of [Rome LOC] ORG]"


def test_the_digest_tells_labels_apart_and_stays_the_same() -> None:
    other = SENTENCE.with_(mentions=[Mention("LOC", [(0, 2)]), Mention("LOC", [(4, 5)])])
    assert readability.digest(readability.shown(other)) != readability.digest(TEXT)
    assert readability.digest(TEXT) == "7e143d3be12f8c19"  # that of `sha256sum`


def test_arms_begin_at_different_sources_but_those_of_a_method_at_the_same() -> None:
    first = {arm: readability.first_source(arm, 150) for arm in readability.ARMS}
    assert first["mr"] == first["mr, best of 8"]
    places = sorted(place for arm, place in first.items() if ", " not in arm)
    assert min(after - before for before, after in pairwise(places)) >= 10


def test_a_sheet_shows_no_origin_and_each_sentence_once() -> None:
    results = [
        ("before", result("mr", "one", "two")),
        ("after", result("mr", "two", "three")),
        ("gold", result("gold", "four", corpus="B1")),
    ]
    [lines] = readability.sheets(results, reader=1)
    kinds_and_texts = [line.split(" | ")[1:] for line in lines]
    assert sorted(kinds_and_texts) == [["B1", "four"], ["N1", "one"], ["N1", "three"], ["N1", "two"]]
    assert [line.split(" | ")[0] for line in lines] == ["1", "2", "3", "4"]
    [unread] = readability.sheets(results, reader=1, read=[readability.digest("two"), readability.digest("four")])
    assert sorted(line.split(" | ")[2] for line in unread) == ["one", "three"]


def test_sheets_are_of_like_length_and_readers_have_other_orders() -> None:
    results = [("after", result("mr", *map(str, range(400))))]
    first, second = (readability.sheets(results, reader) for reader in (1, 2))
    assert [len(sheet) for sheet in first] == [134, 134, 132]
    texts = [[line.split(" | ")[2] for sheet in sheets for line in sheet] for sheets in (first, second)]
    assert texts[0] != texts[1]
    assert set(texts[0]) == set(texts[1])


SHEET = readability.head() + "7 | N1 | good [Rome LOC]\n8 | B2 | bad | really\n"


@pytest.mark.parametrize("marks", ["7 +\n8 x\n", "8: x (label)\n 7. + \nas asked\n", "7 | + | N1\n8 | x | B2\n"])
def test_marks_are_read_by_number(marks: str) -> None:
    assert readability.read_marks(SHEET, marks) == {
        readability.digest("good [Rome LOC]"): "+",
        readability.digest("bad | really"): "x",
    }


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ("7 +\n", r"no marks for 1 lines \[8\]"),
        ("7 +\n8 -\n9 -\n", r"no lines \[9\]"),
        ("7 +\n8 -\n8 x\n", "two marks for line 8"),
        ("7 +\n8 -x\n", r"no marks for 1 lines \[8\]"),
    ],
)
def test_wrong_marks_are_refused(marks: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        readability.read_marks(SHEET, marks)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # Cohen (1960) by hand: 20 + 15 of 50 agree; expected 0.5 * 0.6 + 0.5 * 0.4 = 0.5; (0.7 - 0.5) / 0.5.
        ([("+", "+")] * 20 + [("+", "-")] * 5 + [("-", "+")] * 10 + [("-", "-")] * 15, 0.4),
        ([("+", "+"), ("-", "-"), ("x", "x")], 1.0),
        ([("+", "-"), ("-", "+")], -1.0),
        ([("+", "+"), ("+", "+")], None),
        ([], None),
    ],
)
def test_cohen_kappa(pairs: list[tuple[str, str]], expected: float | None) -> None:
    assert readability.cohen_kappa(pairs) == (None if expected is None else pytest.approx(expected))


RECORDS = [
    Record("before", "mr", "N1", 3, {"a": "+-", "b": "++"}),
    Record("after", "mr", "N1", 2, {"b": "++", "c": "+x"}),
    Record("after", "mr", "B1", 7, {"d": "-x", "e": "??"}),
    Record("after", "sr", "Q1", 4, {"f": "+?"}),
    Record("after", "lm", "Q1", 4, {"g": "??"}),
    Record("gold", "gold", "N1", 5, {"h": "++"}),
]


def test_counts_by_hand() -> None:
    rows = {row["method"]: row for row in rows_of("\n\n" + readability.tables(RECORDS))}
    assert list(rows["`mr`"].values()) == [
        "`mr`", "2, 1 of 2", "2, 1 of 3", "0, 0 of 2", "0, 2 of 3", "2 of 3", "4 of 9", "2 of 4, 0.20",
    ]  # fmt: skip
    assert rows["`sr`"]["good after"] == "1, - of 1"
    assert rows["`lm`"]["good after"] == rows["`lm`"]["agreement"] == "-"
    assert rows["gold"]["good after"] == "1, 1 of 1"
    assert readability.unread(RECORDS).startswith("3 of 8 different sentences")


def test_counts_by_kind() -> None:
    kinds = readability.tables(RECORDS).partition("## Good by kind")[2]
    row = next(line for line in kinds.splitlines() if line.startswith("| `mr`"))
    assert row == "| `mr` | 2, 1 of 2 | 2, 1 of 2 | - | - | - | 0, 0 of 1 |"


def test_the_readme_has_the_lower_count_of_two_readers() -> None:
    rows = rows_of("\n\n" + readability.tables(RECORDS))
    assert [reading_of(name, rows) for name in ("mr", "sr", "lm", "cr")] == ["1 of 3", "1 of 1", "-", "-"]
    better = {"method": "`mr, nearest`", "good after": "3, 2 of 3"}
    assert reading_of("mr", [*rows, better]) == "1 of 3; 2 with `--donors nearest`"
    assert reading_of("mr", [*rows, {**better, "good after": "1, 1 of 3"}]) == "1 of 3"


def test_from_sheets_to_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two readers, of whom the second reads later; then one sentence is made anew."""
    monkeypatch.setattr(readability, "RECORDS", tmp_path / "records.jsonl")
    monkeypatch.setattr(readability, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(readability, "divided", lambda corpus: ([], [Sentence([corpus])]))
    work = tmp_path / "work"
    work.mkdir()
    (work / "before.jsonl").write_text(json.dumps(result("mr", "one", "two")) + "\n")
    (work / "after.jsonl").write_text(json.dumps(result("mr", "one", "three")) + "\n")
    readability.write_sheets(work, unread=False)
    for reader, marks in ((1, {"two": "-"}), (2, {"two": "x", "three": "-"})):
        sheet = (work / "sheets" / f"reader{reader}-1.txt").read_text()
        lines = [line.split(" | ") for line in sheet.splitlines() if line[:1].isdigit()]
        assert len(lines) == 3 + len(readability.CORPORA)
        (work / "marks" / f"reader{reader}-1.txt").write_text(
            "".join(f"{number} {marks.get(text, '+')}\n" for number, _, text in lines)
        )
        readability.write_counts(work)
    page = (tmp_path / "page.md").read_text()
    assert "| `mr` | 1, 1 of 2 | 2, 1 of 2 | 0, 1 of 2 | 0, 0 of 2 | 2 of 9 | 2 of 9 |" in page
    assert "0 of 9 different sentences are unread" in page
    assert readability.INSTRUCTIONS.splitlines()[0] in page
    assert "three" not in (tmp_path / "records.jsonl").read_text()

    (work / "after.jsonl").write_text(json.dumps(result("mr", "one", "four")) + "\n")
    readability.write_counts(work)
    page = (tmp_path / "page.md").read_text()
    assert "1 of 9 different sentences are unread" in page
    assert page.count("<!-- counts -->") == 1
    with pytest.raises(SystemExit, match="has sheets"):
        readability.write_sheets(work, unread=True)


def test_what_is_generated_again_finds_its_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(readability, "RECORDS", tmp_path / "records.jsonl")

    def generate_all(work: Path, version: str, *_: Any) -> None:
        again = [result("mr", "one"), result("mr", "another", corpus="B1")]
        (work / f"{version}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in again))

    monkeypatch.setattr(readability, "generate_all", generate_all)
    keys = {text: readability.digest(text) for text in ("one", "two", "old")}
    committed = [
        Record("before", "mr", "N1", 2, {keys["old"]: "--"}),
        Record("after", "mr", "N1", 9, {keys["one"]: "++"}),
        Record("after", "mr", "B1", 9, {keys["two"]: "+x"}),
    ]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(asdict(record)) + "\n" for record in committed))
    work = tmp_path / "work"
    work.mkdir()
    readability.repeat(work, ["mr"], ["N1", "B1"])
    printed = capsys.readouterr().out
    assert "| `mr` | 0, 0 of 1 | 1, 1 of 1 |" in printed
    assert "1 of 3 different sentences are unread" in printed
    assert "1 of 2 outputs of a method on a corpus are those in" in printed


def test_committed_records_hold_no_text() -> None:
    for record in readability.load():
        assert record.method in {*readability.ARMS, "gold"}
        assert record.corpus in readability.CORPORA
        assert all(len(key) == 16 and set(marks) <= {*readability.MARKS, "?"} for key, marks in record.marks.items())


def test_our_own_corpora_are_what_their_page_says() -> None:
    import entaug

    page = (readability.HERE / "corpora" / "README.md").read_text("utf-8")
    for name in ("N2", "Q2"):
        sentences = list(entaug.read(readability.CORPORA[name].path))
        tokens = sum(map(len, sentences))
        assert f"| {len(sentences)} | {tokens:,} |" in page
        assert len({s.tokens for s in sentences}) == len(sentences)
        mentions: dict[str, set[tuple[str, ...]]] = {}
        for sentence in sentences:
            for mention in sentence.mentions:
                mentions.setdefault(mention.label, set()).add(
                    sentence.tokens[mention.spans[0][0] : mention.spans[0][1]]
                )
        assert min(map(len, mentions.values())) >= 8
