"""``entaug advise``: forecast what more sentences, unlabelled text or a larger encoder would bring."""

from __future__ import annotations

import argparse

from entaug.commands.command import Command
from entaug.commands.options import COMPUTING, FORCE, JSON, READING
from entaug.commands.output import written_lines
from entaug.study.advise import advise
from entaug.study.engine import show_study

COMMAND = Command(
    advise,
    {"output": {"default": argparse.SUPPRESS}, "budget": {"metavar": "MINUTES"}, "runs": {"metavar": "FOLDER"}},
    (FORCE, JSON, READING, COMPUTING),
    show=lambda _, advice: [*advice.lines(), *written_lines(advice.output)],
    progress=show_study,
    is_resumable=True,
)
