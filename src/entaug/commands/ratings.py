"""``entaug ratings``: merge the ratings that several people gave on a page of ``entaug rate``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("key", metavar="KEY", help="the key that entaug rate wrote beside the page")
    parser.add_argument("files", nargs="*", metavar="FILE", help="what the raters exported, one file of each")
    parser.set_defaults(several_inputs="files")
    options.add_output_options(
        parser,
        help="the output file: Markdown for .md, JSON for .json, else a table (default: - for standard output)",
    )
    parser.add_argument("--merged", metavar="FILE", help="also write all ratings with methods and texts, as JSON lines")
    parser.add_argument("--samples", type=int, default=1000, help="bootstrap samples (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the resampling (default: 0)")
    options.add_json_option(parser, "write JSON")


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.ratings import merge_ratings

    merge_ratings(
        args.key,
        args.files,
        args.output,
        merged=args.merged,
        samples=args.samples,
        seed=args.seed,
        as_json=args.json,
        force=args.force,
    )
    for path in (args.output, args.merged):
        if path not in (None, "-"):
            output.print_message(f"wrote {path}")
    return output.ExitCode.OK


COMMAND = Command(
    "merge the ratings of several people: means of methods, and agreement",
    _add_options,
    _run,
    description="Merge the files that raters exported from a page of entaug rate: the mean rating of each method on\n"
    "each scale with its 95 % interval, and Krippendorff's alpha, the agreement of the raters.",
)
