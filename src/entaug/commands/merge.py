"""``entaug merge``: join the parts of an augmented corpus."""

from __future__ import annotations

import argparse

from entaug.commands.augment import summary_lines
from entaug.commands.command import Command
from entaug.commands.options import FORCE, JSON, QUIET
from entaug.commands.output import print_message
from entaug.methods.augment import AugmentSummary
from entaug.methods.parts import merge_parts


def _show(args: argparse.Namespace, summary: AugmentSummary) -> None:
    for line in () if args.quiet else summary_lines(summary):
        print_message(line)


COMMAND = Command(
    merge_parts,
    {"inputs": {"nargs": "+", "metavar": "PARTS"}, "allow_empty": None},
    (FORCE, JSON, QUIET),
    show=_show,
    is_resumable=True,
)
