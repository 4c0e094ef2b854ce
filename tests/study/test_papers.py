"""The plans of the papers' tables: all valid, and their small twins executed in their smallest form."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import ModuleType

import pytest

from conftest import EXAMPLE, ROOT
from entaug.commands.main import main
from entaug.config.params import parameters
from entaug.errors import EntaugError
from entaug.methods import METHODS
from entaug.report.plan_tables import misprints
from entaug.study.data import prepare_splits
from entaug.study.plan import MethodPlan, Plan, TaggerPlan, read_plan
from entaug.study.records import read_run_records
from entaug.study.runs import execute_run
from entaug.study.schedule import Schedule
from entaug.study.tables import AVERAGE
from helpers import tiny
from helpers.paper_corpora import write_corpora
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


@pytest.fixture(scope="module")
def paper_tables() -> ModuleType:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module("paper_tables")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


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
    text = plan_file.read_text(encoding="utf-8").replace("subset_seed = [1, 2]\n", "")
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
        *(name_of(path).removesuffix(".small.toml") for path in TWINS),
        "cassi/figure-4",  # the twin of table 2 has its amounts
    }
    assert {path.parent.name for path in WHOLE} == {"aclm", "backtranslation", "cassi", "entda", "syntax"}


def copied(path: Path, folder: Path) -> Path:
    """A plan of a paper, with small corpora that were prepared from the files and folders of those that it reads."""
    copy = folder / path.parent.name / path.name
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    write_corpora(copy)
    return copy


FAST = ("entda/table-2", "backtranslation/table-1", "syntax/table-2")  # the shapes that are no columns


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=() if name_of(p).startswith(FAST) else pytest.mark.slow, id=name_of(p)) for p in WHOLE],
)
def test_plans_of_papers_read_the_corpora_as_they_are(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", str(copied(path, tmp_path)), "--check", "--offline"]) == 0
    assert ": valid; " in capsys.readouterr().err


# What the papers misprint, by their own cells; all other averages prove that figures were copied correctly.
MISPRINTS = {
    "aclm/table-1": ["1,000, gold: 44.40 is not 49.40"],
    "aclm/table-2": [
        "2,000, MELM: 47.45 is not 42.91",
        "5,000, MELM: 47.66 is not 47.46",
        "10,000, gold: 57.78 is not 56.78",
    ],
    "cassi/table-3": ["2,000, DAGA: 69.37 / 62.98 is not 69.21 / 62.98"],
    "entda/table-2": ["EnTDA (Add): 85.42 is not 85.38"],
}


def test_averages_of_the_papers_are_those_of_their_cells_but_for_misprints(paper_tables: ModuleType) -> None:
    found: dict[str, list[str]] = {}
    averages = 0
    for path in WHOLE:
        for table in paper_tables.tables_of(path):
            averages += sum(
                bool(row.figures[i]) for row in table.cells for i, c in enumerate(table.columns) if c == AVERAGE
            )
            for text in misprints(table):
                short = text.replace("the published average of ", "").replace("the mean of its cells, ", "").rstrip(".")
                found.setdefault(name_of(path).removesuffix(".toml"), []).append(short)
    assert found == MISPRINTS
    assert averages == 190


# The mean gains that table 1 of the backtranslation paper prints beside its cells, on MaSciP and on S800.
MEAN_GAINS = {
    ("GloVe", "LwTR"): (2.9, 6.9),
    ("GloVe", "SR"): (4.6, 10.1),
    ("GloVe", "MR"): (4.6, 9.9),
    ("GloVe", "BT"): (4.6, 15.1),
    ("SciBERT", "LwTR"): (0.9, 0.4),
    ("SciBERT", "SR"): (1.9, 0.2),
    ("SciBERT", "MR"): (1.9, 1.2),
    ("SciBERT", "SiS"): (1.7, 0.5),
    ("SciBERT", "BT"): (3.3, 2.4),
}


def test_mean_gains_of_backtranslation_are_those_of_its_cells_but_for_misprints(paper_tables: ModuleType) -> None:
    cells: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for table in paper_tables.tables_of(PAPERS / "backtranslation" / "table-1.toml"):
        for row in table.cells:
            for column, figures in zip(table.columns, row.figures, strict=True):
                cells[table.tagger, row.arm.removesuffix(" full"), column.removesuffix("-full")] += figures
    misprinted = []
    for (tagger, arm), gains in MEAN_GAINS.items():
        for corpus, printed in zip(("mascip", "s800"), gains, strict=True):
            mean = fmean(cells[tagger, arm, corpus]) - fmean(cells[tagger, "gold", corpus])
            if abs(mean - printed) > 0.0501:
                name = "MaSciP" if corpus == "mascip" else "S800"
                misprinted.append(f"| backtranslation | 1, {tagger}, {name}, {arm} | {printed} | {mean:.2f} |")
    page = (PAPERS / "claims.md").read_text(encoding="utf-8")
    assert misprinted == re.findall(r"(?m)^\| backtranslation \| .+$", page)
    assert len(misprinted) == 4


@pytest.mark.usefixtures("one_other_process")
def test_a_plan_of_a_paper_prints_its_table_with_our_figures_beside(
    models: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = copied(PAPERS / "aclm" / "table-4.toml", tmp_path)
    text = plan.read_text(encoding="utf-8").replace("xlm-roberta-large", models["encoder"])
    plan.write_text(text.replace("epochs = 100", "steps = 3"), encoding="utf-8")
    only = [f"--only={one}" for one in ("corpus=conll-en", "corpus=tdmsci", "size=200", "seed=2", "method=LwTR")]
    assert main(["experiment", str(plan), "--jobs", "1", "--offline", *only]) == 0
    assert "6 runs done" in capsys.readouterr().err
    assert main(["report", str(plan.with_suffix(""))]) == 0
    told = capsys.readouterr().out
    assert "**Table 4: news, biomedicine and science**" in told
    rows = {
        tuple(cells[1:3]): cells[3:-1] for line in told.split("\n") if (cells := line.split("|"))[1:] and "(" in line
    }
    [row] = [cells for (size, arm), cells in rows.items() if (size.strip(), arm.strip()) == ("200", "LwTR")]
    assert [cell.partition("(")[2].rstrip(") ") for cell in row] == ["82.33", "52.78", "72.15", "51.65", "64.73"]
    assert [cell.split()[0] == "-" for cell in row] == [False, True, True, False, True]


def test_pages_of_papers_hold_their_tables_and_the_records_of_their_twins(paper_tables: ModuleType) -> None:
    mentioned = set()
    for path in sorted(PAPERS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert paper_tables.with_results(text) == text, f"{path.name}: run python benchmarks/paper_tables.py"
        mentioned |= set(re.findall(r"<!-- (?:twin|paper): (\S+) -->", text))
    assert mentioned == {name_of(path).removesuffix(".toml") for path in (*TWINS, *WHOLE)}


def test_runs_that_are_compared_are_of_one_device() -> None:
    devices: dict[tuple[object, ...], set[object]] = defaultdict(set)
    for folder in (*(file.parent for file in PAPERS.glob("*/*.small/runs.jsonl")), PAPERS.parent / "atlas" / "runs"):
        for record in read_run_records([folder]):
            devices[folder, *record.labels[:3]].add(record.environment.get("device"))
    assert {place: some for place, some in devices.items() if len(some) > 1} == {}


VERDICTS = ("held", "not held", "undecided", "not tested yet", "not testable here")


def test_claims_have_a_verdict_and_a_record_that_exists() -> None:
    page = PAPERS / "claims.md"
    text = page.read_text(encoding="utf-8")
    _, short, *sections, _ = re.split(r"(?m)^## .+$", text)
    counts = re.findall(r"(?m)" + r" \| (\d+)" * len(VERDICTS) + r" \|$", short)
    found = [Counter[str]() for _ in sections]
    claims = []
    for section, kinds in zip(sections, found, strict=True):
        for row in re.findall(r"(?m)^\| (.+) \| (.+) \| (.+) \| (.+) \|$", section):
            if row[1] not in ("in the paper", "---"):
                kind = re.split(r"[:,;]| by | for | with | at | but ", row[2])[0]
                assert kind in VERDICTS, f"{row[0]}: {row[2]}"
                kinds[kind] += 1
                claims.append((row[0], kind, row[3]))
    assert len(claims) == 168
    assert [tuple(str(kinds[kind]) for kind in VERDICTS) for kinds in found] == counts
    for claim, kind, record in claims:
        assert not kind.endswith("held") or "](" in record or ".toml`" in record, claim
        for plan in re.findall(r"`(\S+\.toml)`", record):
            assert (PAPERS / plan).is_file(), plan
        for link, anchor in re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", record):
            target = (page.parent / link).resolve()
            assert target.is_file(), link
            headings = re.findall(r"(?m)^#+ (.+)$", target.read_text(encoding="utf-8"))
            assert not anchor or anchor in {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


def test_the_page_of_claims_has_the_misprints() -> None:
    text = (PAPERS / "claims.md").read_text(encoding="utf-8")
    for misprints_of in MISPRINTS.values():
        for one in misprints_of:
            printed, mean = (part.split(" / ")[0] for part in one.rpartition(": ")[2].split(" is not "))
            assert f"| {printed} | {mean} |" in text


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
        params |= {"encoder_layer": 1} if "encoder_layer" in params else {}  # the tiny encoder has two layers
        if "filters" in params:
            params |= {"filters": f"consistency:tagger=linear:encoder={models['encoder']};steps=1"}
        if "tagger" in known:
            params |= {"tagger": f"linear:encoder={models['encoder']};steps=1", "num_attention_layers": 2}
        return replace(old, params=params)

    def tagger(old: TaggerPlan) -> TaggerPlan:
        return old if "encoder" not in old.params else replace(old, params={**old.params, "encoder": models["encoder"]})

    return replace(plan, methods=tuple(map(method, plan.methods)), taggers=tuple(map(tagger, plan.taggers)))
