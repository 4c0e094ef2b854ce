"""Several processes share the work of a command, and nothing in the result tells how many."""

from __future__ import annotations

import contextlib
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
from entaug.commands.main import main
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, LossError, ParameterError
from entaug.files import checkpoints
from entaug.filters import Consistency
from entaug.methods import augment, create_augmenter
from entaug.methods.augment import augment_file
from entaug.methods.combined import parse_methods
from helpers.command_line import fails, heeding_ctrl_c, interrupt_after, repeated
from helpers.counting import wait_until

TRAIN = EXAMPLE / "train.conll"


class Inline(processes.Workers):
    """What `Workers` does, without processes: tests of parts need no seconds to start any."""

    def __init__(self, jobs: int = 2) -> None:
        self.jobs = jobs

    def begin(self, function: Any, shared: Any) -> None:
        sent(shared)

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


def _die_once(work: augment.Work, block: augment.Block | None) -> Any:
    """Kill this process in the middle, once for each work."""
    died = Path(os.environ["DIED"])
    if block is not None and block.start and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return augment.draw_block(work, block)


def _die(_work: Any, _block: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _fail(_work: Any, _block: Any) -> None:
    raise ParameterError("this is wrong")


def test_a_killed_process_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gold, out = repeated(tmp_path, 3), tmp_path / "out.conll"
    wanted = summary_of(gold, tmp_path / "one.conll", "mr", 1)
    monkeypatch.setenv("DIED", str(tmp_path / "died"))
    function = sys.modules[__name__]._die_once
    with monkeypatch.context() as patched:
        patched.setattr(augment, "draw_block", function)
        assert summary_of(gold, out, "mr", 2) == wanted
    assert (tmp_path / "died").exists()


@pytest.mark.slow
def test_processes_that_die_again_and_again_are_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold, out = repeated(tmp_path, 3), tmp_path / "out.conll"
    with monkeypatch.context() as patched:
        patched.setattr(augment, "draw_block", _die)
        with pytest.raises(
            EntaugError, match=r"a process ended before its work was done.*; run the same command again"
        ):
            augment_file(gold, out, create_augmenter("sis"), jobs=2)
        patched.setattr(augment, "draw_block", _fail)
        with pytest.raises(ParameterError, match="this is wrong"):
            augment_file(gold, out, create_augmenter("sis"), jobs=2)
    assert not out.exists()
    augment_file(gold, out, create_augmenter("sis"), jobs=2)
    assert out.read_bytes() == summary_of(gold, tmp_path / "one.conll", "sis", 1)[0]


def test_processes_with_a_model_write_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from helpers import tiny

    model = tiny.save(tmp_path / "tiny-bert", "bert")
    filters = "similarity:min_similarity=0.2"
    outputs = []
    for jobs in (1, 2):
        method = create_augmenter(
            "lm",
            masked_lm=str(model),
            filters=filters,
            min_p=0.0,
            guard=False,
            show_source=False,
            dependency_parser=None,  # in other processes the fixture of tests hides no models that are prepared
            causal_lm=None,
        )
        augment_file(TRAIN, tmp_path / f"{jobs}.conll", method, jobs=jobs)
        outputs.append((tmp_path / f"{jobs}.conll").read_bytes())
    assert outputs[0] == outputs[1]


def test_a_sentence_passes_few_functions(tmp_path: Path) -> None:
    """From file to file, all that runs when formats and parameters are known; comprehensions and lambdas are parts."""
    found: set[str] = set()
    folder = str(Path(entaug.__file__).parent)

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folder) and not code.co_name.startswith("<"):
            found.add(f"{code.co_filename}:{code.co_qualname}")

    augment_file(TRAIN, tmp_path / "warm.conll", create_augmenter("mr"))
    method = create_augmenter("mr")
    sys.setprofile(note)
    try:
        augment_file(TRAIN, tmp_path / "out.conll", method)
    finally:
        sys.setprofile(None)
    assert 50 < len(found) <= 350, sorted(found)


def children(pid: int) -> list[int]:
    return [int(p) for t in Path(f"/proc/{pid}/task").iterdir() for p in (t / "children").read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_all_processes_end_at_once(tmp_path: Path, number: signal.Signals) -> None:
    gold, out = repeated(tmp_path, 2000), tmp_path / "out.conll"
    command = [sys.executable, "-m", "entaug", "augment", str(gold), "-m", "sis", "--jobs", "2", "-o", str(out)]
    with heeding_ctrl_c(), subprocess.Popen(command, stderr=subprocess.PIPE) as process:
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
    ids.write_text("".join(f"# sent_id = s{i % 300}\nAda{i % 7} B-PER\nsings{i} O\n\n" for i in range(301)))
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


class Unsendable(Consistency):
    def __reduce__(self) -> Any:
        raise TypeError("it has an open connection")


def test_models_and_wrong_numbers_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = fails(capsys, 2, "augment", str(TRAIN), "-m", "sis", "-o", str(tmp_path / "o.conll"), "--jobs", "0")
    assert "--jobs must be at least 1, not 0" in said
    with pytest.raises(ParameterError, match=r"cannot be sent to other processes .*; give its models by name"):
        augment_file(TRAIN, tmp_path / "o.conll", create_augmenter("sis", filters=Unsendable()), jobs=2)


def test_small_files_start_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(jobs: int) -> None:
        raise AssertionError(jobs)

    monkeypatch.setattr(processes.Workers, "start", start)
    augment_file(TRAIN, tmp_path / "out.conll", create_augmenter("sis"), jobs=None)
