"""Augmented files read back: what was made, by which method, of what."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

import entaug
from entaug.core.data import Provenance, Sentence, split_fields
from entaug.core.mentions import Mention
from entaug.errors import ParameterError
from entaug.formats.augmented import pair_with_sources, read_augmented
from entaug.methods.augment import augment_file

GOLD = [
    Sentence(
        "Ada Lovelace met Charles Babbage in London .".split(), [Mention("PER", [(0, 2)]), Mention("LOC", [(6, 7)])]
    ),
    Sentence("Paris is far from Rome .".split(), [Mention("LOC", [(0, 1)]), Mention("LOC", [(4, 5)])]),
    Sentence("Paris is far from Rome .".split(), [Mention("LOC", [(0, 1)]), Mention("LOC", [(4, 5)])]),
]


def written(folder: Path, name: str, sentences: list[Sentence]) -> Path:
    path = folder / name
    entaug.write(sentences, path)
    return path


def made_by(method: str, **params: object) -> list[Sentence]:
    return list(entaug.create_augmenter(method, **params).fit(GOLD).augment(GOLD))


def test_each_made_sentence_stands_beside_its_source_even_among_equal_unnamed_ones(tmp_path: Path) -> None:
    new = made_by("sis", seed=3, copies=2)
    found = read_augmented([written(tmp_path, "all.jsonl", [*GOLD, *new])])
    assert found.gold == GOLD
    assert list(found.methods) == ["sis"]
    assert [pair.augmented for pair in found.methods["sis"]] == new
    keys = [pair.augmented.fields["entaug"]["sources"][0] for pair in found.methods["sis"]]
    assert len(set(keys)) == 3
    for pair in found.methods["sis"]:
        assert pair.source is not None
        assert sorted(pair.source.tokens) == sorted(pair.augmented.tokens)
    assert not found.notes


def test_sources_are_found_by_id_and_by_content() -> None:
    named = [s.with_(id=name) for s, name in zip(GOLD, ("00000000000000ff", "b", "c"), strict=True)]
    other = Sentence(["Ada", "left"])
    keys = ["00000000000000ff", "b", GOLD[0].key, GOLD[2].key, f"{GOLD[1].key}-7", other.key, "B", "ff"]
    new = [Sentence(["x"], provenance=Provenance("mr", sources=(key,))) for key in keys]
    found = [pair.source for pair in pair_with_sources(new, [*named, other]) if pair]
    assert found == [named[0], named[1], named[0], named[1], named[1], other, None, None]


def test_a_large_corpus_takes_little_more_than_its_tokens(tmp_path: Path) -> None:
    # Twenty tokens of eight bytes, the sentence, and where it was made its id and the key of its source.
    mentions = [Mention("GENE", [(2, 4)]), Mention("PROTEIN", [(7, 8)])]
    gold = [Sentence([f"t{i}", *"b c d e f g h i j k l m n o p q r s t".split()], mentions) for i in range(4000)]
    made_of = {key: Provenance("mr", sources=(key,)) for key in (s.key for s in gold)}
    new = [Sentence([*s.tokens, "."], mentions, f"{s.key}/mr-0-1", provenance=made_of[s.key]) for s in gold]
    for sentences, most in ((gold, 650), (new, 1000)):
        path = written(tmp_path, f"{most}.jsonl", sentences)
        tracemalloc.start()
        held = list(entaug.read(path))
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert held == sentences
        assert taken / len(held) < most


def test_new_sentences_alone_find_their_sources_in_the_gold_file_or_say_so(tmp_path: Path) -> None:
    gold = written(tmp_path, "gold.conll", GOLD)
    new = written(tmp_path, "new.jsonl", made_by("sis"))
    assert all(pair.source for pair in read_augmented([new], gold).methods["sis"])
    lone = read_augmented([new])
    assert not lone.gold
    assert [pair.source for pair in lone.methods["sis"]] == [None] * 3
    assert "name the gold file" in lone.notes[0]


def test_files_without_provenance_are_told_apart_by_the_gold_file(tmp_path: Path) -> None:
    gold = written(tmp_path, "gold.conll", GOLD)
    other = written(tmp_path, "theirs.conll", [*GOLD, *(Sentence(s.tokens, s.mentions) for s in made_by("sis"))])
    found = read_augmented([other], gold)
    assert {name: len(pairs) for name, pairs in found.methods.items()} == {"(theirs)": 3}
    assert "name the gold file" in read_augmented([other]).notes[0]


def test_a_method_run_in_two_ways_has_two_names(tmp_path: Path) -> None:
    first = written(tmp_path, "first.jsonl", [*GOLD, *made_by("sis", seed=1)])
    second = written(tmp_path, "second.jsonl", [*GOLD, *made_by("sis", seed=2), *made_by("sis", seed=3)])
    assert list(read_augmented([first, second]).methods) == ["sis (first)", "sis (second)", "sis (second) 2"]


def test_rejected_drafts_say_why(tmp_path: Path) -> None:
    sentence = Sentence(["Rome"], **split_fields({"entaug": {"method": "mr", "sources": [], "rejected": "too long"}}))
    [pair] = read_augmented([written(tmp_path, "rejected.jsonl", [sentence])]).methods["mr"]
    assert pair.rejection == "too long"


@pytest.mark.parametrize("provenance", ["a word", ["a"], {"method": "mr", "sources": "abc"}, {"method": "mr"}])
def test_odd_provenance_breaks_nothing(tmp_path: Path, provenance: object) -> None:
    sentence = Sentence(["Rome"], **split_fields({"entaug": provenance}))
    read_augmented([written(tmp_path, "odd.jsonl", [sentence])])


def test_ids_that_sentences_got_since_do_not_hide_what_was_made_of_them(tmp_path: Path) -> None:
    new = made_by("sis")
    named = [s.with_(id=f"s{i}") for i, s in enumerate(GOLD)]  # as formats do that name what has no name
    found = read_augmented([written(tmp_path, "all.jsonl", [*named, *new])])
    assert all(pair.source is not None for pair in found.methods["sis"])
    assert [pair and pair.source is not None for pair in pair_with_sources([*named, *new])] == [None] * 3 + [True] * 3


def test_gold_of_a_file_with_provenance_is_gold_even_where_its_tokens_are_others_now(tmp_path: Path) -> None:
    gold = written(tmp_path, "gold.conll", GOLD)
    cut = Sentence("Paris is far-from Rome .".split(), GOLD[1].mentions[:1])
    found = read_augmented([written(tmp_path, "all.jsonl", [cut, *made_by("sis")])], gold)
    assert {name: len(pairs) for name, pairs in found.methods.items()} == {"sis": 3}


def test_a_file_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    path = written(tmp_path, "all.jsonl", [*GOLD, *made_by("sis")])
    for again in (path, tmp_path / "." / "all.jsonl"):
        found = read_augmented([path, again])
        assert len(found.methods["sis"]) == 3
        assert "is given more than once" in found.notes[0]


def test_a_layout_is_of_the_files_whose_format_has_it(tmp_path: Path) -> None:
    gold = tmp_path / "gold.tsv"
    rows = (f"{t}\t{a}\t{b}" for t, a, b in zip(GOLD[0].tokens, GOLD[0].iob(), ["O"] * 8, strict=True))
    gold.write_text("\n".join(rows) + "\n")
    new = written(
        tmp_path, "new.jsonl", list(entaug.create_augmenter("sis").augment(entaug.read(gold, tag_columns="1,2")))
    )
    [pair] = read_augmented([new], gold, tag_columns="1,2").methods["sis"]
    assert pair.source is not None
    assert pair.source.mentions == GOLD[0].mentions
    [pair] = read_augmented([new], gold, format="jsonl", tag_columns="1,2").methods["sis"]
    assert pair.source is not None
    with pytest.raises(ParameterError, match="no format of these files has an option 'tag_columns'"):
        read_augmented([new], tag_columns="1,2")


def test_a_sentence_whose_id_is_the_key_of_another_is_another(tmp_path: Path) -> None:
    first, second = GOLD[0], GOLD[1].with_(id=GOLD[0].key)
    gold = written(tmp_path, "gold.jsonl", [first, second])
    augment_file(gold, tmp_path / "new.jsonl", entaug.create_augmenter("sis", seed=3), only_new=True)
    found = read_augmented([tmp_path / "new.jsonl"], gold)
    assert len(found.gold) == 2
    for pair in found.methods["sis"]:
        assert pair.source is not None
        assert sorted(pair.augmented.tokens) == sorted(pair.source.tokens)
