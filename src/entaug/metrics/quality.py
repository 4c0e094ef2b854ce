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
from dataclasses import asdict, dataclass, field, replace
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

    def __call__(self, inputs: MeasureInputs) -> MeasureValue:
        """Compute the measure."""
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

    def decorate(function: Callable[[MeasureInputs], MeasureValue]) -> Measure:
        decorated = Measure(function, title, unit, higher, needs)
        functools.update_wrapper(decorated, function)
        return decorated

    return decorate


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


MEASURES: Registry[Measure] = Registry(
    "measure",
    {
        "perplexity": "entaug.metrics.measures:perplexity",
        "lm_score": "entaug.metrics.measures:lm_score",
        "source_lm_difference": "entaug.metrics.measures:source_lm_difference",
        "masked_lm_score": "entaug.metrics.measures:masked_lm_score",
        "diversity_e": "entaug.metrics.measures:diversity_e",
        "diversity_n": "entaug.metrics.measures:diversity_n",
        "diversity_l": "entaug.metrics.measures:diversity_l",
        "new_words": "entaug.metrics.measures:new_words",
        "similarity": "entaug.metrics.measures:similarity_to_source",
        "near_source": "entaug.metrics.measures:near_source",
        "near_gold": "entaug.metrics.measures:near_gold",
        "near_others": "entaug.metrics.measures:near_others",
        "unseen_mentions": "entaug.metrics.measures:unseen_mentions",
        "unseen_mentions_distinct": "entaug.metrics.measures:unseen_mentions_distinct",
        "unseen_contexts": "entaug.metrics.measures:unseen_contexts",
        "unseen_contexts_distinct": "entaug.metrics.measures:unseen_contexts_distinct",
        "type_token_ratio": "entaug.metrics.measures:type_token_ratio",
        "distinct_1": "entaug.metrics.measures:distinct_1",
        "distinct_2": "entaug.metrics.measures:distinct_2",
        "self_bertscore": "entaug.metrics.measures:self_bertscore",
        "self_bertscore_with_gold": "entaug.metrics.measures:self_bertscore_with_gold",
        "label_distance": "entaug.metrics.measures:label_distance",
        "label_variation": "entaug.metrics.measures:label_variation",
        "mentions": "entaug.metrics.measures:mentions",
        "length": "entaug.metrics.measures:length",
        "length_difference": "entaug.metrics.measures:length_difference",
    },
    group="entaug.measures",
    check=_check,
)
"""All measures, in the order of tables."""


# ------------------------------------------------------------------------------------------------------------ measuring


MeasureResult = MeasureValue | str
"""The value of a measure, or why it has none."""
ComputeMeasures = Callable[[Sequence[MeasureInputs], Sequence[tuple[int, str]]], Iterable[MeasureResult]]
"""Computes measures; a task is the number of a set of sentences and the name of a measure, see `compute_measure`."""


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
        pairs: augmented sentences with their sources, for example from `entaug.read_augmented`; or alone, where their
            provenance names sources in `gold`.
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
    text = list(gold) or [pair.augmented for pair in known]
    models = {"causal_lm": causal_lm, "masked_lm": masked_lm, "encoder": encoder}
    chosen, scores, notes = _prepare(measures, text, progress, **models)
    inputs = _inputs(known, gold, scores)
    results = ((measure, compute_measure([inputs], (0, measure))) for measure in chosen)
    return _described(name, inputs, len(known) - len(inputs.sentences), results, notes)


def measure_corpus(
    corpus: AugmentedCorpus,
    *,
    measures: Sequence[str] | None = None,
    compute: ComputeMeasures | None = None,
    progress: Progress = no_progress,
    **models: Any,
) -> list[Quality]:
    """Measure the gold sentences and each method of a corpus; see `measure_quality`."""
    # A text that several of them share is scored once.
    text = corpus.gold or [pair.augmented for pairs in corpus.methods.values() for pair in pairs]
    chosen, scores, notes = _prepare(measures, text, progress, **models)
    # All texts are scored first, so that there is one progress with one total.
    everything = [*corpus.gold, *(p.augmented for pairs in corpus.methods.values() for p in pairs if not p.rejection)]
    needs = {MEASURES[name].needs for name in chosen}
    kinds: tuple[Literal["causal_lm", "masked_lm"], ...] = ("causal_lm", "masked_lm")
    for kind in kinds:
        if kind in needs:
            scores.likelihoods(kind, everything)
    groups: list[tuple[str, list[AugmentedPair], list[Sentence]]]
    groups = [(GOLD, [AugmentedPair(sentence) for sentence in corpus.gold], [])] if corpus.gold else []
    groups += [(name, pairs, corpus.gold) for name, pairs in corpus.methods.items()]
    notes = [*corpus.notes, *notes]
    sizes = {sum(not pair.rejection for pair in pairs) for _, pairs, _ in groups} - {0}
    if {"distinct_1", "distinct_2"} & {*chosen} and len(sizes) > 1:
        notes.append("distinct-1 and distinct-2 decrease with the number of sentences: compare columns of equal size")
    inputs = [_inputs(pairs, gold, scores) for _, pairs, gold in groups]
    results: dict[tuple[int, str], MeasureResult] = {}
    if compute is not None:
        without_models = [name for name in chosen if MEASURES[name].needs is None]
        tasks = [(i, name) for name in without_models for i in range(len(groups))]
        plain = [replace(one, models=ModelScores()) for one in inputs]
        results.update(zip(tasks, compute(plain, tasks), strict=True))
    qualities = []
    for number, (name, pairs, _) in enumerate(groups):
        of_group = (
            (measure, results.get((number, measure)) or compute_measure(inputs, (number, measure)))
            for measure in chosen
        )
        num_rejected = len(pairs) - len(inputs[number].sentences)
        qualities.append(_described(name, inputs[number], num_rejected, of_group, () if number else notes))
    return qualities


