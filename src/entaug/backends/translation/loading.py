"""Loading a translation model by name."""

from __future__ import annotations

import re
from pathlib import Path

from entaug.backends.protocols import Translator

__all__ = ["load_translator"]

_PAIR = re.compile(r"(?P<name>.+)@(?P<source>[^@:/\\]+):(?P<target>[^@:/\\]+)")


def load_translator(name: str | Path) -> Translator:
    """Load a translation model from a folder or from the hub."""
    pair = None
    match = _PAIR.fullmatch(str(name))
    if match and not Path(name).exists():
        name, pair = match["name"], (match["source"], match["target"])
    if _is_ctranslate2(Path(name)):
        from entaug.backends.translation.ctranslate2 import CTranslate2Translator

        return CTranslate2Translator(name, pair)
    from entaug.backends.translation.transformers import TransformersTranslator

    return TransformersTranslator(name, pair)


def _is_ctranslate2(folder: Path) -> bool:
    # Pickled weights of transformers are named pytorch_model.bin.
    return (folder / "model.bin").is_file() and any(folder.glob("*vocabulary*"))
