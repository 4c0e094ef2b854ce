"""Label Studio: one JSON array of tasks as it is exported and imported, or the shorter JSON-MIN.

A task has ``data``, with the text under some key, and ``annotations`` (``completions`` in old exports): each a list
``result`` of regions ``{"value": {"start", "end", "text", "labels"}, "from_name", "to_name", "type": "labels", "id"}``.
The first annotation that was not cancelled is read, the others are kept and counted; tasks without one are left out
and counted, since nobody has labelled them. What else stands in ``data`` are fields of the sentence, and there our
tokens and where a sentence comes from are written.

Offsets count characters (code points) of the text, the end not included. Label Studio of 2021 and before counted units
of UTF-16, two for an emoji: where the words of the regions say so, they are read like that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeGuard

from entaug.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.formats.base import FormatCapabilities, Reading
from entaug.formats.buffered import BufferedFormat
from entaug.formats.documents import RANGES, Cutting, Text, cut, documents, joined
from entaug.formats.records import (
    char_mention,
    elements,
    fields_of,
    firsts_of_array,
    laid_out,
    name_of,
    number_or_name,
    record_in,
    refuse_gaps,
    tokens_beside,
    write_array,
    written,
)

__all__ = ["LabelStudio", "LabelStudioDialect"]

TASK = "_label_studio"
"""Field of a sentence: what its task holds besides: ``task``, ``annotation``, ``annotations``, ``results``."""
_UNLABELLED = "region without a label is no mention"
_LAYOUTS = ("tasks", "min")
_MADE = re.compile(r"entaug-[0-9]+")  # ids that we gave, since Label Studio's converter asks for one
_ANNOTATIONS = ("annotations", "completions")
_OF_MIN = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")
_OTHER_REGIONS = ("hypertextlabels", "paragraphlabels", "timeserieslabels")


@dataclass(frozen=True)
class LabelStudioDialect(Cutting):
    """How a file of Label Studio is laid out.

    Args:
        language: see `entaug.formats.documents.Cutting`, and so `split` and `misaligned`.
        layout: ``"tasks"``, or ``"min"`` for JSON-MIN.
        text_key: what the text stands under in ``data``; where it is empty, ``text``, else the one string there.
        from_name: the name of the labels in the project.
        to_name: the name of the text in the project.
        annotations: ``"annotations"``, or ``"completions"`` as in old exports.
        tokens: whether to write the tokens beside the text, so that the same are read again.
    """

    layout: str = "tasks"
    text_key: str = ""
    from_name: str = "label"
    to_name: str = "text"
    annotations: str = "annotations"
    tokens: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("layout", _LAYOUTS), ("annotations", _ANNOTATIONS)):
            if getattr(self, name) not in known:
                raise ParameterError(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")

    def describe(self) -> str:
        """One line for people."""
        layout = "JSON-MIN" if self.layout == "min" else "tasks"
        return f"Label Studio, {layout}, text under {self.text_key or 'text'!r}"


class LabelStudio(BufferedFormat):
    """The format of Label Studio; see `entaug.formats.base.Format` and `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "label-studio"
    title = "Label Studio"
    extensions = (".json",)
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=True, spaces=True)

    def recognises(self, path: Path) -> bool:
        """Whether the file is an array, and its first task as Label Studio exports it."""
        return any(_layout(task) is not None for task in firsts_of_array(path, 1))

    def dialect(self, **options: Any) -> LabelStudioDialect:
        """A dialect from options given by hand."""
        return LabelStudioDialect(**{name: value for name, value in options.items() if value is not None})

    def look(self, path: Path, **options: Any) -> LabelStudioDialect:
        """Find layout and names from the first labelled task; faults are left for reading to tell."""
        found: dict[str, Any] = {}
        for task in firsts_of_array(path):
            if type(task) is not dict:
                continue
            found["layout"] = _layout(task) or "tasks"
            if "annotations" not in task and "completions" in task:
                found["annotations"] = "completions"
            data, regions = _labelled(task, found)
            if regions:
                found |= {key: regions[0][key] for key in ("from_name", "to_name") if type(regions[0].get(key)) is str}
                found["text_key"] = _text_key(data, regions) or ""
                break
        return replace(self.dialect(**options), **{k: v for k, v in found.items() if options.get(k) is None})

    def sentences(self, path: Path, dialect: LabelStudioDialect, reading: Reading) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat`.

        Raises:
            InputError: no JSON, a task without what it needs, a region that does not fit, an id that was there before.
        """
        seen: dict[str, int] = {}
        empty = True
        for number, task in enumerate(elements(path), start=1):
            try:
                text = _of_min(task, dialect, reading) if dialect.layout == "min" else _of_task(task, dialect, reading)
                sentences = () if text is None else cut(text, dialect, reading)
                if text is not None and not sentences:
                    reading.notes["text of white space alone left out"] += 1
                for sentence in sentences:
                    empty = False
                    reading.line = number
                    twice = sentence.id is not None and reading.repeats(sentence.id, number, seen)
                    yield sentence.with_(id=None) if twice else sentence
            except InputError as error:
                empty = False
                error.stands(str(path), record=f"task {number}")
                reading.fault(error)
        if empty:
            left = "; ".join(f"{what}: {count}" for what, count in reading.notes.items())
            what = f"no labelled text in it ({left})" if left else "no labelled text in it"
            raise InputError(what, path=str(path), remedy="give an export of labelled tasks")

    def check(self, sentence: Sentence, dialect: LabelStudioDialect) -> None:
        """Raise where a sentence cannot be written.

        Raises:
            LossError: a mention is discontinuous; tokens that could not be found again in the text.
        """
        del dialect
        refuse_gaps(sentence, self.title)
        laid_out(sentence)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: LabelStudioDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat`."""
        names: set[str] = set()

        def records() -> Iterator[str]:
            for number, group in enumerate(documents(sentences), start=1):
                text = joined(group)
                name = wanted = f"entaug-{number}" if text.id is None else text.id
                copy = 1
                while name in names:  # what was made of the same text
                    copy += 1
                    name = f"{wanted}-{copy}"
                names.add(name)
                augmented = any(sentence.provenance is not None for sentence in group)
                task = (_min if dialect.layout == "min" else _task)(text, name, dialect, augmented)
                yield written(task, name)

        write_array(path, records())

    def lost(self, sentence: Sentence, dialect: LabelStudioDialect) -> list[str]:
        """Columns, and fields whose names are taken."""
        taken = {dialect.text_key or "text", *(("tokens",) if dialect.tokens else ())}
        lost = [f"field {key!r}" for key in sentence.fields if key in taken]
        return [f"column {name!r}" for name in sentence.columns] + lost


