"""``entaug augment``: make a labelled corpus larger."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Unpack

from entaug.commands.command import Command, add_parameters, given_parameters
from entaug.commands.options import (
    COMPUTING,
    FILTERS,
    FORCE,
    JSON,
    LOSSES,
    QUIET,
    READING,
    REQUESTS,
    WRITING,
    add_unlabelled_options,
    held_out_sentences,
    named_filters,
    option_in_advance,
    read_unlabelled_options,
)
from entaug.commands.output import file_lines, label_lines, rejection_lines, relabelling_lines, shown_path
from entaug.config.params import parameters
from entaug.core.progress import Progress, no_progress
from entaug.errors import ParameterError
from entaug.formats.file_job import FileOptions
from entaug.methods import METHODS
from entaug.methods.augment import AugmentSummary, augment_file
from entaug.methods.base import Augmenter
from entaug.methods.combined import CombinedAugmenter, parse_methods
from entaug.methods.parts import Part, PartSummary, augment_part
from entaug.metrics.tables import quantity


def _augment(
    input: str,
    output: str,
    augmenter: Augmenter | CombinedAugmenter,
    *,
    only_new: bool = False,
    rejected: str | None = None,
    review: str | None = None,
    jobs: int | None = None,
    part: str | None = None,
    executor: Literal["local", "ray"] = "local",
    address: str | None = None,
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> AugmentSummary | PartSummary:
    """Write the gold sentences followed by the augmented sentences.

    Parameters of a method: entaug augment --method NAME --help

    Args:
        input: the gold training file, or ``"-"`` for standard input.
        output: the file for gold and augmented sentences; ``"-"`` for standard output.
        augmenter: the method, or several.
        only_new: write only the augmented sentences, without the gold ones.
        rejected: write the candidates that filters reject to this JSON Lines file.
        review: leave out sentences that were rejected in a report, and correct those corrected there; FILE is the
            review exported from its page.
        jobs: the number of processes, by default one for each core, for large files; the result does not depend on it.
        part: do the I-th of N parts of the work, for example on one of N machines; OUTPUT is the folder of all parts,
            which ``entaug merge`` joins.
        executor: who does the work: the processes of this machine, or the machines of a Ray cluster, on which
            ``--jobs`` is the number of actors.
        address: the address of the Ray cluster, or ``auto`` for one that runs on this machine; by default that of
            ``RAY_ADDRESS``, else a new one on this machine.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`.
    """
    if address is not None and executor != "ray":
        raise ParameterError("--address is that of a Ray cluster", remedy="pass --executor ray as well")
    shared: dict[str, Any] = {"only_new": only_new, "review": review, "jobs": jobs, "progress": progress, **files}
    if part is None:
        return augment_file(input, output, augmenter, rejected=rejected, executor=executor, address=address, **shared)
    if executor == "ray":
        remedy = "leave out --part or --executor"
        raise ParameterError("--executor ray divides the work itself", parameter="executor", remedy=remedy)
    if rejected:
        raise ParameterError("a part has no file of rejected candidates", remedy="pass --rejected to entaug merge")
    return augment_part(input, output, augmenter, Part.parse(part), **shared)


def _add_method_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Add the choice of the method, and its parameters as options."""
    text = "a method (see entaug list methods), or several: mr,sis or mr:copies=2+sr:p=0.2"
    parser.add_argument("-m", "--method", required=True, help=text)
    methods = option_in_advance(argv, "-m", "--method")
    cls: type[Augmenter] = Augmenter
    title = "parameters of all methods; those of one: entaug augment --method NAME --help"
    if methods is not None and re.fullmatch(r"[^:+,]+", methods):
        cls = METHODS[methods]
        title = f"parameters of {cls.info.name} ({cls.info.long_name})"
    # --filter and --unlabelled may be repeated, and --teacher may lack a name: they are added separately.
    # A plug-in may have parameters with names of other options.
    clashing = _clashing(parser, cls) if cls.is_foreign else []
    if clashing:
        title += f" (others in its text form: --method {methods}:{'=..., '.join(clashing)}=...)"
    without = ("filters", "teacher", "unlabelled", *clashing)
    add_parameters(parser.add_argument_group(title), cls, without=without)
    parser.set_defaults(method_class=cls, clashing=clashing)
    text = "a tagger trained on the gold sentences, or the folder of a trained one, that checks and completes the "
    text += "labels (without a name: ensemble); see entaug relabel"
    metavar = "NAME[:PARAMETER=VALUE,...]"
    parser.add_argument("--teacher", nargs="?", const="ensemble", default=argparse.SUPPRESS, metavar=metavar, help=text)
    add_unlabelled_options(parser)


def _clashing(parser: argparse.ArgumentParser, cls: type[Augmenter]) -> list[str]:
    """The parameters of a method whose option the command has already, with another meaning."""
    others = argparse.ArgumentParser()
    for group in COMMAND.shared:
        group.add(others)
    taken = {"help_all", "method_class"}
    for action in (*parser._actions, *others._actions):  # noqa: SLF001 - argparse has no other way
        taken.update([action.dest, *(option[2:].replace("-", "_") for option in action.option_strings)])
    own = {parameter.name for parameter in parameters(cls)} - {parameter.name for parameter in parameters(Augmenter)}
    return sorted(own & taken - {"unlabelled"})


def _values(args: argparse.Namespace) -> dict[str, Any]:
    """Return the augmenter that the options of the method describe."""
    cls = args.method_class
    values = {name: value for name, value in given_parameters(args, cls).items() if name not in args.clashing}
    filters = named_filters(args)
    values["filters"] = filters if args.filters else None  # "none" replaces those of a preset
    values.pop("unlabelled", None)  # the names of files
    if args.unlabelled:
        values["unlabelled"] = read_unlabelled_options(args)
    augmenter = parse_methods(args.method, **values)
    if args.held_out:
        augmenter.hold_out(held_out_sentences(args))
    return {"augmenter": augmenter}


def _show(args: argparse.Namespace, summary: AugmentSummary | PartSummary) -> Iterator[str]:
    if isinstance(summary, PartSummary):
        sources = f"{summary.sources:,} of {quantity(summary.of_sources, 'sentence')}"
        drafts = quantity(summary.drafts, "new sentence")
        yield f"part {summary.part}: {sources}, {drafts} ({summary.seconds:.1f} s)"
        yield f"wrote {summary.output}; when all are written: entaug merge {args.output} -o FILE"
        return
    for example in summary.examples if sys.stderr.isatty() else ():
        yield f"  before  {example.source}\n  after   {example.sentence}\n"
    yield from summary_lines(summary)


def summary_lines(summary: AugmentSummary) -> Iterator[str]:
    """Return what was read, made and written, for the user."""
    yield f"read {'standard input' if summary.input == '-' else summary.input}: {summary.from_format}"
    yield from file_lines(summary)
    if summary.resumed_at:
        yield f"resumed after {quantity(summary.resumed_at, 'sentence')} of an interrupted run"
    statistics = summary.statistics
    counts = f"{statistics.accepted:,} new, {summary.after.sentences:,} written ({summary.seconds:.1f} s)"
    yield f"{summary.method}: {quantity(summary.before.sentences, 'gold sentence')} in, {counts}"
    for reason, count in statistics.missing.most_common():
        yield f"  not generated: {count:,} ({reason})"
    rejected = statistics.rejected
    by_filter = {reason: count for reason, count in rejected.items() if ": " in reason}
    yield from rejection_lines(by_filter)
    yield from relabelling_lines(statistics.relabelled)
    for reason, count in sorted(rejected.items()):
        redrawn = count - statistics.missing[reason]
        if redrawn > 0 and reason not in by_filter:
            yield f"  rejected and redrawn: {redrawn:,} ({reason})"
    if summary.after.mentions:
        yield f"  {'mentions':<20} {'before':>9} {'after':>9}"
        yield from label_lines(summary.before.mentions, summary.after.mentions)
    yield f"wrote {shown_path(summary.output)}: {summary.to_format}"


COMMAND = Command(
    _augment,
    {"augmenter": None, "rejected": {"metavar": "FILE"}, "part": {"metavar": "I/N"}},
    (FORCE, LOSSES, JSON, QUIET, FILTERS, READING, WRITING, COMPUTING, REQUESTS),
    more=_add_method_options,
    values=_values,
    show=_show,
    is_resumable=True,
)
