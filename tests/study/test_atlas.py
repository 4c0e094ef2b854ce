"""The plan of the atlas: every method where it can run, frozen splits without text, and a page that tells its part."""

from __future__ import annotations

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
    assert list(of_corpora) == list(pages.KINDS)
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
    return Scores({"X": MatchCounts(correct, 100, 100)}, {}, {}, {}, sentences)


def test_the_page_says_which_part_is_run_and_gives_gains_with_intervals(pages: ModuleType, tmp_path: Path) -> None:
    assert f"0 of {pages.number_of_runs():,} runs" in pages.atlas_table(tmp_path / "none.jsonl")
    runs = tmp_path / "runs.jsonl"

    found = {"gold": 50, "gold-steps": 50, "mr": 70, "lwtr": 30, "sis": 50}
    arms = [
        RunRecord(arm, "web", 200, "linear", arm, 0 if arm == "gold" else 3, seed, 700, 0, scores(correct))
        for seed in (1, 2, 3)
        for arm, correct in found.items()
    ]
    one_seed = [
        RunRecord(arm, "social", 200, "w2ner", arm, 3, 1, 700, 0, scores(found[arm])) for arm in ("gold-steps", "mr")
    ]
    runs.write_text("".join(json.dumps(record.to_dict()) + "\n" for record in [*arms, *one_seed]))
    text = pages.atlas_table(runs)
    part = f"**17 of {pages.number_of_runs():,} runs**: taggers linear, w2ner; seeds 1, 2, 3; corpora web, social; "
    assert f"{part}methods `mr` (4 runs), `lwtr` (3 runs), `sis` (3 runs); computed on -." in text
    web, social, queries = (re.findall(rf"(?m)^\| `{name}`.*$", text)[0] for name in ("web", "social", "queries"))
    number = r"[+-]\d+\.\d"
    gain = rf"\({number} to {number}; 3 seeds\)"
    assert re.search(rf"linear \| 50.0 \| `mr` \+20.0 {gain} \| `lwtr` -20.0 {gain} \| `sis` \+0.0", web)
    assert re.search(rf"w2ner \| - \| - \| - \| `mr` \+20.0 \({number} to {number}; 1 seed\)", social)
    assert "not run yet" in queries
    assert "All corpora together" not in text, "one corpus has several seeds"


def test_the_page_has_the_mean_gains_over_corpora(pages: ModuleType, tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    found = {"web": {"gold-steps": 50, "mr": 70, "lwtr": 40}, "science": {"gold-steps": 40, "mr": 50, "lwtr": 20}}
    records = [
        RunRecord(arm, corpus, 100, "linear", arm, 3, seed, 700, 0, scores(correct))
        for corpus, arms in found.items()
        for seed in (1, 2)
        for arm, correct in arms.items()
    ]
    runs.write_text("".join(json.dumps(record.to_dict()) + "\n" for record in records))
    _, together = pages.atlas_table(runs).split("All corpora together")
    first, second = re.findall(r"(?m)^\| linear \|.*$", together)
    assert re.fullmatch(r"\| linear \| `mr` \| \+15.0 \| \S+ to \S+ \| 2 \| 2 \| 0 \|", first)
    assert re.fullmatch(r"\| linear \| `lwtr` \| -15.0 \| \S+ to \S+ \| 2 \| 0 \| 2 \|", second)


@needs_data
@pytest.mark.slow
def test_the_splits_are_in_the_corpora_and_not_in_their_tests(pages: ModuleType, tmp_path: Path) -> None:
    plan: Plan = replace(read_plan(ATLAS / "atlas.toml"), output=tmp_path)
    splits = prepare_splits(plan)
    assert len(Schedule(plan, splits).runs) == pages.number_of_runs()
    for split in splits:
        gold = list(read(split.train))
        assert count_shared(gold, (s for path in split.held_out for s in read(path))) == 0
        if split.corpus.name == "discontinuous":
            assert sum(any(len(m.spans) > 1 for m in s.mentions) for s in gold) == split.size // 2


@needs_data
@pytest.mark.parametrize("name", ["atlas", "steps"])
def test_the_plans_are_valid(name: str) -> None:
    plan = read_plan(ATLAS / f"{name}.toml")
    assert plan.seeds == (1, 2, 3)
    assert len(plan.corpora) == (8 if name == "atlas" else 3)
