"""The files of shards: JSON lines that tell what they belong to, the drafts of each source, and where they end."""

from __future__ import annotations

import contextlib
import gzip
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Self

import orjson

from entaug.errors import InputError, OutputError, ParameterError
from entaug.files.atomic import atomic_file, atomic_path, output_error
from entaug.files.streams import read_line_chunks
from entaug.formats import CorpusFile
from entaug.methods.accepting import AugmentSummary, ReviewCounts
from entaug.methods.drafting import Dropped, Made, SourceDrafts

__all__ = [
    "Shard",
    "ShardFile",
    "ShardFolder",
    "end_line",
    "first_line",
    "json_line",
    "manifest",
    "next_sum",
    "plain_drafts",
    "shard_files",
]

_VERSION = 2
_MOST = 99_999  # shards
_NAMES = "part-*-of-*.jsonl*"
_SHARD = re.compile(r"(\d+)/(\d+)")
_MANIFEST = "manifest.json"
_WHAT_DIFFERS = {"content": "another input", "signature": "another method, other parameters or models"}
_SUM = "sha256"  # of the rest of a first line or manifest
_IDENTITY = ("version", "key", "fitted", "of", *_WHAT_DIFFERS)  # not the name of the input, which may be moved


@dataclass(frozen=True)
class Shard:
    """A part of the work on a corpus.

    Args:
        number: its number, from 1.
        of: the number of all parts.

    Example:
        >>> Shard.parse("3/64").name
        'part-00003-of-00064.jsonl.gz'
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Create a shard from its text form.

        Args:
            text: number and total, for example ``"3/64"``.

        Raises:
            ParameterError: it is not of this form, or there is no such part.
        """
        match = _SHARD.fullmatch(text.strip())
        if match is None or not 1 <= int(match[1]) <= int(match[2]) <= _MOST:
            raise ParameterError(
                f"--shard {text!r} is no part of a whole", remedy="write it as 3/64; the first is 1/64"
            )
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"part-{self.number:05}-of-{self.of:05}.jsonl.gz"

    def range_of(self, total: int) -> tuple[int, int]:
        """Return the first source, from 0, and the one after the last.

        Args:
            total: the number of all sources.
        """
        return total * (self.number - 1) // self.of, total * self.number // self.of


def json_line(value: Any) -> str:
    """Return a value as a line of JSON."""
    return orjson.dumps(value).decode() + "\n"


def next_sum(before: str, line: str) -> str:
    """The sum of all lines up to a line, from that of the lines before it; the first one is empty."""
    return sha256((before + line.rstrip("\n")).encode()).hexdigest()


def end_line(sources: int, total: str) -> dict[str, Any]:
    """The last line of a shard: the number of its sources, and the sum of their lines."""
    return {"sources": sources, "sha256": total}


def first_line(said: dict[str, Any]) -> str:
    """The first line of a shard with its sum, from its manifest."""
    return json_line(_signed(said))


def _signed(said: dict[str, Any]) -> dict[str, Any]:
    as_read = orjson.loads(orjson.dumps(said))
    return {**as_read, _SUM: sha256(orjson.dumps(as_read, option=orjson.OPT_SORT_KEYS)).hexdigest()}


def _unsigned(signed: dict[str, Any]) -> dict[str, Any]:
    """The signed content; raises `ValueError` if it has changed since."""
    said = {name: value for name, value in signed.items() if name != _SUM}
    if _signed(said) != signed:
        raise ValueError
    return said


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_counts(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_count, value.values()))


def _is_corpus(value: object) -> bool:
    return isinstance(value, dict) and all(
        _are_counts(count) if name == "mentions" else _is_count(count) for name, count in value.items()
    )


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "of": lambda value: _is_count(value) and 1 <= value <= _MOST,
    **dict.fromkeys(("key", "format", "method", "signature", "input", "from_format", "to_format"), _is_text),
    "fitted": lambda value: value is None or _is_text(value),
    "dialect": lambda value: isinstance(value, dict),
    "with_gold": lambda value: isinstance(value, bool),
    "notes": _are_texts,
    **dict.fromkeys(("lost", "repaired", "review"), _are_counts),
    "before": lambda value: _is_corpus(value) and "sentences" in value,
}
"""What the values of a manifest are."""


def _checked(said: Any, kind: str) -> dict[str, Any]:
    """The values of a manifest; raises `ValueError` or `LookupError` if they are not those of one."""
    if said["entaug"] != kind or not all(is_valid(said[name]) for name, is_valid in _FIELDS.items()):
        raise ValueError
    checked: dict[str, Any] = said
    return checked


