"""Conversations for fine-tuning language models: JSON lines of messages, or of prompt and completion.

A line is a text with its mentions: ``messages`` of the roles ``system`` (instructions), ``user`` (the text) and
``assistant`` (the answer), as OpenAI and TRL take them; ``prompt`` and ``completion``, each a string or a list of such
messages; or ``instruction``, ``input`` and ``output``. One array of these is read, too. The answer is a JSON list of
``{"text": ..., "type": ...}`` in the order of the text, with ``start`` and ``end`` if wanted; answers are also read as
an object with a list of texts for each label, and inside a fence.

Mentions without offsets are located by their text, in order: each after the one before, or inside it, or else at its
first place that is not taken. A text that is not in the sentence is an error, or left out by name
(``missing="skip"``). Where this order would find another place than the mention has, writing names the loss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from entaug.core.data import Sentence
from entaug.core.mentions import Span
from entaug.core.spacing import is_unspaced_script
from entaug.errors import InputError
from entaug.files.streams import extension_of
from entaug.formats.base import BEFORE, ENTITY_FIELDS, FormatCapabilities, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import (
    array_text,
    as_object,
    as_objects,
    detect_array,
    parse_json,
    peek_records,
    read_given,
    to_json,
    write_objects,
)
from entaug.formats.text import CharMention, Document, SegmentationOptions
from entaug.formats.text_records import char_mention, char_spans, cut_record, layout_text, token_spans
from entaug.formats.token_records import pop_id

_FENCE = re.compile(r"\s*```\w*\n(.*?)\n?\s*```\s*", re.DOTALL)
_TEXTS = ("text", "mention", "span", "word", "name", "entity")
_TYPES = ("type", "label", "entity_type", "entity_group", "category", "class", "entity")
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_FIELDS = {"completion": ("", "prompt", "completion"), "instruction": ("instruction", "input", "output")}
_ANSWER = 'answer with a JSON list: [{"text": "Ada", "type": "PER"}]'
_SAMPLE = 100  # records
_MIN_SHARED = 3  # words that all questions begin with, before they are taken for an instruction
_INSTRUCTIONS = (
    "Find the named entities in the text of the user. The types are: {labels}. "
    'Answer with a JSON list of {"text": ..., "type": ...} in the order of the text, and [] if there are none.'
)


@dataclass(frozen=True)
class ChatDialect(SegmentationOptions):
    """Layout of a file of conversations.

    Args:
        shape: ``"messages"``; ``"prompt"``: prompt and completion as lists of messages; ``"completion"``: as strings;
            ``"instruction"``: instruction, input and output.
        system: the instructions; ``{labels}`` stands for the labels of the corpus; empty for none.
        question: the message with the text, for which ``{text}`` stands.
        offsets: whether to write the first character of each mention and the one after the last.
        missing: what to do with a mention whose text is not found: ``"error"``; ``"skip"``: leave it out and say so.
        tokens: whether to write the tokens in a further field, so that the same ones are read back.
        with_ids: whether to write ids in a further field; OpenAI asks for files without such fields.
        array: whether to write one JSON array, or else JSON lines; the default depends on the extension.
    """

    shape: Literal["messages", "prompt", "completion", "instruction"] = "messages"
    system: str = _INSTRUCTIONS
    question: str = "{text}"
    offsets: bool = False
    missing: Literal["error", "skip"] = "error"
    tokens: bool = False
    with_ids: bool = False
    array: bool | None = None

    def describe(self) -> str:
        told = "" if self.question == "{text}" else f", texts as in {self.question!r:.60}"
        places = "offsets" if self.offsets else "texts"
        return f"conversations ({self.shape}), mentions by their {places}{told}{array_text(self.array)}"


class Chat(BufferedFormat):
    """The format of conversations; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "chat"
    title = "conversations"
    extensions = (".jsonl", ".json", ".ndjson")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=False, spaces=True)
    dialect_class = ChatDialect
    reserved_fields = ("messages", "prompt", "completion", "instruction", "input", "output", "tokens")

    def recognises(self, path: Path) -> bool:
        records, _ = peek_records(path, 1)
        return bool(records) and type(records[0]) is dict and _shape_of(records[0]) is not None

    def detect(self, path: Path, dialect: ChatDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        found, _ = peek_records(path, _SAMPLE)
        records = [record for record in found if type(record) is dict]
        detected: dict[str, Any] = detect_array(path, expected=extension_of(path) == ".json")
        turns = []
        for record in records:
            shape = _shape_of(record)
            if shape is None:
                continue
            detected.setdefault("shape", shape)
            try:
                turns.append(_turns(record, shape))
            except InputError:  # reported when it is read
                continue
        if turns:
            detected["system"] = turns[0][0]
            detected["offsets"] = any('"start"' in answer for _, _, answer in turns)
            detected["question"] = _shared_question([question for _, question, _ in turns])
        detected["tokens"] = any(type(record.get("tokens")) is list for record in records)
        detected["with_ids"] = any(record.get("id") is not None for record in records)
        return detected

    def sentences(self, path: Path, dialect: ChatDialect, reading: ReadReport) -> Iterator[Sentence]:
        before, _, after = dialect.question.partition("{text}")

        def parse(_number: int, given: Any) -> Iterable[Sentence]:
            record = dict(as_object(given, 'write {"messages": [...]}'))
            id_ = pop_id(record)
            system, text, answer = _turns(record, dialect.shape)
            if system != dialect.system:
                reading.notes["other instructions than those of the first line, left out"] += 1
            if text.startswith(before) and text.endswith(after) and len(text) >= len(before) + len(after):
                text = text[len(before) : len(text) - len(after)]
            elif dialect.question != "{text}":
                remedy = "correct the line, or pass `question='{text}'`"
                raise InputError(f"the text is not given as in {dialect.question!r:.80}", remedy=remedy)
            for name in record.keys() - {*self.reserved_fields}:
                reading.notes[f"field {name!r} left out"] += 1
            spans = token_spans(record.get("tokens"), text, reading)
            mentions = _locate(text, _entities(answer), dialect, reading)
            return cut_record(Document(text, mentions, id_, token_spans=spans), dialect, reading)

        return read_given(path, parse, reading)

    def check(self, sentence: Sentence, dialect: ChatDialect) -> None:
        super().check(sentence, dialect)
        layout_text(sentence)

    def lost(self, sentence: Sentence, dialect: ChatDialect) -> list[str]:
        lost = [f"column {name!r}" for name in sentence.columns]
        lost += ["id"] * (sentence.id is not None and not dialect.with_ids)
        lost += [f"field {name!r}" for name in sentence.fields if name not in (BEFORE, ENTITY_FIELDS)]
        lost += ["fields of mentions"] * any(sentence.fields.get(ENTITY_FIELDS) or ())
        if dialect.offsets or not sentence.mentions or not all(m.is_contiguous for m in sentence.mentions):
            return lost
        text, given = _mentions_in_order(sentence)
        pairs = [{"text": text[start:end], "type": label} for label, start, end in given]
        found = _locate(text, pairs, replace(dialect, missing="skip"), ReadReport())
        is_same = {(m.label, *m.spans[0]) for m in found} == {*given}
        return lost + ["place of a mention among several such words (offsets=true keeps it)"] * (not is_same)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: ChatDialect) -> None:
        kept = list(sentences)
        labels = sorted({mention.label for sentence in kept for mention in sentence.mentions})
        system = dialect.system.replace("{labels}", ", ".join(labels))
        if dialect.offsets and dialect.system == _INSTRUCTIONS:
            system = system.replace('"type": ...}', '"type": ..., "start": ..., "end": ...}')
        records = (to_json(_record(sentence, system, dialect), sentence.key) for sentence in kept)
        is_array = extension_of(path) == ".json" if dialect.array is None else dialect.array
        write_objects(path, records, is_array=is_array)


