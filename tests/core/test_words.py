"""Words in every script: letters with their marks, scripts, and text that is divided as a corpus is."""

# ruff: noqa: RUF001  (letters of all scripts)

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.core.alignment import CorpusTokenizer, detokenize
from entaug.core.spacing import infer_spaces
from entaug.core.words import Letters, folded, is_unbalanced, is_word, may_replace, script_of, takes_an, words_in
from entaug.errors import InputError, readable

WORDS = """Rome Köln naïve Москва й İstanbul i̇stanbul ışık مدرسه می‌روند مُحَمَّد हिंदी कॉमेडी क्षेत्र ডিম্বস্ফোটকের মাল্টিভাইব্রেটর
서울에서 東 東京 カタカナ ひらがな ภาษาไทย தமிழ் עִבְרִית""".split()
NO_WORDS = ["", " ", "-", "2", "2nd", "covid19", "'s", "co-op", "a b", "A.", "x-"]
NO_WORDS += ["।", "。", "़", "ा", "२०१०", "می\u200c", "\u200c"]


def test_words_that_messages_quote_keep_their_joiners() -> None:
    word = "می\u200cرود"
    assert str(InputError(f"one is {word!r}")) == f"one is '{word}'"
    assert readable(repr(f"\\{word}")) == f"'\\\\{word}'"
    for text in ("a\u200bb", r"\u200c"):  # the second has no joiner
        assert readable(repr(text)) == repr(text)


@pytest.mark.parametrize("word", WORDS)
def test_words_of_every_script_are_words(word: str) -> None:
    assert is_word(word)
    assert is_word(unicodedata.normalize("NFD", word))
    assert words_in(f"“{word}” ({word}), 2. {word}") == [word] * 3
    assert script_of(word) == script_of(f"2-{word}")


@pytest.mark.parametrize("text", NO_WORDS)
def test_other_tokens_are_no_words(text: str) -> None:
    assert not is_word(text)


def test_hyphens_are_allowed_inside_only() -> None:
    assert [is_word(text, hyphens=True) for text in ("co-op", "दो-तीन", "-op", "co-", "-")] == [
        True,
        True,
        *[False] * 3,
    ]


@given(st.text(max_size=12))
@settings(max_examples=examples(300))
def test_words_hold_neither_spaces_nor_digits(text: str) -> None:
    if is_word(text):
        assert not any(c.isspace() or c.isdigit() for c in text)
        assert words_in(text) == [text]
    if text.isalpha():
        assert is_word(text)
    for word in words_in(text):
        assert word in text


@given(st.text(st.characters(max_codepoint=127)))
def test_words_of_english_text_are_runs_of_letters(text: str) -> None:
    assert words_in(text) == re.findall(r"[A-Za-z]+", text)


@pytest.mark.parametrize(
    ("new", "old", "may"),
    [
        ("Paris", "Rome", True),
        ("naïve", "simple", True),
        ("comedy", "कॉमेडी", False),
        ("комедия", "comedy", False),
        ("नाटक", "कॉमेडी", True),
        ("নাটক", "कॉमेडी", False),
        ("二", "東", True),
        ("ひ", "東", True),
        ("二人", "東", False),
        ("二人", "東京", True),
        ("二", "東京", True),
        ("sixteen", "羅", False),
        ("서울", "東", False),
        ("x", "5", True),
    ],
)
def test_what_may_stand_for_a_word(new: str, old: str, may: bool) -> None:
    assert may_replace(new, old) is may


# ------------------------------------------------------------------------------------------------------ running text


def test_marks_of_other_scripts_stand_at_their_words() -> None:
    for printed, tokens in (
        ("ارتفع ٥٪، نعم؟", "ارتفع ٥ ٪ ، نعم ؟"),
        ("בן־גוריון נולד.", "בן ־ גוריון נולד ."),
        ("Τι\u037e Ναι\u0387 όχι.", "Τι \u037e Ναι \u0387 όχι ."),
        ("Գնաց։", "Գնաց ։"),
        ("ሄደ።", "ሄደ ።"),
    ):
        assert detokenize(tokens.split()) == printed
    assert infer_spaces(["\u05be"]) == ("",)
    assert infer_spaces(["\u05be", "a"]) == ("", "")


