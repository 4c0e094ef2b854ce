"""The plan of an experiment: the tables and keys of the TOML file are the dataclasses of this module and their fields.

`entaug.study.reading.read_plan` constructs them from a file.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from entaug.config.params import Check, PositiveInt, parameters, validate
from entaug.config.toml_lines import TomlLines
from entaug.core.words import listed_languages
from entaug.errors import ParameterError
from entaug.methods import METHODS, create_augmenter
from entaug.methods.base import Augmenter
from entaug.study.subsets import Strategy
from entaug.taggers.base import TaggerTrainingConfig, TrainableTagger, create_tagger, overlap_of, with_overlap

T = TypeVar("T")

PATIENCE = "patience"
"""The ratios of a method that are chosen by the patience rule."""
BASELINES = ("gold", "gold-steps", "duplicate")
"""The arms without a method."""
ENSEMBLE = "ensemble"
"""The teacher itself as an arm."""
SELF_TRAINING = "selftrain"
"""The method whose new sentences are the unlabelled ones of the corpus."""
_MAX_COPIES = 10  # the largest ratio that the patience rule tries: CASSI, section 3.2.2
_LARGE = 1000  # sentences from which on the patience rule starts with quarters


# ------------------------------------------------------------------------------------------------------- values of keys


def _is_label(value: str) -> bool:
    return bool(value.strip()) and "|" not in value and value.isprintable() and len(value.encode()) <= 100


def _is_corpus_name(value: str) -> bool:
    return _is_label(value) and not re.search(r"[/\\]", value) and not value.startswith(".")


def _are_distinct(values: Collection[object], is_valid: Callable[[Any], bool]) -> bool:
    return bool(values) and all(map(is_valid, values)) and len(set(values)) == len(values)


def _are_seeds(value: Collection[object]) -> bool:
    return _are_distinct(value, lambda seed: type(seed) is int and abs(seed) < 2**63)


def _are_ratios(value: object) -> bool:
    return value == PATIENCE or (
        isinstance(value, tuple) and _are_distinct(value, lambda x: type(x) in (int, float) and 0 < x <= 100)
    )


def _is_corpus(path: Path) -> bool:
    try:
        exists = path.is_file() or path.is_dir()
    except OSError:  # for example a name that is too long
        exists = False
    if not exists:
        raise ParameterError(
            f"there is no file or folder {path}", remedy="paths are relative to the folder of the plan"
        )
    return True


_LABEL = "a text of at most 100 bytes without | and control characters"
_SEEDS = "a list of distinct integers below 2^63"
Label = Annotated[str, Check(_is_label, _LABEL)]
CorpusName = Annotated[str, Check(_is_corpus_name, f"{_LABEL} that can begin a file name: no slashes, no . in front")]
Seeds = Annotated[tuple[int, ...], Check(_are_seeds, _SEEDS)]
SubsetSeeds = Annotated[Any, Check(lambda value: _are_seeds(value if isinstance(value, tuple) else (value,)), _SEEDS)]
Ratios = Annotated[Any, Check(_are_ratios, f'a list of distinct numbers above 0 up to 100, or "{PATIENCE}"')]
Folds = Annotated[int, Check(lambda folds: folds > 1, "an integer of at least 2")]
LanguageCode = Annotated[str, Check(re.compile(r"[a-z]{2,3}([-_][A-Za-z]+)?").fullmatch, "a code as de or de_DE")]
ByCorpus = Annotated[
    Mapping[str, Any],
    Check(lambda tables: all(isinstance(table, dict) for table in tables.values()), "tables of parameters by corpus"),
]
Grid = Annotated[
    Mapping[str, Any],
    Check(lambda grid: all(isinstance(values, list) and values for values in grid.values()), "lists of values by name"),
]
Baselines = Annotated[
    tuple[str, ...],
    Check(
        lambda value: "gold" in value and set(value) <= {*BASELINES, ENSEMBLE},
        f"a list with gold, out of {', '.join((*BASELINES, ENSEMBLE))}",
    ),
]
InputFile = Annotated[Path, Check(_is_corpus, "an existing file or folder")]
"""A corpus: a file, or the folder of a format of folders."""
TestFiles = Annotated[
    Mapping[str, Path],
    Check(
        lambda files: bool(files) and all(_is_corpus_name(name) and _is_corpus(path) for name, path in files.items()),
        "existing files or folders by name",
    ),
]


def patience_ratios(size: int) -> list[float]:
    """The ratios that the patience rule tries, in order."""
    return [*([0.25, 0.5, 0.75] if size >= _LARGE else []), *map(float, range(1, _MAX_COPIES + 1))]


def copies_for(ratio: float, ratios: tuple[float, ...] | str) -> int:
    """The number of copies that are generated at once for a ratio, so that ratios share them."""
    if isinstance(ratios, str):
        return next(step for step in (1, 3, 6, _MAX_COPIES) if step >= ratio)
    return math.ceil(max(ratios))


# --------------------------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True, kw_only=True)
class _Table:
    """Base of the tables of a plan; their keys are its fields."""

    def __post_init__(self) -> None:
        validate(self)
        self._check()

    def _check(self) -> None:
        """Check what involves several keys; overridden by subclasses."""


def with_hidden(instance: T, /, **values: Any) -> T:
    """Set fields of a table that are not keys of the plan."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)
    return instance