# ----------------------------------------------------------------------------------------------------------- reading


def _shape_of(record: Mapping[str, Any]) -> Literal["messages", "prompt", "completion", "instruction"] | None:
    """The shape of a conversation; None of any other record."""
    messages = record.get("messages")
    if type(messages) is list and messages and all(type(m) is dict and "role" in m for m in messages):
        return "messages"
    if "prompt" in record and "completion" in record:
        return "prompt" if type(record["prompt"]) is list else "completion"
    return "instruction" if {"instruction", "output"} <= record.keys() else None


def _turns(record: Mapping[str, Any], shape: str) -> tuple[str, str, str]:
    """The instructions, the question and the answer of a record."""
    if shape in _FIELDS:
        system, question, answer = (record.get(name, "") for name in _FIELDS[shape])
        if shape == "instruction" and not question:
            system, question = "", system
        if not all(type(value) is str for value in (system, question, answer)):
            raise InputError(f"no strings in {', '.join(filter(None, _FIELDS[shape]))}", remedy="correct the line")
        return system, question, answer
    messages = record.get("messages")
    if shape == "prompt":
        lists = [record.get(name) for name in ("prompt", "completion")]
        messages = [message for part in lists if type(part) is list for message in part]
    turns: dict[str, list[str]] = {"system": [], "user": [], "assistant": []}
    for message in as_objects(messages, "messages", 'write {"messages": [{"role": "user", ...}]}'):
        role, content = _ROLES.get(str(message.get("role"))), message.get("content")
        if type(content) is list and all(type(part) is dict and type(part.get("text")) is str for part in content):
            content = "".join(part["text"] for part in content)
        if role is None or type(content) is not str:
            what = f"a message of an unknown role or without a text: {message.get('role')!r:.40}"
            raise InputError(what, remedy="correct the line")
        turns[role].append(content)
    numbers = [len(contents) for contents in turns.values()]
    if numbers not in ([0, 1, 1], [1, 1, 1]):
        what = f"{numbers[1]} messages of the user and {numbers[2]} of the assistant"
        raise InputError(what, remedy="write one of each, and at most one of the system")
    return "".join(turns["system"]), turns["user"][0], turns["assistant"][0]


