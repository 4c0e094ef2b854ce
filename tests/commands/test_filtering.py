"""`entaug filter` and `augment --filter`: what was made is judged, counted and written, in whatever format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.commands.main import main
from entaug.core.data import split_fields
from entaug.errors import InputError, OutputError, ParameterError
from entaug.filters import Leakage, create_filters
from entaug.formats.corpus_file import CorpusFile
from entaug.methods.augment import augment_file
from entaug.methods.token_replacement import LabelWiseTokenReplacement
from helpers.command_line import fails, interrupt_after, repeated

TRAIN, NESTED = EXAMPLE / "train.conll", EXAMPLE / "nested.jsonl"
PER, LOC = Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])
GOLD = [
    Sentence("Ada left Rome ( again )".split(), [PER, LOC], id="a"),
    Sentence("Bo left Oslo".split(), [PER, LOC], id="b"),
]


def made(text: str, source: str, **told: object) -> Sentence:
    meta = {"entaug": {"method": "mr", "sources": [source], **told}}
    return Sentence(text.split(), [PER, LOC], id=f"new {text}", **split_fields(meta))


NEW = [
    made("Bo left Rome ( again )", "a"),
    made("Ada left Rome ( again (", "a"),
    made("bo LEFT oslo", "b"),
    made("Ada left Oslo", "b"),
]
GOOD = [NEW[0], NEW[3]]


def written(folder: Path, name: str, sentences: list[Sentence]) -> Path:
    path = folder / name
    entaug.write(sentences, path)
    return path


def test_good_and_gold_sentences_stay_in_place_and_the_others_go_with_why(tmp_path: Path) -> None:
    file = written(tmp_path, "all.jsonl", [GOLD[0], *NEW[:2], GOLD[1], *NEW[2:]])
    before = file.read_bytes()
    out, rejected = tmp_path / "out.jsonl", tmp_path / "rejected.jsonl"
    summary = entaug.filter(file, out, create_filters("validity+duplicates"), rejected=rejected)
    assert list(entaug.read(out)) == [GOLD[0], NEW[0], GOLD[1], NEW[3]]
    assert file.read_bytes() == before
    lines = before.splitlines(keepends=True)
    assert out.read_bytes() == b"".join(lines[i] for i in (0, 1, 3, 5)), "what is kept is kept to the byte"
    assert [(s.tokens, s.fields["entaug"]) for s in entaug.read(rejected)] == [
        (s.tokens, {**s.fields["entaug"], "rejected": reason})
        for s, reason in (
            (NEW[1], "validity: unbalanced brackets or quotes"),
            (NEW[2], "duplicates: duplicate of its source"),
        )
    ]
    assert (summary.gold, summary.filtered, summary.kept, summary.after.sentences) == (2, 4, 2, 4)
    assert summary.rejected == {"validity: unbalanced brackets or quotes": 1, "duplicates: duplicate of its source": 1}
    assert [text.partition(":")[0] for text in summary.filters] == ["validity", "duplicates"]
    # What was refused once stays so.
    again = entaug.filter(rejected, tmp_path / "none.jsonl", create_filters("mentions:match_words=false"), gold=file)
    assert (again.kept, again.rejected) == (0, summary.rejected)


def test_new_sentences_alone_and_without_provenance(tmp_path: Path) -> None:
    gold = written(tmp_path, "gold.jsonl", GOLD)
    alone = written(tmp_path, "new.jsonl", NEW)
    summary = entaug.filter(alone, tmp_path / "out.jsonl", create_filters("validity+duplicates"), gold=gold)
    assert list(entaug.read(tmp_path / "out.jsonl")) == GOOD
    assert summary.gold == 0
    with pytest.raises(InputError, match=r"new.jsonl: 4 augmented sentences have no known source.*`gold`"):
        entaug.filter(alone, tmp_path / "2.jsonl", create_filters("mentions"))
    with pytest.raises(InputError, match="no gold sentences for the duplicates filter"):
        entaug.filter(alone, tmp_path / "2.jsonl", create_filters("duplicates"))
    # Known by the gold file alone: what does not need a source can judge.
    plain = [Sentence(s.tokens, s.mentions) for s in (*GOLD, *NEW)]
    theirs = written(tmp_path, "theirs.conll", plain)
    conll = written(tmp_path, "gold.conll", plain[:2])
    entaug.filter(theirs, tmp_path / "out.conll", create_filters("validity+duplicates"), gold=conll)
    assert [s.tokens for s in entaug.read(tmp_path / "out.conll")] == [s.tokens for s in (*GOLD, *GOOD)]
    with pytest.raises(
        InputError, match="4 augmented sentences have no known source, which the filter mentions needs; remove"
    ):
        entaug.filter(theirs, tmp_path / "2.conll", create_filters("mentions"), gold=conll)
    with pytest.raises(
        InputError, match=r"theirs.conll: holds no augmented sentence that says so; name the file .* `gold`"
    ):
        entaug.filter(theirs, tmp_path / "2.conll", create_filters("validity"))
    with pytest.raises(InputError, match=r"gold.conll: holds no augmented sentence"):
        entaug.filter(conll, tmp_path / "2.conll", create_filters("validity"), gold=theirs)
    assert not list(tmp_path.glob("2.*"))


def test_what_was_written_from_nothing_is_not_held_against_another_sentence(tmp_path: Path) -> None:
    free = made("ada left rome ( again )", "a", unconditioned=True)
    file = written(tmp_path, "all.jsonl", [*GOLD, free])
    summary = entaug.filter(file, tmp_path / "out.jsonl", create_filters("duplicates"))
    assert summary.rejected == {"duplicates: duplicate of another gold sentence": 1}
    with pytest.raises(InputError, match="remove that filter"):
        entaug.filter(file, tmp_path / "2.jsonl", create_filters("similarity"))


def test_nothing_is_left_where_something_fails(tmp_path: Path) -> None:
    file = written(tmp_path, "all.jsonl", [*GOLD, *NEW])
    filters = create_filters("validity")
    with pytest.raises(ParameterError, match="no filter is given"):
        entaug.filter(file, tmp_path / "out.jsonl", [])
    with pytest.raises(OutputError, match="is an input"):
        entaug.filter(file, file, filters, force=True)
    with pytest.raises(OutputError, match="is an input"):
        entaug.filter(file, tmp_path / "out.jsonl", filters, rejected=file, force=True)
    with pytest.raises(OutputError, match="a file of their own"):
        entaug.filter(file, tmp_path / "out.jsonl", filters, rejected=tmp_path / "out.jsonl")
    nested = Sentence("a b c".split(), [Mention("X", [(0, 2)]), Mention("Y", [(1, 2)])])
    deep = written(tmp_path, "deep.jsonl", [nested, *NEW])
    with pytest.raises(entaug.EntaugError, match="nested"):
        entaug.filter(deep, tmp_path / "out.conll", filters, rejected=tmp_path / "r.jsonl", allow_loss=["all"])
    assert {path.name for path in tmp_path.iterdir()} == {"all.jsonl", "deep.jsonl"}
    (tmp_path / "out.jsonl").write_text("mine")
    with pytest.raises(OutputError, match="force=True"):
        entaug.filter(file, tmp_path / "out.jsonl", filters)


def test_what_the_output_cannot_store_is_told(tmp_path: Path) -> None:
    file = written(tmp_path, "all.jsonl", [GOLD[0].with_(meta={"source": "news"}), NEW[0]])
    told = entaug.filter(file, tmp_path / "out.conll", create_filters("validity"), allow_loss=["all"])
    assert told.lost["field 'source'"] == 1
    assert "note: dropped, because the output format cannot store it: field 'source' (once)" in told.lines()


@pytest.mark.parametrize("name", ["out.conll", "out.jsonl", "out.spacy", "brat"])
def test_filtering_afterwards_gives_what_a_format_holds(tmp_path: Path, name: str) -> None:
    """In each kind of format; of one attempt a draft, to judge afterwards is to judge at once."""
    gold = TRAIN if name != "brat" else NESTED
    options: dict[str, Any] = {"to_format": "brat"} if name == "brat" else {}
    if name == "out.conll":
        options["write_options"] = {"provenance": True}
    filters = "validity:balanced_brackets=false"
    free, at_once, after = (tmp_path / f"{part}{name}" for part in ("free-", "once-", "after-"))
    augment_file(gold, free, LabelWiseTokenReplacement(max_attempts=1, seed=4), **options)
    method = LabelWiseTokenReplacement(max_attempts=1, seed=4, filters=filters)
    told = augment_file(gold, at_once, method, **options)
    summary = entaug.filter(free, after, create_filters(filters))
    refused = {reason: n for reason, n in told.statistics.rejected.items() if reason.startswith("validity: ")}
    assert summary.rejected == refused
    assert sum(refused.values()) > 0
    kept, wanted = list(entaug.read(after)), list(entaug.read(at_once))
    assert [(s.tokens, s.mentions) for s in kept] == [(s.tokens, s.mentions) for s in wanted]
    assert sum(s.provenance is not None for s in kept) == summary.kept > 0


def test_a_filtered_run_that_is_interrupted_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    gold = repeated(tmp_path, 12)
    held = [Sentence(s.tokens[:-1]) for s in entaug.read(gold)[:5]]

    def method(held_out: list[Sentence]) -> LabelWiseTokenReplacement:
        filters = create_filters("validity+similarity:min_similarity=0.6+leakage", held_out)
        return LabelWiseTokenReplacement(filters=filters, max_attempts=3)

    wanted = augment_file(gold, tmp_path / "whole.conll", method(held))
    with pytest.raises(KeyboardInterrupt):
        augment_file(gold, tmp_path / "out.conll", method(held), progress=interrupt_after(600))
    # The same held-out sentences in another order are the same run; others are not.
    with pytest.raises(OutputError, match="with other input, options or models"):
        augment_file(gold, tmp_path / "out.conll", method(held[1:]))
    summary = augment_file(gold, tmp_path / "out.conll", method(held[::-1]))
    assert summary.resumed_at > 0
    assert (tmp_path / "out.conll").read_bytes() == (tmp_path / "whole.conll").read_bytes()
    assert summary.statistics == wanted.statistics
    assert any(reason.startswith("similarity: ") for reason in summary.statistics.rejected)


# -------------------------------------------------------------------------------------------------- the command line


@pytest.mark.parametrize("name", ["filter", "augment"])
def test_a_run_that_ends_between_the_rejected_sentences_and_the_output_is_repaired_by_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    gold = written(tmp_path, "all.jsonl", [GOLD[0], *NEW[:2], GOLD[1], *NEW[2:]]) if name == "filter" else TRAIN

    def run(folder: Path) -> list[bytes]:
        out, rejected = folder / "out.jsonl", folder / "rejected.jsonl"
        if name == "filter":
            entaug.filter(gold, out, "validity+duplicates", rejected=rejected)
        else:
            method = LabelWiseTokenReplacement(seed=1, filters="similarity:min_similarity=0.8")
            augment_file(gold, out, method, rejected=rejected)
        assert sorted(path.name for path in folder.iterdir()) == ["out.jsonl", "rejected.jsonl"]
        return [out.read_bytes(), rejected.read_bytes()]

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for folder in (tmp_path / "whole", tmp_path / "killed"):
        folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(CorpusFile, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "killed")
    assert (tmp_path / "killed" / "rejected.jsonl").exists()
    assert not (tmp_path / "killed" / "out.jsonl").exists()
    (tmp_path / "own.jsonl").write_text("mine")
    argv = ["filter", "--filter", "validity+duplicates"] if name == "filter" else ["augment", "--method", "lwtr"]
    argv += ["-o", str(tmp_path / "killed" / "out.jsonl"), "--rejected", str(tmp_path / "own.jsonl")]
    assert main([argv[0], str(gold), *argv[1:]]) == 3
    assert (tmp_path / "own.jsonl").read_text() == "mine"
    assert run(tmp_path / "killed") == run(tmp_path / "whole")


def test_augment_with_filters_says_what_each_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, held = tmp_path / "out.jsonl", tmp_path / "held.conll"
    first = next(iter(entaug.read(TRAIN)))
    entaug.write([first], held)
    asked = [
        "--filter",
        "validity:balanced_brackets=false",
        "--filters",
        "similarity:min_similarity=0.9+leakage:threshold=none,ngram_size=2",
    ]
    argv = ["augment", str(TRAIN), "-m", "lwtr", *asked, "--held-out", str(held), "-o", str(out)]
    assert main(argv) == 0
    said = capsys.readouterr().err
    lines = [line.split()[2].rstrip(":") for line in said.splitlines() if line.startswith("  rejected by ")]
    assert sorted(lines) == ["similarity", "validity"]
    assert "too different from its source: " in said
    [signature] = {s.fields["entaug"]["signature"] for s in entaug.read(out) if s.provenance is not None}
    digest = Leakage(held_out=[first]).signature.partition("held_out=")[2][:16]
    assert f"+leakage:held_out={digest},ngram_size=2|" in signature
    assert str(tmp_path) not in signature
    assert main([*argv, "--force", "--json"]) == 0
    rejected = json.loads(capsys.readouterr().out)["statistics"]["rejected"]
    assert rejected["similarity: too different from its source"] > 0


def test_filter_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "all.jsonl", [*GOLD, *NEW])
    out = tmp_path / "out.jsonl"
    argv = ["filter", str(file), "-o", str(out), "--filter", "validity", "--filter", "duplicates"]
    assert main([*argv, "--rejected", str(tmp_path / "r.jsonl")]) == 0
    said = capsys.readouterr().err
    assert "2 of 4 augmented sentences kept, and 2 gold sentences: 4 written" in said
    assert "  rejected by validity: 1 (unbalanced brackets or quotes: 1)" in said
    assert "  rejected by duplicates: 1 (duplicate of its source: 1)" in said
    assert len(entaug.read(tmp_path / "r.jsonl")) == 2
    assert "exists" in fails(capsys, 3, *argv)
    assert main([*argv, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rejected"]["duplicates: duplicate of its source"] == 1
    assert "no filter is given" in fails(capsys, 2, "filter", str(file))
    assert "did you mean 'balanced_brackets'" in fails(
        capsys, 2, "filter", str(file), "--filter", "validity:balance=false"
    )
    assert "--filter leakage" in fails(capsys, 2, *argv, "--force", "--held-out", str(file))
    nowhere = fails(capsys, 2, *argv, "--force", "--filter", "leakage", "--held-out", str(tmp_path / "nowhere.conll"))
    assert "nowhere.conll" in nowhere
    to_conll = ["filter", str(file), "-o", str(tmp_path / "o.conll"), "--filter", "validity", "--allow-loss", "id"]
    assert main([*to_conll, "--provenance"]) == 0
    assert "# entaug" in (tmp_path / "o.conll").read_text(), "provenance stays"


def test_held_out_files_do_not_take_the_part_of_the_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    texts = ("Ada left", "Bo stayed", "Cy left")
    ada, bo, cy = (json.dumps({"tokens": text.split(), "ner_tags": ["B-PER", "O"]}) for text in texts)
    file, alone = tmp_path / "parts.json", tmp_path / "alone.json"
    file.write_text(f'{{"train": [{ada}, {bo}], "dev": [{cy}]}}')
    alone.write_text(f"[{ada}]")
    argv = ["augment", str(file), "-m", "mr", "--layout", "split_name=train", "--filter", "leakage", "--held-out"]
    said = fails(capsys, 2, *argv, str(file))
    assert "parts.json: holds several parts: train, dev; give the one to read as a file or folder of its own" in said
    assert main([*argv, str(alone), "-o", str(tmp_path / "out.jsonl")]) == 0
    assert "note: 1 of 2 training sentences are held-out sentences too, one is 'Ada left'" in capsys.readouterr().err


def test_the_list_of_filters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "filters"]) == 0
    said = capsys.readouterr().out
    assert "mentions:match_words=true" in said
    assert main(["list", "filters", "leakage"]) == 0
    said = capsys.readouterr().out
    assert "(from --held-out FILE)" in said
    assert "duplicate of a held-out sentence" in said
    assert main(["list", "filters", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {one["name"]: one["parameters"] for one in listed}["mentions"] == {"match_words": True}
    assert "fluency" in fails(capsys, 2, "list", "filters", "fluensy")
