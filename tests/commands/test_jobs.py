"""Several processes share the work of a command, and nothing in the result tells how many."""

from __future__ import annotations

import contextlib
import gzip
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug.backends import processes
from entaug.backends.fakes import FakeTagger
from entaug.commands.main import main
from entaug.core.data import Mention, Sentence
from entaug.errors import EntaugError, InputError, LossError, ParameterError
from entaug.files import checkpoints
from entaug.filters import Consistency, Leakage, create_filters
from entaug.formats import CorpusFile, open_file
from entaug.formats.base import ReadReport
from entaug.formats.parts import parts_of
from entaug.methods import augmentation, create_augmenter
from entaug.methods.augment import augment_file
from entaug.methods.combined import parse_methods
from helpers.command_line import fails, interrupt_after, repeated
from helpers.counting import wait_until

TRAIN = EXAMPLE / "train.conll"


class Inline(processes.Workers):
    """What `Workers` does, without processes: tests of parts need no seconds to start any."""

    def __init__(self, jobs: int = 2) -> None:
        self.jobs = jobs

    def map(self, function: Any, shared: Any, tasks: Any) -> Iterator[Any]:
        shared = sent(shared)
        for task in list(tasks):
            yield sent(function(shared, sent(task)))


def sent(value: Any) -> Any:
    """What another process gets."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301


def test_a_pool_ends_in_the_middle_of_large_results(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        """
import contextlib, time
from entaug.backends.processes import Workers

def large(shared, task):
    return bytes(30_000_000)

if __name__ == "__main__":
    for seconds in (0, 0.03, 0.06):
        with contextlib.suppress(KeyboardInterrupt), Workers.start(2) as workers:
            for number, _ in enumerate(workers.map(large, None, range(100))):
                if number == 1:
                    time.sleep(seconds)
                    raise KeyboardInterrupt
""",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, program], capture_output=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes.Workers, "start", lambda jobs: contextlib.nullcontext(Inline(jobs)))


def summary_of(
    path: Path, out: Path, method: str, jobs: int, **options: Any
) -> tuple[bytes, dict[str, Any], list[str]]:
    """The bytes, the summary and the examples of a run."""
    parameters = options.pop("parameters", {})
    summary = augment_file(path, out, parse_methods(method, **parameters), jobs=jobs, force=True, **options)
    plain = {k: v for k, v in summary.to_dict().items() if k not in ("seconds", "output")}
    return out.read_bytes(), plain, [str(example.sentence) for example in summary.examples]


def nested(folder: Path) -> Path:
    """Sentences with nested and discontinuous mentions, some of them twice, some with ids."""
    gold = entaug.read(TRAIN)
    sentences = []
    for i, sentence in enumerate(gold):
        n = len(sentence)
        extra = [Mention("OUTER", [(0, n)])] if i % 3 == 0 else []
        extra += [Mention("GAP", [(0, 1), (n - 1, n)])] if i % 4 == 0 and n > 3 else []
        sentences.append(Sentence(sentence.tokens, [*sentence.mentions, *extra], id=f"s{i}" if i % 5 == 0 else None))
    path = folder / "nested.jsonl"
    entaug.write([*sentences, *(s.with_(id=None) for s in sentences[:40]), *sentences[1:4]], path)
    return path


# --------------------------------------------------------------------------------------------------------------- parts


def sentences_of_parts(file: CorpusFile, size: int, reading: ReadReport | None = None) -> tuple[list[Sentence], int]:
    reading = reading or ReadReport()
    parts = list(parts_of(file, reading, size))
    return [sentence for part in parts for sentence in part.sentences(file, reading)], len(parts)


@pytest.mark.parametrize("size", [1, 60, 1000, 4096, 10**7])
@pytest.mark.parametrize(
    "name", ["train.conll", "crlf.conll", "train.conll.gz", "train.jsonl", "train.jsonl.gz", "t.brat"]
)
def test_parts_hold_the_sentences_of_the_file(tmp_path: Path, name: str, size: int) -> None:
    path = tmp_path / name
    if name == "crlf.conll":
        path.write_bytes(b"\xef\xbb\xbf" + TRAIN.read_bytes().replace(b"\n", b"\r\n"))
    elif name == "t.json":
        entaug.write(entaug.read(TRAIN), path, "gliner")
    else:
        entaug.write(entaug.read(TRAIN), path)
    file = open_file(path)
    sentences, count = sentences_of_parts(file, size)
    assert sentences == list(file.sentences())
    if size < 5000 and name != "t.json":
        assert count > 1


COMMENTS = """# newdoc

