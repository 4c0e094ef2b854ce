"""Generators of transformers: fine-tuned on pairs of texts, wholly or by low-rank adapters, and decoded."""

from __future__ import annotations

import abc
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from entaug.backends.config import DecodingConfig, TrainingConfig, TrainingProgress
from entaug.backends.protocols import TextPairs
from entaug.backends.transformers.base import Batcher, find_model, load_pretrained, quiet, torch, transformers
from entaug.backends.transformers.constraints import MarkerConstraint, Phrase, PhraseConstraint
from entaug.backends.transformers.decoding import DiversityPenalty, GumbelTopK
from entaug.backends.transformers.generator_languages import GeneratorLanguages
from entaug.backends.transformers.rows import mean_log_probs, with_contiguous_head
from entaug.backends.transformers.sampling import sample_texts
from entaug.backends.transformers.trainable import FineTunable
from entaug.backends.transformers.training import IGNORED, Row
from entaug.errors import ParameterError
from entaug.spacing import continues_word, is_unspaced_script

__all__ = ["CausalGenerator", "Seq2SeqGenerator", "TransformersGenerator", "load_generator"]

_SENTENCE_END = re.compile(r"['\"”’)\]]*[.!?…。！？؟।]+['\"”’)\]]*")  # noqa: RUF001
_OPENING = frozenset("([{\"'“‘«„")  # noqa: RUF001  (no space after them)
_WIDTH_STEP = 32  # widths of inputs are multiples of it


