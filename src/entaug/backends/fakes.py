"""Deterministic fakes of models for examples and for the tests of plug-ins; those of other backends are in the tests.

They are functions of their input alone, take no time, and their results have no meaning.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Self

from entaug.backends.config import TrainingConfig, TrainingProgress
from entaug.backends.instruct import Answer, ChatRequest, Usage
from entaug.backends.protocols import MaskedExample, MaskedText
from entaug.core.data import Sentence

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from entaug.backends.soft_labels import TagProbabilities


_WORDS = ("one", "other", "new", "old", "good")


def number_of(text: str) -> float:
    """A number in [0, 1) that depends on a text."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) / 2**32


def array(values: Sequence[object]) -> NDArray[float32]:
    """Values as an array."""
    import numpy as np  # only fakes that return arrays need it

    return np.array(values, dtype=np.float32)


class FakeTrainable:
    """Base of the fakes that are trained and forget what they learned when they are saved."""

    def __init__(self, words: Iterable[str] = _WORDS) -> None:
        self._words = tuple(words)
        self.name = "fake"
        self.learned: list[Any] = []
        """The training examples of all epochs."""

    def _fit(self, examples: Callable[[int], Iterable[Any]], epochs: int, progress: TrainingProgress | None) -> Self:
        trained = type(self)(self._words)
        for epoch in range(epochs):
            trained.learned += examples(epoch)
        if progress is not None:
            progress(1, 1, 0.0)
        return trained

    def save(self, folder: str | Path) -> None:
        """Save what was learned as a file of the folder."""
        Path(folder).mkdir(parents=True, exist_ok=True)

    def restore(self, folder: str | Path) -> Self:
        """Return a model with what `save` wrote."""
        return type(self)(self._words)


class FakeMaskedLM(FakeTrainable):
    """A masked language model whose probabilities depend on the spelling."""

    def fill(
        self, texts: Sequence[MaskedText], top_k: int, *, first_only: bool = False
    ) -> list[list[list[tuple[str, float]]]]:
        filled = []
        for text in texts:
            gaps = [i for i, part in enumerate(text) if part is None]
            filled.append([self._candidates(f"{i}{text!r}")[:top_k] for i in (gaps[:1] if first_only else gaps)])
        return filled

    def _candidates(self, key: str) -> list[tuple[str, float]]:
        scored = [(word, -1.0 - 9 * number_of(word + key)) for word in self._words]
        return sorted(scored, key=lambda pair: -pair[1])

    def token_log_probs(self, requests: Sequence[tuple[str, Sequence[int] | None]]) -> list[NDArray[float32]]:
        log_probs = []
        for text, positions in requests:
            words = text.split()
            chosen = range(len(words)) if positions is None else positions
            log_probs.append(array([-10 * number_of(f"{words[i]} {i} {text}") for i in chosen]))
        return log_probs

    def token_offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        return [[match.span() for match in re.finditer(r"\S+", text)] for text in texts]

    def fit(
        self,
        texts: Callable[[int], Sequence[MaskedExample]],
        config: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        *,
        new_tokens: Mapping[str, str] | None = None,
        checkpoint_dir: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        return self._fit(texts, config.epochs, progress)


class FakeInstructModel:
    """An instruct model that repeats the last line of the last message, with some words at its end."""

    name = "fake"
    remote_host = None

    def __init__(
        self, words: Iterable[str] = _WORDS, answer: Callable[[ChatRequest], str | Answer] | None = None
    ) -> None:
        self.usage = Usage()
        self.requests: list[ChatRequest] = []
        self._words = tuple(words)
        self._answer = answer or self._repeat

    def answer(self, requests: Sequence[ChatRequest]) -> list[Answer]:
        self.requests += requests
        self.usage.requests += len(requests)
        answers = map(self._answer, requests)
        return [answer if isinstance(answer, Answer) else Answer(answer) for answer in answers]

    def _repeat(self, request: ChatRequest) -> str:
        line = request.messages[-1].text.splitlines()[-1]
        rng = Random(f"{request.seed} {line}")
        return " ".join([line, *(rng.choice(self._words) for _ in range(1 + len(line.split()) // 5))])


class FakeTagger:
    """A tagger that memorises its training sentences and predicts nothing in others."""

    def __init__(self) -> None:
        self.name = "fake"
        self._known: dict[tuple[str, ...], Sentence] = {}

    def fit(
        self, train: Iterable[Sentence], *, progress: TrainingProgress | None = None, augmented: Iterable[Sentence] = ()
    ) -> Self:
        self._known = {sentence.tokens: sentence for sentence in (*augmented, *train)}
        return self

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        known = self._known
        return [s.with_(mentions=known[s.tokens].mentions if s.tokens in known else ()) for s in sentences]

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        from entaug.backends.soft_labels import TagProbabilities, tags_of

        labels = sorted({mention.label for sentence in self._known.values() for mention in sentence.mentions})
        names = tags_of(labels)
        results = []
        for sentence in self.predict(sentences):
            rows = [[float(name == tag) + 0.1 / len(names) for name in names] for tag in sentence.iob()]
            results.append(TagProbabilities(names, rows))
        return results

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        sentences = list(sentences)
        predictions = self.predict(sentences)
        return [float(s.mentions == p.mentions) for s, p in zip(sentences, predictions, strict=True)]

    def attentions(self, sentences: Sequence[Sequence[str]], layers: int = 4) -> list[NDArray[float32]]:
        return [array([[number_of(f"{a} {b}") for b in words] for a in words]) for words in sentences]
