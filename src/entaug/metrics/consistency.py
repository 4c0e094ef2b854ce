"""Labels that contradict one another: the same words labelled in one way here and in another there.

A label is judged by the other places of the corpus, and by the opinion of a teacher where there is one (see
`entaug.teacher.audit`), which counts as much as one place. The score of a finding is one minus the share of the
places that are labelled as is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from entaug.core.changes import Change
from entaug.core.data import Sentence
from entaug.core.mentions import Mention, Span, contiguous_mention
from entaug.core.phrases import Phrases
from entaug.core.spacing import joined
from entaug.errors import InputError

KINDS = ("missing", "spurious", "type", "boundary", "type and boundary")
"""Kinds of errors of labels, named as in `entaug.metrics.span_f1.ERROR_KINDS`."""
SUSPICIOUS = 0.7
"""The score from which on a label counts as suspicious."""

# Set on two corpora with planted errors (parts of the training files of CrossNER politics and WNUT-17), where half or
# double of each changes the average precision of sentences by up to three points. Words at edges have a low limit,
# because most findings that rest on them alone were wrong in files without planted errors.
_TEACHER = 1.0  # as many places as the opinion of a teacher counts
_GIVEN = 0.05  # as much of a place as is in favour of any label, so that a teacher alone is never certain
_EDGE = 0.5  # as much of a place as a word at the same edge of another mention counts
_MAX_PLACES, _MAX_EDGES = 20, 4  # more than these count as many as these
_TRUST = 0.9  # the probability that a label is right without a teacher; it counts as one place

_Part = tuple[int, int, str]
_Pattern = tuple[_Part, ...]  # the mentions in a piece of text: their first word, end and label, from its beginning


class Usage(NamedTuple):
    """Numbers of other places of a corpus that are labelled as is suggested, and as is given."""

    suggested: int = 0
    given: int = 0


class Judge(Protocol):
    """The opinion of a model about the labels of a sentence."""

    def changes(self, sentence: Sentence) -> Iterable[Change]:
        """Return what may be labelled otherwise."""
        ...

    def probabilities(self, sentence: Sentence, change: Change) -> tuple[float, float]:
        """Return how probable what is given is, and how probable what is suggested."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """A label of a corpus that may be wrong.

    Args:
        place: the position of its sentence in the corpus.
        given: the mention that is annotated; None where one is missing.
        suggested: the mention that may be right; None where there may be none.
        score: how suspicious the label is, from 0 to 1.
        support: how probable the suggestion is, from 0 to 1; where it is low, something else may be right.
        reason: why, in words.

    Raises:
        InputError: the mention that is suggested is the one that is annotated.

    Example:
        >>> Finding(0, None, Mention("LOC", [(3, 4)]), 0.9).kind
        'missing'
    """

    place: int
    given: Mention | None
    suggested: Mention | None
    score: float = 0.0
    support: float = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        if self.given == self.suggested:
            raise InputError("a finding needs a suggestion that differs from what is annotated")

    @property
    def kind(self) -> str:
        """The kind of the error, see `KINDS`."""
        return Change(self.given, self.suggested).kind


def find_label_errors(
    sentences: Iterable[Sentence], judges: Sequence[Judge] | None = None, *, min_score: float = 0.0
) -> list[Finding]:
    """Find labels of a corpus that are probably wrong.

    Args:
        sentences: the sentences.
        judges: the opinion of a teacher about each of them, see `entaug.teacher.ask_teachers`; None to compare
            the labels with one another only.
        min_score: the lowest score of a finding.

    Returns:
        The findings, the most suspicious first; at most one for each mention, and for each place without one.

    Example:
        >>> def labelled(tokens, *spans):
        ...     return Sentence(tokens.split(), [Mention("TASK", [span]) for span in spans])
        >>> corpus = [labelled("machine translation is hard", (0, 2)), labelled("we do machine translation", (2, 4))]
        >>> [found] = find_label_errors([*corpus, labelled("on machine translation")], min_score=0.5)
        >>> found.kind, found.suggested, round(found.score, 2)
        ('missing', Mention(label='TASK', spans=((1, 3),)), 0.7)
        >>> found.reason
        '"machine translation" is labelled TASK 2 times elsewhere, and 0 times unlabelled'
    """
    sentences = list(sentences)
    usages = Usages(sentences)
    findings: list[Finding] = []
    for place, sentence in enumerate(sentences):
        judge = None if judges is None else judges[place]
        best: dict[Mention | tuple[Span, ...], Finding] = {}
        candidates = [*usages.changes(sentence), *(Change(mention, None) for mention in sentence.mentions)]
        for change in dict.fromkeys([*candidates, *(judge.changes(sentence) if judge is not None else ())]):
            if usages.fits(sentence, change):
                finding = _judged(place, sentence, change, usages, judge)
                key = change.given or (change.suggested.spans if change.suggested is not None else ())
                if key not in best or finding.support > best[key].support:
                    best[key] = finding
        findings += usages.compatible(finding for finding in best.values() if finding.score >= min_score)
    return sorted(findings, key=_rank)


def _rank(finding: Finding) -> tuple[float, float, int]:
    return -finding.score, -finding.support, finding.place


def _judged(place: int, sentence: Sentence, change: Change, usages: Usages, judge: Judge | None) -> Finding:
    """A finding with its score."""
    given, suggested = (_TRUST, 1 - _TRUST) if judge is None else judge.probabilities(sentence, change)
    trusted = 0.0 if judge is None else _GIVEN
    counts = [_TEACHER * suggested, _TEACHER * given + trusted]
    total, reasons = _TEACHER + trusted, list[str]()
    form, edge = usages.form(sentence, change), usages.edge(sentence, change)
    for usage, most, of_each in ((form, _MAX_PLACES, 1.0), (edge, _MAX_EDGES, _EDGE)):
        weight = of_each * min(1.0, most / max(1, sum(usage)))
        counts = [count + weight * number for count, number in zip(counts, usage, strict=True)]
        total += weight * sum(usage)
    if any(form):
        reasons.append(_form_in_words(sentence, change, form))
    if any(edge):
        words = (
            f"{edge.suggested} mentions of {change.given.label if change.given else ''} have the edge suggested here"
        )
        reasons.append(f"{words}, {edge.given} the one given")
    if judge is not None:
        reasons.append(f"the teacher gives {suggested:.0%} to the suggestion and {given:.0%} to the label given")
    return Finding(place, *change, 1 - counts[1] / total, counts[0] / total, "; ".join(reasons))


def _form_in_words(sentence: Sentence, change: Change, usage: Usage) -> str:
    start, end = hull(change)
    names = [f"labelled {m.label}" if m else "unlabelled" for m in (change.suggested, change.given)]
    if change.given and change.suggested and change.given.spans != change.suggested.spans:
        names = ["labelled as suggested", "as given"]
    text = joined(sentence.tokens[start:end])
    counts = [f"{number} time{'s' * (number != 1)}" for number in usage]
    return f'"{text}" is {names[0]} {counts[0]} elsewhere, and {counts[1]} {names[1]}'


def hull(change: Change) -> Span:
    """Return the range of words that both mentions of a change cover."""
    both = [mention for mention in change if mention is not None]
    return min(mention.start for mention in both), max(mention.end for mention in both)


class Usages:
    """Counts of how the words of a corpus are labelled, and questions about its sentences."""

    # For each piece of text that is a mention anywhere it counts the ways in which it is labelled, and for each label
    # the words that stand inside and beside the edges of its mentions. Mentions with gaps are left out.

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self._are_nested = not all(sentence.is_flat for sentence in sentences)
        self._patterns: dict[tuple[str, ...], Counter[_Pattern]] = {}
        self._inside: Counter[tuple[str, str, int]] = Counter()
        self._beside: Counter[tuple[str, str, int]] = Counter()
        for sentence in sentences:
            for mention in sentence.mentions:
                if mention.is_contiguous:
                    form = sentence.mention_tokens(mention)
                    self._patterns[form] = Counter()
                    for word, side, is_inside in _edges(sentence.tokens, mention):
                        (self._inside if is_inside else self._beside)[mention.label, word, side] += 1
        self._forms = Phrases(self._patterns)
        for sentence in sentences:
            for start, end in self._forms.find(sentence.tokens):
                pattern = self._pattern(sentence, start, end)
                if pattern is not None:
                    self._patterns[sentence.tokens[start:end]][pattern] += 1

    def changes(self, sentence: Sentence) -> Iterator[Change]:
        """Yield what is labelled otherwise at other places."""
        for start, end in self._forms.find(sentence.tokens):
            own = self._pattern(sentence, start, end)
            for pattern in self._patterns[sentence.tokens[start:end]] if own is not None else ():
                given, suggested = set(own or ()).difference(pattern), set(pattern).difference(own or ())
                if max(len(given), len(suggested)) == 1:
                    yield Change(*(_mention(parts, start) for parts in (given, suggested)))
        for mention in sentence.mentions:
            for start, end in _neighbours(mention, len(sentence)):
                change = Change(mention, contiguous_mention(mention.label, start, end))
                if self.edge(sentence, change).suggested:
                    yield change

    def fits(self, sentence: Sentence, change: Change) -> bool:
        """Return whether a suggestion leaves the mentions flat, where those of the corpus are."""
        new = change.suggested
        if new is None:
            return True
        others = [mention for mention in sentence.mentions if mention != change.given]
        return new not in others and (self._are_nested or not any(_overlap(new, other) for other in others))

    def compatible(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings of a sentence, of missing mentions that overlap the one that explains most words."""
        if self._are_nested:
            return list(findings)
        kept: list[Finding] = []
        for finding in sorted(
            findings, key=lambda one: -one.support * (one.suggested is not None and _size(one.suggested))
        ):
            new = finding.suggested if finding.given is None else None
            others = [one.suggested for one in kept if one.given is None and one.suggested is not None]
            if new is None or not any(_overlap(new, other) for other in others):
                kept.append(finding)
        return kept

    def form(self, sentence: Sentence, change: Change) -> Usage:
        """Count how the text of both mentions of a change is labelled at other places."""
        if not _are_contiguous(change):
            return Usage()
        start, end = hull(change)
        patterns, own = self._patterns.get(sentence.tokens[start:end]), self._pattern(sentence, start, end)
        if not patterns or own is None:
            return Usage()
        given, suggested = (set[_Part]() if m is None else {_part(m, start)} for m in change)
        return Usage(patterns[tuple(sorted((set(own) - given) | suggested))], patterns[own] - 1)

    def edge(self, sentence: Sentence, change: Change) -> Usage:
        """Count on which side of edges of other mentions the words are that a change of a boundary moves."""
        # Of several words it is the one that is least often on the side that is suggested.
        given, suggested = change
        if given is None or suggested is None or given.label != suggested.label or not _are_contiguous(change):
            return Usage()
        found = []
        for side, here, there in ((0, given.start, suggested.start), (1, given.end, suggested.end)):
            is_wider = (there < here) is (side == 0)
            at_edge = here - 1 if is_wider is (side == 0) else here  # the place itself is among the counts
            for position in range(min(here, there), max(here, there)):
                key, own = (given.label, sentence.tokens[position], side), position == at_edge
                inside, beside = self._inside[key], self._beside[key]
                found.append(Usage(inside, beside - own) if is_wider else Usage(beside, inside - own))
        return min(found, key=lambda usage: usage.suggested / (sum(usage) + 1), default=Usage())

    def _pattern(self, sentence: Sentence, start: int, end: int) -> _Pattern | None:
        """The labels of a piece of text; None where a mention goes beyond it."""
        pattern = []
        for mention in sentence.mentions:
            if mention.end <= start or end <= mention.start:
                continue
            if mention.is_contiguous and start <= mention.start and mention.end <= end:
                pattern.append(_part(mention, start))
            elif not (self._are_nested and mention.start <= start and end <= mention.end):
                return None
        return tuple(sorted(pattern))


