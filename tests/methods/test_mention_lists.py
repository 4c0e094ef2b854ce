"""Lists of mentions: what is read from files, which entries `mr` inserts, and in which form."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import EXAMPLE, examples
from entaug import Mention, Sentence
from entaug.commands.main import main
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.files.mention_lists import (
    MAX_LENGTH,
    ListEntry,
    MentionList,
    mention_lists,
    read_mention_list,
    relative_to_folder,
)
from entaug.methods import MentionReplacement
from entaug.methods.combined import CombinedAugmenter, parse_methods
from entaug.methods.shared.donors import CorpusCapitals, ListDonors, mention_key, style_of
from entaug.study.plan import MethodPlan, read_plan
from helpers.strategies import sentences


def sentence(text: str, *mentions: tuple[str, int, int], **more: Any) -> Sentence:
    return Sentence(text.split(), [Mention(label, [(s, e)]) for label, s, e in mentions], **more)


GOLD = [
    sentence("Ada met Bo in Rome", ("PER", 0, 1), ("PER", 2, 3), ("LOC", 4, 5)),
    sentence("Cy Dee left the Netherlands today", ("PER", 0, 2), ("LOC", 4, 5)),
]


def inserted(made: Any, label: str) -> set[str]:
    return {" ".join(s.mention_tokens(m)) for s in made for m in s.mentions if m.label == label}


def only_list(gold: list[Sentence], texts: list[str], label: str, **more: Any) -> set[str]:
    """What is inserted from a list alone; the gold mentions that stay are left out."""
    mr = MentionReplacement(p=1.0, list_share=1.0, copies=40, mentions={label: texts}, **more).fit(gold)
    return {t for t in inserted(mr.augment(gold), label) if t not in inserted(gold, label)}


# -------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("name", "content", "suffix", "texts"),
    [
        ("a.txt", "Oslo\n\n  New   York \r\nOslo\nthe Hague", "=LOC", {"LOC": ["New York", "Oslo", "the Hague"]}),
        ("a.txt", "\ufeffOslo\n", "=LOC", {"LOC": ["Oslo"]}),
        ("names", "# 1 street\n---\nA=B:C\n", "=LOC", {"LOC": ["# 1 street", "A=B:C"]}),
        ("a.jsonl", '{"mention": "Oslo", "label": "LOC"}\n\n{"text": "Ada", "label": "PER"}', "", None),
        ("a.jsonl", '{"mention": "Oslo"}\n{"text": "Ada", "label": "PER"}', "=LOC", None),
        ("a.csv", 'id,name\n1,Oslo\n2,"Washington, D.C."\n', ":name=LOC", {"LOC": ["Oslo", "Washington, D.C."]}),
        ("a.csv", "id;name\n1;Oslo\n", ":name=LOC", {"LOC": ["Oslo"]}),
        ("a.tsv", "1\tOslo\n2\tRome\n\n", ":2=LOC", {"LOC": ["Oslo", "Rome"]}),
        ("a.txt", "n\tx\nOslo\t1\n", ":n=LOC", {"LOC": ["Oslo"]}),
        ("b=c:d.txt", "Oslo", "=LOC", {"LOC": ["Oslo"]}),
    ],
)
def test_lists_are_read_in_every_form(
    name: str, content: str, suffix: str, texts: dict[str, list[str]] | None, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    found = read_mention_list(f"{path}{suffix}")
    assert found.texts == (texts or {"LOC": ["Oslo"], "PER": ["Ada"]})
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_mention_list(f"{packed}{suffix}").texts == found.texts
    assert found.digest == read_mention_list(f"{packed}{suffix}").digest
    # A list that changes is read again.
    path.write_text(content.replace("Oslo", "Bergen!"), encoding="utf-8", newline="")
    assert "Bergen!" in str(read_mention_list(f"{path}{suffix}").texts) or "Oslo" not in content


@pytest.mark.parametrize(
    ("name", "content", "suffix", "message"),
    [
        ("a.txt", None, "=LOC", r"a\.txt: no such file; check the path"),
        ("a.txt", b"", "=LOC", r"a\.txt: the list of mentions is empty; add mentions"),
        ("a.txt", b" \n\n--\n", "=LOC", r"a\.txt: the list of mentions is empty"),
        ("a.txt", b"Oslo\nK\xf6ln\n", "=LOC", r"a\.txt:2: not UTF-8 \(byte 0xf6\); convert it first"),
        ("a.txt", b"Oslo\n" + b"x" * (MAX_LENGTH + 1), "=LOC", r"a\.txt:2: an entry has 301 characters, which is no"),
        ("a.txt", b"Oslo\nRo\x07me", "=LOC", r"a\.txt:2: an entry holds a control character"),
        ("a.txt", b"Oslo", "", r"a\.txt' says no label; write a\.txt=LABEL"),
        ("a.csv", b"name\nOslo", "=LOC", r"is a table; name the column with the mentions: a\.csv:name=LOC"),
        ("a.csv", b"nam,id\nOslo,1", ":name=LOC", r"a\.csv:1: unknown column 'name'; did you mean 'nam'"),
        ("a.csv", b"id,name\n1,Oslo\n2\n", ":name=LOC", r"a\.csv:3: has 1 columns, so none named name"),
        ("a.csv", b'id,name\n1,"Os"lo\n', ":name=LOC", r"a\.csv:2: no table \("),
        ("a.csv", b"1,Oslo", ":0=LOC", r"a\.csv:1: has 2 columns, so none with the number 0"),
        ("a.jsonl", b'{"mention": "Oslo"}', "", r"a\.jsonl:1: has no label; write a\.jsonl=LABEL"),
        ("a.jsonl", b'{"mention": "Oslo", "label": 3}', "=LOC", r"a\.jsonl:1: a record needs a mention and a label"),
        ("a.jsonl", b'{"mention": 3, "label": "LOC"}', "=LOC", r"a\.jsonl:1: a record needs a mention and a label"),
        ("a.jsonl", b'["Oslo"]', "=LOC", r"a\.jsonl:1: a record needs"),
        ("a.jsonl", b'{"mention": "Oslo", "label": "LOC"}\n{', "", r"a\.jsonl:2: no JSON \("),
        ("a.jsonl", b"", ":name=LOC", "is JSON lines, which has no columns"),
    ],
)
def test_faulty_lists_are_refused_with_file_line_and_remedy(
    name: str, content: bytes | None, suffix: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((InputError, ParameterError), match=message) as caught:
        read_mention_list(f"{path}{suffix}")
    assert "; " in str(caught.value), "a remedy"
    # As a parameter: refused by the constructor, before any work.
    with pytest.raises(ParameterError, match=message) as refused:
        MentionReplacement(mentions=[f"{path}{suffix}"])
    assert refused.value.parameter == "mentions"


@pytest.mark.parametrize("value", [3, {"LOC": "Oslo"}, {"LOC": 3}, [["a.txt", 3]], {"LOC": [3]}, {"LOC": []}, {}, ""])
def test_values_of_other_kinds_are_refused(value: Any) -> None:
    with pytest.raises((ParameterError, InputError)):
        MentionReplacement(mentions=value)


def test_a_list_is_the_same_whatever_its_order_and_form(tmp_path: Path) -> None:
    names = ["Oslo", "Bonn", "Kiel", "Ulm"]
    (tmp_path / "a.txt").write_text("\n".join(names))
    (tmp_path / "a.csv").write_text("\n".join(["x", *names[::-1], *names]))
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"mention": n, "label": "LOC"}) for n in names))
    made = []
    for given_ in (f"{tmp_path}/a.txt=LOC", [f"{tmp_path}/a.csv:x=LOC"], f"{tmp_path}/a.jsonl", {"LOC": names}):
        mr = MentionReplacement(p=1.0, copies=5, mentions=given_).fit(GOLD)
        made.append([(s.tokens, s.mentions) for s in mr.augment(GOLD)])
        assert pickle.loads(pickle.dumps(mr)).fit(GOLD).coverage_ == mr.coverage_  # noqa: S301 - our own object
    assert all(one == made[0] for one in made)
    two = mention_lists(f"{tmp_path}/a.txt=LOC;{tmp_path}/a.jsonl")
    assert [len(one) for one in two] == [4, 4]


# ---------------------------------------------------------------------------------------------------------- selection


def test_entries_are_typed_and_drawn_in_the_given_share() -> None:
    lists = {"LOC": ["Oslo", "Bonn", "Rome"], "PER": ["Grace Hopper"]}
    mr = MentionReplacement(p=1.0, mentions=lists, list_share=0.25, max_attempts=1).fit(GOLD)
    rng = random.Random(3)
    counts: Counter[str] = Counter()
    for _ in range(4000):
        new = mr._rewrite(GOLD[0], rng)
        assert isinstance(new, Sentence)
        counts[new.tokens[-1]] += 1
    # Rome is a gold mention, so it is no entry; of the corpus only the Netherlands differs from it.
    assert set(counts) == {"Oslo", "Bonn", "Netherlands"}
    assert abs(counts["Netherlands"] / 4000 - 0.75) < 0.03
    assert abs(counts["Oslo"] - counts["Bonn"]) < 200
    none = MentionReplacement(p=1.0, copies=20, mentions=lists, list_share=0.0).fit(GOLD)
    assert inserted(none.augment(GOLD), "LOC") == {"Rome", "Netherlands"}
    # Without lists nothing has changed: no further random number is drawn.
    plain = [(s.tokens, s.mentions) for s in MentionReplacement(p=1.0, copies=3).fit(GOLD).augment(GOLD)]
    assert plain == [(s.tokens, s.mentions) for s in none.augment(GOLD)][: len(plain)] or len(plain) < 6


def test_a_type_with_one_mention_is_replaced_by_entries() -> None:
    gold = [sentence("in Rome", ("LOC", 1, 2))]
    with pytest.raises(InputError, match="only one distinct mention"):
        MentionReplacement().fit(gold)
    assert only_list(gold, ["Oslo", "ROME"], "LOC") == {"Oslo"}
    with pytest.raises(InputError, match="only one distinct mention"):
        MentionReplacement(mentions={"LOC": ["Oslo"]}, list_share=0.0).fit(gold)


def test_mentions_of_dev_and_test_are_left_out_and_counted() -> None:
    test = [sentence("from new york to Ulm via the Hague", ("LOC", 1, 3), ("ORG", 4, 5), ("LOC", 6, 8))]
    names = ["New York", "Ulm", "Hague", "Oslo", "Rome"]
    mr = MentionReplacement(p=1.0, list_share=1.0, copies=40, mentions={"LOC": names}, held_out=test).fit(GOLD)
    assert inserted(mr.augment(GOLD), "LOC") - {"Rome", "Netherlands"} == {"Oslo"}
    [coverage] = mr.coverage_
    assert (coverage.entries, coverage.new, coverage.held_out) == (5, 1, 3)
    assert (coverage.mentions, coverage.covered, coverage.distinct, coverage.covered_distinct) == (2, 1, 2, 1)
    [note] = mr.notes()
    assert note == (
        "mentions covers 1 of 2 gold mentions of LOC (50 %; 1 of 2 distinct ones); 1 of its 5 entries are new, "
        "3 are held-out mentions and left out"
    )
    # By name, after construction, and for several methods.
    other = MentionReplacement(mentions={"LOC": names})
    assert other.hold_out(iter(test))
    assert other.signature.replace("copies=1|", "") != MentionReplacement(mentions={"LOC": names}).signature
    assert not MentionReplacement().hold_out(iter(test))
    assert CombinedAugmenter([entaug.methods.ShuffleWithinSegments(), other]).hold_out(test)


def test_held_out_mentions_are_known_in_any_form_of_unicode() -> None:
    names = ["Jürgen Müller", "Zoë Löffler"]
    test = [sentence(unicodedata.normalize("NFD", "Jürgen Müller left"), ("LOC", 0, 2))]
    mr = MentionReplacement(mentions={"LOC": names}, held_out=test).fit(GOLD)
    assert mr.coverage_[0].held_out == 1


def test_labels_that_the_corpus_lacks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"mention": "Oslo", "label": "LOC"}\n{"mention": "Ada", "label": "PERS"}\n')
    with pytest.raises(UnknownNameError, match=r"a\.jsonl:2: .*'PERS'; did you mean 'PER'\? \(there are: LOC, PER\)"):
        MentionReplacement(mentions=str(path)).fit(GOLD)
    with pytest.raises(UnknownNameError, match=r"'loc'; did you mean 'LOC'"):
        MentionReplacement(mentions={"loc": ["Oslo"]}).fit(GOLD)


def test_provenance_names_the_list(tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_text("name\nthe Hague\n")
    mr = MentionReplacement(p=1.0, list_share=1.0, mentions=f"{tmp_path}/cities.csv:name=LOC").fit(GOLD)
    first, second = mr.augment(GOLD)
    assert first.provenance
    assert first.provenance.details == {"lists": [{"mention": "the Hague", "list": "cities.csv:name"}]}
    assert "mentions=cities.csv:name@" in first.provenance.signature
    assert str(tmp_path) not in first.provenance.signature
    assert second.provenance
    assert second.provenance.details == {"lists": [{"mention": "Hague", "list": "cities.csv:name"}]}
    plain = next(MentionReplacement(p=1.0).fit(GOLD).augment(GOLD))
    assert plain.provenance
    assert not plain.provenance.details


# ---------------------------------------------------------------------------------------------------------------- form


def corpus(*mentions: str, frame: str = "we saw {} there", label: str = "X") -> list[Sentence]:
    gold = []
    for mention in mentions:
        tokens = frame.format(mention).split()
        start = frame.split().index("{}")
        gold.append(Sentence(tokens, [Mention(label, [(start, start + len(mention.split()))])]))
    return gold


TITLE = corpus("Rome", "Oslo", "Bonn", "Bank of England", "Kiel", "Ulm", "USA", frame="We saw {} there")
LOWER = corpus("asthma", "lung cancer", "gout", "heart failure", "HIV", "flu", "acne", "scurvy", "anaemia", "rickets")


@pytest.mark.parametrize(
    ("gold", "texts", "expected"),
    [
        # Capitals as the corpus writes the type.
        (TITLE, ["new york", "isle of man"], {"New York", "Isle of Man"}),
        (TITLE, ["NEW YORK", "ISLE OF MAN", "STRATFORD-UPON-AVON"], {"New York", "Isle of Man", "Stratford-Upon-Avon"}),
        (TITLE, ["New York", "eBay"], {"New York", "eBay"}),
        (LOWER, ["Brain Tumour", "Acute Leukaemia", "Crohn's Disease"], {"brain tumour", "acute leukaemia"}),
        (
            LOWER,
            ["Brain tumour", "Acute leukaemia", "HPV infection"],
            {"brain tumour", "acute leukaemia", "HPV infection"},
        ),
        (LOWER, ["BRAIN TUMOUR", "ACUTE LEUKAEMIA"], {"brain tumour", "acute leukaemia"}),
        (LOWER, ["brain tumour", "CF"], {"brain tumour", "CF"}),
        # A corpus without capitals, and one without others.
        (corpus("rome", "oslo"), ["Paris", "PARIS", "McMurdo"], {"paris", "mcmurdo"}),
        (corpus("ROME", "OSLO", frame="WE SAW {} THERE"), ["Paris", "McMurdo"], {"PARIS", "MCMURDO"}),
        # Too few mentions to tell a habit: as the list has it.
        (corpus("Rome", "oslo", frame="We saw {}"), ["paris", "Kiel"], {"paris", "Kiel"}),
        # Scripts without capitals.
        (corpus("罗马", "东京", frame="他 在 {} 。"), ["北京", "巴黎 市"], {"北京", "巴黎 市"}),
    ],
)
def test_capitals_are_those_of_the_type(gold: list[Sentence], texts: list[str], expected: set[str]) -> None:
    found = only_list(gold, texts, "X")
    assert {text for text in found if "'" not in text} == expected
    assert all("Crohn" in text for text in found if "'" in text), "a name in a disease keeps its capital"


def test_entries_fit_the_words_beside_them() -> None:
    gold = corpus("nurse", "engineer", frame="the man is a {} , and the son of an engineer and a nurse")
    assert only_list(gold[:1], ["editor", "pilot", "a"], "X") == {"pilot"}


def test_capitals_are_those_of_the_place() -> None:
    diseases = [*LOWER, Sentence(["Asthma", "is", "rare"], [Mention("X", [(0, 1)])])]
    mr = MentionReplacement(p=1.0, list_share=1.0, mentions={"X": ["brain tumour"]}).fit(diseases)
    assert list(mr.augment(diseases))[-1].tokens == ("Brain", "tumour", "is", "rare")
    headline = sentence("CRICKET - ESSEX POISED FOR VICTORY", ("X", 2, 3))
    mr = MentionReplacement(p=1.0, list_share=1.0, mentions={"X": ["Genk", "Ulm Town"]}).fit([headline, *TITLE])
    assert next(mr.augment([headline])).tokens[2] in ("GENK", "ULM")
    # A lower-case beginning stays, as in tweets; so do words with capitals inside.
    tweet = Sentence(["asthma", "is", "rare"], [Mention("X", [(0, 1)])])
    assert only_list([tweet, *TITLE], ["brain tumour", "iPhone"], "X") <= {"Brain Tumour", "brain tumour", "iPhone"}


def test_capitals_of_turkish_are_those_of_its_letters() -> None:
    cities = ("Iğdır", "İzmir", "Sakarya", "Ilgaz", "İznik", "Aydın")  # noqa: RUF001
    gold = corpus(*cities, frame="dün {} kapılarını açtı")  # noqa: RUF001
    assert only_list(gold, ["ISPARTA", "İSTANBUL", "ŞİŞLİ"], "X") == {"Isparta", "İstanbul", "Şişli"}
    assert only_list(gold, ["ısparta", "istanbul"], "X") == {"Isparta", "İstanbul"}  # noqa: RUF001
    small = corpus(*(city.replace("I", "ı").replace("İ", "i").lower() for city in cities), frame="dün {} kapıda kaldı")  # noqa: RUF001
    assert only_list(small, ["Isparta", "İstanbul"], "X") == {"ısparta", "istanbul"}  # noqa: RUF001
    headline = sentence("BAKAN İZMİR 'DE KONUŞTU", ("X", 1, 2))
    made = MentionReplacement(p=1.0, copies=20).fit([*gold, headline]).augment([headline])
    assert {new.tokens[1] for new in made} <= {"IĞDIR", "SAKARYA", "ILGAZ", "İZNİK", "AYDIN"}


@pytest.mark.parametrize(
    ("before", "entry", "after"),
    [
        ("the", "the Hague", "Hague"),
        ("The", "The Hague", "Hague"),
        ("in", "the Hague", "the Hague"),
        ("a", "the Hague", "Hague"),
        ("the", "Las Vegas", "Las Vegas"),
        ("the", "Thebes", "Thebes"),
        ("der", "Die Zeit", "Zeit"),
        ("la", "La Paz", "Paz"),
    ],
)
def test_articles_are_not_doubled(before: str, entry: str, after: str) -> None:
    gold = corpus("Rome", "Oslo", frame=f"{before} {{}} was")
    assert only_list(gold, [entry], "X") == {after}


def test_tokens_are_those_of_the_corpus() -> None:
    ours = [
        sentence("It is n't in New-York , ( UK ) he said .", ("X", 4, 5)),
        sentence("Bo 's is in Oslo .", ("X", 4, 5)),
    ]
    assert only_list(ours, ["Washington, D.C. (USA)", "St. John's"], "X") == {
        "Washington , D.C. ( USA )",
        "St. John 's",
    }
    treebank = [sentence("in Rome -LRB- Italy -RRB- .", ("X", 1, 2)), sentence("in Oslo .", ("X", 1, 2))]
    assert only_list(treebank, ["Paris (Texas)"], "X") == {"Paris -LRB- Texas -RRB-"}
    characters = [sentence("他 在 罗 马 。", ("X", 2, 4)), sentence("她 去 东 京 A 1 。", ("X", 2, 4))]
    assert only_list(characters, ["北京", "T3航站楼"], "X") == {"北 京", "T3 航 站 楼"}
    assert only_list(characters, ["《红楼梦》", "𠮷野家·B"], "X") == {"《 红 楼 梦 》", "𠮷 野 家 · B"}


def test_full_stops_of_abbreviations_are_those_of_the_corpus() -> None:
    together = [sentence("with Acme Inc. today .", ("X", 1, 3)), sentence("in Oslo .", ("X", 1, 2))]
    assert only_list(together, ["Smith Bros. Ltd."], "X") == {"Smith Bros. Ltd."}
    apart = [sentence("with Acme Inc . today .", ("X", 1, 4)), sentence("in Oslo .", ("X", 1, 2))]
    assert only_list(apart, ["Smith Bros. Ltd."], "X") == {"Smith Bros . Ltd ."}


def test_white_space_within_an_entry_is_kept() -> None:
    text = "He is in Rome, he said."
    tokens = ["He", "is", "in", "Rome", ",", "he", "said", "."]
    gold = [
        Sentence(tokens, [Mention("X", [(3, 4)])], spaces=(" ", " ", " ", "", " ", " ", "", "")),
        Sentence(["Oslo", "(", "Norway", ")", "is"], [Mention("X", [(0, 1)])], spaces=(" ", "", "", " ", "")),
    ]
    mr = MentionReplacement(p=1.0, list_share=1.0, mentions={"X": ["Paris (Texas)"]}).fit(gold)
    assert next(mr.augment(gold)).text == text.replace("Rome", "Paris (Texas)")


@settings(max_examples=examples(150))
@given(
    st.lists(sentences(flat=True), min_size=1, max_size=6),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), min_size=1, max_size=8),
    st.integers(0, 3),
)
def test_only_allowed_surfaces_come_in(gold: list[Sentence], texts: list[str], seed: int) -> None:
    """Every new mention is one of the corpus, or an entry of its type that is not held out, but for case and space."""
    labels = sorted({m.label for s in gold for m in s.mentions})
    texts = [text for text in texts if text.strip() and len(text.strip()) <= MAX_LENGTH]
    try:
        one = MentionList("a", [ListEntry(text, label) for label in labels for text in texts])
    except InputError:
        return  # no label, control characters, or no letter or digit
    held = [Sentence(texts[0].split(), [Mention("Z", [(0, len(texts[0].split()))])])]
    try:
        mr = MentionReplacement(p=1.0, list_share=0.7, mentions=one, copies=3, seed=seed, held_out=held).fit(gold)
    except InputError:
        return  # nothing can be replaced

    def surface(text: str) -> str:
        return "".join(text.split()).casefold()

    # A mention of the corpus, too, takes the capitals of the place it is put in.
    cases = (str, str.upper, str.lower)  # upper and lower case do not always return to the same letters
    training = {(m.label, surface(f("".join(s.mention_tokens(m))))) for s in gold for m in s.mentions for f in cases}

    left_out = mention_key(" ".join(texts[0].split()))
    allowed = {surface(text) for text in one.texts[labels[0]] if mention_key(text) != left_out}
    allowed |= {surface(text.split(" ", 1)[1]) for text in one.texts[labels[0]] if " " in text}  # without an article
    allowed = {surface(change(text)) for text in allowed for change in cases}
    for new in mr.augment(gold):
        assert new.provenance
        named = Counter(item["mention"] for item in new.provenance.details.get("lists", ()))
        for mention in new.mentions:
            words = new.mention_tokens(mention)
            if (mention.label, surface("".join(words))) in training and " ".join(words) not in named:
                continue
            assert surface("".join(words)) in allowed
            assert named[" ".join(words)]


@given(st.lists(sentences(), min_size=1, max_size=4), st.text(max_size=20))
def test_adapting_changes_nothing_but_case(gold: list[Sentence], text: str) -> None:
    capitals = CorpusCapitals()
    for one in gold:
        capitals.add(one)
    for label in ("PER", "none"):
        for style in ("lower", "upper", "title", "sentence", "mixed"):
            adapted = capitals.adapt(text, style, label)
            assert adapted.upper().casefold() == text.upper().casefold() or adapted.lower() == text.lower()
    assert style_of([text]) in ("lower", "upper", "title", "sentence", "mixed")


def test_donors_do_not_hold_the_corpus_or_tokenise_what_is_not_drawn() -> None:
    donors = ListDonors([MentionList("a", [f"Name {i}" for i in range(5000)], "LOC")])
    donors.fit(donors.observe(iter(GOLD)))
    assert donors.size("LOC") == 5000
    assert donors.size("PER") == 0
    assert not donors._prepared
    assert donors.draw(GOLD[0], GOLD[0].mentions[2], (), random.Random(1), lambda *_: True)
    assert len(donors._prepared) == 1


# ------------------------------------------------------------------------------------------------------- command, plans


def test_lines_that_end_with_lone_carriage_returns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cities.txt").write_bytes(b"Rome\rOslo\r")
    with pytest.raises(InputError, match="lines end with lone carriage returns"):
        mention_lists(f"{tmp_path}/cities.txt=LOC")


def test_lists_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, test = EXAMPLE / "train.conll", EXAMPLE / "test.conll"
    gold = entaug.read(train)
    known = inserted(entaug.read(test), "PER") - inserted(gold, "PER")
    (tmp_path / "people.txt").write_text("\n".join([*sorted(known), "Grace Brewster Hopper", "Emmy Noether"]))
    (tmp_path / "more.csv").write_text("name\nLise Meitner\n")
    out = tmp_path / "out.jsonl"
    base = ["augment", str(train), "-m", "mr", "-o", str(out), "--only-new", "--p", "1.0", "--copies", "3", "--force"]
    given_ = [f"--mentions={tmp_path}/people.txt=PER", "--mentions", f"{tmp_path}/more.csv:name=PER"]
    assert main([*base, *given_, "--list-share", "0.8", "--held-out", str(test)]) == 0
    said = capsys.readouterr().err
    assert f"{len(known)} are held-out mentions and left out" in said.replace("\n  ", " ").replace("\n", " ")
    assert "more.csv:name covers 0 of" in said
    new = inserted(entaug.read(out), "PER")
    assert {"Grace Brewster Hopper", "Emmy Noether", "Lise Meitner"} <= new
    assert not new & known
    assert main([*base, "--held-out", str(test)]) == 2
    assert (
        "--held-out has nothing to be compared with; add --filter leakage, --unlabelled or --mentions"
        in capsys.readouterr().err
    )
    assert main([*base, "--mentions", f"{tmp_path}/people.txt=PRE"]) == 2
    assert "people.txt: " in (said := capsys.readouterr().err)
    assert "did you mean 'PER'" in said
    assert main([*base, "--mentions", "nowhere.txt=PER"]) == 2
    assert "nowhere.txt: no such file; check the path" in capsys.readouterr().err
    in_method = ["augment", base[1], "-m", f"mr:mentions={tmp_path}/people.txt=PER"]
    for argv in ([*base[:4], *given_], in_method):
        assert main([*argv, "-o", f"{tmp_path}/people.txt", "--force"]) == 3
        assert "is an input" in capsys.readouterr().err


def test_lists_in_the_text_form_of_methods(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Oslo")
    combined = parse_methods(f"mr:mentions={tmp_path}/a.txt=LOC+sis", seed=3)
    assert isinstance(combined, CombinedAugmenter)
    assert "mentions=a.txt@" in combined.signature


def test_lists_in_plans_are_relative_to_the_plan_and_known_by_content(tmp_path: Path) -> None:
    pytest.importorskip("torch")

    def plan(mentions: str) -> Path:
        path = tmp_path / "plan.toml"
        path.write_text(
            f'[[methods]]\nname = "mr"\nmentions = {mentions}\n'
            f'[[corpora]]\nname = "toy"\ntrain = "{EXAMPLE}/train.conll"\ntest = "{EXAMPLE}/test.conll"\n'
        )
        return path

    (tmp_path / "a.txt").write_text("Oslo\nBonn")
    [method] = read_plan(plan('["a.txt=LOC"]')).methods
    augmenter = method.create()
    assert isinstance(augmenter, MentionReplacement)
    assert augmenter.mentions == [f"{tmp_path}/a.txt=LOC"]
    identity = method.identity
    assert str(tmp_path) not in str(identity)
    (tmp_path / "a.txt").write_text("Bonn\nOslo\n\n")
    assert method.identity == identity
    (tmp_path / "a.txt").write_text("Bonn\nOslo\nKiel")
    assert method.identity != identity
    assert MethodPlan(name="mr", label="mr", ratios=(1,), params={"p": 0.5}).identity == {"p": 0.5}
    with pytest.raises(ParameterError, match=r"plan\.toml:3: .*b\.txt: no such file"):
        read_plan(plan('["b.txt=LOC"]'))
    (tmp_path / "a.txt").write_bytes(b"Oslo\n\xff")
    with pytest.raises(ParameterError, match=r"plan\.toml:3: .*a\.txt:2: not UTF-8"):
        read_plan(plan('"a.txt=LOC"'))


def test_the_name_of_a_list_in_a_plan_may_hold_a_semicolon(tmp_path: Path) -> None:
    (tmp_path / "a;b.jsonl").write_text('{"mention": "Oslo", "label": "LOC"}')
    assert relative_to_folder("a;b.jsonl", tmp_path) == [f"{tmp_path}/a;b.jsonl"]
    assert relative_to_folder(["a;b.jsonl", "a.txt=X;b.txt=Y"], tmp_path) == [
        f"{tmp_path}/{name}" for name in ("a;b.jsonl", "a.txt=X", "b.txt=Y")
    ]
    assert len(relative_to_folder(";".join(["file.txt=LOC"] * 40), tmp_path)) == 40  # type: ignore[arg-type]
