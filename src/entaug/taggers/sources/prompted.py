"""An instruct model as a source of labels: asked by a prompt, and a second time where it is not sure."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from entaug.backends.config import TrainingProgress
from entaug.backends.instruct import HOW_TO_NAME, ChatRequest, InstructModel, Message
from entaug.backends.prompts import Prompt, packaged_prompt
from entaug.backends.resolve import resolve
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.spacing import PRINTED_FORMS
from entaug.core.tags import flatten
from entaug.core.words import label_in_words
from entaug.errors import ParameterError
from entaug.taggers.sources import SourceTagger

_EXAMPLES = 4
_MOST_TOKENS = 400  # of an answer
_NOTHING = "NONE"
_QUOTES = "\"'“”"
_LINE = re.compile(
    r"^\s*(?:[-*•]\s+|(?P<number>\d+)(?P<mark>[.)]\s+))?(?P<text>.+?)\s*\|\s*(?P<label>[^|]*?)\s*(?P<unsure>\?)?\s*$"
)

NOT_THERE = "words that do not stand in the sentence"
NO_LINE = "no line of the form TEXT | TYPE"


class _Found(NamedTuple):
    """A mention of an answer: its words without white space as a key, and whether to ask again."""

    text: str
    label: str
    is_unsure: bool


class PromptedTagger(SourceTagger):
    """An instruct model that is shown the types with their descriptions, and the most similar gold sentences."""

    # A mention counts only if its words stand in the sentence, from the beginning of a word to the end of one; it is
    # then marked wherever they stand. The model is asked a second time about a mention that it marks as unsure, to
    # which it gives two types or none of the corpus, or whose words the gold sentences label otherwise.

    prefix = "chat"
    descriptions: Mapping[str, str]

    def __init__(self, name: str | InstructModel) -> None:
        self._given_model = name
        super().__init__(name if isinstance(name, str) else name.name)

    def _load(self, model: str) -> None:
        generator = resolve("generator", self._given_model)
        if not isinstance(generator, InstructModel):
            raise ParameterError(f"{model} is not an instruct model", parameter="tagger", remedy=HOW_TO_NAME)
        self.model = generator
        self.name = f"chat:{generator.name}"
        self.descriptions = {}
        self.rejected: Counter[str] = Counter()
        self.asked_again = self.changed = 0
        self._labels: list[str] = []
        self._gold: list[Sentence] = []
        self._prompts = packaged_prompt("label"), packaged_prompt("label-check")

    def _choose_labels(self, gold_labels: Sequence[str]) -> None:
        self._labels = sorted({*gold_labels, *self.descriptions})

    def fit(
        self,
        train: Iterable[Sentence],
        dev: Iterable[Sentence] | None = None,
        config: Any = None,
        progress: TrainingProgress | None = None,
        augmented: Iterable[Sentence] = (),
    ) -> Self:
        self._gold = sorted(train, key=lambda sentence: sentence.fingerprint())
        super().fit(self._gold, dev, config, progress, augmented)
        self._measured = self.notes
        return self

    # --------------------------------------------------------------------------------------------------------- asking

    def opinions(self, sentences: Sequence[Sentence]) -> list[list[Mention] | None]:
        shown = _Examples(self._gold)
        values = [
            {"labels": self._described(), "sentence": detokenize(s.tokens), "examples": shown.most_similar(s.tokens)}
            for s in sentences
        ]
        first, second = self._prompts
        answers = self.model.answer([_request(first, one) for one in values])
        found = [
            None if answer.failure is not None and not answer.text else self._read(answer.text, sentence)
            for answer, sentence in zip(answers, sentences, strict=True)
        ]
        doubts = [(i, one) for i, of_sentence in enumerate(found) for one in of_sentence or () if one.is_unsure]
        # Two labels of the same words are one question.
        questions = list(dict.fromkeys((i, one.text) for i, one in doubts))
        requests = [_request(second, {**values[i], "mention": text}) for i, text in questions]
        decided = {
            question: self._label_of(answer.text)
            for question, answer in zip(questions, self.model.answer(requests) if requests else (), strict=True)
        }
        self.asked_again += len(questions)
        self.changed += sum(decided[i, one.text] != one.label for i, one in doubts)
        results: list[list[Mention] | None] = []
        for i, (sentence, of_sentence) in enumerate(zip(sentences, found, strict=True)):
            if of_sentence is None:
                results.append(None)
                continue
            labels = {one.text: decided.get((i, one.text), one.label) for one in of_sentence}
            spans = _spans(sentence.tokens, labels)
            results.append(
                flatten([Mention(labels[text], [span]) for text, span in spans if labels[text]], "outermost")
            )
        self.notes = [*self._measured, *self._told()]
        return results

    _measured: Sequence[str] = ()

    def _told(self) -> list[str]:
        notes = [f"{self.name}: left out: {n:,} ({why})" for why, n in sorted(self.rejected.items())]
        if self.asked_again:
            notes.append(f"{self.name}: {self.asked_again:,} second questions, {self.changed:,} labels changed")
        if self.model.remote_host:
            notes.append(f"{self.name}: sentences are sent to {self.model.remote_host}")
        return notes + [f"{self.name}: {line}" for line in self.model.usage.describe()]

    def _described(self) -> str:
        words = {label: self.descriptions.get(label) or label_in_words(label) for label in self._labels}
        return "\n".join(label if text == label else f"{label}: {text}" for label, text in words.items())

    # -------------------------------------------------------------------------------------------------------- reading

    def _read(self, answer: str, sentence: Sentence) -> list[_Found]:
        """The mentions of an answer whose words stand in the sentence."""
        found: list[_Found] = []
        gold = _gold_labels(self._gold)
        for place, line in enumerate(filter(None, map(str.strip, answer.splitlines())), start=1):
            if line.strip(" .").upper() == _NOTHING:
                continue
            if not (match := _LINE.match(line)):
                self.rejected[NO_LINE] += 1
                continue
            text, bare = match["text"], match["text"].strip(_QUOTES)
            written = [bare, text] if {text[0], text[-1]} <= set(_QUOTES) else [text, bare]
            if match["number"] and match["number"] != str(place):  # no number of the line: "3. Liga"
                written.insert(0, match["number"] + match["mark"] + text)
            text = next((one for one in written if _spans(sentence.tokens, [one])), "")
            if not text:
                self.rejected[NOT_THERE] += 1
                continue
            label = self._label_of(match["label"])
            known = gold.get("".join(text.split()).casefold(), ())
            is_unsure = bool(match["unsure"]) or not label or bool(known and label not in known)
            found.append(_Found(text, label, is_unsure))
        labels = defaultdict(set)
        for one in found:
            labels[one.text].add(one.label)
        return [one._replace(is_unsure=one.is_unsure or len(labels[one.text]) > 1) for one in found]

    def _label_of(self, text: str) -> str:
        """The type that an answer names; "" for none."""
        word = _word(text.strip().split("\n")[0])
        return next((label for label in self._labels if _word(label) == word), "")


def _word(label: str) -> str:
    return label.strip(" .:\"'").casefold()


def _request(prompt: Prompt, values: Mapping[str, str]) -> ChatRequest:
    system, user = prompt.fill(values)
    messages = [Message("system", system)] if system else []
    return ChatRequest((*messages, Message("user", user)), 0, _MOST_TOKENS, 0.0)


def _spans(tokens: Sequence[str], texts: Iterable[str]) -> list[tuple[str, tuple[int, int]]]:
    """Where texts stand, from the beginning of a word to the end of one."""
    keys = {"".join(text.split()): text for text in texts}
    longest = max(map(len, keys), default=0)
    words = [PRINTED_FORMS.get(token, token) for token in tokens]
    found = []
    for start in range(len(words)):
        key = ""
        for end in range(start, len(words)):
            key += "".join(words[end].split())
            if len(key) > longest:
                break
            if key in keys:
                found.append((keys[key], (start, end + 1)))
    return found


def _gold_labels(gold: Sequence[Sentence]) -> dict[str, set[str]]:
    """The labels of the words of gold mentions."""
    labels: defaultdict[str, set[str]] = defaultdict(set)
    for sentence in gold:
        for mention in sentence.mentions:
            labels["".join(sentence.mention_tokens(mention)).casefold()].add(mention.label)
    return labels


class _Examples:
    """Gold sentences by the rare words that they share with another one."""

    def __init__(self, gold: Sequence[Sentence]) -> None:
        self._gold = gold
        self._words = [set(map(str.lower, sentence.tokens)) for sentence in gold]
        counts = Counter(word for words in self._words for word in words)
        self._weights = {word: math.log((1 + len(gold)) / n) for word, n in counts.items()}
        self._norms = [math.sqrt(sum(self._weights[word] ** 2 for word in words)) or 1.0 for words in self._words]

    def most_similar(self, tokens: Sequence[str]) -> str:
        """The most similar sentences with their mentions, as an answer has them; never the sentence itself."""
        own = set(map(str.lower, tokens)) & self._weights.keys()
        scores = [
            (sum(self._weights[word] ** 2 for word in own & words) / norm, i)
            for i, (words, norm) in enumerate(zip(self._words, self._norms, strict=True))
            if self._gold[i].tokens != tuple(tokens)
        ]
        best = sorted(scores, key=lambda one: (-one[0], one[1]))[:_EXAMPLES]
        return "\n\n".join(_shown(self._gold[i]) for _, i in reversed(best)) + ("\n" if best else "")


def _shown(sentence: Sentence) -> str:
    lines = [f"{detokenize(sentence.mention_tokens(m))} | {m.label}" for m in sentence.mentions if m.is_contiguous]
    return "\n".join([f"Sentence: {detokenize(sentence.tokens)}", *(lines or [_NOTHING])])
