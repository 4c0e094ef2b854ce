"""One choice of a recipe: a first training, the design, the trainings of the folds, the final training."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from entaug._version import __version__
from entaug.backends.compute import compute_settings
from entaug.backends.config import TrainingProgress
from entaug.errors import EntaugError, InputError, MissingExtraError, MissingModelError, ParameterError
from entaug.methods import create_augmenter
from entaug.metrics.span_f1 import score
from entaug.study.auto.catalogue import GOLD, RECIPES, TEACHER, Recipe, applicable_recipes
from entaug.study.auto.folds import default_steps, partition
from entaug.study.auto.inputs import AutoInputs
from entaug.study.auto.output import write_output
from entaug.study.auto.search_size import FINALISTS, TEACHER_SIZE, SearchSize, designs, largest_affordable
from entaug.study.auto.selection import Gain, Outcome, choose, estimate_gains, prior_gains
from entaug.study.auto.summary import AutoSummary
from entaug.study.auto.tracking import OVERHEAD, STUDENT, TEACHER_ENCODER, ProgressCallback, Tracker
from entaug.study.auto.trainings import FoldRunner, Trainer, TrainingSets, sample_sentences
from entaug.study.auto.workspace import TrainingKey, Workspace
from entaug.taggers.base import TrainableTagger, load_tagger

__all__ = ["Search"]

_TRIAL_STEPS = 8  # of a teacher, to say how long it will take
_LARGER = 2  # times the size on disk from which on a teacher counts as larger than the tagger
_LARGER_TEACHER = "a teacher with a larger encoder gained twice as much on other corpora: --teacher-encoder NAME"
_FIRST, _TEACHER = "final-0", "final-teacher"
_clock = time.monotonic


class Search:
    """The choice of a recipe for a corpus, and the final training."""

    def __init__(
        self,
        arguments: dict[str, Any],
        inputs: AutoInputs,
        output: Path,
        *,
        budget: float | None,
        force: bool,
        progress: ProgressCallback,
    ) -> None:
        self.arguments = arguments
        self.inputs = inputs
        self.output = output
        self.budget = budget
        self.notes = list(inputs.notes)
        self.workspace = Workspace(output, self._key(), force=force)
        self.steps = arguments["steps"] or default_steps(len(inputs.gold))
        self.tracker = Tracker(progress)
        methods = {"mr": {"mentions": list(arguments["mentions"])}} if arguments["mentions"] else {}
        teacher_encoder = arguments["teacher_encoder"]
        self.trainer = Trainer(
            tagger=arguments["tagger"],
            params={"encoder": arguments["encoder"]},
            has_probabilities=True,
            teacher_params=teacher_encoder and {"encoder": teacher_encoder},
            seed=arguments["seed"],
            methods=methods,
            held_out=inputs.held_out,
        )

    def _key(self) -> str:
        """Names everything that the result depends on, but for the budget, which is noted when it has been used."""
        compute = asdict(compute_settings())
        files = list(self.inputs.digests.values())
        value = [__version__, files, self.arguments, compute["device"], compute["precision"]]
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]

    def execute(self) -> AutoSummary:
        """Choose, train and write the result."""
        self._plan_all()
        first = self._first_training()
        recipes = self._recipes()
        teacher_cost = self._first_teacher(first["seconds"]) if self.trainer.has_own_teacher(recipes) else 0.0
        design = self._design([recipe.cost for recipe in recipes], first["seconds"], teacher_cost)
        recipes = recipes[: design.recipes]
        gains, gold_f1, teacher_f1 = self._measure(recipes, design)
        chosen = choose(gains)
        recipe = None if chosen is None else RECIPES[chosen.recipe]
        self.tracker.plan(*self._rest(SearchSize(0, len(recipes), 0), recipes, recipe))
        augmented, tagger = self._train_final(recipe)
        summary = AutoSummary(
            input=self.arguments["train"],
            output=str(self.output),
            sentences=len(self.inputs.gold),
            augmented=len(augmented),
            recipe=recipe.name if recipe else GOLD,
            design=design,
            measured_on=("cross-validation" if self.inputs.dev is None else "dev") if design.is_measured else "nothing",
            steps=self.steps,
            gold_f1=gold_f1,
            teacher_f1=teacher_f1,
            gains=gains,
            files={Path(name).name: digest for name, digest in self.inputs.digests.items()},
            notes=self.notes,
        )
        self.tracker.plan({})
        self.tracker.start("writing the report", 0)
        pinned = {"recipes": [recipe.name for recipe in recipes], "repeats": design.repeats or None}
        pinned["folds"] = design.folds if self.inputs.dev is None or not design.is_measured else None
        write_output(self.output, self.inputs, augmented, tagger, summary, {**self.arguments, **pinned})
        shutil.rmtree(self.workspace.folder, ignore_errors=True)
        return summary

    # ----------------------------------------------------------------------------------------------------------- time

    def _plan_all(self) -> None:
        """Plan the whole, unless its design depends on how long the first training takes, and try a teacher's pace."""
        if self.budget is not None and self.arguments["folds"] != 0:
            return
        recipes = applicable_recipes(
            self.arguments["recipes"],
            has_unlabelled=bool(self.inputs.unlabelled),
            has_probabilities=True,
            shapes=self.inputs.shapes,
        )[0]
        has_teacher = self.trainer.has_own_teacher(recipes)
        design = self._candidates(len(recipes))[-1]
        priors = {recipe.name: recipe.prior(is_teacher_larger=has_teacher) for recipe in recipes}
        steps, extra = self._rest(design, recipes, _likely_recipe(priors, design))
        ends = {STUDENT: self.steps, TEACHER_ENCODER: self.steps * has_teacher}
        self.tracker.plan(Counter(steps) + Counter(ends), extra)
        if has_teacher and self.workspace.note("teacher") is None:
            self.tracker.start("measuring how long a step of the teacher takes", 0)
            self._try_teacher()

    def _try_teacher(self) -> None:
        """Measure the seconds that a step of the teacher takes."""
        times: list[float] = []
        config = self.trainer.config(_TRIAL_STEPS, 0, 0)
        params = self.trainer.teacher_params
        self.trainer.train(self.inputs.gold, config, progress=lambda *_: times.append(_clock()), params=params)
        if len(times) > 1:
            self.tracker.set_pace(TEACHER_ENCODER, (times[-1] - times[0]) / (len(times) - 1))

    def _rest(
        self, design: SearchSize, recipes: Sequence[Recipe], final: Recipe | None
    ) -> tuple[dict[str, int], float]:
        """The steps of the folds and of the final training by encoder, and further work, see `Tracker.plan`."""
        has_teacher = self.trainer.has_own_teacher(recipes)
        fold_steps = self._fold_steps()
        costs = [recipe.cost for recipe in recipes]
        students = teachers = 0
        extra = 0.0
        if design.is_measured:
            students = round(design.num_trainings([1] * len(recipes))) * fold_steps
            teachers = design.folds * design.repeats * fold_steps * has_teacher
            extra = design.num_trainings(costs) * fold_steps - students
        if final is not None:
            others = TEACHER_SIZE - 1 if final.has_teacher and not has_teacher else 0
            students += (1 + others) * self.steps
            extra += (final.cost - 1) * self.steps
        return {STUDENT: students, TEACHER_ENCODER: teachers}, extra

    def _fold_steps(self) -> int:
        """The steps of a training on a part of the gold sentences, approximately."""
        return self.steps if self.inputs.dev is not None else self._steps_of(round(len(self.inputs.gold) * 0.75))

    # ---------------------------------------------------------------------------------------------- what can be tried

    def _first_training(self) -> dict[str, Any]:
        """Train on all gold sentences: the tagger that is kept if nothing helps, and a measure of the time it takes."""
        note = self.workspace.note("first")
        folder = self.workspace.folder / _FIRST
        if note is None or not folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
            start = _clock()
            callback = self.tracker.start("training on all gold sentences", self.steps)
            tagger = self.trainer.train(self.inputs.gold, self.trainer.config(self.steps, 0, 0), progress=callback)
            seconds = _clock() - start
            tagger.save(folder)
            note = {"seconds": seconds, "has_probabilities": _has_probabilities(tagger)}
            self.workspace.write_note("first", note)
        else:
            self.tracker.skip(self.steps)
            self.tracker.set_pace(STUDENT, note["seconds"] / self.steps)
        self.trainer = replace(self.trainer, has_probabilities=note["has_probabilities"])
        return note

    def _first_teacher(self, seconds: float) -> float:
        """Train a teacher with another encoder on all gold sentences."""
        note = self.workspace.note("teacher")
        folder = self.workspace.folder / _TEACHER
        if note is None or not folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
            start = _clock()
            callback = self.tracker.start("training the teacher on all gold sentences", self.steps, TEACHER_ENCODER)
            teacher = self.trainer.train_teacher(self.inputs.gold, self.steps, 0, callback)
            note = {"cost": (_clock() - start) / seconds}
            teacher.save(folder)
            self.workspace.write_note("teacher", note)
        else:
            self.tracker.skip(self.steps, TEACHER_ENCODER)
            self.tracker.set_pace(TEACHER_ENCODER, seconds * note["cost"] / self.steps)
        cost: float = note["cost"]
        return cost

    def _recipes(self) -> list[Recipe]:
        """The recipes that can be tried, and notes on the others."""
        names = self.arguments["recipes"]
        wanted = {recipe.method for recipe in RECIPES.values() if names is None or recipe.name in names}
        available = [method for method in wanted if method and self._is_available(method)]
        recipes, notes = applicable_recipes(
            names,
            has_unlabelled=bool(self.inputs.unlabelled),
            has_probabilities=self.trainer.has_probabilities,
            shapes=self.inputs.shapes,
            available=available,
        )
        self.notes += notes
        if self.inputs.unlabelled and self.trainer.teacher_params is None:
            self.notes.append(_LARGER_TEACHER)
        if not self.trainer.has_probabilities:
            self.notes.append(f"{self.trainer.tagger} gives no probabilities: only recipes with hard labels are tried")
        return recipes

    def _is_available(self, method: str) -> bool:
        """Whether the models of a method are on this machine, and serve the language of the corpus."""
        augmenter = create_augmenter(method, **self.trainer.methods.get(method, {}))
        try:
            augmenter.load().check_languages(self.inputs.gold)
        except (MissingModelError, MissingExtraError):
            return False
        except InputError as error:
            self.notes.append(error.message)
            return False
        return True

    def _design(self, costs: Sequence[float], seconds: float, teacher_cost: float) -> SearchSize:
        """The design; what the budget allows is decided once and noted, so that a resumed run keeps it."""
        num_recipes = len(costs)
        if (note := self.workspace.note("design")) is None:
            candidates = self._candidates(num_recipes)
            if self.budget is None:
                design, minutes = candidates[-1], 0.0
            else:
                cost = seconds * OVERHEAD * self._fold_steps() / self.steps
                # The first training, the final teacher, and the other final trainings.
                ends = seconds * (1 + teacher_cost + OVERHEAD * (TEACHER_SIZE - 1 + max(costs, default=1)))
                affordable = largest_affordable(candidates, (60 * self.budget - ends) / cost, costs, teacher_cost)
                design = affordable or SearchSize(0, num_recipes, 0)
                least = candidates[0].num_trainings(costs, teacher_cost) * cost + ends
                minutes = least / 60 if affordable is None else 0.0
            note = {**design.to_dict(), "least_minutes": minutes}
            self.workspace.write_note("design", note)
        if note["least_minutes"]:
            self.notes.append(
                "the budget is too small to measure the gain of a recipe: that takes about "
                f"{note['least_minutes']:.0f} minutes"
            )
        return SearchSize(note["folds"], note["recipes"], note["repeats"])

    def _candidates(self, num_recipes: int) -> list[SearchSize]:
        """The designs that the arguments allow, from the smallest to the largest."""
        folds, repeats = self.arguments["folds"], self.arguments["repeats"]
        has_dev = self.inputs.dev is not None
        candidates = designs(num_recipes, has_dev=has_dev) if folds != 0 else [SearchSize(0, num_recipes, 0)]
        return [
            replace(design, folds=design.folds if has_dev or not folds else folds, repeats=repeats or design.repeats)
            for design in candidates
        ]

    def _steps_of(self, num_sentences: int) -> int:
        return self.arguments["steps"] or default_steps(num_sentences)

    # --------------------------------------------------------------------------------------------------- measurements

    def _measure(self, recipes: Sequence[Recipe], design: SearchSize) -> tuple[list[Gain], float | None, float | None]:
        """Train on the folds, and estimate the gains of the recipes, and the F1 of gold alone and of the teacher."""
        gains: list[Gain] = []
        own_teacher = self.trainer.has_own_teacher(recipes)
        is_larger = own_teacher and self._size_of(_TEACHER) >= _LARGER * self._size_of(_FIRST)
        priors = {recipe.name: recipe.prior(is_teacher_larger=is_larger) for recipe in recipes}
        if not design.is_measured:
            return prior_gains(priors), None, None
        outcomes: list[Outcome] = []
        self.tracker.plan(*self._rest(design, recipes, _likely_recipe(priors, design)))
        for repeat in range(design.repeats):
            tried = recipes
            if repeat:
                best = sorted(gains, key=lambda gain: -gain.expected)[:FINALISTS]
                names = {gain.recipe for gain in best}
                tried = [recipe for recipe in recipes if recipe.name in names]
            outcomes.append(self._measure_once(tried, design, repeat))
            gains = estimate_gains(outcomes, priors)
        gold_f1 = _mean_f1([counts for outcome in outcomes for counts in outcome.gold])
        teacher_f1 = _mean_f1([outcome.recipes[TEACHER] for outcome in outcomes]) if own_teacher else None
        return gains, gold_f1, teacher_f1

    def _size_of(self, name: str) -> int:
        """The size in bytes of a saved tagger."""
        return sum(file.stat().st_size for file in (self.workspace.folder / name).rglob("*") if file.is_file())

    def _measure_once(self, recipes: Sequence[Recipe], design: SearchSize, repeat: int) -> Outcome:
        """One repetition: every held-out sentence is predicted once by each recipe."""
        import numpy as np

        gold, dev = self.inputs.gold, self.inputs.dev
        if dev is None:
            parts = partition(gold, design.folds, self.arguments["seed"] + repeat)
            held_out = gold
        else:
            parts, held_out = [list(range(len(dev)))], dev
        folds = np.zeros(len(held_out))
        sizes = {GOLD: TEACHER_SIZE, **{recipe.name: 1 for recipe in recipes}}
        if self.trainer.has_own_teacher(recipes):
            sizes[TEACHER] = 1
        counts = {
            (name, member): np.zeros((len(held_out), 3)) for name, size in sizes.items() for member in range(size)
        }
        for fold, part in enumerate(parts):
            folds[part] = fold
            predicted = [held_out[i] for i in part]
            inside = set(part) if dev is None else set()
            train = [sentence for i, sentence in enumerate(gold) if i not in inside]
            steps = self._steps_of(len(train))
            most = steps * self.trainer.batch_size
            runner = FoldRunner(
                self.trainer,
                self.workspace,
                repeat,
                fold,
                train,
                predicted,
                sample_sentences(self.inputs.unlabelled, most, self.arguments["seed"]),
                steps,
            )
            where = f"fold {fold + 1} of {len(parts)}" if dev is None else "dev"
            where += f", repetition {repeat + 1} of {design.repeats}" if design.repeats > 1 else ""

            def on_training(key: TrainingKey, where: str = where, steps: int = steps) -> TrainingProgress:
                return self.tracker.start(f"{where}: {key.recipe}", steps, *_work(key, steps))

            missing = {(key.recipe, key.member) for key in runner.missing(recipes)}
            for name, member in counts.keys() - missing:
                self.tracker.skip(steps, *_work(TrainingKey(repeat, fold, name, member), steps))
            try:
                runner.run(recipes, on_training)
            except EntaugError as error:
                error.message += f" (in {where})"
                raise
            for (recipe, member), value in counts.items():
                mentions = self.workspace.predictions[TrainingKey(repeat, fold, recipe, member)]
                pairs = zip(predicted, mentions, strict=True)
                scores = score(predicted, [sentence.with_(mentions=found) for sentence, found in pairs])
                value[part] = [tuple(one) for one in scores.sentences]
        gold_counts = np.stack([counts[GOLD, member] for member in range(TEACHER_SIZE)])
        return Outcome(folds, gold_counts, {name: counts[name, 0] for name in sizes if name != GOLD})

    # ------------------------------------------------------------------------------------------------- final training

    def _train_final(self, recipe: Recipe | None) -> tuple[list[Any], Path]:
        """Train on all gold sentences with the chosen recipe."""
        first = self.workspace.folder / _FIRST
        if recipe is None:
            return [], first
        gold, steps = self.inputs.gold, self.steps
        unlabelled = sample_sentences(self.inputs.unlabelled, steps * self.trainer.batch_size, self.arguments["seed"])
        phase = f"final training: {recipe.name}"

        def train_teachers() -> list[TrainableTagger]:
            if self.trainer.teacher_params is not None:
                return [load_tagger(self.workspace.folder / _TEACHER)]
            members = range(1, TEACHER_SIZE if self.trainer.has_probabilities else 1)
            others = [
                self.trainer.train(
                    gold, self.trainer.config(steps, 0, member), progress=self.tracker.start("final teacher", steps)
                )
                for member in members
            ]
            return [load_tagger(first), *others]

        pools = TrainingSets(self.trainer, self.workspace, "final", 0, steps)
        pools.prepare([recipe], gold, self.inputs.dev or [], unlabelled, train_teachers)
        augmented = pools.sentences(recipe)
        folder = self.workspace.folder / "student"
        if not folder.is_dir():
            config = self.trainer.config(steps, 0, 0, recipe)
            self.tracker.plan({STUDENT: steps})
            self.trainer.train(gold, config, augmented, self.tracker.start(phase, steps)).save(folder)
        return augmented, folder


