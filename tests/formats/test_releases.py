"""Corpora as they are distributed: small files of our own in the forms of the originals."""

from __future__ import annotations

from pathlib import Path

import pytest

from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.formats.base import ReadReport
from entaug.formats.releases import READERS

pytest.importorskip("spacy")


def write_files(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def sentences_of(reader: str, path: Path) -> list[Sentence]:
    return [sentence for _, some in READERS[reader](path, ReadReport(repair=True)) for sentence in some]


def shown(sentence: Sentence) -> list[tuple[str, str]]:
    return sorted((m.label, " ".join(" ".join(sentence.tokens[a:b]) for a, b in m.spans)) for m in sentence.mentions)


APF = """<?xml version="1.0"?>
<!DOCTYPE source_file SYSTEM "apf.v5.1.1.dtd">
<source_file URI="a.sgm" TYPE="text"><document DOCID="a">
<entity ID="E1" TYPE="ORG" SUBTYPE="Commercial">
<entity_mention ID="E1-1" TYPE="NAM"><extent><charseq START="11" END="19">Ask &amp; Co</charseq></extent>
<head><charseq START="11" END="19">Ask &amp; Co</charseq></head></entity_mention></entity>
<entity ID="E2" TYPE="PER"><entity_mention ID="E2-1" TYPE="NOM"><extent><charseq START="1" END="19">Lawyers of
Ask &amp; Co</charseq></extent></entity_mention>
<entity_mention ID="E2-2" TYPE="PRO"><extent><charseq START="27" END="30">They</charseq></extent></entity_mention>
</entity>
<value ID="V1" TYPE="Crime"><value_mention ID="V1-1"><extent><charseq START="21" END="24">rest</charseq></extent>
</value_mention></value></document></source_file>
"""


def test_ace_has_offsets_without_tags(tmp_path: Path) -> None:
    # "&amp;" is five characters for the offsets, a tag none: "\\nLawyers of\\nAsk &amp; Co rest .\\nThey won .".
    sgm = "<DOC>\n<TEXT>Lawyers of\nAsk &amp; Co rest .\nThey won .</TEXT></DOC>"
    raw = "\nLawyers of\nAsk &amp; Co rest .\nThey won ."
    starts = {"11": raw.index("Ask"), "1": raw.index("Lawyers"), "27": raw.index("They"), "21": raw.index("rest")}
    ends = {"19": raw.index(" rest") - 1, "30": raw.index(" won") - 1, "24": raw.index(" .") - 1}
    apf = APF
    for old, new in starts.items():
        apf = apf.replace(f'START="{old}"', f'START="_{new}"')
    for old, new in ends.items():
        apf = apf.replace(f'END="{old}"', f'END="_{new}"')
    write_files(tmp_path, a_DOT_sgm=sgm)
    (tmp_path / "a.apf.xml").write_text(apf.replace('"_', '"'))
    first, second = sentences_of("ace", tmp_path)
    assert shown(first) == [("ORG", "Ask & Co"), ("PER", "Lawyers of Ask & Co")]
    assert shown(second) == [("PER", "They")]
    (tmp_path / "a.sgm").write_text(sgm.replace("rest", "&reg"))  # no entity, for want of a semicolon
    assert shown(sentences_of("ace", tmp_path)[1]) == [("PER", "They")]
    (tmp_path / "a.sgm").write_text(sgm.replace("Lawyers", "The lawyers"))
    with pytest.raises(InputError, match=r"a\.apf\.xml: the mention says 'Ask & Co', but the text has .*line ends"):
        sentences_of("ace", tmp_path)
    (tmp_path / "a.sgm").unlink()
    with pytest.raises(InputError, match=r"has no text; add a\.sgm"):
        sentences_of("ace", tmp_path)


def test_ace_has_the_text_proper_of_english_documents(tmp_path: Path) -> None:
    def apf(raw: str, *words: str) -> str:
        places = [f'START="{raw.index(one)}" END="{raw.index(one) + len(one) - 1}"' for one in words]
        told = [one.replace("&AMP;", "&amp;") for one in words]
        extents = [f"<extent><charseq {p}>{one}</charseq></extent>" for p, one in zip(places, told, strict=True)]
        mentions = "".join(f"<entity_mention>{extent}</entity_mention>" for extent in extents)
        return f'<a><entity TYPE="ORG">{mentions}</entity></a>'

    sgm = "<DOC>\n<DOCID> N1 </DOCID>\n<HEADLINE>\nBo &AMP; Co sells\n</HEADLINE>\n<TEXT>\n<P>\n"
    sgm += "Boats of Ask\n&AMP; Co are\nold.\n</P>\n<POSTER> Bo </POSTER>\nThey sank\n</P>\n</TEXT>\n</DOC>\n"
    raw = "\n N1 \n\nBo &AMP; Co sells\n\n\n\nBoats of Ask\n&AMP; Co are\nold.\n\n Bo \nThey sank\n\n\n\n"
    files = {"English/nw/fp1/N1": (sgm, apf(raw, "Ask")), "Arabic/nw/adj/A1": ("<DOC>x</DOC>", apf("x", "x"))}
    files["English/nw/fp1/N2"] = (sgm, apf(raw, "Ask"))  # a first annotation, which was not adjudicated
    files["English/nw/timex2norm/N1"] = (sgm, apf(raw, "Ask\n&AMP; Co", "Bo &AMP; Co"))
    for name, (text, xml) in files.items():
        write_files(tmp_path, **{f"{name}.sgm": text, f"{name}.apf.xml": xml})
    (tmp_path / "English/nw/timex2norm/._N1.apf.xml").write_bytes(b"\0\5\x16\7")  # of macOS
    report = ReadReport(repair=True)
    documents = list(READERS["ace"](tmp_path, report))
    assert [name for name, _ in documents] == ["N1"]
    first, second, third = documents[0][1]
    assert (" ".join(first.tokens), shown(first)) == ("Boats of Ask & Co are old .", [("ORG", "Ask & Co")])
    assert (second.tokens, third.tokens) == (("Bo",), ("They", "sank"))
    assert report.notes == {"mention outside the element TEXT left out": 1}


def test_share_of_both_years_is_discontinuous(tmp_path: Path) -> None:
    text = "Left atrium is dilated . No stroke ."
    old = "n1.txt||Disease_Disorder||C1||0||11||15||22\nn1.txt||Disease_Disorder||CUI-less||28||34\n"
    new = "n1.text|0-11,15-22|C1|no|NULL\nn1.text|28-34|CUI-less|yes|NULL\n"
    for name, lines in (("2013", old), ("2014", new)):
        folder = write_files(tmp_path / name, texts__n1_DOT_txt=text, pipes__n1_DOT_pipe=lines)
        first, second = sentences_of("share", folder)
        assert shown(first) == [("Disorder", "Left atrium dilated")]
        assert shown(second) == [("Disorder", "stroke")]
    write_files(folder, pipes__n1_DOT_pipe="", pipes__train_DOT_pipe=new)
    assert len(sentences_of("share", folder)[0].mentions) == 1
    write_files(folder, pipes__n2_DOT_pipe="n2.txt||Disease_Disorder||C1||0||4\n")
    with pytest.raises(InputError, match=r"n2\.pipe:1: no text n2"):
        sentences_of("share", folder)
    for line in ("n1", "n1.txt|0-x,15-22|C1", "n1.txt|0-11,|C1", f"n1.txt|0-{'9' * 5000}|C1", "n1.txt||D||C1||0"):
        write_files(folder, pipes__n2_DOT_pipe=f"\n{line}\n")
        with pytest.raises(InputError, match=r"n2\.pipe:2: .* is no mention"):
            sentences_of("share", folder)


def test_gold_of_share_2013_has_the_names_of_the_texts(tmp_path: Path) -> None:
    write_files(tmp_path, ALLREPORTS__n1_DOT_txt="No stroke .", ALLREPORTS__n2_DOT_txt="Sinus rhythm .")
    for year in ("2011", "2012"):
        line = "n1.txt||Disease_Disorder||C1||3||9\n"
        write_files(tmp_path, **{f"Gold_SN{year}/n1.txt": line, f"Gold_SN{year}/n2.txt": ""})
    report = ReadReport(repair=True)
    first, second = (some[0] for _, some in READERS["share"](tmp_path, report))
    assert (shown(first), shown(second)) == ([("Disorder", "stroke")], [])
    assert report.notes == {"document without a mention: check that its annotations were read": 1}
    write_files(tmp_path / "texts", n1_DOT_txt="No stroke .")
    with pytest.raises(InputError, match=r"texts: no file that ends in \.pipe or \.pipe\.txt"):
        sentences_of("share", tmp_path / "texts")


def test_different_texts_of_one_name_are_refused(tmp_path: Path) -> None:
    folder = write_files(tmp_path, a__n1_DOT_txt="pain", b__n1_DOT_txt="pain", n1_DOT_pipe="n1|0-4|C1\n")
    assert len(sentences_of("share", folder)) == 1
    write_files(folder, b__n1_DOT_txt="no pain")
    with pytest.raises(InputError, match=r"b.n1\.txt: is another text than .*a.n1\.txt, of the same name"):
        sentences_of("share", folder)


def test_cadec_keeps_reactions(tmp_path: Path) -> None:
    notes = "T1\tADR 14 18;0 4\tpain knee\n#1\tAnnotatorNotes T1\tx\nT2\tDrug 24 31\tLipitor\n"
    write_files(tmp_path, text__A_DOT_1_DOT_txt="knee and back pain from Lipitor . Bad .\nNever")
    write_files(tmp_path, original__A_DOT_1_DOT_ann=notes)
    sentence, other = sentences_of("cadec", tmp_path)  # a line each
    assert (shown(sentence), other.tokens) == ([("ADR", "knee pain")], ("Never",))


def test_genia_has_five_types_nested(tmp_path: Path) -> None:
    xml = """<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE set SYSTEM "gpml.dtd"><set><article>
    <articleinfo><bibliomisc>MEDLINE:95369245</bibliomisc></articleinfo>
    <title><sentence><cons lex="a" sem="G#DNA_domain_or_region"><cons lex="b" sem="G#protein_molecule">IL-2</cons>
    gene</cons> in <cons sem="G#cell_line">Jurkat</cons> <cons sem="G#other_name">activation</cons>.</sentence></title>
    <abstract><sentence><cons lex="(AND x y)" sem="(AND G#protein_molecule G#protein_molecule)"><cons lex="x*">c-</cons>
    and <cons lex="y*">v-rel</cons></cons> bind.</sentence></abstract></article></set>"""
    write_files(tmp_path, GENIAcorpus3_DOT_02_DOT_xml=xml)
    first, second = sentences_of("genia", tmp_path)
    assert shown(first) == [("DNA", "IL-2 gene"), ("cell_line", "Jurkat"), ("protein", "IL-2")]
    assert (shown(second), first.id) == ([], "95369245:1")
    deep = f'{"<cons>" * 3000}a <cons sem="G#DNA_x">b</cons>{"</cons>" * 3000} c'
    write_files(tmp_path, GENIAcorpus3_DOT_02_DOT_xml=f"<set><article><sentence>{deep}</sentence></article></set>")
    [sentence] = sentences_of("genia", tmp_path)
    assert (sentence.tokens, shown(sentence)) == (("a", "b", "c"), [("DNA", "b")])
    write_files(tmp_path, GENIAcorpus3_DOT_02_DOT_xml='<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
    with pytest.raises(InputError, match="declares XML entities"):
        sentences_of("genia", tmp_path)
    for xml, message in (
        ('<?xml version="1.0" encoding="odd"?><set/>', r"is no XML \(unknown encoding: odd\); take the file as"),
        ('<?xml version="1.0" encoding="shift_jis"?><set/>', "is no XML .multi-byte encodings"),
        ("<set>", r"is no XML \(no element found.*take the file as it was distributed"),
        ('<set><article><sentence>a <cons sem="G#DNA"/> b</sentence></article></set>', ":1: mention DNA .2-2. is"),
    ):
        write_files(tmp_path, GENIAcorpus3_DOT_02_DOT_xml=xml)
        with pytest.raises(InputError, match=rf"GENIAcorpus3.02.xml: {message}"):
            sentences_of("genia", tmp_path)


def test_genia_with_parts_of_speech_is_read(tmp_path: Path) -> None:
    words = '<cons sem="G#DNA_x"><w c="NN">IL-2</w> <w c="NN">gene</w></cons> <w c="VBZ">acts</w>'
    xml = f"<set><article><sentence>{words}</sentence></article></set>"
    [sentence] = sentences_of("genia", write_files(tmp_path, GENIAcorpus3_DOT_02_DOT_merged_DOT_xml=xml))
    assert (sentence.tokens, shown(sentence)) == (("IL-2", "gene", "acts"), [("DNA", "IL-2 gene")])


def test_ontonotes_has_names_in_brackets(tmp_path: Path) -> None:
    def row(i: int, word: str, name: str) -> str:
        return f"bc/x/00/x_0001 0 {i} {word} NN (TOP* - - - speaker {name} * -"

    rows = [
        row(0, "Ada", "(PERSON)"),
        row(1, "of", "*"),
        row(2, "New", "(GPE*"),
        row(3, "York", "*)"),
        row(4, "/.", "*"),
    ]
    lines = ["#begin document (bc/x/00/x_0001); part 000", *rows, "", row(0, "Yes", "*"), "", "#end document", ""]
    write_files(tmp_path, bc__x_DOT_v4_gold_conll="\n".join(lines))
    first, second = sentences_of("ontonotes", tmp_path)
    assert (first.tokens[-1], shown(first)) == (".", [("GPE", "New York"), ("PERSON", "Ada")])
    assert (second.tokens, second.id) == (("Yes",), "bc/x/00/x_0001:2")
    bible = ["#begin document (pt/nt/40/nt_4001); part 000", row(0, "Joseph", "*"), ""]  # has no names
    write_files(tmp_path, bc__x_DOT_v4_gold_conll="\n".join([*lines, *bible]))
    write_files(tmp_path, bc__x_DOT_v4_auto_conll=row(0, "Yes", "(PERSON)") + "\n")  # predicted
    assert len(sentences_of("ontonotes", tmp_path)) == 2
    write_files(tmp_path, bc__y_DOT_v4_gold_conll="a b c\n")
    with pytest.raises(InputError, match=r"y\.v4_gold_conll:1: 3 columns; name files of CoNLL 2012"):
        sentences_of("ontonotes", tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("(PERSON*", ":2: the name PERSON has no end in its sentence"),
        ("*)", ":2: a name ends that did not begin"),
        ("B-PERSON", ":2: 'B-PERSON' has no brackets of names"),
    ],
)
def test_brackets_of_ontonotes_must_match(name: str, message: str, tmp_path: Path) -> None:
    rows = ["#begin document (bc/x/00/x_0001); part 000", f"bc/x 0 0 Ada NN (TOP* - - - speaker {name} * -", ""]
    write_files(tmp_path, bc__x_DOT_v4_gold_conll="\n".join(rows))
    with pytest.raises(InputError, match=f"{message}; correct the brackets"):
        sentences_of("ontonotes", tmp_path)


@pytest.mark.parametrize("place", ["x", "9" * 5000])
def test_places_of_ace_are_numbers(place: str, tmp_path: Path) -> None:
    extent = f'<extent><charseq START="{place}" END="2">Bob</charseq></extent>'
    xml = f'<a><entity TYPE="PER"><entity_mention>{extent}</entity_mention></entity></a>'
    write_files(tmp_path, a_DOT_sgm="<DOC>Bob ran.</DOC>", a_DOT_apf_DOT_xml=xml)
    with pytest.raises(InputError, match=r"a\.apf\.xml: the mention 'Bob' has no numbers as START and END"):
        sentences_of("ace", tmp_path)


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    for reader in ("ace", "genia", "ontonotes", "share"):
        with pytest.raises(InputError, match="no file that ends in"):
            sentences_of(reader, tmp_path)
