"""Files of corpora as they are distributed, in forms that are read, and never written.

ACE (``.sgm`` and ``.apf.xml``), OntoNotes (the columns of CoNLL 2012), GENIA (one file of XML), CADEC (texts and ranges
in neighbouring folders) and ShARe/CLEF (texts, and lines with ranges, of 2013 or 2014). A reader yields the documents
of a file or of a folder, in the order of their names.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError
from entaug.files.folders import natural_sort_key, unused_name
from entaug.files.streams import decode_text, read_bytes
from entaug.formats.base import ReadReport
from entaug.formats.text import CharMention, Document, SegmentationOptions, split_document

Documents = Iterator[tuple[str, list[Sentence]]]
"""The names of documents, with their sentences."""
_TAG, _ENTITY = re.compile(r"<[^<>]+>"), re.compile(r"&(?:amp|AMP|lt|gt|quot|apos);")
_WRAPPED = re.compile(r"(>[ \t]*)?\n(?![ \t]*[\n<])")  # but for those beside a tag, which begins or ends something
_GENIA_TYPES = ("protein", "DNA", "RNA", "cell_type", "cell_line")
_NAMES = 10  # the column of names in CoNLL 2012
_AS_DISTRIBUTED = "take the file as it was distributed"
_BRACKETS = "correct the brackets of column 11"
_RANGES = re.compile(r"\d{1,9}-\d{1,9}(,\d{1,9}-\d{1,9})*")
_NUMBER = re.compile(r"\d{1,9}")
_NO_TEXTS = ("readme", "license", "sha256sums", "train", "dev", "test")  # pages of PhysioNet, and lists of documents


def read_ace(path: Path, report: ReadReport) -> Documents:
    """ACE 2004 and 2005: the extents of mentions of entities; offsets leave out tags, and count ``&amp;`` as five."""
    # As in the papers, sentences are those of the element TEXT, and go on where one line ends and another follows.
    files = _files(path, ".apf.xml")
    for file in [file for file in files if file.parent.name == "timex2norm"] or files:  # the last of four passes
        sgm = _text_of(file.with_name(file.name.replace(".apf.xml", ".sgm")), file)
        sgm = _WRAPPED.sub(lambda match: match[0] if match[1] else " ", sgm)
        raw = _TAG.sub("", sgm)
        escapes = [match.end() for match in _ENTITY.finditer(raw)]
        shorter = [match.end() - match.start() - 1 for match in _ENTITY.finditer(raw)]
        text, mentions = _ENTITY.sub(lambda match: html.unescape(match[0]), raw), []
        sizes = [len(_ENTITY.sub("&", _TAG.sub("", part))) for part in re.split("</?TEXT>", sgm)]
        first, last = (sizes[0], sizes[0] + sizes[1]) if len(sizes) == 3 else (0, len(text))
        for entity in _parsed(file).iter("entity"):
            for extent in entity.iterfind("entity_mention/extent/charseq"):
                places = extent.get("START", ""), extent.get("END", "")
                if not all(map(_NUMBER.fullmatch, places)):
                    what = f"the mention {''.join(extent.itertext())[:40]!r} has no numbers as START and END"
                    raise InputError(what, path=str(file), remedy=_AS_DISTRIBUTED)
                start, end = int(places[0]), int(places[1]) + 1  # END is within
                start, end = (place - sum(shorter[: bisect_right(escapes, place)]) for place in (start, end))
                _check(start, end, text, "".join(extent.itertext()), file)
                if first <= start and end <= last:
                    mentions.append(CharMention(entity.get("TYPE", ""), ((start - first, end - first),)))
                else:
                    report.notes["mention outside the element TEXT left out"] += 1
        yield _cut(file.name.removesuffix(".apf.xml"), text[first:last], mentions, file, report)


def read_share(path: Path, report: ReadReport) -> Documents:
    """ShARe/CLEF 2013 (``NAME||Disease_Disorder||CUI||start||end``) and 2014 (``NAME|start-end,start-end|CUI``)."""
    annotations: dict[Path, str] = {}
    texts: dict[str, tuple[Path, str]] = {}
    for file in _files(path, ".pipe", ".text", ".txt"):
        if file.suffix != ".pipe" and file.stem.lower() in _NO_TEXTS:
            continue
        content = _read_text(file)
        # The gold of the test documents of 2013 is in files of their names, and in an empty one where it has none.
        if file.name.endswith((".pipe", ".pipe.txt")) or content.startswith(f"{file.name}||") or not content:
            annotations[file] = content
        elif (other := texts.setdefault(file.stem, (file, content)))[1] != content:
            remedy = "name the folder with one of them"
            raise InputError(f"is another text than {other[0]}, of the same name", path=str(file), remedy=remedy)
    if not annotations:  # an error, here or, of a single file, below
        annotations, texts = {file: _read_text(file) for file in _files(path, ".pipe", ".pipe.txt")}, {}
    found: dict[str, list[CharMention]] = {name: [] for name in texts}
    for file, content in annotations.items():
        for number, line in enumerate(content.splitlines(), 1):
            name, *cells = line.strip().split("||" if "||" in line else "|")
            if not line.strip():
                continue
            is_new = bool(cells and _RANGES.fullmatch(cells[0]))
            ranges = re.split("[-,]", cells[0]) if is_new else cells[2:]
            name = name.removesuffix(".text").removesuffix(".txt")
            if name not in found or not ranges or len(ranges) % 2 or not all(map(_NUMBER.fullmatch, ranges)):
                what = f"no text {name}" if name not in found else f"{line[:60]!r} is no mention"
                raise InputError(what, path=str(file), line=number, remedy="keep texts and annotations in one folder")
            places = [*map(int, ranges)]
            found[name].append(CharMention("Disorder", tuple(zip(places[::2], places[1::2], strict=True))))
    for name, (file, text) in texts.items():
        if not found[name]:
            report.notes["document without a mention: check that its annotations were read"] += 1
        yield _cut(name, text, found[name], file, report)


def read_cadec(path: Path, report: ReadReport) -> Documents:
    """CADEC: texts in ``text``, and adverse drug reactions among the ranges of characters in ``original``."""
    for file in _files(path / "original", ".ann"):
        text = _text_of(path / "text" / f"{file.stem}.txt", file)
        mentions = []
        for number, line in enumerate(_read_text(file).splitlines(), 1):
            if not line.startswith("T"):
                continue
            try:
                _, place, _words = line.split("\t", 2)
                label, ranges = place.split(" ", 1)
                spans = tuple((int(start), int(end)) for start, end in (one.split() for one in ranges.split(";")))
            except ValueError:
                what = f"{line[:60]!r} is no mention"
                raise InputError(what, path=str(file), line=number, remedy=_AS_DISTRIBUTED) from None
            if label == "ADR":
                mentions.append(CharMention(label, spans))
        yield _cut(file.stem, text, mentions, file, report, split="lines")  # as Dai et al. (2020) count sentences


def read_genia(path: Path, report: ReadReport) -> Documents:
    """GENIA 3.02, its terms of five types; terms without a type of their own, as in coordinations, are left out."""
    for file in _files(path, "GENIAcorpus3.02.xml", "GENIAcorpus3.02.merged.xml", "genia.xml")[:1]:  # of the same text
        names: set[str] = set()
        for article in _parsed(file).iter("article"):
            name = (article.findtext("articleinfo/bibliomisc") or "").removeprefix("MEDLINE:")
            name = unused_name(name, names, "+")  # one article is there twice, and counted twice in the papers
            names.add(name)
            sentences = []
            for number, element in enumerate(article.iter("sentence"), 1):
                mentions: list[CharMention] = []
                text = _genia_text(element, mentions)
                sentences += _cut(f"{name}:{number}", text, mentions, file, report, split="none")[1]
            yield name, sentences


def _genia_text(sentence: ET.Element, mentions: list[CharMention]) -> str:
    """The text of a sentence, and the mentions in it."""
    text, todo = sentence.text or "", [(child, -1) for child in reversed(sentence)]
    while todo:  # no recursion, which a file could make too deep
        element, begin = todo.pop()
        if begin < 0:  # it begins here, and comes again where it ends
            todo += [(element, len(text)), *((child, -1) for child in reversed(element))]
            text += element.text or ""
            continue
        sem = element.get("sem", "").removeprefix("G#")
        label = next((name for name in _GENIA_TYPES if sem == name or sem.startswith(f"{name}_")), None)
        if label is not None:
            mentions.append(CharMention(label, ((begin, len(text)),)))
        text += element.tail or ""
    return text


def read_ontonotes(path: Path, report: ReadReport) -> Documents:
    """OntoNotes in the columns of CoNLL 2012: the names, in brackets; not the New Testament, which has none."""
    del report
    for file in _files(path, "_conll"):
        if file.name.endswith("auto_conll") and file.with_name(f"{file.name[:-10]}gold_conll").exists():
            continue  # names that a program found
        sentences: list[Sentence] = []
        name, words, mentions, begun = file.name, list[str](), list[Mention](), list[tuple[str, int]]()
        for number, line in enumerate([*_read_text(file).splitlines(), ""], 1):
            if line.startswith("#begin document"):
                name = line.partition("(")[2].partition(")")[0] or file.name
            elif not line.strip() or line.startswith("#"):
                if begun:
                    what = f"the name {begun[-1][0]} has no end in its sentence"
                    raise InputError(what, path=str(file), line=number - 1, remedy=_BRACKETS)
                if words and not name.startswith("pt/"):
                    sentences.append(Sentence(words, mentions, f"{name}:{len(sentences) + 1}"))
                words, mentions = [], []
            else:
                columns = line.split()
                if len(columns) <= _NAMES:
                    what, remedy = f"{len(columns)} columns", "name files of CoNLL 2012 (_gold_conll)"
                    raise InputError(what, path=str(file), line=number, remedy=remedy)
                if re.sub(r"\([^()*]+|[*)]", "", columns[_NAMES]) not in ("", "-"):
                    what = f"{columns[_NAMES]!r} has no brackets of names"
                    raise InputError(what, path=str(file), line=number, remedy=_BRACKETS)
                words.append(columns[3].removeprefix("/") if columns[3] in ("/.", "/?", "/-") else columns[3])
                begun += [(label, len(words) - 1) for label in re.findall(r"\(([^()*]+)", columns[_NAMES])]
                for _ in range(columns[_NAMES].count(")")):
                    if not begun:
                        what = "a name ends that did not begin"
                        raise InputError(what, path=str(file), line=number, remedy=_BRACKETS)
                    label, first = begun.pop()
                    mentions.append(Mention(label, [(first, len(words))]))
        yield file.name, sentences


READERS: dict[str, Callable[[Path, ReadReport], Documents]] = {
    "ace": read_ace,
    "cadec": read_cadec,
    "genia": read_genia,
    "ontonotes": read_ontonotes,
    "share": read_share,
}
"""The readers, by the names that the list of corpora gives them."""


def _files(path: Path, *ends: str) -> list[Path]:
    """The file, or the files below a folder with one of the endings; of several languages those of English."""
    places = {file: file.relative_to(path).parts for file in path.rglob("*") if file.name.endswith(ends)}
    places = {file: parts for file, parts in places.items() if not any(part.startswith(".") for part in parts)}
    english = [file for file, parts in places.items() if "english" in map(str.lower, parts)]
    found = [path] if path.is_file() else english or [*places]
    if not found:
        remedy = "name the folder of the corpus as it was distributed"
        raise InputError(f"no file that ends in {' or '.join(ends)}", path=str(path), remedy=remedy)
    return sorted(found, key=lambda file: natural_sort_key(str(file)))


def _read_text(file: Path) -> str:
    return decode_text(read_bytes(file), file).replace("\r\n", "\n").replace("\r", "\n")


def _text_of(file: Path, annotations: Path) -> str:
    if not file.exists():
        raise InputError("has no text", path=str(annotations), remedy=f"add {file.name}")
    return _read_text(file)


def _parsed(file: Path) -> ET.Element:
    contents = file.read_bytes()
    if b"<!ENTITY" in contents:  # could be made to fill the memory; no such corpus has them
        raise InputError("declares XML entities", path=str(file), remedy=_AS_DISTRIBUTED)
    try:
        return ET.fromstring(contents)  # noqa: S314 - see above
    except (ET.ParseError, LookupError, ValueError) as error:  # or an encoding that is not known
        raise InputError(f"is no XML ({error})", path=str(file), remedy=_AS_DISTRIBUTED) from None


def _check(start: int, end: int, text: str, words: str, file: Path) -> None:
    """Check that the words of a mention are those that the file says."""
    there = text[start:end]
    if there.split() != words.split():
        what = f"the mention says {words[:40]!r}, but the text has {there[:40]!r}"
        raise InputError(what, path=str(file), remedy="check that the text is the right one, with its line ends")


def _cut(
    name: str,
    text: str,
    mentions: Iterable[CharMention],
    file: Path,
    report: ReadReport,
    split: Literal["sentences", "lines", "none"] = "sentences",
) -> tuple[str, list[Sentence]]:
    """The sentences of a document; of mentions with the same characters and label the first."""
    unique = {(mention.label, mention.spans): mention for mention in mentions}
    try:
        options = SegmentationOptions(split=split, misaligned="cut")
        return name, split_document(Document(text, [*unique.values()], name), options, report)
    except InputError as error:
        error.locate(str(file), record=name)
        raise
