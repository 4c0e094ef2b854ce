"""Loading a dependency parser by name."""

from __future__ import annotations

from pathlib import Path

from entaug.backends.protocols import DependencyParser

__all__ = ["load_dependency_parser"]


def load_dependency_parser(name: str | Path) -> DependencyParser:
    """Load a dependency parser."""
    if Path(name).suffix == ".conllu":
        from entaug.backends.parsers.conllu import ConlluParser

        return ConlluParser(name)
    from entaug.backends.parsers.spacy import SpacyParser

    return SpacyParser(name)
