"""The tables of the atlas: which method for which kind of corpus, from the plan and the records that there are."""

from __future__ import annotations

import json
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from entaug.methods import METHODS
from entaug.metrics.significance import Difference, mean_interval
from entaug.report.comparison import ArmResult, Setting, compare_arms
from entaug.study.records import RECORDS_FILE, read_run_records
from page_text import ROOT, table

__all__ = ["ATLAS", "CORPORA", "atlas_table", "corpora_table", "number_of_runs", "twins_table", "verdicts_of_atlas"]

ATLAS = ROOT / "benchmarks" / "atlas"
PAPERS = ROOT / "benchmarks" / "papers"
CORPORA: dict[str, dict[str, Any]] = tomllib.loads((ATLAS / "corpora.toml").read_text("utf-8"))
"""What each corpus of the atlas stands for, and where its files are from."""
_TEXTS = {"nested": "genia", "discontinuous": "genia"}  # corpora with the same test sentences count once
_BIOMEDICAL = {"biomedical", "genia"}
_FEW = 0.3  # new sentences for each gold one, below which a method cannot be judged
_SEEDS = 3  # of the twins that are compared


@cache
def _plan() -> dict[str, Any]:
    return tomllib.loads((ATLAS / "atlas.toml").read_text("utf-8"))


def _taggers(corpus: dict[str, Any]) -> list[str]:
    return corpus.get("taggers") or [tagger["name"] for tagger in _plan()["taggers"]]


def _methods(corpus: dict[str, Any]) -> list[dict[str, Any]]:
    return [method for method in _plan()["methods"] if method["name"] in corpus.get("methods", [method["name"]])]


def number_of_runs(*, trainings: bool = False) -> int:
    """The number of runs of the whole atlas, as ``--check`` counts them: gold, gold-steps by ratio, and methods.

    Args:
        trainings: without gold-steps, which is gold itself, as all arms take as many steps.
    """
    plan = _plan()
    total = 0
    for corpus in plan["corpora"]:
        ratios = {ratio for method in _methods(corpus) for ratio in method.get("ratios", plan["ratios"])}
        total += (
            len(_taggers(corpus)) * len(plan["seeds"]) * (1 + len(ratios) * (not trainings) + len(_methods(corpus)))
        )
    return total


def _values(runs: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in runs.read_text("utf-8").splitlines()] if runs.is_file() else []


def _results(runs: Path) -> dict[Setting, list[ArmResult]]:
    """The arms of each setting, in the order of the corpora."""
    results = compare_arms(read_run_records([runs])) if _values(runs) else {}
    return {s: results[s] for s in sorted(results, key=lambda s: list(CORPORA).index(s.corpus))}


def _gains(arms: Sequence[ArmResult], seeds: int = 1) -> list[tuple[ArmResult, Difference]]:
    """The methods among the arms that are compared with gold alone, with at least as many seeds."""
    some = ((result, result.difference) for result in arms if result.arm.name in METHODS)
    return [(result, difference) for result, difference in some if difference and difference.seeds >= seeds]


def verdicts_of_atlas(runs: Path = ATLAS / "runs" / RECORDS_FILE) -> dict[str, tuple[str, list[int]]]:
    """Of each method with several seeds its arm, and in how many settings it helped, of how many, and hurt.

    Args:
        runs: the records.
    """
    by_method = _grouped((r.method, (r, d)) for arms in _results(runs).values() for r, d in _gains(arms, seeds=2))
    results = {}
    for name, some in by_method.items():
        verdicts = [difference.verdict for _, difference in some]
        few = f"{name}, too few to judge" if fmean(_new(result) for result, _ in some) < _FEW else name
        results[name] = few, [verdicts.count("helps"), len(some), verdicts.count("hurts")]
    return results


