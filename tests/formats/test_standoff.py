"""PubTator, BioC, WebAnno TSV and UIMA CAS: published layouts, round trips, oracles, and faults with their places."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.commands.main import build_parser, main
from entaug.commands.output import set_parser, with_options
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, LossError, MissingExtraError, OutputError
from entaug.formats.base import ENTITY_FIELDS, ReadReport
from entaug.formats.files import FORMATS, find_format, open_file
from entaug.methods.augment import augment_file
from helpers.strategies import sentences

pytest.importorskip("spacy")


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def surfaces(corpus: Any) -> list[tuple[str, str]]:
    """Labels and words of mentions, in the order of the text."""
    return [(m.label, " ".join(s.mention_tokens(m))) for s in corpus for m in s.mentions]


def notes_of(path: Path, *, repair: bool = False, **options: Any) -> tuple[list[Sentence], dict[str, int]]:
    reading = ReadReport(repair=repair)
    return list(open_file(path, **options).sentences(reading)), dict(reading.notes + reading.repaired)


def faults_of(path: Path, format_name: str) -> list[str]:
    faults: list[InputError] = []
    list(open_file(path, format_name).sentences(ReadReport(on_fault=faults.append)))
    return [str(fault) for fault in faults]


# ------------------------------------------------------------------------------------------------------------- PubTator

PUBTATOR = (
    "7|t|Quillin helps 😀 against zorbitis.\n"
    "7|a|In mice, quillin fell. It was heart and kidney failure.\n"
    "7\t0\t7\tQuillin\tChemical\tD009\n"
    "7\t24\t32\tzorbitis\tDisease\tD3\n"
    "7\t43\t50\tquillin\tChemical\tD009\n"
    "7\t64\t88\theart and kidney failure\tDisease\tD1|D2\theart failure|kidney failure\n"
    "7\tCID\tD009\tD3\n"
    "\n"
    "8|t|Nothing here.\n"
    "8|a|\n"
)
OF_PUBTATOR = [
    ("Chemical", "Quillin"),
    ("Disease", "zorbitis"),
    ("Chemical", "quillin"),
    ("Disease", "heart and kidney failure"),
]


def test_pubtator_comes_back_to_the_byte(tmp_path: Path) -> None:
    path = put(tmp_path / "a.pubtator", PUBTATOR)
    corpus = entaug.read(path)
    assert [s.id for s in corpus] == ["7-1", "7-2", "7-3", "8"]
    assert surfaces(corpus) == OF_PUBTATOR
    assert corpus[2].fields["_entity_fields"] == [{"identifier": "D1|D2", "further": ["heart failure|kidney failure"]}]
    entaug.convert(path, tmp_path / "b.pubtator")
    assert (tmp_path / "b.pubtator").read_text() == PUBTATOR
    shutil.copy(path, tmp_path / "corpus.txt")
    assert open_file(tmp_path / "corpus.txt").format.name == "pubtator", "by its content too"
    entaug.convert(path, tmp_path / "c.jsonl")
    entaug.convert(tmp_path / "c.jsonl", tmp_path / "d.pubtator")
    assert (tmp_path / "d.pubtator").read_text() == PUBTATOR


@pytest.mark.parametrize(
    ("unit", "encoding", "size"), [("UTF-16 units", "utf-16-le", 2), ("bytes of UTF-8", "utf-8", 1)]
)
def test_words_tell_what_offsets_count(tmp_path: Path, unit: str, encoding: str, size: int) -> None:
    text = "\n".join(line[4:] for line in PUBTATOR.split("\n")[:2])

    def moved(line: str) -> str:
        columns = line.split("\t")
        if len(columns) > 4:
            columns[1:3] = [str(len(text[: int(n)].encode(encoding)) // size) for n in columns[1:3]]
        return "\t".join(columns)

    path = put(tmp_path / "a.pubtator", "\n".join(map(moved, PUBTATOR.split("\n"))))
    assert path.read_text() != PUBTATOR
    corpus, notes = notes_of(path)
    assert surfaces(corpus) == OF_PUBTATOR
    assert notes == {f"text whose offsets count {unit}": 1}


def test_words_that_are_elsewhere_are_errors_with_their_lines(tmp_path: Path) -> None:
    path = put(tmp_path / "a.pubtator", PUBTATOR.replace("\t0\t7\t", "\t1\t8\t").replace("\t43\t50\t", "\t430\t437\t"))
    remedy = "correct its offsets or its words, or pass `repair=True` to believe the offsets"
    assert faults_of(path, "pubtator") == [
        f"{path}:3: a mention is at 1-8, where the text has 'uillin ' and not 'Quillin'; {remedy}",
        f"{path}:5: a mention is at 430-437, where the text has '' and not 'quillin'; {remedy}",
    ]
    path = put(tmp_path / "b.pubtator", PUBTATOR.replace("\tQuillin\t", "\tQuilin\t"))
    corpus, notes = notes_of(path, repair=True)
    assert surfaces(corpus) == OF_PUBTATOR
    assert notes == {"mention with other words than those of its place": 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("9\t0\t7\tQuillin\tChemical\tD009", "is no annotation of the document '7'; write PMID, start, end"),
        ("7\t0\t7\tQuillin", "an annotation without a label"),
        ("7\tCID\tD009", "is no annotation"),
        ("7\t-1\t7\tQuillin\tChemical\tD009", "offsets must be whole numbers, not '-1' and '7'; write PMID"),
        ("7\tx\t7\tQuillin\tChemical\tD009", "offsets must be whole numbers, not 'x' and '7'"),
        ("7\t1.5\t7\tQuillin\tChemical", "offsets must be whole numbers, not '1.5' and '7'"),
        ("7\t7\t7\tQuillin\tChemical\tD009", "a mention is at 7-7, where the text has '' and not 'Quillin'"),
        ("7\t0\t7\tQuillin\tChemical\tD009\t7\t0\t7\tQuillin", "is no annotation"),
        ("7|a|A second abstract.", "is no annotation"),
        ("7|b|Another text.", "is no annotation"),
    ],
)
def test_faults_of_pubtator(tmp_path: Path, line: str, message: str) -> None:
    path = put(tmp_path / "a.pubtator", PUBTATOR.replace("7\tCID\tD009\tD3\n", f"{line}\n"))
    [told] = faults_of(path, "pubtator")
    assert f"{path}:7: " in told
    assert message in told
    path = put(tmp_path / "b.pubtator", f"no title\n{PUBTATOR}")
    with pytest.raises(InputError, match=r"b\.pubtator:1: 'no title' before a title; begin each document with"):
        entaug.read(path)


def test_augmented_documents_of_pubtator(tmp_path: Path) -> None:
    path, out = put(tmp_path / "a.pubtator", PUBTATOR), tmp_path / "out.pubtator"
    augment_file(path, out, entaug.create_augmenter("mr", p=1.0, copies=1))
    text = out.read_text()
    assert text.count("|t|") == text.count("|a|") == 3, "the new sentences of a document are one"
    assert text.count("\tCID\t") == 1, "relations hold for the source alone"
    assert PUBTATOR.removesuffix("8|t|Nothing here.\n8|a|\n") in text
    assert all(label in ("Chemical", "Disease") for label, _ in surfaces(entaug.read(out)))


@pytest.mark.parametrize("name", ["pubtator", "bioc"])
def test_a_new_document_has_no_id_of_a_sentence_of_its_source(tmp_path: Path, name: str) -> None:
    text = "7|t|Ada sang.\n7|a|They left. They ran.\n7\t0\t3\tAda\tP\n\n8|t|Bo ran.\n8|a|\n8\t0\t2\tBo\tP\n"
    source, path = put(tmp_path / "a.pubtator", text), tmp_path / ("b.xml" if name == "bioc" else "b.pubtator")
    entaug.convert(source, path)
    augment_file(path, tmp_path / f"c{path.suffix}", entaug.create_augmenter("mr", p=1.0, copies=1))
    assert [s.id for s in entaug.read(tmp_path / f"c{path.suffix}")] == ["7-1", "7-2", "7-3", "8", "7+2", "8/mr-0-1"]


def test_the_library_bioc_reads_pubtator_as_we_write_it(tmp_path: Path) -> None:
    pubtator = pytest.importorskip("bioc.pubtator")
    entaug.convert(put(tmp_path / "a.pubtator", PUBTATOR), tmp_path / "b.pubtator")
    first, _ = pubtator.loads((tmp_path / "b.pubtator").read_text())
    assert [(one.type, first.text[one.start : one.end], one.id) for one in first.annotations] == [
        ("Chemical", "Quillin", "D009"),
        ("Disease", "zorbitis", "D3"),
        ("Chemical", "quillin", "D009"),
        ("Disease", "heart and kidney failure", "D1|D2"),
    ]


def test_what_pubtator_cannot_store(tmp_path: Path) -> None:
    for bad, message in (
        (Sentence(["a", "b", "c"], [Mention("x", [(0, 1), (2, 3)])]), "discontinuous"),
        (Sentence(["a"], [Mention("x\ty", [(0, 1)])]), r"holds .\\t"),
        (Sentence(["a\0b"]), "holds a NUL character"),
        (Sentence(["\ud800"]), "half a character"),
    ):
        with pytest.raises(LossError, match=message):
            entaug.write([bad], tmp_path / "a.pubtator")
    assert not (tmp_path / "a.pubtator").exists()
    put(tmp_path / "b.jsonl", '{"tokens": ["Ada", "can\'t"], "entities": [], "id": "a b", "source": "x"}\n')
    with pytest.raises(LossError, match=r"field 'source'.*id.*tokens that are not spaCy's"):
        entaug.convert(tmp_path / "b.jsonl", tmp_path / "b.pubtator")
    put(tmp_path / "c.conll", "他\tO\n住\tO\n在\tO\n北\tB-LOC\n京\tI-LOC\n")
    with pytest.raises(LossError, match="if the text is not English, name its language, as in") as error:
        entaug.convert(tmp_path / "c.conll", tmp_path / "c", to_format="brat")
    set_parser(build_parser("convert"))
    assert "--to-layout language=hr; else pass --allow-loss tokens" in with_options(str(error.value), writes=True)
    entaug.convert(tmp_path / "c.conll", tmp_path / "c", to_format="brat", write_options={"language": "zh"})


# ----------------------------------------------------------------------------------------------------------------- BioC

BIOC = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE collection SYSTEM "BioC.dtd">
<collection>
<source></source>
<date></date>
<key></key>
<document>
<id>12</id>
<infon key="journal">A&amp;B</infon>
<passage>
<infon key="type">title</infon>
<offset>0</offset>
<text>Quillin 😀 against zorbitis</text>
<annotation id="3">
<infon key="type">Chemical</infon>
<infon key="identifier">D1</infon>
<location offset="0" length="7"/>
<text>Quillin</text>
</annotation>
<annotation id="7">
<infon key="type">Disease</infon>
<location offset="18" length="8"/>
<text>zorbitis</text>
</annotation>
</passage>
<passage>
<infon key="type">abstract</infon>
<offset>30</offset>
<sentence>
<offset>30</offset>
<text>It was heart and kidney failure.</text>
<annotation id="4">
<infon key="type">Disease</infon>
<location offset="37" length="5"/>
<location offset="54" length="7"/>
<text>heart failure</text>
</annotation>
<annotation id="5">
<infon key="type">Disease</infon>
<location offset="47" length="14"/>
<text>kidney failure</text>
</annotation>
</sentence>
<sentence>
<offset>64</offset>
<text>Then nothing. Really.</text>
</sentence>
</passage>
</document>
</collection>
"""
OF_BIOC = [
    ("Chemical", "Quillin"),
    ("Disease", "zorbitis"),
    ("Disease", "heart failure"),
    ("Disease", "kidney failure"),
]


