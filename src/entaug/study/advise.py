"""The function `advise`: what more sentences, unlabelled text or a larger encoder would bring, before any long work."""

from __future__ import annotations

import contextlib
import math
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import reduce
from pathlib import Path
from random import Random
from typing import Annotated, Any

import orjson
from annotated_types import Ge

from entaug._version import __version__
from entaug.backends.language_check import note_on_encoder
from entaug.backends.processes import number_of_processes
from entaug.config.params import PositiveFloat, PositiveInt, check_arguments
from entaug.core.corpus import UnlabelledText
from entaug.core.data import Sentence
from entaug.core.folds import FEWEST
from entaug.errors import InputError, MissingModelError
from entaug.files.atomic import make_folder, write_file
from entaug.files.json_text import read_object
from entaug.files.locks import lock
from entaug.files.streams import is_stdout
from entaug.formats import read
from entaug.formats.exchange import CorpusData, CorpusFiles, named_path, takes_data
from entaug.formats.file_job import check_apart, check_output, require_mentions, require_unseen, write_text
from entaug.formats.unlabelled import read_unlabelled
from entaug.metrics.consistency import SUSPICIOUS, find_label_errors
from entaug.metrics.learning_curve import CurvePrior, LearningCurve, fit_learning_curve
from entaug.metrics.significance import paired_bootstrap
from entaug.metrics.span_f1 import Scores
from entaug.metrics.tables import Heading, as_markdown
from entaug.report.html.page import render_html_document
from entaug.study.advice import (
    LARGER_COST,
    Advice,
    Measured,
    Suggestion,
    cleaning_measure,
    curve_rows,
    known_measures,
    larger_measure,
    list_measure,
    sentence_measures,
)
from entaug.study.choice import TEACHER_SIZE
from entaug.study.curves import (
    BATCH_SIZE,
    NUM_SIZES,
    CurveRuns,
    CurveTagger,
    Rounds,
    curve_parts,
    curve_sizes,
    dev_part,
    makespan,
)
from entaug.study.data import short_hash
from entaug.study.engine import ProgressCallback, StudyProgress, default_jobs, show_study
from entaug.study.records import RECORDS_FILE, RunRecord
from entaug.study.runs import RunSpec, drop_intermediate, gives_probabilities, train_run
from entaug.study.times import SLOWER, seconds_per_step
from entaug.taggers.base import TaggerTrainingConfig, check_has_encoder, create_tagger, default_tagger
from entaug.teacher.label import label_sentences, most_informative

_REPEATS = 3
_LEAST_SIZE = 10  # sentences of the smallest subset
_SHARE = 0.85  # of the budget, which trainings may take
_MAX_LABELLED = 1000  # unlabelled sentences that are looked at
_NUM_SHOWN = 10
_MAX_RUNGS = 30
_FEWEST_SIZES = 2
_PLAN_FILE = "plan.json"
_Z = 1.96
_LARGE = 1 << 30  # bytes: large enough for several processes, where they can be started


