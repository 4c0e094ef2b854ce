"""Corrections of labels that a reviewer made, applied to sentences, and their log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from entaug.core.changes import CORRECTED, Change, changed
from entaug.core.data import Provenance, Sentence
from entaug.core.mentions import Mention
from entaug.core.spacing import joined
from entaug.files.json_text import json_text
from entaug.formats.base import with_mentions
from entaug.teacher.label import RELATIONS
from entaug.teacher.relabel import SOFT_LABELS


def correct(sentence: Sentence, changes: Sequence[Change]) -> Sentence | None:
    """Return a sentence with other labels; None if they are not of this sentence."""
    if not changes or any(change.given is not None and change.given not in sentence.mentions for change in changes):
        return None
    given, added = {c.given for c in changes}, [c.suggested for c in changes if c.given is None]
    if any(mention in sentence.mentions and mention not in given for mention in added):
        return None  # it has the mention already
    if any(mention.end > len(sentence) for change in changes for mention in change if mention is not None):
        return None
    # Probabilities that the sentence had are not those of its new mentions.
    layout = {name: value for name, value in sentence.layout.items() if name not in (SOFT_LABELS, RELATIONS)}
    return with_mentions(sentence.with_(layout=layout), changed(sentence, *changes).mentions)


def correct_augmented(sentence: Sentence, changes: Sequence[Change]) -> Sentence | None:
    """Return an augmented sentence with other labels, which its provenance tells; None if they are not of it."""
    new = correct(sentence, changes)
    if new is None:
        return None
    told = [{name: described(sentence, mention) for name, mention in change._asdict().items()} for change in changes]
    return new.with_(provenance=(sentence.provenance or Provenance()).with_details(**{CORRECTED: told}))


def count_corrections(sentence: Sentence) -> Counter[str]:
    """Count the labels that a reviewer corrected in an augmented sentence, as its provenance tells."""
    told = sentence.provenance.details.get(CORRECTED) if sentence.provenance else None
    labels = [(change["suggested"] or change["given"])["label"] for change in told or ()]
    return Counter(f"{CORRECTED}: {label}" for label in labels)


def described(sentence: Sentence, mention: Mention | None) -> dict[str, Any] | None:
    """Return a mention as files of findings and logs show it."""
    if mention is None:
        return None
    spans = [list(span) for span in mention.spans]
    return {"label": mention.label, "spans": spans, "text": joined(sentence.mention_tokens(mention))}


def log_lines(number: int, sentence: Sentence, changes: Sequence[Change]) -> Iterator[str]:
    """Yield a line of JSON for each change of the sentence with a number."""
    place = {"sentence": number, "id": sentence.id, "text": joined(sentence.tokens)}
    for change in changes:
        old, new = (described(sentence, mention) for mention in change)
        yield json_text({**place, "kind": change.kind, "old": old, "new": new}) + "\n"
