"""Counts of the sentences and mentions of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from entaug.backends.protocols import Constituent
from entaug.core.data import Sentence

SentenceCounts = tuple[int, tuple[str, ...], int, int]
"""Counts of a sentence: its tokens, the labels of its mentions, the nested and the discontinuous mentions."""


def sentence_counts(sentence: Sentence) -> SentenceCounts:
    """Count the tokens and mentions of a sentence."""
    mentions = sentence.mentions
    nested = discontinuous = 0
    if mentions and not sentence.is_flat:
        discontinuous = sum(not mention.is_contiguous for mention in mentions)
        covering = Counter(i for mention in mentions for i in mention.positions())
        nested = sum(any(covering[i] > 1 for i in mention.positions()) for mention in mentions)
    return len(sentence.tokens), tuple([mention.label for mention in mentions]), nested, discontinuous


@dataclass
class CorpusStatistics:
    """Counts of a corpus."""

    sentences: int = 0
    tokens: int = 0
    mentions: Counter[str] = field(default_factory=Counter)
    nested: int = 0
    discontinuous: int = 0

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> Self:
        """Count sentences."""
        counts = cls()
        for sentence in sentences:
            counts.add(sentence)
        return counts

    def add(self, sentence: Sentence) -> None:
        """Count a sentence."""
        self.add_counts(sentence_counts(sentence))

    def add_counts(self, counts: SentenceCounts) -> None:
        """Add the counts of a sentence."""
        tokens, labels, nested, discontinuous = counts
        self.sentences += 1
        self.tokens += tokens
        for label in labels:
            self.mentions[label] += 1
        self.nested += nested
        self.discontinuous += discontinuous

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values, for JSON."""
        return {**vars(self), "mentions": dict(self.mentions)}

    @classmethod
    def from_dict(cls, counts: Mapping[str, Any]) -> Self:
        """Create counts from plain values."""
        return cls(**{**counts, "mentions": Counter(counts["mentions"])})


@dataclass
class PhraseCounts:
    """Counts of the phrases of a corpus."""

    phrases: Counter[str] = field(default_factory=Counter)
    with_mention: Counter[str] = field(default_factory=Counter)

    def add(self, sentence: Sentence, phrases: Iterable[Constituent]) -> None:
        """Count the phrases of a sentence."""
        ranges = [(mention.spans[0][0], mention.spans[-1][1]) for mention in sentence.mentions]
        for phrase in phrases:
            self.phrases[phrase.category] += 1
            if any(phrase.start <= start and end <= phrase.end for start, end in ranges):
                self.with_mention[phrase.category] += 1
