"""The plan of the atlas: every method where it can run, frozen splits without text, and a page that tells its part."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from conftest import ROOT
from entaug.formats import read
from entaug.methods import METHODS
from entaug.metrics.span_f1 import MatchCounts, Scores
from entaug.study.data import count_shared, prepare_splits
from entaug.study.plan import Plan, read_plan
from entaug.study.records import RunRecord
from entaug.study.schedule import Schedule

ATLAS = ROOT / "benchmarks" / "atlas"
DATA = ROOT.parent / "shared" / "data"  # plans name it relative to themselves
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="needs the corpora of ../shared/data")


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import atlas_pages

    return atlas_pages


def corpora() -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = tomllib.loads((ATLAS / "atlas.toml").read_text("utf-8"))["corpora"]
    return tables


def test_every_method_is_run_where_it_works_or_is_named_with_the_reason(pages: ModuleType) -> None:
    plan = tomllib.loads((ATLAS / "atlas.toml").read_text("utf-8"))
    names = [method["name"] for method in plan["methods"]]
    assert sorted([*names, "rewrite"]) == sorted(METHODS)
    of_corpora = {corpus["name"]: corpus.get("methods", names) for corpus in plan["corpora"]}
    assert list(of_corpora) == list(pages.CORPORA)
    for kind in ("nested", "discontinuous"):
        assert set(of_corpora[kind]) == {name for name in names if getattr(METHODS[name].info, kind)}
    # The tagger of selftrain is that of the plan, and the language model of daga one of the corpus itself.
    assert set(of_corpora["hr-news"]) == {n for n in names if set(METHODS[n].info.needs) <= {"tagger", "token_lm"}}
    reasons = pages.atlas_table().partition("Not run")[2]
    for name in METHODS:
        assert (f"`{name}`" in reasons) == any(name not in some for some in of_corpora.values())


def test_splits_are_digests_without_text() -> None:
    files = {corpus["subset_ids"].format(size=size) for corpus in corpora() for size in corpus["sizes"]}
    assert files == {path.relative_to(ATLAS).as_posix() for path in ATLAS.glob("splits/*")}
    for file in files:
        head, *digests = (ATLAS / file).read_text("utf-8").splitlines()
        assert head.startswith("# Sentences of ")
        assert digests == sorted(set(digests))
        assert all(re.fullmatch("[0-9a-f]{16}", digest) for digest in digests)
        assert len(digests) == int(file.split(".")[1])


def scores(correct: int) -> Scores:
    sentences = tuple(MatchCounts(int(i < correct), 1, 1) for i in range(100))
    by_novelty = {"seen": MatchCounts(10, 10, 10), "unseen": MatchCounts(correct - 10, 90, 90)}
    return Scores({"X": MatchCounts(correct, 100, 100)}, {}, {}, {}, sentences, by_novelty=by_novelty)


def test_the_page_says_which_part_is_run_and_gives_gains_with_intervals(pages: ModuleType, tmp_path: Path) -> None:
    planned = pages.number_of_runs(trainings=True)
    none = pages.atlas_table(tmp_path / "none.jsonl")
    assert f"**0 of {planned:,} trainings** (`--check` says 0 of {pages.number_of_runs():,}:" in none
    runs = tmp_path / "runs.jsonl"

    found = {"gold": 50, "gold-steps": 50, "mr": 70, "lwtr": 30, "sis": 50}
    new = {"mr": 500, "sis": 10}
    arms = [
        RunRecord(
            arm, "web", 200, "linear", arm, 0 if arm == "gold" else 3, seed, 700, new.get(arm, 0), scores(correct)
        )
        for seed in (1, 2, 3)
        for arm, correct in found.items()
    ]
    one_seed = [
        RunRecord(arm, "social", 200, "w2ner", arm, 3, 1, 700, 0, scores(found[arm])) for arm in ("gold-steps", "mr")
    ]
    runs.write_text("".join(json.dumps(record.to_dict()) + "\n" for record in [*arms, *one_seed]))
    text = pages.atlas_table(runs)
    assert f"**13 of {planned:,} trainings** (`--check` says 17 of" in text
    assert "seeds 1, 2, 3; corpora web, social; with `linear` `mr` (3 runs), `lwtr` (3 runs), " in text
    assert "; with `w2ner` `mr` (1 run), computed on " in text
    by_corpus, cells = text.split("All gains")
    web, social, queries = (re.findall(rf"(?m)^\| `{name}`.*$", by_corpus)[0] for name in ("web", "social", "queries"))
    number = r"[+-]\d+\.\d"
    interval = f"{number} to {number}"
    helps, hurts = rf"\*\*\+20.0\*\* \({interval}; 2.5 new\)", rf"\*\*-20.0\*\* \({interval}; 0 new, too few\)"
    assert re.search(rf"English \| 200 \(99\) \| linear, minilm \| 50.0 \| `mr` {helps} \| `lwtr` {hurts} \|$", web)
    assert social.endswith("| English | 200 (103) | w2ner, minilm | - | - | - |")
    assert re.search(rf"`web` \| linear \| {helps} \| {hurts} \| \+0.0 \({interval}; 0.05 new, too few\) \|", cells)
    assert re.search(rf"`social` \| w2ner \| \+20.0 \({interval}; 1 seed; 0 new, too few\) \| - \| - \|", cells)
    assert "; with `static-bilstm-crf` any method on any corpus; " in text
    assert "`mr` on social, queries, biomedical, science, hr-news, nested, discontinuous" in text
    assert "not run yet" in queries
    assert "All corpora together" not in text, "one corpus has several seeds"


def test_the_page_has_the_mean_gains_over_corpora(pages: ModuleType, tmp_path: Path) -> None:
    """GENIA is the text of two corpora, and counts once."""
    runs = tmp_path / "runs.jsonl"
    found = {
        "web": {"gold-steps": 50, "mr": 70, "lwtr": 40},
        "science": {"gold-steps": 40, "mr": 50, "lwtr": 20},
        "nested": {"gold-steps": 40, "mr": 50},
        "discontinuous": {"gold-steps": 40, "mr": 80},
    }
    records = [
        RunRecord(arm, corpus, 100, "linear", arm, 3, seed, 700, 200, scores(correct))
        for corpus, arms in found.items()
        for seed in (1, 2)
        for arm, correct in arms.items()
    ]
    runs.write_text("".join(json.dumps(record.to_dict()) + "\n" for record in records))
    _, together = pages.atlas_table(runs).split("All corpora together")
    first, second = re.findall(r"(?m)^\| linear \|.*$", together)
    interval = r"\(\S+ to \S+\)"
    others = rf"\+15.0 {interval} \| \+20.4 {interval}"
    assert re.fullmatch(
        rf"\| linear \| `mr` \| 2 \| \+18.3 {interval} \| 3 \| {others} \| - \| 4 of 4 \| 0 of 4 \|", first
    )
    less = rf"-15.0 {interval} \| 2 \| -15.0 {interval} \| -16.7 {interval} \| \+30.0 {interval}"
    assert re.fullmatch(rf"\| linear \| `lwtr` \| 2 \| {less} \| 0 of 2 \| 2 of 2 \|", second)
    assert "Of 6 comparisons by corpus 4 help and 2 hurt; about 0 would by chance" in together
    assert pages.verdicts_of_atlas(runs) == {"mr": ("mr", [4, 4, 0]), "lwtr": ("lwtr", [0, 2, 2])}


def test_the_twins_are_counted_by_method(pages: ModuleType, tmp_path: Path) -> None:
    """Labels of a teacher, few seeds and few new sentences are left out."""
    methods = [("mr", "", ""), ("mr", "often", ""), ("mr", "taught", "teacher"), ("sr", "few", "")]
    lines = [
        f'[[methods]]\nname = "{name}"\n'
        + (f'label = "{label}"\n' if label else "")
        + (f'labels = "{labels}"\n' if labels else "")
        for name, label, labels in methods
    ]
    (tmp_path / "paper" / "table-1.small").mkdir(parents=True)
    (tmp_path / "paper" / "table-1.small.toml").write_text("\n".join(lines))
    records = [
        RunRecord(arm, "web", 100, "linear", arm, 3, seed, 700, new, scores(correct))
        for seed in (1, 2, 3)
        for arm, correct, new in (
            ("gold-steps", 50, 0),
            ("mr", 70, 200),
            ("often", 40, 200),
            ("taught", 90, 200),
            ("few", 90, 20),
        )
    ]
    records += [replace(record, corpus="social") for record in records[:10]]
    runs = tmp_path / "paper" / "table-1.small" / "runs.jsonl"
    runs.write_text("".join(json.dumps(record.to_dict()) + "\n" for record in records))
    [*_, row] = pages.twins_table(tmp_path).splitlines()
    assert row == "| `mr` | +5.0 | -10.0 to +20.0 | +5.6 | 1 of 2 | 1 of 2 | `paper/table-1` |"


@needs_data
@pytest.mark.parametrize("corpus", corpora(), ids=lambda corpus: corpus["name"])
def test_the_page_has_the_sums_of_the_files(corpus: dict[str, Any], pages: ModuleType) -> None:
    for part in ("train", "test"):
        content = (ATLAS / corpus[part]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == pages.CORPORA[corpus["name"]][part]


@needs_data
@pytest.mark.slow
def test_the_splits_are_in_the_corpora_and_not_in_their_tests(pages: ModuleType, tmp_path: Path) -> None:
    plan: Plan = replace(read_plan(ATLAS / "atlas.toml"), output=tmp_path)
    splits = prepare_splits(plan)
    assert len(Schedule(plan, splits).runs) == pages.number_of_runs()
    for split in splits:
        gold = list(read(split.train))
        assert sum(len(s.mentions) for s in gold) == pages.CORPORA[split.corpus.name]["mentions"]
        assert count_shared(gold, (s for path in split.held_out for s in read(path))) == 0
        if split.corpus.name == "discontinuous":
            assert sum(any(len(m.spans) > 1 for m in s.mentions) for s in gold) == split.size // 2


@needs_data
@pytest.mark.parametrize("name", ["atlas", "steps"])
def test_the_plans_are_valid(name: str) -> None:
    plan = read_plan(ATLAS / f"{name}.toml")
    assert plan.seeds == (1, 2, 3)
    assert len(plan.corpora) == (8 if name == "atlas" else 3)
