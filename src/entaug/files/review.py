"""The decisions of a reviewer about augmented sentences or suspicious labels, exported from an HTML report.

A review is a JSON object: ``{"entaug": "review", "version": 1, "decisions": [...]}``. Each decision is an object with
``fingerprint`` (`Sentence.fingerprint` in hexadecimal digits), ``decision`` (``"accept"`` or ``"reject"``) and, where
known, ``method`` and ``id``. Sentences are identified by their content, because not every format stores ids. A decision
about a suspicious label has a ``correction`` too, an object with ``of``, the fingerprint of the sentence as it is
annotated, and the mentions that are ``given`` and ``suggested``, or null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError

_REMEDY = "export the decisions from a report again"


class Correction(NamedTuple):
    """A correction that a reviewer accepted or rejected."""

    fingerprint: int
    id: str | None
    given: Mention | None
    suggested: Mention | None
    is_accepted: bool


@dataclass(frozen=True)
class Review:
    """Decisions about augmented sentences or suspicious labels."""

    decisions: Mapping[tuple[int, str | None], bool] = field(default_factory=dict)
    others: int = 0
    corrections: Sequence[Correction] = ()

    @property
    def rejected(self) -> frozenset[int]:
        """The fingerprint numbers of all rejected sentences."""
        return frozenset(fingerprint for (fingerprint, _), accepted in self.decisions.items() if not accepted)

    @property
    def counts(self) -> tuple[int, int, int]:
        """The number of decisions, of rejected sentences, and of decisions on other methods."""
        return len(self.decisions), len(self.rejected), self.others

    def rejects(self, fingerprint: int, id: str | None) -> bool:
        """Whether a sentence is rejected."""
        # The id distinguishes sentences of equal content with different decisions.
        return not self.decisions.get((fingerprint, id), self.decisions.get((fingerprint, None), True))


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
    decisions: dict[tuple[int, str | None], bool] = {}
    corrections: list[Correction] = []
    others = 0
    for number, decision in enumerate(data["decisions"], start=1):
        if problem := _problem(decision):
            raise fault(f"decision {number} {problem}")
        if method is not None and decision.get("method") not in (None, "", *method.split("+")):
            others += 1
            continue
        fingerprint, sentence_id = int(decision["fingerprint"], 16), decision.get("id")
        decisions[fingerprint, None] = decision["decision"] == "accept"
        if isinstance(sentence_id, str):
            decisions[fingerprint, sentence_id] = decision["decision"] == "accept"
        if (correction := decision.get("correction")) is not None:
            try:
                corrections.append(_correction(decision, correction))
            except (EntaugError, LookupError, TypeError, ValueError):
                raise fault(f"the correction of decision {number} is damaged") from None
    return Review(decisions, others, corrections)


def _correction(decision: Mapping[str, Any], correction: Mapping[str, Any]) -> Correction:
    given, suggested = (
        None if (one := correction[name]) is None else Mention(one["label"], one["spans"])
        for name in ("given", "suggested")
    )
    if given == suggested:
        raise ValueError
    sentence_id = decision.get("id")
    return Correction(
        int(correction["of"], 16),
        sentence_id if isinstance(sentence_id, str) else None,
        given,
        suggested,
        decision["decision"] == "accept",
    )


def _problem(decision: Any) -> str | None:
    """The fault of a decision; None if it is valid."""
    if not isinstance(decision, dict):
        return "is not an object"
    if not re.fullmatch("[0-9a-fA-F]{16}", str(decision.get("fingerprint"))):
        return "has no fingerprint of 16 hexadecimal digits"
    if decision.get("decision") not in ("accept", "reject"):
        return f"must be accept or reject, not {decision.get('decision')!r}"
    return None
