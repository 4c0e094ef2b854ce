"""The corpora of the papers and of the atlas, by name: what they are, and how a copy becomes files of plans."""

from __future__ import annotations

import hashlib
import re
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from entaug.config.registry import import_object
from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.core.folds import content_key
from entaug.errors import InputError, ParameterError, UnknownNameError, one_line
from entaug.files.atomic import atomic_folder
from entaug.files.streams import decode_text, read_bytes
from entaug.formats.base import ReadReport
from entaug.formats.files import read, write
from entaug.formats.parquet import from_datasets
from entaug.formats.releases import READERS
from entaug.formats.text import DOCUMENT

PARTS = ("train", "dev", "test")
SOURCE_FILE = "SOURCE.md"
_HUB_REVISION = "refs/convert/parquet"  # of datasets that once were programs


@dataclass(frozen=True, kw_only=True)
class PaperCorpus:
    """A corpus; the fields are the keys of ``corpora.toml``."""

    name: str
    title: str
    papers: Sequence[str]
    address: str
    licence: str
    folder: str = ""
    repository: str = ""
    reader: str = ""
    release: str = ""
    train: Sequence[str] = ()
    dev: Sequence[str] = ()
    test: Sequence[str] = ()
    lists: Sequence[str] = ()
    shares: Sequence[int] = ()
    ordered: bool = False  # whether the shares are taken in the order of the corpus
    numbered: bool = False  # whether a digit follows each character, its place in a word
    split: str = ""
    sentences: Sequence[int] = ()
    sums: Sequence[str] = ()
    hub: str = ""

    @property
    def origin(self) -> str:
        """Where the files that are read come from."""
        return self.repository or self.address

    @property
    def counted(self) -> str:
        """Whose numbers of sentences these are."""
        return "known here" if self.sums else "published"


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
    done = Prepared()
    if source is None and hub is not None:
        parts = _from_hub(hub)
    elif source is None or hub is not None:
        remedy = f"get it from {corpus.origin} ({corpus.licence}), and name the folder as `source`"
        raise ParameterError("one source is wanted: a local copy, or the hub", remedy=remedy)
    elif not source.exists():
        raise InputError("no such file or folder", path=str(source), remedy="name the corpus as it was distributed")
    elif _has_parts(corpus, source):
        if lists is not None:
            remedy = f"leave out `lists`; see entaug data {corpus.name}"
            raise ParameterError("lists divide documents, and each part has a file or folder here", remedy=remedy)
        parts = _by_files(corpus, source, done)
    else:
        parts = _by_documents(corpus, source, lists, seed, done)
    expected = dict(zip(PARTS, corpus.sentences, strict=False))
    with atomic_folder(output) as folder:
        for part, sentences in parts.items():
            write(sentences, folder / f"{part}.jsonl")
            done.counts[part] = len(sentences)
            if expected.get(part, len(sentences)) != len(sentences):
                done.notes.append(f"{part} has {len(sentences):,} sentences; {corpus.counted} are {expected[part]:,}")
        (folder / SOURCE_FILE).write_text(_described(corpus, done, hub), "utf-8")
    return done


def _from_hub(name: str) -> dict[str, list[Sentence]]:
    load = import_object("datasets:load_dataset")
    is_local = Path(name).exists()
    try:
        dataset = load(name) if is_local else load(name, revision=_HUB_REVISION)
    except (OSError, ValueError) as error:  # no network, no such dataset, no data in the folder
        remedy = "check the name and the network, or give a folder of it as `source`"
        raise InputError(f"the dataset {name!r} cannot be loaded ({one_line(error)})", remedy=remedy) from None
    loaded = from_datasets(dataset)
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
        found = next((some for name in names if (some := list(_named(source, name)))), [])
        if not found:
            distributed = f"as it was distributed{f' ({corpus.release})' * bool(corpus.release)}"
            remedy = f"name the folder of the corpus {distributed}; see {corpus.origin}"
            raise InputError(f"no {' or '.join(names)} for {part}", path=str(source), remedy=remedy)
        known = next(sums, None)
        path = next((one for one in found if known and _sum(one) == known), None)
        if path is None:
            path, *others = [one for one in found if len(one.parts) == len(found[0].parts)]
            if others:
                what = f"has several of the name {path.name}, such as {path} and {others[0]}"
                raise InputError(what, path=str(source), remedy=f"name the folder of {corpus.title}")
            if known:
                done.notes.append(f"{path.name} is not the file that was known here (SHA-256 {known[:12]}...)")
        if corpus.reader in READERS and path.is_dir():
            report = ReadReport(repair=True)
            parts[part] = [s for _, some in READERS[corpus.reader](path, report) for s in some]
            done.notes += report.lines()
        else:
            parts[part] = list(_read(path, (path.is_dir() and corpus.reader) or None, done, f"{path.name}: "))
            if corpus.numbered:
                parts[part] = [
                    s.with_(tokens=tuple(re.sub(r"(?<=.)\d$", "", token) for token in s.tokens)) for s in parts[part]
                ]
    return parts


