"""The recipes of docs/trainers.md, and the files that they name."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import entaug
from conftest import EXAMPLE, ROOT
from entaug import Sentence
from entaug.backends.soft_labels import TagProbabilities


def blocks(section: str, kind: str = "python") -> list[str]:
    """The fenced blocks of a section of the page."""
    page = (ROOT / "docs" / "trainers.md").read_text("utf-8")
    [text] = [part for part in re.split(r"^## ", page, flags=re.MULTILINE) if part.startswith(f"{section}\n")]
    found = re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [code for its_kind, code in found if its_kind == kind]


def replaced(text: str, replacements: Mapping[str, str]) -> str:
    for old, new in replacements.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def soft_sentences(sentences: list[Sentence], confidence: float, *, seed: int = 5) -> list[Sentence]:
    """The sentences with probabilities of which the least of the right tags is about as given."""
    rng = np.random.default_rng(seed)
    tags = ["O", *sorted({f"{prefix}-{m.label}" for s in sentences for m in s.mentions for prefix in "BI"})]
    column = {tag: i for i, tag in enumerate(tags)}
    labelled = []
    for sentence in sentences:
        values = rng.random((len(sentence), len(tags)))
        values *= (1 - confidence) / values.sum(1, keepdims=True)
        values[range(len(sentence)), [column[tag] for tag in sentence.iob()]] += confidence
        labelled.append(TagProbabilities(tags, values).attach_to(sentence))
    return labelled


def prepare(folder: Path) -> None:
    """Write gold sentences, and new ones of which a half is unsure."""
    for name in ("train", "dev", "test"):
        entaug.write(list(entaug.read(EXAMPLE / f"{name}.conll"))[:12], folder / f"{name}.conll")
    gold = list(entaug.read(EXAMPLE / "train.conll"))
    new = [*soft_sentences(gold[20:30], 0.9), *soft_sentences(gold[30:40], 0.5)]
    entaug.write(new, folder / "new.jsonl")
    shutil.rmtree(folder / "model", ignore_errors=True)
