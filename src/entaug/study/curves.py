"""Points of a learning curve: trainings at several sizes on parts of the gold sentences, tested on held-out ones."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Self

from entaug.backends.processes import process_pool
from entaug.core.data import Sentence
from entaug.core.folds import folds
from entaug.errors import EntaugError, InputError
from entaug.study.choice import GOLD, RECIPES, TEACHER, TEACHER_SIZE
from entaug.study.data import DataSplit, write_part
from entaug.study.engine import ProgressCallback, StudyProgress, completed, run_error
from entaug.study.plan import SELF_TRAINING, CorpusPlan, MethodPlan, ScaledTraining, TaggerPlan, TeacherPlan
from entaug.study.records import RecordStore, RunRecord
from entaug.study.runs import RunSpec, execute_run
from entaug.study.subsets import draw
from entaug.taggers.base import default_steps

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

NUM_SIZES = 4
"""Number of sizes of a curve."""
SIZE_RATIO = 1.7
"""Quotient of neighbouring sizes."""
MAX_TEST = 1000
"""Number of sentences of a fold, or of the dev sentences, that trainings are tested on."""
BATCH_SIZE = 8
SEEDS_PER_REPEAT = 100
_MAX_RATIO = 100  # unlabelled sentences for each gold one


def curve_sizes(most: int, number: int = NUM_SIZES) -> list[int]:
    """The sizes of a curve up to the largest one."""
    return sorted({max(1, round(most / SIZE_RATIO**i)) for i in range(number)})


@dataclass(frozen=True, kw_only=True)
class CurveTagger:
    """The tagger of a curve, or of `entaug.auto`."""

    name: str = "linear"
    encoder: str = "minilm"
    steps: int | None = None  # of each training; None for the default for its size

    def plan(self, size: int) -> TaggerPlan:
        """The tagger as a table of a plan, for trainings on a number of gold sentences."""
        training = ScaledTraining(steps=self.num_steps(size), batch_size=BATCH_SIZE)
        return TaggerPlan(name=self.name, label=self.name, training=training, params={"encoder": self.encoder})

    def num_steps(self, size: int) -> int:
        """The number of steps of a training on a number of gold sentences."""
        return self.steps or default_steps(size)

    def num_unlabelled(self, size: int) -> int:
        """The most unlabelled sentences that a training on a number of gold sentences uses."""
        return min(self.num_steps(size) * BATCH_SIZE, _MAX_RATIO * size)


@dataclass(frozen=True)
class CurvePart:
    """Sentences to train on, and those to test on, which the others do not contain."""

    train: Sequence[Sentence]
    test: Sequence[Sentence]


def curve_parts(gold: Sequence[Sentence], number: int, seed: int) -> list[CurvePart]:
    """The folds of a cross-validation, with at most `MAX_TEST` sentences to test on."""
    return [CurvePart(outside, _at_most(inside, seed)) for outside, inside in folds(gold, number, seed)]


def dev_part(gold: Sequence[Sentence], dev: Sequence[Sentence], seed: int) -> CurvePart:
    """All gold sentences to train on, and dev sentences to test on."""
    return CurvePart(gold, _at_most(dev, seed))


def _at_most(sentences: Sequence[Sentence], seed: int) -> list[Sentence]:
    chosen = Random(f"test {seed}").sample(range(len(sentences)), min(MAX_TEST, len(sentences)))
    return [sentences[i] for i in sorted(chosen)]


@dataclass
class CurveRuns:
    """The trainings of learning curves, whose records are kept in a folder: finished ones are never repeated."""

    parts: Sequence[CurvePart]
    folder: Path
    seed: int = 0
    jobs: int = 1
    tests: Mapping[str, Sequence[Sentence]] = field(default_factory=dict)  # further sentences to test on, by name
    progress: ProgressCallback = lambda _: None
    store: RecordStore = field(init=False)
    used: dict[str, RunSpec] = field(default_factory=dict, init=False)  # all runs that were asked for, by their keys
    _groups: list[list[str]] = field(default_factory=list, init=False)  # the keys of those that were asked for at once
    _specs: dict[tuple[int, int, CurveTagger, int, bool], RunSpec] = field(default_factory=dict, init=False)
    _pool: ProcessPoolExecutor | None = field(default=None, init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)

    def __post_init__(self) -> None:
        self.store = RecordStore(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:  # noqa: PYI036 - of the stack
        self._stack.__exit__(*error)

    @property
    def threads(self) -> int:
        """The threads of a training; 0 for all."""
        return 0 if self.jobs == 1 else 1

    def spec(self, part: int, size: int, tagger: CurveTagger, repeat: int = 0, *, keep: bool = False) -> RunSpec:
        """The run of a training; the smaller subsets of a part are contained in the larger ones."""
        key = (part, size, tagger, repeat, keep)
        if key not in self._specs:
            self._specs[key] = self._spec(*key)
        return self._specs[key]

    def _spec(self, part: int, size: int, tagger: CurveTagger, repeat: int, keep: bool) -> RunSpec:
        seed = self.seed + SEEDS_PER_REPEAT * repeat + part
        train, test = self.parts[part].train, self.parts[part].test
        subset = draw("progressive", train, [size], seed)[size]
        if not any(sentence.mentions for sentence in subset):
            message = f"a subset of {size} sentences has no mention, and a learning curve needs some in each"
            raise InputError(message, remedy="label more sentences that have mentions")
        data, name = self.folder / "data", f"{part}-{repeat}-{size}"
        tests = {"": test} if not self.tests else {"own": test, **self.tests}
        split = DataSplit(
            corpus=CorpusPlan(name="gold", mix=("gold",)),  # its files are those of the split
            size=size,
            num_gold=size,
            train=write_part(data, f"{name}.train", subset),
            test_files={test: write_part(data, f"{test or 'test'}.{part}", some) for test, some in tests.items()},
        )
        arm = GOLD if keep else "gold-steps"  # the same run; the tagger of the former is kept
        return RunSpec(split, tagger.plan(size), arm, 0.0, seed, None, self.threads, self.folder)

    def self_training(self, part: int, size: int, tagger: CurveTagger, text: Sequence[Sentence]) -> RunSpec:
        """The run that adds unlabelled text to a training, as the recipe ``"self"`` of `entaug.auto` does."""
        gold = self.spec(part, size, tagger)
        used = text[: tagger.num_unlabelled(size)]
        bare = [Sentence(sentence.tokens, spaces=sentence.spaces) for sentence in used]
        unlabelled = write_part(self.folder / "data", f"unlabelled.{len(bare)}", bare)
        ratio = len(bare) / size
        labels: Any = {"labels": "teacher", "training": RECIPES["self"].training}
        method = MethodPlan(name=SELF_TRAINING, label="self", ratios=(ratio,), **labels)
        teacher = TeacherPlan(label=TEACHER, size=TEACHER_SIZE, seeds="shared", first_seed=gold.seed)
        return replace(
            gold,
            split=replace(gold.split, unlabelled=unlabelled),
            arm="self",
            ratio=ratio,
            method=method,
            parts=(method,),
            teachers=(teacher,),
        )

    def run(self, specs: Sequence[RunSpec], phase: str = "") -> list[RunRecord]:
        """Execute runs as far as they are not finished, the longest first."""
        self._groups.append([spec.key for spec in specs if spec.key not in self.used])
        self.used |= {spec.key: spec for spec in specs}
        left = sorted((s for s in specs if s.key not in self.store.records), key=lambda spec: -spec.steps)
        self._report(phase)
        if self.jobs == 1:
            for spec in left:
                try:
                    self.store.append(*execute_run(spec))
                except EntaugError as error:
                    raise run_error(spec, error) from error
                self._report(phase)
        elif left:
            if self._pool is None:
                self._pool = self._stack.enter_context(process_pool(self.jobs, 1))
            for result in completed(self._pool, execute_run, ((spec,) for spec in left)):
                self.store.append(*result)
                self._report(phase)
        return [self.store.records[spec.key] for spec in specs]

    def counts(self, part: int, sizes: Sequence[int], tagger: CurveTagger, repeats: int = 1) -> NDArray[float64]:
        """The mean match counts (sizes, sentences, 3) of the finished trainings of a part."""
        import numpy as np

        rows = []
        for size in sizes:
            records = [self.store.records[self.spec(part, size, tagger, repeat).key] for repeat in range(repeats)]
            rows.append(np.mean([list(map(tuple, record.test.sentences)) for record in records], axis=0))
        return np.array(rows, np.float64)

    @property
    def minutes(self) -> float:
        """The time that the runs asked for have taken, by those of an earlier call too."""
        groups = ([self.store.seconds.get(key, 0.0) for key in group] for group in self._groups)
        return sum(makespan(seconds, self.jobs) for seconds in groups) / 60

    def seconds_per_step(self, tagger: CurveTagger) -> float | None:
        """The time of a step of a tagger, loading and predicting included; None as long as nothing is finished."""
        on_gold = {key: spec for key, spec in self.used.items() if spec.method is None and key in self.store.seconds}
        keys = [key for key, spec in on_gold.items() if spec.tagger == tagger.plan(spec.split.size)]
        steps = sum(self.used[key].steps for key in keys)
        return sum(self.store.seconds[key] for key in keys) / steps if steps else None

    def _report(self, phase: str) -> None:
        done = sum(spec.steps for key, spec in self.used.items() if key in self.store.records)
        self.progress(StudyProgress(phase, steps_done=done))


def makespan(seconds: Iterable[float], jobs: int) -> float:
    """The time that trainings take in a number of processes, the longest first."""
    ends = [0.0] * jobs
    for one in sorted(seconds, reverse=True):
        heapq.heapreplace(ends, ends[0] + one)
    return max(ends)


@dataclass(frozen=True)
class Rounds:
    """The trainings of a curve in the order in which they are made: all sizes of a part, and part by part."""

    parts: int
    repeats: int = 1

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The part and the repetition of each round."""
        return iter([(part, repeat) for repeat in range(self.repeats) for part in range(self.parts)])

    def done_of(self, number: int) -> list[int]:
        """The number of trainings of a size that each part has after some rounds; parts without any are left out."""
        whole, rest = divmod(number, self.parts)
        return [times for times in (whole + (part < rest) for part in range(self.parts)) if times]
