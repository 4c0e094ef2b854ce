"""Read a plan from a TOML file and check it; every error names the file, the line and a remedy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from entaug.config.params import construct, parameters
from entaug.errors import EntaugError, InputError, ParameterError, UnknownNameError
from entaug.methods import METHODS
from entaug.study.plan import (
    PATIENCE,
    CorpusPlan,
    DrawnPart,
    MethodPlan,
    Plan,
    PlanLines,
    TaggerPlan,
    TeacherPlan,
    with_hidden,
)
from entaug.taggers.base import TaggerTrainingConfig

__all__ = ["key_of_error", "read_plan"]

T = TypeVar("T")

_RESERVED_FOR_METHODS = {"copies": "use ratios", "seed": "use the seeds of the plan"}
_RESERVED_FOR_TRAINING = {"seed": "use the seeds of the plan"}


def read_plan(path: str | Path) -> Plan:
    """Read and check a plan; the files of corpora must exist, but are not read yet."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        data = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=str(path), remedy="check the path") from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", path=str(path), remedy="save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        position = re.search(r"at line (\d+)", str(error))
        line = int(position[1]) if position else None
        raise InputError(f"is not TOML ({error})", path=str(path), line=line, remedy="correct it") from None
    except RecursionError:
        raise InputError("is nested too deeply", path=str(path), remedy="correct it") from None
    reader = _PlanReader(PlanLines(text, path))
    plan = with_hidden(reader.read(data), lines=reader.lines)
    for i, corpus in enumerate(plan.corpora):
        reader.check_selections(plan, i, corpus)
    return plan


def key_of_error(error: EntaugError, table: Mapping[str, Any]) -> str:
    """The key of a table that an error is about, or ""."""
    if isinstance(error, ParameterError) and error.parameter in table:
        return error.parameter or ""
    keys = [key for key in table if repr(key) in error.message]
    keys += [key for key, value in table.items() if isinstance(value, str) and repr(value) in error.message]
    keys += [key for key in table if re.search(rf"\b{re.escape(key)}\b", error.message)]
    return keys[0] if keys else ""


class _At(NamedTuple):
    """A table of the plan; with a key, everything in it stands at this key of the table."""

    table: str
    number: int = 0
    key: str | None = None


@dataclass(frozen=True)
class _Trainings:
    training: TaggerTrainingConfig = field(default_factory=TaggerTrainingConfig)
    by_size: Mapping[int, TaggerTrainingConfig] = field(default_factory=dict)
    scale_above: int | None = None


