"""Low-resource subsets: sizes, order, what holds what, and types in their shares."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import entaug
from conftest import EXAMPLE
from entaug.commands.main import main
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.study.subsets import STRATEGIES, draw, rest, select

TRAIN = EXAMPLE / "train.conll"


def made(n: int, seed: int = 0, labels: str = "abbbccccccc") -> list[Sentence]:
    """Sentences that differ, with some types more frequent than others and a third without any."""
    rng = Random(seed)
    corpus = []
    for i in range(n):
        held = [] if rng.random() < 0.3 else rng.choices(labels, k=rng.randrange(1, 4))
        corpus.append(Sentence([f"w{i}", *"xyz"], [Mention(label, [(k, k + 1)]) for k, label in enumerate(held)]))
    return corpus


@given(
    st.sampled_from(sorted(STRATEGIES)),
    st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(1, n), min_size=1, max_size=4))),
    st.integers(0, 5),
)
def test_sizes_order_and_what_holds_what(how: str, drawn: tuple[int, list[int]], seed: int) -> None:
    n, sizes = drawn
    corpus = made(n, seed)
    subsets = draw(how, corpus, sizes, seed)
    assert list(subsets) == sorted(set(sizes))
    assert subsets == draw(how, corpus, sizes, seed)
    place = {s.tokens: i for i, s in enumerate(corpus)}
    within: set[int] = set()
    for size, subset in subsets.items():
        places = [place[s.tokens] for s in subset]
        assert len(places) == size
        assert places == sorted(set(places))
        if how != "fraction":
            assert within <= set(places)
        within |= set(places)
    left = rest(corpus, *subsets.values())
    assert [place[s.tokens] for s in left] == sorted(set(range(n)) - within)
    if n in sizes:
        assert subsets[n] == corpus


def test_the_ways_by_hand() -> None:
    corpus = made(20)
    assert draw("first", corpus, [3]) == {3: corpus[:3]}
    assert draw("fraction", corpus, [0.1, 5], 4).keys() == {2, 5}
    assert draw("fraction", corpus, [0.1], 4)[2] == draw("fraction", corpus, [2], 4)[2]
    assert draw("fraction", corpus, [1.0]) == {20: corpus}
    # A subset is the same whatever others are asked for.
    assert draw("progressive", corpus, [4], 1)[4] == draw("progressive", corpus, [2, 4, 9], 1)[4]
    assert draw("progressive", corpus, [4], 1) != draw("progressive", corpus, [4], 2)
    # Six of each of two types, half of all: three of each, however it is drawn.
    half = [Sentence([f"{i}"], [Mention("ab"[i % 2], [(0, 1)])]) for i in range(12)]
    for seed in range(9):
        labels = Counter(s.mentions[0].label for s in draw("stratified", half, [6], seed)[6])
        assert labels == {"a": 3, "b": 3}


def shares(corpus: list[Sentence]) -> dict[str, float]:
    held = Counter(label for s in corpus for label in {m.label for m in s.mentions})
    return {label: held[label] / len(corpus) for label in "abc"}


def test_stratified_subsets_are_nearer_to_the_whole_than_random_ones() -> None:
    def off(subset: list[Sentence]) -> float:
        return sum(abs(share - whole[label]) for label, share in shares(subset).items())

    total = Counter[str]()
    for seed in range(20):
        corpus = made(300, seed)
        whole = shares(corpus)
        for how in ("stratified", "progressive"):
            for subset in draw(how, corpus, [20, 60], seed).values():
                total[how] += off(subset)  # type: ignore[assignment]
    assert total["stratified"] < 0.5 * total["progressive"]


def test_sizes_that_cannot_be_are_refused() -> None:
    corpus = made(5)
    for how in STRATEGIES:
        with pytest.raises(InputError, match="6 sentences is larger than the corpus of 5"):
            draw(how, corpus, [2, 6])
        with pytest.raises(ParameterError, match="at least 1, not 0"):
            draw(how, corpus, [0])
        with pytest.raises(ParameterError, match="no sizes"):
            draw(how, corpus, [])
    with pytest.raises(ParameterError, match="fraction for shares"):
        draw("first", corpus, [0.5])
    with pytest.raises(ParameterError, match="share must be"):
        draw("fraction", corpus, [1.5])
    with pytest.raises(InputError, match="not even one"):
        draw("fraction", corpus, [0.01])
    with pytest.raises(UnknownNameError, match="did you mean 'stratified'"):
        draw("stratify", corpus, [1])


# -------------------------------------------------------------------------------------------------- named sentences


def test_named_sentences_are_those_of_the_digests_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    corpus = made(20)
    ids = tmp_path / "ids.txt"
    chosen = [corpus[7], corpus[2], corpus[11]]
    lines = ["# a comment", *(f"{s.fingerprint().hex()}  # {i}" for i, s in enumerate(chosen)), ""]
    ids.write_text("\n".join(lines), encoding="utf-8")
    assert select(corpus, ids, 3) == [corpus[2], corpus[7], corpus[11]]
    assert select(corpus[::-1], ids, 3) == [corpus[11], corpus[7], corpus[2]]
    # A sentence that the corpus has twice can be named twice, and no third time.
    ids.write_text(f"{corpus[0].fingerprint().hex()}\n" * 2, encoding="utf-8")
    assert select([*corpus, corpus[0]], ids, 2) == [corpus[0], corpus[0]]
    with pytest.raises(InputError, match=f"no sentence '{corpus[0].fingerprint().hex()}', or not as often") as caught:
        select(corpus, ids, 2)
    assert (caught.value.path, caught.value.line) == (str(ids), 2)


def test_named_sentences_that_the_corpus_lacks_or_of_another_number_are_refused(tmp_path: Path) -> None:
    corpus = made(5)
    ids = tmp_path / "ids.txt"
    relabelled = Sentence(corpus[0].tokens, [Mention("other", [(0, 1)])])
    ids.write_text(f"{corpus[1].fingerprint().hex()}\n{relabelled.fingerprint().hex()}\n", encoding="utf-8")
    with pytest.raises(InputError, match="take the release of the corpus") as caught:
        select(corpus, ids, 2)
    assert caught.value.line == 2
    ids.write_text(f"{corpus[1].fingerprint().hex()}\n", encoding="utf-8")
    with pytest.raises(InputError, match="names 1 sentences, and the subset has 2"):
        select(corpus, ids, 2)


# -------------------------------------------------------------------------------------------------------- command line


def test_subset_writes_files_in_the_layout_of_the_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = TRAIN.read_bytes()
    out = tmp_path / "subsets"
    argv = ["subset", str(TRAIN), "--sizes", "10,25", "--seed", "3", "-o", str(out), "--rest"]
    assert main(argv) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert f"wrote {out}/train.10.conll: 10 sentences" in said.err
    assert TRAIN.read_bytes() == before
    corpus = entaug.read(TRAIN)
    subsets = draw("progressive", corpus, [10, 25], 3)
    for n in (10, 25):
        assert list(entaug.read(out / f"train.{n}.conll")) == subsets[n]
    assert list(entaug.read(out / "train.rest.conll")) == rest(corpus, subsets[25])
    assert len(list(out.iterdir())) == 3
    texts = [(out / name).read_text().split("\n\n") for name in ("train.25.conll", "train.rest.conll")]
    assert set(texts[0] + texts[1]) <= set(before.decode().split("\n\n")) | {""}

    # Nothing is overwritten unasked, and nothing is written when one of the files is there.
    (out / "train.10.conll").unlink()
    assert main(argv) == 3
    assert "exists; pass --force" in capsys.readouterr().err
    assert not (out / "train.10.conll").exists()
    assert main([*argv, "--force", "--json"]) == 0
    summary = orjson.loads(capsys.readouterr().out)
    assert summary["how"] == "progressive"
    assert [f["counts"]["sentences"] for f in summary["files"]] == [10, 25, len(entaug.read(out / "train.rest.conll"))]


def test_subset_of_standard_input(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "entaug", "subset", "-", "--sizes", "4", "-o", str(tmp_path)]
    subprocess.run(argv, input=TRAIN.read_bytes(), capture_output=True, check=True)
    assert list(entaug.read(tmp_path / "stdin.4.conll")) == draw("progressive", entaug.read(TRAIN), [4])[4]


def test_subset_of_nested_and_gzipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entaug.write(entaug.read(EXAMPLE / "nested.jsonl"), tmp_path / "n.jsonl.gz")
    argv = ["--sizes", "0.1,3", "--how", "fraction", "-o", str(tmp_path)]
    assert main(["subset", str(tmp_path / "n.jsonl.gz"), *argv]) == 0
    whole = list(entaug.read(tmp_path / "n.jsonl.gz"))
    assert set(entaug.read(tmp_path / "n.3.jsonl.gz")) <= set(whole)
    assert len(entaug.read(tmp_path / f"n.{int(0.1 * len(whole) + 0.5)}.jsonl.gz")) == int(0.1 * len(whole) + 0.5)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("5,x", "'x' is not a number"),
        ("0", "at least 1"),
        ("100000", "is larger than the corpus"),
        ("", "there are no sizes"),
    ],
)
def test_subset_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str], sizes: str, said: str) -> None:
    assert main(["subset", str(TRAIN), "--sizes", sizes, "-o", str(tmp_path / "new")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_subset_never_writes_its_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.conll"
    source.write_bytes(TRAIN.read_bytes())
    (tmp_path / "a.5.conll").symlink_to(source)
    assert main(["subset", str(source), "--sizes", "5", "-o", str(tmp_path), "--force"]) == 3
    assert "never overwritten" in capsys.readouterr().err
    assert source.read_bytes() == TRAIN.read_bytes()
