"""Presets: values of parameters that belong together, each with the place in a paper that it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from entaug.config.params import parameters

__all__ = ["ONLY_IF_SET", "Difference", "Preset", "PresetRow", "Setting", "preset_rows", "section"]

ONLY_IF_SET: Mapping[str, bool] = {"only_if_set": True}
"""Metadata of parameters that a signature names only if they have another value than the default."""


@dataclass(frozen=True)
class Setting:
    """The value of a parameter in a preset."""

    value: object
    source: str
    comment: str = ""


@dataclass(frozen=True)
class Difference:
    """A respect in which a method differs from the paper on purpose, whatever its parameters."""

    topic: str
    source: str
    comment: str


class Preset(Mapping[str, object]):
    """The settings of a paper: a mapping of names of parameters to values."""

    def __init__(self, paper: str, settings: Mapping[str, Setting], differences: Sequence[Difference] = ()) -> None:
        self.paper = paper
        self.settings = dict(settings)
        self.differences = tuple(differences)

    def __getitem__(self, name: str) -> object:
        """Return the value of a parameter."""
        return self.settings[name].value

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the parameters."""
        return iter(self.settings)

    def __len__(self) -> int:
        """Return the number of parameters that are set."""
        return len(self.settings)


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
    preset = cls.presets[name]
    settings = preset.settings if isinstance(preset, Preset) else {}
    rows = []
    for parameter in parameters(cls):
        if parameter.name in preset:
            [usual] = [p.default for p in parameters(cls) if p.name == "preset"]
            default = cls.presets.get(usual, {}).get(parameter.name, parameter.default)
            setting = settings.get(parameter.name, Setting(None, ""))
            value = preset[parameter.name]
            rows.append(
                PresetRow(
                    parameter.name,
                    value,
                    default,
                    section(setting.source),
                    setting.comment,
                    is_model=parameter.name in (*cls.info.needs, "filters"),
                )
            )
    return rows
