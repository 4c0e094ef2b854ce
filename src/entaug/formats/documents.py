"""Texts with character offsets as sentences with tokens, and back: what formats without tokens of their own share.

A text is tokenised by spaCy's rules for its language, unless the file says what its tokens are. It stays one sentence,
or is cut at line ends, or at ends of sentences, and never within a mention. The white space between tokens stays with
the sentence, so that a text that nothing happened to comes back to the character, offsets and all; tokens that came in
are spaced as in print.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from entaug.data import Mention, Sentence, Span, split_fields
from entaug.errors import InputError, MissingExtraError, ParameterError
from entaug.formats.base import BEFORE, ENTITY_FIELDS, Reading, before_of
from entaug.params import validate
from entaug.spacing import infer_spaces

__all__ = ["BEFORE", "DOCUMENT", "CharMention", "Cutting", "Text", "cut", "documents", "joined", "placed_tokens"]

DOCUMENT = "_document"
"""Field of a sentence: the id of the text it was cut from, and the character where it begins there."""
RANGES = "_ranges"
"""Field of a mention whose ranges of characters are more than those of tokens: they, from where the sentence begins."""
_REMEMBERED = 1 << 18  # words that a tokeniser remembers
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class CharMention(NamedTuple):
    """A mention by characters.

    Args:
        label: the entity type.
        spans: half-open ranges of characters (of code points), in order.
        fields: what else the file says of it.
    """

    label: str
    spans: tuple[Span, ...]
    fields: Mapping[str, Any] = _NOTHING


class Text(NamedTuple):
    """A text with its mentions.

    Args:
        text: it.
        mentions: in any order.
        id: its name.
        fields: what else the file says of it; kept as fields of its first sentence.
        tokens: its tokens, where the file says them.
        starts: the characters where its sentences begin, in order, where the file says them.
        lines: the line of its file that each mention stands in, where each has one; for errors.
        places: where these stand, where that is known already.
    """

    text: str
    mentions: Sequence[CharMention] = ()
    id: str | None = None
    fields: Mapping[str, Any] = _NOTHING
    tokens: Sequence[str] | None = None
    starts: Sequence[int] | None = None
    lines: Sequence[int] | None = None
    places: Sequence[Span] | None = None


@dataclass(frozen=True)
class Cutting:
    """How texts become sentences.

    Args:
        language: a language code that spaCy has rules for; ``"xx"`` for any.
        split: ``"none"``, a text is a sentence; ``"lines"``, a line is one; ``"sentences"``, they are found, and a line
            end is the end of one too.
        misaligned: what to do with a mention that begins or ends within a token: ``"error"``; ``"skip"``: leave it out,
            and count; ``"cut"``: cut the token there.
    """

    language: str = "en"
    split: Literal["none", "lines", "sentences"] = "none"
    misaligned: Literal["error", "skip", "cut"] = "error"

    def __post_init__(self) -> None:
        validate(self)


def cut(text: Text, how: Cutting, reading: Reading) -> list[Sentence]:
    """The sentences of a text; none where it holds nothing but white space.

    Raises:
        InputError: a mention outside the text, or one that begins or ends within a token.
        MissingExtraError: the text must be tokenised, and spaCy is not installed.

    Example:
        >>> text = Text("Ada sang.  In Rome", [CharMention("LOC", ((14, 18),))], tokens=["Ada", "sang.", "In", "Rome"])
        >>> [s.mention_tokens(m) for s in cut(text, Cutting(), Reading()) for m in s.mentions]
        [('Rome',)]
    """
    tokens, ends = _tokens(text, how)
    if how.split == "none" and text.starts is None and tokens and (whole := _whole(text, tokens)) is not None:
        return [whole]
    tokens, placed = _placed(tokens, text, how.misaligned, reading)
    if not tokens:
        return []
    if text.starts is not None:
        starts = sorted({0, *(bisect_left(tokens, (place, place)) for place in text.starts)} - {len(tokens)})
    else:
        found = ends(tokens) if how.split == "sentences" else ()
        starts = sorted({0, *_lines(tokens, text.text, how.split), *found})
    inside = {i for m, _ in placed for i in range(m.start + 1, m.end)}  # no sentence begins within a mention
    cuts = [*(i for i in starts if i not in inside), len(tokens)]
    order = [mention.start for mention, _ in placed]
    return [
        _sentence(
            text,
            tokens,
            placed[bisect_left(order, first) : bisect_left(order, last)],
            first,
            last,
            number,
            len(cuts) - 1,
        )
        for number, (first, last) in enumerate(pairwise(cuts))
    ]


def _whole(text: Text, tokens: Sequence[Span]) -> Sentence | None:
    """A text as one sentence, where its mentions stand on its tokens; None where that takes a closer look."""
    placed: dict[Mention, CharMention] = {}
    if text.mentions:
        first = {a: i for i, (a, _) in enumerate(tokens)}
        last = {b: i for i, (_, b) in enumerate(tokens, start=1)}
        for mention in text.mentions:
            start, end = mention.spans[0]
            i, j = first.get(start), last.get(end)
            if i is None or j is None or i >= j or len(mention.spans) > 1:
                return None
            placed[Mention(mention.label, ((i, j),))] = mention
        if len(placed) < len(text.mentions):
            return None
    pairs = list(placed.items())
    if len(pairs) > 1:
        pairs.sort(key=_by_place)
    return _sentence(text, tokens, pairs, 0, len(tokens), 0, 1)


def _by_place(pair: tuple[Mention, CharMention]) -> tuple[tuple[Span, ...], str]:
    return pair[0].spans, pair[0].label


def _fits(mention: CharMention, starts: set[int], stops: set[int]) -> bool:
    """Whether the edges of a mention of one range are edges of tokens."""
    if len(mention.spans) != 1:
        return False
    start, end = mention.spans[0]
    return start in starts and end in stops and start < end


def _trimmed(text: str, mention: CharMention, line: int | None, reading: Reading) -> CharMention:
    """A mention without the white space at its edges, and checked."""
    spans = []
    for start, end in mention.spans:
        if not 0 <= start < end <= len(text):
            raise InputError(
                f"mention {mention.label} ({start}-{end}) is empty or outside the text of {len(text)} characters",
                line=line,
                remedy="mend its offsets",
            )
        piece = text[start:end]
        inner = piece.strip()
        if not inner:
            told = f"mention {mention.label} ({start}-{end}) is white space alone"
            raise InputError(told, line=line, remedy="remove it")
        if len(inner) < len(piece):
            reading.notes["white space at the edge of a mention left out"] += 1
        first = start + len(piece) - len(piece.lstrip())
        spans.append((first, first + len(inner)))
    return mention._replace(spans=tuple(sorted(spans)))


def placed_tokens(tokens: Sequence[str], text: str) -> list[Span] | None:
    """Where the tokens of a text stand in it; None where there is anything but white space between them.

    Example:
        >>> placed_tokens(["Hi", ",", "you"], " Hi,  you")
        [(1, 3), (3, 4), (6, 9)]
    """
    found = []
    place = 0
    for token in tokens:
        start = text.find(token, place)
        if start != place and (start < 0 or not text[place:start].isspace()):
            return None
        place = start + len(token)
        found.append((start, place))
    rest = text[place:]
    return found if tokens and (not rest or rest.isspace()) else None


def _tokens(text: Text, how: Cutting) -> tuple[list[Span], Callable[[Sequence[Span]], Iterable[int]]]:
    """Where tokens stand, and what finds among tokens those that begin a sentence."""
    language = how.language

    def ends(tokens: Sequence[Span]) -> Iterable[int]:
        nlp, sentencizer, doc_class = _pipeline(language)
        words = [text.text[a:b] for a, b in tokens]
        if sentencizer.punct_chars.isdisjoint(words[:-1]):
            return ()
        following = [*(a for a, _ in tokens[1:]), len(text.text)]
        spaces = [end < after for (_, end), after in zip(tokens, following, strict=True)]
        doc = sentencizer(doc_class(nlp.vocab, words=words, spaces=spaces))
        return [i for i, begins in enumerate(doc.to_array("SENT_START").tolist()) if begins == 1]

    if text.places is not None:
        return list(text.places), ends
    if text.tokens is not None:
        found = placed_tokens(text.tokens, text.text)
        if found is not None:
            return found, ends
    nlp = _pipeline(language)[0]
    doc = nlp.make_doc(text.text)
    found = doc.to_array(["IDX", "LENGTH", "IS_SPACE"]).tolist()
    return [(place, place + length) for place, length, space in found if not space], ends


@cache
def _pipeline(language: str) -> tuple[Any, Any, Any]:
    """The tokeniser of a language, its finder of sentences, and the class of what these pass around."""
    try:
        import spacy
        from spacy.attrs import IS_PUNCT, IS_SPACE
        from spacy.tokens import Doc
    except ImportError as error:
        raise MissingExtraError(error.name or "spacy", "spacy") from None
    try:
        nlp: Any = spacy.blank(language)
    except (ImportError, ValueError):
        remedy = "give the code of a language that it has, such as en, de or fr; xx is for any"
        raise ParameterError(f"spaCy has no rules for the language {language!r}", remedy=remedy) from None
    nlp.max_length = 2**31
    # What spaCy finds out about each new word (its shape, whether it is a URL ...) costs as much as tokenising it: here
    # only white space is asked for, and by its finder of sentences punctuation. Its tokeniser remembers 10,000 words;
    # a corpus has many times that.
    known = nlp.vocab.lex_attr_getters
    nlp.vocab.lex_attr_getters = {name: known[name] for name in (IS_PUNCT, IS_SPACE) if name in known}
    if hasattr(nlp.tokenizer, "max_cache_size"):
        nlp.tokenizer.max_cache_size = _REMEMBERED
    return nlp, nlp.create_pipe("sentencizer"), Doc


def _placed(
    tokens: list[Span], whole: Text, misaligned: str, reading: Reading
) -> tuple[list[Span], list[tuple[Mention, CharMention]]]:
    """The tokens, and the mentions by tokens; all faults of mentions are told at once."""
    text = whole.text
    lines: Sequence[int | None] = whole.lines or [None] * len(whole.mentions)
    starts, ends = {a for a, _ in tokens}, {b for _, b in tokens}
    faults: list[InputError] = []
    kept, cuts = [], set()
    for given, line in zip(whole.mentions, lines, strict=True):
        try:
            # What begins and ends with tokens is right as it is, whatever white space the tokens hold.
            mention = given if _fits(given, starts, ends) else _trimmed(text, given, line, reading)
        except InputError as error:
            faults.append(error)
            continue
        odd = {a for a, _ in mention.spans} - starts | {b for _, b in mention.spans} - ends
        if odd and misaligned != "cut":
            place = min(odd)
            token = next((text[a:b] for a, b in tokens if a < place < b), "")
            spans = ", ".join(f"{a}-{b}" for a, b in mention.spans)
            what = " ... ".join(text[a:b] for a, b in mention.spans)
            told = f"mention {mention.label} {what!r} ({spans}) begins or ends within the token {token!r}"
            if misaligned == "error":
                remedy = "pass --misaligned cut to cut the token there, or skip to leave it out"
                faults.append(InputError(told, line=line, remedy=remedy))
                continue
            reading.notes[f"left out: {told}"] += 1
            continue
        cuts |= odd
        kept.append((mention, line))
    if cuts:
        tokens = [piece for token in tokens for piece in _pieces(token, cuts)]
    first = {a: i for i, (a, _) in enumerate(tokens)}
    last = {b: i + 1 for i, (_, b) in enumerate(tokens)}
    placed: dict[Mention, CharMention] = {}
    for mention, line in kept:
        by_tokens = Mention(mention.label, [(first[a], last[b]) for a, b in mention.spans])
        if by_tokens in placed:
            if not reading.repair:
                a, b = mention.spans[0]
                remedy = "remove one, or pass --repair"
                told = f"mention {mention.label} {text[a:b]!r} ({a}-{b}) is given twice"
                faults.append(InputError(told, line=line, remedy=remedy))
                continue
            reading.repaired["mention that was given twice dropped"] += 1
            continue
        placed[by_tokens] = mention
    if faults:
        faults[0].others = faults[1:]
        raise faults[0]
    return tokens, sorted(placed.items(), key=_by_place)


def _pieces(token: Span, cuts: set[int]) -> list[Span]:
    start, end = token
    inner = sorted(place for place in cuts if start < place < end)
    return list(pairwise([start, *inner, end]))


def _lines(tokens: Sequence[Span], text: str, split: str) -> Iterable[int]:
    """The tokens that begin a line."""
    if split == "none":
        return ()
    return [i for i, ((_, end), (start, _)) in enumerate(pairwise(tokens), start=1) if "\n" in text[end:start]]


def _sentence(
    text: Text,
    tokens: Sequence[Span],
    placed: Sequence[tuple[Mention, CharMention]],
    first: int,
    last: int,
    number: int,
    count: int,
) -> Sentence:
    """One of the sentences of a text."""
    own = tokens[first:last]
    following = [a for a, _ in own[1:]]
    following.append(tokens[last][0] if last < len(tokens) else len(text.text))
    mine = [(m.shift(-first) if first else m, c) for m, c in placed]
    meta = {} if number else dict(text.fields)
    if not number and tokens[0][0]:
        meta[BEFORE] = text.text[: tokens[0][0]]
    if count > 1:
        meta[DOCUMENT] = [text.id, own[0][0]]
    said = [dict(c.fields) for _, c in mine]
    for extra, (m, c) in zip(said, mine, strict=True):
        # Ranges with white space alone between them are one range of tokens: so brat has a mention over two lines.
        if len(c.spans) != len(m.spans):
            extra[RANGES] = [[a - own[0][0], b - own[0][0]] for a, b in c.spans]
    if any(said):
        meta[ENTITY_FIELDS] = said
    return Sentence(
        tuple([text.text[a:b] for a, b in own]),
        tuple([m for m, _ in mine]),
        text.id if count == 1 or text.id is None else f"{text.id}-{number + 1}",
        **split_fields(meta),
        spaces=tuple([text.text[b:after] for (_, b), after in zip(own, following, strict=True)]),
    )


# ------------------------------------------------------------------------------------------------------- and back again


def joined(sentences: Iterable[Sentence], between: str = "\n") -> Text:
    r"""Sentences as one text.

    Args:
        sentences: one or more.
        between: what to put between two where nothing says that they touched.

    Example:
        >>> joined([Sentence(["Ada", "sang", "."], [Mention("PER", [(0, 1)])]), Sentence(["Oh", "!"])])[:2]
        ('Ada sang.\nOh!', [CharMention(label='PER', spans=((0, 3),), fields={})])
    """
    parts: list[str] = []
    mentions: list[CharMention] = []
    fields: dict[str, Any] = {}
    name: str | None = None
    tokens: list[str] = []
    place = 0
    for number, sentence in enumerate(sentences):
        document, start = _origin(sentence)
        if not number:
            name = sentence.id if document is None else document
            parts.append(before_of(sentence))
            place = len(parts[0])
        elif parts[-1] and not parts[-1][-1:].isspace() and start != place:
            parts.append(between)
            place += len(between)
        # What a text says of itself stands with its first sentence.
        fields |= {
            k: v for k, v in sentence.fields.items() if not (k in fields or k in (BEFORE, DOCUMENT, ENTITY_FIELDS))
        }
        spaces = infer_spaces(sentence.tokens) if sentence.spaces is None else sentence.spaces
        bounds = []
        first = place
        for token, space in zip(sentence.tokens, spaces, strict=True):
            bounds.append((place, place + len(token)))
            place += len(token) + len(space)
            parts += [token, space] if space else [token]
        tokens += sentence.tokens
        extras = sentence.fields.get(ENTITY_FIELDS)
        known = extras if isinstance(extras, list) and len(extras) == len(sentence.mentions) else None
        for i, mention in enumerate(sentence.mentions):
            spans = tuple((bounds[a][0], bounds[b - 1][1]) for a, b in mention.spans)
            extra = dict(known[i]) if known else {}
            if ranges := extra.pop(RANGES, None):
                spans = tuple((first + a, first + b) for a, b in ranges)
            mentions.append(CharMention(mention.label, spans, extra))
    return Text("".join(parts), mentions, name, fields, tokens)


def documents(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """The sentences by the text that they were cut from, in order; any other is one by itself.

    Augmented sentences make texts of their own: those of a method and a copy together, for each text of the sources.
    """

    def name(numbered: tuple[int, Sentence]) -> tuple[Any, ...]:
        number, sentence = numbered
        document = _origin(sentence)[0]
        return (number,) if document is None else (document, *_made_by(sentence))

    gold: dict[tuple[Any, ...], list[Sentence]] = {}
    for key, group in groupby(enumerate(sentences), key=name):
        gold.setdefault(key, []).extend(sentence for _, sentence in group)
    yield from gold.values()


def _origin(sentence: Sentence) -> tuple[str | None, int | None]:
    """The text that a sentence was cut from, and the character where it begins there."""
    told = sentence.fields.get(DOCUMENT)
    if isinstance(told, list) and len(told) == 2 and isinstance(told[0], str) and type(told[1]) is int:
        return told[0], None if sentence.provenance is not None else told[1]
    return None, None


def _made_by(sentence: Sentence) -> tuple[Any, ...]:
    provenance = sentence.provenance
    return () if provenance is None else (provenance.method, provenance.copy)
