"""``entaug auto`` from files to the folder of the result, with taggers that need no training."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

import pytest

import entaug
from conftest import EXAMPLE
from entaug.backends.soft_labels import TagProbabilities
from entaug.commands.main import main
from entaug.config.params import Configurable
from entaug.core.corpus import with_keys
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, InputWarning, OutputError, ParameterError
from entaug.methods import create_augmenter
from entaug.study.auto_files import AutoSummary
from entaug.study.choice import RECIPES, Gain
from entaug.study.data import prepare_splits
from entaug.study.engine import StudyProgress
from entaug.study.plan import read_plan
from entaug.study.runs import execute_run
from entaug.study.schedule import Schedule
from entaug.taggers.base import TAGGERS, TaggerTrainingConfig, load_tagger, write_config
from helpers import tiny
from helpers.fakes import FakeMaskedLM

NAMES = [f"{a}{b}" for a in ("Ada", "Bo", "Eve", "Ian", "Una") for b in ("ria", "lev", "mon", "tis")]
PLACES = [f"{a}{b}" for a in ("Rom", "Ber", "Lon", "Par", "Kyo") for b in ("ia", "ville", "burg", "to")]


def corpus(start: int, stop: int) -> list[Sentence]:
    return [
        Sentence(
            [NAMES[i % 20], "saw", f"thing{i}", "in", PLACES[(i * 7) % 20], f"v{start}"],
            [Mention("PER", [(0, 1)]), Mention("LOC", [(4, 5)])],
        )
        for i in range(start, stop)
    ]


@dataclass(kw_only=True, eq=False)
class OracleTagger(Configurable):
    """Knows all mentions, and finds each with a probability that depends on what it was trained with."""

    name: ClassVar[str] = "oracle"
    gain: ClassVar[float] = 0.4
    flat: ClassVar[bool] = True
    trained: ClassVar[list[tuple[set[str], list[Sentence]]]] = []
    encoders: ClassVar[list[tuple[str, bool]]] = []  # of the trainings, and whether they had augmented sentences

    encoder: str = "none"
    labels_: list[str] = field(default_factory=list, init=False)
    state_: tuple[int, float] = field(default=(0, 0.0), init=False)

    def check_requirements(self) -> None:
        pass

    def fit(
        self,
        train: Iterable[Sentence],
        dev: object = None,
        config: TaggerTrainingConfig | None = None,
        progress: Any = None,
        augmented: Iterable[Sentence] = (),
    ) -> OracleTagger:
        assert config is not None
        assert dev is None
        gold, augmented = list(train), list(augmented)
        OracleTagger.trained.append(({"".join(s.tokens) for s in gold}, augmented))
        OracleTagger.encoders.append((self.encoder, bool(augmented)))
        self.state_ = (config.seed, 0.95 if self.encoder == "large" else 0.5 + self.gain * bool(augmented))
        self.labels_ = ["LOC", "PER"]
        if progress:
            progress(config.total_steps(1), config.total_steps(1), 0.1)
        return self

    def _finds(self, token: str) -> bool:
        digest = blake2b(f"{self.state_[0]} {token}".encode(), digest_size=4).digest()
        return int.from_bytes(digest) / 2**32 < self.state_[1]

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        result = []
        for sentence in sentences:
            assert not sentence.mentions
            known = [(i, "PER" if t in NAMES else "LOC") for i, t in enumerate(sentence.tokens) if t in NAMES + PLACES]
            mentions = [
                Mention(label, [(i, i + 1)]) for i, label in known if self._finds("".join(sentence.tokens[: i + 1]))
            ]
            result.append(sentence.with_(mentions=mentions))
        return result

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        if not self.flat:
            raise ParameterError("no probabilities")
        tags = ["O", "B-LOC", "B-PER"]
        bare = [sentence.with_(mentions=()) for sentence in sentences]
        return [
            TagProbabilities(tags, [[0.9 if tag == own else 0.05 for tag in tags] for own in sentence.iob()])
            for sentence in self.predict(bare)
        ]

    def save(self, folder: str | Path) -> None:
        Path(folder).mkdir()
        Path(folder, "weights").write_bytes(bytes(1000 if self.encoder == "large" else 200))
        write_config(Path(folder), {"tagger": "oracle", "params": {}, "state": self.state_})

    def restore(self, folder: Path) -> OracleTagger:
        seed, quality = json.loads((folder / "tagger.json").read_text())["state"]
        self.state_, self.labels_ = (seed, quality), ["LOC", "PER"]
        return self


@pytest.fixture(autouse=True)
def oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TAGGERS._built_in, "oracle", f"{__name__}:OracleTagger")
    monkeypatch.setattr(OracleTagger, "trained", [])
    monkeypatch.setattr(OracleTagger, "encoders", [])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    entaug.write(corpus(0, 60), tmp_path / "train.conll")
    entaug.write(corpus(100, 160), tmp_path / "more.conll")
    entaug.write(corpus(200, 240), tmp_path / "dev.conll")
    return tmp_path


def run(files: Path, out: str = "out", **options: Any) -> Any:
    given: dict[str, Any] = {
        "unlabelled": [files / "more.conll"],
        "tagger": "oracle",
        "recipes": ["self", "mr", "mr-soft"],
    }
    return entaug.auto(files / "train.conll", files / out, **{**given, "steps": 8, **options})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_a_recipe_that_helps_is_chosen_and_its_result_is_whole(files: Path) -> None:
    summary = run(files)
    assert summary.recipe in ("self", "mr", "mr-soft")
    assert summary.chosen.low > 0
    assert sorted(path.name for path in (files / "out").iterdir()) == [
        "augmented.jsonl",
        "plan.toml",
        "report.html",
        "summary.json",
        "tagger",
        "train.jsonl",
    ]
    assert not list(files.glob("*.partial"))
    sentences = entaug.read(files / "out" / "train.jsonl")
    gold = list(with_keys(entaug.read(files / "train.conll")))
    assert list(sentences[:60]) == gold
    assert {source for s in sentences[60:] if s.provenance for source in s.provenance.sources} <= {s.id for s in gold}
    assert len(sentences) == 60 + summary.augmented
    assert sentences[60:] == entaug.read(files / "out" / "augmented.jsonl")
    assert json.loads((files / "out" / "summary.json").read_text())["recipe"] == summary.recipe
    *_, chosen, gold_alone, larger, result, advice = summary.lines()
    assert chosen == f"chosen: {summary.recipe}"
    assert gold_alone == f"gold alone with minilm: F1 {summary.gold_f1:.1f}"
    assert larger == "gold alone with mpnet: not measured; +11.8 points over gold alone with minilm on other corpora"
    interval = f"{summary.chosen.expected:+.1f} ({summary.chosen.low:.1f} to {summary.chosen.high:.1f})"
    about = f"about F1 {summary.gold_f1 + summary.chosen.expected:.1f}"
    assert result == f"result: {summary.recipe} with minilm: {about}, {interval} over gold alone"
    assert advice.startswith("next: if a larger tagger is not too slow for you, `encoder=mpnet`; let a larger encoder")
    tagger = load_tagger(files / "out" / "tagger")
    [predicted] = tagger.predict([corpus(300, 301)[0].with_(mentions=())])
    assert predicted.tokens[1] == "saw"
    assert "expect" in (files / "out" / "report.html").read_text()


def test_a_second_repetition_with_the_same_results_adds_no_certainty(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is found depends on no seed, so repetitions differ by their folds alone.
    monkeypatch.setattr(OracleTagger, "_finds", lambda self, token: crc32(token.encode()) % 100 < 100 * self.state_[1])
    once, twice = (run(files, f"out{repeats}", repeats=repeats).gains for repeats in (1, 2))
    assert once[0].measured > 20
    assert once == twice


def test_soft_labels_are_in_the_file_and_gold_sentences_have_none(files: Path) -> None:
    run(files, recipes=["self"])
    sentences = entaug.read(files / "out" / "train.jsonl")
    new = [sentence for sentence in sentences if sentence.provenance]
    assert len(new) == 60
    assert all(TagProbabilities.from_sentence(sentence) is not None for sentence in new)
    assert not any(TagProbabilities.from_sentence(sentence) for sentence in sentences if not sentence.provenance)


def test_unlabelled_sentences_get_ids_of_their_own(files: Path) -> None:
    # Two sentences are on one line.
    (files / "news.txt").write_text("Ada left Rome. Bo came to Paris, but nobody knew.\nEve slept.\n")
    with warnings.catch_warnings(action="error"):  # that a file of its own has no mention is nothing to check
        run(files, recipes=["self"], unlabelled=[files / "news.txt"])
    new = [sentence for sentence in entaug.read(files / "out" / "train.jsonl") if sentence.provenance]
    assert len({sentence.id for sentence in new}) == len(new) == 3
    assert {s.provenance.details["text"] for s in new if s.provenance} == {"news.txt:1", "news.txt:1.2", "news.txt:2"}


def test_no_held_out_sentence_is_trained_on(files: Path) -> None:
    # Unlabelled text that repeats training sentences, in other tokens too: those are left out.
    again = [Sentence(["".join(s.tokens[:2]), *s.tokens[2:]]) for s in corpus(0, 60)]
    entaug.write([*corpus(100, 120), *again], files / "more.jsonl")
    summary = run(files, unlabelled=[files / "more.jsonl"])
    assert "60 sentences of the unlabelled text are training sentences" in summary.notes
    whole = {"".join(s.tokens) for s in corpus(0, 60)}
    in_folds = [(gold, new) for gold, new in OracleTagger.trained if gold != whole]
    assert len(in_folds) == 2 * 5 * (3 + 3)
    for gold, new in in_folds:
        assert len(gold) == 48
        # What a method makes of held-out sentences would show their third word, which no other sentence has.
        held_out = {s.tokens[2] for s in corpus(0, 60) if "".join(s.tokens) not in gold}
        assert not held_out & {token for sentence in new for token in sentence.tokens}


def test_recipes_of_another_language_are_left_out(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class EnglishLM(FakeMaskedLM):
        languages = ("en",)

    def create(method: str, **params: Any) -> Any:
        return create_augmenter(method, **({"masked_lm": EnglishLM()} if method == "lm" else {}), **params)

    monkeypatch.setattr(importlib.import_module("entaug.study.auto"), "create_augmenter", create)
    german = "der Hund und die Katze sind nicht in dem Haus".split()
    gold = [Sentence([*s.tokens, *german], s.mentions) for s in corpus(0, 60)]
    entaug.write(gold, files / "train.conll")
    summary = run(files, recipes=["mr", "lm"], encoder="minilm")
    assert {gain.recipe for gain in summary.gains} == {"mr"}
    assert sum("serves English, and the text looks German" in note for note in summary.notes) == 2
    assert any(note.startswith("the encoder minilm serves English") for note in summary.notes)
    assert any("the recipe lm is not tried" in note for note in summary.notes)
    # mpnet is English, too.
    assert not any("mpnet" in line for line in summary.lines())
    assert "next: name an encoder of the language of the corpus: `encoder=multilingual-e5`; " in summary.lines()[-1]


def test_where_nothing_helps_gold_alone_is_trained(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OracleTagger, "gain", -0.1)
    summary = run(files)
    assert (summary.recipe, summary.augmented, summary.chosen) == ("gold", 0, None)
    chosen, *_, result, _ = summary.lines()[-5:]
    assert chosen.startswith("chosen: gold alone; no recipe shows a gain that is credible")
    assert result == f"result: gold alone with minilm: F1 {summary.gold_f1:.1f}"
    assert entaug.read(files / "out" / "train.jsonl") == entaug.read(files / "train.conll")
    assert json.loads((files / "out" / "tagger" / "tagger.json").read_text())["state"][1] == 0.5


def test_a_chosen_recipe_may_add_no_sentence(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("entaug.study.auto")
    train_run: Any = module.train_run
    monkeypatch.setattr(module, "train_run", lambda *given, **named: (train_run(*given, **named)[0], []))
    summary = run(files, recipes=["mr"])
    assert (summary.recipe, summary.augmented) == ("mr", 0)
    assert entaug.read(files / "out" / "train.jsonl") == entaug.read(files / "train.conll")


def test_what_to_do_next() -> None:
    def advice(**values: Any) -> str:
        return AutoSummary("train.conll", "out", 60, **values).lines()[-1]

    text = "next: name unlabelled text of the same kind (+3.0 points on other corpora): `unlabelled=FILE`"
    labels = "next: label more sentences: entaug suggest finds those that the teacher is least sure of"
    assert advice(encoder="own") == text
    measured = {"encoder": "minilm", "teacher_encoder": "mpnet", "unlabelled": 9, "gold_f1": 50.0, "recipe": "self"}
    gain = Gain("self", None, None, expected=5.0, low=4.0, high=6.0, risk=0.0)
    assert advice(**measured, gains=[gain], teacher_f1=54.0) == labels
    larger = "next: mpnet alone is 3.0 points above this result: `encoder=mpnet`; "
    assert advice(**measured, gains=[gain], teacher_f1=58.0) == larger + labels.removeprefix("next: ")


@pytest.mark.slow
def test_an_interrupted_run_goes_on_and_gives_the_same_bytes(files: Path) -> None:
    run(files, "whole")
    expected = contents(files / "whole")
    trainings = len(OracleTagger.trained)
    count, stop_at = 0, 1

    def interrupt(state: StudyProgress) -> None:
        nonlocal count
        count += 1
        if count == stop_at:
            raise KeyboardInterrupt

    stops = 0
    while not (files / "out").exists():
        count = 0
        try:
            run(files, progress=interrupt)
        except KeyboardInterrupt:
            stops += 1
            assert not (files / "out").exists()
        stop_at = 1 + stop_at % 9  # sooner and later, so that every phase is hit
        assert stops < 200
    assert stops > 10
    assert contents(files / "out") == expected
    assert not list(files.glob("*.partial"))
    assert len(OracleTagger.trained) < 4 * trainings


@pytest.mark.slow
def test_a_file_cut_off_by_a_kill_is_no_obstacle(files: Path) -> None:
    run(files, "whole")

    def stop(state: StudyProgress) -> None:
        if "fold 2" in state.phase:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(files, progress=stop)
    with (files / "out.partial" / "runs.jsonl").open("ab") as stream:
        stream.write(b'{"repeat":0,"fold":1,"rec')
    run(files)
    assert contents(files / "out") == contents(files / "whole")


def test_what_another_call_left_is_not_mixed_in(files: Path) -> None:
    def stop(state: StudyProgress) -> None:
        if "fold 1" in state.phase:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(files, progress=stop)
    with pytest.raises(OutputError, match="left by an interrupted run with other input or options"):
        run(files, seed=7)
    assert run(files, seed=7, force=True).recipe
    (files / "other.partial").mkdir()
    (files / "other.partial" / "mine.txt").write_text("keep")
    with pytest.raises(OutputError, match="does not belong to a run"):
        run(files, "other", force=True)
    assert (files / "other.partial" / "mine.txt").read_text() == "keep"


def test_dev_takes_the_place_of_folds_and_is_never_trained_on(files: Path) -> None:
    summary = run(files, dev=files / "dev.conll")
    assert summary.measured_on == "dev"
    assert summary.lines()[0] == "gains over gold alone, measured on the dev sentences with 3 seeds:"
    assert all(len(gold) == 60 for gold, _ in OracleTagger.trained)
    held_out = {s.tokens[2] for s in corpus(200, 240)}
    assert not any(held_out & set(sentence.tokens) for _, new in OracleTagger.trained for sentence in new)


def test_unlabelled_text_that_is_dev_is_refused(files: Path) -> None:
    with pytest.raises(InputError, match="is also a held-out file"):
        run(files, dev=files / "dev.conll", unlabelled=[files / "more.conll", files / "dev.conll"])
    texts = [" ".join(sentence.tokens) for sentence in (*corpus(100, 120), *corpus(200, 203))]
    (files / "news.txt").write_text("\n".join(texts))
    with pytest.raises(InputError, match=r"dev\.conll: 3 sentences of the unlabelled text stand in this held-out file"):
        run(files, dev=files / "dev.conll", unlabelled=[files / "news.txt"])
    with pytest.raises(InputError, match=r"of its sentences are in .*train\.conll too"):
        run(files, dev=files / "train.conll")
    assert not OracleTagger.trained


def test_unlabelled_text_with_test_sentences_is_refused_or_left_out(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = corpus(200, 203)
    entaug.write(test, files / "test.conll")
    entaug.write([*corpus(100, 160), *test], files / "news.jsonl")
    options: dict[str, Any] = {"unlabelled": [files / "news.jsonl"], "held_out": [files / "test.conll"]}
    with pytest.raises(
        InputError, match=r"test\.conll: 3 sentences of the unlabelled text stand in this held-out file"
    ):
        run(files, **options)
    with pytest.raises(ParameterError, match="held_out has nothing to be compared with"):
        run(files, held_out=[files / "test.conll"], unlabelled=[])
    assert not OracleTagger.trained
    summary = run(files, recipes=["self"], **options, drop_held_out=True)
    assert summary.augmented == 60
    assert "3 sentences of the unlabelled text are in test.conll and left out" in summary.notes
    assert {"news.jsonl", "test.conll", "train.conll"} == set(summary.files)
    trained = list(OracleTagger.trained)
    text = {"".join(sentence.tokens) for sentence in test}
    assert not any(text & {"".join(s.tokens) for s in new} for _, new in trained)
    # The plan repeats it.
    assert 'held_out = ["../test.conll"]\ndrop_held_out = true\n' in (files / "out" / "plan.toml").read_text()
    assert main(["auto", str(files / "out" / "plan.toml"), "-o", str(files / "again"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["augmented"] == 60
    assert contents(files / "again")["tagger/tagger.json"] == contents(files / "out")["tagger/tagger.json"]


def test_the_budget_limits_the_choice_in_a_fixed_order_and_is_kept(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr("entaug.study.runs._clock", lambda: 600.0 * next(clock))  # ten minutes a training
    assert not run(files, "small", budget=60).size.is_measured
    summary = run(files, "medium", budget=60 + 10 * 1.25 * 12)
    assert (summary.size.folds, summary.size.recipes, summary.size.repeats) == (3, 1, 1)
    assert [gain.recipe for gain in summary.gains] == ["self"]

    def stop(state: StudyProgress) -> None:
        if "fold 2" in state.phase:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(files, budget=60 + 10 * 1.25 * 12, progress=stop)
    run(files)  # without a budget: the design stays
    assert contents(files / "out") == contents(files / "medium")


def test_a_budget_too_small_says_what_would_do(files: Path) -> None:
    summary = run(files, budget=1e-6)
    assert summary.recipe == "gold"
    assert summary.gold_f1 is None
    assert any("the budget is too small to measure the gain of a recipe" in note for note in summary.notes)
    first, *tried, chosen, gold_alone, _, result, _ = summary.lines()
    assert first == "gains over gold alone, measured on other corpora; nothing was measured on this one:"
    assert tried[0] == "  self           expect +3.0 (-2.9 to 8.9)"
    assert chosen.startswith("chosen: gold alone; no recipe shows a gain that is credible")
    assert gold_alone == "gold alone with minilm: not measured"
    *without, advice = run(files, "none", recipes=[], folds=0, encoder="own").lines()
    assert without == [
        "gold alone with own: not measured",
        "gold alone with a larger encoder: not measured",
        "result: gold alone with own: not measured",
    ]
    assert advice.startswith("next: let a larger encoder label the text (+6.5 points on other corpora in place of")
    assert result == without[2].replace("own", "minilm")


def test_without_folds_a_larger_teacher_is_taken_for_its_gains_on_other_corpora(files: Path) -> None:
    summary = run(files, teacher_encoder="large", folds=0)
    assert OracleTagger.encoders == [("minilm", False), ("large", False), ("minilm", True)], "nothing is measured"
    assert (summary.recipe, summary.gold_f1, summary.measured_on) == ("self", None, "nothing")
    *_, larger, result, advice = summary.lines()
    assert larger == "gold alone with large, the teacher: not measured"
    assert result == "result: self with minilm: +6.5 (0.6 to 12.4) over gold alone"
    assert advice.endswith("label more sentences: entaug suggest finds those that the teacher is least sure of")
    again = entaug.auto(**{**_plan(files / "out" / "plan.toml"), "output": files / "again"})
    assert (again.recipe, again.gains) == (summary.recipe, summary.gains)
    for other in ("minilm", None):
        summary = run(files, f"small-{other}", teacher_encoder=other, folds=0)
        assert summary.recipe == "gold", "a teacher that is no larger is not trusted unmeasured"
        assert ("`teacher_encoder=NAME`" in summary.lines()[-1]) == (other is None)


@pytest.mark.slow
def test_the_plan_repeats_the_result(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(files)
    assert main(["auto", str(files / "out" / "plan.toml"), "-o", str(files / "again")]) == 0
    first, second = contents(files / "out"), contents(files / "again")
    assert "chosen: " in capsys.readouterr().err
    for name in ("train.jsonl", "plan.toml", "tagger/tagger.json"):
        assert first[name] == second[name], name
    with (files / "more.conll").open("a") as stream:
        stream.write("more O\n\n")
    assert main(["auto", str(files / "out" / "plan.toml"), "-o", str(files / "third")]) == 2
    assert "has changed since the plan was written" in capsys.readouterr().err


def test_a_plan_names_files_for_what_was_given_in_memory(files: Path) -> None:
    gold, text = entaug.read(files / "train.conll"), entaug.read(files / "more.conll")
    first = entaug.auto(gold, files / "out", unlabelled=text, tagger="oracle", recipes=["self"], steps=8, folds=2)
    plan = (files / "out" / "plan.toml").read_text()
    assert 'train = "given-train.jsonl"\nunlabelled = ["given-unlabelled.jsonl"]\n' in plan
    assert "# Write what was given in memory" in plan
    assert "entaug-" not in plan, "no folder that is gone"
    entaug.write(gold, files / "out" / "given-train.jsonl")
    entaug.write(text, files / "out" / "given-unlabelled.jsonl")
    assert run_plan(files)["gains"] == json.loads((files / "out" / "summary.json").read_text())["gains"]
    assert first.input == "train"


def test_a_teacher_may_have_an_encoder_of_its_own(files: Path) -> None:
    summary = run(files, teacher_encoder="large", recipes=["self"])
    # Of the five folds twice, and of all sentences once.
    assert OracleTagger.encoders.count(("large", False)) == 2 * 5 + 1
    assert OracleTagger.encoders.count(("large", True)) == 0
    assert OracleTagger.encoders.count(("minilm", False)) == 2 * 5 * 3 + 1
    assert OracleTagger.encoders.count(("minilm", True)) == 2 * 5 + 1
    assert summary.gold_f1 is not None
    assert summary.teacher_f1 is not None
    assert summary.teacher_f1 > summary.gold_f1 + 20
    assert f"gold alone with large, the teacher: F1 {summary.teacher_f1:.1f}" in summary.lines()
    result = summary.gold_f1 + summary.chosen.expected
    advice = f"next: large alone is {summary.teacher_f1 - result:.1f} points above this result: `encoder=large`"
    assert summary.lines()[-1].startswith(advice) == (summary.teacher_f1 > result)
    # The labels of the large teacher, which misses little; a small one misses a half.
    new = [sentence for sentence in entaug.read(files / "out" / "train.jsonl") if sentence.provenance]
    assert sum(len(sentence.mentions) for sentence in new) > 1.7 * len(new)
    assert 'teacher_encoder = "large"' in (files / "out" / "plan.toml").read_text()
    assert entaug.auto(**{**_plan(files / "out" / "plan.toml"), "output": files / "again"}).gains == summary.gains


@dataclass(kw_only=True, eq=False)
class SteadyTagger(OracleTagger):
    """Takes a second for a step."""

    name: ClassVar[str] = "steady"
    now: ClassVar[float] = 0.0

    def fit(
        self,
        train: Iterable[Sentence],
        dev: object = None,
        config: TaggerTrainingConfig | None = None,
        progress: Any = None,
        augmented: Iterable[Sentence] = (),
    ) -> OracleTagger:
        steps = config.total_steps(1) if config else 0
        for step in range(1, steps + 1):
            SteadyTagger.now += 1
            if progress:
                progress(step, steps, 0.1)
        return super().fit(train, dev, config, None, augmented)


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Options with which time passes as trainings take steps."""
    monkeypatch.setitem(TAGGERS._built_in, "steady", f"{__name__}:SteadyTagger")
    monkeypatch.setattr(SteadyTagger, "now", 0.0)
    for module in ("engine", "runs"):
        monkeypatch.setattr(sys.modules[f"entaug.study.{module}"], "_clock", lambda: SteadyTagger.now)
    return {"tagger": "steady", "teacher_encoder": "large", "folds": 0, "steps": 10}


