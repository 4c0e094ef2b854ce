"""Sentences with the labels of a teacher, and which of them to keep."""

from __future__ import annotations

import contextlib
import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Literal, NamedTuple

from entaug.backends.protocols import Tagger
from entaug.data import Sentence
from entaug.errors import ParameterError
from entaug.provenance import Provenance

__all__ = ["PseudoLabelled", "balanced", "label_sentences", "mask_words", "ranked", "sentence_confidence"]

_DIGITS = 4


class PseudoLabelled(NamedTuple):
    """A sentence with the labels of a teacher.

    Args:
        sentence: the sentence with its mentions, the probabilities of tags or relations where the teacher gives some,
            and as provenance the confidence and the id of the unlabelled sentence.
        confidence: the geometric mean, over its words, of the probability of the tag; from 0 to 1.
    """

    sentence: Sentence
    confidence: float


def sentence_confidence(probabilities: Any) -> float:
    """Compute the confidence of a teacher in the labels of a sentence.

    Args:
        probabilities: the probabilities of its tags or relations, see `label_sentences`.

    Returns:
        The geometric mean, over its words, of the probability of the likeliest tag, or of the least certain relation.
    """
    logs = [math.log(max(float(x), 1e-12)) for x in probabilities.confidences]
    return math.exp(math.fsum(logs) / len(logs))


def mask_words(probabilities: Any, min_confidence: float) -> Any:
    """Mask the words whose likeliest tag is less probable than a threshold.

    Args:
        probabilities: the probabilities of the tags or relations of a sentence, see `label_sentences`.
        min_confidence: the threshold.

    Returns:
        The probabilities, with weights 0 for these words and 1 for the others; unchanged where none is masked.

    Example:
        >>> from entaug.tag_probabilities import TagProbabilities
        >>> mask_words(TagProbabilities(["O", "B-LOC"], [[0.9, 0.1], [0.4, 0.6]]), 0.7).weights.tolist()
        [1.0, 0.0]
    """
    weights = [float(confidence >= min_confidence) for confidence in probabilities.confidences]
    if all(weights):
        return probabilities
    return type(probabilities).from_dict({**probabilities.to_dict(), "weights": weights})


def label_sentences(
    sentences: Sequence[Sentence], tagger: Tagger, *, min_token_confidence: float = 0.0, is_flat: bool = True
) -> list[PseudoLabelled]:
    """Label sentences with a trained tagger.

    The sentences get the probabilities of relations between words if the tagger gives these (``w2ner``, see
    `entaug.taggers.relations`), else those of tags if mentions are flat, else none.

    Args:
        sentences: the sentences; their own mentions and further fields are ignored.
        tagger: the tagger.
        min_token_confidence: words whose likeliest tag is less probable are masked, see `mask_words`.
        is_flat: whether the mentions of the training sentences are flat.

    Returns:
        The sentences in the same order.

    Raises:
        ParameterError: words are to be masked, and the tagger gives no probabilities.
    """
    plain = [s.with_(mentions=(), layout={}, meta={}, columns={}, provenance=None) for s in sentences]
    labelled = []
    probabilities_of_all = _probabilities(tagger, plain, is_flat)
    if probabilities_of_all is None:
        if min_token_confidence:
            raise ParameterError(
                "min_token_confidence needs probabilities, which this teacher does not give to such mentions",
                remedy="use min_confidence, or the tagger w2ner",
            )
        predicted = tagger.predict(plain)
        for sentence, confidence in zip(predicted, tagger.confidences(predicted), strict=True):
            labelled.append(PseudoLabelled(_signed(sentence, confidence), confidence))
        return labelled
    for sentence, probabilities in zip(plain, probabilities_of_all, strict=True):
        confidence = sentence_confidence(probabilities)
        masked = mask_words(probabilities, min_token_confidence)
        # The tags of an averaged ensemble often do not fit together; relations always do.
        mentions = masked.mentions()
        with_labels = masked.attach_to(sentence.with_(mentions=mentions))
        labelled.append(PseudoLabelled(_signed(with_labels, confidence), confidence))
    return labelled


def _probabilities(tagger: Tagger, sentences: Sequence[Sentence], is_flat: bool) -> Sequence[Any] | None:
    """The probabilities of relations or of tags; None if the tagger gives none for such mentions."""
    relation_probabilities = getattr(tagger, "relation_probabilities", None)
    if relation_probabilities is not None:
        with contextlib.suppress(ParameterError):  # an ensemble of taggers without relations
            relations: Sequence[Any] = relation_probabilities(sentences)
            return relations
    if is_flat:
        with contextlib.suppress(ParameterError):  # a tagger that predicts mentions only, such as seq2seq
            return tagger.tag_probabilities(sentences)
    return None


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
