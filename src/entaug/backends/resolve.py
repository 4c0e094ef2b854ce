"""Names of backends to instances, without importing any until it is asked for.

A name is a folder on this machine, an alias of the starter set, or a model's name on the hub.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from entaug.backends import protocols
from entaug.errors import ParameterError, UnknownNameError
from entaug.models import catalogue as models

__all__ = ["BACKENDS", "Kind", "resolve"]


class Kind(NamedTuple):
    """A kind of backend.

    Args:
        protocol: what it must do.
        aliases: short names, each with ``"module:Class"`` and the asset whose folder the class is given, or None.
        opener: ``"module:Class"`` that is given the name of any other, a folder or a name on the hub; None where there
            are aliases only.
    """

    protocol: type
    aliases: dict[str, tuple[str, str | None]]
    opener: str | None = None


_MASKED = "entaug.backends.transformers.masked_lm:TransformersMaskedLM"
_CAUSAL = "entaug.backends.transformers.causal_lm:TransformersCausalLM"
_GENERATOR = "entaug.backends.transformers.generator:"
_ENCODER = "entaug.backends.transformers.encoder:TransformersEncoder"
_SPACY = "entaug.backends.parsers.spacy:SpacyParser"
_PACKAGED = "entaug.backends.translation.packaged:"

BACKENDS: dict[str, Kind] = {
    "masked_lm": Kind(
        protocols.MaskedLM, {"mpnet-mlm": (_MASKED, "mpnet-mlm"), "tiny-bert": (_MASKED, "tiny-bert")}, _MASKED
    ),
    "causal_lm": Kind(protocols.CausalLM, {"smollm2": (_CAUSAL, "smollm2")}, _CAUSAL),
    "generator": Kind(
        protocols.Generator,
        {"smollm2": (_GENERATOR + "CausalGenerator", "smollm2")},
        _GENERATOR + "open_generator",
    ),
    "token_lm": Kind(protocols.TokenLM, {"lstm": ("entaug.backends.transformers.lstm:LstmLM", None)}),
    "tagger": Kind(
        protocols.Tagger,
        {"linear": ("entaug.taggers.architectures:LinearTagger", None), "w2ner": ("entaug.taggers.architectures:W2NERTagger", None)},
    ),
    "encoder": Kind(protocols.Encoder, {"minilm": (_ENCODER, "minilm"), "mpnet": (_ENCODER, "mpnet-mlm")}, _ENCODER),
    "translator": Kind(
        protocols.Translator,
        {"en-pt": (_PACKAGED + "EnglishPortuguese", None), "pt-en": (_PACKAGED + "PortugueseEnglish", None)},
        "entaug.backends.translation.open:open_translator",
    ),
    "dependency_parser": Kind(
        protocols.DependencyParser,
        {"en_core_web_sm": (_SPACY, "en_core_web_sm")},
        "entaug.backends.parsers.dependency:open_parser",
    ),
    "constituency_parser": Kind(
        protocols.ConstituencyParser, {}, "entaug.backends.parsers.constituency:open_constituency_parser"
    ),
    "word_vectors": Kind(
        protocols.WordVectors,
        {"glove": ("entaug.backends.lexicon.word_vectors:VectorFolder", "glove")},
        "entaug.backends.lexicon.word_vectors:VectorFolder",
    ),
    "lexicon": Kind(protocols.Lexicon, {"wordnet": ("entaug.backends.lexicon.wordnet:WordNet", None)}),
}


def resolve(kind: str, what: Any) -> Any:
    """A backend, given itself or a name.

    Args:
        kind: a key of `BACKENDS`.
        what: an instance, returned as it is; or an alias, a folder, or a name on the hub.

    Raises:
        UnknownNameError: no backend has that name.
        ParameterError: an instance that does not do what the kind asks.
        MissingExtraError: the library behind it is not installed.
        MissingModelError: its files are not there.

    Example:
        >>> from entaug.backends.fakes import FakeLexicon
        >>> resolve("lexicon", FakeLexicon({})).name
        'fake'
    """
    protocol, aliases, opener = BACKENDS[kind]
    if not isinstance(what, str | Path):
        if not isinstance(what, protocol):
            raise ParameterError(f"{what!r} is not a {kind}: it lacks a method of {protocol.__name__}")
        return what
    name = str(what)
    if name in aliases:
        where, asset = aliases[name]
        return _load(where)(models.path(asset)) if asset else _load(where)()
    # What has no slash and is no folder can hardly be meant for anything but an alias, mistyped.
    if opener is None or not ("/" in name or Path(name).exists() or kind.endswith("_parser")):
        raise UnknownNameError(kind, name, [*aliases, *(["a folder", "a name on the hub"] if opener else [])])
    return _load(opener)(name)


def _load(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)
