"""What methods share that fine-tune a generator on the gold sentences and write new ones with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from entaug.alignment import CorpusTokenizer, detokenize
from entaug.augmenters.contracts import Rejection, RunStatistics
from entaug.augmenters.generative.trainable import TrainableAugmenter
from entaug.backends.protocols import Generator
from entaug.data import Edit, Mention, Sentence
from entaug.params import PositiveFloat, PositiveInt, PositiveShare
from entaug.provenance import Provenance
from entaug.spacing import infer_spaces

__all__ = ["ALIKE", "COPIED", "UNFINISHED", "GenerativeAugmenter", "Words", "likeness", "rewritten"]

ALIKE = Rejection("too much like its source")
COPIED = Rejection("a sentence of the corpus again")
UNFINISHED = Rejection("no text that came to an end within the limits of the model and of max_new_tokens")

_MANY = 0.5  # share of what was written that is copies, from which on a user is told


@dataclass(kw_only=True, eq=False)
class GenerativeAugmenter(TrainableAugmenter):
    """Base of the methods with a generator.

    Args:
        generator: a `Generator`, or the name of one (starter: smollm2).
        max_new_tokens: how many sub-words a new sentence may have; never more than about twice those of the longest learned.
        temperature: for sampling, above 1 for more variety, below for less.
        constrained: whether a text may not end before all that it must hold stands in it, nor hold known mentions besides
            (constrained decoding; starter: yes). A small generator forgets much and brings in what it learned; the
            papers drop such texts.
        max_similarity: a text whose words agree with its source's by this share or more is dropped.
    """

    generator: Generator | str | None = None
    max_new_tokens: PositiveInt = 128
    temperature: PositiveFloat = 0.8
    constrained: bool | None = None
    max_similarity: PositiveShare = 0.95
    generator_: Generator = field(init=False, repr=False)

    def advice(self, tally: RunStatistics) -> list[str]:
        """See `Augmenter.advice`."""
        written = tally.accepted + tally.rejected.total()
        copied = tally.rejected[COPIED.reason]
        if written and copied > _MANY * written:
            told = f"{copied} of {written} texts were sentences of the corpus again"
            return [f"{told}: the generator has learned them by heart; try fewer epochs or a lower learning_rate"]
        return []


class Words:
    """Texts from the sentences of a corpus, and back: tokens as the corpus has them.

    Where the corpus tokenises the words of a mention in a way that its habits do not tell, they are put right.

    Args:
        gold: the corpus.
        mentioned: runs of tokens that stand in mentions.
    """

    def __init__(self, gold: Sequence[Sentence], mentioned: Sequence[tuple[str, ...]]) -> None:
        self._tokenizer = CorpusTokenizer(sentence.tokens for sentence in gold)
        self._right: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        for words in dict.fromkeys(mentioned):
            text = detokenize(words)
            # How they are split depends on what stands around them.
            for before, after, around in (("", "", 0), ("so ", " so", 1), ("so ", ", so", 2)):
                split = tuple(self._tokenizer(f"{before}{text}{after}"))
                split = split[bool(before) : len(split) - around]
                if split != words and split:
                    self._right.setdefault(split[0], []).append((split, words))
        for first, found in self._right.items():
            self._right[first] = sorted(dict.fromkeys(found), key=lambda pair: -len(pair[0]))
        self._contents = {detokenize(sentence.tokens) for sentence in gold}

    def tokens(self, text: str) -> tuple[str, ...]:
        """The tokens of a text."""
        split = self._tokenizer(text)
        made: list[str] = []
        place = 0
        while place < len(split):
            for wrong, words in self._right.get(split[place], ()):
                if tuple(split[place : place + len(wrong)]) == wrong:
                    made += words
                    place += len(wrong)
                    break
            else:
                made.append(split[place])
                place += 1
        return tuple(made)

    def holds(self, tokens: tuple[str, ...]) -> bool:
        """Whether a sentence of the corpus reads exactly so."""
        return detokenize(tokens) in self._contents


def likeness(one: Sequence[str], other: Sequence[str]) -> float:
    """The share of words that two texts have in the same order: 1 where they are the same.

    Example:
        >>> likeness("a b c d".split(), "a b c e".split())
        0.75
    """
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def rewritten(
    source: Sentence, tokens: Sequence[str], mentions: Sequence[Mention], told: Mapping[str, object]
) -> Sentence:
    """A source with all its tokens replaced."""
    spaces = None if source.spaces is None else infer_spaces(tokens)[:-1]
    made = source.edit([Edit(0, len(source), tuple(tokens), tuple(mentions), spaces)])
    return made.with_(provenance=Provenance.from_dict(told))
