"""Where the labels of records are, and that none is passed over: JSON lines and arrays, tables, documents of spaCy."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import entaug
from entaug import Mention, Sentence
from entaug.commands.main import main
from entaug.errors import InputError, InputWarning, LossError
from entaug.formats.base import NO_LABELS, NO_MENTION, ReadReport
from entaug.formats.files import open_file, read_each
from entaug.methods.augment import augment_file

TOKENS = ["Mira", "Quill", "ran", "to", "Oslo", "."]
TEXT = "Mira Quill ran to Oslo."
TAGS = ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]
MENTIONS = (Mention("PER", [(0, 2)]), Mention("LOC", [(4, 5)]))
TRIPLES = [[0, 10, "PER"], [18, 22, "LOC"]]


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def whole(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def read(path: Path, **options: Any) -> tuple[list[Sentence], list[str]]:
    """The sentences of a file, and the notes on it."""
    reading = ReadReport()
    return list(open_file(path, **options).sentences(reading)), sorted(reading.notes)


# --------------------------------------------------------------------------------------------------- tokens and labels

OFFSETS = [{"start": 0, "end": 2, "label": "PER"}, {"start": 4, "end": 5, "label": "LOC"}]
LAYOUTS: dict[str, dict[str, Any]] = {
    "ner_tags": {"tokens": TOKENS, "ner_tags": TAGS},
    "tags": {"tokens": TOKENS, "tags": TAGS},
    "labels": {"tokens": TOKENS, "labels": ["B-PER", "L-PER", "O", "O", "U-LOC", "O"]},
    "words": {"words": TOKENS, "ner": TAGS},
    "another name": {"tokens": TOKENS, "gold": TAGS},
    "spans": {"tokens": TOKENS, "spans": OFFSETS},
    "mentions": {
        "tokens": TOKENS,
        "mentions": [{"spans": [[0, 2]], "type": "PER"}, {"spans": [[4, 5]], "type": "LOC"}],
    },
    "annotations": {"tokens": TOKENS, "annotations": OFFSETS},
    "lists": {"tokens": TOKENS, "ner": [[0, 2, "PER"], [4, 5, "LOC"]]},
    "entities as lists": {"tokens": TOKENS, "entities": [[0, 2, "PER"], [4, 5, "LOC"]]},
    "last tokens": {"tokens": TOKENS, "ner": [[0, 1, "PER"], [4, 4, "LOC"]]},
    "entity_mentions": {
        "tokens": TOKENS,
        "entity_mentions": [
            {"start": 0, "end": 2, "entity_type": "PER", "id": "m1"},
            {"start": 4, "end": 5, "entity_type": "LOC", "id": "m2"},
        ],
    },
    "structure of lists": {"tokens": TOKENS, "entities": {"start": [0, 4], "end": [2, 5], "label": ["PER", "LOC"]}},
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_labels_of_json_lines_are_read_and_written_in_their_layout(tmp_path: Path, name: str) -> None:
    record = {"id": "a", **LAYOUTS[name], "page": 3}
    path = lines(tmp_path / "a.jsonl", record)
    [sentence], _ = read(path)
    assert (sentence.tokens, sentence.mentions, sentence.id) == (tuple(TOKENS), MENTIONS, "a")
    assert dict(sentence.meta) == {"page": 3}
    entaug.convert(path, tmp_path / "b.jsonl")
    assert read(tmp_path / "b.jsonl")[0] == [sentence]
    if name != "structure of lists":
        assert json.loads((tmp_path / "b.jsonl").read_text()) == record


@pytest.mark.parametrize("name", LAYOUTS)
def test_arrays_are_read_like_lines(tmp_path: Path, name: str) -> None:
    path = whole(tmp_path / "a.json", [LAYOUTS[name]])
    [sentence], _ = read(path)
    assert sentence.mentions == MENTIONS
    entaug.convert(path, tmp_path / "b.json")
    assert read(tmp_path / "b.json")[0] == [sentence]
    assert json.loads((tmp_path / "b.json").read_text())[0].keys() >= LAYOUTS[name].keys() - {"structure"}


def test_tags_that_are_numbers_need_names(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"tokens": TOKENS, "tags": [1, 2, 0, 0, 3, 0]})
    with pytest.raises(InputError, match=r"a\.jsonl:1: the numbers in 'tags' have no names; .*`names="):
        read(path)
    names = "O,B-PER,I-PER,B-LOC"
    [sentence], _ = read(path, names=names)
    assert sentence.mentions == MENTIONS
    entaug.convert(path, tmp_path / "b.jsonl", read_options={"names": names})
    assert json.loads((tmp_path / "b.jsonl").read_text())["tags"] == [1, 2, 0, 0, 3, 0]
    ignored = lines(tmp_path / "c.jsonl", {"tokens": TOKENS, "tags": [1, 2, 0, 0, -100, 0]})
    with pytest.raises(InputError, match="a tag -100 in 'tags' that has no name"):
        read(ignored, names=names)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ner_tags": TAGS[:3]}, "3 tags for 6 tokens in 'ner_tags'"),
        ({"ner_tags": [*TAGS[:5], -100]}, "'ner_tags' may hold labels, but not in a form"),
        ({"labels": ["news"]}, "'labels' may hold labels, but not in a form"),
        ({"spans": {"people": [0, 2]}, "tags": ["NNP"] * 6}, "'spans', 'tags' may hold labels"),
    ],
)
def test_labels_that_are_not_read_are_named(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    path = lines(tmp_path / "a.jsonl", {"tokens": TOKENS, **fields})
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert caught.value.line == 1
    assert caught.value.remedy


def test_labels_after_the_sample_of_another_layout_are_not_passed_over(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"tokens": TOKENS, "entities": OFFSETS}, {"tokens": TOKENS, "ner_tags": TAGS})
    with pytest.raises(InputError, match=r"a\.jsonl:2: 'ner_tags' may hold labels"):
        read(path)
    path = lines(tmp_path / "b.jsonl", {"tokens": TOKENS, "ner_tags": TAGS}, {"tokens": TOKENS, "entities": OFFSETS})
    assert [sentence.mentions for sentence in read(path)[0]] == [MENTIONS, MENTIONS]


def test_fields_beside_entities_stay_fields(tmp_path: Path) -> None:
    fields = {"tags": TAGS, "spans": OFFSETS, "ner_tags": [1, 0], "labels": ["x"], "annotations": {"a": [1]}}
    path = lines(tmp_path / "a.jsonl", {"tokens": TOKENS, "entities": [], **fields})
    reading = ReadReport()
    [sentence] = open_file(path).sentences(reading)
    assert (sentence.mentions, dict(sentence.meta)) == ((), fields)
    assert list(reading.notes) == [NO_MENTION]
    entaug.write([sentence], tmp_path / "b.jsonl")
    assert read(tmp_path / "b.jsonl")[0] == [sentence]
    [named], _ = read(path, tag_field="tags")
    assert named.mentions == MENTIONS


def test_strings_of_tokens_are_columns(tmp_path: Path) -> None:
    pos = ["NNP", "NNP", "VBD", "TO", "NNP", "."]
    path = lines(tmp_path / "a.jsonl", {"tokens": TOKENS, "pos_tags": pos, "ner_tags": TAGS})
    [sentence], _ = read(path)
    assert dict(sentence.columns) == {"pos_tags": tuple(pos)}
    entaug.convert(path, tmp_path / "b.jsonl")
    assert json.loads((tmp_path / "b.jsonl").read_text()) == json.loads(path.read_text())


def test_nested_mentions_do_not_become_tags(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"tokens": TOKENS, "ner_tags": TAGS})
    nested = Sentence(TOKENS, [*MENTIONS, Mention("FIRST", [(0, 1)])])
    with pytest.raises(LossError, match="mentions='entities'"):
        entaug.write([nested], tmp_path / "b.jsonl", like=path)
    entaug.write([nested], tmp_path / "b.jsonl", like=path, mentions="entities")
    assert read(tmp_path / "b.jsonl")[0] == [nested]


def test_where_ends_may_be_last_tokens_this_is_said(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"tokens": TOKENS, "spans": [{"start": 0, "end": 1, "label": "PER"}]})
    [sentence], [note] = read(path)
    assert sentence.mentions == (Mention("PER", [(0, 1)]),)
    assert "'spans'" in note
    assert "`ends='inclusive'`" in note
    [sentence], notes = read(path, ends="inclusive")
    assert (sentence.mentions, notes) == (MENTIONS[:1], [])


def test_ends_of_mentions_with_gaps_show_whether_they_are_last_tokens(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    long, short = ([Sentence(TOKENS, [Mention("X", [(0, end), (3, 5)])])] for end in (2, 1))
    entaug.write(short, path, ends="inclusive", entity_field="mentions")
    assert read(path) == (short, [])
    entaug.write(long, path, ends="inclusive", entity_field="mentions")
    assert ["`ends='inclusive'`" in note for note in read(path)[1]] == [True]
    assert read(path, ends="inclusive") == (long, [])
    # In the fields of entaug's own JSON lines ends are exclusive, unless it is said.
    entaug.write(short, path, ends="inclusive")
    with pytest.raises(InputError, match=r"span \(0, 0\) .* or pass `ends='inclusive'` if"):
        read(path)
    assert read(path, ends="inclusive") == (short, [])


def test_integers_in_tables_are_not_passed_over_either(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for fields, message in (({"tags": [[1, 0]]}, "in 'tags' have no names"), ({"labels": [["news"]]}, "'labels' may")):
        parquet.write_table(pa.table({"tokens": [["Mira", "ran"]], **fields}), tmp_path / "a.parquet")
        with pytest.raises(InputError, match=message):
            read(tmp_path / "a.parquet")
    parquet.write_table(pa.table({"tokens": [["Mira", "ran"]]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet")[1] == [NO_LABELS, NO_MENTION]


def test_tags_become_those_of_a_table(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = lines(tmp_path / "a.jsonl", {"tokens": TOKENS, "ner_tags": TAGS})
    entaug.convert(path, tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet")[0][0].mentions == MENTIONS


# ------------------------------------------------------------------------------------------------ text, parts of a file

TEXT_RECORDS: dict[str, dict[str, Any]] = {
    "lists": {"text": TEXT, "entities": TRIPLES},
    "objects": {"text": TEXT, "entities": [dict(zip(("start", "end", "label"), t, strict=True)) for t in TRIPLES]},
    "spans": {"text": TEXT, "spans": TRIPLES},
    "annotations": {"text": TEXT, "annotations": [{"start": s, "end": e, "type": label} for s, e, label in TRIPLES]},
    "tokens, too": {
        "text": TEXT,
        "tokens": TOKENS,
        "entities": [{"start": s, "end": e, "label": label} for s, e, label in TRIPLES],
    },
}


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("name", TEXT_RECORDS)
def test_texts_with_labels_by_characters(tmp_path: Path, name: str, as_array: bool) -> None:
    record = TEXT_RECORDS[name]
    path = whole(tmp_path / "a.json", [record]) if as_array else lines(tmp_path / "a.jsonl", record)
    [sentence], notes = read(path)
    assert (sentence.tokens, sentence.mentions, notes) == (tuple(TOKENS), MENTIONS, [])
    entaug.convert(path, tmp_path / "b.jsonl")
    assert read(tmp_path / "b.jsonl")[0] == [sentence]


def test_our_lines_with_text_are_not_taken_for_labels_by_characters(tmp_path: Path) -> None:
    sentence = Sentence(["A", "b"], [Mention("X", [(0, 2)])], spaces=(" ", ""))
    entaug.write([sentence], tmp_path / "a.jsonl")
    assert open_file(tmp_path / "a.jsonl").format.name == "jsonl"
    assert read(tmp_path / "a.jsonl")[0] == [sentence]


@pytest.mark.parametrize(
    "records",
    [[LAYOUTS["ner_tags"]], [TEXT_RECORDS["lists"]], [[TEXT, {"entities": TRIPLES}]]],
    ids=["tokens", "text", "tuples"],
)
def test_a_part_of_a_file_with_several_is_chosen(tmp_path: Path, records: list[Any]) -> None:
    path = whole(tmp_path / "a.json", {"train": records, "dev": [*records, *records]})
    with pytest.raises(InputError, match=r"holds several parts: train, dev; .*`split_name='train'`"):
        read(path)
    assert [len(read(path, split_name=name)[0]) for name in ("train", "dev")] == [1, 2]
    with pytest.raises(InputError, match="holds no part 'test': train, dev"):
        read(path, split_name="test")
    only = whole(tmp_path / "b.json", {"classes": ["PER", "LOC"], "annotations": records})
    assert read(only)[0][0].mentions == MENTIONS


def test_a_long_file_of_parts_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("entaug.formats.records._PEEK_SIZES", (200,))
    path = whole(tmp_path / "a.json", {"train": [LAYOUTS["ner_tags"]] * 10, "dev": []})
    assert len(read(path)[0]) == 10


def test_prodigy_names_the_field_that_it_does_not_read(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", TEXT_RECORDS["objects"])
    with pytest.raises(InputError, match=r"'entities' may hold labels.*`format='prodigy'`"):
        read(path, format="prodigy")


# ----------------------------------------------------------------------------------------------------- spaCy


def docbin(path: Path, groups: dict[str, list[tuple[int, int, str]]], ents: list[Any] | None = None) -> Path:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc, DocBin, Span

    doc = Doc(spacy.blank("en").vocab, words=TOKENS)
    for name, spans in groups.items():
        doc.spans[name] = [Span(doc, *span) for span in spans]
    if ents is not None:
        doc.ents = [Span(doc, *span) for span in ents]
    DocBin(docs=[doc]).to_disk(path)
    return path


PEOPLE, PARTS = [(0, 2, "PER")], [(0, 1, "FIRST")]


def test_span_groups_of_any_name(tmp_path: Path) -> None:
    path = docbin(tmp_path / "a.spacy", {"people": PEOPLE})
    assert read(path)[0][0].mentions == MENTIONS[:1]
    path = docbin(tmp_path / "a.spacy", {"people": PEOPLE, "parts": PARTS})
    with pytest.raises(InputError, match=r"several groups of spans: 'parts', 'people'; .*`spans_key="):
        read(path)
    [sentence], [note] = read(path, spans_key="people")
    assert sentence.mentions == MENTIONS[:1]
    assert "spans 'parts' left out" in note
    with pytest.raises(InputError, match="no group of spans 'persons', but 'parts', 'people'"):
        read(path, spans_key="persons")
    path = docbin(tmp_path / "a.spacy", {"people": PEOPLE}, [(4, 5, "LOC")])
    [sentence], [note] = read(path)
    assert sentence.mentions == MENTIONS[1:]
    assert "spans 'people' left out" in note


def test_documents_without_annotation_are_told_from_those_without_entities(tmp_path: Path) -> None:
    assert read(docbin(tmp_path / "a.spacy", {}))[1] == [NO_LABELS, NO_MENTION]
    assert read(docbin(tmp_path / "a.spacy", {}, []))[1] == [NO_MENTION]
    tuples = lines(tmp_path / "a.jsonl", [TEXT, {"cats": {"a": 1.0}}], [TEXT, {"entities": []}])
    assert read(tuples)[1] == [NO_LABELS, NO_MENTION]


# ----------------------------------------------------------------------------------------------- notes reach the user


@pytest.fixture
def partly_labelled(tmp_path: Path) -> Path:
    """Sentences of which one has no labels given."""
    texts = ("Mira ran home .", "Jon sat there .")
    records = [{"tokens": text.split(), "ner_tags": ["B-PER", "O", "O", "O"]} for text in texts]
    return lines(tmp_path / "partly.jsonl", *records, {"tokens": ["It", "rained", "."]})


COMMANDS = {
    "check": "check FILE",
    "convert": "convert FILE out.conll",
    "augment": "augment FILE -m sis -o out.jsonl",
    "augment in parts": "augment FILE -m sis -o out.jsonl --jobs 2",
    "evaluate": "evaluate FILE FILE",
    "subset": "subset FILE --sizes 1 -o out",
    "quality": "quality NEW --gold FILE",
    "report": "report NEW --gold FILE -o out.html",
    "filter": "filter NEW --gold FILE --filter duplicates -o out.jsonl",
    "rate": "rate NEW --gold FILE -o out.html",
    "train": "train FILE -o out --epochs 1",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_print_what_was_assumed_in_reading(
    partly_labelled: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    augment_file(partly_labelled, "new.jsonl", entaug.create_augmenter("mr", p=1.0), only_new=True)
    words = COMMANDS[name].replace("FILE", partly_labelled.name).replace("NEW", "new.jsonl").split()
    assert main(words) == 0, capsys.readouterr().err
    assert capsys.readouterr().err.count(NO_LABELS) == 1


def test_python_warns_and_keeps_the_notes(partly_labelled: Path) -> None:
    with pytest.warns(InputWarning, match=f"partly.jsonl: {NO_LABELS}") as caught:
        corpus = entaug.read(partly_labelled)
    assert caught[0].filename == __file__
    assert (corpus.notes, corpus[:1].notes) == ((NO_LABELS,), (NO_LABELS,))
    with pytest.warns(InputWarning, match=NO_LABELS):
        assert [one.notes for one in read_each([partly_labelled])] == [(NO_LABELS,)]
    with pytest.warns(InputWarning, match=NO_LABELS):
        assert len(list(entaug.stream(partly_labelled))) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert entaug.check(partly_labelled).notes == {NO_LABELS: 1}


def test_datasets_warn_too() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"tokens": [["Mira"], ["Jon"]], "ner_tags": [["B-PER"], None]})
    with pytest.warns(InputWarning, match=NO_LABELS):
        assert entaug.from_datasets(dataset).notes == (NO_LABELS,)


# ------------------------------------------------------------------------------------------- not a single mention


@pytest.mark.filterwarnings("ignore::entaug.errors.InputWarning")
def test_there_is_no_score_without_a_gold_mention(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"tokens": TOKENS, "entities": []})
    with pytest.raises(InputError, match=r"a\.jsonl: has no mentions to score predictions by; check"):
        entaug.evaluate(path, path)


def test_a_corpus_without_a_mention_is_named(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"tokens": TOKENS, "entities": []})
    assert entaug.check(path).notes == {NO_MENTION: 1}
    for jobs in (1, 2):
        summary = augment_file(path, tmp_path / "b.jsonl", entaug.create_augmenter("sis"), force=True, jobs=jobs)
        assert NO_MENTION in summary.notes
    assert entaug.convert(path, tmp_path / "b.conll").notes == {NO_MENTION: 1}
    with pytest.warns(InputWarning, match=NO_MENTION):
        entaug.read(path)


def test_training_without_a_mention_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lines(tmp_path / "a.jsonl", {"tokens": TOKENS, "entities": []})
    assert main(["train", str(path), "-o", str(tmp_path / "out")]) == 2
    assert "a.jsonl: has no mentions to learn from" in capsys.readouterr().err
