"""The label guard, which refuses sentences whose labels cannot be trusted; on by default for methods with a model.

In order: what the training sentences, word lists and models tell about names; the names of a corpus without capitals;
the checks, functions of a `CheckedSentence` that yield the words of each fault of one kind; and the filter.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby, pairwise

from entaug.backends.language_check import LoadedModel, served_languages
from entaug.backends.protocols import EntityRecognizer, Recognition, WordCases, match_case
from entaug.backends.resolve import STARTERS, check_name, preparing_command, resolve, resolve_starter
from entaug.core.data import Sentence
from entaug.core.languages import LanguageProfile, language_name
from entaug.core.mentions import Mention, Span
from entaug.core.phrases import Phrases, known_mentions
from entaug.core.words import AUTO, BRACKETS, is_unbalanced, is_word, label_in_words, stop_words
from entaug.filters.base import Filter

NOT_WORDS = ("#", "@", "http", "www.")
"""The beginnings of tokens that are no words: hashtags, user names and addresses."""
_SENTENCE_ENDS = frozenset(".!?…:;।。！？")  # noqa: RUF001
_OPENING = frozenset("\"'`“”‘’«»„([{-–—*•")  # noqa: RUF001
_CLOSING = frozenset("\"'”’»)]}")  # noqa: RUF001

# Of how names are used in the training sentences.
_MOST = 0.75
_SOME = 0.1
_HARDLY_ANY = 0.005  # share of words with a capital below which a corpus has no capitals
_ENOUGH_MENTIONS = 4

# Of what lists and models tell.
_SHARE = 0.5  # of the entities of a kind that are mentions, so that others of this kind must be, too
_RARE = 0.25
_ENOUGH, _MANY, _LIKELIER = 3, 4, 2
# An unseen word with a capital is taken for a name if this share of the corpus' words of its kind is in mentions. Over
# all kinds the share is about 0.7 in English news, 0.4 in tweets, and 0.1 in biomedical text.
_CAPITALS_TELL = 0.25
_EXCEPTION = 0.1  # share of what counts as an exception
_EXCEPTIONS = 0.25  # share of the mentions of a type that a rule about them may not hold for

# Of text without capitals.
_DECIDED = 2000  # words after which a corpus with capitals is not counted any further


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


class NameEvidence:
    """Evidence about names: from the training sentences, and from lists and models as far as these agree with them."""

    # Tokens are compared as they are written, mentions without case. A word counts as ordinary if a training sentence
    # has it outside mentions. Of what a recogniser finds, the kinds of entities count that are mostly mentions here,
    # and types whose mentions are mostly nouns.

    def __init__(
        self, gold: Sequence[Sentence], word_cases: WordCases | None = None, stop_words: frozenset[str] = frozenset()
    ) -> None:
        self.stop_words = stop_words
        self._word_cases = word_cases
        self._recognizer: EntityRecognizer | None = None
        self._places: defaultdict[tuple[str, str], set[str]] = defaultdict(set)  # by label and word
        self._outside: Counter[str] = Counter()  # tokens outside mentions, as written
        self._outside_within: Counter[str] = Counter()  # ... those that do not begin a sentence
        self._inside_within: Counter[str] = Counter()
        self.vocabulary: set[str] = set()
        self._mentions: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self._as_written: set[tuple[str, ...]] = set()
        self._words: defaultdict[str, Counter[str]] = defaultdict(Counter)  # words of mentions, with their labels
        self._capitalised: defaultdict[str, Counter[bool]] = defaultdict(Counter)  # of mentions, by label
        self.edges: tuple[set[str], set[str]] = (set(), set())
        self.adjacent_labels: set[tuple[str, str]] = set()
        for sentence in gold:
            self._add(sentence)
        self.labels = sorted(self._capitalised)
        self._known = known_mentions(gold, str.casefold)
        self.learn((), None)

    def learn(self, sample: Sequence[Sentence], recognizer: EntityRecognizer | None) -> None:
        """Learn what mentions are to a recogniser, and which types have common words as names."""
        self._recognizer = recognizer
        self._alone: dict[tuple[str, ...], Recognition] = {}
        self.mentions_of_label: Counter[str] = Counter()
        self.kinds_of_label: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._labels_of_kind: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._labels_alone: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._kinds_alone: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._kinds: Counter[str] = Counter()
        self._kinds_in_mentions: Counter[str] = Counter()
        self._heads: defaultdict[str, Counter[str]] = defaultdict(Counter)  # parts of speech of the last words
        common: Counter[str] = Counter()
        for sentence, recognition in zip(sample, self.recognize(sample), strict=True):
            for mention in sentence.mentions:
                words = [word for word in sentence.mention_tokens(mention) if is_word(word)]
                self.mentions_of_label[mention.label] += 1
                common[mention.label] += bool(words) and all(map(self.is_common_word, words))
                kind = self.kind_alone(sentence.mention_tokens(mention))
                self._labels_alone[kind][mention.label] += 1
                self._kinds_alone[mention.label][kind] += 1
                if recognition is not None:
                    self._heads[mention.label][recognition.pos[mention.end - 1]] += 1
            if recognition is not None:
                self._learn_kinds(sentence, recognition)
        self._of_common_words = {
            label for label, n in self.mentions_of_label.items() if common[label] > _EXCEPTIONS * n
        }

    def _learn_kinds(self, sentence: Sentence, recognition: Recognition) -> None:
        outside = list(sentence.outside_mask())
        by_span = {(m.start, m.end): m.label for m in sentence.mentions if m.is_contiguous}
        for start, end, kind in recognition.entities:
            self._kinds[kind] += 1
            self._kinds_in_mentions[kind] += not all(outside[start:end])
            label = by_span.get((start, end), "")
            self._labels_of_kind[kind][label] += 1
            self.kinds_of_label[label][kind] += 1

    def recognize(self, sentences: Sequence[Sentence]) -> list[Recognition] | list[None]:
        """Return what the recogniser finds in each sentence; None without one."""
        if self._recognizer is None:
            return [None] * len(sentences)
        return self._recognizer.recognize([sentence.tokens for sentence in sentences])

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
            self.edges[0].add(folded[0])
            self.edges[1].add(folded[-1])
            for i, word in enumerate(folded):
                self._words[word][mention.label] += 1
                self._places[mention.label, word].add(self._place(words, i))
            if not shouted and any(map(has_letter, words)):
                self._capitalised[mention.label][any(map(has_capital, words))] += 1
        for one, other in pairwise(mentions):
            if one.end == other.start:
                self.adjacent_labels.add((one.label, other.label))

    # ------------------------------------------------------------------------------------------------------- mentions

    def known_spans(self, tokens: Sequence[str]) -> Iterator[Span]:
        """Find known mentions in a text, overlapping ones included."""
        # A single word in another case than in the corpus counts only where the corpus does not have it as a word.
        for start, end in self._known.find(_folded(tokens)):
            words = tuple(tokens[start:end])
            if len(words) > 1 or words in self._as_written or not self.is_ordinary(words[0].lower()):
                yield start, end

    def is_known(self, words: Sequence[str], label: str) -> bool:
        """Whether the corpus has a mention with its label."""
        return bool(self.labels_of(words)[label])

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

    def capitalisation(self, label: str) -> bool | None:
        """Capitalisation of the mentions of a label."""
        counts = self._capitalised.get(label, Counter())
        total = counts.total()
        if total < _ENOUGH_MENTIONS:
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

    def is_ordinary(self, token: str) -> bool:
        """Whether the corpus has a token outside mentions, as it is written."""
        return token in self._outside

    def usual_case(self, word: str) -> str | None:
        """Return a word in its usual case within a sentence: that of the corpus, else of the list."""
        return self._cases.get(word.casefold()) or self._listed(word)

    def _listed(self, word: str) -> str | None:
        """Return a word in the case that the list has for it."""
        return self._word_cases.usual_case(word) if self._word_cases else None

    @cached_property
    def has_capitals(self) -> bool:
        """Whether the corpus uses capitals at all: not if it is in lower case, or in a script without case."""
        cased = Counter({word: n for word, n in (self._outside + self._inside_within).items() if has_letter(word)})
        capitals = sum(n for word, n in cased.items() if has_capital(word))
        return capitals >= _HARDLY_ANY * cased.total() > 0

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

    def is_name(self, word: str) -> bool:
        """Whether a word is usually written with a capital."""
        usual = self._listed(word)
        return usual is not None and len(usual) > 1 and has_capital(usual) and is_word(word)

    def is_common_word(self, word: str) -> bool:
        """Whether a word is usually written without a capital."""
        usual = self._listed(word)
        return usual is not None and not has_capital(usual)

    def capital_tells(self, word: str) -> bool:
        """Whether most words like this one that have a capital within a sentence are in mentions."""
        counts, all_ = self._capitals[self._kind_of_word(word)], self._capitals[""]
        if not all_:
            return False
        prior = all_[True] / all_.total()  # for kinds with few words
        return counts[True] + prior >= _CAPITALS_TELL * (counts.total() + 1)

    @cached_property
    def _capitals(self) -> defaultdict[str, Counter[bool]]:
        """Words with a capital within a sentence, by kind: how many are mostly in mentions, and how many are not."""
        capitals: defaultdict[str, Counter[bool]] = defaultdict(Counter)
        for word in sorted({*self._inside_within, *self._outside_within}):
            inside, outside = self._inside_within[word], self._outside_within[word]
            if has_capital(word) and inside + outside and not word.startswith(NOT_WORDS):
                for kind in (self._kind_of_word(word), ""):
                    capitals[kind][inside > outside] += 1
        return capitals

    def _kind_of_word(self, word: str) -> str:
        if len(word) > 1 and word.isupper():
            return "capitals"
        return "name" if self.is_name(word) else "common word" if self.is_common_word(word) else "unknown"

    def needs_names(self, label: str) -> bool:
        """Whether nearly all mentions of a type have a word that is usually written with a capital."""
        return label not in self._of_common_words

    def may_end_with(self, label: str, pos: str) -> bool:
        """Whether mentions of a type end with a part of speech, other than in rare cases."""
        counts = self._heads.get(label, Counter())
        return counts.total() < _ENOUGH or counts[pos] > _EXCEPTION * counts.total()

    # ----------------------------------------------------------------------------------------- words that models choose

    def cased(self, word: str, example: str, *, is_first: bool = False) -> str:
        """Put a word that a model predicts into the case in which the corpus would have it."""
        # Models without capitals predict names in lower case.
        usual = self.usual_case(word) if self.has_capitals and word.islower() else None
        if usual is None or not has_capital(usual):
            usual = match_case([word], example)[0]
        return usual[:1].upper() + usual[1:] if is_first and has_capital(example) else usual

    def is_plain(self, word: str) -> bool:
        """Whether a word can stand outside mentions: not a name, and not only in mentions of the corpus."""
        if self.is_ordinary(word):
            return True
        return not (self.lists_tell_names and self.is_name(word)) and not self.word_labels(word)

    def fits(self, word: str, label: str, example: str) -> bool:
        """Whether a word can stand for one of a mention."""
        labels = self.word_labels(word)
        if labels:
            if not labels[label]:
                return False
        elif self.is_likelier_other([self.cased(word, example)], label):
            return False
        if not self._is_common(word) or self.is_known([word], label):
            return True
        return self._is_common(example)

    def keeps_type(self, words: Sequence[str], i: int, new: str, label: str) -> bool:
        """Whether a mention is still one of its type, as a whole, if a word of it is replaced."""
        old = words[i]
        changed = [*words[:i], new, *words[i + 1 :]]
        is_mention, is_of_type = self.is_known(changed, label), bool(self.word_labels(new)[label])
        if is_mention:
            may_be = True
        elif is_of_type:
            may_be = self.may_stand(changed, i, label)
        else:
            may_be = not self.is_shared(old, label) and self._is_like_name(old, label) and self._may_name(new, label)
        # What a recogniser is asked comes last, as that takes longest.
        if not may_be or (old.islower() and old in self.stop_words) or not self.fits(new, label, old):
            return False
        if is_of_type:
            return is_mention or self._pos_alone(changed)[i] == self._pos_alone(words)[i]
        return self.kind_alone(words) in ("", self.kind_alone(changed))

    def _may_name(self, word: str, label: str) -> bool:
        """Whether a word that a model predicts, in whatever case, is a name by itself as far as a list tells."""
        return self._word_cases is None or self._is_like_name(self._listed(word) or "", label)

    def _is_like_name(self, word: str, label: str) -> bool:
        """Whether a word is a name by itself; abbreviations are not, as they can stand for anything."""
        if len(word) > 1 and (word.isupper() or (self.usual_case(word) or "").isupper()):
            return False
        is_unknown = not self.is_common_word(word) and has_capital(word)
        return self.is_name(word) or (is_unknown and self.capitalisation(label) is True)

    def _is_common(self, word: str) -> bool:
        """Whether a word is usually written without a capital, or the corpus has it so outside mentions."""
        return self.is_common_word(word) or self.is_ordinary(word.lower())

    # ------------------------------------------------------------------------------------------------------- entities

    def is_labelled_kind(self, kind: str) -> bool:
        """Whether most entities of a kind are mentions in the corpus, so that others of it must be, too."""
        return self._kinds_in_mentions[kind] >= _SHARE * self._kinds[kind] > 0

    def kind_alone(self, words: Sequence[str]) -> str:
        """Return the kind of entity that the recogniser sees in a mention without its sentence."""
        # A sentence often hides that a name is of another kind, as "John" in "official communication with John".
        kinds = {kind for *_, kind in self._recognize_alone(words).entities}
        return kinds.pop() if len(kinds) == 1 else ""

    def _recognize_alone(self, words: Sequence[str]) -> Recognition:
        """Entities that the recogniser finds in words without their sentence; none without a recogniser."""
        key = tuple(words)
        if self._recognizer is None:
            return Recognition((), ("X",) * len(key))
        if key not in self._alone:
            [self._alone[key]] = self._recognizer.recognize([key])
        return self._alone[key]

    def _pos_alone(self, words: Sequence[str]) -> list[str]:
        """The parts of speech in a mention without its sentence, where names and other nouns are one."""
        return ["NOUN" if pos == "PROPN" else pos for pos in self._recognize_alone(words).pos]

    def is_recognized(self, words: Sequence[str], label: str) -> bool:
        """Whether the recogniser sees a mention, without its sentence, as it sees most of those of the type."""
        kind, kinds = self.kind_alone(words), self._kinds_alone.get(label, Counter())
        return bool(kind) and kinds[kind] >= _SHARE * kinds.total()

    def is_likelier_other(self, words: Sequence[str], label: str) -> bool:
        """Whether the kind of a mention, without its sentence, is by far likelier to be of another type."""
        # A type with the same name as the kind is likely beforehand.
        if not (kind := self.kind_alone(words)):
            return False
        counts = self._labels_alone[kind] + self._labels_of_kind.get(kind, Counter())
        counts.update({name: _MANY for name in self.labels if label_in_words(name) == label_in_words(kind)})
        del counts[""]
        most = max(counts.values(), default=0)
        return most >= _MANY and _LIKELIER * counts[label] <= most

    def is_unlabelled_kind(self, kind: str) -> bool:
        """Whether the corpus leaves most entities of a kind without a label."""
        total = self._kinds[kind]
        return total >= _ENOUGH and self._kinds_in_mentions[kind] < _RARE * total

    def contradicts(self, kind: str, label: str) -> bool:
        """Whether entities of a kind are no mentions of a type."""
        # So it is where the corpus labels hardly any of the kind, or others with another type, or where the mentions of
        # the type are all of other kinds.
        counts, of_label = self._labels_of_kind.get(kind, Counter()), self.kinds_of_label.get(label, Counter())
        labelled = counts.total() - counts[""]
        if labelled >= _MANY and counts[label] <= _EXCEPTION * labelled:
            return True
        return not counts[label] and (of_label.total() >= _MANY or self.is_unlabelled_kind(kind))


class TruecasedRecognizer:
    """A recogniser of a corpus without capitals: words that usually have one are given to it with one."""

    def __init__(self, recognizer: EntityRecognizer, word_cases: WordCases) -> None:
        self._recognizer, self._word_cases = recognizer, word_cases
        self.name, self.language = recognizer.name, recognizer.language

    def recognize(self, sentences: Sequence[Sequence[str]]) -> list[Recognition]:
        return self._recognizer.recognize([[self._truecased(word) for word in words] for words in sentences])

    def _truecased(self, word: str) -> str:
        usual = self._word_cases.usual_case(word)
        return usual if usual is not None and has_capital(usual) else word


class UncasedNames:
    """The places of names in sentences of a corpus without capitals; with capitals there is nothing to find."""

    def __init__(
        self,
        corpus: Iterable[Sentence] = (),
        word_cases: WordCases | None = None,
        recognizer: EntityRecognizer | None = None,
        stop_words: frozenset[str] = frozenset(),
    ) -> None:
        self._recognizer, self._stop_words = recognizer, stop_words
        self.use_list(word_cases)
        self._inside: Counter[str] = Counter()
        self._outside: Counter[str] = Counter()
        self._mentions: set[tuple[str, ...]] = set()
        self._total = self._capitals = 0
        for _ in self.observe(corpus):
            pass

    def use_list(self, word_cases: WordCases | None) -> None:
        """Use a list of words."""
        self._word_cases = word_cases
        self.list_name = word_cases.name if word_cases is not None else None

    def observe(self, corpus: Iterable[Sentence]) -> Iterator[Sentence]:
        """Learn the names of sentences that pass by."""
        for sentence in corpus:
            yield sentence
            if self._total >= _DECIDED and not self.is_needed:
                continue
            for token, is_outside in zip(sentence.tokens, sentence.outside_mask(), strict=True):
                if is_word(token):
                    self._total += 1
                    self._capitals += has_capital(token)
                    (self._outside if is_outside else self._inside)[token.casefold()] += 1
            for mention in sentence.mentions:
                words = _folded(sentence.mention_tokens(mention))
                if mention.is_contiguous and not self._stop_words.issuperset(words):
                    self._mentions.add(words)

    @property
    def is_needed(self) -> bool:
        """Whether the corpus has no capitals, in lower case or in a script without case."""
        return self._capitals < _HARDLY_ANY * self._total

    def places(self, sentences: Sequence[Sentence]) -> list[frozenset[int]]:
        """Return for each sentence the positions of the words of names, in mentions and outside."""
        if not self.is_needed:
            return [frozenset()] * len(sentences)
        texts = [sentence.tokens for sentence in sentences]
        found = self._recognizer.recognize(texts) if self._recognizer else [None] * len(texts)
        return [frozenset(self._of_sentence(*pair)) for pair in zip(texts, found, strict=True)]

    def _of_sentence(self, tokens: Sequence[str], recognition: Recognition | None) -> set[int]:
        places = {i for i, word in enumerate(_folded(tokens)) if self._is_name(word)}
        spans = [(start, end) for start, end, _ in (recognition.entities if recognition else ())]
        places.update(i for start, end in spans if not places.isdisjoint(range(start, end)) for i in range(start, end))
        places.update(i for start, end in self._phrases.find(_folded(tokens)) for i in range(start, end))
        return places

    def _is_name(self, word: str) -> bool:
        if word in self._names:
            return True
        usual = self._word_cases.usual_case(word) if self._word_cases and is_word(word) else None
        return usual is not None and len(word) > 1 and has_capital(usual) and word not in self._stop_words

    @cached_property
    def _names(self) -> set[str]:
        return {word for word, n in self._inside.items() if n > self._outside[word] and word not in self._stop_words}

    @cached_property
    def _phrases(self) -> Phrases:
        return Phrases(self._mentions)


Faults = Iterator[tuple[str, ...]]
"""The words of each fault that a check finds."""

_LONGEST_ACRONYM = 5
# What prompts, templates, markup and chat leave behind. Tokens of the corpus are never refused for it.
_MARKS = re.compile(r"[|<>{}\\^~_]+|#{2,}|={2,}|\*{2,}|<[^ ]*>|\[/?[A-Za-z]+\]|&[a-z]+;|\ufffd")
_PREFIXES = frozenset("BIESLU")  # of tags
_PHRASES = (
    ("citation", "needed"),
    ("clarification", "needed"),
    ("as", "an", "ai"),
    ("language", "model"),
    ("here", "is", "the", "sentence"),
    ("here", "is", "a", "sentence"),
)
_MAX_REPEATED = 2  # of a word that is no function word
_MAX_MARKS = 5  # of the same mark one after another
_PHRASE = 3  # words of a phrase that is not repeated


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence that is judged, and what is known about names."""

    sentence: Sentence
    names: NameEvidence
    recognition: Recognition | None = None

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the sentence."""
        return self.sentence.tokens

    @cached_property
    def outside(self) -> list[bool]:
        """For each token whether it is outside all mentions."""
        return list(self.sentence.outside_mask())

    @cached_property
    def is_shouted(self) -> bool:
        """Whether the sentence is written in capitals throughout."""
        return is_shouted(self.tokens)

    @cached_property
    def mentions(self) -> list[Mention]:
        """The contiguous mentions."""
        return [mention for mention in self.sentence.mentions if mention.is_contiguous]

    @cached_property
    def new_mentions(self) -> list[Mention]:
        """The contiguous mentions that the corpus does not have with this label."""
        return [m for m in self.mentions if not self.names.is_known(self.words(m), m.label)]

    @property
    def entities(self) -> Sequence[tuple[int, int, str]]:
        """The entities that a recogniser sees."""
        return self.recognition.entities if self.recognition is not None else ()

    @property
    def labelled_entities(self) -> list[tuple[int, int, str]]:
        """The entities of the kinds that the corpus labels."""
        return [entity for entity in self.entities if self.names.is_labelled_kind(entity[2])]

    def words(self, mention: Mention) -> tuple[str, ...]:
        """Return the tokens of a contiguous mention."""
        return self.tokens[mention.start : mention.end]

    def looks_like_name(self, i: int) -> bool:
        """Whether a token has a capital that only names have at its place."""
        return (
            not self.is_shouted
            and (self.names.has_telling_capital(self.tokens, i) or self._is_rare_proper_noun(i))
            and self.names.capital_tells(self.tokens[i])
            and not self.is_excused(i)
        )

    def _is_rare_proper_noun(self, i: int) -> bool:
        """Whether a recogniser takes a token with a capital for a proper noun, and no list has it as a word."""
        token = self.tokens[i]
        return (
            self.recognition is not None
            and self.recognition.pos[i] == "PROPN"
            and has_capital(token)
            and is_word(token)
            and not self.is_ordinary(i)
            and self.names.usual_case(token) is None
        )

    def is_excused(self, i: int) -> bool:
        """Whether a token is in an entity of a kind that the corpus does not label."""
        return any(start <= i < end and self.names.is_unlabelled_kind(kind) for start, end, kind in self.entities)

    def is_ordinary(self, i: int) -> bool:
        """Whether the training sentences have a token outside mentions; at the beginning of a sentence in any case."""
        token = self.tokens[i]
        return self.names.is_ordinary(token) or (is_beginning(self.tokens, i) and self.names.is_ordinary(token.lower()))

    def is_function_word(self, token: str) -> bool:
        """Whether a token is a function word, or has no letter or digit."""
        if not any(map(str.isalnum, token)):
            return True
        return token.lower() in self.names.stop_words and not (len(token) > 1 and token.isupper())


# ------------------------------------------------------------------------------------------------------------- mentions


def _new_mentions(is_faulty: Callable[[CheckedSentence, Mention], bool], judged: CheckedSentence) -> Faults:
    """Find the mentions that the corpus does not have and that have a fault."""
    return (judged.words(mention) for mention in judged.new_mentions if is_faulty(judged, mention))


def _has_unpaired_bracket(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a mention has an unpaired bracket."""
    return is_unbalanced(judged.words(mention))


