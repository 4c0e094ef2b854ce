"""What the results of experiments advise, in one sentence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from entaug.metrics.significance import Difference
from entaug.report.comparison import BASELINES, ArmResult, Setting

__all__ = ["recommend"]

_ENOUGH_SEEDS = 3  # with fewer, an interval that contains 0 decides nothing
_ONE_SIDED = 0.025  # how often an interval lies above 0 where there is no effect


def recommend(results: Mapping[Setting, Sequence[ArmResult]]) -> str:
    """Say which method to use in which setting."""
    # A method is recommended where its interval at equal steps lies above 0: of several the one with the largest gain.
    # Gold alone is recommended where three seeds show no gain of any method.
    names = _names(results)
    methods = {setting: _methods(arms) for setting, arms in results.items()}
    comparisons = [d for of_setting in methods.values() for _, d in of_setting if d.seeds > 1]
    gains_of: dict[str, list[tuple[str, Difference]]] = defaultdict(list)
    others, undecided, empty = [], [], []
    num_seeds: set[int] = set()  # of the undecided settings
    for setting, of_setting in methods.items():
        differences = [difference for _, difference in of_setting]
        tested = [(result, difference) for result, difference in of_setting if difference.seeds > 1]
        gains = [(result, difference) for result, difference in tested if difference.verdict == "helps"]
        if gains:
            result, best = max(gains, key=lambda pair: pair[1].gain)
            is_only_ratio = len({other.arm.ratio for other, _ in of_setting if other.arm.name == result.arm.name}) < 2
            name = result.arm.name if is_only_ratio else str(result.arm)
            gains_of[name].append((names[setting], best))
        elif differences and _is_undecided(differences):
            undecided.append(names[setting])
            num_seeds.add(max(difference.seeds for difference in differences))
        elif tested:
            others.append(names[setting])
        else:
            empty.append(names[setting])
    parts = [_use(name, where) for name, where in gains_of.items()]
    found = len([d for d in comparisons if d.verdict == "helps"])
    if found and found <= _ONE_SIDED * len(comparisons):
        times = "once" if found == 1 else f"{found} times"
        parts.append(f"but repeat it with other seeds, because chance alone shows that {times} in {len(comparisons)}")
    if others:
        where = "on the others " if parts else f"on {_and(others)} " if undecided or empty else ""
        parts.append(f"{where}keep gold alone" + ("" if parts else ": no method showed a gain at equal steps"))
    if undecided:
        where = f"on {_and(undecided)} " if parts or empty or len(undecided) == 1 else ""
        so_far = {(1,): "one seed", (2,): "two seeds", (1, 2): "one or two seeds"}[tuple(sorted(num_seeds))]
        parts.append(f"{where}run three seeds before you choose ({so_far} so far)")
    if empty:
        parts.append(f"on {_and(empty)} no method was compared yet")
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _is_undecided(differences: Sequence[Difference]) -> bool:
    """Whether no comparison of a setting has enough seeds, and more could show a gain."""
    return all(d.seeds < _ENOUGH_SEEDS for d in differences) and any(d.verdict != "hurts" for d in differences)


def _use(name: str, gains: Sequence[tuple[str, Difference]]) -> str:
    """The advice to use a method in settings with such gains."""
    if len(gains) == 1:
        [(setting, gain)] = gains
        interval = f"{_points(gain.low)} to {_points(gain.high)}"
        return f"use {name} on {setting}: +{_points(gain.gain)} F1 ({interval}) at equal steps"
    where = [f"{setting} (+{_points(g.gain)}: {_points(g.low)} to {_points(g.high)})" for setting, g in gains]
    return f"use {name} on {_and(where)}, in points of F1 at equal steps"


def _methods(arms: Sequence[ArmResult]) -> list[tuple[ArmResult, Difference]]:
    """The methods with a comparison; of the ratios searched on dev only the chosen one."""
    return [
        (result, result.difference)
        for result in arms
        if result.difference is not None
        and result.arm.name not in BASELINES
        and (result.is_chosen or not result.is_searched)
    ]


def _names(settings: Collection[Setting]) -> dict[Setting, str]:
    """A short name for each setting: of its corpus, size and tagger only what tells settings apart."""
    names = {}
    for setting in settings:
        others = [other for other in settings if other.corpus == setting.corpus]
        parts = [f"{setting.size:,} sentences"] if len({other.size for other in others}) > 1 else []
        parts += [setting.tagger] if len({other.tagger for other in others}) > 1 else []
        names[setting] = setting.corpus + (f" with {' and '.join(parts)}" if parts else "")
    return names


def _points(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:.1f}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
