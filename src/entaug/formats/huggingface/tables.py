"""Tables of Hugging Face as sentences, and back: a row is a sentence, a column what each says of something.

Flat mentions are a column of tags, which are numbers with names (``ClassLabel``); nested and discontinuous ones are a
column of entities with ``label`` and ``spans``. Further values of tokens are columns of lists, fields are columns of
their own where their values are of one kind; the others stand as JSON in the column ``entaug_fields``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any

from entaug.alignment import align_spaces
from entaug.data import Mention, Sentence, split_fields
from entaug.errors import InputError, MissingExtraError
from entaug.formats.base import ENTITY_FIELDS, Reading
from entaug.tags import InvalidTag, SchemeDetector, decode_canonical, is_tag

__all__ = ["JSON_COLUMN", "RESERVED", "HfDialect", "Source", "found_in", "pyarrow", "sentences_of"]

JSON_COLUMN = "entaug_fields"
"""Column: what has no column of its own, as JSON."""
_TOKENS = ("tokens", "words", "token", "word")
_TAGS = ("ner_tags", "ner", "ner_labels", "tags", "labels", "ner_tag", "tag", "label", "bio_tags", "iob_tags")
_ENTITIES = ("entities", "mentions", "spans", "entity_mentions", "ner")
RESERVED = frozenset((*_TOKENS, *_TAGS, *_ENTITIES))
"""Names of columns that are taken for those of tokens or mentions."""
_LABELS = ("label", "type", "entity_type")


@dataclass(frozen=True)
class HfDialect:
    """How a table is laid out.

    Args:
        token_column: the column of tokens.
        tag_column: the column of tags.
        entity_column: the column of entities.
        mentions: where mentions are: ``"tags"``, ``"entities"``, or ``"auto"``: in entities where any sentence has
            nested or discontinuous ones, else in tags.
        scheme: that of the tags.
        names: what the numbers of tags stand for, in order; those that are not there are added when it is written.
        overlap: what to write of nested and discontinuous mentions: see `entaug.tags.flatten`.
        split_name: which part of a folder with several to read.
        columns: the columns of further values of tokens.
        classes: for other columns of numbers what these stand for.
    """

    token_column: str = "tokens"  # noqa: S105 - no password
    tag_column: str = "ner_tags"
    entity_column: str = "entities"
    mentions: str = "auto"
    scheme: str = "IOB2"
    names: tuple[str, ...] = ()
    overlap: str = "error"
    split_name: str | None = None
    columns: tuple[str, ...] = field(default=(), repr=False)
    classes: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)

    def describe(self) -> str:
        """One line for people."""
        tags = f"{self.scheme} tags in {self.tag_column!r}"
        entities = f"{self.entity_column!r}"
        auto = f"{tags}, or mentions in {entities} where there are nested ones"
        where = {"tags": tags, "entities": f"mentions in {entities}", "auto": auto}
        return f"table, tokens in {self.token_column!r}, {where[self.mentions]}"


@dataclass(frozen=True)
class Source:
    """A table that is read piece by piece.

    Args:
        schema: its columns.
        features: what Hugging Face says of them, by name.
        batches: begins to read, and gives pieces of it with the columns that are named (by default all).
    """

    schema: Any
    features: Mapping[str, Any]
    batches: Callable[[Sequence[str] | None], Iterator[Any]]


def pyarrow() -> Any:
    """Pyarrow, where it is installed."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError(error.name or "pyarrow", "datasets") from None
    return pa


# ------------------------------------------------------------------------------------------------------------- looking


def _item(feature: Any) -> Any:
    """What Hugging Face says of the items of lists."""
    if isinstance(feature, list) and len(feature) == 1:
        return feature[0]
    return feature.get("feature") if isinstance(feature, dict) else None


def _names(feature: Any) -> tuple[str, ...] | None:
    """The names of numbers."""
    if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return tuple(names)
    return None


def _is_list(kind: Any, of: str) -> bool:
    """Whether a type is that of lists of strings, whole numbers, or structures."""
    types = pyarrow().types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    value = kind.value_type
    if types.is_dictionary(value):
        value = value.value_type
    if of == "text":
        return bool(types.is_string(value) or types.is_large_string(value) or types.is_string_view(value))
    return bool(types.is_integer(value) if of == "number" else types.is_struct(value))


