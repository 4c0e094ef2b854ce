"""The changes that a paraphrase makes to a sentence, each of which can be made without the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import combinations
from typing import NamedTuple

from entaug.core.spacing import is_word_character
from entaug.core.words import stop_words

# Words that a change must not lose or add: negation turns the meaning round, and a pronoun changes who is spoken of.
_DECISIVE = {
    "en": frozenset(
        "not no never none nothing nobody neither nor without unless hardly n't cannot "
        "i you he she it we they me him her us them my mine your yours his hers its our ours their theirs one ones "
        "himself herself itself themselves myself yourself ourselves who whom whose".split()
    )
}
_SAME = {"n't": "not", "n’t": "not"}  # noqa: RUF001
_JOINING = frozenset("-/–—")  # noqa: RUF001
_MIN_STEM = 3  # letters, and a share of the longer word, that words of one stem begin with
_STEM_SHARE = 0.5
_MAX_ARTICLE = 3  # letters of stop words that stand for no other word: articles and prepositions


class Replacement(NamedTuple):
    """New words for the tokens ``[start, end)``; none are a deletion, and ``start == end`` is an insertion."""

    start: int
    end: int
    words: tuple[str, ...]


Change = tuple[Replacement, ...]
"""The replacements of a change, in order."""


class _Part(NamedTuple):
    """A difference, with whether it may be made, and the words that it removes and adds, without case."""

    replacement: Replacement
    is_possible: bool
    removed: Counter[str]
    added: Counter[str]


def independent_changes(
    tokens: Sequence[str], paraphrase: Sequence[str], kept: Collection[int], language: str | None
) -> list[Change]:
    """Find the changes of a paraphrase in the order of the sentence, whose positions of kept tokens are given."""
    # A word that is lost in one place and new in another has moved: both places are one change. Left out are changes
    # - that change or move kept tokens, names, figures or punctuation, or stand beside a hyphen;
    # - that move words and put others into their place;
    # - that only reorder, add or remove words, or only change the form of a word;
    # - that lose or add what is said: negation, pronouns, and words other than stop words for which no other stands.
    usual = stop_words(language)
    parts = list(_parts(tokens, paraphrase, frozenset(kept)))
    decisive = _DECISIVE.get(language or "", frozenset())
    changes = []
    for group in _linked(parts, usual):
        is_mixed = len(group) > 1 and any(part.removed and part.added for part in group)
        if is_mixed or not all(part.is_possible for part in group):
            continue
        removed = sum((part.removed for part in group), Counter[str]())
        added = sum((part.added for part in group), Counter[str]())
        if (
            _keeps_what_is_said(removed, added, usual, decisive)
            and _keeps_names(tokens, group)
            and _keeps_compounds(tokens, group)
        ):
            changes.append(tuple(part.replacement for part in group))
    return changes


def _parts(tokens: Sequence[str], paraphrase: Sequence[str], kept: frozenset[int]) -> Iterator[_Part]:
    for start, end, new_start, new_end in _differences([*map(_folded, tokens)], [*map(_folded, paraphrase)], kept):
        is_possible = kept.isdisjoint(range(start, end)) and not (start == end and {start - 1, start} <= kept)
        if start == 0 and (end == 0 or new_start == new_end):
            # The word behind takes part, as it may gain or lose the capital of the first word.
            is_possible = is_possible and end < len(tokens) and end not in kept
            end, new_end = end + 1, new_end + 1  # noqa: PLW2901
        words = paraphrase[new_start:new_end]
        if start == 0 and words:
            words = [_cased(words[0], tokens[0]), *words[1:]]
        removed, added = Counter(map(_folded, tokens[start:end])), Counter(map(_folded, words))
        yield _Part(Replacement(start, end, tuple(words)), is_possible, removed - added, added - removed)


def _differences(
    tokens: Sequence[str], paraphrase: Sequence[str], kept: frozenset[int]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the ranges of both sides that differ; kept tokens that the paraphrase has once are where they are there."""
    place = new_place = 0
    for start, end, new_start in [*_anchors(tokens, paraphrase, kept), (len(tokens), len(tokens), len(paraphrase))]:
        matcher = SequenceMatcher(None, tokens[place:start], paraphrase[new_place:new_start], autojunk=False)
        for operation, i, j, k, m in matcher.get_opcodes():
            if operation != "equal":
                yield place + i, place + j, new_place + k, new_place + m
        place, new_place = end, new_start + end - start


