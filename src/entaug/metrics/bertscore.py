"""BERTScore (Zhang et al. 2020) between the sentences of a corpus, each sentence encoded once.

For large corpora, `bertscore_among` compares each sentence only with a few others, for example with those that
`nearest_neighbors` finds by sentence vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from entaug.backends.protocols import Encoder
from entaug.backends.resolve import resolve
from entaug.core.data import Sentence
from entaug.errors import MissingExtraError
from entaug.metrics.likelihood import as_text

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


_BLOCK = 1024  # sub-words of a block; the product of two blocks fits into the processor's cache


def pairwise_bertscore(
    sentences: Iterable[Sentence | str], model: Encoder | str = "minilm", *, layer: int | None = None
) -> NDArray[float32]:
    """Compute the BERTScore F1 of all pairs of sentences.

    Equals the ``bert-score`` package without idf weights and without rescaling: special sub-words are candidates for
    the best match, but are left out of the mean.

    Args:
        sentences: sentences, or running texts.
        model: an `Encoder`, or the name of one.
        layer: the layer whose vectors are compared; None for the last.

    Returns:
        A symmetric array (sentences, sentences); 1 on the diagonal, 0 for an empty text.

    Raises:
        MissingModelError: the model is not on this machine.

    Example:
        >>> from helpers.fakes import FakeEncoder  # tests/helpers of entaug
        >>> scores = pairwise_bertscore(["a red car", "a red car", "ab cd ef"], FakeEncoder())
        >>> scores.shape, bool(scores[0, 1] > 0.999)
        ((3, 3), True)
    """
    import numpy as np

    encoder: Encoder = resolve("encoder", model)
    texts = list(map(as_text, sentences))
    scores = np.zeros((len(texts), len(texts)), np.float32)
    # Vectors of a model on PyTorch are compared on its device and in its precision.
    device, precision = getattr(encoder, "device", None), getattr(encoder, "dtype", None)
    if device is None:
        convert: Callable[[Any], Any] = np.asarray
    else:
        import torch

        def convert(array: Any) -> Any:
            return torch.from_numpy(array).to(device, precision)

    blocks = [
        (indices, convert(vectors), convert(weights)) for indices, vectors, weights in _blocks(encoder, texts, layer)
    ]
    for i, (rows, *first) in enumerate(blocks):
        for columns, *second in blocks[i:]:
            f1 = _f1(*first, *second)
            block = f1 if isinstance(f1, np.ndarray) else f1.cpu().numpy()
            if rows is columns:  # the two halves differ by rounding
                block = np.triu(block) + np.triu(block, 1).T
            scores[np.ix_(rows, columns)] = block
            scores[np.ix_(columns, rows)] = block.T
    return scores


def bertscore_among(
    sentences: Sequence[Sentence | str],
    others: Sequence[Sequence[int]],
    model: Encoder | str = "minilm",
    *,
    layer: int | None = None,
) -> list[NDArray[float32]]:
    """Compute the BERTScore F1 of each sentence with some of the others."""
    import numpy as np

    encoder: Encoder = resolve("encoder", model)
    before, after = encoder.num_special_tokens
    special = before + after
    vectors = list(map(_unit_vectors, encoder.token_vectors(list(map(as_text, sentences)), layer)))
    results = []
    for own, indices in zip(vectors, others, strict=True):
        scores = np.zeros(len(indices), np.float32)
        nonempty = [n for n, i in enumerate(indices) if len(vectors[i]) > special and len(own) > special]
        if nonempty:
            compared = [vectors[indices[n]] for n in nonempty]
            lengths = np.array(list(map(len, compared)))
            starts = np.cumsum(lengths) - lengths
            cosines = own @ np.concatenate(compared).T
            precision = np.maximum.reduceat(cosines, starts, axis=1)[before : len(own) - after].mean(axis=0)
            best = cosines.max(axis=0)
            inner = np.concatenate([best[s + before : s + n - after] for s, n in zip(starts, lengths, strict=True)])
            counts = lengths - special
            recall = np.add.reduceat(inner, np.cumsum(counts) - counts) / counts
            total = precision + recall
            scores[nonempty] = 2 * precision * recall / (total + (total == 0))
        results.append(scores)
    return results


def nearest_neighbors(vectors: NDArray[float32], count: int) -> list[list[int]]:
    """Find the nearest neighbours of each vector by cosine, with an HNSW graph (Malkov and Yashunin 2018)."""
    import numpy as np

    try:
        from usearch.index import Index
    except ImportError:
        raise MissingExtraError("usearch", "neighbours") from None
    if not len(vectors):
        return []
    # Half precision is twice as fast. The graph is built by one thread, since it depends on the order of insertion.
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
    # For a single vector the library returns a flat list.
    keys = np.reshape(matches.keys, (len(vectors), -1)).tolist()
    return [[key for key in row if key != i and key < len(vectors)][:count] for i, row in enumerate(keys)]


def _blocks(
    encoder: Encoder, texts: list[str], layer: int | None
) -> Iterator[tuple[list[int], NDArray[float32], NDArray[float32]]]:
    """Blocks of sentences of similar length: indices, unit vectors (position, sentence, size), weights."""
    # A shorter sentence is padded with its own first vector at weight 0, which changes neither a maximum nor a mean.
    # The position comes first so that a maximum over positions runs along whole rows of sentences.
    import numpy as np

    vectors = encoder.token_vectors(texts, layer)
    before, after = encoder.num_special_tokens
    order = sorted((i for i in range(len(texts)) if len(vectors[i]) > before + after), key=lambda i: len(vectors[i]))
    start = 0
    while start < len(order):
        width = len(vectors[order[start]])
        end = start + 1
        # Sorted by length: the next sentence is the longest of the block.
        while end < len(order) and (end + 1 - start) * len(vectors[order[end]]) <= _BLOCK:
            width = len(vectors[order[end]])
            end += 1
        indices = order[start:end]
        block = np.empty((width, len(indices), vectors[indices[0]].shape[1]), np.float32)
        weights = np.zeros((width, len(indices)), np.float32)
        for column, i in enumerate(indices):
            own = vectors[i]
            block[: len(own), column] = _unit_vectors(own)
            block[len(own) :, column] = block[0, column]
            weights[before : len(own) - after, column] = 1 / (len(own) - before - after)
        yield indices, block, weights
        start = end


def _unit_vectors(vectors: NDArray[float32]) -> NDArray[float32]:
    """Vectors scaled to length 1; zero vectors stay."""
    import numpy as np

    unit: NDArray[float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return unit


def _f1(a: Any, weights_a: Any, b: Any, weights_b: Any) -> Any:
    """F1 between the sentences of two blocks, of NumPy arrays or torch tensors."""
    cosines = a.reshape(-1, a.shape[2]) @ b.reshape(-1, b.shape[2]).T
    cosines = cosines.reshape(*a.shape[:2], *b.shape[:2])
    if hasattr(cosines, "amax"):
        best_in_b, best_in_a = cosines.amax(2).float(), cosines.amax(0).float()
    else:
        best_in_b, best_in_a = cosines.max(2), cosines.max(0)
    precision = (best_in_b * weights_a[:, :, None]).sum(0)
    recall = (best_in_a * weights_b[None]).sum(1)
    total = precision + recall
    return 2 * precision * recall / (total + (total == 0))