def _is_ordinary(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a mention consists of function words, verbs or other ordinary words alone."""
    words, names = judged.words(mention), judged.names
    if all(map(judged.is_function_word, words)):
        return True
    content = [word for word in words if not judged.is_function_word(word)]
    if not any(map(names.is_name, content)):
        # A capital alone makes no name of a word that the corpus has in lower case outside mentions.
        is_seen = all(names.is_ordinary(word.lower()) and not names.word_labels(word) for word in content)
        if is_seen and names.capitalisation(mention.label) is True:
            return True
        is_common = all(names.is_common_word(word) and not _may_be_acronym(word) for word in content)
        if is_common and names.needs_names(mention.label) and not _is_in_entity(judged, mention):
            return True
    return all(names.is_ordinary(word) and not names.word_labels(word) for word in content)


def _is_in_entity(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a recogniser sees an entity that shares a word with a mention."""
    return any(start < mention.end and mention.start < end for start, end, _ in judged.entities)


def _may_be_acronym(word: str) -> bool:
    return word.isupper() and 1 < len(word) <= _LONGEST_ACRONYM


def cut_mentions(judged: CheckedSentence) -> Faults:
    """Find mentions that are a part of a longer name, or that begin or end with a word that mentions do not."""
    for mention in judged.mentions:
        if _overlaps_known(judged, mention) or _has_name_beside(judged, mention):
            yield judged.words(mention)
    for mention in judged.new_mentions:
        if _has_odd_edge(judged, mention) or _is_inside_entity(judged, mention):
            yield judged.words(mention)
    for one, other in pairwise(judged.mentions):
        if one.end == other.start and (one.label, other.label) not in judged.names.adjacent_labels:
            yield judged.tokens[one.start : other.end]


def _overlaps_known(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a known mention that is not labelled contains or crosses a mention."""
    for start, end in judged.names.known_spans(judged.tokens):
        is_apart = end <= mention.start or mention.end <= start
        if not is_apart and not any(m.start <= start and end <= m.end for m in judged.mentions):
            return True
    return False


def _has_name_beside(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a word beside a mention with a capital has a capital that only names have."""
    neighbours = [i for i in (mention.start - 1, mention.end) if 0 <= i < len(judged.tokens) and judged.outside[i]]
    return any(map(has_capital, judged.words(mention))) and any(map(judged.looks_like_name, neighbours))


def _has_odd_edge(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a mention begins or ends with a function word or a mark as those of the corpus do not."""
    words, names = judged.words(mention), judged.names
    first, last = words[0], words[-1]
    return len(words) > 1 and (
        (judged.is_function_word(first) and not has_capital(first) and first.casefold() not in names.edges[0])
        or (judged.is_function_word(last) and not has_capital(last) and last.casefold() not in names.edges[1])
    )


def _is_inside_entity(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether an entity contains a mention and further words with a capital, which are no ordinary words."""
    for start, end, _ in judged.labelled_entities:
        if start <= mention.start and mention.end <= end:
            rest = [i for i in range(start, end) if not mention.start <= i < mention.end and judged.outside[i]]
            if any(has_capital(judged.tokens[i]) and not judged.is_ordinary(i) for i in rest):
                return True
    return False


def joined_mentions(judged: CheckedSentence) -> Faults:
    """Find mentions of two known names that neither the corpus nor a recogniser has as one."""
    entities = {(start, end) for start, end, _ in judged.entities}
    for m in judged.new_mentions:
        if (m.start, m.end) not in entities and judged.names.is_two_names(judged.words(m), m.label):
            yield judged.words(m)


def _is_odd(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a mention looks as mentions of its type do not."""
    words, names = judged.words(mention), judged.names
    content = [word for word in words if is_word(word) and not judged.is_function_word(word)]
    labels = [names.word_labels(word) for word in content]
    cased = [word for word in content if has_letter(word)]
    habit = names.capitalisation(mention.label) if not judged.is_shouted else None
    return (
        bool(names.labels_of(words))  # always with other labels
        or bool(habit is True and cased and not has_capital(cased[0]))
        or (habit is False and any(map(has_capital, cased)))
        or (bool(labels) and all(of_word and not of_word[mention.label] for of_word in labels))
        or len({word.casefold() for word in content}) < len(content)  # the same word twice
        or _is_otherwise_recognized(judged, mention)
    )


def _is_otherwise_recognized(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a recogniser sees a part of speech or an entity that mentions of the type are not."""
    if judged.recognition is None:
        return False
    names, last = judged.names, judged.recognition.pos[mention.end - 1]
    if not names.may_end_with(mention.label, last):
        return True
    return names.is_likelier_other(judged.words(mention), mention.label) or any(
        (start, end) == (mention.start, mention.end) and names.contradicts(kind, mention.label)
        for start, end, kind in judged.entities
    )


# ----------------------------------------------------------------------------------------------- words outside mentions


def unlabelled_names(judged: CheckedSentence) -> Faults:
    """Find names outside mentions."""
    tokens, outside, names = judged.tokens, judged.outside, judged.names
    for start, end in names.known_spans(tokens):
        if all(outside[start:end]):
            yield tokens[start:end]
    for i, token in enumerate(tokens):
        if outside[i] and not judged.is_ordinary(i) and (judged.looks_like_name(i) or _is_known_name(judged, i)):
            yield (token,)
    for start, end, _ in judged.labelled_entities:
        words = [i for i in range(start, end) if not judged.is_ordinary(i) and not tokens[i].startswith(NOT_WORDS)]
        is_name = not names.writes_names_with_capital or any(has_capital(tokens[i]) for i in words)
        if all(outside[start:end]) and words and is_name:
            yield tokens[start:end]


def _is_known_name(judged: CheckedSentence, i: int) -> bool:
    """Whether a word list has a token as a name, or the corpus has it as a part of one."""
    token, names = judged.tokens[i], judged.names
    if not names.lists_tell_names or token.lower() in judged.names.stop_words or judged.is_excused(i):
        return False
    return judged.names.is_name(token) or (has_capital(token) and bool(names.word_labels(token)))


def label_names(judged: CheckedSentence) -> Faults:
    """Find names of labels that no training sentence has as a word."""
    forms = {part for label in judged.names.labels for part in (label, *re.split(r"[-_/]", label))}
    abbreviations = {form for form in forms if has_capital(form)}
    forms |= {change(form) for form in forms for change in (str.lower, str.upper, str.capitalize)}
    for token, after in zip(judged.tokens, (*judged.tokens[1:], ""), strict=True):
        is_known = token.casefold() in judged.names.vocabulary
        if (token in abbreviations and not is_known) or (token in forms and after in (":", "|")):
            yield (token,)


def markup(judged: CheckedSentence) -> Faults:
    """Find marks of a prompt, a template, markup or chat that no training sentence has."""
    for token in judged.tokens:
        prefix, _, label = token.partition("-")
        is_mark = _MARKS.fullmatch(token) or (prefix in _PREFIXES and label in judged.names.labels)
        if is_mark and token.casefold() not in judged.names.vocabulary:
            yield (token,)
    lower = tuple(token.lower() for token in judged.tokens)
    for phrase in _PHRASES:
        if any(lower[i : i + len(phrase)] == phrase for i in range(len(lower) - len(phrase) + 1)):
            yield phrase


def repetitions(judged: CheckedSentence) -> Faults:
    """Find words, phrases and marks that are repeated as stuck models do."""
    words = [token.casefold() for token in judged.tokens]
    counts = Counter(w for w in words if is_word(w) and len(w) > 1 and w not in judged.names.stop_words)
    yield from ((word,) for word, count in counts.items() if count > _MAX_REPEATED)
    phrases = Counter(tuple(words[i : i + _PHRASE]) for i in range(len(words) - _PHRASE + 1))
    yield from (phrase for phrase, count in phrases.items() if count > 1 and sum(map(is_word, phrase)) > 1)
    yield from ((a, b) for a, b in pairwise(words) if a == b and is_word(a))
    for mark, run in groupby(words):
        if not is_word(mark) and sum(1 for _ in run) > _MAX_MARKS:
            yield (mark,)


def unpaired_brackets(judged: CheckedSentence) -> Faults:
    """Find whether a bracket is opened and not closed, or closed and not opened."""
    brackets = tuple(token for token in judged.tokens if token in BRACKETS or token in BRACKETS.values())
    if is_unbalanced(brackets):
        yield brackets


CHECKS: dict[str, Callable[[CheckedSentence], Faults]] = {
    "the name of a label in the text": label_names,
    "traces of a prompt or of markup": markup,
    "unpaired brackets": unpaired_brackets,
    "repeated words": repetitions,
    "a mention with unpaired brackets": partial(_new_mentions, _has_unpaired_bracket),
    "a mention of ordinary words": partial(_new_mentions, _is_ordinary),
    "a mention that cuts a name": cut_mentions,
    "a mention of two names": joined_mentions,
    "a mention in a shape that its type does not have": partial(_new_mentions, _is_odd),
    "a name without a label": unlabelled_names,
}
"""The checks by the reason for which they refuse a sentence, in the order in which they are made."""

STYLE_CHECKS = ("unpaired brackets", "repeated words")
"""Checks that are not made where many training sentences have the fault."""


# The sources, by the name of the parameter: what they are, and what is not found without them.
_CALLED = {"word_cases": "list of words", "entity_recognizer": "recogniser"}
_MISSED = {
    "word_cases": "names without a capital of their own and common words in mentions",
    "entity_recognizer": "names that no capital tells and mentions of a wrong type or part of speech",
}
_SEEN = 1 / 3  # share of the mentions of a type from which on a recogniser knows the type
_ENOUGH_TO_JUDGE = 4  # mentions of a type by which that is judged
_SHOWN = 8  # types in a note
_MAX_STYLE = 0.1  # share of training sentences with a fault from which on it is a matter of style
_SAMPLE = 2000  # training sentences by which sources are judged


@dataclass(kw_only=True, eq=False)
class LabelGuard(Filter):
    """Keep sentences without unlabelled names and without labels on words that are no names.

    The guard learns from the training sentences how names are written: which capitals tell them, which mentions there
    are, and which words are ordinary. It refuses sentences with a name outside mentions, with a mention that cuts a
    longer name, that consists of ordinary words or that has a shape that its type does not have, and with traces of
    prompts, templates, markup and stuck models. Faults that the source has as well are not counted. It never changes a
    sentence.

    Word lists and models count as far as the training sentences agree with them. By default those of the starter set
    are used that are prepared on this machine, if the corpus is in their language; provenance names them.

    Args:
        word_cases: the usual case of words: a `WordCases` or its name, or a folder with the tokenizer of a language
            model; ``"auto"`` for the starter models that are prepared; none for no such list.
        entity_recognizer: a recogniser of entities, of kinds of its own: an `EntityRecognizer` or its name, or a
            pipeline of spaCy; ``"auto"`` and none as for `word_cases`.

    Example:
        >>> from entaug import Mention
        >>> gold = Sentence("She met Ada in Rome".split(), [Mention("PER", [(2, 3)]), Mention("LOC", [(4, 5)])])
        >>> new = Sentence("She met Ada in Oslo".split(), [Mention("PER", [(2, 3)])])
        >>> LabelGuard(word_cases=None, entity_recognizer=None).fit([gold]).judge([new], [gold])
        ['a name without a label']
    """

    name = "guard"
    summary = "no name without a label, and no label on words that are no name"
    reasons = tuple(CHECKS)

    word_cases: WordCases | str | None = AUTO
    entity_recognizer: EntityRecognizer | str | None = AUTO
    word_cases_: WordCases | None = field(init=False, repr=False)
    entity_recognizer_: EntityRecognizer | None = field(init=False, repr=False)

    def _check(self) -> None:
        for kind in _CALLED:
            value = getattr(self, kind)
            if value is not None and value != AUTO:
                check_name(kind, value)

    @property
    def uses_models(self) -> bool:
        return True

    def _load(self) -> None:
        for kind in _CALLED:
            value = getattr(self, kind)
            setattr(self, f"{kind}_", None if value in (None, AUTO) else resolve(kind, value))

    def _fit(self, gold: Sequence[Sentence]) -> None:
        gold = sorted(gold, key=lambda sentence: sentence.fingerprint())  # the order of a corpus changes nothing
        sample = gold[:: max(1, len(gold) // _SAMPLE)]
        language = LanguageProfile(sample).language
        is_served = language in _served_languages()
        for kind in _CALLED:
            if getattr(self, kind) == AUTO:
                setattr(self, f"{kind}_", resolve_starter(kind) if is_served else None)
        self._language = language
        words = stop_words(language)
        self.name_evidence = NameEvidence(gold, self.word_cases_, words)
        recognizer = self.entity_recognizer_
        if recognizer is not None and self.word_cases_ is not None and not self.name_evidence.has_capitals:
            recognizer = TruecasedRecognizer(recognizer, self.word_cases_)
        self.name_evidence.learn(sample, recognizer)
        self.uncased_names = UncasedNames(gold, self.word_cases_, recognizer, words)
        judged = [CheckedSentence(sentence, self.name_evidence) for sentence in sample]
        self._checks = {
            reason: check
            for reason, check in CHECKS.items()
            if reason not in STYLE_CHECKS or sum(any(check(one)) for one in judged) <= _MAX_STYLE * len(judged)
        }

    def model_notes(self) -> list[str]:
        notes = super().model_notes()
        if not self.is_fitted:
            return notes
        is_served = self._language in _served_languages()
        language = language_name(self._language) if self._language else "the language of the corpus, which is unknown"
        for kind, called in _CALLED.items():
            if getattr(self, kind) != AUTO or getattr(self, f"{kind}_") is not None:
                continue
            reason, remedy = f"there is no {called} for {language}", f"name one: `filters='guard:{kind}=NAME'`"
            if is_served:
                reason = f"the {called} {STARTERS[kind]} cannot be used"
                remedy = f"run: {preparing_command(kind)}"
            notes.append(f"the label guard does not find {_MISSED[kind]}, because {reason}; {remedy}")
        return [*notes, *self._note_on_unknown_types()]

    def _note_on_unknown_types(self) -> list[str]:
        if self.entity_recognizer_ is None:
            return []
        names = self.name_evidence
        counts = {label: (names.kinds_of_label[label].total(), n) for label, n in names.mentions_of_label.items()}
        unknown = [
            f"{label} (finds {found} of {total} mentions)"
            for label, (found, total) in sorted(counts.items())
            if total >= _ENOUGH_TO_JUDGE and found < _SEEN * total
        ]
        if not unknown:
            return []
        others = f" and {len(unknown) - _SHOWN} other types" if len(unknown) > _SHOWN else ""
        types = "types" if len(unknown) > 1 else "type"
        note = f"the recogniser of the label guard, {self.entity_recognizer_.name}, knows little of the {types} "
        return [f"{note}{', '.join(unknown[:_SHOWN])}{others}: it misses such names without a label"]

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        judged = self._recognized(sentences)
        reasons = [self._first_fault(one) for one in judged]
        faulty = {i: source for i, source in enumerate(sources) if reasons[i] and source is not None}
        for i, before in zip(faulty, self._recognized(list(faulty.values())), strict=True):
            reasons[i] = self._first_fault(judged[i], before)
        return reasons

    def _recognized(self, sentences: Sequence[Sentence]) -> list[CheckedSentence]:
        names = self.name_evidence
        return [
            CheckedSentence(sentence, names, recognition)
            for sentence, recognition in zip(sentences, names.recognize(sentences), strict=True)
        ]

    def _first_fault(self, judged: CheckedSentence, before: CheckedSentence | None = None) -> str | None:
        """The reason of the first fault that the source has not as well."""
        for reason, check in self._checks.items():
            if (faults := set(check(judged))) and (before is None or faults.difference(check(before))):
                return reason
        return None


def _served_languages() -> frozenset[str]:
    """The languages that all starter sources serve."""
    served = [served_languages(LoadedModel(kind, STARTERS[kind], None, "")) for kind in _CALLED]
    return frozenset.intersection(*(languages or frozenset() for languages in served))


def name_evidence(guard: LabelGuard | None, corpus: Iterable[Sentence]) -> NameEvidence:
    """Return what is known about names, for methods that choose words."""
    return guard.name_evidence if guard else NameEvidence(list(corpus))