@takes_data("train", "dev", "unlabelled", lists=["unlabelled"], texts=["unlabelled"], show=show_study)
def advise(
    train: CorpusData,
    output: str | Path | None = None,
    *,
    unlabelled: CorpusFiles = (),
    dev: CorpusData | None = None,
    budget: PositiveFloat = 10.0,
    encoder: str = "minilm",
    larger_encoder: str = "mpnet",
    tagger: str | None = None,
    folds: Annotated[int, Ge(2)] = 3,
    steps: PositiveInt | None = None,
    more: PositiveInt = 100,
    seconds_per_sentence: PositiveFloat = 30.0,
    runs: str | Path | None = None,
    jobs: PositiveInt | None = None,
    seed: int = 0,
    repair: bool = False,
    from_format: str | None = None,
    read_options: Mapping[str, Any] | None = None,
    force: bool = False,
    progress: ProgressCallback = lambda _: None,
    on_wait: Callable[[], None] = lambda: None,
) -> Advice:
    """Forecast what more sentences, unlabelled text or a larger encoder would bring, before any long work.

    Taggers are trained on parts of the training sentences of four sizes and tested on held-out ones; the learning curve
    through their F1 is continued to more sentences, see `entaug.metrics.learning_curve`. The gains of unlabelled text
    and of a larger encoder are measured if the budget allows, else they are those on other corpora. Finished trainings
    are kept in `runs` and never repeated: a call with a larger budget goes on where the last one ended.

    Args:
        train: the gold training sentences.
        output: the page to write: HTML for ``.html``, else Markdown; None for none.
        unlabelled: files of further text of the same kind, of which the sentences to annotate next are selected; labels
            in them are ignored.
        dev: labelled sentences to test on, in place of cross-validation.
        budget: the time in minutes. It limits the trainings, by the time that the first ones take.
        encoder: the pretrained encoder of the tagger: an alias of the starter set, a folder, or a name on the hub.
        larger_encoder: an encoder to compare with it; its gain is measured if it is on this machine and the budget
            allows.
        tagger: name of the tagger; None for ``"linear"``, or ``"w2ner"`` for nested and discontinuous mentions.
        folds: number of folds.
        steps: number of optimizer steps of every training; None to derive it from the number of sentences, see
            `entaug.taggers.base.default_steps`.
        more: the number of further sentences to forecast for, besides twice as many as there are.
        seconds_per_sentence: the time that annotating a sentence takes.
        runs: the folder in which finished trainings are kept; None for one beside `output`, whose name ends in
            ``.runs``, or without `output` a temporary one.
        jobs: number of processes, each with one thread; None for one for each core, at most four.
        seed: the random seed.
        repair: repair invalid tag sequences.
        from_format: format of `train` and `dev`; None to detect it.
        read_options: options of this format.
        force: replace an output that exists.
        progress: called after each training.
        on_wait: called once if another process works in the folder of `runs`; then it is waited for.

    Returns:
        The learning curve, what each measure would bring, and what to do first.

    Raises:
        InputError: a file is invalid, or there are too few sentences.
        OutputError: the output exists, or cannot be written.
        ParameterError: an argument is invalid.
        MissingModelError: the encoder is not on this machine.
        UnknownNameError: there is no such tagger.

    Example:
        >>> advise("train.conll", folds=1)
        Traceback (most recent call last):
        ...
        entaug.errors.ParameterError: folds must be an integer of at least 2, not 1
    """
    check_arguments(advise, locals())
    begun = time.monotonic()
    if output is not None:
        check_apart([output], [train, *unlabelled, *([] if dev is None else [dev])])
        check_output(output, train, force=force)
    layout = {"repair": repair, **(read_options or {})}
    gold = list(read(train, from_format, **layout))
    require_mentions(gold, train)
    tested = None if dev is None else list(read(dev, from_format, **layout))
    _check_sentences(gold, train, tested, dev)
    text: UnlabelledText | None = None
    if unlabelled:
        held_out = [] if dev is None else [dev]
        options: dict[str, Any] = {"held_out": held_out, "drop_held_out": True, "language": layout.get("language")}
        text = read_unlabelled(unlabelled, gold, **options)
    name = tagger or default_tagger(gold)
    check_has_encoder(name)
    create_tagger(name, encoder=encoder).check_requirements()
    parts = curve_parts(gold, folds, seed) if tested is None else [dev_part(gold, tested, seed)]
    with contextlib.ExitStack() as stack:
        folder = _runs_folder(runs, output, stack)
        stack.enter_context(lock(folder / RECORDS_FILE, on_wait))
        processes = jobs or min(default_jobs(1), number_of_processes(None, _LARGE))
        trainings = stack.enter_context(CurveRuns(parts, folder, seed, processes, progress=progress))
        advisor = _Advisor(trainings, gold, CurveTagger(name=name, encoder=encoder, steps=steps), budget)
        advisor.measure_curve(keeps_taggers=text is not None)
        gain_of_text = None if text is None else advisor.measure_text(text)
        larger = CurveTagger(name=name, encoder=larger_encoder, steps=steps)
        is_served = advisor.is_served_by(larger)
        is_compared = is_served and larger != advisor.tagger
        gain_of_larger = advisor.measure_larger(larger) if is_compared else None
        advisor.measure_again()
        curve = advisor.curve()
        minutes = advisor.minutes_per_training
        cost = advisor.relative_cost(larger)
        file, texts = shlex.quote(str(named_path(train))), shlex.join(str(named_path(one)) for one in unlabelled)
        known = (file, minutes, curve.f1(len(gold)).value)
        measures = [
            *sentence_measures(curve, len(gold), more, seconds_per_sentence, minutes),
            *([larger_measure(*known, larger_encoder, cost, gain_of_larger)] if is_compared else []),
            *known_measures(
                *known,
                unlabelled=texts or None,
                has_probabilities=gives_probabilities(name),
                larger=larger_encoder if is_served else None,
                measured=gain_of_text,
            ),
            list_measure(file),
            cleaning_measure(file, len(find_label_errors(gold, min_score=SUSPICIOUS))),
        ]
        suggest = f"entaug suggest {file} --unlabelled {texts} --number {more} -o next.json --to label-studio"
        advice = Advice(
            input=str(train),
            output=None if output is None else str(output),
            sentences=len(gold),
            tagger=name,
            encoder=encoder,
            trainings=len(trainings.used),
            measured_on="dev" if dev is not None else f"{len(advisor.trainings)} of {folds} folds",
            curve=curve_rows(curve, len(gold), more),
            measures=measures,
            next_sentences=advisor.suggest(text) if text is not None else (),
            next_command=suggest if unlabelled else "",
            notes=[*advisor.notes, *(text.notes if text is not None else ())],
        )
    advice = replace(advice, seconds=time.monotonic() - begun)
    if output is not None:
        write_text(_page(advice, output), output, force=force)
    return advice


