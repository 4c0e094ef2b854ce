"""Sentences with the labels of a teacher, and which of them to keep."""

from __future__ import annotations

import contextlib
import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Literal, NamedTuple

from entaug.backends.protocols import Tagger
from entaug.core.data import Provenance, Sentence
from entaug.errors import ParameterError


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
