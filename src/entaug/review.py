"""What a person decided about augmented sentences, looking through a report: read for `entaug augment --apply-review`.

A review is a JSON object: ``{"entaug": "review", "version": 1, "decisions": [...]}``, each decision an object with
``fingerprint`` (that of the sentence, in hexadecimal digits: `Sentence.fingerprint`), ``decision`` (``"accept"`` or
``"reject"``) and, where known, ``method`` and ``id``. Sentences are known again by their content, because not every
format carries ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from entaug.errors import InputError

__all__ = ["Review", "read_review"]

_REMEDY = "export the decisions from a report anew"


@dataclass(frozen=True)
class Review:
    """Decisions about sentences, by the numbers of their fingerprints.

    Args:
        rejected: those that are not wanted.
        accepted: those that were looked at and are.
    """

    rejected: frozenset[int] = frozenset()
    accepted: frozenset[int] = frozenset()


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
        >>> read_review(file).rejected, read_review(file, method="sr").rejected
        (frozenset({18374686479671623680}), frozenset())
    """
    name = str(path)
    try:
        data = orjson.loads(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=name, remedy=_REMEDY) from None
    except orjson.JSONDecodeError as error:
        raise InputError(f"no JSON ({error})", path=name, remedy=_REMEDY) from None
    if not isinstance(data, dict) or data.get("entaug") != "review" or not isinstance(data.get("decisions"), list):
        raise InputError("is no review: it lacks its mark or its decisions", path=name, remedy=_REMEDY)
    if data.get("version") != 1:
        version = data.get("version")
        raise InputError(f"is a review of version {version!r}, and this entaug reads 1", path=name, remedy=_REMEDY)
    decided: dict[int, bool] = {}
    for number, one in enumerate(data["decisions"], start=1):
        key, rejected = _decision(one, number, name)
        if method is None or one.get("method") in (None, "", method):
            decided[key] = rejected
    return Review(
        frozenset(key for key, rejected in decided.items() if rejected),
        frozenset(key for key, rejected in decided.items() if not rejected),
    )


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
    return int.from_bytes(digest, "little"), decision == "reject"
