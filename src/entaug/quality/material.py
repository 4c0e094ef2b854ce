"""What measures are taken of: sentences beside their sources and gold, and models that are asked for a text once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from entaug.alignment import detokenize
from entaug.backends.protocols import CausalLM, Encoder, MaskedLM
from entaug.data import Sentence
from entaug.scoring.likelihood import pseudo_log_likelihood

__all__ = ["Material", "Models", "Progress", "UndefinedError", "silent", "text_of", "words"]

Progress = Callable[[str, int, int | None], None]
"""Called with what is being done, how much of it is done, and of how much."""

_TEXTS = 256  # texts given to a model between two words of progress


def silent(what: str, done: int, total: int | None) -> None:
    """No progress."""


class UndefinedError(Exception):
    """A measure has no value for what is given; the message says why, for a note."""


def words(tokens: Iterable[str]) -> list[str]:
    """Tokens that hold a letter or a figure, without regard to case: punctuation is nobody's novelty.

    Example:
        >>> words(["The", "end", "."])
        ['the', 'end']
    """
    return [token.casefold() for token in tokens if any(c.isalnum() for c in token)]


def text_of(sentence: Sentence) -> str:
    """A sentence as a model reads it."""
    return detokenize(sentence.tokens, sentence.spaces)


@dataclass
class Models:
    """The models that measures ask, each text once however often it occurs.

    What was asked for is kept as two numbers a text. Texts go to a model by length, so that which stand together
    depends on none of the sentences' order.

    Args:
        causal_lm: for perplexity and scores per word.
        masked_lm: for scores per word.
        encoder: for Self-BERTScore.
        progress: called now and then.
    """

    causal_lm: CausalLM | None = None
    masked_lm: MaskedLM | None = None
    encoder: Encoder | None = None
    progress: Progress = silent
    _causal: dict[str, tuple[float, int]] = field(default_factory=dict)
    _masked: dict[str, tuple[float, int]] = field(default_factory=dict)

    def log_likelihoods(self, sentences: Iterable[Sentence]) -> list[tuple[float, int]]:
        """Of each the sum of log-probabilities of its sub-words, read from the left, and how many there are."""
        lm = self.causal_lm
        if lm is None:
            raise UndefinedError("there is no causal language model")

        def ask(texts: list[str]) -> Iterable[tuple[float, int]]:
            return [(math.fsum(values.tolist()), len(values)) for values in lm.token_log_probs(texts)]

        return self._asked(sentences, self._causal, ask, "scoring")

    def pseudo_log_likelihoods(self, sentences: Iterable[Sentence]) -> list[tuple[float, int]]:
        """Of each the sum of log-probabilities of its sub-words, each hidden alone, and how many there are."""
        lm = self.masked_lm
        if lm is None:
            raise UndefinedError("there is no masked language model")

        def ask(texts: list[str]) -> Iterable[tuple[float, int]]:
            counts = map(len, lm.pieces(texts))
            return zip(pseudo_log_likelihood(texts, lm).tolist(), counts, strict=True)

        return self._asked(sentences, self._masked, ask, "hiding words")

    def _asked(
        self,
        sentences: Iterable[Sentence],
        known: dict[str, tuple[float, int]],
        ask: Callable[[list[str]], Iterable[tuple[float, int]]],
        stage: str,
    ) -> list[tuple[float, int]]:
        texts = [text_of(sentence) for sentence in sentences]
        new = sorted({text for text in texts if text not in known}, key=lambda text: (len(text), text))
        for start in range(0, len(new), _TEXTS):
            some = new[start : start + _TEXTS]
            known.update(zip(some, ask(some), strict=True))
            self.progress(stage, start + len(some), len(new))
        return [known[text] for text in texts]


@dataclass
class Material:
    """Sentences to be measured.

    Args:
        made: the sentences.
        sources: what each was made of; None where that is not known.
        gold: all gold sentences; none where there is nothing to compare with.
        models: what language models and encoders answer.
    """

    made: Sequence[Sentence]
    sources: Sequence[Sentence | None]
    gold: Sequence[Sentence]
    models: Models

    def with_source(self, value: Callable[[Sentence, Sentence], float | None]) -> list[float | None]:
        """Something of each sentence and its source; None where there is no source."""
        return [
            None if source is None else value(made, source)
            for made, source in zip(self.made, self.sources, strict=True)
        ]
