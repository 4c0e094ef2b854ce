"""The tagger seq2seq: a decoder writes mentions of any shape as pointers to words, and labels (Yan et al. 2021).

The sequences are those of Yan et al. (2021, "A Unified Generative Framework for Various NER Subtasks", ACL): each
mention is written as positions of sub-words of the sentence, then its label; mentions come one after another, in the
order of their first words, then of their last ones. A mention is represented in one of three ways: ``"word"``, by the
first sub-word of each of its words; ``"bpe"``, by all its sub-words; ``"span"``, by the first and the last sub-word of
each of its spans.

`MentionReader` reads a sequence and says at each step which pointers and labels can follow, so that every sequence that
keeps to it is a list of mentions. Each mention has exactly one sequence in each representation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
import transformers
from transformers.models.bart.modeling_bart import BartDecoder

from entaug.backends.soft_labels import TagProbabilities
from entaug.backends.transformers.base import tokenize_words
from entaug.backends.transformers.training import IGNORED
from entaug.config.params import PositiveInt
from entaug.core.data import Sentence
from entaug.core.mentions import Mention, Span
from entaug.errors import InputError
from entaug.taggers.encoders import Encoder, EncoderInput
from entaug.taggers.neural import Dropout, EncoderTagger
from entaug.taggers.relations import RelationProbabilities

Representation = Literal["word", "bpe", "span"]

_T5_FAMILY = frozenset({"t5", "mt5", "umt5", "longt5"})
_MAX_POSITIONS = 1024  # of a new decoder
_END = 0  # numbers of outputs: the end, the labels from 1, the sub-words
_MIXTURE = 0.5  # the share of a sub-word's vector in what pointers are compared with
_IMPOSSIBLE = -1e9  # a logit; minus infinity would give gradients that are not numbers


def target_order(mentions: Iterable[Mention]) -> list[Mention]:
    """Sort mentions by their first words, then by their last ones, as the paper does."""
    return sorted(mentions, key=lambda mention: (mention.start, mention.end, mention.spans, mention.label))


def linearize(
    mentions: Iterable[Mention], word_pieces: Sequence[Sequence[int]], representation: Representation
) -> list[int | str]:
    """Write mentions as a sequence of pointers and labels."""
    items: list[int | str] = []
    for mention in target_order(mentions):
        if representation == "span":
            for start, end in mention.spans:
                items += [word_pieces[start][0], word_pieces[end - 1][-1]]
        else:
            for word in mention.positions():
                items += word_pieces[word] if representation == "bpe" else word_pieces[word][:1]
        items.append(mention.label)
    return items


def most_items(num_pieces: int) -> int:
    """The number of items after which a sequence is broken off, so that it ends whatever a model predicts."""
    # The paper allows 10 + 0.5 n to 50 + 1.1 n by corpus, for n sub-words.
    return 16 + 2 * num_pieces


class Options(NamedTuple):
    """Valid next items of a sequence."""

    pieces: Sequence[int]
    label: bool
    end: bool


class MentionReader:
    """Reads a sequence of pointers and labels step by step."""

    # Within a mention words come in their order, and those of a span without gaps where the representation lists its
    # ends. A mention does not begin before the mention that precedes it.

    def __init__(self, word_pieces: Sequence[Sequence[int]], representation: Representation) -> None:
        self.mentions: list[Mention] = []
        self._representation = representation
        self._word_pieces = word_pieces
        self._first = [pieces[0] for pieces in word_pieces]
        self._last = [pieces[-1] for pieces in word_pieces]
        self._word_of = {piece: word for word, pieces in enumerate(word_pieces) for piece in pieces}
        self._spans: list[Span] = []  # of the mention that was begun
        self._span_start: int | None = None  # first word of a span whose end is missing
        self._rest: Sequence[int] = ()  # sub-words of the last word that are missing
        self._least = 0  # the first word that the next mention may begin with

    def options(self) -> Options:
        """Determine what may follow."""
        if self._rest:
            return Options(list(self._rest[:1]), label=False, end=False)
        if self._span_start is not None:
            return Options(self._last[self._span_start :], label=False, end=False)
        if not self._spans:
            return Options(self._first[self._least :], label=False, end=True)
        # A span that began right behind another one would be part of it.
        gap = 1 if self._representation == "span" else 0
        return Options(self._first[self._spans[-1][1] + gap :], label=True, end=False)

    def read(self, item: int | str) -> None:
        """Read the next item of the sequence."""
        if isinstance(item, str):
            mention = Mention(item, self._spans)
            self.mentions.append(mention)
            self._least, self._spans = mention.start, []
        elif self._rest:
            self._rest = self._rest[1:]
        elif self._representation != "span":
            word = self._word_of[item]
            self._spans.append((word, word + 1))
            if self._representation == "bpe":
                self._rest = self._word_pieces[word][1:]
        elif self._span_start is None:
            self._span_start = self._word_of[item]
        else:
            self._spans.append((self._span_start, self._word_of[item] + 1))
            self._span_start = None


class EncodedSentences(NamedTuple):
    """Encoded sentences of a batch, as a decoder reads them."""

    states: torch.Tensor
    embeddings: torch.Tensor
    mask: torch.Tensor
    word_pieces: list[list[list[int]]]
    decoder: Any


class PointerEncoder(Encoder):
    """A pretrained encoder and its decoder, if it has one, fine-tuned with a `PointerDecoder`."""

    def __init__(
        self, encoder: str, pooling: Literal["first", "max"] = "first", *, trained_layers: int | None = None
    ) -> None:
        super().__init__(encoder, pooling, trained_layers=trained_layers)
        if trained_layers is not None and self.has_decoder:
            self.model.get_decoder().requires_grad_(requires_grad=True)
            self.model.get_input_embeddings().requires_grad_(requires_grad=False)

    def train(self, mode: bool = True) -> Self:
        """Set the mode; the decoder learns also where the encoder is frozen."""
        super().train(mode)
        if self.has_decoder:
            self.model.get_decoder().train(mode)
        return self

    @property
    def has_decoder(self) -> bool:
        """Whether the model has a pretrained decoder."""
        return bool(getattr(self.model.config, "is_encoder_decoder", False))

    @property
    def score_scale(self) -> float:
        """Factor of the scores of the outputs."""
        # The states of the decoders of BART and its relatives are made for products with embeddings as they are. T5
        # scales them, and so do new decoders, whose first scores should be small.
        if self.has_decoder and self.model.config.model_type not in _T5_FAMILY:
            return 1.0
        return float(self.size**-0.5)

    @property
    def encoder(self) -> Any:
        """The part of the model that encodes sentences."""
        return self.model.get_encoder() if self.has_decoder else self.model

    def forward(self, batch: Sequence[EncoderInput]) -> EncodedSentences:  # type: ignore[override]
        """Encode sentences."""
        ids, states = self._encode(batch)
        embeddings = self.model.get_input_embeddings()(ids).float()
        index: list[torch.Tensor] = []  # of the sub-words of each sentence, whose rows follow one another
        word_pieces: list[list[list[int]]] = []
        row = 0
        for sentence in batch:
            words = [word for row in sentence.word_indices for word in row]
            pieces: list[list[int]] = [[] for _ in range(max(words) + 1)]
            for position, word in enumerate(words):
                if word >= 0:
                    pieces[word].append(position)
            word_pieces.append(pieces)
            starts = range(row * ids.shape[1], ids.numel(), ids.shape[1])
            own = [torch.arange(start, start + len(one)) for start, one in zip(starts, sentence.rows, strict=False)]
            index.append(torch.cat(own))
            row += len(sentence.rows)
        padding = ids.numel()  # refers to an additional vector of zeros
        padded = torch.nn.utils.rnn.pad_sequence(index, True, padding_value=padding).to(states.device)
        states_of, embeddings_of = (
            torch.cat([vectors.flatten(0, 1), vectors.new_zeros(1, self.size)])[padded]
            for vectors in (states, embeddings)
        )
        decoder = self.model.get_decoder() if self.has_decoder else None
        return EncodedSentences(states_of, embeddings_of, (padded < padding).long(), word_pieces, decoder)

    def initial_symbols(self, labels: Sequence[str]) -> torch.Tensor:
        """Compute the initial embeddings of the start, the end and the labels from those of the model."""
        table, config, tokenizer = self.model.get_input_embeddings(), self.model.config, self.tokenizer
        end = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else self._suffix[0] if self._suffix else 0
        start = getattr(config, "decoder_start_token_id", None)
        if start is None:
            start = end if self.has_decoder else self._prefix[0] if self._prefix else end
        rows = [[start], [end]]
        for label in labels:
            ids, words = tokenize_words(tokenizer, label.replace("_", " ").replace("-", " ").split() or [label])
            rows.append([i for i, word in zip(ids, words, strict=True) if word >= 0] or [tokenizer.unk_token_id or 0])
        device = self.model.device
        with torch.no_grad():
            return torch.stack([table(torch.tensor(row, device=device)).float().mean(0) for row in rows])


def new_decoder(config: Any, layers: int) -> torch.nn.Module:
    """Create a transformer decoder with random weights for an encoder without decoder."""
    size = int(config.hidden_size)
    heads = int(getattr(config, "num_attention_heads", 1))
    # Inputs are vectors, so there are no tokens.
    without: dict[str, Any] = dict.fromkeys(
        ("bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_eos_token_id")
    )
    shape = transformers.BartConfig(
        **without,
        vocab_size=1,
        pad_token_id=0,
        d_model=size,
        decoder_layers=layers,
        decoder_attention_heads=heads if size % heads == 0 else 1,
        decoder_ffn_dim=int(getattr(config, "intermediate_size", 4 * size)),
        max_position_embeddings=_MAX_POSITIONS,
        dropout=0.1,
        activation_function="gelu",
    )
    decoder = BartDecoder(shape)
    decoder.embed_tokens.weight.requires_grad = False
    return decoder


class PointerDecoder(torch.nn.Module):
    """Writes the mentions of a sentence as a sequence of pointers and labels (Yan et al. 2021, section 3)."""

    # The decoder reads the embeddings of what it wrote: of the sub-words that it pointed to, and of labels. Its state
    # is multiplied with the embeddings of the end and of the labels, and with a mixture of each sub-word's embedding
    # and of an MLP over its vector. The softmax over these products gives the probability of the next item. Items that
    # cannot follow (see `MentionReader`) have the probability 0, in training as in prediction. A new decoder also reads
    # the vectors of the sub-words, added to their embeddings: so it need not learn from few sentences which of several
    # equal words was meant.

    only_flat = False

    def __init__(
        self,
        initial: torch.Tensor,
        labels: Sequence[str],
        *,
        representation: Representation = "word",
        decoder: torch.nn.Module | None = None,
        scale: float = 1.0,
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        size = initial.shape[1]
        self.labels = list(labels)
        self.representation = representation
        self.scale = scale
        self.symbols = torch.nn.Parameter(initial.detach().clone())
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(size, size), torch.nn.Dropout(dropout), torch.nn.ReLU(), torch.nn.Linear(size, size)
        )
        self.dropout = torch.nn.Dropout(dropout)
        self.decoder = decoder
        self._label_ids = {label: i for i, label in enumerate(self.labels, start=1)}

    # -------------------------------------------------------------------------------------------------------- learning

    def targets(self, sentence: Sentence) -> tuple[Mention, ...]:
        """The mentions of a sentence; there must be no soft labels."""
        if RelationProbabilities.from_sentence(sentence) or TagProbabilities.from_sentence(sentence):
            where = f"the sentence {sentence.id}" if sentence.id else f"the sentence {' '.join(sentence.tokens)[:60]!r}"
            raise InputError(
                f"{where} has soft labels, which the seq2seq tagger cannot learn",
                remedy="train linear, bilstm-crf or w2ner on it, or drop its probabilities",
            )
        return sentence.mentions

    def loss(
        self, source: EncodedSentences, lengths: list[int], targets: Sequence[tuple[Mention, ...]]
    ) -> torch.Tensor:
        """The mean cross-entropy of the items of the sequences, with their ends."""
        # Of a sequence that is longer than the decoder takes only the beginning is learned.
        log_probs, ids = self._forced(source, targets)
        return torch.nn.functional.nll_loss(log_probs.flatten(0, 1), ids.flatten(), ignore_index=IGNORED)

    def log_probs(self, source: EncodedSentences, batch: Sequence[Sentence]) -> list[tuple[float, int]]:
        """The log-probability of the sequence of each sentence, and its number of items with the end; in fp32."""
        with torch.autocast(source.states.device.type, enabled=False):
            log_probs, ids = self._forced(source, [sentence.mentions for sentence in batch])
        chosen = log_probs.gather(2, ids.clamp(min=0)[..., None])[..., 0].masked_fill(ids == IGNORED, 0.0)
        counts = (ids != IGNORED).sum(1)
        return list(zip(chosen.sum(1).tolist(), counts.tolist(), strict=True))

    def _forced(
        self, source: EncodedSentences, targets: Sequence[tuple[Mention, ...]]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probabilities (sentences, items, outputs) of each item after the ones before it, and their ids."""
        # Ids are `IGNORED` behind the end of a sequence.
        limit = self._max_items(source)
        sequences, allowed = [], []
        for pieces, mentions in zip(source.word_pieces, targets, strict=True):
            items = linearize(mentions, pieces, self.representation)[:limit]
            reader = MentionReader(pieces, self.representation)
            options = []
            for item in items:
                options.append(reader.options())
                reader.read(item)
            numbers = [self._output_id(item) for item in items]
            if len(numbers) < limit:
                numbers.append(_END)
                options.append(reader.options())
            sequences.append(numbers)
            allowed.append(options)
        width = max(map(len, sequences))
        padded = [[*numbers, *[IGNORED] * (width - len(numbers))] for numbers in sequences]
        ids = torch.tensor(padded, device=source.states.device)
        inputs = self._inputs(source, ids[:, :-1].clamp(min=0))
        start = self.symbols[:1].expand(len(sequences), 1, -1)
        states = self._run_decoder(source, torch.cat([start, inputs], dim=1)).last_hidden_state
        scores = self._scores(states, self._memory(source))
        return scores.masked_fill(~self._mask(allowed, width, source), _IMPOSSIBLE).log_softmax(-1), ids

    # ------------------------------------------------------------------------------------------------------ prediction

    def decode(self, source: EncodedSentences, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The mentions of each sentence: those of the sequence whose items are each the likeliest."""
        return [tuple(mentions) for mentions in self.decode_with_probabilities(source)]

    def decode_with_probabilities(self, source: EncodedSentences) -> list[dict[Mention, float]]:
        """The mentions of each sentence, in the order of the sequence, with their probabilities."""
        # The probability of a mention is the product of those of its items, after the items before them. It is computed
        # in fp32, whatever the precision of the encoder.
        with torch.autocast(source.states.device.type, enabled=False):
            return self._decode(source)

    def _decode(self, source: EncodedSentences) -> list[dict[Mention, float]]:
        readers = [MentionReader(pieces, self.representation) for pieces in source.word_pieces]
        found: list[dict[Mention, float]] = [{} for _ in readers]
        log_probs = [0.0] * len(readers)  # of the items of the mention that was begun
        limits = [min(self._max_items(source), most_items(n)) for n in source.mask.sum(1).tolist()]
        active = set(range(len(readers)))
        memory = self._memory(source)
        inputs, cache = self.symbols[:1].expand(len(readers), 1, -1), None
        for step in range(max(limits)):
            output = self._run_decoder(source, inputs, cache)
            cache = output.past_key_values
            mask = self._mask([[reader.options()] for reader in readers], 1, source)
            scores = self._scores(output.last_hidden_state, memory).masked_fill(~mask, _IMPOSSIBLE)[:, 0]
            best, ids = scores.log_softmax(-1).max(-1)
            for i, (output_id, log_prob) in enumerate(zip(ids.tolist(), best.tolist(), strict=True)):
                if i not in active:
                    continue
                if output_id == _END:
                    active.discard(i)
                    continue
                item = self._item(output_id)
                readers[i].read(item)
                log_probs[i] += log_prob
                if isinstance(item, str):
                    found[i].setdefault(readers[i].mentions[-1], math.exp(log_probs[i]))
                    log_probs[i] = 0.0
                if step + 1 == limits[i]:
                    active.discard(i)
            if not active:
                break
            inputs = self._inputs(source, ids[:, None])
        return found

    # ------------------------------------------------------------------------------------------------------- internals

    def _output_id(self, item: int | str) -> int:
        return self._label_ids[item] if isinstance(item, str) else 1 + len(self.labels) + item

    def _item(self, output_id: int) -> int | str:
        position = output_id - 1 - len(self.labels)
        return position if position >= 0 else self.labels[output_id - 1]

    def _max_items(self, source: EncodedSentences) -> int:
        """The number of items that the decoder can write, with the end."""
        decoder = source.decoder if self.decoder is None else self.decoder
        return int(getattr(decoder.config, "max_position_embeddings", None) or 1 << 30)

    def _run_decoder(self, source: EncodedSentences, inputs: torch.Tensor, cache: Any = None) -> Any:
        decoder = source.decoder if self.decoder is None else self.decoder
        return decoder(
            inputs_embeds=inputs,
            encoder_hidden_states=source.states,
            encoder_attention_mask=source.mask,
            past_key_values=cache,
            use_cache=not torch.is_grad_enabled(),
        )

    def _inputs(self, source: EncodedSentences, ids: torch.Tensor) -> torch.Tensor:
        """Decoder inputs for the outputs (sentences, items, size)."""
        symbols = self.symbols[1:].expand(len(ids), -1, -1)
        pieces = source.embeddings if self.decoder is None else source.embeddings + source.states
        table = torch.cat([symbols, pieces], dim=1)
        return table.gather(1, ids[..., None].expand(-1, -1, table.shape[2]))

    def _memory(self, source: EncodedSentences) -> torch.Tensor:
        """Memory that the states of the decoder are multiplied with for pointers (sentences, sub-words, size)."""
        embeddings = (1 - _MIXTURE) * self.dropout(source.embeddings)
        memory: torch.Tensor = _MIXTURE * self.mlp(source.states).float() + embeddings
        return memory

    def _scores(self, states: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """The logits of the outputs (sentences, items, outputs): the end, the labels and the sub-words."""
        # Sums of products of two vectors are too imprecise in bf16.
        with torch.autocast(states.device.type, enabled=False):
            states = self.dropout(states.float())
            of_symbols = states @ self.dropout(self.symbols[1:]).T
            scores: torch.Tensor = self.scale * torch.cat([of_symbols, states @ memory.transpose(1, 2)], dim=2)
        return scores

    def _mask(self, allowed: Sequence[Sequence[Options]], width: int, source: EncodedSentences) -> torch.Tensor:
        """Mask of valid next outputs (sentences, items, outputs); only the end may follow the end."""
        first = 1 + len(self.labels)
        mask = np.zeros((len(allowed), width, first + source.mask.shape[1]), bool)
        for row, options_of_row in zip(mask, allowed, strict=True):
            for line, options in zip(row, options_of_row, strict=False):
                line[_END] = options.end
                line[1:first] = options.label
                line[[first + piece for piece in options.pieces]] = True
            row[len(options_of_row) :, _END] = True
        return torch.from_numpy(mask).to(source.states.device)


@dataclass(kw_only=True, eq=False)
class Seq2SeqTagger(EncoderTagger):
    """Encoder and decoder that write mentions of any shape as pointers to words, and labels (BARTNER, Yan et al. 2021).

    With a model such as BART or T5 both are fine-tuned, as in the paper. An encoder without decoder gets a new one,
    which has to be learned from the training sentences alone.

    The authors train BART-large for 30 epochs, with one rate for all weights, from 1e-5 to 4e-5, batches of 16 and
    warm-up of 0.01 (ACE 2005: 12 and 0.1); they write spans for GENIA, and words for all other corpora.

    It learns mentions only, no soft labels. Differences from the paper: what cannot follow in a sequence of mentions is
    impossible in training too, not in prediction alone; sequences are decoded greedily, not with the four beams of the
    authors for CADEC, ShARe and ACE 2005; start, end and labels have embeddings of their own, which begin as those of
    the model; and a new decoder also reads the vectors of the words that it pointed to.

    Args:
        encoder: a model such as BART or T5, or an encoder without decoder: an alias of the starter set, a folder, or a
            name on the hub.
        representation: what is written of a mention: ``"word"``, the first sub-word of each of its words; ``"bpe"``,
            all its sub-words; or ``"span"``, the first and the last sub-word of each of its spans.
        layers: number of layers of a new decoder.
        dropout: dropout probability of what is multiplied for the scores of pointers and labels.
    """

    name = "seq2seq"
    encoder_class: ClassVar[type[Encoder]] = PointerEncoder
    gives_probabilities: ClassVar[bool] = False

    representation: Representation = "word"
    layers: PositiveInt = 2
    dropout: Dropout = 0.3

    def build_decoder(self, size: int) -> PointerDecoder:
        encoder = self._encoder
        return PointerDecoder(
            encoder.initial_symbols(self.labels_),
            self.labels_,
            representation=self.representation,
            decoder=None if encoder.has_decoder else new_decoder(encoder.model.config, self.layers),
            scale=encoder.score_scale,
            dropout=self.dropout,
        )

    def predict_with_confidences(self, sentences: Iterable[Sentence]) -> list[dict[Mention, float]]:
        """Predict the mentions of sentences, each with its confidence."""
        return self._in_batches(list(sentences), lambda _, source: self._decoder.decode_with_probabilities(source))
