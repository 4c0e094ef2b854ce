"""What methods have made, each sentence beside the one it was made of, read back from files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entaug.corpus import SentenceKeys
from entaug.data import Sentence
from entaug.formats import read_each

__all__ = ["Made", "Pair", "pair_up", "read_augmented"]


@dataclass(frozen=True)
class Pair:
    """An augmented sentence and where it comes from.

    Args:
        made: it, with its provenance in ``meta["entaug"]`` where its file has that.
        source: the gold sentence it was made of; None where that is not known. Of one that was written from nothing
            it is only the one whose place it took.
        others: further gold sentences that a method which mixes has used.
        rejected: why it was not kept; None where it was.
    """

    made: Sentence
    source: Sentence | None = None
    others: tuple[Sentence, ...] = ()
    rejected: str | None = None


@dataclass
class Made:
    """What `read_augmented` has found.

    Args:
        gold: the gold sentences.
        methods: what was made, by the name of the method; a method that was run in several ways, or files without
            provenance, by the name of the file too.
        notes: what a user should know, in words.
    """

    gold: list[Sentence] = field(default_factory=list)
    methods: dict[str, list[Pair]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def pair_up(sentences: Iterable[Sentence], gold: Sequence[Sentence] | None = None) -> list[Pair | None]:
    """Tell sentences that were made from gold ones, in their order, by the rules of `read_augmented`.

    Args:
        sentences: those of one file.
        gold: what was augmented; by default those of the sentences that do not say that they were made.

    Returns:
        For each sentence where it comes from; None where it is gold.

    Example:
        >>> import entaug
        >>> gold = [Sentence("a b c d e".split())]
        >>> [pair and pair.source == gold[0] for pair in pair_up([*gold, *entaug.create_augmenter("sis").augment(gold)])]
        [None, True]
    """
    given = list(sentences)
    contents = {sentence.fingerprint() for sentence in gold or ()}
    told = contents if gold is not None and not any("method" in _provenance(s) for s in given) else None
    made = [_is_made(sentence, told) for sentence in given]
    by_key: dict[str, Sentence] = {}
    own_gold = gold if gold is not None else [s for s, own in zip(given, made, strict=True) if not own]
    for key, sentence in _named(own_gold):
        by_key.setdefault(key, sentence)
    _by_content(by_key)
    return [_pair(sentence, by_key) if own else None for sentence, own in zip(given, made, strict=True)]


def read_augmented(paths: Iterable[str | Path], gold: str | Path | None = None, **options: Any) -> Made:
    """Read augmented files.

    Sentences with provenance were made, the others are gold, unless a gold file is named: then sentences without
    provenance that are not in it were made too, by nobody knows what, and have no source.

    Args:
        paths: the files, in any format; those of rejected drafts too.
        gold: the file that was augmented; wanted where the files hold augmented sentences alone.
        options: as `entaug.read` takes them; a layout is of the files whose format has such an option, and ``format``
            of those whose name does not say another.

    Raises:
        InputError: a file is faulty.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> gold = [Sentence("a b c d e".split())]
        >>> file = pathlib.Path(tempfile.mkdtemp(), "new.jsonl")
        >>> _ = entaug.write([*gold, *entaug.create_augmenter("sis").augment(gold)], file)
        >>> [pair] = read_augmented([file]).methods["sis"]
        >>> pair.source == gold[0], sorted(pair.made.tokens)
        (True, ['a', 'b', 'c', 'd', 'e'])
    """
    found = Made()
    once: dict[Path, str | Path] = {}
    for path in paths:
        if once.setdefault(Path(path).resolve(), path) is not path:
            found.notes.append(f"{path} is named more than once, and counts once")
    corpora = read_each([*once.values(), *([gold] if gold is not None else [])], **options)
    given = list(corpora.pop()) if gold is not None else None
    files = [(str(path), list(corpus)) for path, corpus in zip(once.values(), corpora, strict=True)]
    contents = {sentence.fingerprint() for sentence in given} if given is not None else None
    by_key: dict[str, Sentence] = {}
    for sentences in [given] if given is not None else [sentences for _, sentences in files]:
        own_gold = [s for s in sentences if sentences is given or not _is_made(s, contents)]
        for key, sentence in _named(own_gold):
            if key not in by_key:
                found.gold.append(sentence)
            by_key.setdefault(key, sentence)
    _by_content(by_key)
    named: dict[tuple[str, str], list[tuple[str, Sentence]]] = defaultdict(list)
    for path, sentences in files:
        # A file that says of some that they were made says so of all; its gold may be cut into other tokens by now.
        told = contents if not any("method" in _provenance(s) for s in sentences) else None
        for sentence in sentences:
            if _is_made(sentence, told):
                own = _provenance(sentence)
                named[str(own.get("method", "")), str(own.get("signature", path))].append((path, sentence))
    if not named and given is None and found.gold and not any("entaug" in s.meta for _, some in files for s in some):
        found.notes.append("no sentence says that it was made; if some were, name the gold file too")
    _name_all(found, named, by_key)
    return found


def _named(sentences: Iterable[Sentence]) -> Iterator[tuple[str, Sentence]]:
    """The sentences of one file with their names: the same one has the same name in each."""
    keys = SentenceKeys()
    for sentence in sentences:
        yield keys.assign(sentence), sentence


def _by_content(by_key: dict[str, Sentence]) -> None:
    """Add names by content, for sentences that had no id when something was made of them, and got one since."""
    for sentence in list(by_key.values()):
        by_key.setdefault(sentence.fingerprint().hex(), sentence)


def _source(key: object, by_key: Mapping[str, Sentence]) -> Sentence | None:
    """What a name means; of equal sentences that were told apart by a number one is as good as the other."""
    found = by_key.get(str(key))
    return found if found is not None else by_key.get(re.sub(r"^([0-9a-f]{16})-\d+$", r"\1", str(key)))


def _is_made(sentence: Sentence, gold: Collection[bytes] | None = None) -> bool:
    """Whether a sentence says that it was made, or is not among the gold sentences, given by their fingerprints."""
    return "method" in _provenance(sentence) or (gold is not None and sentence.fingerprint() not in gold)


def _provenance(sentence: Sentence) -> dict[str, Any]:
    own = sentence.meta.get("entaug")
    return own if isinstance(own, dict) else {}


def _name_all(
    found: Made, named: dict[tuple[str, str], list[tuple[str, Sentence]]], by_key: dict[str, Sentence]
) -> None:
    """Give each group of sentences a name, and each sentence its sources."""
    lost = 0
    for (method, _), sentences in named.items():
        alone = sum(other == method for other, _ in named) == 1
        stems = sorted({Path(path).stem for path, _ in sentences})
        name = wanted = method if method and alone else " ".join(filter(None, (method, f"({', '.join(stems)})")))
        number = 1
        while name in found.methods:
            number += 1
            name = f"{wanted} {number}"
        pairs = [_pair(sentence, by_key) for _, sentence in sentences]
        lost += sum(pair.source is None and bool(_provenance(pair.made).get("sources")) for pair in pairs)
        found.methods[name] = pairs
    if lost:
        found.notes.append(f"the source of {lost:,} new sentences is not among the gold sentences: name the gold file")


def _pair(sentence: Sentence, by_key: dict[str, Sentence]) -> Pair:
    own = _provenance(sentence)
    keys = own.get("sources", ())
    sources = [_source(key, by_key) for key in keys] if isinstance(keys, list | tuple) else []
    rejected = own.get("rejected")
    first, others = (sources[0], sources[1:]) if sources else (None, [])
    return Pair(sentence, first, tuple(s for s in others if s is not None), str(rejected) if rejected else None)
