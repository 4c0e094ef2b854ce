"""Docstrings: sections where somebody outside reads them, one line everywhere else.

Sections (arguments, results, errors, an example) are for what `entaug` exports, for base classes and protocols of
plug-ins, and for dataclasses whose fields are options. Anything else has one line; types and names say the rest.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest

import entaug
from conftest import ROOT
from entaug.commands.main import COMMANDS
from entaug.filters import FILTERS
from entaug.formats import FORMATS
from entaug.methods import METHODS
from entaug.taggers.base import TAGGERS

SRC = ROOT / "src"
MODULES = {
    module.name: import_module(module.name)
    for module in walk_packages(entaug.__path__, "entaug.")
    if not module.name.endswith("__main__")
}
# Base classes and protocols for plug-ins: classes, or all classes of a module.
PLUGINS = (
    "entaug.methods.types.MethodInfo",
    "entaug.backends.protocols",
    "entaug.backends.instruct",
    "entaug.backends.component.Component",
    "entaug.core.corpus.CorpusStream",
    "entaug.filters.base.Filter",
    "entaug.formats.base.BaseFormat",
    "entaug.formats.base.Dialect",
    "entaug.formats.base.FormatCapabilities",
    "entaug.formats.base.ReadReport",
    "entaug.formats.buffered.BufferedFormat",
    "entaug.metrics.quality.Measure",
    "entaug.config.registry.Registry",
    "entaug.taggers.base.TrainableTagger",
)
ROOMS = [entaug, *(one for one in (getattr(entaug, name) for name in entaug.__all__) if inspect.ismodule(one))]
PUBLIC = {f"{room.__name__}.{name}": getattr(room, name) for room in ROOMS for name in room.__all__}
OPTION_CLASSES = re.compile("(Config|Settings|Parameters|Options|Dialect|Job|Command|Scorer)$")


def classes_of(module: Any) -> list[type]:
    return [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]


def with_methods(cls: type) -> Iterator[tuple[str, Any]]:
    yield f"{cls.__module__}.{cls.__qualname__}", cls
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", getattr(member, "fget", member))  # of class methods and properties
        if inspect.isfunction(function) and not name.startswith("_"):
            yield f"{function.__module__}.{function.__qualname__}", member if isinstance(member, property) else function


def with_sections() -> Iterator[tuple[str, Any]]:
    """What has sections, by full name; the methods of option classes have one line."""
    for value in PUBLIC.values():
        if inspect.isclass(value):
            yield from with_methods(value)
        elif inspect.isfunction(value):
            yield f"{value.__module__}.{value.__qualname__}", value
    for name in PLUGINS:
        module, _, cls = name.rpartition(".")
        for found in classes_of(MODULES[name]) if name in MODULES else [getattr(MODULES[module], cls)]:
            yield from with_methods(found)
    registered = [*METHODS.values(), *FILTERS.values(), *TAGGERS.values(), *(f.dialect_class for f in FORMATS.values())]
    named = [one for module in MODULES.values() for one in classes_of(module) if OPTION_CLASSES.search(one.__name__)]
    bases: set[type] = {base for own in (*registered, *named) for base in own.__mro__}
    yield from ((f"{one.__module__}.{one.__qualname__}", one) for one in bases if dataclasses.is_dataclass(one))


FULL = {name: value for name, value in with_sections() if name.startswith("entaug.")}
# The docstring of a command's function is the help of its options.
HELP = {f"{command.function.__module__}.{command.function.__qualname__}" for command in COMMANDS.values()}


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


def problems(name: str, value: Any) -> Iterator[str]:
    """The sections that a docstring lacks."""
    doc = inspect.getdoc(value) or ""
    if not doc:  # that of the method that it overrides holds for it, as another test checks
        return
    if isinstance(value, property) or name.rpartition(".")[2].startswith("_"):  # base classes share options
        return
    sections = set(re.findall(r"^(Returns|Yields|Raises):", doc, re.MULTILINE))
    classes = value.__mro__ if inspect.isclass(value) else (value,)
    if missing := set(arguments(value)) - set().union(*map(documented_arguments, classes)):
        yield f"{name} does not document {sorted(missing)} under Args"
    if inspect.isfunction(value):
        returns = inspect.signature(value).return_annotation
        # A function whose first line says what it returns ("The ...", "Return ...") needs no section for it.
        says = re.match(r"(Return|Create|The|A|An|Whether|All|Each|Every|Which)\b", doc)
        if returns not in (None, "None", inspect.Signature.empty) and not says and not {"Returns", "Yields"} & sections:
            yield f"{name} does not document its result"
        raises = set(re.findall(r"^ +raise (\w+Error)\b", inspect.getsource(value), re.MULTILINE))
        if raises and "Raises" not in sections:
            yield f"{name} raises {sorted(raises)} and does not document it"


def test_sections_are_complete() -> None:
    assert len(FULL) > 200
    found = [problem for name, value in FULL.items() for problem in problems(name, value)]
    assert not found, "\n".join(found)


def test_the_package_itself_exports_few_names() -> None:
    assert len(set(entaug.__all__) - {"__version__"} - {room.__name__.rpartition(".")[2] for room in ROOMS}) <= 40


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_exported_names_show_an_example_that_runs(name: str) -> None:
    value = PUBLIC[name]
    if inspect.isclass(value) or inspect.isfunction(value):
        example = inspect.getdoc(value) or ""
        assert ">>>" in example or issubclass(value if inspect.isclass(value) else object, BaseException), name


def docstrings(node: ast.AST, name: str) -> Iterator[tuple[str, ast.expr, str]]:
    """The docstrings of classes and functions below a node, with their full names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(child)
            if text is not None and isinstance(child.body[0], ast.Expr):
                yield f"{name}.{child.name}", child.body[0].value, text
            yield from docstrings(child, f"{name}.{child.name}")
        else:
            yield from docstrings(child, name)


def test_everything_else_has_one_line() -> None:
    long, undocumented_style = [], []
    for path in sorted((SRC / "entaug").rglob("*.py")):
        module = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        for name, node, text in docstrings(ast.parse(path.read_text("utf-8")), module):
            if "\n" in text and name not in FULL and name not in HELP:
                long.append(f"{path.relative_to(ROOT)}:{node.lineno}: {name}")
            if re.match(r"(What|How)\b", text):
                undocumented_style.append(f"{path.relative_to(ROOT)}:{node.lineno}: {text.splitlines()[0]}")
    assert not long, "one line, please:\n" + "\n".join(long)
    assert not undocumented_style, "\n".join(undocumented_style)


def test_public_objects_have_docstrings() -> None:
    missing = [
        f"{module.__name__}.{name}"
        for module in MODULES.values()
        for name in getattr(module, "__all__", ())
        if (inspect.isclass(value := getattr(module, name)) or inspect.isfunction(value)) and not inspect.getdoc(value)
    ]
    assert not missing


def test_a_method_without_a_docstring_has_that_of_the_one_it_overrides() -> None:
    documented, others = set(), {}
    for path in sorted((SRC / "entaug").rglob("*.py")):
        for one in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
                for method in one.body:
                    if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                        if ast.get_docstring(method):
                            documented.add(method.name)
                        else:
                            others[f"{path.relative_to(ROOT)}:{method.lineno}: {one.name}.{method.name}"] = method.name
    assert not [place for place, name in others.items() if name not in documented]
