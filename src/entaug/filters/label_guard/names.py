"""What the training sentences, word lists and models tell about names, and which words are none."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from entaug.backends.protocols import EntityRecognizer, Recognition, WordCases, match_case
from entaug.core.data import Sentence
from entaug.core.mentions import Span
from entaug.core.words import is_word, label_in_words

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
_CACHE_SIZE = 100_000
_DECIDED = 2000  # words after which a corpus with capitals is not counted any further


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
        self._by_first = _by_first_word(self._mentions)
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
            for start, end in _occurrences(sentence.tokens, self._by_first):
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
        for start, end in _occurrences(tokens, self._by_first):
            words = tuple(tokens[start:end])
            if len(words) > 1 or words in self._as_written or not self.is_ordinary(words[0].lower()):
                yield start, end

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


def _by_first_word(mentions: Iterable[tuple[str, ...]]) -> dict[str, list[tuple[str, ...]]]:
    by_first: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for words in sorted(mentions):
        by_first[words[0]].append(words)
    return dict(by_first)


def _occurrences(tokens: Sequence[str], by_first: Mapping[str, Sequence[tuple[str, ...]]]) -> Iterator[Span]:
    """Where mentions, listed by their first words, stand in a text, without regard to case."""
    folded = _folded(tokens)
    for start, first in enumerate(folded):
        for words in by_first.get(first, ()):
            if folded[start : start + len(words)] == words:
                yield start, start + len(words)


def _folded(tokens: Iterable[str]) -> tuple[str, ...]:
    return tuple([token.casefold() for token in tokens])


class NameEvidence:
    """Name evidence from word lists and models."""

    # A source counts only as far as the training sentences agree: the kinds of entities that are mostly mentions there,
    # and types whose mentions are mostly nouns.

    def __init__(
        self,
        gold: Sequence[Sentence] = (),
        name_usage: NameUsage | None = None,
        word_cases: WordCases | None = None,
        recognitions: Sequence[Recognition] | None = None,
        recognizer: EntityRecognizer | None = None,
    ) -> None:
        self._recognizer = recognizer
        self._alone: dict[tuple[str, ...], Recognition] = {}
        self._labels_alone: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._kinds_alone: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._name_usage = name_usage or NameUsage(gold)
        self._word_cases = word_cases
        self._capitals: defaultdict[str, Counter[bool]] = defaultdict(Counter)
        for word, is_inside in self._name_usage.capitalised_words():
            self._capitals[self._kind_of_word(word)][is_inside] += 1
            self._capitals[""][is_inside] += 1
        self._labels_of_kind: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._kinds_of_label: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._kinds: Counter[str] = Counter()
        self._kinds_in_mentions: Counter[str] = Counter()
        mentions: Counter[str] = Counter()
        common: Counter[str] = Counter()
        self._heads: defaultdict[str, Counter[str]] = defaultdict(Counter)  # parts of speech of the last words
        for n, sentence in enumerate(gold):
            recognition = recognitions[n] if recognitions is not None else None
            for mention in sentence.mentions:
                words = [word for word in sentence.mention_tokens(mention) if is_word(word)]
                mentions[mention.label] += 1
                common[mention.label] += bool(words) and all(map(self.is_common_word, words))
                kind = self.kind_alone(sentence.mention_tokens(mention))
                self._labels_alone[kind][mention.label] += 1
                self._kinds_alone[mention.label][kind] += 1
                if recognition is not None:
                    self._heads[mention.label][recognition.pos[mention.end - 1]] += 1
            if recognition is not None:
                self._learn_kinds(sentence, recognition)
        self._mentions = mentions
        self._of_common_words = {label for label, n in mentions.items() if common[label] > _EXCEPTIONS * n}

    def _learn_kinds(self, sentence: Sentence, recognition: Recognition) -> None:
        outside = list(sentence.outside_mask())
        by_span = {(m.start, m.end): m.label for m in sentence.mentions if m.is_contiguous}
        for start, end, kind in recognition.entities:
            self._kinds[kind] += 1
            self._kinds_in_mentions[kind] += not all(outside[start:end])
            label = by_span.get((start, end), "")
            self._labels_of_kind[kind][label] += 1
            self._kinds_of_label[label][kind] += 1

    # ---------------------------------------------------------------------------------------------------------- words

    def usual_case(self, word: str) -> str | None:
        """Return a word in its usual case within a sentence."""
        return self._name_usage.usual_case(word) or (self._word_cases.usual_case(word) if self._word_cases else None)

    def is_name(self, word: str) -> bool:
        """Whether a word is usually written with a capital."""
        usual = self._word_cases.usual_case(word) if self._word_cases else None
        return usual is not None and len(usual) > 1 and has_capital(usual) and is_word(word)

    def capital_tells(self, word: str) -> bool:
        """Whether most words like this one that have a capital within a sentence are in mentions."""
        counts, all_ = self._capitals[self._kind_of_word(word)], self._capitals[""]
        if not all_:
            return False
        prior = all_[True] / all_.total()  # for kinds with few words
        return counts[True] + prior >= _CAPITALS_TELL * (counts.total() + 1)

    def _kind_of_word(self, word: str) -> str:
        if len(word) > 1 and word.isupper():
            return "capitals"
        return "name" if self.is_name(word) else "common word" if self.is_common_word(word) else "unknown"

    def is_common_word(self, word: str) -> bool:
        """Whether a word is usually written without a capital."""
        usual = self._word_cases.usual_case(word) if self._word_cases else None
        return usual is not None and not has_capital(usual)

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
        usual = self.usual_case(word) if self._name_usage.has_capitals and word.islower() else None
        if usual is None or not has_capital(usual):
            usual = match_case([word], example)[0]
        return usual[:1].upper() + usual[1:] if is_first and has_capital(example) else usual

    def is_plain(self, word: str) -> bool:
        """Whether a word can stand outside mentions: not a name, and not only in mentions of the corpus."""
        name_usage = self._name_usage
        if name_usage.is_ordinary(word):
            return True
        return not (name_usage.lists_tell_names and self.is_name(word)) and not name_usage.word_labels(word)

    def fits(self, word: str, label: str, example: str) -> bool:
        """Whether a word can stand for one of a mention."""
        name_usage = self._name_usage
        labels = name_usage.word_labels(word)
        if labels:
            if not labels[label]:
                return False
        elif self.is_likelier_other([self.cased(word, example)], label):
            return False
        if not self._is_common(word) or name_usage.labels_of([word])[label]:
            return True
        return self._is_common(example)

    def keeps_type(self, words: Sequence[str], i: int, new: str, label: str) -> bool:
        """Whether a mention is still one of its type, as a whole, if a word of it is replaced."""
        name_usage, old = self._name_usage, words[i]
        changed = [*words[:i], new, *words[i + 1 :]]
        is_mention, is_of_type = bool(name_usage.labels_of(changed)[label]), bool(name_usage.word_labels(new)[label])
        if is_mention:
            may_be = True
        elif is_of_type:
            may_be = name_usage.may_stand(changed, i, label)
        else:
            may_be = (
                not name_usage.is_shared(old, label) and self._is_like_name(old, label) and self._may_name(new, label)
            )
        # What a recogniser is asked comes last, as that takes longest.
        if not may_be or (old.islower() and old in name_usage.stop_words) or not self.fits(new, label, old):
            return False
        if is_of_type:
            return is_mention or self._pos_alone(changed)[i] == self._pos_alone(words)[i]
        return self.kind_alone(words) in ("", self.kind_alone(changed))

    def _may_name(self, word: str, label: str) -> bool:
        """Whether a word that a model predicts, in whatever case, is a name by itself as far as a list tells."""
        return self._word_cases is None or self._is_like_name(self._word_cases.usual_case(word) or "", label)

    def _is_like_name(self, word: str, label: str) -> bool:
        """Whether a word is a name by itself; abbreviations are not, as they can stand for anything."""
        if len(word) > 1 and (word.isupper() or (self.usual_case(word) or "").isupper()):
            return False
        is_unknown = not self.is_common_word(word) and has_capital(word)
        return self.is_name(word) or (is_unknown and self._name_usage.capitalisation(label) is True)

    def _is_common(self, word: str) -> bool:
        """Whether a word is usually written without a capital, or the corpus has it so outside mentions."""
        return self.is_common_word(word) or self._name_usage.is_ordinary(word.lower())

    # ------------------------------------------------------------------------------------------------------- entities

    def entities(self, recognition: Recognition | None) -> list[tuple[int, int, str]]:
        """Return the entities of the kinds that the corpus labels."""
        return [
            entity
            for entity in self.all_entities(recognition)
            if self._kinds_in_mentions[entity[2]] >= _SHARE * self._kinds[entity[2]] > 0
        ]

    def recognized_mentions(self) -> dict[str, tuple[int, int]]:
        """Count for each type the mentions that a recogniser sees as an entity, of whatever kind, and all."""
        return {
            label: (self._kinds_of_label.get(label, Counter()).total(), total)
            for label, total in self._mentions.items()
        }

    @staticmethod
    def all_entities(recognition: Recognition | None) -> list[tuple[int, int, str]]:
        """Return all entities of a sentence."""
        return list(recognition.entities) if recognition is not None else []

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

    def is_known(self, words: Sequence[str], label: str) -> bool:
        """Whether the corpus has a mention with its label."""
        return bool(self._name_usage.labels_of(words)[label])

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
        counts.update({name: _MANY for name in self._name_usage.labels if label_in_words(name) == label_in_words(kind)})
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
        counts, of_label = self._labels_of_kind.get(kind, Counter()), self._kinds_of_label.get(label, Counter())
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
        """See `entaug.backends.name_protocols.EntityRecognizer.recognize`."""
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
        self._places: dict[tuple[str, ...], frozenset[int]] = {}
        for sentence in corpus:
            self.add(sentence)

    def use_list(self, word_cases: WordCases | None) -> None:
        """Use a list of words."""
        self._word_cases = word_cases
        self.list_name = word_cases.name if word_cases is not None else None

    def add(self, sentence: Sentence) -> None:
        """Count a sentence of the corpus."""
        if self._total >= _DECIDED and not self.is_needed:
            return
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
        if len(self._places) > _CACHE_SIZE:
            self._places.clear()
        new = list(dict.fromkeys(s.tokens for s in sentences if s.tokens not in self._places))
        found = self._recognizer.recognize(new) if self._recognizer and new else [None] * len(new)
        for tokens, recognition in zip(new, found, strict=True):
            self._places[tokens] = frozenset(self._of_sentence(tokens, recognition))
        return [self._places[sentence.tokens] for sentence in sentences]

    def _of_sentence(self, tokens: Sequence[str], recognition: Recognition | None) -> set[int]:
        places = {i for i, word in enumerate(_folded(tokens)) if self._is_name(word)}
        spans = [(start, end) for start, end, _ in (recognition.entities if recognition else ())]
        places.update(i for start, end in spans if not places.isdisjoint(range(start, end)) for i in range(start, end))
        places.update(i for start, end in _occurrences(tokens, self._by_first) for i in range(start, end))
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
    def _by_first(self) -> dict[str, list[tuple[str, ...]]]:
        return _by_first_word(self._mentions)
