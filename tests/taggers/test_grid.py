from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import entaug
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.taggers.relations import MAX_MENTIONS, NNW, THW, decode, relations
from entaug.taggers.w2ner import _GELU, GridDecoder, W2NERTagger
from helpers.counting import count_lines
from helpers.strategies import sentences

pytestmark = pytest.mark.usefixtures("one_thread")

Relation = tuple[int, int, str]


def sentence(n: int, *mentions: tuple[str, list[tuple[int, int]]]) -> Sentence:
    return Sentence([f"w{i}" for i in range(n)], [Mention(label, spans) for label, spans in mentions])


def read_back(found: Iterable[Relation], paths: int = 100) -> tuple[Mention, ...]:
    found = sorted(found)
    nnw = [(row, column) for row, column, name in found if name == NNW]
    thw = [(row, column, name.removeprefix(THW)) for row, column, name in found if name != NNW]
    return decode(nnw, thw, max_paths=paths)


def small_head(labels: Iterable[str] = ("A", "B"), size: int = 12, seed: int = 0, hidden: int = 8) -> GridDecoder:
    torch.manual_seed(seed)
    return GridDecoder(size, list(labels), W2NERTagger(hidden=hidden, channels=8, biaffine=8, dropout=0.1))


# ----------------------------------------------------------------------------------------------- mentions and relations

BY_HAND: dict[str, tuple[Sentence, set[Relation]]] = {
    "none": (sentence(3), set()),
    "one word": (sentence(3, ("A", [(1, 2)])), {(1, 1, "THW-A")}),
    "flat": (
        sentence(5, ("A", [(0, 1)]), ("B", [(2, 5)])),
        {(0, 0, "THW-A"), (2, 3, NNW), (3, 4, NNW), (4, 2, "THW-B")},
    ),
    "nested, with one head": (
        sentence(3, ("A", [(0, 3)]), ("B", [(0, 2)])),
        {(0, 1, NNW), (1, 2, NNW), (2, 0, "THW-A"), (1, 0, "THW-B")},
    ),
    # "aching in legs and shoulders": aching in legs; aching in shoulders
    "discontinuous": (
        sentence(5, ("A", [(0, 3)]), ("A", [(0, 2), (4, 5)])),
        {(0, 1, NNW), (1, 2, NNW), (1, 4, NNW), (2, 0, "THW-A"), (4, 0, "THW-A")},
    ),
    "partly overlapping": (
        sentence(4, ("A", [(0, 2)]), ("A", [(1, 4)])),
        {(0, 1, NNW), (1, 2, NNW), (2, 3, NNW), (1, 0, "THW-A"), (3, 1, "THW-A")},
    ),
    "one span, two labels": (
        sentence(2, ("A", [(0, 2)]), ("B", [(0, 2)])),
        {(0, 1, NNW), (1, 0, "THW-A"), (1, 0, "THW-B")},
    ),
    "one head, one tail, one label, other words": (
        sentence(4, ("A", [(0, 2), (3, 4)]), ("A", [(0, 1), (2, 4)])),
        {(0, 1, NNW), (1, 3, NNW), (0, 2, NNW), (2, 3, NNW), (3, 0, "THW-A")},
    ),
}


