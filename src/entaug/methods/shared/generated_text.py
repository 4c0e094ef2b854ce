"""Generated text: sentences as text for a generator, and sentences of the texts that it writes.

Linearized sentences have label tokens. Wrapped text has one before and after each token of a mention (MELM, Zhou et al.
2022; ACLM, Ghosh et al. 2023), tagged text only before it (DAGA, Ding et al. 2020; MulDA, Liu et al. 2021). Both
represent flat mentions only.

Text without label tokens is matched with the mentions that it was generated from ("EnTDA: Entity-to-Text based Data
Augmentation", Hu et al. 2023, section 4.3): mentions are found by exact match; overlapping mentions are matched
together; the parts of a discontinuous mention are matched in order. In cases that the paper does not specify, no label
is guessed: tokens are matched, each occurrence is used once, and ambiguous texts are rejected.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from entaug.core import tags
from entaug.core.alignment import CorpusTokenizer, detokenize
from entaug.core.data import Provenance, Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Mention, Span
from entaug.core.phrases import known_mentions
from entaug.core.spacing import WIDE, infer_spaces
from entaug.errors import TagError

INVALID_LABELS = "inconsistent label tokens"
_PREFIX_WORDS = {"B": "begin", "I": "inside"}  # words that, with the label, initialise the embedding of a label token


def label_token(tag: str) -> str:
    """Return the label token of a tag."""
    return f"<{tag}>"


def label_tokens(labels: Iterable[str]) -> dict[str, str]:
    """Return the label tokens of some labels, each with the words from which its embedding is initialised."""
    return {
        label_token(f"{prefix}-{label}"): f"{word} {re.sub('[-_/ ]+', ' ', label)}"
        for label in sorted(set(labels))
        for prefix, word in _PREFIX_WORDS.items()
    }


def unwanted_labels(gold: Iterable[Sentence], label_texts: Mapping[str, str]) -> list[str]:
    """Return what a generator must not write where label tokens are not allowed."""
    # It may else write the words from which their embeddings were initialised.
    words = {token.lower() for s in gold for token, out in zip(s.tokens, s.outside_mask(), strict=True) if out}
    return [*sorted(label_texts), *sorted({word for text in label_texts.values() for word in text.split()} - words)]


def wrap_tokens(sentence: Sentence) -> list[list[str]]:
    """Wrap the tokens of mentions in label tokens."""
    return [[*parts, *parts[:-1]] for parts in tag_tokens(sentence)]


def tag_tokens(sentence: Sentence, scheme: str = "IOB2") -> list[list[str]]:
    """Put a label token before each token of a mention."""
    pairs = zip(sentence.tokens, sentence.iob(scheme), strict=True)
    return [[token] if tag == "O" else [label_token(tag), token] for token, tag in pairs]


def join_parts(parts: Iterable[str], markers: Collection[str]) -> str:
    """Join tokens and markers to running text."""
    runs = groupby(parts, key=lambda part: part in markers)
    return " ".join(text for is_marker, run in runs for text in (run if is_marker else [detokenize(list(run))]))


def split_at_labels(text: str, labels: Collection[str]) -> list[str]:
    """Split a text before and after each label token."""
    parts = re.split("(" + "|".join(map(re.escape, labels)) + ")", text)
    return [part for part in parts if part.strip()]


def parse_wrapped(
    text: str, labels: Iterable[str], tokenize: Callable[[str], Sequence[str]], unsplit: Collection[str] = ()
) -> tuple[tuple[str, ...], tuple[Mention, ...]] | None:
    """Parse text with a label token before and after each token of a mention."""
    known = label_tokens(labels)
    parts = split_at_labels(text, known)
    tokens: list[str] = []
    tag_sequence: list[str] = []
    i = 0
    while i < len(parts):
        part = parts[i]
        if part not in known:
            new = tokenize(part)
            tokens += new
            tag_sequence += ["O"] * len(new)
            i += 1
            continue
        inner: list[str] = []
        if i + 2 < len(parts) and parts[i + 1] not in known:
            word = parts[i + 1].strip()
            inner = [word] if word in unsplit else word.split()
        if len(inner) != 1 or parts[i + 2] != part:
            return None
        tokens += inner
        tag_sequence.append(part[1:-1])
        i += 3
    return _decode(tokens, tag_sequence)


def label_transitions(labels: Iterable[str]) -> dict[str, tuple[str, ...] | None]:
    """Return the allowed transitions between label tokens in tagged text."""
    transitions: dict[str, tuple[str, ...] | None] = {}
    for label in sorted(set(labels)):
        begin, inside = label_token(f"B-{label}"), label_token(f"I-{label}")
        transitions |= {begin: None, inside: (begin, inside)}
    return transitions


def parse_tagged(
    parts: Sequence[str], labels: Collection[str], scheme: str = "IOB2"
) -> tuple[tuple[str, ...], tuple[Mention, ...]] | None:
    """Parse text with a label token before each token of a mention."""
    tokens: list[str] = []
    tag_sequence: list[str] = []
    tag = "O"
    for part in parts:
        if part not in labels:
            tokens.append(part)
            tag_sequence.append(tag)
            tag = "O"
        elif tag != "O":
            return None
        else:
            tag = part[1:-1]
    return _decode(tokens, tag_sequence, scheme) if tag == "O" else None


def _decode(
    tokens: Sequence[str], tag_sequence: Sequence[str], scheme: str = "IOB2"
) -> tuple[tuple[str, ...], tuple[Mention, ...]] | None:
    try:
        return tuple(tokens), tags.decode(tag_sequence, scheme)
    except TagError:
        return None


MISSING = "a listed mention is missing"
AMBIGUOUS = "the match of a listed mention is ambiguous"
UNLISTED = "a known mention that is not in the list"

_SENTENCE_ENDS = frozenset(".!?…。！？؟।")  # noqa: RUF001
_CLOSING = frozenset("\"'”’»)]}")  # noqa: RUF001


class MentionGroup(NamedTuple):
    """Mentions that overlap each other, or a single one."""

    fragments: tuple[tuple[str, ...], ...]
    mentions: tuple[tuple[str, tuple[Span, ...]], ...]

    @property
    def label(self) -> str:
        """The label of the mention that covers most tokens; the first of several."""
        return max(self.mentions, key=lambda mention: sum(end - start for start, end in mention[1]))[0]

    def mention_parts(self, index: int) -> tuple[tuple[str, ...], ...]:
        """Return the tokens of each part of a mention."""
        tokens = [token for fragment in self.fragments for token in fragment]
        return tuple(tuple(tokens[start:end]) for start, end in self.mentions[index][1])


def group_mentions(sentence: Sentence) -> list[MentionGroup]:
    """Group the mentions of a sentence so that overlapping ones are together."""
    return [group for group, _ in grouped_mentions(sentence)]


def grouped_mentions(sentence: Sentence) -> list[tuple[MentionGroup, list[int]]]:
    """Group the mentions of a sentence so that overlapping ones are together; with the positions of each group."""
    groups: list[tuple[set[int], list[Mention]]] = []
    for mention in sentence.mentions:
        covered, members = set(mention.positions()), [mention]
        disjoint = []
        for group in groups:
            if group[0].isdisjoint(covered):
                disjoint.append(group)
            else:
                covered |= group[0]
                members = [*group[1], *members]
        groups = [*disjoint, (covered, members)]
    in_order = [(sorted(covered), members) for covered, members in sorted(groups, key=lambda g: min(g[0]))]
    return [(_group(sentence, covered, members), covered) for covered, members in in_order]


def _group(sentence: Sentence, covered: list[int], members: list[Mention]) -> MentionGroup:
    offsets = {position: i for i, position in enumerate(covered)}
    # Neighbouring positions have the same difference to their offsets.
    runs = groupby(covered, key=lambda position: position - offsets[position])
    fragments = tuple(tuple(sentence.tokens[position] for position in run) for _, run in runs)
    mentions = [(m.label, tuple((offsets[start], offsets[end - 1] + 1) for start, end in m.spans)) for m in members]
    return MentionGroup(fragments, tuple(sorted(mentions, key=lambda m: (m[1][0][0], -m[1][-1][1], m[0]))))


class KnownMentions:
    """The mentions of a corpus, which must not occur without a label in generated text."""

    # At the beginning of a sentence a word may be capitalised.

    def __init__(self, corpus: Iterable[Sentence]) -> None:
        gold = list(corpus)
        self._labels: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for sentence in gold:
            for mention in sentence.mentions:
                if mention.is_contiguous:
                    self._labels[sentence.mention_tokens(mention)].add(mention.label)
        self._phrases = known_mentions(gold)

    def label(self, tokens: tuple[str, ...]) -> str | None:
        """Return the label of a mention."""
        labels = self._labels.get(tokens) or self._labels.get(_uncapitalised(tokens), set())
        return next(iter(labels)) if len(labels) == 1 else None

    def texts(self) -> list[str]:
        """Return all mentions as running text."""
        texts = {detokenize(tokens) for tokens in self._phrases}
        return sorted(texts | {text[:1].upper() + text[1:] for text in texts})

    def find(self, tokens: Sequence[str]) -> Iterator[Span]:
        """Find all occurrences in a text, overlapping ones included."""
        for start in range(len(tokens)):
            texts = [tokens]
            if not start or _SENTENCE_ENDS.issuperset(tokens[start - 1]):
                texts.append((*tokens[:start], *_uncapitalised(tokens[start:])))
            for end in sorted({end for text in texts for end in self._phrases.ends(text, start)}):
                yield start, end


def _uncapitalised(tokens: Sequence[str]) -> tuple[str, ...]:
    return (tokens[0][:1].lower() + tokens[0][1:], *tokens[1:])


def match_mentions(
    tokens: Sequence[str], listed: Sequence[MentionGroup], known: KnownMentions | None = None, *, label: bool = False
) -> list[Mention] | str:
    """Find the listed mentions in a text that was generated from them."""
    # At the beginning of a sentence a word may be capitalised.
    for group in listed:
        if len({other.mentions for other in listed if other.fragments == group.fragments}) > 1:
            return AMBIGUOUS  # the same words with different mentions
    used: set[int] = set()
    matches: list[list[int]] = [[] for _ in listed]
    # The longest first, so that no part of it is used for another mention; ties in the order of the list.
    for i in sorted(range(len(listed)), key=lambda i: (-sum(map(len, listed[i].fragments)), i)):
        positions = _first_occurrence(tokens, listed[i].fragments, used)
        if positions is None:
            return MISSING
        matches[i] = positions
        used.update(positions)
    if not _is_unambiguous(tokens, listed, matches):
        return AMBIGUOUS
    unlisted = _label_unlisted(tokens, matches, used, known, label=label) if known else []
    if unlisted is None:
        return UNLISTED
    return unlisted + [
        Mention(name, [(positions[a], positions[b - 1] + 1) for a, b in spans])
        for group, positions in zip(listed, matches, strict=True)
        for name, spans in group.mentions
    ]


def _label_unlisted(
    tokens: Sequence[str], matches: Sequence[list[int]], used: set[int], known: KnownMentions, *, label: bool
) -> list[Mention] | None:
    """Label known mentions that are not listed, the longest first; return None if one must not be labelled."""
    covered = [set(positions) for positions in matches]
    mentions: list[Mention] = []
    for start, end in sorted(known.find(tokens), key=lambda span: (span[0] - span[1], span[0])):
        positions = range(start, end)
        if any(other.issuperset(positions) for other in covered):
            continue
        name = known.label(tuple(tokens[start:end])) if label else None
        if name is None or not used.isdisjoint(positions):
            return None
        mentions.append(Mention(name, ((start, end),)))
        covered.append(set(positions))
        used.update(positions)
    return mentions


def _is_unambiguous(tokens: Sequence[str], listed: Sequence[MentionGroup], matches: Sequence[list[int]]) -> bool:
    """Whether no listed fragment occurs outside its match, except inside a longer match."""
    own: set[tuple[tuple[str, ...], int]] = set()
    ranges: list[range] = []
    for group, positions in zip(listed, matches, strict=True):
        offset = 0
        for fragment in group.fragments:
            start = positions[offset]
            own.add((fragment, start))
            ranges.append(range(start, start + len(fragment)))
            offset += len(fragment)
    fragments = {fragment for group in listed for fragment in group.fragments}
    for fragment in fragments:
        # For example "pain" of the discontinuous mentions "arm ... pain" and "leg ... pain" is ambiguous.
        holders = {group.fragments for group in listed if fragment in group.fragments}
        if len(holders) > 1 and any(len(parts) > 1 for parts in holders):
            return False
        for start in _starts(tokens, fragment):
            end = start + len(fragment)
            inside = any(r.start <= start and end <= r.stop and len(r) > len(fragment) for r in ranges)
            other = tuple(tokens[start:end]) != fragment and tuple(tokens[start:end]) in fragments
            if not inside and (other or (fragment, start) not in own):
                return False
    return True


def _first_occurrence(tokens: Sequence[str], fragments: Sequence[tuple[str, ...]], used: set[int]) -> list[int] | None:
    """Return the positions of the first occurrence of fragments in order, without used tokens."""
    positions: list[int] = []
    for fragment in fragments:
        minimum = positions[-1] + 1 if positions else 0
        for start in _starts(tokens, fragment):
            if start >= minimum and used.isdisjoint(range(start, start + len(fragment))):
                positions += range(start, start + len(fragment))
                break
        else:
            return None
    return positions


def _starts(tokens: Sequence[str], fragment: tuple[str, ...]) -> Iterator[int]:
    """Yield the positions of a fragment; at the beginning of a sentence it may be capitalised."""
    capitalised = fragment[0][:1].upper() + fragment[0][1:]
    for start in range(len(tokens) - len(fragment) + 1):
        if tuple(tokens[start + 1 : start + len(fragment)]) == fragment[1:] and (
            tokens[start] == fragment[0]
            or (tokens[start] == capitalised and (not start or _SENTENCE_ENDS.issuperset(tokens[start - 1])))
        ):
            yield start


class GeneratedTexts:
    """Tokenizes generated texts like the corpus, and checks them."""

    def __init__(
        self, gold: Sequence[Sentence], mention_tokens: Iterable[tuple[str, ...]], known: KnownMentions | None = None
    ) -> None:
        self._tokenizer = CorpusTokenizer(sentence.tokens for sentence in gold)
        self._contents = {detokenize(sentence.tokens) for sentence in gold}
        self.known = known
        corrections: dict[str, dict[tuple[tuple[str, ...], tuple[str, ...]], None]] = {}
        for tokens in dict.fromkeys(mention_tokens):
            text = detokenize(tokens)
            # How a mention is split depends on its context.
            for before, after, num_after in (("", "", 0), ("so ", " so", 1), ("so ", ", so", 2)):
                split = tuple(self._tokenizer(f"{before}{text}{after}"))
                split = split[bool(before) : len(split) - num_after]
                if split != tokens and split:
                    corrections.setdefault(split[0], {})[split, tokens] = None
        self._corrections = {
            first: sorted(pairs, key=lambda pair: -len(pair[0])) for first, pairs in corrections.items()
        }

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Split a text into tokens."""
        split = self._tokenizer(text)
        tokens: list[str] = []
        i = 0
        while i < len(split):
            for wrong, right in self._corrections.get(split[i], ()):
                if tuple(split[i : i + len(wrong)]) == wrong:
                    tokens += right
                    i += len(wrong)
                    break
            else:
                tokens.append(split[i])
                i += 1
        return tuple(tokens)

    def is_copy(self, tokens: Sequence[str]) -> bool:
        """Return whether a text is equal to a training sentence."""
        return detokenize(tokens) in self._contents

    def has_unlisted_mention(self, tokens: Sequence[str], mentions: Sequence[Mention]) -> bool:
        """Return whether a known mention of the corpus has no label in a text."""
        labelled = [range(mention.start, mention.end) for mention in mentions]
        found = self.known.find(tokens) if self.known else ()
        return any(not any(start in span and end <= span.stop for span in labelled) for start, end in found)


