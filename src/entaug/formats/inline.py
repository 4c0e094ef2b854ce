"""Mentions marked in running text: ``<PER>Mira Quill</PER> ran .``.

A line is a sentence; or a file is a document, whose lines are sentences. The label is the name of a tag, or the value
of its attribute: ``<ENAMEX TYPE="PERSON">Mira Quill</ENAMEX>``. Tags may be nested, and further attributes are kept.
Elements of the structure of a document (``doc``, ``p``, ``s`` ...; the option ``structure``) are no mentions; an
element ``s`` or ``sentence`` gives the id of its sentence. ``&amp;`` and ``&lt;`` stand for ``&`` and ``<``. What a
file declares itself is refused, and nothing outside it is ever read.

Where marks stand apart from words, as in ``ran .``, the words are those between spaces; other text is tokenised by the
rules of spaCy. Mentions with gaps, and mentions that cross, cannot be written.

Mentions in brackets, ``[Mira Quill](PER) ran``, are refused.
"""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html.entities import html5
from pathlib import Path
from typing import Any, Literal
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from entaug.core.data import Sentence
from entaug.core.mentions import Span
from entaug.core.spacing import infer_spaces
from entaug.core.tags import Overlap, is_tag
from entaug.errors import InputError, LossError
from entaug.files.atomic import atomic_file
from entaug.files.streams import decode_text, encode_text, extension_of, read_beginning, read_bytes
from entaug.formats.base import BEFORE, ENTITY_FIELDS, FormatCapabilities, ReadReport, before_of
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import numbered_lines, read_records
from entaug.formats.text import (
    DOCUMENT,
    NOT_IN_XML,
    CharMention,
    Document,
    SegmentationOptions,
    place_tokens,
    split_document,
)
from entaug.formats.text_records import char_spans
from entaug.formats.token_records import entity_fields, without

_WORD = re.compile(r"\S+")
_STRUCTURE = (
    *("doc", "document", "documents", "docs", "corpus", "root", "xml", "text", "body", "article", "title", "head"),
    *("headline", "div", "p", "par", "paragraph", "s", "sent", "sentence", "sentences", "docid", "docno"),
)
_SENTENCES = ("s", "sent", "sentence")
_LABEL_ATTRIBUTES = ("type", "label", "category", "class", "entity")
_TAG = re.compile(r"<([A-Za-z_][\w.:-]*)((?:\s+[\w.:-]+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*)\s*>")
_PAIR = re.compile(r"<([A-Za-z_][\w.:-]*)(?:\s[^<>]*)?>[^<>]+</\1\s*>")
_MARKUP = re.compile(r"<[^<>]*>")
_ATTRIBUTE = re.compile(r"([\w.:-]+)\s*=")
_BRACKETS = re.compile(r"\[[^\[\]\n]+\]\([^\W\d][^()\s:/]*\)")
_ROOT = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE[^>\[]*>\s*)?<([A-Za-z_][\w.:-]*)[^<>]*>")
_DECLARATION = re.compile(r"\s*(?:<\?xml|<!DOCTYPE)")
_OTHER_FORMATS = re.compile(r"\s*(?:\{|\[\s*[\[{\"\]]|(?:<[?!][^>]*>\s*)*<(?:html|collection)\b)", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d][\w.-]*")
_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);)(?:(\w+);)?")
_SAMPLE = 200  # lines
_WRAP = "_"  # the element that is put around a text, so that it is one
_TAG_FIELD = "_tag"
"""Field of a mention: the name of its tag, where the label is an attribute and most tags have another name."""