class _PlanReader:
    """Constructs the tables of a plan."""

    def __init__(self, lines: PlanLines) -> None:
        self.lines = lines
        self.folder = lines.path.parent

    def error(self, at: _At, key: str, error: EntaugError) -> InputError:
        """The error of a key of a table, with its place in the plan."""
        return self.lines.error(at.table, at.number, key if at.key is None else at.key, error.message, error.remedy)

    def read(self, data: Mapping[str, Any]) -> Plan:
        path = self.lines.path
        top = {"name": path.stem, "output": path.stem, **data}
        top["output"] = self.resolve(top["output"], _At("", 0, "output"))
        training = self.trainings(top.pop("training", {}), _Trainings(), _At("training"))
        corpora, taggers, methods, teachers = (
            self.tables(top, name) for name in ("corpora", "taggers", "methods", "teachers")
        )
        plan = self.construct(Plan, "the plan", {**top, "training": training.training}, _At(""))
        plan = replace(
            plan,
            taggers=tuple(self.tagger(i, t, training) for i, t in enumerate(taggers or [{"name": "linear"}])),
            methods=tuple(cell for i, t in enumerate(methods) for cell in self.methods(i, t, plan.ratios)),
            teachers=tuple(self.teacher(i, t, training) for i, t in enumerate(teachers or [{}])),
            corpora=tuple(self.corpus(i, t) for i, t in enumerate(corpora)),
        )
        if not plan.corpora:
            raise self.lines.error("", 0, "", "the plan has no [[corpora]]", "add one with name, train and test")
        names = [corpus.name for corpus in plan.corpora]
        for table, labels in (
            ("taggers", [tagger.label for tagger in plan.taggers]),
            ("methods", [method.label for method in plan.methods]),
            ("corpora", names),
            ("teachers", [teacher.label for teacher in plan.teachers]),
        ):
            self.check_distinct(table, labels)
        for method in plan.methods:
            for name in method.by_corpus:
                self.check_known("corpora", name, names, _At("methods", method.table, "by_corpus"))
        return plan

    def construct(self, cls: type[T], name: str, values: Mapping[str, Any], at: _At) -> T:
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        try:
            return construct(cls, name, values)
        except (ParameterError, UnknownNameError) as error:
            raise self.error(at, key_of_error(error, values), error) from None

    def tables(self, data: dict[str, Any], name: str) -> list[dict[str, Any]]:
        tables = data.pop(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.lines.error(name, 0, "", f"{name} must be tables", f"write [[{name}]]")
        return [dict(table) for table in tables]

    def resolve(self, value: Any, at: _At) -> Any:
        """Make a path relative to the folder of the plan; what is no path stays, for the check to refuse it."""
        if not isinstance(value, str) or not value or "\0" in value:
            return value
        try:
            return self.folder / Path(value).expanduser()
        except RuntimeError:
            fault = InputError(f"there is no such user ({value})", remedy="give a whole path")
            raise self.error(at, "", fault) from None

    def corpus(self, i: int, table: dict[str, Any]) -> CorpusPlan:
        for key in ("train", "test", "dev", "unlabelled"):
            at = _At("corpora", i, key)
            part = table.get(key)
            if key == "test" and isinstance(part, dict) and not isinstance(part.get("rest"), int):
                table[key] = {name: self.resolve(file, at) for name, file in part.items()}
            elif isinstance(part, dict):
                table[key] = self.construct(DrawnPart, key, part, at)
            elif key in table:
                table[key] = self.resolve(part, at)
        return self.construct(CorpusPlan, "a corpus", table, _At("corpora", i))

    def tagger(self, i: int, table: dict[str, Any], training: _Trainings) -> TaggerPlan:
        own = self.trainings(table.pop("training", {}), training, _At("taggers", i, "training"))
        return self.component(TaggerPlan, "a tagger", {**table, **vars(own)}, _At("taggers", i))

    def teacher(self, i: int, table: dict[str, Any], training: _Trainings) -> TeacherPlan:
        """A teacher: keys that it does not define are those of its tagger."""
        own: dict[str, Any] = {key: table.pop(key) for key in ("label", "size", "seeds") if key in table}
        if table:
            at = _At("teachers", i, "")
            table |= vars(self.trainings(table.get("training", {}), training, at))
            own["tagger"] = self.component(TaggerPlan, "a teacher", {"name": "linear", **table}, at)
        return self.construct(TeacherPlan, "a teacher", own, _At("teachers", i))

    def methods(self, i: int, table: dict[str, Any], ratios: Any) -> list[MethodPlan]:
        """The method of a table, or those of its grid."""
        method = with_hidden(self.method(_At("methods", i), table, ratios), table=i)
        try:
            cells = method.cells
            for cell in cells if method.grid else ():
                cell.create()
        except EntaugError as error:
            raise self.error(_At("methods", i), "grid", error) from None
        return cells

    def method(self, at: _At, table: dict[str, Any], ratios: Any) -> MethodPlan:
        self.check_reserved(table, _RESERVED_FOR_METHODS, at)
        self.training(table.get("training", {}), TaggerTrainingConfig(), at._replace(key="training"))
        by_corpus = table.get("by_corpus")
        own_tables = [own for own in by_corpus.values() if isinstance(own, dict)] if isinstance(by_corpus, dict) else []
        for own in own_tables:
            self.check_reserved(own, _RESERVED_FOR_METHODS, at._replace(key="by_corpus"))
        for parameter in parameters(METHODS[table["name"]]) if table.get("name") in METHODS else ():
            for values in (table, *own_tables) if "relative" in parameter.metadata else ():
                if parameter.name in values:
                    values[parameter.name] = parameter.metadata["relative"](values[parameter.name], self.folder)
        return self.component(MethodPlan, "a method", {"ratios": ratios, **table}, at)

    def component(self, cls: type[T], name: str, table: dict[str, Any], at: _At) -> T:
        """A tagger or a method: keys that the plan does not define are its parameters."""
        defined = {f.name for f in fields(cls)} - {"params"}  # type: ignore[arg-type]
        values = {key: value for key, value in table.items() if key in defined}
        values["params"] = {key: value for key, value in table.items() if key not in defined}
        component: Any = self.construct(cls, name, {"label": table.get("name"), **values}, at)
        try:
            if getattr(component, "makes_sentences", True):
                component.create()
        except EntaugError as error:
            raise self.error(at, key_of_error(error, table), error) from None
        return component  # type: ignore[no-any-return]

    def training(self, table: Any, base: TaggerTrainingConfig, at: _At) -> TaggerTrainingConfig:
        if not isinstance(table, dict):
            error = InputError("training must be a table", remedy="write training = {epochs = 20}")
            raise self.error(at, "", error)
        self.check_reserved(table, _RESERVED_FOR_TRAINING, at)
        return self.construct(TaggerTrainingConfig, "training", {**vars(base), **table}, at)

    def trainings(self, table: Any, base: _Trainings, at: _At) -> _Trainings:
        """The hyperparameters of a table, and those that depend on the number of sentences."""
        scale_above: Any = table.pop("scale_above", base.scale_above) if isinstance(table, dict) else None
        by_size: Any = table.pop("by_size", {}) if isinstance(table, dict) else {}
        training = self.training(table, base.training, at)
        sizes = dict(base.by_size) if not table else {}
        at = at if at.key is not None else at._replace(key="by_size")
        for size, changes in by_size.items() if isinstance(by_size, dict) else [("", None)]:
            if not str(size).isdecimal() or not isinstance(changes, dict):
                message = "by_size must be tables of hyperparameters by number of gold sentences"
                raise self.error(at, "", InputError(message, remedy="write by_size = {500 = {epochs = 20}}"))
            sizes[int(size)] = self.training(changes, training, at)
        return _Trainings(training, dict(sorted(sizes.items())), scale_above)

    def check_reserved(self, table: Mapping[str, Any], remedies: Mapping[str, str], at: _At) -> None:
        for key in remedies.keys() & table.keys():
            raise self.error(at, key, InputError(f"{key} cannot be given here", remedy=remedies[key]))

    def check_distinct(self, table: str, labels: Sequence[str]) -> None:
        # Names of corpora become names of files, and some file systems ignore case.
        keys = [label.casefold() if table == "corpora" else label for label in labels]
        for i, label in enumerate(labels):
            if keys[i] in keys[:i]:
                remedy = f"give it another {'name' if table == 'corpora' else 'label'}"
                raise self.lines.error(table, i, "", f"{label!r} is there already, among the {table}", remedy)

    def check_known(self, kind: str, name: object, known: Sequence[str], at: _At) -> None:
        if name not in known:
            raise self.error(at, "", UnknownNameError(kind, str(name), known))

    def check_selections(self, plan: Plan, i: int, corpus: CorpusPlan) -> None:
        """Check that a corpus selects taggers and methods of the plan, and has a dev set if they need one."""
        groups = sorted({method.group for method in plan.methods if method.group})
        for key, others in (("taggers", []), ("methods", groups)):
            labels = [*(component.label for component in getattr(plan, key)), *others]
            for label in getattr(corpus, key) or ():
                self.check_known(key, label, labels, _At("corpora", i, key))
        used = list(filter(corpus.includes, plan.methods))
        for method in used:
            self.check_on_corpus(corpus, method)
        simple = {other.name: other for other in plan.corpora if not other.mix}
        for name in corpus.mix:
            self.check_known("corpora", name, list(simple), _At("corpora", i, "mix"))
        sources = [simple[name] for name in corpus.mix] or [corpus]
        for method in plan.methods:
            self.check_labels(plan, method)
            if method in used and method.is_self_training and all(source.unlabelled is None for source in sources):
                message = f"the corpus {corpus.name} has no unlabelled sentences for {method.label}"
                remedy = 'add unlabelled = "FILE", or unlabelled = {rest = 1000}'
                raise self.lines.error("corpora", i, "", message, remedy)
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
            raise self.lines.error("corpora", i, "", message, remedy)

    def check_on_corpus(self, corpus: CorpusPlan, method: MethodPlan) -> None:
        """Check the parameters that a method has on a corpus."""
        if not method.makes_sentences:
            return
        key = "by_corpus" if corpus.name in method.by_corpus else "language"
        try:
            own = method.on(corpus)
            if corpus.language and "language" in own.params:
                message = f"language is given twice, for the corpus {corpus.name} and for {method.label}"
                raise ParameterError(message, remedy="leave it out of the method")
            own.create()
        except EntaugError as error:
            raise self.error(_At("methods", method.table), key, error) from None

    def check_labels(self, plan: Plan, method: MethodPlan) -> None:
        """Check the labels that a method refers to, and its own."""
        at = _At("methods", method.table)
        teachers = [teacher.label for teacher in plan.teachers]
        if method.teacher is not None:
            self.check_known("teacher", method.teacher, teachers, at._replace(key="teacher"))
        if method.label in teachers:
            message = f"{method.label!r} is there already, among the teachers"
            raise self.error(at, "label", InputError(message, remedy="give it another label"))
        simple = [other.label for other in plan.methods if not other.combine]
        for label in method.combine:
            self.check_known("methods", label, simple, at._replace(key="combine"))
