"""BT: backtranslation of words outside mentions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, Literal, NamedTuple

from entaug.backends.language_check import LoadedModel
from entaug.backends.protocols import RoundTrip
from entaug.backends.resolve import resolve
from entaug.backends.translation.base import ChainedTranslator
from entaug.config.params import PositiveInt, Probability
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.alignment import CorpusTokenizer, detokenize
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.rng import sample_positions
from entaug.core.spacing import infer_spaces, is_word_character
from entaug.core.words import words_in
from entaug.errors import EditError, InputError, ParameterError
from entaug.filters.label_guard import UncasedNames
from entaug.methods.base import Augmenter, MethodInfo, Rejection, Request
from entaug.methods.types import UNCHANGED

_NO_SEGMENT = Rejection("no long enough segment outside mentions", final=True)
_MENTION_LOST = Rejection("a protected mention was lost or moved in translation")
_UNUSABLE = Rejection("the translation is not usable in the sentence")
_STARTER_PAIRS: dict[str, tuple[str, ...]] = {"pt": ("en-pt", "pt-en")}
_CACHE_SIZE = 50_000  # size of the translation cache; segments repeat within a corpus and between copies
# Artefacts of models that must not be in a translation: sub-words, masks, unknown words, special tokens.
_ARTEFACTS = re.compile(r"##|▁|⁇|�|</?s>|<unk>|<pad>|\[(?:MASK|UNK|PAD|CLS|SEP)\]|<mask>")
# Characters and words that a translation must not change: figures, brackets, user names, hashtags and web addresses.
_FIXED = re.compile(r"\d|^[@#]\w|://|^www\.|[()\[\]]")
_DETACHED_APOSTROPHES = frozenset(("'", "’", "`", "´"))  # noqa: RUF001


@dataclass(kw_only=True, eq=False)
class Backtranslation(Augmenter):
    """Translate segments outside mentions into another language and back.

    Segments of at least `min_tokens` tokens are candidates, except the gaps of discontinuous mentions. The translation
    is tokenized like the corpus. The case of its first word and the punctuation around it follow the original.

    Args:
        p: the probability of translating each candidate; at least one is translated.
        translator: the translators into the other language and back: ``"pt"`` (the starter pair), ``"FORWARD>BACK"``
            with two names of translators, or more for several languages on the way (``"en-de>de-fr>fr-en"``), several
            of these separated by commas, or a `RoundTrip`, or a list of these. One is drawn for each segment.
        min_tokens: the minimum number of tokens of a candidate.
        do_sample: sample translations instead of taking the best, if the translator supports it.
        whole_sentence: translate whole sentences with placeholders for mentions, which keeps the context; `p` and
            `min_tokens` then have no effect, and translations that lose or reorder placeholders are rejected.
        check_translations: reject translations with other figures or brackets, with words of the other language, or of
            an implausible length; the paper takes all translations.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods bt``)
            unless it is given.

    Example:
        >>> from entaug import Mention
        >>> from helpers.fakes import FakeTranslator  # tests/helpers of entaug
        >>> pivot = RoundTrip(FakeTranslator({"sings": "canta"}), FakeTranslator({"canta": "chants"}))
        >>> gold = [Sentence("Ada sings very well .".split(), [Mention("PER", [(0, 1)])])]
        >>> [new] = Backtranslation(translator=pivot).fit(gold).augment(gold)
        >>> new.tokens, new.iob()
        (('Ada', 'chants', 'very', 'well', '.'), ['B-PER', 'O', 'O', 'O', 'O'])
    """

    p: Probability = 0.5
    translator: str | RoundTrip | Sequence[RoundTrip] = "pt"
    min_tokens: PositiveInt = 3
    do_sample: bool = False
    whole_sentence: bool = False
    check_translations: bool = True
    preset: Literal["starter", "paper"] = field(default="starter", metadata=ONLY_IF_SET)

    presets = read_presets("bt")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="bt",
        long_name="backtranslation",
        summary="segments outside mentions translated into another language and back",
        paper="Yaseen and Langer 2021, Data Augmentation for Low-Resource NER Using Backtranslation",
        keeps_order=True,
        keeps_mention_words=True,
        needs_fit=True,
        writes_words=True,
        wrong_labels=(0, 30),
        needs=("translator",),
        cost="two translations per segment; repeated segments are translated once",
    )

    def _load(self) -> None:
        [self.translator_] = self._load_models({"translator": lambda: _round_trips(self.translator)}).values()
        self._answers: dict[_Query, tuple[str, str]] = {}

    def _models(self) -> list[LoadedModel]:
        option = self._option("translator")
        return [LoadedModel("translator", trip.forward, trip.forward, option) for trip in self.translator_]

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        self._uncased_names = self.guard_.uncased_names if self.guard_ else UncasedNames()
        self.tokenizer_ = CorpusTokenizer(sentence.tokens for sentence in corpus)
        if self.tokenizer_.divides_unspaced_text:
            raise InputError(
                "the corpus divides a script without spaces into words, which cannot be done to translations",
                remedy="divide it into characters",
            )

    def notes(self) -> list[str]:
        if not self.do_sample:
            return super().notes()
        return super().notes() + [
            f"{trip.name} cannot sample: its translation of a text is always the same"
            for trip in self.translator_
            if not (trip.forward.can_sample or trip.backward.can_sample)
        ]

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        plan_one = self._plan_whole if self.whole_sentence else self._plan_runs
        plans = [plan_one(request.sentence, request.rng) for request in requests]
        self._translate([question for plan in plans for _, question in plan])
        finish = self._finish_whole if self.whole_sentence else self._finish_runs
        return [finish(sentence, plan) for (sentence, *_), plan in zip(requests, plans, strict=True)]

    def _query(self, text: str, rng: Random) -> _Query:
        pivot = rng.randrange(len(self.translator_))
        seed = rng.getrandbits(62)  # always drawn, so that the choice of pivots does not depend on do_sample
        return _Query(pivot, text, seed if self.do_sample else None)

    def _translate(self, queries: Iterable[_Query]) -> None:
        """Translate all texts that are not cached, with one call for each pivot."""
        if len(self._answers) > _CACHE_SIZE:
            self._answers.clear()
        new = [question for question in dict.fromkeys(queries) if question not in self._answers]
        for pivot, trip in enumerate(self.translator_):
            of_pivot = [question for question in new if question.pivot == pivot]
            if not of_pivot:
                continue
            seeds = [question.seed for question in of_pivot if question.seed is not None] or None
            there = trip.forward.translate([question.text for question in of_pivot], seeds)
            back = trip.backward.translate(there, seeds)
            self._answers.update(zip(of_pivot, zip(there, back, strict=True), strict=True))

    # ------------------------------------------------------------------------------------------------- run by run

    def _plan_runs(self, sentence: Sentence, rng: Random) -> _Plan:
        cores = self._cores(sentence)
        drawn = [cores[place] for place in sample_positions(rng, len(cores), self.p)]
        return [((start, end), self._query(detokenize(sentence.tokens[start:end]), rng)) for start, end in drawn]

    def _cores(self, sentence: Sentence) -> list[tuple[int, int]]:
        """The segments outside mentions (and names, in a corpus without capitals), without marks at their ends."""
        free = sentence.outside_mask()
        broken = [m for m in sentence.mentions if not m.is_contiguous]
        [names] = self._uncased_names.places([sentence])
        return [
            core
            for segment in sentence.segments()
            if free[segment[0]] and not any(m.start < segment[0] and segment[1] <= m.end for m in broken)
            for start, end in _between(segment, names)
            if end - start >= self.min_tokens and (core := _core(sentence.tokens, start, end))
        ]

    def _finish_runs(self, sentence: Sentence, plan: _Plan) -> Sentence | Rejection:
        if not plan:
            return _NO_SEGMENT if self.p else UNCHANGED
        replaced = [
            (start, end, self._tokens_of(sentence.tokens[start:end], *self._answers[question]))
            for (start, end), question in plan
        ]
        if not any(words and words != sentence.tokens[start:end] for start, end, words in replaced):
            return _UNUSABLE if any(words is None for *_, words in replaced) else UNCHANGED
        return _replace(sentence, [(start, end, words) for start, end, words in replaced if words is not None])

    def _tokens_of(self, original: tuple[str, ...], pivot: str, text: str) -> tuple[str, ...] | None:
        """Return a translation as tokens that can replace the original; None if it cannot."""
        words = self.tokenizer_(text)
        ends = _core(words, 0, len(words))
        if ends is None:
            return None
        first, *rest = words[slice(*ends)]
        if _ARTEFACTS.search(text) or not self._is_plausible(original, [first, *rest], pivot):
            return None
        if original[0][0].islower() and first[0].isupper() and first[1:].islower() and first not in original:
            first = first[0].lower() + first[1:]
        return (_cased(first, original[0]), *rest)

    def _is_plausible(self, original: Sequence[str], words: Sequence[str], pivot: str) -> bool:
        """Whether a translation has a plausible length, the same figures, and no words of the other language."""
        if not self.check_translations:
            return True
        if len(words) > 2 * len(original) + 3 or 2 * len(words) + 1 < len(original):
            return False  # degenerate repetition or truncation
        if not _DETACHED_APOSTROPHES.isdisjoint(words) and _DETACHED_APOSTROPHES.isdisjoint(original):
            return False
        if sorted(filter(_FIXED.search, words)) != sorted(filter(_FIXED.search, original)):
            return False
        # A word of the pivot text that is in neither the original nor the corpus was left untranslated.
        foreign = {word.lower() for word in words_in(pivot) if len(word) > 3} - {word.lower() for word in original}
        return all(self.tokenizer_.is_known(word) for word in words if word.lower() in foreign)

    # ------------------------------------------------------------------------------------------------ whole sentences

    def _plan_whole(self, sentence: Sentence, rng: Random) -> _Plan:
        ranges = self._kept_ranges(sentence)
        core = _core(sentence.tokens, 0, len(sentence))
        if core is None or sum(end - start for start, end in ranges) >= len(sentence):
            return []
        tokens: list[str] = []
        place = core[0]
        for number, (start, end) in enumerate(ranges):
            tokens += [*sentence.tokens[place:start], _placeholder(number)]
            place = end
        tokens += sentence.tokens[place : max(place, core[1])]
        return [(core, self._query(detokenize(tokens), rng))]

    def _kept_ranges(self, sentence: Sentence) -> list[tuple[int, int]]:
        """The ranges of mentions, gaps included, and of names in a corpus without capitals; overlapping ones merged."""
        [names] = self._uncased_names.places([sentence])
        ranges: list[tuple[int, int]] = []
        for start, end in sorted([*((m.start, m.end) for m in sentence.mentions), *((i, i + 1) for i in names)]):
            if ranges and start < ranges[-1][1]:
                ranges[-1] = (ranges[-1][0], max(end, ranges[-1][1]))
            else:
                ranges.append((start, end))
        return ranges

    def _finish_whole(self, sentence: Sentence, plan: _Plan) -> Sentence | Rejection:
        if not plan:
            return _NO_SEGMENT
        [((first, last), question)] = plan
        pivot, text = self._answers[question]
        ranges = self._kept_ranges(sentence)
        pieces = _split_at([_placeholder(number) for number in range(len(ranges))], text)
        if pieces is None:
            return _MENTION_LOST
        if ranges:  # the core leaves out punctuation at the ends, also that of a mention
            first = min(first, ranges[0][0])
        bounds = [first, *(edge for span in ranges for edge in span), last]
        replaced = []
        for number, piece in enumerate(pieces):
            start, end = bounds[2 * number], max(bounds[2 * number], bounds[2 * number + 1])
            words = tuple(self.tokenizer_(piece))
            if number == 0 and words and start < end:
                words = (_cased(words[0], sentence.tokens[start]), *words[1:])
            if number == len(pieces) - 1:  # the final punctuation of the original is kept
                while words and not is_word_character(words[-1][-1]):
                    words = words[:-1]
            replaced.append((start, end, words))
        new = _replace(sentence, replaced)
        if isinstance(new, Rejection) or _ARTEFACTS.search(text):
            return _UNUSABLE
        return new if self._is_plausible(sentence.tokens, new.tokens, pivot) else _UNUSABLE


class _Query(NamedTuple):
    """A text for translation into the pivot language and back."""

    pivot: int
    text: str
    seed: int | None


_Plan = list[tuple[tuple[int, int], _Query]]


def _round_trips(given: str | RoundTrip | Sequence[RoundTrip]) -> list[RoundTrip]:
    """Return the pairs of translators given by the parameter."""
    if isinstance(given, str):
        return [_open_round_trip(part.strip()) for part in given.split(",")]
    trips = [given] if isinstance(given, RoundTrip) else list(given)
    if not trips or not all(isinstance(trip, RoundTrip) for trip in trips):
        raise ParameterError(f"translator must be a name or RoundTrips, not {given!r}")
    return trips


def _open_round_trip(name: str) -> RoundTrip:
    names = _STARTER_PAIRS[name] if name in _STARTER_PAIRS else tuple(part.strip() for part in name.split(">"))
    if len(names) < 2 or not all(names):
        raise ParameterError(
            f"translator {name!r} has no translator back",
            remedy=f"join two names by >, or use one of: {', '.join(_STARTER_PAIRS)}",
        )
    *there, back = [resolve("translator", part) for part in names]
    return RoundTrip(there[0] if len(there) == 1 else ChainedTranslator(there), back)


def _between(segment: tuple[int, int], names: Collection[int]) -> Iterator[tuple[int, int]]:
    """The parts of a segment between positions."""
    start, end = segment
    for place in (*sorted(i for i in names if start <= i < end), end):
        if start < place:
            yield start, place
        start = place + 1


def _core(tokens: Sequence[str], start: int, end: int) -> tuple[int, int] | None:
    """Strip the punctuation at the ends of a segment; return None if fewer than two words are left."""
    while start < end and not is_word_character(tokens[start][0]):
        start += 1
    while start < end and not is_word_character(tokens[end - 1][-1]):
        end -= 1
    return (start, end) if sum(token[0].isalpha() for token in tokens[start:end]) > 1 else None


def _placeholder(number: int) -> str:
    return f"XX{number + 1}"


def _split_at(placeholders: list[str], text: str) -> list[str] | None:
    """Split a text at placeholders; return None unless each occurs exactly once, in order."""
    return re.split(r"XX\d+", text) if re.findall(r"XX\d+", text) == placeholders else None


def _cased(word: str, model: str) -> str:
    return word[0].upper() + word[1:] if model[0].isupper() and word[0].islower() else word


def _replace(sentence: Sentence, replaced: Iterable[tuple[int, int, tuple[str, ...]]]) -> Sentence | Rejection:
    """Replace segments by translations."""
    try:
        return sentence.edit(
            Edit(start, end, words, None, infer_spaces(words)[:-1])
            for start, end, words in replaced
            if words != sentence.tokens[start:end]
        )
    except EditError:  # whatever a translator answers, it ends this draft only
        return _UNUSABLE
