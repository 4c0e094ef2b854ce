"""Deterministic fakes of all protocols of backends: those of the package, and further ones that tests alone need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Self

from numpy import float32
from numpy.typing import NDArray

from entaug.backends.config import DecodingConfig, Gap, TrainingConfig, TrainingProgress
from entaug.backends.fakes import FakeInstructModel, FakeMaskedLM, FakeTagger, FakeTrainable, array, number_of
from entaug.backends.protocols import Constituent, Parse, Recognition, TextPairs, match_case
from entaug.core.tags import is_tag

__all__ = [
    "FakeCausalLM",
    "FakeConstituencyParser",
    "FakeDependencyParser",
    "FakeEncoder",
    "FakeEntityRecognizer",
    "FakeGenerator",
    "FakeInstructModel",
    "FakeLexicon",
    "FakeMaskedLM",
    "FakeTagger",
    "FakeTokenLM",
    "FakeTranslator",
    "FakeWordCases",
    "FakeWordVectors",
]


class FakeCausalLM:
    """A causal language model whose probabilities depend on the spelling."""

    name = "fake"

    def token_log_probs(self, texts: Sequence[str]) -> list[NDArray[float32]]:
        """See `CausalLM.token_log_probs`."""
        return [
            array([-10 * number_of(" ".join(words[: i + 1])) for i in range(len(words))])
            for words in map(str.split, texts)
        ]


class FakeTokenLM:
    """A token language model that repeats its training sequences, each with a word of another one."""

    def __init__(self, rows: Iterable[Sequence[str]] = ()) -> None:
        self.name = "fake"
        self._rows = [tuple(row) for row in rows]

    def fit(
        self,
        rows: Sequence[Sequence[str]],
        config: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        *,
        checkpoint_dir: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """See `TokenLM.fit`."""
        del config, checkpoint_dir
        trained = type(self)(rows)
        if progress is not None:
            progress(1, 1, 0.0)
        return trained

    def sample(
        self, seeds: Sequence[int], *, max_new_tokens: int = 128, temperature: float = 1.0
    ) -> list[tuple[str, ...] | None]:
        """See `TokenLM.sample`; the temperature is ignored."""
        del temperature
        return [self._draw(Random(seed), max_new_tokens) for seed in seeds]

    def _draw(self, rng: Random, max_new_tokens: int) -> tuple[str, ...] | None:
        row = list(rng.choice(self._rows))
        other = rng.choice(self._rows)
        word_positions = [i for i, token in enumerate(row) if not is_tag(token[1:-1])]
        other_words = [token for token in other if not is_tag(token[1:-1])]
        row[rng.choice(word_positions)] = rng.choice(other_words)
        return tuple(row) if len(row) <= max_new_tokens else None

    def save(self, folder: str | Path) -> None:
        """Save the learned rows."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, "rows.json").write_text(json.dumps(self._rows), encoding="utf-8")

    def restore(self, folder: str | Path) -> Self:
        """Restore what `save` wrote."""
        return self.fit(json.loads(Path(folder, "rows.json").read_text(encoding="utf-8")))


class FakeTranslator:
    """A translator that replaces words by a dictionary, and swaps two words when it samples."""

    def __init__(self, entries: Mapping[str, str] | None = None, *, can_sample: bool = False) -> None:
        self._entries = dict(entries or {})
        self.can_sample = can_sample
        self.name = "fake"

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        """See `Translator.translate`."""
        return [self._translate(text, seeds[i] if seeds and self.can_sample else None) for i, text in enumerate(texts)]

    def _translate(self, text: str, seed: int | None) -> str:
        words = text.split(" ")
        if seed is not None and len(words) > 1:
            i = Random(seed).randrange(len(words) - 1)
            words[i], words[i + 1] = words[i + 1], words[i]
        translated = []
        for word in words:
            core = word.strip(".,;:!?()")
            new = self._entries.get(core.lower(), core)
            translated.append(word.replace(core, match_case([new], core)[0]) if core else word)
        return " ".join(translated)


class FakeDependencyParser:
    """A parser for which the second word is a verb, the first its subject, and the others its object."""

    # From the sixth word on they are an oblique modifier of the verb.

    name = "fake"

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        """See `DependencyParser.parse`."""
        return [self._tree(len(words)) for words in sentences]

    def _tree(self, n: int) -> Parse:
        verb = min(1, n - 1)
        heads = [verb if i <= 2 or i == 5 else i - 1 for i in range(n)]
        after = {2: "obj", 5: "obl"}
        relations = ["nsubj" if i < verb else "ROOT" if i == verb else after.get(i, "dep") for i in range(n)]
        tags = ["VERB" if i == verb else "X" for i in range(n)]
        return Parse(tuple(heads), tuple(relations), tuple(tags))


class FakeConstituencyParser:
    """A parser for which a sentence is a noun phrase, its first word, and a verb phrase of all others."""

    name = "fake"

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        """See `ConstituencyParser.parse`."""
        return [
            (
                Constituent("S", 0, len(words)),
                Constituent("NP", 0, 1),
                *([Constituent("VP", 1, len(words))] if len(words) > 1 else []),
            )
            for words in sentences
        ]


class FakeWordVectors:
    """Word vectors from groups of similar words: cosine 1 within a group, 0 otherwise."""

    def __init__(self, groups: Iterable[Iterable[str]]) -> None:
        self._group = {word: i for i, words in enumerate(groups) for word in words}
        self.name = "fake"
        self.size = 8

    def vectors(self, words: Sequence[str]) -> NDArray[float32]:
        """See `WordVectors.vectors`; words of a group have the same."""
        groups = [self._group.get(word) for word in words]
        return array(
            [[0.0] * 8 if i is None else [number_of(f"{i} {position}") for position in range(8)] for i in groups]
        )

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """See `WordVectors.similarities`."""
        group = self._group
        return [float(group[a] == group[b]) if a in group and b in group else None for a, b in pairs]


