"""Fitted methods as files: fitted once, used anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from entaug._version import __version__
from entaug.augmenters import METHODS
from entaug.augmenters.base import Augmenter
from entaug.augmenters.combined import CombinedAugmenter
from entaug.errors import InputError, ParameterError
from entaug.files.atomic import open_output
from entaug.files.streams import as_path, read_bytes

__all__ = ["augmenter_of", "fitted_content", "load_augmenter", "save_augmenter"]

_KIND = "augmenter"


def save_augmenter(augmenter: Augmenter | CombinedAugmenter, path: str | Path) -> None:
    """Write a fitted method to a JSON file, which holds nothing that is executed when it is read.

    The file holds words and mentions of the training sentences (``mr``, ``lwtr``, ``sr``), or these sentences, on which
    the method is fitted again where it is loaded, with the same result, and the weights of a model that it trained.

    Args:
        augmenter: the method, or several; fitted.
        path: the file; gzipped if it ends in ``.gz``. An existing file is replaced.

    Raises:
        ParameterError: the method is not fitted; or it has a teacher (as ``selftrain`` and ``gal`` do) or lists, or
            filters or models that were not given by name.
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


def fitted_content(augmenter: Augmenter | CombinedAugmenter) -> bytes | None:
    """Return what `save_augmenter` writes, to send it to another machine.

    Args:
        augmenter: the method, or several; fitted.

    Returns:
        The content of the file; None where the method cannot be saved.
    """
    try:
        return _content(augmenter)
    except (ParameterError, TypeError):
        return None


def augmenter_of(content: bytes) -> Augmenter | CombinedAugmenter:
    """Create a fitted method from what `fitted_content` returned.

    Args:
        content: the content.

    Returns:
        The method, fitted.

    Raises:
        InputError: see `load_augmenter`.
    """
    return _augmenter(content, "the fitted method")


def _content(augmenter: Augmenter | CombinedAugmenter) -> bytes:
    content = {"entaug": _KIND, "version": __version__, **augmenter.fitted_state()}
    return json.dumps(content).encode() + b"\n"


def load_augmenter(path: str | Path) -> Augmenter | CombinedAugmenter:
    """Read a fitted method from a file.

    Args:
        path: a file that `save_augmenter` wrote.

    Returns:
        The method, fitted.

    Raises:
        InputError: the file cannot be read, is none of these, was written by another version, or needs models or word
            lists that are others here.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "sis.json")
        >>> save_augmenter(entaug.create_augmenter("sis", copies=3).fit([]), file)
        >>> load_augmenter(file).copies
        3
    """
    path = as_path(path)
    return _augmenter(read_bytes(path), str(path))


def _augmenter(text: bytes, path: str) -> Augmenter | CombinedAugmenter:
    """Create the method that a file holds."""

    def fault(message: str, remedy: str) -> InputError:
        return InputError(message, path=path, remedy=remedy)

    try:
        content = json.loads(text)
        if content["entaug"] != _KIND:
            raise ValueError  # noqa: TRY301
        version = content["version"]
        if version == __version__:
            methods = content.get("methods")
            return _restored(content) if methods is None else CombinedAugmenter(map(_restored, methods))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise fault("is no fitted method", "name a file that save_augmenter wrote") from None
    raise fault(f"was written by entaug {version}, and this is {__version__}", "fit the method again")


def _restored(fitted: dict[str, Any]) -> Augmenter:
    return METHODS[fitted["method"]](**fitted["parameters"]).restore(fitted)
