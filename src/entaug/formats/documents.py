"""Documents: texts with mentions by character offsets, which formats without tokens of their own read and write.

`entaug.formats.segmentation` splits a document into sentences of tokens. The white space between tokens stays with the
sentence, so that joining the sentences of an unchanged document gives its text and offsets again; tokens of an
augmented sentence are spaced as in print.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple

from entaug.core.data import Sentence, Span
from entaug.core.spacing import infer_spaces
from entaug.formats.base import BEFORE, ENTITY_FIELDS, before_of

__all__ = [
    "BEFORE",
    "CHAR_RANGES",
    "DOCUMENT",
    "CharMention",
    "Document",
    "group_by_document",
    "join_sentences",
    "named_documents",
]

DOCUMENT = "_document"
"""Field of a sentence: the id of its document, and the character where it begins there."""
CHAR_RANGES = "_ranges"
"""Field of a mention with more ranges of characters than of tokens: its ranges, relative to the start of the sentence.
"""
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
    mention_lines: Sequence[int] | None = None
    token_spans: Sequence[Span] | None = None


def join_sentences(sentences: Iterable[Sentence], separator: str = "\n") -> Document:
    """Join sentences to a document."""
    parts: list[str] = []
    mentions: list[CharMention] = []
    fields: dict[str, Any] = {}
    document_id: str | None = None
    tokens: list[str] = []
    offset = 0
    for number, sentence in enumerate(sentences):
        origin, start = _origin(sentence)
        if not number:
            document_id = sentence.id if origin is None else origin
            parts.append(before_of(sentence))
            offset = len(parts[0])
        elif parts[-1] and not parts[-1][-1:].isspace() and start != offset:
            parts.append(separator)
            offset += len(separator)
        # Fields of the document are those of its first sentence that has them.
        fields |= {
            name: value
            for name, value in sentence.fields.items()
            if name not in fields and name not in (BEFORE, DOCUMENT, ENTITY_FIELDS)
        }
        spaces = infer_spaces(sentence.tokens) if sentence.spaces is None else sentence.spaces
        sentence_start = offset
        token_spans = []
        for token, space in zip(sentence.tokens, spaces, strict=True):
            token_spans.append((offset, offset + len(token)))
            offset += len(token) + len(space)
            parts += [token, space] if space else [token]
        tokens += sentence.tokens
        mentions += _char_mentions(sentence, token_spans, sentence_start)
    return Document("".join(parts), mentions, document_id, fields, tokens)


def _char_mentions(sentence: Sentence, token_spans: Sequence[Span], sentence_start: int) -> Iterator[CharMention]:
    """The mentions of a sentence by characters."""
    fields = sentence.fields.get(ENTITY_FIELDS)
    if not isinstance(fields, list) or len(fields) != len(sentence.mentions):
        fields = [{}] * len(sentence.mentions)
    for mention, known_fields in zip(sentence.mentions, fields, strict=True):
        spans = tuple((token_spans[start][0], token_spans[end - 1][1]) for start, end in mention.spans)
        mention_fields = dict(known_fields)
        if ranges := mention_fields.pop(CHAR_RANGES, None):
            spans = tuple((sentence_start + start, sentence_start + end) for start, end in ranges)
        yield CharMention(mention.label, spans, mention_fields)


def group_by_document(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Group sentences by document, in order; a sentence without a document is a group of its own."""
    # Augmented sentences form documents of their own: for each document of the sources, those of one method and copy.

    def key_of(numbered: tuple[int, Sentence]) -> tuple[Any, ...]:
        number, sentence = numbered
        document_id = _origin(sentence)[0]
        if document_id is None:
            return (number,)
        provenance = sentence.provenance
        return (document_id,) if provenance is None else (document_id, provenance.method, provenance.copy)

    groups: dict[tuple[Any, ...], list[Sentence]] = {}
    for key, group in groupby(enumerate(sentences), key=key_of):
        groups.setdefault(key, []).extend(sentence for _, sentence in group)
    yield from groups.values()


def named_documents(
    sentences: Iterable[Sentence], fits: Callable[[str], object] = bool, unnamed: str = "entaug-"
) -> Iterator[tuple[str, Document, bool]]:
    """Yield each document of some sentences with a name of its own, and whether it is augmented."""
    names: set[str] = set()
    for number, group in enumerate(group_by_document(sentences), start=1):
        document = join_sentences(group)
        name = wanted = document.id if document.id and fits(document.id) else f"{unnamed}{number}"
        copy = 1
        while name in names:  # augmented from the same text
            copy += 1
            name = f"{wanted}-{copy}"
        names.add(name)
        yield name, document, any(sentence.provenance is not None for sentence in group)


def _origin(sentence: Sentence) -> tuple[str | None, int | None]:
    """The id of the document of a sentence, and the character where it begins there; None where unknown."""
    origin = sentence.fields.get(DOCUMENT)
    if isinstance(origin, list) and len(origin) == 2 and isinstance(origin[0], str) and type(origin[1]) is int:
        return origin[0], None if sentence.provenance is not None else origin[1]
    return None, None
