"""The plan of an experiment: the tables and keys of its TOML file are the dataclasses of this module and their fields.

`read_plan` constructs them, each value as the annotation of its field says; every error names the file, the line and a
remedy.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

from annotated_types import Interval

from entaug.backends.component import code_digest
from entaug.config.params import Check, Parameter, PositiveInt, construct, parameters, validate
from entaug.config.toml_lines import TomlLines, read_toml
from entaug.core.words import listed_languages
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.filters import create_filters
from entaug.methods import METHODS, create_augmenter
from entaug.methods.base import Augmenter
from entaug.study.records import BASELINES
from entaug.study.subsets import Strategy
from entaug.study.tables import AVERAGE, TablePlan
from entaug.taggers.base import TaggerTrainingConfig, TrainableTagger, create_tagger, overlap_of, with_overlap

T = TypeVar("T")

PATIENCE = "patience"
"""The ratios of a method that are chosen by the patience rule."""
ENSEMBLE = "ensemble"
"""The teacher itself as an arm."""
SELF_TRAINING = "selftrain"
"""The method whose new sentences are the unlabelled ones of the corpus."""
_SIZE = "{size}"  # stands for the size in the name of a file of ids
_MAX_COPIES = 10  # the largest ratio that the patience rule tries: CASSI, section 3.2.2
_LARGE = 1000  # sentences from which on the patience rule starts with quarters
_RELATIVE = "paths are relative to the folder of the plan"
_RESERVED = {"copies": "use ratios", "seed": "use the seeds of the plan"}
_TABLES = ("taggers", "methods", "teachers", "corpora", "tables")
_INTERNAL = {"params", "group", "table", "lines", "first_seed"}  # fields that are no keys


# ------------------------------------------------------------------------------------------------------- values of keys


def _is_label(value: str) -> bool:
    return bool(value.strip()) and "|" not in value and value.isprintable() and len(value.encode()) <= 100


def _is_corpus_name(value: str) -> bool:
    return _is_label(value) and not re.search(r"[/\\]", value) and not value.startswith(".")


def _are_distinct(values: Collection[object], is_valid: Callable[[Any], bool]) -> bool:
    return bool(values) and all(map(is_valid, values)) and len(set(values)) == len(values)


def _are_seeds(value: Any) -> bool:
    seeds = value if isinstance(value, tuple) else (value,)
    return _are_distinct(seeds, lambda seed: type(seed) is int and abs(seed) < 2**63)


def _are_ratios(value: object) -> bool:
    return value == PATIENCE or (
        isinstance(value, tuple) and _are_distinct(value, lambda x: type(x) in (int, float) and 0 < x <= 100)
    )


def _is_corpus(path: Path) -> bool:
    if not os.path.exists(path):  # noqa: PTH110 - the method raises an error for a name that is too long
        raise ParameterError(f"there is no file or folder {path}", remedy=_RELATIVE)
    return True


def _are_corpora(files: Mapping[str, Any]) -> bool:
    are_paths = all(_is_corpus_name(name) and isinstance(path, Path) for name, path in files.items())
    return bool(files) and are_paths and all(map(_is_corpus, files.values()))


_LABEL = "a text of at most 100 bytes without | and control characters"
_SEEDS = Check(_are_seeds, "a list of distinct integers below 2^63")
Label = Annotated[str, Check(_is_label, _LABEL)]
CorpusName = Annotated[str, Check(_is_corpus_name, f"{_LABEL} that can begin a file name: no slashes, no . in front")]
Seeds = Annotated[tuple[int, ...], _SEEDS]
SubsetSeeds = Annotated[Any, _SEEDS]
Ratios = Annotated[Any, Check(_are_ratios, f'a list of distinct numbers above 0 up to 100, or "{PATIENCE}"')]
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
TestFiles = Annotated[Mapping[str, Any], Check(_are_corpora, "existing files or folders by name")]


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
        for is_wrong, key, message, remedy in self._rules():
            if is_wrong:
                raise ParameterError(message, parameter=key, remedy=remedy)

    def _rules(self) -> Iterator[tuple[object, str, str, str]]:
        """Rules that involve several keys: whether one is broken, the key, the message and the remedy."""
        yield from ()


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
    folds: Annotated[int, Interval(ge=2)] | None = None
    subset: Strategy = "progressive"
    subset_ids: Path | None = None
    subset_seed: SubsetSeeds = 0
    overlap: Literal["outermost", "innermost"] | None = None
    taggers: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    missing_types: Literal["error", "allow"] = "error"
    dev_in_test: Literal["error", "allow"] = "error"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name, by which errors tell corpora apart."""
        return self.name

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

    def ids_file(self, size: float) -> Path | None:
        """The file that names the sentences of the subset of a size, if there is one."""
        return self.subset_ids and Path(str(self.subset_ids).replace(_SIZE, str(size)))

    @property
    def test_files(self) -> Mapping[str, Path]:
        """The given test files by name; a single one has the name ""."""
        if isinstance(self.test, Path):
            return {"": self.test}
        return self.test if isinstance(self.test, Mapping) else {}

    def _rules(self) -> Iterator[tuple[object, str, str, str]]:
        own = ("train", "test", "dev", "unlabelled", "sizes", "max_test", "folds", "language", "subset_ids")
        if self.mix:
            message = "a mixed corpus has its sentences from others, so it takes no "
            yield from ((getattr(self, key) is not None, key, message + key, "leave it out") for key in own)
            return
        message, remedy = "folds are tested on each other, so there is no test set", "leave out folds, test or max_test"
        yield self.folds and (self.test is not None or self.max_test is not None), "folds", message, remedy
        for key in ("train",) if self.folds else ("train", "test"):
            yield getattr(self, key) is None, "name", f"a corpus needs {key}", f'add {key} = "FILE", or mix'
        several = len(self.subset_seeds) > 1
        message = "with folds, draws would be tested on different sentences"
        yield self.folds and several, "subset_seed", message, "give one seed"
        message = "the seed has no effect on the subset, so there is only one"
        remedy = "give one seed, or sizes and another strategy"
        yield several and (self.sizes is None or self.subset == "first"), "subset_seed", message, remedy
        yield from self._rules_of_ids()
        if self.sizes is None:
            message = "the whole of train is used, so there is no rest"
            for key in ("test", "dev", "unlabelled"):
                yield isinstance(getattr(self, key), DrawnPart), key, message, "give sizes, or a file"
            return
        if self.subset == "fraction":
            kind, are_valid = "shares of the corpus above 0 and below 1", lambda x: type(x) is float and 0 < x < 1
        else:
            kind, are_valid = "positive integers", lambda x: type(x) is int and x > 0
        message = f"sizes must be a list of distinct {kind}, not {self.sizes}"
        yield not _are_distinct(self.sizes, are_valid), "sizes", message, "correct it"

    def _rules_of_ids(self) -> Iterator[tuple[object, str, str, str]]:
        if self.subset_ids is None:
            return
        sizes = self.sizes or ()
        message = "the sentences of subsets are named, so none is drawn"
        yield self.subset != "progressive" or len(self.subset_seeds) > 1, "subset_ids", message, "leave out one of them"
        yield not sizes, "subset_ids", "the number of ids must be given", "add sizes = [100]"
        message, remedy = f"the subsets of {len(sizes)} sizes need a file each", f"put {_SIZE} into its name"
        yield len(sizes) > 1 and _SIZE not in str(self.subset_ids), "subset_ids", message, remedy
        files = (self.ids_file(size) for size in sizes)
        missing = next((file for file in files if file and not file.is_file()), None)
        yield missing, "subset_ids", f"there is no file {missing}", _RELATIVE


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
    group: str = ""
    table: int = field(default=0, compare=False)
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cells(self) -> list[MethodPlan]:
        """The methods of the grid; without one the method itself."""
        if not self.grid:
            return [self]
        cells = []
        for values in itertools.product(*self.grid.values()):
            chosen = dict(zip(self.grid, values, strict=True))
            label = f"{self.label} {', '.join(f'{name}={value}' for name, value in chosen.items())}"
            cells.append(replace(self, label=label, grid={}, params={**self.params, **chosen}, group=self.label))
        return cells

    def on(self, corpus: CorpusPlan) -> MethodPlan:
        """Return the method with the parameters that it has on a corpus."""
        params = {**self.params, **self.by_corpus.get(corpus.name, {})}
        given = params.keys() | self.grid.keys() | ({"stop_words"} if "preset" in params else set())
        if corpus.language and self.makes_sentences and "stop_words" not in given:
            default = {p.name: p.default for p in parameters(METHODS[self.name])}.get("stop_words")
            if default is not None and corpus.language_code in listed_languages():
                params["stop_words"] = corpus.language_code
        return replace(self, params=params, by_corpus={})

    def located(self, folder: Path) -> MethodPlan:
        """Return the method with the files that its parameters name relative to a folder."""
        known = parameters(METHODS[self.name]) if self.name in METHODS else ()
        relative = {p.name: p.metadata["relative"] for p in known if "relative" in p.metadata}

        def locate(params: Mapping[str, Any]) -> dict[str, Any]:
            return {key: relative[key](value, folder) if key in relative else value for key, value in params.items()}

        by_corpus = {name: locate(params) for name, params in self.by_corpus.items()}
        return replace(self, params=locate(self.params), by_corpus=by_corpus)

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
        """The parameters on which results depend: files by their content instead of their place, presets by value."""
        if self.name not in METHODS:
            return dict(self.params)
        method = METHODS[self.name]
        described = {p.name: p.metadata["describe"] for p in parameters(method) if "describe" in p.metadata}
        params = {**method.presets.get(str(self.params.get("preset")), {}), **self.params}
        params.pop("copies", None)  # of a preset; the ratio decides
        filters = create_filters(params.get("filters"))
        codes = [code for cls in (method, *map(type, filters)) if (code := code_digest(cls)) is not None]
        own = {name: described[name](value) if name in described else value for name, value in params.items()}
        return {**own, "code of other packages": codes} if codes else own

    def create(self, copies: int = 1, seed: int = 0) -> Augmenter:
        """Create the augmenter."""
        without_teacher = {"teacher": None} if self.is_unlabelled else {}
        augmenter = create_augmenter(self.name, **self.params, **without_teacher, copies=copies, seed=seed)
        augmenter.check_backends()
        return augmenter

    def _rules(self) -> Iterator[tuple[object, str, str, str]]:
        yield bool(self.name) == bool(self.combine), "name", "a method has either a name or combine", "give one of them"
        read_training(self.training, TaggerTrainingConfig())
        for key in sorted({"batch_size", "epochs", "steps"} & self.training.keys()):
            message = f"a method trains with the {key} of gold-steps, with which it is compared"
            yield True, "training", message, f"give {key} in [training], or to the tagger"
        for key, remedy in _RESERVED.items():
            is_given = any(key in params for params in (self.params, *self.by_corpus.values()))
            yield is_given, key, f"{key} cannot be given here", remedy
        message = "selftrain takes no parameters in a plan, and labels of the teacher"
        is_wrong = self.is_self_training and (self.params or self.labels == "method")
        yield is_wrong, "labels", message, 'give labels = "teacher"'
        message, remedy = "a grid needs a method with parameters, and a list of ratios", "give ratios = [1, 3]"
        yield self.grid and (not self.makes_sentences or self.ratios == PATIENCE), "grid", message, remedy
        others = {*self.params, *(name for params in self.by_corpus.values() for name in params)}
        for name in sorted(self.grid.keys() & others):
            yield True, "grid", f"{name} is given twice, in the grid and beside it", "leave out one of them"
        message, remedy = "by_corpus needs a method with parameters", "give it to the methods that are combined"
        yield self.by_corpus and not self.makes_sentences, "by_corpus", message, remedy
        message = f"{self.label!r} is there already, as a baseline"
        yield self.label in BASELINES, "label", message, "give it another label"


