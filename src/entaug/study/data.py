"""The data of an experiment: corpora are read and checked, subsets drawn, and all written to files for the runs."""

from __future__ import annotations

import hashlib
import itertools
import json
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.core.folds import folds
from entaug.core.spacing import joined
from entaug.errors import EntaugError, InputError, ParameterError, UnknownNameError
from entaug.files.atomic import make_folder, write_file
from entaug.formats.files import open_file, read, write
from entaug.study.plan import PATIENCE, CorpusPlan, DrawnPart, Plan
from entaug.study.subsets import draw, rest, select

_DIGESTS: dict[tuple[Path, int, int], str] = {}  # by path, time of the last change, and size
_Parts = Mapping[str, list[Sentence]]
"""Sentences by the name of their part: ``"test"``, or ``"test NAME"`` for each of several, and ``"dev"``."""


@dataclass(frozen=True, kw_only=True)
class DataSplit:
    """A subset of a corpus with its test and development set, as files of the experiment."""

    corpus: CorpusPlan
    size: int
    num_gold: int  # fewer than the size where a fold is held out
    train: Path
    test_files: Mapping[str, Path]  # by name; a single one has the name ""
    dev: Path | None = None
    unlabelled: Path | None = None
    leaks: Mapping[str, int] = field(default_factory=dict)
    subset_seed: int | None = None
    fold: tuple[int, int] | None = None  # its number from 1, and the number of folds
    others: tuple[Path, ...] = ()  # further held-out sentences, which no run is tested on

    @property
    def test(self) -> Path | None:
        """The first test file."""
        return next(iter(self.test_files.values()), None)

    @property
    def tests(self) -> Mapping[str, Path]:
        """The test files if they have names."""
        return {} if "" in self.test_files else self.test_files

    @property
    def held_out(self) -> list[Path]:
        """The files of all sentences that a method must not learn from."""
        return [*self.test_files.values(), *([self.dev] if self.dev else []), *self.others]


def prepare_splits(plan: Plan) -> list[DataSplit]:
    """Read the corpora, draw the subsets, and write the files of the runs."""
    splits: dict[str, list[DataSplit]] = {}
    owners: dict[str, str] = {}  # the corpus of each file
    for i, corpus in sorted(enumerate(plan.corpora), key=lambda item: bool(item[1].mix)):
        splitter = _CorpusSplitter(plan, i, corpus)
        members = [splits[name] for name in corpus.mix]
        splits[corpus.name] = list(splitter.mixed(members) if members else splitter.splits())
        for split in splits[corpus.name]:
            for path in (split.train, *split.held_out):
                if (other := owners.setdefault(str(path).casefold(), corpus.name)) != corpus.name:
                    message = f"{corpus.name} and {other} would both have their sentences in {path}"
                    raise splitter.error("name", message, "give one of them another name")
    return [split for corpus in plan.corpora for split in splits[corpus.name]]