def manifest(
    shard: Shard,
    key: str,
    whole: AugmentSummary,
    to: CorpusFile,
    review: ReviewCounts,
    *,
    with_gold: bool,
    fitted: str | None,
) -> dict[str, Any]:
    """Return the first line of a shard; but for the number it is that of all shards of a corpus."""
    dialect: Any = to.dialect
    described = ("method", "signature", "input", "from_format", "to_format", "lost", "repaired", "notes")
    return {
        "entaug": "shard",
        "version": _VERSION,
        "shard": shard.number,
        "of": shard.of,
        "key": key,
        "fitted": fitted,
        "format": to.format.name,
        "dialect": asdict(dialect),
        "with_gold": with_gold,
        **{name: getattr(whole, name) for name in described},
        "before": whole.before.to_dict(),
        "review": asdict(review),
    }


def plain_drafts(drafts: SourceDrafts) -> Iterator[Any]:
    """Yield the values of the line of a source."""
    yield drafts.requested
    yield drafts.gold
    for outcome in drafts.outcomes:
        if isinstance(outcome, Made):
            if isinstance(outcome.text, Exception):
                raise outcome.text
            yield list(outcome[:-1])  # without the example
        else:
            yield list(outcome)


def _drafts(line: str) -> SourceDrafts:
    """The drafts of the line of a source; raises `ValueError` or `TypeError` if it is none."""
    requested, gold, *outcomes = orjson.loads(line)
    if not (_is_count(requested) and _is_text(gold)):
        raise ValueError
    return SourceDrafts(requested, [_dropped(*one) if len(one) == 3 else _made(*one) for one in outcomes], gold)


def _dropped(reason: Any, is_last: Any, text: Any) -> Dropped:
    if not (_is_text(reason) and isinstance(is_last, bool) and (text is None or _is_text(text))):
        raise ValueError
    return Dropped(reason, is_last, text)


def _made(fingerprint: Any, text: Any, counts: Any, changes: Any, filled: Any) -> Made:
    tokens, labels, nested, discontinuous = counts
    are_valid = _is_count(fingerprint) and all(map(_is_count, (tokens, nested, discontinuous))) and _are_texts(labels)
    are_valid = are_valid and (text is None or _is_text(text)) and (changes is None or _are_counts(changes))
    if not (are_valid and _are_texts(filled)):
        raise ValueError
    return Made(fingerprint, text, (tokens, tuple(labels), nested, discontinuous), changes, tuple(filled))


class ShardFile:
    """The file of a shard."""

    def __init__(self, path: Path) -> None:
        self.path = path
        line = next(self._lines(), "")
        try:
            signed = orjson.loads(line)
            if signed["entaug"] != "shard":
                raise ValueError  # noqa: TRY301
            if signed["version"] != _VERSION:
                raise self._error("was written by another version", "use one version for all shards")
        except (ValueError, LookupError, TypeError):
            raise self._error("is no shard", "name those that entaug augment --shard wrote") from None
        try:
            self.manifest = _checked(_unsigned(signed), "shard")
            if not (_is_count(signed["shard"]) and 1 <= signed["shard"] <= signed["of"]):
                raise ValueError  # noqa: TRY301
        except (ValueError, LookupError, TypeError):
            raise self._error("has a damaged first line", "write it again") from None
        self.shard = Shard(self.manifest["shard"], self.manifest["of"])

    def _error(self, message: str, remedy: str) -> InputError:
        return InputError(message, path=str(self.path), remedy=remedy)

    def _lines(self) -> Iterator[str]:
        for _, lines in read_line_chunks(self.path):
            yield from lines

    def sources(self) -> Iterator[SourceDrafts]:
        """Read the drafts of the sources."""
        start, stop = self.shard.range_of(self.manifest["before"]["sentences"])
        lines = islice(self._lines(), 1, None)
        remedy = f"write it again: --shard {self.shard} --force"
        try:
            count, total = 0, ""
            for line in islice(lines, stop - start):
                yield _drafts(line)
                count, total = count + 1, next_sum(total, line)
            end = orjson.loads(next(lines, "0"))
            if not isinstance(end, dict) or end.get("sources") != count or count != stop - start or any(lines):
                raise self._error("is not complete", remedy)
            if end != end_line(count, total):
                raise self._error("was changed after it was written", remedy)
        except (ValueError, TypeError):
            raise self._error("is damaged", remedy) from None


