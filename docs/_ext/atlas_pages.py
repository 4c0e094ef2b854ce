"""The table of the atlas: which method for which kind of corpus, from the plan and the records that there are."""

from __future__ import annotations

import json
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from entaug.methods import METHODS
from entaug.metrics.significance import Difference, mean_interval
from entaug.report.comparison import ArmResult, Setting, compare_arms
from entaug.study.records import RECORDS_FILE, read_run_records
from page_text import ROOT, table

__all__ = ["ATLAS", "KINDS", "atlas_table", "number_of_runs"]

ATLAS = ROOT / "benchmarks" / "atlas"
KINDS = {
    "web": "web text (blogs, mail, reviews, answers), people, places and organisations",
    "social": "social media, six types, names that are rare or new",
    "queries": "lower-cased short sentences and queries, six types, many titles and products",
    "biomedical": "biomedical abstracts, one type",
    "science": "scientific papers, three types",
    "hr-news": "news in another language: Croatian",
    "nested": "biomedical abstracts, nested mentions",
    "discontinuous": "biomedical abstracts, discontinuous and nested mentions",
}
"""What each corpus of the atlas stands for."""
_SHOWN = 3  # methods without a verdict, those with the largest gains


@cache
def _plan() -> dict[str, Any]:
    return tomllib.loads((ATLAS / "atlas.toml").read_text("utf-8"))


def _taggers(corpus: dict[str, Any]) -> list[str]:
    return corpus.get("taggers") or [tagger["name"] for tagger in _plan()["taggers"]]


def _methods(corpus: dict[str, Any]) -> list[dict[str, Any]]:
    return [method for method in _plan()["methods"] if method["name"] in corpus.get("methods", [method["name"]])]


def number_of_runs() -> int:
    """The number of runs of the whole atlas, as ``--check`` counts them: gold, gold-steps by ratio, and methods."""
    plan = _plan()
    total = 0
    for corpus in plan["corpora"]:
        ratios = {ratio for method in _methods(corpus) for ratio in method.get("ratios", plan["ratios"])}
        total += len(_taggers(corpus)) * len(plan["seeds"]) * (1 + len(ratios) + len(_methods(corpus)))
    return total


def atlas_table(runs: Path = ATLAS / "runs" / RECORDS_FILE) -> str:
    """Which part has been run; the methods on all corpora, and by corpus and tagger; and what cannot be run.

    Args:
        runs: the records.
    """
    values = [json.loads(line) for line in runs.read_text("utf-8").splitlines()] if runs.is_file() else []
    results = compare_arms(read_run_records([runs])) if values else {}
    by_corpus: dict[str, list[tuple[Setting, Sequence[ArmResult]]]] = {name: [] for name in KINDS}
    for setting, arms in results.items():
        by_corpus[setting.corpus].append((setting, arms))
    rows = []
    for name, kind in KINDS.items():
        of_taggers = [_row(setting, arms) for setting, arms in by_corpus[name]]
        rows += [(f"`{name}`: {kind}", *row) for row in of_taggers or [("not run yet", *["-"] * 4)]]
    head = ("your corpus is like", "tagger", "F1 of gold alone", "helps", "hurts", "no verdict: largest gains")
    return "\n".join([_part(values), *_overall(results), table(head, rows), "Not run, and why:\n", _not_run()])


def _part(values: Sequence[dict[str, Any]]) -> str:
    """Which part of the atlas has been run, in a sentence."""

    def names(key: str) -> str:
        return ", ".join(dict.fromkeys(str(value[key]) for value in values))

    arms = Counter(value["arm"] for value in values if value["arm"] in METHODS)
    devices: dict[str, dict[str, None]] = {}  # with the corpora computed on each, if there are several
    for value in values:
        devices.setdefault(str(value["environment"].get("device", "-")), {})[value["corpus"]] = None
    computed = (f"{name} for {', '.join(corpora)}" if len(devices) > 1 else name for name, corpora in devices.items())
    done = f"**{len(values):,} of {number_of_runs():,} runs**"
    if not values:
        return f"This page covers {done}.\n"
    parts = [f"taggers {names('tagger')}", f"seeds {names('seed')}", f"corpora {names('corpus')}"]
    parts.append(f"methods {', '.join(f'`{arm}` ({number} runs)' for arm, number in arms.items()) or 'none'}")
    parts.append(f"computed on {' and '.join(computed)}")
    return f"This page covers {done}: {'; '.join(parts)}.\n"


