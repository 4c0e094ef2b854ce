"""Methods that train a model or let a language model write text: their base classes, and checks of generated text."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from annotated_types import Interval

from entaug.backends.config import DecodingConfig, Gap, TrainingConfig
from entaug.backends.instruct import Answer, ChatRequest, InstructModel, Message
from entaug.backends.prompts import Prompt, PromptFile, describe_prompt, packaged_prompt, prompt_beside, read_prompt
from entaug.backends.protocols import Generator, MultilingualGenerator
from entaug.config.params import NonNegativeInt, PositiveFloat, PositiveInt, PositiveShare
from entaug.config.presets import ONLY_IF_SET
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.words import words_in
from entaug.errors import InputError, OutputError, ParameterError
from entaug.files.atomic import make_folder
from entaug.files.locks import lock
from entaug.methods.base import Augmenter
from entaug.methods.shared.generated_text import (
    UNLISTED,
    GeneratedTexts,
    has_sentence_end,
    replace_tokens,
    token_similarity,
)
from entaug.methods.types import Rejection, Request, RunStatistics

TOO_SIMILAR = Rejection("too similar to its source")
COPIED = Rejection("a copy of a training sentence")
UNFINISHED = Rejection("no text was completed within the limits of the model and of max_new_tokens")
NOT_ENDED = Rejection("no mark at its end, as its source has")
_NOT_ONE_LINE = Rejection("the answer is not a single line")
_REPEATS_PROMPT = Rejection("the answer repeats the prompt")

_MANY_COPIES = 0.5  # minimum share of copies among all texts for a warning
_LEAK = 4  # words of the prompt in a row that an answer must not have
_FENCE = re.compile(r"```\w*")
_QUOTED = re.compile("|".join(f"{a}([^{a}{b}]+){b}" for a, b in ('""', "“”", "„“", "«»", "「」")))

Model = TypeVar("Model", bound=Any)
LearningRate = Annotated[float, Interval(gt=0, lt=1)]


@dataclass(kw_only=True, eq=False)
class TrainableAugmenter(Augmenter):
    """Base class of methods that train a model.

    Args:
        epochs: the maximum number of epochs; training stops early when the loss on held-out training sentences no
            longer decreases.
        batch_size: the number of sentences per optimizer step.
        learning_rate: the peak learning rate; none for the default of the model.
        validation_fraction: the share of the training sentences that is held out to stop early and to keep the best
            epoch; 0 to train for all epochs on all sentences.
        patience: the number of epochs without a smaller loss on held-out sentences after which training stops.
        adapters: whether low-rank adapters are trained instead of the whole model; none for adapters on a CPU only.
        checkpoint_dir: a folder for the trained model. A model trained on the same sentences is loaded from it, and an
            interrupted training continues; none to train each time.
    """

    epochs: PositiveInt = 10
    batch_size: PositiveInt = 8
    learning_rate: LearningRate | None = None
    validation_fraction: Annotated[float, Interval(ge=0, lt=1)] = field(default=0.1, metadata=ONLY_IF_SET)
    patience: PositiveInt = field(default=2, metadata=ONLY_IF_SET)
    adapters: bool | None = field(default=None, metadata=ONLY_IF_SET)
    checkpoint_dir: str | None = field(default=None, metadata={"local": True})
    max_attempts: PositiveInt = 4

    def _train(
        self, model: Model, data: Any, key: object, markers: Mapping[str, str] | None = None, **more: Any
    ) -> Model:
        """Train a model; with a checkpoint folder continue there, or restore the model that was trained before."""
        config = TrainingConfig(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            validation_fraction=self.validation_fraction,
            patience=self.patience,
            adapters=self.adapters,
            seed=self.seed,
        )
        options = {"progress": self.progress, **more, **({} if markers is None else {"new_tokens": markers})}
        trained: Model
        if self.checkpoint_dir is None:
            trained = model.fit(data, config, **options)
            return trained
        folder = Path(self.checkpoint_dir)
        adapters = getattr(model, "adapters", None) if self.adapters is None else self.adapters
        identity = (model.name, adapters, config, key, markers, *([more] if more else []))
        with lock(make_folder(folder.parent) / folder.name):  # one process trains, others load what it learned
            _claim(folder, hashlib.sha256(repr(identity).encode()).hexdigest())
            if (folder / "learned").exists():
                trained = model.restore(folder / "learned")
            else:
                trained = model.fit(data, config, checkpoint_dir=folder / "state", **options)
                trained.save(folder / "learned")
            shutil.rmtree(folder / "state", ignore_errors=True)  # also of a training that was killed at its very end
        return trained


def _claim(folder: Path, key: str) -> None:
    """Create a checkpoint folder, or check that it belongs to the same training."""
    key_file = folder / "key.txt"
    try:
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not key_file.exists())):
            raise OutputError("is not a checkpoint folder", path=str(folder), remedy="name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        is_begun = (folder / "learned").exists() or (folder / "state").exists()
        if is_begun and key_file.exists() and key_file.read_text().strip() != key:
            raise InputError(
                "contains a model that was trained on other sentences or with other parameters",
                path=str(folder),
                remedy="name a new folder",
            )
        key_file.write_text(key + "\n")
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"cannot be used ({reason})", path=str(folder), remedy="name another folder") from None


class TextPlan(NamedTuple):
    """A text to be written: its source, the input of the model, a seed, and the phrases that the text must have."""

    source: Sentence
    text: str
    seed: int
    required: Sequence[Sequence[str | Gap]] = ()
    basis: Any = None  # what a method reads the text by: templates, a list of mentions, the sentences of a prompt


class WritingAugmenter(Augmenter):
    """Base class of methods whose model writes texts: a request gives a plan, a plan a text, a text a sentence."""

    max_new_tokens: int
    temperature: float
    max_similarity: float
    constrained: bool = False
    generator_: Any
    trained_: Any = None
    texts_: GeneratedTexts
    draws_ahead = True

    def _plan(self, request: Request) -> TextPlan | Rejection:
        """Draw what is written for a request."""
        raise NotImplementedError

    def _write(self, plans: Sequence[TextPlan]) -> Sequence[Any]:
        """Return a text, or a rejection, for each plan."""
        return [texts[0] if texts and texts[0].strip() else UNFINISHED for texts in self._generate(plans)]

    def _read(self, plan: TextPlan, text: str) -> Sentence | Rejection:
        """Return the new sentence of a text, or the reason why the text is not accepted."""
        raise NotImplementedError

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        plans = [self._plan(request) for request in requests]
        ready = [plan for plan in plans if not isinstance(plan, Rejection)]
        texts = iter(self._write(ready) if ready else ())
        return [plan if isinstance(plan, Rejection) else self._read_one(plan, next(texts)) for plan in plans]

    def _read_one(self, plan: TextPlan, text: str | Rejection) -> Sentence | Rejection:
        return text if isinstance(text, Rejection) else self._read(plan, text)

    def _decoding(self) -> dict[str, Any]:
        """The options of decoding, besides length and temperature."""
        return {"strategy": "sample", "num_beams": 1}

    def _generate(self, plans: Sequence[TextPlan], *constraints: Any, **options: Any) -> Sequence[Sequence[str]]:
        """Let the generator write texts for each plan."""
        model = self.trained_ or self.generator_
        decoding = DecodingConfig(
            temperature=float(self.temperature), max_new_tokens=self.max_new_tokens, **self._decoding()
        )
        seeds = [plan.seed for plan in plans]
        texts: Sequence[Sequence[str]] = model.generate(
            [plan.text for plan in plans], decoding, seeds, *constraints, **options
        )
        return texts

    def _new_sentence(
        self,
        source: Sentence,
        tokens: Sequence[str],
        mentions: Sequence[Mention] | str,
        near: Iterable[Sentence] = (),
        sources: tuple[str, ...] = (),
        **details: Any,
    ) -> Sentence | Rejection:
        """Return a new sentence, unless it is a copy, has an unlisted mention, or is too similar to one of `near`."""
        # With constrained decoding it must also end as these do.
        if self.texts_.is_copy(tokens):
            return COPIED
        if isinstance(mentions, str):  # why they were not found
            return Rejection(mentions)
        if self.texts_.has_unlisted_mention(tokens, mentions):
            return Rejection(UNLISTED)
        if any(token_similarity(other.tokens, tokens) >= self.max_similarity for other in near):
            return TOO_SIMILAR
        if self.constrained and not has_sentence_end(tokens) and any(has_sentence_end(s.tokens) for s in near):
            return NOT_ENDED
        return replace_tokens(source, tokens, mentions, sources, **details)


@dataclass(kw_only=True, eq=False)
class GenerativeAugmenter(TrainableAugmenter, WritingAugmenter):
    """Base class of methods with a generator.

    Args:
        generator: a `Generator` or its name (starter: smollm2); or, for methods that can ask one by prompts, an
            `entaug.backends.instruct.InstructModel`: ``http://HOST:PORT/v1#MODEL``, a model behind a server with an
            OpenAI-compatible interface, or ``FILE.gguf``.
        max_new_tokens: the maximum number of sub-words of a new sentence; it is also limited to about twice the length
            of the longest training sentence.
        temperature: for sampling; higher values give more variety.
        constrained: whether decoding is constrained: a text must contain all required phrases and no other known
            mention (starter: yes). Small generators often omit phrases or repeat training sentences; the papers drop
            such texts.
        max_similarity: the similarity to the source, as a share of common words, from which on texts are rejected.
        language: the language of sentences without a field ``language``, for a generator that is told the language of
            each text (mBART); none for that of its tokenizer.
    """

    generator: Generator | InstructModel | str = "smollm2"
    max_new_tokens: PositiveInt = 128
    temperature: PositiveFloat = 0.8
    constrained: bool = True
    max_similarity: PositiveShare = 0.95
    language: str | None = field(default=None, metadata=ONLY_IF_SET)
    generator_: Any = field(init=False, repr=False)
    trained_: Generator | None = field(init=False, repr=False, default=None)
    _unwanted: Sequence[str] = field(init=False, repr=False, default=())  # what no text may contain

    _is_language_missing = False

    def _load(self) -> None:
        super()._load()
        if isinstance(self.generator_, InstructModel) and not isinstance(self, PromptedAugmenter):
            raise ParameterError(
                f"{self.name} fine-tunes its generator, which {self.generator_.name} does not allow",
                parameter="generator",
                remedy="use entda, aclm or rewrite, or name a folder or a model on the hub",
            )

    def _generate(self, plans: Sequence[TextPlan], *constraints: Any, **options: Any) -> Sequence[Sequence[str]]:
        required = [plan.required for plan in plans] if self.constrained else None
        languages = self._languages(plan.source for plan in plans)
        return super()._generate(plans, required, self._unwanted, *constraints, **languages, **options)

    def _language(self, sentence: Sentence) -> str | None:
        """Return the language of a sentence, if it is known."""
        language = sentence.meta.get("language") or self.language
        return None if language is None else str(language)

    def _languages(self, sentences: Iterable[Sentence]) -> dict[str, Any]:
        """Return the argument ``languages`` for the calls of a generator that takes it."""
        generator = self.generator_
        if not (isinstance(generator, MultilingualGenerator) and generator.languages_.codes):
            return {}
        languages = list(map(self._language, sentences))
        self._is_language_missing = self._is_language_missing or None in languages
        return {"languages": languages}

    def notes(self) -> list[str]:
        return super().notes() + ([self._note_on_languages] if self._is_language_missing else [])

    def notes_on_languages(self, sentences: Iterable[Sentence]) -> list[str]:
        """Return the note that a generator, loaded, is told a language that nobody gave for the sentences."""
        return [self._note_on_languages] if None in self._languages(sentences).get("languages", ()) else []

    @property
    def _note_on_languages(self) -> str:
        found = f"{self.generator_.name} is told that the sentences are in {self.generator_.languages_.default}"
        return f"{found}; if they are not, set language"

    def advice(self, statistics: RunStatistics) -> list[str]:
        texts = statistics.accepted + statistics.rejected.total()
        copied = statistics.rejected[COPIED.reason]
        if texts and copied > _MANY_COPIES * texts:
            found = f"{copied} of {texts} texts were copies of training sentences"
            return [f"{found}: the generator has memorised them; try fewer epochs or a lower learning_rate"]
        return []


class Query(NamedTuple):
    """An input for an instruct model: values of the prompt, examples with their answers, and a seed."""

    values: Mapping[str, str]
    examples: Sequence[tuple[Mapping[str, str], str]]
    seed: int


@dataclass(kw_only=True, eq=False)
class PromptedAugmenter(WritingAugmenter):
    """Base class of methods that can ask an instruct model: a model behind a server, or a GGUF file.

    Args:
        prompt: with an instruct model: a file with the prompt, in place of the packaged one (``entaug list prompts``).
        num_examples: with an instruct model: the number of training sentences in each prompt.
        max_new_tokens: the maximum number of sub-words of a new sentence.
        temperature: for sampling; higher values give more variety.
    """

    prompt: PromptFile | None = field(default=None, metadata={"describe": describe_prompt, "relative": prompt_beside})
    num_examples: NonNegativeInt = 3

    max_new_tokens: PositiveInt = 128
    temperature: PositiveFloat = 0.8
    generator_: Any = field(init=False, repr=False)

    @property
    def _is_prompted(self) -> bool:
        """Whether the loaded generator is an instruct model."""
        return isinstance(self.generator_, InstructModel)

    @property
    def _purpose(self) -> str:
        """The name of the packaged prompt."""
        return self.name

    def _load(self) -> None:
        super()._load()
        given = self.prompt
        self._prompt: Prompt = packaged_prompt(self._purpose) if given is None else read_prompt(given, self._purpose)

    def _plain(self, name: str, value: Any) -> Any:
        if name == "prompt" and value is not None:
            return describe_prompt(value)  # by content, not by place
        return super()._plain(name, value)

    def get_params(self, *, loaded: bool = False) -> dict[str, Any]:
        params = super().get_params(loaded=loaded)
        if loaded and not self._is_prompted:  # the prompt has an effect with an instruct model only
            del params["prompt"], params["num_examples"]
        elif loaded and self.prompt is None:
            params["prompt"] = f"{self._prompt.name}@{self._prompt.digest}"
        return params

    def notes(self) -> list[str]:
        notes = super().notes()
        if self._is_prompted and (host := self.generator_.remote_host):
            notes.append(f"sentences of the corpus are sent to {host}")
        return notes

    def advice(self, statistics: RunStatistics) -> list[str]:
        usage = [f"language model: {line}" for line in self.generator_.usage.describe()] if self._is_prompted else []
        return [*super().advice(statistics), *usage]

    def _query(self, plan: TextPlan) -> Query:
        """Return what an instruct model is asked for a plan."""
        raise NotImplementedError

    def _write(self, plans: Sequence[TextPlan]) -> Sequence[Any]:
        return self._ask(map(self._query, plans)) if self._is_prompted else super()._write(plans)

    def _ask(self, queries: Iterable[Query]) -> list[str | Rejection]:
        """Ask the instruct model."""
        requests, leaks = [], []
        for query in queries:
            system, user = self._prompt.fill(query.values)
            leaks.append(_word_runs(system))
            messages = [Message("system", system)] if system else []
            for values, output in query.examples:
                shown = self._prompt.fill({**query.values, **values})[1]
                messages += [Message("user", shown), Message("assistant", output)]
            messages.append(Message("user", user))
            requests.append(ChatRequest(tuple(messages), query.seed, self.max_new_tokens, float(self.temperature)))
        answers = self.generator_.answer(requests)
        return [_text_or_rejection(answer, leak) for answer, leak in zip(answers, leaks, strict=True)]


def _text_or_rejection(answer: Answer, leak: frozenset[tuple[str, ...]]) -> str | Rejection:
    if answer.failure is not None:
        return Rejection(answer.failure)
    line = one_line(answer.text)
    if line is None:
        return _NOT_ONE_LINE
    return line if _word_runs(line).isdisjoint(leak) else _REPEATS_PROMPT


def _word_runs(text: str) -> frozenset[tuple[str, ...]]:
    """Return all runs of words, in lower case, that betray the text that they come from."""
    words = words_in(text.lower())
    return frozenset(tuple(words[i : i + _LEAK]) for i in range(len(words) - _LEAK + 1))


def one_line(text: str) -> str | None:
    """Return the single line of an answer, without what instruct models put around it."""
    # A first line that ends in a colon ("Here is the sentence:"), fences of code and quotation marks around the whole
    # are removed.
    lines = [line for raw in text.splitlines() if (line := raw.strip()) and not _FENCE.fullmatch(line)]
    if len(lines) > 1 and lines[0].endswith((":", "：")):  # noqa: RUF001
        del lines[0]
    if len(lines) != 1:
        return None
    quoted = _QUOTED.fullmatch(lines[0])
    return quoted[quoted.lastindex or 0].strip() if quoted else lines[0]
