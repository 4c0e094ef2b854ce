"""The augmented sentences of a report as JSON for its script, with what changed between them and their sources."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple, Self

from entaug.core.data import Sentence
from entaug.core.explain import Origins, WordEdit, explain, word_edits
from entaug.core.mentions import Span
from entaug.core.spacing import infer_spaces, is_unspaced_script, joined
from entaug.files.json_text import json_text
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair
from entaug.report.html.marks import method_marks
from entaug.teacher.relabel import DETAILS, changed_mentions

# -------------------------------------------------------------------------------------------------------------- changes

Mark = tuple[int, int, str]
"""Start and end of a token range, and its kind: ``"added"``, ``"removed"``, ``"moved"`` or ``"transferred"``."""

_MIN_KEPT = 0.25
"""Share of kept words below which no marks are given: nearly every word would be marked."""


class Side(NamedTuple):
    """A gold sentence beside an augmented one."""

    sentence: Sentence
    role: str
    marks: tuple[Mark, ...] = ()


class Changes(NamedTuple):
    """Changes of an augmented sentence."""

    sides: tuple[Side, ...] = ()
    marks: tuple[Mark, ...] = ()
    changed: float | None = None
    is_rewritten: bool = False
    edits: Sequence[WordEdit] | None = None


def find_changes(pair: AugmentedPair) -> Changes:
    """Find what changed between an augmented sentence and its source."""
    if pair.source is None:
        return Changes()
    return _transfers(pair, pair.source) or _compare(pair, pair.source)


class _Transfer(NamedTuple):
    """A range of a sentence that was replaced by a range of another one."""

    removed: Span
    donor: Sentence | None
    taken: Span


def _transfers(pair: AugmentedPair, source: Sentence) -> Changes | None:
    """Changes as the provenance of ``cassi`` or ``cr`` tells them; None if it does not, or not for these tokens."""
    details = pair.provenance.details
    recipient, donors = source, pair.other_sources
    transfers: list[_Transfer | None] = []
    if details.get("frame") in (0, 1) and donors:
        if details["frame"] == 1:
            recipient, donors = donors[0], (source,)
        donors = donors[:1]
        transfers = [_transfer(details, recipient, donors[0])]
    elif isinstance(grafts := details.get("grafts"), list):
        by_key = dict(zip(pair.provenance.sources[1:], donors, strict=False))
        donors = tuple(by_key.values())
        transfers = [_transfer(g, source, by_key.get(str(g["from"]))) if _is_graft(g) else None for g in grafts]
    known = sorted((t for t in transfers if t is not None), key=lambda t: t.removed)
    if not known or len(known) < len(transfers):
        return None
    tokens: list[str] = []
    inserted: list[Span] = []
    end = 0
    for transfer in known:
        if transfer.removed[0] < end:
            return None
        tokens += recipient.tokens[end : transfer.removed[0]]
        inserted.append((len(tokens), len(tokens) + transfer.taken[1] - transfer.taken[0]))
        tokens += pair.augmented.tokens[slice(*inserted[-1])]
        end = transfer.removed[1]
    if (*tokens, *recipient.tokens[end:]) != pair.augmented.tokens:  # the file was edited since
        return None
    sides = [Side(recipient, "recipient", tuple((*t.removed, "removed") for t in known))]
    for donor in donors:
        taken = sorted(t.taken for t in known if t.donor is donor)
        sides.append(Side(donor, "donor", tuple((*span, "transferred") for span in taken)))
    changed = sum(end - start for start, end in inserted) / len(pair.augmented)
    return Changes(tuple(sides), tuple((*span, "transferred") for span in inserted), changed)


def _is_graft(value: object) -> bool:
    return isinstance(value, Mapping) and bool(value.get("from"))


def _transfer(value: Mapping[str, object], recipient: Sentence, donor: Sentence | None) -> _Transfer | None:
    removed = _span(value.get("out"), len(recipient))
    taken = _span(value.get("into"), 1 << 30 if donor is None else len(donor))
    return None if removed is None or taken is None else _Transfer(removed, donor, taken)


def _span(value: object, length: int) -> Span | None:
    """A range of tokens in provenance; None if it is no valid range of a sentence of this length."""
    if not (isinstance(value, list | tuple) and len(value) == 2 and all(type(n) is int for n in value)):
        return None
    start, end = value
    return (start, end) if 0 <= start < end <= length else None


def _compare(pair: AugmentedPair, source: Sentence) -> Changes:
    """Changes by comparison of the tokens."""
    augmented = pair.augmented
    edits = word_edits(source, augmented)
    removed = [(start, end) for (start, end), _ in edits if end > start]
    added = [(start, end) for _, (start, end) in edits if end > start]
    moved = _shared_words(source, removed, augmented, added)
    others = [Side(other, "other") for other in pair.other_sources]
    changed = sum(end - start for start, end in added) / len(augmented)
    if 1 - changed + moved.total() / len(augmented) < _MIN_KEPT:
        return Changes((Side(source, "source"), *others), (), changed, True, edits)
    sides = (Side(source, "source", _marks(source, removed, moved, "removed")), *others)
    return Changes(sides, _marks(augmented, added, moved, "added"), changed, False, edits)


def _shared_words(
    source: Sentence, removed: Sequence[Span], augmented: Sentence, added: Sequence[Span]
) -> Counter[str]:
    """The words that are in the ranges of both sentences, which is rare."""
    old = [token for start, end in removed for token in source.tokens[start:end]]
    new = [token for start, end in added for token in augmented.tokens[start:end]]
    return Counter() if set(old).isdisjoint(new) else Counter(old) & Counter(new)


def _marks(sentence: Sentence, spans: Sequence[Span], moved: Counter[str], kind: str) -> tuple[Mark, ...]:
    """The ranges with their kind; words that are also in the ranges of the other sentence have moved."""
    if not moved:
        return tuple([(start, end, kind) for start, end in spans])
    left = moved.copy()
    marks: list[Mark] = []
    for start, end in spans:
        kinds = []
        for token in sentence.tokens[start:end]:
            kinds.append("moved" if left[token] > 0 else kind)
            left[token] -= 1
        cuts = [0, *(i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]), len(kinds)]
        marks += [(start + first, start + last, kinds[first]) for first, last in pairwise(cuts)]
    return tuple(marks)


# ----------------------------------------------------------------------------------------------------------------- JSON

_DISAGREEMENT = "teacher"  # the score by which suspicious labels come first
_ALWAYS_SHOWN = ("changed", "perplexity", "source_lm_difference", "similarity", _DISAGREEMENT)


class ScoreColumn(NamedTuple):
    """A score of single sentences."""

    name: str
    title: str
    description: str
    values: Mapping[str, Sequence[float | None]]


class ReportData(NamedTuple):
    """The data of a report: JSON, its digest, and the number of pairs."""

    json: str
    digest: str
    size: int

    @classmethod
    def of(cls, data: Mapping[str, Any], size: int) -> Self:
        """Encode what a page shows, and identify it."""
        text = safe_json(data)
        return cls(text, blake2b(text.encode(), digest_size=8).hexdigest(), size)


def report_data(corpus: AugmentedCorpus, columns: Iterable[ScoreColumn] = ()) -> ReportData:
    """Encode the pairs of all methods with everything that the report shows of them."""
    # A pair has the members `g` number of its method in the list, `f` fingerprint, `n` name of the method, `i` id, `m`
    # augmented sentence, `d` its marks, `s` gold sentences as number, role and marks, `v` scores, and where there are
    # any `p` its provenance in words, `a` 1 if it is rewritten, `r` number of the reason of its rejection, `t` what a
    # teacher changed: change, label, words and probability of each mention. A sentence has `t` tokens, joined by spaces
    # where none holds a space, `m` mentions as number of the label and spans, and where known, or the script has none,
    # `s` spaces, and where known `l` language.
    changes = {method: [find_changes(pair) for pair in pairs] for method, pairs in corpus.methods.items()}
    scores = [*_own_scores(corpus, changes), *columns]
    labels = {label: number for number, label in enumerate(_labels(corpus))}
    origins = Origins(corpus.gold)
    signs = method_marks(corpus)
    gold: list[dict[str, Any]] = []
    gold_numbers: dict[int, int] = {}  # a gold sentence is encoded once, however many pairs have it
    reasons: dict[str, int] = {}
    encoded = []

    def gold_number(sentence: Sentence) -> int:
        if id(sentence) not in gold_numbers:
            gold_numbers[id(sentence)] = len(gold)
            gold.append(encode_sentence(sentence, labels) | ({} if sentence.id is None else {"i": sentence.id}))
        return gold_numbers[id(sentence)]

    for number, (method, pairs) in enumerate(corpus.methods.items()):
        values = [column.values.get(method) or [None] * len(pairs) for column in scores]
        for pair, change, *row in zip(pairs, changes[method], *values, strict=True):
            member: dict[str, Any] = {
                "g": number,
                "f": pair.augmented.fingerprint().hex(),
                "n": pair.provenance.method,
                "i": pair.augmented.id,
                "m": encode_sentence(pair.augmented, labels),
                "d": change.marks,
                "s": [[gold_number(side.sentence), side.role, side.marks] for side in change.sides],
                "v": [_round(value) for value in row],
            }
            scored = (key for key, value in pair.provenance.details.items() if type(value) is float)
            told = explain(
                pair.augmented,
                pair.source,
                pair.other_sources,
                origins=origins,
                edits=change.edits,
                without={DETAILS, *scored},  # they are shown as scores, and as what a teacher says
            )
            if told:
                member["p"] = told
            if change.is_rewritten:
                member["a"] = 1
            if changes_of_teacher := _changes_of_teacher(pair):
                member["t"] = changes_of_teacher
            if pair.rejection is not None:
                member["r"] = reasons.setdefault(pair.rejection, len(reasons))
            encoded.append(member)
    data = {
        "methods": [
            {"name": name, "signature": signature_of(pairs), **signs[name]._asdict()}
            for name, pairs in corpus.methods.items()
        ],
        "types": list(labels),
        "scores": [
            {"name": c.name, "title": c.title, "description": c.description, "always": c.name in _ALWAYS_SHOWN}
            for c in scores
        ],
        "reasons": list(reasons),
        "gold": gold,
        "pairs": encoded,
    }
    return ReportData.of(data, len(encoded))


def signature_of(pairs: Sequence[AugmentedPair]) -> str | None:
    """The signature of a method with its parameters; None if the provenance of its sentences has none."""
    return next((pair.provenance.signature for pair in pairs if pair.provenance.signature), None)


def safe_json(data: Any) -> str:
    """Return JSON that contains no markup and no line end of scripts."""
    try:
        text = json_text(data)
    except TypeError:  # a lone surrogate, or a value in provenance that JSON cannot represent
        text = json.dumps(data, separators=(",", ":"), default=str)
    for character in "<>&\u2028\u2029":  # which is much faster than one translation
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def encode_sentence(sentence: Sentence, labels: Mapping[str, int]) -> dict[str, Any]:
    """Return what a page shows of a sentence, as `report_data` describes it."""
    text = " ".join(sentence.tokens)
    tokens = text if text.count(" ") == len(sentence) - 1 else sentence.tokens  # a token may hold spaces
    encoded: dict[str, Any] = {"t": tokens, "m": [[labels[m.label], *m.spans] for m in sentence.mentions]}
    spaces = sentence.spaces
    if spaces is None and any(map(is_unspaced_script, sentence.tokens)):  # a space between words would be read
        spaces = infer_spaces(sentence.tokens)
    if spaces is not None:
        encoded["s"] = spaces
    if isinstance(language := sentence.meta.get("language"), str):
        encoded["l"] = language
    return encoded


def _round(value: float | None) -> float | None:
    return None if value is None or not abs(value) < float("inf") else round(value, 4)


def _labels(corpus: AugmentedCorpus) -> list[str]:
    """All labels, the most frequent in gold first."""
    pairs = [pair for pairs in corpus.methods.values() for pair in pairs]
    gold = Counter(mention.label for sentence in corpus.gold for mention in sentence.mentions)
    others = [s for p in pairs for s in (p.augmented, p.source, *p.other_sources) if s is not None]
    rest = Counter(mention.label for sentence in others for mention in sentence.mentions)
    return sorted(gold | rest, key=lambda label: (-gold[label], -rest[label], label))


def _own_scores(corpus: AugmentedCorpus, changes: Mapping[str, Sequence[Changes]]) -> Iterator[ScoreColumn]:
    """The share of changed words, and the scores in provenance, as far as any sentence has them."""
    details = {name: [pair.provenance.details for pair in pairs] for name, pairs in corpus.methods.items()}
    of_teacher = {
        name: [_mapping(of.get(DETAILS)).get("disagreement") for of in some] for name, some in details.items()
    }
    columns = [
        ScoreColumn(
            "changed",
            "words changed, %",
            "Share of the words of the augmented sentence that are not in the same place in its source.",
            {name: [_number(change.changed, 100) for change in some] for name, some in changes.items()},
        ),
        ScoreColumn(
            _DISAGREEMENT,
            "disagreement of the teacher",
            "How improbable a teacher finds the least probable label of the sentence, from 0 to 1.",
            {name: list(map(_number, values)) for name, values in of_teacher.items()},
        ),
    ]
    description = "A score that the method recorded when it selected the sentence."
    keys = {key: None for some in details.values() for of in some for key, value in of.items() if type(value) is float}
    for key in keys:
        values = {name: [_number(of.get(key)) for of in some] for name, some in details.items()}
        columns.append(ScoreColumn(f"own:{key}", f"{key} of the method", description, values))
    for column in columns:
        if any(value is not None for some in column.values.values() for value in some):
            yield column


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _changes_of_teacher(pair: AugmentedPair) -> list[list[Any]]:
    """Each mention that a teacher changed: the change, the label, the words, and the probability."""
    return [
        [change, mention.label, joined(pair.augmented.mention_tokens(mention)), _number(probability)]
        for change, mention, probability in changed_mentions(pair.augmented)
    ]


def _number(value: object, factor: float = 1) -> float | None:
    return factor * value if isinstance(value, float | int) and not isinstance(value, bool) else None