def test_bioc_comes_back_to_the_byte_in_xml_and_json(tmp_path: Path) -> None:
    path = put(tmp_path / "a.xml", BIOC)
    corpus, notes = notes_of(path)
    assert surfaces(corpus) == OF_BIOC
    assert notes == {}
    assert [s.text.strip() for s in corpus][2:] == ["Then nothing. Really."], "the sentences are those of the file"
    assert corpus[1].mentions[0].spans == ((2, 3), (5, 6))
    entaug.convert(path, tmp_path / "b.json", to_format="bioc")
    entaug.convert(tmp_path / "b.json", tmp_path / "c.xml")
    assert (tmp_path / "c.xml").read_text() == BIOC
    for name in ("bioc", "jsonl"):
        entaug.convert(path, tmp_path / f"{name}.jsonl", to_format=name)
        assert open_file(tmp_path / f"{name}.jsonl").format.name == name
        entaug.convert(tmp_path / f"{name}.jsonl", tmp_path / f"{name}.xml")
        assert (tmp_path / f"{name}.xml").read_text() == BIOC


def test_the_shapes_of_bioc_json(tmp_path: Path) -> None:
    entaug.convert(put(tmp_path / "a.xml", BIOC), tmp_path / "b.json", to_format="bioc")
    collection = json.loads((tmp_path / "b.json").read_text())
    [document] = collection["documents"]
    other = {**document, "id": "13"}
    for shape in (
        [collection, {**collection, "documents": [other]}],
        {"PubTator3": [document, other]},
        [document, other],
        f"{json.dumps(document)}\n{json.dumps(other)}\n",
    ):
        path = put(tmp_path / "c.json", shape if isinstance(shape, str) else json.dumps(shape))
        assert open_file(path).format.name == "bioc"
        corpus = entaug.read(path)
        assert surfaces(corpus) == OF_BIOC * 2
        assert [s.id for s in corpus] == ["12-1", "12-2", "12-3", "13-1", "13-2", "13-3"]


