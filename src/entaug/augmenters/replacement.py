"""Replacement of tokens and mentions: LwTR, MR and SR (Dai and Adel 2020, aclanthology.org/2020.coling-main.343)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate
from random import Random
from typing import Any, ClassVar

from entaug.augmenters.base import NO_CANDIDATE, Augmenter, MethodInfo, Rejection
from entaug.augmenters.list_donors import ListDonors, mention_keys
from entaug.backends.protocols import Lexicon
from entaug.data import Edit, Mention, Sentence
from entaug.errors import InputError
from entaug.filters.base import HeldOut
from entaug.mention_lists import MentionLists, describe_mention_lists, mention_lists, relative_to_folder
from entaug.params import Probability
from entaug.provenance import Provenance
from entaug.rng import sample_positions
from entaug.stopwords import StopWords, stop_words
from entaug.tags import position_tags

__all__ = ["LabelWiseTokenReplacement", "MentionReplacement", "SynonymReplacement"]

_NO_MENTION = Rejection("no mention that can be replaced", final=True)
_NO_SYNONYM = Rejection("no word with a suitable synonym", final=True)
# In the English corpora tested, 3.6 to 7.1 % of the lower-case words outside mentions have a synonym in WordNet's
# table; in German, Spanish, Dutch, Turkish, Russian and Croatian ones at most 1.2 %.
_FEW, _ENOUGH_WORDS, _MANY_WORDS = 0.02, 500, 20_000
_PAPER = "Dai and Adel 2020, An Analysis of Simple Data Augmentation for Named Entity Recognition"


@dataclass(kw_only=True, eq=False)
class LabelWiseTokenReplacement(Augmenter):
    """Replace tokens by training tokens with the same full tag (B-X, I-X or O), drawn by frequency.

    With nested and discontinuous mentions a token's tag is the set of its tags in all mentions that contain it.

    Args:
        p: the probability of replacing each token; at least one is replaced.
        stop_words: words that are not replaced: a language code, or a path to a word list.

    Example:
        >>> person = [Mention("PER", [(0, 1)])]
        >>> gold = [Sentence(["Ada", "sings"], person), Sentence(["Bo", "rests"], person)]
        >>> new = LabelWiseTokenReplacement(p=1.0).fit(gold).augment(gold)
        >>> all(s.iob() == ["B-PER", "O"] for s in new)
        True
    """

    p: Probability = 0.3
    stop_words: StopWords | None = None

    info: ClassVar[MethodInfo] = MethodInfo(
        name="lwtr",
        long_name="label-wise-token-replacement",
        summary="tokens replaced by training tokens of the same tag",
        paper=_PAPER,
        keeps_length=True,
        keeps_order=True,
        needs_fit=True,
    )

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for sentence in corpus:
            for tag, token in zip(position_tags(len(sentence), sentence.mentions), sentence.tokens, strict=True):
                counts[tag][token] += 1
        # Sorted, so that the order of the corpus does not matter; cumulated, so that sampling is a binary search.
        self.pools_ = {
            tag: (tokens, list(accumulate(of_tag[token] for token in tokens)))
            for tag, of_tag in counts.items()
            for tokens in [sorted(of_tag)]
        }

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        tokens, stop = sentence.tokens, stop_words(self.stop_words)
        candidates = [i for i, token in enumerate(tokens) if token.lower() not in stop] if stop else range(len(tokens))
        if not candidates:
            return NO_CANDIDATE
        tags = position_tags(len(sentence), sentence.mentions)
        edits = []
        for k in sample_positions(rng, len(candidates), self.p):
            i = candidates[k]
            pool = self.pools_.get(tags[i])
            if pool is not None:
                words, sums = pool
                edits.append(Edit(i, i + 1, (words[bisect_right(sums, rng.random() * sums[-1])],)))
        return sentence.edit(edits)


@dataclass(kw_only=True, eq=False)
class MentionReplacement(Augmenter):
    """Replace mentions by other mentions of the same label: training mentions, or entries of lists of the user.

    Only contiguous, non-overlapping mentions are replaced, and only by mentions that contain no other mention.
    A mention is never replaced by itself. Training mentions are drawn uniformly from the distinct ones; so are entries
    of lists, from those that are no training mentions. Entries are written as the corpus writes mentions of the label:
    with its tokens and capitals, with a capital at the beginning of a sentence, and without an article where one stands
    before them. Provenance names the list.

    Args:
        p: the probability of replacing each mention; at least one is replaced.
        mentions: lists of further mentions: ``names.txt=LABEL`` (one a line), ``names.jsonl`` (with mention and label
            in each line), ``table.csv:COLUMN=LABEL``; in Python also a dictionary with the mentions of each label, or
            `entaug.mention_lists.MentionList`.
        list_share: the probability of drawing from the lists instead of the training mentions, for labels with both.
        held_out: dev and test sentences; entries that are mentions of these are left out.

    Attributes:
        coverage_: how many training mentions each list covers (`entaug.augmenters.list_donors.ListCoverage`).

    Example:
        >>> gold = [
        ...     Sentence(["Ada", "sings"], [Mention("PER", [(0, 1)])]),
        ...     Sentence(["Bo", "Ek", "rests"], [Mention("PER", [(0, 2)])]),
        ... ]
        >>> [" ".join(s.tokens) for s in MentionReplacement(p=1.0).fit(gold).augment(gold)]
        ['Bo Ek sings', 'Ada rests']
        >>> mr = MentionReplacement(p=1.0, mentions={"PER": ["Grace Hopper"]}, list_share=1.0).fit(gold)
        >>> [" ".join(s.tokens) for s in mr.augment(gold)], mr.coverage_[0].covered
        (['Grace Hopper sings', 'Grace Hopper rests'], 0)
    """

    p: Probability = 0.3
    mentions: MentionLists | None = field(
        default=None, metadata={"repeatable": True, "describe": describe_mention_lists, "relative": relative_to_folder}
    )
    list_share: Probability = 0.5
    held_out: HeldOut | None = field(default=None, metadata={"given": "--held-out FILE"})

    info: ClassVar[MethodInfo] = MethodInfo(
        name="mr",
        long_name="mention-replacement",
        summary="mentions replaced by other training mentions of the same type",
        paper=_PAPER,
        keeps_order=True,
        needs_fit=True,
        needs_mentions=True,
    )

    def hold_out(self, sentences: Iterable[Sentence]) -> bool:
        """See `Augmenter.hold_out`: entries of lists that are mentions of these sentences are left out."""
        if self.mentions is not None and self.held_out is None:
            self.held_out = list(sentences)
        return self.mentions is not None

    def _plain(self, name: str, value: Any) -> Any:
        # By content, independent of the place of files and the order of sentences.
        if name == "mentions":
            return describe_mention_lists(value)
        if name == "held_out" and value is not None:
            return blake2b("\0".join(sorted(mention_keys(value))).encode(), digest_size=4).hexdigest()
        return super()._plain(name, value)

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        distinct: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
        self._spaces: dict[tuple[str, ...], tuple[str, ...]] = {}  # within mentions, as in the corpus
        lists = mention_lists(self.mentions)
        self._donors = ListDonors(lists, mention_keys(self.held_out or ())) if lists else None
        if self._donors:
            self._donors.fit(self._collected(self._donors.observe(corpus), distinct))
        else:
            for _ in self._collected(corpus, distinct):
                pass
        self.coverage_ = self._donors.coverage if self._donors else []
        self.pools_ = {label: sorted(of_label) for label, of_label in distinct.items()}
        self._index = {label: {words: i for i, words in enumerate(pool)} for label, pool in self.pools_.items()}
        # Types whose mentions cannot be replaced, because there is only one.
        self.single_ = {
            label: pool[0] for label, pool in self.pools_.items() if len(pool) == 1 and not self._list_size(label)
        }
        if self.pools_ and len(self.single_) == len(self.pools_):
            raise InputError(
                "every type has only one distinct mention, so mr cannot replace any",
                path=getattr(corpus, "source", None),
                remedy="use more sentences or another method",
            )

    def _collected(
        self, corpus: Iterable[Sentence], distinct: defaultdict[str, set[tuple[str, ...]]]
    ) -> Iterator[Sentence]:
        """Yield sentences, after adding their mentions to the distinct ones of each label."""
        for sentence in corpus:
            for mention in sentence.mentions:
                if mention.is_contiguous and _is_self_contained(mention, sentence):
                    words = sentence.mention_tokens(mention)
                    distinct[mention.label].add(words)
                    if sentence.spaces is not None and len(words) > 1:
                        own = sentence.spaces[mention.start : mention.end - 1]
                        self._spaces[words] = min(own, self._spaces.get(words, own))
            yield sentence

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        single = [
            f"type {label} has only one distinct mention ({' '.join(words)!r}), which mr cannot replace"
            for label, words in sorted(self.single_.items())
        ]
        return [*map(str, self.coverage_), *single]

    def _list_size(self, label: str) -> int:
        """The number of entries of lists that can replace a mention with this label."""
        return self._donors.size(label) if self._donors and self.list_share else 0

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        mentions = [
            m
            for m in _standalone_mentions(sentence)
            if len(self.pools_.get(m.label, ())) > 1 or self._list_size(m.label)
        ]
        if not mentions:
            return _NO_MENTION
        edits = []
        from_lists = []
        for k in sample_positions(rng, len(mentions), self.p):
            mention = mentions[k]
            pool = self.pools_.get(mention.label, [])
            if self._list_size(mention.label) and (len(pool) < 2 or rng.random() < self.list_share):
                donor = self._donors.draw(sentence, mention, rng) if self._donors else None
                if donor is not None:
                    whole = Mention(mention.label, ((0, len(donor.words)),))
                    edits.append(Edit(mention.start, mention.end, donor.words, (whole,), donor.spaces))
                    from_lists.append({"mention": " ".join(donor.words), "list": donor.name})
                    continue
            if len(pool) < 2:
                continue
            own = self._index[mention.label].get(sentence.mention_tokens(mention))
            if own is None:
                words = pool[int(rng.random() * len(pool))]
            else:
                drawn = int(rng.random() * (len(pool) - 1))
                words = pool[drawn + (drawn >= own)]
            whole = Mention(mention.label, ((0, len(words)),))
            edits.append(Edit(mention.start, mention.end, words, (whole,), self._spaces.get(words)))
        new = sentence.edit(edits)
        return new.with_(provenance=Provenance(details={"lists": from_lists})) if from_lists else new


def _is_self_contained(mention: Mention, sentence: Sentence) -> bool:
    """Whether a mention's words can be moved with all their labels: no other mention begins or ends in them."""
    if len(sentence.mentions) == 1 or sentence.is_flat:
        return True
    own = set(mention.positions())
    others = [set(other.positions()) for other in sentence.mentions if other != mention]
    return all(own.isdisjoint(other) or own < other for other in others)


