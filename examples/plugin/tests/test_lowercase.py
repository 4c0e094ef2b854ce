"""The method keeps the rules of entaug."""

import pytest
from entaug_lowercase import LowercaseMentions

import entaug


@pytest.mark.parametrize("p", [0.3, 0.9])
def test_it_keeps_the_rules(p: float) -> None:
    """What comes of a sentence depends on it alone, and what `info` says is kept."""
    entaug.check_plugin(LowercaseMentions(p=p))
