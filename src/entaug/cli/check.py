"""``entaug check``: validate a corpus."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.cli.command import Command
from entaug.cli.options import add_json_option, add_read_options, read_options
from entaug.cli.output import ExitCode, print_file_notes, print_json, print_message, quantity, show_progress

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    del argv
    parser.add_argument("input", help="the file, or - for standard input")
    add_json_option(parser)
    add_read_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.workflows.check import check_file

    with show_progress() as progress:
        on_fault = None if args.json else print
        summary = check_file(args.input, **read_options(args), on_fault=on_fault, progress=progress)
    code = ExitCode.FAULTS if summary.faults else ExitCode.OK
    if args.json:
        print_json(summary)
        return code
    counts = summary.counts
    if summary.format:
        print_message(f"{args.input}: {summary.format}")
    print_file_notes(summary)
    print_message(
        f"{quantity(counts.sentences, 'good sentence')}, {quantity(counts.tokens, 'token')}, "
        f"{quantity(counts.mentions.total(), 'mention')} "
        f"({counts.nested:,} nested, {counts.discontinuous:,} discontinuous)"
    )
    if summary.repeated:
        print_message(f"{quantity(summary.repeated, 'sentence')} equal to an earlier one")
    for label, count in sorted(counts.mentions.items()):
        print_message(f"  {label:<20} {count:>9,}")
    print_message(quantity(len(summary.faults), "fault") if summary.faults else "no faults")
    return code


COMMAND = Command(
    "validate a corpus", _add_options, _run, description="Report every fault of a corpus with its line, and count."
)
