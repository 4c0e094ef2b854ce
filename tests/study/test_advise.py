"""``entaug advise`` from files to the page, with a tagger whose learning curve is known."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import pytest

import entaug
from conftest import EXAMPLE
from entaug.backends.processes import process_pool
from entaug.backends.soft_labels import TagProbabilities
from entaug.commands.main import main
from entaug.config.params import Configurable
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, MissingModelError, OutputError, ParameterError
from entaug.metrics.learning_curve import Estimate
from entaug.study.advice import Advice, Measure, Measured, cleaning_measure, combined, known_measures, larger_measure
from entaug.study.advise import advise
from entaug.study.curves import CurvePart, CurveRuns, CurveTagger, Rounds, curve_sizes, makespan
from entaug.taggers.base import TAGGERS, TaggerTrainingConfig, write_config

pytest.importorskip("torch")


def corpus(start: int, stop: int) -> list[Sentence]:
    return [
        Sentence([f"Name{i}", "saw", f"Town{i}", "."], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])])
        for i in range(start, stop)
    ]


def recall(size: int, encoder: str = "small") -> float:
    return 0.9 - (0.5 if encoder == "large" else 1.0) * math.pow(size, -0.3)


def f1(size: int, encoder: str = "small") -> float:
    return 2 * recall(size, encoder) / (1 + recall(size, encoder))


@dataclass(kw_only=True, eq=False)
class Learner(Configurable):
    """Finds each mention with a probability that grows with the number of training sentences."""

    name: ClassVar[str] = "learner"
    trained: ClassVar[list[tuple[str, int, int]]] = []
    missing: ClassVar[str] = ""

    encoder: str = "small"
    labels_: list[str] = field(default_factory=lambda: ["LOC", "PER"], init=False)
    state_: tuple[int, float] = field(default=(0, 0.0), init=False)

    def check_requirements(self) -> None:
        if self.encoder == self.missing:
            raise MissingModelError("is not there", path=self.encoder)

    def fit(
        self,
        train: Iterable[Sentence],
        dev: object = None,
        config: TaggerTrainingConfig | None = None,
        progress: Any = None,
        augmented: Iterable[Sentence] = (),
    ) -> Learner:
        assert config is not None
        assert dev is None
        size, new = len(list(train)), len(list(augmented))
        if config.steps != 8:  # of the trial
            Learner.trained.append((self.encoder, size, config.seed))
        self.state_ = (config.seed, recall(size + 4 * new, self.encoder))
        return self

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        result = []
        for sentence in sentences:
            assert not sentence.mentions
            found = [(i, label) for i, label in ((0, "PER"), (2, "LOC")) if self._finds(sentence.tokens[i])]
            result.append(sentence.with_(mentions=[Mention(label, [(i, i + 1)]) for i, label in found]))
        return result

    def _finds(self, token: str) -> bool:
        # A word that is found with some recall is found with any higher one, but for the noise of the seed.
        ease = int.from_bytes(blake2b(token.encode(), digest_size=4).digest()) / 2**32
        luck = int.from_bytes(blake2b(f"{self.state_[0]} {token}".encode(), digest_size=4).digest()) / 2**32
        share = (0.8 * ease + 0.2 * luck - 0.1) / 0.8  # of the words that are easier, but at the ends
        return share < self.state_[1]

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        tags = ["O", "B-LOC", "B-PER"]
        results = []
        for sentence in sentences:
            sure = 0.4 if sentence.tokens[1] == "perhaps" else 0.9
            results.append(TagProbabilities(tags, [[sure, (1 - sure) / 2, (1 - sure) / 2] for _ in sentence.tokens]))
        return results

    def save(self, folder: str | Path) -> None:
        Path(folder).mkdir()
        write_config(Path(folder), {"tagger": "learner", "params": {"encoder": self.encoder}, "state": self.state_})

    def restore(self, folder: Path) -> Learner:
        seed, quality = json.loads((folder / "tagger.json").read_text())["state"]
        self.state_ = (seed, quality)
        return self


@pytest.fixture(autouse=True)
def learner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TAGGERS._built_in, "learner", f"{__name__}:Learner")
    monkeypatch.setattr(Learner, "missing", "large")
    Learner.trained.clear()


@pytest.fixture
def train(tmp_path: Path) -> Path:
    entaug.write(corpus(0, 300), tmp_path / "train.conll")
    return tmp_path / "train.conll"


def ask(train: Path, output: Path | None = None, **options: Any) -> Advice:
    given = {"tagger": "learner", "encoder": "small", "larger_encoder": "large", "jobs": 1, **options}
    return advise(train, output, **given)


def test_commands_name_a_file_for_what_was_given_in_memory(train: Path) -> None:
    advice = ask(entaug.read(train), budget=600)  # type: ignore[arg-type]
    commands = [one.how for one in advice.measures]
    assert any("entaug auto given-train.jsonl " in command for command in commands)
    assert any("entaug audit given-train.jsonl -o suspicious.jsonl shows them" in command for command in commands)
    assert not any("/entaug-" in command for command in commands)


def test_a_tagger_without_an_encoder_is_refused(train: Path, tmp_path: Path) -> None:
    calls: list[Any] = [partial(ask, train), partial(entaug.auto, train, tmp_path / "out")]
    for call in calls:
        with pytest.raises(ParameterError, match="static-bilstm-crf has no pretrained encoder; name another"):
            call(tagger="static-bilstm-crf")


def test_the_curve_is_measured_and_continued(train: Path, tmp_path: Path) -> None:
    advice = ask(train, tmp_path / "page.md", budget=600)
    assert [row.size for row in advice.curve] == [41, 69, 118, 200, 300, 400, 600]
    assert [row.what for row in advice.curve][3:] == [
        "measured",
        "forecast: all yours",
        "forecast: 100 more",
        "forecast: twice as many",
    ]
    for row in advice.curve:
        assert row.f1.low < 100 * f1(row.size) < row.f1.high
    # Three folds, four sizes, three repetitions, each with its own subset and seed.
    assert advice.trainings == len(Learner.trained) == 36
    assert len({(size, seed) for _, size, seed in Learner.trained}) == 36
    text = (tmp_path / "page.md").read_text()
    assert "| 600 |" in text
    assert advice.what_to_do() in text


def test_finished_trainings_are_never_repeated(train: Path, tmp_path: Path) -> None:
    first = ask(train, tmp_path / "a.md", runs=tmp_path / "runs", budget=600)
    Learner.trained.clear()
    second = ask(train, tmp_path / "b.md", runs=tmp_path / "runs", budget=600)
    assert not Learner.trained
    assert second.curve == first.curve
    assert (tmp_path / "a.md").read_bytes() == (tmp_path / "b.md").read_bytes()
    ask(train, tmp_path / "c.md", runs=tmp_path / "runs", budget=600, seed=1)
    assert Learner.trained


def test_an_interrupted_call_goes_on(train: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ask(train, tmp_path / "a.md", budget=600)
    Learner.trained.clear()
    fit = Learner.fit

    def interrupted(self: Learner, *args: Any, **options: Any) -> Learner:
        if len(Learner.trained) == 10:
            raise KeyboardInterrupt
        return fit(self, *args, **options)

    monkeypatch.setattr(Learner, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask(train, tmp_path / "b.md", budget=600)
    monkeypatch.setattr(Learner, "fit", fit)
    resumed = ask(train, tmp_path / "b.md", budget=600)
    assert len(Learner.trained) == 36
    assert resumed.curve == whole.curve


def test_the_budget_limits_the_folds_and_then_the_sizes(
    train: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each step takes a second: a fold takes 320 + 415 + 543 + 707 of them.
    monkeypatch.setattr("entaug.study.advise.seconds_per_step", lambda *_, **__: 1.0)
    monkeypatch.setattr(CurveRuns, "seconds_per_step", lambda *_: 1.0)
    minutes = property(lambda self: sum(spec.steps for spec in self.used.values()) / 60)
    monkeypatch.setattr(CurveRuns, "minutes", minutes)
    advice = ask(train, budget=1985 * 1.3 / 0.85 / 60 + 1)
    assert [row.size for row in advice.curve if row.what == "measured"] == [41, 69, 118, 200]
    assert advice.measured_on == "1 of 3 folds"
    assert any("too small for 2 of 3 folds" in note for note in advice.notes)
    advice = ask(train, budget=1700 * 1.3 / 0.85 / 60)
    assert [row.size for row in advice.curve if row.what == "measured"] == [24, 41, 69, 118]
    assert any("more than 118 of 200 sentences" in note for note in advice.notes)
    wide, narrow = (ask(train, budget=minutes).curve[-1].f1 for minutes in (45, 300))
    assert narrow.high - narrow.low < wide.high - wide.low


def test_a_larger_encoder_is_measured_where_it_is_there(
    train: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ask(train, budget=600)
    [measure] = [one for one in known.measures if "large)" in one.name]
    assert measure.basis == "other corpora"
    assert any("large is not on this machine" in note for note in known.notes)
    monkeypatch.setattr(Learner, "missing", "")
    [measure] = [one for one in ask(train, budget=600).measures if "large)" in one.name]
    assert measure.basis == "measured here"
    assert [one[:2] for one in Learner.trained].count(("large", 200)) == 3
    gain = 100 * (f1(200, "large") - f1(200))
    assert measure.gain is not None
    assert measure.gain.low < gain < measure.gain.high
    assert measure.gain.value == pytest.approx(gain, abs=2)


def test_a_larger_encoder_of_another_language_is_not_advised(tmp_path: Path) -> None:
    german = "der Hund und die Katze sind nicht in dem Haus".split()
    entaug.write([Sentence([*s.tokens, *german], s.mentions) for s in corpus(0, 60)], tmp_path / "train.conll")
    advice = ask(tmp_path / "train.conll", encoder="own", larger_encoder="mpnet", budget=600)
    assert not any("mpnet" in text for one in advice.measures for text in (one.name, one.how))
    assert any(one.name == "unlabelled text, teacher like the tagger" for one in advice.measures)
    [note] = [note for note in advice.notes if "mpnet" in note]
    assert note.startswith("no gain of mpnet is told, name another (`larger_encoder`): the encoder mpnet serves")


def test_sentences_to_annotate_next(train: Path, tmp_path: Path) -> None:
    text = [Sentence([f"Name{i}", "perhaps" if i % 10 == 0 else "saw", f"Town{i}", "."]) for i in range(1000, 1100)]
    entaug.write(text, tmp_path / "text.jsonl")
    advice = ask(train, unlabelled=[tmp_path / "text.jsonl"], budget=600)
    assert len(advice.next_sentences) == 10
    assert all("perhaps" in one.text for one in advice.next_sentences[:3])
    assert f"--unlabelled {tmp_path / 'text.jsonl'}" in advice.next_command
    [measure] = [one for one in advice.measures if one.name == "unlabelled text, teacher like the tagger"]
    assert str(tmp_path / "text.jsonl") in measure.how
    # Each unlabelled sentence is worth four labelled ones to this tagger.
    assert measure.basis == "measured here"
    assert measure.gain is not None
    assert measure.gain.value == pytest.approx(100 * (f1(600) - f1(200)), abs=2)
    # The tagger of the first fold is there, and in the others three for the teacher and one.
    assert Learner.trained.count(("small", 200, 0)) == 2
    assert len([one for one in Learner.trained if one[1] == 200]) == 9 + 3 * 3


def test_dev_takes_the_place_of_folds(train: Path, tmp_path: Path) -> None:
    entaug.write(corpus(300, 400), tmp_path / "dev.conll")
    advice = ask(train, dev=tmp_path / "dev.conll", budget=600)
    assert advice.measured_on == "dev"
    assert [row.size for row in advice.curve if row.what == "measured"][-1] == 300
    entaug.write(corpus(299, 400), tmp_path / "dev.conll")
    with pytest.raises(InputError, match="1 of its sentences are in"):
        ask(train, dev=tmp_path / "dev.conll")
    entaug.write(corpus(300, 301), tmp_path / "dev.conll")
    with pytest.raises(InputError, match=r"dev\.conll: has one sentence, and a learning curve needs two"):
        ask(train, dev=tmp_path / "dev.conll")


def test_the_command_prints_one_screen(
    train: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ["advise", str(train), "--tagger", "learner", "--encoder", "small", "--larger-encoder", "large"]
    argv += ["--jobs", "1", "--runs", str(tmp_path / "runs")]
    assert main([*argv, "-o", str(tmp_path / "page.html")]) == 0
    told = capsys.readouterr().err
    assert "forecast: twice as many" in told
    assert "annotate 100 more sentences" in told
    assert len(told.splitlines()) < 50
    page = (tmp_path / "page.html").read_text()
    assert "<svg" in page
    assert "annotate 100 more sentences" in page
    assert main([*argv, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["curve"][-1]["size"] == 600
    assert {one["basis"] for one in values["measures"]} == {"forecast", "other corpora", "not estimated"}


@pytest.mark.parametrize("option", ["--output", "--runs"])
def test_who_waits_for_another_process_is_told_where(
    train: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    def busy(_: Path, on_wait: Callable[[], None]) -> None:
        on_wait()
        raise InputError("ends here")

    monkeypatch.setattr("entaug.study.advise.lock", busy)
    argv = ["advise", str(train), "--tagger", "learner", "--encoder", "small", option, str(tmp_path / "page.md")]
    assert main(argv) == 2
    told = capsys.readouterr().err.splitlines()
    assert told == [f"waiting: another process works on {tmp_path / 'page.md'}", "entaug: error: ends here"]


def test_input_that_is_too_little(tmp_path: Path, train: Path) -> None:
    entaug.write(corpus(0, 19), tmp_path / "small.conll")
    with pytest.raises(InputError, match="19 sentences with mentions"):
        ask(tmp_path / "small.conll")
    entaug.write(corpus(0, 22), tmp_path / "small.conll")
    with pytest.raises(InputError, match="22 different sentences are too few for a learning curve"):
        ask(tmp_path / "small.conll")
    with pytest.raises(OutputError, match="exists"):
        ask(train, train.with_name("small.conll"))
    with pytest.raises(OutputError, match="inputs are never overwritten"):
        ask(train, train, force=True)
    with pytest.raises(ParameterError, match="budget"):
        ask(train, budget=-1)


# ------------------------------------------------------------------------------------------------------------- measures


def test_measures_are_ordered_by_points_for_an_hour() -> None:
    def measure(name: str, value: float, low: float, minutes: float) -> Measure:
        gain = Estimate(value, low, 2 * value - low)
        return Measure(name=name, how="", basis="other corpora", gain=gain, machine_minutes=minutes)

    measures = [
        measure("slow", 5, 1, 60),
        measure("risky", 3, -1, 6),
        cleaning_measure("x", 0),
        measure("good", 3, 1, 12),
    ]
    advice = Advice(
        input="x", sentences=1, tagger="t", encoder="e", trainings=1, measured_on="dev", curve=(), measures=measures
    )
    assert [one.name for one in advice.ordered] == ["risky", "good", "slow", "clean the labels"]
    assert advice.first.name == "good"  # what may lose is not advised first
    assert advice.ordered[1].points_per_hour == 15


def test_the_larger_encoder_takes_a_share_of_the_errors() -> None:
    measure = larger_measure("t", 2.0, 0.6, "large", 5.0, None)
    assert measure.gain == Estimate(10, 10 - 1.96 * 4.8, 10 + 1.96 * 4.8).times(1)
    assert measure.machine_minutes == 10
    few = larger_measure("t", 2.0, 0.96, "large", 5.0, None).gain
    assert few is not None
    assert few.value == pytest.approx(0.25 * 4)


def test_a_measurement_is_combined_with_what_is_known() -> None:
    # One as certain as what is known counts as much.
    both = combined(10.0, 4.0, Measured(4.0, 4.0))
    assert both.value == pytest.approx((10 + 4) / 2)
    assert both.high - both.low == pytest.approx(2 * 1.96 * 4 / 2**0.5, abs=1e-3)
    exact = combined(10.0, 4.0, Measured(4.0, 1e-9))
    assert exact.value == exact.low == exact.high == pytest.approx(4)


def test_a_process_without_work_takes_time_too() -> None:
    assert makespan([3, 3, 3], 2) == 6, "the third training runs alone"
    assert makespan([1, 4, 2, 1], 2) == 4
    assert makespan([1, 2, 3], 1) == 6
    assert makespan([], 2) == 0


def test_cleaning_is_not_estimated_but_its_minutes_are() -> None:
    measure = cleaning_measure("train.conll", 30)
    assert measure.gain is None
    assert measure.points_per_hour is None
    assert measure.your_minutes == 10


# --------------------------------------------------------------------------------------------------------------- curves


def test_sizes_form_a_ladder() -> None:
    assert curve_sizes(200) == [41, 69, 118, 200]
    assert curve_sizes(200, 5)[1:] == curve_sizes(200)
    assert curve_sizes(2) == [1, 2]


def test_rounds_go_through_all_parts_before_they_repeat() -> None:
    rounds = Rounds(3, repeats=2)
    assert list(rounds) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    assert rounds.done_of(2) == [1, 1]
    assert rounds.done_of(4) == [2, 1, 1]


def test_subsets_are_nested_and_never_tested_on(tmp_path: Path) -> None:
    parts = [CurvePart(corpus(0, 40), corpus(40, 60)), CurvePart(corpus(20, 60), corpus(0, 20))]
    tagger = CurveTagger(name="learner", encoder="small")
    runs = CurveRuns(parts, tmp_path)
    for part in (0, 1):
        subsets = [{s.tokens for s in entaug.read(runs.spec(part, size, tagger).split.train)} for size in (10, 20, 40)]
        assert subsets[0] < subsets[1] < subsets[2]
        assert subsets[2] == {s.tokens for s in parts[part].train}
    kept = runs.spec(0, 10, tagger, keep=True)
    assert kept.key == runs.spec(0, 10, tagger).key
    with pytest.raises(InputError, match="has no mention"):
        CurveRuns([CurvePart([Sentence(["a"])] * 9, parts[0].test)], tmp_path).spec(0, 3, tagger)


def test_gains_elsewhere_shrink_with_the_errors_that_are_left() -> None:
    given: dict[str, Any] = {"unlabelled": None, "has_probabilities": True, "larger": "large"}
    many, few = (known_measures("t", 2.0, f1, **given) for f1 in (0.3, 0.88))
    for one, other in zip(many, few, strict=True):
        assert one.gain is not None
        assert other.gain is not None
        assert other.gain.value == pytest.approx(one.gain.value / 4, abs=1e-3)
        assert other.machine_minutes == one.machine_minutes
    # Five times a training of the small one for the larger teacher, and one for the tagger.
    assert many[0].gain == Estimate(6.5, 6.5 - 1.96 * 3, 6.5 + 1.96 * 3).times(1)
    assert many[0].machine_minutes == 12
    assert [bool(one.needs) for one in many] == [True, True, False, False]
    assert not any(one.needs for one in known_measures("t", 2.0, 0.5, **{**given, "unlabelled": "x.txt"}))
    without = known_measures("t", 2.0, 0.5, **{**given, "has_probabilities": False})
    assert [one.name for one in without] == ["unlabelled text, predicted labels", "replaced mentions (mr)"]


def test_with_real_taggers_in_several_processes(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [s.with_(id=None) for s in entaug.read(EXAMPLE / "train.conll")][:36]
    entaug.write(sentences, tmp_path / "train.conll")
    given: dict[str, Any] = {"encoder": str(bert), "larger_encoder": str(bert), "steps": 3, "budget": 60, "jobs": 2}
    with process_pool(2, 1) as pool:  # the same for both, as the start takes longer than all trainings
        monkeypatch.setattr("entaug.study.curves.process_pool", lambda *_: contextlib.nullcontext(pool))
        advice = entaug.advise(tmp_path / "train.conll", tmp_path / "page.md", **given)
        Path(tmp_path / "page.md").unlink()
        again = entaug.advise(tmp_path / "train.conll", tmp_path / "page.md", **given)
    assert advice.trainings == 18
    assert [row.size for row in advice.curve] == [14, 24, 36, 72, 136]
    assert again.curve == advice.curve
    assert again.measures[2] == advice.measures[2]
