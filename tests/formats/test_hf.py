"""Parquet and folders of Hugging Face: by hand, as the library sees them, for any sentence, damaged, real corpora."""

from __future__ import annotations

import datetime as dt
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug import Mention, Sentence
from entaug.commands.main import main
from entaug.core.data import split_fields
from entaug.errors import InputError, LossError, MissingExtraError, OutputError, ParameterError
from entaug.formats.base import ENTITY_FIELDS, NO_LABELS, NO_MENTION, ReadReport
from entaug.formats.files import open_file
from entaug.formats.parquet import JSON_COLUMN, DatasetFolder, HfDialect, Parquet
from entaug.methods.augment import augment_file
from helpers.command_line import fails
from helpers.strategies import TEXT, WORDS, sentences

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

GOLD = [
    Sentence(
        ["Ada", "Byron", "sang", "."],
        [Mention("PER", [(0, 2)])],
        "s1",
        {"year": 1842, "source": ["a", "b", "c"], "odd": {"a": None}},
        {"pos_tags": ("NNP", "NNP", "VBD", ".")},
        (" ", "  ", "", "\n"),
    ),
    Sentence(
        ["Bo", "left", "Rome"],
        [Mention("LOC", [(2, 3)]), Mention("PER", [(0, 1)])],
        "s2",
        **split_fields({"odd": 5, "entaug": {"method": "mr", "copy": 1}, ENTITY_FIELDS: [{"sure": True}, {}]}),
    ),
    Sentence(["a", " ", "b"], (), None, {"year": 1900}, {}, (" ", "", "")),
]
NESTED = Sentence(["New", "York", "Times"], [Mention("ORG", [(0, 3)]), Mention("LOC", [(0, 2)])], "n1")
GAP = Sentence(["a", "b", "c"], [Mention("X", [(0, 1), (2, 3)])], "g1")
NAMES = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


def through(gold: list[Sentence], path: Path, **options: Any) -> list[Sentence]:
    if path.is_dir():
        shutil.rmtree(path)
    assert entaug.write(gold, path, **options) == len(gold)
    return list(entaug.read(path))


def put(path: Path, columns: dict[str, Any], features: dict[str, Any] | None = None) -> Path:
    table = pa.table(columns)
    if features:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    parquet.write_table(table, path)
    return path


def test_sentences_come_back_from_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    assert through(GOLD, path) == GOLD
    table = parquet.read_table(path)
    assert table.column_names == ["id", "tokens", "ner_tags", "text", "pos_tags", "year", "source", JSON_COLUMN]
    assert table["ner_tags"].to_pylist() == [[3, 4, 0, 0], [3, 0, 1], [0, 0, 0]]
    assert json.loads(table[JSON_COLUMN][1].as_py())["entaug"] == {"method": "mr", "copy": 1}
    opened = open_file(path)
    assert opened.dialect.describe() == "table, tokens in 'tokens', IOB2 tags in 'ner_tags'"
    assert opened.dialect.names == tuple(NAMES)  # type: ignore[attr-defined]
    before = path.read_bytes()
    entaug.write(GOLD, path)
    assert path.read_bytes() == before
    zipped = tmp_path / "a.parquet.gz"
    assert through(GOLD, zipped) == GOLD


