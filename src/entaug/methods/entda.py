"""EnTDA: new sentences generated from lists of mentions (Hu et al., Findings of ACL 2023)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple

from entaug.backends.protocols import CausalLM, DependencyParser, Encoder
from entaug.config.params import NonNegativeFloat, PositiveInt
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.languages import LanguageProfile
from entaug.core.words import AUTO, is_word, stop_words
from entaug.errors import InputError
from entaug.methods.base import NO_CANDIDATE, MethodInfo, Rejection, Request
from entaug.methods.choice import CandidateScorer
from entaug.methods.mention_replacement import MentionReplacement
from entaug.methods.shared.generated_text import (
    GeneratedTexts,
    KnownMentions,
    MentionGroup,
    grouped_mentions,
    has_sentence_end,
    match_mentions,
    token_similarity,
)
from entaug.methods.shared.generative import UNFINISHED, GenerativeAugmenter, PromptedAugmenter, Query, TextPlan
from entaug.methods.shared.word_choice import ends_well, is_repeated, load_starter, missing_starters
from entaug.metrics.likelihood import count_words, variant_log_probs

_AUTO_KINDS = ("dependency_parser", "causal_lm")
_JOINTS = ("-", "/")
_GAP = "|"  # in a list
_ONE = 1e-9  # a probability with which no more than one mention is replaced
_MIN_NEW = 2  # words of a new end
_MAX_LONGER = 2  # words; a small generator loses the thread
_DIGITS = 3  # of a log-likelihood: kernels may round further ones differently for other batches
_NOTHING_TO_WRITE = Rejection("fewer than two words behind its last mention", final=True)
_OTHER_BEGINNING = Rejection("it does not begin with the words of its list")
_SAME_END = Rejection("it ends as its source does")
_OTHER_LENGTH = Rejection("its end is shorter or longer than that of its source")
_REPEATS = Rejection("its end repeats words")
_OTHER_STRUCTURE = Rejection("its end does not fit its beginning by the parser")
_UNLIKELY = Rejection("its end is less likely than that of its source")
_SIMILAR_SIBLING = Rejection("too similar to another text from the same list")


_Ended = Sequence[str] | Rejection


class Listed(NamedTuple):
    """A mention of a list, or several that overlap, with the words beside it."""

    group: MentionGroup
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    is_first: bool = True  # whether its sentence has no words before these
    is_last: bool = True
    follows: bool = False  # whether its sentence has no words between it and the one before it in the list


@dataclass(kw_only=True, eq=False)
class EnTDA(GenerativeAugmenter, PromptedAugmenter):
    """Change the list of a sentence's mentions and generate a new sentence from it.

    The generator is trained to generate each training sentence from the list of its mentions and their types. For new
    sentences a mention of the list is added, deleted, replaced by another of its type, or two are swapped. A text is
    accepted only if it contains every mention of the list unambiguously, and no other known mention. Overlapping
    mentions are listed, changed and matched together; so are the parts of a discontinuous mention.

    By default a list also has the other words of the sentence but the last few: the new sentence begins as its source
    does, with another mention, and the generator writes a new end, with other words, none of them twice. Ends that go
    on for long are cut to about the length of the old one. In English, starter models check ends if they are prepared:
    a parser, that they fit the beginning and have no names, and a causal language model, that they are as likely as the
    old end. Sentences with fewer than two words behind their last mention are refused: nothing is left to write. A
    small generator rarely writes a sensible sentence from mentions alone.

    An instruct model (a server or a GGUF file) is not trained: it is asked by a prompt with lists and sentences of the
    corpus as examples, and its texts are checked in the same way.

    Sentences without mentions are not augmented. Up to `num_beams` copies of a sentence share a list, and each takes
    one of the texts generated from it; rejected texts are generated again from another list.

    Args:
        operation: ``"add"``, ``"delete"``, ``"replace"``, ``"swap"``; ``"all"`` for one of each in turn; or ``"none"``.
            An operation that cannot be applied, or would leave no mention, is skipped (starter: ``"replace"``; paper:
            ``"all"``).
        donors: for the operation ``"replace"``, as for `mr`: ``"nearest"``, mentions of the shape of the one that is
            replaced and near it in sense; ``"similar"``, all of its shape; or ``"any"`` of its type, as in the paper
            and for the other operations.
        num_new_words: the maximum number of words that the generator writes, of those behind the last mention; none to
            write all, from lists of mentions alone, as in the paper and always by an instruct model.
        dependency_parser: with `num_new_words`, a `DependencyParser`, the name of a spaCy pipeline, or a CoNLL-U file;
            none to do without. ``"auto"`` is the starter parser, where it is prepared and the corpus is English.
        causal_lm: a `CausalLM` or its name; none to do without, and ``"auto"`` as for `dependency_parser`.
        encoder: an `Encoder` for ``donors="nearest"``, or its name.
        margin: by how many nats per word a new end may be less likely than that of its source under `causal_lm`.
        candidates: see `Augmenter`; lists that are drawn for each sentence, of which the best text is kept.
        decoding: ``"sample"`` (starter, with the most diverse texts); ``"diverse_beam_search"``, the beam search of the
            paper with a penalty on ranks; ``"beam_search"``, without this penalty.
        num_beams: the number of texts generated from a list (starter: 1; paper: 3).
        diversity_penalty: the penalty per rank in diverse beam search, gamma in the paper.
        top_k: for sampling, the number of most likely tokens to sample from.
        unlisted_mentions: the treatment of texts with a known mention that is not in the list: ``"drop"`` the text;
            ``"label"`` the mention if it always has the same label in the corpus, and otherwise drop the text; or
            ``"keep"`` the text without this check.
        preset: ``"starter"``: SmolLM2, at most 10 epochs; ``"paper"``: all settings of the paper, among them T5-base, 3
            epochs and diverse beam search (``entaug list methods entda``), unless they are given.

    Example:
        >>> from entaug import Mention
        >>> from helpers.fakes import FakeGenerator  # tests/helpers of entaug
        >>> gold = [
        ...     Sentence("Ada sings loud".split(), [Mention("PER", [(0, 1)])]),
        ...     Sentence("Bo knows Rome".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])]),
        ... ]
        >>> plain = {"num_new_words": None, "donors": "any", "candidates": 1, "guard": False}
        >>> method = EnTDA(operation="replace", generator=FakeGenerator(["sleeps"]), **plain)
        >>> [(" ".join(s.tokens), len(s.mentions)) for s in method.fit(gold).augment(gold[:1])]
        [('PER : Bo sleeps', 1)]
    """

    candidates: PositiveInt = 8
    choice: str | CandidateScorer | None = field(default="likelihood:margin=0.3", metadata=ONLY_IF_SET)
    operation: Literal["all", "add", "delete", "replace", "swap", "none"] = "replace"
    donors: Literal["nearest", "similar", "any"] = "nearest"
    num_new_words: PositiveInt | None = 6
    dependency_parser: DependencyParser | str | None = AUTO
    causal_lm: CausalLM | str | None = AUTO
    margin: NonNegativeFloat = 0.0
    encoder: Encoder | str = "minilm"
    decoding: Literal["diverse_beam_search", "beam_search", "sample"] = "sample"
    num_beams: PositiveInt = 1
    diversity_penalty: NonNegativeFloat = 10.0
    top_k: PositiveInt = 20
    unlisted_mentions: Literal["drop", "label", "keep"] = "drop"
    preset: Literal["starter", "paper"] = "starter"
    encoder_: Encoder = field(init=False, repr=False)
    dependency_parser_: DependencyParser | None = field(init=False, repr=False)
    causal_lm_: CausalLM | None = field(init=False, repr=False)

    presets = read_presets("entda")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="entda",
        long_name="entity-to-text",
        summary="new sentences generated from modified lists of mentions",
        paper="Hu et al. 2023, Entity-to-Text based Data Augmentation for various Named Entity Recognition Tasks",
        keeps_mentions=False,
        needs_fit=True,
        needs_mentions=True,
        writes_words=True,
        wrong_labels=(2, 30),
        needs=("generator",),
        may_need=(*_AUTO_KINDS, "encoder"),
        cost="fine-tuning a generator (minutes per hundred sentences on a CPU), then seconds per sentence",
    )

    def _uses_backend(self, kind: str) -> bool:
        if kind == "encoder":
            return self.operation == "replace" and self.donors == "nearest"
        return kind not in _AUTO_KINDS or (self.num_new_words is not None and getattr(self, kind) not in (None, AUTO))

    def _load(self) -> None:
        super()._load()
        for kind in _AUTO_KINDS:
            if not self._uses_backend(kind):
                setattr(self, f"{kind}_", None)

    def notes(self) -> list[str]:
        return super().notes() + (missing_starters(self, self._language_of_corpus) if self._keeps_beginning else [])

    @property
    def _keeps_beginning(self) -> bool:
        return self.num_new_words is not None and not self._is_prompted

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = sorted(corpus, key=lambda s: s.fingerprint())  # the result does not depend on the order of the corpus
        self._language_of_corpus = LanguageProfile(gold).language
        for kind in _AUTO_KINDS:
            if getattr(self, kind) == AUTO and self._keeps_beginning:
                setattr(self, f"{kind}_", load_starter(kind, self._language_of_corpus))
        lists = [self._list(sentence) for sentence in gold]
        groups = [item.group for of_sentence in lists for item in of_sentence]
        pools: defaultdict[str, dict[MentionGroup, None]] = defaultdict(dict)
        for group in groups:
            pools[group.label][group] = None
        self.pools_ = {label: list(pool) for label, pool in pools.items()}
        self._replacement: MentionReplacement | None = None
        if self.operation == "replace" and self.donors != "any":
            encoder = self.encoder_ if self.donors == "nearest" else self.encoder
            with suppress(InputError):  # no label has two different mentions
                replacement = MentionReplacement(p=_ONE, donors=self.donors, encoder=encoder).load()
                replacement._fit(gold)  # noqa: SLF001
                self._replacement = replacement
        self._known = KnownMentions(gold) if self.unlisted_mentions != "keep" else None
        has_gap = not self._keeps_beginning or any(_GAP in sentence.tokens for sentence in gold)
        self._unwanted = [
            *(self._known.texts() if self._known and self.unlisted_mentions == "drop" else ()),
            *([] if has_gap else [_GAP]),
        ]
        fragments = [fragment for group in groups for fragment in group.fragments]
        self.texts_ = GeneratedTexts(gold, fragments)
        # Sentences are detokenized like the list, because they must contain the mentions of the list.
        sources: dict[tuple[str, str], Sentence] = {}
        for sentence, of_sentence in zip(gold, lists, strict=True):
            # Lists that leave nothing to write teach to stop behind the words of a list.
            if of_sentence and not self._is_whole(of_sentence):
                sources.setdefault((format_mention_list(of_sentence), detokenize(sentence.tokens)), sentence)
        self.pairs_ = pairs = list(sources)
        self._labels = ", ".join(sorted(self.pools_))
        self.trained_ = None
        if pairs and not self._is_prompted:
            self.trained_ = self._train(self.generator_, pairs, pairs, **self._languages(sources.values()))

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        batches = self._share_lists(requests)
        plans = [self._plan(batch[0]) for batch in batches]
        ready = [(batch, plan) for batch, plan in zip(batches, plans, strict=True) if isinstance(plan, TextPlan)]
        texts = iter(self._texts(ready) if ready else ())
        return [
            result
            for batch, plan in zip(batches, plans, strict=True)
            for result in (
                [plan] * len(batch) if isinstance(plan, Rejection) else self._distribute(batch, plan, next(texts))
            )
        ]

    def _plan(self, request: Request) -> TextPlan | Rejection:
        items = self._changed_list(request)
        if not items:
            return NO_CANDIDATE
        if self._is_whole(items):
            return _NOTHING_TO_WRITE
        return TextPlan(
            request.sentence,
            format_mention_list(items),
            request.rng.getrandbits(32),
            required_phrases(items),
            basis=items,
        )

    def _changed_list(self, request: Request) -> list[Listed]:
        if self.operation != "replace" or self.donors == "any":
            return self._change(self._list(request.sentence), request.rng)
        replaced = self._replacement.draft([request._replace(attempt=0)])[0] if self._replacement else NO_CANDIDATE
        return self._list(request.sentence if isinstance(replaced, Rejection) else replaced)

    def _list(self, sentence: Sentence) -> list[Listed]:
        return list_mentions(sentence, None if self._is_prompted else self.num_new_words)

    def _is_whole(self, items: Sequence[Listed]) -> bool:
        """Whether a list has all words of its sentence."""
        return self._keeps_beginning and items[-1].is_last and _listed_words(items) is not None

    def _texts(self, plans: Sequence[tuple[Sequence[Request], TextPlan]]) -> Iterable[Sequence[str | Rejection]]:
        """Return the texts for each list."""
        if not self._is_prompted:
            return self._generate([plan for _, plan in plans]) if self.trained_ else [[] for _ in plans]
        answers = iter(self._ask(self._query(plan, n) for batch, plan in plans for n in range(len(batch))))
        return [[next(answers) for _ in batch] for batch, _ in plans]

    def _decoding(self) -> dict[str, Any]:
        return {
            "strategy": self.decoding,
            "num_beams": self.num_beams,
            "num_return_sequences": self.num_beams,
            "diversity_penalty": float(self.diversity_penalty),
            "top_k": self.top_k,
            "begins_with_required": self._keeps_beginning,
        }

    def _query(self, plan: TextPlan, copy: int = 0) -> Query:
        """Return the query for a copy that shares a list; the sentence itself is never an example."""
        own, rng = detokenize(plan.source.tokens), Random(f"{plan.seed} {copy}")
        others = [pair for pair in self.pairs_ if pair[1] != own]
        shown = rng.sample(others, min(self.num_examples, len(others)))
        turns = [({"mentions": mentions}, text) for mentions, text in shown]
        return Query({"mentions": plan.text, "labels": self._labels}, turns, rng.getrandbits(31))

    def _share_lists(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Group the requests for copies of a sentence that share a list: at most `num_beams` per group."""
        batches: list[list[Request]] = []
        for request in requests:
            last = batches[-1][-1] if batches else None
            # If the corpus repeats a sentence directly, the repetition starts again with the first copy.
            if (
                last is not None
                and last.sentence is request.sentence
                and last.copy < request.copy
                and (last.copy - 1) // self.num_beams == (request.copy - 1) // self.num_beams
            ):
                batches[-1].append(request)
            else:
                batches.append([request])
        return batches

    def _distribute(
        self, batch: Sequence[Request], plan: TextPlan, texts: Sequence[str | Rejection]
    ) -> list[Sentence | Rejection]:
        """Return one result for each request, the accepted ones first."""
        accepted: list[Sentence] = []
        rejected: list[Rejection] = []
        for beam, text in enumerate(texts, start=1):
            result = text if isinstance(text, Rejection) else self._read(plan, text, beam)
            if isinstance(result, Rejection):
                rejected.append(result)
            elif any(token_similarity(result.tokens, other.tokens) >= self.max_similarity for other in accepted):
                rejected.append(_SIMILAR_SIBLING)
            else:
                accepted.append(result)
        results: list[Sentence | Rejection] = [*accepted, *rejected, *[UNFINISHED] * len(batch)]
        return results[: len(batch)]

    def _read(self, plan: TextPlan, text: str, beam: int = 1) -> Sentence | Rejection:
        tokens: Sequence[str] = self.texts_.tokenize(text)
        if not tokens:
            return UNFINISHED
        if self._keeps_beginning and (listed := _listed_words(plan.basis)):
            ended = self._with_good_end(plan.source, tokens, listed)
            if isinstance(ended, Rejection):
                return ended
            tokens = ended
        groups = [item.group for item in plan.basis]
        mentions = match_mentions(tokens, groups, self._known, label=self.unlisted_mentions == "label")
        return self._new_sentence(plan.source, tokens, mentions, [plan.source], list=plan.text, beam=beam)

    def _with_good_end(  # noqa: PLR0911
        self, source: Sentence, tokens: Sequence[str], listed: tuple[str, ...]
    ) -> _Ended:
        """Return a text with its words behind those of the list, or the first of them, if they are a good end."""
        start = len(listed)
        if tuple(tokens[:start]) != listed:
            return _OTHER_BEGINNING
        own = _listed_words(self._list(source))
        if own is None:  # an operation has changed what the list has
            return tokens
        old_end = source.tokens[len(own) :]
        if not (ends := possible_ends(tokens[start:], old_end)):
            return _OTHER_LENGTH
        faults = [self._fault_of_words(listed, end, old_end) for end in ends]
        texts = [(*listed, *end) for end, fault in zip(ends, faults, strict=True) if fault is None]
        if not texts:
            return faults[0] or _SAME_END
        if (parser := self.dependency_parser_) is not None:
            texts = [text for text in texts if ends_well(parser, text, start, source.tokens, len(own))]
            if not texts:
                return _OTHER_STRUCTURE
        if (model := self.causal_lm_) is None:
            return texts[0]
        [minimum] = likelihoods_of_ends(model, [source.tokens], len(own))
        likelihood, best = max(
            zip(likelihoods_of_ends(model, texts, start), texts, strict=True), key=lambda one: one[0]
        )
        return best if likelihood >= minimum - self.margin else _UNLIKELY

    def _fault_of_words(self, listed: Sequence[str], end: Sequence[str], old_end: Sequence[str]) -> Rejection | None:
        """Return why the words of an end are not those of a good one."""
        stop = stop_words(self._language_of_corpus)
        new = [word.lower() for word in _words(end)]
        content = [word for word in new if is_word(word, hyphens=True) and word not in stop]
        if set(content) <= {word.lower() for word in old_end}:
            return _SAME_END
        return _REPEATS if any(is_repeated((*listed, *content[:i]), word) for i, word in enumerate(content)) else None

    def _change(self, items: list[Listed], rng: Random) -> list[Listed]:
        """Apply the operations to a list."""
        if not items:
            return []
        for operation in ("add", "delete", "replace", "swap") if self.operation == "all" else (self.operation,):
            items = apply_operation(operation, items, self.pools_, rng)
        return items


