"""The JSON formats of annotation tools: doccano, Prodigy, GLiNER, Label Studio."""

from __future__ import annotations

import copy
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.core.data import Sentence, split_fields
from entaug.core.edits import Edit
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, LossError, ParameterError
from entaug.formats.base import ENTITY_FIELDS, NO_MENTION, ReadReport
from entaug.formats.files import FORMATS, find_format, open_file
from entaug.formats.label_studio import TASK
from helpers.strategies import TEXT, WORDS, sentences

NAMES = ("doccano", "prodigy", "gliner", "label-studio")
pytest.importorskip("spacy")

PARTIAL = (
    "text of binary records, of which only the suggested spans were judged: whether it has other mentions is unknown, "
    "and it is read as if it had none"
)
SEVERAL_RECORDS = "text of another record too (_input_hash), as of several annotators: each record is read"
# A text with an emoji before its mentions: one character, two units of UTF-16.
TEXT_ = "🙂 Ada left New  York.\n"
ADA, YORK = (2, 5), (11, 20)
TOKENS = ["🙂", "Ada", "left", "New", "York", "."]
SAID = Sentence(TOKENS, [Mention("PER", [(1, 2)]), Mention("LOC", [(3, 5)])], spaces=(" ", " ", " ", "  ", "", "\n"))


def put(folder: Path, name: str, *records: Any, array: bool = False) -> Path:
    path = folder / name
    text = json.dumps(records) if array else "".join(json.dumps(record) + "\n" for record in records)
    path.write_text(text, encoding="utf-8")
    return path


def again(path: Path, name: str, to: str, **options: Any) -> tuple[list[Sentence], list[Sentence], Any]:
    """What is read of a file, what is read of it when written like it, and what was written."""
    first = list(entaug.read(path, name))
    entaug.write(first, path.parent / to, name, like=path, **options)
    data = (path.parent / to).read_bytes()
    records = orjson.loads(data) if data[:1] == b"[" else [orjson.loads(line) for line in data.splitlines()]
    return first, list(entaug.read(path.parent / to, name)), records


def same(a: Sentence, b: Sentence) -> bool:
    """Whether two sentences are equal as regards tokens and mentions."""
    return (a.tokens, a.mentions) == (b.tokens, b.mentions)


def values(sentence: Sentence) -> tuple[Any, ...]:
    return (*sentence.tokens, sentence.mentions, sentence.id, sentence.fields, sentence.spaces)


# -------------------------------------------------------------------------------------------------------------- doccano


@pytest.mark.parametrize("field", ["label", "labels"])
def test_doccano_lists(tmp_path: Path, field: str) -> None:
    record = {"id": 7, "text": TEXT_, field: [[*YORK, "LOC"], [*ADA, "PER"]], "Comments": ["x"], "doc": {"a": [1.5]}}
    path = put(tmp_path, "a.jsonl", record, {"id": 8, "text": "No one.", field: []})
    opened = open_file(path)
    assert (opened.format.name, opened.dialect.describe()) == ("doccano", f"doccano, [start, end, label] in {field!r}")
    first, second, written = again(path, "doccano", "b.jsonl")
    assert same(first[0], SAID)
    assert first[0].spaces == SAID.spaces
    assert (first[0].id, first[0].fields) == ("7", {"Comments": ["x"], "doc": {"a": [1.5]}})
    assert [values(s) for s in first] == [values(s) for s in second]
    assert written[0] == {**record, field: [[*ADA, "PER"], [*YORK, "LOC"]], "tokens": TOKENS}
    assert written[1] == {"id": 8, "text": "No one.", field: [], "tokens": ["No", "one", "."]}


def test_doccano_objects_and_relations(tmp_path: Path) -> None:
    record = {
        "id": "x1",
        "text": TEXT_,
        "entities": [
            {"id": 3, "label": "PER", "start_offset": 2, "end_offset": 5},
            {"id": 4, "label": "LOC", "start_offset": 11, "end_offset": 20},
        ],
        "relations": [{"id": 1, "from_id": 3, "to_id": 4, "type": "left"}],
        "Comments": [],
    }
    path = put(tmp_path, "a.jsonl", record)
    first, second, written = again(path, "doccano", "b.jsonl")
    assert "objects" in open_file(path).dialect.describe()
    assert first[0].fields[ENTITY_FIELDS] == [{"id": 3}, {"id": 4}]
    assert values(first[0]) == values(second[0])
    assert written == [{**record, "tokens": TOKENS}]
    # What was made of it has neither the ids nor the relations between them.
    made = first[0].edit([Edit(1, 2, ["Bo"])]).with_fields({"relations": 1, "Comments": 1, "entaug": {"copy": 1}})
    entaug.write([made], tmp_path / "c.jsonl", like=path)
    assert orjson.loads((tmp_path / "c.jsonl").read_bytes()).keys() == {"id", "text", "entities", "tokens", "entaug"}
    assert next(iter(entaug.read(tmp_path / "c.jsonl"))).fields == {"entaug": {"copy": 1}}
    lists = find_format("doccano").dialect()
    assert find_format("doccano").lost(first[0], lists) == ["field 'id' of mentions"]


def test_doccano_of_intents_and_of_older_exports(tmp_path: Path) -> None:
    intents = put(tmp_path, "a.jsonl", {"text": "To Rome", "entities": [[3, 7, "City"]], "cats": ["flight"]})
    first, second, written = again(intents, "doccano", "b.jsonl")
    assert (first[0].mentions, first[0].fields) == ((Mention("City", [(1, 2)]),), {"cats": ["flight"]})
    assert first == second
    assert written[0]["entities"] == [[3, 7, "City"]]
    older = put(tmp_path, "c.json", {"id": 1, "data": "To Rome", "label": [[3, 7, "City"]]})
    assert again(older, "doccano", "d.json")[2][0]["data"] == "To Rome"
    mixed = put(tmp_path, "e.jsonl", {"text": "a", "label": [[0, 1, "X"]]}, {"text": "b", "labels": [[0, 1, "X"]]})
    assert [len(s.mentions) for s in entaug.read(mixed)] == [1, 1]


def test_doccano_with_numbers_of_labels(tmp_path: Path) -> None:
    """The export that lacks the names of labels is recognised, and the error says which one has them."""
    label = {"id": 1, "label": 2, "start_offset": 0, "end_offset": 3, "user": 1}
    path = put(tmp_path, "a.jsonl", {"id": 1, "text": "Ada left", "annotations": [label]})
    assert open_file(path).format.name == "doccano"
    with pytest.raises(InputError, match=r"a.jsonl:1: doccano's export with the numbers of labels .* JSONL with text"):
        entaug.read(path)


def test_doccano_with_an_id_that_is_no_name(tmp_path: Path) -> None:
    record = {"text": "Ada sang", "label": [[0, 3, "PER"]]}
    path = put(tmp_path, "a.jsonl", {"id": None, **record}, {"id": 1.5, **record})
    with pytest.raises(InputError, match=r"a\.jsonl:2: 'id' must be a string, not 1\.5"):
        entaug.read(path, "doccano")


