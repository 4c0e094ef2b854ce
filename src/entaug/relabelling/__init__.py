"""Relabelling: a teacher checks and completes the labels of augmented sentences, before they are filtered."""

from entaug.relabelling.relabeller import (
    DETAILS,
    SOFT_LABELS,
    Relabelled,
    Relabeller,
    count_changes,
    create_relabeller,
    has_soft_labels,
)

__all__ = [
    "DETAILS",
    "SOFT_LABELS",
    "Relabelled",
    "Relabeller",
    "count_changes",
    "create_relabeller",
    "has_soft_labels",
]
