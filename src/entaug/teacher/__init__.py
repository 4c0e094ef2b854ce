"""Relabelling: a teacher checks and completes the labels of augmented sentences, before they are filtered."""

from entaug.teacher.relabel import (
    CHANGES,
    DETAILS,
    SOFT_LABELS,
    Relabelled,
    Relabeller,
    changed_mentions,
    count_changes,
    create_relabeller,
)

__all__ = [
    "CHANGES",
    "DETAILS",
    "SOFT_LABELS",
    "Relabelled",
    "Relabeller",
    "changed_mentions",
    "count_changes",
    "create_relabeller",
]
