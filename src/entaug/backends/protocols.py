"""What methods ask of models, parsers, translators and word lists. A deterministic fake of each is in `fakes`.

Plain Python or NumPy at the boundary, many texts a call: whoever stands behind a protocol sorts, batches and removes
repetitions, and gives answers in the order of the questions. No answer depends on what else was asked in the same call.

Text for a language model is running text, spaced as in print: `entaug.alignment.detokenize` makes it from tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, runtime_checkable

from entaug.backends.config import TrainingConfig, TrainingProgress
from entaug.data import Sentence

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

__all__ = [
    "Blanked",
    "CausalLM",
    "ConstituencyParser",
    "Constituent",
    "Decoding",
    "DependencyParser",
    "Encoder",
    "Gapped",
    "Generator",
    "Lexicon",
    "MaskedLM",
    "Pairs",
    "Parse",
    "RoundTrip",
    "Tagger",
    "TokenLM",
    "Translator",
    "TunableMaskedLM",
    "WordVectors",
    "cased_like",
]

Gapped = Sequence[str | None]
"""A text with gaps: stretches of running text in order, and None for each gap. ``["It is ", None, "."]``"""


@runtime_checkable
class MaskedLM(Protocol):
    """A language model that sees both sides: BERT and its like (Devlin et al. 2019)."""

    @property
    def name(self) -> str:
        """What stands in provenance: which model, by name and content."""
        ...

    def fill(
        self, texts: Sequence[Gapped], top: int, *, first_only: bool = False
    ) -> list[list[list[tuple[str, float]]]]:
        """The likeliest whole words for each gap, all gaps of a text hidden at once.

        Args:
            texts: texts with one or more gaps each.
            top: how many words to give for a gap.
            first_only: answer for the first gap of each text alone; the others stay hidden all the same.

        Returns:
            For each text, for each gap asked for, at most `top` pairs of a word and its log-probability, the likeliest
            first. Only whole words made of letters; never a piece of one, never punctuation.
        """
        ...

    def token_log_probs(self, asked: Sequence[tuple[str, Sequence[int] | None]]) -> list[NDArray[float32]]:
        """Log-probability of sub-words, each hidden alone and the others shown.

        Args:
            asked: each a text and which of its sub-words, counted from 0 without special ones; None for all.

        Returns:
            For each text one natural logarithm per sub-word asked for, in that order.
        """
        ...

    def pieces(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """The sub-words of each text, without special ones: where each begins and ends in it.

        A tokenizer that cannot say where answers ``(0, 0)``; the number of sub-words is right in any case.
        """
        ...


Blanked = Sequence[tuple[str, bool]]
"""A text in stretches, and of each whether a model that learns from it sees it or is to find it."""


@runtime_checkable
class TunableMaskedLM(MaskedLM, Protocol):
    """A masked language model that can learn from a corpus."""

    def fit(
        self,
        texts: Callable[[int], Sequence[Blanked]],
        config: TrainingConfig = ...,
        *,
        markers: Mapping[str, str] | None = None,
        folder: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """Learn to find what is hidden.

        Args:
            texts: those of each epoch, counted from 0, always as many and in the same order.
            config: the hyperparameters.
            markers: pieces of text that are to be one token each, and for each the words whose meaning it starts from.
            folder: where the state is kept after each epoch, so that the same call goes on after an interruption.
            progress: told of each step: how many are done, of how many at most, and the loss.

        Returns:
            A model that has learned; this one stays as it is.
        """
        ...

    def save(self, folder: str | Path) -> None:
        """Write what was learned into a folder that is not there yet or is empty; the model it began with is not."""
        ...

    def restore(self, folder: str | Path) -> Self:
        """A model as it was saved, from one of the same kind."""
        ...


@runtime_checkable
class CausalLM(Protocol):
    """A language model that reads from left to right."""

    @property
    def name(self) -> str:
        """What stands in provenance."""
        ...

    def token_log_probs(self, texts: Sequence[str]) -> list[NDArray[float32]]:
        """Log-probability of every sub-word of each text, given those before it."""
        ...

    def generate(
        self,
        prompts: Sequence[str],
        seeds: Sequence[int] | None = None,
        *,
        max_new_tokens: int = 64,
        temperature: float = 1.0,
        top_k: int = 50,
    ) -> list[str]:
        """What follows each prompt.

        Args:
            prompts: any texts.
            seeds: one a prompt, to sample; None for the likeliest word at every step.
            max_new_tokens: how many sub-words to generate at most.
            temperature: above 1 for more variety, below for less.
            top_k: how many words a draw is among.

        Returns:
            The new text alone, one for each prompt.
        """
        ...


class Decoding(NamedTuple):
    """How a generator writes.

    Args:
        texts: how many for each input.
        how: ``"beams"``, beam search; ``"diverse"``, beam search that lowers what is not the likeliest continuation of
            its beam (EnTDA, section 4.2); or ``"sample"``, draws of which the likeliest are given.
        num_beams: how many texts are looked at together, and how many are drawn when sampling; at least `texts`.
        diversity_penalty: what a rank costs in diverse beam search, the paper's gamma.
        top_k: how many tokens a draw is among.
        temperature: above 1 for more variety, below for less.
        max_new_tokens: how many sub-words a text may have.
        whole: whether texts that have not come to an end by then are left out.
        goes_on: markers that stand each before one word, and for each those that it goes on with, if any: it is written
            one word behind one of these only. Empty where markers may stand anywhere.
    """

    texts: int = 1
    how: str = "beams"
    num_beams: int = 3
    diversity_penalty: float = 10.0
    top_k: int = 50
    temperature: float = 1.0
    max_new_tokens: int = 128
    whole: bool = True
    goes_on: Mapping[str, Collection[str] | None] = MappingProxyType({})


Pairs = Sequence[tuple[str, str]] | Callable[[int], Sequence[tuple[str, str]]]
"""Inputs and outputs; or what gives them for each epoch, counted from 0, always as many and in the same order."""


@runtime_checkable
class Generator(Protocol):
    """A model that learns to write one text from another: an encoder and decoder, or a causal model."""

    @property
    def name(self) -> str:
        """What stands in provenance: the model it was before it learned."""
        ...

    def fit(
        self,
        pairs: Pairs,
        config: TrainingConfig = ...,
        *,
        markers: Mapping[str, str] | None = None,
        folder: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """Learn from pairs of texts.

        Args:
            pairs: what to learn.
            config: the hyperparameters.
            markers: pieces of text that are to be one token each, and for each the words whose meaning it starts from;
                ``"<mask>"`` is the model's own where it has one.
            folder: where the state is kept after each epoch, so that the same call goes on after an interruption.
            progress: told of each step: how many are done, of how many at most, and the loss.

        Returns:
            A generator that has learned; this one stays as it is.
        """
        ...

    def generate(
        self,
        inputs: Sequence[str],
        decoding: Decoding = ...,
        seeds: Sequence[int] | None = None,
        wanted: Sequence[Sequence[Sequence[str]]] | None = None,
        unwanted: Sequence[str] = (),
    ) -> list[list[str]]:
        """Texts for each input.

        Args:
            inputs: any texts.
            decoding: how.
            seeds: one an input, for sampling.
            wanted: for each input pieces of text, each of one or more parts: no text ends before all of them stand in
                it, in any order, the parts of a piece in theirs. Only a text as long as it may be can lack some.
            unwanted: where pieces are wanted, words that no text holds but in these pieces.

        Returns:
            For each input the texts asked for, the likeliest first; fewer where some are left out, none where the input
            is too long for the model.
        """
        ...

    def save(self, folder: str | Path) -> None:
        """Write what was learned into a folder that is not there yet or is empty; the model it began with is not."""
        ...

    def restore(self, folder: str | Path) -> Self:
        """A generator as it was saved, from one of the same model."""
        ...


@runtime_checkable
class TokenLM(Protocol):
    """A language model over whatever tokens it is given, that learns from nothing."""

    @property
    def name(self) -> str:
        """What stands in provenance."""
        ...

    def fit(
        self,
        rows: Sequence[Sequence[str]],
        config: TrainingConfig = ...,
        *,
        folder: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """Learn from sequences of tokens.

        Args:
            rows: what to learn.
            config: the hyperparameters.
            folder: where the state is kept after each epoch, so that the same call goes on after an interruption.
            progress: told of each step: how many are done, of how many at most, and the loss.

        Returns:
            A model that has learned; this one stays as it is.
        """
        ...

    def sample(
        self, seeds: Sequence[int], *, max_new_tokens: int = 128, temperature: float = 1.0
    ) -> list[tuple[str, ...] | None]:
        """Draw sequences.

        Args:
            seeds: one a sequence; each depends on its own alone.
            max_new_tokens: how many tokens one may have.
            temperature: above 1 for more variety, below for less.

        Returns:
            For each seed a sequence; None where it came to no end.
        """
        ...

    def save(self, folder: str | Path) -> None:
        """Write what was learned into a folder that is not there yet or is empty."""
        ...

    def restore(self, folder: str | Path) -> Self:
        """A model as it was saved."""
        ...


@runtime_checkable
class Encoder(Protocol):
    """A model that turns text into vectors."""

    @property
    def name(self) -> str:
        """What stands in provenance."""
        ...

    @property
    def around(self) -> tuple[int, int]:
        """How many special sub-words stand before and after those of a text."""
        ...

    def token_vectors(self, texts: Sequence[str], layer: int | None = None) -> list[NDArray[float32]]:
        """One vector per sub-word, special ones included, of one layer.

        Args:
            texts: running texts.
            layer: which; 0 is the embeddings, None the last.

        Returns:
            For each text an array of sub-words x size, not normalised.
        """
        ...

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[float32]:
        """One vector of length 1 per text: an array of texts x size."""
        ...

    def attentions(self, sentences: Sequence[Sequence[str]], layers: int = 4) -> list[NDArray[float32]]:
        """How much the words of a sentence attend to each other.

        Args:
            sentences: tokens of each sentence.
            layers: how many of the last layers to sum over.

        Returns:
            For each sentence an array of words x words, whose row i holds what word i gives to each word, summed over
            the layers' heads and over sub-words.
        """
        ...


@runtime_checkable
class Translator(Protocol):
    """Translation in one direction."""

    @property
    def name(self) -> str:
        """What stands in provenance."""
        ...

    @property
    def samples(self) -> bool:
        """Whether it can draw at random; if not, it always gives the same for the same text."""
        ...

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        """A translation of each text.

        Args:
            texts: running texts.
            seeds: one a text, to sample; None for the best found. Ignored by one that cannot sample.
        """
        ...


@runtime_checkable
class Tagger(Protocol):
    """What finds mentions after it has seen some; one on an encoder has `Encoder.attentions` besides."""

    @property
    def name(self) -> str:
        """What stands in provenance."""
        ...

    def fit(self, train: Iterable[Sentence]) -> Self:
        """Learn from scratch."""
        ...

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """The sentences with the mentions that it finds in place of those they had."""
        ...

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        """How likely it holds the mentions that sentences have: from 0 to 1, the geometric mean over the words."""
        ...


class RoundTrip(NamedTuple):
    """A way into another language and back.

    Args:
        there: from the corpus's language.
        back: into it again.
    """

    there: Translator
    back: Translator

    @property
    def name(self) -> str:
        """What stands in provenance."""
        return f"{self.there.name}>{self.back.name}"


class Parse(NamedTuple):
    """A dependency tree over the tokens of a sentence.

    Args:
        heads: for each token the position of its head; a root is its own head.
        relations: for each token the relation to its head, as the parser names it.
        tags: for each token its universal part of speech.
    """

    heads: tuple[int, ...]
    relations: tuple[str, ...]
    tags: tuple[str, ...]


@runtime_checkable
class DependencyParser(Protocol):
    """Dependency trees of tokenised sentences."""

    @property
    def name(self) -> str:
        """What stands in provenance."""
        ...

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        """The tree of each sentence, over exactly the tokens given."""
        ...


class Constituent(NamedTuple):
    """A phrase: its category and its half-open range of tokens."""

    category: str
    start: int
    end: int


@runtime_checkable
class ConstituencyParser(Protocol):
    """Phrases of tokenised sentences."""

    @property
    def name(self) -> str:
        """What stands in provenance."""
        ...

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        """The phrases of each sentence, outer before inner, left before right; no two cross."""
        ...


@runtime_checkable
class WordVectors(Protocol):
    """Static vectors of words."""

    @property
    def name(self) -> str:
        """What stands in provenance."""
        ...

    @property
    def size(self) -> int:
        """Numbers of a vector."""
        ...

    def vectors(self, words: Sequence[str]) -> NDArray[float32]:
        """The vectors of words, (words, size); zeros where a word has none."""
        ...

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """The cosine of each pair of words; None where a word has no vector."""
        ...


@runtime_checkable
class Lexicon(Protocol):
    """Words and their synonyms in one language."""

    @property
    def name(self) -> str:
        """What stands in provenance: enough to tell which data was used."""
        ...

    @property
    def language(self) -> str:
        """ISO 639-1 code."""
        ...

    def synonyms(self, word: str) -> tuple[tuple[str, ...], ...]:
        """What may stand in place of a token, each as one or more tokens.

        In the inflected form and casing of the token, the most usual first, never the token itself; empty where
        nothing fits. Cheap to ask for again.
        """
        ...


def cased_like(words: Iterable[str], model: str) -> tuple[str, ...]:
    """Words in the casing of a model: all upper, a capital first letter, or as they are.

    Example:
        >>> cased_like(["motion", "picture"], "Film"), cased_like(["film"], "MOVIE")
        (('Motion', 'picture'), ('FILM',))
    """
    words = tuple(words)
    if len(model) > 1 and model.isupper():
        return tuple(word.upper() for word in words)
    if model[:1].isupper():
        return (words[0][:1].upper() + words[0][1:], *words[1:])
    return words
