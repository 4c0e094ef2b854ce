"""Filters that use a model: fluency, similarity to the source, and agreement with a tagger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from entaug.backends.protocols import CausalLM, Encoder, MaskedLM, Tagger
from entaug.backends.resolve import is_alias
from entaug.config.params import Probability
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.filters.base import Filter
from entaug.metrics.bertscore import bertscore_among
from entaug.metrics.likelihood import log_likelihood, pseudo_log_likelihood
from entaug.metrics.near_duplicates import similarity

_LESS_FLUENT = "less fluent than its source"
_NOT_FLUENT = "reads badly"


@dataclass(kw_only=True, eq=False)
class Fluency(Filter):
    """Keep sentences whose log-likelihood is near that of their source, or above a threshold.

    The score is the mean log-likelihood over the words that are not punctuation. Sentences of one corpus differ by
    several nats per word; therefore the source is the reference. Rare names lower the score. So do the first words of a
    text, which weigh more in a short text. Short sentences, and sentences with replaced mentions, may therefore be
    fluent and score lower.

    Args:
        margin: the maximum decrease of the log-likelihood against the source, in nats per word; none for no limit.
        min_log_likelihood: the minimum log-likelihood per word; none for no limit.
        scorer: ``"causal"``, one pass per sentence; ``"masked"``, one per sub-word.
        causal_lm: a `CausalLM`, or the name of one; used with ``scorer=causal``.
        masked_lm: a `MaskedLM`, or the name of one; used with ``scorer=masked``.

    Example:
        >>> from helpers.fakes import FakeCausalLM  # tests/helpers of entaug
        >>> gold = Sentence("Rome shines".split())
        >>> new = [Sentence("Rome burns".split()), Sentence("Rome sleeps".split())]
        >>> log_likelihood([gold, *new], FakeCausalLM(), per_word=True).round(1)
        array([-6.5, -7.5, -9.1])
        >>> Fluency(causal_lm=FakeCausalLM(), margin=1.0).fit([gold]).judge(new, [gold, gold])
        [None, 'less fluent than its source']
    """

    name = "fluency"
    summary = "language model score near that of its source, or above a threshold"
    reasons = (_LESS_FLUENT, _NOT_FLUENT)
    without_source = "give only an absolute bound, for example fluency:margin=none,min_log_likelihood=-6"

    margin: float | None = 1.5
    min_log_likelihood: float | None = None
    scorer: Literal["causal", "masked"] = "causal"
    causal_lm: CausalLM | str = "smollm2"
    masked_lm: MaskedLM | str = "mpnet-mlm"
    causal_lm_: CausalLM = field(init=False, repr=False)
    masked_lm_: MaskedLM = field(init=False, repr=False)

    @property
    def needs_source(self) -> bool:
        return self.margin is not None

    def _check(self) -> None:
        if self.margin is None and self.min_log_likelihood is None:
            raise ParameterError("fluency has neither margin nor min_log_likelihood", remedy="set one of them")

    def _uses_backend(self, kind: str) -> bool:
        return kind == f"{self.scorer}_lm"

    def _load(self) -> None:
        super()._load()
        self._source_scores: dict[tuple[tuple[str, ...], tuple[str, ...] | None], float] = {}

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        scores = self._scores(sentences)
        reasons: list[str | None] = [None] * len(sentences)
        if self.min_log_likelihood is not None:
            reasons = [_NOT_FLUENT if score < self.min_log_likelihood else None for score in scores]
        if self.margin is not None:
            known = [source for source in sources if source is not None]
            for i, (score, of_source) in enumerate(zip(scores, self._scores_of_sources(known), strict=True)):
                if reasons[i] is None and score < of_source - self.margin:
                    reasons[i] = _LESS_FLUENT
        return reasons

    def _scores_of_sources(self, sources: Sequence[Sentence]) -> list[float]:
        """Return the scores of sources; each source is scored only once."""
        new = {key: source for source in sources if (key := (source.tokens, source.spaces)) not in self._source_scores}
        self._source_scores.update(zip(new, self._scores(list(new.values())), strict=True))
        return [self._source_scores[source.tokens, source.spaces] for source in sources]

    def _scores(self, sentences: Sequence[Sentence]) -> list[float]:
        if not sentences:
            return []
        if self.scorer == "causal":
            return list(map(float, log_likelihood(sentences, self.causal_lm_, per_word=True)))
        return list(map(float, pseudo_log_likelihood(sentences, self.masked_lm_, per_word=True)))


_TOO_DIFFERENT = "too different from its source"
_TOO_SIMILAR = "too similar to its source"


@dataclass(kw_only=True, eq=False)
class Similarity(Filter):
    """Keep sentences that are neither too different from their source nor too similar to it.

    Args:
        metric: ``"tokens"``, the share of common tokens in the same order (see `entaug.metrics.near_duplicates`);
            ``"bertscore"``, BERTScore F1; ``"vectors"``, the cosine of sentence vectors.
        min_similarity: the minimum similarity; none for no limit.
        max_similarity: the maximum similarity; none for no limit.
        encoder: an `Encoder`, or the name of one; not used with ``metric=tokens``.

    Example:
        >>> gold = Sentence("Ada left Rome in May".split())
        >>> new = [Sentence(text.split()) for text in ("Ada left Oslo in May", "Bo stays")]
        >>> Similarity(min_similarity=0.5).fit([gold]).judge(new, [gold, gold])
        [None, 'too different from its source']
    """

    name = "similarity"
    summary = "neither too different from its source nor too similar to it"
    reasons = (_TOO_DIFFERENT, _TOO_SIMILAR)

    metric: Literal["tokens", "bertscore", "vectors"] = "tokens"
    min_similarity: Probability | None = 0.5
    max_similarity: Probability | None = None
    encoder: Encoder | str = "minilm"
    encoder_: Encoder = field(init=False, repr=False)

    @property
    def needs_source(self) -> bool:
        return True

    def _check(self) -> None:
        low, high = self.min_similarity, self.max_similarity
        if low is not None and high is not None and low > high:
            raise ParameterError(f"min_similarity must not be above max_similarity, but {low} is above {high}")

    def _uses_backend(self, kind: str) -> bool:
        return self.metric != "tokens"

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        known = [source for source in sources if source is not None]
        low = -1.0 if self.min_similarity is None else self.min_similarity
        high = 2.0 if self.max_similarity is None else self.max_similarity
        values = self._similarities(sentences, known)
        return [_TOO_DIFFERENT if value < low else _TOO_SIMILAR if value > high else None for value in values]

    def _similarities(self, sentences: Sequence[Sentence], sources: Sequence[Sentence]) -> list[float]:
        if self.metric == "tokens":
            return [similarity(sentence, source) for sentence, source in zip(sentences, sources, strict=True)]
        n = len(sentences)
        if self.metric == "bertscore":
            pairs = [[n + i] for i in range(n)] + [[] for _ in sources]
            scores = bertscore_among([*sentences, *sources], pairs, self.encoder_)
            return [float(of_sentence[0]) for of_sentence in scores[:n]]
        texts = [detokenize(sentence.tokens, sentence.spaces) for sentence in (*sentences, *sources)]
        vectors = self.encoder_.sentence_vectors(texts)
        return list(map(float, (vectors[:n] * vectors[n:]).sum(axis=1)))


_DISAGREES = "the tagger predicts other mentions"


@dataclass(kw_only=True, eq=False)
class Consistency(Filter):
    """Keep sentences whose mentions are also predicted by a tagger trained on the training sentences.

    The published code of ACLM has this filter; its paper does not mention it.

    Args:
        tagger: a `Tagger` or the name of one, which is trained, with parameters of it and of its training if there are
            any (``linear:encoder=mpnet;epochs=20``); or a folder with a saved one, used as it is.
        min_confidence: the minimum confidence of the tagger in a sentence's mentions (see `Tagger.confidences`); none
            to require that it predicts exactly these mentions.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeTagger
        >>> rome = Sentence(["Rome", "burns"], [Mention("LOC", [(0, 1)])])
        >>> other = Sentence(["Rome", "shines"], [Mention("LOC", [(0, 1)])])
        >>> Consistency(tagger=FakeTagger()).fit([rome]).judge([rome, other], [rome, rome])
        [None, 'the tagger predicts other mentions']
    """

    name = "consistency"
    summary = "a tagger trained on the training sentences predicts the same mentions"
    reasons = (_DISAGREES,)

    tagger: Tagger | str = "linear"
    min_confidence: Probability | None = None
    tagger_: Tagger = field(init=False, repr=False)

    def _fit(self, gold: Sequence[Sentence]) -> None:
        if not any(sentence.mentions for sentence in gold):
            raise InputError(
                "the training sentences have no mentions, which the consistency filter needs",
                remedy="remove the filter",
            )
        is_trained = isinstance(self.tagger, str) and not is_alias("tagger", self.tagger)
        self._trained: Tagger = self.tagger_ if is_trained else self.tagger_.fit(gold)

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        if self.min_confidence is None:
            predictions = self._trained.predict(sentences)
            # A tagger of another library may have no counterpart of some labels: of these it says nothing.
            known = getattr(self._trained, "known_labels", None)
            agrees = [
                [m for m in a.mentions if known is None or m.label in known] == list(b.mentions)
                for a, b in zip(sentences, predictions, strict=True)
            ]
        else:
            agrees = [confidence >= self.min_confidence for confidence in self._trained.confidences(sentences)]
        return [None if agreed else _DISAGREES for agreed in agrees]
