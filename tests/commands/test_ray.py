"""A corpus augmented on a Ray cluster is the corpus augmented by one process.

The first tests run what actors run in this process; the others need Ray (``make ray``), and skip without it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, LossError, OutputError, ParameterError
from entaug.files import checkpoints
from entaug.methods import METHODS, augment, create_augmenter
from entaug.methods.augment import augment_file
from entaug.methods.combined import parse_methods
from entaug.methods.ray import Pool, RayWorkers, pool_for
from helpers.command_line import fails, interrupt_after, repeated
from helpers.faked_methods import make

TRAIN = EXAMPLE / "train.conll"
# Ray and the libraries that it loads warn about one another.
pytestmark = pytest.mark.filterwarnings("ignore")


class Inline:
    """What a cluster does, in this process: each of two actors has its own copy of the work."""

    def begin(self, function: Any, shared: Any) -> None:
        self.actors = [sent(shared), sent(shared)]
        for one in self.actors:
            function(one, None)

    def map(self, function: Any, shared: Any, tasks: Any) -> Iterator[Any]:
        for number, task in enumerate(tasks):
            yield sent(function(self.actors[number % 2], sent(task)))


def sent(value: Any) -> Any:
    """What another machine gets."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RayWorkers, "start", lambda address, augmenter, jobs: contextlib.nullcontext(Inline()))


def on_ray(gold: Path, out: Path, method: Any, *, jobs: int | None = None, **options: Any) -> Any:
    return augment_file(gold, out, method, executor="ray", jobs=jobs, **options)


def same_as_one_process(gold: Path, folder: Path, method: Any, out: str = "out.conll", **options: Any) -> None:
    """Compare the output, the rejected sentences and the summary with those of one process; `method` creates it."""
    jobs = options.pop("jobs", None)
    wanted, got = folder / f"whole-{out}", folder / out
    one = augment_file(gold, wanted, method(), rejected=folder / "r1.jsonl", **options)
    many = on_ray(gold, got, method(), rejected=folder / "r2.jsonl", jobs=jobs, **options)
    assert got.read_bytes() == wanted.read_bytes()
    assert (folder / "r1.jsonl").read_bytes() == (folder / "r2.jsonl").read_bytes()
    different = {"output", "seconds"}
    plain, other = ({k: v for k, v in s.to_dict().items() if k not in different} for s in (one, many))
    assert plain == other


@pytest.mark.parametrize(
    ("method", "parameters", "out", "options"),
    [
        ("mr:copies=2+sis", {}, "out.conll", {}),
        ("lwtr", {}, "out.jsonl.gz", {"only_new": True, "to_format": "jsonl"}),
        ("mr", {"filters": "similarity:min_similarity=0.9"}, "out.json", {"to_format": "gliner"}),
        ("mr", {"mentions": {"PER": ["Grace Hopper", "Ada Lovelace"]}}, "out.conll", {}),
    ],
)
def test_blocks_are_the_whole(
    tmp_path: Path, inline: None, method: str, parameters: dict[str, Any], out: str, options: dict[str, Any]
) -> None:
    same_as_one_process(repeated(tmp_path, 3), tmp_path, lambda: parse_methods(method, **parameters), out, **options)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in {"bt", "lm", "sr"} else pytest.mark.slow) for n in sorted(METHODS)]
)
def test_every_method_runs_in_workers(tmp_path: Path, inline: None, name: str) -> None:
    same_as_one_process(TRAIN, tmp_path, lambda: deepcopy(make(name)))  # with counts of its own


def test_sentences_with_ids_and_few_sentences(tmp_path: Path, inline: None) -> None:
    gold = entaug.read(TRAIN)
    entaug.write([s.with_(id=f"s{i}") for i, s in enumerate(gold[:7])], tmp_path / "gold.jsonl")
    same_as_one_process(tmp_path / "gold.jsonl", tmp_path, lambda: create_augmenter("sis"), "out.jsonl")


