"""Sentences of unlabelled text: plain text, folders of it, tokens one a line, JSON lines, and labelled files.

Running text is split into sentences by the rules of spaCy, and tokenised by the function that the caller gives. Lines
that hold one sentence each stay as they are; lines of text that was wrapped at a margin are joined.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from entaug.core.alignment import align_spaces
from entaug.core.data import Sentence
from entaug.core.spacing import is_unspaced_script
from entaug.errors import EntaugError, InputError, escape_control_characters
from entaug.files.folders import natural_sort_key, walk_files
from entaug.files.streams import check_characters, read_beginning, read_bytes, read_line_chunks
from entaug.formats import find_format, open_file
from entaug.formats.base import NO_LABELS, NO_MENTION, ReadReport, note_lines, warn_of_notes
from entaug.formats.documents import Document
from entaug.formats.records import json_type, numbered_lines, parse_json, peek_records
from entaug.formats.segmentation import SegmentationOptions, split_document

__all__ = ["Tokenizer", "read_unlabelled_file", "with_distinct_ids"]

Tokenizer = Callable[[str], Sequence[str]]
"""Splits a text without line ends into tokens."""

_TEXT_SUFFIXES = (".txt", ".text", ".md")
_NO_TEXT = (".csv", ".html", ".htm", ".xml")
_JSON_SUFFIXES = (".jsonl", ".json", ".ndjson")
_END_OF_SENTENCE = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")  # noqa: RUF001
_AFTER_UNSPACED = re.compile(r"(?<=[。！？])")  # noqa: RUF001
# A full stop within a line may be that of an abbreviation.
_TOKENISED_MARK = re.compile(r"(?:^|\s)(?:[,;:!?](?=\s|$)|\.$)")
_GLUED_MARK = re.compile(r"\w(?:[,;:!?](?=\s|$)|\.$)")
_TOKEN_NUMBER = re.compile(r"\d+([-.]\d+)?")
_LONGEST_TOKEN = 40  # longer lines without white space are text in a script without spaces, not tokens
_ONE_SENTENCE = 0.9  # share of lines of one sentence in a file of one sentence a line
_WRAPPED = 0.3  # share of lines that go on in the next line with a small letter, in wrapped text


class _Line(NamedTuple):
    """A line of text, or several that were joined; `number` is that of the first."""

    number: int
    text: str


def read_unlabelled_file(
    path: Path, tokenize: Tokenizer, language: str = "en", layouts: Counter[str] | None = None
) -> Iterator[Sentence]:
    """Read the sentences of a file or folder; labels are dropped."""
    options = SegmentationOptions(language=language, split="sentences")
    reader = _Reader(tokenize, options, Counter() if layouts is None else layouts)
    yield from reader.read_folder(path) if path.is_dir() else _not_empty(reader.read_file(path), path)


def with_distinct_ids(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """Number the sentences of one line of text, whose ids are alike, because annotation tools need distinct ones."""
    counts: Counter[str | None] = Counter()  # how often an id was used, or tried
    for sentence in sentences:
        id_ = sentence.id
        while id_ in counts:
            counts[sentence.id] += 1
            id_ = f"{sentence.id}.{counts[sentence.id]}"
        counts[id_] = 1
        yield sentence if id_ == sentence.id else sentence.with_(id=id_)


def _not_empty(sentences: Iterator[Sentence], path: Path) -> Iterator[Sentence]:
    is_empty = True
    for sentence in sentences:
        is_empty = False
        yield sentence
    if is_empty:
        raise InputError("holds no sentence", path=str(path), remedy="name a text that has some")


class _Reader:
    """Reads files of one tokeniser and language."""

    def __init__(self, tokenize: Tokenizer, options: SegmentationOptions, layouts: Counter[str]) -> None:
        self._tokenize = tokenize
        self._options = options
        self._layouts = layouts

    def read_folder(self, path: Path) -> Iterator[Sentence]:
        """Read a folder of texts, or one in a labelled format."""
        files = [(name, file) for name, file in walk_files(path) if file.suffix.lower() in _TEXT_SUFFIXES]
        if not files or any(file.with_suffix(".ann").exists() for _, file in files):
            return _read_labelled(path)  # raises an error that names the formats if it has none of them
        ordered = sorted(files, key=lambda pair: natural_sort_key(pair[0]))
        return _not_empty(
            (s for name, file in ordered for s in self._read_text(file, escape_control_characters(name))), path
        )

    def read_file(self, path: Path) -> Iterator[Sentence]:
        """Read a file in the way that its extension and its content suggest."""
        suffix = next((s.lower() for s in reversed(path.suffixes) if s.lower() != ".gz"), "")
        if suffix in _JSON_SUFFIXES or (not suffix and read_beginning(path, 256).lstrip()[:1] == b"{"):
            records, is_array = peek_records(path, 1)
            if not is_array:
                return self._read_json_lines(path)
            fields = _fields(records[0]) if records else None
            if type(fields) is dict and not {"text", "tokens"}.isdisjoint(fields):
                return self._read_json_array(path)
            return _read_labelled(path)
        if suffix in _TEXT_SUFFIXES or not suffix:
            return self._read_text(path, escape_control_characters(path.name))
        return self._read_any(path, suffix)

    def _read_any(self, path: Path, suffix: str) -> Iterator[Sentence]:
        """Read a file of a labelled format, one of tokens without tags, or text of an unusual extension."""
        try:
            open_file(path)
        except InputError:
            if suffix in _NO_TEXT:
                remedy = "save its text as .txt, one sentence or paragraph a line"
                raise InputError(f"{suffix} files are not read", path=str(path), remedy=remedy) from None
            if suffix in find_format("conll").extensions:
                yield from _token_rows(list(_lines(path)), escape_control_characters(path.name))
            else:
                yield from self._read_text(path, escape_control_characters(path.name))
            return
        yield from _read_labelled(path)

    # ------------------------------------------------------------------------------------------------------ plain text

    def _read_text(self, path: Path, name: str) -> Iterator[Sentence]:
        if _has_tags(path):
            yield from _read_labelled(path)
            return
        lines = list(_lines(path))
        if _are_tokens([line.text for line in lines]):
            self._layouts["one token a line"] += 1
            yield from _token_rows(lines, name)
        else:
            yield from self._split_text(lines, name)

    def _split_text(self, lines: Sequence[_Line], name: str) -> Iterator[Sentence]:
        texts = [line.text.replace("\t", " ") for line in lines]
        filled = [text for text in texts if text]
        is_tokenised = _is_tokenised(filled)
        if _is_wrapped(texts):
            lines = list(_paragraphs(lines))
        whole = is_tokenised or self._is_one_sentence_a_line([line.text for line in lines if line.text])
        layout = "one sentence a line" if whole else "running text"
        self._layouts["one tokenised sentence a line" if is_tokenised else layout] += 1
        for number, text in lines:
            parts = [text] if whole else self._sentences(text.replace("\t", " "))
            for part in filter(str.strip, parts):
                yield _sentence(part, str.split if is_tokenised else self._tokenize, f"{name}:{number}")

    def _is_one_sentence_a_line(self, texts: Sequence[str]) -> bool:
        sample = texts[:200]
        single = sum(len(self._sentences(text)) == 1 for text in sample)
        return len(texts) > 1 and single >= _ONE_SENTENCE * len(sample)

    def _sentences(self, text: str) -> list[str]:
        """Split a text into sentences; none begins with a small letter, unless the text has no capital ones."""
        sentences: list[str] = []
        for part in _AFTER_UNSPACED.split(text) if is_unspaced_script(text) else [text]:
            if not part.strip():
                continue
            for sentence in split_document(Document(part), self._options, ReadReport()):
                words = sentence.text.strip()
                if sentences and words[:1].islower() and text != text.lower():  # after an abbreviation, as "et al."
                    sentences[-1] += f" {words}"
                else:
                    sentences.append(words)
        return sentences

    # ------------------------------------------------------------------------------------------------------ JSON

    def _read_json_lines(self, path: Path) -> Iterator[Sentence]:
        """Read the fields `tokens` or `text` of each object; further fields, labels too, are ignored."""
        for number, line in numbered_lines(path):
            try:
                yield from self._read_record(parse_json(line), number, escape_control_characters(path.name))
            except InputError as error:
                error.locate(str(path), number)
                raise

    def _read_json_array(self, path: Path) -> Iterator[Sentence]:
        """Read an array of such objects, or of tasks of Label Studio, which have these fields in `data`."""
        try:
            for number, record in enumerate(parse_json(read_bytes(path)), start=1):
                yield from self._read_record(_fields(record), number, escape_control_characters(path.name))
        except InputError as error:
            error.locate(str(path))
            raise

    def _read_record(self, record: Any, number: int, name: str) -> Iterator[Sentence]:
        remedy = 'write {"text": "..."} or {"tokens": [...]} on each line'
        if type(record) is not dict:
            raise InputError(f"{json_type(record)} where an object is expected", remedy=remedy)
        id_ = record.get("id")
        origin = str(id_) if type(id_) in (str, int) and id_ != "" else f"{name}:{number}"
        tokens, text = record.get("tokens", record.get("tokenized_text")), record.get("text")
        if type(tokens) is list and tokens:
            # Prodigy writes them as objects.
            if all(type(token) is dict and type(token.get("text")) is str for token in tokens):
                tokens = [token["text"] for token in tokens]
            tokens = [token for token in tokens if type(token) is not str or token.strip()]
            spaces = align_spaces(tokens, text) if type(text) is str and all(type(t) is str for t in tokens) else None
            yield Sentence(tokens, id=origin, spaces=spaces)
        elif type(text) is str:
            for line in map(str.split, text.split("\n")):
                for part in self._sentences(" ".join(line)):
                    yield _sentence(part, self._tokenize, origin)
        else:
            raise InputError("no string 'text' and no list 'tokens' in the object", remedy=remedy)


def _read_labelled(path: Path) -> Iterator[Sentence]:
    """Read a file in a labelled format, without its labels."""
    reading = ReadReport(repair=True)
    for number, sentence in enumerate(open_file(path).sentences(reading), start=1):
        yield Sentence(
            sentence.tokens,
            id=sentence.id or f"{escape_control_characters(path.name)}:{number}",
            spaces=sentence.spaces,
        )
    kept = {note: count for note, count in reading.notes.items() if note not in (NO_LABELS, NO_MENTION)}
    warn_of_notes(note_lines(kept), str(path))


def _fields(record: Any) -> Any:
    """The fields of an object with tokens or text: of a task of Label Studio those in `data`, and its id."""
    if type(record) is dict and type(record.get("data")) is dict:
        return {"id": record.get("id"), **record["data"]}
    return record


# ----------------------------------------------------------------------------------------------------------------- rows


def _token_rows(lines: Sequence[_Line], name: str) -> Iterator[Sentence]:
    """Read one token a line; of several columns the first, or the second where the first numbers the tokens."""
    rows = [(number, text.split("\t") if "\t" in text else text.split()) for number, text in lines]
    rows = [(number, [] if _is_comment(cells) else cells) for number, cells in rows]
    numbered = [len(cells) > 1 and bool(_TOKEN_NUMBER.fullmatch(cells[0])) for _, cells in rows if any(cells)]
    column = 1 if numbered and all(numbered) else 0
    tokens: list[str] = []
    first = 0
    for number, cells in (*rows, (0, [])):
        if any(cells):
            if column and not cells[0].isdecimal():  # CoNLL-U: words that are written as one (2-3), or left out (1.1)
                continue
            first = first or number
            tokens.append(cells[column].strip())
        elif tokens:
            yield Sentence(tokens, id=f"{name}:{first}")
            tokens, first = [], 0


def _is_comment(cells: Sequence[str]) -> bool:
    return bool(cells) and ((cells[0].startswith("#") and len(cells) > 1) or cells[0] == "-DOCSTART-")


# ----------------------------------------------------------------------------------------------------------------- text


def _lines(path: Path) -> Iterator[_Line]:
    """The lines of a file; an empty one ends a paragraph or a sentence."""
    for first, lines in read_line_chunks(path):
        check_characters(lines, first, path, "\0")
        for number, line in enumerate(lines, start=first):
            yield _Line(number, " ".join(line.split()) if "\t" not in line else line.strip("\n"))


def _has_tags(path: Path) -> bool:
    """Whether a file is one of columns with tags, as many `.txt` files of corpora are."""
    lines = [line for line in read_beginning(path).decode("utf-8", "replace").split("\n")[:-1] if line.strip()]
    widths = {len(line.split()) for line in lines[:200] if not line.startswith(("#", "-DOCSTART-"))}
    if len(widths) != 1 or widths <= {1}:
        return False
    try:
        open_file(path, "conll")
    except EntaugError:
        return False
    return True


def _are_tokens(lines: Sequence[str]) -> bool:
    """Whether lines hold one token each, and empty ones end sentences."""
    filled = [line for line in lines if line]
    one_word = all(len(line.split()) == 1 and len(line) <= _LONGEST_TOKEN for line in filled)
    gaps = sum(1 for before, after in pairwise(lines) if before and not after)
    if not one_word or len(filled) < 2:
        return False
    is_unspaced = sum(is_unspaced_script(line) and len(line) > 4 for line in filled) > len(filled) / 2
    return not is_unspaced and (gaps == 0 or len(filled) > 2 * gaps)


def _is_tokenised(texts: Sequence[str]) -> bool:
    """Whether punctuation stands alone, as in text that was tokenised already."""
    sample = texts[:1000]
    alone = sum(len(_TOKENISED_MARK.findall(text)) for text in sample)
    glued = sum(len(_GLUED_MARK.findall(text)) for text in sample)
    return alone > 0 and alone >= 9 * glued


def _is_wrapped(texts: Sequence[str]) -> bool:
    """Whether text was wrapped at a margin: lines go on in the next line."""
    pairs = [(a, b) for a, b in pairwise(texts) if a and b]
    goes_on = sum(not _END_OF_SENTENCE.search(a) and b[0].islower() for a, b in pairs)
    return len(pairs) >= 3 and goes_on > _WRAPPED * len(pairs)


def _paragraphs(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Join the lines of each paragraph; a word that was divided at the end of a line stays divided."""
    parts: list[str] = []
    first = 0
    for number, text in (*lines, _Line(0, "")):
        if text:
            first = first or number
            parts.append(text)
        elif parts:
            yield _Line(first, " ".join(parts))
            parts, first = [], 0


def _sentence(text: str, tokenize: Tokenizer, id_: str) -> Sentence:
    """Tokenise a sentence; its white space is kept where the tokens are those of the text."""
    text = text.strip()
    tokens = tuple(tokenize(text))
    return Sentence(tokens, id=id_, spaces=align_spaces(tokens, text))
