"""Small corpora in the files and folders in which those of the papers are distributed, prepared by ``entaug data``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from entaug.commands.data import data
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.study.corpora import PaperCorpus, paper_corpora

HELD_OUT = 6
SMALL = 40  # sentences of a training set of which all are used
_SPARE = 20  # sentences of a training set beyond those that are drawn
_TYPES = ("PER", "LOC", "ORG")
_TYPES_OF = {
    "multiconer": ("PER", "LOC", "PROD", "GRP", "CORP", "CW"),
    "bc2gm": ("GENE",),
    "ncbi-disease": ("Disease",),
    "s800": ("Species",),
    "i2b2-2010": ("problem", "test", "treatment"),
    "cadec": ("ADR",),
}
_NESTED, _DISCONTINUOUS = ("ace2004", "ace2005", "genia"), ("cadec", "share13", "share14")


def write_corpora(plan: Path, most: int | None = None) -> None:
    """Prepare the corpora that a plan names by ``entaug data``, as large as it needs them or with so many sentences."""
    sizes: dict[str, int] = {}
    for corpus in tomllib.loads(plan.read_text(encoding="utf-8"))["corpora"]:
        for part, folder in _folders(corpus):
            sizes[folder] = max(sizes.get(folder, SMALL), _needed(corpus) if part == "train" else 0)
    for corpus in paper_corpora().values():
        output = plan.parent.parent / "data" / corpus.folder
        if corpus.folder in sizes and not output.exists():
            source = plan.parent.parent / "source" / corpus.name
            source.mkdir(parents=True)
            data(corpus.name, output, source=_write_source(source, corpus, most or sizes[corpus.folder]))


def _folders(corpus: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The folders in which the parts of a corpus of a plan are, below the folder of all."""
    for part in ("train", "dev", "test"):
        value = corpus.get(part)
        values = value.values() if isinstance(value, dict) else [value]
        yield from ((part, str(Path(*Path(file).parts[2:-1]))) for file in values if isinstance(file, str))


def _needed(corpus: dict[str, Any]) -> int:
    sizes = [size for size in corpus.get("sizes", []) if isinstance(size, int)]
    rest = sum(corpus[part]["rest"] for part in ("dev", "test") if "rest" in corpus.get(part, ""))
    return max(sizes) + rest + _SPARE if sizes else SMALL


def _sentences(corpus: str, part: str, number: int) -> Iterator[Sentence]:
    types = _TYPES_OF.get(corpus, _TYPES)
    for i in range(number):
        label = types[i % len(types)]
        tokens = [f"In{i}", part, "Mrs", f"Name{i % 97}", "saw", "the", f"thing{i % 89}", "again", "."]
        mentions = [Mention(label, [(2, 4)])]
        if corpus in _NESTED:
            mentions.append(Mention(types[(i + 1) % len(types)], [(3, 4)]))
        if corpus in _DISCONTINUOUS:
            mentions.append(Mention(label, [(4, 5), (6, 7)]))
        yield Sentence(tokens[: 6 + i % 4] if corpus not in _DISCONTINUOUS else tokens, mentions)


