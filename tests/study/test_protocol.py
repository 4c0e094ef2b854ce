"""Protocols of papers in plans: several test sets, several draws, folds, mixed corpora, grids."""

from __future__ import annotations

import json
import re
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.errors import EntaugError
from entaug.files.locks import lock
from entaug.formats import read
from entaug.metrics.span_f1 import MatchCounts, Scores
from entaug.report.comparison import Setting, compare_arms
from entaug.report.markdown import corpus_tables, markdown_report
from entaug.study.data import prepare_splits
from entaug.study.engine import _Execution, _execution_order, sort_records
from entaug.study.plan import read_plan
from entaug.study.planned import RunCount, read_known_plan
from entaug.study.records import RecordStore, RunRecord, read_run_records, several_values
from entaug.study.runs import RunSpec, execute_run, make_sentences, sentences_file
from entaug.study.schedule import Schedule
from helpers.small_plans import smallest_plan

pytest.importorskip("torch")

TRAIN, DEV, TEST = (EXAMPLE / f"{name}.conll" for name in ("train", "dev", "test"))


@pytest.fixture
def schedule_of(bert: Path, tmp_path: Path) -> Any:
    def build(corpora: str, top: str = "seeds = [1]", training: str = "steps = 2", rest: str = "") -> Schedule:
        path = tmp_path / "plan.toml"
        tagger = f'[[taggers]]\nname = "linear"\nencoder = "{bert}"\nprecision = "fp32"\n'
        path.write_text(f"{top}\n[training]\nbatch_size = 8\n{training}\n{tagger}{corpora}\n{rest}", encoding="utf-8")
        plan = read_plan(path)
        return Schedule(plan, prepare_splits(plan))

    return build


def corpus(name: str = "toy", **keys: str) -> str:
    values = {"train": f'"{TRAIN}"', "test": f'"{TEST}"', "sizes": "[16]", "missing_types": '"allow"', **keys}
    lines = [f"{key} = {value}" for key, value in values.items() if value]
    return "\n".join(["[[corpora]]", f'name = "{name}"', *lines, ""])


BEST = 'training = { checkpoint = "best" }\n'
COMBINED = """
[[methods]]
name = "mr"
ratios = [2]
[[methods]]
name = "lwtr"
ratios = [2]
[[methods]]
label = "both"
combine = ["mr", "lwtr"]
"""
MIX = '[[corpora]]\nname = "both"\nmix = ["a", "b"]\nmissing_types = "allow"\n'


# ---------------------------------------------------------------------------------------------------- several test sets


def test_a_tagger_is_tested_on_all_test_sets_of_its_corpus(schedule_of: Any, tmp_path: Path) -> None:
    [run] = schedule_of(corpus(test=f'{{ news = "{TEST}", law = "{DEV}" }}')).runs
    record, _ = execute_run(run)
    assert list(record.tests) == ["news", "law"]
    assert record.test == record.tests["news"]
    line = json.dumps(record.to_dict())
    assert RunRecord.from_dict(json.loads(line)) == record
    (tmp_path / "runs.jsonl").write_text(line + "\n")
    news, law = read_run_records([tmp_path])
    assert (news.corpus, law.corpus) == ("toy on news", "toy on law")
    assert (news.test, law.test) == (record.tests["news"], record.tests["law"])
    assert law.leaks == {"test": run.split.leaks["test law"]}
    # As if it had been trained for each.
    [alone] = schedule_of(corpus(test=f'"{DEV}"')).runs
    assert execute_run(alone)[0].test == law.test
    assert alone.key != run.key