def _likely_recipe(priors: Mapping[str, float], design: SearchSize) -> Recipe | None:
    """The recipe that is chosen if nothing is measured; otherwise the one with the highest prior gain."""
    if design.is_measured:
        return RECIPES[max(priors, key=lambda name: priors[name])]
    chosen = choose(prior_gains(priors))
    return None if chosen is None else RECIPES[chosen.recipe]


def _work(key: TrainingKey, steps: int) -> tuple[str, float]:
    """The encoder of a training, and other work before it, see `Tracker.plan`."""
    encoder = TEACHER_ENCODER if key.recipe == TEACHER else STUDENT
    return encoder, (RECIPES[key.recipe].cost - 1) * steps if key.recipe in RECIPES else 0.0


def _mean_f1(counts: Sequence[Any]) -> float:
    """The mean micro-F1, from 0 to 100, of taggers with match counts (correct, predicted, gold) by sentence."""
    values = [2 * one[:, 0].sum() / max(1, one[:, 1:].sum()) for one in counts]
    return round(100 * float(sum(values)) / len(values), 4)


def _has_probabilities(tagger: TrainableTagger) -> bool:
    """Whether a trained tagger can give soft labels."""
    try:
        return hasattr(tagger, "relation_probabilities") or tagger.tag_probabilities([]) is not None
    except ParameterError:
        return False
