"""The body of the sequence-to-sequence tagger: an encoder, with its decoder if it has one, or with a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import torch
import transformers
from transformers.models.bart.modeling_bart import BartDecoder

from entaug.backends.transformers.base import tokenize_words
from entaug.taggers.encoders import Encoder, EncoderInput

__all__ = ["EncodedSentences", "PointerEncoder", "new_decoder"]

_T5_FAMILY = frozenset({"t5", "mt5", "umt5", "longt5"})
_MAX_POSITIONS = 1024  # of a new decoder


class EncodedSentences(NamedTuple):
    """Encoded sentences of a batch, as a decoder reads them."""

    states: torch.Tensor
    embeddings: torch.Tensor
    mask: torch.Tensor
    word_pieces: list[list[list[int]]]
    decoder: Any


class PointerEncoder(Encoder):
    """A pretrained encoder and its decoder, if it has one, fine-tuned with a `PointerDecoder`."""

    def __init__(self, encoder: str, pooling: str = "first", *, frozen: bool = False) -> None:
        super().__init__(encoder, pooling, frozen=frozen)
        if frozen and self.has_decoder:
            self.model.get_decoder().requires_grad_(requires_grad=True)
            self.model.get_input_embeddings().requires_grad_(requires_grad=False)

    def train(self, mode: bool = True) -> Self:
        """See `torch.nn.Module.train`; a frozen encoder stays in evaluation mode."""
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
        ids, states, width = self._encode(batch)
        embeddings = self.model.get_input_embeddings()(ids).float()
        index: list[list[int]] = []  # of the sub-words of each sentence, whose rows follow one another
        word_pieces: list[list[list[int]]] = []
        start = 0
        for sentence in batch:
            own: list[int] = []
            words = [word for row in sentence.word_indices for word in row]
            pieces: list[list[int]] = [[] for _ in range(max(words) + 1)]
            for position, word in enumerate(words):
                if word >= 0:
                    pieces[word].append(position)
            for row in sentence.rows:
                own += range(start, start + len(row))
                start += len(row) if width is None else width
            index.append(own)
            word_pieces.append(pieces)
        longest = max(map(len, index))
        # Padding refers to an additional vector of zeros.
        padded = torch.tensor([[*own, *[len(states)] * (longest - len(own))] for own in index], device=states.device)
        states_of, embeddings_of = (torch.cat([v, v.new_zeros(1, v.shape[1])])[padded] for v in (states, embeddings))
        mask = (padded < len(states)).long()
        decoder = self.model.get_decoder() if self.has_decoder else None
        return EncodedSentences(states_of, embeddings_of, mask, word_pieces, decoder)

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
