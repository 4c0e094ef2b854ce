"""The plan of an experiment: a TOML file, checked whole before any work.

Every fault names the file, the line and what to do.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import ceil
from pathlib import Path
from typing import Any

from entaug.augmenters import create_augmenter
from entaug.augmenters.base import Augmenter
from entaug.errors import EntaugError, InputError, UnknownNameError
from entaug.experiment.subsets import DRAWS
from entaug.taggers.base import TAGGERS, TaggerTrainingConfig, TrainableTagger, create_tagger

__all__ = ["CorpusPlan", "MethodPlan", "Part", "Plan", "TaggerPlan", "read_plan"]

PATIENCE = "patience"
BASELINES = ("gold", "gold-steps", "duplicate")
LEAKAGE = ("say", "drop", "refuse")
MOST_COPIES = 10  # the patience rule ends there: CASSI 3.2.2
LARGE = 1000  # from so many sentences on it begins with quarters


@dataclass(frozen=True)
class Part:
    """Where the sentences of dev or test come from.

    Args:
        path: a file; None where they are drawn from the part of the training file that no subset uses.
        rest: how many to draw then.
    """

    path: Path | None = None
    rest: int | None = None


@dataclass(frozen=True)
class CorpusPlan:
    """One corpus of a plan.

    Args:
        name: what it is called in tables.
        train: the file that subsets are drawn from.
        test: what the taggers are tested on.
        dev: what amounts and epochs are chosen by, if anything.
        sizes: of the subsets, or shares where they are drawn as fractions; None for the whole file.
        subset: how they are drawn: a key of `entaug.experiment.subsets.DRAWS`.
        subset_seed: of the drawing.
        overlap: which mentions taggers of flat mentions learn; see `entaug.tags.flatten`.
        taggers: labels of the taggers to train on it; None for all.
        methods: labels of the methods to use on it; None for all.
        missing_types: ``"allow"`` where dev or test may have types that train has not.
        options: for reading its files.
    """

    name: str
    train: Path
    test: Part
    dev: Part | None = None
    sizes: tuple[float, ...] | None = None
    subset: str = "progressive"
    subset_seed: int = 0
    overlap: str | None = None
    taggers: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    missing_types: str = "refuse"
    options: Mapping[str, Any] = field(default_factory=dict)

    def takes(self, part: TaggerPlan | MethodPlan) -> bool:
        """Whether a tagger or method of the plan is for this corpus."""
        chosen = self.taggers if isinstance(part, TaggerPlan) else self.methods
        return chosen is None or part.label in chosen


@dataclass(frozen=True)
class MethodPlan:
    """One method of a plan.

    Args:
        label: what it is called in tables.
        name: of the method.
        params: its parameters.
        amounts: of new sentences, in multiples of the gold ones; or the patience rule.
    """

    label: str
    name: str
    params: Mapping[str, Any]
    amounts: tuple[float, ...] | str

    def augmenter(self, copies: int, seed: int) -> Augmenter:
        """The method, asked for so many copies."""
        return create_augmenter(self.name, **self.params, copies=copies, seed=seed)


@dataclass(frozen=True)
class TaggerPlan:
    """One tagger of a plan.

    Args:
        label: what it is called in tables.
        name: of the tagger.
        params: its parameters.
        training: how it is trained.
    """

    label: str
    name: str
    params: Mapping[str, Any]
    training: TaggerTrainingConfig

    def make(self, overlap: str | None = None) -> TrainableTagger:
        """A new tagger, told what to do with nested mentions where it has to be."""
        given = dict(self.params)
        if overlap is not None and self.name != "w2ner":
            given.setdefault("overlap", overlap)
        return create_tagger(self.name, **given)


@dataclass(frozen=True)
class Plan:
    """A plan, checked.

    Args:
        path: its file.
        output: the folder for records and what runs share.
        seeds: one run each.
        baselines: which of gold, gold-steps and duplicate to train.
        leakage: what to do with training sentences that stand in dev or test too: ``"say"`` so, ``"drop"`` them from
            training, or ``"refuse"``.
        threads: of a run; results may depend on it in the last place, so it stands in the plan.
        corpora: see `CorpusPlan`.
        taggers: see `TaggerPlan`.
        methods: see `MethodPlan`.
        lines: where tables and keys stand, for errors.
    """

    path: Path
    output: Path
    seeds: tuple[int, ...]
    baselines: tuple[str, ...]
    leakage: str
    threads: int
    corpora: tuple[CorpusPlan, ...]
    taggers: tuple[TaggerPlan, ...]
    methods: tuple[MethodPlan, ...]
    lines: Lines

    def fault(self, place: Place, message: str, remedy: str) -> InputError:
        """An error at a place of the plan."""
        return InputError(message, path=str(self.path), line=self.lines.of(*place), remedy=remedy)


Place = tuple[str, int, str]
"""A table (or ""), which of that name, and a key (or "")."""


class Lines:
    """On which line of a TOML file each table and key stands; `tomllib` does not tell."""

    def __init__(self, text: str) -> None:
        self._found: dict[Place, int] = {}
        counts: dict[str, int] = {}
        table, number = "", 0
        for line, content in enumerate(text.split("\n"), start=1):
            if header := re.match(r"\s*\[\[?([\s\w.\-\"']+)\]", content):
                table = re.sub(r"[\s\"']", "", header[1])
                number = counts.get(table, 0)
                counts[table] = number + 1
                self._found.setdefault((table, number, ""), line)
                above, _, below = table.rpartition(".")
                if above:  # [corpora.options] belongs to the last of [[corpora]]
                    self._found.setdefault((above, max(0, counts.get(above, 0) - 1), below), line)
            elif key := re.match(r"\s*[\"']?([\w\-]+)[\"']?\s*(?:=|\.\s*[\"']?([\w\-]+))", content):
                self._found.setdefault((table, number, key[1]), line)
                if key[2] and not table:  # training.epochs = 3
                    self._found.setdefault((key[1], 0, key[2]), line)

    def of(self, table: str, number: int, key: str) -> int | None:
        """The line of a key, or else of its table, or else of the key that holds the table: ``corpora = [{...}]``."""
        places: list[Place] = [(table, number, key), (table, number, ""), ("", 0, table)]
        return next((self._found[place] for place in places if place in self._found), None)


def amounts_by_patience(size: int) -> list[float]:
    """The amounts that the patience rule tries, in order.

    Example:
        >>> amounts_by_patience(1000)[:4], amounts_by_patience(100)[-1]
        ([0.25, 0.5, 0.75, 1.0], 10.0)
    """
    return [*([0.25, 0.5, 0.75] if size >= LARGE else []), *map(float, range(1, MOST_COPIES + 1))]


def copies_made(amount: float, amounts: tuple[float, ...] | str) -> int:
    """How many copies are made at once for an amount, so that amounts share them.

    With a list the most that it names. With the patience rule steps that grow, since nobody knows where it ends.

    Example:
        >>> copies_made(1, (1, 3)), copies_made(0.5, "patience"), copies_made(4, "patience")
        (3, 1, 6)
    """
    if isinstance(amounts, str):
        return next(step for step in (1, 3, 6, MOST_COPIES) if step >= amount)
    return ceil(max(amounts))


# ------------------------------------------------------------------------------------------------------------- reading


def read_plan(path: str | Path) -> Plan:
    """Read and check a plan; files of corpora are looked for, but not read yet.

    Raises:
        InputError: anything is wrong with it; it names the line.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        data = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=str(path), remedy="check the path") from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", path=str(path), remedy="save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else None
        raise InputError(f"is not TOML ({error})", path=str(path), line=line, remedy="correct it") from None
    except RecursionError:
        raise InputError("is nested too deeply", path=str(path), remedy="correct it") from None
    return _Reader(path, data, Lines(text)).plan()