def _words(tokens: Sequence[str]) -> list[str]:
    return [token for token in tokens if any(map(str.isalnum, token))]


def _is_joined(pair: Sequence[str]) -> bool:
    """Whether two tokens are written together, and the second is no mark behind a word."""
    return " " not in detokenize(pair) and bool(_words(pair[1:]) or pair[-1] in _JOINTS)


def possible_ends(end: Sequence[str], old_end: Sequence[str]) -> list[tuple[str, ...]]:
    """Return an end, if it is about as long as the old one, else its first words with the marks of the old one."""
    # A small generator seldom stops in time.
    num_old, num_new = len(_words(old_end)), len(_words(end))
    if num_new <= num_old + _MAX_LONGER:
        return [tuple(end)] if num_new >= _MIN_NEW else []
    marks = old_end[max(i for i, token in enumerate(old_end, start=1) if _words([token])) :]
    sizes = [i for i, token in enumerate(end, start=1) if _words([token])][_MIN_NEW - 1 : num_old + _MAX_LONGER]
    sizes = [size for size in sizes if not _is_joined(end[size - 1 : size + 1])]
    return [(*end[:size], *marks) for size in sorted(sizes, key=lambda size: abs(size - len(old_end)))]


def likelihoods_of_ends(model: CausalLM, texts: Sequence[Sequence[str]], start: int) -> list[float]:
    """Return the log-likelihood of the end of each text for each of its words, given the beginning that they share."""
    # An end must be one: where texts have no mark behind it, one is added.
    ended = [detokenize(text if has_sentence_end(text) else (*text, ".")) for text in texts]
    beginning, *whole = (
        float(values.sum()) for values in variant_log_probs([detokenize(texts[0][:start]), *ended], model)
    )
    return [
        round((value - beginning) / count_words(text[start:]), _DIGITS)
        for value, text in zip(whole, texts, strict=True)
    ]