@dataclass(frozen=True, kw_only=True)
class ScaledTraining(TaggerTrainingConfig):
    """The table ``training`` of a plan, or of a tagger: hyperparameters, some of which depend on the size."""

    scale_above: PositiveInt | None = None

    def for_sentences(self, number: int) -> TaggerTrainingConfig:
        """The hyperparameters of a training on a number of sentences, new ones included."""
        values = {f.name: getattr(self, f.name) for f in fields(TaggerTrainingConfig)}
        if self.scale_above is not None and number > self.scale_above:
            factor = number / self.scale_above
            values["learning_rate"] = self.learning_rate and self.learning_rate / factor
            values["head_learning_rate"] = self.head_learning_rate / factor
            values["warmup_steps"] = None if self.warmup_steps is None else round(self.warmup_steps * factor)
        return TaggerTrainingConfig(**values)


@dataclass(frozen=True, kw_only=True)
class TaggerPlan(_Table):
    """One tagger of a plan."""

    name: str
    label: Label
    training: ScaledTraining = field(default_factory=ScaledTraining)
    by_corpus: ByCorpus = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_flat_only(self) -> bool:
        """Whether the tagger cannot learn nested mentions, and no parameter selects some of them."""
        return overlap_of(self.name, self.params) == "error"

    def _rules(self) -> Iterator[tuple[object, str, str, str]]:
        training = self.training
        message = "scale_above scales the learning rate, which is not given"
        is_wrong = training.scale_above is not None and training.learning_rate is None
        yield is_wrong, "training", message, "give learning_rate"

    def on(self, corpus: CorpusPlan) -> TaggerPlan:
        """Return the tagger with the parameters and hyperparameters that it has on a corpus."""
        own = dict(self.by_corpus.get(corpus.name, {}))
        training = read_training(own.pop("training", {}), self.training)
        return replace(self, training=training, params={**self.params, **own}, by_corpus={})

    def create(self, overlap: str | None = None) -> TrainableTagger:
        """Create the tagger."""
        params = dict(self.params)
        if overlap is not None and self.is_flat_only:
            params = with_overlap(self.name, params, overlap)
        return create_tagger(self.name, **params)


