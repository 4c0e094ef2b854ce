"""CASSI: subtrees exchanged between similar sentences (Surana et al., Findings of EMNLP 2023)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from entaug.backends.protocols import CausalLM, DependencyParser, Encoder, MaskedLM, Parse
from entaug.config.params import NonNegativeInt, PositiveInt
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.provenance import Provenance
from entaug.core.rng import Streams
from entaug.errors import InputError, ParameterError
from entaug.methods.base import NOT_SEEN, Augmenter, MethodInfo, Rejection, Request
from entaug.methods.cassi.forecast import ScoreForecaster
from entaug.methods.cassi.pairing import Pairing, PairingOptions, assign_partners, rank_partners
from entaug.methods.cassi.subtrees import (
    Candidate,
    Subtrees,
    exchange_candidates,
    find_subtrees,
    j_score,
    phrase_types,
    strip_punctuation,
    with_numbers,
)
from entaug.methods.paper_presets import CASSI_PAPER
from entaug.methods.replacement import MentionReplacement
from entaug.methods.shared.prose_detection import NOT_PROSE, SentenceKinds
from entaug.methods.shared.span_exchange import CaseAdjuster, batches_by_candidates
from entaug.methods.types import DUPLICATE
from entaug.metrics.likelihood import CandidateSet, Selection, count_words, select_best, select_best_left_to_right

__all__ = ["CASSI"]

_TOO_SHORT = Rejection("shorter than the minimum", final=True)
_NO_PARTNER = Rejection("no partner is left for an exchange", final=True)
_NO_SUBTREE = Rejection("no subject or object subtree, and no mention that can be replaced", final=True)
_ONLY_OUTCOME = DUPLICATE._replace(final=True)

_MAX_CANDIDATES = 4096  # candidates scored together
# Two candidates are taken to differ if their intervals of this many standard deviations do not overlap. Of 55 pairs of
# three corpora 2.5 gave 54 selections that 4 gave, for two thirds of the rows of the model; 1.5 gave 51.
_CONFIDENCE = 2.5


@dataclass(kw_only=True, eq=False)
class CASSI(Augmenter):
    """Exchange subject or object subtrees between similar sentences, and select the most fluent exchange.

    Each sentence is paired with the training sentences most similar to it by BERTScore, one per copy, and no two
    sentences are paired twice. Every subject subtree of one sentence is exchanged for every subject subtree of the
    other, in both directions; objects and complements likewise. The `top_k` candidates with the highest
    pseudo-log-likelihood per word are kept. Of these, the candidate whose words agree most with both sources (J-score)
    is selected. If a sentence has no such subtree, all its mentions are replaced instead. Mentions move with their
    subtree. Exchanges that would cut a mention are left out; with `split_mentions` contiguous mentions of flat
    sentences may be cut.

    Partners are assigned in rounds: all first partners before all second ones. The order does not depend on the order
    of the corpus. Sentences between which no exchange is possible are not paired.

    Args:
        top_k: the number of most likely candidates among which one is selected.
        pairing: how partners are ranked: ``"bertscore"``; ``"embedding"``, by the cosine of sentence vectors;
            ``"random"``; or ``"off-by-one"``, which reproduces an indexing error of the published code.
        scorer: ``"masked"``, as in the paper; or ``"causal"``, a left-to-right model with one pass per candidate
            instead of one per sub-word.
        selection: how one of the `top_k` is selected: ``"jscore"``, the ``"best"`` by likelihood, or ``"random"``.
        exact: score every candidate that could be selected. By default candidates whose estimated score is clearly
            worse are discarded without scoring, which costs a third and hardly ever changes the selection; then the
            likelihood of the selected one (`lm_score`) is not known. Only for the masked scorer.
        preset: ``"starter"``, models that are available without the hub; ``"paper"``, the models of the paper (English;
            for other languages set `dependency_parser`); ``"authors"``, the paper with the additions of the published
            code. The preset sets every parameter that is not given (``entaug list methods cassi``).
        min_tokens: the minimum number of tokens of sentences and candidates; 1 (starter, paper), 6 (authors).
        shortlist_size: the number of nearest sentences by sentence vector that are compared by BERTScore; 0 for all.
            The default is all in a corpus of up to 5,000 sentences, and 100 in larger ones.
        encoder_layer: the layer of the encoder that BERTScore uses; none for the last.
        include_punctuation: whether BERTScore includes punctuation in pairing (starter and paper: yes).
        split_mentions: whether an exchange may cut a mention of a flat sentence; each part then keeps the label, as in
            the paper (starter: no, because the parts are rarely mentions: "the Great Fire of children").
        same_phrase_type: whether subtrees are exchanged only for subtrees of the same phrase type: noun phrases, finite
            clauses, infinitives, clauses after prepositions, adjectives (starter: yes; the paper also replaces nouns by
            clauses: "I'm going home to there's a lot of people").
        normalize_boundaries: whether full stops and commas at the ends of a subtree are not exchanged, and words that
            move to or from the beginning of a sentence are recased (starter: yes).
        same_number: whether subjects are exchanged only for subjects of the same grammatical number, so that the verb
            agrees (starter: yes).
        skip_headlines: whether headlines and table rows are neither changed nor exchanged with (starter: yes); see
            `entaug.methods.shared.prose_detection`.
        encoder: an `Encoder` or its name, for pairing (starter: minilm).
        masked_lm: a `MaskedLM` or its name (starter: mpnet-mlm).
        causal_lm: a `CausalLM` or its name; used with ``scorer="causal"``.
        dependency_parser: a `DependencyParser`, the name of a spaCy pipeline (starter: en_core_web_sm), or a CoNLL-U
            file with the trees, ending in ``.conllu``.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeDependencyParser, FakeEncoder, FakeMaskedLM
        >>> gold = [
        ...     Sentence("Ada sings loud songs".split(), [Mention("PER", [(0, 1)])]),
        ...     Sentence("Bo knows tales of Rome".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(4, 5)])]),
        ... ]
        >>> fakes = {"encoder": FakeEncoder(), "masked_lm": FakeMaskedLM(), "dependency_parser": FakeDependencyParser()}
        >>> [(" ".join(s.tokens), s.iob()) for s in CASSI(**fakes).fit(gold).augment(gold)]
        [('Ada sings tales of Rome', ['B-PER', 'O', 'O', 'O', 'B-LOC'])]
    """

    top_k: PositiveInt = 5
    pairing: Pairing = "bertscore"
    scorer: Literal["masked", "causal"] = "masked"
    selection: Literal["jscore", "best", "random"] = "jscore"
    exact: bool = False
    preset: Literal["starter", "paper", "authors"] = "starter"
    min_tokens: PositiveInt | None = None
    shortlist_size: NonNegativeInt | None = None
    encoder_layer: NonNegativeInt | None = None
    include_punctuation: bool | None = None
    split_mentions: bool | None = None
    same_phrase_type: bool | None = None
    normalize_boundaries: bool | None = None
    same_number: bool | None = None
    skip_headlines: bool | None = None
    encoder: Encoder | str | None = None
    masked_lm: MaskedLM | str | None = None
    causal_lm: CausalLM | str = "smollm2"
    dependency_parser: DependencyParser | str | None = None
    encoder_: Encoder = field(init=False, repr=False)
    masked_lm_: MaskedLM = field(init=False, repr=False)
    causal_lm_: CausalLM = field(init=False, repr=False)
    dependency_parser_: DependencyParser = field(init=False, repr=False)

    info: ClassVar[MethodInfo] = MethodInfo(
        name="cassi",
        long_name="contextual-and-semantic-structure-based-interpolation",
        summary="subject and object subtrees exchanged between similar sentences",
        paper="Surana et al. 2023, CASSI: Contextual and Semantic Structure-based Interpolation Augmentation for "
        "Low-Resource NER",
        keeps_mentions=False,
        draws=False,
        needs_fit=True,
        needs=("encoder", "masked_lm", "dependency_parser"),
        may_need=("causal_lm",),
        cost="a few hundred inputs of a masked language model per sentence, or a few dozen of a causal one",
    )

    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "starter": {
            "min_tokens": 1,
            "include_punctuation": True,
            "split_mentions": False,
            "same_phrase_type": True,
            "normalize_boundaries": True,
            "same_number": True,
            "skip_headlines": True,
            "encoder": "minilm",
            "masked_lm": "mpnet-mlm",
            "dependency_parser": "en_core_web_sm",
        },
        "paper": CASSI_PAPER,
        "authors": {
            "min_tokens": 6,
            "include_punctuation": False,
            "split_mentions": True,
            "same_phrase_type": False,
            "normalize_boundaries": False,
            "same_number": False,
            "skip_headlines": False,
            "encoder_layer": 9,
            "encoder": "FacebookAI/xlm-roberta-base",
            "masked_lm": "google-bert/bert-base-multilingual-cased",
            "dependency_parser": "en_core_web_trf",
        },
    }

    def _uses_backend(self, kind: str) -> bool:
        if kind == "encoder":
            return self.pairing != "random"
        return kind in {"dependency_parser", f"{self.scorer}_lm"}

    def _load(self) -> None:
        super()._load()
        if self.scorer == "masked":
            self._forecaster = ScoreForecaster(self.masked_lm_)

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        # The result must not depend on the order of the corpus, nor on the order of equal sentences.
        in_order = sorted(corpus, key=lambda s: (s.fingerprint(), s.id or "", s.spaces or ()), reverse=True)
        gold = list({s.fingerprint(): s for s in in_order}.values())[::-1]
        long = [sentence for sentence in gold if len(sentence) >= self._min_length]
        parses = self.dependency_parser_.parse([sentence.tokens for sentence in long])
        parsed = [_ParsedSentence(s, self._subtrees(s, p), p.tags) for s, p in zip(long, parses, strict=True)]
        with_subtrees = [item for item in parsed if item.subtrees.subjects or item.subtrees.objects]
        # Headlines and rows of tables are not parsed well, nor do their parts read well elsewhere.
        kinds = SentenceKinds(gold) if self.skip_headlines else None
        self.pool_ = [item for item in with_subtrees if kinds is None or kinds.kind(item.sentence) == "prose"]
        self._index = {item.sentence.fingerprint(): i for i, item in enumerate(self.pool_)}
        self._left_alone = {item.sentence.fingerprint() for item in with_subtrees} - self._index.keys()
        self._without_subtree = {s.fingerprint(): s for s in gold if s.fingerprint() not in self._index}
        self._case = CaseAdjuster(gold, self._is_name)
        rankings = rank_partners([item.sentence for item in self.pool_], self.pairing, self._pairing_options())
        self.partners_ = assign_partners(rankings, self.copies, self._can_exchange)
        self._fitted_copies = self.copies
        self._fallback: MentionReplacement | None = (
            MentionReplacement(p=1.0)
            if self.preset == "starter"
            else MentionReplacement(p=1.0, donors="any", adjust_case=False, replace_nested=False)
        )
        try:
            self._fallback._fit(gold)  # noqa: SLF001
        except InputError:  # no label has two different mentions
            self._fallback = None

    @property
    def _min_length(self) -> int:
        return self.min_tokens or 1

    def _subtrees(self, sentence: Sentence, parse: Parse) -> Subtrees:
        subtrees = find_subtrees(parse)
        if self.same_phrase_type:
            subtrees = subtrees._replace(types=phrase_types(parse))
        if self.same_number:
            subtrees = with_numbers(subtrees, parse)
        return strip_punctuation(subtrees, sentence.tokens) if self.normalize_boundaries else subtrees

    def _pairing_options(self) -> PairingOptions:
        streams = Streams(self.seed, self.name)
        return PairingOptions(
            None if self.pairing == "random" else self.encoder_,
            self.encoder_layer,
            self.shortlist_size,
            bool(self.include_punctuation),
            lambda sentence: streams.stream(sentence.fingerprint().hex(), 0),
        )

    def _can_exchange(self, one: int, other: int) -> bool:
        """Whether an exchange between two sentences gives a new sentence."""
        return next(self._candidates(one, other), None) is not None

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        others = [s for key, s in self._without_subtree.items() if key not in self._left_alone]
        without = sum(len(s) >= self._min_length for s in others)
        short = len(others) - without
        notes = super().notes()
        if without:
            notes.append(f"{without} sentences have no subject or object subtree; their mentions are replaced instead")
        if short:
            notes.append(f"{short} sentences are shorter than {self.min_tokens} tokens and are left out")
        if self._left_alone:
            notes.append(f"{len(self._left_alone)} headlines and table rows are left alone")
        return notes

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        prepared = [self._prepare(request) for request in requests]
        results = [item for item in prepared if not isinstance(item, _Pair)]
        pairs = {i: item for i, item in enumerate(prepared) if isinstance(item, _Pair)}
        selected: dict[int, Sentence] = {}
        for batch in batches_by_candidates(((i, pair.candidates) for i, pair in pairs.items()), _MAX_CANDIDATES):
            selected.update(zip(batch, self._select([pairs[i] for i in batch]), strict=True))
        others = iter(results)
        return [selected[i] if i in selected else next(others) for i in range(len(requests))]

    def _prepare(self, request: Request) -> Sentence | Rejection | _Pair:
        """Return a pair with its candidates, or the result if there is no pair."""
        key = request.sentence.fingerprint()
        index = self._index.get(key)
        if index is None:
            if key not in self._without_subtree:
                return NOT_SEEN
            if key in self._left_alone:
                return NOT_PROSE
            return _TOO_SHORT if len(request.sentence) < self._min_length else self._replace_mentions(request)
        if request.attempt:
            return _ONLY_OUTCOME
        if request.copy > self._fitted_copies:
            raise ParameterError(
                f"cassi was fitted for {self._fitted_copies} copies, not {self.copies}", remedy="fit it again"
            )
        partners = self.partners_[index]
        if request.copy > len(partners):
            return _NO_PARTNER
        partner = partners[request.copy - 1]
        sources = self.pool_[index].sentence, self.pool_[partner].sentence
        return _Pair(sources, request, list(self._candidates(index, partner)))

    def _replace_mentions(self, request: Request) -> Sentence | Rejection:
        if self._fallback is None:
            return _NO_SUBTREE
        result = self._fallback._rewrite(request.sentence, request.rng)  # noqa: SLF001
        if isinstance(result, Rejection):
            return _NO_SUBTREE
        if len(result) < self._min_length:
            return _TOO_SHORT._replace(final=False)
        return result.with_(provenance=Provenance(details={"fallback": MentionReplacement.name}))

    def _candidates(self, one: int, other: int) -> Iterator[Candidate]:
        """Yield the distinct exchanges that differ from both sources in more than case."""
        a, b = self.pool_[one], self.pool_[other]
        seen = {_content(a.sentence), _content(b.sentence)}
        tokens = self._case.tokens if self.normalize_boundaries else None
        for candidate in exchange_candidates(
            a.sentence, b.sentence, a.subtrees, b.subtrees, tokens, split_mentions=bool(self.split_mentions)
        ):
            content = _content(candidate.sentence)
            if content not in seen and len(candidate.sentence) >= self._min_length:
                seen.add(content)
                yield candidate

    def _is_name(self, sentence: Sentence, position: int) -> bool:
        """Whether a word is always capitalised, by its part of speech."""
        tag = self.pool_[self._index[sentence.fingerprint()]].tags[position]
        return tag == "PROPN" or (tag == "PRON" and len(sentence.tokens[position]) == 1)

    def _select(self, pairs: Sequence[_Pair]) -> list[Sentence]:
        """Return the selected candidate of each pair."""
        n_best = 1 if self.selection == "best" else self.top_k
        sets = [self._candidate_set(pair) for pair in pairs]
        if self.scorer == "causal":
            selections = select_best_left_to_right(sets, n_best, self.causal_lm_)
        else:
            work = [(pair.sources, pair.candidates, of) for pair, of in zip(pairs, sets, strict=True)]
            confidence = None if self.exact else _CONFIDENCE
            selections = select_best(list(self._forecaster.forecast(work)), n_best, self.masked_lm_, confidence)
        return [_selected(pair, selection) for pair, selection in zip(pairs, selections, strict=True)]

    def _candidate_set(self, pair: _Pair) -> CandidateSet:
        sentences = [candidate.sentence for candidate in pair.candidates]
        if self.selection == "jscore":
            one, other = (source.tokens for source in pair.sources)
            preferences = [j_score(s.tokens, one, other) for s in sentences]
        else:
            preferences = [pair.request.rng.random() for _ in sentences]
        texts = [detokenize(s.tokens, s.spaces) for s in sentences]
        return CandidateSet(texts, [count_words(s.tokens) for s in sentences], preferences)


class _ParsedSentence(NamedTuple):
    """A sentence with its subtrees, and the part of speech of each token."""

    sentence: Sentence
    subtrees: Subtrees
    tags: tuple[str, ...]


class _Pair(NamedTuple):
    """Two sentences and the candidates from their exchanges."""

    sources: tuple[Sentence, Sentence]
    request: Request
    candidates: list[Candidate]


def _content(sentence: Sentence) -> object:
    """Return a key that identifies the content of a sentence, ignoring case."""
    return tuple(map(str.lower, sentence.tokens)), sentence.mentions


def _selected(pair: _Pair, selection: Selection) -> Sentence:
    """Return the selected sentence, with the exchange and its scores in the provenance."""
    candidate = pair.candidates[selection.chosen]
    one, other = pair.sources
    details = {
        "frame": candidate.frame,
        "role": candidate.role,
        "out": list(candidate.removed),
        "into": list(candidate.inserted),
        "graft": list(candidate.new_span),
        "j_score": round(j_score(candidate.sentence.tokens, one.tokens, other.tokens), 4),
        "candidates": len(pair.candidates),
    }
    if selection.score is not None:
        details |= {"lm_score": round(selection.score, 4), "rank": selection.best.index(selection.chosen) + 1}
    return candidate.sentence.with_(provenance=Provenance(sources=(other.key,), details=details))
