"""Whether the models of a method, a filter or a measure serve the language of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from entaug.backends.compute import compute_settings
from entaug.backends.models.catalogue import MODELS
from entaug.backends.resolve import starter_model
from entaug.core.data import Sentence
from entaug.core.languages import LanguageProfile, language_name
from entaug.errors import InputError

_PROFILED = 2000  # sentences by which a note on an encoder is decided
_ANY_LANGUAGE = "pass `use_compute_settings(any_language=True)` to use it nevertheless"
# The parameters of taggers by kind of backend, and what to name where theirs is of another language.
_ENCODERS = {
    "encoder": ("encoder", "a multilingual one, such as multilingual-e5,"),
    "word_vectors": ("vectors", "vectors of its language"),
}


class LoadedModel(NamedTuple):
    """A model that a component uses."""

    kind: str
    given: Any
    backend: Any
    option: str


def served_languages(model: LoadedModel) -> frozenset[str] | None:
    """Return the languages of the text that a model serves."""
    # They are those of the list of starter models, or those that the backend states itself by an attribute `languages`,
    # which is optional: models of transformers have a card, pipelines of spaCy their metadata.
    name = starter_model(model.kind, model.given) if isinstance(model.given, str) else None
    if name is not None:
        return frozenset(MODELS[name].languages) or None
    languages = getattr(model.backend, "languages", None)
    if languages is None and isinstance(language := getattr(model.backend, "language", None), str):
        languages = {language}
    return frozenset(languages) if languages else None


def language_mismatch(model: LoadedModel, profile: LanguageProfile) -> str | None:
    """Return why a model cannot be used for a corpus."""
    languages = served_languages(model)
    reason = profile.mismatch(languages) if languages else None
    if not languages or reason is None:
        return None
    name = model.given if isinstance(model.given, str) else getattr(model.backend, "name", type(model.backend).__name__)
    names = [language_name(code) for code in sorted(languages)]
    shown = " and ".join(names) if len(names) <= 3 else f"{len(names)} languages"
    kind = model.kind.replace("_", " ").replace(" lm", " LM")
    return f"the {kind} {name} serves {shown}, and the text {reason}"


def check_languages(
    sentences: Iterable[Sentence], models: Sequence[LoadedModel], source: str | None = None
) -> Iterator[Sentence]:
    """Pass on the sentences of a corpus, and check at its end that models serve its language."""
    if not models or compute_settings().any_language:
        yield from sentences
        return
    profile = LanguageProfile()
    for sentence in sentences:
        profile.add(sentence)
        yield sentence
    mismatches = {model.option: mismatch for model in models if (mismatch := language_mismatch(model, profile))}
    if mismatches:
        [first, *_] = mismatches.values()
        remedy = f"name another with {' and '.join(mismatches)}, or {_ANY_LANGUAGE}"
        raise InputError(first, path=source, remedy=remedy)


def note_on_encoder(tagger: Any, sentences: Iterable[Sentence]) -> list[str]:
    """Return a note if the starter encoder of a tagger, or its word vectors, are of another language than a corpus."""
    # Such a tagger learns something, so this is no error.
    if compute_settings().any_language:
        return []
    tagger = getattr(tagger, "typical_member", tagger)
    given = {kind: getattr(tagger, name, None) for kind, (name, _) in _ENCODERS.items()}
    named = {kind: name for kind, name in given.items() if isinstance(name, str) and starter_model(kind, name)}
    if not named:
        return []
    profile = LanguageProfile(islice(sentences, _PROFILED))
    for kind, name in named.items():
        if mismatch := language_mismatch(LoadedModel(kind, name, None, ""), profile):
            return [f"{mismatch}; {_ENCODERS[kind][1]} would learn more"]
    return []
