"""BT: backtranslation of what stands outside mentions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, NamedTuple

from entaug.alignment import CorpusTokenizer, detokenize
from entaug.augmenters.base import Augmenter, MethodInfo, Rejection, Request
from entaug.augmenters.contracts import UNCHANGED
from entaug.backends.protocols import RoundTrip
from entaug.backends.resolve import resolve
from entaug.data import Edit, Sentence
from entaug.errors import ParameterError
from entaug.params import PositiveInt, Probability
from entaug.rng import some_of
from entaug.spacing import infer_spaces, is_word_character

__all__ = ["Backtranslation"]

_NO_SEGMENT = Rejection("no run of enough words outside mentions", final=True)
_MENTION_LOST = Rejection("a protected mention was lost or moved in translation")
_ODD = Rejection("the translation cannot stand in a sentence")
_STARTER = {"pt": ("en-pt", "pt-en")}
_REMEMBERED = 50_000  # translations kept; segments repeat within a corpus and between copies
# What a model must never leave in a text: pieces of words, hidden places, unknown words, detached apostrophes.
_LEAKS = re.compile(r"##|▁|⁇|�|</?s>|<unk>|<pad>|\[(?:MASK|UNK|PAD|CLS|SEP)\]|<mask>")
# What a translation has to leave as it is: figures, brackets, names and addresses of the web.
_FIXED = re.compile(r"\d|^[@#]\w|://|^www\.|[()\[\]]")
_LONE = frozenset(("'", "’", "`", "´"))  # noqa: RUF001


@dataclass(kw_only=True, eq=False)
class Backtranslation(Augmenter):
    """Translate runs of words outside mentions into another language and back.

    Runs of at least `min_tokens` tokens are candidates, the gaps of discontinuous mentions excepted. What comes back is
    tokenised as the corpus is; the casing of its beginning and the punctuation around it follow the original.

    Args:
        p: the probability of each candidate to be translated; one at least always is.
        translator: the way there and back: ``"pt"`` (the starter pair), ``"THERE>BACK"`` with two names of translators,
            several of them with commas between, or a `RoundTrip`, or a list of these. One is drawn for each run.
        min_tokens: the minimum number of tokens of a candidate.
        do_sample: draw translations at random instead of taking the best, where the translator can.
        whole_sentence: translate whole sentences, mentions protected by placeholders, so that context is not lost; `p`
            and `min_tokens` then have no effect, and a sentence whose placeholders do not come back in order is given
            up.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeTranslator
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

    info: ClassVar[MethodInfo] = MethodInfo(
        name="bt",
        long_name="backtranslation",
        summary="runs of words outside mentions translated into another language and back",
        paper="Yaseen and Langer 2021, Data Augmentation for Low-Resource NER Using Backtranslation",
        keeps_order=True,
        keeps_mention_words=True,
        needs_fit=True,
        needs=("translator",),
        cost="two translations per run of words; repeated runs are translated once",
    )

    def _load(self) -> None:
        self.translator_ = _Pivots(self.translator)
        self._answers: dict[_Question, tuple[str, str]] = {}

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        self.tokenizer_ = CorpusTokenizer(sentence.tokens for sentence in corpus)

    def notes(self) -> list[str]:
        """What a user should know about the translators."""
        if not self.do_sample:
            return []
        return [
            f"{trip.name} cannot sample: its translation of a text is always the same"
            for trip in self.translator_.trips
            if not (trip.there.samples or trip.back.samples)
        ]

    def _rewrite_batch(self, asked: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        plan_one = self._plan_whole if self.whole_sentence else self._plan_runs
        plans = [plan_one(one.sentence, one.rng) for one in asked]
        self._translate([question for plan in plans for _, question in plan])
        finish = self._finish_whole if self.whole_sentence else self._finish_runs
        return [finish(sentence, plan) for (sentence, *_), plan in zip(asked, plans, strict=True)]

    def _question(self, text: str, rng: Random) -> _Question:
        pivot = rng.randrange(len(self.translator_.trips))
        seed = rng.getrandbits(62)  # drawn in any case, so that sampling or not draws the same pivots
        return _Question(pivot, text, seed if self.do_sample else None)

    def _translate(self, questions: Iterable[_Question]) -> None:
        """Answer all questions that are new, each pivot's in one call."""
        if len(self._answers) > _REMEMBERED:
            self._answers.clear()
        new = [question for question in dict.fromkeys(questions) if question not in self._answers]
        for pivot, trip in enumerate(self.translator_.trips):
            of_pivot = [question for question in new if question.pivot == pivot]
            if not of_pivot:
                continue
            seeds = [question.seed for question in of_pivot if question.seed is not None] or None
            there = trip.there.translate([question.text for question in of_pivot], seeds)
            back = trip.back.translate(there, seeds)
            self._answers.update(zip(of_pivot, zip(there, back, strict=True), strict=True))

    # ------------------------------------------------------------------------------------------------- run by run

    def _plan_runs(self, sentence: Sentence, rng: Random) -> _Plan:
        runs = [run for run in self._runs(sentence) if run[1] - run[0] >= self.min_tokens]
        plan = []
        for place in some_of(rng, len(runs), self.p):
            core = _core(sentence.tokens, *runs[place])
            if core is not None:
                text = detokenize(sentence.tokens[core[0] : core[1]])
                plan.append((core, self._question(text, rng)))
        return plan

    def _runs(self, sentence: Sentence) -> list[tuple[int, int]]:
        free = sentence.outside_mask()
        broken = [m for m in sentence.mentions if not m.is_contiguous]
        return [
            (start, end)
            for start, end in sentence.segments()
            if free[start]
            and not any(m.start < start and end <= m.end for m in broken)
            and _core(sentence.tokens, start, end) is not None
        ]

    def _finish_runs(self, sentence: Sentence, plan: _Plan) -> Sentence | Rejection:
        if not plan:
            return UNCHANGED if any(e - s >= self.min_tokens for s, e in self._runs(sentence)) else _NO_SEGMENT
        edits = []
        odd = False
        for (start, end), question in plan:
            words = self._fitted_to(sentence.tokens[start:end], *self._answers[question])
            odd = odd or words is None
            if words is not None and words != sentence.tokens[start:end]:
                edits.append(Edit(start, end, words, None, infer_spaces(words)[:-1]))
        if not edits:
            return _ODD if odd else UNCHANGED
        return sentence.edit(edits)

    def _fitted_to(self, original: tuple[str, ...], pivot: str, text: str) -> tuple[str, ...] | None:
        """A translation as tokens that can stand where the original stood; None where it cannot."""
        words = self.tokenizer_(text)
        ends = _core(words, 0, len(words))
        if ends is None:
            return None
        words = words[ends[0] : ends[1]]
        if _LEAKS.search(text) or not self._sound(original, words, pivot):
            return None
        first = words[0]
        if original[0][0].islower() and first[0].isupper() and first[1:].islower() and first not in original:
            words[0] = first[0].lower() + first[1:]
        elif original[0][0].isupper() and first[0].islower():
            words[0] = first[0].upper() + first[1:]
        return tuple(words)

    def _sound(self, original: Sequence[str], words: Sequence[str], pivot: str) -> bool:
        """Whether a translation is one: nothing of the machinery, of the other language or of the figures is amiss."""
        if len(words) > 2 * len(original) + 3 or 2 * len(words) + 1 < len(original):
            return False  # it runs away or breaks off
        if not _LONE.isdisjoint(words) and _LONE.isdisjoint(original):
            return False
        if sorted(filter(_FIXED.search, words)) != sorted(filter(_FIXED.search, original)):
            return False
        # A word that stands in the other language's text, and neither in the original nor in the corpus, is a leftover.
        foreign = {word.lower() for word in re.findall(r"[^\W\d_]{4,}", pivot)} - {word.lower() for word in original}
        return all(self.tokenizer_.knows(word) for word in words if word.lower() in foreign)

    # ------------------------------------------------------------------------------------------------ whole sentences

    def _plan_whole(self, sentence: Sentence, rng: Random) -> _Plan:
        units = _units(sentence)
        core = _core(sentence.tokens, 0, len(sentence))
        if core is None or sum(end - start for start, end in units) >= len(sentence):
            return []
        tokens: list[str] = []
        place = core[0]
        for number, (start, end) in enumerate(units):
            tokens += [*sentence.tokens[place:start], _placeholder(number)]
            place = end
        tokens += sentence.tokens[place : max(place, core[1])]
        return [(core, self._question(detokenize(tokens), rng))]

    def _finish_whole(self, sentence: Sentence, plan: _Plan) -> Sentence | Rejection:
        if not plan:
            return _NO_SEGMENT
        [((first, last), question)] = plan
        pivot, text = self._answers[question]
        units = _units(sentence)
        pieces = _split_at([_placeholder(number) for number in range(len(units))], text)
        if pieces is None:
            return _MENTION_LOST
        edits = []
        bounds = [first, *(edge for unit in units for edge in unit), last]
        for number, piece in enumerate(pieces):
            start, end = bounds[2 * number], max(bounds[2 * number], bounds[2 * number + 1])
            words = tuple(self.tokenizer_(piece))
            if number == 0 and words and start < end:
                words = (_cased(words[0], sentence.tokens[start]), *words[1:])
            if number == len(pieces) - 1:
                words = _without_end(words)
            if words != sentence.tokens[start:end]:
                edits.append(Edit(start, end, words, None, infer_spaces(words)[:-1]))
        made = sentence.edit(edits)
        return _ODD if _LEAKS.search(text) or not self._sound(sentence.tokens, made.tokens, pivot) else made


class _Question(NamedTuple):
    """A text to be translated there and back."""

    pivot: int
    text: str
    seed: int | None


_Plan = list[tuple[tuple[int, int], _Question]]


class _Pivots:
    """The ways there and back that were asked for."""

    def __init__(self, asked: str | RoundTrip | Sequence[RoundTrip]) -> None:
        if isinstance(asked, str):
            self.trips = [_named(one.strip()) for one in asked.split(",")]
        else:
            self.trips = [asked] if isinstance(asked, RoundTrip) else list(asked)
        if not self.trips or not all(isinstance(trip, RoundTrip) for trip in self.trips):
            raise ParameterError(f"translator must be a name or RoundTrips, not {asked!r}")
        self.name = ",".join(trip.name for trip in self.trips)


def _named(name: str) -> RoundTrip:
    if name in _STARTER:
        there, back = _STARTER[name]
    else:
        there, arrow, back = name.partition(">")
        if not (there and arrow and back):
            raise ParameterError(
                f"translator {name!r} does not say how to come back",
                remedy=f"name two with > between, or one of: {', '.join(_STARTER)}",
            )
    return RoundTrip(resolve("translator", there.strip()), resolve("translator", back.strip()))


def _core(tokens: Sequence[str], start: int, end: int) -> tuple[int, int] | None:
    """A run without the punctuation at its ends; None where fewer than two words are left."""
    while start < end and not is_word_character(tokens[start][0]):
        start += 1
    while start < end and not is_word_character(tokens[end - 1][-1]):
        end -= 1
    return (start, end) if sum(token[0].isalpha() for token in tokens[start:end]) > 1 else None


def _units(sentence: Sentence) -> list[tuple[int, int]]:
    """Ranges that hold mentions whole, gaps included; overlapping ones are one range."""
    units: list[tuple[int, int]] = []
    for start, end in sorted((m.start, m.end) for m in sentence.mentions):
        if units and start < units[-1][1]:
            units[-1] = (units[-1][0], max(end, units[-1][1]))
        else:
            units.append((start, end))
    return units


def _placeholder(number: int) -> str:
    return f"XX{number + 1}"


def _split_at(placeholders: list[str], text: str) -> list[str] | None:
    """The stretches of a text around placeholders; None unless each is there once, in order."""
    found = re.findall(r"XX\d+", text)
    return re.split(r"XX\d+", text) if found == placeholders else None


def _cased(word: str, model: str) -> str:
    if model[0].isupper() and word[0].islower():
        return word[0].upper() + word[1:]
    return word


def _without_end(words: tuple[str, ...]) -> tuple[str, ...]:
    """Words without the punctuation that a translator puts at the end of a sentence: the original's own is kept."""
    end = len(words)
    while end and not is_word_character(words[end - 1][-1]):
        end -= 1
    return words[:end]
