"""One run: a tagger trained on a subset and the new sentences of an arm; it depends on files and numbers only."""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from entaug._version import __version__
from entaug.backends.compute import compute_settings
from entaug.backends.config import TrainingProgress
from entaug.backends.protocols import Tagger
from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.files.locks import lock
from entaug.formats import read, write
from entaug.methods.augment import augment_file
from entaug.metrics.span_f1 import score
from entaug.study.data import DataSplit, count_shared, file_digest, read_part, short_hash
from entaug.study.plan import PATIENCE, MethodPlan, TaggerPlan, TeacherPlan, copies_for
from entaug.study.records import RunRecord
from entaug.taggers.base import TAGGERS, TaggerTrainingConfig, TrainableTagger, load_tagger
from entaug.taggers.ensemble import EnsembleTagger
from entaug.taggers.sources.joined import JoinedTagger, sources_identity

_clock = time.monotonic
# Hyperparameters that came after the first records.
_LATER = ("warmup_steps", "pretraining_epochs", "consistency", "averaged_share")


@dataclass(frozen=True)
class RunSpec:
    """Specification of a run: everything that its result depends on."""

    split: DataSplit
    tagger: TaggerPlan
    arm: str
    ratio: float
    seed: int
    method: MethodPlan | None
    threads: int
    folder: Path
    parts: tuple[MethodPlan, ...] = ()
    teachers: tuple[TeacherPlan, ...] = (TeacherPlan(),)

    @cached_property
    def steps(self) -> int:
        """Number of optimizer steps."""
        # It does not depend on how many sentences a method really returns, so all arms of a ratio have equal steps.
        return self._tagger_training.total_steps(self.num_planned)

    @cached_property
    def training(self) -> TaggerTrainingConfig:
        """The hyperparameters of the training: those of the tagger, and what the method changes."""
        changes = dict(self.method.training) if self.method else {}
        return replace(self._tagger_training, **changes, steps=self.steps, seed=self.seed)

    @property
    def num_planned(self) -> int:
        """The number of gold sentences and of the new ones that the ratio stands for."""
        return self.split.num_gold + round(self.ratio * self.split.num_gold)

    @cached_property
    def _tagger_training(self) -> TaggerTrainingConfig:
        return self.tagger.training.for_sentences(self.num_planned)

    @property
    def search(self) -> str:
        """Selection of the ratio: ``"patience"`` or ``"grid"``, or ``"list"`` where there is none."""
        if self.method and self.method.group:
            return "grid"
        return PATIENCE if self.method and self.method.ratios == PATIENCE else "list"

    @property
    def own_teacher(self) -> TeacherPlan | None:
        """The teacher that is the arm itself, if it is one."""
        return next((teacher for teacher in self.teachers if not self.method and teacher.label == self.arm), None)

    def teacher_of(self, part: MethodPlan) -> TeacherPlan | None:
        """The teacher that labels the sentences of a method."""
        if part.labels == "method":
            return None
        return next(t for t in self.teachers if part.teacher in (None, t.label))

    def ratio_of(self, part: MethodPlan) -> float:
        """The ratio of a method: that of the run, or for a method that is combined with others its own."""
        return self.ratio if part == self.method else float(part.ratios[0])

    def gold_training(self, tagger: TaggerPlan, seed: int = 0) -> TaggerTrainingConfig:
        """The hyperparameters of a training on the gold sentences alone."""
        training = tagger.training.for_sentences(self.split.num_gold)
        return replace(training, steps=training.total_steps(self.split.num_gold), seed=seed)

    def gold_dev(self, training: TaggerTrainingConfig) -> Path | None:
        """The dev set by which a training on the gold sentences alone selects its epoch."""
        return self.split.dev if training.checkpoint == "best" else None

    @cached_property
    def key(self) -> str:
        """Identifier of the configuration."""
        return short_hash(self.config())

    def config(self) -> dict[str, Any]:
        """The configuration that the result depends on, without labels."""
        split, tagger = self.split, self.tagger
        arm: Any = "gold" if self.arm in ("gold", "gold-steps") else self.arm
        if self.own_teacher:
            arm = {"ensemble": self.teacher_config(self.own_teacher)}
        elif self.method:
            parts = [self._part_config(part) for part in self.parts]
            arm = {"combine": parts} if self.method.combine else parts[0]
        return {
            "arm": arm,
            # Gold trained for more steps is the same run, whichever ratio the steps come from.
            "amount": self.ratio if arm != "gold" else 0,
            "steps": self.steps,
            "seed": self.seed,
            "train": file_digest(split.train),
            "dev": file_digest(split.dev) if split.dev else None,
            "test": file_digest(split.test) if split.test else None,
            **({"tests": {name: file_digest(path) for name, path in split.tests.items()}} if split.tests else {}),
            "tagger": {"name": tagger.name, "params": dict(tagger.params), "overlap": split.corpus.overlap},
            "training": _plain(self.training),
            **self.setup(),
        }

    def setup(self) -> dict[str, Any]:
        """The setup that all results depend on: threads, device, precision and version."""
        settings = compute_settings()
        computed = {"device": settings.device, "precision": settings.precision}
        return {"threads": self.threads, "computed": computed, "entaug": __version__}

    def teacher_config(self, teacher: TeacherPlan) -> dict[str, Any]:
        """Everything but the gold sentences that the labels of a teacher depend on."""
        if teacher.sources is not None:
            return {"sources": sources_identity(teacher.sources)}
        members = teacher.members(self.tagger, self.seed)
        tagger = members[0][0]
        training = self.gold_training(tagger)
        dev = self.gold_dev(training)
        return {
            **({"dev": file_digest(dev)} if dev else {}),
            "seeds": [seed for _, seed in members],
            "tagger": {"name": tagger.name, "params": dict(tagger.params)},
            "steps": training.steps,
            "training": _plain(training),
        }

    def _part_config(self, part: MethodPlan) -> dict[str, Any]:
        source: dict[str, Any]
        if part.is_self_training:
            source = {"unlabelled": file_digest(self.split.unlabelled) if self.split.unlabelled else None}
        else:
            source = {"method": part.name, "params": part.identity}
            source["copies"] = copies_for(self.ratio_of(part), part.ratios)
        if teacher := self.teacher_of(part):
            source |= {"labels": part.labels, "teacher": self.teacher_config(teacher)}
        if part is not self.method:
            source["amount"] = self.ratio_of(part)
        return source

    def labels(self) -> dict[str, Any]:
        """The fields of the record that say where the run belongs in the plan."""
        return {
            "corpus": self.split.corpus.name,
            "size": self.split.size,
            "tagger": self.tagger.label,
            "arm": self.arm,
            "ratio": self.ratio,
            "seed": self.seed,
            "subset_seed": self.split.subset_seed,
            "fold": self.split.fold,
            "search": self.search,
            "group": self.method.group if self.method else "",
            "leaks": self.split.leaks,
        }


