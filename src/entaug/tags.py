"""Tag schemes to mentions and back: the only file that knows prefixes.

========  =======================================================================================
scheme    how a mention of label X over three tokens, and over one token, is written
========  =======================================================================================
IOB1      I-X I-X I-X, I-X; B-X only where the mention before it touches and has the same label
IOB2      B-X I-X I-X, B-X (also called BIO)
IOBES     B-X I-X E-X, S-X (also called BIOES)
BILOU     B-X I-X L-X, U-X
BMES      B-X M-X E-X, S-X (also called BMEOS; usual where tokens are Chinese characters)
========  =======================================================================================

Ramshaw and Marcus (1995); Ratinov and Roth (2009) for BILOU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from entaug.data import Mention, Sentence
from entaug.errors import LossError, ParameterError, TagError, UnknownNameError

__all__ = [
    "OVERLAP",
    "SCHEMES",
    "Evidence",
    "TagFault",
    "decode",
    "decode_at",
    "encode",
    "encode_flat",
    "flatten",
    "is_tag",
    "position_tags",
    "scheme_name",
]

# For each scheme the letters that open a longer mention, go on with it, close it, and stand for a whole one.
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
OVERLAP = ("error", "outermost", "innermost")
_PREFIXES = frozenset("BIESLUM")


def scheme_name(name: str) -> str:
    """The canonical name of a scheme.

    Raises:
        UnknownNameError: there is no such scheme.
    """
    upper = name.upper()
    upper = _ALIASES.get(upper, upper)
    if upper not in _LETTERS:
        raise UnknownNameError("tag scheme", name, [*SCHEMES, *_ALIASES])
    return upper


def is_tag(text: str) -> bool:
    """Whether a string looks like a tag of any scheme.

    Example:
        >>> [is_tag(t) for t in ("O", "B-PER", "NNP", "-")]
        [True, True, False, False]
    """
    return text == "O" or (len(text) > 2 and text[1] == "-" and text[0] in _PREFIXES)


@lru_cache(maxsize=65536)
def _mention(label: str, start: int, end: int) -> Mention:
    return Mention(label, ((start, end),))


class TagFault(Exception):  # noqa: N818 - never leaves the package: readers turn it into a TagError with a line
    """A fault in a tag sequence, at a token."""

    def __init__(self, index: int, message: str, remedy: str) -> None:
        super().__init__(message)
        self.index = index
        self.message = message
        self.remedy = remedy


def decode(tags: Sequence[str], scheme: str = "IOB2", repaired: Counter[str] | None = None) -> tuple[Mention, ...]:
    """The mentions that a tag sequence stands for.

    Args:
        tags: one tag a token.
        scheme: one of `SCHEMES`.
        repaired: when given, sequences that break the scheme are read as conlleval reads them (a tag that goes on
            with nothing opens a mention), and each repair is counted here under its name.

    Returns:
        Contiguous mentions, in order, none overlapping.

    Raises:
        TagError: an unknown tag, or one that may not stand where it does.

    Example:
        >>> [(m.label, m.spans) for m in decode(["B-PER", "I-PER", "O", "B-LOC"])]
        [('PER', ((0, 2),)), ('LOC', ((3, 4),))]
    """
    try:
        return decode_at(tags, scheme_name(scheme), repaired)
    except TagFault as fault:
        raise TagError(f"token {fault.index + 1}: {fault.message}", remedy=fault.remedy) from None


def decode_at(tags: Sequence[str], scheme: str, repaired: Counter[str] | None) -> tuple[Mention, ...]:
    """As `decode`, for readers: takes the canonical scheme name and raises `TagFault` with the token's index."""
    if tags.count("O") == len(tags):
        return ()
    if scheme == "IOB2":
        return _decode_iob2(tags, repaired)
    if scheme == "IOB1":
        return _decode_iob1(tags, repaired)
    return _decode_closed(tags, scheme, repaired)


def _split(tags: Sequence[str], index: int, letters: str) -> tuple[str, str]:
    tag = tags[index]
    prefix, dash, label = tag[:1], tag[1:2], tag[2:]
    if dash != "-" or not label or prefix not in letters:
        hint = "name its scheme with --scheme" if is_tag(tag) else "correct it, or name the tag column"
        raise TagFault(index, f"unknown tag {tag!r} (allowed: O and {', '.join(f'{x}-TYPE' for x in letters)})", hint)
    return prefix, label


_REPAIR = "correct it, or pass --repair to start a mention there"


