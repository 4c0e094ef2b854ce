"""What a teacher changed in a sentence, as its provenance and its probabilities of tags tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError

__all__ = ["CHANGES", "DETAILS", "RELATIONS", "SOFT_LABELS", "changed_mentions", "count_changes"]

CHANGES = ("added", "softened", "disputed", "removed")
"""What may happen to a mention."""
DETAILS = "relabelled"
"""The key of `Provenance.details` under which the changes of a teacher stand."""
SOFT_LABELS = "tag_probabilities"
"""The field of `Sentence.layout` that holds `entaug.backends.soft_labels.TagProbabilities`."""
RELATIONS = "relation_probabilities"
"""The field that holds the probabilities of relations of nested mentions."""


def changed_mentions(sentence: Sentence) -> list[tuple[str, Mention, Any]]:
    """Return what a teacher changed in a sentence, as its provenance tells."""
    details = sentence.provenance.details.get(DETAILS) if sentence.provenance else None
    changes: list[tuple[str, Mention, Any]] = []
    try:
        for name in CHANGES:
            for entry in details.get(name, ()) if isinstance(details, Mapping) else ():
                mention = Mention(entry["label"], entry["spans"])
                if mention.end <= len(sentence):
                    changes.append((name, mention, entry.get("probability")))
    except (AttributeError, EntaugError, LookupError, TypeError, ValueError):  # a file that was edited by hand
        return []
    return changes


def count_changes(sentence: Sentence) -> Counter[str]:
    """Count what a teacher changed in a sentence."""
    return Counter(f"{change}: {mention.label}" for change, mention, _ in changed_mentions(sentence))