@pytest.mark.parametrize(
    "keys",
    [
        {"folds": "4", "test": ""},
        {"subset_seed": "[1, 2]", "test": "{ rest = 10 }"},
        {"test": f'{{ news = "{TEST}", law = "{DEV}" }}'},
    ],
)
def test_planned_folds_draws_and_test_sets_are_counted_as_runs(schedule_of: Any, keys: dict[str, str]) -> None:
    schedule = schedule_of(corpus(**keys), top="seeds = [1, 2]", rest='[[methods]]\nname = "mr"\n')
    folder = schedule.plan.output
    folder.mkdir(exist_ok=True)
    store = RecordStore(folder)
    runs = [run for run in schedule.runs if (run.arm, run.seed) != ("mr", 2)]
    for run in runs:
        record = record_of(run, f1=50)
        store.append(replace(record, tests=dict.fromkeys(run.split.tests, record.test)), 1.0)
        sort_records(schedule, store)  # gold for more steps is one run under several labels
        assert (count := read_known_plan([folder]).count) == schedule.count(store.records)
    assert count == RunCount(len(runs), len(schedule.runs))
    text = markdown_report(read_run_records([folder]), plan=read_known_plan([folder]))
    left = sorted({(run.split.subset_seed, run.seed) for run in schedule.runs if run.key not in store.records})
    names = ", ".join(f"{draw}/{seed}" if draw else f"{seed}" for draw, seed in left)
    done = sum(run.arm == "mr" for run in runs)
    assert (
        f"\n- toy, 16, linear: mr 1N: {done} of {2 * done} runs, without seed{'s' * (len(left) > 1)} {names}\n" in text
    )
    assert text.count(f" of {2 * len(left)} seeds, without {names} |") == max(1, len(schedule.runs[0].split.tests))


def test_one_test_set_has_no_name_in_records(schedule_of: Any) -> None:
    [run] = schedule_of(corpus()).runs
    assert "tests" not in run.config()
    assert {"tests", "subset_seed", "group"}.isdisjoint(execute_run(run)[0].to_dict())


# -------------------------------------------------------------------------------------------------------- several draws


def test_results_are_averaged_over_draws_of_the_gold_sentences(schedule_of: Any, tmp_path: Path) -> None:
    schedule = schedule_of(
        corpus(subset_seed="[1, 2, 3]", test="{ rest = 10 }", dev="{ rest = 10 }"), top="seeds = [4, 5]"
    )
    assert [(run.split.subset_seed, run.seed) for run in schedule.runs] == [(d, s) for d in (1, 2, 3) for s in (4, 5)]
    assert len({run.key for run in schedule.runs}) == 6
    assert len({run.split.test for run in schedule.runs}) == 1
    test, dev = (
        {s.tokens for s in entaug.read(path)} for path in (schedule.runs[0].split.test, schedule.runs[0].split.dev)
    )
    subsets = [{s.tokens for s in entaug.read(path)} for path in sorted({run.split.train for run in schedule.runs})]
    assert len(subsets) == 3
    assert subsets[0] != subsets[1] != subsets[2]
    assert not (test | dev) & set().union(*subsets)
    records = [record_of(run, f1=run.split.subset_seed * 10) for run in schedule.runs]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(record.to_dict()) + "\n" for record in records))
    [(setting, [gold])] = compare_arms(read_run_records([tmp_path])).items()
    assert setting == Setting("toy", 16, "linear")
    assert len(gold.records) == 6
    assert gold.f1 == pytest.approx(0.2)
    assert "20.0 ± 8.9" in markdown_report(records)
    [(_, [partly])] = compare_arms([*records[:2], *records[3:]]).items()
    assert partly.lacking == "incomplete: 5 of 6 seeds, without 2/4"
    assert (partly.missing, partly.planned) == (((2, 4),), 6)


def test_draws_of_equal_sentences_are_records_of_their_own(tmp_path: Path) -> None:
    records = [replace(made_record("one", "gold", 16, 4), subset_seed=draw) for draw in (1, 2)]
    write_records(tmp_path, [*records, records[0]])
    assert [record.subset_seed for record in read_run_records([tmp_path])] == [2, 1]


# ----------------------------------------------------------------------------------------------------- cross-validation


def test_folds_take_the_place_of_a_test_set(schedule_of: Any, tmp_path: Path) -> None:
    runs = schedule_of(corpus(test="", folds="3", sizes="[18]"), top='seeds = [1]\nbaselines = ["gold"]').runs
    assert [run.split.fold for run in runs] == [(1, 3), (2, 3), (3, 3)]
    held_out = [[sentence.tokens for sentence in entaug.read(run.split.test)] for run in runs]
    assert [len(fold) for fold in held_out] == [6, 6, 6]
    for run, fold in zip(runs, held_out, strict=True):
        assert run.split.num_gold == 12
        assert not {sentence.tokens for sentence in entaug.read(run.split.train)} & set(fold)
    records = [execute_run(run)[0] for run in runs]
    lines = [json.dumps(record.to_dict()) for record in records]
    (tmp_path / "runs.jsonl").write_text("\n".join(reversed(lines)))
    [joined] = read_run_records([tmp_path])
    assert (joined.fold, joined.size) == (None, 18)
    assert joined.test.sentences == tuple(counts for record in records for counts in record.test.sentences)
    assert sum(joined.test.sentences, MatchCounts()) == joined.test.micro
    # An older file of a part of the folds leaves the whole as it is.
    older = tmp_path / "older.jsonl"
    older.write_text("\n".join(lines[:1]))
    assert read_run_records([tmp_path, older]) == [joined]
    # A run that lacks a fold is missing.
    (tmp_path / "runs.jsonl").write_text("\n".join(lines[:2]))
    assert read_run_records([tmp_path]) == []


