"""Static word vectors from a folder with an array and a word list, or from text files of word2vec and GloVe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entaug.backends.models.catalogue import digest
from entaug.errors import MissingModelError, one_line

_VECTORS, _WORDS = "vectors.npy", "words.txt"
_TEXT = (".txt", ".vec")
_LINES_PER_BLOCK = 8192
_PAIRS_PER_BLOCK = 65536


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
            known = f"a folder with {_VECTORS} and {_WORDS}, or a file *.txt or *.vec"
            raise MissingModelError("holds no word vectors", path=str(path), remedy=f"name {known}")
        # Of a repeated word the first row counts, as in other readers of these files.
        self._rows = dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))
        self.name = f"{path.stem if path.is_file() else path.name}@{digest(files)}"

    def __len__(self) -> int:
        """The number of words with a vector."""
        return len(self._rows)

    @property
    def size(self) -> int:
        """The dimension of a vector."""
        return int(self._vectors.shape[1])

    def vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """See `entaug.backends.protocols.WordVectors.vectors`."""
        vectors = np.zeros((len(words), self.size), np.float32)
        known = [(i, row) for i, row in enumerate(map(self._row, words)) if row is not None]
        if known:
            positions, rows = (list(column) for column in zip(*known, strict=True))
            vectors[positions] = self._vectors[rows]
        return vectors

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """See `entaug.backends.protocols.WordVectors.similarities`."""
        cosines: list[float | None] = []
        for start in range(0, len(pairs), _PAIRS_PER_BLOCK):
            rows = [(self._row(a), self._row(b)) for a, b in pairs[start : start + _PAIRS_PER_BLOCK]]
            known = [(i, a, b) for i, (a, b) in enumerate(rows) if a is not None and b is not None]
            values: list[float | None] = [None] * len(rows)
            if known:
                _, left, right = (list(column) for column in zip(*known, strict=True))
                for (i, _, _), cosine in zip(known, self._cosines(left, right), strict=True):
                    # A vector of zeros has no direction.
                    values[i] = None if np.isnan(cosine) else float(cosine)
            cosines += values
        return cosines

    def _row(self, word: str) -> int | None:
        row = self._rows.get(word)
        return self._rows.get(word.lower()) if row is None else row

    def _cosines(self, left: list[int], right: list[int]) -> NDArray[np.float64]:
        a = np.asarray(self._vectors[left], np.float64)
        b = np.asarray(self._vectors[right], np.float64)
        norms = np.sqrt((a * a).sum(axis=1)) * np.sqrt((b * b).sum(axis=1))
        cosines = np.full(len(left), np.nan)
        np.divide((a * b).sum(axis=1), norms, out=cosines, where=norms > 0)
        clipped: NDArray[np.float64] = np.clip(cosines, -1.0, 1.0)
        return clipped


def _from_folder(folder: Path) -> tuple[list[str], NDArray[Any]]:
    remedy = f"the folder must hold {_VECTORS} and {_WORDS}; the starter set's: entaug models prepare glove"
    try:
        vectors: NDArray[Any] = np.load(folder / _VECTORS, mmap_mode="r", allow_pickle=False)
        # Not splitlines: a word may be a character that it takes for a line end.
        words = (folder / _WORDS).read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    except FileNotFoundError as error:
        raise MissingModelError("is missing", path=str(error.filename), remedy=remedy) from None
    except (OSError, ValueError, EOFError) as error:
        raise MissingModelError(f"is damaged ({one_line(error)})", path=str(folder), remedy=remedy) from None
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise MissingModelError(
            f"holds an array of {vectors.dtype} and shape {vectors.shape}; "
            "it must be floats of shape (words, dimension)",
            path=str(folder / _VECTORS),
            remedy=remedy,
        )
    if len(words) != len(vectors):
        raise MissingModelError(
            f"{_WORDS} has {len(words)} words and {_VECTORS} {len(vectors)} rows", path=str(folder), remedy=remedy
        )
    return words, vectors


def _from_text(file: Path) -> tuple[list[str], NDArray[np.float32]]:
    words: list[str] = []
    blocks: list[NDArray[np.float32]] = []
    with file.open("rb") as stream:
        first = stream.readline().split()
        has_header = len(first) == 2 and all(part.isdigit() for part in first)
        size = int(first[1]) if has_header else len(first) - 1
        if size < 1:
            raise MissingModelError(
                "the first line has no numbers", path=str(file), line=1, remedy="a line is a word and its numbers"
            )
        if not has_header:
            stream.seek(0)
        lines = enumerate(stream, 1 + has_header)
        while block := list(islice(lines, _LINES_PER_BLOCK)):
            blocks.append(np.array(list(_rows(block, size, words, file)), np.float32))
    blocks = [block for block in blocks if len(block)]
    return words, np.concatenate(blocks) if blocks else np.zeros((0, size), np.float32)


def _rows(block: list[tuple[int, bytes]], size: int, words: list[str], file: Path) -> Iterator[NDArray[np.float32]]:
    for number, line in block:
        # From the right: in some files words contain a space.
        word, *numbers = line.rstrip().rsplit(b" ", size)
        if not word and not numbers:
            continue
        try:
            row = np.array(numbers, np.float32)
            words.append(word.decode("utf-8"))
        except ValueError:
            row = np.zeros(0, np.float32)
        if len(row) != size:
            raise MissingModelError(
                f"is not a word and {size} numbers", path=str(file), line=number, remedy="correct or remove the line"
            )
        yield row
