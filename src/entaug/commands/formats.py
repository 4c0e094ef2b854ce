"""``entaug formats``: list the formats, or describe a format."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

from entaug.commands import options, output
from entaug.commands.command import Command
from entaug.config.params import parameters

__all__ = ["CAPABILITIES", "COMMAND"]

CAPABILITIES = {
    "nested": "nested ones",
    "discontinuous": "discontinuous mentions",
    "columns": "further columns",
    "fields": "further fields and provenance",
    "spaces": "white space between tokens",
}
"""Descriptions of what formats can store besides flat mentions, by field of `FormatCapabilities`."""


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("name", nargs="?", help="a format")
    options.add_json_option(parser, "print JSON")


def _run(args: argparse.Namespace) -> int:
    from entaug.formats import FORMATS, find_format

    formats = [find_format(name) for name in ([args.name] if args.name else FORMATS.usable())]
    if not args.name:
        output.print_problems(FORMATS)
    if args.json:
        records = [
            {
                "name": format_.name,
                "title": format_.title,
                "extensions": format_.extensions,
                **dataclasses.asdict(format_.carries),
            }
            for format_ in formats
        ]
        output.print_json(records[0] if args.name else records)
        return output.ExitCode.OK
    for format_ in formats:
        names = [field.name for field in dataclasses.fields(format_.carries) if getattr(format_.carries, field.name)]
        stored = ", ".join(["flat mentions", *(CAPABILITIES[name] for name in names)])
        files = [*format_.extensions, *(["a folder"] if getattr(format_, "folder", False) else [])]
        print(f"{format_.name:<15} {format_.title} ({', '.join(files) or 'any extension'})\n{'':<15} stores {stored}")
    if args.name:
        [format_] = formats
        dialect: Any = type(format_.dialect())
        description = (sys.modules[type(format_).__module__].__doc__ or "").strip()
        # Fields that do not count in comparisons of layouts are only detected, and cannot be set.
        detected = {field.name for field in dataclasses.fields(dialect) if not field.compare}
        settable = [parameter for parameter in parameters(dialect) if parameter.name not in detected]
        print(f"\n{description}\n\noptions (--layout NAME=VALUE, --to-layout NAME=VALUE):{'' if settable else ' none'}")
        for parameter in settable:
            text = options.parameter_help(parameter, with_default=False)
            print(f"  {parameter.name} = {parameter.default!r}: {text}")
    return output.ExitCode.OK


COMMAND = Command("list the formats, or describe a format", _add_options, _run)
