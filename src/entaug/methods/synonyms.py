"""Replacement of words by synonyms: SR (Dai and Adel 2020, aclanthology.org/2020.coling-main.343)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple

from entaug.backends.protocols import CausalLM, ContextLexicon, DependencyParser, Lexicon, MaskedLM, Parse, SenseLexicon
from entaug.backends.resolve import STARTERS, is_starter_prepared, preparing_command, resolve_starter
from entaug.config.params import NonNegativeFloat, Probability
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.alignment import detokenize_with_gaps
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Mention
from entaug.core.rng import sample_positions
from entaug.core.words import AUTO, StopWords, stop_words
from entaug.errors import ParameterError
from entaug.filters.label_guard import UncasedNames
from entaug.methods.base import Augmenter, MethodInfo, Rejection, Request
from entaug.methods.shared.prose_detection import NOT_PROSE, SentenceKinds
from entaug.methods.shared.word_choice import (
    MAX_GAIN,
    NUM_EXPECTED,
    draw_index,
    expected_words,
    fits_article,
    is_joined,
    is_repeated,
    likelihood_gains,
    load_starter,
    missing_starters,
    replaceable_words,
    text_with_source,
)

_NO_SYNONYM = Rejection("no word with a suitable synonym", final=True)
_NUM_PREDICTIONS = 100
_MIN_LOG_PROB = -7.0  # of a synonym where the model sees the original
_Synonyms = tuple[tuple[str, ...], ...]


class _Choice(NamedTuple):
    """A word that may be replaced: its position, its synonyms, and their weights in a draw."""

    position: int
    synonyms: _Synonyms
    weights: Sequence[float]


@dataclass(kw_only=True, eq=False)
class SynonymReplacement(Augmenter):
    """Replace tokens by synonyms from a lexicon.

    A synonym of several words extends the mention around it. The reference code uses synonyms of any sense and part of
    speech. Here a parser tells the part of speech of each word, and language models choose among the synonyms of all
    usual senses: a masked one, which must expect the synonym both where it sees the original and where it does not, and
    a causal one, for which the sentence must be as likely as before. So terms and fixed phrases are left alone. Without
    the causal model a synonym must have the first sense of the word in common; without a parser it must fit the word in
    most of its uses, whatever its part of speech (see `entaug.backends.lexicon.wordnet`). Other spellings of a word,
    and words that the sentence has already, are no synonyms. With a parser words are left alone that a synonym could
    break: nouns before nouns, and verbs with a particle or a complement of their own ("keep hurting"). Words that look
    like names are not replaced: in English, capitalised words inside a mention or within the sentence; in a corpus
    without capitals all words of mentions, and outside those that are mostly in mentions or that a list of words has
    with a capital.

    Args:
        p: the probability of replacing each token that has a synonym; at least one is replaced.
        lexicon: a `Lexicon` or its name.
        stop_words: words that are not replaced: a language code, or a path to a word list. Lexicons usually have no
            synonyms for function words in any case.
        inside_mentions: whether tokens of mentions are replaced.
        skip_headlines: whether headlines and table rows are left alone; see `entaug.methods.shared.prose_detection`.
            The paper has no such rule.
        dependency_parser: a `DependencyParser`, the name of a spaCy pipeline, or a CoNLL-U file, for parts of speech;
            none to do without. ``"auto"`` is the starter parser, where it is prepared and the lexicon is English and
            knows parts of speech.
        masked_lm: a `MaskedLM` or its name; none to do without, and ``"auto"`` as for `dependency_parser`.
        causal_lm: a `CausalLM` or its name; none to do without, and ``"auto"`` as for `dependency_parser`.
        margin: by how many nats a synonym may lower the log-likelihood of the sentence under `causal_lm`.
        senses: which synonyms: ``"usual"``, as above; or ``"any"``, with the lexicon ``wordnet-any``: those of any
            sense and part of speech, not inflected, also for words that look like names and where an article does not
            fit, as in the reference code.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods sr``)
            unless it is given.

    Example:
        >>> from helpers.fakes import FakeLexicon  # tests/helpers of entaug
        >>> gold = [Sentence("a fine film".split(), [Mention("WORK", [(2, 3)])])]
        >>> [new] = SynonymReplacement(p=1.0, lexicon=FakeLexicon({"film": ["motion picture"]})).augment(gold)
        >>> new.tokens, new.iob()
        (('a', 'fine', 'motion', 'picture'), ['O', 'O', 'B-WORK', 'I-WORK'])
    """

    p: Probability = 0.3
    lexicon: Lexicon | str = "wordnet"
    stop_words: StopWords | None = None
    inside_mentions: bool = True
    skip_headlines: bool = True
    dependency_parser: DependencyParser | str | None = AUTO
    masked_lm: MaskedLM | str | None = AUTO
    causal_lm: CausalLM | str | None = AUTO
    margin: NonNegativeFloat = 1.0
    senses: Literal["usual", "any"] = field(default="usual", metadata=ONLY_IF_SET)
    preset: Literal["starter", "paper"] = field(default="starter", metadata=ONLY_IF_SET)
    lexicon_: Lexicon = field(init=False, repr=False)
    dependency_parser_: DependencyParser | None = field(init=False, repr=False)
    masked_lm_: MaskedLM | None = field(init=False, repr=False)
    causal_lm_: CausalLM | None = field(init=False, repr=False)

    presets = read_presets("sr")

    _uncased_names = UncasedNames()

    info: ClassVar[MethodInfo] = MethodInfo(
        name="sr",
        long_name="synonym-replacement",
        summary="English words replaced by synonyms in the same form",
        paper="Dai and Adel 2020, An Analysis of Simple Data Augmentation for Named Entity Recognition",
        keeps_order=True,
        needs=("lexicon",),
        may_need=("dependency_parser", "masked_lm", "causal_lm"),
        cost="parsing: hundreds of sentences per second; with language models a few",
    )

    def _uses_backend(self, kind: str) -> bool:
        return getattr(self, kind) not in (None, AUTO)

    def _load(self) -> None:
        super()._load()
        for kind in self._backend_kinds:
            if not self._uses_backend(kind):
                wanted = getattr(self, kind) == AUTO and self.lexicon_.knows_tags
                setattr(self, f"{kind}_", load_starter(kind, self.lexicon_.language) if wanted else None)
        if self.senses == "any" and not isinstance(self.lexicon_, SenseLexicon):
            raise ParameterError(
                f"the lexicon {self.lexicon_.name} does not list synonyms of any sense",
                parameter="senses",
                remedy="use senses=usual, or the lexicon wordnet-any",
            )
        self._choices: dict[int, tuple[Sentence, list[_Choice] | Rejection]] = {}
        self._kinds = SentenceKinds(())  # of a corpus that is not known
        self._uncased_names = UncasedNames()

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        self._uncased_names = UncasedNames()
        self._kinds = SentenceKinds(self._uncased_names.observe(corpus))
        if self._uncased_names.is_needed and self.lexicon_.language == "en":
            self._uncased_names.use_list(resolve_starter("word_cases"))

    @property
    def starters(self) -> set[str]:
        return super().starters | ({STARTERS["word_cases"]} if is_starter_prepared("word_cases") else set())

    def get_params(self, *, loaded: bool = False) -> dict[str, Any]:
        params = super().get_params(loaded=loaded)
        if loaded and self._uncased_names.list_name:
            params["word_cases"] = self._uncased_names.list_name
        return params

    def notes(self) -> list[str]:
        notes = super().notes()
        if self.lexicon_.knows_tags:
            notes += missing_starters(self, self.lexicon_.language)
        names = self._uncased_names
        if names.is_needed and names.list_name is None and self.lexicon_.language == "en" and self.senses == "usual":
            command = preparing_command("word_cases")
            notes.append(
                f"the corpus has no capitals, so mentions alone tell which words are names; for a list run: {command}"
            )
        return notes

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        if not requests[0].attempt:
            self._choices = {}  # of other sentences
        new = {id(s): s for s, *_ in requests if id(s) not in self._choices}
        parses: Sequence[Parse | None] = [None] * len(new)
        if self.dependency_parser_ is not None:
            parses = self.dependency_parser_.parse([sentence.tokens for sentence in new.values()])
        for (key, sentence), parse in zip(new.items(), parses, strict=True):
            self._choices[key] = sentence, self._choices_of(sentence, parse)
        return [self._replace(s, rng, self._choices[id(s)][1]) for s, rng, *_ in requests]

    def _choices_of(self, sentence: Sentence, parse: Parse | None) -> list[_Choice] | Rejection:
        """Return the words that have suitable synonyms."""
        if self.skip_headlines and self._kinds.kind(sentence) != "prose":
            return NOT_PROSE
        if self.senses == "any":
            return self._choices_of_any_sense(sentence)
        tokens, stop = sentence.tokens, stop_words(self.stop_words)
        free = sentence.outside_mask()
        [names] = self._uncased_names.places([sentence])
        # In a corpus with capitals, a word of a mention without one is no name.
        is_inside = self.inside_mentions and not self._uncased_names.is_needed
        found = {
            i: synonyms
            for i in (range(len(tokens)) if parse is None else replaceable_words(parse))
            if tokens[i].lower() not in stop
            and i not in names
            and (free[i] or (is_inside and not tokens[i][:1].isupper()))
            and not is_joined(tokens, i)
            if (synonyms := self._synonyms(tokens[i], None if parse is None else parse.tags[i]))
        }
        for i, synonyms in list(found.items()):
            fitting = _fitting_synonyms(tokens, i, synonyms) if self.lexicon_.language == "en" else synonyms
            found[i] = tuple(words for words in fitting if not is_repeated(tokens, " ".join(words)))
        if self.masked_lm_ is not None:
            _keep_expected(sentence, found, self.masked_lm_)
        choices = [_Choice(i, synonyms, [1.0] * len(synonyms)) for i, synonyms in found.items() if synonyms]
        if self.causal_lm_ is None:
            return choices
        return [likely for choice in choices if (likely := self._likely(sentence, choice, self.causal_lm_)).synonyms]

    def _likely(self, sentence: Sentence, choice: _Choice, model: CausalLM) -> _Choice:
        """Return the synonyms with which a sentence is as likely as before."""
        i, synonyms, _ = choice
        texts = [" ".join(words) for words in synonyms]
        gains = likelihood_gains(model, sentence.tokens, sentence.spaces, i, texts)
        kept = [(words, gain) for words, gain in zip(synonyms, gains, strict=True) if gain >= -self.margin]
        weights = [math.exp(min(gain, MAX_GAIN)) for _, gain in kept]
        return _Choice(i, tuple(words for words, _ in kept), weights)

    def _synonyms(self, word: str, tag: str | None) -> _Synonyms:
        """Look up the synonyms of a word: of all usual senses if a language model can choose among them."""
        if self.causal_lm_ is not None and tag is not None and isinstance(self.lexicon_, ContextLexicon):
            return self.lexicon_.synonyms_of_senses(word, tag)
        return self.lexicon_.synonyms(word, tag)

    def _choices_of_any_sense(self, sentence: Sentence) -> list[_Choice]:
        assert isinstance(self.lexicon_, SenseLexicon)
        stop, free = stop_words(self.stop_words), sentence.outside_mask()
        return [
            _Choice(i, synonyms, [1.0] * len(synonyms))
            for i, token in enumerate(sentence.tokens)
            if (free[i] or self.inside_mentions) and token.lower() not in stop
            if (synonyms := self.lexicon_.synonyms_of_any_sense(token))
        ]

    def _replace(self, sentence: Sentence, rng: Random, choices: list[_Choice] | Rejection) -> Sentence | Rejection:
        """Replace some of the words that have synonyms."""
        if isinstance(choices, Rejection):
            return choices
        if not choices:
            return _NO_SYNONYM
        edits = []
        for k in sample_positions(rng, len(choices), self.p):
            i, synonyms, weights = choices[k]
            words = synonyms[draw_index(rng.random(), weights)]
            # A mention of only this token is replaced as a whole, so the edit must include it.
            whole = [Mention(m.label, ((0, len(words)),)) for m in sentence.mentions if m.spans == ((i, i + 1),)]
            edits.append(Edit(i, i + 1, words, whole if len(words) > 1 else None))
        return sentence.edit(edits)


def _fitting_synonyms(
    tokens: tuple[str, ...], i: int, synonyms: tuple[tuple[str, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the synonyms that fit a position of an English sentence: none for names, "an" only before vowels."""
    if tokens[i][:1].isupper() and (i or tokens[i].isupper()):
        return ()
    return tuple(words for words in synonyms if fits_article(tokens, i, words[0]))


def _keep_expected(sentence: Sentence, found: dict[int, _Synonyms], model: MaskedLM) -> None:
    """Keep the synonyms that a masked language model expects, both with and without the sight of the original."""
    for sees_source in (True, False):
        if not (places := [i for i in found if found[i]]):
            return
        if sees_source:
            texts = [text_with_source(sentence.tokens, [i], sentence.spaces) for i in places]
            predictions = model.fill(texts, _NUM_PREDICTIONS, first_only=True)
            expected = [expected_words(predicted, _MIN_LOG_PROB) for [predicted] in predictions]
        else:
            texts = [tuple(detokenize_with_gaps(sentence.tokens, [i], sentence.spaces)) for i in places]
            predictions = model.fill(texts, NUM_EXPECTED, first_only=True)
            expected = [expected_words(predicted) for [predicted] in predictions]
        for i, likely in zip(places, expected, strict=True):
            found[i] = tuple(words for words in found[i] if len(words) == 1 and words[0].lower() in likely)
