"""The real corpora: counts of their README, round trips, and an independent reader of tags.

They are not in the repository: these tests skip, with a message, where the folder is absent.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("seqeval")

from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Entities

import entaug
from entaug.core.corpus import is_made_key
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import SCHEMES, decode
from entaug.formats.base import ReadReport
from entaug.formats.files import open_file, target
from entaug.methods import create_augmenter
from entaug.methods.augment import augment_file

pytestmark = pytest.mark.corpora

SEQEVAL = {"IOB1": IOB1, "IOB2": IOB2, "IOBES": IOBES, "BILOU": BILOU, "BMES": IOBES}  # which has I for M

# Sentences, as the README of the corpora counts them; and mentions where it does.
COUNTS: dict[str, int | tuple[int, int]] = {
    "wnut17/wnut17train.conll": 3394,
    "wnut17/emerging.dev.conll": 1009,
    "wnut17/emerging.test.annotated": 1287,
    **{
        f"crossner/{domain}/{split}.txt": n
        for domain, sizes in {
            "politics": (200, 541, 651),
            "science": (200, 450, 543),
            "music": (100, 380, 465),
            "literature": (100, 400, 416),
            "ai": (100, 350, 431),
        }.items()
        for split, n in zip(("train", "dev", "test"), sizes, strict=True)
    },
    "multiconer-v1/15000/en_train.conll": 15300,
    "multiconer-v1/15000/de_train.conll": 15300,
    **{f"multiconer-v1/15000/{lang}_dev.conll": 800 for lang in "bn de en es hi ko nl ru tr zh".split()},
    "ncbi-disease/train.tsv": 5424,
    "ncbi-disease/devel.tsv": 923,
    "ncbi-disease/test.tsv": 940,
    "bc2gm/train.tsv": 12574,
    "bc2gm/devel.tsv": 2519,
    "bc2gm/test.tsv": 5038,
    "tdmsci/train_1500_v2.conll": 1523,
    "tdmsci/test_500_v2.conll": 487,
    "genia/nested-jsonl/train.jsonl": (15023, 46164),
    "genia/nested-jsonl/dev.jsonl": (1669, 4371),
    "genia/nested-jsonl/test.jsonl": (1854, 5511),
    "genia/discontinuous-jsonl/train.jsonl.gz": 15023,
    "genia/discontinuous-jsonl/dev.jsonl": 1669,
    "genia/discontinuous-jsonl/test.jsonl": 1854,
    "danplus/da_news_train.tsv": 4383,
    "danplus/da_news_dev.tsv": 564,
    "danplus/da_news_test.tsv": 565,
    "uner/hr_set/hr_set-ud-train.iob2": 6914,
    "uner/hr_set/hr_set-ud-dev.iob2": 960,
    "uner/hr_set/hr_set-ud-test.iob2": 1136,
    "uner/da_ddt/da_ddt-ud-train.iob2": 4383,
    "uner/da_ddt/da_ddt-ud-dev.iob2": 564,
    "uner/da_ddt/da_ddt-ud-test.iob2": 565,
    "uner/en_ewt/en_ewt-ud-dev.iob2": 2001,
    "uner/en_ewt/en_ewt-ud-test.iob2": 2077,
}
# Faults that are really in the files: tags that go on with nothing, and columns that change half-way.
REPAIRED = {
    "danplus/da_news_train.tsv": 7,
    "danplus/da_news_test.tsv": 1,
    "uner/hr_set/hr_set-ud-dev.iob2": 1,
    "uner/da_ddt/da_ddt-ud-train.iob2": 6,
    "uner/da_ddt/da_ddt-ud-test.iob2": 1,
    "multiconer-v1/15000/ru_dev.conll": 265,
}
DISCONTINUOUS = {"train.jsonl.gz": 946, "dev.jsonl": 99, "test.jsonl": 90}


def options(name: str) -> dict[str, Any]:
    """What cannot be found by looking: which of two tag columns is meant, and that columns change half-way."""
    if name.startswith("danplus"):
        return {"tag_column": 1}
    return {"separator": "runs"} if "ru_dev" in name else {}


def load(corpora: Path, name: str) -> tuple[list[Sentence], ReadReport, Any]:
    opened = open_file(corpora / name, **options(name))
    reading = ReadReport(repair=name in REPAIRED)
    return list(opened.sentences(reading)), reading, opened


LARGE = re.compile(r"bc2gm/train|15000/.._train|genia/.*/train|hr_set-ud-train|da_news_train")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if LARGE.search(name) else ()) for name in COUNTS]
)
def test_counts_round_trip_and_seqeval(corpora: Path, tmp_path: Path, name: str) -> None:
    sentences, reading, opened = load(corpora, name)
    count = COUNTS[name]
    assert len(sentences) == (count if isinstance(count, int) else count[0])
    if isinstance(count, tuple):
        assert sum(len(s.mentions) for s in sentences) == count[1]
    if "discontinuous" in name:
        gaps = sum(not m.is_contiguous for s in sentences for m in s.mentions)
        assert gaps == DISCONTINUOUS[Path(name).name]
    assert reading.repaired.total() == REPAIRED.get(name, 0)

    # In its own layout, and as JSON lines: the same sentences come back.
    to = target(tmp_path / "own", opened.format.name, opened)
    to.path.write_text("".join(to.format.dump(s, to.dialect) for s in sentences), encoding="utf-8")
    back = open_file(to.path, opened.format.name, **options(name))
    assert back.dialect == to.dialect or name in REPAIRED
    assert list(back.sentences()) == sentences
    entaug.write(sentences, tmp_path / "a.jsonl")
    assert list(entaug.stream(tmp_path / "a.jsonl")) == sentences

    agree_with_seqeval(sentences)


def agree_with_seqeval(sentences: list[Sentence]) -> None:
    """An independent reader sees the same mentions, in every scheme."""
    flat = list({(len(s), s.mentions): s for s in sentences if s.is_flat}.values())  # all that tags depend on
    for scheme in SCHEMES:
        tags = [s.iob(scheme) for s in flat]
        told = [[f"I{t[1:]}" if scheme == "BMES" and t.startswith("M-") else t for t in of] for of in tags]
        seen = Entities(told, SEQEVAL[scheme]).entities
        for s, of_sentence, found in zip(flat, tags, seen, strict=True):
            assert [(e.tag, e.start, e.end) for e in found] == [(m.label, m.start, m.end) for m in s.mentions]
            assert decode(of_sentence, scheme) == s.mentions


@pytest.mark.parametrize("name", ["wnut17/wnut17train.conll", "uner/hr_set/hr_set-ud-test.iob2", "bc2gm/devel.tsv"])
def test_tags_of_the_file_itself_by_seqeval(corpora: Path, name: str) -> None:
    column = 2 if "uner" in name else -1
    lines = (corpora / name).read_text(encoding="utf-8").split("\n")
    tags: list[list[str]] = [[]]
    for line in lines:
        if not line.strip():
            tags.append([])
        elif not (line.startswith("#") and "\t" not in line):
            tags[-1].append(line.split("\t")[column])
    seen = Entities([t for t in tags if t], IOB2).entities
    sentences, _, _ = load(corpora, name)
    assert [[(e.tag, e.start, e.end) for e in s] for s in seen] == [
        [(m.label, m.start, m.end) for m in s.mentions] for s in sentences
    ]


@pytest.mark.parametrize("name", ["multiconer-v1/100", "multiconer-v1/200", "multiconer-v1/500", "multiconer-v1/1000"])
def test_low_resource_samples_of_ten_languages(corpora: Path, name: str) -> None:
    files = sorted((corpora / name).glob("*.conll"))
    assert len(files) == 10
    wanted = int(name.rpartition("/")[2])
    for file in files:
        sentences = list(entaug.read(file))
        assert abs(len(sentences) - wanted) <= 0.05 * wanted
        agree_with_seqeval(sentences)


@pytest.mark.parametrize("genre", ["twitter", "arto"])
@pytest.mark.parametrize("column", [1, 2])
def test_both_levels_of_danish_nested_files(corpora: Path, genre: str, column: int) -> None:
    for file in sorted((corpora / "danplus").glob(f"da_{genre}_*.tsv")):
        agree_with_seqeval(list(entaug.read(file, tag_column=column, repair=True)))


def test_mr_never_brings_a_mention_without_what_it_holds(corpora: Path) -> None:
    gold = list(entaug.read(corpora / "genia/nested-jsonl/dev.jsonl"))

    def words(s: Sentence, m: Mention) -> tuple[str, ...]:  # in any case: mr writes donors in the capitals of the place
        return tuple(token.casefold() for token in s.mention_tokens(m))

    def inside(s: Sentence, m: Mention) -> frozenset[Any]:
        within = [o for o in s.mentions if o != m and m.start <= o.start and o.end <= m.end]
        return frozenset((o.label, words(s, o)) for o in within)

    known: dict[Any, set[frozenset[Any]]] = {}
    for s in gold:
        for m in s.mentions:
            known.setdefault((m.label, words(s, m)), set()).add(inside(s, m))
    for s in create_augmenter("mr", seed=1).fit(gold).augment(gold):
        # Whatever stands there was seen with just these mentions inside.
        assert all(inside(s, m) in known[m.label, words(s, m)] for m in s.mentions)


@pytest.mark.parametrize("method", ["lwtr", "mr", "sis"])
@pytest.mark.parametrize(
    "name", ["wnut17/wnut17train.conll", "genia/nested-jsonl/dev.jsonl", "genia/discontinuous-jsonl/dev.jsonl"]
)
def test_augmented_files_are_valid(corpora: Path, tmp_path: Path, method: str, name: str) -> None:
    out = tmp_path / f"out{Path(name).suffix}"
    summary = augment_file(corpora / name, out, create_augmenter(method, copies=2))
    both = entaug.read(out)
    gold = summary.before.sentences
    assert len(both) == gold + summary.statistics.accepted
    told = [s.with_(id=None) if is_made_key(s.id or "") else s for s in both[:gold]]  # ids that sources name
    assert told == list(entaug.read(corpora / name))
    contents = Counter((s.tokens, s.mentions) for s in both[gold:])
    assert max(contents.values()) == 1
    assert summary.after.mentions == both.mention_counts()
    if method != "mr":
        assert summary.statistics.accepted > 1.7 * gold
