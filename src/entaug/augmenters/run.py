"""One pass of a method over a corpus: what is asked for, what of it is kept, and who signs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any

from entaug.augmenters.base import (
    DUPLICATE,
    UNCHANGED,
    UNWRITABLE,
    Augmenter,
    Rejection,
    Request,
    RunStatistics,
    mark_of,
    rejection_for,
)
from entaug.corpus import SentenceKeys
from entaug.data import Sentence
from entaug.provenance import Provenance
from entaug.rng import Streams

__all__ = ["REVIEWED", "Carried", "Put", "Run"]

REVIEWED = Rejection("rejected in review", final=True)

Carried = Callable[[Sentence], Sentence]
Put = Callable[[Sentence, Sentence], bool]


class _Draft:
    """One augmented sentence asked for."""

    __slots__ = ("copy", "key", "reason", "refused", "result", "rng", "siblings", "source")

    def __init__(self, source: Sentence, key: str, copy: int, rng: Random, siblings: set[Any]) -> None:
        self.source = source
        self.key = key
        self.copy = copy
        self.rng = rng
        self.siblings = siblings
        self.result: Sentence | None = None
        self.reason = ""
        self.refused: list[tuple[Sentence, str]] = []

    def nothing_new(self, result: Sentence) -> Rejection | None:
        """Why a result is nothing new, if it is not: it is the source, or was made before."""
        content = (result.tokens, result.mentions)
        if content == (self.source.tokens, self.source.mentions):
            return UNCHANGED
        return DUPLICATE if content in self.siblings else None

    def take(self, result: Sentence) -> Rejection | None:
        """Keep a result, unless it is nothing new."""
        refusal = self.nothing_new(result)
        if refusal is None:
            self.siblings.add((result.tokens, result.mentions))
            self.result = result
        return refusal


class Run:
    """One pass of a method over a corpus.

    Args:
        augmenter: fitted, if it needs to be.
        carried: what is left of a sentence where it goes; two that are equal there are duplicates.
        put: called with each finished sentence and its source; returns whether the sentence could be put where it goes.
        put_refused: called with each draft that a filter refused; why stands in its provenance as ``rejected``.
        reviewed: called with the number of a finished sentence's fingerprint and its id; whether somebody has looked at
            it and does not want it: `entaug.report.review`.
    """

    def __init__(
        self,
        augmenter: Augmenter,
        carried: Carried | None = None,
        put: Put | None = None,
        put_refused: Callable[[Sentence], None] | None = None,
        reviewed: Callable[[int, str | None], bool] | None = None,
    ) -> None:
        self.tally = RunStatistics()
        self._carried = carried
        self._put = put
        self._put_refused = put_refused
        self._reviewed = reviewed
        self._mark = mark_of(augmenter)
        self._taken: set[str] = getattr(augmenter, "_taken", set())
        self._augmenter = augmenter
        self._method = augmenter.info.name
        self._streams = Streams(augmenter.seed, self._method)
        self._signature = augmenter.signature
        self._made: set[int] = set()
        self._keys = SentenceKeys()

    def skip(self, source: Sentence) -> None:
        """Count a source as done by an earlier, interrupted run."""
        self._keys.assign(source)

    def remember(self, made: Sentence) -> None:
        """Count a sentence as made by an earlier, interrupted run; it is given as it is carried."""
        self._made.add(made.fingerprint_number())

    def each(self, corpus: Iterable[Sentence]) -> Iterator[tuple[Sentence, list[Sentence]]]:
        """Each source with what was made of it."""
        sources = iter(corpus)
        while window := list(islice(sources, self._augmenter._window)):  # noqa: SLF001
            drafts = self._drafts(window)
            copies = self._augmenter.copies
            for i, source in enumerate(window):
                yield source, self._keep(drafts[i * copies : (i + 1) * copies])

    def _drafts(self, window: list[Sentence]) -> list[_Draft]:
        copies = range(1, self._augmenter.copies + 1)
        stream = self._streams.stream
        drafts = []
        for source in window:
            key = self._keys.assign(source)
            siblings: set[Any] = set()
            drafts += [_Draft(source, key, copy, stream(key, copy), siblings) for copy in copies]
        rejected = self.tally.rejected
        pending = []
        for draft in drafts:
            if refusal := rejection_for(draft.source, self._augmenter.info):
                rejected[refusal.reason] += 1
                draft.reason = refusal.reason
            else:
                pending.append(draft)
        # With p = 0 no draw changes anything, however often it is asked for.
        attempts = 1 if getattr(self._augmenter, "p", None) == 0 else self._augmenter.max_attempts
        for attempt in range(attempts if pending else 0):
            asked = [Request(d.source, d.rng, d.copy, attempt) for d in pending]
            results = self._filtered(pending, self._augmenter._rewrite_many(asked))  # noqa: SLF001
            again = []
            for draft, result in zip(pending, results, strict=True):
                if not isinstance(result, Rejection):
                    refusal = draft.take(result)
                    if refusal is None:
                        continue
                else:
                    refusal = result
                rejected[refusal.reason] += 1
                draft.reason = refusal.reason
                if not refusal.final:
                    again.append(draft)
            pending = again
            if not pending:
                break
        return drafts

    def _filtered(
        self, drafts: Sequence[_Draft], results: Sequence[Sentence | Rejection]
    ) -> Sequence[Sentence | Rejection]:
        """The results, with what a filter refuses replaced by why; what is nothing new is not looked at."""
        if not self._augmenter.filters_:
            return results
        new = [r if isinstance(r, Rejection) else d.nothing_new(r) or r for d, r in zip(drafts, results, strict=True)]
        judged = self._augmenter.judged(new, [draft.source for draft in drafts])
        if self._put_refused:
            for draft, made, verdict in zip(drafts, new, judged, strict=True):
                if isinstance(verdict, Rejection) and not isinstance(made, Rejection):
                    draft.refused.append((made, verdict.reason))
        return judged

    def _keep(self, drafts: list[_Draft]) -> list[Sentence]:
        """The finished sentences of one source.

        A sentence that another source has given already is dropped here and not asked for again: so what is made of a
        source never depends on the other sentences of the file.
        """
        tally = self.tally
        tally.sources += 1
        tally.asked += len(drafts)
        kept = []
        for draft in drafts:
            if self._put_refused:
                for number, (refused, reason) in enumerate(draft.refused, start=1):
                    self._put_refused(self._signed(refused, draft, f"rejected-{number}", reason))
            result = draft.result
            if result is None:
                tally.missing[draft.reason] += 1
                continue
            carried = self._carried(result) if self._carried else result
            number = carried.fingerprint_number()
            unwanted = self._reviewed is not None and self._reviewed(number, self._name(draft))
            refusal = REVIEWED if unwanted else DUPLICATE if number in self._made else None
            if refusal is None:
                signed = self._signed(result, draft)
                if self._put and not self._put(signed, draft.source):
                    refusal = UNWRITABLE
            if refusal:
                tally.missing[refusal.reason] += 1
                tally.rejected[refusal.reason] += 1
                continue
            self._made.add(number)
            kept.append(signed)
        tally.made += len(kept)
        return kept

    def _signed(self, result: Sentence, draft: _Draft, mark: str = "", rejected: str | None = None) -> Sentence:
        own = result.provenance or Provenance()
        provenance = Provenance(
            self._method, self._signature, (draft.key, *own.sources), draft.copy, own.details, rejected
        )
        name = f"{self._name(draft)}/{mark}" if mark else self._name(draft)
        meta, columns = draft.source.meta, result.columns
        return Sentence(result.tokens, result.mentions, name, meta, columns, result.spaces, provenance=provenance)

    def _name(self, draft: _Draft) -> str:
        """An id that no sentence of the corpus has; one is taken where the corpus was made by the same method."""
        name = wanted = f"{draft.key}{self._mark}{draft.copy}"
        number = 1
        while name in self._taken:
            number += 1
            name = f"{wanted}+{number}"
        return name
