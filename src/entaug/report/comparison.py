"""What experiments have shown: records of runs to Markdown.

A record is one line of JSON in ``runs.jsonl``: one tagger trained on one arm with one seed, and its scores. Arms are
``gold`` (the plan's epochs on the gold sentences alone), ``gold-steps`` (gold alone, for as many steps as each arm of
the same amount takes), ``duplicate`` (gold repeated) and the labels of methods. Verdicts rest on the comparison with
``gold-steps``, which no method wins just by training longer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import orjson

from entaug.errors import InputError
from entaug.scoring.significance import Difference, paired_bootstrap
from entaug.scoring.span_f1 import Scores

__all__ = [
    "Cell",
    "Parts",
    "Row",
    "Run",
    "cell_name",
    "group_name",
    "is_record",
    "markdown_report",
    "parts_of",
    "read_run_records",
]

GOLD, STEPS, DUPLICATE = "gold", "gold-steps", "duplicate"
_FIRST_ARMS = (GOLD, STEPS, DUPLICATE)
_SIGNS = {"helps": "↑", "hurts": "↓", "no difference seen": "="}

Cell = tuple[str, int, str]
"""Corpus, size and tagger: within a cell arms are compared."""
Group = tuple[str, float]
"""Arm and amount: the runs of a group differ by their seed."""


@dataclass(frozen=True)
class Run:
    """One record.

    Args:
        key: what names the run; of two records of one key with the same labels the later holds.
        corpus: the corpus's name.
        size: how many gold sentences the subset has.
        tagger: the tagger's label.
        arm: ``gold``, ``gold-steps``, ``duplicate`` or a method's label.
        amount: of new sentences, in multiples of the gold ones.
        seed: of the run.
        steps: optimiser steps of the training.
        new: how many new sentences there were.
        test: the scores on the test set, with the counts of its sentences.
        leaks: how many training sentences stand in ``dev`` and ``test`` too.
        search: ``"patience"`` where an amount is chosen by dev, else ``"list"``.
        chosen: whether the amount was.
        environment: what it was computed with.
        path: the file of the record.
        line: its line.
    """

    key: str
    corpus: str
    size: int
    tagger: str
    arm: str
    amount: float
    seed: int
    steps: int
    new: int
    test: Scores
    leaks: Mapping[str, int] = field(default_factory=dict)
    search: str = "list"
    chosen: bool = False
    environment: Mapping[str, Any] = field(default_factory=dict)
    path: str | None = None
    line: int | None = None

    @property
    def cell(self) -> Cell:
        """What it is compared within."""
        return self.corpus, self.size, self.tagger

    @property
    def group(self) -> Group:
        """What it differs from by its seed alone."""
        return self.arm, self.amount


# ------------------------------------------------------------------------------------------------------------- reading

_FIELDS: dict[str, tuple[type, ...]] = {
    "key": (str,),
    "corpus": (str,),
    "size": (int,),
    "tagger": (str,),
    "arm": (str,),
    "amount": (int, float),
    "seed": (int,),
    "steps": (int,),
    "sentences": (dict,),
    "test": (dict,),
    "test_counts": (dict,),
}
_MAY_LACK: dict[str, tuple[type, ...]] = {
    "leaks": (dict,),
    "search": (str,),
    "chosen": (bool,),
    "environment": (dict,),
}


def read_run_records(paths: Iterable[str | Path]) -> list[Run]:
    """The records of one or more experiments.

    Args:
        paths: folders that hold a ``runs.jsonl``, or such files.

    Returns:
        The runs, each once under each of its labels. A last line that breaks off, as when a run was killed while
        writing, is left out.

    Raises:
        InputError: a file is missing or holds no record, or a record is faulty; file and line are named.
    """
    found: dict[Any, Run] = {}
    for path in paths:
        file = Path(path, "runs.jsonl") if Path(path).is_dir() else Path(path)
        try:
            lines = file.read_bytes().split(b"\n")
        except OSError as error:
            remedy = "name the output folder of an experiment"
            raise InputError(f"cannot be read ({error.strerror})", path=str(file), remedy=remedy) from None
        before = len(found)
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                if number == len(lines):  # no line feed after it: it broke off
                    continue
                raise InputError(f"no JSON ({error})", path=str(file), line=number, remedy=_REMEDY) from None
            run = _run(record, str(file), number)
            # Arms, methods and corpora may share a run, each under its own labels.
            name = run.key, run.cell, run.group, run.seed
            found.pop(name, None)
            found[name] = run
        if len(found) == before and not any(run.path == str(file) for run in found.values()):
            raise InputError("holds no record of a run", path=str(file), remedy="let the experiment make some first")
    return list(found.values())


def is_record(value: object) -> bool:
    """Whether a line of JSON is meant as the record of a run, faulty or not."""
    return isinstance(value, dict) and {"arm", "tagger", "key"} <= value.keys()


_REMEDY = "delete the line, and the experiment makes the run again"


def _run(record: Any, path: str, line: int) -> Run:
    def fault(what: str) -> InputError:
        return InputError(what, path=path, line=line, remedy=_REMEDY)

    if not isinstance(record, dict):
        raise fault("a record must be a JSON object")
    for name, types in (_FIELDS | _MAY_LACK).items():
        if name not in record and name in _MAY_LACK:
            continue
        value = record.get(name)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            wanted = " or ".join(kind.__name__ for kind in types)
            raise fault(f"{name} is {'missing' if name not in record else f'no {wanted}'}")
    new = record["sentences"].get("new")
    if type(new) is not int:
        raise fault("sentences has no number for new")
    try:
        test = Scores.from_dict(record["test"], record["test_counts"])
    except InputError as error:
        raise fault(f"test: {error.message}") from None
    leaks = record.get("leaks", {})
    if any(type(count) is not int for count in leaks.values()):
        raise fault("leaks must hold numbers")
    plain = {name: record[name] for name in ("key", "corpus", "size", "tagger", "arm", "seed", "steps")}
    return Run(
        **plain,
        amount=float(record["amount"]),
        new=new,
        test=test,
        leaks=leaks,
        search=record.get("search", "list"),
        chosen=record.get("chosen", False),
        environment=record.get("environment", {}),
        path=path,
        line=line,
    )


# ------------------------------------------------------------------------------------------------------------ comparing


@dataclass(frozen=True)
class Row:
    """A group of runs within a cell, compared.

    Args:
        group: its arm and amount.
        runs: one a seed.
        over_gold: the gain of the mean F1 over gold alone at equal epochs.
        over_steps: the difference from gold alone at equal steps; None where there is nothing to compare with.
        notes: what is amiss with it.
    """

    group: Group
    runs: tuple[Run, ...]
    over_gold: float | None
    over_steps: Difference | None
    notes: tuple[str, ...]

    @property
    def f1(self) -> float:
        """The mean micro-F1 of the runs."""
        return fmean(run.test.micro.f1 for run in self.runs)

    @property
    def by_patience(self) -> bool:
        """Whether dev chose among amounts."""
        return any(run.search == "patience" for run in self.runs)

    @property
    def chosen(self) -> bool:
        """Whether dev chose this one."""
        return any(run.chosen for run in self.runs)


def _compare(runs: Sequence[Run], wanted: frozenset[int], samples: int) -> list[Row]:
    """The rows of a cell."""
    first = runs[0]
    gold = [counts.gold for counts in first.test.sentences]
    groups: dict[Group, dict[int, Run]] = defaultdict(dict)
    for run in runs:
        if [counts.gold for counts in run.test.sentences] != gold:
            raise InputError(
                f"has another test set than {first.path}:{first.line} of the same corpus, size and tagger",
                path=run.path,
                line=run.line,
                remedy="report on experiments with different test sets one by one",
            )
        groups[run.group][run.seed] = run
    rows = []
    for group, by_seed in sorted(groups.items(), key=_group_order):
        arm, amount = group
        notes = []
        if len(by_seed) < len(wanted):
            lacking = ", ".join(map(str, sorted(wanted - by_seed.keys())))
            notes.append(f"incomplete: {len(by_seed)} of {len(wanted)} seeds, without {lacking}")
        if arm not in _FIRST_ARMS and not any(run.new for run in by_seed.values()):
            notes.append("made no new sentence")
        over_gold = over_steps = None
        base = groups.get((GOLD, 0.0), {})
        shared = sorted(by_seed.keys() & base.keys())
        if arm != GOLD and shared:
            over_gold = fmean(by_seed[s].test.micro.f1 - base[s].test.micro.f1 for s in shared)
        if arm not in {GOLD, STEPS}:
            over_steps, why = _over_steps(by_seed, groups.get((STEPS, amount), {}), samples)
            # Amounts that dev only looked at are compared with nothing, and nothing is missing then.
            tried = all(run.search == "patience" and not run.chosen for run in by_seed.values())
            notes += [] if tried and over_steps is None else why
        rows.append(Row(group, tuple(by_seed[s] for s in sorted(by_seed)), over_gold, over_steps, tuple(notes)))
    return rows


def _over_steps(runs: Mapping[int, Run], base: Mapping[int, Run], samples: int) -> tuple[Difference | None, list[str]]:
    """The comparison with gold alone at equal steps, and what is amiss with it."""
    shared = sorted(runs.keys() & base.keys())
    equal = [s for s in shared if runs[s].steps == base[s].steps]
    if not equal:
        return None, ["no gold-steps run to compare with" if not shared else "gold-steps took another number of steps"]
    notes = [] if len(equal) == len(runs) else [f"compared on {len(equal)} of its {len(runs)} seeds"]
    pairs = [runs[s].test.sentences for s in equal], [base[s].test.sentences for s in equal]
    return paired_bootstrap(*pairs, samples=samples), notes


def _group_order(item: tuple[Group, Any]) -> tuple[int, str, float]:
    arm, amount = item[0]
    return _FIRST_ARMS.index(arm) if arm in _FIRST_ARMS else len(_FIRST_ARMS), arm, amount


def _cells(runs: Sequence[Run], samples: int) -> dict[Cell, list[Row]]:
    # The seeds that a cell should have are all those of the files it comes from.
    seeds: dict[str | None, set[int]] = defaultdict(set)
    of_cell: dict[Cell, list[Run]] = defaultdict(list)
    for run in runs:
        seeds[run.path].add(run.seed)
        of_cell[run.cell].append(run)
    return {
        cell: _compare(some, frozenset().union(*(seeds[run.path] for run in some)), samples)
        for cell, some in sorted(of_cell.items())
    }


# ------------------------------------------------------------------------------------------------------------- Markdown


def markdown_report(runs: Sequence[Run], *, by_type: bool = False, samples: int = 1000) -> str:
    """What runs have shown, as Markdown.

    A summary of every method in every cell (corpus, size, tagger) comes first; then how much of it chance alone would
    bring about, a table for each cell, and what is missing or amiss.

    Args:
        runs: the records; of two with equal cell, arm, amount and seed the later holds.
        by_type: tables of F1 by entity type too.
        samples: resamples of each comparison; see `entaug.scoring.significance.paired_bootstrap`.

    Raises:
        InputError: there is none, or runs of one cell have different test sets.

    Example:
        >>> scores = Scores({}, {}, {}, {})
        >>> run = Run("k", "toy", 10, "linear", "gold", 0.0, 1, 30, 0, scores)
        >>> markdown_report([run]).splitlines()[0]
        '# What the runs show'
    """
    parts = parts_of(runs, by_type=by_type, samples=samples)
    tables = [text for cell, table in parts.tables.items() for text in (f"## {cell_name(cell)}\n", table)]
    return "\n".join(["# What the runs show\n", *parts.summary, *tables, *parts.notes])


@dataclass(frozen=True)
class Parts:
    """A report in parts, and the figures that they were written from.

    Args:
        cells: the compared groups of each cell.
        summary: every method in every cell, and how much of it chance alone would bring about.
        tables: a table for each cell.
        notes: what is missing or amiss.
    """

    cells: Mapping[Cell, list[Row]]
    summary: list[str]
    tables: Mapping[Cell, str]
    notes: list[str]


def parts_of(runs: Sequence[Run], *, by_type: bool = False, samples: int = 1000) -> Parts:
    """The parts of `markdown_report`, in Markdown, with arguments and errors of that."""
    if not runs:
        raise InputError("there are no runs to report on")
    latest = {(run.cell, run.group, run.seed): run for run in runs}
    cells = _cells(list(latest.values()), samples)
    tables = {cell: _cell_table(rows) + ("\n" + _type_table(rows) if by_type else "") for cell, rows in cells.items()}
    notes = _notes(cells, list(latest.values()), len(runs) - len(latest))
    return Parts(cells, [*_summary(cells), *_chance(cells)], tables, notes)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(columns: Iterable[str]) -> str:
        return "| " + " | ".join(column.replace("|", "\\|") for column in columns) + " |\n"

    marks = ["---", *["---:"] * (len(head) - 1)]
    return line(head) + line(marks) + "".join(map(line, rows))


def _points(share: float) -> str:
    """A gain in points, with its sign."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"


