"""The format of the i2b2/VA shared task of 2010: a text and a file of concepts for each document.

The text ``NAME.txt`` has a sentence in each line, with tokens separated by white space. The file ``NAME.con`` has a
mention in each line: ``c="chest pain" 12:3 12:4||t="problem"``, the words in lower case, the line and the first token,
the line and the last token, and the label; lines count from 1 and tokens from 0. Both files are in one folder, or as in
the corpus in neighbouring folders ``txt`` and ``concept``, or as its test documents in ``test_data``, and ``concepts``
in a folder beside it.

The id of a sentence is the name of its document and the number of its line, ``NAME:12``. Files hold tokens, flat and
nested mentions and nothing else. Augmented sentences are written to new documents, one for each document of the
sources, method and copy.

Uzuner et al. (2011), 2010 i2b2/VA Challenge on Concepts, Assertions, and Relations in Clinical Text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, LossError
from entaug.files.folders import write_documents
from entaug.files.streams import read_beginning
from entaug.formats.base import Dialect, FormatCapabilities, ReadReport
from entaug.formats.documents import DocumentFolder, checked_lines
from entaug.formats.text import DOCUMENT, group_by_document
from entaug.formats.token_records import unique_mentions

_CONCEPT = re.compile(r'c="(.*)" (\d{1,9}):(\d{1,9}) (\d{1,9}):(\d{1,9})\|\|t="([^"]+)"')
_BETWEEN = re.compile("[ \t]+")
_NOT_IN_TOKENS = re.compile("[ \t\r\n\0\ufeff\ud800-\udfff]")
_REMEDY = 'write c="words" LINE:FIRST LINE:LAST||t="label"'
_HEAD_SIZE = 1 << 12
_MAX_EMPTY_LINES = 1000  # before a sentence, to keep its line
_UNNAMED = "sentences"  # the document of sentences without one


class I2b2Dialect(Dialect):
    """The only layout of i2b2's files."""

    description = "i2b2 texts and concepts"


