"""``entaug models``: prepare and verify word lists and models; write their bill of materials (CycloneDX)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Literal

from entaug.backends.models.catalogue import bill_of_materials, list_models
from entaug.backends.models.preparation import prepare_models, verify_models
from entaug.commands.command import Command
from entaug.commands.output import print_json, print_message
from entaug.errors import EntaugError, ParameterError
from entaug.methods import METHODS
from entaug.methods.base import Augmenter

# Kinds whose models also serve as another kind: generators and taggers are fine-tuned from a model, constituents are
# projected from dependency trees, and the label guard takes what it knows of names from the same models.
_ALSO = {
    "causal_lm": ("generator", "word_cases"),
    "encoder": ("tagger",),
    "dependency_parser": ("constituency_parser", "entity_recognizer"),
}


def models(
    action: Literal["prepare", "verify", "bom"],
    names: Sequence[str] = (),
    *,
    method: str | None = None,
    source: str | None = None,
    offline: bool = False,
) -> None:
    """Prepare and verify word lists and models; write their bill of materials.

    To list them: entaug list models

    Args:
        action: prepare, verify, or bom for the bill of materials.
        names: names of models; by default all but the optional ones (verify: all that are prepared; bom: all).
        method: prepare: the models that this method uses by default, with the label guard.
        source: prepare: use the packages in this folder.
        offline: prepare: do not use the network.
    """
    for option, given in (("--for", method), ("--source", source), ("--offline", offline)):
        if given and action != "prepare":
            raise ParameterError(f"{option} is an option of prepare")
    if action == "verify":
        verify_models(names, report=print_message)
    elif action == "bom":
        print_json(bill_of_materials(list_models(names)))
    else:
        wanted = list(names)
        if method:
            method = METHODS.canonical(method)
            wanted += [model.name for model in list_models() if method in methods_using(model.name, by_default=True)]
            if not wanted:
                print_message(f"{method}: needs no model")
                return
        go_on = not names  # one that a method can do without does not keep the others from being prepared
        prepare_models(wanted, offline=offline, source=source, report=print_message, go_on=go_on)


def methods_using(name: str, *, by_default: bool = False) -> list[str]:
    """Return the methods that can use a starter model, the first of its kind, or only those that do so by default."""
    first_of_kind: dict[str, str] = {}
    for model in list_models():
        if model.by_default or not by_default:
            first_of_kind.setdefault(model.kind, model.name)
    kinds = {kind for kind, first in first_of_kind.items() if first == name}
    kinds |= {other for kind in kinds for other in _ALSO.get(kind, ())}
    methods = METHODS.usable().items()
    return [name for name, method in methods if not kinds.isdisjoint(_kinds_of(method, by_default=by_default))]


def _kinds_of(method: type[Augmenter], *, by_default: bool) -> set[str]:
    kinds = {*method.info.needs, *(() if by_default else method.info.may_need)}
    with contextlib.suppress(TypeError, EntaugError):  # a method that cannot be created without parameters
        kinds |= method().kinds_by_default
    return kinds


COMMAND = Command(
    models,
    {
        "action": {"choices": ("prepare", "verify", "bom"), "metavar": "{prepare,verify,bom}"},
        "names": {"flags": (), "nargs": "*"},
        "method": {"flags": ("--for",), "metavar": "METHOD"},
        "source": {"metavar": "DIR"},
    },
    show=lambda *_: (),
)
