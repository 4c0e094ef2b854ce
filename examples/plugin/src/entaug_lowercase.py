"""A method that another package brings: mentions in lower case, as in messages and search queries."""

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from entaug import Sentence
from entaug.config.params import Probability
from entaug.core.edits import Edit
from entaug.core.rng import sample_positions
from entaug.methods.base import NO_CANDIDATE, Augmenter, MethodInfo, Rejection


@dataclass(kw_only=True, eq=False)
class LowercaseMentions(Augmenter):
    """Write words of mentions in lower case.

    Args:
        p: the probability of each capitalised word of a mention; at least one is changed.
    """

    p: Probability = 0.5

    info: ClassVar[MethodInfo] = MethodInfo(
        name="lowercase",
        long_name="lowercase-mentions",
        summary="words of mentions in lower case",
        paper="none; an example",
        keeps_length=True,
        keeps_order=True,
    )

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        inside = [not outside for outside in sentence.outside_mask()]
        positions = [i for i, token in enumerate(sentence.tokens) if inside[i] and token != token.lower()]
        drawn = [positions[k] for k in sample_positions(rng, len(positions), self.p)]
        return sentence.edit([Edit(i, i + 1, (sentence.tokens[i].lower(),)) for i in drawn]) if drawn else NO_CANDIDATE
