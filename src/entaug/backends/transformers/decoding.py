"""Logits processors: sampling that is independent of the rest of the batch, diverse beam search and constraints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from entaug.backends.transformers.base import torch, transformers

__all__ = ["DiversityPenalty", "GumbelTopK", "MarkerConstraint", "Phrase", "PhraseConstraint"]

_NGRAM = 4  # an n-gram of so many tokens occurs once in a text
_GAP_BEFORE_END = 10  # tokens after the last phrase before the end becomes likelier
_IMPOSSIBLE = float("-inf")


class GumbelTopK(transformers.LogitsProcessor):
    """Leaves one token a row: drawn from the likeliest ones by the row's own random stream.

    The largest of log-probabilities with independent Gumbel noise added is an exact draw from their distribution
    (Gumbel 1954; Maddison et al. 2014). So greedy decoding after this processor samples, without a random generator
    that rows share.

    Args:
        seeds: for each row non-negative integers that determine its stream.
        top_k: the number of likeliest tokens that are drawn from.
        temperature: above 1 for more variety, below for less.

    Attributes:
        log_probs: for each step the log-probability of the drawn tokens, of shape (rows,).
    """

    def __init__(self, seeds: Sequence[Sequence[int]], top_k: int, temperature: float) -> None:
        self._streams = [np.random.Generator(np.random.Philox(np.random.SeedSequence(list(seed)))) for seed in seeds]
        self._top_k = top_k
        self._temperature = temperature
        self.log_probs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step."""
        del input_ids
        drawn = self.draw(scores, range(len(scores)))[:, None]
        wide = scores.float()
        self.log_probs.append((wide.gather(1, drawn)[:, 0] - wide.logsumexp(1)).cpu())
        return torch.full_like(scores, _IMPOSSIBLE).scatter_(1, drawn, 0.0)

    def draw(self, scores: torch.Tensor, rows: Sequence[int]) -> torch.Tensor:
        """Draw a token for some rows.

        Args:
            scores: their logits, of shape (rows, vocabulary).
            rows: the numbers of their streams.

        Returns:
            The tokens, of shape (rows,).
        """
        likeliest, tokens = torch.topk(scores.float() / self._temperature, min(self._top_k, scores.shape[-1]))
        noise = np.stack([self._streams[row].gumbel(size=self._top_k) for row in rows]).astype(np.float32)
        noisy = likeliest + torch.from_numpy(noise[:, : likeliest.shape[-1]]).to(scores.device)
        return tokens.gather(1, noisy.argmax(dim=1, keepdim=True))[:, 0]


