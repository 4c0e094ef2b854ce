"""One run: a tagger trained on a subset and the new sentences of an arm; it depends on files and numbers only."""

from __future__ import annotations

import platform
import time
from pathlib import Path
from random import Random
from typing import Any

from entaug._version import __version__
from entaug.core.data import Sentence
from entaug.files.locks import lock
from entaug.formats import read
from entaug.methods.augment import augment_file
from entaug.metrics.span_f1 import score
from entaug.study.data import count_shared, file_digest, short_hash
from entaug.study.plan import MethodPlan
from entaug.study.records import RunRecord
from entaug.study.specification import RunSpec
from entaug.study.teacher import gold_tagger, label_with_teacher, train_teacher
from entaug.study.values import copies_for
from entaug.taggers.base import TrainableTagger

__all__ = ["execute_run"]


def execute_run(run: RunSpec) -> tuple[RunRecord, float]:
    """Train and evaluate a tagger."""
    start = time.monotonic()
    gold = list(read(run.split.train))
    tests = {name: list(read(path)) for name, path in (run.split.tests or {"": run.split.test}).items()}
    dev = list(read(run.split.dev)) if run.split.dev else None
    new = _new_sentences(run, gold)
    tagger: TrainableTagger
    if run.own_teacher:
        tagger = train_teacher(run, run.own_teacher, gold)
    elif run.arm == "gold" and run.training.checkpoint == "last":
        tagger = gold_tagger(run, run.tagger, gold, run.seed)
    else:
        tagger = run.tagger.create(run.split.corpus.overlap)
        tagger.fit(gold, dev, run.training, augmented=new)
    scores = {name: score(test, tagger.predict(test)) for name, test in tests.items()}
    record = RunRecord(
        key=run.key,
        **run.labels(),
        steps=run.steps,
        new=len(new),
        test=next(iter(scores.values())),
        tests=scores if run.split.tests else {},
        dev=score(dev, tagger.predict(dev)) if dev else None,
        search=run.search,
        new_in_test=count_shared(new, (s for test in tests.values() for s in test)) if run.method else 0,
        config=run.config(),
        environment=_environment(),
    )
    return record, time.monotonic() - start


def _new_sentences(run: RunSpec, gold: list[Sentence]) -> list[Sentence]:
    """The sentences that the arm adds to the gold ones."""
    if run.arm in ("gold", "gold-steps") or run.own_teacher:
        return []
    whole = int(run.amount)
    fraction = run.amount - whole
    rng = Random(f"part {run.seed} {run.amount}")
    if run.method is None:
        return [*gold * whole, *_sample(gold, round(fraction * len(gold)), rng)]
    return [sentence for part in run.parts for sentence in _sentences_of(run, part, gold, rng)]


def _sentences_of(run: RunSpec, part: MethodPlan, gold: list[Sentence], rng: Random) -> list[Sentence]:
    """The new sentences of a method, with the labels that the plan asks for."""
    amount = run.amount_of(part)
    if part.is_self_training:
        unlabelled = list(read(run.split.unlabelled)) if run.split.unlabelled else []
        new = unlabelled[: round(amount * run.split.size)]
    else:
        new = _generated(run, part, amount, rng)
    teacher = run.teacher_of(part)
    if teacher is None or not new:
        return new
    return label_with_teacher(new, train_teacher(run, teacher, gold), part.labels, part.is_unlabelled)


def _generated(run: RunSpec, part: MethodPlan, amount: float, rng: Random) -> list[Sentence]:
    whole = int(amount)
    fraction = amount - whole
    file = _augmented_file(run, part, amount)
    augmented = list(read(file)) if file.stat().st_size else []  # a method may return nothing
    copies = [sentence.provenance.copy if sentence.provenance else 0 for sentence in augmented]
    new = [sentence for sentence, copy in zip(augmented, copies, strict=True) if copy <= whole]
    if fraction:
        last = [sentence for sentence, copy in zip(augmented, copies, strict=True) if copy == whole + 1]
        new += _sample(last, round(fraction * len(last)), rng)
    return new


def _sample(sentences: list[Sentence], n: int, rng: Random) -> list[Sentence]:
    return [sentences[i] for i in sorted(rng.sample(range(len(sentences)), n))]


def _augmented_file(run: RunSpec, part: MethodPlan, amount: float) -> Path:
    """The augmented subset, generated once for all runs that use it. The method never sees dev and test."""
    augmenter = part.create(copies_for(amount, part.amounts), run.seed)
    augmenter.load()  # its signature names the models
    # The method never learns from dev and test, but leaves out of the lists of the user what is in these.
    augmenter.hold_out(
        sentence
        for path in (run.split.test, *run.split.tests.values(), run.split.dev)
        if path
        for sentence in read(path)
    )
    name = short_hash([augmenter.signature, file_digest(run.split.train), __version__])
    folder = run.folder / "augmented"
    folder.mkdir(parents=True, exist_ok=True)
    label = f"{run.split.train.stem}.{part.name}"
    label = "".join(c if c.isalnum() or c in "-.," else "_" for c in label)
    label = label.encode()[:120].decode(errors="ignore")  # file names have at most 255 bytes
    target = folder / f"{label}.{name}.jsonl"
    with lock(target):
        if not target.exists():
            # An interrupted augmentation is resumed, with the same result.
            augment_file(run.split.train, target, augmenter, only_new=True, allow_empty=True)
    return target


def _environment() -> dict[str, Any]:
    """Versions and device of the computation."""
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
