"""How good augmented sentences are, without training anything: fluency, novelty, diversity, labels, length.

The measures are those that papers on augmentation report; `MEASURES` has them all, and `entaug.quality.measures` their
definitions, with what papers leave open. They tell methods apart and show faults; whether a method *helps* is found out
by training (``entaug experiment``) alone.

Example:
    >>> from entaug import Mention
    >>> gold = [Sentence("Ada left Rome .".split(), [Mention("LOC", [(2, 3)])])]
    >>> made = Sentence("Bo left Rome .".split(), gold[0].mentions)
    >>> found = measure([AugmentedPair(made, gold[0])], gold, measures=["new_words", "unseen_contexts"])
    >>> found.values["unseen_contexts"], found.by_sentence["new_words"]
    (1.0, [0.3333333333333333])
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from entaug.augmented import AugmentedCorpus, AugmentedPair, pair_with_sources
from entaug.backends.protocols import CausalLM, Encoder, MaskedLM
from entaug.backends.resolve import resolve
from entaug.data import Sentence
from entaug.errors import MissingExtraError, MissingModelError, ParameterError, UnknownNameError
from entaug.quality.material import Material, Models, Progress, UndefinedError, silent
from entaug.quality.registry import MEASURES, Measure

__all__ = ["MEASURES", "Measure", "Quality", "measure", "measure_made", "measure_quality"]

_DEFAULTS = {"causal_lm": "smollm2", "masked_lm": None, "encoder": "minilm"}
_NOT_DEFINED = "not defined, as"


@dataclass(frozen=True)
class Quality:
    """What was measured of some sentences.

    Args:
        name: whose they are.
        sentences: how many were measured.
        values: by name of the measure, one number for all; None where it is not defined, and a note says why.
        by_sentence: by name of the measure, one number for each sentence in their order; None where it is not defined.
            Measures that speak of all sentences together are not here.
        notes: what a reader should know, in words.
    """

    name: str
    sentences: int
    values: Mapping[str, float | None] = field(default_factory=dict)
    by_sentence: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "name": self.name,
            "sentences": self.sentences,
            "values": dict(self.values),
            "by_sentence": {name: list(values) for name, values in self.by_sentence.items()},
            "notes": list(self.notes),
        }


def measure(
    pairs: Sequence[AugmentedPair | Sentence],
    gold: Sequence[Sentence],
    *,
    name: str = "",
    measures: Sequence[str] | None = None,
    causal_lm: CausalLM | str | None = "smollm2",
    masked_lm: MaskedLM | str | None = None,
    encoder: Encoder | str | None = "minilm",
    progress: Progress = silent,
) -> Quality:
    """Measure what a method has made.

    Rejected pairs are left out. To measure gold sentences themselves, as a row to compare with, give them as pairs
    without a source, and no gold.

    Args:
        pairs: augmented sentences with their sources, as `entaug.augmented.read_augmented` gives them; or alone, where their
            provenance leads to those in `gold`.
        gold: all gold sentences.
        name: for the result.
        measures: which; None for all that the models allow.
        causal_lm: a `CausalLM`, or the name of one; None leaves out what needs one.
        masked_lm: a `MaskedLM`, or the name of one; None leaves out what needs one.
        encoder: an `Encoder`, or the name of one; None leaves out what needs one.
        progress: called with what is being done, how much of it is done, and of how much.

    Raises:
        UnknownNameError: there is no such measure.
        ParameterError: a measure that is named needs a model, and there is none.
        MissingModelError: a model that was asked for is not on this machine. One that is merely the default is left
            out, and a note says so.

    Returns:
        Values and notes. The order of the pairs changes nothing but `near_others`, which looks at earlier ones.
    """
    chosen, models, notes = _prepared(measures, causal_lm, masked_lm, encoder, progress)
    found = iter(pair_with_sources([one for one in pairs if isinstance(one, Sentence)], gold))
    known = [one if isinstance(one, AugmentedPair) else next(found) or AugmentedPair(one) for one in pairs]
    return _measured(name, known, gold, chosen, models, notes)


measure_quality = measure
"""The same function by the name that `entaug` has for it."""


def measure_made(
    made: AugmentedCorpus,
    *,
    measures: Sequence[str] | None = None,
    causal_lm: CausalLM | str | None = "smollm2",
    masked_lm: MaskedLM | str | None = None,
    encoder: Encoder | str | None = "minilm",
    progress: Progress = silent,
) -> list[Quality]:
    """Measure all methods of some files, gold sentences first; see `measure`.

    A text that several of them share is computed once.

    Args:
        made: as `entaug.augmented.read_augmented` gives it.
        measures: which; None for all that the models allow.
        causal_lm: a `CausalLM`, or the name of one, or None.
        masked_lm: a `MaskedLM`, or the name of one, or None.
        encoder: an `Encoder`, or the name of one, or None.
        progress: called with what is being done, how much of it is done, and of how much.
    """
    chosen, models, notes = _prepared(measures, causal_lm, masked_lm, encoder, progress)
    everything = [
        *made.gold,
        *(pair.augmented for pairs in made.methods.values() for pair in pairs if not pair.rejection),
    ]
    # All at once, so that there is one bar, with one end.
    if any(MEASURES[one].needs == "causal_lm" for one in chosen):
        models.log_likelihoods(everything)
    if any(MEASURES[one].needs == "masked_lm" for one in chosen):
        models.pseudo_log_likelihoods(everything)
    found = [_measured(name, pairs, made.gold, chosen, models, ()) for name, pairs in made.methods.items()]
    if made.gold:
        gold = _measured("gold", [AugmentedPair(s) for s in made.gold], (), chosen, models, ())
        # That gold cannot be compared with gold needs no saying.
        found.insert(0, replace(gold, notes=tuple(n for n in gold.notes if not n.startswith(_NOT_DEFINED))))
    said = [*made.notes, *notes]
    if {"distinct_1", "distinct_2"} & {*chosen} and len({one.sentences for one in found if one.sentences}) > 1:
        said.append("distinct-1 and -2 fall as sentences become more: compare columns with as many")
    if found:
        found[0] = replace(found[0], notes=(*said, *found[0].notes))
    return found


def _prepared(
    measures: Sequence[str] | None,
    causal_lm: CausalLM | str | None,
    masked_lm: MaskedLM | str | None,
    encoder: Encoder | str | None,
    progress: Progress,
) -> tuple[list[str], Models, tuple[str, ...]]:
    """The measures that are taken, the models for them, and notes on those that are not there."""
    chosen = list(dict.fromkeys(MEASURES if measures is None else measures))
    for name in chosen:
        if name not in MEASURES:
            raise UnknownNameError("measure", name, MEASURES)
    models, notes = Models(progress=progress), []
    for kind, given in (("causal_lm", causal_lm), ("masked_lm", masked_lm), ("encoder", encoder)):
        those = [name for name in chosen if MEASURES[name].needs == kind]
        if not those:
            continue
        if given is None:
            if measures is not None:
                what = kind.replace("_", " ").replace("lm", "language model")
                remedy = f"name one as {kind} (on the command line --{kind.replace('_', '-')})"
                raise ParameterError(f"{', '.join(those)}: there is no {what} to ask", remedy=remedy)
            chosen = [name for name in chosen if name not in those]
            continue
        try:
            setattr(models, kind, resolve(kind, given))
        except (MissingModelError, MissingExtraError) as error:
            if measures is not None or given != _DEFAULTS[kind]:
                raise
            notes.append(f"not measured: {', '.join(those)} ({error})")
            chosen = [name for name in chosen if name not in those]
    return chosen, models, tuple(notes)


def _measured(
    name: str,
    pairs: Sequence[AugmentedPair],
    gold: Sequence[Sentence],
    chosen: Sequence[str],
    models: Models,
    notes: Sequence[str],
) -> Quality:
    kept = [pair for pair in pairs if not pair.rejection]
    said = list(notes)
    if len(kept) < len(pairs):
        said.append(f"{len(pairs) - len(kept):,} rejected sentences are not measured")
    sources = [pair.source for pair in kept]
    lost = sum(source is None for source in sources)
    if 0 < lost < len(kept):
        said.append(f"the source of {lost:,} of {len(kept):,} sentences is not known")
    of = Material([pair.augmented for pair in kept], sources, gold, models)
    values: dict[str, float | None] = {}
    by_sentence: dict[str, Sequence[float | None]] = {}
    undefined: dict[str, list[str]] = defaultdict(list)
    for one in chosen:
        values[one] = None
        if not kept:
            undefined["there are no sentences"].append(one)
            continue
        try:
            found = MEASURES[one].function(of)
        except UndefinedError as error:
            undefined[str(error)].append(one)
            continue
        values[one] = found.value
        if found.by_sentence is not None:
            by_sentence[one] = found.by_sentence
        if found.note:
            said.append(f"{one}: {found.note}")
    said += [f"{_NOT_DEFINED} {why}: {', '.join(names)}" for why, names in undefined.items()]
    return Quality(name, len(kept), values, by_sentence, tuple(said))
