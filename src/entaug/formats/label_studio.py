"""Label Studio: one JSON array of tasks as it is exported and imported.

A task has ``data``, with the text under some key, and ``annotations`` (``completions`` in old exports): each a list
``result`` of regions ``{"value": {"start", "end", "text", "labels"}, "from_name", "to_name", "type": "labels", "id"}``.
The first annotation that was not cancelled is read, the others are kept and counted; tasks without such an annotation
are unlabelled, and are skipped and counted. The other fields of ``data`` are fields of the sentence; tokens and
provenance are written there.

Offsets count characters (code points) of the text; the end is exclusive. Label Studio until 2021 counted UTF-16 units:
the texts of the regions show which a file counts, and a task that counts otherwise is converted.

Tasks that nobody has annotated may have predictions of a model. They are read as labels only with
``annotations=predictions``. JSON-MIN, a shorter export, is refused: it lacks the names of labels and text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.formats.base import FormatCapabilities, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import as_object, as_objects, peek_records, read_array, read_records, to_json, write_array
from entaug.formats.text import (
    CHAR_RANGES,
    Document,
    OffsetOptions,
    Quote,
    UnitDetector,
    counter,
    join_sentences,
    locate_quotes,
    named_documents,
    split_document,
)
from entaug.formats.text_records import char_mention, cut_record, decide_offsets, layout_text, numeric_id, token_spans
from entaug.formats.token_records import pop_id, without

TASK = "_label_studio"
"""Field of a sentence: other parts of its task: ``task``, ``annotation``, ``annotations``, ``results``."""
_PREDICTIONS = "predictions"
_OTHER_REGIONS = ("hypertextlabels", "paragraphlabels", "timeserieslabels")
_OUR_ID = re.compile(r"entaug-[0-9]+")  # ids for tasks and regions without one, which Label Studio's converter needs
_NAME_TEXT = "name what holds the text: text_key"
_REMEDY = "export the project anew, as JSON"


@dataclass(frozen=True)
class LabelStudioDialect(OffsetOptions):
    """Layout of a file of Label Studio.

    Args:
        text_key: the key of the text in ``data``; empty for ``text``, or else for the only string there.
        from_name: the name of the labels in the project.
        to_name: the name of the text in the project.
        annotations: ``"annotations"``; ``"completions"``, as in old exports; or ``"predictions"``: labels that a model
            proposes for a task that nobody has annotated, with the confidence of a sentence as their ``score``.
        tokens: whether to write the tokens in addition to the text, so that the same tokens are read back.
    """

    text_key: str = ""
    from_name: str = "label"
    to_name: str = "text"
    annotations: Literal["annotations", "completions", "predictions"] = "annotations"
    tokens: bool = True

    def describe(self) -> str:
        return f"Label Studio, tasks, text under {self.text_key or 'text'!r}{self.offsets_text}"

    @property
    def names(self) -> dict[str, str]:
        """The fields that all regions of a file share."""
        return {"from_name": self.from_name, "to_name": self.to_name, "type": "labels"}


class LabelStudio(BufferedFormat):
    """The format of Label Studio; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "label-studio"
    title = "Label Studio"
    extensions = (".json",)
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=True, spaces=True)
    dialect_class = LabelStudioDialect

    def recognises(self, path: Path) -> bool:
        tasks, is_array = peek_records(path, 1)
        return is_array and any(_is_task(task) or _is_short_task(task) for task in tasks)

    def detect(self, path: Path, dialect: LabelStudioDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        detected: dict[str, Any] = {}
        tasks, is_array = peek_records(path)
        labelled = []
        for task in filter(_is_task, tasks if is_array else ()):
            if "annotations" not in task and "completions" in task:
                detected["annotations"] = "completions"
            labelled.append(_labelled(task, replace(dialect, **detected)))
        # A task may have several texts, such as its title: the one with most regions is read.
        counts = Counter(str(region.get("to_name")) for _, regions in labelled for region in regions)
        most = options.get("to_name") or next((name for name, _ in counts.most_common(1)), None)
        for data, regions in labelled:
            if of_text := [region for region in regions if str(region.get("to_name")) == most]:
                names = ((name, of_text[0].get(name)) for name in ("from_name", "to_name"))
                detected |= {name: value for name, value in names if type(value) is str}
                detected["text_key"] = _text_key(data, of_text) or ""
                break
        return detected

    def detect_dialect(self, path: Path, **options: Any) -> Any:
        dialect = super().detect_dialect(path, **options)
        if dialect.offsets != "auto":
            return dialect

        def add(task: Any, units: UnitDetector) -> None:
            data, regions = _labelled(as_object(task), dialect)
            regions = _of_the_text(data, regions, dialect)
            text = data.get(_find_text(data, regions, dialect))
            if type(text) is str:
                units.add(text, ((v["start"], v["end"], v.get("text")) for v in (r["value"] for r in regions)))

        return replace(dialect, **decide_offsets(path, dialect, add))

    def sentences(self, path: Path, dialect: LabelStudioDialect, reading: ReadReport) -> Iterator[Sentence]:
        def parse(_number: int, task: Any) -> Iterable[Sentence]:
            return cut_record(self._parse(as_object(task), dialect, reading), dialect, reading)

        dialect.note_offsets(reading)
        return read_records(path, read_array(path), parse, reading, unit="task")

    def _parse(self, task: dict[str, Any], dialect: LabelStudioDialect, reading: ReadReport) -> Document | None:
        """The document of a task; None if it is unlabelled."""
        if _is_short_task(task):
            raise InputError("a task of JSON-MIN, which is not read", remedy=_REMEDY)
        data, annotations = task.get("data"), task.get(dialect.annotations)
        if type(data) is not dict:
            raise InputError("no object 'data' in the task", remedy=_REMEDY)
        annotations = [] if annotations is None else as_objects(annotations, dialect.annotations, _REMEDY)
        index = _first_valid(annotations)
        if index == len(annotations):
            has_predictions = dialect.annotations != _PREDICTIONS and bool(task.get(_PREDICTIONS))
            hint = " (it has predictions: `annotations='predictions'` reads them)" if has_predictions else ""
            reading.notes[f"task without an annotation{hint} left out"] += 1
            return None
        results = as_objects(annotations[index].get("result"), "result", _REMEDY)
        if others := sum(not _is_cancelled(annotation) for annotation in annotations) - 1:
            reading.notes["further annotation of a task not read"] += others
        regions = _of_the_text(data, list(filter(_is_region, results)), dialect)
        are_read = set(map(id, regions))
        kept = {
            "task": without(task, ("id", "data", dialect.annotations)),
            "annotation": without(annotations[index], ("result",)),
            "annotations": [None if i == index else a for i, a in enumerate(annotations)]
            if len(annotations) > 1
            else [],
            "results": _other_results([one for one in results if id(one) not in are_read], reading),
        }
        return _text(dict(data), regions, pop_id(dict(task)), kept, dialect, reading)

    def check(self, sentence: Sentence, dialect: LabelStudioDialect) -> None:
        super().check(sentence, dialect)
        layout_text(sentence)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: LabelStudioDialect) -> None:
        def records() -> Iterator[bytes]:
            for name, text, is_augmented in named_documents(sentences):
                yield to_json(_to_task(text, name, dialect, is_augmented), name)

        write_array(path, records())

    def lost(self, sentence: Sentence, dialect: LabelStudioDialect) -> list[str]:
        taken = {dialect.text_key or "text", *(("tokens",) if dialect.tokens else ())}
        lost = super().lost(sentence, dialect)
        return lost + [f"field {name!r}" for name in sentence.fields if name in taken]


