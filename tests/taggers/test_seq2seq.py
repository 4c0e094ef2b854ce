"""The sequence-to-sequence tagger on tiny models: learning by heart, probabilities by hand, padding, confidences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import entaug
from conftest import EXAMPLE
from entaug.backends.resolve import resolve
from entaug.backends.soft_labels import TagProbabilities
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, ParameterError
from entaug.metrics.span_f1 import score
from entaug.taggers.base import TaggerTrainingConfig, create_tagger, load_tagger
from entaug.taggers.relations import RelationProbabilities
from entaug.taggers.seq2seq import (
    EncodedSentences,
    MentionReader,
    PointerDecoder,
    PointerEncoder,
    Seq2SeqTagger,
    linearize,
    new_decoder,
)
from entaug.teacher.label import label_sentences
from helpers import tiny

pytestmark = pytest.mark.usefixtures("one_thread")

FLAT = list(entaug.read(EXAMPLE / "train.conll"))[:8]
MIXED = [
    Sentence(
        f"{a} and {b} pain in {c} arm today".split(),
        [
            Mention("ADR", [(0, 1), (3, 4)]),
            Mention("ADR", [(2, 4)]),
            Mention("ADR", [(2, 7)]),
            Mention("body part", [(5, 7)]),
        ],
    )
    for a, b, c in [
        ("sharp", "slow", "left"),
        ("dull", "cold", "right"),
        ("old", "hot", "upper"),
        ("new", "long", "my"),
    ]
]
GOLD = [*MIXED, *FLAT]
QUICK = TaggerTrainingConfig(epochs=60, batch_size=6, learning_rate=2e-3, head_learning_rate=5e-3)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("encoders")
    return {kind: tiny.save(folder / kind, kind) for kind in ("bart", "t5", "mbart", "bert")}


def new_tagger(folder: Path, **params: Any) -> Any:
    return create_tagger("seq2seq", encoder=str(folder), device="cpu", precision="fp32", **{"dropout": 0.1, **params})


@pytest.fixture(scope="module")
def trained(folders: dict[str, Path]) -> Any:
    return new_tagger(folders["bart"], representation="span").fit(GOLD, config=QUICK)


# ------------------------------------------------------------------------------------------------------------- learning


def check_by_heart(tagger: Any) -> None:
    predicted = tagger.predict(GOLD)
    scores = score(GOLD, predicted)
    assert scores.micro.f1 == 1.0
    assert {"flat", "inner", "outer", "discontinuous"} <= {kind for kind, one in scores.by_kind.items() if one.gold}


def test_bart_learns_all_shapes_by_heart_saves_and_loads(trained: Any, tmp_path: Path) -> None:
    check_by_heart(trained)
    trained.save(tmp_path / "tagger")
    again: Any = load_tagger(tmp_path / "tagger")
    assert again.predict(GOLD) == trained.predict(GOLD)
    assert again.confidences(GOLD) == trained.confidences(GOLD)
    assert again.get_params() == trained.get_params()


def test_all_sub_words_of_mentions_are_learned_by_heart(folders: dict[str, Path]) -> None:
    check_by_heart(new_tagger(folders["bart"], representation="bpe").fit(GOLD, config=QUICK))


@pytest.mark.slow
def test_words_are_learned_by_heart(folders: dict[str, Path]) -> None:
    check_by_heart(new_tagger(folders["bart"]).fit(GOLD, config=QUICK))


def test_a_new_decoder_learns_all_shapes(folders: dict[str, Path]) -> None:
    # The vectors of an encoder with two random layers say little of single words, so dropout leaves too little.
    tagger = new_tagger(folders["bert"], layers=1, dropout=0.0)
    tagger.fit(GOLD, config=TaggerTrainingConfig(epochs=90, batch_size=3, learning_rate=2e-3, head_learning_rate=5e-3))
    scores = score(GOLD, tagger.predict(GOLD))
    assert scores.micro.f1 > 0.8
    assert scores.by_kind["discontinuous"].f1 > 0.8


@pytest.mark.parametrize("kind", ["t5", "mbart"])
def test_other_architectures_train_predict_save_and_load(kind: str, folders: dict[str, Path], tmp_path: Path) -> None:
    tagger = new_tagger(folders[kind], representation="bpe")
    tagger.fit(GOLD, config=TaggerTrainingConfig(epochs=12, batch_size=6, learning_rate=3e-3, head_learning_rate=5e-3))
    assert tagger.history_.losses[-1] < 0.8 * tagger.history_.losses[0]
    predicted = tagger.predict(GOLD)
    assert [tagger.predict([sentence])[0] for sentence in GOLD] == predicted
    tagger.save(tmp_path / "tagger")
    assert load_tagger(tmp_path / "tagger").predict(GOLD) == predicted


@pytest.mark.parametrize("kind", ["bart", "t5", "bert"])
def test_an_encoder_without_trained_layers_keeps_its_weights_and_the_decoder_learns(
    kind: str, folders: dict[str, Path]
) -> None:
    tagger = new_tagger(folders[kind], trained_layers=0)
    tagger.fit(MIXED, config=TaggerTrainingConfig(steps=2, learning_rate=1e-2, head_learning_rate=1e-2))
    body, plain = tagger._encoder, PointerEncoder(str(folders[kind]))
    table = plain.model.get_input_embeddings().weight
    assert torch.equal(body.model.get_input_embeddings().weight, table)
    for (name, own), (_, old) in zip(body.encoder.named_parameters(), plain.encoder.named_parameters(), strict=True):
        assert torch.equal(own, old) or "pooler" in name  # which has random weights and is not used
    if body.has_decoder:
        decoders = (body.model.get_decoder().named_parameters(), plain.model.get_decoder().named_parameters())
        changed = [name for (name, own), (_, old) in zip(*decoders, strict=True) if not torch.equal(own, old)]
        assert len(changed) > 10


def test_t5_whose_first_layer_serves_the_others_is_run_whole(folders: dict[str, Path]) -> None:
    tagger = new_tagger(folders["t5"], trained_layers=1)
    tagger.fit(MIXED, config=TaggerTrainingConfig(steps=2, learning_rate=1e-2, head_learning_rate=1e-2))
    before = PointerEncoder(str(folders["t5"])).encoder.block.state_dict()
    after = tagger._encoder.encoder.block.state_dict()
    assert {key[0] for key, value in after.items() if not torch.equal(value, before[key])} == {"1"}
    assert not tagger._encoder._lower._is_divisible


def test_untrained_weights_give_valid_mentions_and_end(folders: dict[str, Path]) -> None:
    # After one step the likeliest items are arbitrary; sentences of several rows, odd words and one word.
    odd = [Sentence(("the mild pain \u200b of " * 20).split(" ")[:-1]), Sentence(["x"]), Sentence(["qxz" * 60, "b"])]
    for kind, representation in (("bart", "bpe"), ("bart", "span"), ("bert", "word"), ("t5", "span")):
        tagger = new_tagger(folders[kind], representation=representation)
        tagger.fit(MIXED, config=TaggerTrainingConfig(steps=1))
        for sentence, mentions in zip(odd, tagger.predict_with_confidences(odd), strict=True):
            assert set(sentence.with_(mentions=list(mentions)).mentions) == set(mentions)
            assert all(0 < one <= 1 for one in mentions.values())
            assert {mention.label for mention in mentions} <= {"ADR", "body part"}


# ---------------------------------------------------------------------------------------------------------- the network


def _with(mentions: Iterable[Mention]) -> Any:
    """What stands for a sentence, whose mentions a model may write twice."""
    return SimpleNamespace(mentions=tuple(mentions))


def small_head(representation: Any = "word", size: int = 4) -> Any:
    torch.manual_seed(3)

    class Config:
        hidden_size, num_attention_heads, intermediate_size = size, 2, 8

    return PointerDecoder(
        torch.randn(4, size), ["A", "B"], representation=representation, decoder=new_decoder(Config, 1), scale=0.7
    ).eval()


def source(head: Any, lengths: list[int]) -> EncodedSentences:
    """Sentences of words of one sub-word, the first sub-word of a sentence being a special token."""
    width, size = max(lengths) + 1, head.symbols.shape[1]
    states, embeddings = torch.randn(2, len(lengths), width, size)
    mask = (torch.arange(width)[None] <= torch.tensor(lengths)[:, None]).long()
    pieces = [[[i] for i in range(1, n + 1)] for n in lengths]
    return EncodedSentences(states * mask[..., None], embeddings * mask[..., None], mask, pieces, None)


def sequences(words: int, most: int, representation: Any) -> Iterator[list[int | str]]:
    """Every sequence of at most so many items that is one of mentions."""
    items: list[list[int | str]] = [[]]
    while items:
        prefix = items.pop()
        reader = MentionReader([[i] for i in range(1, words + 1)], representation)
        for item in prefix:
            reader.read(item)
        options = reader.options()
        if options.end:
            yield prefix
        if len(prefix) < most:
            items += [[*prefix, item] for item in [*options.pieces, *("AB" if options.label else "")]]


@pytest.mark.parametrize("representation", ["word", "span"])
def test_probabilities_of_all_sequences_add_up_to_one(representation: Any) -> None:
    head = small_head(representation)
    with torch.no_grad():
        head.symbols[1] *= 4  # the end is likely, so long sequences have little left
        encoded = source(head, [2])
        total = 0.0
        for items in sequences(2, 5, representation):
            reader = MentionReader(encoded.word_pieces[0], representation)
            for item in items:
                reader.read(item)
            if linearize(reader.mentions, encoded.word_pieces[0], representation) == items:
                [(log_prob, number)] = head.log_probs(encoded, [_with(reader.mentions)])
                assert number == len(items) + 1
                total += math.exp(log_prob)
    assert 0.7 < total <= 1 + 1e-5


def test_padding_changes_nothing() -> None:
    head = small_head()
    lengths = [5, 2, 3]
    encoded = source(head, lengths)
    targets = [(Mention("A", [(0, 1), (3, 5)]), Mention("B", [(1, 2)])), (), (Mention("A", [(1, 3)]),)]
    with torch.no_grad():
        together = head.log_probs(encoded, list(map(_with, targets)))
        found = head.decode_with_probabilities(encoded)
        losses = []
        for i, n in enumerate(lengths):
            states, embeddings, mask = (one[i : i + 1, : n + 1] for one in encoded[:3])
            alone = EncodedSentences(states, embeddings, mask, [encoded.word_pieces[i]], None)
            assert head.log_probs(alone, [_with(targets[i])])[0] == pytest.approx(together[i], abs=1e-4)
            [mentions] = head.decode_with_probabilities(alone)
            assert list(mentions) == list(found[i])
            assert list(mentions.values()) == pytest.approx(list(found[i].values()), abs=1e-4)
            losses.append(head.loss(alone, [n], [targets[i]]).item() * together[i][1])
        expected = sum(losses) / sum(number for _, number in together)
        assert head.loss(encoded, lengths, targets).item() == pytest.approx(expected, rel=1e-4)


def test_the_score_of_a_pointer_by_hand() -> None:
    head = small_head()
    encoded = source(head, [2])
    with torch.no_grad():
        states = torch.randn(1, 1, 4)
        scores = head._scores(states, head._memory(encoded))[0, 0]
        # Half of the MLP over the vector and half of the embedding, times the state (section 3.2 of the paper).
        for position in range(3):
            memory = 0.5 * head.mlp(encoded.states[0, position]) + 0.5 * encoded.embeddings[0, position]
            assert scores[3 + position].item() == pytest.approx(0.7 * float(memory @ states[0, 0]), rel=1e-4)
        for symbol in range(3):  # the end, A, B
            expected = 0.7 * float(head.symbols[1 + symbol] @ states[0, 0])
            assert scores[symbol].item() == pytest.approx(expected, rel=1e-4)


def test_greedy_decoding_takes_the_likeliest_item_and_reports_its_probability() -> None:
    head = small_head()
    encoded = source(head, [4])
    with torch.no_grad():
        head.symbols[1] *= 0.2
        [found] = head.decode_with_probabilities(encoded)
        assert found
        first, probability = next(iter(found.items()))
        [items] = [linearize([first], encoded.word_pieces[0], "word")]
        # The same, without a cache: the first items of the sequence, read at once.
        log_probs, ids = head._forced(encoded, [(first,)])
        values = log_probs[0].gather(1, ids[0][:, None])[: len(items), 0]
        assert probability == pytest.approx(math.exp(float(values.sum())), rel=1e-4)
        assert ids[0, : len(items)].tolist() == log_probs[0, : len(items)].argmax(-1).tolist()


def test_a_model_with_a_decoder_points_to_its_own_sub_words(folders: dict[str, Path]) -> None:
    body = PointerEncoder(str(folders["bart"])).eval()
    batch = [body.prepare(sentence.tokens) for sentence in MIXED[:2]] + [body.prepare(["left"])]
    with torch.no_grad():
        encoded = body(batch)
        for i, prepared in enumerate(batch):
            [row], [words] = prepared
            output = body.model.get_encoder()(input_ids=torch.tensor([row]))[0][0]
            assert torch.allclose(encoded.states[i, : len(row)], output, atol=1e-4)
            table = body.model.get_input_embeddings()
            assert torch.allclose(encoded.embeddings[i, : len(row)], table(torch.tensor(row)))
            assert not encoded.states[i, len(row) :].any()
            assert encoded.mask[i].sum() == len(row)
            assert encoded.word_pieces[i] == [
                [p for p, w in enumerate(words) if w == word] for word in range(max(words) + 1)
            ]
        assert encoded.decoder is body.model.get_decoder()
        # A label begins as the mean of the words of its name.
        symbols = body.initial_symbols(["body_part"])
        ids = [i for i in body.tokenizer(["body", "part"], is_split_into_words=True)["input_ids"] if i not in (0, 2)]
        assert torch.allclose(symbols[2], table(torch.tensor(ids)).mean(0))


# ----------------------------------------------------------------------------------------- confidences and soft targets


def test_confidences_are_geometric_means_over_the_items(trained: Any) -> None:
    right = trained.confidences(GOLD)
    assert min(right) > 0.7
    wrong = [sentence.with_(mentions=[Mention("ADR", [(0, 1)])]) for sentence in FLAT]
    assert max(trained.confidences(wrong)) < min(right)
    assert trained.confidences([MIXED[0].with_(mentions=[Mention("NEW", [(0, 1)])])]) == [0.0]
    # The probabilities of the mentions and of the end are those of the whole sequence.
    [found] = trained.predict_with_confidences(MIXED[:1])
    assert set(found) == set(MIXED[0].mentions)
    items = len(linearize(MIXED[0].mentions, [[i] for i in range(8)], "span")) + 1
    assert trained.confidences(MIXED[:1])[0] ** items <= math.prod(found.values()) + 1e-6


def test_attentions_are_those_of_the_encoder(trained: Any) -> None:
    words = [sentence.tokens for sentence in MIXED[:2]]
    for tokens, matrix in zip(words, trained.attentions(words, 2), strict=True):
        assert matrix.shape == (len(tokens), len(tokens))
        assert matrix.sum() > 0


def test_it_labels_text_as_a_teacher(trained: Any) -> None:
    for is_flat in (True, False):
        labelled = label_sentences(GOLD, trained, is_flat=is_flat)
        assert [one.sentence.mentions for one in labelled] == [sentence.mentions for sentence in GOLD]
        assert [one.confidence for one in labelled] == trained.confidences(GOLD)
    with pytest.raises(ParameterError, match="min_token_confidence needs probabilities"):
        label_sentences(GOLD, trained, min_token_confidence=0.5)


def test_soft_labels_are_refused(folders: dict[str, Path]) -> None:
    sentence = Sentence(["a", "b"], id="s7")
    of_tags = TagProbabilities(["O", "B-ADR"], [[0.5, 0.5], [1.0, 0.0]])
    for soft in (of_tags, RelationProbabilities(["NNW", "THW-ADR"], 2, [[0, 0, 1]], [0.7])):
        with pytest.raises(InputError, match="s7 has soft labels, which the seq2seq tagger cannot learn"):
            new_tagger(folders["bart"]).fit(MIXED, augmented=[soft.attach_to(sentence)])
    with pytest.raises(ParameterError, match="averages probabilities of tags or relations, and seq2seq gives none"):
        create_tagger("ensemble", member="seq2seq")


def test_what_cannot_be_is_refused(trained: Any) -> None:
    with pytest.raises(ParameterError, match="gives no probabilities to tags"):
        trained.tag_probabilities(GOLD)
    with pytest.raises(ParameterError, match="is not trained"):
        Seq2SeqTagger().predict_with_confidences(GOLD)
    with pytest.raises(ParameterError, match="representation"):
        create_tagger("seq2seq", representation="sentence")


def test_its_name_may_have_parameters() -> None:
    tagger = resolve("tagger", "seq2seq:encoder=a/b;steps=7")
    assert (tagger.encoder, tagger.config.steps) == ("a/b", 7)
