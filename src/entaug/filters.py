"""Filters: whether to keep a sentence that a method made. Every method can have some, one after the other.

A new filter is one class and one line in `FILTERS`.
"""

from __future__ import annotations

import abc
import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from entaug.backends.protocols import Tagger
from entaug.backends.resolve import resolve
from entaug.data import Sentence
from entaug.errors import InputError, ParameterError, UnknownNameError

__all__ = ["FILTERS", "Consistency", "Filter", "create_filters"]


@dataclass(kw_only=True, eq=False)
class Filter(abc.ABC):
    """Base of the filters: a dataclass whose fields are its parameters."""

    filter_name: ClassVar[str]

    @property
    def name(self) -> str:
        """What stands in provenance: the filter and its parameters, as `create_filters` reads them."""
        given = [f"{f.name}={getattr(v, 'name', v)}" for f in fields(self) if (v := getattr(self, f.name)) is not None]
        return f"{self.filter_name}:{','.join(given)}" if given else self.filter_name

    @abc.abstractmethod
    def fit(self, gold: Sequence[Sentence]) -> None:
        """See the gold training sentences."""

    @abc.abstractmethod
    def judge(self, made: Sequence[Sentence]) -> list[str | None]:
        """For each sentence why it is not kept, in a few words that are always the same; None where it is."""


@dataclass(kw_only=True, eq=False)
class Consistency(Filter):
    """Keep what a tagger that has learned from gold alone agrees with.

    ACLM's published code has it, and its paper does not mention it.

    Args:
        tagger: a `Tagger`, or the name of one.
        confidence: the least that the tagger's confidence in a sentence's mentions must be (see `Tagger.confidences`);
            none where it must predict them exactly.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeTagger
        >>> rome = Sentence(["Rome", "burns"], [Mention("LOC", [(0, 1)])])
        >>> consistency = Consistency(tagger=FakeTagger())
        >>> consistency.fit([rome])
        >>> consistency.judge([rome, Sentence(["Rome", "shines"], [Mention("LOC", [(0, 1)])])])
        [None, 'the tagger does not agree']
    """

    filter_name = "consistency"

    tagger: Tagger | str = "linear"
    confidence: float | None = None

    def __post_init__(self) -> None:
        value = self.confidence
        if value is not None and not (isinstance(value, int | float) and 0 <= value <= 1):
            raise ParameterError(f"confidence must be a number from 0 to 1, not {value!r}")

    def fit(self, gold: Sequence[Sentence]) -> None:
        """See `Filter.fit`.

        Raises:
            InputError: there are no mentions to learn from.
            LossError: mentions that the tagger cannot learn.
        """
        if not any(sentence.mentions for sentence in gold):
            raise InputError("no mentions for the consistency filter to learn from", remedy="leave the filter out")
        self.tagger_: Tagger = resolve("tagger", self.tagger).fit(gold)

    def judge(self, made: Sequence[Sentence]) -> list[str | None]:
        """See `Filter.judge`."""
        if self.confidence is None:
            agreed = [a.mentions == b.mentions for a, b in zip(made, self.tagger_.predict(made), strict=True)]
        else:
            agreed = [value >= self.confidence for value in self.tagger_.confidences(made)]
        return [None if one else "the tagger does not agree" for one in agreed]


FILTERS: dict[str, type[Filter]] = {cls.filter_name: cls for cls in (Consistency,)}


def create_filters(what: str | Filter | Sequence[str | Filter] | None) -> list[Filter]:
    """Filters from what a user gives.

    Args:
        what: a filter; its name, with parameters behind a colon; several of these, as a sequence or joined by ``+``.

    Raises:
        UnknownNameError: there is no such filter.
        ParameterError: it has no such parameter, or that value cannot be.

    Example:
        >>> [f.name for f in create_filters("consistency:tagger=linear,confidence=0.5")]
        ['consistency:tagger=linear,confidence=0.5']
    """
    if what is None:
        return []
    if isinstance(what, Filter):
        return [what]
    if not isinstance(what, str):
        return [made for one in what for made in create_filters(one)]
    return [_create(text) for text in what.split("+") if text.strip()]


def _create(text: str) -> Filter:
    name, _, rest = text.strip().partition(":")
    if name not in FILTERS:
        raise UnknownNameError("filter", name, list(FILTERS))
    cls = FILTERS[name]
    known = {f.name: str(f.type) for f in fields(cls)}
    params: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key.strip() not in known:
            near = difflib.get_close_matches(key.strip(), known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            remedy = f"{hint}(as in {name}:{next(iter(known))}=..., it has: {', '.join(known)})"
            raise ParameterError(f"{name} has no parameter {key.strip()!r}", remedy=remedy)
        params[key.strip()] = _value(value.strip(), known[key.strip()])
    return cls(**params)


def _value(text: str, kind: str) -> Any:
    if text.lower() == "none":
        return None
    if "float" in kind:
        try:
            return float(text)
        except ValueError:
            raise ParameterError(f"{text!r} is no number") from None
    return text
