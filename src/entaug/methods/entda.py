"""EnTDA: new sentences generated from lists of mentions (Hu et al., Findings of ACL 2023)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple

from entaug.config.params import NonNegativeFloat, NonNegativeInt, PositiveInt
from entaug.config.presets import read_presets
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.methods.base import NO_CANDIDATE, MethodInfo, Rejection, Request
from entaug.methods.shared.generated_text import (
    GeneratedTexts,
    KnownMentions,
    MentionGroup,
    grouped_mentions,
    match_mentions,
    token_similarity,
)
from entaug.methods.shared.generative import UNFINISHED, GenerativeAugmenter, PromptedAugmenter, Query, TextPlan

_BREAK = "|"  # in a list: words that are not given
_SIMILAR_SIBLING = Rejection("too similar to another text from the same list")


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

    By default a list also has the words before each mention and some after it: the new sentence begins as its source
    does, with another mention, and the generator writes how it goes on. Read blind, 17 of 30 of these were good; with
    mentions alone, as in the paper, 9 of 30 with its operations and 15 with unchanged lists. A list that has all words
    of its sentence leaves nothing to be generated.

    An instruct model (a server or a GGUF file) is not trained: it is asked by a prompt with lists and sentences of the
    corpus as examples, and its texts are checked in the same way.

    Sentences without mentions are not augmented. Up to `num_beams` copies of a sentence share a list, and each takes
    one of the texts generated from it; rejected texts are generated again from another list.

    Args:
        operation: ``"add"``, ``"delete"``, ``"replace"``, ``"swap"``; ``"all"`` for one of each in turn; or ``"none"``.
            An operation that cannot be applied, or would leave no mention, is skipped (starter: ``"replace"``; paper:
            ``"all"``).
        context_size: the number of words after each mention that are kept in the list and in the text, besides those
            before it; 0 for lists of mentions alone, as in the paper. An instruct model has these always.
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
        >>> plain = {"context_size": 0, "candidates": 1, "guard": False}
        >>> method = EnTDA(operation="replace", generator=FakeGenerator(["sleeps"]), **plain)
        >>> [(" ".join(s.tokens), len(s.mentions)) for s in method.fit(gold).augment(gold[:1])]
        [('PER : Bo sleeps', 1)]
    """

    candidates: PositiveInt = 4
    operation: Literal["all", "add", "delete", "replace", "swap", "none"] = "replace"
    context_size: NonNegativeInt = 3
    decoding: Literal["diverse_beam_search", "beam_search", "sample"] = "sample"
    num_beams: PositiveInt = 1
    diversity_penalty: NonNegativeFloat = 10.0
    top_k: PositiveInt = 20
    unlisted_mentions: Literal["drop", "label", "keep"] = "drop"
    preset: Literal["starter", "paper"] = "starter"

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
        cost="fine-tuning a generator (minutes per hundred sentences on a CPU), then seconds per sentence",
    )

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = sorted(corpus, key=lambda s: s.fingerprint())  # the result does not depend on the order of the corpus
        lists = [self._list(sentence) for sentence in gold]
        groups = [item.group for of_sentence in lists for item in of_sentence]
        pools: defaultdict[str, dict[MentionGroup, None]] = defaultdict(dict)
        for group in groups:
            pools[group.label][group] = None
        self.pools_ = {label: list(pool) for label, pool in pools.items()}
        self._known = KnownMentions(gold) if self.unlisted_mentions != "keep" else None
        unwanted = self._known.texts() if self._known and self.unlisted_mentions == "drop" else []
        # A small generator copies the mark that stands for words in the list.
        if self.context_size and not any(_BREAK in token for sentence in gold for token in sentence.tokens):
            unwanted = [*unwanted, _BREAK]
        self._unwanted = unwanted
        fragments = [fragment for group in groups for fragment in group.fragments]
        self.texts_ = GeneratedTexts(gold, fragments)
        # Sentences are detokenized like the list, because they must contain the mentions of the list.
        sources: dict[tuple[str, str], Sentence] = {}
        for sentence, of_sentence in zip(gold, lists, strict=True):
            if of_sentence:
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
        items = self._change(self._list(request.sentence), request.rng)
        if not items:
            return NO_CANDIDATE
        return TextPlan(
            request.sentence,
            format_mention_list(items),
            request.rng.getrandbits(32),
            required_phrases(items),
            basis=items,
        )

    def _list(self, sentence: Sentence) -> list[Listed]:
        return list_mentions(sentence, 0 if self._is_prompted else self.context_size)

    def _texts(self, plans: Sequence[tuple[Sequence[Request], TextPlan]]) -> Iterable[Sequence[str | Rejection]]:
        """Return the texts for each list."""
        if not self._is_prompted:
            return self._generate_open([plan for _, plan in plans]) if self.trained_ else [[] for _ in plans]
        answers = iter(self._ask(self._query(plan, n) for batch, plan in plans for n in range(len(batch))))
        return [[next(answers) for _ in batch] for batch, _ in plans]

    def _generate_open(self, plans: Sequence[TextPlan]) -> list[Sequence[str]]:
        """Generate texts for each list; one that has all words of its sentence is its only text."""
        is_given = [self._is_given(plan) for plan in plans]
        texts = iter(self._generate([plan for plan, given in zip(plans, is_given, strict=True) if not given]))
        return [
            [str(plan.required[0][0])] if given else next(texts) for plan, given in zip(plans, is_given, strict=True)
        ]

    def _is_given(self, plan: TextPlan) -> bool:
        is_alone = self.constrained and self.context_size > 0 and self.num_beams == 1
        return is_alone and is_whole(self._list(plan.source)) and is_whole(plan.basis)

    def _decoding(self) -> dict[str, Any]:
        return {
            "strategy": self.decoding,
            "num_beams": self.num_beams,
            "num_return_sequences": self.num_beams,
            "diversity_penalty": float(self.diversity_penalty),
            "top_k": self.top_k,
            "begins_with_required": self.context_size > 0,
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
        tokens = self.texts_.tokenize(text)
        if not tokens:
            return UNFINISHED
        listed = [item.group for item in plan.basis]
        mentions = match_mentions(tokens, listed, self._known, label=self.unlisted_mentions == "label")
        return self._new_sentence(plan.source, tokens, mentions, [plan.source], list=plan.text, beam=beam)

    def _change(self, items: list[Listed], rng: Random) -> list[Listed]:
        """Apply the operations to a list."""
        if not items:
            return []
        for operation in ("add", "delete", "replace", "swap") if self.operation == "all" else (self.operation,):
            items = apply_operation(operation, items, self.pools_, rng)
        return items


def list_mentions(sentence: Sentence, context_size: int = 0) -> list[Listed]:
    """List the mentions of a sentence, each with the words before it, back to the last one, and some after it."""
    grouped = grouped_mentions(sentence)
    if not context_size:
        return [Listed(group) for group, _ in grouped]
    outside, tokens, size = list(sentence.outside_mask()), sentence.tokens, len(sentence)
    items: list[Listed] = []
    last = 0  # the end of what is listed
    for group, positions in grouped:
        start, end = positions[0], positions[-1] + 1
        before, after = start, end
        if len(group.fragments) == 1:
            while before > last and outside[before - 1]:
                before -= 1
            while after < min(size, end + context_size) and outside[after]:
                after += 1
        follows = bool(items) and before == last
        items.append(Listed(group, tokens[before:start], tokens[end:after], not before, after == size, follows))
        last = max(last, after)
    return items


def is_whole(items: Sequence[Listed]) -> bool:
    """Whether a list has all words of its sentence."""
    is_unbroken = all(item.follows for item in items[1:]) and all(len(item.group.fragments) == 1 for item in items)
    return items[0].is_first and items[-1].is_last and is_unbroken


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
        parts += [_BREAK] if not item.follows and (parts or not item.is_first) else []
        mentions = (
            f"{label}: {' ... '.join(map(detokenize, item.group.mention_parts(index)))}"
            for index, (label, _) in enumerate(item.group.mentions)
        )
        parts += [detokenize(item.before), " & ".join(mentions), detokenize(item.after)]
    return " ".join(filter(None, [*parts, *([] if items[-1].is_last else [_BREAK])]))


def required_phrases(items: Sequence[Listed]) -> list[list[str]]:
    """Return the phrases that a text must have: those with words beside mentions in their order."""
    in_order: list[list[str]] = []
    others: list[list[str]] = []
    for item, is_followed in zip(items, [*(other.follows for other in items[1:]), False], strict=True):
        if not (item.before or item.after or item.follows or is_followed):
            others.append(list(map(detokenize, item.group.fragments)))
            continue
        runs = [list(fragment) for fragment in item.group.fragments]
        runs[0][:0], runs[-1][len(runs[-1]) :] = item.before, item.after
        if item.follows and in_order:
            in_order[-1] += runs.pop(0)
        in_order += runs
    return [*([list(map(detokenize, in_order))] if in_order else []), *others]
