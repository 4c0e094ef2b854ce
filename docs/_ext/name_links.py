"""What a name in backticks in a docstring means; one that means nothing is a warning, and so an error."""

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

__all__ = ["Names", "resolve"]


class Names(SphinxPostTransform):
    """Settles names in backticks before Sphinx does, which would take any name that ends alike."""

    default_priority = 5  # Sphinx has 10

    def run(self, **_: object) -> None:
        """Replace those that are known, and put a colon after arguments, as docstrings have it."""
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("refdomain") == "py" and not node["reftarget"].startswith("entaug."):
                content = node[0]
                if isinstance(content, nodes.TextElement):
                    new = resolve(self.app, self.env, node, content)
                    if new is not None:
                        node.replace_self(new)
        for text in list(self.document.findall(nodes.Text)):
            if text == " -- ":  # what Sphinx puts between an argument and what it is
                text.parent.replace(text, nodes.Text(": "))


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.TextElement
) -> nodes.Node | None:
    """Lead a name to what it stands for, where that has a place.

    A name is one that the docstring's own object knows: an argument, a field, a member, what its module has, or the end
    of one name on these pages. What is meant but has no page stays as it is written.
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
    documented = env.domains.python_domain.objects
    known = {name for name in documented if name.endswith(f".{target}")}
    asked = {name for name in known if name.startswith("entaug.backends.protocols.")} or known
    return _linked(app, env, node, contnode, asked.pop()) if len(asked) == 1 else None


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
        found = next(
            (t for base in owner.__mro__ for n, t in vars(base).get("__annotations__", {}).items() if n == name), None
        )
    return found


def _arguments(owner: Any) -> set[str]:
    """The names that the Args of an object tell about."""
    names = {field.name for field in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else set()
    with contextlib.suppress(TypeError, ValueError):
        names |= set(inspect.signature(owner).parameters)
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
