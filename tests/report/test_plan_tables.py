"""Tables of plans: our figures, the published ones, averages, and what a plan may ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import EXAMPLE
from entaug.commands.main import main
from entaug.errors import EntaugError, InputError
from entaug.metrics.span_f1 import MatchCounts, Scores
from entaug.report.comparison import compare_arms
from entaug.report.plan_tables import misprints, plan_tables
from entaug.study.plan import read_plan
from entaug.study.planned import PLAN_FILE, read_known_plan, write_known_plan
from entaug.study.records import RunRecord
from entaug.study.tables import TablePlan

TRAIN, DEV, TEST = (EXAMPLE / f"{name}.conll" for name in ("train", "dev", "test"))
COUNTS = {0.0: (0, 5, 5), 0.2: (1, 5, 5), 0.4: (2, 5, 5), 0.6: (3, 5, 5), 0.8: (4, 5, 5), 1.0: (5, 5, 5)}


def record(corpus: str, size: int, arm: str, f1: float, **values: Any) -> RunRecord:
    """A run: one type has this F1 in a sentence of three tokens, another has 1 in one of nine."""
    x, y = MatchCounts(*COUNTS[f1]), MatchCounts(5, 5, 5)
    scores = Scores({"X": x, "Y": y}, {}, {}, {}, (x, y), (3, 9))
    given = {"tagger": "linear", "ratio": 0.0 if arm == "gold" else 2.0, "seed": 1, **values}
    key = f"{corpus} {size} {arm} {f1} {sorted(values.items())}"
    return RunRecord(key, corpus=corpus, size=size, arm=arm, steps=30, new=2 * size, test=scores, **given)


def shown(table: TablePlan, *records: RunRecord) -> list[list[str]]:
    _, block, *_ = plan_tables([table], compare_arms(records) if records else {})
    assert not isinstance(block, str | list)
    return [list(getattr(block, "head", ())), *map(list, getattr(block, "rows", ()))]


def table(rows: list[Any], columns: str = "en de average", **values: Any) -> TablePlan:
    return TablePlan(title="Table 1", columns=tuple(columns.split()), rows=tuple(rows), **values)


# --------------------------------------------------------------------------------------------------------------- cells


def test_ours_stand_before_the_published_figures() -> None:
    rows = [[10, "gold", 50.0, 60.0, 55.0], [10, "mr", 70, "-", "-"], [20, "gold"]]
    records = [record("en", 10, "gold", 0.6), record("de", 10, "gold", 0.2), record("en", 10, "mr", 1.0)]
    assert shown(table(rows), *records) == [
        ["gold sentences", "arm", "en", "de", "average"],
        ["10", "gold", "80.00 (50.00)", "60.00 (60.00)", "70.00 (55.00)"],
        ["10", "mr", "100.00 (70.00)", "-", "-"],
        ["20", "gold", "-", "-", "-"],
    ]
    assert shown(table(rows))[1:3] == [["10", "gold", "50.00", "60.00", "55.00"], ["10", "mr", "70.00", "-", "-"]]


def test_figures_are_means_over_seeds_with_macro_f1_where_the_published_ones_have_it() -> None:
    rows = [["gold", [50.0, 40.0]]]
    records = [record("en", 10, "gold", f1, seed=seed) for seed, f1 in enumerate((0.2, 0.6), start=1)]
    assert shown(table(rows, "en"), *records) == [["arm", "en"], ["gold", "70.00 / 70.00 (50.00 / 40.00)"]]


def test_averages_are_over_the_columns_since_the_last_one() -> None:
    rows = [["gold", 1.0, 2.0, 1.5, 4.0, 4.0]]
    records = [record(name, 10, "gold", f1) for name, f1 in (("a", 0.2), ("b", 0.6), ("c", 1.0))]
    [_, [_, *cells]] = shown(table(rows, "a b average c average"), *records)
    assert [cell.split()[0] for cell in cells] == ["60.00", "80.00", "70.00", "100.00", "100.00"]


def test_of_what_dev_chose_the_choice_is_shown_or_its_ratio_or_all_cells_of_a_ratio() -> None:
    grid = {"search": "grid", "group": "lm"}
    records = [
        record("en", 10, "lm n=1", 0.2, ratio=5.0, **grid),
        record("en", 10, "lm n=3", 0.6, ratio=5.0, **grid, chosen=True),
        record("en", 10, "lm n=1", 1.0, ratio=10.0, **grid),
        record("en", 10, "mr", 0.4, ratio=1.0),
        record("en", 10, "mr", 0.8, ratio=3.0),
    ]
    rows = [["lm"], ["lm 5N"], ["lm 10N"], ["mr 1N"], ["mr 3N"]]
    assert [row[1] for row in shown(table(rows, "en"), *records)[1:]] == ["80.00", "70.00", "100.00", "70.00", "90.00"]
    assert shown(table([["lm", 3.0]], "en", show="ratio"), *records)[1] == ["lm", "5N (3N)"]


def test_parts_of_the_test_sentences_are_averaged_over_corpora() -> None:
    records = [record("en", 10, "gold", 0.2), record("de", 10, "gold", 0.6)]
    by_type = table([["gold", 1.0, 2.0]], "X Y", show="type", corpora=("en", "de"))
    assert shown(by_type, *records)[1] == ["gold", "40.00 (1.00)", "100.00 (2.00)"]
    by_length = table([["gold"]], "1-4 5-9 10+", show="length", corpora=("en",))
    assert shown(by_length, *records)[1] == ["gold", "20.00", "100.00", "-"]
    assert shown(by_type, records[0])[1] == ["gold", "- (1.00)", "- (2.00)"]


def test_a_part_that_a_corpus_lacks_is_no_zero_in_the_mean() -> None:
    def of_type(corpus: str, **types: MatchCounts) -> RunRecord:
        given: dict[str, Any] = {"tagger": "t", "arm": "gold", "ratio": 0.0, "seed": 1, "steps": 1, "new": 0}
        return RunRecord(corpus, corpus=corpus, size=1, test=Scores(types, {}, {}, {}), **given)

    four, wrong = MatchCounts(4, 5, 5), MatchCounts(0, 1, 0)
    by_type = table([["gold"]], "PER LOC ORG", show="type", corpora=("a", "b"))
    cells = shown(by_type, of_type("a", PER=four, LOC=wrong), of_type("b", LOC=four))[1]
    assert cells == ["gold", "80.00", "80.00", "-"]
    # Records of earlier versions have no lengths.
    by_length = table([["gold"]], "1-4 5+", show="length", corpora=("a",))
    assert shown(by_length, of_type("a", PER=four))[1] == ["gold", "-", "-"]


def test_taggers_of_several_plans_are_not_averaged() -> None:
    records = [record("en", 10, "gold", 0.2), record("en", 10, "gold", 0.6, tagger="w2ner")]
    first, one, second, two = plan_tables([table([["gold"]], "en")], compare_arms(records))
    assert (first, second) == ("**Table 1, linear**", "**Table 1, w2ner**")
    assert [getattr(block, "rows", None) for block in (one, two)] == [[["gold", "60.00"]], [["gold", "80.00"]]]


def test_only_runs_of_the_tagger_are_shown() -> None:
    records = [record("en", 10, "gold", 0.2), record("en", 10, "gold", 0.6, tagger="w2ner")]
    assert shown(table([["gold"]], "en", tagger="w2ner"), *records)[1] == ["gold", "80.00"]


def test_published_averages_that_their_cells_contradict_are_named() -> None:
    rows = [[1000, "gold", 40.0, 50.0, 44.4], [1000, "mr", 40.01, 40.02, 40.02], [2000, "gold", [1, 2], [3, 4], [2, 9]]]
    assert misprints(table(rows)) == [
        "1,000, gold: the published average of 44.40 is not the mean of its cells, 45.00.",
        "2,000, gold: the published average of 2.00 / 9.00 is not the mean of its cells, 2.00 / 3.00.",
    ]
    assert plan_tables([table(rows)], {})[-1] == misprints(table(rows))
    # With one decimal 50.15 is 50.2, and an average of one figure is that of the first ones.
    assert misprints(table([["gold", 50.1, 50.2, 50.2], ["mr", [50.0, 40.0], [60.0, 50.0], 55.0]])) == []
    assert len(misprints(table([["gold", 50.1, 50.2, 50.4], ["mr", 50.1, 50.2, 50.1]]))) == 1


# --------------------------------------------------------------------------------------------------------------- plans

PLAN = f"""
seeds = [1]
[[methods]]
name = "mr"
ratios = [1, 3]
[[methods]]
name = "lwtr"
grid = {{ p = [0.1, 0.9] }}
[[corpora]]
name = "toy"
train = "{TRAIN}"
dev = "{DEV}"
test = "{TEST}"
sizes = [8, 16]
[[corpora]]
name = "far"
train = "{TRAIN}"
dev = "{DEV}"
test = {{ x = "{TEST}" }}
sizes = [8, 16]
[[tables]]
title = "Table 1"
columns = ["toy", "far on x", "average"]
rows = [
    [8, "gold", 1.0, 2.0, 1.5],
    [8, "mr 3N", "-", 2, "-"],
    [16, "lwtr", [1, 2], [3, 4], [2, 3]],
]
"""


def test_tables_of_a_plan_reach_its_report(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN, encoding="utf-8")
    tables = read_plan(path).tables
    assert [row.arm for one in tables for row in one.cells] == ["gold", "mr 3N", "lwtr"]
    write_known_plan(tmp_path, [], tables, at_least=False)
    known = read_known_plan([tmp_path]).tables
    assert [list(one.cells) for one in known] == [list(one.cells) for one in tables]
    assert read_known_plan([tmp_path / "runs.jsonl"]).tables == known
    write_known_plan(tmp_path, [], (), at_least=False)
    assert read_known_plan([tmp_path]).tables == ()
    for faulty in ('{"arms": [], "tables": [{"title": 3}]}', '{"arms": [{"corpus": "x"}]}', "[]", "{", '{"arms": 3}'):
        (tmp_path / PLAN_FILE).write_text(faulty)
        with pytest.raises(InputError, match=r"plan.json: is not the plan as an experiment writes it .*run the"):
            read_known_plan([tmp_path])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"far on x"', '"far"', "unknown corpus with results: 'far'; did you mean 'far on x'"),
        ('"mr 3N"', '"mr"', "unknown arm of a row: 'mr'"),
        ('"mr 3N"', '"mr 2N"', "unknown arm of a row: 'mr 2N'"),
        ('"lwtr", [1', '"lwtr p=0.1", [1', "unknown arm of a row: 'lwtr p=0.1'"),
        ('[8, "gold", 1.0, 2.0, 1.5]', '[8, "gold", 1.0, 2.0]', "row 1 has 2 figures for 3 columns"),
        ('[8, "gold", 1.0, 2.0, 1.5]', "[8]", "row 1 is not a list with an arm"),
        ('[8, "gold", 1.0, 2.0, 1.5]', "[]", "row 1 is not a list with an arm"),
        ('[8, "gold", 1.0, 2.0, 1.5]', '["gold", 1.0, 2.0, 1.5]', "the row of gold has no size"),
        ('[8, "gold", 1.0, 2.0, 1.5]', '[8, "gold", "1.0", 2.0, 1.5]', "row 1 has '1.0' in place of a figure"),
        ('[8, "gold", 1.0, 2.0, 1.5]', '[8, 8, "gold", 1.0, 2.0]', "row 1 has 8 in place of an arm"),
        ('[8, "gold", 1.0, 2.0, 1.5]', '[8, "gold", nan, 2.0, 1.5]', "row 1 has nan in place of a figure"),
        ('[8, "gold", 1.0, 2.0, 1.5]', f'[8, "gold", {2**63}, 2.0, 1.5]', "in place of a figure"),
        ('[8, "gold", 1.0, 2.0, 1.5]', f'[{2**64}, "gold"]', "in place of a size"),
        ('title = "Table 1"', 'title = "Table 1"\ntagger = "w2ner"', "unknown tagger 'w2ner'"),
        ('title = "Table 1"', 'title = "Table 1"\nshow = "type"', "corpora is needed"),
        ('title = "Table 1"', 'title = "Table 1"\ncorpora = ["toy"]', "corpora are the columns of this table"),
        ('title = "Table 1"', 'title = "Table 1"\nshow = "length"\ncorpora = ["toy"]', "such as 1-4, 5-9 and 10\\+"),
        ('title = "Table 1"', 'titel = "Table 1"', "unknown parameter of a table: 'titel'"),
        ('title = "Table 1"', 'title = "Table 1"\nshow = "F2"', "show must be"),
    ],
)
def test_tables_that_a_plan_cannot_fill_are_refused_with_their_line(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    assert old in PLAN
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(EntaugError, match=message) as told:
        read_plan(path)
    assert told.value.line is not None
    assert told.value.line >= PLAN.split("\n").index("[[tables]]") + 1


def test_a_table_needs_its_tagger_where_a_plan_has_several(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f'{PLAN}[[taggers]]\nname = "linear"\n[[taggers]]\nname = "bilstm-crf"\n', encoding="utf-8")
    with pytest.raises(EntaugError, match="the plan has several taggers"):
        read_plan(path)


def test_rows_of_tables_are_no_headers_of_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f'{PLAN}show = "F2"\n', encoding="utf-8")
    assert main(["experiment", str(path), "--check"]) == 2
    line = len(path.read_text(encoding="utf-8").split("\n")) - 1
    assert f"plan.toml:{line}: show must be" in capsys.readouterr().err
