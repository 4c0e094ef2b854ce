"""What formats say of faults, losses and what stands in their way: one clear line each, with a remedy that works."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import entaug
from entaug.commands.main import main
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, LossError, OutputError, ParameterError
from entaug.formats.base import NO_MENTION, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.files import FORMATS, find_format, open_file, target
from entaug.methods import create_augmenter
from entaug.methods.augment import augment_file
from helpers.command_line import fails

ADA = Sentence(["Ada", "sang", "."], [Mention("PER", [(0, 1)])])
BO = Sentence(["Bo", "left", "."], [Mention("PER", [(0, 1)])])


def put(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


# ------------------------------------------------------------------------------------------ folders and what is in them


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two files of one sentence each."""
    for name, sentence in (("a", ADA), ("b", BO)):
        entaug.write([sentence], tmp_path / f"{name}.jsonl", "jsonl")
    return tmp_path / "a.jsonl", tmp_path / "b.jsonl"


NEEDED = {"brat": "spacy", "datasets": "pyarrow", "i2b2": "entaug"}


@pytest.mark.parametrize("name", NEEDED)
def test_force_replaces_a_folder_that_the_format_wrote(tmp_path: Path, pair: tuple[Path, Path], name: str) -> None:
    pytest.importorskip(NEEDED[name])
    out, fresh = tmp_path / "out", tmp_path / "fresh"
    entaug.convert(pair[0], out, to_format=name, allow_loss=["all"])
    old = files(out)
    with pytest.raises(OutputError, match="`force=True` to replace"):
        entaug.convert(pair[1], out, to_format=name, allow_loss=["all"])
    assert files(out) == old
    entaug.convert(pair[1], fresh, to_format=name, allow_loss=["all"])
    entaug.convert(pair[1], out, to_format=name, allow_loss=["all"], force=True)
    assert files(out) == files(fresh) != old
    nothing = create_augmenter("sis", p=0.0, copies=1)
    augment_file(pair[0], out, nothing, to_format=name, force=True, allow_empty=True)
    assert [s.tokens for s in entaug.read(out)] == [ADA.tokens]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl", "fresh", "out"], "nothing is left"


NOT_JSON = {
    "brat",
    "docbin",
    "parquet",
    "datasets",
    "conll",
    "bartner",
    "i2b2",
    "pubtator",
    "table",
    "inline",
    "webanno",
}
OTHERS = {
    "brat": ["notes.md", "more.txt", "sub/x.ann", ".git/config", "empty/"],
    "datasets": ["train.csv", "sub/data.arrow"],
    "i2b2": ["notes.md", "more.txt", "sub/x.con", ".git/config", "empty/"],
}


@pytest.mark.parametrize(("name", "other"), [(name, other) for name, found in OTHERS.items() for other in found])
def test_no_other_folder_is_replaced(tmp_path: Path, pair: tuple[Path, Path], name: str, other: str) -> None:
    pytest.importorskip(NEEDED[name])
    out = tmp_path / "out"
    entaug.convert(pair[0], out, to_format=name, allow_loss=["all"])
    (out / other).parent.mkdir(exist_ok=True)
    if other.endswith("/"):
        (out / other).mkdir()
    else:
        (out / other).write_text("mine")
    old = files(out)
    for run in (
        lambda: entaug.convert(pair[1], out, to_format=name, allow_loss=["all"], force=True),
        lambda: augment_file(pair[1], out, create_augmenter("mr"), to_format=name, force=True),
        lambda: target(out, name).write([BO], force=True),
    ):
        with pytest.raises(OutputError, match=r"holds more than .* and is not replaced; name a new or empty one"):
            run()
    assert files(out) == old
    assert (out / other).exists()


def whole(name: str) -> BufferedFormat:
    found = find_format(name)
    assert isinstance(found, BufferedFormat)
    return found


