"""Base of augmenters and filters: parameters, backends, fitting and signature."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Any, ClassVar, Self

from entaug.backends.language_check import LoadedModel, check_languages
from entaug.backends.resolve import BACKENDS, STARTERS, check_name, is_starter_prepared, resolve
from entaug.config.params import Configurable, Parameter, parameters
from entaug.config.registry import extra_of
from entaug.core.data import Sentence
from entaug.core.words import AUTO
from entaug.errors import EntaugError, MissingExtraError, MissingModelError

_NO_PLUGINS = ("entaug", "__main__", "__mp_main__")  # of a script that is changed all the time
_TRAINED = frozenset({"tagger", "token_lm"})


def is_foreign(cls: type) -> bool:
    """Whether a class is not one of entaug: that of a plug-in, or of a program."""
    return cls.__module__.partition(".")[0] != "entaug"


def name_of_part(part: Any, kind: str) -> str:
    """The name of a method, a filter or a format in errors, with its class."""
    return f"the {kind} {getattr(part, 'name', '?')} ({type(part).__module__}.{type(part).__qualname__})"


@contextmanager
def naming_faults(part: Any, kind: str, sentence: Sentence | None = None) -> Iterator[None]:
    """Name a method or a filter of another package in the errors of its code, which else look like those of entaug."""
    try:
        yield
    except Exception as error:
        is_named = hasattr(error, "named_part") or isinstance(error, MissingExtraError | MissingModelError)
        is_of_file = isinstance(error, EntaugError) and error.path is not None  # that is read meanwhile
        if is_named or is_of_file or not is_foreign(type(part)):
            raise
        name = name_of_part(part, kind)
        where = "" if sentence is None else f", sentence {sentence.key}"
        if isinstance(error, EntaugError):
            error.message = f"{name}{where}: {error.message}"
        elif isinstance(error, ModuleNotFoundError) and extra_of(error) is None:
            message = f"{name} needs {error.name!r}, which is not installed"
            raise EntaugError(message, remedy="install it, or update that package") from error
        else:
            error.add_note(f"raised in {name}{where}, which is not a part of entaug")
        error.named_part = name  # type: ignore[attr-defined]
        raise


@cache
def code_digest(cls: type) -> str | None:
    """A digest of the Python files of the packages outside entaug that define a class and its bases; None without."""
    # A package that is being written rarely gets a new version number: results of its former code must not be taken for
    # those of the present one.
    files: set[Path] = set()
    for base in cls.__mro__:
        top = base.__module__.partition(".")[0]
        if top in _NO_PLUGINS or top in sys.stdlib_module_names:
            continue
        package = sys.modules.get(top)
        folders = [Path(folder) for folder in getattr(package, "__path__", ())]
        files.update(file for folder in folders for file in folder.rglob("*.py"))
        if not folders and (file := getattr(package, "__file__", None)):
            files.add(Path(file))
    if not files:
        return None
    digest = blake2b(digest_size=4)
    for content in sorted(blake2b(file.read_bytes()).digest() for file in files):
        digest.update(content)
    return digest.hexdigest()


class _KnowsGivenParameters:
    """Base of classes whose objects know which parameters were given."""

    _given: frozenset[str]

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Create an object."""
        del args
        new = super().__new__(cls)
        new._given = frozenset(given)
        return new


