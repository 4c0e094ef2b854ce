"""The choice among several candidates for a new sentence: the one that reads best and stays near its source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge

from entaug.backends.component import Component
from entaug.backends.protocols import CausalLM, Encoder
from entaug.config.params import construct, parse_assignments
from entaug.core.data import Sentence
from entaug.errors import ParameterError
from entaug.metrics.likelihood import as_text, variant_log_probs

_DIGITS = 3  # of a score: kernels may round further ones differently for other batches


@dataclass(kw_only=True, eq=False)
class CandidateScorer(Component):
    """Score of a candidate: the mean log-likelihood of its tokens, and the nearness to its source.

    The likelihood alone drifts to what is frequent; the cosine of sentence vectors holds it at the topic of the source.
    A score depends on the candidate and its source alone.

    Args:
        nearness: the weight of the cosine against the log-likelihood per token, in nats; 0 for the likelihood alone.
        margin: the maximum decrease of the log-likelihood per token against the source, in nats; candidates below it
            are refused; none for no limit.
        causal_lm: a `CausalLM`, or the name of one.
        encoder: an `Encoder`, or the name of one; not used with ``nearness=0``.

    Example:
        >>> from helpers.fakes import FakeCausalLM  # tests/helpers of entaug
        >>> gold = Sentence("Rome shines".split())
        >>> new = [Sentence("Rome burns".split()), Sentence("Rome sleeps".split())]
        >>> scorer = CandidateScorer(nearness=0, causal_lm=FakeCausalLM()).load()
        >>> scorer.scores([(gold, new)])
        [[-7.513, -9.116]]
    """

    name: ClassVar[str] = "likelihood"

    nearness: Annotated[float, Ge(0)] = 2.0
    margin: float | None = None
    causal_lm: CausalLM | str = "smollm2"
    encoder: Encoder | str = "minilm"
    causal_lm_: CausalLM = field(init=False, repr=False)
    encoder_: Encoder = field(init=False, repr=False)

    def _uses_backend(self, kind: str) -> bool:
        return kind != "encoder" or self.nearness > 0

    def _option(self, kind: str) -> str:
        return f"`choice='{self.name}:{kind}=NAME'`"

    @property
    def signature(self) -> str:
        """The parameters for provenance, with the full names of loaded models."""
        return self._spec(loaded=True)

    def scores(self, groups: Sequence[tuple[Sentence, Sequence[Sentence]]]) -> list[list[float]]:
        """Return the scores of the candidates of each source, the highest for the best; minus infinity refuses one."""
        scores = []
        for source, candidates in groups:
            texts = list(map(as_text, candidates))
            known = [] if self.margin is None else [as_text(source)]
            likelihood = [
                float(values.mean()) if len(values) else 0.0
                for values in variant_log_probs([*known, *texts], self.causal_lm_)
            ]
            minimum = likelihood.pop(0) - self.margin if self.margin is not None else -math.inf
            nearness = self._nearness(as_text(source), texts)
            scores.append(
                [
                    round(one + other, _DIGITS) if round(one - minimum, _DIGITS) >= 0 else -math.inf
                    for one, other in zip(likelihood, nearness, strict=True)
                ]
            )
        return scores

    def _nearness(self, source: str, texts: Sequence[str]) -> list[float]:
        if not (self.nearness and texts):
            return [0.0] * len(texts)
        vectors = self.encoder_.sentence_vectors([source, *texts])
        return [self.nearness * float(value) for value in vectors[1:] @ vectors[0]]


def create_scorer(scorer: str | CandidateScorer | None) -> CandidateScorer:
    """Create a scorer from an instance or its text form, ``likelihood:nearness=1``."""
    if isinstance(scorer, CandidateScorer):
        return scorer
    name, _, assignments = (scorer or CandidateScorer.name).strip().partition(":")
    if name != CandidateScorer.name:
        raise ParameterError(f"there is no scorer {name!r}", remedy="write likelihood, or likelihood:nearness=1")
    return construct(
        CandidateScorer, name, parse_assignments(CandidateScorer, name, filter(None, assignments.split(",")))
    )