def test_doccano_without_tokens(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    odd = Sentence(["New York", "is", "n't", "A.B"], [Mention("LOC", [(0, 1)])])
    entaug.write([odd], path, "doccano")
    assert entaug.read(path)[0].tokens == odd.tokens
    entaug.write([odd], path, "doccano", tokens=False)
    assert entaug.read(path)[0].tokens == ("New", "York", "is", "n't", "A.B")
    # A field of that name that is no list of the tokens is somebody else's.
    other = put(tmp_path, "b.jsonl", {"text": "a b", "label": [[0, 1, "X"]], "tokens": ["a", "c"]})
    assert entaug.read(other)[0].fields == {"tokens": ["a", "c"]}
    assert find_format("doccano").lost(entaug.read(other)[0], find_format("doccano").dialect()) == ["field 'tokens'"]


def test_texts_are_cut_into_sentences(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", {"id": 5, "text": " Ada sang. In Rome.\n", "label": [[14, 18, "LOC"]], "n": 1})
    first = list(entaug.read(path, split="sentences"))
    assert [(s.id, s.tokens[0]) for s in first] == [("5-1", "Ada"), ("5-2", "In")]
    entaug.write(first, tmp_path / "b.jsonl", like=path)
    assert [values(s)[:-2] for s in entaug.read(tmp_path / "b.jsonl")] == [values(s)[:-2] for s in first]
    # A format that is written at once makes one text of them again.
    entaug.write(first, tmp_path / "c.json", "label-studio")
    [task] = orjson.loads((tmp_path / "c.json").read_bytes())
    assert (task["id"], task["data"]["text"], task["data"]["n"]) == (5, " Ada sang. In Rome.\n", 1)
    assert entaug.read(tmp_path / "c.json")[0].mentions == (Mention("LOC", [(4, 5)]),)
    twice = [*first, *(s.with_fields({**s.fields, "entaug": {"method": "m", "copy": 1}}) for s in first)]
    entaug.write(twice, tmp_path / "c.json", "label-studio")
    assert [s.id for s in entaug.read(tmp_path / "c.json")] == ["5", "5+2"]


# -------------------------------------------------------------------------------------------------------------- Prodigy


def prodigy(**more: Any) -> dict[str, Any]:
    # As spaCy has it: the second space is a token of its own, and so is the line end.
    words = [
        ("🙂", True),
        ("Ada", True),
        ("left", True),
        ("New", True),
        (" ", False),
        ("York", False),
        (".", False),
        ("\n", False),
    ]
    tokens: list[dict[str, Any]] = []
    place = 0
    for i, (word, space) in enumerate(words):
        tokens.append({"text": word, "start": place, "end": place + len(word), "id": i, "ws": space})
        place += len(word) + space
    spans = [
        {"start": 2, "end": 5, "token_start": 1, "token_end": 1, "label": "PER"},
        {"start": 11, "end": 20, "token_start": 3, "token_end": 5, "label": "LOC", "source": "m"},
    ]
    return {"text": TEXT_, "tokens": tokens, "spans": spans, **more}


def test_prodigy(tmp_path: Path) -> None:
    more = {"_input_hash": -12, "_task_hash": 3, "answer": "accept", "meta": {"score": 0.5}, "_session_id": None}
    record = prodigy(**more)
    path = put(tmp_path, "a.jsonl", record)
    first, second, written = again(path, "prodigy", "b.jsonl")
    assert open_file(path).format.name == "prodigy"
    assert same(first[0], SAID)
    assert first[0].spaces == SAID.spaces
    assert first[0].fields == {**more, ENTITY_FIELDS: [{}, {"source": "m"}]}
    assert values(first[0]) == values(second[0])
    assert written == [record], "offsets, numbers of tokens and all"
    made = first[0].edit([Edit(1, 2, ["Bo", "Li"], [Mention("PER", [(0, 2)])])])
    made = made.with_(id="a-1").with_fields({**more, "entaug": {"copy": 1}})
    entaug.write([made], tmp_path / "c.jsonl", like=path)
    told = orjson.loads((tmp_path / "c.jsonl").read_bytes())
    assert (told["id"], told["answer"], told["entaug"]) == ("a-1", "accept", {"copy": 1})
    assert not {"_input_hash", "_task_hash"} & told.keys(), "they are those of another text"
    assert told["spans"][1] == {"start": 13, "end": 22, "token_start": 4, "token_end": 6, "label": "LOC"}
    assert told["text"][13:22] == "New  York"


def test_prodigy_answers(tmp_path: Path) -> None:
    records = [prodigy(answer=answer, _input_hash=1) for answer in ("accept", "reject", "ignore", "reject")]
    path = put(tmp_path, "a.jsonl", *records)
    reading = ReadReport()
    assert len(list(open_file(path).sentences(reading))) == 1
    assert reading.notes == {
        "record with the answer 'reject' left out": 2,
        "record with the answer 'ignore' left out": 1,
    }
    reading = ReadReport()
    assert len(list(open_file(path, answers="all").sentences(reading))) == 4
    assert reading.notes == {SEVERAL_RECORDS: 3}
    assert [r["answer"] for r in again(path, "prodigy", "b.jsonl", answers="all")[2]] == ["accept"]
    with pytest.raises(InputError, match=r"no sentence in it \(record with the answer 'reject' left out: 1\)"):
        entaug.read(put(tmp_path, "c.jsonl", records[1]))
    with pytest.raises(ParameterError, match="answers must be one of 'accept', 'all'"):
        entaug.read(path, answers="reject")


def test_an_answer_that_prodigy_files_are_read_without_is_a_loss(tmp_path: Path) -> None:
    sentence = Sentence(["Ada"], [Mention("PER", [(0, 1)])], meta={"answer": "42"})
    format_ = find_format("prodigy")
    assert format_.lost(sentence, format_.dialect()) == ["field 'answer'"]
    assert format_.lost(sentence, format_.dialect(answers="all")) == []
    entaug.write([sentence], tmp_path / "a.jsonl", "prodigy")
    assert entaug.read(tmp_path / "a.jsonl", "prodigy")[0].mentions == sentence.mentions


def suggested(start: int, end: int, answer: str, label: str = "PER", **more: Any) -> dict[str, Any]:
    """A binary record, as of ner.teach."""
    span = {"start": start, "end": end, "label": label, "score": 0.5}
    record = {"text": "Mira Lind met Otto", "_input_hash": 7, "_task_hash": start, "spans": [span], "answer": answer}
    return record | {"_is_binary": True} | more


def test_prodigy_binary_records(tmp_path: Path) -> None:
    """Accepted spans of one text are its mentions, rejected ones are none, and the rest is unknown."""
    other = suggested(0, 4, "accept", _input_hash=8)
    records = [suggested(0, 9, "accept"), suggested(10, 13, "reject"), other, suggested(14, 18, "accept")]
    path = put(tmp_path, "a.jsonl", *records, suggested(0, 4, "reject", _input_hash=9))
    reading = ReadReport()
    first, second = open_file(path).sentences(reading)
    assert first.mentions == (Mention("PER", [(0, 2)]), Mention("PER", [(3, 4)]))
    assert second.mentions == (Mention("PER", [(0, 1)]),)
    assert reading.notes == {
        "binary record merged with others of its text": 1,
        "record with the answer 'reject' left out": 2,
        PARTIAL: 2,
    }
    # What is written says that it is partial, too; what is augmented does not count as the text of its source.
    written = again(path, "prodigy", "b.jsonl")[2]
    assert [record["_is_binary"] for record in written] == [True, True]
    assert [span["score"] for span in written[0]["spans"]] == [0.5, 0.5]
    reading = ReadReport()
    list(open_file(tmp_path / "b.jsonl").sentences(reading))
    assert reading.notes == {PARTIAL: 2}
    assert [len(s.mentions) for s in entaug.read(path, answers="all")] == [2, 1, 0], "rejected spans are no mentions"


def test_prodigy_binary_records_in_conflict(tmp_path: Path) -> None:
    records = [
        *(suggested(0, 4, "accept"), suggested(0, 9, "accept"), suggested(0, 9, "accept")),
        *(suggested(14, 18, "accept"), suggested(14, 18, "reject"), suggested(14, 18, "ignore")),
    ]
    reading = ReadReport()
    [found] = open_file(put(tmp_path, "a.jsonl", *records)).sentences(reading)
    assert found.mentions == (Mention("PER", [(0, 2)]),)
    assert reading.notes == {
        "accepted span that overlaps a longer one, left out": 1,
        "binary record merged with others of its text": 3,
        "record with the answer 'ignore' left out": 1,
        "record with the answer 'reject' left out": 1,
        "span that was accepted and rejected, left out": 1,
        PARTIAL: 1,
    }
    # A text that somebody annotated in full is complete without them, and invalid ones are reported as any other.
    whole = suggested(14, 18, "accept", _is_binary=False)
    reading = ReadReport()
    [found] = open_file(put(tmp_path, "b.jsonl", *records[:2], whole)).sentences(reading)
    assert found.mentions == (Mention("PER", [(3, 4)]),)
    assert reading.notes == {"binary record of a text that another record annotates in full, left out": 2}
    with pytest.raises(InputError, match=r"c\.jsonl:2: mention PER"):
        entaug.read(put(tmp_path, "c.jsonl", whole, suggested(4, 4, "accept", _input_hash=2)))


def test_prodigy_records_without_hashes_stay_apart(tmp_path: Path) -> None:
    records = [suggested(0, 4, "accept"), suggested(14, 18, "accept")]
    for record in records:
        del record["_input_hash"]
    assert [len(s.mentions) for s in entaug.read(put(tmp_path, "a.jsonl", *records))] == [1, 1]


def test_prodigy_annotators_are_counted(tmp_path: Path) -> None:
    """Several annotations of a text are several sentences, which is said."""
    records = [prodigy(_input_hash=1, _annotator_id=name) for name in "abc"]
    reading = ReadReport()
    assert len(list(open_file(put(tmp_path, "a.jsonl", *records, prodigy(_input_hash=2))).sentences(reading))) == 4
    assert reading.notes == {SEVERAL_RECORDS: 2}


def test_prodigy_of_other_ages_and_tokens(tmp_path: Path) -> None:
    older = prodigy()
    for token in older["tokens"]:
        del token["ws"]
    path = put(tmp_path, "a.jsonl", older)
    assert again(path, "prodigy", "b.jsonl")[2] == [older]
    bare = put(tmp_path, "c.jsonl", {"text": TEXT_, "spans": [{"start": 2, "end": 5, "label": "PER"}]})
    assert entaug.read(bare)[0].tokens == SAID.tokens
    unlabelled = put(tmp_path, "d.jsonl", {"text": "a b", "tokens": None, "spans": None, "_input_hash": 3})
    assert again(unlabelled, "prodigy", "e.jsonl")[1][0].tokens == ("a", "b")
    styled = prodigy()
    styled["tokens"][1]["disabled"] = True
    path = put(tmp_path, "f.jsonl", styled)
    reading = ReadReport()
    [found] = open_file(path).sentences(reading)
    assert same(found, SAID)
    assert reading.notes == {"'disabled' of tokens left out": 1}
    pieces = prodigy()
    pieces["tokens"][1] |= {"text": "##da", "start": 3}
    reading = ReadReport()
    [found] = open_file(put(tmp_path, "h.jsonl", pieces)).sentences(reading)
    assert same(found, SAID)
    assert reading.notes == {"tokens that are not those of the text: tokenised anew": 1}
    # Tokens of language models may begin with the space before them.
    spaced = [{"text": "Oh", "start": 0, "end": 2, "id": 0}, {"text": " no", "start": 3, "end": 6, "id": 1}]
    path = put(
        tmp_path, "i.jsonl", {"text": "Oh  no", "tokens": spaced, "spans": [{"start": 3, "end": 6, "label": "X"}]}
    )
    assert (entaug.read(path)[0].tokens, entaug.read(path)[0].mentions) == (("Oh", " no"), (Mention("X", [(1, 2)]),))


@pytest.mark.parametrize("name", ["label-studio", "doccano"])
def test_all_sentences_of_an_augmented_text_are_augmented(tmp_path: Path, name: str) -> None:
    texts = [
        Sentence.from_iob(f"{a} left . {b} sang .".split(), "B-PER O O B-PER O O".split()) for a, b in ("XY", "ZV")
    ]
    end = "json" if name == "label-studio" else "jsonl"
    entaug.write([s.with_(id=str(i)) for i, s in enumerate(texts)], tmp_path / f"a.{end}", format=name)
    gold = entaug.read(tmp_path / f"a.{end}", split="sentences")
    new = entaug.augment(gold, "mr")
    assert len(gold) == 4
    assert len(new) > 2
    entaug.write([*gold, *new], tmp_path / f"b.{end}", format=name)
    found = entaug.read(tmp_path / f"b.{end}", split="sentences")
    made = [s.provenance.sources for s in found if s.provenance is not None]
    assert (len(found), len(made)) == (4 + len(new), len(new))
    assert {one for own in made for one in own} == {one for s in new if s.provenance for one in s.provenance.sources}


def test_sentences_of_a_prodigy_text_have_not_its_hashes(tmp_path: Path) -> None:
    record = {"text": "Oh no. Ada sang.", "spans": [], "_input_hash": 1, "_task_hash": 2, "answer": "accept"}
    path = put(tmp_path, "a.jsonl", record, record | {"text": "Oh.", "_input_hash": 3, "relations": []})
    cut = entaug.read(path, split="sentences")
    entaug.write(cut, tmp_path / "b.jsonl", like=path)
    told = [orjson.loads(line) for line in (tmp_path / "b.jsonl").read_bytes().splitlines()]
    assert [one["text"] for one in told] == ["Oh no. ", "Ada sang.", "Oh."]
    assert [one.get("_input_hash") for one in told] == [None, None, 3]
    assert told[2]["relations"] == []
    related = put(tmp_path, "c.jsonl", record | {"relations": [{"head": 0, "child": 3, "label": "X"}]})
    summary = entaug.convert(related, tmp_path / "d.jsonl", to_format="prodigy", read_options={"split": "sentences"})
    assert [note for note in summary.notes if "field 'relations' (1 sentence)" in note]
    assert "relations" not in (tmp_path / "d.jsonl").read_text()


def test_prodigy_agrees_with_spacy(tmp_path: Path) -> None:
    import spacy

    text = "  Oh\tno,  he isn't (yet)\n\n in  New York .  "
    doc = spacy.blank("en").make_doc(text)
    path = put(tmp_path, "a.jsonl", {"text": text, "spans": [], "_input_hash": 1})
    [record] = again(path, "prodigy", "b.jsonl")[2]
    assert record["tokens"] == [
        {"text": t.text, "start": t.idx, "end": t.idx + len(t.text), "id": t.i, "ws": bool(t.whitespace_)} for t in doc
    ]


# --------------------------------------------------------------------------------------------------------------- GLiNER


def gliner() -> dict[str, Any]:
    return {"tokenized_text": TOKENS, "ner": [[3, 4, "LOC"], [1, 1, "PER"]], "ner_labels": ["LOC", "PER", "ORG"]}


@pytest.mark.parametrize(
    ("name", "array"), [("a.json", True), ("a.jsonl", False), ("a.json", False), ("a.jsonl", True)]
)
def test_gliner(tmp_path: Path, name: str, array: bool) -> None:
    record = gliner() | {"relations": [[0, 1, "left by"]], "rel_labels": ["left by"]}
    path = put(tmp_path, name, record, gliner() | {"id": "x"}, array=array)
    assert open_file(path).format.name == "gliner"
    first, second, written = again(path, "gliner", "b" + name)
    assert all(same(s, SAID) for s in first)
    assert list(map(values, first)) == list(map(values, second))
    assert isinstance(written, list)
    assert ((tmp_path / ("b" + name)).read_bytes()[:1] == b"[") == array, "as it was"
    assert written[0] == record | {"ner": [[1, 1, "PER"], [3, 4, "LOC"]], "relations": [[1, 0, "left by"]]}
    assert first[1].id == "x"


@pytest.mark.parametrize("name", ["gliner", "spacy-json", "chat"])
def test_one_option_chooses_between_an_array_and_lines(tmp_path: Path, name: str) -> None:
    def is_array(file: str) -> bool:
        return (tmp_path / file).read_bytes()[:2] == b"[\n"

    made = {f"{array}.{end}": array for array in (True, False, None) for end in ("json", "jsonl")}
    for file, array in made.items():
        entaug.write([SAID, SAID], tmp_path / file, name, array=array)
        assert is_array(file) == (file.endswith(".json") if array is None else array), file
        told = open_file(tmp_path / file).dialect.describe()
        assert any(what in told for what in ("array", "JSON lines")) == (is_array(file) == file.endswith(".jsonl"))
        entaug.write([SAID, SAID], tmp_path / f"again-{file}", like=tmp_path / file)
        assert is_array(f"again-{file}") == is_array(file), "as it was"
    for file, other in (("None.json", "other.jsonl"), ("None.jsonl", "other.json")):
        entaug.write([SAID, SAID], tmp_path / other, like=tmp_path / file)
        assert is_array(other) == other.endswith(".json"), "by the other extension"
    for array in (True, False):
        entaug.write([SAID, SAID], tmp_path / f"{array}.dat", name, array=array)
        entaug.write([SAID, SAID], tmp_path / f"again-{array}.dat", like=tmp_path / f"{array}.dat")
        assert is_array(f"again-{array}.dat") == array, "as it was"
        (tmp_path / f"{array}.dat").rename(tmp_path / f"{array}")  # as standard input, without an extension
        entaug.write([SAID, SAID], tmp_path / f"of-{array}.json", like=tmp_path / f"{array}")
        assert is_array(f"of-{array}.json")


def test_gliner_is_what_its_own_scripts_load(tmp_path: Path) -> None:
    entaug.write([SAID, SAID.with_(spaces=None)], tmp_path / "a.json", "gliner")
    loaded = json.loads((tmp_path / "a.json").read_text())
    for record, text in zip(loaded, (TEXT_, None), strict=True):
        assert {" ".join(record["tokenized_text"][a : b + 1]): label for a, b, label in record["ner"]} == {
            "Ada": "PER",
            "New York": "LOC",
        }
        assert record.get("text") == text
    assert [s.spaces for s in entaug.read(tmp_path / "a.json")] == [SAID.spaces, None]
    entaug.write([SAID], tmp_path / "a.jsonl.gz", "gliner")
    assert len(gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()).splitlines()) == 1
    made = SAID.with_fields({"relations": [[0, 1, "x"]], "entaug": {"copy": 2}})
    entaug.write([made], tmp_path / "a.json", "gliner")
    assert entaug.read(tmp_path / "a.json")[0].fields == {"entaug": {"copy": 2}}


def test_gliner_loses(tmp_path: Path) -> None:
    meta = {"ner": 1, ENTITY_FIELDS: [{"a": 1}]}
    s = Sentence(["a ", "b"], [Mention("X", [(0, 1)])], "i", meta, {"pos": ("x", "y")}, spaces=(" ", ""))
    assert find_format("gliner").lost(s, find_format("gliner").dialect()) == [
        "column 'pos'",
        "field 'ner'",
        "fields of mentions",
    ]


# --------------------------------------------------------------------------------------------------------- Label Studio


def region(start: int, end: int, label: str, **more: Any) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": TEXT_[start:end], "labels": [label]}
    return {"value": value, "id": f"r{start}", "from_name": "ner", "to_name": "doc", "type": "labels", **more}


def task(**more: Any) -> dict[str, Any]:
    choice = {"value": {"choices": ["good"]}, "id": "c", "from_name": "q", "to_name": "doc", "type": "choices"}
    results = [region(*ADA, "PER", origin="manual"), region(*YORK, "LOC", score=0.5), choice]
    return {
        "id": 12,
        "annotations": [
            {"id": 1, "completed_by": 1, "was_cancelled": True, "result": []},
            {"id": 2, "completed_by": {"id": 3}, "was_cancelled": False, "result": results, "lead_time": 3.5},
            {"id": 4, "was_cancelled": False, "result": []},
        ],
        "predictions": [{"model_version": "m", "result": [region(0, 1, "EMO")]}],
        "data": {"title": "A very long title, longer than the text", "body": TEXT_, "n": 3},
        "created_at": "2024-01-01",
        **more,
    }


def test_label_studio(tmp_path: Path) -> None:
    path = put(tmp_path, "a.json", task(), task(id=13, annotations=[]), array=True)
    opened = open_file(path)
    assert opened.dialect.describe() == "Label Studio, tasks, text under 'body'"
    reading = ReadReport()
    list(opened.sentences(reading))
    assert reading.notes == {
        "further annotation of a task not read": 1,
        "task without an annotation (it has predictions: `annotations='predictions'` reads them) left out": 1,
    }
    first, second, written = again(path, "label-studio", "b.json")
    assert same(first[0], SAID)
    assert (first[0].id, first[0].spaces) == ("12", SAID.spaces)
    assert first[0].fields[ENTITY_FIELDS] == [{"id": "r2", "origin": "manual"}, {"id": "r11", "score": 0.5}]
    assert list(map(values, first)) == list(map(values, second))
    expected = task()
    expected["data"]["tokens"] = TOKENS
    assert written == [expected], "predictions, other annotations and other results too"
    # Through JSON lines, nothing is lost either.
    entaug.write(first, tmp_path / "c.jsonl", "jsonl")
    entaug.write(entaug.read(tmp_path / "c.jsonl"), tmp_path / "d.json", "label-studio", like=path)
    assert orjson.loads((tmp_path / "d.json").read_bytes()) == [expected]


def test_label_studio_augmented(tmp_path: Path) -> None:
    path = put(tmp_path, "a.json", task(), array=True)
    [gold] = entaug.read(path)
    told = {k: v for k, v in gold.fields.items() if k != ENTITY_FIELDS} | {"entaug": {"copy": 1}}
    entaug.write([gold, gold.with_(id="12-m1", **split_fields(told))], tmp_path / "b.json", like=path)
    made = orjson.loads((tmp_path / "b.json").read_bytes())[1]
    assert made.keys() == {"id", "data", "annotations"}, "what was said of the source is not said of it"
    assert (made["id"], made["data"]["entaug"]) == ("12-m1", {"copy": 1})
    [annotation] = made["annotations"]
    assert annotation.keys() == {"result"}
    assert [r["value"]["labels"] for r in annotation["result"]] == [["PER"], ["LOC"]]
    back = entaug.read(tmp_path / "b.json")[1]
    assert (back.id, back.fields["entaug"], TASK in back.fields) == ("12-m1", {"copy": 1}, False)


def in_utf16(task: dict[str, Any]) -> dict[str, Any]:
    """A task as Label Studio wrote it until 2021."""

    def units(text: str) -> int:
        return len(text.encode("utf-16-le")) // 2

    old = copy.deepcopy(task)
    for result in old["annotations"][1]["result"][:2]:
        value = result["value"]
        value |= {"start": units(TEXT_[: value["start"]]), "end": units(TEXT_[: value["end"]])}
    return old


def test_label_studio_units(tmp_path: Path) -> None:
    """Offsets are characters; old files counted units of UTF-16, which their words tell, and come back so."""
    old = in_utf16(task())
    assert old["annotations"][1]["result"][0]["value"]["start"] == 3
    path = put(tmp_path, "a.json", old, array=True)
    reading = ReadReport()
    [s] = open_file(path).sentences(reading)
    assert same(s, SAID)
    note = "offsets count UTF-16 units: of 2 ranges where that matters, 2 fit words as UTF-16 units and 0 as characters"
    assert reading.notes[f"{note}; to change it: `offsets='characters'`"] == 1
    written = again(path, "label-studio", "b.json")[2]
    assert written[0]["annotations"] == old["annotations"]
    entaug.write([s], tmp_path / "c.json", "label-studio", like=path, offsets="characters")
    assert orjson.loads((tmp_path / "c.json").read_bytes())[0]["annotations"] == task()["annotations"]


def test_label_studio_units_of_some_tasks(tmp_path: Path) -> None:
    """Words tell of each task, too: a project may hold old ones; without words they are as in the others."""
    new, old = task(), in_utf16(task()) | {"id": 13}
    path = put(tmp_path, "a.json", new, old, new | {"id": 14}, array=True)
    reading = ReadReport()
    assert [same(s, SAID) for s in open_file(path).sentences(reading)] == [True] * 3
    assert reading.notes["text whose offsets count UTF-16 units"] == 1
    wordless = in_utf16(task()) | {"id": 15}
    for result in wordless["annotations"][1]["result"][:2]:
        del result["value"]["text"]
    path = put(tmp_path, "b.json", old, wordless, array=True)
    assert [same(s, SAID) for s in open_file(path).sentences(ReadReport())] == [True] * 2
    with pytest.raises(InputError, match="within the token"):
        entaug.read(path, offsets="characters")


def test_label_studio_predictions_alone(tmp_path: Path) -> None:
    """They are no labels, unless the user says so; the note names the option."""
    annotated, predicted = task(), task() | {"id": 13}
    result = predicted.pop("annotations")[1]["result"][:2]
    predicted["predictions"] = [{"id": 1, "result": result, "score": 0.5, "model_version": "m"}]
    path = put(tmp_path, "a.json", predicted, array=True)
    assert open_file(path).format.name == "label-studio"
    what = "task without an annotation (it has predictions: `annotations='predictions'` reads them) left out"
    with pytest.raises(InputError) as caught:
        entaug.read(path)
    assert what in str(caught.value)
    [s] = entaug.read(path, annotations="predictions")
    assert same(s, SAID)
    reading = ReadReport()
    assert len(list(open_file(put(tmp_path, "c.json", annotated, predicted, array=True)).sentences(reading))) == 1
    assert reading.notes[what] == 1


def test_label_studio_words_of_another_place(tmp_path: Path) -> None:
    wrong = task()
    wrong["annotations"][1]["result"][0]["value"]["text"] = "Bo"
    path = put(tmp_path, "a.json", wrong, array=True)
    with pytest.raises(InputError, match=r"task 1: a mention is at 2-5, where the text has 'Ada' and not 'Bo'; name"):
        entaug.read(path)
    reading = ReadReport(repair=True)
    assert same(next(open_file(path).sentences(reading)), SAID)
    assert reading.repaired.total() == 1
    fine = task()
    fine["annotations"][1]["result"][1]["value"]["text"] = "New\\n York"
    assert same(entaug.read(put(tmp_path, "b.json", fine, array=True))[0], SAID)


def test_label_studio_several_labels(tmp_path: Path) -> None:
    two = task()
    two["annotations"][1]["result"][0]["value"]["labels"] = ["PER", "A", "B"]
    path = put(tmp_path, "a.json", two, array=True)
    first, second, written = again(path, "label-studio", "b.json")
    assert [m.label for m in first[0].mentions] == ["A", "B", "PER", "LOC"]
    assert list(map(values, first)) == list(map(values, second))
    assert written[0]["annotations"] == two["annotations"]
    fewer = first[0].with_(
        mentions=first[0].mentions[1:],
        **split_fields({**first[0].fields, ENTITY_FIELDS: first[0].fields[ENTITY_FIELDS][1:]}),
    )
    entaug.write([fewer], tmp_path / "c.json", like=path)
    assert {m.label for m in entaug.read(tmp_path / "c.json")[0].mentions} == {"B", "PER", "LOC"}


@pytest.mark.parametrize("has_words", [True, False])
def test_label_studio_regions_of_another_text_of_the_task(tmp_path: Path, has_words: bool) -> None:
    def labelled(start: int, end: int, words: str, label: str, name: str) -> dict[str, Any]:
        value = {"start": start, "end": end, "labels": [label]} | ({"text": words} if has_words else {})
        return {"id": f"{name}{start}", "from_name": name, "to_name": name, "type": "labels", "value": value}

    results = [labelled(0, 3, "Zoe", "DIR", "title"), labelled(0, 3, "Ada", "PER", "body")]
    results.append(labelled(9, 13, "Rome", "LOC", "body"))
    data = {"title": "Zoe speaks", "body": "Ada left Rome."}
    path = put(tmp_path, "a.json", {"id": 1, "data": data, "annotations": [{"result": results}]}, array=True)
    corpus = entaug.read(path)
    assert [mention.label for mention in corpus[0].mentions] == ["PER", "LOC"]
    assert corpus.notes == ("region of another text of its task left out (`to_name='title'` reads that one)",)
    entaug.convert(path, tmp_path / "b.json")
    written = orjson.loads((tmp_path / "b.json").read_bytes())[0]["annotations"][0]["result"]
    assert {(r["to_name"], *r["value"]["labels"]) for r in written} == {
        ("body", "PER"),
        ("body", "LOC"),
        ("title", "DIR"),
    }
    [title] = entaug.read(path, to_name="title")
    assert (title.tokens, [mention.label for mention in title.mentions]) == (("Zoe", "speaks"), ["DIR"])


def test_label_studio_regions_with_other_names_of_the_same_text(tmp_path: Path) -> None:
    def task(names: list[str], **data: str) -> dict[str, Any]:
        places = [(0, 3, "PER"), (9, 13, "LOC")]
        results = [
            {
                "from_name": "ner",
                "to_name": name,
                "type": "labels",
                "value": {"start": a, "end": b, "text": data["text"][a:b], "labels": [x]},
            }
            for name, (a, b, x) in zip(names, places, strict=True)
        ]
        return {"data": data, "annotations": [{"result": results}]}

    same = task(["text", "text2"], text="Ada left Rome.", raw="Ada left Rome.")
    other = task(["t", "t"], text="Bob left Rome.", t="Bob")
    path = put(tmp_path, "a.json", same, task(["text", "text"], text="Eve left Rome."), other, array=True)
    corpus = entaug.read(path)
    assert [[m.label for m in sentence.mentions] for sentence in corpus] == [["PER", "LOC"]] * 3


def test_json_min_is_refused(tmp_path: Path) -> None:
    values_ = [{"start": a, "end": b, "text": TEXT_[a:b], "labels": [x]} for (a, b), x in ((ADA, "PER"), (YORK, "LOC"))]
    path = put(tmp_path, "a.json", {"body": TEXT_, "id": 3, "ner": values_, "annotator": 1}, array=True)
    with pytest.raises(
        InputError, match="task 1: a task of JSON-MIN, which is not read; export the project anew, as JSON"
    ):
        entaug.read(path)


def test_label_studio_of_old_and_of_nobody(tmp_path: Path) -> None:
    old = task()
    old["completions"] = old.pop("annotations")
    old["completions"][0] = {"skipped": True, "result": []}
    path = put(tmp_path, "a.json", old, array=True)
    assert again(path, "label-studio", "b.json")[2] == [old | {"data": old["data"] | {"tokens": TOKENS}}]
    with pytest.raises(
        InputError, match=r"no sentence in it \(task without an annotation \(it has predictions: .*\) left out: 1\)"
    ):
        entaug.read(put(tmp_path, "c.json", task(annotations=[]), array=True))
    html = task()
    html["annotations"][1]["result"].append({"type": "hypertextlabels", "value": {"start": "/p[1]"}})
    with pytest.raises(
        InputError, match=r"task 1: a region of the kind 'hypertextlabels' has no place in a plain text"
    ):
        entaug.read(put(tmp_path, "d.json", html, array=True))
    place = {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "startOffset": 0, "endOffset": 3, "labels": ["PER"]}
    html["annotations"][1]["result"] = [{"type": "labels", "value": place}]
    with pytest.raises(
        InputError, match=r"'labels' has no place in a plain text; only <Text> with <Labels> can be read"
    ):
        entaug.read(put(tmp_path, "e.json", html, array=True))


CONFIG = """<View><Labels name="label" toName="text"><Label value="PER"/><Label value="LOC"/></Labels>
<Text name="text" value="$text"/></View>"""


def converter() -> Any:
    """Label Studio's own, which the dev extra brings."""
    sdk = pytest.importorskip("label_studio_sdk.converter", reason="pip install 'entaug[dev]'")
    return sdk.Converter(CONFIG, "")


@pytest.mark.filterwarnings("ignore")
def test_label_studios_own_converter_reads_what_we_write(tmp_path: Path) -> None:
    own = converter()
    plain = Sentence("Ada left New York for Rome .".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 4)])])
    long_ = Sentence([*TOKENS[:-1], "for", "Rome", "."], [*SAID.mentions, Mention("LOC", [(6, 7)])], "7")
    entaug.write([plain, long_], tmp_path / "a.json", "label-studio")
    own.convert_to_conll2003(str(tmp_path / "a.json"), str(tmp_path / "conll"), is_dir=False)
    found = list(entaug.read(tmp_path / "conll" / "result.conll", tag_column=3))
    assert [(s.tokens, s.mentions) for s in found] == [(s.tokens, s.mentions) for s in (plain, long_)]


