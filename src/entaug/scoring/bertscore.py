"""How alike sentences are: BERTScore of every pair of a corpus (Zhang et al. 2020), each sentence encoded once.

Or, where a corpus is large, of each sentence with a few that are nearest by sentence vector.

Precision is the mean over one sentence's sub-words of the highest cosine with any of the other's, recall the reverse.
A block of sentences against another is one matrix product and a maximum over segments both ways, upper triangle only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from entaug.alignment import detokenize
from entaug.backends.protocols import Encoder
from entaug.backends.resolve import resolve
from entaug.data import Sentence
from entaug.errors import MissingExtraError

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

__all__ = ["bertscore_among", "nearest", "pairwise_bertscore"]

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


def bertscore_among(
    sentences: Sequence[Sentence | str],
    others: Sequence[Sequence[int]],
    model: Encoder | str = "minilm",
    *,
    layer: int | None = None,
) -> list[NDArray[float32]]:
    """BERTScore F1 of each sentence with some of the others: time and memory grow with what is asked for.

    Args:
        sentences: sentences, or running texts.
        others: for each sentence the positions of those it is compared with.
        model: an `Encoder`, or the name of one.
        layer: which layer's vectors; None for the last.

    Returns:
        For each sentence an array with one value for each of its others, as `pairwise_bertscore` gives them.

    Example:
        >>> from entaug.backends.fakes import FakeEncoder
        >>> bertscore_among(["a red car", "a red car", "ab cd ef"], [[1], [], [0, 1]], FakeEncoder())[0] > 0.999
        array([ True])
    """
    import numpy as np

    encoder: Encoder = resolve("encoder", model)
    before, after = encoder.around
    vectors = encoder.token_vectors([_text(sentence) for sentence in sentences], layer)
    units = [_units(own) for own in vectors]
    found = []
    for own, asked in zip(units, others, strict=True):
        scores = np.zeros(len(asked), np.float32)
        filled = [n for n, i in enumerate(asked) if len(units[i]) > before + after and len(own) > before + after]
        if filled:
            theirs = [units[asked[n]] for n in filled]
            lengths = np.array([len(vectors) for vectors in theirs])
            starts = np.cumsum(lengths) - lengths
            products = own @ np.concatenate(theirs).T
            # Special sub-words count when looking for the best match, not when taking the mean.
            precision = np.maximum.reduceat(products, starts, axis=1)[before : len(own) - after].mean(axis=0)
            best = products.max(axis=0)
            inner = np.concatenate([best[s + before : s + n - after] for s, n in zip(starts, lengths, strict=True)])
            counts = lengths - before - after
            recall = np.add.reduceat(inner, np.cumsum(counts) - counts) / counts
            total = precision + recall
            scores[filled] = 2 * precision * recall / (total + (total == 0))
        found.append(scores)
    return found


def nearest(vectors: NDArray[float32], count: int) -> list[list[int]]:
    """The nearest neighbours of each vector by cosine, found by a graph (HNSW) in nearly linear time.

    Args:
        vectors: an array of things x size.
        count: how many neighbours of each.

    Returns:
        For each at most `count` positions of others, the nearest first. Nearly always the right ones.

    Raises:
        MissingExtraError: usearch is not installed.

    Example:
        >>> import numpy as np
        >>> nearest(np.array([[1, 0], [0, 1], [1, 0.1]], np.float32), 1)
        [[2], [2], [0]]
    """
    import numpy as np

    try:
        from usearch.index import Index
    except ImportError:
        raise MissingExtraError("usearch", "neighbours") from None
    if not len(vectors):
        return []
    # Half precision is enough to shortlist, and twice as fast. One thread to build it: with several the graph, and so
    # now and then a neighbour, would depend on which is first.
    index = Index(
        ndim=vectors.shape[1],
        metric="cos",
        dtype="f16",
        connectivity=16,
        expansion_add=64,
        expansion_search=max(64, count + count // 4),
    )
    index.add(np.arange(len(vectors)), vectors, threads=1)
    matches = index.search(vectors, min(count + 1, len(vectors)))
    # Of a single vector the library answers with a flat list.
    keys = np.reshape(matches.keys, (len(vectors), -1)).tolist()
    return [[key for key in row if key != i and key < len(vectors)][:count] for i, row in enumerate(keys)]


def _text(sentence: Sentence | str) -> str:
    return sentence if isinstance(sentence, str) else detokenize(sentence.tokens, sentence.spaces)


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
            block[: len(own), column] = _units(own)
            block[len(own) :, column] = block[0, column]
            weights[before : len(own) - after, column] = 1 / (len(own) - before - after)
        yield numbers, block, weights
        start = end


def _units(vectors: NDArray[float32]) -> NDArray[float32]:
    """Vectors of length 1; those of length 0 as they are."""
    import numpy as np

    unit: NDArray[float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return unit


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
