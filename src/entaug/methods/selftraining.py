"""Self-training: sentences of unlabelled text with the labels of a teacher."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from entaug.config.params import PositiveInt, Probability
from entaug.core.data import Sentence
from entaug.core.edits import PLACEHOLDER
from entaug.errors import InputError, ParameterError
from entaug.filters.base import content_digest
from entaug.methods.base import NOT_SEEN, Augmenter, MethodInfo, Rejection, Request
from entaug.methods.shared.generated_text import distinct_sentences
from entaug.methods.types import RunStatistics
from entaug.teacher.label import PseudoLabelled, balanced, label_sentences, ranked
from entaug.teacher.train import Teacher, TeacherParameters

_NO_MORE = Rejection("no further sentence of the unlabelled text", final=True)
_MANY_EMPTY = 0.9


@dataclass(kw_only=True, eq=False)
class SelfTraining(TeacherParameters, Augmenter):
    """Label the sentences of unlabelled text with a teacher that was trained on the training sentences.

    The teacher is an ensemble of taggers. A new sentence is a sentence of the text with the mentions of the likeliest
    valid sequence of tags. It also has the probabilities of all tags of each word (the field ``tag_probabilities`` in
    JSON Lines and Parquet), which the taggers of entaug learn as soft labels, and in its provenance the confidence of
    the teacher and the id of the sentence in the text.

    Corpora with nested or discontinuous mentions need a teacher that predicts these (``ensemble_member="w2ner"``), and
    their new sentences have the probabilities of relations between words (``relation_probabilities``).

    New sentences have no source; the source in provenance only determines the position in the output. `copies` is the
    number of new sentences for each training sentence, so that amounts can be compared with other methods.

    Args:
        copies: the number of new sentences per training sentence; none for all sentences of the text that are
            selected.
        unlabelled: the sentences of the text; `entaug.read_unlabelled` reads them from files. Duplicates and training
            sentences are left out.
        sentences: the maximum number of new sentences; none for no maximum.
        prefer: which sentences to take first: ``"random"``, or ``"confident"``, those with the highest confidence,
            which tend to be short and to have few mentions.
        min_confidence: the minimum confidence of the teacher in a sentence: the geometric mean, over its words, of the
            probability of the likeliest tag.
        min_token_confidence: words whose likeliest tag is less probable have the weight 0 in training; a sentence
            without other words is left out.
        balance: the distribution of types: ``"none"``, as the teacher predicts them; ``"gold"``, as in the training
            sentences; or ``"equal"``. Sentences that would shift it are left out.
        rounds: the number of times that the text is labelled. From the second round on, the teacher has been trained on
            the sentences that were selected in the round before, then on the training sentences.
        max_attempts: has no effect; a sentence that a filter rejects is left out.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeTagger
        >>> gold = [Sentence(["Rome", "burns"], [Mention("LOC", [(0, 1)])])]
        >>> text = [Sentence(["Rome", "burns"]), Sentence(["So", "it", "goes"], id="novel:3")]
        >>> [new] = SelfTraining(unlabelled=text, tagger=FakeTagger()).fit(gold).augment(gold)
        >>> print(new), new.provenance.details["text"]
        So it goes
        (None, 'novel:3')
    """

    copies: PositiveInt | None = None  # type: ignore[assignment]
    unlabelled: Sequence[Sentence] | None = field(default=None, metadata={"given": "--unlabelled FILE"})
    sentences: PositiveInt | None = None
    prefer: Literal["random", "confident"] = "random"
    min_confidence: Probability = 0.0
    min_token_confidence: Probability = 0.0
    balance: Literal["none", "gold", "equal"] = "none"
    rounds: PositiveInt = 1

    info: ClassVar[MethodInfo] = MethodInfo(
        name="selftrain",
        long_name="self-training",
        summary="sentences of your unlabelled text, labelled by taggers trained on the corpus",
        paper="Yarowsky 1995, Unsupervised Word Sense Disambiguation Rivaling Supervised Methods",
        keeps_mentions=False,
        has_labels=False,
        needs_fit=True,
        needs_mentions=True,
        unconditioned=True,
        needs=("tagger",),
        cost="training an ensemble of taggers (minutes on a CPU), then milliseconds per sentence",
    )

    # ------------------------------------------------------------------------------------------------------- parameters

    def _check(self) -> None:
        if self.unlabelled is None:
            raise ParameterError(
                "selftrain needs unlabelled text", remedy="name files as `unlabelled`, or give sentences in Python"
            )
        if not len(self.unlabelled):
            raise ParameterError("the unlabelled text has no sentence", remedy="name a file that has some")

    def _uses_backend(self, kind: str) -> bool:
        return kind != "tagger"  # `create_teacher` creates it, with its parameters

    def _load(self) -> None:
        super()._load()
        self.tagger_: Any = self.create_teacher(self.seed)

    def _plain(self, name: str, value: Any) -> Any:
        if name == "unlabelled":
            return content_digest(sentence.tokens for sentence in value or ())
        return super()._plain(name, value)

    @property
    def attempts(self) -> int:
        """The maximum number of drafts for a copy: 1, because each copy is a given sentence of the text."""
        return 1

    # -------------------------------------------------------------------------------------------------------------- fit

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = distinct_sentences(corpus)
        self._positions = {sentence.fingerprint(): i for i, sentence in enumerate(gold)}
        self.selected_: list[PseudoLabelled] = []
        if not any(sentence.mentions for sentence in gold):
            return  # the base class raises the error
        text = self._new_text(gold)
        teacher: Teacher = self.tagger_
        is_flat = all(sentence.is_flat for sentence in gold)
        for _ in range(self.rounds):
            teacher.fit(gold, [one.sentence for one in self.selected_], self.progress)
            labelled = label_sentences(
                text, teacher.tagger, min_token_confidence=self.min_token_confidence, is_flat=is_flat
            )
            self.selected_ = self._select(labelled, gold)

    def _new_text(self, gold: Sequence[Sentence]) -> list[Sentence]:
        """Return the distinct sentences of the text that are not training sentences."""
        known = {sentence.tokens for sentence in gold}
        assert self.unlabelled is not None
        distinct = {s.tokens: s for s in sorted(self.unlabelled, key=lambda s: (s.tokens, s.id or ""), reverse=True)}
        text = [sentence for tokens, sentence in distinct.items() if tokens not in known]
        self.num_known_ = len(distinct) - len(text)
        self.num_duplicates_ = len(self.unlabelled) - len(distinct)
        if not text:
            raise InputError(
                f"all {len(self.unlabelled):,} sentences of the unlabelled text are training sentences",
                path=getattr(self.unlabelled, "source", None),
                remedy="name another text",
            )
        return text

    def _select(self, labelled: Sequence[PseudoLabelled], gold: Sequence[Sentence]) -> list[PseudoLabelled]:
        kept = [one for one in labelled if one.confidence >= self.min_confidence]
        self.num_unsure_ = len(labelled) - len(kept)
        kept = ranked(filter(_has_words, kept), self.prefer, self.seed)
        limits = [self.sentences, None if self.copies is None else self.copies * len(gold)]
        limit = min((limit for limit in limits if limit is not None), default=None)
        if self.balance == "none":
            return kept[:limit]
        counts = Counter(mention.label for sentence in gold for mention in sentence.mentions)
        shares = {label: count if self.balance == "gold" else 1 for label, count in counts.items()}
        total = sum(shares.values())
        empty_share = sum(not sentence.mentions for sentence in gold) / len(gold)
        return balanced(kept, {label: share / total for label, share in shares.items()}, empty_share, limit)

    # ---------------------------------------------------------------------------------------------------------- augment

    def copies_of(self, source: Sentence) -> int:
        if self.copies is not None:
            return self.copies
        position = self._positions.get(source.fingerprint())
        if position is None:
            return 1
        return len(range(position, len(self.selected_), len(self._positions)))

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        return [self._take(request) for request in requests]

    def _take(self, request: Request) -> Sentence | Rejection:
        """Return the sentence of the text for a source and copy; the selection is dealt out to the sources in turn."""
        position = self._positions.get(request.sentence.fingerprint())
        if position is None:
            return NOT_SEEN
        index = position + (request.copy - 1) * len(self._positions)
        if index >= len(self.selected_):
            return _NO_MORE
        sentence = self.selected_[index].sentence
        columns = {name: (PLACEHOLDER,) * len(sentence) for name in request.sentence.columns}
        return sentence.with_(columns=columns)

    # ------------------------------------------------------------------------------------------------------------ notes

    def notes(self) -> list[str]:
        notes = [*getattr(self.unlabelled, "notes", ()), *super().notes()]
        for count, text in (
            (self.num_duplicates_, "of the unlabelled text are duplicates"),
            (self.num_known_, "of the unlabelled text are training sentences"),
            (self.num_unsure_, f"are left out because the confidence of the teacher is below {self.min_confidence}"),
        ):
            if count:
                notes.append(f"{count:,} sentences {text}")
        empty = sum(not one.sentence.mentions for one in self.selected_)
        if empty > _MANY_EMPTY * len(self.selected_):
            notes.append(f"the teacher finds no mention in {empty:,} of {len(self.selected_):,} sentences")
        return notes

    def advice(self, statistics: RunStatistics) -> list[str]:
        if statistics.accepted:
            return []
        return ["no sentence of the unlabelled text was selected: lower min_confidence, or leave out balance"]


def _has_words(labelled: PseudoLabelled) -> bool:
    """Whether a sentence has a word that is not masked."""
    weights = [soft["weights"] for soft in labelled.sentence.layout.values() if "weights" in soft]
    return not weights or any(weights[0])
