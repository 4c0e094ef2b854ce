"""``entaug prompts``: list the prompts for instruct models, or print one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("name", nargs="?", help="a prompt; by default all are listed")
    options.add_output_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.backends.prompts import PLACEHOLDERS, prompt_text
    from entaug.errors import UnknownNameError
    from entaug.formats.file_job import write_text

    if args.name is None:
        width = max(map(len, PLACEHOLDERS))
        for name, placeholders in PLACEHOLDERS.items():
            print(f"{name:<{width}}  {', '.join(f'{{{placeholder}}}' for placeholder in placeholders)}")
        print("\nTo replace one: entaug prompts NAME -o mine.toml, change it, and give --prompt mine.toml")
    elif args.name in PLACEHOLDERS:
        write_text(prompt_text(args.name), args.output, force=args.force)
    else:
        raise UnknownNameError("prompt", args.name, PLACEHOLDERS)
    return output.ExitCode.OK


COMMAND = Command("list the prompts for instruct models, or print one to change it", _add_options, _run)
