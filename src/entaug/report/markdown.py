"""Reports on experiments in Markdown: tables, what they advise, and what is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import orjson

from entaug.errors import InputError
from entaug.metrics.significance import ONE_SEED, Difference, mean_interval
from entaug.metrics.span_f1 import ERROR_KINDS, MatchCounts, Scores
from entaug.metrics.tables import Block, Heading, Table, as_markdown, quantity
from entaug.report.comparison import GOLD, GOLD_STEPS, Arm, ArmResult, Setting, compare_arms, mean_f1, seed_names
from entaug.report.plan_tables import plan_tables
from entaug.study.planned import KnownPlan
from entaug.study.records import BASELINES, Place, RunRecord

_SIGNS = {"helps": "↑", "hurts": "↓", "no difference seen": "=", ONE_SEED: "(one seed)"}
_LEGEND = (
    "Gains in points of micro-F1 over gold alone with as many training steps, mean over seeds. "
    "↑ helps, ↓ hurts, = no difference seen: the 95 % interval lies above 0, below 0, or contains 0. "
    "One seed gives no verdict. The interval of the mean treats the corpora as a sample of all corpora."
)

_EQUAL_EPOCHS = "over gold, equal epochs"
_ARM_COLUMNS = f"arm|ratio|new|F1|macro F1|{_EQUAL_EPOCHS}|over gold, equal steps|relative|95 % interval|p|verdict"
_PUBLISHED = (
    "Tables of the plan: F1 at equal epochs, as papers report it, of methods as dev chose them; published figures in "
    "brackets. Which differences hold at equal steps is said above and below."
)
_ENOUGH_SEEDS = 3  # with fewer, an interval that contains 0 decides nothing
_NO_PLAN = (
    "The plan is not known here, so arms without any run cannot be named; `entaug experiment PLAN --check` counts what "
    "is left."
)
_SHORTAGE = 0.75  # of the sentences that a ratio asks for: with less a method has hardly more to say
_ONE_SIDED = 0.025  # how often an interval lies above 0 where there is no effect
_RARE = 0.05  # the probability below which so many gains are hardly chance

Results = Mapping[Setting, Sequence[ArmResult]]
Row = tuple[str, float | None]
"""A method and its ratio; None for the ratio, or parameters and ratio, that were chosen on dev."""


@dataclass(frozen=True)
class ReportParts:
    """Parts of a report: what all settings show, the tables of each, and notes."""

    results: Results
    summary: list[Block]
    tables: Mapping[Setting, list[Table]]
    notes: list[Block]


def markdown_report(
    records: Sequence[RunRecord],
    *,
    by_type: bool = False,
    by_length: Sequence[int] = (),
    errors: bool = False,
    samples: int = 1000,
    plan: KnownPlan | None = None,
) -> str:
    """Format the results of experiments as Markdown.

    Args:
        records: the records of runs; of several with equal setting, arm, ratio, seed and configuration the last counts.
        by_type: whether to add tables of F1 by entity type.
        by_length: whether to add tables of F1 by number of tokens of the sentence: the last length of each bin but the
            last, for example ``(10, 20)``.
        errors: whether to add tables of F1 on seen and unseen mentions, and of the number of errors of each kind.
        samples: number of resamples; see `entaug.metrics.significance.paired_bootstrap`.
        plan: the planned runs and tables, as far as they are known; see `entaug.study.read_known_plan`.

    Returns:
        A summary of all methods, the tables of plans, a table for each setting, and notes on missing runs and leakage.

    Raises:
        InputError: there is no record, or runs of one setting have other test sets, subsets or taggers, or those of
            one arm and seed other configurations.

    Example:
        >>> from entaug.metrics.span_f1 import Scores
        >>> record = RunRecord("k", "toy", 10, "linear", "gold", 0.0, 1, 30, 0, Scores({}, {}, {}, {}))
        >>> markdown_report([record]).splitlines()[0]
        '# Results of the runs'
    """
    parts = report_parts(records, by_type=by_type, by_length=by_length, errors=errors, samples=samples, plan=plan)
    blocks: list[Block] = [Heading("Results of the runs", 1), *parts.summary]
    for setting, own in parts.tables.items():
        blocks += [Heading(str(setting)), *own]
    return as_markdown([*blocks, *parts.notes])


def report_parts(
    records: Sequence[RunRecord],
    *,
    by_type: bool = False,
    by_length: Sequence[int] = (),
    errors: bool = False,
    samples: int = 1000,
    plan: KnownPlan | None = None,
) -> ReportParts:
    """The parts of `markdown_report`, which documents the arguments."""
    if not records:
        raise InputError("there are no runs to report on", remedy="name the output folder of an experiment")
    plan = plan or KnownPlan()
    results = compare_arms(records, samples, plan.seeds)
    latest = [record for arms in results.values() for result in arms for record in result.records]
    of_settings: dict[Setting, list[Table]] = {}
    for setting, arms in results.items():
        shown = of_settings[setting] = [_arm_table(arms), *_dev_table(arms)]
        if by_type:
            shown.append(_breakdown("F1 by type", arms, lambda scores: scores.by_type, str))
        if by_length:
            title = "F1 by tokens of the sentence"
            parts = _breakdown(title, arms, lambda s: s.length_counts(by_length) or s.by_sentence_length, _first)
            shown.append(parts)
        if errors:
            shown.append(_breakdown("F1 by mention", arms, lambda scores: scores.by_novelty, str))
            shown.append(_error_table(arms))
    notes = [
        *_missing(results, plan),
        *_shortages(results),
        *_leakage(results),
        *_environments(latest, len(records) - len(latest)),
    ]
    count = plan.count
    left: list[Block] = [f"**{count} are done**: what is missing is named at the end."]
    summary = left if count and not count.is_complete else []
    summary += [*_summary(results), *_chance(results), *corpus_tables(results)]
    if plan.tables:
        summary += [_PUBLISHED, *plan_tables(plan.tables, results)]
    return ReportParts(results, summary, of_settings, notes)


def _first(lengths: str) -> int:
    """The first length of a bin, such as 1-10 or 51+."""
    return int(lengths.rstrip("+").partition("-")[0])


def _points(share: float) -> str:
    """A gain in points, with its sign."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"