class I2b2(DocumentFolder):
    """The format of i2b2 (2010); see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "i2b2"
    title = "i2b2 concepts"
    extensions = (".con",)
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=False, spaces=False)
    dialect_class = I2b2Dialect

    def is_document(self, annotations: Path) -> bool:
        """Whether a file has a text, and is empty or begins with a mention."""
        lines = read_beginning(annotations, _HEAD_SIZE).decode("utf-8-sig", "replace").splitlines()
        return super().is_document(annotations) and all(_CONCEPT.fullmatch(line.strip()) for line in lines[:1])

    def texts_of(self, annotations: Path) -> list[Path]:
        name = annotations.with_suffix(".txt").name
        folder = _above(annotations.parent)
        return [annotations.with_name(name), folder / "txt" / name, _above(folder) / "test_data" / name]

    def read_document(
        self, name: str, annotations: Path, text: Path, dialect: I2b2Dialect, reading: ReadReport
    ) -> Iterator[Sentence]:
        name = re.sub(r"(^|/)concepts?/([^/]*)$", r"\1\2", name)
        lines = [[token for token in _BETWEEN.split(line) if token] for _, line in checked_lines(text, reading.notes)]
        mentions: defaultdict[int, dict[Mention, None]] = defaultdict(dict)
        for number, concept in checked_lines(annotations, reading.notes):
            if not concept.strip():
                continue
            try:
                line, mention = _parse_concept(concept.strip(), lines, reading)
                if mention is not None:
                    mentions[line] = unique_mentions([*mentions[line].items(), (mention, None)], reading)
            except InputError as error:
                error.locate(str(annotations), number)
                reading.fault(error)
        offset = 0
        for number, tokens in enumerate(lines, start=1):
            if tokens:
                yield Sentence(tokens, mentions[number], f"{name}:{number}").with_fields({DOCUMENT: [name, offset]})
            offset += sum(map(len, tokens)) + max(1, len(tokens))

    def check(self, sentence: Sentence, dialect: I2b2Dialect) -> None:
        self.check_contiguous(sentence)
        subject = f"sentence {sentence.key}"
        for token in sentence.tokens:
            if found := _NOT_IN_TOKENS.search(token):
                special = "a NUL character" if found[0] == "\0" else f"the character {found[0]!a}"
                held = "white space" if found[0].isspace() else special
                raise LossError(f"token {token!r} holds {held}", path=subject, remedy="write JSON lines")
        for mention in sentence.mentions:
            if re.search('["\r\n\0\ud800-\udfff]', mention.label):
                what = f"the label {mention.label!r} holds a quotation mark or a line end"
                raise LossError(what, path=subject, remedy="rename it, or write JSON lines")

    def lost(self, sentence: Sentence, dialect: I2b2Dialect) -> list[str]:
        lost = [name for name in super().lost(sentence, dialect) if name != f"field {DOCUMENT!r}"]
        return lost + ["id"] * (sentence.id is not None and _line_number(sentence) is None)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: I2b2Dialect) -> None:
        documents: defaultdict[str, list[Sentence]] = defaultdict(list)
        for group in group_by_document(sentences):
            documents[_document_name(group[0])] += group
        write_documents(((name, _document_files(group)) for name, group in documents.items()), path)


def _above(folder: Path) -> Path:
    """The folder above one that may be the working directory or above it."""
    return folder / ".." if folder.name in ("", "..") else folder.parent


def _parse_concept(text: str, lines: list[list[str]], reading: ReadReport) -> tuple[int, Mention | None]:
    """Parse a line of a file of concepts."""
    match = _CONCEPT.fullmatch(text)
    if match is None:
        raise InputError(f"{text[:80]!r} is no mention", remedy=_REMEDY)
    words, label = match[1], match[6]
    line, start, last_line, last = map(int, match.group(2, 3, 4, 5))
    if line != last_line:
        if reading.repair:
            reading.repaired["mention across a line end left out"] += 1
            return line, None
        what = f"the mention begins in line {line} and ends in line {last_line} of the text"
        raise InputError(what, remedy="correct it, or pass `repair=True` to leave it out")
    tokens = lines[line - 1] if 0 < line <= len(lines) else []
    if not start <= last < len(tokens):
        what = f"tokens {start} to {last} of line {line}, which has {len(tokens)}"
        raise InputError(what, remedy="check that the text is the right one")
    there = " ".join(tokens[start : last + 1])
    if there.lower().split() != words.lower().split():
        if not reading.repair:
            what = f"the mention says {words!r}, but at {line}:{start} the text has {there!r}"
            raise InputError(what, remedy="correct it, or pass `repair=True` to take the text")
        reading.repaired["words of a mention replaced by those of the text"] += 1
    return line, Mention(label, ((start, last + 1),))


# ------------------------------------------------------------------------------------------------------------- writing


def _document_name(sentence: Sentence) -> str:
    """Return the name of the document of a sentence; for an augmented one with its method and copy."""
    document = sentence.fields.get(DOCUMENT)
    name = document[0] if isinstance(document, list) and document and isinstance(document[0], str) else _UNNAMED
    provenance = sentence.provenance
    return name if provenance is None else f"{name}+{provenance.method}-{provenance.copy}"


def _line_number(sentence: Sentence) -> int | None:
    """Return the line of a sentence in its document, if its id is one of this format."""
    name, _, line = (sentence.id or "").rpartition(":")
    is_regular = re.fullmatch("[1-9][0-9]{0,8}", line) and sentence.provenance is None
    return int(line) if is_regular and name == _document_name(sentence) else None


def _document_files(sentences: Iterable[Sentence]) -> dict[str, str]:
    """Return the contents of the files of a document by extension."""
    texts: list[str] = []
    concepts: list[str] = []
    for sentence in sentences:
        empty = (_line_number(sentence) or 0) - len(texts) - 1
        if 0 < empty <= _MAX_EMPTY_LINES:
            texts += [""] * empty
        texts.append(" ".join(sentence.tokens))
        number = len(texts)
        for mention in sentence.mentions:
            words = " ".join(sentence.mention_tokens(mention)).lower()
            place = f"{number}:{mention.start} {number}:{mention.end - 1}"
            concepts.append(f'c="{words}" {place}||t="{mention.label}"')
    return {".txt": "".join(f"{text}\n" for text in texts), ".con": "".join(f"{line}\n" for line in concepts)}
