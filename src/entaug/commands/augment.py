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
    JOBS,
    JSON,
    LOSSES,
    ONCE,
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
from entaug.commands.output import (
    file_lines,
    print_message,
    quantity,
    rejection_lines,
    relabelling_lines,
    shown_path,
)
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import ParameterError
from entaug.files.mention_lists import mention_lists
from entaug.formats.file_job import FileOptions, check_apart
from entaug.methods import METHODS
from entaug.methods.augment import AugmentSummary, augment_file
from entaug.methods.base import Augmenter
from entaug.methods.combined import CombinedAugmenter, parse_methods
from entaug.methods.parts import Part, PartSummary, augment_part
from entaug.methods.types import Accepted

_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")


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
    """Augment a file by the processes of this machine, as one part of many, or on a cluster.

    Args:
        input: the gold training file, or ``"-"`` for standard input.
        output: the file for gold and augmented sentences; ``"-"`` for standard output.
        augmenter: the method, or several.
        only_new: write only the augmented sentences, without the gold ones.
        rejected: write the candidates that filters reject to this JSON Lines file.
        review: leave out sentences that were rejected in a report; FILE is the review exported from its page.
        jobs: the number of processes; None for as many as there are cores, for large files.
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
    without = ("filters", "teacher", "unlabelled")
    add_parameters(parser.add_argument_group(title), cls, without=without)
    parser.set_defaults(method_class=cls)
    text = "a tagger trained on the gold sentences, or the folder of a trained one, that checks and completes the "
    text += "labels (without a name: ensemble); see entaug relabel"
    metavar = "NAME[:PARAMETER=VALUE,...]"
    parser.add_argument("--teacher", nargs="?", const="ensemble", default=argparse.SUPPRESS, metavar=metavar, help=text)
    add_unlabelled_options(parser)


def _values(args: argparse.Namespace) -> dict[str, Any]:
    """Return the augmenter that the options of the method describe."""
    cls = args.method_class
    lists = [one.source for one in mention_lists(getattr(args, "mentions", None))]
    check_apart([args.output, getattr(args, "rejected", None)], lists)
    values: dict[str, Any] = given_parameters(args, cls)
    filters = named_filters(args)
    values["filters"] = filters if args.filters else None  # "none" replaces those of a preset
    values.pop("unlabelled", None)  # the names of files
    if args.unlabelled:
        values["unlabelled"] = read_unlabelled_options(args)
    augmenter = parse_methods(args.method, **values)
    if args.held_out:
        augmenter.hold_out(held_out_sentences(args))
    return {"augmenter": augmenter}


def _show(args: argparse.Namespace, summary: AugmentSummary | PartSummary) -> None:
    if args.quiet:
        return
    if isinstance(summary, PartSummary):
        sources = f"{summary.sources:,} of {quantity(summary.of_sources, 'sentence')}"
        print_message(
            f"part {summary.part}: {sources}, {quantity(summary.drafts, 'new sentence')} ({summary.seconds:.1f} s)"
        )
        print_message(f"wrote {summary.output}; when all are written: entaug merge {args.output}")
        return
    if sys.stderr.isatty():
        _print_examples(summary.examples)
    for line in summary_lines(summary):
        print_message(line)


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
    before, after = summary.before.mentions, summary.after.mentions
    if after:
        yield f"  {'mentions':<20} {'before':>9} {'after':>9}"
    for label in sorted({*before, *after}):
        yield f"  {label:<20} {before[label]:>9,} {after[label]:>9,}"
    yield f"wrote {shown_path(summary.output)}: {summary.to_format}"


def _print_examples(examples: Sequence[Accepted]) -> None:
    """Print sentences before and after augmentation, with mentions in colour and new words in bold."""
    from rich.console import Console

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    labels = sorted({m.label for example in examples for s in (example.source, example.sentence) for m in s.mentions})
    colours = {label: _COLOURS[i % len(_COLOURS)] for i, label in enumerate(labels)}
    for example in examples:
        console.print("  before ", _coloured(example.source, colours, set(example.source.tokens)))
        console.print("  after  ", _coloured(example.sentence, colours, set(example.source.tokens)))
        console.print()


def _coloured(sentence: Sentence, colours: dict[str, str], known: set[str]) -> Any:
    from rich.text import Text

    inner_last = sorted(sentence.mentions, key=lambda mention: -len(list(mention.positions())))
    label_at = {i: mention.label for mention in inner_last for i in mention.positions()}
    last = {max(m.positions()): m.label for m in sentence.mentions}
    text = Text()
    for i, token in enumerate(sentence.tokens):
        style = " ".join(filter(None, ("" if token in known else "bold", colours.get(label_at.get(i, ""), ""))))
        text.append(token, style=style)
        if i in last:
            text.append(f"/{last[i]}", style="dim")
        text.append(" ")
    return text


COMMAND = Command(
    _augment,
    "Write the gold sentences followed by the augmented sentences.\n"
    "Parameters of a method: entaug augment --method NAME --help",
    {
        "augmenter": None,
        "rejected": {"metavar": "FILE"},
        "review": {"flags": ("--apply-review",), **ONCE},
        "part": {"metavar": "I/N"},
        "jobs": JOBS,
    },
    (FORCE, LOSSES, JSON, QUIET, FILTERS, READING, WRITING, COMPUTING, REQUESTS),
    more=_add_method_options,
    values=_values,
    show=_show,
    record=lambda summary: summary.to_dict() if isinstance(summary, AugmentSummary) else summary,
    is_resumable=True,
)
