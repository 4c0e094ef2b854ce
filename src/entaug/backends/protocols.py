"""The protocols of models, parsers, translators and lexicons.

Arguments and results are plain Python objects or NumPy arrays. Each method takes many texts: the implementation sorts,
batches and removes duplicates, and returns results in the order of its arguments. No result depends on the other texts
of the call. Texts for language models are running text, spaced as in print, as `entaug.core.alignment.detokenize` makes
it from tokens. A token here is a token of the model's vocabulary (a sub-word); the tokens of a corpus are called words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

from entaug.backends.config import DecodingConfig, Gap, TrainingConfig, TrainingProgress
from entaug.core.data import Sentence

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from entaug.backends.soft_labels import TagProbabilities


MaskedText = Sequence[str | None]
"""A text with gaps to fill: parts of running text in order, and None for each gap. ``["It is ", None, "."]``"""

MaskedExample = Sequence[tuple[str, bool]]
"""A training text of a masked language model: parts of running text in order, and whether each is masked."""

TextPairs = Sequence[tuple[str, str]] | Callable[[int], Sequence[tuple[str, str]]]
"""Pairs of input and output; or a function that returns those of an epoch, counted from 0, always the same number."""


class _Named(Protocol):
    @property
    def name(self) -> str:
        """The name for provenance, which identifies the model and its version or content."""


class _Trained(Protocol):
    def save(self, folder: str | Path) -> None:
        """Save what was trained; a pretrained model that it started from is not saved.

        Args:
            folder: a folder that does not exist or is empty.

        Raises:
            OutputError: the folder is not empty, or cannot be written.
            ParameterError: nothing was trained.
        """

    def restore(self, folder: str | Path) -> Self:
        """Load what `save` wrote.

        Args:
            folder: the folder.

        Returns:
            The trained model; this one, which must be of the same kind, is unchanged.

        Raises:
            InputError: the folder has no such model, it is damaged, or it started from another model.
        """


# ----------------------------------------------------------------------------------------------------- language models


@runtime_checkable
class MaskedLM(_Named, Protocol):
    """A masked language model, as BERT (Devlin et al. 2019)."""

    def fill(
        self, texts: Sequence[MaskedText], top_k: int, *, first_only: bool = False
    ) -> list[list[list[tuple[str, float]]]]:
        """Predict the likeliest whole words for each gap, with all gaps of a text masked at once.

        Args:
            texts: texts with one or more gaps each.
            top_k: maximum number of words for a gap.
            first_only: whether only the first gap of each text is predicted; the others are masked nevertheless.

        Returns:
            For each text, for each predicted gap, pairs of a word and its log-probability (natural logarithm), the
            likeliest first. Words consist of letters and are whole: never part of a word, never punctuation.
        """

    def token_log_probs(self, requests: Sequence[tuple[str, Sequence[int] | None]]) -> list[NDArray[float32]]:
        """Compute log-probabilities of tokens, each masked alone.

        Args:
            requests: pairs of a text and the positions of tokens, from 0 and without special tokens; None for all.

        Returns:
            For each request an array of shape (positions,) of natural logarithms.
        """

    def token_offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Tokenize texts.

        Args:
            texts: running texts.

        Returns:
            For each text the half-open range of characters of each token, without special tokens; (0, 0) for each
            token if the tokenizer does not know the ranges.
        """


