"""Sentences with the labels of a teacher, how sure it is of them, and which of them to keep."""

from __future__ import annotations

import contextlib
import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from entaug.backends.protocols import Tagger
from entaug.core.data import Provenance, Sentence
from entaug.core.mentions import Mention
from entaug.core.spacing import is_unspaced_script
from entaug.errors import InputError, ParameterError
from entaug.metrics.near_duplicates import select_distinct

if TYPE_CHECKING:
    from entaug.backends.soft_labels import TagProbabilities


Strategy = Literal["uncertainty", "entropy", "margin", "random"]
"""How sentences are selected for annotation; see `entaug.suggest`."""
RELATIONS = "relation_probabilities"
"""The field of `Sentence.layout` with probabilities of relations between words: see `entaug.taggers.relations`."""


class PseudoLabelled(NamedTuple):
    """A sentence with the labels of a teacher."""

    sentence: Sentence
    confidence: float


def sentence_confidence(probabilities: Any) -> float:
    """The confidence of a teacher in the labels of a sentence: the geometric mean of those of its words."""
    logs = [math.log(max(float(x), 1e-12)) for x in probabilities.confidences]
    return math.exp(math.fsum(logs) / len(logs))


def mask_words(probabilities: Any, min_confidence: float) -> Any:
    """Mask the words whose likeliest tag is less probable than a threshold."""
    weights = [float(confidence >= min_confidence) for confidence in probabilities.confidences]
    if all(weights):
        return probabilities
    return type(probabilities).from_dict({**probabilities.to_dict(), "weights": weights})


def label_sentences(
    sentences: Sequence[Sentence], tagger: Tagger, *, min_token_confidence: float = 0.0, is_flat: bool = True
) -> list[PseudoLabelled]:
    """Label sentences with a trained tagger."""
    # The sentences get the probabilities of relations between words if the tagger gives these (`w2ner`, see
    # `entaug.taggers.relations`), else those of tags if mentions are flat, else none.
    plain = [s.with_(mentions=(), layout={}, meta={}, columns={}, provenance=None) for s in sentences]
    soft = soft_labels(tagger, plain, is_flat=is_flat)
    if soft is not None:
        # The tags of an averaged ensemble often do not fit together; relations always do.
        labelled = [mask_words(one, min_token_confidence).label(s) for one, s in zip(soft, plain, strict=True)]
        confidences = list(map(sentence_confidence, soft))
    elif min_token_confidence:
        raise ParameterError(
            "min_token_confidence needs probabilities, which this teacher does not give to such mentions",
            remedy="use min_confidence, or the tagger w2ner",
        )
    else:
        labelled = tagger.predict(plain)
        confidences = tagger.confidences(labelled)
    return [
        PseudoLabelled(_signed(sentence, confidence), confidence)
        for sentence, confidence in zip(labelled, confidences, strict=True)
    ]


def soft_labels(tagger: Tagger, sentences: Sequence[Sentence], *, is_flat: bool = True) -> Sequence[Any] | None:
    """The probabilities of relations or of tags; None if the tagger gives none for such mentions."""
    with contextlib.suppress(ParameterError):  # an ensemble of taggers without relations
        if hasattr(tagger, "relation_probabilities"):
            relations: Sequence[Any] = tagger.relation_probabilities(sentences)
            return relations
    if is_flat:
        with contextlib.suppress(ParameterError):  # a tagger that predicts mentions only, such as seq2seq
            return tagger.tag_probabilities(sentences)
    return None


def _signed(sentence: Sentence, confidence: float) -> Sentence:
    origin = {} if sentence.id is None else {"text": sentence.id}
    details = {"unconditioned": True, "confidence": round(confidence, 4), **origin}
    return sentence.with_(provenance=Provenance(details=details))


def ranked(
    labelled: Iterable[PseudoLabelled], prefer: Literal["random", "confident"], seed: int
) -> list[PseudoLabelled]:
    """Order labelled sentences by preference; the order does not depend on that of the input."""
    ordered = sorted(labelled, key=lambda one: (one.sentence.tokens, one.sentence.id or ""))
    if prefer == "confident":
        return sorted(ordered, key=lambda one: -one.confidence)
    Random(f"unlabelled {seed}").shuffle(ordered)
    return ordered


def most_informative(
    labelled: Iterable[PseudoLabelled],
    number: int,
    *,
    strategy: Strategy = "uncertainty",
    max_similarity: float = 0.6,
    min_tokens: int = 4,
    seed: int = 0,
) -> tuple[list[tuple[PseudoLabelled, float]], int]:
    """Select sentences to annotate, with their scores, and count those that were passed over as similar to others."""
    candidates = [one for one in labelled if _num_words(one.sentence) >= min_tokens]
    scores = {id(one): _score(one, strategy) for one in candidates}
    ordered = sorted(ranked(candidates, "random", seed), key=lambda one: -scores[id(one)])
    chosen = select_distinct([one.sentence for one in ordered], number, max_similarity=max_similarity)
    looked_at = chosen[-1] + 1 if len(chosen) == number else len(ordered)
    passed = looked_at - len(chosen)
    return [(ordered[i], scores[id(ordered[i])]) for i in chosen], passed


def _num_words(sentence: Sentence) -> int:
    """The number of tokens, where two that are characters of a script without spaces count as one."""
    return len(sentence) - sum(len(token) == 1 and is_unspaced_script(token) for token in sentence.tokens) // 2


