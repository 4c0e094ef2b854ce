"""What heads learn from probabilities of tags: marginals of the CRF, losses by hand, and learning from a teacher."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import EXAMPLE
from entaug.backends.soft_labels import TagProbabilities
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError
from entaug.formats import read
from entaug.taggers.base import TaggerTrainingConfig, create_tagger
from entaug.taggers.flat import BiLSTMCRFTagger, CRFDecoder, LinearDecoder, LinearTagger
from helpers import tiny

GOLD = list(read(EXAMPLE / "train.conll"))[:16]
LENGTHS = [4, 1, 2]


def _crf(labels: list[str], seed: int = 1) -> Any:
    torch.manual_seed(seed)
    head: Any = CRFDecoder(4, labels, BiLSTMCRFTagger(hidden=3, dropout=0)).eval()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
    return head


def _soft(head: Any, length: int, seed: int, weights: Any = None) -> TagProbabilities:
    rows = np.random.default_rng(seed).dirichlet(np.ones(len(head.tags)), length)
    return TagProbabilities(head.tags, rows, weights)


def _one_hot(sentence: Sentence, head: Any, weights: Any = None) -> TagProbabilities:
    return TagProbabilities(head.tags, np.eye(len(head.tags))[head.tag_ids(sentence).numpy()], weights)


@pytest.mark.parametrize("labels", [["X"], ["X", "Y"]])
def test_marginals_of_the_crf_are_sums_over_all_paths(labels: list[str]) -> None:
    head = _crf(labels)
    vectors = torch.randn(len(LENGTHS), max(LENGTHS), 4)
    with torch.no_grad():
        marginals = head.log_marginals(vectors, LENGTHS).exp()
        scores, _ = head._scores(vectors, LENGTHS)
    number = len(head.tags)
    start, end, transitions = (
        p.detach().double() for p in (head.crf.start_transitions, head.crf.end_transitions, head.crf.transitions)
    )
    for row, found, length in zip(scores.double(), marginals, LENGTHS, strict=True):
        expected = torch.zeros(length, number, dtype=torch.float64)
        for path in itertools.product(range(number), repeat=length):
            score = start[path[0]] + end[path[-1]] + sum(row[i, tag] for i, tag in enumerate(path))
            score = score + sum(transitions[a, b] for a, b in itertools.pairwise(path))
            for i, tag in enumerate(path):
                expected[i, tag] += score.exp()
        expected /= expected.sum(1, keepdim=True)
        torch.testing.assert_close(found[:length].double(), expected, rtol=1e-3, atol=1e-5)


def test_marginals_have_gradients() -> None:
    head = _crf(["X"])
    assert torch.autograd.gradcheck(
        lambda scores: _marginals_of_scores(head.double(), scores), torch.randn(2, 3, 3).double().requires_grad_()
    )


def _marginals_of_scores(head: Any, scores: torch.Tensor) -> torch.Tensor:
    head._scores = lambda vectors, lengths: (scores, torch.tensor([[True] * 3, [True, True, False]]))
    result: torch.Tensor = head.log_marginals(scores, [3, 2])
    return torch.cat([result[0], result[1, :2]])


def test_the_soft_loss_of_a_linear_head_by_hand() -> None:
    head = LinearDecoder(2, ["X"], LinearTagger(dropout=0))
    with torch.no_grad():
        head.linear.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [0, 0]]))
        head.linear.bias.zero_()
    soft = TagProbabilities(["O", "B-X"], [[0.5, 0.5], [0.25, 0.75]], [2, 0.5])
    sentences = [soft.attach_to(Sentence(["a", "b"])), Sentence(["c"])]
    vectors = torch.tensor([[[0.0, 0], [1, 2]], [[3, 0], [9, 9]]])
    loss = head.loss(vectors, [2, 1], [head.targets(sentence) for sentence in sentences])
    second = np.log(np.exp(1) + np.exp(2) + 1) - (0.25 * 1 + 0.75 * 2)
    third = np.log(np.exp(3) + 2) - 3
    expected = (2 * np.log(3) + 0.5 * second + third) / 3.5
    assert float(loss.detach()) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "make", [lambda: LinearDecoder(4, ["X", "Y"], LinearTagger(dropout=0)), lambda: _crf(["X", "Y"])]
)
def test_words_of_weight_0_teach_nothing(make: Any) -> None:
    head = make()
    vectors = torch.randn(1, 4, 4)
    losses = []
    for seed in (1, 2):
        soft = _soft(head, 4, seed)
        rows = np.concatenate([_soft(head, 2, 9).values, soft.values[2:]])
        sentence = TagProbabilities(head.tags, rows, [1, 1, 0, 0]).attach_to(Sentence("a b c d".split()))
        losses.append(float(head.loss(vectors, [4], [head.targets(sentence)]).detach()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert losses[0] > 0
    nothing = _soft(head, 4, 1, [0, 0, 0, 0]).attach_to(Sentence("a b c d".split()))
    loss = head.loss(vectors, [4], [head.targets(nothing)])
    loss.backward()
    assert float(loss.detach()) == 0
    assert all(p.grad is None or not p.grad.any() for p in head.parameters())


def test_certain_soft_targets_are_hard_ones_for_a_linear_head() -> None:
    torch.manual_seed(2)
    labels = sorted({mention.label for sentence in GOLD for mention in sentence.mentions})
    head = LinearDecoder(6, labels, LinearTagger(dropout=0))
    lengths = [len(sentence) for sentence in GOLD]
    vectors = torch.randn(len(GOLD), max(lengths), 6)
    hard = [head.targets(sentence) for sentence in GOLD]
    soft = [head.targets(_one_hot(s, head).attach_to(s) if i % 2 else s) for i, s in enumerate(GOLD)]
    torch.testing.assert_close(head.loss(vectors, lengths, hard), head.loss(vectors, lengths, soft))


def test_sentences_of_both_kinds_share_a_batch_of_the_crf() -> None:
    head = _crf(["X"])
    vectors = torch.randn(3, 4, 4)
    hard = Sentence("a b c d".split(), [Mention("X", [(1, 3)])])
    soft = [_soft(head, n, n).attach_to(Sentence("a b c d".split()[:n])) for n in (1, 2)]
    targets = [head.targets(sentence) for sentence in (hard, *soft)]
    together = head.loss(vectors, LENGTHS, targets)
    alone = [head.loss(vectors[i : i + 1, :n], [n], [targets[i]]) for i, n in enumerate(LENGTHS)]
    torch.testing.assert_close(together, sum(alone) / 3, rtol=1e-4, atol=1e-4)
    # A certain tag sequence of one word costs the same, as a path and as marginals.
    word = Sentence(["a"], [Mention("X", [(0, 1)])])
    costs = [head.loss(vectors[:1, :1], [1], [head.targets(s)]) for s in (word, _one_hot(word, head).attach_to(word))]
    torch.testing.assert_close(*costs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["linear", "bilstm-crf"])
def test_a_student_learns_what_its_teacher_believes(name: str, tmp_path: Path) -> None:
    encoder = str(tiny.save(tmp_path / "bert", "bert"))
    unlabelled = [sentence.with_(mentions=()) for sentence in GOLD]
    # A teacher that is wrong everywhere, so that only its probabilities can have taught the student.
    labels = sorted({mention.label for sentence in GOLD for mention in sentence.mentions})
    shifted = dict(zip(labels, [*labels[1:], labels[0]], strict=True))
    wrong = [s.with_(mentions=[Mention(shifted[m.label], m.spans) for m in s.mentions]) for s in GOLD]
    head = LinearDecoder(1, labels, LinearTagger())
    soft = []
    for sentence, believed in zip(unlabelled, wrong, strict=True):
        values = 0.9 * _one_hot(believed, head).values + 0.1 / len(head.tags)
        soft.append(TagProbabilities(head.tags, values).attach_to(sentence))
    size = {"hidden": 48} if name == "bilstm-crf" else {}
    student: Any = create_tagger(name, encoder=encoder, device="cpu", precision="fp32", **size)
    config = TaggerTrainingConfig(
        steps=100, batch_size=16, schedule="staged", first_stage=1.0, learning_rate=2e-3, head_learning_rate=5e-3
    )
    student.fit(GOLD, augmented=soft, config=config)
    expected = [tag for sentence in wrong for tag in sentence.iob()]
    found = [tag for soft_labels in student.tag_probabilities(GOLD) for tag in soft_labels.best_tags()]
    assert np.mean([a == b for a, b in zip(expected, found, strict=True)]) > 0.9


def test_soft_labels_that_do_not_fit_are_told(tmp_path: Path) -> None:
    head = LinearDecoder(2, ["X"], LinearTagger())
    sentence = _soft(head, 3, 1).attach_to(Sentence(["a", "b"]))
    with pytest.raises(InputError, match="3 words for 2"):
        head.targets(sentence)
