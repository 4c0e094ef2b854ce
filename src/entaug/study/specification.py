"""The specification of a run: everything that its result depends on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from entaug._version import __version__
from entaug.backends.compute import compute_settings
from entaug.study.data import DataSplit, file_digest, short_hash
from entaug.study.plan import MethodPlan, TaggerPlan, TeacherPlan
from entaug.study.values import PATIENCE, copies_for
from entaug.taggers.base import TaggerTrainingConfig

__all__ = ["RunSpec", "training_identity"]


@dataclass(frozen=True)
class RunSpec:
    """Specification of a run: everything that its result depends on."""

    split: DataSplit
    tagger: TaggerPlan
    arm: str
    amount: float
    seed: int
    method: MethodPlan | None
    threads: int
    folder: Path
    parts: tuple[MethodPlan, ...] = ()
    teachers: tuple[TeacherPlan, ...] = (TeacherPlan(),)

    @property
    def training(self) -> TaggerTrainingConfig:
        """The hyperparameters of the training: those of the tagger, and what the method changes."""
        changes = dict(self.method.training) if self.method else {}
        return replace(self._tagger_training, **changes, steps=self.steps, seed=self.seed)

    @property
    def search(self) -> str:
        """Selection of the amount: ``"patience"`` or ``"grid"``, or ``"list"`` where there is none."""
        if self.method is None:
            return "list"
        if self.method.group:
            return "grid"
        return PATIENCE if self.method.amounts == PATIENCE else "list"

    @property
    def own_teacher(self) -> TeacherPlan | None:
        """The teacher that is the arm itself, if it is one."""
        if self.method is not None:
            return None
        return next((teacher for teacher in self.teachers if teacher.label == self.arm), None)

    def teacher_of(self, part: MethodPlan) -> TeacherPlan | None:
        """The teacher that labels the sentences of a method."""
        if part.labels == "method":
            return None
        return next(t for t in self.teachers if part.teacher in (None, t.label))

    def teacher_members(self, teacher: TeacherPlan) -> list[tuple[TaggerPlan, int]]:
        """The taggers of a teacher, each with the seed of its training."""
        first = self.seed if teacher.seeds == "own" else 1
        return [(teacher.tagger or self.tagger, first + number) for number in range(teacher.size)]

    def _teacher_config(self, teacher: TeacherPlan) -> dict[str, Any]:
        members = self.teacher_members(teacher)
        tagger = members[0][0]
        training = tagger.training_of(self.split.size)
        return {
            "seeds": [seed for _, seed in members],
            "tagger": {"name": tagger.name, "params": dict(tagger.params)},
            "steps": training.total_steps(self.split.size),
            "training": _plain(training),
        }

    @property
    def steps(self) -> int:
        """Number of optimizer steps."""
        # It does not depend on how many sentences a method really returns, so all arms of an amount have equal steps.
        return self._tagger_training.total_steps(self.split.size + self._planned)

    @property
    def _planned(self) -> int:
        """The number of new sentences that the amount stands for."""
        return round(self.amount * self.split.size)

    @property
    def _tagger_training(self) -> TaggerTrainingConfig:
        return self.tagger.training_of(self.split.size, self._planned)

    def config(self) -> dict[str, Any]:
        """The configuration that the result depends on, without labels."""
        split, tagger, method, compute = self.split, self.tagger, self.method, compute_settings()
        arm: Any = "gold" if self.arm in ("gold", "gold-steps") else self.arm
        if self.own_teacher:
            arm = {"ensemble": self._teacher_config(self.own_teacher)}
        if method is not None:
            parts = [self._part_config(part) for part in self.parts]
            arm = {"combine": parts} if method.combine else parts[0]
        return {
            "arm": arm,
            # Gold trained for more steps is the same run, whichever amount the steps come from.
            "amount": self.amount if arm != "gold" else 0,
            "steps": self.steps,
            "seed": self.seed,
            "train": file_digest(split.train),
            "dev": file_digest(split.dev) if split.dev else None,
            "test": file_digest(split.test),
            **({"tests": {name: file_digest(path) for name, path in split.tests.items()}} if split.tests else {}),
            "tagger": {"name": tagger.name, "params": dict(tagger.params), "overlap": split.corpus.overlap},
            "training": _plain(self.training),
            "threads": self.threads,
            "computed": {"device": compute.device, "precision": compute.precision},
            "entaug": __version__,
        }

    def amount_of(self, part: MethodPlan) -> float:
        """The amount of a method: that of the run, or for a method that is combined with others its own."""
        return self.amount if part is self.method or part == self.method else float(part.amounts[0])

    def _part_config(self, part: MethodPlan) -> dict[str, Any]:
        source: dict[str, Any]
        if part.is_self_training:
            source = {"unlabelled": file_digest(self.split.unlabelled) if self.split.unlabelled else None}
        else:
            source = {"method": part.name, "params": part.identity}
            source["copies"] = copies_for(self.amount_of(part), part.amounts)
        if teacher := self.teacher_of(part):
            source |= {"labels": part.labels, "teacher": self._teacher_config(teacher)}
        if part is not self.method:
            source["amount"] = self.amount_of(part)
        return source

    @cached_property
    def key(self) -> str:
        """Identifier of the configuration."""
        return short_hash(self.config())

    def labels(self) -> dict[str, Any]:
        """The fields of the record that say where the run belongs in the plan."""
        return {
            "corpus": self.split.corpus.name,
            "size": self.split.size,
            "tagger": self.tagger.label,
            "arm": self.arm,
            "amount": self.amount,
            "seed": self.seed,
            "subset_seed": self.split.subset_seed,
            "group": self.method.group if self.method else "",
            "leaks": self.split.leaks,
        }


def training_identity(training: TaggerTrainingConfig) -> dict[str, Any]:
    """The hyperparameters that are given, by which trainings are told apart."""
    values = asdict(training)
    if training.warmup_steps is None:
        del values["warmup_steps"]
    return values


def _plain(training: TaggerTrainingConfig) -> dict[str, Any]:
    """The hyperparameters without what stands elsewhere in a configuration."""
    return {k: v for k, v in training_identity(training).items() if k not in ("seed", "steps", "epochs")}
