"""ACLM: sentences regenerated around their mentions from templates (Ghosh et al., ACL 2023), with mixner."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, cast

from entaug.backends.config import Gap
from entaug.backends.protocols import Encoder, Tagger
from entaug.config.params import PositiveInt, Probability
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.rng import Streams
from entaug.core.spacing import is_word_character
from entaug.core.words import StopWords, stop_words
from entaug.errors import ParameterError
from entaug.methods.base import NO_CANDIDATE, NOT_SEEN, MethodInfo, Rejection, Request
from entaug.methods.shared.generated_text import (
    INVALID_LABELS,
    GeneratedTexts,
    KnownMentions,
    distinct_sentences,
    group_mentions,
    join_parts,
    label_token,
    label_tokens,
    match_mentions,
    parse_wrapped,
    unwanted_labels,
    wrap_tokens,
)
from entaug.methods.shared.generative import UNFINISHED, GenerativeAugmenter, PromptedAugmenter, Query, TextPlan

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


MASK = "<mask>"


class Blank(str):
    """A mask in a template, with the words that it hides."""

    __slots__ = ("words",)

    words: tuple[str, ...]

    def __new__(cls, words: Sequence[str]) -> Self:
        blank = super().__new__(cls, MASK)
        blank.words = tuple(words)
        return blank

    def gap(self) -> Gap:
        """The words that may be written in place of those that it hides."""
        return Gap(len(self.words) + _MAX_LONGER, tuple(detokenize([word]) for word in self.words[:1]))


_GAP = "___"  # a mask in a prompt

_MENTION_LOST = Rejection("a mention of the template is missing or changed")
_MENTION_ADDED = Rejection("a mention that is not in the template")
_OTHER_LENGTH = Rejection("longer or shorter than its template allows")
_MAX_LONGER = 1  # words of a gap more than were masked
_MAX_DIFFERENCE = 2  # in words from the template's sentences, where only some content words are masked
_HAS_LABELS = Rejection("its words look like label tokens", final=True)


def _add_blank(parts: list[str], words: Sequence[str]) -> None:
    """Add a mask, or words to the mask that is last."""
    hidden = parts[-1].words if parts and isinstance(parts[-1], Blank) else ()
    parts[len(parts) - bool(hidden) :] = [Blank((*hidden, *words))]


class Template(NamedTuple):
    """A sentence with its keywords; a template keeps only mentions, keywords and perhaps function words."""

    sentence: Sentence
    keywords: tuple[int, ...]
    function_words: tuple[int, ...] = ()  # with punctuation; if they are kept

    def parts(self, hidden: Iterable[int] = ()) -> list[str]:
        """Return label tokens, tokens of mentions, keywords and masks, in order."""
        shown = {*self.function_words, *set(self.keywords).difference(hidden)}
        parts: list[str] = []
        for i, (token, tag) in enumerate(zip(self.sentence.tokens, self.sentence.iob(), strict=True)):
            if tag != "O":
                parts += [label_token(tag), token, label_token(tag)]
            elif i in shown:
                parts.append(token)
            else:
                _add_blank(parts, [token])
        return parts


class AttentionMap(NamedTuple):
    """Attention of the mentions of a sentence to its words, and the keywords selected by it.

    Args:
        sentence: the sentence.
        weights: attention weights of shape (words, words); row i holds the weights that word i gives to each word.
        keywords: the positions of the keywords.

    Example:
        >>> import numpy
        >>> sentence = Sentence(["Suede", "split"])
        >>> AttentionMap(sentence, numpy.ones((2, 2), "float32"), (1,)).keywords
        (1,)
    """

    sentence: Sentence
    weights: NDArray[float32]
    keywords: tuple[int, ...]


def select_keywords(
    sentence: Sentence, weights: Sequence[Sequence[float]], count: int, candidates: Sequence[int]
) -> tuple[int, ...]:
    """Select the words that mentions attend to most (section 3.1 of the paper)."""
    selected: set[int] = set()
    for mention in sentence.mentions:
        rows = [weights[i] for i in mention.positions()]
        sums = {i: math.fsum(row[i] for row in rows) for i in candidates}
        selected.update(sorted(candidates, key=lambda i: (-sums[i], i))[:count])
    return tuple(sorted(selected))


def mask_keywords(templates: Sequence[Template], rng: Random, mean: float, minimum: int = 0) -> list[str]:
    """Join templates, with a normal share of the keywords masked (standard deviation: one keyword; none for mean 0)."""
    # If it is possible, at least `minimum` words are masked, keywords or not.
    keywords = [(number, i) for number, template in enumerate(templates) for i in template.keywords]
    hidden: set[tuple[int, int]] = set()
    if keywords and mean:
        share = rng.gauss(mean, 1 / len(keywords))
        masked = sum(sum(t.sentence.outside_mask()) - len({*t.keywords, *t.function_words}) for t in templates)
        count = min(len(keywords), max(0, minimum - masked, round(share * len(keywords))))
        hidden = set(rng.sample(keywords, count))
    parts: list[str] = []
    for number, template in enumerate(templates):
        new = template.parts(i for n, i in hidden if n == number)
        if new and isinstance(new[0], Blank):
            _add_blank(parts, new[0].words)
            del new[0]
        parts += new
    return parts


@dataclass(kw_only=True, eq=False)
class ACLM(GenerativeAugmenter, PromptedAugmenter):
    """Regenerate sentences around their mentions and keywords with a fine-tuned generator.

    A tagger is trained on the training sentences; the words that mentions attend to most are keywords. A template
    contains mentions, with label tokens around each of their tokens, and keywords; all other tokens are masked. The
    generator is trained to restore sentences from templates in which some keywords are also masked, in each epoch
    different ones. New sentences are generated from the same templates, again with some keywords masked, and some from
    two joined templates (mixner). A text is accepted only if its label tokens are consistent, its mentions are exactly
    those of the template, and no known mention occurs in it without a label. Constrained decoding keeps the parts of
    the template in their order; with `keep_function_words` each mask becomes one or more words, at most one more than
    it hides, the first of which is another one.

    An instruct model (a server or a GGUF file) is not trained: it is asked by a prompt to fill the gaps of a template,
    with templates and sentences of the corpus as examples. Its texts have no label tokens; they are accepted if they
    contain each mention of the template exactly once, and no other known mention.

    Label tokens can represent only flat mentions. Sentences without mentions have no template.

    Args:
        keywords: how keywords are selected: by ``"attention"``; at ``"random"``, as many for each
            mention; or ``"none"``.
        keyword_ratio: the share of the words outside mentions that become keywords for each mention, rounded up
            (starter: 0.7; paper: 0.3).
        keep_function_words: whether templates also keep stop words, punctuation and the first word, so that sentences
            keep their form (starter: yes; paper: no). A text that is more than two words longer or shorter than its
            sentence is then rejected.
        candidates: see `Augmenter`; texts that are drawn for each sentence, of which the best is kept.
        num_attention_layers: the number of layers, from the last, whose attentions are summed.
        mask_ratio: the mean share of keywords that are also masked (starter: 0.3; paper: 0.5); the standard deviation
            is one keyword; 0 for none.
        mixner_probability: the probability that a template is joined with that of a similar sentence (starter: 0,
            because the starter model rarely makes one sentence of two). (The paper draws from a normal distribution
            around 0.5 and joins above 0.7, without giving its standard deviation; 0.8, as in its code, corresponds to
            0.4.)
        num_neighbors: the number of sentences with the nearest sentence vectors from which that sentence is drawn.
        decoding: ``"sample"``, which returns the most likely of `num_beams` samples, or ``"beam_search"``.
        num_beams: the number of samples or beams (starter: 1, because samples are expensive; paper: 3).
        top_k: for sampling, the number of most likely tokens to sample from.
        stop_words: stop words, which cannot be keywords: language codes joined by ``+``, or a path to a word list; none
            for no stop words.
        mentions: which mentions a text must have: ``"exact"``, those of its template and no others; or ``"labelled"``,
            one or more with consistent label tokens, as in the paper, whose examples change some and add others. An
            instruct model writes no label tokens, so its texts always have those of the template.
        unlisted_mentions: ``"drop"`` or ``"keep"`` texts that contain a known mention of the corpus without a label.
        tagger: a `Tagger` with attentions, or its name, with parameters of it and of its training if there are any
            (``linear:encoder=mpnet;epochs=20``); used with ``keywords="attention"``.
        encoder: an `Encoder` or its name, for mixner.
        preset: ``"starter"``: SmolLM2, at most 10 epochs, batch size 8; ``"paper"``: all settings of the paper, among
            them mBART-50-large and a tagger on XLM-R-large (``entaug list methods aclm``), unless they are
            given.

    Example:
        >>> from entaug import Mention
        >>> from helpers.fakes import FakeEncoder, FakeGenerator, FakeTagger  # tests/helpers of entaug
        >>> gold = [Sentence("the band Suede split in May".split(), [Mention("GRP", [(2, 3)])])]
        >>> fakes = {"generator": FakeGenerator(["here"]), "tagger": FakeTagger(), "encoder": FakeEncoder()}
        >>> method = ACLM(candidates=1, keywords="none", stop_words=None, **fakes)
        >>> [" ".join(s.tokens) for s in method.fit(gold).augment(gold)]
        ['the band Suede split in May here']
    """

    candidates: PositiveInt = 4
    keywords: Literal["attention", "random", "none"] = "attention"
    keyword_ratio: Probability = 0.7
    keep_function_words: bool = True
    num_attention_layers: PositiveInt = 4
    mask_ratio: Probability = 0.3
    mixner_probability: Probability = 0.0
    num_neighbors: PositiveInt = 5
    decoding: Literal["sample", "beam_search"] = "sample"
    num_beams: PositiveInt = 1
    top_k: PositiveInt = 10
    max_new_tokens: PositiveInt = 256
    stop_words: StopWords | None = "en"
    mentions: Literal["exact", "labelled"] = field(default="exact", metadata=ONLY_IF_SET)
    unlisted_mentions: Literal["drop", "keep"] = field(default="drop", metadata=ONLY_IF_SET)
    tagger: Tagger | str = "linear"
    encoder: Encoder | str = "minilm"
    preset: Literal["starter", "paper"] = "starter"
    tagger_: Tagger = field(init=False, repr=False)
    encoder_: Encoder = field(init=False, repr=False)

    presets = read_presets("aclm")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="aclm",
        long_name="attention-map-aware-generation",
        summary="sentences regenerated around their mentions and keywords by a fine-tuned generator",
        paper="Ghosh et al. 2023, ACLM: A Selective-Denoising based Generative Data Augmentation Approach for "
        "Low-Resource Complex NER",
        keeps_mentions=False,
        nested=False,
        discontinuous=False,
        needs_fit=True,
        needs_mentions=True,
        writes_words=True,
        wrong_labels=(2, 30),
        needs=("generator", "tagger", "encoder"),
        cost="fine-tuning a tagger and a generator (minutes per hundred sentences on a CPU), then seconds per sentence",
    )

    def _uses_backend(self, kind: str) -> bool:
        if kind == "tagger":
            return self.keywords == "attention"
        return kind != "encoder" or self.mixner_probability > 0

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = sorted(corpus, key=lambda s: s.fingerprint())  # the result does not depend on the order of the corpus
        self.labels_ = sorted({mention.label for sentence in gold for mention in sentence.mentions})
        label_texts = label_tokens(self.labels_)
        self._markers = {MASK, *label_texts}
        usable = distinct_sentences(s for s in gold if s.mentions and self._markers.isdisjoint(s.tokens))
        templates = self._templates(gold, usable)
        if self.keep_function_words and not self._is_prompted:
            templates = [t._replace(function_words=self._function_words(t.sentence)) for t in templates]
        self.templates_ = dict(zip((s.fingerprint() for s in usable), templates, strict=True))
        known = self._known = KnownMentions(gold)
        is_checked = self.unlisted_mentions == "drop"
        fragments = [f for s in usable for g in group_mentions(s) for f in g.fragments] if self._is_prompted else []
        self.texts_ = GeneratedTexts(gold, fragments, known if is_checked else None)
        self.neighbors_ = self._neighbors(usable) if self.mixner_probability and len(usable) > 1 else {}
        self._unwanted = [MASK, *unwanted_labels(gold, label_texts), *(known.texts() if is_checked else ())]
        self.trained_ = None
        if not usable or self._is_prompted:
            return
        streams = Streams(self.seed, f"{self.name} learning")
        targets = [self._join(chain.from_iterable(wrap_tokens(s))) for s in usable]

        def pairs(epoch: int) -> list[tuple[str, str]]:
            rngs = (streams.stream(s.fingerprint().hex(), epoch + 1) for s in usable)
            masked = [mask_keywords([t], rng, self.mask_ratio) for t, rng in zip(templates, rngs, strict=True)]
            return list(zip(map(self._join, masked), targets, strict=True))

        key = [(s.fingerprint(), *t[1:]) for s, t in zip(usable, templates, strict=True)]
        markers = {MASK: "blank", **label_texts}
        languages = self._languages(usable)
        self.trained_ = self._train(self.generator_, pairs, (key, self.mask_ratio), markers, **languages)

    def _templates(self, gold: list[Sentence], usable: list[Sentence]) -> list[Template]:
        if self.keywords == "none" or not usable:  # a corpus without mentions is reported by the base class
            return [Template(s, ()) for s in usable]
        if self.keywords == "random":
            streams = Streams(self.seed, f"{self.name} keywords")
            templates = []
            for s in usable:
                words, rng = self._candidates(s), streams.stream(s.fingerprint().hex(), 1)
                count = min(len(words), self._num_keywords(s))
                templates.append(Template(s, tuple(sorted({i for _ in s.mentions for i in rng.sample(words, count)}))))
            return templates
        if not hasattr(self.tagger_, "attentions"):
            raise ParameterError(
                f"the tagger {self.tagger_.name} has no attentions", remedy='use linear, or keywords="random"'
            )
        self.tagger_.fit(gold)
        return [Template(attention.sentence, attention.keywords) for attention in self._attention_maps(usable)]

    def _num_keywords(self, sentence: Sentence) -> int:
        """Return the number of keywords of each mention."""
        return math.ceil(self.keyword_ratio * sum(sentence.outside_mask()))

    def _candidates(self, sentence: Sentence) -> list[int]:
        """Return the positions of words outside mentions that are neither punctuation nor stop words."""
        stop = stop_words(self.stop_words)
        return [
            i
            for i, (token, outside) in enumerate(zip(sentence.tokens, sentence.outside_mask(), strict=True))
            if outside and any(map(is_word_character, token)) and token.lower() not in stop
        ]

    def _function_words(self, sentence: Sentence) -> tuple[int, ...]:
        """Return the positions of punctuation and stop words outside mentions, and of the first word in any case."""
        content = set(self._candidates(sentence))
        return tuple(i for i, out in enumerate(sentence.outside_mask()) if out and (not i or i not in content))

    def _attention_maps(self, sentences: Sequence[Sentence]) -> list[AttentionMap]:
        encoder = cast("Encoder", self.tagger_)
        matrices = encoder.attentions([s.tokens for s in sentences], self.num_attention_layers)
        return [
            AttentionMap(s, weights, select_keywords(s, weights.tolist(), self._num_keywords(s), self._candidates(s)))
            for s, weights in zip(sentences, matrices, strict=True)
        ]

    def attention_map(self, sentence: Sentence) -> AttentionMap:
        """Return what the mentions of a sentence attend to in the fitted tagger (section 3.1 of the paper).

        Args:
            sentence: a sentence with mentions.

        Returns:
            The attention weights and the keywords; `entaug.report.draw_attention_map` draws them.

        Raises:
            ParameterError: the method is not fitted, or does not select keywords by attention.
        """
        self.check_ready()
        if self.keywords != "attention":
            raise ParameterError(f'{self.name} has no attention map with keywords="{self.keywords}"')
        return self._attention_maps([sentence])[0]

    def _neighbors(self, usable: list[Sentence]) -> dict[bytes, list[Sentence]]:
        """Return for each sentence those with the nearest vectors, the nearest first."""
        vectors = self.encoder_.sentence_vectors([detokenize(s.tokens, s.spaces) for s in usable])
        neighbors = {}
        for i, sentence in enumerate(usable):
            cosines = (vectors @ vectors[i]).tolist()
            order = sorted((j for j in range(len(usable)) if j != i), key=lambda j: (-cosines[j], j))
            neighbors[sentence.fingerprint()] = [usable[j] for j in order[: self.num_neighbors]]
        return neighbors

    def _join(self, parts: Iterable[str]) -> str:
        return join_parts(parts, self._markers)

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _plan(self, request: Request) -> TextPlan | Rejection:
        sentence, rng, *_ = request
        if not sentence.mentions or (self.trained_ is None and not self._is_prompted):
            return NO_CANDIDATE
        key = sentence.fingerprint()
        if key not in self.templates_:
            return NOT_SEEN if self._markers.isdisjoint(sentence.tokens) else _HAS_LABELS
        templates = [self.templates_[key]]
        is_joined = rng.random() < self.mixner_probability
        if is_joined and (neighbors := self.neighbors_.get(key)):
            templates.append(self.templates_[neighbors[rng.randrange(len(neighbors))].fingerprint()])
        # A text that keeps most words is too similar to its source.
        length = max(len(template.sentence) for template in templates)
        minimum = int((1 - self.max_similarity) * length) + 1 if self.keep_function_words else 0
        parts = mask_keywords(templates, rng, self.mask_ratio, minimum)
        text = self._with_gaps(parts) if self._is_prompted else self._join(parts)
        required: list[str | Gap] = []  # in the order of the template
        for is_blank, run in groupby(parts, key=lambda part: isinstance(part, Blank)):
            if not is_blank:
                required.append(self._join(run))
            elif self.keep_function_words:  # without them what is masked may be half of a sentence
                required += [part.gap() for part in run if isinstance(part, Blank)]
        return TextPlan(sentence, text, rng.getrandbits(32), [required], basis=templates)

    def _decoding(self) -> dict[str, Any]:
        # With function words a template has the first word of its sentence.
        return {
            "strategy": self.decoding,
            "num_beams": self.num_beams,
            "top_k": self.top_k,
            "begins_with_required": self.keep_function_words,
        }

    def _with_gaps(self, parts: Sequence[str]) -> str:
        """Return a template without label tokens."""
        return detokenize(
            [_GAP if part == MASK else part for part in parts if part == MASK or part not in self._markers]
        )

    def _query(self, plan: TextPlan) -> Query:
        """Return the query for a template; its own sentences are never examples."""
        rng = Random(plan.seed)
        own = {template.sentence.fingerprint() for template in plan.basis}
        others = [template for key, template in self.templates_.items() if key not in own]
        turns = []
        for other in rng.sample(others, min(self.num_examples, len(others))):
            gaps = self._with_gaps(mask_keywords([other], rng, self.mask_ratio))
            turns.append(({"template": gaps}, detokenize(other.sentence.tokens)))
        return Query({"template": plan.text, "labels": ", ".join(self.labels_)}, turns, rng.getrandbits(31))

    def _read(self, plan: TextPlan, text: str) -> Sentence | Rejection:
        sentences = [template.sentence for template in plan.basis]
        mentions: Sequence[Mention] | str
        if self._is_prompted:
            tokens = self.texts_.tokenize(text.replace(_GAP, " "))
            mentions = match_mentions(tokens, list(chain.from_iterable(map(group_mentions, sentences))), self._known)
        else:
            parsed = self._tokens_and_mentions(plan.basis, text)
            if isinstance(parsed, Rejection):
                return parsed
            tokens, mentions = parsed
            expected = sum(map(len, sentences))
            if self.constrained and self.keep_function_words and abs(len(tokens) - expected) > _MAX_DIFFERENCE:
                return _OTHER_LENGTH
        others = tuple(sentence.key for sentence in sentences[1:])
        return self._new_sentence(plan.source, tokens, mentions, sentences, others, template=plan.text)

    def _tokens_and_mentions(
        self, templates: Sequence[Template], text: str
    ) -> tuple[tuple[str, ...], tuple[Mention, ...]] | Rejection:
        """Return tokens and mentions of a text; with ``mentions="exact"`` they must be those of its templates."""
        wanted: dict[tuple[str, str], list[tuple[str, ...]]] = defaultdict(list)
        printed: set[str] = set()  # tokens of mentions as in running text
        for template in templates:
            for mention in template.sentence.mentions:
                words = template.sentence.mention_tokens(mention)
                texts = [detokenize([word]) for word in words]
                printed.update(texts)
                wanted[mention.label, " ".join(texts)].append(words)
        parsed = parse_wrapped(text.replace(MASK, " "), self.labels_, self.texts_.tokenize, printed)
        if parsed is None:
            return Rejection(INVALID_LABELS)
        tokens, mentions = list(parsed[0]), parsed[1]
        if not tokens:
            return UNFINISHED
        expected = Counter({key: len(occurrences) for key, occurrences in wanted.items()})
        actual = Counter((m.label, " ".join(tokens[m.start : m.end])) for m in mentions)
        if self.mentions == "labelled" and not mentions:
            return _MENTION_LOST
        if self.mentions == "exact" and actual != expected:
            return _MENTION_LOST if expected - actual else _MENTION_ADDED
        # The corpus may have another form of brackets or quotes than running text, as in treebanks.
        for m in mentions:
            if same := wanted.get((m.label, " ".join(tokens[m.start : m.end]))):
                tokens[m.start : m.end] = same.pop(0)
        return tuple(tokens), mentions