def _prepare(
    measures: Sequence[str] | None, text: Sequence[Sentence], progress: Progress, **models: Any
) -> tuple[list[str], ModelScores, list[str]]:
    """The measures to compute, the models for them, and notes on measures left out."""
    chosen = list(dict.fromkeys(MEASURES.usable() if measures is None else map(MEASURES.canonical, measures)))
    scores, notes = ModelScores(progress=progress), []
    for kind, model in {**DEFAULT_MODELS, **models}.items():
        concerned = [name for name in chosen if MEASURES[name].needs == kind]
        if concerned and model is not None:
            try:
                backend = resolve(kind, model)
                loaded = LoadedModel(kind, model, backend, f"--{kind.replace('_', '-')}")
                for _ in check_languages(text, [loaded]):
                    pass
                setattr(scores, kind, backend)
                continue
            except (MissingModelError, MissingExtraError, InputError) as error:
                if measures is not None or model != DEFAULT_MODELS[kind]:
                    raise
                notes.append(f"not measured: {', '.join(concerned)} ({error})")
        elif concerned and measures is not None:
            remedy = f"set {kind} (on the command line --{kind.replace('_', '-')})"
            raise ParameterError(f"{', '.join(concerned)}: {kind} is None, but they need a model", remedy=remedy)
        chosen = [name for name in chosen if name not in concerned]
    return chosen, scores, notes


def _inputs(pairs: Sequence[AugmentedPair], gold: Sequence[Sentence], scores: ModelScores) -> MeasureInputs:
    accepted = [pair for pair in pairs if not pair.rejection]
    return MeasureInputs([pair.augmented for pair in accepted], [pair.source for pair in accepted], gold, scores)


def compute_measure(inputs: Sequence[MeasureInputs], task: tuple[int, str]) -> MeasureResult:
    """Compute a measure."""
    number, name = task
    if not inputs[number].sentences:
        return "there are no sentences"
    try:
        return MEASURES[name](inputs[number])
    except UndefinedError as error:
        return str(error)


def _described(
    name: str,
    inputs: MeasureInputs,
    num_rejected: int,
    results: Iterable[tuple[str, MeasureResult]],
    notes: Sequence[str],
) -> Quality:
    """The results of measures, each computed when it is taken, with the notes on them."""
    notes = list(notes)
    num_measured = len(inputs.sentences)
    if num_rejected:
        notes.append(f"{num_rejected:,} rejected sentences are not measured")
    unknown = inputs.sources.count(None)
    if 0 < unknown < num_measured:
        notes.append(f"the source of {unknown:,} of {num_measured:,} sentences is unknown")
    values: dict[str, float | None] = {}
    by_sentence: dict[str, Sequence[float | None]] = {}
    undefined: dict[str, list[str]] = defaultdict(list)
    for measure, result in results:
        values[measure] = None
        if isinstance(result, str):
            undefined[result].append(measure)
            continue
        values[measure] = result.value
        if result.by_sentence is not None:
            # Many sentences have equal values, which are kept once.
            known: dict[float | None, float | None] = {}
            by_sentence[measure] = [known.setdefault(value, value) for value in result.by_sentence]
        if result.note:
            notes.append(f"{measure}: {result.note}")
    if inputs.gold or name != GOLD:  # that gold cannot be compared with gold needs no note
        notes += [f"undefined because {reason}: {', '.join(names)}" for reason, names in undefined.items()]
    return Quality(name, num_measured, values, by_sentence, tuple(notes))


# --------------------------------------------------------------------------------------------------------------- tables


def quality_table(qualities: Sequence[Quality]) -> str:
    """Format qualities as aligned columns for a terminal."""
    rows = _rows(qualities)
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))])
        for row in rows
    ]
    return "".join(f"{line}\n" for line in [*lines, *_notes(qualities, "note: ")])


def quality_markdown(qualities: Sequence[Quality]) -> str:
    """Format qualities as a Markdown document with the definitions of the measures."""
    head, *rows = _rows(qualities)
    parts = ["# Quality of augmented sentences\n", markdown_table(head, rows)]
    if notes := _notes(qualities, "- "):
        parts.append("".join(f"{note}\n" for note in notes))
    parts.append("## Definitions\n")
    parts += [f"- {MEASURES[name].title} (`{name}`): {MEASURES[name].explanation}" for name in _measured(qualities)]
    return "\n".join(parts) + "\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table in Markdown, all columns but the first aligned to the right."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    return line(head) + line(["---", *["---:"] * (len(head) - 1)]) + "".join(map(line, rows))


def describe_backend(kind: str) -> str:
    """A kind of backend in words."""
    return _BACKENDS.get(kind, kind)


def _measured(qualities: Sequence[Quality]) -> list[str]:
    return [name for name in MEASURES.usable() if any(name in quality.values for quality in qualities)]


def _rows(qualities: Sequence[Quality]) -> list[list[str]]:
    return [
        ["", *(quality.name for quality in qualities)],
        ["sentences", *(f"{quality.sentences:,}" for quality in qualities)],
        *(
            [MEASURES[name].title, *(_format(name, quality.values.get(name)) for quality in qualities)]
            for name in _measured(qualities)
        ),
    ]


def _format(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    unit = MEASURES[name].unit
    if unit == "share":
        return f"{value:.1%}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 3 if unit == "score" else 2
    return f"{value:,.{digits}f}"


def _notes(qualities: Sequence[Quality], bullet: str) -> list[str]:
    return [
        f"{bullet}{f'{quality.name}: ' if quality.name not in ('', GOLD) else ''}{note}"
        for quality in qualities
        for note in quality.notes
    ]