def shard_files(inputs: Iterable[str | Path]) -> list[ShardFile]:
    """Return the files of all shards, in order."""
    files: list[ShardFile] = []
    for path in map(Path, inputs):
        found = sorted(path.glob(_NAMES)) if path.is_dir() else [path]
        if not found:
            raise InputError("holds no shard", path=str(path), remedy="name the folder that --shard wrote to")
        files += [ShardFile(one) for one in found]
    if not files:
        raise ParameterError("no shard is given", remedy="name their folder")
    first = files[0]
    for file in files[1:]:
        differing = [n for n, value in first.manifest.items() if n != "shard" and file.manifest.get(n) != value]
        if differing:
            what = "input, options, version or models" if "of" not in differing else "number of shards"
            message = f"differs from {first.path} in {what} ({', '.join(differing)})"
            raise InputError(message, path=str(file.path), remedy="merge the shards of one run")
    by_number: dict[int, ShardFile] = {}
    for file in files:
        if (other := by_number.setdefault(file.shard.number, file)) is not file:
            raise InputError(
                f"is shard {file.shard}, as is {other.path}", path=str(file.path), remedy="name one of them"
            )
    of = first.shard.of
    if missing := [number for number in range(1, of + 1) if number not in by_number]:
        shown = ", ".join(map(str, missing[:10])) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        message = f"{len(missing)} of {of} shards missing: {shown}"
        remedy = f"write them: entaug augment --shard {missing[0]}/{of}"
        raise InputError(message, path=str(first.path.parent), remedy=remedy)
    return [by_number[number] for number in range(1, of + 1)]


@dataclass(frozen=True)
class ShardFolder:
    """The folder with the parts of a run; what is there is complete, and belongs to this run."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: Path, manifest: dict[str, Any], *, force: bool) -> ShardFolder:
        """Create the folder, or take over what an interrupted run of the same input and options left there."""
        found = _manifest_in(folder)
        if found == {}:
            raise OutputError("is a folder that holds something else", path=str(folder), remedy="move it away")
        if found:
            differing = [name for name in _IDENTITY if found.get(name) != manifest[name]]
            if not differing:
                return cls(folder, found)
            if not force:
                what = next((_WHAT_DIFFERS[name] for name in _WHAT_DIFFERS if name in differing), "other options")
                message = f"was left by an interrupted run with {what}"
                remedy = "repeat that run, pass --force to drop it, or move it away"
                raise OutputError(message, path=str(folder), remedy=remedy)
            cls(folder, found).remove()
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise output_error(folder, error) from None
        with atomic_file(folder / _MANIFEST) as out:
            out.write(orjson.dumps(_signed(manifest), option=orjson.OPT_INDENT_2) + b"\n")
        return cls(folder, manifest)

    @property
    def shards(self) -> list[Shard]:
        """All parts."""
        return [Shard(number, self.manifest["of"]) for number in range(1, self.manifest["of"] + 1)]

    def missing(self) -> list[Shard]:
        """Return the parts that are not there, or damaged."""
        return [shard for shard in self.shards if not self._is_complete(shard)]

    def _is_complete(self, shard: Shard) -> bool:
        path = self.folder / shard.name
        if not path.exists():
            return False
        try:
            file = ShardFile(path)
            deque(file.sources(), maxlen=0)
        except InputError:
            return False
        return file.manifest == self._first_line(shard)

    def _first_line(self, shard: Shard) -> dict[str, Any]:
        return {**self.manifest, "entaug": "shard", "shard": shard.number}

    def write(self, shard: Shard, lines: bytes) -> None:
        """Write a part, which appears when it is complete."""
        first = first_line(self._first_line(shard))
        with atomic_path(self.folder / shard.name) as new:
            new.write_bytes(gzip.compress(first.encode(), mtime=0) + lines)

    def remove(self) -> None:
        """Remove the parts, the manifest last: it tells that the rest may be removed."""
        with contextlib.suppress(OSError):
            for shard in self.shards:
                (self.folder / shard.name).unlink(missing_ok=True)
            (self.folder / _MANIFEST).unlink(missing_ok=True)
            self.folder.rmdir()


def _manifest_in(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder of parts; None for no folder or an empty one, nothing in it if it is something else."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return None
    try:
        return _checked(_unsigned(orjson.loads((folder / _MANIFEST).read_bytes())), "parts")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}
