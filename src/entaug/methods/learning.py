"""How methods learn from a corpus: as a whole, or part by part; and how they are saved."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from entaug.backends.component import Component
from entaug.backends.resolve import BACKENDS
from entaug.core.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.filters import Filter
from entaug.methods.survey import Learned, LearnedPart, Survey, SurveyCounts, source_of
from entaug.methods.types import MethodInfo
from entaug.teacher import Relabeller

__all__ = ["Learning"]


class Learning(Component):
    """The part of `entaug.methods.base.Augmenter` that fits it.

    Attributes:
        info: the description of the method.
        existing_ids: ids of the corpus that contain `id_infix`.
        id_infix: the part that the ids of all sentences of the method and its seed share.
        signature: the method and its parameters, as in provenance.
    """

    info: ClassVar[MethodInfo]
    existing_ids: set[str]
    filters_: list[Filter]
    teacher_: Relabeller | None
    _corpus: Iterable[Sentence] | None = None

    @property
    def id_infix(self) -> str:
        """The part that the ids of all sentences of this method and seed share."""
        raise NotImplementedError

    @property
    def signature(self) -> str:
        """Method, parameters and version, with the full names of loaded backends."""
        raise NotImplementedError

    def check_ready(self) -> None:
        """Check that the method is fitted, if it needs fitting.

        Raises:
            NotImplementedError: a subclass does not implement it.
        """
        raise NotImplementedError

    # -------------------------------------------------------------------------------------------------- for subclasses

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        """Fit the method to the training corpus, in one pass."""
        # A method that can learn from the parts of a corpus, one by one, overrides `_learn` and `_conclude` instead.
        self._conclude(self._learn(corpus))

    def _learn(self, corpus: Iterable[Sentence]) -> Learned | None:
        """Return what a part of the training corpus tells; the method itself does not change."""
        del corpus
        return None

    def _conclude(self, learned: Any) -> None:
        """Fit the method to what was learned from all parts."""

    def fit(self, corpus: Iterable[Sentence]) -> Self:
        """Fit the method to the training sentences (never to dev or test sentences).

        Args:
            corpus: the sentences; read once.

        Returns:
            This augmenter.

        Raises:
            ParameterError: a parameter has an invalid value.
            InputError: the corpus has no mentions, nothing that the method can use, or a language that its model does
                not serve.
        """
        self.load()
        if self.learns_in_parts:
            return self.fit_learned(self.learn(corpus), source_of(corpus))
        survey = Survey(corpus, self.info, self.id_infix, self._models())
        self._corpus = None
        if self._is_saved_as_corpus and not isinstance(corpus, Iterator):
            self._corpus = tuple(corpus) if isinstance(corpus, Sequence) else corpus
        if self.filters_ or self.teacher_:
            gold = list(survey)
            if self.teacher_:
                self.teacher_.fit(gold)
            for filter_ in self.filters_:
                filter_.fit(gold)
            self._fit(gold)
        else:
            self._fit(survey)
        for _ in survey:  # a method may not have read the corpus to its end
            pass
        return self._finish_fit(survey.counts, survey.source)

    def _finish_fit(self, counts: SurveyCounts, source: str | None) -> Self:
        """Check that the corpus has something that the method can use."""
        if self.info.needs_mentions and not counts.mentions:
            raise InputError(
                f"the corpus has no mentions, which {self.name} needs", path=source, remedy="check the tag column"
            )
        if counts.rejected and counts.rejected == counts.with_mentions:
            kinds = [kind for kind in ("nested", "discontinuous") if not getattr(self.info, kind)]
            raise InputError(
                f"every sentence with mentions has {' or '.join(kinds)} mentions, which {self.name} does not support",
                path=source,
                remedy="use another method, see: entaug list methods",
            )
        self.existing_ids = counts.existing_ids
        self._is_fitted = True
        return self

    # ------------------------------------------------------------------------------------------------- fitting in parts

    @property
    def learns_in_parts(self) -> bool:
        """Whether `learn` and `fit_learned` can take the place of `fit`, once the method is loaded.

        Filters, teachers and models that check the language need the whole corpus.
        """
        cls = type(self)
        has_parts = cls._fit is Learning._fit or cls._learn is not Learning._learn
        return has_parts and not (self.filters_ or self.teacher_ or self._models())

    def learn(self, corpus: Iterable[Sentence]) -> LearnedPart:
        """Learn from a part of the training sentences, for example in a process of its own.

        Args:
            corpus: the sentences; read once.

        Returns:
            What `fit_learned` needs, after the `LearnedPart.update` with all other parts in their order.
        """
        survey = Survey(corpus, self.info, self.id_infix)
        learned = self._learn(survey)
        for _ in survey:  # a method without a fit has not read the corpus
            pass
        return LearnedPart(survey.counts, learned)

    def fit_learned(self, learned: LearnedPart, source: str | None = None) -> Self:
        """Fit the method to what was learned from all parts of the training sentences.

        Args:
            learned: what was learned; not to be used afterwards.
            source: the origin of the corpus, for messages.

        Returns:
            This augmenter.

        Raises:
            InputError: see `fit`.
        """
        try:
            self._conclude(learned.learned)
        except InputError as error:
            error.path = error.path or source
            raise
        return self._finish_fit(learned.counts, source)

    # ------------------------------------------------------------------------------------------------------- saved fits

    @property
    def _is_saved_as_corpus(self) -> bool:
        """Whether the training sentences are saved, to fit the method and its filters again, not what it learned."""
        cls = type(self)
        learns = cls._fit is not Learning._fit or cls._learn is not Learning._learn
        return bool(self.filters_) or (learns and cls._state is Learning._state)

    def _state(self) -> dict[str, Any]:
        """Return what `_conclude` or `_fit` made, as plain values; the same ones for the same corpus."""
        # A method that does not override it is fitted again where it is loaded.
        return {}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `_state` returned."""
        del state

    def _trained_files(self) -> dict[str, bytes]:
        """Return the files of the model that the method trained, by name; none for one that trains none."""
        return {}

    def _restore_trained(self, files: Mapping[str, bytes]) -> None:
        """Use files that `_trained_files` returned in the next `fit`, in place of a training."""
        del files

    def _check_savable(self) -> None:
        """Check that `fitted_state` tells everything."""
        if self.teacher_:
            remedy = "fit it where it is needed"
            raise ParameterError(f"{self.name} with a teacher cannot be saved", remedy=remedy)
        if (filters := getattr(self, "filters", None)) and not isinstance(filters, str):
            remedy = "give them as text, for example filters='duplicates'"
            raise ParameterError(f"{self.name} has filters given as Python objects and cannot be saved", remedy=remedy)
        for kind in BACKENDS:
            if not isinstance(getattr(self, kind, None), str | None):
                remedy = "give the name of the model instead"
                raise ParameterError(f"{self.name} was given a {kind} object and cannot be saved", remedy=remedy)

    def fitted_state(self, corpus: Iterable[Sentence] | None = None) -> dict[str, Any]:
        """Return the fitted method as plain values, for JSON.

        Args:
            corpus: the training sentences, if `fit` was called with an iterator, which can be read only once.

        Returns:
            The name, the parameters and what was learned, or the training sentences with the files of the model that
            was trained; `restore` takes them over.

        Raises:
            ParameterError: it is not fitted; it has a teacher, lists of mentions, or filters or models given as Python
                objects; or the training sentences are needed and were read from an iterator.
        """
        self.check_ready()
        self._check_savable()
        learned: dict[str, Any]
        if self._is_saved_as_corpus:
            if (gold := self._corpus if corpus is None else corpus) is None:
                remedy = "fit it on a list, or on what entaug.read or entaug.stream return"
                raise ParameterError(f"{self.name} was fitted on sentences that can be read only once", remedy=remedy)
            sentences = [sentence.to_dict() for sentence in gold]
            files = {name: b64encode(content).decode() for name, content in self._trained_files().items()}
            learned = {"corpus": sentences, **({"trained": files} if files else {})}
        else:
            learned = {"state": self._state()}
        parameters = {p.name: getattr(self, p.name) for p in self._parameters() if not p.metadata.get("local")}
        given = {name: value for name, value in parameters.items() if not isinstance(value, Filter | list | tuple)}
        return {
            "method": self.name,
            "parameters": {name: value for name, value in given.items() if name != "teacher"},
            "existing_ids": sorted(self.existing_ids),
            **learned,
            **({"signature": self.signature} if self._is_saved_as_corpus or self._has_backends else {}),
        }

    @property
    def _has_backends(self) -> bool:
        """Whether models or word lists are loaded by name, which may be other ones on another machine."""
        return any(getattr(self, f"{kind}_", None) is not None for kind in BACKENDS)

    def restore(self, fitted: Mapping[str, Any]) -> Self:
        """Take over a fit.

        Args:
            fitted: what `fitted_state` of a method with the same parameters returned.

        Returns:
            This augmenter.

        Raises:
            InputError: it is not such a value; or this machine has other models or word lists than the one that fitted
                the method.
        """
        self.load()
        try:
            corpus = [Sentence.from_dict(value) for value in fitted["corpus"]] if "corpus" in fitted else None
            files = {name: b64decode(text, validate=True) for name, text in fitted.get("trained", {}).items()}
            existing_ids, signature = set(fitted["existing_ids"]), fitted.get("signature")
            if self._is_saved_as_corpus != (corpus is not None):
                raise ValueError  # noqa: TRY301
            if corpus is None:
                self._restore(fitted["state"])
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise InputError("is no fitted method", remedy="name a file that save_augmenter wrote") from None
        if corpus is not None:
            self._restore_trained(files)
            try:
                self.fit(corpus)
            finally:
                self._restore_trained({})
        if signature not in (None, self.signature):
            raise InputError(
                f"was fitted with other models or parameters: {signature} there, {self.signature} here",
                remedy="prepare the same models, or fit it again",
            )
        self.existing_ids = existing_ids
        self._is_fitted = True
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the training sentences, which only `fitted_state` needs."""
        return {**self.__dict__, "_corpus": None}