def test_joined_folds_tell_of_all_of_them(tmp_path: Path) -> None:
    records = [
        replace(
            made_record(f"{arm}{fold}", arm, 100, num_test, new=round(1.5 * (100 - num_test)) if arm == "mr" else 0),
            fold=(fold, 3),
            leaks={"dev": leaks},
            environment={"torch": "2", "device": device},
        )
        for arm in ("gold", "mr")
        for fold, num_test, leaks, device in ((1, 34, 0, "cpu (x)"), (2, 33, 5, "cuda (y)"), (3, 33, 4, "cpu (x)"))
    ]
    write_records(tmp_path, records)
    gold, mr = read_run_records([tmp_path])
    assert gold.leaks == mr.leaks == {"dev": 5}
    assert gold.environment == {"torch": "2", "device": ["cpu (x)", "cuda (y)"]}
    assert several_values([gold.environment, {"device": "cpu (x)"}]) == {"device": ["cpu (x)", "cuda (y)"]}
    assert mr.new == mr.asked


def test_a_method_that_makes_all_is_not_short_of_any() -> None:
    for size, ratio, new in ((25, 1.5, 25 + 12), (25, 0.5, 12), (27, 2.5, 54 + 14)):
        assert replace(made_record("a", "mr", size, 4, new), ratio=ratio).asked == new


# -------------------------------------------------------------------------------------------------------- mixed corpora


def test_a_mixed_corpus_has_the_sentences_and_the_test_sets_of_others(schedule_of: Any) -> None:
    text = corpus("a", dev=f'"{DEV}"') + corpus("b", train=f'"{DEV}"', test=f'"{TRAIN}"', sizes="[8]", dev=f'"{TEST}"')
    runs = {run.split.corpus.name: run for run in schedule_of(text + MIX).runs}
    a, b, both = (runs[name].split for name in ("a", "b", "both"))
    assert both.size == 24
    assert list(entaug.read(both.train)) == [*entaug.read(a.train), *entaug.read(b.train)]
    assert both.dev
    assert len(list(entaug.read(both.dev))) == len(list(entaug.read(DEV))) + len(list(entaug.read(TEST)))
    assert {name: list(entaug.read(path)) for name, path in both.tests.items()} == {
        "a": list(entaug.read(a.test)),
        "b": list(entaug.read(b.test)),
    }
    assert both.leaks["test b"] == 16  # the sentences of a are in the test set of b
    only_mixed = corpus("a", taggers="[]") + corpus("b", taggers="[]") + MIX
    assert {run.split.corpus.name for run in schedule_of(only_mixed).runs} == {"both"}


def test_the_unlabelled_text_of_a_mixture_is_that_of_its_corpora_in_turn(schedule_of: Any, tmp_path: Path) -> None:
    gold, dev, test = (list(entaug.read(path)) for path in (TRAIN, DEV, TEST))
    texts = {"a": gold[16:22], "b": gold[30:33]}
    entaug.write([*test, *dev, *texts["a"]], tmp_path / "a.jsonl")  # with what the other corpus holds out
    entaug.write([*dev, *gold[:16], *texts["b"]], tmp_path / "b.jsonl")
    keys = {"subset": '"first"', "taggers": "[]"}
    plan = corpus("a", test=f'"{DEV}"', unlabelled='"a.jsonl"', **keys)
    plan += corpus("b", train=f'"{DEV}"', sizes="[8]", unlabelled='"b.jsonl"', **keys) + MIX
    [run] = schedule_of(plan).runs
    found = [sentence.tokens for sentence in entaug.read(run.split.unlabelled)]
    assert found == [gold[i].tokens for i in (16, 30, 17, 31, 18, 32, 19, 20, 21)]


