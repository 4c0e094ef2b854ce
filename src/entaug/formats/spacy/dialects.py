"""Shared options and base class of the formats of spaCy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from entaug.config.params import validate
from entaug.core.data import Sentence
from entaug.core.tags import Overlap
from entaug.errors import InputError
from entaug.formats.base import FormatCapabilities
from entaug.formats.buffered import BufferedFormat

__all__ = ["SpacyDialect", "SpacyFormat"]


@dataclass(frozen=True)
class SpacyDialect:
    """The location of mentions in a file of spaCy.

    Args:
        mentions: where mentions are: ``"ents"``, the entities; ``"spans"``, a group of spans; or ``"auto"``: a group of
            spans where any sentence has nested mentions, else the entities.
        spans_key: the name of the group of spans.
        overlap: the treatment of nested and discontinuous mentions in writing, see `entaug.core.tags.flatten`.
    """

    mentions: Literal["auto", "ents", "spans"] = "auto"
    spans_key: str = "sc"
    overlap: Overlap = "error"

    def __post_init__(self) -> None:
        validate(self)

    @property
    def group(self) -> str | None:
        """The group of spans that holds the mentions; None for the entities."""
        return self.spans_key if self.mentions == "spans" else None


class SpacyFormat(BufferedFormat):
    """Base class of the formats of spaCy; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    carries = FormatCapabilities(nested=True, discontinuous=False, columns=True, fields=True, spaces=True)

    def detect_mentions(
        self,
        path: Path,
        groups: Collection[str],
        has_entities: bool,
        dialect: SpacyDialect,
        options: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Detect the location of mentions in a file: its groups of spans that hold any, and whether it has entities."""
        key = dialect.spans_key
        only_spans = dialect.mentions == "spans" or (dialect.mentions == "auto" and not has_entities)
        if groups and key not in groups and (only_spans or "spans_key" in options):
            names = ", ".join(map(repr, sorted(groups)))
            remedy = "choose one: --layout mentions=spans --layout spans_key=NAME"
            if "spans_key" in options:
                raise InputError(f"has no group of spans {key!r}, but {names}", path=str(path), remedy=remedy)
            if len(groups) > 1:
                raise InputError(f"has several groups of spans: {names}", path=str(path), remedy=remedy)
            [key] = groups
        return {"spans_key": key, "mentions": "spans" if key in groups else "ents" if has_entities else "auto"}

    def check(self, sentence: Sentence, dialect: Any) -> None:
        """See `entaug.formats.buffered.BufferedFormat.check`."""
        # No mention may be discontinuous, or nested if mentions are entities.
        kept = self.as_stored(sentence, dialect)
        self.check_contiguous(kept, "write JSON lines, or leave them out: --overlap outermost or innermost")
        if dialect.mentions == "ents":
            self.check_flat(kept, "pass --overlap outermost or innermost, or write spans")

    def resolve(self, sentences: Iterable[Sentence], dialect: Any) -> tuple[Iterable[Sentence], Any]:
        """Prepare sentences for writing."""
        kept: Iterable[Sentence] = (BufferedFormat.as_stored(self, sentence, dialect) for sentence in sentences)
        if dialect.mentions == "auto":
            kept = list(kept)
            mentions = "ents" if all(sentence.is_flat for sentence in kept) else "spans"
            dialect = replace(dialect, mentions=mentions)
        return kept, dialect
