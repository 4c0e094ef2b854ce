"""Phrases that are looked up in text, and the mentions of a corpus as such phrases."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from entaug.core.data import Sentence
from entaug.core.mentions import Span


class Phrases:
    """A set of phrases, which are tuples of tokens, and where they stand in a text."""

    def __init__(self, phrases: Iterable[tuple[str, ...]]) -> None:
        self._phrases = frozenset(phrases)
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for phrase in self._phrases:
            lengths[phrase[0]].add(len(phrase))
        self._lengths = {first: sorted(numbers) for first, numbers in lengths.items()}

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(sorted(self._phrases))

    def find(self, tokens: Sequence[str]) -> Iterator[Span]:
        """Yield the places of all phrases in a text, overlapping ones included."""
        for start in range(len(tokens)):
            for end in self.ends(tokens, start):
                yield start, end

    def ends(self, tokens: Sequence[str], start: int) -> Iterator[int]:
        """Yield where the phrases end that begin at a place, the shortest first."""
        for length in self._lengths.get(tokens[start], ()):
            end = start + length
            if end <= len(tokens) and tuple(tokens[start:end]) in self._phrases:
                yield end


def known_mentions(corpus: Iterable[Sentence], fold: Callable[[str], str] = str) -> Phrases:
    """Return the contiguous mentions whose words a corpus labels at most of their places."""
    sentences = list(corpus)
    labelled = Counter(
        tuple(map(fold, sentence.mention_tokens(mention)))
        for sentence in sentences
        for mention in sentence.mentions
        if mention.is_contiguous
    )
    phrases, unlabelled = Phrases(labelled), Counter[tuple[str, ...]]()
    for sentence in sentences:
        tokens = tuple(map(fold, sentence.tokens))
        unlabelled.update(tokens[start:end] for start, end in unlabelled_places(sentence, phrases.find(tokens)))
    return Phrases(words for words, count in labelled.items() if count > unlabelled[words])


def unlabelled_places(sentence: Sentence, places: Iterable[Span]) -> Iterator[Span]:
    """Yield the places that are not within a mention."""
    covered = [set(mention.positions()) for mention in sentence.mentions]
    for start, end in places:
        if not any(positions.issuperset(range(start, end)) for positions in covered):
            yield start, end