def atlas_table(runs: Path = ATLAS / "runs" / RECORDS_FILE) -> str:
    """Which part has been run; the methods on all corpora, and by corpus and tagger; and what is not run.

    Args:
        runs: the records.
    """
    values, results = _values(runs), _results(runs)
    rows = []
    for name, about in CORPORA.items():
        of_taggers = [_row(setting, arms) for setting, arms in results.items() if setting.corpus == name]
        beginning = f"`{name}`: {about['kind']}", about["language"]
        rows += [(*beginning, *row) for row in of_taggers or [("-", "not run yet", "-", "-", "-")]]
    head = (
        "your corpus is like",
        "language",
        "gold sentences (mentions)",
        "tagger",
        "F1 of gold alone",
        "helps",
        "hurts",
    )
    parts = [_part(values), *_overall(results), table(head, rows), *_cells(results), _pending(values)]
    return "\n".join([*parts, "Not run, and why:\n", _not_run()])


def _grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    groups: defaultdict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def corpora_table() -> str:
    """Where the files of each corpus are from, and their sums."""
    rows = []
    for corpus in _plan()["corpora"]:
        about = CORPORA[corpus["name"]]
        address = f"[{about['address'].removeprefix('https://')}]({about['address']}) at {about['commit'][:8]}"
        files = [(f"`{'/'.join(Path(corpus[part]).parts[5:])}`", f"`{about[part]}`") for part in ("train", "test")]
        source = f"{about['corpus']}: {address}"
        rows.append((f"`{corpus['name']}`", source, about["licence"], *files[0], *files[1]))
    return table(("corpus", "from", "licence", "training file", "SHA-256", "test file", "SHA-256"), rows)


def twins_table(papers: Path = PAPERS) -> str:
    """What each method gained in the twins of the papers' tables, where they have three seeds.

    Args:
        papers: the folder with the twins.
    """
    rows = []
    for name, some in _grouped(_twin_gains(papers)).items():
        gains = [100 * difference.gain for *_, difference in some]
        verdicts = Counter(difference.verdict for *_, difference in some)
        twins = ", ".join(f"`{twin}`" for twin in dict.fromkeys(twin for _, twin, _ in some))
        ends = f"{min(gains):+.1f} to {max(gains):+.1f}" if len(gains) > 1 else "-"
        counts = (f"{verdicts[verdict]} of {len(some)}" for verdict in ("helps", "hurts"))
        mean = fmean(gains)
        new_names = [gain for result, *_ in some for gain in _gains_on_new_names(result)]
        on_new = f"{fmean(new_names):+.1f}" if new_names else "-"
        rows.append((-mean, (f"`{name}`", f"{mean:+.1f}", ends, on_new, *counts, twins)))
    head = ("method", "mean gain", "lowest to highest", "on new names", "helps in", "hurts in", "twins")
    return table(head, [row for _, row in sorted(rows)])


def _twin_gains(papers: Path) -> Iterator[tuple[str, tuple[ArmResult, str, Difference]]]:
    """The gains in the twins over gold alone for as many steps, by method; labels of teachers are left out."""
    for plan in sorted(papers.glob("*/*.small.toml")):
        methods = {m.get("label", m["name"]): m for m in tomllib.loads(plan.read_text("utf-8"))["methods"]}
        twin = f"{plan.parent.name}/{plan.name.removesuffix('.small.toml')}"
        for arms in compare_arms(read_run_records([plan.with_suffix("")])).values():
            for result in arms:
                method, difference = methods.get(result.method, {}), result.difference
                if difference and difference.seeds >= _SEEDS and _new(result) >= _FEW and "labels" not in method:
                    yield method["name"], (result, twin, difference)


def _part(values: Sequence[dict[str, Any]]) -> str:
    """Which part of the atlas has been run, in a sentence."""

    def names(key: str) -> str:
        return ", ".join(dict.fromkeys(str(value[key]) for value in values))

    trained = sum(value["arm"] != "gold-steps" for value in values)
    done = f"**{trained:,} of {number_of_runs(trainings=True):,} trainings**"
    done += f" (`--check` says {len(values):,} of {number_of_runs():,}:"
    done += " it counts `gold-steps`, here the same as `gold`, apart)"
    if not values:
        return f"This page covers {done}.\n"
    parts = [f"seeds {names('seed')}", f"corpora {names('corpus')}"]
    for tagger, some in _grouped((value["tagger"], value) for value in values).items():
        arms = Counter(value["arm"] for value in some if value["arm"] in METHODS)
        devices = _grouped((str(value["environment"].get("device", "-")), value["corpus"]) for value in some)
        where = {
            name: f" for {', '.join(dict.fromkeys(corpora))}" * (len(devices) > 1) for name, corpora in devices.items()
        }
        runs = ", ".join(f"`{arm}` ({number} run{'s'[: number > 1]})" for arm, number in arms.items()) or "gold alone"
        parts.append(f"with `{tagger}` {runs}, computed on {' and '.join(name + of for name, of in where.items())}")
    return f"This page covers {done}: {'; '.join(parts)}.\n"


