"""The errors of entaug.

::

    EntaugError
    ├── InputError            the input data is invalid (file, line, remedy)
    │   └── TagError          a tag or a tag sequence is invalid in its scheme
    ├── LossError             the output format cannot represent the data
    ├── EditError             an edit or a reordering would cut a mention or leaves the sentence
    ├── ParameterError        a parameter or an option has an invalid value
    ├── UnknownNameError      there is no method, format or backend of that name (suggests a similar one)
    ├── MissingExtraError     an optional package is not installed (gives the command that installs it)
    ├── MissingModelError     files of a model or a word list are missing (gives the command)
    └── OutputError           the output exists, cannot be written, or belongs to another run

A note on a file that `entaug.read` or another function without a summary read is an `InputWarning`.

Each is printed on one line: ``file:line: what is wrong; what to do``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_JOINER = re.compile(r"(?<!\\)((?:\\\\)*)\\u(200[cd])")  # as `repr` has it, in which text is quoted


def escape_control_characters(text: str, keep: str = "") -> str:
    """Replace control characters by their escape sequences; names of files and labels may hold any."""
    return _CONTROL.sub(lambda m: m[0] if m[0] in keep else m[0].encode("unicode_escape").decode(), text)


def readable(text: str, keep: str = "") -> str:
    """A message without control characters; Persian and Indic words that it quotes keep their joiners."""
    return escape_control_characters(_JOINER.sub(lambda m: m[1] + chr(int(m[2], 16)), text), keep)


def one_line(reason: object) -> str:
    """The beginning of the message of another library's error, on one line, for our own."""
    return " ".join(str(reason).split())[:200]


class EntaugError(Exception):
    """Base class of the errors of entaug.

    Args:
        message: what is wrong, without a final full stop.
        path: the file, if any.
        line: the line in the file, from 1, if it is known.
        remedy: what to do.

    Example:
        >>> str(EntaugError("unknown tag 'X'", path="a.conll", line=3, remedy="correct it"))
        "a.conll:3: unknown tag 'X'; correct it"
    """

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line
        self.remedy = remedy

    def __str__(self) -> str:
        location = ":".join(str(part) for part in (self.path, self.line) if part is not None)
        text = f"{location}: {self.message}" if location else self.message
        text = f"{text}; {self.remedy}" if self.remedy else text
        # Names of files and ids may hold line ends, and commands to a terminal.
        return readable(text)

    def __reduce__(self) -> tuple[object, ...]:
        # The default pickling, which worker processes need, loses keyword-only arguments.
        return (_rebuild, (type(self), self.__dict__.copy()))


def _rebuild(error_class: type[EntaugError], state: dict[str, object]) -> EntaugError:
    error = error_class.__new__(error_class)
    Exception.__init__(error, state["message"])
    error.__dict__.update(state)
    return error


class InputError(EntaugError):
    """The input data is invalid."""

    others: Sequence[InputError] = ()

    def locate(self, path: str, line: int | None = None, record: str = "") -> None:
        """Add the location of this error and the others, unless it is known already."""
        for fault in (self, *self.others):
            fault.path = fault.path or path
            fault.line = line if fault.line is None else fault.line
            if record:
                fault.message = f"{record}: {fault.message}"


class InputWarning(UserWarning):
    """A note on what was read: what was left out, supposed, or is in two files. The program prints it as a note."""


class TagError(InputError):
    """A tag is unknown to its scheme, or invalid at its position."""


class LossError(EntaugError):
    """The output format cannot represent the data, for example nested mentions as IOB tags."""


class EditError(EntaugError, ValueError):
    """An edit or a reordering would cut a mention, or does not fit the sentence."""


class ParameterError(EntaugError, ValueError):
    """A parameter or an option has an invalid value."""

    def __init__(self, message: str, *, parameter: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.parameter = parameter


class UnknownNameError(EntaugError, LookupError):
    """There is no method, format or backend of that name."""

    def __init__(self, kind: str, name: str, known: Iterable[str], others: Iterable[str] = ()) -> None:
        self.kind, self.name = kind, name
        names = sorted(known)
        by_lower = {known_name.lower(): known_name for known_name in names}
        near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
        names += others
        there_are = f"there are: {', '.join(names)}" if names else "there are none"
        remedy = f"did you mean {by_lower[near[0]]!r}? ({there_are})" if near else there_are
        super().__init__(f"unknown {kind} {name!r}", remedy=remedy)


class MissingExtraError(EntaugError, ImportError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"the package {package!r} is not installed", remedy=f"run: pip install 'entaug[{extra}]'")


class MissingModelError(EntaugError):
    """The files of a model or a word list are missing."""


class OutputError(EntaugError):
    """The output exists, cannot be written, or belongs to another run."""
