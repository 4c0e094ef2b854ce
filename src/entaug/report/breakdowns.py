"""Tables that break the F1 of arms down: by type, by length of the sentence, by corpus, and by amount on dev."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from entaug.metrics.quality import markdown_table
from entaug.report.comparison import Arm, ArmResult, Setting

__all__ = ["corpus_tables", "dev_table", "length_table", "row_of", "type_table"]

Row = tuple[str, float | None]
"""A method and its amount; None for the amount, or parameters and amount, that were chosen on dev."""


def row_of(result: ArmResult) -> Row:
    """The row, or the column, of an arm in tables of several settings."""
    return result.method, None if result.is_searched else result.arm.amount


def type_table(arms: Sequence[ArmResult]) -> str:
    """F1 by entity type, the mean over seeds."""
    labels = sorted({label for result in arms for record in result.records for label in record.test.by_type})

    def f1(result: ArmResult, label: str) -> float:
        by_type = [record.test.by_type for record in result.records]
        return fmean(counts[label].f1 if label in counts else 0.0 for counts in by_type)

    return _breakdown("F1 by type", arms, labels, f1)


def length_table(arms: Sequence[ArmResult], ends: Sequence[int]) -> str:
    """F1 by number of tokens of the sentence, the mean over seeds."""
    by_length = {
        str(result.arm): [r.test.length_counts(ends) or r.test.by_sentence_length for r in result.records]
        for result in arms
    }
    bins = list(dict.fromkeys(name for some in by_length.values() for counts in some for name in counts))
    bins.sort(key=lambda name: int(name.rstrip("+").partition("-")[0]))

    def f1(result: ArmResult, name: str) -> float:
        return fmean(counts[name].f1 if name in counts else 0.0 for counts in by_length[str(result.arm)])

    return _breakdown("F1 by tokens of the sentence", arms, bins, f1)


def _breakdown(
    title: str, arms: Sequence[ArmResult], columns: Sequence[str], f1: Callable[[ArmResult, str], float]
) -> str:
    rows = [[str(result.arm), *(f"{100 * f1(result, column):.1f}" for column in columns)] for result in arms]
    return markdown_table([title, *columns], rows)


def dev_table(arms: Sequence[ArmResult]) -> str:
    """Mean micro-F1 on dev by amount, of methods that were run with several amounts."""
    curves: dict[str, dict[float, float]] = defaultdict(dict)
    for result in arms:
        scores = [record.dev for record in result.records if record.dev]
        if scores and result.arm.amount:
            curves[result.arm.name][result.arm.amount] = fmean(dev.micro.f1 for dev in scores)
    curves = {name: curve for name, curve in curves.items() if len(curve) > 1}
    if not curves:
        return ""
    amounts = sorted({amount for curve in curves.values() for amount in curve})
    rows = [
        [name, *(f"{100 * curve[amount]:.1f}" if amount in curve else "-" for amount in amounts)]
        for name, curve in curves.items()
    ]
    return markdown_table(["F1 on dev", *(f"{amount:g}N" for amount in amounts)], rows)


def corpus_tables(results: Mapping[Setting, Sequence[ArmResult]]) -> list[str]:
    """Tables of micro-F1 with arms as rows, corpora as columns, and their average."""
    # There is a table for each tagger, and for each number of gold sentences if a corpus has several.
    sizes: dict[str, set[int]] = defaultdict(set)
    for setting in results:
        sizes[setting.corpus].add(setting.size)
    several = any(len(some) > 1 for some in sizes.values())
    groups: dict[tuple[str, int | None], list[Setting]] = defaultdict(list)
    for setting in results:
        groups[setting.tagger, setting.size if several else None].append(setting)
    return [_corpus_table(settings, size, results) for (_, size), settings in groups.items() if len(settings) > 1]


def _corpus_table(settings: Sequence[Setting], size: int | None, results: Mapping[Setting, Sequence[ArmResult]]) -> str:
    f1 = {
        setting: {row_of(r): r.f1 for r in results[setting] if r.is_chosen or not r.is_searched} for setting in settings
    }
    rows = []
    order = {row_of(result): result.arm.sort_key for setting in settings for result in results[setting]}
    for row in sorted({row for of_setting in f1.values() for row in of_setting}, key=lambda row: order[row]):
        values = [f1[setting].get(row) for setting in settings]
        known = [value for value in values if value is not None]
        cells = ["-" if value is None else f"{100 * value:.1f}" for value in values]
        # An average over some of the corpora could not be compared with the others.
        average = f"{100 * fmean(known):.1f}" if len(known) == len(values) else "-"
        name, amount = row
        rows.append([f"{name} (chosen on dev)" if amount is None else str(Arm(name, amount)), *cells, average])
    title = settings[0].tagger if size is None else f"{settings[0].tagger}, {size:,}"
    names = [s.corpus if size is not None else f"{s.corpus}, {s.size:,}" for s in settings]
    return markdown_table([f"F1, {title}", *names, "average"], rows)
