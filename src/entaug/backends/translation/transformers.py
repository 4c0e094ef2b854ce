"""Translation with sequence-to-sequence models of transformers: Marian, FSMT, mBART, M2M100, NLLB, T5."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from entaug.backends.transformers.base import Batcher, TorchBackend, load, quiet, torch, transformers
from entaug.backends.transformers.decoding import GumbelTopK
from entaug.backends.translation.languages import missing_tokenizer, told
from entaug.backends.translation.splitting import Part, in_parts
from entaug.errors import MissingModelError, ParameterError

__all__ = ["TransformersTranslator"]

# Translation models are trained on sentences: what is longer than this is cut even where the model has room.
_LONGEST = 512
_BOTH_SIDES = 1 << 64  # seeds are taken modulo it, so that negative ones will do


class TransformersTranslator(TorchBackend):
    """Any model that ``AutoModelForSeq2SeqLM`` loads, as a `entaug.backends.protocols.Translator`.

    Without seeds translations are found by beam search. With seeds they are drawn: each text from a stream of its own,
    so that what is drawn depends on the text and its seed only. A text longer than the model can take is translated in
    parts (see `entaug.backends.translation.splitting`; `shortened` counts such texts). Precision is fp32 unless it is asked for
    otherwise: with the fewer digits of bf16 candidates tie, and which of them wins can depend on what else is in the
    batch (one draw in a hundred and fifty, as measured on tiny models).

    Args:
        name: a folder or a name on the hub.
        pair: codes of the source and the target language, for a model of several.
        beams: how many candidates the search keeps.
        temperature: of draws; above 1 for more variety, below for less.
        top_k: how many sub-words a draw is among.
        device: see `entaug.backends.transformers.base.choose`.
        precision: see `entaug.backends.transformers.base.choose`.
        budget: sub-words of a batch in a search; by default by device.

    Raises:
        MissingModelError: there is no such model, or it cannot translate.
        ParameterError: the pair of languages, or a number, is one that it cannot have.
    """

    auto = transformers.AutoModelForSeq2SeqLM
    samples = True

    def __init__(
        self,
        name: str | Path,
        pair: tuple[str, str] | None = None,
        *,
        beams: int = 4,
        temperature: float = 1.0,
        top_k: int = 50,
        device: str | None = None,
        precision: str | None = None,
        budget: int | None = None,
    ) -> None:
        if beams < 1 or top_k < 1:
            raise ParameterError("beams and top_k must be at least 1")
        if not temperature > 0:
            raise ParameterError(f"temperature must be above 0, not {temperature!r}")
        super().__init__(
            name, device=device, precision=precision or os.environ.get("ENTAUG_PRECISION") or "fp32", budget=budget
        )
        config = self.model.config
        self._told = told(
            str(name), self.tokenizer, pair, getattr(config, "task_specific_params", None), config.model_type
        )
        self.before, self.after = self._around()  # anew: the source language is among them
        self._no_words = {*self.tokenizer.all_special_ids}
        self._no_words.update(self.tokenizer.convert_tokens_to_ids(sorted(self._told.languages)))
        self._instruction = self.encode([self._told.prefix])[0] if self._told.prefix else []
        if pair:
            self.name += f"@{pair[0]}:{pair[1]}"
        self.beams, self.temperature, self.top_k = beams, temperature, top_k
        budget = budget or (8192 if self.device.type == "cuda" else 1024)
        # A search holds `beams` rows for each text, a draw one.
        self.batcher, self._drawing = Batcher(budget), Batcher(budget * beams)

    def _load_tokenizer(self) -> Any:
        try:
            return super()._load_tokenizer()
        except ImportError as error:
            raise missing_tokenizer(error) from None

    def _load_model(self) -> Any:
        config = load(transformers.AutoConfig, self.folder)
        if not getattr(config, "is_encoder_decoder", False):
            raise MissingModelError(
                f"is no translation model but {config.model_type}",
                path=str(self.folder),
                remedy="use a sequence-to-sequence model, for example Helsinki-NLP/opus-mt-en-de",
            )
        model, info = load(self.auto, self.folder, dtype=self.dtype, output_loading_info=True)
        # Positions of a fixed pattern and a bias of zeros are not always stored.
        missing = sorted(key for key in info["missing_keys"] if not key.endswith(("positions.weight", "logits_bias")))
        if missing:
            raise MissingModelError(
                f"has no trained decoder ({', '.join(missing[:3])} is not in its weights)",
                path=str(self.folder),
                remedy="use a translation model",
            )
        return model

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        """See `entaug.backends.protocols.Translator.translate`."""
        room = min(self.max_length, _LONGEST) - len(self.before) - len(self._instruction) - len(self.after)
        found, cut = in_parts(texts, seeds, self._lengths, max(1, room), self._translate)
        self.shortened += cut
        return found

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(row) for row in self.encode(texts)]

    def _translate(self, asked: list[Part]) -> list[str]:
        rows = [
            [*self.before, *row, *self.after] for row in self.encode([self._told.prefix + part.text for part in asked])
        ]
        done = [""] * len(asked)

        def compute(batch: list[int], width: int) -> None:
            made = self._generate([rows[i] for i in batch], width, [asked[i] for i in batch])
            for i, row in zip(batch, made, strict=True):
                # Not all tokenizers count the tokens of languages as special.
                words = [token for token in row if token not in self._no_words]
                done[i] = " ".join(self.tokenizer.decode(words, skip_special_tokens=True).split())

        batcher = self.batcher if asked[0].seed is None else self._drawing
        batcher.run([len(row) for row in rows], compute)
        return done

    def _generate(self, rows: list[list[int]], width: int, asked: list[Part]) -> list[list[int]]:
        ids, mask = self.padded(rows, width)
        settings = copy.deepcopy(self.model.generation_config)
        # Of the width, not of the row: so a batch has one bound, and it depends on the text alone.
        settings.max_length, settings.max_new_tokens = None, min(2 * width + 20, self.max_length - 1)
        settings.do_sample, settings.num_return_sequences = False, 1
        settings.return_dict_in_generate = False
        settings.temperature = settings.top_p = settings.top_k = None
        if self._told.token is not None:
            token = int(self.tokenizer.convert_tokens_to_ids(self._told.token))
            if self._told.starts:
                settings.decoder_start_token_id = token
            else:
                settings.forced_bos_token_id = token
        processors = []
        if asked[0].seed is None:
            settings.num_beams = self.beams
        else:
            settings.num_beams, settings.early_stopping, settings.length_penalty = 1, None, None
            seeds = [((part.seed or 0) % _BOTH_SIDES, part.number) for part in asked]
            processors.append(GumbelTopK(seeds, self.top_k, self.temperature))
        with torch.inference_mode(), quiet():
            made: list[list[int]] = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=settings,
                logits_processor=transformers.LogitsProcessorList(processors),
            ).tolist()
        return made