def _plain(training: TaggerTrainingConfig) -> dict[str, Any]:
    """The hyperparameters that are given, without what stands elsewhere in a configuration."""
    # What came later is left out at its default, so that the keys of earlier records stay as they are.
    defaults = {name: getattr(TaggerTrainingConfig, name) for name in _LATER}
    values = {k: v for k, v in asdict(training).items() if k not in ("seed", "steps", "epochs")}
    return {k: v for k, v in values.items() if k not in defaults or v != defaults[k]}


# ------------------------------------------------------------------------------------------------------------ execution


def execute_run(run: RunSpec, progress: TrainingProgress | None = None) -> tuple[RunRecord, float]:
    """Train and evaluate a tagger."""
    start = _clock()
    tests = {name: list(read(path)) for name, path in run.split.test_files.items()}
    dev = list(read(run.split.dev)) if run.split.dev else None
    tagger, new = train_run(run, dev, progress)
    train = list(read(run.split.train))
    scores = {name: score(test, tagger.predict(map(_bare, test)), train) for name, test in tests.items()}
    config = run.config()
    if short_hash(config) != run.key:  # it came with the run, whose data another command has written anew
        message = "another command has changed the data of the plan meanwhile"
        raise InputError(message, path=str(run.split.train), remedy="run the experiment again")
    record = RunRecord(
        key=run.key,
        **run.labels(),
        steps=run.steps,
        new=len(new),
        test=next(iter(scores.values()), score([], [])),
        tests=scores if run.split.tests else {},
        dev=score(dev, tagger.predict(map(_bare, dev))) if dev else None,
        new_in_test=count_shared(new, (s for test in tests.values() for s in test)) if run.method else 0,
        config=config,
        environment=current_environment(),
    )
    return record, _clock() - start


