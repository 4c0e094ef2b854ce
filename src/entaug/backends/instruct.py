"""The protocol of instruct models, which are asked by prompts instead of being fine-tuned.

`entaug.backends.chat` implements it for servers with an OpenAI-compatible interface and for GGUF files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from entaug.metrics.tables import quantity, times

INCOMPLETE = "the answer reached the maximum length"
HOW_TO_NAME = "give http://HOST:PORT/v1#MODEL, or FILE.gguf"
"""The remedy where a generator is no instruct model."""


class Message(NamedTuple):
    """A message of a conversation.

    Args:
        role: ``"system"``, ``"user"`` or ``"assistant"``.
        text: its text.
    """

    role: str
    text: str


class ChatRequest(NamedTuple):
    """A request for one answer.

    Args:
        messages: the conversation so far.
        seed: the seed for sampling. Requests that differ only in their seeds may have different answers.
        max_tokens: maximum number of tokens of the answer.
        temperature: temperature of sampling.
    """

    messages: tuple[Message, ...]
    seed: int = 0
    max_tokens: int = 128
    temperature: float = 0.8


class Answer(NamedTuple):
    """The answer to a request.

    Args:
        text: the text; empty if there is none.
        failure: the reason why there is no usable text; None if there is one.
    """

    text: str
    failure: str | None = None


@dataclass
class Usage:
    """Counts of the requests to a model.

    Args:
        requests: requests that were sent and answered, or given up.
        from_cache: requests that were answered from the cache.
        repeated: repetitions of requests, by the reason of the failure.
        failed: requests without a usable answer, by reason.
        uncounted: answers whose tokens the server did not count, or by impossible numbers.
        input_tokens: tokens of the prompts sent, as the server counts them.
        output_tokens: tokens of the answers received, as the server counts them.

    Example:
        >>> usage = Usage(requests=3, input_tokens=1200, output_tokens=90)
        >>> usage.repeated["the server failed (500)"] += 1
        >>> usage.describe()
        ['3 requests, 0 from the cache; 1,200 tokens sent, 90 received', 'repeated once: the server failed (500)']
    """

    requests: int = 0
    from_cache: int = 0
    repeated: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    uncounted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def add_tokens(self, tokens: tuple[int, int] | None) -> None:
        """Count the tokens of a prompt and its answer.

        Args:
            tokens: the numbers of tokens of the prompt and of the answer; None if they are unknown.
        """
        if tokens is None:
            self.uncounted += 1
            return
        self.input_tokens += tokens[0]
        self.output_tokens += tokens[1]

    def add(self, other: Usage) -> None:
        """Add the counts of another process.

        Args:
            other: its counts.
        """
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)

    def take(self) -> Usage:
        """Return the counts so far, and begin anew.

        Returns:
            The counts.
        """
        taken = copy(self)
        vars(self).update(vars(Usage()))
        return taken

    def describe(self) -> list[str]:
        """Return the counts as lines for the summary of a run."""
        line = f"{quantity(self.requests, 'request')}, {self.from_cache:,} from the cache; "
        line += f"{self.input_tokens:,} tokens sent, {self.output_tokens:,} received"
        lines = [line]
        if self.uncounted:
            lines.append(f"the server did not count the tokens of {self.uncounted:,} answers")
        for what, counts in (("repeated", self.repeated), ("given up", self.failed)):
            for reason, count in sorted(counts.items()):
                lines.append(f"{what} {times(count)}: {reason}")
        return lines


@runtime_checkable
class InstructModel(Protocol):
    """A language model that answers requests.

    An implementation asks the requests of a call at the same time and keeps the answers, so that the answer to a
    request is always the same.
    """

    @property
    def name(self) -> str:
        """The name for provenance, which identifies the model."""

    @property
    def usage(self) -> Usage:
        """Counts of all requests so far."""

    @property
    def remote_host(self) -> str | None:
        """The machine that the texts are sent to; None if it is this one."""

    def answer(self, requests: Sequence[ChatRequest]) -> list[Answer]:
        """Ask requests.

        Args:
            requests: the requests; equal ones are asked once.

        Returns:
            The answer to each request.

        Raises:
            EntaugError: the model cannot be used at all, for example because the server is not reachable.
        """
