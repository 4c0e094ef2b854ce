"""Dependency trees from a file in CoNLL-U format, as treebanks and parsers write it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import conllu

from entaug.backends.models.catalogue import digest
from entaug.backends.protocols import Parse
from entaug.errors import InputError, one_line


class ConlluParser:
    """A `entaug.backends.protocols.DependencyParser` that looks trees up in a file."""

    # A tree belongs to every sentence with exactly its words. Ranges of multi-word tokens and empty nodes are skipped:
    # the words of a tree are those with integer ids.

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        self._trees: dict[tuple[str, ...], Parse] = {}
        try:
            text = Path(path).read_text(encoding="utf-8-sig").replace("\r\n", "\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise InputError(f"cannot be read ({reason})", path=self._path) from None
        line = 1
        for block in re.split(r"(\n[ \t]*(?=\n))", text):
            if any(row.strip() and not row.startswith("#") for row in block.split("\n")):
                self._read(block.strip("\n"), line + len(block) - len(block.lstrip("\n")))
            line += block.count("\n")
        self.name = f"{Path(path).name}-{digest([Path(path)])}"

    def _read(self, block: str, line: int) -> None:
        try:
            [tree] = conllu.parse(block)
            rows = [row for row in tree if isinstance(row["id"], int)]
            if any(row["head"] is None or row["deprel"] in {None, "_"} for row in rows):
                raise ValueError("a head or a relation is missing")  # noqa: TRY301
            if [row["id"] for row in rows] != list(range(1, len(rows) + 1)):
                raise ValueError("its words are not numbered from 1")  # noqa: TRY301
            heads = tuple(row["head"] - 1 if row["head"] else position for position, row in enumerate(rows))
            if not all(0 <= head < len(rows) for head in heads) or not _is_forest(heads):
                raise ValueError("a head is no word of the sentence, or depends on itself")  # noqa: TRY301
        except (conllu.exceptions.ParseException, KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a tree in CoNLL-U format ({one_line(error)})", path=self._path, line=line) from None
        words = tuple(row["form"] for row in rows)
        tags = tuple("X" if row["upos"] in {None, "_"} else row["upos"] for row in rows)
        features = tuple("|".join(f"{k}={v}" for k, v in (row["feats"] or {}).items()) for row in rows)
        self._trees.setdefault(
            words, Parse(heads, tuple(row["deprel"] for row in rows), tags, features if any(features) else ())
        )

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        trees = []
        for words in map(tuple, sentences):
            tree = self._trees.get(words)
            if tree is None:
                start = " ".join(words[:8]) + (" ..." if len(words) > 8 else "")
                raise InputError(
                    f"has no tree for the sentence {start!r}",
                    path=self._path,
                    remedy="parse exactly the tokens of the corpus",
                )
            trees.append(tree)
        return trees


def _is_forest(heads: Sequence[int]) -> bool:
    """Whether every path of heads ends at a root."""
    ancestors = list(heads)
    for _ in range(len(heads).bit_length()):  # each round doubles the steps
        ancestors = [ancestors[head] for head in ancestors]
    return all(heads[top] == top for top in ancestors)