@runtime_checkable
class TrainableMaskedLM(MaskedLM, _Trained, Protocol):
    """A masked language model that can be fine-tuned."""

    def fit(
        self,
        texts: Callable[[int], Sequence[MaskedExample]],
        config: TrainingConfig = ...,
        *,
        new_tokens: Mapping[str, str] | None = None,
        checkpoint_dir: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """Fine-tune the model to predict what is masked.

        Args:
            texts: returns the texts of an epoch, counted from 0; always the same number in the same order.
            config: the hyperparameters.
            new_tokens: strings that become a token each, with the words that initialise their embeddings.
            checkpoint_dir: folder in which the state is kept after each epoch; an interrupted call resumes from it.
            progress: called after each step.

        Returns:
            The fine-tuned model; this one is unchanged.

        Raises:
            InputError: no text fits into the model.
        """


@runtime_checkable
class CausalLM(_Named, Protocol):
    """A language model that predicts each token from those before it."""

    def token_log_probs(self, texts: Sequence[str]) -> list[NDArray[float32]]:
        """Compute the log-probability of each token, given those before it.

        Args:
            texts: running texts.

        Returns:
            For each text an array of shape (tokens,) of natural logarithms.
        """


@runtime_checkable
class Generator(_Named, _Trained, Protocol):
    """A model that is trained to generate one text from another: an encoder-decoder or a causal language model.

    Its name is that of the model before training.
    """

    def fit(
        self,
        pairs: TextPairs,
        config: TrainingConfig = ...,
        *,
        new_tokens: Mapping[str, str] | None = None,
        checkpoint_dir: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """Fine-tune the model on pairs of input and output.

        Args:
            pairs: the training pairs.
            config: the hyperparameters.
            new_tokens: strings that become a token each, with the words that initialise their embeddings;
                ``"<mask>"`` is the mask token of the model where it has one.
            checkpoint_dir: folder in which the state is kept after each epoch; an interrupted call resumes from it.
            progress: called after each step.

        Returns:
            The fine-tuned generator; this one is unchanged.

        Raises:
            InputError: no pair fits into the model.
        """

    def generate(
        self,
        inputs: Sequence[str],
        config: DecodingConfig = ...,
        seeds: Sequence[int] | None = None,
        required: Sequence[Sequence[Sequence[str | Gap]]] | None = None,
        forbidden: Sequence[str] = (),
    ) -> list[list[str]]:
        """Generate texts for each input.

        Args:
            inputs: the inputs.
            config: the decoding.
            seeds: a seed for each input, for sampling.
            required: for each input phrases, each of one or more parts: a text does not end before it contains all of
                them, in any order, the parts of a phrase in theirs, with what a `Gap` allows between two of them or at
                the end (of an input with a single phrase). Only a text of maximum length may lack some.
            forbidden: phrases that no text contains except as part of required ones; used if `required` is given.

        Returns:
            For each input the texts, the likeliest first; fewer than asked for where unfinished ones are dropped, none
            where the input is too long for the model.

        Raises:
            ParameterError: the seeds for sampling are missing.
        """


@runtime_checkable
class MultilingualGenerator(Generator, Protocol):
    """A generator that can also be told the language of each text, where its model has tokens for languages (mBART).

    `fit` and `generate` have a further argument ``languages``: for each pair or input an ISO 639-1 code or the
    model's own, None for the default. An unknown one is a `ParameterError`.
    """

    @property
    def languages_(self) -> Any:
        """The language codes of the model (empty if it has none), and the default one."""


@runtime_checkable
class TokenLM(_Named, _Trained, Protocol):
    """A language model over arbitrary tokens, trained from scratch."""

    def fit(
        self,
        rows: Sequence[Sequence[str]],
        config: TrainingConfig = ...,
        *,
        checkpoint_dir: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """Train the model on sequences of tokens.

        Args:
            rows: the sequences.
            config: the hyperparameters.
            checkpoint_dir: folder in which the state is kept after each epoch; an interrupted call resumes from it.
            progress: called after each step.

        Returns:
            The trained model; this one is unchanged.

        Raises:
            InputError: there is no sequence to learn from.
        """

    def sample(
        self, seeds: Sequence[int], *, max_new_tokens: int = 128, temperature: float = 1.0
    ) -> list[tuple[str, ...] | None]:
        """Draw sequences of tokens.

        Args:
            seeds: a seed for each sequence, which determines it.
            max_new_tokens: maximum number of tokens of a sequence.
            temperature: above 1 for more variety, below for less.

        Returns:
            For each seed a sequence; None if it has not ended within the maximum.
        """


# ------------------------------------------------------------------------------------------- encoders and translators


@runtime_checkable
class Encoder(_Named, Protocol):
    """A model that computes vectors of texts and of their tokens."""

    @property
    def num_special_tokens(self) -> tuple[int, int]:
        """The number of special tokens before and after a text."""

    def token_vectors(self, texts: Sequence[str], layer: int | None = None) -> list[NDArray[float32]]:
        """Compute a vector for each token, special tokens included.

        Args:
            texts: running texts.
            layer: the layer: 0 for the embeddings, None for the last.

        Returns:
            For each text an array of shape (tokens, dimension), not normalised.
        """

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[float32]:
        """Compute a vector of length 1 for each text.

        Args:
            texts: running texts.

        Returns:
            An array of shape (texts, dimension).
        """

    def attentions(self, sentences: Sequence[Sequence[str]], layers: int = 4) -> list[NDArray[float32]]:
        """Compute attention between the words of sentences.

        Args:
            sentences: the words of each sentence.
            layers: the number of last layers to sum over.

        Returns:
            For each sentence an array of shape (words, words), in which row i is the attention of word i to each word,
            summed over layers, heads and the tokens of the words.
        """


@runtime_checkable
class Translator(_Named, Protocol):
    """Machine translation in one direction."""

    @property
    def can_sample(self) -> bool:
        """Whether it can draw translations at random; if not, a text always has the same translation."""

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        """Translate texts.

        Args:
            texts: running texts.
            seeds: a seed for each text, to sample; None for the best translation. Ignored if it cannot sample.

        Returns:
            The translation of each text.
        """


class RoundTrip(NamedTuple):
    """Translation into a pivot language and back.

    Args:
        forward: the translator from the language of the corpus into the pivot language.
        backward: the translator back.

    Example:
        >>> from helpers.fakes import FakeTranslator  # tests/helpers of entaug
        >>> RoundTrip(FakeTranslator({}), FakeTranslator({})).name
        'fake>fake'
    """

    forward: Translator
    backward: Translator

    @property
    def name(self) -> str:
        """The name for provenance."""
        return f"{self.forward.name}>{self.backward.name}"


@runtime_checkable
class Tagger(_Named, Protocol):
    """A named-entity recogniser that can be trained; one on an encoder also has `Encoder.attentions`."""

    def fit(
        self, train: Iterable[Sentence], *, progress: TrainingProgress | None = None, augmented: Iterable[Sentence] = ()
    ) -> Self:
        """Train from scratch.

        Args:
            train: sentences with gold mentions.
            progress: called after each step.
            augmented: further sentences, the probabilities of tags of which are learnt where they have some.

        Returns:
            The tagger itself.
        """

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """Predict mentions.

        Args:
            sentences: sentences; their mentions are ignored.

        Returns:
            The sentences with the predicted mentions.
        """

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        """Compute the probabilities of the tags of each word.

        Args:
            sentences: sentences; their mentions are ignored.

        Returns:
            The probabilities of each sentence.

        Raises:
            ParameterError: the tagger gives no probabilities to tags.
        """

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        """Compute how likely the tagger considers the mentions that sentences have.

        Args:
            sentences: sentences with mentions.

        Returns:
            For each sentence a number from 0 to 1, which is the geometric mean of the probabilities of its tags.
        """


# ------------------------------------------------------------------------------------------- parsers, words, synonyms


class Parse(NamedTuple):
    """A dependency tree over the words of a sentence.

    Args:
        heads: for each word the position of its head; a root is its own head.
        relations: for each word the relation to its head, as the parser names it.
        tags: for each word its universal part-of-speech tag.
        features: for each word its morphological features as in Universal Dependencies (``"Number=Plur"``), joined by
            ``|``; empty if the parser does not know them.
    """

    heads: tuple[int, ...]
    relations: tuple[str, ...]
    tags: tuple[str, ...]
    features: tuple[str, ...] = ()


@runtime_checkable
class DependencyParser(_Named, Protocol):
    """A dependency parser of tokenised sentences."""

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        """Parse sentences.

        Args:
            sentences: the words of each sentence.

        Returns:
            The tree of each sentence, over exactly its words.
        """


class Constituent(NamedTuple):
    """A phrase.

    Args:
        category: its category.
        start: the position of its first word.
        end: the position after its last word.
        form: what another phrase must have in common to agree with the rest of the sentence, such as the number of a
            noun phrase; and, behind a slash, what is better alike. Empty if the parser does not know it.
        heads: the positions of the words that say what it is: of a noun or verb phrase its head, of a prepositional
            phrase the heads of what follows the preposition. Empty if the parser does not know them.
    """

    category: str
    start: int
    end: int
    form: str = ""
    heads: tuple[int, ...] = ()


@runtime_checkable
class ConstituencyParser(_Named, Protocol):
    """A constituency parser of tokenised sentences."""

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        """Parse sentences.

        Args:
            sentences: the words of each sentence.

        Returns:
            The phrases of each sentence, outer before inner, left before right; no two cross.
        """


@runtime_checkable
class WordVectors(_Named, Protocol):
    """Static word vectors."""

    @property
    def size(self) -> int:
        """The dimension of a vector."""

    def vectors(self, words: Sequence[str]) -> NDArray[float32]:
        """Look up vectors.

        Args:
            words: the words.

        Returns:
            An array of shape (words, dimension), with zeros where a word has no vector.
        """

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Compute cosine similarities.

        Args:
            pairs: pairs of words.

        Returns:
            The cosine of each pair; None if a word has no vector.
        """


@runtime_checkable
class Lexicon(_Named, Protocol):
    """Words and their synonyms in one language."""

    @property
    def language(self) -> str:
        """The ISO 639-1 code of the language."""

    @property
    def knows_tags(self) -> bool:
        """Whether it has synonyms by part of speech."""

    def synonyms(self, word: str, tag: str | None = None) -> tuple[tuple[str, ...], ...]:
        """Look up synonyms; looking up a word again is cheap.

        Args:
            word: a word of a sentence.
            tag: its universal part-of-speech tag, for synonyms in the usual sense of this part of speech; None for
                those that fit whatever the part of speech. A lexicon that does not know tags ignores it.

        Returns:
            The synonyms, each as one or more words, in the inflected form and casing of the word, the most usual first;
            never the word itself, and empty if there are none.
        """


@runtime_checkable
class SenseLexicon(Lexicon, Protocol):
    """A lexicon that also lists the synonyms of all senses of a word."""

    def synonyms_of_any_sense(self, word: str) -> tuple[tuple[str, ...], ...]:
        """Look up the synonyms of all senses and parts of speech, in the form in which the lexicon lists them.

        Args:
            word: a word of a sentence.

        Returns:
            The synonyms in alphabetical order, each as one or more words; never the word itself.
        """


@runtime_checkable
class ContextLexicon(Lexicon, Protocol):
    """A lexicon that also lists the synonyms of all usual senses of a word, for a choice by the sentence."""

    def synonyms_of_senses(self, word: str, tag: str) -> tuple[tuple[str, ...], ...]:
        """Look up the synonyms of all usual senses.

        Args:
            word: a word of a sentence.
            tag: its universal part-of-speech tag.

        Returns:
            As for `Lexicon.synonyms`.
        """


@runtime_checkable
class WordCases(_Named, Protocol):
    """The case in which words of a language are usually written within a sentence."""

    @property
    def language(self) -> str:
        """The ISO 639-1 code of the language."""

    def usual_case(self, word: str) -> str | None:
        """Look up a word; looking it up again is cheap.

        Args:
            word: a word in any case.

        Returns:
            The word in its usual case; None if it is unknown, or has no usual case.
        """


class Recognition(NamedTuple):
    """Entities and parts of speech of a sentence.

    Args:
        entities: the first word of each entity, the word after its last one, and its kind.
        pos: for each word its universal part-of-speech tag.
    """

    entities: tuple[tuple[int, int, str], ...]
    pos: tuple[str, ...]


@runtime_checkable
class EntityRecognizer(_Named, Protocol):
    """A recogniser of entities, of kinds of its own, in tokenised sentences."""

    @property
    def language(self) -> str:
        """The ISO 639-1 code of the language."""

    def recognize(self, sentences: Sequence[Sequence[str]]) -> list[Recognition]:
        """Recognise the entities of sentences.

        Args:
            sentences: the words of each sentence.

        Returns:
            The result for each sentence, over exactly its words.
        """


def match_case(words: Iterable[str], example: str) -> tuple[str, ...]:
    """Change words to the casing of an example: all capitals, a capital first letter, or unchanged."""
    words = tuple(words)
    if len(example) > 1 and example.isupper():
        return tuple(word.upper() for word in words)
    if example[:1].isupper():
        return (words[0][:1].upper() + words[0][1:], *words[1:])
    return words
