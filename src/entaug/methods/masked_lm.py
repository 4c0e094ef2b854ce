"""LM: words outside mentions replaced by a masked language model, with Filtered BERT as an option."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import ClassVar, Literal

from entaug.backends.protocols import MaskedLM, WordVectors, match_case
from entaug.config.params import Cosine, PositiveInt, Probability
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.alignment import detokenize_with_gaps
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.words import StopWords, is_word, may_replace, stop_words
from entaug.filters.label_guard import UncasedNames, is_beginning, name_evidence
from entaug.methods.base import Augmenter, MethodInfo, Rejection, Request

_NO_WORD = Rejection("no replaceable word outside mentions", final=True)
_NO_FILL = Rejection("no suitable other word")
_MAX_POSITIONS = 3  # maximum number of positions tried, as a multiple of the number of replacements


@dataclass(kw_only=True, eq=False)
class MaskedLMReplacement(Augmenter):
    """Replace words outside mentions by predictions of a masked language model.

    Positions are drawn without replacement, masked, and filled from left to right; each fill is sampled from the most
    likely predictions by their probability. Only whole words that differ from the original are used, in the case that
    the corpus has for them, else in that of the original; with the label guard no names. Mentions, punctuation and
    numbers are not changed, nor with the guard names outside mentions in a corpus without capitals. If only the
    original is plausible at a position, it is kept, and another position is tried. Sentences are not tokenized again,
    so labels cannot shift. (The authors' code takes the most likely fill for all positions at once, so all copies with
    the same positions are equal.)

    Args:
        num_replacements: the number of words to replace (paper: 1, 3 or 5), if the sentence has enough.
        masked_lm: a `MaskedLM` or its name.
        top_k: the number of most likely words to sample a fill from.
        min_p: the minimum probability of a fill, relative to the most likely word for the position (including the
            original); 0 for no limit, as in the paper.
        single_pass: fill all words of a sentence from one pass of the model, instead of one after the other.
        min_similarity: the minimum cosine similarity of the word vectors of a fill and the original (Filtered BERT);
            none for no limit.
        word_vectors: `WordVectors` for `min_similarity`, or their name.
        stop_words: words that are not replaced: a language code, or a path to a word list.
        replace_punctuation: whether punctuation and numbers may also be replaced by words, as in the authors' code.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods lm``)
            unless it is given.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> gold = [Sentence("Ada sings well .".split(), [Mention("PER", [(0, 1)])])]
        >>> method = MaskedLMReplacement(num_replacements=1, masked_lm=FakeMaskedLM(["runs"]))
        >>> [new] = method.fit(gold).augment(gold)
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
    preset: Literal["starter", "paper"] = field(default="starter", metadata=ONLY_IF_SET)
    masked_lm_: MaskedLM = field(init=False, repr=False)
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
        may_need=("word_vectors",),
        cost="one pass of a masked language model per replaced word",
    )

    def _uses_backend(self, kind: str) -> bool:
        return kind != "word_vectors" or self.min_similarity is not None

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        self._name_evidence = name_evidence(self.guard_, corpus)
        self._uncased_names = self.guard_.uncased_names if self.guard_ else UncasedNames()

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        names = self._uncased_names.places([request.sentence for request in requests])
        fillings = [
            _Filling(s, self._positions(s, rng, left_alone), self.num_replacements, rng)
            for (s, rng, *_), left_alone in zip(requests, names, strict=True)
        ]
        # The original is not a candidate, and most predictions fail the minimum similarity.
        num_predictions = self.top_k + 1 if self.min_similarity is None else 10 * self.top_k
        while unfinished := [filling for filling in fillings if filling.pending]:
            texts = [filling.text() for filling in unfinished]
            predictions = self.masked_lm_.fill(texts, num_predictions, first_only=not self.single_pass)
            for filling, of_text in zip(unfinished, predictions, strict=True):
                positions = filling.pending if self.single_pass else filling.pending[:1]
                for position, candidates in zip(tuple(positions), of_text, strict=False):
                    filling.fill(position, self._sample(filling, position, candidates))
        return [filling.result() for filling in fillings]

    def _positions(self, sentence: Sentence, rng: Random, left_alone: frozenset[int]) -> list[int]:
        """Return the positions to try, in random order."""
        stop = stop_words(self.stop_words)
        positions = [
            i
            for i, (token, outside) in enumerate(zip(sentence.tokens, sentence.outside_mask(), strict=True))
            if outside
            and i not in left_alone
            and (self.replace_punctuation or is_word(token, hyphens=True))
            and token.lower() not in stop
        ]
        return rng.sample(positions, min(_MAX_POSITIONS * self.num_replacements, len(positions)))

    def _sample(self, filling: _Filling, position: int, candidates: Sequence[tuple[str, float]]) -> str | None:
        """Sample a word for a position; return None if no word is suitable."""
        original = filling.sentence.tokens[position]
        # The vocabulary of a multilingual model has words of other scripts.
        candidates = [(word, score) for word, score in candidates if may_replace(word, original)]
        minimum = candidates[0][1] + math.log(self.min_p) if self.min_p and candidates else -math.inf
        fills = [(word, score) for word, score in candidates if score >= minimum and word.lower() != original.lower()]
        if self.min_similarity is not None:
            cosines = self.word_vectors_.similarities([(original, word) for word, _ in fills])
            fills = [
                fill
                for fill, cosine in zip(fills, cosines, strict=True)
                if cosine is not None and cosine >= self.min_similarity
            ]
        if self.uses_guard:
            fills = [
                (word, score)
                for word, score in fills
                if self._name_evidence.is_plain(self._name_evidence.cased(word, "a"))
            ]
        fills = fills[: self.top_k]
        draw = filling.rng.random()  # always drawn, so that positions do not depend on each other's candidates
        if not fills:
            return None
        sums = list(accumulate(math.exp(score - fills[0][1]) for _, score in fills))
        index = next(i for i, total in enumerate(sums) if draw * sums[-1] < total or i == len(sums) - 1)
        return self._adjust_case(fills[index][0], filling.sentence.tokens, position)

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

    def __init__(self, sentence: Sentence, positions: list[int], count: int, rng: Random) -> None:
        self.sentence = sentence
        self.rng = rng
        self.pending = sorted(positions[:count])
        self._others = positions[count:]
        self._has_positions = bool(positions)
        self._tokens = list(sentence.tokens)
        self._edits: list[Edit] = []

    def text(self) -> list[str | None]:
        """Return the tokens with the fills so far, and None at the pending positions."""
        return detokenize_with_gaps(self._tokens, self.pending, self.sentence.spaces)

    def fill(self, position: int, word: str | None) -> None:
        """Fill a position; without a word keep the original and add another position."""
        self.pending.remove(position)
        if word is not None:
            self._tokens[position] = word
            self._edits.append(Edit(position, position + 1, (word,)))
        elif self._others:
            insort(self.pending, self._others.pop(0))

    def result(self) -> Sentence | Rejection:
        if not self._has_positions:
            return _NO_WORD
        return self.sentence.edit(self._edits) if self._edits else _NO_FILL