def _summary(results: Results) -> list[Block]:
    by_setting = {
        setting: {result.row: (result, difference) for result in arms if (difference := result.shown_difference)}
        for setting, arms in results.items()
    }
    columns = {column for differences in by_setting.values() for column in differences}
    if all(result.arm.name == GOLD for arms in results.values() for result in arms):
        return []  # taggers are compared, not methods
    if not columns:
        return ["No method could be compared with gold alone at equal steps yet."]
    ordered = sorted(columns, key=lambda column: Arm(column[0], -1.0 if column[1] is None else column[1]).sort_key)
    ratios = Counter(name for name, _ in ordered)

    def title(column: Row) -> str:
        name, ratio = column
        if ratios[name] == 1:
            return name
        return f"{name} (chosen on dev)" if ratio is None else str(Arm(name, ratio))

    rows = []
    for setting, differences in by_setting.items():
        cells = [differences.get(column) for column in ordered]
        rows.append([str(setting), *(_gain(*cell) if cell else "-" for cell in cells)])
    means, intervals, counts = ["mean gain (settings)"], ["95 % interval of this mean"], []
    for column in ordered:
        known = [differences[column][1] for differences in by_setting.values() if column in differences]
        gains = [difference.gain for difference in known]
        corpora = [setting.corpus for setting, differences in by_setting.items() if column in differences]
        means.append(f"{_points(fmean(gains))} ({len(known)})")
        several = len(set(corpora)) > 1
        intervals.append(" to ".join(map(_points, mean_interval(gains, corpora))) if several else "-")
        verdicts = Counter(difference.verdict for difference in known)
        of = quantity(len(known) - verdicts[ONE_SEED], "setting")
        counts.append(f"`{title(column)}` helped in {verdicts['helps']} of {of}, hurt in {verdicts['hurts']}.")
    table = Table(["corpus, size, tagger", *map(title, ordered)], [*rows, means, intervals])
    return [_LEGEND, table, recommend(results), counts]


def _gain(result: ArmResult, difference: Difference) -> str:
    """The gain with its sign, and the seeds that it is of where some are missing."""
    seeds = _seeds(len(result.baseline), result)
    sign = "" if seeds and difference.verdict == ONE_SEED else f" {_SIGNS[difference.verdict]}"
    return f"{_points(difference.gain)}{sign}{seeds}"


def _seeds(number: int, result: ArmResult) -> str:
    """The number of seeds that a figure is of, where some are missing."""
    return f" ({number} of {result.planned} seeds)" if number < result.planned else ""


