"""The measures of quality, each by its definition in the papers; where they differ, which is taken, and what is left.

ACLM is Ghosh et al. (2023), section 5.1; EnTDA Hu et al. (2023), tables 5 and 6; CASSI Surana et al. (2023), section
4.3.2 and appendix A. Words are tokens that hold a letter or a figure, and are compared without regard to case.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

from entaug.data import Mention, Sentence
from entaug.quality.material import Material, UndefinedError, text_of, words
from entaug.scoring.bertscore import pairwise_bertscore
from entaug.scoring.candidate_selection import count_words
from entaug.scoring.near_duplicates import nearest, similarity

__all__ = [
    "NEAR",
    "SAMPLE",
    "Found",
    "context",
    "distinct",
    "diversity",
    "diversity_l",
    "jensen_shannon",
    "label_shift",
    "length",
    "length_difference",
    "lm_score",
    "masked_lm_score",
    "mentions_per_sentence",
    "near_gold",
    "near_others",
    "near_source",
    "new_words",
    "perplexity",
    "self_bertscore",
    "similarity_to_source",
    "source_lm_difference",
    "total_variation",
    "type_token_ratio",
    "unseen_contexts",
    "unseen_mentions",
]

NEAR = 0.9
"""From which similarity on sentences are near-duplicates: one token of ten replaced."""
SAMPLE = 300
"""Of how many sentences at most Self-BERTScore compares all pairs."""
_SEED = 0
_WINDOW = 2

Values = Sequence[float | None]


class Found(NamedTuple):
    """What a measure has found.

    Args:
        value: of all sentences together.
        by_sentence: of each, where that has a sense; None for one that it is not defined for.
        note: what a reader should know.
    """

    value: float
    by_sentence: Values | None = None
    note: str = ""


def _mean(values: Values, why: str) -> Found:
    """The mean over the sentences that have a value."""
    there = [value for value in values if value is not None]
    if not there:
        raise UndefinedError(why)
    return Found(math.fsum(there) / len(there), values)


_NO_SOURCE = "the source of no sentence is known"
_NO_GOLD = "there are no gold sentences to compare with"
_NO_MENTION = "there are no mentions"


# ------------------------------------------------------------------------------------------------------------- fluency


def perplexity(of: Material) -> Found:
    """The exponential of the mean negative log-probability of a sub-word, over all sub-words of all sentences together.

    ACLM and EnTDA report that of GPT-2 and say neither whether they average over sub-words or over sentences, nor how
    they put text together. The mean of the sentences' own values, which some programs give, is higher, and a few
    sentences settle it; those values are there by sentence.
    """
    found = of.models.log_likelihoods(of.made)
    count = sum(n for _, n in found)
    if not count:
        raise UndefinedError("no sentence has a sub-word")
    by_sentence = [_exp(-total / n) if n else None for total, n in found]
    return Found(_exp(-math.fsum(total for total, _ in found) / count), by_sentence)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))


def lm_score(of: Material) -> Found:
    """CASSI's score, read from the left: log-likelihood by words that are not punctuation, mean over sentences.

    CASSI's own, and Salazar et al. (2020)'s, hides each sub-word alone: that is `masked_lm_score`.
    """
    return _mean(_per_word(of.made, of.models.log_likelihoods(of.made)), "no sentences")


def masked_lm_score(of: Material) -> Found:
    """CASSI's table 8: pseudo-log-likelihood by words that are not punctuation, mean over sentences.

    The paper measures with mBERT, another model than it chooses with; scores of two models cannot be compared.
    """
    return _mean(_per_word(of.made, of.models.pseudo_log_likelihoods(of.made)), "no sentences")


def source_lm_difference(of: Material) -> Found:
    """`lm_score` of a sentence less that of its source: what the method has cost."""
    having = [(i, source) for i, source in enumerate(of.sources) if source is not None]
    sources = [source for _, source in having]
    theirs = dict(zip((i for i, _ in having), _per_word(sources, of.models.log_likelihoods(sources)), strict=True))
    own = _per_word(of.made, of.models.log_likelihoods(of.made))
    return _mean([own[i] - theirs[i] if i in theirs else None for i in range(len(own))], _NO_SOURCE)


def _per_word(sentences: Iterable[Sentence], found: Iterable[tuple[float, int]]) -> list[float]:
    return [total / count_words(s.tokens) for s, (total, _) in zip(sentences, found, strict=True)]


# ------------------------------------------------------------------------------------------------------------- novelty


def _new(these: Sequence[str], old: Iterable[str]) -> float | None:
    known = set(old)
    return sum(word not in known for word in these) / len(these) if these else None


def new_words(of: Material) -> Found:
    """The share of a sentence's words that its source has nowhere, mean over sentences.

    What comes from the other sentence, where a method mixes two, is new.
    """
    return _mean(of.with_source(lambda made, source: _new(words(made.tokens), words(source.tokens))), _NO_SOURCE)


def diversity(of: Material, *, mentions: bool) -> Found:
    """ACLM's Diversity-E and Diversity-N: "the average percentage of new NE and non-NE words".

    Here: of the words of mentions (or of all others) the share that is no such word in the source, mean over the
    sentences that have such words. Where a word was a mention's and is now another's, it is new. The paper does not say
    whether words or different words are counted, nor how sentences of many rounds are summed; words are, and each
    sentence alone.
    """

    def own(sentence: Sentence) -> list[str]:
        free = sentence.outside_mask()
        return words(token for token, out in zip(sentence.tokens, free, strict=True) if out is not mentions)

    what = "mentions" if mentions else "words outside mentions"
    values = of.with_source(lambda made, source: _new(own(made), own(source)))
    return _mean(values, _NO_SOURCE if all(s is None for s in of.sources) else f"no sentence with a source has {what}")


def diversity_l(of: Material) -> Found:
    """ACLM's Diversity-L: the mean absolute difference in tokens from the source."""
    return _mean(of.with_source(lambda made, source: float(abs(len(made) - len(source)))), _NO_SOURCE)


