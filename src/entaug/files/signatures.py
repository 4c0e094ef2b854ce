"""What a file is, by its first bytes: kinds of files that readers of other formats refuse, or would misread."""

from __future__ import annotations

import re
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of file: what it is, what to do with it, and the format that reads it, if there is one."""

    name: str
    remedy: str
    format: str = ""


# What may come before the first element; atomic, because nested repetitions would be tried in exponentially many ways.
_XML = rb"(?s)(?>(?:<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>|\s+))*+"
_RECORDS = 'write each text as {"text": ..., "label": [[start, end, label], ...]}, and pass `format="doccano"`'
# In order: the more specific pattern of two that match comes first.
_KINDS: tuple[tuple[bytes, Kind], ...] = (
    (rb"\x1f\x8b", Kind("gzip", "let its name end in .gz, or unpack it: gunzip")),
    (rb"PAR1\x15", Kind("Parquet", "let its name end in .parquet, or pass `format='parquet'`", "parquet")),
    (rb"ARROW1\0|\xff\xff\xff\xff", Kind("an Arrow table", "name the folder of the data set: `format='datasets'`")),
    (rb"(?s)PK\x03\x04.*?word/", Kind("a Word document (.docx)", "save it as plain text, UTF-8")),
    (rb"(?s)PK\x03\x04.*?xl/", Kind("an Excel workbook (.xlsx)", "let its name end in .xlsx, or save it as CSV")),
    (
        rb"(?s)PK\x03\x04.{26}mimetypeapplication/vnd\.oasis",
        Kind("an OpenDocument file", "save it as plain text or CSV"),
    ),
    (rb"(?s)PK\x03\x04.*?\.xmi", Kind("a zip archive of UIMA CAS", "pass `format='cas'`", "cas")),
    (rb"PK\x03\x04", Kind("a zip archive", "unpack it", "cas")),  # which may have the XMI far behind
    (rb"\xd0\xcf\x11\xe0", Kind("a file of old Office (.doc or .xls)", "save it as plain text or CSV")),
    (rb"%PDF-", Kind("a PDF", "extract its text first: pdftotext")),
    (rb"\{\\rtf", Kind("Rich Text (RTF)", "save it as plain text, UTF-8")),
    (rb"SQLite format 3\0", Kind("an SQLite database", "export it first; of Prodigy: prodigy db-out NAME")),
    (rb"\x80[\x02-\x05]", Kind("a pickle of Python", "save it as JSON lines")),
    (rb"x\x9c", Kind("spaCy's DocBin, or other data of zlib", "pass `format='docbin'`", "docbin")),
    (rb"#FORMAT=WebAnno TSV 3", Kind("WebAnno TSV 3, as of INCEpTION", "pass `format='webanno'`", "webanno")),
    (
        rb"#FORMAT=WebAnno|# (?:webanno|de\.tudarmstadt)\.",
        Kind("WebAnno TSV of an old version", "export it as WebAnno TSV 3, and pass `format='webanno'`"),
    ),
    (rb"[^\s|]+\|t\|", Kind("PubTator", "pass `format='pubtator'`", "pubtator")),
    (_XML + rb"<xmi:XMI\b", Kind("UIMA CAS XMI", "pass `format='cas'`", "cas")),
    (
        _XML + rb"<typeSystemDescription\b",
        Kind("a type system of UIMA", "name the .xmi of the text, and pass `format='cas'`"),
    ),
    (_XML + rb"<collection\s*>", Kind("BioC XML", "pass `format='bioc'`", "bioc")),
    (_XML + rb"<GateDocument\b", Kind("GATE XML", "convert it to brat, BioC or CoNLL first")),
    (_XML + rb"<(?:\w+:)?TEI\b", Kind("TEI XML", "convert it to brat, BioC or CoNLL first")),
    (_XML + rb"<(?:\w+:)?FoLiA\b", Kind("FoLiA XML", "convert it to CoNLL first: folia2columns")),
    (_XML + rb"<source_file\b", Kind("ACE APF XML", "convert it to brat or CoNLL first")),
    (
        rb"(?i)<!doctype html|<html[^>\t]*>[ \t]*(?:<|\r?\n)",
        Kind("HTML", "save its text as plain text, or fetch the file itself"),
    ),
    (rb"<\?xml\b", Kind("XML", "convert it to a format of `entaug list formats` first")),
    (rb'\{\s*"%TYPES"', Kind("UIMA CAS JSON", "pass `format='cas'`", "cas")),
    (rb'\{\s*"rasa_nlu_data"', Kind("training data of Rasa", _RECORDS)),
    (rb"(?:#.*\n|\s+)*+(?:version:.*\n\s*)?nlu:[ \t]*\r?\n", Kind("training data of Rasa (YAML)", _RECORDS)),
    (rb"## (?:intent|synonym|lookup):", Kind("training data of Rasa (Markdown)", _RECORDS)),
    (rb'(?s)\{\s*"(?:projectFileVersion|stringIndexType)"', Kind("a project of Azure AI Language", _RECORDS)),
    (rb'(?s)\{\s*"annotatable"', Kind("ann.json of tagtog", _RECORDS)),
    (rb'(?s)\{\s*"examples"\s*:\s*\[\s*\{\s*"content"', Kind("an export of LightTag", _RECORDS)),
    (rb'(?s)\{\s*"content".*?"points"\s*:\s*\[', Kind("an export of Dataturks", _RECORDS)),
    (
        rb'\{\s*"classes"\s*:[^{}]*"annotations"\s*:\s*\[\s*(?:null|\[)',
        Kind("an export of NER Annotator for spaCy", "save its list 'annotations' alone, without any null in it"),
    ),
    (
        rb'(?s)\{(?=.*?"result"\s*:\s*\[)\s*"(?:id|data|annotations|result)"(?:(?!"tokens").)*?"(?:from_name|was_cancelled)"',
        Kind("a task of Label Studio without an array around it", "export the project as JSON", "label-studio"),
    ),
    (rb'\{\s*"cells"\s*:', Kind("a Jupyter notebook", "name the file of the corpus")),
    (
        rb"(?:#.*\n|\s+)*+\[(?:paths|system|nlp|corpora|training)\][ \t]*\r?\n",
        Kind("a configuration of spaCy", "name the corpus: the .spacy or .json that it trains on"),
    ),
)


def identify(beginning: bytes) -> Kind | None:
    """The kind of file that begins with these bytes; None if unknown."""
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    return next((kind for pattern, kind in _KINDS if re.match(pattern, text)), None)
