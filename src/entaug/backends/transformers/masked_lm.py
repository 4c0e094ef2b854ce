"""Masked language models of transformers: filling gaps, and log-probabilities of tokens masked one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from entaug.backends.protocols import MaskedExample, MaskedText
from entaug.backends.transformers.base import load_model
from entaug.backends.transformers.training import IGNORED, FineTunable, Row
from entaug.core.spacing import is_unspaced_script
from entaug.core.words import is_word
from entaug.errors import MissingModelError


class TransformersMaskedLM(FineTunable[MaskedExample]):
    """Any model that ``AutoModelForMaskedLM`` loads, as a `entaug.backends.protocols.TrainableMaskedLM`."""

    # The head is computed at masked positions only: of a row of thirty tokens with one masked that saves twenty-nine
    # products with the whole vocabulary. A text longer than the model takes is seen through a window around each masked
    # position.

    auto = transformers.AutoModelForMaskedLM

    def _load_model(self) -> Any:
        remedy = "use a masked language model, for example mpnet-mlm"
        fault = "has no trained language-model head"
        model = load_model(self.auto, self.folder, dtype=self.dtype, fault=fault, remedy=remedy)
        if self.tokenizer.mask_token_id is None:
            raise MissingModelError(
                "its tokenizer has no mask token", path=str(self.folder), remedy="use a masked language model"
            )
        return self._finish(model)

    def _finish(self, model: Any) -> Any:
        self.__dict__.pop("_words", None)  # of another vocabulary
        self._positions: torch.Tensor | None = None
        model.base_model.register_forward_hook(self._select_positions)
        return model

    def _select_positions(self, _module: Any, _inputs: Any, output: Any) -> Any:
        """Pass only the wanted positions to the head, each as a text of one token."""
        if self._positions is None:
            return output
        hidden = output[0]
        output["last_hidden_state"] = hidden[self._positions[:, 0], self._positions[:, 1]].unsqueeze(1)
        return output

    def _logits(self, rows: list[list[int]], positions: list[tuple[int, int]], width: int) -> torch.Tensor:
        """Logits at pairs of row and position: an array of shape (positions, vocabulary) in fp32."""
        ids, mask = self.pad(rows, width)
        self._positions = torch.tensor(positions, device=self.device)
        is_full = all(len(row) == width for row in rows)
        try:
            with torch.inference_mode():
                out = self.model(input_ids=ids, attention_mask=None if is_full else mask)
                logits: torch.Tensor = out.logits[:, 0].float()
        finally:
            self._positions = None
        return logits

    # -------------------------------------------------------------------------------------------------------- training

    def _row(self, example: MaskedExample) -> Row:
        ids, labels = list(self.prefix_ids), [IGNORED] * len(self.prefix_ids)
        for text, is_masked in example:
            part = self._ids(text)
            ids += [self.tokenizer.mask_token_id] * len(part) if is_masked else part
            labels += part if is_masked else [IGNORED] * len(part)
        return [*ids, *self.suffix_ids], [*labels, *[IGNORED] * len(self.suffix_ids)]

    def _fits(self, row: Row) -> bool:
        return len(row[0]) <= self.max_length and any(label != IGNORED for label in row[1])

    # ------------------------------------------------------------------------------------------------ log-probabilities

    def token_offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        if not texts or not self.tokenizer.is_fast:
            return [[(0, 0)] * len(row) for row in self.encode(texts)]
        options = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
        ranges: list[list[tuple[int, int]]] = self.tokenizer(list(texts), return_offsets_mapping=True, **options)[
            "offset_mapping"
        ]
        return ranges

    @property
    def _window(self) -> int:
        """The number of tokens of a text that the model takes at once."""
        return self.max_length - len(self.prefix_ids) - len(self.suffix_ids)

    def _window_start(self, length: int, position: int) -> int:
        """Where the window around a position begins, in a text of a number of tokens."""
        return min(max(0, position - self._window // 2), max(0, length - self._window))

    def _window_row(self, ids: Sequence[int], start: int) -> list[int]:
        """The tokens of a window, between the special ones."""
        return [*self.prefix_ids, *ids[start : start + self._window], *self.suffix_ids]

    def token_log_probs(self, requests: Sequence[tuple[str, Sequence[int] | None]]) -> list[NDArray[np.float32]]:
        rows = self.encode([text for text, _ in requests])
        positions_of = [
            range(len(ids)) if positions is None else positions
            for ids, (_, positions) in zip(rows, requests, strict=True)
        ]
        log_probs = [np.zeros(len(positions), np.float32) for positions in positions_of]
        # A row for each masked token: its text, its place in the result, and its position.
        work = [(text, *place) for text, positions in enumerate(positions_of) for place in enumerate(positions)]

        def compute(batch: list[int], width: int) -> None:
            inputs, masked, targets = [], [], []
            for number, (text, _, position) in enumerate(work[i] for i in batch):
                start = self._window_start(len(rows[text]), position)
                row, column = self._window_row(rows[text], start), len(self.prefix_ids) + position - start
                targets.append(row[column])
                row[column] = self.tokenizer.mask_token_id
                inputs.append(row)
                masked.append((number, column))
            logits = self._logits(inputs, masked, width)
            target_ids = torch.tensor(targets, device=self.device)[:, None]
            values = (logits.gather(1, target_ids)[:, 0] - logits.logsumexp(1)).cpu().numpy()
            for value, (text, place, _) in zip(values, (work[i] for i in batch), strict=True):
                log_probs[text][place] = value

        # A text gives as many rows of its own width as it has tokens, so nothing is gained by rounding widths up.
        lengths = [len(self._window_row(rows[text], 0)) for text, *_ in work]
        self.batcher.run(lengths, compute, step=1 if self.device.type == "cpu" else 4)
        return log_probs

    # ---------------------------------------------------------------------------------------------------------- filling

    def fill(
        self, texts: Sequence[MaskedText], top_k: int, *, first_only: bool = False
    ) -> list[list[list[tuple[str, float]]]]:
        if self.new_tokens:  # as in training: part by part, the space before a gap belongs to what is masked
            rows = [self._ids_of_parts(text) for text in texts]
        else:
            mask = self.tokenizer.mask_token
            joined = ["".join(mask if part is None else part.replace(mask, " ") for part in text) for text in texts]
            rows = self.tokenizer(joined, add_special_tokens=False, verbose=False)["input_ids"]
        predictions: list[list[list[tuple[str, float]]]] = []
        # A row: its text, its gaps (number and position) and the start of its window. In a text that is too long each
        # gap has a row of its own.
        work: list[tuple[int, list[tuple[int, int]], int]] = []
        for text, ids in enumerate(rows):
            positions = [i for i, id_ in enumerate(ids) if id_ == self.tokenizer.mask_token_id]
            gaps = list(enumerate(positions[: 1 if first_only else None]))
            predictions.append([[] for _ in gaps])
            if len(ids) <= self._window:
                work.append((text, gaps, 0))
            else:
                work += [(text, [gap], self._window_start(len(ids), gap[1])) for gap in gaps]
        work = [row for row in work if row[1]]
        groups = self._words

        def compute(batch: list[int], width: int) -> None:
            inputs, masked, targets = [], [], []
            for number, (text, gaps, start) in enumerate(work[i] for i in batch):
                inputs.append(self._window_row(rows[text], start))
                masked += [(number, len(self.prefix_ids) + position - start) for _, position in gaps]
                targets += [(text, gap) for gap, _ in gaps]
            logits = self._logits(inputs, masked, width)
            total = logits.logsumexp(1, keepdim=True)
            for words, word_ids in groups:
                best = (logits[:, word_ids] - total).topk(min(top_k, len(words)), dim=1)
                for (text, gap), *of_gap in zip(targets, best.values.tolist(), best.indices.tolist(), strict=True):
                    predictions[text][gap] += [(words[i], value) for value, i in zip(*of_gap, strict=True)]
            for text, gap in targets if len(groups) > 1 else ():
                best_of: dict[str, float] = {}  # a word may have two entries, with a space before it and without
                for word, value in sorted(predictions[text][gap], key=lambda prediction: -prediction[1]):
                    best_of.setdefault(word, value)
                predictions[text][gap] = list(best_of.items())[:top_k]

        self.batcher.run([len(self._window_row(rows[text], start)) for text, _, start in work], compute)
        return predictions

    def _ids_of_parts(self, text: MaskedText) -> list[int]:
        ids: list[int] = []
        for part, following in zip(text, [*text[1:], ""], strict=True):
            if part is None:
                ids.append(self.tokenizer.mask_token_id)
            else:
                ids += self._ids(part.rstrip(" ") if following is None else part)
        return ids

    @cached_property
    def _words(self) -> list[tuple[list[str], torch.Tensor]]:
        """The vocabulary entries that are whole words of letters, and their ids."""
        # There is a second group for scripts without spaces, if the vocabulary has words of them; these have no mark,
        # and may be single characters.
        entries = self.tokenizer.convert_ids_to_tokens(list(range(len(self.tokenizer))))
        special = set(self.tokenizer.all_special_ids)
        # Vocabularies mark the beginning of a word, or (as BERT's) its continuation.
        word_mark = next((mark for mark in ("▁", "Ġ") if sum(str(e).startswith(mark) for e in entries) > 50), None)
        output_layer = self.model.get_output_embeddings()
        size = output_layer.weight.shape[0] if output_layer else len(entries)
        words, ids, characters = [], [], []
        for i, entry in enumerate(entries[:size]):
            if i in special or entry is None:
                continue
            if word_mark is None:
                word = entry
            else:
                word = self.tokenizer.convert_tokens_to_string([entry]).strip()
                if not (entry.startswith(word_mark) or is_unspaced_script(word)):
                    continue
            if is_word(word) and is_unspaced_script(word):
                characters.append((word, i))
            elif is_word(word) and len(word) > 1:
                words.append(word)
                ids.append(i)
        groups = [(words, ids), ([word for word, _ in characters], [i for _, i in characters])]
        return [(group, torch.tensor(numbers, device=self.device)) for group, numbers in groups if group]
