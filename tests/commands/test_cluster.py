"""A corpus augmented on a Ray cluster is the corpus augmented by one process.

The first tests run what actors run in this process; the others need Ray (``make ray``), and skip without it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug.core.data import Mention
from entaug.errors import EntaugError, InputError, LossError, OutputError, ParameterError
from entaug.methods import METHODS, cluster, create_augmenter, ray_pool
from entaug.methods.augment import augment_file
from entaug.methods.cluster import augment_on_ray
from entaug.methods.combined import parse_methods
from entaug.methods.ray_pool import Pool, pool_for
from helpers.command_line import fails, interrupt_after, repeated
from helpers.faked_methods import make

TRAIN = EXAMPLE / "train.conll"
# Ray and the libraries that it loads warn about one another.
pytestmark = pytest.mark.filterwarnings("ignore")


class Inline(ray_pool.Cluster):
    """What a cluster does, in this process and in any order."""

    def pool(self, augmenter: Any, jobs: int | None) -> Pool:
        return Pool(2, 1)

    def map(self, pool: Any, kind: Any, shared: Any, tasks: Any) -> Iterator[Any]:
        function = kind(sent(shared))
        waiting = list(tasks)
        random.Random(1).shuffle(waiting)
        for number, task in waiting:
            yield sent((number, function(sent(task))))


def sent(value: Any) -> Any:
    """What another machine gets."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_BY_RULES", (50, 50))


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch, small_parts: None) -> None:
    monkeypatch.setattr(cluster, "connected", lambda address: contextlib.nullcontext(Inline()))


def same_as_one_process(gold: Path, folder: Path, method: Any, out: str = "out.conll", **options: Any) -> None:
    """Compare the output, the rejected sentences and the summary with those of one process; `method` creates it."""
    jobs = options.pop("jobs", None)
    wanted, got = folder / f"whole-{out}", folder / out
    one = augment_file(gold, wanted, method(), rejected=folder / "r1.jsonl", **options)
    many = augment_on_ray(gold, got, method(), rejected=folder / "r2.jsonl", jobs=jobs, **options)
    assert got.read_bytes() == wanted.read_bytes()
    assert (folder / "r1.jsonl").read_bytes() == (folder / "r2.jsonl").read_bytes()
    different = {"output", "seconds", "usage"}
    plain, other = ({k: v for k, v in s.to_dict().items() if k not in different} for s in (one, many))
    assert plain == other
    assert not (folder / f"{out}.parts").exists()


@pytest.mark.parametrize(
    ("method", "parameters", "out", "options"),
    [
        ("mr:copies=2+sis", {}, "out.conll", {}),
        ("lwtr", {}, "out.jsonl.gz", {"only_new": True, "to_format": "jsonl"}),
        ("mr", {"filters": "similarity:min_similarity=0.9"}, "out.json", {"to_format": "gliner"}),
        ("mr", {"mentions": {"PER": ["Grace Hopper", "Ada Lovelace"]}}, "out.conll", {}),
    ],
)
def test_parts_are_the_whole(
    tmp_path: Path, inline: None, method: str, parameters: dict[str, Any], out: str, options: dict[str, Any]
) -> None:
    same_as_one_process(repeated(tmp_path, 3), tmp_path, lambda: parse_methods(method, **parameters), out, **options)


# Of those that cannot be saved, a few in every run of the tests.
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in {"bt", "lm", "sr"} else pytest.mark.slow) for n in sorted(METHODS)]
)
def test_every_method_runs_in_workers(tmp_path: Path, inline: None, name: str) -> None:
    same_as_one_process(TRAIN, tmp_path, lambda: make(name))


def test_sentences_with_ids_and_few_sentences(tmp_path: Path, inline: None) -> None:
    gold = entaug.read(TRAIN)
    entaug.write([s.with_(id=f"s{i}") for i, s in enumerate(gold[:7])], tmp_path / "gold.jsonl")
    same_as_one_process(tmp_path / "gold.jsonl", tmp_path, lambda: create_augmenter("sis"), "out.jsonl")