def _score(labelled: PseudoLabelled, strategy: Strategy) -> float:
    from entaug.backends.soft_labels import TagProbabilities

    if strategy == "random":
        return 0.0
    if strategy == "uncertainty":
        return 1 - labelled.confidence
    probabilities = TagProbabilities.from_sentence(labelled.sentence)
    if probabilities is None:
        raise ParameterError(
            f"{strategy} needs probabilities of tags, which this teacher does not give",
            remedy="choose the strategy uncertainty or random",
        )
    return uncertainty(probabilities, strategy)


def balanced(
    labelled: Sequence[PseudoLabelled], shares: Mapping[str, float], empty_share: float, number: int | None = None
) -> list[PseudoLabelled]:
    """Select sentences so that the types of mentions have given shares."""
    # In each step the type that is furthest below its share gets the next sentence that mentions it. The selection ends
    # when that type has no sentence left, because any further sentence would shift the shares.
    queues: dict[str, deque[int]] = defaultdict(deque)
    empty = deque[int]()
    for i, (sentence, _) in enumerate(labelled):
        for label in {mention.label for mention in sentence.mentions}:
            queues[label].append(i)
        if not sentence.mentions:
            empty.append(i)
    wanted = {label: share for label, share in sorted(shares.items()) if share > 0}
    chosen: set[int] = set()
    counts: Counter[str] = Counter()
    num_empty = 0
    limit = len(labelled) if number is None else min(number, len(labelled))
    while len(chosen) < limit:
        if empty and num_empty + 1 <= empty_share * (len(chosen) + 1):
            chosen.add(empty.popleft())
            num_empty += 1
            continue
        queue = queues[min(wanted, key=lambda name: (counts[name] / wanted[name], name))] if wanted else empty
        while queue and queue[0] in chosen:
            queue.popleft()
        if not queue:
            break
        i = queue.popleft()
        chosen.add(i)
        counts.update(mention.label for mention in labelled[i].sentence.mentions)
    return [labelled[i] for i in sorted(chosen)]


# ---------------------------------------------------------------------------------------------------------- confidence


def word_confidences(sentence: Sentence) -> list[float] | None:
    """The probability of the tag that each word has."""
    from entaug.backends.soft_labels import TagProbabilities

    # It is that of the mentions which the sentence has, whether or not they are the likeliest.
    soft = TagProbabilities.from_sentence(sentence)
    if soft is None:
        if RELATIONS in sentence.layout:
            reason = "a sentence has probabilities of relations between words, not of tags"
            raise InputError(reason, path=f"sentence {sentence.key}", remedy="select when labelling: min_confidence")
        return None
    column = {tag: i for i, tag in enumerate(soft.tags)}
    pairs = zip(soft.values, sentence.iob(), strict=True)
    return [float(row[column[tag]]) if tag in column else 0.0 for row, tag in pairs]


def mention_confidence(mention: Mention, confidences: list[float]) -> float:
    """The confidence of a mention: that of the word that the teacher is least sure of."""
    return min(min(confidences[start:end]) for start, end in mention.spans)


def filter_by_confidence(
    sentences: Iterable[Sentence], min_token_confidence: float, *, drop: Literal["sentences", "mentions"] = "sentences"
) -> Iterator[Sentence]:
    """Drop what a teacher is unsure of, for trainers that take hard labels only.

    Sentences without tag probabilities, such as gold sentences, are kept as they are.

    Args:
        sentences: sentences with `entaug.backends.soft_labels.TagProbabilities`.
        min_token_confidence: the minimum probability of the tag of a token.
        drop: ``"sentences"``: sentences with a word whose tag has a lower probability. ``"mentions"``: only the
            mentions with such a word; a tagger then learns that their words are no mention.

    Yields:
        The sentences that are left.

    Raises:
        ParameterError: `min_token_confidence` is no probability, or `drop` is neither of the two.
        InputError: tag probabilities are invalid, or a sentence has probabilities of relations instead.
        LossError: a sentence with tag probabilities has nested or discontinuous mentions.

    Example:
        >>> from entaug.backends.soft_labels import TagProbabilities
        >>> soft = TagProbabilities(["O", "B-LOC"], [[0.9, 0.1], [0.4, 0.6]])
        >>> unsure = soft.label(Sentence(["in", "Essen"]))
        >>> list(filter_by_confidence([unsure], 0.8))
        []
        >>> [sentence.mentions for sentence in filter_by_confidence([unsure], 0.8, drop="mentions")]
        [()]
    """
    if isinstance(min_token_confidence, bool) or not 0 <= min_token_confidence <= 1:
        raise ParameterError(f"min_token_confidence must be between 0 and 1, not {min_token_confidence!r}")
    if drop not in ("sentences", "mentions"):
        raise ParameterError(f'drop must be "sentences" or "mentions", not {drop!r}')
    return _filter(sentences, min_token_confidence, drop)


def _filter(sentences: Iterable[Sentence], min_token_confidence: float, drop: str) -> Iterator[Sentence]:
    for sentence in sentences:
        confidences = word_confidences(sentence)
        if confidences is None or min(confidences) >= min_token_confidence:
            yield sentence
        elif drop == "mentions":
            kept = [m for m in sentence.mentions if mention_confidence(m, confidences) >= min_token_confidence]
            yield sentence.with_(mentions=kept)


def uncertainty(probabilities: TagProbabilities, measure: Literal["entropy", "margin"]) -> float:
    """Compute how unsure a tagger is of the tags of a sentence."""
    rows = [sorted(map(float, row), reverse=True) for row in probabilities.values]
    if measure == "entropy":
        return math.fsum(-p * math.log(p) for row in rows for p in row if p > 0) / len(rows)
    return max(1 - (row[0] - (row[1] if len(row) > 1 else 0.0)) for row in rows)