@pytest.mark.corpora
@pytest.mark.filterwarnings("ignore")
def test_label_studios_own_converter_on_a_corpus(tmp_path: Path, corpora: Path) -> None:
    own = converter()
    gold = list(entaug.read(corpora / "wnut17" / "emerging.dev.conll"))
    entaug.write(gold, tmp_path / "a.json", "label-studio")
    own.convert_to_json_min(str(tmp_path / "a.json"), str(tmp_path / "min"), is_dir=False)
    tasks = json.loads((tmp_path / "min" / "result.json").read_text())
    for sentence, found in zip(gold, tasks, strict=True):
        assert sorted((v["text"], v["labels"][0]) for v in found.get("label", ())) == sorted(
            (found["text"][v["start"] : v["end"]], v["labels"][0]) for v in found.get("label", ())
        )
        assert len(found.get("label", ())) == len(sentence.mentions)


# ---------------------------------------------------------------------------------------------------- all four formats


def test_each_is_told_from_the_others(tmp_path: Path) -> None:
    files = {
        "doccano": put(tmp_path, "doccano.jsonl", {"text": "a", "label": []}, {"text": "a", "label": [[0, 1, "X"]]}),
        "prodigy": put(tmp_path, "prodigy.jsonl", prodigy()),
        "gliner": put(tmp_path, "gliner.jsonl", gliner()),
        "label-studio": put(tmp_path, "label.json", task(), array=True),
        "jsonl": put(tmp_path, "own.jsonl", {"text": "a", "tokens": ["a"], "entities": []}),
    }
    others = {
        "classes": put(tmp_path, "classes.jsonl", {"text": "a", "label": ["good"]}),
        "array": put(tmp_path, "array.json", 1, [2], array=True),
        "nothing": put(tmp_path, "nothing.jsonl"),
        "numbers": put(tmp_path, "numbers.jsonl", 3, None),
        "plain": put(tmp_path, "plain.jsonl", {"text": "a"}),
        "rows": tmp_path / "rows.conll",
        "folder": tmp_path,
        "missing": tmp_path / "missing.json",
        "bytes": tmp_path / "bytes.json",
        "deep": tmp_path / "deep.json",
    }
    others["rows"].write_text("[\tO\n{\tB-X\n")
    others["bytes"].write_bytes(b"[\xff\xfe{\x00")
    others["deep"].write_text("[" * 100_000)
    for name in NAMES:
        found = find_format(name)
        assert [n for n, path in files.items() if found.recognises(path)] == [name]
        assert [n for n, path in others.items() if found.recognises(path)] == []
    for name, path in files.items():
        assert open_file(path).format.name == name
        bare = path.rename(tmp_path / f"{name}-bare")
        assert open_file(bare).format.name == name, "without an extension too"
    long_ = task()
    long_["data"]["body"] += "x" * 100_000
    assert find_format("label-studio").recognises(put(tmp_path, "long.json", long_, array=True))