class _Reader:
    def __init__(self, path: Path, data: dict[str, Any], lines: Lines) -> None:
        self.path = path
        self.data = data
        self.lines = lines

    def fault(self, place: Place, message: str, remedy: str) -> InputError:
        return InputError(message, path=str(self.path), line=self.lines.of(*place), remedy=remedy)

    def plan(self) -> Plan:
        known = {"name", "output", "seeds", "amounts", "baselines", "leakage", "threads"}
        known |= {"training", "corpora", "taggers", "methods"}
        self.keys(("", 0, ""), self.data, known)
        top = self.data
        self.text(("", 0, "name"), top.get("name", self.path.stem))
        seeds = self.numbers(("", 0, "seeds"), top.get("seeds", [1, 2, 3]))
        baselines = self.some(("", 0, "baselines"), top.get("baselines", list(BASELINES)), BASELINES)
        threads = top.get("threads", 1)
        if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
            raise self.fault(("", 0, "threads"), f"threads is {threads!r}", "give a whole number of at least 1")
        training = self.training(("training", 0, ""), top.get("training", {}), TaggerTrainingConfig())
        amounts = self.amounts(("", 0, "amounts"), top.get("amounts", [1]))
        taggers = self.labelled("taggers", [{"name": "linear"}], lambda i, t: self.tagger(i, t, training))
        methods = self.labelled("methods", [], lambda i, t: self.method(i, t, amounts))
        corpora = self.labelled("corpora", [], lambda i, t: self.corpus(i, t, taggers, methods))
        if not corpora:
            raise self.fault(("", 0, ""), "the plan has no [[corpora]]", "add one with name, train and test")
        if "gold" not in baselines:
            raise self.fault(("", 0, "baselines"), "baselines lack gold", "add it: gains are told against it")
        plan = Plan(
            path=self.path,
            output=self.folder(top.get("output", self.path.stem)),
            seeds=tuple(seeds),
            baselines=tuple(baselines),
            leakage=self.one(("", 0, "leakage"), top.get("leakage", "say"), LEAKAGE),
            threads=threads,
            corpora=tuple(corpora),
            taggers=tuple(taggers),
            methods=tuple(methods),
            lines=self.lines,
        )
        self.check_dev(plan)
        return plan

    def check_dev(self, plan: Plan) -> None:
        for i, corpus in enumerate(plan.corpora):
            if corpus.dev is not None:
                continue
            best = [t.label for t in plan.taggers if t.training.checkpoint == "best" and corpus.takes(t)]
            patient = [m.label for m in plan.methods if m.amounts == PATIENCE and corpus.takes(m)]
            if best or patient:
                why = f"the epoch of {best[0]}" if best else f"the amount of {patient[0]}"
                raise self.fault(
                    ("corpora", i, ""),
                    f"the corpus {corpus.name} has no dev set, and {why} is chosen by dev",
                    'add dev = "FILE", or dev = {rest = 300} to draw one from the unused part of train',
                )

    # Tables ----------------------------------------------------------------------------------------------------------

    def labelled(self, name: str, default: list[dict[str, Any]], make: Any) -> list[Any]:
        tables = self.data.get(name, default)
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            raise self.fault((name, 0, ""), f"{name} must be tables", f"write [[{name}]]")
        made = [make(i, dict(table)) for i, table in enumerate(tables)]
        seen: set[str] = set()
        for i, one in enumerate(made):
            label = getattr(one, "label", None) or one.name
            # Names of corpora become names of files, and some file systems do not tell cases apart.
            key, known = ("name", label.casefold()) if name == "corpora" else ("label", label)
            if known in seen or (name == "methods" and label in BASELINES):
                what = "as a baseline" if label in BASELINES else f"among the {name}"
                raise self.fault((name, i, ""), f"{label!r} is there already, {what}", f"give it another {key}")
            seen.add(known)
        return made

    def corpus(self, i: int, table: dict[str, Any], taggers: list[TaggerPlan], methods: list[MethodPlan]) -> CorpusPlan:
        place = ("corpora", i, "")
        known = {f.name for f in fields(CorpusPlan)}
        self.keys(place, table, known)
        for key in ("name", "train", "test"):
            if key not in table:
                raise self.fault(place, f"a corpus lacks {key}", f"add {key} = ...")
        label = self.text(("corpora", i, "name"), table["name"])
        if re.search(r"[/\\]", label) or label.startswith("."):
            remedy = "give one that can begin the name of a file: no slashes, no full stop in front"
            raise self.fault(("corpora", i, "name"), f"name is {label!r}", remedy)
        sizes = table.get("sizes")
        if sizes is not None:
            sizes = self.sizes(("corpora", i, "sizes"), sizes, shares=table.get("subset") == "fraction")
        options = table.get("options", {})
        if not isinstance(options, dict):
            raise self.fault(("corpora", i, "options"), "options must be a table", "write options = {tag_column = 2}")
        return CorpusPlan(
            name=label,
            train=self.file(("corpora", i, "train"), table["train"]),
            test=self.part(("corpora", i, "test"), table["test"], sizes),
            dev=self.part(("corpora", i, "dev"), table["dev"], sizes) if "dev" in table else None,
            sizes=sizes,
            subset=self.one(("corpora", i, "subset"), table.get("subset", "progressive"), tuple(DRAWS)),
            subset_seed=self.number(("corpora", i, "subset_seed"), table.get("subset_seed", 0)),
            overlap=self.one(("corpora", i, "overlap"), table.get("overlap"), (None, "outermost", "innermost")),
            taggers=self.chosen(("corpora", i, "taggers"), table, [t.label for t in taggers]),
            methods=self.chosen(("corpora", i, "methods"), table, [m.label for m in methods]),
            missing_types=self.one(
                ("corpora", i, "missing_types"), table.get("missing_types", "refuse"), ("refuse", "allow")
            ),
            options=options,
        )

    def sizes(self, place: Place, value: Any, *, shares: bool) -> tuple[float, ...]:
        if not shares:
            return tuple(self.numbers(place, value, least=1))
        good = isinstance(value, list) and value and all(isinstance(v, float) and 0 < v < 1 for v in value)
        if not good or len(set(value)) < len(value):
            raise self.fault(place, f"sizes is {value!r}", "give shares of the corpus, such as [0.1], each once")
        return tuple(value)

    def part(self, place: Place, value: Any, sizes: Any) -> Part:
        if isinstance(value, dict):
            if set(value) != {"rest"}:
                raise self.fault(place, f"{place[2]} is {value!r}", "give a file, or {rest = 500}")
            if sizes is None:
                raise self.fault(place, "the whole of train is used, so there is no rest", "give sizes, or a file")
            return Part(rest=self.number(place, value["rest"], least=1))
        return Part(path=self.file(place, value))

    def chosen(self, place: Place, table: dict[str, Any], known: list[str]) -> tuple[str, ...] | None:
        return tuple(self.some(place, table[place[2]], known)) if place[2] in table else None

    def tagger(self, i: int, table: dict[str, Any], training: TaggerTrainingConfig) -> TaggerPlan:
        place = ("taggers", i, "")
        if "name" not in table:
            raise self.fault(place, "a tagger lacks its name", f"add name = ...: {', '.join(TAGGERS)}")
        name = self.one(("taggers", i, "name"), table.pop("name"), tuple(TAGGERS))
        label = self.text(("taggers", i, "label"), table.pop("label", name))
        own = self.training(("taggers", i, "training"), table.pop("training", {}), training)
        made = TaggerPlan(label, name, table, own)
        self.guarded("taggers", i, table, made.make, place)
        return made

    def method(self, i: int, table: dict[str, Any], amounts: Any) -> MethodPlan:
        place = ("methods", i, "")
        name = table.pop("name", None)
        if not isinstance(name, str):
            raise self.fault(place, "a method lacks its name", 'add name = "lwtr"; see: entaug methods')
        for key in ("copies", "seed"):
            if key in table:
                remedy = "use amounts" if key == "copies" else "use the seeds of the plan"
                raise self.fault(("methods", i, key), f"{key} cannot be given here", remedy)
        label = self.text(("methods", i, "label"), table.pop("label", name))
        own = self.amounts(("methods", i, "amounts"), table.pop("amounts")) if "amounts" in table else amounts
        made = MethodPlan(label, name, table, own)
        self.guarded("methods", i, table, lambda: made.augmenter(1, 0), place)
        return made

    def guarded(self, name: str, i: int, table: dict[str, Any], make: Any, place: Place) -> None:
        """Make what a table describes, so that its faults are found before any work."""
        try:
            make()
        except EntaugError as error:
            key = next((k for k in table if k in error.message), None)
            place = (name, i, key or ("name" if isinstance(error, UnknownNameError) else ""))
            raise self.fault(place, error.message, error.remedy or "correct it") from None

    # Values ----------------------------------------------------------------------------------------------------------

    def keys(self, place: Place, table: Mapping[str, Any], known: Iterable[str]) -> None:
        for key in table:
            if key not in known:
                error = UnknownNameError("key", key, sorted(known))
                raise self.fault((place[0], place[1], key), error.message, error.remedy or "take it out")

    def training(self, place: Place, table: Any, base: TaggerTrainingConfig) -> TaggerTrainingConfig:
        where = place[:2] if place[0] == "training" else None
        if not isinstance(table, dict):
            raise self.fault(place, "training must be a table", "write training = {epochs = 20}")
        for key in table:
            at: Place = (*where, key) if where else place
            if key in ("seed", "steps"):
                remedy = "use the seeds of the plan" if key == "seed" else "give epochs: steps follow from amounts"
                raise self.fault(at, f"{key} cannot be given here", remedy)
            if key not in {f.name for f in fields(TaggerTrainingConfig)}:
                error = UnknownNameError(
                    "key", key, [f.name for f in fields(TaggerTrainingConfig) if f.name not in ("seed", "steps")]
                )
                raise self.fault(at, error.message, error.remedy or "take it out")
            try:
                replace(base, **{key: table[key]})
            except EntaugError as error:
                raise self.fault(at, error.message, "correct it") from None
        return replace(base, **table)

    def amounts(self, place: Place, value: Any) -> tuple[float, ...] | str:
        if value == PATIENCE:
            return PATIENCE
        remedy = f'give numbers above 0 up to 100, each once, such as [1, 3], or "{PATIENCE}"'
        if not isinstance(value, list) or not value:
            raise self.fault(place, f"amounts is {value!r}", remedy)
        for one in value:
            if isinstance(one, bool) or not isinstance(one, int | float) or not 0 < one <= 100:
                raise self.fault(place, f"amounts has {one!r}", remedy)
        if len(set(value)) < len(value):
            raise self.fault(place, f"amounts is {value!r}", remedy)
        return tuple(sorted(map(float, value)))

    def numbers(self, place: Place, value: Any, least: int | None = None) -> list[int]:
        good = isinstance(value, list) and value and all(isinstance(v, int) and not isinstance(v, bool) for v in value)
        if not good or len(set(value)) < len(value) or (least is not None and min(value) < least):
            bound = "" if least is None else f" of at least {least}"
            raise self.fault(place, f"{place[2]} is {value!r}", f"give whole numbers{bound}, each once")
        if max(map(abs, value)) >= 2**63:
            raise self.fault(place, f"{place[2]} is {value!r}", "give numbers below 2^63")
        return list(value)

    def number(self, place: Place, value: Any, least: int | None = None) -> int:
        bad = isinstance(value, bool) or not isinstance(value, int)
        if bad or (least is not None and value < least) or abs(value) >= 2**63:
            bound = "" if least is None else f" of at least {least}"
            raise self.fault(place, f"{place[2]} is {value!r}", f"give a whole number{bound}")
        return int(value)

    def text(self, place: Place, value: Any, longest: int = 100) -> str:
        if not isinstance(value, str) or not value.strip() or "|" in value or not value.isprintable():
            raise self.fault(place, f"{place[2]} is {value!r}", "give a short text without | or line breaks")
        if len(value.encode()) > longest:
            raise self.fault(place, f"{place[2]} is {value[:30]!r}...", f"give a text of at most {longest} bytes")
        return value

    def one(self, place: Place, value: Any, known: tuple[Any, ...]) -> Any:
        if value not in known:
            names = [str(k) for k in known if k is not None]
            error = UnknownNameError(place[2], str(value), names)
            raise self.fault(place, error.message, error.remedy or f"use one of {', '.join(names)}")
        return value

    def some(self, place: Place, value: Any, known: Iterable[str]) -> list[str]:
        if not isinstance(value, list):
            raise self.fault(place, f"{place[2]} is {value!r}", "give a list of names")
        return [self.one(place, v, tuple(known)) for v in value]

    def file(self, place: Place, value: Any) -> Path:
        found = self.folder(value, place)
        try:
            there = found.is_file()
        except OSError:  # such as a name that is too long
            there = False
        if not there:
            raise self.fault(place, f"{place[2]}: there is no file {found}", "paths are relative to the plan's folder")
        return found

    def folder(self, value: Any, place: Place = ("", 0, "output")) -> Path:
        if not isinstance(value, str) or not value or "\0" in value:
            raise self.fault(place, f"{place[2]} is {value!r}", "give a path")
        try:
            return self.path.parent / Path(value).expanduser()
        except RuntimeError:
            raise self.fault(place, f"{place[2]}: there is no such user ({value})", "give a whole path") from None