def test_draws_of_a_mixture_are_of_one_size_with_and_without_leaks(schedule_of: Any, tmp_path: Path) -> None:
    entaug.write([*entaug.read(TEST), *list(entaug.read(TRAIN))[:50]], tmp_path / "leaky.jsonl")
    keys = {"subset_seed": "[1, 2, 3]", "taggers": "[]"}
    plan = corpus("a", **keys) + corpus("b", train=f'"{DEV}"', test='"leaky.jsonl"', sizes="[8]", **keys) + MIX
    splits = [run.split for run in schedule_of(plan, top='seeds = [1]\nleakage = "drop"').runs]
    assert [split.size for split in splits] == [24, 24, 24]
    assert len({split.num_gold for split in splits}) > 1


def test_test_sets_that_would_be_one_file_are_refused(schedule_of: Any) -> None:
    names = corpus(test=f'{{ "x y" = "{TEST}", "x.y" = "{DEV}" }}')
    with pytest.raises(EntaugError, match=r"plan.toml:\d+: test x y and test x.y of toy would be one file"):
        schedule_of(names)
    mixture = corpus("a", test=f'{{ b = "{TEST}" }}') + corpus("a b", test=f'"{DEV}"') + MIX.replace('"b"', '"a b"')
    with pytest.raises(EntaugError, match=r"plan.toml:\d+: test a b and test a b of both would be one file"):
        schedule_of(mixture)


def test_corpora_that_would_share_a_file_are_refused(schedule_of: Any) -> None:
    message = "a.16 and a would both have their sentences in .*a.16.5.train.jsonl; give one of them another name"
    with pytest.raises(EntaugError, match=message):
        schedule_of(corpus("a", subset_seed="[5, 6]") + corpus("a.16", sizes="[5]"))


def test_keys_of_runs_do_not_depend_on_options_that_are_not_used(schedule_of: Any) -> None:
    [run] = schedule_of(corpus()).runs
    assert "warmup_steps" not in run.config()["training"]
    [same] = schedule_of(corpus(), training="steps = 2\nscale_above = 10_000\nlearning_rate = 1e-4").runs
    [other] = schedule_of(corpus(), training="steps = 2\nlearning_rate = 1e-4").runs
    assert same.key == other.key != run.key


# ---------------------------------------------------------------------------------------------------------------- grids


def test_the_best_cell_of_a_grid_is_chosen_on_dev(schedule_of: Any) -> None:
    rest = '[[methods]]\nname = "sr"\nlabel = "synonyms"\nratios = [1, 2]\n[methods.grid]\np = [0.1, 0.5]\n'
    schedule = schedule_of(corpus(dev=f'"{DEV}"', methods='["synonyms"]'), top="seeds = [1, 2]", rest=rest)
    cells = [(f"synonyms p={p}", ratio) for p in (0.1, 0.5) for ratio in (1, 2)]
    assert [(run.arm, run.ratio) for run in schedule.runs if run.seed == 1] == [("gold", 0), *cells]
    assert [run.method.params["p"] for run in schedule.runs if run.method] == [0.1] * 4 + [0.5] * 4
    records: dict[str, RunRecord] = {}
    schedule.advance(records)
    for run in schedule.runs:
        schedule.advance(records)
        assert not schedule.chosen
        best = (run.arm, run.ratio) == ("synonyms p=0.1", 2)
        records[run.key] = record_of(run, f1=60 if best else 50, dev=60 if best else 50)
    schedule.advance(records)
    chosen = [run for run in schedule.runs if run.key in schedule.chosen]
    assert {(run.arm, run.ratio) for run in chosen} == {("synonyms p=0.1", 2)}
    assert {(run.arm, run.ratio) for run in schedule.runs} - {("gold", 0), *cells} == {
        ("gold-steps", 2),
        ("duplicate", 2),
    }
    for run in schedule.runs:
        records.setdefault(run.key, record_of(run, f1=50, dev=50))
    finished = [replace(records[run.key], **run.labels(), chosen=run.key in schedule.chosen) for run in schedule.runs]
    report = markdown_report(finished)
    assert "| synonyms |" in report
    assert "+10.0" in report
    assert "(chosen on dev)" in report
    waiting = markdown_report([record for record in finished if not record.chosen])
    assert "synonyms: nothing has been chosen on dev yet" in waiting


