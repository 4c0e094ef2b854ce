"""Reports on made-up records, with values worked out by hand."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from entaug.commands.main import main
from entaug.errors import InputError
from entaug.metrics.significance import Difference
from entaug.metrics.span_f1 import ERROR_KINDS
from entaug.report.comparison import Arm, ArmResult, Setting
from entaug.report.markdown import markdown_report, recommend
from entaug.study.records import read_run_records

SENTENCES = 8


def record(arm: str, ratio: float, seed: int, right: int | list[int], **more: Any) -> dict[str, Any]:
    """A run that finds so many of the ten mentions of each sentence (so F1 is a tenth of it), or of one a sentence."""
    correct = [right] * SENTENCES if isinstance(right, int) else right
    of_each = [10 if isinstance(right, int) else 1] * len(correct)
    counts = {"correct": correct, "predicted": of_each, "gold": of_each}
    whole = {name: sum(values) for name, values in counts.items()}
    parts = ("by_type", "by_mention_length", "by_sentence_length", "by_kind")
    scores = {part: {"X": whole} for part in parts}
    made: dict[str, Any] = {
        "corpus": "toy",
        "size": 100,
        "tagger": "linear",
        "arm": arm,
        "amount": ratio,
        "seed": seed,
        "steps": 240,
        "sentences": {"gold": 100, "new": round(99 * ratio)},
        "test_sentences": len(correct),
        "dev": None,
        "test": scores,
        "test_counts": counts,
        "leaks": {"dev": 0, "test": 0},
        "search": "list",
        "environment": {"python": "3.12"},
        **more,
    }
    name = repr([made[k] for k in ("corpus", "size", "tagger", "arm", "amount", "seed")])
    return {"key": hashlib.sha256(name.encode()).hexdigest()[:16], **made}


def written(folder: Path, records: Iterable[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "runs.jsonl").write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in records))
    return folder


def told(tmp_path: Path, records: Iterable[dict[str, Any]], **options: Any) -> str:
    return markdown_report(read_run_records([written(tmp_path / "runs", records)]), **options)


def rows(text: str, arm: str) -> list[list[str]]:
    """The cells of the table rows that begin so."""
    return [re.split(r" \| ", line[2:-2]) for line in text.splitlines() if line.startswith(f"| {arm} |")]


def seeds(arm: str, ratio: float, right: Iterable[int], **more: Any) -> list[dict[str, Any]]:
    return [record(arm, ratio, seed, r, **more) for seed, r in enumerate(right, start=1)]


CELL = [
    *seeds("gold", 0, [4, 5, 6], steps=80),
    *seeds("gold-steps", 2, [6, 6, 6]),
    *seeds("duplicate", 2, [6, 6, 6]),
    *seeds("lwtr", 2, [7, 7, 7]),
    *seeds("mr", 2, [4, 4, 4]),
]


def test_a_cell_by_hand(tmp_path: Path) -> None:
    text = told(tmp_path, CELL)
    # All sentences are alike and all seeds gain alike, so intervals have no width.
    gold_f1, steps_f1, lwtr_f1 = "50.0 ± 10.0", "60.0 ± 0.0", "70.0 ± 0.0"  # of one type: micro and macro are the same
    assert rows(text, "gold") == [["gold", "-", "0", gold_f1, gold_f1, *"------"]]
    assert rows(text, "gold-steps") == [["gold-steps", "2N", "198", steps_f1, steps_f1, "+10.0", *"-----"]]
    equal = ["+10.0", "+0.0", "+0.0 %", "+0.0 to +0.0", "1.000", "no difference seen"]
    assert rows(text, "duplicate")[0][5:] == equal
    assert rows(text, "lwtr")[0] == [
        *("lwtr", "2N", "198 of 200", lwtr_f1, lwtr_f1),
        *("+20.0", "+10.0", "+16.7 %", "+10.0 to +10.0", "< 0.001", "helps"),
    ]
    assert rows(text, "mr")[0][5:] == ["-10.0", "-20.0", "-33.3 %", "-20.0 to -20.0", "< 0.001", "hurts"]
    assert "| corpus, size, tagger | duplicate | lwtr | mr |" in text
    assert "| toy, 100, linear | +0.0 = | +10.0 ↑ | -20.0 ↓ |" in text
    assert "Of 3 comparisons over several seeds 2 showed a difference; if no method had an effect, about 0.2" in text
    assert "- **Use lwtr 2N**: toy, 100, linear (+10.0 F1, +10.0 to +10.0).\n" in text
    assert "Each arm that has runs has all seeds." in text
    assert "No training sentence occurs in dev or test." in text
    assert "15 runs." in text
    assert "by type" not in text
    assert ["lwtr 2N", "70.0"] in rows(told(tmp_path, CELL, by_type=True), "lwtr 2N")


def test_errors_and_unseen_mentions(tmp_path: Path) -> None:
    def with_errors(seed: int, missing: int) -> dict[str, Any]:
        one = record("mr", 1, seed, 7)
        one["test"]["by_novelty"] = {"unseen": one["test"]["by_type"]["X"]}
        one["test"]["errors"] = {**dict.fromkeys(ERROR_KINDS, 0), "missing": missing}
        return one

    records = [record("gold", 0, 1, 6), with_errors(1, 20), with_errors(2, 25)]
    found = rows(told(tmp_path, records, errors=True), "mr 1N")
    assert ["mr 1N", "70.0"] in found
    assert ["mr 1N", "0.0", "0.0", "0.0", "22.5", "0.0"] in found
    # Records of earlier versions have none.
    assert ["gold", *"-----"] in rows(told(tmp_path, records, errors=True), "gold")


def test_a_run_that_arms_share_stands_under_each(tmp_path: Path) -> None:
    # Gold for as many steps as gold takes anyhow is one run, with one key and two records.
    records = [*seeds("gold", 0, [5, 5]), *seeds("gold-steps", 0.5, [5, 5]), *seeds("mr", 0.5, [7, 7])]
    for one, other in zip(records[:2], records[2:4], strict=True):
        other["key"] = one["key"]
    text = told(tmp_path, [*records, *seeds("gold-steps", 1, [5, 5], steps=480)])
    assert (len(rows(text, "gold")), len(rows(text, "gold-steps"))) == (1, 2)
    gain = ["+20.0", "+20.0", "+40.0 %", "+20.0 to +20.0 (2 seeds only)", "< 0.001", "helps"]
    assert rows(text, "mr")[0][5:] == gain
    assert "Each arm that has runs has all seeds." in text


def test_amounts_that_dev_did_not_choose_miss_nothing(tmp_path: Path) -> None:
    chosen = seeds("mr", 1, [7, 7], search="patience", chosen=True)
    records = [*seeds("gold", 0, [5, 5], steps=80), *seeds("gold-steps", 1, [5, 5]), *chosen]
    text = told(tmp_path, [*records, *seeds("mr", 2, [6, 6], search="patience")])
    assert "Each arm that has runs has all seeds." in text
    assert rows(text, "mr")[1][6:] == [*"-----"]


def test_a_method_that_made_nothing_is_named(tmp_path: Path) -> None:
    none = {"gold": 100, "new": 0}
    text = told(tmp_path, [*seeds("gold-steps", 1, [5, 5]), *seeds("sis", 1, [5, 5], sentences=none)])
    assert "toy, 100, linear: sis 1N: made no new sentence" in text


def test_seeds_differ_by_hand(tmp_path: Path) -> None:
    # Gains of 0 and 20 points: their mean has a standard error of 10, and two seeds say little: 12.7 of these.
    text = told(tmp_path, [*seeds("gold-steps", 1, [5, 5]), *seeds("lwtr", 1, [5, 7])])
    interval = "-100.0 to +100.0 (2 seeds only)"
    f1 = "60.0 ± 14.1"
    assert rows(text, "lwtr")[0][3:] == [f1, f1, "-", "+10.0", "+20.0 %", interval, "0.500", "no difference seen"]
    assert "toy, 100, linear: no gold run" in text
    assert "fewer than five seeds" in text


def test_sums_over_cells_in_words(tmp_path: Path) -> None:
    records = list(CELL)
    for corpus, right in (("b", 8), ("c", 6), ("d", 5)):
        records += seeds("gold-steps", 2, [6, 6, 6], corpus=corpus) + seeds("lwtr", 2, [right] * 3, corpus=corpus)
    text = told(tmp_path, records)
    assert "- `lwtr` helped in 2 of 4 settings, hurt in 1.\n- `mr` helped in 0 of 1 setting, hurt in 1.\n" in text
    assert (
        "- **Use lwtr 2N**: b, 100, linear (+20.0 F1, +20.0 to +20.0); toy, 100, linear (+10.0 F1, +10.0 to +10.0).\n"
        "- **Keep gold alone**: c, 100, linear; d, 100, linear.\n"
    ) in text
    # By hand: 20, 0, -10 and 10 are 5 in the mean, with a standard error of 6.45, which is taken 3.18 times.
    assert "| mean gain (settings) | +0.0 (1) | +5.0 (4) | -20.0 (1) |" in text
    assert "| 95 % interval of this mean | - | -15.5 to +25.5 | - |" in text
    assert "| b, 100, linear | - | +20.0 ↑ | - |" in text


def test_several_amounts_and_the_one_that_dev_chose(tmp_path: Path) -> None:
    records = [*seeds("gold-steps", 1, [5, 5]), *seeds("gold-steps", 3, [5, 5])]
    records += [*seeds("mr", 1, [6, 6]), *seeds("mr", 3, [4, 4])]
    patient = {"search": "patience"}
    lwtr = [*seeds("lwtr", 1, [9, 9], **patient), *seeds("lwtr", 3, [7, 7], **patient)]
    waiting = told(tmp_path, records + lwtr)
    assert "| corpus, size, tagger | mr 1N | mr 3N |" in waiting
    assert "- toy, 100, linear: lwtr: nothing has been chosen on dev yet" in waiting
    # The same records once more, now chosen: the later ones hold. The better test score of 1N does not count.
    chosen = [*seeds("lwtr", 3, [7, 7], **patient, chosen=True)]
    text = told(tmp_path, records + lwtr + chosen)
    assert "| toy, 100, linear | +20.0 ↑ | +10.0 ↑ | -10.0 ↓ |" in text
    assert [row[1] for row in rows(text, "lwtr")] == ["1N", "3N (chosen on dev)"]
    assert "Of 4 comparisons" in text


def compared(*gains: tuple[str, float, int, float]) -> list[ArmResult]:
    """Arms with a gain in points, a number of seeds and a half-width of the interval."""
    return [
        ArmResult(Arm(name, 1.0), (), None, Difference(gain / 100, (gain - w) / 100, (gain + w) / 100, n, 1000), (), ())
        for name, gain, n, w in gains
    ]


def test_advice_by_hand() -> None:
    ncbi, wnut, toy, small = (Setting(name, 100, "linear") for name in ("ncbi", "wnut", "toy", "small"))
    helps, nothing, once = ("mr", 2.1, 3, 1.3), ("lwtr", 0.5, 3, 1.0), ("mr", 9.0, 1, 1.0)
    use = "**Use mr 1N**: ncbi, 100, linear (+2.1 F1, +0.8 to +3.4)."
    keep, wait = "**Keep gold alone**: ", "**Run three seeds before you choose**: "
    assert recommend({ncbi: compared(helps, nothing)}) == [use]
    assert recommend({ncbi: compared(helps, ("sis", 1.5, 3, 1.0))}) == [use]
    assert recommend({ncbi: compared(helps), wnut: compared(nothing)}) == [use, f"{keep}wnut, 100, linear."]
    assert recommend({wnut: compared(nothing), toy: compared(("mr", -3.0, 3, 1.0))}) == [
        f"{keep}wnut, 100, linear; toy, 100, linear."
    ]
    # A baseline is no method, and one seed no ground for advice.
    assert recommend({toy: compared(("duplicate", 5.0, 3, 1.0), nothing)}) == [f"{keep}toy, 100, linear."]
    assert recommend({toy: compared(("duplicate", 5.0, 3, 1.0))})[0].startswith("**No method was compared yet**")
    # Neither are two without a verdict, unless all of them hurt or another method had three.
    twice = ("sis", 5.0, 2, 6.0)
    assert recommend({toy: compared(twice), small: compared(once)}) == [f"{wait}toy, 100, linear; small, 100, linear."]
    assert recommend({toy: compared(twice, nothing)}) == [f"{keep}toy, 100, linear."]
    assert recommend({toy: compared(("sis", -5.0, 2, 1.0))}) == [f"{keep}toy, 100, linear."]
    assert recommend({ncbi: compared(helps), toy: compared(once)}) == [use, f"{wait}toy, 100, linear."]
    # One gain or more in n comparisons has a probability of 1 - 0.975 ** n: 22 % in ten, 4.9 % in two.
    chance = (
        "Repeat it with other seeds: chance alone shows 1 gain or more in 10 comparisons with a probability of 22 %."
    )
    nine = [(f"lwtr{i}", 0.5, 3, 1.0) for i in range(9)]
    assert recommend({ncbi: compared(helps, *nine)}) == [use, chance]
    assert recommend({ncbi: compared(helps, nine[0])}) == [use]
    assert "chance" in recommend({ncbi: compared(helps, *nine[:2])})[-1]
    assert len(recommend({ncbi: compared(helps), toy: compared(helps), small: compared(*nine)})) == 2


def test_taggers_that_found_nothing_are_no_reason_to_keep_gold_alone(tmp_path: Path) -> None:
    arms = (("gold", 0), ("gold-steps", 1), ("mr", 1))
    runs = [one for arm, ratio in arms for one in seeds(arm, ratio, [0, 0, 0])]
    text = told(tmp_path, runs)
    advice = "No tagger found a mention: train for more steps, or with higher learning rates"
    assert f"- **{advice}**: toy, 100, linear." in text
    assert "Keep gold alone" not in text
    assert advice not in told(tmp_path, [*runs[:-1], *seeds("mr", 1, [0, 0, 1])[-1:]])


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    records = [r for r in CELL if (r["arm"], r["seed"]) != ("lwtr", 2)]
    records += seeds("sis", 1, [7, 7, 7])
    records += [r | {"key": f"mr5{r['seed']}"} for r in seeds("mr", 5, [7, 7, 7])]
    records += seeds("gold-steps", 5, [6, 6, 6], steps=999)
    text = told(tmp_path, records)
    assert rows(text, "lwtr")[0][-1] == "helps; incomplete: 2 of 3 seeds, without 2"
    assert "- toy, 100, linear: lwtr 2N: incomplete: 2 of 3 seeds, without 2" in text
    assert "- toy, 100, linear: sis 1N: no gold-steps run to compare with" in text
    assert "- toy, 100, linear: mr 5N: gold-steps took another number of steps" in text
    assert rows(text, "sis")[0][6:10] == ["-", "-", "-", "-"]


def test_runs_of_several_devices_are_told(tmp_path: Path) -> None:
    on = [{"environment": {"device": device}} for device in ("cpu (x86_64)", "cuda (H100)")]
    same = [*seeds("gold-steps", 2, [6, 6], **on[0]), *seeds("lwtr", 2, [7, 7], **on[0])]
    others = seeds("mr", 2, [4, 4], **on[1])
    text = told(tmp_path, [*same, *others])
    assert rows(text, "lwtr")[0][-1] == "helps"
    note = "compared between devices, cpu (x86_64) and cuda (H100): part of a difference may be theirs"
    assert rows(text, "mr")[0][-1] == f"hurts; {note}"


def test_leaks_one_seed_and_replaced_runs(tmp_path: Path) -> None:
    records = [record("gold-steps", 1, 1, 5), record("lwtr", 1, 1, 3), record("lwtr", 1, 1, 7) | {"key": "other"}]
    records[-1]["leaks"] = {"dev": 0, "test": 1200}
    text = told(tmp_path, records)
    interval = "+20.0 to +20.0 (1 seed, so without the variance of training)"
    assert rows(text, "lwtr")[0][3:8] == ["70.0", "70.0", "-", "+20.0", "+40.0 %"]
    assert (rows(text, "lwtr")[0][8], rows(text, "lwtr")[0][10]) == (interval, "one seed: run three")
    assert "| toy, 100, linear | +20.0 (one seed) |" in text
    assert "- `lwtr` helped in 0 of 0 settings, hurt in 0." in text
    assert "- **Run three seeds before you choose**: toy, 100, linear.\n" in text
    assert "With one seed there is no verdict" in text
    assert "by chance" not in text
    assert not {"↑", "↓"} & set(text.replace("↑ helps, ↓ hurts", ""))
    assert "- toy, 100, linear: lwtr 1N: 1,200 in test\n" in text
    assert "2 runs; 1 replaced by later ones." in text
    assert '- `{"python":"3.12"}`' in text


def test_new_sentences_that_are_in_the_test_set_are_told(tmp_path: Path) -> None:
    text = told(tmp_path, [*seeds("gold-steps", 1, [5, 5]), *seeds("mr", 1, [7, 7], new_in_test=1060)])
    assert "- toy, 100, linear: mr 1N: 1,060 of the new ones in test\n" in text
    every = [{**run, "leaks": {"dev": 0, "test": 2}} for run in (*seeds("gold", 0, [5, 5]), *seeds("mr", 1, [7, 7]))]
    assert "- toy, 100, linear: all arms: 2 in test\n" in told(tmp_path, every)


def test_teachers_that_share_taggers_are_told(tmp_path: Path) -> None:
    def with_teachers(*of_seeds: list[int]) -> str:
        arms = [{"amount": 1, "teacher": {"seeds": own}} for own in of_seeds]
        runs = [record("soft", 1, i, 7, config={"arm": {"combine": [arm, arm]}}) for i, arm in enumerate(arms, start=1)]
        return told(tmp_path, [*seeds("gold-steps", 1, [5] * len(runs)), *runs])

    note = "Teachers of the seeds share taggers (`soft`): the interval holds for these teachers."
    assert note in with_teachers([1, 2, 3], [2, 3, 4])
    assert "share taggers" not in with_teachers([1], [2])
    assert "share taggers" not in with_teachers([1, 2])


def test_settings_of_one_corpus_are_no_sample_of_corpora(tmp_path: Path) -> None:
    def shown(*cells: tuple[str, int, int]) -> str:
        records = [
            r
            for corpus, size, right in cells
            for more in [{"corpus": corpus, "size": size}]
            for r in [*seeds("gold-steps", 1, [5, 5], **more), *seeds("mr", 1, [right] * 2, **more)]
        ]
        [[interval]] = [row[1:] for row in rows(told(tmp_path, records), "95 % interval of this mean")]
        return interval

    assert shown(("a", 100, 6), ("a", 200, 7)) == "-"
    # Two settings of a corpus with equal gains say as much as one.
    assert shown(("a", 100, 6), ("b", 100, 7)) == shown(*((c, n, r) for c, r in (("a", 6), ("b", 7)) for n in (1, 2)))


def test_torn_lines_are_left_out_and_faulty_ones_named(tmp_path: Path) -> None:
    folder = written(tmp_path / "runs", CELL)
    whole = (folder / "runs.jsonl").read_bytes()
    (folder / "runs.jsonl").write_bytes(whole[:-40])
    assert len(read_run_records([folder])) == len(CELL) - 1
    (folder / "runs.jsonl").write_bytes(whole[:-1])
    assert len(read_run_records([folder / "runs.jsonl"])) == len(CELL)
    (folder / "runs.jsonl").write_bytes(whole[:-40] + b"\n")
    with pytest.raises(InputError, match=rf"runs\.jsonl:{len(CELL)}: no JSON"):
        read_run_records([folder])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": "1"}, "seed must be an integer"),
        ({"seed": True}, "seed must be an integer"),
        ({"key": None}, "key must be a string"),
        ({"sentences": {"gold": 1}}, "a record must be a JSON object with sentences"),
        ({"leaks": {"dev": "2"}}, "leaks must be integers by name"),
        ({"amount": 1e308}, "ratio must be"),
        ({"amount": -1}, "ratio must be"),
        ({"test": {}}, "scores need by_type"),
        ({"test_counts": {"correct": [1], "predicted": [1], "gold": [1]}}, "the counts .* do not add up"),
    ],
)
def test_faulty_records_are_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    folder = written(tmp_path / "runs", [CELL[0], CELL[1] | change])
    with pytest.raises(InputError, match=rf"runs\.jsonl:2: {said}"):
        read_run_records([folder])


def test_no_records_missing_fields_and_other_test_sets(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: cannot be read"):
        read_run_records([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="holds no record"):
        read_run_records([written(tmp_path / "runs", [])])
    with pytest.raises(InputError, match="a record needs the parameter steps"):
        told(tmp_path, [{k: v for k, v in CELL[0].items() if k != "steps"}])
    with pytest.raises(InputError, match=r"runs\.jsonl:2: has another test set than .*runs\.jsonl:1 "):
        told(tmp_path, [CELL[0], record("lwtr", 2, 1, [1, 0])])
    with pytest.raises(InputError, match="must be a JSON object"):
        told(tmp_path, [[1]])  # type: ignore[list-item]


def test_runs_of_different_experiments_are_not_paired(tmp_path: Path) -> None:
    config = {"train": "t1", "test": "x", "tagger": {"params": {"encoder": "minilm"}}, "threads": 1, "steps": 240}
    one = written(tmp_path / "one", seeds("gold-steps", 1, [5, 5], config=config))

    def with_other(arm: str, change: dict[str, Any], **more: Any) -> str:
        path = written(tmp_path / "two", [record(arm, 1, 1, 7, key="k", config=config | change, **more)])
        return markdown_report(read_run_records([one, path]))

    at = r"two.runs\.jsonl:1: {} .*one.runs\.jsonl:1 of the same corpus, size and tagger label"
    for change, title in (
        ({"train": "t2"}, "subset"),
        ({"test": "y"}, "test set"),
        ({"tagger": {"params": {"encoder": "mpnet"}}}, "tagger"),
        ({"threads": 2}, "number of threads"),
    ):
        with pytest.raises(InputError, match=at.format(f"is of another {title} than")):
            with_other("mr", change)
    # A draw has a subset of its own, and records of earlier versions have no configuration.
    assert "| mr |" in with_other("mr", {"train": "t2"}, subset_seed=3)
    assert rows(with_other("mr", dict.fromkeys(config)), "mr")[0][6] == "+20.0"
    # A run replaces one that is the same.
    assert "1 replaced by later ones" in with_other("gold-steps", {"entaug": "2"})
    with pytest.raises(InputError, match=at.format("differs in steps from")):
        with_other("gold-steps", {"steps": 300})
    counts = [record("gold", 0, 1, 5)["test_counts"] | {"tokens": [n] * SENTENCES} for n in (3, 4)]
    lengths = [record(arm, 1, 1, 5, test_counts=c) for arm, c in zip(("gold-steps", "mr"), counts, strict=True)]
    with pytest.raises(InputError, match="has another test set"):
        told(tmp_path, lengths)


def test_a_corpus_with_one_draw_beside_one_with_two_misses_nothing(tmp_path: Path) -> None:
    arms = (("gold", 0), ("gold-steps", 1), ("mr", 1))
    draws: list[tuple[str, int | None]] = [("a", 1), ("a", 2), ("b", None)]
    records = [
        record(arm, ratio, seed, 5, corpus=corpus, subset_seed=draw, key=f"{arm}{corpus}{draw}{seed}")
        for arm, ratio in arms
        for corpus, draw in draws
        for seed in (1, 2)
    ]
    assert "Each arm that has runs has all seeds." in told(tmp_path, records)
    assert "b, 100, linear: mr 1N: incomplete: 1 of 2 seeds, without 2" in told(tmp_path, records[:-1])


def test_gold_alone_is_gold_at_equal_steps_where_steps_are_fixed(tmp_path: Path) -> None:
    text = told(tmp_path, [*seeds("gold", 0, [5, 5, 5]), *seeds("mr", 1, [7, 7, 7])])
    assert "Each arm that has runs has all seeds." in text
    assert rows(text, "mr")[0][-1] == "helps"


def test_report_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = written(tmp_path / "one", CELL[:6]), written(tmp_path / "two", CELL[6:])
    assert main(["report", str(one), str(two / "runs.jsonl")]) == 0
    text = capsys.readouterr().out
    assert text == markdown_report(read_run_records([one, two]))
    assert "- **Use lwtr 2N**: toy, 100, linear" in text
    out = tmp_path / "report.md"
    assert main(["report", str(one), str(two), "-o", str(out), "--by-type"]) == 0
    assert out.read_text() == markdown_report(read_run_records([one, two]), by_type=True)
    assert main(["report", str(one), "-o", str(out)]) == 3
    assert "exists; pass --force" in capsys.readouterr().err
    assert main(["report", str(one), "-o", str(out), "--force"]) == 0
    assert main(["report", str(tmp_path)]) == 2
    assert "holds no record of a run; name the output folder" in capsys.readouterr().err
    (tmp_path / "plan.toml").write_text("seeds = [1]")
    for output in ("-", str(tmp_path / "report.html")):
        assert main(["report", str(tmp_path / "plan.toml"), "-o", output]) == 2
        assert "plan.toml: is a plan, and has no results; name its output folder" in capsys.readouterr().err


def test_a_table_of_all_corpora_has_their_average(tmp_path: Path) -> None:
    other = [{**one, "corpus": "law", "key": f"law{i}"} for i, one in enumerate(CELL) if one["arm"] != "mr"]
    text = told(tmp_path, [*CELL, *other])
    assert "| F1, linear | law, 100 | toy, 100 | average |" in text
    assert ["lwtr 2N", "70.0", "70.0", "70.0"] in rows(text, "lwtr 2N")
    # Not of some corpora only.
    assert ["mr 2N", "-", "40.0", "-"] in rows(text, "mr 2N")
    assert "average" not in told(tmp_path, CELL)
    larger = [{**one, "size": 300, "key": f"large{i}"} for i, one in enumerate(CELL)]
    assert "average" not in told(tmp_path, [*CELL, *larger])


def test_f1_by_length_of_the_sentence(tmp_path: Path) -> None:
    [one] = seeds("gold", 0, [5])
    counts = one["test_counts"]
    one["test_counts"] = {**counts, "tokens": [3] * 5 + [30] * (len(counts["gold"]) - 5)}
    text = told(tmp_path, [one], by_length=[4, 10])
    assert "| F1 by tokens of the sentence | 1-4 | 5-10 | 11+ |" in text
    short, long = (
        200 * sum(counts["correct"][part]) / (sum(counts["predicted"][part]) + sum(counts["gold"][part]))
        for part in (slice(5), slice(5, None))
    )
    assert rows(text, "gold")[-1] == ["gold", f"{short:.1f}", "-", f"{long:.1f}"]
    # Nor has a type F1 that is only predicted.
    one["test"]["by_type"]["Y"] = {"correct": 0, "predicted": 0, "gold": 0}
    assert rows(told(tmp_path, [one], by_type=True), "gold")[-1] == ["gold", "50.0", "-"]
    one["test_counts"]["tokens"].pop()
    with pytest.raises(InputError, match="the counts of the sentences do not add up"):
        told(tmp_path, [one])


def test_f1_on_dev_by_ratio(tmp_path: Path) -> None:
    def on_dev(f1: int, one: dict[str, Any]) -> dict[str, Any]:
        return {**one, "dev": seeds("gold", 0, [f1])[0]["test"]}

    records = [
        *CELL[:6],
        *(on_dev(f1, one) for f1, one in zip((3, 5, 4), seeds("mr", 2, [7, 7, 7]), strict=True)),
        *(on_dev(8, one) for one in seeds("mr", 5, [7, 7, 7], steps=480)),
        *(on_dev(9, one) for one in seeds("sr", 5, [7, 7, 7], steps=480)),
    ]
    text = told(tmp_path, records)
    assert "| F1 on dev | 2N | 5N |" in text
    assert ["mr", "40.0", "80.0"] in rows(text, "mr")
    assert not any(len(row) == 3 for row in rows(text, "sr"))


def test_plans_with_one_and_with_several_seeds_of_the_subset_are_compared(tmp_path: Path) -> None:
    records = [
        record(arm, ratio, 1, right, subset_seed=subset, steps=80, key=f"{arm}{subset}")
        for arm, ratio, right in (("gold", 0, 4), ("gold-steps", 1, 5), ("mr", 1, 6))
        for subset in (None, 0, 1)
    ]
    [[_, *cells]] = rows(told(tmp_path, records), "mr")
    assert "60.0" in " ".join(cells)


def test_a_combination_is_asked_for_what_its_methods_are_asked_for(tmp_path: Path) -> None:
    def shortage(*amounts: float) -> bool:
        config = {"arm": {"combine": [{"amount": amount} for amount in amounts]}}
        made = {"gold": 100, "new": 50}
        return "Fewer sentences than asked" in told(tmp_path, [record("both", 1, 1, 5, config=config, sentences=made)])

    assert not shortage(0.25, 0.25)
    assert shortage(0.5, 0.5)
