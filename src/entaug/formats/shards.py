"""Folders of shards: numbered files of JSON lines or Parquet that together form one corpus.

Names are ``NAME-00012-of-00064.jsonl.gz``, as Hugging Face and entaug write them, numbered from 0 or 1, or
``part-00012...``, as Spark and Hadoop write them. Files are read one after the other, so that only a batch of their
sentences is in memory, and written with a limited number of sentences each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from entaug.config.params import PositiveInt, validate
from entaug.core.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.files.atomic import open_output
from entaug.files.streams import encode_text, read_beginning, read_line_chunks
from entaug.formats.base import BaseFormat, FormatCapabilities, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.jsonl import Jsonl
from entaug.formats.parquet import HfDialect, Parquet, create_table
from entaug.formats.records import no_sentences

__all__ = ["Shards", "ShardsDialect"]

_ENDING = r"\.(?P<ending>(?:jsonl|ndjson|json)(?:\.gz)?|parquet)"
_NUMBERED = re.compile(rf"(?P<name>.+)-(?P<number>\d{{1,9}})-of-(?P<total>\d{{1,9}}){_ENDING}")
_OF_SPARK = re.compile(rf"(?P<name>part)-(?P<number>\d{{1,9}})\b.*{_ENDING}")
_DRAFTS = re.compile(rb'\{"entaug": ?"shard"')  # begins what `entaug augment --shard` writes
_FILE_NAME = re.compile(r"[^\x00-\x1f/\\.][^\x00-\x1f/\\]{0,149}")
_ENDINGS = {"jsonl": "jsonl.gz", "parquet": "parquet"}  # of files that are written
_MAX_SHOWN = 5

ShardFormat = Literal["jsonl", "parquet"]


@dataclass(frozen=True)
class ShardsDialect:
    """Layout of a folder of shards.

    Args:
        shard_format: the format of its files: ``"jsonl"`` (gzipped where entaug writes them) or ``"parquet"``.
        shard_name: the beginning of the names of its files, for a folder that holds several corpora, such as
            ``"train"``.
        shard_size: the maximum number of sentences of a file that is written.
    """

    shard_format: ShardFormat = "jsonl"
    shard_name: str = "part"
    shard_size: PositiveInt = 100_000

    def __post_init__(self) -> None:
        validate(self)
        if not _FILE_NAME.fullmatch(self.shard_name):
            what = f"shard_name must be the beginning of a file name, not {self.shard_name!r}"
            raise ParameterError(what, parameter="shard_name")

    def describe(self) -> str:
        """Return a description of the layout."""
        return f"shards of {_inner(self).title}, {self.shard_name}-00000-of-..."


class Shards(BufferedFormat):
    """Folders of shards; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "shards"
    title = "folder of shards"
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=True, fields=True, spaces=True)
    folder = True
    dialect_class = ShardsDialect

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`: it has a file with the name of a shard."""
        return path.is_dir() and any(_matches(path))

    def detect(self, path: Path, dialect: ShardsDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `entaug.formats.base.BaseFormat.detect`: the name and the format of its files."""
        names = sorted({match["name"] for _, match in _matches(path)})
        name = dialect.shard_name if "shard_name" in options or not names else names[0]
        if "shard_name" not in options and len(names) > 1:
            listed = ", ".join(names[:_MAX_SHOWN])
            remedy = "choose one with shard_name (on the command line --layout shard_name=...)"
            raise InputError(f"holds several corpora: {listed}", path=str(path), remedy=remedy)
        formats = {_format_of(match) for _, match in _matches(path) if match["name"] == name}
        if len(formats) > 1:
            remedy = "keep one of them"
            raise InputError("holds shards of JSON lines and of Parquet", path=str(path), remedy=remedy)
        return {"shard_name": name, "shard_format": formats.pop() if formats else dialect.shard_format}

    def files(self, path: Path) -> list[Path]:
        """See `entaug.formats.buffered.BufferedFormat.files`."""
        return [file for file, _ in _matches(path)]

    def sentences(self, path: Path, dialect: ShardsDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat.sentences`."""
        inner = _inner(dialect)
        schemes: dict[str, str] = {}  # that of the first file, which a later one may be too short to tell
        file_of_id: dict[str, Path] = {}
        is_empty = True
        for file in _shards(path, dialect):
            if _is_empty(inner, file):
                continue
            is_empty, layout = False, inner.detect_dialect(file, **schemes)
            if isinstance(layout, HfDialect):
                schemes = {"scheme": layout.scheme}
            for sentence in inner.read(file, layout, reading):
                first = file if sentence.id is None else file_of_id.setdefault(sentence.id, file)
                if first is file:
                    yield sentence
                elif reading.repair:
                    reading.repaired["id of another sentence dropped"] += 1
                    yield sentence.with_(id=None)
                else:
                    what = f"id {sentence.id!r} is in {first.name} too"
                    remedy = "give each sentence an id of its own, or pass --repair to drop this one"
                    reading.fault(InputError(what, path=str(file), remedy=remedy))
        if is_empty:
            raise no_sentences(path, reading)

    def replaceable(self, path: Path) -> bool:
        """See `entaug.formats.buffered.BufferedFormat.replaceable`: shards and nothing else."""
        matches = dict(_matches(path))
        if not all(file in matches and not file.is_symlink() for file in path.iterdir()):
            return False
        try:
            dialect = ShardsDialect(**self.detect(path, ShardsDialect(), {}))
        except InputError:
            return False
        names = [f"{dialect.shard_name}-{i:05}-of-{len(matches):05}" for i in range(len(matches))]
        ours = {f"{name}.{_ENDINGS[dialect.shard_format]}" for name in names}
        return ours == {file.name for file in matches} and not any(map(_holds_drafts, matches))

    def check(self, sentence: Sentence, dialect: ShardsDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.check`."""
        inner = _inner(dialect)
        if isinstance(inner, BufferedFormat):
            inner.check(sentence, inner.dialect())

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: ShardsDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.write`; the files are named when their number is known."""
        inner, ending = _inner(dialect), _ENDINGS[dialect.shard_format]
        path.mkdir()
        written: list[Path] = []

        def new_file() -> Path:
            written.append(path / f"{len(written)}.{ending}")
            return written[-1]

        if isinstance(inner, Parquet):  # one table, so that all files have the same columns and names of tags
            layout = inner.dialect()
            table = create_table(sentences, layout)
            for start in range(0, max(1, len(table)), dialect.shard_size):
                inner.write_table(table.slice(start, dialect.shard_size), new_file(), layout)
        else:
            rest = iter(sentences)
            while (first := list(islice(rest, 1))) or not written:
                with open_output(new_file()) as out:
                    for sentence in chain(first, islice(rest, dialect.shard_size - 1)):
                        out.write(encode_text(inner.dump(sentence, inner.dialect())))
        for number, file in enumerate(written):
            file.rename(path / f"{dialect.shard_name}-{number:05}-of-{len(written):05}.{ending}")


def _inner(dialect: ShardsDialect) -> BaseFormat:
    return Jsonl() if dialect.shard_format == "jsonl" else Parquet()


def _format_of(match: re.Match[str]) -> ShardFormat:
    return "parquet" if match["ending"] == "parquet" else "jsonl"


def _matches(path: Path) -> Iterator[tuple[Path, re.Match[str]]]:
    """The files of a folder with the names of shards, in the order of their numbers."""
    matches = []
    for file in path.iterdir():
        match = _NUMBERED.fullmatch(file.name) or _OF_SPARK.fullmatch(file.name)
        if match and _FILE_NAME.fullmatch(file.name) and file.is_file():
            matches.append((file, match))
    yield from sorted(matches, key=lambda item: (item[1]["name"], int(item[1]["number"]), item[0].name))


def _shards(path: Path, dialect: ShardsDialect) -> list[Path]:
    """The files to read, after the check that none is missing."""
    ours = [(file, match) for file, match in _matches(path) if match["name"] == dialect.shard_name]
    if not ours:
        remedy = "check the folder, or set shard_name (on the command line --layout shard_name=NAME)"
        raise InputError(f"holds no shard {dialect.shard_name}-...", path=str(path), remedy=remedy)
    files = [file for file, _ in ours]
    if dialect.shard_format == "jsonl" and any(map(_holds_drafts, files)):
        remedy = "join them: entaug merge FOLDER -o OUT"
        raise InputError("holds unmerged parts of entaug augment --shard", path=str(path), remedy=remedy)
    totals = {match["total"] for _, match in ours if "total" in match.re.groupindex}
    if not totals:
        return files
    numbers, total = [int(match["number"]) for _, match in ours], int(max(totals, key=int))
    first = int(total in numbers)  # else they are numbered from 0
    is_numbered = all("total" in match.re.groupindex for _, match in ours) and len(totals) == 1
    if not is_numbered or len(numbers) != len(set(numbers)) or not all(first <= n < first + total for n in numbers):
        remedy = "remove those that do not belong"
        raise InputError("the names of the files disagree on the number of shards", path=str(path), remedy=remedy)
    if num_missing := total - len(numbers):
        there = set(numbers)
        missing = (number for number in range(first, first + total) if number not in there)
        shown = ", ".join(map(str, islice(missing, _MAX_SHOWN))) + (" ..." if num_missing > _MAX_SHOWN else "")
        message = f"{num_missing:,} of {total:,} shards missing: {shown}"
        raise InputError(message, path=str(path), remedy="download or create the missing files")
    return files


def _holds_drafts(file: Path) -> bool:
    return bool(_DRAFTS.match(read_beginning(file, 64)))


def _is_empty(inner: BaseFormat, file: Path) -> bool:
    """Whether a file holds no sentence, as some do that Spark writes."""
    if isinstance(inner, Parquet):
        return inner.is_empty(file)
    return not any(line.strip() for _, lines in read_line_chunks(file) for line in lines)