@dataclass(frozen=True, kw_only=True)
class DrawnPart(_Table):
    """A development or test set drawn from the sentences of the training file that are in no subset."""

    rest: PositiveInt


@dataclass(frozen=True, kw_only=True)
class CorpusPlan(_Table):
    """One corpus of a plan."""

    name: CorpusName
    train: InputFile | None = None
    language: LanguageCode | None = None
    mix: tuple[str, ...] = ()
    test: InputFile | DrawnPart | TestFiles | None = None
    dev: InputFile | DrawnPart | None = None
    unlabelled: InputFile | DrawnPart | None = None
    max_test: PositiveInt | None = None
    sizes: tuple[float, ...] | None = None
    folds: Folds | None = None
    subset: Strategy = "progressive"
    subset_seed: SubsetSeeds = 0
    overlap: Literal["outermost", "innermost"] | None = None
    taggers: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    missing_types: Literal["error", "allow"] = "error"
    dev_in_test: Literal["error", "allow"] = "error"
    options: Mapping[str, Any] = field(default_factory=dict)

    def includes(self, item: TaggerPlan | MethodPlan) -> bool:
        """Whether a tagger or a method is used on this corpus."""
        labels = self.taggers if isinstance(item, TaggerPlan) else self.methods
        return labels is None or item.label in labels or getattr(item, "group", None) in labels

    @property
    def language_code(self) -> str | None:
        """The ISO 639-1 code of the language, if it is given by one."""
        code = re.split("[-_]", self.language or "")[0]
        return code if len(code) == 2 else None

    @property
    def subset_seeds(self) -> tuple[int, ...]:
        """The seeds of the drawing of subsets."""
        return self.subset_seed if isinstance(self.subset_seed, tuple) else (self.subset_seed,)

    @property
    def test_files(self) -> Mapping[str, Path]:
        """The given test files by name; a single one has the name ""."""
        if isinstance(self.test, Path):
            return {"": self.test}
        return self.test if isinstance(self.test, Mapping) else {}

    def _check(self) -> None:
        own = ("train", "test", "dev", "unlabelled", "sizes", "max_test", "folds", "language")
        if self.mix:
            if given := [name for name in own if getattr(self, name) is not None]:
                message = f"a mixed corpus has its sentences from others, so it takes no {given[0]}"
                raise ParameterError(message, parameter=given[0], remedy="leave it out")
            return
        if self.folds and (self.test is not None or self.max_test is not None):
            message = "folds are tested on each other, so there is no test set"
            raise ParameterError(message, parameter="folds", remedy="leave out folds, or test and max_test")
        for name in ("train",) if self.folds else ("train", "test"):
            if getattr(self, name) is None:
                raise ParameterError(f"a corpus needs {name}", parameter="name", remedy=f'add {name} = "FILE", or mix')
        if self.folds and len(self.subset_seeds) > 1:
            message = "with folds, draws would be tested on different sentences"
            raise ParameterError(message, parameter="subset_seed", remedy="give one seed")
        if len(self.subset_seeds) > 1 and (self.sizes is None or self.subset == "first"):
            message = "the seed has no effect on the subset, so there is only one"
            remedy = "give one seed, or sizes and another strategy"
            raise ParameterError(message, parameter="subset_seed", remedy=remedy)
        if self.sizes is None:
            for name in ("test", "dev", "unlabelled"):
                if isinstance(getattr(self, name), DrawnPart):
                    message = "the whole of train is used, so there is no rest"
                    raise ParameterError(message, parameter=name, remedy="give sizes, or a file")
            return
        if self.subset == "fraction":
            expected = "shares of the corpus above 0 and below 1"
            is_valid = _are_distinct(self.sizes, lambda size: type(size) is float and 0 < size < 1)
        else:
            expected = "positive integers"
            is_valid = _are_distinct(self.sizes, lambda size: type(size) is int and size > 0)
        if not is_valid:
            raise ParameterError(f"sizes must be a list of distinct {expected}, not {self.sizes}", parameter="sizes")


