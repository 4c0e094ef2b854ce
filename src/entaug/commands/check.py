"""``entaug check``: validate a corpus."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command, add_jobs_option

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("input", help="the file, or - for standard input")
    parser.add_argument(
        "--phrases",
        nargs="?",
        const="projected",
        metavar="PARSER",
        help="also count phrases by category, as a constituency parser of the method cr gives them (without a value: "
        "projected)",
    )
    add_jobs_option(parser)
    options.add_json_option(parser)
    options.add_read_options(parser)
    options.add_compute_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.check import check_file

    with output.show_progress() as progress:
        on_error = None if args.json else print
        summary = check_file(
            args.input,
            **options.read_options(args),
            phrases=args.phrases,
            on_error=on_error,
            jobs=args.jobs,
            progress=progress,
        )
    code = output.ExitCode.INVALID if summary.errors else output.ExitCode.OK
    if args.json:
        output.print_json(summary)
        return code
    counts = summary.counts
    if summary.format:
        output.print_message(f"{args.input}: {summary.format}")
    output.print_file_notes(summary)
    output.print_message(
        f"{output.quantity(counts.sentences, 'valid sentence')}, {output.quantity(counts.tokens, 'token')}, "
        f"{output.quantity(counts.mentions.total(), 'mention')} "
        f"({counts.nested:,} nested, {counts.discontinuous:,} discontinuous)"
    )
    if summary.repeated:
        output.print_message(f"{output.quantity(summary.repeated, 'duplicate sentence')}")
    output.print_label_counts(counts.mentions)
    if summary.phrases is not None:
        output.print_message(f"phrases ({args.phrases}): all, and those that hold a mention")
        for category, count in summary.phrases.phrases.most_common():
            output.print_message(f"  {category:<20} {count:>9,} {summary.phrases.with_mention[category]:>9,}")
    output.print_message(output.quantity(len(summary.errors), "error") if summary.errors else "no errors")
    return code


COMMAND = Command(
    "validate a corpus",
    _add_options,
    _run,
    description="Report every error of a corpus with its line number, and count sentences, tokens and mentions.",
)
