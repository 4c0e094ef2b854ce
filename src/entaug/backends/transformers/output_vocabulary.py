"""The tokens of a generator as decoding sees them: what each adds to a text, and which ones end it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from entaug.backends.config import DecodingConfig
from entaug.backends.transformers.base import torch
from entaug.backends.transformers.constraints import MarkerConstraint, Phrase, PhraseConstraint
from entaug.core.spacing import continues_word, is_unspaced_script

__all__ = ["OutputVocabulary"]

_SENTENCE_END = re.compile(r"['\"”’)\]]*[.!?…。！？؟।]+['\"”’)\]]*")  # noqa: RUF001
_OPENING = frozenset("([{\"'“‘«„")  # noqa: RUF001  (no space after them)


class OutputVocabulary:
    """The tokens of a generator."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._tokenizer = backend.tokenizer
        self.end_id = int(self._tokenizer.eos_token_id)
        self.pad_id = int(self._tokenizer.pad_token_id if self._tokenizer.pad_token_id is not None else self.end_id)

    @cached_property
    def texts(self) -> list[str]:
        """The characters that each token adds to a text, a leading space included; empty for special tokens."""
        context = self._backend.encode(["a"])[0]
        skip = len(self.decode([context])[0])
        return [text[skip:] for text in self.decode([[*context, id_] for id_ in range(len(self._tokenizer))])]

    @cached_property
    def stop_ids(self) -> list[int]:
        """The tokens that end a text. Training texts are single lines, so a line break is as good as the end."""
        return [self.end_id, *(id_ for id_, text in enumerate(self.texts) if "\n" in text and id_ != self.end_id)]

    @cached_property
    def suppressed_ids(self) -> list[int]:
        """Tokens that are never generated: special ones, which are invisible, and those that the tokenizer lacks."""
        num_embeddings = self._backend.model.get_input_embeddings().weight.shape[0]
        return sorted({*self._tokenizer.all_special_ids, *range(len(self._tokenizer), num_embeddings)} - {self.end_id})

    @cached_property
    def end_marks(self) -> Any:
        """The tokens that end a text or a sentence, of shape (tokens,)."""
        texts = enumerate(self.texts)
        ends = {*self.stop_ids, *(id_ for id_, text in texts if _SENTENCE_END.fullmatch(text.strip(" ")))}
        return self._tensor(sorted(ends))

    @cached_property
    def joining(self) -> Any:
        """The tokens that continue a word, of shape (tokens,); none of scripts without spaces."""
        return self._tensor([id_ for id_, text in enumerate(self.texts) if text and continues_word(text[0])])

    def _tensor(self, ids: list[int]) -> Any:
        return torch.tensor(ids, dtype=torch.long, device=self._backend.device)

    def is_opening(self, id_: int) -> bool:
        """Whether a word may follow a token without a space."""
        last = self.texts[id_][-1:] if id_ < len(self.texts) else ""
        return last in _OPENING or is_unspaced_script(last)

    def decode(self, rows: list[list[int]]) -> list[str]:
        """Decode texts."""
        texts: list[str] = self._tokenizer.batch_decode(
            rows, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return texts

    def until_end(self, row: list[int]) -> tuple[list[int], bool]:
        """Remove the end of a text and what follows."""
        length = next((i for i, id_ in enumerate(row) if id_ in self.stop_ids), len(row))
        return row[:length], length < len(row)

    # --------------------------------------------------------------------------------------------------- constraints

    def phrases(self, texts: Sequence[str]) -> list[Phrase]:
        """Tokenize phrases in the forms in which they may be written."""
        backend = self._backend
        forms = [form for text in texts for form in (f" {text}", text, text[:1].upper() + text[1:])]
        ids = iter(map(tuple, map(backend._ids, forms) if backend.new_tokens else backend.encode(forms)))  # noqa: SLF001
        return [Phrase(*three) for three in zip(ids, ids, ids, strict=True)]

    def is_writable(self, phrase: Phrase) -> bool:
        """Whether the model can write a phrase."""
        return bool(phrase.spaced) and {*self.suppressed_ids, *self.stop_ids}.isdisjoint(phrase.spaced)

    def constraints(
        self,
        required: Sequence[Sequence[Sequence[Phrase]]] | None,
        forbidden: Sequence[Phrase],
        config: DecodingConfig,
        num_before_text: int,
    ) -> list[PhraseConstraint | MarkerConstraint]:
        """Create the constraints of the texts of a batch."""
        constraints: list[PhraseConstraint | MarkerConstraint] = []
        if required is not None:
            ends = (self.end_id, self.end_marks, self.joining, self.is_opening)
            constraints.append(PhraseConstraint(required, config.num_beams, num_before_text, *ends, forbidden))
        if config.marker_rules:
            constraints.append(self._marker_constraint(config.marker_rules, num_before_text))
        return constraints

    def _marker_constraint(
        self, marker_rules: Mapping[str, Collection[str] | None], num_before_text: int
    ) -> MarkerConstraint:
        id_of = {marker: int(self._tokenizer.convert_tokens_to_ids(marker)) for marker in self._backend.new_tokens}
        rules = {
            id_of[marker]: None if others is None else {id_of[other] for other in others}
            for marker, others in marker_rules.items()
        }
        texts = enumerate(self.texts)
        word_starts = [i for i, text in texts if text[:1] == " " and text.strip() and i not in rules]
        return MarkerConstraint(rules, num_before_text, self._tensor(word_starts), self.joining)
