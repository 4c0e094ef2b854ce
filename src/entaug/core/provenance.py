"""Provenance: how an augmented sentence was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from sys import intern
from typing import Any

__all__ = ["Provenance"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Origin of an augmented sentence; a run completes the fields that a method returns."""

    method: str = ""
    signature: str = ""
    sources: tuple[str, ...] = ()
    copy: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    rejected: str | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Provenance:
        """Create provenance from a dictionary, as files hold it."""
        fields: dict[str, Any] = {}
        details = dict(data)
        for name in ("method", "signature", "rejected"):
            if (value := data.get(name)) and type(value) is str:
                fields[name] = intern(details.pop(name))  # that of a method is the same in each sentence
        sources = data.get("sources")
        if sources and type(sources) in (list, tuple) and all(type(key) is str for key in sources):
            fields["sources"] = tuple(details.pop("sources"))
        if data.get("copy") and type(data["copy"]) is int:
            fields["copy"] = details.pop("copy")
        # A dictionary that entries were taken from keeps their memory.
        return cls(details=dict(details), **fields)

    def to_dict(self) -> dict[str, Any]:
        """Return the provenance as a dictionary that can be written as JSON, without fields that are empty."""
        data: dict[str, Any] = {}
        if self.method:
            data["method"] = self.method
        if self.signature:
            data["signature"] = self.signature
        data |= self.details
        if self.sources:
            data["sources"] = list(self.sources)
        if self.copy:
            data["copy"] = self.copy
        if self.rejected:
            data["rejected"] = self.rejected
        return data

    def with_details(self, **details: Any) -> Provenance:
        """Return a copy with further details."""
        return replace(self, details={**self.details, **details})
