"""Mentions from lists of the user, in the form that a corpus writes: its tokens, its capitals, one article."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from entaug.core.alignment import CorpusTokenizer, align_spaces
from entaug.core.data import Mention, Sentence
from entaug.core.spacing import PRINTED_FORMS, is_unspaced_script
from entaug.files.mention_lists import MentionList
from entaug.methods.shared.capitals import CorpusCapitals, Style, match_casing, style_of
from entaug.methods.shared.mention_donors import content_key
from entaug.methods.shared.mention_shapes import ARTICLE_FAMILIES, ARTICLES

__all__ = ["Donor", "ListCoverage", "ListDonors", "mention_keys"]

_DRAWS = 5  # until an entry differs from the mention that it replaces
# Articles that are not also the beginning of a name in other languages, such as IL-2, LA and El.
_CLEAR_ARTICLES = frozenset(("the", "der", "die", "das", "den", "dem", "het", "les", "los", "las"))
_BRACKETS = {PRINTED_FORMS[token]: token for token in PRINTED_FORMS if token.startswith("-")}
_CHARACTERS = re.compile(
    r"[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\u3005-\u9fff\uf900-\ufaff]+"
)


@dataclass(frozen=True)
class ListCoverage:
    """Overlap of a list with the mentions of the training sentences."""

    name: str
    label: str
    entries: int
    new: int
    held_out: int
    mentions: int
    covered: int
    distinct: int
    covered_distinct: int

    def __str__(self) -> str:
        """Return the counts in words."""
        share = self.covered / self.mentions if self.mentions else 0.0
        text = f"{self.name} covers {self.covered:,} of {self.mentions:,} gold mentions of {self.label} ({share:.0%}"
        text = text.replace("%", " %") + f"; {self.covered_distinct:,} of {self.distinct:,} distinct ones)"
        left_out = f", {self.held_out:,} are held-out mentions and left out" if self.held_out else ""
        return f"{text}; {self.new:,} of its {self.entries:,} entries are new{left_out}"


class Donor(NamedTuple):
    """A mention of a list as it is inserted."""

    words: tuple[str, ...]
    spaces: tuple[str, ...] | None
    name: str
    entry: str


class _Pool(NamedTuple):
    """The entries of one label, sorted: texts, and for each the number of its list."""

    texts: list[str]
    origins: list[int]


class ListDonors:
    """The entries of lists as donors of mentions; entries are tokenised when they are drawn."""

    def __init__(self, lists: Sequence[MentionList], held_out: Iterable[str] = ()) -> None:
        self.coverage: list[ListCoverage] = []
        self._lists = list(lists)
        self._held_out = frozenset(held_out)
        self._capitals = CorpusCapitals()
        self._gold: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._unspaced: Counter[bool] = Counter()  # tokens in scripts without spaces, by whether they are characters
        self._stops: Counter[bool] = Counter()  # full stops in mentions, by whether they are part of a word
        self._pools: dict[str, _Pool] = {}
        self._prepared: dict[tuple[str, int], Donor] = {}

    # ------------------------------------------------------------------------------------------------------------- fit

    def observe(self, corpus: Iterable[Sentence]) -> Iterator[Sentence]:
        """Learn the form of mentions from sentences that pass by."""
        for sentence in corpus:
            self._capitals.add(sentence)
            for mention in sentence.mentions:
                self._gold[mention.label][_key_of(sentence, mention)] += 1
                words = sentence.mention_tokens(mention)
                self._stops.update(len(word) > 1 for word in words if word[-1] == ".")
            self._unspaced.update(len(token) == 1 for token in sentence.tokens if is_unspaced_script(token))
            yield sentence

    def fit(self, corpus: Iterable[Sentence]) -> None:
        """Learn the tokenisation of a corpus, and select the entries that can be inserted."""
        self._tokenizer = CorpusTokenizer(sentence.tokens for sentence in corpus)
        self._by_character = self._unspaced[True] > 9 * self._unspaced[False]
        self._brackets = {
            plain: token for plain, token in _BRACKETS.items() if self._tokenizer.is_known(token) and plain != token
        }
        for one in self._lists:
            one.check_labels(self._gold)
        self._styles: list[dict[str, Style]] = [
            {label: style_of(texts) for label, texts in one.texts.items()} for one in self._lists
        ]
        for label in sorted({label for one in self._lists for label in one.texts}):
            self._pools[label] = self._select(label)

    def _select(self, label: str) -> _Pool:
        """The entries of a label that can be inserted; counts the others."""
        gold = self._gold[label]
        seen: set[str] = set()
        chosen: list[tuple[str, int]] = []
        for number, one in enumerate(self._lists):
            if label not in one.texts:
                continue
            # Where the corpus decides on capitals, entries that differ in nothing else are one.
            ignores_case = self._capitals.whole != "mixed" or self._styles[number][label] != "mixed"
            keys = list(map(mention_key, one.texts[label]))
            held_out, before = 0, len(chosen)
            for text, key in zip(one.texts[label], keys, strict=True):
                if key in gold:
                    continue
                if key in self._held_out:
                    held_out += 1
                    continue
                content = text.casefold() if ignores_case else text
                if content not in seen:
                    seen.add(content)
                    chosen.append((text, number))
            entries = set(keys)
            covered = [count for key, count in gold.items() if key in entries]
            self.coverage.append(
                ListCoverage(
                    one.name,
                    label,
                    entries=len(keys),
                    new=len(chosen) - before,
                    held_out=held_out,
                    mentions=gold.total(),
                    covered=sum(covered),
                    distinct=len(gold),
                    covered_distinct=len(covered),
                )
            )
        if len(self._lists) > 1:
            chosen.sort()
        return _Pool([text for text, _ in chosen], [number for _, number in chosen])

    def size(self, label: str) -> int:
        """The number of entries that can be inserted for a label."""
        return len(self._pools[label].texts) if label in self._pools else 0

    # ----------------------------------------------------------------------------------------------------------- draws

    def draw(self, sentence: Sentence, mention: Mention, rng: Random, avoided: Collection[str] = ()) -> Donor | None:
        """Draw an entry for a mention, uniformly from all entries with its label."""
        texts = self._pools[mention.label].texts
        own = sentence.mention_tokens(mention)
        for _ in range(_DRAWS):
            number = int(rng.random() * len(texts))
            donor = self._prepared.get((mention.label, number)) or self._prepare(mention.label, number)
            donor = _without_second_article(donor, sentence.tokens[mention.start - 1] if mention.start else "")
            donor = donor._replace(words=match_casing(donor.words, sentence.tokens, mention.start, mention.end))
            if donor.words != own and not (avoided and content_key(donor.words) in avoided):
                return donor
        return None

    def _prepare(self, label: str, number: int) -> Donor:
        """An entry in the tokens and capitals of the corpus."""
        pool = self._pools[label]
        entry, origin = pool.texts[number], pool.origins[number]
        text = self._capitals.adapt(entry, self._styles[origin][label], label)
        tokens = self._tokenizer(text)
        if "." in tokens and self._stops[True] >= self._stops[False]:
            tokens = _with_full_stops(tokens, text)
        if self._by_character:
            tokens = [part for token in tokens for part in _CHARACTERS.findall(token)]
        spaces = align_spaces(tokens, text)
        words = tuple([self._brackets.get(token, token) for token in tokens])
        donor = Donor(words, None if spaces is None else spaces[:-1], self._lists[origin].name, entry)
        self._prepared[label, number] = donor
        return donor


def _with_full_stops(tokens: Sequence[str], text: str) -> list[str]:
    """Tokens with full stops as parts of abbreviations, where no white space is between: a name ends no sentence."""
    spaces = align_spaces(tokens, text)
    joined: list[str] = []
    for i, word in enumerate(tokens):
        if word == "." and joined and spaces is not None and not spaces[i - 1] and joined[-1][-1].isalpha():
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _without_second_article(donor: Donor, before: str) -> Donor:
    """A donor without its article if the sentence has one before it."""
    if len(donor.words) < 2:
        return donor
    own, other = donor.words[0].casefold(), before.casefold()
    if other not in ARTICLES or not any(own in family and other in family for family in ARTICLE_FAMILIES):
        return donor
    return donor._replace(words=donor.words[1:], spaces=None if donor.spaces is None else donor.spaces[1:])


def mention_key(text: str) -> str:
    """Return a key that is equal for mentions that differ only in case, white space, tokenisation or an article."""
    words = text.casefold().split()
    return "".join(words[1:] if len(words) > 1 and words[0] in _CLEAR_ARTICLES else words)


def mention_keys(sentences: Iterable[Sentence]) -> frozenset[str]:
    """Return the keys of all mentions of some sentences, whatever their labels."""
    return frozenset(_key_of(sentence, mention) for sentence in sentences for mention in sentence.mentions)


def _key_of(sentence: Sentence, mention: Mention) -> str:
    return mention_key(" ".join([PRINTED_FORMS.get(word, word) for word in sentence.mention_tokens(mention)]))
