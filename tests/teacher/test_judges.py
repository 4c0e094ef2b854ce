"""Opinions of teachers about labels: by hand, by folds, and joined with the other places of the corpus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import pytest

from entaug import Mention, Sentence
from entaug.backends.soft_labels import TagProbabilities
from entaug.core.changes import Change
from entaug.core.folds import partition
from entaug.errors import InputError
from entaug.metrics import find_label_errors
from entaug.taggers.relations import NNW, THW, RelationProbabilities
from entaug.teacher.audit import MentionJudge, TagJudge, ask_teachers, create_judges
from entaug.teacher.train import Teacher
from helpers.fakes import FakeTagger

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
WORDS = Sentence("Ada Byron left".split(), [Mention("PER", [(0, 2)])])
ROWS = [[0.1, 0.6, 0.0, 0.3, 0.0], [0.2, 0.1, 0.4, 0.1, 0.2], [0.9, 0.0, 0.1, 0.0, 0.0]]
[GIVEN] = WORDS.mentions


def test_a_change_is_judged_by_the_words_whose_type_it_changes() -> None:
    judge = TagJudge(TagProbabilities(TAGS, ROWS))

    def by(suggested: Mention | None, given: Mention | None = GIVEN) -> list[float]:
        return [round(p, 3) for p in judge.probabilities(WORDS, Change(given, suggested))]

    assert by(Mention("LOC", [(0, 2)])) == [0.55, 0.3], "the means of 0.6 and 0.5, and of 0.3 and 0.3"
    assert by(None) == [0.55, 0.15]
    assert by(Mention("PER", [(0, 1)])) == [0.5, 0.2], "the second word alone"
    assert by(Mention("PER", [(0, 3)])) == [0.9, 0.1], "the third word alone"
    plain = WORDS.with_(mentions=())
    assert [round(p, 3) for p in judge.probabilities(plain, Change(None, GIVEN))] == [0.15, 0.55]
    two = Sentence(WORDS.tokens, [Mention("PER", [(0, 1)]), Mention("PER", [(1, 2)])])
    # Types stay the same where mentions are joined; then tags are compared.
    joined = judge.probabilities(
        two.with_(mentions=two.mentions[:1]), Change(two.mentions[0], Mention("PER", [(0, 2)]))
    )
    assert joined == pytest.approx((0.2, 0.5))


def test_probabilities_are_compared_with_how_sure_teachers_are_of_a_type() -> None:
    sentences = [WORDS, Sentence(["now"])]
    tags = ("O", "B-PER", "I-PER")
    first, _ = create_judges(
        sentences,
        [
            TagProbabilities(tags, [[0.8, 0.2, 0.0], [0.8, 0.0, 0.2], [1.0, 0.0, 0.0]]),
            TagProbabilities(("O",), [[1.0]]),
        ],
    )
    # By hand: words of PER have 0.2 on average, the others 1; with half a word more that is 0.9 / 3 and 2.5 / 3.
    per, none = 0.2 * (0.9 / 3) ** -0.5, 0.8 * (2.5 / 3) ** -0.5
    given, _ = first.probabilities(WORDS, Change(GIVEN, None))
    assert given == pytest.approx(per / (per + none), abs=1e-6)


def test_suggestions_of_a_teacher() -> None:
    judge = TagJudge(TagProbabilities(TAGS, [[0.0, 1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0], ROWS[2]]))
    changes = set(judge.changes(WORDS))
    assert Change(GIVEN, Mention("PER", [(0, 1)])) in changes
    assert Change(GIVEN, Mention("LOC", [(0, 2)])) in changes
    assert set(judge.changes(WORDS.with_(mentions=()))) == {Change(None, Mention("PER", [(0, 1)]))}


def test_mentions_of_any_shape() -> None:
    gap, inner = Mention("X", [(0, 1), (2, 3)]), Mention("Y", [(2, 3)])
    cells = [(0, 2, 0), (2, 0, 1), (2, 2, 2)]
    relations = RelationProbabilities([NNW, f"{THW}X", f"{THW}Y"], 3, cells, [0.9, 0.6, 0.3])

    sentence = Sentence("a b c".split(), [inner])
    [judge] = create_judges([sentence], [relations])
    assert isinstance(judge, MentionJudge)
    assert judge.probabilities(sentence, Change(inner, None)) == pytest.approx((0.3, 0.7))
    assert judge.probabilities(sentence, Change(None, gap)) == pytest.approx((0.4, 0.6)), "the least probable relation"
    assert judge.probabilities(sentence, Change(inner, gap)) == pytest.approx((0.3, 0.6))
    assert judge.probabilities(sentence, Change(inner, Mention("Z", [(0, 1)])))[1] == 0
    assert Change(inner, gap) in set(judge.changes(sentence))


class Plain(FakeTagger):
    """A tagger without probabilities."""

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> Any:
        from entaug.errors import ParameterError

        raise ParameterError("no probabilities")


def test_a_teacher_without_probabilities() -> None:
    tagger = Plain().fit([WORDS])
    [judge], _ = ask_teachers([WORDS], lambda: Teacher(tagger, is_trained=True))
    assert judge.probabilities(WORDS, Change(GIVEN, None)) == (1, 0)
    assert judge.probabilities(WORDS, Change(Mention("PER", [(0, 1)]), GIVEN)) == (0, 1)


class Recorder(FakeTagger):
    """A tagger that records what it has seen, and labels each word that was a mention."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, ...]] = set()
        self.asked: list[tuple[str, ...]] = []

    def fit(self, train: Iterable[Sentence], **options: Any) -> Self:
        train = list(train)
        self.seen = {sentence.tokens for sentence in train}
        return super().fit(train, **options)

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        sentences = list(sentences)
        self.asked += [sentence.tokens for sentence in sentences]
        assert not any(sentence.mentions for sentence in sentences), "it must not see the labels"
        return super().tag_probabilities(sentences)


