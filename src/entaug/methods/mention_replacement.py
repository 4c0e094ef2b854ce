"""MR: mentions replaced by mentions of the same label (Dai and Adel 2020, aclanthology.org/2020.coling-main.343)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Literal

from entaug.backends.protocols import Encoder
from entaug.config.params import Cosine, Probability
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.data import Provenance, Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Mention
from entaug.core.rng import sample_positions
from entaug.errors import InputError
from entaug.files.mention_lists import MentionLists, describe_mention_lists, mention_lists, relative_to_folder
from entaug.filters.base import HeldOut, content_digest
from entaug.methods.base import Augmenter, MethodInfo, Rejection, Request
from entaug.methods.shared.donors import (
    OPENING_BRACKETS,
    DonorVectors,
    ListDonors,
    MentionDonor,
    Place,
    TrainingDonors,
    abbreviation_after,
    content_key,
    match_casing,
    mention_keys,
    replaceable_mentions,
)

_NO_MENTION = Rejection("no mention that can be replaced", final=True)
_ATTEMPTS_WITH_SHAPE = 3  # rejected drafts of a copy after which donors of any shape are drawn


@dataclass(kw_only=True, eq=False)
class MentionReplacement(Augmenter):
    """Replace mentions by other mentions of the same label: training mentions, or entries of lists of the user.

    A mention that holds others is replaced whole, by a training mention that holds mentions of the same labels;
    mentions within others, mentions that cross others, and discontinuous ones are not replaced. A mention is never
    replaced by itself. Donors are drawn uniformly from the distinct training mentions of the label with the same
    shape: their capitals, figures, the article before them (in Dutch, French, German, Italian and Spanish with its
    gender and number), the last letters of inflected words, whether they stand before other words as adjectives do,
    the ending of the plural, whether they are one word, and the function words beside them, all but the articles
    learned from the corpus (`entaug.methods.shared.donors`). Where fewer than three have the shape, a part of it
    counts, and at last none; user names (``@``) and hashtags are replaced by their like alone. No donor is a mention
    that the sentence has already, so no enumeration has one twice, and none repeats the word beside it, or begins
    with a vowel after the English "a". Mentions with the same words are replaced by the same mention, and a mention
    with its abbreviation in brackets ("Angelman syndrome (AS)") by another one with its abbreviation.

    Entries of lists are drawn from those that are no training mentions. They are written as the corpus writes mentions
    of the label: with its tokens and capitals, with a capital at the beginning of a sentence, and without an article
    where one stands before them. Provenance names the list.

    Args:
        p: the probability of replacing each mention; at least one is replaced.
        donors: ``"similar"``; ``"nearest"``, of these one of the five that are nearest in sense, by the vectors of the
            mentions and of the words around them: a club for a club, where the label is that of all groups; or
            ``"any"``, all training mentions of the label alike, as in the paper.
        adjust_case: whether a training mention is put into the capitals of its new place: those of a headline, of a
            text without any, or of the beginning of a sentence. The paper inserts it as it is.
        replace_nested: whether mentions that hold others are replaced. The paper has flat mentions only.
        mentions: lists of further mentions: ``names.txt=LABEL`` (one a line), ``names.jsonl`` (with mention and label
            in each line), ``table.csv:COLUMN=LABEL``; in Python also a dictionary with the mentions of each label, or
            `entaug.files.mention_lists.MentionList`.
        list_share: the probability of drawing from the lists instead of the training mentions, for labels with both.
        held_out: dev and test sentences; entries that are mentions of these are left out.
        min_similarity: the minimum cosine of the nearest donors, the mean of that of the mentions and that of the words
            around them; mentions without one stay.
        encoder: an `Encoder` for ``donors="nearest"``, or its name.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods mr``)
            unless it is given.

    Attributes:
        coverage_: how many training mentions each list covers (`entaug.methods.shared.donors.ListCoverage`).

    Example:
        >>> from entaug import Mention
        >>> gold = [
        ...     Sentence(["Ada", "sings"], [Mention("PER", [(0, 1)])]),
        ...     Sentence(["Bo", "Ek", "rests"], [Mention("PER", [(0, 2)])]),
        ... ]
        >>> [" ".join(s.tokens) for s in MentionReplacement(p=1.0).fit(gold).augment(gold)]
        ['Bo Ek sings', 'Ada rests']
        >>> mr = MentionReplacement(p=1.0, mentions={"PER": ["Grace Hopper"]}, list_share=1.0).fit(gold)
        >>> [" ".join(s.tokens) for s in mr.augment(gold)], mr.coverage_[0].covered
        (['Grace Hopper sings', 'Grace Hopper rests'], 0)
    """

    p: Probability = 0.3
    donors: Literal["similar", "nearest", "any"] = "similar"
    adjust_case: bool = True
    replace_nested: bool = True
    mentions: MentionLists | None = field(
        default=None, metadata={"repeatable": True, "describe": describe_mention_lists, "relative": relative_to_folder}
    )
    list_share: Probability = 0.5
    held_out: HeldOut | None = field(default=None, metadata={"given": "--held-out FILE"})
    min_similarity: Cosine = 0.25
    encoder: Encoder | str = "minilm"
    preset: Literal["starter", "paper"] = field(default="starter", metadata=ONLY_IF_SET)
    encoder_: Encoder = field(init=False, repr=False)

    presets = read_presets("mr")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="mr",
        long_name="mention-replacement",
        summary="mentions replaced by other training mentions of the same type",
        paper="Dai and Adel 2020, An Analysis of Simple Data Augmentation for Named Entity Recognition",
        keeps_order=True,
        needs_fit=True,
        needs_mentions=True,
        may_need=("encoder",),
    )

    def _uses_backend(self, kind: str) -> bool:
        return kind != "encoder" or self.donors == "nearest"

    def hold_out(self, sentences: Iterable[Sentence]) -> bool:
        if self.mentions is not None and self.held_out is None:
            self.held_out = list(sentences)
        return self.mentions is not None

    def _plain(self, name: str, value: Any) -> Any:
        # By content, independent of the place of files and the order of sentences.
        if name == "mentions":
            return describe_mention_lists(value)
        if name == "held_out" and value is not None:
            return content_digest((key,) for key in mention_keys(value))
        return super()._plain(name, value)

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        vectors = DonorVectors(self.encoder_, self.min_similarity) if self.donors == "nearest" else None
        self._donors = TrainingDonors(by_shape=self.donors != "any", vectors=vectors)
        self._vectors = vectors
        self._list_donors: ListDonors | None = None
        if self.mentions is None:
            self._donors.fit(corpus)
        else:
            self._list_donors = ListDonors(mention_lists(self.mentions), mention_keys(self.held_out or ()))
            self._list_donors.fit(self._donors.observe(self._list_donors.observe(corpus)))
        self.coverage_ = self._list_donors.coverage if self._list_donors else []
        self.pools_ = self._donors.pools
        # Types whose mentions cannot be replaced, because there is only one.
        self.single_ = {
            label: pool[0] for label, pool in self.pools_.items() if len(pool) == 1 and not self._list_size(label)
        }
        if self.pools_ and len(self.single_) == len(self.pools_) and not self._donors.has_pairs():
            raise InputError(
                "every type has only one distinct mention, so mr cannot replace any",
                path=getattr(corpus, "source", None),
                remedy="use more sentences or another method",
            )

    def notes(self) -> list[str]:
        alone = dict.fromkeys(self._donors.nesting, " that holds no other")
        single = [
            f"type {label} has only one distinct mention{alone.get(label, '')} ({' '.join(words)!r}), "
            "which mr cannot replace"
            for label, words in sorted(self.single_.items())
        ]
        return [*super().notes(), *map(str, self.coverage_), *single]

    def _list_size(self, label: str) -> int:
        """The number of entries of lists that can replace a mention with this label."""
        return self._list_donors.size(label) if self._list_donors and self.list_share else 0

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        if self._vectors is not None:
            sources = dict.fromkeys(request.sentence for request in requests)
            self._vectors.prepare((sentence, mention) for sentence in sources for mention in sentence.mentions)
        return [self._rewrite(sentence, rng, attempt) for sentence, rng, _, attempt in requests]

    def _rewrite(self, sentence: Sentence, rng: Random, attempt: int = 0) -> Sentence | Rejection:
        places = [
            place
            for place in replaceable_mentions(sentence, nested=self.replace_nested)
            if self._donors.size(place) > 1 or (not place.inner and self._list_size(place.mention.label))
        ]
        if not places:
            return _NO_MENTION
        if self.donors == "any":
            units: list[_Unit] = [([place],) for place in places]
            avoided: set[str] = set()
        else:
            units = _units(sentence, places)
            # What an enumeration must not have twice: the mentions of the source, and those inserted.
            avoided = {content_key(sentence.mention_tokens(mention)) for mention in sentence.mentions}
        if not units:
            return _NO_MENTION
        edits = []
        from_lists = []
        for k in sample_positions(rng, len(units), self.p):
            for same, donor in zip(
                units[k], self._draw_donors(sentence, units[k], avoided, rng, attempt), strict=False
            ):
                if self.donors != "any":
                    avoided.add(donor.key)
                if donor.list_name:
                    from_lists.append({"mention": " ".join(donor.words), "list": donor.list_name})
                edits += [self._edit(sentence, place.mention, donor) for place in same]
        new = sentence.edit(edits)
        return new.with_(provenance=Provenance(details={"lists": from_lists})) if from_lists else new

    def _edit(self, sentence: Sentence, mention: Mention, donor: MentionDonor) -> Edit:
        start, end, words = mention.start, mention.end, donor.words
        if self.adjust_case and not donor.list_name:
            words = match_casing(words, sentence.tokens, start, end, lower=True, letters=self._donors.letters)
        return Edit(start, end, words, donor.mentions, donor.spaces)

    def _draw_donors(
        self, sentence: Sentence, unit: _Unit, avoided: set[str], rng: Random, attempt: int
    ) -> Sequence[MentionDonor]:
        """Draw a mention for each part of a unit, from the lists or the training sentences; none if there is none."""
        place = unit[0][0]
        if len(unit) > 1:
            return self._donors.draw_pair(sentence, place.mention, avoided, rng) or ()
        list_size = 0 if place.inner else self._list_size(place.mention.label)
        has_others = self._donors.size(place) > 1
        donor: MentionDonor | None = None
        if self._list_donors and list_size and (not has_others or rng.random() < self.list_share):
            donor = self._list_donors.draw(sentence, place.mention, avoided, rng, self._donors.fits)
        if donor is None and has_others:
            any_shape = self.donors == "any" or attempt >= _ATTEMPTS_WITH_SHAPE
            donor = self._donors.draw(sentence, place, avoided, rng, any_shape=any_shape)
        return [donor] if donor else ()


_Unit = tuple[list[Place], ...]
"""Mentions that are replaced together: all with the same words; and then those with its abbreviation."""


def _units(sentence: Sentence, places: Sequence[Place]) -> list[_Unit]:
    """The mentions to replace; none of which an abbreviation without a label would be left."""
    tokens = sentence.tokens
    if OPENING_BRACKETS.isdisjoint(tokens) and len({tokens[p.mention.start : p.mention.end] for p in places}) == len(
        places
    ):
        return [([place],) for place in places]  # nearly all sentences; quick
    groups: dict[object, list[Place]] = {}
    group_at: dict[object, list[Place]] = {}
    for place in places:
        words = tokens[place.mention.start : place.mention.end]
        group = groups.setdefault((place.structure, place.inner and place.mention, words), [])
        group.append(place)
        group_at[place.mention.spans] = group
    units: list[_Unit] = []
    abbreviations: set[int] = set()
    for group in groups.values():
        position = next((i for place in group if (i := abbreviation_after(tokens, place.mention)) is not None), None)
        if position is None:
            units.append((group,))
            continue
        short = group_at.get(((position, position + 1),))
        if short is not None and short[0].structure == group[0].structure:
            units.append((group, short))
            abbreviations.add(id(short))
    return [unit for unit in units if len(unit) > 1 or id(unit[0]) not in abbreviations]
