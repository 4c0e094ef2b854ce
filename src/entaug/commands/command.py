"""A command: a function whose parameters are its options, and whose result says what was done.

A module of this package whose docstring begins with the name of a command, as in ``entaug check``, is a command: its
``COMMAND`` has the function, and the first line of the docstring is its entry in the list of commands.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import time
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Self

from entaug.commands.output import file_lines, print_json, print_message, print_note, shown_path
from entaug.config.params import REQUIRED, Parameter, alternatives_of, parameters, parameters_of
from entaug.core.progress import show_progress
from entaug.errors import ParameterError
from entaug.files.streams import is_stdout

_LISTS = (Sequence, Iterable)
_PLAIN = (str, Path, *_LISTS)  # types of which any text is a value
# Parameters that are no options, or that options of `FileJob` give.
_WITHOUT_OPTION = ("progress", "report", "on_wait", "on_error", "force", "repair", "from_format", "read_options")


# -------------------------------------------------------------------------------------------------------------- results


class Summary:
    """Base of the results of commands: its lines are what the command prints."""

    exit_code = 0

    def lines(self) -> Iterable[str]:
        """Return what was done, for the user."""
        raise NotImplementedError

    def to_dict(self) -> Any:
        """Return the result for JSON."""
        return self

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """Return the lines for a notebook."""
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(kw_only=True)
class FileSummary(Summary):
    """Base of the results of commands that read a file, or write one."""

    input: str | list[str]
    output: str = ""
    from_format: str = ""
    to_format: str = ""
    repaired: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self._begun = time.monotonic()

    def finish(self, reading: Any = None, notes: Iterable[str] = ()) -> Self:
        """Take what was told while reading (`ReadReport`), further notes, and the time."""
        if reading is not None:
            self.repaired = reading.repaired
            self.notes.update(reading.notes)
        self.notes.update(notes)
        self.seconds = time.monotonic() - self._begun
        return self

    def lines(self) -> Iterator[str]:
        """Return the notes, the counts and the output, for the user."""
        yield from file_lines(self)
        yield from self.count_lines()
        if self.output:
            form = f": {self.to_format}" if self.to_format else ""
            yield f"wrote {shown_path(self.output)}{form} ({self.seconds:.1f} s)"

    def count_lines(self) -> Iterable[str]:
        """Return the counts, for the user."""
        return ()


# ------------------------------------------------------------------------------------------------------------- commands


@dataclass(frozen=True)
class OptionGroup:
    """Options that several commands share: how they are added, and the arguments of the function that they give."""

    add: Callable[[argparse.ArgumentParser], object]
    values: Callable[[argparse.Namespace], dict[str, Any]] = lambda _: {}


@dataclass(frozen=True)
class Command:
    """A command of the program.

    The options are made from the annotations of the function's parameters and from its docstring, which is the help. A
    parameter without a default is positional, ``output`` is ``-o``, ``as_json`` is ``--json``; callbacks are no
    options.

    Args:
        function: the function; what it returns is printed.
        options: what is special about the option of a parameter, as keywords of `add_argument`, and its ``flags``
            (none: it is positional); None if it has no option.
        shared: groups of options that other commands have too.
        more: adds options that depend on other options.
        values: returns further arguments of the function.
        show: returns the lines to print about the result on standard error, unless as JSON; by default its own.
        progress: shows the progress within a block.
        is_resumable: whether the same command goes on after an interruption.
    """

    function: Callable[..., Any]
    options: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    shared: Sequence[OptionGroup] = ()
    more: Callable[[argparse.ArgumentParser, Sequence[str]], None] | None = None
    values: Callable[[argparse.Namespace], dict[str, Any]] = lambda _: {}
    show: Callable[[argparse.Namespace, Any], Iterable[str]] | None = None
    progress: Callable[..., contextlib.AbstractContextManager[Any]] = show_progress
    is_resumable: bool = False

    @property
    def description(self) -> str:
        """The docstring of the function without its sections."""
        text = inspect.getdoc(self.function) or ""
        return text.partition("\n\nArgs:")[0].replace("``", "").replace("`", "")

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the function that have options."""
        return tuple(
            parameter
            for parameter in parameters_of(self.function)
            if parameter.name not in _WITHOUT_OPTION and self.options.get(parameter.name, {}) is not None
        )

    def add_options(self, parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
        """Add the options of the command."""
        for parameter in self.parameters:
            add_parameter(parser, parameter, is_argument=True, **(self.options.get(parameter.name) or {}))
        if self.more is not None:
            self.more(parser, argv)
        for group in self.shared:
            group.add(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Call the function with the parsed arguments, and print its result."""
        values = {one.name: vars(args)[one.name] for one in self.parameters if one.name in args}
        for given in (*(group.values for group in self.shared), self.values):
            values |= given(args)
        calls: dict[str, Any] = {
            "report": print_note,
            "on_wait": lambda: print_message(f"waiting: another process works on {_place_of(args)}"),
        }
        wanted = inspect.signature(self.function).parameters
        values |= {name: call for name, call in calls.items() if name in wanted and name not in values}
        with self.progress(quiet=getattr(args, "quiet", False)) as progress:
            if "progress" in wanted:
                values.setdefault("progress", progress)
            result = self.function(**values)
        if getattr(args, "json", False):
            record = result.to_dict() if hasattr(result, "to_dict") else result
            print_json(record, to_stderr="output" in args and is_stdout(args.output))
        elif not getattr(args, "quiet", False):
            for line in result.lines() if self.show is None else self.show(args, result):
                print_message(line)
        return getattr(result, "exit_code", 0)


def _place_of(args: argparse.Namespace) -> str:
    """The output of a command; of `advise`, which may have none, the folder of its runs."""
    return str(next(vars(args)[name] for name in ("output", "runs") if name in args))


def _origin(kind: Any) -> Any:
    return typing.get_origin(kind) or kind


# ---------------------------------------------------------------------------------------------- options of parameters


class Once(argparse.Action):
    """An option that must not be given twice."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        """Store the value."""
        if getattr(namespace, self.dest, None) is not None:
            parser.error(f"{option} is given twice; give one file")
        setattr(namespace, self.dest, values)


def split_names(text: str) -> list[str]:
    """Return the names of a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


_NAMES: dict[str, Any] = {"action": "store", "nargs": None, "type": split_names, "metavar": "NAMES"}
_SHARED: dict[str, dict[str, Any]] = {
    "output": {"flags": ("-o", "--output"), "default": "-"},
    "as_json": {"flags": ("--json",)},
    "gold": {"action": Once},
    "review": {"action": Once, "flags": ("--apply-review",), "metavar": "FILE"},
    "jobs": {"metavar": "N"},
    "recipes": _NAMES,
    "measures": _NAMES,
}
"""Keywords of options that mean the same in all commands."""


def parameter_help(parameter: Parameter, *, with_default: bool = True) -> str:
    """Return the description, valid values and default of a parameter."""
    is_told = with_default and parameter.default not in (None, REQUIRED, (), "-") and parameter.default is not False
    default = f" (default: {parameter.default})" if is_told else ""
    is_plain = parameter.is_flag or all(
        _origin(kind.type) in _PLAIN and not kind.constraints for kind in parameter.alternatives
    )
    expected = "" if is_plain else f": {parameter.expected}"
    return f"{parameter.description.rstrip('.').replace('`', '')}{expected}{default}"


def add_parameter(parser: Any, parameter: Parameter, *, is_argument: bool = False, **special: Any) -> None:
    """Add the option of a parameter; if it is not given, it is absent from the parsed arguments."""
    kinds = [_origin(kind.type) for kind in parameter.alternatives]
    items = [typing.get_args(kind.type) for kind in parameter.alternatives if _origin(kind.type) in _LISTS]
    is_file = any(one.type is Path for some in items for item in some for one in alternatives_of(item))
    is_file |= Path in kinds and parameter.default is None
    flags: Sequence[str] = ("--" + parameter.name.replace("_", "-"),)
    keywords: dict[str, Any] = {"default": argparse.SUPPRESS, "help": parameter_help(parameter).replace("%", "%%")}
    if parameter.is_flag:
        keywords["action"] = "store_true" if is_argument else argparse.BooleanOptionalAction
    else:
        keywords["metavar"] = "FILE" if is_file else parameter.name.upper()
        if parameter.metadata.get("repeatable"):
            keywords["action"] = "append"
        elif is_argument and kinds[0] in _LISTS:
            keywords |= {"action": "extend", "nargs": "+"}
        if not {Path, *_LISTS} & {*kinds}:
            keywords["type"] = _converter(parameter)
    if is_argument:
        flags = () if parameter.default is REQUIRED else flags
        special = {**_SHARED.get(parameter.name, {}), **special}
    if special.get("nargs") == "*":
        keywords["default"] = []
    flags = special.pop("flags", flags)
    keywords |= special
    if flags:
        parser.add_argument(*flags, dest=parameter.name, **keywords)
    else:
        positional = {name: value for name, value in keywords.items() if name != "default" or "nargs" in special}
        parser.add_argument(parameter.name, **positional)


def _converter(parameter: Parameter) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return parameter.parse(text)
        except ParameterError as error:
            raise argparse.ArgumentTypeError(error.message) from None

    return convert


def add_parameters(group: Any, cls: type, *, without: Sequence[str] = (), is_argument: bool = False) -> None:
    """Add an option for each parameter of a class, but for those that are taken from other options."""
    for parameter in parameters(cls):
        if parameter.name not in without and "given" not in parameter.metadata:
            add_parameter(group, parameter, is_argument=is_argument)


def given_parameters(args: argparse.Namespace, cls: type) -> dict[str, Any]:
    """Return the parameters of a class that were given as options."""
    return {p.name: vars(args)[p.name] for p in parameters(cls) if p.name in args and "given" not in p.metadata}