def record_of(run: Any, f1: float, dev: float | None = None) -> RunRecord:
    """A record with a given F1 in points, without training."""

    def scores(points: float) -> Scores:
        correct = [int(i < points) for i in range(100)]
        counts = tuple(MatchCounts(c, 1, 1) for c in correct)
        return Scores({"X": sum(counts, MatchCounts())}, {}, {}, {}, counts)

    return RunRecord(
        key=run.key,
        **run.labels(),
        steps=run.steps,
        new=1,
        test=scores(f1),
        dev=None if dev is None else scores(dev),
    )


def made_record(key: str, arm: str, size: int, num_test: int, new: int = 0) -> RunRecord:
    counts = (MatchCounts(1, 1, 1),) * num_test
    scores = Scores({"X": sum(counts, MatchCounts())}, {}, {}, {}, counts)
    ratio = 1.5 if arm == "mr" else 0.0
    return RunRecord(key, "toy", size, "linear", arm, ratio, seed=1, steps=2, new=new, test=scores)


def write_records(folder: Path, records: list[RunRecord]) -> None:
    (folder / "runs.jsonl").write_text("".join(json.dumps(record.to_dict()) + "\n" for record in records))


# -------------------------------------------------------------------------- folders, languages, parameters by corpus


@pytest.mark.parametrize("format_", ["brat", "i2b2", "datasets"])
def test_corpora_may_be_folders(schedule_of: Any, tmp_path: Path, format_: str) -> None:
    sentences = list(entaug.read(TRAIN))[:24]
    entaug.write(sentences, tmp_path / "train", format_)
    keys = dict.fromkeys(("train", "test", "dev", "unlabelled"), '"train"')
    text = corpus(**keys, sizes="[16]", dev_in_test='"allow"') + f'options = {{ format = "{format_}" }}\n'
    rest = '[[methods]]\nname = "mr"\n'
    [gold, mr] = schedule_of(text, top='seeds = [1]\nbaselines = ["gold"]', rest=rest).runs
    assert execute_run(mr)[0].new
    assert len(entaug.read(gold.split.test)) == len(sentences)
    again = schedule_of(text, top='seeds = [1]\nbaselines = ["gold"]', rest=rest).runs
    assert [run.key for run in again] == [gold.key, mr.key]
    if format_ == "brat":  # what is in the files names the run, not where they are
        [note] = list((tmp_path / "train").glob("*1.txt"))[:1]
        note.write_text(note.read_text().replace(".", "!"))
        changed = schedule_of(text, top='seeds = [1]\nbaselines = ["gold"]', rest=rest).runs
        assert changed[0].key != gold.key


def test_a_folder_without_a_corpus_is_an_error(schedule_of: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EntaugError, match="is a directory of no known format"):
        schedule_of(corpus(train='"empty"'))


ACLM = '[[methods]]\nname = "aclm"\nlabel = "ACLM"\n'


def test_the_language_of_a_corpus_reaches_its_methods(schedule_of: Any, tmp_path: Path) -> None:
    entaug.write([Sentence(["Nein"], id="x", meta={"language": "fr"}), *entaug.read(TRAIN)], tmp_path / "t.jsonl")
    german = corpus("a", language='"de"', train='"t.jsonl"', sizes="[8]", subset='"first"')
    text = german + corpus("b", language='"hi_IN"', sizes="[8]") + corpus("c") + MIX
    runs = schedule_of(text, rest=ACLM + 'generator = "smollm2"\n').runs
    first = {run.split.corpus.name: run for run in runs if run.method}
    languages = {name: [s.meta.get("language") for s in entaug.read(r.split.train)] for name, r in first.items()}
    assert languages == {
        "a": ["fr", *["de"] * 7],  # a sentence knows its own language best
        "b": ["hi_IN"] * 8,
        "c": [None] * 16,
        "both": ["fr", *["de"] * 7, *["hi_IN"] * 8],
    }
    assert {name: run.method.params.get("stop_words") for name, run in first.items()} == {
        "a": "de",
        "b": "hi",
        "c": None,
        "both": None,
    }
    assert not any("language" in s.meta for s in entaug.read(first["a"].split.test))  # it may be another one


