"""The page of presets has every setting of every paper, with its source, and every difference."""

from __future__ import annotations

import pytest

from entaug.config.presets import Preset, section
from entaug.methods import METHODS
from preset_pages import preset_tables

PRESETS = {name: METHODS[name].presets.get("paper") for name in METHODS}


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset])
def test_the_tables_have_every_setting_and_every_difference(name: str) -> None:
    preset = PRESETS[name]
    assert isinstance(preset, Preset)
    _, _, rest = preset_tables().partition(f"## `{name}`: {preset.paper}\n")
    lines = rest.partition("\n## ")[0].splitlines()
    for field, setting in preset.settings.items():
        [row] = [line for line in lines if line.startswith(f"| `{field}` |")]
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert cells[1] == f"`{setting.value!r}`"
        assert section(setting.source) in row
        assert setting.comment in row
    for difference in preset.differences:
        [row] = [line for line in lines if line.startswith(f"| {difference.topic} |")]
        assert difference.comment in row


def test_the_tables_name_no_method_without_a_preset() -> None:
    for name in set(METHODS) - {name for name, preset in PRESETS.items() if preset}:
        assert f"## `{name}`" not in preset_tables()