@dataclass(frozen=True, kw_only=True)
class MethodPlan(_Table):
    """One method of a plan, or several whose sentences are used together."""

    name: str = ""
    combine: tuple[str, ...] = ()
    label: Label
    ratios: Ratios
    labels: Literal["method", "teacher", "teacher-hard"] = "method"
    teacher: str | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    grid: Grid = field(default_factory=dict)
    by_corpus: ByCorpus = field(default_factory=dict)
    group: str = field(default="", init=False)
    table: int = field(default=0, init=False, compare=False)
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cells(self) -> list[MethodPlan]:
        """The methods of the grid; without one the method itself."""
        if not self.grid:
            return [self]
        cells = []
        for values in itertools.product(*self.grid.values()):
            chosen = dict(zip(self.grid, values, strict=True))
            title = ", ".join(f"{name}={value}" for name, value in chosen.items())
            cell = self.with_(label=f"{self.label} {title}", grid={}, params={**self.params, **chosen})
            cells.append(with_hidden(cell, group=self.label))
        return cells

    def with_(self, **changes: Any) -> MethodPlan:
        """Return a copy of the same table with other values of keys."""
        return with_hidden(replace(self, **changes), group=self.group, table=self.table)

    def on(self, corpus: CorpusPlan) -> MethodPlan:
        """Return the method with the parameters that it has on a corpus."""
        params = {**self.params, **self.by_corpus.get(corpus.name, {})}
        given = params.keys() | self.grid.keys() | ({"stop_words"} if "preset" in params else set())
        if corpus.language and self.makes_sentences and "stop_words" not in given:
            default = {p.name: p.default for p in parameters(METHODS[self.name])}.get("stop_words")
            if default is not None and corpus.language_code in listed_languages():
                params["stop_words"] = corpus.language_code
        return self.with_(params=params, by_corpus={})

    @property
    def is_self_training(self) -> bool:
        """Whether the new sentences are the unlabelled ones of the corpus."""
        return self.name == SELF_TRAINING

    @property
    def is_unlabelled(self) -> bool:
        """Whether the new sentences have no labels before the teacher of the plan labels them."""
        has_labels = self.name not in METHODS or METHODS[self.name].info.has_labels
        return self.is_self_training or (not has_labels and self.labels != "method")

    @property
    def makes_sentences(self) -> bool:
        """Whether an augmenter makes the new sentences."""
        return not self.combine and not self.is_self_training

    @property
    def identity(self) -> dict[str, Any]:
        """The parameters on which results depend: files by their content instead of their place."""
        known = parameters(METHODS[self.name]) if self.name in METHODS else ()
        described = {p.name: p.metadata["describe"] for p in known if "describe" in p.metadata}
        return {name: described[name](value) if name in described else value for name, value in self.params.items()}

    def create(self, copies: int = 1, seed: int = 0) -> Augmenter:
        """Create the augmenter."""
        without_teacher = {"teacher": None} if self.is_unlabelled else {}
        return create_augmenter(self.name, **self.params, **without_teacher, copies=copies, seed=seed)

    def _check(self) -> None:
        if bool(self.name) == bool(self.combine):
            raise ParameterError("a method has either a name or combine", parameter="name")
        if self.is_self_training and (self.params or self.labels == "method"):
            message = "selftrain takes no parameters in a plan, and labels of the teacher"
            raise ParameterError(message, parameter="labels", remedy='give labels = "teacher" or "teacher-hard"')
        if self.grid and (self.combine or self.is_self_training or self.ratios == PATIENCE):
            message = "a grid needs a method with parameters, and a list of ratios"
            raise ParameterError(message, parameter="grid", remedy="leave out grid, or give ratios = [1, 3]")
        by_corpus = {name for table in self.by_corpus.values() for name in table}
        if twice := sorted(self.grid.keys() & (self.params.keys() | by_corpus)):
            message = f"{twice[0]} is given twice, in the grid and beside it"
            raise ParameterError(message, parameter="grid", remedy="leave out one of them")
        if self.by_corpus and not self.makes_sentences:
            message = "by_corpus needs a method with parameters"
            raise ParameterError(message, parameter="by_corpus", remedy="give it to the methods that are combined")
        if self.label in BASELINES:
            message = f"{self.label!r} is there already, as a baseline"
            raise ParameterError(message, parameter="label", remedy="give it another label")


