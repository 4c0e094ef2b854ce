"""The function `auto`: choose a recipe for a corpus by cross-validation, and train with it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any

import orjson

from entaug._version import __version__
from entaug.backends.compute import compute_settings
from entaug.backends.language_check import note_on_encoder
from entaug.config.params import Check, PositiveFloat, PositiveInt, check_arguments, parameters_of
from entaug.config.toml_lines import read_toml
from entaug.core.data import Provenance, Sentence
from entaug.core.folds import FEWEST, partition, without
from entaug.errors import (
    EntaugError,
    InputError,
    MissingExtraError,
    MissingModelError,
    OutputError,
    ParameterError,
    UnknownNameError,
)
from entaug.files.atomic import check_new_folder, make_folder, output_error, write_file
from entaug.files.checkpoints import partial_paths
from entaug.files.json_text import read_object
from entaug.files.locks import lock
from entaug.files.mention_lists import parse_specification, read_mention_list
from entaug.formats.exchange import CorpusData, CorpusFiles, takes_data
from entaug.formats.file_job import require_mentions, require_unseen
from entaug.formats.files import read, read_each
from entaug.formats.unlabelled import read_unlabelled
from entaug.methods import create_augmenter
from entaug.study import choice
from entaug.study.auto_files import DIGESTS, FILE_ARGUMENTS, SMALL, AutoSummary, write_output
from entaug.study.choice import GOLD, RECIPES, TEACHER, TEACHER_SIZE, Gain, Outcome, Recipe, SearchSize
from entaug.study.curves import BATCH_SIZE, SEEDS_PER_REPEAT, CurveTagger
from entaug.study.data import DataSplit, file_digest, read_part, short_hash, write_part
from entaug.study.engine import ProgressCallback, StepCounter, show_study
from entaug.study.plan import SELF_TRAINING, CorpusPlan, MethodPlan, TeacherPlan
from entaug.study.records import RecordStore, RunRecord
from entaug.study.runs import RunSpec, drop_intermediate, execute_run, gives_probabilities, gold_folder, train_run
from entaug.taggers.base import TaggerTrainingConfig, check_has_encoder, create_tagger, default_steps, default_tagger
from entaug.taggers.sources.joined import JoinedTagger, read_sources
from entaug.teacher.label import label_sentences

_OVERHEAD = 1.25  # augmenting, labelling and predicting, as a share of the time for training
_LARGER = 2  # times the size on disk from which on a teacher counts as larger than the tagger
_NOT_IN_PLANS = ("output", "budget", "force", "progress", "on_wait")  # parameters that a plan of a result lacks

FoldCount = Annotated[int, Check(lambda number: number == 0 or number > 1, "an integer of at least 2, or 0")]


@takes_data("train", "dev", "unlabelled", lists=["unlabelled"], texts=["unlabelled"], show=show_study)
def auto(
    train: CorpusData | None,
    output: str | Path,
    *,
    unlabelled: CorpusFiles = (),
    dev: CorpusData | None = None,
    held_out: Sequence[str | Path] = (),
    drop_held_out: bool = False,
    mentions: Sequence[str] = (),
    sources: str | Path | None = None,
    encoder: str = "minilm",
    teacher_encoder: str | None = None,
    budget: PositiveFloat | None = None,
    tagger: str | None = None,
    recipes: Sequence[str] | None = None,
    folds: FoldCount | None = None,
    repeats: PositiveInt | None = None,
    steps: PositiveInt | None = None,
    seed: int = 0,
    repair: bool = False,
    from_format: str | None = None,
    read_options: Mapping[str, Any] | None = None,
    force: bool = False,
    progress: ProgressCallback = lambda _: None,
    on_wait: Callable[[], None] = lambda: None,
) -> AutoSummary:
    """Find out which recipe of augmentation helps on a corpus, and train a tagger with it.

    Gains over gold alone are measured by cross-validation on the training sentences, or on `dev`, at equal numbers of
    optimizer steps, by the rule of `entaug.study.choice`. No gain is measured on test sentences; no sentence
    that one is measured on is seen by a teacher or a method, or used as unlabelled text. An interrupted call
    goes on where it was if it is repeated, with the same result.

    Args:
        train: the gold training sentences; None for a tagger that learns joined labels of `sources` alone, of which
            nothing can be measured.
        output: the folder of the result, new or empty: ``tagger``, ``train.jsonl`` (gold and added sentences),
            ``augmented.jsonl`` (the added ones alone), ``report.html``, ``plan.toml`` and ``summary.json``.
        unlabelled: files of further text of the same kind; labels in them are ignored.
        dev: labelled sentences to measure gains on, in place of cross-validation.
        held_out: test files. Nothing is measured on them; unlabelled text must share no sentence with them, and lists
            of mentions are used without theirs.
        drop_held_out: leave unlabelled sentences that are in `dev` or `held_out` out instead of raising an error.
        mentions: lists of mentions for ``mr``: ``FILE=LABEL``, or another form that it reads. In measurements they are
            used without the mentions of the held-out sentences.
        sources: a TOML file that names sources of labels of the unlabelled text (lists, models of other libraries,
            language models, files): their labels are joined to soft labels, see
            `entaug.taggers.sources.joined.JoinedTagger`.
        encoder: the pretrained encoder of the tagger: an alias of the starter set, a folder, or a name on the hub.
        teacher_encoder: the encoder of the teacher, for example a larger one, whose knowledge the tagger then learns
            from unlabelled text; None for the mean of three taggers with `encoder`, which are trained anyway.
        budget: the time in minutes. It limits folds, recipes and repetitions in a fixed order, by the duration of a
            first training; None for all.
        tagger: name of the tagger; None for ``"linear"``, or ``"w2ner"`` for nested and discontinuous mentions.
        recipes: names of the recipes to try, see `entaug.study.choice.RECIPES`; None for all that
            apply, ``"gal"`` only without unlabelled text.
        folds: number of folds; None to let the budget decide, 0 to measure nothing: then the gains on other corpora
            decide, which is enough for a teacher with a larger encoder.
        repeats: number of repetitions; None to let the budget decide.
        steps: number of optimizer steps of every training; None to derive it from the number of sentences, see
            `entaug.taggers.base.default_steps`.
        seed: the random seed.
        repair: repair invalid tag sequences.
        from_format: format of `train` and `dev`; None to detect it.
        read_options: options of this format.
        force: drop what an interrupted call with other arguments left.
        progress: called during each training.
        on_wait: called once if another process works on this output; then it is waited for.

    Returns:
        What was chosen, and which gain to expect.

    Raises:
        InputError: a file is invalid, or unlabelled text holds sentences of `dev` or `held_out`.
        OutputError: the output exists, or cannot be written.
        ParameterError: an argument is invalid.
        MissingModelError: the encoder is not on this machine.
        UnknownNameError: there is no such recipe or tagger.

    Example:
        >>> auto("train.conll", "result", folds=1)
        Traceback (most recent call last):
        ...
        entaug.errors.ParameterError: folds must be an integer of at least 2, or 0, or none, not 1
    """
    begun, given = time.monotonic(), locals()
    check_arguments(auto, given)
    arguments = {name: _plain(given[name]) for name in given if name not in (*_NOT_IN_PLANS, "begun")}
    output = Path(output)
    check_new_folder(output)
    inputs = _read_inputs(arguments)
    arguments["tagger"] = tagger or default_tagger(inputs.gold)
    check_has_encoder(arguments["tagger"])
    for name in filter(None, (encoder, teacher_encoder)):
        created = create_tagger(arguments["tagger"], encoder=str(name))
        created.check_requirements()
        inputs.notes += note_on_encoder(created, inputs.gold)
    make_folder(output.parent)
    with lock(partial_paths(output)[0], on_wait):
        check_new_folder(output)  # another process may have finished it
        if train is None:
            summary = _train_without_gold(arguments, inputs, output, progress)
            return replace(summary, seconds=time.monotonic() - begun)
        search = _Search(arguments, inputs, output, budget=budget, force=force, progress=progress)
        return replace(search.execute(), seconds=time.monotonic() - begun)


def _plain(value: Any) -> Any:
    """A value of an argument as TOML and JSON know it."""
    if isinstance(value, Mapping):
        return {key: one for key, one in value.items() if one is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(map(_plain, value))
    return str(value) if isinstance(value, Path) else value


def read_plan_file(path: str | Path) -> dict[str, Any]:
    """Read the plan of a finished choice: arguments of `auto`."""
    path = Path(path)
    table, lines = read_toml(path, "name a training file, or a plan")
    digests = table.pop(DIGESTS, {})
    known = {parameter.name: parameter for parameter in parameters_of(auto) if parameter.name not in _NOT_IN_PLANS}
    for key, value in table.items():
        with lines.at("", key=key):
            if key not in known:
                raise UnknownNameError("key", key, known)
            known[key].check(value)
    if "train" not in table and "sources" not in table:
        raise InputError("names no training file", path=str(path), remedy='add train = "FILE"')
    with lines.at("", key=DIGESTS):
        if not isinstance(digests, dict):
            raise InputError(f"{DIGESTS} must be a table", remedy="remove it to use the files as they are")
    for name, digest in digests.items():
        file = path.parent / name
        if not file.exists() or file_digest(file) != digest:
            what = "has changed since the plan was written" if file.exists() else "does not exist"
            remedy = "restore it, or delete its line to use it as it is"
            raise InputError(f"{file} {what}", path=str(path), line=lines.line_of(DIGESTS, 0, name), remedy=remedy)
    for key in FILE_ARGUMENTS & table.keys():
        value = table[key]
        table[key] = (
            [str(path.parent / name) for name in value] if isinstance(value, list) else str(path.parent / value)
        )
    return table


# --------------------------------------------------------------------------------------------------------------- inputs


@dataclass
class _Inputs:
    """The sentences of a search."""

    gold: list[Sentence]
    unlabelled: list[Sentence] = field(default_factory=list)
    dev: list[Sentence] | None = None
    held_out: list[Sentence] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def files(self) -> dict[str, str]:
        """The digests of the files by their names, or by their paths where names are equal."""
        names = Counter(Path(path).name for path in self.digests)
        return {
            path if names[Path(path).name] > 1 else Path(path).name: digest for path, digest in self.digests.items()
        }


def _read_inputs(arguments: Mapping[str, Any]) -> _Inputs:
    """Read and check the files."""
    train, dev, held_out = arguments["train"], arguments["dev"], arguments["held_out"]
    unlabelled, lists, sources = arguments["unlabelled"], arguments["mentions"], arguments["sources"]
    if sources is not None:
        read_sources(Path(sources))  # reports what is wrong with it
        if not unlabelled:
            remedy = "name it as `unlabelled`"
            raise ParameterError("sources label unlabelled text, and none is given", parameter="sources", remedy=remedy)
    if train is None and (sources is None or dev is not None):
        message = "without a training file there is only what sources of labels say, and no dev file"
        raise ParameterError(message, parameter="train", remedy="name a training file, or sources alone")
    if held_out and not unlabelled and not lists:
        remedy = "give unlabelled text or lists of mentions, or leave it out"
        raise ParameterError("held_out has nothing to be compared with", parameter="held_out", remedy=remedy)
    layout = {"repair": arguments["repair"], **(arguments["read_options"] or {})}
    inputs = _Inputs([] if train is None else list(read(train, arguments["from_format"], **layout)))
    with_mentions = sum(bool(sentence.mentions) for sentence in inputs.gold)
    if dev is not None:
        inputs.dev = list(read(dev, arguments["from_format"], **layout))
        require_mentions(inputs.dev, dev, "to measure gains by")
        require_unseen(inputs.dev, dev, inputs.gold, train)
    elif train is not None and with_mentions < FEWEST:
        message = f"has {with_mentions} sentences with mentions, and cross-validation needs at least {FEWEST}"
        raise InputError(message, path=train, remedy="label more sentences, or name held-out ones as `dev`")
    if train is not None:
        require_mentions(inputs.gold, train)
    if unlabelled:
        text = read_unlabelled(
            unlabelled,
            inputs.gold,
            held_out=[*([] if dev is None else [dev]), *held_out],
            drop_held_out=arguments["drop_held_out"],
            language=layout.get("language"),  # of corpora that are running text themselves
        )
        inputs.unlabelled = [
            Sentence(
                sentence.tokens,
                id=f"unlabelled/{SELF_TRAINING}-{number}",
                spaces=sentence.spaces,
                provenance=Provenance(SELF_TRAINING, details={"unconditioned": True, "text": sentence.id}),
            )
            for number, sentence in enumerate(text, start=1)
        ]
        inputs.notes += text.notes
    inputs.held_out = [sentence for corpus in read_each(held_out, beside=True, repair=True) for sentence in corpus]
    for given in lists:
        read_mention_list(given)  # reports what is wrong with it
    files = [*(one for one in (train, dev, sources) if one is not None), *unlabelled, *held_out]
    files += [parse_specification(given)[0] for given in lists]
    inputs.digests = {str(path): file_digest(Path(path)) for path in files}
    return inputs


# --------------------------------------------------------------------------------------------------------------- search


class _Search:
    """The choice of a recipe for a corpus, and the final training; finished work is kept in ``OUT.partial``."""

    def __init__(
        self,
        arguments: dict[str, Any],
        inputs: _Inputs,
        output: Path,
        *,
        budget: float | None,
        force: bool,
        progress: ProgressCallback,
    ) -> None:
        self.arguments = arguments
        self.inputs = inputs
        self.output = output
        self.budget = budget
        self.notes = list(inputs.notes)
        self.tagger: str = arguments["tagger"]
        self.has_probabilities = gives_probabilities(self.tagger)
        self.methods = {"mr": {"mentions": arguments["mentions"]}} if arguments["mentions"] else {}
        self.student = CurveTagger(name=self.tagger, encoder=arguments["encoder"], steps=arguments["steps"])
        self.steps = self.student.num_steps(len(inputs.gold))
        self.counter = StepCounter(progress)
        self.folder = partial_paths(output)[0]
        try:
            self._open_folder(force=force)
        except OSError as error:
            raise output_error(self.folder, error) from None
        self.store = RecordStore(self.folder)
        self.whole = self._split("gold", inputs.gold, None)
        self.recipes = self._applicable_recipes()
        # Whether a teacher with an encoder of its own labels the sentences of any recipe.
        self.has_teacher = arguments["teacher_encoder"] is not None and any(one.has_teacher for one in self.recipes)

    def _open_folder(self, *, force: bool) -> None:
        """Make the folder, or go on with what an interrupted call with the same input left there."""
        compute = asdict(compute_settings())
        files = list(self.inputs.digests.values())
        key = {"key": short_hash([__version__, files, self.arguments, compute["device"], compute["precision"]])}
        is_empty = self.folder.is_dir() and not any(self.folder.iterdir())
        note = self.folder / "run.json"
        if self.folder.exists() and not is_empty and (found := read_object(note)) != key:
            if found is None or "key" not in found:
                raise OutputError("exists and does not belong to a run", path=str(self.folder), remedy="move it away")
            if not force:
                message = "was left by an interrupted run with other input or options"
                remedy = "repeat that run, or pass `force=True` to drop it"
                raise OutputError(message, path=str(self.folder), remedy=remedy)
            shutil.rmtree(self.folder)
        self.folder.mkdir(exist_ok=True)
        write_file(note, orjson.dumps(key))

    def execute(self) -> AutoSummary:
        """Choose, train and write the result."""
        if self.budget is None or self.arguments["folds"] == 0:  # else the first training decides the size
            self.counter.total = self._total_steps(self._candidates()[-1])
        seconds = self._seconds(self._run(self._spec(self.whole, 0, GOLD), "training on all gold sentences"))
        teacher_cost = 0.0
        if self.has_teacher:
            spec = self._spec(self.whole, 0, TEACHER)
            teacher_cost = self._seconds(self._run(spec, "training the teacher on all gold sentences")) / seconds
        size = self._size(seconds, teacher_cost)
        self.recipes = self.recipes[: size.recipes]
        self.counter.total = self._total_steps(size)
        gains, gold_f1, teacher_f1 = self._measure(size)
        chosen = choice.choose(gains)
        recipe = None if chosen is None else RECIPES[chosen.recipe]
        augmented, tagger = self._train_final(recipe)
        has_dev = self.inputs.dev is not None
        summary = AutoSummary(
            input=self.arguments["train"],
            output=str(self.output),
            sentences=len(self.inputs.gold),
            augmented=len(augmented),
            recipe=recipe.name if recipe else GOLD,
            size=size,
            measured_on=("dev" if has_dev else "cross-validation") if size.is_measured else "nothing",
            steps=self.steps,
            encoder=self.arguments["encoder"],
            teacher_encoder=self.arguments["teacher_encoder"] if self.has_teacher else None,
            is_english=not note_on_encoder(create_tagger(self.tagger, encoder=SMALL), self.inputs.gold),
            unlabelled=len(self.inputs.unlabelled),
            gold_f1=gold_f1,
            teacher_f1=teacher_f1,
            gains=gains,
            files=self.inputs.files,
            notes=self.notes,
        )
        self.counter.total = None
        self.counter.report("writing the report")
        pinned = {"recipes": [recipe.name for recipe in self.recipes], "repeats": size.repeats or None}
        pinned["folds"] = None if has_dev and size.is_measured else size.folds
        arguments = {**self.arguments, **pinned}
        write_output(self.output, self.inputs.gold, augmented, tagger, summary, arguments, self.inputs.digests)
        shutil.rmtree(self.folder, ignore_errors=True)
        return summary

    # ----------------------------------------------------------------------------------------------------------- runs

    def _split(self, name: str, gold: Sequence[Sentence], test: Sequence[Sentence] | None) -> DataSplit:
        """The files of trainings on some gold sentences."""
        data = self.folder / "data"
        most = self._num_unlabelled(gold)
        places = range(len(self.inputs.unlabelled))
        drawn = sorted(Random(f"unlabelled {self.arguments['seed']}").sample(places, most))
        unlabelled = [self.inputs.unlabelled[i] for i in drawn]
        others = {"held-out": self.inputs.held_out, "dev": None if test else self.inputs.dev}
        return DataSplit(
            corpus=CorpusPlan(name="gold", mix=("gold",)),  # its files are those of the split
            size=len(gold),
            num_gold=len(gold),
            train=write_part(data, f"{name}.train", gold),
            test_files={"": write_part(data, f"{name}.test", test)} if test else {},
            unlabelled=write_part(data, f"unlabelled.{most}", unlabelled) if unlabelled else None,
            others=tuple(write_part(data, kind, some) for kind, some in others.items() if some),
        )

    def _num_unlabelled(self, gold: Sequence[Sentence]) -> int:
        """The number of unlabelled sentences that a training on some gold sentences uses."""
        return min(len(self.inputs.unlabelled), self.student.num_unlabelled(len(gold)))

    def _spec(self, split: DataSplit, repeat: int, name: str, member: int = 0) -> RunSpec:
        """The run of a recipe, of the teacher, or of one of the gold-only taggers, which are the teacher otherwise."""
        first = self.arguments["seed"] + SEEDS_PER_REPEAT * repeat
        student = self.student.plan(split.size)
        teacher = TeacherPlan(label=TEACHER, size=TEACHER_SIZE, seeds="shared", first_seed=first)
        if name in RECIPES and RECIPES[name].sources:
            teacher = TeacherPlan(label=TEACHER, sources=Path(self.arguments["sources"]))
        elif encoder := self.arguments["teacher_encoder"]:
            own = replace(student, params={"encoder": encoder})
            teacher = replace(teacher, size=1, tagger=own, first_seed=first + TEACHER_SIZE + 1)
        parts = self._parts(RECIPES[name], split) if name in RECIPES else []
        method = parts[0] if parts else None
        if len(parts) > 1:
            labels = tuple(part.label for part in parts)
            method = MethodPlan(combine=labels, label="both", ratios=(1,), training=parts[0].training)
        return RunSpec(
            split=split,
            tagger=student,
            arm=name,
            ratio=float(method.ratios[0]) if method else 0.0,
            seed=first + (TEACHER_SIZE if name in RECIPES else member),
            method=method,
            threads=0,
            folder=self.folder,
            parts=tuple(parts),
            teachers=(teacher,),
        )

    def _parts(self, recipe: Recipe, split: DataSplit) -> list[MethodPlan]:
        """The methods of a plan that a recipe combines."""
        parts = []
        if recipe.unlabelled and split.unlabelled:
            ratio = int(split.unlabelled.stem.partition(".")[2]) / split.size
            own: dict[str, Any] = {"labels": "teacher" if recipe.soft else "teacher-hard", "training": recipe.training}
            parts.append(MethodPlan(name=SELF_TRAINING, label="self", ratios=(ratio,), **own))
        if recipe.method:
            copies = max(1, min(recipe.copies, self.student.num_steps(split.size) * BATCH_SIZE // split.size))
            own = {"labels": "teacher" if recipe.soft else "method", "training": recipe.training}
            params = self.methods.get(recipe.method, {})
            parts.append(MethodPlan(name=recipe.method, label="method", ratios=(copies,), params=params, **own))
        return parts

    def _run(self, spec: RunSpec, phase: str) -> RunRecord:
        """Execute a run that is not finished."""
        if spec.key in self.store.records:
            self.counter.skip(spec.steps)
            return self.store.records[spec.key]
        try:
            self.store.append(*execute_run(spec, self.counter.training(phase)))
        except EntaugError as error:
            error.message += f" (in {phase})"
            raise
        return self.store.records[spec.key]

    def _seconds(self, record: RunRecord) -> float:
        return self.store.seconds.get(record.key) or 0.01

    # -------------------------------------------------------------------------------------------- what and how much

    def _applicable_recipes(self) -> list[Recipe]:
        """The recipes that can be tried; notes on the others."""
        names = self.arguments["recipes"]
        methods = [recipe.method for recipe in RECIPES.values() if names is None or recipe.name in names]
        tagger = create_tagger(self.tagger, encoder=self.arguments["encoder"])
        recipes, notes = choice.applicable_recipes(
            names,
            has_unlabelled=bool(self.inputs.unlabelled),
            has_probabilities=self.has_probabilities,
            is_flat=all(sentence.is_flat for sentence in self.inputs.gold),
            available=[method for method in dict.fromkeys(methods) if method and self._is_available(method)],
            has_sources=self.arguments["sources"] is not None,
            can_regularise=getattr(tagger, "can_regularise", False),
        )
        self.notes += notes
        if not self.has_probabilities:
            self.notes.append(f"{self.tagger} gives no probabilities: only recipes with hard labels are tried")
        return recipes

    def _is_available(self, method: str) -> bool:
        """Whether the models of a method are on this machine, and serve the language of the corpus."""
        augmenter = create_augmenter(method, **self.methods.get(method, {}))
        try:
            augmenter.load().check_languages(self.inputs.gold)
        except (MissingModelError, MissingExtraError):
            return False
        except InputError as error:
            self.notes.append(error.message)
            return False
        return True

    def _total_steps(self, size: SearchSize) -> int:
        """The steps of the whole; those of the final training are not yet certain."""
        trainings = size.num_trainings([1] * len(self.recipes), float(self.has_teacher))
        others = 0 if self.has_teacher else len(self._other_members())
        return round(trainings) * self._fold_steps() + (2 + self.has_teacher + others) * self.steps

    def _other_members(self) -> range:
        """The numbers of the gold-only taggers that are trained for the final teacher alone."""
        return range(1, TEACHER_SIZE if self.has_probabilities else 1)

    def _fold_steps(self) -> int:
        """The steps of a training on a part of the gold sentences, approximately."""
        share = 0.75 if self.inputs.dev is None else 1
        return self.student.num_steps(round(share * len(self.inputs.gold)))

    def _size(self, seconds: float, teacher_cost: float) -> SearchSize:
        """The size; what the budget allows is decided once and noted, so that a resumed run keeps it."""
        file = self.folder / "size.json"
        if (note := read_object(file)) is None:
            candidates = self._candidates()
            size, minutes = candidates[-1], 0.0
            if self.budget is not None:
                batches = (len(self.inputs.gold) + self._num_unlabelled(self.inputs.gold)) / BATCH_SIZE / self.steps
                costs = [recipe.relative_cost(batches) for recipe in self.recipes]
                cost = seconds * _OVERHEAD * self._fold_steps() / self.steps
                # The first training, the final teacher, and the other final trainings.
                ends = seconds * (1 + teacher_cost + _OVERHEAD * (TEACHER_SIZE - 1 + max(costs, default=1)))
                times = {one: one.num_trainings(costs, teacher_cost) * cost + ends for one in candidates}
                affordable = [one for one, time_ in times.items() if time_ <= 60 * self.budget]
                size = affordable[-1] if affordable else SearchSize(0, len(self.recipes), 0)
                minutes = 0.0 if affordable else times[candidates[0]] / 60
            note = {**asdict(size), "least_minutes": minutes}
            write_file(file, orjson.dumps(note))
        if least := note.pop("least_minutes"):
            about = f"that takes about {least:.0f} minutes"
            self.notes.append(f"the budget is too small to measure the gain of a recipe: {about}")
        return SearchSize(**note)

    def _candidates(self) -> list[SearchSize]:
        """The sizes that the arguments allow, from the smallest to the largest."""
        given = {name: self.arguments[name] for name in ("folds", "repeats")}
        return choice.search_sizes(len(self.recipes), has_dev=self.inputs.dev is not None, **given)

    # --------------------------------------------------------------------------------------------------- measurements

    def _measure(self, size: SearchSize) -> tuple[list[Gain], float | None, float | None]:
        """Train on the folds, and estimate the gains of the recipes, and the F1 of gold alone and of the teacher."""
        is_larger = self.has_teacher and self._bytes_of(TEACHER) >= _LARGER * self._bytes_of(GOLD)
        priors = {recipe.name: recipe.prior(is_teacher_larger=is_larger) for recipe in self.recipes}
        if not size.is_measured:
            return choice.prior_gains(priors), None, None
        gains: list[Gain] = []
        outcomes: list[Outcome] = []
        for repeat in range(size.repeats):
            best = sorted(gains, key=lambda gain: -gain.expected)[: choice.FINALISTS]
            finalists = {gain.recipe for gain in best}
            tried = [recipe for recipe in self.recipes if not repeat or recipe.name in finalists]
            outcomes.append(self._measure_once(tried, size, repeat))
            gains = choice.estimate_gains(outcomes, priors)
        gold_f1 = _mean_f1([counts for outcome in outcomes for counts in outcome.gold])
        teacher_f1 = _mean_f1([outcome.recipes[TEACHER] for outcome in outcomes]) if self.has_teacher else None
        return gains, gold_f1, teacher_f1

    def _measure_once(self, recipes: Sequence[Recipe], size: SearchSize, repeat: int) -> Outcome:
        """One repetition: every held-out sentence is predicted once by each recipe."""
        import numpy as np

        runs = [(GOLD, member) for member in range(TEACHER_SIZE)]
        runs += [(TEACHER, 0)] * self.has_teacher + [(recipe.name, 0) for recipe in recipes]
        counts: dict[tuple[str, int], list[tuple[int, ...]]] = {run: [] for run in runs}
        fold_of: list[float] = []
        places: list[int] = []  # of the held-out sentences in the input
        for number, (own, split) in enumerate(self._splits(size, repeat)):
            places += own
            where = f"fold {number + 1} of {size.folds}" if self.inputs.dev is None else "dev"
            where += f", repetition {repeat + 1} of {size.repeats}" if size.repeats > 1 else ""
            for name, member in runs:
                record = self._run(self._spec(split, repeat, name, member), f"{where}: {name}")
                counts[name, member] += map(tuple, record.test.sentences)
            fold_of += [number] * len(record.test.sentences)
            drop_intermediate(self.folder, split)
        order = np.argsort(places)  # that of the input, the same in all repetitions
        arrays = {run: np.array(rows, np.float64)[order] for run, rows in counts.items()}
        gold = np.stack([array for (name, _), array in arrays.items() if name == GOLD])
        others = {name: array for (name, _), array in arrays.items() if name != GOLD}
        return Outcome(np.array(fold_of, np.float64)[order], gold, others)

    def _splits(self, size: SearchSize, repeat: int) -> Iterator[tuple[Iterable[int], DataSplit]]:
        """The files of the trainings on each fold, after the places of its held-out sentences in the input."""
        gold, dev, seed = self.inputs.gold, self.inputs.dev, self.arguments["seed"] + repeat
        if dev is not None:
            yield range(len(dev)), self._split(f"gold.{repeat}-0", gold, dev)
            return
        for number, places in enumerate(partition(gold, size.folds, seed)):
            yield places, self._split(f"gold.{repeat}-{number}", *without(gold, places))

    # ------------------------------------------------------------------------------------------------- final training

    def _tagger_folder(self, name: str) -> Path:
        """The folder of the tagger, or of the teacher, that is trained on all gold sentences."""
        spec = self._spec(self.whole, 0, name)
        member = spec.teachers[0].members(spec.tagger, spec.seed)[0]
        return gold_folder(spec, *(member if name == TEACHER else (spec.tagger, spec.seed)))

    def _bytes_of(self, name: str) -> int:
        return sum(file.stat().st_size for file in self._tagger_folder(name).rglob("*") if file.is_file())

    def _train_final(self, recipe: Recipe | None) -> tuple[list[Sentence], Path]:
        """Train on all gold sentences with the chosen recipe; return what it adds, and the folder of the tagger."""
        if recipe is None:
            return [], self._tagger_folder(GOLD)
        if recipe.has_teacher and not recipe.sources and self.arguments["teacher_encoder"] is None:
            for member in self._other_members():
                self._run(self._spec(self.whole, 0, GOLD, member), "final teacher")
        folder, added = self.folder / "student", self.folder / "added.jsonl"
        if not folder.is_dir():
            spec = self._spec(self.whole, 0, recipe.name)
            tagger, new = train_run(spec, progress=self.counter.training(f"final training: {recipe.name}"))
            write_part(self.folder, "added", new)
            tagger.save(folder)
        return read_part(added) if added.stat().st_size else [], folder  # a method may return nothing


def _train_without_gold(
    arguments: Mapping[str, Any], inputs: _Inputs, output: Path, progress: ProgressCallback
) -> AutoSummary:
    """Train a tagger on the text with joined labels of the sources alone."""
    sources = JoinedTagger(Path(arguments["sources"])).fit([])
    labelled = [
        one.sentence.with_(id=s.id, provenance=s.provenance)
        for one, s in zip(label_sentences(inputs.unlabelled, sources), inputs.unlabelled, strict=True)
    ]
    steps = int(arguments["steps"] or default_steps(len(labelled)))
    config = TaggerTrainingConfig(steps=steps, batch_size=BATCH_SIZE, seed=arguments["seed"])
    counter = StepCounter(progress)
    counter.total = steps
    tagger = create_tagger(arguments["tagger"], encoder=arguments["encoder"])
    tagger.fit(labelled, config=config, progress=counter.training("training on joined labels"))
    summary = AutoSummary(
        input="",
        output=str(output),
        sentences=0,
        augmented=len(labelled),
        recipe="sources",
        size=SearchSize(0, 0, 0),
        measured_on="nothing",
        steps=steps,
        encoder=arguments["encoder"],
        unlabelled=len(inputs.unlabelled),
        files=inputs.files,
        notes=[*inputs.notes, *sources.notes],
    )
    with tempfile.TemporaryDirectory() as folder:
        tagger.save(Path(folder, "tagger"))
        write_output(output, [], labelled, Path(folder, "tagger"), summary, arguments, inputs.digests)
    return summary


def _mean_f1(counts: Sequence[Any]) -> float:
    """The mean micro-F1, from 0 to 100, of taggers with match counts (correct, predicted, gold) by sentence."""
    values = [2 * one[:, 0].sum() / max(1, one[:, 1:].sum()) for one in counts]
    return round(100 * float(sum(values)) / len(values), 4)
