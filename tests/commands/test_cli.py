"""The command line as a user meets it."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import errno
import gzip
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

import entaug
from conftest import EXAMPLE
from entaug import Sentence
from entaug.commands import main as entry_point
from entaug.commands.main import COMMANDS, main
from entaug.errors import EntaugError, MissingModelError, ParameterError
from entaug.files import checkpoints
from entaug.formats.files import FORMATS, find_format
from entaug.methods import create_augmenter
from entaug.methods.augment import augment_file
from helpers.command_line import fails, interrupt_after, repeated

TRAIN = str(EXAMPLE / "train.conll")
NESTED = str(EXAMPLE / "nested.jsonl")


def run(*argv: str, stdin: bytes | None = None, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "entaug", *argv], input=stdin, capture_output=True, check=False, **more
    )


# ------------------------------------------------------------------------------------------------------------- augment


def test_augment_writes_gold_then_new_and_sums_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.conll"
    assert main(["augment", TRAIN, "--method", "mr", "--copies", "2", "-o", str(out)]) == 0
    said = capsys.readouterr()
    gold = entaug.read(TRAIN)
    both = entaug.read(out)
    assert list(both[: len(gold)]) == list(gold)
    assert f"mr: {len(gold)} gold sentences in, {len(both) - len(gold)} new, {len(both)} written" in said.err
    assert f"wrote {out}" in said.err
    for label, count in gold.mention_counts().items():
        assert any(
            line.split() == [label, str(count), str(both.mention_counts()[label])] for line in said.err.splitlines()
        )
    assert said.out == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.conll"]


def test_only_new_to_stdout_with_summary_on_stderr(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["augment", TRAIN, "-m", "sis", "--only-new", "--to", "jsonl", "--json"]) == 0
    out, err = capfdbinary.readouterr()
    summary = orjson.loads(err)
    lines = out.splitlines()
    assert len(lines) == summary["statistics"]["accepted"] == summary["after"]["sentences"]
    assert {orjson.loads(line)["entaug"]["method"] for line in lines} == {"sis"}


def test_names_that_look_like_options_stand_after_a_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(TRAIN, "-odd.conll")
    assert main(["check", "--", "-odd.conll"]) == 0
    assert "-odd.conll: CoNLL columns" in capsys.readouterr().err


def test_standard_input_and_output(tmp_path: Path) -> None:
    data = Path(TRAIN).read_bytes()
    piped = run("augment", "-", "-m", "mr", stdin=data)
    filed = tmp_path / "out.conll"
    assert main(["augment", TRAIN, "-m", "mr", "-o", str(filed)]) == piped.returncode == 0
    assert piped.stdout == filed.read_bytes()
    assert b"\x1b" not in piped.stderr, "no bar in a pipe"
    bad = run("check", "-", stdin=b"Ada\tB-PER\n\nBo\tI-PER\n")
    assert bad.returncode == 1
    assert bad.stdout.startswith(b"<stdin>:3: I-PER at the start of the sentence")


def test_one_bar_on_a_terminal() -> None:
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "entaug", "augment", TRAIN, "-m", "sis"],
        stdout=subprocess.DEVNULL,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color"},
    ) as process:
        os.close(slave)
        seen = b""
        with contextlib.suppress(OSError):  # Linux ends a terminal that nobody writes to any more with an error
            while chunk := os.read(master, 100_000):
                seen += chunk
        process.wait(timeout=600)
    os.close(master)
    assert b"sentences" in seen
    assert b"/s" in seen
    assert b"wrote standard output" in seen
    assert seen.count(b"  after   ") == 3


def test_quiet_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["augment", TRAIN, "-m", "sis", "-o", str(tmp_path / "out.conll"), "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("methods", ["mr,sis", "mr:copies=2+sis"])
def test_several_methods_in_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], methods: str) -> None:
    out = tmp_path / "out.jsonl"
    assert main(["augment", TRAIN, "-m", methods, "--seed", "3", "--only-new", "-o", str(out)]) == 0
    assert "mr+sis: 100 gold sentences in" in capsys.readouterr().err
    made = [(s.fields["entaug"]["method"], s.fields["entaug"]["signature"]) for s in entaug.read(out)]
    assert {method for method, _ in made} == {"mr", "sis"}
    assert all("|seed=3|" in signature for _, signature in made)
    count = sum(method == "mr" for method, _ in made)
    assert count > 150 if "copies" in methods else count <= 100
    assert "unknown method 'mx'; did you mean 'mr'?" in fails(capsys, 2, "augment", TRAIN, "-m", "mx+sis")


def test_an_unknown_command_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown command 'augmnt'; did you mean 'augment'?" in fails(capsys, 2, "augmnt", TRAIN)


# What learns: little more of it than some sentence needs to be accepted.
LITTLE_TRAINING = {
    "aclm": "--epochs 1 --max-attempts 1 --max-new-tokens 64",
    "daga": "--epochs 20 --max-attempts 4",
    "entda": "--epochs 3 --max-attempts 3 --max-new-tokens 48",
    "gal": "--max-attempts 2 --max-new-tokens 48",
    "melm": "--epochs 1 --max-attempts 4",
    "mulda": "--epochs 2 --max-attempts 2 --max-new-tokens 48",
}


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(
            name, marks=[pytest.mark.models, pytest.mark.slow] if entaug.methods.METHODS[name].info.needs else []
        )
        for name in sorted(entaug.methods.METHODS)
    ],
)
def test_same_bytes_whatever_the_hash_seed(tmp_path: Path, method: str) -> None:
    is_selftrain = method == "selftrain"
    try:
        create_augmenter(method, **({"unlabelled": [Sentence(["word"])]} if is_selftrain else {})).load()
    except (MissingModelError, ParameterError) as error:  # rewrite takes a model of the user
        pytest.skip(str(error))
    options = ["--copies", "3", *(["--p", "0.6"] if hasattr(entaug.methods.METHODS[method], "p") else [])]
    info = entaug.methods.METHODS[method].info
    seeds = ["0", "1", "random"]
    if set(info.needs) - {"lexicon"}:  # what asks models takes long: two seeds show it too
        seeds = ["0", "random"]
    if method in LITTLE_TRAINING:
        options = ["--copies", "1", *LITTLE_TRAINING[method].split()]
    if is_selftrain:
        options = ["--unlabelled", str(EXAMPLE / "dev.conll"), "--ensemble-size", "2", "--ensemble-steps", "2"]
    corpus = str(tmp_path / "gold.jsonl")
    # Of one that it, and the default tagger of its teacher, can carry; and its beginning where that takes long.
    whole = NESTED if info.nested and info.discontinuous and info.has_labels else EXAMPLE / "train.conll"
    entaug.write(list(entaug.read(whole))[: 12 if len(seeds) == 2 else None], corpus)
    outputs = []
    for seed in seeds:
        out = tmp_path / f"{seed}.jsonl"
        env = {**os.environ, "PYTHONHASHSEED": seed}
        rejected = tmp_path / f"{seed}.rejected.jsonl"
        arguments = ["-m", method, *options, "-o", str(out), "--rejected", str(rejected)]
        code = run("augment", corpus, *arguments, env=env).returncode
        # With so little training a generator may write nothing that is accepted; then what it wrote is compared.
        assert code == 0 or (code == 2 and rejected.stat().st_size)
        outputs.append((code, out.read_bytes() if code == 0 else b"", rejected.read_bytes()))
    assert len(set(outputs)) == 1


def test_formats_tell_what_they_carry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "formats"]) == 0
    told = capsys.readouterr().out
    assert all(f"\n{name} " in f"\n{told}" for name in FORMATS)
    for name in FORMATS:
        assert main(["list", "formats", name]) == 0
        own = capsys.readouterr().out
        for field in dataclasses.fields(find_format(name).dialect()):
            assert (f"  {field.name} = " in own) == field.compare, "what is found by looking alone is nothing to set"
            if not field.compare:
                continue
            assert not own.split(f"  {field.name} = ")[1].split("\n")[0].endswith(": "), (
                f"{name}: {field.name} is told about"
            )
    assert main(["list", "formats", "jsonl", "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out)["discontinuous"] is True


def test_any_option_of_a_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    arguments = ["convert", TRAIN, str(out), "--to", "doccano", "--allow-loss", "all"]
    assert main([*arguments, "--to-layout", "tokens=false", "--to-layout", "field=labels"]) == 0
    assert set(orjson.loads(out.read_bytes().splitlines()[0])) == {"text", "labels"}
    capsys.readouterr()
    assert "unknown option of the " in fails(capsys, 2, *arguments, "--force", "--to-layout", "colour=red")
    assert "is not of the form NAME=VALUE" in fails(capsys, 2, *arguments, "--force", "--layout", "colour")
    for typed in ("--text-language=de", "--split-sentences=none"):  # which the format has not, by whatever name
        told = f"unknown option of the conll format: {typed.partition('=')[0]}; "
        assert told in fails(capsys, 2, *arguments, "--force", typed)
    assert "format: --to-separator; " in fails(capsys, 2, *arguments, "--force", "--to-separator=,")
    assert "format: 'language'; " in fails(capsys, 2, *arguments, "--force", "--layout", "language=de")


def test_gzip_out_equals_plain_out(tmp_path: Path) -> None:
    plain, zipped = tmp_path / "a.conll", tmp_path / "a.conll.gz"
    assert main(["augment", TRAIN, "-m", "sis", "-o", str(plain)]) == 0
    assert main(["augment", TRAIN, "-m", "sis", "-o", str(zipped)]) == 0
    assert gzip.decompress(zipped.read_bytes()) == plain.read_bytes()


def test_provenance_comments_come_back(tmp_path: Path) -> None:
    out = tmp_path / "out.conll"
    assert main(["augment", TRAIN, "-m", "sis", "--only-new", "--provenance", "-o", str(out)]) == 0
    assert all(s.fields["entaug"]["method"] == "sis" for s in entaug.read(out))


def test_options_of_a_method_are_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["augment", "--method", "lwtr", "--help-all"])
    text = capsys.readouterr().out
    assert "--stop-words" in text
    assert "--p" in text
    assert "exit codes" in text
    assert "unrecognized arguments: --lexicon" in fails(capsys, 2, "augment", TRAIN, "-m", "mr", "--lexicon", "x")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_two_screens_and_tells_of_the_rest(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    shown = []
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            main([command, option])
        shown.append(capsys.readouterr().out)
    short, whole = shown
    assert len(short.splitlines()) <= 80
    assert "--help-all" in short
    assert "exit codes" in whole
    assert ("--to-separator" in whole) == ("--to FORMAT" in short), "rare options are shown with --help-all alone"
    assert "--to-separator" not in short


@pytest.mark.parametrize(
    ("argv", "option", "meant"),
    [
        (("augment", TRAIN, "--methd", "mr"), "--methd", "--method"),
        (("augment", TRAIN, "-m", "mr", "--copeis=2"), "--copeis", "--copies"),
        (("--verson",), "--verson", "--version"),
        (("check", "--jsn", TRAIN), "--jsn", "--json"),
        (("predict", "tagger", "a.txt", "--outptu", "b.conll"), "--outptu", "--output"),
        (("merge", "parts", "--rejectd", "x"), "--rejectd", "--rejected"),
    ],
)
def test_options_that_do_not_exist_get_a_suggestion(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], option: str, meant: str
) -> None:
    """The mistake is named, and not that another option is missing for it."""
    assert f"error: unrecognized arguments: {option}; did you mean {meant}?; see entaug" in fails(capsys, 2, *argv)
    assert "arguments: --zzzz; see entaug check --help" in fails(capsys, 2, "check", "--zzzz")


@pytest.mark.parametrize("method", ["MR", "Mention-Replacement", "mention_replacement", "MR:copies=1", "Mr+SIS"])
def test_names_of_methods_and_commands_in_other_case(tmp_path: Path, method: str) -> None:
    outputs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    meant = "mr+sis" if "+" in method else "mr"
    for command, name, out in (("augment", meant, outputs[0]), ("Augment", method, outputs[1])):
        assert main([command, TRAIN, "-m", name, "-o", str(out), "--quiet"]) == 0
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


# --------------------------------------------------------------------------------------------- interruption and resume


@pytest.mark.parametrize("method", ["mr", "sis"])
@pytest.mark.parametrize("name", ["out.conll", "out.jsonl.gz"])
def test_interrupted_runs_go_on_to_the_same_bytes(tmp_path: Path, method: str, name: str) -> None:
    gold = repeated(tmp_path, 20)
    whole, out = tmp_path / f"whole.{name}", tmp_path / name
    wanted = augment_file(gold, whole, create_augmenter(method, copies=2))

    for n in (300, 900, 1500):
        with pytest.raises(KeyboardInterrupt):
            augment_file(gold, out, create_augmenter(method, copies=2), progress=interrupt_after(n))
        assert not out.exists()
        assert (tmp_path / f"{name}.partial").exists()
    summary = augment_file(gold, out, create_augmenter(method, copies=2))
    assert summary.resumed_at >= 1500 - 64
    assert out.read_bytes() == whole.read_bytes()
    assert (summary.statistics, summary.after) == (wanted.statistics, wanted.after)
    assert {p.name for p in tmp_path.iterdir()} == {"big.conll", whole.name, out.name}


def test_an_interruption_while_gold_is_copied_leaves_nothing(tmp_path: Path) -> None:
    gold = repeated(tmp_path, 10)

    def progress(what: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        augment_file(gold, tmp_path / "out.conll", create_augmenter("sis"), progress=progress)
    assert [p.name for p in tmp_path.iterdir()] == ["big.conll"]


@pytest.mark.slow
def test_ctrl_c_and_kill_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = repeated(tmp_path, 600)
    whole, out = tmp_path / "whole.conll", tmp_path / "out.conll"
    assert run("augment", str(gold), "-m", "sis", "-o", str(whole)).returncode == 0
    partial = Path(f"{out}.partial")
    code = (
        "import sys; from entaug.files import checkpoints; from entaug.commands import main as cli; "
        "checkpoints._CHECKPOINT_SECONDS = 0.05; sys.exit(cli.main())"
    )
    command = [sys.executable, "-c", code, "augment", str(gold), "-m", "sis", "-o", str(out)]
    for number in (signal.SIGINT, signal.SIGKILL, signal.SIGTERM):
        before = partial.stat().st_size if partial.exists() else 0
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            wanted = max(before, gold.stat().st_size) + 200_000
            while process.poll() is None:
                if partial.exists() and partial.stat().st_size > wanted:
                    process.send_signal(number)
                    break
                time.sleep(0.005)
            err = process.communicate(timeout=600)[1]
        if process.returncode == 0:
            pytest.skip("the machine was too quick to interrupt")
        assert not out.exists()
        if number != signal.SIGKILL:
            assert process.returncode == 130
            assert err == b"entaug: interrupted; run the same command again to resume\n"
    last = run("augment", str(gold), "-m", "sis", "-o", str(out))
    assert last.returncode == 0
    assert b"resumed after" in last.stderr
    assert out.read_bytes() == whole.read_bytes()
    assert not partial.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("replacement", [ValueError, EntaugError])
def test_an_interruption_that_a_library_replaces_by_its_own_error_is_still_reported_as_one(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
    replacement: type[Exception],
) -> None:
    def run_interrupted(_: argparse.Namespace) -> int:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            raise replacement("object of a C function") from None
        return 0

    def parse(argv: Sequence[str]) -> argparse.Namespace:
        args = entry_point.build_parser(argv[0], argv[1:]).parse_args(argv[1:])
        args.run = run_interrupted
        return args

    monkeypatch.setattr(entry_point, "_parse", parse)
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background may ignore it
    try:
        assert main(["list", "formats"]) == 130
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
    assert capsys.readouterr().err == "entaug: interrupted\n"


def test_what_another_run_left_is_not_mixed_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, out = repeated(tmp_path, 10), tmp_path / "out.conll"
    with pytest.raises(KeyboardInterrupt):
        augment_file(gold, out, create_augmenter("sis", seed=1), progress=interrupt_after(0))
    said = fails(capsys, 3, "augment", str(gold), "-m", "sis", "--seed", "2", "-o", str(out))
    assert "left by an interrupted run with other input, options or models" in said
    assert main(["augment", str(gold), "-m", "sis", "--seed", "2", "-o", str(out), "--force"]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["big.conll", "out.conll"]


# ----------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["augment", "none.conll", "-m", "mr"], 2, "none.conll: no such file"),
        (["augment", TRAIN, "-m", "mrr"], 2, "unknown method 'mrr'; did you mean 'mr'?"),
        (["augment", TRAIN, "-m", "mr", "--p", "1.5"], 2, "p must be a number from 0 to 1, not '1.5'"),
        (["augment", TRAIN, "-m", "mr", "--copies", "-1"], 2, "copies must be an integer from 1 to 10000, not '-1'"),
        (
            ["augment", TRAIN, "-m", "mr", "--copies", "x"],
            2,
            "argument --copies: copies must be an integer from 1 to 10000, not 'x'; see",
        ),
        (["augment", TRAIN], 2, "the following arguments are required: -m/--method"),
        (["augment", TRAIN, "-m", "mr", "-o", "no/such/folder/x"], 3, "make the folder first"),
        (["augment", TRAIN, "-m", "mr", "-o", "."], 3, "is a directory"),
        (["augment", TRAIN, "-m", "mr", "--from", "conl"], 2, "unknown format 'conl'; did you mean 'conll'?"),
        (["augment", TRAIN, "-m", "mr", "--scheme", "IOB3"], 2, "unknown tag scheme 'IOB3'"),
        (["augment", TRAIN, "-m", "mr", "--tag-column", "9"], 2, "2 columns, counted from 0: there is no such column"),
        (["list", "methods", "cassi2"], 2, "unknown method 'cassi2'"),
        (["check", "."], 2, "is a directory"),
        (["convert", NESTED, "-", "--to", "conll"], 2, "nested.jsonl:1: a nested mention"),
        (
            ["convert", NESTED, "-", "--to", "conll"],
            2,
            "cannot be written as tags; write JSON lines or several columns of tags (CoNLL: --to-tag-columns 1,2), or",
        ),
        (["augment", NESTED, "-m", "sis", "-o", "x.conll"], 2, "nested.jsonl:1: a nested mention"),
        (["nothing"], 2, "unknown command 'nothing'"),
        ([], 2, "the following arguments are required: COMMAND"),
    ],
)
def test_each_mistake_is_one_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    argv: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, code, *argv)
    assert not list(tmp_path.iterdir())


def test_names_with_line_ends_and_escapes_stay_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = tmp_path / "a\nb\x1b[31m\u2028.conll"
    assert r"a\nb\x1b[31m\u2028.conll: no such file" in fails(capsys, 2, "check", str(odd))
    odd.write_text("Ada\tB-PER\n")
    assert main(["convert", str(odd), str(tmp_path / "out\x1b.jsonl")]) == 0
    assert "\x1b" not in capsys.readouterr().err
    assert (tmp_path / "out\x1b.jsonl").exists()


def test_faulty_input_leaves_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.conll"
    path.write_text(Path(TRAIN).read_text() + "Ada\tI-PER\n")
    line = len(path.read_text().splitlines())
    for method in ("sis", "mr"):
        said = fails(capsys, 2, "augment", str(path), "-m", method, "-o", str(tmp_path / "out.conll"))
        assert f"bad.conll:{line}: I-PER" in said
        assert "--repair" in said
    assert [p.name for p in tmp_path.iterdir()] == ["bad.conll"]
    assert main(["augment", str(path), "-m", "mr", "--repair", "-o", str(tmp_path / "out.conll")]) == 0
    assert "repaired: 1 (I- that continues no mention)" in capsys.readouterr().err


def test_no_mentions_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plain.conll"
    path.write_text("just\tO\nwords\tO\n")
    assert f"{path}: the corpus has no mentions, which mr needs" in fails(capsys, 2, "augment", str(path), "-m", "mr")


def test_output_that_exists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.conll"
    out.write_text("mine")
    assert "exists; pass --force" in fails(capsys, 3, "augment", TRAIN, "-m", "mr", "-o", str(out))
    assert "exists; pass --force" in fails(capsys, 3, "convert", TRAIN, str(out))
    assert out.read_text() == "mine"
    assert main(["augment", TRAIN, "-m", "mr", "-o", str(out), "--force"]) == 0
    capsys.readouterr()
    assert "is an input; inputs are never overwritten" in fails(
        capsys, 3, "augment", str(out), "-m", "mr", "-o", str(out), "--force"
    )


def test_predictions_may_be_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", TRAIN, str(tmp_path / "brat"), "--to", "brat", "--allow-loss", "tokens"]) == 0
    assert main(["convert", str(tmp_path / "brat"), str(tmp_path / "gold.jsonl")]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "gold.jsonl"), str(tmp_path / "brat"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["micro"]["f1"] == 1


def test_lists_as_json_are_written_to_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "methods", "mr", "--json", "-o", str(tmp_path / "mr.json")]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads((tmp_path / "mr.json").read_text())["name"] == "mr"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_unwritable_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    assert "check its permissions" in fails(capsys, 3, "augment", TRAIN, "-m", "mr", "-o", str(folder / "x.conll"))


def test_full_disk_keeps_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gold, out = repeated(tmp_path, 20), tmp_path / "out.conll"
    whole = tmp_path / "whole.conll"
    augment_file(gold, whole, create_augmenter("sis"))
    room = gold.stat().st_size + 150_000
    write = checkpoints._PartialFile.write

    def until_full(self: checkpoints._PartialFile, data: bytes) -> None:
        if self.offset > room:
            stream = self._stream
            self._stream = io.BytesIO()
            self._stream.write = full  # type: ignore[method-assign, assignment]
            try:
                write(self, data)
            finally:
                self._stream = stream
        write(self, data)

    def full(data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints._PartialFile, "write", until_full)
        said = fails(capsys, 3, "augment", str(gold), "-m", "sis", "-o", str(out))
    assert "No space left on device" in said
    assert "free some space" in said
    assert not out.exists()
    assert main(["augment", str(gold), "-m", "sis", "-o", str(out)]) == 0
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_standard_output() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "entaug", "augment", TRAIN, "-m", "sis"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.startswith(b"entaug: error: standard output: cannot be written (No space left on device)")
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_goes_away() -> None:
    command = f"{sys.executable} -m entaug augment {TRAIN} -m sis --copies 20 | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, check=False)
    assert done.returncode in (0, 141)
    assert b"Traceback" not in done.stderr


# --------------------------------------------------------------------------------------------- methods, check, convert


def test_methods_lists_and_tells(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "methods"]) == 0
    listed = capsys.readouterr().out
    assert main(["list", "methods", "--json"]) == 0
    records = orjson.loads(capsys.readouterr().out)
    assert {r["name"] for r in records} == set(entaug.methods.METHODS)
    assert all(r["name"] in listed and r["summary"] in listed for r in records)
    assert main(["list", "methods", "mention-replacement"]) == 0
    assert "p = 0.3: the probability of replacing each mention" in capsys.readouterr().out


def test_check_names_every_fault_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", NESTED, "--json"]) == 0
    report = orjson.loads(capsys.readouterr().out)
    corpus = entaug.read(NESTED)
    assert report["counts"]["sentences"] == len(corpus)
    assert report["counts"]["discontinuous"] == sum(not m.is_contiguous for s in corpus for m in s.mentions) > 0
    assert report["counts"]["nested"] > 0
    path = tmp_path / "bad.conll"
    path.write_text("Ada\tB-PER\n\nBo\tI-PER\n\nCy\tB-PER\nx\n\nCy\tX-PER\nDee\tB-PER\n\nAda\tB-PER\n")
    assert main(["check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert [line.split(": ")[0].rpartition(":")[2] for line in out.splitlines()] == ["3", "6", "8"]
    assert "2 valid sentences" in err
    assert "1 duplicate sentence" in err
    assert "3 errors" in err
    assert main(["check", str(path), "--repair"]) == 1
    assert "repaired: 1 (I- that continues no mention)" in capsys.readouterr().err


def test_convert_between_formats_and_schemes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there, back = tmp_path / "a.jsonl.gz", tmp_path / "b.conll"
    assert main(["convert", TRAIN, str(there)]) == 0
    assert main(["convert", str(there), str(back), "--to-scheme", "IOBES"]) == 0
    assert "IOBES" in capsys.readouterr().err
    assert list(entaug.read(back)) == list(entaug.read(TRAIN))
    assert main(["convert", str(back), str(tmp_path / "c.conll"), "--to-scheme", "IOB2"]) == 0
    assert (tmp_path / "c.conll").read_bytes() == Path(TRAIN).read_bytes()
    assert main(["convert", NESTED, str(tmp_path / "d.conll"), "--overlap", "outermost"]) == 0
    assert main(["check", str(tmp_path / "d.conll")]) == 0


# ----------------------------------------------------------------------------------------------- streams and file names

NOT_UTF8 = "b\udcff.conll"


@pytest.mark.parametrize(
    "argv",
    [
        ("check", "--json"),
        ("augment", "-m", "mr", "--json", "-o", "out.conll"),
        ("report", "-o", "out.html", "--no-models"),
        ("quality", "--no-models", "--json"),
        ("convert", "out.jsonl"),
        ("evaluate", NOT_UTF8, "--json"),
        ("subset", "--sizes", "5", "-o", "subsets"),
    ],
    ids=lambda argv: argv[0],
)
def test_names_of_files_need_not_be_utf8(
    argv: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        shutil.copy(EXAMPLE / "train.conll", tmp_path / NOT_UTF8)
    except OSError:
        pytest.skip("the file system takes UTF-8 names only")
    monkeypatch.chdir(tmp_path)
    assert main([argv[0], NOT_UTF8, *argv[1:]]) == 0
    out = capsys.readouterr().out
    if "--json" in argv:
        assert json.loads(out)


CLOSED = pytest.mark.skipif(os.name != "posix", reason="closes standard streams by the shell")


@CLOSED
@pytest.mark.parametrize(
    ("argv", "closed", "code", "message"),
    [
        (f"check {EXAMPLE}/train.conll", "<&- >&-", 0, "no errors"),
        ("augment - -m mr -o out.conll", "<&-", 2, "no sentence"),
        (f"augment {EXAMPLE}/train.conll -m mr -o -", ">&-", 3, "standard output: cannot be written"),
        (f"check {EXAMPLE}/train.conll", "2>&-", 0, ""),
    ],
)
def test_closed_streams_are_no_traceback(argv: str, closed: str, code: int, message: str, tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m entaug {argv} {closed}"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=tmp_path)  # noqa: S602
    assert result.returncode == code, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_standard_output_in_ascii(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = run("list", "methods", "cassi", env=environment)
    assert result.returncode == 0, result.stderr
    assert result.stdout.isascii()
