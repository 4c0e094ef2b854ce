"""CR: phrases exchanged for phrases of their category (Sutiono and Hahn-Powell 2022, section 3.4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, ClassVar, Literal, NamedTuple

from entaug.alignment import detokenize
from entaug.augmenters.base import Augmenter, MethodInfo, Rejection, Request
from entaug.augmenters.syntax.span_exchange import Casing, closes, graft, holds_whole
from entaug.backends.protocols import CausalLM, ConstituencyParser, MaskedLM
from entaug.data import Edit, Sentence, Span
from entaug.params import PositiveInt, Subset
from entaug.provenance import Provenance
from entaug.scoring.candidate_selection import CandidateSet, select_best, select_best_left_to_right
from entaug.scoring.texts import count_words

__all__ = ["CATEGORIES", "ConstituencyReplacement"]

CATEGORIES = ("NP", "VP", "PP", "ADJP", "ADVP")

_NO_PHRASE = Rejection("no phrase with a mention that another one could stand for", final=True)
_TOGETHER = 2048  # candidates that are scored at a time


_Phrases = dict[Span, tuple[str, ...]]  # ranges of a sentence, each with its categories, the outer one first


class _Phrase(NamedTuple):
    """A phrase of the corpus: the number of its sentence, and its range."""

    sentence: int
    span: Span


@dataclass(kw_only=True, eq=False)
class ConstituencyReplacement(Augmenter):
    """Replace phrases that hold a mention by phrases of their category from other sentences, mentions and all.

    All sentences are parsed. Phrases of a sentence are drawn among those of the categories asked for that hold at least
    one mention and cut none; for each a phrase of the same category is drawn from another sentence, and takes its
    place whole. No two of them overlap. What stands there already is no choice.

    The paper finds that noun phrases lose coherence and that verb and prepositional phrases do best, and would like a
    language model to take part: `scorer` does that.

    Args:
        num_replacements: how many phrases to replace (the paper's p: 1, 3 or 5); fewer where there are fewer.
        categories: of which categories, joined by ``+``: of NP, VP, PP, ADJP, ADVP.
        allow_whole_sentence: whether a phrase may be all of the words of its sentence (nothing but punctuation around it), on either
            side; then a sentence may become another one of the corpus.
        scorer: ``"causal"`` or ``"masked"``: of `num_candidates` candidates keep the one that this kind of language
            model finds likeliest per word; none to draw a single one, as in the paper.
        num_candidates: how many candidates are drawn for the scorer.
        require_mention: whether only phrases that hold a mention come in; the paper asks that of those that go alone.
        normalize_boundaries: whether a word that comes to the beginning of a sentence, or leaves it, changes to the case usual there;
            and phrases that a parser lets begin or end between brackets stay where they are.
        constituency_parser: a `ConstituencyParser`, or the name of one: ``"projected"``, ``"link-grammar"``,
            ``"stanza:en"`` (the paper's).
        causal_lm: a `CausalLM`, or the name of one; used with ``scorer="causal"``.
        masked_lm: a `MaskedLM`, or the name of one; used with ``scorer="masked"``.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeConstituencyParser
        >>> gold = [
        ...     Sentence("Ada sings well".split(), [Mention("PER", [(0, 1)])]),
        ...     Sentence("Rome burns".split(), [Mention("LOC", [(0, 1)])]),
        ... ]
        >>> method = ConstituencyReplacement(num_replacements=1, constituency_parser=FakeConstituencyParser()).fit(gold)
        >>> [(" ".join(s.tokens), s.iob()) for s in method.augment(gold)]
        [('Rome sings well', ['B-LOC', 'O', 'O']), ('Ada burns', ['B-PER', 'O'])]
    """

    num_replacements: PositiveInt = 1
    categories: Annotated[str, Subset(CATEGORIES)] = "NP+VP+PP+ADJP+ADVP"
    allow_whole_sentence: bool = False
    scorer: Literal["causal", "masked"] | None = None
    num_candidates: PositiveInt = 5
    require_mention: bool = False
    normalize_boundaries: bool = True
    constituency_parser: ConstituencyParser | str = "projected"
    causal_lm: CausalLM | str = "smollm2"
    masked_lm: MaskedLM | str = "mpnet-mlm"
    constituency_parser_: ConstituencyParser = field(init=False, repr=False)
    causal_lm_: CausalLM = field(init=False, repr=False)
    masked_lm_: MaskedLM = field(init=False, repr=False)

    info: ClassVar[MethodInfo] = MethodInfo(
        name="cr",
        long_name="constituency-replacement",
        summary="phrases replaced by phrases of their category from other sentences",
        paper="Sutiono and Hahn-Powell 2022, Syntax-driven Data Augmentation for Named Entity Recognition",
        keeps_mentions=False,
        needs_fit=True,
        needs_mentions=True,
        needs=("constituency_parser",),
        may_need=("causal_lm", "masked_lm"),
        cost="parsing the corpus once; with a scorer a pass of a language model a candidate",
    )

    def _uses_backend(self, kind: str) -> bool:
        return kind == "constituency_parser" or kind == f"{self.scorer}_lm"

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        # Neither the order of the file nor that of equal sentences in it may matter.
        distinct = {s.fingerprint(): s for s in sorted(corpus, key=lambda s: (s.id or "", s.spaces or ()))}
        self.gold_ = [distinct[key] for key in sorted(distinct)]
        self._number = {s.fingerprint(): i for i, s in enumerate(self.gold_)}
        self._casing = Casing(self.gold_)
        self.pool_: dict[str, list[_Phrase]] = defaultdict(list)
        for number, found in enumerate(self._phrases(self.gold_)):
            for span, categories in found.items():
                if self.require_mention and not _is_labelled(self.gold_[number], span):
                    continue
                for category in categories:
                    self.pool_[category].append(_Phrase(number, span))

    def _phrases(self, sentences: Sequence[Sentence]) -> list[_Phrases]:
        """For each sentence the ranges that can be exchanged, with their categories."""
        wanted = set(self.categories.split("+"))
        found = []
        for sentence, parse in zip(
            sentences, self.constituency_parser_.parse([s.tokens for s in sentences]), strict=True
        ):
            ranges: _Phrases = {}
            for one in parse:
                span = (one.start, one.end)
                if one.category not in wanted or not holds_whole(sentence, span):
                    continue
                if (not self.allow_whole_sentence and _is_all(sentence, span)) or (
                    self.normalize_boundaries and not closes(sentence.tokens[slice(*span)])
                ):
                    continue
                # A phrase of one part has the same range as that part; the outer one comes first.
                ranges[span] = tuple(dict.fromkeys((*ranges.get(span, ()), one.category)))
            found.append(ranges)
        return found

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        parsed = {one.sentence for some in self.pool_.values() for one in some}
        without = len(self.gold_) - len(parsed)
        return [f"{without} sentences have no phrase that can be exchanged"] if without else []

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _rewrite_batch(self, asked: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        of_each = dict(zip(range(len(asked)), self._phrases([one.sentence for one in asked]), strict=True))
        drawn: list[list[Sentence]] = []
        for i, one in enumerate(asked):
            count = self.num_candidates if self.scorer else 1
            drawn.append(self._candidates(one.sentence, of_each[i], one.rng, count))
        chosen = self._chosen(drawn) if self.scorer else [some[0] if some else None for some in drawn]
        return [_NO_PHRASE if one is None else one for one in chosen]

    def _candidates(self, sentence: Sentence, phrases: _Phrases, rng: Random, count: int) -> list[Sentence]:
        """So many new versions at most, each once; none where nothing can be exchanged."""
        own = self._number.get(sentence.fingerprint())
        targets = [span for span in sorted(phrases) if _is_labelled(sentence, span)]
        made: dict[object, Sentence] = {}
        for _ in range(count):
            one = self._drawn(sentence, own, targets, phrases, rng)
            if one is not None:
                made.setdefault((one.tokens, one.mentions), one)
        return list(made.values())

    def _drawn(
        self,
        sentence: Sentence,
        own: int | None,
        targets: list[Span],
        phrases: _Phrases,
        rng: Random,
    ) -> Sentence | None:
        edits: list[Edit] = []
        told: list[dict[str, object]] = []
        for target in rng.sample(targets, len(targets)):
            if any(target[0] < end and start < target[1] for start, end, *_ in edits):
                continue
            category = phrases[target][rng.randrange(len(phrases[target]))]
            donor = self._donor(sentence, own, target, category, rng)
            if donor is None:
                continue
            gives = self.gold_[donor.sentence]
            edits.append(
                graft(sentence, gives, target, donor.span, self._casing.words if self.normalize_boundaries else None)
            )
            told.append({"category": category, "out": list(target), "from": gives.key, "into": list(donor.span)})
            if len(edits) == self.num_replacements:
                break
        if not edits:
            return None
        sources = tuple(dict.fromkeys(str(one["from"]) for one in told))
        return sentence.edit(edits).with_(provenance=Provenance(sources=sources, details={"grafts": told}))

    def _donor(self, sentence: Sentence, own: int | None, target: Span, category: str, rng: Random) -> _Phrase | None:
        """A phrase of another sentence that does not say the same."""
        pool = self.pool_.get(category, [])
        here = _said(sentence, target)
        # Nearly every draw is good; what a few draws do not find is looked for one by one.
        for _ in range(8):
            if not pool:
                break
            one = pool[rng.randrange(len(pool))]
            if one.sentence != own and _said(self.gold_[one.sentence], one.span) != here:
                return one
        others = [one for one in pool if one.sentence != own and _said(self.gold_[one.sentence], one.span) != here]
        return others[rng.randrange(len(others))] if others else None

    def _chosen(self, drawn: list[list[Sentence]]) -> list[Sentence | None]:
        """Of the candidates for each the likeliest per word."""
        chosen: list[Sentence | None] = [None] * len(drawn)
        part: list[int] = []
        size = 0
        for i, some in enumerate(drawn):
            if some:
                part.append(i)
                size += len(some)
            if part and (size >= _TOGETHER or i == len(drawn) - 1):
                contests = [
                    CandidateSet(
                        [detokenize(s.tokens, s.spaces) for s in drawn[j]], [count_words(s.tokens) for s in drawn[j]]
                    )
                    for j in part
                ]
                if self.scorer == "masked":
                    verdicts = select_best(contests, 1, self.masked_lm_)
                else:
                    verdicts = select_best_left_to_right(contests, 1, self.causal_lm_)
                for j, verdict in zip(part, verdicts, strict=True):
                    one = drawn[j][verdict.best[0]]
                    own = (one.provenance or Provenance()).with_details(
                        lm_score=round(verdict.score, 4), candidates=len(drawn[j])
                    )
                    chosen[j] = one.with_(provenance=own)
                part, size = [], 0
        return chosen


def _said(sentence: Sentence, span: Span) -> object:
    """What a range says: its words, without case, and the mentions in it."""
    start, end = span
    mentions = [m.shift(-start) for m in sentence.mentions if start <= m.start and m.end <= end]
    return [word.lower() for word in sentence.tokens[start:end]], [(m.label, m.spans) for m in mentions]


def _is_labelled(sentence: Sentence, span: Span) -> bool:
    """Whether a mention begins in a range."""
    return any(span[0] <= mention.start < span[1] for mention in sentence.mentions)


def _is_all(sentence: Sentence, span: Span) -> bool:
    """Whether nothing but punctuation stands outside of a range."""
    outside = (*sentence.tokens[: span[0]], *sentence.tokens[span[1] :])
    return not any(c.isalnum() for word in outside for c in word)
