"""Generators of transformers: fine-tuned on pairs of texts, wholly or by low-rank adapters, and decoded."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
import transformers

from entaug.backends.compute import trim_heap
from entaug.backends.config import DecodingConfig, Gap, TrainingConfig
from entaug.backends.protocols import TextPairs
from entaug.backends.transformers.base import find_model, load_pretrained, quiet
from entaug.backends.transformers.constraints import OutputVocabulary, Phrase, TokenConstraint
from entaug.backends.transformers.decoding import (
    DiversityPenalty,
    GumbelTopK,
    SampledText,
    sample_texts,
    supports_refilling,
)
from entaug.backends.transformers.training import IGNORED, FineTunable, Row
from entaug.backends.translation.base import find_code, is_first_token, language_tokens
from entaug.errors import ParameterError

_WIDTH_STEP = 32  # widths of inputs are multiples of it


class GeneratorLanguages:
    """The languages of a generator, and the special tokens of a text in each."""

    def __init__(self, backend: Any) -> None:
        tokenizer = backend.tokenizer
        tokens = language_tokens(tokenizer)
        self.codes = sorted(tokens)
        self.default: str | None = str(tokenizer.src_lang) if tokens else None
        self._ids = {code: int(tokenizer.convert_tokens_to_ids(token)) for code, token in tokens.items()}
        self._is_first = is_first_token(tokenizer)
        self._usual = (backend.prefix_ids, backend.suffix_ids)

    def around(self, language: str | None) -> tuple[list[int], list[int]]:
        """Return the special tokens before and after a text."""
        prefix, suffix = self._usual
        if language is None or self.default is None:
            return prefix, suffix
        old, new = self._ids[self.default], self._ids[find_code(language, self.codes)]
        return [new if i == old else i for i in prefix], [new if i == old else i for i in suffix]

    def beginning(self, language: str | None, start_id: int) -> list[int]:
        """Return the tokens with which the decoder begins."""
        prefix, suffix = self.around(language)
        return suffix[-1:] if self._is_first and self.default is not None else [start_id, *prefix]


class _Request(NamedTuple):
    """An input that texts are generated for."""

    number: int
    prompt: list[int]
    language: str | None
    seed: int
    required: list[list[Phrase]] | None


class HeadInputs:
    """Makes the output layer of a causal model compute the logits of selected positions only."""

    # When a model has read its input, `generate` needs the logits of the last position, and passes a slice that is not
    # contiguous to the output layer. For such a slice `matmul` copies the table of the vocabulary for each row: 57 MB a
    # row in a model of 135 million parameters, 3.5 GB in a batch of 63. So slices are made contiguous.

    def __init__(self, model: Any) -> None:
        self.positions: tuple[Any, Any] | None = None
        head = model.get_output_embeddings()
        self.has_head = head is not None
        if head is not None:
            head.register_forward_pre_hook(self._select)

    def _select(self, _: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden = inputs[0]
        return (hidden.contiguous() if self.positions is None else hidden[self.positions], *inputs[1:])


class TransformersGenerator(FineTunable[tuple[str, str, str | None]], abc.ABC):
    """Base of both kinds of `entaug.backends.protocols.Generator`."""

    _pads_left = False

    def __init__(self, name: str | Path, **options: Any) -> None:
        self._model: Any = None
        super().__init__(name, **options)
        if self.adapters:
            import peft  # noqa: F401  (fails here if it is missing, not after the data is prepared)
        self.languages_ = GeneratorLanguages(self)

    def _prepare_model(self) -> None:
        """Load nothing yet, see `model`."""

    @property
    def model(self) -> Any:
        """The model; the pretrained one is loaded when it is used, and where it is fine-tuned it never is."""
        if self._model is None:
            self._model = self._place_model()
        return self._model

    @model.setter
    def model(self, model: Any) -> None:
        self._model = model

    # --------------------------------------------------------------------------------------------------- for subclasses

    @abc.abstractmethod
    def _prompt(self, source: str, language: str | None = None) -> list[int]:
        """The token ids of an input."""

    @abc.abstractmethod
    def _leaves_room(self, prompt: list[int], max_new_tokens: int) -> bool:
        """Whether the model can take an input and generate so many tokens."""

    @abc.abstractmethod
    def _num_before_text(self, ids: Any) -> int:
        """The number of tokens before the generated text in an output row."""

    def _decoder_options(self, languages: Sequence[str | None]) -> dict[str, Any]:
        """Further arguments of the model's ``generate``."""
        return {}

    # -------------------------------------------------------------------------------------------------------- training

    def fit(  # type: ignore[override]  # pairs and languages make examples
        self,
        pairs: TextPairs,
        config: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        *,
        languages: Sequence[str | None] | None = None,
        **options: Any,
    ) -> Self:

        def examples(epoch: int) -> list[tuple[str, str, str | None]]:
            now = pairs(epoch) if callable(pairs) else pairs
            return [(*pair, language) for pair, language in zip(now, languages or [None] * len(now), strict=True)]

        return super().fit(examples, config, **options)

    @cached_property
    def vocabulary(self) -> OutputVocabulary:
        """The tokens of the model."""
        return OutputVocabulary(self)

    @cached_property
    def _supports_refilling(self) -> bool:
        return self._pads_left and supports_refilling(self.model)

    def _load_model(self) -> Any:
        return self._with_head_inputs(super()._load_model())

    def _trainable_model(self, dtype: Any) -> Any:
        return self._with_head_inputs(super()._trainable_model(dtype))

    def _with_head_inputs(self, model: Any) -> Any:
        self._head_inputs = HeadInputs(model)
        return model

    def _finish(self, model: Any) -> Any:
        # Settings of a checkpoint (a forced end, no repeated n-gram, a minimum length) were not asked for.
        kept = {name: getattr(model.generation_config, name) for name in ("bos_token_id", "decoder_start_token_id")}
        generation_config: Any = transformers.GenerationConfig
        model.generation_config = generation_config(**kept)
        for name in ("vocabulary", "_supports_refilling"):
            self.__dict__.pop(name, None)  # of the model and the tokenizer without the new tokens
        return self._with_head_inputs(model)  # anew, as adapters that are merged may leave another head

    # -------------------------------------------------------------------------------------------------------- decoding

    def generate(
        self,
        inputs: Sequence[str],
        config: DecodingConfig = DecodingConfig(),  # noqa: B008 (immutable)
        seeds: Sequence[int] | None = None,
        required: Sequence[Sequence[Sequence[str | Gap]]] | None = None,
        forbidden: Sequence[str] = (),
        *,
        languages: Sequence[str | None] | None = None,
    ) -> list[list[str]]:
        if config.strategy == "sample" and (seeds is None or len(seeds) != len(inputs)):
            raise ParameterError(f"{0 if seeds is None else len(seeds)} seeds for {len(inputs)} inputs")
        max_new_tokens = config.max_new_tokens
        if self.max_target_length is not None:  # a text twice as long as any training text does not end sensibly
            max_new_tokens = min(max_new_tokens, 2 * self.max_target_length + 8)
        work: list[_Request] = []
        for i, (text, language) in enumerate(zip(inputs, languages or [None] * len(inputs), strict=True)):
            phrases = None if required is None else [self.vocabulary.parts(parts) for parts in required[i]]
            request = _Request(i, self._prompt(text, language), language, seeds[i] if seeds else 0, phrases)
            # A phrase that cannot be written would keep a text from ending.
            is_writable = all(self.vocabulary.is_writable(part) for parts in phrases or () for part in parts)
            if is_writable and self._leaves_room(request.prompt, max_new_tokens):
                work.append(request)
        forbidden_phrases = self.vocabulary.phrases(forbidden) if required is not None else []
        outputs: list[list[str]] = [[] for _ in inputs]

        def constraints(requests: Sequence[_Request], num_before_text: int) -> list[TokenConstraint]:
            phrases = None if required is None else [request.required or [] for request in requests]
            return self.vocabulary.constraints(phrases, forbidden_phrases, config, num_before_text)

        def keep(requests: Sequence[_Request], texts: Sequence[SampledText]) -> None:
            """Keep the likeliest texts of each input."""
            per_input = len(texts) // max(1, len(requests))
            for i, request in enumerate(requests):
                own = texts[i * per_input : (i + 1) * per_input]
                usable = [text for text in own if text.has_ended or not config.drop_unfinished]
                usable.sort(key=lambda text: -text.mean_log_prob)
                outputs[request.number] = [self._text(text.ids) for text in usable[: config.num_return_sequences]]

        def compute(batch: list[int], width: int) -> None:
            requests = [work[i] for i in batch]
            ids, mask = self.pad([request.prompt for request in requests], width, left=self._pads_left)
            processors = constraints(requests, self._num_before_text(ids))
            keep(requests, self._decode(requests, ids, mask, config, max_new_tokens, processors))

        if config.strategy == "sample" and self._supports_refilling:
            keep(work, self._sample(work, config, max_new_tokens, constraints(work, 0)))
        else:
            # A row costs as much as it has beams. Few batches are worth more than little padding, as a batch takes as
            # many steps as its longest text.
            lengths = [len(request.prompt) for request in work]
            self.batcher.run(lengths, compute, step=_WIDTH_STEP, cost=config.num_beams)
        return outputs

    def _sample(
        self,
        requests: Sequence[_Request],
        config: DecodingConfig,
        max_new_tokens: int,
        constraints: Sequence[TokenConstraint],
    ) -> list[SampledText]:
        rows = [request.prompt for request in requests for _ in range(config.num_beams)]
        width = -(-max(map(len, rows), default=1) // _WIDTH_STEP) * _WIDTH_STEP
        length = width + (self.device.type != "cpu") * max_new_tokens  # a GPU reserves memory for whole texts
        while True:
            batch_size = max(1, self.batcher.budget // length)
            try:
                texts = sample_texts(
                    self.model,
                    rows,
                    self._sampler(requests, config),
                    constraints=constraints,
                    max_new_tokens=max_new_tokens,
                    stop_ids=frozenset(self.vocabulary.stop_ids),
                    suppressed_ids=self.vocabulary.suppressed_ids,
                    batch_size=batch_size,
                )
            except (RuntimeError, MemoryError) as error:
                self.batcher.shrink(error, batch_size, length, width)
            else:
                trim_heap()
                return texts

    def _sampler(self, requests: Sequence[_Request], config: DecodingConfig) -> GumbelTopK:
        seeds = [[request.seed, draw] for request in requests for draw in range(config.num_beams)]
        return GumbelTopK(seeds, config.top_k, config.temperature)

    def _decode(
        self,
        requests: Sequence[_Request],
        ids: Any,
        mask: Any,
        config: DecodingConfig,
        max_new_tokens: int,
        constraints: Sequence[TokenConstraint],
    ) -> list[SampledText]:
        processors: list[Any] = [*constraints]
        languages = [request.language for request in requests]
        sampler = None
        if config.strategy == "sample":
            sampler = self._sampler(requests, config)
            processors.append(sampler)
            ids, mask = (tensor.repeat_interleave(config.num_beams, 0) for tensor in (ids, mask))
            languages = [language for language in languages for _ in range(config.num_beams)]
            options: dict[str, Any] = {"num_beams": 1}
        else:
            options = {"num_beams": config.num_beams, "num_return_sequences": config.num_return_sequences}
            # In diverse beam search the first beams to end would end it all, those that differ least from the best one.
            options["early_stopping"] = config.strategy != "diverse_beam_search"
            if config.strategy == "diverse_beam_search":
                processors.append(DiversityPenalty(config.num_beams, config.diversity_penalty))
        with torch.inference_mode(), quiet():
            out = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                **self._decoder_options(languages),
                max_new_tokens=max_new_tokens,
                do_sample=False,
                temperature=None,
                top_p=None,
                top_k=None,
                pad_token_id=self.vocabulary.pad_id,
                eos_token_id=self.vocabulary.stop_ids,
                suppress_tokens=self.vocabulary.suppressed_ids or None,
                logits_processor=transformers.LogitsProcessorList(processors),
                **options,
            )
        rows = [self.vocabulary.until_end(row) for row in out[:, self._num_before_text(ids) :].tolist()]
        if sampler is None:  # the likeliest are first
            return [SampledText(*row, 0.0) for row in rows]
        steps = torch.stack(sampler.log_probs, dim=1).tolist()
        lengths = [len(row) + has_ended for row, has_ended in rows]
        means = [math.fsum(values[:n]) / max(1, n) for values, n in zip(steps, lengths, strict=True)]
        return [SampledText(*row, mean) for row, mean in zip(rows, means, strict=True)]

    def _text(self, row: list[int]) -> str:
        return self.vocabulary.decode([row])[0].strip()


class CausalGenerator(TransformersGenerator):
    """Any model that ``AutoModelForCausalLM`` loads."""

    # The loss is that of the output only. See `TransformersGenerator`.

    auto = transformers.AutoModelForCausalLM
    task = "CAUSAL_LM"
    _pads_left = True

    def _prompt(self, source: str, language: str | None = None) -> list[int]:
        return [*self.prefix_ids, *self._ids(source), *self.encode(["\n"])[0]] or [self.vocabulary.end_id]

    def _loss(self, rows: Sequence[Row]) -> Any:
        if not self._head_inputs.has_head:
            return super()._loss(rows)
        # The logits of an input are not used, and those of a whole vocabulary take much memory and time.
        batch = self._collate(rows)
        labels = batch.pop("labels")
        places, columns = (labels[:, 1:] != IGNORED).nonzero(as_tuple=True)
        self._head_inputs.positions = places, columns
        try:
            logits = self.model(**batch, use_cache=False).logits
        finally:
            self._head_inputs.positions = None
        return torch.nn.functional.cross_entropy(logits.float(), labels[places, columns + 1])

    def _row(self, example: tuple[str, str, str | None]) -> Row:
        source, target, _ = example
        prompt, labels = self._prompt(source), [*self._ids(target), self.vocabulary.end_id]
        return [*prompt, *labels], [*[IGNORED] * len(prompt), *labels]

    def _fits(self, row: Row) -> bool:
        return len(row[0]) <= self.max_length

    def _leaves_room(self, prompt: list[int], max_new_tokens: int) -> bool:
        return len(prompt) + max_new_tokens <= self.max_length

    def _num_before_text(self, ids: Any) -> int:
        return int(ids.shape[1])


class Seq2SeqGenerator(TransformersGenerator):
    """Any model that ``AutoModelForSeq2SeqLM`` loads, as T5, BART and mBART. See `TransformersGenerator`."""

    auto = transformers.AutoModelForSeq2SeqLM
    task = "SEQ_2_SEQ_LM"

    def _prompt(self, source: str, language: str | None = None) -> list[int]:
        prefix, suffix = self.languages_.around(language)
        return [*prefix, *self._ids(source), *suffix]

    def _row(self, example: tuple[str, str, str | None]) -> Row:
        source, target, language = example
        return self._prompt(source, language), self._prompt(target, language)

    def _fits(self, row: Row) -> bool:
        return max(map(len, row)) <= self.max_length

    def _leaves_room(self, prompt: list[int], max_new_tokens: int) -> bool:
        return max(len(prompt), max_new_tokens) <= self.max_length

    def _decoder_options(self, languages: Sequence[str | None]) -> dict[str, Any]:
        # Training texts begin with what the tokenizer puts before a text (for mBART a language).
        start_id = self.model.generation_config.decoder_start_token_id
        start_id = getattr(self.model.config, "decoder_start_token_id", None) if start_id is None else start_id
        start_id = self.vocabulary.end_id if start_id is None else start_id
        rows = [self.languages_.beginning(language, start_id) for language in languages]
        return {"decoder_input_ids": torch.tensor(rows, device=self.device)}

    def _num_before_text(self, ids: Any) -> int:
        return len(self.languages_.beginning(None, 0))


def load_generator(name: str) -> TransformersGenerator:
    """Load the generator of the kind that a model's configuration names."""
    folder = find_model(name)
    config = load_pretrained(transformers.AutoConfig, folder)
    kind = Seq2SeqGenerator if getattr(config, "is_encoder_decoder", False) else CausalGenerator
    return kind(folder)
