"""The values that everything else passes around, and the two operations that may rewrite a sentence.

Spans are half-open token ranges ``[start, end)``. A mention with one span is contiguous, with several
discontinuous; nested mentions are just several mentions over the same tokens. All values are immutable and
validated when they are made, so a `Sentence` that exists is a valid one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple, overload

from entaug.errors import EditError, InputError

__all__ = ["FILL", "Corpus", "CorpusStream", "Edit", "Keys", "Mention", "Sentence", "Span"]

Span = tuple[int, int]
FILL = "_"
"""What other columns hold for a token that an edit brought in."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_set = object.__setattr__


@dataclass(frozen=True, slots=True, init=False)
class Mention:
    """One annotated entity: a label and the tokens that carry it.

    Args:
        label: the entity type, for example ``"PER"``.
        spans: half-open token ranges in increasing order; touching ranges are joined.

    Raises:
        InputError: a span is reversed, empty, negative, out of order, or the label is empty.

    Example:
        >>> Mention("LOC", [(0, 1), (3, 4)]).contiguous
        False
    """

    label: str
    spans: tuple[Span, ...]

    def __init__(self, label: str, spans: Iterable[Iterable[int]]) -> None:
        if not isinstance(label, str) or not label:
            raise InputError(f"a mention's label must be a non-empty string, not {label!r}")
        # The usual case, already canonical, must stay cheap: this runs for every mention of every sentence.
        if not (type(spans) is tuple and len(spans) == 1 and _is_span(spans[0])):
            spans = _canonical(spans)
        _set(self, "label", label)
        _set(self, "spans", spans)

    @property
    def start(self) -> int:
        """The first token of the mention."""
        return self.spans[0][0]

    @property
    def end(self) -> int:
        """One past the last token of the mention (gaps are not skipped)."""
        return self.spans[-1][1]

    @property
    def contiguous(self) -> bool:
        """Whether the mention has no gap."""
        return len(self.spans) == 1

    def positions(self) -> tuple[int, ...]:
        """The token positions of the mention, in order, gaps left out."""
        return tuple(i for start, end in self.spans for i in range(start, end))

    def shifted(self, by: int) -> Mention:
        """The same mention `by` tokens further right (left when negative)."""
        return Mention(self.label, tuple((start + by, end + by) for start, end in self.spans))


def _is_span(span: object) -> bool:
    if type(span) is not tuple or len(span) != 2:
        return False
    start, end = span
    return type(start) is int and type(end) is int and 0 <= start < end


def _canonical(spans: Iterable[Iterable[int]]) -> tuple[Span, ...]:
    joined: list[Span] = []
    for span in spans:
        try:
            start, end = span
        except (TypeError, ValueError):
            raise InputError(f"a span must be a pair (start, end), not {span!r}") from None
        if type(start) is not int or type(end) is not int:
            raise InputError(f"a span must hold two whole numbers, not ({start!r}, {end!r})")
        if start < 0 or start >= end:
            raise InputError(f"span ({start}, {end}) is reversed, empty or negative")
        if joined and start < joined[-1][1]:
            raise InputError(f"span ({start}, {end}) overlaps or comes before {joined[-1]}")
        if joined and start == joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    if not joined:
        raise InputError("a mention needs at least one span")
    return tuple(joined)


class Edit(NamedTuple):
    """Replace tokens ``[start, end)`` by `tokens`; see `Sentence.edit` for what happens to mentions.

    Args:
        start: the first token replaced.
        end: one past the last; equal to `start` for an insertion before `start`.
        tokens: the new tokens; empty for a deletion.
        mentions: mentions that the new tokens bring along, with spans counted from the first new token.
            ``None`` (the default) means that the edit says nothing about mentions.
        spaces: the white space after each new token but the last, for sentences that know theirs; by default that of
            the tokens replaced where these are as many and of a kind, else as in print. The last keeps what stood after
            what it replaces, unless it is of another kind.
    """

    start: int
    end: int
    tokens: Sequence[str]
    mentions: Sequence[Mention] | None = None
    spaces: Sequence[str] | None = None


def _place(mention: Mention) -> tuple[tuple[Span, ...], str]:
    return mention.spans, mention.label