def _shared_question(questions: Sequence[str]) -> str:
    """The frame of all questions around their texts: an instruction ending in a colon or line end, or nothing."""
    first, last = min(questions), max(questions)
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    ends = [match.end() for match in re.finditer(r":\s+|\n+", first[:length])]
    before = first[: ends[-1]] if ends else ""
    if len(before.split()) < _MIN_SHARED or "{text}" in before:
        return "{text}"
    return f"{before}{{text}}"


def _entities(answer: str) -> list[dict[str, Any]]:
    """The mentions of an answer, each with ``text``, ``type`` and perhaps offsets."""
    fenced = _FENCE.fullmatch(answer)
    try:
        value = parse_json(fenced[1] if fenced else answer, _ANSWER)
    except InputError as error:
        raise InputError(f"the answer is no JSON: {answer!r:.80}", remedy=_ANSWER) from error
    if type(value) is dict:
        lists = list(value.items())
        if not all(type(items) is list for _, items in lists):
            raise InputError(f"the answer holds no lists of texts: {answer!r:.80}", remedy=_ANSWER)
        # {"entities": [...]}, or a list of texts for each label
        is_wrapped = len(lists) == 1 and all(type(item) is dict for item in lists[0][1])
        value = lists[0][1] if is_wrapped else [{"text": t, "type": label} for label, items in lists for t in items]
    if type(value) is not list:
        raise InputError(f"the answer is no list of mentions: {answer!r:.80}", remedy=_ANSWER)
    entities = []
    for item in value:
        given = item if type(item) is dict else {}
        own = next((name for name in _TEXTS if type(given.get(name)) is str), None)
        label = next((given[name] for name in _TYPES if name != own and type(given.get(name)) is str), None)
        if own is None or not given[own] or not label:
            raise InputError(f"a mention without a text or a type: {item!r:.80}", remedy=_ANSWER)
        offsets = {name: given[name] for name in ("start", "end") if name in given}
        entities.append({"text": given[own], "type": label, **offsets})
    return entities


