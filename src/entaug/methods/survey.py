"""The corpus that a method is fitted to, and what drafts take over from their sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from entaug.backends.language_check import LoadedModel, check_languages
from entaug.core.data import Sentence
from entaug.methods.types import MethodInfo, rejection_for

__all__ = ["Learned", "LearnedPart", "Survey", "SurveyCounts", "own_fields", "source_of"]


def own_fields(draft: Sentence, source: Sentence) -> Sentence:
    """Return a draft without the fields that an edit takes over from its source and that do not hold for it."""
    changes: dict[str, Any] = {}
    if draft.provenance is source.provenance and source.provenance is not None:
        changes["provenance"] = None
    if draft.layout is source.layout and source.layout:
        changes["layout"] = {}
    return draft.with_(**changes) if changes else draft


@dataclass
class SurveyCounts:
    """Counts of a corpus that a method needs besides what it learns."""

    mentions: int = 0
    with_mentions: int = 0
    rejected: int = 0
    existing_ids: set[str] = field(default_factory=set)

    def update(self, other: SurveyCounts) -> None:
        """Add the counts of another part of the corpus."""
        self.mentions += other.mentions
        self.with_mentions += other.with_mentions
        self.rejected += other.rejected
        self.existing_ids |= other.existing_ids


class Learned(Protocol):
    """Picklable knowledge that a method learned from a part of a corpus."""

    def update(self, other: Any) -> None:
        """Add what was learned from the next part."""


@dataclass
class LearnedPart:
    """Knowledge learned from a part of a corpus, see `entaug.methods.base.Augmenter.learn`."""

    counts: SurveyCounts
    learned: Learned | None = None

    def update(self, other: LearnedPart) -> None:
        """Add what was learned from the next part."""
        self.counts.update(other.counts)
        if self.learned is not None:
            self.learned.update(other.learned)


class Survey(Iterable[Sentence]):
    """A corpus for `Augmenter.fit`: counts mentions, and skips sentences that the method does not support."""

    def __init__(
        self, corpus: Iterable[Sentence], info: MethodInfo, id_infix: str, models: Sequence[LoadedModel] = ()
    ) -> None:
        self.source = source_of(corpus)
        self.counts = SurveyCounts()
        self._info = info
        self._id_infix = id_infix
        self._sentences = check_languages(corpus, models, self.source)

    def __iter__(self) -> Iterator[Sentence]:
        counts = self.counts
        for sentence in self._sentences:
            if sentence.mentions:
                counts.mentions += len(sentence.mentions)
                counts.with_mentions += 1
            if sentence.id is not None and self._id_infix in sentence.id:
                counts.existing_ids.add(sentence.id)
            if rejection_for(sentence, self._info):
                counts.rejected += 1
            else:
                yield sentence


def source_of(corpus: object) -> str | None:
    """Return the origin of a corpus, for messages."""
    return getattr(corpus, "source", None)
