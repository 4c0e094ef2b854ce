"""Word lists and models that backends read: what there is, getting it ready, checking it.

Each asset is one entry in a table and one preparing function in its backend. An asset is a folder in the cache with a
manifest of sha256 sums; it is made in a temporary folder beside and moved into place whole, so a killed preparation
leaves nothing that looks ready.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from entaug.errors import MissingModelError, UnknownNameError

__all__ = ["Asset", "assets", "cache_dir", "path", "prepare", "verify"]

_MANIFEST = "manifest.json"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Asset:
    """Something to be prepared.

    Args:
        name: its name.
        title: what it is.
        licence: the licence of its content.
        size: about how much is fetched.
        used_by: which methods use it.
        preparer: ``"module:function"``, called with a folder to fill, a source folder or None, whether to stay
            offline, and a function that takes a line for the user.
        edition: goes up when the preparer would make something else of the same source; what an older one made is then
            made anew.
        installed: whether it is ready here.
    """

    name: str
    title: str
    licence: str
    size: str
    used_by: str
    preparer: str
    edition: int = 1
    installed: bool = False


_ASSETS = {
    "wordnet": Asset(
        "wordnet",
        "WordNet 3.1, English synonyms",
        "WordNet licence",
        "11 MB",
        "sr",
        "entaug.backends.wordnet:prepare",
        edition=3,
    ),
}


def cache_dir() -> Path:
    """Where prepared assets are: ``$ENTAUG_CACHE``, else the user's cache folder."""
    given = os.environ.get("ENTAUG_CACHE")
    if given:
        return Path(given)
    import platformdirs  # only where it is needed

    return Path(platformdirs.user_cache_dir("entaug"))


def assets() -> list[Asset]:
    """All assets, and whether they are installed."""
    return [
        Asset(**{**vars(asset), "installed": _manifest(cache_dir() / asset.name, asset) is not None})
        for asset in _ASSETS.values()
    ]


def path(name: str) -> Path:
    """The folder of an asset.

    Raises:
        UnknownNameError: there is no such asset.
        MissingModelError: it has not been prepared.
    """
    [asset] = _chosen([name])
    folder = cache_dir() / name
    if _manifest(folder, asset) is None:
        raise MissingModelError(f"{asset.title} is not on this machine", remedy=f"run: entaug models prepare {name}")
    return folder


def _chosen(names: Iterable[str] | None) -> list[Asset]:
    names = list(names or _ASSETS)
    for name in names:
        if name not in _ASSETS:
            raise UnknownNameError("model", name, _ASSETS)
    return [_ASSETS[name] for name in names]


def offline_wanted() -> bool:
    """Whether the environment forbids fetching (``ENTAUG_OFFLINE`` or the hub's ``HF_HUB_OFFLINE``)."""
    return any(
        os.environ.get(name, "").lower() in ("1", "true", "yes", "on") for name in ("ENTAUG_OFFLINE", "HF_HUB_OFFLINE")
    )


def _silent(line: str) -> None:
    """No word."""


def prepare(
    names: Iterable[str] | None = None,
    *,
    offline: bool = False,
    source: str | Path | None = None,
    progress: Say = _silent,
) -> None:
    """Get assets ready; what is ready is left as it is.

    Args:
        names: which; all by default.
        offline: fetch nothing.
        source: a folder to take the files from, instead of looking for them.
        progress: called with a line before anything is fetched or takes long.

    Raises:
        MissingModelError: no source has the files.
    """
    for asset in _chosen(names):
        target = cache_dir() / asset.name
        if source is None and _damaged(target, asset) is None:
            progress(f"{asset.name}: ready")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        module, _, function = asset.preparer.partition(":")
        with tempfile.TemporaryDirectory(prefix=f".{asset.name}-", dir=target.parent) as beside:
            made = Path(beside, "made")
            made.mkdir()
            fill = getattr(import_module(module), function)
            fill(made, Path(source) if source else None, offline or offline_wanted(), progress)
            sums = {str(p.relative_to(made)): _sum(p) for p in sorted(made.rglob("*")) if p.is_file()}
            (made / _MANIFEST).write_text(json.dumps({"edition": asset.edition, "sha256": sums}, indent=1) + "\n")
            if target.exists():
                shutil.rmtree(target)
            made.replace(target)
        progress(f"{asset.name}: prepared")


def verify(names: Iterable[str] | None = None) -> None:
    """Check that assets are as they were prepared.

    Args:
        names: which; by default all that are installed.

    Raises:
        MissingModelError: one is missing or has changed.
    """
    chosen = _chosen(names) if names else [asset for asset in assets() if asset.installed]
    for asset in chosen:
        folder = path(asset.name)
        damaged = _damaged(folder, asset)
        if damaged:
            raise MissingModelError(
                "is missing or not as it was prepared",
                path=str(folder / damaged),
                remedy=f"run: entaug models prepare {asset.name}",
            )


def _manifest(folder: Path, asset: Asset) -> dict[str, str] | None:
    """The sums of an asset's files, if it is there in the present edition."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        sums: dict[str, str] = manifest["sha256"]
        return sums if manifest["edition"] == asset.edition else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _damaged(folder: Path, asset: Asset) -> str | None:
    """The first file that is missing or differs from the manifest."""
    sums = _manifest(folder, asset)
    if sums is None:
        return _MANIFEST
    for name, wanted in sums.items():
        if not (folder / name).is_file() or _sum(folder / name) != wanted:
            return name
    return None


def _sum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
