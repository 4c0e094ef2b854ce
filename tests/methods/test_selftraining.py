"""Self-training with a teacher whose opinions are given by hand, and with one that learns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import EXAMPLE, examples
from entaug import Mention, Sentence
from entaug.backends.soft_labels import TagProbabilities
from entaug.core.corpus import UnlabelledText
from entaug.errors import EntaugError, InputError, ParameterError, UnknownNameError
from entaug.methods import SelfTraining
from entaug.taggers.base import TaggerTrainingConfig, create_tagger
from entaug.teacher.label import PseudoLabelled, balanced, label_sentences, mask_words, ranked
from entaug.teacher.train import Teacher
from helpers.fakes import FakeTagger

pytest.importorskip("torch")

TAGS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
GOLD = [
    Sentence("Ada left Rome".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])], id="g1"),
    Sentence("It rains".split(), id="g2"),
]


class Opinionated(FakeTagger):
    """A teacher that has an opinion on some words; it notes what it was trained on."""

    def __init__(self, **opinions: tuple[str, float]) -> None:
        super().__init__()
        self.opinions = opinions
        self.trained: list[tuple[list[Sentence], list[Sentence]]] = []

    def fit(self, train: Iterable[Sentence], *, progress: Any = None, augmented: Iterable[Sentence] = ()) -> Self:
        self.trained.append((list(train), list(augmented)))
        return super().fit(train, progress=progress)

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        results = []
        for sentence in sentences:
            rows = []
            for token in sentence.tokens:
                tag, p = self.opinions.get(token, ("O", 1.0))
                rows.append([p if name == tag else (1 - p) / (len(TAGS) - 1) for name in TAGS])
            results.append(TagProbabilities(TAGS, rows))
        return results


def text(*sentences: str) -> list[Sentence]:
    return [Sentence(words.split(), id=f"t:{i}") for i, words in enumerate(sentences, 1)]


def made(**params: Any) -> list[Sentence]:
    return list(SelfTraining(**params).fit(GOLD).augment(GOLD))


def test_labels_confidence_and_origin_by_hand() -> None:
    teacher = Opinionated(Bo=("B-PER", 0.9), Oslo=("B-LOC", 0.4))
    [new] = made(unlabelled=text("Bo left Oslo"), tagger=teacher, min_token_confidence=0.5)
    assert str(new) == "[Bo]PER left [Oslo]LOC"
    assert new.provenance is not None
    assert new.provenance.method == "selftrain"
    # By hand: the cube root of 0.9 * 1 * 0.4 is 0.7114.
    assert new.provenance.details == {"unconditioned": True, "confidence": 0.7114, "text": "t:1"}
    soft = TagProbabilities.from_sentence(new)
    assert soft is not None
    assert soft.weights is not None
    assert soft.weights.tolist() == [1, 1, 0]
    assert soft.values[0] == pytest.approx([0.025, 0.025, 0.025, 0.9, 0.025])


def test_duplicates_and_training_sentences_are_left_out() -> None:
    given_text = UnlabelledText(text("It rains", "Bo left", "Bo left", "So what"), notes=["a remark"])
    method = SelfTraining(unlabelled=given_text, tagger=Opinionated()).fit(GOLD)
    new = list(method.augment(GOLD))
    assert sorted(" ".join(s.tokens) for s in new) == ["Bo left", "So what"]
    assert {s.provenance.details["text"] for s in new if s.provenance} == {"t:2", "t:4"}
    assert method.statistics_.requested == 2
    assert not method.statistics_.missing
    notes = "; ".join(method.notes())
    assert "a remark; 1 sentences of the unlabelled text are duplicates; 1 sentences of the unlabelled text" in notes


def test_what_was_selected_is_dealt_out_to_the_sources() -> None:
    words = [f"word {i}" for i in range(7)]
    new = made(unlabelled=text(*words), tagger=Opinionated())
    assert Counter(s.provenance.sources[0] for s in new if s.provenance) == {"g1": 4, "g2": 3}
    few = made(unlabelled=text(*words), tagger=Opinionated(), copies=2)
    assert len(few) == 4
    assert {s.tokens for s in few} < {s.tokens for s in new}
    method = SelfTraining(unlabelled=text(*words), tagger=Opinionated(), copies=9).fit(GOLD)
    assert len(list(method.augment(GOLD))) == 7
    assert method.statistics_.missing == {"no further sentence of the unlabelled text": 11}
    other = Sentence(["other"], id="other")
    assert not list(method.augment([other]))


def test_selection_by_confidence_and_number() -> None:
    teacher = Opinionated(Bo=("B-PER", 0.9), Oslo=("B-LOC", 0.5), Rio=("B-LOC", 0.7))
    lines = text("Bo", "Oslo", "Rio", "sure")
    assert {str(s) for s in made(unlabelled=lines, tagger=teacher, min_confidence=0.7)} == {
        "[Bo]PER",
        "[Rio]LOC",
        "sure",
    }
    best = SelfTraining(unlabelled=lines, tagger=teacher, prefer="confident", sentences=2).fit(GOLD)
    assert [str(one.sentence) for one in best.selected_] == ["sure", "[Bo]PER"]
    # Of a sentence whose words are all masked nothing can be learnt.
    masked = made(unlabelled=lines, tagger=teacher, min_token_confidence=0.8)
    assert {str(s) for s in masked} == {"[Bo]PER", "sure"}
    nothing = SelfTraining(unlabelled=text("Bo"), tagger=teacher, min_confidence=0.95).fit(GOLD)
    assert not list(nothing.augment(GOLD))
    assert "lower min_confidence" in nothing.advice(nothing.statistics_)[0]


def test_balance_by_hand() -> None:
    names = {f"l{i}": ("B-LOC", 0.9) for i in range(9)} | {"p1": ("B-PER", 0.9), "p2": ("B-PER", 0.8)}
    lines = text(*names, "plain one", "plain two", "plain three")
    method = SelfTraining(unlabelled=lines, tagger=Opinionated(**names), balance="equal").fit(GOLD)
    labels = Counter(m.label for one in method.selected_ for m in one.sentence.mentions)
    # Two PER, and LOC not more than one ahead; half of the gold sentences have no mention.
    assert labels["PER"] == 2
    assert labels["LOC"] in (2, 3)
    assert sum(not one.sentence.mentions for one in method.selected_) == 3


@settings(max_examples=examples(60))
@given(st.lists(st.lists(st.sampled_from("XYZ"), max_size=3), max_size=30), st.integers(0, 20) | st.none())
def test_a_balanced_selection_is_a_part_in_order(labels: list[list[str]], number: int | None) -> None:
    given_ = [
        PseudoLabelled(
            Sentence([f"{i}", "a", "b", "c"], [Mention(x, [(k, k + 1)]) for k, x in enumerate(row)], id=str(i)), 0.5
        )
        for i, row in enumerate(labels)
    ]
    chosen = balanced(given_, {"X": 0.5, "Y": 0.5}, 0.3, number)
    positions = [int(one.sentence.id or "") for one in chosen]
    assert positions == sorted(set(positions))
    assert number is None or len(chosen) <= number
    empty = sum(not one.sentence.mentions for one in chosen)
    assert empty <= 0.3 * len(chosen) + 1e-9


@settings(max_examples=examples(60))
@given(st.permutations(range(12)), st.sampled_from(["random", "confident"]))
def test_the_order_of_the_text_makes_no_difference(order: list[int], prefer: Any) -> None:
    one = [PseudoLabelled(Sentence([f"w{i}"]), i % 3 / 3) for i in range(12)]
    assert ranked([one[i] for i in order], prefer, 3) == ranked(one, prefer, 3)


def test_masks() -> None:
    sure = TagProbabilities(("O", "B-X"), [[0.9, 0.1]])
    assert mask_words(sure, 0.9) is sure


def test_rounds_train_on_gold_and_pseudo_labels() -> None:
    teacher = Opinionated(Bo=("B-PER", 0.9))
    made(unlabelled=text("Bo left", "So what"), tagger=teacher, rounds=2, min_confidence=0.9)
    (first, none), (second, augmented) = teacher.trained
    assert {s.id for s in first} == {s.id for s in second} == {"g1", "g2"}
    assert not none
    assert {str(s) for s in augmented} == {"[Bo]PER left", "So what"}
    assert all(TagProbabilities.from_sentence(s) for s in augmented)


def test_a_trained_teacher_is_used_as_it_is() -> None:
    tagger = Opinionated()
    teacher = Teacher(tagger, is_trained=True).fit(GOLD)
    assert not tagger.trained
    teacher.fit(GOLD, GOLD[:1])
    assert len(tagger.trained) == 1


def test_nested_corpora_get_hard_labels() -> None:
    nested = [Sentence("the Oslo port".split(), [Mention("FAC", [(0, 3)]), Mention("LOC", [(1, 2)])], id="n")]
    method = SelfTraining(unlabelled=text("So what"), tagger=FakeTagger()).fit(nested)
    [new] = method.augment(nested)
    assert not new.layout
    assert new.provenance is not None
    assert new.provenance.details["confidence"] == 1.0
    with pytest.raises(ParameterError, match="min_token_confidence needs probabilities, which"):
        SelfTraining(unlabelled=text("So what"), tagger=FakeTagger(), min_token_confidence=0.5).fit(nested)
    assert label_sentences([], FakeTagger()) == []


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="needs unlabelled text; name files as `unlabelled`"):
        entaug.create_augmenter("selftrain")
    with pytest.raises(ParameterError, match="has no sentence"):
        SelfTraining(unlabelled=[])
    with pytest.raises(UnknownNameError, match="ensemble"):
        SelfTraining(unlabelled=GOLD, tagger="ensembel")
    with pytest.raises(InputError, match="all 2 sentences of the unlabelled text are training sentences"):
        SelfTraining(unlabelled=GOLD, tagger=FakeTagger()).fit(GOLD)
    for option in ({"ensemble_steps": 3}, {"ensemble_member": "w2ner"}, {"ensemble_size": 5}):
        with pytest.raises(ParameterError, match=f"the tagger linear has no `{next(iter(option))}`, which is a param"):
            SelfTraining(unlabelled=GOLD, tagger="linear", **option).load()
    with pytest.raises(EntaugError, match="unknown tagger"):
        SelfTraining(unlabelled=GOLD, ensemble_member="lineer").load()
    assert entaug.methods.METHODS["pseudo-labels"] is entaug.methods.METHODS["self-training"] is SelfTraining
    method = SelfTraining(unlabelled=text("So what"), tagger=FakeTagger()).fit(GOLD)
    with pytest.raises(ParameterError, match="once, so it has none for further epochs; augment once, before training"):
        entaug.OnlineDataset(GOLD, method)


def test_sources_are_found_by_content() -> None:
    gold = [Sentence(one.tokens, one.mentions) for one in GOLD]
    method = SelfTraining(unlabelled=text("So what", "Bo left"), tagger=FakeTagger()).fit(gold)
    renamed = [Sentence(one.tokens, one.mentions, id=f"new:{i}") for i, one in enumerate(GOLD)]
    assert [s.tokens for s in method.augment(renamed)] == [s.tokens for s in method.augment(gold)]
    other = Sentence("Something else".split(), id="g1")
    assert not list(SelfTraining(unlabelled=text("So what"), tagger=FakeTagger()).fit(GOLD).augment([other]))


@pytest.mark.parametrize("name", ["new.jsonl", "new.parquet"])
def test_soft_labels_are_read_back(tmp_path: Path, name: str) -> None:
    teacher = Opinionated(Bo=("B-PER", 0.9), Oslo=("B-LOC", 0.4))
    new = made(unlabelled=text("Bo left Oslo", "So what"), tagger=teacher, min_token_confidence=0.5)
    entaug.write([*GOLD, *new], tmp_path / name)
    back = list(entaug.read(tmp_path / name))
    assert back[:2] == GOLD
    for one, other in zip(back[2:], new, strict=True):
        assert (one.tokens, one.mentions, one.provenance) == (other.tokens, other.mentions, other.provenance)
        soft, wanted = TagProbabilities.from_sentence(one), TagProbabilities.from_sentence(other)
        assert soft is not None
        assert wanted is not None
        assert soft.to_dict() == wanted.to_dict()


def test_hard_labels_and_confidence_in_conll(tmp_path: Path) -> None:
    new = made(unlabelled=text("Bo left"), tagger=Opinionated(Bo=("B-PER", 0.9)))
    entaug.write(new, tmp_path / "new.conll", provenance=True)
    assert '"confidence":0.9487' in (tmp_path / "new.conll").read_text()
    assert [str(s) for s in entaug.read(tmp_path / "new.conll")] == ["[Bo]PER left"]


def test_an_ensemble_on_any_encoder_gives_the_same_twice(bert: Path) -> None:
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:12]
    lines = list(entaug.read(EXAMPLE / "dev.conll"))[:8]
    options: dict[str, Any] = {
        "unlabelled": lines,
        "ensemble_size": 2,
        "ensemble_encoder": str(bert),
        "ensemble_steps": 3,
        "rounds": 2,
        "seed": 5,
    }
    method = SelfTraining(**options)
    assert "ensemble_steps=3" in method.signature
    new = list(method.fit(gold).augment(gold))
    assert len(new) == 8
    assert new == list(SelfTraining(**{**options, "unlabelled": lines[::-1]}).fit(gold[::-1]).augment(gold))
    assert all(TagProbabilities.from_sentence(s) for s in new)
    other = SelfTraining(**{**options, "seed": 6}).fit(gold)
    assert [one.confidence for one in other.selected_] != [one.confidence for one in method.selected_]


def test_a_saved_tagger_as_teacher(bert: Path, tmp_path: Path) -> None:
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:12]
    tagger = create_tagger("linear", encoder=str(bert)).fit(gold, None, TaggerTrainingConfig(steps=2))
    tagger.save(tmp_path / "tagger")
    lines = text("So it goes", "The port of Oslo")
    method = SelfTraining(unlabelled=lines, tagger=str(tmp_path / "tagger")).fit(gold)
    by_tokens = {one.sentence.tokens: one.sentence for one in method.selected_}
    for line, soft in zip(lines, tagger.tag_probabilities(lines), strict=True):
        assert by_tokens[line.tokens].layout["tag_probabilities"] == soft.to_dict()


def test_an_ensemble_for_nested_mentions(bert: Path) -> None:
    nested = [s for s in entaug.read(EXAMPLE / "nested.jsonl") if s.mentions][:6]
    assert not all(s.is_flat for s in nested)
    options: dict[str, Any] = {"ensemble_size": 2, "ensemble_encoder": str(bert), "ensemble_steps": 2}
    lines = text("So it goes", "The port of Oslo")
    method = SelfTraining(unlabelled=lines, ensemble_member="w2ner", min_token_confidence=0.01, **options)
    new = list(method.fit(nested).augment(nested))
    assert len(new) == 2
    assert all("relation_probabilities" in s.layout for s in new)
    with pytest.raises(EntaugError, match="nested"):
        SelfTraining(unlabelled=lines, **options).fit(nested)


@pytest.mark.models
@pytest.mark.slow
def test_the_starter_encoder() -> None:
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:40]
    lines = list(entaug.read(EXAMPLE / "dev.conll"))[:20]
    method = SelfTraining(unlabelled=lines, ensemble_size=2, ensemble_steps=60).fit(gold)
    new = list(method.augment(gold))
    assert len(new) == len({s.tokens for s in lines})
    assert sum(len(s.mentions) for s in new) > 5, "it has learnt something"
