"""``entaug merge``: join the shards of a corpus that many machines augmented."""

from __future__ import annotations

import argparse

from entaug.commands.augment import summary_lines
from entaug.commands.command import Command
from entaug.commands.options import FORCE, JSON, QUIET
from entaug.commands.output import print_message
from entaug.methods.accepting import AugmentSummary
from entaug.methods.shards import merge_shards

__all__ = ["COMMAND"]


def _show(args: argparse.Namespace, summary: AugmentSummary) -> None:
    for line in () if args.quiet else summary_lines(summary):
        print_message(line)


COMMAND = Command(
    merge_shards,
    "Write what one process would have written without shards: see entaug augment --shard.",
    {"inputs": {"nargs": "+", "metavar": "SHARDS"}, "rejected": {"metavar": "FILE"}, "allow_empty": None},
    (FORCE, JSON, QUIET),
    show=_show,
    is_resumable=True,
)