def test_an_interrupted_run_goes_on(tmp_path: Path, inline: None, monkeypatch: pytest.MonkeyPatch) -> None:
    gold, out, parts = repeated(tmp_path, 5), tmp_path / "out.conll", tmp_path / "out.conll.parts"
    augment_file(gold, tmp_path / "whole.conll", create_augmenter("mr"))
    with pytest.raises(KeyboardInterrupt):
        augment_on_ray(gold, out, create_augmenter("mr"), progress=interrupt_after(200))
    assert len(list(parts.glob("part-*-of-00010.jsonl.gz"))) == 4
    said = json.loads((parts / "manifest.json").read_text())
    assert {"content", "key", "fitted", "signature"} <= said.keys()

    def refused(**changes: Any) -> str:
        before = sorted(parts.iterdir())
        with pytest.raises(OutputError) as caught:
            augment_on_ray(changes.pop("gold", gold), out, create_augmenter(changes.pop("method", "mr")), **changes)
        assert sorted(parts.iterdir()) == before
        return str(caught.value)

    rest = "repeat that run, pass --force to drop it, or move it away"
    assert f"interrupted run with another input; {rest}" in refused(gold=repeated(tmp_path / "..", 4))
    assert f"with another method, other parameters or models; {rest}" in refused(method="sis")
    assert f"with other options; {rest}" in refused(only_new=True)

    done = sorted(parts.glob("part-*"))
    done[0].write_bytes(done[0].read_bytes()[:-30])
    done[1].write_bytes(done[2].read_bytes())
    made: list[int] = []
    work = cluster._work
    monkeypatch.setattr(
        cluster,
        "_work",
        lambda *a, **k: (made.append(task[0]) or task for task in work(*a, **k)),  # type: ignore[func-returns-value]
    )
    summary = augment_on_ray(gold, out, create_augmenter("mr"))
    assert (summary.resumed_at, len(made)) == (100, 8), "two parts were complete, and damaged ones are made again"
    assert out.read_bytes() == (tmp_path / "whole.conll").read_bytes()
    assert not parts.exists()


def test_force_drops_what_another_run_left_and_nothing_else(tmp_path: Path, inline: None) -> None:
    gold, out, parts = repeated(tmp_path, 5), tmp_path / "out.conll", tmp_path / "out.conll.parts"
    with pytest.raises(KeyboardInterrupt):
        augment_on_ray(gold, out, create_augmenter("mr"), progress=interrupt_after(200))
    augment_on_ray(gold, out, create_augmenter("sis"), force=True)
    augment_file(gold, tmp_path / "whole.conll", create_augmenter("sis"))
    assert out.read_bytes() == (tmp_path / "whole.conll").read_bytes()
    parts.mkdir()
    (parts / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="is a folder that holds something else; move it away"):
        augment_on_ray(gold, out, create_augmenter("sis"), force=True)
    assert (parts / "mine.txt").read_text() == "mine"


def test_a_run_that_cannot_succeed_leaves_nothing(tmp_path: Path, inline: None) -> None:
    gold = [s.with_(mentions=(Mention("GAP", [(0, 1), (2, 3)]),)) for s in entaug.read(TRAIN) if len(s) > 4]
    entaug.write(gold, tmp_path / "gold.jsonl")
    with pytest.raises(LossError):
        augment_on_ray(tmp_path / "gold.jsonl", tmp_path / "o.conll", create_augmenter("sis"))
    with pytest.raises(InputError, match="generated no sentence"):
        augment_on_ray(TRAIN, tmp_path / "o.conll", create_augmenter("sis", p=0.0))
    (tmp_path / "bad.conll").write_text("Ada B-PER\nsings I-LOC\n")
    with pytest.raises(InputError, match=r"bad\.conll:2"):
        augment_on_ray(tmp_path / "bad.conll", tmp_path / "o.conll", create_augmenter("sis"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.conll", "gold.jsonl"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("version", "0.0.0", "a worker has entaug .*, and the first process 0.0.0; install the same version"),
        ("signature", "sis|other", r"a worker has sis\|.*, and the first process sis\|other; install the same version"),
    ],
)
def test_a_worker_that_differs_is_an_error(
    tmp_path: Path, inline: None, monkeypatch: pytest.MonkeyPatch, field: str, value: str, message: str
) -> None:
    class Elsewhere(cluster.Drafter):
        def __init__(self, plan: Any) -> None:
            super().__init__(replace(plan, **{field: value}))

    monkeypatch.setattr(cluster, "Drafter", Elsewhere)
    with pytest.raises(EntaugError, match=message):
        augment_on_ray(TRAIN, tmp_path / "o.conll", create_augmenter("sis"))