def _decode_iob2(tags: Sequence[str], repaired: Counter[str] | None) -> tuple[Mention, ...]:
    mentions = []
    open_label, start, after = "", 0, -1
    for i, tag in enumerate(tags):
        if tag == "O":
            continue
        if i == after and tag[:2] == "I-" and tag[2:] == open_label:
            after = i + 1
            continue
        prefix, label = _split(tags, i, "BI")
        if prefix == "I":
            if repaired is None:
                before = "at the start of the sentence" if i == 0 else f"after {tags[i - 1]}"
                raise TagFault(i, f"{tag} {before}: there is no {label} mention to go on with", _REPAIR)
            repaired["I- with nothing before it"] += 1
        if open_label:
            mentions.append(_mention(open_label, start, after))
        open_label, start, after = label, i, i + 1
    mentions.append(_mention(open_label, start, after))
    return tuple(mentions)


def _decode_iob1(tags: Sequence[str], repaired: Counter[str] | None) -> tuple[Mention, ...]:
    mentions = []
    open_label, start, after = "", 0, -1
    for i, tag in enumerate(tags):
        if tag == "O":
            continue
        prefix, label = _split(tags, i, "IB")
        touches = i == after and label == open_label
        if prefix == "I" and touches:
            after = i + 1
            continue
        if prefix == "B" and not touches:
            if repaired is None:
                remedy = "if the file is IOB2, pass --scheme IOB2; else correct it or pass --repair"
                raise TagFault(i, f"{tag} where IOB1 has I-{label}: no {label} mention ends right before it", remedy)
            repaired["B- without a mention to set off"] += 1
        if open_label:
            mentions.append(_mention(open_label, start, after))
        open_label, start, after = label, i, i + 1
    mentions.append(_mention(open_label, start, after))
    return tuple(mentions)


def _decode_closed(tags: Sequence[str], scheme: str, repaired: Counter[str] | None) -> tuple[Mention, ...]:
    """IOBES, BILOU and BMES: mentions that say where they end."""
    begin, inside, close, single = _LETTERS[scheme]
    letters = begin + inside + close + single
    mentions: list[Mention] = []
    open_label, start = "", 0

    def fault(i: int, message: str, name: str) -> None:
        if repaired is None:
            raise TagFault(i, message, _REPAIR)
        repaired[name] += 1

    for i, tag in enumerate(tags):
        prefix, label = ("O", "") if tag == "O" else _split(tags, i, letters)
        goes_on = prefix in (inside, close) and label == open_label
        if open_label and not goes_on:
            fault(i, f"{tag} where {inside}-{open_label} or {close}-{open_label} must follow", "mention not closed")
            mentions.append(_mention(open_label, start, i))
            open_label = ""
        if prefix == single:
            mentions.append(_mention(label, i, i + 1))
        elif prefix != "O" and not open_label:
            if prefix != begin:
                fault(i, f"{tag}: there is no {label} mention to go on with", f"{prefix}- with nothing before it")
            open_label, start = label, i
        if prefix == close:
            mentions.append(_mention(label, start, i + 1))
            open_label = ""
    if open_label:
        fault(len(tags) - 1, f"the sentence ends inside a {open_label} mention", "mention not closed")
        mentions.append(_mention(open_label, start, len(tags)))
    return tuple(mentions)


def flatten(mentions: Sequence[Mention], overlap: str) -> list[Mention]:
    """Mentions that IOB can carry.

    Args:
        mentions: any.
        overlap: ``"error"``; or ``"outermost"`` / ``"innermost"``: discontinuous mentions are left out, and of
            mentions that overlap the longest / shortest is kept (of equals the first).

    Raises:
        LossError: `overlap` is ``"error"`` and something would be lost.
    """
    if overlap not in OVERLAP:
        raise ParameterError(f"overlap must be one of {', '.join(OVERLAP)}, not {overlap!r}")
    if overlap == "error":
        end = 0
        for mention in mentions:
            kind = "nested" if mention.contiguous else "discontinuous"
            if kind == "discontinuous" or mention.start < end:
                raise LossError(
                    f"a {kind} mention ({mention.label} {list(mention.spans)}) cannot be written as tags",
                    remedy="write JSON lines, or choose what to keep: --overlap outermost or innermost",
                )
            end = mention.end
        return list(mentions)
    sign = -1 if overlap == "outermost" else 1
    kept: list[Mention] = []
    taken: set[int] = set()
    for mention in sorted((m for m in mentions if m.contiguous), key=lambda m: sign * (m.end - m.start)):
        positions = mention.positions()
        if taken.isdisjoint(positions):
            taken.update(positions)
            kept.append(mention)
    return sorted(kept, key=lambda m: m.start)


