"""Measure what ``entaug augment -m mr`` passes and costs, file to file, in one or several checkouts side by side.

    python benchmarks/house.py [SRC ...]

Each SRC is the folder ``src`` of a checkout (default: this one). Functions are distinct ones of entaug: of the whole
command in a new process, imports included, and of a second augmentation when all is known. Times are user CPU seconds
of whole processes over 20,000 sentences, in turn, so that a busy machine slows all of them.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TRAIN = ROOT / "examples" / "corpus" / "train.conll"
ROUNDS = 3

PROFILE = """
import contextlib, io, sys
from importlib.util import find_spec
from pathlib import Path
folder = str(Path(find_spec("entaug").origin).parent)

def passed(work):
    functions, named, modules = set(), set(), set()
    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folder):
            modules.add(code.co_filename)
            if code.co_name != "<module>":
                functions.add((code.co_filename, code.co_firstlineno, code.co_qualname))
                if not code.co_name.startswith("<"):
                    named.add(code.co_filename + code.co_qualname)
    sys.setprofile(note)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            work()
    finally:
        sys.setprofile(None)
    return f"{len(functions)} functions ({len(named)} named) in {len(modules)} modules"

def command():
    try:
        from entaug.commands.main import main
    except ImportError:
        from entaug.cli.main import main
    main(["augment", sys.argv[1], "-m", "mr", "-o", sys.argv[2], "--force"])

print("command, new process:", passed(command))
import entaug
def again():
    entaug.augment_file(sys.argv[1], sys.argv[2], entaug.create_augmenter("mr"), force=True)
print("file to file, second time:", passed(again))
"""


def environment(source: str) -> dict[str, str]:
    """The environment of a process that imports entaug from a checkout."""
    return {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}


def write_corpus(path: Path) -> None:
    """Write 20,000 sentences: those of the example corpus again and again, each with a word of its own."""
    sentences = [block.split("\n") for block in TRAIN.read_text("utf-8").strip().split("\n\n")]
    rng = random.Random(1)
    written = []
    for number in range(20_000):
        rows = list(sentences[number % len(sentences)])
        at = rng.randrange(len(rows))
        token, _, tag = rows[at].rpartition("\t")
        rows[at] = f"w{number}\t{tag}" if tag == "O" and "\t" not in token else rows[at]
        written.append("\n".join(rows))
    path.write_text("\n\n".join(written) + "\n", "utf-8")


def user_seconds(source: str, corpus: Path, out: Path) -> float:
    """The user CPU time of one process that augments a corpus."""
    before = os.times().children_user
    command = [sys.executable, "-m", "entaug", "augment", str(corpus), "-m", "mr", "-o", str(out), "--force"]
    subprocess.run(command, env=environment(source), check=True, capture_output=True)
    return os.times().children_user - before


def main(sources: list[str]) -> None:
    """Print what each checkout passes and costs."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.conll")
        for number, source in enumerate(sources):
            command = [sys.executable, "-c", PROFILE, str(TRAIN), str(out)]
            done = subprocess.run(command, env=environment(source), check=True, capture_output=True, text=True)
            print(f"checkout {number}", *done.stdout.splitlines(), sep="\n  ")
        corpus = Path(folder, "corpus.conll")
        write_corpus(corpus)
        for _ in range(ROUNDS):
            seconds = [user_seconds(source, corpus, out) for source in sources]
            print(
                "user seconds:", *(f"{s:.1f}" for s in seconds), "ratio to the last:", f"{seconds[0] / seconds[-1]:.2f}"
            )


if __name__ == "__main__":
    main(sys.argv[1:] or [str(ROOT / "src")])
