"""One run: a tagger trained on a subset and what an arm adds to it. A function of files and numbers alone."""

from __future__ import annotations

import platform
import time
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from entaug._version import __version__
from entaug.backends.compute import compute_settings
from entaug.data import Sentence
from entaug.experiment.data import Cell, digest, hash_of, shared
from entaug.experiment.plan import PATIENCE, MethodPlan, TaggerPlan, copies_made
from entaug.files.locks import lock
from entaug.formats import read
from entaug.scoring.span_f1 import score
from entaug.workflows.augment import augment_file

__all__ = ["Run", "perform"]


@dataclass(frozen=True)
class Run:
    """One training of one tagger, and all that it depends on.

    Args:
        cell: the data.
        tagger: the tagger.
        arm: ``"gold"``, ``"gold-steps"``, ``"duplicate"``, or the label of a method.
        amount: of new sentences in multiples of the gold ones; 0 for gold.
        seed: of training and method.
        method: the method, where there is one.
        threads: of the computation.
        folder: of the experiment, for what runs share.
    """

    cell: Cell
    tagger: TaggerPlan
    arm: str
    amount: float
    seed: int
    method: MethodPlan | None
    threads: int
    folder: Path

    @property
    def steps(self) -> int:
        """Optimiser steps: the plan's epochs over as many sentences as the amount comes to.

        They follow from the amount and not from how many sentences a method really made, so all arms of an amount take
        the same.
        """
        return self.tagger.training.total_steps(self.cell.size + round(self.amount * self.cell.size))

    def config(self) -> dict[str, Any]:
        """All that the outcome depends on; labels do not count."""
        cell, tagger, method = self.cell, self.tagger, self.method
        training = asdict(tagger.training)
        for name in ("seed", "steps", "epochs"):
            del training[name]
        arm: Any = "gold" if self.arm in ("gold", "gold-steps") else self.arm
        if method is not None:
            copies = copies_made(self.amount, method.amounts)
            arm = {"method": method.name, "params": dict(method.params), "copies": copies}
        return {
            "arm": arm,
            # Gold trained for more steps is the same whatever amount the steps come from.
            "amount": self.amount if arm != "gold" else 0,
            "steps": self.steps,
            "seed": self.seed,
            "train": digest(cell.train),
            "dev": digest(cell.dev) if cell.dev else None,
            "test": digest(cell.test),
            "tagger": {"name": tagger.name, "params": dict(tagger.params), "overlap": cell.corpus.overlap},
            "training": training,
            "threads": self.threads,
            "computed": {name: getattr(compute_settings(), name) for name in ("device", "precision")},
            "entaug": __version__,
        }

    @cached_property
    def key(self) -> str:
        """Names the record."""
        return hash_of(self.config())

    def labels(self) -> dict[str, Any]:
        """What the record is called in tables."""
        return {
            "corpus": self.cell.corpus.name,
            "size": self.cell.size,
            "tagger": self.tagger.label,
            "arm": self.arm,
            "amount": int(self.amount) if self.amount == int(self.amount) else self.amount,
            "seed": self.seed,
            "leaks": self.cell.leaks,
        }


def perform(run: Run) -> tuple[dict[str, Any], float]:
    """Do one run.

    Returns:
        Its record, and the seconds it took.
    """
    begun = time.monotonic()
    gold = list(read(run.cell.train))
    test = list(read(run.cell.test))
    dev = list(read(run.cell.dev)) if run.cell.dev else None
    new = _new(run, gold)
    training = replace(run.tagger.training, steps=run.steps, seed=run.seed)
    tagger = run.tagger.make(run.cell.corpus.overlap)
    tagger.fit([*gold, *new], dev, training)
    found = score(test, tagger.predict(test))
    record = {
        "key": run.key,
        **run.labels(),
        "steps": run.steps,
        "sentences": {"gold": len(gold), "new": len(new)},
        "test_sentences": len(test),
        "dev": score(dev, tagger.predict(dev)).to_dict() if dev else None,
        "test": found.to_dict(),
        "test_counts": found.sentence_counts(),
        "search": run.method.amounts if run.method and run.method.amounts == PATIENCE else "list",
        "new_in_test": shared(new, test) if run.method else 0,
        "config": run.config(),
        "environment": environment(),
    }
    return record, time.monotonic() - begun


def _new(run: Run, gold: list[Sentence]) -> list[Sentence]:
    """What is added to gold."""
    if run.arm in ("gold", "gold-steps"):
        return []
    whole, part = int(run.amount), run.amount - int(run.amount)
    rng = Random(f"part {run.seed} {run.amount}")
    if run.method is None:
        return [*gold * whole, *_some(gold, round(part * len(gold)), rng)]
    file = augmented(run)
    made = list(read(file)) if file.stat().st_size else []  # a method may find nothing to do
    copies = [sentence.provenance.copy if sentence.provenance else 0 for sentence in made]
    new = [sentence for sentence, copy in zip(made, copies, strict=True) if copy <= whole]
    if part:
        last = [sentence for sentence, copy in zip(made, copies, strict=True) if copy == whole + 1]
        new += _some(last, round(part * len(last)), rng)
    return new


def _some(sentences: list[Sentence], n: int, rng: Random) -> list[Sentence]:
    return [sentences[i] for i in sorted(rng.sample(range(len(sentences)), n))]


def augmented(run: Run) -> Path:
    """The file with what a method makes of a subset; made once for all runs that use it.

    A method is given this subset and nothing else: dev and test never reach it.
    """
    assert run.method is not None
    copies = copies_made(run.amount, run.method.amounts)
    augmenter = run.method.augmenter(copies, run.seed)
    name = hash_of([augmenter.signature, digest(run.cell.train), __version__])
    folder = run.folder / "augmented"
    folder.mkdir(parents=True, exist_ok=True)
    label = "".join(c if c.isalnum() or c in "-.," else "_" for c in f"{run.cell.train.stem}.{run.method.label}")
    label = label.encode()[:120].decode(errors="ignore")  # file systems take no names above 255 bytes
    target = folder / f"{label}.{name}.jsonl"
    with lock(target):
        if not target.exists():
            # What a killed run left is gone on with: the result is the same, byte for byte.
            augment_file(run.cell.train, target, augmenter, only_new=True)
    return target


def environment() -> dict[str, Any]:
    """Where a run was done."""
    import torch
    import transformers

    from entaug.backends.transformers.base import choose_device

    device, dtype = choose_device()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": f"{device.type} ({name})",
        "precision": str(dtype).removeprefix("torch."),
    }
