"""The data of an experiment: corpora read and checked, subsets drawn, all written as files that runs read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from entaug.corpus import Corpus
from entaug.data import Sentence
from entaug.errors import EntaugError, InputError, ParameterError, UnknownNameError
from entaug.experiment.plan import PATIENCE, CorpusPlan, Part, Plan
from entaug.experiment.subsets import draw, rest
from entaug.files.atomic import output_error
from entaug.formats import read, write

__all__ = ["Cell", "digest", "hash_of", "prepare", "shared"]

_DIGESTS: dict[Path, str] = {}


@dataclass(frozen=True)
class Cell:
    """A subset of a corpus with what taggers are tested on, as files of the experiment.

    Args:
        corpus: its plan.
        size: sentences of the subset.
        train: the subset.
        test: what is tested on.
        dev: what is chosen by, if anything.
        leaks: how many training sentences stand in dev and in test too.
    """

    corpus: CorpusPlan
    size: int
    train: Path
    test: Path
    dev: Path | None
    leaks: dict[str, int]


def prepare(plan: Plan) -> list[Cell]:
    """Read the corpora, draw the subsets, and write all that the runs read.

    Raises:
        InputError: a corpus does not do for the plan; it names the line of the plan, or the faulty line of the corpus.
    """
    cells = []
    for number, corpus in enumerate(plan.corpora):
        cells += list(_Preparation(plan, number, corpus).cells())
    return cells


class _Preparation:
    def __init__(self, plan: Plan, number: int, corpus: CorpusPlan) -> None:
        self.plan = plan
        self.number = number
        self.corpus = corpus
        self.folder = plan.output / "data"

    def cells(self) -> Iterator[Cell]:
        corpus = self.corpus
        train = list(self.read(corpus.train))
        given = {"test": self.given(corpus.test), "dev": self.given(corpus.dev)}
        train = self.without_leaks(train, given)
        sizes = corpus.sizes or (len(train),)
        if max(sizes) > len(train):
            raise self.fault(
                "sizes", f"a subset of {max(sizes):,} is larger than {corpus.name} with {len(train):,} sentences"
            )
        # Shares become numbers of sentences here: files and tables name those.
        try:
            subsets = draw(corpus.subset, train, sizes, corpus.subset_seed)
        except EntaugError as error:
            raise self.fault("sizes", error.message, error.remedy or "correct the plan") from None
        self.check_amounts(min(subsets))
        parts = self.drawn(rest(train, *subsets.values()), given)
        for name, sentences in parts.items():
            if sentences is not None and not any(sentence.mentions for sentence in sentences):
                raise self.fault(name, f"{name} of {corpus.name} has no mentions")
        files = {name: self.write(f"{corpus.name}.{name}", part) for name, part in parts.items() if part is not None}
        self.check_types(train, parts)
        self.check_shapes(train)
        for size, subset in subsets.items():
            if not any(sentence.mentions for sentence in subset):
                raise self.fault("sizes", f"the {size} sentences drawn from {corpus.name} have no mentions")
            yield Cell(
                corpus=corpus,
                size=size,
                train=self.write(f"{corpus.name}.{size}.train", subset),
                test=files["test"],
                dev=files.get("dev"),
                leaks={name: shared(subset, part) for name, part in sorted(parts.items()) if part is not None},
            )

    def read(self, path: Path) -> Corpus:
        try:
            return read(path, **dict(self.corpus.options))
        except (ParameterError, UnknownNameError, TypeError) as error:
            raise self.fault("options", f"these options cannot be used ({error})") from None

    def given(self, part: Part | None) -> list[Sentence] | None:
        return None if part is None or part.path is None else list(self.read(part.path))

    def without_leaks(self, train: list[Sentence], given: dict[str, list[Sentence] | None]) -> list[Sentence]:
        tokens = {sentence.tokens for part in given.values() for sentence in part or ()}
        leaking = [sentence for sentence in train if sentence.tokens in tokens]
        if leaking and self.plan.leakage == "refuse":
            shown = " ".join(leaking[0].tokens)[:60]
            raise self.fault("train", f"{len(leaking)} sentences of train stand in dev or test too, one is {shown!r}")
        return [s for s in train if s.tokens not in tokens] if self.plan.leakage == "drop" else train

    def drawn(
        self, unused: list[Sentence], given: dict[str, list[Sentence] | None]
    ) -> dict[str, list[Sentence] | None]:
        """Dev and test, with those drawn from what no subset uses: test first, so that it stays when dev is added."""
        rng = Random(f"rest {self.corpus.subset_seed}")
        order = list(range(len(unused)))
        rng.shuffle(order)
        parts = dict(given)
        for name in ("test", "dev"):
            part: Part | None = getattr(self.corpus, name)
            if part is None or part.rest is None:
                continue
            if part.rest > len(order):
                raise self.fault(name, f"{name} asks for {part.rest:,} sentences, and {len(order):,} are left unused")
            chosen, order = sorted(order[: part.rest]), order[part.rest :]
            parts[name] = [unused[i] for i in chosen]
        return parts

    def check_types(self, train: list[Sentence], parts: dict[str, list[Sentence] | None]) -> None:
        if self.corpus.missing_types == "allow":
            return
        known = {mention.label for sentence in train for mention in sentence.mentions}
        for name, part in parts.items():
            unknown = {m.label for sentence in part or () for m in sentence.mentions} - known
            if unknown:
                shown = ", ".join(sorted(unknown)[:5])
                raise self.fault(
                    name,
                    f"{name} of {self.corpus.name} has types that train lacks ({shown})",
                    'make the types agree, or set missing_types = "allow"',
                )

    def check_amounts(self, size: int) -> None:
        for number, method in enumerate(self.plan.methods):
            if not self.corpus.takes(method) or method.amounts == PATIENCE or round(float(method.amounts[0]) * size):
                continue
            own = self.plan.lines.of("methods", number, "amounts") != self.plan.lines.of("methods", number, "")
            raise self.plan.fault(
                ("methods", number, "amounts") if own else ("", 0, "amounts"),
                f"an amount of {method.amounts[0]} is not even one sentence for {size} of {self.corpus.name}",
                "give a larger amount, or larger sizes",
            )

    def check_shapes(self, train: list[Sentence]) -> None:
        if self.corpus.overlap is not None or all(sentence.is_flat for sentence in train):
            return
        for tagger in self.plan.taggers:
            flat_only = tagger.name != "w2ner" and tagger.params.get("overlap", "error") == "error"
            if flat_only and self.corpus.takes(tagger):
                raise self.fault(
                    "train",
                    f"{self.corpus.name} has nested or discontinuous mentions, which {tagger.label} cannot learn",
                    'set overlap = "outermost" for the corpus, or its taggers to one that can, such as w2ner',
                )

    def write(self, name: str, sentences: Sequence[Sentence]) -> Path:
        """Write a part; a file that says the same already stays, so that nothing is disturbed that reads it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(self.folder, error) from None
        path = self.folder / f"{name}.jsonl"
        beside = self.folder / f".{name}.{os.getpid()}.jsonl"
        try:
            write(sentences, beside)
            if path.exists() and path.read_bytes() == beside.read_bytes():
                return path
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        _DIGESTS.pop(path, None)
        return path

    def fault(self, key: str, message: str, remedy: str = "correct the plan") -> InputError:
        return self.plan.fault(("corpora", self.number, key), message, remedy)


def shared(train: Iterable[Sentence], other: Iterable[Sentence]) -> int:
    """How many sentences have the tokens of one of the others."""
    tokens = {sentence.tokens for sentence in other}
    return sum(sentence.tokens in tokens for sentence in train)


def digest(path: Path) -> str:
    """What a file holds, in short."""
    found = _DIGESTS.get(path)
    if found is None:
        found = _DIGESTS[path] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return found


def hash_of(config: Any) -> str:
    """A short name of a configuration."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:16]
