"""Unlabelled text for self-training: read, tokenised as the corpus, compared with held-out sentences."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

from entaug.core.alignment import CorpusTokenizer, align_spaces, detokenize
from entaug.core.corpus import UnlabelledText
from entaug.core.data import Sentence
from entaug.core.languages import LanguageProfile, language_name
from entaug.core.spacing import PRINTED_FORMS, is_unspaced_script, joined
from entaug.core.words import folded
from entaug.errors import EntaugError, InputError, MissingExtraError, ParameterError, escape_control_characters
from entaug.files.folders import natural_sort_key, walk_files
from entaug.files.streams import STDIN, as_path, check_characters, read_beginning, read_line_chunks, rereadable_path
from entaug.formats.base import NO_LABELS, NO_MENTION, ReadReport, note_lines, warn_of_notes
from entaug.formats.files import find_format, open_file, read_each
from entaug.formats.records import as_object, given_records, parse_json, peek_records
from entaug.formats.text import Document, SegmentationOptions, split_document
from entaug.formats.token_records import RESERVED

_SAMPLE = 300  # sentences by which text and corpus are compared
_COMMON_WORDS = 50  # the most frequent words of the corpus, most of them function words
_MIN_COMMON = 0.5  # share of the common words, relative to that in the corpus, below which the language is in doubt
_MIN_SCRIPT = 0.8  # share of letters in the script of the corpus
_SHOWN_FIELDS = 5  # in a note
_EXPECTED_FIELDS = {"id", "text", "tokenized_text", *RESERVED}  # of an object: those that are read, and labels
_MIN_WORDS = 100  # fewer words do not show the language


def read_unlabelled(
    paths: Iterable[str | Path],
    gold: Sequence[Sentence],
    *,
    held_out: Iterable[str | Path] = (),
    drop_held_out: bool = False,
    language: str | None = None,
) -> UnlabelledText:
    """Read unlabelled text for `entaug.methods.SelfTraining`.

    Files are plain text (one sentence a line, or running text), folders of it, one token a line, JSON lines with
    ``text`` or ``tokens``, or files in any labelled format, whose labels are dropped. Running text is split into
    sentences, and tokenised as the corpus is. Duplicates, and sentences of the corpus, are left out.

    Args:
        paths: the files and folders.
        gold: the training sentences.
        held_out: dev and test files, in any labelled format. The text must share no sentence with them.
        drop_held_out: leave such sentences out instead of raising an error.
        language: the language of running text, by whose rules spaCy finds the ends of sentences; None for that of the
            corpus, see `running_text_language`.

    Returns:
        The sentences, with notes on what was left out and on how the text differs from the corpus.

    Raises:
        ParameterError: no file is given.
        InputError: a file cannot be read, is a held-out file, shares sentences with one, or has no sentence besides
            those of the corpus.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp(), "news.txt")
        >>> _ = file.write_text("Ada sang in Rome, but nobody came. Ada left.")
        >>> text = read_unlabelled([file], [Sentence("Ada left .".split())])
        >>> [" ".join(sentence.tokens) for sentence in text]
        ['Ada sang in Rome , but nobody came .']
        >>> text.notes
        ('plain text was read as running text', '1 sentence of the unlabelled text is a training sentence')
    """
    files = [as_path(path) for path in paths]
    if not files:
        raise ParameterError("no unlabelled file is given", remedy="name one with `unlabelled`")
    others = [as_path(path) for path in held_out]
    for file, other in product(files, others):
        if str(file) != STDIN and file.exists() and other.exists() and file.samefile(other):
            remedy = "dev and test sentences must not be used; name another text"
            raise InputError("is also a held-out file", path=str(file), remedy=remedy)
    language = language or running_text_language(gold)
    tokenize = corpus_tokenizer(gold, language)
    sentences: list[Sentence] = []
    reading = UnlabelledReading()
    for file in files:
        with rereadable_path(file) as path:
            sentences += read_unlabelled_file(path, tokenize, language, reading)
    sentences = list(with_distinct_ids(sentences))
    source = ", ".join(map(str, files))
    notes = reading.layout_notes()
    known = {_content(sentence) for sentence in gold}
    distinct = {_content(sentence): sentence for sentence in reversed(sentences)}
    new = {content: sentence for content, sentence in reversed(distinct.items()) if content not in known}
    _note(notes, len(sentences) - len(distinct), "is a duplicate", "are duplicates")
    _note(notes, len(distinct) - len(new), "is a training sentence", "are training sentences")
    new = _without_held_out(new, others, notes, drop=drop_held_out)
    if not new:
        remedy = "name another text"
        raise InputError("every sentence is a training sentence or a held-out one", path=source, remedy=remedy)
    kept = list(new.values())
    return UnlabelledText(kept, source, [*notes, *_differences(kept, gold)])


@dataclass
class UnlabelledReading:
    """Layouts of plain text that were found while reading, and further fields, which are dropped."""

    layouts: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)

    def layout_notes(self) -> list[str]:
        """Tell the user how plain text was read, because its layout is detected."""
        if not self.layouts:
            return []
        shown = list(self.layouts)
        if len(shown) > 1:
            shown = [f"{layout} ({n:,} {'file' if n == 1 else 'files'})" for layout, n in self.layouts.items()]
        return [f"plain text was read as {', '.join(shown)}"]

    def field_notes(self) -> list[str]:
        """Tell the user which fields of the text are not written."""
        if not self.fields:
            return []
        first = [repr(name) for name, _ in self.fields.most_common(_SHOWN_FIELDS)]
        more = f" and {len(self.fields) - len(first)} more" if len(self.fields) > len(first) else ""
        return [f"ids and words were read, not the fields {', '.join(first)}{more}: join them by the ids"]


def _note(notes: list[str], count: int, one: str, several: str) -> None:
    if count:
        what = f"sentence of the unlabelled text {one}" if count == 1 else f"sentences of the unlabelled text {several}"
        notes.append(f"{count:,} {what}")


def _content(sentence: Sentence) -> str:
    """The characters of a sentence, by which it is found whatever its tokens and casing."""
    return folded("".join(PRINTED_FORMS.get(token, token) for token in sentence.tokens))


# ------------------------------------------------------------------------------------------------------------- held out


def _without_held_out(
    new: dict[str, Sentence], held_out: Sequence[Path], notes: list[str], *, drop: bool
) -> dict[str, Sentence]:
    for path, corpus in zip(held_out, read_each(held_out, beside=True, repair=True), strict=True):
        shared = dict.fromkeys(content for content in map(_content, corpus) if content in new)
        if shared and not drop:
            example = joined(new[next(iter(shared))].tokens)[:60]
            count = f"{len(shared):,} sentences" if len(shared) > 1 else "1 sentence"
            raise InputError(
                f"{count} of the unlabelled text {'stand' if len(shared) > 1 else 'stands'} in this held-out file too, "
                f"one is {example!r}",
                path=str(path),
                remedy="remove them from the text, or pass `drop_held_out=True` to leave them out",
            )
        _note(notes, len(shared), f"is in {path.name} and left out", f"are in {path.name} and left out")
        new = {content: sentence for content, sentence in new.items() if content not in shared}
    return new


# --------------------------------------------------------------------------------------------------------- tokenisation


def running_text_language(gold: Sequence[Sentence]) -> str:
    """Return the language of a corpus, which running text of the same kind is taken to be in."""
    profile = LanguageProfile(gold)
    # Rules may be missing, or the library that they need, as for Korean; those for Chinese take each character.
    for language in (profile.language, "zh" if profile.script == "HAN" else None):
        with contextlib.suppress(ParameterError, MissingExtraError):
            if language is not None:
                split_document(Document("a"), SegmentationOptions(language=language), ReadReport())
                return language
    return "en"


def corpus_tokenizer(gold: Sequence[Sentence], language: str) -> Tokenizer:
    """Choose the tokeniser that gives most sentences of a corpus their own tokens again."""

    def by_spacy(text: str) -> Sequence[str]:
        [sentence] = split_document(Document(text), SegmentationOptions(language=language), ReadReport())
        return sentence.tokens

    if not gold:
        return by_spacy
    sample = gold[:: max(1, len(gold) // _SAMPLE)][:_SAMPLE]
    learned = CorpusTokenizer(sentence.tokens for sentence in gold)
    candidates: list[Tokenizer] = [learned, by_spacy]
    return max(candidates, key=lambda tokenize: sum(_is_reproduced(sentence, tokenize) for sentence in sample))


def _is_reproduced(sentence: Sentence, tokenize: Tokenizer) -> bool:
    wanted = tuple(PRINTED_FORMS.get(token, token) for token in sentence.tokens)
    text = detokenize(sentence.tokens, sentence.spaces)
    return bool(text) and tuple(tokenize(text)) == wanted


# ---------------------------------------------------------------------------------------------------------- differences


def _differences(text: Sequence[Sentence], gold: Sequence[Sentence]) -> list[str]:
    """Return warnings about differences between text and corpus, by measures that need no model."""
    sample = text[:: max(1, len(text) // _SAMPLE)][:_SAMPLE]
    length, usual = _length_without_spaces(sample), _length_without_spaces(gold)
    if length > _MUCH_LONGER * usual > 0:  # words would be told as those of another language
        what = f"tokens of a script without spaces have {length:.1f} characters there, and {usual:.1f} in the corpus"
        return [f"{what}: divide the text into words as the corpus is, with a space after each"]
    ours, theirs = LanguageProfile(gold), LanguageProfile(sample)
    if min(ours.num_words, theirs.num_words) < _MIN_WORDS:
        return []
    script = ours.script
    usual, share = ours.script_share([script]), theirs.script_share([script])
    if script and share < _MIN_SCRIPT * usual:
        what = f"only {share:.0%} of the letters of the unlabelled text are {script.title()}"
        return [f"{what}, the script of {usual:.0%} of those of the corpus: is it in another language?"]
    common = {word for word, _ in ours.words.most_common(_COMMON_WORDS)}
    known, other_known = ours.share(common), theirs.share(common)
    if other_known >= _MIN_COMMON * known:
        return []
    question = "is it in another language or of another kind?"
    if ours.language and theirs.language and theirs.mismatch([ours.language]):
        names = (language_name(theirs.language), language_name(ours.language))
        question = "it seems to be in another language: {}, and the corpus in {}".format(*names)
    what = f"the {len(common)} most frequent words of the corpus are {known:.0%} of its words"
    return [f"{what}, but {other_known:.0%} of the unlabelled text: {question}"]


def _length_without_spaces(sentences: Sequence[Sentence]) -> float:
    """The mean length of tokens of scripts without spaces between words; 0 where there are few."""
    tokens = (token for sentence in sentences for token in sentence.tokens)
    lengths = [len(token) for token in tokens if is_unspaced_script(token) or _FROM_THAI_TO_KHMER.match(token)]
    return sum(lengths) / len(lengths) if len(lengths) >= _FEW_TOKENS else 0


Tokenizer = Callable[[str], Sequence[str]]
"""Splits a text without line ends into tokens."""

_OF_LABELS = ("mention ", "tag ", "tags ", "type ", "spans ")
"""Beginnings of notes on labels, which no text is read with."""
_TEXT_SUFFIXES = (".txt", ".text", ".md")
_NO_TEXT = (".csv", ".html", ".htm", ".xml")
_JSON_SUFFIXES = (".jsonl", ".json", ".ndjson")
_FROM_THAI_TO_KHMER = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")  # Lao and Burmese among them
_MUCH_LONGER = 2
_FEW_TOKENS = 5
_END_OF_SENTENCE = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")  # noqa: RUF001
# After a mark and the quotation mark or bracket that closes with it, unless a particle of Japanese follows.
_AFTER_UNSPACED = re.compile(r"(?<=[。！？])(?![。！？”’」』）])|(?<=[。！？][”’」』）])(?![\u3041-\u3096])")  # noqa: RUF001
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
    path: Path, tokenize: Tokenizer, language: str = "en", reading: UnlabelledReading | None = None
) -> Iterator[Sentence]:
    """Read the sentences of a file or folder; labels are dropped."""
    options = SegmentationOptions(language=language, split="sentences")
    reader = _Reader(tokenize, options, reading or UnlabelledReading())
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

    def __init__(self, tokenize: Tokenizer, options: SegmentationOptions, reading: UnlabelledReading) -> None:
        self._tokenize = tokenize
        self._options = options
        self._reading = reading

    def read_folder(self, path: Path) -> Iterator[Sentence]:
        """Read a folder of texts, or one in a labelled format."""
        files = [(name, file) for name, file in walk_files(path) if file.suffix.lower() in _TEXT_SUFFIXES]
        if not files or any(file.with_suffix(".ann").exists() for _, file in files):
            return self._read_labelled(path)  # raises an error that names the formats if it has none of them
        ordered = sorted(files, key=lambda pair: natural_sort_key(pair[0]))
        return _not_empty(
            (s for name, file in ordered for s in self._read_text(file, escape_control_characters(name))), path
        )

    def read_file(self, path: Path) -> Iterator[Sentence]:
        """Read a file in the way that its extension and its content suggest."""
        suffix = next((s.lower() for s in reversed(path.suffixes) if s.lower() != ".gz"), "")
        if suffix in _JSON_SUFFIXES or (not suffix and read_beginning(path, 256).lstrip()[:1] == b"{"):
            records, is_array = peek_records(path, 1)
            fields = _fields(records[0]) if records else None
            if is_array and (type(fields) is not dict or {"text", "tokens"}.isdisjoint(fields)):
                return self._read_labelled(path)
            return self._read_json(path)
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
                yield from _token_rows(list(_lines(path)), path)
            else:
                yield from self._read_text(path, escape_control_characters(path.name))
            return
        yield from self._read_labelled(path)

    def _read_labelled(self, path: Path) -> Iterator[Sentence]:
        """Read a file in a labelled format, without its labels."""
        reading = ReadReport(repair=True)
        for number, sentence in enumerate(open_file(path).sentences(reading), start=1):
            self._reading.fields.update(sentence.meta.keys())
            yield Sentence(
                sentence.tokens,
                id=sentence.id or f"{escape_control_characters(path.name)}:{number}",
                spaces=sentence.spaces,
            )
        of_labels = (NO_LABELS, NO_MENTION, *_OF_LABELS)
        kept = {note: count for note, count in reading.notes.items() if not note.startswith(of_labels)}
        warn_of_notes(note_lines(kept), str(path))

    # ------------------------------------------------------------------------------------------------------ plain text

    def _read_text(self, path: Path, name: str) -> Iterator[Sentence]:
        if _has_tags(path):
            yield from self._read_labelled(path)
            return
        lines = list(_lines(path))
        if _are_tokens([line.text for line in lines]):
            self._reading.layouts["one token a line"] += 1
            yield from _token_rows(lines, path)
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
        self._reading.layouts["one tokenised sentence a line" if is_tokenised else layout] += 1
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
        for part in _AFTER_UNSPACED.split(text):
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

    def _read_json(self, path: Path) -> Iterator[Sentence]:
        """Read `tokens` or `text` of each object, or in its `data`; further fields, labels too, are ignored."""
        name = escape_control_characters(path.name)
        for number, given in given_records(path):
            try:
                record = parse_json(given) if type(given) is str else given
                yield from self._read_record(_fields(record), number, name)
            except InputError as error:
                error.locate(str(path), number if type(given) is str else None)
                raise

    def _read_record(self, given: Any, number: int, name: str) -> Iterator[Sentence]:
        remedy = 'write {"text": "..."} or {"tokens": [...]} on each line'
        record = as_object(given, remedy)
        self._reading.fields.update(record.keys() - _EXPECTED_FIELDS)
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


def _fields(record: Any) -> Any:
    """The fields of an object with tokens or text: of a task of Label Studio those in `data`, and its id."""
    if type(record) is dict and type(record.get("data")) is dict:
        return {"id": record.get("id"), **record["data"]}
    return record


# ----------------------------------------------------------------------------------------------------------------- rows


def _token_rows(lines: Sequence[_Line], path: Path) -> Iterator[Sentence]:
    """Read one token a line; of several columns the first, or the second where the first numbers the tokens."""
    name = escape_control_characters(path.name)
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
            if not tokens[-1]:
                raise InputError(f"no token in column {column + 1}", path=str(path), line=number, remedy="correct it")
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
    is_unspaced = sum(any(map(is_unspaced_script, line[:9])) and len(line) > 4 for line in filled) > len(filled) / 2
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
