"""Loading a dependency parser by name."""

from __future__ import annotations

from pathlib import Path

from entaug.backends.protocols import DependencyParser

__all__ = ["load_dependency_parser"]


def load_dependency_parser(name: str | Path) -> DependencyParser:
    """Load a dependency parser.

    Args:
        name: a file that ends in ``.conllu`` and contains the trees; or a pipeline of spaCy, as a folder or the name of
            an installed package.

    Returns:
        The parser.

    Raises:
        MissingModelError: there is no such pipeline.
        ModuleNotFoundError: the library behind it is not installed.
        InputError: the file does not exist, or is not in CoNLL-U format.
    """
    if Path(name).suffix == ".conllu":
        from entaug.backends.parsers.conllu import ConlluParser

        return ConlluParser(name)
    from entaug.backends.parsers.spacy import SpacyParser

    return SpacyParser(name)
