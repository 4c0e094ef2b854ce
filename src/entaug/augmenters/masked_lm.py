"""Masked-LM replacement of words outside mentions: LM, and Filtered BERT."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import ClassVar

from entaug.alignment import detokenize_with_gaps
from entaug.augmenters.base import Augmenter, MethodInfo, Rejection, Request
from entaug.backends.protocols import MaskedLM, WordVectors, match_case
from entaug.data import Edit, Sentence
from entaug.params import Cosine, PositiveInt, Probability
from entaug.spacing import is_word_character
from entaug.stopwords import StopWords, stop_words

__all__ = ["MaskedLMReplacement"]

_NO_WORD = Rejection("no word outside mentions that may be replaced", final=True)
_TRIED = 3  # places tried at most, times those wanted
_NO_FILL = Rejection("no other word fits")


@dataclass(kw_only=True, eq=False)
class MaskedLMReplacement(Augmenter):
    """Replace words outside mentions by what a masked language model puts there.

    The words are drawn without replacement, hidden, and filled from left to right, each fill drawn among the likeliest
    by its probability. Only whole words that differ from the original are taken, in its casing; mentions, punctuation
    and numbers stay. A place where nothing but the original is plausible keeps it, and another is tried instead. The
    tokens are never made anew from text, so no label can move. (The authors' code takes the likeliest fill for all at
    once, so that all copies with the same places are equal.)

    Args:
        num_replacements: how many words to replace (the paper: 1, 3 or 5); fewer where there are fewer.
        masked_lm: a `MaskedLM`, or the name of one.
        top_k: how many of the likeliest words a fill is drawn among.
        min_p: the minimum probability of a fill, as a share of that of the likeliest word for the position (the
            original included); 0 for any, as in the paper.
        single_pass: fill all words of a sentence from one look of the model, instead of one after the other.
        min_similarity: the minimum cosine of the word vectors of a fill and the original (Filtered BERT); none for any.
        word_vectors: the vectors for that, or the name of some.
        stop_words: a language code; its stop words are then not replaced (a path to a word list works too).
        replace_punctuation: whether punctuation and numbers may be replaced by words too, as in the authors' code.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> gold = [Sentence("Ada sings well .".split(), [Mention("PER", [(0, 1)])])]
        >>> [new] = MaskedLMReplacement(num_replacements=1, masked_lm=FakeMaskedLM(["runs"])).augment(gold)
        >>> new.tokens in {("Ada", "runs", "well", "."), ("Ada", "sings", "runs", ".")}, new.iob()
        (True, ['B-PER', 'O', 'O', 'O'])
    """

    num_replacements: PositiveInt = 3
    masked_lm: MaskedLM | str = "mpnet-mlm"
    top_k: PositiveInt = 10
    min_p: Probability = 0.1
    single_pass: bool = False
    min_similarity: Cosine | None = None
    word_vectors: WordVectors | str = "glove"
    stop_words: StopWords | None = None
    replace_punctuation: bool = False
    masked_lm_: MaskedLM = field(init=False, repr=False)
    word_vectors_: WordVectors = field(init=False, repr=False)

    info: ClassVar[MethodInfo] = MethodInfo(
        name="lm",
        long_name="masked-lm-replacement",
        summary="words outside mentions replaced by what a masked language model puts there",
        paper="Sutiono and Hahn-Powell 2022, Syntax-driven Data Augmentation for Named Entity Recognition",
        keeps_length=True,
        keeps_order=True,
        keeps_mention_words=True,
        needs=("masked_lm",),
        may_need=("word_vectors",),
        cost="one pass of a masked language model per replaced word",
    )

    def _uses_backend(self, kind: str) -> bool:
        return kind != "word_vectors" or self.min_similarity is not None

    def _rewrite_batch(self, asked: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        work = [
            _Filling(sentence, self._choose(sentence, rng), self.num_replacements, rng) for sentence, rng, *_ in asked
        ]
        while todo := [filling for filling in work if filling.pending]:
            answers = self.masked_lm_.fill(
                [filling.text() for filling in todo], self._ask(), first_only=not self.single_pass
            )
            for filling, candidates in zip(todo, answers, strict=True):
                places = filling.pending if self.single_pass else filling.pending[:1]
                for place, offered in zip(tuple(places), candidates, strict=False):
                    filling.fill(place, self._draw(filling, place, offered))
        return [filling.result() for filling in work]

    def _ask(self) -> int:
        # The original is no candidate, and with a filter most others are none either.
        return self.top_k + 1 if self.min_similarity is None else 10 * self.top_k

    def _choose(self, sentence: Sentence, rng: Random) -> list[int]:
        free, stop = sentence.outside_mask(), stop_words(self.stop_words)
        places = [
            i
            for i, token in enumerate(sentence.tokens)
            if free[i] and (self.replace_punctuation or _is_word(token)) and token.lower() not in stop
        ]
        return rng.sample(places, min(_TRIED * self.num_replacements, len(places)))

    def _draw(self, filling: _Filling, place: int, offered: Sequence[tuple[str, float]]) -> str | None:
        """A word for a place, or None."""
        original = filling.sentence.tokens[place]
        least = offered[0][1] + math.log(self.min_p) if self.min_p and offered else -math.inf
        words = [(word, value) for word, value in offered if value >= least and word.lower() != original.lower()]
        if self.min_similarity is not None:
            # Vectors are of plain words: of "Well-known" none may be known, and then no fill is known to be near.
            cosines = self.word_vectors_.similarities([(original, word) for word, _ in words])
            words = [
                pair
                for pair, cosine in zip(words, cosines, strict=True)
                if cosine is not None and cosine >= self.min_similarity
            ]
        words = words[: self.top_k]
        draw = filling.rng.random()  # drawn in any case, so that places do not depend on each other's candidates
        if not words:
            return None
        sums = list(accumulate(math.exp(value - words[0][1]) for _, value in words))
        at = next(i for i, total in enumerate(sums) if draw * sums[-1] < total or i == len(sums) - 1)
        return _cased(words[at][0], filling.sentence.tokens, place)


class _Filling:
    """A sentence on its way to its new words: the first few places from left to right, then others in their stead."""

    def __init__(self, sentence: Sentence, order: list[int], wanted: int, rng: Random) -> None:
        self.sentence = sentence
        self.rng = rng
        self.pending = sorted(order[:wanted])
        self._others = order[wanted:]
        self._possible = bool(order)
        self._tokens = list(sentence.tokens)
        self._edits: list[Edit] = []

    def text(self) -> list[str | None]:
        """The sentence with the fills made so far, and the places to come hidden."""
        return detokenize_with_gaps(self._tokens, self.pending, self.sentence.spaces)

    def fill(self, place: int, word: str | None) -> None:
        """Put a word in a place, or leave what is there and go for another place."""
        self.pending.remove(place)
        if word is not None:
            self._tokens[place] = word
            self._edits.append(Edit(place, place + 1, (word,)))
        elif self._others:
            # In the order of the text, as the model answers.
            insort(self.pending, self._others.pop(0))

    def result(self) -> Sentence | Rejection:
        if not self._possible:
            return _NO_WORD
        return self.sentence.edit(self._edits) if self._edits else _NO_FILL


def _cased(word: str, tokens: Sequence[str], place: int) -> str:
    """A fill in the casing of what it replaces; for an acronym in an ordinary sentence that is none of its own."""
    original = tokens[place]
    if len(original) > 1 and original.isupper():
        words = [token for i, token in enumerate(tokens) if i != place and len(token) > 1 and token.isalpha()]
        if 2 * sum(token.isupper() for token in words) <= len(words):
            return word if place else word[:1].upper() + word[1:]
    return match_case([word], original)[0]


def _is_word(token: str) -> bool:
    """Whether a token is a word of letters, hyphens inside it allowed; apostrophes mark clitics, which are none."""
    if not token[0].isalpha() or not is_word_character(token[-1]):
        return False
    return all((is_word_character(c) and not c.isdigit()) or c == "-" for c in token)
