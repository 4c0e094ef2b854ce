"""Reports on experiments in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import orjson

from entaug.errors import InputError
from entaug.metrics.quality import markdown_table
from entaug.metrics.significance import ONE_SEED, Difference, mean_interval
from entaug.report.breakdowns import corpus_tables, dev_table, length_table, row_of, type_table
from entaug.report.comparison import BASELINES, GOLD, Arm, ArmResult, Setting, compare_arms
from entaug.report.recommendation import recommend
from entaug.study.records import RunRecord

__all__ = ["ReportParts", "markdown_report", "report_parts"]

_SIGNS = {"helps": "↑", "hurts": "↓", "no difference seen": "=", ONE_SEED: "(one seed)"}
_LEGEND = (
    "Gains in points of micro-F1 over gold alone with as many training steps, mean over seeds. "
    "↑ helps, ↓ hurts, = no difference seen: the 95 % interval lies above 0, below 0, or contains 0. "
    "One seed gives no verdict. The interval of the mean treats the settings as a sample of all settings.\n"
)

Results = Mapping[Setting, Sequence[ArmResult]]
Column = tuple[str, float | None]
"""A column of the summary: a method and its amount; None for the amount chosen on dev."""


@dataclass(frozen=True)
class ReportParts:
    """Parts of a report in Markdown."""

    results: Results
    summary: list[str]
    tables: Mapping[Setting, str]
    notes: list[str]


def markdown_report(
    records: Sequence[RunRecord], *, by_type: bool = False, by_length: Sequence[int] = (), samples: int = 1000
) -> str:
    """Format the results of experiments as Markdown.

    Args:
        records: the records of runs; of several with equal setting, arm, amount and seed the last counts.
        by_type: whether to add tables of F1 by entity type.
        by_length: whether to add tables of F1 by number of tokens of the sentence: the last length of each bin but the
            last, for example ``(10, 20)``.
        samples: number of resamples; see `entaug.metrics.significance.paired_bootstrap`.

    Returns:
        A summary of all methods, a table for each setting, and notes on missing runs and leakage.

    Raises:
        InputError: there is no record, or runs of one setting have different test sets.

    Example:
        >>> from entaug.metrics.span_f1 import Scores
        >>> record = RunRecord("k", "toy", 10, "linear", "gold", 0.0, 1, 30, 0, Scores({}, {}, {}, {}))
        >>> markdown_report([record]).splitlines()[0]
        '# Results of the runs'
    """
    parts = report_parts(records, by_type=by_type, by_length=by_length, samples=samples)
    tables = [text for setting, table in parts.tables.items() for text in (f"## {setting}\n", table)]
    return "\n".join(["# Results of the runs\n", *parts.summary, *tables, *parts.notes])


def report_parts(
    records: Sequence[RunRecord], *, by_type: bool = False, by_length: Sequence[int] = (), samples: int = 1000
) -> ReportParts:
    """The parts of `markdown_report`, which documents the arguments."""
    if not records:
        raise InputError("there are no runs to report on", remedy="name the output folder of an experiment")
    last = {(r.corpus, r.size, r.tagger, r.arm, r.amount, r.subset_seed, r.seed): r for r in records}
    latest = list(last.values())
    results = compare_arms(latest, samples)
    tables = {}
    for setting, arms in results.items():
        parts = [_arm_table(arms), dev_table(arms)]
        parts += [type_table(arms)] if by_type else []
        parts += [length_table(arms, by_length)] if by_length else []
        tables[setting] = "\n".join(filter(None, parts))
    notes = [*_missing(results), *_leakage(results), *_environments(latest, len(records) - len(latest))]
    return ReportParts(results, [*_summary(results), *_chance(results), *corpus_tables(results)], tables, notes)


def _points(share: float) -> str:
    """A gain in points, with its sign."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _columns(arms: Iterable[ArmResult]) -> dict[Column, Difference]:
    """The differences of a setting in the summary: of what is searched on dev only what was chosen."""
    return {
        row_of(result): result.difference
        for result in arms
        if result.difference is not None and (result.is_chosen or not result.is_searched)
    }


def _summary(results: Results) -> list[str]:
    by_setting = {setting: _columns(arms) for setting, arms in results.items()}
    columns = {column for differences in by_setting.values() for column in differences}
    if all(result.arm.name == GOLD for arms in results.values() for result in arms):
        return []  # taggers are compared, not methods
    if not columns:
        return ["No method could be compared with gold alone at equal steps yet.\n"]
    ordered = sorted(columns, key=lambda column: Arm(column[0], -1.0 if column[1] is None else column[1]).sort_key)
    amounts = Counter(name for name, _ in ordered)

    def title(column: Column) -> str:
        name, amount = column
        if amounts[name] == 1:
            return name
        return f"{name} (chosen on dev)" if amount is None else str(Arm(name, amount))

    rows = []
    for setting, differences in by_setting.items():
        cells = [differences.get(column) for column in ordered]
        rows.append([str(setting), *(f"{_points(d.gain)} {_SIGNS[d.verdict]}" if d else "-" for d in cells)])
    means, intervals, counts = ["mean gain (settings)"], ["95 % interval of this mean"], []
    for column in ordered:
        known = [differences[column] for differences in by_setting.values() if column in differences]
        gains = [difference.gain for difference in known]
        means.append(f"{_points(fmean(gains))} ({len(known)})")
        intervals.append(" to ".join(map(_points, mean_interval(gains))) if len(gains) > 1 else "-")
        counts.append(f"- `{title(column)}` {_count_verdicts(known)}.\n")
    table = markdown_table(["corpus, size, tagger", *map(title, ordered)], [*rows, means, intervals])
    return [_LEGEND, table, f"**{recommend(results)}**\n", "".join(counts)]


