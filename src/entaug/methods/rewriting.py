"""Sentences rewritten by an instruct model, in other words or in another style, with their mentions kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from entaug.backends.instruct import HOW_TO_NAME, InstructModel
from entaug.backends.protocols import Generator
from entaug.config.params import PositiveInt, PositiveShare
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.errors import ParameterError
from entaug.methods.base import MethodInfo, Rejection, Request
from entaug.methods.shared.generated_text import (
    GeneratedTexts,
    KnownMentions,
    distinct_sentences,
    group_mentions,
    match_mentions,
)
from entaug.methods.shared.generative import PromptedAugmenter, Query, TextPlan

_TOO_LONG = Rejection("much longer than its source")


@dataclass(kw_only=True, eq=False)
class Rewriting(PromptedAugmenter):
    """Let an instruct model rewrite sentences in other words, or in another style, and keep their mentions.

    The model is asked by a prompt and never trained. A text is accepted only if it contains each mention of its source
    unambiguously, word for word, and no other known mention; so a mention that was translated, inflected, left out or
    written twice is never accepted. Nested mentions are kept together, and the parts of a discontinuous mention in
    their order.

    Args:
        generator: an `entaug.backends.instruct.InstructModel`, ``http://HOST:PORT/v1#MODEL`` for a model behind a
            server with an OpenAI-compatible interface, ``FILE.gguf``, or ``smollm2-gguf`` to try it.
        style: the style or domain to write in, in your own words, for example ``"a post on social media"``; none for
            other words in the same style.
        max_similarity: the similarity to the source, as a share of common words, from which on texts are rejected.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeInstructModel
        >>> gold = [Sentence("Ada sings well".split(), [Mention("PER", [(0, 1)])])]
        >>> model = FakeInstructModel(answer=lambda request: "What a voice Ada has")
        >>> [new] = Rewriting(generator=model).fit(gold).augment(gold)
        >>> new.tokens, new.mentions
        (('What', 'a', 'voice', 'Ada', 'has'), (Mention(label='PER', spans=((3, 4),)),))
    """

    generator: Generator | InstructModel | str | None = None
    style: str | None = None
    max_similarity: PositiveShare = 0.95
    max_attempts: PositiveInt = 4

    info: ClassVar[MethodInfo] = MethodInfo(
        name="rewrite",
        long_name="prompted-rewriting",
        summary="sentences rewritten in other words or another style by an instruct model, mentions kept",
        paper="Ye et al. 2024, LLM-DA: Data Augmentation via Large Language Models for Few-Shot Named Entity "
        "Recognition; for styles Chen et al. 2022, Style Transfer as Data Augmentation: A Case Study on Named Entity "
        "Recognition",
        needs_fit=True,
        writes_words=True,
        needs=("generator",),
        cost="a request to a language model for each text",
    )

    @property
    def _purpose(self) -> str:
        return "rewrite" if self.style is None else "style"

    def _load(self) -> None:
        if self.generator is None:
            raise ParameterError(f"{self.name} needs an instruct model", parameter="generator", remedy=HOW_TO_NAME)
        super()._load()
        if not self._is_prompted:
            found = f"{self.generator_.name} is a model to fine-tune, and {self.name} needs an instruct model"
            raise ParameterError(found, parameter="generator", remedy=HOW_TO_NAME)

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = sorted(corpus, key=lambda s: s.fingerprint())  # the result does not depend on the order of the corpus
        fragments = [f for sentence in gold for group in group_mentions(sentence) for f in group.fragments]
        self._known = KnownMentions(gold)
        self.texts_ = GeneratedTexts(gold, fragments)
        self._lines = [detokenize(sentence.tokens) for sentence in distinct_sentences(gold)]

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _plan(self, request: Request) -> TextPlan:
        return TextPlan(request.sentence, detokenize(request.sentence.tokens), request.rng.getrandbits(31))

    def _query(self, plan: TextPlan) -> Query:
        examples = Random(plan.seed).sample(self._lines, min(self.num_examples + 1, len(self._lines)))
        names = [" ... ".join(map(detokenize, group.fragments)) for group in group_mentions(plan.source)]
        values = {
            "sentence": plan.text,
            "mentions": ", ".join(f'"{name}"' for name in names) or "none",
            "examples": "\n".join([line for line in examples if line != plan.text][: self.num_examples]),
            "style": self.style or "",
        }
        return Query(values, (), plan.seed)

    def _read(self, plan: TextPlan, text: str) -> Sentence | Rejection:
        source, tokens = plan.source, self.texts_.tokenize(text)
        if len(tokens) > 3 * len(source) + 10:
            return _TOO_LONG
        mentions = match_mentions(tokens, group_mentions(source), self._known)
        details: dict[str, Any] = {"style": self.style} if self.style else {}
        return self._new_sentence(source, tokens, mentions, [source], **details)
