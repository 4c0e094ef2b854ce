"""What word lists and models tell about names, as far as the training sentences agree with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from entaug.backends.name_protocols import EntityRecognizer, Recognition, WordCases
from entaug.backends.protocols import match_case
from entaug.core.data import Sentence
from entaug.core.label_names import label_in_words
from entaug.core.words import is_word
from entaug.filters.label_guard.name_usage import NameUsage, has_capital

__all__ = ["NameEvidence"]

_SHARE = 0.5  # of the entities of a kind that are mentions, so that others of this kind must be, too
_RARE = 0.25
_ENOUGH, _MANY, _LIKELIER = 3, 4, 2
# An unseen word with a capital is taken for a name if this share of the corpus' words of its kind is in mentions. Over
# all kinds the share is about 0.7 in English news, 0.4 in tweets, and 0.1 in biomedical text.
_CAPITALS_TELL = 0.25
_EXCEPTION = 0.1  # share of what counts as an exception
_EXCEPTIONS = 0.25  # share of the mentions of a type that a rule about them may not hold for


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