@pytest.mark.parametrize("name", NAMES)
def test_what_they_cannot_carry_is_refused(tmp_path: Path, name: str) -> None:
    apart = Sentence(["a", "b", "c"], [Mention("X", [(0, 1), (2, 3)])])
    with pytest.raises(LossError, match=r"discontinuous mention \(X .*write JSON lines or brat"):
        entaug.write([apart], tmp_path / "a.json", name)
    with pytest.raises(LossError, match="cannot be written as JSON"):
        entaug.write([Sentence(["a"], meta={"x": object()})], tmp_path / "a.json", name)
    with pytest.raises(LossError, match="cannot be written as JSON"):
        entaug.write([Sentence(["\ud800"])], tmp_path / "a.json", name)
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize(
    ("name", "options", "names"),
    [
        ("doccano", {"objects": True}, ["end", "end_offset", "label", "start", "start_offset"]),
        ("prodigy", {}, ["end", "label", "start", "token_end", "token_start"]),
    ],
)
def test_fields_of_mentions_with_names_of_the_format_are_losses(
    name: str, options: dict[str, Any], names: list[str]
) -> None:
    fields = [dict.fromkeys([*names, "note"], 1)]
    sentence = Sentence(["Ada"], [Mention("PER", [(0, 1)])], layout={ENTITY_FIELDS: fields})
    found = find_format(name)
    assert found.lost(sentence, found.dialect(**options)) == [f"field {one!r} of mentions" for one in names]


