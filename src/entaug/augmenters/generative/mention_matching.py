"""Mentions listed and found again: what a list of mentions needs to be marked in a text that was written from it.

"EnTDA: Entity-to-Text based Data Augmentation" (Hu et al. 2023), section 4.3: mentions are found by exact match; those
that overlap are kept and matched together; the parts of a discontinuous one are matched in order. What the paper leaves
open is settled so that no label is ever guessed: matching is on tokens, each occurrence serves once, and a text is
refused in which it is not clear what is meant.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from entaug.alignment import detokenize
from entaug.data import Mention, Sentence, Span

__all__ = ["AMBIGUOUS", "MISSING", "UNLISTED", "Nest", "Surfaces", "mark", "nests"]

MISSING = "a listed mention is missing"
AMBIGUOUS = "it is not clear which words a listed mention is"
UNLISTED = "a known mention that was not listed"

_ENDS = frozenset(".!?…")


class Nest(NamedTuple):
    """Mentions that overlap each other, or one alone.

    Args:
        fragments: the runs of tokens they cover, in order.
        mentions: each its label and its ranges of tokens, counted over the fragments laid end to end.
    """

    fragments: tuple[tuple[str, ...], ...]
    mentions: tuple[tuple[str, tuple[Span, ...]], ...]

    @property
    def label(self) -> str:
        """The label of the mention that covers most; of equals the first."""
        return max(self.mentions, key=lambda mention: sum(end - start for start, end in mention[1]))[0]

    def words(self, number: int) -> tuple[tuple[str, ...], ...]:
        """The parts of a mention."""
        tokens = [token for fragment in self.fragments for token in fragment]
        return tuple(tuple(tokens[start:end]) for start, end in self.mentions[number][1])


def nests(sentence: Sentence) -> list[Nest]:
    """The mentions of a sentence, those that overlap together, in order.

    Example:
        >>> s = Sentence("the Oslo port burns".split(), [Mention("FAC", [(0, 3)]), Mention("LOC", [(1, 2)])])
        >>> nests(s)
        [Nest(fragments=(('the', 'Oslo', 'port'),), mentions=(('FAC', ((0, 3),)), ('LOC', ((1, 2),))))]
    """
    groups: list[tuple[set[int], list[Mention]]] = []
    for mention in sentence.mentions:
        covered, members = set(mention.positions()), [mention]
        apart = []
        for group in groups:
            if group[0].isdisjoint(covered):
                apart.append(group)
            else:
                covered |= group[0]
                members = [*group[1], *members]
        groups = [*apart, (covered, members)]
    return [_nest(sentence, sorted(covered), members) for covered, members in sorted(groups, key=lambda g: min(g[0]))]


def _nest(sentence: Sentence, covered: list[int], members: list[Mention]) -> Nest:
    place = {position: i for i, position in enumerate(covered)}
    fragments: list[list[str]] = []
    for i, position in enumerate(covered):
        if not i or covered[i - 1] != position - 1:
            fragments.append([])
        fragments[-1].append(sentence.tokens[position])
    mentions = [(m.label, tuple((place[start], place[end - 1] + 1) for start, end in m.spans)) for m in members]
    return Nest(tuple(map(tuple, fragments)), tuple(sorted(mentions, key=lambda m: (m[1][0][0], -m[1][-1][1], m[0]))))


class Surfaces:
    """The mentions of a corpus as they are written: what may not stand unmarked in a text made from it.

    Words that the corpus has more often outside of all mentions than as one are not counted. At the beginning of a
    sentence a word may have a capital that it has not here.

    Args:
        corpus: sentences.
    """

    def __init__(self, corpus: Iterable[Sentence]) -> None:
        gold = list(corpus)
        labelled: Counter[tuple[str, ...]] = Counter()
        self._labels: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for sentence in gold:
            for mention in sentence.mentions:
                if mention.is_contiguous:
                    words = sentence.tokens[mention.start : mention.end]
                    labelled[words] += 1
                    self._labels[words].add(mention.label)
        self._by_first = _by_first(labelled)
        outside: Counter[tuple[str, ...]] = Counter()
        for sentence in gold:
            marked = [set(mention.positions()) for mention in sentence.mentions]
            for start, end, words in self._occurrences(sentence.tokens):
                if not any(positions.issuperset(range(start, end)) for positions in marked):
                    outside[words] += 1
        self._by_first = _by_first(words for words, count in labelled.items() if count >= outside[words])

    def label(self, words: tuple[str, ...]) -> str | None:
        """The label that the corpus has them with, if it is always the same."""
        labels = self._labels.get(words) or self._labels.get(_small(words), set())
        return next(iter(labels)) if len(labels) == 1 else None

    def texts(self) -> list[str]:
        """All of them as running text, with the capital of a beginning too, in a fixed order."""
        texts = {detokenize(words) for some in self._by_first.values() for words in some}
        return sorted(texts | {text[:1].upper() + text[1:] for text in texts})

    def within(self, tokens: Sequence[str]) -> Iterator[Span]:
        """Where they occur, overlapping ones included."""
        for start, end, _ in self._occurrences(tokens):
            yield start, end

    def _occurrences(self, tokens: Sequence[str]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        for start, token in enumerate(tokens):
            for words in self._by_first.get(token, ()):
                if tuple(tokens[start : start + len(words)]) == words:
                    yield start, start + len(words), words
            if not start or _ENDS.issuperset(tokens[start - 1]):
                first = _small((token,))[0]
                for words in self._by_first.get(first, ()) if first != token else ():
                    if (first, *tokens[start + 1 : start + len(words)]) == words:
                        yield start, start + len(words), words


def _small(words: tuple[str, ...]) -> tuple[str, ...]:
    """Words without the capital of a beginning."""
    return (words[0][:1].lower() + words[0][1:], *words[1:])


def _by_first(surfaces: Iterable[tuple[str, ...]]) -> dict[str, list[tuple[str, ...]]]:
    found: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for words in surfaces:
        found[words[0]].append(words)
    return dict(found)


def mark(
    tokens: Sequence[str], listed: Sequence[Nest], known: Surfaces | None = None, *, label: bool = False
) -> list[Mention] | str:
    """The mentions of a text that was written from a list of them, or why they cannot be told.

    A word that begins a sentence may have a capital that it has not in the list.

    Args:
        tokens: the text.
        listed: what it was written from.
        known: mentions of the corpus, none of which may occur beside those listed; None to let them be.
        label: whether those that do are mentions too, where the corpus always has them with the same label and they
            overlap no other; of those that overlap each other the longest.

    Returns:
        The mentions; or `MISSING`, `AMBIGUOUS` or `UNLISTED`.

    Example:
        >>> ana, rome = Nest((("Ana",),), (("PER", ((0, 1),)),)), Nest((("Rome",),), (("LOC", ((0, 1),)),))
        >>> mark("Rome likes Ana".split(), [ana, rome])
        [Mention(label='PER', spans=((2, 3),)), Mention(label='LOC', spans=((0, 1),))]
        >>> mark("Rome likes Ana 's Rome".split(), [ana, rome])
        'it is not clear which words a listed mention is'
    """
    taken: set[int] = set()
    found: list[list[int] | None] = [None] * len(listed)
    for nest in listed:
        if len({other.mentions for other in listed if other.fragments == nest.fragments}) > 1:
            return AMBIGUOUS  # the same words, meant in two ways
    # The longest first, so that no part of it is taken for another; of equals in the order of the list.
    order = sorted(range(len(listed)), key=lambda i: (-sum(map(len, listed[i].fragments)), i))
    for i in order:
        positions = _occurrence(tokens, listed[i].fragments, taken)
        if positions is None:
            return MISSING
        found[i] = positions
        taken.update(positions)
    if not _is_clear(tokens, listed, [positions or [] for positions in found]):
        return AMBIGUOUS
    whole = [set(positions) for positions in found if positions]
    unlisted: list[Mention] = []
    occurring = sorted(known.within(tokens), key=lambda span: (span[0] - span[1], span[0])) if known else []
    for start, end in occurring:
        here = range(start, end)
        if any(positions.issuperset(here) for positions in whole):
            continue
        name = known.label(tuple(tokens[start:end])) if known and label else None
        if name is None or not taken.isdisjoint(here):
            return UNLISTED
        unlisted.append(Mention(name, ((start, end),)))
        whole.append(set(here))
        taken.update(here)
    return unlisted + [
        Mention(label, _joined((positions[a], positions[b - 1] + 1) for a, b in spans))
        for nest, positions in zip(listed, found, strict=True)
        if positions
        for label, spans in nest.mentions
    ]


def _is_clear(tokens: Sequence[str], listed: Sequence[Nest], found: Sequence[list[int]]) -> bool:
    """Whether all that is listed stands nowhere but where it was found, or inside of something longer that was."""
    own: set[tuple[tuple[str, ...], int]] = set()
    ranges: list[range] = []
    for nest, positions in zip(listed, found, strict=True):
        at = 0
        for fragment in nest.fragments:
            own.add((fragment, positions[at]))
            ranges.append(range(positions[at], positions[at] + len(fragment)))
            at += len(fragment)
    fragments = {fragment for nest in listed for fragment in nest.fragments}
    for fragment in fragments:
        # Which "pain" is that of the arm and which that of the leg, nobody can say.
        holders = {nest.fragments for nest in listed if fragment in nest.fragments}
        if len(holders) > 1 and any(len(parts) > 1 for parts in holders):
            return False
        for start in _starts(tokens, fragment):
            end = start + len(fragment)
            inside = any(r.start <= start and end <= r.stop and len(r) > len(fragment) for r in ranges)
            other = tuple(tokens[start:end]) != fragment and tuple(tokens[start:end]) in fragments
            if not inside and (other or (fragment, start) not in own):
                return False
    return True


def _occurrence(tokens: Sequence[str], fragments: Sequence[tuple[str, ...]], taken: set[int]) -> list[int] | None:
    """The positions of the first occurrence of some fragments in order, on tokens that are not taken."""
    positions: list[int] = []
    for fragment in fragments:
        begin = positions[-1] + 1 if positions else 0
        for start in _starts(tokens, fragment):
            if start >= begin and taken.isdisjoint(range(start, start + len(fragment))):
                positions += range(start, start + len(fragment))
                break
        else:
            return None
    return positions


def _starts(tokens: Sequence[str], words: tuple[str, ...]) -> Iterator[int]:
    """Where words occur; where they begin a sentence, with a capital too."""
    capital = words[0][:1].upper() + words[0][1:]
    for start in range(len(tokens) - len(words) + 1):
        if tuple(tokens[start + 1 : start + len(words)]) == words[1:] and (
            tokens[start] == words[0]
            or (tokens[start] == capital and (not start or _ENDS.issuperset(tokens[start - 1])))
        ):
            yield start


def _joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Ranges of the text; what came to stand side by side is one."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return tuple(joined)
