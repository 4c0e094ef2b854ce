"""No reader drops or invents words or labels without an error or a note: files of all text formats, damaged at random.

Every word and every label of a file is a marker that occurs once. So what a damaged file still holds is known without
a reader: a marker that stands in its text is read, or an error or a note says what is not.
"""

from __future__ import annotations

import itertools
import re
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import entaug
from conftest import examples
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputWarning, MissingExtraError
from entaug.formats.base import ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.files import FORMATS, find_format, open_file

WORD, LABEL = re.compile("w[a-g]{3}"), re.compile("L[A-G]{3}")
WORDS, LABELS = (
    [prefix + "".join(letters) for letters in itertools.product(alphabet, repeat=3)]
    for prefix, alphabet in (("w", "abcdefg"), ("L", "ABCDEFG"))
)
BINARY = {"docbin", "parquet", "datasets"}
SYSTEM_MESSAGE = re.compile(r'"role":"system","content":"(?:[^"\\]|\\.)*"')  # of a conversation: it names all labels
KEYS = ("tags", "labels", "spans", "text", "label", "ner", "x")


def corpus(name: str, *, columns: bool) -> list[Sentence]:
    """Four sentences of five words with the kinds of mentions that a format can store."""
    carries = find_format(name).carries
    words, labels = iter(WORDS), iter(LABELS)
    sentences = []
    for number in range(4):
        tokens = [next(words) for _ in range(5)]
        mentions = [Mention(next(labels), [(0, 2)]), Mention(next(labels), [(3, 4)])]
        if carries.nested and name not in ("conll", "table"):  # several tag columns; tables of sentences
            mentions.append(Mention(next(labels), [(0, 1)]))
        if carries.discontinuous:
            mentions.append(Mention(next(labels), [(2, 3), (4, 5)]))
        further: dict[str, Any] = {"columns": {"1": "ABCDE", "2": "vwxyz"}} if columns else {}
        sentences.append(Sentence(tokens, mentions, id=f"id{number}", spaces=(" ", " ", " ", " ", ""), **further))
    return sentences


def damage(text: str, rng: Random) -> str:
    """The text of a file with one fault of the kinds that editors, scripts and other tools leave."""
    lines = text.split("\n")
    at = rng.randrange(max(1, len(lines) - 1))
    line = lines[at]
    place = rng.randrange(len(line) + 1)
    separators = [match.start() for match in re.finditer(r"[\t ,|\":]", line)]
    numbers = list(re.finditer(r"\d+", line))
    keys = list(re.finditer(r'"([a-z_]+)":', line))
    match rng.choice(
        ["delete", "repeat", "join", "split", "lose", "insert", "number", "key", "prefix", "blank", "cut"]
    ):
        case "delete":
            del lines[at]
        case "repeat":
            lines.insert(at, line)
        case "join" if at + 1 < len(lines):
            lines[at : at + 2] = [line + rng.choice(["", " ", "\t"]) + lines[at + 1]]
        case "split":
            lines[at : at + 1] = [line[:place], line[place:]]
        case "lose" if separators:
            place = rng.choice(separators)
            lines[at] = line[:place] + line[place + 1 :]
        case "insert":
            lines[at] = line[:place] + rng.choice("\t ,\"'{}[]|_0\ufeff\r#<>&") + line[place:]
        case "number" if numbers:
            number = rng.choice(numbers)
            other = max(0, int(number[0]) + rng.choice([-1, 1, 100]))
            lines[at] = f"{line[: number.start()]}{other}{line[number.end() :]}"
        case "key" if keys:
            key = rng.choice(keys)
            name = rng.choice([k for k in KEYS if f'"{k}":' not in line])
            lines[at] = f"{line[: key.start(1)]}{name}{line[key.end(1) :]}"
        case "prefix":
            lines[at] = re.sub(r"[BIES]-(?=L)", rng.choice(["", "_", "B", "-"]), line, count=1)
        case "blank":
            lines.insert(at, "")
        case "cut":
            lines[at:] = [line[:place]]
    return "\n".join(lines)


def silent_faults(name: str, path: Path, known: Counter[str]) -> list[str]:
    """What stands in a file and is not read, or is read and does not stand there, with neither error nor new note."""
    reading = ReadReport()
    try:
        opened = open_file(path, name)
        sentences = list(opened.sentences(reading))
        text = "".join(file.read_bytes().decode() for file in opened.source_files())
    except EntaugError:
        return []
    if reading.notes - known:
        return []
    text = SYSTEM_MESSAGE.sub("", text)
    tokens = [token for sentence in sentences for token in sentence.tokens]
    kept = " ".join([*tokens, *(f"{s.id} {s.fields} {s.columns}" for s in sentences)])
    labels = " ".join(mention.label for sentence in sentences for mention in sentence.mentions)
    return [
        *(f"word {word} is not read" for word in sorted({*WORD.findall(text)} - {*WORD.findall(kept)})),
        *(f"label {label} is not read" for label in sorted({*LABEL.findall(text)} - {*LABEL.findall(labels)})),
        *(f"token {token!r} is invented" for token in tokens if token not in text and not WORD.search(token)),
    ]


CASES = [(name, False) for name in FORMATS if name not in BINARY] + [("conll", True)]


@pytest.mark.parametrize(("name", "columns"), CASES)
def test_damaged_files_are_read_whole_or_the_rest_is_named(tmp_path: Path, name: str, columns: bool) -> None:
    format_ = find_format(name)
    is_folder = isinstance(format_, BufferedFormat) and format_.folder
    path = tmp_path / (name if is_folder or not format_.extensions else f"{name}{format_.extensions[0]}")
    try:
        entaug.write(corpus(name, columns=columns), path, name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    reading = ReadReport()
    assert len(list(open_file(path, name).sentences(reading))) >= 1
    assert not silent_faults(name, path, Counter())
    for seed in range(examples(600)):
        rng = Random(seed)
        damaged = tmp_path / "damaged" / path.name
        shutil.rmtree(damaged.parent, ignore_errors=True)
        damaged.parent.mkdir()
        (shutil.copytree if is_folder else shutil.copy)(path, damaged)
        file = rng.choice(sorted(f for f in damaged.rglob("*") if f.is_file())) if is_folder else damaged
        before = file.read_bytes().decode()
        after = damage(before, rng)
        file.write_bytes(after.encode())
        found = silent_faults(name, damaged, reading.notes)
        assert not found, f"seed {seed}: {found} of\n{after}"


def test_repairs_of_files_that_are_read_in_python_are_told(tmp_path: Path) -> None:
    (file := tmp_path / "a.conll").write_text("Ada\tB-PER\n\nin\tO\nRome\tI-LOC\nnow\tI-PER\n")
    wanted = "repaired: I- that continues no mention (2 times)"
    with pytest.warns(InputWarning, match=re.escape(f"{file}: {wanted}")):
        assert entaug.read(file, scheme="IOB2", repair=True).notes == (wanted,)
    with pytest.warns(InputWarning, match=re.escape(f"{file}: {wanted}")):
        assert len(list(entaug.stream(file, scheme="IOB2", repair=True))) == 2
