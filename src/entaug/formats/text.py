"""Texts with mentions by characters: documents, what their offsets count, and their division into sentences of tokens.

A format without tokens of its own reads and writes documents. A document is tokenised by the rules of spaCy for its
language, unless the file gives its tokens; it stays one sentence, or is split at line ends or at ends of sentences, but
never within a mention. The white space between tokens stays with the sentence, so that joining the sentences of an
unchanged document gives its text and offsets again; tokens of an augmented sentence are spaced as in print.

Offsets count characters (code points), as in Python, or another unit. JavaScript and Java count UTF-16 units, two for
an emoji: so does doccano, unless a project counts grapheme clusters, of which a flag or a letter with a combining
accent is one. Go and Rust count bytes of UTF-8. A file does not say so. What tells is whether the ranges before which
the units differ begin and end with words, or hold the words that the file gives, in one unit or in the other; this is
decided over all of a file, or where mentions quote their words, over a text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from entaug.core.data import Sentence, split_fields
from entaug.core.mentions import Mention, Span
from entaug.core.spacing import infer_spaces, is_unspaced_script, is_word_character, stripped
from entaug.errors import InputError, LossError, MissingExtraError, ParameterError
from entaug.files.folders import unused_name
from entaug.formats.base import BEFORE, ENTITY_FIELDS, Dialect, ReadReport, before_of
from entaug.formats.token_records import entity_fields

DOCUMENT = "_document"
"""Field of a sentence: the id of its document, and the character where it begins there."""
CHAR_RANGES = "_ranges"
"""Field of a mention with more ranges of characters than of tokens: its ranges, relative to the start of the sentence.
"""
_MADE = "entaug"  # field of a text or sentence: its provenance
NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character that XML has no place for."""
_EMPTY: Mapping[str, Any] = MappingProxyType({})


class CharMention(NamedTuple):
    """A mention by characters."""

    label: str
    spans: tuple[Span, ...]
    fields: Mapping[str, Any] = _EMPTY


class Document(NamedTuple):
    """A text with its mentions."""

    text: str
    mentions: Sequence[CharMention] = ()
    id: str | None = None
    fields: Mapping[str, Any] = _EMPTY
    tokens: Sequence[str] | None = None
    sentence_starts: Sequence[int] | None = None
    mention_lines: Sequence[int | None] | None = None
    token_spans: Sequence[Span] | None = None


def join_sentences(sentences: Iterable[Sentence]) -> Document:
    """Join sentences to a document."""
    parts: list[str] = []
    mentions: list[CharMention] = []
    fields: dict[str, Any] = {}
    document_id: str | None = None
    tokens: list[str] = []
    sources: dict[str, None] = {}
    offset = 0
    for number, sentence in enumerate(sentences):
        origin, start = _origin(sentence)
        if not number:
            document_id = sentence.id if origin is None else origin
            parts.append(before_of(sentence))
            offset = len(parts[0])
        elif parts[-1] and not parts[-1][-1:].isspace() and start != offset:
            parts.append("\n")
            offset += 1
        # Fields of the document are those of its first sentence that has them.
        fields |= {
            name: value
            for name, value in sentence.fields.items()
            if name not in fields and name not in (BEFORE, DOCUMENT, ENTITY_FIELDS)
        }
        if sentence.provenance is not None:
            sources |= dict.fromkeys(sentence.provenance.sources)
        text, spans = place_tokens(sentence, offset)
        parts.append(text)
        tokens += sentence.tokens
        mentions += _char_mentions(sentence, spans, offset)
        offset += len(text)
    if len(sources) > 1 and _MADE in fields:
        fields[_MADE] = {**fields[_MADE], "sources": list(sources)}
    return Document("".join(parts), mentions, document_id, fields, tokens)


def place_tokens(sentence: Sentence, offset: int = 0) -> tuple[str, list[Span]]:
    """The text of a sentence, and where its tokens are; white space that is unknown is inferred as in printed text."""
    parts = []
    spans = []
    spaces = infer_spaces(sentence.tokens) if sentence.spaces is None else sentence.spaces
    for token, space in zip(sentence.tokens, spaces, strict=True):
        end = offset + len(token)
        spans.append((offset, end))
        offset = end + len(space)
        parts += [token, space] if space else [token]
    return "".join(parts), spans


