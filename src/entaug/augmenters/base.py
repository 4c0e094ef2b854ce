"""The contract of every method, and all that is not the method itself.

A method is a dataclass: its fields are its parameters, its class facts say what it keeps and needs, and it
implements one of `Augmenter._rewrite` (one sentence) and `Augmenter._rewrite_many` (a batch, where a model is
behind it). The base draws random streams, validates, drops what is equal to its source or was made before, asks
again up to a bound, counts, and writes provenance.
"""

from __future__ import annotations

import abc
import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from entaug._version import __version__
from entaug.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.filters import Filter, create_filters, judge_all

if TYPE_CHECKING:
    from entaug.augmenters.run import Run

__all__ = [
    "DUPLICATE",
    "NOT_SEEN",
    "NO_CANDIDATE",
    "UNCHANGED",
    "UNWRITABLE",
    "Augmenter",
    "MethodInfo",
    "Rejection",
    "Request",
    "RunStatistics",
    "mark_of",
    "rejection_for",
    "source_of",
]


@dataclass(frozen=True)
class MethodInfo:
    """What a method is and keeps: the documentation, ``entaug methods`` and the conformance suite are made from it.

    Args:
        name: its registry name, the field's acronym in lower case.
        long_name: the long form, an alias.
        summary: what it does, one line.
        paper: where it comes from.
        keeps_length: every sentence keeps its number of tokens.
        keeps_order: tokens and mentions stay in order.
        keeps_words: every sentence keeps its tokens (as a multiset).
        keeps_mention_words: mentions keep their words (as a multiset).
        keeps_mentions: every sentence keeps the number and labels of its mentions.
        nested: works on corpora with nested mentions.
        discontinuous: works on corpora with discontinuous mentions.
        draws: makes something else of a sentence with each seed, and on line in each epoch.
        needs_fit: must see the training corpus first.
        needs_mentions: can do nothing on a corpus without mentions.
        unconditioned: writes from nothing; the source of a sentence is only the one whose place in the output it takes.
        needs: the kinds of backend it uses.
        may_need: those that it uses with some of its options only.
        cost: what it costs, in words.
    """

    name: str
    long_name: str
    summary: str
    paper: str
    keeps_length: bool = False
    keeps_order: bool = False
    keeps_words: bool = False
    keeps_mention_words: bool = False
    keeps_mentions: bool = True
    nested: bool = True
    discontinuous: bool = True
    draws: bool = True
    needs_fit: bool = False
    needs_mentions: bool = False
    unconditioned: bool = False
    needs: tuple[str, ...] = ()
    may_need: tuple[str, ...] = ()
    cost: str = "rules: tens of thousands of sentences a second"


class Rejection(NamedTuple):
    """Why a draft was not made.

    Args:
        reason: a short name; rejections are counted by it.
        final: whether asking again is useless.
    """

    reason: str
    final: bool = False


UNCHANGED = Rejection("equal to its source")
DUPLICATE = Rejection("made before")
UNWRITABLE = Rejection("the output format cannot carry it", final=True)
NOT_SEEN = Rejection("not a sentence of the corpus that was fitted", final=True)
NESTED = Rejection("has nested mentions, which this method cannot carry", final=True)
DISCONTINUOUS = Rejection("has discontinuous mentions, which this method cannot carry", final=True)
NO_CANDIDATE = Rejection("nothing in it that the method may change", final=True)


class Request(NamedTuple):
    """A new version of a sentence that is asked for.

    Args:
        sentence: the source.
        rng: the stream of this source and copy.
        copy: the number of the copy, from 1.
        attempt: how often this copy was asked for before; what was made then was nothing new, or could not be used.
    """

    sentence: Sentence
    rng: Random
    copy: int = 1
    attempt: int = 0


@dataclass
class RunStatistics:
    """What a run has done so far.

    Args:
        sources: gold sentences seen.
        asked: augmented sentences asked for.
        made: augmented sentences made.
        missing: those not made, by the last reason.
        rejected: all drafts rejected, also those that were asked for again, by reason.
    """

    sources: int = 0
    asked: int = 0
    made: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass(kw_only=True, eq=False)