@dataclass(kw_only=True, eq=False)
class Component(Configurable, _KnowsGivenParameters):
    """Base of dataclasses with checked parameters, some of which may be backends.

    A field that has the name of a kind of backend (`entaug.backends.resolve.BACKENDS`) holds a backend or the name of
    one. `load` resolves it into the attribute of the same name with an underscore behind it (``masked_lm_``), unless
    `_uses_backend` says that it is not needed.
    """

    name: ClassVar[str]
    """The name in the registry."""
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {}
    """Of a class with a field ``preset``: for each preset the values of the fields that are not given.

    None counts as not given where it is the default. A preset of a paper is an `entaug.config.presets.Preset`.
    """

    def __post_init__(self) -> None:
        self._loaded_params: list[Any] | None = None
        self._is_fitted = False
        self._set_by_preset: set[str] = set()
        defaults = {parameter.name: parameter.default for parameter in self._parameters()}
        for name, value in self.presets.get(str(getattr(self, "preset", "")), {}).items():
            if name not in self._given or (getattr(self, name) is None and defaults[name] is None):
                setattr(self, name, value)
                self._set_by_preset.add(name)
        super().__post_init__()

    def _parameters(self) -> tuple[Parameter, ...]:
        cls: Any = type(self)
        return parameters(cls)

    @property
    def _backend_kinds(self) -> list[str]:
        """The kinds of backends that the fields hold."""
        return [parameter.name for parameter in self._parameters() if parameter.name in BACKENDS]

    # -------------------------------------------------------------------------------------------------- for subclasses

    def _uses_backend(self, kind: str) -> bool:
        """Whether the backend of a field is needed with the present parameters."""
        return True

    def _named_backends(self, kind: str) -> Iterable[Any]:
        """The backends, or their names, that the value of a field stands for."""
        return [getattr(self, kind)]

    def _models(self) -> list[LoadedModel]:
        """The loaded models that read the text of the corpus as it is; what is trained on it from scratch is not."""
        return [
            LoadedModel(kind, getattr(self, kind), getattr(self, f"{kind}_"), self._option(kind))
            for kind in self._backend_kinds
            if kind not in _TRAINED and self._uses_backend(kind) and hasattr(self, f"{kind}_")
        ]

    def _option(self, kind: str) -> str:
        """The option that names another backend, for messages."""
        return f"`{kind}=NAME`"

    def _load(self) -> None:
        """Resolve the backends."""
        loaders = {k: partial(resolve, k, getattr(self, k)) for k in self._backend_kinds if self._uses_backend(k)}
        for kind, backend in self._load_models(loaders).items():
            setattr(self, f"{kind}_", backend)

    def _load_models(self, loaders: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """Load models; the error for missing ones of a preset names all of them, and the options to replace them."""
        preset: Any = getattr(self, "preset", None)
        is_default = any(p.name == "preset" and p.default == preset for p in self._parameters())
        models: dict[str, Any] = {}
        missing: dict[str, EntaugError] = {}
        for name, load in loaders.items():
            try:
                models[name] = load()
                getattr(models[name], "check_requirements", lambda: None)()  # a tagger needs its encoder only later
            except (MissingExtraError, MissingModelError) as error:
                if is_default or name not in self._set_by_preset:
                    raise
                missing[name] = error
        if missing:
            names = ", ".join(f"{name.replace('_', ' ')} {getattr(self, name)}" for name in missing)
            options = " ".join(self._option(name) for name in missing)
            [first, *_] = missing.values()
            raise MissingModelError(
                f"the preset {preset!r} of {self.name} needs what is not on this machine: {names} ({first})",
                remedy=f"install it, or replace the models alone and keep all other settings: `preset='{preset}'` "
                f"{options}",
            )
        return models

    # ------------------------------------------------------------------------------------------------------- for users

    def check_backends(self) -> None:
        """Check that the backends that are used may exist, without loading any.

        Raises:
            UnknownNameError: there is no backend of this name; the most similar name is suggested.
            ParameterError: an object is no such backend.
        """
        for kind in filter(self._uses_backend, self._backend_kinds):
            for backend in self._named_backends(kind):
                if backend not in (None, AUTO):
                    check_name(kind, backend)

    def check_languages(self, sentences: Iterable[Sentence]) -> None:
        """Check that the loaded models serve the language of a corpus.

        Args:
            sentences: the sentences.

        Raises:
            InputError: a model serves another language, and `entaug.backends.compute` is not set to allow it.
        """
        for _ in check_languages(sentences, self._models()):
            pass

    @property
    def kinds_by_default(self) -> set[str]:
        """The kinds of backends that are used with the present parameters, also those of ``"auto"`` if prepared."""
        return {kind for kind in self._backend_kinds if self._uses_backend(kind) or getattr(self, kind) == AUTO}

    @property
    def starters(self) -> set[str]:
        """The starter models on this machine that ``"auto"`` can stand for, which the corpus decides in `fit`."""
        kinds = (kind for kind in self._backend_kinds if getattr(self, kind) == AUTO)
        return {STARTERS[kind] for kind in kinds if is_starter_prepared(kind)}

    def model_notes(self) -> list[str]:
        """Return what loaded models have to say to the user, for example which labels those of a tagger stand for.

        Returns:
            Lines of text, from their attribute ``notes``, which is optional.
        """
        models = [getattr(self, f"{parameter.name}_", None) for parameter in self._parameters()]
        models += [getattr(model, "tagger", None) for model in models]  # that of a teacher
        notes = [getattr(model, "notes", ()) for model in models]
        return list(dict.fromkeys(note for one in notes if isinstance(one, list | tuple) for note in one))

    @property
    def uses_models(self) -> bool:
        """Whether models compute for this component, once it is loaded; lists of words are none."""
        return any(getattr(self, f"{kind}_", None) is not None for kind in self._backend_kinds if kind != "lexicon")

    @property
    def is_fitted(self) -> bool:
        """Whether `fit` has been called with the present backends and filters."""
        return self._is_fitted

    def get_params(self, *, loaded: bool = False) -> dict[str, Any]:
        """Return the parameters as plain values, without those that only name a place on this machine.

        Args:
            loaded: name the backends that `load` has resolved instead of those that were given.

        Returns:
            The values by name; a backend given as an instance is represented by its name.
        """
        values = {}
        for parameter in self._parameters():
            if parameter.metadata.get("local"):
                continue
            name = parameter.name
            value = getattr(self, name)
            values[name] = self._plain(name, getattr(self, f"{name}_", value) if loaded else value)
        return values

    def _spec(self, *, loaded: bool) -> str:
        """Name and parameters in text form, ``name:parameter=value,...``."""
        values = {name: value for name, value in self.get_params(loaded=loaded).items() if value is not None}
        texts = [f"{name}={str(v).lower() if isinstance(v, bool) else v}" for name, v in values.items()]
        return f"{self.name}:{','.join(texts)}" if texts else self.name

    def _plain(self, name: str, value: Any) -> Any:
        """Represent the value of a parameter as a number, a string, a boolean or None."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list | tuple):
            return "+".join(str(self._plain(name, item)) for item in value)
        if isinstance(value, Mapping):
            return "+".join(f"{key}:{self._plain(name, own)}" for key, own in value.items())
        if isinstance(value, set | frozenset):
            return "+".join(sorted(str(self._plain(name, item)) for item in value))
        if isinstance(value, PurePath):
            return str(value)
        return getattr(value, "name", None) or type(value).__name__

    def load(self) -> Self:
        """Check the parameters and load the backends; nothing is loaded twice.

        Returns:
            The object itself.

        Raises:
            ParameterError: a parameter has an invalid value.
            MissingModelError: the files of a backend are not on this machine.
            MissingExtraError: a backend needs an optional dependency that is not installed.
        """
        self.validate()
        params = [getattr(self, parameter.name) for parameter in self._parameters()]
        if params != self._loaded_params:
            self._load()
            self._loaded_params = params
        return self
