"""A command: a function whose parameters are its options, and whose result says what was done."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from entaug.commands.output import print_json, print_message, print_note, show_progress
from entaug.config.params import REQUIRED, Parameter, parameters
from entaug.errors import ParameterError
from entaug.files.streams import is_stdout

_PLAIN = (str, Path, Sequence, Iterable)  # types of which any text is a value
# Fields of `FileJob`, which groups of options give.
_FILE_OPTIONS = ("force", "repair", "from_format", "to_format", "read_options", "write_options", "allow_loss")


class Summary:
    """Base of the results of commands: its text is what the command prints."""

    exit_code = 0

    def lines(self) -> Iterable[str]:
        """Return what was done, for the user."""
        raise NotImplementedError

    def to_dict(self) -> Any:
        """Return the result for JSON."""
        return self

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True)
class OptionGroup:
    """Options that several commands share: how they are added, and the arguments of the function that they give."""

    add: Callable[[argparse.ArgumentParser], object]
    values: Callable[[argparse.Namespace], dict[str, Any]] = lambda _: {}


@dataclass(frozen=True)
class Command:
    """A command of the program.

    The options are made from the annotations of the function's parameters and from its docstring. A parameter without
    a default is positional, ``output`` is ``-o``, ``as_json`` is ``--json``; callbacks are no options.

    Args:
        function: the function; what it returns is printed.
        description: the description, for the help.
        options: what is special about the option of a parameter, as keywords of `add_argument`, and its ``flags``
            (none: it is positional); None if it has no option.
        shared: groups of options that other commands have too.
        more: adds options that depend on other options.
        values: returns further arguments of the function.
        show: prints the result, unless as JSON.
        record: returns the result for JSON.
        progress: shows the progress within a block.
        is_resumable: whether the same command goes on after an interruption.
    """

    function: Callable[..., Any]
    description: str
    options: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    shared: Sequence[OptionGroup] = ()
    more: Callable[[argparse.ArgumentParser, Sequence[str]], None] | None = None
    values: Callable[[argparse.Namespace], dict[str, Any]] = lambda _: {}
    show: Callable[[argparse.Namespace, Any], None] | None = None
    record: Callable[[Any], Any] = lambda result: result.to_dict()
    progress: Callable[..., contextlib.AbstractContextManager[Any]] = show_progress
    is_resumable: bool = False

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the function that have options."""
        hints = typing.get_type_hints(self.function, include_extras=True)
        fields: list[tuple[str, Any, Any]] = []
        for name, one in inspect.signature(self.function).parameters.items():
            is_option = name not in _FILE_OPTIONS and self.options.get(name, {}) is not None
            if is_option and one.kind is not one.VAR_KEYWORD:
                default = REQUIRED if one.default is one.empty else one.default
                fields.append((name, hints[name], field(default=default)))
        described = {"__doc__": self.function.__doc__}
        found = parameters(dataclasses.make_dataclass("Options", fields, namespace=described, kw_only=True))
        return tuple(one for one in found if not any(_origin(kind.type) is Callable for kind in one.alternatives))

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
            "on_wait": lambda: print_message(f"waiting: another process works on {args.output}"),
        }
        wanted = inspect.signature(self.function).parameters
        values |= {name: call for name, call in calls.items() if name in wanted and name not in values}
        with self.progress(quiet=getattr(args, "quiet", False)) as progress:
            if "progress" in wanted:
                values.setdefault("progress", progress)
            result = self.function(**values)
        if getattr(args, "json", False):
            print_json(self.record(result), to_stderr="output" in args and is_stdout(args.output))
        elif self.show is not None:
            self.show(args, result)
        elif isinstance(result, Summary) and not getattr(args, "quiet", False):
            for line in result.lines():
                print_message(line)
        return getattr(result, "exit_code", 0)


def _origin(kind: Any) -> Any:
    return typing.get_origin(kind) or kind


# ---------------------------------------------------------------------------------------------- options of parameters


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
    kinds = [kind.type for kind in parameter.alternatives]
    flags: Sequence[str] = ("--" + parameter.name.replace("_", "-"),)
    keywords: dict[str, Any] = {"default": argparse.SUPPRESS, "help": parameter_help(parameter).replace("%", "%%")}
    if parameter.is_flag and is_argument:
        keywords["action"] = "store_true"
    elif parameter.is_flag:
        keywords["action"] = argparse.BooleanOptionalAction
    else:
        keywords["metavar"] = parameter.name.upper()
        if parameter.metadata.get("repeatable"):
            keywords["action"] = "append"
        elif is_argument and _origin(kinds[0]) in (Sequence, Iterable):
            keywords |= {"action": "extend", "nargs": "+"}
        if not {Path, Sequence, Iterable} & {*map(_origin, kinds)}:
            keywords["type"] = _converter(parameter)
    if is_argument and parameter.name == "output":
        flags = ("-o", "--output")
        keywords |= {"default": "-"}
    elif is_argument and parameter.default is REQUIRED:
        flags = ()
    if special.get("nargs") == "*":
        keywords["default"] = []
    flags = special.pop("flags", flags)
    keywords |= special
    if flags:
        parser.add_argument(*flags, dest=parameter.name, **keywords)
    else:
        positional = {name: value for name, value in keywords.items() if name != "default" or "nargs" in special}
        parser.add_argument(parameter.name, **positional)
        if special.get("nargs") in ("+", "*"):
            parser.set_defaults(several_inputs=parameter.name)


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