@dataclass(frozen=True)
class InlineDialect(SegmentationOptions):
    """Layout of a text with marked mentions.

    Args:
        unit: whether a ``"line"`` or a ``"file"`` is a text; empty to choose it by the extension: a file of XML is one.
        attribute: the attribute that holds the label; empty where the name of the tag is the label.
        element: the name of tags whose label is an attribute.
        structure: the names of tags that are parts of a document and no mentions.
        root: the tag around a file; empty without one.
        words: ``"spaces"``: words are separated by spaces; ``"rules"``: text is tokenised by the rules of spaCy.
        ids: whether each line is in an element with the id of its sentence.
        overlap: which of nested mentions to write; ``"error"`` for all.
    """

    unit: Literal["", "line", "file"] = ""
    attribute: str = ""
    element: str = "ENAMEX"
    structure: tuple[str, ...] = _STRUCTURE
    root: str = "doc"
    words: Literal["spaces", "rules"] = "spaces"
    ids: bool = False
    overlap: Overlap = "error"

    def describe(self) -> str:
        label = f"labels in the attribute {self.attribute}" if self.attribute else "labels as tags"
        tokens = "words between spaces" if self.words == "spaces" else f"tokenised ({self.language})"
        unit = {"": "", "line": ", one sentence a line", "file": ", one document"}[self.unit]
        return f"tags in text, {label}{unit}, {tokens}"


