"""The entry point of the program: selects the command, parses its options, reports errors on one line."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import difflib
import io
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from entaug._version import __version__
from entaug.backends.chat.settings import RequestSettings, use_request_settings
from entaug.backends.compute import ComputeSettings, use_compute_settings
from entaug.commands.command import Command, given_parameters
from entaug.commands.output import print_warnings, set_parser, with_options
from entaug.config.registry import Registry, extra_of
from entaug.errors import EntaugError, LossError, OutputError, UnknownNameError

_NAME = re.compile(r'"""``entaug ([\w-]+)``: (.+?)\.?"""')


def _summaries() -> dict[str, str]:
    """The purpose of each command, as the first line of its module says; none of them is imported for it."""
    summaries = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        with path.open(encoding="utf-8") as module:
            if found := _NAME.match(module.readline()):
                summaries[found[1]] = found[2].replace("``", "")
    return summaries


SUMMARIES = _summaries()
"""The purpose of each command."""
COMMANDS: Registry[Command] = Registry("command", {name: f"entaug.commands.{name}:COMMAND" for name in SUMMARIES})
"""The commands; each is a module of this package."""

# Options of which few users need one: shown with --help-all.
_RARE = {
    *("token_column", "tag_columns", "separator", "text_language", "split_sentences", "misaligned"),
    *("to_scheme", "to_tag_columns", "to_separator", "overlap", "layout", "to_layout", "allow_loss"),
    *("precision", "any_language", *(field.name for field in dataclasses.fields(RequestSettings))),
    *("max_attempts", "part", "executor", "address", "drop_held_out"),
    *("warmup_ratio", "warmup_steps", "weight_decay", "max_grad_norm", "head_learning_rate", "gold_learning_rate"),
    *("pretraining_epochs", "consistency", "averaged_share"),
}
_BAD_INPUT, _BAD_OUTPUT, _INTERRUPTED, _BROKEN_PIPE = 2, 3, 130, 141
_EXIT_CODES = """exit codes:
  0    success
  1    check found errors in the corpus
  2    wrong usage, invalid input, or a missing library or model
  3    the output exists or cannot be written
  130  interrupted (Ctrl-C); run the same command again to resume
  141  standard output was closed by its reader
"""


class _Parser(argparse.ArgumentParser):
    """An argparse parser with one-line errors; no abbreviations, because their meaning would depend on the method."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        self._check_options([] if args is None else list(args))
        return super().parse_known_args(args, namespace)

    def _check_options(self, args: list[str]) -> None:
        """Report options that do not exist, before others that are missing for that reason."""
        known = {option for action in self._actions for option in action.option_strings}
        for arg in takewhile(lambda arg: arg != "--", args):
            option = arg.partition("=")[0]
            if option.startswith("--") and " " not in option and option not in known:
                near = difflib.get_close_matches(option, [one for one in known if one.startswith("--")], n=1)
                self.error(f"unrecognized arguments: {option}{f'; did you mean {near[0]}?' if near else ''}")

    def error(self, message: str) -> NoReturn:
        self.exit(_BAD_INPUT, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    argv = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    interruption = _Interruption()
    try:
        args = _parse(argv)
        computing = use_compute_settings(**given_parameters(args, ComputeSettings))
        with computing, use_request_settings(**given_parameters(args, RequestSettings)), print_warnings():
            code = _run(args)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - what an interruption becomes in a library is not known
        if not (interruption.received or isinstance(error, KeyboardInterrupt)):
            return _report(error)
        is_resumable = bool(argv) and argv[0] in COMMANDS and COMMANDS[argv[0]].is_resumable
        sys.stderr.write(f"entaug: interrupted{'; run the same command again to resume' if is_resumable else ''}\n")
        return _INTERRUPTED
    return code


def _run(args: argparse.Namespace) -> int:
    """Run a command; an error about an option that a format does not have names the one that was typed."""
    try:
        code: int = args.run(args)
    except UnknownNameError as error:
        from entaug.commands.options import READ_OPTIONS, WRITE_OPTIONS

        for option, (_, name) in {**READ_OPTIONS, **WRITE_OPTIONS}.items():
            is_given = getattr(args, option, None) is not None
            if is_given and error.name == name and error.kind.startswith("option of "):
                error.message = error.message.replace(repr(name), f"--{option.replace('_', '-')}")
        raise
    return code


class _Interruption:
    """Makes the signals that ask the process to end raise ``KeyboardInterrupt``, and records that one was received."""

    # The record is needed because a library's C code may replace the exception: matplotlib raises `ValueError` where a
    # Python function that it calls is interrupted.

    def __init__(self) -> None:
        self.received = False
        with contextlib.suppress(ValueError):  # only the main thread may set handlers
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                # A shell lets a command in the background ("&") ignore Ctrl-C, and nohup lets it ignore SIGHUP.
                if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, self._receive)

    def _receive(self, *_: object) -> None:
        self.received = True
        raise KeyboardInterrupt


