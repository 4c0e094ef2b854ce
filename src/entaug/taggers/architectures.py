"""The taggers: combinations of a body and a head."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from entaug.backends.resolve import resolve
from entaug.backends.transformers.base import Batcher
from entaug.backends.transformers.encoder import compute_attentions
from entaug.config.params import Check, NonNegativeInt, PositiveFloat, PositiveInt
from entaug.core.data import Mention, Sentence
from entaug.core.tags import Overlap
from entaug.errors import InputError, ParameterError
from entaug.taggers.decoders import CRFDecoder, LinearDecoder
from entaug.taggers.encoders import Encoder, encoder_folder
from entaug.taggers.grid import GridDecoder
from entaug.taggers.neural import NeuralTagger
from entaug.taggers.pointer_decoder import PointerDecoder
from entaug.taggers.pointer_encoder import PointerEncoder, new_decoder
from entaug.taggers.pointers import Representation
from entaug.taggers.relations import RelationProbabilities
from entaug.taggers.static_encoder import StaticEncoder

__all__ = ["BiLSTMCRFTagger", "LinearTagger", "Seq2SeqTagger", "StaticBiLSTMCRFTagger", "W2NERTagger"]

Dropout = Annotated[float, Interval(ge=0, lt=1)]
ModelName = Annotated[str, Check(bool, "an alias, a folder or a name on the hub")]


@dataclass(kw_only=True, eq=False)
class _EncoderTagger(NeuralTagger):
    """Base of taggers with a pretrained encoder.

    Args:
        encoder: an alias of the starter set, a folder, or a name on the hub.
        frozen: whether the encoder is not trained, so that its word vectors are features for the new weights.
    """

    pooling: ClassVar[str] = "first"
    body_class: ClassVar[type[Encoder]] = Encoder

    encoder: ModelName = "minilm"
    frozen: bool = False

    def check_requirements(self) -> None:
        """See `entaug.taggers.base.TrainableTagger.check_requirements`."""
        super().check_requirements()
        encoder_folder(self.encoder)

    def build_body(self, sentences: Sequence[Sentence]) -> Encoder:
        """See `entaug.taggers.neural.NeuralTagger.build_body`."""
        del sentences
        return self.body_class(self.encoder, self.pooling, frozen=self.frozen)

    def restore_body(self, folder: Path, config: dict[str, Any]) -> Encoder:
        """See `entaug.taggers.neural.NeuralTagger.restore_body`."""
        body = self.body_class(str(folder / "encoder"), self.pooling, frozen=self.frozen)
        body.name = config["body"]
        return body

    def attentions(self, sentences: Sequence[Sequence[str]], layers: int = 4) -> list[NDArray[np.float32]]:
        """See `entaug.backends.protocols.Encoder.attentions`: those of the fine-tuned encoder."""
        self._check_fitted()
        body = self._body
        num_layers = int(body.model.config.num_hidden_layers)
        if not 1 <= layers <= num_layers:
            raise ParameterError(f"layers must be between 1 and {num_layers} for {body.name}, not {layers!r}")
        body.eval()
        batcher = Batcher(self.budget)
        with self._autocast():
            return compute_attentions(body.encoder, body.tokenizer, body.max_length, batcher, sentences, layers)[0]


@dataclass(kw_only=True, eq=False)
class _CRFTagger(NeuralTagger):
    """Base of taggers with a bidirectional LSTM and a conditional random field.

    Args:
        hidden: hidden size of the LSTM in each direction; 0 for no LSTM, a CRF over the word vectors alone.
        dropout: dropout probability before and after the LSTM.
        overlap: which of overlapping or discontinuous mentions to learn: ``"error"`` raises, see
            `entaug.core.tags.flatten`.
    """

    hidden: NonNegativeInt = 200
    dropout: Dropout = 0.3
    overlap: Overlap = "error"

    def build_head(self, size: int) -> CRFDecoder:
        """See `entaug.taggers.neural.NeuralTagger.build_head`."""
        return CRFDecoder(size, self.labels_, hidden=self.hidden, dropout=self.dropout, overlap=self.overlap)


@dataclass(kw_only=True, eq=False)
class LinearTagger(_EncoderTagger):
    """Fine-tuned encoder with a linear layer over the first sub-word of each word (Devlin et al. 2019).

    Args:
        dropout: dropout probability of the word vectors.
        overlap: which of overlapping or discontinuous mentions to learn: ``"error"`` raises, see
            `entaug.core.tags.flatten`.
    """

    name = "linear"

    dropout: Dropout = 0.1
    overlap: Overlap = "error"

    def build_head(self, size: int) -> LinearDecoder:
        """See `entaug.taggers.neural.NeuralTagger.build_head`."""
        return LinearDecoder(size, self.labels_, dropout=self.dropout, overlap=self.overlap)


@dataclass(kw_only=True, eq=False)
class BiLSTMCRFTagger(_CRFTagger, _EncoderTagger):
    """Fine-tuned encoder with a bidirectional LSTM and a CRF: the tagger of CASSI (there with mBERT)."""

    name = "bilstm-crf"


@dataclass(kw_only=True, eq=False)
class StaticBiLSTMCRFTagger(_CRFTagger):
    """Static word vectors, characters, LSTM and CRF: the tagger of the backtranslation paper (there with GloVe).

    Args:
        vectors: an alias of the starter set, or a folder or file of word vectors.
        frozen: whether the word vectors are not trained; otherwise those of the training words are.
    """

    name = "static-bilstm-crf"

    vectors: ModelName = "glove"
    frozen: bool = True

    def check_requirements(self) -> None:
        """See `entaug.taggers.base.TrainableTagger.check_requirements`."""
        super().check_requirements()
        resolve("word_vectors", self.vectors)

    def build_body(self, sentences: Sequence[Sentence]) -> StaticEncoder:
        """See `entaug.taggers.neural.NeuralTagger.build_body`."""
        characters = {character for sentence in sentences for token in sentence.tokens for character in token}
        words = set() if self.frozen else {token.lower() for sentence in sentences for token in sentence.tokens}
        return StaticEncoder(self.vectors, sorted(characters), vocabulary=sorted(words))

    def restore_body(self, folder: Path, config: dict[str, Any]) -> StaticEncoder:
        """See `entaug.taggers.neural.NeuralTagger.restore_body`."""
        body = StaticEncoder(self.vectors, config["alphabet"], vocabulary=config.get("vocabulary") or ())
        if body.name != config["body"]:
            raise InputError(
                f"was trained with the word vectors {config['body']}, but {self.vectors} is {body.name}",
                path=str(folder),
                remedy="train the tagger again",
            )
        return body


@dataclass(kw_only=True, eq=False)
class W2NERTagger(_EncoderTagger):
    """Fine-tuned encoder with a grid of word pairs, for mentions of any shape (W2NER, Li et al. 2022).

    Its soft labels are probabilities of relations between words, see
    `entaug.taggers.relations.RelationProbabilities`. Of tag probabilities it uses the weights of words alone, and
    learns the mentions.

    The defaults differ from the paper: see `entaug.taggers.grid.GridDecoder`. Its own form, for its base models, is
    ``activation="softmax", residual=False, weight=1, hidden=256, channels=96, biaffine=512, dropout=0.5``.

    Args:
        hidden: hidden size of the LSTM in each direction; 0 for no LSTM.
        channels: number of channels of the grid of word pairs.
        biaffine: size of the vectors of the biaffine classifier.
        dropout: dropout probability of the head.
        weight: weight of existing relations in the loss, relative to that of absent ones; above 1 for more recall.
        residual: whether the convolutions have residual connections.
        activation: ``"sigmoid"`` for a probability of each relation by itself, so that two mentions of the same words
            may have different labels; ``"softmax"`` for one relation, or none, of each pair of words, as in the paper.
    """

    name = "w2ner"
    pooling: ClassVar[str] = "max"
    budget: ClassVar[int] = 16 * 48**2

    hidden: NonNegativeInt = 192
    channels: PositiveInt = 64
    biaffine: PositiveInt = 128
    dropout: Dropout = 0.3
    weight: PositiveFloat = 3.0
    residual: bool = True
    activation: Literal["sigmoid", "softmax"] = "sigmoid"

    @staticmethod
    def batch_cost(length: int) -> int:
        """See `entaug.taggers.neural.NeuralTagger.batch_cost`."""
        return length**2

    def build_head(self, size: int) -> GridDecoder:
        """See `entaug.taggers.neural.NeuralTagger.build_head`."""
        return GridDecoder(
            size,
            self.labels_,
            hidden=self.hidden,
            channels=self.channels,
            biaffine=self.biaffine,
            dropout=self.dropout,
            weight=self.weight,
            residual=self.residual,
            activation=self.activation,
        )

    def relation_probabilities(self, sentences: Iterable[Sentence]) -> list[RelationProbabilities]:
        """Compute the probabilities of relations between words, from which the mentions are decoded."""
        self._check_fitted()

        def probabilities(batch: list[Sentence], vectors: Any) -> Iterable[RelationProbabilities]:
            computed: Iterable[RelationProbabilities] = self._head.probabilities(vectors, list(map(len, batch)))
            return computed

        return self._in_batches(list(sentences), probabilities)


@dataclass(kw_only=True, eq=False)
class Seq2SeqTagger(_EncoderTagger):
    """Encoder and decoder that write mentions of any shape as pointers to words, and labels (BARTNER, Yan et al. 2021).

    With a model such as BART or T5 both are fine-tuned, as in the paper. An encoder without decoder gets a new one,
    which has to be learned from the training sentences alone.

    The paper trains BART-large for 30 epochs with batches of 16 and rates from 1e-5 to 4e-5, and warm-up of 0.01; it
    writes spans for GENIA, and words for all other corpora.

    It learns mentions only, no soft labels. Differences from the paper: what cannot follow in a sequence of mentions is
    impossible in training too, not in prediction alone; sequences are decoded greedily; start, end and labels have
    embeddings of their own, which begin as those of the model; and a new decoder also reads the vectors of the words
    that it pointed to.

    Args:
        encoder: a model such as BART or T5, or an encoder without decoder: an alias of the starter set, a folder, or a
            name on the hub.
        representation: what is written of a mention: ``"word"``, the first sub-word of each of its words; ``"bpe"``,
            all its sub-words; or ``"span"``, the first and the last sub-word of each of its spans.
        layers: number of layers of a new decoder.
        dropout: dropout probability of what is multiplied for the scores of pointers and labels.
    """

    name = "seq2seq"
    body_class: ClassVar[type[Encoder]] = PointerEncoder
    gives_probabilities: ClassVar[bool] = False

    representation: Representation = "word"
    layers: PositiveInt = 2
    dropout: Dropout = 0.3

    def build_head(self, size: int) -> PointerDecoder:
        """See `entaug.taggers.neural.NeuralTagger.build_head`."""
        del size
        body = self._body
        return PointerDecoder(
            body.initial_symbols(self.labels_),
            self.labels_,
            representation=self.representation,
            decoder=None if body.has_decoder else new_decoder(body.model.config, self.layers),
            scale=body.score_scale,
            dropout=self.dropout,
        )

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        """Compute the confidence of the tagger in the mentions that sentences have."""
        self._check_fitted()
        sentences = list(sentences)
        known = set(self.labels_)
        indices = [i for i, s in enumerate(sentences) if known.issuperset(m.label for m in s.mentions)]

        def of_mentions(batch: list[Sentence], source: Any) -> Iterable[float]:
            of_batch = self._head.sequence_log_probs(source, [sentence.mentions for sentence in batch])
            return [math.exp(log_prob / num_items) for log_prob, num_items in of_batch]

        return self._confidences(sentences, indices, of_mentions)

    def predict_with_confidences(self, sentences: Iterable[Sentence]) -> list[dict[Mention, float]]:
        """Predict the mentions of sentences, each with its confidence."""
        self._check_fitted()

        def decode(_: list[Sentence], source: Any) -> Iterable[dict[Mention, float]]:
            decoded: Iterable[dict[Mention, float]] = self._head.decode_with_probabilities(source)
            return decoded

        return self._in_batches(list(sentences), decode)
