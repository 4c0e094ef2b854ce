"""The decisions of a reviewer about augmented sentences or suspicious labels, exported from an HTML report.

A review is a JSON object: ``{"entaug": "review", "version": 1, "decisions": [...]}``. Each decision is an object with
``fingerprint`` (`Sentence.fingerprint` in hexadecimal digits), ``decision`` (``"accept"``, ``"reject"`` or
``"correct"``) and, where known, ``method`` and ``id``. Sentences are identified by their content, because not every
format stores ids.

A decision about labels has a ``correction``, an object with ``of``, the fingerprint of the sentence whose labels are
changed. Where the suggestion of an audit was accepted or rejected it has the mentions ``given`` and ``suggested``, or
null. Where a reviewer corrected labels it has ``changes``, a list of objects with such a pair each: a mention that gets
another label or other boundaries has both, one that is removed has no ``suggested``, and a new one no ``given``. A
mention is an object with ``label`` and ``spans``, a list of ranges of tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from entaug.core.changes import Change
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError

_REMEDY = "export the decisions from a report again"
_DECISIONS = ("accept", "reject", "correct")

Key = tuple[int, str | None]
"""The fingerprint number of a sentence, and its id where it is known."""


class Correction(NamedTuple):
    """Changes of the labels of a sentence: a suggestion that was accepted or rejected, or what a reviewer corrected."""

    fingerprint: int
    id: str | None
    changes: tuple[Change, ...]
    is_accepted: bool = True
    by_hand: bool = False


@dataclass(frozen=True)
class Review:
    """Decisions about augmented sentences or suspicious labels."""

    decisions: Mapping[Key, bool] = field(default_factory=dict)
    others: int = 0
    corrections: Sequence[Correction] = ()
    by_hand: Mapping[Key, Correction] = field(default_factory=dict)

    @property
    def rejected(self) -> frozenset[int]:
        """The fingerprint numbers of all rejected sentences."""
        return frozenset(fingerprint for (fingerprint, _), accepted in self.decisions.items() if not accepted)

    @property
    def corrected(self) -> frozenset[int]:
        """The fingerprint numbers of all sentences whose labels a reviewer corrected."""
        return frozenset(fingerprint for fingerprint, _ in self.by_hand)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The number of decisions, of rejected and of corrected sentences, and of decisions on other methods."""
        return len(self.decisions), len(self.rejected), len(self.corrected), self.others

    def rejects(self, fingerprint: int, id: str | None) -> bool:
        """Whether a sentence is rejected."""
        # The id distinguishes sentences of equal content with different decisions.
        return not self.decisions.get((fingerprint, id), self.decisions.get((fingerprint, None), True))

    def changes(self, fingerprint: int, id: str | None) -> tuple[Change, ...]:
        """Return what a reviewer changed in the labels of a sentence."""
        if (fingerprint, id) in self.decisions:
            found = self.by_hand.get((fingerprint, id))
        else:
            found = self.by_hand.get((fingerprint, None))
        return found.changes if found is not None else ()


def read_review(path: str | Path, method: str | None = None) -> Review:
    """Read the decisions that a report exported."""

    def fault(message: str) -> InputError:
        return InputError(message, path=str(path), remedy=_REMEDY)

    try:
        data = orjson.loads(Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise fault(f"cannot be read ({error.strerror})") from None
    except orjson.JSONDecodeError as error:
        raise fault(f"is not JSON ({error})") from None
    if not isinstance(data, dict) or data.get("entaug") != "review" or not isinstance(data.get("decisions"), list):
        raise fault('is not a review: "entaug": "review" or its decisions are missing')
    if data.get("version") != 1:
        raise fault(f"has version {data.get('version')!r} of the review format, and this entaug reads version 1")
    decisions: dict[Key, bool] = {}
    corrections: list[Correction] = []
    by_hand: dict[Key, Correction] = {}
    others = 0
    for number, decision in enumerate(data["decisions"], start=1):
        if problem := _problem(decision):
            raise fault(f"decision {number} {problem}")
        if method is not None and decision.get("method") not in (None, "", *method.split("+")):
            others += 1
            continue
        correction = None
        if decision.get("correction") is not None:
            try:
                correction = _correction(decision, decision["correction"])
            except (EntaugError, LookupError, TypeError, ValueError):
                raise fault(f"the correction of decision {number} is damaged") from None
            corrections.append(correction)
        fingerprint, sentence_id = int(decision["fingerprint"], 16), decision.get("id")
        for key in {(fingerprint, None), (fingerprint, sentence_id if isinstance(sentence_id, str) else None)}:
            decisions[key] = decision["decision"] != "reject"
            by_hand.pop(key, None)  # of two decisions the later one holds
            if correction is not None and correction.by_hand:
                by_hand[key] = correction
    return Review(decisions, others, corrections, by_hand)


def _correction(decision: Mapping[str, Any], correction: Mapping[str, Any]) -> Correction:
    by_hand = decision["decision"] == "correct"
    changes = [_change(one) for one in (correction["changes"] if by_hand else [correction])]
    given = [change.given for change in changes if change.given is not None]
    if not changes or len(set(given)) < len(given):  # a mention has one fate
        raise ValueError
    sentence_id = decision.get("id")
    return Correction(
        int(correction["of"], 16),
        sentence_id if isinstance(sentence_id, str) else None,
        tuple(changes),
        decision["decision"] != "reject",
        by_hand,
    )


def _change(one: Mapping[str, Any]) -> Change:
    mentions = one["given"], one["suggested"]
    given, suggested = (m if m is None else Mention(m["label"], m["spans"]) for m in mentions)
    if given == suggested:
        raise ValueError
    return Change(given, suggested)


def _problem(decision: Any) -> str | None:
    """The fault of a decision; None if it is valid."""
    if not isinstance(decision, dict):
        return "is not an object"
    if not re.fullmatch("[0-9a-fA-F]{16}", str(decision.get("fingerprint"))):
        return "has no fingerprint of 16 hexadecimal digits"
    if decision.get("decision") not in _DECISIONS:
        return f"must be accept, reject or correct, not {decision.get('decision')!r}"
    if decision["decision"] == "correct" and decision.get("correction") is None:
        return "has no correction"
    return None
