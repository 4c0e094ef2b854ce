"""A checker of brat's standoff format, from its documentation alone: nothing of ours is imported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"  # where Python's readers of files begin a new line


def faults_of_folder(folder: Path) -> list[str]:
    """What is wrong in a folder of documents and in those below it."""
    found = []
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        if file.name.endswith(".entaug.json"):
            continue
        other = file.with_suffix({".txt": ".ann", ".ann": ".txt"}.get(file.suffix, ".?"))
        if not other.is_file():
            found.append(f"{file.name} is alone")
        elif file.suffix == ".ann":
            # Bytes are decoded as brat does: no universal newlines, no dropping of a byte-order mark.
            text, lines = other.read_bytes().decode("utf-8"), file.read_bytes().decode("utf-8")
            found += [f"{file.name}: {fault}" for fault in faults(text, lines)]
    return found


def faults(text: str, annotations: str) -> Iterator[str]:
    """What is wrong with the annotations of a text."""
    if not annotations:
        return
    types: dict[str, str] = {}
    referred: list[tuple[str, str, str]] = []
    for line in annotations.split("\n")[: -1 if annotations.endswith("\n") else None]:
        name, tab, rest = line.removesuffix("\r").partition("\t")
        kind = name[:1]
        if not tab:
            yield f"no tab in {line!r}"
        elif kind not in "TREAMN#*":
            yield f"unknown kind of line {line!r}"
        elif name != "*" and not re.fullmatch(r"[TREAMN#][0-9]+", name):
            yield f"id {name!r}"
        elif name != "*" and name in types:
            yield f"id {name} twice"
        else:
            data, _, tail = rest.partition("\t")
            types[name] = re.split("[ :]", data)[0]
            check = {"T": _bound, "R": _relation, "E": _event, "*": _equivalence, "N": _normalisation}.get(kind, _about)
            fault, refers = check(data, tail, text)
            if fault:
                yield f"{fault}: {line!r}"
            referred += [(name, types[name], one) for one in refers]
    for name, type_, one in referred:
        if one not in types:
            yield f"{name} refers to {one}"
        if (
            name[0] == "E"
            and one == next(o for n, _, o in referred if n == name)
            and (one[0], types[one]) != ("T", type_)
        ):
            yield f"trigger of {name}"


Selection = tuple[str, list[str]]


def _bound(data: str, tail: str, text: str) -> Selection:
    found = re.fullmatch(r"(\S+) (\d+ \d+(?:;\d+ \d+)*)", data)
    if not found:
        return "text-bound", []
    spans = [tuple(map(int, span.split())) for span in found[2].split(";")]
    if any(not 0 <= start < end <= len(text) for start, end in spans):
        return "offsets", []
    if any(a < d and c < b for i, (a, b) in enumerate(spans) for c, d in spans[:i]):
        return "overlap", []
    wanted = " ".join(text[start:end] for start, end in spans)
    if any(c in BREAKS for c in wanted):
        return "line end in a range", []
    if not tail.startswith(wanted) or tail[len(wanted) :][:1].strip():
        return f"text is not {wanted!r}", []
    return "", []


def _pairs(words: list[str]) -> list[list[str]]:
    return [word.split(":") for word in words]


def _relation(data: str, tail: str, text: str) -> Selection:
    pairs = _pairs(data.split(" ")[1:])
    good = len(pairs) == 2 and all(len(pair) == 2 and all(pair) for pair in pairs) and pairs[0][0] != pairs[1][0]
    return ("", [pair[1] for pair in pairs]) if good else ("relation", [])


def _event(data: str, tail: str, text: str) -> Selection:
    pairs = _pairs(data.rstrip(" ").split(" "))
    good = all(len(pair) == 2 and all(pair) for pair in pairs)
    return ("", [pair[1] for pair in pairs]) if good else ("event", [])


def _equivalence(data: str, tail: str, text: str) -> Selection:
    words = data.split(" ")
    return ("", words[1:]) if len(words) > 2 and all(words) else ("equivalence", [])


def _normalisation(data: str, tail: str, text: str) -> Selection:
    found = re.fullmatch(r"\S+ (\S+) [^\s:]+:\S+", data)
    return ("", [found[1]]) if found else ("normalisation", [])


def _about(data: str, tail: str, text: str) -> Selection:
    """Attributes, modifiers and notes."""
    words = data.split(" ")
    return ("", words[1:2]) if len(words) in (2, 3) and all(words) else ("attribute or note", [])
