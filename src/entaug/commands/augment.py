"""``entaug augment``: make a labelled corpus larger."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from entaug.commands import options, output, unlabelled
from entaug.commands.command import Command, add_jobs_option
from entaug.commands.relabel import add_teacher_option
from entaug.commands.requests import add_request_options
from entaug.errors import ParameterError

if TYPE_CHECKING:
    from entaug.core.data import Sentence
    from entaug.methods.augment import AugmentSummary
    from entaug.methods.base import Augmenter
    from entaug.methods.combined import CombinedAugmenter
    from entaug.methods.statistics import CorpusStatistics
    from entaug.methods.types import Accepted

__all__ = ["COMMAND", "print_summary"]

_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")


def _add_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    parser.add_argument("input", help="the gold training file, or - for standard input")
    parser.add_argument(
        "-m",
        "--method",
        required=True,
        help="a method (see entaug methods), or several: mr,sis or mr:copies=2+sr:p=0.2",
    )
    options.add_output_options(parser)
    parser.add_argument(
        "--only-new", action="store_true", help="write only the augmented sentences, without the gold ones"
    )
    parser.add_argument(
        "--rejected", metavar="FILE", help="write the candidates that filters reject to this JSON Lines file"
    )
    parser.add_argument(
        "--shard",
        metavar="I/N",
        help="do the I-th of N parts of the work, for example on one of N machines; OUTPUT is the folder of all parts, "
        "which entaug merge joins",
    )
    options.add_review_option(parser)
    add_jobs_option(parser)
    parser.add_argument(
        "--executor",
        choices=("local", "ray"),
        default="local",
        help="who does the work: the processes of this machine (default), or the machines of a Ray cluster, on which "
        "--jobs is the number of actors",
    )
    parser.add_argument(
        "--address",
        help="the address of the Ray cluster, or auto for one that runs on this machine (default: that of RAY_ADDRESS, "
        "else a new one on this machine)",
    )
    options.add_json_option(parser)
    parser.add_argument("--quiet", action="store_true", help="print only errors")
    if argv:
        _add_method_options(parser, options.option_in_advance(argv, "-m", "--method"))
    unlabelled.add_options(parser)
    add_teacher_option(parser)
    options.add_filter_options(parser)
    options.add_read_options(parser)
    options.add_write_options(parser)
    options.add_compute_options(parser)
    add_request_options(parser)


def _add_method_options(parser: argparse.ArgumentParser, methods: str | None) -> None:
    """Add the parameters of the chosen method as options."""
    from entaug.methods import METHODS
    from entaug.methods.base import Augmenter

    cls: type[Augmenter] = Augmenter
    title = "parameters that all methods share; for those of one method: entaug augment --method NAME --help"
    if methods is not None and re.fullmatch(r"[^:+,]+", methods):
        cls = METHODS[methods]
        title = f"parameters of {cls.info.name} ({cls.info.long_name})"
    group = parser.add_argument_group(title)
    # --filter and --unlabelled may be repeated, and --teacher may lack a name: they are added separately.
    options.add_parameters(group, cls, without=("filters", "teacher", "unlabelled"))
    parser.set_defaults(method_class=cls)


def _run(args: argparse.Namespace) -> int:
    from entaug.files.mention_lists import mention_lists
    from entaug.files.streams import is_stdout
    from entaug.formats.file_job import check_apart
    from entaug.methods.augment import augment_file
    from entaug.methods.combined import parse_methods

    cls = args.method_class
    lists = [one.source for one in mention_lists(getattr(args, "mentions", None))]
    check_apart([args.output, args.rejected], [*args.held_out, *args.unlabelled, *lists])
    values: dict[str, Any] = options.given_parameters(args, cls)
    filters = options.named_filters(args)
    values["filters"] = filters if args.filters else None  # "none" replaces those of a preset
    values.pop("unlabelled", None)  # the names of files
    if args.unlabelled:
        values["unlabelled"] = unlabelled.read(args, args.input)
    augmenter = parse_methods(args.method, **values)
    if args.held_out:
        augmenter.hold_out(options.held_out_sentences(args))
    shared: dict[str, Any] = {
        "only_new": args.only_new,
        "force": args.force,
        **options.read_options(args),
        **options.write_options(args),
        "review": args.apply_review,
        "jobs": args.jobs,
    }
    if args.address is not None and args.executor != "ray":
        raise ParameterError("--address is that of a Ray cluster", remedy="pass --executor ray as well")
    if args.shard is not None:
        return _write_shard(args, augmenter, shared)
    augment: Callable[..., AugmentSummary] = augment_file
    if args.executor == "ray":
        from entaug.methods.cluster import augment_on_ray

        augment, shared = augment_on_ray, {**shared, "address": args.address}
    with output.show_progress(quiet=args.quiet) as progress:
        summary = augment(args.input, args.output, augmenter, **shared, rejected=args.rejected, progress=progress)
    if args.json:
        output.print_json(summary.to_dict(), to_stderr=is_stdout(args.output))
    elif not args.quiet:
        if sys.stderr.isatty():
            _print_examples(summary.examples)
        print_summary(summary, ["teacher", *(filter_.name for filter_ in augmenter.filters_)])
    return output.ExitCode.OK


def _write_shard(args: argparse.Namespace, augmenter: Augmenter | CombinedAugmenter, shared: dict[str, Any]) -> int:
    from entaug.methods.shards import Shard, augment_shard

    if args.executor == "ray":
        raise ParameterError(
            "--executor ray divides the work itself", parameter="executor", remedy="leave out --shard or --executor"
        )
    if args.rejected:
        raise ParameterError("a shard has no file of rejected candidates", remedy="pass --rejected to entaug merge")
    shard = Shard.parse(args.shard)
    with output.show_progress(quiet=args.quiet) as progress:
        summary = augment_shard(args.input, args.output, augmenter, shard, **shared, progress=progress)
    if args.json:
        output.print_json(summary)
    elif not args.quiet:
        sources = f"{summary.sources:,} of {output.quantity(summary.of_sources, 'sentence')}"
        new = output.quantity(summary.drafts, "new sentence")
        output.print_message(f"shard {shard}: {sources}, {new} ({summary.seconds:.1f} s)")
        output.print_message(f"wrote {summary.output}; when all are written: entaug merge {args.output}")
    return output.ExitCode.OK


def print_summary(summary: AugmentSummary, filters: Sequence[str] | None) -> None:
    """Print what was read, made and written."""
    source = "standard input" if summary.input == "-" else summary.input
    output.print_message(f"read {source}: {summary.from_format}")
    output.print_file_notes(summary)
    if summary.resumed_at:
        output.print_message(f"resumed after {output.quantity(summary.resumed_at, 'sentence')} of an interrupted run")
    statistics = summary.statistics
    gold = output.quantity(summary.before.sentences, "gold sentence")
    output_counts = f"{statistics.accepted:,} new, {summary.after.sentences:,} written ({summary.seconds:.1f} s)"
    output.print_message(f"{summary.method}: {gold} in, {output_counts}")
    for reason, count in statistics.missing.most_common():
        output.print_message(f"  not generated: {count:,} ({reason})")
    rejected = statistics.rejected
    names = dict.fromkeys(filters if filters is not None else [r.partition(": ")[0] for r in rejected if ": " in r])
    by_filter = {r: rejected[r] for name in names for r in rejected if r.startswith(f"{name}: ")}
    output.print_rejections(by_filter)
    output.print_relabelling(statistics.relabelled)
    for reason, count in sorted(rejected.items()):
        redrawn = count - statistics.missing[reason]
        if redrawn > 0 and reason not in by_filter:
            output.print_message(f"  rejected and redrawn: {redrawn:,} ({reason})")
    _print_mentions(summary.before, summary.after)
    output.print_message(f"wrote {output.shown_path(summary.output)}: {summary.to_format}")


def _print_mentions(before: CorpusStatistics, after: CorpusStatistics) -> None:
    if after.mentions:
        output.print_message(f"  {'mentions':<20} {'before':>9} {'after':>9}")
    for label in sorted({*before.mentions, *after.mentions}):
        output.print_message(f"  {label:<20} {before.mentions[label]:>9,} {after.mentions[label]:>9,}")


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
    "make a labelled corpus larger",
    _add_options,
    _run,
    description="Write the gold sentences followed by the augmented sentences.\n"
    "Parameters of a method: entaug augment --method NAME --help",
    is_resumable=True,
)