def _is_entities(kind: Any) -> bool:
    """Whether a type is that of entities: a list of structures; in older versions, a structure of lists."""
    types = pyarrow().types
    inner = kind.value_type if _is_list(kind, "struct") else kind
    if not types.is_struct(inner):
        return False
    known = {inner.field(i).name for i in range(inner.num_fields)}
    return bool(known & {*_LABELS}) and ("spans" in known or {"start", "end"} <= known)


def found_in(source: Source, given: HfDialect, options: Mapping[str, Any]) -> HfDialect:
    """The dialect of a table, found by looking.

    Args:
        source: the table.
        given: the dialect with the options that were given by hand.
        options: these; they win.

    Raises:
        InputError: there is no column of tokens, or none of the name that was given.
    """
    kinds = {one.name: one.type for one in source.schema}
    if len(kinds) < len(source.schema):
        raise InputError("two columns of one name", remedy="rename one")
    for option in ("token_column", "tag_column", "entity_column"):
        if options.get(option) is not None and options[option] not in kinds:
            raise InputError(f"no column {options[option]!r}", remedy=f"it has: {', '.join(kinds)}")
    texts = [name for name, kind in kinds.items() if _is_list(kind, "text")]
    numbers = [name for name, kind in kinds.items() if _is_list(kind, "number")]
    changes: dict[str, Any] = {}
    tokens = options.get("token_column") or next((name for name in _TOKENS if name in texts), None)
    first = next(source.batches(None), None)
    rows = {} if first is None else {name: _rows(first.column(name)) for name in (*texts, *numbers)}
    tag_names = {name: _names(_item(source.features.get(name))) for name in numbers}
    like_tags = [name for name in texts if _look_like_tags(value for row in rows.get(name, ()) for value in row or ())]
    if tokens is None:
        others = [name for name in texts if name not in like_tags]
        if len(others) != 1:
            told = f"several could be: {', '.join(others)}" if others else f"it has: {', '.join(kinds) or 'no column'}"
            raise InputError("no column of tokens is known", remedy=f"name it: token_column; {told}")
        tokens = others[0]
    elif tokens not in texts:
        raise InputError(f"the column {tokens!r} holds no lists of strings", remedy="name another: token_column")
    changes["token_column"] = tokens
    could = [name for name in like_tags if name != tokens]
    could += [name for name, names in tag_names.items() if names and _look_like_tags(names)]
    known = [name for name in _TAGS if name in could]
    known += [name for name in _TAGS if name in numbers and (name == "ner_tags" or options.get("names"))]
    tags = options.get("tag_column") or next(iter(known), could[0] if len(could) == 1 else None)
    entities = options.get("entity_column") or next(
        (name for name in _ENTITIES if name in kinds and _is_entities(kinds[name])), None
    )
    if tags is not None:
        changes |= {"tag_column": tags, "names": tag_names.get(tags) or ()}
        evidence = SchemeDetector()
        named = given.names or changes["names"]
        for row in rows.get(tags, ()):
            evidence.update(tag for tag in (_named(value, named) for value in row or ()) if tag is not None)
        changes["scheme"] = evidence.scheme()
    if entities is not None:
        changes["entity_column"] = entities
    changes["mentions"] = "entities" if entities is not None else "tags" if tags is not None else "auto"
    if options.get("mentions") == "tags" or (options.get("tag_column") and not options.get("entity_column")):
        changes["mentions"] = "tags"
    of_tokens = [
        name for name in (*texts, *numbers) if name not in (tokens, tags) and (name in texts or tag_names[name])
    ]
    changes["columns"] = tuple(_as_long(source, tokens, of_tokens))
    classes = {name: names for name in of_tokens if (names := tag_names.get(name))}
    classes |= {name: names for name in kinds if (names := _names(source.features.get(name)))}
    changes["classes"] = tuple(classes.items())
    return replace(given, **{name: value for name, value in changes.items() if options.get(name) is None})


def _look_like_tags(values: Iterable[Any]) -> bool:
    some = list(islice(values, 5000))
    return "O" in some and all(isinstance(value, str) and is_tag(value) for value in some)


def _named(value: Any, names: Sequence[str]) -> str | None:
    if isinstance(value, str):
        return value
    return names[value] if type(value) is int and 0 <= value < len(names) else None