def _are_contiguous(change: Change) -> bool:
    return all(mention is None or mention.is_contiguous for mention in change)


def _size(mention: Mention) -> int:
    return mention.end - mention.start


def _overlap(one: Mention, other: Mention) -> bool:
    return one.start < other.end and other.start < one.end


def _part(mention: Mention, start: int) -> _Part:
    return mention.start - start, mention.end - start, mention.label


def _mention(parts: Iterable[_Part], start: int) -> Mention | None:
    return next((contiguous_mention(label, start + first, start + end) for first, end, label in parts), None)


def _edges(tokens: Sequence[str], mention: Mention) -> Iterator[tuple[str, int, bool]]:
    """The words at the edges of a mention: the word, its side (0 before, 1 after), and whether it is inside."""
    if mention.end - mention.start > 1:
        yield tokens[mention.start], 0, True
        yield tokens[mention.end - 1], 1, True
    if mention.start > 0:
        yield tokens[mention.start - 1], 0, False
    if mention.end < len(tokens):
        yield tokens[mention.end], 1, False


def _neighbours(mention: Mention, length: int) -> Iterator[Span]:
    """The spans with one word more or one word less than a contiguous mention at one edge."""
    if mention.is_contiguous:
        start, end = mention.spans[0]
        for first, last in ((start - 1, end), (start + 1, end), (start, end - 1), (start, end + 1)):
            if 0 <= first < last <= length:
                yield first, last
