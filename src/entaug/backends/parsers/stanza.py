"""Constituency parsing by Stanza (Qi et al. 2020), over the words of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import stanza

from entaug.backends.protocols import Constituent
from entaug.errors import MissingModelError, one_line

_BATCH = 256  # sentences of a document; Stanza sorts them by length itself


class StanzaParser:
    """A `entaug.backends.protocols.ConstituencyParser` of Stanza, the parser in the paper of CR."""

    # Nothing is downloaded: the models must be in Stanza's own folder, or in the one given.

    def __init__(self, name: str = "en", *, pipeline: Any = None) -> None:
        folder = Path(name)
        is_folder = len(folder.parts) > 1 and folder.is_dir()
        language, options = (folder.name, {"dir": str(folder.parent)}) if is_folder else (name, {})
        if pipeline is None:
            try:
                pipeline = stanza.Pipeline(
                    language,
                    processors="tokenize,pos,constituency",
                    tokenize_pretokenized=True,
                    download_method=None,
                    verbose=False,
                    **options,
                )
            except (OSError, ValueError, KeyError, RuntimeError, AttributeError, TypeError) as error:
                raise MissingModelError(
                    f"Stanza has no constituency parser for {name!r} here ({one_line(error)})",
                    remedy=f"python -c 'import stanza; stanza.download({language!r})' where there is a network, "
                    "or use constituency_parser=projected",
                ) from None
        self._pipeline = pipeline
        self.languages = frozenset({language})
        self.name = f"stanza-{stanza.__version__}-{language}"

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        requested = [tuple(sentence) for sentence in sentences]
        todo = sorted(set(requested), key=lambda words: (len(words), words))
        constituents: dict[tuple[str, ...], tuple[Constituent, ...]] = {}
        for start in range(0, len(todo), _BATCH):
            part = todo[start : start + _BATCH]
            parsed = self._pipeline([list(words) for words in part]).sentences
            for words, sentence in zip(part, parsed, strict=True):
                constituents[words] = constituents_of(sentence.constituency, len(words))
        return [constituents[words] for words in requested]


def constituents_of(tree: Any, num_words: int) -> tuple[Constituent, ...]:
    """The phrases of a tree of Stanza, without parts of speech and the root."""
    constituents: list[Constituent] = []

    def walk(node: Any, start: int) -> int:
        if node.is_leaf():
            return start + 1
        index = len(constituents)
        end = start
        for child in node.children:
            end = walk(child, end)
        if not node.is_preterminal() and node.label != "ROOT":
            constituents.insert(index, Constituent(node.label.partition("-")[0], start, end))
        return end

    return tuple(constituents) if walk(tree, 0) == num_words else ()
