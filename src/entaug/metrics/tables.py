"""Numbers in words, and tables of results and documents with them, as text for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


def shown_width(text: str) -> int:
    """The columns that a text takes in a terminal; characters of Chinese, Japanese and Korean take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # which plain text does without

    return cell_len(text)


def padded(text: str, width: int) -> str:
    """A text with spaces up to a width in a terminal."""
    return text + " " * (width - shown_width(text))


def quantity(count: int, noun: str) -> str:
    """A number with its noun, for example ``"1,200 sentences"``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def times(count: int) -> str:
    """The number of times that something happened, in words."""
    return "once" if count == 1 else f"{count:,} times"


class Heading(NamedTuple):
    """A heading of a document; level 1 is its title."""

    text: str
    level: int = 2


class Table(NamedTuple):
    """A table; its first column names the rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def as_text(self) -> str:
        """The table as aligned columns."""
        lines = [self.head, *self.rows]
        first, *others = [max(map(shown_width, column)) for column in zip(*lines, strict=True)]
        rows = []
        for name, *cells in lines:
            right = [" " * (width - shown_width(cell)) + cell for cell, width in zip(cells, others, strict=True)]
            rows.append("  ".join([padded(name, first), *right]).rstrip() + "\n")
        return "".join(rows)

    def as_markdown(self) -> str:
        """The table in Markdown, all columns but the first aligned to the right."""
        lines = [self.head, ["---", *["---:"] * (len(self.head) - 1)], *self.rows]
        return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


Block = Heading | Table | str | list[str]
"""A part of a document; a string is a paragraph, in which ``**`` and backticks mark text, and a list has bullets."""


def as_markdown(blocks: Iterable[Block]) -> str:
    """Format a document in Markdown."""
    return "\n".join(map(_block, blocks))


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}\n"
    if isinstance(block, Table):
        return block.as_markdown()
    return f"{block}\n" if isinstance(block, str) else "".join(f"- {line}\n" for line in block)
