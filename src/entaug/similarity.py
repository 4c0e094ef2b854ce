"""BERTScore of every pair of sentences of a corpus (Zhang et al. 2020), each sentence encoded once.

Precision is the mean over one sentence's sub-words of the highest cosine with any of the other's, recall the reverse.
A block of sentences against another is one matrix product and a maximum over segments both ways, upper triangle only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from entaug.align import running_text
from entaug.backends.protocols import Encoder
from entaug.backends.resolve import resolve
from entaug.data import Sentence

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

__all__ = ["pairwise_bertscore"]

_BLOCK = 1024  # sub-words of a block: the products of two blocks stay within the processor's cache


def pairwise_bertscore(
    sentences: Iterable[Sentence | str], model: Encoder | str = "minilm", *, layer: int | None = None
) -> NDArray[float32]:
    """BERTScore F1 between all sentences.

    As the ``bert-score`` package computes it without idf weights and rescaling: on all sub-words, the special ones
    excepted when taking the mean but not when looking for the best match.

    Args:
        sentences: sentences, or running texts.
        model: an `Encoder`, or the name of one.
        layer: which layer's vectors; None for the last.

    Returns:
        A symmetric array of sentences x sentences; 1 on the diagonal, 0 for an empty text.

    Raises:
        MissingModelError: the model is not on this machine.

    Example:
        >>> from entaug.backends.fakes import FakeEncoder
        >>> scores = pairwise_bertscore(["a red car", "a red car", "ab cd ef"], FakeEncoder())
        >>> scores.shape, bool(scores[0, 1] > 0.999)
        ((3, 3), True)
    """
    encoder: Encoder = resolve("encoder", model)
    return _pairwise(encoder, [_text(sentence) for sentence in sentences], layer)


def _text(sentence: Sentence | str) -> str:
    return sentence if isinstance(sentence, str) else running_text(sentence.tokens, sentence.spaces)


def _pairwise(encoder: Encoder, texts: list[str], layer: int | None) -> NDArray[float32]:
    import numpy as np

    scores = np.zeros((len(texts), len(texts)), np.float32)
    blocks = list(_blocks(encoder, texts, layer))
    # Vectors of a model on PyTorch are compared there too, on its device and in its precision; the arrays of both
    # libraries answer to the same calls.
    device, precision = getattr(encoder, "device", None), getattr(encoder, "dtype", None)
    if device is not None:
        import torch

        def put(array: Any) -> Any:
            return torch.from_numpy(array).to(device, precision)
    else:

        def put(array: Any) -> Any:
            return array

    placed = [(numbers, put(vectors), put(weights)) for numbers, vectors, weights in blocks]
    for i, (rows, *a) in enumerate(placed):
        for columns, *b in placed[i:]:
            f1 = _f1(*a, *b)
            block = f1 if isinstance(f1, np.ndarray) else f1.cpu().numpy()
            if rows is columns:  # rounded differently on its two sides
                block = np.triu(block) + np.triu(block, 1).T
            scores[np.ix_(rows, columns)] = block
            scores[np.ix_(columns, rows)] = block.T
    return scores


def _blocks(
    encoder: Encoder, texts: list[str], layer: int | None
) -> Iterator[tuple[list[int], NDArray[float32], NDArray[float32]]]:
    """Sentences of like length together: numbers, unit vectors (place, sentence, size), weights (place, sentence).

    A shorter sentence is filled up with its own first vector at weight 0, which changes neither a maximum nor a mean.
    The place comes first so that a maximum over places runs along whole rows of sentences.
    """
    import numpy as np

    vectors = encoder.token_vectors(texts, layer)
    before, after = encoder.around
    order = sorted((i for i in range(len(texts)) if len(vectors[i]) > before + after), key=lambda i: len(vectors[i]))
    start = 0
    while start < len(order):
        width = len(vectors[order[start]])
        end = start + 1
        # Sorted by length, so the next one is the longest of the block.
        while end < len(order) and (end + 1 - start) * len(vectors[order[end]]) <= _BLOCK:
            width = len(vectors[order[end]])
            end += 1
        numbers = order[start:end]
        block = np.empty((width, len(numbers), vectors[numbers[0]].shape[1]), np.float32)
        weights = np.zeros((width, len(numbers)), np.float32)
        for column, i in enumerate(numbers):
            own = vectors[i]
            block[: len(own), column] = own / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-12)
            block[len(own) :, column] = block[0, column]
            weights[before : len(own) - after, column] = 1 / (len(own) - before - after)
        yield numbers, block, weights
        start = end


def _f1(a: Any, weights_a: Any, b: Any, weights_b: Any) -> Any:
    """F1 between the sentences of two blocks; works on arrays of NumPy and of torch."""
    products = a.reshape(-1, a.shape[2]) @ b.reshape(-1, b.shape[2]).T
    products = products.reshape(*a.shape[:2], *b.shape[:2])
    if hasattr(products, "amax"):
        best_in_b, best_in_a = products.amax(2).float(), products.amax(0).float()
    else:
        best_in_b, best_in_a = products.max(2), products.max(0)
    precision = (best_in_b * weights_a[:, :, None]).sum(0)
    recall = (best_in_a * weights_b[None]).sum(1)
    total = precision + recall
    return 2 * precision * recall / (total + (total == 0))