class TransformersGenerator(FineTunable[tuple[str, str, str | None]], abc.ABC):
    """Base of both kinds of `entaug.backends.protocols.Generator`.

    Args:
        name: a folder, or the name of a model on the hub.
        device: see `entaug.backends.transformers.base.choose_device`.
        precision: see `entaug.backends.transformers.base.choose_device`.
        budget: maximum number of tokens of a batch in decoding; None for a default by device.
        adapters: see `entaug.backends.transformers.trainable.FineTunable`.

    Attributes:
        languages_: the languages whose texts are marked by special tokens.

    Raises:
        MissingModelError: there is no such model.
    """

    _pads_left = False

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
            import peft  # noqa: F401  (fails here if it is missing, not after the data is prepared)
        self.languages_ = GeneratorLanguages(self)

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
        del languages
        return {}

    # -------------------------------------------------------------------------------------------------------- training

    def fit(
        self,
        pairs: TextPairs,
        config: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        *,
        new_tokens: Mapping[str, str] | None = None,
        checkpoint_dir: Path | None = None,
        progress: TrainingProgress | None = None,
        languages: Sequence[str | None] | None = None,
    ) -> Self:
        """See `entaug.backends.extended_protocols.MultilingualGenerator.fit`.

        Raises:
            EntaugError: there is not enough memory for a single pair.
        """

        def examples(epoch: int) -> list[tuple[str, str, str | None]]:
            now = pairs(epoch) if callable(pairs) else pairs
            return [(*pair, language) for pair, language in zip(now, languages or [None] * len(now), strict=True)]

        return self._fit(examples, config, new_tokens, checkpoint_dir, progress)

    def _load_model(self) -> Any:
        return with_contiguous_head(super()._load_model())

    def _finish(self, model: Any) -> Any:
        # Settings of a checkpoint (a forced end, no repeated n-gram, a minimum length) were not asked for.
        kept = {name: getattr(model.generation_config, name) for name in ("bos_token_id", "decoder_start_token_id")}
        generation_config: Any = transformers.GenerationConfig
        model.generation_config = generation_config(**kept)
        for name in ("_texts_of_ids", "_stop_ids", "_marks", "_suppressed_ids"):
            self.__dict__.pop(name, None)  # of the tokenizer without the new tokens
        return with_contiguous_head(model)

    # -------------------------------------------------------------------------------------------------------- decoding

    def generate(
        self,
        inputs: Sequence[str],
        config: DecodingConfig = DecodingConfig(),  # noqa: B008 (immutable)
        seeds: Sequence[int] | None = None,
        required: Sequence[Sequence[Sequence[str]]] | None = None,
        forbidden: Sequence[str] = (),
        *,
        languages: Sequence[str | None] | None = None,
    ) -> list[list[str]]:
        """See `entaug.backends.extended_protocols.MultilingualGenerator.generate`.

        Raises:
            EntaugError: there is not enough memory for a single input.
        """
        if config.strategy == "sample" and (seeds is None or len(seeds) != len(inputs)):
            raise ParameterError(f"{0 if seeds is None else len(seeds)} seeds for {len(inputs)} inputs")
        max_new_tokens = config.max_new_tokens
        if self.max_target_length is not None:  # a text twice as long as any training text does not end sensibly
            max_new_tokens = min(max_new_tokens, 2 * self.max_target_length + 8)
        languages = languages or [None] * len(inputs)
        prompts = [self._prompt(*pair) for pair in zip(inputs, languages, strict=True)]
        outputs: list[list[str]] = [[] for _ in prompts]
        work = [i for i, prompt in enumerate(prompts) if self._leaves_room(prompt, max_new_tokens)]
        phrases_of = [[self._phrases(parts) for parts in phrases] for phrases in required or ()]
        if required is not None:  # a phrase that cannot be written would keep a text from ending
            work = [i for i in work if all(self._is_writable(part) for parts in phrases_of[i] for part in parts)]
        forbidden_phrases = self._phrases(forbidden) if required is not None else []

        def compute(batch: list[int], width: int) -> None:
            chosen = [work[i] for i in batch]
            ids, mask = self.pad([prompts[i] for i in chosen], width, left=self._pads_left)
            batch_seeds = None if seeds is None else [seeds[i] for i in chosen]
            constraint = None
            if required is not None:
                constraint = PhraseConstraint(
                    [phrases_of[i] for i in chosen],
                    config.num_beams,
                    self._num_before_text(ids),
                    self._end_id,
                    *self._marks,
                    self._is_opening,
                    forbidden_phrases,
                )
            of_batch = [languages[i] for i in chosen]
            texts = self._decode(ids, mask, config, max_new_tokens, batch_seeds, constraint, of_batch)
            for i, own_texts in zip(chosen, texts, strict=True):
                outputs[i] = own_texts

        # A row costs as much as it has beams. Few batches are worth more than little padding, as a batch takes as many
        # steps as its longest text.
        batcher = Batcher(max(1, self.batcher.budget // config.num_beams), step=_WIDTH_STEP)
        batcher.run([len(prompts[i]) for i in work], compute)
        self.batcher.num_halvings += batcher.num_halvings
        return outputs

    def _decode(
        self,
        ids: Any,
        mask: Any,
        config: DecodingConfig,
        max_new_tokens: int,
        seeds: Sequence[int] | None,
        constraint: PhraseConstraint | None,
        languages: Sequence[str | None],
    ) -> list[list[str]]:
        num_inputs, num_beams = len(ids), config.num_beams
        is_sampled, is_diverse = config.strategy == "sample", config.strategy == "diverse_beam_search"
        # In diverse beam search the first beams to end would end it all, those that differ least from the best one.
        options: dict[str, Any] = {"early_stopping": not is_diverse}
        options |= {"num_beams": num_beams, "num_return_sequences": config.num_return_sequences}
        processors: list[Any] = [] if constraint is None else [constraint]
        if config.marker_rules:
            processors.append(self._marker_constraint(config.marker_rules, self._num_before_text(ids)))
        sampler = None
        if is_diverse:
            processors.append(DiversityPenalty(num_beams, config.diversity_penalty))
        elif is_sampled:
            ids, mask = ids.repeat_interleave(num_beams, 0), mask.repeat_interleave(num_beams, 0)
            languages = [language for language in languages for _ in range(num_beams)]
            draw_seeds = [[seed, draw] for seed in seeds or () for draw in range(num_beams)]
            sampler = GumbelTopK(draw_seeds, config.top_k, config.temperature)
            processors.append(sampler)
            options = {"num_beams": 1}
        if self._pads_left and sampler is not None and processors == [sampler] and num_beams == 1:
            never = self._suppressed_ids
            rows = sample_texts(self.model, ids, mask, sampler, max_new_tokens, frozenset(self._stop_ids), never)
            return [[self._text(row)] if ended or not config.drop_unfinished else [] for row, ended in rows]
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
                pad_token_id=self._pad_id,
                eos_token_id=self._stop_ids,
                suppress_tokens=self._suppressed_ids or None,
                logits_processor=transformers.LogitsProcessorList(processors),
                **options,
            )
        rows = [self._until_end(row) for row in out[:, self._num_before_text(ids) :].tolist()]
        per_input = len(rows) // num_inputs
        scores = [0.0] * len(rows) if sampler is None else mean_log_probs(sampler.log_probs, rows)
        texts = []
        for i in range(num_inputs):
            own = range(i * per_input, (i + 1) * per_input)
            usable = [row for row in own if rows[row][1] or not config.drop_unfinished]
            usable.sort(key=lambda row: -scores[row])
            texts.append([self._text(rows[row][0]) for row in usable[: config.num_return_sequences]])
        return texts

    def _until_end(self, row: list[int]) -> tuple[list[int], bool]:
        """The tokens of a text, and whether it has ended."""
        length = next((i for i, id_ in enumerate(row) if id_ in self._stop_ids), len(row))
        return row[:length], length < len(row)

    def _text(self, row: list[int]) -> str:
        return self._decode_ids([row])[0].strip()

    def _decode_ids(self, rows: list[list[int]]) -> list[str]:
        texts: list[str] = self.tokenizer.batch_decode(
            rows, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return texts

    # ----------------------------------------------------------------------------------------- constraints of decoding

    def _phrases(self, texts: Sequence[str]) -> list[Phrase]:
        """Strings as tokens, in the forms in which they may be written."""
        forms = [form for text in texts for form in (f" {text}", text, text[:1].upper() + text[1:])]
        ids = iter(map(tuple, map(self._ids, forms) if self.new_tokens else self.encode(forms)))
        return [Phrase(*three) for three in zip(ids, ids, ids, strict=True)]

    def _is_writable(self, phrase: Phrase) -> bool:
        return bool(phrase.spaced) and {*self._suppressed_ids, *self._stop_ids}.isdisjoint(phrase.spaced)

    @cached_property
    def _texts_of_ids(self) -> list[str]:
        """What each token adds to a text, with a space before it; nothing for special tokens."""
        context = self.encode(["a"])[0]
        skip = len(self._decode_ids([context])[0])
        return [text[skip:] for text in self._decode_ids([[*context, id_] for id_ in range(len(self.tokenizer))])]

    @cached_property
    def _stop_ids(self) -> list[int]:
        """The tokens that end a text. Training texts are single lines, so a line break is as good as the end."""
        texts = enumerate(self._texts_of_ids)
        return [self._end_id, *(id_ for id_, text in texts if "\n" in text and id_ != self._end_id)]

    @cached_property
    def _marks(self) -> tuple[Any, Any]:
        """The tokens that end a text or a sentence, and those that continue a word (none of scripts without spaces)."""
        texts = list(enumerate(self._texts_of_ids))
        ends = {*self._stop_ids, *(id_ for id_, text in texts if _SENTENCE_END.fullmatch(text.strip(" ")))}
        joining = [id_ for id_, text in texts if text and continues_word(text[0])]
        return self._tensor(sorted(ends)), self._tensor(joining)

    def _tensor(self, ids: list[int]) -> Any:
        return torch.tensor(ids, dtype=torch.long, device=self.device)

    @cached_property
    def _suppressed_ids(self) -> list[int]:
        """Tokens that are never generated: special ones, which are invisible, and those that the tokenizer lacks."""
        num_embeddings = self.model.get_input_embeddings().weight.shape[0]
        return sorted({*self.tokenizer.all_special_ids, *range(len(self.tokenizer), num_embeddings)} - {self._end_id})

    def _marker_constraint(
        self, marker_rules: Mapping[str, Collection[str] | None], num_before_text: int
    ) -> MarkerConstraint:
        id_of = {marker: int(self.tokenizer.convert_tokens_to_ids(marker)) for marker in self.new_tokens}
        rules = {
            id_of[marker]: None if others is None else {id_of[other] for other in others}
            for marker, others in marker_rules.items()
        }
        texts = enumerate(self._texts_of_ids)
        word_starts = [i for i, text in texts if text[:1] == " " and text.strip() and i not in rules]
        return MarkerConstraint(rules, num_before_text, self._tensor(word_starts), self._marks[1])

    def _is_opening(self, id_: int) -> bool:
        """Whether a word may follow a token without a space."""
        last = self._texts_of_ids[id_][-1:] if id_ < len(self._texts_of_ids) else ""
        return last in _OPENING or is_unspaced_script(last)

    @property
    def _end_id(self) -> int:
        return int(self.tokenizer.eos_token_id)

    @property
    def _pad_id(self) -> int:
        return int(self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else self._end_id)


class CausalGenerator(TransformersGenerator):
    """Any model that ``AutoModelForCausalLM`` loads: it reads an input and a line break, and continues with the output.

    The loss is that of the output only. See `TransformersGenerator`.
    """

    auto = transformers.AutoModelForCausalLM
    task = "CAUSAL_LM"
    _pads_left = True

    def _prompt(self, source: str, language: str | None = None) -> list[int]:
        del language
        return [*self.prefix_ids, *self._ids(source), *self.encode(["\n"])[0]]

    def _row(self, example: tuple[str, str, str | None]) -> Row:
        source, target, _ = example
        prompt, labels = self._prompt(source), [*self._ids(target), self._end_id]
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
        start_id = self._end_id if start_id is None else start_id
        rows = [self.languages_.beginning(language, start_id) for language in languages]
        return {"decoder_input_ids": torch.tensor(rows, device=self.device)}

    def _num_before_text(self, ids: Any) -> int:
        del ids
        return len(self.languages_.beginning(None, 0))


def load_generator(name: str) -> TransformersGenerator:
    """Load the generator of the kind that a model's configuration names.

    Args:
        name: a folder, or the name of a model on the hub.

    Returns:
        The generator, not fine-tuned.

    Raises:
        MissingModelError: there is no such model.
    """
    folder = find_model(name)
    config = load_pretrained(transformers.AutoConfig, folder) if (folder / "config.json").exists() else None
    kind = Seq2SeqGenerator if getattr(config, "is_encoder_decoder", False) else CausalGenerator
    return kind(folder)
