"""The taggers that a server has trained: a folder each, and what their scores say about annotating more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.files.atomic import atomic_folder, write_file
from entaug.metrics.learning_curve import fit_learning_curve

_KEPT = 3  # taggers; of older ones only the scores stay
_RECORD, _TAGGER = "version.json", "tagger"
MORE = 100
"""The number of further sentences that the advice is about."""
_ENOUGH = 0.01  # F1 that as many must be able to bring


@dataclass(frozen=True, kw_only=True)
class Version:
    """A tagger that was trained on the annotations so far."""

    number: int  # from 1
    sentences: int  # that it was trained on
    tasks: int  # that were annotated when it was
    digest: str  # of the sentences
    dev: str = ""  # the digest of the development sentences
    counts: Sequence[Sequence[int]] = ()  # of each of these: correct, predicted and gold mentions

    @property
    def f1(self) -> float:
        """F1 on the development sentences."""
        correct, predicted, gold = map(sum, zip(*self.counts, strict=True))
        return 2 * correct / max(1, predicted + gold)

    @property
    def name(self) -> str:
        """The name in Label Studio, which differs where sentences do."""
        return f"entaug-{self.number}-{self.digest[:8]}"


def digest_of(sentences: Iterable[Sentence]) -> str:
    """The digest of some sentences with their mentions, in any order."""
    return blake2b(b"".join(sorted(s.fingerprint() for s in sentences)), digest_size=8).hexdigest()


class Versions:
    """The versions in a folder, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._all = [_read(path) for path in sorted(folder.glob(f"*/{_RECORD}"))]

    @property
    def latest(self) -> Version | None:
        """The version that is served."""
        return self._all[-1] if self._all else None

    def tagger_folder(self, version: Version) -> Path:
        """The folder of the tagger of a version."""
        return self._path(version.number) / _TAGGER

    def add(self, version: Version, tagger: Path) -> None:
        """Take a trained tagger, whose folder is moved here, and remove old ones."""
        with atomic_folder(self._path(version.number)) as new:
            tagger.rename(new / _TAGGER)
            write_file(new / _RECORD, json.dumps(asdict(version)).encode())
        self._all.append(version)
        for old in self._all[:-_KEPT]:
            shutil.rmtree(self.tagger_folder(old), ignore_errors=True)

    def next_number(self) -> int:
        """The number of the next version."""
        return self._all[-1].number + 1 if self._all else 1

    def advice(self) -> str:
        """Return what more sentences would bring, by the learning curve through the versions."""
        latest = self.latest
        if latest is None or not latest.counts:
            return ""
        text = f"F1 {100 * latest.f1:.1f} with {latest.sentences:,} sentences"
        same = {one.sentences: one for one in self._all if one.dev == latest.dev and one.sentences <= latest.sentences}
        sizes = sorted(same)
        if len(latest.counts) < 2:  # sentences to test on
            return text
        if len(sizes) < 2:
            return f"{text}; the next training shows what more sentences bring"
        curve = fit_learning_curve(sizes, [[same[size].counts for size in sizes]])
        gain = curve.gain(latest.sentences, latest.sentences + MORE).times(100)
        text += f"; {MORE} more would bring {gain.value:+.1f} ({gain.low:+.1f} to {gain.high:+.1f})"
        return f"{text}: enough is annotated" if gain.high < 100 * _ENOUGH else text

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:04d}"


def _read(path: Path) -> Version:
    try:
        return Version(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        remedy = "remove its folder; the sentences are in Label Studio"
        raise InputError(f"is not a record of a version ({error})", path=str(path), remedy=remedy) from None
