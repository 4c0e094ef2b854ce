"""Constrained decoding: markers that are followed by a word, phrases that must occur, and the tokens of a model."""

from __future__ import annotations

import abc
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from entaug.backends.config import DecodingConfig, Gap
from entaug.core.alignment import detokenize
from entaug.core.spacing import continues_word, is_unspaced_script, is_word_character

Changes = NDArray[np.float32]
"""What is added to the scores of the tokens of a vocabulary."""

_NGRAM = 4  # an n-gram of so many tokens occurs once in a text
_GAP_BEFORE_END = 10  # tokens after the last phrase before the end becomes likelier
_IMPOSSIBLE = float("-inf")
_SENTENCE_END = re.compile(r"['\"”’)\]]*[.!?…。！？؟।]+['\"”’)\]]*")  # noqa: RUF001
_OPENING = frozenset("([{\"'“‘«„")  # noqa: RUF001  (no space after them)


class TokenConstraint(transformers.LogitsProcessor, abc.ABC):
    """Changes the scores of the next tokens by the texts so far."""

    def __init__(self, num_before_text: int) -> None:
        self._num_before_text = num_before_text

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return self.constrain(input_ids[:, self._num_before_text :].tolist(), range(len(scores)), scores)

    def constrain(self, texts: Sequence[Sequence[int]], rows: Sequence[int], scores: torch.Tensor) -> torch.Tensor:
        """Change the scores of some rows."""
        # What is to change is collected for all rows first: on a GPU each change of its own would cost a copy.
        changes = np.zeros(scores.shape, np.float32)
        for own, row, ids in zip(changes, rows, texts, strict=True):
            self._change(own, row, ids)
        return scores + torch.from_numpy(changes).to(scores.device)

    @abc.abstractmethod
    def _change(self, changes: Changes, row: int, ids: Sequence[int]) -> None:
        """Fill in what is added to the scores of a row with a text."""


class MarkerConstraint(TokenConstraint):
    """Constrained decoding: markers that must each be followed by a word."""

    # A marker is followed by the beginning of a word, not by another marker or the end. A marker with predecessors is
    # only possible after exactly one word that follows one of these.

    def __init__(
        self,
        rules: Mapping[int, Collection[int] | None],
        num_before_text: int,
        word_starts: Sequence[int],
        joining: Sequence[int],
    ) -> None:
        super().__init__(num_before_text)
        self._rules = rules
        self._word_starts = word_starts
        self._joining = set(joining)

    def _change(self, changes: Changes, row: int, ids: Sequence[int]) -> None:
        possible = self.possible_markers(ids)
        if possible is None:
            changes[:] = _IMPOSSIBLE
            changes[self._word_starts] = 0
        else:
            changes[[marker for marker in self._rules if marker not in possible]] = _IMPOSSIBLE

    def possible_markers(self, ids: Sequence[int]) -> set[int] | None:
        """The markers that may follow a text."""
        last = next((i for i in range(len(ids) - 1, -1, -1) if ids[i] in self._rules), None)
        if last is not None and last == len(ids) - 1:
            return None
        is_one_word = last is not None and all(id_ in self._joining for id_ in ids[last + 2 :])
        predecessor = ids[last] if last is not None and is_one_word else None
        return {marker for marker, others in self._rules.items() if others is None or predecessor in others}


class Phrase(NamedTuple):
    """The tokens of a phrase, or of a part of a discontinuous one."""

    spaced: tuple[int, ...]
    bare: tuple[int, ...]
    capitalised: tuple[int, ...]
    is_attached: bool = False  # whether it begins with a mark that follows a word without a space
    max_gap: int = 0  # the number of words that may stand before it; 0 for any
    not_before: frozenset[int] = frozenset()  # tokens that these do not begin with

    def forms(self, position: int, *, is_open: bool) -> set[tuple[int, ...]]:
        """The forms in which it may be written."""
        if not position:
            return {self.spaced, self.bare, self.capitalised}
        return {self.spaced, self.bare} if is_open or self.is_attached else {self.spaced}


