"""Options for unlabelled text, which several commands share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from entaug.commands import options
from entaug.errors import ParameterError

if TYPE_CHECKING:
    from entaug.core.corpus import UnlabelledText

__all__ = ["add_options", "read"]


def add_options(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the options for reading unlabelled text; see `read`."""
    group = parser.add_argument_group("unlabelled text" if required else "unlabelled text (for selftrain)")
    group.add_argument(
        "--unlabelled",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        required=required,
        help="text without labels: plain text, a folder of .txt files, one token a line, JSON lines with text or "
        "tokens, or a file in any format, whose labels are dropped",
    )
    group.add_argument(
        "--drop-held-out",
        action="store_true",
        help="leave out sentences of the text that are in a file given with --held-out, which is an error otherwise",
    )


def read(args: argparse.Namespace, gold: str) -> UnlabelledText:
    """Read the unlabelled text."""
    from entaug.files.streams import STDIN
    from entaug.formats import read_each
    from entaug.formats.unlabelled import read_unlabelled

    if gold == STDIN:
        message = "unlabelled text is tokenised as the training file, which cannot be standard input then"
        raise ParameterError(message, remedy="save it to a file")
    given = options.read_options(args)
    [corpus] = read_each([gold], given["from_format"], repair=given["repair"], beside=True, **given["read_options"])
    return read_unlabelled(
        args.unlabelled,
        corpus,
        held_out=args.held_out,
        drop_held_out=args.drop_held_out,
        language=given["read_options"]["language"],
    )