def list_mentions(sentence: Sentence, num_new_words: int | None = None) -> list[Listed]:
    """List the mentions of a sentence, each with the words before it, the last with those after it but the last few."""
    grouped = grouped_mentions(sentence)
    if not num_new_words:
        return [Listed(group) for group, _ in grouped]
    outside, tokens, size = list(sentence.outside_mask()), sentence.tokens, len(sentence)
    items: list[Listed] = []
    last = 0  # the end of what is listed
    for number, (group, positions) in enumerate(grouped, start=1):
        start, end = positions[0], positions[-1] + 1
        before, after = start, end
        if len(group.fragments) == 1:
            while before > last and outside[before - 1]:
                before -= 1
            if number == len(grouped):
                after = _start_of_end(tokens, end, num_new_words)
        follows = bool(items) and before == last
        items.append(Listed(group, tokens[before:start], tokens[end:after], not before, after == size, follows))
        last = max(last, after)
    return items


def _start_of_end(tokens: Sequence[str], start: int, num_words: int) -> int:
    """Return where the last words begin: half of those from a position on, but at least two, and no more than asked."""
    words = [i for i in range(start, len(tokens)) if any(map(str.isalnum, tokens[i]))]
    if len(words) < _MIN_NEW:
        return len(tokens)
    first = words[-min(num_words, max(_MIN_NEW, len(words) // 2))]
    while first > start and _is_joined(tokens[first - 1 : first + 1]):
        first -= 1
    return first


def _listed_words(items: Sequence[Listed]) -> tuple[str, ...] | None:
    """Return the words of a list if they are the beginning of a text, without gaps."""
    if any(len(item.group.fragments) > 1 for item in items):
        return None
    if not (items[0].is_first and all(item.follows for item in items[1:])):
        return None
    return tuple(chain.from_iterable((*item.before, *item.group.fragments[0], *item.after) for item in items))


def apply_operation(
    operation: str, items: list[Listed], pools: dict[str, list[MentionGroup]], rng: Random
) -> list[Listed]:
    """Apply one operation to a list of mentions (section 4.1 of the paper)."""
    # The words beside a mention keep their place.
    new, groups = list(items), [item.group for item in items]
    i = rng.randrange(len(items))
    if operation in ("add", "replace"):
        others = [group for group in pools.get(groups[i].label, ()) if group not in groups]
        if others:
            other = others[rng.randrange(len(others))]
            new[i:] = [*items[i:], Listed(other)] if operation == "add" else [_put(items[i], other), *items[i + 1 :]]
    elif operation == "delete" and len(items) > 1:
        new[i : i + 2] = [item._replace(follows=False) for item in items[i + 1 : i + 2]]
    elif operation == "swap" and len(items) > 1:
        j = (i + 1 + rng.randrange(len(items) - 1)) % len(items)
        # Words beside a mention rarely fit one of another type.
        if groups[i].label == groups[j].label or not any(items[n].before or items[n].after for n in (i, j)):
            new[i], new[j] = _put(items[i], groups[j]), _put(items[j], groups[i])
    return new


def _put(item: Listed, group: MentionGroup) -> Listed:
    return item._replace(group=group)


def format_mention_list(items: Sequence[Listed]) -> str:
    """Format a list of mentions with their types, and the words beside them, as the generator reads it."""
    parts: list[str] = []
    for item in items:
        parts += [_GAP] if not item.follows and (parts or not item.is_first) else []
        mentions = (
            f"{label}: {' ... '.join(map(detokenize, item.group.mention_parts(index)))}"
            for index, (label, _) in enumerate(item.group.mentions)
        )
        parts += [detokenize(item.before), " & ".join(mentions), detokenize(item.after)]
    return " ".join(filter(None, [*parts, *([] if items[-1].is_last else [_GAP])]))


def required_phrases(items: Sequence[Listed]) -> list[list[str]]:
    """Return the phrases that a text must have: those with words beside mentions in their order."""
    in_order: list[list[str]] = []
    others: list[list[str]] = []
    for item in items:
        if not (item.before or item.after or item.follows):
            others.append(list(map(detokenize, item.group.fragments)))
            continue
        words = [*item.before, *chain.from_iterable(item.group.fragments), *item.after]
        if item.follows and in_order:
            in_order[-1] += words
        else:
            in_order.append(words)
    return [*([list(map(detokenize, in_order))] if in_order else []), *others]
