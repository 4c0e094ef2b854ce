"""What steers a generating model: sampling that does not depend on the rest of the batch, and diverse beam search."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from entaug.backends.transformers.base import torch, transformers

__all__ = ["BeforeWords", "DiversityPenalty", "GumbelTopK", "PhraseConstraint", "Wanted"]


_REPEATED = 4  # so many sub-words stand in a text once
_TAIL = 10  # sub-words behind the last piece before the end becomes likelier


class GumbelTopK(transformers.LogitsProcessor):
    """Leaves one token a row: drawn among the likeliest, from the row's own random stream.

    The largest of log-probabilities with independent Gumbel noise added is an exact draw from their distribution
    (Gumbel 1954; Maddison et al. 2014). So greedy decoding behind this samples, and needs no generator that rows share.

    Args:
        seeds: for each row integers that its stream comes from, not negative.
        top_k: how many tokens a draw is among.
        temperature: above 1 for more variety, below for less.
    """

    def __init__(self, seeds: Sequence[Sequence[int]], top_k: int, temperature: float) -> None:
        self._streams = [np.random.Generator(np.random.Philox(np.random.SeedSequence(list(seed)))) for seed in seeds]
        self._top_k = top_k
        self._temperature = temperature
        self.log_probs: list[torch.Tensor] = []
        """For each step the log-probability of what was drawn, one a row."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step."""
        del input_ids
        likeliest, tokens = torch.topk(scores.float() / self._temperature, min(self._top_k, scores.shape[-1]))
        noise = np.stack([stream.gumbel(size=self._top_k) for stream in self._streams]).astype(np.float32)
        noisy = likeliest + torch.from_numpy(noise[:, : likeliest.shape[-1]]).to(scores.device)
        drawn = tokens.gather(1, noisy.argmax(dim=1, keepdim=True))
        wide = scores.float()
        self.log_probs.append((wide.gather(1, drawn)[:, 0] - wide.logsumexp(1)).cpu())
        return torch.full_like(scores, float("-inf")).scatter_(1, drawn, 0.0)


class DiversityPenalty(transformers.LogitsProcessor):
    """Diverse beam search: a continuation is lowered by a penalty times its rank among those of its beam.

    "EnTDA: Entity-to-Text based Data Augmentation" (Hu et al. 2023), equations 4 and 5, after Li and Jurafsky (2016):
    what is compared at a step is the log-probability of the whole less the penalty for the last token's rank. Beam
    search sums what a processor returns, so what the last token was lowered by is given back at the next step.

    Args:
        num_beams: rows of an input.
        diversity_penalty: what a rank costs, the paper's gamma; the likeliest continuation has rank 0, so that all beams of an
            input are lowered alike where the paper would begin at 1.

    Example:
        >>> lower = DiversityPenalty(num_beams=1, diversity_penalty=10.0)
        >>> lower(torch.tensor([[5]]), torch.tensor([[-1.0, -0.5, -3.0]])).tolist()
        [[-11.0, -0.5, -23.0]]
        >>> lower(torch.tensor([[5, 0]]), torch.tensor([[-1.0, -0.5, -3.0]])).tolist()  # 0 had rank 1: 10 given back
        [[-1.0, 9.5, -13.0]]
    """

    def __init__(self, num_beams: int, diversity_penalty: float) -> None:
        self._beams = num_beams
        self._penalty = diversity_penalty
        # Beam search takes at most 4 * beams continuations of all beams together, and ranks only lower: those further
        # down in their own beam can never be among them.
        self._reach = 4 * num_beams
        self._before: torch.Tensor | None = None  # the ids of the step before
        self._tokens: torch.Tensor | None = None  # and the likeliest tokens behind them, in order

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step, with all beams of all inputs."""
        likeliest, tokens = torch.topk(scores, min(self._reach, scores.shape[1]), dim=1)
        lowered = likeliest - self._penalty * torch.arange(tokens.shape[1], device=scores.device)
        if self._before is not None and self._tokens is not None:
            # Which beam of the step before a beam goes on: they are reordered within an input.
            length = self._before.shape[1]
            groups = input_ids[:, :-1].view(-1, self._beams, 1, length)
            parents = (groups == self._before.view(-1, 1, self._beams, length)).all(-1).int().argmax(-1)
            rows = torch.arange(len(parents), device=parents.device)[:, None] * self._beams + parents
            last = (self._tokens[rows.flatten()] == input_ids[:, -1:]).int().argmax(1)
            lowered = lowered + self._penalty * last[:, None]
        self._before, self._tokens = input_ids.clone(), tokens
        return torch.full_like(scores, float("-inf")).scatter_(1, tokens, lowered)


class BeforeWords(transformers.LogitsProcessor):
    """Constrained decoding: marks that stand each before a word.

    Behind a mark stands the beginning of a word, and no other mark nor the end. A mark that goes on with others stands
    where there is one word behind one of these and no more.

    Args:
        goes_on: the sub-word of each mark, and those that it goes on with; none for a mark that may stand anywhere.
        written: sub-words of a row before the text begins.
        begins: the sub-words that begin a word.
        glues: the sub-words that make one word with what stands before them.

    Example:
        >>> rule = BeforeWords({8: None, 9: {8, 9}}, written=0, begins=torch.tensor([1, 2]), glues=torch.tensor([3]))
        >>> [rule.allowed(said) for said in ([], [8], [8, 1], [8, 1, 3], [8, 1, 2], [8, 1, 0])]
        [{8}, None, {8, 9}, {8, 9}, {8}, {8}]
    """

    def __init__(
        self,
        goes_on: Mapping[int, Collection[int] | None],
        written: int,
        begins: torch.Tensor,
        glues: torch.Tensor,
    ) -> None:
        self._goes_on = goes_on
        self._written = written
        self._marks = torch.tensor(list(goes_on), device=begins.device)
        self._begins = begins
        self._glues = set(glues.tolist())

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step, with all beams of all inputs."""
        lowered = torch.full_like(scores, float("-inf"))
        for row, said in enumerate(input_ids[:, self._written :].tolist()):
            allowed = self.allowed(said)
            if allowed is None:
                lowered[row, self._begins] = scores[row, self._begins]
                continue
            lowered[row] = scores[row]
            lowered[row, self._marks] = float("-inf")
            some = list(allowed)
            lowered[row, some] = scores[row, some]
        return lowered

    def allowed(self, said: Sequence[int]) -> set[int] | None:
        """The marks that may stand behind a text; none where a word must."""
        last = next((i for i in range(len(said) - 1, -1, -1) if said[i] in self._goes_on), None)
        if last is not None and last == len(said) - 1:
            return None
        one_word = last is not None and all(id_ in self._glues for id_ in said[last + 2 :])
        before = said[last] if last is not None and one_word else None
        return {mark for mark, others in self._goes_on.items() if others is None or before in others}


