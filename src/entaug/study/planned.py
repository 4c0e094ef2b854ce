"""The plan of an experiment as its folder keeps it, for reports: the planned runs, and the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from entaug.config.params import construct, validate, with_tuples
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.files.atomic import write_file
from entaug.study.records import RECORDS_FILE, Place, places_of
from entaug.study.tables import TablePlan

if TYPE_CHECKING:
    from entaug.study.runs import RunSpec

PLAN_FILE = "plan.json"


@dataclass(frozen=True)
class RunCount:
    """The runs of a plan that are done, and those that it has; choices on dev may add some."""

    done: int
    planned: int
    at_least: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left."""
        return self.done == self.planned and not self.at_least

    def __str__(self) -> str:
        return f"{self.done:,} of {'at least ' if self.at_least else ''}{self.planned:,} runs of the plan"


@dataclass(frozen=True)
class PlannedArm:
    """The runs of an arm: one for each seed, draw of the gold sentences and fold."""

    corpus: str
    size: int
    tagger: str
    arm: str
    ratio: float
    seeds: tuple[int, ...]
    subset_seeds: tuple[int, ...] = ()
    folds: int = 0
    tests: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        validate(self)

    @property
    def places(self) -> list[Place]:
        """The place of each run."""
        folds: list[Any] = [(number, self.folds) for number in range(1, self.folds + 1)] or [None]
        varied = product(self.seeds, self.subset_seeds or [None], folds)
        return [Place(self.corpus, self.size, self.tagger, self.arm, self.ratio, *some) for some in varied]


@dataclass(frozen=True)
class KnownPlan:
    """The plans of experiments, as far as they are known, and the places of all runs that are done."""

    arms: tuple[PlannedArm, ...] = ()
    tables: tuple[TablePlan, ...] = ()
    at_least: bool = False
    done: frozenset[Place] = frozenset()
    without_plan: tuple[str, ...] = ()

    @cached_property
    def count(self) -> RunCount | None:
        """The number of runs, if a plan is known."""
        places = {place for arm in self.arms for place in arm.places}
        return RunCount(len(places & self.done), len(places), self.at_least) if self.arms else None

    @property
    def unknown(self) -> str:
        """The names of those whose plan is not known, beside others whose plan is; empty without any."""
        return ", ".join(self.without_plan) if self.count else ""

    @cached_property
    def seeds(self) -> Mapping[tuple[object, ...], set[tuple[int | None, int]]]:
        """The draws and seeds of each arm, under the names of reports."""
        found: dict[tuple[object, ...], set[tuple[int | None, int]]] = defaultdict(set)
        for arm in self.arms:
            own = {(place.subset_seed, place.seed) for place in arm.places}
            for name in [f"{arm.corpus} on {test}" for test in arm.tests] or [arm.corpus]:
                found[name, arm.size, arm.tagger, arm.arm, arm.ratio] |= own
        return found


def write_known_plan(folder: Path, runs: Iterable[RunSpec], tables: Sequence[TablePlan], *, at_least: bool) -> None:
    """Put the runs of a plan that are known, and its tables, beside its records, if they differ from what is there."""
    by_arm: dict[tuple[str, int, str, str, float], list[RunSpec]] = defaultdict(list)
    for run in runs:
        by_arm[Place.of(run.labels())[:5]].append(run)
    arms = []
    for place, some in by_arm.items():
        seeds = tuple(dict.fromkeys(run.seed for run in some))
        draws = tuple(dict.fromkeys(run.split.subset_seed for run in some if run.split.subset_seed is not None))
        split = some[0].split
        arm = PlannedArm(*place, seeds, draws, split.fold[1] if split.fold else 0, tuple(split.tests))
        arms.append({name: value for name, value in asdict(arm).items() if value or name == "ratio"})
    lines = b",\n".join(map(orjson.dumps, arms))
    parts = orjson.dumps(at_least), orjson.dumps([asdict(table) for table in tables]), lines
    content = b'{"at_least": %b,\n"tables": %b,\n"arms": [\n%b\n]}\n' % parts
    write_file(folder / PLAN_FILE, content)


def read_known_plan(paths: Iterable[str | Path]) -> KnownPlan:
    """Read what the folders of experiments say of their plans.

    Args:
        paths: folders with a ``runs.jsonl``, or such files: what `read_run_records` takes.

    Returns:
        The runs that the plans had when they were last run, which of them are done, and the tables that plans ask for.
        Of records of others the plan is not known.

    Raises:
        InputError: a plan is faulty.

    Example:
        >>> read_known_plan(["other/runs.jsonl"]).without_plan
        ('other/runs.jsonl',)
    """
    arms: dict[PlannedArm, None] = {}
    tables: list[TablePlan] = []
    done: set[Place] = set()
    without: list[str] = []
    at_least = False
    for path in map(Path, paths):
        done |= places_of(path)
        file = (path if path.is_dir() else path.parent) / PLAN_FILE
        if not file.is_file() or not (path.is_dir() or path.name == RECORDS_FILE):
            without.append(str(path))
            continue
        try:
            value = orjson.loads(file.read_bytes())
            arms |= {construct(PlannedArm, "an arm", with_tuples(arm)): None for arm in value["arms"]}
            tables += [construct(TablePlan, "a table", with_tuples(table)) for table in value["tables"]]
            at_least |= bool(value["at_least"])
        except (ValueError, LookupError, AttributeError, TypeError, ParameterError, UnknownNameError) as error:
            message = f"is not the plan as an experiment writes it ({error})"
            raise InputError(message, path=str(file), remedy="run the experiment again") from None
    return KnownPlan(tuple(arms), tuple(tables), at_least, frozenset(done), tuple(without))
