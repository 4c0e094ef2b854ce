"""What a word is, in any script: letters with their marks, words of the same script, and words of a text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Annotated, NamedTuple

from entaug.config.params import Check
from entaug.core.spacing import is_unspaced_script, is_word_character
from entaug.errors import ParameterError

_JOINERS = "\u200c\u200d"  # inside words of Persian and of the scripts of India
# Scripts that are written together, and forms of letters, by the first words of the names of their characters.
_ALIASES = {
    "CJK": "HAN",
    "FULLWIDTH": "LATIN",
    "HALFWIDTH": "HAN",
    "HIRAGANA": "HAN",
    "IDEOGRAPHIC": "HAN",
    "KATAKANA": "HAN",
    "KATAKANA-HIRAGANA": "HAN",
    "MODIFIER": "LATIN",
}


_MIN_DOTLESS = 0.03  # of the tokens: a fifth of those of Turkish, and names in other languages
_DOTS = re.compile("[\u0130\u0131]")
_GREEK_CAPITALS = str.maketrans("ΆΈΉΊΌΎΏ", "ΑΕΗΙΟΥΩ")


def is_word(text: str, *, hyphens: bool = False) -> bool:
    """Return whether a text is one word of letters."""
    # Marks that combine with letters belong to the word: the vowel signs of India, accents, points, and the joiners
    # between letters.
    if text.isalpha():
        return True
    inner = _JOINERS + "-" if hyphens else _JOINERS
    if not text or not text[0].isalpha() or text[-1] in inner:
        return False
    return all(character in inner or _is_letter_or_mark(character) for character in text)


def words_in(text: str) -> list[str]:
    """Return the words of letters in a text, in order."""
    if text.isascii():
        runs = groupby(text, str.isalpha)
    else:
        runs = groupby(text, lambda character: character in _JOINERS or _is_letter_or_mark(character))
    words = ("".join(characters).strip(_JOINERS) for is_inside, characters in runs if is_inside)
    return [word for word in words if word]


@lru_cache(maxsize=100_000)
def script_of(text: str) -> str | None:
    """Return the script of the first letter of a text, by the names of Unicode."""
    letter = next((character for character in text if character.isalpha()), None)
    if letter is None:
        return None
    name = unicodedata.name(letter, "").partition(" ")[0]
    return _ALIASES.get(name, name)


def may_replace(new: str, old: str) -> bool:
    """Return whether a word that a model predicts can stand for a word of a corpus."""
    if new.isascii() and old.isascii():
        return True
    script = script_of(old)
    return (script is None or script_of(new) == script) and not (
        len(old) == 1 and len(new) > 1 and is_unspaced_script(old)
    )


def folded(text: str) -> str:
    """Text that is equal for spellings that differ in case, or in whether marks are characters of their own."""
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).casefold()


class Letters(NamedTuple):
    """Small letters and capitals of a language; Turkish pairs i with İ, and the dotless i with I."""

    has_dotless: bool = False

    @classmethod
    def of(cls, tokens: Counter[str]) -> Letters:
        """Those of a corpus, by how often its tokens have dotless small or dotted great i."""
        # Small letters that Python made of İ are i and a combining dot, and plain i of I.
        dotless = sum(count for token, count in tokens.items() if _DOTS.search(token))
        by_python = any("i\u0307" in token for token in tokens) if dotless else False
        return cls(dotless > _MIN_DOTLESS * tokens.total() and not by_python)

    def lower(self, text: str) -> str:
        """Text in small letters."""
        return (text.replace("İ", "i").replace("I", "\u0131") if self.has_dotless else text).lower()

    def upper(self, text: str) -> str:
        """Text in capitals, which have no accents in Greek."""
        return (text.replace("i", "İ") if self.has_dotless else text).upper().translate(_GREEK_CAPITALS)

    def capitalize(self, text: str) -> str:
        """Text with its first letter as a capital."""
        first = text[:1]
        return ("İ" if self.has_dotless and first == "i" else first.upper()) + text[1:]


_CAPITALS = re.compile("[A-Z]+(?![a-z])")
_VOWELS = frozenset("AEIOUY")


def takes_an(word: str) -> bool:
    """Return whether an English word follows "an" and not "a", as far as its spelling tells."""
    capitals = _CAPITALS.match(word)
    if capitals and len(word) > 1:  # MHC, X-ray and UV are read letter by letter, NATO and SWIFT are not
        first, others = capitals[0][0], capitals[0][1:2] + capitals[0][1:-1]
        if first == "U":
            return False
        if first in "FHLMNRSX" and _VOWELS.isdisjoint(others):
            return True
    word = word.lower()
    if word.startswith(("hour", "honest", "honor", "honour", "heir")):
        return True
    like_you_or_one = ("uni", "usa", "use", "usu", "uti", "ura", "eu", "ewe", "one", "once")
    return word[0] in "aeiou" and not word.startswith(like_you_or_one)


def _is_letter_or_mark(character: str) -> bool:
    return character.isalpha() or (is_word_character(character) and not character.isalnum())


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

BRACKETS = {"(": ")", "[": "]", "{": "}", "«": "»", "“": "”", "-LRB-": "-RRB-", "``": "''"}
BRACKETS |= dict(zip("（「『《〈【〔", "）」』》〉】〕", strict=True))  # of Chinese and Japanese  # noqa: RUF001
"""The brackets and quotation marks that close others."""


def is_unbalanced(words: Sequence[str]) -> bool:
    """Whether words have an unpaired bracket or quotation mark."""
    open_: list[str] = []
    for word in words:
        if word in BRACKETS:
            open_.append(BRACKETS[word])
        elif word in BRACKETS.values() and (not open_ or open_.pop() != word):
            return True
    return bool(open_) or words.count('"') % 2 == 1


AUTO = "auto"
StopWordsOrAuto = Annotated[
    str,
    Check(
        lambda value: value == AUTO or _is_available(value),
        f'"{AUTO}", the code of a language, several joined by +, or a file',
    ),
]
"""The same, or those of the language of the corpus."""


# What usual abbreviations of labels stand for.
_WORDS = {
    "cw": "creative work",
    "fac": "facility",
    "gpe": "country, city or state",
    "grp": "group",
    "loc": "location",
    "misc": "miscellaneous",
    "norp": "nationality, religious or political group",
    "org": "organization",
    "per": "person",
    "pers": "person",
    "prod": "product",
}


def label_in_words(label: str) -> str:
    """Put a label into words."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s_./-]+", " ", label).strip().lower()
    return _WORDS.get(words, words) or label
