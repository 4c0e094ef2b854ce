"""The page on which people rate texts without knowing their methods, and the key that says what they rated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from entaug.core.data import Sentence
from entaug.core.spacing import PRINTED_FORMS, infer_spaces
from entaug.report.html.data import encode_sentence, safe_json
from entaug.report.html.template import render_page
from entaug.report.ratings.sampling import RatedItem
from entaug.report.ratings.scales import HIGHEST, LOWEST, Scale

__all__ = ["SCRIPTS", "RatingPage", "render_rating_page"]

SCRIPTS = ("theme.js", "sentences.js", "ratings.js", "rate.js")
"""The scripts of the page."""


@dataclass(frozen=True)
class RatingPage:
    """A page for raters."""

    html: str
    digest: str


def render_rating_page(items: Sequence[RatedItem], scales: Sequence[Scale], *, title: str = "Rate texts") -> RatingPage:
    """Render the page for raters."""
    shown = [sentence for item in items for sentence in (*item.texts, *([item.original] if item.original else []))]
    labels = {label: n for n, label in enumerate(sorted({m.label for sentence in shown for m in sentence.mentions}))}
    # Spaces that only some sentences know would tell the methods apart.
    has_spaces = all(sentence.spaces is not None for sentence in shown)
    numbers = {scale.name: number for number, scale in enumerate(scales)}
    compares = {scale.name for scale in scales if scale.judges != "text"}

    def encode(sentence: Sentence, original: Sentence | None) -> dict[str, Any]:
        return _encode(sentence, original, labels, has_spaces=has_spaces)

    encoded = []
    for item in items:
        member: dict[str, Any] = {
            "t": [encode(text, item.original) for text in item.texts],
            "a": [numbers[name] for name in item.scales],
        }
        if item.original is not None and compares & set(item.scales):
            member["o"] = encode(item.original, None)
        encoded.append(member)
    data = {
        "scales": [scale.to_dict() for scale in scales],
        "types": list(labels),
        "lowest": LOWEST,
        "highest": HIGHEST,
        "items": encoded,
    }
    text = safe_json(data)
    digest = blake2b(text.encode(), digest_size=8).hexdigest()
    html = render_page(
        "rate.html",
        styles=["page.css", "rate.css"],
        scripts=SCRIPTS,
        title=title,
        json=text,
        digest=digest,
        scales=scales,
        size=len(items),
        lowest=LOWEST,
        highest=HIGHEST,
        in_groups=scales[0].judges == "group",
    )
    return RatingPage(html, digest)


def _encode(
    sentence: Sentence, original: Sentence | None, labels: Mapping[str, int], *, has_spaces: bool
) -> dict[str, Any]:
    """A sentence as it is printed; its language is that of its original where it does not know it."""
    encoded = encode_sentence(sentence, labels)
    if "l" not in encoded and original is not None and isinstance(original.meta.get("language"), str):
        encoded["l"] = original.meta["language"]
    spaces = sentence.spaces if has_spaces and sentence.spaces is not None else infer_spaces(sentence.tokens)
    return encoded | {"t": [PRINTED_FORMS.get(token, token) for token in sentence.tokens], "s": list(spaces)}
