"""Every error that entaug raises on purpose.

::

    EntaugError
    ├── InputError            the data that was given is faulty (file, line, remedy)
    │   └── TagError          a tag or tag sequence breaks its scheme
    ├── LossError             the wanted form cannot carry what the data holds
    ├── EditError             an edit or reordering would cut a mention or leave the sentence
    ├── ParameterError        an option has a value it cannot have
    ├── UnknownNameError      no method, format or backend of that name (suggests the nearest)
    ├── MissingExtraError     an optional package is not installed (gives the install line)
    ├── MissingModelError     model or word list files are not there (gives the command)
    └── OutputError           the output exists, cannot be written, or belongs to another run

Each prints as one line: ``file:line: what is wrong; what to do``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

__all__ = [
    "EditError",
    "EntaugError",
    "InputError",
    "LossError",
    "MissingExtraError",
    "MissingModelError",
    "OutputError",
    "ParameterError",
    "TagError",
    "UnknownNameError",
]


class EntaugError(Exception):
    """Base of all errors raised on purpose.

    Args:
        message: what is wrong, without a final full stop.
        path: the file concerned, if any.
        line: the 1-based line in that file, if known.
        remedy: what the user can do about it.

    Example:
        >>> str(EntaugError("unknown tag 'X'", path="a.conll", line=3, remedy="correct it"))
        "a.conll:3: unknown tag 'X'; correct it"
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line
        self.remedy = remedy

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line) if part is not None)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text}; {self.remedy}" if self.remedy else text

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments are lost by the default pickling, which worker processes need.
        return (_rebuild, (type(self), self.__dict__.copy()))


def _rebuild(kind: type[EntaugError], state: dict[str, object]) -> EntaugError:
    error = kind.__new__(kind)
    Exception.__init__(error, state["message"])
    error.__dict__.update(state)
    return error


class InputError(EntaugError):
    """The data that was given is faulty.

    Attributes:
        also: further faults of the same sentence or text, for who wants to hear of all.
    """

    also: Sequence[InputError] = ()

    def stands(self, path: str, line: int | None = None, record: str = "") -> None:
        """Say where this fault is, and those beside it; what knows its line already keeps it.

        Args:
            path: the file.
            line: the line in it.
            record: what to name before the message where a file has no lines, such as ``"task 3"``.
        """
        for one in (self, *self.also):
            one.path = one.path or path
            one.line = line if one.line is None else one.line
            if record:
                one.message = f"{record}: {one.message}"


class TagError(InputError):
    """A tag is unknown to its scheme, or may not stand where it stands."""


class LossError(EntaugError):
    """The wanted form cannot carry what the data holds (nested mentions as IOB, say)."""


class EditError(EntaugError, ValueError):
    """An edit or a reordering would cut a mention, or does not fit the sentence."""


class ParameterError(EntaugError, ValueError):
    """A parameter or an option has an invalid value.

    Args:
        message: see `EntaugError`.
        parameter: the name of the parameter, where one is to blame; a plan finds its line by it.
        remedy: see `EntaugError`.
    """

    def __init__(self, message: str, *, parameter: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.parameter = parameter


class UnknownNameError(EntaugError, LookupError):
    """No such method, format or backend.

    Args:
        kind: what was looked for, for example ``"method"``.
        name: the name that was given.
        known: the names that exist.

    Example:
        >>> str(UnknownNameError("method", "ltwr", ["lwtr", "mr"]))
        "unknown method 'ltwr'; did you mean 'lwtr'? (there are: lwtr, mr)"
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        by_lower = {known_name.lower(): known_name for known_name in names}
        near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
        there_are = f"there are: {', '.join(names)}"
        remedy = f"did you mean {by_lower[near[0]]!r}? ({there_are})" if near else there_are
        super().__init__(f"unknown {kind} {name!r}", remedy=remedy)


class MissingExtraError(EntaugError, ImportError):
    """An optional package is not installed.

    Args:
        package: the package that is missing.
        extra: the extra of entaug that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"the package {package!r} is not installed",
            remedy=f"run: pip install 'entaug[{extra}]'",
        )


class MissingModelError(EntaugError):
    """The files of a model or a word list are not on this machine."""


class OutputError(EntaugError):
    """The output exists, cannot be written, or belongs to another run."""