def _as_long(source: Source, tokens: str, names: Sequence[str]) -> Sequence[str]:
    """Those columns that have a value for each token, in every row that has them."""
    if not names:
        return ()
    from pyarrow import compute

    fitting = list(names)
    for batch in source.batches([tokens, *names]):
        n = compute.list_value_length(batch.column(tokens))
        for name in tuple(fitting):
            same = compute.equal(n, compute.list_value_length(batch.column(name)))
            if compute.all(same).as_py() is False:
                fitting.remove(name)
    return fitting


# ------------------------------------------------------------------------------------------------------------- reading


def _rows(column: Any) -> list[Any]:
    """The values of a column, lists as lists."""
    pa = pyarrow()
    kind = column.type
    flat = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not flat or pa.types.is_nested(kind.value_type) or column.null_count:
        return list(column.to_pylist())
    bounds = column.offsets.to_pylist()
    values = column.values.slice(bounds[0], bounds[-1] - bounds[0]).to_pylist()
    begin = bounds[0]
    return [values[a - begin : b - begin] for a, b in pairwise(bounds)]


def sentences_of(source: Source, dialect: HfDialect, reading: Reading, path: str | None) -> Iterator[Sentence]:
    """The sentences of a table.

    Args:
        source: the table.
        dialect: how it is laid out.
        reading: what was met.
        path: its file, for messages.

    Raises:
        InputError: a row that is no sentence, an id that was there before, no sentence at all.
    """
    classes = dict(dialect.classes)
    kinds = {one.name: one.type for one in source.schema}
    kept = []
    for name, kind in kinds.items():
        if _is_plain(kind) or _is_printed(kind):
            kept.append(name)
        else:
            reading.notes[f"column {name!r} of {kind} left out"] += 1
    if dialect.mentions == "tags" and not dialect.names and _is_list(kinds.get(dialect.tag_column), "number"):
        told = f"the numbers in {dialect.tag_column!r} have no names"
        raise InputError(told, path=path, remedy="give them in order, such as names=O,B-PER,I-PER")
    seen: dict[str, int] = {}
    number = 0
    for batch in source.batches(kept):
        columns = {name: _rows(_printed(batch.column(name))) for name in kept}
        for values in zip(*columns.values(), strict=True):
            number += 1
            row = dict(zip(columns, values, strict=True))
            try:
                sentence = _sentence(row, dialect, classes, reading)
                if reading.repeats(sentence.id, number, seen):
                    sentence = sentence.with_(id=None)
            except InputError as error:
                error.path, error.message = path, f"row {number}: {error.message}"
                reading.fault(error)
                continue
            reading.line = number
            yield sentence
    if not number:
        raise InputError("no sentence in it", path=path, remedy="give one with labelled sentences")


def _is_printed(kind: Any) -> bool:
    """Whether values of a type are kept as they are printed: dates, times, exact numbers."""
    types = pyarrow().types
    return bool(types.is_temporal(kind) or types.is_decimal(kind))


def _printed(column: Any) -> Any:
    return column.cast(pyarrow().string()) if _is_printed(column.type) else column


def _is_plain(kind: Any) -> bool:
    """Whether values of a type are JSON."""
    types = pyarrow().types
    if types.is_dictionary(kind):
        return _is_plain(kind.value_type)
    if types.is_struct(kind):
        return all(_is_plain(kind.field(i).type) for i in range(kind.num_fields))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_plain(kind.value_type)
    tests = ("string", "large_string", "string_view", "integer", "floating", "boolean", "null")
    return any(getattr(types, f"is_{name}")(kind) for name in tests)


def _sentence(
    row: dict[str, Any], dialect: HfDialect, classes: Mapping[str, Sequence[str]], reading: Reading
) -> Sentence:
    tokens = row.pop(dialect.token_column)
    if not isinstance(tokens, list):
        raise InputError(f"no list in {dialect.token_column!r}", remedy="remove the row")
    extras: list[dict[str, Any]] = []
    mentions: Sequence[Mention] = ()
    tags = row.pop(dialect.tag_column, None) if dialect.mentions == "tags" else None
    if tags is not None:
        mentions = _from_tags(tags, len(tokens), dialect, reading)
    elif dialect.mentions == "entities":
        mentions, extras = _from_entities(row.pop(dialect.entity_column, None), dialect)
    columns = _columns(row, len(tokens), dialect, classes)
    for name, names in classes.items():
        if type(row.get(name)) is int:
            row[name] = _named(row[name], names)
    more = row.pop(JSON_COLUMN, None)
    meta = {name: value for name, value in row.items() if value is not None and not _is_missing(value)}
    if more is not None:
        meta |= _loaded(more)
    id_ = meta.pop("id") if type(meta.get("id")) in (str, int) else None
    if any(extras) and ENTITY_FIELDS not in meta:
        meta[ENTITY_FIELDS] = extras
    more = meta.get("columns")
    if isinstance(more, dict) and all(_fits(values, len(tokens)) for values in more.values()):
        columns |= {name: tuple(values) for name, values in more.items()}
        del meta["columns"]
    spaces = _spaces(tokens, meta)
    sentence_id = None if id_ is None else str(id_)
    return Sentence(tokens, mentions, sentence_id, columns=columns, spaces=spaces, **split_fields(meta))


