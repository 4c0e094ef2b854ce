"""The work of the server: predictions for tasks, and training in the background as tasks are annotated."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from entaug.backends.processes import interrupts_blocked, process_pool
from entaug.backends.protocols import Tagger
from entaug.backends.resolve import is_alias, resolve
from entaug.config.params import PositiveInt, parameters
from entaug.core.data import Sentence
from entaug.core.languages import LanguageProfile, language_name
from entaug.core.tags import Overlap
from entaug.errors import EntaugError, InputError, ParameterError, one_line
from entaug.files.atomic import write_file
from entaug.formats import read
from entaug.formats.base import ReadReport
from entaug.formats.label_studio import LabelStudioDialect, regions_of, task_sentences
from entaug.formats.unlabelled import corpus_tokenizer, running_text_language
from entaug.metrics.span_f1 import score
from entaug.serving.label_studio import (
    KEY_VARIABLE,
    LabelingConfig,
    LabelStudio,
    annotated_tasks,
    parse_config,
    project_number,
)
from entaug.serving.versions import Version, Versions, digest_of
from entaug.taggers.base import (
    TAGGERS,
    ConfiguredTagger,
    create_tagger,
    load_tagger,
    overlap_of,
    read_config,
    with_overlap,
)
from entaug.teacher.label import PseudoLabelled, label_sentences, most_informative

_FIRST = 200  # of the tasks, those among which no two are alike
_MIN_TOKENS = 4  # as `suggest` has it
_PATIENCE = 30.0  # seconds for an answer of Label Studio that is waited for when the server ends
_LAST = 1.0  # the score of tasks that come last
_STATE, _UNFINISHED = "project.json", ".training-"
_CHUNK = 256  # sentences after which other requests have their turn
_FLAT: Overlap = "outermost"  # which of overlapping regions a tagger of flat mentions learns
_NEWS = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED", "TASKS_CREATED", "PROJECT_UPDATED")
_cached_config = lru_cache(16)(parse_config)


class NotReadyError(EntaugError):
    """There is no tagger yet."""


@dataclass(kw_only=True)
class ServiceOptions:
    """Settings of a server besides its tagger and its folder.

    Args:
        gold: training sentences besides those annotated.
        dev: the sentences that each tagger is tested on.
        studio: the server of Label Studio; None to predict only.
        every: after how many annotated tasks a tagger is trained.
        split: whether a text is one sentence, or is split.
        language: the language of the texts; None for that of `gold`.
        report: called with what happens.
    """

    gold: Sequence[Sentence] = ()
    dev: Sequence[Sentence] = ()
    studio: LabelStudio | None = None
    every: PositiveInt = 50
    split: Literal["none", "lines", "sentences"] = "none"
    language: str | None = None
    report: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Served:
    """A trained tagger and its name in Label Studio."""

    tagger: Any
    name: str
    labels: frozenset[str] = frozenset()


@dataclass
class _State:
    """The project of a server, kept in a file."""

    project: int | None = None
    version: str = ""  # whose predictions Label Studio has,
    tasks: list[int] = field(default_factory=list)  # for these tasks


class AnnotationService:
    """Predicts for tasks with a tagger, a folder or a name, and keeps those that it trains in a folder."""

    def __init__(self, tagger: str | Path, folder: Path, options: ServiceOptions) -> None:
        self.options = options
        self.folder = folder
        self.versions = Versions(folder)
        self.context = copy_context()  # whose settings hold in all threads: the device, for example
        self._spec, self._first = _TaggerSpec.of(tagger)
        if options.studio is not None and self._spec.name and self._spec.name not in TAGGERS:
            remedy = "name the folder of the tagger that it was made of"
            raise ParameterError(f"{tagger} holds an exported tagger, which is not trained", remedy=remedy)
        self._language = options.language or (running_text_language(options.gold) if options.gold else "en")
        self._tokenize = corpus_tokenizer(options.gold, self._language) if options.gold else None
        self._is_assumed = options.language is None and not options.gold
        self._served: Served | None = None
        self._predicting = threading.Lock()  # tokenizers cannot be used by two threads
        self._state = _read_state(folder / _STATE)
        self._wake = threading.Event()
        self._wished = threading.Event()  # to train, whatever the number of annotated tasks
        self._is_closed = self.is_training = False
        self._has_new_tasks = True
        self.failure = ""
        self._thread = threading.Thread(
            target=self.context.copy().run, args=(self._work,), name="training", daemon=True
        )

    def start(self) -> None:
        """Load the latest tagger, and begin to train where that is due."""
        for left in self.folder.glob(f"{_UNFINISHED}*"):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        if (latest := self.versions.latest) is not None:
            self._serve(latest)
        else:
            self._served = self._first
        self._thread.start()
        if self._served is None and self.options.gold:
            self.train()
        elif self._state.project is not None:
            self._wake.set()

    def close(self) -> None:
        """End the training, of which nothing stays."""
        self._is_closed = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)

    # ------------------------------------------------------------------------------------------------------- requests

    def status(self) -> dict[str, Any]:
        """Return the answer to a question about the server's health."""
        latest = self.versions.latest
        return {
            "status": "UP",
            "model_class": "entaug",
            "model_version": self.model_version,
            "training": self.is_training,
            "sentences": latest.sentences if latest else 0,
            "advice": self.versions.advice(),
            "failure": self.failure,
        }

    @property
    def model_version(self) -> str:
        """The name of the tagger that is served."""
        return self._served.name if self._served else ""

    def setup(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take a project, which must be the one that was taken first."""
        number = project_number(body.get("project"))
        config = _cached_config(str(body.get("schema") or body.get("label_config") or ""))
        if self._state.project not in (None, number):
            what = f"belongs to project {self._state.project} of Label Studio, not {number}"
            raise InputError(what, path=str(self.folder), remedy="start another server with another folder")
        self._check_labels(config)
        if self._state.project is None:
            self._save_state(_State(number))
            self.options.report(f"connected with project {number}")
            self._wake.set()
        return {"model_version": self.model_version}

    def predict(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return predictions for tasks; the lower the score, the sooner a task should be annotated."""
        tasks = body.get("tasks")
        if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
            raise InputError("no list of tasks is given", remedy="call from Label Studio")
        config = _cached_config(str(body.get("label_config") or ""))
        return {"results": self._predictions(tasks, config), "model_version": self.model_version}

    def webhook(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take the news that something was annotated, or the wish to train."""
        action = body.get("action")
        if action == "START_TRAINING":
            if self.options.studio is None:
                what = "cannot train: the address of Label Studio is not known"
                remedy = f"start entaug serve with --label-studio URL, and the key in {KEY_VARIABLE}"
                raise InputError(what, remedy=remedy)
            self.train()
        elif action in _NEWS:
            if action == "TASKS_CREATED":
                self._has_new_tasks = True
            self._wake.set()
        return {"status": "ok"}

    def train(self) -> None:
        """Train as soon as no training is running, if there is anything new."""
        self._wished.set()
        self._wake.set()

    # ---------------------------------------------------------------------------------------------------- predictions

    def _predictions(self, tasks: Sequence[Mapping[str, Any]], config: LabelingConfig) -> list[dict[str, Any]]:
        served = self._served
        if served is None:
            raise NotReadyError("there is no tagger yet", remedy="annotate sentences and start the training")
        texts = [self._sentences(task, config.dialect) for task in tasks]
        sentences = [sentence for own in texts for sentence in own]
        self._note_language(sentences)
        labelled: list[PseudoLabelled] = []
        predicted: list[Sentence] = []
        for begin in range(0, len(sentences), _CHUNK):
            with self._predicting:
                labelled += label_sentences(sentences[begin : begin + _CHUNK], served.tagger)
                predicted += served.tagger.predict(sentences[begin : begin + _CHUNK])
        results: list[dict[str, Any]] = []
        whole: list[PseudoLabelled | None] = []
        start = 0
        for own in texts:
            end = start + len(own)
            whole.append(_joined(labelled[start:end]))
            known = [_with_labels(one, config.labels) for one in predicted[start:end]]
            results.append({"result": regions_of(known, config.dialect), "model_version": served.name})
            start = end
        for result, value in zip(results, _scores(whole), strict=True):
            result["score"] = round(value, 6)
        return results

    def _sentences(self, task: Mapping[str, Any], dialect: LabelStudioDialect) -> list[Sentence]:
        """The sentences of a task without mentions."""
        dialect = replace(dialect, language=self._language, split=self.options.split)
        try:
            return task_sentences(self._with_tokens(task, dialect), dialect, ReadReport(repair=True))
        except InputError as error:
            error.locate("", record=f"task {task.get('id')}")
            raise

    def _with_tokens(self, task: Mapping[str, Any], dialect: LabelStudioDialect) -> dict[str, Any]:
        """The task with the tokens of its text where these are to be those of the training sentences."""
        data = task.get("data")
        text = data.get(dialect.text_key) if isinstance(data, dict) else None
        if self._tokenize is None or not isinstance(data, dict) or "tokens" in data or not isinstance(text, str):
            return dict(task)
        tokens = [token for line in text.splitlines() if line.strip() for token in self._tokenize(line)]
        return {**task, "data": {**data, "tokens": tokens}}

    def _note_language(self, sentences: Sequence[Sentence]) -> None:
        """Say once that texts are not in the language that is assumed."""
        if self._is_assumed and (reason := LanguageProfile(sentences).mismatch([self._language])):
            self._is_assumed = False
            code = running_text_language(sentences)
            named = "`train`" if code == self._language else f"`language` {code} or `train`"
            words = f"is divided into words as {language_name(self._language)} is"
            self.options.report(f"the text {reason}, and {words}; start again with {named}")

    def _check_labels(self, config: LabelingConfig) -> None:
        labels = self._served.labels if self._served else frozenset()
        missing = sorted(labels.difference(config.labels))
        if missing and len(missing) == len(labels):
            what = f"the project has none of the labels of the tagger, which are {', '.join(missing)}"
            raise InputError(what, remedy="add them to the labelling configuration")
        if missing:
            self.options.report(f"the project lacks labels of the tagger, which are left out: {', '.join(missing)}")

    # ------------------------------------------------------------------------------------------------------- training

    def _work(self) -> None:
        """Train and send predictions whenever that is due; only this thread does."""
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._is_closed:
                return
            if is_forced := self._wished.is_set():
                self._wished.clear()
            try:
                self._work_once(is_forced=is_forced)
            except _ClosedError:
                return
            except Exception as error:  # noqa: BLE001 - of the training, or of what Label Studio sent
                self._has_new_tasks = True  # it may not have come to these
                self.failure = str(error) if isinstance(error, EntaugError) else f"{type(error).__name__}: {error}"
                self.options.report(f"failed: {one_line(self.failure)}")
            else:
                self.failure = ""

    def _work_once(self, *, is_forced: bool) -> None:
        studio, number = self.options.studio, self._state.project
        if studio is None or number is None:
            if is_forced:
                self._train_if_new(self.options.gold, 0)
            return
        latest = self.versions.latest
        with self._kept_wish(is_forced=is_forced):
            project = studio.project(number)
        config, count = _cached_config(str(project["label_config"])), int(project["num_tasks_with_annotations"])
        if is_forced or count - (latest.tasks if latest else 0) >= self.options.every:
            with self._kept_wish(is_forced=is_forced):
                tasks = studio.export(number)
            annotated = self._annotated(list(annotated_tasks(tasks)), config)
            self._train_if_new([*self.options.gold, *annotated], count)
        self._send_predictions(studio, number, config)
        # Connecting sets another one, and Label Studio orders tasks by the one that is set.
        if self._served is not None and project.get("model_version") != self._served.name:
            studio.show_version(number, self._served.name)

    @contextlib.contextmanager
    def _kept_wish(self, *, is_forced: bool) -> Iterator[None]:
        """Keep the wish to train for the next news where Label Studio does not answer."""
        try:
            yield
        except Exception:
            if is_forced:
                self._wished.set()
            raise

    def _train_if_new(self, sentences: Sequence[Sentence], tasks: int) -> None:
        digest, latest = digest_of(sentences), self.versions.latest
        if latest is not None and latest.digest == digest:
            self.options.report("nothing was annotated since the latest training")
            return
        if not any(sentence.mentions for sentence in sentences):
            raise InputError("there is no mention to learn from", remedy="annotate more tasks")
        self._train(sentences, tasks, digest)

    def _train(self, sentences: Sequence[Sentence], tasks: int, digest: str) -> None:
        number = self.versions.next_number()
        self.options.report(f"training on {len(sentences):,} sentences, {tasks:,} tasks among them")
        self.is_training = True
        try:
            with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=self.folder) as name:
                path = Path(name) / "tagger"
                counts = self._in_process(self._spec.for_sentences(sentences), sentences, self.options.dev, path)
                dev = digest_of(self.options.dev) if counts else ""
                version = Version(
                    number=number, sentences=len(sentences), tasks=tasks, digest=digest, dev=dev, counts=counts
                )
                self.versions.add(version, path)
        finally:
            self.is_training = False
        self._serve(version)
        advice = self.versions.advice()
        self.options.report(f"serving {version.name}{f': {advice}' if advice else ''}")

    def _in_process(self, *work: Any) -> list[list[int]]:
        """Train in a process of its own, which is ended with the server."""
        with process_pool(1) as pool:
            with interrupts_blocked():
                future = pool.submit(train_tagger, *work)
            while not future.done():
                wait([future], timeout=0.2)
                if self._is_closed:
                    raise _ClosedError
            return future.result()

    def _annotated(self, tasks: Sequence[Mapping[str, Any]], config: LabelingConfig) -> list[Sentence]:
        """The sentences of annotated tasks."""
        if not tasks:
            return []
        values = {alias: value for value, alias in config.labels.items()}
        dialect = replace(config.dialect, language=self._language, split=self.options.split)
        names = ("text_key", "from_name", "to_name", "offsets", "misaligned", "language", "split")
        with tempfile.TemporaryDirectory(prefix="entaug-") as folder:
            path = Path(folder) / "export.json"
            path.write_text(json.dumps([self._with_tokens(task, dialect) for task in tasks]), encoding="utf-8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # notes on files are those of the export
                options = {name: getattr(dialect, name) for name in names}
                corpus = list(read(path, "label-studio", repair=True, **options))
        self._note_language(corpus)
        return [_with_labels(Sentence(s.tokens, s.mentions, spaces=s.spaces), values) for s in corpus]

    def _serve(self, version: Version) -> None:
        """Serve a version from now on."""
        self._served = _served(load_tagger(self.versions.tagger_folder(version)), version.name)

    def _send_predictions(self, studio: LabelStudio, project: int, config: LabelingConfig) -> None:
        """Send predictions for tasks that are not annotated and have none of this version."""
        served, state = self._served, self._state
        if served is None or (state.version == served.name and not self._has_new_tasks):
            return
        self._has_new_tasks = False
        if state.version != served.name:
            state = _State(project, served.name)
        tasks = studio.export(project)
        known = {*state.tasks, *(task["id"] for task in annotated_tasks(tasks))}
        open_tasks = [task for task in tasks if task["id"] not in known]
        if open_tasks:
            found = self._predictions(open_tasks, config)
            predictions = [{**one, "task": task["id"]} for one, task in zip(found, open_tasks, strict=True)]
            studio.send_predictions(project, predictions)
            self.options.report(f"sent {len(open_tasks):,} predictions of {served.name}")
        self._save_state(replace(state, tasks=[*state.tasks, *(task["id"] for task in open_tasks)]))

    def _save_state(self, state: _State) -> None:
        write_file(self.folder / _STATE, json.dumps(vars(state)).encode())
        self._state = state


class _ClosedError(Exception):
    """The server is being ended."""


@dataclass(frozen=True)
class _TaggerSpec:
    """The tagger to train: its text form, or its name and parameters."""

    text: str = ""
    name: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    is_flat: bool = True  # whether no mentions overlap; of those that do, a flat tagger learns the longest

    @classmethod
    def of(cls, tagger: str | Path) -> tuple[_TaggerSpec, Served | None]:
        """The tagger that is meant, and itself if it is a folder with a trained one."""
        if is_alias("tagger", str(tagger)):
            named = resolve("tagger", str(tagger))
            if not hasattr(named, "save"):
                remedy = "name one that is trained, such as linear, bilstm-crf or w2ner, or a folder"
                raise ParameterError(f"{tagger} is not trained, and a server trains taggers", remedy=remedy)
            named.check_requirements()
            return cls(text=str(tagger)), None
        trained = load_tagger(tagger)
        config = read_config(Path(tagger))
        served = _served(trained, f"entaug-0-{str(config['sum'])[:8]}")
        return cls(name=str(config["tagger"]), params=dict(config["params"])), served

    def for_sentences(self, sentences: Sequence[Sentence]) -> _TaggerSpec:
        """The tagger for these sentences."""
        return replace(self, is_flat=all(sentence.is_flat for sentence in sentences))

    def create(self) -> Any:
        """Create the tagger, untrained."""
        tagger: Any = resolve("tagger", self.text) if self.text else create_tagger(self.name, **self.params)
        own = tagger.tagger if isinstance(tagger, ConfiguredTagger) else tagger
        if self.is_flat or own.name not in TAGGERS:
            return tagger
        params = {parameter.name: getattr(own, parameter.name) for parameter in parameters(TAGGERS[own.name])}
        if overlap_of(own.name, params) != "error":
            return tagger
        new = create_tagger(own.name, **with_overlap(own.name, params, _FLAT))
        return new if tagger is own else ConfiguredTagger(tagger.name, new, tagger.config)


def train_tagger(spec: _TaggerSpec, gold: Sequence[Sentence], dev: Sequence[Sentence], folder: Path) -> list[list[int]]:
    """Train and save a tagger; return correct, predicted and gold mentions of each development sentence."""
    tagger = spec.create().fit(gold)
    tagger.save(folder)
    if not dev:
        return []
    counts = score(dev, tagger.predict([Sentence(s.tokens, spaces=s.spaces) for s in dev])).sentence_counts()
    return [list(row) for row in zip(counts["correct"], counts["predicted"], counts["gold"], strict=True)]


def _served(tagger: Tagger, name: str) -> Served:
    return Served(tagger, name, frozenset(getattr(tagger, "labels_", ())))


def _read_state(path: Path) -> _State:
    with contextlib.suppress(OSError):
        try:
            return _State(**json.loads(path.read_bytes()))
        except (ValueError, TypeError):
            raise InputError("is not the state of a server", path=str(path), remedy="remove the file") from None
    return _State()


def _with_labels(sentence: Sentence, labels: Mapping[str, str]) -> Sentence:
    """The sentence with the mentions of known labels, by other names."""
    mentions = [replace(m, label=labels[m.label]) for m in sentence.mentions if m.label in labels]
    return sentence.with_(mentions=mentions)


def _joined(labelled: Sequence[PseudoLabelled]) -> PseudoLabelled | None:
    """The text of a task as one sentence, as sure as its words on average; None for an empty text."""
    if not labelled:
        return None
    tokens = [token for one in labelled for token in one.sentence.tokens]
    logs = [len(one.sentence) * math.log(max(one.confidence, 1e-12)) for one in labelled]
    return PseudoLabelled(Sentence(tokens), math.exp(math.fsum(logs) / len(tokens)))


def _scores(tasks: Sequence[PseudoLabelled | None]) -> list[float]:
    """The confidence of each task; of those that `suggest` would pass over, 1."""
    found = [task for task in tasks if task is not None]
    chosen, _ = most_informative(found, _FIRST)
    kept = {id(one) for one, _ in chosen}
    # How unsure the last one is; what follows was not compared.
    lowest = chosen[-1][1] if len(chosen) == _FIRST else 0.0
    return [
        _LAST
        if task is None or len(task.sentence) < _MIN_TOKENS or (id(task) not in kept and 1 - task.confidence > lowest)
        else task.confidence
        for task in tasks
    ]