class DiversityPenalty(transformers.LogitsProcessor):
    """Diverse beam search: a continuation is penalised by its rank among those of its beam.

    "EnTDA: Entity-to-Text based Data Augmentation" (Hu et al. 2023), equations 4 and 5, after Li and Jurafsky (2016):
    beams are compared by their log-probability minus the penalty for the rank of the last token. Beam search adds up
    what a processor returns, so the penalty of the last token is given back at the next step.

    Args:
        num_beams: rows of an input.
        diversity_penalty: the penalty for each rank, the paper's gamma; the likeliest continuation has rank 0, which
            changes all beams of an input alike where the paper begins at 1.

    Example:
        >>> processor = DiversityPenalty(num_beams=1, diversity_penalty=10.0)
        >>> processor(torch.tensor([[5]]), torch.tensor([[-1.0, -0.5, -3.0]])).tolist()
        [[-11.0, -0.5, -23.0]]
        >>> processor(torch.tensor([[5, 0]]), torch.tensor([[-1.0, -0.5, -3.0]])).tolist()  # 0 had rank 1
        [[-1.0, 9.5, -13.0]]
    """

    def __init__(self, num_beams: int, diversity_penalty: float) -> None:
        self._num_beams = num_beams
        self._penalty = diversity_penalty
        # Beam search takes at most 4 * num_beams continuations of all beams, and the penalty only lowers scores: a
        # continuation further down in its own beam can never be among them.
        self._num_ranked = 4 * num_beams
        self._previous_ids: torch.Tensor | None = None
        self._previous_tokens: torch.Tensor | None = None  # the likeliest continuations of these, in order

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step, with all beams of all inputs."""
        likeliest, tokens = torch.topk(scores, min(self._num_ranked, scores.shape[1]), dim=1)
        penalised = likeliest - self._penalty * torch.arange(tokens.shape[1], device=scores.device)
        if self._previous_ids is not None and self._previous_tokens is not None:
            # Beams are reordered within an input: find the beam of the previous step that each one continues.
            length = self._previous_ids.shape[1]
            groups = input_ids[:, :-1].view(-1, self._num_beams, 1, length)
            parents = (groups == self._previous_ids.view(-1, 1, self._num_beams, length)).all(-1).int().argmax(-1)
            rows = torch.arange(len(parents), device=parents.device)[:, None] * self._num_beams + parents
            last_rank = (self._previous_tokens[rows.flatten()] == input_ids[:, -1:]).int().argmax(1)
            penalised = penalised + self._penalty * last_rank[:, None]
        self._previous_ids, self._previous_tokens = input_ids.clone(), tokens
        return torch.full_like(scores, _IMPOSSIBLE).scatter_(1, tokens, penalised)


class MarkerConstraint(transformers.LogitsProcessor):
    """Constrained decoding: markers that must each be followed by a word.

    A marker is followed by the beginning of a word, not by another marker or the end. A marker with predecessors is
    only possible after exactly one word that follows one of these.

    Args:
        rules: the token of each marker, with its predecessors; None for a marker that may occur anywhere.
        num_before_text: the number of tokens of a row before the generated text.
        word_starts: the tokens that begin a word, of shape (tokens,).
        joining: the tokens that continue a word, of shape (tokens,).

    Example:
        >>> rules = {8: None, 9: {8, 9}}
        >>> constraint = MarkerConstraint(rules, 0, word_starts=torch.tensor([1, 2]), joining=torch.tensor([3]))
        >>> [constraint.possible_markers(ids) for ids in ([], [8], [8, 1], [8, 1, 3], [8, 1, 2], [8, 1, 0])]
        [{8}, None, {8, 9}, {8, 9}, {8}, {8}]
    """

    def __init__(
        self,
        rules: Mapping[int, Collection[int] | None],
        num_before_text: int,
        word_starts: torch.Tensor,
        joining: torch.Tensor,
    ) -> None:
        self._rules = rules
        self._num_before_text = num_before_text
        self._markers = torch.tensor(list(rules), device=word_starts.device)
        self._word_starts = word_starts
        self._joining = set(joining.tolist())

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step, with all beams of all inputs."""
        constrained = torch.full_like(scores, _IMPOSSIBLE)
        for row, ids in enumerate(input_ids[:, self._num_before_text :].tolist()):
            possible = self.possible_markers(ids)
            if possible is None:
                constrained[row, self._word_starts] = scores[row, self._word_starts]
                continue
            constrained[row] = scores[row]
            constrained[row, self._markers] = _IMPOSSIBLE
            markers = list(possible)
            constrained[row, markers] = scores[row, markers]
        return constrained

    def possible_markers(self, ids: Sequence[int]) -> set[int] | None:
        """The markers that may follow a text.

        Args:
            ids: the tokens of the text.

        Returns:
            The markers; None if a word must follow.
        """
        last = next((i for i in range(len(ids) - 1, -1, -1) if ids[i] in self._rules), None)
        if last is not None and last == len(ids) - 1:
            return None
        is_one_word = last is not None and all(id_ in self._joining for id_ in ids[last + 2 :])
        predecessor = ids[last] if last is not None and is_one_word else None
        return {marker for marker, others in self._rules.items() if others is None or predecessor in others}


class Phrase(NamedTuple):
    """The tokens of a phrase, or of a part of a discontinuous one.

    Args:
        spaced: its tokens after a space.
        bare: its tokens without a space before: at the beginning, and after an opening bracket and the like.
        capitalised: its tokens at the beginning of the text, with a capital.
    """

    spaced: tuple[int, ...]
    bare: tuple[int, ...]
    capitalised: tuple[int, ...]

    def forms(self, position: int, *, is_open: bool) -> set[tuple[int, ...]]:
        """The forms in which it may be written.

        Args:
            position: the position in the text.
            is_open: whether a word may stand there without a space.

        Returns:
            The tokens of each form.
        """
        if not position:
            return {self.spaced, self.bare, self.capitalised}
        return {self.spaced, self.bare} if is_open else {self.spaced}