def test_nested_and_discontinuous_mentions_are_entities(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    assert through([NESTED, GAP, *GOLD], path) == [NESTED, GAP, *GOLD]
    assert parquet.read_table(path)["entities"][1].as_py() == [{"label": "X", "spans": [[0, 1], [2, 3]]}]
    assert open_file(path).dialect.describe() == "table, tokens in 'tokens', mentions in 'entities'"
    with pytest.raises(LossError, match=r"sentence n1: .*write entities"):
        entaug.write([NESTED], path, mentions="tags")
    assert [len(s.mentions) for s in through([NESTED, GAP], path, overlap="outermost")] == [1, 0]
    assert parquet.read_table(path).column_names == ["id", "tokens", "ner_tags"]
    assert through(GOLD, path, mentions="entities") == GOLD
    for scheme in ("IOB1", "IOBES", "BILOU"):
        assert through(GOLD, path, scheme=scheme) == GOLD


def test_names_stay_what_they_are(tmp_path: Path) -> None:
    train, dev = tmp_path / "train.parquet", tmp_path / "dev.parquet"
    entaug.write(GOLD, train)
    entaug.write([GAP.with_(mentions=(Mention("PER", [(1, 2)]),))], dev, like=train)
    assert parquet.read_table(dev)["ner_tags"].to_pylist() == [[0, 3, 0]]
    entaug.write([GAP.with_(mentions=(Mention("A", [(1, 2)]),))], dev, like=train)
    assert parquet.read_table(dev)["ner_tags"].to_pylist() == [[0, 5, 0]]
    entaug.write(GOLD, dev, names="O,B-PER,I-PER")
    assert open_file(dev).dialect.names == ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")  # type: ignore[attr-defined]


def test_columns_as_they_are_in_the_wild(tmp_path: Path) -> None:
    tokens = [["Ada", "sang"], ["Oh"]]
    label = {"feature": {"names": ["O", "B-P", "I-P"], "_type": "ClassLabel"}, "_type": "Sequence"}
    text = {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"}
    wanted = [(Mention("P", [(0, 1)]),), ()]
    path = tmp_path / "a.parquet"
    for named in ("ner_tags", "ner", "labels", "tags", "mine"):
        for words in ("tokens", "words", "sentence"):
            put(path, {words: tokens, named: [[1, 0], [0]]}, {words: text, named: label})
            found = list(entaug.read(path))
            assert [s.mentions for s in found] == wanted, (named, words)
            put(path, {words: tokens, named: [["B-P", "O"], ["O"]]})
            assert [s.mentions for s in entaug.read(path)] == wanted, (named, words)
    # Parts of speech are no tags; numbers with names go on to have them.
    pos = {"feature": {"names": ["NN", "VB"], "_type": "ClassLabel"}, "_type": "List"}
    whole = {"names": ["neg", "pos"], "_type": "ClassLabel"}
    columns = {
        "tokens": tokens,
        "tags": [[0, 1], [0]],
        "ner_tags": [[1, 0], [0]],
        "label": [1, 0],
        "x": [{"a": 1}, None],
    }
    put(path, columns, {"tags": pos, "ner_tags": label, "label": whole})
    one, two = entaug.read(path)
    assert one.columns == {"tags": ("NN", "VB")}
    assert one.fields == {"label": "pos", "x": {"a": 1}}
    assert two.fields == {"label": "neg"}
    again = tmp_path / "b.parquet"
    entaug.write([one, two], again, like=path)
    assert list(entaug.read(again)) == [one, two]
    features = json.loads(parquet.read_schema(again).metadata[b"huggingface"])["info"]["features"]
    assert features["tags"]["feature"] == features["label"] == {"dtype": "string", "_type": "Value"}
    assert "x" not in features, "objects are kept as JSON"
    # Entities by start and end, and as older versions made structures of lists.
    put(path, {"tokens": tokens, "entities": [[{"start": 0, "end": 1, "type": "P", "sure": 1}], []]})
    assert [s.mentions for s in entaug.read(path)] == wanted
    assert entaug.read(path)[0].fields == {ENTITY_FIELDS: [{"sure": 1}]}
    put(path, {"tokens": tokens, "mentions": [{"start": [0], "end": [1], "label": ["P"]}, None]})
    assert [s.mentions for s in entaug.read(path)] == wanted
    kind = pa.large_list(pa.dictionary(pa.int32(), pa.large_string()))
    put(path, {"tokens": pa.array(tokens, kind), "ner": pa.array([["B-P", "O"], ["O"]], kind)})
    assert [s.mentions for s in entaug.read(path)] == wanted


def test_what_is_no_json(tmp_path: Path) -> None:
    day = dt.date(2020, 1, 2)
    path = put(tmp_path / "a.parquet", {"tokens": [["a"]], "day": [day], "raw": [b"x"], "n": [float("nan")], "id": [7]})
    reading = ReadReport()
    [s] = open_file(path).sentences(reading)
    assert (s.id, s.fields) == ("7", {"day": "2020-01-02"})
    assert reading.notes == {"column 'raw' of binary left out": 1, NO_LABELS: 1, NO_MENTION: 1}


def test_columns_that_cannot_be_found(tmp_path: Path) -> None:
    path = put(tmp_path / "a.parquet", {"a": [["x"]], "b": [["y"]], "c": [1]})
    with pytest.raises(InputError, match="no column of tokens is known; name it: token_field; several could be: a, b"):
        entaug.read(path)
    assert entaug.read(path, token_field="b")[0].tokens == ("y",)
    with pytest.raises(InputError, match="no column 'z'; it has: a, b, c"):
        entaug.read(path, token_field="z")
    with pytest.raises(InputError, match="'c' holds no lists of strings"):
        entaug.read(path, token_field="c")
    with pytest.raises(ParameterError, match="token_field must be a string"):
        entaug.read(path, token_field=1)
    with pytest.raises(ParameterError, match="mentions must be one of"):
        entaug.read(path, mentions="both")
    path = put(tmp_path / "b.parquet", {"tokens": [["x"]], "ner_tags": [[1]]})
    with pytest.raises(
        InputError, match=r"b\.parquet: row 1: the numbers in 'ner_tags' have no names; give them in order"
    ):
        entaug.read(path)
    assert entaug.read(path, names="O,B-X")[0].mentions == (Mention("X", [(0, 1)]),)
    path = put(tmp_path / "c.parquet", {"c": [1]})
    with pytest.raises(InputError, match="it has: c"):
        entaug.read(path)
    table = pa.Table.from_arrays([pa.array([["x"]])] * 2, names=["tokens", "tokens"])
    parquet.write_table(table, path)
    with pytest.raises(InputError, match="two columns of one name"):
        entaug.read(path)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"tokens": [["a"]], "ner_tags": [["B-X", "O"]]}, "row 1: 2 tags for 1 tokens"),
    ({"tokens": [["a"], ["a", "b"]], "ner_tags": [["B-X"], ["O", "I-X"]]}, "row 2: token 2: I-X after O"),
    ({"tokens": [["a", None]]}, "row 1: a token must be a string"),
    ({"tokens": [["a"], []]}, "row 2: a sentence needs at least one token"),
    ({"tokens": [["a"], None]}, "row 2: no list 'tokens'"),
    ({"tokens": [["a"], [""]]}, "row 2: token 1 is empty"),
    ({"tokens": [["a"], ["b"]], "id": ["x", "x"]}, "row 2: id 'x' is that of line 1 too"),
    ({"tokens": [["a"]], "entities": [[{"start": 0, "end": 9, "label": "X"}]]}, "out of range"),
    ({"tokens": [["a"]], "entities": [[{"start": -1, "end": 1, "label": "X"}]]}, "negative"),
    ({"tokens": [["a"]], "entities": [[{"start": 0, "end": None, "label": "X"}]]}, "without start and end"),
    ({"tokens": [["a"]], "entities": [[{"start": 0, "end": 1, "label": 5}]]}, "without a type"),
    ({"tokens": [["a"]], "entities": [[{"spans": [[True, False]], "label": "X"}]]}, "two integers"),
    ({"tokens": [["a"]], "entities": [[{"spans": [[0]], "label": "X"}]]}, "must be a pair"),
    ({"tokens": [["a"]], "entities": [[None]], "x": [5]}, "column|none"),
]