@dataclass(frozen=True, kw_only=True)
class TaggerPlan(_Table):
    """One tagger of a plan."""

    name: str
    label: Label
    training: TaggerTrainingConfig
    by_size: Mapping[int, TaggerTrainingConfig] = field(default_factory=dict)
    scale_above: PositiveInt | None = None
    params: Mapping[str, Any]

    def training_of(self, size: int, new: int = 0) -> TaggerTrainingConfig:
        """The hyperparameters of a training."""
        training = next(
            (self.by_size[least] for least in sorted(self.by_size, reverse=True) if least <= size), self.training
        )
        if self.scale_above is None or size + new <= self.scale_above:
            return training
        factor = (size + new) / self.scale_above
        return replace(
            training,
            learning_rate=training.learning_rate and training.learning_rate / factor,
            head_learning_rate=training.head_learning_rate / factor,
            warmup_steps=None if training.warmup_steps is None else round(training.warmup_steps * factor),
        )

    @property
    def is_flat_only(self) -> bool:
        """Whether the tagger cannot learn nested mentions, and no parameter selects some of them."""
        return overlap_of(self.name, self.params) == "error"

    def _check(self) -> None:
        trainings = (self.training, *self.by_size.values())
        if self.scale_above is not None and any(training.learning_rate is None for training in trainings):
            message = "scale_above scales the learning rate, which is not given"
            raise ParameterError(message, parameter="training", remedy="give learning_rate")

    def create(self, overlap: str | None = None) -> TrainableTagger:
        """Create the tagger."""
        params = dict(self.params)
        if overlap is not None and self.is_flat_only:
            params = with_overlap(self.name, params, overlap)
        return create_tagger(self.name, **params)


@dataclass(frozen=True, kw_only=True)
class TeacherPlan(_Table):
    """One teacher of a plan: an ensemble of taggers trained on the gold sentences of a run."""

    label: Label = ENSEMBLE
    size: PositiveInt = 3
    seeds: Literal["own", "shared"] = "own"
    tagger: TaggerPlan | None = None
    first_seed: int = field(default=1, init=False)

    def members(self, tagger: TaggerPlan, seed: int) -> list[tuple[TaggerPlan, int]]:
        """The taggers of the teacher of a run, each with the seed of its training."""
        first = seed if self.seeds == "own" else self.first_seed
        return [(self.tagger or tagger, first + number) for number in range(self.size)]


@dataclass(frozen=True, kw_only=True)
class Plan(_Table):
    """A plan."""

    name: Label
    output: Path
    seeds: Seeds = (1, 2, 3)
    ratios: Ratios = (1,)
    baselines: Baselines = BASELINES
    leakage: Literal["warn", "drop", "error"] = "warn"
    teachers: tuple[TeacherPlan, ...] = (TeacherPlan(),)
    threads: PositiveInt = 1
    training: TaggerTrainingConfig = field(default_factory=TaggerTrainingConfig)
    corpora: tuple[CorpusPlan, ...] = ()
    taggers: tuple[TaggerPlan, ...] = ()
    methods: tuple[MethodPlan, ...] = ()
    lines: TomlLines = field(default_factory=TomlLines, init=False)
