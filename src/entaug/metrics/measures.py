"""The measures of quality: fluency, novelty against sources and gold, diversity, labels and length.

ACLM is Ghosh et al. (2023), section 5.1; CASSI is Surana et al. (2023), section 4.3.2; EnTDA is Hu et al. (2023),
tables 5 and 6. Words are tokens with a letter or a digit; case is ignored.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from random import Random
from sys import intern
from typing import Literal

from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.phrases import known_mentions, unlabelled_places
from entaug.metrics import near_duplicates
from entaug.metrics.bertscore import pairwise_bertscore
from entaug.metrics.likelihood import as_text, count_words
from entaug.metrics.quality import MeasureInputs, MeasureValue, UndefinedError, mean_over_sentences, measure, words

NEAR_DUPLICATE = 0.9
"""Smallest similarity of near-duplicates: one token of ten replaced."""
MAX_SENTENCES = 300
"""Number of sentences that Self-BERTScore compares; of more, a random sample."""
_SEED = 0

Item = tuple[str, ...]
"""A mention or a context, by its label and words."""

# ------------------------------------------------------------------------------------------------------------- fluency


@measure("Perplexity", higher="less fluent", needs="causal_lm")
def perplexity(inputs: MeasureInputs) -> MeasureValue:
    """Exponential of the mean negative log-probability of a sub-word under a causal language model."""
    # The mean is over the sub-words of all sentences. ACLM and EnTDA report it for GPT-2, and do not say whether their
    # mean is over sub-words or over sentences, nor how tokens are joined to text. The mean of the perplexities of
    # single sentences, which are the values by sentence, is higher and dominated by few sentences.
    likelihoods = inputs.models.likelihoods("causal_lm", inputs.sentences)
    pieces = sum(likelihood.pieces for likelihood in likelihoods)
    if not pieces:
        raise UndefinedError("no sentence has a sub-word")
    by_sentence = [_exp(-total / count) if count else None for total, count in likelihoods]
    return MeasureValue(_exp(-math.fsum(total for total, _ in likelihoods) / pieces), by_sentence)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))


@measure("LM score", unit="nats", higher="more fluent", needs="causal_lm")
def lm_score(inputs: MeasureInputs) -> MeasureValue:
    """Log-likelihood per word under a causal language model, mean over sentences."""
    # Punctuation does not count as words. CASSI itself uses the pseudo-log-likelihood: `masked_lm_score`.
    return mean_over_sentences(_per_word("causal_lm", inputs.sentences, inputs))


@measure("Masked LM score", unit="nats", higher="more fluent", needs="masked_lm")
def masked_lm_score(inputs: MeasureInputs) -> MeasureValue:
    """Pseudo-log-likelihood per word under a masked language model, mean over sentences (CASSI, table 8)."""
    # Punctuation does not count as words. The paper measures with mBERT, another model than the one it selects with;
    # scores of two models cannot be compared.
    return mean_over_sentences(_per_word("masked_lm", inputs.sentences, inputs))


@measure("LM score change", unit="nats", higher="more fluent than the source", needs="causal_lm")
def source_lm_difference(inputs: MeasureInputs) -> MeasureValue:
    """Log-likelihood per word minus that of the source, mean over sentences."""
    scores = _per_word("causal_lm", inputs.sentences, inputs)
    source_scores = iter(_per_word("causal_lm", [source for source in inputs.sources if source is not None], inputs))
    differences = [
        None if source is None else score - next(source_scores)
        for score, source in zip(scores, inputs.sources, strict=True)
    ]
    return mean_over_sentences(differences, "the source of no sentence is known")


def _per_word(
    kind: Literal["causal_lm", "masked_lm"], sentences: Sequence[Sentence], inputs: MeasureInputs
) -> list[float]:
    both = zip(sentences, inputs.models.likelihoods(kind, sentences), strict=True)
    return [likelihood.total / count_words(sentence.tokens) for sentence, likelihood in both]


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
def similarity(inputs: MeasureInputs) -> MeasureValue:
    """Share of tokens that are also in the source, in the same order, mean over sentences."""
    # See `entaug.metrics.near_duplicates.similarity`.
    return inputs.mean_over_sources(near_duplicates.similarity)


@measure("Near-duplicates of source", unit="share", higher="more near-duplicates")
def near_source(inputs: MeasureInputs) -> MeasureValue:
    """Share of sentences with a similarity of at least 0.9 to their source."""
    return inputs.mean_over_sources(lambda *both: float(near_duplicates.similarity(*both) >= NEAR_DUPLICATE - 1e-9))


# --------------------------------------------------------------------------------------------------------- against gold


@measure("Near-duplicates of gold", unit="share", higher="more near-duplicates")
def near_gold(inputs: MeasureInputs) -> MeasureValue:
    """Share of sentences with a similarity of at least 0.9 to any gold sentence."""
    index = near_duplicates.NearDuplicateIndex(inputs.require_gold(), min_similarity=NEAR_DUPLICATE)
    found = index.contains(inputs.sentences, lambda *counts: inputs.models.progress("comparing", *counts))
    return mean_over_sentences([float(is_near) for is_near in found])


@measure("Near-duplicates within", unit="share", higher="more near-duplicates")
def near_others(inputs: MeasureInputs) -> MeasureValue:
    """Share of sentences with a similarity of at least 0.9 to an earlier one of the same method."""
    index = near_duplicates.NearDuplicateIndex(inputs.sentences, min_similarity=NEAR_DUPLICATE)
    found = index.repeats(lambda *counts: inputs.models.progress("comparing", *counts))
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


# ------------------------------------------------------------------------------------------------------------ diversity


@measure("Type-token ratio", unit="share", higher="more varied words")
def type_token_ratio(inputs: MeasureInputs) -> MeasureValue:
    """Distinct words divided by all words of a sentence, mean over sentences (EnTDA)."""
    # The paper says "for each original text", which could mean all sentences made from one source. Its values (71.6 to
    # 86.4 %) do not settle it: those of SiS, which only changes the order of words, would be those of gold sentences if
    # they were of single sentences, and are the lowest.
    rows = (words(sentence.tokens) for sentence in inputs.sentences)
    return mean_over_sentences([len(set(row)) / len(row) if row else None for row in rows], "no sentence has a word")


@measure("Distinct-1", unit="share", higher="more varied words")
def distinct_1(inputs: MeasureInputs) -> MeasureValue:
    """Distinct words divided by all words; only for sets of equal size."""
    # See Li et al. (2016). It decreases with the number of sentences: compare only sets of equal size.
    return _distinct_ngrams(inputs, 1)


@measure("Distinct-2", unit="share", higher="more varied words")
def distinct_2(inputs: MeasureInputs) -> MeasureValue:
    """Distinct bigrams of words divided by all bigrams; only for sets of equal size."""
    # Li et al. (2016) divide by words. It decreases with the number of sentences: compare only sets of equal size.
    return _distinct_ngrams(inputs, 2)


def _distinct_ngrams(inputs: MeasureInputs, n: Literal[1, 2]) -> MeasureValue:
    """Distinct n-grams for `n` of 1 or 2, as numbers: a large corpus has many million bigrams."""
    import numpy as np

    numbers: dict[str, int] = {}
    ngrams = array("Q")
    for sentence in inputs.sentences:
        row = [numbers.setdefault(word, len(numbers)) for word in words(sentence.tokens)]
        ngrams.extend(row if n == 1 else [one << 32 | other for one, other in pairwise(row)])
    if not ngrams:
        raise UndefinedError(f"no sentence has {n} words" if n > 1 else "no sentence has a word")
    ordered = np.frombuffer(ngrams, np.uint64)
    ordered.sort()  # in place
    return MeasureValue((1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))) / len(ordered))


@measure("Self-BERTScore", unit="score", higher="less varied", needs="encoder")
def self_bertscore(inputs: MeasureInputs) -> MeasureValue:
    """Mean BERTScore F1 of all pairs of sentences (CASSI)."""
    # Each set is measured by itself; the paper measures gold and augmented sentences together, see
    # `self_bertscore_with_gold`. It calls the measure "similar to Self-BLEU", which takes the best match of all other
    # sentences; its values (0.59 for gold, 0.60 with five augmentations of each) are those
    # of a mean over pairs. Values of different models cannot be compared.
    return _mean_of_pairs(inputs.sentences, inputs)


@measure("Self-BERTScore with gold", unit="score", higher="less varied", needs="encoder")
def self_bertscore_with_gold(inputs: MeasureInputs) -> MeasureValue:
    """Mean BERTScore F1 of all pairs of gold and augmented sentences together (CASSI, table 9)."""
    # For the gold sentences it is their own. Values of different models cannot be compared.
    return _mean_of_pairs([*inputs.gold, *inputs.sentences], inputs)


def _mean_of_pairs(sentences: Sequence[Sentence], inputs: MeasureInputs) -> MeasureValue:
    encoder = inputs.models.encoder
    if encoder is None:
        raise UndefinedError("there is no encoder")
    texts = sorted(map(as_text, sentences))
    n = min(len(texts), MAX_SENTENCES)
    if n < 2:
        raise UndefinedError("there are no two sentences")
    note = ""
    if n < len(texts):
        texts = sorted(Random(_SEED).sample(texts, n))
        note = f"of {n} sentences drawn with seed {_SEED}"
    scores = pairwise_bertscore(texts, encoder)
    total = float(scores.sum(dtype="float64")) - float(scores.diagonal().sum(dtype="float64"))
    inputs.models.progress("comparing", n, n)
    return MeasureValue(total / (n * (n - 1)), note=note)


# --------------------------------------------------------------------------------------------------- labels and lengths


@measure("Label distance", unit="score", higher="further from gold")
def label_distance(inputs: MeasureInputs) -> MeasureValue:
    """Jensen-Shannon distance (base 2) of the distribution of labels from that of gold."""
    return MeasureValue(jensen_shannon(*_label_distributions(inputs)))


@measure("Label variation", unit="share", higher="further from gold")
def label_variation(inputs: MeasureInputs) -> MeasureValue:
    """Share of mentions that would need another label for gold's distribution of labels (total variation)."""
    return MeasureValue(total_variation(*_label_distributions(inputs)))