@pytest.mark.parametrize(("columns", "message"), FAULTS)
def test_faults_of_rows(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    if columns.get("entities") == [[None]]:
        columns = {
            **columns,
            "entities": pa.array(
                [[None]], pa.list_(pa.struct([("label", pa.string()), ("spans", pa.list_(pa.list_(pa.int64())))]))
            ),
        }
    path = put(tmp_path / "bad.parquet", columns)
    with pytest.raises(InputError, match=message) as told:
        entaug.read(path)
    assert str(told.value).startswith(str(path))
    found: list[InputError] = []
    kept = list(open_file(path).sentences(ReadReport(on_fault=found.append)))
    assert len(kept) + len(found) == len(columns["tokens"])


def test_files_of_several_row_groups_are_streamed(tmp_path: Path) -> None:
    gold = [Sentence([f"w{i}", "x"], [Mention("X", [(i % 2, i % 2 + 1)])] * (i % 3 > 0), str(i)) for i in range(25_000)]
    path = tmp_path / "a.parquet"
    assert through(gold, path) == gold
    assert parquet.ParquetFile(path).num_row_groups == 3
    assert next(iter(entaug.stream(path))) == gold[0]


def damaged(raw: bytes, path: Path, read: Path, tries: int) -> int:
    random_ = random.Random(1)
    found = 0
    for _ in range(tries):
        changed = bytearray(raw)
        for _ in range(random_.randint(1, 6)):
            changed[random_.randrange(len(changed))] = random_.randrange(256)
        if random_.random() < 0.2:
            del changed[random_.randrange(len(changed)) :]
        path.write_bytes(bytes(changed))
        try:
            list(entaug.read(read))
            list(open_file(read).sentences(ReadReport(on_fault=lambda _: None)))
        except InputError as error:
            assert read.name in str(error)  # noqa: PT017
            found += 1
    return found


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for data in (b"", b"PAR1", b"PAR1" * 9, b"nothing"):
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"a\.parquet: damaged"):
            entaug.read(path)
    entaug.write([*GOLD, NESTED], path)
    assert damaged(path.read_bytes(), path, path, 600) > 100
    entaug.write(GOLD, path)
    assert damaged(path.read_bytes(), path, path, 600) > 100