def _settled(mentions: Iterable[Mention], n: int) -> tuple[Mention, ...]:
    """Mentions in canonical order, checked against the number of tokens."""
    settled = tuple(sorted(mentions, key=_place))
    previous = None
    for mention in settled:
        if mention.spans[-1][1] > n:
            raise InputError(f"span {mention.spans[-1]} of {mention.label} is out of range: {n} tokens")
        if mention == previous:
            raise InputError(f"mention {mention.label} {list(mention.spans)} is given twice")
        previous = mention
    return settled


@dataclass(frozen=True, slots=True, init=False)
class Sentence:
    """A tokenised sentence with its mentions.

    Args:
        tokens: one or more non-empty strings. A token may hold any character, spaces included; formats refuse
            what they cannot write.
        mentions: in any order; kept in canonical order (by spans, then label).
        id: the sentence's own name in its corpus, if it has one.
        meta: anything else that belongs to the sentence and survives writing as JSON: fields of the source file,
            and under ``"entaug"`` the provenance of an augmented sentence. Not to be changed in place.
        columns: further values per token, by column name (part of speech, offsets ...).
        spaces: the white space after each token where the source has character offsets, else None.

    Raises:
        InputError: no tokens, an empty token, a span out of range, a mention twice, a column of wrong length.

    Example:
        >>> s = Sentence(["Ada", "lives", "in", "Rome"], [Mention("LOC", [(3, 4)]), Mention("PER", [(0, 1)])])
        >>> [s.words(m) for m in s.mentions]
        [('Ada',), ('Rome',)]
        >>> s.edit([Edit(3, 4, ["New", "York"], [Mention("LOC", [(0, 2)])])]).iob()
        ['B-PER', 'O', 'O', 'B-LOC', 'I-LOC']
    """

    tokens: tuple[str, ...]
    mentions: tuple[Mention, ...]
    id: str | None
    meta: Mapping[str, Any]
    columns: Mapping[str, Sequence[str]]
    spaces: tuple[str, ...] | None

    def __init__(
        self,
        tokens: Iterable[str],
        mentions: Iterable[Mention] = (),
        id: str | None = None,
        meta: Mapping[str, Any] = _NOTHING,
        columns: Mapping[str, Sequence[str]] = _NOTHING,
        spaces: Sequence[str] | None = None,
    ) -> None:
        if type(tokens) is not tuple:
            if isinstance(tokens, str):
                raise InputError("tokens must be a sequence of strings, not one string")
            tokens = tuple(tokens)
        if not tokens:
            raise InputError("a sentence needs at least one token")
        if "" in tokens:
            raise InputError(f"token {tokens.index('') + 1} is empty")
        if set(map(type, tokens)) != {str}:
            odd = [token for token in tokens if not isinstance(token, str)]
            if odd:
                raise InputError(f"a token must be a string, not {odd[0]!r}")
        for name, values in columns.items() if columns else ():
            if len(values) != len(tokens):
                raise InputError(f"column {name!r} has {len(values)} values for {len(tokens)} tokens")
        if spaces is not None:
            spaces = tuple(spaces)
            if len(spaces) != len(tokens):
                raise InputError(f"spaces has {len(spaces)} values for {len(tokens)} tokens")
        _set(self, "tokens", tokens)
        _set(self, "mentions", _settled(mentions, len(tokens)) if mentions else ())
        _set(self, "id", id)
        _set(self, "meta", meta)
        _set(self, "columns", columns)
        _set(self, "spaces", spaces)

    def __hash__(self) -> int:
        return hash((self.tokens, self.mentions, self.id))

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self.tokens)

    @property
    def flat(self) -> bool:
        """Whether every mention is contiguous and no two overlap."""
        end = 0
        for mention in self.mentions:
            spans = mention.spans
            if len(spans) > 1 or spans[0][0] < end:
                return False
            end = spans[0][1]
        return True

    @property
    def text(self) -> str:
        """The sentence as one string, with its own spaces where they are known, else single ones."""
        if self.spaces is None:
            return " ".join(self.tokens)
        return "".join(token + space for token, space in zip(self.tokens, self.spaces, strict=True))

    @property
    def key(self) -> str:
        """What names the sentence for random draws: its id, or else a digest of its content.

        So an unnamed sentence draws the same wherever it stands in the file.
        """
        return self.id if self.id is not None else self.fingerprint().hex()

    def fingerprint(self) -> bytes:
        """Eight bytes that are equal for sentences with equal tokens and mentions."""
        content = "\0".join(self.tokens)
        for mention in self.mentions:
            content += f"\1{mention.label}\2{mention.spans}"
        return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest()

    def fingerprint_number(self) -> int:
        """The fingerprint as an integer, which takes less memory in sets."""
        return int.from_bytes(self.fingerprint(), "big")

    def words(self, mention: Mention) -> tuple[str, ...]:
        """The tokens of a mention, gaps left out."""
        return tuple(token for start, end in mention.spans for token in self.tokens[start:end])

    def segments(self) -> list[Span]:
        """The sentence cut at every mention boundary: within a segment all tokens carry the same mentions.

        For flat annotation these are the mentions and the maximal runs outside them.

        Example:
            >>> Sentence("a b c d".split(), [Mention("X", [(1, 3)])]).segments()
            [(0, 1), (1, 3), (3, 4)]
        """
        cuts = {0, len(self.tokens)}
        for mention in self.mentions:
            for span in mention.spans:
                cuts.update(span)
        bounds = sorted(cuts)
        return list(pairwise(bounds))

    def free(self) -> list[bool]:
        """For each token, whether it belongs to no mention."""
        free = [True] * len(self.tokens)
        for mention in self.mentions:
            for start, end in mention.spans:
                free[start:end] = [False] * (end - start)
        return free

    def iob(self, scheme: str = "IOB2", overlap: str = "error") -> list[str]:
        """The sentence's tags, one a token.

        Args:
            scheme: ``"IOB1"``, ``"IOB2"``, ``"IOBES"`` or ``"BILOU"``.
            overlap: what to do with nested and discontinuous mentions: see `entaug.tags.flatten`.

        Raises:
            LossError: mentions overlap or are discontinuous and `overlap` is ``"error"``.
        """
        from entaug import tags  # the one upward import: a view, see docs/architecture.md

        return tags.encode(self, scheme, overlap)

    def with_(self, **changes: Any) -> Sentence:
        """A copy with some fields changed (for `id` and `meta`; tokens change through `edit`)."""
        return replace(self, **changes)

    def edit(self, edits: Iterable[Edit]) -> Sentence:
        """The one way to replace, insert or delete tokens.

        What happens to a mention under an edit of ``[start, end)``:

        - Outside the range: it keeps its words and moves along.
        - The edit has as many tokens as it replaces and brings no mentions: positions map one to one.
        - The range lies inside one span of the mention: the span grows or shrinks.
        - The whole mention lies in the range: it disappears, unless the edit brings mentions along.
        - Anything else would cut the mention and raises.

        An insertion at the edge of a mention stays outside it. New tokens have `FILL` in every column. White space is
        kept around the edited range; between new tokens it is one space.

        Args:
            edits: in any order, without overlap.

        Returns:
            The new sentence with the same id and meta; this very sentence when there are no edits.

        Raises:
            EditError: edits overlap, leave the sentence, cut a mention, or nothing would be left.
        """
        ordered = sorted(edits, key=_edit_place)
        if not ordered:
            return self
        self._check_edits(ordered)
        tokens: list[str] = []
        brought: list[Mention] = []
        done = 0
        one_to_one = True
        for start, end, new, mentions, _ in ordered:
            tokens += self.tokens[done:start]
            if mentions is not None or len(new) != end - start:
                one_to_one = False
                for mention in mentions or ():
                    if mention.end > len(new):
                        raise EditError(f"mention {mention} does not fit the {len(new)} tokens of its edit")
                    brought.append(mention.shifted(len(tokens)))
            tokens += new
            done = end
        tokens += self.tokens[done:]
        if not tokens:
            raise EditError("the edits delete every token of the sentence")
        mentions_now = self.mentions if one_to_one else (*self._carried(ordered), *brought)
        return Sentence(
            tuple(tokens),
            mentions_now,
            self.id,
            self.meta,
            self._edited_columns(ordered) if self.columns else self.columns,
            None if self.spaces is None else _align().edited_spaces(self, tokens, ordered),
        )

    def _check_edits(self, ordered: list[Edit]) -> None:
        n = len(self.tokens)
        last_start, last_end = -1, 0
        for edit in ordered:
            start, end = edit.start, edit.end
            if not 0 <= start <= end <= n:
                raise EditError(f"edit of [{start}, {end}) leaves the sentence of {n} tokens")
            if start < last_end or (start == end == last_start):
                raise EditError(f"edits overlap at token {start}")
            if isinstance(edit.tokens, str):
                raise EditError("the tokens of an edit must be a sequence of strings, not one string")
            if edit.spaces is not None and len(edit.spaces) != max(0, len(edit.tokens) - 1):
                raise EditError(f"{len(edit.spaces)} spaces between {len(edit.tokens)} tokens of an edit")
            last_start, last_end = start, end

    def _carried(self, ordered: list[Edit]) -> Iterator[Mention]:
        """The sentence's own mentions, where they lie after the edits."""
        for mention in self.mentions:
            first, last = mention.start, mention.end
            spans: list[Span] | None = []
            for start, end in mention.spans:
                moved_start, moved_end = start, end
                for edit in ordered:
                    if edit.start >= end:
                        break
                    growth = len(edit.tokens) - (edit.end - edit.start)
                    if edit.end <= start:  # left of the span, an insertion at its edge included
                        moved_start += growth
                        moved_end += growth
                    elif growth == 0 and edit.mentions is None:
                        continue
                    elif edit.start <= first and edit.end >= last:
                        spans = None
                        break
                    elif edit.start >= start and edit.end <= end:
                        moved_end += growth
                    else:
                        raise EditError(
                            f"edit of [{edit.start}, {edit.end}) would cut mention "
                            f"{mention.label} {list(mention.spans)}"
                        )
                if spans is None:
                    break
                if moved_start >= moved_end:
                    raise EditError(f"edits would delete a part of mention {mention.label} {list(mention.spans)}")
                spans.append((moved_start, moved_end))
            if spans is not None:
                yield Mention(mention.label, tuple(spans))

    def _edited_columns(self, ordered: list[Edit]) -> dict[str, tuple[str, ...]]:
        columns = {}
        for name, values in self.columns.items():
            kept: list[str] = []
            done = 0
            for edit in ordered:
                kept += values[done : edit.start]
                kept += [FILL] * len(edit.tokens)
                done = edit.end
            columns[name] = (*kept, *values[done:])
        return columns

    def cut(self, places: Iterable[int]) -> Sentence:
        """The same tokens with every contiguous mention made into two where it goes on over one of the places.

        What a method does before an exchange that would cut a mention, where its paper lets both parts keep the label.
        Discontinuous mentions stay whole.

        Args:
            places: positions of tokens, each meaning the place before its token.

        Example:
            >>> s = Sentence("New York City Hall".split(), [Mention("LOC", [(0, 4)])])
            >>> [m.spans for m in s.cut([3, 1]).mentions]
            [((0, 1),), ((1, 3),), ((3, 4),)]
        """
        at = sorted(set(places))
        mentions = []
        for mention in self.mentions:
            inner = [place for place in at if mention.contiguous and mention.start < place < mention.end]
            ends = [mention.start, *inner, mention.end]
            mentions += [Mention(mention.label, [pair]) for pair in pairwise(ends)] if inner else [mention]
        # A part may be what another mention is already.
        return self if len(mentions) == len(self.mentions) else self.with_(mentions=tuple(dict.fromkeys(mentions)))

    def reorder(self, permutation: Sequence[int]) -> Sentence:
        """The one way to change the order of tokens.

        Args:
            permutation: for each new position the old position of its token.

        Returns:
            The new sentence; every span of every mention still covers exactly its own tokens.

        Raises:
            EditError: not a permutation, or a span's tokens would no longer stand together.

        Example:
            >>> s = Sentence("a b c".split(), [Mention("X", [(0, 2)])])
            >>> t = s.reorder([2, 1, 0])
            >>> t.tokens, t.mentions[0].spans
            (('c', 'b', 'a'), ((1, 3),))
        """
        n = len(self.tokens)
        if sorted(permutation) != list(range(n)):
            raise EditError(f"{list(permutation)} is not a permutation of {n} positions")
        mentions = self.mentions
        if mentions:
            place = [0] * n
            for new, old in enumerate(permutation):
                place[old] = new
            mentions = tuple(self._moved(mention, place) for mention in mentions)
        return Sentence(
            tuple([self.tokens[old] for old in permutation]),
            mentions,
            self.id,
            self.meta,
            {name: tuple(values[old] for old in permutation) for name, values in self.columns.items()}
            if self.columns
            else self.columns,
            None if self.spaces is None else _align().reordered_spaces(self, permutation),
        )

    def _moved(self, mention: Mention, place: list[int]) -> Mention:
        spans = []
        for start, end in mention.spans:
            now = place[start:end]
            low = min(now)
            if max(now) - low != end - start - 1:
                raise EditError(f"the new order would tear mention {mention.label} {list(mention.spans)} apart")
            spans.append((low, low + end - start))
        moved = tuple(sorted(spans))
        return mention if moved == mention.spans else Mention(mention.label, moved)

    def __reduce__(self) -> tuple[Any, ...]:
        # The default of slotted dataclasses cannot pickle a mapping proxy, which workers need.
        return (
            Sentence,
            (self.tokens, self.mentions, self.id, dict(self.meta), dict(self.columns), self.spaces),
        )