def _bare(sentence: Sentence) -> Sentence:
    return sentence.with_(mentions=())


def train_run(
    run: RunSpec, dev: Sequence[Sentence] | None = None, progress: TrainingProgress | None = None
) -> tuple[Any, list[Sentence]]:
    """Train the tagger of a run; return it with the new sentences."""
    gold = list(read(run.split.train))
    new = _new_sentences(run, gold)
    if run.own_teacher:
        return _teacher(run, run.own_teacher, gold, progress), new
    if run.arm == "gold":
        return _gold_tagger(run, run.tagger, run.seed, gold, progress), new
    tagger = run.tagger.create(run.split.corpus.overlap)
    return tagger.fit(gold, dev, run.training, augmented=new, progress=progress), new


def _new_sentences(run: RunSpec, gold: list[Sentence]) -> list[Sentence]:
    """The sentences that the arm adds to the gold ones."""
    if run.arm in ("gold", "gold-steps") or run.own_teacher:
        return []
    whole = int(run.ratio)
    rng = Random(f"part {run.seed} {run.ratio}")
    if run.method is None:
        return [*gold * whole, *_sample(gold, round((run.ratio - whole) * len(gold)), rng)]
    return [sentence for part in run.parts for sentence in _sentences_of(run, part, gold, rng)]


def _sentences_of(run: RunSpec, part: MethodPlan, gold: list[Sentence], rng: Random) -> list[Sentence]:
    """The new sentences of a method, with the labels that the plan asks for."""
    ratio = run.ratio_of(part)
    if part.is_self_training:
        unlabelled = read_part(run.split.unlabelled) if run.split.unlabelled else []
        new = unlabelled[: round(ratio * len(gold))]
    else:
        new = _generated(run, part, ratio, rng)
    teacher = run.teacher_of(part)
    if teacher is None or not new:
        return new

    # Labelled once for all arms that use the same sentences with labels of the same teacher.
    def label(target: Path) -> None:
        write(_label(new, _teacher(run, teacher, gold), part), target)

    content = short_hash([[s.tokens, s.id, [[m.label, m.spans] for m in s.mentions]] for s in new])
    identity = [content, part.labels, file_digest(run.split.train), run.teacher_config(teacher), run.setup()]
    return read_part(_make_once(_shared_file(run, "labelled", part, identity), label))


def _label(sentences: Sequence[Sentence], teacher: Tagger, part: MethodPlan) -> list[Sentence]:
    """Give sentences the labels of the teacher."""
    is_soft = isinstance(teacher, EnsembleTagger | JoinedTagger)  # others give no probabilities
    if part.labels == "teacher-hard" or not is_soft:
        return teacher.predict(sentences)
    has_relations = hasattr(getattr(teacher, "typical_member", teacher), "relation_probabilities")
    compute: Any = getattr(teacher, "relation_probabilities" if has_relations else "tag_probabilities")
    pairs = zip(compute(sentences), sentences, strict=True)
    return [soft.label(s) if part.is_unlabelled else soft.attach_to(s) for soft, s in pairs]


def make_sentences(run: RunSpec, part: MethodPlan) -> Path:
    """The file of the augmented sentences of a method, made once for all runs that use them."""
    copies = copies_for(run.ratio_of(part), part.ratios)

    def augment(target: Path) -> None:
        augmenter = part.create(copies, run.seed)
        # The method never learns from dev and test, but leaves out of the lists of the user what is in these.
        augmenter.hold_out(sentence for path in run.split.held_out for sentence in read(path))
        # An interrupted augmentation is resumed, with the same result.
        augment_file(run.split.train, target, augmenter, only_new=True, allow_empty=True)

    return _make_once(sentences_file(run, part), augment)


def sentences_file(run: RunSpec, part: MethodPlan) -> Path:
    """The file of the augmented sentences of a method, whether they are made or not."""
    # It is known without the models of the method, which a run does not need if its sentences are there.
    files = [file_digest(path) for path in (run.split.train, *run.split.held_out)]
    copies = copies_for(run.ratio_of(part), part.ratios)
    identity = [part.name, part.identity, copies, run.seed, files, __version__]
    return _shared_file(run, "augmented", part, identity)


