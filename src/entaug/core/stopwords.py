"""Stop words by language, from the stopwordsiso package, or from a file of one's own."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated

from entaug.config.params import Check
from entaug.errors import ParameterError

__all__ = ["StopWords", "listed_languages", "stop_words"]


@lru_cache(maxsize=128)
def stop_words(language: str | None) -> frozenset[str]:
    """The stop words of a language, lower-cased."""
    if language is None:
        return frozenset()
    import stopwordsiso  # reads its lists on import, which most runs do not need

    if stopwordsiso.has_lang(language):
        return frozenset(word.lower() for word in stopwordsiso.stopwords(language))
    if all(map(stopwordsiso.has_lang, parts := language.split("+"))):
        return frozenset().union(*map(stop_words, parts))
    try:
        lines = Path(language).read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError):  # not text, or not even the name of a file
        languages = ", ".join(sorted(stopwordsiso.langs()))
        raise ParameterError(
            f"no stop words for {language!r}", remedy=f"give a word list file or one of: {languages}"
        ) from None
    return frozenset(line.strip().lower() for line in lines if line.strip())


@lru_cache(maxsize=1)
def listed_languages() -> frozenset[str]:
    """The ISO 639-1 codes of the languages that have a list of stop words."""
    import stopwordsiso

    return frozenset(stopwordsiso.langs())


def _is_available(language: str) -> bool:
    stop_words(language)
    return True


StopWords = Annotated[str, Check(_is_available, "the code of a language, several joined by +, or a file")]
"""A parameter of `stop_words`."""
