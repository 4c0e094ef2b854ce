"""CASSI: subtrees exchanged between similar sentences (Surana et al., Findings of EMNLP 2023)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from entaug.alignment import align_subwords, detokenize
from entaug.augmenters.base import NOT_SEEN, Augmenter, MethodInfo, Rejection, Request
from entaug.augmenters.cassi.pairing import PairingOptions, partners, rankings
from entaug.augmenters.cassi.subtrees import Candidate, Subtrees, exchanges, j_score, kinds, subtrees, without_points
from entaug.augmenters.contracts import DUPLICATE
from entaug.augmenters.replacement import MentionReplacement
from entaug.augmenters.syntax.span_exchange import Casing
from entaug.backends.protocols import CausalLM, DependencyParser, Encoder, MaskedLM, Parse
from entaug.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.params import NonNegativeInt, PositiveInt
from entaug.provenance import Provenance
from entaug.rng import Streams
from entaug.scoring.candidate_selection import CandidateSet, Selection, select_best, select_best_left_to_right
from entaug.scoring.texts import count_words

__all__ = ["CASSI"]

_SHORT = Rejection("shorter than the minimum", final=True)
_NO_PARTNER = Rejection("no partner left to exchange with", final=True)
_NO_SUBTREE = Rejection("no subject or object subtree, and no mention that can be replaced", final=True)
_AGAIN = DUPLICATE._replace(final=True)

# What a sub-word of a candidate scores, beside what it scores in the sentence it comes from, as seen on 40 pairs of
# WNUT-17 under MPNet: at a joint 2 less, and a third of that a token further; spread by 2.6 at a joint, half a token
# further, and by up to 0.45 anywhere, the less the surer it is. A word that now stands twice is much more likely, the
# remaining one of two less so.
_USUAL = -3.0  # where nothing is known of it
_DROP, _DROP_FADES = 2.0, 0.35
_JOINT, _JOINT_FADES = 2.6, 0.5
_TOGETHER = 4096  # candidates handled at a time
_CONFIDENCE = 4.0  # standard deviations between the intervals of two candidates before one is held to be better


@dataclass(kw_only=True, eq=False)
class CASSI(Augmenter):
    """Exchange subject or object subtrees between similar sentences, and keep the exchange that reads best.

    Each sentence is paired with the training sentences most similar to it by BERTScore, one a copy, and no two
    sentences meet twice. Every subject subtree of one is exchanged for every one of the other, both ways, objects and
    complements likewise. Of these candidates the `top_k` with the highest pseudo-log-likelihood per word are kept, and of
    those the one whose words agree most with both sources (J-score) is taken. A sentence without any such subtree gets
    all its mentions replaced instead. Mentions travel with their subtree; an exchange that would cut a nested or
    discontinuous mention is none, nor is one that would cut any, unless `split_mentions` says so.

    Pairs are given out in rounds, all first partners before all second ones, in an order that does not depend on that
    of the file. Sentences that no exchange is possible between are not paired.

    Args:
        top_k: among how many of the most likely candidates the choice is made.
        pairing: ``"bertscore"``; ``"embedding"``, by the cosine of sentence vectors; ``"random"``; or ``"off-by-one"``,
            what the published code does by mistake, kept so that its effect can be measured.
        scorer: ``"masked"``, the paper's; or ``"causal"``, a model that reads from the left: one pass for a candidate
            instead of one for each sub-word.
        selection: among the `top_k`: ``"jscore"``, the ``"best"`` by likelihood, or ``"random"``.
        exact: whether the choice must be proved; else candidates are given up when they are clearly worse by what their
            words score in the sentences they come from, which needs less than half as many rows and hardly ever makes
            another choice. Only for the masked scorer.
        preset: ``"starter"``, models that can be had without the hub; ``"paper"``, what the paper uses (English: name
            another `dependency_parser` for other languages); ``"authors"``, what their published code adds to that. It
            settles every parameter below that is not given.
        min_tokens: sentences and candidates of fewer tokens are left out; 1 for all (starter, paper), 6 (authors).
        shortlist_size: how many nearest sentences by sentence vector are compared by BERTScore; 0 for all. By default all up
            to 5,000 sentences, and 100 above.
        encoder_layer: the layer of the encoder that BERTScore looks at; none for the last.
        include_punctuation: whether pairing by BERTScore sees punctuation (starter and paper: it does).
        split_mentions: whether an exchange may cut a mention of a flat sentence, each part keeping the type, as the paper has it
            (starter: no; "the Great Fire of children" is no event).
        same_phrase_type: whether subtrees are exchanged only for those of their kind: noun phrases, finite clauses, infinitives,
            clauses after prepositions, adjectives (starter: yes; the paper puts whole clauses in the place of nouns:
            "I'm going home to there's a lot of people").
        normalize_boundaries: whether full stops and commas at the ends of a subtree stay where they are, and a word that comes to the
            beginning of a sentence, or leaves it, changes to the case usual there (starter: yes).
        encoder: an `Encoder`, or the name of one, for pairing (starter: minilm).
        masked_lm: a `MaskedLM`, or the name of one (starter: mpnet-mlm).
        causal_lm: a `CausalLM`, or the name of one; used with ``scorer="causal"``.
        dependency_parser: a `DependencyParser`, or the name of one (starter: en_core_web_sm): spaCy's pipelines, or a
            file in CoNLL-U format, ending in ``.conllu``, that holds the trees.

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
    pairing: Literal["bertscore", "embedding", "random", "off-by-one"] = "bertscore"
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
        cost="a few hundred rows of a masked language model per sentence, or some tens of a causal one",
    )

    presets: ClassVar[dict[str, dict[str, object]]] = {
        "starter": {
            "min_tokens": 1,
            "include_punctuation": True,
            "split_mentions": False,
            "same_phrase_type": True,
            "normalize_boundaries": True,
            "encoder": "minilm",
            "masked_lm": "mpnet-mlm",
            "dependency_parser": "en_core_web_sm",
        },
        "paper": {
            "min_tokens": 1,
            "include_punctuation": True,
            "split_mentions": True,
            "same_phrase_type": False,
            "normalize_boundaries": False,
            "encoder": "FacebookAI/xlm-roberta-base",
            "masked_lm": "FacebookAI/xlm-roberta-base",
            "dependency_parser": "en_core_web_trf",
        },
        "authors": {
            "min_tokens": 6,
            "include_punctuation": False,
            "split_mentions": True,
            "same_phrase_type": False,
            "normalize_boundaries": False,
            "encoder_layer": 9,
            "encoder": "FacebookAI/xlm-roberta-base",
            "masked_lm": "google-bert/bert-base-multilingual-cased",
            "dependency_parser": "en_core_web_trf",
        },
    }

    def _uses_backend(self, kind: str) -> bool:
        if kind == "encoder":
            return self.pairing != "random"
        return kind == "dependency_parser" or kind == f"{self.scorer}_lm"

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        # Neither the order of the file nor that of equal sentences in it may matter.
        in_order = sorted(corpus, key=lambda s: (s.fingerprint(), s.id or "", s.spaces or ()), reverse=True)
        gold = list({s.fingerprint(): s for s in in_order}.values())[::-1]
        long = [sentence for sentence in gold if len(sentence) >= self._least]
        parses = self.dependency_parser_.parse([sentence.tokens for sentence in long])
        pool = [_Gold(s, self._subtrees(s, parse), parse.tags) for s, parse in zip(long, parses, strict=True)]
        self.pool_ = [one for one in pool if one.trees.subjects or one.trees.objects]
        self._number = {one.sentence.fingerprint(): i for i, one in enumerate(self.pool_)}
        self._others = {s.fingerprint(): s for s in gold if s.fingerprint() not in self._number}
        self._casing = Casing(gold, self._is_name)
        ranked = rankings([one.sentence for one in self.pool_], self.pairing, self._how())
        self.partners_ = partners(ranked, self.copies, self._suits)
        self._copies = self.copies
        self._learnt: dict[int, list[list[float]]] = {}
        self._fallback: MentionReplacement | None = MentionReplacement(p=1.0)
        try:
            self._fallback._fit(gold)  # noqa: SLF001
        except InputError:  # no type has two mentions
            self._fallback = None

    @property
    def _least(self) -> int:
        return self.min_tokens or 1

    def _subtrees(self, sentence: Sentence, parse: Parse) -> Subtrees:
        found = subtrees(parse)
        if self.same_phrase_type:
            found = found._replace(kinds=kinds(parse))
        return without_points(found, sentence.tokens) if self.normalize_boundaries else found

    def _how(self) -> PairingOptions:
        streams = Streams(self.seed, self.info.name)
        encoder = None if self.pairing == "random" else self.encoder_
        return PairingOptions(
            encoder,
            self.encoder_layer,
            self.shortlist_size,
            bool(self.include_punctuation),
            lambda sentence: streams.stream(sentence.fingerprint().hex(), 0),
        )

    def _suits(self, one: int, other: int) -> bool:
        """Whether an exchange of two sentences gives anything new."""
        return next(self._candidates(one, other), None) is not None

    def notes(self) -> list[str]:
        """What a user should know about the fitted corpus."""
        without = sum(len(s) >= self._least for s in self._others.values())
        short = len(self._others) - without
        found = []
        if without:
            found.append(f"{without} sentences have no subject or object subtree: any mentions are replaced instead")
        if short:
            found.append(f"{short} sentences are shorter than {self.min_tokens} tokens and left out")
        return found

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _rewrite_batch(self, asked: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        results: list[Sentence | Rejection | None] = []
        work: list[_Pair] = []
        for one in asked:
            found = self._begin(one)
            results.append(None if isinstance(found, _Pair) else found)
            if isinstance(found, _Pair):
                work.append(found)
        made = iter(self._finish(work))
        return [next(made) if result is None else result for result in results]

    def _begin(self, asked: Request) -> Sentence | Rejection | _Pair:
        """A pair with its candidates, or else what is answered without them."""
        key = asked.sentence.fingerprint()
        number = self._number.get(key)
        if number is None:
            if key not in self._others:
                return NOT_SEEN
            return _SHORT if len(asked.sentence) < self._least else self._replaced(asked)
        if asked.attempt:  # there is but one outcome
            return _AGAIN
        if asked.copy > self._copies:
            raise ParameterError(
                f"cassi was fitted for {self._copies} copies, not {self.copies}", remedy="fit it again"
            )
        given = self.partners_[number]
        if asked.copy > len(given):
            return _NO_PARTNER
        partner = given[asked.copy - 1]
        return _Pair(number, partner, asked, list(self._candidates(number, partner)))

    def _replaced(self, asked: Request) -> Sentence | Rejection:
        made = self._fallback._rewrite(asked.sentence, asked.rng) if self._fallback else _NO_SUBTREE  # noqa: SLF001
        if isinstance(made, Rejection):
            return _NO_SUBTREE
        if len(made) < self._least:
            return _SHORT._replace(final=False)
        return made.with_(provenance=Provenance(details={"fallback": MentionReplacement.info.name}))

    def _candidates(self, one: int, other: int) -> Iterator[Candidate]:
        """The exchanges that give new sentences, each once."""
        a, b = self.pool_[one], self.pool_[other]
        seen = {_content(a.sentence), _content(b.sentence)}
        words = self._casing.words if self.normalize_boundaries else None
        for candidate in exchanges(a.sentence, b.sentence, a.trees, b.trees, words, cuts=bool(self.split_mentions)):
            content = _content(candidate.sentence)
            if content not in seen and len(candidate.sentence) >= self._least:
                seen.add(content)
                yield candidate

    def _is_name(self, sentence: Sentence, place: int) -> bool:
        """Whether a word keeps its capital wherever it stands, by its part of speech."""
        tag = self.pool_[self._number[sentence.fingerprint()]].tags[place]
        return tag == "PROPN" or (tag == "PRON" and len(sentence.tokens[place]) == 1)

    def _finish(self, work: Sequence[_Pair]) -> Iterator[Sentence]:
        """The choice of each pair; so many together that the model has enough to do, and memory does not grow."""
        part: list[_Pair] = []
        count = 0
        for number, pair in enumerate(work, start=1):
            part.append(pair)
            count += len(pair.candidates)
            if count >= _TOGETHER or number == len(work):
                yield from self._choose(part)
                part, count = [], 0

    def _choose(self, work: Sequence[_Pair]) -> Iterator[Sentence]:
        best = 1 if self.selection == "best" else self.top_k
        contests = [self._contest(pair) for pair in work]
        if self.scorer == "causal":
            verdicts = select_best_left_to_right(contests, best, self.causal_lm_)
        else:
            contests = list(self._foreseen(work, contests))
            verdicts = select_best(contests, best, self.masked_lm_, None if self.exact else _CONFIDENCE)
        for pair, verdict in zip(work, verdicts, strict=True):
            yield self._signed(pair, verdict)

    def _contest(self, pair: _Pair) -> CandidateSet:
        sentences = [candidate.sentence for candidate in pair.candidates]
        one, other = (self.pool_[number].sentence.tokens for number in (pair.one, pair.other))
        if self.selection == "jscore":
            wanted = [j_score(s.tokens, one, other) for s in sentences]
        else:
            wanted = [pair.asked.rng.random() for _ in sentences]
        texts = [detokenize(s.tokens, s.spaces) for s in sentences]
        return CandidateSet(texts, [count_words(s.tokens) for s in sentences], wanted)

    def _foreseen(self, work: Sequence[_Pair], contests: Sequence[CandidateSet]) -> Iterator[CandidateSet]:
        """Contests with what each sub-word is expected to score."""
        self._learn({number for pair in work for number in (pair.one, pair.other)})
        pieces = iter(self.masked_lm_.token_offsets([text for contest in contests for text in contest.texts]))
        for pair, contest in zip(work, contests, strict=True):
            of_pair = [next(pieces) for _ in pair.candidates]
            if not all(any(end for _, end in of) or len(of) < 2 for of in of_pair):
                yield contest  # the tokenizer cannot say where its sub-words stand, so nothing can be foreseen
                continue
            known = [(self.pool_[i].sentence.tokens, self._learnt[i]) for i in (pair.one, pair.other)]
            foreseen = [_foresee(candidate, of, known) for candidate, of in zip(pair.candidates, of_pair, strict=True)]
            expected, spread = zip(*foreseen, strict=True)
            yield contest._replace(expected=expected, spread=spread)

    def _learn(self, numbers: set[int]) -> None:
        """Score the sub-words of some sentences as they are."""
        new = sorted(numbers - self._learnt.keys())
        sentences = [self.pool_[number].sentence for number in new]
        texts = [detokenize(s.tokens, s.spaces) for s in sentences]
        values = self.masked_lm_.token_log_probs([(text, None) for text in texts])
        for number, sentence, pieces, of in zip(new, sentences, self.masked_lm_.token_offsets(texts), values, strict=True):
            by_token: list[list[float]] = [[] for _ in sentence.tokens]
            for token, value in zip(align_subwords(pieces, sentence.tokens, sentence.spaces), of.tolist(), strict=True):
                by_token[token].append(value)
            self._learnt[number] = by_token

    def _signed(self, pair: _Pair, verdict: Selection) -> Sentence:
        """The sentence chosen, with what was put where, and how it scored."""
        candidate = pair.candidates[verdict.chosen]
        one, other = (self.pool_[number].sentence for number in (pair.one, pair.other))
        told = {
            "frame": candidate.frame,
            "role": candidate.role,
            "out": list(candidate.out),
            "into": list(candidate.into),
            "graft": list(candidate.graft),
            "lm_score": round(verdict.score, 4),
            "j_score": round(j_score(candidate.sentence.tokens, one.tokens, other.tokens), 4),
            "rank": verdict.best.index(verdict.chosen) + 1,
            "candidates": len(pair.candidates),
        }
        return candidate.sentence.with_(provenance=Provenance(sources=(other.key,), details=told))


class _Gold(NamedTuple):
    """A sentence that has something to exchange, with the parts of speech of its tokens."""

    sentence: Sentence
    trees: Subtrees
    tags: tuple[str, ...]


class _Pair(NamedTuple):
    """Two sentences of the pool, by number, and what their exchange gives."""

    one: int
    other: int
    asked: Request
    candidates: list[Candidate]


def _content(sentence: Sentence) -> object:
    """What makes a sentence another one; the case of its letters does not."""
    return tuple(map(str.lower, sentence.tokens)), sentence.mentions


def _foresee(
    candidate: Candidate, pieces: Sequence[tuple[int, int]], known: Sequence[tuple[Sequence[str], list[list[float]]]]
) -> tuple[list[float], list[float]]:
    """What each sub-word of a candidate is expected to score, and how far it may be from that.

    Args:
        candidate: an exchange.
        pieces: the sub-words of its running text.
        known: for each of the two sentences its tokens, and the scores of the sub-words of each of them.
    """
    sentence, joints, origins = candidate.sentence, candidate.graft, candidate.origins()
    here = Counter(map(str.lower, sentence.tokens))
    there = [Counter(map(str.lower, tokens)) for tokens, _ in known]
    expected, spread = [], []
    count, before = 0, -1
    for token in align_subwords(pieces, sentence.tokens, sentence.spaces):
        count = count + 1 if token == before else 0
        before = token
        source, place = origins[token]
        scores = known[source][1][place]
        score = scores[count] if count < len(scores) else _USUAL
        distance = min(min(abs(token - joint), abs(token + 1 - joint)) for joint in joints)
        deviation = 0.45 * min(1.0, 0.25 - score / 2) + _JOINT * _JOINT_FADES**distance
        word = sentence.tokens[token].lower()
        if here[word] > there[source][word]:
            score, deviation = 0.6 * score, max(1.0, -score / 2)
        elif here[word] < there[source][word]:
            score, deviation = score - 1.0, 4 * deviation
        expected.append(score - _DROP * _DROP_FADES**distance)
        spread.append(deviation)
    return expected, spread
