"""Model methods on scripts with combining marks, without case, without spaces: what they write is of that script."""

# ruff: noqa: RUF001  (letters of all scripts)

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import entaug
from entaug import Mention, Sentence
from entaug.backends.protocols import RoundTrip
from entaug.backends.resolve import resolve
from entaug.core.words import is_word, script_of
from entaug.errors import InputError
from entaug.methods import ACLM, Backtranslation, EnTDA, MaskedEntityLM, MaskedLMReplacement
from entaug.methods.base import Augmenter
from helpers import tiny
from helpers.fakes import FakeEncoder, FakeGenerator, FakeMaskedLM, FakeTagger


def sentence(text: str, *mentions: tuple[str, int, int], by_character: bool = False) -> Sentence:
    tokens = list(text) if by_character else text.split()
    spaces = ("",) * len(tokens) if by_character else None
    return Sentence(tokens, [Mention(label, [(start, end)]) for label, start, end in mentions], spaces=spaces)


# Sentences written for this test, with words of the language that a model might predict.
OWN: dict[str, tuple[list[Sentence], str]] = {
    "bn": (
        [
            sentence("রবীন্দ্রনাথ ঠাকুর কলকাতায় থাকতেন ।", ("PER", 0, 2), ("LOC", 2, 3)),
            sentence("সত্যজিৎ রায় ঢাকায় জন্মেছিলেন না ।", ("PER", 0, 2), ("LOC", 2, 3)),
        ],
        "মানুষ নদী শান্তিনিকেতন বাংলা",
    ),
    "de": (
        [
            sentence("Jürgen Müller wohnt gern in Köln .", ("PER", 0, 2), ("LOC", 5, 6)),
            sentence("Käthe Groß reiste oft nach Österreich .", ("PER", 0, 2), ("LOC", 5, 6)),
        ],
        "Straße München übrig schön",
    ),
    "fa": (
        [
            sentence("علی رضایی در تهران زندگی می‌کند .", ("PER", 0, 2), ("LOC", 3, 4)),
            sentence("مریم احمدی به شیراز سفر کرد .", ("PER", 0, 2), ("LOC", 3, 4)),
        ],
        "کتاب می‌خواند اصفهان حسن",
    ),
    "hi": (
        [
            sentence("राम शर्मा मुंबई में काम करता है ।", ("PER", 0, 2), ("LOC", 2, 3)),
            sentence("सीता देवी दिल्ली में गाती थी ।", ("PER", 0, 2), ("LOC", 2, 3)),
        ],
        "कॉमेडी किताब लखनऊ मोहन",
    ),
    "ko": (
        [
            sentence("김민수 씨는 서울 에서 일한다 .", ("PER", 0, 1), ("LOC", 2, 3)),
            sentence("박지영 씨는 부산 에서 공부한다 .", ("PER", 0, 1), ("LOC", 2, 3)),
        ],
        "사람 대구 학교 이수진",
    ),
    "ru": (
        [
            sentence("Анна Петрова живёт давно в Москве .", ("PER", 0, 2), ("LOC", 5, 6)),
            sentence("Пётр Иванов уехал вчера из Твери .", ("PER", 0, 2), ("LOC", 5, 6)),
        ],
        "город Андрей Казань ёлка",
    ),
    "tr": (
        [
            sentence("Ayşe Yılmaz İzmir şehrinde çalışıyor .", ("PER", 0, 2), ("LOC", 2, 3)),
            sentence("Çağlar Öz i̇stanbul şehrinde yaşıyor .", ("PER", 0, 2), ("LOC", 2, 3)),
        ],
        "güzel Ankara ışık Şükrü",
    ),
    "zh": (
        [
            sentence("李明在北京大学学习。", ("PER", 0, 2), ("ORG", 3, 7), by_character=True),
            sentence("王芳去上海工厂工作。", ("PER", 0, 2), ("ORG", 3, 7), by_character=True),
        ],
        "人 水 山 花 二 公司",
    ),
}
SCRIPTS = {
    "bn": "BENGALI", "de": "LATIN", "fa": "ARABIC", "hi": "DEVANAGARI",
    "ko": "HANGUL", "ru": "CYRILLIC", "tr": "LATIN", "zh": "HAN",
}  # fmt: skip
FOREIGN = ["comedy", "sixteen", "chiang"]  # what an English or multilingual model predicts besides
RUSSIAN = ["комедия", "шестнадцать"]


