"""Augmented sentences beside the gold sentences they were made from, read back from files."""

from __future__ import annotations

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from entaug.core.corpus import keys_of
from entaug.core.data import Provenance, Sentence
from entaug.core.explain import explain
from entaug.core.progress import Progress
from entaug.errors import InputError
from entaug.files.folders import unused_name
from entaug.formats.base import ReadReport
from entaug.formats.corpus_file import CorpusFile
from entaug.formats.file_job import FileJob, read_sentences
from entaug.formats.files import read_each, target


@dataclass(frozen=True, slots=True)
class AugmentedPair:
    """An augmented sentence and the gold sentences it was made from.

    Args:
        augmented: the augmented sentence, with its provenance where its file has that.
        source: the gold sentence it was made from; None if it is unknown. A sentence that was generated without
            conditioning has the gold sentence whose position in the output it takes.
        other_sources: further gold sentences, for methods that combine several.
        rejection: the reason why the sentence was rejected; None for an accepted one.

    Example:
        >>> gold = Sentence(["Ada", "laughs"])
        >>> AugmentedPair(Sentence(["Bo", "laughs"]), gold).source == gold
        True
    """

    augmented: Sentence
    source: Sentence | None = None
    other_sources: tuple[Sentence, ...] = ()
    rejection: str | None = None

    @property
    def provenance(self) -> Provenance:
        """The provenance of the augmented sentence, empty where its file has none."""
        return self.augmented.provenance or Provenance()

    @property
    def sources(self) -> list[Sentence]:
        """The gold sentences that are known."""
        return [one for one in (self.source, *self.other_sources) if one is not None]

    def _repr_html_(self) -> str:
        """Return the sentence and its sources for a notebook."""
        from entaug.core.html import for_notebook, versions_to_html

        return for_notebook(versions_to_html([(self.augmented, self.sources)], [self.explain()]))

    def explain(self) -> str:
        """Return in words how the sentence was made, as far as its provenance says.

        Example:
            >>> import entaug
            >>> gold = [Sentence("in Rome".split(), [entaug.Mention("LOC", [(1, 2)])], id="a"),
            ...         Sentence("to Oslo".split(), [entaug.Mention("LOC", [(1, 2)])], id="b")]
            >>> first, *_ = entaug.create_augmenter("mr", p=1.0, seed=3).fit(gold).augment(gold)
            >>> AugmentedPair(first, gold[0]).explain()
            "mr: 'Oslo' (LOC) in place of 'Rome'; from sentence a; seed 3"
        """
        return explain(self.augmented, self.source, self.other_sources)


