"""A corpus augmented in parts, and merged, is the corpus augmented at once."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug.commands.main import main
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, LossError
from entaug.files import checkpoints
from entaug.methods import create_augmenter
from entaug.methods import parts as part_files
from entaug.methods.augment import augment_file
from entaug.methods.combined import parse_methods
from entaug.methods.parts import Part, augment_part, merge_parts
from helpers.command_line import fails, interrupt_after, repeated
from helpers.odd_values import changed, places

TRAIN = EXAMPLE / "train.conll"


def make_parts(gold: Path, folder: Path, method: str, of: int, parameters: dict[str, Any], **options: Any) -> None:
    for number in range(1, of + 1):
        augment_part(gold, folder, parse_methods(method, **parameters), Part(number, of), **options)


@pytest.mark.parametrize(
    ("method", "of", "out", "parameters", "options"),
    [
        ("mr+sis", 3, "out.conll", {}, {}),
        ("lwtr:copies=2", 1, "out.jsonl.gz", {}, {"to_format": "jsonl", "only_new": True}),
        ("sis", 9, "out.conll.gz", {}, {}),
        ("mr", 4, "out.json", {"filters": "similarity:min_similarity=0.9"}, {"to_format": "gliner"}),
    ],
)
def test_merged_parts_are_the_whole(
    tmp_path: Path, method: str, of: int, out: str, parameters: dict[str, Any], options: dict[str, Any]
) -> None:
    gold = repeated(tmp_path, 2)
    if of == 9:  # more parts than sentences
        entaug.write(entaug.read(TRAIN)[:5], gold)
    wanted, merged = tmp_path / f"whole-{out}", tmp_path / out
    rejected = (tmp_path / "r1.jsonl", tmp_path / "r2.jsonl") if parameters else (None, None)
    whole = augment_file(gold, wanted, parse_methods(method, **parameters), rejected=rejected[0], **options)
    make_parts(gold, tmp_path / "parts", method, of, parameters, **options)
    summary = merge_parts([tmp_path / "parts"], merged, rejected=rejected[1])
    assert merged.read_bytes() == wanted.read_bytes()
    if rejected[0] and rejected[1]:
        assert rejected[0].read_bytes() == rejected[1].read_bytes() != b""
    different = {"output", "seconds", "from_format"}
    plain, other = ({k: v for k, v in s.to_dict().items() if k not in different} for s in (whole, summary))
    assert plain == other


def test_interrupted_parts_and_merges_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_CHECKPOINT_SECONDS", 0.0)
    gold, folder, out = repeated(tmp_path, 10), tmp_path / "parts", tmp_path / "out.conll"
    augment_file(gold, tmp_path / "whole.conll", create_augmenter("mr"))
    for number in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            augment_part(gold, folder, create_augmenter("mr"), Part(number, 2), progress=interrupt_after(128))
        assert not (folder / Part(number, 2).name).exists()
        summary = augment_part(gold, folder, create_augmenter("mr"), Part(number, 2))
        assert summary.resumed_at >= 128
    with pytest.raises(KeyboardInterrupt):
        merge_parts([folder], out, progress=interrupt_after(512))
    assert merge_parts([folder], out).resumed_at >= 512
    assert out.read_bytes() == (tmp_path / "whole.conll").read_bytes()
    assert sorted(p.name for p in folder.iterdir()) == [Part(n, 2).name for n in (1, 2)]


def test_an_empty_part_has_the_notes_of_the_others(tmp_path: Path) -> None:
    entaug.write(entaug.read(TRAIN)[:2], tmp_path / "two.conll")
    for number in (1, 2):
        method = create_augmenter("mr", p=1.0, mentions={"PER": ["Ina Moss"]}, list_share=1.0)
        augment_part(tmp_path / "two.conll", tmp_path / "parts", method, Part(number, 2), jobs=2)
    (tmp_path / "parts" / f"{Part(1, 2).name}.partial").touch()
    assert merge_parts([tmp_path / "parts"], tmp_path / "out.conll").statistics.accepted


def test_what_does_not_fit_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, folder, out = repeated(tmp_path, 2), tmp_path / "parts", str(tmp_path / "out.conll")
    make_parts(gold, folder, "sis", 3, {})
    second = folder / Part(2, 3).name
    content = second.read_bytes()

    def refusal() -> str:
        said = fails(capsys, 2, "merge", str(folder), "-o", out)
        assert not Path(out).exists()
        return said

    second.unlink()
    assert "1 of 3 parts missing: 2; write them, as part 2/3" in refusal()
    augment_part(gold, folder, create_augmenter("sis", seed=1), Part(2, 3))
    assert "differs from" in (said := refusal())
    assert "in input, options, version or models (key, signature); merge the parts of one run" in said
    second.write_bytes(content)
    (folder / "part-2-of-3.jsonl.gz").write_bytes(content)
    assert "is part 2/3, as is" in refusal()
    (folder / "part-2-of-3.jsonl.gz").unlink()
    lines = gzip.decompress(content).splitlines(keepends=True)
    for damaged, message in (
        (lines[:-1], "is not complete; write part 2/3 again"),
        (lines[:5], "is not complete; write part 2/3 again"),
        ([*lines[:5], b"[1,", *lines[6:]], "is damaged; write part 2/3 again"),
        (lines[1:], "is not a part; name parts as entaug augment writes them"),
        ([*lines, lines[1]], "is not complete; write part 2/3 again"),
        ([*lines[:2], lines[3], lines[2], *lines[4:]], "was changed after it was written; write part 2/3 again"),
        ([lines[0], lines[1].replace(b"\\tO", b"\\tB-PER", 1), *lines[2:]], "was changed after it was written"),
        ([lines[0].replace(b'"with_gold":true', b'"with_gold":false'), *lines[1:]], "has a damaged first line"),
    ):
        second.write_bytes(gzip.compress(b"".join(damaged)))
        assert message in refusal()
    second.write_bytes(content[:-20])
    assert "broken gzip file" in refusal()
    second.write_bytes(content)
    said = fails(capsys, 3, "merge", str(folder), "-o", str(tmp_path / "out.jsonl"))
    assert "the parts hold CoNLL columns, and this is the name of JSON lines; name a file of the format" in said
    assert main(["merge", str(folder), "-o", out, "--quiet"]) == 0
    assert "exists" in fails(capsys, 3, "merge", str(folder), "-o", out)
    (tmp_path / "empty").mkdir()
    assert "holds no part" in fails(capsys, 2, "merge", str(tmp_path / "empty"), "-o", out, "--force")
    for text in ("0/3", "4/3", "x", "1/0"):
        said = fails(capsys, 2, "augment", str(gold), "-m", "sis", "-o", str(folder), "--part", text)
        assert f"--part {text!r} is not a part of a whole; write it as 3/64; the first is 1/64" in said


ODD: list[Any] = [None, True, -1, 0, 2**63 - 1, 1.5, "", "x", "../x", [], [1], {}, {"a": -1}, {"x": {"y": []}}]


def test_odd_values_with_right_sums_are_one_error(tmp_path: Path) -> None:
    """Whatever a part says: it is merged, or refused in one line that names the file."""
    make_parts(TRAIN, tmp_path / "parts", "mr", 1, {"filters": "duplicates", "p": 1.0})
    file = next((tmp_path / "parts").iterdir())
    said, *drafts, _ = map(json.loads, gzip.decompress(file.read_bytes()).splitlines())
    del said["sum"]
    drafts = [said, *drafts[:2]]
    drafts[0]["before"]["sentences"] = 2
    file.unlink()
    path = tmp_path / "part.jsonl.gz"

    def merge(contents: Sequence[Any]) -> str:
        json_line = part_files._json_line
        lines = [*(json_line(one) for one in contents[1:])]
        first = (
            {**contents[0], "sum": part_files._sum_of(contents[0])} if isinstance(contents[0], dict) else contents[0]
        )
        end = {"sources": len(lines), "sum": reduce(part_files._next_sum, lines, "")}
        content = [json_line(first), *lines, json_line(end)]
        path.write_bytes(gzip.compress("".join(content).encode(), compresslevel=1))
        try:
            merge_parts([path], tmp_path / "out.conll", force=True, allow_empty=True)
        except EntaugError as error:
            return str(error)
        return ""

    assert merge(drafts) == ""
    refused = 0
    for place in (one for one in places(drafts) if len(one) > 1):
        for odd in ODD:
            if said := merge(changed(drafts, place, odd)):
                refused += 1
                assert "part.jsonl.gz" in said, (place, odd)
                assert "\n" not in said
    assert refused > 300
    for place, odd in (((0, "of"), 10**7), ((0, "part"), 2)):
        assert merge(changed(drafts, place, odd)).endswith("has a damaged first line; write it again"), place
    assert "unknown format" in merge(changed(drafts, (0, "format"), "../x"))


def test_an_output_that_cannot_store_gold_is_an_error(tmp_path: Path) -> None:
    gold = [s.with_(mentions=(Mention("GAP", [(0, 1), (2, 3)]),)) for s in entaug.read(TRAIN) if len(s) > 4]
    entaug.write(gold, tmp_path / "gold.jsonl")
    with pytest.raises(LossError):
        augment_part(tmp_path / "gold.jsonl", tmp_path / "s", create_augmenter("sis"), Part(1, 2), to_format="conll")
    assert list((tmp_path / "s").iterdir()) == []
    make_parts(TRAIN, tmp_path / "none", "sis", 1, {"p": 0.0})
    with pytest.raises(InputError, match="generated no sentence"):
        merge_parts([tmp_path / "none"], tmp_path / "out.conll")