def test_texts_without_tokens_are_tokenised_by_the_language(schedule_of: Any, tmp_path: Path) -> None:
    (tmp_path / "brat").mkdir()
    text = "Das ist z.B. Rom.\n" * 10
    (tmp_path / "brat" / "a.txt").write_text(text)
    places = [match.start() for match in re.finditer("Rom", text)]
    lines = [f"T{i}\tLOC {at} {at + 3}\tRom\n" for i, at in enumerate(places, start=1)]
    (tmp_path / "brat" / "a.ann").write_text("".join(lines))
    entaug.write([Sentence(["Rom"], [Mention("LOC", [(0, 1)])])], tmp_path / "test.jsonl")
    keys = {"train": '"brat"', "test": '"test.jsonl"', "sizes": ""}
    found = {}
    for name, own in (("de", {"language": '"de"'}), ("en", {})):
        run = schedule_of(corpus(name, **keys, **own)).runs[0]
        found[name] = {token for s in entaug.read(run.split.train) for token in s.tokens}
    assert "z.B." in found["de"]
    assert "z.B." not in found["en"]


def test_a_method_with_parameters_by_corpus_is_one_row(schedule_of: Any) -> None:
    rest = '[[methods]]\nname = "lwtr"\nlabel = "LwTR"\np = 0.3\n[methods.by_corpus]\nb = { p = 0.5 }\n'
    schedule = schedule_of(corpus("a") + corpus("b"), top='seeds = [1, 2]\nbaselines = ["gold"]', rest=rest)
    used = {run.split.corpus.name: run.method.params for run in schedule.runs if run.method}
    assert used == {"a": {"p": 0.3}, "b": {"p": 0.5}}
    alone = schedule_of(corpus("b"), top="seeds = [1]", rest='[[methods]]\nname = "lwtr"\np = 0.5\n')
    assert {run.key for run in alone.runs if run.method} <= {run.key for run in schedule.runs}
    records = [record_of(run, f1=60 if run.split.corpus.name == "a" else 40) for run in schedule.runs]
    [table] = corpus_tables(compare_arms(records))
    [row] = [row for row in table.rows if row[0].startswith("LwTR")]
    assert row[-1] == "50.0"


def test_the_smallest_plan_keeps_parameters_by_corpus(schedule_of: Any, tmp_path: Path) -> None:
    rest = '[[methods]]\nname = "lwtr"\n[methods.by_corpus.toy]\np = 0.5\nmax_attempts = 7\n'
    plan = schedule_of(corpus(), rest=rest).plan
    [method] = smallest_plan(plan, tmp_path / "out").methods
    assert method.on(plan.corpora[0]).params == {"p": 0.5, "max_attempts": 1}