def _label_distributions(inputs: MeasureInputs) -> tuple[dict[str, float], dict[str, float]]:
    """The label distributions of the sentences and of gold."""
    augmented, gold = _label_shares(inputs.sentences), _label_shares(inputs.require_gold())
    if not (augmented and gold):
        raise UndefinedError("there are no mentions")
    return augmented, gold


def _label_shares(sentences: Iterable[Sentence]) -> dict[str, float]:
    counts = Counter(mention.label for sentence in sentences for mention in sentence.mentions)
    return {label: count / counts.total() for label, count in counts.items()}


def jensen_shannon(p: Mapping[str, float], q: Mapping[str, float]) -> float:
    """Jensen-Shannon distance: the square root of the divergence in bits (Endres and Schindelin 2003)."""
    middle = {label: (p.get(label, 0) + q.get(label, 0)) / 2 for label in sorted({*p, *q})}

    def divergence(of: Mapping[str, float]) -> float:
        return math.fsum(of[label] * math.log2(of[label] / middle[label]) for label in middle if label in of)

    return math.sqrt(max(0.0, (divergence(p) + divergence(q)) / 2))


def total_variation(p: Mapping[str, float], q: Mapping[str, float]) -> float:
    """Total variation distance: half the sum of the absolute differences."""
    return math.fsum(abs(p.get(label, 0) - q.get(label, 0)) for label in {*p, *q}) / 2