def _count_verdicts(differences: Sequence[Difference]) -> str:
    """In how many settings a method helped, hurt or did neither."""
    verdicts = Counter(difference.verdict for difference in differences)
    single = verdicts[ONE_SEED]
    tested = len(differences) - single
    if not tested:
        return f"has no verdict: one seed in {_count(single, 'setting')}"
    text = f"helped in {verdicts['helps']} of {_count(tested, 'setting')}, hurt in {verdicts['hurts']}, "
    text += f"no difference seen in {verdicts['no difference seen']}"
    return text + (f"; in {single} more one seed and so no verdict" if single else "")


def _chance(results: Results) -> list[str]:
    """The number of differences that chance alone would show."""
    differences = [result.difference for arms in results.values() for result in arms if result.difference]
    if not differences:
        return []
    tested = [difference for difference in differences if difference.verdict != ONE_SEED]
    single = len(differences) - len(tested)
    text = f"{_count(len(differences), 'comparison')}"
    if single:
        text += f", {single} with one seed: no verdict, because their intervals do not cover the variance of training"
    if tested:
        shown = sum(difference.verdict != "no difference seen" for difference in tested)
        text += f". Of the other {len(tested)}, {shown} " if single else f", of which {shown} "
        text += "showed a difference; "
        text += f"if no method had an effect, about {0.05 * len(tested):.1f} would by chance, at 5 % each"
    text += "."
    if any(1 < difference.seeds < 5 for difference in differences):
        text += " With fewer than five seeds, intervals are wide where seeds differ much; more seeds narrow them."
    return [f"{text}\n"]


def _arm_table(arms: Iterable[ArmResult]) -> str:
    head = [
        "arm",
        "amount",
        "new",
        "F1",
        "macro F1",
        "over gold, equal epochs",
        "over gold, equal steps",
        "relative",
        "95 % interval",
        "p",
        "verdict",
    ]
    rows = []
    for result in arms:
        arm, difference = result.arm, result.difference
        verdict = [difference.verdict] if difference else []
        rows.append(
            [
                arm.name,
                "-" if arm.name == GOLD else f"{arm.amount:g}N{' (chosen on dev)' if result.is_chosen else ''}",
                f"{fmean(record.new for record in result.records):,.0f}",
                _mean_and_deviation([record.test.micro.f1 for record in result.records]),
                _mean_and_deviation([record.test.macro for record in result.records]),
                "-" if result.gain_over_gold is None else _points(result.gain_over_gold),
                _points(difference.gain) if difference else "-",
                _relative(difference.gain, result.base_f1) if difference else "-",
                _interval(difference) if difference else "-",
                _probability(difference.p_value) if difference else "-",
                "; ".join([*verdict, *result.notes]) or "-",
            ]
        )
    return markdown_table(head, rows)


def _relative(gain: float, base: float | None) -> str:
    """The gain in per cent of the F1 that it is over."""
    return f"{100 * gain / base:+.1f} %" if base else "-"


def _probability(p_value: float | None) -> str:
    if p_value is None:
        return "-"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _interval(difference: Difference) -> str:
    caution = f" ({difference.caution})" if difference.caution else ""
    return f"{_points(difference.low)} to {_points(difference.high)}{caution}"


def _mean_and_deviation(values: Sequence[float]) -> str:
    mean = f"{100 * fmean(values):.1f}"
    return f"{mean} ± {100 * stdev(values):.1f}" if len(values) > 1 else mean


def _missing(results: Results) -> list[str]:
    lines = []
    for setting, arms in results.items():
        lines += [f"- {setting}: {result.arm}: {note}\n" for result in arms for note in result.notes]
        undecided = {result.method for result in arms if result.is_searched and result.arm.name not in BASELINES}
        undecided -= {result.method for result in arms if result.is_chosen}
        lines += [f"- {setting}: {name}: nothing has been chosen on dev yet\n" for name in sorted(undecided)]
        if not any(result.arm.name == GOLD for result in arms):
            lines.append(f"- {setting}: no gold run, so no gain at equal epochs\n")
    return ["## Missing\n", "".join(lines) or "Nothing: each arm has all seeds.\n"]


def _leakage(results: Results) -> list[str]:
    lines = []
    for setting, arms in results.items():
        for result in arms:
            most = {name: max(record.leaks.get(name, 0) for record in result.records) for name in ("dev", "test")}
            if counts := " and ".join(f"{count:,} in {name}" for name, count in most.items() if count):
                lines.append(f"- {setting}: {result.arm}: {counts}\n")
    if not lines:
        return ["## Leakage\n", "No training sentence occurs in dev or test.\n"]
    return ["## Leakage\n", "Training sentences that occur in dev or test, the maximum over runs:\n", "".join(lines)]


def _environments(records: Sequence[RunRecord], replaced: int) -> list[str]:
    parts = ["## Runs\n", f"{len(records)} runs{f'; {replaced} replaced by later ones' if replaced else ''}.\n"]
    texts = {orjson.dumps(record.environment, option=orjson.OPT_SORT_KEYS).decode() for record in records} - {"{}"}
    if texts:
        parts.append("Environments:\n\n" + "".join(f"- `{text}`\n" for text in sorted(texts)))
    return parts
