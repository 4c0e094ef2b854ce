"""Quality of augmented sentences without training: fluency, novelty, diversity, labels and length.

The measures are those that papers on augmentation report. They compare methods and show faults; whether a method
*helps* only training tells (``entaug experiment``).

A measure is a function of `MeasureInputs` that the decorator `measure` turns into a `Measure` with its description. A
line in `MEASURES`, or an entry point ``entaug.measures`` of another package, makes it available.

Example:
    >>> from entaug import Mention
    >>> gold = [Sentence("Ada left Rome .".split(), [Mention("LOC", [(2, 3)])])]
    >>> new = Sentence("Bo left Rome .".split(), gold[0].mentions)
    >>> quality = measure_quality([AugmentedPair(new, gold[0])], gold, measures=["new_words", "unseen_contexts"])
    >>> quality.values["unseen_contexts"], quality.by_sentence["new_words"]
    (1.0, [0.3333333333333333])
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from entaug.backends.language_check import LoadedModel, check_languages
from entaug.backends.protocols import CausalLM, Encoder, MaskedLM
from entaug.backends.resolve import resolve
from entaug.config.registry import Registry
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import InputError, MissingExtraError, MissingModelError, ParameterError
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair, pair_with_sources
from entaug.metrics.likelihood import as_text, causal_log_probs, masked_log_probs
from entaug.metrics.tables import Block, Heading, Table, as_markdown

GOLD = "gold"
"""Name of the `Quality` of the gold sentences."""
DEFAULT_MODELS: Mapping[str, str | None] = {"causal_lm": "smollm2", "masked_lm": None, "encoder": "minilm"}
"""The default model of each kind of backend that measures need."""

_BATCH = 256  # texts between two reports of progress
_BACKENDS = {"causal_lm": "a causal LM", "masked_lm": "a masked LM", "encoder": "an encoder"}

# ------------------------------------------------------------------------------------------------------------ measures


class UndefinedError(Exception):
    """A measure has no value for its inputs; the message is a reason, for example ``"there are no mentions"``."""


class MeasureValue(NamedTuple):
    """Result of a measure."""

    value: float
    by_sentence: Sequence[float | None] | None = None
    note: str = ""


@dataclass(eq=False)
class Measure:
    """A measure of quality; its description is the first line of the docstring of its function.

    Args:
        function: computes the measure; raises `UndefinedError` where it has no value.
        title: the title of its row in tables.
        unit: ``"share"`` (from 0 to 1, shown in percent), ``"score"``, ``"nats"``, ``"tokens"`` or empty.
        higher: what a higher value means, or ``"neutral"``.
        needs: the kind of backend that it needs, for example ``"causal_lm"``, or None.
    """

    function: Callable[[MeasureInputs], MeasureValue]
    title: str
    unit: str = ""
    higher: str = "neutral"
    needs: str | None = None

    def __post_init__(self) -> None:
        functools.update_wrapper(self, self.function)

    def __call__(self, inputs: MeasureInputs) -> MeasureValue:
        """Compute the measure."""
        if not inputs.sentences:
            raise UndefinedError("there are no sentences")
        return self.function(inputs)

    @property
    def description(self) -> str:
        """A one-sentence description of the measure."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    @property
    def explanation(self) -> str:
        """The description and what a higher value means."""
        return self.description if self.higher == "neutral" else f"{self.description} Higher: {self.higher}."


def measure(
    title: str, *, unit: str = "", higher: str = "neutral", needs: str | None = None
) -> Callable[[Callable[[MeasureInputs], MeasureValue]], Measure]:
    """Make a `Measure` of the decorated function, which is described by the first line of its docstring."""
    return lambda function: Measure(function, title, unit, higher, needs)


class Likelihood(NamedTuple):
    """Log-likelihood of a text under a language model."""

    total: float
    pieces: int


