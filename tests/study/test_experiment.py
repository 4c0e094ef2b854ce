"""Experiments: plans that are refused, baselines and ratios, records that survive any kill."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE, ROOT
from entaug.backends.processes import interrupts_blocked
from entaug.commands.main import main
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, MissingModelError, OutputError, ParameterError
from entaug.files.atomic import atomic_file
from entaug.files.locks import lock
from entaug.metrics.span_f1 import MatchCounts, Scores
from entaug.report.markdown import markdown_report
from entaug.study.data import count_shared, prepare_splits
from entaug.study.engine import run_error, run_experiment
from entaug.study.plan import MethodPlan, copies_for, patience_ratios, read_plan
from entaug.study.records import RecordStore, RunRecord, read_run_records
from entaug.study.runs import RunSpec, current_environment, execute_run
from entaug.study.schedule import Schedule
from helpers.command_line import heeding_ctrl_c
from helpers.counting import wait_until

pytest.importorskip("torch")

TRAIN, DEV, TEST = (EXAMPLE / f"{name}.conll" for name in ("train", "dev", "test"))


def write_plan(folder: Path, encoder: Path, top: str = "", corpus: str = "", methods: str | None = None) -> Path:
    plan = folder / "plan.toml"
    own = '[[methods]]\nname = "mr"\n' if methods is None else methods
    plan.write_text(
        f"""{top}
