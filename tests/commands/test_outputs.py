"""Text that comes from or goes to what is no ordinary file; and what stands beside the output."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.commands.main import main
from entaug.errors import InputError, OutputError
from entaug.files import checkpoints
from entaug.files.atomic import output_error
from entaug.files.checkpoints import CheckpointedWriter
from entaug.files.locks import lock
from entaug.formats.buffered import BufferedFormat
from entaug.formats.files import FORMATS, find_format
from entaug.methods import create_augmenter
from entaug.methods.augment import AugmentSummary, augment_file
from helpers.command_line import fails, files_of, interrupt_after
from helpers.counting import wait_until
from helpers.faked_methods import make

TRAIN = EXAMPLE / "train.conll"
NEEDS_PIPES = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


def failure(capsys: pytest.CaptureFixture[str], code: int, *argv: str) -> str:
    assert main(argv) == code
    [line] = capsys.readouterr().err.splitlines()
    return line


def whole(folder: Path, name: str = "whole.conll") -> bytes:
    augment_file(TRAIN, folder / name, create_augmenter("sis"), force=True)
    return (folder / name).read_bytes()


def bash(command: str) -> subprocess.CompletedProcess[bytes]:
    entaug_ = f"{sys.executable} -m entaug"
    return subprocess.run(
        ["bash", "-c", command.replace("entaug ", f"{entaug_} ", 1)], capture_output=True, check=False, timeout=600
    )


# -------------------------------------------------------------------------------------------- what is beside the output


@pytest.mark.parametrize("name", ["out.conll.partial", "out.conll.partial.json"])
def test_a_strangers_file_is_not_taken_for_a_partial_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    stranger, out = tmp_path / name, tmp_path / "out.conll"
    stranger.write_text('{"mine": 1}')
    said = failure(capsys, 3, "augment", str(TRAIN), "-m", "sis", "-o", str(out))
    assert f"{name}: exists and does not belong to a run; pass --force to drop it, or move it away" in said
    assert stranger.read_text() == '{"mine": 1}'
    assert main(["augment", str(TRAIN), "-m", "sis", "-o", str(out), "--force"]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.conll"]


@pytest.mark.parametrize("name", ["out.conll.partial", "out.conll.partial.json"])
@pytest.mark.parametrize("link", [False, True])
def test_the_input_is_never_the_partial_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, link: bool
) -> None:
    gold = tmp_path / ("gold.conll" if link else name)
    gold.write_bytes(TRAIN.read_bytes())
    if link:
        (tmp_path / name).symlink_to(gold)
    for force in ([], ["--force"]):
        said = failure(capsys, 3, "augment", str(gold), "-m", "sis", "-o", str(tmp_path / "out.conll"), *force)
        assert "is an input; inputs are never overwritten; name another output" in said
    assert gold.read_bytes() == TRAIN.read_bytes()


def test_force_drops_a_link_and_not_what_it_names(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "out.conll.partial").symlink_to(precious)
    augment_file(TRAIN, tmp_path / "out.conll", create_augmenter("sis"), force=True)
    assert precious.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.conll", "precious"]


def test_a_kill_before_any_progress_needs_no_force(tmp_path: Path) -> None:
    wanted = whole(tmp_path)
    out = tmp_path / "out.conll"
    code = (
        "import os, signal, sys; from entaug.methods import create_augmenter\n"
        "from entaug.methods.augment import augment_file\n"
        "def die(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
        f"augment_file({str(TRAIN)!r}, {str(out)!r}, create_augmenter('sis'), progress=die)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "out.conll.partial").exists()
    with pytest.raises(OutputError, match="left by an interrupted run with other input, options or models; repeat"):
        augment_file(TRAIN, out, create_augmenter("sis", seed=5))
    assert augment_file(TRAIN, out, create_augmenter("sis")).resumed_at == 0
    assert out.read_bytes() == wanted
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.conll", "whole.conll"]


def test_a_full_disk_while_the_note_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = whole(tmp_path)
    out = tmp_path / "out.conll"
    note = checkpoints.CheckpointedWriter._write_note

    def full(self: checkpoints.CheckpointedWriter, state: dict[str, object]) -> None:
        if "offsets" in state:
            raise_full()
        note(self, state)

    def raise_full() -> None:
        raise output_error(Path("x"), OSError(errno.ENOSPC, "No space left on device"))

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "_CHECKPOINT_SECONDS", 0.0)
        patched.setattr(checkpoints.CheckpointedWriter, "_write_note", full)
        with pytest.raises(OutputError, match=r"No space left on device.; free some space"):
            augment_file(TRAIN, out, create_augmenter("sis"))
    assert not out.exists()
    augment_file(TRAIN, out, create_augmenter("sis"))
    assert out.read_bytes() == wanted


def test_an_interruption_of_the_first_checkpoint_needs_no_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object) -> str:
        raise KeyboardInterrupt

    out = tmp_path / "out.jsonl"
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints._PartialFile, "checksum", property(interrupt))
        with pytest.raises(KeyboardInterrupt):
            augment_file(TRAIN, out, create_augmenter("sis"))
    augment_file(TRAIN, out, create_augmenter("sis"))
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("what", ["text", "offset", "count", "kind"])
def test_what_was_changed_since_the_interruption_is_not_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_bytes(b"\n".join(records(600, "X")))
    argv = ["augment", str(gold), "-m", "sis", "-o", str(tmp_path / "out.jsonl")]
    with pytest.raises(KeyboardInterrupt):
        augment_file(gold, tmp_path / "out.jsonl", create_augmenter("sis"), progress=interrupt_after(0))
    partial, note = tmp_path / "out.jsonl.partial", tmp_path / "out.jsonl.partial.json"
    content = orjson.loads(note.read_bytes())
    if what == "text":
        partial.write_bytes(partial.read_bytes().replace(b"Ada", b"Eve", 1))
    elif what == "offset":
        content["offsets"][0] -= 1
    elif what == "count":
        content["state"]["statistics"]["accepted"] += 1
    else:
        content["offsets"] = "x"
    note.write_bytes(orjson.dumps(content))
    said = failure(capsys, 3, *argv)
    assert ("has changed since" if what == "text" else "does not belong to a run") in said
    assert "pass --force to drop it" in said
    assert main([*argv, "--force"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.jsonl", "out.jsonl"]


def test_rejected_sentences_are_kept_beside_a_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rejected = tmp_path / "rejected.jsonl"
    argv = ["augment", str(TRAIN), "-m", "sis", "--filter", "similarity:min_similarity=1", "-o", "-"]
    assert main([*argv, "--rejected", str(rejected)]) == 2
    assert "generated no sentence" in capsys.readouterr().err
    assert len(entaug.read(rejected)) > 10


def test_repairs_are_counted_where_the_input_is_read_again(tmp_path: Path) -> None:
    first = Sentence(["Ada", "sings"], [Mention("PER", [(0, 1)])])
    lines = [{"tokens": ["Ada", "sings"], "tags": ["B-PER", "O"]}, {"tokens": ["in", "Oslo"], "tags": ["O", "I-LOC"]}]
    for id_ in ("other", first.key):  # the second one is the key of the first sentence, too
        gold = tmp_path / f"{id_}.jsonl"
        gold.write_bytes(
            b"".join(orjson.dumps(line | own) + b"\n" for line, own in zip(lines, ({}, {"id": id_}), strict=True))
        )
        summary = augment_file(gold, gold.with_suffix(".out.jsonl"), make("sis"), repair=True, allow_empty=True)
        assert summary.repaired.total() == 1


@pytest.mark.parametrize("kind", ["word_cases", "dependency_parser"])
def test_a_run_is_not_gone_on_with_by_models_that_were_prepared_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(checkpoints, "_CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        augment_file(
            TRAIN,
            tmp_path / "out.jsonl",
            make("lm", guard=True, dependency_parser="auto"),
            progress=interrupt_after(65),
        )
    assert (tmp_path / "out.jsonl.partial").exists()
    monkeypatch.setattr("entaug.backends.component.is_starter_prepared", kind.__eq__)
    with pytest.raises(OutputError, match="with other input, options or models"):
        augment_file(TRAIN, tmp_path / "out.jsonl", make("lm", guard=True, dependency_parser="auto"))


# -------------------------------------------------------------------------------------------------- no ordinary input


@NEEDS_PIPES
@pytest.mark.parametrize("command", ["augment", "check", "convert"])
def test_a_pipe_as_input_is_read_whole(command: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    more = {"augment": "-m sis", "check": "--json", "convert": "--to jsonl"}[command]
    piped = bash(f"entaug {command} <(cat {TRAIN}) {more}")
    assert piped.returncode == main([command, str(TRAIN), *more.split()]) == 0, piped.stderr
    plain = capfdbinary.readouterr().out
    if command != "check":
        assert piped.stdout == plain
    else:
        told = [orjson.loads(text) for text in (piped.stdout, plain)]
        assert len({str(one | {"input": "", "seconds": 0}) for one in told}) == 1


@NEEDS_PIPES
def test_the_temporary_copy_of_a_pipe_is_not_named() -> None:
    bad = bash("entaug check <(printf 'Ada\\tB-PER\\n\\nBo\\tI-PER\\n')")
    assert bad.stdout.startswith(b"/dev/fd/")


@NEEDS_PIPES
def test_reading_a_pipe_from_python(tmp_path: Path) -> None:
    pipe = tmp_path / "gold.conll"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(TRAIN.read_bytes()))
    writer.start()
    corpus = entaug.read(pipe)
    writer.join()
    assert list(corpus) == list(entaug.read(TRAIN))
    assert corpus.source == str(pipe)
    for once in (lambda: entaug.stream(pipe), lambda: entaug.write([], tmp_path / "x.conll", like=pipe)):
        with pytest.raises(InputError, match=r"can be read only once; use entaug\.read, or save it"):
            once()


# ------------------------------------------------------------------------------------------------- no ordinary output


@pytest.mark.parametrize("command", ["augment", "convert"])
def test_a_link_as_output_stays_a_link(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "links").mkdir()
    real, link = tmp_path / "store" / "real.conll", tmp_path / "links" / "out.conll"
    link.symlink_to("../store/real.conll")
    argv = [command, str(TRAIN), *(["-m", "sis", "-o"] if command == "augment" else []), str(link)]
    assert main(argv) == 0  # what the link names need not be there yet
    assert link.is_symlink()
    wanted = whole(tmp_path) if command == "augment" else TRAIN.read_bytes()
    assert real.read_bytes() == wanted
    capsys.readouterr()
    assert "exists; pass --force" in failure(capsys, 3, *argv)
    assert main([*argv, "--force"]) == 0
    assert link.is_symlink()
    assert [p.name for p in (tmp_path / "store").iterdir()] == ["real.conll"]
    assert [p.name for p in (tmp_path / "links").iterdir()] == ["out.conll"]


@pytest.mark.parametrize("command", ["augment -m sis {} -o", "convert {}"])
def test_a_device_as_output_is_written_straight_to(command: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    begin = command.format(TRAIN)
    assert main([*begin.split(), "-"]) == 0
    assert bash(f"entaug {begin} /dev/stdout | cat").stdout == capfdbinary.readouterr().out != b""
    if Path("/dev/null").exists():
        assert main([*begin.split(), "/dev/null"]) == 0
        assert not Path("/dev/null").is_file()
    if Path("/dev/full").exists():
        capfdbinary.readouterr()
        assert main([*begin.split(), "/dev/full"]) == 3
        said = capfdbinary.readouterr().err
        assert said.startswith(b"entaug: error: /dev/full: cannot be written (No space left on device); free")


@NEEDS_PIPES
def test_a_pipe_as_output(tmp_path: Path) -> None:
    pipe = tmp_path / "out.conll"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    augment_file(TRAIN, pipe, create_augmenter("sis"))
    reader.join()
    assert pipe.is_fifo()
    assert read == [whole(tmp_path)]
    assert bash(f"entaug augment {TRAIN} -m sis -o >(cat >{tmp_path}/copy)").returncode == 0
    # The shell does not wait for what it put in the background.
    wait_until(lambda: (tmp_path / "copy").stat().st_size >= len(read[0]))
    assert (tmp_path / "copy").read_bytes() == read[0]


@pytest.mark.parametrize("length", [245, 255, 300])
def test_names_that_are_too_long(tmp_path: Path, capsys: pytest.CaptureFixture[str], length: int) -> None:
    long = tmp_path / ("x" * (length - 6) + ".conll")
    said = failure(capsys, 3, "augment", str(TRAIN), "-m", "sis", "-o", str(long))
    assert "cannot be written (File name too long); choose a shorter name" in said
    assert not list(tmp_path.iterdir())
    if length == 300:
        assert "cannot be read (File name too long)" in failure(capsys, 2, "check", str(long))
        assert "choose a shorter name" in failure(capsys, 3, "convert", str(TRAIN), str(long))


# --------------------------------------------------------------------------------------------------- going on, and ids


def stopped_and_gone_on(gold: Path, out: Path, method: str, **options: Any) -> AugmentSummary:
    with pytest.raises(KeyboardInterrupt):
        augment_file(gold, out, create_augmenter(method), progress=interrupt_after(256), **options)
    return augment_file(gold, out, create_augmenter(method), **options)


def records(count: int, inner: str) -> Iterator[bytes]:
    for i in range(count):
        entities = [{"start": 2, "end": 4, "type": "PER"}, {"start": 2, "end": 3, "type": inner}]
        yield orjson.dumps({"tokens": [f"w{i}", f"v{i}", "Ada", "Byron"], "entities": entities})


@pytest.mark.parametrize("second", ["X", "Y"])
def test_going_on_with_flattened_mentions_gives_the_same_bytes(tmp_path: Path, second: str) -> None:
    gold = tmp_path / "gold.jsonl"
    # The second half gives the same sentences as the first: always, or once the inner mentions are gone.
    gold.write_bytes(b"\n".join([*records(300, "X"), *records(300, second)]))
    flat: dict[str, Any] = {"to_format": "conll", "write_options": {"overlap": "outermost"}, "only_new": True}
    summary = stopped_and_gone_on(gold, tmp_path / "out.conll", "sis", **flat)
    augment_file(gold, tmp_path / "whole.conll", create_augmenter("sis"), **flat)
    assert summary.resumed_at >= 256
    assert summary.statistics.missing["made before"] >= 299  # one draw may have been unlucky ten times
    assert (tmp_path / "out.conll").read_bytes() == (tmp_path / "whole.conll").read_bytes()


def test_a_slow_method_is_saved_before_many_sources_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("entaug.methods.augment._SECONDS", -1.0)
    with pytest.raises(KeyboardInterrupt):
        augment_file(TRAIN, tmp_path / "out.jsonl", create_augmenter("mr", copies=10), progress=interrupt_after(18))
    summary = augment_file(TRAIN, tmp_path / "out.jsonl", create_augmenter("mr", copies=10))
    assert summary.resumed_at == 20  # batches of four sources with ten copies each
    augment_file(TRAIN, tmp_path / "whole.jsonl", create_augmenter("mr", copies=10))
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("name", ["out.conll", "out.jsonl"])
def test_going_on_when_nothing_was_made_yet(tmp_path: Path, name: str) -> None:
    gold = tmp_path / "gold.conll"
    gold.write_text("same\tO\n\n" * 300 + "Ada\tB-PER\nsings\tO\nwell\tO\n\n")
    augment_file(gold, tmp_path / f"whole-{name}", create_augmenter("sis"), only_new=True)
    summary = stopped_and_gone_on(gold, tmp_path / name, "sis", only_new=True)
    assert summary.resumed_at >= 256
    assert (tmp_path / name).read_bytes() == (tmp_path / f"whole-{name}").read_bytes() != b""


def test_a_new_sentence_that_cannot_be_written_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, out = tmp_path / "gold.jsonl", tmp_path / "out.conll"
    entities = [{"start": 0, "end": 1, "type": "LOC"}]
    texts = (["Oslo", "waits"], ["New\tYork", "sleeps"])
    gold.write_bytes(b"\n".join(orjson.dumps({"tokens": tokens, "entities": entities}) for tokens in texts))
    # Of the two, each of which takes the place of the other, one holds what separates columns.
    assert main(["augment", str(gold), "-m", "mr", "--only-new", "-o", str(out)]) == 0
    assert "not generated: 1 (the output format cannot store it)" in capsys.readouterr().err
    assert out.read_text() == "Oslo\tB-LOC\nsleeps\tO\n\n"
    # What cannot be written of the gold sentence either is no accident of a draw.
    gold.write_bytes(b"\n".join(records(1, "X")))
    for only_new in ([], ["--only-new"]):
        argv = ["augment", str(gold), "-m", "sis", "--to", "conll", "-o", str(out), "--force", *only_new]
        assert "cannot be written as tags" in failure(capsys, 2, *argv)


def test_ids_are_new_also_when_the_input_is_augmented_already(tmp_path: Path) -> None:
    gold = EXAMPLE / "nested.jsonl"
    for name in ("once", "twice", "thrice"):
        augment_file(gold, tmp_path / f"{name}.jsonl", create_augmenter("sis"))
        gold = tmp_path / f"{name}.jsonl"
    assert not entaug.check(gold).errors


# ---------------------------------------------------------------------------------------------------- other columns


@pytest.mark.parametrize("method", ["lwtr", "sis", "mr"])
def test_what_becomes_of_other_columns_is_told(tmp_path: Path, method: str) -> None:
    gold = tmp_path / "gold.conll"
    rows = "Ada\tNNP\tB-NP\tB-PER\nByron\tNNP\tI-NP\tI-PER\nsings\tVB\tB-VP\tO\nwell\tRB\tO\tO\n\n"
    gold.write_text(rows + rows.replace("Ada", "Bo").replace("well", "loud"))
    out = tmp_path / "out.conll"
    kept = {"provenance": True, "ids": True}
    first, *others = augment_file(gold, out, create_augmenter(method, p=1.0), write_options=kept).notes
    assert first.startswith("column 2 looks like tags too, but only the tag column is kept valid")
    assert others == (["new words have the placeholder '_' in other columns (1, 2)"] if method != "sis" else [])
    gold.write_text(rows.replace("\tB-NP", "").replace("\tI-NP", "").replace("\tB-VP", "").replace("\tO\tO", "\tO"))
    assert augment_file(gold, out, create_augmenter("sis"), force=True, write_options=kept).notes == []


def test_a_byte_order_mark_that_is_a_character_stays(tmp_path: Path) -> None:
    gold, out = tmp_path / "gold.jsonl", tmp_path / "out.conll"
    gold.write_text('{"tokens": ["\\ufeffAda", "sings", "well"]}\n' * 2)
    wanted = list(entaug.read(gold))
    by_hand: dict[str, Any] = {"token_column": 0, "tag_column": 1}
    entaug.convert(gold, out)
    assert list(entaug.read(out, **by_hand)) == wanted
    entaug.write(wanted, out)
    assert list(entaug.read(out, **by_hand)) == wanted
    augment_file(gold, out, create_augmenter("sis"), force=True)
    assert list(entaug.read(out, **by_hand)[:2]) == wanted


@pytest.mark.parametrize("format_name", [name for name in FORMATS if isinstance(find_format(name), BufferedFormat)])
def test_formats_that_are_written_at_once_go_on_too(tmp_path: Path, format_name: str) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_bytes(b"\n".join(records(300, "X")))
    nested = {"rows": "sentences"} if format_name == "table" else {}
    options: dict[str, Any] = {"to_format": format_name, "write_options": nested}
    augment_file(gold, tmp_path / "whole", create_augmenter("sis"), **options)
    summary = stopped_and_gone_on(gold, tmp_path / "out", "sis", **options)
    assert summary.resumed_at >= 256
    wanted = files_of(tmp_path / "whole")
    assert wanted
    assert files_of(tmp_path / "out") == wanted
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.jsonl", "out", "whole"]
    with pytest.raises(OutputError, match=r"exists|holds something|is a directory"):
        augment_file(gold, tmp_path / "out", create_augmenter("sis"), **options)
    with pytest.raises(OutputError, match="cannot be written to a stream"):
        augment_file(gold, "-", create_augmenter("sis"), **options)


def test_folders_are_not_written_to_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    entaug.write([Sentence(["Ada"], [Mention("PER", [(0, 1)])])], "gold.conll")
    for command in (("train",), ("subset", "--sizes", "1")):
        told = fails(capsys, 3, *command, "gold.conll", "-o", "-")
        assert "a folder cannot be written to standard output" in told
    assert [path.name for path in tmp_path.iterdir()] == ["gold.conll"]


def test_a_second_run_on_the_same_output_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.conll"
    options: dict[str, Any] = {"force": True}
    with CheckpointedWriter(path, "a", **options) as writer:
        writer.write(["one\n"])
        with pytest.raises(OutputError, match=f"out.conll.*is being written by process {os.getpid()}.*wait until"):
            CheckpointedWriter(path, "b", **options)
        with pytest.raises(OutputError, match="is being written by"):
            CheckpointedWriter(path, "a", **options)
        with pytest.raises(OutputError, match="is being written by"):
            CheckpointedWriter(tmp_path / "other.conll", "a", **options, rejected=path)
        writer.write(["two\n"])
    assert path.read_text() == "one\ntwo\n"
    assert [file.name for file in tmp_path.iterdir()] == ["out.conll"]
    with CheckpointedWriter(path, "b", **options) as writer:
        writer.write(["three\n"])
    assert path.read_text() == "three\n"
    with lock(path), CheckpointedWriter(path, "a", **options) as writer:  # as the runs of an experiment
        writer.write(["four\n"])
    assert path.read_text() == "four\n"


def test_augment_loses_nothing_else_where_some_loss_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold, out = tmp_path / "gold.jsonl", tmp_path / "out.conll"
    sentences = [s.with_(id=f"s{i}", meta={"page": i}) for i, s in enumerate(entaug.read(EXAMPLE / "train.conll"))]
    entaug.write(sentences, gold)
    command = ["augment", str(gold), "-m", "sis", "-o", str(out), "--force"]
    said = fails(capsys, 2, *command, "--allow-loss", "text")
    assert "pass --allow-loss " in said
    needed = said.partition("--allow-loss ")[2].split()[0]
    for kinds in ([], ["--allow-loss", needed], ["--allow-loss", "all"]):
        assert main([*command, *kinds]) == 0, kinds


@pytest.mark.parametrize("command", ["convert", "augment", "filter", "quality", "advise", "rate", "audit"])
def test_an_output_without_a_name_is_refused(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    own = {"augment": ["-m", "sis"], "filter": ["--gold", str(TRAIN), "--filter", "similarity"], "advise": []}
    options = own.get(command, ["--gold", str(TRAIN)] if command in ("quality", "rate") else [])
    for given, message in (("", "a path is empty; name a file or a folder"), (".", ": ")):
        output = [given] if command == "convert" else ["-o", given]
        code = int(main([command, str(TRAIN), *options, *output]))
        error = capsys.readouterr().err.splitlines()[-1]
        assert code in (1, 2, 3)
        assert error.startswith("entaug: error: ")
        assert message in error
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    error = fails(capsys, 2, "subset", str(TRAIN), "--sizes", "10", "-o", "")
    assert error.endswith("a path is empty; name a file or a folder\n")
    assert not list(tmp_path.iterdir())
