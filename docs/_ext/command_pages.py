"""A page for each command of the program, generated from its parser."""

from __future__ import annotations

import argparse

from entaug.commands.main import COMMANDS, SUMMARIES, build_parser
from page_text import table

__all__ = ["command_pages"]

_WIDTH = 82  # columns of a synopsis


def command_pages() -> dict[str, str]:
    """The pages of the commands and their index, by path."""
    rows = [(f"[`entaug {name}`]({name}.md)", summary) for name, summary in SUMMARIES.items()]
    index = [
        "# Command line\n",
        table(("command", "purpose"), rows),
        "`-` stands for standard input or standard output (formats that are written in one piece, such as `.spacy`",
        "or a folder, need a name). Data goes to standard output, messages go to standard error; `--json` prints the",
        "summary as JSON. If a run is interrupted, the same command resumes it.\n",
        "```text",
        (build_parser().epilog or "").strip(),
        "```\n",
        "```{toctree}\n:hidden:\n",
        *COMMANDS,
        "```\n",
    ]
    return {"commands/index.md": "\n".join(index), **{f"commands/{name}.md": _page(name) for name in COMMANDS}}


def _page(name: str) -> str:
    parser = build_parser(name, ["--help-all"])
    formatter = argparse.HelpFormatter(parser.prog, width=_WIDTH)
    formatter.add_usage(parser.usage, parser._actions, [])  # noqa: SLF001
    parts = [f"# `entaug {name}`\n", f"{parser.description}\n", f"```text\n{formatter.format_help().strip()}\n```\n"]
    if name == "augment":
        parts.append("The options of a method are on [its page](/methods/index.md).\n")
    for group in parser._action_groups:  # noqa: SLF001
        actions = [action for action in group._group_actions if action.help is not argparse.SUPPRESS]  # noqa: SLF001
        if actions:
            parts += [f"## {(group.title or 'options').capitalize()}\n", table(("", ""), map(_row, actions))]
    parts.append("Exit codes: [command line](/commands/index.md).\n")
    return "\n".join(parts)


def _row(action: argparse.Action) -> tuple[str, str]:
    metavar = action.metavar if isinstance(action.metavar, str) else (action.dest or "").upper()
    if action.choices is not None and action.metavar is None:
        metavar = "{" + ",".join(map(str, action.choices)) + "}"
    value = "" if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction) else f" {metavar}"
    names = ", ".join(f"`{option}{value}`" for option in action.option_strings) or f"`{metavar}`"
    return names, (action.help or "").replace("%%", "%").replace("%(default)s", str(action.default))