# --------------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("corpora", "rest", "message"),
    [
        (corpus(subset='"first"', subset_seed="[1, 2]"), "", "the seed has no effect on the subset"),
        (corpus(subset_seed="[1, 1]"), "", "subset_seed must be a list of distinct integers"),
        (corpus(sizes="", subset_seed="[1, 2]"), "", "the seed has no effect on the subset"),
        (corpus(sizes="[100]", subset_seed="[1, 2]"), "", "the whole of toy, so all draws are equal"),
        (corpus(folds="3"), "", "folds are tested on each other, so there is no test set"),
        (corpus(test="", folds="1"), "", "folds must be an integer of at least 2"),
        (corpus(test="", folds="17"), "", "16 sentences of toy are too few for 17 folds"),
        (corpus(test="", folds="3", subset_seed="[1, 2]"), "", "draws would be tested on different sentences"),
        (corpus("a", test="", folds="2") + corpus("b", test="", folds="2") + MIX, "", "the corpora of both have folds"),
        (corpus(test='{ news = "nowhere.conll" }'), "", "there is no file"),
        (corpus(test="{ rest = 10, other = 3 }"), "", "other"),
        (corpus("a") + corpus("b") + MIX.replace('"b"]', '"c"]'), "", "unknown corpora 'c'"),
        (corpus("a") + corpus("b") + MIX + "sizes = [3]\n", "", "so it takes no sizes"),
        (corpus("a", sizes="[8, 16]") + corpus("b") + MIX, "", "differ in the number of sizes"),
        ('[[corpora]]\nname = "a"\n', "", "a corpus needs train"),
        (corpus(), '[[methods]]\nname = "mr"\ngrid = { nothing = [1] }\n', "nothing"),
        (corpus(), '[[methods]]\nname = "mr"\ngrid = { p = 3 }\n', "grid must be lists of values by name"),
        (corpus(), '[[methods]]\nname = "lwtr"\np = 0.1\ngrid = { p = [0.3] }\n', "p is given twice"),
        (corpus(), '[[methods]]\nname = "lwtr"\ngrid = { p = [0.3, 0.4] }\n', "the corpus toy has no dev set"),
        (
            corpus(dev=f'"{DEV}"'),
            '[[methods]]\nname = "lwtr"\nratios = "patience"\ngrid = { p = [0.3] }\n',
            "a grid needs a method with parameters, and a list of ratios",
        ),
        (corpus(language='"German"'), "", "language must be a code as de or de_DE"),
        (corpus("a") + corpus("b") + MIX + 'language = "de"\n', "", "so it takes no language"),
        (corpus(language='"de"'), ACLM + 'language = "en"\n', "language is given twice, for the corpus toy"),
        (
            corpus(language='"de"'),
            ACLM + '[methods.by_corpus.toy]\nlanguage = "en"\n',
            "language is given twice, for the corpus toy",
        ),
        (
            corpus(),
            '[[methods]]\nname = "lwtr"\nby_corpus = { toi = {} }\n',
            "unknown corpora 'toi'; did you mean 'toy'",
        ),
        (corpus(), '[[methods]]\nname = "lwtr"\nby_corpus = { toy = 3 }\n', "by_corpus must be tables of parameters"),
        (corpus(), '[[methods]]\nname = "lwtr"\nby_corpus = { toy = { q = 3 } }\n', "unknown parameter of lwtr: 'q'"),
        (corpus(), '[[methods]]\nname = "lwtr"\nby_corpus = { toy = { p = 3 } }\n', "p must be"),
        (corpus(), '[[methods]]\nname = "lwtr"\nby_corpus = { toy = { seed = 3 } }\n', "seed cannot be given here"),
        (
            corpus(dev=f'"{DEV}"'),
            '[[methods]]\nname = "lwtr"\ngrid = { p = [0.3] }\nby_corpus = { toy = { p = 0.1 } }\n',
            "p is given twice",
        ),
        (
            corpus(),
            '[[methods]]\nname = "mr"\n[[methods]]\nlabel = "x"\ncombine = ["mr"]\nby_corpus = { toy = {} }\n',
            "by_corpus needs a method with parameters",
        ),
        *(
            (
                corpus(),
                f'[[methods]]\nname = "mr"\ntraining = {{ {key} = 5 }}\n',
                f"trains with the {key} of gold-steps",
            )
            for key in ("epochs", "steps", "batch_size")
        ),
        (corpus(), f'[[methods]]\nname = "mr"\n{BEST}', "no dev set, and the epoch of mr is chosen by dev"),
        (
            corpus(),
            f'[[methods]]\nname = "mr"\nlabels = "teacher"\n[[teachers]]\n{BEST}',
            "no dev set, and the epoch of ensemble is chosen by dev",
        ),
        (
            corpus(dev=f'"{DEV}"'),
            f'[[methods]]\nname = "mr"\ntraining = {{ averaged_share = 0.2 }}\n[[taggers]]\nname = "w2ner"\n{BEST}',
            "weights of the best epoch are not averaged",
        ),
        (corpus(dev=f'"{DEV}"'), COMBINED + "ratios = [1]\n", "ratios cannot be given beside combine"),
        (corpus(dev=f'"{DEV}"'), COMBINED + 'ratios = "patience"\n', "ratios cannot be given beside combine"),
        (corpus(), COMBINED + "p = 0.3\n", "p cannot be given beside combine"),
        (corpus(), COMBINED.replace("2", "60"), "add up to 120, above 100"),
        (
            corpus(methods='["both"]'),
            COMBINED.replace('"lwtr"\n', '"selftrain"\nlabel = "lwtr"\nlabels = "teacher"\n'),
            "has no unlabelled sentences for lwtr",
        ),
    ],
)
def test_faults_are_refused(schedule_of: Any, corpora: str, rest: str, message: str) -> None:
    with pytest.raises(EntaugError, match=message) as caught:
        schedule_of(corpora, rest=rest)
    assert caught.value.line


def test_a_combination_has_the_ratio_and_the_steps_of_its_sentences(schedule_of: Any) -> None:
    runs = schedule_of(corpus(), top="seeds = [1]\nratios = [1, 3]", training="epochs = 10", rest=COMBINED).runs
    assert [(run.ratio, run.steps) for run in runs if run.arm == "both"] == [(4, 100)]
    assert [run.steps for run in runs if run.arm == "gold-steps"] == [60, 100]
    assert {run.ratio for run in runs} == {0, 2, 4}


