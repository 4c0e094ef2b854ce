"""BT: backtranslation of sentences, and of segments outside mentions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple

from entaug.backends.language_check import LoadedModel
from entaug.backends.protocols import CausalLM, DependencyParser, Encoder, RoundTrip
from entaug.backends.resolve import resolve
from entaug.backends.translation.base import ChainedTranslator
from entaug.config.params import PositiveInt, Probability
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.alignment import CorpusTokenizer, detokenize
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.languages import LanguageProfile
from entaug.core.mentions import Mention
from entaug.core.rng import sample_positions
from entaug.core.spacing import infer_spaces, is_word_character
from entaug.core.words import AUTO, stop_words, words_in
from entaug.errors import EditError, InputError, ParameterError
from entaug.filters.label_guard import UncasedNames
from entaug.methods.base import Augmenter, MethodInfo, Rejection, Request
from entaug.methods.shared.paraphrase_changes import Change, Replacement, independent_changes
from entaug.methods.shared.word_choice import is_alike_in_tree, load_starter, missing_starters
from entaug.methods.types import UNCHANGED
from entaug.metrics.likelihood import as_text, variant_log_probs

_NO_SEGMENT = Rejection("no long enough segment outside mentions", final=True)
_NO_CHANGE = "the translation changes nothing that may be changed"
_ALL_DRAWN = Rejection("all changes of the translation were drawn before", final=True)
_UNUSABLE = Rejection("the translation is not usable in the sentence")
_STARTER_PAIRS: dict[str, tuple[str, ...]] = {"pt": ("en-pt", "pt-en")}
_JUDGES = ("encoder", "causal_lm", "dependency_parser")  # the models that judge changes
_WORD_FOR_WORD = 4  # times as far from 1 the cosine may be for a word in place of one of the same kind
_CONTEXT = 4  # words on both sides of a change, with which its meaning is compared
# Nats by which a change of stop words alone, of which the words around them choose one, has to raise the likelihood.
_MIN_GAIN = 2.0
_DRAWS_OF_EACH = 4  # on average of each choice of changes, until all were drawn but in rare cases
_DIGITS = 3  # of scores: kernels may round further ones differently for other batches
_CACHE_SIZE = 50_000  # size of the translation cache; segments repeat within a corpus and between copies
# Artefacts of models that must not be in a translation: sub-words, masks, unknown words, special tokens.
_ARTEFACTS = re.compile(r"##|▁|⁇|�|</?s>|<unk>|<pad>|\[(?:MASK|UNK|PAD|CLS|SEP)\]|<mask>")
# Characters and words that a translation must not change: figures, brackets, user names, hashtags and web addresses.
_FIXED = re.compile(r"\d|^[@#]\w|://|^www\.|[()\[\]]")
_DETACHED_APOSTROPHES = frozenset(("'", "’", "`", "´"))  # noqa: RUF001


@dataclass(kw_only=True, eq=False)
class Backtranslation(Augmenter):
    """Translate sentences into another language and back, and take over what changes outside mentions.

    A sentence is translated as a whole, so that words have their context, and each of its segments outside mentions
    alone. Of what the translations change, those changes are candidates that can be made each without the others, that
    leave mentions, names, figures, punctuation, negation and pronouns as they are, that lose no word for which no other
    stands, that keep the meaning of the words around them, and that make the sentence no less likely (of stop words
    alone: more likely). In English a parser, if the starter one is prepared, refuses changes with which other words
    become other parts of speech. A sentence of which no change is left has no new sentence.

    With ``whole_sentence=False``, segments are replaced by their translations, as in the paper. Segments are candidates
    except the gaps of discontinuous mentions. The case of their first word and the punctuation around them follow the
    original.

    Args:
        p: the probability of taking each candidate; at least one is taken.
        translator: the translators into the other language and back: ``"pt"`` (the starter pair), ``"FORWARD>BACK"``
            with two names of translators, or more for several languages on the way (``"en-de>de-fr>fr-en"``), several
            of these separated by commas, or a `RoundTrip`, or a list of these. One is drawn for each text.
        min_tokens: the minimum number of tokens of a segment.
        do_sample: sample translations instead of taking the best, if the translator supports it.
        whole_sentence: translate whole sentences besides segments, and take over single changes.
        check_translations: reject segments with other figures or brackets, with words of the other language, or of an
            implausible length; and, with `whole_sentence`, changes that change the meaning or read worse. The paper
            takes all translations.
        min_similarity: the minimum cosine between a change and what it replaces, with the words around them; for a
            change in two places the cosine may be half as far from 1, for a word in place of one that the parser finds
            to be of the same part of speech, form and place in the tree four times as far. Used where both
            `whole_sentence` and `check_translations` are set, like the models below.
        encoder: an `Encoder`, or the name of one, for the meaning.
        causal_lm: a `CausalLM`, or the name of one, for the likelihood.
        dependency_parser: a `DependencyParser`, the name of a spaCy pipeline, or a CoNLL-U file; none to do without.
            ``"auto"`` is the starter parser, where it is prepared and the corpus is English.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods bt``)
            unless it is given.

    Example:
        >>> from entaug import Mention
        >>> from helpers.fakes import FakeTranslator  # tests/helpers of entaug
        >>> pivot = RoundTrip(FakeTranslator({"sings": "canta"}), FakeTranslator({"canta": "chants"}))
        >>> gold = [Sentence("Ada sings very well .".split(), [Mention("PER", [(0, 1)])])]
        >>> [new] = Backtranslation(translator=pivot, check_translations=False).fit(gold).augment(gold)
        >>> new.tokens, new.iob()
        (('Ada', 'chants', 'very', 'well', '.'), ['B-PER', 'O', 'O', 'O', 'O'])
    """

    p: Probability = 0.5
    translator: str | RoundTrip | Sequence[RoundTrip] = "pt"
    min_tokens: PositiveInt = 3
    do_sample: bool = False
    whole_sentence: bool = True
    check_translations: bool = True
    min_similarity: Probability = 0.95
    encoder: Encoder | str = "minilm"
    causal_lm: CausalLM | str = "smollm2"
    dependency_parser: DependencyParser | str | None = AUTO
    preset: Literal["starter", "paper"] = field(default="starter", metadata=ONLY_IF_SET)

    translator_: list[RoundTrip] = field(init=False, repr=False)
    encoder_: Encoder = field(init=False, repr=False)
    causal_lm_: CausalLM = field(init=False, repr=False)
    dependency_parser_: DependencyParser | None = field(init=False, repr=False)

    presets = read_presets("bt")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="bt",
        long_name="backtranslation",
        summary="sentences translated into another language and back, for other words outside mentions",
        paper="Yaseen and Langer 2021, Data Augmentation for Low-Resource NER Using Backtranslation",
        keeps_order=True,
        keeps_mention_words=True,
        needs_fit=True,
        writes_words=True,
        wrong_labels=(0, 30),
        needs=("translator", "encoder", "causal_lm"),
        may_need=("dependency_parser",),
        cost="two translations per sentence and segment, and one pass of a language model per change",
    )

    def _load(self) -> None:
        loaders: dict[str, Callable[[], Any]] = {
            kind: partial(resolve, kind, getattr(self, kind)) for kind in _JUDGES if self._uses_backend(kind)
        }
        loaders["translator"] = lambda: _round_trips(self.translator)
        for kind, backend in self._load_models(loaders).items():
            setattr(self, f"{kind}_", backend)
        if not self._uses_backend("dependency_parser"):
            self.dependency_parser_ = None
        self._answers: dict[_Query, tuple[str, str]] = {}
        self._changes: dict[_Key, list[Change]] = {}

    def _uses_backend(self, kind: str) -> bool:
        if kind == "dependency_parser" and self.dependency_parser in (None, AUTO):
            return False
        return kind not in _JUDGES or self._judges_changes

    @property
    def _judges_changes(self) -> bool:
        return self.whole_sentence and self.check_translations

    def _named_backends(self, kind: str) -> Iterable[Any]:
        if kind != "translator":
            return super()._named_backends(kind)
        chains = _chains(self.translator) if isinstance(self.translator, str) else []
        return [name for chain in chains for name in chain]

    def _models(self) -> list[LoadedModel]:
        option = self._option("translator")
        translators = [LoadedModel("translator", trip.forward, trip.forward, option) for trip in self.translator_]
        return [*translators, *(model for model in super()._models() if model.kind in _JUDGES)]

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        self._uncased_names = self.guard_.uncased_names if self.guard_ else UncasedNames()
        words = LanguageProfile()

        def tokens() -> Iterator[tuple[str, ...]]:
            for sentence in corpus:
                words.add(sentence)
                yield sentence.tokens

        self.tokenizer_ = CorpusTokenizer(tokens())
        self._language = words.language
        if self.dependency_parser == AUTO and self._judges_changes:
            self.dependency_parser_ = load_starter("dependency_parser", self._language)
        self._changes.clear()  # the names of another corpus may be others
        if self.tokenizer_.divides_unspaced_text:
            raise InputError(
                "the corpus divides a script without spaces into words, which cannot be done to translations",
                remedy="divide it into characters",
            )

    def notes(self) -> list[str]:
        notes = super().notes() + (missing_starters(self, self._language) if self._judges_changes else [])
        if not self.do_sample:
            return notes
        return notes + [
            f"{trip.name} cannot sample: its translation of a text is always the same"
            for trip in self.translator_
            if not (trip.forward.can_sample or trip.backward.can_sample)
        ]

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        if self.whole_sentence:
            return self._rewrite_whole(requests)
        plans = [self._plan_runs(request.sentence, request.rng) for request in requests]
        self._translate([question for plan in plans for _, question in plan])
        return [self._finish_runs(sentence, plan) for (sentence, *_), plan in zip(requests, plans, strict=True)]

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
        return tuple(((start, end), self._query(detokenize(sentence.tokens[start:end]), rng)) for start, end in drawn)

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

    def _rewrite_whole(self, requests: Sequence[Request]) -> list[Sentence | Rejection]:
        plans = [self._plan_whole(request.sentence, request.rng) for request in requests]
        self._translate([query for plan in plans for _, query in plan])
        sentences = [request.sentence for request in requests]
        keys = [_Key(s.tokens, s.mentions, s.spaces, plan) for s, plan in zip(sentences, plans, strict=True)]
        self._find_changes(dict(zip(keys, sentences, strict=True)))
        return [self._draw_changes(request, self._changes[key]) for request, key in zip(requests, keys, strict=True)]

    def _plan_whole(self, sentence: Sentence, rng: Random) -> _Plan:
        """The sentence, and its segments: translators divide and order a sentence otherwise than a part of it."""
        ranges = dict.fromkeys([(0, len(sentence)), *self._cores(sentence)])
        texts = [(span, detokenize(sentence.tokens[slice(*span)])) for span in ranges]
        if not _has_capitals(sentence.tokens):
            texts.append(((0, len(sentence)), _cased_text(sentence)))
        return tuple((span, self._query(text, rng)) for span, text in texts)

    def _find_changes(self, sentences: Mapping[_Key, Sentence]) -> None:
        """Find the changes that translations make to sentences, and keep those that read well and mean the same."""
        if len(self._changes) > _CACHE_SIZE:
            self._changes.clear()
        new = {key: sentence for key, sentence in sentences.items() if key not in self._changes}
        names = self._uncased_names.places(list(new.values()))
        for (key, sentence), of_sentence in zip(new.items(), names, strict=True):
            kept = {*of_sentence, *(i for m in sentence.mentions for i in range(m.start, m.end))}  # gaps included
            changes = list(
                dict.fromkeys(change for part in key.plan for change in self._changes_of(sentence, kept, *part))
            )
            if self.check_translations:
                changes = self._fluent(sentence, self._similar(sentence, self._well_formed(sentence, changes)))
            apart: list[Change] = []
            for change in changes:
                if not any(_touch(change, other) for other in apart):
                    apart.append(change)
            self._changes[key] = apart

    def _changes_of(
        self, sentence: Sentence, kept: Collection[int], span: tuple[int, int], query: _Query
    ) -> Iterator[Change]:
        """The changes that the translation of a part of a sentence makes."""
        _, text = self._answers[query]
        if _ARTEFACTS.search(text):
            return
        words = self.tokenizer_(text if _has_capitals(sentence.tokens) else text.lower())
        start, end = span
        inside = {i - start for i in kept if start <= i < end}
        for change in independent_changes(sentence.tokens[start:end], words, inside, self._language):
            yield tuple(Replacement(start + a, start + b, new) for a, b, new in change)

    def _well_formed(self, sentence: Sentence, changes: Sequence[Change]) -> dict[Change, bool]:
        """Those of changes with which all other words stay what they are, and whether each is a word for its like."""
        if self.dependency_parser_ is None or not changes:
            return dict.fromkeys(changes, False)
        new = [_apply(sentence, change) for change in changes]
        before, *parses = self.dependency_parser_.parse([sentence.tokens, *(one.tokens for one in new)])
        kept = {}
        for change, after in zip(changes, parses, strict=True):
            is_same = [
                after.tags[i] == before.tags[old] for i, old in enumerate(_origins(len(sentence), change)) if old >= 0
            ]
            if all(is_same):
                [(start, end, words), *others] = change
                is_word = not others and end - start == len(words) == 1
                kept[change] = is_word and is_alike_in_tree(before, after, start)
        return kept

    def _similar(self, sentence: Sentence, changes: Mapping[Change, bool]) -> list[Change]:
        """Those of changes that keep the meaning of the words around them."""
        if not changes:
            return []
        texts = []
        for change in changes:
            start, end = max(0, change[0].start - _CONTEXT), change[-1].end + _CONTEXT
            after = len(sentence) - end
            new = _apply(sentence, change).tokens
            texts += [
                detokenize(sentence.tokens[start:end]),
                detokenize(new[start : max(start, len(new) - after) if after > 0 else None]),
            ]
        vectors = self.encoder_.sentence_vectors(texts)
        differences = (1 - float(vectors[i] @ vectors[i + 1]) for i in range(0, len(texts), 2))
        allowed = 1 - self.min_similarity
        # Words that move hardly change the cosine, so that a change in several places has to be the nearer for it.
        return [
            change
            for (change, is_alike), difference in zip(changes.items(), differences, strict=True)
            if round(difference * len(change), _DIGITS) <= round(allowed * (_WORD_FOR_WORD if is_alike else 1), _DIGITS)
        ]

    def _fluent(self, sentence: Sentence, changes: Sequence[Change]) -> list[Change]:
        """Those of changes that do not make a sentence less likely."""
        if not changes:
            return []
        as_printed = as_text if _has_capitals(sentence.tokens) else _cased_text
        texts = [as_printed(sentence), *(as_printed(_apply(sentence, change)) for change in changes)]
        before, *after = (round(float(v.sum()), _DIGITS) for v in variant_log_probs(texts, self.causal_lm_))
        return [
            change
            for change, total in zip(changes, after, strict=True)
            if total - before >= (_MIN_GAIN if self._is_of_stop_words(sentence, change) else 0.0)
        ]

    def _is_of_stop_words(self, sentence: Sentence, change: Change) -> bool:
        words = {word.lower() for start, end, new in change for word in (*sentence.tokens[start:end], *new)}
        return words <= stop_words(self._language)

    def _draw_changes(self, request: Request, changes: Sequence[Change]) -> Sentence | Rejection:
        sentence, rng, _, attempt = request
        is_fixed = len(self.translator_) == 1 and not self.do_sample
        if not changes:
            return Rejection(_NO_CHANGE, final=is_fixed)
        if is_fixed and attempt >= _DRAWS_OF_EACH * (2 ** len(changes) - 1):
            return _ALL_DRAWN
        drawn = [changes[place] for place in sample_positions(rng, len(changes), self.p)]
        if not drawn:
            return UNCHANGED
        together = tuple(sorted(replacement for change in drawn for replacement in change))
        if len(drawn) > 1 and self.check_translations and not self._fluent(sentence, [together]):
            return _UNUSABLE
        return _apply(sentence, together)


class _Query(NamedTuple):
    """A text for translation into the pivot language and back."""

    pivot: int
    text: str
    seed: int | None


_Plan = tuple[tuple[tuple[int, int], _Query], ...]


class _Key(NamedTuple):
    """All that the changes of a sentence depend on."""

    tokens: tuple[str, ...]
    mentions: tuple[Mention, ...]
    spaces: tuple[str, ...] | None
    plan: _Plan


def _round_trips(given: str | RoundTrip | Sequence[RoundTrip]) -> list[RoundTrip]:
    """Return the pairs of translators given by the parameter."""
    if isinstance(given, str):
        return [*map(_open_round_trip, _chains(given))]
    trips = [given] if isinstance(given, RoundTrip) else list(given)
    if not trips or not all(isinstance(trip, RoundTrip) for trip in trips):
        raise ParameterError(f"translator must be a name or RoundTrips, not {given!r}")
    return trips


def _chains(given: str) -> list[tuple[str, ...]]:
    """The names of the translators there and back, for each pivot."""
    chains = []
    for name in map(str.strip, given.split(",")):
        names = _STARTER_PAIRS.get(name) or tuple(map(str.strip, name.split(">")))
        if len(names) < 2 or not all(names):
            raise ParameterError(
                f"translator {name!r} has no translator back",
                remedy=f"join two names by >, or use one of: {', '.join(_STARTER_PAIRS)}",
            )
        chains.append(names)
    return chains


def _open_round_trip(names: Sequence[str]) -> RoundTrip:
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


def _cased(word: str, model: str) -> str:
    return word[0].upper() + word[1:] if model[0].isupper() and word[0].islower() else word


def _has_capitals(tokens: Iterable[str]) -> bool:
    return any(map(str.isupper, "".join(tokens)))


def _cased_text(sentence: Sentence) -> str:
    """A sentence without capitals as models know it: by capitals they tell names, and where a sentence begins."""
    free = sentence.outside_mask()
    return detokenize([word.capitalize() if i == 0 or not free[i] else word for i, word in enumerate(sentence.tokens)])


def _origins(size: int, change: Change) -> list[int]:
    """The position in a sentence of some tokens of each token after a change; -1 for new ones."""
    origins: list[int] = []
    done = 0
    for start, end, words in change:
        origins += [*range(done, start), *[-1] * len(words)]
        done = end
    return [*origins, *range(done, size)]


def _touch(one: Change, other: Change) -> bool:
    """Whether changes are at the same place or beside each other."""
    return any(a.start <= b.end and b.start <= a.end for a in one for b in other)


def _apply(sentence: Sentence, change: Sequence[Replacement]) -> Sentence:
    """Make changes outside mentions."""
    return sentence.edit(Edit(start, end, words, None, infer_spaces(words)[:-1]) for start, end, words in change)


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
