"""``entaug advise``: forecast what more sentences, unlabelled text or a larger encoder would bring."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from entaug.commands.command import Command
from entaug.commands.options import COMPUTING, FORCE, JSON, READING
from entaug.commands.output import written_lines
from entaug.study.advice import Advice
from entaug.study.advise import advise
from entaug.study.engine import show_study


def _show(_: argparse.Namespace, advice: Advice) -> Iterator[str]:
    yield from advice.lines()
    yield from written_lines(advice.output)


COMMAND = Command(
    advise,
    {
        "output": {"default": argparse.SUPPRESS},
        "budget": {"metavar": "MINUTES"},
        "runs": {"metavar": "FOLDER"},
        "repair": None,
        "from_format": None,
        "read_options": None,
    },
    (FORCE, JSON, READING, COMPUTING),
    show=_show,
    progress=show_study,
    is_resumable=True,
)
