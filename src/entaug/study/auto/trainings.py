"""The trainings of a fold: gold-only taggers, which together are the teacher, and one student for each recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from entaug.backends.config import TrainingProgress
from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.methods import METHODS, create_augmenter
from entaug.study.auto.catalogue import GOLD, TEACHER, Recipe
from entaug.study.auto.search_size import TEACHER_SIZE
from entaug.study.auto.workspace import TrainingKey, Workspace
from entaug.taggers.base import TaggerTrainingConfig, TrainableTagger, create_tagger
from entaug.taggers.ensemble import EnsembleTagger

__all__ = ["FoldRunner", "Trainer", "TrainingSets", "sample_sentences", "strip_labels"]

_SEEDS_PER_REPEAT = 100


@dataclass(frozen=True)
class Trainer:
    """Trains taggers on gold sentences and what recipes add to them."""

    tagger: str
    params: Mapping[str, Any]
    has_probabilities: bool
    teacher_params: Mapping[str, Any] | None = None
    seed: int = 0
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    held_out: Sequence[Sentence] = ()
    batch_size: int = 8

    def has_own_teacher(self, recipes: Sequence[Recipe]) -> bool:
        """Whether a teacher with parameters of its own labels sentences of any of some recipes."""
        return self.teacher_params is not None and any(recipe.has_teacher for recipe in recipes)

    def config(self, steps: int, repeat: int, member: int, recipe: Recipe | None = None) -> TaggerTrainingConfig:
        """The hyperparameters of a training."""
        number = TEACHER_SIZE if recipe else member
        return TaggerTrainingConfig(
            steps=steps,
            batch_size=self.batch_size,
            seed=self.seed + _SEEDS_PER_REPEAT * repeat + number,
            schedule=recipe.schedule if recipe else "shuffled",
            gold_learning_rate="same" if recipe else None,
        )

    def train(
        self,
        gold: Sequence[Sentence],
        config: TaggerTrainingConfig,
        augmented: Sequence[Sentence] = (),
        progress: TrainingProgress | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> TrainableTagger:
        """Train a new tagger."""
        tagger = create_tagger(self.tagger, **(self.params if params is None else params))
        return tagger.fit(gold, config=config, progress=progress, augmented=augmented)

    def train_teacher(
        self, gold: Sequence[Sentence], steps: int, repeat: int, progress: TrainingProgress
    ) -> TrainableTagger:
        """Train a teacher with parameters of its own."""
        config = self.config(steps, repeat, TEACHER_SIZE + 1)
        return self.train(gold, config, progress=progress, params=self.teacher_params)

    def augment(
        self, recipe: Recipe, gold: Sequence[Sentence], held_out: Sequence[Sentence], steps: int, repeat: int
    ) -> list[Sentence]:
        """The sentences that the method of a recipe makes of gold sentences."""
        method = recipe.method or ""
        copies = max(1, min(recipe.copies, steps * self.batch_size // len(gold)))
        params = {"copies": copies, "seed": self.seed + repeat, **self.methods.get(method, {})}
        if not METHODS[method].info.has_labels:  # the recipe's teacher labels its sentences
            params["teacher"] = None
        augmenter = create_augmenter(method, **params)
        if "mentions" in params and (held_out or self.held_out):
            augmenter.hold_out([*held_out, *self.held_out])
        try:
            return list(augmenter.fit(gold).augment(gold))
        except InputError as error:
            error.message += f" (in the recipes of {method})"
            raise

    def label(self, teachers: Sequence[TrainableTagger], sentences: Sequence[Sentence]) -> list[Sentence]:
        """Label sentences: with the mean probabilities of the teachers, or with the predictions of the first one."""
        if not sentences:
            return []
        if not self.has_probabilities:
            return teachers[0].predict(sentences)
        ensemble = EnsembleTagger.of(teachers)
        has_relations = hasattr(teachers[0], "relation_probabilities")
        compute: Any = ensemble.relation_probabilities if has_relations else ensemble.tag_probabilities
        return [soft.label(sentence) for soft, sentence in zip(compute(sentences), sentences, strict=True)]


@dataclass
class FoldRunner:
    """Runs the trainings of one fold that are not finished."""

    trainer: Trainer
    workspace: Workspace
    repeat: int
    fold: int
    gold: Sequence[Sentence]
    held_out: Sequence[Sentence]
    unlabelled: Sequence[Sentence]
    steps: int

    def missing(self, recipes: Sequence[Recipe]) -> list[TrainingKey]:
        """The trainings that are not finished."""
        keys = [TrainingKey(self.repeat, self.fold, GOLD, member) for member in range(TEACHER_SIZE)]
        if self.trainer.has_own_teacher(recipes):
            keys.append(TrainingKey(self.repeat, self.fold, TEACHER))
        keys += [TrainingKey(self.repeat, self.fold, recipe.name) for recipe in recipes]
        return [key for key in keys if key not in self.workspace.predictions]

    def run(self, recipes: Sequence[Recipe], on_training: Callable[[TrainingKey], TrainingProgress]) -> None:
        """Run the trainings."""
        missing = self.missing(recipes)
        if not missing:
            return
        pools = TrainingSets(self.trainer, self.workspace, f"{self.repeat}-{self.fold}", self.repeat, self.steps)
        train_teachers = self._train_teacher if self.trainer.has_own_teacher(recipes) else self._train_gold
        pools.prepare(recipes, self.gold, self.held_out, self.unlabelled, lambda: train_teachers(on_training))
        missing_names = {key.recipe for key in self.missing(recipes)}
        if GOLD in missing_names:
            self._train_gold(on_training)
        if TEACHER in missing_names:
            self._train_teacher(on_training)
        for recipe in recipes:
            key = TrainingKey(self.repeat, self.fold, recipe.name)
            if key in self.workspace.predictions:
                continue
            config = self.trainer.config(self.steps, self.repeat, 0, recipe)
            student = self.trainer.train(self.gold, config, pools.sentences(recipe), on_training(key))
            self.workspace.add(key, student.predict(strip_labels(self.held_out)))
        pools.drop()

    def _train_gold(self, on_training: Callable[[TrainingKey], TrainingProgress]) -> list[TrainableTagger]:
        taggers = []
        for member in range(TEACHER_SIZE):
            key = TrainingKey(self.repeat, self.fold, GOLD, member)
            config = self.trainer.config(self.steps, self.repeat, member)
            taggers.append(self.trainer.train(self.gold, config, progress=on_training(key)))
            self._keep(key, taggers[-1])
        return taggers

    def _train_teacher(self, on_training: Callable[[TrainingKey], TrainingProgress]) -> list[TrainableTagger]:
        key = TrainingKey(self.repeat, self.fold, TEACHER)
        teacher = self.trainer.train_teacher(self.gold, self.steps, self.repeat, on_training(key))
        self._keep(key, teacher)
        return [teacher]

    def _keep(self, key: TrainingKey, tagger: TrainableTagger) -> None:
        if key not in self.workspace.predictions:
            self.workspace.add(key, tagger.predict(strip_labels(self.held_out)))


class TrainingSets:
    """The sentences that recipes add to the same gold sentences: each kind is made and labelled once."""

    def __init__(self, trainer: Trainer, workspace: Workspace, name: str, repeat: int, steps: int) -> None:
        self._trainer = trainer
        self._workspace = workspace
        self._name = name
        self._repeat = repeat
        self._steps = steps
        self._pools: dict[str, list[Sentence]] = {}

    def prepare(
        self,
        recipes: Sequence[Recipe],
        gold: Sequence[Sentence],
        held_out: Sequence[Sentence],
        unlabelled: Sequence[Sentence],
        train_teachers: Callable[[], Sequence[TrainableTagger]],
    ) -> None:
        """Make what the recipes need; the teachers are trained only where their labels are not there yet."""
        for method, recipe in {recipe.method: recipe for recipe in recipes if recipe.method}.items():
            make = partial(self._trainer.augment, recipe, gold, held_out, self._steps, self._repeat)
            self._pools[method] = self._workspace.sentences(f"{self._name}.{method}", make)
        teachers: list[TrainableTagger] = []
        for pool in dict.fromkeys(pool for recipe in recipes for pool in _pools_of(recipe) if pool not in self._pools):
            source = unlabelled if pool == "unlabelled" else self._pools[pool.removesuffix("-soft")]

            def make_labelled(source: Sequence[Sentence] = source) -> list[Sentence]:
                if not teachers:
                    teachers.extend(train_teachers())
                return self._trainer.label(teachers, source)

            self._pools[pool] = self._workspace.sentences(f"{self._name}.{pool}", make_labelled)

    def sentences(self, recipe: Recipe) -> list[Sentence]:
        """The sentences that a recipe adds."""
        added = [sentence for pool in _pools_of(recipe) for sentence in self._pools[pool]]
        return added if recipe.soft else [sentence.with_(layout={}) for sentence in added]

    def drop(self) -> None:
        """Delete the files."""
        self._workspace.drop(*(f"{self._name}.{pool}" for pool in self._pools))


def _pools_of(recipe: Recipe) -> Iterator[str]:
    if recipe.unlabelled:
        yield "unlabelled"
    if recipe.method:
        yield f"{recipe.method}-soft" if recipe.soft else recipe.method


def strip_labels(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return sentences without their mentions and further fields."""
    return [Sentence(sentence.tokens, spaces=sentence.spaces) for sentence in sentences]


def sample_sentences(sentences: Sequence[Sentence], most: int, seed: int) -> list[Sentence]:
    """A random sample in the order of the sentences; all of them if there are no more."""
    if len(sentences) <= most:
        return list(sentences)
    return [sentences[i] for i in sorted(Random(f"unlabelled {seed}").sample(range(len(sentences)), most))]
