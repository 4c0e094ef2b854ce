"""The corpora of the papers, by name: what they are, where they come from, and how a copy becomes files of plans."""

from __future__ import annotations

import hashlib
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, groupby
from pathlib import Path
from random import Random
from typing import Any

from entaug.config.registry import import_object
from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.core.folds import content_key
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.files.atomic import atomic_folder
from entaug.formats.base import ReadReport, note_lines
from entaug.formats.files import read, write
from entaug.formats.parquet import from_datasets
from entaug.formats.releases import READERS
from entaug.formats.text import DOCUMENT

PARTS = ("train", "dev", "test")
SOURCE_FILE = "SOURCE.md"
_HUB_REVISION = "refs/convert/parquet"  # of datasets that once were programs


@dataclass(frozen=True, kw_only=True)
class PaperCorpus:
    """A corpus of a paper; the fields are the keys of ``corpora.toml``."""

    name: str
    title: str
    papers: Sequence[str]
    address: str
    licence: str
    folder: str
    reader: str = ""
    train: Sequence[str] = ()
    dev: Sequence[str] = ()
    test: Sequence[str] = ()
    lists: Sequence[str] = ()
    shares: Sequence[int] = ()
    ordered: bool = False  # whether the shares are taken in the order of the corpus
    split: str = ""
    sentences: Sequence[int] = ()
    sums: Sequence[str] = ()
    hub: str = ""


@dataclass(kw_only=True)
class Prepared:
    """The parts of a corpus that were written, and notes."""

    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@cache
def paper_corpora() -> dict[str, PaperCorpus]:
    """The corpora by name."""
    table = tomllib.loads(Path(__file__).with_name("corpora.toml").read_text("utf-8"))
    return {name: PaperCorpus(name=name, **values) for name, values in table.items()}


def find_corpus(name: str) -> PaperCorpus:
    """The corpus of a name."""
    if name not in paper_corpora():
        raise UnknownNameError("corpus", name, paper_corpora())
    return paper_corpora()[name]


def prepare(
    corpus: PaperCorpus, output: Path, *, source: Path | None, lists: Path | None, hub: str | None, seed: int
) -> Prepared:
    """Write the parts of a corpus from a copy of it, or from the hub."""
    if (source is None) == (hub is None):
        remedy = f"get it from {corpus.address} ({corpus.licence}), and name the folder with --source"
        raise ParameterError("one source is wanted: a local copy, or the hub", remedy=remedy)
    done = Prepared()
    if hub is not None:
        parts = _from_hub(hub)
    elif _has_parts(corpus, Path(source or ".")):
        parts = _by_files(corpus, Path(source or "."), done)
    else:
        parts = _by_documents(corpus, Path(source or "."), lists, seed, done)
    expected = dict(zip(PARTS, corpus.sentences, strict=False))
    with atomic_folder(output) as folder:
        for part, sentences in parts.items():
            write(sentences, folder / f"{part}.jsonl")
            done.counts[part] = len(sentences)
            if expected.get(part, len(sentences)) != len(sentences):
                done.notes.append(f"{part} has {len(sentences):,} sentences; published are {expected[part]:,}")
        (folder / SOURCE_FILE).write_text(_described(corpus, done, hub), "utf-8")
    return done


def _from_hub(name: str) -> dict[str, list[Sentence]]:
    load = import_object("datasets:load_dataset")
    is_local = Path(name).exists()
    loaded = from_datasets(load(name) if is_local else load(name, revision=_HUB_REVISION))
    names = {"validation": "dev", "valid": "dev"}
    if not isinstance(loaded, dict):
        return {"train": list(loaded)}
    return {names.get(str(part), str(part)): list(sentences) for part, sentences in loaded.items()}


def _has_parts(corpus: PaperCorpus, source: Path) -> bool:
    """Whether the parts are files or folders of their own, or must be; otherwise documents are divided."""
    is_divided = corpus.shares or corpus.lists
    return not is_divided or any(True for name in corpus.train for _ in _named(source, name))