# ------------------------------------------------------------------------------------------------------ order of runs


def test_the_first_seed_is_complete_first_and_corpora_alternate(schedule_of: Any) -> None:
    method = '[[methods]]\nname = "mr"\nratios = [1]\n'
    runs = schedule_of(corpus("a") + corpus("b"), top='seeds = [7, 5]\nbaselines = ["gold"]', rest=method).runs
    order = [(run.seed, run.arm, run.split.corpus.name) for run in _execution_order(runs)]
    assert order == [(seed, arm, name) for seed in (7, 5) for arm in ("gold", "mr") for name in ("a", "b")]
    assert sorted(map(id, _execution_order(runs))) == sorted(map(id, runs))


def test_the_first_tagger_is_complete_on_all_corpora_before_the_next_one(schedule_of: Any) -> None:
    tagger = '[[taggers]]\nname = "bilstm-crf"\n'
    method = '[[methods]]\nname = "mr"\nratios = [1]\n'
    top = 'seeds = [1]\nbaselines = ["gold"]'
    runs = schedule_of(corpus("a") + corpus("b"), top=top, rest=tagger + method).runs
    order = [(run.tagger.label, run.arm, run.split.corpus.name) for run in _execution_order(runs)]
    assert order == [(t, arm, c) for t in ("linear", "bilstm-crf") for arm in ("gold", "mr") for c in ("a", "b")]


def test_no_process_waits_for_sentences_that_another_one_makes(schedule_of: Any) -> None:
    class Pool:
        def __init__(self) -> None:
            self.submitted: list[RunSpec] = []

        def submit(self, _: Any, run: RunSpec) -> Future[Any]:
            self.submitted.append(run)
            return Future()

    method = '[[methods]]\nname = "mr"\nratios = [1, 2]\n'
    schedule = schedule_of(corpus(), top='seeds = [1, 2]\nbaselines = ["gold"]', rest=method)
    execution = _Execution(schedule.plan, schedule, RecordStore(schedule.plan.output), 6, lambda _: None, lambda: None)
    execution.futures, execution.failures = {}, {}
    pool: Any = Pool()
    execution._submit(pool)
    arms = [("gold", 0), ("mr", 1)]
    assert [(run.seed, run.arm, run.ratio) for run in pool.submitted] == [(s, *arm) for s in (1, 2) for arm in arms]
    [part] = pool.submitted[1].parts
    make_sentences(pool.submitted[1], part)
    with lock(sentences_file(pool.submitted[3], part)):
        execution.futures.popitem()[1][1].close()  # now another process makes them
        assert execution._submit(pool)
    assert [(run.seed, run.arm, run.ratio) for run in pool.submitted[4:]] == [(1, "mr", 2)]
    for _, claim in execution.futures.values():
        claim.close()


# ---------------------------------------------------------------------------------------------------- named sentences


def test_a_subset_by_ids_is_that_of_the_files_whatever_else_changes(schedule_of: Any, tmp_path: Path) -> None:
    [first, second] = schedule_of(corpus(sizes="[8, 16]")).runs
    for run in (first, second):
        digests = [sentence.fingerprint().hex() for sentence in read(run.split.train)]
        (tmp_path / f"ids.{run.split.size}.txt").write_text("\n".join(digests) + "\n", encoding="utf-8")
    named = schedule_of(corpus(sizes="[8, 16]", subset_ids='"ids.{size}.txt"', subset_seed="7")).runs
    assert [run.key for run in named] == [first.key, second.key]
    members = corpus("a", sizes="[16, 8]", subset_ids='"ids.{size}.txt"') + corpus("b", sizes="[16, 8]")
    mixed = [run.split.size for run in schedule_of(members + MIX).runs if run.split.corpus.name == "both"]
    assert mixed == [16, 32]  # not 8 + 16
    (tmp_path / "ids.8.txt").write_text("0123456789abcdef\n", encoding="utf-8")
    with pytest.raises(EntaugError, match=r"ids.8.txt:1: the corpus has no sentence '0123456789abcdef'"):
        schedule_of(corpus(sizes="[8]", subset_ids='"ids.{size}.txt"'))
