"""``entaug convert``: change the format, layout or tag scheme of a corpus."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command, add_jobs_option

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("input", help="the file, or - for standard input")
    parser.add_argument("output", nargs="?", default="-", help="the new file (default: - for standard output)")
    parser.add_argument("--force", action="store_true", help="replace an output that exists")
    options.add_loss_option(parser)
    add_jobs_option(parser)
    options.add_json_option(parser)
    options.add_read_options(parser)
    options.add_write_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.convert import convert_file
    from entaug.files.streams import is_stdout

    with output.show_progress() as progress:
        summary = convert_file(
            args.input,
            args.output,
            force=args.force,
            **options.read_options(args),
            **options.write_options(args),
            allow_loss=args.allow_loss,
            jobs=args.jobs,
            progress=progress,
        )
    if args.json:
        output.print_json(summary, to_stderr=is_stdout(args.output))
        return output.ExitCode.OK
    output.print_file_notes(summary)
    output.print_message(output.quantity(summary.counts.sentences, "sentence"))
    output.print_message(f"  from {summary.from_format}\n  to   {summary.to_format}")
    return output.ExitCode.OK


COMMAND = Command("change the format, layout or tag scheme", _add_options, _run)
