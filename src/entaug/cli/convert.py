"""``entaug convert``: change the format, layout or tag scheme of a corpus."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.cli.command import Command
from entaug.cli.options import (
    add_json_option,
    add_loss_option,
    add_read_options,
    add_write_options,
    read_options,
    write_options,
)
from entaug.cli.output import ExitCode, print_file_notes, print_json, print_message, quantity, show_progress

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    del argv
    parser.add_argument("input", help="the file, or - for standard input")
    parser.add_argument("output", nargs="?", default="-", help="the new file (default: - for standard output)")
    parser.add_argument("--force", action="store_true", help="replace an output that exists")
    add_loss_option(parser)
    add_json_option(parser)
    add_read_options(parser)
    add_write_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.files.streams import is_stdout
    from entaug.workflows.convert import convert_file

    with show_progress() as progress:
        summary = convert_file(
            args.input,
            args.output,
            force=args.force,
            **read_options(args),
            **write_options(args),
            lose=args.lose,
            progress=progress,
        )
    if args.json:
        print_json(summary, to_stderr=is_stdout(args.output))
        return ExitCode.OK
    print_file_notes(summary)
    print_message(quantity(summary.counts.sentences, "sentence"))
    print_message(f"  from {summary.from_format}\n  to   {summary.to_format}")
    return ExitCode.OK


COMMAND = Command("change the format, layout or tag scheme", _add_options, _run)