@pytest.mark.parametrize(("gold", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_relations_and_back(gold: Sentence, expected: set[Relation]) -> None:
    assert relations(gold) == expected
    assert read_back(expected) == gold.mentions


@pytest.mark.parametrize(
    ("gold", "more"),
    [
        # Each label gets the words of both.
        (
            sentence(3, ("A", [(0, 3)]), ("B", [(0, 1), (2, 3)])),
            [Mention("A", [(0, 1), (2, 3)]), Mention("B", [(0, 3)])],
        ),
        # A step of one mention is a short cut in another.
        (
            sentence(4, ("A", [(0, 3)]), ("A", [(0, 1), (2, 4)])),
            [Mention("A", [(0, 1), (2, 3)]), Mention("A", [(0, 4)])],
        ),
    ],
)
def test_what_the_grid_cannot_say_comes_along(gold: Sentence, more: list[Mention]) -> None:
    assert set(read_back(relations(gold))) == {*gold.mentions, *more}


def by_brute_force(found: set[Relation]) -> set[Mention]:
    """All sets of words between each head and tail of which each is joined to the next."""
    mentions = set()
    for tail, head, name in found:
        if name == NNW:
            continue
        between = range(head + 1, tail)
        for many in range(len(between) + 1):
            for inner in itertools.combinations(between, many):
                path = sorted({head, *inner, tail})
                if all((a, b, NNW) in found for a, b in itertools.pairwise(path)):
                    mentions.add(Mention(name.removeprefix(THW), [(i, i + 1) for i in path]))
    return mentions


@given(sentences(max_tokens=10))
def test_decoding_gives_all_paths_and_so_a_superset(gold: Sentence) -> None:
    found = relations(gold)
    assert all(row < column if name == NNW else row >= column for row, column, name in found)
    back = read_back(found, paths=1000)
    assert list(back) == list(Sentence(gold.tokens, back).mentions)
    assert set(back) == by_brute_force(found)
    assert set(back) >= set(gold.mentions)


@given(sentences(gaps=False, max_tokens=20))
def test_contiguous_mentions_come_back_exactly(gold: Sentence) -> None:
    assert read_back(relations(gold)) == gold.mentions


@given(st.data())
def test_any_relations_give_valid_mentions_and_no_order_matters(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 8))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    drawn = data.draw(st.sets(pairs))
    nnw = [pair for pair in drawn if pair[0] < pair[1]]
    thw = [(*pair, label) for pair in drawn if pair[0] >= pair[1] for label in "AB"]
    found = decode(nnw, thw)
    assert Sentence(["w"] * n, found).mentions == found
    assert decode(reversed(nnw), reversed(thw)) == found


def test_paths_are_few_words_first_then_leftmost() -> None:
    nnw = [(0, 1), (1, 4), (0, 2), (2, 4), (2, 3), (3, 4), (0, 4)]
    shortest = [(0, 4), (0, 1, 4), (0, 2, 4), (0, 2, 3, 4)]
    for most in range(6):
        assert {m.positions() for m in decode(nnw, [(4, 0, "A")], max_paths=most)} == set(shortest[:most])


def test_the_likeliest_cells_come_first_where_there_are_too_many() -> None:
    found = decode([], [(3, 3, "A"), (0, 0, "A"), (2, 2, "A")], max_mentions=2)
    assert [m.positions() for m in found] == [(0,), (3,)]
    assert decode([(0, 1)], [(1, 0, "A")], max_paths=0) == ()


def test_a_hostile_grid_does_not_hang() -> None:
    n = 200
    nnw = list(itertools.combinations(range(n), 2))
    thw = [(tail, head, label) for tail in range(n) for head in range(tail + 1) for label in "ABC"]
    assert count_lines(lambda: decode(nnw, reversed(thw))) < 10_000_000
    assert len(decode(nnw, reversed(thw))) == MAX_MENTIONS
    # Two steps from each word: the shortest paths are long, and there are very many.
    ladder = [(i, j) for i, j in nnw if j - i <= 2]
    assert len(decode(ladder, reversed(thw))) == MAX_MENTIONS
    # Two ways that never meet the tail.
    assert decode([pair for pair in nnw if pair[1] < n - 1], [(n - 1, 0, "A")]) == ()


@pytest.mark.corpora
@pytest.mark.parametrize(("kind", "count"), [("nested", 56046), ("discontinuous", 57992)])
def test_all_of_genia_survives(corpora: Path, kind: str, count: int) -> None:
    gold = back = kept = 0
    for path in sorted((corpora / "genia" / f"{kind}-jsonl").glob("*.jsonl*")):
        for one in entaug.stream(path):
            decoded = read_back(relations(one))
            gold += len(one.mentions)
            back += len(decoded)
            kept += len(set(decoded) & set(one.mentions))
    assert (gold, back, kept) == (count, count, count)


# ------------------------------------------------------------------------------------------------------------- the head


def test_targets() -> None:
    gold = sentence(4, ("B", [(0, 1), (2, 4)]), ("A", [(1, 2)]))
    assert small_head().targets(gold).cells.tolist() == [[0, 2, 0], [1, 1, 1], [2, 3, 0], [3, 0, 2]]
    assert small_head().targets(sentence(2)).cells.shape == (0, 3)


@pytest.mark.parametrize("hidden", [8, 0])
def test_padding_changes_nothing(hidden: int) -> None:
    head = small_head(hidden=hidden).eval()
    lengths = [9, 1, 2, 6]
    # What stands behind a sentence may be anything.
    vectors = torch.randn(len(lengths), 14, 12)
    with torch.no_grad():
        together = head.scores(vectors, lengths)
        assert together.shape == (4, 9, 9, 3)
        for i, n in enumerate(lengths):
            alone = head.scores(vectors[i : i + 1, :n], [n])
            assert torch.allclose(together[i, :n, :n], alone[0], atol=1e-4)
        mentions = [((("A", [(0, 1)]),), 1), ((), 2)]
        golds = [sentence(9), *(sentence(n, *m) for m, n in mentions), sentence(6, ("B", [(1, 2), (4, 6)]))]
        targets = [head.targets(gold) for gold in golds]
        each = [
            head.loss(vectors[i : i + 1, :n], [n], [target]) * n
            for i, (n, target) in enumerate(zip(lengths, targets, strict=True))
        ]
        assert torch.allclose(head.loss(vectors, lengths, targets) * sum(lengths), torch.stack(each).sum(), rtol=1e-4)


def test_decoding_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    head = small_head().eval()
    with torch.no_grad():
        head.bias.fill_(0.0)
    vectors, lengths = torch.randn(5, 7, 12), [7, 3, 1, 5, 2]
    whole = head.decode(vectors, lengths)
    assert sum(map(len, whole)) > 5
    for n, mentions in zip(lengths, whole, strict=True):
        assert Sentence(["w"] * n, mentions).mentions == mentions
    monkeypatch.setattr(GridDecoder, "CELLS", 1)
    assert head.decode(vectors, lengths) == whole
    assert head.decode(vectors[:0], []) == []


def test_loss_is_of_what_can_be_alone() -> None:
    head = small_head(["A"]).eval()
    vectors = torch.randn(1, 3, 12)
    scores = head.scores(vectors, [3])[0]
    gold = sentence(3, ("A", [(0, 1), (2, 3)]))
    expected = 0.0
    for row, column in itertools.product(range(3), range(3)):
        score = scores[row, column, 0 if row < column else 1]
        related = (row, column) in {(0, 2), (2, 0)}
        expected -= (head.weight if related else 1) * torch.nn.functional.logsigmoid(
            score if related else -score
        ).item()
    assert head.loss(vectors, [3], [head.targets(gold)]).item() == pytest.approx(expected / 3, rel=1e-5)


def test_softmax_loss_by_hand() -> None:
    options = W2NERTagger(hidden=0, channels=4, biaffine=3, weight=1, residual=False, activation="softmax")
    head = GridDecoder(12, ["A", "B"], options).eval()
    vectors = torch.randn(2, 4, 12)
    scores = head.scores(vectors, [3, 4]).detach()
    # The second mention has the words of the first: their labels share a cell.
    golds = [sentence(3, ("A", [(0, 1), (2, 3)])), sentence(4, ("A", [(1, 2)]), ("B", [(1, 2)]))]
    wanted = {(0, 0, 2): [0], (0, 2, 0): [1], (1, 1, 1): [1, 2]}  # NNW; THW-A; THW-A and THW-B
    expected = 0.0
    for i, n in enumerate((3, 4)):
        for row, column in itertools.product(range(n), range(n)):
            classes = [0] if row < column else [1, 2]
            log_probs = torch.cat([torch.zeros(1), scores[i, row, column, classes]]).log_softmax(0)
            if (labels := wanted.get((i, row, column))) is None:
                expected -= log_probs[0].item()
            else:
                expected -= sum(log_probs[1 + classes.index(label)].item() for label in labels) / len(labels)
    loss = head.loss(vectors, [3, 4], [head.targets(gold) for gold in golds])
    assert loss.item() == pytest.approx(expected / (9 + 16), rel=1e-5)
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in head.parameters())


