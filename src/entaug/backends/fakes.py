"""A small deterministic fake of each protocol: what tests, examples and people who write methods use.

They are functions of their input alone, take no time, and mean nothing.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Self

from entaug.backends.config import TrainingConfig, TrainingProgress
from entaug.backends.protocols import Blanked, Constituent, Decoding, Gapped, Pairs, Parse, cased_like
from entaug.data import Sentence
from entaug.tags import is_tag

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

__all__ = [
    "FakeCausalLM",
    "FakeConstituencyParser",
    "FakeDependencyParser",
    "FakeEncoder",
    "FakeGenerator",
    "FakeLexicon",
    "FakeMaskedLM",
    "FakeTagger",
    "FakeTokenLM",
    "FakeTranslator",
    "FakeWordVectors",
]


def _number(text: str) -> float:
    """A number in [0, 1) that is always the same for a text."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) / 2**32


def _array(values: Sequence[object]) -> NDArray[float32]:
    import numpy as np  # only fakes of what gives arrays need it

    return np.array(values, dtype=np.float32)


class FakeMaskedLM:
    """A masked language model whose probabilities come from the spelling.

    Args:
        words: what gaps are filled with; which is likeliest depends on the text.

    Example:
        >>> lm = FakeMaskedLM(["red", "blue"])
        >>> sorted(word for word, _ in lm.fill([["A ", None, " car"]], 5)[0][0])
        ['blue', 'red']
        >>> lm.pieces(["A red car"]), len(lm.token_log_probs([("A red car", [0, 2])])[0])
        ([[(0, 1), (2, 5), (6, 9)]], 2)
    """

    def __init__(self, words: Iterable[str] = ("one", "other", "new", "old", "good")) -> None:
        self._words = tuple(words)
        self.name = "fake"
        self.learned: list[Blanked] = []
        """What it was fitted on."""

    def fill(
        self, texts: Sequence[Gapped], top: int, *, first_only: bool = False
    ) -> list[list[list[tuple[str, float]]]]:
        """See `MaskedLM.fill`."""
        found = []
        for text in texts:
            gaps = [i for i, part in enumerate(text) if part is None]
            asked = gaps[:1] if first_only else gaps
            found.append([self._candidates(f"{i}{text!r}")[:top] for i in asked])
        return found

    def _candidates(self, key: str) -> list[tuple[str, float]]:
        scored = [(word, -1.0 - 9 * _number(word + key)) for word in self._words]
        return sorted(scored, key=lambda pair: -pair[1])

    def token_log_probs(self, asked: Sequence[tuple[str, Sequence[int] | None]]) -> list[NDArray[float32]]:
        """See `MaskedLM.token_log_probs`; sub-words are what white space separates."""
        found = []
        for text, places in asked:
            words = text.split()
            chosen = range(len(words)) if places is None else places
            found.append(_array([-10 * _number(f"{words[i]} {i} {text}") for i in chosen]))
        return found

    def pieces(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """See `MaskedLM.pieces`."""
        return [[found.span() for found in re.finditer(r"\S+", text)] for text in texts]

    def fit(
        self,
        texts: Callable[[int], Sequence[Blanked]],
        config: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        *,
        markers: Mapping[str, str] | None = None,
        folder: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """See `TunableMaskedLM.fit`."""
        del markers, folder
        made = type(self)(self._words)
        for epoch in range(config.epochs):
            made.learned += texts(epoch)
        if progress is not None:
            progress(1, 1, 0.0)
        return made

    def save(self, folder: str | Path) -> None:
        """See `TunableMaskedLM.save`."""
        Path(folder).mkdir(parents=True, exist_ok=True)

    def restore(self, folder: str | Path) -> Self:
        """See `TunableMaskedLM.restore`."""
        del folder
        return type(self)(self._words)


class FakeCausalLM:
    """A causal language model whose probabilities come from the spelling.

    Example:
        >>> lm = FakeCausalLM(["tea", "sea"])
        >>> lm.generate(["I see the"], max_new_tokens=2) == lm.generate(["I see the"], max_new_tokens=2)
        True
    """

    def __init__(self, words: Iterable[str] = ("one", "other", "new", "old", "good")) -> None:
        self._words = tuple(words)
        self.name = "fake"

    def token_log_probs(self, texts: Sequence[str]) -> list[NDArray[float32]]:
        """See `CausalLM.token_log_probs`."""
        return [
            _array([-10 * _number(" ".join(words[: i + 1])) for i in range(len(words))])
            for words in map(str.split, texts)
        ]

    def generate(
        self,
        prompts: Sequence[str],
        seeds: Sequence[int] | None = None,
        *,
        max_new_tokens: int = 64,
        temperature: float = 1.0,
        top_k: int = 50,
    ) -> list[str]:
        """See `CausalLM.generate`; temperature is ignored."""
        del temperature
        words = self._words[:top_k]
        made = []
        for i, prompt in enumerate(prompts):
            rng = Random(f"{seeds[i] if seeds else None} {prompt}")
            made.append(" ".join(rng.choice(words) for _ in range(max_new_tokens)))
        return made


class FakeGenerator:
    """A generator that repeats its input, with other words in place of ``<mask>`` and one more at the end.

    An input that it has learned it answers with something that it has learned for it, and a word more.

    Args:
        words: what it puts there; which, depends on the input and the seed.

    Example:
        >>> made = FakeGenerator(["tea"]).fit([("a", "b")])
        >>> made.generate(["I like <mask>"], Decoding(texts=2)), made.learned
        ([['I like tea tea', 'I like tea tea']], [('a', 'b')])
    """

    def __init__(self, words: Iterable[str] = ("one", "other", "new", "old", "good")) -> None:
        self._words = tuple(words)
        self.name = "fake"
        self.learned: list[tuple[str, str]] = []
        """What it was fitted on."""

    def fit(
        self,
        pairs: Pairs,
        config: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        *,
        markers: Mapping[str, str] | None = None,
        folder: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """See `Generator.fit`."""
        del markers, folder
        made = type(self)(self._words)
        for epoch in range(config.epochs if callable(pairs) else 1):
            made.learned += pairs(epoch) if callable(pairs) else pairs
        if progress is not None:
            progress(1, 1, 0.0)
        return made

    def generate(
        self,
        inputs: Sequence[str],
        decoding: Decoding = Decoding(),  # noqa: B008 (immutable)
        seeds: Sequence[int] | None = None,
        wanted: Sequence[Sequence[Sequence[str]]] | None = None,
        unwanted: Sequence[str] = (),
    ) -> list[list[str]]:
        """See `Generator.generate`; what is wanted has to stand in the input."""
        del wanted, unwanted
        made = []
        for i, text in enumerate(inputs):
            rng = Random(f"{seeds[i] if seeds else None} {text}")
            known = [said for asked, said in self.learned if asked == text] or [text]
            texts = [rng.choice(known) for _ in range(decoding.texts)]
            filled = (re.sub("<mask>", lambda _: rng.choice(self._words), one) for one in texts)  # noqa: B023
            made.append([f"{one} {rng.choice(self._words)}" for one in filled])
        return made

    def save(self, folder: str | Path) -> None:
        """See `Generator.save`."""
        Path(folder).mkdir(parents=True, exist_ok=True)

    def restore(self, folder: str | Path) -> Self:
        """See `Generator.restore`."""
        del folder
        return type(self)(self._words)


class FakeTokenLM:
    """A language model of tokens that gives back the sequences that it has seen, each with one word of another in it.

    Args:
        rows: what it has seen.

    Example:
        >>> FakeTokenLM().fit([["a", "a"]]).sample([1, 2])
        [('a', 'a'), ('a', 'a')]
    """

    def __init__(self, rows: Iterable[Sequence[str]] = ()) -> None:
        self.name = "fake"
        self._rows = [tuple(row) for row in rows]

    def fit(
        self,
        rows: Sequence[Sequence[str]],
        config: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        *,
        folder: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """See `TokenLM.fit`."""
        del config, folder
        made = type(self)(rows)
        if progress is not None:
            progress(1, 1, 0.0)
        return made

    def sample(
        self, seeds: Sequence[int], *, max_new_tokens: int = 128, temperature: float = 1.0
    ) -> list[tuple[str, ...] | None]:
        """See `TokenLM.sample`; temperature is ignored."""
        del temperature
        return [self._one(Random(seed), max_new_tokens) for seed in seeds]

    def _one(self, rng: Random, max_new_tokens: int) -> tuple[str, ...] | None:
        row = list(rng.choice(self._rows))
        other = rng.choice(self._rows)
        plain = [i for i, part in enumerate(row) if not is_tag(part[1:-1])]
        words = [part for part in other if not is_tag(part[1:-1])]
        row[rng.choice(plain)] = rng.choice(words)
        return tuple(row) if len(row) <= max_new_tokens else None

    def save(self, folder: str | Path) -> None:
        """See `TokenLM.save`."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, "rows.json").write_text(json.dumps(self._rows), encoding="utf-8")

    def restore(self, folder: str | Path) -> Self:
        """See `TokenLM.restore`."""
        return self.fit(json.loads(Path(folder, "rows.json").read_text(encoding="utf-8")))


class FakeEncoder:
    """An encoder whose vectors come from the spelling.

    Args:
        size: numbers a vector.

    Example:
        >>> FakeEncoder(4).token_vectors(["a red car"])[0].shape
        (3, 4)
    """

    around = (0, 0)

    def __init__(self, size: int = 8) -> None:
        self.size = size
        self.name = "fake"

    def _vector(self, word: str) -> list[float]:
        rng = Random(word)
        return [rng.gauss(0, 1) for _ in range(self.size)]

    def token_vectors(self, texts: Sequence[str], layer: int | None = None) -> list[NDArray[float32]]:
        """See `Encoder.token_vectors`; all layers are the same."""
        del layer
        return [_array([self._vector(word) for word in text.split()]).reshape(-1, self.size) for text in texts]

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[float32]:
        """See `Encoder.sentence_vectors`."""
        rows = []
        for vectors in self.token_vectors(texts):
            total = vectors.sum(axis=0)
            rows.append(total / max(1e-9, float((total**2).sum()) ** 0.5))
        return _array(rows).reshape(-1, self.size)

    def attentions(self, sentences: Sequence[Sequence[str]], layers: int = 4) -> list[NDArray[float32]]:
        """See `Encoder.attentions`."""
        found = []
        for words in sentences:
            rows = [[_number(f"{a} {b}") for b in words] for a in words]
            found.append(_array([[layers * x / sum(row) for x in row] for row in rows]))
        return found


class FakeTagger:
    """A tagger that knows sentences by heart, and finds nothing in others.

    Example:
        >>> from entaug import Mention
        >>> gold = Sentence(["Rome", "burns"], [Mention("LOC", [(0, 1)])])
        >>> tagger = FakeTagger().fit([gold])
        >>> tagger.predict([gold])[0].mentions == gold.mentions, tagger.confidences([gold])
        (True, [1.0])
        >>> tagger.attentions([gold.tokens])[0].shape
        (2, 2)
    """

    def __init__(self) -> None:
        self.name = "fake"
        self._known: dict[tuple[str, ...], Sentence] = {}

    def fit(self, train: Iterable[Sentence]) -> Self:
        """See `Tagger.fit`."""
        self._known = {sentence.tokens: sentence for sentence in train}
        return self

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """See `Tagger.predict`."""
        known = self._known
        return [s.with_(mentions=known[s.tokens].mentions if s.tokens in known else ()) for s in sentences]

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        """See `Tagger.confidences`."""
        asked = list(sentences)
        return [float(s.mentions == p.mentions) for s, p in zip(asked, self.predict(asked), strict=True)]

    def attentions(self, sentences: Sequence[Sequence[str]], layers: int = 4) -> list[NDArray[float32]]:
        """See `Encoder.attentions`; layers make no difference."""
        del layers
        return [_array([[_number(f"{a} {b}") for b in words] for a in words]) for words in sentences]


class FakeTranslator:
    """A translator that replaces words from a dictionary, and when it samples swaps two.

    Args:
        entries: for each lower-cased word what stands for it.
        samples: whether it can draw at random.

    Example:
        >>> FakeTranslator({"car": "carro"}).translate(["A red car."])
        ['A red carro.']
    """

    def __init__(self, entries: Mapping[str, str] | None = None, *, samples: bool = False) -> None:
        self._entries = dict(entries or {})
        self.samples = samples
        self.name = "fake"

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        """See `Translator.translate`."""
        return [self._one(text, seeds[i] if seeds and self.samples else None) for i, text in enumerate(texts)]

    def _one(self, text: str, seed: int | None) -> str:
        words = text.split(" ")
        if seed is not None and len(words) > 1:
            place = Random(seed).randrange(len(words) - 1)
            words[place], words[place + 1] = words[place + 1], words[place]
        translated = []
        for word in words:
            core = word.strip(".,;:!?()")
            new = self._entries.get(core.lower(), core)
            translated.append(word.replace(core, cased_like([new], core)[0]) if core else word)
        return " ".join(translated)


class FakeDependencyParser:
    """A parser for which the second token is a verb, the one before it its subject, and all that follows its object.

    From the sixth token on it is something else that hangs on the verb.

    Example:
        >>> FakeDependencyParser().parse([["He", "sings", "old", "songs"]])
        [Parse(heads=(1, 1, 1, 2), relations=('nsubj', 'ROOT', 'obj', 'dep'), tags=('X', 'VERB', 'X', 'X'))]
    """

    name = "fake"

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        """See `DependencyParser.parse`."""
        return [self._tree(len(words)) for words in sentences]

    def _tree(self, n: int) -> Parse:
        verb = min(1, n - 1)
        heads = [verb if i <= 2 or i == 5 else i - 1 for i in range(n)]
        below = {2: "obj", 5: "obl"}
        names = ["nsubj" if i < verb else "ROOT" if i == verb else below.get(i, "dep") for i in range(n)]
        tags = ["VERB" if i == verb else "X" for i in range(n)]
        return Parse(tuple(heads), tuple(names), tuple(tags))


class FakeConstituencyParser:
    """A parser for which a sentence is a noun phrase (the first word) and a verb phrase (all others).

    Example:
        >>> [c.category for c in FakeConstituencyParser().parse([["He", "sings"]])[0]]
        ['S', 'NP', 'VP']
    """

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
    """Word vectors from groups of like words: 1 within a group, 0 across.

    Args:
        groups: words that are alike.

    Example:
        >>> FakeWordVectors([["red", "blue"], ["car"]]).similarities([("red", "blue"), ("red", "car"), ("red", "x")])
        [1.0, 0.0, None]
    """

    def __init__(self, groups: Iterable[Iterable[str]]) -> None:
        self._group = {word: i for i, words in enumerate(groups) for word in words}
        self.name = "fake"
        self.size = 8

    def vectors(self, words: Sequence[str]) -> NDArray[float32]:
        """See `WordVectors.vectors`: of words of one group the same, from their number."""
        known = [self._group.get(word) for word in words]
        return _array([[0.0] * 8 if i is None else [_number(f"{i} {place}") for place in range(8)] for i in known])

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """See `WordVectors.similarities`."""
        group = self._group
        return [float(group[a] == group[b]) if a in group and b in group else None for a, b in pairs]


class FakeLexicon:
    """A lexicon from a dictionary.

    Args:
        entries: for each lower-cased word its synonyms, words of one separated by a space.
        language: ISO 639-1 code.

    Example:
        >>> FakeLexicon({"film": ["movie"]}).synonyms("Film")
        (('Movie',),)
    """

    def __init__(self, entries: Mapping[str, Iterable[str]], language: str = "en") -> None:
        self._entries = {word: [synonym.split() for synonym in synonyms] for word, synonyms in entries.items()}
        self.language = language
        self.name = "fake"

    def synonyms(self, word: str) -> tuple[tuple[str, ...], ...]:
        """See `Lexicon.synonyms`."""
        found = (cased_like(words, word) for words in self._entries.get(word.lower(), ()))
        return tuple(words for words in found if words != (word,))
