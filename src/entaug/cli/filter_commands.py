"""The commands around filters: parsing and printing, as in `entaug.cli.main`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from entaug.cli.main import OK, _n, _progress, _say_line, _say_notes, _say_repairs, print_json, say_refusals
from entaug.cli.options import (
    Once,
    add_computing,
    add_filters,
    add_reading,
    add_review,
    add_writing,
    filters_given,
    reading,
    writing,
)
from entaug.params import parameters

if TYPE_CHECKING:
    from entaug.filters import Filter

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the commands to those of `entaug.cli.main`."""
    filters = commands.add_parser("filters", help="list the filters, or tell about one")
    filters.add_argument("name", nargs="?", help="a filter")
    filters.add_argument("--json", action="store_true", help="print JSON")
    filters.set_defaults(run=_filters)

    judge = commands.add_parser(
        "filter",
        help="leave out augmented sentences that were made already",
        description="Write gold sentences and those new ones that all filters keep, in the order of the input.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    judge.add_argument("input", help="augmented sentences, or - for standard input")
    judge.add_argument("-o", "--output", default="-", help="where to write (default: - for standard output)")
    judge.add_argument(
        "--gold",
        action=Once,
        metavar="FILE",
        help="what was augmented, where the input lacks it or says nothing of provenance",
    )
    judge.add_argument("--rejected", metavar="FILE", help="write what is left out, with why, as JSON lines")
    add_review(judge)
    judge.add_argument("--force", action="store_true", help="replace outputs that exist")
    judge.add_argument(
        "--lose",
        default="",
        metavar="KINDS",
        help="what may be left out where another format has no place for it: id, text, column, field ..., or all",
    )
    add_filters(judge)
    add_reading(judge)
    add_writing(judge)
    add_computing(judge)
    judge.set_defaults(run=_filter)


def _filters(args: argparse.Namespace) -> int:
    from entaug.filters import FILTERS

    found = [FILTERS[args.name]] if args.name else list(FILTERS.values())
    if args.json:
        print_json(
            [
                {
                    "name": cls.name,
                    "summary": cls.summary,
                    "class": cls.__name__,
                    "reasons": cls.reasons,
                    "parameters": {p.name: p.default for p in parameters(cls)},
                }
                for cls in found
            ]
        )
        return OK
    say = sys.stdout.write
    if not args.name:
        wide = max(map(len, FILTERS))
        for cls in found:
            say(f"{cls.name:<{wide}}  {cls.summary}\n{'':<{wide}}  {_usual(cls)}\n")
        say("\nMore about one: entaug filters NAME. For use: --filter NAME, of augment or filter\n")
        return OK
    [cls] = found
    say(f"{cls.name} (entaug.filters.{cls.__name__}): {cls.summary}\n\n")
    say(f"{(cls.__doc__ or '').partition('Args:')[0].strip()}\n\nparameters:\n")
    for parameter in parameters(cls):
        how = f" (from {parameter.metadata['given']})" if "given" in parameter.metadata else ""
        say(f"  {parameter.name} = {parameter.default!r}: {parameter.description}{how}\n")
    say("\nreasons:\n" + "".join(f"  {reason}\n" for reason in cls.reasons))
    return OK


def _usual(cls: type[Filter]) -> str:
    """A filter with its parameters as they are unless given."""
    usual = [f"{f.name}={str(f.default).lower()}" for f in parameters(cls) if "given" not in f.metadata]
    return f"{cls.name}:{','.join(usual)}"


def _filter(args: argparse.Namespace) -> int:
    from entaug.workflows.common import STDOUT, check_apart
    from entaug.workflows.filter import filter_file

    check_apart([args.output, args.rejected], args.held_out)
    with _progress() as progress:
        summary = filter_file(
            args.input,
            args.output,
            filters_given(args),
            gold=args.gold,
            rejected=args.rejected,
            review=args.apply_review,
            lose=[kind.strip() for kind in args.lose.split(",") if kind.strip()],
            force=args.force,
            **reading(args),
            **writing(args),
            progress=progress,
        )
    if args.json:
        print_json(summary, to_stderr=args.output in STDOUT)
        return OK
    _say_repairs(summary.repaired)
    _say_notes(summary.notes)
    kept = f"{summary.kept:,} of {_n(summary.judged, 'new sentence')} kept"
    gold = f", and {_n(summary.gold, 'gold sentence')}" if summary.gold else ""
    _say_line(f"{kept}{gold}: {summary.after.sentences:,} written ({summary.seconds:.1f} s)")
    say_refusals(summary.refused)
    for file in filter(None, (args.rejected, args.output)):
        _say_line(f"wrote {'standard output' if file == '-' else file}")
    return OK
