"""White space between tokens: inferred as in printed text, and adjusted when tokens are edited or reordered."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise

from entaug.core.edits import Edit
from entaug.core.mentions import Span

_JOINING = "-/_&+#@"  # characters that continue a word
PRINTED_FORMS = dict(zip("-LRB- -RRB- -LSB- -RSB- -LCB- -RCB- `` ''".split(), '()[]{}""', strict=True))
"""Brackets and quotes of treebanks, with their form in printed text."""
CLITIC = re.compile(r"(?i)(?:n['’]t|['’](?:s|re|ve|ll|d|m))")  # noqa: RUF001
_CLOSING = frozenset((",", ".", ";", ":", "!", "?", ")", "]", "}", "%", "...", "…", "»", "”", "’", "''"))  # noqa: RUF001
_CLOSING |= frozenset("।॥،؛؟۔٪")  # of Indic and Arabic scripts  # noqa: RUF001
_CLOSING |= frozenset("\u037e\u0387\u0589\u104a\u104b\u1362\u1363\u1364\u17d4")  # Greek to Khmer
_MAQAF = "\u05be"  # the hyphen of Hebrew, which nothing else is
_OPENING = frozenset(("(", "[", "{", "$", "£", "€", "«", "“", "‘", "``", "¿", "¡"))  # noqa: RUF001
_PLACED = frozenset("„‚»“$£€")  # marks that open or close by what else is in the sentence  # noqa: RUF001
_CURRENCIES = frozenset("$£€")
_DIGIT = re.compile("[0-9]")
_AFTER_QUOTES = frozenset((",", ".", ";", ":", "!", "?", ")"))
_MILLIONS = re.compile(r"(?i)(?:mio|mrd|tsd|(?:mill?i|billi|trilli)(?:on|ard)\w*|tausend|thousand)\.?")
# Han characters with their iteration marks, and kana.
_UNSPACED_CLASS = r"\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = re.compile(f"[{_UNSPACED_CLASS}]")
# These and the punctuation that is written with them, which is as wide.
WIDE = re.compile(rf"[{_UNSPACED_CLASS}\u3001-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]")
"""A character of a script without spaces between words, or of its punctuation."""


def infer_spaces(tokens: Sequence[str]) -> tuple[str, ...]:
    """Infer the white space after each token as in printed text, for a corpus without character offsets."""
    # Punctuation is attached to the word it belongs to, a clitic to the preceding word; straight quotes alternately
    # open and close. Where all tokens of scripts without spaces are single characters, there is none between them.
    spaces = [" "] * len(tokens)
    if _UNSPACED.search("".join(tokens)) and not any(len(token) > 1 and _UNSPACED.search(token) for token in tokens):
        spaces = ["" if _are_joined(*pair) else " " for pair in pairwise((*tokens, ""))]
    in_quotes = {'"': False, "'": False}
    opening, others = _marks_by_place(tokens)
    for i, token in enumerate(tokens):
        printed = PRINTED_FORMS.get(token, token)
        if printed in in_quotes:
            in_quotes[printed] = {"``": True, "''": False}.get(token, not in_quotes[printed])
            if in_quotes[printed]:
                spaces[i] = ""
            elif i:
                spaces[i - 1] = ""
        elif token == _MAQAF:
            spaces[max(0, i - 1) : i + 1] = [""] * min(2, i + 1)
        elif i in opening or (printed in _OPENING and i not in others):
            spaces[i] = ""
        elif i and (printed in _CLOSING or CLITIC.fullmatch(token) or (i in others and token not in _CURRENCIES)):
            spaces[i - 1] = ""
    if spaces:
        spaces[-1] = ""
    return tuple(spaces)


def joined(words: Sequence[str]) -> str:
    """Words of a sentence in a message: with a space between them, but not between characters of Chinese."""
    if not any(map(is_unspaced_script, words)):
        return " ".join(words)
    return "".join(word + space for word, space in zip(words, infer_spaces(words), strict=True))


def _marks_by_place(tokens: Sequence[str]) -> tuple[set[int], set[int]]:
    """The indices of marks that open, and of those that do not, by what else is in the sentence: „so“, »so«, 5 €."""
    opening: set[int] = set()
    others: set[int] = set()
    marks = _PLACED.intersection(tokens)
    if not marks:
        return opening, others
    is_low = {"“": "„" in marks, "‘": "‚" in marks}  # noqa: RUF001
    first = tokens.index("»") if "»" in marks else 0
    is_turned = "»" in marks and "«" in tokens[first:] and "«" not in tokens[:first]
    for i, mark in enumerate(tokens):
        following = tokens[i + 1] if i + 1 < len(tokens) else "."
        if mark in ("„", "‚") or (is_turned and mark == "»"):  # noqa: RUF001
            opening.add(i)
        elif (
            is_low.get(mark)
            or (is_turned and mark == "«")
            or (mark == "“" and following in _AFTER_QUOTES)
            or (mark in _CURRENCIES and _ends_with_amount(tokens[:i]) and not _DIGIT.search(following[:2]))
        ):
            others.add(i)
    return opening, others


def _ends_with_amount(tokens: Sequence[str]) -> bool:
    """Whether tokens before a currency end with its amount: 5, 5.000,-, 3 Mio."""
    last = tokens[-2] if len(tokens) > 1 and _MILLIONS.fullmatch(tokens[-1]) else tokens[-1] if tokens else ""
    return bool(_DIGIT.search(last[-3:]))


def _are_joined(left: str, right: str) -> bool:
    """Whether tokens beside each other, divided by character, are written without a space: not beside foreign words."""
    wide = WIDE.match(left[-1:]) is not None, WIDE.match(right[:1]) is not None
    if all(wide) or (any(wide) and len(left) == len(right) == 1):
        return True
    # A wide mark has its white space within itself, also beside a foreign word.
    return any(is_wide and not _UNSPACED.match(x) for is_wide, x in zip(wide, (left[-1:], right[:1]), strict=True))


def is_unspaced_script(text: str) -> bool:
    """Return whether a text begins with a character of a script without spaces between words (Chinese, Japanese)."""
    return _UNSPACED.match(text) is not None


def by_character(token: str) -> list[str]:
    """The characters of a script without spaces and its punctuation in a token, and what stands between them."""
    return [part for part in re.split(f"({WIDE.pattern})", token) if part]


def infer_spaces_of_characters(tokens: Sequence[str]) -> tuple[str, ...]:
    """Infer the white space after each token of a sentence whose tokens are characters of a script without spaces."""
    if max(map(len, tokens)) == 1:
        return ("",) * len(tokens)

    def are_foreign_words(left: str, right: str) -> bool:
        are_words = is_word_character(left[-1]) and is_word_character(right[0])
        is_foreign = not is_unspaced_script(left) and not is_unspaced_script(right)
        return are_words and is_foreign and len(left) + len(right) > 2

    return (*(" " if are_foreign_words(left, right) else "" for left, right in pairwise(tokens)), "")


def adjust_spaces(tokens: Sequence[str], spaces: Sequence[str], uncertain: Iterable[int]) -> tuple[str, ...]:
    """Adjust the white space after tokens that have new neighbours."""
    adjusted = list(spaces)
    uncertain = [i for i in uncertain if 0 <= i < len(tokens) - 1]
    if uncertain:
        inferred = infer_spaces(tokens)
        for i in uncertain:
            if not inferred[i]:
                adjusted[i] = ""
            elif not adjusted[i] and not (is_unspaced_script(tokens[i][-1]) or is_unspaced_script(tokens[i + 1])):
                adjusted[i] = " "
    return tuple(adjusted)


def edited_spaces(
    tokens: Sequence[str], spaces: Sequence[str], edits: Sequence[Edit], new_tokens: Sequence[str]
) -> tuple[str, ...]:
    """Return the white space after each token of an edited sentence; `Edit` gives the rules."""
    edited: list[str] = []
    uncertain: list[int] = []  # tokens beside a new token whose adjacent character is of another class than before
    position = 0
    for edit in edits:
        edited += spaces[position : edit.start]
        if edit.tokens:
            # A replacement keeps the white space after the last replaced token; an insertion is followed by a space.
            inner, first = edit.spaces, len(edited)
            replaced = tokens[edit.start : edit.end]
            if inner is None and len(edit.tokens) == len(replaced):
                inner = spaces[edit.start : edit.end - 1]
                pairs = zip(pairwise(edit.tokens), pairwise(replaced), strict=True)
                uncertain += [first + i for i, (new, old) in enumerate(pairs) if _boundary(*new) != _boundary(*old)]
            elif inner is None:
                inner = [" "] * (len(edit.tokens) - 1)
                uncertain += range(first, first + len(inner))
            if not replaced or _character_class(edit.tokens[0][0]) != _character_class(replaced[0][0]):
                uncertain.append(first - 1)
            edited += [*inner, spaces[edit.end - 1] if replaced else " "]
            if not replaced or _character_class(edit.tokens[-1][-1]) != _character_class(replaced[-1][-1]):
                uncertain.append(len(edited) - 1)
        elif edited and edit.end > edit.start and not edited[-1]:
            edited[-1] = spaces[edit.end - 1]  # of the two gaps beside deleted tokens one remains
            uncertain.append(len(edited) - 1)
        position = edit.end
    return adjust_spaces(new_tokens, (*edited, *spaces[position:]), uncertain)


def reordered_spaces(tokens: Sequence[str], spaces: Sequence[str], permutation: Sequence[int]) -> tuple[str, ...]:
    """Return the white space after each token of a reordered sentence."""
    new_pairs = [i for i, (left, right) in enumerate(pairwise(permutation)) if right != left + 1]
    reordered = [spaces[left] if right == left + 1 else " " for left, right in pairwise(permutation)]
    return adjust_spaces([tokens[i] for i in permutation], (*reordered, spaces[-1]), new_pairs)


def _character_class(character: str) -> str:
    """The class of a character with respect to white space beside it: all word characters, or the character itself."""
    return "" if is_word_character(character) else character


def _boundary(left: str, right: str) -> tuple[str, str]:
    """The character classes on both sides of the boundary between two tokens."""
    return _character_class(left[-1]), _character_class(right[0])


def continues_word(character: str) -> bool:
    """Return whether a character continues the word before it: word characters of scripts with spaces, and hyphens."""
    return character in _JOINING or (is_word_character(character) and not is_unspaced_script(character))


def without_line_ends(spaces: Sequence[str]) -> tuple[str, ...]:
    """White space with a space in place of each line end, for words that come to stand on another line."""
    return tuple([" " if "\n" in space or "\r" in space else space for space in spaces])


def stripped(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Ranges of a text without the white space at their edges; none if one is white space alone."""
    inner = []
    for start, end in spans:
        words = text[start:end]
        if not words.strip():
            return ()
        first = start + len(words) - len(words.lstrip())
        inner.append((first, first + len(words.strip())))
    return tuple(inner)


def is_word_character(character: str) -> bool:
    """Return whether a character belongs to words: letters, digits, and combining marks such as vowel signs."""
    return character.isalnum() or unicodedata.category(character)[0] == "M"