# ----------------------------------------------------------------------------------------------------- parts of a task


def _is_task(task: Any) -> bool:
    names = ("annotations", "completions", _PREDICTIONS)
    return type(task) is dict and type(task.get("data")) is dict and any(type(task.get(n)) is list for n in names)


def _is_short_task(task: Any) -> bool:
    """Whether a task is of JSON-MIN, which has the values of regions beside the text."""
    if type(task) is not dict or "data" in task:
        return False
    is_labelled = any(type(value) is list and value and _is_region_value(value[0]) for value in task.values())
    return {"annotation_id", "annotator"} <= task.keys() or (
        is_labelled and any(type(value) is str for value in task.values())
    )


def _is_region_value(value: Any) -> bool:
    return type(value) is dict and "start" in value and "end" in value and type(value.get("labels")) is list


def _is_region(result: Any) -> bool:
    """Whether a result is a labelled range of a text."""
    value: Any = result.get("value") if type(result) is dict else None
    return _is_region_value(value) and bool(value["labels"]) and not _is_of_elements(value)


def _is_of_elements(value: Any) -> bool:
    """Whether a value is of <HyperText>, with <Labels> too: its places are paths to elements."""
    return _is_region_value(value) and str(value["start"]).startswith("/")


def _is_cancelled(annotation: Mapping[str, Any]) -> bool:
    return bool(annotation.get("was_cancelled") or annotation.get("skipped"))


def _first_valid(annotations: Sequence[Mapping[str, Any]]) -> int:
    """The position of the first annotation that was not cancelled; the length of the list if there is none."""
    return next((i for i, annotation in enumerate(annotations) if not _is_cancelled(annotation)), len(annotations))