def _row(setting: Setting, arms: Sequence[ArmResult]) -> tuple[str, ...]:
    groups: dict[str, list[tuple[float, str]]] = {"helps": [], "hurts": [], "": []}
    gold = next((f"{100 * result.f1:.1f}" for result in arms if result.arm.name == "gold"), "-")
    for result in arms:
        if result.arm.name in METHODS and (difference := result.difference):
            low, high = 100 * difference.low, 100 * difference.high
            seeds = f"{difference.seeds} seed{'' if difference.seeds == 1 else 's'}"
            gain = f"`{result.method}` {100 * difference.gain:+.1f} ({low:+.1f} to {high:+.1f}; {seeds})"
            groups[difference.verdict if difference.verdict in groups else ""].append((difference.gain, gain))
    texts = {name: [text for _, text in sorted(some, reverse=name != "hurts")] for name, some in groups.items()}
    more = len(texts[""]) - _SHOWN
    texts[""] = [*texts[""][:_SHOWN], *([f"{more} more"] if more > 0 else [])]
    has_verdict = any(result.difference and result.difference.seeds > 1 for result in arms)
    return setting.tagger, gold, *(", ".join(some) or ("none" if has_verdict else "-") for some in texts.values())


def _overall(results: Mapping[Setting, Sequence[ArmResult]]) -> Iterator[str]:
    """The mean gain of each method over the corpora, where it was measured with several seeds on several."""
    groups: defaultdict[tuple[str, str], list[Difference]] = defaultdict(list)
    for setting, arms in results.items():
        for result in arms:
            if result.arm.name in METHODS and result.difference and result.difference.seeds > 1:
                groups[setting.tagger, result.method].append(result.difference)
    rows = []
    for (tagger, method), some in groups.items():
        gains = [100 * difference.gain for difference in some]
        if len(gains) > 1:
            interval = " to ".join(f"{end:+.1f}" for end in mean_interval(gains))
            verdicts = Counter(difference.verdict for difference in some)
            counts = (str(len(gains)), str(verdicts["helps"]), str(verdicts["hurts"]))
            rows.append((-fmean(gains), (tagger, f"`{method}`", f"{fmean(gains):+.1f}", interval, *counts)))
    if rows:
        yield "All corpora together, of methods with several seeds (the interval treats the corpora as a sample):\n"
        yield table(
            ("tagger", "method", "mean gain", "95 % interval", "corpora", "helps on", "hurts on"),
            [row for _, row in sorted(rows, key=lambda item: (item[1][0], item[0]))],
        )
        yield "By corpus:\n"


def _not_run() -> str:
    reasons: dict[tuple[str, str], list[str]] = {}
    for corpus in _plan()["corpora"]:
        run = {method["name"] for method in _methods(corpus)}
        for name in METHODS:
            if name not in run:
                reasons.setdefault((name, _reason(name, corpus)), []).append(corpus["name"])
    groups: dict[tuple[str, str], list[str]] = {}
    for (name, reason), corpora in reasons.items():
        where = "all corpora" if len(corpora) == len(KINDS) else ", ".join(f"`{corpus}`" for corpus in corpora)
        groups.setdefault((where, reason), []).append(f"`{name}`")
    return table(("methods", "on", "because"), [(", ".join(names), *group) for group, names in groups.items()])


def _reason(name: str, corpus: dict[str, Any]) -> str:
    if name == "rewrite":
        return "it asks an instruct model behind a server; the plan has the lines to add it"
    if "overlap" in corpus and not METHODS[name].info.nested:
        return "it works on flat mentions only"
    return "no starter model is of this language; a model of your own can be named"
