"""What a filter is: a dataclass whose fields are its parameters, that learns from gold and judges what was made."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from entaug.data import Sentence
from entaug.errors import InputError, ParameterError

__all__ = ["Filter", "judge_all"]


@dataclass(kw_only=True, eq=False)
class Filter(abc.ABC):
    """Base of the filters. A subclass implements `_judge`, and what it needs of `_check`, `_load` and `_fit`.

    A verdict depends on the sentence, its source and the gold sentences alone, never on what else is judged in the same
    call: so what a method makes depends neither on batches nor on what was made before.
    """

    filter_name: ClassVar[str]
    summary: ClassVar[str]
    reasons: ClassVar[tuple[str, ...]]
    """All that it may say of a sentence that it refuses."""
    without_source: ClassVar[str] = "leave that filter out"
    """What to do where it needs sources and there are none."""

    def __post_init__(self) -> None:
        self._check()

    # -------------------------------------------------------------------------------------------------- for subclasses

    def _check(self) -> None:  # noqa: B027
        """Raise `ParameterError` for parameters that cannot be."""

    def _load(self) -> None:  # noqa: B027
        """Resolve backends, each into an attribute named by its parameter and an underscore."""

    def _fit(self, gold: Sequence[Sentence]) -> None:  # noqa: B027
        """Learn from the gold sentences."""

    @abc.abstractmethod
    def _judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        """One of `reasons` for each sentence that is not to be kept, None for the others."""

    # ------------------------------------------------------------------------------------------------------- for users

    @property
    def needs_source(self) -> bool:
        """Whether it can judge only what was made of something."""
        return False

    @property
    def name(self) -> str:
        """The filter and its parameters, as `create_filters` reads them."""
        return self._told(loaded=False)

    @property
    def signature(self) -> str:
        """What stands in provenance: as `name`, but a loaded backend says which it really is."""
        return self._told(loaded=True)

    def _told(self, *, loaded: bool) -> str:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        if loaded:
            given = {name: getattr(self, f"{name}_", value) for name, value in given.items()}
        told = [f"{name}={self._plain(name, value)}" for name, value in given.items() if value is not None]
        return f"{self.filter_name}:{','.join(told)}" if told else self.filter_name

    def _plain(self, name: str, value: Any) -> str:
        """A parameter's value as text."""
        del name
        return str(value).lower() if isinstance(value, bool) else str(getattr(value, "name", value))

    def load(self) -> Self:
        """Check the parameters and get backends ready; the filter itself is returned.

        Raises:
            ParameterError: a parameter has a value it cannot have, or something is missing.
            MissingModelError: a backend's files are not on this machine.
        """
        self._check()
        wanted = [getattr(self, f.name) for f in fields(self)]
        if wanted != getattr(self, "_loaded", None):
            self._load()
            self._loaded = wanted
        return self

    def fit(self, gold: Sequence[Sentence]) -> Self:
        """See the gold training sentences.

        Raises:
            InputError: it cannot do without something that they do not have.
        """
        self.load()
        self._fit(gold)
        self._fitted = True
        return self

    def judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        """Why sentences are not kept.

        Args:
            made: what a method made.
            sources: for each the gold sentence that it was made of; None where there is none.

        Returns:
            For each sentence one of `reasons`; None where it is kept.

        Raises:
            ParameterError: the filter has not seen the gold sentences.
            InputError: a sentence has no source, and this filter needs it.
        """
        if not getattr(self, "_fitted", False):
            raise ParameterError(f"{self.filter_name} has not seen the gold sentences", remedy="call fit(gold) first")
        if len(made) != len(sources):
            raise ParameterError(f"{len(sources)} sources for {len(made)} sentences")
        if self.needs_source and None in sources:
            raise InputError(
                f"a sentence has no source, and {self.filter_name} judges by it", remedy=self.without_source
            )
        return self._judge(made, sources) if made else []


def judge_all(
    filters: Sequence[Filter], made: Sequence[Sentence], sources: Sequence[Sentence | None]
) -> list[str | None]:
    """Judge by several filters in order; what one refuses the next does not see.

    Args:
        filters: fitted.
        made: see `Filter.judge`.
        sources: see `Filter.judge`.

    Returns:
        For each sentence ``"FILTER: REASON"`` of the first that refuses it; None where all keep it.

    Example:
        >>> from entaug.filters import create_filters
        >>> rome, made = Sentence("Rome burns".split()), Sentence("rome burns".split())
        >>> filters = [one.fit([rome]) for one in create_filters("validity+duplicates")]
        >>> judge_all(filters, [made], [rome])
        ['duplicates: reads as its source']
    """
    found: list[str | None] = [None] * len(made)
    for one in filters:
        left = [i for i, refused in enumerate(found) if refused is None]
        if not left:
            break
        verdicts = one.judge([made[i] for i in left], [sources[i] for i in left])
        for i, reason in zip(left, verdicts, strict=True):
            if reason is not None:
                found[i] = f"{one.filter_name}: {reason}"
    return found


def check_share(name: str, value: object) -> None:
    """Raise where a parameter is neither None nor a number from 0 to 1.

    Raises:
        ParameterError: it is not.
    """
    if value is not None and not (is_number(value) and 0 <= value <= 1):  # type: ignore[operator]
        raise ParameterError(f"{name} must be a number from 0 to 1, or none, not {value!r}")


def is_number(value: object) -> bool:
    """Whether a value is a number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
