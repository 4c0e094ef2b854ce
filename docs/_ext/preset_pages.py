"""The tables of the presets of papers, from the presets themselves."""

from __future__ import annotations

from entaug.config.presets import Preset, preset_rows, section
from entaug.methods import METHODS
from page_text import table

__all__ = ["preset_tables"]


def preset_tables() -> str:
    """For each method with the preset of a paper: its settings with their sources, and what is different on purpose."""
    parts = []
    for name in METHODS:
        preset = METHODS[name].presets.get("paper")
        if not isinstance(preset, Preset):
            continue
        rows = [
            (f"`{row.parameter}`", f"`{row.value!r}`", f"`{row.default!r}`", row.source, row.comment)
            for row in preset_rows(METHODS[name], "paper")
        ]
        parts += [
            f"## `{name}`: {preset.paper}\n",
            table(("setting", "paper", "default", "where the paper says so", "remarks"), rows),
        ]
        if preset.differences:
            differences = [(d.topic, section(d.source), d.comment) for d in preset.differences]
            parts += ["Different on purpose:\n", table(("the paper", "where", "here, and why"), differences)]
    return "\n".join(parts)
