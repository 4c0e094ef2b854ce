"""Opening a constituency parser by name, whatever kind it is."""

from __future__ import annotations

from entaug.backends.parsers.projection import ProjectedConstituents
from entaug.backends.protocols import ConstituencyParser
from entaug.backends.resolve import resolve
from entaug.errors import UnknownNameError

__all__ = ["open_constituency_parser"]


def open_constituency_parser(name: str) -> ConstituencyParser:
    """A parser by its kind and, behind a colon, which one.

    Args:
        name: ``"projected"`` (from trees of en_core_web_sm), or ``"projected:"`` and the name of another dependency
            parser; ``"link-grammar"``; ``"stanza:"`` and a language or a folder.

    Raises:
        UnknownNameError: there is no such kind.
        MissingModelError: what it needs is not on this machine.
        MissingExtraError: the library behind it is not installed.
    """
    kind, _, which = str(name).partition(":")
    if kind == "projected":
        return ProjectedConstituents(resolve("dependency_parser", which or "en_core_web_sm"))
    if kind == "link-grammar":
        from entaug.backends.parsers.link_grammar import LinkGrammar

        return LinkGrammar(which or "en")
    if kind == "stanza":
        from entaug.backends.parsers.stanza import StanzaParser

        return StanzaParser(which or "en")
    raise UnknownNameError("constituency parser", str(name), ["projected", "link-grammar", "stanza"])
