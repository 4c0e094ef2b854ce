"""The taggers: a body and a head each, trained by one loop."""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import get_linear_schedule_with_warmup

from entaug import _version, tags
from entaug.backends.resolve import resolve
from entaug.backends.transformers.base import Batcher, batches, choose
from entaug.backends.transformers.encoder import attentions_of
from entaug.data import Sentence
from entaug.errors import InputError, OutputError, ParameterError
from entaug.scoring.span_f1 import score
from entaug.taggers.base import CONFIG, Fitted, Progress, Training, check_new, labels_of
from entaug.taggers.bodies import EncoderBody, StaticBody, encoder_folder
from entaug.taggers.grid import GridHead
from entaug.taggers.heads import CRFHead, LinearHead

__all__ = ["BiLSTMCRFTagger", "GridTagger", "LinearTagger", "NeuralTagger", "StaticBiLSTMCRFTagger"]

_WEIGHTS = "tagger.safetensors"
_BUDGET = 4096  # sub-words of a batch that is only predicted


@dataclass
class NeuralTagger:
    """What the taggers share: the loop they learn by, prediction, saving.

    Args:
        device: see `entaug.backends.transformers.base.choose`.
        precision: the same; weights and optimiser stay in fp32 whatever it is.
    """

    name: ClassVar[str]

    device: str | None = None
    precision: str | None = None
    labels_: list[str] = field(default_factory=list, init=False, repr=False)
    fitted_: Fitted = field(default_factory=Fitted, init=False, repr=False)

    def body(self, sentences: Sequence[Sentence]) -> Any:
        """A new body."""
        raise NotImplementedError

    def head(self, size: int) -> Any:
        """A new head for `labels_`."""
        raise NotImplementedError

    # --------------------------------------------------------------------------------------------------------- learning

    def check(self) -> None:
        """See `entaug.taggers.base.Tagger.check`."""
        choose(self.device, self.precision)

    def fit(
        self,
        train: Iterable[Sentence],
        dev: Iterable[Sentence] | None = None,
        training: Training | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """See `entaug.taggers.base.Tagger.fit`.

        Raises:
            InputError: there is nothing to learn, or no dev to choose the best epoch by.
            LossError: nested or discontinuous mentions, which the tagger cannot learn and was not told to leave out.
        """
        training = training or Training()
        gold = list(train)
        watched = list(dev) if dev is not None and training.checkpoint == "best" else []
        if not labels_of(gold):
            raise InputError("no mentions to learn from", remedy="train on a corpus that has some")
        if training.checkpoint == "best" and not watched:
            raise InputError("no dev sentences to choose the best epoch by", remedy='give some, or set keep to "last"')
        self.labels_ = labels_of(gold)
        place, self._dtype = choose(self.device, self.precision)
        devices = [place] if place.type == "cuda" else []
        # All that is random comes from the seed, and the generators of the caller are left as they were.
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(training.seed)
            self._body = self.body(gold).to(place)
            self._head = self.head(self._body.size).to(place)
            prepared = [self._body.prepare(sentence.tokens) for sentence in gold]
            seen = [*prepared, *(self._body.prepare(sentence.tokens) for sentence in watched)]
            self._body.shrink(seen)
            try:
                self.fitted_ = self._learn(gold, prepared, watched, training, progress)
            finally:
                self._body.unshrink()
        self._body.eval()
        self._head.eval()
        return self

    def _learn(
        self,
        gold: list[Sentence],
        prepared: list[Any],
        watched: list[Sentence],
        training: Training,
        progress: Progress | None,
    ) -> Fitted:
        body, head = self._body, self._head
        targets = [head.targets(sentence) for sentence in gold]
        lengths = [body.lengths(one) for one in prepared]
        total, per_epoch = training.total(len(gold)), training.per_epoch(len(gold))
        optimiser = torch.optim.AdamW(self._groups(training), fused=True)
        rise = math.ceil(total * training.warmup_ratio)
        schedule = get_linear_schedule_with_warmup(optimiser, rise, total)  # type: ignore[no-untyped-call]
        learning = [p for group in optimiser.param_groups for p in group["params"]]
        fitted, best, rng = Fitted(), -1.0, Random(f"batches {training.seed}")
        best_weights: dict[str, Any] = {}
        losses: list[float] = []
        body.train()
        head.train()
        for batch in batches(lengths, training.batch_size, rng):
            with self._autocast():
                vectors = body([prepared[i] for i in batch])
                loss = head.loss(vectors, [len(gold[i]) for i in batch], [targets[i] for i in batch])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learning, training.max_grad_norm)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad(set_to_none=True)
            fitted.steps += 1
            losses.append(float(loss.detach()))
            if progress is not None:
                progress(fitted.steps, total, losses[-1])
            if fitted.steps % per_epoch == 0 or fitted.steps == total:
                fitted.losses.append(sum(losses) / len(losses))
                losses = []
                if watched:
                    fitted.dev.append(score(watched, self.predict(watched)).micro.f1)
                    if fitted.dev[-1] > best:
                        best, fitted.kept = fitted.dev[-1], len(fitted.dev)
                        best_weights = deepcopy({"body": body.state_dict(), "head": head.state_dict()})
                    body.train()
                    head.train()
            if fitted.steps == total:
                break
        if best_weights:
            body.load_state_dict(best_weights["body"])
            head.load_state_dict(best_weights["head"])
        return fitted

    def _groups(self, training: Training) -> list[dict[str, Any]]:
        """Parameters by rate; biases and normalisation do not decay."""
        old = {id(p) for p in self._body.pretrained()}
        groups = []
        for pretrained, learning_rate in ((True, training.learning_rate), (False, training.head_learning_rate)):
            parameters = [
                p
                for p in (*self._body.parameters(), *self._head.parameters())
                if p.requires_grad and (id(p) in old) is pretrained
            ]
            for decays in (True, False):
                chosen = [p for p in parameters if (p.ndim > 1) is decays]
                if chosen:
                    groups.append(
                        {
                            "params": chosen,
                            "lr": learning_rate,
                            "weight_decay": training.weight_decay if decays else 0.0,
                        }
                    )
        return groups

    def _autocast(self) -> torch.autocast:
        place = next(self._head.parameters()).device.type
        return torch.autocast(place, dtype=self._dtype, enabled=self._dtype is not torch.float32)

    # ------------------------------------------------------------------------------------------------------- predicting

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """See `entaug.taggers.base.Tagger.predict`.

        Raises:
            ParameterError: the tagger was neither fitted nor loaded.
        """
        if not self.labels_:
            raise ParameterError(f"this {self.name} tagger has learned nothing", remedy="fit it, or use load_tagger")
        asked = list(sentences)
        found: list[Any] = [()] * len(asked)
        for batch, vectors in self._vectors(asked):
            for i, mentions in zip(batch, self._head.decode(vectors, [len(asked[i]) for i in batch]), strict=True):
                found[i] = mentions
        return [sentence.with_(mentions=mentions) for sentence, mentions in zip(asked, found, strict=True)]

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        """See `entaug.taggers.base.Tagger.confidences`.

        Raises:
            ParameterError: the tagger has learned nothing, or does not give probabilities to tags.
        """
        if not self.labels_ or not hasattr(self._head, "log_probs"):
            why = "gives no probabilities to tags" if self.labels_ else "has learned nothing"
            raise ParameterError(f"this {self.name} tagger {why}", remedy="use linear, fitted")
        asked = list(sentences)
        known = set(self.labels_)
        # A label that it has never seen it holds to be impossible, and so what tags cannot carry.
        able = [i for i, s in enumerate(asked) if s.is_flat and known.issuperset(m.label for m in s.mentions)]
        some = [asked[i] for i in able]
        found = [0.0] * len(asked)
        for batch, vectors in self._vectors(some):
            targets = [self._head.targets(some[i]) for i in batch]
            values = self._head.log_probs(vectors, [len(some[i]) for i in batch], targets)
            for i, value in zip(batch, values, strict=True):
                found[able[i]] = math.exp(value / len(some[i]))
        return found

    def _vectors(self, asked: Sequence[Sentence]) -> Iterator[tuple[list[int], Any]]:
        """Batches, by number, with the word vectors of their sentences."""
        prepared = [self._body.prepare(sentence.tokens) for sentence in asked]
        self._body.eval()
        self._head.eval()
        with torch.inference_mode(), self._autocast():
            for batch in self._by_length([self._body.lengths(one) for one in prepared]):
                yield batch, self._body([prepared[i] for i in batch])

    def _by_length(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Sentences of like length together, as many as the budget allows; a grid costs the square of its side."""
        power = 2 if isinstance(self._head, GridHead) else 1
        budget = _BUDGET if power == 1 else 16 * 48**2
        batch: list[int] = []
        for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
            if batch and (len(batch) + 1) * lengths[i] ** power > budget:
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    # ----------------------------------------------------------------------------------------------- saving and loading

    def params(self) -> dict[str, Any]:
        """What makes the same tagger again."""
        return {name: value for name, value in asdict(self).items() if not name.endswith("_")}

    def save(self, folder: str | Path) -> None:
        """See `entaug.taggers.base.Tagger.save`.

        Raises:
            OutputError: the folder holds something already.
        """
        folder = Path(folder)
        check_new(folder)
        # Made beside and moved whole: what is there under its name is complete.
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(
                prefix=f".{folder.name}.", dir=folder.parent, ignore_cleanup_errors=True
            ) as beside:
                made = Path(beside, "tagger")
                made.mkdir()
                self._write(made)
                if folder.exists():
                    folder.rmdir()
                made.rename(folder)
        except OSError as error:
            raise OutputError(
                f"cannot be written ({error.strerror or error})", path=str(folder), remedy="name another folder"
            ) from None

    def _write(self, folder: Path) -> None:
        self._body.save(folder)
        own = {f"head.{name}": tensor for name, tensor in self._head.state_dict().items()}
        if not isinstance(self._body, EncoderBody):
            own |= {f"body.{name}": tensor for name, tensor in self._body.state_dict().items()}
        save_file({name: tensor.contiguous().cpu() for name, tensor in own.items()}, folder / _WEIGHTS)
        config = {
            "tagger": self.name,
            "params": self.params(),
            "labels": self.labels_,
            "alphabet": getattr(self._body, "alphabet", None),
            "body": self._body.name,
            "fitted": asdict(self.fitted_),
            "version": _version.__version__,
        }
        text = json.dumps(config, ensure_ascii=False, indent=1)
        (folder / CONFIG).write_text(text + "\n", encoding="utf-8")

    def restore(self, folder: Path) -> Self:
        """See `entaug.taggers.base.Tagger.restore`.

        Raises:
            InputError: a file is missing or damaged.
        """
        remedy = "train the tagger again"
        try:
            config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
            self.labels_, self.fitted_ = list(config["labels"]), Fitted(**config["fitted"])
            weights = load_file(folder / _WEIGHTS)
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise InputError(f"holds a damaged tagger ({error})", path=str(folder), remedy=remedy) from None
        place, self._dtype = choose(self.device, self.precision)
        self._body = self.restored_body(folder, config).to(place)
        self._head = self.head(self._body.size).to(place)
        try:
            for prefix, part in (("head.", self._head), ("body.", self._body)):
                own = {n.removeprefix(prefix): t for n, t in weights.items() if n.startswith(prefix)}
                if own:
                    part.load_state_dict(own)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"holds a damaged tagger ({reason})", path=str(folder), remedy=remedy) from None
        self._body.eval()
        self._head.eval()
        return self

    def restored_body(self, folder: Path, config: dict[str, Any]) -> Any:
        """The body that was saved."""
        raise NotImplementedError


@dataclass
class _OnEncoder(NeuralTagger):
    encoder: str = "minilm"

    pool: ClassVar[str] = "first"

    def __post_init__(self) -> None:
        if not isinstance(self.encoder, str) or not self.encoder:
            raise ParameterError(f"encoder must be an alias, a folder or a name on the hub, not {self.encoder!r}")

    def check(self) -> None:
        """See `entaug.taggers.base.Tagger.check`."""
        super().check()
        encoder_folder(self.encoder)

    def body(self, sentences: Sequence[Sentence]) -> EncoderBody:
        """The pretrained encoder."""
        del sentences
        return EncoderBody(self.encoder, self.pool)

    def attentions(self, sentences: Sequence[Sequence[str]], layers: int = 4) -> list[Any]:
        """See `entaug.backends.protocols.Encoder.attentions`: those of the encoder as it has learned.

        Raises:
            ParameterError: the tagger has learned nothing, or its encoder has not so many layers.
        """
        if not self.labels_:
            raise ParameterError(f"this {self.name} tagger has learned nothing", remedy="fit it, or use load_tagger")
        body = self._body
        most = int(body.model.config.num_hidden_layers)
        if not 1 <= layers <= most:
            raise ParameterError(f"layers must be between 1 and {most} for {body.name}, not {layers!r}")
        body.eval()
        with self._autocast():
            return attentions_of(body.model, body.tokenizer, body.limit, Batcher(_BUDGET), sentences, layers)[0]

    def restored_body(self, folder: Path, config: dict[str, Any]) -> EncoderBody:
        """The encoder as it learned."""
        body = EncoderBody(str(folder / "encoder"), self.pool)
        body.name = config["body"]
        return body


@dataclass
class LinearTagger(_OnEncoder):
    """An encoder and a linear layer over its words' first sub-words: the usual fine-tuning (Devlin et al. 2019).

    Args:
        device: see `NeuralTagger`.
        precision: see `NeuralTagger`.
        encoder: an alias of the starter set, a folder, or a name on the hub.
        dropout: on the word vectors.
        overlap: which mentions to learn where they overlap or are discontinuous: ``"error"`` refuses, see
            `entaug.tags.flatten`.
    """

    name = "linear"

    dropout: float = 0.1
    overlap: str = "error"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.dropout, self.overlap)

    def head(self, size: int) -> LinearHead:
        """A linear layer."""
        return LinearHead(size, self.labels_, dropout=self.dropout, overlap=self.overlap)


@dataclass
class BiLSTMCRFTagger(_OnEncoder):
    """An encoder, a bidirectional LSTM and a conditional random field: CASSI's tagger (with mBERT there).

    Args:
        device: see `NeuralTagger`.
        precision: see `NeuralTagger`.
        encoder: see `LinearTagger`.
        hidden: of the LSTM, each direction.
        dropout: before and after the LSTM.
        overlap: see `LinearTagger`.
    """

    name = "bilstm-crf"

    hidden: int = 200
    dropout: float = 0.3
    overlap: str = "error"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.dropout, self.overlap, self.hidden)

    def head(self, size: int) -> CRFHead:
        """LSTM and CRF."""
        return CRFHead(size, self.labels_, hidden=self.hidden, dropout=self.dropout, overlap=self.overlap)


@dataclass
class StaticBiLSTMCRFTagger(NeuralTagger):
    """Static word vectors, characters, a bidirectional LSTM and a CRF: the backtranslation paper's tagger (with GloVe).

    Args:
        device: see `NeuralTagger`.
        precision: see `NeuralTagger`.
        vectors: an alias of the starter set, or a folder or file of word vectors.
        hidden: of the LSTM, each direction.
        dropout: before and after the LSTM.
        overlap: see `LinearTagger`.
    """

    name = "static-bilstm-crf"

    vectors: str = "glove"
    hidden: int = 200
    dropout: float = 0.3
    overlap: str = "error"

    def __post_init__(self) -> None:
        _check(self.dropout, self.overlap, self.hidden)

    def check(self) -> None:
        """See `entaug.taggers.base.Tagger.check`."""
        super().check()
        resolve("word_vectors", self.vectors)

    def body(self, sentences: Sequence[Sentence]) -> StaticBody:
        """Word vectors and characters."""
        counts = Counter(character for sentence in sentences for token in sentence.tokens for character in token)
        return StaticBody(self.vectors, sorted(counts))

    def restored_body(self, folder: Path, config: dict[str, Any]) -> StaticBody:
        """The same, with the characters as they were learned.

        Raises:
            InputError: the word vectors are others than those it learned with.
        """
        body = StaticBody(self.vectors, config["alphabet"])
        if body.name != config["body"]:
            raise InputError(
                f"learned with the word vectors {config['body']}, and {self.vectors} are {body.name}",
                path=str(folder),
                remedy="train the tagger again",
            )
        return body

    def head(self, size: int) -> CRFHead:
        """LSTM and CRF."""
        return CRFHead(size, self.labels_, hidden=self.hidden, dropout=self.dropout, overlap=self.overlap)


@dataclass
class GridTagger(_OnEncoder):
    """An encoder and a grid of relations between words: flat, nested, discontinuous mentions (W2NER, Li et al. 2022).

    Args:
        device: see `NeuralTagger`.
        precision: see `NeuralTagger`.
        encoder: see `LinearTagger`.
    """

    name = "w2ner"
    pool: ClassVar[str] = "max"

    def head(self, size: int) -> GridHead:
        """The grid."""
        return GridHead(size, self.labels_)


def _check(dropout: float, overlap: str, hidden: int = 1) -> None:
    if type(hidden) is not int or hidden < 1:
        raise ParameterError(f"hidden must be a whole number of at least 1, not {hidden!r}")
    if not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise ParameterError(f"dropout must be a number from 0 to less than 1, not {dropout!r}")
    if overlap not in tags.OVERLAP:
        raise ParameterError(f"overlap must be one of {', '.join(tags.OVERLAP)}, not {overlap!r}")
