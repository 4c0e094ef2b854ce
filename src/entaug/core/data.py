"""Sentences with entity mentions, and the two operations that rewrite them.

`Sentence.edit` and `Sentence.reorder` keep mentions, columns and white space consistent with the tokens. All values are
immutable and validated on construction, so that a `Sentence` that exists is valid. This is one file because the rules
of a sentence are checked against one another: construction, views, and the operations that must respect both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from operator import attrgetter
from sys import intern
from types import MappingProxyType
from typing import Any

from entaug.core import tags as tag_schemes
from entaug.core.edits import Edit, check_edits, edited_columns, edited_mentions, reordered_mention
from entaug.core.mentions import Mention, Span, is_flat, sorted_mentions
from entaug.core.spacing import edited_spaces, infer_spaces, is_unspaced_script, reordered_spaces
from entaug.errors import EditError, InputError


@dataclass(frozen=True, slots=True)
class Provenance:
    """Origin of an augmented sentence; a run completes the fields that a method returns."""

    method: str = ""
    signature: str = ""
    sources: tuple[str, ...] = ()
    copy: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    rejected: str | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Provenance:
        """Create provenance from a dictionary, as files hold it."""
        fields: dict[str, Any] = {}
        details = dict(data)
        for name in ("method", "signature", "rejected"):
            if (value := data.get(name)) and type(value) is str:
                fields[name] = intern(details.pop(name))  # that of a method is the same in each sentence
        sources = data.get("sources")
        if sources and type(sources) in (list, tuple) and all(type(key) is str for key in sources):
            fields["sources"] = tuple(details.pop("sources"))
        if data.get("copy") and type(data["copy"]) is int:
            fields["copy"] = details.pop("copy")
        # A dictionary that entries were taken from keeps their memory.
        return cls(details=dict(details), **fields)

    def to_dict(self) -> dict[str, Any]:
        """Return the provenance as a dictionary that can be written as JSON, without fields that are empty."""
        data: dict[str, Any] = {}
        if self.method:
            data["method"] = self.method
        if self.signature:
            data["signature"] = self.signature
        data |= self.details
        if self.sources:
            data["sources"] = list(self.sources)
        if self.copy:
            data["copy"] = self.copy
        if self.rejected:
            data["rejected"] = self.rejected
        return data

    def with_details(self, **details: Any) -> Provenance:
        """Return a copy with further details."""
        return replace(self, details={**self.details, **details})


_EMPTY: Mapping[str, Any] = MappingProxyType({})
# The fields of files that go to `Sentence.layout` and `Sentence.provenance`; all others go to `Sentence.meta`.
_LAYOUT_FIELDS = frozenset(
    ("comments", "text", "tag_probabilities", "relation_probabilities", "_entity_fields", "_brat", "_conllu_rows")
)
_PROVENANCE_FIELD = "entaug"
_SPECIAL_FIELDS = _LAYOUT_FIELDS | {_PROVENANCE_FIELD}


@dataclass(frozen=True, slots=True, init=False)
class Sentence:
    """A tokenised sentence with its mentions.

    Args:
        tokens: one or more non-empty strings. A token may hold any character, including spaces; formats refuse what
            they cannot write.
        mentions: the mentions, in any order; kept in canonical order (by spans, then label).
        id: the identifier of the sentence in its corpus, if it has one.
        meta: further fields of the sentence, JSON-ready, for example those of a JSON record. Sentences made from this
            one inherit them. Not to be modified in place.
        columns: further values per token (part of speech, offsets ...), by column name.
        spaces: the white space after each token, where it is known; else None.
        layout: further fields of the source file that hold for this exact text only, JSON-ready: comments, further
            fields of mentions. Augmented sentences do not inherit them.
        provenance: how an augmented sentence was made; None for a gold sentence.

    Raises:
        InputError: no tokens, an empty token, a span out of range, a duplicate mention, or a column of wrong length.

    Example:
        >>> s = Sentence(["Ada", "lives", "in", "Rome"], [Mention("LOC", [(3, 4)]), Mention("PER", [(0, 1)])])
        >>> print(s)
        [Ada]PER lives in [Rome]LOC
        >>> [s.mention_tokens(m) for m in s.mentions]
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
    layout: Mapping[str, Any]
    provenance: Provenance | None
    _fingerprint: bytes | None = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        tokens: Iterable[str],
        mentions: Iterable[Mention] = (),
        id: str | None = None,
        meta: Mapping[str, Any] = _EMPTY,
        columns: Mapping[str, Sequence[str]] = _EMPTY,
        spaces: Sequence[str] | None = None,
        layout: Mapping[str, Any] = _EMPTY,
        provenance: Provenance | None = None,
    ) -> None:
        if type(tokens) is not tuple:
            if isinstance(tokens, str):
                raise InputError("tokens must be a sequence of strings, not a string")
            tokens = tuple(tokens)
        if not tokens:
            raise InputError("a sentence needs at least one token")
        if "" in tokens:
            raise InputError(f"token {tokens.index('') + 1} is empty")
        if set(map(type, tokens)) != {str}:
            invalid = [token for token in tokens if not isinstance(token, str)]
            if invalid:
                raise InputError(f"a token must be a string, not {invalid[0]!r}")
        for name, values in columns.items() if columns else ():
            if len(values) != len(tokens):
                raise InputError(f"column {name!r} has {len(values)} values for {len(tokens)} tokens")
        if spaces is not None:
            spaces = tuple(spaces)
            if len(spaces) != len(tokens):
                raise InputError(f"spaces has {len(spaces)} values for {len(tokens)} tokens")
        _set_tokens(self, tokens)
        _set_mentions(self, _canonical_mentions(mentions, len(tokens)) if mentions else ())
        _set_id(self, id)
        _set_meta(self, meta)
        _set_columns(self, columns)
        _set_spaces(self, spaces)
        _set_layout(self, layout)
        _set_provenance(self, provenance)
        _set_fingerprint(self, None)

    @classmethod
    def from_iob(cls, tokens: Iterable[str], tags: Iterable[str], scheme: str = "IOB2", **fields: Any) -> Sentence:
        """Create a sentence from tokens and tags.

        Args:
            tokens: the tokens.
            tags: one tag a token.
            scheme: the tag scheme: ``"IOB1"``, ``"IOB2"``, ``"IOBES"``, ``"BILOU"``, ``"BMES"`` or ``"IO"``.
            fields: further arguments of `Sentence`, for example `id`.

        Raises:
            TagError: the tags break the scheme.
            InputError: there are not as many tags as tokens.

        Example:
            >>> print(Sentence.from_iob(["Ada", "Byron", "left", "Rome"], ["B-PER", "I-PER", "O", "B-LOC"]))
            [Ada Byron]PER left [Rome]LOC
        """
        tokens, tags = tuple(tokens), tuple(tags)
        if len(tags) != len(tokens):
            raise InputError(f"there are {len(tags)} tags for {len(tokens)} tokens")
        return cls(tokens, tag_schemes.decode(tags, scheme), **fields)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Sentence:
        """Create a sentence from a dictionary; the inverse of `to_dict`.

        Args:
            data: the dictionary.

        Raises:
            InputError: ``tokens`` is missing, a field is unknown, or a value is invalid.
        """
        fields = dict(data)
        try:
            mentions = [Mention(mention["label"], mention["spans"]) for mention in fields.pop("mentions", ())]
            columns = {name: tuple(values) for name, values in fields.pop("columns", {}).items()}
            if (provenance := fields.pop("provenance", None)) is not None:
                provenance = Provenance.from_dict(provenance)
            return cls(fields.pop("tokens"), mentions, columns=columns, provenance=provenance, **fields)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(f"not a sentence as `Sentence.to_dict` writes it ({error})") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the sentence as a dictionary that can be written as JSON.

        Returns:
            The dictionary, without fields that are empty. `from_dict` creates an equal sentence from it.

        Example:
            >>> Sentence(["in", "Rome"], [Mention("LOC", [(1, 2)])], id="s1").to_dict()
            {'id': 's1', 'tokens': ['in', 'Rome'], 'mentions': [{'label': 'LOC', 'spans': [[1, 2]]}]}
        """
        data: dict[str, Any] = {} if self.id is None else {"id": self.id}
        data["tokens"] = list(self.tokens)
        data["mentions"] = [{"label": m.label, "spans": [list(span) for span in m.spans]} for m in self.mentions]
        if self.columns:
            data["columns"] = {name: list(values) for name, values in self.columns.items()}
        if self.spaces is not None:
            data["spaces"] = list(self.spaces)
        data |= {name: dict(fields) for name, fields in (("meta", self.meta), ("layout", self.layout)) if fields}
        if self.provenance is not None:
            data["provenance"] = self.provenance.to_dict()
        return data

    @property
    def fields(self) -> Mapping[str, Any]:
        """The further fields as files hold them: those of `meta` and `layout`, and the provenance as ``"entaug"``."""
        if not self.layout and self.provenance is None:
            return self.meta
        fields = {**self.meta, **self.layout}
        if self.provenance is not None:
            fields[_PROVENANCE_FIELD] = self.provenance.to_dict()
        return fields

    def with_fields(self, fields: Mapping[str, Any]) -> Sentence:
        """Return a copy with other further fields; the inverse of `fields`.

        Args:
            fields: the fields as files hold them.
        """
        changes = {"layout": _EMPTY, "provenance": None, **split_fields(fields)}
        return replace(self, **changes)

    def __hash__(self) -> int:
        return hash((self.tokens, self.mentions, self.id))

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.tokens)

    def __str__(self) -> str:
        """Return the tokens with each mention in brackets, followed by its label."""
        # The parts of a discontinuous mention, and mentions that overlap without being nested, are numbered.
        spans = [(start, end, mention) for mention in self.mentions for start, end in mention.spans]
        crossing = {m for a, b, m in spans for c, d, n in spans if m != n and (a < c < b < d or c < a < d < b)}
        numbered = [m for m in self.mentions if m in crossing or not m.is_contiguous]
        numbers = {mention: f"#{i}" for i, mention in enumerate(numbered, start=1)}
        before, after = [""] * len(self), [""] * len(self)
        # Longer spans are opened first and closed last.
        for start, end, mention in sorted(spans, key=lambda span: span[0] - span[1]):
            number = numbers.get(mention, "")
            before[start] += f"[{number} " if mention in crossing else "["
            after[end - 1] = f"]{mention.label}{number}" + after[end - 1]
        marked = list(map("".join, zip(before, self.tokens, after, strict=True)))
        if not any(map(is_unspaced_script, self.tokens)):
            return " ".join(marked)
        spaces = (space or " " * bool(end) for space, end in zip(infer_spaces(self.tokens), after, strict=True))
        return "".join(map("".join, zip(marked, spaces, strict=True))).removesuffix(" ")

    def _repr_html_(self) -> str:
        """Return the sentence for a notebook."""
        from entaug.core.html import for_notebook, sentences_to_html

        return for_notebook(sentences_to_html([self]))

    @property
    def is_flat(self) -> bool:
        """Whether all mentions are contiguous and none overlap."""
        return is_flat(self.mentions)

    @property
    def text(self) -> str:
        """The sentence as a string, with its own white space where that is known, else with single spaces."""
        if self.spaces is None:
            return " ".join(self.tokens)
        return "".join(token + space for token, space in zip(self.tokens, self.spaces, strict=True))

    @property
    def key(self) -> str:
        """The key of the sentence for random streams: its id, or else a digest of its content.

        A sentence without an id therefore draws the same random numbers wherever it is in a file.
        """
        return self.id if self.id is not None else self.fingerprint().hex()

    def fingerprint(self) -> bytes:
        """Return a digest of eight bytes, equal for sentences with equal tokens and mentions."""
        digest = self._fingerprint
        if digest is None:
            content = "\0".join(self.tokens)
            for mention in self.mentions:
                content += f"\1{mention.label}\2{mention.spans}"
            digest = blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            _set_fingerprint(self, digest)
        return digest

    def fingerprint_number(self) -> int:
        """Return the fingerprint as an integer, which takes less memory in sets."""
        return int.from_bytes(self.fingerprint(), "big")

    def mention_tokens(self, mention: Mention) -> tuple[str, ...]:
        """Return the tokens of a mention, without those in its gaps.

        Args:
            mention: a mention within this sentence.
        """
        if len(mention.spans) == 1:
            start, end = mention.spans[0]
            return self.tokens[start:end]
        return tuple(token for start, end in mention.spans for token in self.tokens[start:end])

    def segments(self) -> list[Span]:
        """Split the sentence at every mention boundary, so that all tokens of a segment have the same mentions.

        For flat annotation these are the mentions and the maximal ranges between them.

        Returns:
            Consecutive spans that cover the sentence.

        Example:
            >>> Sentence("a b c d".split(), [Mention("X", [(1, 3)])]).segments()
            [(0, 1), (1, 3), (3, 4)]
        """
        boundaries = {0, len(self.tokens)}
        for mention in self.mentions:
            for span in mention.spans:
                boundaries.update(span)
        return list(pairwise(sorted(boundaries)))

    def outside_mask(self) -> list[bool]:
        """Return for each token whether it is outside all mentions."""
        outside = [True] * len(self.tokens)
        for mention in self.mentions:
            for start, end in mention.spans:
                outside[start:end] = [False] * (end - start)
        return outside

    def iob(self, scheme: str = "IOB2", overlap: str = "error") -> list[str]:
        """Return the tag of each token.

        Args:
            scheme: the tag scheme: ``"IOB1"``, ``"IOB2"``, ``"IOBES"``, ``"BILOU"``, ``"BMES"`` or ``"IO"``.
            overlap: how to treat nested and discontinuous mentions; see `entaug.core.tags.flatten`.

        Raises:
            LossError: mentions overlap or are discontinuous and `overlap` is ``"error"``; or, in IO, neighbours have
                one label.
        """
        return tag_schemes.encode(len(self.tokens), self.mentions, scheme, overlap)

    def with_(self, **changes: Any) -> Sentence:
        """Return a copy with some fields replaced; tokens are changed with `edit` instead.

        Args:
            changes: new values of fields, for example `id` or `meta`.
        """
        return replace(self, **changes)

    def signed(self, id: str, meta: Mapping[str, Any], layout: Mapping[str, Any], provenance: Provenance) -> Sentence:
        """Return a copy with what is recorded of a new sentence; nothing else is checked again.

        Args:
            id: the identifier.
            meta: further fields.
            layout: further fields that hold for this text only.
            provenance: how it was made.
        """
        new = object.__new__(Sentence)
        _set_tokens(new, self.tokens)
        _set_mentions(new, self.mentions)
        _set_id(new, id)
        _set_meta(new, meta)
        _set_columns(new, self.columns)
        _set_spaces(new, self.spaces)
        _set_layout(new, layout)
        _set_provenance(new, provenance)
        _set_fingerprint(new, self._fingerprint)
        return new

    def edit(self, edits: Iterable[Edit]) -> Sentence:
        """Replace, insert or delete tokens.

        The effect of an edit of ``[start, end)`` on a mention:

        - The mention is outside the range: it keeps its tokens and moves with them.
        - The edit has as many tokens as it replaces and no mentions: positions map one to one.
        - The range is inside one span of the mention: the span grows or shrinks.
        - The whole mention is in the range: it is removed; the edit may bring mentions of its own.
        - Any other edit would cut the mention and raises.

        An insertion at the edge of a mention stays outside it. New tokens have `entaug.core.edits.PLACEHOLDER` in every
        column.

        Args:
            edits: the edits, in any order, without overlap.

        Returns:
            The new sentence, with all else as it is here; this sentence where there are no edits.

        Raises:
            EditError: edits overlap, leave the sentence, cut a mention, or delete all tokens.
        """
        ordered = sorted(edits, key=attrgetter("start", "end"))
        if not ordered:
            return self
        check_edits(ordered, len(self.tokens))
        tokens: list[str] = []
        new_mentions: list[Mention] = []
        position = 0
        is_one_to_one = True
        for start, end, replacement, mentions, _ in ordered:
            tokens += self.tokens[position:start]
            if mentions is not None or len(replacement) != end - start:
                is_one_to_one = False
                for mention in mentions or ():
                    if mention.end > len(replacement):
                        raise EditError(f"mention {mention} does not fit the {len(replacement)} tokens of its edit")
                    new_mentions.append(mention.shift(len(tokens)))
            tokens += replacement
            position = end
        tokens += self.tokens[position:]
        if not tokens:
            raise EditError("the edits delete every token of the sentence")
        return Sentence(
            tuple(tokens),
            self.mentions if is_one_to_one else (*edited_mentions(self.mentions, ordered), *new_mentions),
            self.id,
            self.meta,
            edited_columns(self.columns, ordered) if self.columns else self.columns,
            None if self.spaces is None else edited_spaces(self.tokens, self.spaces, ordered, tokens),
            self.layout,
            self.provenance,
        )

    def split_mentions(self, positions: Iterable[int]) -> Sentence:
        """Split contiguous mentions in two at token boundaries; the tokens stay the same.

        Methods call it before an exchange that would cut a mention, where the paper lets both parts keep the label.
        Discontinuous mentions are not split.

        Args:
            positions: token positions; a mention is split before the token at each position.

        Returns:
            The sentence with the parts as mentions.

        Example:
            >>> s = Sentence("New York City Hall".split(), [Mention("LOC", [(0, 4)])])
            >>> [m.spans for m in s.split_mentions([3, 1]).mentions]
            [((0, 1),), ((1, 3),), ((3, 4),)]
        """
        boundaries = sorted(set(positions))
        mentions = []
        for mention in self.mentions:
            inner = [i for i in boundaries if mention.is_contiguous and mention.start < i < mention.end]
            edges = [mention.start, *inner, mention.end]
            mentions += [Mention(mention.label, [span]) for span in pairwise(edges)] if inner else [mention]
        # A part may be equal to another mention.
        return self if len(mentions) == len(self.mentions) else self.with_(mentions=tuple(dict.fromkeys(mentions)))

    def reorder(self, permutation: Sequence[int]) -> Sentence:
        """Change the order of the tokens.

        Args:
            permutation: for each new position the old position of its token.

        Returns:
            The new sentence; every span of every mention still covers exactly its own tokens.

        Raises:
            EditError: not a permutation, or the tokens of a span would no longer be adjacent.

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
            new_positions = [0] * n
            for new, old in enumerate(permutation):
                new_positions[old] = new
            mentions = tuple(reordered_mention(mention, new_positions) for mention in mentions)
        return Sentence(
            tuple([self.tokens[old] for old in permutation]),
            mentions,
            self.id,
            self.meta,
            {name: tuple(values[old] for old in permutation) for name, values in self.columns.items()}
            if self.columns
            else self.columns,
            None if self.spaces is None else reordered_spaces(self.tokens, self.spaces, permutation),
            self.layout,
            self.provenance,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # The default of slotted dataclasses cannot pickle a mapping proxy, which worker processes need.
        mappings = dict(self.meta), dict(self.columns), self.spaces, dict(self.layout)
        return Sentence, (self.tokens, self.mentions, self.id, *mappings, self.provenance)


# The setters of the slots, which are faster than `object.__setattr__`; readers create many sentences.
_set_tokens = Sentence.__dict__["tokens"].__set__
_set_mentions = Sentence.__dict__["mentions"].__set__
_set_id = Sentence.__dict__["id"].__set__
_set_meta = Sentence.__dict__["meta"].__set__
_set_columns = Sentence.__dict__["columns"].__set__
_set_spaces = Sentence.__dict__["spaces"].__set__
_set_layout = Sentence.__dict__["layout"].__set__
_set_provenance = Sentence.__dict__["provenance"].__set__
_set_fingerprint = Sentence.__dict__["_fingerprint"].__set__


def split_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Split the further fields of a sentence in a file into arguments of `Sentence`."""
    if _SPECIAL_FIELDS.isdisjoint(fields):
        return {"meta": fields or _EMPTY}
    meta = dict(fields)
    arguments: dict[str, Any] = {}
    # A field of that name that is not an object belongs to somebody else.
    if isinstance(fields.get(_PROVENANCE_FIELD), dict):
        arguments["provenance"] = Provenance.from_dict(meta.pop(_PROVENANCE_FIELD))
    if layout := {name: meta.pop(name) for name in _LAYOUT_FIELDS.intersection(fields)}:
        arguments["layout"] = layout
    # A dictionary that entries were taken from keeps their memory.
    return {"meta": dict(meta) if meta else _EMPTY, **arguments}


def _canonical_mentions(mentions: Iterable[Mention], length: int) -> tuple[Mention, ...]:
    """Mentions in canonical order, checked against the number of tokens."""
    ordered = tuple(mentions)
    previous: tuple[Span, ...] = ()
    for mention in ordered:
        spans = mention.spans
        if spans <= previous:  # most are in order, and need no sorting
            ordered = tuple(sorted_mentions(ordered))
            break
        previous = spans
    last = None
    for mention in ordered:
        if mention.spans[-1][1] > length:
            what = f"span {mention.spans[-1]} of {mention.label} is out of range: {length} tokens"
            raise InputError(what, remedy="let spans count tokens, not characters, up to the one after the last")
        if mention == last:
            raise InputError(f"mention {mention.label} {list(mention.spans)} is given twice")
        last = mention
    return ordered
