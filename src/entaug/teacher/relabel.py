"""A teacher checks and completes the labels of augmented sentences: what it says, what it changes, what is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal, NamedTuple, Self

from entaug.backends.component import Component
from entaug.backends.language_check import note_on_encoder
from entaug.backends.protocols import Tagger
from entaug.backends.resolve import check_name, is_alias
from entaug.config.params import Probability, construct, parameters, parse_assignments
from entaug.core.data import Provenance, Sentence
from entaug.core.mentions import Mention
from entaug.core.spacing import joined
from entaug.errors import EntaugError, InputError, LossError, ParameterError
from entaug.formats.corpus_file import CorpusFile
from entaug.teacher.label import RELATIONS

CHANGES = ("added", "softened", "disputed", "removed")
"""What may happen to a mention."""
DETAILS = "relabelled"
"""The key of `Provenance.details` under which the changes of a teacher stand."""
SOFT_LABELS = "tag_probabilities"
"""The field of `Sentence.layout` that holds `entaug.backends.soft_labels.TagProbabilities`."""
_UNLIKELY = "teacher: a mention is unlikely"
_TEACHER_SHARE = {"method": 0.0, "mean": 0.5, "teacher": 1.0}


class TagOpinion:
    """The opinion of a teacher that gives probabilities to tags; mentions are flat."""

    def __init__(self, probabilities: Any, tags: Sequence[str], unjudged: Sequence[Mention] = ()) -> None:
        from entaug.backends.soft_labels import TagProbabilities

        self._column = {tag: i for i, tag in enumerate(tags)}
        values = probabilities.aligned(tags)
        for mention in unjudged:
            for position in mention.positions():
                values[position] = 0
                values[position, self._column[f"{'B' if position == mention.start else 'I'}-{mention.label}"]] = 1
        aligned = TagProbabilities(tags, values)
        self.values: list[list[float]] = aligned.values.tolist()
        self.mentions = aligned.mentions()

    def probability(self, mention: Mention) -> float:
        """The probability of a mention: the lowest probability among the tags of the mention, and of its end."""
        begin, inside = (self._column[f"{prefix}-{mention.label}"] for prefix in "BI")
        values = [self.values[mention.start][begin]]
        values += [row[inside] for row in self.values[mention.start + 1 : mention.end]]
        values += [1 - row[inside] for row in self.values[mention.end : mention.end + 1]]
        return min(values)

    def disagreement(self, sentence: Sentence) -> float:
        """The improbability of the least probable tag of the sentence, from 0 to 1."""
        return 1 - min(row[self._column[tag]] for row, tag in zip(self.values, sentence.iob(), strict=True))


class MentionOpinion:
    """The opinion of a teacher that predicts mentions without probabilities."""

    def __init__(self, predicted: Sequence[Mention], *, is_flat: bool, unjudged: Sequence[Mention] = ()) -> None:
        kept = list(unjudged)
        taken = {position for mention in unjudged for position in mention.positions()}
        for mention in predicted:
            if not is_flat or (mention.is_contiguous and taken.isdisjoint(mention.positions())):
                kept.append(mention)
                taken.update(mention.positions())
        self.mentions = tuple(sorted(kept, key=lambda mention: mention.spans)) if unjudged else tuple(kept)

    def probability(self, mention: Mention) -> float:
        """The probability of a mention: 1 for one that was predicted, else 0."""
        return float(mention in self.mentions)

    def disagreement(self, sentence: Sentence) -> float:
        """The improbability of the labels of the sentence: 1 if other mentions are predicted, else 0."""
        return float(set(self.mentions) != set(sentence.mentions))


Opinion = TagOpinion | MentionOpinion


class Relabelled(NamedTuple):
    """The result of relabelling one sentence."""

    sentence: Sentence
    rejection: str | None = None


@dataclass(kw_only=True, eq=False)
class Relabeller(Component):
    """Joins the labels of a method with those of a teacher, which is trained on the gold sentences.

    The teacher gives a probability to every tag of every word. The probability of a mention is the lowest one among
    its tags, and that it ends where it ends. A mention that the teacher is sure of and that shares no word with a
    mention of the sentence is *added*. A mention of the sentence that the teacher finds improbable is *softened*: its
    words, and those of mentions that the teacher predicts there instead, get the mean of label and teacher as
    probabilities (see `entaug.backends.soft_labels`), which taggers learn in place of the label.

    If mentions are nested or discontinuous, or if the teacher gives no probabilities to tags (``w2ner``), whole
    mentions are compared: a mention has the probability 1 if the teacher predicts it, else 0. A mention that it does
    not predict cannot be softened then; it is *disputed*, which is reported and changes nothing.

    A teacher of another library may have no counterpart of some labels. Mentions with these labels stay as they are.

    The result depends on the sentence and the gold sentences alone.

    Args:
        tagger: the teacher: the name of a `Tagger`, which is trained on the gold sentences; a folder with a saved
            tagger, used as it is; or a `Tagger`, which is trained unless it is already.
        labels: the labels of the result. ``"method"``: those of the method, softened only where the teacher finds them
            improbable; ``"mean"``: for each word the mean of label and teacher, as probabilities; ``"teacher"``: what
            the teacher predicts, with its probabilities.
        add_threshold: the minimum probability of a mention that is added; none to add no mention. With
            ``labels=teacher`` all mentions that it predicts are taken.
        doubt_threshold: the maximum probability at which a mention of the method counts as improbable; none to trust
            all labels.
        improbable: what to do with a sentence that has an improbable mention: ``"soften"`` it, or ``"reject"`` the
            sentence, so that the method tries again.

    Example:
        >>> from entaug.backends.fakes import FakeTagger
        >>> gold = Sentence("Ada left Rome".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])])
        >>> teacher = Relabeller(tagger=FakeTagger()).fit([gold])
        >>> [result] = teacher.relabel([gold.with_(mentions=[Mention("LOC", [(2, 3)])])])
        >>> print(result.sentence)
        [Ada]PER left [Rome]LOC
        >>> result.sentence.provenance.details["relabelled"]["added"]
        [{'label': 'PER', 'spans': [[0, 1]], 'probability': 0.9273}]
    """

    name: ClassVar[str] = "teacher"

    tagger: Tagger | str = "ensemble"
    labels: Literal["method", "mean", "teacher"] = "method"
    add_threshold: Probability | None = 0.9
    doubt_threshold: Probability | None = 0.05
    improbable: Literal["soften", "reject"] = "soften"
    tagger_: Tagger = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._digest = self._gold = ""
        super().__post_init__()

    # ------------------------------------------------------------------------------------------------------- for users

    @property
    def spec(self) -> str:
        """The teacher and its parameters in the form that `create_relabeller` reads."""
        values = self.get_params(loaded=False)
        return _text_form(values.pop("tagger"), values)

    @property
    def signature(self) -> str:
        """The teacher and its parameters for provenance: like `spec`, but with the digest of one trained before."""
        values = self.get_params(loaded=True)
        name = values.pop("tagger")
        if self._digest:
            name += f"@{self._digest}"
        elif not isinstance(self.tagger, str):
            params: dict[str, Any] = getattr(self.tagger, "get_params", dict)()
            name += f"({', '.join(f'{key}={value}' for key, value in params.items())})" if params else ""
        return _text_form(name, values)

    def _check(self) -> None:
        check_name("tagger", self.tagger)

    def _load(self) -> None:
        super()._load()
        self._is_fitted, self._gold = False, ""
        self._unjudged: set[str] = set()
        self._encoder_notes: list[str] = []
        tagger: Any = self.tagger_
        self._digest = _digest(tagger) if _is_trained(self.tagger, tagger) else ""

    def fit(self, gold: Iterable[Sentence]) -> Self:
        """Train the teacher, unless it is trained already, and learn which labels there are.

        Args:
            gold: the training sentences (never dev or test sentences).

        Returns:
            This object. A second call with the same sentences does nothing.

        Raises:
            InputError: there are no mentions, or ones that the teacher cannot label.
            ParameterError: `labels` needs probabilities of tags, and the teacher gives none.
        """
        from entaug.backends.soft_labels import tags_of

        self.load()
        gold = list(gold)
        key = blake2b(b"".join(sentence.fingerprint() for sentence in gold), digest_size=16).hexdigest()
        if self._is_fitted and key == self._gold:
            return self
        labels = sorted({mention.label for sentence in gold for mention in sentence.mentions})
        if not labels:
            raise InputError("the training sentences have no mentions, which a teacher needs", remedy="use no teacher")
        self._encoder_notes = [] if self._digest else note_on_encoder(self.tagger_, gold)
        try:
            self._trained: Tagger = self.tagger_ if self._digest else self.tagger_.fit(gold)
        except LossError:
            raise self._flat_only() from None
        self._tags = tuple(tags_of(labels))
        self._is_flat = all(sentence.is_flat for sentence in gold)
        self._check_teacher(gold, labels)
        self._is_fitted, self._gold = True, key
        return self

    def _check_teacher(self, gold: Sequence[Sentence], labels: Sequence[str]) -> None:
        """Check that the teacher can label such sentences, and whether it gives probabilities to tags."""
        name = self._trained.name
        try:
            known = {tag[2:] for tag in self._trained.tag_probabilities(gold[:1])[0].tags}
            self._has_probabilities = True
        except ParameterError:  # as `Tagger.tag_probabilities` says
            known = set(getattr(self._trained, "labels_", labels))
            self._has_probabilities = False
        unknown = sorted(set(labels) - known)
        if hasattr(self._trained, "known_labels"):  # of another library: it has other labels, and says which
            self._unjudged = set(unknown)
        elif unknown:
            raise InputError(
                f"the teacher does not know the label {unknown[0]} of the training sentences",
                remedy="train it on these sentences, or on ones with the same labels",
            )
        if self._has_probabilities and not self._is_flat:
            raise self._flat_only()
        if self.labels == "mean" and not self._has_probabilities:
            raise ParameterError(
                f"labels=mean needs probabilities of tags, which the teacher {name} does not give",
                parameter="labels",
                remedy="use labels=method or labels=teacher",
            )

    def _flat_only(self) -> InputError:
        return InputError(
            f"there are nested or discontinuous mentions, and the teacher {self.tagger_.name} labels flat ones only",
            remedy="use the teacher w2ner",
        )

    def model_notes(self) -> list[str]:
        return [*super().model_notes(), *self._encoder_notes]

    def relabel(self, sentences: Sequence[Sentence]) -> list[Relabelled]:
        """Join the labels of sentences with those of the teacher.

        Args:
            sentences: augmented sentences.

        Returns:
            The result for each sentence.

        Raises:
            ParameterError: the teacher is not fitted.
            InputError: a sentence has labels that the gold sentences do not have, or nested mentions where these have
                none.
        """
        if not self.is_fitted:
            raise ParameterError("the teacher is not fitted", remedy="call fit(gold) first")
        return [self._join(sentence, self._ask(sentence)) for sentence in sentences]

    # ------------------------------------------------------------------------------------------------------- internals

    def _ask(self, sentence: Sentence) -> Opinion:
        """Ask the teacher about a sentence."""
        # It is asked about one sentence at a time: in a batch the sums of floating-point numbers, and with them the
        # last digits in the output, would depend on the other sentences.
        name, problem = sentence.id or joined(sentence.tokens)[:60], ""
        if unknown := [m.label for m in sentence.mentions if f"B-{m.label}" not in self._tags]:
            problem = f"the label {unknown[0]} of the sentence {name} is not among those of the training sentences"
        elif self._is_flat and not sentence.is_flat:
            problem = f"the sentence {name} has nested or discontinuous mentions, and the training sentences have none"
        if problem:
            raise InputError(problem, remedy="name the file that was augmented as `gold`")
        unjudged = [mention for mention in sentence.mentions if mention.label in self._unjudged]
        if self._has_probabilities:
            return TagOpinion(self._trained.tag_probabilities([sentence])[0], self._tags, unjudged)
        predicted = self._trained.predict([sentence])[0].mentions
        return MentionOpinion(predicted, is_flat=self._is_flat, unjudged=unjudged)

    def _join(self, sentence: Sentence, teacher: Opinion) -> Relabelled:
        own = sentence.mentions
        limit = self.doubt_threshold
        doubted = [mention for mention in own if limit is not None and teacher.probability(mention) <= limit]
        added: list[Mention] = []
        if self.labels == "teacher":
            mentions = teacher.mentions
            added = [mention for mention in mentions if mention not in own]
            changes = {"added": added, "removed": [mention for mention in own if mention not in mentions]}
        else:
            if self.add_threshold is not None:
                taken = {position for mention in own for position in mention.positions()}
                free = [mention for mention in teacher.mentions if taken.isdisjoint(mention.positions())]
                added = [mention for mention in free if teacher.probability(mention) >= self.add_threshold]
            mentions = (*own, *added)
            changes = {"added": added, "softened" if self._has_probabilities else "disputed": doubted}
        is_rejected = bool(doubted) and self.improbable == "reject"
        if is_rejected:
            changes = {"disputed": doubted}
        details: dict[str, Any] = {"disagreement": round(teacher.disagreement(sentence), 4)}
        details |= {name: [_described(one, teacher) for one in some] for name, some in changes.items() if some}
        provenance = (sentence.provenance or Provenance()).with_details(**{DETAILS: details})
        if is_rejected:
            return Relabelled(sentence.with_(provenance=provenance), _UNLIKELY)
        new = sentence.with_(mentions=mentions, provenance=provenance)
        if isinstance(teacher, TagOpinion):
            return Relabelled(self._with_probabilities(new, added, doubted, teacher))
        if new.mentions == own:
            return Relabelled(new)
        # Probabilities that the sentence had are not those of its new mentions.
        layout = {name: value for name, value in new.layout.items() if name not in (SOFT_LABELS, RELATIONS)}
        return Relabelled(new.with_(layout=layout))

    def _with_probabilities(
        self, new: Sentence, added: Sequence[Mention], doubted: Sequence[Mention], teacher: TagOpinion
    ) -> Sentence:
        """Attach the joined probabilities, unless all labels are hard."""
        import numpy as np

        from entaug.backends.soft_labels import TagProbabilities

        own = TagProbabilities.from_sentence(new)
        shares = np.full((len(new), 1), _TEACHER_SHARE[self.labels])
        if self.labels == "method":
            disputed = {position for mention in doubted for position in mention.positions()}
            for mention in teacher.mentions:  # those that the teacher sees in place of these mentions
                if not disputed.isdisjoint(mention.positions()) and mention not in new.mentions:
                    disputed.update(mention.positions())
            shares[list(disputed)] = 0.5
        if own is None and not shares.any():
            return new
        hard = np.array([[float(tag == name) for name in self._tags] for tag in new.iob()])
        rows = hard if own is None else own.aligned(self._tags).astype(float)
        certain = [position for mention in added for position in mention.positions()]
        rows[certain] = hard[certain]
        joined = (1 - shares) * rows + shares * np.array(teacher.values)
        return TagProbabilities(self._tags, joined, None if own is None else own.weights).attach_to(new)


def _described(mention: Mention, teacher: Opinion) -> dict[str, Any]:
    """A mention as it stands in the provenance."""
    spans = [list(span) for span in mention.spans]
    return {"label": mention.label, "spans": spans, "probability": round(teacher.probability(mention), 4)}


def create_relabeller(teacher: str | Relabeller | None) -> Relabeller | None:
    """Create a relabeller from its text form."""
    if teacher is None or isinstance(teacher, Relabeller):
        return teacher
    name, _, assignments = teacher.strip().rpartition(":")
    first, is_assigned, _ = assignments.partition("=")
    known = [parameter.name for parameter in parameters(Relabeller)]
    if not is_assigned or not first.isidentifier() or (":" not in name and not get_close_matches(first, known)):
        name, assignments = teacher.strip(), ""  # a tagger, perhaps with parameters of its own
    if name in ("", "none") and not assignments:
        return None
    values = parse_assignments(Relabeller, "the teacher", filter(None, assignments.split(",")))
    return construct(Relabeller, "the teacher", {**({"tagger": name} if name else {}), **values})


def _text_form(name: str, values: Mapping[str, Any]) -> str:
    texts = (f"{key}={'none' if value is None else value}" for key, value in values.items())
    return f"{name}:{','.join(texts)}"


def _is_trained(given: Tagger | str, tagger: Any) -> bool:
    """Whether a tagger is used as it is: one from a folder, or an object that was trained before."""
    return not is_alias("tagger", given) if isinstance(given, str) else bool(getattr(tagger, "labels_", None))


def _digest(tagger: Any) -> str:
    """A digest of a trained tagger, by which the output of one is told from that of another."""
    if checksum := getattr(tagger, "checksum", ""):  # an exported one, which cannot be saved
        return str(checksum)[:12]
    digest = blake2b(digest_size=6)
    with TemporaryDirectory() as folder:
        tagger.save(Path(folder, "tagger"))
        for path in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


# ----------------------------------------------------------------------------------------------------- what was changed


def changed_mentions(sentence: Sentence) -> list[tuple[str, Mention, Any]]:
    """Return what a teacher changed in a sentence, as its provenance tells."""
    details = sentence.provenance.details.get(DETAILS) if sentence.provenance else None
    given = [(name, details.get(name, ())) for name in CHANGES] if isinstance(details, Mapping) else []
    try:
        changes = [(n, Mention(e["label"], e["spans"]), e.get("probability")) for n, some in given for e in some]
    except (AttributeError, EntaugError, LookupError, TypeError, ValueError):  # a file that was edited by hand
        return []
    return [change for change in changes if change[1].end <= len(sentence)]


def count_changes(sentence: Sentence) -> Counter[str]:
    """Count what a teacher changed in a sentence."""
    return Counter(f"{change}: {mention.label}" for change, mention, _ in changed_mentions(sentence))


# --------------------------------------------------------------------------------------------------- what formats store


def check_soft_labels(relabeller: Relabeller | None, target: CorpusFile) -> None:
    """Check, before any work, that probabilities of tags can be written where they are all that a teacher gives."""
    if relabeller is not None and relabeller.labels == "mean":
        require_soft_labels(target, ", which labels=mean gives")


def require_soft_labels(target: CorpusFile, reason: str = "") -> None:
    """Check, before any work, that the format of an output stores probabilities of tags."""
    if not _keeps_soft_labels(target):
        message = f"{target.format.title} cannot store probabilities of tags{reason}"
        raise LossError(message, path=str(target.path), remedy="write JSON lines: -o NAME.jsonl")


def notes_on_soft_labels(relabelled: Counter[str], target: CorpusFile) -> list[str]:
    """Return a note for the user if softened labels are written as hard ones."""
    softened = sum(count for change, count in relabelled.items() if change.startswith("softened"))
    if not softened or _keeps_soft_labels(target):
        return []
    note = f"{target.format.title} cannot store probabilities of tags: {softened:,} softened mentions keep their labels"
    return [f"{note}; write JSON lines (-o NAME.jsonl) to train with soft labels"]


def _keeps_soft_labels(target: CorpusFile) -> bool:
    return not target.lost(Sentence(["a"], layout={SOFT_LABELS: {}}))
