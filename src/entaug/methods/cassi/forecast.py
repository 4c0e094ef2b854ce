"""Estimation of the scores of candidates, so that most of them need not be scored by the masked language model.

The score of a sub-word of a candidate is expected to be near its score in the sentence that it comes from. The
constants were estimated on 40 pairs of WNUT-17 with MPNet. At the boundary of an exchange the score falls by 2 on
average, and by a third of that one token further. Its standard deviation is 2.6 at the boundary, half of that one token
further, and up to 0.45 elsewhere, less for sub-words that are predicted with certainty. A word that occurs a second
time becomes much more likely; if one of two occurrences is removed, the other becomes less likely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from entaug.backends.protocols import MaskedLM
from entaug.core.alignment import align_subwords, detokenize
from entaug.core.data import Sentence
from entaug.methods.cassi.subtrees import Candidate
from entaug.metrics.likelihood import CandidateSet

__all__ = ["ScoreForecaster"]

_DEFAULT_SCORE = -3.0  # for sub-words that the source does not have
_DROP, _DROP_DECAY = 2.0, 0.35
_JOINT_DEVIATION, _JOINT_DECAY = 2.6, 0.5
_MAX_DEVIATION = 0.45


@dataclass
class ScoreForecaster:
    """Adds the expected scores of sub-words to candidates."""

    masked_lm: MaskedLM
    scores: dict[bytes, list[list[float]]] = field(default_factory=dict)

    def forecast(
        self, pairs: Sequence[tuple[Sequence[Sentence], Sequence[Candidate], CandidateSet]]
    ) -> Iterator[CandidateSet]:
        """Forecast the scores of candidates."""
        self._score_sources(source for sources, _, _ in pairs for source in sources)
        pieces = iter(
            self.masked_lm.token_offsets([text for _, _, candidate_set in pairs for text in candidate_set.texts])
        )
        for sources, candidates, candidate_set in pairs:
            offsets = [next(pieces) for _ in candidates]
            if not all(any(end for _, end in of_text) or len(of_text) < 2 for of_text in offsets):
                yield candidate_set
                continue
            forecasts = [self._forecast_one(c, o, sources) for c, o in zip(candidates, offsets, strict=True)]
            expected, spread = zip(*forecasts, strict=True)
            yield candidate_set._replace(expected=expected, spread=spread)

    def _score_sources(self, sentences: Iterable[Sentence]) -> None:
        """Score the sub-words of unchanged sentences."""
        new = {key: s for s in sentences if (key := s.fingerprint()) not in self.scores}
        sources = [new[key] for key in sorted(new)]
        texts = [detokenize(s.tokens, s.spaces) for s in sources]
        values = self.masked_lm.token_log_probs([(text, None) for text in texts])
        for sentence, offsets, of_text in zip(sources, self.masked_lm.token_offsets(texts), values, strict=True):
            by_token: list[list[float]] = [[] for _ in sentence.tokens]
            tokens = align_subwords(offsets, sentence.tokens, sentence.spaces)
            for token, value in zip(tokens, of_text.tolist(), strict=True):
                by_token[token].append(value)
            self.scores[sentence.fingerprint()] = by_token

    def _forecast_one(
        self, candidate: Candidate, offsets: Sequence[tuple[int, int]], sources: Sequence[Sentence]
    ) -> tuple[list[float], list[float]]:
        """Return the expected score of each sub-word of a candidate, and its standard deviation."""
        sentence, joints, origins = candidate.sentence, candidate.new_span, candidate.origins()
        counts = Counter(map(str.lower, sentence.tokens))
        source_counts = [Counter(map(str.lower, source.tokens)) for source in sources]
        source_scores = [self.scores[source.fingerprint()] for source in sources]
        expected, spread = [], []
        subword, previous = 0, -1
        for token in align_subwords(offsets, sentence.tokens, sentence.spaces):
            subword = subword + 1 if token == previous else 0
            previous = token
            source, position = origins[token]
            of_token = source_scores[source][position]
            score = of_token[subword] if subword < len(of_token) else _DEFAULT_SCORE
            distance = min(min(abs(token - joint), abs(token + 1 - joint)) for joint in joints)
            deviation = _MAX_DEVIATION * min(1.0, 0.25 - score / 2) + _JOINT_DEVIATION * _JOINT_DECAY**distance
            word = sentence.tokens[token].lower()
            if counts[word] > source_counts[source][word]:
                score, deviation = 0.6 * score, max(1.0, -score / 2)
            elif counts[word] < source_counts[source][word]:
                score, deviation = score - 1.0, 4 * deviation
            expected.append(score - _DROP * _DROP_DECAY**distance)
            spread.append(deviation)
        return expected, spread
