"""Masked language models of transformers: filling gaps, and log-probabilities of sub-words hidden one at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from entaug.backends.config import TrainingConfig, TrainingProgress
from entaug.backends.protocols import Blanked, Gapped
from entaug.backends.transformers.base import Batcher, load, torch, transformers
from entaug.backends.transformers.trainable import Tunable
from entaug.backends.transformers.training import IGNORED, Row
from entaug.errors import MissingModelError

__all__ = ["TransformersMaskedLM"]


class TransformersMaskedLM(Tunable[Blanked]):
    """Any model that ``AutoModelForMaskedLM`` loads, as a `entaug.backends.protocols.TunableMaskedLM`.

    The head is computed at hidden places only: of a row of thirty sub-words with one hidden that saves twenty-nine
    products with the whole vocabulary. A text longer than the model can take is seen through a window around each
    hidden place (`shortened` counts such texts).

    Args:
        name: a folder or a name on the hub.
        device: see `entaug.backends.transformers.base.choose`.
        precision: see `entaug.backends.transformers.base.choose`.
        budget: sub-words of a batch; by default by device.
        adapters: whether low-rank adapters learn and not the whole model; by default on a CPU.

    Raises:
        MissingModelError: there is no such model, or it has no language-model head, or no mask token.
    """

    auto = transformers.AutoModelForMaskedLM

    def _load_model(self) -> Any:
        model, info = load(self.auto, self.folder, dtype=self.dtype, output_loading_info=True)
        missing = sorted(key for key in info["missing_keys"] if "position_ids" not in key)
        if missing:
            raise MissingModelError(
                f"has no trained language-model head ({', '.join(missing[:3])} is not in its weights)",
                path=str(self.folder),
                remedy="use a masked language model, for example mpnet-mlm",
            )
        if self.tokenizer.mask_token_id is None:
            raise MissingModelError(
                "its tokenizer has no mask token", path=str(self.folder), remedy="use a masked language model"
            )
        return self._ready(model)

    def _ready(self, model: Any) -> Any:
        self._places: torch.Tensor | None = None
        model.base_model.register_forward_hook(self._only_places)
        return model

    def _only_places(self, _module: Any, _inputs: Any, output: Any) -> Any:
        """Hand the head the wanted places alone, each as a text of one sub-word."""
        if self._places is None:
            return output
        hidden = output[0]
        output["last_hidden_state"] = hidden[self._places[:, 0], self._places[:, 1]].unsqueeze(1)
        return output

    def _logits(self, rows: list[list[int]], places: list[tuple[int, int]], width: int) -> torch.Tensor:
        """Logits at some places: an array of places x vocabulary in fp32."""
        ids, mask = self.padded(rows, width)
        self._places = torch.tensor(places, device=self.device)
        full = all(len(row) == width for row in rows)
        try:
            with torch.inference_mode():
                out = self.model(input_ids=ids, attention_mask=None if full else mask)
                logits: torch.Tensor = out.logits[:, 0].float()
        finally:
            self._places = None
        return logits

    # --------------------------------------------------------------------------------------------------------- learning

    def fit(
        self,
        texts: Callable[[int], Sequence[Blanked]],
        config: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        *,
        markers: Mapping[str, str] | None = None,
        folder: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """See `entaug.backends.protocols.TunableMaskedLM.fit`."""
        made = copy.copy(self)
        made.__dict__.pop("_words", None)  # of the vocabulary without the markers
        made.learn(texts, config, markers or {}, folder, progress)
        return made

    def _row(self, example: Blanked) -> Row:
        ids, said = list(self.before), [IGNORED] * len(self.before)
        for text, is_hidden in example:
            own = self._ids(text)
            ids += [self.tokenizer.mask_token_id] * len(own) if is_hidden else own
            said += own if is_hidden else [IGNORED] * len(own)
        return [*ids, *self.after], [*said, *[IGNORED] * len(self.after)]

    def _fits(self, row: Row) -> bool:
        return len(row[0]) <= self.max_length and any(label != IGNORED for label in row[1])

    def _batch(self, rows: Sequence[Row]) -> dict[str, Any]:
        width = max(len(ids) for ids, _ in rows)
        ids, mask = self.padded([ids for ids, _ in rows], width)
        labels = torch.full_like(ids, IGNORED)
        for i, (_, said) in enumerate(rows):
            labels[i, : len(said)] = torch.tensor(said)
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}

    # ------------------------------------------------------------------------------------------------------- likelihood

    def pieces(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """See `entaug.backends.protocols.MaskedLM.pieces`."""
        return self.ranges(texts)

    def token_log_probs(self, asked: Sequence[tuple[str, Sequence[int] | None]]) -> list[NDArray[np.float32]]:
        """See `entaug.backends.protocols.MaskedLM.token_log_probs`."""
        rows = self.encode([text for text, _ in asked])
        wanted = [range(len(ids)) if places is None else places for ids, (_, places) in zip(rows, asked, strict=True)]
        found = [np.zeros(len(places), np.float32) for places in wanted]
        # One row a hidden sub-word: which text, which of the answers, and the window it is seen through.
        work: list[tuple[int, int, int, int]] = []
        most = self.max_length - len(self.before) - len(self.after)
        for text, places in enumerate(wanted):
            n = len(rows[text])
            self.shortened += n > most
            for answer, place in enumerate(places):
                start = min(max(0, place - most // 2), max(0, n - most))
                work.append((text, answer, place, start))
        before, after = self.before, self.after
        mask_id = self.tokenizer.mask_token_id

        def compute(batch: list[int], width: int) -> None:
            inputs, places, targets = [], [], []
            for number, (text, _, place, start) in enumerate(work[i] for i in batch):
                row = [*before, *rows[text][start : start + most], *after]
                at = len(before) + place - start
                targets.append(row[at])
                row[at] = mask_id
                inputs.append(row)
                places.append((number, at))
            logits = self._logits(inputs, places, width)
            target = torch.tensor(targets, device=self.device)[:, None]
            values = (logits.gather(1, target)[:, 0] - logits.logsumexp(1)).cpu().numpy()
            for value, (text, answer, _, _) in zip(values, (work[i] for i in batch), strict=True):
                found[text][answer] = value

        self._rows.run([len(before) + len(after) + min(most, len(rows[text])) for text, *_ in work], compute)
        return found

    @cached_property
    def _rows(self) -> Batcher:
        # A text gives as many rows of its own width as it has sub-words, so nothing is gained by rounding widths up.
        return Batcher(self.batcher.budget, step=1 if self.device.type == "cpu" else 4)

    # ---------------------------------------------------------------------------------------------------------- filling

    def fill(
        self, texts: Sequence[Gapped], top: int, *, first_only: bool = False
    ) -> list[list[list[tuple[str, float]]]]:
        """See `entaug.backends.protocols.MaskedLM.fill`."""
        mask, mask_id = self.tokenizer.mask_token, self.tokenizer.mask_token_id
        joined = ["".join(mask if part is None else part.replace(mask, " ") for part in text) for text in texts]
        if self.markers:  # as it has learned them: stretch by stretch, the space before a gap a part of what is hidden
            rows = [self._stretches(text) for text in texts]
        else:
            rows = self.tokenizer(joined, add_special_tokens=False, verbose=False)["input_ids"]
        before, after = self.before, self.after
        most = self.max_length - len(before) - len(after)
        found: list[list[list[tuple[str, float]]]] = []
        # A row is a text, its gaps, and where its window begins; in a text that is too long each gap has its own row.
        work: list[tuple[int, list[tuple[int, int]], int]] = []
        for text, ids in enumerate(rows):
            gaps = [i for i, id_ in enumerate(ids) if id_ == mask_id][: 1 if first_only else None]
            found.append([[] for _ in gaps])
            numbered = list(enumerate(gaps))
            if len(ids) <= most:
                work.append((text, numbered, 0))
                continue
            self.shortened += 1
            work += [(text, [gap], min(max(0, gap[1] - most // 2), len(ids) - most)) for gap in numbered]
        words, allowed = self._words
        top = min(top, len(allowed))

        def compute(batch: list[int], width: int) -> None:
            inputs, places, answers = [], [], []
            for number, (text, gaps, start) in enumerate(work[i] for i in batch):
                inputs.append([*before, *rows[text][start : start + most], *after])
                places += [(number, len(before) + at - start) for _, at in gaps]
                answers += [(text, gap) for gap, _ in gaps]
            if not places:
                return
            logits = self._logits(inputs, places, width)
            total = logits.logsumexp(1, keepdim=True)
            best = (logits[:, allowed] - total).topk(top, dim=1)
            for (text, gap), values, numbers in zip(answers, best.values.tolist(), best.indices.tolist(), strict=True):
                found[text][gap] = [(words[i], value) for i, value in zip(numbers, values, strict=True)]

        lengths = [len(before) + len(after) + min(most, len(rows[text])) for text, *_ in work]
        self.batcher.run(lengths, compute)
        return found

    def _stretches(self, text: Gapped) -> list[int]:
        """Sub-words of a text with gaps and markers."""
        ids: list[int] = []
        for part, following in zip(text, [*text[1:], ""], strict=True):
            if part is None:
                ids.append(self.tokenizer.mask_token_id)
            else:
                ids += self._ids(part.rstrip(" ") if following is None else part)
        return ids

    @cached_property
    def _words(self) -> tuple[list[str], torch.Tensor]:
        """The sub-words that are whole words of letters, and their ids."""
        pieces = self.tokenizer.convert_ids_to_tokens(list(range(len(self.tokenizer))))
        special = set(self.tokenizer.all_special_ids)
        # How a vocabulary tells the beginning of a word from a piece within one: a mark before the one or the other.
        starts = next((mark for mark in ("▁", "Ġ") if sum(str(p).startswith(mark) for p in pieces) > 50), None)
        words, ids = [], []
        for i, piece in enumerate(pieces):
            if i in special or piece is None:
                continue
            if starts is None:
                word = piece
            elif piece.startswith(starts):
                word = self.tokenizer.convert_tokens_to_string([piece]).strip()
            else:
                continue
            if len(word) > 1 and word.isalpha():
                words.append(word)
                ids.append(i)
        size = self.model.get_output_embeddings().weight.shape[0] if self.model.get_output_embeddings() else len(pieces)
        kept = [(word, i) for word, i in zip(words, ids, strict=True) if i < size]
        return [word for word, _ in kept], torch.tensor([i for _, i in kept], device=self.device)
