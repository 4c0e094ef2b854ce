"""Names of backends to instances, without importing any until it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from entaug.backends.protocols import Lexicon
from entaug.errors import ParameterError, UnknownNameError

__all__ = ["BACKENDS", "resolve"]

# For each kind: its protocol, and the names that can be given instead of an instance.
BACKENDS: dict[str, tuple[type, dict[str, str]]] = {
    "lexicon": (Lexicon, {"wordnet": "entaug.backends.wordnet:WordNet"})
}


def resolve(kind: str, what: Any) -> Any:
    """A backend, given itself or a name.

    Args:
        kind: a key of `BACKENDS`.
        what: an instance, returned as it is, or a name.

    Raises:
        UnknownNameError: no backend has that name.
        ParameterError: an instance that does not do what the kind asks.
        MissingModelError: the backend's files are not there.

    Example:
        >>> from entaug.backends.protocols import FakeLexicon
        >>> resolve("lexicon", FakeLexicon({})).name
        'fake'
    """
    protocol, names = BACKENDS[kind]
    if not isinstance(what, str):
        if not isinstance(what, protocol):
            raise ParameterError(f"{what!r} is not a {kind}: it lacks a method of {protocol.__name__}")
        return what
    if what not in names:
        raise UnknownNameError(kind, what, names)
    module, _, cls = names[what].partition(":")
    return getattr(import_module(module), cls)()
