"""DAGA and MulDA: sentences and their labels written together by a language model of labelled text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, ClassVar, Literal

from entaug.augmenters.base import NO_CANDIDATE, MethodInfo, Rejection, Request
from entaug.augmenters.generative.base import COPIED, UNFINISHED, GenerativeAugmenter, Words, rewritten
from entaug.augmenters.generative.linearization import (
    BROKEN,
    as_text,
    goes_on,
    label_token,
    label_tokens,
    read_tagged,
    tagged,
)
from entaug.augmenters.generative.mention_matching import UNLISTED, Surfaces
from entaug.augmenters.generative.trainable import TrainableAugmenter
from entaug.backends.config import DecodingConfig
from entaug.backends.protocols import Generator, TokenLM
from entaug.data import Mention, Sentence
from entaug.errors import ParameterError
from entaug.params import Check, PositiveFloat, PositiveInt
from entaug.tags import SCHEMES, canonical_scheme

__all__ = ["DAGA", "MulDA"]

_NO_MENTION = Rejection("no mention in it")
_HAS_UNKNOWN = Rejection("a word that the model does not know")
TagScheme = Annotated[str, Check(lambda name: bool(canonical_scheme(name)), f"one of {', '.join(SCHEMES)}")]

UNK, NUM = "<unk>", "<num>"
_NUMBER = re.compile(r"[+-]?\d[\d.,:/-]*")


class _Judge:
    """What is looked at before a text is kept.

    Args:
        gold: the corpus.
        unlisted: ``"drop"`` or ``"keep"`` what holds a known mention without a label.
    """

    def __init__(self, gold: Sequence[Sentence], unlisted: str) -> None:
        mentioned = [s.tokens[a:b] for s in gold for m in s.mentions for a, b in m.spans]
        self.words = Words(gold, mentioned)
        self._known = Surfaces(gold) if unlisted == "drop" else None

    def judged(self, source: Sentence, read: tuple[Sequence[str], Sequence[Mention]] | None) -> Sentence | Rejection:
        """A sentence in the place of a source, or why not."""
        if read is None:
            return Rejection(BROKEN)
        tokens, mentions = tuple(read[0]), read[1]
        if not mentions:
            return _NO_MENTION
        if self.words.holds(tokens):
            return COPIED
        marked = [range(m.start, m.end) for m in mentions]
        for start, end in self._known.within(tokens) if self._known else ():
            if not any(start >= r.start and end <= r.stop for r in marked):
                return Rejection(UNLISTED)
        return rewritten(source, tokens, mentions, {"unconditioned": True})


def _distinct(corpus: Iterable[Sentence], kind: Callable[[Sentence], str] = lambda _: "") -> list[Sentence]:
    """The sentences, equal ones of a kind once, in an order that does not depend on that of the file."""
    in_order = sorted(corpus, key=lambda s: (s.fingerprint(), kind(s), s.id or ""))
    return list({(s.fingerprint(), kind(s)): s for s in in_order}.values())


def _plain(gold: Sequence[Sentence], scheme: str = "IOB2") -> list[Sentence]:
    """Those without a token that would be read as a label or a placeholder."""
    known = {label_token(tag) for s in gold for tag in s.iob(scheme)}
    return [s for s in gold if not any(t in known or t == NUM or t.startswith(UNK) for t in s.tokens)]


def _note(left_out: int) -> list[str]:
    return [f"{left_out} sentences hold what looks like a label token, and are not learned from"] if left_out else []


@dataclass(kw_only=True, eq=False)
class DAGA(TrainableAugmenter):
    """Have a small language model learn the labelled sentences and draw new ones, labels and all.

    Sentences are linearised: the tag of each word of a mention stands before it. A language model of one LSTM layer
    learns them from nothing; numbers stand as one placeholder, and words seen once as a few, by their capitals and last
    letters. What is drawn is kept if its labels go together, it holds a mention, and it is no sentence of the corpus.

    A new sentence comes from the model alone, not from the sentence whose place in the output it takes.

    Args:
        unknown_tokens: what becomes of placeholders: ``"fill"`` each with a word that it stood for under the same tag;
            ``"keep"`` them as they are, as the paper does; ``"drop"`` the sentence.
        tag_scheme: of the tags, see `entaug.tags`.
        temperature: above 1 for more variety, below for less.
        max_new_tokens: how many tokens a sentence may have.
        unlisted_mentions: ``"drop"`` or ``"keep"`` what holds a mention of the corpus without a label.
        token_lm: a `TokenLM`, or the name of one.

    Example:
        >>> from entaug.backends.fakes import FakeTokenLM
        >>> gold = [
        ...     Sentence("Ada sings".split(), [Mention("PER", [(0, 1)])]),
        ...     Sentence("Rome burns".split(), [Mention("LOC", [(0, 1)])]),
        ... ]
        >>> method = DAGA(token_lm=FakeTokenLM(), unknown_tokens="keep", unlisted_mentions="keep", max_attempts=20).fit(gold)
        >>> all(len(s.mentions) == 1 for s in method.augment(gold))
        True
    """

    unknown_tokens: Literal["fill", "keep", "drop"] = "fill"
    tag_scheme: TagScheme = "IOB2"
    temperature: PositiveFloat = 1.0
    max_new_tokens: PositiveInt = 128
    unlisted_mentions: Literal["drop", "keep"] = "drop"
    token_lm: TokenLM | str = "lstm"  # noqa: S105
    epochs: PositiveInt | None = 40
    batch_size: PositiveInt | None = 16
    max_attempts: PositiveInt = 10
    token_lm_: TokenLM = field(init=False, repr=False)

    info: ClassVar[MethodInfo] = MethodInfo(
        name="daga",
        long_name="data-augmentation-with-a-generation-approach",
        summary="sentences and labels drawn together from a small language model of the corpus",
        paper="Ding et al. 2020, DAGA: Data Augmentation with a Generation Approach for Low-resource Tagging Tasks",
        keeps_mentions=False,
        nested=False,
        discontinuous=False,
        needs_fit=True,
        needs_mentions=True,
        unconditioned=True,
        needs=("token_lm",),
        cost="learning a small language model (minutes for some hundred sentences), then thousandths of a second",
    )

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        everything = _distinct(corpus)
        self._judge = _Judge(everything, self.unlisted_mentions)
        gold = _plain(everything, self.tag_scheme)
        self.left_out_ = len(everything) - len(gold)
        counts = Counter(token for s in gold for token in s.tokens)
        self._once = {token for token, count in counts.items() if count == 1 and not _NUMBER.fullmatch(token)}
        ends = Counter(token[-2:].lower() for token in self._once)
        self._ends = {end for end, count in ends.items() if count >= _USUAL}
        tags = {tag for s in gold for tag in s.iob(self.tag_scheme)} - {"O"}
        self._tokens_of_labels = {label_token(tag) for tag in tags}
        self._fills: dict[tuple[str, str], list[str]] = defaultdict(list)
        rows = []
        for sentence in gold:
            for token, tag in zip(sentence.tokens, sentence.iob(self.tag_scheme), strict=True):
                if (placeholder := self._placeholder(token)) != token:
                    self._fills[placeholder, tag].append(token)
            parts = tagged(sentence, self.tag_scheme)
            labels = [i for i, part in enumerate(parts) if part in self._tokens_of_labels]
            rows.append([part if i in labels else self._placeholder(part) for i, part in enumerate(parts)])
        has_some = any(s.mentions for s in gold)
        self.learned_: TokenLM | None = self._taught(self.token_lm_, rows, rows) if has_some else None

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        return _note(self.left_out_)

    def _placeholder(self, token: str) -> str:
        """What stands for a token in the model; most stand for themselves."""
        if _NUMBER.fullmatch(token):
            return NUM
        if token not in self._once:
            return token
        end = token[-2:].lower()
        return f"{UNK}{'^' if token[:1].isupper() else ''}{end if end in self._ends and self.unknown_tokens == 'fill' else ''}"

    def _rewrite_batch(self, asked: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        if self.learned_ is None:
            return [NO_CANDIDATE] * len(asked)
        seeds = [one.rng.getrandbits(32) for one in asked]
        rows = self.learned_.sample(seeds, max_new_tokens=self.max_new_tokens, temperature=float(self.temperature))
        return [self._one(one, row) for one, row in zip(asked, rows, strict=True)]

    def _one(self, asked: Request, row: Sequence[str] | None) -> Sentence | Rejection:
        if not row:
            return UNFINISHED
        read = read_tagged(row, self._tokens_of_labels, self.tag_scheme)
        if read is None:
            return Rejection(BROKEN)
        tokens, mentions = read
        tags = [before[1:-1] if before in self._tokens_of_labels else "O" for before in ("", *row)]
        own = [tag for tag, part in zip(tags, row, strict=False) if part not in self._tokens_of_labels]
        filled = [self._filled(token, tag, asked.rng) for token, tag in zip(tokens, own, strict=True)]
        if any(token is None for token in filled):
            return _HAS_UNKNOWN
        return self._judge.judged(asked.sentence, ([token for token in filled if token], mentions))

    def _filled(self, token: str, tag: str, rng: Random) -> str | None:
        """A word for a placeholder; None where there is none."""
        if not (token == NUM or token.startswith(UNK)) or self.unknown_tokens == "keep":
            return token
        # Under a tag that it never had in the corpus it is a word of that tag at least.
        words = self._fills.get((token, tag)) or [w for (_, of), some in self._fills.items() if of == tag for w in some]
        return words[rng.randrange(len(words))] if words and self.unknown_tokens == "fill" else None


@dataclass(kw_only=True, eq=False)
class MulDA(GenerativeAugmenter):
    """Have a pretrained language model learn the labelled sentences of one or more languages and draw new ones.

    Sentences are linearised as for DAGA, and the model learns to write them, each from the name of its language. Where
    the corpus has sentences of several languages (in the field ``language`` of each, as JSON lines carry it), it learns
    all of them together. What is drawn is kept if its labels go together, it holds a mention, and it is no sentence of
    the corpus.

    A new sentence is of the language of the sentence whose place in the output it takes, and has nothing else of it.

    Args:
        language: what sentences are in that do not say it.
        top_k: how many sub-words a draw is among.
        unlisted_mentions: ``"drop"`` or ``"keep"`` what holds a mention of the corpus without a label.
        preset: ``"starter"``: SmolLM2, ten epochs at most; ``"paper"``: mBART-50-large. It settles `generator`,
            `epochs`, `batch` and `insist` unless they are given.

    Example:
        >>> from entaug.backends.fakes import FakeGenerator
        >>> gold = [Sentence("Ada sings".split(), [Mention("PER", [(0, 1)])])]
        >>> method = MulDA(generator=FakeGenerator(["<B-PER> Bo", "runs"]), unlisted_mentions="keep").fit(gold)
        >>> method.tuned_.learned[0]
        ('en', '<B-PER> Ada sings')
    """

    language: str = "en"
    top_k: PositiveInt = 50
    unlisted_mentions: Literal["drop", "keep"] = "drop"
    temperature: PositiveFloat = 1.0
    preset: Literal["starter", "paper"] = "starter"

    presets: ClassVar[dict[str, dict[str, object]]] = {
        "starter": {"generator": "smollm2", "epochs": 10, "batch_size": 8, "constrained": False},
        "paper": {"generator": "facebook/mbart-large-50", "epochs": 10, "batch_size": 16, "constrained": False},
    }

    info: ClassVar[MethodInfo] = MethodInfo(
        name="mulda",
        long_name="multilingual-data-augmentation",
        summary="sentences and labels drawn together from a pretrained language model that has learned the corpus",
        paper="Liu et al. 2021, MulDA: A Multilingual Data Augmentation Framework for Low-Resource Cross-Lingual NER",
        keeps_mentions=False,
        nested=False,
        discontinuous=False,
        needs_fit=True,
        needs_mentions=True,
        unconditioned=True,
        needs=("generator",),
        cost="fine-tuning a generator (minutes for a hundred sentences on a CPU), then a second or two a sentence",
    )

    def _check(self) -> None:
        if self.constrained:
            raise ParameterError("mulda has no phrases to constrain texts to", remedy="leave constrained out")

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        everything = _distinct(corpus, self._language)
        self._judge = _Judge(everything, self.unlisted_mentions)
        gold = _plain(everything)
        self.left_out_ = len(everything) - len(gold)
        labels = {m.label for s in gold for m in s.mentions}
        markers = label_tokens(labels)
        self._labels = list(markers)
        self._goes_on = goes_on(labels)
        pairs = [(self._language(s), as_text(tagged(s), markers)) for s in gold]
        self.tuned_: Generator | None = self._taught(self.generator_, pairs, pairs, markers) if markers else None

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        return _note(self.left_out_)

    def _language(self, sentence: Sentence) -> str:
        return str(sentence.meta.get("language") or self.language)

    def _rewrite_batch(self, asked: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        if self.tuned_ is None:
            return [NO_CANDIDATE] * len(asked)
        inputs = [self._language(one.sentence) for one in asked]
        seeds = [one.rng.getrandbits(32) for one in asked]
        decoding = DecodingConfig(
            strategy="sample",
            num_beams=1,
            top_k=self.top_k,
            temperature=float(self.temperature),
            max_new_tokens=self.max_new_tokens,
            marker_rules=self._goes_on,
        )
        written = self.tuned_.generate(inputs, decoding, seeds)
        return [self._one(one, texts[0]) if texts else UNFINISHED for one, texts in zip(asked, written, strict=True)]

    def _one(self, asked: Request, text: str) -> Sentence | Rejection:
        parts: list[str] = []
        for part in re.split("(" + "|".join(map(re.escape, self._labels)) + ")", text):
            parts += [part] if part in self._labels else self._judge.words.tokens(part.strip())
        return self._judge.judged(asked.sentence, read_tagged(parts, self._labels))


_USUAL = 5  # words seen once that must share their last letters for these to count
