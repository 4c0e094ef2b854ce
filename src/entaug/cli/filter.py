"""``entaug filter``: leave out augmented sentences that filters or a review reject."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.cli.command import Command
from entaug.cli.options import (
    Once,
    add_compute_options,
    add_filter_options,
    add_json_option,
    add_loss_option,
    add_output_options,
    add_read_options,
    add_review_option,
    add_write_options,
    named_filters,
    read_options,
    write_options,
)
from entaug.cli.output import (
    ExitCode,
    print_file_notes,
    print_json,
    print_message,
    print_rejections,
    quantity,
    show_progress,
    shown_path,
)

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    del argv
    parser.add_argument("input", help="augmented sentences, or - for standard input")
    add_output_options(parser)
    parser.add_argument(
        "--gold",
        action=Once,
        metavar="FILE",
        help="the file that was augmented, where the input lacks its sentences or has no provenance",
    )
    parser.add_argument("--rejected", metavar="FILE", help="a file for rejected sentences, as JSON lines with reasons")
    add_review_option(parser)
    add_loss_option(parser)
    add_json_option(parser)
    add_filter_options(parser)
    add_read_options(parser)
    add_write_options(parser)
    add_compute_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.files.streams import is_stdout
    from entaug.workflows.common import check_apart
    from entaug.workflows.filter import filter_file

    check_apart([args.output, args.rejected], args.held_out)
    with show_progress() as progress:
        summary = filter_file(
            args.input,
            args.output,
            named_filters(args),
            gold=args.gold,
            rejected=args.rejected,
            review=args.apply_review,
            lose=args.lose,
            force=args.force,
            **read_options(args),
            **write_options(args),
            progress=progress,
        )
    if args.json:
        print_json(summary, to_stderr=is_stdout(args.output))
        return ExitCode.OK
    print_file_notes(summary)
    kept = f"{summary.kept:,} of {quantity(summary.filtered, 'augmented sentence')} kept"
    gold = f", and {quantity(summary.gold, 'gold sentence')}" if summary.gold else ""
    print_message(f"{kept}{gold}: {summary.after.sentences:,} written ({summary.seconds:.1f} s)")
    print_rejections(summary.rejected)
    for path in filter(None, (args.rejected, args.output)):
        print_message(f"wrote {shown_path(path)}")
    return ExitCode.OK


COMMAND = Command(
    "leave out augmented sentences that filters reject",
    _add_options,
    _run,
    description="Write gold sentences and the augmented ones that all filters keep, in the order of the input.",
)
