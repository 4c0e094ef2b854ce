"""What the command `filter` does, as a function: sentences that were made already are judged and left out.

Nothing here prints.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entaug.augmented import AugmentedPair, pair_with_sources
from entaug.augmenters.contracts import REVIEWED
from entaug.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.files.atomic import atomic_file
from entaug.files.sinks import Counts, StreamSink
from entaug.files.streams import encode_text, rereadable_path
from entaug.filters import Filter, apply_filters, create_filters
from entaug.formats import OpenedFile, find, open_file, read_each, target
from entaug.formats.base import Reading
from entaug.formats.buffered import BufferedFormat, write_buffered
from entaug.report.review import Review, read_review
from entaug.workflows.common import (
    STDOUT,
    Progress,
    aside_path,
    check_apart,
    check_kind,
    check_losses,
    check_output,
    format_name,
    guess,
    refuse_loss,
    silent,
    watched,
)

__all__ = ["FilterSummary", "filter_file"]

_WINDOW = 256  # sentences judged at a time; verdicts do not depend on it


@dataclass
class FilterSummary:
    """What `filter_file` did.

    Args:
        filters: the filters with their parameters, in order.
        gold: how many gold sentences were kept unseen.
        judged: how many sentences were judged.
        kept: how many of these were kept.
        refused: the others by filter and reason, as ``"FILTER: REASON"``.
        after: what was written.
    """

    input: str
    output: str
    from_format: str
    format: str
    filters: list[str] = field(default_factory=list)
    gold: int = 0
    judged: int = 0
    kept: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    after: Counts = field(default_factory=Counts)
    repaired: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def filter_file(
    input: str | Path,
    output: str | Path,
    filters: str | Filter | Sequence[str | Filter],
    *,
    gold: str | Path | None = None,
    rejected: str | Path | None = None,
    review: str | Path | None = None,
    lose: Collection[str] = (),
    force: bool = False,
    repair: bool = False,
    from_format: str | None = None,
    to_format: str | None = None,
    read_options: dict[str, Any] | None = None,
    write_options: dict[str, Any] | None = None,
    progress: Progress = silent,
) -> FilterSummary:
    """Judge sentences that were made already; gold sentences and those that are kept are written, in their order.

    Args:
        input: augmented sentences, with or without the gold ones; or ``"-"``.
        output: where what is kept goes, or ``"-"``.
        filters: what judges: filters, or what `entaug.filters.create_filters` makes some of.
        gold: the file that was augmented; wanted where the input holds new sentences alone, or no provenance.
        rejected: where the others go, as JSON lines, each with why in ``meta["entaug"]["rejected"]``; a file.
        review: what was decided in a report (see `entaug.report.review`): what was rejected there is left out.
        lose: kinds of what may be left out where another format has no place for it; see `entaug.convert_file`.
        force: replace files that exist.
        repair: mend broken tag sequences.
        from_format: the input's format, found by default.
        to_format: the output's format, by default that of its extension, else the input's.
        read_options: layout of the input (and the gold file) given by hand.
        write_options: layout of the output given by hand.
        progress: called now and then.

    Raises:
        ParameterError: neither a filter nor a review.
        InputError: the input is faulty, nothing in it was made, or a filter needs a source that is not there.
        LossError: the output's format cannot carry what the input holds.
        OutputError: an output exists or cannot be written. None appears then.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> gold = [Sentence("a b c d e".split()), Sentence("f g".split())]
        >>> _ = entaug.write([*gold, *entaug.create_augmenter("sis").augment(gold)], folder / "all.jsonl")
        >>> summary = filter_file(folder / "all.jsonl", folder / "good.jsonl", "similarity:min_similarity=0.55")
        >>> summary.gold, summary.kept, dict(summary.refused)
        (2, 1, {'similarity: too unlike its source': 1})
    """
    begun = time.monotonic()
    filters = create_filters(filters)
    if not filters and review is None:
        raise ParameterError("no filter to judge by", remedy="name one or more with --filter: see entaug filters")
    decided = read_review(review) if review is not None else Review()
    check_losses(lose)
    check_apart([output, rejected], [gold, review])
    check_output(output, input, force=force, folders=True)
    options = read_options or {}
    aside = aside_path(rejected, input, output, force=force)
    with rereadable_path(input) as kept:
        try:
            source = open_file(kept, from_format, **options)
            to = target(format_name(output), to_format, source, **(write_options or {}))
            check_kind(output, to.format, force=force)
            for one in filters:
                one.load()
            summary = FilterSummary(str(input), str(output), source.dialect.describe(), to.dialect.describe())
            summary.filters = [one.signature for one in filters]
            met = Reading(repair=repair)
            sentences = list(watched(source.sentences(met), "reading", progress, guess(source, progress)))
            summary.repaired, summary.notes = met.repaired, met.notes
            known = None
            if gold is not None:
                known = list(read_each([gold], from_format, repair=repair, beside=True, **options)[0])
            if any("entaug" in s.meta for s in sentences) and not getattr(to.dialect, "provenance", True):
                # Comments of a CoNLL file that the input has, so that the output has them too.
                to = target(format_name(output), to_format, source, **{**(write_options or {}), "provenance": True})
            pairs = pair_with_sources(sentences, known)
            if not any(pairs):
                raise InputError(
                    "no sentence says that it was made" if known is None else "no sentence in it was made",
                    path=str(input),
                    remedy="name the file that was augmented with --gold",
                )
            _check_sources(pairs, filters, str(input), gold)
            learned = known if known is not None else [s for s, p in zip(sentences, pairs, strict=True) if p is None]
            for one in filters:
                one.fit(learned)
            reasons = _judged(pairs, filters, decided, progress)
            _write(sentences, reasons, to, output, aside, lose, force=force)
        finally:
            pass
    unknown = len(decided.rejected) - sum(reason == REVIEWED.reason for reason in reasons)
    if unknown > 0:
        summary.notes[f"{unknown:,} of {len(decided.rejected):,} sentences that the review rejects are not here"] += 1
    summary.gold = pairs.count(None)
    summary.judged = len(pairs) - summary.gold
    summary.refused.update(reason for reason in reasons if reason is not None)
    summary.kept = summary.judged - summary.refused.total()
    for sentence, reason in zip(sentences, reasons, strict=True):
        if reason is None:
            summary.after.add(sentence)
    summary.seconds = time.monotonic() - begun
    return summary


def _source(pair: AugmentedPair) -> Sentence | None:
    """What a sentence was made of; what was written from nothing was made of nothing."""
    own = pair.augmented.meta.get("entaug")
    return None if isinstance(own, dict) and own.get("unconditioned") else pair.source


def _check_sources(
    pairs: Sequence[AugmentedPair | None], filters: Sequence[Filter], path: str, gold: str | Path | None
) -> None:
    """Raise before any work where a filter needs sources that are not there."""
    lost = [pair for pair in pairs if pair is not None and _source(pair) is None]
    for one in filters:
        if lost and one.needs_source:
            told = f"{len(lost):,} new sentences have no known source, and {one.name} judges by it"
            if gold is None and any(pair.source is None for pair in lost):
                raise InputError(told, path=path, remedy="name the file that was augmented with --gold")
            raise InputError(told, path=path, remedy=one.without_source)


def _judged(
    pairs: Sequence[AugmentedPair | None], filters: Sequence[Filter], decided: Review, progress: Progress
) -> list[str | None]:
    """For each sentence why it is refused; None for gold ones and those that are kept."""
    found = [None if pair is None else pair.rejection for pair in pairs]  # what was refused before stays so
    for i, pair in enumerate(pairs):
        if decided.decisions and pair is not None:
            if decided.rejects(pair.augmented.fingerprint_number(), pair.augmented.id):
                found[i] = REVIEWED.reason
    made = [(i, pair) for i, pair in enumerate(pairs) if pair is not None and found[i] is None]
    for start in range(0, len(made), _WINDOW):
        window = made[start : start + _WINDOW]
        verdicts = apply_filters(filters, [pair.augmented for _, pair in window], [_source(pair) for _, pair in window])
        for (i, _), verdict in zip(window, verdicts, strict=True):
            found[i] = verdict
        progress("judging", start + len(window), len(made))
    return found


def _write(
    sentences: Sequence[Sentence],
    reasons: Sequence[str | None],
    to: OpenedFile,
    output: str | Path,
    aside: Path | None,
    lose: Collection[str],
    *,
    force: bool,
) -> None:
    """Write what is kept and what is not; both files appear together."""
    good = [sentence for sentence, reason in zip(sentences, reasons, strict=True) if reason is None]
    lost = Counter(name for sentence in good for name in to.format.lost(sentence, to.dialect))
    refuse_loss(lost, lose, to)
    with contextlib.ExitStack() as stack:
        if aside is not None:
            lines = find("jsonl")
            out = stack.enter_context(atomic_file(aside))
            for sentence, reason in zip(sentences, reasons, strict=True):
                if reason is not None:
                    own = {**(sentence.meta.get("entaug") or {}), "rejected": reason}
                    told = sentence.with_(meta={**sentence.meta, "entaug": own})
                    out.write(encode_text(lines.dump(told, lines.dialect()), first=False))
        if isinstance(to.format, BufferedFormat):
            write_buffered(to.format, to.dialect, good, Path(output), force=force)
            return
        sink = StreamSink(
            sys.stdout.buffer if str(output) in STDOUT else stack.enter_context(atomic_file(Path(output))), to.heading
        )
        with sink:
            sink.write([to.format.dump(sentence, to.dialect) for sentence in good])
