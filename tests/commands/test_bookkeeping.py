"""What entaug itself puts into files: it keeps no sentence from being written, and gold ids resolve provenance."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import orjson
import pytest

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.commands.main import main
from entaug.core.corpus import SentenceKeys, with_keys
from entaug.core.data import Provenance, split_fields
from entaug.errors import LossError
from entaug.formats.bookkeeping import BOOKKEEPING, without_bookkeeping
from entaug.formats.files import target
from entaug.methods import create_augmenter
from entaug.methods.augment import augment_file
from entaug.methods.parts import Part, augment_part, merge_parts
from helpers.command_line import files_of

TRAIN = EXAMPLE / "train.conll"
MADE = {"provenance": Provenance("mr", "mr|seed=1", ("s1",), 1)}


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def plain(path: Path, **options: Any) -> list[tuple[Any, Any]]:
    return [(sentence.tokens, sentence.mentions) for sentence in entaug.read(path, **options)]


# ------------------------------------------------------------------------------------------------------- the whole path


@pytest.fixture
def reviewed(tmp_path: Path) -> Path:
    """A corpus of CoNLL columns, augmented, and reviewed: one new sentence is rejected."""
    out = tmp_path / "augmented.jsonl"
    assert main(["augment", str(TRAIN), "-m", "mr", "-o", str(out)]) == 0
    rejected = next(sentence for sentence in entaug.read(out) if sentence.provenance)
    decision = {"fingerprint": rejected.fingerprint().hex(), "decision": "reject"}
    review = tmp_path / "review.json"
    review.write_bytes(orjson.dumps({"entaug": "review", "version": 1, "decisions": [decision]}))
    final = tmp_path / "final.jsonl"
    assert main(["filter", str(out), "--apply-review", str(review), "-o", str(final)]) == 0
    return final


def test_a_reviewed_corpus_is_written_as_conll_without_further_options(
    reviewed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["convert", str(reviewed), str(tmp_path / "final.conll")]) == 0
    said = capsys.readouterr().err
    new = sum(sentence.provenance is not None for sentence in entaug.read(reviewed))
    whole = len(entaug.read(reviewed))
    assert (
        "note: entaug's own notes that CoNLL columns cannot store are left out: "
        f"provenance ({new} sentences), ids given by entaug ({whole} sentences); "
        "to keep them: --provenance --to-layout ids=true\n"
    ) in said
    assert said.count("note: ") == 1
    assert plain(tmp_path / "final.conll") == plain(reviewed)
    text = (tmp_path / "final.conll").read_text()
    assert text.startswith(TRAIN.read_text().rstrip("\n") + "\n\n")
    assert "#" not in text
    assert main(["convert", str(reviewed), str(tmp_path / "all.conll"), "--provenance", "--to-layout", "ids=true"]) == 0
    assert "note: " not in capsys.readouterr().err
    back = [(sentence.id, sentence.provenance) for sentence in entaug.read(tmp_path / "all.conll")]
    assert back == [(sentence.id, sentence.provenance) for sentence in entaug.read(reviewed)]
    assert main(["convert", str(tmp_path / "all.conll"), str(tmp_path / "again.conll")]) == 0  # the layout is its own
    assert (tmp_path / "again.conll").read_bytes() == (tmp_path / "all.conll").read_bytes()


@pytest.mark.parametrize("format_", ["brat", "docbin", "parquet", "doccano", "prodigy", "w2ner", "datasets"])
def test_the_path_by_other_formats(
    format_: str, reviewed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    between = tmp_path / "between"
    capsys.readouterr()
    tokens = ["--allow-loss", "tokens"] * (format_ == "brat")  # spaCy has others
    assert main(["convert", str(reviewed), str(between), "--to", format_, *tokens]) == 0
    assert "own notes" not in capsys.readouterr().err
    # White space is the user's as soon as a text has it, and so are the names of its documents.
    kinds = {"brat": "text,id", "doccano": "text", "prodigy": "text"}.get(format_)
    options = ["--allow-loss", kinds] if kinds else []
    final = tmp_path / "final.conll"
    assert main(["convert", str(between), str(final), "--from", format_, *options]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "own notes" in line]
    assert len(notes) == 1
    assert "provenance" in notes[0]
    if format_ != "brat":
        assert plain(final) == plain(reviewed)


def test_content_that_would_be_lost_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ['{"tokens":["Ada"]}', '{"tokens":["sang"],"note":"x"}', '{"tokens":["Bo"]}']
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    assert main(["convert", str(tmp_path / "in.jsonl"), str(tmp_path / "out.conll")]) == 2
    assert "in.jsonl:2: CoNLL columns cannot store field 'note' (once)" in capsys.readouterr().err


def test_brat_to_conll_by_a_review(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gold").mkdir()
    entaug.write(
        [
            Sentence(["Ada", "saw", "Rome"], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])], id="a"),
            Sentence(["Bo", "left", "Oslo"], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])], id="b"),
        ],
        tmp_path / "gold",
        "brat",
    )
    assert main(["augment", str(tmp_path / "gold"), "-m", "mr", "--p", "1", "-o", str(tmp_path / "new.jsonl")]) == 0
    capsys.readouterr()
    # Ids and text are the user's, and become comments; lines and numbers of mentions are not.
    final = tmp_path / "final.conll"
    assert main(["convert", str(tmp_path / "new.jsonl"), str(final)]) == 0
    said = capsys.readouterr().err
    assert said.count("own notes") == 1
    assert (
        "field '_brat' (2 sentences), field '_entity_fields' (2 sentences), provenance (2 sentences); to keep" in said
    )
    assert "# sent_id = a\n# text = Ada saw Rome\n" in final.read_text()
    assert main(["convert", str(tmp_path / "gold"), str(tmp_path / "no.conll")]) == 2
    assert "cannot store id (2 times), text (2 times); pass --allow-loss id,text" in capsys.readouterr().err
    relation = tmp_path / "gold" / "a.ann"
    relation.write_text(relation.read_text() + "R1\tsees Arg1:T1 Arg2:T2\n")
    with pytest.raises(LossError, match="field '_brat'"):  # but relations are the user's
        entaug.convert(tmp_path / "gold", tmp_path / "no.conll", allow_loss=["id", "text"])


def test_provenance_goes_into_no_conll_that_did_not_have_it(
    reviewed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    review = tmp_path / "none.json"
    review.write_text('{"entaug": "review", "version": 1, "decisions": []}')
    out, again = tmp_path / "out.conll", tmp_path / "again.conll"
    capsys.readouterr()
    assert main(["filter", str(reviewed), "--apply-review", str(review), "-o", str(out)]) == 0
    assert "own notes that CoNLL columns cannot store are left out: provenance" in capsys.readouterr().err
    assert "# entaug" not in out.read_text()
    assert main(["augment", str(TRAIN), "-m", "sis", "-o", str(out), "--force", "--provenance"]) == 0
    assert main(["filter", str(out), "--apply-review", str(review), "-o", str(again)]) == 0
    assert again.read_bytes() == out.read_bytes()


def test_augment_says_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["augment", str(TRAIN), "-m", "sis", "-o", str(tmp_path / "a.conll")]) == 0
    said = capsys.readouterr().err
    new = len(entaug.read(tmp_path / "a.conll")) - len(entaug.read(TRAIN))
    assert f"left out: provenance ({new} sentences), ids given by entaug ({new} sentences); to keep" in said
    arguments = ["augment", str(TRAIN), "-m", "sis", "--provenance", "--to-layout", "ids=true", "--only-new"]
    assert main([*arguments, "-o", str(tmp_path / "b.conll")]) == 0
    assert "own notes" not in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------- what is whose


def test_what_is_whose() -> None:
    mentions = (Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)]))
    gold = Sentence(["Ada", "saw", "Rome"], mentions)
    own = {"_before": " ", "_document": ["d", 0], "_paragraph": ["d", 0], "_entity_fields": [{"level": 1}, {}]}
    assert without_bookkeeping(gold) is gold
    assert without_bookkeeping(gold.with_(id="x", **split_fields({"page": 3}))).fields == {"page": 3}
    assert without_bookkeeping(gold.with_(id="d-1", **split_fields(own))) == gold.with_(id="d-1")
    assert without_bookkeeping(gold.with_(id="s1/mr-1-1", **MADE)) == gold
    assert without_bookkeeping(gold.with_(id=gold.key)) == gold
    assert without_bookkeeping(gold.with_(id=f"{gold.key}-2")) == gold
    for id_ in ("x", "0123456789abcdef", f"{gold.key}-a", f"{gold.key}-01"):
        assert without_bookkeeping(gold.with_(id=id_)).id == id_
    fields = {"_entity_fields": [{"level": 1, "norm": "Ada L."}, {}]}
    kept = without_bookkeeping(gold.with_(**split_fields(fields)))
    assert kept.fields == {"_entity_fields": [{"norm": "Ada L."}, {}]}
    comments = split_fields({"comments": [f"# sent_id = {gold.key}"]})
    assert without_bookkeeping(gold.with_(id=gold.key, **comments)) == gold
    odd = gold.with_(**split_fields({"_entity_fields": 7, "_brat": 8, "entaug": 3}))
    assert without_bookkeeping(odd) is odd


@pytest.mark.parametrize("name", [*entaug.formats.FORMATS])
def test_no_format_is_kept_from_writing_by_bookkeeping(name: str, tmp_path: Path) -> None:
    own = {"_before": " ", "_document": ["d", 0], "_entity_fields": [{"level": 0}], "_brat": {"of": "x"}}
    gold = Sentence(["Ada", "sang"], [Mention("PER", [(0, 1)])])
    sentences = [gold.with_(id=gold.key), gold.with_(id="n/mr-1-1", **{**split_fields(own), **MADE})]
    entaug.write(sentences, tmp_path / "in.jsonl")
    to = target(tmp_path / "out", name)
    lost = {loss for sentence in sentences for loss in to.lost(sentence)}
    assert all(loss.startswith(BOOKKEEPING) for loss in lost)
    summary = entaug.convert(tmp_path / "in.jsonl", tmp_path / "out", to_format=name)
    assert not summary.lost
    assert len([note for note in summary.notes if "own notes" in note]) == bool(lost)


# --------------------------------------------------------------------------------------------------- ids of gold lines


def test_sources_are_lines_of_the_file(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    augment_file(TRAIN, out, create_augmenter("sis"))
    lines = lines_of(out)
    gold = {line["id"]: line for line in lines if "entaug" not in line}
    assert len(gold) == len(entaug.read(TRAIN))
    for line in lines:
        for source in line.get("entaug", {}).get("sources", ()):
            assert sorted(gold[source]["tokens"]) == sorted(line["tokens"])
    assert len({line["id"] for line in lines}) == len(lines)
    assert lines_of(out)[0]["id"] == entaug.read(TRAIN)[0].key


def mixed(path: Path, *, later: bool = True) -> Path:
    """Equal sentences without ids, one with an id of its own, and some with ids that others of them would get."""
    rng = random.Random(3)
    words = [f"w{i}" for i in range(9)]
    same = Sentence(["Ada", *words], [Mention("PER", [(0, 1)])])
    sentences = [Sentence([f"N{i}", *rng.sample(words, 5)], [Mention("PER", [(0, 1)])]) for i in range(400)]
    sentences[100:100] = [same, same.with_(id="mine"), same]
    if later:
        sentences += [same.with_(id=f"{same.key}-2"), same, sentences[5].with_(id=sentences[5].key)]
    entaug.write(sentences, path)
    return path


@pytest.mark.parametrize("later", [False, True])
def test_made_ids_are_the_same_however_the_work_is_shared(tmp_path: Path, later: bool) -> None:
    source = mixed(tmp_path / "in.jsonl", later=later)
    one = tmp_path / "one.jsonl"
    augment_file(source, one, create_augmenter("sis"))
    ids = [line["id"] for line in lines_of(one)]
    assert len(set(ids)) == len(ids)
    given = [(i, line["id"]) for i, line in enumerate(lines_of(source)) if "id" in line]
    assert all(ids[i] == id_ for i, id_ in given)  # ids of the user stay
    assert len(entaug.read(one)) == len(ids)
    augment_file(source, tmp_path / "two.jsonl", create_augmenter("sis"), jobs=2)
    for number in (1, 2, 3):
        augment_part(source, tmp_path / "parts", create_augmenter("sis"), Part(number, 3), to_format="jsonl")
    merge_parts([tmp_path / "parts"], tmp_path / "merged.jsonl")
    for other in ("two.jsonl", "merged.jsonl"):
        assert (tmp_path / other).read_bytes() == one.read_bytes()
    new = [line for line in lines_of(one) if "entaug" in line]
    assert {line["entaug"]["sources"][0] for line in new} <= set(ids)
    assert not [name for name in files_of(tmp_path) if "partial" in str(name)]


def test_keys_avoid_ids() -> None:
    ada = Sentence(["Ada"])
    key = ada.key
    keys = SentenceKeys({key, f"{key}-3"})
    assert [keys.assign(ada) for _ in range(3)] == [f"{key}-2", f"{key}-4", f"{key}-5"]
    assert not keys.clashes()
    late: set[str] = set()
    keys = SentenceKeys(late)
    assert keys.assign(ada) == key
    assert not keys.clashes()
    late.add(key)
    assert keys.clashes()
    named = list(with_keys([ada, ada.with_(id=f"{key}-2"), ada, ada.with_(id="x")]))
    assert [sentence.id for sentence in named] == [key, f"{key}-2", f"{key}-3", "x"]


def test_conll_and_brat_get_no_made_ids(tmp_path: Path) -> None:
    augment_file(TRAIN, tmp_path / "a.conll", create_augmenter("sis"))
    assert (tmp_path / "a.conll").read_text().startswith(TRAIN.read_text().rstrip("\n"))
    augment_file(TRAIN, tmp_path / "brat", create_augmenter("sis"), to_format="brat")
    assert (tmp_path / "brat" / "000001.txt").exists()