def test_what_a_folder_links_to_is_never_replaced(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    pytest.importorskip("spacy")
    out = tmp_path / "out"
    entaug.convert(pair[0], out, to_format="brat", allow_loss=["all"])
    shutil.move(out / "000001.txt", tmp_path / "mine.txt")
    (out / "000001.txt").symlink_to(tmp_path / "mine.txt")
    with pytest.raises(OutputError, match="is not replaced"):
        entaug.convert(pair[1], out, to_format="brat", allow_loss=["all"], force=True)
    assert (tmp_path / "mine.txt").read_text() == "Ada sang."


def test_a_folder_is_there_until_the_new_one_is_complete(
    tmp_path: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("spacy")
    out = tmp_path / "out"
    entaug.convert(pair[0], out, to_format="brat", allow_loss=["all"])
    old = files(out)
    bad = Sentence(["x"], [Mention("two words", [(0, 1)])])
    with pytest.raises(LossError, match="rename it"):
        target(out, "brat").write([BO, bad], force=True)
    assert files(out) == old
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self.name == "out" and Path(target).name == "out" and self.parent != tmp_path and self.name != "replaced":
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OutputError, match="No space left"):
        target(out, "brat").write([BO], force=True)
    assert files(out) == old
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_input_is_never_in_a_folder_that_is_replaced(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    pytest.importorskip("spacy")
    out = tmp_path / "out"
    entaug.convert(pair[0], out, to_format="brat", allow_loss=["all"])
    with pytest.raises(OutputError, match="contains an input; inputs are never overwritten"):
        entaug.convert(out / "000001.ann", out, to_format="brat", allow_loss=["all"], force=True)
    with pytest.raises(OutputError, match="is an input"):
        entaug.convert(out, out, to_format="brat", allow_loss=["all"], force=True)


def test_subsets_replace_their_folders(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    entaug.write([ADA, BO, ADA.with_(id="x")], tmp_path / "in", "brat")
    for _ in range(2):
        entaug.subset(tmp_path / "in", tmp_path / "parts", [1], force=True)
    with pytest.raises(OutputError, match="holds something"):
        entaug.subset(tmp_path / "in", tmp_path / "parts", [1])
    (tmp_path / "parts" / "in.1" / "mine.md").write_text("")
    with pytest.raises(OutputError, match="is not replaced"):
        entaug.subset(tmp_path / "in", tmp_path / "parts", [1], force=True)


def test_a_name_with_a_slash_is_that_of_a_folder(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    with pytest.raises(
        OutputError, match="is the name of a folder, but CoNLL columns is written as a file; name a file"
    ):
        entaug.convert(pair[0], f"{tmp_path}/od/", to_format="conll")
    with pytest.raises(OutputError, match="is the name of a folder"):
        augment_file(pair[0], f"{tmp_path}/od/", create_augmenter("mr"))
    assert not (tmp_path / "od").exists()
    pytest.importorskip("spacy")
    entaug.convert(pair[0], f"{tmp_path}/od/", to_format="brat", allow_loss=["all"])
    assert (tmp_path / "od" / "000001.ann").is_file()


# -------------------------------------------------------------------------------------------- every fault of a document

# By hand: Ada 0-3, "sang" 4-8, "." 8-9.
PLACES = [[0, 3, "PER"], [0, 2, "A"], [5, 8, "B"], [7, 70, "C"], [3, 4, "D"], [0, 3, "PER"]]
WRONG = [
    "mention A 'Ad' (0-2) begins or ends within the token 'Ada'",
    "mention B 'ang' (5-8) begins or ends within the token 'sang'",
    "mention C (7-70) is empty or outside the text of 9 characters",
    "mention D (3-4) is white space alone",
    "mention PER 'Ada' (0-3) is given twice",
]


@pytest.mark.parametrize("name", ["doccano", "prodigy", "label-studio", "spacy-json"])
def test_check_names_every_faulty_mention(tmp_path: Path, name: str) -> None:
    pytest.importorskip("spacy")
    value: dict[str, Any] = {"doccano": {"text": "Ada sang.", "label": PLACES}}
    value["prodigy"] = {"text": "Ada sang.", "spans": [{"start": a, "end": b, "label": n} for a, b, n in PLACES]}
    regions = [{"value": {"start": a, "end": b, "labels": [n]}, "type": "labels"} for a, b, n in PLACES]
    value["label-studio"] = {"data": {"text": "Ada sang."}, "annotations": [{"result": regions}]}
    value["spacy-json"] = ["Ada sang.", {"entities": PLACES}]
    array = name in ("label-studio", "spacy-json")
    path = put(tmp_path / "a.json", [value[name]] if array else value[name])
    faults = entaug.check(path, from_format=name).errors
    assert len(faults) == len(WRONG)
    where = {"label-studio": "task 1: ", "spacy-json": "record 1: "}.get(name)
    start = f"{path}: {where}" if where else f"{path}:1: "
    assert {fault.removeprefix(start).partition("; ")[0] for fault in faults} == set(WRONG)
    with pytest.raises(InputError, match="mention A 'Ad'"):
        entaug.read(path, name)


def test_check_names_every_faulty_mention_of_brat_with_its_line(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    (tmp_path / "a.txt").write_text("Ada sang.")
    (tmp_path / "a.ann").write_text("T1\tPER 0 3\tAda\nT2\tA 0 2\tAd\nR1\tX Arg1:T1 Arg2:T2\nT3\tB 5 8\tang\n")
    faults = entaug.check(tmp_path).errors
    assert [fault.partition(" 'A")[0].partition(" 'a")[0] for fault in faults] == [
        f"{tmp_path}/a.ann:2: mention A",
        f"{tmp_path}/a.ann:4: mention B",
    ]


def test_check_names_every_region_with_other_words(tmp_path: Path) -> None:
    said = [{"value": {"start": a, "end": b, "text": "Bo", "labels": ["X"]}} for a, b in ((0, 3), (4, 8))]
    path = put(tmp_path / "a.json", [{"data": {"text": "Ada sang."}, "annotations": [{"result": said}]}])
    faults = entaug.check(path).errors
    assert [fault.partition("text has ")[2].partition(" and")[0] for fault in faults] == ["'Ada'", "'sang'"]


# ---------------------------------------------------------------------------------------------------- losses and notes


def test_augment_and_subset_say_what_the_output_has_no_place_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = {"tokens": ["Ada", "sang"], "entities": [{"start": 0, "end": 1, "type": "PER"}], "source": "x"}
    path = put(tmp_path / "a.jsonl", source | {"id": "1"}, source | {"tokens": ["Bo", "left"], "id": "2"})
    out = tmp_path / "out.conll"
    summary = augment_file(path, out, create_augmenter("mr", copies=1))
    assert summary.lost == {"field 'source'": 2}, "ids are written as comments"
    for name in ("-", str(tmp_path / "two.conll")):
        assert main(["augment", str(path), "-m", "mr", "-o", name, "--to", "conll"]) == 0
        said = capsys.readouterr().err
        assert "note: dropped, because the output format cannot store it: field 'source' (2 times)" in said
    assert not augment_file(path, tmp_path / "out.jsonl", create_augmenter("mr", copies=1)).lost
    assert not entaug.subset(path, tmp_path / "s", [1]).lost
    pytest.importorskip("spacy")
    # A field named like the tokens that are written is no list of tokens, so it stays a field, and has no place.
    text = put(tmp_path / "d.jsonl", {"text": "Ada sang.", "label": [[0, 3, "PER"]], "tokens": 3})
    assert entaug.subset(text, tmp_path / "s", [1], with_rest=True).lost == {"field 'tokens'": 1}
    assert main(["subset", str(text), "--sizes", "1", "-o", str(tmp_path / "t")]) == 0
    assert "note: dropped, because the output format cannot store it: field 'tokens' (once)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["doccano", "prodigy", "label-studio", "spacy-json", "brat", "jsonl"])
@pytest.mark.parametrize("other", [{"method": "mr"}, "x", 3, None])
def test_a_field_that_is_named_like_one_of_ours(tmp_path: Path, name: str, other: Any) -> None:
    pytest.importorskip("spacy")
    made = ADA.with_(meta={"_before": other}, spaces=(" ", "", ""))
    entaug.write([made], tmp_path / "out", name)
    assert [s.mention_tokens(s.mentions[0]) for s in entaug.read(tmp_path / "out", name)] == [("Ada",)]
    assert [s.tokens for s in entaug.read(tmp_path / "out", name)] == [ADA.tokens]


@pytest.mark.parametrize("name", ["w2ner", "gliner"])
def test_a_field_with_another_text_than_that_of_the_words_is_a_loss(name: str) -> None:
    format_ = find_format(name)
    for text, lost in (("Ada sang", []), ("Ada  sang", ["text"]), ("Bo", ["text"])):
        sentence = Sentence(["Ada", "sang"], spaces=(" ", ""), meta={"text": text})
        assert format_.lost(sentence, format_.dialect()) == lost
        assert format_.lost(sentence.with_(spaces=None), format_.dialect()) == []


def test_notes_of_tokens_of_another_text(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    records = [
        {"text": "Ada sang.", "label": [], "tokens": tokens} for tokens in (["Ada", "slept"], ["Ada", "sang."], 3)
    ]
    reading = ReadReport()
    found = list(open_file(put(tmp_path / "a.jsonl", *records), "doccano").sentences(reading))
    assert [s.tokens for s in found] == [("Ada", "sang", "."), ("Ada", "sang."), ("Ada", "sang", ".")]
    assert reading.notes == {"tokens that are not those of the text: tokenised anew": 1, NO_MENTION: 1}, (
        "3 is a field of somebody's"
    )


def test_a_region_without_a_label_is_counted(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    region = {"type": "labels", "from_name": "label", "to_name": "text", "id": "r"}
    values = [{"start": 0, "end": 3, "text": "Ada", "labels": labels} for labels in ([], ["PER"])]
    regions = [region | {"value": value, "id": f"r{i}"} for i, value in enumerate(values)]
    path = put(tmp_path / "a.json", [{"data": {"text": "Ada sang."}, "annotations": [{"result": regions}]}])
    reading = ReadReport()
    [sentence] = open_file(path).sentences(reading)
    assert [m.label for m in sentence.mentions] == ["PER"]
    assert reading.notes == {"region without a label is no mention": 1}
    [sentence] = entaug.read(path)
    entaug.write([sentence], tmp_path / "c.json", like=path)
    kept = json.loads((tmp_path / "c.json").read_text())[0]["annotations"][0]["result"]
    assert sorted(one["id"] for one in kept) == ["r0", "r1"], "it is written back all the same"


# ----------------------------------------------------------------------------------------------- what a file really is


@pytest.mark.parametrize("name", ["label-studio", "w2ner", "gliner", "spacy-json"])
def test_arrays_are_known_by_what_they_hold(tmp_path: Path, name: str) -> None:
    pytest.importorskip("spacy")
    entaug.write([ADA], tmp_path / "a.json", name)
    for ending in (".jsonl", ".ndjson", ".json"):
        path = tmp_path / f"b{ending}"
        path.write_bytes((tmp_path / "a.json").read_bytes())
        assert open_file(path).format.name == name
        assert [s.tokens for s in entaug.read(path)] == [ADA.tokens]


@pytest.mark.parametrize("name", sorted(set(FORMATS) - NOT_JSON))
@pytest.mark.parametrize("content", ["[]\n", " [ ] "])
def test_an_empty_array_is_an_empty_corpus(tmp_path: Path, name: str, content: str) -> None:
    pytest.importorskip("spacy")
    (tmp_path / "a.json").write_text(content)
    for given in (name, None):
        with pytest.raises(InputError, match=r"a\.json(:1)?: no (sentence|labelled text) in it; give"):
            entaug.read(tmp_path / "a.json", given)
    (tmp_path / "b.json").write_text("")
    with pytest.raises(InputError, match=r"b\.json: no (sentence|labelled text) in it; give"):
        entaug.read(tmp_path / "b.json", name)


@pytest.mark.parametrize("name", sorted(set(FORMATS) - NOT_JSON))
@pytest.mark.parametrize("deep", ["[" * 5000, "[" * 5000 + "]" * 5000, '{"a":' * 5000 + "1" + "}" * 5000])
def test_json_that_is_too_deep_is_not_mended_by_lines(tmp_path: Path, name: str, deep: str) -> None:
    pytest.importorskip("spacy")
    (tmp_path / "a.json").write_text(deep + "\n")
    for given in (name, None):
        with pytest.raises(InputError) as caught:
            entaug.read(tmp_path / "a.json", given)
        assert str(caught.value).endswith(
            "not JSON that can be read (nested too deep); check that it is the right file"
        )


@pytest.mark.parametrize(
    "name", ["jsonl", "doccano", "gliner", "label-studio", "spacy-json", "w2ner", "bartner-nested"]
)
def test_large_numbers_are_read_alike(tmp_path: Path, name: str) -> None:
    pytest.importorskip("spacy")
    of_tasks = {"data": {"text": "Ada", "n": 12345678901234567890123}, "annotations": [{"result": []}]}
    record: Any = {"text": "Ada", "tokens": ["Ada"], "label": [], "n": 12345678901234567890123}
    record |= {"tokenized_text": ["Ada"], "ner": [], "sentence": ["Ada"], "sentences": [["Ada"]], "ners": [[]]}
    record = {"label-studio": of_tasks, "spacy-json": ["Ada", {"entities": [], "n": record["n"]}]}.get(name, record)
    array = name in ("label-studio", "spacy-json", "w2ner", "gliner")
    path = put(tmp_path / "a.json", [record] if array else record)
    [sentence] = entaug.read(path, name)
    assert sentence.fields["n"] == 12345678901234567890123
    path.write_text(path.read_text().replace("12345678901234567890123", "1" * 5000))
    with pytest.raises(InputError, match=r"not JSON that can be read \(too large a number\); check that"):
        entaug.read(path, name)


JSON = [
    '{"tokens": ["a"], "entities": []}\n',
    '[{"a": 1}]\n',
    '[\n {"a": 1}\n]\n',
    '{\n  "a": 1\n}\n',
    "[[1, 2]]\n",
    "[]\n",
]


@pytest.mark.parametrize("content", JSON)
def test_json_under_the_name_of_columns(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.conll").write_text(content)
    with pytest.raises(InputError, match=r"no column holds tags .*; name .* another format with `format`"):
        entaug.read(tmp_path / "a.conll")


@pytest.mark.parametrize("record", ['{"tokens":[]}', '{"tokens":[""]}', '{"tokens":["a",null]}'])
def test_a_fault_of_a_sentence_has_a_remedy(tmp_path: Path, record: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"tokens":["a"]}\n' + record)
    with pytest.raises(InputError, match=r"a\.jsonl:2: .*token.*; correct it, or leave it out$"):
        entaug.read(tmp_path / "a.jsonl")


def test_an_empty_path_is_not_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("Ada")
    (tmp_path / "a.ann").write_text("T1\tPER 0 3\tAda\n")
    monkeypatch.chdir(tmp_path)
    for read in (entaug.read, entaug.stream, entaug.check):
        with pytest.raises(EntaugError, match="a path is empty; name a file or a folder"):
            read("")  # as a shell makes of "$FILE" where it is not set
    assert len(entaug.read(".")) == 1


def test_gzip_without_its_extension_has_a_remedy_for_streams_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = io.TextIOWrapper(io.BytesIO(gzip.compress(b"Ada B-PER\n")))
    monkeypatch.setattr("sys.stdin", packed)
    assert "<stdin>: is gzip, not CoNLL columns; let its name end in .gz, or unpack it: gunzip" in fails(
        capsys, 2, "check", "-"
    )


def test_values_with_commas(tmp_path: Path) -> None:
    for text in ("token,tag\nAda,B-PER\nsang,O\n", "Ada;B-PER\nsang;O\n"):
        (tmp_path / "a.conll").write_text(text)
        with pytest.raises(InputError, match=r"no column holds tags .*; name .* another format with `format`"):
            entaug.read(tmp_path / "a.conll")
        (tmp_path / "b.csv").write_text(text)
        for path, name in ((tmp_path / "b.csv", None), (tmp_path / "a.conll", "table")):
            assert entaug.read(path, name)[0].mentions == (Mention("PER", [(0, 1)]),), "the remedy works"
    (tmp_path / "c.conll").write_text("Ada, here\nsang, there\n")
    with pytest.raises(InputError, match="name it with `tag_column`"):
        entaug.read(tmp_path / "c.conll")


def test_nul_characters_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_bytes(b"Ada B-PER\n\n" + b"x O\n\n" * 3 + b"sa\0ng O\n")
    (tmp_path / "b.txt").write_bytes(b"Ada sang\n0,0 PER\n\nsa\0ng\n\n\n")
    for path, name, line in ((tmp_path / "a.conll", "conll", 9), (tmp_path / "b.txt", "bartner", 4)):
        with pytest.raises(InputError, match=rf"{path.name}:{line}: holds a NUL character; .* tr -d '\\0'"):
            entaug.read(path, name)
        path.write_bytes(path.read_bytes().replace(b"\0", b""))
        assert [s.tokens for s in entaug.read(path, name)][-1] == ("sang",), "the remedy works"
        with pytest.raises(LossError, match=r"'sa\\x00ng' holds a NUL character"):
            entaug.write([Sentence(["sa\0ng"])], tmp_path / "out", name)


def test_what_brat_says_of_links_and_pipes(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    folder = tmp_path / "in"
    entaug.write([ADA.with_(id="a")], folder, "brat")
    (folder / "b.ann").write_text("")
    (folder / "b.txt").symlink_to("nowhere")
    assert entaug.check(folder).errors == [
        f"{folder}/b.txt: is a link to 'nowhere', which does not exist; repair the link, or remove it"
    ]
    (folder / "b.txt").unlink()
    told = f"{folder}/b.ann: no b.txt beside it, or it is a link out of the folder; "
    told += "put the text there, or remove the file"
    os.mkfifo(folder / "b.txt")
    assert entaug.check(folder).errors == [told]
    (folder / "b.txt").unlink()
    (tmp_path / "b.txt").write_text("Bo")
    (folder / "b.txt").symlink_to(tmp_path / "b.txt")
    assert entaug.check(folder).errors == [told]
    (tmp_path / "c.conll").symlink_to("gone")
    with pytest.raises(InputError, match="is a link to 'gone', which does not exist"):
        entaug.read(tmp_path / "c.conll")


@pytest.mark.parametrize("given", [None, 3, b"a.conll", []])
def test_what_is_no_path(given: Any) -> None:
    for run in (entaug.read, entaug.stream, lambda path: entaug.write([ADA], path)):
        with pytest.raises(ParameterError, match="a path must be a string or a Path, not "):
            run(given)


def test_formats_show_what_can_be_set(capsys: pytest.CaptureFixture[str]) -> None:
    hidden = {"bartner": "documents", "bartner-nested": "documents", "conll": "other_tag_columns"}
    for name, option in hidden.items():
        assert main(["list", "formats", name]) == 0
        said = capsys.readouterr().out
        assert f"  {option} = " not in said
        assert ("options (--layout NAME=VALUE, --to-layout NAME=VALUE): none\n" in said) == (name != "conll")
