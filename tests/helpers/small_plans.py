"""Plans of experiments in their smallest form: each arm once, so that a test can execute all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from entaug.config.params import parameters
from entaug.methods import METHODS
from entaug.study.plan import CorpusPlan, DrawnPart, MethodPlan, Plan, ScaledTraining, TaggerPlan

HELD_OUT = 8  # sentences of each test, development and unlabelled part
STEPS = 2


def smallest_plan(plan: Plan, output: Path, size: int = 24) -> Plan:
    """Reduce a plan: one seed, few sentences, two optimizer steps, one new sentence per gold sentence."""
    # Corpora, taggers, teachers, methods, the cells of grids and the test files stay; methods train for one epoch and
    # have one attempt at each sentence.
    return replace(
        plan,
        output=output,
        seeds=plan.seeds[:1],
        ratios=(1,),
        training=_fewest_steps(plan.training),
        corpora=tuple(_smallest_corpus(corpus, size) for corpus in plan.corpora),
        taggers=tuple(map(_smallest_tagger, plan.taggers)),
        teachers=tuple(
            replace(teacher, size=1, tagger=teacher.tagger and _smallest_tagger(teacher.tagger))
            for teacher in plan.teachers
        ),
        methods=tuple(map(_smallest_method, plan.methods)),
    )


def _fewest_steps(training: ScaledTraining) -> ScaledTraining:
    return replace(training, steps=STEPS, batch_size=min(training.batch_size, 4))


def _smallest_tagger(tagger: TaggerPlan) -> TaggerPlan:
    return replace(tagger, training=_fewest_steps(tagger.training))


def _smallest_corpus(corpus: CorpusPlan, size: int) -> CorpusPlan:
    if corpus.mix:
        return replace(corpus, missing_types="allow")
    part = DrawnPart(rest=HELD_OUT)
    return replace(
        corpus,
        test=part if isinstance(corpus.test, DrawnPart) else corpus.test,
        dev=corpus.dev and part,
        unlabelled=corpus.unlabelled and part,
        max_test=None if corpus.folds else HELD_OUT,
        folds=corpus.folds and 2,
        sizes=(size,),
        subset_ids=None,
        subset="progressive",
        subset_seed=corpus.subset_seeds[0],
        missing_types="allow",  # a few sentences rarely have all types
    )


def _smallest_method(method: MethodPlan) -> MethodPlan:
    known = {parameter.name for parameter in parameters(METHODS[method.name])} if method.makes_sentences else set()
    fewest: dict[str, Any] = {name: 1 for name in ("epochs", "max_attempts") if name in known}
    by_corpus = {name: {**params, **fewest} for name, params in method.by_corpus.items()}
    return replace(method, ratios=(1,), params={**method.params, **fewest}, by_corpus=by_corpus)