def _is_missing(value: Any) -> bool:
    return isinstance(value, float) and value != value  # noqa: PLR0124 - no number is what pandas makes of nothing


def _columns(
    row: dict[str, Any], n: int, dialect: HfDialect, classes: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """The further values of tokens, taken out of a row."""
    columns = {}
    for name in dialect.columns:
        values = row.pop(name, None)
        if values is not None:
            names = classes.get(name)
            made = values if names is None else [_named(value, names) for value in values]
            if not _fits(made, n):
                raise InputError(f"column {name!r} has no value for each token", remedy="mend the row")
            columns[name] = tuple(made)
    return columns


def _spaces(tokens: Any, meta: dict[str, Any]) -> tuple[str, ...] | None:
    """The white space after each token, where the fields tell it, which are then taken out."""
    if _fits(meta.get("_spaces"), len(tokens)):
        meta.pop("text", None)
        return tuple(meta.pop("_spaces"))
    text = meta.get("text")
    if type(text) is not str or not all(type(token) is str and token for token in tokens):
        return None
    spaces = align_spaces(tokens, text)
    if spaces is not None:
        del meta["text"]
    return spaces


def _fits(values: Any, n: int) -> bool:
    return isinstance(values, list) and len(values) == n and all(type(value) is str for value in values)


def _loaded(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {JSON_COLUMN: text}


def _from_tags(tags: Any, n: int, dialect: HfDialect, reading: Reading) -> Sequence[Mention]:
    if not isinstance(tags, list) or len(tags) != n:
        count = len(tags) if isinstance(tags, list) else 0
        raise InputError(f"{count} tags for {n} tokens", remedy="mend the row")
    if tags.count("O") == n or (tags.count(0) == n and dialect.names[:1] == ("O",)):
        return ()
    named = [_named(tag, dialect.names) for tag in tags]
    if None in named:
        odd = tags[named.index(None)]
        raise InputError(f"a tag {odd!r} that has no name", remedy="mend the row, or give the names")
    try:
        return decode_canonical(
            [str(tag) for tag in named], dialect.scheme, reading.repaired if reading.repair else None
        )
    except InvalidTag as fault:
        raise InputError(f"token {fault.index + 1}: {fault.message}", remedy=fault.remedy) from None


def _from_entities(entities: Any, dialect: HfDialect) -> tuple[list[Mention], list[dict[str, Any]]]:
    """Mentions in their order, each with what else is said of it."""
    if isinstance(entities, dict):  # a structure of lists
        lists = [values if isinstance(values, list) else [] for values in entities.values()]
        entities = [dict(zip(entities, values, strict=False)) for values in zip(*lists, strict=False)]
    found = []
    if entities is not None and not isinstance(entities, list):
        raise InputError(f"no list in {dialect.entity_column!r}", remedy="mend the row")
    for entity in entities or ():
        if not isinstance(entity, dict):
            raise InputError(f"an entity in {dialect.entity_column!r} that is none", remedy="mend the row")
        name = next((name for name in _LABELS if entity.get(name) is not None), "label")
        label = entity.get(name)
        spans = entity.get("spans")
        place = ("start", "end") if spans is None else ("spans",)
        if spans is None:
            spans = [[entity.get("start"), entity.get("end")]]
        if not isinstance(label, str) or not isinstance(spans, list):
            raise InputError(f"an entity without label or place: {entity!r:.80}", remedy="mend the row")
        extra = {key: value for key, value in entity.items() if key not in (name, *place) and value is not None}
        found.append((Mention(label, [tuple(span) if isinstance(span, list) else span for span in spans]), extra))
    found.sort(key=lambda pair: (pair[0].spans, pair[0].label))
    return [mention for mention, _ in found], [extra for _, extra in found]
