"""Combination of several methods, their text form (``mr:copies=2+lm:top_k=5``), and the function `augment`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from entaug.config.params import construct, parse_assignments
from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.core.progress import in_notebook, show_progress
from entaug.errors import ParameterError
from entaug.files.review import Review
from entaug.filters import Filter
from entaug.formats.exchange import as_corpus
from entaug.methods import METHODS
from entaug.methods.base import Augmenter, Run, augmenters_of
from entaug.methods.types import OutputTarget, RunStatistics
from entaug.teacher.relabel import Relabeller, create_relabeller


class CombinedAugmenter:
    """A combination of several augmenters with the interface of one.

    Each augmenter contributes its own ``copies`` of every source sentence, in the given order. If two augmenters
    generate the same sentence, it is kept once. Provenance names the method that generated a sentence.

    Args:
        augmenters: two or more; no two of the same method and seed.

    Attributes:
        statistics_: the counts of the latest run (`RunStatistics`).

    Raises:
        ParameterError: two augmenters would generate the same sentences, or one is none.

    Example:
        >>> from entaug.methods import MentionReplacement, ShuffleWithinSegments
        >>> combined = CombinedAugmenter([MentionReplacement(copies=2), ShuffleWithinSegments()])
        >>> combined.name, combined.copies
        ('mr+sis', 3)
    """

    def __init__(self, augmenters: Iterable[Augmenter | CombinedAugmenter]) -> None:
        self.augmenters = tuple(one for item in augmenters for one in augmenters_of(item))
        if not self.augmenters:
            raise ParameterError("no method is given", remedy="for example mr, or mr:copies=2+sis")
        self._progress: Callable[[int, int, float], None] | None = None
        kinds = [(augmenter.name, augmenter.seed) for augmenter in self.augmenters]
        if repeated := [name for name, seed in kinds if kinds.count((name, seed)) > 1]:
            raise ParameterError(
                f"{repeated[0]} occurs twice with the same seed",
                remedy=f"give them different seeds: {repeated[0]}:seed=1+{repeated[0]}:seed=2",
            )

    @property
    def name(self) -> str:
        """The names of the methods, joined by ``+``."""
        return "+".join(augmenter.name for augmenter in self.augmenters)

    @property
    def copies(self) -> int:
        """The number of augmented sentences requested per source sentence."""
        return sum(augmenter.copies or 1 for augmenter in self.augmenters)

    @property
    def signature(self) -> str:
        """The signatures of the methods."""
        return " + ".join(augmenter.signature for augmenter in self.augmenters)

    @property
    def starters(self) -> set[str]:
        """The starter models on this machine that the methods may use."""
        return set().union(*(augmenter.starters for augmenter in self.augmenters))

    @property
    def filters_(self) -> list[Filter]:
        """The filters of all methods, once they are loaded."""
        return [filter_ for augmenter in self.augmenters for filter_ in augmenter.filters_]

    @property
    def teacher_(self) -> Relabeller | None:
        """The first teacher of the methods, once they are loaded; they usually share one."""
        return next((augmenter.teacher_ for augmenter in self.augmenters if augmenter.teacher_), None)

    @property
    def progress(self) -> Callable[[int, int, float], None] | None:
        return self._progress

    @progress.setter
    def progress(self, progress: Callable[[int, int, float], None] | None) -> None:
        self._progress = progress
        for augmenter in self.augmenters:
            augmenter.progress = progress

    @property
    def is_fitted(self) -> bool:
        """Whether all methods are fitted."""
        return all(augmenter.is_fitted for augmenter in self.augmenters)

    def load(self) -> Self:
        for augmenter in self.augmenters:
            augmenter.load()
        return self

    def fit(self, corpus: Iterable[Sentence]) -> Self:
        """Fit all methods.

        Args:
            corpus: the training sentences; read once and held in memory.

        Returns:
            This augmenter.

        Raises:
            ParameterError: a parameter has an invalid value.
            InputError: the corpus has nothing that one of the methods can use.
        """
        gold = as_corpus(corpus)
        for augmenter in self.augmenters:
            augmenter.fit(gold)
        return self

    @property
    def uses_models(self) -> bool:
        """Whether one of the methods uses models; see `entaug.backends.component.Component`."""
        return any(augmenter.uses_models for augmenter in self.augmenters)

    def hold_out(self, sentences: Iterable[Sentence]) -> bool:
        """Name the dev and test sentences for all methods; see `Augmenter.hold_out`.

        Args:
            sentences: the sentences.

        Returns:
            Whether one of the methods uses them.
        """
        held_out = list(sentences)
        used = [augmenter.hold_out(held_out) for augmenter in self.augmenters]
        return any(used)

    def notes(self) -> list[str]:
        """Return notes on the fitted corpus for the user.

        Returns:
            The notes of all methods.
        """
        return list(dict.fromkeys(note for augmenter in self.augmenters for note in augmenter.notes()))

    def advice(self, statistics: RunStatistics) -> list[str]:
        """Return notes on the augmented sentences for the user.

        Args:
            statistics: the counts of a run.

        Returns:
            The advice of all methods.
        """
        return [line for augmenter in self.augmenters for line in augmenter.advice(statistics)]

    def augment(self, corpus: Iterable[Sentence]) -> Iterator[Sentence]:
        """Generate augmented sentences; see `Augmenter.augment`.

        Args:
            corpus: the training sentences; read once, streamed.

        Yields:
            For each source the sentences of the first method, then those of the second, and so on.

        Raises:
            ParameterError: a parameter has an invalid value, or a method must be fitted first.
        """
        yield from self.run().sentences(corpus)

    def run(self, *, target: OutputTarget | None = None, review: Review | None = None) -> Run:
        """Create a run; see `Augmenter.run`.

        Args:
            target: see `Run`.
            review: decisions about sentences of an earlier run.

        Returns:
            The run of all methods.

        Raises:
            ParameterError: a parameter has an invalid value, or a method must be fitted first.
        """
        for augmenter in self.augmenters:
            augmenter.check_ready()
        run = Run(self.augmenters, target=target, review=review)
        self.statistics_ = run.statistics
        return run


def parse_methods(text: str, **parameters: Any) -> Augmenter | CombinedAugmenter:
    """Create an augmenter from the text form of one or more methods.

    Args:
        text: names of methods joined by ``+`` or ``,``, each optionally with parameters after a colon:
            ``mr``, ``mr,sis``, ``mr:copies=2,p=0.5+lm:top_k=5``.
        parameters: parameters of every method, unless the text sets them; ``unlabelled`` only of those that have it.

    Returns:
        The augmenter of a single method, or a `CombinedAugmenter`; not fitted.

    Raises:
        UnknownNameError: there is no such method, or a method has no such parameter.
        ParameterError: a parameter has an invalid value, or the text names no method.

    Example:
        >>> [(a.name, a.copies, a.seed) for a in parse_methods("mr:copies=2+sis", seed=7).augmenters]
        [('mr', 2, 7), ('sis', 1, 7)]
    """
    parameters = _with_one_teacher(parameters)
    assignments: list[tuple[str, list[str]]] = []
    for part in filter(None, map(str.strip, re.split(r"[+,]", text))):
        name, colon, first = part.partition(":")
        if "=" not in name:
            assignments.append((name.strip(), [first] if colon and first else []))
        elif assignments:
            assignments[-1][1].append(part)
        else:
            raise ParameterError(
                f"{text!r} does not begin with the name of a method", remedy="for example mr:copies=2+sis"
            )
    if not assignments:
        raise ParameterError("no method is given", remedy="for example mr, or mr:copies=2+sis")
    augmenters = []
    need_text = [name for name, _ in assignments if hasattr(METHODS[name], "unlabelled")]
    for name, texts in assignments:
        cls = METHODS[name]
        without = () if name in need_text or not need_text else ("unlabelled",)
        shared = {key: value for key, value in parameters.items() if key not in without}
        augmenters.append(construct(cls, name, {**shared, **parse_assignments(cls, name, texts)}))
    return augmenters[0] if len(augmenters) == 1 else CombinedAugmenter(augmenters)


def _with_one_teacher(parameters: dict[str, Any]) -> dict[str, Any]:
    """Create the teacher once, so that all methods share it and it is trained once."""
    if isinstance(teacher := parameters.get("teacher"), str):
        return {**parameters, "teacher": create_relabeller(teacher)}
    return parameters


def augment(
    corpus: Iterable[Any],
    method: str | Augmenter | CombinedAugmenter | Iterable[str | Augmenter | CombinedAugmenter],
    **parameters: Any,
) -> Corpus:
    """Fit one or more methods on a corpus and return the augmented sentences.

    Args:
        corpus: the training sentences, in any form that `entaug.formats.as_corpus` takes.
        method: a method in the text form of `parse_methods` (``"mr"``, ``"mr:copies=2+sis"``), an augmenter, or several
            of these.
        parameters: parameters of every method given as text, unless the text sets them.

    Returns:
        The augmented sentences, without the gold ones, each with a unique id and its provenance.

    Raises:
        UnknownNameError: there is no such method, or a method has no such parameter.
        ParameterError: a parameter has an invalid value, or a method is neither text nor an augmenter.
        InputError: the corpus has nothing that a method can use.

    Example:
        >>> from entaug import Mention
        >>> gold = [Sentence(text.split(), [Mention("PER", [(0, 1)])]) for text in ("Ada sings", "Bo rests")]
        >>> [" ".join(sentence.tokens) for sentence in augment(gold, "mr", p=1.0)]
        ['Bo sings', 'Ada rests']
    """
    gold = as_corpus(corpus)
    parameters = _with_one_teacher(parameters)
    items = list(method) if isinstance(method, Iterable) and not isinstance(method, str) else [method]
    if parameters and items and not any(isinstance(item, str) for item in items):
        remedy = "give them where it is created: entaug.create_augmenter(name, ...)"
        raise ParameterError(
            f"{next(iter(parameters))} is for methods given as text, not for augmenters", remedy=remedy
        )
    combined = CombinedAugmenter(parse_methods(item, **parameters) if isinstance(item, str) else item for item in items)
    new: list[Sentence] = []
    with show_progress(quiet=not in_notebook()) as progress:
        for sentence in combined.fit(gold).augment(gold):
            new.append(sentence)
            progress("augmenting", len(new), combined.copies * len(gold))
    return Corpus(new)
