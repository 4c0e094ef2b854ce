"""Opening a dependency parser by name, whatever kind it is."""

from __future__ import annotations

from pathlib import Path

from entaug.backends.protocols import DependencyParser

__all__ = ["open_parser"]


def open_parser(name: str | Path) -> DependencyParser:
    """A parser from a folder, a file or the name of an installed package.

    Args:
        name: a file that ends in ``.conllu`` and holds the trees; or a pipeline of spaCy, a folder or an installed one.

    Raises:
        MissingModelError: there is no such pipeline.
        MissingExtraError: the library behind it is not installed.
        InputError: the file is not there, or not in CoNLL-U format.
    """
    if Path(name).suffix == ".conllu":
        from entaug.backends.parsers.conllu import ConlluParses

        return ConlluParses(name)
    from entaug.backends.parsers.spacy import SpacyParser

    return SpacyParser(name)