# sent_id = a
Ada B-PER
sings O

# a comment
# after a comment

-DOCSTART- O

Bo B-PER
-DOCSTART- O
\u00a0
Ek B-PER
 \t
#1 O
Al B-PER

# the last
"""


@pytest.mark.parametrize("size", range(1, len(COMMENTS) + 10, 3))
def test_comments_stay_with_the_sentence_behind_them(tmp_path: Path, size: int) -> None:
    for start in ("", "\ufeff"):
        path = tmp_path / "a.conll"
        path.write_text(start + COMMENTS, encoding="utf-8")
        file = open_file(path)
        whole, apart = ReadReport(), ReadReport()
        sentences, _ = sentences_of_parts(file, size, apart)
        assert sentences == list(file.sentences(whole))
        assert [s.layout for s in sentences] == [s.layout for s in file.sentences()]
        assert (apart.notes, apart.repaired) == (whole.notes, whole.repaired)


# ----------------------------------------------------------------------------------------------------------- the result


CASES = [
    ("mr", ".conll", {}),
    ("sis", ".jsonl", {"only_new": True}),
    ("lwtr:copies=3,p=0.6", ".conll.gz", {}),
    ("mr+sis:copies=2", ".jsonl.gz", {}),
    ("mr", ".jsonl", {"parameters": {"filters": "duplicates+similarity:min_similarity=0.9"}}),
    ("mr", ".conll", {"parameters": {"mentions": {"PER": ["Ulm", "Bad Homburg"]}}}),
]


@pytest.mark.parametrize(("method", "extension", "options"), CASES)
@pytest.mark.parametrize("corpus", ["flat", "nested"])
@pytest.mark.usefixtures("inline")
def test_the_number_of_processes_changes_nothing(
    tmp_path: Path, method: str, extension: str, options: dict[str, Any], corpus: str
) -> None:
    path = repeated(tmp_path, 2) if corpus == "flat" else nested(tmp_path)
    if corpus == "nested" and "conll" in extension:
        extension = extension.replace("conll", "jsonl")
    if "filters" in str(options):
        options = {**options, "rejected": tmp_path / "rejected.jsonl"}
    wanted = summary_of(path, tmp_path / f"one{extension}", method, 1, **options)
    rejected = (tmp_path / "rejected.jsonl").read_bytes() if "rejected" in options else b""
    for jobs in (2, 3):
        assert summary_of(path, tmp_path / f"some{extension}", method, jobs, **options) == wanted
        if "rejected" in options:
            assert (tmp_path / "rejected.jsonl").read_bytes() == rejected != b""


def test_two_processes_give_the_bytes_of_one(tmp_path: Path) -> None:
    gold = repeated(tmp_path, 3)
    wanted = summary_of(gold, tmp_path / "one.conll", "mr", 1)
    assert summary_of(gold, tmp_path / "two.conll", "mr", 2) == wanted


@pytest.mark.slow
@pytest.mark.parametrize(("method", "extension", "options"), CASES)
def test_processes_give_the_bytes_of_one(tmp_path: Path, method: str, extension: str, options: dict[str, Any]) -> None:
    for path in (repeated(tmp_path, 20), nested(tmp_path)):
        suffix = extension.replace("conll", "jsonl") if path.suffix == ".jsonl" else extension
        wanted = summary_of(path, tmp_path / f"one{suffix}", method, 1, **options)
        for jobs in (2, 3):
            assert summary_of(path, tmp_path / f"some{suffix}", method, jobs, **options) == wanted


@pytest.mark.usefixtures("inline")
def test_standard_output_is_the_same_too(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    gold = repeated(tmp_path, 2)
    written = []
    for jobs in ("1", "2"):
        assert main(["augment", str(gold), "-m", "sis", "--jobs", jobs, "--quiet"]) == 0
        written.append(capfdbinary.readouterr().out)
    assert written[0] == written[1] != b""


FILTERS = "validity+duplicates:threshold=0.8+mentions:match_words=false"


def filtered(path: Path, folder: Path, jobs: int) -> tuple[bytes, bytes, dict[str, Any]]:
    out, rejected = folder / "kept.jsonl", folder / "rejected.jsonl"
    filters = [*create_filters(FILTERS), Leakage(held_out=list(entaug.read(TRAIN))[:20], threshold=0.9)]
    summary = entaug.filter(path, out, filters, gold=TRAIN, rejected=rejected, force=True, jobs=jobs)
    return out.read_bytes(), rejected.read_bytes(), {**vars(summary), "seconds": 0}


@pytest.mark.usefixtures("inline")
def test_filters_by_several_processes(tmp_path: Path) -> None:
    augment_file(TRAIN, tmp_path / "new.jsonl", parse_methods("lwtr+mr:copies=4"))
    wanted = filtered(tmp_path / "new.jsonl", tmp_path, 1)
    assert wanted[0]
    assert wanted[1]
    for jobs in (2, 3):
        assert filtered(tmp_path / "new.jsonl", tmp_path, jobs) == wanted


@pytest.mark.usefixtures("inline")
def test_measures_by_several_processes(tmp_path: Path) -> None:
    # One that has no value, because there are no mentions, in both ways.
    (tmp_path / "plain.jsonl").write_text('{"tokens": ["No", "names"]}\n', encoding="utf-8")
    augment_file(TRAIN, tmp_path / "new.jsonl", parse_methods("lwtr+mr:copies=2"))
    files = [tmp_path / "new.jsonl", tmp_path / "plain.jsonl"]
    without: dict[str, Any] = {"models": dict.fromkeys(("causal_lm", "masked_lm", "encoder")), "gold": TRAIN}
    texts = []
    for jobs in (1, 2):
        entaug.quality(files, tmp_path / "table.json", force=True, jobs=jobs, **without)
        texts.append((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert "undefined because" in texts[0]


@pytest.mark.slow
def test_processes_filter_and_measure_the_same(tmp_path: Path) -> None:
    augment_file(TRAIN, tmp_path / "new.jsonl", parse_methods("lwtr+mr:copies=4"))
    assert filtered(tmp_path / "new.jsonl", tmp_path, 2) == filtered(tmp_path / "new.jsonl", tmp_path, 1)
    tables = []
    for jobs in ("1", "2"):
        out = tmp_path / f"table-{jobs}.md"
        given = ["quality", str(tmp_path / "new.jsonl"), "--gold", str(TRAIN), "--no-models", "-o", str(out)]
        assert main([*given, "--jobs", jobs]) == 0
        tables.append(out.read_text(encoding="utf-8"))
    assert tables[0] == tables[1]


@pytest.mark.usefixtures("inline")
def test_check_and_convert_by_several_processes(tmp_path: Path) -> None:
    named = nested(tmp_path)
    for path in (repeated(tmp_path, 2), named):
        results = []
        for jobs in (1, 2):
            out = tmp_path / f"out-{jobs}{'.jsonl' if path is not named else '.json'}"
            to: dict[str, Any] = {}
            if path is named:
                to = {"to_format": "spacy-json", "write_options": {"overlap": "outermost"}}
            converted = entaug.convert(path, out, jobs=jobs, allow_loss=["all"], **to)
            checked = entaug.check(path, jobs=jobs)
            results.append((out.read_bytes(), {**vars(converted), "output": ""}, checked))
        assert results[0] == results[1]
        assert results[1][2].counts.sentences > results[1][2].repeated > 0
    bad = tmp_path / "bad.conll"
    bad.write_text(TRAIN.read_text() + "\nfaulty X-Y-Z\n\nfaulty I-PER\n")
    assert entaug.check(bad, jobs=2) == entaug.check(bad, jobs=1)
    assert len(entaug.check(bad, jobs=2).errors) == 2
    errors = []
    for jobs in (1, 2):
        with pytest.raises(LossError) as caught:
            entaug.convert(named, tmp_path / "out.conll", jobs=jobs)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert not (tmp_path / "out.conll").exists()


# -------------------------------------------------------------------------------------------------------- interruptions


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("name", ["out.conll", "out.jsonl.gz"])
def test_another_number_of_processes_may_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(checkpoints, "_CHECKPOINT_SECONDS", 0.0)
    gold, out = repeated(tmp_path, 8), tmp_path / name
    wanted = summary_of(gold, tmp_path / f"whole-{name}", "mr", 1)
    for jobs, sentences in ((2, 256), (1, 512), (3, 600)):
        with pytest.raises(KeyboardInterrupt):
            augment_file(gold, out, create_augmenter("mr"), jobs=jobs, progress=interrupt_after(sentences))
        assert not out.exists()
    summary = augment_file(gold, out, create_augmenter("mr"), jobs=2)
    assert summary.resumed_at >= 600
    assert out.read_bytes() == wanted[0]
    assert summary.statistics.to_dict() == wanted[1]["statistics"].to_dict()
    assert summary.after == wanted[1]["after"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["big.conll", name, f"whole-{name}"])


def _die(_job: Any, _task: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _fail(_job: Any, _task: Any) -> None:
    raise ParameterError("this is wrong")


@pytest.mark.slow
def test_a_process_that_dies_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gold, out = repeated(tmp_path, 3), tmp_path / "out.conll"
    with monkeypatch.context() as patched:
        patched.setattr(augmentation, "draft_part", _die)
        with pytest.raises(
            EntaugError, match=r"a process ended before its work was done.*; run the same command again"
        ):
            augment_file(gold, out, create_augmenter("sis"), jobs=2)
        patched.setattr(augmentation, "draft_part", _fail)
        with pytest.raises(ParameterError, match="this is wrong"):
            augment_file(gold, out, create_augmenter("sis"), jobs=2)
    assert not out.exists()
    augment_file(gold, out, create_augmenter("sis"), jobs=2)
    assert out.read_bytes() == summary_of(gold, tmp_path / "one.conll", "sis", 1)[0]


def children(pid: int) -> list[int]:
    return [int(p) for t in Path(f"/proc/{pid}/task").iterdir() for p in (t / "children").read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_all_processes_end_at_once(tmp_path: Path, number: signal.Signals) -> None:
    gold, out = repeated(tmp_path, 2000), tmp_path / "out.conll"
    command = [sys.executable, "-m", "entaug", "augment", str(gold), "-m", "sis", "--jobs", "2", "-o", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        partial = Path(f"{out}.partial")

        def has_begun() -> bool:
            assert process.poll() is None
            return partial.exists() and partial.stat().st_size > gold.stat().st_size * 1.05

        wait_until(has_begun)
        workers = children(process.pid)
        assert len(workers) >= 2
        process.send_signal(number)
        err = process.communicate(timeout=600)[1]
    if number != signal.SIGKILL:
        assert err == b"entaug: interrupted; run the same command again to resume\n"
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    assert not out.exists()


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.usefixtures("inline")
def test_errors_name_the_line(tmp_path: Path) -> None:
    lines = TRAIN.read_text().splitlines()
    lines[1500] = "faulty X-Y-Z"
    bad = tmp_path / "bad.conll"
    bad.write_text("\n".join(lines))
    ids = tmp_path / "ids.conll"
    ids.write_text("".join(f"# sent_id = s{i % 300}\nAda{i % 7} B-PER\nsings O\n\n" for i in range(301)))
    for path in (bad, ids):
        errors = []
        for jobs in (1, 2):
            with pytest.raises(InputError) as caught:
                augment_file(path, tmp_path / "out.conll", create_augmenter("sis"), jobs=jobs)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]
        assert ".conll:" in errors[0]
        assert sorted(p.name for p in tmp_path.iterdir() if "out" in p.name) == []
    wanted = summary_of(ids, tmp_path / "one.conll", "lwtr", 1, repair=True)
    assert summary_of(ids, tmp_path / "two.conll", "lwtr", 2, repair=True) == wanted
    gaps = nested(tmp_path)
    with pytest.raises(LossError):
        augment_file(gaps, tmp_path / "out.conll", create_augmenter("sis"), jobs=2)


def test_models_and_wrong_numbers_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = fails(capsys, 2, "augment", str(TRAIN), "-m", "sis", "-o", str(tmp_path / "o.conll"), "--jobs", "0")
    assert "--jobs must be at least 1, not 0" in said
    augmenter = create_augmenter("sis", guard=True)
    with pytest.raises(ParameterError, match=r"sis uses models, which compute in one process .*; leave out --jobs"):
        augment_file(TRAIN, tmp_path / "o.conll", augmenter, jobs=2)
    augment_file(TRAIN, tmp_path / "new.jsonl", parse_methods("sis"))
    consistency = Consistency(tagger=FakeTagger())
    with pytest.raises(ParameterError, match=r"consistency uses models, .*; leave out --jobs"):
        entaug.filter(tmp_path / "new.jsonl", tmp_path / "o.jsonl", [consistency], jobs=2)


def test_small_files_start_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(jobs: int) -> None:
        raise AssertionError(jobs)

    monkeypatch.setattr(processes.Workers, "start", start)
    augment_file(TRAIN, tmp_path / "out.conll", create_augmenter("sis"), jobs=None)


def test_a_compressed_part_is_read_from_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.conll.gz"
    path.write_bytes(gzip.compress(TRAIN.read_bytes()))
    parts = list(parts_of(open_file(path), ReadReport(), 4096))
    assert b"".join(part.content or b"" for part in parts) == TRAIN.read_bytes()
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="broken gzip file"):
        list(parts_of(CorpusFile(path, open_file(TRAIN).format, open_file(TRAIN).dialect), ReadReport(), 4096))
