"""spaCy's JSON: documents as ``doc.to_json()`` returns them, tuples for training loops, the training files of spaCy 2.

``docs``
    The output of ``doc.to_json()``: an object with ``text``, ``tokens`` with character offsets, ``ents``, ``spans``.
``tuples``
    ``[text, {"entities": [[start, end, label]]}]``, the input of training loops; ``words`` and ``spaces`` may give the
    tokens.
``training``
    The training files of spaCy 2: an object with ``paragraphs`` of ``sentences`` of ``tokens``, mentions as BILUO tags.

A file is an array, or has one record per line; this and the form of the records are detected. In training files, fields
of a document or a paragraph are kept with its first sentence. Sentences of one document are written as one document
again; an augmented sentence becomes a separate document.
"""

# spaCy's own converter, `spacy.training.converters.json_to_docs`, creates one document per paragraph, and loses ids and
# fields of sentences, so it is not used here.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

from entaug.core.alignment import align_spaces
from entaug.core.data import Sentence
from entaug.core.mentions import Mention, Span
from entaug.core.spacing import infer_spaces
from entaug.core.tags import SchemeDetector, encode_canonical
from entaug.errors import InputError, LossError
from entaug.files.streams import read_beginning
from entaug.formats.base import BEFORE, ENTITY_FIELDS, NO_LABELS, ReadReport
from entaug.formats.records import (
    numbered_lines,
    parse_json,
    peek_records,
    read_array,
    read_records,
    to_json,
    write_array,
)
from entaug.formats.spacy_base import (
    COLUMNS,
    SpacyDialect,
    SpacyFormat,
    Tokens,
    WordMention,
    Words,
    create_sentence,
    has_stale_tree,
    token_columns,
    tokens_of,
    words_of,
)
from entaug.formats.text import (
    DOCUMENT,
    CharMention,
    Document,
    OffsetOptions,
    UnitDetector,
    counter,
    group_by_document,
    in_characters,
    join_sentences,
    locate_tokens,
    split_document,
)
from entaug.formats.token_records import decode_tags, pop_columns, pop_id, without

_OF_WORDS = frozenset(("tags", "pos", "lemmas", "morphs", "deps", "heads", "sent_starts", "ids", "brackets", "links"))
_ANNOTATIONS = _OF_WORDS | {"cats", "spans"}
"""Names that spaCy accepts in tuples in addition to ``entities``; it raises an error for any other name."""
_PARAGRAPH = "_paragraph"
"""Field of a sentence that is one of several of a document: the id of the document, and the number of its paragraph."""
_DERIVED = ("raw", "sentences", "entities")  # fields of a paragraph that its sentences give
_REMEDY = "write it as spaCy does"
_HEAD_SIZE = 1 << 21  # bytes in which the first record must end to be recognised


@dataclass(frozen=True)
class SpacyJsonDialect(SpacyDialect, OffsetOptions):
    """Layout of a JSON file of spaCy.

    Args:
        form: the form of the records: see `entaug.formats.spacy_json`.
        lines: whether each line is a record; otherwise the file is an array. The default depends on the extension.
        words: whether tuples give the tokens; otherwise texts are tokenized by spaCy's rules.
        fields: whether tuples hold fields that spaCy does not know, on which ``Example.from_dict`` fails.
        scheme: the scheme of the tags of training files.
        split_name: the part to read of a file with several, ``{"train": [...], "dev": [...]}``.
    """

    form: Literal["docs", "tuples", "training"] = "docs"
    lines: bool | None = None
    words: bool = True
    fields: bool = False
    scheme: str = "BILOU"
    split_name: str | None = None

    @property
    def group(self) -> str | None:
        """The group of spans that holds the mentions; None for entities or tags."""
        return None if self.form == "training" else super().group

    def describe(self) -> str:
        """Return a description of the layout."""
        form = {"docs": "as of doc.to_json()", "tuples": "training tuples", "training": "training file of spaCy 2"}
        where = f"in {self.describe_mentions('ents', f'spans {self.spans_key!r}')}"
        if self.form == "training":
            where = f"as {self.scheme} tags"
        return f"spaCy JSON{' lines' * bool(self.lines)}, {form[self.form]}, mentions {where}{self.offsets_text}"


