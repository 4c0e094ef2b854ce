"""The bill of materials of the starter models, in the CycloneDX format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from entaug._version import __version__
from entaug.backends.models.catalogue import StarterModel, Wheel, model_edition

__all__ = ["bill_of_materials"]

_SPDX = ("Apache-2.0", "MIT", "PDDL-1.0")
_TYPES = {"lexicon": "data", "word_vectors": "data"}


def bill_of_materials(models: Iterable[StarterModel]) -> dict[str, Any]:
    """Describe starter models and the packages that they are taken from."""
    models = list(models)
    wheels = {wheel.file_name: wheel for model in models for wheel in model.wheels}
    pinned = {model.package for model in models if model.package}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "entaug", "version": __version__}},
        "components": [
            *map(_model_component, models),
            *map(_wheel_component, wheels.values()),
            *map(_package_component, sorted(pinned)),
        ],
        "dependencies": [
            {"ref": _model_ref(model), "dependsOn": [*map(_wheel_ref, model.wheels), *_pinned_refs(model)]}
            for model in models
        ],
    }


def _model_ref(model: StarterModel) -> str:
    return f"model:{model.name}"


def _wheel_ref(wheel: Wheel) -> str:
    return f"pkg:pypi/{wheel.package}@{wheel.version}"


def _pinned_refs(model: StarterModel) -> list[str]:
    return [f"pkg:pypi/{model.package.replace('==', '@')}"] if model.package else []


def _model_component(model: StarterModel) -> dict[str, Any]:
    licence = {"id": model.licence} if model.licence in _SPDX else {"name": model.licence}
    return {
        "type": _TYPES.get(model.kind, "machine-learning-model"),
        "bom-ref": _model_ref(model),
        "name": model.name,
        "version": str(model_edition(model)),
        "description": model.title,
        "licenses": [{"license": licence}],
        "properties": [
            *({"name": "entaug:language", "value": language} for language in model.languages),
            *({"name": f"entaug:sha256:{name}", "value": digest} for name, digest in model.digests.items()),
        ],
    }


def _wheel_component(wheel: Wheel) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": _wheel_ref(wheel),
        "name": wheel.package,
        "version": wheel.version,
        "purl": _wheel_ref(wheel),
        "hashes": [{"alg": "SHA-256", "content": wheel.sha256}],
    }


def _package_component(package: str) -> dict[str, Any]:
    name, _, version = package.partition("==")
    purl = f"pkg:pypi/{name}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
