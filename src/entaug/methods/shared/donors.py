"""Which mention may stand where another stood, and in which form: mentions of the corpus, and of lists of the user.

In order: capitals, of a corpus, of the mentions of a list and of a place; the places of a sentence whose mention can be
replaced; the shapes of mentions; training mentions as donors; and entries of lists as donors.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import compress
from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple

from entaug.core.alignment import CorpusTokenizer, align_spaces
from entaug.core.data import Sentence
from entaug.core.mentions import Mention, sorted_mentions
from entaug.core.spacing import PRINTED_FORMS, by_character, is_unspaced_script, without_line_ends
from entaug.core.words import Letters, folded, takes_an
from entaug.files.mention_lists import MentionList
from entaug.methods.shared.text_vectors import TextVectors

if TYPE_CHECKING:
    from entaug.backends.protocols import Encoder

Style = Literal["lower", "upper", "title", "sentence", "mixed"]
"""Capitals of the mentions of a list or a type: ``"title"`` begins each word with one, ``"sentence"`` the first word;
``"mixed"`` is any other use, where capitals belong to the words."""

_SAMPLE = 2000  # entries of a list that tell its style
_MOST = 0.9
_NEARLY_ALL = 0.995
_CLEARLY_NOT = 0.3
_ENOUGH_OF_STYLE = 5  # mentions of a type that tell its style
_LETTERS = Letters()
_POSSESSIVES = ("'s", "’s")  # noqa: RUF001
_SYMBOL = re.compile("(?i)[^\\W\\d_]+\\d|[\u03b1-\u03c9]{1,2}( ?[-\u2010\u2011\u2013] ?)?[a-z]")  # as p53, β-globin


def _prevailing(counts: Mapping[str, int], minimum: float, styles: Sequence[Style]) -> Style:
    """The first of some styles that enough words or mentions have."""
    return next((style for style in styles if counts[style] >= minimum > 0), "mixed")


def style_of(texts: Sequence[str]) -> Style:
    """Return the style of the entries of a list; those of a long list are sampled."""
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    cased = [text for text in sample if text.lower() != text.upper()]
    counts = {
        "lower": sum(map(str.islower, cased)),
        "upper": sum(map(str.isupper, cased)),
        "title": sum(text[:1].isupper() for text in cased),
    }
    style = _prevailing(counts, _MOST * len(cased), ("lower", "upper", "title"))
    if style != "title":
        return style
    later = [word for text in cased for word in text.split()[1:] if len(word) > 3 and word.lower() != word.upper()]
    return "sentence" if later and sum(word.islower() for word in later) >= len(later) / 2 else "title"


class CorpusCapitals:
    """Use of capitals in a corpus: overall, in the mentions of each type, and by word."""

    def __init__(self, tokens: Counter[str] | None = None) -> None:
        self._tokens = Counter[str]() if tokens is None else tokens
        self._counts_tokens = tokens is None  # else another counts them
        self._initial: Counter[str] = Counter()  # the first tokens of sentences
        self._mentions: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._small: set[str] = set()  # lower-case words within mentions

    def add(self, sentence: Sentence) -> None:
        """Learn from a sentence."""
        # Whole sentences are counted here, and each distinct token is looked at once, in `whole`.
        if self._counts_tokens:
            self._tokens.update(sentence.tokens)
        self._initial[sentence.tokens[0]] += 1
        for mention in sentence.mentions:
            words = sentence.mention_tokens(mention)
            if len(words) > 1:
                self._small.update(filter(str.islower, words[1:]))
            text = " ".join(words)
            if mention.start and text.lower() != text.upper():
                counts = self._mentions[mention.label]
                is_title = words[0][:1].isupper()
                counts["all"] += 1
                counts["title" if is_title else "lower"] += 1
                counts["upper"] += is_title and text.isupper()

    @cached_property
    def letters(self) -> Letters:
        """The pairs of small letters and capitals of the corpus."""
        return Letters.of(self._tokens)

    @cached_property
    def whole(self) -> Style:
        """The style of the corpus: ``"lower"`` and ``"upper"`` where it has no other letters, else ``"mixed"``."""
        running: Counter[str] = Counter()
        for token, count in self._tokens.items():
            running[_case_of(token)] += count
        return _prevailing(running, _NEARLY_ALL * (running.total() - running["none"]), ("lower", "upper"))

    def of_type(self, label: str) -> Style:
        """The style of the mentions of a type: lower, upper, title or mixed."""
        counts = self._mentions.get(label, Counter())
        minimum = _MOST * counts["all"] if counts["all"] >= _ENOUGH_OF_STYLE else math.inf
        return _prevailing(counts, minimum, ("upper", "title", "lower"))

    def adapt(self, text: str, style: Style, label: str) -> str:
        """Return a mention of a list in the capitals in which the corpus writes its type."""
        # Capitals that belong to the words are left alone: those of a list of mixed style, and of words that the corpus
        # writes so.
        whole, habit = self.whole, self.of_type(label)
        if whole != "mixed":
            return self.letters.lower(text) if whole == "lower" else self.letters.upper(text)
        if style in ("mixed", habit):
            return text
        if habit == "upper":
            return self.letters.upper(text)
        words = text.split(" ")
        if habit == "title":
            if style in ("lower", "upper"):
                words = [self._capitalized(word, is_first=not i) for i, word in enumerate(words)]
        elif style == "upper":
            if habit == "lower":
                words = [word if self._is_acronym(word) else self.letters.lower(word) for word in words]
        elif style != "lower":
            last = 1 if style == "sentence" else len(words)
            words[:last] = [self._without_capital(word, habit) for word in words[:last]]
        return " ".join(words)

    def within_sentence(self, words: tuple[str, ...], label: str) -> tuple[str, ...]:
        """Return a mention from the beginning of a sentence as the corpus writes it within sentences."""
        return (self._without_capital(words[0], self.of_type(label)), *words[1:])

    def _is_acronym(self, word: str) -> bool:
        return _case_of(word) == "upper" and word in self._tokens

    def _capitalized(self, word: str, *, is_first: bool) -> str:
        if self._is_acronym(word):
            return word
        lower = self.letters.lower(word)
        if lower in self._small and not is_first:
            return lower
        return "-".join(map(self.letters.capitalize, lower.split("-")))

    def _without_capital(self, word: str, habit: Style) -> str:
        lower = self.letters.lower(word)
        if word[1:] != lower[1:] or len(word) < 2 or word.endswith(_POSSESSIVES):
            return word
        within = self._tokens[word] - self._initial[word]  # sentences, where it has a capital as often as not
        if _case_of(word) == "capital" and within >= max(1, self._tokens[lower]):
            return word
        return lower if habit == "lower" or (lower.islower() and lower in self._tokens) else word


def _case_of(token: str) -> Literal["lower", "upper", "capital", "none"]:
    if token.islower():
        return "lower"
    if token.isupper() and len(token) > 1:
        return "upper"
    return "capital" if token[:1].isupper() else "none"


def capitals_of(words: Sequence[str]) -> str:
    """Return how a mention uses capitals."""
    text = " ".join(words)
    if text.islower():
        return "lower"
    if text.isupper():
        return "upper" if sum(map(str.isalpha, text)) > 1 else "title"
    if text.lower() == text.upper():
        return "none"
    return "title" if next(filter(str.isalpha, text), "").isupper() else "mixed"


def is_in_capitals(tokens: Sequence[str], start: int = 0, end: int = 0) -> bool:
    """Return whether a sentence is written in capitals, apart from a range."""
    totals = _totals(tuple(tokens))
    if totals.lower > _CLEARLY_NOT * len(tokens):  # nearly all sentences; quick
        return False
    left_out = [token for token in tokens[start:end] if _is_cased_word(token)]
    cased = totals.cased - len(left_out)
    return cased > 1 and totals.upper - sum(map(str.isupper, left_out)) >= _MOST * cased


class _Totals(NamedTuple):
    """Counts of a sentence, from which those without a mention follow."""

    lower: int
    cased: int
    upper: int
    is_lower: bool
    first: int


@lru_cache(maxsize=1)  # the mentions of a sentence are looked at one after the other
def _totals(tokens: tuple[str, ...]) -> _Totals:
    cased = [token for token in tokens if _is_cased_word(token)]
    words = (i for i, token in enumerate(tokens) if any(map(str.isalnum, token)))
    return _Totals(
        sum(map(str.islower, tokens)),
        len(cased),
        sum(map(str.isupper, cased)),
        " ".join(tokens).islower(),
        next(words, len(tokens)),
    )


def _is_cased_word(token: str) -> bool:
    return len(token) > 1 and token.lower() != token.upper()


def match_casing(
    words: tuple[str, ...],
    tokens: Sequence[str],
    start: int,
    end: int,
    *,
    lower: bool = False,
    letters: Letters = _LETTERS,
) -> tuple[str, ...]:
    """Return a mention in the capitals of the place where it is inserted."""
    if tokens[start].isupper():
        if is_in_capitals(tokens, start, end):
            return tuple([letters.upper(word) for word in words])
    elif lower and tokens[start].islower() and len(tokens) - end + start > 1 and _totals(tuple(tokens)).is_lower:
        return tuple([letters.lower(word) if word.istitle() else word for word in words])
    if tokens[start][:1].isupper() and words[0].islower() and start <= _totals(tuple(tokens)).first:
        if _SYMBOL.match(" ".join(words)):
            return words
        return (letters.capitalize(words[0]), *words[1:])
    return words


_MAX_INNER = 100  # mentions within a mention that is moved whole; no text has the same labels in the same order

Structure = tuple[str, tuple[str, ...]]
"""The label of a mention; and, in their order, the labels of the mention and those within it."""


class Place(NamedTuple):
    """A mention that can be replaced, with the mentions within it."""

    mention: Mention
    inner: tuple[Mention, ...] = ()

    @property
    def structure(self) -> Structure:
        """The labels."""
        if not self.inner:
            return self.mention.label, (self.mention.label,)
        return self.mention.label, tuple([m.label for m in sorted_mentions((self.mention, *self.inner))])


def abbreviated(sentence: Sentence, place: Place) -> Mention | None:
    """Return the mention of the same label that abbreviates one and follows it in brackets."""
    position = None if place.inner else abbreviation_after(sentence.tokens, place.mention)
    if position is None:
        return None
    at_position = (m for m in sentence.mentions if m.spans == ((position, position + 1),))
    return next((m for m in at_position if m.label == place.mention.label), None)


def replaceable_mentions(sentence: Sentence, *, nested: bool) -> list[Place]:
    """Return the mentions that can be replaced whole: contiguous ones that are neither in another nor cut by one."""
    places = (place for place, is_outermost in self_contained_mentions(sentence) if is_outermost)
    return [place for place in places if nested or not place.inner]


def self_contained_mentions(sentence: Sentence) -> Iterator[tuple[Place, bool]]:
    """Yield the mentions whose words can be moved with all their labels, and whether they are in no other."""
    # All mentions that overlap such a mention are inside or around it, at most 100 of them inside. Of several with the
    # same span only the first by label is yielded, whatever their order in the sentence; the others are within it.
    mentions = sentence.mentions
    is_flat = len(mentions) < 2 or sentence.is_flat
    for mention in mentions:
        if not mention.is_contiguous:
            continue
        if is_flat:
            yield Place(mention), True
            continue
        start, end = mention.start, mention.end
        others = [m for m in mentions if m is not mention and any(a < end and start < b for a, b in m.spans)]
        inner = [m for m in others if start <= m.start and m.end <= end]
        around = [m for m in others if any(a <= start and end <= b for a, b in m.spans) and m.spans != mention.spans]
        is_first = not any(m.spans == mention.spans and m.label < mention.label for m in inner)
        if len(inner) + len(around) == len(others) and len(inner) <= _MAX_INNER and is_first:
            yield Place(mention, tuple(inner)), not around


ARTICLE_FAMILIES = (
    frozenset(("the", "a", "an")),
    frozenset(("der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines")),
    frozenset(("de", "het", "een")),
    frozenset(("le", "la", "les", "un", "une")),
    frozenset(("el", "la", "los", "las", "un", "una")),
    frozenset(("il", "lo", "la", "gli", "le", "un", "una")),
)
"""Articles, by language."""

ARTICLES = frozenset().union(*ARTICLE_FAMILIES)
"""All of them."""

# By language: the articles, and prepositions that are one word with them; in one group those of the same gender and
# number, in German also "des" with "dem", as names change little. Of "der" and "ein" the gender is not known.
_AGREEING = (
    ("the a an",),
    ("dem einem des eines im am vom zum beim", "die eine einer zur", "das ins ans", "den einen", "der", "ein"),
    ("de", "het", "een"),
    ("le un du au", "la une", "les des aux", "l' l’"),  # noqa: RUF001
    ("el un del al", "la una", "los unos", "las unas"),
    (
        "il un del al dal nel sul",
        "lo uno dello allo dallo nello sullo",
        "la una della alla dalla nella sulla",
        "dei ai dai nei sui",  # "i" is an English word
        "gli degli agli dagli negli sugli",
        "le delle alle dalle nelle sulle",
        "l' dell' all' dall' nell' sull' l’ dell’ all’ dall’ nell’ sull’",  # noqa: RUF001
    ),
)
_ARTICLE_SHARE = 0.06  # of the running words of a language that has them

_CONTENT = "*"  # a word of content beside a mention
_COVERED = 0.5  # the share of the running words that function words make up
_SUFFIX = 2  # letters of a suffix
_SUFFIXES = (5, 4, 3)  # by which words end alike
_MIN_STEM = 3
_MIN_PAIRS = 5  # pairs of words that show an ending
_NEARLY_AS_OFTEN = 0.5  # an ending has at least this share of the pairs of the most frequent one
_MODIFIES = 2 / 3  # share of the uses as a modifier from which a word counts as an adjective
_MIN_SUFFIXES = 3
_MIN_INFLECTED = 5  # letters of a word whose last one may be an ending
_INFLECTED = 0.04  # share of the words that differ from another in their last letter alone, where words are inflected
_RATHER_THAN_FIRST = 5  # times as many differ in their last letter as in their first one, which is chance
_GENITIVE = 0.55  # share of the mentions that end in "s" before a word of content, where these are genitives
_DEPENDS = 2.0  # chi-square per degree of freedom from which the use depends on the suffix


def _are_articles(one: str, other: str) -> bool:
    """Whether two words are articles of one language, of which the second is left out."""
    return any(one in family and other in family for family in ARTICLE_FAMILIES)


class Shape(NamedTuple):
    """Features that a donor should share with the mention that it replaces, the most important first."""

    is_genitive: bool  # ends in "s", in Danish, Norwegian and Swedish
    capitals: str
    has_digits: bool
    has_article: bool  # before the mention
    article: str  # the first of the articles that agree with the same nouns as that one
    first_form: str  # the ending of the first word, in inflected languages
    last_form: str
    begins_as_function: bool  # with a function word, as in "near me"
    is_modifier: bool
    ending: str
    is_one_word: bool
    before: str  # the function word or punctuation before the mention
    after: str


class MentionShapes:
    """Learns which suffixes and endings are of importance in a corpus, and returns the shape of mentions."""

    # Nothing is known of any language but a few articles; a language that has them is the one whose articles are the
    # most frequent. A suffix is that of an adjective if mentions that end so mostly stand before a word that is not one
    # of the frequent words of the corpus; this is asked only for types in which it depends on the suffix. An ending is
    # one with which the corpus often has the same word, as the plural in English. In languages without articles, whose
    # words often differ in their last letter and seldom in the first one, that letter tells the case, as in Slavic
    # ones; of a mention both the first word (the noun of "Ministarstvo financija") and the last one (a surname). Where
    # mentions that end in "s" mostly stand before a word of content, and others do not, that is the genitive ("Danmarks
    # hovedstad"), as in Danish; in English, German, Dutch and Spanish hardly more of them do than of others.

    def __init__(self) -> None:
        self.tokens: Counter[str] = Counter()
        self._tokens_outside: Counter[str] = Counter()  # outside all mentions
        self._contexts: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)  # last word and the next one
        self._own: dict[tuple[str, tuple[str, ...]], Shape] = {}

    def add(self, sentence: Sentence) -> None:
        """Learn from a sentence."""
        # Whole sentences are counted here, and each distinct token is looked at once, in `_words`.
        tokens = sentence.tokens
        self.tokens.update(tokens)
        self._tokens_outside.update(compress(tokens, sentence.outside_mask()))
        for mention in sentence.mentions:
            if len(mention.spans) == 1:
                end = mention.spans[0][1]
                after = tokens[end].lower() if end < len(tokens) else ""
                self._contexts[mention.label].add((tokens[end - 1].lower(), after))

    def shape(self, label: str, words: Sequence[str], before: str = "", after: str = "") -> Shape:
        """Return the shape of a mention between two words."""
        key = (label, tuple(words))
        if key not in self._own:
            self._own[key] = self._shape_alone(*key)
        word, articles = before.lower(), self._agreement[0]
        next_word, is_always = self._context(after), self._genitives.get(words[-1].lower())
        return self._own[key]._replace(
            is_genitive=is_always or (is_always is not None and next_word == _CONTENT),
            has_article=word in (articles or ARTICLES),
            article=articles.get(word, ""),
            before=self._context(before),
            after=next_word,
        )

    def _shape_alone(self, label: str, words: tuple[str, ...]) -> Shape:
        last, endings = words[-1].lower(), self._agreement[1]
        return Shape(
            is_genitive=False,
            capitals=capitals_of(words),
            has_digits=any(character.isdigit() for word in words for character in word),
            has_article=False,
            article="",
            first_form=first if (first := words[0][-1].lower()) in endings else "",
            last_form=last[-1] if last[-1] in endings else "",
            begins_as_function=words[0] in self._function_words,
            is_one_word=len(words) == 1,
            is_modifier=last[-_SUFFIX:] in self._modifiers.get(label, ()),
            ending=next((e for e in self._endings if last.endswith(e) and self._has_ending(last, e)), ""),
            before="",
            after="",
        )

    def _context(self, word: str) -> str:
        """A word beside a mention as far as it counts: words of content are alike."""
        word = word.lower()
        return word if word in self._function_words or not word[:1].isalnum() else _CONTENT

    def takes(self, before: str, words: Sequence[str], after: str) -> bool:
        """Whether words fit between two others: no repetition, no two articles, and "an" before vowels in English."""
        first, before = words[0].lower(), before.lower()
        if first == before or words[-1].lower() == after.lower():
            return False
        if len(words) > 1 and _are_articles(before, first):
            return False
        return before not in ("a", "an") or not self._is_english or takes_an(words[0]) == (before == "an")

    @cached_property
    def _words(self) -> Counter[str]:
        return _lower_case_words(self.tokens)

    def _has_ending(self, word: str, ending: str) -> bool:
        """Whether a word is another one with an ending, as far as the corpus has that one, or words that end alike."""
        if word[: -len(ending)] in self._words:
            return True
        if self._is_english and word.endswith("ies") and f"{word[:-3]}y" in self._words:
            return True
        alike = [self._with_suffix[ending, word[-n:]] for n in _SUFFIXES if len(word) > n]
        enough = next((counts for counts in alike if counts.total() >= _MIN_SUFFIXES), Counter[bool]())
        return enough[True] > enough[False]

    @cached_property
    def _with_suffix(self) -> defaultdict[tuple[str, str], Counter[bool]]:
        """By ending and suffix: how many words are others with the ending, and how many only look so."""
        counts: defaultdict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
        for word in filter(str.isalpha, self._words):
            for ending in self._endings:
                for n in _SUFFIXES if word.endswith(ending) else ():
                    if len(word) > n:
                        counts[ending, word[-n:]][word[: -len(ending)] in self._words] += 1
        return counts

    @cached_property
    def _function_words(self) -> set[str]:
        return frequent_words(_lower_case_words(self._tokens_outside))

    @cached_property
    def _is_english(self) -> bool:
        """Whether "a" and "an" are the articles of English, for all that the corpus shows."""
        counts = self._words  # in Croatian "a" is frequent, and names have the others
        return 4 * counts["the"] > counts["a"] > counts["an"] > 0

    @cached_property
    def _agreement(self) -> tuple[dict[str, str], set[str]]:
        """The articles of the language, each with the first of those that agree alike, or the letters that inflect."""
        counts = self._words
        languages = [{word: group.split()[0] for group in groups for word in group.split()} for groups in _AGREEING]
        counted = [sum(map(counts.__getitem__, articles)) for articles in languages]
        if max(counted) >= _ARTICLE_SHARE * counts.total():
            articles = languages[counted.index(max(counted))]
            return (articles if len({*articles.values()}) > 1 else {}), set()
        words = [word for word in counts if len(word) >= _MIN_INFLECTED and word.isalpha()]
        but_last, but_first = (Counter(word[part] for word in words) for part in (slice(-1), slice(1, None)))
        inflected = [word for word in words if but_last[word[:-1]] > 1]
        by_chance = sum(n for n in but_first.values() if n > 1)
        if len(inflected) < max(_INFLECTED * len(words), _RATHER_THAN_FIRST * (by_chance + 2)):
            return {}, set()
        least = len(inflected) / len(words) / 2
        letters, endings = (Counter(word[-1] for word in some) for some in (words, inflected))
        return {}, {letter for letter, n in endings.items() if n >= least * letters[letter]}

    @cached_property
    def _genitives(self) -> dict[str, bool]:
        """Last words that are genitives in Danish, Norwegian or Swedish: always, or before a word of content alone."""
        uses = [(last, self._context(after) == _CONTENT) for some in self._contexts.values() for last, after in some]
        of_s, of_others = ([content for last, content in uses if last.endswith("s") == is_s] for is_s in (True, False))
        if sum(of_s) < max(_MIN_PAIRS, _GENITIVE * len(of_s), 2 * len(of_s) * sum(of_others) / max(len(of_others), 1)):
            return {}
        known, elsewhere = {last for last, _ in uses}, {last for last, content in uses if not content}
        words = {last: last[:-1] in known for last, _ in uses if last.endswith("s")}
        return {last: always for last, always in words.items() if always or last not in elsewhere}

    @cached_property
    def _modifiers(self) -> dict[str, set[str]]:
        """For each type the suffixes of adjectives."""
        function_words = self._function_words
        return {label: _modifying_suffixes(contexts, function_words) for label, contexts in self._contexts.items()}

    @cached_property
    def _endings(self) -> list[str]:
        pairs = Counter(
            word[-n:]
            for word in self._words
            for n in (1, 2)
            if len(word) >= _MIN_STEM + n and word[:-n] in self._words and word.isalpha()
        )
        enough = max(_MIN_PAIRS, _NEARLY_AS_OFTEN * max(pairs.values(), default=0))
        return sorted((ending for ending, n in pairs.items() if n >= enough), key=lambda e: (-len(e), e))


def _lower_case_words(tokens: Counter[str]) -> Counter[str]:
    """Return the counts of the words among tokens, in lower case."""
    words: Counter[str] = Counter()
    for token, count in tokens.items():
        word = token.lower()
        if word[0].isalpha():
            words[word] += count
    return words


def frequent_words(counts: Counter[str]) -> set[str]:
    """Return the most frequent words that together make up half of the running words; function words, for the most."""
    rest = _COVERED * counts.total()
    words = set()
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if rest <= 0:
            break
        words.add(word)
        rest -= count
    return words


def _modifying_suffixes(contexts: set[tuple[str, str]], function_words: set[str]) -> set[str]:
    """The suffixes of the mentions of a type that mostly stand before a word that is no function word."""
    uses: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for last, after in contexts:
        of_suffix = uses[last[-_SUFFIX:]]
        of_suffix[0] += 1
        of_suffix[1] += bool(after) and after[0].isalpha() and after not in function_words
    total = sum(n for n, _ in uses.values())
    rate = sum(k for _, k in uses.values()) / total if total else 0.0
    repeated = [(n, k) for n, k in uses.values() if n > 1]
    if len(repeated) < _MIN_SUFFIXES or not 0 < rate < 1:
        return set()
    chi_square = sum((k - n * rate) ** 2 / (n * rate * (1 - rate)) for n, k in repeated)
    if chi_square < _DEPENDS * (len(repeated) - 1):
        return set()
    return {suffix for suffix, (n, k) in uses.items() if k >= _MODIFIES * n}


OPENING_BRACKETS = frozenset(("(", "[", "-LRB-", "-LSB-"))
_CLOSING = frozenset((")", "]", "-RRB-", "-RSB-"))


def abbreviation_after(tokens: Sequence[str], mention: Mention) -> int | None:
    """Return the position of an abbreviation of a mention that follows in brackets."""
    place = mention.end + 1
    if place + 1 >= len(tokens) or tokens[place - 1] not in OPENING_BRACKETS or tokens[place + 1] not in _CLOSING:
        return None
    letters = [letter for letter in tokens[place].lower() if letter.isalpha()]
    words = "".join(tokens[mention.start : mention.end]).lower()
    if not 2 <= len(letters) <= len(words) / 2 or letters[0] != words[0]:
        return None
    rest = iter(words)
    return place if all(letter in rest for letter in letters) else None


_ENOUGH = 3  # other donors of a shape; if there are fewer, the next wider shape counts
_ENOUGH_TO_RANK = 10  # where the nearest of them are drawn
_DRAWS = 4  # draws until a donor is none of the mentions to avoid; then the others are listed
_ANY_CAPITALS = "any"


class MentionDonor(NamedTuple):
    """A mention as it is inserted, and the list that it comes from; empty for a training mention."""

    words: tuple[str, ...]
    mentions: tuple[Mention, ...]
    spaces: tuple[str, ...] | None
    key: str
    list_name: str = ""


class _Group(NamedTuple):
    """Donors of a shape, sorted, and the position of each."""

    donors: list[MentionDonor]
    positions: dict[tuple[str, ...], list[int]]


_NO_DONORS = _Group([], {})


_Content = tuple[tuple[str, ...], tuple[Mention, ...]]  # the words and the mentions of a donor
_Use = tuple[str, str]  # the words before and after a mention; empty at the ends of a sentence


def _use(tokens: Sequence[str], mention: Mention) -> _Use:
    start, end = mention.start, mention.end
    return tokens[start - 1] if start else "", tokens[end] if end < len(tokens) else ""


class DonorVectors:
    """Nearness in sense of mentions and of the words around them, by the vectors of an encoder."""

    def __init__(self, encoder: Encoder, min_similarity: float) -> None:
        self._vectors = TextVectors(encoder)
        self._min_similarity = min_similarity
        self._contexts: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, sentence: Sentence, mention: Mention) -> None:
        """Learn from a mention of the corpus."""
        key, around = _texts(sentence, mention)
        self._contexts[key].add(around)

    def fit(self) -> None:
        """Compute the vectors of all mentions, and the mean of those of their contexts."""
        contexts = {key: sorted(texts)[:_MAX_CONTEXTS] for key, texts in sorted(self._contexts.items())}
        self._mentions = dict(zip(contexts, self._vectors.of(list(contexts)), strict=True))
        all_texts = [text for texts in contexts.values() for text in texts]
        around = dict(zip(all_texts, self._vectors.of(all_texts), strict=True))
        self._around = {key: sum(around[text] for text in texts) / len(texts) for key, texts in contexts.items()}

    def prepare(self, mentions: Iterable[tuple[Sentence, Mention]]) -> None:
        """Compute the vectors of mentions to replace and of what is around each, in one call."""
        self._vectors.of([text for sentence, mention in mentions for text in _texts(sentence, mention)])

    def nearest(self, sentence: Sentence, mention: Mention, donors: Iterable[MentionDonor]) -> list[MentionDonor]:
        """Return the donors that are nearest to a mention and what is around it, and near enough."""
        own, around = self._vectors.of(_texts(sentence, mention))
        similarities = {
            donor: round(float(self._mentions[donor.key] @ own + self._around[donor.key] @ around) / 2, _DIGITS)
            for donor in donors
        }
        minimum = max(self._min_similarity, max(similarities.values(), default=0.0) - _NEARLY_AS_NEAR)
        near = [donor for donor, similarity in similarities.items() if similarity >= minimum]
        return sorted(near, key=lambda donor: -similarities[donor])[:_NEAREST]  # of equally near ones the first


_MAX_CONTEXTS = 8  # of a mention; further ones change its mean vector little
_NEAREST = 5
_NEARLY_AS_NEAR = 0.15
_DIGITS = 3  # of a cosine: kernels may round further ones differently for other batches


def _texts(sentence: Sentence, mention: Mention) -> tuple[str, str]:
    """A mention, and the words of its sentence without it."""
    around = (*sentence.tokens[: mention.start], *sentence.tokens[mention.end :])
    return content_key(sentence.mention_tokens(mention)), " ".join(around)


class TrainingDonors:
    """The distinct mentions of a corpus, by label and shape."""

    def __init__(self, *, by_shape: bool, vectors: DonorVectors | None = None) -> None:
        self._by_shape = by_shape
        self._vectors = vectors
        self._enough = _ENOUGH if vectors is None else _ENOUGH_TO_RANK
        self._shapes = MentionShapes()
        self.letters = _LETTERS  # of the corpus, where its words are counted
        # The mentions, by structure, with their uses: the words before and after them. A mention has no use if it was
        # seen in headlines in capitals alone.
        self._uses: defaultdict[Structure, dict[_Content, set[_Use]]] = defaultdict(dict)
        self._spaces: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._shapes_of: dict[Structure, list[tuple[MentionDonor, list[Shape]]]] = {}
        self._groups: dict[tuple[object, ...], dict[tuple[object, ...], _Group]] = {}
        self._chosen: dict[tuple[object, ...], _Group] = {}
        # By label: mentions with their abbreviations.
        self._pairs: defaultdict[str, set[tuple[tuple[str, ...], tuple[str, ...]]]] = defaultdict(set)

    def fit(self, corpus: Iterable[Sentence]) -> None:
        """Learn the mentions of a corpus, in one pass."""
        for _ in self.observe(corpus):
            pass

    def observe(self, corpus: Iterable[Sentence]) -> Iterator[Sentence]:
        """Learn the mentions of sentences that pass by; after the last one they are donors."""
        capitals = CorpusCapitals(self._shapes.tokens)
        initial: list[tuple[Structure, _Content, _Use]] = []  # from the beginning of sentences
        pairs: list[tuple[Place, tuple[str, ...], tuple[str, ...]]] = []
        for sentence in corpus:
            if self._by_shape:
                self._shapes.add(sentence)
                capitals.add(sentence)
            has_brackets = not OPENING_BRACKETS.isdisjoint(sentence.tokens)
            for place, _ in self_contained_mentions(sentence):
                content = self._content(sentence, place)
                if self._vectors is not None:
                    self._vectors.add(sentence, place.mention)
                if has_brackets and (short := abbreviated(sentence, place)):
                    pairs.append((place, content[0], sentence.mention_tokens(short)))
                if self._by_shape and not place.mention.start:
                    initial.append((place.structure, content, _use(sentence.tokens, place.mention)))
                else:
                    self._add(sentence, place, content)
            yield sentence
        self.letters = capitals.letters
        for place, long, abbreviation in pairs:
            label, is_initial = place.mention.label, self._by_shape and not place.mention.start
            self._pairs[label].add((capitals.within_sentence(long, label) if is_initial else long, abbreviation))
        for structure, content, use in initial:
            self._add_initial(structure, content, use, capitals)
        if self._vectors is not None:
            self._vectors.fit()
        self._donors = {
            structure: {
                MentionDonor(words, mentions, self._spaces.get(words), content_key(words)): uses[words, mentions]
                for words, mentions in sorted(uses, key=lambda content: (content[0], str(content[1])))
            }
            for structure, uses in self._uses.items()
        }
        self.nesting = {label for label, all_ in self._donors if len(all_) > 1}  # of mentions that hold others

    def _content(self, sentence: Sentence, place: Place) -> _Content:
        mention = place.mention
        words = sentence.mention_tokens(mention)
        if sentence.spaces is not None and len(words) > 1:
            between = without_line_ends(sentence.spaces[mention.start : mention.end - 1])
            self._spaces[words] = min(between, self._spaces.get(words, between))
        return words, (Mention(mention.label, ((0, len(words)),)), *[m.shift(-mention.start) for m in place.inner])

    def _add(self, sentence: Sentence, place: Place, content: _Content) -> None:
        """Add a mention with its use."""
        uses = self._uses[place.structure].setdefault(content, set())
        start, end = place.mention.start, place.mention.end
        if not (content[0][0].isupper() and is_in_capitals(sentence.tokens, start, end)):
            uses.add(_use(sentence.tokens, place.mention))

    def _add_initial(self, structure: Structure, content: _Content, use: _Use, capitals: CorpusCapitals) -> None:
        """Add a mention from the beginning of a sentence, in the form that it has within sentences."""
        words, mentions = content
        form = capitals.within_sentence(words, structure[0])
        if form != words and words in self._spaces:
            self._spaces[form] = min(self._spaces[words], self._spaces.get(form, self._spaces[words]))
        uses = self._uses[structure].setdefault((form, mentions), set())
        if not (words[0].isupper() and len(words[0]) > 1):  # else it may be a part of a headline
            uses.add(use)

    @property
    def pools(self) -> dict[str, list[tuple[str, ...]]]:
        """For each label the words of the donors without other mentions, sorted."""
        return {
            label: [donor.words for donor in donors] for (label, all_), donors in self._donors.items() if len(all_) == 1
        }

    def size(self, place: Place) -> int:
        """The number of donors with the labels of a place, the mention itself included."""
        return len(self._donors.get(place.structure, ()))

    def has_pairs(self) -> bool:
        """Whether any mention can be replaced by another."""
        return any(len(donors) > 1 for donors in self._donors.values())

    def draw(
        self, sentence: Sentence, place: Place, avoided: Collection[str], rng: Random, *, any_shape: bool = False
    ) -> MentionDonor | None:
        """Draw a donor, never the mention itself: uniformly, or with vectors from the nearest."""
        start, end = place.mention.start, place.mention.end
        words = sentence.tokens[start:end]
        if not self._by_shape:
            return _draw(self._group(place.structure, ()), words, avoided, rng)
        if not any_shape:
            use = _use(sentence.tokens, place.mention)
            in_capitals = words[0].isupper() and is_in_capitals(sentence.tokens, start, end)
            key = (*place.structure, words, use, in_capitals)
            if key not in self._chosen:
                self._chosen[key] = self._group_for(place.structure, words, use, in_capitals)
            if found := self._draw(self._chosen[key], sentence, place.mention, avoided, rng):
                return found
        return self._draw(self._group(place.structure, ()), sentence, place.mention, avoided, rng)

    def _draw(
        self, group: _Group, sentence: Sentence, mention: Mention, avoided: Collection[str], rng: Random
    ) -> MentionDonor | None:
        words, fits = sentence.mention_tokens(mention), partial(self.fits, sentence, mention)
        if self._vectors is not None:
            others = [d for d in group.donors if d.words != words and d.key not in avoided and fits(d.words)]
            group = _grouped(self._vectors.nearest(sentence, mention, others))
        return _draw(group, words, avoided, rng, fits)

    def fits(self, sentence: Sentence, mention: Mention, words: tuple[str, ...]) -> bool:
        """Whether words can stand between the words beside a mention."""
        if not self._by_shape:
            return True
        before, after = _use(sentence.tokens, mention)
        # A part of another word ("-alpha"), a user name and a hashtag stand for their like.
        firsts = sentence.tokens[mention.start], words[0]
        own, new = (word[0].replace("/", "-") if len(word) > 1 and word[0] in "-/@#" else "" for word in firsts)
        return own == new and self._shapes.takes(before, words, after)

    def draw_pair(
        self, sentence: Sentence, mention: Mention, avoided: Collection[str], rng: Random
    ) -> tuple[MentionDonor, MentionDonor] | None:
        """Draw a mention with its abbreviation."""
        label = mention.label
        pairs = {
            self._flat_donor(label, long): self._flat_donor(label, short)
            for long, short in sorted(self._pairs.get(label, ()))
            if content_key(long) not in avoided and content_key(short) not in avoided
        }
        donors = list(pairs)
        if self._vectors is not None:
            donors = self._vectors.nearest(sentence, mention, donors)
        if not donors:
            return None
        chosen = donors[int(rng.random() * len(donors))]
        return chosen, pairs[chosen]

    def _flat_donor(self, label: str, words: tuple[str, ...]) -> MentionDonor:
        return MentionDonor(words, (Mention(label, ((0, len(words)),)),), self._spaces.get(words), content_key(words))

    def _group_for(self, structure: Structure, words: tuple[str, ...], use: _Use, in_capitals: bool) -> _Group:
        """The donors of the narrowest shape that has enough of them."""
        shape = self._shapes.shape(structure[0], words, *use)
        if in_capitals:
            shape = shape._replace(capitals=_ANY_CAPITALS)
        for length in range(len(shape), 0, -1):
            group = self._group(structure, shape[:length])
            num_others = len(group.donors) - len(group.positions.get(words, ()))
            if num_others >= (1 if shape.is_genitive and length == 1 else self._enough):
                return group
        return self._group(structure, ())

    def _group(self, structure: Structure, shape: tuple[object, ...]) -> _Group:
        """The donors whose shape begins so."""
        key, shape_of = (*structure, len(shape)), partial(self._shapes.shape, structure[0])
        if structure not in self._shapes_of:
            same: dict[Shape, Shape] = {}  # few are distinct
            self._shapes_of[structure] = []
            for donor, uses in self._donors.get(structure, {}).items():
                shapes = [shape_of(donor.words, *use) for use in uses]
                # A place in capitals takes any donor, in capitals; a headline drops articles.
                in_headline = shapes or [
                    shape_of(donor.words, word)._replace(has_article=bool(word)) for word in ("", "the")
                ]
                shapes += [one._replace(capitals=_ANY_CAPITALS) for one in in_headline]
                self._shapes_of[structure].append((donor, [same.setdefault(one, one) for one in shapes]))
        if key not in self._groups:
            groups: defaultdict[tuple[object, ...], list[MentionDonor]] = defaultdict(list)
            for donor, shapes in self._shapes_of[structure]:
                for start in dict.fromkeys(one[: len(shape)] for one in shapes):
                    groups[start].append(donor)
            self._groups[key] = {start: _grouped(donors) for start, donors in groups.items()}
        return self._groups[key].get(shape, _NO_DONORS)


def content_key(words: Sequence[str]) -> str:
    """Return a key that is equal for mentions that differ in nothing but case, or in the form of their marks."""
    return folded(" ".join(words))


def _grouped(donors: list[MentionDonor]) -> _Group:
    positions: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, donor in enumerate(donors):
        positions[donor.words].append(i)
    return _Group(donors, dict(positions))


def _draw(
    group: _Group,
    words: tuple[str, ...],
    avoided: Collection[str],
    rng: Random,
    fits: Callable[[tuple[str, ...]], bool] = bool,
) -> MentionDonor | None:
    own = group.positions.get(words, [])
    donors = group.donors
    n = len(donors) - len(own)
    if n < 1:
        return None
    for _ in range(_DRAWS):
        number = int(rng.random() * n)
        for position in own:
            number += number >= position
        if donors[number].key not in avoided and fits(donors[number].words):
            return donors[number]
    others = [d for i, d in enumerate(donors) if d.key not in avoided and i not in own and fits(d.words)]
    return others[int(rng.random() * len(others))] if others else None


_LIST_DRAWS = 5  # until an entry differs from the mention that it replaces
# Articles that are not also the beginning of a name in other languages, such as IL-2, LA and El.
_CLEAR_ARTICLES = frozenset(("the", "der", "die", "das", "den", "dem", "het", "les", "los", "las"))
_BRACKETS = {PRINTED_FORMS[token]: token for token in PRINTED_FORMS if token.startswith("-")}


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


_Entry = tuple[tuple[str, ...], tuple[str, ...] | None, str]  # words, white space between them, name of the list


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
        self._pools: dict[str, list[tuple[str, int]]] = {}  # by label: the entries and the numbers of their lists
        self._prepared: dict[tuple[str, int], _Entry] = {}

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

    def _select(self, label: str) -> list[tuple[str, int]]:
        """The entries of a label that can be inserted, sorted; counts the others."""
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
                content = folded(text) if ignores_case else text
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
        return sorted(chosen) if len(self._lists) > 1 else chosen

    def size(self, label: str) -> int:
        """The number of entries that can be inserted for a label."""
        return len(self._pools.get(label, ()))

    # ----------------------------------------------------------------------------------------------------------- draws

    def draw(
        self,
        sentence: Sentence,
        mention: Mention,
        avoided: Collection[str],
        rng: Random,
        fits: Callable[[Sentence, Mention, tuple[str, ...]], bool],
    ) -> MentionDonor | None:
        """Draw an entry for a mention, uniformly from all entries with its label."""
        n = self.size(mention.label)
        own = sentence.mention_tokens(mention)
        before = sentence.tokens[mention.start - 1].casefold() if mention.start else ""
        for _ in range(_LIST_DRAWS):
            words, spaces, name = self._entry(mention.label, int(rng.random() * n))
            if len(words) > 1 and _are_articles(before, words[0].casefold()):
                words, spaces = words[1:], None if spaces is None else spaces[1:]
            words = match_casing(words, sentence.tokens, mention.start, mention.end, letters=self._capitals.letters)
            key = content_key(words)
            if words != own and key not in avoided and fits(sentence, mention, words):
                return MentionDonor(words, (Mention(mention.label, ((0, len(words)),)),), spaces, key, name)
        return None

    def _entry(self, label: str, number: int) -> _Entry:
        """An entry in the tokens and capitals of the corpus."""
        if (label, number) in self._prepared:
            return self._prepared[label, number]
        entry, origin = self._pools[label][number]
        text = self._capitals.adapt(entry, self._styles[origin][label], label)
        tokens = self._tokenizer(text)
        if "." in tokens and self._stops[True] >= self._stops[False]:
            tokens = _with_full_stops(tokens, text)
        if self._by_character:
            tokens = [part for token in tokens for part in by_character(token)]
        spaces = align_spaces(tokens, text)
        words = tuple([self._brackets.get(token, token) for token in tokens])
        prepared = words, None if spaces is None else spaces[:-1], self._lists[origin].name
        return self._prepared.setdefault((label, number), prepared)


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


def mention_key(text: str) -> str:
    """Return a key that is equal for mentions that differ only in case, white space, tokenisation or an article."""
    words = folded(text).split()
    return "".join(words[1:] if len(words) > 1 and words[0] in _CLEAR_ARTICLES else words)


def mention_keys(sentences: Iterable[Sentence]) -> frozenset[str]:
    """Return the keys of all mentions of some sentences, whatever their labels."""
    return frozenset(_key_of(sentence, mention) for sentence in sentences for mention in sentence.mentions)


def _key_of(sentence: Sentence, mention: Mention) -> str:
    return mention_key(" ".join([PRINTED_FORMS.get(word, word) for word in sentence.mention_tokens(mention)]))
