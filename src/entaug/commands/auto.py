"""``entaug auto``: find out which augmentation helps on a corpus, and train with it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from entaug.commands.command import Command
from entaug.commands.options import COMPUTING, FORCE, JSON, READING, read_options
from entaug.study.auto import auto, read_plan_file
from entaug.study.auto_files import AutoSummary
from entaug.study.engine import show_study


def _from_plan(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that the plan of an earlier result says, and options do not."""
    if not (args.train or "").endswith(".toml"):
        return {}
    reading = read_options(args)
    given = vars(args).keys() - {"train", *reading} | {name for name, value in reading.items() if value}
    return {name: value for name, value in {"train": None, **read_plan_file(args.train)}.items() if name not in given}


def _show(_: argparse.Namespace, summary: AutoSummary) -> Iterator[str]:
    yield from (f"note: {note}" for note in summary.notes)
    yield from summary.lines()
    yield f"wrote {summary.output}: tagger, report.html, plan.toml ({summary.seconds / 60:.1f} minutes)"


COMMAND = Command(
    auto,
    {
        "train": {"nargs": "?", "default": None},
        "output": {"required": True, "metavar": "FOLDER"},
        "budget": {"metavar": "MINUTES"},
        "mentions": {"metavar": "FILE=LABEL"},
        "sources": {"metavar": "FILE.toml"},
    },
    (FORCE, JSON, READING, COMPUTING),
    values=_from_plan,
    show=_show,
    progress=show_study,
    is_resumable=True,
)