def test_an_interrupted_run_goes_on(tmp_path: Path, inline: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_CHECKPOINT_SECONDS", 0.0)
    gold, out = repeated(tmp_path, 5), tmp_path / "out.conll"
    augment_file(gold, tmp_path / "whole.conll", create_augmenter("mr"))
    with pytest.raises(KeyboardInterrupt):
        on_ray(gold, out, create_augmenter("mr"), progress=interrupt_after(200))
    for options in ({"only_new": True}, {"method": "sis"}):
        method = create_augmenter(str(options.pop("method", "mr")))
        with pytest.raises(OutputError, match="left by an interrupted run with other input, options or models; repeat"):
            on_ray(gold, out, method, **options)
    assert on_ray(gold, out, create_augmenter("mr")).resumed_at >= 200
    assert out.read_bytes() == (tmp_path / "whole.conll").read_bytes()


def test_a_run_that_cannot_succeed_leaves_nothing(tmp_path: Path, inline: None) -> None:
    gold = [s.with_(mentions=(Mention("GAP", [(0, 1), (2, 3)]),)) for s in entaug.read(TRAIN) if len(s) > 4]
    entaug.write(gold, tmp_path / "gold.jsonl")
    with pytest.raises(LossError):
        on_ray(tmp_path / "gold.jsonl", tmp_path / "o.conll", create_augmenter("sis"))
    with pytest.raises(InputError, match="generated no sentence"):
        on_ray(TRAIN, tmp_path / "o.conll", create_augmenter("sis", p=0.0))
    (tmp_path / "bad.conll").write_text("Ada B-PER\nsings I-LOC\n")
    with pytest.raises(InputError, match=r"bad\.conll:2"):
        on_ray(tmp_path / "bad.conll", tmp_path / "o.conll", create_augmenter("sis"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.conll", "gold.jsonl"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("version", "0.0.0", "a worker has entaug .*, and the first process entaug 0.0.0; install the same version"),
        ("signature", "sis|other", r"a worker has sis\|.*, and the first process sis\|other; install the same version"),
    ],
)
def test_a_worker_that_differs_is_an_error(
    tmp_path: Path, inline: None, monkeypatch: pytest.MonkeyPatch, field: str, value: str, message: str
) -> None:
    begin = Inline.begin
    monkeypatch.setattr(Inline, "begin", lambda self, f, shared: begin(self, f, replace(shared, **{field: value})))
    with pytest.raises(EntaugError, match=message):
        on_ray(TRAIN, tmp_path / "o.conll", create_augmenter("sis"))


def test_methods_that_ask_a_server_are_refused(tmp_path: Path, inline: None) -> None:
    method: Any = make("rewrite").load()
    method.generator_.remote_host = "example.org"
    with pytest.raises(ParameterError, match=r"asks .* behind a server.*; leave out `jobs` and `executor`"):
        on_ray(TRAIN, tmp_path / "o.conll", method)


def test_actors_follow_from_cluster_and_method() -> None:
    def chosen(*machines: tuple[float, float], jobs: int | None = None, device: str | None = None, **of: bool) -> Pool:
        return pool_for(machines, jobs, device=device, **{"uses_models": True, "on_gpu": True, **of})

    assert chosen((8, 0), (8, 2)) == Pool(2, 1, 1.0)
    assert chosen((8, 2), jobs=3) == Pool(3, 1, 0.5)
    assert chosen((8, 2), jobs=1) == Pool(1, 1, 1.0)
    assert chosen((8, 2), device="cpu") == Pool(1, 8)
    assert chosen((8, 2), on_gpu=False) == Pool(1, 8), "spaCy and lists of words"
    assert chosen((8, 2), uses_models=False, on_gpu=False) == Pool(8, 1)
    assert chosen((8, 0), (4, 0), (0, 0)) == Pool(3, 4)
    assert chosen((8, 0), (4, 0), jobs=2) == Pool(2, 4)
    assert chosen((2, 0), jobs=2) == Pool(2, 1)
    with pytest.raises(ParameterError, match="the cluster has no GPU; leave out `device`"):
        chosen((8, 0), device="cuda")
    with pytest.raises(ParameterError, match="the cluster has 8 CPUs; pass `jobs=8` at most"):
        chosen((8, 0), jobs=9)
    with pytest.raises(ParameterError, match="the cluster has 0 CPUs; start more machines"):
        chosen((0, 0))


def test_the_command_line_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("augment", str(TRAIN), "-m", "sis", "-o", str(tmp_path / "o.conll"))
    assert "leave out --part or --executor" in fails(capsys, 2, *command, "--executor", "ray", "--part", "1/2")
    assert "pass --executor ray as well" in fails(capsys, 2, *command, "--address", "auto")
    monkeypatch.setitem(sys.modules, "ray", None)
    said = fails(capsys, 2, *command, "--executor", "ray")
    assert "the package 'ray' is not installed; run: pip install 'entaug[ray]'" in said


# ------------------------------------------------------------------------------------------------------- a real cluster


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A cluster of two workers, which this process is connected to."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: run make ray")
    with pytest.MonkeyPatch.context() as patch:
        source = str(Path(entaug.__file__).parent.parent)
        patch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", str(os.nice(0)))  # 15 by default, and starved beside other work
        ray.init(
            num_cpus=2, object_store_memory=150 << 20, include_dashboard=False, log_to_driver=False, logging_level=40
        )
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # actors cannot import this file
        yield ray
        ray.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mr", "mr:copies=2+sis"])
