"""Generators of transformers: fine-tuned on pairs of texts, whole or by low-rank adapters, and written with."""

from __future__ import annotations

import abc
import copy
import math
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from entaug.backends.config import TrainingConfig, TrainingProgress
from entaug.backends.protocols import Decoding, Pairs
from entaug.backends.transformers.base import Batcher, find, load, quiet, torch, transformers
from entaug.backends.transformers.decoding import BeforeWords, DiversityPenalty, GumbelTopK, PhraseConstraint, Wanted
from entaug.backends.transformers.trainable import Tunable, peft_module
from entaug.backends.transformers.training import IGNORED, Row
from entaug.errors import ParameterError
from entaug.spacing import is_word_character

__all__ = ["CausalGenerator", "Seq2SeqGenerator", "TransformersGenerator", "open_generator"]

_HOW = ("beams", "diverse", "sample")
_ENDING = re.compile(r"['\"”’)\]]*[.!?…。！？؟।]+['\"”’)\]]*")  # noqa: RUF001
_GLUE = "-/_&+#@"
_OPEN = frozenset("([{\"'“‘«„")  # noqa: RUF001  (behind these stands no space before a word)
_STEP = 32  # widths of inputs to write from are multiples of it


class TransformersGenerator(Tunable[tuple[str, str]], abc.ABC):
    """What both kinds share, as a `entaug.backends.protocols.Generator`.

    Args:
        name: a folder or a name on the hub.
        device: see `entaug.backends.transformers.base.choose`.
        precision: see `entaug.backends.transformers.base.choose`.
        budget: sub-words of a batch when generating; by default by device.
        adapters: whether low-rank adapters learn (Hu et al. 2022) and not the whole model; by default on a CPU.

    Raises:
        MissingModelError: there is no such model.
        MissingExtraError: adapters are wanted, and peft is not installed.
    """

    def __init__(
        self,
        name: str | Path,
        *,
        device: str | None = None,
        precision: str | None = None,
        budget: int | None = None,
        adapters: bool | None = None,
    ) -> None:
        super().__init__(name, device=device, precision=precision, budget=budget, adapters=adapters)
        if self.adapters:
            peft_module()  # better now than when it is to learn

    # --------------------------------------------------------------------------------------------------- for subclasses

    @abc.abstractmethod
    def _prompt(self, source: str) -> list[int]:
        """Sub-words of an input."""

    @abc.abstractmethod
    def _room(self, prompt: list[int], max_new_tokens: int) -> bool:
        """Whether an input leaves room for a text."""

    def _pads_left(self) -> bool:
        return False

    # --------------------------------------------------------------------------------------------------------- learning

    def fit(
        self,
        pairs: Pairs,
        config: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        *,
        markers: Mapping[str, str] | None = None,
        folder: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """See `entaug.backends.protocols.Generator.fit`.

        Raises:
            InputError: there is no pair that the model can take.
            EntaugError: there is not even memory for a single pair.
        """
        made = copy.copy(self)
        made.learn(pairs if callable(pairs) else lambda _: pairs, config, markers or {}, folder, progress)
        return made

    def _ready(self, model: Any) -> Any:
        # What a checkpoint brings along (a forced end, no n-gram twice, a least length) is not what was asked for.
        own = model.generation_config
        plain: Any = transformers.GenerationConfig
        model.generation_config = plain(
            bos_token_id=own.bos_token_id, decoder_start_token_id=own.decoder_start_token_id
        )
        for name in ("_said", "_stops", "_marks", "_unsayable"):
            self.__dict__.pop(name, None)  # they are of the tokenizer that was
        return model

    # ------------------------------------------------------------------------------------------------------- generating

    def generate(
        self,
        inputs: Sequence[str],
        decoding: Decoding = Decoding(),  # noqa: B008 (immutable)
        seeds: Sequence[int] | None = None,
        wanted: Sequence[Sequence[Sequence[str]]] | None = None,
        unwanted: Sequence[str] = (),
    ) -> list[list[str]]:
        """See `entaug.backends.protocols.Generator.generate`.

        Raises:
            ParameterError: sampling without one seed an input, or a parameter that cannot be.
            EntaugError: there is not even memory for a single input.
        """
        _check(decoding, len(inputs), seeds)
        if self.said is not None:  # what is twice as long as anything it learned has lost its way
            decoding = decoding._replace(max_new_tokens=min(decoding.max_new_tokens, 2 * self.said + 8))
        prompts = [self._prompt(text) for text in inputs]
        made: list[list[str]] = [[] for _ in prompts]
        work = [i for i, prompt in enumerate(prompts) if self._room(prompt, decoding.max_new_tokens)]
        of_each = [[self._parts(parts) for parts in pieces] for pieces in wanted or ()]
        if wanted is not None:  # a piece that cannot be written would keep a text from ending
            work = [i for i in work if all(self._sayable(part) for parts in of_each[i] for part in parts)]
        barred = self._parts(unwanted) if wanted is not None else []

        def compute(batch: list[int], width: int) -> None:
            chosen = [work[i] for i in batch]
            ids, mask = self.padded([prompts[i] for i in chosen], width)
            if self._pads_left():
                ids, mask = _rolled(ids, mask)
            some = None if seeds is None else [seeds[i] for i in chosen]
            pieces = None if wanted is None else [of_each[i] for i in chosen]
            for i, texts in zip(chosen, self._written(ids, mask, decoding, some, pieces, barred), strict=True):
                made[i] = texts

        # A row costs as many as there are beams; and few batches are worth more than little padding, as each of them
        # takes as many steps as its longest text.
        batcher = Batcher(max(1, self.batcher.budget // decoding.num_beams), step=_STEP)
        batcher.run([len(prompts[i]) for i in work], compute)
        self.batcher.halved += batcher.halved
        return made

    def _parts(self, parts: Sequence[str]) -> list[Wanted]:
        """Pieces of text as sub-words."""
        forms = [form for part in parts for form in (f" {part}", part, part[:1].upper() + part[1:])]
        ids = iter(map(tuple, map(self._ids, forms) if self.markers else self.encode(forms)))
        return [Wanted(*three) for three in zip(ids, ids, ids, strict=True)]

    def _sayable(self, part: Wanted) -> bool:
        """Whether a piece can be written at all."""
        return bool(part.spaced) and {*self._unsayable, *self._stops}.isdisjoint(part.spaced)

    @cached_property
    def _said(self) -> list[str]:
        """What each sub-word adds to a text, a space before it included; nothing for special ones."""
        before = self.encode(["a"])[0]
        skip = len(self._decoded([before])[0])
        return [text[skip:] for text in self._decoded([[*before, id_] for id_ in range(len(self.tokenizer))])]

    def _decoded(self, rows: list[list[int]]) -> list[str]:
        texts: list[str] = self.tokenizer.batch_decode(
            rows, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return texts

    @cached_property
    def _stops(self) -> list[int]:
        """The sub-words that end a text: what it learns from are single lines, so a new line is as good as an end."""
        return [self._end, *(id_ for id_, text in enumerate(self._said) if "\n" in text and id_ != self._end)]

    @cached_property
    def _marks(self) -> tuple[Any, Any]:
        """The sub-words that end a text or a sentence, and those that make one word with what stands before them."""
        said = list(enumerate(self._said))
        ends = {*self._stops, *(id_ for id_, text in said if _ENDING.fullmatch(text.strip(" ")))}
        glues = [id_ for id_, text in said if text and (is_word_character(text[0]) or text[0] in _GLUE)]
        return torch.tensor(sorted(ends), device=self.device), torch.tensor(glues, device=self.device)

    @cached_property
    def _unsayable(self) -> list[int]:
        """The special sub-words that do not end a text: nobody sees them in it, but what follows them reads oddly.

        And what a model has room for, but its tokenizer no word.
        """
        rows = self.model.get_input_embeddings().weight.shape[0]
        return sorted({*self.tokenizer.all_special_ids, *range(len(self.tokenizer), rows)} - {self._end})

    def _before_words(self, goes_on: Mapping[str, Collection[str] | None], written: int) -> BeforeWords:
        """What lets markers stand only where they can be read."""
        own = {marker: int(self.tokenizer.convert_tokens_to_ids(marker)) for marker in self.markers}
        rules = {own[mark]: None if some is None else {own[m] for m in some} for mark, some in goes_on.items()}
        begins = [i for i, text in enumerate(self._said) if text[:1] == " " and text.strip() and i not in rules]
        return BeforeWords(rules, written, torch.tensor(begins, device=self.device), self._marks[1])

    def _is_open(self, id_: int) -> bool:
        """Whether a word can stand right behind a sub-word."""
        return id_ < len(self._said) and self._said[id_][-1:] in _OPEN

    def _written(
        self,
        ids: Any,
        mask: Any,
        decoding: Decoding,
        seeds: Sequence[int] | None,
        wanted: Sequence[Sequence[Sequence[Wanted]]] | None,
        unwanted: Sequence[Wanted],
    ) -> list[list[str]]:
        count, many = len(ids), decoding.num_beams
        options: dict[str, Any] = {"num_beams": many, "num_return_sequences": decoding.texts}
        # The first beams to end would end it all, those that differ least from the best one among them.
        options["early_stopping"] = decoding.how != "diverse"
        processors: list[Any] = []
        if wanted is not None:
            begun = self._before_text(ids)
            processors.append(PhraseConstraint(wanted, many, begun, self._end, *self._marks, self._is_open, unwanted))
        if decoding.goes_on:
            processors.append(self._before_words(decoding.goes_on, self._before_text(ids)))
        if decoding.how == "diverse":
            processors.append(DiversityPenalty(many, decoding.diversity_penalty))
        elif decoding.how == "sample":
            ids, mask = ids.repeat_interleave(many, 0), mask.repeat_interleave(many, 0)
            drawn = [[seed, draw] for seed in seeds or () for draw in range(many)]
            processors.append(GumbelTopK(drawn, decoding.top_k, decoding.temperature))
            options = {"num_beams": 1}
        with torch.inference_mode(), quiet():
            out = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                **self._begun(len(ids)),
                max_new_tokens=decoding.max_new_tokens,
                do_sample=False,
                temperature=None,
                top_p=None,
                top_k=None,
                pad_token_id=self._pad,
                eos_token_id=self._stops,
                suppress_tokens=self._unsayable or None,
                logits_processor=transformers.LogitsProcessorList(processors),
                **options,
            )
        rows = [self._ended(row) for row in out[:, self._before_text(ids) :].tolist()]
        of_each = len(rows) // count
        scores = _means(processors[-1].log_probs, rows) if decoding.how == "sample" else [0.0] * len(rows)
        best = []
        for i in range(count):
            own = [row for row in range(i * of_each, (i + 1) * of_each) if rows[row][1] or not decoding.whole]
            own.sort(key=lambda row: -scores[row])
            best.append([self._text(rows[row][0]) for row in own[: decoding.texts]])
        return best

    def _begun(self, count: int) -> dict[str, Any]:
        """What else a model is given, for so many rows."""
        del count
        return {}

    @abc.abstractmethod
    def _before_text(self, ids: Any) -> int:
        """How many sub-words of a row stand before what is written."""

    def _ended(self, row: list[int]) -> tuple[list[int], bool]:
        """A text up to its end, and whether it came to one."""
        length = next((i for i, id_ in enumerate(row) if id_ in self._stops), len(row))
        return row[:length], length < len(row)

    def _text(self, row: list[int]) -> str:
        text: str = self.tokenizer.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.strip()

    @property
    def _end(self) -> int:
        return int(self.tokenizer.eos_token_id)

    @property
    def _pad(self) -> int:
        return int(self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else self._end)


class CausalGenerator(TransformersGenerator):
    """Any model that ``AutoModelForCausalLM`` loads; it reads an input, a new line, and says the output.

    See `TransformersGenerator`. Only what it says counts for the loss.
    """

    auto = transformers.AutoModelForCausalLM
    task = "CAUSAL_LM"

    def _prompt(self, source: str) -> list[int]:
        return [*self.before, *self._ids(source), *self.encode(["\n"])[0]]

    def _row(self, example: tuple[str, str]) -> Row:
        source, target = example
        prompt, said = self._prompt(source), [*self._ids(target), self._end]
        return [*prompt, *said], [*[IGNORED] * len(prompt), *said]

    def _fits(self, row: Row) -> bool:
        return len(row[0]) <= self.max_length

    def _room(self, prompt: list[int], max_new_tokens: int) -> bool:
        return len(prompt) + max_new_tokens <= self.max_length

    def _batch(self, rows: Sequence[Row]) -> dict[str, Any]:
        width = max(len(ids) for ids, _ in rows)
        ids, mask = self.padded([ids for ids, _ in rows], width)
        return {"input_ids": ids, "attention_mask": mask, "labels": _labels([said for _, said in rows], ids.device)}

    def _pads_left(self) -> bool:
        return True

    def _before_text(self, ids: Any) -> int:
        return int(ids.shape[1])


class Seq2SeqGenerator(TransformersGenerator):
    """Any model that ``AutoModelForSeq2SeqLM`` loads: T5, BART, mBART and their like. See `TransformersGenerator`."""

    auto = transformers.AutoModelForSeq2SeqLM
    task = "SEQ_2_SEQ_LM"

    def _prompt(self, source: str) -> list[int]:
        return [*self.before, *self._ids(source), *self.after]

    def _row(self, example: tuple[str, str]) -> Row:
        source, target = example
        return self._prompt(source), self._prompt(target)

    def _fits(self, row: Row) -> bool:
        return max(map(len, row)) <= self.max_length

    def _room(self, prompt: list[int], max_new_tokens: int) -> bool:
        return max(len(prompt), max_new_tokens) <= self.max_length

    def _batch(self, rows: Sequence[Row]) -> dict[str, Any]:
        width = max(len(ids) for ids, _ in rows)
        ids, mask = self.padded([ids for ids, _ in rows], width)
        return {"input_ids": ids, "attention_mask": mask, "labels": _labels([said for _, said in rows], ids.device)}

    def _begun(self, count: int) -> dict[str, Any]:
        # It has learned texts that begin with what its tokenizer puts before one (a language, for mBART).
        config = self.model.config
        start = self.model.generation_config.decoder_start_token_id
        start = getattr(config, "decoder_start_token_id", None) if start is None else start
        row = [self._end if start is None else start, *self.before]
        return {"decoder_input_ids": torch.tensor([row] * count, device=self.device)}

    def _before_text(self, ids: Any) -> int:
        del ids
        return 1 + len(self.before)


def open_generator(name: str) -> TransformersGenerator:
    """The generator of a folder or a name on the hub, of the kind that its configuration names.

    Raises:
        MissingModelError: there is no such model.
    """
    folder = find(name)
    config = load(transformers.AutoConfig, folder) if (folder / "config.json").exists() else None
    kind = Seq2SeqGenerator if getattr(config, "is_encoder_decoder", False) else CausalGenerator
    return kind(folder)


def _labels(rows: Sequence[Sequence[int]], device: Any) -> Any:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[IGNORED] * (width - len(row))] for row in rows], device=device)