[training]
epochs = 1
batch_size = 8
learning_rate = 2e-3
[[taggers]]
name = "linear"
encoder = "{encoder}"
precision = "fp32"
[[corpora]]
name = "toy"
train = "{TRAIN}"
dev = "{DEV}"
test = "{TEST}"
{corpus or "sizes = [16]"}
{own}""",
        encoding="utf-8",
    )
    return plan


# --------------------------------------------------------------------------------------------------------------- plans


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (("seeds = [1]", "seeds = []"), "seeds = []", "seeds must be a list of distinct integers"),
        (("seeds = [1]", "seeds = [1, 1]"), "seeds", "distinct"),
        (("seeds = [1]", "sedes = [1]"), "sedes", "did you mean 'seeds'"),
        (("seeds = [1]", 'seeds = [1]\nleakage = "hide"'), "leakage", "leakage"),
        (("seeds = [1]", 'seeds = [1]\nbaselines = ["duplicate"]'), "baselines", "a list with gold"),
        (("seeds = [1]", "seeds = [1]\nthreads = 0"), "threads", "threads must be an integer of at least 1, not 0"),
        (("seeds = [1]", "seeds = [1]\nratios = [0]"), "ratios", "ratios must be a list"),
        (("seeds = [1]", 'seeds = [1]\nratios = "patient"'), "ratios", "patience"),
        (("epochs = 1", "epochs = 0"), "epochs", "epochs must be"),
        (("epochs = 1", "epoch = 1"), "epoch", "did you mean 'epochs'"),
        (("epochs = 1", "epochs = 1\nsteps = 9"), "epochs", "epochs have no effect beside steps"),
        (('name = "linear"', 'name = "linaer"'), "linaer", "did you mean 'linear'"),
        (('precision = "fp32"', "hiden = 3"), "hiden", "hiden"),
        (('name = "mr"', 'name = "mrr"'), "mrr", "mrr"),
        (('name = "mr"', 'name = "mr"\np = 7'), "p = 7", "p must"),
        (('name = "mr"', 'name = "mr"\ncopies = 2'), "copies", "use ratios"),
        (('name = "mr"', 'name = "cr"\nencoder = "minilmm"'), "minilmm", "did you mean 'minilm'"),
        (('name = "mr"', 'name = "bt"\ntranslator = "en-pt>pt-enn"'), "pt-enn", "did you mean 'pt-en'"),
        (('name = "mr"', 'name = "mr"\nfilters = "consistency:tagger=linaer"'), "linaer", "did you mean 'linear'"),
        (('name = "mr"', 'name = "mr"\n[[methods]]\nname = "mr"'), "[[methods]]", "is there already"),
        (('name = "mr"', 'name = "mr"\nlabel = "gold"'), "label", "is there already"),
        (("test.conll", "tset.conll"), "test =", "there is no file"),
        (("sizes = [16]", "sizes = [16000]"), "sizes", "larger than toy"),
        (("sizes = [16]", "sizes = [0.5]"), "sizes", "positive integers"),
        (("sizes = [16]", 'sizes = [16]\nsubset_ids = "none.txt"'), "subset_ids", "there is no file .*none.txt"),
        (("sizes = [16]", 'sizes = [8, 16]\nsubset_ids = "plan.toml"'), "subset_ids", "put {size} into its name"),
        (("sizes = [16]", 'subset_ids = "plan.toml"'), "subset_ids", "number of ids must be given"),
        (("sizes = [16]", 'sizes = [16]\nsubset_ids = "plan.toml"\nsubset = "first"'), "subset_ids", "none is drawn"),
        (("sizes = [16]", 'sizes = [16]\nsubset = "frist"'), "subset", "did you mean 'first'"),
        (("sizes = [16]", 'sizes = [16]\nmethods = ["sr"]'), "methods", "sr"),
        (("sizes = [16]", "size = [16]"), "size =", "did you mean 'sizes'"),
        (("sizes = [16]", "sizes = [16]\noptions = {tag_colum = 1}"), "options", "options"),
        (("seeds = [1]", "seeds = [99999999999999999999]"), "seeds", "below 2\\^63"),
        (("seeds = [1]", "seeds = [1]\nname = 3"), "name", "name must be a text"),
        (("seeds = [1]", 'seeds = [1]\noutput = "~nobody-of-this-name/x"'), "output", "no such user"),
        (("seeds = [1]", "seeds = [1]\nratios = [1, 1.0]"), "ratios", "distinct"),
        (("seeds = [1]", "seeds = [1]\nratios = [0.01]"), "ratios", "not even one sentence for 16 of toy"),
        (('name = "mr"', 'name = "mr"\nratios = [0.01]'), "ratios", "not even one sentence"),
        (("learning_rate = 2e-3", "learning_rate = true"), "learning_rate", "learning_rate must be"),
        (("learning_rate = 2e-3", "warmup_ratio = true"), "warmup_ratio", "warmup_ratio must be"),
        (('name = "linear"', 'label = "x"'), "[[taggers]]", "a tagger needs the parameter name"),
        (('precision = "fp32"', "labels_ = 1"), "labels_", "unknown parameter of linear: 'labels_'"),
        (('name = "linear"', 'name = "bilstm-crf"\nhidden = -1'), "hidden", "hidden must be"),
        (('name = "toy"', 'name = "/toy"'), "name", "no slashes"),
        (('name = "toy"', 'name = "../toy"'), "name", "no slashes"),
        (('name = "toy"', 'name = "a\\u0000b"'), "name", "a text of at most"),
        (('name = "toy"', f'name = "{"x" * 300}"'), "name", "at most 100 bytes"),
        (('name = "mr"', f'name = "mr"\nlabel = "{"é" * 60}"'), "label", "at most 100 bytes"),
        (("sizes = [16]", 'sizes = [1.0]\nsubset = "fraction"'), "sizes", "shares"),
        (("sizes = [16]", 'sizes = [0.0001]\nsubset = "fraction"'), "sizes", "not even one"),
        (("sizes = [16]", 'sizes = [0.2, 0.201]\nsubset = "fraction"'), "sizes", "are the same number"),
        (("sizes = [16]", 'sizes = [16]\noptions = {scheme = "x"}'), "options", "tag scheme"),
        (("sizes = [16]", 'sizes = [16]\n[corpora.options]\nscheme = "x"'), "[corpora.options]", "tag scheme"),
        (("[training]\nepochs = 1", '["training"]\n"epochs" = 0'), '"epochs"', "epochs must be"),
        (("sizes = [16]", "sizes = [99]\ntest = {rest = 50}"), "TWICE", "TOML"),
        (('name = "mr"', 'name = "mr"\n[defaults.sr]\np = 0.1'), "[defaults.sr]", "unknown method of the plan 'sr'"),
        (('name = "mr"', 'name = "mr"\n[defaults.mr]\nlabel = "x"'), "[defaults.mr]", "label cannot be a default"),
        (('name = "mr"', 'name = "mr"\n[defaults.mr]\np = 7'), "[[methods]]", "p must"),
        (("seeds = [1]", "seeds = [1]\ndefaults = 3"), "defaults", "write \\[defaults.NAME\\]"),
    ],
)
def test_bad_plans_are_refused_before_any_work(
    change: tuple[str, str], line: str, message: str, bert: Path, tmp_path: Path
) -> None:
    plan = write_plan(tmp_path, bert, "seeds = [1]")
    text = plan.read_text()
    assert change[0] in text
    plan.write_text(text.replace(change[0], change[1], 1))
    with pytest.raises(EntaugError, match=message) as caught:
        run_experiment(plan)
    assert str(caught.value).startswith(f"{plan}:")
    assert caught.value.line is not None
    if line != "TWICE":
        where = plan.read_text().splitlines()[caught.value.line - 1]
        table = where.startswith("[")
        assert table or line.split(" ", maxsplit=1)[0] in where, (where, str(caught.value))
    assert not (tmp_path / "plan").exists() or not (tmp_path / "plan" / "runs.jsonl").exists()


def test_epochs_of_a_tagger_take_the_place_of_common_steps(bert: Path, tmp_path: Path) -> None:
    path = write_plan(tmp_path, bert)
    own = 'precision = "fp32"\ntraining = {epochs = 4}\nby_corpus = {toy = {training = {steps = 7}}}'
    path.write_text(path.read_text().replace("epochs = 1", "steps = 9").replace('precision = "fp32"', own))
    plan = read_plan(path)
    (tagger,) = plan.taggers
    assert (tagger.training.steps, tagger.training.epochs) == (None, 4)
    assert tagger.on(plan.corpora[0]).training.steps == 7


def test_methods_of_one_name_share_their_defaults(bert: Path, tmp_path: Path) -> None:
    own = '[defaults.mr]\np = 0.3\nratios = [2]\n[[methods]]\nname = "mr"\n'
    more = '[[methods]]\nname = "mr"\nlabel = "most"\np = 0.9\n[[methods]]\nname = "sis"\n'
    plan = read_plan(write_plan(tmp_path, bert, methods=own + more))
    assert [(m.label, m.params, m.ratios) for m in plan.methods] == [
        ("mr", {"p": 0.3}, (2,)),
        ("most", {"p": 0.9}, (2,)),
        ("sis", {}, (1,)),
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (b"training.epochs = 0\n", 1, "epochs must be"),
        (b"seeds = [1]\ntraining = {epochs = 0}\n", 2, "epochs must be"),
        (b"seeds = [1]\ncorpora = [\n{name = 3}]\n", 2, "name must be a text"),
        (b"\xef\xbb\xbfseeds = []\n", 1, "seeds must be"),
        (b"a = " + b"[" * 3000 + b"]" * 3000, None, "nested too deeply"),
        (b"\xff", 1, "not UTF-8"),
        (b"", None, "no .*corpora"),
    ],
)
def test_faults_have_their_line_however_toml_is_written(
    text: bytes, line: int | None, message: str, tmp_path: Path
) -> None:
    (tmp_path / "plan.toml").write_bytes(text)
    with pytest.raises(EntaugError, match=message) as caught:
        read_plan(tmp_path / "plan.toml")
    assert caught.value.line == line


def test_the_identity_of_a_method_has_the_values_of_its_preset() -> None:
    params = {"preset": "paper", "epochs": 2}
    identity = MethodPlan(name="daga", label="daga", ratios=(1,), params=params).identity
    assert identity["tag_scheme"] == "IOBES"  # of the preset
    assert identity["epochs"] == 2  # given, 30 in the preset
    assert "copies" not in MethodPlan(name="aclm", label="aclm", ratios=(1,), params=params).identity  # of the ratio


def test_names_of_corpora_differ_by_more_than_case(bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert, corpus='[[corpora]]\nname = "Toy"')
    same = f'train = "{TRAIN}"\ntest = "{TEST}"\n'
    plan.write_text(plan.read_text().replace('name = "Toy"\n', f'name = "Toy"\n{same}'))
    with pytest.raises(EntaugError, match="'Toy' is there already, among the corpora"):
        read_plan(plan)
    # Baselines are names of arms: a corpus may have such a name.
    plan.write_text(plan.read_text().replace('"Toy"', '"gold"'))
    assert [corpus.name for corpus in read_plan(plan).corpora] == ["toy", "gold"]


def test_what_a_run_needs_is_looked_for_before_any_work(bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert)
    text = plan.read_text()
    plan.write_text(text.replace('precision = "fp32"', 'device = "cude"'))
    with pytest.raises(ParameterError, match=r"plan.toml:9: no device 'cude' here"):
        run_experiment(plan, jobs=1)
    plan.write_text(text.replace(str(bert), "/no/such/folder"))
    with pytest.raises(MissingModelError, match=r"plan.toml:8: '/no/such/folder' is neither"):
        run_experiment(plan, jobs=1)
    assert not (tmp_path / "plan" / "runs.jsonl").exists()


def test_a_dev_set_is_asked_for_where_something_is_chosen_by_it(bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert, 'seeds = [1]\nratios = "patience"')
    plan.write_text(plan.read_text().replace(f'dev = "{DEV}"\n', ""))
    with pytest.raises(EntaugError, match="has no dev set, and the ratio of mr is chosen by dev"):
        run_experiment(plan)
    plan.write_text(plan.read_text().replace("sizes = [16]", "sizes = [16]\ndev = {rest = 20}"))
    [cell] = prepare_splits(read_plan(plan))
    assert cell.dev is not None
    train = {s.tokens for s in entaug.read(cell.train)}
    assert not train & {s.tokens for s in entaug.read(cell.dev)}
    assert len(entaug.read(cell.dev)) == 20


def test_types_that_train_lacks_are_refused_or_allowed(bert: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.conll"
    other.write_text("Kent\tB-COUNTY\nis\tO\n\n")
    plan = write_plan(tmp_path, bert, "seeds = [1]")
    text = plan.read_text().replace(str(TEST), str(other))
    plan.write_text(text)
    with pytest.raises(EntaugError, match=r"test of toy has types that train lacks \(COUNTY\)"):
        run_experiment(plan)
    plan.write_text(text.replace("sizes = [16]", 'sizes = [16]\nmissing_types = "allow"'))
    assert len(prepare_splits(read_plan(plan))) == 1


def test_a_dev_set_that_is_the_test_set_is_refused_unless_told(bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert, "seeds = [1]")
    original = plan.read_text()
    test = list(entaug.read(TEST))
    # The same path; the same content in another format and order; a part of it; more than it.
    copy, part, more, mixed = (tmp_path / f"{name}.jsonl" for name in ("copy", "part", "more", "mixed"))
    entaug.write(test[::-1], copy)
    entaug.write(test[:5], part)
    entaug.write([*test, *entaug.read(DEV)], more)
    entaug.write([*test[:5], *entaug.read(DEV)], mixed)
    line = original.splitlines().index(f'dev = "{DEV}"') + 1
    for path, what in (
        (TEST, "the same sentences as"),
        (copy, "the same sentences as"),
        (part, "5 sentences that are"),
        (more, "all the sentences of"),
    ):
        plan.write_text(original.replace(str(DEV), str(path)))
        with pytest.raises(
            EntaugError, match=rf"plan.toml:{line}: dev of toy has {what} .*; .*dev_in_test = \"allow\""
        ):
            run_experiment(plan, check_only=True)
        plan.write_text(plan.read_text().replace("sizes = [16]", 'sizes = [16]\ndev_in_test = "allow"'))
        assert len(prepare_splits(read_plan(plan))) == 1
    # Single sentences that dev and test share by chance are no reason to refuse.
    plan.write_text(original.replace(str(DEV), str(mixed)))
    assert len(prepare_splits(read_plan(plan))) == 1


def test_training_sentences_of_dev_and_test_are_told_dropped_or_refused(bert: Path, tmp_path: Path) -> None:
    gold = list(entaug.read(TRAIN))
    leaky = tmp_path / "leaky.conll"
    entaug.write([*entaug.read(TEST), *gold[:3]], leaky)
    plan = write_plan(tmp_path, bert, "seeds = [1]", "LEAK = 1")
    text = plan.read_text().replace(str(TEST), str(leaky)).replace("LEAK = 1", "")
    plan.write_text(text)
    [cell] = prepare_splits(read_plan(plan))
    assert cell.leaks == {"dev": 0, "test": 3}
    said = run_experiment(plan, check_only=True).warnings
    assert said == [f"toy: 3 of the {len(gold)} training sentences stand in test too"]
    assert cell.size == len(gold)
    plan.write_text('leakage = "drop"\n' + text)
    [cell] = prepare_splits(read_plan(plan))
    assert cell.leaks == {"dev": 0, "test": 0}
    assert cell.size == len(gold) - 3
    plan.write_text('leakage = "error"\n' + text)
    with pytest.raises(EntaugError, match="3 sentences of train stand in dev or test too"):
        prepare_splits(read_plan(plan))


def test_test_and_dev_are_drawn_from_what_no_subset_uses(bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert, "seeds = [1]", "sizes = [10, 30]")
    plan.write_text(plan.read_text().replace(f'"{TEST}"', "{rest = 30}").replace(f'"{DEV}"', "{rest = 15}"))
    small, large = prepare_splits(read_plan(plan))
    assert (small.size, large.size) == (10, 30)
    parts = [{s.tokens for s in entaug.read(path)} for path in (large.train, large.test, large.dev) if path]
    assert [len(part) for part in parts] == [30, 30, 15]
    assert len(set.union(*parts)) == 75
    assert {s.tokens for s in entaug.read(small.train)} < parts[0]
    assert small.test == large.test
    plan.write_text(plan.read_text().replace("{rest = 30}", "{rest = 300}"))
    with pytest.raises(EntaugError, match="test asks for 300 sentences, and 70 are left"):
        prepare_splits(read_plan(plan))


def test_drawn_sets_share_no_sentence_that_the_corpus_has_twice(bert: Path, tmp_path: Path) -> None:
    entaug.write([*entaug.read(TRAIN), *entaug.read(TRAIN)], tmp_path / "twice.jsonl")
    plan = write_plan(tmp_path, bert, "seeds = [1]", "sizes = [10]")
    text = plan.read_text().replace(str(TRAIN), "twice.jsonl")
    test, dev = f'"{TEST}"', f'"{DEV}"'
    plan.write_text(text.replace(test, "{rest = 60}").replace(dev, "{rest = 30}"))
    [cell] = prepare_splits(read_plan(plan))
    drawn = [list(entaug.read(path)) for path in (cell.test, cell.dev) if path]
    assert list(map(len, drawn)) == [60, 30]
    assert count_shared(*drawn) == 0
    # Nor one of a given set.
    for given, other, name in ((test, dev, "dev"), (dev, test, "test")):
        plan.write_text(text.replace(given, f'"{TRAIN}"').replace(other, "{rest = 30}"))
        with pytest.raises(EntaugError, match=f"{name} asks for 30 sentences, and 0 are left"):
            prepare_splits(read_plan(plan))


# ---------------------------------------------------------------------------------------------------------------- runs


def schedule_of(folder: Path, encoder: Path, top: str, methods: str | None = None, corpus: str = "") -> Schedule:
    plan = read_plan(write_plan(folder, encoder, top, corpus, methods))
    return Schedule(plan, prepare_splits(plan))


def test_every_arm_of_an_amount_takes_the_same_steps(bert: Path, tmp_path: Path) -> None:
    methods = '[[methods]]\nname = "mr"\n[[methods]]\nname = "lwtr"\np = 0.5\nlabel = "lwtr half"\nratios = [0.5, 3]\n'
    runs = schedule_of(tmp_path, bert, "seeds = [1, 2]\nratios = [1]", methods).runs
    told = {(run.arm, run.ratio): run.steps for run in runs}
    assert told == {
        ("gold", 0): 2,  # 16 sentences, 8 a step, one epoch
        ("gold-steps", 1): 4,
        ("duplicate", 1): 4,
        ("mr", 1): 4,
        ("gold-steps", 0.5): 3,
        ("duplicate", 0.5): 3,
        ("lwtr half", 0.5): 3,
        ("gold-steps", 3): 8,
        ("duplicate", 3): 8,
        ("lwtr half", 3): 8,
    }
    assert len(runs) == 2 * len(told)
    assert len({run.key for run in runs}) == len(runs)


def test_what_is_added_to_gold(bert: Path, tmp_path: Path) -> None:
    methods = '[[methods]]\nname = "lwtr"\nratios = [0.5, 2]\n'
    runs = schedule_of(tmp_path, bert, "seeds = [4]", methods).runs
    for run in runs:
        record, seconds = execute_run(run)
        assert seconds > 0
        assert record.key == run.key
        assert record.steps == run.steps
        assert record.to_dict()["sentences"]["gold"] == 16
        expected = {"gold": 0, "gold-steps": 0}.get(run.arm, round(16 * run.ratio))
        assert record.new == expected, run.arm
        line = record.to_dict()
        assert line["test_sentences"] == len(line["test_counts"]["gold"]) == len(entaug.read(TEST))
        assert RunRecord.from_dict(json.loads(json.dumps(line))).to_dict() == line
        scores = record.test
        assert scores.micro == sum(scores.sentences, MatchCounts())
    # Both ratios share one file, which holds what `entaug augment` makes of the subset and nothing else.
    [made] = (tmp_path / "plan" / "augmented").glob("*.jsonl")
    [train] = {run.split.train for run in runs}
    direct = entaug.methods.LabelWiseTokenReplacement(copies=2, seed=4).fit(entaug.read(train))
    assert [s.tokens for s in entaug.read(made)] == [s.tokens for s in direct.augment(entaug.read(train))]


@pytest.mark.usefixtures("one_other_process")
def test_runs_whose_sentences_are_made_need_no_models_of_the_method(
    bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = shutil.copytree(bert, tmp_path / "model")
    lm = f'[[methods]]\nname = "lm"\npreset = "paper"\nmasked_lm = "{model}"\n'
    methods = f'{lm}[[methods]]\nname = "lwtr"\n[[methods]]\ncombine = ["lm", "lwtr"]\nlabel = "both"\n'
    plan = write_plan(tmp_path, bert, 'seeds = [1, 2]\nbaselines = ["gold"]', methods=methods)
    assert main(["experiment", str(plan), "--sentences-only", "--check"]) == 0
    assert capsys.readouterr().err == f"{plan}: valid; 4 files of sentences, 0 of them before\n"
    assert not (tmp_path / "plan" / "augmented").exists()
    assert main(["experiment", str(plan), "--sentences-only"]) == 0
    told = capsys.readouterr().err
    assert "3 of 4 files of sentences\n" in told
    assert "4 files of sentences, 0 of them before" in told
    assert not (tmp_path / "plan" / "runs.jsonl").exists()
    shutil.rmtree(model)
    made = {path: path.read_bytes() for path in (tmp_path / "plan" / "augmented").glob("*.jsonl")}
    assert run_experiment(plan, jobs=1).runs_done == 8
    assert {path: path.read_bytes() for path in (tmp_path / "plan" / "augmented").glob("*.jsonl")} == made
    with pytest.raises(EntaugError, match="model"):
        run_experiment(write_plan(tmp_path, bert, "seeds = [3]", methods=methods), sentences_only=True)


def test_the_same_run_gives_the_same_record(bert: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    found = []
    for folder in ("a", "b"):
        run = schedule_of(tmp_path / folder, bert, "seeds = [1]").runs[-1]
        found.append(json.dumps(execute_run(run)[0].to_dict()))
    assert found[0] == found[1]


def test_keys_follow_what_matters_and_nothing_else(bert: Path, tmp_path: Path) -> None:
    def keys(top: str, methods: str, corpus: str = "sizes = [16]") -> set[str]:
        return {run.key for run in schedule_of(tmp_path, bert, top, methods, corpus).runs}

    base = keys("seeds = [1]", '[[methods]]\nname = "mr"\n')
    assert base == keys("seeds = [1]", '[[methods]]\nname = "mr"\nlabel = "another"\n')
    more = keys("seeds = [1, 2]", '[[methods]]\nname = "mr"\n')
    assert base < more
    changed = keys("seeds = [1]", '[[methods]]\nname = "mr"\np = 0.5\n')
    assert len(base & changed) == len(base) - 1  # the baselines are the same
    assert not base & keys("seeds = [1]", '[[methods]]\nname = "mr"\n', 'sizes = [16]\nsubset = "first"')
    # Gold for as many steps is one run, whichever ratios come to as many.
    few = schedule_of(tmp_path, bert, "seeds = [1]\nratios = [0.9, 1]", None, "sizes = [16]").runs
    assert len({run.key for run in few if run.arm == "gold-steps"}) == 1


def test_amounts_of_the_patience_rule() -> None:
    assert patience_ratios(999) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert patience_ratios(1000)[:5] == [0.25, 0.5, 0.75, 1, 2]
    assert [copies_for(a, "patience") for a in (0.25, 1, 2, 3, 4, 7, 10)] == [1, 1, 3, 3, 6, 10, 10]
    assert [copies_for(a, (0.5, 2.0)) for a in (0.5, 2)] == [2, 2]


def f1_record(run: RunSpec, f1: float) -> RunRecord:
    counts = MatchCounts(round(f1 * 100), 100, 100)
    scores = Scores({"X": counts}, {"1": counts}, {"1-10": counts}, {"flat": counts}, (counts,))
    without_sentences = replace(scores, sentences=())
    return RunRecord(key=run.key, **run.labels(), steps=run.steps, new=0, test=scores, dev=without_sentences)


def labels_of(runs: Sequence[RunSpec]) -> list[tuple[str, dict[str, Any]]]:
    return [(run.key, run.labels()) for run in runs]


def test_the_patience_rule_stops_after_three_amounts_that_are_no_better(bert: Path, tmp_path: Path) -> None:
    schedule = schedule_of(tmp_path, bert, 'seeds = [1, 2]\nratios = "patience"')
    by_ratio = {1: 0.5, 2: 0.7, 3: 0.6, 4: 0.7, 5: 0.69, 6: 0.9}
    records: dict[str, RunRecord] = {}
    tried: list[float] = []
    while True:
        schedule.advance(records)
        new = [run for run in schedule.runs if run.arm == "mr" and run.key not in records]
        if not new:
            break
        assert {run.seed for run in new} == {1, 2}
        tried.append(new[0].ratio)
        for run in new:
            # a ratio is not judged before all its seeds are there.
            records[run.key] = f1_record(run, by_ratio[int(run.ratio)])
            if run.seed == 1:
                known = len(schedule.runs)
                schedule.advance(records)
                assert len(schedule.runs) == known
    assert tried == [1, 2, 3, 4, 5]  # 2 is the best; 3, 4 (only as good) and 5 are no better
    told = {(run.arm, run.ratio) for run in schedule.runs if run.arm in ("gold-steps", "duplicate")}
    assert told == {("gold-steps", 2), ("duplicate", 2)}
    assert schedule.chosen == {r.key for r in schedule.runs if (r.arm, r.ratio) == ("mr", 2)}


# ------------------------------------------------------------------------------------------------------------- records


def test_records_survive_half_a_line_and_a_change_of_plan(bert: Path, tmp_path: Path) -> None:
    schedule = schedule_of(tmp_path, bert, "seeds = [1, 2]")
    folder = tmp_path / "plan"
    records = RecordStore(folder)
    for run in reversed(schedule.runs):
        records.append(f1_record(run, 0.5), 1.0)
    whole = (folder / "runs.jsonl").read_bytes()
    (folder / "runs.jsonl").write_bytes(whole[:-20])  # killed in the middle of the last record
    again = RecordStore(folder)
    assert len(again.records) == len(schedule.runs) - 1
    again.append(f1_record(schedule.runs[0], 0.5), 1.0)
    assert len(RecordStore(folder).records) == len(schedule.runs)
    again.sort(labels_of(schedule.runs))
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    assert [line["key"] for line in lines] == [run.key for run in schedule.runs]
    assert lines[0]["arm"] == "gold"
    # Fewer runs in the plan: the others are put aside, and come back with it.
    fewer = [run for run in schedule.runs if run.seed == 1]
    RecordStore(folder).sort(labels_of(fewer))
    assert len((folder / "runs.jsonl").read_text().splitlines()) == len(fewer)
    assert len((folder / "other-runs.jsonl").read_text().splitlines()) == len(schedule.runs) - len(fewer)
    assert len(RecordStore(folder).records) == len(schedule.runs)


def test_no_record_is_lost_where_others_run_an_edited_plan(bert: Path, tmp_path: Path) -> None:
    mine, other, third = schedule_of(tmp_path, bert, "seeds = [1, 2]").runs[:3]
    folder = tmp_path / "plan"
    old = RecordStore(folder)  # of a process that runs for long
    for run in (other, third):  # what is executed by the plan of before goes to the other file
        store = RecordStore(folder)
        store.append(f1_record(run, 0.5), 1.0)
        store.sort(labels_of([run]))
    old.append(f1_record(mine, 0.5), 1.0)
    old.refresh()
    old.sort(labels_of([mine]))
    assert RecordStore(folder).records.keys() == {mine.key, other.key, third.key}


@pytest.mark.parametrize("files", [1, 2, 3])
def test_no_record_is_lost_where_sorting_is_interrupted(
    files: int, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, folder, written = schedule_of(tmp_path, bert, "seeds = [1, 2]").runs, tmp_path / "plan", 0
    for run in runs:
        RecordStore(folder).append(f1_record(run, 0.5), 1.0)
    RecordStore(folder).sort(labels_of(runs[:2]))

    @contextmanager
    def atomic(path: Path) -> Iterator[Any]:
        nonlocal written
        with atomic_file(path) as stream:
            yield stream
        if (written := written + 1) == files:
            raise KeyboardInterrupt

    monkeypatch.setattr("entaug.study.records.atomic_file", atomic)
    with pytest.raises(KeyboardInterrupt):
        RecordStore(folder).sort(labels_of(runs[1:4]))
    assert RecordStore(folder).records.keys() == {run.key for run in runs}


def test_a_run_whose_data_was_changed_meanwhile_has_no_record(bert: Path, tmp_path: Path) -> None:
    run = schedule_of(tmp_path, bert, "seeds = [1]").runs[0]
    assert run.key
    entaug.write(list(entaug.read(run.split.train))[:-1], run.split.train)
    with pytest.raises(InputError, match="another command has changed the data of the plan meanwhile"):
        execute_run(run)


@pytest.mark.usefixtures("one_other_process")
def test_records_of_another_device_are_told_before_runs_are_added(bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert, "seeds = [1]")
    [first, *_] = schedule_of(tmp_path, bert, "seeds = [1]").runs
    elsewhere = {**current_environment(), "device": "cuda (H100)"}
    RecordStore(tmp_path / "plan").append(replace(f1_record(first, 0.5), environment=elsewhere), 1.0)
    with (tmp_path / "plan" / "runs.jsonl").open("ab") as stream:
        stream.write(b"{\n")
    notes: list[str] = []
    run_experiment(plan, jobs=1, report=notes.append)
    assert [note.partition(";")[0] for note in notes] == [
        f"the records are of device {current_environment()['device']} and cuda (H100)",
        "damaged lines of runs.jsonl moved to damaged-runs.jsonl: 1",
    ]


def test_lines_that_are_no_records_are_put_aside(bert: Path, tmp_path: Path) -> None:
    runs = schedule_of(tmp_path, bert, "seeds = [1]").runs
    record = replace(f1_record(runs[0], 0.5), dev=None)
    good = record.to_dict()
    bad = [
        b"\xff\xfe",
        b"[1]",
        b"[" * 100_000,
        b'{"key": "x"}',
        json.dumps({**good, "key": "y", "dev": 3}).encode(),
        json.dumps({**good, "key": "z", "test": {"by_type": {"X": {}}}}).encode(),
    ]
    whole = b"\n".join([*bad, json.dumps(good).encode(), b'{"half'])  # the last one of a process that was killed
    (tmp_path / "plan" / "runs.jsonl").write_bytes(whole)
    for name in ("other-runs.jsonl", "times.jsonl"):
        (tmp_path / "plan" / name).write_bytes(b'{}\n{"key": [], "seconds": 1}\n{"key": "x", "seconds": "1"}\n')
    store, other = RecordStore(tmp_path / "plan"), RecordStore(tmp_path / "plan")
    for one in (store, other):
        one.sort(labels_of(runs))
        assert (one.records, one.seconds) == ({record.key: record}, {})
    damaged = (tmp_path / "plan" / "damaged-runs.jsonl").read_bytes().splitlines()
    aside = [*bad, b"{}", b'{"key": [], "seconds": 1}', b'{"key": "x", "seconds": "1"}']  # also of other-runs.jsonl
    assert damaged == sorted(aside)
    assert len((tmp_path / "plan" / "runs.jsonl").read_bytes().splitlines()) == 1


def test_a_full_disk_is_told_with_the_file_of_the_record(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [run, *_] = schedule_of(tmp_path, bert, "seeds = [1]").runs

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("entaug.study.records.os.fsync", fail)
    with pytest.raises(OutputError, match=r"times\.jsonl: cannot be written \(No space left.*free some space"):
        RecordStore(tmp_path / "plan").append(f1_record(run, 0.5), 1.0)


# ------------------------------------------------------------------------------------------------------------ failures


@pytest.mark.usefixtures("one_other_process")
def test_a_run_that_breaks_off_is_one_line_and_finished_runs_are_kept(
    bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = write_plan(tmp_path, bert, 'seeds = [1]\nbaselines = ["gold"]')
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "augmented").write_text("a file where a folder should be")
    assert main(["experiment", str(plan), "--jobs", "1"]) == 3
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("1 of 2 runs")
    assert said[1].startswith("entaug: error: the run toy, 16, linear, mr 1N, seed 1 could not use a file")
    assert said[1].endswith("finished runs are kept")
    assert len(said) == 2
    assert len((tmp_path / "plan" / "runs.jsonl").read_text().splitlines()) == 1
    # Where the folder for all of it cannot be made, that is told too.
    shutil.rmtree(tmp_path / "plan")
    (tmp_path / "plan").write_text("")
    assert main(["experiment", str(plan), "--jobs", "1"]) == 3
    assert "plan/data: cannot be written (Not a directory); make the folder first" in capsys.readouterr().err


def test_a_second_process_says_that_it_waits(bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = schedule_of(tmp_path, bert, "seeds = [1]").runs
    records = RecordStore(tmp_path / "plan")
    for run in runs:
        records.append(f1_record(run, 0.5), 1.0)
    with ThreadPoolExecutor(1) as other:
        with lock(tmp_path / "plan" / "runs.jsonl"):
            done = other.submit(main, ["experiment", str(tmp_path / "plan.toml")])
            time.sleep(1)
            assert not done.done()
        assert done.result() == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"waiting: another process is running {tmp_path / 'plan'}"
    assert said[-2].startswith("4 runs done, 4 of them before")


def test_errors_name_their_run(bert: Path, tmp_path: Path) -> None:
    gold, *_, new = schedule_of(tmp_path, bert, "seeds = [7]").runs
    told = run_error(new, InputError("nothing to do", path="x", line=3, remedy="use another"))
    assert str(told) == "x:3: nothing to do (in the run toy, 16, linear, mr 1N, seed 7); use another"
    told = run_error(gold, ValueError("one\ntwo"))
    assert str(told).startswith("the run toy, 16, linear, gold, seed 7 failed (ValueError: one two); correct it")
    assert "perhaps for lack of memory" in str(run_error(gold, BrokenProcessPool()))


def test_processes_for_runs_never_hear_ctrl_c() -> None:
    ask = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with interrupts_blocked():
        assert subprocess.run([sys.executable, "-c", ask], capture_output=True, check=True).stdout == b"True\n"
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


@pytest.mark.slow
def test_ctrl_c_ends_an_experiment_and_all_its_processes(bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert, "seeds = [1, 2, 3]")
    plan.write_text(plan.read_text().replace("epochs = 1", "epochs = 1000"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "entaug", "experiment", str(plan), "--jobs", "1"]
    # In a group of its own, which gets the signal whole, as from a terminal.
    with (
        heeding_ctrl_c(),
        subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, start_new_session=True) as process,
    ):
        wait_until(lambda: any((tmp_path / "plan").glob(".*.writing.lock")))
        time.sleep(0.3)  # a process for runs is beginning
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=600)
    assert process.returncode == 130
    assert said == b"entaug: interrupted; run the same command again to resume\n"
    assert not list((tmp_path / "plan").glob(".*.lock"))

    def is_left() -> bool:
        with contextlib.suppress(ProcessLookupError):  # raised once nobody of the group is left
            os.killpg(process.pid, 0)
            return True
        return False

    wait_until(lambda: not is_left())


# -------------------------------------------------------------------------------------------------------- command line


def table_of(folder: Path) -> str:
    return markdown_report(read_run_records([folder]))


def test_an_experiment_from_plan_to_report(bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write_plan(tmp_path, bert, "seeds = [1, 2]")
    assert main(["experiment", str(plan), "--check"]) == 0
    assert "valid; 8 runs with 28 steps" in capsys.readouterr().err
    assert not (tmp_path / "plan" / "runs.jsonl").exists()
    assert main(["experiment", str(plan), "--jobs", "2", "--device", "cpu"]) == 0
    assert "8 runs done, 0 of them before" in capsys.readouterr().err
    first = (tmp_path / "plan" / "runs.jsonl").read_bytes()
    assert main(["experiment", str(plan), "--jobs", "1", "--device", "cpu"]) == 0
    assert "8 runs done, 8 of them before" in capsys.readouterr().err
    assert (tmp_path / "plan" / "runs.jsonl").read_bytes() == first
    text = table_of(tmp_path / "plan")
    assert "\n| mr | 1N | 16 | " in text
    assert "toy" in text
    with pytest.raises(SystemExit) as stopped:
        main(["experiment", str(plan), "--jobs", "0"])
    assert stopped.value.code == 2
    assert "jobs must be an integer of at least 1" in capsys.readouterr().err


@pytest.mark.slow
def test_killed_at_any_moment_and_run_again_the_table_is_the_same(bert: Path, tmp_path: Path) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole, killed = (write_plan(tmp_path / name, bert, "seeds = [1, 2]") for name in ("whole", "killed"))
    run_experiment(whole, jobs=1)
    command = [sys.executable, "-m", "entaug", "experiment", str(killed), "--jobs", "1"]
    rng = random.Random(5)
    kills = 0
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    for _ in range(10):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)
        with_line = rng.random() < 0.5
        if with_line and process.stderr is not None:
            process.stderr.readline()  # right after a record was written
        else:
            time.sleep(rng.uniform(0.5, 8))
        kills += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
    assert kills >= 1
    run_experiment(killed, jobs=2)
    names = ("runs.jsonl",)
    for name in names:
        assert (tmp_path / "whole" / "plan" / name).read_bytes() == (tmp_path / "killed" / "plan" / name).read_bytes()
    assert table_of(tmp_path / "whole" / "plan") == table_of(tmp_path / "killed" / "plan")


@pytest.mark.usefixtures("one_other_process")
def test_nested_corpora_need_a_tagger_that_can_or_a_choice(bert: Path, tmp_path: Path) -> None:
    nested = tmp_path / "nested.jsonl"
    sentences = [
        Sentence(["the", f"city{i}", "university"], [Mention("ORG", [(0, 3)]), Mention("LOC", [(1, 2)])])
        for i in range(30)
    ]
    entaug.write(sentences, nested)
    plan = write_plan(tmp_path, bert, 'seeds = [1]\nbaselines = ["gold"]', 'sizes = [12]\noverlap = "outermost"')
    text = plan.read_text().replace(str(TRAIN), str(nested)).replace(f'"{DEV}"', "{rest = 6}")
    plan.write_text(text.replace(f'"{TEST}"', "{rest = 10}"))
    state = run_experiment(plan, jobs=1)
    assert state.runs_done == state.runs == 2
    without = plan.read_text().replace('overlap = "outermost"', "")
    plan.write_text(without)
    with pytest.raises(EntaugError, match="nested or discontinuous mentions, which linear cannot learn"):
        run_experiment(plan, jobs=1)


@pytest.mark.slow
def test_a_run_that_fails_does_not_keep_the_others_from_being_done(bert: Path, tmp_path: Path) -> None:
    same = tmp_path / "same.jsonl"
    entaug.write([Sentence([f"w{i}", "in", "Kent"], [Mention("LOC", [(2, 3)])]) for i in range(30)], same)
    methods = '[[methods]]\nname = "mr"\n[[methods]]\nname = "lwtr"\np = 1\n'
    plan = write_plan(tmp_path, bert, "seeds = [1]", "sizes = [12]", methods)
    text = plan.read_text().replace(str(TRAIN), str(same)).replace(f'"{DEV}"', "{rest = 6}")
    plan.write_text(text.replace(f'"{TEST}"', "{rest = 10}"))
    with pytest.raises(EntaugError, match=r"\(in the run toy, 12, linear, mr 1N, seed 1\)"):
        run_experiment(plan, jobs=1)
    done = [json.loads(line)["arm"] for line in (tmp_path / "plan" / "runs.jsonl").read_text().splitlines()]
    assert done == ["gold", "gold-steps", "duplicate", "lwtr"]


def test_what_a_killed_experiment_left_among_its_data_is_removed(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
from pathlib import Path
from entaug import Sentence
from entaug.study.data import write_part
if len(sys.argv) > 1:  # just before the part is moved into place
    sys.addaudithook(lambda event, args: event == "os.rename" and os.kill(os.getpid(), signal.SIGKILL))
write_part(Path({str(tmp_path / "data")!r}), "toy.dev", [Sentence(["Ada"])])
"""
    assert subprocess.run([sys.executable, "-c", code, "killed"], check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / "data" / "toy.dev.jsonl").exists()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["toy.dev.jsonl"]
