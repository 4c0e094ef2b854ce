"""The augmented sentences of a report as JSON for its script."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from entaug.core.data import Sentence
from entaug.files.json_text import json_text
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair
from entaug.report.html.changes import Changes, find_changes
from entaug.teacher import DETAILS, changed_mentions

__all__ = ["ReportData", "ScoreColumn", "encode_sentence", "report_data", "safe_json", "signature_of"]

_DISAGREEMENT = "teacher"  # the score by which suspicious labels come first
_ALWAYS_SHOWN = ("changed", "perplexity", "source_lm_difference", "similarity", _DISAGREEMENT)
_SHOWN_ELSEWHERE = ("method", "signature", "rejected")  # keys of provenance


@dataclass(frozen=True)
class ScoreColumn:
    """A score of single sentences."""

    name: str
    title: str
    description: str
    values: Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class ReportData:
    """The data of a report."""

    json: str
    digest: str
    size: int
    reasons: Counter[str] = field(default_factory=Counter)


def report_data(corpus: AugmentedCorpus, columns: Iterable[ScoreColumn] = ()) -> ReportData:
    """Encode the pairs of all methods with everything that the report shows of them."""
    # A pair has the members `g` number of its method in the list, `f` fingerprint, `n` name of the method, `i` id, `m`
    # augmented sentence, `d` its marks, `s` gold sentences as number, role and marks, `v` scores, and where there are
    # any `p` provenance, `a` 1 if it is rewritten, `r` number of the reason of its rejection, `t` what a teacher
    # changed: change, label, words and probability of each mention. A sentence has `t` tokens, `m` mentions as number
    # of the label and spans, and where known `s` spaces and `l` language.
    changes = {method: [find_changes(pair) for pair in pairs] for method, pairs in corpus.methods.items()}
    scores = [*_own_scores(corpus, changes), *columns]
    labels = {label: number for number, label in enumerate(_labels(corpus))}
    gold: list[dict[str, Any]] = []
    gold_numbers: dict[int, int] = {}  # a gold sentence is encoded once, however many pairs have it
    reasons: Counter[str] = Counter()
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
            if rest := {k: v for k, v in pair.provenance.to_dict().items() if k not in _SHOWN_ELSEWHERE}:
                member["p"] = rest
            if change.is_rewritten:
                member["a"] = 1
            if changes_of_teacher := _changes_of_teacher(pair):
                member["t"] = changes_of_teacher
            if pair.rejection is not None:
                reasons[pair.rejection] += 1
                member["r"] = list(reasons).index(pair.rejection)
            encoded.append(member)
    text = safe_json(
        {
            "methods": [{"name": name, "signature": signature_of(pairs)} for name, pairs in corpus.methods.items()],
            "types": list(labels),
            "scores": [
                {"name": c.name, "title": c.title, "description": c.description, "always": c.name in _ALWAYS_SHOWN}
                for c in scores
            ],
            "reasons": list(reasons),
            "gold": gold,
            "pairs": encoded,
        }
    )
    return ReportData(text, blake2b(text.encode(), digest_size=8).hexdigest(), len(encoded), reasons)


def signature_of(pairs: Sequence[AugmentedPair]) -> str | None:
    """The signature of a method with its parameters; None if the provenance of its sentences has none."""
    return next((pair.provenance.signature for pair in pairs if pair.provenance.signature), None)


def safe_json(data: Any) -> str:
    """Return JSON that contains no markup and no line end of scripts."""
    try:
        text = json_text(data)
    except TypeError:  # a lone surrogate, or a value in provenance that JSON cannot represent
        text = json.dumps(data, separators=(",", ":"), default=str)
    return text.translate({ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def encode_sentence(sentence: Sentence, labels: Mapping[str, int]) -> dict[str, Any]:
    """Return what a page shows of a sentence, as `report_data` describes it."""
    encoded: dict[str, Any] = {"t": sentence.tokens, "m": [[labels[m.label], *m.spans] for m in sentence.mentions]}
    if sentence.spaces is not None:
        encoded["s"] = sentence.spaces
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


def _own_scores(corpus: AugmentedCorpus, changes: Mapping[str, Sequence[Changes]]) -> list[ScoreColumn]:
    """The share of changed words, and the scores in provenance."""
    columns: list[ScoreColumn] = []
    shares = {
        method: [None if change.changed is None else 100 * change.changed for change in some]
        for method, some in changes.items()
    }
    if any(value is not None for values in shares.values() for value in values):
        description = "Share of the words of the augmented sentence that are not in the same place in its source."
        columns.append(ScoreColumn("changed", "words changed, %", description, shares))
    disagreements = {method: [_disagreement(pair) for pair in pairs] for method, pairs in corpus.methods.items()}
    if any(value is not None for values in disagreements.values() for value in values):
        description = "How improbable a teacher finds the least probable label of the sentence, from 0 to 1."
        columns.append(ScoreColumn(_DISAGREEMENT, "disagreement of the teacher", description, disagreements))
    details = {method: [pair.provenance.details for pair in pairs] for method, pairs in corpus.methods.items()}
    keys = {key: None for some in details.values() for own in some for key, v in own.items() if type(v) is float}
    for key in keys:
        values = {method: [_number(own.get(key)) for own in some] for method, some in details.items()}
        description = "A score that the method recorded when it selected the sentence."
        columns.append(ScoreColumn(f"own:{key}", f"{key} of the method", description, values))
    return columns


def _disagreement(pair: AugmentedPair) -> float | None:
    """Disagreement of a teacher with the labels of the method; None without a teacher."""
    details = pair.provenance.details.get(DETAILS)
    return _number(details.get("disagreement")) if isinstance(details, Mapping) else None


def _changes_of_teacher(pair: AugmentedPair) -> list[list[Any]]:
    """Each mention that a teacher changed: the change, the label, the words, and the probability."""
    return [
        [change, mention.label, " ".join(pair.augmented.mention_tokens(mention)), _number(probability)]
        for change, mention, probability in changed_mentions(pair.augmented)
    ]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, float | int) and not isinstance(value, bool) else None