def _rolled(ids: Any, mask: Any) -> tuple[Any, Any]:
    """Rows that are filled up at their ends, filled up at their beginnings."""
    for i, length in enumerate(mask.sum(1).tolist()):
        shift = mask.shape[1] - int(length)
        ids[i], mask[i] = ids[i].roll(shift), mask[i].roll(shift)
    return ids, mask


def _means(steps: Sequence[Any], rows: Sequence[tuple[list[int], bool]]) -> list[float]:
    """For each row the mean log-probability of what was drawn up to its end."""
    table = torch.stack(list(steps), dim=1).tolist()
    lengths = [len(row) + ended for row, ended in rows]
    return [math.fsum(values[:n]) / max(1, n) for values, n in zip(table, lengths, strict=True)]


def _check(decoding: Decoding, count: int, seeds: Sequence[int] | None) -> None:
    if decoding.how not in _HOW:
        raise ParameterError(f"how must be one of {', '.join(_HOW)}, not {decoding.how!r}")
    if not 1 <= decoding.texts <= decoding.num_beams:
        raise ParameterError(f"texts must be between 1 and the {decoding.num_beams} beams, not {decoding.texts!r}")
    if decoding.max_new_tokens < 1 or decoding.top_k < 1 or decoding.temperature <= 0 or decoding.diversity_penalty < 0:
        raise ParameterError(
            "max_new_tokens and top_k must be at least 1, temperature above 0, and penalty not below 0"
        )
    if decoding.how == "sample" and (seeds is None or len(seeds) != count):
        raise ParameterError(f"{0 if seeds is None else len(seeds)} seeds for {count} inputs")
