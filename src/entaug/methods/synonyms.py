"""Replacement of words by synonyms: SR (Dai and Adel 2020, aclanthology.org/2020.coling-main.343)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Literal

from entaug.backends.dependency_trees import base_relations
from entaug.backends.protocols import DependencyParser, Lexicon, Parse, SenseLexicon
from entaug.backends.resolve import preparing_command, resolve_prepared
from entaug.config.params import Probability
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Mention
from entaug.core.rng import sample_positions
from entaug.core.words import StopWords, stop_words, takes_an
from entaug.errors import ParameterError
from entaug.filters.label_guard import UncasedNames
from entaug.methods.base import Augmenter, MethodInfo, Rejection, Request
from entaug.methods.shared.prose_detection import NOT_PROSE, SentenceKinds

_NO_SYNONYM = Rejection("no word with a suitable synonym", final=True)
_AUTO, _STARTER_PARSER, _STARTER_CASES = "auto", "en_core_web_sm", "smollm2"
_FIXED = frozenset({"compound", "flat", "fixed", "goeswith", "prt", "nk", "pnc"})
_COMPLEMENTS = frozenset(
    {"xcomp", "ccomp", "acomp", "oprd", "prt", "dative", "iobj", "expl", "oc", "svp", "pcomp", "attr"}
)
_VERBS = frozenset({"VERB", "AUX"})
_Synonyms = tuple[tuple[str, ...], ...]


@dataclass(kw_only=True, eq=False)
class SynonymReplacement(Augmenter):
    """Replace tokens by synonyms from a lexicon.

    A synonym of several words extends the mention around it. The reference code uses synonyms of any sense and part of
    speech. Here a parser tells the part of speech of each word, and a synonym must have the first sense of the word in
    common; without a parser it must fit the word in most of its uses, whatever its part of speech (see
    `entaug.backends.lexicon.wordnet`). With a parser words are left alone that a synonym could break: nouns before
    nouns, and verbs with a particle or a complement of their own ("keep hurting"). Words that look like names are not
    replaced: in English, capitalised words inside a mention or within the sentence; in a corpus without capitals all
    words of mentions, and outside those that are mostly in mentions or that a list of words has with a capital.

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
    dependency_parser: DependencyParser | str | None = "auto"
    senses: Literal["usual", "any"] = field(default="usual", metadata=ONLY_IF_SET)
    preset: Literal["starter", "paper"] = field(default="starter", metadata=ONLY_IF_SET)
    lexicon_: Lexicon = field(init=False, repr=False)
    dependency_parser_: DependencyParser | None = field(init=False, repr=False)

    presets = read_presets("sr")

    _uncased_names = UncasedNames()

    info: ClassVar[MethodInfo] = MethodInfo(
        name="sr",
        long_name="synonym-replacement",
        summary="English words replaced by synonyms in the same form",
        paper="Dai and Adel 2020, An Analysis of Simple Data Augmentation for Named Entity Recognition",
        keeps_order=True,
        needs=("lexicon",),
        may_need=("dependency_parser",),
        cost="parsing: hundreds of sentences per second; without a parser tens of thousands",
    )

    def _uses_backend(self, kind: str) -> bool:
        return kind != "dependency_parser" or self.dependency_parser not in (None, _AUTO)

    def _load(self) -> None:
        super()._load()
        if self.dependency_parser == _AUTO and _knows_english_tags(self.lexicon_):
            self.dependency_parser_ = resolve_prepared("dependency_parser", _STARTER_PARSER)
        elif not self._uses_backend("dependency_parser"):
            self.dependency_parser_ = None
        if self.senses == "any" and not isinstance(self.lexicon_, SenseLexicon):
            raise ParameterError(
                f"the lexicon {self.lexicon_.name} does not list synonyms of any sense",
                parameter="senses",
                remedy="use senses=usual, or the lexicon wordnet-any",
            )
        self._kinds = SentenceKinds(())  # of a corpus that is not known
        self._uncased_names = UncasedNames()

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        self._uncased_names = UncasedNames()
        self._kinds = SentenceKinds(self._uncased_names.observe(corpus))
        if self._uncased_names.is_needed and self.lexicon_.language == "en":
            self._uncased_names.use_list(resolve_prepared("word_cases", _STARTER_CASES))

    def get_params(self, *, loaded: bool = False) -> dict[str, Any]:
        params = super().get_params(loaded=loaded)
        if loaded and self._uncased_names.list_name:
            params["word_cases"] = self._uncased_names.list_name
        return params

    def notes(self) -> list[str]:
        notes = super().notes()
        if self.dependency_parser == _AUTO and self.dependency_parser_ is None and _knows_english_tags(self.lexicon_):
            notes.append(f"without parts of speech; for better synonyms run: entaug models prepare {_STARTER_PARSER}")
        names = self._uncased_names
        if names.is_needed and names.list_name is None and self.lexicon_.language == "en" and self.senses == "usual":
            command = preparing_command("word_cases", _STARTER_CASES)
            notes.append(
                f"the corpus has no capitals, so mentions alone tell which words are names; for a list run: {command}"
            )
        return notes

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        parses: Sequence[Parse | None] = [None] * len(requests)
        if self.dependency_parser_ is not None:
            parses = self.dependency_parser_.parse([request.sentence.tokens for request in requests])
        return [self._rewrite(s, rng, parse) for (s, rng, *_), parse in zip(requests, parses, strict=True)]

    def _rewrite(self, sentence: Sentence, rng: Random, parse: Parse | None = None) -> Sentence | Rejection:
        if self.skip_headlines and self._kinds.kind(sentence) != "prose":
            return NOT_PROSE
        if self.senses == "any":
            return self._replace(sentence, rng, self._choices_of_any_sense(sentence))
        lookup, stop = self.lexicon_.synonyms, stop_words(self.stop_words)
        tokens = sentence.tokens
        positions = range(len(tokens)) if parse is None else _replaceable_words(parse)
        choices = [
            (i, synonyms)
            for i in positions
            if (synonyms := lookup(tokens[i]) if parse is None else lookup(tokens[i], parse.tags[i]))
            and tokens[i].lower() not in stop
        ]
        free = sentence.outside_mask()
        [names] = self._uncased_names.places([sentence])
        # In a corpus with capitals, a word of a mention without one is no name.
        is_inside = self.inside_mentions and not self._uncased_names.is_needed
        choices = [
            (i, synonyms)
            for i, synonyms in choices
            if i not in names and (free[i] or (is_inside and not tokens[i][:1].isupper()))
        ]
        if self.lexicon_.language == "en":
            choices = [(i, fit) for i, synonyms in choices if (fit := _fitting_synonyms(tokens, i, synonyms))]
        return self._replace(sentence, rng, choices)

    def _choices_of_any_sense(self, sentence: Sentence) -> list[tuple[int, _Synonyms]]:
        assert isinstance(self.lexicon_, SenseLexicon)
        stop, free = stop_words(self.stop_words), sentence.outside_mask()
        return [
            (i, synonyms)
            for i, token in enumerate(sentence.tokens)
            if (free[i] or self.inside_mentions) and token.lower() not in stop
            if (synonyms := self.lexicon_.synonyms_of_any_sense(token))
        ]

    def _replace(self, sentence: Sentence, rng: Random, choices: list[tuple[int, _Synonyms]]) -> Sentence | Rejection:
        """Replace some of the words that have synonyms."""
        if not choices:
            return _NO_SYNONYM
        edits = []
        for k in sample_positions(rng, len(choices), self.p):
            i, synonyms = choices[k]
            words = synonyms[int(rng.random() * len(synonyms))]
            # A mention of only this token is replaced as a whole, so the edit must include it.
            whole = [Mention(m.label, ((0, len(words)),)) for m in sentence.mentions if m.spans == ((i, i + 1),)]
            edits.append(Edit(i, i + 1, words, whole if len(words) > 1 else None))
        return sentence.edit(edits)


def _knows_english_tags(lexicon: Lexicon) -> bool:
    return lexicon.language == "en" and lexicon.knows_tags


def _replaceable_words(parse: Parse) -> list[int]:
    """The words that are part of no compound, particle verb or the like, and verbs without clauses as complements."""
    names = base_relations(parse)
    fixed = {i for i, name in enumerate(names) if name in _FIXED}
    for i, head in enumerate(parse.heads):
        if (names[i] in _COMPLEMENTS and parse.tags[head] in _VERBS) or (
            names[i] == "compound" and parse.tags[i] == "ADP"
        ):
            fixed.add(head)
    return [i for i in range(len(names)) if i not in fixed]


def _fitting_synonyms(
    tokens: tuple[str, ...], i: int, synonyms: tuple[tuple[str, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the synonyms that fit a position of an English sentence: none for names, "an" only before vowels."""
    if tokens[i][:1].isupper() and (i or tokens[i].isupper()):
        return ()
    article = tokens[i - 1].lower() if i else ""
    if article not in ("a", "an"):
        return synonyms
    return tuple(words for words in synonyms if takes_an(words[0]) == (article == "an"))
