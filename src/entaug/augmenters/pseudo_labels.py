"""Sentences with the labels of a teacher, and which of them to keep."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple

from entaug.data import Sentence
from entaug.errors import ParameterError
from entaug.provenance import Provenance

if TYPE_CHECKING:
    from entaug.backends.protocols import Tagger
    from entaug.tag_probabilities import TagProbabilities

__all__ = ["PseudoLabelled", "balanced", "label_sentences", "mask_words", "ranked", "sentence_confidence"]

_DIGITS = 4


class PseudoLabelled(NamedTuple):
    """A sentence with the labels of a teacher.

    Args:
        sentence: the sentence with its mentions, the probabilities of tags where the teacher gives some, and as
            provenance the confidence and the id of the unlabelled sentence.
        confidence: the geometric mean, over its words, of the probability of the tag; from 0 to 1.
    """

    sentence: Sentence
    confidence: float


def sentence_confidence(probabilities: TagProbabilities) -> float:
    """Compute the confidence of a teacher in the labels of a sentence.

    Args:
        probabilities: the probabilities of its tags.

    Returns:
        The geometric mean, over its words, of the probability of the likeliest tag.
    """
    logs = [math.log(max(float(x), 1e-12)) for x in probabilities.confidences]
    return math.exp(math.fsum(logs) / len(logs))


def mask_words(probabilities: TagProbabilities, min_confidence: float) -> TagProbabilities:
    """Mask the words whose likeliest tag is less probable than a threshold.

    Args:
        probabilities: the probabilities of the tags of a sentence.
        min_confidence: the threshold.

    Returns:
        The probabilities, with weights 0 for these words and 1 for the others; unchanged where none is masked.

    Example:
        >>> from entaug.tag_probabilities import TagProbabilities
        >>> mask_words(TagProbabilities(["O", "B-LOC"], [[0.9, 0.1], [0.4, 0.6]]), 0.7).weights.tolist()
        [1.0, 0.0]
    """
    weights = [float(confidence >= min_confidence) for confidence in probabilities.confidences]
    return probabilities if all(weights) else type(probabilities)(probabilities.tags, probabilities.values, weights)


def label_sentences(
    sentences: Sequence[Sentence], tagger: Tagger, *, min_token_confidence: float = 0.0, soft: bool = True
) -> list[PseudoLabelled]:
    """Label sentences with a trained tagger.

    Args:
        sentences: the sentences; their own mentions and further fields are ignored.
        tagger: the tagger.
        min_token_confidence: words whose likeliest tag is less probable are masked, see `mask_words`.
        soft: whether to add the probabilities of tags; without them the tagger needs none.

    Returns:
        The sentences in the same order.

    Raises:
        ParameterError: the tagger gives no probabilities to tags, and they are asked for.
    """
    plain = [s.with_(mentions=(), layout={}, meta={}, columns={}, provenance=None) for s in sentences]
    labelled = []
    if not soft:
        if min_token_confidence:
            raise ParameterError(
                "min_token_confidence needs probabilities of tags, which this teacher does not give",
                remedy="leave it out, or use min_confidence",
            )
        predicted = tagger.predict(plain)
        for sentence, confidence in zip(predicted, tagger.confidences(predicted), strict=True):
            labelled.append(PseudoLabelled(_signed(sentence, confidence), confidence))
        return labelled
    for sentence, probabilities in zip(plain, tagger.tag_probabilities(plain), strict=True):
        confidence = sentence_confidence(probabilities)
        masked = mask_words(probabilities, min_token_confidence)
        labelled.append(PseudoLabelled(_signed(masked.label(sentence), confidence), confidence))
    return labelled


def _signed(sentence: Sentence, confidence: float) -> Sentence:
    origin = {} if sentence.id is None else {"text": sentence.id}
    details = {"unconditioned": True, "confidence": round(confidence, _DIGITS), **origin}
    return sentence.with_(provenance=Provenance(details=details))


def ranked(
    labelled: Iterable[PseudoLabelled], prefer: Literal["random", "confident"], seed: int
) -> list[PseudoLabelled]:
    """Order labelled sentences by preference; the order does not depend on that of the input.

    Args:
        labelled: the sentences.
        prefer: ``"random"``, or ``"confident"`` for the most confident first.
        seed: the seed of the random order.

    Returns:
        The sentences, the preferred ones first.
    """
    ordered = sorted(labelled, key=lambda one: (one.sentence.tokens, one.sentence.id or ""))
    if prefer == "confident":
        return sorted(ordered, key=lambda one: -one.confidence)
    Random(f"unlabelled {seed}").shuffle(ordered)
    return ordered


def balanced(
    labelled: Sequence[PseudoLabelled], shares: Mapping[str, float], empty_share: float, number: int | None = None
) -> list[PseudoLabelled]:
    """Select sentences so that the types of mentions have given shares.

    In each step the type that is furthest below its share gets the next sentence that mentions it. The selection ends
    when that type has no sentence left, because any further sentence would shift the shares.

    Args:
        labelled: the sentences, the preferred ones first.
        shares: the share of each type in the mentions; types that are not listed get no sentence of their own.
        empty_share: the share of sentences without a mention, in all sentences.
        number: the maximum number of sentences; None for no limit.

    Returns:
        The selected sentences, in the order of `labelled`.

    Example:
        >>> from entaug.data import Mention
        >>> def words(text, *labels):
        ...     mentions = [Mention(label, [(i, i + 1)]) for i, label in enumerate(labels)]
        ...     return PseudoLabelled(Sentence(text.split(), mentions), 0.9)
        >>> given = [*(words(f"{word} b", "LOC") for word in "acdef"), words("g h", "PER")]
        >>> [one.sentence.tokens[0] for one in balanced(given, {"LOC": 0.5, "PER": 0.5}, 0.0)]
        ['a', 'c', 'g']
    """
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