class _Progress(NamedTuple):
    """Progress of a text with its required phrases."""

    first_ids: frozenset[int]
    next_ids: frozenset[int]
    blocked_ids: frozenset[int]
    is_complete: bool
    gap: int
    limited: Phrase | None  # the part that is missing and limits what is written before it


class PhraseConstraint(TokenConstraint):
    """Constrained decoding: a text does not end before it contains all required phrases, each once."""

    # While a phrase is missing, the end of the text and the marks that end a sentence are impossible. The longer no
    # phrase was begun, the likelier the first tokens of missing ones become, and once none is missing the end. A phrase
    # that was begun is completed, and a word ends with it. Phrases come in any order, the parts of a discontinuous one
    # in theirs; with `is_first` a text begins with the first of them. Neither a phrase that is written already nor a
    # forbidden one is written: it is stopped halfway, unless a missing phrase begins like it, as otherwise it would
    # only be spelled differently later. No n-gram of four tokens is repeated. Before a part that limits it there are
    # only so many words, at least one, and other than those that are replaced.

    def __init__(
        self,
        required: Sequence[Sequence[Sequence[Phrase]]],
        num_beams: int,
        num_before_text: int,
        end_id: int,
        end_marks: Sequence[int],
        joining: Sequence[int],
        is_opening: Callable[[int], bool],
        forbidden: Sequence[Phrase] = (),
        boost: float = 0.5,
        *,
        is_first: bool = False,
        pieces: Collection[int] = (),
        marks: Sequence[int] = (),
    ) -> None:
        super().__init__(num_before_text)
        self._required = required
        self._has_gaps = any(part.max_gap for phrases in required for parts in phrases for part in parts)
        self._num_beams = num_beams
        self._end_id, self._end_mark_ids = end_id, frozenset(end_marks)
        self._continuing_ids = {*joining, *pieces}  # what goes on with a word, pieces of characters included
        # As arrays, for there are many of them.
        self._end_marks, self._joining, self._continuing, self._marks = (
            np.array([*ids], dtype=np.intp) for ids in (end_marks, joining, self._continuing_ids, marks)
        )
        self._is_opening = is_opening
        self._boost = boost
        self._is_first = is_first
        # The tokens in the middle of forbidden phrases, by what precedes them: anywhere, and where no space is needed.
        self._forbidden_middle: tuple[dict[tuple[int, ...], set[int]], ...] = ({}, {})
        for phrase in forbidden:
            for middle, ids in zip(self._forbidden_middle, (phrase.spaced, phrase.bare), strict=True):
                half = len(ids) // 2
                middle.setdefault(ids[:half], set()).add(ids[half])
        self._longest_half = max((len(half) for middle in self._forbidden_middle for half in middle), default=-1)

    def _change(self, changes: Changes, row: int, ids: Sequence[int]) -> None:
        required = self._required[row // self._num_beams]
        if self._is_first and required and not ids:
            changes[:] = _IMPOSSIBLE
            changes[required[0][0].bare[0]] = 0
            return
        state = self.progress(required, ids)
        if state.next_ids and not state.is_complete:
            changes[:] = _IMPOSSIBLE
            changes[[*state.next_ids]] = 0
            return
        if state.limited:
            self._limit_gap(changes, row, state.limited, ids[len(ids) - state.gap :])
        changes[[*(state.blocked_ids | self._blocked_anywhere(ids))]] = _IMPOSSIBLE
        if state.first_ids:
            changes[self._end_marks] = _IMPOSSIBLE
            # A phrase may begin like the end of a sentence (".NET"), or like a forbidden phrase.
            changes[[*state.first_ids]] = self._boost * state.gap if state.gap or not state.limited else _IMPOSSIBLE
        elif state.gap > _GAP_BEFORE_END:
            # What ends a sentence, and after that the end of the text.
            ends = [self._end_id] if ids and ids[-1] in self._end_mark_ids else self._end_marks
            changes[ends] += self._boost * (state.gap - _GAP_BEFORE_END)
        if state.is_complete:
            changes[self._joining] = _IMPOSSIBLE
        changes[[*state.next_ids]] = 0

    def constrain(self, texts: Sequence[Sequence[int]], rows: Sequence[int], scores: torch.Tensor) -> torch.Tensor:
        if self._has_gaps:
            self._likeliest = dict(zip(rows, scores.argmax(1).tolist(), strict=True))
        return super().constrain(texts, rows, scores)

    def _limit_gap(self, changes: Changes, row: int, part: Phrase, gap: Sequence[int]) -> None:
        if not gap:
            changes[[*part.not_before]] = _IMPOSSIBLE
            changes[self._marks] = _IMPOSSIBLE
        elif sum(id_ not in self._continuing_ids for id_ in gap) >= part.max_gap:
            changes[:] = _IMPOSSIBLE
            if self._likeliest[row] in self._continuing_ids:  # else the word is complete
                changes[self._continuing] = 0

    def _blocked_anywhere(self, ids: Sequence[int]) -> set[int]:
        """The tokens that would continue a forbidden phrase or repeat an n-gram."""
        blocked = {
            ids[i + _NGRAM - 1] for i in range(len(ids) - _NGRAM + 1) if ids[i : i + _NGRAM - 1] == ids[1 - _NGRAM :]
        }
        for length in range(min(self._longest_half, len(ids)) + 1):
            half = tuple(ids[len(ids) - length :])
            for middle, needs_space in zip(self._forbidden_middle, (True, False), strict=True):
                tokens = middle.get(half)
                if tokens and (needs_space or self._is_open(ids, len(ids) - length)):
                    blocked |= tokens
        return blocked

    def progress(self, required: Sequence[Sequence[Phrase]], ids: Sequence[int]) -> _Progress:
        """Progress of a text."""
        num_written = [0] * len(required)  # parts of each phrase
        position = gap = 0
        next_ids: frozenset[int] = frozenset()
        is_complete = False
        while position < len(ids):
            matching = [
                (number, form)
                for number, parts in enumerate(required)
                if num_written[number] < len(parts)
                for form in parts[num_written[number]].forms(position, is_open=self._is_open(ids, position))
                if form[0] == ids[position]
            ]
            # The longest part that is complete here; those that are still matching at the end of the text are begun.
            complete, length, step = -1, 0, 1
            while matching:
                ended = [number for number, form in matching if len(form) == step]
                if ended:
                    complete, length = ended[0], step
                matching = [(number, form) for number, form in matching if len(form) > step]
                if position + step == len(ids):
                    break
                matching = [(number, form) for number, form in matching if form[step] == ids[position + step]]
                step += 1
            if complete >= 0:
                num_written[complete] += 1
            is_complete = complete >= 0 and position + length == len(ids)
            if matching:
                next_ids = frozenset(form[step] for _, form in matching)
                break
            position, gap = (position + length, 0) if complete >= 0 else (position + 1, gap + 1)
        missing = [parts[count] for parts, count in zip(required, num_written, strict=True) if count < len(parts)]
        end, is_open = len(ids), self._is_open(ids, len(ids))
        return _Progress(
            frozenset(form[0] for part in missing for form in part.forms(end, is_open=is_open)),
            next_ids,
            self._blocked_parts(required, num_written, missing, ids),
            is_complete,
            gap,
            next((part for part in missing if part.max_gap), None),
        )

    def _is_open(self, ids: Sequence[int], position: int) -> bool:
        return position == 0 or self._is_opening(ids[position - 1])

    def _blocked_parts(
        self,
        required: Sequence[Sequence[Phrase]],
        num_written: Sequence[int],
        missing: Sequence[Phrase],
        ids: Sequence[int],
    ) -> frozenset[int]:
        """The tokens that continue a part that is written already, or out of turn, unless a missing one begins so."""
        blocked = set()
        for parts, count in zip(required, num_written, strict=True):
            for part in [*parts[:count], *parts[count + 1 :]]:
                for form in {part.spaced, part.bare}:
                    half = form[: len(form) // 2 + 1]
                    start = len(ids) - len(half) + 1
                    if start < 0 or tuple(ids[start:]) != half[:-1]:
                        continue
                    is_open = self._is_open(ids, start)
                    if form in part.forms(start, is_open=is_open) and not any(
                        other_form[: len(half)] == half
                        for other in missing
                        for other_form in other.forms(start, is_open=is_open)
                    ):
                        blocked.add(half[-1])
        return frozenset(blocked)


def _is_attached(text: str) -> bool:
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    if not first or is_word_character(first[0]):  # "n't", whose first letter may begin anything
        return False
    mark = first if any(map(is_word_character, first)) else first[0]  # "'s", or the first of several marks
    return not detokenize(["a", mark]).startswith("a ")


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
    def end_marks(self) -> list[int]:
        """The tokens that end a text or a sentence."""
        texts = enumerate(self.texts)
        return sorted({*self.stop_ids, *(id_ for id_, text in texts if _SENTENCE_END.fullmatch(text.strip(" ")))})

    @cached_property
    def joining(self) -> list[int]:
        """The tokens that continue a word; none of scripts without spaces."""
        return [id_ for id_, text in enumerate(self.texts) if text and continues_word(text[0])]

    @cached_property
    def pieces(self) -> list[int]:
        """The tokens that begin with a part of a character."""
        return [id_ for id_, text in enumerate(self.texts) if text.startswith("\ufffd")]

    @cached_property
    def marks(self) -> list[int]:
        """The tokens without a letter or digit, but for white space and parts of characters."""
        texts = enumerate(self.texts)
        return [
            id_
            for id_, text in texts
            if text.strip(" ") and not any(c == "\ufffd" or is_word_character(c) for c in text)
        ]

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
        attached = map(_is_attached, texts)
        return [Phrase(a, b, c, is_attached) for a, b, c, is_attached in zip(ids, ids, ids, attached, strict=True)]

    def parts(self, parts: Sequence[str | Gap]) -> list[Phrase]:
        """Tokenize the parts of a phrase, each with what is allowed between the one before it and it."""
        phrases = iter(self.phrases([part for part in parts if isinstance(part, str)]))
        limited: list[Phrase] = []
        for before, part in pairwise(["", *parts]):
            if isinstance(part, Gap):
                continue
            phrase = next(phrases)
            if isinstance(before, Gap):
                phrase = self._limited(phrase, before)
            limited.append(phrase)
        if parts and isinstance(parts[-1], Gap):
            end = (self.end_id,)
            limited.append(self._limited(Phrase(end, end, end), parts[-1]))
        return limited

    def _limited(self, phrase: Phrase, gap: Gap) -> Phrase:
        """Return a phrase with what is allowed before it."""
        words = self.phrases(gap.beginnings)
        first_ids = {word.spaced[0] for word in words} | {word.bare[0] for word in words if word.is_attached}
        # A lone space, or a part of a character, begins many other words.
        known = frozenset(id_ for id_ in first_ids if any(map(is_word_character, self.texts[id_].strip("\ufffd"))))
        return phrase._replace(max_gap=gap.max_words, not_before=known)

    def is_writable(self, phrase: Phrase) -> bool:
        """Whether the model can write a phrase."""
        is_end = phrase.spaced == (self.end_id,)
        return is_end or (bool(phrase.spaced) and {*self.suppressed_ids, *self.stop_ids}.isdisjoint(phrase.spaced))

    def constraints(
        self,
        required: Sequence[Sequence[Sequence[Phrase]]] | None,
        forbidden: Sequence[Phrase],
        config: DecodingConfig,
        num_before_text: int,
    ) -> list[TokenConstraint]:
        """Create the constraints of the texts of a batch."""
        constraints: list[TokenConstraint] = []
        if required is not None:
            # Where a new token is likely but not allowed, so are the parts of the words that its embedding began with.
            forbidden = [*forbidden, *(Phrase((id_,), (id_,), (id_,)) for id_ in self._backend.untrained_ids)]
            ends = (self.end_id, self.end_marks, self.joining, self.is_opening)
            constraint = PhraseConstraint(
                required,
                config.num_beams,
                num_before_text,
                *ends,
                forbidden,
                is_first=config.begins_with_required,
                pieces=self.pieces,
                marks=self.marks,
            )
            constraints.append(constraint)
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
        return MarkerConstraint(rules, num_before_text, word_starts, self.joining)
