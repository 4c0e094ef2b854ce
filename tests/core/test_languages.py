"""The language of a corpus, and models that do not serve it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import entaug
from entaug.backends.compute import use_compute_settings
from entaug.backends.language_check import LoadedModel, language_mismatch, note_on_encoder, served_languages
from entaug.backends.models.catalogue import MODELS
from entaug.backends.resolve import check_name, resolve
from entaug.backends.transformers.base import card_languages
from entaug.commands.main import main
from entaug.core.corpus import UnlabelledText
from entaug.core.data import Sentence
from entaug.core.languages import LANGUAGE_NAMES, LanguageProfile
from entaug.core.mentions import Mention
from entaug.core.words import listed_languages
from entaug.errors import InputError, MissingModelError, UnknownNameError
from entaug.methods import create_augmenter
from entaug.taggers.base import create_tagger
from entaug.teacher.relabel import Relabeller
from entaug.teacher.train import TeacherParameters
from helpers.command_line import fails
from helpers.fakes import FakeLexicon, FakeTagger
from helpers.tiny import save

ENGLISH = "The king of Norway said that he would not go to the meeting because it was too far away from home ."
GERMAN = "Der König von Norwegen sagte , dass er nicht zu dem Treffen gehen werde , weil es zu weit von zu Hause war ."
HINDI = "राजा ने कहा कि वह बैठक में नहीं जाएगा क्योंकि यह घर से बहुत दूर है"
CHINESE = "国 王 说 他 不 会 去 参 加 会 议 因 为 离 家 太 远 了 。"


def sentences(text: str, times: int = 5) -> list[Sentence]:
    return [Sentence(text.split()) for _ in range(times)]


@pytest.mark.parametrize(
    ("text", "language"), [(ENGLISH, "en"), (GERMAN, "de"), (HINDI, "hi"), (CHINESE, "zh"), ("1 2 3", None)]
)
def test_the_language_is_recognised(text: str, language: str | None) -> None:
    profile = LanguageProfile(sentences(text))
    assert profile.language == language
    for code in ("en", "de", "hi", "zh"):
        assert (profile.mismatch([code]) is None) == (language in (code, None)), code
    assert profile.mismatch(["fr", "zh", "de", "en", "hi"]) is None


def test_capitals_noise_and_mixtures_pass() -> None:
    tweets = sentences("@ada omg lol the BEST gig evr !! https://t.co/x #rome so gooood u r", 20)
    tables = sentences("Leeds 2 Everton 1 ( 45 ' Rooney )", 20)
    shouted = sentences(ENGLISH.upper())
    mixed = sentences(ENGLISH) + sentences(GERMAN)
    transliterated = sentences("main ghar ja raha hoon but the meeting was on Monday and he is not here", 20)
    genes = sentences("BRCA1 , TP53 und p21 WAF1 / CIP1 mRNA", 20)
    for text in (tweets, tables, shouted, mixed, transliterated, genes, sentences(GERMAN.partition(" ,")[0], 1)):
        assert LanguageProfile(text).mismatch(["en"]) is None, text[0]
    assert LanguageProfile(sentences(GERMAN.upper())).mismatch(["en"])
    assert LanguageProfile(sentences(HINDI) + sentences(ENGLISH)).mismatch(["en"]) is None


def test_languages_without_a_list_are_not_judged() -> None:
    assert LanguageProfile(sentences(GERMAN)).mismatch(["xx"]) is None
    assert LanguageProfile(sentences(GERMAN)).mismatch(["en", "sr"]) is None
    assert LanguageProfile(sentences(GERMAN)).mismatch([]) is None


@given(st.lists(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6), max_size=30), st.randoms())
def test_any_text_is_taken_in_any_order(rows: list[list[str]], random: Any) -> None:
    text = [Sentence(row) for row in rows]
    profile = LanguageProfile(text)
    reason = profile.mismatch(["en"])
    random.shuffle(text)
    assert LanguageProfile(text).mismatch(["en"]) == reason
    if sum(profile.scripts.values()) < 10:
        assert reason is None


def test_every_listed_language_has_a_name() -> None:
    assert set(LANGUAGE_NAMES) == listed_languages()
    assert [name for name, model in MODELS.items() if not model.languages] == ["multilingual-e5"]


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("wnut17/emerging.dev.conll", "en"),
        ("crossner/ai/train.txt", "en"),
        ("ncbi-disease/devel.tsv", "en"),
        ("uner/da_ddt/da_ddt-ud-dev.iob2", "da"),
        ("uner/hr_set/hr_set-ud-dev.iob2", "hr"),
        *((f"multiconer-v1/100/{code}_sample_train.conll", code) for code in "bn de en es hi ko nl ru tr zh".split()),
    ],
)
def test_real_corpora(corpora: Path, path: str, language: str) -> None:
    text = list(entaug.read(corpora / path, repair=True))
    for part in (text, text[:25], [Sentence([token.upper() for token in s.tokens]) for s in text[:50]]):
        profile = LanguageProfile(part)
        assert profile.mismatch([language]) is None
        assert (profile.mismatch(["en"]) is None) == (language == "en"), profile.mismatch(["en"])


# ------------------------------------------------------------------------------------------------------ of models


@pytest.mark.parametrize(
    ("card", "languages"),
    [
        ("---\nlanguage: en\n---\n", {"en"}),
        ("---\nlanguage:\n- zh-CN\n- no\n- de_DE\n---\n", {"zh", "no", "de"}),
        ("---\nlanguage: [multilingual, en]\n---\n", None),
        ("---\nlicense: mit\n---\n", None),
        ("---\nlanguage: {a: [\n---\n", None),
        ("---\n- 1\n---\n", None),
        ("no card", None),
        ("\xff\xfe", None),
    ],
)
def test_model_cards(tmp_path: Path, card: str, languages: set[str] | None) -> None:
    (tmp_path / "README.md").write_bytes(card.encode("latin-1"))
    assert card_languages(tmp_path) == languages
    assert card_languages(tmp_path / "none") is None


def test_what_is_known_of_a_model() -> None:
    assert served_languages(LoadedModel("masked_lm", "mpnet-mlm", None, "")) == frozenset({"en"})
    assert served_languages(LoadedModel("lexicon", None, FakeLexicon({}), "")) == frozenset({"en"})
    assert served_languages(LoadedModel("masked_lm", "some/folder", object(), "")) is None
    profile = LanguageProfile(sentences(GERMAN))
    assert language_mismatch(LoadedModel("masked_lm", "some/folder", object(), ""), profile) is None


# ---------------------------------------------------------------------------------------------------------- in methods


@pytest.fixture
def german(tmp_path: Path) -> Path:
    rows = [[f"{word}\t{'B-LOC' if word == 'Norwegen' else 'O'}" for word in GERMAN.split()]] * 6
    path = tmp_path / "german.conll"
    path.write_text("\n\n".join("\n".join(row) for row in rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def english_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save(tmp_path_factory.mktemp("model"), "bert", [GERMAN, ENGLISH])
    (folder / "README.md").write_text("---\nlanguage: en\n---\n")
    return folder


def test_a_model_of_another_language_stops(
    german: Path, english_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.conll"
    options = ["--method", "lm", "--masked-lm", str(english_model), "--no-show-source", "--no-guard"]
    options += ["-o", str(output)]
    line = fails(capsys, 2, "augment", str(german), *options)
    for part in (str(german), str(english_model), "English", "German", "--masked-lm", "--any-language"):
        assert part in line
    assert not output.exists()
    assert not list(tmp_path.glob("out*"))
    assert main(["augment", str(german), *options, "--any-language", "--quiet"]) == 0
    assert output.exists()


def test_filters_stop_too(german: Path) -> None:
    gold = list(entaug.read(german))
    synonyms = FakeLexicon({"weit": ["fern"]})
    method = create_augmenter("sr", lexicon=synonyms)
    with pytest.raises(InputError, match=r"lexicon fake serves English, and the text looks German.*`lexicon=NAME`"):
        method.fit(gold)
    with pytest.raises(InputError, match="serves English"):
        method.load().check_languages(gold)
    with use_compute_settings(any_language=True):
        assert create_augmenter("sr", lexicon=synonyms, p=1.0).fit(gold).is_fitted


# -------------------------------------------------------------------------------------------- no sentence, names of hub


def test_no_sentence_is_an_error(tmp_path: Path, example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output, rejected = str(example / "train.conll"), tmp_path / "new.conll", tmp_path / "rejected.jsonl"
    line = fails(capsys, 2, "augment", source, "--method", "sis", "--p", "0", "-o", str(output))
    assert "sis generated no sentence" in line
    assert " times " in line
    assert line.endswith("; try other parameters or methods\n"), "no filter rejected anything that a file would show"
    assert not output.exists()
    options = ["--filter", "mentions", "--p", "1", "--rejected", str(rejected)]
    line = fails(capsys, 2, "augment", source, "--method", "mr", *options, "-o", str(output))
    assert "see the rejected sentences" in line
    assert json.loads(rejected.read_text(encoding="utf-8").splitlines()[0])
    assert not output.exists()
    assert not list(tmp_path.glob("*partial*"))


def test_names_of_the_hub_without_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, name in (("masked_lm", "xlm-roberta-base"), ("encoder", "bert-base-uncased"), ("causal_lm", "gpt2")):
        assert check_name(kind, name)
    for kind, name in (("masked_lm", "mpnet_mlm"), ("causal_lm", "smolm2"), ("encoder", "a b"), ("tagger", "lineer")):
        with pytest.raises(UnknownNameError):
            check_name(kind, name)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingModelError, match=r"no such folder, nor one in .*offline: the hub was not asked"):
        resolve("masked_lm", "some-model-nobody-has")


def test_a_teacher_whose_encoder_is_of_another_language_is_a_note(tmp_path: Path) -> None:
    class EnglishTagger(FakeTagger):
        encoder = "minilm"

    words = "der Hund und die Katze sind nicht in dem Haus".split()
    german = [Sentence([*words, str(number)], [Mention("X", [(1, 2)])]) for number in range(8)]
    text = UnlabelledText([Sentence("das ist der Hund".split())])
    tagger = EnglishTagger()
    start = "the encoder minilm serves English, and the text looks German"
    assert entaug.methods.SelfTraining(unlabelled=text, tagger=tagger).fit(german).notes()[0].startswith(start)
    assert Relabeller(tagger=tagger).fit(german).model_notes()[0].startswith(start)
    entaug.write(german, tmp_path / "de.conll")
    teacher = TeacherParameters(tagger=tagger)
    summary = entaug.suggest(tmp_path / "de.conll", text, tmp_path / "out.jsonl", teacher=teacher)
    assert next(iter(summary.notes)).startswith(start)
    with use_compute_settings(any_language=True):
        assert entaug.methods.SelfTraining(unlabelled=text, tagger=tagger).fit(german).tagger_.notes == []


def test_a_starter_encoder_of_another_language_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    german = [Sentence("der Hund und die Katze sind nicht in dem Haus".split(), [Mention("X", [(1, 2)])])] * 8
    english = [Sentence("the dog and the cat are not in the house".split(), [Mention("X", [(1, 2)])])] * 8
    for tagger, model in (
        (create_tagger("linear"), "the encoder minilm"),
        (create_tagger("ensemble", size=2), "the encoder minilm"),
        (create_tagger("static-bilstm-crf"), "the word vectors glove"),
    ):
        assert note_on_encoder(tagger, english) == []
        [note] = note_on_encoder(tagger, german)
        assert note.startswith(f"{model} serves English, and the text looks German")
        with use_compute_settings(any_language=True):
            assert note_on_encoder(tagger, german) == []
    assert note_on_encoder(create_tagger("linear", encoder="no/such-model"), german) == []
    entaug.write(german, tmp_path / "de.conll")
    plan = "output = 'out'\nseeds = [1]\n[[corpora]]\nname = 'de'\ntrain = 'de.conll'\ntest = 'de.conll'\nsizes = [4]\n"
    (tmp_path / "plan.toml").write_text(f"{plan}[[taggers]]\nname = 'linear'\n")
    assert main(["experiment", str(tmp_path / "plan.toml"), "--check"]) == 0
    assert "note: de: the encoder minilm serves English" in capsys.readouterr().err