def test_methods_that_ask_a_server_are_refused(tmp_path: Path, inline: None) -> None:
    method: Any = make("rewrite").load()
    method.generator_.remote_host = "example.org"
    with pytest.raises(ParameterError, match=r"asks .* behind a server.*; leave out --executor ray"):
        augment_on_ray(TRAIN, tmp_path / "o.conll", method)


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
    with pytest.raises(ParameterError, match="the cluster has no GPU; leave out --device"):
        chosen((8, 0), device="cuda")
    with pytest.raises(ParameterError, match="the cluster has 8 CPUs; pass --jobs 8 at most"):
        chosen((8, 0), jobs=9)
    with pytest.raises(ParameterError, match="the cluster has 0 CPUs; start more machines"):
        chosen((0, 0))


def test_tasks_are_sent_in_portions() -> None:
    tasks = [(i, b"x" * size) for i, size in enumerate([3, 3, 9, 1, 1, 1])]
    assert [[n for n, _ in some] for some in ray_pool._in_portions(tasks, 6)] == [[0, 1], [2], [3, 4, 5]]


def test_the_command_line_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    augment = ("augment", str(TRAIN), "-m", "sis", "-o", str(tmp_path / "o.conll"))
    assert "leave out --shard or --executor" in fails(capsys, 2, *augment, "--executor", "ray", "--shard", "1/2")
    assert "pass --executor ray as well" in fails(capsys, 2, *augment, "--address", "auto")
    standard_output = ("augment", str(TRAIN), "-m", "sis", "-o", "-", "--executor", "ray")
    assert "written to a file; name one" in fails(capsys, 3, *standard_output)
    monkeypatch.setitem(sys.modules, "ray", None)
    said = fails(capsys, 2, *augment, "--executor", "ray")
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
        yield ray
        ray.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mr", "mr:copies=2+sis"])
def test_a_cluster_writes_the_same_bytes(ray: Any, tmp_path: Path, small_parts: None, method: str) -> None:
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


@pytest.mark.slow
def test_an_actor_that_is_killed_is_replaced(
    ray: Any, tmp_path: Path, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    died = tmp_path / "died"

    class Dying(cluster.Drafter):
        def __call__(self, part: bytes) -> tuple[int, bytes]:
            result = super().__call__(part)
            if not died.exists():
                died.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return result

    monkeypatch.setattr(cluster, "Drafter", Dying)
    same_as_one_process(repeated(tmp_path, 4), tmp_path, lambda: create_augmenter("mr"))
    assert died.exists()


DRIVER = """
import os, signal, sys
from entaug.augmenters import METHODS, create_augmenter
from entaug.methods import cluster

cluster._BY_RULES = (50, 50)

def progress(stage, done, total):
    if stage == "augmenting" and done >= 100:
        os.kill(os.getpid(), signal.SIGKILL)

gold, out, address = sys.argv[1:]
cluster.augment_on_ray(gold, out, create_augmenter("mr"), address=address, progress=progress)
"""


@pytest.mark.slow
def test_a_driver_that_is_killed_goes_on(ray: Any, tmp_path: Path, small_parts: None) -> None:
    gold, out = repeated(tmp_path, 5), tmp_path / "out.conll"
    address = ray.get_runtime_context().gcs_address
    killed = subprocess.run([sys.executable, "-c", DRIVER, str(gold), str(out), address], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "out.conll.parts").glob("part-*"))) == 2
    assert not out.exists()
    augment_file(gold, tmp_path / "whole.conll", create_augmenter("mr"))
    assert augment_on_ray(gold, out, create_augmenter("mr")).resumed_at == 100
    assert out.read_bytes() == (tmp_path / "whole.conll").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.startswith(".")) == [
        "big.conll",
        "out.conll",
        "whole.conll",
    ]


@pytest.mark.slow
def test_errors_of_actors_arrive_as_they_are(
    ray: Any, tmp_path: Path, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(cluster.Drafter):
        def __call__(self, part: bytes) -> tuple[int, bytes]:
            raise OutputError("is full", path="disk", remedy="buy another")

    class Broken(cluster.Drafter):
        def __call__(self, part: bytes) -> tuple[int, bytes]:
            raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(cluster, "Drafter", Refusing)
    with pytest.raises(OutputError, match=r"^disk: is full; buy another$"):
        augment_on_ray(TRAIN, tmp_path / "o.conll", create_augmenter("sis"))
    monkeypatch.setattr(cluster, "Drafter", Broken)
    with pytest.raises(EntaugError, match=r"^a worker of the cluster failed \(.*ZeroDivisionError.*a fault of ours\)"):
        augment_on_ray(TRAIN, tmp_path / "o.conll", create_augmenter("sis"))
    assert (tmp_path / "o.conll.parts").is_dir(), "the same command goes on when that is mended"


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
