"""Resolve names in backticks in docstrings; an unknown name is a warning, and so an error of the build."""

from __future__ import annotations

import builtins
import contextlib
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
from sphinx.transforms.post_transforms import SphinxPostTransform

from page_text import ROOMS

__all__ = ["NameTransform", "resolve"]


class NameTransform(SphinxPostTransform):
    """Resolves names in backticks before Sphinx, which would accept any name with the same ending."""

    default_priority = 5  # Sphinx has 10

    def run(self, **_: object) -> None:
        """Replace the known names, and write a colon after names of arguments, as docstrings do."""
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("refdomain") == "py" and not node["reftarget"].startswith("entaug."):
                content = node[0]
                if isinstance(content, nodes.TextElement):
                    new = resolve(self.app, self.env, node, content)
                    if new is not None:
                        node.replace_self(new)
        for text in list(self.document.findall(nodes.Text)):
            if text == " -- ":  # between an argument and its description
                text.parent.replace(text, nodes.Text(": "))


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.TextElement
) -> nodes.Node | None:
    """Link a name to its documentation, if there is any.

    A name is valid if it is an argument, a field or a member of the documented object, an attribute of its module, or
    the ending of exactly one documented name. Valid names without documentation stay plain text.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].lstrip(".~")
    for owner in _documented_objects(node):
        if target.partition(".")[0] in _arguments(owner):
            return contnode
        found = _look_up(owner, target)
        if found is not None:
            return _link(app, env, node, contnode, found) or contnode
    documented = env.domains.python_domain.objects
    known = {name for name in documented if name.endswith(f".{target}")}
    protocols = {name for name in known if name.startswith("entaug.backends.protocols.")} or known
    return _linked(app, env, node, contnode, protocols.pop()) if len(protocols) == 1 else None


def _documented_objects(node: nodes.Node) -> Iterator[Any]:
    """The documented objects around a name, innermost first; then its module, then the package."""
    at: Any = node
    while at is not None:
        if isinstance(at, addnodes.desc):
            signature = at.next_node(addnodes.desc_signature)
            if signature is not None and signature.get("module"):
                found = _import(f"{signature['module']}.{signature['fullname']}")
                if found is not None:
                    yield found
        at = at.parent
    if isinstance(node, nodes.Element) and node.get("py:module"):
        if node.get("py:class"):
            found = _import(f"{node['py:module']}.{node['py:class']}")
            if found is not None:
                yield found
        yield import_module(node["py:module"])
    yield import_module("entaug")


def _import(path: str) -> Any:
    """The object at a dotted path, of which any part may be a module; None if there is none."""
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
        found = next(
            (t for base in owner.__mro__ for n, t in vars(base).get("__annotations__", {}).items() if n == name), None
        )
    return found


def _arguments(owner: Any) -> set[str]:
    """The names of the arguments and fields of an object."""
    names = {field.name for field in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else set()
    with contextlib.suppress(TypeError, ValueError):
        names |= set(inspect.signature(owner).parameters)
    return names


def _look_up(owner: Any, target: str) -> Any:
    """The object that a dotted name refers to: a member of the owner, of its module, of Python, or an absolute path."""
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
    return _import(target) if rest else None


def _link(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.TextElement, found: Any
) -> nodes.Node | None:
    """A link to the documentation of an object, under any of its names."""
    name, module = getattr(found, "__qualname__", None), getattr(found, "__module__", None)
    if inspect.ismodule(found):
        names = [found.__name__]
    elif isinstance(name, str) and isinstance(module, str):
        names = [*(f"{room}.{name}" for room in ROOMS), f"{module}.{name}"]
    else:
        return None
    known = [one for one in names if one in env.domains.python_domain.objects]
    return _linked(app, env, node, contnode, known[0]) if known else None


def _linked(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.TextElement, name: str
) -> nodes.Node | None:
    domain = env.domains.python_domain
    found: nodes.Node | None = domain.resolve_xref(
        env, node.get("refdoc", env.docname), app.builder, "obj", name, node, contnode
    )
    return found
