"""Changes of labels: a mention that is given, and the one in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from entaug.core.data import Sentence
from entaug.core.mentions import Mention

CORRECTED = "corrected"
"""The key of `Provenance.details` under which the changes of a reviewer stand."""


class Change(NamedTuple):
    """A mention that is annotated, and one that may be right; None where there is none."""

    given: Mention | None
    suggested: Mention | None

    @property
    def kind(self) -> str:
        """The kind of error that is corrected, see `entaug.metrics.consistency.KINDS`."""
        if self.given is None or self.suggested is None:
            return "missing" if self.given is None else "spurious"
        if self.given.spans == self.suggested.spans:
            return "type"
        return "boundary" if self.given.label == self.suggested.label else "type and boundary"


def changed(sentence: Sentence, *changes: Change) -> Sentence:
    """Return a sentence with all of the changes."""
    new = dict.fromkeys(change.suggested for change in changes if change.suggested is not None)
    named: Sequence[Mention | None] = [mention for change in changes for mention in change]
    return sentence.with_(mentions=[*(mention for mention in sentence.mentions if mention not in named), *new])