def _by_files(corpus: PaperCorpus, source: Path, done: Prepared) -> dict[str, list[Sentence]]:
    """The parts that have files, or folders, of their own."""
    parts: dict[str, list[Sentence]] = {}
    sums = iter(corpus.sums)
    for part in PARTS:
        names = getattr(corpus, part)
        if not names:
            continue
        path = next((one for name in names for one in _named(source, name)), None)
        if path is None:
            remedy = f"name the folder of the corpus as it was distributed; see {corpus.address}"
            raise InputError(f"no {' or '.join(names)} for {part}", path=str(source), remedy=remedy)
        known = next(sums, None)
        if known is not None and hashlib.sha256(path.read_bytes()).hexdigest() != known:
            done.notes.append(f"{path.name} is not the file that was known here (SHA-256 {known[:12]}...)")
        if corpus.reader and path.is_dir():
            report = ReadReport(repair=True)
            parts[part] = [s for _, some in READERS[corpus.reader](path, report) for s in some]
            done.notes += _notes(report)
        else:
            parts[part] = list(_read(path, None, done))
    return parts


def _named(source: Path, name: str) -> Iterator[Path]:
    """The files and folders of this name in a folder, the nearest first."""
    if source.is_file():
        return iter([source] if source.name == name else [])
    return iter(sorted(source.rglob(name), key=lambda path: (len(path.parts), str(path))))


def _by_documents(
    corpus: PaperCorpus, source: Path, lists: Path | None, seed: int, done: Prepared
) -> dict[str, list[Sentence]]:
    """The parts that lists of documents, or shares of them, tell."""
    documents = _documents(corpus, source, done)
    names = dict(zip(PARTS, corpus.lists, strict=False))
    if lists is not None:
        source, names = lists, {part: f"{part}.txt" for part in PARTS}
    files = {part: file for part, name in names.items() for file in [next(_named(source, name), None)] if file}
    if files:
        return {part: _listed(documents, file) for part, file in files.items()}
    if not corpus.shares:
        raise InputError("no lists of documents", path=str(source), remedy="name their folder with --lists")
    order = list(documents)
    if not corpus.ordered:
        Random(f"{corpus.name} {seed}").shuffle(order)
        how = f"divided at random ({':'.join(map(str, corpus.shares))})"
        done.notes.append(f"{how}; the paper's parts are those of {corpus.split}: give these with --lists")
    ends = [round(len(order) * share / sum(corpus.shares)) for share in accumulate(corpus.shares)]
    bounds = zip(PARTS, [0, *ends], ends, strict=False)
    return {part: [s for name in order[start:end] for s in documents[name]] for part, start, end in bounds}


def _documents(corpus: PaperCorpus, source: Path, done: Prepared) -> dict[str, Sequence[Sentence]]:
    """The sentences of each document; where there are none, each sentence is one."""
    if corpus.reader in READERS:
        report = ReadReport(repair=True)
        documents = dict(READERS[corpus.reader](source, report))
        done.notes += _notes(report)
        if corpus.ordered:  # by sentences
            return {f"{name} {i}": [s] for name, some in documents.items() for i, s in enumerate(some)}
        return {**documents}
    return {
        str(name): list(group)
        for name, group in groupby(
            _read(source, corpus.reader or None, done), lambda s: s.fields.get(DOCUMENT, [s.id or content_key(s)])[0]
        )
    }


def _read(path: Path, form: str | None, done: Prepared) -> Corpus:
    """Read a file or a folder in a format of entaug, and take the notes."""
    options = {"misaligned": "cut"} if form == "brat" else {}
    with warnings.catch_warnings(action="ignore"):  # the notes are in the result
        corpus = read(path, form, repair=True, **options)
    done.notes += corpus.notes
    return corpus


def _listed(documents: dict[str, Sequence[Sentence]], file: Path) -> list[Sentence]:
    """The sentences of the documents that a list names."""
    stems = {Path(name).name.removesuffix(".ann").removesuffix(".txt"): name for name in documents}
    found: list[Sentence] = []
    for number, line in enumerate(file.read_text("utf-8").split(), 1):
        stem = Path(line).name.removesuffix(".ann").removesuffix(".txt")
        if stem not in stems:
            raise InputError(f"no document {line}", path=str(file), line=number, remedy="check --source and --lists")
        found += documents[stems[stem]]
    return found


def _notes(report: ReadReport) -> list[str]:
    return note_lines({**report.repaired, **report.notes})


def _described(corpus: PaperCorpus, done: Prepared, hub: str | None) -> str:
    """A page about what was written."""
    lines: list[Any] = [f"# {corpus.title}", "", f"- from: {hub or corpus.address}", f"- licence: {corpus.licence}"]
    lines += [f"- {part}: {count:,} sentences" for part, count in done.counts.items()]
    return "\n".join([*lines, *(f"- note: {note}" for note in done.notes)]) + "\n"