def length_difference(of: Material) -> Found:
    """The same with its sign: how much longer sentences have become."""
    return _mean(of.with_source(lambda made, source: float(len(made) - len(source))), _NO_SOURCE)


def similarity_to_source(of: Material) -> Found:
    """`entaug.scoring.near_duplicates.similarity` with the source."""
    return _mean(of.with_source(similarity), _NO_SOURCE)


def unseen_mentions(of: Material, *, distinct: bool) -> Found:
    """The share of mentions whose words gold has in no mention of that label; of all, or of different ones."""
    if not of.gold:
        raise UndefinedError(_NO_GOLD)

    def all_of(sentence: Sentence) -> list[tuple[str, ...]]:
        return [(m.label, *(token.casefold() for token in sentence.mention_tokens(m))) for m in sentence.mentions]

    return _unseen(of, all_of, distinct=distinct)


def unseen_contexts(of: Material, *, distinct: bool) -> Found:
    """The share of mentions that stand where gold has no mention of that label; see `context`.

    CASSI speaks of context diversity (after Lin et al. 2020) and does not measure it; the window is ours.
    """
    if not of.gold:
        raise UndefinedError(_NO_GOLD)

    def all_of(sentence: Sentence) -> list[tuple[str, ...]]:
        return [context(sentence, mention) for mention in sentence.mentions]

    return _unseen(of, all_of, distinct=distinct)


def _unseen(of: Material, all_of: Callable[[Sentence], list[tuple[str, ...]]], *, distinct: bool) -> Found:
    seen = {one for sentence in of.gold for one in all_of(sentence)}
    rows = [all_of(sentence) for sentence in of.made]
    every = [one for row in rows for one in row]
    flat = sorted(set(every)) if distinct else every
    if not flat:
        raise UndefinedError(_NO_MENTION)
    value = sum(one not in seen for one in flat) / len(flat)
    return Found(value) if distinct else Found(value, [_new_of(row, seen) for row in rows])


def _new_of(row: Sequence[tuple[str, ...]], seen: set[tuple[str, ...]]) -> float | None:
    return sum(one not in seen for one in row) / len(row) if row else None


def context(sentence: Sentence, mention: Mention, window: int = _WINDOW) -> tuple[str, ...]:
    """Where a mention stands: its label, what is in its gaps, and the two nearest tokens on both sides without case.

    Another mention counts as one, and by its label: so a mention that only has another neighbour of the same type
    stands where it stood. At the edge of a sentence there are fewer.

    Example:
        >>> s = Sentence("He met Ada Byron in Rome .".split(), [Mention("PER", [(2, 4)]), Mention("LOC", [(5, 6)])])
        >>> [context(s, mention) for mention in s.mentions]
        [('PER', '', 'he', 'met', '', 'in', '<LOC>'), ('LOC', '', '<PER>', 'in', '', '.')]
    """
    covers: list[tuple[str, ...]] = [()] * len(sentence)
    for number, other in enumerate(sentence.mentions):
        if other is not mention:
            for place in other.positions():
                covers[place] += (f"{other.label} {number}",)

    def seen(places: Iterable[int], most: int) -> list[str]:
        found: list[str] = []
        last: tuple[str, ...] = ()
        for place in places:
            here = covers[place]
            if not here:
                found.append(sentence.tokens[place].casefold())
            elif here != last:
                found.append("".join(f"<{one.rpartition(' ')[0]}>" for one in here))
            last = here
            if len(found) == most:
                break
        return found

    gaps = [p for (_, end), (start, _) in pairwise(mention.spans) for p in range(end, start)]
    left = seen(range(mention.start - 1, -1, -1), window)[::-1]
    right = seen(range(mention.end, len(sentence)), window)
    return (mention.label, *seen(gaps, len(sentence)), "", *left, "", *right)


# ----------------------------------------------------------------------------------------------------------- diversity


def type_token_ratio(of: Material) -> Found:
    """EnTDA's TTR: different words by all words of a sentence, mean over sentences.

    "For each original text", the paper says, which could mean all that was made of one; its figures (81 to 86 %) are
    those of single sentences.
    """
    rows = (words(sentence.tokens) for sentence in of.made)
    return _mean([len(set(row)) / len(row) if row else None for row in rows], "no sentence has a word")


