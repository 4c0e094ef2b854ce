"""Collections of sentences: in memory, or read anew on each iteration; and unique keys of their sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

from entaug.data import Sentence

__all__ = ["Corpus", "CorpusStream", "SentenceKeys", "UnlabelledText", "sentence_key"]


def sentence_key(sentence: Sentence, occurrence: int) -> str:
    """Return the key of a sentence of a corpus.

    Args:
        sentence: the sentence.
        occurrence: how many sentences without an id had the same content so far, with this one; not used where it has
            an id.

    Example:
        >>> sentence_key(Sentence(["Ada"], id="s1"), 1), sentence_key(Sentence(["Ada"]), 2)[16:]
        ('s1', '-2')
    """
    if sentence.id is not None:
        return sentence.id
    key = f"{sentence.fingerprint_number():016x}"
    return key if occurrence == 1 else f"{key}-{occurrence}"


class SentenceKeys:
    """Unique keys of the sentences of a corpus.

    A key is `Sentence.key`, with a number appended where an earlier sentence without an id has the same content.

    Example:
        >>> keys = SentenceKeys()
        >>> [keys.assign(Sentence(["Ada"]))[16:] for _ in range(3)], keys.assign(Sentence(["Ada"], id="s1"))
        (['', '-2', '-3'], 's1')
    """

    def __init__(self) -> None:
        self._occurrences: Counter[int] = Counter()

    def assign(self, sentence: Sentence) -> str:
        """Return the key of the next sentence of the corpus.

        Args:
            sentence: the sentence.
        """
        if sentence.id is not None:
            return sentence.id
        number = sentence.fingerprint_number()
        self._occurrences[number] += 1
        occurrence = self._occurrences[number]
        return f"{number:016x}" if occurrence == 1 else f"{number:016x}-{occurrence}"


class Corpus(Sequence[Sentence]):
    """Sentences in memory.

    Args:
        sentences: the sentences.
        source: the file they were read from, for messages.
        notes: remarks for the user: what was left out or assumed when they were read.

    Example:
        >>> from entaug.data import Mention
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

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all mentions, sorted."""
        return tuple(sorted(self.mention_counts()))

    def mention_counts(self) -> Counter[str]:
        """Return the number of mentions of each label."""
        return Counter(mention.label for sentence in self for mention in sentence.mentions)


class UnlabelledText(Corpus):
    """Sentences without labels, and what was noticed when they were read.

    Args:
        sentences: the sentences; their mentions are not used.
        source: the files they were read from, for messages.
        notes: remarks for the user: what was left out, and how the text differs from the training sentences.

    Example:
        >>> text = UnlabelledText([Sentence(["Rome", "burns"])], notes=["2 duplicates left out"])
        >>> len(text), text.notes
        (1, ('2 duplicates left out',))
    """


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
