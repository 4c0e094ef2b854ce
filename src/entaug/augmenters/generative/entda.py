"""EnTDA: new sentences written from lists of mentions (Hu et al., Findings of ACL 2023)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal

from entaug.alignment import detokenize
from entaug.augmenters.base import NO_CANDIDATE, MethodInfo, Rejection, Request
from entaug.augmenters.generative.base import (
    ALIKE,
    COPIED,
    UNFINISHED,
    GenerativeAugmenter,
    Words,
    likeness,
    rewritten,
)
from entaug.augmenters.generative.mention_matching import Nest, Surfaces, mark, nests
from entaug.backends.config import DecodingConfig
from entaug.backends.protocols import Generator
from entaug.data import Sentence
from entaug.params import NonNegativeFloat, PositiveInt

__all__ = ["EnTDA", "listed"]

_SIBLING = Rejection("too much like another text from its list")


@dataclass(kw_only=True, eq=False)
class EnTDA(GenerativeAugmenter):
    """Change the list of a sentence's mentions, have a generator write a sentence from it, and find the mentions in it.

    The generator learns from the gold sentences to write each from the list of its mentions and their types. For new
    sentences a mention of the list is added, deleted, replaced by another one of its type, or two change places. What
    is written is kept only if every mention of the list stands in it, no known one besides, and it is clear which words
    each is. Mentions that overlap are listed, changed and found together; so are the parts of a discontinuous one.

    A sentence without mentions has no list: nothing is made of it. Copies of a sentence share a list, as many as there
    are beams, and each takes one of the texts; what cannot be used is written anew from another list.

    Args:
        operation: ``"add"``, ``"delete"``, ``"replace"``, ``"swap"``; ``"all"`` for one of each, one after the other;
            or ``"none"``. An operation that would leave no mention, or has nothing to work on, is passed over.
        decoding: ``"sample"`` (starter: texts of one list differ most); ``"diverse_beam_search"``, the paper's beam search that
            punishes ranks; ``"beam_search"``, without that.
        num_beams: texts for a list.
        diversity_penalty: what a rank costs in diverse beam search, the paper's gamma.
        top_k: for sampling, how many tokens a draw is among.
        unlisted_mentions: what becomes of a text with a known mention that was not listed: ``"drop"``; ``"label"`` it, if the
            corpus has it with one label only, and drop it otherwise; or ``"keep"`` the text without looking for such.
        preset: ``"starter"``: SmolLM2, ten epochs at most; ``"paper"``: T5-base, three epochs, batches of five. It
            settles `generator`, `epochs`, `batch`, `decoding` and `insist` unless they are given.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeGenerator
        >>> gold = [
        ...     Sentence("Ada sings loud".split(), [Mention("PER", [(0, 1)])]),
        ...     Sentence("Bo knows Rome".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])]),
        ... ]
        >>> method = EnTDA(operation="replace", generator=FakeGenerator(["sleeps"]))
        >>> [(" ".join(s.tokens), len(s.mentions)) for s in method.fit(gold).augment(gold[:1])]
        [('PER : Bo sleeps', 1)]
    """

    operation: Literal["all", "add", "delete", "replace", "swap", "none"] = "all"
    decoding: Literal["diverse_beam_search", "beam_search", "sample"] | None = None
    num_beams: PositiveInt = 3
    diversity_penalty: NonNegativeFloat = 10.0
    top_k: PositiveInt = 20
    unlisted_mentions: Literal["drop", "label", "keep"] = "drop"
    preset: Literal["starter", "paper"] = "starter"

    presets: ClassVar[dict[str, dict[str, object]]] = {
        "starter": {"generator": "smollm2", "epochs": 10, "batch_size": 8, "decoding": "sample", "constrained": True},
        "paper": {
            "generator": "google-t5/t5-base",
            "epochs": 3,
            "batch_size": 5,
            "decoding": "diverse_beam_search",
            "constrained": False,
        },
    }

    info: ClassVar[MethodInfo] = MethodInfo(
        name="entda",
        long_name="entity-to-text",
        summary="new sentences written from changed lists of mentions",
        paper="Hu et al. 2023, Entity-to-Text based Data Augmentation for various Named Entity Recognition Tasks",
        keeps_mentions=False,
        needs_fit=True,
        needs_mentions=True,
        needs=("generator",),
        cost="fine-tuning a generator (minutes for a hundred sentences on a CPU), then a second or two a sentence",
    )

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = sorted(corpus, key=lambda s: s.fingerprint())  # the order of a file changes nothing
        of_each = [nests(sentence) for sentence in gold]
        self.pools_ = _pools(nest for found in of_each for nest in found)
        self.known_ = Surfaces(gold) if self.unlisted_mentions != "keep" else None
        self._unwanted = self.known_.texts() if self.known_ and self.unlisted_mentions == "drop" else []
        self.words_ = Words(gold, [part for found in of_each for nest in found for part in nest.fragments])
        pairs = [(listed(found), _text(s)) for s, found in zip(gold, of_each, strict=True) if found]
        pairs = list(dict.fromkeys(pairs))
        self.tuned_: Generator | None = self._taught(self.generator_, pairs, pairs) if pairs else None

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _rewrite_batch(self, asked: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        groups: list[list[Request]] = []
        for one in asked:
            last = groups[-1][-1] if groups else None
            # The same sentence may stand in a corpus twice, one after the other: then its copies begin anew.
            goes_on = last is not None and last.sentence is one.sentence and last.copy < one.copy
            if last is not None and goes_on and (last.copy - 1) // self.num_beams == (one.copy - 1) // self.num_beams:
                groups[-1].append(one)
            else:
                groups.append([one])
        lists: list[list[Nest]] = []
        for group in groups:
            found = nests(group[0].sentence)
            lists.append(self._changed(found, group[0].rng) if found else [])
        work = [i for i, found in enumerate(lists) if found]
        decoding = DecodingConfig(
            num_return_sequences=self.num_beams,
            strategy=self.decoding or "sample",
            num_beams=self.num_beams,
            diversity_penalty=float(self.diversity_penalty),
            top_k=self.top_k,
            temperature=float(self.temperature),
            max_new_tokens=self.max_new_tokens,
        )
        seeds = [groups[i][0].rng.getrandbits(32) for i in work]
        written: list[list[str]] = [[] for _ in groups]
        if work and self.tuned_ is not None:
            inputs = [listed(lists[i]) for i in work]
            wanted = [[list(map(detokenize, nest.fragments)) for nest in lists[i]] for i in work]
            made = self.tuned_.generate(inputs, decoding, seeds, wanted if self.constrained else None, self._unwanted)
            for i, texts in zip(work, made, strict=True):
                written[i] = texts
        return [
            result
            for group, found, texts in zip(groups, lists, written, strict=True)
            for result in self._dealt(group, found, texts)
        ]

    def _dealt(
        self, group: Sequence[Request], found: Sequence[Nest], texts: Sequence[str]
    ) -> list[Sentence | Rejection]:
        """One of the texts for each that was asked for: those that can be used first."""
        if not found:
            return [NO_CANDIDATE] * len(group)
        judged = [self._judged(group[0].sentence, found, text, beam) for beam, text in enumerate(texts, start=1)]
        good: list[Sentence] = []
        bad: list[Rejection] = []
        for one in judged:
            if isinstance(one, Rejection):
                bad.append(one)
            elif any(likeness(one.tokens, other.tokens) >= self.max_similarity for other in good):
                bad.append(_SIBLING)
            else:
                good.append(one)
        dealt: list[Sentence | Rejection] = [*good, *bad]
        dealt += [UNFINISHED] * (len(group) - len(dealt))
        return dealt[: len(group)]

    def _judged(self, source: Sentence, found: Sequence[Nest], text: str, beam: int) -> Sentence | Rejection:
        tokens = self.words_.tokens(text)
        if not tokens:
            return UNFINISHED
        if self.words_.holds(tokens):
            return COPIED
        mentions = mark(tokens, found, self.known_, label=self.unlisted_mentions == "label")
        if isinstance(mentions, str):
            return Rejection(mentions)
        if likeness(source.tokens, tokens) >= self.max_similarity:
            return ALIKE
        return rewritten(source, tokens, mentions, {"list": listed(found), "beam": beam})

    def _changed(self, found: list[Nest], rng: Random) -> list[Nest]:
        """The list after the operations."""
        operations = ("add", "delete", "replace", "swap") if self.operation == "all" else (self.operation,)
        for operation in operations:
            found = changed(operation, found, self.pools_, rng)
        return found


def changed(operation: str, found: list[Nest], pools: dict[str, list[Nest]], rng: Random) -> list[Nest]:
    """A list of mentions after one operation (section 4.1).

    Args:
        operation: ``"add"``, ``"delete"``, ``"replace"``, ``"swap"`` or ``"none"``.
        found: the list.
        pools: by label all that may be put into it.
        rng: decides.
    """
    at = rng.randrange(len(found))
    if operation in ("add", "replace"):
        # What stands in the list already would be asked for twice.
        others = [nest for nest in pools.get(found[at].label, ()) if nest not in found]
        if others:
            new = others[rng.randrange(len(others))]
            return [*found, new] if operation == "add" else [*found[:at], new, *found[at + 1 :]]
    elif operation == "delete" and len(found) > 1:
        return [*found[:at], *found[at + 1 :]]
    elif operation == "swap" and len(found) > 1:
        other = (at + 1 + rng.randrange(len(found) - 1)) % len(found)
        swapped = list(found)
        swapped[at], swapped[other] = found[other], found[at]
        return swapped
    return list(found)


def listed(found: Sequence[Nest]) -> str:
    """A list of mentions with their types as the generator reads it.

    Example:
        >>> hurt = Nest((("arm",), ("hurts",)), (("SYM", ((0, 1), (1, 2))),))
        >>> rome = Nest((("Rome",),), (("LOC", ((0, 1),)),))
        >>> listed([hurt, rome])
        'SYM: arm ... hurts | LOC: Rome'
    """
    return " | ".join(
        " & ".join(
            f"{label}: {' ... '.join(map(detokenize, nest.words(number)))}"
            for number, (label, _) in enumerate(nest.mentions)
        )
        for nest in found
    )


def _text(sentence: Sentence) -> str:
    return detokenize(sentence.tokens)  # as in print, like the list: what stands there must be found in it


def _pools(found: Iterable[Nest]) -> dict[str, list[Nest]]:
    pools: defaultdict[str, dict[Nest, None]] = defaultdict(dict)
    for nest in found:
        pools[nest.label][nest] = None
    return {label: list(distinct) for label, distinct in pools.items()}