def test_brackets_of_chinese_and_japanese_are_paired() -> None:
    assert not is_unbalanced([*"他读《狂人日记》（鲁迅）。"])
    assert is_unbalanced([*"他读《狂人日记（鲁迅）。"])
    assert is_unbalanced([*"」と言った「"])


def test_characters_are_written_without_spaces() -> None:
    assert detokenize(list("他在北京大学学习。")) == "他在北京大学学习。"
    assert (
        detokenize(["在", "2", "月", "，", "听", "Louis", "Armstrong", "的", "歌"]) == "在2月，听 Louis Armstrong 的歌"
    )
    # Words that the corpus divides by itself keep their spaces: text without them could not be divided again.
    assert detokenize(["他", "在", "北京", "大学"]) == "他 在 北京 大学"
    # A wide mark stands close to a foreign word, too.
    assert detokenize(["我", "用", "iPhone", "。", "《", "Time", "》"]) == "我用 iPhone。《Time》"
    assert infer_spaces(["The", "character", "中", "means", "middle", "."]) == (" ", " ", " ", " ", "", "")
    assert detokenize("क्या आप ठीक हैं ।".split()) == "क्या आप ठीक हैं।"


@pytest.mark.parametrize(
    "printed",
    [
        "Er sagte: „Ja“, und ging.",
        "„Das Auto“ gehört ihm.",
        "Er kommt nicht.“",
        "Das sog. „Gesetz“ (ein ‚Haus‘) galt.",
        "»Nein«, rief er.",
        "«Oui», dit Ana.",
        "“Yes,” she said, ‘no’.",
        "Der Wert wird auf 5.000,00 € festgesetzt.",
        "Die 3 Mio. € Schaden (5 €) und 5,- € je Tag",
        "In 2010, $5 million; $AAPL rose by $.5",
    ],
)
def test_marks_are_attached_as_in_print(printed: str) -> None:
    tokens = re.findall(r"5\.000,00|5,-|\.5|Mio\.|sog\.|\w+|[^\w\s]", printed)
    assert detokenize(tokens) == printed
    if "$" not in printed:
        assert CorpusTokenizer([tokens])(printed) == tokens


CHARACTERS = [list("他在北京大学学习。"), ["我", "听", "Louis", "Armstrong", "的", "歌", "，", "3.5", "次"]]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("他在北京大学学习。", list("他在北京大学学习。")),
        ("我听Bach的歌，4.5次", ["我", "听", "Bach", "的", "歌", "，", "4.5", "次"]),
        ("「他」 在", ["「", "他", "」", "在"]),
    ],
)
def test_text_is_divided_into_characters_where_the_corpus_is(text: str, tokens: list[str]) -> None:
    tokenizer = CorpusTokenizer(CHARACTERS)
    assert tokenizer(text) == tokens
    assert not tokenizer.divides_unspaced_text


def test_words_of_scripts_without_spaces_are_not_guessed() -> None:
    tokenizer = CorpusTokenizer([["他", "在", "北京", "大学", "学习", "。"]])
    assert tokenizer.divides_unspaced_text
    assert tokenizer("他 在 北京") == ["他", "在", "北京"]
    assert not CorpusTokenizer([["He", "met", "東京", "."]]).divides_unspaced_text


def test_a_piece_is_split_at_all_its_marks() -> None:
    tokenizer = CorpusTokenizer([["either", "/", "or"], ["well", "-", "known"]])
    assert tokenizer("up-to/date") == ["up", "-", "to", "/", "date"]
    assert tokenizer("-5/6 up--to/date up-/to") == ["-5", "/", "6", "up--to", "/", "date", "up-/to"]
    assert CorpusTokenizer([["either", "/", "or"]])("up-to/date") == ["up-to", "/", "date"]


