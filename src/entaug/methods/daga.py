"""DAGA and MulDA: sentences and labels generated together by a language model of labelled text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, ClassVar, Literal

from entaug.backends.protocols import Generator, TokenLM
from entaug.config.params import Check, PositiveFloat, PositiveInt
from entaug.config.presets import ONLY_IF_SET
from entaug.core import tags
from entaug.core.alignment import detokenize
from entaug.core.data import Mention, Sentence
from entaug.core.tags import SCHEMES, canonical_scheme
from entaug.methods.base import NO_CANDIDATE, MethodInfo, Rejection, Request
from entaug.methods.paper_presets import DAGA_PAPER, MULDA_PAPER
from entaug.methods.shared.generative import (
    UNFINISHED,
    GeneratedTexts,
    GenerativeAugmenter,
    distinct_sentences,
    replace_tokens,
)
from entaug.methods.shared.linearization import (
    INVALID_LABELS,
    join_parts,
    label_token,
    label_tokens,
    label_transitions,
    parse_tagged,
    split_at_labels,
    tag_mentions,
    tag_tokens,
    unwanted_labels,
)
from entaug.methods.shared.mention_matching import KnownMentions
from entaug.methods.shared.trainable import TrainableAugmenter

__all__ = ["DAGA", "MulDA"]

_NO_MENTION = Rejection("no mention")
_UNKNOWN_WORD = Rejection("a word unknown to the model")
_UNKNOWN_MENTION = Rejection("a mention that the training sentences do not have")

UNK, NUM = "<unk>", "<num>"
_PLACES = "IOBES"  # the tag scheme that tells all places of words in mentions apart
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
        fragments = [(s.tokens[i],) for s in gold for m in s.mentions for i in m.positions()]  # between label tokens
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
        tag_scheme: the tag scheme; see `entaug.core.tags`.
        temperature: for sampling; higher values give more variety.
        max_new_tokens: the maximum number of tokens of a sentence.
        token_lm: a `TokenLM` or its name.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods daga``)
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
        wrong_labels=(0, 18),
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
            pairs = zip(sentence.iob(self.tag_scheme), sentence.iob(_PLACES), strict=True)
            for token, (tag, place) in zip(sentence.tokens, pairs, strict=True):
                placeholder = self._placeholder(token)
                if placeholder != token:
                    self._fills[placeholder, place].append(token)
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
        # The first word of a long name is none by itself: a placeholder is filled by its place in the mention.
        places = tags.encode(len(parsed[0]), parsed[1], _PLACES)
        filled = [self._fill(token, place, request.rng) for token, place in zip(parsed[0], places, strict=True)]
        if None in filled:
            return _UNKNOWN_WORD
        return self._accept(request.sentence, ([token for token in filled if token], parsed[1]))

    def _fill(self, token: str, place: str, rng: Random) -> str | None:
        """Return a word for a placeholder; None if there is none."""
        if not (token == NUM or token.startswith(UNK)) or self.unknown_tokens == "keep":
            return token
        # If the placeholder is never at this place in the corpus, it is filled with any word that is.
        words = self._fills.get((token, place))
        words = words or [w for (_, p), fills in self._fills.items() if p == place for w in fills]
        return words[rng.randrange(len(words))] if words and self.unknown_tokens == "fill" else None


@dataclass(kw_only=True, eq=False)
class MulDA(_LabelledTextAugmenter, GenerativeAugmenter):
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
        "starter": {"generator": "smollm2", "epochs": 10, "batch_size": 8, "constrained": True},
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
        pairs = [(self._language(s), join_parts(tag_tokens(s), self._markers)) for s in gold]
        self.trained_: Generator | None = None
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
            for mention, parts in zip(sentence.mentions, tag_mentions(sentence), strict=True):
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

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        results: list[Sentence | Rejection] = [NO_CANDIDATE] * len(requests)
        if self.trained_ is None:
            return results
        seeds = [request.rng.getrandbits(32) for request in requests]
        drawn = [self._draw_mentions(request) if self.constrained else [] for request in requests]
        usable = [i for i in range(len(requests)) if drawn[i] or not self.constrained]
        inputs = [self._language(requests[i].sentence) for i in usable]
        rules = {} if self.constrained else self._transitions
        decoding = self._decoding("sample", 1, top_k=self.top_k, marker_rules=rules)
        required = [[[text] for text in drawn[i]] for i in usable] if self.constrained else None
        languages = self._languages(requests[i].sentence for i in usable)
        generated = self.trained_.generate(
            inputs, decoding, [seeds[i] for i in usable], required, self._unwanted, **languages
        )
        for i, texts in zip(usable, generated, strict=True):
            results[i] = self._parse(requests[i], texts[0]) if texts else UNFINISHED
        return results

    def _parse(self, request: Request, text: str) -> Sentence | Rejection:
        parts: list[str] = []
        for part in split_at_labels(text, self._markers):
            parts += [part] if part in self._markers else self.texts_.tokenize(part.strip())
        parsed = parse_tagged(parts, self._markers)
        if parsed is None or not self.constrained:
            return self._accept(request.sentence, parsed)
        tokens, mentions = list(parsed[0]), parsed[1]
        for mention in mentions:
            printed = (detokenize([token]) for token in tokens[mention.start : mention.end])
            words = self._printed.get((mention.label, *printed))
            if words is None:
                return _UNKNOWN_MENTION
            tokens[mention.start : mention.end] = words
        return self._accept(request.sentence, (tokens, mentions))