def cell_name(cell: Cell) -> str:
    """A cell in words."""
    corpus, size, tagger = cell
    return f"{corpus}, {size:,}, {tagger}"


def group_name(group: Group) -> str:
    """A group in words."""
    arm, amount = group
    return arm if arm == GOLD else f"{arm} {amount:g}N"


Series = tuple[str, float | None]
"""A column of the summary: a method and its amount, or None where dev chose it."""


def _series(rows: Iterable[Row]) -> dict[Series, Row]:
    """The compared rows of a cell that the summary tells of: where dev chooses an amount, the chosen one alone."""
    found: dict[Series, Row] = {}
    for row in rows:
        if row.over_steps is None:
            continue
        arm, amount = row.group
        if not row.by_patience:
            found[arm, amount] = row
        elif row.chosen:
            found[arm, None] = row
    return found


def _summary(cells: Mapping[Cell, list[Row]]) -> list[str]:
    by_cell = {cell: _series(rows) for cell, rows in cells.items()}
    keys = {key for series in by_cell.values() for key in series}
    if not keys:
        return ["No method could be compared with gold alone at equal steps yet.\n"]

    def order(key: Series) -> tuple[int, str, float]:
        return _group_order(((key[0], -1.0 if key[1] is None else key[1]), None))

    columns = sorted(keys, key=order)
    amounts = Counter(arm for arm, _ in columns)

    def name(key: Series) -> str:
        arm, amount = key
        if amount is None:
            return arm if amounts[arm] == 1 else f"{arm} (amount chosen by dev)"
        return arm if amounts[arm] == 1 else group_name((arm, amount))

    table = []
    for cell, series in by_cell.items():
        found = [series[key].over_steps if key in series else None for key in columns]
        table.append([cell_name(cell), *(f"{_points(d.gain)} {_SIGNS[d.verdict]}" if d else "-" for d in found)])
    means, told = [], []
    for key in columns:
        found = [d for series in by_cell.values() if key in series and (d := series[key].over_steps)]
        verdicts = Counter(d.verdict for d in found if d)
        means.append(f"{_points(fmean(d.gain for d in found if d))} ({len(found)})")
        cells_in_words = f"{len(found)} cell{'' if len(found) == 1 else 's'}"
        told.append(
            f"- `{name(key)}` helped in {verdicts['helps']} of {cells_in_words}, hurt in {verdicts['hurts']}, "
            f"no difference seen in {verdicts['no difference seen']}.\n"
        )
    table.append(["mean gain (cells)", *means])
    legend = (
        "Gains in points of micro-F1 over gold alone with as many training steps, mean over seeds. "
        "↑ helps, ↓ hurts, = no difference seen: whether the 95 % interval lies above 0, below, or holds it.\n"
    )
    return [
        legend,
        _table(["corpus, size, tagger", *map(name, columns)], table),
        "".join(told),
    ]