def test_what_bioc_does_not_keep_is_noted(tmp_path: Path) -> None:
    relation = '<relation id="R1"><infon key="type">CID</infon><node refid="3" role="a"/></relation>'
    text = BIOC.replace("<source></source>", "<source>PubMed</source>").replace("</document>", f"{relation}</document>")
    unnamed = '<infon key="type">Disease</infon>\n<location offset="47"'
    path = put(tmp_path / "a.xml", text.replace(unnamed, '<location offset="47"'))
    corpus, notes = notes_of(path)
    assert surfaces(corpus) == OF_BIOC[:3]
    assert notes == {
        "relation of BioC not kept": 1,
        "source of a BioC collection not kept": 1,
        "annotation without an infon type left out": 1,
    }
    assert surfaces(entaug.read(path, label="identifier")) == [("D1", "Quillin")]
    identifier = '<infon key="identifier">D1</infon>\n'
    corpus, notes = notes_of(put(tmp_path / "b.xml", BIOC.replace(identifier, identifier * 2)))
    assert notes == {"infon of BioC replaced by a later one of the same key": 1}
    corpus, notes = notes_of(put(tmp_path / "c.xml", BIOC.replace("identifier", "id")))
    assert notes == {"infon id left out beside the id of its annotation": 1}
    entaug.convert(tmp_path / "c.xml", tmp_path / "d.xml")
    assert (tmp_path / "d.xml").read_text() == BIOC.replace(identifier, "")


