"""Labels of several sources joined to probabilities of tags: a hidden Markov model with a confusion of each source.

The hidden tags are those of IOB2. What a source says of a word depends on the true tag and on what the source said of
the word before, so that an error in a long mention counts once and not once a word. Tables are estimated by expectation
maximisation (Dawid and Skene 1979; Nguyen et al. 2017 for sequences), with the tags of gold sentences fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entaug.backends.soft_labels import TagProbabilities, tags_of
from entaug.core.data import Sentence
from entaug.core.mentions import Mention

_ROUNDS = 20
# The weight of a sentence of the text, and that of all of it in gold sentences where a source misleads estimates: one
# that gives a label too often makes it frequent, and so seems right.
_TEXT, _LITTLE_TEXT = 0.3, 0.2
_FOLDS = 2
_FEWEST_GOLD = 20  # sentences by which the weight is chosen
_CONVERGED = 1e-4  # change of the mean log-likelihood of a sentence
_BLOCK = 256  # sentences of similar length that are computed at once
_ABSENT = -1  # the symbol of a source that says nothing of a sentence

# States: outside, right behind a mention, right before one, then B and I of each label. The second and the third one
# tell a mention that is too long from a mention where there is none: without the third, the longest one would win.
_OUTSIDE, _BEHIND, _BEFORE, _FIRST = range(4)
# Kinds of states, contexts (what the source said of the word before: outside, inside of the same label, inside of
# another one) and outcomes.
_IN_O, _IN_BEHIND, _IN_BEFORE, _IN_B, _IN_I = range(5)
_OUT, _SAME, _OTHER = range(3)
_SAYS_O, _GOES_ON, _BEGINS = range(3)
# What is assumed of a source before anything is seen: it is mostly right.
_PRIOR = np.array(
    [
        [[0.98, 0.0, 0.02], [0.3, 0.6, 0.1], [0.3, 0.6, 0.1]],  # outside
        [[0.98, 0.0, 0.02], [0.9, 0.08, 0.02], [0.9, 0.08, 0.02]],  # right behind a mention
        [[0.92, 0.0, 0.08], [0.7, 0.2, 0.1], [0.7, 0.2, 0.1]],  # right before one
        [[0.3, 0.0, 0.7], [0.2, 0.1, 0.7], [0.2, 0.2, 0.6]],  # at the beginning of a mention
        [[0.8, 0.0, 0.2], [0.08, 0.9, 0.02], [0.15, 0.75, 0.1]],  # inside of one
    ]
)
_RIGHT_LABEL = 0.85
# Strengths of what is assumed, in words or mentions that were seen: that a source is mostly right; what holds for all
# labels, for a single one; the mean confusion of labels, for a single one; the transitions between states; that two
# sources err independently.
_GENERAL, _BY_LABEL, _LABEL, _TRANSITION, _SHARED = 2.0, 10.0, 10.0, 1.0, 10.0
_ADJACENT = 0.01  # share of words in mentions behind which another mention begins at once, before gold is seen


@dataclass
class SourceTable:
    """The errors of a source, as probabilities."""

    outcomes: NDArray[np.float64]  # (5 kinds of states, labels, 3 contexts, 3 outcomes)
    labels: NDArray[np.float64]  # of a mention that the source begins (true label, given label)
    spurious: NDArray[np.float64]  # of one where there is none (given label)


@dataclass
class _Alphabet:
    """The symbols of a source: its label of the word before (or none), and what it says of a word."""

    num_labels: int
    previous: NDArray[np.int64] = field(init=False)
    outcome: NDArray[np.int64] = field(init=False)
    begun: NDArray[np.int64] = field(init=False)
    context: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        size = self.num_labels
        symbols = np.arange((size + 1) * (size + 2))
        self.previous, said = symbols // (size + 2) - 1, symbols % (size + 2)
        self.outcome = np.minimum(said, _BEGINS)
        self.begun = np.maximum(said - _BEGINS, 0)
        # The context of a symbol for each label of a mention.
        same = self.previous[:, None] == np.arange(size)
        self.context = np.where(self.previous[:, None] < 0, _OUT, np.where(same, _SAME, _OTHER))

    def encode(self, mentions: Sequence[Mention], labels: Sequence[str], length: int) -> NDArray[np.int64]:
        """The symbols of flat mentions."""
        inside = np.full(length + 1, -1)  # the label of the word before each word
        said = np.zeros(length, np.int64)
        for mention in mentions:
            number = labels.index(mention.label)
            inside[mention.start + 1 : mention.end + 1] = number
            said[mention.start] = _BEGINS + number
            said[mention.start + 1 : mention.end] = _GOES_ON
        return (inside[:-1] + 1) * (self.num_labels + 2) + said


class Joiner:
    """Estimates how sources err, and joins their labels."""

    # `text`: the weight of a sentence without gold labels in the estimates; None to choose it on gold sentences.
    # `tables_`: how each source errs; `weights_`: how much each source counts; `text_`: the weight of the text.

    def __init__(self, labels: Sequence[str], text: float | None = None, rounds: int = _ROUNDS) -> None:
        self.labels = list(labels)
        self.text, self.rounds = text, rounds
        self.tables_: list[SourceTable] = []
        self.weights_, self.text_ = np.ones(0), 0.0
        self._alphabet = _Alphabet(len(self.labels))
        self._num_states = _FIRST + 2 * len(self.labels)
        self._kinds = np.array([_IN_O, _IN_BEHIND, _IN_BEFORE] + [_IN_B, _IN_I] * len(self.labels))
        self._of_label = np.array([0] * _FIRST + [k for k in range(len(self.labels)) for _ in range(2)])

    # ------------------------------------------------------------------------------------------------------ for users

    def join(
        self,
        said: Sequence[Sequence[Sequence[Mention] | None]],
        lengths: Sequence[int],
        gold: Sequence[Sequence[Mention] | None],
    ) -> list[TagProbabilities]:
        """Estimate the tables, and compute the probabilities of the tags of all sentences."""
        # `said` has the flat mentions of each source in each sentence, or None where it says nothing; `gold` those that
        # are known to be right, or None.
        self.text_ = self._choose_text_weight(said, lengths, gold) if self.text is None else self.text
        symbols = [
            [
                np.full(length, _ABSENT) if one is None else self._alphabet.encode(one, self.labels, length)
                for one, length in zip(of_source, lengths, strict=True)
            ]
            for of_source in said
        ]
        states = [None if one is None else self._states(one, n) for one, n in zip(gold, lengths, strict=True)]
        blocks = self._blocks(symbols, lengths, states)
        self._adjacent = self._share_of_adjacent(states)
        self.weights_ = self._weights(said, gold, lengths)
        self._start(len(said))
        before = -np.inf
        for _ in range(self.rounds):
            counts = self._expect(blocks)
            self._maximise(counts)
            if abs(counts.likelihood - before) < _CONVERGED * max(1, len(lengths)):
                break
            before = counts.likelihood
        self._expect(blocks)
        tags = tags_of(self.labels)
        results: list[TagProbabilities | None] = [None] * len(lengths)
        for block in blocks:
            for row, place in enumerate(block.places):
                rows = block.posterior[row, : lengths[place]]
                merged = np.concatenate([rows[:, :_FIRST].sum(1, keepdims=True), rows[:, _FIRST:]], 1)
                results[place] = TagProbabilities(tags, merged)
        return [one for one in results if one is not None]

    def _weights(
        self,
        said: Sequence[Sequence[Sequence[Mention] | None]],
        gold: Sequence[Sequence[Mention] | None],
        lengths: Sequence[int],
    ) -> NDArray[np.float64]:
        """The weight of each source: less if others err at the same words of gold sentences."""
        known = [i for i, one in enumerate(gold) if one is not None]
        truth = [np.maximum(self._states(gold[i] or (), lengths[i]), _BEFORE) for i in known]
        right = np.concatenate([*truth, np.zeros(0, np.int64)])
        kinds = self._kinds[right]
        errors, is_said = np.zeros((len(said), len(right))), np.zeros((len(said), len(right)), bool)
        for source, of_source in enumerate(said):
            begin = 0
            for i, own in zip(known, truth, strict=True):
                place = slice(begin, begin + len(own))
                begin += len(own)
                if (one := of_source[i]) is not None:
                    is_said[source, place] = True
                    errors[source, place] = np.maximum(self._states(one, lengths[i]), _BEFORE) != own
        numbers = errors.sum(1)
        for kind in np.unique(
            kinds
        ):  # words of some kinds are harder than others, for sources that know nothing of each other
            there = is_said & (kinds == kind)
            errors -= there * ((errors * there).sum(1) / np.maximum(there.sum(1), 1))[:, None]
        products = errors @ errors.T
        scales = np.sqrt(np.maximum(np.diag(products), 1e-9))
        shared = np.minimum(numbers[:, None], numbers)
        correlation = np.maximum(products / scales[:, None] / scales, 0) * shared / (shared + _SHARED)
        np.fill_diagonal(correlation, 0)
        return np.asarray(1 / (1 + correlation.sum(1)))

    def _choose_text_weight(
        self,
        said: Sequence[Sequence[Sequence[Mention] | None]],
        lengths: Sequence[int],
        gold: Sequence[Sequence[Mention] | None],
    ) -> float:
        """The weight with which gold sentences are the likelier where their labels are hidden."""
        known = [i for i, one in enumerate(gold) if one is not None]
        little = min(_TEXT, _LITTLE_TEXT * len(known) / max(1, len(gold) - len(known)))
        if len(known) < _FEWEST_GOLD or little == _TEXT:
            return _TEXT
        losses = {}
        for weight in (_TEXT, little):
            total = 0.0
            for fold in range(_FOLDS):
                hidden = set(known[fold::_FOLDS])
                rest = [None if i in hidden else one for i, one in enumerate(gold)]
                joined = Joiner(self.labels, weight, self.rounds).join(said, lengths, rest)
                total += sum(self._loss(joined[i], gold[i] or (), lengths[i]) for i in hidden)
            losses[weight] = total
        return min(losses, key=lambda weight: losses[weight])

    def _loss(self, soft: TagProbabilities, mentions: Sequence[Mention], length: int) -> float:
        right = np.maximum(self._states(mentions, length) - _BEFORE, 0)  # the columns of tags
        return float(-np.log(np.maximum(soft.values[np.arange(length), right], 1e-4)).sum())

    # ------------------------------------------------------------------------------------------------------- encoding

    def _share_of_adjacent(self, states: Sequence[NDArray[np.int64] | None]) -> float:
        """The share of words in mentions behind which another one begins, by the gold sentences alone."""
        # Estimated on text, it grows at every boundary on which sources disagree.
        known = [one for one in states if one is not None]
        inside = sum(int((one[:-1] >= _FIRST).sum()) for one in known)
        is_first = np.isin(np.arange(self._num_states), np.arange(_FIRST, self._num_states, 2))
        begun = sum(int(((one[:-1] >= _FIRST) & is_first[one[1:]]).sum()) for one in known)
        return (begun + 20 * _ADJACENT) / (inside + 20)

    def _states(self, mentions: Sequence[Mention], length: int) -> NDArray[np.int64]:
        states = np.full(length + 1, _OUTSIDE)
        for mention in mentions:
            states[mention.end] = _BEHIND
        for mention in mentions:
            if mention.start:
                states[mention.start - 1] = _BEFORE
        for mention in mentions:
            first = _FIRST + 2 * self.labels.index(mention.label)
            states[mention.start] = first
            states[mention.start + 1 : mention.end] = first + 1
        return states[:-1]

    def _blocks(
        self,
        symbols: Sequence[Sequence[NDArray[np.int64]]],
        lengths: Sequence[int],
        states: Sequence[NDArray[np.int64] | None],
    ) -> list[_Block]:
        order = sorted(range(len(lengths)), key=lambda i: lengths[i])
        blocks = []
        for begin in range(0, len(order), _BLOCK):
            places = order[begin : begin + _BLOCK]
            width = max(lengths[i] for i in places)
            table = np.full((len(symbols), len(places), width), _ABSENT)
            is_word = np.zeros((len(places), width), bool)
            allowed = np.ones((len(places), width, self._num_states))
            weights = np.full(len(places), self.text_)
            for row, place in enumerate(places):
                is_word[row, : lengths[place]] = True
                allowed[row, lengths[place] - 1, _BEFORE] = 0
                for source, of_source in enumerate(symbols):
                    table[source, row, : lengths[place]] = of_source[place]
                if (known := states[place]) is not None:
                    allowed[row, : lengths[place]] = np.eye(self._num_states)[known]
                    weights[row] = 1.0
            blocks.append(_Block(places, table, is_word, allowed, weights))
        return blocks

    # ---------------------------------------------------------------------------------------------------- expectation

    def _start(self, num_sources: int) -> None:
        size = len(self.labels)
        outcomes = np.repeat(_PRIOR[:, None], size, 1)
        confusion = self._label_prior()
        self.tables_ = [
            SourceTable(outcomes.copy(), confusion.copy(), np.full(size, 1 / size)) for _ in range(num_sources)
        ]
        self._initial, self._transitions = self._normalised_transitions(
            np.zeros(self._num_states), np.zeros((self._num_states, self._num_states))
        )

    def _label_prior(self, right: float = _RIGHT_LABEL) -> NDArray[np.float64]:
        size = len(self.labels)
        if size == 1:
            return np.ones((1, 1))
        prior = np.full((size, size), (1 - right) / (size - 1))
        np.fill_diagonal(prior, right)
        return prior

    def _emissions(self, table: SourceTable) -> NDArray[np.float64]:
        """The log-probability of each symbol in each state; the last row is that of a source that says nothing."""
        alphabet = self._alphabet
        result = np.zeros((len(alphabet.outcome) + 1, self._num_states))
        for state, (kind, label) in enumerate(zip(self._kinds, self._of_label, strict=True)):
            context = self._context(kind, label)
            probability = table.outcomes[kind, label, context, alphabet.outcome]
            given = table.spurious if kind < _IN_B else table.labels[label]
            chosen = np.where(alphabet.outcome == _BEGINS, given[alphabet.begun], 1.0)
            result[:-1, state] = np.log(np.maximum(probability * chosen, 1e-12))
        return result

    def _context(self, kind: int, label: int) -> NDArray[np.int64]:
        if kind < _IN_B:
            return np.where(self._alphabet.previous < 0, _OUT, _SAME)
        return self._alphabet.context[:, label]

    def _expect(self, blocks: Sequence[_Block]) -> _Counts:
        counts = _Counts(len(self.tables_), len(self._alphabet.outcome), self._num_states)
        emissions = [self._emissions(table) for table in self.tables_]
        for block in blocks:
            scores = np.zeros(block.allowed.shape)
            for weight, table, symbols in zip(self.weights_, emissions, block.symbols, strict=True):
                scores += weight * table[symbols]
            highest = scores.max(2, keepdims=True)
            counts.likelihood += float((highest[..., 0] * block.is_word * block.weights[:, None]).sum())
            scores -= highest
            likelihood = np.where(block.is_word[..., None], np.exp(scores) * block.allowed, 1.0)
            self._forward_backward(block, likelihood, counts)
            for source, symbols in enumerate(block.symbols):
                weighted = block.posterior * (block.weights[:, None] * block.is_word)[..., None]
                is_said = symbols >= 0
                np.add.at(counts.symbols[source], symbols[is_said], weighted[is_said])
        return counts

    def _forward_backward(self, block: _Block, likelihood: NDArray[np.float64], counts: _Counts) -> None:
        rows, width, size = likelihood.shape
        forward = np.zeros((rows, width, size))
        scale = np.ones((rows, width))
        current = self._initial * likelihood[:, 0]
        for t in range(width):
            if t:
                current = np.where(
                    block.is_word[:, t, None], (forward[:, t - 1] @ self._transitions) * likelihood[:, t], 0
                )
                current[~block.is_word[:, t]] = forward[~block.is_word[:, t], t - 1]
            total = current.sum(1)
            scale[:, t] = np.where(total > 0, total, 1)
            forward[:, t] = current / scale[:, t, None]
        counts.likelihood += float((np.log(scale) * block.is_word * block.weights[:, None]).sum())
        backward = np.ones((rows, size))
        posterior = np.empty_like(forward)
        posterior[:, -1] = forward[:, -1]
        for t in range(width - 2, -1, -1):
            inside = block.is_word[:, t + 1]
            ahead = np.where(inside[:, None], likelihood[:, t + 1] * backward / scale[:, t + 1, None], 0)
            pairs = (forward[:, t] * (block.weights * inside)[:, None]).T @ ahead
            counts.transitions += pairs * self._transitions
            backward = np.where(inside[:, None], ahead @ self._transitions.T, backward)
            posterior[:, t] = forward[:, t] * backward
        posterior /= np.maximum(posterior.sum(2, keepdims=True), 1e-300)
        counts.initial += (posterior[:, 0] * block.weights[:, None]).sum(0)
        block.posterior = posterior

    # --------------------------------------------------------------------------------------------------- maximisation

    def _maximise(self, counts: _Counts) -> None:
        self._initial, self._transitions = self._normalised_transitions(counts.initial, counts.transitions)
        self.tables_ = [self._table(symbols) for symbols in counts.symbols]

    def _table(self, counts: NDArray[np.float64]) -> SourceTable:
        """The table of a source from the expected numbers of its symbols in the states."""
        alphabet, size = self._alphabet, len(self.labels)
        outcomes = np.zeros((_IN_I + 1, size, 3, 3))
        labels, spurious = np.zeros((size, size)), np.zeros(size)
        begins = alphabet.outcome == _BEGINS
        for state, (kind, label) in enumerate(zip(self._kinds, self._of_label, strict=True)):
            np.add.at(outcomes[kind, label], (self._context(kind, label), alphabet.outcome), counts[:, state])
            given = spurious if kind < _IN_B else labels[label]
            np.add.at(given, alphabet.begun[begins], counts[begins, state])
        general = outcomes.sum(1) + _GENERAL * _PRIOR
        general /= general.sum(-1, keepdims=True)
        outcomes += _BY_LABEL * general[:, None]
        outcomes[:_IN_B] = general[:_IN_B, None]  # outside there is no label
        outcomes /= outcomes.sum(-1, keepdims=True)
        share = (np.trace(labels) + _LABEL * _RIGHT_LABEL) / (labels.sum() + _LABEL)
        labels += _LABEL * self._label_prior(share)
        labels /= labels.sum(1, keepdims=True)
        spurious += _LABEL / size
        return SourceTable(outcomes, labels, spurious / spurious.sum())

    def _normalised_transitions(
        self, initial: NDArray[np.float64], counts: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        size = self._num_states
        allowed = np.zeros((size, size))
        allowed[_BEFORE:, _FIRST::2] = 1
        allowed[:_BEFORE, _OUTSIDE] = allowed[:_BEFORE, _BEFORE] = 1
        allowed[_FIRST:, _BEHIND] = allowed[_FIRST:, _BEFORE] = 1
        for first in range(_FIRST, size, 2):
            allowed[first : first + 2, first + 1] = 1
        prior = allowed.copy()
        prior[:_BEFORE, _OUTSIDE] = prior[_FIRST:, _BEHIND] = 10
        start = allowed[_BEFORE] / len(self.labels)
        start[[_OUTSIDE, _BEFORE]] = 5, 1
        initial = initial + _TRANSITION * start / start.sum()
        counts = counts * allowed + _TRANSITION * prior / prior.sum(1, keepdims=True)
        begins = counts[_FIRST:, _FIRST::2].sum(0)
        counts[_FIRST:, _FIRST::2] = 0
        counts /= counts.sum(1, keepdims=True)
        counts[_FIRST:] *= 1 - self._adjacent
        counts[_FIRST:, _FIRST::2] = self._adjacent * begins / begins.sum()
        return initial / initial.sum(), counts


@dataclass
class _Block:
    """Sentences of similar length, padded."""

    places: list[int]
    symbols: NDArray[np.int64]
    is_word: NDArray[np.bool_]
    allowed: NDArray[np.float64]
    weights: NDArray[np.float64]
    posterior: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


class _Counts:
    """Expected numbers."""

    def __init__(self, num_sources: int, num_symbols: int, num_states: int) -> None:
        self.symbols = np.zeros((num_sources, num_symbols, num_states))
        self.transitions = np.zeros((num_states, num_states))
        self.initial = np.zeros(num_states)
        self.likelihood = 0.0


def labels_of(sentences: Sequence[Sentence], said: Sequence[Sequence[Any]]) -> list[str]:
    """The labels of gold sentences and of what sources say."""
    return sorted(
        {m.label for s in sentences for m in s.mentions} | {m.label for one in said for ms in one for m in ms or ()}
    )