def _labelled(task: Mapping[str, Any], dialect: LabelStudioDialect) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The data of a task, and its regions; empty where it is invalid or unlabelled."""
    try:
        annotations = as_objects(task.get(dialect.annotations), "", "")
        results = as_objects(annotations[_first_valid(annotations)].get("result"), "", "")
    except (InputError, LookupError):
        return {}, []
    data = task.get("data")
    return (data, list(filter(_is_region, results))) if type(data) is dict else ({}, [])


def _find_text(data: Mapping[str, Any], regions: Sequence[Mapping[str, Any]], dialect: LabelStudioDialect) -> str:
    """The key of the text: the one of the layout, or else the one that is found."""
    return dialect.text_key if dialect.text_key in data else _text_key(data, regions) or dialect.text_key or "text"


def _text_key(data: Mapping[str, Any], regions: Sequence[Mapping[str, Any]]) -> str | None:
    """The key of the text: the string with most texts of regions; ties: named as in these, ``text``, or the longest."""
    texts = {k: _normalized(v) for k, v in data.items() if type(v) is str}
    words = [_normalized(word) for region in regions if type(word := region["value"].get("text")) is str]
    names = [region.get("to_name") for region in regions]
    fits = {k: (sum(w in text for w in words), k in names, k == "text", len(text)) for k, text in texts.items()}
    return max(fits, key=fits.__getitem__, default=None)


def _of_the_text(
    data: Mapping[str, Any], regions: Sequence[dict[str, Any]], dialect: LabelStudioDialect
) -> list[dict[str, Any]]:
    """The regions without those of another text of a task: they give its name, and their words are there alone."""
    key = _find_text(data, regions, dialect)
    others = {name: value for name, value in data.items() if name != key and type(value) is str}

    def is_other(name: Any, /, start: Any, end: Any, text: Any = None, **_: Any) -> bool:
        if name in (None, dialect.to_name) or not type(start) is type(end) is int:
            return False
        if type(text) is not str:
            return type(name) is str and name in others
        is_in = [_normalized(str(one)[start:end]) == _normalized(text) for one in (data.get(key), *others.values())]
        return not is_in[0] and any(is_in)

    return [region for region in regions if not is_other(region.get("to_name"), **region["value"])]


def _normalized(text: str) -> str:
    """Normalize a text like a browser, with single spaces and line ends of two characters."""
    return " ".join(text.replace("\\n", " ").split())


# ------------------------------------------------------------------------------------------------------ tasks in memory


def task_sentences(task: Mapping[str, Any], dialect: LabelStudioDialect, reading: ReadReport) -> list[Sentence]:
    """The sentences of the text of a task, without mentions; `regions_of` places mentions of these in the text."""
    data = task.get("data")
    if type(data) is not dict:
        raise InputError("no object 'data' in the task", remedy=_REMEDY)
    if type(data.get(dialect.text_key)) is not str:  # no other one, as in a file whose layout is found
        raise InputError(f"no string {dialect.text_key!r} in the data of the task", remedy=_NAME_TEXT)
    document = _text(dict(data), [], str(task.get("id")), {}, dialect, reading)
    return split_document(document, dialect, reading)


def regions_of(sentences: Sequence[Sentence], dialect: LabelStudioDialect) -> list[dict[str, Any]]:
    """The mentions of the sentences of a task as its regions."""
    return _regions(join_sentences(sentences), dialect)


# ------------------------------------------------------------------------------------------------------------- reading


def _other_results(others: list[dict[str, Any]], reading: ReadReport) -> list[dict[str, Any]]:
    """The results that are no mentions, with notes on those that look like some."""
    for result in others:
        if result.get("type") in _OTHER_REGIONS or _is_of_elements(result.get("value")):
            what = f"a region of the kind {result.get('type')!r} has no place in a plain text"
            raise InputError(what, remedy="only <Text> with <Labels> can be read")
        if _is_region(result):
            option = f"`to_name='{result.get('to_name')}'`"
            reading.notes[f"region of another text of its task left out ({option} reads that one)"] += 1
        elif _is_region_value(result.get("value")):  # <Labels allowEmpty>
            reading.notes["region without a label is no mention"] += 1
        elif result.get("type") == "labels":
            reading.notes["result of the type 'labels' without start, end or labels is no mention"] += 1
    return others


def _text(
    data: dict[str, Any],
    regions: Sequence[dict[str, Any]],
    id_: str | None,
    kept: Mapping[str, Any],
    dialect: LabelStudioDialect,
    reading: ReadReport,
) -> Document:
    """A text with its mentions; `kept` are the other parts of its task."""
    key = _find_text(data, regions, dialect)
    text = data.pop(key, None)
    if type(text) is not str:
        raise InputError(f"no string {key!r} in the data of the task", remedy=_NAME_TEXT)
    mentions = []
    quotes = []
    for region in regions:
        value = region["value"]
        fields = {k: v for k, v in region.items() if k != "value" and dialect.names.get(k) != v}
        if _OUR_ID.fullmatch(str(fields.get("id"))):
            del fields["id"]
        if further := without(value, ("start", "end", "text", "labels")):
            fields["value"] = further
        if len(value["labels"]) > 1:
            fields["labels"] = value["labels"]
        words = value.get("text")
        for label in value["labels"]:
            mentions.append(char_mention(label, value["start"], value["end"], fields))
            quotes.append(Quote(mentions[-1].spans, words.replace("\\n", " ") if type(words) is str else None))
    places = locate_quotes(text.replace("\\n", "  "), quotes, reading, dialect.offsets, _NAME_TEXT)
    mentions = [mention._replace(spans=place) for mention, place in zip(mentions, places, strict=True)]
    spans = token_spans(data.get("tokens"), text, reading)
    if spans is not None:
        del data["tokens"]
    if any(kept.values()):
        data[TASK] = {name: part for name, part in kept.items() if part}
    return Document(text, mentions, None if _OUR_ID.fullmatch(id_ or "") else id_, data, token_spans=spans)


# ------------------------------------------------------------------------------------------------------------- writing


def _regions(text: Document, dialect: LabelStudioDialect) -> list[dict[str, Any]]:
    """Convert the mentions of a text to regions; one region may have several labels."""
    count = counter(text.text, dialect.offsets)
    regions: list[dict[str, Any]] = []
    shared: dict[tuple[int, int, str], dict[str, Any]] = {}
    for mention in text.mentions:
        start, end = mention.spans[0][0], mention.spans[-1][1]
        fields = without(mention.fields, (CHAR_RANGES, "value", "labels"))
        labels: Any = mention.fields.get("labels")
        is_shared = type(labels) is list and mention.label in labels
        key = (start, end, str(fields.get("id")))
        if is_shared and key in shared:
            present = {*shared[key]["labels"], mention.label}
            shared[key]["labels"] = [label for label in labels if label in present]
            continue
        further = mention.fields.get("value")
        value: dict[str, Any] = dict(further) if type(further) is dict else {}
        value |= {"start": count(start), "end": count(end), "text": text.text[start:end], "labels": [mention.label]}
        if is_shared:
            shared[key] = value
        regions.append({"id": f"entaug-{len(regions) + 1}", **dialect.names, **fields, "value": value})
    return regions


def _to_task(text: Document, name: str, dialect: LabelStudioDialect, is_augmented: bool) -> dict[str, Any]:
    """Convert a text to a task, for augmented texts without the annotations and predictions of the source."""
    parts = text.fields.get(TASK)
    kept: dict[str, Any] = {} if is_augmented or type(parts) is not dict else parts
    others, results, fields = (kept.get(name) for name in ("annotations", "results", "task"))
    annotation: dict[str, Any] = {**head} if type(head := kept.get("annotation")) is dict else {}
    annotation["result"] = _regions(text, dialect)
    if type(results) is list and all(type(result) is dict for result in results):
        annotation["result"] += results
    annotations = [annotation]
    if dialect.annotations == "predictions":
        annotation.setdefault("model_version", "entaug")
        annotation |= _score(text.fields)
        fields = {"annotations": [], **(fields if type(fields) is dict else {})}
    if type(others) is list:
        annotations = [annotation if other is None else other for other in others]
    task: dict[str, Any] = {**fields} if type(fields) is dict else {}
    data: dict[str, Any] = {dialect.text_key or "text": text.text} | ({"tokens": text.tokens} if dialect.tokens else {})
    data |= without(text.fields, (TASK, *data))
    return task | {"id": numeric_id(name), "data": data, dialect.annotations: annotations}


def with_predictions(sentence: Sentence, predicted: Sentence, score: float, dialect: LabelStudioDialect) -> Sentence:
    """Return a sentence whose task has the mentions of another one as predictions, beside its own as annotation."""
    prediction = {"result": _regions(join_sentences([predicted]), dialect), "model_version": "entaug", "score": score}
    parts = sentence.meta.get(TASK)
    kept: dict[str, Any] = parts if type(parts) is dict else {}
    task = kept.get("task")
    kept = {**kept, "task": {**(task if type(task) is dict else {}), _PREDICTIONS: [prediction]}}
    return sentence.with_(meta={**sentence.meta, TASK: kept})


def _score(fields: Mapping[str, Any]) -> dict[str, float]:
    """The confidence that `predict` and `suggest` write, by which Label Studio can sort tasks."""
    suggestion = fields.get("suggestion")
    confidence = (suggestion if type(suggestion) is dict else fields).get("confidence")
    return {"score": confidence} if type(confidence) is float else {}
