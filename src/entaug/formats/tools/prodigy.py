"""Prodigy: JSON lines with a text, its tokens, and spans by characters and by tokens.

Tokens are objects with ``text``, ``start``, ``end``, ``id`` and, in newer files, ``ws``: whether a space follows. As in
spaCy, any other white space is a token of its own: such tokens are read as the white space between words, and written
again. The ``token_end`` of a span is its last token. Spans may overlap (as of ``spans.manual``). Records that were
rejected or ignored are left out and counted, unless all are asked for. Beware of an ``accept`` of a single suggested
span: Prodigy does not say that the rest of the text holds no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from entaug.data import Sentence, Span
from entaug.errors import InputError, LossError, ParameterError
from entaug.formats.base import Reading
from entaug.formats.documents import CharMention, Cutting, Text
from entaug.formats.records import (
    OTHER_TOKENS,
    TextLines,
    beginnings,
    char_mention,
    entity_fields,
    fields_of,
    is_augmented,
    laid_out,
    left_over,
    name_of,
    refuse_gaps,
    without_place,
    written,
)

__all__ = ["Prodigy", "ProdigyDialect"]

_PLACE = ("start", "end", "token_start", "token_end", "label")
_ANSWERS = ("accept", "all")
OF_TOKENS = "_token_fields"
"""Field of a sentence: what its file says of each token besides, where it does."""
_TOKEN = frozenset(("text", "start", "end", "id", "ws"))
# Hashes are those of the text and of its spans: Prodigy makes new ones. Relations name tokens.
_OF_THE_SOURCE = frozenset(("_input_hash", "_task_hash", "relations", OF_TOKENS))


@dataclass(frozen=True)
class ProdigyDialect(Cutting):
    """How a file of Prodigy is laid out, and what is read of it.

    Args:
        language: see `entaug.formats.documents.Cutting`, and so `split` and `misaligned`.
        answers: ``"accept"``: what was rejected or ignored is left out; ``"all"``: nothing is.
        ws: whether tokens say if a space follows, as they do from Prodigy 1.10 on.
    """

    answers: str = "accept"
    ws: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.answers not in _ANSWERS:
            raise ParameterError(f"answers must be one of {', '.join(_ANSWERS)}, not {self.answers!r}")

    def describe(self) -> str:
        """One line for people."""
        return f"Prodigy, {'accepted' if self.answers == 'accept' else 'all'} records"


class Prodigy(TextLines):
    """The format of Prodigy; see `entaug.formats.base.Format` for the methods."""

    name = "prodigy"
    title = "Prodigy"

    def tells(self, record: dict[str, Any]) -> bool | None:
        """Whether a record has a text and what only Prodigy writes beside it."""
        if type(record.get("text")) is not str or "entities" in record:
            return False
        if "_input_hash" in record or "_task_hash" in record:
            return True
        spans, tokens = record.get("spans"), record.get("tokens")
        found = [value[0] for value in (spans, tokens) if type(value) is list and value]
        if found:
            return all(type(one) is dict and "start" in one and "end" in one for one in found)
        return None if spans == [] else False

    def dialect(self, **options: Any) -> ProdigyDialect:
        """A dialect from options given by hand."""
        return ProdigyDialect(**{name: value for name, value in options.items() if value is not None})

    def look(self, path: Path, **options: Any) -> ProdigyDialect:
        """Find out whether tokens have ``ws``."""
        found = self.dialect(**options)
        for record in beginnings(path):
            tokens = record.get("tokens") if type(record) is dict else None
            if type(tokens) is list and tokens and type(tokens[0]) is dict:
                return found if options.get("ws") is not None else replace(found, ws="ws" in tokens[0])
        return found

    def text_in(self, record: dict[str, Any], dialect: ProdigyDialect, reading: Reading) -> Text | None:
        """See `entaug.formats.records.TextLines`."""
        answer = record.get("answer", "accept")
        if answer != "accept" and dialect.answers == "accept":
            reading.notes[f"record with the answer {answer!r:.40} left out"] += 1
            return None
        text = record.get("text")
        if type(text) is not str:
            raise InputError("no string 'text' in the object", remedy='write {"text": ..., "spans": [...]}')
        spans = record.get("spans")
        if spans is None:
            spans = []
        if type(spans) is not list:
            raise InputError("'spans' is not a list", remedy='write {"text": ..., "spans": [...]}')
        fields = fields_of(record, ("text", "spans", "tokens"))
        mentions = [_mention(span) for span in spans]
        tokens = record.get("tokens")
        if tokens is None:
            return Text(text, mentions, name_of(record), fields)
        words, places = _words(tokens, text)
        if places is None:
            reading.notes[OTHER_TOKENS] += 1
        elif not all(word.keys() <= _TOKEN for word in words):
            fields[OF_TOKENS] = [{k: v for k, v in word.items() if k not in _TOKEN} for word in words]
        return Text(text, mentions, name_of(record), fields, places=places)

    def dump(self, sentence: Sentence, dialect: ProdigyDialect) -> str:
        """One line with the sentence as a JSON object.

        Raises:
            LossError: a mention is discontinuous; a token is white space, or could not be found again in the text.
        """
        refuse_gaps(sentence, self.title)
        text, bounds = laid_out(sentence)
        tokens, ids = _tokens(sentence, text, bounds, dialect)
        said = entity_fields(sentence)
        spans = []
        for i, mention in enumerate(sentence.mentions):
            first, last = mention.start, mention.end - 1
            spans.append(
                {
                    "start": bounds[first][0],
                    "end": bounds[last][1],
                    "token_start": ids[first],
                    "token_end": ids[last],
                    "label": mention.label,
                    **({} if said is None else without_place(said[i], _PLACE)),
                }
            )
        record: dict[str, Any] = {} if sentence.id is None else {"id": sentence.id}
        record |= {"text": text, "tokens": tokens, "spans": spans}
        left_over(sentence, record, _OF_THE_SOURCE if is_augmented(sentence) else (OF_TOKENS,))
        return written(record, sentence.key) + "\n"

    def lost(self, sentence: Sentence, dialect: ProdigyDialect) -> list[str]:
        """Columns, and fields whose names are taken."""
        del dialect
        lost = [f"field {key!r}" for key in ("text", "tokens", "spans") if key in sentence.fields]
        if OF_TOKENS in sentence.fields and not _are_fields(sentence.fields[OF_TOKENS], len(sentence)):
            lost.append("fields of tokens")
        return [f"column {name!r}" for name in sentence.columns] + lost


def _words(tokens: Any, text: str) -> tuple[list[dict[str, Any]], list[Span] | None]:
    """The tokens of a record but those of white space, and where they stand; None where it is not in the text."""
    if type(tokens) is not list:
        raise InputError("'tokens' is not a list", remedy="mend the line")
    words = []
    places: list[Span] = []
    place = 0
    fit = True
    for token in tokens:
        word = token.get("text") if type(token) is dict else None
        if type(word) is not str:
            raise InputError(f"a token must be an object with a 'text', not {token!r:.80}", remedy="mend the line")
        if not word or word.isspace():
            continue
        words.append(token)
        start = text.find(word, place)
        # Words of a token that begins with white space may stand further on than where they are found first.
        said = token.get("start", start)
        if said != start and type(said) is int and said > start and text.startswith(word, said):
            start = said
        if start != said or (start != place and not text[place:start].isspace()):
            fit = False
        place = start + len(word)
        places.append((start, place))
    rest = text[place:]
    return words, places if fit and places and (not rest or rest.isspace()) else None


def _mention(span: Any) -> CharMention:
    if type(span) is not dict:
        raise InputError(f"a span must be an object, not {span!r:.80}", remedy="give it start, end and label")
    fields = {key: value for key, value in span.items() if key not in _PLACE}
    return char_mention(span.get("label"), span.get("start"), span.get("end"), fields)


def _tokens(
    sentence: Sentence, text: str, bounds: Sequence[Span], dialect: ProdigyDialect
) -> tuple[list[dict[str, Any]], list[int]]:
    """The tokens of a text with white space among them, and the number of each of ours there."""
    said = sentence.fields.get(OF_TOKENS)
    if is_augmented(sentence) or not _are_fields(said, len(bounds)):
        said = None
    tokens: list[dict[str, Any]] = []
    ids: list[int] = []
    place = 0
    for i, (token, (start, end)) in enumerate(zip(sentence.tokens, bounds, strict=True)):
        if token.isspace():
            raise LossError(
                f"sentence {sentence.key}: the token {token!r} is white space, which Prodigy has between words",
                remedy="write JSON lines",
            )
        if start > place:
            _gap(tokens, text, place, start, dialect)
        ids.append(len(tokens))
        tokens.append({"text": token, "start": start, "end": end, "id": len(tokens)})
        if dialect.ws:
            tokens[-1]["ws"] = False
        if said is not None:
            tokens[-1] |= said[i]
        place = end
    if place < len(text):
        _gap(tokens, text, place, len(text), dialect)
    return tokens, ids


def _gap(tokens: list[dict[str, Any]], text: str, start: int, end: int, dialect: ProdigyDialect) -> None:
    """Add what is between two tokens: a single space belongs to the one before, the rest is a token."""
    if tokens and text[start] == " ":
        if dialect.ws:
            tokens[-1]["ws"] = True
        start += 1
    if start < end:
        tokens.append({"text": text[start:end], "start": start, "end": end, "id": len(tokens)})
        if dialect.ws:
            tokens[-1]["ws"] = False


def _are_fields(value: Any, n: int) -> bool:
    fits = type(value) is list and len(value) == n
    return fits and all(type(one) is dict and not one.keys() & _TOKEN for one in value)
