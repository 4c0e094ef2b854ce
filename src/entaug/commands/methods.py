"""``entaug methods``: list the methods, or describe a method."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from entaug.commands import options, output
from entaug.commands.command import Command
from entaug.config.params import parameters
from entaug.config.presets import Preset, PresetRow, preset_rows, section
from entaug.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from entaug.methods.base import Augmenter, MethodInfo

__all__ = ["COMMAND", "describe_labels", "describe_needs"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("name", nargs="?", help="a method")
    parser.add_argument(
        "--preset", metavar="PRESET", help="print the settings of a preset of the method, with their sources"
    )
    options.add_json_option(parser, "print JSON")


def _run(args: argparse.Namespace) -> int:
    from entaug.methods import METHODS

    classes = [METHODS[args.name]] if args.name else list(METHODS.usable().values())
    if args.preset is not None:
        if args.name is None:
            raise ParameterError("--preset needs a method", remedy="for example entaug methods aclm --preset paper")
        rows = _settings(classes[0], args.preset)
        output.print_json([row._asdict() for row in rows]) if args.json else _print_settings(
            classes[0], args.preset, rows
        )
    elif args.json:
        output.print_json(
            [
                {
                    **dataclasses.asdict(cls.info),
                    "class": cls.__name__,
                    "parameters": {p.name: p.default for p in parameters(cls)},
                }
                for cls in classes
            ]
        )
    elif args.name:
        _print_method(classes[0])
    else:
        width = max(len(cls.info.name) for cls in classes)
        for cls in classes:
            print(f"{cls.info.name:<{width}}  {cls.info.summary}\n{'':<{width}}  {_properties(cls.info)}")
        print("\nDescription of a method: entaug methods NAME. Its options: entaug augment --method NAME --help")
    if not args.name:
        output.print_problems(METHODS)
    return output.ExitCode.OK


def _settings(cls: type[Augmenter], name: str) -> list[PresetRow]:
    if name not in cls.presets:
        raise UnknownNameError(f"preset of {cls.info.name}", name, cls.presets)
    return preset_rows(cls, name)


def _print_settings(cls: type[Augmenter], name: str, rows: Sequence[PresetRow]) -> None:
    preset = cls.presets[name]
    paper = f" ({preset.paper})" if isinstance(preset, Preset) else ""
    print(f"{cls.info.name} --preset {name}{paper}")
    for row in rows:
        where = "; ".join(filter(None, (row.source, row.comment)))
        default = "" if row.value == row.default else f" [default: {row.default!r}]"
        print(f"  {row.parameter} = {row.value!r}{default}{f': {where}' if where else ''}")
    for difference in preset.differences if isinstance(preset, Preset) else ():
        print(f"different on purpose: {difference.topic} ({section(difference.source)}): {difference.comment}")
    if given := " ".join(f"{row.option} NAME" for row in rows if row.is_model):
        print(f"to replace models alone: entaug augment FILE -m {cls.info.name} --preset {name} {given}")


def _print_method(cls: type[Augmenter]) -> None:
    info = cls.info
    keeps = [
        field.name.removeprefix("keeps_").replace("_", " ")
        for field in dataclasses.fields(info)
        if field.name.startswith("keeps_") and getattr(info, field.name)
    ]
    print(f"{info.name}, {info.long_name} (entaug.{cls.__name__}): {info.summary}")
    print(_properties(info))
    print(f"preserves: {', '.join(keeps) or 'only the labels'}")
    print(f"labels: {describe_labels(info)}")
    if cls.presets:
        print(f"presets: {', '.join(cls.presets)} (entaug methods {info.name} --preset {[*cls.presets][-1]})")
    print(f"paper: {info.paper}\n\n{(cls.__doc__ or '').partition('Args:')[0].strip()}\n\nparameters:")
    for parameter in parameters(cls):
        print(f"  {parameter.name} = {parameter.default!r}: {options.parameter_help(parameter, with_default=False)}")


def _properties(info: MethodInfo) -> str:
    kinds = ["flat"] + ["nested"] * info.nested + ["discontinuous"] * info.discontinuous
    return f"{', '.join(kinds)}; needs {describe_needs(info)}; {info.cost}; labels {describe_labels(info)}"


def describe_labels(info: MethodInfo) -> str:
    """Return a description of how far the labels of a method can be trusted."""
    if not info.has_labels:
        return "predicted by a teacher"
    if not info.writes_words:
        return "kept by rules"
    if info.wrong_labels is None:
        return "checked by the label guard (not counted)"
    wrong, read = info.wrong_labels
    return f"checked by the label guard: wrong or missing in {wrong} of {read} sentences that were read"


def describe_needs(info: MethodInfo) -> str:
    """Return a description of the requirements of a method: ``"the training corpus and a masked LM"``."""
    kinds = [kind.replace("_", " ").replace(" lm", " LM") for kind in info.needs]
    needs = ["the training corpus"] * info.needs_fit + [f"{'an' if kind[0] in 'aeo' else 'a'} {kind}" for kind in kinds]
    return " and ".join([", ".join(needs[:-1]), needs[-1]] if len(needs) > 1 else needs) or "nothing"


COMMAND = Command("list the methods, or describe a method", _add_options, _run)