def _char_mentions(sentence: Sentence, token_spans: Sequence[Span], sentence_start: int) -> Iterator[CharMention]:
    """The mentions of a sentence by characters."""
    for mention, known_fields in zip(sentence.mentions, entity_fields(sentence), strict=True):
        spans = tuple((token_spans[start][0], token_spans[end - 1][1]) for start, end in mention.spans)
        mention_fields = dict(known_fields)
        if ranges := mention_fields.pop(CHAR_RANGES, None):
            spans = tuple((sentence_start + start, sentence_start + end) for start, end in ranges)
        yield CharMention(mention.label, spans, mention_fields)


def group_by_document(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Group sentences by document, in order; a sentence without a document is a group of its own."""
    groups: dict[tuple[Any, ...], list[Sentence]] = {}
    for number, sentence in enumerate(sentences):
        document_id, provenance = _origin(sentence)[0], sentence.provenance
        key: tuple[Any, ...] = (number,) if document_id is None else (document_id,)
        if document_id is not None and provenance is not None:
            # Those of one method and copy form a document of their own for each document of the sources.
            key = (document_id, provenance.method, provenance.copy)
        groups.setdefault(key, []).append(sentence)
    yield from groups.values()


def are_words(spans: Sequence[Span], text: str) -> bool:
    """Whether there is nothing but white space between the words of a text."""
    edges = [(0, 0), *spans, (len(text), len(text))]
    gaps = all(end <= start and not text[end:start].strip() for (_, end), (start, _) in pairwise(edges))
    return gaps and all(start < end for start, end in spans)


def named_documents(
    sentences: Iterable[Sentence], fits: Callable[[str], object] = bool, unnamed: str = "entaug-"
) -> Iterator[tuple[str, Document, bool]]:
    """Yield each document of some sentences with a name of its own, and whether it is augmented."""
    names: set[str] = set()
    for number, group in enumerate(group_by_document(sentences), start=1):
        document = join_sentences(group)
        wanted = document.id if document.id and fits(document.id) else f"{unnamed}{number}"
        name = unused_name(wanted, names, "+")  # several are augmented from a text; its sentences are NAME-2
        names.add(name)
        yield name, document, any(sentence.provenance is not None for sentence in group)


def _origin(sentence: Sentence) -> tuple[str | None, int | None]:
    """The id of the document of a sentence, and the character where it begins there; None where unknown."""
    origin = sentence.fields.get(DOCUMENT)
    if isinstance(origin, list) and len(origin) == 2 and isinstance(origin[0], str) and type(origin[1]) is int:
        return origin[0], None if sentence.provenance is not None else origin[1]
    return None, None


OffsetUnit = Literal["auto", "characters", "utf16", "graphemes", "bytes"]
_UNITS: tuple[OffsetUnit, ...] = ("utf16", "graphemes", "bytes")
_TITLES = {"utf16": "UTF-16 units", "graphemes": "grapheme clusters", "bytes": "bytes of UTF-8"}
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")  # two UTF-16 units
_CLUSTERED = re.compile("\r\n|[\u0300-\U0010ffff]")  # may be in a grapheme cluster of several characters
_CORRECT = "correct its offsets or its words"
_BYTES_MARGIN = 2  # Nearly every text that is not English has ranges that bytes move, and one may fit by chance.


def raise_all(faults: Sequence[InputError]) -> None:
    """Raise the first of some errors, if any, with the others."""
    if faults:
        faults[0].others = faults[1:]
        raise faults[0]


def title_of(unit: str) -> str:
    """The name of a unit in messages."""
    return _TITLES.get(unit, "characters")


def characters_of(text: str, unit: str) -> dict[int, int] | None:
    """The character at each offset that does not divide one; None where the unit counts characters in this text."""
    if unit == "graphemes" and _CLUSTERED.search(text):
        import regex

        ends = [0, *accumulate(map(len, regex.findall(r"\X", text)))]
        return dict(enumerate(ends)) if len(ends) <= len(text) else None
    is_moved = _ASTRAL.search(text) is not None if unit == "utf16" else unit == "bytes" and not text.isascii()
    if not is_moved:
        return None
    import numpy as np

    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    limits = (0xFFFF,) if unit == "utf16" else (0x7F, 0x7FF, 0xFFFF)
    sizes = 1 + sum(points > limit for limit in limits)
    return dict(zip([0, *np.cumsum(sizes).tolist()], range(len(text) + 1), strict=True))


def in_characters(document: Document, unit: str) -> Document:
    """The document with mentions whose offsets counted a unit and count characters now."""
    known = characters_of(document.text, unit)
    if known is None:
        return document
    mentions: list[CharMention] = []
    faults: list[InputError] = []
    for mention in document.mentions:
        spans = [(known.get(start), known.get(end)) for start, end in mention.spans]
        placed = tuple((start, end) for start, end in spans if start is not None and end is not None)
        if len(placed) == len(spans):
            mentions.append(mention._replace(spans=placed))
            continue
        where = ", ".join(f"{start}-{end}" for start, end in mention.spans)
        what = f"mention {mention.label} ({where}) is outside the text or divides a character: offsets count "
        remedy = "correct its offsets, or name another unit: `offsets='characters'`"
        faults.append(InputError(what + title_of(unit), remedy=remedy))
    raise_all(faults)
    return document._replace(mentions=mentions)


def counter(text: str, unit: str) -> Callable[[int], int]:
    """The function that counts the units before a character of a text, to write its offsets."""
    known = characters_of(text, unit)
    if known is None:
        return int
    offsets = {character: offset for offset, character in known.items()}

    def count(character: int) -> int:
        if character not in offsets:
            what = f"a mention or token begins or ends within a grapheme cluster of {text!r:.60}, which has no offset"
            raise LossError(what, remedy="count characters: `offsets='characters'`")
        return offsets[character]

    return count


# ------------------------------------------------------------------------------------------------------------ decision


@dataclass
class _Votes:
    """Numbers of ranges that have different places in characters and in another unit, by where they fit words."""

    total: int = 0
    characters: int = 0
    other: int = 0
    other_alone: int = 0

    @property
    def margin(self) -> int:
        return self.other - self.characters


class UnitDetector:
    """Collects evidence for the unit of the offsets of a file."""

    def __init__(self) -> None:
        self._votes: dict[OffsetUnit, _Votes] = {unit: _Votes() for unit in _UNITS}

    def add(self, text: str, ranges: Iterable[tuple[Any, Any, Any]], tokens: Iterable[Span] | None = None) -> None:
        """Add ranges of a text as the file gives them: start, end, and the words there or None."""
        known = {unit: places for unit in _UNITS if (places := characters_of(text, unit)) is not None}
        if not known:
            return
        edges = None if tokens is None else tuple(map(set, zip(*tokens, strict=True)))

        def fits(start: int | None, end: int | None, words: Any) -> bool:
            if edges and words is None:
                return start in edges[0] and end in edges[1]
            return _fits(text, start, end, words)

        for start, end, words in ranges:
            for unit, places in known.items() if type(start) is type(end) is int else ():
                place = places.get(start), places.get(end)
                if place != (start, end):
                    as_characters, as_other = fits(start, end, words), fits(*place, words)
                    votes = self._votes[unit]
                    votes.total += 1
                    votes.characters += as_characters
                    votes.other += as_other
                    votes.other_alone += as_other and not as_characters

    def decide(self) -> dict[str, str]:
        """The options ``offsets`` and ``offsets_note``; a note unless all ranges agree that they are characters."""
        fitting = {unit: votes for unit, votes in self._votes.items() if votes.margin > 0}
        votes = fitting.get("bytes", _Votes())
        if votes.margin < _BYTES_MARGIN or votes.other < votes.total:
            fitting.pop("bytes", None)
        if fitting:
            unit = max(fitting, key=lambda unit: fitting[unit].margin)
            claim = f"offsets count {title_of(unit)}"
            return {"offsets": unit, "offsets_note": self._note(claim, unit, "characters")}
        # Words fit bytes by chance too often for a remark.
        doubtful = [u for u in _UNITS[:2] if (v := self._votes[u]).total and (not v.margin or v.other_alone)]
        if not doubtful:
            return {"offsets": "characters", "offsets_note": ""}
        unit = max(doubtful, key=lambda unit: self._votes[unit].margin)
        claim = "offsets count characters"
        if not self._votes[unit].margin:
            claim = f"offsets may count {title_of(unit)} and were read as characters"
        return {"offsets": "characters", "offsets_note": self._note(claim, unit, unit)}

    def _note(self, claim: str, unit: OffsetUnit, remedy: str) -> str:
        votes = self._votes[unit]
        ranges = f"{votes.total:,} range{'s' * (votes.total != 1)}"
        return (
            f"{claim}: of {ranges} where that matters, {votes.other:,} fit words as {title_of(unit)} and "
            f"{votes.characters:,} as characters; to change it: `offsets='{remedy}'`"
        )


def _fits(text: str, start: int | None, end: int | None, words: Any) -> bool:
    """Whether a range holds the given words, or else begins and ends with words."""
    if start is None or end is None or not 0 <= start < end <= len(text):
        return False
    covered = text[start:end]
    if isinstance(words, str):
        return covered.split() == words.split()
    is_stripped = not (covered[0].isspace() or covered[-1].isspace())
    return is_stripped and not any(0 < i < len(text) and _is_within_word(text[i - 1], text[i]) for i in (start, end))


def _is_within_word(before: str, after: str) -> bool:
    return all(is_word_character(char) and not is_unspaced_script(char) for char in (before, after))


class Quote(NamedTuple):
    """The ranges of a mention in its file, its words there (None if it has none), and its line."""

    spans: tuple[Span, ...]
    words: str | None
    line: int | None = None


def locate_quotes(
    text: str, quotes: Sequence[Quote], reading: ReadReport, unit: str = "characters", remedy: str = _CORRECT
) -> list[tuple[Span, ...]]:
    """The characters of each mention of a text, whose offsets count a unit unless the words fit another."""
    placed: list[tuple[Span, ...]] = []
    wrong: list[int] = []
    for tried in (unit, *(other for other in ("characters", "utf16", "bytes") if other != unit)):
        known = characters_of(text, tried)
        if tried != unit and known is None and characters_of(text, unit) is None:
            continue
        spans = [quote.spans for quote in quotes]
        if known is not None:  # an offset that divides a character is outside the text
            spans = [tuple((known.get(a, -1), known.get(b, -1)) for a, b in own) for own in spans]
        faulty = [i for i, own in enumerate(spans) if not _agrees(text, own, quotes[i].words)]
        if not faulty:
            if tried != unit:
                reading.notes[f"text whose offsets count {title_of(tried)}"] += 1
            return spans
        if tried == unit:
            placed, wrong = spans, faulty
    if not reading.repair:
        faults = []
        for i in wrong:
            offsets = ", ".join(f"{start}-{end}" for start, end in placed[i])
            there = " ... ".join(text[max(0, start) : max(0, end)] for start, end in placed[i])
            what = f"a mention is at {offsets}, where the text has {there!r:.60} and not {quotes[i].words!r:.60}"
            faults.append(
                InputError(what, line=quotes[i].line, remedy=remedy + ", or pass `repair=True` to believe the offsets")
            )
        raise_all(faults)
    reading.repaired["mention with other words than those of its place"] += len(wrong)
    return placed


def _agrees(text: str, spans: Sequence[Span], words: str | None) -> bool:
    """Whether the ranges are in the text, and have these letters; white space may differ, gaps may be left out."""
    if words is None:  # `split_document` has errors for ranges outside the text
        return True
    if not all(0 <= start < end <= len(text) for start, end in spans):
        return False
    letters = "".join(words.split())
    pieces = "".join(text[start:end] for start, end in spans)
    return letters in ("".join(p.split()) for p in (pieces, text[spans[0][0] : spans[-1][1]]))


_JAPANESE_QUOTES = frozenset("」』")
_IN_SENTENCES = frozenset(",;:")
_BEFORE_WORDS = frozenset(("§", "§§"))
# Abbreviations that spaCy's rules for German do not know: those that end no sentence, and those before numbers.
_GERMAN_ABBREVIATIONS = frozenset("ABl Az BGBl GVBl RGBl Rn Rs Rz Slg st".split())
_GERMAN_BEFORE_NUMBERS = frozenset(
    "Abschn Alt Anh Anl Anm Art Aufl Buchst Einl Erw Erwgr Fn HS Hs Kap Tab Tz UAbs Unterabs Var Vorb Ziff".split()
)
# What spaCy needs for a language besides, and what to do without it.
_LIBRARIES = {
    "ja": "pip install sudachipy sudachidict_core; or give zh, which makes each character a token",
    "ko": "install mecab-ko and its dictionary, and pip install natto-py; or give xx, which divides text at spaces",
    "th": "pip install pythainlp; or give text that is divided into words",
    "vi": "pip install pyvi; or give xx, which divides text at spaces",
}
_GIVE_WORDS = "or give the words as tokens"
_WITHOUT_SPACES = (
    (is_unspaced_script, f"Chinese and Japanese: pass `language='zh'` for a token each character, {_GIVE_WORDS}"),
    (re.compile("[\u0e00-\u0e7f]").match, f"Thai: pass `language='th'`, {_GIVE_WORDS}"),
)
"""Remedies for a mention within a token, by the script of the characters there."""
_CACHED_WORDS = 1 << 18  # words whose tokens a tokeniser remembers
_LONGEST_RUN = 256  # punctuation marks without a space that are tokenised at once
_LONG_RUN = re.compile(rf"(?<![^\w\s])[^\w\s]{{{_LONGEST_RUN + 1},}}")
AlignedMention = tuple[Mention, CharMention]
"""A mention by tokens, and by characters."""


@dataclass(frozen=True)
class SegmentationOptions(Dialect):
    """Options of splitting documents into sentences.

    Args:
        language: a language code that spaCy has rules for; ``"xx"`` for any.
        split: ``"none"``: a text is one sentence; ``"lines"``: each line is one; ``"sentences"``: sentences are
            detected, and also end at line ends.
        misaligned: what to do with a mention that begins or ends within a token: ``"error"``; ``"skip"``: leave it out
            and count it; ``"cut"``: cut the token there.
    """

    language: str = "en"
    split: Literal["none", "lines", "sentences"] = "none"
    misaligned: Literal["error", "skip", "cut"] = "error"


@dataclass(frozen=True)
class OffsetOptions(SegmentationOptions):
    """Options of splitting documents into sentences, and the unit of their offsets.

    Args:
        offsets: what offsets count: ``"characters"`` (code points, as in Python); ``"utf16"`` units, as in JavaScript
            and Java; ``"graphemes"``: grapheme clusters; ``"bytes"`` of UTF-8; ``"auto"``: where all mentions of a file
            fit words best; characters in a new file.
        offsets_note: what was decided about them in this file, and why.
    """

    offsets: OffsetUnit = "auto"
    offsets_note: str = field(default="", compare=False)

    def note_offsets(self, reading: ReadReport) -> None:
        """Note what was decided about offsets, once a file."""
        if self.offsets_note:
            reading.notes[self.offsets_note] = 1

    @property
    def offsets_text(self) -> str:
        """The part of a description of the layout about offsets."""
        return "" if self.offsets in ("auto", "characters") else f", offsets in {title_of(self.offsets)}"


def split_document(document: Document, options: SegmentationOptions, reading: ReadReport) -> list[Sentence]:
    """Split a document into sentences."""
    tokens = _tokenize(document, options.language)
    tokens, aligned = _align_mentions(tokens, document, options, reading)
    if not tokens:
        return []
    starts = _sentence_starts(tokens, document, options)
    inside = {i for mention, _ in aligned for i in range(mention.start + 1, mention.end)}
    bounds = [*(i for i in sorted(starts) if i not in inside), len(tokens)]
    mention_starts = [mention.start for mention, _ in aligned]
    sentences = []
    for number, place in enumerate(pairwise(bounds)):
        own = aligned[bisect_left(mention_starts, place[0]) : bisect_left(mention_starts, place[1])]
        sentences.append(_create_sentence(document, tokens, own, place, number, len(bounds) - 1))
    return sentences


def retokenized(document: Document, options: SegmentationOptions) -> Sentence | None:
    """Return a document as one sentence of the tokens that a format without tokens reads; None without a token."""
    whole = document._replace(tokens=None, sentence_starts=(0,))
    return next(iter(split_document(whole, replace(options, misaligned="cut"), ReadReport(repair=True))), None)


# ------------------------------------------------------------------------------------------------ tokens and sentences


def locate_tokens(tokens: Sequence[str], text: str) -> list[Span] | None:
    """Locate the tokens of a text."""
    spans = []
    end = 0
    for token in tokens:
        start = text.find(token, end)
        if start != end and (start < 0 or not text[end:start].isspace()):
            return None
        end = start + len(token)
        spans.append((start, end))
    rest = text[end:]
    return spans if tokens and (not rest or rest.isspace()) else None


def _tokenize(document: Document, language: str) -> list[Span]:
    """The characters of each token."""
    if document.token_spans is not None:
        return list(document.token_spans)
    if document.tokens is not None:
        spans = locate_tokens(document.tokens, document.text)
        if spans is not None:
            return spans
    nlp = _load_pipeline(language)[0]
    found: list[Span] = []
    for first, last in pairwise([0, *_cuts(document.text), len(document.text)]):
        doc = nlp.make_doc(document.text[first:last])
        rows = doc.to_array(["IDX", "LENGTH", "IS_SPACE"]).tolist()
        found += [(first + start, first + start + length) for start, length, is_space in rows if not is_space]
    return found


def _cuts(text: str) -> Iterator[int]:
    """Where a text is cut before it is tokenised: the tokeniser takes time quadratic in runs of punctuation."""
    for run in _LONG_RUN.finditer(text):
        # It splits nothing off a run with words at both ends.
        if not all(
            side and not side.isspace()
            for side in (text[max(0, run.start() - 1) : run.start()], text[run.end() : run.end() + 1])
        ):
            yield from range(run.start() + _LONGEST_RUN, run.end(), _LONGEST_RUN)


def _sentence_starts(tokens: Sequence[Span], document: Document, options: SegmentationOptions) -> set[int]:
    """The indices of the tokens that begin a sentence, if no mention continues there."""
    if document.sentence_starts is not None:
        starts = {bisect_left(tokens, (offset, offset)) for offset in document.sentence_starts}
        return {0, *starts} - {len(tokens)}
    starts = {0}
    if options.split != "none":
        text = document.text
        starts.update(i for i, ((_, end), (start, _)) in enumerate(pairwise(tokens), 1) if "\n" in text[end:start])
    if options.split == "sentences":
        starts.update(_detect_sentences(tokens, document.text, options.language))
    return starts


def _detect_sentences(tokens: Sequence[Span], text: str, language: str) -> Iterable[int]:
    """The indices of the tokens that begin a sentence by the rules of spaCy, and by the marks and words around them."""
    nlp, sentencizer, doc_class = _load_pipeline(language)
    words = [text[start:end] for start, end in tokens]
    if sentencizer.punct_chars.isdisjoint(words[:-1]):
        return ()
    next_starts = [*(start for start, _ in tokens[1:]), len(text)]
    spaces = [end < next_start for (_, end), next_start in zip(tokens, next_starts, strict=True)]
    doc = sentencizer(doc_class(nlp.vocab, words=words, spaces=spaces))
    found = [i for i, is_start in enumerate(doc.to_array("SENT_START").tolist()) if is_start == 1 and i]
    starts = []
    has_capitals = text != text.lower()
    for i in found:
        last = next(j for j in range(i - 1, -1, -1) if words[j] in sentencizer.punct_chars)
        start = i  # spaCy leaves marks before the first word, as an opening bracket, to the sentence before
        while start - 1 > last and (not spaces[start - 1] or words[start - 1] in _BEFORE_WORDS):
            start -= 1
        start = start if spaces[start - 1] else i
        if words[i - 1] in _JAPANESE_QUOTES and "\u3041" <= words[i][0] <= "\u3096":
            continue  # と and other particles of what was said
        marks = (words, spaces, last, i)
        if _IN_SENTENCES.isdisjoint(words[last + 1 : start]) and not _is_abbreviated(*marks, language, has_capitals):
            starts.append(start)
    return starts


def _is_abbreviated(
    words: Sequence[str], spaces: Sequence[bool], last: int, first: int, language: str, has_capitals: bool
) -> bool:
    """Whether the mark at `last` ends an abbreviation, and not the sentence before the word at `first`."""
    # English sentences do begin with small letters, as of "p53", and English is what corpora of papers are read with.
    # So do all in text that is written without capitals.
    if language == "en" or words[last] != "." or not last or spaces[last - 1]:
        return False
    if has_capitals and words[first][0].islower():
        return True
    before = words[last - 1]
    if language != "de" or not before[0].isalpha():
        return False
    if "." in before or before in _GERMAN_ABBREVIATIONS:
        return True
    is_code = before in ("f", "ff") and sum(map(str.isupper, words[first])) > 1  # §§ 1 ff. BGB
    is_counted = before in _GERMAN_BEFORE_NUMBERS or before.endswith(("str", "Str"))
    return is_code or (is_counted and words[first][0].isdigit())


@cache
def _load_pipeline(language: str) -> tuple[Any, Any, Any]:
    """The tokeniser of a language, its sentence detector, and the class of the documents that these exchange."""
    try:
        import spacy
        from spacy.attrs import IS_PUNCT, IS_SPACE
        from spacy.tokens import Doc
    except ImportError as error:
        raise MissingExtraError(error.name or "spacy", "spacy") from None
    try:
        nlp: Any = spacy.blank(language)
    except (ImportError, ValueError) as error:
        if language in _LIBRARIES and "E048" not in str(error):
            what = f"spaCy's rules for the language {language!r} need another library"
            raise ParameterError(what, remedy=_LIBRARIES[language]) from None
        remedy = "give the code of a language that it has, such as en, de or fr; xx is for any"
        raise ParameterError(f"spaCy has no rules for the language {language!r}", remedy=remedy) from None
    nlp.max_length = 2**31
    # The attributes that spaCy computes for each new word (its shape, whether it is a URL ...) cost as much as the
    # tokenisation: keep only white space, and punctuation for the sentence detector. The tokeniser remembers 10,000
    # words by default; a corpus has many times as many.
    getters = nlp.vocab.lex_attr_getters
    nlp.vocab.lex_attr_getters = {name: getters[name] for name in (IS_PUNCT, IS_SPACE) if name in getters}
    if hasattr(nlp.tokenizer, "max_cache_size"):
        nlp.tokenizer.max_cache_size = _CACHED_WORDS
    sentencizer: Any = nlp.create_pipe("sentencizer")
    if language == "el":
        sentencizer.punct_chars.add(";")  # the question mark
    return nlp, sentencizer, Doc


# ------------------------------------------------------------------------------------------------------------ mentions


def _align_mentions(
    tokens: list[Span], document: Document, options: SegmentationOptions, reading: ReadReport
) -> tuple[list[Span], list[AlignedMention]]:
    """Align mentions with tokens, which are cut where the option says so; an error holds the faults of all mentions."""
    text = document.text
    lines: Sequence[int | None] = document.mention_lines or [None] * len(document.mentions)
    starts, ends = {start for start, _ in tokens}, {end for _, end in tokens}
    faults: list[InputError] = []
    kept: list[tuple[CharMention, int | None]] = []
    cuts: set[int] = set()
    for given, line in zip(document.mentions, lines, strict=True):
        try:
            # A mention of whole tokens is right as it is, even if the tokens begin or end with white space.
            mention = given if _is_aligned(given, starts, ends) else _strip_mention(text, given, line, reading)
        except InputError as error:
            error.remedy = _remedy_for_unit(text, given, options) or error.remedy
            faults.append(error)
            continue
        inner = {start for start, _ in mention.spans} - starts | {end for _, end in mention.spans} - ends
        if inner and options.misaligned != "cut":
            offset = min(inner)
            token = next((text[start:end] for start, end in tokens if start < offset < end), "")
            message = f"mention {_quote(mention, text)} begins or ends within the token {token!r:.60}"
            if options.misaligned == "error":
                # Any range of Chinese fits words in any unit.
                beside = text[max(0, offset - 1) : offset + 1]
                remedy = next((remedy for matches, remedy in _WITHOUT_SPACES if any(map(matches, beside))), "")
                remedy = remedy or _remedy_for_unit(text, given, options)
                remedy = remedy or "pass `misaligned='cut'` to cut the token there, or skip to leave it out"
                faults.append(InputError(message, line=line, remedy=remedy))
            else:
                reading.notes[f"left out: {message}"] += 1
            continue
        cuts |= inner
        kept.append((mention, line))
    if cuts:
        tokens = [piece for a, b in tokens for piece in pairwise([a, *sorted(c for c in cuts if a < c < b), b])]
    first = {start: i for i, (start, _) in enumerate(tokens)}
    last = {end: i for i, (_, end) in enumerate(tokens, start=1)}
    aligned: dict[Mention, CharMention] = {}
    for mention, line in kept:
        by_tokens = Mention(mention.label, [(first[start], last[end]) for start, end in mention.spans])
        if by_tokens not in aligned:
            aligned[by_tokens] = mention
        elif reading.repair:
            reading.repaired["mention that was given twice dropped"] += 1
        else:
            only_first = mention._replace(spans=mention.spans[:1])
            message = f"mention {_quote(only_first, text)} is given twice"
            faults.append(InputError(message, line=line, remedy="remove one, or pass `repair=True`"))
    raise_all(faults)
    return tokens, sorted(aligned.items(), key=lambda pair: (pair[0].spans, pair[0].label))


def _is_aligned(mention: CharMention, starts: set[int], ends: set[int]) -> bool:
    """Whether a mention has one range, whose edges are edges of tokens."""
    if len(mention.spans) != 1:
        return False
    start, end = mention.spans[0]
    return start in starts and end in ends and start < end


def _strip_mention(text: str, mention: CharMention, line: int | None, reading: ReadReport) -> CharMention:
    """A mention without white space at the edges of its ranges; an error where one is empty or outside the text."""
    spans: list[Span] = []
    for start, end in mention.spans:
        if not 0 <= start < end <= len(text):
            raise InputError(
                f"mention {mention.label} ({start}-{end}) is empty or outside the text of {len(text)} characters",
                line=line,
                remedy="correct its offsets",
            )
        inner = stripped(text, [(start, end)])
        if not inner:
            message = f"mention {mention.label} ({start}-{end}) is white space alone"
            raise InputError(message, line=line, remedy="remove it")
        if inner != ((start, end),):
            reading.notes["white space at the edge of a mention left out"] += 1
        spans += inner
    return mention._replace(spans=tuple(sorted(spans)))


def _remedy_for_unit(text: str, mention: CharMention, options: SegmentationOptions) -> str:
    """The remedy for a mention that would fit words if offsets counted another unit; empty if none would."""
    if not isinstance(options, OffsetOptions):
        return ""
    offsets = {character: offset for offset, character in (characters_of(text, options.offsets) or {}).items()}
    given = [(offsets.get(start, start), offsets.get(end, end)) for start, end in mention.spans]
    for unit in ("characters", *_UNITS):
        known = characters_of(text, unit)
        places = given if known is None else [(known.get(start), known.get(end)) for start, end in given]
        if places != list(mention.spans) and all(_fits(text, start, end, None) for start, end in places):
            words = " ... ".join(text[start:end] for start, end in places)
            what = f"as {title_of(unit)} it is {words!r:.60}: if all offsets count these, pass `offsets='{unit}'`"
            # Words fit bytes by chance often enough to name the remedy for other causes, too.
            return f"{what}; `misaligned='skip'` leaves it out{', cut cuts the token' if unit == 'bytes' else ''}"
    return ""


def _quote(mention: CharMention, text: str) -> str:
    """The label, words and offsets of a mention, for messages."""
    words = " ... ".join(text[start:end] for start, end in mention.spans)
    offsets = ", ".join(f"{start}-{end}" for start, end in mention.spans)
    return f"{mention.label} {words!r} ({offsets})"


# ----------------------------------------------------------------------------------------------------------- sentences


def _create_sentence(
    document: Document, tokens: Sequence[Span], aligned: Sequence[AlignedMention], place: Span, number: int, count: int
) -> Sentence:
    """Create sentence `number` of `count` from a range of the tokens of a document."""
    start, end = place
    text = document.text
    spans = tokens[start:end]
    offset = spans[0][0]
    next_starts = [token_start for token_start, _ in spans[1:]]
    next_starts.append(tokens[end][0] if end < len(tokens) else len(text))
    # Each sentence of an augmented text is an augmented one.
    fields = {
        name: value
        for name, value in document.fields.items()
        if not number or (name == _MADE and isinstance(value, dict))
    }
    if not number and offset:
        fields[BEFORE] = text[:offset]
    if count > 1:
        fields[DOCUMENT] = [document.id, offset]
    mentions = tuple([mention.shift(-start) if start else mention for mention, _ in aligned])
    of_mentions = [dict(char_mention.fields) for _, char_mention in aligned]
    for mention_fields, (mention, char_mention) in zip(of_mentions, aligned, strict=True):
        # Ranges with only white space between them are one range of tokens, as for a mention over two lines in brat.
        if len(char_mention.spans) != len(mention.spans):
            mention_fields[CHAR_RANGES] = [[a - offset, b - offset] for a, b in char_mention.spans]
    if any(of_mentions):
        fields[ENTITY_FIELDS] = of_mentions
    return Sentence(
        tuple([text[a:b] for a, b in spans]),
        mentions,
        document.id if count == 1 or document.id is None else f"{document.id}-{number + 1}",
        **split_fields(fields),
        spaces=tuple([text[b:next_start] for (_, b), next_start in zip(spans, next_starts, strict=True)]),
    )