def distinct(of: Material, *, n: int) -> Found:
    """Different runs of n words by all of them, in all sentences together (Li et al. 2016).

    Those authors divide by words, which for n = 1 is the same and for more is a little less. It falls as sentences
    become more: only sets of one size can be compared.
    """
    runs: Counter[tuple[str, ...]] = Counter()
    for sentence in of.made:
        row = words(sentence.tokens)
        runs.update(zip(*(row[i:] for i in range(n)), strict=False))
    if not runs:
        raise UndefinedError(f"no sentence has {n} words" if n > 1 else "no sentence has a word")
    return Found(len(runs) / runs.total())


def self_bertscore(of: Material) -> Found:
    """CASSI's Self-BERTScore: the mean BERTScore F1 of every sentence with every other.

    The paper measures gold and augmented sentences in one set, here each stands alone. It says "similar to Self-BLEU",
    which takes all other sentences as references at once, and the best match in any; its figures (0.59 for gold, 0.60
    with five augmentations of each) are those of a mean over pairs, as the best match would be near 1. The value
    depends on the model: compare values of one model alone.
    """
    encoder = of.models.encoder
    if encoder is None:
        raise UndefinedError("there is no encoder")
    texts = sorted(text_of(sentence) for sentence in of.made)
    if len(texts) < 2:
        raise UndefinedError("there are no two sentences")
    sample = sorted(Random(_SEED).sample(texts, SAMPLE)) if len(texts) > SAMPLE else texts
    note = f"of {len(sample)} sentences drawn with seed {_SEED}" if len(sample) < len(texts) else ""
    scores = pairwise_bertscore(sample, encoder)
    n = len(sample)
    total = float(scores.sum(dtype="float64")) - float(scores.diagonal().sum(dtype="float64"))
    of.models.progress("comparing", n, n)
    return Found(total / (n * (n - 1)), note=note)


def near_source(of: Material) -> Found:
    """The share of sentences, among those with a source, that are a near-duplicate of it."""
    return _mean(of.with_source(lambda made, source: float(similarity(made, source) >= NEAR - 1e-9)), _NO_SOURCE)


def near_gold(of: Material) -> Found:
    """The share of sentences that are a near-duplicate of any gold sentence."""
    if not of.gold:
        raise UndefinedError(_NO_GOLD)
    return _near(of, of.gold)


def near_others(of: Material) -> Found:
    """The share of sentences that are a near-duplicate of an earlier one: what would go if one of each stayed."""
    return _near(of, None)


def _near(of: Material, others: Sequence[Sentence] | None) -> Found:
    found = nearest(
        of.made, others, least=NEAR, progress=lambda done, all_: of.models.progress("comparing", done, all_)
    )
    return _mean([float(pair is not None) for pair in found], "no sentences")


# --------------------------------------------------------------------------------------------------- labels and length


def _label_shares(sentences: Iterable[Sentence]) -> dict[str, float]:
    counts = Counter(mention.label for sentence in sentences for mention in sentence.mentions)
    return {label: count / counts.total() for label, count in counts.items()}


def label_shift(of: Material, *, distance: Callable[[Mapping[str, float], Mapping[str, float]], float]) -> Found:
    """How far the labels of the mentions are from those of gold."""
    if not of.gold:
        raise UndefinedError(_NO_GOLD)
    made, gold = _label_shares(of.made), _label_shares(of.gold)
    if not (made and gold):
        raise UndefinedError(_NO_MENTION)
    return Found(distance(made, gold))


def jensen_shannon(p: Mapping[str, float], q: Mapping[str, float]) -> float:
    """The square root of the Jensen-Shannon divergence in bits: a distance from 0 to 1 (Endres and Schindelin 2003).

    Example:
        >>> jensen_shannon({"a": 1.0}, {"b": 1.0})
        1.0
    """
    labels = sorted({*p, *q})

    def to_middle(one: Mapping[str, float]) -> float:
        terms = (
            one[label] * math.log2(2 * one[label] / (p.get(label, 0) + q.get(label, 0)))
            for label in labels
            if label in one
        )
        return math.fsum(terms)

    return math.sqrt(max(0.0, (to_middle(p) + to_middle(q)) / 2))


def total_variation(p: Mapping[str, float], q: Mapping[str, float]) -> float:
    """Half the sum of the differences: the share of mentions that would need another label.

    Example:
        >>> total_variation({"a": 1.0}, {"a": 0.75, "b": 0.25})
        0.25
    """
    return math.fsum(abs(p.get(label, 0) - q.get(label, 0)) for label in sorted({*p, *q})) / 2


def length(of: Material) -> Found:
    """Tokens of a sentence, mean."""
    return _mean([float(len(sentence)) for sentence in of.made], "no sentences")


def mentions_per_sentence(of: Material) -> Found:
    """Mentions of a sentence, mean."""
    return _mean([float(len(sentence.mentions)) for sentence in of.made], "no sentences")
