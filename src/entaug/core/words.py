"""What a word is, in any script: letters with their marks, words of the same script, and words of a text."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import groupby

from entaug.core.spacing import is_unspaced_script, is_word_character

__all__ = ["is_word", "may_replace", "script_of", "words_in"]

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


def _is_letter_or_mark(character: str) -> bool:
    return character.isalpha() or (is_word_character(character) and not character.isalnum())