def _chance(results: Results) -> list[Block]:
    """The number of differences that chance alone would show, and cautions."""
    differences = [result.difference for arms in results.values() for result in arms if result.difference]
    tested = [difference for difference in differences if difference.verdict != ONE_SEED]
    sentences = []
    if tested:
        shown = sum(difference.verdict != "no difference seen" for difference in tested)
        what = f"Of {quantity(len(tested), 'comparison')} over several seeds {shown} showed a difference"
        sentences.append(f"{what}; if no method had an effect, about {0.05 * len(tested):.1f} would by chance.")
    if len(tested) < len(differences):
        sentences.append("With one seed there is no verdict: the interval does not cover the variance of training.")
    if any(1 < difference.seeds < 5 for difference in differences):
        sentences.append("With fewer than five seeds, intervals are wide where seeds differ much.")
    compared = (r for arms in results.values() for r in arms if r.difference and r.difference.seeds > 1)
    if sharing := sorted({f"`{result.method}`" for result in compared if result.shares_teachers}):
        names = ", ".join(sharing)
        sentences.append(f"Teachers of the seeds share taggers ({names}): the interval holds for these teachers.")
    return [" ".join(sentences)] if sentences else []


def _arm_table(arms: Sequence[ArmResult]) -> Table:
    columns, rows = _ARM_COLUMNS.split("|"), []
    # Where the plan fixes the steps, there is no comparison at equal epochs, and gold alone is gold at equal steps.
    has_gold = any(result.arm.name == GOLD for result in arms)
    is_fixed = has_gold and len({record.steps for result in arms for record in result.records}) == 1 < len(arms)
    for result in arms:
        arm, difference = result.arm, result.difference
        verdict = [difference.verdict] if difference else []
        rows.append(
            [
                arm.name,
                "-" if arm.name == GOLD else f"{arm.ratio:g}N{' (chosen on dev)' if result.is_chosen else ''}",
                _amount(result),
                _mean_and_deviation([record.test.micro.f1 for record in result.records]),
                _mean_and_deviation([record.test.macro for record in result.records]),
                "-" if result.gain_over_gold is None else _points(result.gain_over_gold),
                _points(difference.gain) if difference else "-",
                _relative(difference.gain, mean_f1(result.baseline)) if difference else "-",
                _interval(difference) if difference else "-",
                _probability(difference.p_value) if difference else "-",
                "; ".join(filter(None, [*verdict, result.lacking, *result.notes])) or "-",
            ]
        )
    if is_fixed:
        at = columns.index(_EQUAL_EPOCHS)
        columns, *rows = ([*row[:at], *row[at + 1 :]] for row in (columns, *rows) if row[0] != GOLD_STEPS)
    return Table(columns, rows)


def _amount(result: ArmResult) -> str:
    """The number of new sentences, and of how many the method fell short."""
    made, asked = (fmean(values) for values in zip(*((r.new, r.asked) for r in result.records), strict=True))
    is_short = result.arm.name not in BASELINES and not result.is_teacher and round(made) < round(asked)
    return f"{made:,.0f} of {asked:,.0f}" if is_short else f"{made:,.0f}"


def _shortages(results: Results) -> list[Block]:
    """The methods that made much less than asked, because more would repeat what they made."""
    lines = []
    for setting, arms in results.items():
        for result in arms:
            made, asked = (sum(values) for values in zip(*((r.new, r.asked) for r in result.records), strict=True))
            if result.arm.name not in BASELINES and not result.is_teacher and made < _SHORTAGE * asked:
                lines.append(f"{setting}: {result.arm}: {_amount(result)}")
    if not lines:
        return []
    reason = "the others would have repeated a sentence or were refused, so a larger ratio changes the steps alone"
    return [Heading("Fewer sentences than asked"), f"Less than three quarters of what the ratio asks; {reason}:", lines]


def _relative(gain: float, base: float) -> str:
    """The gain in per cent of the F1 that it is over."""
    return f"{100 * gain / base:+.1f} %" if base else "-"


def _probability(p_value: float | None) -> str:
    if p_value is None:
        return "-"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _interval(difference: Difference) -> str:
    caution = f" ({difference.caution})" if difference.caution else ""
    low, high = (f"{100 * end + 0.0:+.1f}" for end in (difference.low, difference.high))  # -0.0 lies below zero
    return f"{low} to {high}{caution}"


def _mean_and_deviation(values: Sequence[float]) -> str:
    mean = f"{100 * fmean(values):.1f}"
    return f"{mean} ± {100 * stdev(values):.1f}" if len(values) > 1 else mean


