"""Vectors of texts that are asked for again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from entaug.backends.protocols import Encoder

_MAX_VECTORS = 50_000


class TextVectors:
    """Sentence vectors by an encoder, each text encoded once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._vectors: dict[str, NDArray[float32]] = {}

    def of(self, texts: Sequence[str]) -> list[NDArray[float32]]:
        """Return the vectors of some texts; new ones are encoded in one call."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if len(self._vectors) + len(new) > _MAX_VECTORS:
            self._vectors, new = {}, list(dict.fromkeys(texts))
        if new:
            self._vectors.update(zip(new, self._encoder.sentence_vectors(new), strict=True))
        return [self._vectors[text] for text in texts]
