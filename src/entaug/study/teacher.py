"""Teachers: taggers trained on the gold sentences of a run, each trained once for all runs that use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from entaug._version import __version__
from entaug.backends.compute import compute_settings
from entaug.core.data import Sentence
from entaug.files.locks import lock
from entaug.study.data import file_digest, short_hash
from entaug.study.plan import TaggerPlan, TeacherPlan
from entaug.study.specification import RunSpec, training_identity
from entaug.taggers.base import TrainableTagger, load_tagger
from entaug.taggers.ensemble import EnsembleTagger

__all__ = ["gold_tagger", "label_with_teacher", "train_teacher"]


def gold_tagger(run: RunSpec, plan: TaggerPlan, gold: Sequence[Sentence], seed: int) -> TrainableTagger:
    """A tagger trained on the gold sentences of a run alone."""
    training = plan.training_of(len(gold))
    config = replace(training, steps=training.total_steps(len(gold)), seed=seed)
    identity = {
        "train": file_digest(run.split.train),
        "tagger": [plan.name, dict(plan.params), run.split.corpus.overlap],
        "training": training_identity(config),
        "threads": run.threads,
        "computed": [compute_settings().device, compute_settings().precision],
        "entaug": __version__,
    }
    folder = run.folder / "teachers" / f"{run.split.train.stem}.{seed}.{short_hash(identity)}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock(folder.parent / f"{folder.name}.lock"):
        if folder.exists():
            return load_tagger(folder)
        tagger = plan.create(run.split.corpus.overlap)
        tagger.fit(gold, None, config)
        tagger.save(folder)
        return tagger


def train_teacher(run: RunSpec, teacher: TeacherPlan, gold: Sequence[Sentence]) -> EnsembleTagger:
    """Train a teacher of a run, as far as its taggers are not there yet."""
    return EnsembleTagger.of(gold_tagger(run, tagger, gold, seed) for tagger, seed in run.teacher_members(teacher))


def label_with_teacher(
    sentences: Sequence[Sentence], ensemble: EnsembleTagger, labels: str, is_unlabelled: bool
) -> list[Sentence]:
    """Give sentences the labels of the teacher."""
    labelled = []
    for sentence, probabilities in zip(sentences, ensemble.tag_probabilities(sentences), strict=True):
        if labels == "teacher-hard":
            labelled.append(sentence.with_(mentions=probabilities.mentions()))
        elif is_unlabelled:
            labelled.append(probabilities.label(sentence))
        else:
            labelled.append(probabilities.attach_to(sentence))
    return labelled
