"""Collections of sentences: in memory, or read anew on each iteration; and unique keys of their sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from html import escape
from typing import overload

from entaug.core.data import Sentence
from entaug.core.html import for_notebook, sentences_to_html

_SHOWN = 10  # sentences, in a notebook
_MADE_KEY = re.compile(r"[0-9a-f]{16}(-[1-9]\d*)?")


def _made_key(fingerprint: int, occurrence: int) -> str:
    return f"{fingerprint:016x}" if occurrence == 1 else f"{fingerprint:016x}-{occurrence}"


def is_made_key(key: str) -> bool:
    """Return whether a key has the form that sentences without an id get, so that it could be that of another one."""
    return _MADE_KEY.fullmatch(key) is not None


class SentenceKeys:
    """Unique keys of the sentences of a corpus."""

    # A key is `Sentence.key`, with a number appended where an earlier sentence without an id has the same content.

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._occurrences: Counter[int] = Counter()
        self._taken = taken
        self._skipped: set[str] = set()

    def assign(self, sentence: Sentence) -> str:
        """Return the key of the next sentence of the corpus."""
        if sentence.id is not None:
            return sentence.id
        number = sentence.fingerprint_number()
        return _made_key(number, self.occurrence(number))

    def occurrence(self, fingerprint: int) -> int:
        """Return the number in the key of the next sentence without an id that has this fingerprint, from 1."""
        self._occurrences[fingerprint] += 1
        while self._taken and (key := _made_key(fingerprint, self._occurrences[fingerprint])) in self._taken:
            self._skipped.add(key)
            self._occurrences[fingerprint] += 1
        return self._occurrences[fingerprint]

    def clashes(self) -> bool:
        """Return whether a sentence without an id got a key that is the id of a later sentence."""
        for key in set(self._taken) - self._skipped:
            fingerprint, _, number = key.partition("-")
            if int(number or 1) <= self._occurrences.get(int(fingerprint, 16), 0):
                return True
        return False


def keys_of(sentences: Sequence[Sentence]) -> Iterator[str]:
    """Yield the keys of the sentences of a corpus, by which provenance names them."""
    keys = SentenceKeys({sentence.id for sentence in sentences if sentence.id is not None and is_made_key(sentence.id)})
    return map(keys.assign, sentences)


def with_keys(sentences: Sequence[Sentence]) -> Iterator[Sentence]:
    """Yield the sentences of a corpus; those without an id have their key as id."""
    return (sentence.with_(id=key) for sentence, key in zip(sentences, keys_of(sentences), strict=True))


class Corpus(Sequence[Sentence]):
    """Sentences in memory.

    Args:
        sentences: the sentences.
        source: the file they were read from, for messages.
        notes: remarks for the user: what was left out or assumed when they were read.

    Example:
        >>> from entaug.core.data import Mention
        >>> Corpus([Sentence(["Rome"], [Mention("LOC", [(0, 1)])])]).labels
        ('LOC',)
    """

    def __init__(self, sentences: Iterable[Sentence], source: str | None = None, notes: Iterable[str] = ()) -> None:
        self._sentences = tuple(sentences)
        self.source = source
        self.notes = tuple(notes)

    @overload
    def __getitem__(self, index: int) -> Sentence: ...
    @overload
    def __getitem__(self, index: slice) -> Corpus: ...
    def __getitem__(self, index: int | slice) -> Sentence | Corpus:
        """Return the sentence at a position, or the corpus of a slice."""
        if isinstance(index, slice):
            return Corpus(self._sentences[index], self.source, self.notes)
        return self._sentences[index]

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self._sentences)

    def __iter__(self) -> Iterator[Sentence]:
        """Iterate over the sentences in order."""
        return iter(self._sentences)

    def __eq__(self, other: object) -> bool:
        """Return whether the sentences are equal; `source` and `notes` are not compared."""
        return isinstance(other, Corpus) and self._sentences == other._sentences

    def __hash__(self) -> int:
        return hash(self._sentences)

    def __repr__(self) -> str:
        return f"<Corpus of {len(self)} sentences from {self.source or 'memory'}>"

    def _repr_html_(self) -> str:
        """Return the counts and the first sentences for a notebook."""
        counts = ", ".join(f"{label} {number:,}" for label, number in self.mention_counts().most_common())
        head = escape(f"{len(self):,} sentences from {self.source or 'memory'}; mentions: {counts or 'none'}")
        return for_notebook(f"<p>{head}</p>{sentences_to_html(self._sentences[:_SHOWN])}")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all mentions, sorted."""
        return tuple(sorted(self.mention_counts()))

    def mention_counts(self) -> Counter[str]:
        """Return the number of mentions of each label."""
        return Counter(mention.label for sentence in self for mention in sentence.mentions)


class UnlabelledText(Corpus):
    """Sentences without labels, and what was noticed when they were read."""


class CorpusStream(Iterable[Sentence]):
    """Sentences that are read anew on each iteration, so that a large file is never held in memory.

    Args:
        open_: called at the start of each iteration; returns the sentences.
        source: the file they are read from, for messages.

    Example:
        >>> stream = CorpusStream(lambda: iter([Sentence(["Rome"])]))
        >>> len(list(stream)), len(list(stream))
        (1, 1)
    """

    def __init__(self, open_: Callable[[], Iterable[Sentence]], source: str | None = None) -> None:
        self._open = open_
        self.source = source

    def __iter__(self) -> Iterator[Sentence]:
        """Iterate over the sentences in order, reading them anew."""
        return iter(self._open())
