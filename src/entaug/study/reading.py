"""Read a plan from a TOML file and check it; every error names the file, the line and a remedy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from entaug.config.params import construct, parameters
from entaug.errors import EntaugError, InputError, ParameterError, UnknownNameError
from entaug.methods import METHODS
from entaug.study.lines import Position, TomlLines
from entaug.study.plan import CorpusPlan, DrawnPart, MethodPlan, Plan, TaggerPlan, TeacherPlan
from entaug.study.values import PATIENCE
from entaug.taggers.base import TaggerTrainingConfig

__all__ = ["key_of_error", "read_plan"]

T = TypeVar("T")

PositionOf = Callable[[str], Position]
"""Returns the position of a key of a table."""

_RESERVED_FOR_METHODS = {"copies": "use amounts", "seed": "use the seeds of the plan"}
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
    return _PlanReader(path, TomlLines(text)).read(data)


def key_of_error(error: EntaugError, table: Mapping[str, Any]) -> str:
    """The key of a table that an error is about, or ""."""
    if isinstance(error, ParameterError) and error.parameter in table:
        return error.parameter or ""
    keys = [key for key in table if repr(key) in error.message]
    keys += [key for key, value in table.items() if isinstance(value, str) and repr(value) in error.message]
    keys += [key for key in table if re.search(rf"\b{re.escape(key)}\b", error.message)]
    return keys[0] if keys else ""


def _always(position: Position) -> PositionOf:
    return lambda _: position


@dataclass(frozen=True)
class _Trainings:
    training: TaggerTrainingConfig = field(default_factory=TaggerTrainingConfig)
    by_size: Mapping[int, TaggerTrainingConfig] = field(default_factory=dict)
    scale_above: int | None = None


class _PlanReader:
    """Constructs the tables of a plan."""

    def __init__(self, path: Path, lines: TomlLines) -> None:
        self.path = path
        self.lines = lines

    def error(self, position: Position, message: str, remedy: str | None) -> InputError:
        line = self.lines.line_of(*position)
        return InputError(message, path=str(self.path), line=line, remedy=remedy or "correct it")

    def read(self, data: Mapping[str, Any]) -> Plan:
        top = {"name": self.path.stem, "output": self.path.stem, **data}
        top["output"] = self.resolve(top["output"], ("", 0, "output"))
        training = self.trainings(top.pop("training", {}), _Trainings(), lambda key: ("training", 0, key))
        names = ("corpora", "taggers", "methods", "teachers")
        corpora, taggers, methods, teachers = (self.tables(top, name) for name in names)
        plan = self.construct(Plan, "the plan", {**top, "training": training.training}, lambda key: ("", 0, key))
        plan = replace(
            plan,
            taggers=tuple(self.tagger(i, t, training) for i, t in enumerate(taggers or [{"name": "linear"}])),
            methods=tuple(cell for i, t in enumerate(methods) for cell in self.methods(i, t, plan.amounts)),
            teachers=tuple(self.teacher(i, t, training) for i, t in enumerate(teachers or [{}])),
            corpora=tuple(self.corpus(i, t) for i, t in enumerate(corpora)),
        )
        if not plan.corpora:
            raise self.error(("", 0, ""), "the plan has no [[corpora]]", "add one with name, train and test")
        self.check_distinct("taggers", [tagger.label for tagger in plan.taggers])
        self.check_distinct("methods", [method.label for method in plan.methods])
        self.check_distinct("corpora", [corpus.name for corpus in plan.corpora])
        self.check_distinct("teachers", [teacher.label for teacher in plan.teachers])
        corpus_names = [corpus.name for corpus in plan.corpora]
        for method in plan.methods:
            for name in method.by_corpus.keys() - set(corpus_names):
                error = UnknownNameError("corpora", name, corpus_names)
                raise self.error(("methods", method.table, "by_corpus"), error.message, error.remedy)
        for i, corpus in enumerate(plan.corpora):
            self.check_selections(plan, i, corpus)
        object.__setattr__(plan, "path", self.path)
        object.__setattr__(plan, "lines", self.lines)
        return plan

    def construct(self, cls: type[T], name: str, values: Mapping[str, Any], position: PositionOf) -> T:
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        try:
            return construct(cls, name, values)
        except (ParameterError, UnknownNameError) as error:
            raise self.error(position(key_of_error(error, values)), error.message, error.remedy) from None

    def tables(self, data: dict[str, Any], name: str) -> list[dict[str, Any]]:
        tables = data.pop(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.error((name, 0, ""), f"{name} must be tables", f"write [[{name}]]")
        return [dict(table) for table in tables]

    def resolve(self, value: Any, position: Position) -> Any:
        """Make a path relative to the folder of the plan; what is no path stays, for the check to refuse it."""
        if not isinstance(value, str) or not value or "\0" in value:
            return value
        try:
            return self.path.parent / Path(value).expanduser()
        except RuntimeError:
            raise self.error(position, f"there is no such user ({value})", "give a whole path") from None

    def corpus(self, i: int, table: dict[str, Any]) -> CorpusPlan:
        for key in ("train", "test", "dev", "unlabelled"):
            position = ("corpora", i, key)
            part = table.get(key)
            if key == "test" and isinstance(part, dict) and not isinstance(part.get("rest"), int):
                table[key] = {name: self.resolve(file, position) for name, file in part.items()}
            elif isinstance(part, dict):
                table[key] = self.construct(DrawnPart, key, part, _always(position))
            elif key in table:
                table[key] = self.resolve(part, position)
        return self.construct(CorpusPlan, "a corpus", table, lambda key: ("corpora", i, key))

    def tagger(self, i: int, table: dict[str, Any], training: _Trainings) -> TaggerPlan:
        own = self.trainings(table.pop("training", {}), training, _always(("taggers", i, "training")))
        return self.component(TaggerPlan, "a tagger", {**table, **vars(own)}, lambda key: ("taggers", i, key))

    def teacher(self, i: int, table: dict[str, Any], training: _Trainings) -> TeacherPlan:
        """A teacher: keys that it does not define are those of its tagger."""
        own: dict[str, Any] = {key: table.pop(key) for key in ("label", "size", "seeds") if key in table}
        if table:
            position = _always(("teachers", i, ""))
            table |= vars(self.trainings(table.get("training", {}), training, position))
            own["tagger"] = self.component(TaggerPlan, "a teacher", {"name": "linear", **table}, position)
        return self.construct(TeacherPlan, "a teacher", own, lambda key: ("teachers", i, key))

    def methods(self, i: int, table: dict[str, Any], amounts: Any) -> list[MethodPlan]:
        """The method of a table, or those of its grid."""
        method = self.method(i, table, amounts)
        object.__setattr__(method, "table", i)
        try:
            cells = method.cells
            for cell in cells if method.grid else ():
                cell.create()
        except EntaugError as error:
            raise self.error(("methods", i, "grid"), error.message, error.remedy) from None
        return cells

    def method(self, i: int, table: dict[str, Any], amounts: Any) -> MethodPlan:
        def position(key: str) -> Position:
            return "methods", i, key

        self.check_reserved(table, _RESERVED_FOR_METHODS, position)
        self.training(table.get("training", {}), TaggerTrainingConfig(), lambda _: position("training"))
        by_corpus = table.get("by_corpus")
        own_tables = [own for own in by_corpus.values() if isinstance(own, dict)] if isinstance(by_corpus, dict) else []
        for own in own_tables:
            self.check_reserved(own, _RESERVED_FOR_METHODS, lambda _: position("by_corpus"))
        for parameter in parameters(METHODS[table["name"]]) if table.get("name") in METHODS else ():
            for values in (table, *own_tables) if "relative" in parameter.metadata else ():
                if parameter.name in values:
                    values[parameter.name] = parameter.metadata["relative"](values[parameter.name], self.path.parent)
        return self.component(MethodPlan, "a method", {"amounts": amounts, **table}, position)

    def component(self, cls: type[T], name: str, table: dict[str, Any], position: PositionOf) -> T:
        """A tagger or a method: keys that the plan does not define are its parameters."""
        defined = {f.name for f in fields(cls)} - {"params"}  # type: ignore[arg-type]
        values = {key: value for key, value in table.items() if key in defined}
        values["params"] = {key: value for key, value in table.items() if key not in defined}
        component: Any = self.construct(cls, name, {"label": table.get("name"), **values}, position)
        try:
            if getattr(component, "makes_sentences", True):
                component.create()
        except EntaugError as error:
            raise self.error(position(key_of_error(error, table)), error.message, error.remedy) from None
        return component  # type: ignore[no-any-return]

    def training(self, table: Any, base: TaggerTrainingConfig, position: PositionOf) -> TaggerTrainingConfig:
        if not isinstance(table, dict):
            raise self.error(position(""), "training must be a table", "write training = {epochs = 20}")
        self.check_reserved(table, _RESERVED_FOR_TRAINING, position)
        return self.construct(TaggerTrainingConfig, "training", {**vars(base), **table}, position)

    def trainings(self, table: Any, base: _Trainings, position: PositionOf) -> _Trainings:
        """The hyperparameters of a table, and those that depend on the number of sentences."""
        scale_above: Any = table.pop("scale_above", base.scale_above) if isinstance(table, dict) else None
        by_size: Any = table.pop("by_size", {}) if isinstance(table, dict) else {}
        training = self.training(table, base.training, position)
        sizes = dict(base.by_size) if not table else {}
        for size, changes in by_size.items() if isinstance(by_size, dict) else [("", None)]:
            if not str(size).isdecimal() or not isinstance(changes, dict):
                message = "by_size must be tables of hyperparameters by number of gold sentences"
                raise self.error(position("by_size"), message, "write by_size = {500 = {epochs = 20}}")
            sizes[int(size)] = self.training(changes, training, lambda _: position("by_size"))
        return _Trainings(training, dict(sorted(sizes.items())), scale_above)

    def check_reserved(self, table: Mapping[str, Any], remedies: Mapping[str, str], position: PositionOf) -> None:
        for key in remedies.keys() & table.keys():
            raise self.error(position(key), f"{key} cannot be given here", remedies[key])

    def check_distinct(self, table: str, labels: Sequence[str]) -> None:
        # Names of corpora become names of files, and some file systems ignore case.
        keys = [label.casefold() if table == "corpora" else label for label in labels]
        for i, label in enumerate(labels):
            if keys[i] in keys[:i]:
                remedy = f"give it another {'name' if table == 'corpora' else 'label'}"
                raise self.error((table, i, ""), f"{label!r} is there already, among the {table}", remedy)

    def check_selections(self, plan: Plan, i: int, corpus: CorpusPlan) -> None:
        """Check that a corpus selects taggers and methods of the plan, and has a dev set if they need one."""
        for key in ("taggers", "methods"):
            labels = [component.label for component in getattr(plan, key)]
            labels += sorted({method.group for method in plan.methods if method.group} if key == "methods" else ())
            for label in getattr(corpus, key) or ():
                if label not in labels:
                    error = UnknownNameError(key, str(label), labels)
                    raise self.error(("corpora", i, key), error.message, error.remedy)
        for method in filter(corpus.includes, plan.methods):
            self.check_on_corpus(corpus, method)
        sources = [corpus] if not corpus.mix else self.members(plan, i, corpus)
        for method in plan.methods:
            self.check_combined(plan, method.table, method)
            has_unlabelled = any(source.unlabelled is not None for source in sources)
            if corpus.includes(method) and method.is_self_training and not has_unlabelled:
                message = f"the corpus {corpus.name} has no unlabelled sentences for {method.label}"
                raise self.error(("corpora", i, ""), message, 'add unlabelled = "FILE", or unlabelled = {rest = 1000}')
        by_dev = [
            f"the epoch of {tagger.label}"
            for tagger in plan.taggers
            if corpus.includes(tagger)
            and any(training.checkpoint == "best" for training in (tagger.training, *tagger.by_size.values()))
        ]
        by_dev += [f"the amount of {m.label}" for m in plan.methods if m.amounts == PATIENCE and corpus.includes(m)]
        by_dev += [f"the cell of the grid {m.group}" for m in plan.methods if m.group and corpus.includes(m)]
        if by_dev and any(source.dev is None for source in sources):
            raise self.error(
                ("corpora", i, ""),
                f"the corpus {corpus.name} has no dev set, and {by_dev[0]} is chosen by dev",
                'add dev = "FILE", or dev = {rest = 300} to draw one from the unused part of train',
            )

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
            raise self.error(("methods", method.table, key), error.message, error.remedy) from None

    def members(self, plan: Plan, i: int, corpus: CorpusPlan) -> list[CorpusPlan]:
        """The corpora that a mixed one consists of."""
        simple = {other.name: other for other in plan.corpora if not other.mix}
        for name in corpus.mix:
            if name not in simple:
                error = UnknownNameError("corpora", str(name), simple)
                raise self.error(("corpora", i, "mix"), error.message, error.remedy)
        return [simple[name] for name in corpus.mix]

    def check_combined(self, plan: Plan, i: int, method: MethodPlan) -> None:
        """Check the labels that a method refers to, and its own."""
        teachers = [teacher.label for teacher in plan.teachers]
        if method.teacher is not None and method.teacher not in teachers:
            unknown = UnknownNameError("teacher", method.teacher, teachers)
            raise self.error(("methods", i, "teacher"), unknown.message, unknown.remedy)
        if method.label in teachers:
            message = f"{method.label!r} is there already, among the teachers"
            raise self.error(("methods", i, "label"), message, "give it another label")
        simple = [other.label for other in plan.methods if not other.combine]
        for label in method.combine:
            if label not in simple:
                error = UnknownNameError("methods", str(label), simple)
                raise self.error(("methods", i, "combine"), error.message, error.remedy)
