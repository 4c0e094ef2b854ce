"""``entaug merge``: join the shards of a corpus that many machines augmented."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.augment import print_summary
from entaug.commands.command import Command

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("inputs", nargs="+", metavar="SHARDS", help="the files of all shards, or folders with them")
    options.add_output_options(parser)
    parser.add_argument(
        "--rejected", metavar="FILE", help="write the candidates that filters rejected to this JSON Lines file"
    )
    options.add_json_option(parser)
    parser.add_argument("--quiet", action="store_true", help="print only errors")


def _run(args: argparse.Namespace) -> int:
    from entaug.files.streams import is_stdout
    from entaug.methods.shards import merge_shards

    with output.show_progress(quiet=args.quiet) as progress:
        summary = merge_shards(args.inputs, args.output, force=args.force, rejected=args.rejected, progress=progress)
    if args.json:
        output.print_json(summary.to_dict(), to_stderr=is_stdout(args.output))
    elif not args.quiet:
        print_summary(summary, None)
    return output.ExitCode.OK


COMMAND = Command(
    "join the shards of an augmented corpus",
    _add_options,
    _run,
    description="Write what one process would have written without shards: see entaug augment --shard.",
    is_resumable=True,
)
