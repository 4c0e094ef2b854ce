"""A run of one or more methods over a corpus: requests drafts, rejects duplicates, assigns ids and provenance."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, tee
from random import Random
from threading import RLock
from typing import Any, NamedTuple

from entaug.core.corpus import SentenceKeys
from entaug.core.data import Sentence
from entaug.core.provenance import Provenance
from entaug.core.rng import Streams
from entaug.errors import LossError
from entaug.methods.types import (
    DUPLICATE,
    REVIEWED,
    UNCHANGED,
    UNWRITABLE,
    Accepted,
    Method,
    Outcome,
    OutputTarget,
    Rejected,
    Rejection,
    Request,
    RunStatistics,
    rejection_for,
)

__all__ = ["Candidate", "Draft", "Run", "draw"]

_SOFT_LABELS = ("tag_probabilities", "relation_probabilities")  # the fields of soft labels in `Sentence.layout`


class Draft:
    """The state of one requested augmented sentence."""

    __slots__ = ("copy", "rejections", "rng", "sentence", "siblings", "source")

    def __init__(self, source: Sentence, rng: Random, copy: int, siblings: set[Any]) -> None:
        self.source = source
        self.rng = rng
        self.copy = copy
        self.siblings = siblings
        self.sentence: Sentence | None = None
        self.rejections: list[tuple[Sentence | None, Rejection]] = []

    def compare(self, sentence: Sentence) -> Rejection | None:
        """Check that a sentence is new."""
        content = (sentence.tokens, sentence.mentions)
        if content == (self.source.tokens, self.source.mentions):
            return UNCHANGED
        return DUPLICATE if content in self.siblings else None

    def accept(self, sentence: Sentence) -> Rejection | None:
        """Accept a sentence if it is new."""
        rejection = self.compare(sentence)
        if rejection is None:
            self.siblings.add((sentence.tokens, sentence.mentions))
            self.sentence = sentence
        return rejection


# Models and parsers keep state between calls, and several augmenters may share one: threads take turns.
_computing = RLock()


def _free_lock() -> None:
    """Free the lock in a forked process, whose other threads are gone."""
    global _computing  # noqa: PLW0603
    _computing = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_lock)


def draw(method: Method, drafts: Iterable[Draft]) -> None:
    """Generate drafts until each is accepted, finally rejected, or out of attempts."""
    pending = []
    for draft in drafts:
        rejection = rejection_for(draft.source, method.info)
        if rejection:
            draft.rejections.append((None, rejection))
        else:
            pending.append(draft)
    for attempt in range(method.attempts):
        if not pending:
            return
        with _computing:
            results = method.draft([Request(draft.source, draft.rng, draft.copy, attempt) for draft in pending])
            refused: list[Sentence | None] = [None] * len(pending)
            if method.has_teacher:
                results, refused = _relabelled(method, pending, results)
            if method.has_filters:
                results, filtered = _filtered(method, pending, results)
                refused = [a or b for a, b in zip(refused, filtered, strict=True)]
        again = []
        for draft, result, sentence in zip(pending, results, refused, strict=True):
            rejection = result if isinstance(result, Rejection) else draft.accept(result)
            if rejection is not None:
                draft.rejections.append((sentence, rejection))
                if not rejection.final:
                    again.append(draft)
        pending = again


def _relabelled(
    method: Method, drafts: Sequence[Draft], results: Sequence[Sentence | Rejection]
) -> tuple[list[Sentence | Rejection], list[Sentence | None]]:
    """Return results after the teacher, and the rejected sentences; only new sentences are relabelled."""
    new = [r if isinstance(r, Rejection) else d.compare(r) or r for d, r in zip(drafts, results, strict=True)]
    pairs = method.apply_teacher(new, [draft.source for draft in drafts])
    return [result for result, _ in pairs], [refused for _, refused in pairs]


def _filtered(
    method: Method, drafts: Sequence[Draft], results: Sequence[Sentence | Rejection]
) -> tuple[Sequence[Sentence | Rejection], list[Sentence | None]]:
    """Return results after the filters, and the rejected sentences; only new sentences are filtered."""
    new = [r if isinstance(r, Rejection) else d.compare(r) or r for d, r in zip(drafts, results, strict=True)]
    kept = method.apply_filters(new, [draft.source for draft in drafts])
    refused = [
        before if isinstance(after, Rejection) and not isinstance(before, Rejection) else None
        for before, after in zip(new, kept, strict=True)
    ]
    return kept, refused


class Candidate(NamedTuple):
    """A new sentence of a source that has not been compared with those of other sources."""

    sentence: Sentence
    source: Sentence
    fingerprint: int


class Run:
    """One pass of one or more methods over a corpus."""

    # What a source gives depends on nothing but the source and its key (`candidates`), so it may be computed anywhere
    # and in any order. What is accepted depends on the sentences before it (`outcomes`).

    def __init__(
        self,
        methods: Sequence[Method],
        *,
        target: OutputTarget | None = None,
        excluded: Callable[[int, str | None], bool] | None = None,
    ) -> None:
        self.statistics = RunStatistics()
        self._target = target
        self._excluded = excluded
        self._methods = [_MethodRun(method) for method in methods]
        self.window_size = min(method.window_size for method in methods)

    def candidates(
        self, sources: Iterable[Sentence], keys: Iterable[str]
    ) -> Iterator[tuple[Sentence, int, list[Candidate | Rejected]]]:
        """Generate the new sentences of some sources."""
        sources, keys = iter(sources), iter(keys)
        while window := list(islice(sources, self.window_size)):
            keys_of_window = list(islice(keys, len(window)))
            drafts = [run.drafts(window, keys_of_window) for run in self._methods]
            for i, (source, key) in enumerate(zip(window, keys_of_window, strict=True)):
                results: list[Candidate | Rejected] = []
                requested = 0
                for run, of_run in zip(self._methods, drafts, strict=True):
                    requested += len(of_run[i])
                    for draft in of_run[i]:
                        if draft.rejections:
                            results += _rejected(run, draft, key)
                        if draft.sentence is not None:
                            results.append(self._candidate(source, run.signed(draft.sentence, draft, key)))
                yield source, requested, results

    def encode(self, candidate: Candidate) -> str | None:
        """Return the text of a sentence in the target."""
        assert self._target is not None
        try:
            return self._target.encode(candidate.sentence)
        except LossError:
            self._target.encode(candidate.source)
            return None

    def outcomes(self, corpus: Iterable[Sentence]) -> Iterator[tuple[Sentence, list[Outcome]]]:
        """Process a corpus."""
        # A sentence equal to one from another source is rejected here without requesting another draft. The candidates
        # for a source therefore never depend on the other sentences of the corpus.
        keys, accepted = SentenceKeys(), set()
        sources, to_name = tee(corpus)
        for source, requested, results in self.candidates(sources, map(keys.assign, to_name)):
            outcomes: list[Outcome] = []
            for result in results:
                outcome: Outcome
                if isinstance(result, Rejected):
                    outcome = result
                elif result.fingerprint in accepted:
                    outcome = Rejected(None, source, DUPLICATE.reason, is_last=True)
                else:
                    encoded = self.encode(result) if self._target else None
                    if self._target and encoded is None:
                        outcome = Rejected(None, source, UNWRITABLE.reason, is_last=True)
                    else:
                        accepted.add(result.fingerprint)
                        outcome = Accepted(result.sentence, source, encoded)
                outcomes.append(outcome)
            self.statistics.add(requested, outcomes)
            yield source, outcomes

    def sentences(self, corpus: Iterable[Sentence]) -> Iterator[Sentence]:
        """Process a corpus."""
        for _, outcomes in self.outcomes(corpus):
            yield from (outcome.sentence for outcome in outcomes if isinstance(outcome, Accepted))

    def _candidate(self, source: Sentence, sentence: Sentence) -> Candidate | Rejected:
        """Return a new sentence with its fingerprint, unless it was rejected in review."""
        fingerprint = (self._target.as_stored(sentence) if self._target else sentence).fingerprint_number()
        if self._excluded is not None and self._excluded(fingerprint, sentence.id):
            return Rejected(None, source, REVIEWED.reason, is_last=True)
        return Candidate(sentence, source, fingerprint)


def _rejected(run: _MethodRun, draft: Draft, key: str) -> Iterator[Rejected]:
    """Yield the rejections of a draft."""
    filtered = 0
    for number, (sentence, rejection) in enumerate(draft.rejections, start=1):
        signed = None
        if sentence is not None:
            filtered += 1
            signed = run.signed(sentence, draft, key, f"/rejected-{filtered}", rejected=rejection.reason)
        is_last = draft.sentence is None and number == len(draft.rejections)
        yield Rejected(signed, draft.source, rejection.reason, is_last)


class _MethodRun:
    """The part of a run that belongs to one method."""

    def __init__(self, method: Method) -> None:
        self._method = method
        self._streams = Streams(method.seed, method.name)
        self._signature = method.signature

    def drafts(self, sources: Sequence[Sentence], keys: Sequence[str]) -> list[list[Draft]]:
        """Return the finished drafts of some sources, those of each source in a list."""
        stream = self._streams.stream
        drafts = []
        for source, key in zip(sources, keys, strict=True):
            siblings: set[Any] = set()
            copies = range(1, self._method.copies_of(source) + 1)
            drafts.append([Draft(source, stream(key, copy), copy, siblings) for copy in copies])
        draw(self._method, [draft for of_source in drafts for draft in of_source])
        return drafts

    def signed(
        self, sentence: Sentence, draft: Draft, key: str, suffix: str = "", rejected: str | None = None
    ) -> Sentence:
        """Return a sentence with its id and provenance."""
        own = sentence.provenance if sentence.provenance is not draft.source.provenance else None
        own = own or Provenance()
        # A method that combines sentences names the other sources.
        sources = (key, *own.sources)
        method = self._method.name
        # Of the layout only soft labels hold for a new sentence, where the method has set them.
        before = draft.source.layout
        soft = {n: v for n, v in sentence.layout.items() if n in _SOFT_LABELS and v is not before.get(n)}
        return Sentence(
            sentence.tokens,
            sentence.mentions,
            self._id(key, draft.copy) + suffix,
            sentence.meta if self._method.info.unconditioned else draft.source.meta,
            sentence.columns,
            sentence.spaces,
            soft,
            Provenance(method, self._signature, sources, draft.copy, own.details, rejected),
        )

    def _id(self, key: str, copy: int) -> str:
        """Create an id that no sentence of the corpus has; the corpus may contain output of the same method."""
        wanted = f"{key}{self._method.id_infix}{copy}"
        name, number = wanted, 1
        while name in self._method.existing_ids:
            number += 1
            name = f"{wanted}+{number}"
        return name