def _write_source(source: Path, corpus: PaperCorpus, size: int) -> Path:
    """Write a corpus in the files and folders in which it is distributed, and return its path."""
    kind = corpus.folder.split("/")[0]
    sizes = {"train": size, "dev": HELD_OUT, "test": HELD_OUT}
    if kind == "reldi-hr":  # one file, which is divided
        sentences = list(_sentences(kind, "train", 2 * size))
        source /= "reldi.conll"
        source.write_text("".join(_lines(kind, "", sentences)), encoding="utf-8")
        return source
    for part, number in sizes.items():
        sentences = list(_sentences(kind, part, number))
        names = getattr(corpus, part)
        if kind == "mascip":
            documents = [f"10.1000@{part}-{i}" for i in range(0, number, 5)]
            (source / f"ner-{part}-fnames.txt").write_text("".join(f"{name}\n" for name in documents))
            for i, name in enumerate(documents):
                _write_brat(source, name, sentences[5 * i : 5 * i + 5])
        elif kind == "i2b2-2010" and names:
            halves = {"beth": sentences[::2], "partners": sentences[1::2]} if part == "train" else {"": sentences}
            for name, some in halves.items():
                _write_i2b2(source / names[0] / name, some)
        elif corpus.reader and names and names[0].endswith(".json"):
            values = [
                {
                    "sentence": list(s.tokens),
                    "ner": [{"index": list(mention.positions()), "type": mention.label} for mention in s.mentions],
                }
                for s in sentences
            ]
            (source / names[0]).write_text(json.dumps(values), encoding="utf-8")
        elif names:
            (source / names[0]).write_text("".join(_lines(kind, names[0], sentences)), encoding="utf-8")
    return source


def _lines(corpus: str, name: str, sentences: Sequence[Sentence]) -> Iterator[str]:
    """The lines of files with columns, each as its corpus has them."""
    if corpus == "conll" and not name.startswith("esp"):
        yield {"eng": "-DOCSTART- -X- -X- O\n\n", "deu": "-DOCSTART- -X- -X- -X- O\n\n"}.get(
            name[:3], "-DOCSTART- -DOCSTART- O\n"
        )
    for i, sentence in enumerate(sentences):
        if corpus == "multiconer":
            yield f"# id {i:08x}-0000\tdomain=en\n"
        tags = {p: ("B-" if p == m.spans[0][0] else "I-") + m.label for m in sentence.mentions for p in m.positions()}
        for p, token in enumerate(sentence.tokens):
            tag = tags.get(p, "O")
            columns = {
                "eng": f"{token} NN I-NP {tag.replace('B-', 'I-')}",  # IOB1
                "deu": f"{token} {token.lower()} NN I-NC {tag.replace('B-', 'I-')}",
                "esp": f"{token} {tag}",
                "ned": f"{token} N {tag}",
            }
            other = {"multiconer": f"{token} _ _ {tag}", "tdmsci": f"{token}\t{3 * p}\t{tag}"}
            other |= {"ontonotes": f"{token}\tNN\tNN\t{tag}"}
            yield (columns[name[:3]] if corpus == "conll" else other.get(corpus, f"{token}\t{tag}")) + "\n"
        yield "\t\n" if corpus == "wnut17" and i % 3 else "\n"


def _write_brat(folder: Path, name: str, sentences: Sequence[Sentence]) -> None:
    text = ""
    lines: list[str] = []
    for sentence in sentences:
        starts = []
        for token in sentence.tokens:
            starts.append(len(text))
            text += f"{token} "
        for mention in sentence.mentions:
            start, end = mention.spans[0]
            place = f"{starts[start]} {starts[end - 1] + len(sentence.tokens[end - 1])}"
            lines.append(f"T{len(lines) + 1}\t{mention.label} {place}\t{' '.join(sentence.tokens[start:end])}\n")
        text = f"{text.rstrip()}\n"
    (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    (folder / f"{name}.ann").write_text("".join(lines), encoding="utf-8")


def _write_i2b2(folder: Path, sentences: Sequence[Sentence]) -> None:
    for part in ("txt", "concept"):
        (folder / part).mkdir(parents=True)
    for i in range(0, len(sentences), 10):
        some = sentences[i : i + 10]
        concepts = [
            f'c="{" ".join(s.tokens[start:end]).lower()}" {line}:{start} {line}:{end - 1}||t="{m.label}"\n'
            for line, s in enumerate(some, start=1)
            for m in s.mentions
            for start, end in m.spans
        ]
        (folder / "txt" / f"record-{i}.txt").write_text("".join(f"{' '.join(s.tokens)}\n" for s in some))
        (folder / "concept" / f"record-{i}.con").write_text("".join(concepts))
