"""Training mentions as donors of other mentions: which can stand in a place, and in which form."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from entaug.core.data import Mention, Sentence
from entaug.methods.shared.capitals import CorpusCapitals, is_in_capitals
from entaug.methods.shared.mention_places import Place, Structure, self_contained_mentions
from entaug.methods.shared.mention_shapes import ARTICLES, MentionShapes

__all__ = ["AvoidedMentions", "MentionDonor", "TrainingDonors", "content_key"]

_ENOUGH = 3  # other donors of a shape; if there are fewer, the next wider shape counts
_DRAWS = 4  # draws until a donor is none of the mentions to avoid; then the others are listed
_ANY_CAPITALS = "any"


class MentionDonor(NamedTuple):
    """A training mention as it is inserted."""

    words: tuple[str, ...]
    mentions: tuple[Mention, ...]
    spaces: tuple[str, ...] | None
    key: str


class _Group(NamedTuple):
    """Donors of a shape, sorted, and the position of each."""

    donors: list[MentionDonor]
    positions: dict[tuple[str, ...], list[int]]


_NO_DONORS = _Group([], {})


class AvoidedMentions:
    """The mentions that are not drawn for a sentence: those that it has, and those that were inserted already."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self.keys = set(keys)
        # Of groups in which a draw had to list them: the positions of the other donors, and all positions by key.
        self._left: list[tuple[_Group, list[int], dict[str, list[int]]]] = []

    def add(self, key: str) -> None:
        """Add a mention."""
        if key in self.keys:
            return
        self.keys.add(key)
        for _, left, by_key in self._left:
            for position in by_key.get(key, ()):
                del left[bisect_left(left, position)]

    def left_in(self, group: _Group) -> list[int]:
        """Return the positions of the donors of a group that are not avoided, in increasing order."""
        for known, left, _ in self._left:
            if known is group:
                return left
        by_key: defaultdict[str, list[int]] = defaultdict(list)
        for i, donor in enumerate(group.donors):
            by_key[donor.key].append(i)
        left = [i for i, donor in enumerate(group.donors) if donor.key not in self.keys]
        self._left.append((group, left, by_key))
        return left


_Content = tuple[tuple[str, ...], tuple[Mention, ...]]  # the words and the mentions of a donor


class _SeenMentions:
    """The mentions of a corpus, by structure, with their uses: whether an article stands before them."""

    # A mention has no use if it was seen in headlines in capitals alone.

    def __init__(self) -> None:
        self.uses: defaultdict[Structure, dict[_Content, set[bool]]] = defaultdict(dict)
        self.spaces: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._initial: list[tuple[Structure, _Content]] = []

    def add(self, sentence: Sentence, place: Place, capitals: CorpusCapitals | None) -> None:
        """Add a mention; one from the beginning of a sentence only with `add_initial`, if `capitals` are given."""
        mention = place.mention
        words = sentence.mention_tokens(mention)
        own = Mention(mention.label, ((0, len(words)),))
        content = words, (own, *[inner.shift(-mention.start) for inner in place.inner])
        if sentence.spaces is not None and len(words) > 1:
            between = sentence.spaces[mention.start : mention.end - 1]
            self.spaces[words] = min(between, self.spaces.get(words, between))
        if capitals is not None and not mention.start:
            self._initial.append((place.structure, content))
            return
        uses = self.uses[place.structure].setdefault(content, set())
        if not (words[0].isupper() and is_in_capitals(sentence.tokens, mention.start, mention.end)):
            uses.add(bool(mention.start) and sentence.tokens[mention.start - 1].lower() in ARTICLES)

    def add_initial(self, capitals: CorpusCapitals) -> None:
        """Add the mentions from the beginning of sentences, in the form that they have within sentences."""
        for structure, (words, mentions) in self._initial:
            form = capitals.within_sentence(words, structure[0])
            if form != words and words in self.spaces:
                self.spaces[form] = min(self.spaces[words], self.spaces.get(form, self.spaces[words]))
            uses = self.uses[structure].setdefault((form, mentions), set())
            if not (words[0].isupper() and len(words[0]) > 1):  # else it may be a part of a headline
                uses.add(False)