class _CorpusSplitter:
    """Prepares the data of one corpus."""

    def __init__(self, plan: Plan, number: int, corpus: CorpusPlan) -> None:
        self.plan = plan
        self.number = number
        self.corpus = corpus

    def splits(self) -> Iterator[DataSplit]:
        corpus = self.corpus
        assert corpus.train is not None
        train = list(self.read(corpus.train))
        if corpus.language:
            train = [sentence.with_(meta={"language": corpus.language, **sentence.meta}) for sentence in train]
        given = {f"test {name}".strip(): list(self.read(path)) for name, path in corpus.test_files.items()}
        if isinstance(corpus.dev, Path):
            given["dev"] = list(self.read(corpus.dev))
        self.check_names(list(given))
        self.check_dev(given)
        train = self.without_leaks(train, given)
        subsets = {(seed, size): some for seed in corpus.subset_seeds for size, some in self.draw(train, seed).items()}
        if len(corpus.subset_seeds) > 1 and any(len(subset) == len(train) for subset in subsets.values()):
            message = f"{len(train):,} sentences are the whole of {corpus.name}, so all draws are equal"
            raise self.error("subset_seed", message, "give one seed, or smaller sizes")
        drawn, unlabelled = self.draw_parts(rest(train, *subsets.values()), given)
        parts = {**given, **drawn}
        parts = {name: self.cut(part) if name.startswith("test") else part for name, part in parts.items()}
        self.check_parts(train, parts)
        for (seed, size), subset in subsets.items():
            free = _distinct_plain(unlabelled, [subset, *parts.values()])
            if corpus.folds is None:
                own_seed = seed if len(corpus.subset_seeds) > 1 else None
                yield self.split(subset, parts, free, size=size, seed=own_seed)
                continue
            for number, (outside, inside) in enumerate(folds(subset, corpus.folds, seed), start=1):
                if not (inside and any(sentence.mentions for sentence in outside)):
                    message = f"{size} sentences of {corpus.name} are too few for {corpus.folds} folds"
                    raise self.error("folds", message, "give fewer folds")
                yield self.split(outside, {**parts, "test": inside}, free, size=size, fold=(number, corpus.folds))

    def mixed(self, members: Sequence[Sequence[DataSplit]]) -> Iterator[DataSplit]:
        """The splits of a mixed corpus: of each size and subset seed, those of its members together."""
        seeds = {tuple(dict.fromkeys(split.subset_seed for split in splits)) for splits in members}
        if len(seeds) > 1 or len(set(map(len, members))) > 1:
            message = f"the corpora of {self.corpus.name} differ in the number of sizes, or in their subset seeds"
            raise self.error("mix", message, "give them the same subset_seed, and as many sizes")
        if any(split.fold for splits in members for split in splits):
            raise self.error("mix", f"the corpora of {self.corpus.name} have folds", "give them test sets instead")
        for splits in zip(*members, strict=True):
            files = ((split.train, split.dev) for split in splits)
            train, dev = ([s for path in paths if path for s in read(path)] for paths in zip(*files, strict=True))
            parts = {"dev": dev} if all(split.dev for split in splits) else {}
            tests = [
                (f"test {split.corpus.name} {name}".strip(), path)
                for split in splits
                for name, path in split.test_files.items()
            ]
            self.check_names([name for name, _ in tests])
            parts |= {name: list(read(path)) for name, path in tests}
            train = self.without_leaks(train, parts)
            used = [train, *parts.values()]
            texts = (_distinct_plain(read(split.unlabelled), used) for split in splits if split.unlabelled)
            # In turn, because ratios use the first sentences.
            unlabelled = _distinct_plain((s for some in itertools.zip_longest(*texts) for s in some if s), [])
            # Draws of which leaks are dropped are of one size all the same.
            size = sum(split.size for split in splits)
            yield self.split(train, parts, unlabelled, size=size, seed=splits[0].subset_seed)

    def read(self, path: Path) -> Corpus:
        options, code = dict(self.corpus.options), self.corpus.language_code
        key = "options"
        try:
            if code and "language" not in options and hasattr(open_file(path, **options).dialect, "language"):
                options["language"], key = code, "language"
            return read(path, **options)
        except (ParameterError, UnknownNameError, TypeError) as error:
            raise self.error(key, f"these options cannot be used ({error})") from None

    def draw(self, train: list[Sentence], seed: int) -> dict[int, list[Sentence]]:
        """Draw the subsets of all sizes by one seed."""
        corpus = self.corpus
        sizes = corpus.sizes or (len(train),)
        if max(sizes) > len(train):
            message = f"a subset of {max(sizes):,} is larger than {corpus.name} with {len(train):,} sentences"
            raise self.error("sizes", message)
        if corpus.subset_ids:
            named = ((int(size), corpus.ids_file(size)) for size in sorted(sizes))
            subsets = {size: select(train, file, size) for size, file in named if file}
        else:
            try:
                subsets = draw(corpus.subset, train, sizes, seed)
            except EntaugError as error:
                raise self.error("sizes", error.message, error.remedy) from None
        if len(subsets) < len(sizes):
            message = f"of {len(train):,} sentences of {corpus.name}, several of these shares are the same number"
            raise self.error("sizes", message, "leave out one of them")
        self.check_ratios(min(subsets))
        for size, subset in subsets.items():
            if not any(sentence.mentions for sentence in subset):
                raise self.error("sizes", f"the {size} sentences drawn from {corpus.name} have no mentions")
        return subsets

    def draw_parts(self, unused: list[Sentence], given: _Parts) -> tuple[dict[str, list[Sentence]], list[Sentence]]:
        """Draw test, dev and unlabelled sentences where the plan says so."""
        # In this order, so that the former stay the same when the latter are added.
        order = list(range(len(unused)))
        Random(f"rest {self.corpus.subset_seeds[0]}").shuffle(order)
        parts: dict[str, list[Sentence]] = {}
        for name in ("test", "dev", "unlabelled"):
            part = getattr(self.corpus, name)
            if isinstance(part, DrawnPart):
                if name != "unlabelled":  # dev and test share no sentence, though the corpus may have it twice
                    taken = {sentence.tokens for some in (*given.values(), *parts.values()) for sentence in some}
                    order = [i for i in order if unused[i].tokens not in taken]
                if part.rest > len(order):
                    message = f"{name} asks for {part.rest:,} sentences, and {len(order):,} are left unused"
                    raise self.error(name, message)
                parts[name] = [unused[i] for i in sorted(order[: part.rest])]
                order = order[part.rest :]
        unlabelled = parts.pop("unlabelled", [])
        if isinstance(self.corpus.unlabelled, Path):
            unlabelled = list(self.read(self.corpus.unlabelled))
        return parts, unlabelled

    def cut(self, test: list[Sentence]) -> list[Sentence]:
        """At most the number of test sentences that the plan asks for."""
        order = list(range(len(test)))
        if self.corpus.max_test is not None and self.corpus.max_test < len(test):
            Random(f"test {self.corpus.subset_seeds[0]}").shuffle(order)
        return [test[i] for i in sorted(order[: self.corpus.max_test])]

    def without_leaks(self, train: list[Sentence], given: _Parts) -> list[Sentence]:
        tokens = {sentence.tokens for part in given.values() for sentence in part}
        leaking = [sentence for sentence in train if sentence.tokens in tokens]
        if leaking and self.plan.leakage == "error":
            example = joined(leaking[0].tokens)[:60]
            message = f"{len(leaking)} sentences of train stand in dev or test too, one is {example!r}"
            raise self.error("mix" if self.corpus.mix else "train", message, 'remove them, or set leakage = "drop"')
        return [s for s in train if s.tokens not in tokens] if self.plan.leakage == "drop" else train

    def split(
        self,
        subset: list[Sentence],
        parts: _Parts,
        unlabelled: list[Sentence],
        *,
        size: int,
        seed: int | None = None,
        fold: tuple[int, int] | None = None,
    ) -> DataSplit:
        """Write the files of a subset."""
        folder, name = self.plan.output / "data", self.corpus.name
        stem = f"{name}.{size}" if seed is None else f"{name}.{size}.{seed}"
        if fold:
            stem = name = f"{stem}.fold-{fold[0]}"
        files = {part: write_part(folder, f"{name}.{_file_name(part)}", some) for part, some in parts.items()}
        tests = {part.removeprefix("test").strip(): path for part, path in files.items() if part.startswith("test")}
        return DataSplit(
            corpus=self.corpus,
            size=size,
            num_gold=len(subset),
            train=write_part(folder, f"{stem}.train", subset),
            test_files=tests,
            dev=files.get("dev"),
            unlabelled=write_part(folder, f"{stem}.unlabelled", unlabelled) if unlabelled else None,
            leaks={part: count_shared(subset, sentences) for part, sentences in sorted(parts.items())},
            subset_seed=seed,
            fold=fold,
        )

    # ---------------------------------------------------------------------------------------------------------- checks

    def check_parts(self, train: list[Sentence], parts: _Parts) -> None:
        corpus = self.corpus
        known = {mention.label for sentence in train for mention in sentence.mentions}
        for name, sentences in parts.items():
            types = {mention.label for sentence in sentences for mention in sentence.mentions}
            if not types:
                raise self.error(name.split()[0], f"{name} of {corpus.name} has no mentions")
            if (unknown := sorted(types - known)) and corpus.missing_types == "error":
                message = f"{name} of {corpus.name} has types that train lacks ({', '.join(unknown[:5])})"
                raise self.error(name.split()[0], message, 'make the types agree, or set missing_types = "allow"')
        if corpus.overlap is not None or all(sentence.is_flat for sentence in train):
            return
        for tagger in self.plan.taggers:
            if tagger.on(corpus).is_flat_only and corpus.includes(tagger):
                message = f"{corpus.name} has nested or discontinuous mentions, which {tagger.label} cannot learn"
                remedy = 'set overlap = "outermost" for the corpus, or its taggers to one that can, such as w2ner'
                raise self.error("train", message, remedy)

    def check_names(self, parts: Sequence[str]) -> None:
        """Refuse test sets that would be written to one file."""
        for one, other in itertools.combinations(parts, 2):
            if _file_name(one).casefold() == _file_name(other).casefold():  # some file systems ignore case
                message = f"{one} and {other} of {self.corpus.name} would be one file, {_file_name(one)}.jsonl"
                raise self.error("mix" if self.corpus.mix else "test", message, "give one of them another name")

    def check_dev(self, given: _Parts) -> None:
        """Refuse a dev set that is the test set, or one within the other, under whatever name or format of the file."""
        if self.corpus.dev_in_test == "allow" or not given.get("dev"):
            return
        dev = {(s.tokens, s.mentions) for s in given["dev"]}
        for test in ({(s.tokens, s.mentions) for s in part} for name, part in given.items() if name != "dev"):
            if dev <= test or test <= dev:
                part = f"{len(given['dev']):,} sentences that are all in" if dev < test else "all the sentences of"
                what = "the same sentences as" if dev == test else part
                message = f"dev of {self.corpus.name} has {what} its test set, and what is selected on dev fits it"
                remedy = 'name another dev file, draw one by dev = {rest = 300}, or set dev_in_test = "allow"'
                raise self.error("dev", f"{message} too well", remedy)

    def check_ratios(self, size: int) -> None:
        for method in self.plan.methods:
            if not self.corpus.includes(method) or method.ratios == PATIENCE or round(min(method.ratios) * size):
                continue
            lines, own = self.plan.lines, ("methods", method.table)
            place = own if lines.line_of(*own, "ratios") != lines.line_of(*own, "") else ("", 0)
            message = f"a ratio of {min(method.ratios)} is not even one sentence for {size} of {self.corpus.name}"
            with lines.at(*place, key="ratios"):
                raise InputError(message, remedy="give a larger ratio, or larger sizes")

    def error(self, key: str, message: str, remedy: str | None = None) -> InputError:
        line = self.plan.lines.line_of("corpora", self.number, key)
        return InputError(message, path=str(self.plan.lines.path), line=line, remedy=remedy or "correct the plan")