def test_progress_and_time_are_those_of_the_whole(files: Path, steady: dict[str, Any]) -> None:
    """Also without folds: the first training, the teacher's and the student's."""
    states: list[StudyProgress] = []
    run(files, progress=states.append, **steady)
    *states, last = states
    assert (last.phase, last.steps_done) == ("writing the report", 30)
    assert {state.steps for state in states} == {30}
    assert [state.steps_done for state in states] == [*range(11), *range(10, 21), *range(20, 31)]
    assert [state.seconds_left for state in states] == [
        None if state.steps_done == 0 else 30 - state.steps_done for state in states
    ]


def test_time_left_where_an_earlier_run_has_done_a_part(files: Path, steady: dict[str, Any]) -> None:
    def stop(state: StudyProgress) -> None:
        if "teacher on all" in state.phase and state.steps_done > 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(files, progress=stop, **steady)
    states: list[StudyProgress] = []
    run(files, progress=states.append, **steady)
    begun, then = [state for state in states if "teacher on all" in state.phase][:2]
    assert (begun.steps_done, begun.steps, begun.seconds_left) == (10, 30, None)
    assert (then.steps_done, then.seconds_left) == (11, 19)


def test_time_left_of_folds(files: Path, steady: dict[str, Any]) -> None:
    states: list[StudyProgress] = []
    run(files, progress=states.append, **(steady | {"folds": 3, "recipes": ["self"], "repeats": 1}))
    # The first trainings; in each fold three taggers, a teacher and a student; the student.
    assert {state.steps for state in states[:-1]} == {10 * (2 + 3 * 5 + 1)}
    folds = next(state for state in states if state.phase.startswith("fold 1"))
    assert folds.seconds_left == 10 * (3 * 5 + 1)


