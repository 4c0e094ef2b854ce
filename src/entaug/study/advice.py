"""What `entaug.advise` returns: the learning curve, what each measure would bring, and what to do first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from entaug.metrics.learning_curve import Estimate, LearningCurve
from entaug.metrics.tables import Block, Heading, Table
from entaug.report.html.plots import Mark, Plot, Series
from entaug.study.choice import PRIOR_SD, RECIPES, TEACHER_SIZE, Recipe

Basis = Literal["measured here", "forecast", "other corpora", "not estimated"]
"""Where a gain comes from."""

# The larger encoder: in the ten settings of benchmarks/results/gains.md with 100 or 200 sentences (F1 37 to 61, one
# seed), MPNet alone removed a quarter of the errors of MiniLM alone, with this standard deviation between settings.
_LARGER_SHARE, _LARGER_SHARE_SD = 0.25, 0.12
_KNOWN_ERROR = 0.48  # the mean of 1 - F1 of gold alone in these settings
LARGER_COST = 5.0
"""How many times as long a step of the larger encoder takes: MPNet, compared with MiniLM."""
_SECONDS_TO_CHECK = 20.0  # of a person, for a suspicious place
_Z = 1.96


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Something that could be done for a better tagger: its gain in points of F1, and the minutes that it takes."""

    name: str
    how: str
    basis: Basis
    gain: Estimate | None = None
    your_minutes: float = 0.0
    machine_minutes: float = 0.0
    needs: str = ""  # what is not there

    @property
    def points_per_hour(self) -> float | None:
        """The expected gain for an hour of your work and of the machine's; None if it is not known."""
        minutes = self.your_minutes + self.machine_minutes
        return None if self.gain is None or not minutes else 60 * self.gain.value / minutes

    def to_dict(self) -> dict[str, Any]:
        """Return the values, for JSON."""
        return {**asdict(self), "points_per_hour": self.points_per_hour}


@dataclass(frozen=True)
class CurveRow:
    """F1 in points at a number of training sentences: measured, or forecast."""

    size: int
    f1: Estimate
    what: str


@dataclass(frozen=True)
class Suggestion:
    """A sentence to annotate: its text, its id, and how sure the tagger is of it."""

    text: str
    id: str | None
    confidence: float