@dataclass
class ModelScores:
    """Models of measures, and their cached scores of texts."""

    # Equal texts are scored once. Texts go to a model ordered by length, so the order of sentences affects no result.

    causal_lm: CausalLM | None = None
    masked_lm: MaskedLM | None = None
    encoder: Encoder | None = None
    progress: Progress = no_progress
    _cache: dict[tuple[str, str], Likelihood] = field(default_factory=dict)

    def likelihoods(self, kind: Literal["causal_lm", "masked_lm"], sentences: Iterable[Sentence]) -> list[Likelihood]:
        """The log-likelihood of each sentence under the causal model, or the pseudo-log-likelihood under the masked."""
        lm: Any = getattr(self, kind)
        is_causal = kind == "causal_lm"
        if lm is None:
            raise UndefinedError(f"there is no {'causal' if is_causal else 'masked'} language model")
        texts = list(map(as_text, sentences))
        new = sorted({text for text in texts if (kind, text) not in self._cache}, key=lambda text: (len(text), text))
        computed = causal_log_probs(new, lm, _BATCH) if is_causal else masked_log_probs(new, lm)
        for done, (text, log_probs) in enumerate(zip(new, computed, strict=True), start=1):
            self._cache[kind, text] = Likelihood(math.fsum(log_probs.tolist()), len(log_probs))
            if not done % _BATCH or done == len(new):
                self.progress("scoring" if is_causal else "scoring with masks", done, len(new))
        return [self._cache[kind, text] for text in texts]


@dataclass
class MeasureInputs:
    """Sentences to be measured."""

    sentences: Sequence[Sentence]
    sources: Sequence[Sentence | None]
    gold: Sequence[Sentence]
    models: ModelScores

    def mean_over_sources(self, compare: Callable[[Sentence, Sentence], float | None]) -> MeasureValue:
        """The mean of a comparison of each sentence with its source."""
        pairs = zip(self.sentences, self.sources, strict=True)
        values = [None if source is None else compare(sentence, source) for sentence, source in pairs]
        known = any(source is not None for source in self.sources)
        why = "no sentence with a source has such words" if known else "the source of no sentence is known"
        return mean_over_sentences(values, why)

    def require_gold(self) -> Sequence[Sentence]:
        """The gold sentences."""
        if not self.gold:
            raise UndefinedError("there are no gold sentences to compare with")
        return self.gold


def mean_over_sentences(values: Sequence[float | None], why_undefined: str = "there are no sentences") -> MeasureValue:
    """The mean over the sentences that have a value."""
    defined = [value for value in values if value is not None]
    if not defined:
        raise UndefinedError(why_undefined)
    return MeasureValue(math.fsum(defined) / len(defined), values)


def words(tokens: Iterable[str]) -> list[str]:
    """The tokens that contain a letter or a digit, in lower case."""
    return [token.casefold() for token in tokens if token.isalnum() or any(map(str.isalnum, token))]


def _check(name: str, value: Any) -> None:
    if not isinstance(value, Measure):
        raise ParameterError(
            f"the measure {name!r} must be a Measure, not {type(value).__name__}",
            remedy="decorate its function with entaug.metrics.quality.measure",
        )


_NAMES = (
    *("perplexity", "lm_score", "source_lm_difference", "masked_lm_score"),
    *("diversity_e", "diversity_n", "diversity_l", "new_words"),
    *("similarity", "near_source", "near_gold", "near_others"),
    *("unseen_mentions", "unseen_mentions_distinct", "unseen_contexts", "unseen_contexts_distinct"),
    *("type_token_ratio", "distinct_1", "distinct_2", "self_bertscore", "self_bertscore_with_gold"),
    *("unlabelled_mentions", "label_distance", "label_variation", "mentions", "length", "length_difference"),
)

MEASURES: Registry[Measure] = Registry(
    "measure", {name: f"entaug.metrics.measures:{name}" for name in _NAMES}, group="entaug.measures", check=_check
)
"""All measures, in the order of tables."""


# ------------------------------------------------------------------------------------------------------------ measuring


