"""Log-likelihood of sentences under a causal language model, and pseudo-log-likelihood under a masked one.

The pseudo-log-likelihood (Salazar et al. 2020; CASSI, section 2.3) masks every sub-word alone and sums the
log-probabilities of the sub-words given all others. Equal texts are computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from entaug.backends.protocols import CausalLM, MaskedLM
from entaug.backends.resolve import resolve
from entaug.core.data import Sentence
from entaug.errors import ParameterError
from entaug.metrics.candidate_selection import MAX_ROWS, CandidateSet, select_best
from entaug.metrics.texts import as_text, count_words

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

__all__ = ["best_by_likelihood", "causal_log_probs", "log_likelihood", "masked_log_probs", "pseudo_log_likelihood"]


def pseudo_log_likelihood(
    sentences: Iterable[Sentence | str], model: MaskedLM | str = "mpnet-mlm", *, per_word: bool = False
) -> NDArray[float64]:
    """Compute the pseudo-log-likelihood of each sentence.

    Args:
        sentences: sentences, or running texts.
        model: a `MaskedLM`, or the name of one.
        per_word: divide by the number of words that are not punctuation (CASSI's score).

    Returns:
        One natural logarithm per sentence, at most 0; 0 for an empty text.

    Raises:
        MissingModelError: the model is not on this machine.

    Example:
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> pseudo_log_likelihood(["A red car.", "A red car."], FakeMaskedLM()).shape
        (2,)
    """
    lm: MaskedLM = resolve("masked_lm", model)
    return _sums(sentences, lambda texts: masked_log_probs(texts, lm), per_word=per_word)


def log_likelihood(
    sentences: Iterable[Sentence | str], model: CausalLM | str = "smollm2", *, per_word: bool = False
) -> NDArray[float64]:
    """Compute the log-likelihood of each sentence under a causal language model, in one pass per sentence."""
    lm: CausalLM = resolve("causal_lm", model)
    return _sums(sentences, lambda texts: causal_log_probs(texts, lm), per_word=per_word)


def masked_log_probs(texts: Sequence[str], lm: MaskedLM) -> Iterator[NDArray[Any]]:
    """Compute the log-probability of every sub-word with that sub-word masked, in batches of bounded memory."""
    start = rows = 0
    for end, pieces in enumerate(lm.token_offsets(texts), start=1):
        rows += len(pieces)
        if rows >= MAX_ROWS or end == len(texts):
            yield from lm.token_log_probs([(text, None) for text in texts[start:end]])
            start, rows = end, 0


def causal_log_probs(texts: Sequence[str], lm: CausalLM, batch_size: int = MAX_ROWS) -> Iterator[NDArray[Any]]:
    """Compute the log-probability of every sub-word given those before it."""
    for start in range(0, len(texts), batch_size):
        yield from lm.token_log_probs(texts[start : start + batch_size])


def _sums(
    sentences: Iterable[Sentence | str], compute: Callable[[list[str]], Iterator[NDArray[Any]]], *, per_word: bool
) -> NDArray[float64]:
    """The sum of the log-probabilities of each sentence's sub-words; equal texts are computed once."""
    import numpy as np

    sentences = list(sentences)
    texts = list(map(as_text, sentences))
    distinct = list(dict.fromkeys(texts))
    totals = (math.fsum(values.tolist()) for values in compute(distinct))
    total_of = dict(zip(distinct, totals, strict=True))
    sums = np.array([total_of[text] for text in texts], dtype=np.float64)
    return sums / np.array(list(map(_word_count, sentences))) if per_word else sums


def best_by_likelihood(
    sentences: Sequence[Sentence | str],
    n_best: int,
    model: MaskedLM | str = "mpnet-mlm",
    *,
    per_word: bool = True,
    expected: Sequence[Sequence[float]] | None = None,
) -> list[int]:
    """Find the candidates of highest pseudo-log-likelihood without computing the others to the end.

    The result equals that of computing all scores; see `entaug.metrics.candidate_selection`.

    Args:
        sentences: the candidates.
        n_best: how many to find.
        model: a `MaskedLM`, or the name of one.
        per_word: compare by the sum divided by the number of words that are not punctuation.
        expected: for each candidate the expected log-probability of each of its sub-words. It affects how much is
            computed, never the result.

    Returns:
        Indices of the best candidates, best first; equal scores in the given order.

    Raises:
        ParameterError: `n_best` is below 1.

    Example:
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> texts = ["a b c", "a c b", "c b a", "b a c"]
        >>> scores = pseudo_log_likelihood(texts, FakeMaskedLM())
        >>> list((-scores).argsort()[:2]) == best_by_likelihood(texts, 2, FakeMaskedLM(), per_word=False)
        True
    """
    if n_best < 1:
        raise ParameterError(f"n_best must be at least 1, not {n_best!r}", parameter="n_best")
    if not sentences:
        return []
    divisors = [_word_count(sentence) if per_word else 1.0 for sentence in sentences]
    candidates = CandidateSet(list(map(as_text, sentences)), divisors, expected=expected)
    [selection] = select_best([candidates], n_best, resolve("masked_lm", model))
    return list(selection.best)


def _word_count(sentence: Sentence | str) -> float:
    return count_words(sentence.split() if isinstance(sentence, str) else sentence.tokens)
