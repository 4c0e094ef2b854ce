"""Messages of the library name parameters; those of the program name options in their place."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

import entaug
from conftest import EXAMPLE, ROOT
from entaug.commands.main import build_parser, main
from entaug.commands.options import READ_OPTIONS, WRITE_OPTIONS
from entaug.commands.output import set_parser, with_options
from entaug.errors import InputError, LossError, OutputError
from helpers.command_line import fails

# Whole commands as advice, and what belongs to the command line alone.
_OF_COMMANDS = ("commands/", "config/presets.py", "study/advi")
# Functions of Python that commands call.
_FUNCTIONS = ("audit", "evaluate", "filter", "predict", "rate", "relabel", "report", "train")
_WHOLE = re.compile("entaug [a-z]|pip |ray start|on the command line|var\\(--")
_OPTION = re.compile(r"(?<![\w`-])--[a-z]")


def test_no_message_of_the_library_names_an_option() -> None:
    source = ROOT / "src/entaug"
    found = {}
    for path in sorted(source.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and n not in docstrings]
        name = str(path.relative_to(source))
        if not name.startswith(_OF_COMMANDS) or name in {f"commands/{one}.py" for one in _FUNCTIONS}:
            messages = [text for text in texts if isinstance(text, str) and not _WHOLE.search(text)]
            found[name] = [text for text in messages if " " in text.strip() and _OPTION.search(text)]
    help_ = ["--held-out FILE"]
    assert {name: texts for name, texts in found.items() if texts} == {
        "filters/texts.py": help_,
        "methods/mention_replacement.py": help_,
        "methods/selftraining.py": ["--unlabelled FILE"],
    }


@pytest.mark.parametrize(
    ("command", "text", "writes", "expected"),
    [
        ("convert", "or pass `repair=True`, or `scheme='IOB2'`", False, "or pass --repair, or --scheme IOB2"),
        ("convert", "`format='bioc'` or another `format`", False, "--from bioc or another --from"),
        ("convert", "`format='bartner'`, `scheme='IOBES'`", True, "--to bartner, --to-scheme IOBES"),
        ("convert", "`layer=NAME`, `quoted=False`", False, "--layout layer=NAME, --layout quoted=false"),
        ("convert", "`words='rules'` or `overlap='outermost'`", True, "--to-layout words=rules or --overlap outermost"),
        ("convert", "`allow_loss=['field', 'id']`", True, "--allow-loss field,id"),
        ("convert", "`write_options={'ids': True}`", False, "--to-layout ids=true"),
        ("convert", "`write_options={'provenance': True}`", False, "--provenance"),
        ("convert", "`names='O,B-PER'`", False, "--layout names=O,B-PER"),
        ("convert", "`words='My words'`", False, "--layout 'words=My words'"),
        ("convert", "`token_column='My words'`", False, "--token-column 'My words'"),
        ("convert", "`question='{text}'`", False, "--layout question={text}"),
        ("convert", "`encoder=NAME`, `gold`, ``quoted``, `it's`", False, "`encoder=NAME`, `gold`, ``quoted``, `it's`"),
        ("augment", "`mentions='spans'`", False, "--layout mentions=spans"),
        ("augment", "write entities: `mentions='entities'`", True, "write entities: --to-layout mentions=entities"),
        ("convert", "f`jobs`.conll", False, "f`jobs`.conll"),
        ("check", "`overlap='outermost'`", False, "`overlap='outermost'`"),
        ("check", "`phrases=NAME`", False, "--phrases NAME"),
        ("augment", "fewer `jobs`, `rejected=FILE`", False, "fewer --jobs, --rejected FILE"),
        ("augment", "`output=FOLDER`", False, "--output FOLDER"),
        ("augment", "`filters='guard:encoder=NAME'`", False, "--filter guard:encoder=NAME"),
        ("experiment", "what `only` asks for", False, "what --only asks for"),
        ("augment", "`use_compute_settings(any_language=True)`", False, "--any-language"),
        ("convert", "`use_compute_settings(any_language=True)`", False, "`use_compute_settings(any_language=True)`"),
    ],
)  # fmt: skip
def test_the_program_names_options(command: str, text: str, writes: bool, expected: str) -> None:
    set_parser(build_parser(command), {*READ_OPTIONS, *WRITE_OPTIONS})
    assert with_options(text, writes=writes) == expected


def test_the_same_error_in_python_and_in_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, nested = tmp_path / "bad.conll", EXAMPLE / "nested.jsonl"
    bad.write_text("Ada I-PER\nsang O\n")
    with pytest.raises(InputError, match=r"pass `repair=True` to start a mention there$"):
        entaug.read(bad, scheme="IOB2")
    error = fails(capsys, 2, "convert", str(bad), str(tmp_path / "a.jsonl"), "--scheme", "IOB2")
    assert error.endswith("pass --repair to start a mention there\n")
    with pytest.raises(LossError, match="`overlap='outermost'` or `overlap='innermost'`"):
        entaug.write(entaug.read(nested), tmp_path / "b.conll")
    error = fails(capsys, 2, "convert", str(nested), str(tmp_path / "b.conll"), "--allow-loss", "all")
    assert "(CoNLL: --to-tag-columns 1,2)" in error
    assert "--overlap outermost or --overlap innermost" in error
    with pytest.raises(OutputError, match="`force=True`"):
        entaug.convert(nested, bad)
    assert main(["check", str(bad), "--scheme", "IOB2"]) == 1
    assert "--repair" in capsys.readouterr().out
    assert main(["check", str(bad), "--scheme", "IOB2", "--json"]) == 1
    [told] = json.loads(capsys.readouterr().out)["errors"]
    assert told.endswith("pass --repair to start a mention there")


def test_notes_of_tables_name_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    note = (
        "the causal LM serves English; name another with `causal_lm=NAME`, or `use_compute_settings(any_language=True)`"
    )
    monkeypatch.setattr("entaug.commands.quality.quality_table", lambda qualities: f"note: {note}\n")
    train, new = EXAMPLE / "train.conll", tmp_path / "new.jsonl"
    entaug.write(entaug.augment(entaug.read(train)[:3], "sis"), new)
    assert main(["quality", str(new), "--gold", str(train), "--measures", "length", "--no-models"]) == 0
    assert "name another with --causal-lm NAME, or --any-language" in capsys.readouterr().out