def _chance(cells: Mapping[Cell, list[Row]]) -> list[str]:
    found = [row.over_steps for rows in cells.values() for row in rows if row.over_steps]
    if not found:
        return []
    seen = sum(d.verdict != "no difference seen" for d in found)
    made = f"{len(found)} comparison{'s were' if len(found) > 1 else ' was'} made, of which {seen} showed a difference"
    words = [f"{made}; if nothing made any, about {0.05 * len(found):.1f} would do so by chance, at 5 % each."]
    alone = sum(d.seeds == 1 for d in found)
    if alone:
        words.append(f"{alone} rest on one seed: their intervals know nothing of the chance in training.")
    if any(1 < d.seeds < 5 for d in found):
        words.append(
            "With fewer than five seeds intervals are wide where seeds differ much: more seeds would tell more."
        )
    return [" ".join(words) + "\n"]


def _cell_table(rows: Iterable[Row]) -> str:
    head = [
        "arm",
        "amount",
        "new",
        "F1",
        "over gold, equal epochs",
        "over gold, equal steps",
        "95 % interval",
        "verdict",
    ]
    table = []
    for row in rows:
        arm, amount = row.group
        found = row.over_steps
        verdict = [found.verdict] if found else []
        table.append(
            [
                arm,
                "-" if arm == GOLD else f"{amount:g}N{' (chosen by dev)' if row.chosen else ''}",
                f"{fmean(run.new for run in row.runs):,.0f}",
                _mean_and_spread([run.test.micro.f1 for run in row.runs]),
                "-" if row.over_gold is None else _points(row.over_gold),
                _points(found.gain) if found else "-",
                f"{_points(found.low)} to {_points(found.high)}" if found else "-",
                "; ".join([*verdict, *row.notes]) or "-",
            ]
        )
    return _table(head, table)


