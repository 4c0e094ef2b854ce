"""Whether a format can store soft labels."""

from __future__ import annotations

from collections import Counter

from entaug.core.data import Sentence
from entaug.errors import LossError
from entaug.formats import CorpusFile
from entaug.teacher import SOFT_LABELS, Relabeller

__all__ = ["check_soft_labels", "notes_on_soft_labels", "require_soft_labels"]


def check_soft_labels(relabeller: Relabeller | None, to: CorpusFile) -> None:
    """Check, before any work, that probabilities of tags can be written where they are all that a teacher gives."""
    if relabeller is not None and relabeller.labels == "mean":
        require_soft_labels(to, ", which labels=mean gives")


def require_soft_labels(to: CorpusFile, reason: str = "") -> None:
    """Check, before any work, that the format of an output stores probabilities of tags."""
    if not _keeps_soft_labels(to):
        message = f"{to.format.title} cannot store probabilities of tags{reason}"
        raise LossError(message, path=str(to.path), remedy="write JSON lines: -o NAME.jsonl")


def notes_on_soft_labels(relabelled: Counter[str], to: CorpusFile) -> list[str]:
    """Return a note for the user if softened labels are written as hard ones."""
    softened = sum(count for change, count in relabelled.items() if change.startswith("softened"))
    if not softened or _keeps_soft_labels(to):
        return []
    note = f"{to.format.title} cannot store probabilities of tags: {softened:,} softened mentions keep their labels"
    return [f"{note}; write JSON lines (-o NAME.jsonl) to train with soft labels"]


def _keeps_soft_labels(to: CorpusFile) -> bool:
    return not to.lost(Sentence(["a"], layout={SOFT_LABELS: {}}))