def _sum(path: Path) -> str:
    """The SHA-256 of a file; nothing of a folder."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _named(source: Path, name: str) -> Iterator[Path]:
    """The files and folders of this name in a folder, the nearest first."""
    if source.is_file():
        return iter([source] if source.name == name else [])
    return iter(sorted(source.rglob(name), key=lambda path: (len(path.parts), str(path))))


def _by_documents(
    corpus: PaperCorpus, source: Path, lists: Path | None, seed: int, done: Prepared
) -> dict[str, list[Sentence]]:
    """The parts that lists of documents, or shares of them, tell."""
    folder, names = source, dict(zip(PARTS, corpus.lists, strict=False))
    if lists is not None:
        folder, names = lists, {part: f"{part}.txt" for part in PARTS}
    files = {part: file for part, name in names.items() for file in [next(_named(folder, name), None)] if file}
    if not files and (lists is not None or not corpus.shares):
        remedy = f"name their folder as `lists`{f' ({corpus.split})' * bool(corpus.split)}"
        raise InputError(f"no lists of documents ({', '.join(names.values())})", path=str(folder), remedy=remedy)
    documents = _documents(corpus, source, done)
    if files:
        return _listed(documents, files, done)
    order = list(documents)
    if not corpus.ordered:
        Random(f"{corpus.name} {seed}").shuffle(order)
        how = f"divided at random ({':'.join(map(str, corpus.shares))})"
        done.notes.append(f"{how}; the paper's parts are those of {corpus.split}: give these as `lists`")
    ends = [round(len(order) * share / sum(corpus.shares)) for share in accumulate(corpus.shares)]
    bounds = zip(PARTS, [0, *ends], ends, strict=False)
    return {part: [s for name in order[start:end] for s in documents[name]] for part, start, end in bounds}


def _documents(corpus: PaperCorpus, source: Path, done: Prepared) -> dict[str, Sequence[Sentence]]:
    """The sentences of each document; where there are none, each sentence is one."""
    if corpus.reader in READERS:
        report = ReadReport(repair=True)
        found = [*READERS[corpus.reader](source, report)]
        documents = dict(found)
        done.notes += report.lines()
        if double := len(found) - len(documents):
            done.notes.append(f"{double:,} documents have the name of a later one, which is taken in their place")
        if corpus.ordered:  # by sentences
            return {f"{name} {i}": [s] for name, some in documents.items() for i, s in enumerate(some)}
        return {**documents}
    parts: dict[str, list[Sentence]] = {}
    for sentence in _read(source, corpus.reader or None, done):
        name = sentence.fields.get(DOCUMENT, [sentence.id or content_key(sentence)])[0]
        parts.setdefault(str(name), []).append(sentence)
    return {**parts}


def _read(path: Path, form: str | None, done: Prepared, prefix: str = "") -> Corpus:
    """Read a file or a folder in a format of entaug, and take the notes."""
    options = {"misaligned": "cut"} if form == "brat" else {}
    with warnings.catch_warnings(action="ignore"):  # the notes are in the result
        corpus = read(path, form, repair=True, **options)
    done.notes += [prefix + note for note in corpus.notes]
    return corpus


def _listed(
    documents: Mapping[str, Sequence[Sentence]], files: dict[str, Path], done: Prepared
) -> dict[str, list[Sentence]]:
    """The sentences of the documents that the list of each part names."""
    stems = {_stem(name): name for name in documents}
    place: dict[str, str] = {}
    parts: dict[str, list[Sentence]] = {}
    for part, file in files.items():
        parts[part] = []
        lines = decode_text(read_bytes(file), file).splitlines()
        for number, name in ((i, name) for i, line in enumerate(lines, 1) for name in line.split()):
            stem = _stem(name)
            if stem not in stems or stem in place:
                what = f"{name} is in the list {place[stem]} already" if stem in place else f"no document {name}"
                raise InputError(what, path=str(file), line=number, remedy="check `source` and `lists`")
            place[stem] = file.name
            parts[part] += documents[stems[stem]]
        if not parts[part]:
            raise InputError("names no document", path=str(file), remedy="name some, one a line, or remove the list")
    done.notes += [f"no list for {part}, which is not written" for part in PARTS if part not in files]
    if left := len(documents) - len(place):  # also one of two that have the same name in different folders
        done.notes.append(f"{left:,} of {len(documents):,} documents are in no list and left out")
    return parts


def _stem(document: str) -> str:
    """The name of a document without its folder and the endings of its files."""
    return Path(document).name.removesuffix(".ann").removesuffix(".txt")


def _described(corpus: PaperCorpus, done: Prepared, hub: str | None) -> str:
    """A page about what was written."""
    lines: list[Any] = [f"# {corpus.title}", "", f"- from: {hub or corpus.origin}", f"- licence: {corpus.licence}"]
    lines += [f"- {part}: {count:,} sentences" for part, count in done.counts.items()]
    return "\n".join([*lines, *(f"- note: {note}" for note in done.notes)]) + "\n"
