"""The registry class of methods, filters, taggers, formats, measures, backends and starter models.

A registry maps names to the import path of an object, ``"module:attribute"``, which is imported on first use.
Third-party packages add entries through entry points: a package that declares ::

    [project.entry-points."entaug.methods"]
    dropout = "my_package.dropout:Dropout"

adds the method ``dropout`` wherever entaug lists or accepts a method. A name of entaug itself always means its own
object; of two packages with one name the first by alphabet has it. What cannot be used is left out of lists.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module, metadata
from typing import Any, Generic, TypeVar

from entaug.errors import EntaugError, MissingExtraError, ParameterError, UnknownNameError

T = TypeVar("T")

# Distributions whose top-level module has a different name.
_MODULES = {"llama-cpp-python": "llama_cpp", "pytorch-crf": "torchcrf"}
_NAME = re.compile(r"[\w.-]+")  # what the text form of methods and filters can hold
# Modules that are installed with another distribution.
_INSTALLED_WITH = {"srsly": "spacy", "thinc": "spacy", "tokenizers": "transformers", "huggingface_hub": "transformers"}


class Registry(Mapping[str, T], Generic[T]):
    """Mapping of names to objects of one kind, which are imported on first use.

    Args:
        kind: the kind of object, for messages: for example ``"method"``.
        entries: the import path of each object, ``"module:attribute"``, by name, in the order of listings.
        group: the entry point group through which third-party packages add entries, or several; None for a closed
            registry.
        aliases: further names, mapped to the names they stand for; or a function that returns them, called only
            when a name is not among the entries.
        check: called with each object of a third-party package; raises an error if it cannot be used.
        is_exact: whether names in other case, or with ``_`` for ``-``, are others.

    Example:
        >>> registry = Registry("codec", {"json": "json:dumps"}, aliases={"javascript": "json"})
        >>> registry["javascript"]([1])
        '[1]'
        >>> registry["jsno"]
        Traceback (most recent call last):
        ...
        entaug.errors.UnknownNameError: unknown codec 'jsno'; did you mean 'json'? (there are: javascript, json)
    """

    def __init__(
        self,
        kind: str,
        entries: Mapping[str, str],
        *,
        group: str | Sequence[str] | None = None,
        aliases: Mapping[str, str] | Callable[[], Mapping[str, str]] | None = None,
        check: Callable[[str, Any], None] | None = None,
        is_exact: bool = False,
    ) -> None:
        self.kind = kind
        self._built_in = dict(entries)
        self._groups = [group] if isinstance(group, str) else [*(group or ())]
        self._aliases = aliases or {}
        self._check = check
        self._is_exact = is_exact
        self._plugins: dict[str, metadata.EntryPoint] | None = None
        self._unused: list[str] = []  # a line for each plug-in whose name another object has
        self._broken: dict[str, EntaugError] = {}

    def __getitem__(self, name: str) -> T:
        """Return the object of a name, imported if necessary."""
        name = self.canonical(name)
        if name in self._built_in:
            found: T = import_object(self._built_in[name])
            return found
        return self._load_plugin(self._entry_points()[name])

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, without aliases; those of third-party packages are last."""
        yield from self._built_in
        yield from self._entry_points()

    def __len__(self) -> int:
        """Return the number of names, without aliases."""
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        """Whether a name or an alias is known; nothing is imported for a built-in name."""
        try:
            self.canonical(str(name))
        except UnknownNameError:
            return False
        return True

    def canonical(self, name: str) -> str:
        """Return the name that a name or an alias stands for.

        Args:
            name: a name or an alias.

        Raises:
            UnknownNameError: there is no such name; the most similar name is suggested.
        """
        if name in self._built_in or name in self._entry_points():
            return name
        if callable(self._aliases):
            self._aliases = self._aliases()
        if name in self._aliases:
            return self._aliases[name]
        if not self._is_exact:
            by_plain_name = {_plain(known): known for known in (*self._aliases, *reversed([*self]))}
            if (known := by_plain_name.get(_plain(name))) is not None:
                return self._aliases.get(known, known)
        raise UnknownNameError(self.kind, name, [*self, *self._aliases])

    @property
    def built_in(self) -> list[str]:
        """The names of entaug itself."""
        return [*self._built_in]

    def usable(self) -> dict[str, T]:
        """The objects by name, but for plug-ins that cannot be used: see `problems`."""
        objects: dict[str, T] = {}
        for name in self:
            try:
                objects[name] = self[name]
            except EntaugError:
                if name in self._built_in:
                    raise
        return objects

    def problems(self) -> list[str]:
        """A line for each plug-in that cannot be used, or whose name another object has."""
        self.usable()
        return [*map(str, self._broken.values()), *self._unused]

    def check(self, name: str, found: Any) -> None:
        """Check whether an object of a third-party package can be used.

        Args:
            name: the name of its entry point.
            found: the object.

        Raises:
            ValueError: the name has other characters than names have.
            TypeError: the object lacks something, or has another name.
        """
        if not _NAME.fullmatch(name):
            raise ValueError("a name has letters, digits and the characters - _ . alone")
        if self._check:
            self._check(name, found)

    def _entry_points(self) -> Mapping[str, metadata.EntryPoint]:
        if self._plugins is None:
            points = [point for group in self._groups for point in metadata.entry_points(group=group)]
            self._plugins = {}
            ours = {*self._built_in} if self._is_exact else {*map(_plain, self._built_in)}
            for point in sorted(points, key=lambda point: (point.name, _package(point), point.value)):
                is_ours = (point.name if self._is_exact else _plain(point.name)) in ours
                if is_ours or self._plugins.setdefault(point.name, point).value != point.value:
                    owner = "entaug" if is_ours else _package(self._plugins[point.name])
                    unused = f"the {self.kind} {point.name!r} of the package {_package(point)} is not used"
                    self._unused.append(f"{unused}: {owner} has one of that name")
        return self._plugins

    def _load_plugin(self, point: metadata.EntryPoint) -> T:
        if point.name in self._broken:
            raise self._broken[point.name]
        try:
            found: T = point.load()
            self.check(point.name, found)
        except (Exception, SystemExit) as error:
            reason = " ".join(str(error).split())
            self._broken[point.name] = ParameterError(
                f"the {self.kind} {point.name!r} of the package {_package(point)} cannot be used "
                f"({type(error).__name__}{': ' if reason else ''}{reason})",
                remedy="update or uninstall that package",
            )
            raise self._broken[point.name] from error
        return found


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def _package(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist else point.module


def import_object(place: str) -> Any:
    """Import an object."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if missing := extra_of(error):
            raise missing from None
        raise


def import_extra(module: str, extra: str) -> Any:
    """Import a module that comes with an extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(error.name or module, extra) from None


def extra_of(error: ModuleNotFoundError) -> MissingExtraError | None:
    """Create an error with an install hint for a missing optional dependency."""
    missing = (error.name or "").partition(".")[0]
    missing = _INSTALLED_WITH.get(missing, missing)
    found: dict[str, str] = {}
    sizes: Counter[str] = Counter()
    for requirement in metadata.requires("entaug") or ():
        package, marker, extra = requirement.partition("extra ==")
        name = re.split(r"[^\w.-]", package.strip())[0]
        sizes[extra.strip(" \"'")] += 1
        if marker and _MODULES.get(name, name.replace("-", "_").lower()) == missing:
            found[extra.strip(" \"'")] = name
    # Some extras list the packages of others too: the smallest one is meant.
    best = min(found, key=lambda extra: sizes[extra], default=None)
    return None if best is None else MissingExtraError(found[best], best)
