"""The input of a choice of a recipe: gold sentences, held-out ones and unlabelled text, read and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.core.provenance import Provenance
from entaug.errors import InputError
from entaug.formats import read, read_each
from entaug.formats.file_job import require_mentions
from entaug.formats.unlabelled import read_unlabelled
from entaug.study.auto.folds import content_key

__all__ = ["UNLABELLED", "AutoInputs", "file_digest", "read_inputs"]

UNLABELLED = "selftrain"
"""The name of the method in the provenance of unlabelled sentences."""
_FEWEST = 20


@dataclass
class AutoInputs:
    """The sentences of a choice."""

    gold: list[Sentence]
    unlabelled: list[Sentence] = field(default_factory=list)
    dev: list[Sentence] | None = None
    held_out: list[Sentence] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def shapes(self) -> list[str]:
        """``"nested"`` and ``"discontinuous"``, as far as the gold sentences have such mentions."""
        shapes = []
        if any(not sentence.is_flat and len(sentence.mentions) > 1 for sentence in self.gold):
            shapes.append("nested")
        if any(not mention.is_contiguous for sentence in self.gold for mention in sentence.mentions):
            shapes.append("discontinuous")
        return shapes

    @property
    def is_flat(self) -> bool:
        """Whether tags can express all mentions."""
        return all(sentence.is_flat for sentence in self.gold)


def read_inputs(
    train: str | Path,
    unlabelled: Sequence[str | Path],
    dev: str | Path | None,
    *,
    held_out: Sequence[str | Path] = (),
    drop_held_out: bool = False,
    repair: bool,
    from_format: str | None,
    read_options: Mapping[str, Any],
) -> AutoInputs:
    """Read and check the files."""
    options = {"repair": repair, **read_options}
    gold = list(read(train, from_format, **options))
    inputs = AutoInputs(gold)
    with_mentions = sum(bool(sentence.mentions) for sentence in gold)
    if dev is not None:
        inputs.dev = list(read(dev, from_format, **options))
        require_mentions(inputs.dev, dev, "to measure gains by")
        _check_apart(gold, inputs.dev, train, dev)
    elif with_mentions < _FEWEST:
        message = f"has {with_mentions} sentences with mentions, and cross-validation needs at least {_FEWEST}"
        raise InputError(message, path=str(train), remedy="label more sentences, or name held-out ones with --dev")
    require_mentions(gold, train)
    if unlabelled:
        others = [*([] if dev is None else [dev]), *held_out]
        language = read_options.get("language")  # of corpora that are running text themselves
        text = read_unlabelled(unlabelled, gold, held_out=others, drop_held_out=drop_held_out, language=language)
        inputs.unlabelled = [
            Sentence(
                sentence.tokens,
                id=f"unlabelled/{UNLABELLED}-{number}",
                spaces=sentence.spaces,
                provenance=Provenance(UNLABELLED, details={"unconditioned": True, "text": sentence.id}),
            )
            for number, sentence in enumerate(text, start=1)
        ]
        inputs.notes += text.notes
    inputs.held_out = [sentence for corpus in read_each(held_out, repair=True) for sentence in corpus]
    paths = [train, *unlabelled, *([dev] if dev is not None else []), *held_out]
    inputs.digests = {str(path): file_digest(Path(path)) for path in paths}
    return inputs


def _check_apart(gold: Sequence[Sentence], dev: Sequence[Sentence], train: str | Path, path: str | Path) -> None:
    keys = {content_key(sentence) for sentence in gold}
    shared = [sentence for sentence in dev if content_key(sentence) in keys]
    if shared:
        example = " ".join(shared[0].tokens)[:60]
        message = f"{len(shared):,} of its sentences are in {train} too, one is {example!r}"
        raise InputError(message, path=str(path), remedy="remove them from one of the files")


def file_digest(path: Path) -> str:
    """The digest of the content of a file, or of all files of a folder."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