def test_no_time_is_told_that_depends_on_a_budget(files: Path, steady: dict[str, Any]) -> None:
    """Before the first training, nothing is known of the folds."""
    states: list[StudyProgress] = []
    run(files, progress=states.append, **(steady | {"folds": 3, "recipes": ["self"], "budget": 1000.0}))
    assert all(state.seconds_left is None for state in states if "all gold sentences" in state.phase)
    assert next(state for state in states if state.phase.startswith("fold 1")).seconds_left


def test_no_teacher_is_trained_for_recipes_without_one(files: Path) -> None:
    summary = run(files, teacher_encoder="large", recipes=["mr"])
    assert {encoder for encoder, _ in OracleTagger.encoders} == {"minilm"}
    assert summary.teacher_f1 is None


def test_a_run_with_a_teacher_of_its_own_is_resumed(files: Path) -> None:
    options: dict[str, Any] = {"teacher_encoder": "large", "recipes": ["self"], "repeats": 1, "folds": 3}
    run(files, "whole", **options)
    for phase in ("training the teacher", "fold 1 of 3: teacher", "fold 2 of 3: self", "final training"):

        def stop(state: StudyProgress, phase: str = phase) -> None:
            if phase in state.phase:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(files, progress=stop, **options)
    run(files, **options)
    assert contents(files / "out") == contents(files / "whole")