def test_softmax_probabilities_of_a_cell_add_up_to_one_at_most() -> None:
    options = W2NERTagger(hidden=4, channels=4, biaffine=3, activation="softmax")
    head = GridDecoder(12, ["A", "B"], options, prior=0.4).eval()
    head.LEAST = 1e-30
    [soft] = head.probabilities(torch.randn(1, 5, 12), [5])
    total = torch.zeros(5, 5)
    for (row, column, _), value in zip(soft.cells.tolist(), soft.values.tolist(), strict=True):
        total[row, column] += value
    assert ((total > 0) & (total < 1)).all()


def test_without_labels_and_without_mentions() -> None:
    head = small_head([]).eval()
    loss = head.loss(torch.randn(2, 3, 12), [3, 2], [head.targets(sentence(3)), head.targets(sentence(2))])
    loss.backward()  # type: ignore[no-untyped-call]
    assert 0 < loss.item() < 1
    assert head.decode(torch.randn(1, 3, 12), [3]) == [()]


def test_bf16_autocast() -> None:
    head = small_head()
    gold = sentence(5, ("A", [(0, 2), (3, 5)]))
    vectors = torch.randn(2, 5, 12)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = head.loss(vectors.bfloat16(), [5, 3], [head.targets(gold), head.targets(sentence(3))])
    assert loss.dtype == torch.float32
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in head.parameters())
    head.eval()
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        low = head.scores(vectors, [5, 3])
        head.decode(vectors, [5, 3])
    with torch.no_grad():
        assert torch.allclose(low[0], head.scores(vectors, [5, 3])[0], atol=0.1)


