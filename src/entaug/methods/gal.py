"""GAL: new sentences in the style of the corpus, labelled by a teacher (He et al., TACL 2022)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from entaug.backends.instruct import InstructModel
from entaug.backends.protocols import Generator
from entaug.config.params import PositiveFloat, PositiveInt, PositiveShare
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.rng import Streams
from entaug.errors import ParameterError
from entaug.methods.base import MethodInfo, Rejection, Request
from entaug.methods.shared.generated_text import GeneratedTexts, distinct_sentences
from entaug.methods.shared.generative import PromptedAugmenter, Query, TextPlan
from entaug.teacher.relabel import Relabeller, create_relabeller

_TOO_SHORT = Rejection("fewer words than any training sentence")
_TOO_LONG = Rejection("much longer than any training sentence")
_REPETITIVE = Rejection("the same words again and again")

_MAX_LENGTH_RATIO = 1.2  # to the longest training sentence
_MIN_DISTINCT = 0.5  # share of distinct words


@dataclass(kw_only=True, eq=False)
class GAL(PromptedAugmenter):
    """Let a language model write further sentences like those of the corpus, and a teacher label them.

    The model reads a few training sentences, one a line, the source last, and writes the next line. It is not trained.
    The new sentences have no labels of their own: `teacher`, an ensemble of taggers trained on the corpus unless
    another one is named, labels them, with the probabilities of all tags. So the method takes the place of unlabelled
    text in self-training where there is none, and pays most with a teacher that is better than the tagger to be
    trained, for example one with a larger encoder.

    The paper fine-tunes a language model on unlabelled text of the task, or prompts a large one with a few examples,
    as here: a few hundred sentences are too few to fine-tune on.

    Args:
        generator: a `Generator` or its name (starter: smollm2); or an `entaug.backends.instruct.InstructModel`,
            ``http://HOST:PORT/v1#MODEL`` for a model behind a server with an OpenAI-compatible interface, or
            ``FILE.gguf``.
        top_k: the number of most likely sub-words to sample from.
        num_examples: the number of training sentences in each prompt, the source included, whatever the generator.
        max_similarity: the similarity to a training sentence in the prompt, as a share of common words, from which on
            texts are rejected.
        teacher: the teacher, with ``labels=teacher``; see `Augmenter`. With none, the sentences have no labels.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeInstructModel, FakeTagger
        >>> gold = [Sentence("Ada sings well".split(), [Mention("PER", [(0, 1)])])]
        >>> model = FakeInstructModel(answer=lambda request: "Nobody sings sadly")
        >>> teacher = Relabeller(tagger=FakeTagger(), labels="teacher")
        >>> [new] = GAL(generator=model, teacher=teacher).fit(gold).augment(gold)
        >>> print(new)
        Nobody sings sadly
    """

    generator: Generator | InstructModel | str | None = "smollm2"
    top_k: PositiveInt = 50
    temperature: PositiveFloat = 1.0
    max_new_tokens: PositiveInt = 96
    max_similarity: PositiveShare = 0.8
    max_attempts: PositiveInt = 4
    teacher: str | Relabeller | None = "ensemble:labels=teacher"

    info: ClassVar[MethodInfo] = MethodInfo(
        name="gal",
        long_name="generate-annotate-and-learn",
        summary="new sentences in the style of the corpus by a language model, labelled by a teacher",
        paper="He et al. 2022, Generate, Annotate, and Learn: NLP with Synthetic Text",
        keeps_mentions=False,
        has_labels=False,
        needs_fit=True,
        needs_mentions=True,
        unconditioned=True,
        needs=("generator",),
        may_need=("tagger",),
        cost="training an ensemble of taggers (minutes on a CPU), then a second per sentence",
    )

    # ------------------------------------------------------------------------------------------------------- parameters

    def _check(self) -> None:
        super()._check()
        teacher = create_relabeller(self.teacher)
        if teacher is not None and teacher.labels != "teacher":
            raise ParameterError(
                f"{self.name} writes sentences without labels, and the teacher adds few of them with "
                f"labels={teacher.labels}",
                parameter="teacher",
                remedy="give labels=teacher",
            )

    def get_params(self, *, loaded: bool = False) -> dict[str, Any]:
        return {**super().get_params(loaded=loaded), "num_examples": self.num_examples}  # of any generator

    # -------------------------------------------------------------------------------------------------------------- fit

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = distinct_sentences(corpus)
        self.texts_ = GeneratedTexts(gold, (s.mention_tokens(m) for s in gold for m in s.mentions if m.is_contiguous))
        self._examples = gold
        lengths = [len(sentence) for sentence in gold]
        self._shortest, self._longest = min(lengths, default=0), _MAX_LENGTH_RATIO * max(lengths, default=0)
        self._streams = Streams(self.seed, f"{self.name} examples")

    # ---------------------------------------------------------------------------------------------------------- augment

    def _plan(self, request: Request) -> TextPlan:
        examples = self._examples_for(request)
        text = "\n".join(detokenize(sentence.tokens) for sentence in examples)
        return TextPlan(request.sentence, text, request.rng.getrandbits(31), basis=examples)

    def _examples_for(self, request: Request) -> list[Sentence]:
        """Return the training sentences of a prompt, the source last: the same for all first drafts of a source."""
        source, copy = request.sentence, request.copy if request.attempt else 0
        rng, own = self._streams.stream(f"{source.key} {request.attempt}", copy), source.fingerprint()
        drawn = rng.sample(self._examples, min(self.num_examples, len(self._examples)))
        return [*[other for other in drawn if other.fingerprint() != own][: self.num_examples - 1], source]

    def _decoding(self) -> dict[str, Any]:
        return {"strategy": "sample", "num_beams": 1, "top_k": self.top_k}

    def _query(self, plan: TextPlan) -> Query:
        return Query({"examples": plan.text}, (), plan.seed)

    def _read(self, plan: TextPlan, text: str) -> Sentence | Rejection:
        tokens = self.texts_.tokenize(text.partition("\n")[0])
        for is_wrong, rejection in (
            (len(tokens) < self._shortest, _TOO_SHORT),
            (len(tokens) > self._longest, _TOO_LONG),
            (len(set(tokens)) < _MIN_DISTINCT * len(tokens), _REPETITIVE),
        ):
            if is_wrong:
                return rejection
        sources = tuple(example.key for example in plan.basis[:-1])
        return self._new_sentence(plan.source, tokens, (), plan.basis, sources, unconditioned=True)

    # ------------------------------------------------------------------------------------------------------------ notes

    def notes(self) -> list[str]:
        if self.teacher_ is not None:
            return super().notes()
        return [*super().notes(), "there is no teacher, so the new sentences have no labels"]
