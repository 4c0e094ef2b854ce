"""The head of the sequence-to-sequence tagger: a decoder that points to sub-words and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from entaug.backends.transformers.training import IGNORED
from entaug.core.data import Mention, Sentence
from entaug.core.soft_labels import TagProbabilities
from entaug.errors import InputError, ParameterError
from entaug.taggers.pointer_encoder import EncodedSentences
from entaug.taggers.pointers import MentionReader, Options, Representation, linearize, most_items, target_order
from entaug.taggers.relations import RelationProbabilities

__all__ = ["PointerDecoder"]

_END = 0  # numbers of outputs: the end, the labels from 1, the sub-words
_IMPOSSIBLE = -1e9  # a logit; minus infinity would give gradients that are not numbers


class PointerDecoder(torch.nn.Module):
    """Writes the mentions of a sentence as a sequence of pointers and labels (Yan et al. 2021, section 3)."""

    # The decoder reads the embeddings of what it wrote: of the sub-words that it pointed to, and of labels. Its state
    # is multiplied with the embeddings of the end and of the labels, and with a mixture of each sub-word's embedding
    # and of an MLP over its vector. The softmax over these products gives the probability of the next item. Items that
    # cannot follow (see `MentionReader`) have the probability 0, in training as in prediction. A new decoder also reads
    # the vectors of the sub-words, added to their embeddings: so it need not learn from few sentences which of several
    # equal words was meant.

    def __init__(
        self,
        initial: torch.Tensor,
        labels: Sequence[str],
        *,
        representation: Representation = "word",
        decoder: torch.nn.Module | None = None,
        scale: float = 1.0,
        dropout: float = 0.3,
        mixture: float = 0.5,
    ) -> None:
        super().__init__()
        size = initial.shape[1]
        self.labels = list(labels)
        self.representation = representation
        self.scale = scale
        self.mixture = mixture
        self.symbols = torch.nn.Parameter(initial.detach().clone())
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(size, size), torch.nn.Dropout(dropout), torch.nn.ReLU(), torch.nn.Linear(size, size)
        )
        self.dropout = torch.nn.Dropout(dropout)
        self.decoder = decoder
        self._label_ids = {label: i for i, label in enumerate(self.labels, start=1)}

    # -------------------------------------------------------------------------------------------------------- learning

    def targets(self, sentence: Sentence) -> tuple[Mention, ...]:
        """The mentions of a sentence in the order in which they are written."""
        if RelationProbabilities.from_sentence(sentence) or TagProbabilities.from_sentence(sentence):
            where = f"the sentence {sentence.id}" if sentence.id else f"the sentence {' '.join(sentence.tokens)[:60]!r}"
            raise InputError(
                f"{where} has soft labels, which the seq2seq tagger cannot learn",
                remedy="train linear, bilstm-crf or w2ner on it, or drop its probabilities",
            )
        return self._known(sentence)

    def _known(self, sentence: Sentence) -> tuple[Mention, ...]:
        for mention in sentence.mentions:
            if mention.label not in self._label_ids:
                raise ParameterError(f"the label {mention.label!r} is not among {', '.join(self.labels) or 'none'}")
        return tuple(target_order(sentence.mentions))

    def loss(
        self, source: EncodedSentences, lengths: list[int], targets: Sequence[tuple[Mention, ...]]
    ) -> torch.Tensor:
        """The mean cross-entropy of the items of the sequences, with their ends."""
        # Of a sequence that is longer than the decoder takes only the beginning is learned.
        del lengths
        log_probs, ids = self._forced(source, targets)
        return torch.nn.functional.nll_loss(log_probs.flatten(0, 1), ids.flatten(), ignore_index=IGNORED)

    def sequence_log_probs(
        self, source: EncodedSentences, targets: Sequence[tuple[Mention, ...]]
    ) -> list[tuple[float, int]]:
        """The log-probability of the sequence of each sentence, and its number of items with the end; in fp32."""
        with torch.autocast(source.states.device.type, enabled=False):
            log_probs, ids = self._forced(source, targets)
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
        del lengths
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
        embeddings = (1 - self.mixture) * self.dropout(source.embeddings)
        memory: torch.Tensor = self.mixture * self.mlp(source.states).float() + embeddings
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