def _prepare_streams() -> None:
    """Give the process the standard streams that it was started without, and write any character to the others."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Writing to standard output then fails with an OSError; and no file of ours gets its number.
            flags = os.O_WRONLY if name == "stderr" else os.O_RDONLY
            setattr(sys, name, open(os.open(os.devnull, flags), mode, encoding="utf-8"))  # noqa: SIM115, PTH123
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; inputs may precede and follow options."""
    if not argv or argv[0].startswith("-"):
        return build_parser().parse_args(argv)
    name, argv = COMMANDS.canonical(argv[0]), argv[1:]
    parser = build_parser(name, argv)
    from entaug.commands.options import READ_OPTIONS, WRITE_OPTIONS

    set_parser(parser, {*READ_OPTIONS, *WRITE_OPTIONS})
    # Intermixed arguments lose the mark after which nothing is an option.
    return parser.parse_args(argv) if "--" in argv else parser.parse_intermixed_args(argv)


def build_parser(name: str | None = None, argv: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Build the parser of a command, some options of which depend on others; or that of the program."""
    if name is None:
        text = "Data augmentation for named-entity recognition with correct labels."
        program = _Parser(prog="entaug", description=text, epilog=_EXIT_CODES)
        program.add_argument("--version", action="version", version=f"entaug {__version__}")
        commands = program.add_subparsers(metavar="COMMAND", required=True)
        for command_name, summary in SUMMARIES.items():
            commands.add_parser(command_name, help=summary)
        return program
    command = COMMANDS[name]
    parser = _Parser(prog=f"entaug {name}", description=command.description)
    command.add_options(parser, argv)
    parser.add_argument("--help-all", action="help", help="show all options, also those that few need")
    if "--help-all" in argv:
        parser.epilog = _EXIT_CODES
    else:
        for action in parser._actions:  # noqa: SLF001
            if action.dest in _RARE and (name, action.dest) != ("train", "overlap"):  # there it is of the tagger
                action.help = argparse.SUPPRESS
    parser.usage = " ".join([parser.prog, *_needed(parser), "[options]"])
    parser.set_defaults(run=command.run)
    return parser


def _needed(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The positional arguments and the required options, for the line of usage."""
    for action in parser._actions:  # noqa: SLF001
        name = action.metavar if isinstance(action.metavar, str) else action.dest
        if not action.option_strings:
            yield name if action.nargs not in ("?", "*") else f"[{name}]"
        elif action.required:
            yield f"{action.option_strings[0]} {name}"


def _report(error: BaseException) -> int:
    """Report an error on one line and return its exit code; errors that are faults of the program are raised again."""
    if isinstance(error, ModuleNotFoundError):
        error = extra_of(error) or error
    if isinstance(error, BrokenPipeError):
        # Python flushes standard output once more at exit: discard that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    if isinstance(error, OSError):
        # An OSError without a file name comes from standard output.
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        what = "standard output: cannot be written" if error.filename is None else f"{error.filename}: cannot be used"
        error = OutputError(f"{what} ({error.strerror})")
    if not isinstance(error, EntaugError):
        raise error
    message = with_options(str(error), writes=isinstance(error, LossError | OutputError))
    sys.stderr.write(f"entaug: error: {message}\n")
    return _BAD_OUTPUT if isinstance(error, OutputError) else _BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
