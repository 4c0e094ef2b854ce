"""spaCy's JSON: documents as ``doc.to_json()`` returns them, and tuples for training loops.

``docs``
    The output of ``doc.to_json()``: an object with ``text``, ``tokens`` with character offsets, ``ents``, ``spans``.
``tuples``
    ``[text, {"entities": [[start, end, label]]}]``, the input of training loops; ``words`` and ``spaces`` may give the
    tokens.

A file is an array, or has one record per line; this and the form of the records are detected. The training files of
spaCy 2, with ``paragraphs``, are refused: ``spacy convert`` makes a DocBin of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from entaug.core.data import Sentence
from entaug.core.mentions import Span
from entaug.errors import InputError, LossError
from entaug.formats.base import BEFORE, ENTITY_FIELDS, NO_LABELS, ReadReport
from entaug.formats.records import array_text, detect_array, peek_records, read_given, to_json, write_objects
from entaug.formats.spacy_base import (
    COLUMNS,
    SpacyDialect,
    SpacyFormat,
    WordMention,
    has_stale_tree,
    printed_words,
    token_columns,
    tokens_of,
)
from entaug.formats.text import (
    DOCUMENT,
    CharMention,
    Document,
    UnitDetector,
    are_words,
    counter,
    in_characters,
    join_sentences,
    locate_tokens,
    split_document,
)
from entaug.formats.text_records import TextOptions, decide_offsets, parse_mention
from entaug.formats.token_records import decode_tags, entity_fields, pop_columns, pop_id, without

_OF_WORDS = frozenset(("tags", "pos", "lemmas", "morphs", "deps", "heads", "sent_starts", "ids", "brackets", "links"))
_ANNOTATIONS = _OF_WORDS | {"cats", "spans"}
"""Names that spaCy accepts in tuples in addition to ``entities``; it raises an error for any other name."""
_OF_MENTION = ("start", "end", "label")
_OF_DOC = ("text", "tokens", "ents", "sents")
_REMEDY = "write it as spaCy does"
_HEAD_SIZE = 1 << 21  # bytes in which the first record must end to be recognised


@dataclass(frozen=True)
class SpacyJsonDialect(SpacyDialect, TextOptions):
    """Layout of a JSON file of spaCy.

    Args:
        form: the form of the records: see `entaug.formats.spacy_json`.
        array: whether to write one JSON array, or else JSON lines; the default depends on the extension.
        words: whether tuples give the tokens; otherwise texts are tokenized by spaCy's rules.
    """

    form: Literal["docs", "tuples"] = "docs"
    array: bool | None = None
    words: bool = True

    def describe(self) -> str:
        form = {"docs": "as of doc.to_json()", "tuples": "training tuples"}[self.form]
        where = self.describe_mentions("ents", f"spans {self.spans_key!r}")
        return f"spaCy JSON{array_text(self.array)}, {form}, mentions in {where}{self.offsets_text}"


class SpacyJson(SpacyFormat):
    """spaCy's JSON; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "spacy-json"
    title = "spaCy JSON"
    extensions = (".json", ".jsonl")
    dialect_class = SpacyJsonDialect

    def recognises(self, path: Path) -> bool:
        return any(map(_form_of, peek_records(path, 1, (_HEAD_SIZE,))[0]))

    def detect(self, path: Path, dialect: SpacyJsonDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        groups: set[str] = set()
        forms: Counter[str] = Counter()
        has_entities = has_words = False

        def add(record: Any, units: UnitDetector) -> None:
            nonlocal has_entities, has_words
            form = _form_of(record)
            if form not in ("docs", "tuples"):
                return
            forms[form] += 1
            text, fields = (record["text"], record) if form == "docs" else record
            units.add(text, _ranges(fields), _words_in(text, fields, form))
            has_entities = has_entities or bool(fields.get("ents" if form == "docs" else "entities"))
            has_words = has_words or form == "docs" or "words" in fields
            spans = fields.get("spans")
            groups.update(name for name, values in (spans.items() if isinstance(spans, dict) else ()) if values)

        detected: dict[str, Any] = {**detect_array(path), **decide_offsets(path, dialect, add)}
        if forms:
            detected |= {"form": max(("docs", "tuples"), key=forms.__getitem__), "words": has_words}
        return detected | self.detect_mentions(path, groups, has_entities, dialect, options)

    def sentences(self, path: Path, dialect: SpacyJsonDialect, reading: ReadReport) -> Iterator[Sentence]:
        def parse(number: int, record: Any) -> Iterable[Sentence]:
            sentences = _parse(record, number, dialect, reading)
            reading.notes.update(["text without words left out"] * (not sentences))
            return sentences

        dialect.note_offsets(reading)
        return read_given(path, parse, reading, dialect.split_name)

    def as_stored(self, sentence: Sentence, dialect: SpacyJsonDialect) -> Sentence:
        sentence = super().as_stored(sentence, dialect)
        if dialect.form != "tuples" or dialect.words:
            return sentence
        try:
            found = split_document(join_sentences([sentence])._replace(tokens=None), dialect, ReadReport())
        except InputError as error:
            remedy = "write words, which give the tokens, or pass `misaligned='cut'`"
            raise LossError(error.message, path=f"sentence {sentence.key}", remedy=remedy) from None
        return found[0].with_(id=sentence.id).with_fields(sentence.fields) if len(found) == 1 else sentence

    def check(self, sentence: Sentence, dialect: SpacyJsonDialect) -> None:
        path = f"sentence {sentence.key}"
        try:
            "".join([*sentence.tokens, *(mention.label for mention in sentence.mentions)]).encode()
        except UnicodeEncodeError as error:
            raise LossError(f"cannot be written ({error})", path=path) from None
        super().check(sentence, dialect)
        if any(map(str.isspace, sentence.tokens)):
            raise LossError("a token of white space alone, which spaCy takes for space", path=path, remedy="remove it")

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: SpacyJsonDialect) -> None:
        kept, dialect = self.resolve(sentences, dialect)
        record_of = _to_doc if dialect.form == "docs" else _to_tuple
        records = (to_json(record_of(sentence, dialect), sentence.key) for sentence in kept)
        write_objects(path, records, is_array=dialect.array)

    def lost(self, sentence: Sentence, dialect: SpacyJsonDialect) -> list[str]:
        lost = ["trees of augmented sentences"] * has_stale_tree(sentence)
        spans = sentence.fields.get("spans")
        of_mentions = {name for fields in entity_fields(sentence) for name in fields}
        if dialect.form == "docs":
            lost += [f"field {name!r}" for name in _OF_DOC if name in sentence.fields]
            lost += ["field 'spans'"] * (spans is not None and not isinstance(spans, dict))
            of_mentions.intersection_update(_OF_MENTION)
        else:
            of_mentions -= {"kb_id"} if dialect.group is not None else set()
            lost += ["columns"] * bool(sentence.columns) + ["ids"] * (sentence.id is not None)
            others = sentence.fields.keys() - _ANNOTATIONS - {"entaug", BEFORE, DOCUMENT, ENTITY_FIELDS}
            lost += ["provenance"] * (sentence.provenance is not None) + ["fields"] * bool(others)
        return lost + [f"field {name!r} of mentions" for name in sorted(of_mentions)]


