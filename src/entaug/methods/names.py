"""Augmentation methods.

Example:
    >>> augmenter = create_augmenter("mr", p=0.5)
    >>> augmenter.copies
    1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from entaug.config.params import check_declaration, construct
from entaug.config.registry import Registry

if TYPE_CHECKING:
    from entaug.methods.base import Augmenter


def _own_long_names() -> dict[str, str]:
    return {"pseudo-labels": "selftrain", **{METHODS[name].info.long_name: name for name in METHODS.built_in}}


def _long_names() -> dict[str, str]:
    names = _own_long_names()
    for name, cls in METHODS.usable().items():
        names.setdefault(cls.info.long_name, name)  # a plug-in takes no name of ours
    return names


def _check_method(name: str, cls: object) -> None:
    from entaug.methods.base import Augmenter, MethodInfo

    if not (isinstance(cls, type) and issubclass(cls, Augmenter)):
        raise TypeError(f"it is not a subclass of Augmenter with the name {name!r}")
    if not isinstance(getattr(cls, "info", None), MethodInfo):
        raise TypeError("it has no class attribute `info` with a MethodInfo")
    if cls.info.name != name:
        raise TypeError(f"it is not a subclass of Augmenter with the name {name!r}")
    if all(getattr(cls, one) is getattr(Augmenter, one) for one in ("_rewrite", "_rewrite_batch", "draft")):
        raise TypeError("it has neither a method _rewrite nor _rewrite_batch")
    if name in (long_names := _own_long_names()):
        raise TypeError(f"{name} is the long name of {long_names[name]}")
    check_declaration(cls)


METHODS: Registry[type[Augmenter]] = Registry(
    "method",
    {
        "aclm": "entaug.methods.aclm:ACLM",
        "bt": "entaug.methods.backtranslation:Backtranslation",
        "cassi": "entaug.methods.cassi:CASSI",
        "cr": "entaug.methods.constituents:ConstituencyReplacement",
        "crop": "entaug.methods.dependency_fragments:Crop",
        "daga": "entaug.methods.daga:DAGA",
        "entda": "entaug.methods.entda:EnTDA",
        "gal": "entaug.methods.gal:GAL",
        "lm": "entaug.methods.masked_lm:MaskedLMReplacement",
        "lwtr": "entaug.methods.token_replacement:LabelWiseTokenReplacement",
        "melm": "entaug.methods.melm:MaskedEntityLM",
        "mr": "entaug.methods.mention_replacement:MentionReplacement",
        "mulda": "entaug.methods.mulda:MulDA",
        "rewrite": "entaug.methods.rewriting:Rewriting",
        "rotate": "entaug.methods.dependency_fragments:Rotate",
        "selftrain": "entaug.methods.selftraining:SelfTraining",
        "sis": "entaug.methods.shuffling:ShuffleWithinSegments",
        "sr": "entaug.methods.synonyms:SynonymReplacement",
    },
    group="entaug.methods",
    aliases=_long_names,
    check=_check_method,
)
"""The augmentation methods; aliases are their long names."""


def create_augmenter(name: str, **parameters: Any) -> Augmenter:
    """Create an augmenter by the name of its method.

    Args:
        name: the short or long name of a method, for example ``"mr"`` or ``"mention-replacement"``.
        parameters: the parameters of the method.

    Returns:
        The augmenter, not fitted yet.

    Raises:
        UnknownNameError: there is no such method, or the method has no such parameter.
        ParameterError: a parameter has an invalid value.
        MissingExtraError: the method needs an optional dependency that is not installed.

    Example:
        >>> create_augmenter("mr", p=0.5).signature.startswith("mr|")
        True
    """
    return construct(METHODS[name], name, parameters)
