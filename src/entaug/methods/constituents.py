"""CR: phrases exchanged for phrases of their category (Sutiono and Hahn-Powell 2022, section 3.4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, ClassVar, Literal, NamedTuple

from annotated_types import Interval

from entaug.backends.protocols import ConstituencyParser, Encoder
from entaug.config.params import PositiveInt, Probability, some_of
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.data import Provenance, Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Span
from entaug.methods.base import Augmenter, MethodInfo, Rejection, Request
from entaug.methods.choice import CandidateScorer
from entaug.methods.shared.generated_text import distinct_sentences
from entaug.methods.shared.prose_detection import NOT_PROSE, SentenceKinds
from entaug.methods.shared.span_exchange import (
    CaseAdjuster,
    SpanSimilarity,
    exchange_edit,
    has_balanced_brackets,
    is_alike,
    keeps_mentions_whole,
    labels_within,
    unnamed_words,
)

CATEGORIES = ("NP", "VP", "PP", "ADJP", "ADVP")

_NO_PHRASE = Rejection("no replaceable phrase with a mention", final=True)
_NO_DONOR = Rejection(_NO_PHRASE.reason)  # of those that were drawn
_MAX_DRAWS = 8  # random draws of a donor before the suitable ones are listed
_NUM_COMPARED = 8  # suitable donors drawn at random, the most similar of which is taken

# The categories of each range of a sentence; the category of the outer phrase first.
_Phrases = dict[Span, tuple[str, ...]]


class _Donor(NamedTuple):
    """A phrase of the corpus."""

    sentence: int
    span: Span


@dataclass(kw_only=True, eq=False)
class ConstituencyReplacement(Augmenter):
    """Replace phrases that contain a mention by phrases of the same category from other sentences, with their mentions.

    All sentences are parsed. Phrases of a sentence are drawn from those of the given categories that contain at least
    one mention and cut none; each is replaced by a random phrase of the same category from another sentence. Replaced
    phrases do not overlap, and no phrase is replaced by one with the same words and mentions.

    The paper reports that replaced noun phrases reduce coherence and that verb and prepositional phrases work best, and
    suggests a language model for the selection: `candidates` sentences are made for each, and the best is kept.

    Args:
        num_replacements: the number of phrases to replace (p in the paper: 1, 3 or 5), if the sentence has enough.
        categories: the categories, joined by ``+``: one or more of NP, VP, PP, ADJP, ADVP.
        allow_whole_sentence: whether the replaced or inserted phrase may cover all words of its sentence (all but
            punctuation); the result may then be another sentence of the corpus.
        require_mention: whether inserted phrases must contain a mention; the paper requires it of replaced ones only.
        normalize_boundaries: whether words that move to or from the beginning of a sentence are recased, and phrases
            with unbalanced brackets are not exchanged.
        same_form: whether a phrase is replaced only by one of similar length with mentions of the same labels that
            agrees with the rest of the sentence as it does, where the parser knows: in role, number, determiner,
            preposition, verb form, and pronouns, and has the same head unless it is in a mention; and whether mentions
            are not repeated. The paper asks for the same category only.
        min_similarity: the minimum cosine of the vectors of the replaced and the inserted phrase; the most similar of
            several random phrases is inserted. 0 for no comparison, as in the paper.
        skip_headlines: whether headlines and table rows are neither changed nor taken phrases from; see
            `entaug.methods.shared.prose_detection`. The paper has no such rule.
        constituency_parser: a `ConstituencyParser` or its name: ``"projected"``, ``"stanza:en"`` (as in the paper).
        encoder: an `Encoder` or its name, for the similarity of phrases.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods cr``)
            unless it is given.

    Example:
        >>> from entaug import Mention
        >>> from helpers.fakes import FakeConstituencyParser  # tests/helpers of entaug
        >>> gold = [
        ...     Sentence("Ada sings well".split(), [Mention("PER", [(0, 1)])]),
        ...     Sentence("Rome burns".split(), [Mention("LOC", [(0, 1)])]),
        ... ]
        >>> simple = {"same_form": False, "min_similarity": 0, "candidates": 1}
        >>> method = ConstituencyReplacement(constituency_parser=FakeConstituencyParser(), **simple).fit(gold)
        >>> [(" ".join(s.tokens), s.iob()) for s in method.augment(gold)]
        [('Rome sings well', ['B-LOC', 'O', 'O']), ('Ada burns', ['B-PER', 'O'])]
    """

    num_replacements: PositiveInt = 1
    categories: Annotated[str, some_of(CATEGORIES)] = "NP+VP+PP+ADJP+ADVP"
    allow_whole_sentence: bool = False
    require_mention: bool = False
    normalize_boundaries: bool = True
    same_form: bool = True
    min_similarity: Probability = 0.3
    skip_headlines: bool = True
    candidates: Annotated[int, Interval(ge=1, le=1_000)] = 8
    choice: str | CandidateScorer | None = field(default="likelihood:margin=0.5", metadata=ONLY_IF_SET)
    constituency_parser: ConstituencyParser | str = "projected"
    encoder: Encoder | str = "minilm"
    preset: Literal["starter", "paper"] = field(default="starter", metadata=ONLY_IF_SET)
    constituency_parser_: ConstituencyParser = field(init=False, repr=False)
    encoder_: Encoder = field(init=False, repr=False)

    presets = read_presets("cr")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="cr",
        long_name="constituency-replacement",
        summary="phrases replaced by phrases of the same category from other sentences",
        paper="Sutiono and Hahn-Powell 2022, Syntax-driven Data Augmentation for Named Entity Recognition",
        keeps_mentions=False,
        needs_fit=True,
        needs_mentions=True,
        needs=("constituency_parser",),
        may_need=("encoder",),
        cost="parsing the corpus once, and one pass of a language model per candidate",
    )

    def _uses_backend(self, kind: str) -> bool:
        return kind == "constituency_parser" or self.min_similarity > 0

    def _load(self) -> None:
        super()._load()
        self._similarity = SpanSimilarity(self.encoder_) if self.min_similarity else None

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        self.gold_ = distinct_sentences(corpus)
        self._index = {s.fingerprint(): i for i, s in enumerate(self.gold_)}
        self._case = CaseAdjuster(self.gold_)
        self._kinds = SentenceKinds(self.gold_) if self.skip_headlines else None
        self.pool_: dict[str, list[_Donor]] = defaultdict(list)
        for index, (sentence, phrases) in enumerate(zip(self.gold_, self._phrases(self.gold_), strict=True)):
            for span, categories in () if self._is_left_alone(sentence) else phrases.items():
                if not self.require_mention or labels_within(sentence, span):
                    for category in categories:
                        self.pool_[category].append(_Donor(index, span))

    def _phrases(self, sentences: Sequence[Sentence]) -> list[_Phrases]:
        """Return the exchangeable ranges of each sentence, with their categories."""
        categories = set(map(str.strip, self.categories.split("+")))
        parses = self.constituency_parser_.parse([s.tokens for s in sentences])
        phrase_lists = []
        for sentence, parse in zip(sentences, parses, strict=True):
            phrases: _Phrases = {}
            for phrase in parse:
                span = (phrase.start, phrase.end)
                if phrase.category in categories and self._is_exchangeable(sentence, span):
                    # A phrase with a single part has the same range as that part; the outer one comes first.
                    category = phrase.category
                    if self.same_form:
                        kind = unnamed_words(sentence, phrase.heads)
                        category = f"{category}:{phrase.form}:{labels_within(sentence, span)}:{kind}"
                    phrases[span] = tuple(dict.fromkeys((*phrases.get(span, ()), category)))
            phrase_lists.append(phrases)
        return phrase_lists

    def _is_exchangeable(self, sentence: Sentence, span: Span) -> bool:
        if not keeps_mentions_whole(sentence, span):
            return False
        if not self.allow_whole_sentence and _is_whole_sentence(sentence, span):
            return False
        return not self.normalize_boundaries or has_balanced_brackets(sentence.tokens[slice(*span)])

    def _is_left_alone(self, sentence: Sentence) -> bool:
        """Whether a sentence is a headline or a row of a table, which are not parsed well nor read well in others."""
        return self._kinds is not None and self._kinds.kind(sentence) != "prose"

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        phrase_lists = self._phrases([request.sentence for request in requests])
        return [self._rewrite_one(r, phrases) for r, phrases in zip(requests, phrase_lists, strict=True)]

    def _rewrite_one(self, request: Request, phrases: _Phrases) -> Sentence | Rejection:
        sentence = request.sentence
        if self._is_left_alone(sentence):
            return NOT_PROSE
        own = self._index.get(sentence.fingerprint())
        targets = [span for span in sorted(phrases) if labels_within(sentence, span)]
        is_certain = self._similarity is None and all(len(phrases[span]) == 1 for span in targets)
        none = _NO_PHRASE if is_certain or not targets else _NO_DONOR
        return self._exchange(sentence, own, targets, phrases, request.rng) or none

    def _exchange(
        self, sentence: Sentence, own: int | None, targets: list[Span], phrases: _Phrases, rng: Random
    ) -> Sentence | None:
        edits: list[Edit] = []
        details: list[dict[str, object]] = []
        tokens = self._case.tokens if self.normalize_boundaries else None
        for target in rng.sample(targets, len(targets)):
            if any(target[0] < end and start < target[1] for start, end, *_ in edits):
                continue
            category = phrases[target][rng.randrange(len(phrases[target]))]
            donor = self._draw_donor(sentence, own, target, category, rng)
            if donor is None:
                continue
            source = self.gold_[donor.sentence]
            edits.append(exchange_edit(sentence, source, target, donor.span, tokens))
            kind, out, into = category.partition(":")[0], list(target), list(donor.span)
            details.append({"category": kind, "out": out, "from": source.key, "into": into})
            if len(edits) == self.num_replacements:
                break
        if not edits:
            return None
        sources = tuple(dict.fromkeys(str(detail["from"]) for detail in details))
        return sentence.edit(edits).with_(provenance=Provenance(sources=sources, details={"grafts": details}))

    def _draw_donor(
        self, sentence: Sentence, own: int | None, target: Span, category: str, rng: Random
    ) -> _Donor | None:
        """Draw a random phrase of another sentence with other words or mentions."""
        content = _content(sentence, target)

        def is_suitable(donor: _Donor) -> bool:
            source = self.gold_[donor.sentence]
            if donor.sentence == own or _content(source, donor.span) == content:
                return False
            return not self.same_form or is_alike(sentence, target, source, donor.span)

        pool = self.pool_.get(category, [])
        drawn: list[_Donor] = []
        for _ in range(_NUM_COMPARED if self._similarity else 1):
            donor = _draw(pool, is_suitable, rng)
            if donor is None:
                return None
            drawn.append(donor)
        if self._similarity is None:
            return drawn[0]
        spans = [(self.gold_[donor.sentence], donor.span) for donor in drawn]
        similarities = self._similarity.of((sentence, target), spans)
        best = max(similarities)
        return drawn[similarities.index(best)] if best >= self.min_similarity else None


def _draw(pool: Sequence[_Donor], is_suitable: Callable[[_Donor], bool], rng: Random) -> _Donor | None:
    """Draw a suitable phrase at random."""
    for _ in range(_MAX_DRAWS if pool else 0):  # most draws are suitable
        donor = pool[rng.randrange(len(pool))]
        if is_suitable(donor):
            return donor
    suitable = [donor for donor in pool if is_suitable(donor)]
    return suitable[rng.randrange(len(suitable))] if suitable else None


def _content(sentence: Sentence, span: Span) -> object:
    """Return the lower-cased words of a range, and its mentions."""
    start, end = span
    mentions = [m.shift(-start) for m in sentence.mentions if start <= m.start and m.end <= end]
    return [word.lower() for word in sentence.tokens[start:end]], [(m.label, m.spans) for m in mentions]


def _is_whole_sentence(sentence: Sentence, span: Span) -> bool:
    """Whether there is only punctuation outside a range."""
    outside = (*sentence.tokens[: span[0]], *sentence.tokens[span[1] :])
    return not any(c.isalnum() for word in outside for c in word)