def missing_runs(plan: KnownPlan) -> list[str] | None:
    """The planned runs that are not done, by corpus, size and tagger; None where no plan is known."""
    if not plan.count:
        return None
    by_setting: dict[Setting, dict[Arm, set[Place]]] = defaultdict(lambda: defaultdict(set))
    for one in plan.arms:
        by_setting[Setting(one.corpus, one.size, one.tagger)][Arm(one.arm, one.ratio)].update(one.places)
    lines = []
    for setting, arms in by_setting.items():
        told = defaultdict(list)
        for arm, places in arms.items():
            if left := places - plan.done:
                without = {(place.subset_seed, place.seed) for place in left}
                without -= {(place.subset_seed, place.seed) for place in places & plan.done}  # some folds are missing
                done = f"{len(places) - len(left)} of {len(places)} runs"
                done += f", without seed{'s'[: len(without) > 1]} {seed_names(without)}" if without else ""
                told["no run" if left == places else done].append(str(arm))
        lines += [f"{setting}: {', '.join(some)}: {text}" for text, some in told.items()]
    return lines


def _missing(results: Results, plan: KnownPlan) -> list[Block]:
    lines, planned = missing_runs(plan) or [], plan.seeds
    for setting, arms in results.items():
        for result in arms:
            lacking = [result.lacking] if result.lacking and (*setting, *result.arm) not in planned else []
            lines += [f"{setting}: {result.arm}: {note}" for note in (*lacking, *result.notes)]
        undecided = {result.method for result in arms if result.is_searched and result.arm.name not in BASELINES}
        undecided -= {result.method for result in arms if result.is_chosen}
        lines += [f"{setting}: {name}: nothing has been chosen on dev yet" for name in sorted(undecided)]
        if not any(result.arm.name == GOLD for result in arms):
            lines.append(f"{setting}: no gold run, so no gain at equal epochs")
    told: list[Block] = [f"{plan.count} are done." if plan.count else _NO_PLAN]
    if plan.unknown:
        told.append(f"The plan of {plan.unknown} is not known, so its arms without any run cannot be named.")
    is_complete = plan.count and plan.count.is_complete and not plan.unknown
    nothing = "Nothing is missing." if is_complete else "Each arm that has runs has all seeds."
    return [Heading("Missing"), *told, lines or nothing]


def _leakage(results: Results) -> list[Block]:
    lines = []
    for setting, arms in results.items():
        by_counts: dict[str, list[str]] = {}
        for result in arms:
            most = {name: max(record.leaks.get(name, 0) for record in result.records) for name in ("dev", "test")}
            shown = [f"{count:,} in {name}" for name, count in most.items() if count]
            if new := max(record.new_in_test for record in result.records):
                shown.append(f"{new:,} of the new ones in test")
            by_counts.setdefault(" and ".join(shown), []).append(str(result.arm))
        for counts, equal in by_counts.items():
            if counts:
                told = "all arms" if len(equal) == len(arms) > 1 else ", ".join(equal)
                lines.append(f"{setting}: {told}: {counts}")
    if not lines:
        return [Heading("Leakage"), "No training sentence occurs in dev or test."]
    return [Heading("Leakage"), "Training sentences that occur in dev or test, the maximum over runs:", lines]


def _environments(records: Sequence[RunRecord], replaced: int) -> list[Block]:
    later = f"; {replaced} replaced by later ones" if replaced else ""
    parts: list[Block] = [Heading("Runs"), f"{len(records)} runs{later}."]
    texts = {orjson.dumps(record.environment, option=orjson.OPT_SORT_KEYS).decode() for record in records} - {"{}"}
    if texts:
        parts += ["Environments:", [f"`{text}`" for text in sorted(texts)]]
    return parts


# ---------------------------------------------------------------------------------------------------- tables of parts


def _breakdown(
    title: str,
    arms: Sequence[ArmResult],
    parts: Callable[[Scores], Mapping[str, MatchCounts]],
    order: Callable[[str], Any],
) -> Table:
    """F1 by the parts of scores, the mean over seeds."""
    # Without a gold mention there is no F1.
    by_arm = [[{n: c.f1 for n, c in parts(r.test).items() if c.gold} for r in result.records] for result in arms]
    names = {name for result in arms for record in result.records for name in parts(record.test)}
    columns = sorted(names, key=lambda name: (order(name), name))
    rows = []
    for result, some in zip(arms, by_arm, strict=True):
        known = [[f1[name] for f1 in some if name in f1] for name in columns]
        rows.append([str(result.arm), *(f"{100 * fmean(values):.1f}" if values else "-" for values in known)])
    return Table([title, *columns], rows)


def _error_table(arms: Sequence[ArmResult]) -> Table:
    """The number of errors of each kind, the mean over seeds."""
    rows = []
    for result in arms:
        known = [record.test.errors for record in result.records if record.test.errors]
        means = [f"{fmean(errors[kind] for errors in known):,.1f}" if known else "-" for kind in ERROR_KINDS]
        rows.append([str(result.arm), *means])
    return Table(["errors", *ERROR_KINDS], rows)


