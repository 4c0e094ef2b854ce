"""ACLM: sentences regenerated around their mentions from templates (Ghosh et al., ACL 2023), with mixner."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, Literal, cast

from entaug.backends.protocols import Encoder, Generator, Tagger
from entaug.config.params import PositiveInt, Probability
from entaug.config.presets import ONLY_IF_SET
from entaug.core.alignment import detokenize
from entaug.core.data import Mention, Sentence
from entaug.core.rng import Streams
from entaug.core.stopwords import StopWords, stop_words
from entaug.errors import ParameterError
from entaug.methods.base import NO_CANDIDATE, NOT_SEEN, MethodInfo, Rejection, Request
from entaug.methods.paper_presets import ACLM_PAPER
from entaug.methods.shared.generative import (
    TOO_SIMILAR,
    UNFINISHED,
    GeneratedTexts,
    GenerativeAugmenter,
    distinct_sentences,
    replace_tokens,
    token_similarity,
)
from entaug.methods.shared.linearization import (
    INVALID_LABELS,
    join_parts,
    label_tokens,
    parse_wrapped,
    unwanted_labels,
    wrap_mentions,
    wrap_tokens,
)
from entaug.methods.shared.mention_matching import KnownMentions, group_mentions, match_mentions
from entaug.methods.shared.prompting import PromptedAugmenter, Query
from entaug.methods.shared.templates import (
    MASK,
    AttentionMap,
    Template,
    candidate_positions,
    mask_keywords,
    select_keywords,
)

__all__ = ["ACLM"]

_GAP = "___"  # a mask in a prompt
_MIN_RECALL = 0.2  # minimum recall of a useful tagger on its own training mentions

_MENTION_LOST = Rejection("a mention of the template is missing or changed")
_MENTION_ADDED = Rejection("a mention that is not in the template")
_HAS_LABELS = Rejection("its words look like label tokens", final=True)


@dataclass(kw_only=True, eq=False)
class ACLM(GenerativeAugmenter, PromptedAugmenter):
    """Regenerate sentences around their mentions and keywords with a fine-tuned generator.

    A tagger is trained on the training sentences; the words that mentions attend to most are keywords. A template
    contains mentions, with label tokens around each of their tokens, and keywords; all other tokens are masked. The
    generator is trained to restore sentences from templates in which some keywords are also masked, in each epoch
    different ones. New sentences are generated from the same templates, again with some keywords masked, and some from
    two joined templates (mixner). A text is accepted only if its label tokens are consistent, its mentions are exactly
    those of the template, and no known mention occurs in it without a label.

    An instruct model (a server or a GGUF file) is not trained: it is asked by a prompt to fill the gaps of a template,
    with templates and sentences of the corpus as examples. Its texts have no label tokens; they are accepted if they
    contain each mention of the template exactly once, and no other known mention.

    Label tokens can represent only flat mentions. Sentences without mentions have no template.

    Args:
        keywords: how keywords are selected: by ``"attention"``; ``"random"``, the same number; or ``"none"``.
        keyword_ratio: the share of the words outside mentions that become keywords for each mention, rounded up.
        num_attention_layers: the number of layers, from the last, whose attentions are summed.
        mask_ratio: the mean share of keywords that are also masked; the standard deviation is one keyword.
        mixner_probability: the probability that a template is joined with that of a similar sentence. (The paper draws
            from a normal distribution around 0.5 and joins above 0.7, without giving its standard deviation; 0.8, as in
            its code, corresponds to 0.4.)
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
    mentions: Literal["exact", "labelled"] = field(default="exact", metadata=ONLY_IF_SET)
    unlisted_mentions: Literal["drop", "keep"] = field(default="drop", metadata=ONLY_IF_SET)
    tagger: Tagger | str = "linear"
    encoder: Encoder | str = "minilm"
    preset: Literal["starter", "paper"] = "starter"
    tagger_: Tagger = field(init=False, repr=False)
    encoder_: Encoder = field(init=False, repr=False)

    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "starter": {"generator": "smollm2", "epochs": 10, "batch_size": 8, "num_beams": 1, "constrained": True},
        "paper": ACLM_PAPER,
    }

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
        self.tagger_recall_: float | None = None
        self.templates_ = dict(zip((s.fingerprint() for s in usable), self._templates(gold, usable), strict=True))
        known = KnownMentions(gold)
        self._known = known
        fragments = [f for s in usable for g in group_mentions(s) for f in g.fragments] if self._is_prompted else []
        self.texts_ = GeneratedTexts(gold, fragments, known if self.unlisted_mentions == "drop" else None)
        self.neighbors_ = self._neighbors(usable) if self.mixner_probability and len(usable) > 1 else {}
        unlisted = known.texts() if self.unlisted_mentions == "drop" else []
        self._unwanted = [MASK, *unwanted_labels(gold, label_texts), *unlisted]
        self.trained_: Generator | None = None
        if not usable or self._is_prompted:
            return
        streams = Streams(self.seed, f"{self.name} learning")
        targets = [self._join([part for parts in wrap_tokens(s) for part in parts]) for s in usable]

        def pairs(epoch: int) -> list[tuple[str, str]]:
            pairs_of_epoch = []
            for sentence, target in zip(usable, targets, strict=True):
                key = sentence.fingerprint()
                rng = streams.stream(key.hex(), epoch + 1)
                masked = mask_keywords([self.templates_[key]], rng, self.mask_ratio)
                pairs_of_epoch.append((self._join(masked), target))
            return pairs_of_epoch

        key = [(s.fingerprint(), t.keywords) for s, t in zip(usable, self.templates_.values(), strict=True)]
        markers = {MASK: "blank", **label_texts}
        languages = self._languages(usable)
        self.trained_ = self._train(self.generator_, pairs, (key, self.mask_ratio), markers, **languages)

    def _templates(self, gold: list[Sentence], usable: list[Sentence]) -> list[Template]:
        if self.keywords == "none" or not usable:  # a corpus without mentions is reported by the base class
            return [Template(s, ()) for s in usable]
        if self.keywords == "random":
            candidates = [self._candidates(s) for s in usable]
            streams = Streams(self.seed, f"{self.name} keywords")
            rngs = [streams.stream(s.fingerprint().hex(), 1) for s in usable]
            return [
                Template(s, tuple(sorted(rng.sample(positions, min(len(positions), self._num_keywords(s))))))
                for s, rng, positions in zip(usable, rngs, candidates, strict=True)
            ]
        if not hasattr(self.tagger_, "attentions"):
            raise ParameterError(
                f"the tagger {self.tagger_.name} has no attentions", remedy='use linear, or keywords="random"'
            )
        tagger = self.tagger_.fit(gold)
        hits = sum(len(set(s.mentions) & set(p.mentions)) for s, p in zip(usable, tagger.predict(usable), strict=True))
        self.tagger_recall_ = hits / max(1, sum(len(s.mentions) for s in usable))
        return [Template(attention.sentence, attention.keywords) for attention in self._attention_maps(usable)]

    def _num_keywords(self, sentence: Sentence) -> int:
        """Return the number of keywords of each mention."""
        return math.ceil(self.keyword_ratio * sum(sentence.outside_mask()))

    def _candidates(self, sentence: Sentence) -> list[int]:
        """Return the positions of the words that may be keywords."""
        return candidate_positions(sentence, stop_words(self.stop_words))

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
            The attention weights and the keywords; `entaug.draw_attention_map` draws them.

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

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        notes = super().notes()
        if self.tagger_recall_ is None or self.tagger_recall_ >= _MIN_RECALL:
            return notes
        found = f"the tagger recalls only {self.tagger_recall_:.0%} of its training mentions"
        return [*notes, f'{found}, so keywords are hardly better than random; try another tagger, or keywords="random"']

    def _join(self, parts: Sequence[str]) -> str:
        return join_parts(parts, self._markers)

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        results: list[Sentence | Rejection] = [NO_CANDIDATE] * len(requests)
        if self.trained_ is None and not self._is_prompted:
            return results
        indices: list[int] = []
        template_lists: list[list[Template]] = []
        inputs: list[str] = []
        seeds: list[int] = []
        for i, (sentence, rng, *_) in enumerate(requests):
            if not sentence.mentions:
                continue
            key = sentence.fingerprint()
            if key not in self.templates_:
                results[i] = NOT_SEEN if self._markers.isdisjoint(sentence.tokens) else _HAS_LABELS
                continue
            templates = [self.templates_[key]]
            is_joined = rng.random() < self.mixner_probability
            neighbors = self.neighbors_.get(key)
            if is_joined and neighbors:
                templates.append(self.templates_[neighbors[rng.randrange(len(neighbors))].fingerprint()])
            indices.append(i)
            template_lists.append(templates)
            parts = mask_keywords(templates, rng, self.mask_ratio)
            inputs.append(self._with_gaps(parts) if self._is_prompted else self._join(parts))
            seeds.append(rng.getrandbits(32))
        if not indices:
            return results
        if self.trained_ is None:
            queries = [self._query(*given) for given in zip(template_lists, inputs, seeds, strict=True)]
            answers = zip(indices, template_lists, inputs, self._ask(queries), strict=True)
            for i, templates, text, answer in answers:
                if isinstance(answer, Rejection):
                    results[i] = answer
                else:
                    results[i] = self._match(requests[i].sentence, templates, text, answer)
            return results
        decoding = self._decoding(self.decoding, self.num_beams or 1, top_k=self.top_k)
        required = [
            [[self._join(parts)] for template in templates for parts in wrap_mentions(template.sentence)]
            for templates in template_lists
        ]
        languages = self._languages(requests[i].sentence for i in indices)
        generated = self.trained_.generate(
            inputs, decoding, seeds, required if self.constrained else None, self._unwanted, **languages
        )
        for i, templates, text, texts in zip(indices, template_lists, inputs, generated, strict=True):
            results[i] = self._parse(requests[i].sentence, templates, text, texts[0]) if texts else UNFINISHED
        return results

    def _with_gaps(self, parts: Sequence[str]) -> str:
        """Return a template without label tokens."""
        return detokenize(
            [_GAP if part == MASK else part for part in parts if part == MASK or part not in self._markers]
        )

    def _query(self, templates: Sequence[Template], text: str, seed: int) -> Query:
        """Return the query for a template; its own sentences are never examples."""
        rng = Random(seed)
        own = {template.sentence.fingerprint() for template in templates}
        others = [template for key, template in self.templates_.items() if key not in own]
        turns = []
        for other in rng.sample(others, min(self._num_examples, len(others))):
            gaps = self._with_gaps(mask_keywords([other], rng, self.mask_ratio))
            turns.append(({"template": gaps}, detokenize(other.sentence.tokens)))
        return Query({"template": text, "labels": ", ".join(self.labels_)}, turns, rng.getrandbits(31))

    def _match(self, source: Sentence, templates: Sequence[Template], template: str, text: str) -> Sentence | Rejection:
        """Find the mentions of templates in an answer; return a sentence or a rejection."""
        tokens = self.texts_.tokenize(text.replace(_GAP, " "))
        mentions = match_mentions(tokens, [g for t in templates for g in group_mentions(t.sentence)], self._known)
        if isinstance(mentions, str):
            return Rejection(mentions)
        return self._checked(source, templates, template, tokens, mentions)

    def _parse(self, source: Sentence, templates: Sequence[Template], prompt: str, text: str) -> Sentence | Rejection:
        """Parse a generated text; return a sentence or a rejection."""
        parsed = self._tokens_and_mentions(templates, text)
        if isinstance(parsed, Rejection):
            return parsed
        return self._checked(source, templates, prompt, *parsed)

    def _checked(
        self,
        source: Sentence,
        templates: Sequence[Template],
        prompt: str,
        tokens: Sequence[str],
        mentions: Sequence[Mention],
    ) -> Sentence | Rejection:
        """Return the new sentence, unless it is a copy or too similar to a template."""
        if rejection := self.texts_.check(tokens, mentions):
            return rejection
        if any(token_similarity(t.sentence.tokens, tokens) >= self.max_similarity for t in templates):
            return TOO_SIMILAR
        others = tuple(template.sentence.key for template in templates[1:])
        return replace_tokens(source, tokens, mentions, others, template=prompt)

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
