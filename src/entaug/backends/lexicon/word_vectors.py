"""Static word vectors from a folder with an array and a word list, or from text files of word2vec and GloVe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entaug.backends.models.catalogue import digest
from entaug.errors import MissingModelError, one_line

_VECTORS, _WORDS = "vectors.npy", "words.txt"
_TEXT = (".txt", ".vec")
_REMEDY = f"name a folder with {_VECTORS} and {_WORDS}, or a file *.txt or *.vec"


class StaticWordVectors:
    """Vectors from a file, as a `entaug.backends.protocols.WordVectors`."""

    # An array stays on disk: only the rows of requested words are read. A text file is read into memory, which takes
    # some seconds per hundred thousand words. A word without a vector is looked up in lower case.

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if path.is_dir():
            words, self._vectors = _from_folder(path)
            files = [path / _VECTORS, path / _WORDS]
        elif path.is_file() and path.suffix in _TEXT:
            words, self._vectors = _from_text(path)
            files = [path]
        else:
            raise MissingModelError("holds no word vectors", path=str(path), remedy=_REMEDY)
        # Of a repeated word the first row counts, as in other readers of these files.
        self._rows = dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))
        self.name = f"{path.stem if path.is_file() else path.name}@{digest(files)}"

    @property
    def size(self) -> int:
        """The dimension of a vector."""
        return int(self._vectors.shape[1])

    def vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(words), self.size), np.float32)
        known = [(i, row) for i, row in enumerate(map(self._row, words)) if row is not None]
        if known:
            positions, rows = (list(column) for column in zip(*known, strict=True))
            vectors[positions] = self._vectors[rows]
        return vectors

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        a, b = (self.vectors([pair[side] for pair in pairs]).astype(np.float64) for side in (0, 1))
        norms = np.sqrt((a * a).sum(axis=1)) * np.sqrt((b * b).sum(axis=1))
        cosines = np.full(len(pairs), np.nan)
        np.divide((a * b).sum(axis=1), norms, out=cosines, where=norms > 0)
        # A vector of zeros, as that of an unknown word, has no direction.
        return [None if np.isnan(cosine) else float(cosine) for cosine in np.clip(cosines, -1.0, 1.0)]

    def _row(self, word: str) -> int | None:
        row = self._rows.get(word)
        return self._rows.get(word.lower()) if row is None else row


def _from_folder(folder: Path) -> tuple[list[str], NDArray[Any]]:
    try:
        vectors: NDArray[Any] = np.load(folder / _VECTORS, mmap_mode="r", allow_pickle=False)
        # Not splitlines: a word may be a character that it takes for a line end.
        words = (folder / _WORDS).read_bytes().decode("utf-8").removesuffix("\n").split("\n")
        if vectors.ndim != 2 or vectors.dtype.kind != "f":
            raise ValueError(f"{_VECTORS} holds {vectors.dtype} of shape {vectors.shape}")  # noqa: TRY301
        if len(words) != len(vectors):
            raise ValueError(f"{_WORDS} has {len(words)} words and {_VECTORS} {len(vectors)} rows")  # noqa: TRY301
    except (OSError, ValueError, EOFError) as error:
        remedy = f"the folder must hold {_VECTORS}, floats of shape (words, dimension), and {_WORDS}, a word a line"
        raise MissingModelError(f"holds no word vectors ({one_line(error)})", path=str(folder), remedy=remedy) from None
    return words, vectors


def _from_text(file: Path) -> tuple[list[str], NDArray[np.float32]]:
    words: list[str] = []
    rows: list[NDArray[np.float32]] = []
    with file.open("rb") as stream:
        first = stream.readline().split()
        has_header = len(first) == 2 and all(part.isdigit() for part in first)
        size = int(first[1]) if has_header else len(first) - 1
        if not has_header:
            stream.seek(0)
        for number, line in enumerate(stream, 1 + has_header):
            # From the right: in some files words contain a space.
            word, *numbers = line.rstrip().rsplit(b" ", max(1, size))
            if not word and not numbers:
                continue
            try:
                row = np.array(numbers, np.float32)
                words.append(word.decode("utf-8"))
            except ValueError:
                row = np.zeros(0, np.float32)
            if size < 1 or len(row) != size:
                problem = f"is not a word and {size} numbers" if size > 0 else "is not a word and its numbers"
                raise MissingModelError(problem, path=str(file), line=number, remedy="correct or remove the line")
            rows.append(row)
    if not rows:
        raise MissingModelError("holds no word vectors", path=str(file), remedy=_REMEDY)
    return words, np.array(rows, np.float32).reshape(len(rows), size)


def convert_glove(sources: Sequence[Path], folder: Path) -> None:
    """Write the words of GloVe, one a line in the order of the vectors, from a Parquet file."""
    from pyarrow import parquet

    [file] = sources
    words = parquet.read_table(file)["index"].to_pylist()
    (folder / _WORDS).write_text("".join(word + "\n" for word in words), encoding="utf-8", newline="\n")
    _from_folder(folder)  # raises an error where words and vectors do not fit together