def _new(result: ArmResult) -> float:
    """The number of new sentences for each gold one."""
    return fmean(record.new / record.size for record in result.records)


def _gains_on_new_names(result: ArmResult) -> list[float]:
    """The gain in F1 on mentions whose words no training sentence has with their label, if the records tell it."""
    runs = {(record.subset_seed, record.seed): record.test.by_novelty for record in result.records}
    pairs = [(runs[base.subset_seed, base.seed], base.test.by_novelty) for base in result.baseline]
    if not all("unseen" in counts for pair in pairs for counts in pair):  # the first records have none
        return []
    return [100 * fmean(run["unseen"].f1 - base["unseen"].f1 for run, base in pairs)]


def _gain(result: ArmResult, difference: Difference) -> str:
    """The gain with its interval and the number of new sentences; in bold if it helps or hurts."""
    gain, low, high = (f"{100 * value:+.1f}" for value in (difference.gain, difference.low, difference.high))
    bold = "**" if difference.verdict in ("helps", "hurts") else ""
    seeds = (
        "" if difference.seeds == len(_plan()["seeds"]) else f"; {difference.seeds} seed{'s'[: difference.seeds > 1]}"
    )
    few = ", too few" if _new(result) < _FEW else ""
    return f"{bold}{gain}{bold} ({low} to {high}{seeds}; {_new(result):.2g} new{few})"


def _row(setting: Setting, arms: Sequence[ArmResult]) -> tuple[str, ...]:
    gold = next((f"{100 * result.f1:.1f}" for result in arms if result.arm.name == "gold"), "-")
    texts = []
    for verdict, sign in (("helps", -1), ("hurts", 1)):
        some = sorted((sign * d.gain, f"`{r.method}` {_gain(r, d)}") for r, d in _gains(arms) if d.verdict == verdict)
        texts.append(", ".join(text for _, text in some) or ("none" if _gains(arms, seeds=2) else "-"))
    tagger = next(tagger for tagger in _plan()["taggers"] if tagger["name"] == setting.tagger)
    encoder = tagger.get("by_corpus", {}).get(setting.corpus, tagger).get("encoder")
    named = f"{setting.tagger}, {encoder}" if encoder else setting.tagger
    return f"{setting.size} ({CORPORA[setting.corpus]['mentions']})", named, gold, *texts


def _cells(results: Mapping[Setting, Sequence[ArmResult]]) -> Iterator[str]:
    """All gains, by corpus and tagger."""
    cells = {setting: {r.method: _gain(r, d) for r, d in _gains(arms)} for setting, arms in results.items()}
    names = [method["name"] for method in _plan()["methods"] if any(method["name"] in some for some in cells.values())]
    if names:
        yield f"All gains (*new*: sentences for each gold one; *too few* to judge: under {_FEW}):\n"
        head = ("corpus", "tagger", *(f"`{name}`" for name in names))
        rows = ((f"`{s.corpus}`", s.tagger, *(some.get(name, "-") for name in names)) for s, some in cells.items())
        yield table(head, rows)


def _mean(gains: Sequence[float]) -> str:
    if len(gains) < 2:
        return "-"
    return f"{fmean(gains):+.1f} ({' to '.join(f'{end:+.1f}' for end in mean_interval(gains))})"


