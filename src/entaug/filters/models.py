"""Filters with a model behind them: how well a sentence reads, and how like its source it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from entaug.alignment import detokenize
from entaug.backends.protocols import CausalLM, Encoder, MaskedLM
from entaug.backends.resolve import resolve
from entaug.data import Sentence
from entaug.errors import ParameterError
from entaug.filters.base import Filter, check_share, is_number
from entaug.scoring.bertscore import bertscore_among
from entaug.scoring.likelihood import log_likelihood, pseudo_log_likelihood
from entaug.scoring.near_duplicates import similarity

__all__ = ["Fluency", "Similarity"]

_SCORERS = ("causal", "masked")
_LESS_FLUENT = "reads worse than its source"
_NOT_FLUENT = "reads badly"


@dataclass(kw_only=True, eq=False)
class Fluency(Filter):
    """Keep what a language model finds about as likely as its source, or likely enough.

    What is compared is the mean over the words that are not punctuation. Sentences of one corpus differ by several nats
    a word among themselves; that is why the source is the measure. A rare name in place of a known one costs too, and
    so do the first words of a text, which weigh more in a short one: exchanged mentions of few words and sentences cut
    down may read well and score worse.

    Args:
        margin: by how many nats a word a sentence may be less likely than its source; none for any.
        least: the least that its log-likelihood per word must be; none for any.
        scorer: ``"causal"``, one pass a sentence; ``"masked"``, one a sub-word.
        causal_lm: a `CausalLM`, or the name of one; used with ``scorer=causal``.
        masked_lm: a `MaskedLM`, or the name of one; used with ``scorer=masked``.

    Example:
        >>> from entaug.backends.fakes import FakeCausalLM
        >>> gold = Sentence("Rome shines".split())
        >>> made = [Sentence("Rome burns".split()), Sentence("Rome sleeps".split())]
        >>> log_likelihood([gold, *made], FakeCausalLM(), per_word=True).round(1)
        array([-6.5, -7.5, -9.1])
        >>> Fluency(causal_lm=FakeCausalLM(), margin=1.0).fit([gold]).judge(made, [gold, gold])
        [None, 'reads worse than its source']
    """

    filter_name = "fluency"
    summary = "a language model finds it about as likely as its source, or likely enough"
    reasons = (_LESS_FLUENT, _NOT_FLUENT)
    without_source = "give an absolute bound alone, as in fluency:margin=none,least=-6"

    margin: float | None = 1.5
    least: float | None = None
    scorer: str = "causal"
    causal_lm: CausalLM | str = "smollm2"
    masked_lm: MaskedLM | str = "mpnet-mlm"

    @property
    def needs_source(self) -> bool:
        """See `Filter.needs_source`."""
        return self.margin is not None

    def _check(self) -> None:
        for name in ("margin", "least"):
            value = getattr(self, name)
            if value is not None and not is_number(value):
                raise ParameterError(f"{name} must be a number, or none, not {value!r}")
        if self.margin is None and self.least is None:
            raise ParameterError("fluency has nothing to judge by", remedy="give margin or least")
        if self.scorer not in _SCORERS:
            raise ParameterError(f"scorer must be one of {', '.join(_SCORERS)}, not {self.scorer!r}")

    def _load(self) -> None:
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...] | None], float] = {}
        if self.scorer == "causal":
            self.causal_lm_: CausalLM = resolve("causal_lm", self.causal_lm)
        else:
            self.masked_lm_: MaskedLM = resolve("masked_lm", self.masked_lm)

    def _judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        scores = self._scores(made)
        found: list[str | None] = [None] * len(made)
        if self.least is not None:
            found = [_NOT_FLUENT if score < self.least else None for score in scores]
        if self.margin is not None:
            given = [source for source in sources if source is not None]
            for i, (score, home) in enumerate(zip(scores, self._scores_of_sources(given), strict=True)):
                if found[i] is None and score < home - self.margin:
                    found[i] = _LESS_FLUENT
        return found

    def _scores_of_sources(self, sources: Sequence[Sentence]) -> list[float]:
        """Each source is scored once, however many copies it has."""
        new = {key: source for source in sources if (key := (source.tokens, source.spaces)) not in self._known}
        self._known.update(zip(new, self._scores(list(new.values())), strict=True))
        return [self._known[source.tokens, source.spaces] for source in sources]

    def _scores(self, sentences: Sequence[Sentence]) -> list[float]:
        if not sentences:
            return []
        if self.scorer == "causal":
            return list(map(float, log_likelihood(sentences, self.causal_lm_, per_word=True)))
        return list(map(float, pseudo_log_likelihood(sentences, self.masked_lm_, per_word=True)))


_BY = ("tokens", "bertscore", "vectors")
_UNLIKE = "too unlike its source"
_LIKE = "too like its source"


@dataclass(kw_only=True, eq=False)
class Similarity(Filter):
    """Keep what is neither too unlike its source nor too like it.

    Args:
        by: ``"tokens"``, the share of tokens in the same order (see `entaug.scoring.near_duplicates`); ``"bertscore"``, BERTScore F1;
            ``"vectors"``, the cosine of sentence vectors.
        low: the least similarity that is kept; none for any.
        high: the greatest that is kept; none for any.
        encoder: an `Encoder`, or the name of one; not used with ``by=tokens``.

    Example:
        >>> gold = Sentence("Ada left Rome in May".split())
        >>> made = [Sentence(text.split()) for text in ("Ada left Oslo in May", "Bo stays")]
        >>> Similarity(low=0.5).fit([gold]).judge(made, [gold, gold])
        [None, 'too unlike its source']
    """

    filter_name = "similarity"
    summary = "neither too unlike its source nor too like it"
    reasons = (_UNLIKE, _LIKE)

    by: str = "tokens"
    low: float | None = 0.5
    high: float | None = None
    encoder: Encoder | str = "minilm"

    @property
    def needs_source(self) -> bool:
        """See `Filter.needs_source`."""
        return True

    def _check(self) -> None:
        if self.by not in _BY:
            raise ParameterError(f"by must be one of {', '.join(_BY)}, not {self.by!r}")
        for name in ("low", "high"):
            check_share(name, getattr(self, name))
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ParameterError(f"low must not be above high, as {self.low} is above {self.high}")

    def _load(self) -> None:
        if self.by != "tokens":
            self.encoder_: Encoder = resolve("encoder", self.encoder)

    def _judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        given = [source for source in sources if source is not None]
        low = -1.0 if self.low is None else self.low
        high = 2.0 if self.high is None else self.high
        values = self._values(made, given)
        return [_UNLIKE if value < low else _LIKE if value > high else None for value in values]

    def _values(self, made: Sequence[Sentence], sources: Sequence[Sentence]) -> list[float]:
        if self.by == "tokens":
            return [similarity(one, source) for one, source in zip(made, sources, strict=True)]
        if self.by == "bertscore":
            pairs = [[len(made) + i] for i in range(len(made))] + [[] for _ in sources]
            found = bertscore_among([*made, *sources], pairs, self.encoder_)
            return [float(scores[0]) for scores in found[: len(made)]]
        vectors = self.encoder_.sentence_vectors([_text(sentence) for sentence in (*made, *sources)])
        return list(map(float, (vectors[: len(made)] * vectors[len(made) :]).sum(axis=1)))


def _text(sentence: Sentence) -> str:
    return detokenize(sentence.tokens, sentence.spaces)
