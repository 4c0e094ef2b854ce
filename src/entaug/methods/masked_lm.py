"""LM: words outside mentions replaced by a masked language model, with Filtered BERT as an option."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, Literal, NamedTuple

from entaug.backends.protocols import CausalLM, DependencyParser, MaskedLM, Parse, WordVectors, match_case
from entaug.config.params import Cosine, NonNegativeFloat, PositiveInt, Probability
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.alignment import detokenize_with_gaps
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.languages import LanguageProfile
from entaug.core.words import AUTO, StopWordsOrAuto, is_word, may_replace, stop_words
from entaug.filters.label_guard import UncasedNames, is_beginning, name_evidence
from entaug.methods.base import Augmenter, MethodInfo, Rejection, Request
from entaug.methods.shared.word_choice import (
    CONTENT_TAGS,
    MAX_GAIN,
    draw_index,
    fits_article,
    is_joined,
    is_repeated,
    keeping_structure,
    likelihood_gains,
    load_starter,
    missing_starters,
    replaceable_words,
    text_with_source,
)

_NO_WORD = Rejection("no replaceable word outside mentions", final=True)
_NO_FILL = Rejection("no suitable other word")
_NONE_LEFT = Rejection(_NO_FILL.reason, final=True)
_MAX_POSITIONS = 3  # maximum number of positions tried, as a multiple of the number of replacements
_MIN_LOG_PROB = -5.0  # of a fill where the model sees the original
_AUTO_KINDS = ("dependency_parser", "causal_lm")
_MAX_SCORED = 6  # fills of a position

_Text = tuple[str | None, ...]


class _Fill(NamedTuple):
    """A word for a position, its score, and how much it raises the log-likelihood of the sentence."""

    word: str
    score: float
    gain: float = 0.0


@dataclass(kw_only=True, eq=False)
class MaskedLMReplacement(Augmenter):
    """Replace words outside mentions by predictions of a masked language model.

    Positions are drawn without replacement, masked, and filled from left to right; each fill is sampled from the most
    likely predictions by their probability. Only whole words that differ from the original are used, in the case that
    the corpus has for them, else in that of the original; with the label guard no names. Mentions, punctuation and
    numbers are not changed, nor with the guard names outside mentions in a corpus without capitals. If no other word
    is suitable at a position, the original is kept, and another position is tried. Sentences are not tokenized again,
    so labels cannot shift. (The authors' code takes the most likely fill for all positions at once, so all copies with
    the same positions are equal.)

    The model sees the original sentence before the one with the gap, so that fills stay near the sense (Qiang et al.
    2020). Words that it does not know are left alone: most are terms. In English, starter models check the fills if
    they are prepared: a parser, that the fill has the part of speech, the form and the place of the original, and a
    causal language model, that the sentence is as likely as before.

    Args:
        p: the share of the words outside mentions to replace, function words not counted; at least one is replaced.
        num_replacements: the maximum number of words to replace; with ``p=1`` their number, if the sentence has enough
            (paper: 1, 3 or 5).
        masked_lm: a `MaskedLM` or its name.
        top_k: the number of most likely words to sample a fill from.
        min_p: the minimum probability of a fill, relative to the most likely word for the position (without
            `show_source` including the original); 0 for no limit, as in the paper.
        show_source: whether the model sees the original sentence, too.
        single_pass: fill all words of a sentence from one pass of the model, instead of one after the other.
        dependency_parser: a `DependencyParser`, the name of a spaCy pipeline, or a CoNLL-U file; none to do without.
            ``"auto"`` is the starter parser, where it is prepared and the corpus is English.
        causal_lm: a `CausalLM` or its name; none to do without, and ``"auto"`` as for `dependency_parser`.
        margin: by how many nats the new words may lower the log-likelihood of the sentence under `causal_lm`.
        min_similarity: the minimum cosine similarity of the word vectors of a fill and the original (Filtered BERT);
            none for no limit.
        word_vectors: `WordVectors` for `min_similarity`, or their name.
        stop_words: words that are not replaced: a language code, or a path to a word list. ``"auto"`` is the list of
            the language of the corpus, and with a parser function words by their part of speech.
        replace_punctuation: whether punctuation and numbers may also be replaced by words, as in the authors' code.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods lm``)
            unless it is given.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> gold = [Sentence("Ada sings well .".split(), [Mention("PER", [(0, 1)])])]
        >>> alone = {"show_source": False, "dependency_parser": None, "causal_lm": None, "stop_words": None}
        >>> method = MaskedLMReplacement(masked_lm=FakeMaskedLM(["runs"]), **alone)
        >>> [new] = method.fit(gold).augment(gold)
        >>> new.tokens in {("Ada", "runs", "well", "."), ("Ada", "sings", "runs", ".")}, new.iob()
        (True, ['B-PER', 'O', 'O', 'O'])
    """

    p: Probability = 0.15
    num_replacements: PositiveInt = 3
    masked_lm: MaskedLM | str = "mpnet-mlm"
    top_k: PositiveInt = 10
    min_p: Probability = 0.2
    show_source: bool = True
    single_pass: bool = False
    dependency_parser: DependencyParser | str | None = AUTO
    causal_lm: CausalLM | str | None = AUTO
    margin: NonNegativeFloat = 1.0
    min_similarity: Cosine | None = None
    word_vectors: WordVectors | str = "glove"
    stop_words: StopWordsOrAuto | None = AUTO
    replace_punctuation: bool = False
    preset: Literal["starter", "paper"] = field(default="starter", metadata=ONLY_IF_SET)
    masked_lm_: MaskedLM = field(init=False, repr=False)
    dependency_parser_: DependencyParser | None = field(init=False, repr=False)
    causal_lm_: CausalLM | None = field(init=False, repr=False)
    word_vectors_: WordVectors = field(init=False, repr=False)

    presets = read_presets("lm")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="lm",
        long_name="masked-lm-replacement",
        summary="words outside mentions replaced by predictions of a masked language model",
        paper="Sutiono and Hahn-Powell 2022, Syntax-driven Data Augmentation for Named Entity Recognition",
        keeps_length=True,
        keeps_order=True,
        keeps_mention_words=True,
        needs_fit=True,
        writes_words=True,
        wrong_labels=(1, 30),
        needs=("masked_lm",),
        may_need=("dependency_parser", "causal_lm", "word_vectors"),
        cost="one pass of a masked language model per replaced word, and several of parser and causal model",
    )

    def _uses_backend(self, kind: str) -> bool:
        if kind in _AUTO_KINDS:
            return getattr(self, kind) not in (None, AUTO)
        return kind != "word_vectors" or self.min_similarity is not None

    def _load(self) -> None:
        super()._load()
        for kind in _AUTO_KINDS:
            if not self._uses_backend(kind):
                setattr(self, f"{kind}_", None)

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        corpus = list(corpus)
        self._name_evidence = name_evidence(self.guard_, corpus)
        self._uncased_names = self.guard_.uncased_names if self.guard_ else UncasedNames()
        self._language = LanguageProfile(corpus).language
        for kind in _AUTO_KINDS:
            if getattr(self, kind) == AUTO:
                setattr(self, f"{kind}_", load_starter(kind, self._language))
        self._forget()

    def notes(self) -> list[str]:
        return super().notes() + missing_starters(self, self._language)

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        if not requests[0].attempt:
            self._forget()
        sentences = [request.sentence for request in requests]
        names = self._uncased_names.places(sentences)
        parses: Sequence[Parse | None] = [None] * len(requests)
        if self.dependency_parser_ is not None:
            parses = self.dependency_parser_.parse([sentence.tokens for sentence in sentences])
        fillings = []
        for (s, rng, *_), left_alone, parse in zip(requests, names, parses, strict=True):
            positions = self._positions(s, left_alone, parse)
            count = min(self.num_replacements, max(1, round(self.p * len(positions))))
            tried = rng.sample(positions, min(_MAX_POSITIONS * count, len(positions)))
            fillings.append(
                _Filling(
                    s,
                    tried,
                    count,
                    rng,
                    is_certain=len(tried) == len(positions) and self.show_source and not self.single_pass,
                )
            )
        while unfinished := [filling for filling in fillings if filling.pending]:
            self._fill(unfinished)
        return [filling.result() for filling in fillings]

    def _positions(self, sentence: Sentence, left_alone: frozenset[int], parse: Parse | None) -> list[int]:
        """Return the positions of words that may be replaced."""
        outside = sentence.outside_mask()
        positions = [
            i
            for i, token in enumerate(sentence.tokens)
            if outside[i] and i not in left_alone and (self.replace_punctuation or is_word(token, hyphens=True))
        ]
        is_stop_word = stop_words(self._language if self.stop_words == AUTO else self.stop_words).__contains__
        if parse is not None and self.stop_words == AUTO:
            # A parser tells more: lists of stop words have frequent nouns and verbs as well.
            free = frozenset(replaceable_words(parse))
            positions = [i for i in positions if i in free and parse.tags[i] in CONTENT_TAGS]
            positions = [i for i in positions if not is_joined(sentence.tokens, i)]
            return [i for i in positions if parse.tags[i] != "ADV" or not is_stop_word(sentence.tokens[i].lower())]
        return [i for i in positions if not is_stop_word(sentence.tokens[i].lower())]

    def _forget(self) -> None:
        """Forget the answers on earlier sentences; further drafts of a sentence ask the same questions."""
        self._predictions: dict[_Text, list[list[tuple[str, float]]]] = {}
        self._fills: dict[tuple[_Text, int, tuple[str, ...]], list[_Fill]] = {}

    def _fill(self, fillings: Sequence[_Filling]) -> None:
        """Fill the first pending position of each filling, or all from a single pass of the model."""
        # The original is not a candidate, and most predictions fail the minimum similarity.
        top_k = self.top_k + 1 if self.min_similarity is None else 10 * self.top_k
        texts = [filling.text(self.show_source, self.single_pass) for filling in fillings]
        if new := [text for text in dict.fromkeys(texts) if text not in self._predictions]:
            predictions = self.masked_lm_.fill(new, top_k, first_only=not self.single_pass)
            self._predictions.update(zip(new, predictions, strict=True))
        for filling, text in zip(fillings, texts, strict=True):
            positions = filling.pending[: None if self.single_pass else 1]
            for number, (position, predicted) in enumerate(zip(positions, self._predictions[text], strict=False)):
                key = text, number, tuple(filling.tokens)
                if key not in self._fills:
                    self._fills[key] = self._suitable(filling, position, predicted)
                filling.fill(position, self._sample(filling, self._fills[key]))

    def _suitable(self, filling: _Filling, position: int, predicted: Sequence[tuple[str, float]]) -> list[_Fill]:
        """Return the words that suit a position, the best first."""
        original = filling.tokens[position]
        # The vocabulary of a multilingual model has words of other scripts.
        candidates = [_Fill(*one) for one in predicted if may_replace(one[0], original)]
        fills = [fill for fill in candidates if fill.word.lower() != original.lower()]
        if self.show_source:
            # A word that the model does not know is a term, or another rare word.
            is_known = len(fills) < len(candidates)
            fills = [fill for fill in fills if is_known and fill.score >= _MIN_LOG_PROB]
            fills = candidates = [fill for fill in fills if not is_repeated(filling.tokens, fill.word)]
        if self.min_similarity is not None:
            cosines = self.word_vectors_.similarities([(original, fill.word) for fill in fills])
            pairs = zip(fills, cosines, strict=True)
            fills = [fill for fill, cosine in pairs if cosine is not None and cosine >= self.min_similarity]
        if self.uses_guard:
            names = self._name_evidence
            fills = [fill for fill in fills if names.is_plain(names.cased(fill.word, "a"))]
        fills = self._fitting(filling, position, fills)
        if self.causal_lm_ is not None:
            candidates = fills
        minimum = candidates[0].score + math.log(self.min_p) if self.min_p and candidates else -math.inf
        return [fill for fill in fills if fill.score >= minimum][: self.top_k]

    def _fitting(self, filling: _Filling, position: int, fills: list[_Fill]) -> list[_Fill]:
        """Return the fills that fit into the sentence by parser and likelihood, in their case."""
        tokens, parser, model = filling.tokens, self.dependency_parser_, self.causal_lm_
        fills = [fill._replace(word=self._adjust_case(fill.word, tokens, position)) for fill in fills]
        if self._language == "en" and (parser or model):
            fills = [fill for fill in fills if fits_article(tokens, position, fill.word)]
        if parser is not None:
            kept = keeping_structure(parser, tokens, position, [fill.word for fill in fills])
            fills = [fill for fill in fills if fill.word in kept]
        if model is not None:
            fills = fills[:_MAX_SCORED]
            gains = likelihood_gains(model, tokens, filling.sentence.spaces, position, [fill.word for fill in fills])
            fills = [
                _Fill(fill.word, fill.score + min(gain, MAX_GAIN), gain)
                for fill, gain in zip(fills, gains, strict=True)
                if gain >= -self.margin
            ]
        return sorted(fills, key=lambda fill: -fill.score)

    def _sample(self, filling: _Filling, fills: Sequence[_Fill]) -> _Fill | None:
        """Sample a fill for a position; return None if none is suitable."""
        draw = filling.rng.random()  # always drawn, so that positions do not depend on each other's candidates
        fills = [fill for fill in fills if fill.gain + filling.lost >= -self.margin]
        if not fills:
            return None
        return fills[draw_index(draw, [math.exp(fill.score - fills[0].score) for fill in fills])]

    def _adjust_case(self, word: str, tokens: Sequence[str], position: int) -> str:
        """Apply the usual case, else that of the original, to a fill; an acronym is not copied as upper case."""
        original, example = tokens[position], tokens[position]
        if len(original) > 1 and original.isupper():
            words = [token for i, token in enumerate(tokens) if i != position and len(token) > 1 and is_word(token)]
            if 2 * sum(token.isupper() for token in words) > len(words):
                return match_case([word], original)[0]
            example = "a" if position else "A"
        return self._name_evidence.cased(word, example, is_first=is_beginning(tokens, position))


class _Filling:
    """A sentence whose words are being replaced, at the first positions from left to right, then at substitutes."""

    def __init__(self, sentence: Sentence, positions: list[int], count: int, rng: Random, *, is_certain: bool) -> None:
        self.sentence = sentence
        self.rng = rng
        self.pending = sorted(positions[:count])
        self.tokens = list(sentence.tokens)
        self.lost = 0.0  # by all fills that the sentence is less likely with
        self._others = positions[count:]
        self._none = (_NONE_LEFT if is_certain else _NO_FILL) if positions else _NO_WORD
        self._edits: list[Edit] = []

    def text(self, shows_source: bool, single_pass: bool) -> _Text:
        """Return the text with the fills so far, and None at the pending positions."""
        # Where the model sees the original of all words anyway, only those are masked that it is asked for.
        gaps = self.pending[:1] if shows_source and not single_pass else self.pending
        if shows_source:
            return tuple(text_with_source(self.tokens, gaps, self.sentence.spaces))
        return tuple(detokenize_with_gaps(self.tokens, gaps, self.sentence.spaces))

    def fill(self, position: int, fill: _Fill | None) -> None:
        """Fill a position; without a word keep the original and add another position."""
        self.pending.remove(position)
        if fill is not None:
            self.tokens[position] = fill.word
            self.lost += min(0.0, fill.gain)
            self._edits.append(Edit(position, position + 1, (fill.word,)))
        elif self._others:
            insort(self.pending, self._others.pop(0))

    def result(self) -> Sentence | Rejection:
        return self.sentence.edit(self._edits) if self._edits else self._none