def test_folders(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    assert through(GOLD, path, format="datasets") == GOLD
    assert open_file(path).format.name == "datasets"
    assert sorted(one.name for one in path.iterdir()) == [
        "data-00000-of-00001.arrow",
        "dataset_info.json",
        "state.json",
    ]
    with pytest.raises(OutputError, match="holds something"):
        entaug.write(GOLD, path, "datasets")
    for file in sorted(path.iterdir()):
        raw = file.read_bytes()
        damaged(raw, file, path, 300)
        for data in (b"", b"{}", b"[" * 9999, b'{"_data_files": [{"filename": "../x"}]}'):
            file.write_bytes(data)
            if file.name != "dataset_info.json":
                with pytest.raises(InputError, match="folder"):
                    entaug.read(path)
        file.write_bytes(raw)
    assert list(entaug.read(path)) == GOLD
    (path / "data-00000-of-00001.arrow").unlink()
    with pytest.raises(InputError, match="folder"):
        entaug.read(path)


def test_formats_are_told_apart(tmp_path: Path, example: Path) -> None:
    entaug.write(GOLD, tmp_path / "a.parquet")
    (tmp_path / "a.parquet").rename(tmp_path / "noname")
    assert open_file(tmp_path / "noname").format.name == "parquet"
    for file in (*example.iterdir(), tmp_path):
        assert not Parquet().recognises(file)
        assert not DatasetFolder().recognises(file)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    for odd in (Sentence(["\ud800"]), Sentence(["a"], meta={"x": {1, 2}}), Sentence(["a"], meta={"\ud800": 1})):
        with pytest.raises(LossError, match="cannot be written"):
            entaug.write([odd], tmp_path / "a.parquet")
    held = Sentence(
        ["a"], **split_fields({"x": 2**70, "y": "\ud800", "z": [1, "a"], "tokens": 1, "text": {"a": 1}, "c": {}})
    )
    assert through([held], tmp_path / "a.parquet") == [held]
    taken = Sentence(["a"], columns={"tokens": ("x",), "id": ("y",)}, id="1", **split_fields({"text": "other"}))
    assert through([taken, GOLD[0]], tmp_path / "a.parquet") == [taken, GOLD[0]]


@given(st.lists(sentences(WORDS | TEXT), min_size=1, max_size=4), st.booleans())
@settings(max_examples=examples(100))
def test_any_sentence_comes_back(tmp_path: Path, gold: list[Sentence], as_folder: bool) -> None:
    if as_folder:
        assert through(gold, tmp_path / "any", format="datasets") == gold
    else:
        assert through(gold, tmp_path / "any.parquet") == gold


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@example(fields=[{"a": []}, {"a": [""]}])  # an empty list is no column of one token
@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "b", "text", "ner", "entities", "entaug"]), JSON_VALUES), max_size=4)
)
@settings(max_examples=examples(100))
def test_any_field_comes_back(tmp_path: Path, fields: list[dict[str, Any]]) -> None:
    # A field that says nothing is one that is not there.
    gold = [
        Sentence(["q!"], **split_fields({k: v for k, v in one.items() if v is not None and v != "q!"}))
        for one in fields
    ]
    if gold:
        assert through(gold, tmp_path / "any.parquet") == gold