def _generated(run: RunSpec, part: MethodPlan, ratio: float, rng: Random) -> list[Sentence]:
    """The augmented sentences of the first copies, and a part of those of the next one."""
    file = make_sentences(run, part)
    made = list(read(file)) if file.stat().st_size else []  # a method may return nothing
    whole = int(ratio)
    new = [sentence for sentence in made if _copy_of(sentence) <= whole]
    last = [sentence for sentence in made if _copy_of(sentence) == whole + 1]
    return [*new, *_sample(last, round((ratio - whole) * len(last)), rng)]


def _copy_of(sentence: Sentence) -> int:
    return sentence.provenance.copy if sentence.provenance else 0


def _sample(sentences: list[Sentence], n: int, rng: Random) -> list[Sentence]:
    return [sentences[i] for i in sorted(rng.sample(range(len(sentences)), n))]


def _shared_file(run: RunSpec, kind: str, part: MethodPlan, identity: list[Any]) -> Path:
    """The file of sentences that several runs use."""
    label = f"{run.split.train.stem}.{part.name}"
    label = "".join(c if c.isalnum() or c in "-.," else "_" for c in label)
    label = label.encode()[:120].decode(errors="ignore")  # file names have at most 255 bytes
    return run.folder / kind / f"{label}.{short_hash(identity)}.jsonl"


def _make_once(target: Path, make: Callable[[Path], object]) -> Path:
    """Make a file unless it is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with lock(target):
        if not target.exists():
            make(target)
    return target


def missing_sentences(run: RunSpec) -> list[tuple[MethodPlan, Path]]:
    """The methods of a run whose augmented sentences are not there yet, and the files of these."""
    files = [(part, sentences_file(run, part)) for part in run.parts if part.makes_sentences]
    return [(part, file) for part, file in files if not file.exists()]


def drop_intermediate(folder: Path, split: DataSplit) -> None:
    """Delete the taggers and sentences that the runs of a split share, once all of them are finished."""
    for path in folder.glob(f"*/{split.train.stem}.*"):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.parent.name != split.train.parent.name:
            path.unlink()


# ------------------------------------------------------------------------------------------------------------- teachers


def gives_probabilities(tagger: str) -> bool:
    """Whether a tagger gives the probabilities of its tags or relations, and so soft labels."""
    return bool(getattr(TAGGERS[tagger], "gives_probabilities", True))


def _teacher(
    run: RunSpec, teacher: TeacherPlan, gold: Sequence[Sentence], progress: TrainingProgress | None = None
) -> Tagger:
    """The teacher of a run; its taggers are trained as far as they are not there yet."""
    if teacher.sources is not None:
        return JoinedTagger(teacher.sources).fit(gold)
    members = teacher.members(run.tagger, run.seed)
    if not gives_probabilities(members[0][0].name):
        return _gold_tagger(run, *members[0], gold, progress)
    return EnsembleTagger.of(_gold_tagger(run, tagger, seed, gold, progress) for tagger, seed in members)


def gold_folder(run: RunSpec, plan: TaggerPlan, seed: int) -> Path:
    """The folder of a tagger that is trained on the gold sentences of a run alone."""
    tagger = [plan.name, dict(plan.params), run.split.corpus.overlap]
    training = run.gold_training(plan, seed)
    identity = [file_digest(run.split.train), tagger, asdict(training), run.setup()]
    if dev := run.gold_dev(training):
        identity.append(file_digest(dev))
    return run.folder / "teachers" / f"{run.split.train.stem}.{seed}.{short_hash(identity)}"


def _gold_tagger(
    run: RunSpec, plan: TaggerPlan, seed: int, gold: Sequence[Sentence], progress: TrainingProgress | None = None
) -> TrainableTagger:
    """A tagger trained on the gold sentences of a run alone, once for all runs that use it."""
    folder = gold_folder(run, plan, seed)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock(folder):
        if not folder.exists():
            tagger = plan.create(run.split.corpus.overlap)
            training = run.gold_training(plan, seed)
            dev = run.gold_dev(training)
            tagger.fit(gold, list(read(dev)) if dev else None, training, progress=progress).save(folder)
            return tagger
    try:
        return load_tagger(folder)
    except InputError as error:
        error.path, error.remedy = str(folder), "delete this folder: its tagger is then trained again"
        raise


def current_environment() -> dict[str, Any]:
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
