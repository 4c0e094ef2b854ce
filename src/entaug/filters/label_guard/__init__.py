"""The label guard, which refuses sentences whose labels cannot be trusted; on by default for methods with a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from entaug.backends.language_check import LoadedModel, served_languages
from entaug.backends.protocols import EntityRecognizer, Recognition, WordCases
from entaug.backends.resolve import check_name, preparing_command, resolve, resolve_prepared
from entaug.core.data import Sentence
from entaug.core.languages import LanguageProfile, language_name
from entaug.core.words import stop_words
from entaug.filters.base import Filter
from entaug.filters.label_guard.checks import CHECKS, STYLE_CHECKS, CheckedSentence
from entaug.filters.label_guard.names import NameEvidence, NameUsage, TruecasedRecognizer, UncasedNames

_AUTO = "auto"
# The sources of "auto", by the name of the parameter, what they are, and what is not found without them.
_SOURCES = {"word_cases": "smollm2", "entity_recognizer": "en_core_web_sm"}
_CALLED = {"word_cases": "list of words", "entity_recognizer": "recogniser"}
_MISSED = {
    "word_cases": "names without a capital of their own and common words in mentions",
    "entity_recognizer": "names that no capital tells and mentions of a wrong type or part of speech",
}
_SEEN = 1 / 3  # share of the mentions of a type from which on a recogniser knows the type
_ENOUGH = 4  # mentions of a type by which that is judged
_SHOWN = 8  # types in a note
_MAX_STYLE = 0.1  # share of training sentences with a fault from which on it is a matter of style
_SAMPLE = 2000  # training sentences by which sources are judged


@dataclass(kw_only=True, eq=False)
class LabelGuard(Filter):
    """Keep sentences without unlabelled names and without labels on words that are no names.

    The guard learns from the training sentences how names are written: which capitals tell them, which mentions there
    are, and which words are ordinary. It refuses sentences with a name outside mentions, with a mention that cuts a
    longer name, that consists of ordinary words or that has a shape that its type does not have, and with traces of
    prompts, templates, markup and stuck models. Faults that the source has as well are not counted. It never changes a
    sentence.

    Word lists and models count as far as the training sentences agree with them. By default those of the starter set
    are used that are prepared on this machine, if the corpus is in their language; provenance names them.

    Args:
        word_cases: the usual case of words: a `WordCases` or its name, or a folder with the tokenizer of a language
            model; ``"auto"`` for the starter models that are prepared; none for no such list.
        entity_recognizer: a recogniser of entities, of kinds of its own: an `EntityRecognizer` or its name, or a
            pipeline of spaCy; ``"auto"`` and none as for `word_cases`.

    Example:
        >>> from entaug import Mention
        >>> gold = Sentence("She met Ada in Rome".split(), [Mention("PER", [(2, 3)]), Mention("LOC", [(4, 5)])])
        >>> new = Sentence("She met Ada in Oslo".split(), [Mention("PER", [(2, 3)])])
        >>> LabelGuard(word_cases=None, entity_recognizer=None).fit([gold]).judge([new], [gold])
        ['a name without a label']
    """

    name = "guard"
    summary = "no name without a label, and no label on words that are no name"
    reasons = tuple(CHECKS)

    word_cases: WordCases | str | None = _AUTO
    entity_recognizer: EntityRecognizer | str | None = _AUTO
    word_cases_: WordCases | None = field(init=False, repr=False)
    entity_recognizer_: EntityRecognizer | None = field(init=False, repr=False)

    def _check(self) -> None:
        for kind in _SOURCES:
            value = getattr(self, kind)
            if value is not None and value != _AUTO:
                check_name(kind, value)

    @property
    def uses_models(self) -> bool:
        """See `entaug.backends.component.Component`: which ones are used is decided by `fit`."""
        return True

    def _load(self) -> None:
        for kind in _SOURCES:
            value = getattr(self, kind)
            setattr(self, f"{kind}_", None if value in (None, _AUTO) else resolve(kind, value))

    def _fit(self, gold: Sequence[Sentence]) -> None:
        gold = sorted(gold, key=lambda sentence: sentence.fingerprint())  # the order of a corpus changes nothing
        sample = gold[:: max(1, len(gold) // _SAMPLE)]
        language = LanguageProfile(sample).language
        is_served = language in _served_languages()
        for kind, model in _SOURCES.items():
            if getattr(self, kind) == _AUTO:
                setattr(self, f"{kind}_", resolve_prepared(kind, model) if is_served else None)
        self._language = language
        self._stop_words = stop_words(language)
        self._name_usage = NameUsage(gold, self._stop_words)
        self._recognizer = self.entity_recognizer_
        if self._recognizer is not None and self.word_cases_ is not None and not self._name_usage.has_capitals:
            self._recognizer = TruecasedRecognizer(self._recognizer, self.word_cases_)
        recognitions = self._recognize(sample)
        self._name_evidence = NameEvidence(sample, self._name_usage, self.word_cases_, recognitions, self._recognizer)
        self._uncased_names = UncasedNames(gold, self.word_cases_, self._recognizer, self._stop_words)
        judged = [self._judged(sentence) for sentence in sample]
        self._checks = {
            reason: check
            for reason, check in CHECKS.items()
            if reason not in STYLE_CHECKS or sum(any(check(one)) for one in judged) <= _MAX_STYLE * len(judged)
        }

    def model_notes(self) -> list[str]:
        """See `Component.model_notes`: also which checks are not made, and types that the recogniser does not know."""
        notes = super().model_notes()
        if not self.is_fitted:
            return notes
        missing = [kind for kind in _SOURCES if getattr(self, kind) == _AUTO and getattr(self, f"{kind}_") is None]
        if self._language in _served_languages():
            notes += [
                f"the label guard does not find {_MISSED[kind]}, because the {_CALLED[kind]} {model} "
                f"cannot be used; run: {preparing_command(kind, model)}"
                for kind, model in _SOURCES.items()
                if kind in missing
            ]
        elif missing:
            what = " or ".join(_MISSED[kind] for kind in missing)
            name = language_name(self._language) if self._language else "the corpus, whose language it cannot tell"
            notes.append(
                f"the label guard has no {' and no '.join(_CALLED[kind] for kind in missing)} for {name}, and "
                f"finds no {what}; name a pipeline with --no-guard --filter guard:entity_recognizer=NAME"
            )
        return [*notes, *self._note_on_unknown_types()]

    def _note_on_unknown_types(self) -> list[str]:
        if self.entity_recognizer_ is None:
            return []
        counts = self._name_evidence.recognized_mentions()
        unknown = [
            f"{label} (finds {found} of {total} mentions)"
            for label, (found, total) in sorted(counts.items())
            if total >= _ENOUGH and found < _SEEN * total
        ]
        if not unknown:
            return []
        others = f" and {len(unknown) - _SHOWN} other types" if len(unknown) > _SHOWN else ""
        types = "types" if len(unknown) > 1 else "type"
        note = f"the recogniser of the label guard, {self.entity_recognizer_.name}, knows little of the {types} "
        return [f"{note}{', '.join(unknown[:_SHOWN])}{others}: it misses such names without a label"]

    def _recognize(self, sentences: Sequence[Sentence]) -> list[Recognition] | None:
        if self._recognizer is None:
            return None
        return self._recognizer.recognize([sentence.tokens for sentence in sentences])

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        recognitions: Sequence[Recognition | None] = self._recognize(sentences) or [None] * len(sentences)
        return [
            self._first_fault(sentence, source, recognition)
            for sentence, source, recognition in zip(sentences, sources, recognitions, strict=True)
        ]

    def _first_fault(self, sentence: Sentence, source: Sentence | None, recognition: Recognition | None) -> str | None:
        judged = self._judged(sentence, recognition)
        for reason, check in self._checks.items():
            if (faults := set(check(judged))) and (source is None or faults.difference(check(self._judged(source)))):
                return reason
        return None

    def _judged(self, sentence: Sentence, recognition: Recognition | None = None) -> CheckedSentence:
        return CheckedSentence(sentence, self._name_usage, self._name_evidence, recognition, self._stop_words)

    # ----------------------------------------------------------------------------------------------------- for methods

    @property
    def name_evidence(self) -> NameEvidence:
        """Name evidence of the fitted guard, for methods that choose words."""
        return self._name_evidence

    @property
    def uncased_names(self) -> UncasedNames:
        """The names that a corpus without capitals does not show, for methods that replace words."""
        return self._uncased_names


def _served_languages() -> frozenset[str]:
    """The languages that all starter sources serve."""
    served = [served_languages(LoadedModel(kind, model, None, "")) for kind, model in _SOURCES.items()]
    return frozenset.intersection(*(languages or frozenset() for languages in served))


def name_evidence(guard: LabelGuard | None, corpus: Iterable[Sentence]) -> NameEvidence:
    """Return what is known about names, for methods that choose words."""
    return guard.name_evidence if guard else NameEvidence(name_usage=NameUsage(list(corpus)))