# -------------------------------------------------------------------------------------------------- the library itself


@pytest.fixture
def hf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    found = pytest.importorskip("datasets")
    found.disable_progress_bars()
    return found


def test_the_library_loads_our_parquet(tmp_path: Path, hf: Any) -> None:
    path = tmp_path / "a.parquet"
    entaug.write(GOLD, path)
    made = hf.load_dataset("parquet", data_files=str(path), cache_dir=str(tmp_path / "cache"), split="train")
    assert made.features["tokens"] == hf.List(hf.Value("string"))
    assert made.features["ner_tags"] == hf.List(hf.ClassLabel(names=NAMES))
    assert made.features["pos_tags"] == hf.List(hf.Value("string"))
    assert made.features["year"] == hf.Value("int64")
    assert made[0]["ner_tags"] == [3, 4, 0, 0]
    assert list(entaug.from_datasets(made)) == GOLD
    entaug.write([NESTED, GAP], path)
    made = hf.load_dataset("parquet", data_files=str(path), cache_dir=str(tmp_path / "cache"), split="train")
    span = hf.List(hf.List(hf.Value("int64")))
    assert made.features["entities"] == hf.List({"label": hf.Value("string"), "spans": span})
    assert list(entaug.from_datasets(made)) == [NESTED, GAP]
    # And we what it writes, of several row groups.
    out = tmp_path / "b.parquet"
    made.to_parquet(str(out), batch_size=1)
    assert list(entaug.read(out)) == [NESTED, GAP]


def test_a_folder_of_several_parts_names_the_option_of_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("train", "validation", "test"):
        entaug.write(GOLD, parts / name, "datasets", split_name=name)
    (parts / "dataset_dict.json").write_text('{"splits": ["train", "validation", "test"]}')
    said = fails(capsys, 2, "check", str(parts))
    assert "holds several parts: train, validation, test; choose one, such as --layout split_name=train" in said
    assert main(["check", str(parts), "--layout", "split_name=validation"]) == 0
    (parts / "dataset_dict.json").write_text('{"splits": []}')
    capsys.readouterr()
    assert "dataset_dict.json: names no part; fetch it anew" in fails(capsys, 2, "check", str(parts))


def test_the_library_loads_our_folder_and_we_its(tmp_path: Path, hf: Any) -> None:
    entaug.write(GOLD, tmp_path / "ours", "datasets", split_name="dev")
    made = hf.load_from_disk(str(tmp_path / "ours"))
    assert made.features["ner_tags"].feature.names == NAMES
    assert str(made.split) == "dev"
    assert list(entaug.from_datasets(made)) == GOLD
    both = hf.concatenate_datasets([made] * 2).select([1, 0])
    both.save_to_disk(str(tmp_path / "theirs"), num_shards=2)
    assert list(entaug.read(tmp_path / "theirs")) == [GOLD[1], GOLD[0]]
    parts = hf.DatasetDict({"train": made, "dev": made.select([1])})
    parts.save_to_disk(str(tmp_path / "parts"))
    with pytest.raises(InputError, match="holds several parts: train, dev; choose one, such as `split_name='train'`"):
        entaug.read(tmp_path / "parts")
    assert list(entaug.read(tmp_path / "parts", split_name="dev")) == [GOLD[1]]
    with pytest.raises(InputError, match="no part 'test'"):
        entaug.read(tmp_path / "parts", split_name="test")