def _locate(
    text: str, entities: Iterable[Mapping[str, Any]], dialect: ChatDialect, reading: ReadReport
) -> list[CharMention]:
    """The mentions of an answer in a text: by their offsets, or in the order of the answer."""
    found: list[CharMention] = []
    taken: set[tuple[Span, str]] = set()
    start = end = 0  # of the mention before
    for entity in entities:
        words, label = entity["text"], entity["type"]
        span: Span | None
        if "start" in entity or "end" in entity:
            [span] = char_mention(label, entity.get("start"), entity.get("end"), {}).spans
            span = span if text[span[0] : span[1]] == words else None
        else:
            span = _place(text, words, label, start, end, taken)
        if span is None:
            what = f"mention {label} {words!r:.80} is not in the text, or is given more often than it is there"
            if dialect.missing == "error":
                raise InputError(what, remedy="correct the answer, or pass `missing='skip'` to leave it out")
            reading.notes[f"left out: {what}"] += 1
            continue
        start, end = span
        taken.add((span, label))
        found.append(CharMention(label, (span,)))
    return found


def _place(text: str, words: str, label: str, start: int, end: int, taken: set[tuple[Span, str]]) -> Span | None:
    """The place of a mention: after the one before, inside it, or where nothing of this label is yet."""
    places = [(match.start(), match.start() + len(words)) for match in re.finditer(f"(?={re.escape(words)})", text)]
    places = [span for span in places if (span, label) not in taken]
    covered = {span for span, _ in taken}
    # Parts of longer words ("Al" in "Also") are places only where there are no others.
    for free in ([s for s in places if is_unspaced_script(words) or _is_whole(text, s)], places):
        if free:
            return (
                next((span for span in free if span[0] >= end and span not in covered), None)
                or next((span for span in free if start <= span[0] and span[1] <= end), None)
                or next((span for span in free if span not in covered), None)
                or free[0]
            )
    return None


def _is_whole(text: str, span: Span) -> bool:
    """Whether no word continues over the edges of a span."""
    start, end = span
    before, after = text[max(0, start - 1) : start + 1], text[end - 1 : end + 1]
    return not any(len(edge) == 2 and edge.isalnum() for edge in (before, after))


# ----------------------------------------------------------------------------------------------------------- writing


def _mentions_in_order(sentence: Sentence) -> tuple[str, list[tuple[str, int, int]]]:
    """The text of a sentence, and its mentions by characters: outer ones first."""
    text, spans = layout_text(sentence)
    mentions = [(label, start, end) for label, start, end, _ in char_spans(sentence, spans)]
    return text, sorted(mentions, key=lambda mention: (mention[1], -mention[2], mention[0]))


def _record(sentence: Sentence, system: str, dialect: ChatDialect) -> dict[str, Any]:
    text, mentions = _mentions_in_order(sentence)
    entities: list[dict[str, Any]] = [{"text": text[start:end], "type": label} for label, start, end in mentions]
    if dialect.offsets:
        for entity, (_, start, end) in zip(entities, mentions, strict=True):
            entity |= {"start": start, "end": end}
    question = dialect.question.replace("{text}", text) if "{text}" in dialect.question else text
    answer = to_json(entities, sentence.key).decode()
    record: dict[str, Any] = {"id": sentence.id} if dialect.with_ids and sentence.id is not None else {}
    asked = [{"role": "system", "content": system}] if system else []
    asked.append({"role": "user", "content": question})
    said = [{"role": "assistant", "content": answer}]
    if dialect.shape == "messages":
        record["messages"] = asked + said
    elif dialect.shape == "prompt":
        record |= {"prompt": asked, "completion": said}
    elif dialect.shape == "completion":
        record |= {"prompt": question, "completion": answer}
    else:
        record |= {"instruction": system, "input": question, "output": answer}
    return record | ({"tokens": sentence.tokens} if dialect.tokens else {})
