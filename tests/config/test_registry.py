"""The registry: every entry can be imported, names are suggested, missing extras and plug-ins are reported."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Any

import pytest

from entaug.backends.resolve import BACKENDS
from entaug.commands.main import COMMANDS
from entaug.config.registry import Registry, extra_of
from entaug.errors import MissingExtraError, ParameterError, UnknownNameError
from entaug.filters import FILTERS
from entaug.formats import FORMATS
from entaug.methods import METHODS
from entaug.metrics.quality import MEASURES
from entaug.taggers.base import TAGGERS

REGISTRIES: dict[str, Registry[Any]] = {
    "method": METHODS,
    "filter": FILTERS,
    "format": FORMATS,
    "tagger": TAGGERS,
    "measure": MEASURES,
    "command": COMMANDS,
}


@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_entry_can_be_imported(kind: str) -> None:
    registry = REGISTRIES[kind]
    assert len(registry) == len(list(registry)) > 3
    for name in registry:
        assert registry[name] is not None
        assert name in registry


@pytest.mark.parametrize("kind", REGISTRIES)
def test_an_unknown_name_gets_a_suggestion(kind: str) -> None:
    registry = REGISTRIES[kind]
    name = next(name for name in registry if len(name) > 3)
    with pytest.raises(UnknownNameError, match=f"unknown {kind} .*did you mean"):
        registry[name[:2] + name[3:]]
    assert "no such name" not in registry


def test_aliases() -> None:
    assert METHODS["mention-replacement"] is METHODS["mr"]
    assert METHODS.canonical("mention-replacement") == "mr"
    assert "mention-replacement" in METHODS
    assert "mention-replacement" not in list(METHODS)


@pytest.mark.parametrize(
    ("registry", "name", "meant"),
    [
        (METHODS, "MR", "mr"),
        (METHODS, "Mention-Replacement", "mr"),
        (METHODS, "mention_replacement", "mr"),
        (METHODS, " lwtr", "lwtr"),
        (FORMATS, "CoNLL", "conll"),
        (FORMATS, "label_studio", "label-studio"),
        (FILTERS, "Duplicates", "duplicates"),
        (TAGGERS, "BiLSTM-CRF", "bilstm-crf"),
        (MEASURES, "new-words", "new_words"),
    ],
)
def test_names_in_other_case(registry: Registry[Any], name: str, meant: str) -> None:
    assert registry.canonical(name) == meant
    assert registry[name] is registry[meant]


def test_names_of_backends_are_exact() -> None:
    """Any other name is that of a folder or of a model on the hub."""
    registry = BACKENDS["dependency_parser"].registry
    name = next(iter(registry))
    assert name.upper() not in registry


def test_a_missing_module_is_reported_with_its_extra() -> None:
    error = extra_of(ModuleNotFoundError("No module named 'torchcrf'", name="torchcrf"))
    assert isinstance(error, MissingExtraError)
    assert "pip install 'entaug[taggers]'" in str(error)
    assert extra_of(ModuleNotFoundError("No module named 'nowhere'", name="nowhere")) is None
    missing: Registry[Any] = Registry("codec", {"gone": "nowhere.at_all:Thing"})
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        missing["gone"]


def test_entry_points_add_names_and_never_replace_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        metadata.EntryPoint("extra", "json:dumps", "entaug.codecs"),
        metadata.EntryPoint("ours", "json:loads", "entaug.codecs"),
        metadata.EntryPoint("broken", "json:nothing_here", "entaug.codecs"),
    ]
    monkeypatch.setattr(metadata, "entry_points", lambda group: points if group == "entaug.codecs" else [])
    registry: Registry[Any] = Registry("codec", {"ours": "json:JSONEncoder"}, group="entaug.codecs")
    import json

    assert list(registry) == ["ours", "broken", "extra"]
    assert registry["extra"] is json.dumps
    assert registry["ours"] is json.JSONEncoder
    broken = "the codec 'broken' of the package json cannot be used (AttributeError: module 'json' has no attribute"
    for _ in range(2):
        with pytest.raises(ParameterError, match=re.escape(broken)):
            registry["broken"]
    assert list(registry.usable()) == ["ours", "extra"]
    first, second = registry.problems()
    assert first.startswith(broken)
    assert second == "the codec 'ours' of the package json is not used: entaug has one of that name"