def test_tokens_that_a_text_would_hide_are_refused(tmp_path: Path) -> None:
    hidden = Sentence(["a", " ", "b"], spaces=(" ", "", ""))
    for name in ("doccano", "prodigy", "label-studio"):
        with pytest.raises(LossError, match="cannot be told from that between them"):
            entaug.write([hidden], tmp_path / "a.json", name)
    with pytest.raises(LossError, match=r"the token '\\u3000' is white space"):
        entaug.write([Sentence(["a", "\u3000", "b"])], tmp_path / "a.json", "prodigy")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("extension", [".json", ".jsonl.gz"])
@settings(max_examples=examples(100))
@given(
    corpus=st.lists(sentences(words=st.one_of(TEXT, WORDS), labels=("a b", "é"), gaps=False), min_size=1, max_size=3)
)
def test_round_trip(tmp_path: Path, name: str, extension: str, corpus: list[Sentence]) -> None:
    path, second = tmp_path / f"a{extension}", tmp_path / f"b{extension}"
    meta: list[dict[str, Any]] = [
        {},
        {"doc": 1, "entaug": {"copy": 1}, "_before": "\n "},
        {"more": {"x": [1.5, None, 2**70]}},
    ]
    corpus = [s.with_(id=[None, "7", "x"][i], **split_fields(meta[i])) for i, s in enumerate(corpus)]
    try:
        entaug.write(corpus, path, name)
    except LossError as error:
        assert "white space" in str(error)  # noqa: PT017
        assert any(t[0].isspace() or t[-1].isspace() for s in corpus for t in s.tokens)
        return
    found = list(entaug.read(path, name))
    assert [(s.tokens, s.mentions, s.id) for s in found] == [(s.tokens, s.mentions, s.id) for s in corpus]
    assert [s.fields for s in found] == [s.fields for s in corpus]
    if name != "gliner":
        assert all(a.spaces == b.spaces for a, b in zip(corpus, found, strict=True) if a.spaces is not None)
    entaug.write(found, second, name, like=path)
    assert path.read_bytes() == second.read_bytes() or any(s.spaces is None for s in corpus)
    assert list(map(values, entaug.read(second, name))) == list(map(values, found))