def _standalone_mentions(sentence: Sentence) -> Iterable[Mention]:
    """Return the contiguous mentions that overlap no other."""
    mentions = sentence.mentions
    if len(mentions) < 2 or sentence.is_flat:
        return [mention for mention in mentions if mention.is_contiguous]
    held = Counter(i for mention in mentions for i in mention.positions())
    return [m for m in mentions if m.is_contiguous and all(held[i] == 1 for i in range(m.start, m.end))]


@dataclass(kw_only=True, eq=False)
class SynonymReplacement(Augmenter):
    """Replace tokens by synonyms from a lexicon.

    A synonym of several words extends the mention around it. The reference code uses synonyms of any sense and part of
    speech; here the lexicon selects them (see `entaug.backends.lexicon.wordnet`). Words that look like names are not
    replaced: in English, capitalised words inside a mention or within the sentence.

    Args:
        p: the probability of replacing each token that has a synonym; at least one is replaced.
        lexicon: a `Lexicon` or its name.
        stop_words: words that are not replaced: a language code, or a path to a word list. Lexicons usually have no
            synonyms for function words in any case.
        inside_mentions: whether tokens of mentions are replaced.

    Example:
        >>> from entaug.backends.fakes import FakeLexicon
        >>> gold = [Sentence("a fine film".split(), [Mention("WORK", [(2, 3)])])]
        >>> [new] = SynonymReplacement(p=1.0, lexicon=FakeLexicon({"film": ["motion picture"]})).augment(gold)
        >>> new.tokens, new.iob()
        (('a', 'fine', 'motion', 'picture'), ['O', 'O', 'B-WORK', 'I-WORK'])
    """

    p: Probability = 0.3
    lexicon: Lexicon | str = "wordnet"
    stop_words: StopWords | None = None
    inside_mentions: bool = True
    lexicon_: Lexicon = field(init=False, repr=False)

    _words = _known = 0

    info: ClassVar[MethodInfo] = MethodInfo(
        name="sr",
        long_name="synonym-replacement",
        summary="English words replaced by synonyms in the same form",
        paper=_PAPER,
        keeps_order=True,
        needs=("lexicon",),
    )

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        """Count known words, to detect a corpus in another language than the lexicon's."""
        self._words = self._known = 0
        for sentence in corpus:
            for token, free in zip(sentence.tokens, sentence.outside_mask(), strict=True):
                if free and token[0].isalpha() and token == token.lower():
                    self._words += 1
                    self._known += bool(self.lexicon_.synonyms(token))
            if self._words >= _MANY_WORDS:
                break

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        if self._words < _ENOUGH_WORDS or self._known >= _FEW * self._words:
            return []
        share, name, language = f"{self._known / self._words:.1%}", self.lexicon_.name, self.lexicon_.language
        return [f"only {share} of the words have a synonym in {name}: is the corpus in its language, {language}?"]

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        lookup, stop = self.lexicon_.synonyms, stop_words(self.stop_words)
        tokens = sentence.tokens
        choices = [
            (i, synonyms) for i, token in enumerate(tokens) if (synonyms := lookup(token)) and token.lower() not in stop
        ]
        if choices and sentence.mentions:
            free = sentence.outside_mask()
            if self.inside_mentions:
                choices = [(i, synonyms) for i, synonyms in choices if free[i] or not tokens[i][:1].isupper()]
            else:
                choices = [(i, synonyms) for i, synonyms in choices if free[i]]
        if self.lexicon_.language == "en":
            choices = [(i, fit) for i, synonyms in choices if (fit := _fitting_synonyms(tokens, i, synonyms))]
        if not choices:
            return _NO_SYNONYM
        edits = []
        for k in sample_positions(rng, len(choices), self.p):
            i, synonyms = choices[k]
            words = synonyms[int(rng.random() * len(synonyms))]
            if len(words) == 1:
                edits.append(Edit(i, i + 1, words))
            else:
                # A mention of only this token is replaced as a whole, so the edit must include it.
                whole = [Mention(m.label, ((0, len(words)),)) for m in sentence.mentions if m.spans == ((i, i + 1),)]
                edits.append(Edit(i, i + 1, words, whole))
        return sentence.edit(edits)


def _fitting_synonyms(
    tokens: tuple[str, ...], i: int, synonyms: tuple[tuple[str, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the synonyms that fit a position of an English sentence: none for names, "an" only before vowels."""
    if tokens[i][:1].isupper() and (i or tokens[i].isupper()):
        return ()
    article = tokens[i - 1].lower() if i else ""
    if article not in ("a", "an"):
        return synonyms
    return tuple(words for words in synonyms if _takes_an(words[0]) == (article == "an"))


def _takes_an(word: str) -> bool:
    word = word.lower()
    if word.startswith(("hour", "honest", "honor", "honour", "heir")):
        return True
    return word[0] in "aeiou" and not word.startswith(("uni", "use", "usu", "uti", "ura", "eu", "ewe", "one", "once"))