@dataclass(frozen=True, kw_only=True)
class TeacherPlan(_Table):
    """One teacher of a plan: taggers trained on the gold sentences of a run, or sources of labels beside them."""

    label: Label = ENSEMBLE
    size: Annotated[int, Interval(ge=1, le=1_000)] = 3
    seeds: Literal["own", "shared"] = "own"
    tagger: TaggerPlan | None = None
    first_seed: int = 1
    sources: Path | None = None

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
    training: ScaledTraining = field(default_factory=ScaledTraining)
    corpora: tuple[CorpusPlan, ...] = ()
    taggers: tuple[TaggerPlan, ...] = ()
    methods: tuple[MethodPlan, ...] = ()
    tables: tuple[TablePlan, ...] = ()
    lines: TomlLines = field(default_factory=TomlLines)


# -------------------------------------------------------------------------------------------------------------- reading


def read_plan(path: str | Path) -> Plan:
    """Read and check a plan; the files of corpora must exist, but are not read yet."""
    plan = _PlanReader(*read_toml(Path(path), "correct the plan")).read()
    _check_labels(plan)
    for table, number, key, kind, given, known in _references(plan):
        with plan.lines.at(table, number, key=key):
            for name in given:
                if name not in known:
                    raise UnknownNameError(kind, str(name), known)
    without_ratio = {method.label for method in plan.methods if method.ratios == PATIENCE}
    methods = []
    for method in plan.methods:
        with plan.lines.at("methods", method.table, key="combine"):
            if found := without_ratio.intersection(method.combine):
                message = f"{min(found)} has the ratio {PATIENCE!r}, and is combined with others by its own ratio"
                raise InputError(message, remedy="give it ratios = [1]")
            # Methods that are combined have one ratio, the sum of their own, so that steps follow the sentences.
            ratio = round(math.fsum(part.ratios[0] for part in plan.methods if part.label in method.combine), 6)
            if ratio > 100:
                message = f"the ratios of these methods add up to {ratio:g}, above 100"
                raise InputError(message, remedy="give them lower ones")
            methods.append(replace(method, ratios=(ratio,)) if method.combine else method)
    plan = replace(plan, methods=tuple(methods))
    for i, corpus in enumerate(plan.corpora):
        with plan.lines.at("corpora", i, key=""):
            _check_needs(plan, corpus)
    for i, layout in enumerate(plan.tables):
        with plan.lines.at("tables", i):
            _check_table(plan, layout)
    return plan


