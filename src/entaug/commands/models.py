"""``entaug models``: list, prepare and verify word lists and models, and write their bill of materials."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from entaug.commands import options, output
from entaug.commands.command import Command
from entaug.errors import EntaugError, ParameterError

if TYPE_CHECKING:
    from entaug.backends.models.catalogue import StarterModel
    from entaug.methods.base import Augmenter

__all__ = ["COMMAND", "methods_using"]

_JSON_FIELDS = ("name", "title", "kind", "licence", "languages", "size", "extra", "by_default", "installed")

# Kinds whose models also serve as another kind: generators and taggers are fine-tuned from a model, constituents are
# projected from dependency trees, and the label guard takes what it knows of names from the same models.
_ALSO = {
    "causal_lm": ("generator", "word_cases"),
    "encoder": ("tagger",),
    "dependency_parser": ("constituency_parser", "entity_recognizer"),
}


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("action", choices=("list", "prepare", "verify", "bom"))
    parser.add_argument(
        "names",
        nargs="*",
        help="names of models (default: all but the optional ones; verify: all that are prepared; bom: all)",
    )
    parser.add_argument(
        "--for",
        dest="method",
        metavar="METHOD",
        help="prepare: the models that this method uses by default, with the label guard",
    )
    parser.add_argument("--source", metavar="DIR", help="prepare: use packages or prepared folders in this folder")
    parser.add_argument("--offline", action="store_true", help="prepare: do not use the network")
    options.add_json_option(parser, "list: print JSON")


def _run(args: argparse.Namespace) -> int:
    from entaug.backends.models import catalogue
    from entaug.backends.models.preparation import prepare_models, verify_models

    if args.method and args.action != "prepare":
        raise ParameterError("--for is an option of prepare")
    if args.action == "prepare":
        names = list(args.names)
        if args.method:
            from entaug.methods import METHODS

            method = METHODS.canonical(args.method)
            names += [
                model.name for model in catalogue.list_models() if method in methods_using(model.name, by_default=True)
            ]
            if not names:
                output.print_message(f"{method}: needs no model")
                return output.ExitCode.OK
        go_on = not args.names  # one that a method can do without does not keep the others from being prepared
        prepare_models(names, offline=args.offline, source=args.source, report=output.print_message, go_on=go_on)
    elif args.action == "verify":
        verify_models(args.names, report=output.print_message)
    elif args.action == "bom":
        from entaug.backends.models.bill_of_materials import bill_of_materials

        output.print_json(bill_of_materials(catalogue.list_models(args.names)))
    else:
        models = catalogue.list_models(args.names)
        if args.json:
            output.print_json(
                [{f: getattr(a, f) for f in _JSON_FIELDS} | {"used_by": methods_using(a.name)} for a in models]
            )
        else:
            _print_models(models)
    return output.ExitCode.OK


def _print_models(models: Sequence[StarterModel]) -> None:
    rows = [("name", "", "size", "licence", "languages", "used by", "what")]
    for model in models:
        state = "installed" if model.installed else "not installed" if model.by_default else "optional"
        used_by = ", ".join(methods_using(model.name)) or "-"
        rows.append(
            (model.name, state, model.size, model.licence, " ".join(model.languages) or "any", used_by, model.title)
        )
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    for row in rows:
        print("  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]))


def methods_using(name: str, *, by_default: bool = False) -> list[str]:
    """Return the methods that can use a starter model, the first of its kind, or only those that do so by default."""
    from entaug.backends.models import catalogue
    from entaug.methods import METHODS

    first_of_kind: dict[str, str] = {}
    for model in catalogue.list_models():
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
    "list, prepare and verify word lists and models; write their bill of materials (CycloneDX)", _add_options, _run
)
