"""Masked-LM replacement of words outside mentions: LM, and Filtered BERT."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import ClassVar

from entaug.align import gapped, in_word
from entaug.augmenters.base import Augmenter, Facts, Rejection
from entaug.augmenters.stopwords import stop_words
from entaug.backends.protocols import MaskedLM, WordVectors, cased_like
from entaug.backends.resolve import resolve
from entaug.data import Edit, Sentence
from entaug.errors import ParameterError

__all__ = ["MaskedLMReplacement"]

_NO_WORD = Rejection("no word outside mentions that may be replaced", final=True)
_NO_FILL = Rejection("no other word fits")


@dataclass(kw_only=True, eq=False)
class MaskedLMReplacement(Augmenter):
    """Replace words outside mentions by what a masked language model puts there.

    The words are drawn without replacement, hidden, and filled from left to right, each fill drawn among the likeliest
    by its probability. Only whole words that differ from the original are taken, in its casing; mentions, punctuation
    and numbers stay. The tokens are never made anew from text, so no label can move. (The authors' code takes the
    likeliest fill for all at once, so that all copies with the same places are equal.)

    Args:
        n: how many words to replace (the paper: 1, 3 or 5); fewer where there are fewer.
        masked_lm: a `MaskedLM`, or the name of one.
        top_k: how many of the likeliest words a fill is drawn among.
        joint: fill all words of a sentence from one look of the model, instead of one after the other.
        filtered: take a fill only where its word vector has at least this cosine with the original's (Filtered BERT);
            none by default.
        word_vectors: the vectors for that, or the name of some.
        stop_words: a language code; its stop words are then not replaced (a path to a word list works too).
        punctuation: whether punctuation and numbers may be replaced by words too, as in the authors' code.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> gold = [Sentence("Ada sings well .".split(), [Mention("PER", [(0, 1)])])]
        >>> [new] = MaskedLMReplacement(n=1, masked_lm=FakeMaskedLM(["runs"])).augment(gold)
        >>> new.tokens in {("Ada", "runs", "well", "."), ("Ada", "sings", "runs", ".")}, new.iob()
        (True, ['B-PER', 'O', 'O', 'O'])
    """

    n: int = 3
    masked_lm: MaskedLM | str = "mpnet-mlm"
    top_k: int = 10
    joint: bool = False
    filtered: float | None = None
    word_vectors: WordVectors | str = "glove"
    stop_words: str | None = None
    punctuation: bool = False

    facts: ClassVar[Facts] = Facts(
        name="lm",
        long_name="masked-lm-replacement",
        summary="words outside mentions replaced by what a masked language model puts there",
        paper="Sutiono and Hahn-Powell 2022, Syntax-driven Data Augmentation for Named Entity Recognition",
        keeps_length=True,
        keeps_order=True,
        keeps_mention_words=True,
        needs=("masked_lm", "word_vectors"),
        cost="one pass of a masked language model per replaced word",
    )

    def _check(self) -> None:
        for name in ("n", "top_k"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ParameterError(f"{name} must be a whole number of at least 1, not {value!r}")
        for name in ("joint", "punctuation"):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(f"{name} must be true or false, not {getattr(self, name)!r}")
        if self.filtered is not None and not (isinstance(self.filtered, int | float) and -1 <= self.filtered <= 1):
            raise ParameterError(f"filtered must be a cosine between -1 and 1, not {self.filtered!r}")
        self._stop = stop_words(self.stop_words)

    def _load(self) -> None:
        self.masked_lm_: MaskedLM = resolve("masked_lm", self.masked_lm)
        if self.filtered is not None:
            self.word_vectors_: WordVectors = resolve("word_vectors", self.word_vectors)

    def _rewrite_many(self, asked: Sequence[tuple[Sentence, Random]]) -> Sequence[Sentence | Rejection]:
        work = [_Filling(sentence, self._choose(sentence, rng), rng) for sentence, rng in asked]
        todo = [filling for filling in work if filling.places]
        while todo:
            answers = self.masked_lm_.fill([filling.text() for filling in todo], self._ask())
            for filling, candidates in zip(todo, answers, strict=True):
                # A place that the model did not give back (it lies in no window) stays as it is.
                for offered in candidates if self.joint else candidates[:1]:
                    filling.fill(self._draw(filling, offered))
                if self.joint:
                    filling.stop()
            todo = [filling for filling in todo if filling.left]
        return [filling.result() for filling in work]

    def _ask(self) -> int:
        # The original is no candidate, and with a filter most others are none either.
        return self.top_k + 1 if self.filtered is None else 10 * self.top_k

    def _choose(self, sentence: Sentence, rng: Random) -> list[int]:
        free = sentence.free()
        places = [
            i
            for i, token in enumerate(sentence.tokens)
            if free[i] and (self.punctuation or _is_word(token)) and token.lower() not in self._stop
        ]
        return sorted(rng.sample(places, min(self.n, len(places))))

    def _draw(self, filling: _Filling, offered: Sequence[tuple[str, float]]) -> str | None:
        """A word for the place that is next, or None."""
        original = filling.original
        words = [(word, value) for word, value in offered if word.lower() != original.lower()]
        if self.filtered is not None:
            # Vectors are of plain words: of "Well-known" none may be known, and then no fill is known to be near.
            cosines = self.word_vectors_.similarities([(original, word) for word, _ in words])
            words = [
                pair
                for pair, cosine in zip(words, cosines, strict=True)
                if cosine is not None and cosine >= self.filtered
            ]
        words = words[: self.top_k]
        draw = filling.rng.random()  # drawn in any case, so that places do not depend on each other's candidates
        if not words:
            return None
        sums = list(accumulate(math.exp(value - words[0][1]) for _, value in words))
        at = next(i for i, total in enumerate(sums) if draw * sums[-1] < total or i == len(sums) - 1)
        return cased_like([words[at][0]], original)[0]


class _Filling:
    """A sentence on its way to its new words."""

    def __init__(self, sentence: Sentence, places: list[int], rng: Random) -> None:
        self.sentence = sentence
        self.places = places
        self.rng = rng
        self._tokens = list(sentence.tokens)
        self._done = 0
        self._edits: list[Edit] = []

    @property
    def left(self) -> bool:
        return self._done < len(self.places)

    @property
    def original(self) -> str:
        return self.sentence.tokens[self.places[self._done]]

    def text(self) -> list[str | None]:
        """The sentence with the fills made so far, and the other places hidden."""
        return gapped(self._tokens, self.places[self._done :], self.sentence.spaces)

    def fill(self, word: str | None) -> None:
        """Put a word in the next place, or leave what is there."""
        place = self.places[self._done]
        if word is not None:
            self._tokens[place] = word
            self._edits.append(Edit(place, place + 1, (word,)))
        self._done += 1

    def stop(self) -> None:
        self._done = len(self.places)

    def result(self) -> Sentence | Rejection:
        if not self.places:
            return _NO_WORD
        return self.sentence.edit(self._edits) if self._edits else _NO_FILL


def _is_word(token: str) -> bool:
    """Whether a token is a word of letters, hyphens inside it allowed; apostrophes mark clitics, which are none."""
    if not token[0].isalpha() or not in_word(token[-1]):
        return False
    return all((in_word(c) and not c.isdigit()) or c == "-" for c in token)