# ----------------------------------------------------------------------------------------------------------- detection


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


def _ranges(fields: Mapping[str, Any]) -> Iterator[tuple[Any, Any, None]]:
    """The ranges of the mentions of a record; those of tags have none."""
    groups = fields.get("spans")
    lists = [fields.get("ents"), fields.get("entities"), *(groups.values() if isinstance(groups, dict) else ())]
    for value in (value for values in lists if isinstance(values, list) for value in values):
        if isinstance(value, dict):
            yield value.get("start"), value.get("end"), None
        elif isinstance(value, list) and len(value) >= 3:
            yield value[0], value[1], None


def _words_in(text: str, fields: Mapping[str, Any], form: str) -> list[Span] | None:
    """The characters of the words of a document or tuple, also of white space; None if they are not those of a text."""
    if form == "tuples":
        words: Any = fields.get("words")
        is_list = isinstance(words, list) and all(isinstance(word, str) and word for word in words)
        return locate_tokens(words, text) if is_list else None
    tokens = fields["tokens"]
    spans: list[Any] = [(token.get("start"), token.get("end")) for token in tokens if isinstance(token, dict)]
    if len(spans) < len(tokens) or not {type(place) for span in spans for place in span} <= {int}:
        return None
    return spans if are_words(spans, text) else None