# ----------------------------------------------------------------------------------------------------------- bad input

GOOD: dict[str, Any] = {
    "doccano": {"text": "Ada", "label": [[0, 3, "X"]]},
    "prodigy": {"text": "Ada", "tokens": [{"text": "Ada", "start": 0, "end": 3, "id": 0}], "spans": []},
    "gliner": {"tokenized_text": ["Ada"], "ner": [[0, 0, "X"]]},
    "label-studio": {"id": 1, "data": {"text": "Ada"}, "annotations": [{"result": []}]},
}
FAULTY: list[tuple[str, dict[str, Any], str]] = [
    ("doccano", {"text": 3}, "no string 'text' in the object"),
    ("doccano", {"label": {}}, "'label' is not a list"),
    ("doccano", {"label": [[0, 3]]}, "a mention must be [start, end, label] or an object with these, not [0, 3]"),
    ("doccano", {"label": [[0, 3, ""]]}, "a label must be a non-empty string, not ''"),
    ("doccano", {"label": [[0, 3, 1]]}, "a label must be a non-empty string, not 1"),
    ("doccano", {"label": [[False, True, "X"]]}, "offsets must be whole numbers, not False and True"),
    ("doccano", {"label": [[-1, 3, "X"]]}, "(-1-3) is empty or outside the text of 3 characters"),
    ("doccano", {"label": [[0, 10**30, "X"]]}, "is empty or outside the text"),
    ("doccano", {"label": [[3, 0, "X"]]}, "is empty or outside the text"),
    ("doccano", {"label": [[0, 1, "X"]]}, "begins or ends within the token 'Ada'; pass `misaligned="),
    ("doccano", {"label": [[0, 3, "X"]] * 2}, "is given twice; remove one"),
    ("doccano", {"label": [{"label": "X"}]}, "offsets must be whole numbers, not None and None"),
    ("prodigy", {"text": None}, "no string 'text' in the object"),
    ("prodigy", {"spans": 3}, "'spans' is not a list"),
    ("prodigy", {"spans": [[0, 3]]}, "a span must be an object, not [0, 3]"),
    ("prodigy", {"spans": [{"start": 0, "end": 3}]}, "a label must be a non-empty string, not None"),
    ("prodigy", {"spans": [{"start": 0, "end": 1.5, "label": "X"}]}, "offsets must be whole numbers, not 0 and 1.5"),
    ("prodigy", {"tokens": "Ada"}, "'tokens' is not a list"),
    ("prodigy", {"tokens": ["Ada"]}, "a token must be an object with a 'text', not 'Ada'"),
    ("prodigy", {"tokens": [{"text": 3}]}, "a token must be an object with a 'text'"),
    ("gliner", {"tokenized_text": "Ada"}, "no list 'tokenized_text' of tokens in the object"),
    ("gliner", {"tokenized_text": []}, "at least one token"),
    ("gliner", {"tokenized_text": [3]}, "a token in 'tokenized_text' must be a string, not 3"),
    ("gliner", {"tokenized_text": [[]]}, "a token in 'tokenized_text' must be a string, not []"),
    ("gliner", {"ner": None}, "'ner' is not a list"),
    ("gliner", {"ner": [[0, 1, "X"]]}, "out of range: 1 tokens"),
    ("gliner", {"ner": [[0, 0]]}, "a mention must be [first token, last token, label], not [0, 0]"),
    ("gliner", {"ner": [[0, True, "X"]]}, "whole numbers, not 0 and True"),
    ("gliner", {"ner": [[0, 0, None]]}, "non-empty string, not None"),
    ("gliner", {"ner": [[0, 0, "X"]] * 2}, "mention X [(0, 1)] is given twice; remove one"),
    ("label-studio", {"data": 3}, "no object 'data' in the task"),
    (
        "label-studio",
        {"data": {"n": 3}},
        "no string 'text' in the data of the task; name what holds the text: text_key",
    ),
    ("label-studio", {"annotations": {}}, "'annotations' is not a list of objects"),
    ("label-studio", {"annotations": [3]}, "'annotations' is not a list of objects"),
    ("label-studio", {"annotations": [{"result": 3}]}, "'result' is not a list of objects"),
    (
        "label-studio",
        {"annotations": [{"result": [region(0, 9, "X")]}]},
        "a mention is at 0-9, where the text has 'Ada'",
    ),
]


