"""``entaug rate``: a page on which people rate augmented sentences."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command
from entaug.errors import ParameterError

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help="augmented files, of one method or several")
    parser.set_defaults(several_inputs="files")
    options.add_output_options(parser, default=None, help="the page for the raters, such as rate.html")
    parser.add_argument(
        "--key",
        metavar="FILE",
        help="the file that says which method each text is from, not for the raters (default: the name of the page "
        "with .key.json)",
    )
    options.add_gold_option(parser, "the gold file; required if the other files lack its sentences")
    parser.add_argument(
        "--with-gold", action="store_true", help="mix in gold sentences; they are not compared with an original"
    )
    parser.add_argument(
        "--scales",
        metavar="SCALES",
        help="names of scales joined by commas, or a TOML file (default: fluent,right,diverse); entda is the one scale "
        "of the paper's human evaluation",
    )
    parser.add_argument("--list-scales", action="store_true", help="print the packaged scales as TOML and exit")
    parser.add_argument("--sample", type=int, default=50, metavar="N", help="texts of each method (default: 50)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the sample and its order (default: 0)")
    parser.add_argument("--title", help="the title of the page, which should name no method (default: Rate texts)")
    options.add_json_option(parser)
    options.add_read_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.ratings import write_rating_page
    from entaug.report.ratings.page import packaged_scales_text, read_scales

    if args.list_scales:
        sys.stdout.write(packaged_scales_text())
        return output.ExitCode.OK
    if not args.files or args.output is None:
        what, remedy = ("file", "name augmented files") if not args.files else ("output", "name the page: -o rate.html")
        raise ParameterError(f"no {what} is given", remedy=remedy)
    given = options.read_options(args)
    summary = write_rating_page(
        args.files,
        args.output,
        key=args.key,
        gold=args.gold,
        scales=None if args.scales is None else read_scales(args.scales),
        sample=args.sample,
        with_gold=args.with_gold,
        seed=args.seed,
        title=args.title,
        force=args.force,
        format=given["from_format"],
        repair=given["repair"],
        **{name: value for name, value in given["read_options"].items() if value is not None},
    )
    if args.json:
        output.print_json(summary)
        return output.ExitCode.OK
    for note in summary.notes:
        output.print_message(f"note: {note}")
    items = ", ".join(f"{count:,} of {method}" for method, count in summary.items.items())
    output.print_message(
        f"wrote {summary.output}: {items}; {output.quantity(summary.ratings, 'rating')} for each rater"
    )
    output.print_message(f"wrote {summary.key}: keep it from the raters; entaug ratings needs it")
    return output.ExitCode.OK


COMMAND = Command(
    "write a page on which people rate augmented sentences without knowing their methods",
    _add_options,
    _run,
    description="Write a page of HTML on which people rate a sample of augmented sentences from 1 to 5, in random\n"
    "order and without knowing the methods, and the key that says which is which. Each rater opens the page in a\n"
    "browser and exports a file; entaug ratings merges them.",
)
