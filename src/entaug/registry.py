"""Names of methods to classes. A new method is one line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from entaug.augmenters.base import Augmenter, build
from entaug.errors import UnknownNameError

__all__ = ["METHODS", "create", "method"]

METHODS = {
    "aclm": "entaug.augmenters.generative.aclm:ACLM",
    "bt": "entaug.augmenters.backtranslation:Backtranslation",
    "cassi": "entaug.augmenters.cassi.method:CASSI",
    "cr": "entaug.augmenters.syntax.constituents:ConstituencyReplacement",
    "crop": "entaug.augmenters.syntax.dependency_fragments:Crop",
    "daga": "entaug.augmenters.generative.daga:DAGA",
    "entda": "entaug.augmenters.generative.entda:EnTDA",
    "lm": "entaug.augmenters.masked_lm:MaskedLMReplacement",
    "lwtr": "entaug.augmenters.replacement:LabelWiseTokenReplacement",
    "melm": "entaug.augmenters.generative.melm:MaskedEntityLM",
    "mr": "entaug.augmenters.replacement:MentionReplacement",
    "mulda": "entaug.augmenters.generative.daga:MulDA",
    "rotate": "entaug.augmenters.syntax.dependency_fragments:Rotate",
    "sis": "entaug.augmenters.shuffling:ShuffleWithinSegments",
    "sr": "entaug.augmenters.replacement:SynonymReplacement",
}
"""Names of methods to their classes, as ``"module:Class"``."""


def method(name: str) -> type[Augmenter]:
    """The class of a method, by its short or long name.

    Raises:
        UnknownNameError: there is none; it suggests the nearest.

    Example:
        >>> method("mention-replacement").__name__
        'MentionReplacement'
    """
    if name in METHODS:
        return _load(METHODS[name])
    long_names = {cls.facts.long_name: cls for cls in map(_load, METHODS.values())}
    if name in long_names:
        return long_names[name]
    raise UnknownNameError("method", name, [*METHODS, *long_names])


def create(name: str, **params: Any) -> Augmenter:
    """An augmenter by name.

    Args:
        name: a method's short or long name.
        params: its parameters.

    Raises:
        UnknownNameError: there is no such method.
        ParameterError: a parameter it does not have, or a value that cannot be.

    Example:
        >>> create("mr", p=0.5).signature.startswith("mr|")
        True
    """
    return build(method(name), params)


def _load(where: str) -> type[Augmenter]:
    module, _, cls = where.partition(":")
    found: type[Augmenter] = getattr(import_module(module), cls)
    return found