# ------------------------------------------------------------------------------------------------------------- reading


def _parse(record: Any, number: int, dialect: SpacyJsonDialect, reading: ReadReport) -> list[Sentence]:
    """The sentences of a record."""
    form = _form_of(record)
    if form == "training":
        raise InputError("a training file of spaCy 2", remedy="convert it to .spacy: python -m spacy convert FILE .")
    if form is None:
        what = "neither [text, {...}], nor an object of doc.to_json()"
        raise InputError(what, remedy=_REMEDY)
    text, fields = (record["text"], dict(record)) if form == "docs" else (record[0], dict(record[1]))
    words = _words_in(text, fields, form)
    columns: dict[str, list[str]] = {}
    unit: str = dialect.offsets
    if form == "docs":
        if words is None and fields["tokens"]:
            raise InputError("its tokens are not those of its text", remedy=_REMEDY)
        columns = _columns(fields, words or (), reading)
        id_, entities = pop_id(fields), fields.get("ents")
    else:
        # Tuples have no ids, but the sentences of a segmented text need one to distinguish them from other texts.
        id_, entities = None if dialect.split == "none" else str(number), fields.get("entities")
        if words is None and "words" in fields:
            reading.notes["words that are not those of their text, which was tokenised anew"] += 1
    if isinstance(entities, list) and entities and all(tag is None or isinstance(tag, str) for tag in entities):
        mentions = _mentions_of_tags(entities, words, reading)
        unit = "characters" if dialect.group is None else unit
    else:
        mentions = _mentions(entities, "ents" if form == "docs" else "entities")
    mentions = _select_mentions(mentions, entities is not None, fields, dialect, reading)
    meta = without(fields, _OF_DOC if form == "docs" else ("entities", "words", "spaces"))
    spans = [span for span in words if text[slice(*span)].strip()] if words else None
    document = in_characters(Document(text, mentions, id_, meta, token_spans=spans), unit)
    sentences = split_document(document, dialect, reading) if spans or text.strip() else []
    if len(sentences) != 1 or form == "tuples":
        return sentences
    [sentence] = sentences
    meta = dict(sentence.fields)
    own = pop_columns(meta, len(sentence))
    if columns:
        texts = [text[start:end] for start, end in words or ()]
        own |= token_columns(columns, tokens_of(texts, [False] * len(texts)))
    return [sentence.with_(columns=own).with_fields(meta)]


def _columns(fields: Mapping[str, Any], spans: Sequence[Span], reading: ReadReport) -> dict[str, list[str]]:
    """The columns of a document, one value for each word."""
    words, sents = fields["tokens"], fields.get("sents")
    columns: dict[str, list[str]] = {}
    for name in set[str]().union(*words).intersection(COLUMNS[:6]):
        values = [word.get(name) for word in words]
        types = set(map(type, values))
        if name == "head" and types == {int}:
            columns[name] = [str(head - i) for i, head in enumerate(values)]
        elif types <= {str, type(None)} and name != "head":
            columns[name] = [value or "" for value in values]
        elif types != {type(None)}:
            reading.notes[f"{name} of tokens that is not of its kind left out"] += 1
    if not {"dep", "head"} <= columns.keys():
        columns = without(columns, ("dep", "head"))
    if isinstance(sents, list) and len(sents) > 1:
        firsts = {sent.get("start") for sent in sents if isinstance(sent, dict) and type(sent.get("start")) is int}
        columns["sent_start"] = ["1" if start in firsts else "-1" for start, _ in spans]
    return {name: columns[name] for name in COLUMNS if name in columns}


def _mentions(values: Any, name: str) -> list[CharMention]:
    """Mentions from lists ``[start, end, label]`` or objects with these names."""
    if values is not None and not isinstance(values, list):
        raise InputError(f"{name!r} is not a list", remedy=_REMEDY)
    mentions = []
    for value in values or ():
        has_kb_id = isinstance(value, list) and len(value) == 4
        mention = parse_mention(value[:3] if has_kb_id else value)
        fields = {**mention.fields, "kb_id": value[3]} if has_kb_id else mention.fields
        no_kb_id = ("kb_id",) if not fields.get("kb_id") else ()
        mentions.append(mention._replace(fields=without(fields, no_kb_id)))
    return mentions


