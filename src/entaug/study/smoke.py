"""The smoke test of a plan: every arm once, on a few sentences, before hours of computation."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from entaug.config.params import parameters
from entaug.methods import METHODS
from entaug.study.plan import CorpusPlan, DrawnPart, MethodPlan, Plan, TaggerPlan
from entaug.study.runner import ExperimentProgress, ProgressCallback, run_experiment
from entaug.taggers.base import TaggerTrainingConfig

__all__ = ["smallest_plan", "smoke_test"]

_SIZE = 24  # gold sentences: enough for most corpora to have two mentions of a type
_HELD_OUT = 8  # sentences of each test, development and unlabelled part
_STEPS = 2


def smoke_test(plan: Plan, *, progress: ProgressCallback = lambda _: None) -> ExperimentProgress:
    """Execute each arm of a plan once in its smallest form, in a temporary folder that is deleted afterwards."""
    # It finds faults of the plan, missing models and insufficient memory within minutes. The scores mean nothing.
    with tempfile.TemporaryDirectory(prefix="entaug-smoke-test-") as folder:
        return run_experiment(smallest_plan(plan, Path(folder)), jobs=1, progress=progress)


def smallest_plan(plan: Plan, output: Path) -> Plan:
    """Reduce a plan: one seed, few sentences, two optimizer steps, one new sentence per gold sentence."""
    # Corpora, taggers, teachers, methods, the cells of grids and the test files stay; methods train for one epoch and
    # have one attempt at each sentence.
    smallest = replace(
        plan,
        output=output,
        seeds=plan.seeds[:1],
        amounts=(1,),
        training=_training(plan.training),
        corpora=tuple(map(_corpus, plan.corpora)),
        taggers=tuple(map(_tagger, plan.taggers)),
        teachers=tuple(
            replace(teacher, size=1, tagger=teacher.tagger and _tagger(teacher.tagger)) for teacher in plan.teachers
        ),
        methods=tuple(map(_method, plan.methods)),
    )
    object.__setattr__(smallest, "path", plan.path)
    object.__setattr__(smallest, "lines", plan.lines)
    return smallest


def _training(training: TaggerTrainingConfig) -> TaggerTrainingConfig:
    return replace(training, steps=_STEPS, batch_size=min(training.batch_size, 4))


def _tagger(tagger: TaggerPlan) -> TaggerPlan:
    return replace(tagger, training=_training(tagger.training), by_size={})


def _corpus(corpus: CorpusPlan) -> CorpusPlan:
    if corpus.mix:
        return replace(corpus, missing_types="allow")
    part = DrawnPart(rest=_HELD_OUT)
    return replace(
        corpus,
        test=part if isinstance(corpus.test, DrawnPart) else corpus.test,
        dev=corpus.dev and part,
        unlabelled=corpus.unlabelled and part,
        max_test=_HELD_OUT,
        sizes=(_SIZE,),
        subset="progressive",
        subset_seed=corpus.subset_seeds[0],
        missing_types="allow",  # a few sentences rarely have all types
        dev_in_test="allow",
    )


def _method(method: MethodPlan) -> MethodPlan:
    known = {parameter.name for parameter in parameters(METHODS[method.name])} if method.makes_sentences else set()
    fewest: dict[str, Any] = {name: 1 for name in ("epochs", "max_attempts") if name in known}
    by_corpus = {name: {**params, **fewest} for name, params in method.by_corpus.items()}
    return method.with_(amounts=(1,), params={**method.params, **fewest}, by_corpus=by_corpus)
