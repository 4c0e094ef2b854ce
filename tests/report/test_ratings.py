"""Ratings: the sample, the page that names no method, the files of raters, means and agreement worked out by hand."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import EXAMPLE, examples
from entaug.commands.main import main
from entaug.core.data import Provenance, Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, OutputError, ParameterError, UnknownNameError
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair
from entaug.report.ratings.page import (
    DEFAULT_SCALES,
    Scale,
    packaged_scales,
    read_scales,
    render_rating_page,
    sample_items,
)
from entaug.report.ratings.results import (
    KeyItem,
    RatingKey,
    Ratings,
    key_text,
    ratings_markdown,
    ratings_table,
    read_key,
    read_ratings,
    summarize_ratings,
)

SCALES = [packaged_scales()[name] for name in DEFAULT_SCALES]
FLUENT, RIGHT, DIVERSE = SCALES
GROUP = packaged_scales()["entda"]


def gold(number: int) -> list[Sentence]:
    return [Sentence(["Person", str(n), "sings", "."], [Mention("PER", [(0, 2)])], id=f"g{n}") for n in range(number)]


def made(source: Sentence, method: str, copy: int, **details: Any) -> AugmentedPair:
    tokens = [*source.tokens[:2], f"{method}{copy}", "."]
    provenance = Provenance(method, method, (source.key,), copy, details)
    return AugmentedPair(
        Sentence(tokens, source.mentions, id=f"{source.id}/{method}-{copy}", provenance=provenance), source
    )


def corpus(number: int = 20, methods: tuple[str, ...] = ("mr", "lwtr"), copies: int = 2) -> AugmentedCorpus:
    sentences = gold(number)
    return AugmentedCorpus(
        sentences, {m: [made(s, m, c) for s in sentences for c in range(1, copies + 1)] for m in methods}
    )


# ----------------------------------------------------------------------------------------------------------- the sample


def test_methods_get_one_text_of_each_of_the_same_originals_and_gold_has_others() -> None:
    items, notes = sample_items(corpus(), SCALES, sample=8, with_gold=True)
    assert notes == []
    assert Counter(item.method for item in items) == {"gold": 8, "lwtr": 8, "mr": 8}
    originals = {
        method: [item.original.key for item in items if item.original and item.method == method]
        for method in ("mr", "lwtr")
    }
    assert sorted(originals["mr"]) == sorted(originals["lwtr"])
    assert len(set(originals["mr"])) == 8
    of_gold = {item.texts[0].id for item in items if item.method == "gold"}
    assert not of_gold & set(originals["mr"])
    assert {item.scales for item in items if item.method == "gold"} == {("fluent", "right")}
    # Where every original is taken, copies and originals serve too.
    items, _ = sample_items(corpus(3), SCALES, sample=5, with_gold=True)
    assert Counter(item.method for item in items) == {"gold": 3, "lwtr": 5, "mr": 5}
    assert max(Counter(i.original.id for i in items if i.original and i.method == "mr").values()) == 2


@settings(max_examples=examples(60))
@given(st.integers(1, 8), st.integers(1, 12), st.integers(0, 3), st.booleans(), st.randoms(use_true_random=False))
def test_the_sample_depends_on_the_seed_and_not_on_the_order(
    number: int, sample: int, seed: int, with_gold: bool, rng: Any
) -> None:
    whole = corpus(number)
    items, _ = sample_items(whole, SCALES, sample=sample, with_gold=with_gold, seed=seed)
    names = rng.sample(list(whole.methods), 2)
    shuffled = AugmentedCorpus(
        rng.sample(whole.gold, number), {m: rng.sample(whole.methods[m], 2 * number) for m in names}
    )
    assert sample_items(shuffled, SCALES, sample=sample, with_gold=with_gold, seed=seed)[0] == items
    counts = Counter(item.method for item in items)
    assert counts["mr"] == counts["lwtr"] == min(sample, 2 * number)
    texts = [(item.method, item.texts[0].fingerprint()) for item in items]
    assert len(set(texts)) == len(texts)


def test_another_seed_gives_another_sample_in_another_order() -> None:
    first, second = (sample_items(corpus(), SCALES, sample=8, seed=seed)[0] for seed in (0, 1))
    assert {item.texts for item in first} != {item.texts for item in second}
    assert [item.method for item in first] != sorted(item.method for item in first)


def test_groups_hold_all_texts_of_an_original() -> None:
    whole = corpus(10, copies=3)
    whole.methods["sr"] = [made(sentence, "sr", 1) for sentence in whole.gold]
    items, notes = sample_items(whole, [GROUP], sample=7)
    assert Counter(item.method for item in items) == {"mr": 3, "lwtr": 3}  # 9 texts, the first number not below 7
    for item in items:
        assert item.original
        assert {text.id for text in item.texts} == {f"{item.original.id}/{item.method}-{c}" for c in (1, 2, 3)}
    assert notes == [
        "sr: 10 texts are the only ones of their original and are not rated",
        "sr: no text can be rated on these scales",
    ]


def test_texts_without_an_original_are_not_compared() -> None:
    whole = corpus(4, methods=("mr",))
    whole.methods["daga"] = [made(sentence, "daga", 1, unconditioned=True) for sentence in whole.gold]
    items, notes = sample_items(whole, SCALES, sample=9)
    assert {(i.scales, i.original) for i in items if i.method == "daga"} == {(("fluent", "right"), None)}
    assert notes == ["daga: texts without a known original are not compared with one"]
    assert {i.method for i in sample_items(whole, [DIVERSE], sample=9)[0]} == {"mr"}


def test_rejected_texts_and_duplicates_are_not_rated() -> None:
    whole = corpus(3, methods=("mr",), copies=1)
    [first, *_] = pairs = whole.methods["mr"]
    whole.methods["mr"] = [*pairs, first, AugmentedPair(Sentence(["no"]), whole.gold[0], (), "too short")]
    assert len(sample_items(whole, SCALES, sample=9)[0]) == 3


def test_nothing_to_rate_is_an_error() -> None:
    with pytest.raises(ParameterError, match="no augmented sentence to rate; name files that entaug augment wrote"):
        sample_items(AugmentedCorpus(gold(2)), SCALES, sample=5)
    with pytest.raises(ParameterError, match="'entda', which compares texts; leave gold sentences out"):
        sample_items(corpus(), [GROUP], sample=5, with_gold=True)
    whole = corpus(2)
    whole.methods["gold"] = whole.methods.pop("mr")
    with pytest.raises(ParameterError, match="a method has the name 'gold'"):
        sample_items(whole, SCALES, sample=5, with_gold=True)


# ----------------------------------------------------------------------------------------------------------- the scales


def test_scales_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[useful]\nquestion = "Useful?"\nanchors = ["no", "yes"]\n\n["à la"]\nquestion = "?"\nanchors = '
        '["1", "2", "3", "4", "5"]\njudges = "pair"\n',
        "utf-8",
    )
    assert read_scales(file) == [
        Scale("useful", "Useful?", ("no", "yes")),
        Scale("à la", "?", ("1", "2", "3", "4", "5"), "pair"),
    ]
    assert [scale.name for scale in read_scales(" right, diverse ")] == ["right", "diverse"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[a", "is not TOML"),
        ("", "no scale is given"),
        ("x = 1", ":1: not a scale: 1"),
        ("\n[a]\nquestion = 'x'", ":2: a scale needs the parameter anchors"),
        ("[a]\nquestion = 'x'\nanchors = ['n', 'y']\ncolour = 1", "unknown parameter of a scale: 'colour'"),
        ("[a]\nquestion = 'x'\nanchors = 'ny'", ":1: anchors must be a list of 2 or 5 texts of one line"),
        ("[a]\nquestion = 'x'\nanchors = ['n', 'm', 'y']", ":1: anchors must be a list of 2 or 5 texts of one line"),
        ("[a]\nquestion = 'x'\nanchors = ['n', 3]", ":1: anchors must be a list of 2 or 5 texts of one line"),
        ("[a]\nquestion = ''\nanchors = ['n', 'y']", ":1: question must be one line"),
        ("[a]\nquestion = 3\nanchors = ['n', 'y']", ":1: question must be one line"),
        ('["a\\nb"]\nquestion = "x"\nanchors = ["n", "y"]', "name must be one line"),
        ("[a]\nquestion = 'x'\nanchors = ['n', 'y']\njudges = 'style'", ":1: judges must be"),
        (
            "[a]\nquestion='x'\nanchors=['n','y']\njudges='group'\n[b]\nquestion='x'\nanchors=['n','y']",
            "'a' judges groups of texts, and 'b' single texts; write two pages",
        ),
    ],
)
def test_faulty_files_of_scales_are_reported_on_one_line(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(content, "utf-8")
    with pytest.raises(EntaugError, match=re.escape(message)) as error:
        read_scales(file)
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value)


def test_unknown_and_repeated_names_of_scales() -> None:
    with pytest.raises(UnknownNameError, match="fluent"):
        read_scales("fluennt")
    with pytest.raises(ParameterError, match="given twice"):
        read_scales("right,right")
    with pytest.raises(ParameterError, match="no scale is given"):
        read_scales(",")
    with pytest.raises(InputError, match="no such file"):
        read_scales("none.toml")


# ------------------------------------------------------------------------------------------------------------- the page


def data_of(html: str) -> Any:
    return json.loads(re.findall(r'data-digest="\w+">(.*?)</script>', html)[0])


def test_the_page_names_no_method_and_no_id(tmp_path: Path) -> None:
    train = tmp_path / "train.conll"
    train.write_bytes((EXAMPLE / "train.conll").read_bytes())
    sentences = list(entaug.read(train))
    for method in ("lwtr", "sis"):
        entaug.write(entaug.augment(sentences, method), tmp_path / f"set-{method}.jsonl")
    files = [tmp_path / "set-lwtr.jsonl", tmp_path / "set-sis.jsonl"]
    page = tmp_path / "page.html"
    summary = entaug.rate(files, page, gold=train, sample=6, with_gold=True)
    assert summary.items == {"gold": 6, "lwtr": 6, "sis": 6}
    assert summary.ratings == 6 * 2 + 12 * 3
    html, key = page.read_text("utf-8"), json.loads((tmp_path / "page.key.json").read_text("utf-8"))
    for secret in ("lwtr", "sis-", '"sis"', "set-lwtr", '"gold"', '"method"', "entaug-", str(tmp_path)):
        assert secret not in html[html.index("<body>") : html.rindex("<script>")], secret
    for item in key["items"]:
        assert not any(name in html for name in (*item["texts"], item["original"]) if name)
    assert key["page"] == summary.page
    # The key tells what stands where.
    by_id = {s.id: s for f in files for s in entaug.read(f)} | {s.key: s for s in sentences}
    for shown, item in zip(data_of(html)["items"], key["items"], strict=True):
        assert shown["t"][0]["t"] == list(by_id[item["texts"][0]].tokens)
        assert ("o" in shown) == (item["method"] != "gold")
        if "o" in shown:
            assert shown["o"]["t"] == list(by_id[item["original"]].tokens)
    before = html
    entaug.rate(files[::-1], page, gold=train, sample=6, with_gold=True, force=True)
    assert page.read_text("utf-8") == before


def test_an_original_is_only_in_the_page_where_it_is_compared() -> None:
    for scales, has_original in (([FLUENT, RIGHT], False), ([DIVERSE], True), ([GROUP], True)):
        items, _ = sample_items(corpus(3), scales, sample=4)
        assert all(("o" in item) == has_original for item in data_of(render_rating_page(items, scales).html)["items"])


def test_white_space_does_not_tell_methods_apart() -> None:
    source = Sentence(["Ada", "laughs", "."], spaces=[" ", "  ", ""], id="a")
    knows, lacks = source.with_(id="b"), Sentence(["Bo", "laughs", "."], id="c")
    both = AugmentedCorpus([source], {"one": [AugmentedPair(knows, source)], "two": [AugmentedPair(lacks, source)]})
    for methods, spaces in ((("one",), [" ", "  ", ""]), (("one", "two"), [" ", "", ""])):
        part = AugmentedCorpus(both.gold, {name: both.methods[name] for name in methods})
        items, _ = sample_items(part, [FLUENT], sample=4)
        shown = data_of(render_rating_page(items, [FLUENT]).html)["items"]
        assert all(text["s"] == spaces for item in shown for text in item["t"])


@pytest.mark.parametrize("token", ["</script>", "<!--", "\u2028", "'\"&", "אב", "😀"])
def test_texts_and_scales_are_data(token: str) -> None:
    scale = Scale("<b>fun", f"Really {token.strip(chr(0x2028))}?", ("<i>no", "yes"))
    source = Sentence([token], [Mention(token, [(0, 1)])])
    items, _ = sample_items(AugmentedCorpus([source], {token: [AugmentedPair(source, source)]}), [scale], sample=1)
    html = render_rating_page(items, [scale], title="<b>A</b>").html
    assert "<b>fun" not in html
    assert "<i>no" not in html
    assert "<title>&lt;b&gt;A&lt;/b&gt;</title>" in html
    assert data_of(html)["items"][0]["t"][0]["t"] == [token]
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", html)


# ------------------------------------------------------------------------------------------------------ files of raters

KEY = RatingKey(
    "p1",
    (FLUENT, DIVERSE),
    (
        KeyItem("mr", ("fluent", "diverse"), ("t1",), "o1"),
        KeyItem("gold", ("fluent",), ("o2",)),
        KeyItem("mr", ("fluent", "diverse"), ("t3",), "o3"),
    ),
)
HEAD = {"entaug": "ratings", "version": 1, "page": "p1", "rater": "Ada"}


def exported(path: Path, rater: str, *ratings: tuple[int, str, int], **head: Any) -> Path:
    lines = [HEAD | {"rater": rater} | head, *({"item": i, "scale": s, "rating": r} for i, s, r in ratings)]
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


def test_files_are_merged(tmp_path: Path) -> None:
    one = exported(tmp_path / "1.jsonl", "Bo", (1, "fluent", 4), (3, "diverse", 1))
    two = exported(tmp_path / "2.jsonl", " Ada ", (2, "fluent", 5))
    ratings = read_ratings([one, two], KEY)
    assert ratings.raters == {"Ada": {(1, "fluent"): 5}, "Bo": {(0, "fluent"): 4, (2, "diverse"): 1}}
    assert next(ratings.rows()) == {
        "rater": "Ada", "item": 2, "method": "gold", "texts": ["o2"], "original": None, "scale": "fluent", "rating": 5,
    }  # fmt: skip
    # Joined into one file, with what editors and other systems add.
    joined = tmp_path / "all.jsonl"
    joined.write_bytes(b"\xef\xbb\xbf" + (one.read_bytes() + b"\n" + two.read_bytes()).replace(b"\n", b"\r\n"))
    assert read_ratings([joined], KEY).raters == ratings.raters
    assert read_ratings([exported(tmp_path / "3.jsonl", "Cy")], KEY).raters == {"Cy": {}}


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ([], None, "holds no ratings"),
        (["{"], 1, "is not JSON"),
        (["[]"], 1, "is not a JSON object"),
        ([{"item": 1, "scale": "fluent", "rating": 1}], 1, "does not begin a file of ratings"),
        ([HEAD | {"entaug": "review"}], 1, "does not begin a file of ratings"),
        ([HEAD | {"version": 2}], 1, "has version 2 of the format, and this entaug reads version 1"),
        ([HEAD | {"page": "p2"}], 1, "has the ratings of another page ('p2', not 'p1')"),
        ([HEAD | {"page": None}], 1, "has the ratings of another page (None, not 'p1')"),
        ([HEAD | {"rater": " "}], 1, "names no rater"),
        ([HEAD | {"rater": 3}], 1, "names no rater"),
        ([HEAD, {"item": 0, "scale": "fluent", "rating": 1}], 2, "from 1 to 3, not 0"),
        ([HEAD, {"item": 4, "scale": "fluent", "rating": 1}], 2, "from 1 to 3, not 4"),
        ([HEAD, {"item": True, "scale": "fluent", "rating": 1}], 2, "from 1 to 3, not True"),
        ([HEAD, {"item": 1.0, "scale": "fluent", "rating": 1}], 2, "from 1 to 3, not 1.0"),
        ([HEAD, {"scale": "fluent", "rating": 1}], 2, "from 1 to 3, not None"),
        ([HEAD, {"item": 1, "scale": "right", "rating": 1}], 2, "not rated on 'right', only on fluent, diverse"),
        ([HEAD, {"item": 2, "scale": "diverse", "rating": 1}], 2, "not rated on 'diverse', only on fluent"),
        ([HEAD, {"item": 2, "scale": ["fluent"], "rating": 1}], 2, "item 2 is not rated on ['fluent']"),
        ([HEAD, {"item": 1, "scale": "fluent", "rating": 0}], 2, "rating must be a whole number from 1 to 5, not 0"),
        ([HEAD, {"item": 1, "scale": "fluent", "rating": 6}], 2, "from 1 to 5, not 6"),
        ([HEAD, {"item": 1, "scale": "fluent", "rating": 4.5}], 2, "from 1 to 5, not 4.5"),
        ([HEAD, {"item": 1, "scale": "fluent", "rating": True}], 2, "from 1 to 5, not True"),
        ([HEAD, {"item": 1, "scale": "fluent", "rating": "4"}], 2, "from 1 to 5, not '4'"),
        ([HEAD, {"item": 1, "scale": "fluent", "rating": 2**60}], 2, "from 1 to 5, not 1152921504606846976"),
        (
            [HEAD, *({"item": 1, "scale": "fluent", "rating": n} for n in (4, 4))],
            3,
            "item 1 is rated twice on the scale 'fluent'; first in line 2",
        ),
        ([HEAD, "", HEAD | {"rater": "ADA "}], 3, "the ratings of 'ADA' are also in "),
        ([HEAD, b"\xff\xfe"], 2, "UTF-8"),
        (["[" * 5000], 1, "is not JSON"),
    ],
)
def test_faulty_files_are_refused_with_file_and_line(
    tmp_path: Path, lines: list[Any], line: int | None, message: str
) -> None:
    path = tmp_path / "r.jsonl"
    as_bytes = [
        li if isinstance(li, bytes) else li.encode() if isinstance(li, str) else orjson.dumps(li) for li in lines
    ]
    path.write_bytes(b"".join(part + b"\n" for part in as_bytes))
    with pytest.raises(InputError, match=re.escape(message)) as error:
        read_ratings([path], KEY)
    assert str(error.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert "\n" not in str(error.value)


def test_a_rater_with_two_files_is_refused(tmp_path: Path) -> None:
    one, two = exported(tmp_path / "1.jsonl", "Ada", (1, "fluent", 4)), exported(tmp_path / "2.jsonl", "ada")
    with pytest.raises(InputError, match=r"2.jsonl:1: the ratings of 'ada' are also in .*1.jsonl:1; give one file for"):
        read_ratings([one, two], KEY)
    with pytest.raises(InputError, match="no such file"):
        read_ratings([tmp_path / "none.jsonl"], KEY)
    with pytest.raises(InputError, match="is a directory"):
        read_ratings([tmp_path], KEY)


def test_the_key_is_read_back(tmp_path: Path) -> None:
    items, _ = sample_items(corpus(5), SCALES, sample=3, with_gold=True)
    path = tmp_path / "key.json"
    path.write_text(key_text("p9", SCALES, items, 0), "utf-8")
    key = read_key(path)
    assert (key.page, list(key.scales), key.methods, key.size) == ("p9", SCALES, ["gold", "lwtr", "mr"], 3 * 2 + 6 * 3)
    assert [item.texts for item in key.items] == [tuple(text.id for text in item.texts) for item in items]


def with_item(**changes: Any) -> dict[str, Any]:
    item = {"method": "mr", "scales": ["fluent"], "texts": ["t"], "original": None} | changes
    return {"entaug": "rating key", "version": 1, "page": "p", "scales": [FLUENT.to_dict()], "items": [item]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{", "is not the key of a page"),
        ([], "is not the key of a page"),
        (HEAD, "is not the key of a page"),
        (with_item() | {"version": 9}, "has version 9"),
        (with_item() | {"scales": []}, "is damaged (no scale is given"),
        (with_item() | {"scales": [3]}, "is damaged (not a scale: 3"),
        (with_item() | {"items": [3]}, "is damaged"),
        (with_item() | {"items": 3}, "is damaged"),
        (with_item(method=3), "is damaged (method must be a string, not 3)"),
        (with_item(texts="t"), "is damaged (texts must be"),
        (with_item(colour=3), "is damaged (unknown parameter of an item"),
    ],
)
def test_faulty_keys_are_refused(tmp_path: Path, data: Any, message: str) -> None:
    path = tmp_path / "key.json"
    path.write_bytes(data.encode() if isinstance(data, str) else orjson.dumps(data))
    with pytest.raises(InputError, match=re.escape(message)) as error:
        read_key(path)
    assert str(error.value).endswith("; name the key that entaug rate wrote beside the page")


# ---------------------------------------------------------------------------------------------------- what ratings say


def test_means_and_agreement_by_hand() -> None:
    key = RatingKey("p", (FLUENT,), tuple(KeyItem(m, ("fluent",)) for m in ("mr", "mr", "gold", "gold", "none")))
    ratings = Ratings(
        key,
        {
            "Ada": {(0, "fluent"): 1, (1, "fluent"): 2, (2, "fluent"): 5, (3, "fluent"): 5},
            "Bo": {(0, "fluent"): 2, (2, "fluent"): 5},
        },
    )
    summary = summarize_ratings(ratings)
    assert list(summary.methods) == ["gold", "mr", "none"]
    mr, best = summary.methods["mr"]["fluent"], summary.methods["gold"]["fluent"]
    assert mr
    assert best
    # Of three ratings in two texts: 5/3. Two resampled texts have the means 3/2, 5/3, 5/3 or 2.
    assert mr.mean == pytest.approx(5 / 3)
    assert (mr.low, mr.high) == (1.5, 2.0)
    assert (mr.items, mr.ratings, mr.missing) == (2, 3, 1)
    assert (best.mean, best.low, best.high, best.missing) == (5, 5, 5, 1)
    assert summary.methods["none"]["fluent"] is None
    # Pairs (1, 2) and (5, 5). Observed: (1 + 1) / 4; expected: 2 * (1 + 2 * 16 + 2 * 9) / 12. 1 - 0.5 / 8.5.
    found = summary.agreement["fluent"]
    assert found.interval == pytest.approx(1 - 0.5 / 8.5)
    assert (found.items, found.ratings) == (2, 4)
    assert [(r.name, r.ratings, r.missing, r.means) for r in summary.raters] == [
        ("Ada", 4, 1, {"fluent": 13 / 4}),
        ("Bo", 2, 3, {"fluent": 7 / 2}),
    ]
    assert summary.notes == ("Ada left out 1 of 5 ratings", "Bo left out 3 of 5 ratings")
    assert summarize_ratings(ratings).to_dict() == summary.to_dict()
    table = ratings_table(summary).splitlines()
    assert [" ".join(line.split()) for line in table] == [
        "fluent",
        "gold 5.00 (5.00 to 5.00)",
        "mr 1.67 (1.50 to 2.00)",
        "none -",
        f"alpha, ordinal {found.ordinal:.3f}",
        "alpha, interval 0.941",
        "rated by two or more 2",
        "",
        "rater fluent",
        "Ada 3.25",
        "Bo 3.50",
        "note: Ada left out 1 of 5 ratings",
        "note: Bo left out 3 of 5 ratings",
    ]
    assert len({len(line) for line in table[:7]}) == 1
    markdown = ratings_markdown(summary)
    assert "| mr | 1.67 (1.50 to 2.00) |" in markdown
    assert "- **fluent**: Could a native speaker have written the text? 1 no: hardly understandable; 5 yes" in markdown


def test_what_cannot_be_computed_is_left_out_with_a_note() -> None:
    key = RatingKey("p", (FLUENT, RIGHT), (KeyItem("mr", ("fluent", "right")), KeyItem("mr", ("fluent", "right"))))
    equal = {(0, "fluent"): 4, (1, "fluent"): 4}
    one = summarize_ratings(Ratings(key, {"Ada": equal}))
    assert one.notes[0] == "one rater: agreement needs the files of two or more"
    two = summarize_ratings(Ratings(key, {"Ada": equal | {(0, "right"): 1}, "Bo": equal | {(1, "right"): 2}}))
    assert two.notes[:2] == (
        "fluent: all ratings are equal, so agreement is undefined",
        "right: no text has the ratings of two raters, so agreement is undefined",
    )
    assert two.agreement["fluent"].ordinal is None
    single = summarize_ratings(Ratings(key, {"Ada": {(0, "right"): 3}, "Bo": {}}))
    mean = single.methods["mr"]["right"]
    assert mean
    assert (mean.mean, mean.low, mean.high) == (3, None, None)
    assert single.methods["mr"]["fluent"] is None
    assert "3.00" in ratings_table(single)
    with pytest.raises(ParameterError, match="samples must be at least 1"):
        summarize_ratings(Ratings(key, {"Ada": equal}), samples=0)


# ------------------------------------------------------------------------------------------------- on the command line


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    sentences = list(entaug.read(EXAMPLE / "train.conll"))[:12]
    entaug.write(sentences, "train.conll")
    for method in ("mr", "lwtr"):
        entaug.write(entaug.augment(sentences, method), f"{method}.jsonl")
    assert main(["rate", "mr.jsonl", "lwtr.jsonl", "--gold", "train.conll", "--sample", "4", "-o", "rate.html"]) == 0
    return tmp_path


def rated(key: Path, path: Path, rater: str, shift: int) -> Path:
    """A rater who gives lwtr 2 and mr 4, less `shift` for every second item."""
    items = read_key(key).items
    ratings = [
        (n, scale, (4 if item.method == "mr" else 2) - shift * (n % 2))
        for n, item in enumerate(items, start=1)
        for scale in item.scales
    ]
    return exported(path, rater, *ratings, page=read_key(key).page)


def test_from_the_page_to_the_table(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    again = ["rate", "lwtr.jsonl", "mr.jsonl", "--gold", "train.conll", "--sample", "4", "-o", "rate.html"]
    assert main([*again, "--force"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "wrote rate.html: 4 of lwtr, 4 of mr; 24 ratings for each rater",
        "wrote rate.key.json: keep it from the raters; entaug ratings needs it",
    ]
    files = [str(rated(Path("rate.key.json"), Path(f"{name}.jsonl"), name, n)) for n, name in enumerate(("Ada", "Bo"))]
    assert main(["ratings", "rate.key.json", *files]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["fluent", "right", "diverse"]
    assert main(["ratings", "rate.key.json", files[0], "-o", "r.json", files[1], "--merged", "all.jsonl"]) == 0
    data = orjson.loads(Path("r.json").read_bytes())
    assert 3 < data["methods"]["mr"]["fluent"]["mean"] <= 4
    assert 1 < data["methods"]["lwtr"]["fluent"]["mean"] <= 2
    assert 0 < data["agreement"]["fluent"]["interval"] < 1
    rows = [orjson.loads(line) for line in Path("all.jsonl").read_bytes().splitlines()]
    assert len(rows) == 48
    assert {row["rating"] for row in rows if row["rater"] == "Ada" and row["method"] == "lwtr"} == {2}
    assert main(["ratings", "rate.key.json", *files, "-o", "r.md"]) == 0
    assert Path("r.md").read_text("utf-8").startswith("# Ratings\n\n|  | fluent | right | diverse |")
    capsys.readouterr()
    assert main(["ratings", "rate.key.json", *files, "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out) == data


def test_wrong_use_is_one_line(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    for code, argv, message in (
        (2, ["rate"], "no file is given; name augmented files"),
        (2, ["rate", "mr.jsonl"], "no output is given; name the page: -o rate.html"),
        (2, ["rate", "mr.jsonl", "-o", "-"], "the page and its key are two files"),
        (2, ["rate", "mr.jsonl", "-o", "x.html", "--key", "x.html"], "have the same name"),
        (2, ["rate", "mr.jsonl", "-o", "x.html", "--sample", "0"], "sample must be at least 1"),
        (2, ["rate", "mr.jsonl", "-o", "x.html", "--scales", "nice"], "unknown scale"),
        (2, ["rate", "train.conll", "-o", "x.html"], "there is no augmented sentence to rate"),
        (3, ["rate", "mr.jsonl", "-o", "rate.html"], "rate.html: exists"),
        (3, ["rate", "mr.jsonl", "-o", "mr.jsonl", "--force"], "inputs are never overwritten"),
        (2, ["ratings", "rate.key.json"], "no file of ratings is given"),
        (2, ["ratings", "mr.jsonl", "rate.key.json"], "is not the key of a page for raters"),
        (2, ["ratings", "rate.key.json", "mr.jsonl"], "mr.jsonl:1: does not begin a file of ratings"),
    ):
        assert main(argv) == code, argv
        out, err = capsys.readouterr()
        assert out == ""
        assert message in err
        assert err.count("\n") == 1
    assert not Path("x.html").exists()
    assert not Path("x.key.json").exists()
    with pytest.raises(OutputError, match="is an input"):
        entaug.ratings("rate.key.json", ["mr.jsonl"], "rate.key.json", force=True)


def test_listed_scales_can_be_used(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["list", "scales"]) == 0
    Path("all.toml").write_text(capsys.readouterr().out.partition("# After appendix")[0], "utf-8")
    arguments = ["rate", "mr.jsonl", "--gold", "train.conll", "--scales", "all.toml", "-o", "own.html", "--json"]
    assert main(arguments) == 0
    assert orjson.loads(capsys.readouterr().out)["items"] == {"mr": len(list(entaug.read("mr.jsonl")))}