def _mentions_of_tags(tags: Sequence[Any], words: Sequence[Span] | None, reading: ReadReport) -> list[CharMention]:
    """The mentions of BILUO tags of words."""
    if words is None or len(tags) != len(words):
        raise InputError("tags as 'entities', but not one for each of 'words'", remedy=_REMEDY)
    unknown = sum(tag is None or tag == "-" for tag in tags)
    if unknown:
        partly = "text with words of which is not known whether they are entities"
        reading.notes[NO_LABELS if unknown == len(tags) else partly] += 1
    mentions = decode_tags(["O" if tag is None or tag == "-" else tag for tag in tags], "BILOU", reading)
    return [CharMention(m.label, ((words[m.start][0], words[m.end - 1][1]),)) for m in mentions]


def _select_mentions(
    entities: list[CharMention], has_ents: bool, fields: dict[str, Any], dialect: SpacyJsonDialect, reading: ReadReport
) -> list[CharMention]:
    """The mentions of the dialect's group, which is taken from the fields, or the entities."""
    groups = fields.pop("spans", None)
    groups = {} if groups is None else groups
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
        mentions = _mentions(groups.get(dialect.group), dialect.group)
        groups = without(groups, (dialect.group,))
        if left_out := {entity[:2] for entity in entities} - {mention[:2] for mention in mentions}:
            reading.notes[f"entities that are not in the spans {dialect.group!r} left out"] += len(left_out)
    if groups:
        fields["spans"] = groups
    return mentions


# ------------------------------------------------------------------------------------------------------------- writing


def _other_groups(sentence: Sentence) -> dict[str, Any]:
    """The groups of spans that a sentence was read with; those of an augmented one have other offsets."""
    groups = None if sentence.provenance is not None else sentence.fields.get("spans")
    return dict(groups) if isinstance(groups, dict) else {}


def _to_doc(sentence: Sentence, dialect: SpacyJsonDialect) -> dict[str, Any]:
    words = printed_words(sentence)
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
    spans = _other_groups(sentence)
    if dialect.group is not None:
        spans[dialect.group] = [_span(mention, offsets, {"kb_id": ""}, count) for mention in words.mentions]
    if spans:
        record["spans"] = spans
    if sentence.id is not None:
        record["id"] = sentence.id
    if words.other_columns:
        record["columns"] = words.other_columns
    return record | without(sentence.fields, {ENTITY_FIELDS, BEFORE, "spans", *_OF_DOC, *record})


def _span(
    mention: WordMention, words: Sequence[Span], default: Mapping[str, Any], count: Callable[[int], int]
) -> dict[str, Any]:
    """The object of a mention, given the characters of each word."""
    start, end = count(words[mention.start][0]), count(words[mention.end - 1][1])
    return {"start": start, "end": end, "label": mention.label, **default, **without(mention.fields, _OF_MENTION)}


def _to_tuple(sentence: Sentence, dialect: SpacyJsonDialect) -> list[Any]:
    words = printed_words(sentence)
    count = counter(words.text, dialect.offsets)
    mentions: list[Any] = []
    for mention in words.mentions:
        place = count(words.offsets[mention.start][0]), count(words.offsets[mention.end - 1][1]), mention.label
        kb_id = mention.fields.get("kb_id")
        mentions.append((*place, kb_id) if kb_id and dialect.group is not None else place)
    fields: dict[str, Any] = {"entities": mentions} if dialect.group is None else {}
    if dialect.words:
        fields["words"], fields["spaces"] = list(words.words), list(words.flags or ())
    spans = _other_groups(sentence) | ({} if dialect.group is None else {dialect.group: mentions})
    if spans:
        fields["spans"] = spans
    stale = _OF_WORDS if sentence.provenance is not None else frozenset()
    kept = _ANNOTATIONS - stale - {"spans"}
    return [words.text, fields | {name: value for name, value in sentence.fields.items() if name in kept}]