class TrainingDonors:
    """The distinct mentions of a corpus, by label and shape."""

    def __init__(self, *, by_shape: bool) -> None:
        self._by_shape = by_shape
        self._shapes = MentionShapes()
        self._capitals = CorpusCapitals()
        self._seen = _SeenMentions()

    def fit(self, corpus: Iterable[Sentence]) -> None:
        """Learn the mentions of a corpus, in one pass."""
        for _ in self.observe(corpus):
            pass
        self.conclude()

    def observe(self, corpus: Iterable[Sentence]) -> Iterator[Sentence]:
        """Learn the mentions of sentences that pass by; `conclude` makes donors of them."""
        seen, capitals = self._seen, self._capitals if self._by_shape else None
        for sentence in corpus:
            if capitals is not None:
                self._shapes.add(sentence)
                capitals.add(sentence)
            for place, _ in self_contained_mentions(sentence):
                seen.add(sentence, place, capitals)
            yield sentence

    def conclude(self) -> None:
        """Make donors of the mentions that were learned."""
        seen = self._seen
        seen.add_initial(self._capitals)
        self._donors = {
            structure: {
                MentionDonor(words, mentions, seen.spaces.get(words), content_key(words)): uses[words, mentions]
                for words, mentions in sorted(uses, key=lambda content: (content[0], str(content[1])))
            }
            for structure, uses in seen.uses.items()
        }
        del self._seen, self._capitals
        self._groups: dict[tuple[object, ...], dict[tuple[object, ...], _Group]] = {}
        self._chosen: dict[tuple[object, ...], _Group] = {}

    @property
    def pools(self) -> dict[str, list[tuple[str, ...]]]:
        """For each label the words of the donors without other mentions, sorted."""
        return {
            label: [donor.words for donor in donors] for (label, all_), donors in self._donors.items() if len(all_) == 1
        }

    def size(self, place: Place) -> int:
        """The number of donors with the labels of a place, the mention itself included."""
        return len(self._donors.get(place.structure, ()))

    def has_pairs(self) -> bool:
        """Whether any mention can be replaced by another."""
        return any(len(donors) > 1 for donors in self._donors.values())

    def draw(
        self, sentence: Sentence, place: Place, avoided: AvoidedMentions, rng: Random, *, any_shape: bool = False
    ) -> MentionDonor | None:
        """Draw a donor uniformly: never the mention itself."""
        mention = place.mention
        words = sentence.tokens[mention.start : mention.end]
        if self._by_shape and not any_shape:
            before = sentence.tokens[mention.start - 1] if mention.start else ""
            in_capitals = words[0].isupper() and is_in_capitals(sentence.tokens, mention.start, mention.end)
            key = (*place.structure, words, before.lower() in ARTICLES, in_capitals)
            group = self._chosen.get(key)
            if group is None:
                group = self._chosen[key] = self._group_for(place.structure, words, before, in_capitals)
        else:
            group = self._group(place.structure, ())
        own = group.positions.get(words, [])
        found = _draw(group, own, avoided, rng)
        if found is None and self._by_shape and not any_shape:
            return self.draw(sentence, place, avoided, rng, any_shape=True)
        return found

    def _group_for(self, structure: Structure, words: tuple[str, ...], before: str, in_capitals: bool) -> _Group:
        """The donors of the narrowest shape that has enough of them."""
        shape = self._shapes.shape(structure[0], words, before)
        if in_capitals:
            shape = shape._replace(capitals=_ANY_CAPITALS)
        for length in range(len(shape), 0, -1):
            group = self._group(structure, shape[:length])
            if len(group.donors) - len(group.positions.get(words, ())) >= _ENOUGH:
                return group
        return self._group(structure, ())

    def _group(self, structure: Structure, shape: tuple[object, ...]) -> _Group:
        """The donors whose shape begins so."""
        key = (*structure, len(shape))
        if key not in self._groups:
            self._groups[key] = self._groups_of(structure, len(shape))
        return self._groups[key].get(shape, _NO_DONORS)

    def _groups_of(self, structure: Structure, length: int) -> dict[tuple[object, ...], _Group]:
        """The donors by the first parts of their shapes."""
        if not length:
            return {(): _grouped(self._donors.get(structure, ()))}
        groups: defaultdict[tuple[object, ...], list[MentionDonor]] = defaultdict(list)
        for donor, articles in self._donors.get(structure, {}).items():
            shape = self._shapes.shape(structure[0], donor.words)
            shapes = [shape._replace(has_article=has_article) for has_article in articles]
            # A place in capitals takes any donor, in capitals; a headline drops articles.
            shapes += [shape._replace(capitals=_ANY_CAPITALS, has_article=a) for a in articles or (False, True)]
            for key in dict.fromkeys(shape[:length] for shape in shapes):
                groups[key].append(donor)
        return {shape: _grouped(donors) for shape, donors in groups.items()}


def content_key(words: Sequence[str]) -> str:
    """Return a key that is equal for mentions that differ in nothing but case."""
    return " ".join(words).casefold()


def _grouped(donors: Iterable[MentionDonor]) -> _Group:
    donors = list(donors)
    positions: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, donor in enumerate(donors):
        positions[donor.words].append(i)
    return _Group(donors, dict(positions))


def _draw(group: _Group, own: Sequence[int], avoided: AvoidedMentions, rng: Random) -> MentionDonor | None:
    donors = group.donors
    n = len(donors) - len(own)
    if n < 1:
        return None
    for _ in range(_DRAWS):
        number = int(rng.random() * n)
        for position in own:
            number += number >= position
        if donors[number].key not in avoided.keys:
            return donors[number]
    others = avoided.left_in(group)
    if own and donors[own[0]].key not in avoided.keys:
        others = [i for i in others if i not in own]
    return donors[others[int(rng.random() * len(others))]] if others else None