def _anchors(tokens: Sequence[str], paraphrase: Sequence[str], kept: frozenset[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the runs of kept tokens that stand once in a paraphrase, in order, with their places there."""
    least = 0
    for start in sorted(i for i in kept if i - 1 not in kept):
        end = next(i for i in range(start, len(tokens) + 1) if i not in kept)
        run = tokens[start:end]
        places = [i for i in range(len(paraphrase) - len(run) + 1) if paraphrase[i : i + len(run)] == run]
        if len(places) == 1 and places[0] >= least:
            yield start, end, places[0]
            least = places[0] + len(run)


def _linked(parts: Sequence[_Part], usual: Collection[str]) -> list[list[_Part]]:
    """Join the differences between which words have moved."""
    group_of = list(range(len(parts)))
    for (i, one), (j, other) in combinations(enumerate(parts), 2):
        if _has_moved_words(one.removed, other.added, usual) or _has_moved_words(other.removed, one.added, usual):
            new, old = group_of[i], group_of[j]
            group_of = [new if group == old else group for group in group_of]
    return [
        [part for part, of_part in zip(parts, group_of, strict=True) if of_part == group]
        for group in dict.fromkeys(group_of)
    ]


def _has_moved_words(removed: Collection[str], added: Collection[str], usual: Collection[str]) -> bool:
    lost = [word for word in removed if is_word_character(word[0]) and word not in usual]
    return any(_is_same_word(word, new) for word in lost for new in added)


def _is_same_word(one: str, other: str) -> bool:
    """Whether words are equal or seem to have a stem in common."""
    if one == other:
        return True
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return common >= max(_MIN_STEM, _STEM_SHARE * max(len(one), len(other)))


def _keeps_what_is_said(
    removed: Counter[str], added: Counter[str], usual: Collection[str], decisive: Collection[str]
) -> bool:
    if removed == added or not removed or not added:
        return False  # nothing but words in another order, added, or lost
    for kind in (lambda word: not _is_plain(word), decisive.__contains__):
        if sorted(filter(kind, removed.elements())) != sorted(filter(kind, added.elements())):
            return False
    lost, new = [*(removed - added).elements()], [*(added - removed).elements()]
    if len(lost) == len(new) == 1 and _is_same_word(lost[0], new[0]):
        return False  # another form or spelling
    return all(
        any(word not in usual or len(word) > _MAX_ARTICLE for word in others) or all(word in usual for word in some)
        for some, others in ((lost, new), (new, lost))
    )


def _keeps_names(tokens: Sequence[str], group: Sequence[_Part]) -> bool:
    """Whether words with capitals are the same, but for the first of the sentence, which may be any word."""
    before = Counter(tokens[i] for part in group for i in range(*part.replacement[:2]) if i)
    after = Counter(word for part in group for word in part.replacement.words[part.replacement.start == 0 :])
    return all(before[word] == after[word] for word in (*before, *after) if _has_capital(word))


def _keeps_compounds(tokens: Sequence[str], group: Sequence[_Part]) -> bool:
    """Whether nothing beside a hyphen or the like, which may be a part of a compound, is changed."""
    return all(
        _JOINING.isdisjoint((*tokens[max(0, start - 1) : start], *tokens[end : end + 1]))
        for start, end, _ in (part.replacement for part in group)
    )


def _folded(word: str) -> str:
    folded = word.casefold()
    return _SAME.get(folded, folded)


def _is_plain(word: str) -> bool:
    """Whether a token is an ordinary word, neither a figure nor punctuation."""
    return is_word_character(word[0]) and not any(map(str.isdigit, word))


def _has_capital(word: str) -> bool:
    return any(map(str.isupper, word))


def _cased(word: str, model: str) -> str:
    """The first word of a sentence in the case of another one."""
    if model[0].isupper():
        return word[0].upper() + word[1:]
    return word.lower() if model[0].islower() and not _has_capital(word[1:]) else word
