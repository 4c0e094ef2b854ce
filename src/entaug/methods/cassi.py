"""CASSI: subtrees exchanged between similar sentences (Surana et al., Findings of EMNLP 2023).

In order: pairing of similar sentences, subtrees and the candidates of their exchange (section 2 of the paper), an
estimate of the scores of candidates, and the method.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

from annotated_types import Interval

from entaug.backends.dependency_trees import (
    OBJECTS,
    SUBJECTS,
    base_relations,
    head_of,
    phrase_form,
    predicate_words,
    strip_tokens,
    subtree_ranges,
)
from entaug.backends.protocols import CausalLM, DependencyParser, Encoder, MaskedLM, Parse
from entaug.config.params import NonNegativeInt, PositiveInt, Probability
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.alignment import align_subwords, detokenize
from entaug.core.data import Provenance, Sentence
from entaug.core.mentions import Span
from entaug.core.rng import Streams
from entaug.core.spacing import is_word_character
from entaug.errors import InputError, ParameterError
from entaug.methods.base import NOT_SEEN, Augmenter, MethodInfo, Rejection, Request
from entaug.methods.choice import CandidateScorer
from entaug.methods.mention_replacement import MentionReplacement
from entaug.methods.shared.generated_text import distinct_sentences
from entaug.methods.shared.prose_detection import NOT_PROSE, SentenceKinds
from entaug.methods.shared.span_exchange import (
    CaseAdjuster,
    DonorTokens,
    SpanSimilarity,
    exchange_edit,
    has_balanced_brackets,
    is_alike,
    keeps_mentions_whole,
    labels_within,
    unnamed_words,
)
from entaug.methods.types import RunStatistics
from entaug.metrics.bertscore import bertscore_among, nearest_neighbors, pairwise_bertscore
from entaug.metrics.likelihood import CandidateSet, Selection, count_words, select_best, select_best_left_to_right

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


Pairing = Literal["bertscore", "embedding", "random", "off-by-one"]

_LARGE_CORPUS, _DEFAULT_SHORTLIST = 5000, 100


def rank_partners(
    sentences: Sequence[Sentence],
    pairing: Pairing,
    encoder: Encoder | None,
    *,
    layer: int | None = None,
    shortlist_size: int | None = None,
    include_punctuation: bool = True,
    stream: Callable[[Sentence], Random],
) -> list[Iterator[int]]:
    """Rank the other sentences by similarity, for each sentence."""

    def others(own: int, ranking: Iterable[int]) -> Iterator[int]:
        return (other for other in ranking if other != own)

    n = len(sentences)
    if pairing == "random":
        return [others(i, _shuffle(n, stream(sentence))) for i, sentence in enumerate(sentences)]
    assert encoder is not None
    texts = [detokenize(s.tokens, s.spaces) for s in sentences]
    compared = texts if include_punctuation else [_without_punctuation(s) for s in sentences]
    size = shortlist_size
    if size is None:
        size = _DEFAULT_SHORTLIST if n > _LARGE_CORPUS else 0
    if pairing == "embedding":
        vectors = encoder.sentence_vectors(texts)
        if size:
            return [iter(neighbors) for neighbors in nearest_neighbors(vectors, size)]
        return [others(i, argsort_descending(vectors @ vector)) for i, vector in enumerate(vectors)]
    if size and pairing == "bertscore":
        shortlists = [sorted(neighbors) for neighbors in nearest_neighbors(encoder.sentence_vectors(texts), size)]
        scores = bertscore_among(compared, shortlists, encoder, layer=layer)
        return [map(of.__getitem__, argsort_descending(row)) for of, row in zip(shortlists, scores, strict=True)]
    rows = pairwise_bertscore(compared, encoder, layer=layer)
    rankings = [others(i, argsort_descending(row)) for i, row in enumerate(rows)]
    return rankings if pairing == "bertscore" else [_shifted(i, ranking) for i, ranking in enumerate(rankings)]


def _without_punctuation(sentence: Sentence) -> str:
    return detokenize([token for token in sentence.tokens if any(map(is_word_character, token))])


def _shifted(own: int, ranking: Iterable[int]) -> Iterator[int]:
    return (other if other < own else other - 1 for other in ranking)


def _shuffle(n: int, rng: Random) -> Iterator[int]:
    """Yield all numbers below n in random order, drawn lazily."""
    moved: dict[int, int] = {}
    for last in range(n - 1, -1, -1):
        at = rng.randrange(last + 1)
        yield moved.get(at, at)
        moved[at] = moved.get(last, last)


def assign_partners(
    rankings: Sequence[Iterator[int]], count: int, is_suitable: Callable[[int, int], bool], *, both_ways: bool = False
) -> list[list[int]]:
    """Assign partners to each sentence, each pair once, or once for each of the two."""
    # Partners are assigned in rounds: in each round every sentence in turn takes the first sentence of its ranking that
    # is suitable and not paired with it yet. The first partners therefore do not depend on the number of rounds.
    partners: list[list[int]] = [[] for _ in rankings]
    pairs: set[tuple[int, int]] = set()
    for _ in range(count):
        for one, ranking in enumerate(rankings):
            for other in ranking:
                pair = (one, other) if both_ways else (min(one, other), max(one, other))
                if pair not in pairs and is_suitable(one, other):
                    pairs.add(pair)
                    partners[one].append(other)
                    break
    return partners


def argsort_descending(scores: NDArray[float32]) -> Iterator[int]:
    """Yield the positions of scores, the highest first, equal ones in order; sorted when the first is asked for."""
    yield from map(int, (-scores).argsort(kind="stable").astype("int32"))


_ADPOSITIONS = frozenset({"ADP", "SCONJ", "PART"})  # taggers differ in these: "after", "to", "zu"
_NOMINALS = frozenset({"NOUN", "PROPN", "PRON", "NUM", "DET", "SYM", "X", "INTJ"})
_PUNCTUATION = frozenset(".,:;!?…。，、：；！？")  # noqa: RUF001


class Subtrees(NamedTuple):
    """The token ranges of a sentence that can be exchanged, in order."""

    subjects: tuple[Span, ...]
    objects: tuple[Span, ...]
    types: Mapping[Span, str] = MappingProxyType({})

    @property
    def spans(self) -> tuple[Span, ...]:
        """All ranges."""
        return self.subjects + self.objects


class Candidate(NamedTuple):
    """One exchange."""

    sentence: Sentence
    frame: int
    role: str
    removed: Span
    inserted: Span

    @property
    def new_span(self) -> Span:
        """The range of the inserted tokens in the new sentence."""
        return self.removed[0], self.removed[0] + self.inserted[1] - self.inserted[0]

    def origins(self) -> list[tuple[int, int]]:
        """Return the origin of each token."""
        frame, start = self.frame, self.removed[0]
        num_after = len(self.sentence) - self.new_span[1]
        return [
            *((frame, i) for i in range(start)),
            *((1 - frame, i) for i in range(*self.inserted)),
            *((frame, i) for i in range(self.removed[1], self.removed[1] + num_after)),
        ]


def find_subtrees(parse: Parse) -> Subtrees:
    """Find the subtrees of subjects of verbs, and of objects and complements of verbs and adpositions."""
    # Subtypes of relations (`nsubj:pass`) count as their main types; a predicate with a copula counts as a verb, as in
    # Universal Dependencies. Subtrees that are not contiguous are left out.
    ranges = subtree_ranges(parse.heads)
    verbs = predicate_words(parse)
    subjects: set[Span] = set()
    objects: set[Span] = set()
    for token, (head, name) in enumerate(zip(parse.heads, base_relations(parse), strict=True)):
        span = ranges[token]
        if head == token or span is None:
            continue
        if name in SUBJECTS and head in verbs:
            subjects.add(span)
        elif name in OBJECTS and (head in verbs or parse.tags[head] in _ADPOSITIONS):
            objects.add(span)
    return Subtrees(tuple(sorted(subjects)), tuple(sorted(objects)))


def phrase_types(parse: Parse) -> dict[Span, str]:
    """Return the phrase type of each subtree."""
    # Replacing a noun by a clause ("I go home to he saw her") is rarely grammatical. The relation distinguishes finite
    # clauses (`ccomp`) from infinitives (`xcomp`) and clauses after prepositions (`pcomp`), which cannot replace each
    # other either.
    verbs, names = predicate_words(parse), base_relations(parse)
    types: dict[Span, str] = {}
    for token, span in enumerate(subtree_ranges(parse.heads)):
        if span is not None:
            is_nominal = token not in verbs and parse.tags[token] in _NOMINALS
            types[span] = "nominal" if is_nominal else names[token]
    return types


def with_forms(subtrees: Subtrees, sentence: Sentence, parse: Parse) -> Subtrees:
    """Add forms and labels of subtrees to their types, so that the rest of a sentence agrees with what is exchanged."""
    types = {span: f"{kind}.{labels_within(sentence, span)}" for span, kind in subtrees.types.items()}
    if not parse.features:
        return subtrees._replace(types=types)
    nominal = {span for span, kind in phrase_types(parse).items() if kind == "nominal"}
    for span in {*subtrees.subjects, *subtrees.objects}:
        category = "NP" if span in nominal else "VP"
        noun = unnamed_words(sentence, [head_of(parse, span)])
        types[span] = f"{types.get(span, '')}.{phrase_form(sentence.tokens, parse, category, span)}.{noun}"
    return subtrees._replace(types=types)


def strip_punctuation(subtrees: Subtrees, tokens: Sequence[str]) -> Subtrees:
    """Remove full stops, commas and similar punctuation at the ends of subtrees, which belong to the sentence."""

    def strip_all(spans: Sequence[Span]) -> tuple[Span, ...]:
        stripped = {strip_tokens(span, tokens, _PUNCTUATION) for span in spans}
        return tuple(sorted((start, end) for start, end in stripped if start < end))

    # If two ranges become equal, the type of the larger one is used.
    by_length = sorted(subtrees.types, key=lambda span: span[1] - span[0])
    types = {strip_tokens(span, tokens, _PUNCTUATION): subtrees.types[span] for span in by_length}
    return Subtrees(strip_all(subtrees.subjects), strip_all(subtrees.objects), types)


def exchange_candidates(
    one: Sentence,
    other: Sentence,
    subtrees_of_one: Subtrees,
    subtrees_of_other: Subtrees,
    tokens: DonorTokens | None = None,
    *,
    split_mentions: bool = True,
    is_suitable: Callable[[Sentence, Span, Sentence, Span], bool] | None = None,
) -> Iterator[Candidate]:
    """Exchange every subject subtree for every subject subtree and every object subtree for every object subtree."""
    # Subtrees of different phrase types are not exchanged. Each exchange gives two sentences, one in each frame.
    # Mentions move with their subtree. A contiguous mention of a flat sentence that a subtree cuts becomes parts that
    # keep its label (the repair of the paper, only at the boundaries of the exchange). Exchanges that would cut a
    # nested or discontinuous mention are left out.

    def is_allowed(sentence: Sentence, span: Span) -> bool:
        return (split_mentions and sentence.is_flat) or keeps_mentions_whole(sentence, span)

    for role, spans, other_spans in (
        ("subject", subtrees_of_one.subjects, subtrees_of_other.subjects),
        ("object", subtrees_of_one.objects, subtrees_of_other.objects),
    ):
        # Most sentences share no type, which is soon seen.
        kinds = {subtrees_of_one.types.get(span) for span in spans}
        alike = [span for span in other_spans if subtrees_of_other.types.get(span) in kinds]
        counterparts = [span for span in alike if is_allowed(other, span)]
        if not counterparts:
            continue
        for span in (span for span in spans if is_allowed(one, span)):
            for counterpart in counterparts:
                if subtrees_of_one.types.get(span) != subtrees_of_other.types.get(counterpart):
                    continue
                for index, (frame, donor, removed, inserted) in enumerate(
                    ((one, other, span, counterpart), (other, one, counterpart, span))
                ):
                    if is_suitable is not None and not is_suitable(frame, removed, donor, inserted):
                        continue
                    edit = exchange_edit(frame, donor, removed, inserted, tokens)
                    yield Candidate(frame.split_mentions(removed).edit([edit]), index, role, removed, inserted)


def j_score(candidate: Sequence[str], one: Sequence[str], other: Sequence[str]) -> float:
    """Return the geometric mean of the Jaccard similarities of a candidate with the two sentences it comes from."""
    u, v, c = ({word.lower() for word in words} for words in (one, other, candidate))
    unions = len(u | c) * len(v | c)
    return float((len(u & c) * len(v & c) / unions) ** 0.5) if unions else 0.0


# Candidates whose estimated score is too low are not scored by the masked language model. The score of a sub-word of a
# candidate is expected to be near its score in the sentence that it comes from. The constants were estimated on 40
# pairs of WNUT-17 with MPNet. At the boundary of an exchange the score falls by 2 on average, and by a third of that
# one token further. Its standard deviation is 2.6 at the boundary, half of that one token further, and up to 0.45
# elsewhere, less for sub-words that are predicted with certainty. A word that occurs a second time becomes much more
# likely; if one of two occurrences is removed, the other becomes less likely.
_DEFAULT_SCORE = -3.0  # for sub-words that the source does not have
_DROP, _DROP_DECAY = 2.0, 0.35
_JOINT_DEVIATION, _JOINT_DECAY = 2.6, 0.5
_MAX_DEVIATION = 0.45


@dataclass
class ScoreForecaster:
    """Adds the expected scores of sub-words to candidates."""

    masked_lm: MaskedLM
    scores: dict[bytes, list[list[float]]] = field(default_factory=dict)

    def forecast(
        self, pairs: Sequence[tuple[Sequence[Sentence], Sequence[Candidate], CandidateSet]]
    ) -> Iterator[CandidateSet]:
        """Forecast the scores of candidates."""
        self._score_sources(source for sources, _, _ in pairs for source in sources)
        pieces = iter(
            self.masked_lm.token_offsets([text for _, _, candidate_set in pairs for text in candidate_set.texts])
        )
        for sources, candidates, candidate_set in pairs:
            offsets = [next(pieces) for _ in candidates]
            if not all(any(end for _, end in of_text) or len(of_text) < 2 for of_text in offsets):
                yield candidate_set
                continue
            forecasts = [self._forecast_one(c, o, sources) for c, o in zip(candidates, offsets, strict=True)]
            expected, spread = zip(*forecasts, strict=True)
            yield candidate_set._replace(expected=expected, spread=spread)

    def _score_sources(self, sentences: Iterable[Sentence]) -> None:
        """Score the sub-words of unchanged sentences."""
        new = {key: s for s in sentences if (key := s.fingerprint()) not in self.scores}
        sources = [new[key] for key in sorted(new)]
        texts = [detokenize(s.tokens, s.spaces) for s in sources]
        values = self.masked_lm.token_log_probs([(text, None) for text in texts])
        for sentence, offsets, of_text in zip(sources, self.masked_lm.token_offsets(texts), values, strict=True):
            by_token: list[list[float]] = [[] for _ in sentence.tokens]
            tokens = align_subwords(offsets, sentence.tokens, sentence.spaces)
            for token, value in zip(tokens, of_text.tolist(), strict=True):
                by_token[token].append(value)
            self.scores[sentence.fingerprint()] = by_token

    def _forecast_one(
        self, candidate: Candidate, offsets: Sequence[tuple[int, int]], sources: Sequence[Sentence]
    ) -> tuple[list[float], list[float]]:
        """Return the expected score of each sub-word of a candidate, and its standard deviation."""
        sentence, joints, origins = candidate.sentence, candidate.new_span, candidate.origins()
        counts = Counter(map(str.lower, sentence.tokens))
        source_counts = [Counter(map(str.lower, source.tokens)) for source in sources]
        source_scores = [self.scores[source.fingerprint()] for source in sources]
        expected, spread = [], []
        subword, previous = 0, -1
        for token in align_subwords(offsets, sentence.tokens, sentence.spaces):
            subword = subword + 1 if token == previous else 0
            previous = token
            source, position = origins[token]
            of_token = source_scores[source][position]
            score = of_token[subword] if subword < len(of_token) else _DEFAULT_SCORE
            distance = min(min(abs(token - joint), abs(token + 1 - joint)) for joint in joints)
            deviation = _MAX_DEVIATION * min(1.0, 0.25 - score / 2) + _JOINT_DEVIATION * _JOINT_DECAY**distance
            word = sentence.tokens[token].lower()
            if counts[word] > source_counts[source][word]:
                score, deviation = 0.6 * score, max(1.0, -score / 2)
            elif counts[word] < source_counts[source][word]:
                score, deviation = score - 1.0, 4 * deviation
            expected.append(score - _DROP * _DROP_DECAY**distance)
            spread.append(deviation)
        return expected, spread


_TOO_SHORT = Rejection("shorter than the minimum", final=True)
_NO_PARTNER = Rejection("no partner is left for an exchange", final=True)
_NO_SUBTREE = Rejection("no subject or object subtree, and no mention that can be replaced", final=True)
_ONLY_OUTCOME = Rejection("no other exchange", final=True)

# Two candidates are taken to differ if their intervals of this many standard deviations do not overlap. Of 55 pairs of
# three corpora 2.5 gave 54 selections that 4 gave, for two thirds of the rows of the model; 1.5 gave 51.
_CONFIDENCE = 2.5


_MANY_ALONE = 0.5  # of the sentences that are asked for


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


@dataclass(kw_only=True, eq=False)
class CASSI(Augmenter):
    """Exchange subject or object subtrees between similar sentences, and select the most fluent exchange.

    Each sentence is paired with the training sentences most similar to it by BERTScore, and with none of them twice
    (with a `scorer`, no two sentences are paired twice). Every subject subtree of one sentence is exchanged for every
    subject subtree of the other; objects and complements likewise. By default only subtrees of the same form and labels
    and of similar meaning are exchanged, the new sentences keep the frame of their source, and the best of `candidates`
    is kept. With a `scorer` the selection is that of the paper: each copy has one partner, exchanges go in both
    directions, the `top_k` candidates with the highest pseudo-log-likelihood per word are kept, and of these the one
    whose words agree most with both sources (J-score). If a sentence has no such subtree, all its mentions are replaced
    instead. Mentions move with their subtree. Exchanges that would cut a mention are left out; with `split_mentions`
    contiguous mentions of flat sentences may be cut.

    Partners are assigned in rounds: all first partners before all second ones. The order does not depend on the order
    of the corpus. Sentences between which no exchange is possible are not paired.

    Args:
        top_k: the number of most likely candidates among which one is selected; used with a scorer.
        pairing: how partners are ranked: ``"bertscore"``; ``"embedding"``, by the cosine of sentence vectors;
            ``"random"``; or ``"off-by-one"``, which reproduces an indexing error of the published code.
        scorer: ``"masked"``, as in the paper; ``"causal"``, a left-to-right model with one pass per candidate instead
            of one per sub-word; or none, for the choice among `candidates` that all methods have.
        selection: how one of the `top_k` is selected: ``"jscore"``, the ``"best"`` by likelihood, or ``"random"``;
            without a scorer the order in which exchanges become candidates.
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
        same_form: whether subtrees are exchanged only for subtrees of similar length with mentions of the same labels
            that agree with the rest of the sentence as they do: in number, determiner, preposition, verb form, and
            pronouns, and in their head unless it is in a mention; and whether mentions are not repeated (starter: yes).
        require_mention: whether exchanged subtrees must contain a mention (starter: yes; others change no mention, and
            read worse).
        min_similarity: the minimum cosine of the vectors of exchanged subtrees (paper: 0, no comparison).
        skip_headlines: whether headlines and table rows are neither changed nor exchanged with (starter: yes); see
            `entaug.methods.shared.prose_detection`.
        encoder: an `Encoder` or its name, for pairing (starter: minilm).
        masked_lm: a `MaskedLM` or its name (starter: mpnet-mlm).
        causal_lm: a `CausalLM` or its name; used with ``scorer="causal"``.
        dependency_parser: a `DependencyParser`, the name of a spaCy pipeline (starter: en_core_web_sm), or a CoNLL-U
            file with the trees, ending in ``.conllu``.

    Example:
        >>> from entaug import Mention
        >>> from helpers.fakes import FakeDependencyParser, FakeEncoder, FakeMaskedLM  # tests/helpers of entaug
        >>> gold = [
        ...     Sentence("Ada sings loud songs".split(), [Mention("PER", [(0, 1)])]),
        ...     Sentence("Bo knows tales of Rome".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(4, 5)])]),
        ... ]
        >>> fakes = {"encoder": FakeEncoder(), "masked_lm": FakeMaskedLM(), "dependency_parser": FakeDependencyParser()}
        >>> paper = {"scorer": "masked", "same_form": False, "require_mention": False, "min_similarity": 0}
        >>> [(" ".join(s.tokens), s.iob()) for s in CASSI(candidates=1, **fakes, **paper).fit(gold).augment(gold)]
        [('Ada sings tales of Rome', ['B-PER', 'O', 'O', 'O', 'B-LOC'])]
    """

    top_k: PositiveInt = 5
    pairing: Pairing = "bertscore"
    scorer: Literal["masked", "causal"] | None = None
    selection: Literal["jscore", "best", "random"] = "jscore"
    exact: bool = False
    preset: Literal["starter", "paper", "authors"] = "starter"
    min_tokens: PositiveInt = 1
    shortlist_size: NonNegativeInt | None = None
    encoder_layer: NonNegativeInt | None = None
    include_punctuation: bool = True
    split_mentions: bool = False
    same_phrase_type: bool = True
    normalize_boundaries: bool = True
    same_form: bool = True
    require_mention: bool = True
    min_similarity: Probability = 0.3
    skip_headlines: bool = True
    candidates: Annotated[int, Interval(ge=1, le=1_000)] = 8
    choice: str | CandidateScorer | None = field(default="likelihood:margin=0.5", metadata=ONLY_IF_SET)
    encoder: Encoder | str = "minilm"
    masked_lm: MaskedLM | str = "mpnet-mlm"
    causal_lm: CausalLM | str = "smollm2"
    dependency_parser: DependencyParser | str = "en_core_web_sm"
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
        needs=("encoder", "dependency_parser"),
        may_need=("masked_lm", "causal_lm"),
        cost="one pass of a language model per candidate; with the masked scorer a few hundred",
    )

    presets = read_presets("cassi")

    def _uses_backend(self, kind: str) -> bool:
        if kind == "encoder":
            return self.pairing != "random" or self.min_similarity > 0
        return kind in {"dependency_parser", f"{self.scorer}_lm"}

    def _load(self) -> None:
        super()._load()
        self._similarity = SpanSimilarity(self.encoder_) if self.min_similarity else None
        if self.scorer == "masked":
            self._forecaster = ScoreForecaster(self.masked_lm_)

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = distinct_sentences(corpus)
        long = [sentence for sentence in gold if len(sentence) >= self.min_tokens]
        parses = self.dependency_parser_.parse([sentence.tokens for sentence in long])
        parsed = [_ParsedSentence(s, self._subtrees(s, p), p.tags) for s, p in zip(long, parses, strict=True)]
        with_subtrees = [item for item in parsed if item.subtrees.subjects or item.subtrees.objects]
        # Headlines and rows of tables are not parsed well, nor do their parts read well elsewhere.
        kinds = SentenceKinds(gold) if self.skip_headlines else None
        self.pool_ = [item for item in with_subtrees if kinds is None or kinds.kind(item.sentence) == "prose"]
        self._index = {item.sentence.fingerprint(): i for i, item in enumerate(self.pool_)}
        self._left_alone = {item.sentence.fingerprint() for item in with_subtrees} - self._index.keys()
        self._known = {sentence.fingerprint() for sentence in gold}
        self._case = CaseAdjuster(gold, self._is_name)
        if self._similarity is not None:
            self._similarity.prepare((item.sentence, span) for item in self.pool_ for span in item.subtrees.spans)
        streams = Streams(self.seed, self.name)
        rankings = rank_partners(
            [item.sentence for item in self.pool_],
            self.pairing,
            None if self.pairing == "random" else self.encoder_,
            layer=self.encoder_layer,
            shortlist_size=self.shortlist_size,
            include_punctuation=self.include_punctuation,
            stream=lambda sentence: streams.stream(sentence.fingerprint().hex(), 0),
        )
        self.partners_ = assign_partners(
            rankings,
            self.copies * (1 if self.scorer else self.candidates),
            self._can_exchange,
            both_ways=self.scorer is None,  # the new sentences of a pair have the frame of the first
        )
        self._fitted_copies = self.copies
        self._fallback: MentionReplacement | None = MentionReplacement(
            p=1.0, preset="starter" if self.preset == "starter" else "paper"
        )
        try:
            self._fallback._fit(gold)  # noqa: SLF001
        except InputError:  # no label has two different mentions
            self._fallback = None

    def _subtrees(self, sentence: Sentence, parse: Parse) -> Subtrees:
        subtrees = find_subtrees(parse)
        if self.same_phrase_type:
            subtrees = subtrees._replace(types=phrase_types(parse))
        if self.same_form:
            subtrees = with_forms(subtrees, sentence, parse)
        if self.normalize_boundaries:
            subtrees = strip_punctuation(subtrees, sentence.tokens)
        if self.require_mention:
            subjects, objects = (
                tuple(span for span in spans if labels_within(sentence, span))
                for spans in (subtrees.subjects, subtrees.objects)
            )
            subtrees = subtrees._replace(subjects=subjects, objects=objects)
        return subtrees

    def _can_exchange(self, one: int, other: int) -> bool:
        """Whether an exchange between two sentences gives a new sentence."""
        return any(self.scorer or candidate.frame == 0 for candidate in self._candidates(one, other))

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        prepared = [self._prepare(request) for request in requests]
        selected = iter(self._select([item for item in prepared if isinstance(item, _Pair)]))
        return [next(selected) if isinstance(item, _Pair) else item for item in prepared]

    def _prepare(self, request: Request) -> Sentence | Rejection | _Pair:
        """Return a pair with its candidates, or the result if there is no pair."""
        index = self._index.get(request.sentence.fingerprint())
        if index is None:
            return self._without_partner(request)
        if request.copy > self._fitted_copies:
            raise ParameterError(
                f"cassi was fitted for {self._fitted_copies} copies, not {self.copies}", remedy="fit it again"
            )
        partners = self.partners_[index][request.copy - 1 :: self._fitted_copies]
        if not partners:
            return _NO_PARTNER
        if not self.scorer:
            return self._next_exchange(request, index, partners)
        if request.attempt:
            return _ONLY_OUTCOME
        sources = self.pool_[index].sentence, self.pool_[partners[0]].sentence
        return _Pair(sources, request, list(self._candidates(index, partners[0])))

    def _without_partner(self, request: Request) -> Sentence | Rejection:
        """Return the result for a sentence that takes part in no exchange."""
        key = request.sentence.fingerprint()
        if key not in self._known:
            return NOT_SEEN
        if key in self._left_alone:
            return NOT_PROSE
        return _TOO_SHORT if len(request.sentence) < self.min_tokens else self._replace_mentions(request)

    def _next_exchange(self, request: Request, index: int, partners: Sequence[int]) -> Sentence | Rejection:
        """Return the exchange that comes next, for the choice among `candidates`; the nearest partner comes first."""
        if self.selection != "jscore":  # one order for all attempts, so that none repeats another
            streams = Streams(self.seed, f"{self.name} order")
            request = request._replace(rng=streams.stream(request.sentence.key, request.copy))
        left = request.attempt
        for partner in partners:
            sources = self.pool_[index].sentence, self.pool_[partner].sentence
            candidates = [c for c in self._candidates(index, partner) if c.frame == 0]
            if left < len(candidates):
                pair = _Pair(sources, request, candidates)
                preferences = self._candidate_set(pair).preferences or ()
                ranked = sorted(range(len(candidates)), key=lambda i: -preferences[i])
                return _selected(pair, Selection(ranked[left], None, ()))
            left -= len(candidates)
        return _ONLY_OUTCOME

    def _replace_mentions(self, request: Request) -> Sentence | Rejection:
        if self._fallback is None:
            return _NO_SUBTREE
        result = self._fallback._rewrite(request.sentence, request.rng)  # noqa: SLF001
        if isinstance(result, Rejection):
            return _NO_SUBTREE
        if len(result) < self.min_tokens:
            return _TOO_SHORT._replace(final=False)
        return result.with_(provenance=Provenance(details={"fallback": MentionReplacement.name}))

    def _candidates(self, one: int, other: int) -> Iterator[Candidate]:
        """Yield the distinct exchanges that differ from both sources in more than case."""
        a, b = self.pool_[one], self.pool_[other]
        seen = {_content(a.sentence), _content(b.sentence)}
        tokens = self._case.tokens if self.normalize_boundaries else None
        for candidate in exchange_candidates(
            a.sentence,
            b.sentence,
            a.subtrees,
            b.subtrees,
            tokens,
            split_mentions=self.split_mentions,
            is_suitable=self._is_suitable,
        ):
            content = _content(candidate.sentence)
            if content not in seen and len(candidate.sentence) >= self.min_tokens:
                seen.add(content)
                yield candidate

    def _is_suitable(self, frame: Sentence, removed: Span, donor: Sentence, inserted: Span) -> bool:
        """Whether one subtree may replace another one."""
        if self.normalize_boundaries and not all(
            has_balanced_brackets(sentence.tokens[slice(*span)])
            for sentence, span in ((frame, removed), (donor, inserted))
        ):
            return False
        if self.same_form and not is_alike(frame, removed, donor, inserted):
            return False
        if self._similarity is None:
            return True
        [similarity] = self._similarity.of((frame, removed), [(donor, inserted)])
        return similarity >= self.min_similarity

    def advice(self, statistics: RunStatistics) -> list[str]:
        alone = statistics.missing[_NO_PARTNER.reason]
        if not self.same_form or alone <= _MANY_ALONE * statistics.requested:
            return []
        found = f"{alone:,} of {statistics.requested:,} new sentences have no exchange of the same form"
        return [f"{found}: more training sentences have more; same_form=false exchanges others too, and reads worse"]

    def _is_name(self, sentence: Sentence, position: int) -> bool:
        """Whether a word is always capitalised, by its part of speech."""
        tag = self.pool_[self._index[sentence.fingerprint()]].tags[position]
        return tag == "PROPN" or (tag == "PRON" and len(sentence.tokens[position]) == 1)

    def _select(self, pairs: Sequence[_Pair]) -> list[Sentence]:
        """Return the selected candidate of each pair."""
        if not pairs:
            return []
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
