"""Types shared by methods, runs and workflows: descriptions of methods, requests, results, statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from random import Random
from typing import NamedTuple, Protocol

from entaug.core.changes import CORRECTED
from entaug.core.data import Sentence


@dataclass(frozen=True)
class MethodInfo:
    """Description of a method, used by the documentation, ``entaug list methods`` and the conformance tests.

    Args:
        name: its registry name, the acronym from the literature in lower case.
        long_name: the long form, an alias.
        summary: one-line description.
        paper: the paper that introduced it.
        keeps_length: every sentence keeps its number of tokens.
        keeps_order: tokens and mentions stay in order.
        keeps_words: every sentence keeps its tokens (as a multiset).
        keeps_mention_words: mentions keep their words (as a multiset).
        keeps_mentions: every sentence keeps the number and labels of its mentions.
        nested: works on corpora with nested mentions.
        discontinuous: works on corpora with discontinuous mentions.
        draws: the result depends on the seed, and in online augmentation on the epoch.
        needs_fit: must be fitted to the training corpus.
        needs_mentions: needs a corpus with mentions.
        writes_words: a model chooses words, so that labels are not certain; the label guard is on by default.
        wrong_labels: how many outputs with the label guard had wrong or missing labels, and how many were read (see
            ``benchmarks/results/label-safety.md``); None where it was not counted.
        has_labels: new sentences have labels of their own; otherwise a teacher has to label them.
        unconditioned: generates sentences without a source; the source in provenance only determines the position in
            the output.
        needs: the kinds of backend that it always uses.
        may_need: the kinds of backend that it uses only with some parameters.
        cost: description of the computational cost.
    """

    name: str
    long_name: str
    summary: str
    paper: str
    keeps_length: bool = False
    keeps_order: bool = False
    keeps_words: bool = False
    keeps_mention_words: bool = False
    keeps_mentions: bool = True
    nested: bool = True
    discontinuous: bool = True
    draws: bool = True
    needs_fit: bool = False
    needs_mentions: bool = False
    writes_words: bool = False
    wrong_labels: tuple[int, int] | None = None
    has_labels: bool = True
    unconditioned: bool = False
    needs: tuple[str, ...] = ()
    may_need: tuple[str, ...] = ()
    cost: str = "rules: tens of thousands of sentences per second"


class Request(NamedTuple):
    """A request for one new version of a sentence."""

    sentence: Sentence
    rng: Random
    copy: int = 1
    attempt: int = 0


class Rejection(NamedTuple):
    """The reason why no draft was generated, or why a draft was not accepted."""

    reason: str
    final: bool = False


UNCHANGED = Rejection("equal to its source")
DUPLICATE = Rejection("made before")
GOLD = Rejection("equal to a gold sentence")
LESS_LIKELY = Rejection("reads worse than its source")
UNWRITABLE = Rejection("the output format cannot store it", final=True)
REVIEWED = Rejection("rejected in review", final=True)
NOT_SEEN = Rejection("not a sentence of the fitted corpus", final=True)
NESTED = Rejection("has nested mentions, which this method does not support", final=True)
DISCONTINUOUS = Rejection("has discontinuous mentions, which this method does not support", final=True)
NO_CANDIDATE = Rejection("nothing that the method can change", final=True)


def rejection_for(sentence: Sentence, info: MethodInfo) -> Rejection | None:
    """Return the reason why a method cannot process a sentence, if any."""
    if (info.nested and info.discontinuous) or sentence.is_flat:
        return None
    if not info.discontinuous and not all(mention.is_contiguous for mention in sentence.mentions):
        return DISCONTINUOUS
    covered = [position for mention in sentence.mentions for position in mention.positions()]
    return NESTED if not info.nested and len(set(covered)) < len(covered) else None


class Accepted(NamedTuple):
    """A new sentence, with its text in the output where there is one."""

    sentence: Sentence
    source: Sentence
    fingerprint: int
    text: str | None = None


class Rejected(NamedTuple):
    """A draft that was not accepted; with its sentence where a teacher or a filter rejected it."""

    sentence: Sentence | None
    reason: str
    is_last: bool


@dataclass
class RunStatistics:
    """Counts of a run."""

    sources: int = 0
    requested: int = 0
    accepted: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    relabelled: Counter[str] = field(default_factory=Counter)
    corrected: int = 0
    _seen: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

    def seen_before(self, fingerprints: Iterable[int]) -> None:
        """Take over the sentences that an interrupted run accepted."""
        self._seen.update(fingerprints)

    def accept(self, fingerprint: int, changes: Mapping[str, int] | None) -> bool:
        """Count a new sentence; one that an earlier source gave is rejected: repeats are dropped here alone."""
        # No other draft is requested then: what a source gives never depends on the other sentences.
        if fingerprint in self._seen:
            self.reject(DUPLICATE.reason, is_last=True)
            return False
        self._seen.add(fingerprint)
        self.accepted += 1
        if changes:
            self.relabelled.update(changes)
            self.corrected += any(name.startswith(CORRECTED) for name in changes)
        return True

    def reject(self, reason: str, *, is_last: bool) -> None:
        """Count a rejected draft."""
        self.rejected[reason] += 1
        if is_last:
            self.missing[reason] += 1

    def to_dict(self) -> dict[str, int | dict[str, int]]:
        """Return the counts as plain values."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in values.items()}

    def update(self, counts: dict[str, int | dict[str, int]]) -> None:
        """Replace the counts."""
        for name, value in counts.items():
            setattr(self, name, Counter(value) if isinstance(value, dict) else value)


class OutputTarget(Protocol):
    """The format in which accepted sentences are written."""

    def as_stored(self, sentence: Sentence) -> Sentence:
        """Return a sentence as it would be read back from the format; duplicates are detected on it."""

    def encode(self, sentence: Sentence) -> str:
        """Return a sentence as it is written."""
