"""Segmentation of documents with character offsets into sentences of tokens.

A text is tokenised by the rules of spaCy for its language, unless the file gives its tokens. It stays one sentence, or
is split at line ends or at ends of sentences, but never within a mention.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Literal

from entaug.config.params import validate
from entaug.core.data import Mention, Sentence, Span, split_fields
from entaug.errors import InputError, MissingExtraError, ParameterError
from entaug.formats.base import BEFORE, ENTITY_FIELDS, ReadReport
from entaug.formats.documents import CHAR_RANGES, DOCUMENT, CharMention, Document
from entaug.formats.offsets import OffsetUnit, other_units, title_of

__all__ = ["OffsetOptions", "SegmentationOptions", "locate_tokens", "retokenized", "split_document"]

_CACHED_WORDS = 1 << 18  # words whose tokens a tokeniser remembers
_LONGEST_RUN = 256  # punctuation marks without a space that are tokenised at once
_LONG_RUN = re.compile(rf"(?<![^\w\s])[^\w\s]{{{_LONGEST_RUN + 1},}}")
_CONTEXT = 4  # marks before and after a cut that tell whether it is between two tokens
_CUT_WITHIN = 32  # marks before the longest run among which a cut is looked for
AlignedMention = tuple[Mention, CharMention]
"""A mention by tokens, and by characters."""


@dataclass(frozen=True)
class SegmentationOptions:
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

    def __post_init__(self) -> None:
        validate(self)


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
    if options.split == "none" and document.sentence_starts is None and tokens:
        aligned = _align_exactly(document, tokens)
        if aligned is not None:
            return [_create_sentence(document, tokens, aligned, 0, len(tokens), 0, 1)]
    tokens, aligned = _align_mentions(tokens, document, options, reading)
    if not tokens:
        return []
    starts = _sentence_starts(tokens, document, options)
    inside = {i for mention, _ in aligned for i in range(mention.start + 1, mention.end)}
    bounds = [*(i for i in sorted(starts) if i not in inside), len(tokens)]
    mention_starts = [mention.start for mention, _ in aligned]
    return [
        _create_sentence(
            document,
            tokens,
            aligned[bisect_left(mention_starts, start) : bisect_left(mention_starts, end)],
            start,
            end,
            number,
            len(bounds) - 1,
        )
        for number, (start, end) in enumerate(pairwise(bounds))
    ]


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
    for first, last in pairwise([0, *_cuts(document.text, language), len(document.text)]):
        doc = nlp.make_doc(document.text[first:last])
        rows = doc.to_array(["IDX", "LENGTH", "IS_SPACE"]).tolist()
        found += [(first + start, first + start + length) for start, length, is_space in rows if not is_space]
    return found


def _cuts(text: str, language: str) -> Iterator[int]:
    """Where a text is cut before it is tokenised."""
    # The tokeniser splits one mark after the other off a run, and searches all of the rest each time. It splits nothing
    # off a run with words at both ends.
    for run in _LONG_RUN.finditer(text):
        # A letter stands for a word that the run is part of: other marks are split off its end than off its beginning.
        before, after = text[max(0, run.start() - 1) : run.start()], text[run.end() : run.end() + 1]
        begin, end = ("a" if side and not side.isspace() else "" for side in (before, after))
        if begin and end:
            continue
        last = run.start()
        while last + _LONGEST_RUN < run.end():
            nearest = range(last + _LONGEST_RUN, last + _LONGEST_RUN - _CUT_WITHIN, -1)
            cut = next((i for i in nearest if _is_cut(begin, text[i - _CONTEXT : i + _CONTEXT], end, language)), None)
            if cut is None:  # one long token, such as a row of dashes: no mark is split off here
                last += _LONGEST_RUN
            else:
                yield cut
                last = cut


@lru_cache(maxsize=1 << 12)
def _is_cut(begin: str, marks: str, end: str, language: str) -> bool:
    """Whether the middle of some marks is between two tokens, and most of the marks are tokens."""
    starts = _load_pipeline(language)[0].make_doc(begin + marks + end).to_array(["IDX"]).ravel().tolist()
    return len(starts) >= _CONTEXT and len(begin) + _CONTEXT in starts


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
    """The indices of the tokens that begin a sentence by the rules of spaCy."""
    nlp, sentencizer, doc_class = _load_pipeline(language)
    words = [text[start:end] for start, end in tokens]
    if sentencizer.punct_chars.isdisjoint(words[:-1]):
        return ()
    next_starts = [*(start for start, _ in tokens[1:]), len(text)]
    spaces = [end < next_start for (_, end), next_start in zip(tokens, next_starts, strict=True)]
    doc = sentencizer(doc_class(nlp.vocab, words=words, spaces=spaces))
    return [i for i, is_start in enumerate(doc.to_array("SENT_START").tolist()) if is_start == 1]


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
    except (ImportError, ValueError):
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
    return nlp, nlp.create_pipe("sentencizer"), Doc


# ------------------------------------------------------------------------------------------------------------ mentions


def _align_exactly(document: Document, tokens: Sequence[Span]) -> list[AlignedMention] | None:
    """Mentions of one range each whose edges are edges of tokens; None if any mention is another."""
    aligned: dict[Mention, CharMention] = {}
    if document.mentions:
        first = {start: i for i, (start, _) in enumerate(tokens)}
        last = {end: i for i, (_, end) in enumerate(tokens, start=1)}
        for mention in document.mentions:
            start, end = mention.spans[0]
            i, j = first.get(start), last.get(end)
            if i is None or j is None or i >= j or len(mention.spans) > 1:
                return None
            aligned[Mention(mention.label, ((i, j),))] = mention
        if len(aligned) < len(document.mentions):
            return None
    return _sort(aligned)


def _sort(aligned: dict[Mention, CharMention]) -> list[AlignedMention]:
    pairs = list(aligned.items())
    if len(pairs) > 1:
        pairs.sort(key=lambda pair: (pair[0].spans, pair[0].label))
    return pairs


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
            message = f"mention {_quote(mention, text)} begins or ends within the token {token!r}"
            if options.misaligned == "error":
                remedy = _remedy_for_unit(text, given, options)
                remedy = remedy or "pass --misaligned cut to cut the token there, or skip to leave it out"
                faults.append(InputError(message, line=line, remedy=remedy))
            else:
                reading.notes[f"left out: {message}"] += 1
            continue
        cuts |= inner
        kept.append((mention, line))
    if cuts:
        tokens = [piece for token in tokens for piece in _cut_token(token, cuts)]
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
            faults.append(InputError(message, line=line, remedy="remove one, or pass --repair"))
    if faults:
        faults[0].others = faults[1:]
        raise faults[0]
    return tokens, _sort(aligned)


def _is_aligned(mention: CharMention, starts: set[int], ends: set[int]) -> bool:
    """Whether a mention has one range, whose edges are edges of tokens."""
    if len(mention.spans) != 1:
        return False
    start, end = mention.spans[0]
    return start in starts and end in ends and start < end


def _strip_mention(text: str, mention: CharMention, line: int | None, reading: ReadReport) -> CharMention:
    """A mention without white space at the edges of its ranges; an error where one is empty or outside the text."""
    spans = []
    for start, end in mention.spans:
        if not 0 <= start < end <= len(text):
            raise InputError(
                f"mention {mention.label} ({start}-{end}) is empty or outside the text of {len(text)} characters",
                line=line,
                remedy="correct its offsets",
            )
        covered = text[start:end]
        stripped = covered.strip()
        if not stripped:
            message = f"mention {mention.label} ({start}-{end}) is white space alone"
            raise InputError(message, line=line, remedy="remove it")
        if len(stripped) < len(covered):
            reading.notes["white space at the edge of a mention left out"] += 1
        first = start + len(covered) - len(covered.lstrip())
        spans.append((first, first + len(stripped)))
    return mention._replace(spans=tuple(sorted(spans)))


def _remedy_for_unit(text: str, mention: CharMention, options: SegmentationOptions) -> str:
    """The remedy for a mention that would fit words if offsets counted another unit; empty if none would."""
    if not isinstance(options, OffsetOptions):
        return ""
    for unit, words in other_units(text, mention.spans, options.offsets):
        what = f"as {title_of(unit)} it is {words!r:.60}: if all offsets count these, pass --layout offsets={unit}"
        # Words fit bytes by chance often enough to name the remedy for other causes, too.
        return f"{what}; --misaligned skip leaves it out{', cut cuts the token' if unit == 'bytes' else ''}"
    return ""


def _quote(mention: CharMention, text: str) -> str:
    """The label, words and offsets of a mention, for messages."""
    words = " ... ".join(text[start:end] for start, end in mention.spans)
    offsets = ", ".join(f"{start}-{end}" for start, end in mention.spans)
    return f"{mention.label} {words!r} ({offsets})"


def _cut_token(token: Span, cuts: set[int]) -> list[Span]:
    start, end = token
    inner = sorted(offset for offset in cuts if start < offset < end)
    return list(pairwise([start, *inner, end]))


# ----------------------------------------------------------------------------------------------------------- sentences


def _create_sentence(
    document: Document,
    tokens: Sequence[Span],
    aligned: Sequence[AlignedMention],
    start: int,
    end: int,
    number: int,
    count: int,
) -> Sentence:
    """Create sentence `number` of `count` from the tokens from `start` to `end` of a document."""
    text = document.text
    spans = tokens[start:end]
    offset = spans[0][0]
    next_starts = [token_start for token_start, _ in spans[1:]]
    next_starts.append(tokens[end][0] if end < len(tokens) else len(text))
    fields = {} if number else dict(document.fields)
    if not number and offset:
        fields[BEFORE] = text[:offset]
    if count > 1:
        fields[DOCUMENT] = [document.id, offset]
    mentions = tuple([mention.shift(-start) if start else mention for mention, _ in aligned])
    entity_fields = [dict(char_mention.fields) for _, char_mention in aligned]
    for mention_fields, (mention, char_mention) in zip(entity_fields, aligned, strict=True):
        # Ranges with only white space between them are one range of tokens, as for a mention over two lines in brat.
        if len(char_mention.spans) != len(mention.spans):
            mention_fields[CHAR_RANGES] = [[a - offset, b - offset] for a, b in char_mention.spans]
    if any(entity_fields):
        fields[ENTITY_FIELDS] = entity_fields
    return Sentence(
        tuple([text[a:b] for a, b in spans]),
        mentions,
        document.id if count == 1 or document.id is None else f"{document.id}-{number + 1}",
        **split_fields(fields),
        spaces=tuple([text[b:next_start] for (_, b), next_start in zip(spans, next_starts, strict=True)]),
    )
