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
from itertools import islice
from random import Random
from typing import Any, ClassVar, NamedTuple, Self

from entaug._version import __version__
from entaug.data import Keys, Sentence
from entaug.errors import InputError, ParameterError
from entaug.filters import Filter, create_filters, judge_all
from entaug.rng import Streams

__all__ = [
    "DUPLICATE",
    "NOT_SEEN",
    "NO_CANDIDATE",
    "UNCHANGED",
    "Asked",
    "Augmenter",
    "Facts",
    "Rejection",
    "Run",
    "Tally",
    "source_of",
]

# What a source sentence's meta says of its own text or entities, and a rewritten sentence must not inherit.
_OF_THE_TEXT = frozenset(("comments", "text", "_entity_fields", "_brat"))


@dataclass(frozen=True)
class Facts:
    """What a method is and keeps: the documentation, `entaug methods` and the conformance suite are made from it.

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


class Asked(NamedTuple):
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
class Tally:
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


class _Draft:
    """One augmented sentence asked for."""

    __slots__ = ("copy", "key", "reason", "result", "rng", "siblings", "source")

    def __init__(self, source: Sentence, key: str, copy: int, rng: Random, siblings: set[Any]) -> None:
        self.source = source
        self.key = key
        self.copy = copy
        self.rng = rng
        self.siblings = siblings
        self.result: Sentence | None = None
        self.reason = ""

    def refused(self, result: Sentence) -> Rejection | None:
        """Why a result is nothing new: it is the source, or was made before."""
        content = (result.tokens, result.mentions)
        if content == (self.source.tokens, self.source.mentions):
            return UNCHANGED
        return DUPLICATE if content in self.siblings else None

    def take(self, result: Sentence) -> Rejection | None:
        """Keep a result, unless it is nothing new."""
        refusal = self.refused(result)
        if refusal is None:
            self.siblings.add((result.tokens, result.mentions))
            self.result = result
        return refusal


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

    Attributes learned by `fit` end in an underscore. `tally_` holds the counts of the latest `augment`.
    """

    copies: int = 1
    seed: int = 0
    max_attempts: int = 10
    filters: str | Filter | Sequence[str | Filter] | None = None

    facts: ClassVar[Facts]
    presets: ClassVar[dict[str, dict[str, object]]] = {}
    """Of a method with a field `preset`: what each settles of the fields that are not given (that are None)."""
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

    def _rewrite_many(self, asked: Sequence[Asked]) -> Sequence[Sentence | Rejection]:
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
            if self.facts.unconditioned and one.needs_source:
                what = f"{self.facts.name} writes from nothing, so {one.filter_name} has no source to judge by"
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

    def advice(self, tally: Tally) -> list[str]:
        """What a user should know about what was made."""
        del tally
        return []

    @property
    def signature(self) -> str:
        """Method, parameters and version, as provenance holds them; a loaded backend says which it really is."""
        kinds = (*self.facts.needs, *self.facts.may_need)
        loaded = {kind: _plain(getattr(self, f"{kind}_")) for kind in kinds if hasattr(self, f"{kind}_")}
        if getattr(self, "filters_", None):
            loaded["filters"] = "+".join(one.signature for one in self.filters_)
        values = "|".join(f"{name}={value}" for name, value in {**self.params(), **loaded}.items())
        return f"{self.facts.name}|{values}|entaug={__version__}"

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
        known = [None if self.facts.unconditioned else sources[i] for i, _ in made]
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
        survey = _Survey(corpus, _mark(self), self.facts)
        if self.filters_:
            gold = list(survey)
            for one in self.filters_:
                one.fit(gold)
            self._fit(gold)
        else:
            self._fit(survey)
        for _ in survey.rest():  # a method that learns nothing has not read it
            pass
        if self.facts.needs_mentions and not survey.mentions:
            raise InputError(
                f"no mention in the corpus, and {self.facts.name} needs some",
                path=survey.source,
                remedy="check the tag column",
            )
        if survey.refused and survey.refused == survey.mentioned:
            kinds = [kind for kind in ("nested", "discontinuous") if not getattr(self.facts, kind)]
            raise InputError(
                f"every sentence with mentions has {' or '.join(kinds)} ones, and {self.facts.name} cannot carry them",
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
            ``meta["entaug"]``.

        Raises:
            ParameterError: a parameter cannot be, or the method must be fitted first.
        """
        for _, made in self.run().each(corpus):
            yield from made

    def run(self, carried: Carried | None = None, put: Put | None = None) -> Run:
        """A run, for those who need to know which source each sentence comes from, or to go on with an old one.

        Args:
            carried: see `Run`.
            put: see `Run`.
        """
        self.load()
        if (self.facts.needs_fit or self.filters_) and not getattr(self, "_fitted", False):
            raise ParameterError(f"{self.facts.name} has not seen the corpus", remedy="call fit(corpus) first")
        run = Run(self, carried, put)
        self.tally_ = run.tally
        return run


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return "+".join(str(_plain(one)) for one in value)
    return getattr(value, "name", None) or type(value).__name__


class _Survey(Iterable[Sentence]):
    """A corpus on its way through `fit`, read once, with its mentions counted, less what the method cannot carry."""

    def __init__(self, corpus: Iterable[Sentence], mark: str, facts: Facts) -> None:
        self.source = source_of(corpus)
        self.mentions = self.mentioned = self.refused = 0
        self._facts = facts
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
            if _refusal(sentence, self._facts):
                self.refused += 1
            else:
                yield sentence

    rest = __iter__


def _refusal(sentence: Sentence, facts: Facts) -> Rejection | None:
    """Why a method cannot have a sentence at all."""
    if (facts.nested and facts.discontinuous) or sentence.flat:
        return None
    if not facts.discontinuous and not all(mention.contiguous for mention in sentence.mentions):
        return DISCONTINUOUS
    covered = [position for mention in sentence.mentions for position in mention.positions()]
    return NESTED if not facts.nested and len(set(covered)) < len(covered) else None


def _mark(augmenter: Augmenter) -> str:
    """What the ids of all sentences that a method makes under a seed have in common."""
    return f"/{augmenter.facts.name}-{augmenter.seed}-"


def source_of(corpus: object) -> str | None:
    """Where a corpus comes from, if it says so."""
    return getattr(corpus, "source", None)


Carried = Callable[[Sentence], Sentence]
Put = Callable[[Sentence, Sentence], bool]


class Run:
    """One pass of a method over a corpus.

    Args:
        augmenter: fitted, if it needs to be.
        carried: what is left of a sentence where it goes; two that are equal there are duplicates.
        put: called with each finished sentence and its source; returns whether the sentence could be put where it goes.
    """

    def __init__(self, augmenter: Augmenter, carried: Carried | None = None, put: Put | None = None) -> None:
        self.tally = Tally()
        self._carried = carried
        self._put = put
        self._mark = _mark(augmenter)
        self._taken: set[str] = getattr(augmenter, "_taken", set())
        self._augmenter = augmenter
        self._method = augmenter.facts.name
        self._streams = Streams(augmenter.seed, self._method)
        self._signature = augmenter.signature
        self._made: set[int] = set()
        self._keys = Keys()

    def skip(self, source: Sentence) -> None:
        """Count a source as done by an earlier, interrupted run."""
        self._keys.of(source)

    def remember(self, made: Sentence) -> None:
        """Count a sentence as made by an earlier, interrupted run; it is given as it is carried."""
        self._made.add(int.from_bytes(made.fingerprint(), "little"))

    def each(self, corpus: Iterable[Sentence]) -> Iterator[tuple[Sentence, list[Sentence]]]:
        """Each source with what was made of it."""
        sources = iter(corpus)
        while window := list(islice(sources, self._augmenter._window)):  # noqa: SLF001
            drafts = self._drafts(window)
            copies = self._augmenter.copies
            for i, source in enumerate(window):
                yield source, self._keep(drafts[i * copies : (i + 1) * copies])

    def _drafts(self, window: list[Sentence]) -> list[_Draft]:
        copies = range(1, self._augmenter.copies + 1)
        stream = self._streams.stream
        drafts = []
        for source in window:
            key = self._keys.of(source)
            siblings: set[Any] = set()
            drafts += [_Draft(source, key, copy, stream(key, copy), siblings) for copy in copies]
        rejected = self.tally.rejected
        pending = []
        for draft in drafts:
            if refusal := _refusal(draft.source, self._augmenter.facts):
                rejected[refusal.reason] += 1
                draft.reason = refusal.reason
            else:
                pending.append(draft)
        # With p = 0 no draw changes anything, however often it is asked for.
        attempts = 1 if getattr(self._augmenter, "p", None) == 0 else self._augmenter.max_attempts
        for attempt in range(attempts if pending else 0):
            asked = [Asked(d.source, d.rng, d.copy, attempt) for d in pending]
            results = self._augmenter._rewrite_many(asked)  # noqa: SLF001
            if self._augmenter.filters_:  # what is nothing new is not looked at
                new = [
                    r if isinstance(r, Rejection) else d.refused(r) or r for d, r in zip(pending, results, strict=True)
                ]
                results = self._augmenter.judged(new, [d.source for d in pending])
            again = []
            for draft, result in zip(pending, results, strict=True):
                if not isinstance(result, Rejection):
                    refusal = draft.take(result)
                    if refusal is None:
                        continue
                else:
                    refusal = result
                rejected[refusal.reason] += 1
                draft.reason = refusal.reason
                if not refusal.final:
                    again.append(draft)
            pending = again
            if not pending:
                break
        return drafts

    def _keep(self, drafts: list[_Draft]) -> list[Sentence]:
        """The finished sentences of one source.

        A sentence that another source has given already is dropped here and not asked for again: so what is made of a
        source never depends on the other sentences of the file.
        """
        tally = self.tally
        tally.sources += 1
        tally.asked += len(drafts)
        kept = []
        for draft in drafts:
            result = draft.result
            if result is None:
                tally.missing[draft.reason] += 1
                continue
            carried = self._carried(result) if self._carried else result
            number = int.from_bytes(carried.fingerprint(), "little")
            refusal = DUPLICATE if number in self._made else None
            if refusal is None:
                signed = self._signed(result, draft)
                if self._put and not self._put(signed, draft.source):
                    refusal = UNWRITABLE
            if refusal:
                tally.missing[refusal.reason] += 1
                tally.rejected[refusal.reason] += 1
                continue
            self._made.add(number)
            kept.append(signed)
        tally.made += len(kept)
        return kept

    def _signed(self, result: Sentence, draft: _Draft) -> Sentence:
        own = result.meta.get("entaug") if result.meta is not draft.source.meta else None
        meta = {name: value for name, value in draft.source.meta.items() if name not in _OF_THE_TEXT}
        meta["entaug"] = {
            "method": self._method,
            "signature": self._signature,
            **(own or {}),
            # A method that mixes sentences names the other sources.
            "sources": [draft.key, *((own or {}).get("sources", ()))],
            "copy": draft.copy,
        }
        return Sentence(
            result.tokens,
            result.mentions,
            self._name(draft),
            meta,
            result.columns,
            result.spaces,
        )

    def _name(self, draft: _Draft) -> str:
        """An id that no sentence of the corpus has; one is taken where the corpus was made by the same method."""
        name = wanted = f"{draft.key}{self._mark}{draft.copy}"
        number = 1
        while name in self._taken:
            number += 1
            name = f"{wanted}+{number}"
        return name


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
                f"{cls.facts.name} has no parameter {name!r}", remedy=f"{hint}(it has: {', '.join(known)})"
            )
    made = cls(**params)
    made.check()
    return made
