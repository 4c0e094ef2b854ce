"""What a name in backticks in a docstring means; one that means nothing is a warning, and so an error."""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import typing
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

__all__ = ["resolve"]


def resolve(app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.TextElement) -> Any:
    """Lead a name that Sphinx does not find to what it stands for, where that has a place.

    A name is one that the docstring's own object knows: an argument, a field, a member, or what its module has.
    What is meant but has no page stays as it is written.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].lstrip(".~")
    for owner in _described(node):
        if target.partition(".")[0] in _arguments(owner):
            return contnode
        found = _looked_up(owner, target)
        if found is not None:
            return _link(app, env, node, contnode, found) or contnode
    return None


def _described(node: nodes.Node) -> Iterator[Any]:
    """The objects that a name is used in, innermost first; what is on no object's page belongs to the module."""
    at: Any = node
    while at is not None:
        if isinstance(at, addnodes.desc):
            signature = at.next_node(addnodes.desc_signature)
            if signature is not None and signature.get("module"):
                found = _imported(f"{signature['module']}.{signature['fullname']}")
                if found is not None:
                    yield found
        at = at.parent
    if isinstance(node, nodes.Element) and node.get("py:module"):
        if node.get("py:class"):
            found = _imported(f"{node['py:module']}.{node['py:class']}")
            if found is not None:
                yield found
        yield import_module(node["py:module"])
    yield import_module("entaug")


def _imported(path: str) -> Any:
    """What stands at a dotted path, however much of it is a module; None where nothing does."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            found = _member(found, part)
        return found
    return None


def _member(owner: Any, name: str) -> Any:
    found = getattr(owner, name, None)
    if found is None and inspect.isclass(owner):
        found = next((t for base in owner.__mro__ for n, t in vars(base).get("__annotations__", {}).items() if n == name), None)
    return found


def _arguments(owner: Any) -> set[str]:
    """The names that the Args of an object tell about."""
    names = {field.name for field in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else set()
    try:
        names |= set(inspect.signature(owner).parameters)
    except (TypeError, ValueError):
        pass
    return names


def _looked_up(owner: Any, target: str) -> Any:
    """What a dotted name means to an object: of its own, of its module, of Python, or of everywhere."""
    module = owner if inspect.ismodule(owner) else inspect.getmodule(owner)
    first, _, rest = target.partition(".")
    for found in (
        _member(owner, first),
        getattr(module, first, None),
        getattr(builtins, first, None),
        getattr(typing, first, None),
    ):
        one = found
        for part in filter(None, rest.split(".")):
            one = None if one is None else _member(one, part)
        if one is not None:
            return one
    return _imported(target) if rest else None


def _link(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.TextElement, found: Any
) -> nodes.Node | None:
    """A link to where an object is documented, under whichever of its names."""
    name, module = getattr(found, "__qualname__", None), getattr(found, "__module__", None)
    if inspect.ismodule(found):
        names = [found.__name__]
    elif isinstance(name, str) and isinstance(module, str):
        names = [f"entaug.{name}", f"{module}.{name}"]
    else:
        return None
    domain = env.domains.python_domain
    for one in names:
        if one in domain.objects:
            role = node.get("reftype", "obj")
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj" if role else "obj", one, node, contnode)
    return None