class Wanted(NamedTuple):
    """A piece of text that must be written.

    Args:
        spaced: its sub-words where a space stands before it.
        bare: its sub-words where nothing does: at the beginning, and after an opening bracket or the like.
        capital: its sub-words at the beginning of the text, with a capital.
    """

    spaced: tuple[int, ...]
    bare: tuple[int, ...]
    capital: tuple[int, ...]

    def forms(self, place: int, *, is_open: bool) -> set[tuple[int, ...]]:
        """How it may be written at a place of a text."""
        if not place:
            return {self.spaced, self.bare, self.capital}
        return {self.spaced, self.bare} if is_open else {self.spaced}


class State(NamedTuple):
    """How far a text has come with what is wanted of it.

    Args:
        firsts: sub-words that pieces still missing begin with.
        next: sub-words one of which goes on with the piece that was begun; empty where none was.
        barred: sub-words that go on with a part that was written, or comes later.
        is_whole: whether the text ends with a piece that is whole; a longer one may begin with it.
        gap: sub-words since the last piece.
    """

    firsts: frozenset[int]
    next: frozenset[int]
    barred: frozenset[int]
    is_whole: bool
    gap: int


class PhraseConstraint(transformers.LogitsProcessor):
    """Constrained decoding: a text does not end before all that is wanted of it stands in it, each piece once.

    While a piece is missing, the end of the text and the marks that end a sentence are impossible; the longer nothing
    was brought in, the likelier the beginnings of missing pieces become, and once none is missing the end. A piece that
    was begun is written to its end, and a word ends with it. Pieces come in any order, the parts of a discontinuous one
    in theirs. Neither one that was written nor what is unwanted is written: it is left half-way, where no missing piece
    begins so, as it would only be spelled otherwise later; nor are any four sub-words that stand there already.

    Args:
        wanted: for each input what is wanted of it: pieces, each of one or more parts in order.
        num_beams: rows of an input.
        written: sub-words of a row before the text begins.
        end: what ends a text.
        ends: sub-words that end a text or a sentence.
        glues: sub-words that make one word with what stands before them.
        is_open: whether a piece can stand right behind a sub-word without a space.
        unwanted: what is not to be written.
        eager: by how much the log-probability of a beginning rises with each sub-word without a piece; that of an end
            does so from the tenth on.
    """

    def __init__(
        self,
        wanted: Sequence[Sequence[Sequence[Wanted]]],
        num_beams: int,
        written: int,
        end: int,
        ends: torch.Tensor,
        glues: torch.Tensor,
        is_open: Callable[[int], bool],
        unwanted: Sequence[Wanted] = (),
        eager: float = 0.5,
    ) -> None:
        self._wanted = wanted
        self._beams = num_beams
        self._written = written
        self._end, self._ends = torch.tensor([end], device=ends.device), ends
        self._ending = set(ends.tolist())
        self._glues = glues
        self._is_open = is_open
        self._eager = eager
        # What would complete something unwanted, by what stands before: anywhere, and where no space is needed.
        self._completes: tuple[dict[tuple[int, ...], set[int]], ...] = ({}, {})
        for piece in unwanted:
            for known, ids in zip(self._completes, (piece.spaced, piece.bare), strict=True):
                half = len(ids) // 2
                known.setdefault(ids[:half], set()).add(ids[half])
        self._reach = max((len(before) for known in self._completes for before in known), default=-1)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step, with all beams of all inputs."""
        scores = scores.clone()
        for row, said in enumerate(input_ids[:, self._written :].tolist()):
            state = self.state(self._wanted[row // self._beams], said)
            following, firsts = list(state.next), list(state.firsts)
            goes_on = scores[row, following].clone()
            begins = scores[row, firsts] + self._eager * state.gap
            if following and not state.is_whole:
                scores[row] = float("-inf")
            else:
                scores[row, list(state.barred | self._completing(said))] = float("-inf")
                if firsts:
                    scores[row, self._ends] = float("-inf")
                else:
                    # What ends a sentence, and behind that the end of the text.
                    ends = self._end if said and said[-1] in self._ending else self._ends
                    scores[row, ends] += self._eager * max(0, state.gap - _TAIL)
                # A piece may begin like the end of a sentence (".NET"), or with what is unwanted by itself.
                scores[row, firsts] = begins
                if state.is_whole:
                    scores[row, self._glues] = float("-inf")
            scores[row, following] = goes_on
        return scores

    def _completing(self, said: Sequence[int]) -> set[int]:
        """What would go on with something unwanted, or repeat what was said."""
        found = {
            said[i + _REPEATED - 1]
            for i in range(len(said) - _REPEATED + 1)
            if said[i : i + _REPEATED - 1] == said[1 - _REPEATED :]
        }
        for length in range(min(self._reach, len(said)) + 1):
            before = tuple(said[len(said) - length :])
            for known, anywhere in zip(self._completes, (True, False), strict=True):
                lasts = known.get(before)
                if lasts and (anywhere or self._opens(said, len(said) - length)):
                    found |= lasts
        return found

    def state(self, wanted: Sequence[Sequence[Wanted]], said: Sequence[int]) -> State:
        """How far a text has come."""
        done = [0] * len(wanted)
        place = gap = 0
        following: frozenset[int] = frozenset()
        is_whole = False
        while place < len(said):
            live = [
                (piece, ids)
                for piece, parts in enumerate(wanted)
                if done[piece] < len(parts)
                for ids in parts[done[piece]].forms(place, is_open=self._opens(said, place))
                if ids[0] == said[place]
            ]
            whole, length, step = -1, 0, 1
            while live:
                ended = [piece for piece, ids in live if len(ids) == step]
                if ended:
                    whole, length = ended[0], step
                live = [(piece, ids) for piece, ids in live if len(ids) > step]
                if place + step == len(said):
                    break
                live = [(piece, ids) for piece, ids in live if ids[step] == said[place + step]]
                step += 1
            if whole >= 0:
                done[whole] += 1
            is_whole = whole >= 0 and place + length == len(said)
            if live:  # the text stops within a piece
                following = frozenset(ids[step] for _, ids in live)
                break
            place, gap = (place + length, 0) if whole >= 0 else (place + 1, gap + 1)
        missing = [parts[count] for parts, count in zip(wanted, done, strict=True) if count < len(parts)]
        here, is_open = len(said), self._opens(said, len(said))
        return State(
            frozenset(ids[0] for part in missing for ids in part.forms(here, is_open=is_open)),
            following,
            self._barred(wanted, done, missing, said),
            is_whole,
            gap,
        )

    def _opens(self, said: Sequence[int], place: int) -> bool:
        return place == 0 or self._is_open(said[place - 1])

    def _barred(
        self, wanted: Sequence[Sequence[Wanted]], done: Sequence[int], missing: Sequence[Wanted], said: Sequence[int]
    ) -> frozenset[int]:
        """What goes on with a part that is written already, or whose turn it is not, unless a missing one begins so."""
        found = set()
        for parts, count in zip(wanted, done, strict=True):
            for part in [*parts[:count], *parts[count + 1 :]]:
                for whole in {part.spaced, part.bare}:
                    ids = whole[: len(whole) // 2 + 1]
                    start = len(said) - len(ids) + 1
                    if start < 0 or tuple(said[start:]) != ids[:-1]:
                        continue
                    is_open = self._opens(said, start)
                    if whole in part.forms(start, is_open=is_open) and not any(
                        form[: len(ids)] == ids for other in missing for form in other.forms(start, is_open=is_open)
                    ):
                        found.add(ids[-1])
        return frozenset(found)
