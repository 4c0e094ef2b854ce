"""Planted errors of labels: how well `entaug audit` finds them, beside cleanlab with the same probabilities.

    .venv/bin/python benchmarks/label_errors.py find --rates 5 2 10
    .venv/bin/python benchmarks/label_errors.py clean crossner-politics ncbi-disease
    .venv/bin/python benchmarks/label_errors.py report

A share of the mentions of a training set gets an error each, a quarter of them of each kind: a boundary that is off by
a neighbouring word, the label that is most like it, a mention that is left out, or a mention where there is none (words
that are a mention elsewhere, else a noun phrase). A tagger that was trained on the other folds of this set gives
probabilities to the tags of each fold. From these, which are kept in ``--folder``, entaug and cleanlab rank sentences
and words. Records are lines of ``results/label-errors``; finished ones are not repeated. cleanlab is an extra that
nothing else needs: ``pip install cleanlab``.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import entaug
from entaug.core.data import Sentence
from entaug.core.mentions import Mention

DATA = Path(os.environ.get("ENTAUG_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
RESULTS = Path(__file__).parent / "results"
KINDS = ("boundary", "type", "missing", "spurious")


@dataclass(frozen=True)
class Source:
    """A corpus: files of its training and of its test part, and how many sentences are drawn.

    Args:
        train: files below the data folder.
        test: a file below the data folder.
        size: the number of training sentences that are drawn.
        language: the language, which tells its nouns from other words by lists of stop words.
    """

    train: tuple[str, ...]
    test: str
    size: int
    language: str = "en"


CORPORA = {
    "crossner-politics": Source(
        ("crossner/politics/train.txt", "crossner/politics/dev.txt"), "crossner/politics/test.txt", 600
    ),
    "wnut17": Source(("wnut17/wnut17train.conll",), "wnut17/emerging.test.annotated", 1000),
    "crossner-science": Source(
        ("crossner/science/train.txt", "crossner/science/dev.txt"), "crossner/science/test.txt", 600
    ),
    "crossner-ai": Source(("crossner/ai/train.txt", "crossner/ai/dev.txt"), "crossner/ai/test.txt", 450),
    "ncbi-disease": Source(("ncbi-disease/train.tsv",), "ncbi-disease/test.tsv", 600),
    "bc2gm": Source(("bc2gm/train.tsv",), "bc2gm/test.tsv", 600),
    "tdmsci": Source(("tdmsci/train_1500_v2.conll",), "tdmsci/test_500_v2.conll", 600),
    "ewt": Source(("uner/en_ewt/en_ewt-ud-dev.iob2",), "uner/en_ewt/en_ewt-ud-test.iob2", 1000),
    "multiconer-en": Source(("multiconer-v1/500/en_sample_train.conll",), "multiconer-v1/15000/en_dev.conll", 500),
}
DEVELOPED_ON = ("crossner-politics", "wnut17")


# ------------------------------------------------------------------------------------------------------- planted errors


@dataclass(frozen=True)
class Planted:
    """An error that was planted: the mention that was right, and the one that stands there now."""

    place: int
    kind: str
    right: Mention | None
    wrong: Mention | None


class Planter:
    """Plants errors in flat sentences.

    Args:
        sentences: the sentences.
        language: their language.
        rng: the random stream.
    """

    def __init__(self, sentences: Sequence[Sentence], language: str, rng: Random) -> None:
        from entaug.core.words import stop_words

        self.sentences = list(sentences)
        self.rng = rng
        self._stop_words = stop_words(language)
        self._confusable = confusable_labels(sentences)
        self._forms = Counter(s.mention_tokens(m) for s in sentences for m in s.mentions)
        self._labels = Counter(m.label for s in sentences for m in s.mentions)
        self._label_of: dict[tuple[str, ...], str] = {
            s.mention_tokens(m): m.label for s in sentences for m in s.mentions
        }

    def plant(self, rate: float) -> tuple[list[Sentence], list[Planted]]:
        """Return the sentences with errors, a share of the number of mentions, and the errors."""
        places = [(i, mention) for i, sentence in enumerate(self.sentences) for mention in sentence.mentions]
        number = round(rate * len(places))
        kinds = [kind for kind in KINDS if kind != "type" or len(self._labels) > 1]
        dirty = list(self.sentences)
        taken: set[tuple[int, int]] = set()  # words that an error has touched
        planted: list[Planted] = []
        self.rng.shuffle(places)
        for step in range(number):
            kind = kinds[step % len(kinds)]
            error = self._spurious(dirty, taken) if kind == "spurious" else self._at_mention(kind, places, dirty, taken)
            if error is None:
                continue
            planted.append(error)
            kept = [m for m in dirty[error.place].mentions if m != error.right]
            dirty[error.place] = dirty[error.place].with_(mentions=[*kept, *([error.wrong] if error.wrong else [])])
            for mention in (error.right, error.wrong):
                taken |= {(error.place, position) for position in (mention.positions() if mention else ())}
        return dirty, planted

    def _at_mention(
        self, kind: str, places: list[tuple[int, Mention]], dirty: list[Sentence], taken: set[tuple[int, int]]
    ) -> Planted | None:
        """An error at the next mention that has none and allows one."""
        for number, (place, mention) in enumerate(places):
            if any((place, position) in taken for position in mention.positions()):
                continue
            wrong = {"boundary": self._shifted, "type": self._renamed, "missing": lambda *_: None}[kind](
                dirty[place], mention
            )
            if wrong is None and kind != "missing":
                continue
            places.pop(number)
            return Planted(place, kind, mention, wrong)
        return None

    def _renamed(self, _: Sentence, mention: Mention) -> Mention | None:
        others = self._confusable[mention.label]
        return Mention(self.rng.choices(list(others), list(others.values()))[0], mention.spans) if others else None

    def _shifted(self, sentence: Sentence, mention: Mention) -> Mention | None:
        start, end = mention.spans[0]
        free = sentence.outside_mask()
        spans = []
        if start > 0 and free[start - 1] and is_wordy(sentence.tokens[start - 1]):
            spans.append((start - 1, end))
        if end < len(sentence) and free[end] and is_wordy(sentence.tokens[end]):
            spans.append((start, end + 1))
        if end - start > 1:
            spans += [(start + 1, end), (start, end - 1)]
        return Mention(mention.label, [self.rng.choice(spans)]) if spans else None

    def _spurious(self, dirty: list[Sentence], taken: set[tuple[int, int]]) -> Planted | None:
        """Half are words that are a mention elsewhere, where there are any; the others are like noun phrases."""
        labels, weights = list(self._labels), list(self._labels.values())
        wants_form = self.rng.random() < 0.5
        order = self.rng.sample(range(len(dirty)), len(dirty))
        for known in (True, False) if wants_form else (False,):
            for place in order:
                spans = list(self._known(dirty[place]) if known else self._phrases(dirty[place]))
                spans = [s for s in spans if not any((place, position) in taken for position in range(*s))]
                if spans:
                    span = self.rng.choice(spans)
                    label = self._label_of.get(dirty[place].tokens[slice(*span)])
                    label = label or self.rng.choices(labels, weights)[0]
                    return Planted(place, "spurious", None, Mention(label, [span]))
        return None

    def _known(self, sentence: Sentence) -> Iterator[tuple[int, int]]:
        free = sentence.outside_mask()
        for start in range(len(sentence)):
            for end in range(start + 1, min(len(sentence), start + 6) + 1):
                words = sentence.tokens[start:end]
                if (
                    all(free[start:end])
                    and words in self._forms
                    and not self._stop_words.issuperset(map(str.lower, words))
                ):
                    yield start, end

    def _phrases(self, sentence: Sentence) -> Iterator[tuple[int, int]]:
        """Runs of one to three words in no mention that are no stop words, without the first word of a sentence."""
        free = [
            out and is_wordy(word) and len(word) > 2 and word.lower() not in self._stop_words
            for out, word in zip(sentence.outside_mask(), sentence.tokens, strict=True)
        ]
        for start in range(1, len(sentence)):
            for end in range(start + 1, min(len(sentence), start + 3) + 1):
                if all(free[start:end]) and not (end < len(sentence) and free[end] and end - start < 3):
                    yield start, end


def is_wordy(token: str) -> bool:
    """Whether a token is a word, not a number or a mark."""
    return any(map(str.isalpha, token))


def confusable_labels(sentences: Iterable[Sentence]) -> dict[str, dict[str, float]]:
    """For each label the three that share most words with it, weighted by the cosine of the counts of their words."""
    words: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for mention in sentence.mentions:
            around = sentence.tokens[max(0, mention.start - 2) : mention.end + 2]
            words[mention.label].update(map(str.lower, around))
    norms = {label: sum(n * n for n in counts.values()) ** 0.5 for label, counts in words.items()}
    found = {}
    for label in sorted(words):
        scores = {
            other: 0.01 + sum(n * words[other][word] for word, n in words[label].items()) / norms[label] / norms[other]
            for other in sorted(words)
            if other != label
        }
        found[label] = dict(sorted(scores.items(), key=lambda item: -item[1])[:3])
    return found


def load(name: str) -> tuple[list[Sentence], list[Sentence]]:
    """The training sentences that are drawn, and the test sentences."""
    source = CORPORA[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train = [s for file in source.train for s in entaug.read(DATA / file, repair=True)]
        test = list(entaug.read(DATA / source.test, repair=True))
    plain = list({s.tokens: Sentence(s.tokens, s.mentions) for s in train}.values())
    drawn = sorted(Random(0).sample(range(len(plain)), min(source.size, len(plain))))
    return [plain[i] for i in drawn], [Sentence(s.tokens, s.mentions) for s in test]
