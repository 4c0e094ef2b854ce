"""Output of commands: messages, JSON, progress bars."""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

from entaug.core.changes import CORRECTED
from entaug.errors import InputWarning, readable
from entaug.files.json_text import json_text
from entaug.metrics.tables import padded, quantity, times

_MAX_NOTES = 20
_PARAMETER = re.compile(r"(?<![\w`])`(\w+)(?:=([^`]+))?`(?![\w`])")  # in messages of the library
_WRITE_OPTION = re.compile(r"`write_options=\{'(\w+)': ([^`]+)\}`")
_SETTING = re.compile(r"`use_compute_settings\((\w+)=([^`]+)\)`")
_actions: dict[str, argparse.Action] = {}  # of the command that is running, by name
_own_options: set[str] = set()  # the options of formats that are options of the program too


def set_parser(parser: argparse.ArgumentParser, own_options: Iterable[str] = ()) -> None:
    """Let messages name the options of this parser, among them these options of formats."""
    _own_options.update(own_options)
    _actions.clear()
    _actions.update({action.dest: action for action in parser._actions if action.option_strings})  # noqa: SLF001


def with_options(text: str, *, writes: bool = False) -> str:
    """A message of the library with options of the command in the place of the parameters that it names."""

    def option(match: re.Match[str], *, writes: bool = writes) -> str:
        from entaug.formats.files import is_option

        name, value = match.groups()
        layout = "to_layout" if writes else "layout"
        is_of_format = value is not None and name not in _own_options and is_option(name)
        if is_of_format and layout in _actions:  # a command may have another option of that name
            return f"--{layout.replace('_', '-')} {_plain(f'{name}={value}')}"
        for dest in (f"{'to' if writes else 'from'}_{name}", name):
            if (action := _actions.get(dest)) and not is_of_format:
                is_flag = value is None or action.nargs == 0
                flag = next(one for one in action.option_strings if one.startswith("--"))
                return flag if is_flag else f"{flag} {_plain(value)}"
        return match[0]

    text = _SETTING.sub(option, _WRITE_OPTION.sub(partial(option, writes=True), text))
    return _PARAMETER.sub(option, text)


def _plain(value: str) -> str:
    """A value of Python as it is given to an option."""
    value = re.sub("""(?<==)\\[|^\\[|]$|['"]|(?<=,) """, "", value)
    value = re.sub("(?:^|(?<==))(True|False)$", lambda match: match[0].lower(), value)
    return shlex.quote(value) if " " in value else value


def print_message(text: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(readable(with_options(text), keep="\t\n") + "\n")


def print_json(value: Any, *, to_stderr: bool = False) -> None:
    """Print a value as JSON."""
    (sys.stderr if to_stderr else sys.stdout).write(_printed_json(value))


def _printed_json(value: Any) -> str:
    """The JSON of a result, whose notes and errors name options of the program."""

    def told(messages: Any) -> Any:
        if isinstance(messages, Mapping):  # numbers by message
            return {with_options(message): number for message, number in messages.items()}
        return [with_options(message) for message in messages]

    if is_dataclass(value) and not isinstance(value, type):
        value = {one.name: getattr(value, one.name) for one in fields(value) if not one.name.startswith("_")}
    if isinstance(value, Mapping):
        value = {**value, **{name: told(value[name]) for name in ("notes", "errors") if name in value}}
    return json_text(value, indent=True) + "\n"


def print_note(note: str) -> None:
    """Print a note on standard error."""
    print_message(f"note: {note}")


def write_table(
    output: Any, record: Any, markdown: Callable[[], str], table: Callable[[], str], *, as_json: bool, force: bool
) -> None:
    """Write a result as JSON, Markdown or a table, by the extension of the output."""
    from entaug.formats.file_job import write_text

    if as_json or str(output).endswith(".json"):
        text = _printed_json(record)
    else:
        text = markdown() if str(output).endswith(".md") else with_options(table())
    write_text(text, output, force=force)


def written_lines(*paths: str | None) -> list[str]:
    """Return the names of files that were written, for the user."""
    return [f"wrote {path}" for path in paths if path not in (None, "-")]


def shown_path(path: str) -> str:
    """Return the name of an output for messages."""
    return "standard output" if path == "-" else path


def label_lines(counts: Mapping[str, int], *others: Mapping[str, int]) -> Iterator[str]:
    """Return the number of mentions of each type, a line each; of several counts in columns."""
    for label in sorted({name for one in (counts, *others) for name in one}):
        yield f"  {padded(label, 20)} " + " ".join(f"{one.get(label, 0):>9,}" for one in (counts, *others))


def file_lines(summary: Any) -> Iterator[str]:
    """Return the repairs, notes and losses of reading and writing a file."""
    from entaug.formats.base import note_lines

    for name, count in sorted(summary.repaired.items()):
        yield f"repaired: {count:,} ({name})"
    notes = note_lines(summary.notes) if isinstance(summary.notes, Mapping) else summary.notes
    yield from (f"note: {note}" for note in notes[:_MAX_NOTES])
    if len(notes) > _MAX_NOTES:
        yield f"note: {len(notes) - _MAX_NOTES:,} more notes; see --json"
    for name, count in sorted(summary.lost.items()):
        yield f"note: dropped, because the output format cannot store it: {name} ({times(count)})"


@contextlib.contextmanager
def print_warnings() -> Iterator[None]:
    """Print the notes on files that are read within the block, each once."""
    printed: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", InputWarning)
        show = warnings.showwarning

        def print_or_show(message: Warning | str, category: type[Warning], *args: Any, **options: Any) -> None:
            if not issubclass(category, InputWarning):
                show(message, category, *args, **options)
            elif str(message) not in printed:
                printed.add(str(message))
                print_note(str(message))

        warnings.showwarning = print_or_show
        yield


def rejection_lines(rejected: Mapping[str, int]) -> Iterator[str]:
    """Return how many sentences each filter rejected, by reason."""
    from entaug.methods.types import REVIEWED

    names = {REVIEWED.reason: "review: rejected in the report"}
    given = {names.get(text, text if ": " in text else f"an earlier run: {text}"): n for text, n in rejected.items()}
    for name, reasons in _grouped(given).items():
        yield f"  rejected by {name}: {sum(reasons.values()):,} ({_ordered(reasons, '; ')})"


def relabelling_lines(relabelled: Mapping[str, int]) -> Iterator[str]:
    """Return how many mentions a teacher or a reviewer changed, by change and label."""
    for change, labels in sorted(_grouped(relabelled).items()):
        number = quantity(sum(labels.values()), "mention")
        by = "in review" if change == CORRECTED else "by the teacher"
        yield f"  {change} {by}: {number} ({_ordered(labels, ', ')})"


def _grouped(counts: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Counts by the beginning of their names, ``"filter: reason"``."""
    groups: dict[str, dict[str, int]] = {}
    for text, count in counts.items():
        group, _, name = text.partition(": ")
        groups.setdefault(group, {})[name] = count
    return groups


def _ordered(counts: Mapping[str, int], separator: str) -> str:
    """The counts, the largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return separator.join(f"{name}: {count:,}" for name, count in ordered)