def test_marks_at_the_end_of_words_stay_where_the_corpus_keeps_them() -> None:
    assert CorpusTokenizer([["वे", "आए", "।"]])("वे गए।") == ["वे", "गए", "।"]
    assert CorpusTokenizer([["वे", "आए।"], ["ठीक", "है।"]])("वे गए।") == ["वे", "गए।"]
    assert CorpusTokenizer([["एम.", "ए.", "है", "।"]])("एम.एस.") == ["एम.एस", "."]  # two letters are no initial
    assert CorpusTokenizer([["J.", "S.", "Bach"]])("क.ख. J.S.") == ["क.ख.", "J.S."]


@pytest.mark.corpora
@pytest.mark.parametrize("language", "bn de hi ko ru tr zh".split())
def test_names_of_real_corpora_are_words_and_their_text_comes_back(language: str, corpora: Path) -> None:
    gold = list(entaug.read(corpora / "multiconer-v1" / "100" / f"{language}_sample_train.conll"))
    names = [token for s in gold for mention in s.mentions for token in s.mention_tokens(mention)]
    assert sum(map(is_word, names)) > 0.85 * len(names)
    tokenizer = CorpusTokenizer(sentence.tokens for sentence in gold[::2])
    assert not tokenizer.divides_unspaced_text
    kept = total = 0
    for sentence in gold[1::2]:
        kept += (Counter(tokenizer(detokenize(sentence.tokens, sentence.spaces))) & Counter(sentence.tokens)).total()
        total += len(sentence)
    assert kept > 0.9 * total


def test_letters_are_those_of_the_language_of_the_corpus() -> None:
    turkish = Letters.of(Counter("Sadık Işık dün İzmir ' de kaldı ve gitti .".split()))
    assert [turkish.lower(word) for word in ("İzmir", "IĞDIR", "Işık")] == ["izmir", "ığdır", "ışık"]
    assert [turkish.upper(word) for word in ("izmir", "ığdır")] == ["İZMİR", "IĞDIR"]
    assert [turkish.capitalize(word) for word in ("istanbul", "ısparta", "şişli", "")] == [
        "İstanbul", "Isparta", "Şişli", "",
    ]  # fmt: skip
    # English with a Turkish name, and Turkish in the small letters of Python, which has both letters as i.
    english = Counter({"the": 500, "IBM": 20, "Işık": 3})
    by_python = Counter(word.lower() for word in "Sadık İzmir Isparta ' da kaldı .".split())
    for letters in (Letters.of(english), Letters.of(by_python), Letters.of(Counter()), Letters()):
        assert (letters.lower("IBM"), letters.upper("istanbul"), letters.capitalize("is")) == ("ibm", "ISTANBUL", "Is")
    assert Letters().upper("Αθήνα") == "ΑΘΗΝΑ"


def test_spellings_of_one_text_are_folded_alike() -> None:
    for text in ("Jürgen Müller", "İzmir", "Ελύτης", "रिज़र्व", "한국", "Ada"):
        assert len({folded(unicodedata.normalize(form, text)) for form in ("NFC", "NFD")}) == 1
    assert folded("ADA") == folded("ada") != folded("Adä")


@pytest.mark.parametrize("word", ["NF-kappa", "MHC", "LTR", "FBI", "H2", "X-ray", "S-phase", "IL-2", "apple", "hour"])
def test_words_and_letters_after_an(word: str) -> None:
    assert takes_an(word)


@pytest.mark.parametrize(
    "word", ["UV", "U2", "U.S.", "UNESCO", "RAS", "SWIFT", "STRIKE", "DNA", "Maori", "Usage", "unit"]
)
def test_words_and_letters_after_a(word: str) -> None:
    assert not takes_an(word)