def _check_sentences(
    gold: Sequence[Sentence], train: str | Path, dev: Sequence[Sentence] | None, file: str | Path | None
) -> None:
    """Check that there are sentences to train on and to test on."""
    if (number := sum(bool(sentence.mentions) for sentence in gold)) < FEWEST:
        message = f"has {number} sentences with mentions, and a learning curve needs at least {FEWEST}"
        raise InputError(message, path=str(train), remedy="label more sentences")
    if dev is not None and file is not None:
        require_mentions(dev, file, "to test on")
        if len(dev) == 1:
            raise InputError("has one sentence, and a learning curve needs two", path=str(file), remedy="label more")
        require_unseen(dev, file, gold, train)


def _runs_folder(runs: str | Path | None, output: str | Path | None, stack: contextlib.ExitStack) -> Path:
    """The folder of finished trainings; a temporary one where none has a name."""
    if runs is None and (output is None or is_stdout(output)):
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="entaug-")))
    return make_folder(Path(runs if runs is not None else f"{output}.runs"))


def _page(advice: Advice, output: str | Path) -> str:
    """The page in the format of the output."""
    title = f"Advice on {Path(advice.input).name}"
    if str(output).lower().endswith((".html", ".htm")):
        return render_html_document(title, advice.blocks(), [advice.plot()])
    return as_markdown([Heading(title, 1), *advice.blocks()])


# ----------------------------------------------------------------------------------------------------------- trainings


