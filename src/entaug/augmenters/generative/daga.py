"""DAGA and MulDA: sentences and labels generated together by a language model of labelled text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, ClassVar, Literal

from entaug.augmenters.base import NO_CANDIDATE, MethodInfo, Rejection, Request
from entaug.augmenters.generative.base import (
    UNFINISHED,
    GeneratedTexts,
    GenerativeAugmenter,
    distinct_sentences,
    replace_tokens,
)
from entaug.augmenters.generative.linearization import (
    INVALID_LABELS,
    join_parts,
    label_token,
    label_tokens,
    label_transitions,
    parse_tagged,
    split_at_labels,
    tag_tokens,
)
from entaug.augmenters.generative.mention_matching import KnownMentions
from entaug.augmenters.generative.trainable import TrainableAugmenter
from entaug.augmenters.paper_presets import DAGA_PAPER, MULDA_PAPER
from entaug.backends.protocols import Generator, TokenLM
from entaug.data import Mention, Sentence
from entaug.errors import ParameterError
from entaug.params import Check, PositiveFloat, PositiveInt
from entaug.presets import ONLY_IF_SET
from entaug.tags import SCHEMES, canonical_scheme

__all__ = ["DAGA", "MulDA"]

_NO_MENTION = Rejection("no mention")
_UNKNOWN_WORD = Rejection("a word unknown to the model")

UNK, NUM = "<unk>", "<num>"
_NUMBER = re.compile(r"[+-]?\d[\d.,:/-]*")
_MIN_WORDS_OF_SUFFIX = (
    5  # minimum number of words seen once that share a suffix for the suffix to be part of the placeholder
)

TagScheme = Annotated[str, Check(lambda name: bool(canonical_scheme(name)), f"one of {', '.join(SCHEMES)}")]


@dataclass(kw_only=True, eq=False)
class _LabelledTextAugmenter(TrainableAugmenter):
    """Base class of methods that generate labelled text without a source.

    Args:
        unlisted_mentions: ``"drop"`` or ``"keep"`` texts that contain a known mention of the corpus without a label.
    """

    unlisted_mentions: Literal["drop", "keep"] = "drop"

    def _learn_texts(self, gold: Sequence[Sentence], scheme: str = "IOB2") -> list[Sentence]:
        """Prepare the checks of generated texts; return the sentences without tokens that look like labels."""
        fragments = [s.tokens[a:b] for s in gold for m in s.mentions for a, b in m.spans]
        known = KnownMentions(gold) if self.unlisted_mentions == "drop" else None
        self.texts_ = GeneratedTexts(gold, fragments, known)
        labels = {label_token(tag) for s in gold for tag in s.iob(scheme)}
        usable = [s for s in gold if not any(t in labels or t == NUM or t.startswith(UNK) for t in s.tokens)]
        self.num_excluded_ = len(gold) - len(usable)
        return usable

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        if not self.num_excluded_:
            return super().notes()
        return [
            *super().notes(),
            f"{self.num_excluded_} sentences contain tokens that look like label tokens and are not used for training",
        ]

    def _accept(self, source: Sentence, parsed: tuple[Sequence[str], Sequence[Mention]] | None) -> Sentence | Rejection:
        """Return the generated sentence, or a rejection."""
        if parsed is None:
            return Rejection(INVALID_LABELS)
        tokens, mentions = tuple(parsed[0]), parsed[1]
        if not mentions:
            return _NO_MENTION
        rejection = self.texts_.check(tokens, mentions)
        return rejection or replace_tokens(source, tokens, mentions, unconditioned=True)


@dataclass(kw_only=True, eq=False)
class DAGA(_LabelledTextAugmenter):
    """Train a small language model on the labelled sentences and sample new ones from it, labels included.

    Sentences are linearized: each token of a mention is preceded by its tag. A language model with one LSTM layer is
    trained on them from scratch. Numbers are replaced by a placeholder, and words seen once by placeholders that depend
    on capitalisation and suffix. A sampled sentence is accepted if its labels are consistent, it has a mention, and it
    is not a sentence of the corpus.

    New sentences are not conditioned on a source sentence; the source only determines the position in the output.

    Args:
        unknown_tokens: the treatment of placeholders: ``"fill"`` each with a word that it replaced under the same tag;
            ``"keep"`` them, as the paper does; or ``"drop"`` the sentence.
        tag_scheme: the tag scheme; see `entaug.tags`.
        temperature: for sampling; higher values give more variety.
        max_new_tokens: the maximum number of tokens of a sentence.
        token_lm: a `TokenLM` or its name.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug methods daga --preset paper``)
            unless it is given.

    Example:
        >>> from entaug.backends.fakes import FakeTokenLM
        >>> gold = [
        ...     Sentence("Ada sings".split(), [Mention("PER", [(0, 1)])]),
        ...     Sentence("Rome burns".split(), [Mention("LOC", [(0, 1)])]),
        ... ]
        >>> options = {"unknown_tokens": "keep", "unlisted_mentions": "keep", "max_attempts": 20}
        >>> method = DAGA(token_lm=FakeTokenLM(), **options).fit(gold)
        >>> all(len(s.mentions) == 1 for s in method.augment(gold))
        True
    """

    unknown_tokens: Literal["fill", "keep", "drop"] = "fill"
    tag_scheme: TagScheme = "IOB2"
    temperature: PositiveFloat = 1.0
    max_new_tokens: PositiveInt = 128
    token_lm: TokenLM | str = "lstm"  # noqa: S105
    epochs: PositiveInt | None = 40
    batch_size: PositiveInt | None = 16
    max_attempts: PositiveInt = 10
    preset: Literal["starter", "paper"] = field(default="starter", metadata=ONLY_IF_SET)
    token_lm_: TokenLM = field(init=False, repr=False)

    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {"starter": {}, "paper": DAGA_PAPER}

    info: ClassVar[MethodInfo] = MethodInfo(
        name="daga",
        long_name="data-augmentation-with-a-generation-approach",
        summary="labelled sentences sampled from a small language model trained on the corpus",
        paper="Ding et al. 2020, DAGA: Data Augmentation with a Generation Approach for Low-resource Tagging Tasks",
        keeps_mentions=False,
        nested=False,
        discontinuous=False,
        needs_fit=True,
        needs_mentions=True,
        writes_words=True,
        wrong_labels=(5, 30),
        unconditioned=True,
        needs=("token_lm",),
        cost="training a small language model (minutes for a few hundred sentences), then milliseconds per sentence",
    )

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = self._learn_texts(distinct_sentences(corpus), self.tag_scheme)
        counts = Counter(token for s in gold for token in s.tokens)
        self._rare = {token for token, count in counts.items() if count == 1 and not _NUMBER.fullmatch(token)}
        suffixes = Counter(token[-2:].lower() for token in self._rare)
        self._suffixes = {suffix for suffix, count in suffixes.items() if count >= _MIN_WORDS_OF_SUFFIX}
        self._label_tokens = {label_token(tag) for s in gold for tag in s.iob(self.tag_scheme) if tag != "O"}
        self._fills: dict[tuple[str, str], list[str]] = defaultdict(list)
        rows = []
        for sentence in gold:
            row: list[str] = []
            for token, tag in zip(sentence.tokens, sentence.iob(self.tag_scheme), strict=True):
                placeholder = self._placeholder(token)
                if placeholder != token:
                    self._fills[placeholder, tag].append(token)
                row += [placeholder] if tag == "O" else [label_token(tag), placeholder]
            rows.append(row)
        has_mentions = any(s.mentions for s in gold)
        self.trained_: TokenLM | None = self._train(self.token_lm_, rows, rows) if has_mentions else None

    def _placeholder(self, token: str) -> str:
        """Return the placeholder of a token in the training data, or the token itself."""
        if _NUMBER.fullmatch(token):
            return NUM
        if token not in self._rare:
            return token
        suffix = token[-2:].lower()
        has_suffix = suffix in self._suffixes and self.unknown_tokens == "fill"
        return f"{UNK}{'^' if token[:1].isupper() else ''}{suffix if has_suffix else ''}"

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        if self.trained_ is None:
            return [NO_CANDIDATE] * len(requests)
        seeds = [request.rng.getrandbits(32) for request in requests]
        rows = self.trained_.sample(seeds, max_new_tokens=self.max_new_tokens, temperature=float(self.temperature))
        return [self._parse(request, row) for request, row in zip(requests, rows, strict=True)]

    def _parse(self, request: Request, row: Sequence[str] | None) -> Sentence | Rejection:
        if not row:
            return UNFINISHED
        parsed = parse_tagged(row, self._label_tokens, self.tag_scheme)
        if parsed is None:
            return Rejection(INVALID_LABELS)
        filled = []
        for previous, token in zip(("", *row), row, strict=False):
            if token not in self._label_tokens:
                tag = previous[1:-1] if previous in self._label_tokens else "O"
                filled.append(self._fill(token, tag, request.rng))
        if None in filled:
            return _UNKNOWN_WORD
        return self._accept(request.sentence, ([token for token in filled if token], parsed[1]))

    def _fill(self, token: str, tag: str, rng: Random) -> str | None:
        """Return a word for a placeholder; None if there is none."""
        if not (token == NUM or token.startswith(UNK)) or self.unknown_tokens == "keep":
            return token
        # If the placeholder never has this tag in the corpus, it is filled with any word of that tag.
        words = self._fills.get((token, tag)) or [w for (_, t), fills in self._fills.items() if t == tag for w in fills]
        return words[rng.randrange(len(words))] if words and self.unknown_tokens == "fill" else None


@dataclass(kw_only=True, eq=False)
class MulDA(_LabelledTextAugmenter, GenerativeAugmenter):
    """Fine-tune a pretrained language model on labelled sentences in one or more languages and sample new ones.

    Sentences are linearized as for DAGA, and the model is trained to generate them from the name of their language. If
    the corpus has sentences in several languages (field ``language``, as in JSON Lines), it is trained on all of them
    together. A sampled sentence is accepted if its labels are consistent, it has a mention, and it is not a sentence of
    the corpus.

    New sentences are conditioned only on the language of a source sentence.

    Args:
        language: the language of sentences without a field ``language``; none for English.
        top_k: the number of most likely sub-words to sample from.
        preset: ``"starter"``: SmolLM2, at most 10 epochs; ``"paper"``: mBART-50-large and all settings of the paper
            (``entaug methods mulda --preset paper``), unless they are given.

    Example:
        >>> from entaug.backends.fakes import FakeGenerator
        >>> gold = [Sentence("Ada sings".split(), [Mention("PER", [(0, 1)])])]
        >>> method = MulDA(generator=FakeGenerator(["<B-PER> Bo", "runs"]), unlisted_mentions="keep").fit(gold)
        >>> method.trained_.learned[0]
        ('en', '<B-PER> Ada sings')
    """

    language: str | None = "en"
    top_k: PositiveInt = 50
    temperature: PositiveFloat = 1.0
    preset: Literal["starter", "paper"] = "starter"

    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "starter": {"generator": "smollm2", "epochs": 10, "batch_size": 8, "constrained": False},
        "paper": MULDA_PAPER,
    }

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
        wrong_labels=(3, 14),
        unconditioned=True,
        needs=("generator",),
        cost="fine-tuning a generator (minutes per hundred sentences on a CPU), then seconds per sentence",
    )

    def _check(self) -> None:
        if self.constrained:
            raise ParameterError("mulda does not support constrained decoding", remedy="remove constrained")

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = self._learn_texts(distinct_sentences(corpus, self._language))
        labels = {mention.label for sentence in gold for mention in sentence.mentions}
        self._markers = label_tokens(labels)
        self._transitions = label_transitions(labels)
        pairs = [(self._language(s), join_parts(tag_tokens(s), self._markers)) for s in gold]
        self.trained_: Generator | None = None
        if self._markers:
            self.trained_ = self._train(self.generator_, pairs, pairs, self._markers, **self._languages(gold))

    def _language(self, sentence: Sentence) -> str:
        return super()._language(sentence) or "en"

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        if self.trained_ is None:
            return [NO_CANDIDATE] * len(requests)
        inputs = [self._language(request.sentence) for request in requests]
        seeds = [request.rng.getrandbits(32) for request in requests]
        decoding = self._decoding("sample", 1, top_k=self.top_k, marker_rules=self._transitions)
        languages = self._languages(request.sentence for request in requests)
        generated = self.trained_.generate(inputs, decoding, seeds, **languages)
        return [
            self._parse(request, texts[0]) if texts else UNFINISHED
            for request, texts in zip(requests, generated, strict=True)
        ]

    def _parse(self, request: Request, text: str) -> Sentence | Rejection:
        parts: list[str] = []
        for part in split_at_labels(text, self._markers):
            parts += [part] if part in self._markers else self.texts_.tokenize(part.strip())
        return self._accept(request.sentence, parse_tagged(parts, self._markers))
