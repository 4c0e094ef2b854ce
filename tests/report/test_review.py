"""What filters refuse, written aside; what a person rejects, left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

import entaug
from conftest import ROOT
from entaug.commands.main import main
from entaug.core.changes import Change
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, OutputError
from entaug.files.review import read_review
from entaug.filters import Filter
from entaug.formats.augmented import read_augmented
from entaug.methods.augment import augment_file
from entaug.methods.base import Augmenter
from entaug.teacher.corrections import correct
from helpers.command_line import interrupt_after

TRAIN = ROOT / "examples" / "corpus" / "train.conll"


@dataclass(kw_only=True, eq=False)
class LongFirst(Filter):
    """Refuses what begins with a word of more than three letters."""

    name: ClassVar[str] = "long-first"
    reasons: ClassVar[tuple[str, ...]] = ("begins with a long word",)

    def _judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        return ["begins with a long word" if len(one.tokens[0]) > 3 else None for one in made]


def shuffled(**params: Any) -> Augmenter:
    return entaug.create_augmenter("sis", p=1.0, filters=LongFirst(), **params)


def decisions(path: Path, *decided: tuple[Sentence, str], method: str | None = "sis") -> Path:
    found = [{"fingerprint": s.fingerprint().hex(), "method": method, "decision": decision} for s, decision in decided]
    path.write_bytes(orjson.dumps({"entaug": "review", "version": 1, "decisions": found}))
    return path


# ----------------------------------------------------------------------------------------------------- refused drafts


def test_refused_drafts_stand_aside_with_the_reason_and_their_source(tmp_path: Path) -> None:
    out, aside = tmp_path / "new.conll", tmp_path / "refused.jsonl"
    summary = augment_file(TRAIN, out, shuffled(), rejected=aside)
    refused = read_augmented([aside], TRAIN).methods["sis"]
    assert len(refused) == summary.statistics.rejected["long-first: begins with a long word"] > 100
    assert {pair.rejection for pair in refused} == {"long-first: begins with a long word"}
    for pair in refused:
        assert pair.source is not None
        assert sorted(pair.augmented.tokens) == sorted(pair.source.tokens)
        assert len(pair.augmented.tokens[0]) > 3
    ids = [pair.augmented.id for pair in refused]
    assert len(set(ids)) == len(ids)
    augment_file(TRAIN, tmp_path / "plain.conll", shuffled())
    assert (tmp_path / "plain.conll").read_bytes() == out.read_bytes(), "writing aside changes nothing"


@pytest.mark.parametrize("name", ["refused.jsonl", "refused.jsonl.gz"])
def test_gone_on_with_it_is_the_same_to_the_byte(tmp_path: Path, name: str) -> None:
    augment_file(TRAIN, tmp_path / "whole.conll", shuffled(), rejected=tmp_path / f"whole-{name}")
    again = [TRAIN.read_bytes()] * 5  # long enough to be stopped within
    (tmp_path / "long.conll").write_bytes(b"".join(again))
    whole, long = tmp_path / "whole-long.conll", tmp_path / "long-out.conll"
    augment_file(tmp_path / "long.conll", whole, shuffled(), rejected=tmp_path / f"a-{name}")
    with pytest.raises(KeyboardInterrupt):
        augment_file(
            tmp_path / "long.conll", long, shuffled(), rejected=tmp_path / f"b-{name}", progress=interrupt_after(0)
        )
    assert not (tmp_path / f"b-{name}").exists()
    with (tmp_path / f"b-{name}.partial").open("ab") as torn:
        torn.write(b"half a li")
    summary = augment_file(tmp_path / "long.conll", long, shuffled(), rejected=tmp_path / f"b-{name}")
    assert summary.resumed_at > 0
    assert long.read_bytes() == whole.read_bytes()
    assert (tmp_path / f"b-{name}").read_bytes() == (tmp_path / f"a-{name}").read_bytes()
    assert not list(tmp_path.glob("*.partial*"))


def test_the_window_changes_nothing_aside(tmp_path: Path) -> None:
    augment_file(TRAIN, tmp_path / "a.conll", shuffled(), rejected=tmp_path / "a.jsonl")
    narrow = shuffled()
    narrow.window_size = 3  # type: ignore[misc]
    augment_file(TRAIN, tmp_path / "b.conll", narrow, rejected=tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("aside", "message"),
    [
        ("out.conll", "a file of their own"),
        ("-", "are written to a file"),
        ("there.jsonl", "exists; pass `force=True`"),
        ("no/such.jsonl", "make the folder first"),
    ],
)
def test_a_place_aside_that_cannot_be_is_told_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aside: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.jsonl").write_text("mine")
    with pytest.raises(OutputError, match=message):
        augment_file(TRAIN, "out.conll", shuffled(), rejected=aside)
    assert [path.name for path in tmp_path.iterdir()] == ["there.jsonl"]


def test_with_standard_output_it_is_a_file_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    aside = tmp_path / "refused.jsonl"
    assert main(["augment", str(TRAIN), "-m", "sis", "--rejected", str(aside)]) == 0
    assert capsys.readouterr().out
    assert aside.read_bytes() == b"", "sis has no filter here, so nothing was refused"


# -------------------------------------------------------------------------------------------------------------- review


@pytest.mark.parametrize("output", ["out.conll", "out.jsonl", "out.spacy"])
def test_what_was_rejected_is_left_out_and_all_else_is_as_it_was(tmp_path: Path, output: str) -> None:
    method = entaug.create_augmenter("sis")
    augment_file(TRAIN, tmp_path / f"first-{output}", method, only_new=True)
    first = list(entaug.read(tmp_path / f"first-{output}"))
    path = decisions(tmp_path / "review.json", (first[3], "reject"), (first[5], "accept"), (first[8], "reject"))
    summary = augment_file(TRAIN, tmp_path / output, entaug.create_augmenter("sis"), only_new=True, review=path)
    left = list(entaug.read(tmp_path / output))
    assert left == [s for i, s in enumerate(first) if i not in {3, 8}]
    assert summary.statistics.missing["rejected in review"] == 2
    assert not any("review" in note for note in summary.notes)


def test_decisions_about_what_is_not_made_are_told(tmp_path: Path) -> None:
    other = decisions(tmp_path / "r.json", (Sentence(["never", "made"]), "reject"))
    summary = augment_file(TRAIN, tmp_path / "out.conll", entaug.create_augmenter("sis"), review=other)
    assert any(
        note.startswith("1 of 1 sentences that the review rejects were not generated in this run")
        for note in summary.notes
    )
    mixed = decisions(tmp_path / "m.json", (Sentence(["never", "made"]), "reject"), method="mr")
    summary = augment_file(TRAIN, tmp_path / "out2.conll", entaug.create_augmenter("sis"), review=mixed)
    assert not any("not generated in this run" in note for note in summary.notes), (
        "those of other methods are none of ours"
    )


def test_a_run_under_another_review_is_not_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        augment_file(TRAIN, tmp_path / "out.conll", entaug.create_augmenter("sis"), progress=interrupt_after(0))
    review = decisions(tmp_path / "r.json", (Sentence(["never", "made"]), "reject"))
    with pytest.raises(OutputError, match="left by an interrupted run with other input, options or models"):
        augment_file(TRAIN, tmp_path / "out.conll", entaug.create_augmenter("sis"), review=review)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[]", "is not a review"),
        ('{"entaug": "review", "version": 1}', "is not a review"),
        (
            '{"entaug": "review", "version": 2, "decisions": []}',
            "version 2 of the review format, and this entaug reads version 1",
        ),
        ('{"entaug": "review", "version": 1, "decisions": [3]}', "decision 1 is not an object"),
        ('{"entaug": "review", "version": 1, "decisions": [{"fingerprint": "zz"}]}', "decision 1 has no fingerprint"),
        (
            '{"entaug": "review", "version": 1, "decisions": [{"fingerprint": "00112233445566"}]}',
            "decision 1 has no fingerprint of 16",
        ),
        (
            '{"entaug": "review", "version": 1, "decisions": [{"fingerprint": "0011223344556677", "decision": "no"}]}',
            "decision 1 must be accept, reject or correct, not 'no'",
        ),
        (
            '{"entaug":"review","version":1,"decisions":[{"fingerprint": "0011223344556677", "decision": "correct"}]}',
            "decision 1 has no correction",
        ),
        *(
            (
                (
                    '{"entaug": "review", "version": 1, "decisions": [{"fingerprint": "00112233445566ff", '
                    f'"decision": "correct", "correction": {{"of": "00112233445566ff", "changes": {changes}}}}}]}}'
                ),
                "the correction of decision 1 is damaged",
            )
            for changes in (
                "[]",
                "1",
                '[{"given": null, "suggested": null}]',
                '[{"given": null}]',
                '[{"given": null, "suggested": {"label": "A", "spans": [[1, 0]]}}]',
            )
        ),
    ],
)
def test_faulty_reviews_are_told_in_one_line(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "review.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=message) as error:
        read_review(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    assert "export the decisions" in str(error.value)


def test_of_two_decisions_the_later_holds(tmp_path: Path) -> None:
    one = Sentence(["a"])
    number = one.fingerprint_number()
    review = read_review(decisions(tmp_path / "r.json", (one, "reject"), (one, "accept")))
    assert not review.rejected
    assert not review.rejects(number, None)
    assert read_review(decisions(tmp_path / "r.json", (one, "accept"), (one, "reject"))).rejects(number, "any")


def test_the_command_line_obeys_a_review(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    base = ["augment", str(TRAIN), "-m", "sis", "--only-new", "--json", "--to", "jsonl"]
    assert main(base) == 0
    first = capfdbinary.readouterr().out.splitlines()
    sentence = next(iter(entaug.read(written(tmp_path, first))))
    review = decisions(tmp_path / "r.json", (sentence, "reject"))
    assert main([*base, "--apply-review", str(review)]) == 0
    out, err = capfdbinary.readouterr()
    assert out.splitlines() == first[1:]
    assert json.loads(err)["statistics"]["missing"]["rejected in review"] == 1


def written(folder: Path, lines: list[bytes]) -> Path:
    path = folder / "first.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_what_was_made_already_obeys_a_review_too(tmp_path: Path) -> None:
    out = tmp_path / "all.jsonl"
    augment_file(TRAIN, out, entaug.create_augmenter("sis"))
    everything = list(entaug.read(out))
    new = [sentence for sentence in everything if sentence.provenance is not None]
    review = decisions(tmp_path / "r.json", (new[2], "reject"), (new[4], "accept"))
    assert main(["filter", str(out), "--apply-review", str(review), "-o", str(tmp_path / "good.jsonl")]) == 0
    assert list(entaug.read(tmp_path / "good.jsonl")) == [s for s in everything if s != new[2]]


def corrections(path: Path, *corrected: tuple[Sentence, list[tuple[Mention | None, Mention | None]]]) -> Path:
    """A review that corrects the labels of sentences, as a page exports it."""

    def told(mention: Mention | None) -> Any:
        return None if mention is None else {"label": mention.label, "spans": mention.spans}

    found = [
        {
            "fingerprint": one.fingerprint().hex(),
            "method": "mr",
            "id": one.id,
            "decision": "correct",
            "correction": {
                "of": one.fingerprint().hex(),
                "changes": [{"given": told(given), "suggested": told(suggested)} for given, suggested in changes],
            },
        }
        for one, changes in corrected
    ]
    path.write_bytes(orjson.dumps({"entaug": "review", "version": 1, "decisions": found}))
    return path


NESTED = ROOT / "examples" / "corpus" / "nested.jsonl"


def corrected(folder: Path) -> tuple[Path, list[Sentence], Path, list[tuple[Mention, ...]]]:
    """A file of augmented sentences, what it holds, a review of two of them, and the mentions that these shall have."""
    out = folder / "all.jsonl"
    augment_file(NESTED, out, entaug.create_augmenter("mr"))
    held = list(entaug.read(out))
    new = [s for s in held if s.provenance is not None and len(s.mentions) > 1]
    overlapping = next(s for s in new if not s.is_flat)
    other = next(s for s in new if s is not overlapping)
    first, *rest = overlapping.mentions
    gap = Mention("GAP", [(0, 1), (len(other) - 1, len(other))])
    review = corrections(
        folder / "review.json",
        (overlapping, [(first, Mention("NEW", first.spans))]),
        (other, [(other.mentions[0], None), (None, gap)]),
    )
    wanted = [Sentence(overlapping.tokens, [Mention("NEW", first.spans), *rest]).mentions]
    wanted.append(Sentence(other.tokens, [*other.mentions[1:], gap]).mentions)
    return out, [overlapping, other], review, wanted


def test_filter_corrects_labels_and_says_what_it_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, sentences, review, wanted = corrected(tmp_path)
    before, good = out.read_bytes(), tmp_path / "good.jsonl"
    assert main(["filter", str(out), "--apply-review", str(review), "-o", str(good)]) == 0
    told = capsys.readouterr().err
    assert "3 labels corrected in 2 augmented sentences" in told
    assert "good.jsonl.changes.jsonl: what was changed" in told
    assert out.read_bytes() == before
    old, new = list(entaug.read(out)), list(entaug.read(good))
    of = {one.id: one for one in new}
    assert [of[one.id].mentions for one in sentences] == wanted
    names = [one.id for one in sentences]
    assert [one for one in new if one.id not in names] == [one for one in old if one.id not in names]
    lines = [orjson.loads(line) for line in (tmp_path / "good.jsonl.changes.jsonl").read_bytes().splitlines()]
    assert [line["kind"] for line in lines] == ["type", "spurious", "missing"]
    assert lines[0]["id"] == names[0]
    assert lines[0]["text"] == " ".join(sentences[0].tokens)
    assert (lines[0]["old"]["label"], lines[0]["new"]["label"]) == (sentences[0].mentions[0].label, "NEW")
    assert lines[2]["new"]["spans"] == [[0, 1], [len(sentences[1]) - 1, len(sentences[1])]]
    # The provenance says it too, and the sentence is of the method and the sources as before.
    provenance = of[names[0]].provenance
    assert provenance is not None
    assert provenance.sources == sentences[0].provenance.sources  # type: ignore[union-attr]
    assert provenance.details["corrected"][0]["suggested"]["label"] == "NEW"
    # A second time there is nothing to correct: the sentences have other labels now.
    assert main(["filter", str(good), "--apply-review", str(review), "-o", str(tmp_path / "again.jsonl")]) == 0
    assert "2 of 2 sentences that the review corrects are not in this file" in capsys.readouterr().err
    assert (tmp_path / "again.jsonl").read_bytes() == good.read_bytes()


def test_a_log_of_corrections_stands_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _, review, _ = corrected(tmp_path)
    command = ["filter", str(out), "--apply-review", str(review), "-o", str(tmp_path / "good.jsonl")]
    for log, message in ((review, "is an input"), (out, "is an input"), (tmp_path / "good.jsonl", "a file of its own")):
        assert main([*command, "--log", str(log), "--force"]) in (2, 3)
        assert message in capsys.readouterr().err
    assert main([*command, "--log", str(tmp_path / "mine.jsonl")]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"all.jsonl", "review.json", "good.jsonl", "mine.jsonl"}
    accepted = decisions(tmp_path / "a.json", (Sentence(["a"]), "accept"))
    for more in (["--apply-review", str(accepted)], ["--filter", "validity"]):
        assert main(["filter", str(out), *more, "-o", str(tmp_path / "x.jsonl"), "--log", str(tmp_path / "l")]) == 2
        assert "there are none" in capsys.readouterr().err


def test_filters_judge_corrected_labels(tmp_path: Path) -> None:
    out, sentences, review, _ = corrected(tmp_path)

    @dataclass(kw_only=True, eq=False)
    class NoNew(Filter):
        name: ClassVar[str] = "no-new"
        reasons: ClassVar[tuple[str, ...]] = ("new",)

        def _judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
            return ["new" if any(m.label == "NEW" for m in one.mentions) else None for one in made]

    summary = entaug.filter(out, tmp_path / "good.jsonl", NoNew(), review=review)
    assert dict(summary.rejected) == {"no-new: new": 1}
    assert sentences[0].id not in [one.id for one in entaug.read(tmp_path / "good.jsonl")]


def test_augment_again_corrects_labels(tmp_path: Path) -> None:
    out, sentences, review, wanted = corrected(tmp_path)
    whole = augment_file(NESTED, tmp_path / "whole.jsonl", entaug.create_augmenter("mr"), review=review)
    of = {one.id: one for one in entaug.read(tmp_path / "whole.jsonl")}
    assert [of[one.id].mentions for one in sentences] == wanted
    assert whole.statistics.corrected == 2
    assert whole.notes == augment_file(NESTED, tmp_path / "b.jsonl", entaug.create_augmenter("mr")).notes
    # As filter writes it.
    entaug.filter(out, tmp_path / "good.jsonl", [], review=review)
    assert (tmp_path / "whole.jsonl").read_bytes() == (tmp_path / "good.jsonl").read_bytes()
    # A format that stores no provenance has the labels all the same.
    augment_file(TRAIN, tmp_path / "flat.conll", entaug.create_augmenter("mr"), only_new=True)
    first = next(iter(entaug.read(tmp_path / "flat.conll")))
    corrections(tmp_path / "flat.json", (first.with_(id=None), [(first.mentions[0], None)]))
    summary = augment_file(
        TRAIN, tmp_path / "new.conll", entaug.create_augmenter("mr"), only_new=True, review=tmp_path / "flat.json"
    )
    assert next(iter(entaug.read(tmp_path / "new.conll"))).mentions == first.mentions[1:]
    assert summary.statistics.relabelled == {f"corrected: {first.mentions[0].label}": 1}
    gone = corrections(tmp_path / "gone.json", (Sentence(["a"]), [(None, Mention("X", [(0, 1)]))]))
    summary = augment_file(NESTED, tmp_path / "c.jsonl", entaug.create_augmenter("mr"), review=gone)
    assert any("1 of 1 sentences that the review corrects were not generated" in note for note in summary.notes)


def test_a_correction_of_other_labels_is_not_applied(tmp_path: Path) -> None:
    one = Sentence(["a", "b"], [Mention("X", [(0, 1)])])
    assert correct(one, [Change(Mention("Y", [(0, 1)]), None)]) is None
    assert correct(one, [Change(None, Mention("Y", [(1, 3)]))]) is None
    assert correct(one, []) is None
    assert correct(one, [Change(None, Mention("X", [(0, 1)]))]) is None  # it has it already
    both = [Change(Mention("X", [(0, 1)]), Mention("Y", [(0, 1)])), Change(None, Mention("X", [(1, 2)]))]
    assert correct(one, both) == one.with_(mentions=[Mention("Y", [(0, 1)]), Mention("X", [(1, 2)])])
    soft = one.with_(layout={"tag_probabilities": {}})
    assert correct(soft, both).layout == {}  # type: ignore[union-attr]


def test_a_mention_with_two_corrections_is_told(tmp_path: Path) -> None:
    one, first = Sentence(["a"], [Mention("X", [(0, 1)])]), Mention("X", [(0, 1)])
    path = corrections(tmp_path / "r.json", (one, [(first, None), (first, Mention("Y", [(0, 1)]))]))
    with pytest.raises(InputError, match="the correction of decision 1 is damaged"):
        read_review(path)


def test_of_a_correction_and_a_later_decision_the_later_holds(tmp_path: Path) -> None:
    one = Sentence(["a"], id="one")
    path = corrections(tmp_path / "r.json", (one, [(None, Mention("X", [(0, 1)]))]))
    number = one.fingerprint_number()
    assert read_review(path).changes(number, "one") == (Change(None, Mention("X", [(0, 1)])),)
    assert read_review(path).changes(number, "other") == read_review(path).changes(number, None) != ()
    data = orjson.loads(path.read_bytes())
    data["decisions"].append({"fingerprint": one.fingerprint().hex(), "id": "one", "decision": "accept"})
    path.write_bytes(orjson.dumps(data))
    assert read_review(path).changes(number, "one") == ()
    assert not read_review(path).corrected


def test_equal_sentences_decided_on_in_two_ways_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    one = Sentence(["a"])
    found = [
        {"fingerprint": one.fingerprint().hex().upper(), "method": "sis", "id": name, "decision": decision}
        for name, decision in (("a/sis-0-1", "accept"), ("a/sis-1-1", "reject"))
    ]
    path = tmp_path / "r.json"
    path.write_bytes(b"\xef\xbb\xbf" + orjson.dumps({"entaug": "review", "version": 1, "decisions": found}))
    review, number = read_review(path), one.fingerprint_number()
    assert [review.rejects(number, name) for name in ("a/sis-0-1", "a/sis-1-1", None)] == [False, True, True]


def test_a_review_that_fits_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mr = decisions(tmp_path / "mr.json", (Sentence(["a"]), "reject"), method="mr")
    summary = augment_file(TRAIN, tmp_path / "out.jsonl", entaug.create_augmenter("sis"), review=mr)
    assert "the review covers other methods only; all sentences of sis are kept" in summary.notes
    told = entaug.filter(tmp_path / "out.jsonl", tmp_path / "good.jsonl", [], review=mr)
    assert "1 of 1 sentences that the review rejects are not in this file" in told.notes


# ------------------------------------------------------------------------------------------------ what is read is kept


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("filter new.jsonl --gold G --filter validity -o G", "G"),
        ("filter new.jsonl --gold G --filter validity -o x.jsonl --rejected G", "G"),
        ("filter new.jsonl --gold g.conll --filter leakage --held-out G -o G", "G"),
        ("quality new.jsonl --gold G --no-models -o G", "G"),
        ("augment g.conll -m sis --filter leakage --held-out G -o G", "G"),
        ("augment g.conll -m sis --filter leakage --held-out G -o x.jsonl --rejected G", "G"),
        ("augment g.conll -m sis --apply-review R -o R --to jsonl", "R"),
        ("augment g.conll -m sis --apply-review R -o x.jsonl --rejected R", "R"),
        ("filter new.jsonl --apply-review R -o R --to jsonl", "R"),
        ("report RUNS -o RUNS/runs.jsonl", "RUNS/runs.jsonl"),
    ],
)
def test_nothing_that_is_read_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, wanted: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("g.conll", "G"):
        Path(name).write_bytes(TRAIN.read_bytes())
    augment_file("g.conll", "new.jsonl", entaug.create_augmenter("sis"), only_new=True)
    decisions(Path("R"), (Sentence(["a"]), "accept"))
    Path("RUNS").mkdir()
    Path("RUNS/runs.jsonl").write_text("")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main([*command.split(), "--force"]) == 3
    assert f"{wanted}: is an input" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_has_one_value_is_not_silently_given_another(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["augment", str(TRAIN), "-m", "sis", "--apply-review", "a", "--apply-review", "b"])
    assert stopped.value.code == 2
    assert "--apply-review is given twice" in capsys.readouterr().err
