"""Opening a translation model by name, whatever kind it is."""

from __future__ import annotations

import re
from pathlib import Path

from entaug.backends.protocols import Translator

__all__ = ["open_translator"]

_PAIR = re.compile(r"(?P<name>.+)@(?P<source>[^@:/\\]+):(?P<target>[^@:/\\]+)")


def open_translator(name: str | Path) -> Translator:
    """A translator from a folder or a name on the hub.

    Args:
        name: ``NAME`` for a model of one pair of languages (Marian, FSMT), ``NAME@SRC:TGT`` for one of several: codes
            as the model has them, for example ``facebook/mbart-large-50-many-to-many-mmt@en_XX:de_DE``,
            ``facebook/m2m100_418M@en:de``, ``facebook/nllb-200-distilled-600M@eng_Latn:deu_Latn``,
            ``google-t5/t5-small@en:de``. A folder with a ``model.bin`` beside its vocabulary was made for CTranslate2;
            any other is a model of transformers.

    Raises:
        MissingModelError: there is no such model, or it is damaged.
        ParameterError: the pair of languages does not fit the model.
        MissingExtraError: the library behind it is not installed.
    """
    pair = None
    match = _PAIR.fullmatch(str(name))
    if match and not Path(name).exists():
        name, pair = match["name"], (match["source"], match["target"])
    if _is_converted(Path(name)):
        from entaug.backends.translation.ctranslate2 import CTranslate2Translator

        return CTranslate2Translator(name, pair)
    from entaug.backends.translation.transformers import TransformersTranslator

    return TransformersTranslator(name, pair)


def _is_converted(folder: Path) -> bool:
    # Pickled weights of transformers are named pytorch_model.bin.
    return (folder / "model.bin").is_file() and any(folder.glob("*vocabulary*"))
