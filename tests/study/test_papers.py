"""The plans of the papers' tables: all valid, and their small twins executed in their smallest form."""

from __future__ import annotations

import importlib
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import EXAMPLE, ROOT
from entaug.config.params import parameters
from entaug.errors import EntaugError
from entaug.methods import METHODS
from entaug.study.data import prepare_splits
from entaug.study.plan import MethodPlan, Plan, TaggerPlan, read_plan
from entaug.study.runs import execute_run
from entaug.study.schedule import Schedule
from helpers import tiny
from helpers.marks import first_fast
from helpers.small_plans import smallest_plan

PAPERS = ROOT / "benchmarks" / "papers"
TWINS = sorted(PAPERS.glob("*/*.small.toml"))
WHOLE = sorted(path for path in PAPERS.glob("*/*.toml") if path not in TWINS)
TRAIN, DEV, TEST = (EXAMPLE / f"{name}.conll" for name in ("train", "dev", "test"))


def name_of(path: Path) -> str:
    return path.relative_to(PAPERS).as_posix()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tiny models by the parameter that takes them."""
    folder = tmp_path_factory.mktemp("models")
    kinds = {"encoder": "bert", "masked_lm": "bert", "generator": "llama", "causal_lm": "llama"}
    models = {parameter: tiny.save(folder / parameter, kind) for parameter, kind in kinds.items()}
    for name, key in (("config.json", "max_position_embeddings"), ("tokenizer_config.json", "model_max_length")):
        file = models["generator"] / name  # its rotary positions have no weights, so there may be more
        file.write_text(json.dumps({**json.loads(file.read_text()), key: 1024}))
    return {parameter: str(model) for parameter, model in models.items()}


# ---------------------------------------------------------------------------------------------- the smallest form


@pytest.fixture
def plan_file(models: dict[str, str], tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(
        f"""
        seeds = [3, 4]
        ratios = [2, 5]
        [training]
        epochs = 50
        [[taggers]]
        name = "linear"
        encoder = "{models["encoder"]}"
        [[teachers]]
        size = 3
        [[methods]]
        name = "mr"
        grid = {{ p = [0.1, 0.9] }}
        [[methods]]
        name = "daga"
        ratios = "patience"
        epochs = 30
        [[corpora]]
        name = "a"
        train = "{TRAIN}"
        dev = "{DEV}"
        test = {{ x = "{TEST}", y = "{DEV}" }}
        sizes = [100]
        subset_seed = [1, 2]
        dev_in_test = "allow"
        """,
        encoding="utf-8",
    )
    return path


def test_the_smallest_form_has_every_arm_once(plan_file: Path, tmp_path: Path) -> None:
    plan = read_plan(plan_file)
    small = smallest_plan(plan, tmp_path / "out")
    runs = Schedule(small, prepare_splits(small)).runs
    assert {run.arm for run in runs} == {"gold", "mr p=0.1", "mr p=0.9", "daga", "gold-steps", "duplicate"}
    assert {(run.seed, run.split.size, run.steps) for run in runs} == {(3, 24, 2)}
    assert {run.ratio for run in runs} == {0, 1}
    assert [method.params.get("epochs") for method in small.methods] == [None, None, 1]
    assert {method.params["max_attempts"] for method in small.methods} == {1}
    assert [method.group for method in small.methods] == ["mr", "mr", ""]
    assert small.teachers[0].size == 1
    assert small.corpora[0].subset_seeds == (1,)


def test_errors_of_the_smallest_form_name_the_line_of_the_plan(plan_file: Path, tmp_path: Path) -> None:
    small = smallest_plan(read_plan(plan_file), tmp_path / "out")
    line = 1 + plan_file.read_text(encoding="utf-8").split("\n").index("        [[methods]]")
    assert (small.lines.path, small.lines.line_of("methods", 0, "")) == (plan_file, line)


# ------------------------------------------------------------------------------------- rates by the number of sentences


def test_rates_fall_with_the_number_of_training_sentences(plan_file: Path) -> None:
    text = plan_file.read_text(encoding="utf-8")
    keys = "epochs = 50\nlearning_rate = 2e-4\nhead_learning_rate = 1e-3\nwarmup_steps = 200\nscale_above = 100"
    plan_file.write_text(text.replace("epochs = 50\n", f"{keys}\n", 1), encoding="utf-8")
    [tagger] = read_plan(plan_file).taggers
    for size, new, factor in ((10, 0, 1), (50, 50, 1), (100, 100, 2), (100, 400, 5)):
        training = tagger.training.for_sentences(size + new)
        assert training.learning_rate == pytest.approx(2e-4 / factor)
        assert training.head_learning_rate == pytest.approx(1e-3 / factor)
        assert training.warmup_steps == 200 * factor
        assert training.epochs == 50
    plan = replace(read_plan(plan_file), seeds=(1,))
    runs = [run for run in Schedule(plan, prepare_splits(plan)).runs if run.arm == "mr p=0.1"]
    rates = {run.ratio: run.training.learning_rate for run in runs}
    assert rates == pytest.approx({2: 2e-4 / 3, 5: 2e-4 / 6})
    plan_file.write_text(text.replace("epochs = 50\n", "scale_above = 100\n", 1), encoding="utf-8")
    with pytest.raises(EntaugError, match="give learning_rate"):
        read_plan(plan_file)


# ------------------------------------------------------------------------------------------------- plans of the papers


def test_every_plan_of_a_paper_has_a_small_twin() -> None:
    assert {name_of(path).removesuffix(".toml") for path in WHOLE} == {
        name_of(path).removesuffix(".small.toml") for path in TWINS
    }
    assert {path.parent.name for path in WHOLE} == {"aclm", "backtranslation", "cassi", "entda", "syntax"}


@pytest.mark.parametrize("path", first_fast(WHOLE, 2), ids=name_of)
def test_plans_of_papers_are_valid(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.parent.name / path.name
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    for file in _corpus_files(path):
        target = copy.parent / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix:
            target.write_text("", encoding="utf-8")  # its sentences are read later
        else:
            target.mkdir()
    plan = read_plan(copy)
    assert plan.corpora
    assert plan.methods


def _corpus_files(path: Path) -> Iterator[str]:
    for table in tomllib.loads(path.read_text(encoding="utf-8"))["corpora"]:
        for key in ("train", "dev", "test"):
            value = table.get(key)
            values = value.values() if isinstance(value, dict) else [value]
            yield from (item for item in values if isinstance(item, str))


def test_pages_of_papers_hold_the_records_of_their_twins() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        pages = importlib.import_module("paper_tables")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    mentioned = set()
    for path in sorted(PAPERS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert pages.with_results(text) == text, f"{path.name}: run python benchmarks/paper_tables.py"
        mentioned |= set(re.findall(r"<!-- twin: (\S+) -->", text))
    assert mentioned == {name_of(path).removesuffix(".toml") for path in TWINS}


# The other twins have methods and taggers of these.
OFTEN = ("aclm/table-1", "cassi/table-6", "syntax/table-2")


@pytest.mark.models
@pytest.mark.corpora
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if name_of(path).startswith(OFTEN) else pytest.mark.slow, id=name_of(path))
        for path in TWINS
    ],
)
def test_small_twins_run(path: Path, corpora: Path, models: dict[str, str], tmp_path: Path) -> None:
    """Each arm of a twin in its smallest form, with tiny models in place of those that would be trained for minutes."""
    plan = _with_models(smallest_plan(read_plan(path), tmp_path / "out", 10), models)
    for run in Schedule(plan, prepare_splits(plan)).runs:
        record, _ = execute_run(run)
        assert record.test.micro.gold < 200  # of eight sentences


def _with_models(plan: Plan, models: dict[str, str]) -> Plan:
    def method(old: MethodPlan) -> MethodPlan:
        known = {parameter.name for parameter in parameters(METHODS[old.name])}
        params = {**old.params, **{name: model for name, model in models.items() if name in known}}
        params |= {"max_new_tokens": 12} if "max_new_tokens" in known else {}
        if "tagger" in known:
            params |= {"tagger": f"linear:encoder={models['encoder']};steps=1", "num_attention_layers": 2}
        return replace(old, params=params)

    def tagger(old: TaggerPlan) -> TaggerPlan:
        return old if "encoder" not in old.params else replace(old, params={**old.params, "encoder": models["encoder"]})

    return replace(plan, methods=tuple(map(method, plan.methods)), taggers=tuple(map(tagger, plan.taggers)))
