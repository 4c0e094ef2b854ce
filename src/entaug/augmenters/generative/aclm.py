"""ACLM: sentences rebuilt around their mentions from templates (Ghosh et al., ACL 2023), with mixner."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, Literal, NamedTuple

from entaug.alignment import detokenize
from entaug.augmenters.base import NO_CANDIDATE, NOT_SEEN, MethodInfo, Rejection, Request
from entaug.augmenters.generative.base import (
    ALIKE,
    COPIED,
    UNFINISHED,
    GenerativeAugmenter,
    Words,
    likeness,
    rewritten,
)
from entaug.augmenters.generative.linearization import (
    BROKEN,
    as_text,
    label_token,
    label_tokens,
    linearized,
    linearized_mentions,
    read_linearized,
)
from entaug.augmenters.generative.mention_matching import UNLISTED, Surfaces
from entaug.backends.config import DecodingConfig
from entaug.backends.protocols import Encoder, Generator, Tagger
from entaug.data import Mention, Sentence
from entaug.errors import ParameterError
from entaug.params import PositiveInt, Probability
from entaug.rng import Streams
from entaug.spacing import is_word_character
from entaug.stopwords import StopWords, stop_words

__all__ = ["ACLM", "Template", "keywords_of"]

MASK = "<mask>"
_LEARNED = 0.2  # share of its own training mentions below which a tagger has learned nothing

_LOST = Rejection("a mention of the template is missing or changed")
_INVENTED = Rejection("a mention that the template has not")
_HAS_LABELS = Rejection("its words look like label tokens", final=True)


class Template(NamedTuple):
    """A sentence of which only the mentions and some keywords are to stay.

    Args:
        sentence: it.
        keywords: positions of the keywords.
    """

    sentence: Sentence
    keywords: tuple[int, ...]

    def parts(self, hidden: Iterable[int] = ()) -> list[str]:
        """Label tokens, words of mentions, keywords and masks, in order.

        Args:
            hidden: positions of keywords that are masked too.

        Example:
            >>> from entaug import Mention
            >>> s = Sentence("the band Suede split in May".split(), [Mention("GRP", [(2, 3)])])
            >>> " ".join(Template(s, (1, 5)).parts(hidden=[5]))
            '<mask> band <B-GRP> Suede <B-GRP> <mask>'
        """
        shown = set(self.keywords).difference(hidden)
        found: list[str] = []
        for i, (token, tag) in enumerate(zip(self.sentence.tokens, self.sentence.iob(), strict=True)):
            if tag != "O":
                found += [label_token(tag), token, label_token(tag)]
            elif i in shown:
                found.append(token)
            elif found[-1:] != [MASK]:
                found.append(MASK)
        return found


@dataclass(kw_only=True, eq=False)
class ACLM(GenerativeAugmenter):
    """Have a generator write a sentence anew around its mentions and the words that matter most for them.

    A tagger learns from the gold sentences; the words that its mentions attend to most are keywords. A template keeps
    mentions, with label tokens around each of their words, and keywords; all else becomes a mask. The generator learns
    to rebuild sentences from templates, of which some keywords are masked too, drawn anew for each epoch. New sentences
    come from the same templates, again masked anew, and some from two templates joined (mixner). What is written is
    kept only if its label tokens go together, its mentions are exactly those of the template, and no mention known from
    the corpus stands in it without labels.

    Only flat mentions can be written with label tokens. A sentence without mentions has no template.

    Args:
        keywords: ``"attention"``; ``"random"``, as many words by chance; ``"none"``, mentions alone.
        keyword_ratio: of the words outside of mentions, the share that each mention makes keywords, rounded up.
        num_attention_layers: how many of the tagger's last layers are summed.
        mask_ratio: the mean share of keywords that are masked too; its standard deviation is one keyword.
        mixner_probability: the probability that a template is joined with that of a similar sentence. The paper draws a number from
            a normal distribution around 0.5 and joins above 0.7, without saying its spread; two of five, as in its
            code, is a spread of 0.8.
        num_neighbors: the similar sentence is one of so many with the nearest sentence vectors.
        decoding: ``"sample"``, the likeliest of some draws, or ``"beam_search"``.
        num_beams: how many draws or beams (starter: 1, as draws are what costs; paper: 3).
        top_k: for sampling, how many tokens a draw is among.
        stop_words: a language code; its stop words are no keywords (a path to a word list works too; none for all).
        tagger: a `Tagger` that has attentions, or the name of one; used with ``keywords="attention"``.
        encoder: an `Encoder`, or the name of one, for mixner.
        preset: ``"starter"``: SmolLM2, ten epochs at most, batches of eight; ``"paper"``: mBART-50-large, ten epochs,
            batches of 32 (and name another encoder of the tagger by giving an instance: XLM-R-large there).

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeEncoder, FakeGenerator, FakeTagger
        >>> gold = [Sentence("the band Suede split in May".split(), [Mention("GRP", [(2, 3)])])]
        >>> fakes = {"generator": FakeGenerator(["here"]), "tagger": FakeTagger(), "encoder": FakeEncoder()}
        >>> method = ACLM(keywords="none", stop_words=None, **fakes)
        >>> [" ".join(s.tokens) for s in method.fit(gold).augment(gold)]
        ['the band Suede split in May here']
    """

    keywords: Literal["attention", "random", "none"] = "attention"
    keyword_ratio: Probability = 0.3
    num_attention_layers: PositiveInt = 4
    mask_ratio: Probability = 0.5
    mixner_probability: Probability = 0.4
    num_neighbors: PositiveInt = 5
    decoding: Literal["sample", "beam_search"] = "sample"
    num_beams: PositiveInt | None = None
    top_k: PositiveInt = 10
    max_new_tokens: PositiveInt = 256
    stop_words: StopWords | None = "en"
    tagger: Tagger | str = "linear"
    encoder: Encoder | str = "minilm"
    preset: Literal["starter", "paper"] = "starter"
    tagger_: Tagger = field(init=False, repr=False)
    encoder_: Encoder = field(init=False, repr=False)

    presets: ClassVar[dict[str, dict[str, object]]] = {
        "starter": {"generator": "smollm2", "epochs": 10, "batch_size": 8, "num_beams": 1, "constrained": True},
        "paper": {
            "generator": "facebook/mbart-large-50",
            "epochs": 10,
            "batch_size": 32,
            "learning_rate": 1e-5,
            "num_beams": 3,
            "constrained": False,
        },
    }

    info: ClassVar[MethodInfo] = MethodInfo(
        name="aclm",
        long_name="attention-map-aware-generation",
        summary="sentences written anew around their mentions and keywords, some from two sentences",
        paper="Ghosh et al. 2023, ACLM: A Selective-Denoising based GenerativeAugmenter Data Augmentation Approach for "
        "Low-Resource Complex NER",
        keeps_mentions=False,
        nested=False,
        discontinuous=False,
        needs_fit=True,
        needs_mentions=True,
        needs=("generator", "tagger", "encoder"),
        cost="fine-tuning a tagger and a generator (minutes for a hundred sentences on a CPU), then seconds a sentence",
    )

    def _uses_backend(self, kind: str) -> bool:
        if kind == "tagger":
            return self.keywords == "attention"
        return kind != "encoder" or self.mixner_probability > 0

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = sorted(corpus, key=lambda s: s.fingerprint())  # the order of a file changes nothing
        self.labels_ = sorted({m.label for s in gold for m in s.mentions})
        usable = [s for s in gold if s.mentions and self._own().isdisjoint(s.tokens)]
        usable = list({s.fingerprint(): s for s in usable}.values())
        self.found_: float | None = None
        self.templates_ = dict(zip((s.fingerprint() for s in usable), self._templates(gold, usable), strict=True))
        self.words_ = Words(gold, [])
        self.known_ = Surfaces(gold)
        self.near_ = self._near(usable) if self.mixner_probability and len(usable) > 1 else {}
        # Where it may not write a label token it writes what these began with; that is no word of the corpus.
        words = {token.lower() for s in gold for token, free in zip(s.tokens, s.outside_mask(), strict=True) if free}
        self.odd_ = sorted({word for some in label_tokens(self.labels_).values() for word in some.split()} - words)
        self.tuned_: Generator | None = None
        if not usable:
            return
        streams = Streams(self.seed, f"{self.info.name} learning")
        targets = [self._as_text(linearized(s)) for s in usable]

        def pairs(epoch: int) -> list[tuple[str, str]]:
            drawn = []
            for sentence, target in zip(usable, targets, strict=True):
                key = sentence.fingerprint()
                some = [self.templates_[key]]
                rng = streams.stream(key.hex(), epoch + 1)
                drawn.append((self._as_text(_masked(some, rng, self.mask_ratio)), target))
            return drawn

        told = [(s.fingerprint(), t.keywords) for s, t in zip(usable, self.templates_.values(), strict=True)]
        self.tuned_ = self._taught(
            self.generator_, pairs, (told, self.mask_ratio), {MASK: "blank", **label_tokens(self.labels_)}
        )

    def _templates(self, gold: list[Sentence], usable: list[Sentence]) -> list[Template]:
        if self.keywords == "none" or not usable:  # where there is nothing to learn from, the base says so
            return [Template(s, ()) for s in usable]
        free = [_free(s, stop_words(self.stop_words)) for s in usable]
        counts = [_count(s, self.keyword_ratio) for s in usable]
        if self.keywords == "random":
            streams = Streams(self.seed, f"{self.info.name} keywords")
            found = []
            for s, able, count in zip(usable, free, counts, strict=True):
                rng = streams.stream(s.fingerprint().hex(), 1)
                found.append(Template(s, tuple(sorted(rng.sample(able, min(len(able), count))))))
            return found
        attentions = getattr(self.tagger_, "attentions", None)
        if attentions is None:
            remedy = 'use linear, or keywords="random"'
            raise ParameterError(f"the tagger {self.tagger_.name} has no attentions", remedy=remedy)
        tagger = self.tagger_.fit(gold)
        hits = sum(len(set(s.mentions) & set(p.mentions)) for s, p in zip(usable, tagger.predict(usable), strict=True))
        self.found_ = hits / max(1, sum(len(s.mentions) for s in usable))
        weights = attentions([s.tokens for s in usable], self.num_attention_layers)
        return [
            Template(s, keywords_of(s, w.tolist(), count, able))
            for s, w, count, able in zip(usable, weights, counts, free, strict=True)
        ]

    def _near(self, usable: list[Sentence]) -> dict[bytes, list[Sentence]]:
        """For each sentence those whose vectors are nearest, the nearest first."""
        vectors = self.encoder_.sentence_vectors([detokenize(s.tokens, s.spaces) for s in usable])
        found = {}
        for i, sentence in enumerate(usable):
            cosines = (vectors @ vectors[i]).tolist()
            order = sorted((j for j in range(len(usable)) if j != i), key=lambda j: (-cosines[j], j))
            found[sentence.fingerprint()] = [usable[j] for j in order[: self.num_neighbors]]
        return found

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        if self.found_ is None or self.found_ >= _LEARNED:
            return []
        told = f"the tagger finds only {self.found_:.0%} of the mentions it has learned from"
        return [f'{told}: keywords are hardly better than chance; try another tagger, or keywords="random"']

    def _own(self) -> set[str]:
        """What stands in templates and is no word."""
        return {MASK, *label_tokens(self.labels_)}

    def _as_text(self, parts: Sequence[str]) -> str:
        return as_text(parts, self._own())

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _rewrite_batch(self, asked: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        results: list[Sentence | Rejection] = [NO_CANDIDATE] * len(asked)
        work: list[tuple[int, list[Template], str, int]] = []
        for i, one in enumerate(asked):
            sentence, rng = one.sentence, one.rng
            if not sentence.mentions or self.tuned_ is None:
                continue
            template = self.templates_.get(sentence.fingerprint())
            if template is None:
                results[i] = NOT_SEEN if self._own().isdisjoint(sentence.tokens) else _HAS_LABELS
                continue
            some = [template]
            mixed = rng.random() < self.mixner_probability
            near = self.near_.get(sentence.fingerprint())
            if mixed and near:
                some.append(self.templates_[near[rng.randrange(len(near))].fingerprint()])
            work.append((i, some, self._as_text(_masked(some, rng, self.mask_ratio)), rng.getrandbits(32)))
        if self.tuned_ is None or not work:
            return results
        decoding = DecodingConfig(
            strategy=self.decoding,
            num_beams=self.num_beams or 1,
            top_k=self.top_k,
            temperature=float(self.temperature),
            max_new_tokens=self.max_new_tokens,
        )
        inputs, seeds = [text for _, _, text, _ in work], [seed for *_, seed in work]
        wanted = [
            [[self._as_text(parts)] for template in some for parts in linearized_mentions(template.sentence)]
            for _, some, _, _ in work
        ]
        unwanted = [*sorted(self._own()), *self.odd_, *self.known_.texts()]
        written = self.tuned_.generate(inputs, decoding, seeds, wanted if self.constrained else None, unwanted)
        for (i, some, template_text, _), texts in zip(work, written, strict=True):
            results[i] = self._judged(asked[i].sentence, some, template_text, texts[0]) if texts else UNFINISHED
        return results

    def _read(self, some: Sequence[Template], text: str) -> tuple[tuple[str, ...], tuple[Mention, ...]] | Rejection:
        """Tokens and mentions of a text, which must be those of its templates."""
        mentioned = [t.sentence.mention_tokens(m) for t in some for m in t.sentence.mentions]
        own = {detokenize([word]) for words in mentioned for word in words}
        read = read_linearized(text.replace(MASK, " "), self.labels_, self.words_.tokens, own)
        if read is None:
            return Rejection(BROKEN)
        tokens, mentions = read
        if not tokens:
            return UNFINISHED
        wanted: dict[tuple[str, str], list[tuple[str, ...]]] = defaultdict(list)
        for template in some:
            for m in template.sentence.mentions:
                words = template.sentence.mention_tokens(m)
                wanted[m.label, " ".join(detokenize([word]) for word in words)].append(words)
        made = Counter((m.label, " ".join(tokens[m.start : m.end])) for m in mentions)
        counts = Counter({key: len(found) for key, found in wanted.items()})
        if made != counts:
            return _LOST if counts - made else _INVENTED
        # Of what stands in print the corpus may have other forms: brackets of a treebank, quotes.
        put = list(tokens)
        for m in mentions:
            put[m.start : m.end] = wanted[m.label, " ".join(tokens[m.start : m.end])].pop(0)
        return tuple(put), mentions

    def _judged(self, source: Sentence, some: Sequence[Template], asked: str, text: str) -> Sentence | Rejection:
        read = self._read(some, text)
        if isinstance(read, Rejection):
            return read
        tokens, mentions = read
        if self.words_.holds(tokens):
            return COPIED
        marked = [range(m.start, m.end) for m in mentions]
        for start, end in self.known_.within(tokens):
            if not any(start >= r.start and end <= r.stop for r in marked):
                return Rejection(UNLISTED)
        for template in some:
            if likeness(template.sentence.tokens, tokens) >= self.max_similarity:
                return ALIKE
        told: dict[str, object] = {"template": asked}
        if len(some) > 1:
            told["sources"] = [some[1].sentence.key]
        return rewritten(source, tokens, mentions, told)


def keywords_of(
    sentence: Sentence, weights: Sequence[Sequence[float]], count: int, able: Sequence[int]
) -> tuple[int, ...]:
    """The positions of the words that mentions attend to most (section 3.1).

    Args:
        sentence: it.
        weights: row i holds what word i gives to each word.
        count: how many keywords a mention makes.
        able: positions that may be keywords.

    Returns:
        The union over mentions, in order; the rows of a mention's words are summed. Of equals the first.
    """
    chosen: set[int] = set()
    for mention in sentence.mentions:
        rows = [weights[i] for i in mention.positions()]
        given = {i: math.fsum(row[i] for row in rows) for i in able}
        chosen.update(sorted(able, key=lambda i: (-given[i], i))[:count])
    return tuple(sorted(chosen))


def _free(sentence: Sentence, stop: frozenset[str] | set[str]) -> list[int]:
    """Positions of words outside of mentions that are neither punctuation nor stop words."""
    return [
        i
        for i, (token, free) in enumerate(zip(sentence.tokens, sentence.outside_mask(), strict=True))
        if free and any(map(is_word_character, token)) and token.lower() not in stop
    ]


def _count(sentence: Sentence, p: float) -> int:
    return math.ceil(p * sum(sentence.outside_mask()))


def _masked(some: Sequence[Template], rng: Random, mean: float) -> list[str]:
    """Templates joined, with some keywords masked by chance: a share around the mean, give or take one keyword."""
    keywords = [(number, i) for number, template in enumerate(some) for i in template.keywords]
    hidden: set[tuple[int, int]] = set()
    if keywords:
        share = rng.gauss(mean, 1 / len(keywords))
        count = min(len(keywords), max(0, round(share * len(keywords))))
        hidden = set(rng.sample(keywords, count))
    parts: list[str] = []
    for number, template in enumerate(some):
        new = template.parts(i for n, i in hidden if n == number)
        parts += new[1:] if parts[-1:] == [MASK] == new[:1] else new
    return parts
