"""MulDA: sentences and labels sampled together from a pretrained language model, in one or more languages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

from entaug.config.params import PositiveFloat, PositiveInt
from entaug.config.presets import read_presets
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.methods.base import NO_CANDIDATE, MethodInfo, Rejection, Request
from entaug.methods.daga import LabelledTextAugmenter
from entaug.methods.shared.generated_text import (
    distinct_sentences,
    join_parts,
    label_tokens,
    label_transitions,
    parse_tagged,
    split_at_labels,
    tag_tokens,
    unwanted_labels,
)
from entaug.methods.shared.generative import GenerativeAugmenter, TextPlan

_UNKNOWN_MENTION = Rejection("a mention that the training sentences do not have")


@dataclass(kw_only=True, eq=False)
class MulDA(LabelledTextAugmenter, GenerativeAugmenter):
    """Fine-tune a pretrained language model on labelled sentences in one or more languages and sample new ones.

    Sentences are linearized as for DAGA, and the model is trained to generate them from the name of their language. If
    the corpus has sentences in several languages (field ``language``, as in JSON Lines), it is trained on all of them
    together. A sampled sentence is accepted if its labels are consistent, it has a mention, and it is not a sentence of
    the corpus.

    A small model that has seen few sentences puts label tokens before any word. Therefore the starter preset constrains
    decoding: for each text as many mentions are drawn as a random training sentence has, of the same types, from all
    training sentences in the language. The model writes the words around them, and no other label token. Without the
    constraint, as in the paper, it writes labels and mentions itself.

    New sentences are conditioned only on the language of a source sentence.

    Args:
        language: the language of sentences without a field ``language``; none for English.
        top_k: the number of most likely sub-words to sample from.
        preset: ``"starter"``: SmolLM2, at most 10 epochs; ``"paper"``: mBART-50-large and all settings of the paper
            (``entaug list methods mulda``), unless they are given.

    Example:
        >>> from entaug import Mention, Sentence
        >>> from helpers.fakes import FakeGenerator  # tests/helpers of entaug
        >>> gold = [Sentence("Ada sings".split(), [Mention("PER", [(0, 1)])])]
        >>> method = MulDA(generator=FakeGenerator(["<B-PER> Bo", "runs"]), unlisted_mentions="keep").fit(gold)
        >>> method.trained_.learned[0]
        ('en', '<B-PER> Ada sings')
    """

    language: str | None = "en"
    top_k: PositiveInt = 50
    temperature: PositiveFloat = 1.0
    preset: Literal["starter", "paper"] = "starter"

    presets = read_presets("mulda")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="mulda",
        long_name="multilingual-data-augmentation",
        summary="labelled sentences sampled from a pretrained language model fine-tuned on the corpus",
        paper="Liu et al. 2021, MulDA: A Multilingual Data Augmentation Framework for Low-Resource Cross-Lingual NER",
        keeps_mentions=False,
        nested=False,
        discontinuous=False,
        needs_fit=True,
        needs_mentions=True,
        writes_words=True,
        wrong_labels=(1, 25),
        unconditioned=True,
        needs=("generator",),
        cost="fine-tuning a generator (minutes per hundred sentences on a CPU), then seconds per sentence",
    )

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = self._learn_texts(distinct_sentences(corpus, self._language))
        labels = {mention.label for sentence in gold for mention in sentence.mentions}
        self._markers = label_tokens(labels)
        self._transitions = label_transitions(labels)
        self._learn_mentions(gold)
        pairs = [(self._language(s), join_parts(chain.from_iterable(tag_tokens(s)), self._markers)) for s in gold]
        self.trained_ = None
        if self._markers:
            self.trained_ = self._train(self.generator_, pairs, pairs, self._markers, **self._languages(gold))

    def _learn_mentions(self, gold: Sequence[Sentence]) -> None:
        """Collect the mentions that constrained texts may have."""
        self._label_lists: defaultdict[str, list[list[str]]] = defaultdict(list)  # of sentences, by language
        # Tagged mentions, by language and label.
        self._pools: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._printed: dict[tuple[str, ...], tuple[str, ...]] = {}  # words of mentions as in running text, as in gold
        for sentence in gold:
            language = self._language(sentence)
            tagged = tag_tokens(sentence)
            for mention in sentence.mentions:
                parts = chain.from_iterable(tagged[mention.start : mention.end])
                text, pool = join_parts(parts, self._markers), self._pools[language, mention.label]
                pool += [text] if text not in pool else []
                words = sentence.mention_tokens(mention)
                self._printed[mention.label, *(detokenize([word]) for word in words)] = words
            if sentence.mentions:
                self._label_lists[language].append([mention.label for mention in sentence.mentions])
        known = self.texts_.known
        self._unwanted = [*unwanted_labels(gold, self._markers), *(known.texts() if known else ())]

    def _language(self, sentence: Sentence) -> str:
        return super()._language(sentence) or "en"

    def _draw_mentions(self, request: Request) -> list[str]:
        """Draw the mentions of a new sentence; none if no training sentence is in the language of the source."""
        language, rng = self._language(request.sentence), request.rng
        label_lists = self._label_lists.get(language)
        drawn: dict[str, None] = {}
        for label in label_lists[rng.randrange(len(label_lists))] if label_lists else ():
            others = [text for text in self._pools[language, label] if text not in drawn]
            if others:
                drawn[others[rng.randrange(len(others))]] = None
        return list(drawn)

    def _plan(self, request: Request) -> TextPlan | Rejection:
        seed = request.rng.getrandbits(32)
        mentions = self._draw_mentions(request) if self.constrained else []
        if self.trained_ is None or not (mentions or not self.constrained):
            return NO_CANDIDATE
        return TextPlan(request.sentence, self._language(request.sentence), seed, [[text] for text in mentions])

    def _decoding(self) -> dict[str, Any]:
        rules = {} if self.constrained else self._transitions
        return {"strategy": "sample", "num_beams": 1, "top_k": self.top_k, "marker_rules": rules}

    def _read(self, plan: TextPlan, text: str) -> Sentence | Rejection:
        parts: list[str] = []
        for part in split_at_labels(text, self._markers):
            parts += [part] if part in self._markers else self.texts_.tokenize(part.strip())
        parsed = parse_tagged(parts, self._markers)
        if parsed is None or not self.constrained:
            return self._labelled(plan.source, parsed)
        tokens, mentions = list(parsed[0]), parsed[1]
        for mention in mentions:
            printed = (detokenize([token]) for token in tokens[mention.start : mention.end])
            words = self._printed.get((mention.label, *printed))
            if words is None:
                return _UNKNOWN_MENTION
            tokens[mention.start : mention.end] = words
        return self._labelled(plan.source, (tokens, mentions))