def test_a_slow_teacher_is_part_of_the_budget(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock is read before and after each training: the first takes ten minutes, the teacher twenty.
    times = itertools.chain((0, 600, 600, 1800), itertools.repeat(1800))
    monkeypatch.setattr("entaug.study.runs._clock", lambda: next(times))
    least = 10 * (1 + 2 + 1.25 * 3) + 10 * 1.25 * 3 * (3 + 2 + 1)
    summary = run(files, teacher_encoder="large", recipes=["self"], budget=least + 1)
    assert (summary.size.folds, summary.size.recipes, summary.size.repeats) == (3, 1, 1)
    times = itertools.chain((0, 600, 600, 1800), itertools.repeat(1800))
    assert run(files, "less", teacher_encoder="large", recipes=["self"], budget=least - 1).size.folds == 0


def _plan(path: Path) -> dict[str, Any]:
    from entaug.study.auto import read_plan_file

    return read_plan_file(path)


def test_a_plan_whose_digests_are_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text('train = "train.conll"\ndigests = 3\n')
    with pytest.raises(InputError, match=r"plan\.toml:2: digests must be a table"):
        _plan(tmp_path / "plan.toml")


def test_the_plan_keeps_how_files_are_read(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        "\n".join(f"{tag} {token}" for token, tag in zip(sentence.tokens, sentence.iob(), strict=True))
        for sentence in corpus(0, 60)
    ]
    (files / "turned.conll").write_text("\n\n".join(rows) + "\n\n")
    how = ["--token-column", "1", "--tag-column", "0"]
    arguments = ["--recipes", "mr", "--tagger", "oracle", "--steps", "5", *how, "-o", str(files / "out")]
    assert main(["auto", str(files / "turned.conll"), *arguments]) == 0
    assert main(["auto", str(files / "out" / "plan.toml"), "-o", str(files / "again")]) == 0
    assert contents(files / "again")["train.jsonl"] == contents(files / "out")["train.jsonl"]
    assert "wrote" in capsys.readouterr().err


def test_a_tagger_without_probabilities_gets_hard_labels(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OracleTagger, "flat", False)
    monkeypatch.setattr(OracleTagger, "gives_probabilities", False, raising=False)
    summary = run(files, recipes=["self", "self-hard", "sis"])
    assert [gain.recipe for gain in summary.gains] == ["self-hard", "sis"]
    assert any("self is not tried: its soft labels need" in note for note in summary.notes)
    assert any("only recipes with hard labels" in note for note in summary.notes)
    assert not any(TagProbabilities.from_sentence(s) for _, new in OracleTagger.trained for s in new)


def test_faulty_arguments_are_refused_before_any_training(files: Path) -> None:
    entaug.write(corpus(0, 12), files / "few.conll")
    with pytest.raises(InputError, match="has 12 sentences with mentions, and cross-validation needs at least 20"):
        entaug.auto(files / "few.conll", files / "out", tagger="oracle")
    for options in ({"folds": 1}, {"steps": 0}, {"budget": 0}, {"repeats": True}, {"mentions": ["cities.txt"]}):
        with pytest.raises(ParameterError):
            run(files, **options)
    with pytest.raises(InputError, match=r"cities\.txt: no such file"):
        run(files, mentions=[f"{files / 'cities.txt'}=LOC"])
    (files / "out").mkdir()
    (files / "out" / "mine").write_text("")
    with pytest.raises(OutputError, match="is there already"):
        run(files)
    assert not OracleTagger.trained


def test_the_command_says_what_to_expect(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--unlabelled",
        str(files / "more.conll"),
        "--tagger",
        "oracle",
        "--recipes",
        "self,mr",
        "--steps",
        "5",
    ]
    assert main(["auto", str(files / "train.conll"), *arguments, "-o", str(files / "out")]) == 0
    lines = capsys.readouterr().err.splitlines()
    # Of five folds, twice, three taggers and two recipes; of all sentences one, two teachers and the student.
    total = f"of {5 * (5 * 2 * 5 + 4)} steps"
    assert any(line.startswith("fold 2 of 5, repetition 2 of 2: self: ") and total in line for line in lines)
    assert f"training on all gold sentences: 0 {total}" in lines
    assert any("about 1 min left" in line for line in lines)
    assert any(line.startswith("gains over gold alone, measured by 5-fold") for line in lines)
    assert [line.partition(":")[0] for line in lines if line.startswith(("result:", "next:"))] == ["result", "next"]
    assert (
        main(["auto", str(files / "train.conll"), "-o", str(files / "new"), "--recipes", "self", "--tagger", "oracle"])
        == 2
    )
    assert "none of the recipes can be tried" in capsys.readouterr().err


def test_with_a_real_tagger(files: Path, bert: Path) -> None:
    options: dict[str, Any] = {
        "dev": files / "dev.conll",
        "tagger": None,
        "encoder": str(bert),
        "repeats": 1,
        "recipes": ["self+mr"],
    }
    summary = run(files, steps=2, **options)
    assert summary.gold_f1 is not None
    tagger = load_tagger(files / "out" / "tagger")
    assert len(tagger.predict(corpus(0, 2))) == 2


@pytest.mark.skipif(not hasattr(entaug.methods.MentionReplacement, "mentions"), reason="mr takes no lists")
def test_lists_are_measured_without_held_out_mentions(files: Path) -> None:
    (files / "names.txt").write_text("\n".join([*NAMES, "Zora"]) + "\n")
    # Each name is in one sentence of three, so that every fold lacks some in training.
    entaug.write(corpus(0, 24), files / "train.conll")
    run(files, recipes=["mr"], mentions=[f"{files / 'names.txt'}=PER"], folds=5, repeats=1)
    whole = {"".join(s.tokens) for s in corpus(0, 24)}
    in_folds = [(gold, new) for gold, new in OracleTagger.trained if gold != whole and new]
    assert len(in_folds) == 5
    for gold, new in in_folds:
        held_out = {s.tokens[0] for s in corpus(0, 24) if "".join(s.tokens) not in gold}
        known = {s.tokens[0] for s in corpus(0, 24) if "".join(s.tokens) in gold}
        assert not (held_out - known) & {sentence.tokens[0] for sentence in new}
    plan = (files / "out" / "plan.toml").read_text()
    assert 'mentions = ["../names.txt=PER"]' in plan


def test_recipes_say_how_many_sentences_a_method_makes(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for copies, steps, expected in ((2, 100, 120), (7, 100, 420), (7, 10, 60)):  # a training of 10 steps takes 80
        monkeypatch.setitem(RECIPES, "mr", replace(RECIPES["mr"], prior_gain=9.0, copies=copies))
        summary = run(files, f"out-{copies}-{steps}", recipes=["mr"], folds=0, steps=steps)
        assert summary.augmented == expected


def test_lists_are_used_without_the_mentions_of_test_sentences(files: Path) -> None:
    (files / "names.txt").write_text("Zora\nYara\n")
    entaug.write([Sentence(["Zora", "came"], [Mention("PER", [(0, 1)])])], files / "test.conll")
    options: dict[str, Any] = {"recipes": ["mr"], "mentions": [f"{files / 'names.txt'}=PER"], "folds": 2, "repeats": 1}
    run(files, "with", **options)
    used = {token for _, new in OracleTagger.trained for sentence in new for token in sentence.tokens}
    assert {"Zora", "Yara"} <= used
    OracleTagger.trained.clear()
    run(files, "without", **options, held_out=[files / "test.conll"])
    used = {token for _, new in OracleTagger.trained for sentence in new for token in sentence.tokens}
    assert "Yara" in used
    assert "Zora" not in used


def test_nested_corpora_get_soft_labels_of_relations(files: Path, bert: Path) -> None:
    nested = list(entaug.read(EXAMPLE / "nested.jsonl"))
    entaug.write(nested[:12], files / "nested.jsonl")
    entaug.write(nested[12:18], files / "held-out.jsonl")
    summary = entaug.auto(
        files / "nested.jsonl",
        files / "out",
        dev=files / "held-out.jsonl",
        unlabelled=[files / "more.conll"],
        encoder=str(bert),
        recipes=["self"],
        repeats=1,
        steps=2,
    )
    assert [gain.recipe for gain in summary.gains] == ["self"]
    assert not any("hard labels" in note for note in summary.notes)
    assert json.loads((files / "out" / "tagger" / "tagger.json").read_text())["tagger"] == "w2ner"


def test_an_encoder_that_predicts_masked_words_is_pretrained_and_regularised(files: Path, tmp_path: Path) -> None:
    texts = [" ".join(sentence.tokens) for sentence in corpus(0, 60)]
    options: dict[str, Any] = {"unlabelled": [files / "more.conll"], "folds": 2, "repeats": 1, "steps": 2}
    options |= {"tagger": "linear", "recipes": ["self", "self-regularised"]}
    encoder = tiny.save(tmp_path / "encoder", "mpnet", texts)
    summary = entaug.auto(files / "train.conll", files / "out", encoder=str(encoder), **options)
    assert {gain.recipe for gain in summary.gains} == {"self", "self-regularised"}
    options["recipes"] = ["self-regularised"]
    summary = entaug.auto(files / "train.conll", files / "again", encoder=str(encoder), **options)
    config = json.loads((encoder / "config.json").read_text())
    (encoder / "config.json").write_text(json.dumps({**config, "architectures": ["MPNetModel"]}))
    with pytest.raises(ParameterError, match=r"self-regularised is not tried: it needs .* that predicts masked words"):
        entaug.auto(files / "train.conll", files / "none", encoder=str(encoder), **options)


# ------------------------------------------------------------------------------------------------- sources of labels


def labelled_by(files: Path, name: str, sentences: list[Sentence], wrong: int) -> None:
    """A file with labels of sentences, in every n-th of which the first mention is missing."""
    said = [s.with_(mentions=s.mentions[1:] if i % wrong == 0 else s.mentions) for i, s in enumerate(sentences)]
    entaug.write(said, files / f"{name}.jsonl")


@pytest.fixture
def with_sources(files: Path) -> Path:
    sentences = [*corpus(0, 60), *corpus(100, 160)]
    labelled_by(files, "crowd", sentences, 3)
    labelled_by(files, "model", sentences, 4)
    (files / "places.txt").write_text("\n".join(PLACES[:10]))
    (files / "sources.toml").write_text('sources = ["file:crowd.jsonl", "file:model.jsonl", "lists:places.txt=LOC"]\n')
    return files


def test_labels_of_sources_are_a_recipe(with_sources: Path) -> None:
    summary = run(with_sources, recipes=["self", "sources"], sources=with_sources / "sources.toml")
    assert {gain.recipe for gain in summary.gains} == {"self", "sources"}
    # In no fold has a training seen a sentence of another source than its gold and the text.
    texts = [{"".join(s.tokens) for s in augmented} for _, augmented in OracleTagger.trained if augmented]
    assert texts
    assert set.union(*texts) <= {"".join(s.tokens) for s in corpus(100, 160)}
    plan = (with_sources / "out" / "plan.toml").read_text()
    assert 'sources = "../sources.toml"' in plan
    again = run_plan(with_sources)
    assert again["recipe"] == summary.recipe


def run_plan(files: Path) -> Any:
    assert main(["auto", str(files / "out" / "plan.toml"), "-o", str(files / "again")]) == 0
    return json.loads((files / "again" / "summary.json").read_text())


def test_the_joined_labels_are_those_of_the_added_sentences(with_sources: Path) -> None:
    summary = run(with_sources, recipes=["sources"], sources=with_sources / "sources.toml", folds=2)
    assert summary.recipe == "sources"
    added = entaug.read(with_sources / "out" / "augmented.jsonl")
    truth = {s.tokens: s.mentions for s in corpus(100, 160)}
    right = sum(s.mentions == truth[s.tokens] for s in added)
    assert right > 48  # the better file has 45 of 60
    assert all(TagProbabilities.from_sentence(s) is not None for s in added)


def test_without_a_training_file_a_tagger_learns_the_sources_alone(with_sources: Path) -> None:
    given: dict[str, Any] = {"unlabelled": [with_sources / "more.conll"], "sources": with_sources / "sources.toml"}
    with pytest.warns(InputWarning, match="no gold sentence has a mention"):
        summary = entaug.auto(None, with_sources / "out", tagger="oracle", steps=8, **given)
    assert (summary.sentences, summary.augmented, summary.gold_f1) == (0, 60, None)
    assert "nothing was measured" in summary.lines()[0]
    assert load_tagger(with_sources / "out" / "tagger").predict([Sentence(["x"])])
    assert len(entaug.read(with_sources / "out" / "train.jsonl")) == 60
    options = ["--unlabelled", str(with_sources / "more.conll"), "--sources", str(with_sources / "sources.toml")]
    options += ["--tagger", "oracle", "--steps", "8", "-o", str(with_sources / "again")]
    assert main(["auto", *options]) == 0
    with pytest.raises(ParameterError, match="without a training file"):
        entaug.auto(None, with_sources / "other", unlabelled=given["unlabelled"])
    with pytest.raises(ParameterError, match="sources label unlabelled text"):
        run(with_sources, "other", unlabelled=[], sources=given["sources"])


def test_sources_are_the_teacher_of_a_plan(with_sources: Path) -> None:
    plan = with_sources / "plan.toml"
    base = """seeds = [1]
ratios = [1]
baselines = ["gold"]
[[corpora]]
name = "c"
train = "train.conll"
test = "dev.conll"
unlabelled = "more.conll"
[[taggers]]
name = "oracle"
training = {steps = 8}
[[methods]]
name = "selftrain"
labels = "teacher"
"""
    plan.write_text(base + '[[teachers]]\nsources = "sources.toml"\nsize = 2\n')
    with pytest.raises(ParameterError, match=r"plan\.toml:15: a teacher has either sources or taggers"):
        read_plan(plan)
    plan.write_text(base + '[[teachers]]\nlabel = "joined"\nsources = "sources.toml"\n')
    assert read_plan(plan).teachers[0].sources == with_sources / "sources.toml"
    [run_] = [one for one in Schedule(read_plan(plan), prepare_splits(read_plan(plan))).runs if one.arm != "gold"]
    execute_run(run_)
    [new] = [augmented for _, augmented in OracleTagger.trained if augmented]
    truth = {s.tokens: s.mentions for s in corpus(100, 160)}
    assert sum(s.mentions == truth[s.tokens] for s in new) > 48
    assert all(TagProbabilities.from_sentence(s) is not None for s in new)