class FakeLexicon:
    """A lexicon from a dictionary."""

    knows_tags = False

    def __init__(self, entries: Mapping[str, Iterable[str]], language: str = "en") -> None:
        self._entries = {word: [synonym.split() for synonym in synonyms] for word, synonyms in entries.items()}
        self.language = language
        self.name = "fake"

    def synonyms(self, word: str, tag: str | None = None) -> tuple[tuple[str, ...], ...]:
        """See `Lexicon.synonyms`; the tag is ignored."""
        synonyms = (match_case(words, word) for words in self._entries.get(word.lower(), ()))
        return tuple(words for words in synonyms if words != (word,))


class FakeWordCases:
    """The usual case of given words."""

    def __init__(self, words: Iterable[str], language: str = "en") -> None:
        self._cases = {word.lower(): word for word in words}
        self.language = language
        self.name = "fake"

    def usual_case(self, word: str) -> str | None:
        """See `entaug.backends.protocols.WordCases.usual_case`."""
        return self._cases.get(word.lower())


class FakeEntityRecognizer:
    """A recogniser of given words, each an entity of one word."""

    def __init__(self, entities: Mapping[str, str], pos: Mapping[str, str] | None = None, language: str = "en") -> None:
        self._entities = entities
        self._pos = {**dict.fromkeys(entities, "PROPN"), **(pos or {})}
        self.language = language
        self.name = "fake"

    def recognize(self, sentences: Sequence[Sequence[str]]) -> list[Recognition]:
        """See `entaug.backends.protocols.EntityRecognizer.recognize`."""
        return [
            Recognition(
                tuple((i, i + 1, self._entities[word]) for i, word in enumerate(words) if word in self._entities),
                tuple(self._pos.get(word, "NOUN") for word in words),
            )
            for words in sentences
        ]


class FakeGenerator(FakeTrainable):
    """A generator that repeats its input, with words in place of ``<mask>`` and one more word before its last mark."""

    # For an input of the training pairs it repeats one of their outputs instead.

    def fit(
        self,
        pairs: TextPairs,
        config: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        *,
        new_tokens: Mapping[str, str] | None = None,
        checkpoint_dir: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """See `Generator.fit`."""
        del new_tokens, checkpoint_dir
        if callable(pairs):
            return self._fit(pairs, config.epochs, progress)
        return self._fit(lambda _: pairs, 1, progress)

    def generate(
        self,
        inputs: Sequence[str],
        config: DecodingConfig = DecodingConfig(),  # noqa: B008 (immutable)
        seeds: Sequence[int] | None = None,
        required: Sequence[Sequence[Sequence[str | Gap]]] | None = None,
        forbidden: Sequence[str] = (),
    ) -> list[list[str]]:
        """See `Generator.generate`; required phrases must be part of the input."""
        del required, forbidden
        generated = []
        for i, text in enumerate(inputs):
            rng = Random(f"{seeds[i] if seeds else None} {text}")
            outputs = [output for source, output in self.learned if source == text] or [text]
            chosen = [rng.choice(outputs) for _ in range(config.num_return_sequences)]
            filled = (re.sub("<mask>", lambda _: rng.choice(self._words), output) for output in chosen)  # noqa: B023
            parts = [re.fullmatch(r"(.*?)([.!?。।]*)", output, re.DOTALL) for output in filled]
            generated.append([f"{p[1]} {rng.choice(self._words)}{p[2]}" for p in parts if p])
        return generated


class Likes:
    """A causal language model for which each word has a log-probability."""

    name = "likes"

    def __init__(self, **log_probs: float) -> None:
        self.log_probs = log_probs

    def token_log_probs(self, texts: Sequence[str]) -> list[NDArray[float32]]:
        """See `CausalLM.token_log_probs`; words are the tokens."""
        return [array([self.log_probs.get(word, -5.0) for word in text.split()]) for text in texts]


@cache
def vector_of(word: str, size: int) -> tuple[float, ...]:
    rng = Random(word)
    return tuple(rng.gauss(0, 1) for _ in range(size))


class FakeEncoder:
    """An encoder whose vectors depend on the spelling."""

    num_special_tokens = (0, 0)

    def __init__(self, size: int = 8) -> None:
        self.size = size
        self.name = "fake"

    def token_vectors(self, texts: Sequence[str], layer: int | None = None) -> list[NDArray[float32]]:
        """See `Encoder.token_vectors`; all layers are the same."""
        del layer
        return [array([vector_of(word, self.size) for word in text.split()]).reshape(-1, self.size) for text in texts]

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[float32]:
        """See `Encoder.sentence_vectors`."""
        rows = []
        for vectors in self.token_vectors(texts):
            total = vectors.sum(axis=0)
            rows.append(total / max(1e-9, float((total**2).sum()) ** 0.5))
        return array(rows).reshape(-1, self.size)

    def attentions(self, sentences: Sequence[Sequence[str]], layers: int = 4) -> list[NDArray[float32]]:
        """See `Encoder.attentions`."""
        matrices = []
        for words in sentences:
            rows = [[number_of(f"{a} {b}") for b in words] for a in words]
            matrices.append(array([[layers * value / sum(row) for value in row] for row in rows]))
        return matrices