def test_two_hundred_words() -> None:
    head = GridDecoder(384, list("ABCDE"), W2NERTagger())
    vectors = torch.randn(1, 200, 384)
    head.loss(vectors, [200], [head.targets(sentence(200, ("A", [(0, 1), (199, 200)])))]).backward()  # type: ignore[no-untyped-call]
    assert head.eval().decode(vectors, [200]) == [()]


def corpus(many: int, words: int = 40, seed: int = 0) -> list[Sentence]:
    """Sentences with three mentions each, nested or discontinuous, that the grid can say."""
    draw = random.Random(seed)
    found: list[Sentence] = []
    while len(found) < many:
        n = draw.randint(6, 12)
        mentions = set()
        for _ in range(3):
            cuts = sorted(draw.sample(range(n + 1), draw.choice([2, 4])))
            mentions.add(Mention(draw.choice("AB"), zip(cuts[::2], cuts[1::2], strict=True)))
        one = Sentence([f"w{draw.randrange(words)}" for _ in range(n)], mentions)
        if not one.is_flat and read_back(relations(one)) == one.mentions:
            found.append(one)
    return found


@pytest.mark.parametrize("activation", ["sigmoid", "softmax"])
def test_a_head_learns_twenty_sentences_by_heart(activation: Any) -> None:
    torch.manual_seed(0)
    # A softmax has one label for a first and a last word.
    gold = [one for one in corpus(21) if len({(m.start, m.end) for m in one.mentions}) == len(one.mentions)][:20]
    assert sum(not m.is_contiguous for one in gold for m in one.mentions) > 10
    table = torch.nn.Embedding(40, 32).requires_grad_(requires_grad=False)
    vectors = [table(torch.tensor([int(token[1:]) for token in one.tokens])) for one in gold]
    padded = torch.nn.utils.rnn.pad_sequence(vectors, batch_first=True)
    lengths = [len(one) for one in gold]
    options = W2NERTagger(hidden=64, channels=32, biaffine=32, dropout=0.0, activation=activation)
    head = GridDecoder(32, ["A", "B"], options)
    targets = [head.targets(one) for one in gold]
    optimizer = torch.optim.AdamW(head.parameters(), lr=3e-3)
    for step in range(300):
        loss = head.loss(padded, lengths, targets)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 19 and head.decode(padded, lengths) == [one.mentions for one in gold]:
            break
    assert head.eval().decode(padded, lengths) == [one.mentions for one in gold]


def test_activations_of_large_negative_numbers_are_zero_and_not_denormal() -> None:
    large = torch.linspace(-40.0, -8.0, 1000, requires_grad=True)
    _GELU(large).sum().backward()
    assert not _GELU(large).any()
    assert large.grad is not None
    assert not large.grad.any()
