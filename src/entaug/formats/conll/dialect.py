"""The dialect of a CoNLL file: its layout, which consists of the options of the format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from entaug.config.params import Check, validate
from entaug.core.tags import Overlap

__all__ = ["ConllDialect"]

_DELIMITERS = {"tab": "\t", "space": " ", "runs": None}
_SEPARATOR_NAMES = {"tab": "tabs", "space": "spaces", "runs": "runs of tabs and spaces"}


def _are_distinct(columns: Sequence[object]) -> bool:
    return len(set(columns)) == len(columns) and all(type(column) is int for column in columns)


@dataclass(frozen=True)
class ConllDialect:
    """Layout of a CoNLL file.

    Args:
        separator: the separator of columns: ``"tab"``, ``"space"``, or ``"runs"`` of tabs and spaces.
        token_column: the column of the tokens, from 0.
        tag_column: the column of the tags, from 0; -1 for the last.
        scheme: the tag scheme.
        numbered_from: the first number where column 0 numbers the tokens of a sentence; numbers are not kept but
            written anew.
        ids: whether ``# sent_id = ...`` comments hold the ids of sentences.
        texts: whether ``# text = ...`` comments hold the text of sentences with its white space.
        overlap: which nested and discontinuous mentions to write, see `entaug.core.tags.flatten`; where there are
            several tag columns, which of those that need more columns.
        provenance: whether to write the provenance of augmented sentences as a comment.
        tag_columns: the columns of nested mentions, outermost first, as 1,2; they override `tag_column`.
        column_names: the names of all columns, where the file begins with ``# global.columns = ...``.
        attribute: the name under which the tag column holds tags beside other attributes, as in
            ``name=B-PER|SpaceAfter=No``.
        outside_tag: the tag of tokens outside mentions.
        token_prefix: the prefix of each token in its column, as ``token=``.
        characters: whether a token is a character of a script without spaces.
        other_tag_columns: further columns that look like tags; for information.
        unread_tag_columns: those of them whose mentions the user is told of.
        num_columns: the number of columns of all rows; 0 where it is not known.
        further_columns: the names of the columns to write besides token and tag, where these are not their numbers.
    """

    separator: Literal["tab", "space", "runs"] = "tab"
    token_column: int = 0
    tag_column: int = -1
    scheme: str = "IOB2"
    numbered_from: int | None = None
    ids: bool = False
    texts: bool = False
    overlap: Overlap = "error"
    provenance: bool = False
    tag_columns: Annotated[tuple[int, ...], Check(_are_distinct, "different columns, outermost first, as 1,2")] = ()
    column_names: tuple[str, ...] = ()
    attribute: str = ""
    outside_tag: str = "O"
    token_prefix: str = ""
    characters: bool = False
    other_tag_columns: tuple[int, ...] = field(default=(), compare=False)
    unread_tag_columns: tuple[int, ...] = field(default=(), compare=False)
    num_columns: int = field(default=0, compare=False)
    further_columns: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        validate(self)
        object.__setattr__(self, "tag_columns", tuple(self.tag_columns))
        if self.tag_columns:
            object.__setattr__(self, "tag_column", self.tag_columns[0])

    @property
    def delimiter(self) -> str | None:
        """The string between two columns; None for any run of tabs and spaces."""
        return _DELIMITERS[self.separator]

    @property
    def is_simple(self) -> bool:
        """Whether tokens and tags are the cells of one column each, as they are."""
        special = self.tag_columns or self.attribute or self.column_names or self.token_prefix
        return not special and self.outside_tag == "O"

    @property
    def heading(self) -> str:
        """The line that a file of this layout begins with, if any."""
        return f"# global.columns = {' '.join(self.column_names)}\n" if self.column_names else ""

    def describe(self) -> str:
        """Return the layout in words."""
        tag = "the last" if self.tag_column == -1 else str(self.tag_column)
        if self.tag_columns:
            tag = f"{' and '.join(map(str, self.tag_columns))}, outermost first"
        elif self.attribute:
            tag += f" after {self.attribute}="
        others = ""
        if self.other_tag_columns:
            others = f" (tags in {', '.join(map(str, self.other_tag_columns))} too: --tag-column)"
        unit = "character" if self.characters else "token"
        return (
            f"CoNLL columns, {_SEPARATOR_NAMES[self.separator]}, {unit} in column {self.token_column}, "
            f"tag in {tag}{others}, {self.scheme}"
        )

    def column_name(self, column: int) -> str:
        """Return the name of a further column in the `columns` of a sentence."""
        return self.column_names[column] if self.column_names else str(column)

    def tag_indices(self, num_columns: int) -> tuple[int, ...]:
        """Return the tag columns, counted from the left."""
        return tuple(column % num_columns for column in self.tag_columns or (self.tag_column,))