def _dev_table(arms: Sequence[ArmResult]) -> list[Table]:
    """Mean micro-F1 on dev by ratio, of methods that were run with several ratios."""
    curves: dict[str, dict[float, float]] = defaultdict(dict)
    for result in arms:
        scores = [record.dev for record in result.records if record.dev]
        if scores and result.arm.ratio:
            curves[result.arm.name][result.arm.ratio] = fmean(dev.micro.f1 for dev in scores)
    curves = {name: curve for name, curve in curves.items() if len(curve) > 1}
    if not curves:
        return []
    ratios = sorted({ratio for curve in curves.values() for ratio in curve})
    rows = [
        [name, *(f"{100 * curve[ratio]:.1f}" if ratio in curve else "-" for ratio in ratios)]
        for name, curve in curves.items()
    ]
    return [Table(["F1 on dev", *(f"{ratio:g}N" for ratio in ratios)], rows)]


def corpus_tables(results: Results) -> list[Table]:
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


def _corpus_table(settings: Sequence[Setting], size: int | None, results: Results) -> Table:
    of_row = {setting: {r.row: r for r in results[setting] if r.is_chosen or not r.is_searched} for setting in settings}
    rows = []
    order = {result.row: result.arm.sort_key for setting in settings for result in results[setting]}
    for row in sorted({row for of_setting in of_row.values() for row in of_setting}, key=lambda row: order[row]):
        some = [of_row[setting].get(row) for setting in settings]
        known = [result.f1 for result in some if result]
        cells = [f"{100 * result.f1:.1f}{_seeds(len(result.records), result)}" if result else "-" for result in some]
        # An average over some of the corpora could not be compared with the others.
        average = f"{100 * fmean(known):.1f}" if len(known) == len(some) else "-"
        name, ratio = row
        rows.append([f"{name} (chosen on dev)" if ratio is None else str(Arm(name, ratio)), *cells, average])
    title = settings[0].tagger if size is None else f"{settings[0].tagger}, {size:,}"
    names = [s.corpus if size is not None else f"{s.corpus}, {s.size:,}" for s in settings]
    return Table([f"F1, {title}", *names, "average"], rows)


# --------------------------------------------------------------------------------------------------------------- advice


def recommend(results: Results) -> list[str]:
    """Say which method to use in which settings, a line for each advice."""
    # A method is recommended where its interval at equal steps lies above 0: of several the one with the largest gain.
    # Gold alone is recommended where three seeds show no gain of any method.
    where: dict[str, list[str]] = defaultdict(list)
    num_tested = num_gains = 0
    for setting, arms in results.items():
        methods = [(r, r.shown_difference) for r in arms if r.shown_difference and r.arm.name not in BASELINES]
        runs = [record for result in arms for record in result.records]
        if methods and runs and not any(record.test.micro.correct for record in runs):
            where["No tagger found a mention: train for more steps, or with higher learning rates"].append(str(setting))
            continue  # gains of 0 between such taggers say nothing of the methods
        tested = [(result, difference) for result, difference in methods if difference.seeds > 1]
        gains = [(result, difference) for result, difference in tested if difference.verdict == "helps"]
        num_tested += len(tested)
        num_gains += len(gains)
        if gains:
            result, best = max(gains, key=lambda pair: pair[1].gain)
            interval = f"{_points(best.gain)} F1, {_points(best.low)} to {_points(best.high)}"
            where[f"Use {result.arm}"].append(f"{setting} ({interval}){_seeds(len(result.baseline), result)}")
        elif methods and _is_undecided([difference for _, difference in methods]):
            where["Run three seeds before you choose"].append(str(setting))
        else:
            where["Keep gold alone" if tested else "No method was compared yet"].append(str(setting))
    lines = [f"**{advice}**: {'; '.join(settings)}." for advice, settings in where.items()]
    if num_gains:
        from scipy.special import bdtrc

        chance = float(bdtrc(num_gains - 1, num_tested, _ONE_SIDED))  # of so many if no method has an effect
        shown = f"{quantity(num_gains, 'gain')} or more in {quantity(num_tested, 'comparison')}"
        advice = f"Repeat it with other seeds: chance alone shows {shown} with a probability of {100 * chance:.0f} %."
        lines += [advice] if chance > _RARE else []
    return lines


def _is_undecided(differences: Sequence[Difference]) -> bool:
    """Whether no comparison of a setting has enough seeds, and more could show a gain."""
    return all(d.seeds < _ENOUGH_SEEDS for d in differences) and any(d.verdict != "hurts" for d in differences)
