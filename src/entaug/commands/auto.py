"""``entaug auto``: find out which augmentation helps on a corpus, and train with it."""

from __future__ import annotations

import argparse
from typing import Any

from entaug.commands.command import Command
from entaug.commands.options import COMPUTING, FORCE, JSON, READING, read_options
from entaug.commands.output import show_study
from entaug.study.auto import auto, read_plan_file


def _from_plan(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that the plan of an earlier result says, and options do not."""
    if not args.train.endswith(".toml"):
        return {}
    reading = read_options(args)
    given = vars(args).keys() - {"train", *reading} | {name for name, value in reading.items() if value}
    return {name: value for name, value in read_plan_file(args.train).items() if name not in given}


COMMAND = Command(
    auto,
    {
        "output": {"required": True, "metavar": "FOLDER"},
        "budget": {"metavar": "MINUTES"},
        "mentions": {"metavar": "FILE=LABEL"},
        "repair": None,
        "from_format": None,
        "read_options": None,
    },
    (FORCE, JSON, READING, COMPUTING),
    values=_from_plan,
    progress=show_study,
    is_resumable=True,
)