def test_a_cluster_writes_the_same_bytes(ray: Any, tmp_path: Path, method: str) -> None:
    same_as_one_process(repeated(tmp_path, 3), tmp_path, lambda: parse_methods(method))


@pytest.mark.slow
def test_actors_load_models(ray: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from helpers import tiny

    model = tiny.save(tmp_path / "tiny-bert", "bert")

    def method() -> Any:
        return create_augmenter(
            "lm", masked_lm=str(model), filters="similarity:min_similarity=0.2", min_p=0.0, guard=False
        )

    same_as_one_process(TRAIN, tmp_path, method, jobs=2)


class Misbehaving:
    """Actors that do something else once, or always."""

    def __init__(self, kind: str, died: Path) -> None:
        self.kind, self.died = kind, died

    def __call__(self, work: augment.Work, block: augment.Block | None) -> Any:
        if block is None or (self.kind == "die" and self.died.exists()):
            return augment.draw_block(work, block)
        if self.kind == "refuse":
            raise OutputError("is full", path="disk", remedy="buy another")
        if self.kind == "break":
            raise ZeroDivisionError("a fault of ours")
        self.died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
        return None


@pytest.mark.slow
def test_an_actor_that_is_killed_is_replaced(ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = RayWorkers.begin
    function = Misbehaving("die", tmp_path / "died")
    monkeypatch.setattr(RayWorkers, "begin", lambda self, _, shared: begin(self, function, shared))
    same_as_one_process(repeated(tmp_path, 4), tmp_path, lambda: create_augmenter("mr"))
    assert (tmp_path / "died").exists()


DRIVER = """
import os, signal, sys
from entaug.files import checkpoints
from entaug.methods import create_augmenter
from entaug.methods.augment import augment_file

checkpoints._CHECKPOINT_SECONDS = 0.0

def progress(stage, done, total):
    if stage == "augmenting" and done >= 200:
        os.kill(os.getpid(), signal.SIGKILL)

gold, out, address = sys.argv[1:]
augment_file(gold, out, create_augmenter("mr"), executor="ray", address=address, jobs=None, progress=progress)
"""


@pytest.mark.slow
def test_a_driver_that_is_killed_goes_on(ray: Any, tmp_path: Path) -> None:
    gold, out = repeated(tmp_path, 5), tmp_path / "out.conll"
    address = ray.get_runtime_context().gcs_address
    killed = subprocess.run([sys.executable, "-c", DRIVER, str(gold), str(out), address], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not out.exists()
    augment_file(gold, tmp_path / "whole.conll", create_augmenter("mr"))
    assert on_ray(gold, out, create_augmenter("mr")).resumed_at >= 200
    assert out.read_bytes() == (tmp_path / "whole.conll").read_bytes()


@pytest.mark.slow
def test_errors_of_actors_arrive_as_they_are(ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = RayWorkers.begin
    for kind, expected, message in (
        ("refuse", OutputError, r"^disk: is full; buy another$"),
        ("break", EntaugError, r"^a worker of the cluster failed \(.*ZeroDivisionError.*a fault of ours\)"),
    ):
        function = Misbehaving(kind, tmp_path / "died")
        monkeypatch.setattr(
            RayWorkers, "begin", lambda self, _, shared, function=function: begin(self, function, shared)
        )
        with pytest.raises(expected, match=message):
            on_ray(TRAIN, tmp_path / "o.conll", create_augmenter("sis"))


@pytest.mark.slow
def test_the_command_line_starts_a_cluster_or_names_the_one_that_is_missing(ray: Any, tmp_path: Path) -> None:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        argv = ["augment", str(TRAIN), "-m", "sis", "-o", str(tmp_path / "o.conll"), "--executor", "ray", *arguments]
        run = [sys.executable, "-m", "entaug", *argv]
        return subprocess.run(run, check=False, capture_output=True, text=True, env=os.environ | {"RAY_ADDRESS": ""})

    for address, message in (
        ("localhost:1", "entaug: error: localhost:1: no Ray cluster: nothing answers there (Connection refused)"),
        ("nonsense", "entaug: error: nonsense: no Ray cluster: the address is not HOST:PORT or auto"),
    ):
        done = command("--address", address)
        assert done.returncode != 0
        assert done.stderr == f"{message}; check --address, or start one: ray start --head\n"
    done = command("--jobs", "1", "--quiet")
    assert (done.returncode, done.stdout) == (0, "")
    assert "entaug" not in done.stderr
    augment_file(TRAIN, tmp_path / "whole.conll", create_augmenter("sis"))
    assert (tmp_path / "o.conll").read_bytes() == (tmp_path / "whole.conll").read_bytes()
