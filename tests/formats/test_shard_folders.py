"""Folders of shards: numbered files that are one corpus together."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug.commands.main import main
from entaug.core.data import Mention, Sentence
from entaug.errors import InputError, OutputError, ParameterError
from entaug.formats import open_file

GOLD = list(entaug.read(EXAMPLE / "train.conll"))
RICH = [
    Sentence(["Ada", "left", "Rome"], [Mention("E", [(0, 1), (2, 3)]), Mention("PER", [(0, 1)])], "a", {"n": 2}),
    *GOLD[:4],
]


def lines(*tokens: str) -> str:
    return "".join(json.dumps({"tokens": [token], "entities": []}) + "\n" for token in tokens)


def words(path: Path, **options: Any) -> list[str]:
    return [sentence.tokens[0] for sentence in entaug.read(path, **options)]


@pytest.mark.parametrize("shard_format", ["jsonl", "parquet"])
def test_what_is_written_is_read_back(tmp_path: Path, shard_format: str) -> None:
    if shard_format == "parquet":
        pytest.importorskip("pyarrow")
    ending = {"jsonl": "jsonl.gz", "parquet": "parquet"}[shard_format]
    for gold, size in ((GOLD, 30), (RICH, 2), (RICH, 5)):
        path = tmp_path / f"{len(gold)}-{size}"
        options: dict[str, Any] = {"shard_format": shard_format, "shard_size": size}
        assert entaug.write(gold, path, "shards", **options) == len(gold)
        n = -(-len(gold) // size)
        wanted = [f"part-{number:05}-of-{n:05}.{ending}" for number in range(n)]
        assert sorted(file.name for file in path.iterdir()) == wanted
        assert open_file(path).format.name == "shards"
        assert [s.to_dict() for s in entaug.read(path)] == [s.to_dict() for s in gold]
    again = tmp_path / "again"
    entaug.write(RICH, again, like=path, shard_size=5)
    assert [file.read_bytes() for file in again.iterdir()] == [file.read_bytes() for file in path.iterdir()]


def test_shards_of_other_programs(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "part-00000-8c1d-c000.json").touch()
    (tmp_path / "part-00010-8c1d-c000.json").write_text(lines("third"))
    (tmp_path / "part-00002-8c1d-c000.json.gz").write_bytes(gzip.compress(lines("first", "second").encode()))
    assert words(tmp_path) == ["first", "second", "third"]


def test_several_corpora_in_one_folder(tmp_path: Path) -> None:
    for name in ("test", "train"):
        (tmp_path / f"{name}-00000-of-00001.jsonl").write_text(lines(name))
    with pytest.raises(InputError, match=r"holds several corpora: test, train; choose one with shard_name"):
        entaug.read(tmp_path)
    assert words(tmp_path, shard_name="train") == ["train"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"part-00000-of-00003.jsonl": lines("a")},
            "2 of 3 shards missing: 1, 2; download or create the missing files",
        ),
        ({"part-00003-of-00003.jsonl": lines("a")}, "2 of 3 shards missing: 1, 2;"),
        ({"part-0-of-999999999.jsonl": lines("a")}, "999,999,998 of 999,999,999 shards missing: 1, 2, 3, 4, 5 ...;"),
        (
            {"part-0-of-2.jsonl": lines("a"), "part-0-of-1.jsonl": lines("b")},
            "the names of the files disagree on the number of shards; remove",
        ),
        ({"part-0-of-2.jsonl": lines("a"), "part-1-of-2.parquet": ""}, "holds shards of JSON lines and of Parquet"),
        ({"part-0-of-2.jsonl": lines("a"), "part-2-of-2.jsonl": lines("b")}, "disagree on the number"),
        ({"part-0-of-2.jsonl": lines("a"), "part-00001.jsonl": lines("b")}, "disagree on the number"),
        ({"part-0-of-1.jsonl": "\n"}, "no sentence in it"),
        ({"part-0-of-1.jsonl": "\ufeff"}, "no sentence in it"),
        ({"part-0-of-2.jsonl": lines("a"), "part-1-of-2.jsonl.gz": "version https://git-lfs"}, r"jsonl\.gz: .*gzip"),
        ({"part-0-of-2.jsonl": lines("a"), "part-1-of-2.jsonl": '{"tokens": 1}\n'}, r"part-1-of-2\.jsonl:1: no list"),
        (
            {"part-1-of-2.jsonl": '{"entaug": "shard", "of": 2}\n'},
            "holds unmerged parts of entaug augment --shard; join them: entaug merge",
        ),
    ],
)
def test_faulty_folders(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        entaug.read(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", b"version https://git-lfs"])
def test_a_damaged_table_is_named(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("pyarrow")
    entaug.write(RICH, tmp_path / "out", "shards", shard_format="parquet", shard_size=2)
    (tmp_path / "out" / "part-00001-of-00003.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"part-00001-of-00003\.parquet: damaged, or not what its name says"):
        entaug.read(tmp_path / "out")


def test_tables_of_one_corpus_have_one_schema(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    gold = [Sentence.from_iob([word], [f"B-{label}"]) for word, label in (("Ada", "PER"), ("Rome", "LOC"))]
    entaug.write(gold, tmp_path / "out", "shards", shard_format="parquet", shard_size=1)
    first, second = (parquet.read_schema(file) for file in sorted((tmp_path / "out").iterdir()))
    assert first.equals(second, check_metadata=True)
    assert list(entaug.read(tmp_path / "out")) == gold


def test_only_a_whole_folder_of_ours_is_replaced(tmp_path: Path) -> None:
    names = ["train-00000-of-00001.jsonl", "part-00001-of-00002.jsonl.gz", "part-00000-of-00001.parquet"]
    out = tmp_path / "out"
    for name in names:
        entaug.write(GOLD[:2], out, "shards")
        (out / name).write_bytes(b"mine")
        with pytest.raises(OutputError, match="holds more than folder of shards, and is not replaced"):
            entaug.convert(EXAMPLE / "train.conll", out, to_format="shards", force=True)
        assert (out / name).read_bytes() == b"mine"
        shutil.rmtree(out)


@pytest.mark.parametrize("name", ["", ".x", "../x", "/x", "a/b", "a\\b", "a\n"])
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match="shard_name must be the beginning of a file name"):
        entaug.write(GOLD[:2], tmp_path / "out", "shards", shard_name=name)
    assert not list(tmp_path.iterdir())


def test_an_id_in_two_shards(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"part-{number}-of-2.jsonl").write_text(json.dumps({"id": "x", "tokens": ["a"]}) + "\n")
    with pytest.raises(InputError, match=r"part-1-of-2\.jsonl: id 'x' is in part-0-of-2\.jsonl too"):
        entaug.read(tmp_path)
    assert [sentence.id for sentence in entaug.read(tmp_path, repair=True)] == ["x", None]


def test_a_folder_of_shards_is_augmented_by_several_processes(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    entaug.write(GOLD * 3, path, "shards", shard_size=70)
    for jobs in ("1", "2"):
        out = str(tmp_path / f"out-{jobs}")
        assert main(["augment", str(path), "-m", "mr", "-o", out, "--to-layout", "shard_size=200", "--jobs", jobs]) == 0
    assert len(list((tmp_path / "out-1").iterdir())) > 1
    for file in (tmp_path / "out-1").iterdir():
        assert file.read_bytes() == (tmp_path / "out-2" / file.name).read_bytes()