def token_similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the share of tokens that two texts have in common, in the same order."""
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def has_sentence_end(tokens: Sequence[str]) -> bool:
    """Return whether a text ends with a mark that ends sentences, and quotation marks or brackets after it."""
    last = next((token for token in reversed(tokens) if not _CLOSING.issuperset(token)), "")
    return bool(last) and _SENTENCE_ENDS.issuperset(last)


def replace_tokens(
    source: Sentence, tokens: Sequence[str], mentions: Sequence[Mention], sources: tuple[str, ...] = (), **details: Any
) -> Sentence:
    """Replace all tokens and mentions of a sentence."""
    spaces = None
    if source.spaces is not None:
        pairs = zip(pairwise(tokens), infer_spaces(tokens), strict=False)
        # Known white space of a script without spaces shows none between words either.
        spaces = tuple("" if WIDE.match(a[-1]) and WIDE.match(b[0]) else space for (a, b), space in pairs)
    new = source.edit([Edit(0, len(source), tuple(tokens), tuple(mentions), spaces)])
    return new.with_(provenance=Provenance(sources=sources, details=details))


def distinct_sentences(corpus: Iterable[Sentence], group: Callable[[Sentence], str] = lambda _: "") -> list[Sentence]:
    """Return the distinct sentences of a corpus, in an order that does not depend on the order of the corpus."""
    in_order = sorted(corpus, key=lambda s: (s.fingerprint(), group(s), s.id or "", s.spaces or ()))
    return list({(s.fingerprint(), group(s)): s for s in in_order}.values())