CORPUS = [Sentence([word, "sings", "."], [Mention("PER", [(0, 1)])]) for word in "Ada Bo Cy Di Eve Flo Gus".split()]


def test_no_teacher_has_seen_what_it_is_asked_about() -> None:
    made: list[Recorder] = []

    def create() -> Teacher:
        made.append(Recorder())
        return Teacher(made[-1])

    sentences = [*CORPUS, CORPUS[0]]  # a copy is in the same fold
    stages: list[str] = []
    judges, notes = ask_teachers(sentences, create, folds=3, progress=lambda stage, *_: stages.append(stage))
    assert (len(judges), len(made), notes) == (8, 3, [])
    assert sorted(tokens for tagger in made for tokens in tagger.asked) == sorted(s.tokens for s in sentences)
    assert all(tagger.seen.isdisjoint(tagger.asked) for tagger in made)
    assert sorted(map(len, partition(sentences, 3, 0))) == [2, 3, 3]


def test_one_that_is_trained_is_asked_about_all() -> None:
    tagger = Recorder().fit(CORPUS)
    judges, _ = ask_teachers(CORPUS, lambda: Teacher(tagger, is_trained=True))
    assert len(judges) == len(tagger.asked) == 7
    assert ask_teachers([], lambda: Teacher(tagger, is_trained=True)) == ([], [])


def test_too_little_to_learn_from() -> None:
    with pytest.raises(InputError, match="7 different sentences are too few for 8 folds"):
        ask_teachers(CORPUS, lambda: Teacher(FakeTagger()), folds=8)
    alone = [CORPUS[0], *(sentence.with_(mentions=()) for sentence in CORPUS[1:])]
    with pytest.raises(InputError, match="all mentions are in one fold"):
        ask_teachers(alone, lambda: Teacher(FakeTagger()), folds=2)


def test_a_teacher_counts_as_one_place() -> None:
    judge = TagJudge(TagProbabilities(TAGS, ROWS))
    findings = find_label_errors([WORDS], [judge])
    assert findings[0].suggested == Mention("LOC", [(0, 2)])
    assert findings[0].score == pytest.approx(1 - 0.6 / 1.05)
    assert findings[0].reason == "the teacher gives 30% to the suggestion and 55% to the label given"
    others = [Sentence(["Ada", "Byron"], [Mention("LOC", [(0, 2)])]) for _ in range(3)]
    sure = TagJudge(TagProbabilities(TAGS, [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]))
    first = find_label_errors([WORDS, *others], [judge, sure, sure, sure])[0]
    assert first.place == 0
    assert first.score == pytest.approx(1 - 0.6 / 4.05)
    assert first.support == pytest.approx((3 + 0.3) / 4.05)