def read_training(table: Any, base: T) -> T:
    """Change hyperparameters as a table says."""
    if not isinstance(table, Mapping):
        raise InputError("training must be a table", remedy="write training = {epochs = 20}")
    if "seed" in table:
        raise ParameterError("seed cannot be given here", parameter="seed", remedy=_RESERVED["seed"])
    if {"epochs", "steps"} <= table.keys():
        message = "epochs have no effect beside steps"
        raise ParameterError(message, parameter="epochs", remedy="give one of them")
    without = {"steps": None} if "epochs" in table else {}  # a tagger's own epochs take the place of common steps
    return construct(type(base), "training", {**vars(base), **without, **table})


_Place = Callable[..., AbstractContextManager[None]]  # `TomlLines.at` of a table


class _PlanReader:
    """Constructs the tables of a plan."""

    def __init__(self, data: dict[str, Any], lines: TomlLines) -> None:
        self.lines = lines
        self.folder = lines.path.parent
        self.data = {"name": lines.path.stem, "output": lines.path.stem, **data}

    def read(self) -> Plan:
        own = self.data.pop("training", {})
        with self.lines.at("training", values=own if isinstance(own, dict) else ()):
            training = read_training(own, ScaledTraining())
        tables = {name: list(self.tables(name)) for name in _TABLES}
        tables["methods"] = self.with_defaults(tables["methods"])
        with self.lines.at("", values=self.data):
            plan = self.construct(Plan, "the plan", self.data, partial(self.lines.at, ""), training=training)
        with self.lines.at(""):
            if not tables["corpora"]:
                raise InputError("the plan has no [[corpora]]", remedy="add one with name, train and test")
        taggers, teachers, corpora, methods = [], [], [], []
        for i, table in enumerate(tables["taggers"] or [{"name": "linear"}]):
            taggers.append(self.tagger(table, training, partial(self.lines.at, "taggers", i)))
        for i, table in enumerate(tables["methods"]):
            methods += self.methods(table, plan, i)
        for i, table in enumerate(tables["teachers"] or [{}]):
            with self.lines.at("teachers", i, key=""):
                teachers.append(self.teacher(table, training, partial(self.lines.at, "teachers", i)))
        for i, table in enumerate(tables["corpora"]):
            at = partial(self.lines.at, "corpora", i)
            with at(values=table):
                corpora.append(self.construct(CorpusPlan, "a corpus", table, at))
        layouts = []
        for i, table in enumerate(tables["tables"]):
            at = partial(self.lines.at, "tables", i)
            with at(values=table):
                layouts.append(self.construct(TablePlan, "a table", table, at))
        lists = {"taggers": taggers, "teachers": teachers, "corpora": corpora, "methods": methods, "tables": layouts}
        return replace(plan, lines=self.lines, **{name: tuple(some) for name, some in lists.items()})  # type: ignore[arg-type]

    def tables(self, name: str) -> Iterator[dict[str, Any]]:
        given = self.data.pop(name, [])
        with self.lines.at(name):
            if not isinstance(given, list) or not all(isinstance(table, dict) for table in given):
                raise InputError(f"{name} must be tables", remedy=f"write [[{name}]]")
        yield from map(dict, given)

    def with_defaults(self, methods: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Give methods the values that ``[defaults.NAME]`` has for all of their name."""
        defaults = self.data.pop("defaults", {})
        names = {str(table.get("name")) for table in methods}
        with self.lines.at("defaults"):
            if not isinstance(defaults, dict) or not all(isinstance(table, dict) for table in defaults.values()):
                raise InputError("defaults must be tables", remedy="write [defaults.NAME], with the name of a method")
        for name, table in defaults.items():
            with self.lines.at(f"defaults.{name}"):
                if name not in names:
                    raise UnknownNameError("method of the plan", name, names)
                if taken := {"name", "label"} & table.keys():
                    raise ParameterError(f"{min(taken)} cannot be a default", remedy="give it to each method")
        return [{**defaults.get(str(table.get("name")), {}), **table} for table in methods]

    def construct(self, cls: type[T], name: str, given: Mapping[str, Any], at: _Place, **defaults: Any) -> T:
        """Construct a table; if it takes parameters of something else, these are the keys that it does not define."""
        keys = {parameter.name: parameter for parameter in parameters(cast("type", cls))}
        known = {key: parameter for key, parameter in keys.items() if key not in _INTERNAL}
        values, params = dict(defaults), {}
        for key, value in given.items():
            if key in known:
                with at(key=key):
                    values[key] = self.value(known[key], value, defaults.get(key))
            else:
                params[key] = value
        return construct(cls, name, {**values, **({"params": params} if "params" in keys else params)})

    def value(self, parameter: Parameter, value: Any, default: Any) -> Any:
        """Convert a value as the annotation of its key says; what does not fit stays as it is, and is refused later."""
        types = {alternative.type for alternative in parameter.alternatives}
        if ScaledTraining in types:
            return read_training(value, default)
        if isinstance(value, dict) and DrawnPart in types:
            if Mapping[str, Any] in types and not isinstance(value.get("rest"), int):
                return {name: self.resolve(file) for name, file in value.items()}
            return construct(DrawnPart, parameter.name, value)
        if Path in types:
            return self.resolve(value)
        return tuple(value) if isinstance(value, list) else value

    def resolve(self, value: Any) -> Any:
        """Make a path relative to the folder of the plan."""
        if not isinstance(value, str) or not value or "\0" in value:
            return value
        try:
            return self.folder / Path(value).expanduser()
        except RuntimeError:
            raise InputError(f"there is no such user ({value})", remedy="give a whole path") from None

    def tagger(self, table: Mapping[str, Any], training: ScaledTraining, at: _Place) -> TaggerPlan:
        with at(values=table):
            tagger = self.construct(TaggerPlan, "a tagger", table, at, label=table.get("name"), training=training)
            tagger.create()
        return tagger

    def teacher(self, table: dict[str, Any], training: ScaledTraining, at: _Place) -> TeacherPlan:
        """A teacher: keys that it does not define are those of its tagger."""
        own: dict[str, Any] = {key: table.pop(key) for key in ("label", "size", "seeds", "sources") if key in table}
        if "sources" in own:
            if len(own) > 1 + ("label" in own) or table:
                message = "a teacher has either sources or taggers"
                raise ParameterError(message, parameter="sources", remedy="leave one out")
            own["sources"] = self.resolve(own["sources"])
        if "by_corpus" in table:
            raise ParameterError("a teacher is the same on all corpora", parameter="by_corpus", remedy="leave it out")
        if table:
            own["tagger"] = self.tagger({"name": "linear", **table}, training, at)
        return construct(TeacherPlan, "a teacher", own)

    def methods(self, table: Mapping[str, Any], plan: Plan, number: int) -> list[MethodPlan]:
        """The method of a table, or those of its grid."""
        at = partial(self.lines.at, "methods", number)
        defaults = {"label": table.get("name"), "ratios": plan.ratios, "table": number}
        with at(values=table):
            method = self.construct(MethodPlan, "a method", table, at, **defaults).located(self.folder)
            if method.combine and (own := table.keys() - {"combine", "label", "training"}):
                remedy = "give it to the methods that are combined"
                raise ParameterError(f"{min(own)} cannot be given beside combine", parameter=min(own), remedy=remedy)
            if method.makes_sentences:
                method.create()
        with at(key="grid"):
            cells = method.cells
            for cell in cells if method.grid else ():
                cell.create()
        return cells


# ------------------------------------------------------------------------------------------ what several tables involve


def _labels(tables: Sequence[Any]) -> list[str]:
    return [table.label for table in tables]


def _check_labels(plan: Plan) -> None:
    """Check that labels differ."""
    for name in ("taggers", "methods", "teachers", "corpora"):
        labels = _labels(getattr(plan, name))
        # Names of corpora become names of files, and some file systems ignore case.
        keys = [label.casefold() if name == "corpora" else label for label in labels]
        for i, label in enumerate(labels):
            others = {name: keys[:i]} | ({"teachers": _labels(plan.teachers)} if name == "methods" else {})
            for kind, known in others.items():
                with plan.lines.at(name, plan.methods[i].table if name == "methods" else i):
                    if keys[i] in known:
                        remedy = f"give it another {'name' if name == 'corpora' else 'label'}"
                        raise InputError(f"{label!r} is there already, among the {kind}", remedy=remedy)


# Table, number, key, kind, names given and known.
_Reference = tuple[str, int, str, str, Collection[str], Sequence[str]]


def _references(plan: Plan) -> Iterator[_Reference]:
    """The names by which tables mean others."""
    methods = [*_labels(plan.methods), *dict.fromkeys(method.group for method in plan.methods if method.group)]
    simple = [method.label for method in plan.methods if not method.combine]
    for i, tagger in enumerate(plan.taggers):
        yield "taggers", i, "by_corpus", "corpora", tagger.by_corpus, _labels(plan.corpora)
    for method in plan.methods:
        yield "methods", method.table, "by_corpus", "corpora", method.by_corpus, _labels(plan.corpora)
        teacher = [method.teacher] if method.teacher else []
        yield "methods", method.table, "teacher", "teacher", teacher, _labels(plan.teachers)
        yield "methods", method.table, "combine", "methods", method.combine, simple
    for i, corpus in enumerate(plan.corpora):
        yield "corpora", i, "taggers", "taggers", corpus.taggers or (), _labels(plan.taggers)
        yield "corpora", i, "methods", "methods", corpus.methods or (), methods
        yield "corpora", i, "mix", "corpora", corpus.mix, [other.name for other in plan.corpora if not other.mix]


def _check_needs(plan: Plan, corpus: CorpusPlan) -> None:
    """Check the parameters that methods have on a corpus, and that it has the sentences that they need."""
    sources = [other for other in plan.corpora if other.name in corpus.mix] or [corpus]
    used = list(filter(corpus.includes, plan.methods))
    combined = {label for method in used for label in method.combine}
    parts = [method for method in plan.methods if method in used or method.label in combined]
    for method in parts:
        key = "by_corpus" if corpus.name in method.by_corpus else "language"
        with plan.lines.at("methods", method.table, key=key):
            own = method.on(corpus)
            if corpus.language and "language" in own.params:
                message = f"language is given twice, for the corpus {corpus.name} and for {method.label}"
                raise InputError(message, remedy="leave it out of the method")
            if own.makes_sentences:
                own.create()
        if method.is_self_training and all(source.unlabelled is None for source in sources):
            message = f"the corpus {corpus.name} has no unlabelled sentences for {method.label}"
            raise InputError(message, remedy='add unlabelled = "FILE", or unlabelled = {rest = 1000}')
    taggers = []
    for i, tagger in enumerate(plan.taggers):
        if corpus.includes(tagger):
            with plan.lines.at("taggers", i, key="by_corpus" if corpus.name in tagger.by_corpus else None):
                taggers.append(tagger.on(corpus))
                taggers[-1].create()
    by_dev = [f"the epoch of {tagger.label}" for tagger in taggers if tagger.training.checkpoint == "best"]
    for method, tagger in itertools.product(used, taggers):
        with plan.lines.at("methods", method.table, key="training"):
            if read_training(method.training, tagger.training).checkpoint == "best":
                by_dev.append(f"the epoch of {method.label}")
    labelling = {method.teacher or plan.teachers[0].label for method in parts if method.labels != "method"}
    for teacher in plan.teachers if taggers else ():
        is_used = ENSEMBLE in plan.baselines or teacher.label in labelling
        if is_used and teacher.tagger and teacher.tagger.training.checkpoint == "best":
            by_dev.append(f"the epoch of {teacher.label}")
    by_dev += [f"the ratio of {method.label}" for method in used if method.ratios == PATIENCE]
    by_dev += [f"the cell of the grid {method.group}" for method in used if method.group]
    if by_dev and any(source.dev is None for source in sources):
        message = f"the corpus {corpus.name} has no dev set, and {by_dev[0]} is chosen by dev"
        remedy = 'add dev = "FILE", or dev = {rest = 300} to draw one from the unused part of train'
        raise InputError(message, remedy=remedy)


def _tested(plan: Plan, corpus: CorpusPlan) -> list[str]:
    """The names under which results of a corpus are reported: one for each test set."""
    if corpus.mix:
        members = [other for other in plan.corpora if other.name in corpus.mix]
        tests = [f"{member.name} {name}".strip() for member in members for name in member.test_files or [""]]
        return [f"{corpus.name} on {name}" for name in tests]
    return [f"{corpus.name} on {name}" if name else corpus.name for name in corpus.test_files or [""]]


def _check_table(plan: Plan, table: TablePlan) -> None:
    """Check that a table names corpora, arms, sizes and a tagger of the plan."""
    by_name = {name: corpus for corpus in plan.corpora for name in _tested(plan, corpus)}
    named = table.corpora if table.is_by_part else [column for column in table.columns if column != AVERAGE]
    for name in named:
        if name not in by_name:
            raise UnknownNameError("corpus with results:", name, by_name)
    labels = _labels(plan.taggers)
    if table.tagger is None and len(labels) > 1:
        raise ParameterError("the plan has several taggers", parameter="tagger", remedy='add tagger = "LABEL"')
    if table.tagger is not None and table.tagger not in labels:
        raise UnknownNameError("tagger", table.tagger, labels)
    if table.show == "length":
        _ = table.lengths
    arms = _arms_of_rows(plan)
    corpora = [by_name[name] for name in named]
    sizes = [corpus for one in corpora for corpus in plan.corpora if corpus.name in (one.name, *one.mix)]
    has_several = any(len(corpus.sizes or ()) > 1 for corpus in sizes)
    for row in table.cells:
        if row.arm not in arms:
            raise UnknownNameError("arm of a row:", row.arm, arms)
        if row.size is None and has_several:
            message = f"the row of {row.arm} has no size, and the corpora have several"
            raise ParameterError(message, parameter="rows", remedy='begin it with one: [100, "ARM", ...]')


def _arms_of_rows(plan: Plan) -> set[str]:
    """The names of arms in rows of tables: with the ratio where there are several that dev does not choose from."""
    arms = {"gold", *(_labels(plan.teachers) if ENSEMBLE in plan.baselines else ())}
    for method in plan.methods:
        names, ratios = {method.group or method.label}, method.ratios
        if ratios == PATIENCE:
            ratios = patience_ratios(_LARGE)
        elif not method.group and len(ratios) > 1:
            names = set()
        with_ratios = {f"{method.group or method.label} {ratio:g}N" for ratio in ratios}
        baselines = {f"{name} {ratio:g}N" for name in plan.baselines if name != "gold" for ratio in ratios}
        arms |= names | with_ratios | baselines
    return arms
