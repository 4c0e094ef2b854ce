"""Presets: values of parameters that belong together, each with the place in a paper that it comes from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from entaug.config.params import parameters

ONLY_IF_SET: Mapping[str, bool] = {"only_if_set": True}
"""Metadata of parameters that a signature names only if they have another value than the default."""


class Setting(NamedTuple):
    """The value of a parameter in a preset."""

    value: object = None
    source: str = ""
    comment: str = ""


class Difference(NamedTuple):
    """A respect in which a method differs from the paper on purpose, whatever its parameters."""

    topic: str
    source: str
    comment: str


class Preset(dict[str, object]):
    """The settings of a paper: a dictionary of names of parameters and their values."""

    def __init__(self, settings: Mapping[str, Any], paper: str, differences: Any = ()) -> None:
        self.paper = paper
        self.settings = {name: Setting(**values) for name, values in settings.items()}
        self.differences = [Difference(**values) for values in differences]
        super().__init__({name: setting.value for name, setting in self.settings.items()})


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def read_presets(method: str) -> dict[str, Mapping[str, object]]:
    """Return the presets of a method: the starter, which is the defaults, and those of ``presets.toml``."""
    return {"starter": {}, **{name: Preset(**values) for name, values in _file()[method].items()}}


class PresetRow(NamedTuple):
    """A parameter of a class in a preset."""

    parameter: str
    value: object
    default: object
    source: str
    comment: str
    is_model: bool

    @property
    def option(self) -> str:
        """The option of the command line."""
        return "--filter" if self.parameter == "filters" else f"--{self.parameter.replace('_', '-')}"


def section(source: str) -> str:
    """Return the source of a setting, with the word for bare numbers."""
    return f"section {source}" if source[:1].isdigit() else source


def preset_rows(cls: Any, name: str) -> list[PresetRow]:
    """Return the settings of a preset in the order of the parameters of its class."""
    preset, models = cls.presets[name], (*cls.info.needs, *cls.info.may_need, "filters")
    # A plug-in may give values alone.
    settings = preset.settings if isinstance(preset, Preset) else {key: Setting(value) for key, value in preset.items()}
    return [
        PresetRow(parameter.name, value, parameter.default, section(source), comment, parameter.name in models)
        for parameter in parameters(cls)
        if parameter.name in settings
        for value, source, comment in [settings[parameter.name]]
    ]