class Augmenter(abc.ABC):
    """Base of all methods.

    Args:
        copies: how many augmented sentences to ask for per gold sentence.
        seed: any integer; with the sentence and the copy number it settles every random choice.
        max_attempts: how often a draft is asked for until one is new and kept.
        filters: what decides whether a sentence is kept, by name, with parameters behind a colon, several joined by
            ``+`` (``validity+fluency:margin=1``); or a `entaug.filters.Filter`, or a sequence of these. There are
            more under: entaug filters.

    Attributes learned by `fit` end in an underscore. ``statistics_`` holds the counts of the latest `augment`.
    """

    copies: int = 1
    seed: int = 0
    max_attempts: int = 10
    filters: str | Filter | Sequence[str | Filter] | None = None

    info: ClassVar[MethodInfo]
    presets: ClassVar[dict[str, dict[str, object]]] = {}
    """Of a method with a field ``preset``: what each settles of the fields that are not given (that are None)."""
    _window: ClassVar[int] = 64  # sentences handled at a time; results do not depend on it

    def __post_init__(self) -> None:
        for name, value in self.presets.get(str(getattr(self, "preset", "")), {}).items():
            if getattr(self, name) is None:
                setattr(self, name, value)
        self.progress: Callable[[int, int, float], None] | None = None
        """Told of each step while a model behind the method learns: how many are done, of how many, the loss."""

    # -------------------------------------------------------------------------------------------------- for subclasses

    def _check(self) -> None:  # noqa: B027
        """Raise `ParameterError` for parameters of the subclass that cannot be."""

    def _fit(self, corpus: Iterable[Sentence]) -> None:  # noqa: B027
        """Learn from the training corpus, in one pass."""

    def _load(self) -> None:  # noqa: B027
        """Resolve backends, each into an attribute named by its kind and an underscore."""

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        """Draw one new version of a sentence."""
        raise NotImplementedError

    def _rewrite_many(self, asked: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        """Draw a new version of each; a method with a model behind it overrides this and batches."""
        rewrite = self._rewrite
        return [rewrite(one.sentence, one.rng) for one in asked]

    # ------------------------------------------------------------------------------------------------------- for users

    def check(self) -> None:
        """Check the parameters.

        Raises:
            ParameterError: one has a value it cannot have.
        """
        for name in ("copies", "max_attempts"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ParameterError(f"{name} must be a whole number of at least 1, not {value!r}")
        if type(self.seed) is not int:
            raise ParameterError(f"seed must be a whole number, not {self.seed!r}")
        p = getattr(self, "p", None)
        if p is not None and not (isinstance(p, int | float) and 0 <= p <= 1):
            raise ParameterError(f"p must be a probability between 0 and 1, not {p!r}")
        if self.presets and (preset := getattr(self, "preset", "")) not in self.presets:
            raise ParameterError(f"preset must be one of {', '.join(self.presets)}, not {preset!r}")
        for one in create_filters(self.filters):
            if self.info.unconditioned and one.needs_source:
                what = f"{self.info.name} writes from nothing, so {one.filter_name} has no source to judge by"
                raise ParameterError(what, remedy=one.without_source)
        self._check()

    def params(self) -> dict[str, Any]:
        """The parameters by name; a backend given as an instance stands as its name."""
        # What says only where something lies on this machine does not change what is made.
        mine = (f for f in fields(self) if f.init and not f.metadata.get("local"))
        return {f.name: _plain(getattr(self, f.name)) for f in mine}

    def notes(self) -> list[str]:
        """What a user should know about the fitted corpus."""
        return []

    def advice(self, tally: RunStatistics) -> list[str]:
        """What a user should know about what was made."""
        del tally
        return []

    @property
    def signature(self) -> str:
        """Method, parameters and version, as provenance holds them; a loaded backend says which it really is."""
        kinds = (*self.info.needs, *self.info.may_need)
        loaded = {kind: _plain(getattr(self, f"{kind}_")) for kind in kinds if hasattr(self, f"{kind}_")}
        if getattr(self, "filters_", None):
            loaded["filters"] = "+".join(one.signature for one in self.filters_)
        values = "|".join(f"{name}={value}" for name, value in {**self.params(), **loaded}.items())
        return f"{self.info.name}|{values}|entaug={__version__}"

    def load(self) -> Self:
        """Check the parameters and get backends ready, as `fit` and `augment` do; this augmenter is returned.

        Raises:
            ParameterError: a parameter has a value it cannot have.
            MissingModelError: a backend's files are not on this machine.
        """
        self.check()
        wanted = [getattr(self, f.name) for f in fields(self)]
        if wanted != getattr(self, "_loaded", None):  # fitting and augmenting share what was loaded once
            if self.filters != getattr(self, "_filters_of", ""):  # new ones have yet to see the corpus
                self.filters_ = [one.load() for one in create_filters(self.filters)]
                self._filters_of, self._fitted = self.filters, False
            self._load()
            self._loaded = wanted
        return self

    def judged(
        self, results: Sequence[Sentence | Rejection], sources: Sequence[Sentence]
    ) -> list[Sentence | Rejection]:
        """What was made of each source, with what a filter refuses replaced by why."""
        found = list(results)
        made = [(i, result) for i, result in enumerate(found) if not isinstance(result, Rejection)]
        known = [None if self.info.unconditioned else sources[i] for i, _ in made]
        for (i, _), reason in zip(made, judge_all(self.filters_, [one for _, one in made], known), strict=True):
            if reason is not None:
                found[i] = Rejection(reason)
        return found

    def fit(self, corpus: Iterable[Sentence]) -> Self:
        """Learn from the gold training sentences (never give it dev or test sentences).

        Args:
            corpus: read once.

        Returns:
            This augmenter.

        Raises:
            ParameterError: a parameter has a value it cannot have.
            InputError: the corpus has no mention, or nothing the method can use.
        """
        self.load()
        survey = _Survey(corpus, mark_of(self), self.info)
        if self.filters_:
            gold = list(survey)
            for one in self.filters_:
                one.fit(gold)
            self._fit(gold)
        else:
            self._fit(survey)
        for _ in survey.rest():  # a method that learns nothing has not read it
            pass
        if self.info.needs_mentions and not survey.mentions:
            raise InputError(
                f"no mention in the corpus, and {self.info.name} needs some",
                path=survey.source,
                remedy="check the tag column",
            )
        if survey.refused and survey.refused == survey.mentioned:
            kinds = [kind for kind in ("nested", "discontinuous") if not getattr(self.info, kind)]
            raise InputError(
                f"every sentence with mentions has {' or '.join(kinds)} ones, and {self.info.name} cannot carry them",
                path=survey.source,
                remedy="use a method that can, see: entaug methods",
            )
        self._taken = survey.taken
        self._fitted = True
        return self

    def augment(self, corpus: Iterable[Sentence]) -> Iterator[Sentence]:
        """Make new sentences, and only these, in the order of their sources.

        Args:
            corpus: the gold training sentences; read once, streamed.

        Yields:
            At most `copies` sentences per gold sentence, each with an id of its own and its provenance in
            `Sentence.provenance`.

        Raises:
            ParameterError: a parameter cannot be, or the method must be fitted first.
        """
        for _, made in self.run().each(corpus):
            yield from made

    def run(self, **options: Any) -> Run:
        """A run, for those who need to know which source each sentence comes from, or to go on with an old one.

        Args:
            options: as `entaug.augmenters.run.Run` takes them.
        """
        from entaug.augmenters.run import Run

        self.load()
        if (self.info.needs_fit or self.filters_) and not getattr(self, "_fitted", False):
            raise ParameterError(f"{self.info.name} has not seen the corpus", remedy="call fit(corpus) first")
        run = Run(self, **options)
        self.statistics_ = run.tally
        return run


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return "+".join(str(_plain(one)) for one in value)
    return getattr(value, "name", None) or type(value).__name__


class _Survey(Iterable[Sentence]):
    """A corpus on its way through `fit`, read once, with its mentions counted, less what the method cannot carry."""

    def __init__(self, corpus: Iterable[Sentence], mark: str, info: MethodInfo) -> None:
        self.source = source_of(corpus)
        self.mentions = self.mentioned = self.refused = 0
        self._facts = info
        self.taken: set[str] = set()
        self._mark = mark
        self._sentences = iter(corpus)

    def __iter__(self) -> Iterator[Sentence]:
        mark = self._mark
        for sentence in self._sentences:
            self.mentions += len(sentence.mentions)
            self.mentioned += bool(sentence.mentions)
            if sentence.id is not None and mark in sentence.id:
                self.taken.add(sentence.id)
            if rejection_for(sentence, self._facts):
                self.refused += 1
            else:
                yield sentence

    rest = __iter__


def rejection_for(sentence: Sentence, info: MethodInfo) -> Rejection | None:
    """Why a method cannot have a sentence at all."""
    if (info.nested and info.discontinuous) or sentence.is_flat:
        return None
    if not info.discontinuous and not all(mention.is_contiguous for mention in sentence.mentions):
        return DISCONTINUOUS
    covered = [position for mention in sentence.mentions for position in mention.positions()]
    return NESTED if not info.nested and len(set(covered)) < len(covered) else None


def mark_of(augmenter: Augmenter) -> str:
    """What the ids of all sentences that a method makes under a seed have in common."""
    return f"/{augmenter.info.name}-{augmenter.seed}-"


def source_of(corpus: object) -> str | None:
    """Where a corpus comes from, if it says so."""
    return getattr(corpus, "source", None)


def build(cls: type[Augmenter], params: dict[str, Any]) -> Augmenter:
    """An augmenter from a class and parameters, with a clear error for a name it does not have.

    Raises:
        ParameterError: unknown or impossible parameter.
    """
    known = [f.name for f in fields(cls) if f.init]
    for name in params:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ParameterError(
                f"{cls.info.name} has no parameter {name!r}", remedy=f"{hint}(it has: {', '.join(known)})"
            )
    made = cls(**params)
    made.check()
    return made