@measure("Unlabelled mentions", unit="share", higher="more names without a label")
def unlabelled_mentions(inputs: MeasureInputs) -> MeasureValue:
    """Share of the places of gold's mentions that have no label; of mentions that gold labels at most places."""
    # A tagger learns from such places to overlook names: with 17 % of them one of CrossNER lost ten points of recall
    # (benchmarks/papers/entda.md). Gold itself is measured with its own mentions.
    known = known_mentions(inputs.gold or inputs.sentences)
    places = [list(known.find(sentence.tokens)) for sentence in inputs.sentences]
    missing = [sum(1 for _ in unlabelled_places(*row)) for row in zip(inputs.sentences, places, strict=True)]
    total = sum(map(len, places))
    if not total:
        raise UndefinedError("no sentence has a mention of gold")
    shares = [number / len(row) if row else None for number, row in zip(missing, places, strict=True)]
    return MeasureValue(sum(missing) / total, shares)


@measure("Mentions")
def mentions(inputs: MeasureInputs) -> MeasureValue:
    """Number of mentions, mean over sentences."""
    return mean_over_sentences([float(len(sentence.mentions)) for sentence in inputs.sentences])


@measure("Length", unit="tokens")
def length(inputs: MeasureInputs) -> MeasureValue:
    """Number of tokens, mean over sentences."""
    return mean_over_sentences([float(len(sentence)) for sentence in inputs.sentences])
