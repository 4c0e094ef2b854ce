"""What a person decided about augmented sentences, looking through a report: read for `entaug augment --apply-review`.

A review is a JSON object: ``{"entaug": "review", "version": 1, "decisions": [...]}``, each decision an object with
``fingerprint`` (that of the sentence, in hexadecimal digits: `Sentence.fingerprint`), ``decision`` (``"accept"`` or
``"reject"``) and, where known, ``method`` and ``id``. Sentences are known again by their content, because not every
format carries ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from entaug.errors import InputError

__all__ = ["Review", "read_review"]

_REMEDY = "export the decisions from a report anew"


@dataclass(frozen=True)
class Review:
    """Decisions about sentences.

    Args:
        decisions: by the number of a sentence's fingerprint the last decision about it, and by its id too: whether it
            is wanted.
        others: how many decisions are about sentences of other methods.
    """

    decisions: Mapping[tuple[int, str | None], bool] = field(default_factory=dict)
    others: int = 0

    @property
    def rejected(self) -> frozenset[int]:
        """The fingerprints of what is not wanted."""
        return frozenset(number for (number, _), wanted in self.decisions.items() if not wanted)

    def refuses(self, number: int, name: str | None) -> bool:
        """Whether a sentence is not wanted.

        Where two sentences with one content were decided on in two ways, the id tells which is which.

        Args:
            number: of its fingerprint.
            name: its id.
        """
        wanted = self.decisions.get((number, name))
        return not (self.decisions.get((number, None), True) if wanted is None else wanted)


def read_review(path: str | Path, method: str | None = None) -> Review:
    """Read the decisions that a report exported.

    Args:
        path: the file.
        method: leave out decisions about sentences of other methods.

    Raises:
        InputError: it cannot be read, or is no such file; of two decisions about one sentence the later holds.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "review.json")
        >>> _ = file.write_text('''{"entaug": "review", "version": 1, "decisions": [
        ...     {"fingerprint": "00000000000000ff", "method": "mr", "decision": "reject"}]}''')
        >>> read_review(file).refuses(0xFF << 56, None), read_review(file, method="sr").others
        (True, 1)
    """
    name = str(path)
    try:
        data = orjson.loads(Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=name, remedy=_REMEDY) from None
    except orjson.JSONDecodeError as error:
        raise InputError(f"no JSON ({error})", path=name, remedy=_REMEDY) from None
    if not isinstance(data, dict) or data.get("entaug") != "review" or not isinstance(data.get("decisions"), list):
        raise InputError("is no review: it lacks its mark or its decisions", path=name, remedy=_REMEDY)
    if data.get("version") != 1:
        version = data.get("version")
        raise InputError(f"is a review of version {version!r}, and this entaug reads 1", path=name, remedy=_REMEDY)
    decided: dict[tuple[int, str | None], bool] = {}
    others = 0
    for count, one in enumerate(data["decisions"], start=1):
        number, wanted = _decision(one, count, name)
        if method is not None and one.get("method") not in (None, "", method):
            others += 1
            continue
        decided[number, None] = wanted
        if isinstance(one.get("id"), str):
            decided[number, one["id"]] = wanted
    return Review(decided, others)


def _decision(one: Any, number: int, name: str) -> tuple[int, bool]:
    def fault(what: str) -> InputError:
        return InputError(f"decision {number} {what}", path=name, remedy=_REMEDY)

    if not isinstance(one, dict):
        raise fault("is no object")
    digits, decision = one.get("fingerprint"), one.get("decision")
    try:
        digest = bytes.fromhex(digits) if isinstance(digits, str) else b""
    except ValueError:
        digest = b""
    if len(digest) != 8:
        raise fault("has no fingerprint of 16 hexadecimal digits")
    if decision not in ("accept", "reject"):
        raise fault(f"is neither accept nor reject but {decision!r}")
    return int.from_bytes(digest, "little"), decision == "accept"