@pytest.mark.parametrize(("name", "change", "message"), FAULTY)
def test_each_fault_is_one_line_with_file_and_place(tmp_path: Path, name: str, change: Any, message: str) -> None:
    good = GOOD[name]
    array = name == "label-studio"
    path = put(tmp_path, "a.json", good, good | {"id": 2} | change, good | {"id": 3}, array=array)
    with pytest.raises(InputError) as caught:
        entaug.read(path, name)
    text = str(caught.value)
    assert message in text
    assert text.startswith(f"{path}: task 2: " if array else f"{path}:2: ")
    assert "\n" not in text
    faults: list[InputError] = []
    assert len(list(open_file(path, name).sentences(ReadReport(on_fault=faults.append)))) == 2, "check goes on"
    assert len(faults) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no sentence in it|not JSON"),
        (b'{"text": "a', "not JSON"),
        (b"[1", "not JSON"),
        (b"3", "where an (object|array of objects) is expected"),
        (b'"\\ud800"', "not JSON"),
        (b"[" * 5000, "not JSON"),
        (b'{"a":' + b"[" * 1010 + b"1234567890123456789" + b"]" * 1010 + b"}", "no |nested too deep"),
        (b'{"a": NaN}', "not JSON"),
        (b"\xff\xfe{\x00", "not UTF-8"),
        (b'{"text": "Jos\xe9"}', "not UTF-8"),
        (b"[]", "no sentence|where an object"),
    ],
)
def test_what_is_no_such_file(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        entaug.read(path, name)
    assert str(path) in str(caught.value)
    zipped = tmp_path / "b.json.gz"
    zipped.write_bytes(gzip.compress(content + b"\n" * 9999)[:-9])
    with pytest.raises(InputError, match="broken gzip"):
        entaug.read(zipped, name)


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_given_once(tmp_path: Path, name: str) -> None:
    array = name == "label-studio"
    path = put(tmp_path, "a.json", *[GOOD[name] | {"id": 5}] * 2, array=array)
    with pytest.raises(InputError, match="id '5' is that of line 1 too"):
        entaug.read(path, name)
    reading = ReadReport(repair=True)
    assert [s.id for s in open_file(path, name).sentences(reading)] == ["5", None]
    assert reading.repaired == {"id of another sentence dropped": 1}
    blank = {"text": " \n", "tokenized_text": ["a"], "ner": [], "data": {"text": " "}, "annotations": [{"result": []}]}
    if name in ("doccano", "prodigy"):
        blank = {"text": " \n", "label": [], "spans": []}
    path = put(tmp_path, "b.json", GOOD[name], blank, array=array)
    reading = ReadReport()
    assert len(list(open_file(path, name).sentences(reading))) == (2 if name == "gliner" else 1)
    assert (reading.notes - Counter({NO_MENTION: 1})).total() == (name != "gliner")


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["", " ", "Ada", "🙂", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["text", "start", "labels", "id"]), inner)
    ),
    max_leaves=6,
)
RICH: dict[str, Any] = {
    "doccano": [{"id": 7, "text": TEXT_, "entities": [{"id": 1, "label": "X", "start_offset": 2, "end_offset": 5}]}],
    "prodigy": [prodigy(answer="accept", _input_hash=3)],
    "gliner": [gliner() | {"relations": [[0, 1, "x"]], "text": TEXT_, "id": 3}],
    "label-studio": [task(), {"body": TEXT_, "annotator": 1, "annotation_id": 2, "ner": [region(2, 5, "X")["value"]]}],
}


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value, as a container and a key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in pairs for place in ((value, key), *places_in(inner))]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(150))
@given(data=st.data())
def test_nothing_but_clear_errors(tmp_path: Path, name: str, data: st.DataObject) -> None:
    record = copy.deepcopy(data.draw(st.sampled_from(RICH[name])))
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places_in(record)))
        holder[key] = data.draw(JUNK)
    path = put(tmp_path, "a.json", record, array=name == "label-studio")
    for format_ in NAMES:
        find_format(format_).recognises(path)
    try:
        found = list(entaug.read(path, name))
        entaug.write(found, tmp_path / "b.json", name, like=path)
        assert [(s.tokens, s.mentions) for s in entaug.read(tmp_path / "b.json", name)] == [
            (s.tokens, s.mentions) for s in found
        ]
    except EntaugError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(100))