class Inline(BufferedFormat):
    """The format of texts with marked mentions; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "inline"
    title = "inline tags"
    extensions = (".xml", ".sgml")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=False, spaces=False)
    dialect_class = InlineDialect

    def recognises(self, path: Path) -> bool:
        if path.is_dir():
            return False
        text = read_beginning(path).decode("utf-8-sig", "replace")
        if _OTHER_FORMATS.match(text):
            return False
        lines = [line.removeprefix("\ufeff") for line in text.splitlines() if line.strip()][:_SAMPLE]
        if any(is_tag(line.split()[-1]) for line in lines):
            return False
        marked = [line for line in lines if _PAIR.search(line) or _BRACKETS.search(line)]
        return any(_MARKUP.sub("", _PAIR.sub("", _BRACKETS.sub("", line))).strip() for line in marked)

    def detect(self, path: Path, dialect: InlineDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        text = read_beginning(path, 1 << 18).decode("utf-8-sig", "replace")
        lines = [line.removeprefix("\ufeff") for line in text.splitlines() if line.strip()][:_SAMPLE]
        root = _ROOT.match(text)
        is_file = _DECLARATION.match(text) is not None
        if root is not None and not is_file:
            is_file = f"</{root[1]}>" not in lines[0] and _ends_with(path, root[1])
        detected: dict[str, Any] = {"root": root[1]} if is_file and root is not None else {}
        if (unit := "file" if is_file else "line") != _unit_of(path):
            detected["unit"] = unit
        detected |= _detect_labels(lines, {*dialect.structure, detected.get("root", "")})
        detected["ids"] = any(
            tag[1].lower() in _SENTENCES and "id" in _ATTRIBUTE.findall(tag[2].lower())
            for line in lines
            for tag in _TAG.finditer(line)
        )
        given = {name: value for name, value in detected.items() if name not in options}
        words = _detect_words(lines, InlineDialect(**{**vars(dialect), **given}))
        return {**detected, "words": words}

    def sentences(self, path: Path, dialect: InlineDialect, reading: ReadReport) -> Iterator[Sentence]:
        dialect = replace(dialect, unit=dialect.unit or _unit_of(path))

        def parse(_number: int, text: str) -> Iterable[Sentence]:
            if _BRACKETS.search(text) and not _TAG.search(text):
                remedy = "write tags: <PER>Ada</PER>"
                raise InputError("mentions in brackets, as [Ada](PER), which are not read", remedy=remedy)
            return _Marked(text, dialect, reading).sentences(reading)

        texts: Iterable[tuple[int, str]] = numbered_lines(path, notes=reading.notes)
        if dialect.unit == "file":
            texts = [(1, decode_text(read_bytes(path), path).removeprefix("\ufeff"))]
        return read_records(path, texts, parse, reading)

    def check(self, sentence: Sentence, dialect: InlineDialect) -> None:
        super().check(sentence, dialect)
        _line(self.as_stored(sentence, dialect), dialect)

    def lost(self, sentence: Sentence, dialect: InlineDialect) -> list[str]:
        lost = [f"column {name!r}" for name in sentence.columns]
        lost += [f"field {name!r}" for name in sentence.fields if name != ENTITY_FIELDS]
        lost += ["id"] * (sentence.id is not None and not dialect.ids)
        if sentence.spaces is not None and _text(sentence, dialect)[0] != sentence.text:
            lost.append("text")
        attributes = [(name, value) for fields in entity_fields(sentence) for name, value in fields.items()]
        are_kept = all(_NAME.fullmatch(n) and type(v) is str and n != dialect.attribute for n, v in attributes)
        return lost + ["fields of mentions"] * (bool(attributes) and not are_kept)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: InlineDialect) -> None:
        is_file = (dialect.unit or _unit_of(path)) == "file"
        with atomic_file(path) as out:
            if is_file and dialect.root:
                out.write(f"<{dialect.root}>\n".encode())
            for sentence in sentences:
                line = f"{_line(self.as_stored(sentence, dialect), dialect)}\n"
                out.write(line.encode() if is_file else encode_text(line))
            if is_file and dialect.root:
                out.write(f"</{dialect.root}>\n".encode())


def _unit_of(path: Path) -> Literal["line", "file"]:
    return "file" if extension_of(path) == ".xml" else "line"


def _ends_with(path: Path, name: str) -> bool:
    """Whether a file ends with the end of an element."""
    with contextlib.suppress(InputError):
        return (
            re.search(rf"</{re.escape(name)}\s*>\s*\Z", read_bytes(path)[-1000:].decode("utf-8", "replace")) is not None
        )
    return False


def _detect_labels(lines: Sequence[str], structure: Collection[str]) -> dict[str, Any]:
    """The attribute that holds the labels of most tags, if one does, and the name of most tags."""
    tags = [tag for line in lines for tag in _TAG.finditer(line) if tag[1].lower() not in structure]
    attributes = Counter(name for tag in tags for name in _ATTRIBUTE.findall(tag[2]))
    for name in sorted(attributes, key=lambda name: -attributes[name]):
        if name.lower() in _LABEL_ATTRIBUTES and attributes[name] >= 0.5 * len(tags):
            return {"attribute": name, "element": Counter(tag[1] for tag in tags).most_common(1)[0][0]}
    return {"attribute": ""}


def _detect_words(lines: Sequence[str], dialect: InlineDialect) -> str:
    """The separation of words: spaces alone if punctuation stands apart and no mention is part of such a word."""
    attached = apart = 0
    for line in lines:
        try:
            marked = _Marked(line, replace(dialect, unit="line", root=""), ReadReport(repair=True))
        except InputError:  # reported when it is read; or an element over several lines
            continue
        text = marked.text
        for mention in marked.mentions:
            [(start, end)] = mention.spans
            if (start and not text[start - 1].isspace()) or not (text[end : end + 1] or " ").isspace():
                return "rules"
        words = text.split()
        for i, word in enumerate(words):
            is_mark = word[-1] == "," or (word[-1] == "." and i == len(words) - 1)  # not that of an abbreviation
            apart += is_mark and len(word) == 1
            attached += is_mark and len(word) > 1 and word[-2].isalnum()
    # In running text a comma stands apart only by mistake; in words between spaces some are attached by mistake.
    return "spaces" if 10 * apart >= attached else "rules"


# ----------------------------------------------------------------------------------------------------------- reading


class _Marked:
    """A text with its mentions, parsed from markup."""

    def __init__(self, source: str, dialect: InlineDialect, reading: ReadReport) -> None:
        self._dialect, self._reading = dialect, reading
        self._structure = {name.lower() for name in (*dialect.structure, dialect.root, _WRAP)}
        self._parts: list[str] = []
        self._length = 0
        self._is_break = False
        self._open: list[tuple[str, int, int, dict[str, str]]] = []  # name, start, line, attributes
        self._ids: dict[str, int] = {}  # where the first sentence of each id begins
        self._left_out: dict[str, None] = {}
        self._lines: list[int] = []
        self.mentions: list[CharMention] = []
        self._parse(source)
        self.text = "".join(self._parts)

    def _add(self, text: str) -> None:
        if self._is_break and self._parts and not text.startswith("\n"):
            text = f"\n{text}"
        self._is_break = False
        self._parts.append(text)
        self._length += len(text)

    def _parse(self, source: str) -> None:
        is_wrapped = not (self._dialect.root and self._dialect.unit == "file")
        parser = self._parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._add
        parser.CommentHandler = lambda _: self._reading.notes.update(["comment left out"])
        parser.StartDoctypeDeclHandler = self._doctype
        escaped = _AMPERSAND.sub(self._ampersand, source)
        try:
            parser.Parse(f"<{_WRAP}>{escaped}</{_WRAP}>" if is_wrapped else escaped, True)
        except expat.ExpatError as error:
            column = error.offset + 1 - (len(_WRAP) + 2) * (is_wrapped and error.lineno == 1)
            what = f"{expat.ErrorString(error.code)} at character {max(1, column)}"
            is_open = [name for name, *_ in self._open if name != _WRAP]
            what += f" (<{is_open[-1]}> is open)" if is_open else ""
            remedy = "close each tag in its line, inner ones first; write &lt; for < and &amp; for &"
            raise InputError(what, line=self._line(error.lineno), remedy=remedy) from None
        except UnicodeEncodeError:
            raise InputError("half of a surrogate pair", remedy="remove the character") from None

    def _line(self, line: int) -> int | None:
        """The line in the file; where each line is a text, it is known to the caller."""
        return line if self._dialect.unit == "file" else None

    def _ampersand(self, match: re.Match[str]) -> str:
        character = html5.get(f"{match[1]};") if match[1] else None
        if character is not None:
            return escape(character)
        if not self._reading.repair:
            line = self._line(match.string.count("\n", 0, match.start()) + 1)
            what = f"{match[0]!r} stands for no character"
            raise InputError(what, line=line, remedy="write &amp; for &, or pass `repair=True` to read it as it stands")
        self._reading.repaired["& that stands for no character read as it is"] += 1
        return escape(match[0])

    def _doctype(self, _name: str, _system: str | None, _public: str | None, has_declarations: int) -> None:
        if has_declarations:
            remedy = "remove them: entities are never replaced by what a file declares"
            raise InputError("declarations in the document type", line=1, remedy=remedy)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append((name, self._length, self._parser.CurrentLineNumber, attributes))
        if name.lower() in self._structure:
            self._is_break = True
            known = {"id"} if name.lower() in _SENTENCES else set()
            if "id" in attributes and known:
                self._ids.setdefault(attributes["id"], self._length)
            if name not in (_WRAP, self._dialect.root) and not (known and known >= attributes.keys()):
                self._left_out[name] = None
        elif self._is_break and self._parts:
            self._add("")  # the break is before the mention
            self._open[-1] = (name, self._length, *self._open[-1][2:])

    def _end(self, name: str) -> None:
        _, start, line, attributes = self._open.pop()
        if name.lower() in self._structure:
            self._is_break = True
            return
        if start == self._length:
            remedy = f"remove it, or let it be a part of the structure: `structure='{name}'`"
            raise InputError(f"<{name}> holds no words", line=self._line(line), remedy=remedy)
        dialect = self._dialect
        fields = dict(attributes)
        label = fields.pop(dialect.attribute, name) if dialect.attribute else name
        if dialect.attribute and name != dialect.element:
            fields[_TAG_FIELD] = name
        self._lines.append(line)
        self.mentions.append(CharMention(label, ((start, self._length),), fields))

    def sentences(self, reading: ReadReport) -> list[Sentence]:
        """The sentences of the text."""
        dialect = self._dialect
        if self._left_out:
            names = ", ".join(self._left_out)
            reading.notes[f"tags of the structure, which are no mentions: {names} (`structure=NAMES`)"] += 1
        spans = [match.span() for match in _WORD.finditer(self.text)] if dialect.words == "spaces" else None
        lines = [self._line(line) for line in self._lines]
        mention_lines = [line for line in lines if line is not None] or None
        document = Document(self.text, self.mentions, None, token_spans=spans, mention_lines=mention_lines)
        options = replace(dialect, split="lines") if "\n" in self.text and dialect.split == "none" else dialect
        sentences = split_document(document, options, reading) if self.text.strip() else []
        if not sentences:
            reading.notes["text of white space alone left out"] += 1
        found, ids, starts, begun = [], list(self._ids), list(self._ids.values()), 0
        for sentence in sentences:
            _, offset = sentence.fields.get(DOCUMENT, (None, 0))
            before, begun = begun, bisect_right(starts, offset + len(before_of(sentence)))
            found.append(_plain(sentence, ids[begun - 1] if begun > before else None, dialect))
        return found


def _plain(sentence: Sentence, id_: str | None, dialect: InlineDialect) -> Sentence:
    """A sentence of its own: without the white space at its edges, and where single spaces tell words apart, of any."""
    inner = (sentence.spaces or ())[:-1]
    is_single = dialect.words == "spaces" and set(inner) <= {" "}
    fields = {name: value for name, value in sentence.fields.items() if name not in (BEFORE, DOCUMENT)}
    return sentence.with_(id=id_, spaces=None if is_single else (*inner, "")).with_fields(fields)


# ----------------------------------------------------------------------------------------------------------- writing


def _text(sentence: Sentence, dialect: InlineDialect) -> tuple[str, list[Span]]:
    """The text of a sentence on one line, and the characters of each token."""
    spaces = sentence.spaces
    if dialect.words == "spaces":
        if spaces is None or any(not space.isspace() or "\n" in space or "\r" in space for space in spaces[:-1]):
            spaces = (" ",) * len(sentence)
    elif spaces is None:
        spaces = infer_spaces(sentence.tokens)
    text, spans = place_tokens(sentence.with_(spaces=tuple(re.sub("[\r\n]+", " ", space) for space in spaces)))
    return text[: spans[-1][1]], spans


def _line(sentence: Sentence, dialect: InlineDialect) -> str:
    """The line of a sentence; raises LossError."""
    subject = f"sentence {sentence.key}"
    for token in sentence.tokens:
        if (dialect.words == "spaces" and _WORD.fullmatch(token) is None) or token != token.strip() or "\n" in token:
            remedy = "write JSON lines, or pass `words='rules'` where the tokens are those of a text"
            raise LossError(f"the token {token!r} holds white space", path=subject, remedy=remedy)
        if NOT_IN_XML.search(token) or "\r" in token:
            raise LossError(f"the token {token!r} holds a control character", path=subject, remedy="write JSON lines")
    if dialect.ids and sentence.id is not None and NOT_IN_XML.search(sentence.id):
        raise LossError(f"the id {sentence.id!r} holds a control character", path=subject, remedy="write JSON lines")
    text, spans = _text(sentence, dialect)
    out: list[str] = []
    ends: list[tuple[int, str]] = []
    position = 0

    def close(until: int) -> None:
        nonlocal position
        while ends and ends[-1][0] <= until:
            end, mark = ends.pop()
            out.extend((escape(text[position:end]), mark))
            position = end

    mentions = sorted(char_spans(sentence, spans), key=lambda mention: (mention[1], -mention[2]))
    for label, start, end, fields in mentions:
        close(start)
        if ends and end > ends[-1][0]:
            what = f"the mention {label} {text[start:end]!r} crosses another"
            raise LossError(what, path=subject, remedy="write JSON lines or brat")
        opening, closing = _tags(label, fields, dialect, subject)
        out.extend((escape(text[position:start]), opening))
        position = start
        ends.append((end, closing))
    close(len(text))
    out.append(escape(text[position:]))
    line = "".join(out)
    if dialect.ids:
        line = f"<s id={quoteattr(sentence.id)}>{line}</s>" if sentence.id is not None else f"<s>{line}</s>"
    return line


def _tags(label: str, fields: Mapping[str, Any], dialect: InlineDialect, subject: str) -> tuple[str, str]:
    """The tags before and after a mention."""
    attributes = {name: value for name, value in fields.items() if type(value) is str and _NAME.fullmatch(name)}
    name = label
    if dialect.attribute:
        name = attributes.pop(_TAG_FIELD, dialect.element)
        attributes = {dialect.attribute: label, **without(attributes, (dialect.attribute,))}
    structure = {part.lower() for part in (*dialect.structure, dialect.root)}
    if (
        NOT_IN_XML.search("".join((label, *attributes.values())))
        or _NAME.fullmatch(name) is None
        or name.lower() in structure
    ):
        remedy = "rename it" if dialect.attribute else "pass `attribute=TYPE`"
        raise LossError(f"the label {label!r} is no name of a tag", path=subject, remedy=remedy)
    # White space that a parser would make a space stays what it is.
    escapes = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
    written = "".join(f" {name}={quoteattr(value, escapes)}" for name, value in attributes.items())
    return f"<{name}{written}>", f"</{name}>"
