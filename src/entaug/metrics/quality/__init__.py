"""Quality of augmented sentences without training: fluency, novelty, diversity, labels and length.

The measures are those that papers on augmentation report. They compare methods and show faults; whether a method
*helps* only training tells (``entaug experiment``).

Example:
    >>> from entaug import Mention
    >>> gold = [Sentence("Ada left Rome .".split(), [Mention("LOC", [(2, 3)])])]
    >>> new = Sentence("Bo left Rome .".split(), gold[0].mentions)
    >>> quality = measure_quality([AugmentedPair(new, gold[0])], gold, measures=["new_words", "unseen_contexts"])
    >>> quality.values["unseen_contexts"], quality.by_sentence["new_words"]
    (1.0, [0.3333333333333333])
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from entaug.backends.language_check import LoadedModel, check_languages
from entaug.backends.protocols import CausalLM, Encoder, MaskedLM
from entaug.backends.resolve import resolve
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import InputError, MissingExtraError, MissingModelError, ParameterError
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair, pair_with_sources
from entaug.metrics.quality.base import MeasureInputs, MeasureValue, ModelScores, UndefinedError
from entaug.metrics.quality.registry import MEASURES

__all__ = ["DEFAULT_MODELS", "GOLD", "MEASURES", "Quality", "compute_measure", "measure_corpus", "measure_quality"]

GOLD = "gold"
"""Name of the `Quality` of the gold sentences."""
DEFAULT_MODELS: Mapping[str, str | None] = {"causal_lm": "smollm2", "masked_lm": None, "encoder": "minilm"}
"""The default model of each kind of backend that measures need."""

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
    if "causal_lm" in needs:
        scores.causal_likelihoods(everything)
    if "masked_lm" in needs:
        scores.masked_likelihoods(everything)
    groups: list[tuple[str, list[AugmentedPair], list[Sentence]]] = []
    if corpus.gold:
        groups.append((GOLD, [AugmentedPair(sentence) for sentence in corpus.gold], []))
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
