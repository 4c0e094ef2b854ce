"""Cases of a parametrized test that only ``make test-all`` runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """The values as cases of slow tests."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def first_fast(values: Iterable[Any], number: int = 1) -> list[Any]:
    """The values as cases, slow but for the first ones."""
    values = list(values)
    return [*values[:number], *slow(*values[number:])]
