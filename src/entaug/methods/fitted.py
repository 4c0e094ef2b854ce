"""Fitted methods as files: fitted once, used anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from entaug._version import __version__
from entaug.config.params import parameters
from entaug.core.data import Sentence
from entaug.errors import EntaugError, InputError, ParameterError
from entaug.files.atomic import open_output
from entaug.files.streams import as_path, read_bytes
from entaug.methods import METHODS
from entaug.methods.base import Augmenter
from entaug.methods.combined import CombinedAugmenter

__all__ = ["augmenter_of", "fitted_content", "load_augmenter", "save_augmenter", "signed"]

_KIND = "augmenter"
_SUM = "sha256"
_MAX_SIZE = 16 << 30  # bytes, unpacked: weights of a large model as base64


def save_augmenter(augmenter: Augmenter | CombinedAugmenter, path: str | Path) -> None:
    """Write a fitted method to a JSON file, which holds nothing that is executed when it is read.

    For ``lwtr``, ``mr``, ``sis`` and ``sr`` without filters the file holds words and mentions of the training
    sentences. For all others it holds these sentences, and the weights of a generative model that the method trained.
    Loading then fits the method on them again, but for the generative model; the result is the same with the same
    models and hardware. Do not share the file if the corpus is confidential.

    Args:
        augmenter: the method, or several; fitted.
        path: the file; gzipped if it ends in ``.gz``. An existing file is replaced.

    Raises:
        ParameterError: the method is not fitted; it has a teacher (as ``selftrain`` and ``gal`` do), lists of mentions,
            or filters or models given as Python objects; or the training sentences are needed and were read from an
            iterator.
        OutputError: the file cannot be written.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> gold = [entaug.Sentence([n, "sings"], [entaug.Mention("PER", [(0, 1)])]) for n in ("Ada", "Bo")]
        >>> file = pathlib.Path(tempfile.mkdtemp(), "mr.json")
        >>> save_augmenter(entaug.create_augmenter("mr", p=1.0).fit(gold), file)
        >>> [new.tokens for new in load_augmenter(file).augment(gold)]
        [('Bo', 'sings'), ('Ada', 'sings')]
    """
    content = _content(augmenter)
    with open_output(as_path(path)) as out:
        out.write(content)


def fitted_content(augmenter: Augmenter | CombinedAugmenter, corpus: Iterable[Sentence]) -> bytes | None:
    """Return what `save_augmenter` writes, to send it to another machine."""
    try:
        return _content(augmenter, corpus)
    except (ParameterError, TypeError):
        return None


def augmenter_of(content: bytes) -> Augmenter | CombinedAugmenter:
    """Create a fitted method from what `fitted_content` returned."""
    return _augmenter(content, "the fitted method")


def _content(augmenter: Augmenter | CombinedAugmenter, corpus: Iterable[Sentence] | None = None) -> bytes:
    return signed({"entaug": _KIND, "version": __version__, **augmenter.fitted_state(corpus)})


def signed(content: Mapping[str, Any]) -> bytes:
    """The text of a fitted method, with the sum of the rest in place of any sum that it has."""
    rest = {name: value for name, value in content.items() if name != _SUM}
    return json.dumps({**rest, _SUM: sha256(json.dumps(rest).encode()).hexdigest()}).encode() + b"\n"


def load_augmenter(path: str | Path) -> Augmenter | CombinedAugmenter:
    """Read a fitted method from a file.

    Nothing in the file is executed. It names the models that the method uses, which are loaded, and may name a server,
    to which sentences are sent then: see `Augmenter.notes`.

    Args:
        path: a file that `save_augmenter` wrote.

    Returns:
        The method, fitted.

    Raises:
        InputError: the file cannot be read, is none of these, was changed, was written by another version, or needs
            models or word lists that are others here.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "sis.json")
        >>> save_augmenter(entaug.create_augmenter("sis", copies=3).fit([]), file)
        >>> load_augmenter(file).copies
        3
    """
    path = as_path(path)
    return _augmenter(read_bytes(path, _MAX_SIZE), str(path))


def _augmenter(text: bytes, path: str) -> Augmenter | CombinedAugmenter:
    """Create the method that a file holds."""
    try:
        created, is_combined = _created(text)
        augmenters = [augmenter.restore(fitted) for augmenter, fitted in created]
    except EntaugError as error:
        error.path = error.path or path
        raise
    return CombinedAugmenter(augmenters) if is_combined else augmenters[0]


def _created(text: bytes) -> tuple[list[tuple[Augmenter, dict[str, Any]]], bool]:
    """Create the methods of a file, each with the values to take over; and tell whether they are combined."""
    no_method = InputError("is no fitted method", remedy="name a file that save_augmenter wrote")
    try:
        content = json.loads(text)
        if content["entaug"] != _KIND:
            raise no_method
        version = content["version"]
        if version != __version__:
            what = f"was written by entaug {version}, and this is {__version__}"
            raise InputError(what, remedy="fit the method again")
        if json.loads(signed(content)) != content:
            raise InputError("was changed after it was written", remedy="fit the method again")
        created = []
        methods = content.get("methods", [content])
        if not (isinstance(methods, list) and methods):
            raise no_method
        for fitted in methods:
            method, given = METHODS[fitted["method"]], fitted["parameters"]
            if not all(isinstance(value, str | int | float | None) for value in given.values()):
                raise no_method  # corpora and lists are given as objects, and never saved
            if any(parameter.metadata.get("local") and parameter.name in given for parameter in parameters(method)):
                raise no_method  # a folder of this machine, which no file may choose
            created.append((method(**given), fitted))
    except EntaugError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise no_method from None
    return created, "methods" in content