def encode(sentence: Sentence, scheme: str = "IOB2", overlap: str = "error") -> list[str]:
    """The tags of a sentence, one a token.

    Args:
        sentence: the sentence.
        scheme: one of `SCHEMES`.
        overlap: see `flatten`.

    Raises:
        LossError: see `flatten`.

    Example:
        >>> encode(Sentence(["New", "York"], [Mention("LOC", [(0, 2)])]), "BILOU")
        ['B-LOC', 'L-LOC']
    """
    if not sentence.mentions:
        return ["O"] * len(sentence.tokens)
    mentions = sentence.mentions if sentence.flat else flatten(sentence.mentions, overlap)
    return encode_flat(len(sentence.tokens), mentions, scheme_name(scheme))


def encode_flat(n: int, mentions: Iterable[Mention], scheme: str) -> list[str]:
    """As `encode`, for writers: takes flat mentions in order, over `n` tokens, and the canonical scheme name."""
    tags = ["O"] * n
    begin, inside, close, single = _LETTERS[scheme]
    touched: tuple[str, int] | None = None
    for mention in mentions:
        label = mention.label
        start, end = mention.spans[0]
        if end - start == 1:
            tags[start] = f"{single}-{label}"
        else:
            tags[start] = f"{begin}-{label}"
            if end - start > 2:
                tags[start + 1 : end - 1] = [f"{inside}-{label}"] * (end - start - 2)
            tags[end - 1] = f"{close}-{label}"
        if begin == inside and touched == (label, start):  # IOB1 sets off a neighbour of the same label
            tags[start] = f"B-{label}"
        touched = (label, end)
    return tags


def position_tags(sentence: Sentence) -> list[str]:
    """For each token its full tag: for flat mentions the IOB2 tag, else the sorted tags of all its mentions joined.

    The first token of a mention is B, every other is I, also across the gap of a discontinuous one.

    Example:
        >>> position_tags(Sentence(["a", "b"], [Mention("X", [(0, 2)]), Mention("Y", [(1, 2)])]))
        ['B-X', 'B-Y|I-X']
    """
    tags = ["O"] * len(sentence.tokens)
    if sentence.flat:
        for mention in sentence.mentions:
            start, end = mention.spans[0]
            tags[start] = "B-" + mention.label
            if end - start > 1:
                tags[start + 1 : end] = ["I-" + mention.label] * (end - start - 1)
        return tags
    sets: dict[int, list[str]] = {}
    for mention in sentence.mentions:
        for i in mention.positions():
            sets.setdefault(i, []).append(("B-" if i == mention.start else "I-") + mention.label)
    for i, of_token in sets.items():
        tags[i] = "|".join(sorted(of_token))
    return tags


class Evidence:
    """Finds the scheme of a file by looking at its tags.

    A single mention usually settles it: one that starts with I- speaks for IOB1; one that ends with E-, or a single
    S-, for IOBES, or with M- for BMES; L- or U- for BILOU; B- after O for IOB2, if nothing closes it.
    """

    def __init__(self) -> None:
        self._starts: Counter[str] = Counter()
        self._letters: Counter[str] = Counter()

    def add(self, tags: Iterable[str]) -> None:
        """Look at the tags of one sentence."""
        before = "O"
        for tag in tags:
            if tag != "O":
                self._letters[tag[:1]] += 1
                if before[2:] != tag[2:]:
                    self._starts[tag[:1]] += 1
            before = tag

    @property
    def found(self) -> bool:
        """Whether any mention has been seen."""
        return bool(self._letters)

    @property
    def settled(self) -> bool:
        """Whether more tags would hardly say more: IOBES and BMES differ in mentions of three tokens and more."""
        closed = self._letters["E"] or self._letters["S"]
        return self.found and not (closed and not self._letters["I"] and not self._letters["M"])

    def scheme(self) -> str:
        """The scheme the tags speak for; IOB2 when there was no mention."""
        if self._letters["L"] or self._letters["U"]:
            return "BILOU"
        if self._letters["M"]:
            return "BMES"
        if self._letters["E"] or self._letters["S"]:
            return "IOBES"
        # In IOB1 a mention that follows no other starts with I-, in IOB2 with B-. A mixed file is a faulty one:
        # take what most mentions say and let the reader name the others.
        return "IOB1" if self._starts["I"] > self._starts["B"] else "IOB2"
