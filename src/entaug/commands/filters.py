"""``entaug filters``: list the filters, or describe a filter."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from entaug.commands import options, output
from entaug.commands.command import Command
from entaug.config.params import parameters

if TYPE_CHECKING:
    from entaug.filters import Filter

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("name", nargs="?", help="a filter")
    options.add_json_option(parser, "print JSON")


def _run(args: argparse.Namespace) -> int:
    from entaug.filters import FILTERS

    classes = {args.name: FILTERS[args.name]} if args.name else FILTERS.usable()
    if args.json:
        output.print_json(
            [
                {
                    "name": name,
                    "summary": cls.summary,
                    "class": cls.__name__,
                    "reasons": cls.reasons,
                    "parameters": {p.name: p.default for p in parameters(cls)},
                }
                for name, cls in classes.items()
            ]
        )
    elif args.name:
        _print_filter(args.name, classes[args.name])
    else:
        width = max(map(len, classes))
        for name, cls in classes.items():
            print(f"{name:<{width}}  {cls.summary}\n{'':<{width}}  {_text_form(name, cls)}")
        print("\nDescription of a filter: entaug filters NAME. To use it: entaug augment --filter NAME")
    if not args.name:
        output.print_problems(FILTERS)
    return output.ExitCode.OK


def _print_filter(name: str, cls: type[Filter]) -> None:
    print(f"{name} (entaug.filters.{cls.__name__}): {cls.summary}\n")
    print(f"{(cls.__doc__ or '').partition('Args:')[0].strip()}\n\nparameters:")
    for parameter in parameters(cls):
        given = f" (from {parameter.metadata['given']})" if "given" in parameter.metadata else ""
        text = options.parameter_help(parameter, with_default=False)
        print(f"  {parameter.name} = {parameter.default!r}: {text}{given}")
    print("\nreasons:\n" + "".join(f"  {reason}\n" for reason in cls.reasons), end="")


def _text_form(name: str, cls: type[Filter]) -> str:
    """Return a filter with its default parameters, in the syntax of ``--filter``."""
    defaults = [f"{p.name}={str(p.default).lower()}" for p in parameters(cls) if "given" not in p.metadata]
    return f"{name}:{','.join(defaults)}"


COMMAND = Command("list the filters, or describe a filter", _add_options, _run)
