"""``entaug filter``: remove augmented sentences that filters or a review reject."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command, add_jobs_option

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("input", help="augmented sentences, or - for standard input")
    options.add_output_options(parser)
    options.add_gold_option(
        parser, "the gold file; required if the input lacks the gold sentences or has no provenance"
    )
    parser.add_argument(
        "--rejected", metavar="FILE", help="write rejected sentences with their reasons to this JSON Lines file"
    )
    options.add_review_option(parser)
    options.add_loss_option(parser)
    options.add_json_option(parser)
    options.add_filter_options(parser)
    options.add_read_options(parser)
    options.add_write_options(parser)
    add_jobs_option(parser, default=1)
    options.add_compute_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.filter import filter_file
    from entaug.files.streams import is_stdout
    from entaug.formats.file_job import check_apart

    check_apart([args.output, args.rejected], args.held_out)
    with output.show_progress() as progress:
        summary = filter_file(
            args.input,
            args.output,
            options.named_filters(args),
            gold=args.gold,
            rejected=args.rejected,
            review=args.apply_review,
            allow_loss=args.allow_loss,
            force=args.force,
            **options.read_options(args),
            **options.write_options(args),
            jobs=args.jobs,
            progress=progress,
        )
    if args.json:
        output.print_json(summary, to_stderr=is_stdout(args.output))
        return output.ExitCode.OK
    output.print_file_notes(summary)
    kept = f"{summary.kept:,} of {output.quantity(summary.filtered, 'augmented sentence')} kept"
    gold = f", and {output.quantity(summary.gold, 'gold sentence')}" if summary.gold else ""
    output.print_message(f"{kept}{gold}: {summary.after.sentences:,} written ({summary.seconds:.1f} s)")
    output.print_rejections(summary.rejected)
    for path in filter(None, (args.rejected, args.output)):
        output.print_message(f"wrote {output.shown_path(path)}")
    return output.ExitCode.OK


COMMAND = Command(
    "remove augmented sentences that filters reject",
    _add_options,
    _run,
    description="Write the gold sentences and the accepted augmented sentences, in the order of the input.",
)
