"""What a page shows of augmented sentences, as JSON that stands in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from entaug.augmented import AugmentedCorpus, AugmentedPair, provenance_of
from entaug.data import Sentence
from entaug.report.html.changes import Changes, changes

__all__ = ["Column", "Shown", "columns_of", "shown", "signature_of", "types_of"]


@dataclass(frozen=True)
class Column:
    """A score that sentences have one by one.

    Args:
        name: what it is called in the data.
        title: its name for people.
        meaning: what it says, in a sentence.
        values: by the method's name, one for each of its pairs; None where a pair has none.
    """

    name: str
    title: str
    meaning: str
    values: Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class Shown:
    """The data of a page.

    Args:
        json: as text that may stand in a script element.
        digest: what names it: decisions are kept under it.
        size: how many pairs it has.
        reasons: how many drafts were refused, by reason.
    """

    json: str
    digest: str
    size: int
    reasons: Counter[str] = field(default_factory=Counter)


def shown(made: AugmentedCorpus, columns: Iterable[Column] = ()) -> Shown:
    """The pairs of all methods, in their order, with all that the page shows of them.

    Args:
        made: what was read.
        columns: scores of sentences.

    Example:
        >>> gold = Sentence(["Ada", "laughs"])
        >>> found = shown(AugmentedCorpus([gold], {"mr": [AugmentedPair(Sentence(["Bo", "laughs"]), gold)]}))
        >>> found.size, found.json[:24]
        (1, '{"methods":[{"name":"mr"')
    """
    whole = _Whole()
    compared = {name: [changes(pair) for pair in pairs] for name, pairs in made.methods.items()}
    scores = [*columns_of(made, compared), *columns]
    types = types_of(made)
    numbers = {label: number for number, label in enumerate(types)}
    for number, (name, pairs) in enumerate(made.methods.items()):
        of_method = [column.values.get(name) for column in scores]
        for i, (pair, change) in enumerate(zip(pairs, compared[name], strict=True)):
            values = [None if of is None else _rounded(of[i]) for of in of_method]
            whole.add(number, pair, change, values, numbers)
    signatures = {name: signature_of(pairs) for name, pairs in made.methods.items()}
    data = {
        "methods": [{"name": name, "signature": signatures[name]} for name in made.methods],
        "types": types,
        "scores": [{"name": c.name, "title": c.title, "meaning": c.meaning, "first": c.name in _FIRST} for c in scores],
        "reasons": list(whole.reasons),
        "gold": whole.gold,
        "pairs": whole.pairs,
    }
    text = _json(data)
    digest = blake2b(text.encode(), digest_size=8).hexdigest()
    return Shown(text, digest, len(whole.pairs), whole.reasons)


_FIRST = ("changed", "perplexity", "source_lm_difference", "similarity")  # shown with each pair; the others on demand


def _json(data: Any) -> str:
    """JSON that is harmless within HTML: nothing in it begins a tag or a comment or ends a line of script."""
    try:
        text = orjson.dumps(data).decode()
    except TypeError:  # a lone surrogate, or a value of some other type in provenance
        text = json.dumps(data, separators=(",", ":"), default=str)
    escapes = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    for character, escape in escapes.items():
        text = text.replace(character, escape)
    return text


_OWN = ("method", "signature", "rejected")  # of provenance: shown by other means


class _Whole:
    """The parts of the data while it grows."""

    def __init__(self) -> None:
        self.gold: list[dict[str, Any]] = []
        self.pairs: list[dict[str, Any]] = []
        self.reasons: Counter[str] = Counter()
        self._places: dict[int, int] = {}
        self._reasons: dict[str, int] = {}

    def add(
        self,
        method: int,
        pair: AugmentedPair,
        change: Changes,
        values: Sequence[float | None],
        types: Mapping[str, int],
    ) -> None:
        """Add a pair.

        Its members: ``g`` group, ``f`` fingerprint, ``n`` name of the method, ``i`` id, ``m`` the sentence, ``d`` its
        marks, ``s`` gold sentences as number, role and marks, ``v`` scores, ``p`` provenance, ``r`` reason.
        """
        own = provenance_of(pair.augmented)
        own = own if isinstance(own, Mapping) else {}
        one: dict[str, Any] = {
            "g": method,
            "f": pair.augmented.fingerprint().hex(),
            "n": str(own.get("method", "")),
            "i": pair.augmented.id,
            "m": _sentence(pair.augmented, types),
            "d": change.made,
            "s": [[self._place(side.sentence, types), side.role, side.marks] for side in change.sides],
            "v": values,
        }
        if told := {str(key): value for key, value in own.items() if key not in _OWN}:
            one["p"] = told
        if change.anew:
            one["a"] = 1
        if pair.rejection is not None:
            one["r"] = self._reasons.setdefault(pair.rejection, len(self._reasons))
            self.reasons[pair.rejection] += 1
        self.pairs.append(one)

    def _place(self, sentence: Sentence, types: Mapping[str, int]) -> int:
        """The number of a gold sentence; each stands once in the data however often it was used."""
        place = self._places.get(id(sentence))
        if place is None:
            place = self._places[id(sentence)] = len(self.gold)
            self.gold.append(_sentence(sentence, types) | ({} if sentence.id is None else {"i": sentence.id}))
        return place


def _sentence(sentence: Sentence, types: Mapping[str, int]) -> dict[str, Any]:
    """``t`` tokens, ``m`` mentions as number of the type and spans; where known ``s`` white space, ``l`` language."""
    one: dict[str, Any] = {"t": sentence.tokens, "m": [[types[m.label], *m.spans] for m in sentence.mentions]}
    if sentence.spaces is not None:
        one["s"] = sentence.spaces
    if isinstance(language := sentence.meta.get("language"), str):
        one["l"] = language
    return one


def _rounded(value: float | None) -> float | None:
    return None if value is None or value != value or abs(value) == float("inf") else round(value, 4)  # noqa: PLR0124


def types_of(made: AugmentedCorpus) -> list[str]:
    """All entity types, the most frequent of the gold sentences first.

    Example:
        >>> from entaug.data import Mention
        >>> types_of(AugmentedCorpus([Sentence("a b".split(), [Mention("X", [(0, 1)]), Mention("Y", [(1, 2)])])]))
        ['X', 'Y']
    """
    found = Counter(m.label for sentence in made.gold for m in sentence.mentions)
    rest = Counter(m.label for pairs in made.methods.values() for pair in pairs for m in pair.augmented.mentions)
    sources = (
        s for pairs in made.methods.values() for p in pairs for s in (p.source, *p.other_sources) if s is not None
    )
    rest += Counter(m.label for sentence in sources for m in sentence.mentions)
    return sorted(found | rest, key=lambda label: (-found[label], -rest[label], label))


def signature_of(pairs: Sequence[AugmentedPair]) -> str | None:
    """The signature that the pairs of a method share, with every parameter; None where they have none."""
    for pair in pairs:
        own = provenance_of(pair.augmented)
        if isinstance(own, Mapping) and isinstance(own.get("signature"), str):
            return str(own["signature"])
    return None


def columns_of(made: AugmentedCorpus, compared: Mapping[str, Sequence[Changes]]) -> list[Column]:
    """The scores that need no model: the share of words changed, and what methods themselves wrote down."""
    found: list[Column] = []
    shares = {name: [None if c.changed is None else 100 * c.changed for c in of] for name, of in compared.items()}
    if any(value is not None for of in shares.values() for value in of):
        meaning = "The share of the words of the new sentence that its source does not have in their place."
        found.append(Column("changed", "words changed, %", meaning, shares))
    names: dict[str, None] = {}
    for pairs in made.methods.values():
        for pair in pairs:
            own = provenance_of(pair.augmented)
            names |= dict.fromkeys(k for k, v in own.items() if type(v) is float) if isinstance(own, Mapping) else {}
    for key in names:
        values = {name: [_told(pair, key) for pair in pairs] for name, pairs in made.methods.items()}
        meaning = "What the method itself wrote down when it chose the sentence."
        found.append(Column(f"own:{key}", f"{key}, of the method", meaning, values))
    return found


def _told(pair: AugmentedPair, key: str) -> float | None:
    own = provenance_of(pair.augmented)
    value = own.get(key) if isinstance(own, Mapping) else None
    return float(value) if isinstance(value, float | int) and not isinstance(value, bool) else None
