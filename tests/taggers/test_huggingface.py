"""Soft labels in the Trainer of transformers: a real Trainer, tiny models, losses computed by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
import transformers

import entaug
from entaug import Mention, Sentence
from entaug.backends.soft_labels import TagProbabilities
from entaug.backends.transformers.base import quiet
from entaug.errors import InputError, LossError, ParameterError
from entaug.taggers.huggingface_trainer import SoftLabelCollator, soft_label_loss
from helpers import tiny
from helpers.trainer_recipes import blocks, prepare, replaced, soft_sentences

TAGS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
GOLD = Sentence("Ana Duarte joined Helio in Lisbon".split(), [Mention("PER", [(0, 2)]), Mention("LOC", [(5, 6)])])
SOFT = TagProbabilities(["O", "B-PER"], [[0.2, 0.8], [1.0, 0.0], [0.5, 0.5]], [1, 0.5, 0]).label(
    Sentence("Kenya Ethiopia talks".split())
)


@pytest.fixture
def tokenizer(bert: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(bert)


@pytest.fixture
def model(bert: Path) -> Any:
    torch.manual_seed(1)
    cls = transformers.AutoModelForTokenClassification
    return cls.from_pretrained(bert, num_labels=len(TAGS), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with quiet():
        yield


def loss_by_hand(model: Any, tokenizer: Any, sentences: list[Sentence]) -> float:
    """The loss, one sentence and word after the other, without batches and padding, in plain Python."""
    total, num_words = 0.0, 0
    for sentence in sentences:
        encoded = tokenizer([list(sentence.tokens)], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            logits = model(**encoded).logits[0].double().tolist()
        soft = TagProbabilities.from_sentence(sentence)
        for i, tag in enumerate(sentence.iob()):
            row = logits[encoded.word_ids(0).index(i)]
            log_sum = math.log(sum(math.exp(x) for x in row))
            expected = {tag: 1.0}
            weight = 1.0
            if soft is not None:
                expected = dict(zip(soft.tags, map(float, soft.values[i]), strict=True))
                weight = 1.0 if soft.weights is None else float(soft.weights[i])
            total -= weight * sum(p * (row[TAGS.index(tag)] - log_sum) for tag, p in expected.items())
            num_words += weight > 0
    return total / num_words


def train(model: Any, folder: Path, collator: Any, data: Any, **options: Any) -> list[float]:
    """The losses of the steps of a Trainer."""
    settings = {"per_device_train_batch_size": 2, "max_steps": 1, "learning_rate": 1e-2, "logging_steps": 1, **options}
    arguments = transformers.TrainingArguments(
        str(folder), remove_unused_columns=False, save_strategy="no", report_to="none", use_cpu=True, **settings
    )
    trainer = transformers.Trainer(
        model, arguments, train_dataset=data, data_collator=collator, compute_loss_func=soft_label_loss
    )
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def test_labels_stand_at_the_first_sub_word_of_each_word(tokenizer: Any) -> None:
    words = Sentence(["Ana", "unbelievably", "Lisbon"], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])])
    batch = SoftLabelCollator(tokenizer, TAGS)([words, SOFT])
    encoded = tokenizer([list(words.tokens), list(SOFT.tokens)], is_split_into_words=True, padding=True)
    assert batch["input_ids"].tolist() == encoded["input_ids"]
    assert batch["attention_mask"].tolist() == encoded["attention_mask"]
    of_words = encoded.word_ids(0)
    assert of_words.count(1) > 1, "a word of several sub-words"
    first = [of_words.index(i) for i in range(3)]
    assert batch["labels"][0][first].tolist() == [[0, 0, 0, 1, 0], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0]]
    others = [i for i in range(batch["labels"].shape[1]) if i not in first]
    assert (batch["labels"][0][others] == -100).all()
    # Probabilities times weights; a word of weight 0 is ignored.
    first = [encoded.word_ids(1).index(i) for i in range(3)]
    expected = np.array([[0.2, 0, 0, 0.8, 0], [0.5, 0, 0, 0, 0], [-100.0] * 5])
    np.testing.assert_allclose(batch["labels"][1][first], expected, rtol=1e-6)


def test_padding_on_the_left_moves_labels_with_their_words(tokenizer: Any) -> None:
    right = SoftLabelCollator(tokenizer, TAGS)([GOLD, SOFT])
    tokenizer.padding_side = "left"
    left = SoftLabelCollator(tokenizer, TAGS)([GOLD, SOFT])
    for i in range(2):
        n = int(right["attention_mask"][i].sum())
        assert left["input_ids"][i, -n:].equal(right["input_ids"][i, :n])
        assert left["labels"][i, -n:].equal(right["labels"][i, :n])


def test_the_loss_of_a_trainer_is_the_one_computed_by_hand(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    expected = loss_by_hand(model, tokenizer, [GOLD, SOFT])
    collator = SoftLabelCollator(tokenizer, TAGS)
    batch = collator([GOLD, SOFT])
    with torch.no_grad():
        outputs = model(**{name: value for name, value in batch.items() if name != "labels"})
    assert float(soft_label_loss(outputs, batch["labels"])) == pytest.approx(expected, rel=1e-4)
    [loss] = train(model, tmp_path, collator, [GOLD, SOFT])
    assert loss == pytest.approx(expected, rel=1e-4)


def test_gradient_accumulation_changes_nothing(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    """Although batches have different numbers of words, the loss and the step are those of one large batch."""
    collator = SoftLabelCollator(tokenizer, TAGS)
    expected = loss_by_hand(model, tokenizer, [GOLD, SOFT])
    options: dict[str, Any] = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 2}
    [loss] = train(model, tmp_path, collator, [GOLD, SOFT], **options)
    assert loss == pytest.approx(expected, rel=1e-4)


def test_training_lowers_the_loss_and_is_repeatable(bert: Path, tokenizer: Any, tmp_path: Path) -> None:
    losses = []
    for name in "ab":
        torch.manual_seed(2)
        cls = transformers.AutoModelForTokenClassification
        model = cls.from_pretrained(bert, num_labels=len(TAGS))
        losses.append(train(model, tmp_path / name, SoftLabelCollator(tokenizer, TAGS), [GOLD, SOFT], max_steps=8))
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0] / 2


def test_rows_of_datasets_are_read_first(tokenizer: Any, tmp_path: Path) -> None:
    sentences = [GOLD, SOFT, *soft_sentences([GOLD], 0.7)]
    expected = SoftLabelCollator(tokenizer, TAGS)(sentences)["labels"]
    entaug.write(sentences, tmp_path / "all.parquet")
    for dataset in (
        entaug.to_datasets(sentences),
        datasets.Dataset.from_parquet(str(tmp_path / "all.parquet"), cache_dir=str(tmp_path / "cache")),
    ):
        rows = list(entaug.from_datasets(dataset))
        labels = SoftLabelCollator(tokenizer, TAGS)(rows)["labels"]
        np.testing.assert_allclose(labels, expected, atol=1e-4)  # files hold four digits


def test_long_sentences_are_cut_off(tokenizer: Any) -> None:
    long = Sentence(["Ana"] * 200, [Mention("PER", [(i, i + 1)]) for i in range(200)])
    batch = SoftLabelCollator(tokenizer, TAGS)([long, GOLD])
    assert batch["labels"].shape == (2, 64, 5)
    assert int((batch["labels"][0, :, 0] != -100).sum()) == 31  # "Ana" has two sub-words
    batch = SoftLabelCollator(tokenizer, TAGS, max_length=16)([long])
    assert batch["labels"].shape == (1, 16, 5)


def test_a_batch_of_ignored_words_has_the_loss_0() -> None:
    labels = torch.full((1, 2, 3), -100.0)
    assert float(soft_label_loss({"logits": torch.ones(1, 2, 3)}, labels)) == 0
    assert float(soft_label_loss({"logits": torch.ones(1, 2, 3)}, labels, num_items_in_batch=0)) == 0


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (Sentence(["CERN"], [Mention("ORG", [(0, 1)])], id="s1"), "s1.*B-ORG is not one of the model"),
        (Sentence(["a"], layout=dict(SOFT.layout), id="s2"), "s2.*3 words for 1"),
    ],
)
def test_what_cannot_be_learnt_is_refused_in_one_line(tokenizer: Any, example: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        SoftLabelCollator(tokenizer, TAGS)([example])
    assert "\n" not in str(caught.value)
    assert caught.match(message)


def test_nested_mentions_need_a_choice(tokenizer: Any) -> None:
    nested = GOLD.with_(mentions=[Mention("PER", [(0, 2)]), Mention("LOC", [(1, 2)])])
    with pytest.raises(LossError):
        SoftLabelCollator(tokenizer, TAGS)([nested])
    batch = SoftLabelCollator(tokenizer, TAGS, overlap="outermost")([nested])
    assert batch["labels"][0, :, 1].eq(1).sum() == 0


def test_wrong_parameters_and_models_are_refused(tokenizer: Any) -> None:
    with pytest.raises(ParameterError, match="fast tokenizer"):
        SoftLabelCollator(object(), TAGS)
    for tags in (["B-LOC"], ["O", "O"]):
        with pytest.raises(ParameterError, match="distinct tags with O"):
            SoftLabelCollator(tokenizer, tags)
    with pytest.raises(InputError, match="labels of shape"):
        soft_label_loss({"logits": torch.zeros(1, 2, 3)}, torch.zeros(1, 2, 5))


def test_the_recipe_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path)
    tiny.save(tmp_path / "encoder", "bert")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    first, second = blocks("Hugging Face")
    small = {"(new, 350, 2e-4), (gold, 150, 2e-4)": "(new, 3, 2e-4), (gold, 2, 2e-4)"}
    small["save_strategy="] = "disable_tqdm=True, use_cpu=True, save_strategy="
    namespace: dict[str, Any] = {}
    exec(replaced(first, small), namespace)  # noqa: S102
    assert namespace["trainer"].state.global_step == 2
    labels = transformers.AutoConfig.from_pretrained("model").id2label
    assert [labels[i] for i in range(len(labels))] == namespace["tags"]
    before = [p.clone() for p in namespace["model"].parameters()]
    exec(second, namespace)  # noqa: S102
    assert any(not old.equal(new) for old, new in zip(before, namespace["model"].parameters(), strict=True))
    # As the page says: what metrics get.
    predicted = namespace["trainer"].predict(namespace["sentences"])
    is_word = predicted.label_ids[..., 0] != -100
    for row, words, sentence in zip(predicted.label_ids.argmax(-1), is_word, namespace["new"], strict=True):
        learnt = [namespace["tags"][i] for i in row[words]]
        assert learnt == sentence.iob()[: len(learnt)]  # the end of a long sentence is cut off
        assert len(learnt) > 5
