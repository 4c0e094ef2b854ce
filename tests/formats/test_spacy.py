"""spaCy's DocBin and JSON: by hand, as spaCy sees them, for any sentence, damaged, and with real corpora."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
import warnings
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug import Mention, Sentence
from entaug.core.data import split_fields
from entaug.core.edits import Edit
from entaug.errors import InputError, LossError, OutputError, ParameterError
from entaug.formats import docbin
from entaug.formats.base import BEFORE, ENTITY_FIELDS, ReadReport
from entaug.formats.corpus_file import CorpusFile
from entaug.formats.docbin import DocBinFormat
from entaug.formats.files import open_file
from entaug.formats.spacy_json import SpacyJson
from helpers.marks import first_fast
from helpers.strategies import TEXT, WORDS, sentences

spacy = pytest.importorskip("spacy")

from spacy.tokens import Doc, DocBin, Span  # noqa: E402
from spacy.training import Example  # noqa: E402
from srsly import msgpack  # noqa: E402

FULL = Sentence(
    ["Ada", "Byron", "sang", "in", "New", "York", "."],
    [Mention("PER", [(0, 2)]), Mention("LOC", [(4, 6)])],
    "s1",
    columns={"tag": ("NNP", "NNP", "VBD", "IN", "NNP", "NNP", "_"), "1": tuple("abcdefg")},
    spaces=("  ", " ", "\n", " ", " ", "", " "),
    **split_fields(
        {
            "source": ["a", {"b": None}],
            "cats": {"song": 1.0},
            "entaug": {"method": "lwtr", "copy": 1, "source": "s0"},
            ENTITY_FIELDS: [{"kb_id": "Q7259"}, {"id": "ny"}],
            BEFORE: "\n",
        }
    ),
)
NESTED = Sentence(["New", "York", "Times"], [Mention("ORG", [(0, 3)]), Mention("LOC", [(0, 2)])], "n1")
GAP = Sentence(["a", "b", "c"], [Mention("X", [(0, 1), (2, 3)])])


def docs_of(path: Path) -> list[Any]:
    return list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))


def through(gold: list[Sentence], path: Path, **options: Any) -> list[Sentence]:
    assert entaug.write(gold, path, **options) == len(gold)
    return list(entaug.read(path))


# ------------------------------------------------------------------------------------------------------------- DocBin


def test_spacy_sees_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.spacy"
    bare = Sentence(["Oh", "."])
    assert through([FULL, bare], path) == [FULL, bare]
    first, second = docs_of(path)
    assert first.text == "\nAda  Byron sang\nin New York. "
    assert [(e.text, e.label_, e.kb_id_, e.id_) for e in first.ents] == [
        ("Ada  Byron", "PER", "Q7259", ""),
        ("New York", "LOC", "", "ny"),
    ]
    assert first.user_data["id"] == "s1"
    assert first.user_data["entaug"] == {"method": "lwtr", "copy": 1, "source": "s0"}
    assert first.cats == {"song": 1.0}
    assert [t.tag_ for t in first if not t.is_space] == ["NNP", "NNP", "VBD", "IN", "NNP", "NNP", ""]
    assert second.has_unknown_spaces
    assert not second.ents
    assert [t.ent_iob_ for t in second] == ["O", "O"], "no mention is known, which is not that nothing is known"
    opened = open_file(path)
    assert opened.format.name == "docbin"
    assert "doc.ents" in opened.dialect.describe()
    before = path.read_bytes()
    entaug.write([FULL, bare], path)
    assert path.read_bytes() == before


def test_nested_mentions_are_a_group_of_spans(tmp_path: Path) -> None:
    path = tmp_path / "a.spacy"
    flat = FULL.with_(id="f")
    assert through([NESTED, flat], path) == [NESTED, flat]
    docs = docs_of(path)
    assert {(s.text, s.label_) for s in docs[0].spans["sc"]} == {("New York Times", "ORG"), ("New York", "LOC")}
    assert not docs[1].ents
    assert open_file(path).dialect.mentions == "spans"  # type: ignore[attr-defined]
    assert through([NESTED], path, spans_key="mine") == [NESTED]
    with pytest.raises(LossError, match="sentence n1"):
        entaug.write([NESTED], path, mentions="ents")
    [outer] = through([NESTED], path, overlap="outermost")
    assert [m.label for m in outer.mentions] == ["ORG"]
    assert docs_of(path)[0].ents
    said = NESTED.with_fields({ENTITY_FIELDS: [{"kb_id": "inner"}, {"kb_id": "outer"}]})
    [outer] = through([said], path, overlap="outermost")
    assert outer.fields[ENTITY_FIELDS] == [{"kb_id": "outer"}], "what is said of a mention stays with it"
    with pytest.raises(LossError, match="discontinuous mention"):
        entaug.write([GAP], path)
    assert through([GAP], path, overlap="outermost")[0].mentions == ()
    with pytest.raises(ParameterError, match="mentions must be one of"):
        entaug.write([GAP], path, mentions="both")


def test_the_layout_of_a_docbin_is_the_one_that_is_read() -> None:
    """The reader unpacks the bytes itself: a spaCy that lays them out in another way must not go unnoticed."""
    doc = spacy.blank("en")("New York")
    doc.spans["sc"] = [Span(doc, 0, 2, "LOC", kb_id="Q60", span_id="ny")]
    message = msgpack.unpackb(zlib.decompress(DocBin(docs=[doc], store_user_data=True).to_bytes()), raw=False)
    assert message.keys() == {
        *("version", "attrs", "tokens", "spaces", "lengths", "strings", "cats", "flags", "span_groups", "user_data")
    }
    assert message["version"] == "0.1"
    assert len(message["tokens"]) == 2 * 8 * len(message["attrs"])
    assert message["lengths"] == (2).to_bytes(4, "little")
    assert message["spaces"] == b"\x01\x00"
    [(packed, names)] = msgpack.unpackb(message["span_groups"][0], raw=False).items()
    assert names == ["sc"]
    [span] = msgpack.unpackb(packed, raw=False)["spans"]
    strings = [doc.vocab.strings[text] for text in ("ny", "Q60", "LOC")]
    assert struct.unpack(">QQQllll", span) == (*strings, 0, 2, 0, 8)


def foreign(tmp_path: Path) -> Path:
    nlp = spacy.blank("en")
    doc = nlp("Ada  sang in\nNew York City .")
    words = [t.text for t in doc]
    heads = [2, 0, 2, 2, 3, 7, 7, 3, 2]
    doc = Doc(
        nlp.vocab,
        words=words,
        spaces=[bool(t.whitespace_) for t in doc],
        tags=["T"] * 9,
        pos=["NOUN"] * 9,
        lemmas=words,
        morphs=["Number=Sing"] * 9,
        heads=[min(h, len(words) - 1) for h in heads],
        deps=["d"] * 9,
    )
    doc.ents = [Span(doc, 0, 1, "PER", kb_id="Q1"), Span(doc, 5, 8, "LOC")]
    doc.spans["sc"] = [Span(doc, 5, 8, "LOC"), Span(doc, 5, 7, "LOC")]
    doc.spans["other"] = [Span(doc, 0, 1, "X")]
    doc.cats = {"A": 0.5}
    data: dict[Any, Any] = {"note": (1, 2), ("._.", "mine", None, None): "v", "raw": b"x", 5: {"a": 1}}
    doc.user_data = data
    path = tmp_path / "foreign.spacy"
    DocBin(store_user_data=True, docs=[doc, nlp(""), nlp("No one")]).to_disk(path)
    return path


def test_files_of_others(tmp_path: Path) -> None:
    path = foreign(tmp_path)
    opened = open_file(path)
    reading = ReadReport()
    one, two = opened.sentences(reading)
    assert one.tokens == ("Ada", "sang", "in", "New", "York", "City", ".")
    assert one.spaces == ("  ", " ", "\n", " ", " ", " ", "")
    assert one.mentions == (Mention("LOC", [(3, 5)]), Mention("LOC", [(3, 6)]))
    assert one.columns["head"] == ("1", "0", "-1", "2", "1", "-3", "-5")
    assert one.columns["morph"] == ("Number=Sing",) * 7
    assert one.fields["note"] == [1, 2]
    assert one.fields["cats"] == {"A": 0.5}
    assert two.tokens == ("No", "one")
    assert reading.notes == {
        "entities that are not in the spans 'sc' left out": 1,
        "user_data that is no JSON left out": 3,
        "spans 'other' left out (to read a group: `spans_key=NAME`)": 1,
        "document without words left out": 1,
    }
    by_ents = list(entaug.read(path, mentions="ents"))
    assert by_ents[0].mentions == (Mention("PER", [(0, 1)]), Mention("LOC", [(3, 6)]))
    assert by_ents[0].fields[ENTITY_FIELDS] == [{"kb_id": "Q1"}, {}]
    again = tmp_path / "again.spacy"
    entaug.write([one, two], again, like=path)
    assert list(entaug.read(again)) == [one, two]
    doc = docs_of(again)[0]
    assert [(t.text, t.head.text, t.dep_, t.pos_) for t in doc if not t.is_space][3] == ("New", "City", "d", "NOUN")
    # A tree does not outlive words that come and go.
    new = one.edit([Edit(1, 2, ["sang", "much"])]).with_fields({**one.fields, "entaug": {"method": "x"}})
    assert DocBinFormat().lost(new, DocBinFormat().dialect()) == ["trees of augmented sentences"]
    entaug.write([new], again)
    assert not {"head", "dep"} & next(iter(entaug.read(again))).columns.keys()
    assert [t.tag_ for t in docs_of(again)[0] if not t.is_space] == ["T", "", "", "T", "T", "T", "T", "T"]


def test_where_only_another_group_is_there(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    doc = nlp("New York")
    doc.spans["deep"] = [Span(doc, 0, 2, "LOC")]
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    assert next(iter(entaug.read(tmp_path / "a.spacy"))).mentions == (Mention("LOC", [(0, 2)]),)
    with pytest.raises(InputError, match="has no group of spans 'sc', but 'deep'"):
        entaug.read(tmp_path / "a.spacy", spans_key="sc")
    doc.spans["deep"] = [Span(doc, 0, 2), Span(doc, 0, 2, "X"), Span(doc, 0, 2, "X")]
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    with pytest.raises(InputError, match="document 1: the span of words 1 to 2 has no label"):
        entaug.read(tmp_path / "a.spacy")
    doc.spans["deep"] = [Span(doc, 0, 2, "X"), Span(doc, 0, 2, "X")]
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    with pytest.raises(InputError, match="given twice"):
        entaug.read(tmp_path / "a.spacy")
    assert len(entaug.read(tmp_path / "a.spacy", repair=True)[0].mentions) == 1


def test_ids_given_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.spacy"
    for name in ("a.spacy", "a.conll", "a.jsonl", "a.csv", "a.parquet", "a.json"):
        with pytest.raises(LossError, match="two sentences have the id 'n1'"):
            entaug.write([Sentence(["Rome"], id="n1")] * 2, tmp_path / name)
        assert not (tmp_path / name).exists()
    monkeypatch.setattr(CorpusFile, "_with_own_ids", lambda _, sentences: sentences)
    entaug.write([NESTED, NESTED], path)
    with pytest.raises(InputError, match=r"a\.spacy: document 2: id 'n1' is that of"):
        entaug.read(path)
    assert [s.id for s in entaug.read(path, repair=True)] == ["n1", None]


def test_what_cannot_be_kept(tmp_path: Path) -> None:
    for odd in (Sentence(["\ud800"]), Sentence(["a"], meta={"x": {1, 2}}), Sentence(["a"], meta={"x": 2**70})):
        with pytest.raises(LossError, match="cannot be kept in a DocBin"):
            entaug.write([odd], tmp_path / "a.spacy")
    with pytest.raises(OutputError):
        entaug.write([FULL], tmp_path / "no" / "a.spacy")
    entaug.write([FULL], tmp_path / "b.spacy")  # the packer is as before
    assert list(entaug.read(tmp_path / "b.spacy")) == [FULL]


@given(st.lists(sentences(WORDS | TEXT, gaps=False), min_size=1, max_size=4), st.data())
@settings(max_examples=examples(100))
def test_any_sentence_comes_back_from_a_docbin(tmp_path: Path, gold: list[Sentence], data: Any) -> None:
    def odd(s: Sentence) -> Sentence:
        if s.spaces is None or not data.draw(st.booleans()):
            return s
        whites = st.lists(st.sampled_from(["", " ", "  ", "\n", " \n", "\u3000"]), min_size=len(s), max_size=len(s))
        return s.with_(spaces=tuple(data.draw(whites)))

    gold = [odd(s) for s in gold]
    gold = [s for s in gold if all(m.is_contiguous for m in s.mentions)]
    if not gold:
        return
    path = tmp_path / "any.spacy"
    assert through(gold, path) == gold
    for doc, s in zip(docs_of(path), gold, strict=True):
        spans = doc.ents if all(one.is_flat for one in gold) else doc.spans.get("sc", ())
        assert len(spans) == len(s.mentions)
        if s.spaces is not None:
            assert doc.text == s.text


def faults(raw: bytes, path: Path, tries: int) -> int:
    """Change bytes at random: all that may happen is an `InputError`, or nothing."""
    random_ = random.Random(1)
    found = 0
    for _ in range(tries):
        changed = bytearray(raw)
        for _ in range(random_.randint(1, 4)):
            changed[random_.randrange(len(changed))] = random_.randrange(256)
        if random_.random() < 0.2:
            del changed[random_.randrange(len(changed)) :]
        path.write_bytes(zlib.compress(bytes(changed)) if path.suffix == ".spacy" else bytes(changed))
        try:
            list(entaug.read(path))
            list(open_file(path).sentences(ReadReport(on_fault=lambda _: None)))
        except InputError as error:
            assert path.name in str(error)  # noqa: PT017
            found += 1
    return found


def test_damaged_docbins(tmp_path: Path) -> None:
    raw = foreign(tmp_path).read_bytes()
    path = tmp_path / "bad.spacy"
    for data in (b"", b"nothing", raw[:-9], zlib.compress(b""), zlib.compress(b"\x80"), zlib.compress(b"\x93\x01")):
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"bad\.spacy: is no DocBin, or a damaged one"):
            entaug.read(path)
    assert not DocBinFormat().recognises(path)
    assert faults(zlib.decompress(raw), path, 1500) > 300
    entaug.write([FULL, NESTED], path)
    assert faults(zlib.decompress(path.read_bytes()), path, 1000) > 200


def test_small_files_that_unpack_to_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 1.5 MB took 3.1 GB."""
    monkeypatch.setattr(docbin, "_MIN_LIMIT", 1 << 22)
    monkeypatch.setattr(docbin, "_MAX_ITEMS", 1 << 16)
    raw = foreign(tmp_path).read_bytes()
    message = msgpack.unpackb(zlib.decompress(raw), raw=False, object_pairs_hook=dict)
    path = tmp_path / "bomb.spacy"
    width = 8 * len(message["attrs"])
    words = (1 << 23) // width
    many = {"tokens": bytes(width * words), "spaces": bytes(words)}
    lists: list[dict[str, Any]] = [
        {"cats": [[[]] * 400] * 400},
        {"strings": [""] * (1 << 18)},
        {"flags": [{}] * (1 << 18)},
    ]
    for bomb in (many, *lists):
        path.write_bytes(zlib.compress(msgpack.packb({**message, **bomb}, use_bin_type=True)))
        assert path.stat().st_size < 1 << 16
        tracemalloc.start()
        with pytest.raises(InputError, match=r"bomb\.spacy: is .*(too many unpacked|too many items for its size)"):
            entaug.read(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
        tracemalloc.stop()


def test_the_order_of_the_parts_of_a_docbin_is_of_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.spacy"
    entaug.write([FULL, NESTED, FULL.with_(id="s2")], path)
    read = list(entaug.read(path))
    message = msgpack.unpackb(zlib.decompress(path.read_bytes()), raw=False, object_pairs_hook=dict)
    path.write_bytes(zlib.compress(msgpack.packb(dict(reversed(message.items())), use_bin_type=True)))
    assert list(entaug.read(path)) == read


def test_damaged_groups_of_spans_are_no_absence_of_mentions(tmp_path: Path) -> None:
    import srsly

    entaug.write([NESTED], tmp_path / "a.spacy")
    message = srsly.msgpack_loads(zlib.decompress((tmp_path / "a.spacy").read_bytes()))
    message["span_groups"] = [b"junk"]
    (tmp_path / "a.spacy").write_bytes(zlib.compress(srsly.msgpack_dumps(message)))
    with pytest.raises(InputError, match=r"a\.spacy: document 1: its groups of spans are damaged"):
        entaug.read(tmp_path / "a.spacy")


def test_formats_are_told_apart(tmp_path: Path, example: Path) -> None:
    entaug.write([NESTED], tmp_path / "a.spacy")
    (tmp_path / "a.spacy").rename(tmp_path / "noname")
    assert open_file(tmp_path / "noname").format.name == "docbin"
    for file in example.iterdir():
        assert not DocBinFormat().recognises(file)
        assert not SpacyJson().recognises(file)
    entaug.write([NESTED], tmp_path / "a.jsonl")
    assert open_file(tmp_path / "a.jsonl").format.name == "jsonl"
    for text in (
        '["a"]',
        '[{"tokens": ["a"], "entities": []}]',
        '{"text": "a", "tokens": ["a"]}',
        "[",
        "",
        '[["a", 1]]',
    ):
        (tmp_path / "x.json").write_text(text)
        assert not SpacyJson().recognises(tmp_path / "x.json")
    assert not SpacyJson().recognises(tmp_path)


def test_spacy_trains_on_our_files(tmp_path: Path) -> None:
    from spacy.cli.init_config import init_config
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import train
    from spacy.util import load_config

    gold = [FULL.with_(id=None), Sentence(["Bo", "left", "Rome"], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])])]
    entaug.write(gold * 4, tmp_path / "train.spacy")
    entaug.write(gold, tmp_path / "dev.spacy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = init_config(lang="en", pipeline=["ner"], optimize="efficiency", gpu=False)
        config["paths"] |= {"train": str(tmp_path / "train.spacy"), "dev": str(tmp_path / "dev.spacy")}
        config["training"] |= {"max_steps": 2, "eval_frequency": 1}
        config["components"]["tok2vec"]["model"]["encode"] |= {"width": 32, "depth": 1}
        config["components"]["ner"]["model"]["tok2vec"]["width"] = 32
        config.to_disk(tmp_path / "config.cfg")
        nlp = init_nlp(load_config(tmp_path / "config.cfg"))
        (tmp_path / "out").mkdir()
        train(nlp, tmp_path / "out")
    assert nlp.pipe_labels["ner"] == ["LOC", "PER"]
    assert (tmp_path / "out" / "model-last").is_dir()


# --------------------------------------------------------------------------------------------------------- spaCy JSON

TUPLES = [
    ["Ada  Byron sang in New York.", {"entities": [[0, 10, "PER"], [19, 27, "LOC"]], "cats": {"A": 1.0}}],
    ["No one.", {"entities": []}],
]


def test_training_tuples(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(TUPLES, indent=2))
    opened = open_file(path)
    assert opened.dialect.describe() == "spaCy JSON, training tuples, mentions in ents"
    gold = list(opened.sentences())
    assert gold[0].tokens == ("Ada", "Byron", "sang", "in", "New", "York", ".")
    assert gold[0].mentions == FULL.mentions
    assert gold[0].fields == {"cats": {"A": 1.0}}
    again = tmp_path / "b.json"
    entaug.write(gold, again, like=path)
    assert json.loads(again.read_text()) == TUPLES
    lines = tmp_path / "c.jsonl"
    lines.write_text("".join(json.dumps(one) + "\n" for one in TUPLES))
    assert list(entaug.read(lines)) == gold
    entaug.write(gold, again.with_suffix(".jsonl"), like=lines)
    assert [json.loads(line) for line in again.with_suffix(".jsonl").read_text().splitlines()] == TUPLES


def test_tuples_that_say_their_words(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    gold = [FULL, Sentence(["don't", "x-y", "!"], [Mention("X", [(1, 2)])])]
    found = through(gold, path, form="tuples", format="spacy-json")
    assert [(s.tokens, s.mentions, s.spaces) for s in found] == [
        (FULL.tokens, FULL.mentions, FULL.spaces),
        (gold[1].tokens, gold[1].mentions, (" ", "", "")),
    ]
    nlp = spacy.blank("en")
    for (text, said), s in zip(json.loads(path.read_text()), gold, strict=True):
        seen = Example.from_dict(nlp.make_doc(text), said).reference
        assert [t.text for t in seen if not t.is_space] == list(s.tokens)
        assert [e.label_ for e in seen.ents] == [m.label for m in s.mentions]
    assert SpacyJson().lost(FULL, SpacyJson().dialect(form="tuples")) == [
        "columns",
        "ids",
        "provenance",
        "fields",
        "field 'id' of mentions",
        "field 'kb_id' of mentions",
    ]
    # Without words a mention may end up within a token.
    bare = SpacyJson().dialect(form="tuples", words=False)
    within = Sentence(["x", "y"], [Mention("X", [(1, 2)])], spaces=["", ""])
    with pytest.raises(LossError, match="within the token"):
        SpacyJson().check(within, bare)
    assert SpacyJson().as_stored(Sentence(["don't"]), bare).tokens == ("do", "n't")
    nested = through([NESTED], path, form="tuples", format="spacy-json")
    assert nested[0].mentions == NESTED.mentions
    seen = Example.from_dict(nlp.make_doc("New York Times"), json.loads(path.read_text())[0][1]).reference
    assert len(seen.spans["sc"]) == 2


def test_documents_as_spacy_gives_them(tmp_path: Path) -> None:
    doc = docs_of(foreign(tmp_path))[0]
    path = tmp_path / "a.json"
    for text in (json.dumps(doc.to_json(), indent=1), json.dumps([doc.to_json()]), json.dumps(doc.to_json()) + "\n"):
        path.write_text(text)
        opened = open_file(path)
        assert opened.format.name == "spacy-json"
        [one] = opened.sentences()
        assert one.mentions == (Mention("LOC", [(3, 5)]), Mention("LOC", [(3, 6)]))
        assert one.columns["head"] == ("1", "0", "-1", "2", "1", "-3", "-5")
        assert [s["start"] for s in one.fields["spans"]["other"]] == [0]
        entaug.write([one], tmp_path / "b.json", like=path)
        assert list(entaug.read(tmp_path / "b.json")) == [one]
    [by_ents] = entaug.read(path, mentions="ents")
    assert [m.label for m in by_ents.mentions] == ["PER", "LOC"]


def test_spacy_reads_our_documents(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    gold = [FULL, Sentence(["Oh", "(", "no", ")"], id="x")]
    found = through(gold, path, format="spacy-json")
    assert found == [FULL, gold[1].with_(spaces=(" ", "", "", ""))]
    nlp = spacy.blank("en")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    docs = [Doc(nlp.vocab).from_json(record, validate=True) for record in records]
    assert [(e.text, e.label_) for e in docs[0].ents] == [("Ada  Byron", "PER"), ("New York", "LOC")]
    assert docs[1].text == "Oh (no)"
    assert records[0]["entaug"]["method"] == "lwtr"
    found = through([NESTED, FULL], path, format="spacy-json")
    assert [s.mentions for s in found] == [NESTED.mentions, FULL.mentions]
    doc = Doc(nlp.vocab).from_json(json.loads(path.read_text().splitlines()[0]))
    assert {s.text for s in doc.spans["sc"]} == {"New York Times", "New York"}
    with pytest.raises(LossError, match="discontinuous mention"):
        entaug.write([GAP], path, format="spacy-json")
    with pytest.raises(LossError, match="white space alone"):
        entaug.write([Sentence(["a", "\n"])], path, format="spacy-json")


def test_training_files_of_spacy_2_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps([{"id": 0, "paragraphs": [{"sentences": [{"tokens": [{"orth": "Ada", "ner": "U-X"}]}]}]}])
    )
    with pytest.raises(InputError, match=r"a training file of spaCy 2; convert it to \.spacy: python -m spacy convert"):
        entaug.read(path)


@pytest.mark.parametrize("form", ["docs", "tuples"])
@given(st.lists(sentences(WORDS, gaps=False), min_size=1, max_size=4))
@settings(max_examples=examples(60))
def test_any_sentence_comes_back_from_json(tmp_path: Path, form: str, gold: list[Sentence]) -> None:
    gold = [s for s in gold if all(m.is_contiguous for m in s.mentions)]
    if not gold:
        return
    path = tmp_path / "any.json"
    found = through(gold, path, format="spacy-json", form=form)
    assert [(s.tokens, s.mentions) for s in found] == [(s.tokens, s.mentions) for s in gold]
    if form != "tuples":
        assert [s.columns for s in found] == [s.columns for s in gold]
    for one, s in zip(found, gold, strict=True):
        assert one.spaces == s.spaces or s.spaces is None
    assert through(found, path, like=path) == found


FAULTS = [
    ('[["Ada", {"entities": [[0, 9, "X"]]}]]', "record 1: mention X .* outside"),
    ('[["Ada", {"entities": [[-1, 2, "X"]]}]]', "outside"),
    ('[["Ada", {"entities": [[true, 2, "X"]]}]]', "whole numbers"),
    ('[["Ada", {"entities": [[0, 1e30, "X"]]}]]', "whole numbers"),
    ('[["Ada", {"entities": [[0, 3, 5]]}]]', "non-empty string"),
    ('[["Ada", {"entities": [[0, 2, "X"]]}]]', "within the token 'Ada'"),
    ('[["Ada", {"entities": [[0, 3, "X"], [0, 3, "X"]]}]]', "given twice"),
    ('[["Ada", {"entities": {"0": 1}}]]', "'entities' is not a list"),
    ('[["Ada", {"entities": [5]}]]', "must be"),
    ('[["Ada", {"entities": ["U-X"]}]]', "not one for each of 'words'"),
    ('[["Ada", {"entities": ["I-X"], "words": ["Ada"]}]]', "token 1: I-X"),
    ('[["Ada", {"entities": [], "spans": []}]]', "'spans' is not an object"),
    ('[["Ada", {"entities": []}], 5]', "record 2: neither"),
    ('[["Ada", {"entities": []}], ["\\ud800", {}]]', "not JSON"),
    ('[["Ada", {"entities": []}', "not JSON"),
    ('[["Ada", {"entities": []}], ' + "[" * 9999, "not JSON"),
    ('[[" ", {"entities": []}]]', "no sentence"),
    ('[{"text": "Ada", "ents": [], "tokens": [{"id": 0, "start": 0, "end": 9}]}]', "not those of its text"),
    ('[{"text": "Ada", "ents": [], "tokens": [{"id": 0, "start": 1, "end": 3}]}]', "not those of its text"),
    ('[{"text": "Ada", "ents": [], "tokens": [{"id": 0, "start": null, "end": "x"}]}]', "not those of its text"),
    ('[{"text": "Ada", "ents": 5, "tokens": [{"id": 0, "start": 0, "end": 3}]}]', "'ents' is not a list"),
    (
        '[{"text": "Ada", "ents": [], "tokens": [{"id": 0, "start": 0, "end": 3, "head": 9, "dep": "x"}]}]',
        "head of token 1 is outside",
    ),
]


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_faults_of_json(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as told:
        entaug.read(path, "spacy-json")
    assert str(told.value).startswith(str(path))


def test_faults_in_lines_are_told_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('["Ada", {"entities": []}]\n\n["Bo", {"entities": 5}]\n{"x"\n["Cy", {"entities": []}]\n')
    found: list[InputError] = []
    sentences_ = list(open_file(path).sentences(ReadReport(on_fault=found.append)))
    assert [s.tokens for s in sentences_] == [("Ada",), ("Cy",)]
    assert [error.line for error in found] == [3, 4]


@pytest.mark.parametrize("form", ["docs", "tuples"])
def test_damaged_json(tmp_path: Path, form: str) -> None:
    path = tmp_path / "bad.json"
    entaug.write([FULL, Sentence(["a", "b"], [Mention("X", [(0, 2)])])], path, format="spacy-json", form=form)
    assert faults(path.read_bytes(), path, 1000) > 200


def test_a_field_of_a_mention_named_label_is_a_loss_and_the_label_stays(tmp_path: Path) -> None:
    given = {"tokens": ["Ada", "sang"], "entities": [{"start": 0, "end": 1, "type": "PER", "label": "Ada L."}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(given) + "\n")
    options: dict[str, Any] = {"to_format": "spacy-json"}
    with pytest.raises(LossError, match="cannot store field 'label' of mentions"):
        entaug.convert(tmp_path / "a.jsonl", tmp_path / "b.json", **options)
    entaug.convert(tmp_path / "a.jsonl", tmp_path / "b.json", allow_loss=["field"], **options)
    assert json.loads((tmp_path / "b.json").read_text())[0]["ents"] == [{"start": 0, "end": 3, "label": "PER"}]


def test_fields_of_sentences_that_spacy_would_take_for_its_own_are_losses(tmp_path: Path) -> None:
    fields = {"ents": [], "sents": 3, "spans": "none", "topic": "song"}
    sentence = Sentence(["Ada", "sang"], [Mention("PER", [(0, 1)])], meta=fields)
    for place in ("ents", "spans"):
        lost = SpacyJson().lost(sentence, SpacyJson().dialect(mentions=place))
        assert lost == ["field 'ents'", "field 'sents'", "field 'spans'"]
        entaug.write([sentence], tmp_path / "a.json", "spacy-json", mentions=place)
        [read] = entaug.read(tmp_path / "a.json", "spacy-json")
        assert (read.mentions, read.meta) == (sentence.mentions, {"topic": "song"})


def test_tuples_keep_the_links_of_mentions_in_a_group_alone() -> None:
    sentence = Sentence(["Ada"], [Mention("PER", [(0, 1)])], layout={ENTITY_FIELDS: [{"kb_id": "Q7259", "x": 1}]})
    for place, lost in (("ents", ["kb_id", "x"]), ("spans", ["x"])):
        dialect = SpacyJson().dialect(form="tuples", mentions=place)
        assert SpacyJson().lost(sentence, dialect) == [f"field {name!r} of mentions" for name in lost]


# -------------------------------------------------------------------------------------------------------- real corpora

CORPORA = ["wnut17/wnut17train.conll", "genia/nested-jsonl/dev.jsonl", "uner/en_ewt/en_ewt-ud-dev.iob2"]


@pytest.mark.corpora
@pytest.mark.parametrize("name", first_fast(CORPORA))
def test_real_corpora_come_back(corpora: Path, tmp_path: Path, name: str) -> None:
    gold = list(entaug.read(corpora / name))
    assert through(gold, tmp_path / "a.spacy") == gold
    docs = docs_of(tmp_path / "a.spacy")
    assert [[t.text for t in doc] for doc in docs] == [list(s.tokens) for s in gold]
    flat = all(s.is_flat for s in gold)
    seen = [sorted((s.start, s.end, s.label_) for s in (doc.ents if flat else doc.spans.get("sc", ()))) for doc in docs]
    assert seen == [[(m.start, m.end, m.label) for m in s.mentions] for s in gold]
    for form in ("docs", "tuples"):
        found = through(gold, tmp_path / "a.json", format="spacy-json", form=form)
        assert [(s.tokens, s.mentions) for s in found] == [(s.tokens, s.mentions) for s in gold]
        assert through(found, tmp_path / "b.json", like=tmp_path / "a.json") == found
        assert (tmp_path / "b.json").read_bytes() == (tmp_path / "a.json").read_bytes()
