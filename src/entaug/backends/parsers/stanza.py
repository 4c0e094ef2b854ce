"""Constituents by Stanza (Qi et al. 2020), over the tokens of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from entaug.backends.protocols import Constituent
from entaug.errors import MissingExtraError, MissingModelError

try:
    import stanza
except ImportError as error:
    raise MissingExtraError(error.name or "stanza", "stanza") from None

__all__ = ["StanzaParser", "phrases"]

_BATCH = 256  # sentences of a document; Stanza sorts them by length itself


class StanzaParser:
    """A `entaug.backends.protocols.ConstituencyParser` of Stanza, the parser of the paper of CR.

    Nothing is downloaded: its models have to be in its folder already, or in the one given.

    Args:
        which: a language code; or a folder that Stanza's models were downloaded to, with the language as its last
            part (``"models/en"``).
        pipeline: a `stanza.Pipeline` that is ready, in place of one made here.

    Raises:
        MissingModelError: the models for tokens, parts of speech and constituents are not there.
    """

    def __init__(self, which: str = "en", *, pipeline: Any = None) -> None:
        folder = Path(which)
        is_folder = len(folder.parts) > 1 and folder.is_dir()
        language, where = (folder.name, {"dir": str(folder.parent)}) if is_folder else (which, {})
        if pipeline is None:
            try:
                pipeline = stanza.Pipeline(
                    language,
                    processors="tokenize,pos,constituency",
                    tokenize_pretokenized=True,
                    download_method=None,
                    verbose=False,
                    **where,
                )
            except (OSError, ValueError, KeyError, RuntimeError, AttributeError, TypeError) as error:
                reason = " ".join(str(error).split())[:200]
                raise MissingModelError(
                    f"Stanza has no constituency parser for {which!r} here ({reason})",
                    remedy=f"python -c 'import stanza; stanza.download({language!r})' where there is a network, "
                    "or use constituency_parser=projected",
                ) from None
        self._pipeline = pipeline
        self.name = f"stanza-{stanza.__version__}-{language}"

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        """See `entaug.backends.protocols.ConstituencyParser.parse`."""
        wanted = [tuple(sentence) for sentence in sentences]
        todo = sorted(set(wanted), key=lambda words: (len(words), words))
        found: dict[tuple[str, ...], tuple[Constituent, ...]] = {}
        for start in range(0, len(todo), _BATCH):
            part = todo[start : start + _BATCH]
            parsed = self._pipeline([list(words) for words in part]).sentences
            for words, one in zip(part, parsed, strict=True):
                found[words] = phrases(one.constituency, len(words))
        return [found[words] for words in wanted]


def phrases(tree: Any, count: int) -> tuple[Constituent, ...]:
    """The phrases of a tree of Stanza, outer before inner; parts of speech are none, nor is the root.

    Args:
        tree: with `label`, `children`, `is_leaf` and `is_preterminal`.
        count: tokens of the sentence; a tree over any other number has no phrases.
    """
    found: list[Constituent] = []

    def walk(node: Any, start: int) -> int:
        if node.is_leaf():
            return start + 1
        place = len(found)
        end = start
        for child in node.children:
            end = walk(child, end)
        if not node.is_preterminal() and node.label != "ROOT":
            found.insert(place, Constituent(node.label.partition("-")[0], start, end))
        return end

    return tuple(found) if walk(tree, 0) == count else ()