# ------------------------------------------------------------------------------------------------------------- looking


def _layout(task: Any) -> str | None:
    """The layout that a task is of; None where it is none of Label Studio."""
    if type(task) is not dict:
        return None
    if type(task.get("data")) is dict and any(type(task.get(key)) is list for key in _ANNOTATIONS):
        return "tasks"
    if "annotation_id" in task and "annotator" in task:
        return "min"
    labelled = any(type(value) is list and value and _is_region_value(value[0]) for value in task.values())
    return "min" if labelled and any(type(value) is str for value in task.values()) else None


def _is_region_value(value: Any) -> bool:
    return type(value) is dict and "start" in value and "end" in value and type(value.get("labels")) is list


def _is_unlabelled(value: Any) -> bool:
    """Whether it is a region that was marked and given no label, as <Labels allowEmpty> lets people do."""
    return _is_region_value(value) and not value["labels"]


def _is_region(result: Any) -> bool:
    """Whether a result is a labelled range of a text."""
    return type(result) is dict and _is_region_value(result.get("value")) and bool(result["value"]["labels"])


def _labelled(task: dict[str, Any], found: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The data of a task, and its regions."""
    if found["layout"] == "min":
        keys = (k for k, v in task.items() if type(v) is list and v and _is_region_value(v[0]))
        return task, [{"value": value, "from_name": key} for key in keys for value in task[key][:1]]
    data, annotations = task.get("data"), task.get(found.get("annotations", "annotations"))
    chosen = _chosen(annotations) if _are_objects(annotations) else None
    results = chosen[1].get("result") if chosen else None
    if type(data) is not dict or not _are_objects(results):
        return {}, []
    return data, [result for result in results if _is_region(result)]


def _text_key(data: Mapping[str, Any], regions: Sequence[Mapping[str, Any]] = ()) -> str | None:
    """What the text stands under: the string with most words of regions; of several ``text``, or the longest."""
    texts = {k: _printed(v) for k, v in data.items() if type(v) is str and k not in _OF_MIN}
    words = [_printed(word) for region in regions if type(word := region["value"].get("text")) is str]
    return max(texts, key=lambda k: (sum(w in texts[k] for w in words), k == "text", len(texts[k])), default=None)


# ------------------------------------------------------------------------------------------------------------- reading


def _are_objects(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    return type(value) is list and all(type(one) is dict for one in value)


def _cancelled(annotation: Mapping[str, Any]) -> bool:
    return bool(annotation.get("was_cancelled") or annotation.get("skipped"))


def _chosen(annotations: Sequence[dict[str, Any]]) -> tuple[int, dict[str, Any]] | None:
    """The first annotation that was not cancelled, and its place."""
    return next(((i, one) for i, one in enumerate(annotations) if not _cancelled(one)), None)


def _of_task(task: Any, dialect: LabelStudioDialect, reading: Reading) -> Text | None:
    """The text of a task; None where nobody has labelled it."""
    data, annotations = record_in(task).get("data"), task.get(dialect.annotations)
    if type(data) is not dict:
        raise InputError("no object 'data' in the task", remedy="export the project as JSON or JSON-MIN")
    annotations = [] if annotations is None else annotations
    if not _are_objects(annotations):
        raise InputError(f"{dialect.annotations!r} is not a list of objects", remedy="export the project anew")
    chosen = _chosen(annotations)
    if chosen is None:
        reading.notes["task without an annotation left out"] += 1
        return None
    place, annotation = chosen
    results = annotation.get("result")
    if not _are_objects(results):
        raise InputError("'result' of an annotation is not a list of objects", remedy="export the project anew")
    others = sum(not _cancelled(one) for one in annotations) - 1
    if others:
        reading.notes["further annotation of a task not read"] += others
    unlabelled = sum(_is_unlabelled(result.get("value")) for result in results)
    if unlabelled:
        reading.notes[_UNLABELLED] += unlabelled
    kept: dict[str, Any] = {
        "task": {k: v for k, v in task.items() if k not in ("id", "data", dialect.annotations)},
        "annotation": {k: v for k, v in annotation.items() if k != "result"},
        "annotations": [None if i == place else a for i, a in enumerate(annotations)] if len(annotations) > 1 else [],
        "results": [result for result in results if not _is_region(result)],
    }
    for result in kept["results"]:
        if result.get("type") in _OTHER_REGIONS:
            what = f"a region of the kind {result['type']!r} has no place in a plain text"
            raise InputError(what, remedy="only <Text> with <Labels> can be read")
    return _text(data, [result for result in results if _is_region(result)], name_of(task), kept, dialect, reading)


def _of_min(task: Any, dialect: LabelStudioDialect, reading: Reading) -> Text:
    """The text of a task of JSON-MIN, which has the values of regions alone."""
    values = record_in(task).get(dialect.from_name, [])
    if type(values) is not list or not all(_is_region_value(value) for value in values):
        raise InputError(f"{dialect.from_name!r} is not a list of regions", remedy="export the project anew")
    data = fields_of(task, (dialect.from_name,))
    if unlabelled := sum(map(_is_unlabelled, values)):
        reading.notes[_UNLABELLED] += unlabelled
    return _text(data, [{"value": value} for value in values], name_of(task), {}, dialect, reading)


def _text(
    data: Mapping[str, Any],
    regions: Sequence[dict[str, Any]],
    name: str | None,
    kept: dict[str, Any],
    dialect: LabelStudioDialect,
    reading: Reading,
) -> Text:
    """A text with its mentions; what stands besides is `kept`."""
    key = dialect.text_key if dialect.text_key in data else _text_key(data, regions) or dialect.text_key or "text"
    text = data.get(key)
    if type(text) is not str:
        raise InputError(f"no string {key!r} in the data of the task", remedy="name what holds the text: text_key")
    mentions = []
    usual = _names(dialect)
    for region, (start, end) in zip(regions, _places(text, regions, reading), strict=True):
        value = region["value"]
        more = {k: v for k, v in value.items() if k not in ("start", "end", "text", "labels")}
        fields = {k: v for k, v in region.items() if k != "value" and usual.get(k) != v}
        if _MADE.fullmatch(str(fields.get("id"))):
            del fields["id"]
        if more:
            fields["value"] = more
        if len(value["labels"]) > 1:
            fields["labels"] = value["labels"]
        mentions += [char_mention(label, start, end, fields) for label in value["labels"]]
    tokens = tokens_beside(data.get("tokens"), text, reading)
    about = {k: v for k, v in data.items() if k != key and (k != "tokens" or tokens is None)}
    if any(kept.values()):
        about[TASK] = {k: v for k, v in kept.items() if v}
    return Text(text, mentions, None if _MADE.fullmatch(name or "") else name, about, places=tokens)


def _names(dialect: LabelStudioDialect) -> dict[str, str]:
    """What most regions of a file say."""
    return {"from_name": dialect.from_name, "to_name": dialect.to_name, "type": "labels"}


def _places(text: str, regions: Sequence[dict[str, Any]], reading: Reading) -> list[tuple[Any, Any]]:
    """Where regions begin and end, in characters; an error where their words are not those of the place."""

    def wrong(places: Sequence[tuple[Any, Any]]) -> list[int]:
        pairs = enumerate(zip(words, places, strict=True))
        known = ((i, said, text[a:b]) for i, (said, (a, b)) in pairs if type(said) is str and type(a) is type(b) is int)
        return [i for i, said, there in known if said != there and _printed(said) != _printed(there)]

    words = [region["value"].get("text") for region in regions]
    places = [(region["value"]["start"], region["value"]["end"]) for region in regions]
    amiss = wrong(places)
    if not amiss:
        return places
    if text and max(text) > "\uffff":
        # Where the characters begin in units of UTF-16.
        starts = accumulate((2 if char > "\uffff" else 1 for char in text), initial=0)
        characters = {unit: i for i, unit in enumerate(starts)}
        older = [(characters.get(a, a), characters.get(b, b)) for a, b in places if type(a) is type(b) is int]
        if len(older) == len(places) and not wrong(older):
            reading.notes["text whose offsets count units of UTF-16, as in old Label Studio"] += 1
            return older
    if not reading.repair:
        remedy = "name what holds the text: text_key; or pass --repair to believe the offsets"
        faults = []
        for i in amiss:
            start, end = places[i]
            what = f"a region is at {start}-{end}, where the text has {text[start:end]!r:.60} and not {words[i]!r:.60}"
            faults.append(InputError(what, remedy=remedy))
        faults[0].also = faults[1:]
        raise faults[0]
    reading.repaired["region with other words than those of its place"] += len(amiss)
    return places


def _printed(text: str) -> str:
    """A text as a browser shows it: it has its own mind about white space, and writes line ends as two characters."""
    return " ".join(text.replace("\\n", " ").split())


# ------------------------------------------------------------------------------------------------------------- writing


def _regions(text: Text, dialect: LabelStudioDialect) -> list[dict[str, Any]]:
    """The mentions of a text as regions; those that were one region with several labels are one again."""
    regions: list[dict[str, Any]] = []
    shared: dict[tuple[int, int, str], dict[str, Any]] = {}
    for mention in text.mentions:
        start, end = mention.spans[0][0], mention.spans[-1][1]
        fields = {k: v for k, v in mention.fields.items() if k not in (RANGES, "value", "labels")}
        told = mention.fields.get("labels")
        labels = told if type(told) is list and mention.label in told else []
        key = (start, end, str(fields.get("id")))
        if labels and key in shared:
            held = {*shared[key]["labels"], mention.label}
            shared[key]["labels"] = [label for label in labels if label in held]
            continue
        more = mention.fields.get("value")
        value: dict[str, Any] = dict(more) if type(more) is dict else {}
        value |= {"start": start, "end": end, "text": text.text[start:end], "labels": [mention.label]}
        if labels:
            shared[key] = value
        regions.append({"id": f"entaug-{len(regions) + 1}", **_names(dialect), **fields, "value": value})
    return regions


def _data(text: Text, dialect: LabelStudioDialect) -> dict[str, Any]:
    data: dict[str, Any] = {dialect.text_key or "text": text.text}
    if dialect.tokens:
        data["tokens"] = text.tokens
    for key, value in text.fields.items():
        if key != TASK:
            data.setdefault(key, value)
    return data


def _task(text: Text, name: str, dialect: LabelStudioDialect, augmented: bool) -> dict[str, Any]:
    """A text as a task. What people and models said of another text than this is left out."""
    told = text.fields.get(TASK)
    kept: dict[str, Any] = {} if augmented or type(told) is not dict else told
    head, others, results, about = (kept.get(key) for key in ("annotation", "annotations", "results", "task"))
    annotation = {**head} if type(head) is dict else {}
    annotation["result"] = _regions(text, dialect) + (results if _are_objects(results) else [])
    annotations = [annotation if one is None else one for one in others] if type(others) is list else [annotation]
    task: dict[str, Any] = {**about} if type(about) is dict else {}
    return task | {"id": number_or_name(name), "data": _data(text, dialect), dialect.annotations: annotations}


def _min(text: Text, name: str, dialect: LabelStudioDialect, augmented: bool) -> dict[str, Any]:
    """A text as a task of JSON-MIN."""
    data = _data(text, dialect)
    if augmented:
        data = {key: value for key, value in data.items() if key not in _OF_MIN}
    regions = [region["value"] for region in _regions(text, dialect)]
    return {"id": number_or_name(name), **data, dialect.from_name: regions}
