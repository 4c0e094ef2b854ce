"""Layout of tables, shared by the formats of Hugging Face."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from entaug.config.params import validate
from entaug.core.tags import Overlap
from entaug.errors import MissingExtraError

__all__ = ["JSON_COLUMN", "HfDialect", "Table", "import_pyarrow"]

JSON_COLUMN = "entaug_fields"
"""Column with the fields that have no separate column, as JSON."""


@dataclass(frozen=True)
class HfDialect:
    """Layout of a table.

    Args:
        token_column: the column of tokens.
        tag_column: the column of tags.
        entity_column: the column of entities.
        mentions: where mentions are: ``"tags"``, ``"entities"``, or ``"auto"``: in entities where any sentence has
            nested or discontinuous mentions, else in tags.
        scheme: the scheme of the tags.
        names: the tags of the numbers, in order; missing ones are added when a table is written.
        overlap: the treatment of nested and discontinuous mentions in writing, see `entaug.core.tags.flatten`.
        split_name: the split to read from a folder with several splits.
        columns: the columns with a value per token.
        classes: the names that numbers stand for in other columns, by column.
    """

    token_column: str = "tokens"  # noqa: S105 - no password
    tag_column: str = "ner_tags"
    entity_column: str = "entities"
    mentions: Literal["auto", "tags", "entities"] = "auto"
    scheme: str = "IOB2"
    names: tuple[str, ...] = ()
    overlap: Overlap = "error"
    split_name: str | None = None
    columns: tuple[str, ...] = field(default=(), repr=False)
    classes: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        validate(self)

    def describe(self) -> str:
        """Return a description of the layout."""
        tags = f"{self.scheme} tags in {self.tag_column!r}"
        entities = f"{self.entity_column!r}"
        auto = f"{tags}, or mentions in {entities} where there are nested ones"
        where = {"tags": tags, "entities": f"mentions in {entities}", "auto": auto}
        return f"table, tokens in {self.token_column!r}, {where[self.mentions]}"


@dataclass(frozen=True)
class Table:
    """A table that is read in batches."""

    schema: Any
    features: Mapping[str, Any]
    batches: Callable[[Sequence[str] | None], Iterator[Any]]


def import_pyarrow() -> Any:
    """Import pyarrow."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError(error.name or "pyarrow", "datasets") from None
    return pa
