"""The bill of materials of the starter models, in the CycloneDX format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from entaug._version import __version__
from entaug.backends.models.catalogue import StarterModel, model_edition

_SPDX = ("Apache-2.0", "MIT", "PDDL-1.0")
_TYPES = {"word_vectors": "data"}


def bill_of_materials(models: Iterable[StarterModel]) -> dict[str, Any]:
    """Describe starter models and the packages that they are taken from."""
    models = list(models)
    packages = {package["bom-ref"]: package for model in models for package in _packages(model)}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "entaug", "version": __version__}},
        "components": [*map(_model, models), *packages.values()],
        "dependencies": [
            {"ref": f"model:{model.name}", "dependsOn": [package["bom-ref"] for package in _packages(model)]}
            for model in models
        ],
    }


def _model(model: StarterModel) -> dict[str, Any]:
    licence = {"id": model.licence} if model.licence in _SPDX else {"name": model.licence}
    return {
        "type": _TYPES.get(model.kind, "machine-learning-model"),
        "bom-ref": f"model:{model.name}",
        "name": model.name,
        "version": str(model_edition(model)),
        "description": model.title,
        "licenses": [{"license": licence}],
        "properties": [
            *({"name": "entaug:language", "value": language} for language in model.languages),
            *({"name": f"entaug:sha256:{name}", "value": digest} for name, digest in model.digests.items()),
        ],
    }


def _packages(model: StarterModel) -> list[dict[str, Any]]:
    """The packages of a model: the wheels that hold it, or an installed package."""
    described = [
        (wheel.package, wheel.version, {"hashes": [{"alg": "SHA-256", "content": wheel.sha256}]})
        for wheel in model.wheels
    ]
    if model.package:
        name, _, version = model.package.partition("==")
        described.append((name, version, {}))
    return [
        {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, **hashes}
        for name, version, hashes in described
        for purl in [f"pkg:pypi/{name}@{version}"]
    ]