@dataclass
class AugmentedCorpus:
    """Gold sentences and what methods made from them."""

    gold: list[Sentence] = field(default_factory=list)
    methods: dict[str, list[AugmentedPair]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def pair_with_sources(
    sentences: Iterable[Sentence], gold: Sequence[Sentence] | None = None
) -> list[AugmentedPair | None]:
    """Pair the augmented sentences of a file with their sources, by the rules of `read_augmented`.

    Args:
        sentences: the sentences of one file.
        gold: the sentences that were augmented; by default those of `sentences` that have no provenance.

    Returns:
        A pair for each augmented sentence and None for each gold one, in the order of `sentences`.

    Example:
        >>> import entaug
        >>> gold = [Sentence("a b c d e".split())]
        >>> new = entaug.create_augmenter("sis").augment(gold)
        >>> [pair and pair.source == gold[0] for pair in pair_with_sources([*gold, *new])]
        [None, True]
    """
    given = list(sentences)
    flags = _are_augmented(given, None if gold is None else {sentence.fingerprint() for sentence in gold})
    index = _GoldIndex()
    index.add(gold if gold is not None else [s for s, augmented in zip(given, flags, strict=True) if not augmented])
    return [index.pair(sentence) if augmented else None for sentence, augmented in zip(given, flags, strict=True)]


def read_augmented(paths: Iterable[str | Path], gold: str | Path | None = None, **options: Any) -> AugmentedCorpus:
    """Read augmented files and pair each augmented sentence with its source.

    Sentences with provenance are augmented, the others are gold. In a file without any provenance, the sentences that
    are not in the gold file are augmented too; their method and source are unknown.

    Args:
        paths: files in any format, also those of rejected sentences.
        gold: the file that was augmented; required where `paths` hold augmented sentences only.
        options: options of `entaug.read`. Options of one format apply to the files in that format; ``format`` applies
            to files whose name does not tell their format.

    Returns:
        The gold sentences, the augmented sentences by method, and notes for the user.

    Raises:
        InputError: a file is faulty.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> gold = [Sentence("a b c d e".split())]
        >>> file = pathlib.Path(tempfile.mkdtemp(), "new.jsonl")
        >>> _ = entaug.write([*gold, *entaug.create_augmenter("sis").augment(gold)], file)
        >>> [pair] = read_augmented([file]).methods["sis"]
        >>> pair.source == gold[0], sorted(pair.augmented.tokens)
        (True, ['a', 'b', 'c', 'd', 'e'])
    """
    corpus = AugmentedCorpus()
    distinct: dict[Path, str | Path] = {}
    for path in paths:
        if (place := Path(path).resolve()) in distinct:
            corpus.notes.append(f"{path} is given more than once; it is read once")
        else:
            distinct[place] = path
    contents = [list(c) for c in read_each([*distinct.values(), *([gold] if gold is not None else [])], **options)]
    given_gold = contents.pop() if gold is not None else None
    fingerprints = None if given_gold is None else {sentence.fingerprint() for sentence in given_gold}
    index = _GoldIndex()
    if given_gold is not None:
        index.add(given_gold)
    groups: dict[tuple[str, str], list[tuple[str, Sentence]]] = defaultdict(list)
    for path, sentences in zip(map(str, distinct.values()), contents, strict=True):
        flags = _are_augmented(sentences, fingerprints)
        for sentence, augmented in zip(sentences, flags, strict=True):
            if augmented:
                provenance = sentence.provenance or Provenance()
                groups[provenance.method, provenance.signature or path].append((path, sentence))
        if given_gold is None:
            index.add([s for s, augmented in zip(sentences, flags, strict=True) if not augmented])
    corpus.gold = index.sentences
    if not groups and given_gold is None and corpus.gold and not any(s.provenance for s in corpus.gold):
        corpus.notes.append("no sentence has provenance; to compare augmented sentences with gold, name the gold file")
    _add_methods(corpus, groups, index)
    return corpus


def _are_augmented(sentences: Sequence[Sentence], gold_fingerprints: Collection[bytes] | None) -> list[bool]:
    """Whether each sentence of a file is augmented."""
    # Where any sentence has provenance, all augmented ones do: the tokens of gold sentences may differ from those of
    # the gold file by now.
    flags = [sentence.provenance is not None and bool(sentence.provenance.method) for sentence in sentences]
    if gold_fingerprints is not None and not any(flags):
        flags = [sentence.fingerprint() not in gold_fingerprints for sentence in sentences]
    return flags


class _GoldIndex:
    """Gold sentences by the keys that provenance names them by."""

    def __init__(self) -> None:
        self.sentences: list[Sentence] = []
        self._by_key: dict[str, Sentence] = {}
        self._by_fingerprint: dict[str, Sentence] = {}

    def add(self, sentences: Iterable[Sentence]) -> None:
        """Add the sentences of one file; a sentence that an earlier file has is not added again."""
        sentences = list(sentences)
        for sentence, key in zip(sentences, keys_of(sentences), strict=True):
            if key not in self._by_key:
                self._by_key[key] = sentence
                self.sentences.append(sentence)
                if sentence.id is not None:
                    # A sentence without an id is named by its content; formats may have given it an id since.
                    self._by_fingerprint.setdefault(sentence.fingerprint().hex(), sentence)

    def find(self, key: str) -> Sentence | None:
        """The sentence of a key; for a numbered key of equal sentences without ids, any of these."""
        for name in (key, re.sub(r"^([0-9a-f]{16})-\d+$", r"\1", key)):
            for sentences in (self._by_key, self._by_fingerprint):
                if name in sentences:
                    return sentences[name]
        return None

    def pair(self, augmented: Sentence) -> AugmentedPair:
        """Pair an augmented sentence with the sources that its provenance names."""
        provenance = augmented.provenance or Provenance()
        source, *others = [self.find(key) for key in provenance.sources] or [None]
        known = tuple(other for other in others if other is not None)
        return AugmentedPair(augmented, source, known, provenance.rejected)


def _add_methods(
    corpus: AugmentedCorpus, groups: Mapping[tuple[str, str], list[tuple[str, Sentence]]], index: _GoldIndex
) -> None:
    """Name each group of sentences with the same method and signature, and pair its sentences."""
    missing = 0
    for (method, _), sentences in groups.items():
        is_only = sum(other == method for other, _ in groups) == 1
        stems = ", ".join(sorted({Path(path).stem for path, _ in sentences}))
        base = method if method and is_only else f"{method} ({stems})".strip()
        name = unused_name(base, corpus.methods, " ")
        pairs = [index.pair(sentence) for _, sentence in sentences]
        missing += sum(pair.source is None and bool(pair.provenance.sources) for pair in pairs)
        corpus.methods[name] = pairs
    if missing:
        corpus.notes.append(
            f"the source of {missing:,} augmented sentences is not among the gold sentences; name the gold file"
        )


@dataclass
class PairedFile:
    """A file of augmented sentences to judge: read, paired with the sources, and with the output opened."""

    job: FileJob
    source: CorpusFile
    target_file: CorpusFile
    reading: ReadReport
    sentences: list[Sentence]
    pairs: list[AugmentedPair | None]
    gold: list[Sentence]

    @classmethod
    @contextlib.contextmanager
    def open(cls, job: FileJob, gold: str | Path | None, progress: Progress) -> Iterator[PairedFile]:
        """Read a file of augmented sentences, with the gold ones or without; open the output."""
        with job.open() as (source, target_file):
            reading = ReadReport(repair=job.repair)
            sentences = list(read_sentences(source, reading, progress=progress))
            given_gold = None if gold is None else list(job.read(gold)[0])
            pairs = pair_with_sources(sentences, given_gold)
            if not any(pairs):
                raise InputError(
                    "holds no augmented sentence" + (" that says so" if given_gold is None else ""),
                    path=str(job.input),
                    remedy="name the file that was augmented as `gold`",
                )
            if given_gold is None:
                given_gold = [s for s, pair in zip(sentences, pairs, strict=True) if pair is None]
            yield cls(job, source, target_file, reading, sentences, pairs, given_gold)

    def write(
        self, sentences: Sequence[Sentence], rejections: Sequence[str | None], rejected: Path | None
    ) -> Counter[str]:
        """Write the kept and the rejected sentences, moved into place together; return what could not be stored."""
        judged = list(zip(sentences, rejections, strict=True))
        lost = Counter(
            name for sentence, reason in judged if reason is None for name in self.target_file.lost(sentence)
        )
        self.reading.notes.update(self.job.settle_losses(lost, self.target_file))
        kept = [self.target_file.encode(sentence) for sentence, reason in judged if reason is None]
        left_out = []
        if rejected is not None:
            file = target(rejected, "jsonl")
            made = (
                (sentence, sentence.provenance or Provenance(), reason)
                for sentence, reason in judged
                if reason is not None
            )
            left_out = [file.encode(s.with_(provenance=replace(how, rejected=reason))) for s, how, reason in made]
        key = blake2b(repr((self.target_file.dialect, kept, left_out)).encode(), digest_size=16).hexdigest()
        with self.target_file.open_run(key, force=self.job.force, rejected=rejected) as writer:
            writer.write(kept)
            writer.write_rejected(left_out)
            writer.release()
        return lost
