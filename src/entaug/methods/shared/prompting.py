"""Methods that ask an instruct model by prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from entaug.backends.instruct import Answer, ChatRequest, InstructModel, Message
from entaug.backends.prompts import Prompt, PromptFile, describe_prompt, packaged_prompt, prompt_beside, read_prompt
from entaug.config.params import NonNegativeInt, PositiveFloat, PositiveInt
from entaug.core.words import words_in
from entaug.methods.base import Augmenter
from entaug.methods.types import Rejection, RunStatistics

__all__ = ["NOT_ONE_LINE", "REPEATS_PROMPT", "PromptedAugmenter", "Query", "one_line"]

NOT_ONE_LINE = Rejection("the answer is not a single line")
REPEATS_PROMPT = Rejection("the answer repeats the prompt")

_NUM_EXAMPLES = 3
_LEAK = 4  # words of the prompt in a row that an answer must not have
_FENCE = re.compile(r"```\w*")
_QUOTES = (('"', '"'), ("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"))


class Query(NamedTuple):
    """An input for an instruct model."""

    values: Mapping[str, str]
    examples: Sequence[tuple[Mapping[str, str], str]]
    seed: int


@dataclass(kw_only=True, eq=False)
class PromptedAugmenter(Augmenter):
    """Base class of methods that can ask an instruct model: a model behind a server, or a GGUF file.

    Args:
        prompt: with an instruct model: a file with the prompt, in place of the packaged one (``entaug list prompts``).
        num_examples: with an instruct model: the number of training sentences in each prompt; none for 3.
        max_new_tokens: the maximum number of sub-words of a new sentence.
        temperature: for sampling; higher values give more variety.
    """

    prompt: PromptFile | None = field(default=None, metadata={"describe": describe_prompt, "relative": prompt_beside})
    num_examples: NonNegativeInt | None = None

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

    @property
    def _num_examples(self) -> int:
        return _NUM_EXAMPLES if self.num_examples is None else self.num_examples

    def _load(self) -> None:
        super()._load()
        self._prompt: Prompt = (
            packaged_prompt(self._purpose) if self.prompt is None else read_prompt(self.prompt, self._purpose)
        )

    def _plain(self, name: str, value: Any) -> Any:
        if name == "prompt" and value is not None:
            return describe_prompt(value)  # by content, not by place
        return super()._plain(name, value)

    def get_params(self, *, loaded: bool = False) -> dict[str, Any]:
        """See `entaug.backends.component.Component.get_params`."""
        params = super().get_params(loaded=loaded)
        if loaded:  # the prompt has an effect with an instruct model only
            unused = {"prompt", "num_examples"} if not self._is_prompted else set()
            params = {name: value for name, value in params.items() if name not in unused}
            if self._is_prompted and self.prompt is None:
                params["prompt"] = f"{self._prompt.name}@{self._prompt.digest}"
        return params

    # -------------------------------------------------------------------------------------------------------- for users

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        notes = super().notes()
        if self._is_prompted and (host := self.generator_.remote_host):
            notes.append(f"sentences of the corpus are sent to {host}")
        return notes

    def advice(self, statistics: RunStatistics) -> list[str]:
        """See `Augmenter.advice`."""
        usage = [f"language model: {line}" for line in self.generator_.usage.describe()] if self._is_prompted else []
        return [*super().advice(statistics), *usage]

    # -------------------------------------------------------------------------------------------------- for subclasses

    def _ask(self, queries: Sequence[Query]) -> list[str | Rejection]:
        """Ask the instruct model."""
        requests, leaks = [], []
        for query in queries:
            system, user = self._prompt.fill(query.values)
            leaks.append(_word_runs(system))
            messages = [Message("system", system)] if system else []
            for values, output in query.examples:
                messages += [
                    Message("user", self._prompt.fill({**query.values, **values})[1]),
                    Message("assistant", output),
                ]
            messages.append(Message("user", user))
            requests.append(ChatRequest(tuple(messages), query.seed, self.max_new_tokens, float(self.temperature)))
        answers = self.generator_.answer(requests)
        return [_text_or_rejection(answer, leak) for answer, leak in zip(answers, leaks, strict=True)]


def _text_or_rejection(answer: Answer, leak: frozenset[tuple[str, ...]]) -> str | Rejection:
    if answer.failure is not None:
        return Rejection(answer.failure)
    line = one_line(answer.text)
    if line is None:
        return NOT_ONE_LINE
    return line if _word_runs(line).isdisjoint(leak) else REPEATS_PROMPT


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
    [line] = lines
    for opening, closing in _QUOTES:
        inner = line[1:-1]
        if (
            len(line) > 2
            and line[0] == opening
            and line[-1] == closing
            and opening not in inner
            and closing not in inner
        ):
            return inner.strip()
    return line
