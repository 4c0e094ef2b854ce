"""DAGA: sentences and labels sampled together from a small language model of labelled text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, ClassVar, Literal

from entaug.backends.protocols import TokenLM
from entaug.config.params import Check, PositiveFloat, PositiveInt
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core import tags
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import SCHEMES, canonical_scheme
from entaug.methods.base import NO_CANDIDATE, MethodInfo, Rejection, Request
from entaug.methods.shared.generated_text import (
    INVALID_LABELS,
    GeneratedTexts,
    KnownMentions,
    distinct_sentences,
    label_token,
    parse_tagged,
)
from entaug.methods.shared.generative import UNFINISHED, TextPlan, TrainableAugmenter, WritingAugmenter

_NO_MENTION = Rejection("no mention")
_UNKNOWN_WORD = Rejection("a word unknown to the model")
_UNK, _NUM = "<unk>", "<num>"
_PLACES = "IOBES"  # the tag scheme that tells all places of words in mentions apart
_NUMBER = re.compile(r"[+-]?\d[\d.,:/-]*")
_MIN_WORDS_OF_SUFFIX = 5  # words seen once that share a suffix; with fewer it is not part of the placeholder

TagScheme = Annotated[str, Check(lambda name: canonical_scheme(name) in SCHEMES, f"one of {', '.join(SCHEMES)}")]


@dataclass(kw_only=True, eq=False)
class LabelledTextAugmenter(TrainableAugmenter, WritingAugmenter):
    """Base class of methods that generate labelled text without a source.

    Args:
        unlisted_mentions: ``"drop"`` or ``"keep"`` texts that contain a known mention of the corpus without a label.
    """

    unlisted_mentions: Literal["drop", "keep"] = "drop"
    draws_ahead = False  # unknown words are filled when a text is read

    def _learn_texts(self, gold: Sequence[Sentence], scheme: str = "IOB2") -> list[Sentence]:
        """Prepare the checks of generated texts; return the sentences without tokens that look like labels."""
        fragments = [(s.tokens[i],) for s in gold for m in s.mentions for i in m.positions()]  # between label tokens
        known = KnownMentions(gold) if self.unlisted_mentions == "drop" else None
        self.texts_ = GeneratedTexts(gold, fragments, known)
        labels = {label_token(tag) for s in gold for tag in s.iob(scheme)}
        usable = [s for s in gold if not any(t in labels or t == _NUM or t.startswith(_UNK) for t in s.tokens)]
        self.num_excluded_ = len(gold) - len(usable)
        return usable

    def notes(self) -> list[str]:
        if not self.num_excluded_:
            return super().notes()
        return [
            *super().notes(),
            f"{self.num_excluded_} sentences contain tokens that look like label tokens and are not used for training",
        ]

    def _labelled(
        self, source: Sentence, parsed: tuple[Sequence[str], Sequence[Mention]] | None
    ) -> Sentence | Rejection:
        """Return the sentence of a parsed text, or a rejection."""
        if parsed is None:
            return Rejection(INVALID_LABELS)
        tokens, mentions = parsed
        return self._new_sentence(source, tokens, mentions, unconditioned=True) if mentions else _NO_MENTION


@dataclass(kw_only=True, eq=False)
class DAGA(LabelledTextAugmenter):
    """Train a small language model on the labelled sentences and sample new ones from it, labels included.

    Sentences are linearized: each token of a mention is preceded by its tag. A language model with one LSTM layer is
    trained on them from scratch. Numbers are replaced by a placeholder, and words seen once by another: by one for each
    suffix and capitalisation where they are filled. A sampled sentence is accepted if its labels are consistent, it has
    a mention, and it is not a sentence of the corpus.

    New sentences are not conditioned on a source sentence; the source only determines the position in the output.

    Args:
        unknown_tokens: the treatment of placeholders: ``"fill"`` each with a word that it replaced under the same tag;
            ``"keep"`` them, as the paper does, but for sentences of nothing else; or ``"drop"`` the sentence.
        tag_scheme: the tag scheme; see `entaug.core.tags`.
        temperature: for sampling; higher values give more variety.
        max_new_tokens: the maximum number of tokens of a sentence.
        token_lm: a `TokenLM` or its name.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods daga``)
            unless it is given.

    Example:
        >>> from helpers.fakes import FakeTokenLM  # tests/helpers of entaug
        >>> gold = [
        ...     Sentence("Ada sings".split(), [Mention("PER", [(0, 1)])]),
        ...     Sentence("Rome sings".split(), [Mention("LOC", [(0, 1)])]),
        ... ]
        >>> options = {"unknown_tokens": "keep", "unlisted_mentions": "keep", "guard": False, "max_attempts": 20}
        >>> method = DAGA(token_lm=FakeTokenLM(), **options).fit(gold)
        >>> sorted(str(s) for s in method.augment(gold))
        ['[<unk>]LOC sings', '[<unk>]PER sings']
    """

    unknown_tokens: Literal["fill", "keep", "drop"] = "fill"
    tag_scheme: TagScheme = "IOB2"
    temperature: PositiveFloat = 1.0
    max_new_tokens: PositiveInt = 128
    token_lm: TokenLM | str = "lstm"  # noqa: S105
    epochs: PositiveInt = 40
    batch_size: PositiveInt = 16
    max_attempts: PositiveInt = 10
    preset: Literal["starter", "paper"] = field(default="starter", metadata=ONLY_IF_SET)
    token_lm_: TokenLM = field(init=False, repr=False)

    presets = read_presets("daga")

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
        self._rare = {token for token, count in counts.items() if count == 1 and not self._is_number(token)}
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
        self.trained_ = self._train(self.token_lm_, rows, rows) if has_mentions else None

    def _is_number(self, token: str) -> bool:
        return bool(_NUMBER.fullmatch(token)) if self.unknown_tokens == "fill" else token.isnumeric()

    def _placeholder(self, token: str) -> str:
        """Return the placeholder of a token in the training data, or the token itself."""
        if self._is_number(token):
            return _NUM
        if token not in self._rare:
            return token
        if self.unknown_tokens != "fill":
            return _UNK
        suffix = token[-2:].lower()
        return f"{_UNK}{'^' if token[:1].isupper() else ''}{suffix if suffix in self._suffixes else ''}"

    def _plan(self, request: Request) -> TextPlan | Rejection:
        if self.trained_ is None:
            return NO_CANDIDATE
        return TextPlan(request.sentence, "", request.rng.getrandbits(32), basis=request.rng)

    def _write(self, plans: Sequence[TextPlan]) -> Sequence[Any]:
        lengths = {"max_new_tokens": self.max_new_tokens, "temperature": float(self.temperature)}
        return [row or UNFINISHED for row in self.trained_.sample([plan.seed for plan in plans], **lengths)]

    def _read(self, plan: TextPlan, text: Any) -> Sentence | Rejection:
        parsed = parse_tagged(text, self._label_tokens, self.tag_scheme)
        if parsed is None:
            return Rejection(INVALID_LABELS)
        # The first word of a long name is none by itself: a placeholder is filled by its place in the mention.
        places = tags.encode(len(parsed[0]), parsed[1], _PLACES)
        filled = [self._fill(token, place, plan.basis) for token, place in zip(parsed[0], places, strict=True)]
        if None in filled or {*filled} <= {_UNK, _NUM}:
            return _UNKNOWN_WORD
        return self._labelled(plan.source, ([token for token in filled if token], parsed[1]))

    def _fill(self, token: str, place: str, rng: Random) -> str | None:
        """Return a word for a placeholder; None if there is none."""
        if not (token == _NUM or token.startswith(_UNK)) or self.unknown_tokens == "keep":
            return token
        # If the placeholder is never at this place in the corpus, it is filled with any word that is.
        words = self._fills.get((token, place))
        words = words or [w for (_, p), fills in self._fills.items() if p == place for w in fills]
        return words[rng.randrange(len(words))] if words and self.unknown_tokens == "fill" else None
