"""The page on which people rate texts without knowing their methods, and the key that says what they rated."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from itertools import chain, zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal

from entaug.config.params import Check, construct, validate, with_tuples
from entaug.config.toml_lines import read_toml
from entaug.core.data import Sentence
from entaug.core.rng import Streams
from entaug.core.spacing import PRINTED_FORMS, infer_spaces
from entaug.errors import ParameterError, UnknownNameError
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair
from entaug.metrics.quality import GOLD
from entaug.report.html.examples import ReportData, encode_sentence
from entaug.report.html.page import render_page

# --------------------------------------------------------------------------------------------------------------- scales

LOWEST, HIGHEST = 1, 5
"""The range of a rating."""
DEFAULT_SCALES = ("fluent", "right", "diverse")
"""The scales of a page by default."""

Judges = Literal["text", "pair", "group"]
"""What a rating judges: a text by itself, a text and its original, or all texts of an original together."""

_REMEDY = "see: entaug list scales"


def _is_line(text: object, longest: int = 500) -> bool:
    return isinstance(text, str) and bool(text.strip()) and len(text) <= longest and text.isprintable()


@dataclass(frozen=True)
class Scale:
    """A scale from 1 to 5."""

    name: Annotated[str, Check(partial(_is_line, longest=40), "one line of 1 to 40 characters")]
    question: Annotated[str, Check(_is_line, "one line of 1 to 500 characters")]
    anchors: Annotated[
        tuple[str, ...],
        Check(
            lambda anchors: len(anchors) in (2, HIGHEST) and all(map(_is_line, anchors)),
            f"a list of 2 or {HIGHEST} texts of one line, those of 1 and 5 or of each rating",
        ),
    ]
    judges: Judges = "text"

    def __post_init__(self) -> None:
        validate(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the scale as a dictionary that can be written as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any) -> Scale:
        """Create a scale from a dictionary, as files hold it."""
        if not isinstance(data, dict):
            raise ParameterError(f"not a scale: {data!r:.60}", remedy="give question, anchors and perhaps judges")
        return construct(cls, "a scale", with_tuples(data))


def packaged_scales_text() -> str:
    """Return the file of the packaged scales, a model for files of users."""
    return files("entaug.report.ratings").joinpath("scales.toml").read_text("utf-8")


def packaged_scales() -> dict[str, Scale]:
    """Return the packaged scales by name."""
    table = tomllib.loads(packaged_scales_text())
    return {name: Scale.from_dict({"name": name, **keys}) for name, keys in table.items()}


def read_scales(value: str | Path) -> list[Scale]:
    """Return the scales that an option names."""
    if not str(value).endswith(".toml"):
        packaged = packaged_scales()
        names = [name.strip() for name in str(value).split(",") if name.strip()]
        for name in names:
            if name not in packaged:
                raise UnknownNameError("scale", name, packaged)
        return check_scales([packaged[name] for name in names])
    table, lines = read_toml(Path(value), _REMEDY)
    scales = []
    for name, keys in table.items():
        with lines.at(name, key=""):
            scales.append(Scale.from_dict({**keys, "name": name} if isinstance(keys, dict) else keys))
    with lines.at("", key=""):
        return check_scales(scales)


def check_scales(scales: Sequence[Scale]) -> list[Scale]:
    """Check that scales can stand on one page."""
    if not scales:
        raise ParameterError("no scale is given", remedy=_REMEDY)
    names = [scale.name for scale in scales]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ParameterError(f"the scale {twice!r} is given twice", remedy="give it once")
    groups = [scale.name for scale in scales if scale.judges == "group"]
    if groups and len(groups) < len(scales):
        other = next(scale.name for scale in scales if scale.judges != "group")
        message = f"the scale {groups[0]!r} judges groups of texts, and {other!r} single texts"
        raise ParameterError(message, remedy="write two pages")
    return list(scales)


# --------------------------------------------------------------------------------------------------------------- sample

_STREAMS = "rate"  # a name that no method has, so that no method shares these random numbers


@dataclass(frozen=True)
class RatedItem:
    """A unit of rating: a text, or all texts of an original."""

    method: str
    texts: tuple[Sentence, ...]
    original: Sentence | None
    scales: tuple[str, ...]


def sample_items(
    corpus: AugmentedCorpus, scales: Sequence[Scale], *, sample: int, with_gold: bool = False, seed: int = 0
) -> tuple[list[RatedItem], list[str]]:
    """Sample the texts of each method and shuffle them."""
    # Methods get texts of the same originals as far as possible, and of many originals before several of one. Gold
    # sentences are others than these originals as far as possible, because a rater would recognise them. The result
    # depends neither on the order of the files nor on that of their sentences.
    streams = Streams(seed, _STREAMS)

    def rank(sentence: Sentence) -> tuple[float, str]:
        return streams.stream(sentence.key, 0).random(), sentence.fingerprint().hex()

    def place(item: RatedItem) -> tuple[float, str]:
        key = "\0".join([item.method, *(text.fingerprint().hex() for text in item.texts)])
        return streams.stream(key, 1).random(), key

    items: list[RatedItem] = []
    notes: list[str] = []
    for method, pairs in corpus.methods.items():
        groups = [
            sorted(group, key=lambda pair: rank(pair.augmented))
            for group in sorted(_groups(pairs), key=lambda group: rank(group[0].source or group[0].augmented))
        ]
        draw = _draw_groups if scales[0].judges == "group" else _draw_texts
        drawn = list(draw(method, groups, sample, scales, notes))
        if not drawn:
            notes.append(f"{method}: no text can be rated on these scales")
        items += drawn
    if not items:
        message = f"there is no augmented sentence to rate{f' ({notes[0]})' if notes else ''}"
        raise ParameterError(message, remedy="name files that entaug augment wrote, and as `gold` what was augmented")
    if with_gold:
        seen = {id(item.original) for item in items}
        ranked = sorted(corpus.gold, key=lambda sentence: (id(sentence) in seen, rank(sentence)))
        items += _gold_items(corpus, ranked[:sample], scales)
    return sorted(items, key=place), notes


def _groups(pairs: Iterable[AugmentedPair]) -> Iterator[list[AugmentedPair]]:
    """The accepted texts of each original; texts without a known original by themselves."""
    groups: dict[object, list[AugmentedPair]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        if pair.rejection is None:
            has_original = pair.source is not None and not pair.provenance.details.get("unconditioned")
            source = pair.source if has_original else None
            known = AugmentedPair(pair.augmented, source)
            groups[id(pair.source) if has_original else (number,)].append(known)
    yield from groups.values()


def _draw_texts(
    method: str, groups: Sequence[Sequence[AugmentedPair]], sample: int, scales: Sequence[Scale], notes: list[str]
) -> Iterator[RatedItem]:
    """The first text of each original, then the second of each, until there are enough; no text twice."""
    of_all = tuple(scale.name for scale in scales if scale.judges == "text")
    of_pairs = tuple(scale.name for scale in scales)
    seen: set[bytes] = set()
    is_alone = False
    for pair in chain.from_iterable(zip_longest(*groups)):
        if pair is None or (fingerprint := pair.augmented.fingerprint()) in seen:
            continue
        asked = of_all if pair.source is None else of_pairs
        is_alone |= asked != of_pairs
        if asked:
            seen.add(fingerprint)
            yield RatedItem(method, (pair.augmented,), pair.source, asked)
        if len(seen) == sample:
            break
    if is_alone:
        notes.append(f"{method}: texts without a known original are not compared with one")


def _draw_groups(
    method: str, groups: Sequence[Sequence[AugmentedPair]], sample: int, scales: Sequence[Scale], notes: list[str]
) -> Iterator[RatedItem]:
    """Originals with all their texts, until there are enough texts; a single text has no diversity."""
    count = single = 0
    for group in groups:
        if len(group) < 2 or group[0].source is None:
            single += 1
        elif count < sample:
            count += len(group)
            texts = tuple(pair.augmented for pair in group)
            yield RatedItem(method, texts, group[0].source, tuple(scale.name for scale in scales))
    if single:
        notes.append(f"{method}: {single:,} texts are the only ones of their original and are not rated")


def _gold_items(corpus: AugmentedCorpus, sentences: Sequence[Sentence], scales: Sequence[Scale]) -> list[RatedItem]:
    asked = tuple(scale.name for scale in scales if scale.judges == "text")
    if not asked:
        message = f"gold sentences cannot be rated on the scale {scales[0].name!r}, which compares texts"
        raise ParameterError(message, remedy="leave gold sentences out, or add a scale such as fluent")
    if not sentences:
        raise ParameterError("there is no gold sentence", remedy="name the file that was augmented as `gold`")
    if GOLD in corpus.methods:
        raise ParameterError(f"a method has the name {GOLD!r}", remedy="rename its file, or leave gold sentences out")
    return [RatedItem(GOLD, (sentence,), None, asked) for sentence in sentences]


# ----------------------------------------------------------------------------------------------------------------- page

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
    text, digest, _ = ReportData.of(data, len(items))
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
