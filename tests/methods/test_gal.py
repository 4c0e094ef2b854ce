"""GAL: new sentences by a language model, labelled by a teacher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import entaug
from entaug import Mention, Sentence
from entaug.backends.config import DecodingConfig
from entaug.errors import InputError, ParameterError
from entaug.methods.gal import GAL
from entaug.teacher import Relabeller
from helpers.fakes import FakeGenerator, FakeInstructModel, FakeTagger

GOLD = [
    Sentence("Ada Lovelace left Rome on Monday .".split(), [Mention("PER", [(0, 2)]), Mention("LOC", [(3, 4)])]),
    Sentence("Nobody saw Bo in Paris again .".split(), [Mention("PER", [(2, 3)]), Mention("LOC", [(4, 5)])]),
    Sentence("The town sleeps until eight o'clock .".split(), []),
    Sentence("It rains .".split(), []),
]
NEW = "Few people know why Eve moved away."


class Recorder(FakeGenerator):
    """A generator that writes given texts in turn, and records what it reads."""

    def __init__(self, *texts: str) -> None:
        super().__init__()
        self.texts = list(texts)
        self.inputs: list[str] = []
        self.configs: list[DecodingConfig] = []

    def generate(
        self,
        inputs: Sequence[str],
        config: DecodingConfig = DecodingConfig(),  # noqa: B008 (immutable)
        seeds: Sequence[int] | None = None,
        required: Any = None,
        forbidden: Any = (),
    ) -> list[list[str]]:
        del required, forbidden
        assert seeds is not None
        assert len(set(seeds)) == len(inputs)
        self.configs.append(config)
        start = len(self.inputs)
        self.inputs += inputs
        return [[self.texts[(start + i) % len(self.texts)]] for i in range(len(inputs))]


def rejected(*texts: str) -> dict[str, int]:
    method = GAL(generator=Recorder(*texts), teacher=None, max_attempts=1).fit(GOLD)
    assert not list(method.augment(GOLD[:1]))
    return dict(method.statistics_.rejected)


def test_the_model_reads_training_sentences_with_the_source_last() -> None:
    model = Recorder(NEW, "Eve went home at once.")
    new = list(GAL(generator=model, teacher=None, copies=2).fit(GOLD).augment(GOLD[:1]))
    assert [print_of(s) for s in new] == ["Few people know why Eve moved away .", "Eve went home at once ."]
    first, second = model.inputs
    assert first == second, "equal prompts are read once"
    *others, last = first.split("\n")
    assert last == "Ada Lovelace left Rome on Monday."
    assert len(set(others)) == 2
    assert last not in others
    config = model.configs[0]
    assert (config.strategy, config.num_beams, config.top_k, config.max_new_tokens) == ("sample", 1, 50, 96)
    details = new[0].fields["entaug"]
    assert details["unconditioned"]
    assert len(details["sources"]) == 3, "the source and two examples"


def print_of(sentence: Sentence) -> str:
    return " ".join(sentence.tokens)


def test_a_further_attempt_has_other_examples() -> None:
    model = Recorder("Ada Lovelace left Rome on Monday.")
    gold = [*GOLD, *(Sentence(["Sentence", "number", str(n), "."]) for n in range(50))]
    method = GAL(generator=model, teacher=None, max_attempts=3).fit(gold)
    assert not list(method.augment(gold[:1]))
    assert len(set(model.inputs)) == 3
    assert method.statistics_.rejected == {"a copy of a training sentence": 3}


def test_texts_that_are_no_new_sentence_are_rejected() -> None:
    assert rejected("It rains.") == {"a copy of a training sentence": 1}
    assert rejected("Rome") == {"fewer words than any training sentence": 1}
    assert rejected("word " * 30) == {"much longer than any training sentence": 1}
    assert rejected("Rome Rome Rome Rome Rome") == {"the same words again and again": 1}
    assert rejected("Ada Lovelace left Rome on Tuesday.") == {"too similar to its source": 1}
    assert rejected("") == {"no text was completed within the limits of the model and of max_new_tokens": 1}


def test_a_teacher_labels_the_sentences() -> None:
    teacher = Relabeller(tagger=FakeTagger(), labels="teacher")
    [new] = GAL(generator=Recorder("Why did Rome sleep?"), teacher=teacher).fit(GOLD).augment(GOLD[:1])
    assert new.tokens == ("Why", "did", "Rome", "sleep", "?")
    assert new.mentions == teacher.tagger_.predict([new])[0].mentions
    assert "tag_probabilities" in new.layout
    assert GAL().get_params()["teacher"] == "ensemble:labels=teacher"
    with pytest.raises(ParameterError, match="give labels=teacher"):
        GAL(teacher="linear")


def test_without_a_teacher_it_says_so() -> None:
    method = GAL(generator=Recorder(NEW), teacher=None).fit(GOLD)
    [new] = method.augment(GOLD[:1])
    assert not new.mentions
    assert method.notes() == ["there is no teacher, so the new sentences have no labels"]


def test_the_signature_has_the_number_of_examples() -> None:
    one, five = (GAL(generator=Recorder(NEW), teacher=None, num_examples=number).load() for number in (1, 5))
    assert "num_examples=5" in five.signature
    assert one.signature != five.signature


def test_a_corpus_without_sentences_has_no_mentions() -> None:
    with pytest.raises(InputError, match="no mentions, which gal needs"):
        GAL(generator=Recorder(NEW), teacher=None).fit([])


def test_an_instruct_model_is_asked_by_a_prompt() -> None:
    asked = []

    def answer(request: Any) -> str:
        asked.append(request.messages)
        return NEW

    [new] = GAL(generator=FakeInstructModel(answer=answer), teacher=None).fit(GOLD).augment(GOLD[:1])
    assert print_of(new) == "Few people know why Eve moved away ."
    [(system, user)] = asked
    assert "one new sentence" in system.text
    assert user.text.endswith("Ada Lovelace left Rome on Monday.")


@pytest.mark.models
@pytest.mark.slow
def test_real_sentences_are_the_same_in_any_window() -> None:
    pytest.importorskip("torch")
    gold = GOLD[:2]
    method = entaug.create_augmenter("gal", teacher=None, copies=3, max_attempts=8, max_new_tokens=24, seed=3).fit(gold)
    whole = [(s.id, s.tokens) for s in method.augment(gold)]
    assert whole
    assert [(s.id, s.tokens) for s in method.augment(gold)] == whole