class SpacyJson(SpacyFormat):
    """spaCy's JSON; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "spacy-json"
    title = "spaCy JSON"
    extensions = (".json", ".jsonl")
    dialect_class = SpacyJsonDialect

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`: whether the first record is one of spaCy's."""
        return any(map(_form_of, peek_records(path, 1, (_HEAD_SIZE,))[0]))

    def detect(self, path: Path, dialect: SpacyJsonDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `entaug.formats.base.BaseFormat.detect`: lines, form, tokens, and the location of mentions."""
        groups: set[str] = set()
        forms: Counter[str] = Counter()
        evidence = SchemeDetector()
        units = UnitDetector()
        has_entities = has_words = has_unknown = False
        is_lines = _is_lines(path)
        for record in _sample(path, is_lines, dialect.split_name):
            form = _form_of(record)
            if form is None:
                continue
            forms[form] += 1
            if form == "training":
                for paragraph in record["paragraphs"]:
                    _add_tags(paragraph["sentences"], evidence)
                continue
            text, fields = (record["text"], record) if form == "docs" else record
            units.add(text, _ranges(fields), _token_spans(text, record["tokens"] if form == "docs" else fields))
            has_entities = has_entities or bool(fields.get("ents" if form == "docs" else "entities"))
            spans = fields.get("spans")
            groups.update(name for name, values in (spans.items() if isinstance(spans, dict) else ()) if values)
            has_words = has_words or form == "docs" or "words" in fields
            has_unknown = has_unknown or (form == "tuples" and _has_unknown_fields(fields))
        detected: dict[str, Any] = {"lines": is_lines} | (units.decide() if dialect.offsets == "auto" else {})
        if forms:
            form = max(("docs", "tuples", "training"), key=forms.__getitem__)
            detected |= {"form": form, "words": has_words, "fields": has_unknown}
        if evidence.has_mentions:
            detected["scheme"] = evidence.scheme()
        return detected | self.detect_mentions(path, groups, has_entities, dialect, options)

    def sentences(self, path: Path, dialect: SpacyJsonDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat`."""

        def parse(number: int, record: Any) -> Iterable[Sentence]:
            sentences = list(_parse(parse_json(record) if is_lines else record, number, dialect, reading))
            reading.notes.update(["text without words left out"] * (not sentences))
            return sentences

        is_lines = _is_lines(path)
        dialect.note_offsets(reading)
        if is_lines:
            return read_records(path, numbered_lines(path, notes=reading.notes), parse, reading)
        array = read_array(path, _is_record, split_name=dialect.split_name)
        return read_records(path, array, parse, reading, unit="record")

    def as_stored(self, sentence: Sentence, dialect: SpacyJsonDialect) -> Sentence:
        """See `BaseFormat.as_stored`: the mentions that are kept; tokenized again if tuples hold no words."""
        sentence = super().as_stored(sentence, dialect)
        if dialect.form != "tuples" or dialect.words:
            return sentence
        try:
            found = split_document(join_sentences([sentence])._replace(tokens=None), dialect, ReadReport())
        except InputError as error:
            remedy = "write words, which give the tokens, or pass --misaligned cut"
            raise LossError(error.message, path=f"sentence {sentence.key}", remedy=remedy) from None
        if len(found) != 1:
            return sentence
        return found[0].with_(id=sentence.id).with_fields(sentence.fields)

    def check(self, sentence: Sentence, dialect: SpacyJsonDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.check`."""
        path = f"sentence {sentence.key}"
        super().check(sentence, replace(dialect, mentions="ents") if dialect.form == "training" else dialect)
        has_space_token = any(map(str.isspace, sentence.tokens))
        if has_space_token and (dialect.form != "training" or sentence.spaces is not None):
            raise LossError("a token of white space alone, which spaCy takes for space", path=path, remedy="remove it")
        try:
            "".join([*sentence.tokens, *(mention.label for mention in sentence.mentions)]).encode()
        except UnicodeEncodeError as error:
            raise LossError(f"cannot be written ({error})", path=path) from None

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: SpacyJsonDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat`; each record is a line."""
        kept, dialect = self.resolve(sentences, dialect)
        records: Iterable[Any]
        if dialect.form == "docs":
            records = (_to_doc(sentence, dialect) for sentence in kept)
        elif dialect.form == "tuples":
            records = (_to_tuple(group, dialect) for group in group_by_document(kept))
        else:
            records = _to_training(kept, dialect.scheme)
        dumped = (to_json(record, str(number)) for number, record in enumerate(records, start=1))
        has_line_name = path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
        if has_line_name if dialect.lines is None else dialect.lines:
            write_array(path, dumped, start=b"", separator=b"\n", end=b"\n")
        else:
            write_array(path, dumped)

    def lost(self, sentence: Sentence, dialect: SpacyJsonDialect) -> list[str]:
        """See `entaug.formats.base.BaseFormat.lost`: trees of augmented sentences, and content that tuples lack."""
        lost = ["trees of augmented sentences"] * has_stale_tree(sentence)
        if dialect.form == "tuples":
            lost += ["columns"] * bool(sentence.columns) + ["ids"] * (sentence.id is not None)
            if not dialect.fields:
                lost += ["provenance"] * (sentence.provenance is not None)
                lost += ["fields"] * _has_unknown_fields(sentence.fields.keys() - {"entaug"})
        return lost


# ----------------------------------------------------------------------------------------------------------- detection


def _has_unknown_fields(fields: Iterable[str]) -> bool:
    """Whether spaCy fails on one of the fields of a tuple."""
    known = {"entities", "words", "spaces", BEFORE, DOCUMENT, ENTITY_FIELDS}
    return not (_ANNOTATIONS | known).issuperset(fields)


def _form_of(record: Any) -> str | None:
    """The form of a record; None if it is not one of spaCy's."""
    if isinstance(record, list):
        is_pair = len(record) == 2 and isinstance(record[0], str) and isinstance(record[1], dict)
        return "tuples" if is_pair and record[1].keys() & {"entities", "spans", "cats", "words"} else None
    if not isinstance(record, dict):
        return None
    paragraphs, tokens = record.get("paragraphs"), record.get("tokens")
    if isinstance(paragraphs, list) and all(isinstance(one, dict) and "sentences" in one for one in paragraphs):
        return "training"
    # Records of Prodigy also have text and tokens, but their tokens hold texts, and their spans are a list.
    if not isinstance(record.get("text"), str) or not isinstance(tokens, list) or isinstance(record.get("spans"), list):
        return None
    first = tokens[:2]
    has_offsets = all(isinstance(t, dict) and {"start", "end"} <= t.keys() and "text" not in t for t in first)
    is_numbered = bool(first) and has_offsets and all(token.get("id") == i for i, token in enumerate(first))
    return "docs" if has_offsets and (record.keys() & {"ents", "spans", "sents"} or is_numbered) else None


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) or _form_of(value) is not None


def _is_lines(path: Path) -> bool:
    """Whether each line is a record, judged by the first line."""
    head = read_beginning(path, _HEAD_SIZE).decode("utf-8-sig", "replace").lstrip()
    try:
        return _form_of(parse_json(head.partition("\n")[0], exact=False)) is not None
    except InputError:
        return False


def _sample(path: Path, is_lines: bool, split_name: str | None) -> Iterator[Any]:
    """The records to detect a dialect from: all, or only the first of training files, which are uniform."""
    first = peek_records(path, 1 << 20, (_HEAD_SIZE,))[0]
    if first and _form_of(first[0]) == "training":
        yield from first
    elif is_lines:
        for _, line in numbered_lines(path):
            try:
                yield parse_json(line, exact=False)
            except InputError:
                continue
    else:
        yield from (record for _, record in read_array(path, _is_record, exact=False, split_name=split_name))


def _ranges(fields: Mapping[str, Any]) -> Iterator[tuple[Any, Any, None]]:
    """The ranges of the mentions of a record; those of tags have none."""
    groups = fields.get("spans")
    lists = [fields.get("ents"), fields.get("entities"), *(groups.values() if isinstance(groups, dict) else ())]
    for value in (value for values in lists if isinstance(values, list) for value in values):
        if isinstance(value, dict):
            yield value.get("start"), value.get("end"), None
        elif isinstance(value, list) and len(value) >= 3:
            yield value[0], value[1], None


def _token_spans(text: str, given: Any) -> list[Span] | None:
    """The characters of the tokens of a document, or those of the words of a tuple; None where there are none."""
    if isinstance(given, list):
        spans = [(token.get("start"), token.get("end")) for token in given if isinstance(token, dict)]
        return [(start, end) for start, end in spans if type(start) is int and type(end) is int]
    words = given.get("words")
    are_words = isinstance(words, list) and all(isinstance(word, str) and word for word in words)
    return locate_tokens([word for word in words if not word.isspace()], text) if are_words else None


def _add_tags(sentences: Any, evidence: SchemeDetector) -> None:
    for sentence in sentences if isinstance(sentences, list) else ():
        words = sentence.get("tokens") if isinstance(sentence, dict) else None
        tags = [word.get("ner") for word in words if isinstance(word, dict)] if isinstance(words, list) else []
        evidence.update(tag if isinstance(tag, str) and tag != "-" else "O" for tag in tags)


# --------------------------------------------------------------------------------------- reading documents and tuples


def _parse(record: Any, number: int, dialect: SpacyJsonDialect, reading: ReadReport) -> Iterable[Sentence]:
    """The sentences of a record."""
    match _form_of(record):
        case "training":
            return _parse_training(record, dialect.scheme, reading)
        case "tuples":
            return _parse_tuple(record, number, dialect, reading)
        case "docs":
            return _parse_doc(record, dialect, reading)
    what = "neither [text, {...}], nor an object of doc.to_json(), nor one with paragraphs"
    raise InputError(what, remedy=_REMEDY)


class _PlacedWords(NamedTuple):
    """Words with flags for the spaces after them, and the characters of each in a text."""

    words: list[str]
    flags: list[bool]
    offsets: list[tuple[int, int]]


def _place(text: str, words: Sequence[Any], flags: Sequence[Any]) -> _PlacedWords | None:
    """Locate words in their text; None if they do not match it."""
    if len(words) != len(flags) or not (set(map(type, words)) <= {str} and all(words)):
        return None
    as_words = Words(words, list(map(bool, flags)), (), (), {}, {})
    return _PlacedWords(list(words), list(map(bool, flags)), as_words.offsets) if as_words.text == text else None


def _char_mentions(values: Any, name: str) -> list[CharMention]:
    """Mentions from lists ``[start, end, label]`` or objects with these names."""
    if values is None:
        return []
    if not isinstance(values, list):
        raise InputError(f"{name!r} is not a list", remedy=_REMEDY)
    mentions = []
    for value in values:
        if isinstance(value, dict):
            start, end, label = (value.get(key) for key in ("start", "end", "label"))
            fields = without(value, ("start", "end", "label", *(("kb_id",) if value.get("kb_id") == "" else ())))
        elif isinstance(value, list) and len(value) in (3, 4):
            start, end, label = value[:3]
            fields = {"kb_id": value[3]} if len(value) == 4 and value[3] else {}
        else:
            raise InputError(f"a mention in {name!r} must be [start, end, label], not {value!r:.60}", remedy=_REMEDY)
        if type(start) is not int or type(end) is not int or type(label) is not str or not label:
            what = f"a mention in {name!r} needs two integers and a label, not {start!r}, {end!r}, {label!r}"
            raise InputError(what[:200], remedy=_REMEDY)
        mentions.append(CharMention(label, ((start, end),), fields))
    return mentions


def _select_mentions(
    entities: list[CharMention], has_ents: bool, fields: dict[str, Any], dialect: SpacyJsonDialect, reading: ReadReport
) -> list[CharMention]:
    """The mentions of the dialect's group, which is taken from the fields, or the entities."""
    groups = {} if fields.get("spans") is None else fields["spans"]
    if not isinstance(groups, dict):
        raise InputError("'spans' is not an object of groups", remedy=_REMEDY)
    mentions = entities
    if dialect.group is None:
        reading.notes.update([NO_LABELS] * (not has_ents))
    else:
        if dialect.group not in groups:
            others = sorted(name for name, spans in groups.items() if spans)
            listed = f"its other groups are not read: {', '.join(others)}"
            what = f"text without the span group {dialect.group!r}; {listed}" if others else NO_LABELS
            reading.notes[what] += 1
        mentions = _char_mentions(groups.get(dialect.group), dialect.group)
        groups = without(groups, (dialect.group,))
        if left_out := {entity[:2] for entity in entities} - {mention[:2] for mention in mentions}:
            reading.notes[f"entities that are not in the spans {dialect.group!r} left out"] += len(left_out)
    fields.pop("spans", None)
    if groups:
        fields["spans"] = groups
    return mentions


def _create(
    text: Document,
    words: _PlacedWords | None,
    columns: Mapping[str, Sequence[str]],
    dialect: SpacyJsonDialect,
    reading: ReadReport,
) -> Iterable[Sentence]:
    """The sentence of a text with known words; a text without words, or with a given split, is segmented."""
    if words is None:
        return split_document(text, dialect, reading)
    as_text = text._replace(tokens=[word for word in words.words if not word.isspace()])
    if dialect.split != "none":
        return split_document(as_text, dialect, reading)
    tokens = tokens_of(words.words, words.flags)
    if not tokens.tokens:
        return ()
    starts = {start: i for i, (start, _) in enumerate(words.offsets)}
    ends = {end: i for i, (_, end) in enumerate(words.offsets, start=1)}
    mentions = []
    for mention in text.mentions:
        [(start, end)] = mention.spans
        first, last = starts.get(start), ends.get(end)
        if first is None or last is None or first >= last or tokens.counts[first] == tokens.counts[last]:
            return split_document(as_text, dialect, reading)  # within a word, outside, or white space
        mentions.append(WordMention(first, last, mention.label, mention.fields))
    return (create_sentence(tokens, mentions, token_columns(columns, tokens), dict(text.fields), text.id, reading),)


def _parse_tuple(record: Any, number: int, dialect: SpacyJsonDialect, reading: ReadReport) -> Iterable[Sentence]:
    text, fields = record[0], dict(record[1])
    entities, words, flags = (fields.pop(name, None) for name in ("entities", "words", "spaces"))
    placed = tokens = None
    unit: str = dialect.offsets
    if isinstance(words, list) and all(type(word) is str and word for word in words):
        if flags is None:
            flags = [space == " " for space in align_spaces(words, text) or ()]
        placed = _place(text, words, flags) if isinstance(flags, list) else None
        tokens = [word for word in words if not word.isspace()]
        if placed is None and align_spaces(tokens, text.lstrip()) is None:
            reading.notes["words that are not those of their text, which was tokenised anew"] += 1
    if isinstance(entities, list) and entities and all(tag is None or isinstance(tag, str) for tag in entities):
        if placed is None or len(entities) != len(placed.words):
            raise InputError("tags as 'entities', but not one for each of 'words'", remedy=_REMEDY)
        mentions = [
            CharMention(m.label, ((placed.offsets[m.start][0], placed.offsets[m.end - 1][1]),))
            for m in _mentions_of_tags(entities, "BILOU", reading)
        ]
        unit = "characters" if dialect.group is None else unit
    else:
        mentions = _char_mentions(entities, "entities")
    mentions = _select_mentions(mentions, entities is not None, fields, dialect, reading)
    # Tuples have no ids, but the sentences of a segmented text need one to distinguish them from other texts.
    id_ = None if dialect.split == "none" else str(number)
    document = in_characters(Document(text, mentions, id_, fields, tokens), unit)
    return _create(document, placed, {}, dialect, reading)


def _parse_doc(record: Any, dialect: SpacyJsonDialect, reading: ReadReport) -> Iterator[Sentence]:
    fields = without(record, ("text", "tokens", "ents", "sents"))
    text, words = record["text"], record["tokens"]
    if not all(isinstance(word, dict) for word in words):
        raise InputError("a token that is no object", remedy=_REMEDY)
    offsets = [(word.get("start"), word.get("end")) for word in words]
    placed = None
    if words and {type(place) for pair in offsets for place in pair} <= {int}:
        flags = [end < start for (_, end), (start, _) in zip(offsets, [*offsets[1:], (len(text), 0)], strict=True)]
        placed = _place(text, [text[start:end] for start, end in offsets], flags)
    if words and (placed is None or placed.offsets != offsets):
        raise InputError("its tokens are not those of its text", remedy=_REMEDY)
    entities = _char_mentions(record.get("ents"), "ents")
    mentions = _select_mentions(entities, record.get("ents") is not None, fields, dialect, reading)
    columns = _columns_of_words(words, reading)
    if "head" in columns:
        columns["head"] = [str(int(head) - i) for i, head in enumerate(columns["head"])]
    sents = record.get("sents")
    if placed is not None and isinstance(sents, list) and len(sents) > 1:
        firsts = {sent.get("start") for sent in sents if isinstance(sent, dict) and type(sent.get("start")) is int}
        columns["sent_start"] = ["1" if start in firsts else "-1" for start, _ in offsets]
    document = in_characters(Document(text, mentions, pop_id(fields), fields), dialect.offsets)
    for sentence in _create(document, placed, columns, dialect, reading):
        meta = dict(sentence.fields)
        if other := pop_columns(meta, len(sentence)):
            yield sentence.with_(columns={**sentence.columns, **other}).with_fields(meta)
        else:
            yield sentence


# --------------------------------------------------------------------------------------- writing documents and tuples


def _to_doc(sentence: Sentence, dialect: SpacyJsonDialect) -> dict[str, Any]:
    if sentence.spaces is None:
        sentence = sentence.with_(spaces=infer_spaces(sentence.tokens))
    words = words_of(sentence)
    offsets = words.offsets
    count = counter(words.text, dialect.offsets)
    record: dict[str, Any] = {"text": words.text}
    if dialect.group is None:
        record["ents"] = [_span(mention, offsets, {}, count) for mention in words.mentions]
    record["tokens"] = tokens = [{"id": i, "start": start, "end": end} for i, (start, end) in enumerate(offsets)]
    columns = dict(words.columns)
    if "sent_start" in columns:
        firsts = [i for i, value in enumerate(columns.pop("sent_start")) if value == "1" or not i]
        bounds = zip(firsts, [*firsts[1:], len(tokens)], strict=True)
        record["sents"] = [{"start": offsets[a][0], "end": offsets[b - 1][1]} for a, b in bounds]
    if "head" in columns:
        columns["head"] = [i + head for i, head in enumerate(columns["head"])]
    for name, values in columns.items():
        for token, value in zip(tokens, values, strict=True):
            token[name] = value
    groups = None if sentence.provenance is not None else sentence.fields.get("spans")  # their offsets have changed
    spans = dict(groups) if isinstance(groups, dict) else {}
    if dialect.group is not None:
        spans[dialect.group] = [_span(mention, offsets, {"kb_id": ""}, count) for mention in words.mentions]
    if spans:
        record["spans"] = spans
    if sentence.id is not None:
        record["id"] = sentence.id
    if words.other_columns:
        record["columns"] = words.other_columns
    return record | without(sentence.fields, {ENTITY_FIELDS, BEFORE, *record})


def _span(
    mention: WordMention, words: Sequence[tuple[int, int]], default: Mapping[str, Any], count: Callable[[int], int]
) -> dict[str, Any]:
    """The object of a mention, given the characters of each word."""
    start, end = count(words[mention.start][0]), count(words[mention.end - 1][1])
    return {"start": start, "end": end, "label": mention.label, **default, **mention.fields}


def _to_tuple(group: Sequence[Sentence], dialect: SpacyJsonDialect) -> list[Any]:
    text = join_sentences(group)
    is_augmented = group[0].provenance is not None
    fields: dict[str, Any] = {}
    count = counter(text.text, dialect.offsets)
    mentions = [(count(m.spans[0][0]), count(m.spans[-1][1]), m.label, m.fields.get("kb_id")) for m in text.mentions]
    if dialect.group is None:
        fields["entities"] = [mention[:3] for mention in mentions]
    if dialect.words and text.tokens is not None:
        # The white space before the first token, which may begin with white space itself.
        first = text.tokens[0] if text.tokens else ""
        size = len(text.text) - len(text.text.lstrip()) - (len(first) - len(first.lstrip()))
        spaces = align_spaces(text.tokens, text.text[size:])
        words = words_of(Sentence(text.tokens, spaces=spaces, meta={BEFORE: text.text[:size]}))
        fields["words"], fields["spaces"] = list(words.words), list(words.flags or ())
    groups = None if is_augmented else text.fields.get("spans")
    if dialect.group is not None:
        own = [mention if mention[3] else mention[:3] for mention in mentions]
        fields["spans"] = {**(groups if isinstance(groups, dict) else {}), dialect.group: own}
    elif groups:
        fields["spans"] = groups
    stale = _OF_WORDS | {"spans"} if is_augmented else frozenset()
    for name, value in text.fields.items():
        if (name in _ANNOTATIONS or dialect.fields) and name not in stale:
            fields.setdefault(name, value)
    return [text.text, fields]


# ---------------------------------------------------------------------------------------------- training files: reading


def _columns_of_words(words: Sequence[Mapping[str, Any]], reading: ReadReport) -> dict[str, list[str]]:
    """The annotation of words from their objects."""
    columns: dict[str, list[str]] = {}
    given: set[str] = set().union(*words)
    for name in given.intersection(COLUMNS[:6]):
        values = [word.get(name) for word in words]
        types = set(map(type, values))
        if types == ({int} if name == "head" else {str}):
            columns[name] = list(map(str, values))
        elif types <= {str, type(None)} and name != "head":
            columns[name] = [value or "" for value in values]
        elif types != {type(None)}:
            reading.notes[f"{name} of tokens that is not of its kind left out"] += 1
    is_tree = {"dep", "head"} <= columns.keys()
    return {name: columns[name] for name in COLUMNS if name in columns and (is_tree or name not in ("dep", "head"))}


def _mentions_of_tags(tags: Sequence[Any], scheme: str, reading: ReadReport) -> tuple[Mention, ...]:
    """The mentions of the tags of words."""
    known = ["O" if tag is None or tag == "-" else tag for tag in tags]
    unknown = sum(tag is None or tag == "-" for tag in tags)
    if unknown and unknown == len(known):
        reading.notes[NO_LABELS] += 1
    elif unknown:
        reading.notes["text with words of which is not known whether they are entities"] += 1
    return decode_tags(known, scheme, reading)


def _parse_training(record: Mapping[str, Any], scheme: str, reading: ReadReport) -> Iterator[Sentence]:
    """The sentences of a document of a training file."""
    name = record.get("id") if type(record.get("id")) in (str, int) else None
    paragraphs = [(paragraph, list(_checked(paragraph["sentences"]))) for paragraph in record["paragraphs"]]
    paragraphs = [(paragraph, sentences) for paragraph, sentences in paragraphs if any(s["tokens"] for s in sentences)]
    count = sum(bool(sentence["tokens"]) for _, sentences in paragraphs for sentence in sentences)
    ids = _regular_ids(name, count)
    fields: dict[str, Any] = without(record, ("id", "paragraphs"))
    for index, (paragraph, sentences) in enumerate(paragraphs):
        fields |= {k: v for k, v in paragraph.items() if k not in _DERIVED and not (v == [] and k in ("cats", "links"))}
        for sentence, tokens in zip(sentences, _tokens(paragraph.get("raw"), sentences), strict=True):
            if not tokens.tokens:
                continue
            words = sentence["tokens"]
            own = {k: v for k, v in sentence.items() if k != "tokens" and (k, v) != ("brackets", [])}
            id_, columns = pop_id(own), pop_columns(own, len(tokens.tokens))
            meta, fields = fields | own, {}
            if (cats := _cats(meta.get("cats"))) is not None:
                meta["cats"] = cats
            if name is not None and (count > 1 or type(name) is int):
                meta[_PARAGRAPH] = [name, index]
            regular_id = next(ids)
            tags = _mentions_of_tags([word.get("ner") for word in words], scheme, reading)
            mentions = [WordMention(m.start, m.end, m.label, {}) for m in tags]
            columns = token_columns(_columns_of_words(words, reading), tokens) | columns
            yield create_sentence(tokens, mentions, columns, meta, regular_id if id_ is None else id_, reading)


def _cats(listed: Any) -> dict[str, Any] | None:
    """Categories as an object; None if a value is not a list of categories."""
    if type(listed) is not list or not listed:
        return None
    if not all(type(cat) is dict and cat.keys() == {"label", "value"} for cat in listed):
        return None
    cats = {cat["label"]: cat["value"] for cat in listed if type(cat["label"]) is str}
    return cats if len(cats) == len(listed) else None


def _checked(sentences: Any) -> Iterator[dict[str, Any]]:
    """The sentences of a paragraph, each with a list of words."""
    if type(sentences) is not list:
        raise InputError("'sentences' of a paragraph is not a list", remedy=_REMEDY)
    for sentence in sentences:
        words = sentence.get("tokens") if type(sentence) is dict else None
        if type(words) is not list or not all(type(word) is dict for word in words):
            raise InputError("a sentence without a list 'tokens' of objects", remedy=_REMEDY)
        for word in words:
            if type(word.get("orth")) is not str or not word["orth"]:
                raise InputError(f"a token without a string 'orth': {word!r:.60}", remedy=_REMEDY)
        yield sentence


def _tokens(raw: Any, sentences: Sequence[Mapping[str, Any]]) -> Iterator[Tokens]:
    """The tokens of each sentence of a paragraph; unknown white space is taken from its text."""
    words = [word["orth"] for sentence in sentences for word in sentence["tokens"]]
    has_flags = all(type(word.get("space")) is str for sentence in sentences for word in sentence["tokens"])
    spaces, before = None, ""
    if not has_flags and type(raw) is str:
        if words and not words[0].startswith(raw[:1]):
            before = raw[: len(raw) - len(raw.lstrip())]
        spaces = align_spaces(words, raw[len(before) :])
    position = 0
    for sentence in sentences:
        own = [word["orth"] for word in sentence["tokens"]]
        tokens = tokens_of(own, [bool(word["space"]) for word in sentence["tokens"]] if has_flags else None)
        if spaces is not None:
            own_spaces = spaces[position : position + len(own)]
            tokens = tokens._replace(spaces=own_spaces, before="" if position else before)
        yield tokens
        position += len(own)


# ---------------------------------------------------------------------------------------------- training files: writing


def _to_training(sentences: Iterable[Sentence], scheme: str) -> Iterator[dict[str, Any]]:
    """Convert sentences to documents of a training file."""

    def origin(numbered: tuple[int, Sentence]) -> tuple[Any, ...]:
        number, sentence = numbered
        match sentence.fields.get(_PARAGRAPH):
            case [name, _] if sentence.provenance is None:
                return True, type(name).__name__, name
        return False, "", number

    for (is_kept, _, name), group in groupby(enumerate(sentences), key=origin):
        members = [sentence for _, sentence in group]
        paragraphs = groupby(members, key=lambda member: member.fields[_PARAGRAPH][1]) if is_kept else [(0, members)]
        id_ = name if is_kept else members[0].id
        ids = _regular_ids(id_, len(members))
        record: dict[str, Any] = {} if id_ is None else {"id": id_}
        record["paragraphs"] = [_paragraph(own, ids, scheme) for _, own in paragraphs]
        yield record


def _regular_ids(name: Any, n: int) -> Iterator[str | None]:
    """The default ids of the sentences of a document."""
    for number in range(1, n + 1):
        yield None if name is None else str(name) if n == 1 else f"{name}-{number}"


def _paragraph(sentences: Iterable[Sentence], ids: Iterator[str | None], scheme: str) -> dict[str, Any]:
    """Create a paragraph of sentences; `ids` are their default ids."""
    written: list[dict[str, Any]] = []
    paragraph: dict[str, Any] = {"raw": None, "sentences": written}
    raw = ""
    n = 0
    for sentence in sentences:
        words = words_of(sentence)
        own: dict[str, Any] = {} if sentence.id in (None, next(ids)) else {"id": sentence.id}
        own |= {"tokens": _words(words, n, scheme), "brackets": []}
        written.append(own)
        n += len(words.words)
        raw += "" if words.flags is None else words.text
        columns = dict(words.other_columns)
        if "sent_start" in words.columns:
            columns["sent_start"] = list(sentence.columns["sent_start"])
        if columns:
            own["columns"] = columns
        of_paragraph = len(written) == 1
        for name, value in sentence.fields.items():
            if name == "cats" and of_paragraph and isinstance(value, dict):
                paragraph[name] = [{"label": label, "value": score} for label, score in value.items()]
            elif name in ("cats", "brackets"):  # categories that spaCy would not accept, where it does not read them
                own[name] = value
            elif name not in (_PARAGRAPH, BEFORE, DOCUMENT):
                (paragraph if of_paragraph else own).setdefault(name, value)
    paragraph["raw"] = raw or None
    return paragraph


def _words(words: Words, first: int, scheme: str) -> list[dict[str, Any]]:
    """The objects of words; `first` is the position of the first word in the document."""
    mentions = [Mention(m.label, ((m.start, m.end),)) for m in words.mentions]
    tags = encode_canonical(len(words.words), mentions, scheme)
    columns = without(words.columns, ("sent_start",))
    objects = []
    for i, word in enumerate(words.words):
        written: dict[str, Any] = {"id": first + i, "orth": word}
        if words.flags is not None:
            written["space"] = " " if words.flags[i] else ""
        objects.append(written | {name: values[i] for name, values in columns.items()} | {"ner": tags[i]})
    return objects
