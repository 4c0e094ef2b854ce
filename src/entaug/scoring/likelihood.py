"""Log-likelihood of sentences: under a causal language model, and the pseudo-log-likelihood under a masked one.

The latter is exact and fast (Salazar et al. 2020; CASSI, 2.3). Every sub-word is hidden alone and its log-probability
given all others is summed. What makes it fast is in the backend (the head at the hidden place only, rows of one width,
half precision where the device has it) and here: equal texts are computed once, and where only the best few are wanted,
a candidate is given up as soon as it cannot be among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from entaug.alignment import detokenize
from entaug.backends.protocols import CausalLM, MaskedLM
from entaug.backends.resolve import resolve
from entaug.data import Sentence
from entaug.errors import ParameterError
from entaug.scoring.candidate_selection import ROWS, CandidateSet, count_words, decide

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

__all__ = ["best_by_likelihood", "log_likelihood", "pseudo_log_likelihood"]


def pseudo_log_likelihood(
    sentences: Iterable[Sentence | str], model: MaskedLM | str = "mpnet-mlm", *, per_word: bool = False
) -> NDArray[float64]:
    """The pseudo-log-likelihood of each sentence.

    Args:
        sentences: sentences, or running texts.
        model: a `MaskedLM`, or the name of one.
        per_word: divide by the number of words that are not punctuation (CASSI's score).

    Returns:
        One natural logarithm per sentence, never positive; 0 for an empty text.

    Raises:
        MissingModelError: the model is not on this machine.

    Example:
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> pseudo_log_likelihood(["A red car.", "A red car."], FakeMaskedLM()).shape
        (2,)
    """
    lm: MaskedLM = resolve("masked_lm", model)

    def parts(texts: list[str]) -> Iterator[Iterable[NDArray[Any]]]:
        start = rows = 0
        for end, pieces in enumerate(lm.pieces(texts), start=1):
            rows += len(pieces)
            if rows >= ROWS or end == len(texts):
                yield lm.token_log_probs([(text, None) for text in texts[start:end]])
                start, rows = end, 0

    return _sums(sentences, parts, per_word=per_word)


def log_likelihood(
    sentences: Iterable[Sentence | str], model: CausalLM | str = "smollm2", *, per_word: bool = False
) -> NDArray[float64]:
    """The log-likelihood of each sentence under a model that reads from the left, in one pass each.

    Args:
        sentences: sentences, or running texts.
        model: a `CausalLM`, or the name of one.
        per_word: divide by the number of words that are not punctuation.

    Returns:
        One natural logarithm per sentence, never positive; 0 for an empty text.

    Raises:
        MissingModelError: the model is not on this machine.

    Example:
        >>> from entaug.backends.fakes import FakeCausalLM
        >>> log_likelihood(["A red car.", "A red car."], FakeCausalLM()).shape
        (2,)
    """
    lm: CausalLM = resolve("causal_lm", model)

    def parts(texts: list[str]) -> Iterator[Iterable[NDArray[Any]]]:
        return (lm.token_log_probs(texts[start : start + ROWS]) for start in range(0, len(texts), ROWS))

    return _sums(sentences, parts, per_word=per_word)


def _sums(
    sentences: Iterable[Sentence | str],
    parts: Callable[[list[str]], Iterable[Iterable[NDArray[Any]]]],
    *,
    per_word: bool,
) -> NDArray[float64]:
    """The sum of the log-probabilities of each sentence's sub-words; equal texts are asked for once."""
    import numpy as np

    given = list(sentences)
    texts = [_text(sentence) for sentence in given]
    distinct = list(dict.fromkeys(texts))
    found = (math.fsum(values.tolist()) for part in parts(distinct) for values in part)
    score = dict(zip(distinct, found, strict=True))
    sums = np.array([score[text] for text in texts], dtype=np.float64)
    return sums / np.array([_words(sentence) for sentence in given]) if per_word else sums


def best_by_likelihood(
    sentences: Sequence[Sentence | str],
    best: int,
    model: MaskedLM | str = "mpnet-mlm",
    *,
    per_word: bool = True,
    expected: Sequence[Sequence[float]] | None = None,
) -> list[int]:
    """The candidates of highest pseudo-log-likelihood, without computing the others to the end.

    A log-probability is never positive, so the sum over the places seen so far bounds the score from above. The most
    promising candidates are computed to the end; each of the others only until its bound is below the score of the
    `best`-th, beginning with the places that are expected to be worst. The result is that of computing all.

    Args:
        sentences: the candidates.
        best: how many are wanted.
        model: a `MaskedLM`, or the name of one.
        per_word: compare by the sum divided by the number of words that are not punctuation.
        expected: for each candidate the log-probability that each of its sub-words is expected to have. It settles how
            much is computed, never the result.

    Returns:
        Positions of the best, the very best first; equal scores in the order given.

    Raises:
        ParameterError: fewer than one wanted.

    Example:
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> texts = ["a b c", "a c b", "c b a", "b a c"]
        >>> scores = pseudo_log_likelihood(texts, FakeMaskedLM())
        >>> list((-scores).argsort()[:2]) == best_by_likelihood(texts, 2, FakeMaskedLM(), per_word=False)
        True
    """
    if best < 1:
        raise ParameterError(f"best must be at least 1, not {best!r}")
    if not sentences:
        return []
    words = [_words(sentence) if per_word else 1.0 for sentence in sentences]
    contest = CandidateSet([_text(sentence) for sentence in sentences], words, expected=expected)
    [verdict] = decide([contest], best, resolve("masked_lm", model))
    return list(verdict.best)


def _text(sentence: Sentence | str) -> str:
    return sentence if isinstance(sentence, str) else detokenize(sentence.tokens, sentence.spaces)


def _words(sentence: Sentence | str) -> float:
    return count_words(sentence.split() if isinstance(sentence, str) else sentence.tokens)
