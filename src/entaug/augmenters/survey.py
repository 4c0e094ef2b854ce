"""The corpus that a method is fitted to, and what drafts take over from their sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from entaug.augmenters.contracts import MethodInfo, rejection_for
from entaug.data import Sentence
from entaug.language_check import LoadedModel, check_languages

__all__ = ["Survey", "own_fields", "source_of"]


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


class Survey(Iterable[Sentence]):
    """A corpus for `Augmenter.fit`: counts mentions, and skips sentences that the method does not support.

    Args:
        corpus: the sentences; read once.
        info: the description of the method.
        id_infix: the part that the ids of all sentences of the method and its seed share.
        models: the models of the method, which must serve the language of the corpus, see `check_languages`.
    """

    def __init__(
        self, corpus: Iterable[Sentence], info: MethodInfo, id_infix: str, models: Sequence[LoadedModel] = ()
    ) -> None:
        self.source = source_of(corpus)
        self.mentions = self.with_mentions = self.rejected = 0
        self.existing_ids: set[str] = set()
        self._info = info
        self._id_infix = id_infix
        self._sentences = check_languages(corpus, models, self.source)

    def __iter__(self) -> Iterator[Sentence]:
        for sentence in self._sentences:
            self.mentions += len(sentence.mentions)
            self.with_mentions += bool(sentence.mentions)
            if sentence.id is not None and self._id_infix in sentence.id:
                self.existing_ids.add(sentence.id)
            if rejection_for(sentence, self._info):
                self.rejected += 1
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