def _mean_and_spread(values: Sequence[float]) -> str:
    mean = f"{100 * fmean(values):.1f}"
    return f"{mean} ± {100 * stdev(values):.1f}" if len(values) > 1 else mean


def _type_table(rows: Sequence[Row]) -> str:
    types = sorted({label for row in rows for run in row.runs for label in run.test.by_type})

    def f1(row: Row, label: str) -> float:
        return fmean(run.test.by_type[label].f1 if label in run.test.by_type else 0.0 for run in row.runs)

    lines = [[group_name(row.group), *(f"{100 * f1(row, label):.1f}" for label in types)] for row in rows]
    return _table(["F1 by type", *types], lines)


def _notes(cells: Mapping[Cell, list[Row]], runs: Sequence[Run], replaced: int) -> list[str]:
    missing = [
        f"- {cell_name(cell)}: {group_name(row.group)}: {note}\n"
        for cell, rows in cells.items()
        for row in rows
        for note in row.notes
    ]
    for cell, rows in cells.items():
        open_arms = {row.group[0] for row in rows if row.by_patience and row.group[0] not in _FIRST_ARMS}
        open_arms -= {row.group[0] for row in rows if row.chosen}
        missing += [f"- {cell_name(cell)}: {arm}: dev has not chosen an amount yet\n" for arm in sorted(open_arms)]
        if not any(row.group[0] == GOLD for row in rows):
            missing.append(f"- {cell_name(cell)}: no gold run, so no gain at equal epochs\n")
    parts = ["## Missing\n", "".join(missing) or "Nothing: each arm has all seeds.\n", "## Leakage\n"]
    leaks = []
    for cell, rows in cells.items():
        for row in rows:
            most = {name: max(run.leaks.get(name, 0) for run in row.runs) for name in ("dev", "test")}
            if any(most.values()):
                told = " and ".join(f"{count:,} in {name}" for name, count in most.items() if count)
                leaks.append(f"- {cell_name(cell)}: {group_name(row.group)}: {told}\n")
    if leaks:
        parts.append("Training sentences that stand in dev or test too, at most in one run:\n")
    parts.append("".join(leaks) or "No training sentence stands in dev or test too.\n")
    environments = {orjson.dumps(run.environment, option=orjson.OPT_SORT_KEYS).decode() for run in runs} - {"{}"}
    parts += ["## Runs\n", f"{len(runs)} runs" + (f"; {replaced} replaced by later ones" if replaced else "") + ".\n"]
    if environments:
        parts.append("Computed with:\n\n" + "".join(f"- `{one}`\n" for one in sorted(environments)))
    return parts
