"""The page of suspicious labels: each sentence as it is annotated beside the suggestion, to accept or reject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from entaug.core.changes import Change, changed
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.formats.augmented import AugmentedCorpus
from entaug.metrics.consistency import Finding
from entaug.report.html.examples import ReportData, encode_sentence
from entaug.report.html.page import SCRIPTS, corpus_counts, render_page

_SCORES = (
    ("suspicion", "One minus the share of the evidence that is in favour of the label as it is."),
    ("support", "The share of the evidence that is in favour of the suggestion."),
)


def render_audit_page(sentences: Sequence[Sentence], findings: Sequence[Finding], *, title: str) -> str:
    """Render the page of findings, in their order."""
    return render_page(
        "page.html",
        styles=["page.css"],
        scripts=SCRIPTS,
        title=title,
        data=_data(sentences, findings),
        counts=corpus_counts(AugmentedCorpus(list(sentences))),
        audit={"kinds": Counter(finding.kind for finding in findings).most_common(), "size": len(findings)},
        methods=[],
        measures=[],
        names=[],
        plots=[],
        experiments=None,
        notes=[],
        remarks=[],
    )


def _data(sentences: Sequence[Sentence], findings: Sequence[Finding]) -> ReportData:
    """Encode findings as pairs of `entaug.report.html.examples.report_data`."""
    # They have the further members `w`, why, and `c`, what is corrected, for `entaug.files.review`.
    # The labels of the whole corpus, the most frequent first: a reviewer may correct a label to any of them.
    used = Counter(mention.label for sentence in sentences for mention in sentence.mentions)
    others = (finding.suggested.label for finding in findings if finding.suggested is not None)
    names = [*(name for name, _ in used.most_common()), *others]
    labels = {label: number for number, label in enumerate(dict.fromkeys(names))}
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(finding.kind for finding in findings))}
    places = {place: number for number, place in enumerate(dict.fromkeys(finding.place for finding in findings))}
    pairs = []
    for finding in findings:
        sentence = sentences[finding.place]
        new = changed(sentence, Change(finding.given, finding.suggested))
        given, suggested = (_described(mention) for mention in (finding.given, finding.suggested))
        pairs.append(
            {
                "g": kinds[finding.kind],
                "f": new.fingerprint().hex(),
                "n": finding.kind,
                "i": sentence.id,
                "m": encode_sentence(new, labels),
                "d": _marks(finding.suggested, finding.given),
                "s": [[places[finding.place], "given", _marks(finding.given, finding.suggested)]],
                "v": [round(finding.score, 4), round(finding.support, 4)],
                "w": finding.reason,
                "c": {"of": sentence.fingerprint().hex(), "given": given, "suggested": suggested},
            }
        )
    data = {
        "methods": [{"name": kind, "signature": None} for kind in kinds],
        "types": list(labels),
        "scores": [{"name": name, "title": name, "description": text, "always": True} for name, text in _SCORES],
        "reasons": [],
        "gold": [encode_sentence(sentences[place], labels) for place in places],
        "pairs": pairs,
    }
    return ReportData.of(data, len(pairs))


def _described(mention: Mention | None) -> dict[str, Any] | None:
    return None if mention is None else {"label": mention.label, "spans": mention.spans}


def _marks(mention: Mention | None, other: Mention | None) -> list[tuple[int, int, str]]:
    """Mark the words of one mention that the other does not label alike."""
    if mention is None:
        return []
    kept = set(other.positions()) if other is not None and other.label == mention.label else set()
    return [(i, i + 1, "moved") for i in mention.positions() if i not in kept]