def _align() -> ModuleType:
    from entaug import alignment as align  # an upward import, as in `iob`

    return align


def _edit_place(edit: Edit) -> tuple[int, int]:
    return edit.start, edit.end


class Keys:
    """What names each of a row of sentences: its key, and a number too where an unnamed one is equal to one before.

    Example:
        >>> keys = Keys()
        >>> [keys.of(Sentence(["Ada"])).partition("-")[2] for _ in range(3)], keys.of(Sentence(["Ada"], id="s1"))
        (['', '2', '3'], 's1')
    """

    def __init__(self) -> None:
        self._seen: Counter[int] = Counter()

    def of(self, sentence: Sentence) -> str:
        """The name of the next sentence."""
        if sentence.id is not None:
            return sentence.id
        number = sentence.fingerprint_number()
        self._seen[number] += 1
        return f"{number:016x}" if self._seen[number] == 1 else f"{number:016x}-{self._seen[number]}"


class Corpus(Sequence[Sentence]):
    """Sentences in memory.

    Args:
        sentences: the sentences.
        source: where they come from, for messages.

    Example:
        >>> Corpus([Sentence(["Rome"], [Mention("LOC", [(0, 1)])])]).labels
        ('LOC',)
    """

    def __init__(self, sentences: Iterable[Sentence], source: str | None = None) -> None:
        self._sentences = tuple(sentences)
        self.source = source

    @overload
    def __getitem__(self, index: int) -> Sentence: ...
    @overload
    def __getitem__(self, index: slice) -> Corpus: ...
    def __getitem__(self, index: int | slice) -> Sentence | Corpus:
        """The sentence at a position, or a corpus of a slice."""
        if isinstance(index, slice):
            return Corpus(self._sentences[index], self.source)
        return self._sentences[index]

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self._sentences)

    def __iter__(self) -> Iterator[Sentence]:
        """The sentences in order."""
        return iter(self._sentences)

    def __eq__(self, other: object) -> bool:
        """Whether the sentences are equal, wherever they come from."""
        return isinstance(other, Corpus) and self._sentences == other._sentences

    def __hash__(self) -> int:
        return hash(self._sentences)

    def __repr__(self) -> str:
        return f"<Corpus of {len(self)} sentences from {self.source or 'memory'}>"

    @property
    def labels(self) -> tuple[str, ...]:
        """The mention labels that occur, sorted."""
        return tuple(sorted(self.mention_counts()))

    def mention_counts(self) -> Counter[str]:
        """How many mentions there are of each label."""
        return Counter(mention.label for sentence in self for mention in sentence.mentions)


class CorpusStream(Iterable[Sentence]):
    """Sentences read anew each time they are iterated, so that a large file never lies in memory.

    Args:
        open_: called for each iteration.
        source: where the sentences come from, for messages.
    """

    def __init__(self, open_: Callable[[], Iterable[Sentence]], source: str | None = None) -> None:
        self._open = open_
        self.source = source

    def __iter__(self) -> Iterator[Sentence]:
        """The sentences in order, read afresh."""
        return iter(self._open())