@dataclass(kw_only=True)
class Advice:
    """Result of `entaug.advise`."""

    input: str
    output: str | None = None
    sentences: int
    tagger: str
    encoder: str
    trainings: int
    measured_on: str
    curve: Sequence[CurveRow]
    measures: Sequence[Measure]
    next_sentences: Sequence[Suggestion] = ()
    next_command: str = ""
    notes: Sequence[str] = ()
    seconds: float = 0.0

    @property
    def ordered(self) -> list[Measure]:
        """The measures, the most points for an hour first."""
        return sorted(self.measures, key=lambda one: (one.points_per_hour is None, -(one.points_per_hour or 0.0)))

    @property
    def first(self) -> Measure:
        """The measure to begin with: of those that are sure to help the most points for an hour, else of all."""
        possible = [one for one in self.ordered if not one.needs]
        return next((one for one in possible if one.gain and one.gain.low > 0), possible[0])

    @property
    def first_by_hand(self) -> Measure | None:
        """The first measure in this order that takes work of yours and promises a gain."""
        return next((one for one in self.ordered if one.your_minutes and one.gain), None)

    def what_to_do(self) -> str:
        """Return what to do first, in a sentence."""
        text = f"{self.first.name}, {_gain(self.first)}: {self.first.how}"
        hand = self.first_by_hand
        return text if hand in (None, self.first) else f"{text}. By hand: {hand.name}, {_gain(hand)}"

    def how(self) -> str:
        """Return what was measured, in a sentence."""
        return (
            f"{self.sentences:,} sentences, {self.tagger} with {self.encoder}: {self.trainings} trainings, tested on "
            f"{self.measured_on}"
        )

    def lines(self) -> Iterator[str]:
        """Return the page, for the terminal."""
        yield f"{self.input}: {self.how()}"
        yield from self._curve_table().as_text().splitlines()
        yield ""
        yield from self._measure_table().as_text().splitlines()
        yield f"first: {self.what_to_do()}"
        if self.next_sentences:
            yield "annotate next, the least sure first:"
            yield from (f"  {one.confidence:.2f}  {one.text[:100]}" for one in self.next_sentences)
        if self.next_command:
            yield f"to write the sentences to annotate: {self.next_command}"
        yield from (f"note: {note}" for note in self.notes)

    def blocks(self) -> list[Block]:
        """Return the page as a document."""
        blocks: list[Block] = [
            f"{self.how()}.",
            f"**First**: {self.what_to_do()}.",
            Heading("Learning curve"),
            "F1 on sentences like yours; intervals are 95 %, and include the draw of the sentences to test on.",
            self._curve_table(),
            Heading("What it would bring"),
            (
                "Gains in points of F1 over your sentences alone, with 95 % intervals, ordered by points for an hour "
                "of yours and of the machine's. Those of other corpora were measured with 100 or 200 sentences."
            ),
            self._measure_table(),
            [f"{one.name}: {one.how}" for one in self.ordered],
        ]
        if self.next_sentences or self.next_command:
            blocks += [Heading("Which sentences to annotate next")]
        if self.next_sentences:
            rows = [[one.text, one.id or "", f"{one.confidence:.2f}"] for one in self.next_sentences]
            blocks.append(Table(["sentence", "id", "confidence"], rows))
        if self.next_command:
            blocks += [f"To write them: `{self.next_command}`"]
        if self.notes:
            blocks += [Heading("Notes"), list(self.notes)]
        return blocks

    def plot(self) -> Plot:
        """Return a plot of the curve."""
        rows = []
        for row in self.curve:
            colour: Literal["gold", "augmented"] = "gold" if row.what == "measured" else "augmented"
            marks = [Mark("line", colour, row.f1.low, row.f1.high), Mark("symbol", colour, row.f1.value, symbol="●")]
            rows.append((f"{row.size:,}", marks))
        low, high = min(row.f1.low for row in self.curve), max(row.f1.high for row in self.curve)
        return Plot(
            "F1 by number of training sentences",
            "Lines are 95 % intervals.",
            "micro-F1",
            (max(-1.0, low - 2), min(101.0, high + 2)),
            rows,
            self._curve_table(),
            [Series("●", "gold", "measured"), Series("●", "augmented", "forecast")],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the values, for JSON."""
        values = {name: value for name, value in vars(self).items() if name not in ("curve", "measures")}
        values["next_sentences"] = [asdict(one) for one in self.next_sentences]
        curve = [asdict(row) for row in self.curve]
        return {**values, "curve": curve, "measures": [one.to_dict() for one in self.ordered], "first": self.first.name}

    def _curve_table(self) -> Table:
        return Table(
            ["sentences", "F1", "95 % interval", ""],
            [
                [f"{row.size:,}", f"{row.f1.value:.1f}", f"{row.f1.low:.1f} to {row.f1.high:.1f}", row.what]
                for row in self.curve
            ],
        )

    def _measure_table(self) -> Table:
        rows = []
        for one in self.ordered:
            interval = f"{one.gain.low:+.1f} to {one.gain.high:+.1f}" if one.gain else "-"
            cells = [f"{one.gain.value:+.1f}" if one.gain else "-", interval]
            cells += [_minutes(one.your_minutes), _minutes(one.machine_minutes)]
            name = f"{one.name} (needs {one.needs})" if one.needs else one.name
            rows.append([name, *cells, _rate(one.points_per_hour), one.basis])
        return Table(["measure", "gain", "95 % interval", "your min", "machine min", "points/hour", "basis"], rows)


def _gain(measure: Measure) -> str:
    gain = measure.gain
    interval = "" if gain is None else f"{gain.value:+.1f} ({gain.low:+.1f} to {gain.high:+.1f}), "
    return f"{interval}{'known from ' if measure.basis == 'other corpora' else ''}{measure.basis}"


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:+.1f}" if abs(rate) < 10 else f"{rate:+,.0f}"


def _minutes(minutes: float) -> str:
    return f"{minutes:,.0f}" if minutes >= 1 else "< 1" if minutes else "-"


# ------------------------------------------------------------------------------------------------------------- measures


def curve_rows(curve: LearningCurve, sentences: int, more: int) -> list[CurveRow]:
    """The measured points of a curve and its forecasts, in points."""
    rows = [CurveRow(size, f1.times(100), "measured") for size, f1 in zip(curve.sizes, curve.measured, strict=True)]
    forecasts = {sentences: "all yours", sentences + more: f"{more:,} more", 2 * sentences: "twice as many"}
    rows += [
        CurveRow(size, curve.f1(size).times(100), f"forecast: {what}")
        for size, what in sorted(forecasts.items())
        if size not in curve.sizes
    ]
    return rows


def sentence_measures(
    curve: LearningCurve, sentences: int, more: int, seconds_per_sentence: float, minutes_per_training: float
) -> list[Measure]:
    """The gains of more annotated sentences."""
    return [
        Measure(
            name=f"annotate {number:,} more sentences",
            how=f"{seconds_per_sentence:g} s for a sentence",
            basis="forecast",
            gain=curve.gain(sentences, sentences + number).times(100),
            your_minutes=number * seconds_per_sentence / 60,
            machine_minutes=minutes_per_training * ((sentences + number) / sentences) ** 0.5,
        )
        for number in dict.fromkeys((more, sentences))
    ]


class Measured(NamedTuple):
    """A measured gain in points, and its standard error."""

    gain: float
    error: float


def combined(value: float, deviation: float, measured: Measured | None) -> Estimate:
    """A gain in points by what is known from other corpora, with a standard deviation, and by a measurement."""
    if measured is not None:
        weight = deviation**2 / (deviation**2 + measured.error**2)
        value, deviation = value + weight * (measured.gain - value), deviation * (1 - weight) ** 0.5
    return Estimate(value, value - _Z * deviation, value + _Z * deviation).times(1)


def larger_measure(
    train: str, minutes_per_training: float, f1: float, encoder: str, cost: float, measured: Measured | None
) -> Measure:
    """The gain of the larger encoder over an F1: a share of the errors."""
    error = 100 * (1 - f1)
    return Measure(
        name=f"larger encoder ({encoder})",
        how=f"entaug train {train} --encoder {encoder} -o tagger; slower to use, too",
        basis="other corpora" if measured is None else "measured here",
        gain=combined(_LARGER_SHARE * error, _LARGER_SHARE_SD * error, measured),
        machine_minutes=cost * minutes_per_training,
    )


def known_measures(
    train: str,
    minutes_per_training: float,
    f1: float,
    *,
    unlabelled: str | None,
    has_probabilities: bool,
    larger: str | None,
    measured: Measured | None = None,
) -> list[Measure]:
    """The gains of the recipes of `entaug.auto` on other corpora, less where there are fewer errors to remove."""
    # The recipe "self" may have been measured. Without a larger encoder for the language of the corpus, there is no
    # teacher with it, and no generated text, whose model is of the same language.
    text = f"--unlabelled {unlabelled or 'TEXT'}"
    scale = min(1.0, (1 - f1) / _KNOWN_ERROR)

    def measure(
        name: str, recipe: Recipe, options: str, *, is_larger: bool = False, measured: Measured | None = None
    ) -> Measure:
        teachers = LARGER_COST if is_larger else TEACHER_SIZE
        return Measure(
            name=name,
            how=f"entaug auto {train} {options} -o result",
            basis="other corpora" if measured is None else "measured here",
            gain=combined(scale * recipe.prior(is_teacher_larger=is_larger), scale * PRIOR_SD, measured),
            machine_minutes=minutes_per_training * (teachers * recipe.has_teacher + recipe.cost),
            needs="unlabelled text" if recipe.unlabelled and not unlabelled else "",
        )

    teacher = f"--teacher-encoder {larger}"
    measures = []
    if has_probabilities:
        if larger:
            options = f"{text} {teacher} --folds 0"
            measures.append(measure(f"unlabelled text, teacher {larger}", RECIPES["self"], options, is_larger=True))
        measures.append(measure("unlabelled text, teacher like the tagger", RECIPES["self"], text, measured=measured))
        if larger and not unlabelled:
            options = f"{teacher} --recipes gal --folds 0"
            measures.append(measure(f"generated text, teacher {larger}", RECIPES["gal"], options, is_larger=True))
    else:
        measures.append(measure("unlabelled text, predicted labels", RECIPES["self-hard"], text))
    return [*measures, measure("replaced mentions (mr)", RECIPES["mr"], "--recipes mr")]


def list_measure(train: str) -> Measure:
    """Lists of mentions, whose gain was measured nowhere."""
    how = f"entaug auto {train} --mentions FILE=LABEL --recipes mr,mr-soft -o result measures it"
    return Measure(name="lists of mentions", how=how, basis="not estimated")


def cleaning_measure(train: str, suspicious: int) -> Measure:
    """Cleaning of the labels, for a number of places that look wrong; what it brings was measured on one corpus."""
    places = f"{suspicious:,} places contradict others, {_SECONDS_TO_CHECK:g} s for each"
    how = f"entaug audit {train} -o suspicious.jsonl shows them; {places}"
    minutes = suspicious * _SECONDS_TO_CHECK / 60
    return Measure(name="clean the labels", how=how, basis="not estimated", your_minutes=minutes)
