"""The corpus that a method is fitted to, and what drafts take over from their sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from entaug.augmenters.contracts import MethodInfo, rejection_for
from entaug.data import Sentence
from entaug.language_check import LoadedModel, check_languages

__all__ = ["Learned", "LearnedPart", "Survey", "SurveyCounts", "own_fields", "source_of"]


def own_fields(draft: Sentence, source: Sentence) -> Sentence:
    """Return a draft without the fields that an edit takes over from its source and that do not hold for it.

    Args:
        draft: the draft.
        source: its source.

    Returns:
        The draft, without provenance and layout if they are those of the source.
    """
    changes: dict[str, Any] = {}
    if draft.provenance is source.provenance and source.provenance is not None:
        changes["provenance"] = None
    if draft.layout is source.layout and source.layout:
        changes["layout"] = {}
    return draft.with_(**changes) if changes else draft


@dataclass
class SurveyCounts:
    """What a method has to know of a corpus besides what it learns.

    Args:
        mentions: the number of mentions.
        with_mentions: the number of sentences with mentions.
        rejected: the number of sentences that the method does not support.
        existing_ids: the ids that a sentence of this method could have.
    """

    mentions: int = 0
    with_mentions: int = 0
    rejected: int = 0
    existing_ids: set[str] = field(default_factory=set)

    def update(self, other: SurveyCounts) -> None:
        """Add the counts of another part of the corpus.

        Args:
            other: the counts.
        """
        self.mentions += other.mentions
        self.with_mentions += other.with_mentions
        self.rejected += other.rejected
        self.existing_ids |= other.existing_ids


class Learned(Protocol):
    """What a method learns from a part of a corpus; it can be pickled."""

    def update(self, other: Any) -> None:
        """Add what was learned from the next part.

        Args:
            other: a value of the same type.
        """


@dataclass
class LearnedPart:
    """What was learned from a part of a corpus, see `entaug.augmenters.base.Augmenter.learn`.

    Args:
        counts: the counts of the part.
        learned: what the method learned; None for a method that learns nothing.
    """

    counts: SurveyCounts
    learned: Learned | None = None

    def update(self, other: LearnedPart) -> None:
        """Add what was learned from the next part.

        Args:
            other: what was learned.
        """
        self.counts.update(other.counts)
        if self.learned is not None:
            self.learned.update(other.learned)


class Survey(Iterable[Sentence]):
    """A corpus for `Augmenter.fit`: counts mentions, and skips sentences that the method does not support.

    Args:
        corpus: the sentences; read once.
        info: the description of the method.
        id_infix: the part that the ids of all sentences of the method and its seed share.
        models: the models of the method, which must serve the language of the corpus, see `check_languages`.

    Attributes:
        counts: the counts of the sentences that were read so far.
    """

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
    """Return the origin of a corpus, for messages.

    Args:
        corpus: sentences; may have an attribute ``source``.

    Returns:
        The file or other source; None if it is unknown.
    """
    return getattr(corpus, "source", None)
