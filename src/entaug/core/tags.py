"""Tag schemes: mentions from tags, and tags from mentions. No other module knows the prefixes of tags.

This is one file because the rules of the schemes are variations of one another and are read side by side.

========  =======================================================================================
scheme    how a mention of label X over three tokens, and over one token, is written
========  =======================================================================================
IOB1      I-X I-X I-X, I-X; B-X only where the preceding mention is adjacent and has the same label
IOB2      B-X I-X I-X, B-X (also called BIO)
IOBES     B-X I-X E-X, S-X (also called BIOES)
BILOU     B-X I-X L-X, U-X
BMES      B-X M-X E-X, S-X (also called BMEOS; usual where tokens are Chinese characters)
IO        X X X, X; neighbouring mentions of one label cannot be told apart (Stanford NER, Few-NERD)
========  =======================================================================================

Ramshaw and Marcus (1995); Ratinov and Roth (2009) for BILOU.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Literal, get_args

from entaug.core.mentions import Mention, contiguous_mention, is_flat
from entaug.errors import LossError, ParameterError, TagError, UnknownNameError

Overlap = Literal["error", "outermost", "innermost"]
"""How to treat nested and discontinuous mentions where only flat ones can be written; see `flatten`."""

# For each scheme the prefixes of the first, inner and last token of a longer mention, and of a mention of one token.
_LETTERS = {
    "IOB1": ("I", "I", "I", "I"),
    "IOB2": ("B", "I", "I", "B"),
    "IOBES": ("B", "I", "E", "S"),
    "BILOU": ("B", "I", "L", "U"),
    "BMES": ("B", "M", "E", "S"),
}
_ALIASES = {
    "BIO": "IOB2",
    "IOB": "IOB1",
    "BIOES": "IOBES",
    "BILUO": "BILOU",
    "BMEOS": "BMES",
    "BMESO": "BMES",
    "BMOES": "BMES",
}
SCHEMES = tuple(_LETTERS)
"""The schemes that tell any two mentions apart, which IO does not."""
WITHOUT_PREFIXES = "IO"
OVERLAP = get_args(Overlap)
_PREFIXES = frozenset("BIESLUM")
KEEP_SOME = "`overlap='outermost'` or `overlap='innermost'`"
"""Which of overlapping mentions to keep, in remedies."""
# What labels of entities do not look like: prefixes, alone or written otherwise (b-per, PER_B), spans "(PER*", numbers.
_NO_LABEL = re.compile(r"^[BIESLUMO]([-_:./|]|$)|[-_:./|][BIESLUM]$|[\s()*]|^[\W\d_]*$", re.IGNORECASE)
_MANY_TAGS = 1000
_CORRECT_OR_REPAIR = "correct it, or pass `repair=True` to start a mention there"


def canonical_scheme(name: str) -> str:
    """Return the canonical name of a tag scheme."""
    upper = name.upper()
    upper = _ALIASES.get(upper, upper)
    if upper not in (*SCHEMES, WITHOUT_PREFIXES):
        raise UnknownNameError("tag scheme", name, [*SCHEMES, *_ALIASES, WITHOUT_PREFIXES])
    return upper


def describe_scheme(scheme: str) -> str:
    """The name of a scheme in descriptions of a file, with what it cannot tell apart."""
    return f"{scheme} (neighbours of one label are one mention)" if scheme == WITHOUT_PREFIXES else scheme


def is_tag(text: str) -> bool:
    """Return whether a string looks like a tag of any scheme."""
    return text == "O" or (len(text) > 2 and text[1] == "-" and text[0] in _PREFIXES)


def have_no_prefixes(tags: Mapping[str, int]) -> bool:
    """Whether tags, with their counts, are labels without prefixes: most are O, and no other looks like a prefix."""
    labels = {tag: count for tag, count in tags.items() if tag != "O"}
    return 1 < sum(labels.values()) <= tags.get("O", 0) and not any(map(_NO_LABEL.search, labels))


def split_tag(tag: str) -> tuple[str, str]:
    """Split a tag of any scheme into its place in a mention and its label."""
    if tag == "O":
        return "O", ""
    return ("B" if tag[0] in "BSU" else "I", tag[2:]) if is_tag(tag) else ("I", tag)


class InvalidTag(Exception):  # noqa: N818 - internal: readers convert it to a TagError with a line
    """A tag of a sequence breaks the scheme."""

    def __init__(self, index: int, message: str, remedy: str) -> None:
        super().__init__(message)
        self.index = index
        self.message = message
        self.remedy = remedy


def decode(tags: Sequence[str], scheme: str = "IOB2", repairs: Counter[str] | None = None) -> tuple[Mention, ...]:
    """Convert tags to mentions."""
    try:
        return decode_canonical(tags, canonical_scheme(scheme), repairs)
    except InvalidTag as error:
        raise TagError(f"token {error.index + 1}: {error.message}", remedy=error.remedy) from None


def decode_canonical(tags: Sequence[str], scheme: str, repairs: Counter[str] | None) -> tuple[Mention, ...]:
    """Convert tags to mentions as `decode`, for readers of files."""
    if tags.count("O") == len(tags):
        return ()
    if scheme == "IOB2":
        return _decode_iob2(tags, repairs)
    if scheme == "IOB1":
        return _decode_iob1(tags, repairs)
    if scheme == WITHOUT_PREFIXES:
        return _decode_io(tags)
    return _decode_closed(tags, scheme, repairs)


def _split(tags: Sequence[str], index: int, prefixes: str) -> tuple[str, str]:
    """The prefix and the label of a tag."""
    tag = tags[index]
    prefix, dash, label = tag[:1], tag[1:2], tag[2:]
    if dash != "-" or not label or prefix not in prefixes:
        others = "correct it, name the tag column, or remove a heading; tags without prefixes are `scheme='IO'`"
        remedy = "name its `scheme`" if is_tag(tag) else others
        allowed = ", ".join(f"{x}-TYPE" for x in prefixes)
        raise InvalidTag(index, f"unknown tag {tag!r} (allowed: O and {allowed})", remedy)
    if any(is_tag(other) and other != "O" for other in label.split("|")[1:]):
        remedy = "write nested mentions in columns of their own, each level in one, or as JSON lines"
        raise InvalidTag(index, f"several tags in a cell: {tag!r:.60}", remedy)
    return prefix, label


def _decode_iob2(tags: Sequence[str], repairs: Counter[str] | None) -> tuple[Mention, ...]:
    mentions = []
    open_label, start, end = "", 0, -1
    for i, tag in enumerate(tags):
        if tag == "O":
            continue
        if i == end and tag[:2] == "I-" and tag[2:] == open_label:
            end = i + 1
            continue
        prefix, label = _split(tags, i, "BI")
        if prefix == "I":
            if repairs is None:
                where = "at the start of the sentence" if i == 0 else f"after {tags[i - 1]}"
                raise InvalidTag(i, f"{tag} {where}: there is no {label} mention to continue", _CORRECT_OR_REPAIR)
            repairs["I- that continues no mention"] += 1
        if open_label:
            mentions.append(contiguous_mention(open_label, start, end))
        open_label, start, end = label, i, i + 1
    mentions.append(contiguous_mention(open_label, start, end))
    return tuple(mentions)


def _decode_iob1(tags: Sequence[str], repairs: Counter[str] | None) -> tuple[Mention, ...]:
    mentions = []
    open_label, start, end = "", 0, -1
    for i, tag in enumerate(tags):
        if tag == "O":
            continue
        prefix, label = _split(tags, i, "IB")
        is_adjacent = i == end and label == open_label
        if prefix == "I" and is_adjacent:
            end = i + 1
            continue
        if prefix == "B" and not is_adjacent:
            if repairs is None:
                remedy = "if the file is IOB2, pass `scheme='IOB2'`; else correct it or pass `repair=True`"
                message = f"{tag} where IOB1 has I-{label}: no {label} mention ends directly before it"
                raise InvalidTag(i, message, remedy)
            repairs["B- that separates no mentions"] += 1
        if open_label:
            mentions.append(contiguous_mention(open_label, start, end))
        open_label, start, end = label, i, i + 1
    mentions.append(contiguous_mention(open_label, start, end))
    return tuple(mentions)


def _decode_io(tags: Sequence[str]) -> tuple[Mention, ...]:
    """Decode tags without prefixes: each run of a label is a mention."""
    mentions, end = [], 0
    for tag, run in groupby(tags):
        start, end = end, end + len(list(run))
        if not tag or (tag != "O" and is_tag(tag)):
            raise InvalidTag(start, f"unknown tag {tag!r} (allowed: O and TYPE)", "correct it, or name its `scheme`")
        if tag != "O":
            mentions.append(contiguous_mention(tag, start, end))
    return tuple(mentions)


def _decode_closed(tags: Sequence[str], scheme: str, repairs: Counter[str] | None) -> tuple[Mention, ...]:
    """Decode IOBES, BILOU and BMES, in which the last token of a mention is marked."""
    begin, inside, last, single = _LETTERS[scheme]
    prefixes = begin + inside + last + single
    mentions: list[Mention] = []
    open_label, start = "", 0

    def report(i: int, message: str, description: str) -> None:
        if repairs is None:
            raise InvalidTag(i, message, _CORRECT_OR_REPAIR)
        repairs[description] += 1

    for i, tag in enumerate(tags):
        prefix, label = ("O", "") if tag == "O" else _split(tags, i, prefixes)
        continues = prefix in (inside, last) and label == open_label
        if open_label and not continues:
            report(i, f"{tag} where {inside}-{open_label} or {last}-{open_label} must follow", "mention not closed")
            mentions.append(contiguous_mention(open_label, start, i))
            open_label = ""
        if prefix == single:
            mentions.append(contiguous_mention(label, i, i + 1))
        elif prefix != "O" and not open_label:
            if prefix != begin:
                message = f"{tag}: there is no {label} mention to continue"
                report(i, message, f"{prefix}- that continues no mention")
            open_label, start = label, i
        if prefix == last:
            mentions.append(contiguous_mention(label, start, i + 1))
            open_label = ""
    if open_label:
        report(len(tags) - 1, f"the sentence ends inside a {open_label} mention", "mention not closed")
        mentions.append(contiguous_mention(open_label, start, len(tags)))
    return tuple(mentions)


def flatten(mentions: Sequence[Mention], overlap: str) -> list[Mention]:
    """Reduce mentions to flat ones, which tags can represent."""
    if overlap not in OVERLAP:
        raise ParameterError(f"overlap must be one of {', '.join(OVERLAP)}, not {overlap!r}")
    if overlap == "error":
        end = 0
        for mention in mentions:
            kind = "nested" if mention.is_contiguous else "discontinuous"
            if kind == "discontinuous" or mention.start < end:
                columns = " or several columns of tags (CoNLL: `tag_columns='1,2'`)" if kind == "nested" else ""
                raise LossError(
                    f"a {kind} mention ({mention.label} {list(mention.spans)}) cannot be written as tags",
                    remedy=f"write JSON lines{columns}, or choose which to keep: {KEEP_SOME}",
                )
            end = mention.end
        return list(mentions)
    sign = -1 if overlap == "outermost" else 1
    kept: list[Mention] = []
    covered: set[int] = set()
    for mention in sorted((m for m in mentions if m.is_contiguous), key=lambda m: sign * (m.end - m.start)):
        positions = mention.positions()
        if covered.isdisjoint(positions):
            covered.update(positions)
            kept.append(mention)
    return sorted(kept, key=lambda m: m.start)


def encode(length: int, mentions: Sequence[Mention], scheme: str = "IOB2", overlap: str = "error") -> list[str]:
    """Convert mentions to tags."""
    if not mentions:
        return ["O"] * length
    flat = mentions if is_flat(mentions) else flatten(mentions, overlap)
    return encode_canonical(length, flat, canonical_scheme(scheme))


def encode_canonical(length: int, mentions: Iterable[Mention], scheme: str) -> list[str]:
    """Convert flat mentions to tags, for writers of files."""
    tags = ["O"] * length
    if scheme == WITHOUT_PREFIXES:
        return _encode_io(tags, mentions)
    begin, inside, last, single = _LETTERS[scheme]
    previous: tuple[str, int] | None = None
    for mention in mentions:
        label = mention.label
        start, end = mention.spans[0]
        if end - start == 1:
            tags[start] = f"{single}-{label}"
        else:
            tags[start] = f"{begin}-{label}"
            if end - start > 2:
                tags[start + 1 : end - 1] = [f"{inside}-{label}"] * (end - start - 2)
            tags[end - 1] = f"{last}-{label}"
        if begin == inside and previous == (label, start):  # IOB1 separates adjacent mentions of one label
            tags[start] = f"B-{label}"
        previous = (label, end)
    return tags


def _encode_io(tags: list[str], mentions: Iterable[Mention]) -> list[str]:
    """Write mentions into tags without prefixes; an error where they would be read as others."""
    remedy = "choose a scheme with prefixes (`write_options={'scheme': 'IOB2'}`)"
    previous: tuple[str, int] | None = None
    for mention in mentions:
        label, (start, end) = mention.label, mention.spans[0]
        if is_tag(label):
            raise LossError(f"the label {label!r} would be read as a tag with a prefix", remedy=remedy)
        if previous == (label, start):
            raise LossError(f"two neighbouring mentions of {label} would be read as one", remedy=remedy)
        tags[start:end] = [label] * (end - start)
        previous = (label, end)
    return tags


def position_tags(length: int, mentions: Sequence[Mention]) -> list[str]:
    """Return the IOB2 tags of all mentions that cover each token."""
    # The first token of a mention has B, every other one I, also after the gap of a discontinuous mention.
    if is_flat(mentions):
        return encode_canonical(length, mentions, "IOB2")
    tags_by_token: dict[int, list[str]] = {}
    for mention in mentions:
        for i in mention.positions():
            tags_by_token.setdefault(i, []).append(("B-" if i == mention.start else "I-") + mention.label)
    return ["|".join(sorted(tags_by_token.get(i, ("O",)))) for i in range(length)]


class SchemeDetector:
    """Detects the tag scheme of a file from its tags."""

    # A single mention usually decides: one that begins with I- indicates IOB1; one that ends with E-, or a single S-,
    # IOBES, or with M- BMES; L- or U- BILOU; B- after O IOB2, if no tag closes the mention.

    def __init__(self) -> None:
        self._initial_prefixes: Counter[str] = Counter()
        self._tags: Counter[str] = Counter()

    def update(self, tags: Iterable[str]) -> None:
        """Add the tags of a sentence."""
        previous = "O"
        for tag in tags:
            self._tags[tag] += 1
            if tag != "O" and previous[2:] != tag[2:]:
                self._initial_prefixes[tag[:1]] += 1
            previous = tag

    def _prefixes(self) -> set[str]:
        return {tag[:1] for tag in self._tags if tag != "O"}

    @property
    def has_mentions(self) -> bool:
        """Whether any mention has been seen."""
        return bool(self._prefixes())

    @property
    def is_decided(self) -> bool:
        """Whether further tags are unlikely to change the result."""
        # IOBES and BMES differ only in mentions of three tokens and more.
        if not any(tag != "O" and is_tag(tag) for tag in self._tags):  # the share of O shows tags without prefixes
            return self.has_mentions and self._tags.total() >= _MANY_TAGS
        prefixes = self._prefixes()
        return prefixes.isdisjoint("ES") or not prefixes.isdisjoint("IM")

    def scheme(self) -> str:
        """Return the most likely scheme; IOB2 if no mention has been seen."""
        if have_no_prefixes(self._tags):
            return WITHOUT_PREFIXES
        prefixes = self._prefixes()
        if not prefixes.isdisjoint("LU"):
            return "BILOU"
        if "M" in prefixes:
            return "BMES"
        if not prefixes.isdisjoint("ES"):
            return "IOBES"
        # In IOB1 a mention that follows no other begins with I-, in IOB2 with B-. In a file with both, the majority
        # decides, and the reader reports the others as errors.
        return "IOB1" if self._initial_prefixes["I"] > self._initial_prefixes["B"] else "IOB2"