def _overall(results: Mapping[Setting, Sequence[ArmResult]]) -> Iterator[str]:
    """The mean gain of each method over the corpora, where it was measured with several seeds on several."""
    measured = [(setting, *gain) for setting, arms in results.items() for gain in _gains(arms, seeds=2)]
    groups = _grouped(((s.tagger, r.method), (_TEXTS.get(s.corpus, s.corpus), r, d)) for s, r, d in measured)
    gains = {
        key: {text: fmean(some) for text, some in _grouped((text, 100 * d.gain) for text, _, d in group).items()}
        for key, group in groups.items()
    }
    rows = []
    for (tagger, method), own in gains.items():
        if len(own) > 1:
            group, mr = groups[tagger, method], gains.get((tagger, "mr"), {})
            new = [_new(result) for _, result, _ in group]
            made = " to ".join(dict.fromkeys(f"{end:.2g}" for end in (min(new), max(new))))
            made += ", too few" * (fmean(new) < _FEW)
            others = _mean([gain for text, gain in own.items() if text not in _BIOMEDICAL])
            on_new = _grouped((text, gain) for text, r, _ in group for gain in _gains_on_new_names(r))
            names = _mean([fmean(some) for some in on_new.values()])
            less = "-" if method == "mr" else _mean([mr[text] - gain for text, gain in own.items() if text in mr])
            verdicts = Counter(difference.verdict for *_, difference in group)
            counts = (f"{verdicts[verdict]} of {len(group)}" for verdict in ("helps", "hurts"))
            row = (tagger, f"`{method}`", made, _mean([*own.values()]), len(own), others, names, less, *counts)
            rows.append((tagger, -fmean(own.values()), row))
    if rows:
        yield "All corpora together, with several seeds. The intervals treat the corpora as a sample, in which"
        yield "GENIA, the text of two of them, counts once. *On new names*: gain in F1 on mentions whose words no gold"
        yield "sentence has with their label.\n"
        head = ("tagger", "method", "new for each gold", "mean gain", "corpora", "without biomedical text")
        rest = ("on new names", "`mr` minus it", "helps in", "hurts in")
        yield table((*head, *rest), [row for *_, row in sorted(rows)])
        found = Counter(difference.verdict for *_, difference in measured)
        chance = f"about {0.05 * len(measured):.0f} would by chance, if no method made any difference"
        yield f"Of {len(measured)} comparisons by corpus {found['helps']} help and {found['hurts']} hurt; {chance}."
        yield "\nBy corpus:\n"


def _pending(values: Sequence[dict[str, Any]]) -> str:
    """What the plan has and no record: taggers, and methods by corpus."""
    done = {(value["tagger"], value["arm"], value["corpus"]) for value in values}
    parts = []
    for tagger in (tagger["name"] for tagger in _plan()["taggers"]):
        corpora = [corpus for corpus in _plan()["corpora"] if tagger in _taggers(corpus)]
        planned = _grouped((method["name"], corpus["name"]) for corpus in corpora for method in _methods(corpus))
        missing = {n: [c for c in of_method if (tagger, n, c) not in done] for n, of_method in planned.items()}
        none = [f"`{name}`" for name, of_method in missing.items() if of_method == planned[name]]
        texts = [f"{'any method' if len(none) == len(planned) else ', '.join(none)} on any corpus"] if none else []
        texts += [f"`{n}` on {', '.join(some)}" for n, some in missing.items() if some and some != planned[n]]
        parts += [f"with `{tagger}` {', '.join(texts)}"] if texts else []
    return f"Planned, without a run yet: {'; '.join(parts) or 'nothing'}.\n"


def _not_run() -> str:
    reasons: dict[tuple[str, str], list[str]] = {}
    for corpus in _plan()["corpora"]:
        run = {method["name"] for method in _methods(corpus)}
        for name in METHODS:
            if name not in run:
                reasons.setdefault((name, _reason(name, corpus)), []).append(corpus["name"])
    groups: dict[tuple[str, str], list[str]] = {}
    for (name, reason), corpora in reasons.items():
        where = "all corpora" if len(corpora) == len(CORPORA) else ", ".join(f"`{corpus}`" for corpus in corpora)
        groups.setdefault((where, reason), []).append(f"`{name}`")
    return table(("methods", "on", "because"), [(", ".join(names), *group) for group, names in groups.items()])


def _reason(name: str, corpus: dict[str, Any]) -> str:
    if name == "rewrite":
        return "it asks an instruct model behind a server; the plan has the lines to add it"
    if "overlap" in corpus and not METHODS[name].info.nested:
        return "it works on flat mentions only"
    return "no starter model is of this language; a model of your own can be named"