@dataclass(frozen=True)
class Quality:
    """Measured quality of some sentences.

    Args:
        name: name of the method, or ``"gold"``.
        sentences: number of measured sentences.
        values: the value of each measure; None if it is undefined, with the reason in a note.
        by_sentence: for measures of single sentences, their values in the order of the sentences; None if undefined.
        notes: remarks for the reader.

    Example:
        >>> Quality("mr", 2, {"length": 12.0}).to_dict()["values"]
        {'length': 12.0}
    """

    name: str
    sentences: int
    values: Mapping[str, float | None] = field(default_factory=dict)
    by_sentence: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields as values that JSON can represent."""
        return asdict(self)


def measure_quality(
    pairs: Sequence[AugmentedPair | Sentence],
    gold: Sequence[Sentence],
    *,
    name: str = "",
    measures: Sequence[str] | None = None,
    causal_lm: CausalLM | str | None = DEFAULT_MODELS["causal_lm"],
    masked_lm: MaskedLM | str | None = DEFAULT_MODELS["masked_lm"],
    encoder: Encoder | str | None = DEFAULT_MODELS["encoder"],
    progress: Progress = no_progress,
) -> Quality:
    """Measure the augmented sentences of a method.

    Rejected sentences are left out. To measure gold sentences for comparison, pass them as pairs without a source, and
    an empty `gold`.

    Args:
        pairs: augmented sentences with their sources, for example from `entaug.formats.read_augmented`; or alone, where
            their provenance names sources in `gold`.
        gold: all gold sentences.
        name: name of the result.
        measures: names of the measures; None for all whose models are available.
        causal_lm: a causal language model, or its name; None to leave out the measures that need one.
        masked_lm: a masked language model, or its name; None to leave out the measures that need one.
        encoder: an encoder, or its name; None to leave out the measures that need one.
        progress: called with the stage, the number of finished texts and their total.

    Returns:
        The values and notes. Apart from ``near_others``, they do not depend on the order of the sentences.

    Raises:
        UnknownNameError: there is no measure of a name.
        ParameterError: a model that a named measure needs is None.
        MissingModelError: a model is not on this machine. The measures of a default model are left out with a note
            instead.
        InputError: a model that was named does not serve the language of the text; see above for default models.

    Example:
        >>> gold = [Sentence("Ada left Rome .".split())]
        >>> measure_quality([AugmentedPair(Sentence("Bo left .".split()), gold[0])], gold, measures=["length"]).values
        {'length': 3.0}
    """
    unpaired = iter(pair_with_sources([pair for pair in pairs if isinstance(pair, Sentence)], gold))
    known = [pair if isinstance(pair, AugmentedPair) else next(unpaired) or AugmentedPair(pair) for pair in pairs]
    models = {"causal_lm": causal_lm, "masked_lm": masked_lm, "encoder": encoder}
    [quality] = _measure([_Group(name, known, gold)], measures, progress, models)
    return quality


def measure_corpus(
    corpus: AugmentedCorpus, *, measures: Sequence[str] | None = None, progress: Progress = no_progress, **models: Any
) -> list[Quality]:
    """Measure the gold sentences and each method of a corpus; see `measure_quality`."""
    groups = [_Group(name, pairs, corpus.gold) for name, pairs in corpus.methods.items()]
    if corpus.gold:
        groups.insert(0, _Group(GOLD, [AugmentedPair(sentence) for sentence in corpus.gold], []))
    return _measure(groups, measures, progress, models, corpus.notes)


class _Group(NamedTuple):
    """Sentences that are measured together."""

    name: str
    pairs: Sequence[AugmentedPair]
    gold: Sequence[Sentence]


def _measure(
    groups: Sequence[_Group],
    measures: Sequence[str] | None,
    progress: Progress,
    models: Mapping[str, Any],
    notes: Iterable[str] = (),
) -> list[Quality]:
    """Measure each group; notes on all are those of the first. A text that several groups share is scored once."""
    text = next((group.gold for group in groups if group.gold), None)
    if text is None:
        text = [pair.augmented for group in groups for pair in group.pairs]
    chosen, scores, left_out = _prepare(measures, text, progress, models)
    notes = [*notes, *left_out]
    accepted = [[pair for pair in group.pairs if not pair.rejection] for group in groups]
    # All texts are scored first, so that there is one progress with one total.
    everything = [pair.augmented for pairs in accepted for pair in pairs]
    kinds: tuple[Literal["causal_lm", "masked_lm"], ...] = ("causal_lm", "masked_lm")
    for kind in kinds:
        if any(MEASURES[name].needs == kind for name in chosen):
            scores.likelihoods(kind, everything)
    if {"distinct_1", "distinct_2"} & {*chosen} and len({*map(len, accepted)} - {0}) > 1:
        notes.append("distinct-1 and distinct-2 decrease with the number of sentences: compare columns of equal size")
    qualities = []
    for group, pairs in zip(groups, accepted, strict=True):
        sentences, sources = [pair.augmented for pair in pairs], [pair.source for pair in pairs]
        if len(pairs) < len(group.pairs):
            notes.append(f"{len(group.pairs) - len(pairs):,} rejected sentences are not measured")
        if 0 < sources.count(None) < len(pairs):
            notes.append(f"the source of {sources.count(None):,} of {len(pairs):,} sentences is unknown")
        qualities.append(_compute(group.name, MeasureInputs(sentences, sources, group.gold, scores), chosen, notes))
        notes = []
    return qualities


def _prepare(
    measures: Sequence[str] | None, text: Sequence[Sentence], progress: Progress, models: Mapping[str, Any]
) -> tuple[list[str], ModelScores, list[str]]:
    """The measures to compute, the models for them, and notes on measures left out."""
    chosen = list(dict.fromkeys(MEASURES.usable() if measures is None else map(MEASURES.canonical, measures)))
    scores, notes = ModelScores(progress=progress), []
    for kind, model in {**DEFAULT_MODELS, **models}.items():
        concerned = [name for name in chosen if MEASURES[name].needs == kind]
        if concerned and model is not None:
            try:
                backend = resolve(kind, model)
                loaded = LoadedModel(kind, model, backend, f"`{kind}=NAME` (entaug quality)")  # also of a report
                for _ in check_languages(text, [loaded]):
                    pass
                setattr(scores, kind, backend)
                continue
            except (MissingModelError, MissingExtraError, InputError) as error:
                if measures is not None or model != DEFAULT_MODELS[kind]:
                    raise
                notes.append(f"not measured: {', '.join(concerned)} ({error})")
        elif concerned and measures is not None:
            remedy = f"name one as `{kind}`"
            raise ParameterError(f"{', '.join(concerned)}: {kind} is None, but they need a model", remedy=remedy)
        chosen = [name for name in chosen if name not in concerned]
    return chosen, scores, notes


def _compute(name: str, inputs: MeasureInputs, measures: Iterable[str], notes: list[str]) -> Quality:
    """Compute measures, and add notes on them."""
    values: dict[str, float | None] = {}
    by_sentence: dict[str, Sequence[float | None]] = {}
    undefined: dict[str, list[str]] = defaultdict(list)
    for measure in measures:
        values[measure] = None
        try:
            result = MEASURES[measure](inputs)
        except UndefinedError as error:
            undefined[str(error)].append(measure)
            continue
        values[measure] = result.value
        if result.by_sentence is not None:
            by_sentence[measure] = list(result.by_sentence)
        if result.note:
            notes.append(f"{measure}: {result.note}")
    if inputs.gold or name != GOLD:  # that gold cannot be compared with gold needs no note
        notes += [f"undefined because {reason}: {', '.join(names)}" for reason, names in undefined.items()]
    return Quality(name, len(inputs.sentences), values, by_sentence, tuple(notes))


# --------------------------------------------------------------------------------------------------------------- tables


def quality_table(qualities: Sequence[Quality]) -> str:
    """Format qualities as aligned columns for a terminal."""
    return _table(qualities).as_text() + "".join(f"note: {note}\n" for note in _notes(qualities))


def quality_markdown(qualities: Sequence[Quality]) -> str:
    """Format qualities as a Markdown document with the definitions of the measures."""
    measured = ((name, MEASURES[name]) for name in _measured(qualities))
    blocks: list[Block] = [Heading("Quality of augmented sentences", 1), _table(qualities), _notes(qualities)]
    definitions = [f"{measure.title} (`{name}`): {measure.explanation}" for name, measure in measured]
    return as_markdown(filter(None, [*blocks, Heading("Definitions"), definitions]))


def describe_backend(kind: str) -> str:
    """A kind of backend in words."""
    return _BACKENDS.get(kind, kind)


def _measured(qualities: Sequence[Quality]) -> list[str]:
    return [name for name in MEASURES.usable() if any(name in quality.values for quality in qualities)]


def _table(qualities: Sequence[Quality]) -> Table:
    rows = [[MEASURES[name].title, *format_values(name, qualities)] for name in _measured(qualities)]
    sentences = ["sentences", *(f"{quality.sentences:,}" for quality in qualities)]
    return Table(["", *(quality.name for quality in qualities)], [sentences, *rows])


def format_values(measure: str, qualities: Iterable[Quality]) -> list[str]:
    """The values of a measure for readers, with a dash where it is undefined."""
    unit, cells = MEASURES[measure].unit, []
    for value in (quality.values.get(measure) for quality in qualities):
        if value is None or unit == "share":
            cells.append("-" if value is None else f"{value:.1%}")
        else:
            digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 3 if unit == "score" else 2
            cells.append(f"{value:,.{digits}f}")
    return cells


def _notes(qualities: Iterable[Quality]) -> list[str]:
    prefixes = ((quality, "" if quality.name in ("", GOLD) else f"{quality.name}: ") for quality in qualities)
    return [prefix + note for quality, prefix in prefixes for note in quality.notes]
