"""Read a plan from a TOML file and check it; every error names the file, the line and a remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from entaug.config.params import construct, parameters
from entaug.config.toml_lines import TomlLines, read_toml
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.methods import METHODS
from entaug.study.plan import (
    PATIENCE,
    CorpusPlan,
    DrawnPart,
    MethodPlan,
    Plan,
    TaggerPlan,
    TeacherPlan,
    with_hidden,
)
from entaug.taggers.base import TaggerTrainingConfig

T = TypeVar("T")

_RESERVED_FOR_METHODS = {"copies": "use ratios", "seed": "use the seeds of the plan"}
_RESERVED_FOR_TRAINING = {"seed": "use the seeds of the plan"}


def read_plan(path: str | Path) -> Plan:
    """Read and check a plan; the files of corpora must exist, but are not read yet."""
    data, lines = read_toml(Path(path), "correct the plan")
    plan = with_hidden(_PlanReader(lines).read(data), lines=lines)
    _check(plan)
    return plan


@dataclass(frozen=True)
class _Trainings:
    training: TaggerTrainingConfig = field(default_factory=TaggerTrainingConfig)
    by_size: Mapping[int, TaggerTrainingConfig] = field(default_factory=dict)
    scale_above: int | None = None


class _PlanReader:
    """Constructs the tables of a plan."""

    def __init__(self, lines: TomlLines) -> None:
        self.at = lines.at
        self.folder = lines.path.parent
        self.name = lines.path.stem

    def read(self, data: Mapping[str, Any]) -> Plan:
        top = {"name": self.name, "output": self.name, **data}
        with self.at("", key="output"):
            top["output"] = self.resolve(top["output"])
        own_training = top.pop("training", {})
        with self.at("training", values=own_training if isinstance(own_training, dict) else ()):
            training = self.trainings(own_training, _Trainings())
        names = ("taggers", "methods", "teachers", "corpora")
        taggers, methods, teachers, corpora = (list(self.tables(top, name)) for name in names)
        with self.at("", values=top):
            plan = _construct(Plan, "the plan", {**top, "training": training.training})
        found: dict[str, list[Any]] = {name: [] for name in names}
        for i, table in enumerate(taggers or [{"name": "linear"}]):
            with self.at("taggers", i, key="training"):
                own = vars(self.trainings(table.pop("training", {}), training))
            with self.at("taggers", i, table):
                found["taggers"].append(_component(TaggerPlan, "a tagger", {**table, **own}))
        for i, table in enumerate(methods):
            with self.at("methods", i, table):
                found["methods"] += self.methods(i, table, plan.ratios)
        for i, table in enumerate(teachers or [{}]):
            with self.at("teachers", i, key=""):
                found["teachers"].append(self.teacher(table, training))
        for i, table in enumerate(corpora):
            with self.at("corpora", i, table):
                found["corpora"].append(self.corpus(i, table))
        with self.at(""):
            if not corpora:
                raise InputError("the plan has no [[corpora]]", remedy="add one with name, train and test")
        components: dict[str, Any] = {name: tuple(some) for name, some in found.items()}
        return replace(plan, **components)

    def tables(self, data: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
        given = data.pop(name, [])
        with self.at(name):
            if not isinstance(given, list) or not all(isinstance(table, dict) for table in given):
                raise InputError(f"{name} must be tables", remedy=f"write [[{name}]]")
        yield from map(dict, given)

    def resolve(self, value: Any) -> Any:
        """Make a path relative to the folder of the plan; what is no path stays, for the check to refuse it."""
        if not isinstance(value, str) or not value or "\0" in value:
            return value
        try:
            return self.folder / Path(value).expanduser()
        except RuntimeError:
            raise InputError(f"there is no such user ({value})", remedy="give a whole path") from None

    def corpus(self, i: int, table: dict[str, Any]) -> CorpusPlan:
        for key in {"train", "test", "dev", "unlabelled"} & table.keys():
            part = table[key]
            with self.at("corpora", i, key=key):
                if key == "test" and isinstance(part, dict) and not isinstance(part.get("rest"), int):
                    table[key] = {name: self.resolve(file) for name, file in part.items()}
                else:
                    is_drawn = isinstance(part, dict)
                    table[key] = _construct(DrawnPart, key, part) if is_drawn else self.resolve(part)
        return _construct(CorpusPlan, "a corpus", table)

    def teacher(self, table: dict[str, Any], training: _Trainings) -> TeacherPlan:
        """A teacher: keys that it does not define are those of its tagger."""
        own: dict[str, Any] = {key: table.pop(key) for key in ("label", "size", "seeds") if key in table}
        if table:
            trainings = vars(self.trainings(table.pop("training", {}), training))
            own["tagger"] = _component(TaggerPlan, "a teacher", {"name": "linear", **table, **trainings})
        return _construct(TeacherPlan, "a teacher", own)

    def methods(self, i: int, table: dict[str, Any], ratios: Any) -> list[MethodPlan]:
        """The method of a table, or those of its grid."""
        _check_reserved(table, _RESERVED_FOR_METHODS)
        with self.at("methods", i, key="training"):
            self.training(table.get("training", {}), TaggerTrainingConfig())
        by_corpus = table.get("by_corpus")
        own_tables = [own for own in by_corpus.values() if isinstance(own, dict)] if isinstance(by_corpus, dict) else []
        with self.at("methods", i, key="by_corpus"):
            for own in own_tables:
                _check_reserved(own, _RESERVED_FOR_METHODS)
        for parameter in parameters(METHODS[table["name"]]) if table.get("name") in METHODS else ():
            for values in (table, *own_tables) if "relative" in parameter.metadata else ():
                if parameter.name in values:
                    values[parameter.name] = parameter.metadata["relative"](values[parameter.name], self.folder)
        method = with_hidden(_component(MethodPlan, "a method", {"ratios": ratios, **table}), table=i)
        with self.at("methods", i, key="grid"):
            cells = method.cells
            for cell in cells if method.grid else ():
                cell.create()
        return cells

    def training(self, table: Any, base: TaggerTrainingConfig) -> TaggerTrainingConfig:
        if not isinstance(table, dict):
            raise InputError("training must be a table", remedy="write training = {epochs = 20}")
        _check_reserved(table, _RESERVED_FOR_TRAINING)
        return _construct(TaggerTrainingConfig, "training", {**vars(base), **table})

    def trainings(self, table: Any, base: _Trainings) -> _Trainings:
        """The hyperparameters of a table, and those that depend on the number of sentences."""
        scale_above: Any = table.pop("scale_above", base.scale_above) if isinstance(table, dict) else None
        by_size: Any = table.pop("by_size", {}) if isinstance(table, dict) else {}
        training = self.training(table, base.training)
        sizes = dict(base.by_size) if not table else {}
        for size, changes in by_size.items() if isinstance(by_size, dict) else [("", None)]:
            if not str(size).isdecimal() or not isinstance(changes, dict):
                message = "by_size must be tables of hyperparameters by number of gold sentences"
                remedy = "write by_size = {500 = {epochs = 20}}"
                raise ParameterError(message, parameter="by_size", remedy=remedy)
            sizes[int(size)] = self.training(changes, training)
        return _Trainings(training, dict(sorted(sizes.items())), scale_above)


def _construct(cls: type[T], name: str, values: Mapping[str, Any]) -> T:
    return construct(cls, name, {k: tuple(value) if isinstance(value, list) else value for k, value in values.items()})


def _component(cls: type[T], name: str, table: dict[str, Any]) -> T:
    """A tagger or a method: keys that the plan does not define are its parameters."""
    defined = {f.name for f in fields(cls)} - {"params"}  # type: ignore[arg-type]
    values = {key: value for key, value in table.items() if key in defined}
    params = {key: value for key, value in table.items() if key not in defined}
    component: Any = _construct(cls, name, {"label": table.get("name"), **values, "params": params})
    if getattr(component, "makes_sentences", True):
        component.create()
    return component  # type: ignore[no-any-return]


def _check_reserved(table: Mapping[str, Any], remedies: Mapping[str, str]) -> None:
    for key in remedies.keys() & table.keys():
        raise ParameterError(f"{key} cannot be given here", parameter=key, remedy=remedies[key])


def _check_known(kind: str, name: object, known: Sequence[str]) -> None:
    if name not in known:
        raise UnknownNameError(kind, str(name), known)


# ------------------------------------------------------------------------------------------ what several tables involve


def _check(plan: Plan) -> None:
    """Check what involves several tables."""
    at = plan.lines.at
    labels = {name: [c.label for c in getattr(plan, name)] for name in ("taggers", "methods", "teachers")}
    labels["corpora"] = [corpus.name for corpus in plan.corpora]
    for table, names in labels.items():
        # Names of corpora become names of files, and some file systems ignore case.
        keys = [name.casefold() if table == "corpora" else name for name in names]
        for i, name in enumerate(names):
            with at(table, i):
                if keys[i] in keys[:i]:
                    remedy = f"give it another {'name' if table == 'corpora' else 'label'}"
                    raise InputError(f"{name!r} is there already, among the {table}", remedy=remedy)
    simple = [method.label for method in plan.methods if not method.combine]
    for method in plan.methods:
        for key, kind, given, known in (
            ("by_corpus", "corpora", method.by_corpus, labels["corpora"]),
            ("teacher", "teacher", [method.teacher] if method.teacher else [], labels["teachers"]),
            ("combine", "methods", method.combine, simple),
        ):
            with at("methods", method.table, key=key):
                for name in given:
                    _check_known(kind, name, known)
        with at("methods", method.table, key="label"):
            if method.label in labels["teachers"]:
                message = f"{method.label!r} is there already, among the teachers"
                raise InputError(message, remedy="give it another label")
    groups = [method.group for method in plan.methods if method.group]
    selectable = {"taggers": labels["taggers"], "methods": [*labels["methods"], *groups]}
    unmixed = {other.name: other for other in plan.corpora if not other.mix}
    for i, corpus in enumerate(plan.corpora):
        for key, known in (*selectable.items(), ("mix", list(unmixed))):
            with at("corpora", i, key=key):
                for name in getattr(corpus, key) or ():
                    _check_known("corpora" if key == "mix" else key, name, list(dict.fromkeys(known)))
        with at("corpora", i, key=""):
            _check_needs(plan, corpus, [unmixed[name] for name in corpus.mix] or [corpus])


def _check_needs(plan: Plan, corpus: CorpusPlan, sources: Sequence[CorpusPlan]) -> None:
    """Check the parameters that methods have on a corpus, and that it has the sentences that they need."""
    used = list(filter(corpus.includes, plan.methods))
    for method in used:
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
    by_dev = [
        f"the epoch of {tagger.label}"
        for tagger in filter(corpus.includes, plan.taggers)
        if any(training.checkpoint == "best" for training in (tagger.training, *tagger.by_size.values()))
    ]
    by_dev += [f"the ratio of {method.label}" for method in used if method.ratios == PATIENCE]
    by_dev += [f"the cell of the grid {method.group}" for method in used if method.group]
    if by_dev and any(source.dev is None for source in sources):
        message = f"the corpus {corpus.name} has no dev set, and {by_dev[0]} is chosen by dev"
        remedy = 'add dev = "FILE", or dev = {rest = 300} to draw one from the unused part of train'
        raise InputError(message, remedy=remedy)