def _file_name(part: str) -> str:
    return part.replace(" ", ".")


def _distinct_plain(sentences: Iterable[Sentence], others: Iterable[Sequence[Sentence]]) -> list[Sentence]:
    """Sentences without their mentions, and without those that are among others, or are there twice."""
    seen = {sentence.tokens for part in others for sentence in part}
    distinct: dict[tuple[str, ...], Sentence] = {}
    for sentence in sentences:
        if sentence.tokens not in seen:
            distinct.setdefault(sentence.tokens, Sentence(sentence.tokens, spaces=sentence.spaces))
    return list(distinct.values())


def write_part(folder: Path, name: str, sentences: Sequence[Sentence]) -> Path:
    """Write a part of the data, unless a file with the same content exists, which running processes may read."""
    path = make_folder(folder) / f"{name}.jsonl"
    with tempfile.TemporaryDirectory(prefix="entaug-") as scratch:
        made = Path(scratch, path.name)
        write(sentences, made)
        content = made.read_bytes()
    write_file(path, content)
    return path


def read_part(path: Path) -> list[Sentence]:
    """Read a file of a study itself, which need not have mentions."""
    with warnings.catch_warnings(action="ignore"):
        return list(read(path))


def count_shared(sentences: Iterable[Sentence], others: Iterable[Sentence]) -> int:
    """Count the sentences that have the same tokens as one of the others."""
    tokens = {sentence.tokens for sentence in others}
    return sum(sentence.tokens in tokens for sentence in sentences)


def file_digest(path: Path) -> str:
    """The hash of the content of a file, or of all files of a folder."""
    if path.is_dir():
        return short_hash([file_digest(file) for file in sorted(path.rglob("*")) if file.is_file()])
    status = path.stat()
    key = path, status.st_mtime_ns, status.st_size
    if key not in _DIGESTS:
        _DIGESTS[key] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return _DIGESTS[key]


def short_hash(value: Any) -> str:
    """The hash of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
