"""Opinions of teachers about the labels of sentences that they have not seen, to find those that are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any

from entaug.core.changes import Change, changed
from entaug.core.data import Sentence
from entaug.core.folds import partition
from entaug.core.mentions import Mention
from entaug.core.progress import Progress, no_progress
from entaug.errors import InputError
from entaug.teacher.label import soft_labels
from entaug.teacher.train import Teacher

if TYPE_CHECKING:
    from entaug.backends.soft_labels import TagProbabilities
    from entaug.taggers.relations import RelationProbabilities

_LEAST = 0.05  # the lowest probability of another label that is considered


class TagJudge:
    """Probabilities of tags: a change of flat mentions is judged by the words whose type it changes."""

    def __init__(self, probabilities: TagProbabilities) -> None:
        self._column = {tag: i for i, tag in enumerate(probabilities.tags)}
        self._values: list[list[float]] = probabilities.values.tolist()
        self._labels = sorted({tag[2:] for tag in probabilities.tags if tag != "O"})
        self._mentions = probabilities.mentions()

    def changes(self, sentence: Sentence) -> Iterator[Change]:
        """Yield the mentions that the teacher sees, each in place of those that it overlaps, and other labels."""
        yield from _replacements(sentence, self._mentions)
        for mention in sentence.mentions:
            positions = mention.positions()
            others = [label for label in self._labels if label != mention.label]
            if others:
                label = max(others, key=lambda label: sum(self._type(position, label) for position in positions))
                yield Change(mention, Mention(label, mention.spans))

    def probabilities(self, sentence: Sentence, change: Change) -> tuple[float, float]:
        """Return the mean probability, over the words that change, of the type that is given and of the other one."""
        given, suggested = sentence.iob(), changed(sentence, change).iob()
        pairs = [(i, a[2:], b[2:]) for i, (a, b) in enumerate(zip(given, suggested, strict=True)) if a[2:] != b[2:]]
        if pairs:
            return fmean(self._type(i, a) for i, a, _ in pairs), fmean(self._type(i, b) for i, _, b in pairs)
        tags = [(i, a, b) for i, (a, b) in enumerate(zip(given, suggested, strict=True)) if a != b]
        return fmean(self._tag(i, a) for i, a, _ in tags), fmean(self._tag(i, b) for i, _, b in tags)

    def _type(self, position: int, label: str) -> float:
        """The probability that a word is in a mention of a label, or in none if it is empty."""
        return sum(self._tag(position, tag) for tag in ((f"B-{label}", f"I-{label}") if label else ("O",)))

    def _tag(self, position: int, tag: str) -> float:
        return self._values[position][self._column[tag]] if tag in self._column else 0.0


class MentionJudge:
    """Probabilities of whole mentions of any shape; without probabilities, 1 for those that a teacher sees."""

    def __init__(
        self,
        mentions: Sequence[Mention],
        probability: Callable[[Mention], float] | None = None,
        labels: Sequence[str] = (),
    ) -> None:
        self._mentions = mentions
        self._probability = probability or (lambda mention: float(mention in mentions))
        self._labels = labels

    def changes(self, sentence: Sentence) -> Iterator[Change]:
        """Yield the mentions that the teacher sees, each in place of those that it overlaps, and other labels."""
        yield from _replacements(sentence, self._mentions)
        for mention in sentence.mentions:
            for label in self._labels:
                other = Mention(label, mention.spans)
                if other not in sentence.mentions and self._probability(other) >= _LEAST:
                    yield Change(mention, other)

    def probabilities(self, sentence: Sentence, change: Change) -> tuple[float, float]:
        """Return the probabilities of both mentions; that of none is that the other one is not there."""
        given, suggested = (None if mention is None else self._probability(mention) for mention in change)
        if given is None or suggested is None:
            one = (given if suggested is None else suggested) or 0.0
            return (1 - one, one) if given is None else (one, 1 - one)
        return given, suggested


def _replacements(sentence: Sentence, mentions: Sequence[Mention]) -> Iterator[Change]:
    for new in mentions:
        if new not in sentence.mentions:
            positions = set(new.positions())
            replaced = [m for m in sentence.mentions if m not in mentions and positions.intersection(m.positions())]
            yield from ([Change(mention, new) for mention in replaced] or [Change(None, new)])


def _relation_probability(relations: RelationProbabilities) -> Callable[[Mention], float]:
    """The probability of a mention: the lowest one among the relations that it consists of."""
    from entaug.taggers.relations import NNW, THW

    cells = {
        (row, column, relations.names[kind]): value
        for (row, column, kind), value in zip(relations.cells.tolist(), relations.values.tolist(), strict=True)
    }

    def probability(mention: Mention) -> float:
        positions = mention.positions()
        steps = [(a, b, NNW) for a, b in pairwise(positions)]
        steps.append((mention.end - 1, mention.start, THW + mention.label))
        return min(float(cells.get(step, 0.0)) for step in steps)

    return probability


def _answers(tagger: Any, sentences: Sequence[Sentence], *, is_flat: bool) -> Sequence[Any]:
    """The probabilities that a trained tagger gives to the labels of sentences, or else sentences with mentions."""
    plain = [Sentence(sentence.tokens) for sentence in sentences]
    soft = soft_labels(tagger, plain, is_flat=is_flat)
    return tagger.predict(plain) if soft is None else soft


def create_judges(sentences: Sequence[Sentence], answers: Sequence[Any]) -> list[TagJudge | MentionJudge]:
    """Create the judges of sentences from the answers of teachers: soft labels, or sentences with mentions."""
    if not answers:
        return []
    if hasattr(answers[0], "tags"):
        return [TagJudge(one) for one in _balanced(sentences, answers)]
    if not hasattr(answers[0], "cells"):
        return [MentionJudge(answer.mentions) for answer in answers]
    labels = sorted({mention.label for sentence in sentences for mention in sentence.mentions})
    return [MentionJudge(one.mentions(), _relation_probability(one), labels) for one in answers]


def _balanced(sentences: Sequence[Sentence], several: Sequence[TagProbabilities]) -> list[TagProbabilities]:
    """Divide probabilities by the root of the mean that teachers give to the words of a type, and normalize them."""
    # A teacher that has learnt from few sentences is sure of words without a label and unsure of rare types; without
    # this all mentions of these would be suspicious. Confident learning compares with the mean itself.
    import numpy as np

    from entaug.backends.soft_labels import TagProbabilities, tags_of

    tags = tags_of(sorted({tag[2:] for one in several for tag in one.tags if tag != "O"}))
    types = np.array([tag[2:] for tag in tags])
    rows = np.concatenate([one.aligned(tags).astype(float) for one in several])
    given = np.array([tag[2:] for sentence in sentences for tag in sentence.iob()])
    scale = np.ones(len(tags))
    for label in sorted(set(types)):
        sure = rows[np.ix_(given == label, types == label)].sum()
        scale[types == label] = ((sure + 0.5) / ((given == label).sum() + 1)) ** -0.5
    rows *= scale
    rows /= rows.sum(1, keepdims=True)
    parts = np.split(rows, np.cumsum([len(sentence) for sentence in sentences])[:-1])
    return [TagProbabilities(tags, part) for part in parts]


def ask_teachers(
    sentences: Sequence[Sentence],
    create_teacher: Callable[[], Teacher],
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Progress = no_progress,
) -> tuple[list[TagJudge | MentionJudge], list[str]]:
    """Ask about each fold of a corpus a teacher that was trained on the other ones.

    Args:
        sentences: the sentences.
        create_teacher: returns a new teacher. One that is trained already is asked about all sentences.
        folds: the number of folds, at least 2.
        seed: the seed that the folds are drawn with.
        progress: the progress callback.

    Returns:
        An opinion about each sentence, for `entaug.metrics.find_label_errors`, and notes for the user.

    Raises:
        InputError: there are fewer sentences than folds, or all mentions are in one fold.

    Example:
        >>> from entaug.backends.fakes import FakeTagger
        >>> corpus = [Sentence([word, "sings"], [Mention("PER", [(0, 1)])]) for word in ("Ada", "Bo", "Cy")]
        >>> judges, _ = ask_teachers(corpus, lambda: Teacher(FakeTagger()), folds=3)
        >>> given, _ = judges[0].probabilities(corpus[0], Change(corpus[0].mentions[0], None))
        >>> given < 0.5
        True
    """
    is_flat = all(sentence.is_flat for sentence in sentences)
    teacher = create_teacher()
    if teacher.is_trained:
        return create_judges(sentences, _answers(teacher.tagger, sentences, is_flat=is_flat)), list(teacher.notes)
    parts = [fold for fold in partition(sentences, folds, seed) if fold]
    if len(parts) < folds:
        message = f"{len(parts)} different sentences are too few for {folds} folds"
        raise InputError(message, remedy="lower the number of folds, or set the teacher to none")
    answers: dict[int, Any] = {}
    notes: list[str] = []
    for number, fold in enumerate(parts, start=1):
        others = sorted(set(range(len(sentences))).difference(fold))
        training = [sentences[i] for i in others]
        if not any(sentence.mentions for sentence in training):
            raise InputError("all mentions are in one fold", remedy="set the teacher to none")

        def report(done: int, total: int, loss: float, name: str = f"fold {number} of {len(parts)}") -> None:
            progress(f"{name}, loss {loss:.2f}", done, total)

        teacher = (teacher if number == 1 else create_teacher()).fit(training, progress=report)
        asked = _answers(teacher.tagger, [sentences[i] for i in fold], is_flat=is_flat)
        answers.update(zip(fold, asked, strict=True))
        notes += teacher.notes
    return create_judges(sentences, [answers[i] for i in range(len(sentences))]), list(dict.fromkeys(notes))