def words_for(language: str) -> list[str]:
    return [*OWN[language][1].split(), *(RUSSIAN if SCRIPTS[language] == "LATIN" else FOREIGN)]


def masked_lm_methods(language: str) -> Iterator[Augmenter]:
    words = words_for(language)
    yield MaskedEntityLM(
        candidates=1, masked_lm=FakeMaskedLM(words), min_rank=1, max_rank=9, epochs=1, stop_words=None, guard=False
    )
    yield MaskedLMReplacement(
        masked_lm=FakeMaskedLM(words), min_p=0.0, guard=False, show_source=False, stop_words=None, p=1.0
    )


def check_replacements(new: Sentence, source: Sentence) -> None:
    """Words stand for words of the same script, and characters of Chinese for characters."""
    assert len(new) == len(source)
    assert [(m.label, m.spans) for m in new.mentions] == [(m.label, m.spans) for m in source.mentions]
    for token, old in zip(new.tokens, source.tokens, strict=True):
        if token != old:
            assert is_word(token), token
            assert script_of(token) == script_of(old), (token, old)
            assert script_of(old) != "HAN" or len(token) == len(old) == 1, (token, old)


@pytest.mark.parametrize("language", OWN)
def test_masked_models_write_words_of_the_script(language: str) -> None:
    gold, _ = OWN[language]
    for method in masked_lm_methods(language):
        method.fit(gold)
        for source in gold:
            [new] = method.augment([source])
            check_replacements(new, source)


@pytest.mark.corpora
@pytest.mark.parametrize("language", [language for language in OWN if language != "fa"])
def test_masked_models_make_sentences_from_real_corpora(language: str, corpora: Path) -> None:
    gold = list(entaug.read(corpora / "multiconer-v1" / "100" / f"{language}_sample_train.conll"))[:60]
    for method in masked_lm_methods(language):
        method.fit(gold)
        num_made = 0
        for source in gold:
            for new in method.augment([source]):
                check_replacements(new, source)
                num_made += 1
        assert num_made > 0.9 * sum(bool(source.mentions) for source in gold), method.name


def generative_methods(language: str) -> Iterator[tuple[Augmenter, FakeGenerator]]:
    generator = FakeGenerator([word for word in OWN[language][1].split() if language != "zh" or len(word) == 1])
    yield (
        ACLM(
            candidates=1,
            generator=generator,
            tagger=FakeTagger(),
            encoder=FakeEncoder(),
            max_similarity=1.0,
            max_attempts=3,
        ),
        generator,
    )
    yield EnTDA(candidates=1, context_size=0, generator=generator, operation="none", max_similarity=1.0), generator


@pytest.mark.parametrize("language", OWN)
def test_generative_methods_divide_texts_as_the_corpus_is(language: str) -> None:
    gold, _ = OWN[language]
    for method, _ in generative_methods(language):
        made = list(method.fit(gold).augment(gold))
        assert made, method.name
        known = {token for one in gold for token in one.tokens}
        for new in made:
            for token in set(new.tokens) - known:
                assert token in OWN[language][1].split()
            assert new.mentions
            assert {new.mention_tokens(m) for m in new.mentions} <= {
                one.mention_tokens(m) for one in gold for m in one.mentions
            }


def test_generators_learn_chinese_without_spaces() -> None:
    gold, _ = OWN["zh"]
    seen: list[Any] = []

    class Generator(FakeGenerator):
        def fit(self, pairs: Any, *args: Any, **options: Any) -> Any:
            seen.extend(pairs(0) if callable(pairs) else pairs)
            return super().fit(pairs, *args, **options)

    EnTDA(candidates=1, context_size=0, generator=Generator()).fit(gold)
    assert ("PER: 李明 | ORG: 北京大学", "李明在北京大学学习。") in seen
    ACLM(candidates=1, generator=Generator(), tagger=FakeTagger(), encoder=FakeEncoder(), keywords="none").fit(gold)
    assert any(target.endswith("<I-ORG> 学 <I-ORG> 学习。") for _, target in seen)


class Replacing:
    """A translator that replaces parts of the text."""

    can_sample = False
    name = "replacing"

    def __init__(self, *pairs: tuple[str, str]) -> None:
        self._pairs = pairs

    def translate(self, texts: Any, seeds: Any = None) -> list[str]:
        del seeds
        translated = list(texts)
        for old, new in self._pairs:
            translated = [text.replace(old, new) for text in translated]
        return translated