class _Progress(NamedTuple):
    """How far a text has come with its required phrases.

    Args:
        first_ids: the first tokens of missing phrases.
        next_ids: the tokens one of which continues the phrase that was begun; empty if none was.
        blocked_ids: the tokens that would continue a part that is written already, or whose turn has not come.
        is_complete: whether the text ends with a complete phrase; a longer one may begin with it.
        gap: the number of tokens since the last phrase.
    """

    first_ids: frozenset[int]
    next_ids: frozenset[int]
    blocked_ids: frozenset[int]
    is_complete: bool
    gap: int


class PhraseConstraint(transformers.LogitsProcessor):
    """Constrained decoding: a text does not end before it contains all required phrases, each once.

    While a phrase is missing, the end of the text and the marks that end a sentence are impossible. The longer no
    phrase
    was begun, the likelier the first tokens of missing ones become, and once none is missing the end. A phrase that was
    begun is completed, and a word ends with it. Phrases come in any order, the parts of a discontinuous one in theirs.
    Neither a phrase that is written already nor a forbidden one is written: it is stopped halfway, unless a missing
    phrase begins like it, as otherwise it would only be spelled differently later. No n-gram of four tokens is
    repeated.

    Args:
        required: for each input its phrases, each of one or more parts in order.
        num_beams: rows of an input.
        num_before_text: the number of tokens of a row before the generated text.
        end_id: the token that ends a text.
        end_marks: the tokens that end a text or a sentence, of shape (tokens,).
        joining: the tokens that continue a word, of shape (tokens,).
        is_opening: whether a phrase can follow a token without a space.
        forbidden: phrases that are not to be written.
        boost: the increase of the log-probability of first tokens with each token without a phrase; that of the end
            increases from the tenth on.
    """

    def __init__(
        self,
        required: Sequence[Sequence[Sequence[Phrase]]],
        num_beams: int,
        num_before_text: int,
        end_id: int,
        end_marks: torch.Tensor,
        joining: torch.Tensor,
        is_opening: Callable[[int], bool],
        forbidden: Sequence[Phrase] = (),
        boost: float = 0.5,
    ) -> None:
        self._required = required
        self._num_beams = num_beams
        self._num_before_text = num_before_text
        self._end, self._end_marks = torch.tensor([end_id], device=end_marks.device), end_marks
        self._end_mark_ids = set(end_marks.tolist())
        self._joining = joining
        self._is_opening = is_opening
        self._boost = boost
        # The tokens in the middle of forbidden phrases, by what precedes them: anywhere, and where no space is needed.
        self._forbidden_middle: tuple[dict[tuple[int, ...], set[int]], ...] = ({}, {})
        for phrase in forbidden:
            for middle, ids in zip(self._forbidden_middle, (phrase.spaced, phrase.bare), strict=True):
                half = len(ids) // 2
                middle.setdefault(ids[:half], set()).add(ids[half])
        self._longest_half = max((len(half) for middle in self._forbidden_middle for half in middle), default=-1)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step, with all beams of all inputs."""
        scores = scores.clone()
        for row, ids in enumerate(input_ids[:, self._num_before_text :].tolist()):
            state = self.progress(self._required[row // self._num_beams], ids)
            next_ids, first_ids = list(state.next_ids), list(state.first_ids)
            next_scores = scores[row, next_ids].clone()
            first_scores = scores[row, first_ids] + self._boost * state.gap
            if next_ids and not state.is_complete:
                scores[row] = _IMPOSSIBLE
            else:
                scores[row, list(state.blocked_ids | self._blocked_anywhere(ids))] = _IMPOSSIBLE
                if first_ids:
                    scores[row, self._end_marks] = _IMPOSSIBLE
                else:
                    # What ends a sentence, and after that the end of the text.
                    ends = self._end if ids and ids[-1] in self._end_mark_ids else self._end_marks
                    scores[row, ends] += self._boost * max(0, state.gap - _GAP_BEFORE_END)
                # A phrase may begin like the end of a sentence (".NET"), or like a forbidden phrase.
                scores[row, first_ids] = first_scores
                if state.is_complete:
                    scores[row, self._joining] = _IMPOSSIBLE
            scores[row, next_ids] = next_scores
        return scores

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
        """How far a text has come.

        Args:
            required: the required phrases.
            ids: the tokens of the text.

        Returns:
            What is missing, and which tokens may or must not follow.
        """
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
