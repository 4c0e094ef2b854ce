"""Novelty: how sentences differ from their sources and from gold.

ACLM is Ghosh et al. (2023), section 5.1; CASSI is Surana et al. (2023). Words are tokens with a letter or a digit; case
is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain, pairwise
from sys import intern

from entaug.core.data import Mention, Sentence
from entaug.metrics.near_duplicates import NearDuplicateIndex, find_repeats, similarity
from entaug.metrics.quality.base import MeasureInputs, MeasureValue, UndefinedError, mean_over_sentences, measure, words

__all__ = [
    "NEAR_DUPLICATE",
    "context",
    "diversity_e",
    "diversity_l",
    "diversity_n",
    "length_difference",
    "near_gold",
    "near_others",
    "near_source",
    "new_words",
    "similarity_to_source",
    "unseen_contexts",
    "unseen_contexts_distinct",
    "unseen_mentions",
    "unseen_mentions_distinct",
]

NEAR_DUPLICATE = 0.9
"""Smallest similarity of near-duplicates: one token of ten replaced."""

Item = tuple[str, ...]
"""A mention or a context, by its label and words."""


# ------------------------------------------------------------------------------------------------- against the source


def _share_of_new(these: Sequence[str], known: Iterable[str]) -> float | None:
    known = set(known)
    return sum(word not in known for word in these) / len(these) if these else None


@measure("New words", unit="share", higher="further from the source")
def new_words(inputs: MeasureInputs) -> MeasureValue:
    """Share of words that do not occur in the source, mean over sentences."""
    # For methods that combine sentences, words from the other sentences are new.
    return inputs.mean_over_sources(lambda *both: _share_of_new(*(words(sentence.tokens) for sentence in both)))


@measure("Diversity-E", unit="share", higher="newer mentions")
def diversity_e(inputs: MeasureInputs) -> MeasureValue:
    """Share of the words of mentions that are in no mention of the source, mean over sentences (ACLM)."""
    # The paper defines "the average percentage of new NE words". It does not say whether words or distinct words are
    # counted, nor how sentences of several rounds are combined; here all words count, and the mean is over the
    # sentences that have such words. A word that moves into a mention is new.
    return _new_words_of_kind(inputs, in_mentions=True)


@measure("Diversity-N", unit="share", higher="newer contexts")
def diversity_n(inputs: MeasureInputs) -> MeasureValue:
    """Share of the words outside mentions that are not outside mentions in the source, mean over sentences (ACLM)."""
    # See `diversity_e`. A word that moves out of a mention is new.
    return _new_words_of_kind(inputs, in_mentions=False)


def _new_words_of_kind(inputs: MeasureInputs, *, in_mentions: bool) -> MeasureValue:
    """The share of new words among those inside or outside mentions."""

    def select(sentence: Sentence) -> list[str]:
        masked = zip(sentence.tokens, sentence.outside_mask(), strict=True)
        return words(token for token, is_outside in masked if is_outside is not in_mentions)

    return inputs.mean_over_sources(lambda sentence, source: _share_of_new(select(sentence), select(source)))


@measure("Diversity-L", unit="tokens", higher="more varied lengths")
def diversity_l(inputs: MeasureInputs) -> MeasureValue:
    """Absolute difference in length from the source, mean over sentences (ACLM)."""
    return inputs.mean_over_sources(lambda sentence, source: float(abs(len(sentence) - len(source))))


@measure("Length change", unit="tokens", higher="longer than the source")
def length_difference(inputs: MeasureInputs) -> MeasureValue:
    """Number of tokens minus that of the source, mean over sentences."""
    return inputs.mean_over_sources(lambda sentence, source: float(len(sentence) - len(source)))


@measure("Similarity to source", unit="share", higher="closer to the source")
def similarity_to_source(inputs: MeasureInputs) -> MeasureValue:
    """Share of tokens that are also in the source, in the same order, mean over sentences."""
    # See `entaug.metrics.near_duplicates.similarity`.
    return inputs.mean_over_sources(similarity)


@measure("Near-duplicates of source", unit="share", higher="more near-duplicates")
def near_source(inputs: MeasureInputs) -> MeasureValue:
    """Share of sentences with a similarity of at least 0.9 to their source."""
    return inputs.mean_over_sources(lambda *both: float(similarity(*both) >= NEAR_DUPLICATE - 1e-9))


# --------------------------------------------------------------------------------------------------------- against gold


@measure("Near-duplicates of gold", unit="share", higher="more near-duplicates")
def near_gold(inputs: MeasureInputs) -> MeasureValue:
    """Share of sentences with a similarity of at least 0.9 to any gold sentence."""
    index = NearDuplicateIndex(inputs.require_gold(), min_similarity=NEAR_DUPLICATE)
    found = index.contains(inputs.sentences, lambda *counts: inputs.models.progress("comparing", *counts))
    return mean_over_sentences([float(is_near) for is_near in found])


@measure("Near-duplicates within", unit="share", higher="more near-duplicates")
def near_others(inputs: MeasureInputs) -> MeasureValue:
    """Share of sentences with a similarity of at least 0.9 to an earlier one of the same method."""
    found = find_repeats(
        inputs.sentences,
        min_similarity=NEAR_DUPLICATE,
        progress=lambda *counts: inputs.models.progress("comparing", *counts),
    )
    return mean_over_sentences([float(is_near) for is_near in found])


@measure("Unseen mentions", unit="share", higher="newer mentions")
def unseen_mentions(inputs: MeasureInputs) -> MeasureValue:
    """Share of mentions whose words no gold mention of the same label has."""
    return _share_of_unseen(inputs, _mention_items)


@measure("Unseen mentions, distinct", unit="share", higher="newer mentions")
def unseen_mentions_distinct(inputs: MeasureInputs) -> MeasureValue:
    """Share of distinct mentions whose words no gold mention of the same label has."""
    return _share_of_unseen(inputs, _mention_items, distinct=True)


@measure("Unseen contexts", unit="share", higher="newer contexts")
def unseen_contexts(inputs: MeasureInputs) -> MeasureValue:
    """Share of mentions whose neighbours (two on each side) no gold mention of the same label has."""
    # CASSI motivates itself with context diversity (after Lin et al. 2020) without measuring it. The window is ours.
    return _share_of_unseen(inputs, _context_items)


@measure("Unseen contexts, distinct", unit="share", higher="newer contexts")
def unseen_contexts_distinct(inputs: MeasureInputs) -> MeasureValue:
    """Share of distinct mentions in context whose neighbours no gold mention of the same label has."""
    return _share_of_unseen(inputs, _context_items, distinct=True)


def _folded(token: str) -> str:
    return intern(token.casefold())  # equal ones of a large corpus are one string


def _mention_items(sentence: Sentence) -> list[Item]:
    return [(m.label, *(_folded(token) for token in sentence.mention_tokens(m))) for m in sentence.mentions]


def _context_items(sentence: Sentence) -> list[Item]:
    return [context(sentence, mention) for mention in sentence.mentions]


def _share_of_unseen(
    inputs: MeasureInputs, items_of: Callable[[Sentence], list[Item]], *, distinct: bool = False
) -> MeasureValue:
    seen = {item for sentence in inputs.require_gold() for item in items_of(sentence)}
    rows: Iterable[Collection[Item]] = map(items_of, inputs.sentences)
    if distinct:
        rows = [set(chain.from_iterable(rows))]
    counts = [(len(row), sum(item not in seen for item in row)) for row in rows]
    total = sum(number for number, _ in counts)
    if not total:
        raise UndefinedError("there are no mentions")
    share = sum(unseen for _, unseen in counts) / total
    return MeasureValue(share, None if distinct else [unseen / number if number else None for number, unseen in counts])


def context(sentence: Sentence, mention: Mention, window: int = 2) -> Item:
    """The label of a mention, the tokens in its gaps and the nearest tokens on both sides, ignoring case."""
    # Another mention counts as one token and is represented by its label, so that replacing a neighbouring mention by
    # another one of the same type does not change the context.
    # By token, the other mentions that cover it.
    others: list[tuple[Mention, ...]] = [()] * len(sentence)
    for other in sentence.mentions:
        if other is not mention:
            for position in other.positions():
                others[position] += (other,)

    def collect(positions: Iterable[int], most: int) -> list[str]:
        collected: list[str] = []
        previous: tuple[Mention, ...] = ()
        for position in positions:
            covering = others[position]
            if not covering:
                collected.append(_folded(sentence.tokens[position]))
            elif covering != previous:
                collected.append("".join(f"<{other.label}>" for other in covering))
            previous = covering
            if len(collected) == most:
                break
        return collected

    gaps = [position for (_, end), (start, _) in pairwise(mention.spans) for position in range(end, start)]
    left = collect(range(mention.start - 1, -1, -1), window)[::-1]
    right = collect(range(mention.end, len(sentence)), window)
    return (mention.label, *collect(gaps, len(sentence)), "", *left, "", *right)
