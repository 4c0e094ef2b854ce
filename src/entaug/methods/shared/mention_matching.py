"""Matching of mentions in generated text: locating the mentions that a text was generated from.

"EnTDA: Entity-to-Text based Data Augmentation" (Hu et al. 2023), section 4.3: mentions are found by exact match;
overlapping mentions are matched together; the parts of a discontinuous mention are matched in order. In cases that the
paper does not specify, no label is guessed: tokens are matched, each occurrence is used once, and ambiguous texts are
rejected.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.mentions import Mention, Span

MISSING = "a listed mention is missing"
AMBIGUOUS = "the match of a listed mention is ambiguous"
UNLISTED = "a known mention that is not in the list"

_SENTENCE_ENDS = frozenset(".!?…")


class MentionGroup(NamedTuple):
    """Mentions that overlap each other, or a single one."""

    fragments: tuple[tuple[str, ...], ...]
    mentions: tuple[tuple[str, tuple[Span, ...]], ...]

    @property
    def label(self) -> str:
        """The label of the mention that covers most tokens; the first of several."""
        return max(self.mentions, key=lambda mention: sum(end - start for start, end in mention[1]))[0]

    def mention_parts(self, index: int) -> tuple[tuple[str, ...], ...]:
        """Return the tokens of each part of a mention."""
        tokens = [token for fragment in self.fragments for token in fragment]
        return tuple(tuple(tokens[start:end]) for start, end in self.mentions[index][1])


def group_mentions(sentence: Sentence) -> list[MentionGroup]:
    """Group the mentions of a sentence so that overlapping ones are together."""
    groups: list[tuple[set[int], list[Mention]]] = []
    for mention in sentence.mentions:
        covered, members = set(mention.positions()), [mention]
        disjoint = []
        for group in groups:
            if group[0].isdisjoint(covered):
                disjoint.append(group)
            else:
                covered |= group[0]
                members = [*group[1], *members]
        groups = [*disjoint, (covered, members)]
    return [_group(sentence, sorted(covered), members) for covered, members in sorted(groups, key=lambda g: min(g[0]))]


def _group(sentence: Sentence, covered: list[int], members: list[Mention]) -> MentionGroup:
    offsets = {position: i for i, position in enumerate(covered)}
    # Neighbouring positions have the same difference to their offsets.
    runs = groupby(covered, key=lambda position: position - offsets[position])
    fragments = tuple(tuple(sentence.tokens[position] for position in run) for _, run in runs)
    mentions = [(m.label, tuple((offsets[start], offsets[end - 1] + 1) for start, end in m.spans)) for m in members]
    return MentionGroup(fragments, tuple(sorted(mentions, key=lambda m: (m[1][0][0], -m[1][-1][1], m[0]))))


class KnownMentions:
    """The mentions of a corpus, which must not occur without a label in generated text."""

    # Token sequences that occur more often outside mentions than as a mention are left out. At the beginning of a
    # sentence a word may be capitalised.

    def __init__(self, corpus: Iterable[Sentence]) -> None:
        gold = list(corpus)
        as_mention: Counter[tuple[str, ...]] = Counter()
        self._labels: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for sentence in gold:
            for mention in sentence.mentions:
                if mention.is_contiguous:
                    tokens = sentence.tokens[mention.start : mention.end]
                    as_mention[tokens] += 1
                    self._labels[tokens].add(mention.label)
        self._by_first = _by_first_token(as_mention)
        outside: Counter[tuple[str, ...]] = Counter()
        for sentence in gold:
            covered = [set(mention.positions()) for mention in sentence.mentions]
            for start, end, tokens in self._occurrences(sentence.tokens):
                if not any(positions.issuperset(range(start, end)) for positions in covered):
                    outside[tokens] += 1
        self._by_first = _by_first_token(tokens for tokens, count in as_mention.items() if count >= outside[tokens])

    def label(self, tokens: tuple[str, ...]) -> str | None:
        """Return the label of a mention."""
        labels = self._labels.get(tokens) or self._labels.get(_uncapitalised(tokens), set())
        return next(iter(labels)) if len(labels) == 1 else None

    def texts(self) -> list[str]:
        """Return all mentions as running text."""
        texts = {detokenize(tokens) for sequences in self._by_first.values() for tokens in sequences}
        return sorted(texts | {text[:1].upper() + text[1:] for text in texts})

    def find(self, tokens: Sequence[str]) -> Iterator[Span]:
        """Find all occurrences in a text, overlapping ones included."""
        for start, end, _ in self._occurrences(tokens):
            yield start, end

    def _occurrences(self, tokens: Sequence[str]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        for start, token in enumerate(tokens):
            for known in self._by_first.get(token, ()):
                if tuple(tokens[start : start + len(known)]) == known:
                    yield start, start + len(known), known
            if not start or _SENTENCE_ENDS.issuperset(tokens[start - 1]):
                first = _uncapitalised((token,))[0]
                for known in self._by_first.get(first, ()) if first != token else ():
                    if (first, *tokens[start + 1 : start + len(known)]) == known:
                        yield start, start + len(known), known


def _uncapitalised(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return (tokens[0][:1].lower() + tokens[0][1:], *tokens[1:])


def _by_first_token(sequences: Iterable[tuple[str, ...]]) -> dict[str, list[tuple[str, ...]]]:
    by_first: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for tokens in sequences:
        by_first[tokens[0]].append(tokens)
    return dict(by_first)


def match_mentions(
    tokens: Sequence[str], listed: Sequence[MentionGroup], known: KnownMentions | None = None, *, label: bool = False
) -> list[Mention] | str:
    """Find the listed mentions in a text that was generated from them."""
    # At the beginning of a sentence a word may be capitalised.
    for group in listed:
        if len({other.mentions for other in listed if other.fragments == group.fragments}) > 1:
            return AMBIGUOUS  # the same words with different mentions
    used: set[int] = set()
    matches: list[list[int]] = [[] for _ in listed]
    # The longest first, so that no part of it is used for another mention; ties in the order of the list.
    for i in sorted(range(len(listed)), key=lambda i: (-sum(map(len, listed[i].fragments)), i)):
        positions = _first_occurrence(tokens, listed[i].fragments, used)
        if positions is None:
            return MISSING
        matches[i] = positions
        used.update(positions)
    if not _is_unambiguous(tokens, listed, matches):
        return AMBIGUOUS
    unlisted = _label_unlisted(tokens, matches, used, known, label=label) if known else []
    if unlisted is None:
        return UNLISTED
    return unlisted + [
        Mention(name, _merge_adjacent((positions[a], positions[b - 1] + 1) for a, b in spans))
        for group, positions in zip(listed, matches, strict=True)
        for name, spans in group.mentions
    ]


def _label_unlisted(
    tokens: Sequence[str], matches: Sequence[list[int]], used: set[int], known: KnownMentions, *, label: bool
) -> list[Mention] | None:
    """Label known mentions that are not listed, the longest first; return None if one must not be labelled."""
    covered = [set(positions) for positions in matches]
    mentions: list[Mention] = []
    for start, end in sorted(known.find(tokens), key=lambda span: (span[0] - span[1], span[0])):
        positions = range(start, end)
        if any(other.issuperset(positions) for other in covered):
            continue
        name = known.label(tuple(tokens[start:end])) if label else None
        if name is None or not used.isdisjoint(positions):
            return None
        mentions.append(Mention(name, ((start, end),)))
        covered.append(set(positions))
        used.update(positions)
    return mentions


def _is_unambiguous(tokens: Sequence[str], listed: Sequence[MentionGroup], matches: Sequence[list[int]]) -> bool:
    """Whether no listed fragment occurs outside its match, except inside a longer match."""
    own: set[tuple[tuple[str, ...], int]] = set()
    ranges: list[range] = []
    for group, positions in zip(listed, matches, strict=True):
        offset = 0
        for fragment in group.fragments:
            start = positions[offset]
            own.add((fragment, start))
            ranges.append(range(start, start + len(fragment)))
            offset += len(fragment)
    fragments = {fragment for group in listed for fragment in group.fragments}
    for fragment in fragments:
        # For example "pain" of the discontinuous mentions "arm ... pain" and "leg ... pain" is ambiguous.
        holders = {group.fragments for group in listed if fragment in group.fragments}
        if len(holders) > 1 and any(len(parts) > 1 for parts in holders):
            return False
        for start in _starts(tokens, fragment):
            end = start + len(fragment)
            inside = any(r.start <= start and end <= r.stop and len(r) > len(fragment) for r in ranges)
            other = tuple(tokens[start:end]) != fragment and tuple(tokens[start:end]) in fragments
            if not inside and (other or (fragment, start) not in own):
                return False
    return True


def _first_occurrence(tokens: Sequence[str], fragments: Sequence[tuple[str, ...]], used: set[int]) -> list[int] | None:
    """Return the positions of the first occurrence of fragments in order, without used tokens."""
    positions: list[int] = []
    for fragment in fragments:
        minimum = positions[-1] + 1 if positions else 0
        for start in _starts(tokens, fragment):
            if start >= minimum and used.isdisjoint(range(start, start + len(fragment))):
                positions += range(start, start + len(fragment))
                break
        else:
            return None
    return positions


def _starts(tokens: Sequence[str], fragment: tuple[str, ...]) -> Iterator[int]:
    """Yield the positions of a fragment; at the beginning of a sentence it may be capitalised."""
    capitalised = fragment[0][:1].upper() + fragment[0][1:]
    for start in range(len(tokens) - len(fragment) + 1):
        if tuple(tokens[start + 1 : start + len(fragment)]) == fragment[1:] and (
            tokens[start] == fragment[0]
            or (tokens[start] == capitalised and (not start or _SENTENCE_ENDS.issuperset(tokens[start - 1])))
        ):
            yield start


def _merge_adjacent(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Merge adjacent ranges."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and merged[-1][1] == start:
            merged[-1] = merged[-1][0], end
        else:
            merged.append((start, end))
    return tuple(merged)
