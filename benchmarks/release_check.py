"""Build wheel and sdist, and try them as a user gets them: fresh environments, outside the checkout.

    make release-check                                   # the base and every extra: about half an hour
    python benchmarks/release_check.py report llm        # some extras

The wheel is built from the sdist. Checked are the metadata, the files of the package, that everything whose extra is
installed can be imported and that all else names the extra that is missing, and that `pip check` is content. In the
environment of the base the fast tests run against the installed package, from a copy of the tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parent.parent
NEEDED = (
    "entaug/py.typed",
    "entaug/__init__.pyi",
    "entaug/backends/models/catalogue.toml",
    "entaug/report/html/page.html",
    "entaug/examples/corpus/train.conll",
)
APART = ("dev", "docs", "llama-cpp", "gliner")  # not for users, compiled for long, or at odds with other extras
# Loads every name of every registry; one that lacks a package must say which extra has it.
LOAD = """
import entaug
from entaug.errors import MissingExtraError
from entaug.methods import METHODS
from entaug.filters import FILTERS
from entaug.formats import FORMATS
from entaug.metrics.quality import MEASURES
from entaug.taggers.base import TAGGERS
loaded, missing = 0, set()
for registry in (METHODS, FILTERS, FORMATS, MEASURES, TAGGERS):
    for name in registry:
        try:
            registry[name]
            loaded += 1
        except MissingExtraError as error:
            missing.add(str(error).rpartition("entaug[")[2].partition("]")[0])
print(loaded, "loaded; missing extras:", ", ".join(sorted(missing)) or "none")
assert not missing & set({extras!r})
"""


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command outside the checkout, and stop with its output where it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    finished = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if finished.returncode:
        sys.exit(f"{' '.join(map(str, command))[:200]}\n{finished.stdout[-4000:]}\n{finished.stderr[-4000:]}")
    return finished.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    [sdist] = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    [source] = (folder / "source").iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    [wheel] = folder.glob("*.whl")
    return sdist, wheel


def check_files(wheel: Path) -> None:
    """Check the metadata and the files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        parsed = Metadata.from_email(archive.read(metadata), validate=True)
    absent = [name for name in NEEDED if name not in names]
    absent += [] if any(name.endswith("/LICENSE") for name in names) else ["LICENSE"]
    strangers = [name for name in names if not re.match(r"entaug(-[^/]+\.dist-info)?/", name)]
    if absent or strangers:
        sys.exit(f"{wheel.name}: lacks {absent}, has {strangers}")
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1e6:.1f} MB, version {parsed.version}")


def check_environment(wheel: Path, extra: str, folder: Path) -> Path:
    """Install a wheel with an extra into a fresh environment and try it; return its Python."""
    begun = time.monotonic()
    home = folder / f"env-{extra or 'base'}"
    run(sys.executable, "-m", "venv", home, cwd=folder)
    python = home / "bin" / "python"
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wanted, cwd=folder)
    run(python, "-m", "pip", "check", cwd=folder)
    loaded = run(python, "-c", LOAD.replace("{extras!r}", repr([extra])), cwd=folder).strip()
    shutil.rmtree(folder / "examples", ignore_errors=True)
    for command in (
        ("example",),
        ("augment", "examples/corpus/train.conll", "-m", "mr,sis,lwtr", "-o", "out.conll", "--force"),
        ("check", "out.conll"),
        ("convert", "out.conll", "out.jsonl", "--force"),
    ):
        run(home / "bin" / "entaug", *command, cwd=folder)
    print(f"{extra or 'base'}: {loaded} ({time.monotonic() - begun:.0f} s)", flush=True)
    return python


def run_tests(python: Path, folder: Path) -> None:
    """Run the fast tests against the installed package, from a copy of the tests without the sources.

    Tests of what an extra brings skip where its libraries are not installed.
    """
    copy = folder / "checkout"
    copy.mkdir()
    for name in ("tests", "examples", "fuzz", "benchmarks", "docs", "training"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "results", "_build"))
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "constraints.txt"):
        shutil.copy(ROOT / name, copy / name)
    run(
        python,
        "-m",
        "pip",
        "install",
        "-q",
        "-c",
        ROOT / "constraints.txt",
        "pytest",
        "hypothesis",
        "pytest-xdist",
        "setuptools>=70.1",  # builds the example plug-in
        cwd=folder,
    )
    selected = ("-m", "not slow and not models and not corpora")
    where = ("tests/core/test_data.py", "tests/core/test_tags.py", "tests/methods", "tests/formats")
    found = [name for name in where if (copy / name).exists()]
    output = run(python, "-m", "pytest", "-q", "-n", "2", *selected, *found, cwd=copy, ENTAUG_TESTS="fast")
    print(output.strip().splitlines()[-1])


def main() -> None:
    """Check the base and the extras that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    known = [extra for extra in extras if extra not in APART]
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help=f"of {', '.join(known)} (default: all)")
    parser.add_argument("--no-tests", action="store_true", help="leave the fast tests out")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="entaug-release-") as name:
        folder = Path(name)
        _, wheel = build(folder)
        check_files(wheel)
        python = check_environment(wheel, "", folder)
        if not args.no_tests:
            run_tests(python, folder)
        for extra in args.extras or known:
            check_environment(wheel, extra, folder)
            shutil.rmtree(folder / f"env-{extra}")
    print("ready for release")


if __name__ == "__main__":
    main()