class _Advisor:
    """Trainings within the budget."""

    def __init__(self, runs: CurveRuns, gold: Sequence[Sentence], tagger: CurveTagger, budget: float) -> None:
        self.runs = runs
        self.gold = gold
        self.tagger = tagger
        self.budget = budget
        self.notes = note_on_encoder(create_tagger(tagger.name, encoder=tagger.encoder), gold)
        self.sizes = self._choose_sizes()
        self.rounds = Rounds(len(runs.parts), _REPEATS)
        self.num_done = 0

    def _choose_sizes(self) -> list[int]:
        """The largest sizes whose trainings on one part fit in the budget; noted, so that a resumed call keeps them."""
        most = min(len(part.train) for part in self.runs.parts)
        ladder = [size for size in curve_sizes(most, _MAX_RUNGS) if size >= _LEAST_SIZE]
        if len(ladder) < _FEWEST_SIZES:
            different = len({sentence.tokens for sentence in self.gold})  # equal ones are in one fold
            message = f"{different} different sentences are too few for a learning curve"
            raise InputError(message, remedy="label more sentences, or give a dev file")
        data = [[s.tokens, [[m.label, m.spans] for m in s.mentions]] for part in self.runs.parts for s in part.train]
        key = short_hash([__version__, asdict(self.tagger), self.budget, self.runs.jobs, self.runs.seed, data])
        path = self.runs.folder / _PLAN_FILE
        if (note := read_object(path)) and note.get("key") == key:
            return list(note["sizes"])
        seconds = seconds_per_step(
            create_tagger(self.tagger.name, encoder=self.tagger.encoder),
            self.runs.parts[0].train,
            TaggerTrainingConfig(batch_size=BATCH_SIZE),
            threads=self.runs.threads,
        )
        for last in range(len(ladder), _FEWEST_SIZES - 1, -1):
            sizes = ladder[max(0, last - NUM_SIZES) : last]
            times = (SLOWER * seconds * self.tagger.num_steps(size) for size in sizes)
            if makespan(times, self.runs.jobs) <= 60 * _SHARE * self.budget:
                break
        write_file(path, orjson.dumps({"key": key, "sizes": sizes}))
        return sizes

    @property
    def minutes_per_training(self) -> float:
        """The time of a training on all gold sentences."""
        seconds = self.runs.seconds_per_step(self.tagger) or 0.0
        return seconds * self.tagger.num_steps(len(self.gold)) / 60

    def relative_cost(self, larger: CurveTagger) -> float:
        """The time of a step of another tagger as a multiple of that of this one."""
        times = [self.runs.seconds_per_step(tagger) for tagger in (larger, self.tagger)]
        return times[0] / times[1] if times[0] and times[1] else LARGER_COST

    def measure_curve(self, *, keeps_taggers: bool) -> None:
        """Make the trainings of the curve, all sizes of a part at a time, as far as the budget allows."""
        self._go_on(len(self.runs.parts), keeps_taggers=keeps_taggers)
        missing = len(self.runs.parts) - self.num_done
        if missing > 0:
            self.notes.append(f"the budget was too small for {missing} of {len(self.runs.parts)} folds (`budget`)")
        most = min(len(part.train) for part in self.runs.parts)
        if self.sizes[-1] < most:
            message = f"the budget was too small for more than {self.sizes[-1]:,} of {most:,} sentences (`budget`)"
            self.notes.append(f"{message}: forecasts go far beyond what was measured")

    def measure_again(self) -> None:
        """Repeat the trainings with other subsets and seeds, as far as the budget allows."""
        if self.num_done == len(self.runs.parts):
            self._go_on(len(list(self.rounds)))

    def _go_on(self, until: int, *, keeps_taggers: bool = False) -> None:
        for number, (part, repeat) in enumerate(list(self.rounds)[:until]):
            if number < self.num_done:
                continue
            last = self.sizes[-1]
            specs = [
                self.runs.spec(part, size, self.tagger, repeat, keep=keeps_taggers and size == last)
                for size in self.sizes
            ]
            if number and not self._is_affordable(specs):
                return
            again = f", repetition {repeat + 1}" if repeat else ""
            where = f"fold {part + 1} of {self.rounds.parts}" if self.rounds.parts > 1 else "dev"
            self.runs.run(specs, f"learning curve, {where}{again}")
            self.num_done = number + 1

    def _is_affordable(self, specs: Sequence[RunSpec], cost: float = 1.0) -> bool:
        """Whether the budget is enough for runs, of which finished ones cost nothing, and others more than gold's."""
        seconds = cost * (self.runs.seconds_per_step(self.tagger) or 0.0)
        left = (seconds * spec.steps for spec in specs if spec.key not in self.runs.store.records)
        return self.runs.minutes + makespan(left, self.runs.jobs) / 60 <= _SHARE * self.budget

    @property
    def trainings(self) -> list[int]:
        """The number of trainings of a size that each part has, of parts that have any."""
        return self.rounds.done_of(self.num_done)

    def curve(self) -> LearningCurve:
        """Fit the curve of what is finished."""
        done = self.trainings
        counts = [self.runs.counts(part, self.sizes, self.tagger, times) for part, times in enumerate(done)]
        return fit_learning_curve(self.sizes, counts, trainings=done)

    def is_served_by(self, larger: CurveTagger) -> bool:
        """Whether another encoder serves the language of the corpus; its gain on English corpora says nothing else."""
        notes = note_on_encoder(create_tagger(larger.name, encoder=larger.encoder), self.gold)
        if notes and larger != self.tagger:
            self.notes.append(f"no gain of {larger.encoder} is told, name another (`larger_encoder`): {notes[0]}")
        return not notes

    def measure_larger(self, larger: CurveTagger) -> Measured | None:
        """The gain of another encoder at the largest size; None if it is not measured."""
        if self.num_done < len(self.runs.parts):
            return None
        try:
            create_tagger(larger.name, encoder=larger.encoder).check_requirements()
        except MissingModelError:
            self.notes.append(f"the encoder {larger.encoder} is not on this machine: its gain was not measured")
            return None
        specs = [self.runs.spec(part, self.sizes[-1], larger) for part in range(len(self.runs.parts))]
        return self._measure_gain(specs, f"larger encoder {larger.encoder}", LARGER_COST)

    def measure_text(self, text: Sequence[Sentence]) -> Measured | None:
        """The gain of unlabelled text at the largest size; None if it is not measured."""
        if self.num_done < len(self.runs.parts) or not gives_probabilities(self.tagger.name):
            return None
        drawn = Random(f"unlabelled {self.runs.seed}").sample(text, len(text))
        parts = range(len(self.runs.parts))
        specs = [self.runs.self_training(part, self.sizes[-1], self.tagger, drawn) for part in parts]
        # The first tagger of the teacher is there.
        measured = self._measure_gain(specs, "unlabelled text", TEACHER_SIZE)
        for spec in specs[1:]:  # the tagger of the first part suggests sentences
            drop_intermediate(self.runs.folder, spec.split)
        return measured

    def _measure_gain(self, specs: Sequence[RunSpec], phase: str, cost: float) -> Measured | None:
        """The gain of runs, one for each part, over gold alone; some at a time, as far as the budget allows."""
        records: list[RunRecord] = []
        for start in range(0, len(specs), self.runs.jobs):
            group = specs[start : start + self.runs.jobs]
            if not self._is_affordable(group, cost):
                break
            records += self.runs.run(group, phase)
        if not records:
            return None
        size = self.sizes[-1]
        gold = [self.runs.store.records[self.runs.spec(part, size, self.tagger).key] for part in range(len(records))]
        tests = [reduce(Scores.__add__, (record.test for record in some)) for some in (records, gold)]
        difference = paired_bootstrap([tests[0]], [tests[1]])
        training = math.sqrt(2 / len(records)) * CurvePrior().training_sd_of(size)
        error = math.hypot((difference.high - difference.low) / (2 * _Z), training)
        return Measured(100 * difference.gain, 100 * error)

    def suggest(self, text: Sequence[Sentence]) -> list[Suggestion]:
        """The sentences that the tagger of the largest subset is least sure of."""
        self.runs.progress(StudyProgress("sentences to annotate next"))
        tagger, _ = train_run(self.runs.spec(0, self.sizes[-1], self.tagger, keep=True))
        drawn = Random(f"suggested {self.runs.seed}").sample(range(len(text)), min(_MAX_LABELLED, len(text)))
        is_flat = all(sentence.is_flat for sentence in self.gold)
        labelled = label_sentences([text[i] for i in sorted(drawn)], tagger, is_flat=is_flat)
        chosen, _ = most_informative(labelled, _NUM_SHOWN, seed=self.runs.seed)
        return [Suggestion(one.sentence.text, one.sentence.id, round(one.confidence, 4)) for one, _ in chosen]
