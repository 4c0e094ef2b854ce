"""Translation with sequence-to-sequence models of transformers: Marian, FSMT, mBART, M2M100, NLLB, T5."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from entaug.backends.compute import compute_settings
from entaug.backends.transformers.base import Batcher, TorchBackend, load_model, load_pretrained, quiet
from entaug.backends.transformers.decoding import GumbelTopK
from entaug.backends.translation.base import TextPart, set_languages, translate_in_parts
from entaug.errors import MissingExtraError, MissingModelError

# Translation models are trained on sentences: longer texts are split even if the model takes them.
_MAX_LENGTH = 512
_TOP_K = 50  # of the likeliest tokens one is drawn
_SEED_MODULUS = 1 << 64  # makes negative seeds possible


class TransformersTranslator(TorchBackend):
    """Any model that ``AutoModelForSeq2SeqLM`` loads, as a `entaug.backends.protocols.Translator`."""

    # Without seeds a translation is found by beam search. With seeds it is drawn from a random stream of its own, so
    # that it depends on the text and its seed only. A text longer than the model takes is translated in parts. The
    # precision is fp32 unless another is set: with the fewer digits of bf16 candidates tie, and which one wins can
    # depend on the rest of the batch (one draw in a hundred and fifty, measured on tiny models).

    auto = transformers.AutoModelForSeq2SeqLM
    can_sample = True

    def __init__(
        self,
        name: str | Path,
        pair: tuple[str, str] | None = None,
        *,
        num_beams: int = 4,
        **options: Any,
    ) -> None:
        self._source = pair[0] if pair else ""
        options["precision"] = options.get("precision") or compute_settings().precision or "fp32"
        super().__init__(name, **options)
        config = self.model.config
        task_params = getattr(config, "task_specific_params", None)
        self._target = set_languages(str(name), self.tokenizer, pair, task_params, config.model_type)
        self.prefix_ids, self.suffix_ids = self._special_ids()  # again: the source language is among them
        self._invisible_ids = {*self.tokenizer.all_special_ids}
        self._invisible_ids.update(self.tokenizer.convert_tokens_to_ids(sorted(self._target.language_tokens)))
        self._instruction = self.encode([self._target.prefix])[0] if self._target.prefix else []
        if pair:
            self.name += f"@{pair[0]}:{pair[1]}"
        self.num_beams = num_beams
        budget = options.get("budget") or (8192 if self.device.type == "cuda" else 1024)
        # Beam search needs `num_beams` rows for each text, a draw one.
        self.batcher = Batcher(budget * num_beams)

    @property
    def languages(self) -> frozenset[str] | None:
        return frozenset({self._source.split("_")[0]}) if self._source else super().languages

    def _load_tokenizer(self) -> Any:
        try:
            return super()._load_tokenizer()
        except ImportError as error:  # that of FSMT names the package only in its message
            is_fsmt = "sacremoses" in str(error)
            package, extra = ("sacremoses", "translate") if is_fsmt else (error.name or "sentencepiece", "models")
            raise MissingExtraError(package, extra) from None

    def _load_model(self) -> Any:
        config = load_pretrained(transformers.AutoConfig, self.folder)
        if not getattr(config, "is_encoder_decoder", False):
            raise MissingModelError(
                f"is no translation model but {config.model_type}",
                path=str(self.folder),
                remedy="use a sequence-to-sequence model, for example Helsinki-NLP/opus-mt-en-de",
            )
        fault, remedy = "has no trained decoder", "use a translation model"
        return load_model(self.auto, self.folder, dtype=self.dtype, fault=fault, remedy=remedy)

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        num_other = len(self.prefix_ids) + len(self._instruction) + len(self.suffix_ids)
        max_length = max(1, min(self.max_length, _MAX_LENGTH) - num_other)
        return translate_in_parts(texts, seeds, self._lengths, max_length, self._translate)

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(row) for row in self.encode(texts)]

    def _translate(self, parts: list[TextPart]) -> list[str]:
        encoded = self.encode([self._target.prefix + part.text for part in parts])
        rows = [[*self.prefix_ids, *row, *self.suffix_ids] for row in encoded]
        translations = [""] * len(parts)

        def compute(batch: list[int], width: int) -> None:
            generated = self._generate([rows[i] for i in batch], width, [parts[i] for i in batch])
            for i, row in zip(batch, generated, strict=True):
                # Not all tokenizers count the tokens of languages as special.
                words = [token for token in row if token not in self._invisible_ids]
                translations[i] = " ".join(self.tokenizer.decode(words, skip_special_tokens=True).split())

        self.batcher.run([len(row) for row in rows], compute, cost=self.num_beams if parts[0].seed is None else 1)
        return translations

    def _generate(self, rows: list[list[int]], width: int, parts: list[TextPart]) -> list[list[int]]:
        ids, mask = self.pad(rows, width)
        settings = copy.deepcopy(self.model.generation_config)
        # By the width, not the row: so a batch has one limit, which depends on the text alone.
        settings.max_length, settings.max_new_tokens = None, min(2 * width + 20, self.max_length - 1)
        settings.do_sample, settings.num_return_sequences = False, 1
        settings.return_dict_in_generate = False
        settings.temperature = settings.top_p = settings.top_k = None
        if self._target.token is not None:
            token = int(self.tokenizer.convert_tokens_to_ids(self._target.token))
            if self._target.is_start:
                settings.decoder_start_token_id = token
            else:
                settings.forced_bos_token_id = token
        processors = []
        if parts[0].seed is None:
            settings.num_beams = self.num_beams
        else:
            settings.num_beams, settings.early_stopping, settings.length_penalty = 1, None, None
            seeds = [((part.seed or 0) % _SEED_MODULUS, part.number) for part in parts]
            processors.append(GumbelTopK(seeds, _TOP_K, temperature=1.0))
        with torch.inference_mode(), quiet():
            generated: list[list[int]] = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=settings,
                logits_processor=transformers.LogitsProcessorList(processors),
            ).tolist()
        return generated
