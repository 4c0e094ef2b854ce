"""What the training sentences tell about names: how they are written, and which words are none."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from entaug.core.data import Sentence, Span
from entaug.core.words import is_word

__all__ = ["HARDLY_ANY", "NOT_WORDS", "NameUsage", "has_capital", "has_letter", "is_beginning", "is_shouted"]

_SENTENCE_ENDS = frozenset(".!?…:;।。！？")  # noqa: RUF001
_OPENING = frozenset("\"'`“”‘’«»„([{-–—*•")  # noqa: RUF001
_CLOSING = frozenset("\"'”’»)]}")  # noqa: RUF001
NOT_WORDS = ("#", "@", "http", "www.")
"""The beginnings of tokens that are no words: hashtags, user names and addresses."""
_MOST = 0.75
_SOME = 0.1
HARDLY_ANY = 0.005
"""The share of words with a capital below which a corpus has no capitals."""
_ENOUGH = 4


class NameUsage:
    """Name usage in the training sentences."""

    # Tokens are compared as they are written, mentions without case. A word counts as ordinary if a training sentence
    # has it outside mentions.

    def __init__(self, gold: Sequence[Sentence], stop_words: frozenset[str] = frozenset()) -> None:
        self.stop_words = stop_words
        self._places: defaultdict[tuple[str, str], set[str]] = defaultdict(set)  # by label and word
        self._outside: Counter[str] = Counter()  # tokens outside mentions, as written
        self._outside_within: Counter[str] = Counter()  # ... those that do not begin a sentence
        self._inside_within: Counter[str] = Counter()
        self.vocabulary: set[str] = set()
        self._mentions: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self._as_written: set[tuple[str, ...]] = set()
        self._words: defaultdict[str, Counter[str]] = defaultdict(Counter)  # words of mentions, with their labels
        self._capitalised: defaultdict[str, Counter[bool]] = defaultdict(Counter)  # of mentions, by label
        self._edges: tuple[set[str], set[str]] = (set(), set())
        self.adjacent_labels: set[tuple[str, str]] = set()
        for sentence in gold:
            self._add(sentence)
        self.labels = sorted(self._capitalised)
        by_first: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
        for words in sorted(self._mentions):
            by_first[words[0]].append(words)
        self._by_first = dict(by_first)
        self._drop_ambiguous_mentions(gold)

    def _add(self, sentence: Sentence) -> None:
        tokens = sentence.tokens
        self.vocabulary.update(map(str.casefold, tokens))
        shouted = is_shouted(tokens)
        for i, (token, is_outside) in enumerate(zip(tokens, sentence.outside_mask(), strict=True)):
            is_within = not (shouted or is_beginning(tokens, i))
            if is_outside:
                self._outside[token] += 1
                self._outside_within[token] += is_within
            elif is_within:
                self._inside_within[token] += 1
        mentions = [mention for mention in sentence.mentions if mention.is_contiguous]
        for mention in mentions:
            words = tokens[mention.start : mention.end]
            folded = _folded(words)
            self._mentions[folded][mention.label] += 1
            self._as_written.add(words)
            self._edges[0].add(folded[0])
            self._edges[1].add(folded[-1])
            for i, word in enumerate(folded):
                self._words[word][mention.label] += 1
                self._places[mention.label, word].add(self._place(words, i))
            if not shouted and any(map(has_letter, words)):
                self._capitalised[mention.label][any(map(has_capital, words))] += 1
        for one, other in pairwise(mentions):
            if one.end == other.start:
                self.adjacent_labels.add((one.label, other.label))

    def _drop_ambiguous_mentions(self, gold: Sequence[Sentence]) -> None:
        """Forget mentions whose words are more often no mention, so that they need no label."""
        unlabelled: Counter[tuple[str, ...]] = Counter()
        for sentence in gold:
            spans = [(mention.start, mention.end) for mention in sentence.mentions]
            for start, end in self._occurrences(sentence.tokens):
                if not any(a <= start and end <= b for a, b in spans):
                    unlabelled[_folded(sentence.tokens[start:end])] += 1
        self._by_first = {
            first: [words for words in sequences if self._mentions[words].total() > unlabelled[words]]
            for first, sequences in self._by_first.items()
        }

    # ------------------------------------------------------------------------------------------------------- mentions

    def known_spans(self, tokens: Sequence[str]) -> Iterator[Span]:
        """Find known mentions in a text, overlapping ones included."""
        # A single word in another case than in the corpus counts only where the corpus does not have it as a word.
        for start, end in self._occurrences(tokens):
            words = tuple(tokens[start:end])
            if len(words) > 1 or words in self._as_written or not self.is_ordinary(words[0].lower()):
                yield start, end

    def _occurrences(self, tokens: Sequence[str]) -> Iterator[Span]:
        folded = _folded(tokens)
        for start, first in enumerate(folded):
            for words in self._by_first.get(first, ()):
                if folded[start : start + len(words)] == words:
                    yield start, start + len(words)

    def labels_of(self, words: Sequence[str]) -> Counter[str]:
        """Count the labels that the corpus gives to a mention."""
        return self._mentions.get(_folded(words), Counter())

    def may_stand(self, words: Sequence[str], i: int, label: str) -> bool:
        """Whether mentions of a type have a word in the same place: alone, last in a phrase, before a mark, within."""
        folded = _folded(words)
        return self._place(folded, i) in self._places.get((label, folded[i]), ())

    def _place(self, words: Sequence[str], i: int) -> str:
        if not any(any(map(str.isalnum, word)) for n, word in enumerate(words) if n != i):
            return "alone"
        after = words[i + 1] if i + 1 < len(words) else ""
        is_later = "" if self.stop_words.isdisjoint(words[:i]) else "later "  # in "University of Rome" a name, no head
        if not after or after in self.stop_words:
            return f"{is_later}last"
        return is_later + ("within" if is_word(after, hyphens=True) else after)

    def is_shared(self, word: str, label: str) -> bool:
        """Whether several mentions of a type have a word, so that it tells the type more than the single name."""
        return self._mentions_with[label, word.casefold()] > 1

    @cached_property
    def _mentions_with(self) -> Counter[tuple[str, str]]:
        return Counter(
            (label, word) for words, labels in self._mentions.items() for label in labels for word in {*words}
        )

    def is_two_names(self, words: Sequence[str], label: str) -> bool:
        """Whether words are two known mentions one after the other, which no mentions of the type are."""
        return label not in self._joined_labels and self._is_joined(words)

    def _is_joined(self, words: Sequence[str]) -> bool:
        folded = _folded(words)
        return any(folded[:i] in self._mentions and folded[i:] in self._mentions for i in range(1, len(folded)))

    @cached_property
    def _joined_labels(self) -> set[str]:
        """Types of which some mentions consist of two others, as first and last names of persons do."""
        counts: defaultdict[str, Counter[bool]] = defaultdict(Counter)
        for words, labels in self._mentions.items():
            if len(words) > 1:
                is_joined = self._is_joined(words)
                for label in labels:
                    counts[label][is_joined] += 1
        return {label for label, count in counts.items() if count[True] > _SOME * count.total()}

    def word_labels(self, word: str) -> Counter[str]:
        """Count the labels of the mentions in which a word occurs."""
        return self._words.get(word.casefold(), Counter())

    def may_begin(self, word: str) -> bool:
        """Whether a mention of the corpus begins with a word."""
        return word.casefold() in self._edges[0]

    def may_end(self, word: str) -> bool:
        """Whether a mention of the corpus ends with a word."""
        return word.casefold() in self._edges[1]

    def capitalisation(self, label: str) -> bool | None:
        """Capitalisation of the mentions of a label."""
        counts = self._capitalised.get(label, Counter())
        total = counts.total()
        if total < _ENOUGH:
            return None
        share = counts[True] / total
        return True if share > 0.9 else False if share < 0.1 else None

    @cached_property
    def writes_names_with_capital(self) -> bool:
        """Whether most mentions have a capital."""
        counts = sum(self._capitalised.values(), Counter[bool]())
        return counts[True] >= _MOST * counts.total() > 0

    @cached_property
    def lists_tell_names(self) -> bool:
        """Whether a word that usually has a capital is a name: where mentions have one, or where nothing has."""
        return self.writes_names_with_capital or not self.has_capitals

    # ---------------------------------------------------------------------------------------------------------- words

    def capitalised_words(self) -> Iterator[tuple[str, bool]]:
        """Iterate over the words with a capital within a sentence."""
        for word in sorted({*self._inside_within, *self._outside_within}):
            inside, outside = self._inside_within[word], self._outside_within[word]
            if has_capital(word) and inside + outside and not word.startswith(NOT_WORDS):
                yield word, inside > outside

    def is_ordinary(self, token: str) -> bool:
        """Whether the corpus has a token outside mentions, as it is written."""
        return token in self._outside

    def usual_case(self, word: str) -> str | None:
        """Return a word as the corpus mostly writes it within a sentence."""
        return self._cases.get(word.casefold())

    @cached_property
    def has_capitals(self) -> bool:
        """Whether the corpus uses capitals at all: not if it is in lower case, or in a script without case."""
        cased = Counter({word: n for word, n in (self._outside + self._inside_within).items() if has_letter(word)})
        capitals = sum(n for word, n in cased.items() if has_capital(word))
        return capitals >= HARDLY_ANY * cased.total() > 0

    @cached_property
    def _cases(self) -> dict[str, str]:
        counts = self._outside_within + self._inside_within
        cases: dict[str, str] = {}
        for word in sorted(counts, key=lambda w: (counts[w], w)):  # the most frequent form last
            cases[word.casefold()] = word
        return cases

    def has_telling_capital(self, tokens: Sequence[str], i: int) -> bool:
        """Whether a token has a capital that is due neither to its position nor to the corpus' use of the word."""
        # Only the first letter has a capital due to its position: "PETA" tells something anywhere.
        token = tokens[i]
        return (
            has_capital(token)
            and len(token) > 1
            and not token.startswith(NOT_WORDS)
            and not self.is_ordinary(token)
            and (has_capital(token[1:]) or not is_beginning(tokens, i))
        )


def has_capital(token: str) -> bool:
    """Whether a token has a capital letter."""
    return token != token.lower()


def has_letter(token: str) -> bool:
    """Whether a token has a letter of a script with capitals."""
    return token.lower() != token.upper()


def is_beginning(tokens: Sequence[str], i: int) -> bool:
    """Whether a token begins a sentence, a quotation or a title, where any word may have a capital."""
    if not any(any(map(str.isalnum, token)) for token in tokens[:i]):
        return True
    before = tokens[i - 1]
    return (
        before in _OPENING
        or _SENTENCE_ENDS.issuperset(before)
        or before.startswith(NOT_WORDS)
        or (before in _CLOSING and is_beginning(tokens, i - 1))
    )


def is_shouted(tokens: Iterable[str]) -> bool:
    """Whether most words of a sentence are in capitals, as in headlines, so that capitals tell nothing."""
    words = [token for token in tokens if len(token) > 1 and has_letter(token)]
    return len(words) > 1 and 2 * sum(word.isupper() for word in words) > len(words)


def _folded(tokens: Iterable[str]) -> tuple[str, ...]:
    return tuple([token.casefold() for token in tokens])