@pytest.mark.parametrize(
    ("language", "pair", "expected"),
    [
        ("zh", ("学习", "工作"), "李明在北京大学工作。"),
        ("hi", ("काम करता", "गाना गाता"), "राम शर्मा मुंबई में गाना गाता है ।"),
        ("fa", ("زندگی می‌کند", "کار می‌کند"), "علی رضایی در تهران کار می‌کند ."),
        ("ko", ("일한다", "공부한다"), "김민수 씨는 서울 에서 공부한다 ."),
    ],
)
def test_translations_are_divided_as_the_corpus_is(language: str, pair: tuple[str, str], expected: str) -> None:
    gold, _ = OWN[language]
    trip = RoundTrip(Replacing(), Replacing(pair))
    [made] = Backtranslation(translator=trip, p=1.0, min_tokens=2, whole_sentence=False).fit(gold).augment(gold[:1])
    assert ("" if language == "zh" else " ").join(made.tokens) == expected
    assert language != "zh" or (made.text == expected and len(made.tokens) == len(expected))
    assert len(made.mentions) == len(gold[0].mentions)


def test_words_that_stayed_in_the_other_language_are_seen_in_any_script() -> None:
    gold = [sentence("Ada likes very old comedies", ("PER", 0, 1))]
    trip = RoundTrip(Replacing(("comedies", "कॉमेडियाँ")), Replacing())
    assert list(Backtranslation(translator=trip, p=1.0, whole_sentence=False).fit(gold).augment(gold)) == []


def test_corpora_that_are_divided_into_chinese_words_are_refused_by_backtranslation() -> None:
    gold = [Sentence(["李明", "在", "北京", "大学", "学习", "。"], [Mention("PER", [(0, 1)])])]
    with pytest.raises(InputError, match=r"divides a script without spaces into words.*divide it into characters"):
        Backtranslation(translator=RoundTrip(Replacing(), Replacing())).fit(gold)


# ---------------------------------------------------------------------------------------------- vocabularies


@pytest.mark.parametrize("language", ["hi", "bn", "zh"])
@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_masked_models_predict_words_with_marks_and_single_characters(language: str, kind: str, tmp_path: Path) -> None:
    words = [token for one in OWN[language][0] for token in one.tokens if is_word(token)]
    joined = "" if language == "zh" else " "
    # A model tells where words begin only if its vocabulary has enough of them.
    texts = [joined.join((a, b, a + b)) for a in words for b in words] * 3
    model = resolve("masked_lm", str(tiny.save(tmp_path / kind, kind, texts)))
    [[predictions]] = model.fill([[words[0] + joined, None, joined + words[-1]]], 1000)
    predicted = [word for word, _ in predictions]
    assert len(set(predicted)) == len(predicted) > 5
    assert all(map(is_word, predicted))
    if language == "zh":
        assert {"学", "北"} <= set(predicted)
    else:
        assert any(not word.isalpha() for word in predicted), "a word with a mark"
        assert all(len(word) > 1 for word in predicted)


def test_nothing_must_divide_characters_from_a_mention(tmp_path: Path) -> None:
    """In constrained decoding a mention may stand directly behind and before characters of a script without spaces."""
    folder = tiny.save(tmp_path / "t5", "t5", [one.text for one in OWN["zh"][0]] * 20)
    generator: Any = resolve("generator", str(folder))
    texts = generator.vocabulary.texts
    characters = [i for i, text in enumerate(texts) if len(text) == 1 and script_of(text) == "HAN"]
    assert len(characters) > 5
    assert set(characters).isdisjoint(generator.vocabulary.joining)
    assert all(map(generator.vocabulary.is_opening, characters))


def test_texts_in_chinese_words_have_spaces_only_where_the_corpus_has() -> None:
    words = ["李明", "在", "北京", "听", "Bach", "。"]
    for spaces in (None, ("", "", "", " ", "", "")):
        gold = [Sentence(words, [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])], spaces=spaces)]
        generator = FakeGenerator(["音乐"])
        method = EnTDA(candidates=1, context_size=0, generator=generator, operation="none", max_similarity=1.0)
        [made] = method.fit(gold).augment(gold)
        assert made.tokens == (*words[:-1], "音乐", "。")
        assert made.text == ("李明 在 北京 听 Bach 音乐 。" if spaces is None else "李明在北京听 Bach 音乐。"), spaces