@given(cut=st.integers(0, 400), byte=st.binary(max_size=3))
def test_nothing_but_clear_errors_whatever_the_bytes(tmp_path: Path, name: str, cut: int, byte: bytes) -> None:
    good = json.dumps(RICH[name], ensure_ascii=False).encode()
    path = tmp_path / "a.json"
    path.write_bytes(good[:cut] + byte + good[cut + 1 :])
    for found in map(find_format, FORMATS):
        found.recognises(path)
    try:
        entaug.read(path, name)
    except EntaugError as error:
        assert "\n" not in str(error)  # noqa: PT017


# -------------------------------------------------------------------------------------------------------- real corpora


@pytest.mark.corpora
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "file", ["wnut17/emerging.test.annotated", "genia/nested-jsonl/dev.jsonl", "multiconer-v1/15000/hi_dev.conll"]
)
def test_corpora_come_back(tmp_path: Path, corpora: Path, name: str, file: str) -> None:
    gold = list(entaug.read(corpora / file))
    path = tmp_path / "a.json"
    entaug.write(gold, path, name)
    assert open_file(path).format.name == name
    found = list(entaug.read(path))
    assert [(s.tokens, s.mentions, s.id) for s in found] == [(s.tokens, s.mentions, s.id) for s in gold]
    entaug.write(found, tmp_path / "b.json", like=path)
    assert (tmp_path / "b.json").read_bytes() == path.read_bytes()


def test_augmentation_through_files(tmp_path: Path) -> None:
    from entaug.methods import create_augmenter
    from entaug.methods.augment import augment_file

    corpus = [SAID.with_(id=str(i)) for i in range(3)] + [
        Sentence(["Bo", "is", "in", "Rome"], [Mention("PER", [(0, 1)]), Mention("LOC", [(3, 4)])], "9")
    ]
    for name in NAMES:
        path, out = tmp_path / f"{name}.json", tmp_path / f"{name}-out.json"
        entaug.write(corpus, path, name)
        summary = augment_file(path, out, create_augmenter("mr", copies=1, seed=1))
        assert summary.statistics.accepted
        found = list(entaug.read(out))
        assert open_file(out).format.name == name
        made = [s for s in found if s.provenance is not None]
        assert len(found) == len(corpus) + len(made)
        assert len(made) == summary.statistics.accepted
        assert all(s.fields["entaug"]["sources"] for s in made)