def test_datasets_in_memory(hf: Any) -> None:
    made = entaug.to_datasets(GOLD)
    assert isinstance(made, hf.Dataset)
    assert list(entaug.from_datasets(made)) == GOLD
    assert list(entaug.from_datasets(made.select([2, 0]))) == [GOLD[2], GOLD[0]]
    assert list(entaug.from_datasets(made.to_iterable_dataset())) == GOLD
    parts = entaug.to_datasets({"train": GOLD, "dev": iter(GOLD[1:2]), "test": []})
    assert isinstance(parts, hf.DatasetDict)
    assert parts["train"].features == parts["dev"].features == parts["test"].features
    assert str(parts["dev"].split) == "dev"
    back = entaug.from_datasets({name: parts[name] for name in ("train", "dev")})
    assert list(back["dev"]) == GOLD[1:2]
    assert entaug.to_datasets([NESTED])[0]["entities"][1]["label"] == "ORG"
    plain = hf.Dataset.from_dict({"words": [["Ada", "sang"]], "labels": [["B-PER", "O"]]})
    assert entaug.from_datasets(plain)[0].mentions == (Mention("PER", [(0, 1)]),)
    with pytest.raises(ParameterError, match="a dataset is wanted, not list"):
        entaug.from_datasets([1])
    with pytest.raises(InputError, match="no sentence in it"):
        entaug.from_datasets(parts["test"])
    with pytest.raises(LossError):
        entaug.to_datasets([NESTED], mentions="tags")
    new = list(entaug.create_augmenter("mr", p=1.0, seed=3).fit(GOLD).augment(GOLD))
    assert list(entaug.from_datasets(entaug.to_datasets(new))) == new


def test_what_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"entaug\[datasets\]"):
        entaug.to_datasets(GOLD)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"entaug\[datasets\]"):
        entaug.write(GOLD, tmp_path / "a.parquet")


def test_files_are_converted_and_augmented(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    entaug.write([NESTED, *GOLD[:2]], tmp_path / "a.jsonl")
    for before, after, to in (
        ("a.jsonl", "b.spacy", None),
        ("b.spacy", "c.parquet", None),
        ("c.parquet", "d", "datasets"),
        ("d", "e.json", "spacy-json"),
        ("e.json", "f.jsonl", None),
    ):
        assert entaug.convert(tmp_path / before, tmp_path / after, to_format=to).counts.sentences == 3
        found = list(entaug.read(tmp_path / after))
        assert [(s.tokens, s.mentions, s.id) for s in found] == [
            (s.tokens, s.mentions, s.id) for s in (NESTED, *GOLD[:2])
        ]
    for name in ("b.spacy", "c.parquet", "d", "e.json"):
        out = tmp_path / f"new-{name}"
        augment_file(tmp_path / name, out, entaug.create_augmenter("lwtr", p=1.0, seed=1))
        assert open_file(out).format.name == open_file(tmp_path / name).format.name
        found = list(entaug.read(out))
        assert len(found) > 3
        assert found[:3] == list(entaug.read(tmp_path / name))
        assert all(s.provenance is not None for s in found[3:])


def test_describes_itself() -> None:
    assert "IOB2 tags in 'ner_tags', or mentions in 'entities'" in HfDialect().describe()


@pytest.mark.corpora
@pytest.mark.parametrize(
    "name",
    [
        "wnut17/wnut17train.conll",
        "uner/en_ewt/en_ewt-ud-dev.iob2",
        "genia/nested-jsonl/dev.jsonl",
        "genia/discontinuous-jsonl/dev.jsonl",
    ],
)
def test_real_corpora_come_back(corpora: Path, tmp_path: Path, hf: Any, name: str) -> None:
    gold = list(entaug.read(corpora / name))
    assert through(gold, tmp_path / "a.parquet") == gold
    assert through(gold, tmp_path / "folder", format="datasets") == gold
    assert list(entaug.from_datasets(hf.load_from_disk(str(tmp_path / "folder")))) == gold
