"""Public docstrings: what is exported, and what packages call of one another, documents arguments and results."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest

import entaug


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions, classes and public methods that the modules list in ``__all__``, by full name."""
    for module in walk_packages(entaug.__path__, "entaug."):
        if module.name.endswith("__main__"):
            continue
        loaded = import_module(module.name)
        for name in getattr(loaded, "__all__", ()):
            value = getattr(loaded, name)
            if getattr(value, "__module__", None) != module.name:
                continue
            if inspect.isfunction(value):
                yield f"{module.name}.{name}", value
            elif inspect.isclass(value):
                yield f"{module.name}.{name}", value
                for method_name, method in vars(value).items():
                    if inspect.isfunction(method) and not method_name.startswith("_"):
                        yield f"{module.name}.{name}.{method_name}", method


PUBLIC = dict(public_callables())


def sections(value: Any) -> set[str]:
    return set(
        re.findall(r"^(Args|Returns|Yields|Raises|Attributes|Example):", inspect.getdoc(value) or "", re.MULTILINE)
    )


def documented_arguments(value: Any) -> set[str]:
    _, _, section = (inspect.getdoc(value) or "").partition("Args:\n")
    return set(re.findall(r"^    \*{0,2}(\w+):", section.partition("\n\n")[0], re.MULTILINE))


def arguments(value: Any) -> list[str]:
    if inspect.isclass(value):
        if value.__init__ is object.__init__ or issubclass(value, tuple) or getattr(value, "_is_protocol", False):
            return []
        if issubclass(value, BaseException):
            return []
    names = [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]
    return [name for name in names if not name.startswith("_")]


def refers_to_another(value: Any) -> bool:
    """Whether the docstring sends the reader to the method that it implements: ``See `Format.read`.``"""
    return re.match(r"See `[\w.]+`", inspect.getdoc(value) or "") is not None


def problems(name: str, value: Any) -> Iterator[str]:
    """What the docstring of a public object lacks."""
    doc = inspect.getdoc(value) or ""
    if not doc:
        yield f"{name} has no docstring"
    if not doc or refers_to_another(value):
        return
    classes = value.__mro__ if inspect.isclass(value) else (value,)
    if missing := set(arguments(value)) - set().union(*map(documented_arguments, classes)):
        yield f"{name} does not document {sorted(missing)} under Args"
    if inspect.isfunction(value):
        returns = inspect.signature(value).return_annotation
        # A function whose first line says what it returns ("The ...", "Return ...") needs no section for it.
        says = re.match(r"(Return|The|A|An|Whether|How|All|Each|Every|Which)\b", doc)
        is_documented = says or {"Returns", "Yields"} & sections(value)
        if returns not in (None, "None", inspect.Signature.empty) and not is_documented:
            yield f"{name} does not document its result"
        raises = set(re.findall(r"^ +raise (\w+Error)\b", inspect.getsource(value), re.MULTILINE))
        if raises and "Raises" not in sections(value):
            yield f"{name} raises {sorted(raises)} and does not document it"


@pytest.mark.parametrize("module", sorted({value.__module__ for value in PUBLIC.values()}))
def test_arguments_results_and_errors_are_documented(module: str) -> None:
    found = [p for name, value in PUBLIC.items() if value.__module__ == module for p in problems(name, value)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", sorted(set(entaug.__all__) - {"__version__"}))
def test_exported_names_show_an_example_that_runs(name: str) -> None:
    value = getattr(entaug, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        example = inspect.getdoc(value) or ""
        assert ">>>" in example or issubclass(value if inspect.isclass(value) else object, BaseException), name