def test_offsets_of_bioc_in_bytes(tmp_path: Path) -> None:
    corpus, notes = notes_of(put(tmp_path / "a.xml", BIOC.replace('"18"', '"21"')))
    assert surfaces(corpus) == OF_BIOC
    assert notes == {"text whose offsets count bytes of UTF-8": 1}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<offset>30</offset>\n<sentence>", "<sentence>", ":26: no whole number 'offset'; "),
        ('offset="18"', 'offset="x"', ":22: no whole number 'offset'; "),
        ('offset="18"', 'offset="17"', ":20: a mention is at 17-25, where the text has ' zorbiti' and not 'zorbitis'"),
        ("</passage>\n</document>", "</document>", ":48: not XML that can be read (mismatched tag)"),
        (
            'length="8"/>\n<text>zorbitis</text>',
            'length="80"/>',
            ":20: mention Disease (18-98) is empty or outside the text",
        ),
        ('length="8"', 'length="-8"', ":22: no whole number 'length'"),
        ('"UTF-8"', '"UTF-0"', ":1: not XML that can be read (unknown encoding: UTF-0); save it in UTF-8"),
        ("A&amp;B", "A&alpha;B", ":9: the entity &alpha; is defined by the file, or nowhere"),
        ('SYSTEM "BioC.dtd"', '[<!ENTITY a SYSTEM "/etc/passwd">]', ":2: the entity &a; is defined by the file"),
        ('SYSTEM "BioC.dtd"', '[<!ENTITY a "b"><!ENTITY c "&a;&a;&a;">]', ":2: the entity &a; is defined by the file"),
    ],
)
def test_faults_of_bioc(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in BIOC
    path = put(tmp_path / "a.xml", BIOC.replace(old, new))
    with pytest.raises(InputError) as caught:
        entaug.read(path)
    assert f"{path}{message}" in str(caught.value)


def test_a_changed_document_of_bioc_is_one_passage(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    path = put(tmp_path / "a.xml", BIOC)
    augment_file(path, out, entaug.create_augmenter("lwtr", copies=1, seed=3), to_format="bioc")
    first, *made = json.loads(out.read_text())["documents"]
    assert [len(first["passages"]), *(len(one["passages"]) for one in made)] == [2, *[1] * len(made)]
    assert made
    for document in made:
        [passage] = document["passages"]
        for one in passage["annotations"]:
            parts = [passage["text"][p["offset"] :][: p["length"]] for p in one["locations"]]
            assert " ".join(parts) == one["text"]


def test_the_library_bioc_reads_bioc_as_we_write_it(tmp_path: Path) -> None:
    pytest.importorskip("bioc")
    path = put(tmp_path / "a.xml", BIOC)
    entaug.convert(path, tmp_path / "b.xml")
    entaug.convert(path, tmp_path / "b.json", to_format="bioc")
    from bioc import biocjson, biocxml

    read = biocxml.loads((tmp_path / "b.xml").read_text()), biocjson.loads((tmp_path / "b.json").read_text())
    for collection in read:
        found = []
        passages = collection.documents[0].passages
        for unit in (own for passage in passages for own in (passage, *passage.sentences)):
            for one in unit.annotations:
                parts = [unit.text[p.offset - unit.offset :][: p.length] for p in one.locations]
                found.append((one.infons["type"], " ".join(parts)))
        assert found == OF_BIOC


def test_faults_of_bioc_json_have_their_places(tmp_path: Path) -> None:
    def document(id_: int = 1, **of_second: Any) -> str:
        annotations = [
            {"infons": {"type": "PER"}, "text": word, "locations": [{"offset": at, "length": 3}], **more}
            for word, at, more in (("Ada", 0, {"line": 3}), ("Bob", 4, of_second))
        ]
        return json.dumps({"id": id_, "passages": [{"offset": 0, "text": "Ada Bob", "annotations": annotations}]})

    for more in ({}, {"line": "x"}, {"line": 4}):
        assert len(entaug.read(put(tmp_path / "a.json", document(**more)), "bioc")[0].mentions) == 2
    path = put(tmp_path / "a.jsonl", f"{document(1)}\n{document(2)}\n{{\n")
    with pytest.raises(InputError, match=r"a\.jsonl:3: not JSON"):
        entaug.read(path, "bioc")
    with pytest.raises(InputError, match=r"a\.jsonl:3: a number where an object"):
        entaug.read(put(path, f"{document(1)}\n{document(2)}\n5\n"), "bioc")


# -------------------------------------------------------------------------------------------------------------- WebAnno

ENTITIES = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
WEBANNO = f"""#FORMAT=WebAnno TSV 3.3
#T_SP={ENTITIES}|identifier|value


#Sentence.id=one
#Text=Ada Byron saw 😀 New York .
1-1\t0-3\tAda\t*[1]\tPER[1]\t
1-2\t4-9\tByron\t*[1]\tPER[1]\t
1-3\t10-13\tsaw\t_\t_\t
1-4\t14-16\t😀\t_\t_\t
1-5\t17-20\tNew\t*[2]|http://x/y\\_z[3]\tA\\|\\[b\\]\\_c[2]|LOC[3]\t
1-6\t21-25\tYork\thttp://x/y\\_z[3]\tLOC[3]\t
1-7\t26-27\t.\t_\t_\t

#Text=Rome fell
2-1\t28-32\tRome\t*\tLOC\t
2-2\t33-37\tfell\t_\t_\t
"""
LAYERS = """#FORMAT=WebAnno TSV 3.2
#T_SP=de.x.pos.POS|PosValue
#T_SP=webanno.custom.Drug|kind|value|ROLE_webanno.custom.Drug:args_link|de.x.Arg
#T_SP=webanno.custom.Mark
#T_CH=de.x.Coref|referenceType|referenceRelation
#T_RL=de.x.Dependency|DependencyType|BT_de.x.pos.POS

#Text=A😀b-anti c\\\\d
1-1\t0-9\tA😀b-anti\tNN\tx\tDR\\_UG\tr;s\t2-1;2-2[4]\t*\t_\t_\t_\t_\t
1-2\t10-13\tc\\\\d\tVB\t_\t*\t_\t_\t_\t_\t_\t_\t_\t
"""


def test_webanno_comes_back_to_the_byte(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", WEBANNO)
    opened = open_file(path)
    assert opened.format.name == "webanno"
    assert opened.dialect.describe() == "WebAnno TSV 3, layer NamedEntity, label in 'value'"
    corpus = entaug.read(path)
    assert [(s.id, s.text) for s in corpus] == [("one", "Ada Byron saw 😀 New York ."), (None, "Rome fell")]
    assert surfaces(corpus) == [("PER", "Ada Byron"), ("A|[b]_c", "New"), ("LOC", "New York"), ("LOC", "Rome")]
    assert corpus[0].fields["_entity_fields"] == [{}, {}, {"identifier": "http://x/y_z"}]
    entaug.convert(path, tmp_path / "b.tsv")
    assert (tmp_path / "b.tsv").read_text() == WEBANNO


def test_the_layer_and_what_is_not_read(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", LAYERS)
    assert open_file(path).dialect.describe() == "WebAnno TSV 3, layer Drug, label in 'value'"
    corpus, notes = notes_of(path)
    assert surfaces(corpus) == [("DR_UG", "A😀b-anti")]
    assert corpus[0].tokens == ("A😀b-anti", "c\\d")
    assert corpus[0].fields["_entity_fields"] == [{"kind": "x"}]
    assert notes == {
        "slots of the layer Drug not read": 1,
        "annotation without a value left out": 1,
        "layer POS of the file not read; another layer is read with `layer=NAME`": 1,
        "layer Mark of the file not read; another layer is read with `layer=NAME`": 1,
        "chains Coref of the file not read": 1,
        "relations Dependency of the file not read": 1,
    }
    assert surfaces(entaug.read(path, layer="POS")) == [("NN", "A😀b-anti"), ("VB", "c\\d")]
    assert surfaces(entaug.read(path, layer="Mark")) == [("Mark", "A😀b-anti")], "its name is the label"
    assert surfaces(entaug.read(path, layer="Drug", feature="kind")) == [("x", "A😀b-anti")]
    with pytest.raises(InputError, match=r"no layer 'Drag' in the heading; name one with `layer=NAME`: POS, Drug"):
        entaug.read(path, layer="Drag")
    with pytest.raises(InputError, match=r"no feature 'colour' of Drug in .*; name one with `feature=NAME`: kind"):
        entaug.read(path, layer="Drug", feature="colour")
    entaug.write(
        entaug.read(path, layer="Mark"), tmp_path / "b.tsv", "webanno", layer="x.Mark", feature="", features=""
    )
    assert "#T_SP=x.Mark\n" in (tmp_path / "b.tsv").read_text()
    assert surfaces(entaug.read(tmp_path / "b.tsv")) == [("Mark", "A😀b-anti")]
    with pytest.raises(LossError, match="the layer Mark has no feature for the label 'PER'"):
        entaug.write(
            [Sentence(["a"], [Mention("PER", [(0, 1)])])], tmp_path / "c.tsv", "webanno", layer="x.Mark", feature=""
        )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1-2\t4-9\tByron\t*[1]\tPER[1]\t", "1-2\t4-9\tByron", ":8: '1-2 4-9 Byron' is no token with the columns"),
        ("1-2\t4-9", "x\t4-9", ":8: 'x 4-9 Byron *[1] PER[1] ' is no token"),
        (WEBANNO[WEBANNO.index("1-1\t") : WEBANNO.index("\n#Text=Rome")], "", ":6: a text without a token"),
        ("1-2\t4-9\tByron", "1-2.1\t4-9\tByron", ":8: 1-2.1 is a part of a token; export UIMA CAS JSON"),
        ("\t*[1]\tPER[1]\t\n1-2", "\t*\tPER[1]|ORG[9]\t\n1-2", ":7: the columns of a token have different numbers"),
    ],
)
def test_faults_of_webanno(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = put(tmp_path / "a.tsv", WEBANNO.replace(old, new, 1))
    [told] = faults_of(path, "webanno")
    assert f"{path}{message}" in told


def test_a_mention_of_webanno_over_two_sentences_is_noted(tmp_path: Path) -> None:
    text = WEBANNO.replace("Rome\t*\tLOC\t", "Rome\t*[1]\tPER[1]\t").replace("#Text=Rome", "#Text=Roma")
    corpus, notes = notes_of(put(tmp_path / "a.tsv", text))
    assert surfaces(corpus)[-1] == ("PER", "Rome")
    assert notes == {
        "annotation that goes on in the next sentence read as one in each": 1,
        "text that is not that of its tokens: made of these": 1,
    }
    assert corpus[1].text == "Rome fell"


# ------------------------------------------------------------------------------------------------------------------ CAS


def test_cas_in_json_and_archives(tmp_path: Path) -> None:
    pytest.importorskip("cassis")
    path = put(tmp_path / "a.tsv", WEBANNO)
    gold = entaug.read(path)
    for name in ("b.json", "b.zip"):
        entaug.convert(path, tmp_path / name, to_format="cas", allow_loss=["id"])
        assert open_file(tmp_path / name).format.name == "cas"
        back = entaug.read(tmp_path / name)
        assert [(s.tokens, s.mentions) for s in back] == [(s.tokens, s.mentions) for s in gold]
        assert back[0].fields["_entity_fields"] == gold[0].fields["_entity_fields"]
        again = tmp_path / f"again{name[1:]}"
        entaug.convert(tmp_path / name, again, to_format="cas")
        assert again.read_bytes() == (tmp_path / name).read_bytes()
    (tmp_path / "apart").mkdir()
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        archive.extractall(tmp_path / "apart")
    with zipfile.ZipFile(tmp_path / "far.zip", "w") as archive:  # not compressed, as Python writes them
        archive.writestr("first.txt", "-" * (1 << 17))
        for file in (tmp_path / "apart").iterdir():
            archive.write(file, file.name)
    assert surfaces(entaug.read(tmp_path / "far.zip")) == surfaces(gold)
    xmi = tmp_path / "apart" / "document.xmi"
    assert surfaces(entaug.read(xmi)) == surfaces(gold)
    assert open_file(xmi).source_files() == [xmi, xmi.with_name("TypeSystem.xml")]
    xmi.with_name("TypeSystem.xml").unlink()
    with pytest.raises(InputError, match=r"document\.xmi without its type system; put TypeSystem\.xml beside it"):
        entaug.read(xmi)
    with pytest.raises(OutputError, match=r"XMI cannot be read without its type system; name a file in \.zip"):
        entaug.write(gold, tmp_path / "c.xmi", "cas")


def test_a_cas_that_the_library_made(tmp_path: Path) -> None:
    cassis = pytest.importorskip("cassis")
    types = cassis.TypeSystem()
    drug = types.create_type("webanno.custom.Drug")
    mark = types.create_type("webanno.custom.Mark")
    token = types.create_type("de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token")
    types.create_feature(drug, "value", "uima.cas.String")
    types.create_feature(drug, "dose", "uima.cas.Integer")
    cas = cassis.Cas(types)
    cas.sofa_string = "😀 Quillin and zorbin help. Much."
    for begin, end, value in ((2, 9, "DRUG"), (2, 20, "PAIR"), (14, 25, "CROSS"), (14, 20, None), (3, 3, "EMPTY")):
        cas.add(drug(begin=begin, end=end, value=value, dose=3))
    cas.add(mark(begin=0, end=1))
    path = tmp_path / "a.json"
    cas.to_json(path)
    corpus, notes = notes_of(path)
    wanted = [("DRUG", "Quillin"), ("PAIR", "Quillin and zorbin"), ("CROSS", "zorbin help")]
    assert surfaces(corpus) == wanted
    assert [s.text.strip() for s in corpus] == ["😀 Quillin and zorbin help.", "Much."]
    assert corpus[0].fields["_entity_fields"] == [{"dose": 3}] * 3
    assert notes == {
        "annotation without a value left out": 1,
        "annotation without a character left out": 1,
        "type Mark of a CAS not read; another type is read with `layer=NAME`": 1,
    }
    with pytest.raises(InputError, match=r"no annotation of the type 'Drag'; name one with `layer=NAME`: .*Drug"):
        entaug.read(path, layer="Drag")
    assert find_format("cas").lost(corpus[0], find_format("cas").dialect()) == ["field 'dose' of mentions"]
    cas.add(token(begin=0, end=9))
    cas.to_json(path)
    _, notes = notes_of(path)
    assert notes["tokens that leave out part of the text, or overlap: tokenised anew"] == 1


def test_faults_of_cas(tmp_path: Path) -> None:
    pytest.importorskip("cassis")
    for content, message in (
        ('{"%TYPES": {}, "%FEATURE_STRUCTURES": 3}', r"not a CAS that can be read \("),
        ('{"%TYPES": {}', r"not JSON \("),
        ('{"%TYPES": {}, "%FEATURE_STRUCTURES": [], "%VIEWS": {}}', "a CAS without a text"),
        ("[]", "no sentence in it"),
    ):
        with pytest.raises(InputError, match=rf"a\.json: .*{message}"):
            entaug.read(put(tmp_path / "a.json", content), "cas")
    put(tmp_path / "TypeSystem.xml", "<typeSystemDescription/>")
    bomb = '<!DOCTYPE x [<!ENTITY a SYSTEM "/etc/passwd">]><xmi:XMI xmlns:xmi="http://www.omg.org/XMI">&a;</xmi:XMI>'
    with pytest.raises(InputError, match=r"a\.xmi: XML that declares entities"):
        entaug.read(put(tmp_path / "a.xmi", bomb))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.xmi", "<xmi:XMI")
    with pytest.raises(InputError, match=r"a\.zip: a\.xmi without its type system"):
        entaug.read(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("b.txt", "Ada")
    with pytest.raises(
        InputError, match=r"b\.zip: no XMI file in it; unpack it, if it is no UIMA CAS, or export it anew, as UIMA CAS"
    ):
        entaug.read(tmp_path / "b.zip")


def test_the_missing_library_of_cas_is_no_fault_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cassis", None)
    with pytest.raises(MissingExtraError, match=r"entaug\[cas\]"):
        entaug.read(put(tmp_path / "a.json", '{"%TYPES": {}}'), "cas")


@pytest.mark.parametrize("type_", ["NamedEntity", "Token", "Sentence"])
@pytest.mark.parametrize("name", ["begin", "end"])
def test_offsets_of_a_cas_are_whole_numbers(tmp_path: Path, type_: str, name: str) -> None:
    path = tmp_path / "a.json"
    entaug.write([Sentence(["Ada"], [Mention("PER", [(0, 1)])])], path, "cas")
    content = json.loads(path.read_text())
    [changed] = [one for one in content["%FEATURE_STRUCTURES"] if one["%TYPE"].endswith(f".{type_}")]
    changed[name] = str(changed[name])
    with pytest.raises(InputError, match=r"a\.json: .*offsets must be whole numbers"):
        entaug.read(put(path, json.dumps(content)), "cas", split="sentences")


def test_an_attribute_that_is_no_feature_of_a_cas_is_a_loss(tmp_path: Path) -> None:
    path = put(tmp_path / "a.xml", '<ENAMEX TYPE="PER">Ada</ENAMEX> came <TIMEX TYPE="DATE">Monday</TIMEX>\n')
    with pytest.raises(LossError, match="cannot store field '_tag' of mentions"):
        entaug.convert(path, tmp_path / "b.json", to_format="cas")
    entaug.convert(path, tmp_path / "b.json", to_format="cas", allow_loss=["field"])
    assert surfaces(entaug.read(tmp_path / "b.json")) == [("PER", "Ada"), ("DATE", "Monday")]


# ---------------------------------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("name", ["pubtator", "bioc", "webanno", "cas"])
@settings(max_examples=examples(60))
@given(st.lists(sentences(), min_size=1, max_size=4))
def test_what_is_written_is_read_back(tmp_path: Path, name: str, corpus: list[Sentence]) -> None:
    if name == "cas":
        pytest.importorskip("cassis")
    path = tmp_path / f"a{find_format(name).extensions[0]}"
    kept = [s if name == "bioc" else s.with_(mentions=[m for m in s.mentions if m.is_contiguous]) for s in corpus]
    storable = []
    for sentence in kept:
        try:
            find_format(name).dump(sentence, find_format(name).dialect())
        except LossError:
            continue
        storable.append(sentence)
    if not storable:
        return
    entaug.write(storable, path, name)
    back = entaug.read(path, misaligned="cut")
    if name in ("pubtator", "bioc"):  # texts without tokens

        def letters(some: Any) -> list[tuple[str, str]]:
            return sorted((label, "".join(words.split())) for label, words in surfaces(some))

        assert letters(back) == letters(storable)
    else:
        assert [(s.tokens, s.mentions) for s in back] == [(s.tokens, s.mentions) for s in storable]


@pytest.mark.parametrize("name", ["pubtator", "bioc", "bioc.json", "webanno", "cas"])
@settings(max_examples=examples(100))
@given(data=st.data())
def test_nothing_but_clear_errors_whatever_the_bytes(tmp_path: Path, name: str, data: st.DataObject) -> None:
    name, _, json_ = name.partition(".")
    if name == "cas":
        pytest.importorskip("cassis")
    good = {"pubtator": PUBTATOR, "bioc": BIOC, "webanno": LAYERS}.get(name, "")
    path = tmp_path / f"a{'.json' if json_ or name == 'cas' else find_format(name).extensions[0]}"
    if json_ or name == "cas":
        source = put(tmp_path / ("in.xml" if json_ else "in.tsv"), BIOC if json_ else WEBANNO)
        entaug.convert(source, path, to_format=name, allow_loss=["all"], force=True)
        good = path.read_text()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(good)))
        end = start + data.draw(st.sampled_from([0, 1, 2, 9, 40]))
        new = st.sampled_from(
            ["", "\n", "\t", "0", "9" * 30, "-1", "|", "_", "[1]", '"', "{", "<a>", "&x;", "\0", "null"]
        )
        good = good[:start] + data.draw(new) + good[end:]
    put(path, good)
    for format_name in FORMATS:
        find_format(format_name).recognises(path)
    try:
        corpus = entaug.read(path, name)
        entaug.write(corpus, tmp_path / f"b{path.suffix}", name, like=path)
    except EntaugError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("name", "fields", "kept", "lost"),
    [
        ("pubtator", {"identifier": 5, "further": ["x"]}, {"identifier": "5", "further": ["x"]}, []),
        ("pubtator", {"identifier": [5], "further": "x"}, {}, ["further", "identifier"]),
        ("bioc", {"id": 7, "type": "x", "note": 2.5}, {"id": "7", "note": "2.5"}, ["type"]),
        ("webanno", {"identifier": 5, "value": "x"}, {}, ["identifier", "value"]),
        ("webanno", {"identifier": "Q5"}, {"identifier": "Q5"}, []),
        ("cas", {"identifier": "Q5", "empty": "", "_x": "y"}, {"identifier": "Q5"}, ["_x", "empty"]),
    ],
)
def test_fields_of_mentions_are_written_or_named(
    tmp_path: Path, name: str, fields: dict[str, Any], kept: dict[str, Any], lost: list[str]
) -> None:
    sentence = Sentence(["Ada", "sang"], [Mention("PER", [(0, 1)])], layout={ENTITY_FIELDS: [fields]})
    written = find_format(name)
    assert written.lost(sentence, written.dialect()) == [f"field {one!r} of mentions" for one in lost]
    path = tmp_path / f"a{written.extensions[0]}"
    entaug.write([sentence], path, name)
    [read] = entaug.read(path, name)
    assert read.mentions == sentence.mentions
    found = read.layout.get(ENTITY_FIELDS, [{}])[0]
    assert {one: found[one] for one in found if one in fields} == kept


# ----------------------------------------------------------------------------------------------- what a file really is

FOREIGN = {
    "docx": (b"PK\x03\x04" + b"\0" * 26 + b"[Content_Types].xml..word/document.xml", "is a Word document"),
    "xlsx": (b"PK\x03\x04" + b"\0" * 26 + b"[Content_Types].xml..xl/workbook.xml", "is an Excel workbook"),
    "odt": (b"PK\x03\x04" + b"\0" * 26 + b"mimetypeapplication/vnd.oasis.opendocument.text", "is an OpenDocument"),
    "zip": (b"PK\x03\x04" + b"\0" * 26 + b"a.txt", "is a zip archive, not CoNLL columns; unpack it"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3", "is a PDF, .*pdftotext"),
    "doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office"),
    "rtf": (b"{\\rtf1\\ansi Ada}", "Rich Text"),
    "sqlite": (b"SQLite format 3\0", "is an SQLite database, .*prodigy db-out"),
    "pickle": (b"\x80\x04\x95\x10", "is a pickle of Python"),
    "parquet": (b"PAR1\x15\x04", "is Parquet, .*`format='parquet'`"),
    "docbin": (b"x\x9c\xed\xbd", "DocBin.*`format='docbin'`"),
    "webanno": (WEBANNO.encode(), "is WebAnno TSV 3.*; pass `format='webanno'`"),
    "old webanno": (b"# webanno.custom.X | a\n#id=1\n1-1\tAda\tO\n", "WebAnno TSV of an old version"),
    "WebAnno 2": (
        b" # de.tudarmstadt.x.NamedEntity | value\n#id=1\n1-1\tAda\tB-PER\n",
        "WebAnno TSV of an old version",
    ),
    "pubtator": (PUBTATOR.encode(), "is PubTator, .*`format='pubtator'`"),
    "bioc": (BIOC.encode(), "is BioC XML, .*`format='bioc'`"),
    "xmi": (b'<?xml version="1.0"?>\n<xmi:XMI xmlns:xmi="x"/>', "is UIMA CAS XMI, .*`format='cas'`"),
    "cas": (b'{"%TYPES": {}}', "is UIMA CAS JSON, .*`format='cas'`"),
    "gate": (b"<?xml version='1.0'?>\n<!-- x -->\n<GateDocument version='3'>\n", "is GATE XML"),
    "tei": (b'\xef\xbb\xbf<TEI xmlns="x">', "is TEI XML"),
    "html": (b"\n<!DOCTYPE html>\n<html><body>", "is HTML"),
    "html alone": (b"<html lang='en'>\n<body>", "is HTML"),
    "xml": (b"<?xml version='1.0'?><corpus/>", "is XML, not CoNLL columns"),
    "rasa": (b"version: '3.1'\n\nnlu:\n- intent: greet\n", "Rasa .*YAML"),
    "rasa json": (b'{"rasa_nlu_data": {}}', "training data of Rasa"),
    "spacy": (b"[paths]\ntrain = null\n", "configuration of spaCy"),
    "tagtog": (b'{"annotatable": {"parts": []}}', "tagtog"),
    "dataturks": (b'{"content": "Ada", "annotation": [{"label": ["A"], "points": [{"start": 0}]}]}', "Dataturks"),
    "annotator": (
        b'{"classes":["PER"],"annotations":[["Ada",{"entities":[[0,3,"PER"]]}],null]}',
        "NER Annotator.*null",
    ),
    "a task": (
        b'{"id": 1, "annotations": [{"was_cancelled": false, "result": []}]}',
        "a task of Label Studio without an",
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_an_error_names_what_the_file_is(tmp_path: Path, kind: str) -> None:
    content, message = FOREIGN[kind]
    path = tmp_path / "a.conll"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"a\.conll: {message}" if message.startswith("is ") else message) as caught:
        entaug.read(path)
    assert str(caught.value).count(", not CoNLL columns; ") == 1
    for other in ("jsonl", "label-studio", "brat", "webanno"):
        if kind != other and (kind, other) != ("a task", "label-studio"):
            with pytest.raises(InputError, match=rf"is .*, not {find_format(other).title}; "):
                entaug.read(path, other)


@pytest.mark.parametrize(
    "text", ["PAR1\tB-GENE\n", "<html>\tO\n", "#FORMAT\tO\n", "%PDF\tO\n", "nlu:\tO\n", "[paths]\tO\n"]
)
def test_columns_that_begin_like_another_kind_are_read(tmp_path: Path, text: str) -> None:
    path = put(tmp_path / "a.conll", f"{text}Ada\tB-PER\n")
    assert len(entaug.read(path)[0].tokens) == 2


def test_commands_name_layers_and_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path / "a.tsv", LAYERS)
    assert main(["convert", str(path), str(tmp_path / "b.jsonl")]) == 0
    told = capsys.readouterr().err
    assert "note: slots of the layer Drug not read" in told
    assert "from WebAnno TSV 3, layer Drug, label in 'value'" in told
    assert orjson.loads((tmp_path / "b.jsonl").read_bytes())["entities"][0]["type"] == "DR_UG"
