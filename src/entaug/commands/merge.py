"""``entaug merge``: join the parts of an augmented corpus."""

from __future__ import annotations

from entaug.commands.augment import summary_lines
from entaug.commands.command import Command
from entaug.commands.options import FORCE, JSON, QUIET
from entaug.methods.parts import merge_parts

COMMAND = Command(
    merge_parts,
    {"inputs": {"nargs": "+", "metavar": "PARTS"}, "allow_empty": None},
    (FORCE, JSON, QUIET),
    show=lambda _, summary: summary_lines(summary),
    is_resumable=True,
)
