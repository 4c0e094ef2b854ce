"""``entaug list``: list methods, formats, filters, measures, models, prompts and scales, or describe one."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from types import NoneType
from typing import Any, Literal, NamedTuple

from entaug.backends.component import is_foreign
from entaug.backends.models.catalogue import list_models
from entaug.backends.prompts import PLACEHOLDERS, prompt_text
from entaug.commands.command import Command, parameter_help
from entaug.commands.models import methods_using
from entaug.commands.options import FORCE
from entaug.commands.output import print_note
from entaug.config.params import REQUIRED, Parameter, parameters
from entaug.config.presets import Preset, preset_rows, section
from entaug.config.registry import Registry
from entaug.errors import ParameterError, UnknownNameError
from entaug.files.json_text import json_text
from entaug.filters import FILTERS, Filter
from entaug.formats.file_job import write_text
from entaug.formats.files import FORMATS, find_format
from entaug.methods import METHODS
from entaug.methods.base import Augmenter, MethodInfo
from entaug.metrics.quality import MEASURES, describe_backend
from entaug.report.ratings.page import packaged_scales, packaged_scales_text

CAPABILITIES = {
    "nested": "nested ones",
    "discontinuous": "discontinuous mentions",
    "columns": "further columns",
    "fields": "further fields and provenance",
    "spaces": "white space between tokens",
}
"""Descriptions of what formats can store besides flat mentions, by field of `FormatCapabilities`."""
_MODEL_FIELDS = ("name", "title", "kind", "licence", "languages", "size", "extra", "by_default", "installed")


class _Kind(NamedTuple):
    """A kind of thing in lists."""

    names: Callable[[], Iterable[str]]
    record: Callable[[str], dict[str, Any]]
    """The plain values of one, for JSON."""
    short: Callable[[str], tuple[str, str]]
    """What one is, and what it needs or can do."""
    describe: Callable[[str], Iterator[str]]
    """One at length."""
    hint: str = ""
    registry: Registry[Any] | None = None
    text: Callable[[], str] | None = None
    """A file with all of them, which is printed in place of names."""


def _list(
    kind: Literal["methods", "formats", "filters", "measures", "models", "prompts", "scales"],
    name: str | None = None,
    *,
    preset: str | None = None,
    output: str = "-",
    force: bool = False,
    as_json: bool = False,
) -> None:
    """List all of a kind, or describe one by its name.

    Args:
        kind: what to list.
        name: the name of one of them, which is described; a prompt is printed as it is, to change it.
        preset: methods: print the settings of this preset, with their sources.
        force: replace an output that exists.
        output: the file to write; ``"-"`` for standard output.
        as_json: print JSON.
    """
    listed = _KINDS[kind]
    if name is not None and listed.registry is not None:
        name = listed.registry.canonical(name)
        listed.registry[name]  # a plug-in that cannot be used says why
    elif name is not None and name not in (known := [*listed.names()]):
        raise UnknownNameError(kind.removesuffix("s"), name, known)
    record: Any = [listed.record(one) for one in listed.names()] if name is None else listed.record(name)
    lines = _overview(listed) if name is None else listed.describe(name)
    if preset is not None:
        if kind != "methods" or name is None:
            remedy = "for example entaug list methods aclm --preset paper"
            raise ParameterError("--preset needs a method", remedy=remedy)
        lines, record = _preset_lines(METHODS[name], preset), [row._asdict() for row in _rows(METHODS[name], preset)]
    text = json_text(record, indent=True) + "\n" if as_json else "".join(f"{line}\n" for line in lines)
    write_text(text, output, force=force)
    for problem in listed.registry.problems() if name is None and listed.registry is not None else ():
        print_note(problem)


def _overview(listed: _Kind) -> Iterator[str]:
    """All of a kind: two lines each, its name with what it is, and what it needs or can do."""
    if listed.text is not None:
        yield listed.text().rstrip("\n")
        return
    names = [*listed.names()]
    width = max(map(len, names))
    for name in names:
        for first, second in zip((name, ""), listed.short(name), strict=True):
            if first or second:
                yield f"{first:<{width}}  {second}"
    if listed.hint:
        yield f"\n{listed.hint}"


def _described(cls: type) -> str:
    """The description of a class, without its parameters."""
    return inspect.cleandoc(cls.__doc__ or "").partition("Args:")[0].strip()


def _place(cls: type, room: str) -> str:
    """The name by which a class is imported; those of entaug are public names of a room."""
    return f"{cls.__module__ if is_foreign(cls) else room}.{cls.__name__}"


def _parameter_lines(given: Iterable[Parameter]) -> Iterator[str]:
    for parameter in given:
        source = f" (from {parameter.metadata['given']})" if "given" in parameter.metadata else ""
        default = " (must be given)" if parameter.default is REQUIRED else f" = {parameter.default!r}"
        yield f"  {parameter.name}{default}: {parameter_help(parameter, with_default=False)}{source}"


def _defaults(cls: type) -> dict[str, Any]:
    """The defaults by parameter, for JSON; those that must be given have none."""
    given = {parameter.name: parameter.default for parameter in parameters(cls) if parameter.default is not REQUIRED}
    plain = (bool, int, float, str, list, tuple, dict, NoneType)
    return {name: default if isinstance(default, plain) else str(default) for name, default in given.items()}


# -------------------------------------------------------------------------------------------------------------- methods


def _method_record(name: str) -> dict[str, Any]:
    cls = METHODS[name]
    return {**dataclasses.asdict(cls.info), "class": cls.__name__, "parameters": _defaults(cls)}


def _method(name: str) -> Iterator[str]:
    cls = METHODS[name]
    info = cls.info
    keeps = [
        field.name.removeprefix("keeps_").replace("_", " ")
        for field in dataclasses.fields(info)
        if field.name.startswith("keeps_") and getattr(info, field.name)
    ]
    yield f"{info.name}, {info.long_name} ({_place(cls, 'entaug.methods')}): {info.summary}"
    yield _properties(info)
    yield f"preserves: {', '.join(keeps) or 'only the labels'}"
    yield f"labels: {describe_labels(info)}"
    if cls.presets:
        shown = f"entaug list methods {info.name} --preset {[*cls.presets][-1]}"
        yield f"presets: {', '.join(cls.presets)} ({shown})"
    yield f"paper: {info.paper}\n\n{_described(cls)}\n\nparameters:"
    yield from _parameter_lines(parameters(cls))


def _rows(cls: type[Augmenter], preset: str) -> Any:
    if preset not in cls.presets:
        raise UnknownNameError(f"preset of {cls.info.name}", preset, cls.presets)
    return preset_rows(cls, preset)


def _preset_lines(cls: type[Augmenter], name: str) -> Iterator[str]:
    rows, preset = _rows(cls, name), cls.presets[name]
    paper = f" ({preset.paper})" if isinstance(preset, Preset) else ""
    yield f"{cls.info.name} --preset {name}{paper}"
    for row in rows:
        where = "; ".join(filter(None, (row.source, row.comment)))
        default = "" if row.value == row.default else f" [default: {row.default!r}]"
        yield f"  {row.parameter} = {row.value!r}{default}{f': {where}' if where else ''}"
    for difference in preset.differences if isinstance(preset, Preset) else ():
        yield f"different on purpose: {difference.topic} ({section(difference.source)}): {difference.comment}"
    if given := " ".join(f"{row.option} NAME" for row in rows if row.is_model):
        yield f"to replace models alone: entaug augment FILE -m {cls.info.name} --preset {name} {given}"


def _properties(info: MethodInfo) -> str:
    kinds = ["flat"] + ["nested"] * info.nested + ["discontinuous"] * info.discontinuous
    return f"{', '.join(kinds)}; needs {describe_needs(info)}; {info.cost}; labels {describe_labels(info)}"


def describe_labels(info: MethodInfo) -> str:
    """Return a description of how far the labels of a method can be trusted."""
    if not info.has_labels:
        return "predicted by a teacher"
    if not info.writes_words:
        return "kept by rules"
    if info.wrong_labels is None:
        return "checked by the label guard (not counted)"
    wrong, read = info.wrong_labels
    return f"checked by the label guard: wrong or missing in {wrong} of {read} sentences that were read"


def describe_needs(info: MethodInfo) -> str:
    """Return a description of the requirements of a method: ``"the training corpus and a masked LM"``."""
    kinds = [kind.replace("_", " ").replace(" lm", " LM") for kind in info.needs]
    needs = ["the training corpus"] * info.needs_fit + [f"{'an' if kind[0] in 'aeo' else 'a'} {kind}" for kind in kinds]
    return " and ".join([", ".join(needs[:-1]), needs[-1]] if len(needs) > 1 else needs) or "nothing"


# -------------------------------------------------------------------------------------------------------------- formats


def _format_record(name: str) -> dict[str, Any]:
    format_ = find_format(name)
    described = {"name": format_.name, "title": format_.title, "extensions": format_.extensions}
    return {**described, **dataclasses.asdict(format_.carries)}


def _format_short(name: str) -> tuple[str, str]:
    format_ = find_format(name)
    names = [field.name for field in dataclasses.fields(format_.carries) if getattr(format_.carries, field.name)]
    files = [*format_.extensions, *(["a folder"] if format_.folder else [])]
    stored = ", ".join(["flat mentions", *(CAPABILITIES[name] for name in names)])
    return f"{format_.title} ({', '.join(files) or 'any extension'})", f"stores {stored}"


def _format(name: str) -> Iterator[str]:
    format_ = find_format(name)
    dialect: Any = type(format_.dialect())
    # Fields that do not count in comparisons of layouts are only detected, and cannot be set.
    detected = {field.name for field in dataclasses.fields(dialect) if not field.compare}
    settable = [parameter for parameter in parameters(dialect) if parameter.name not in detected]
    yield from _format_short(name)
    cls = type(format_)  # ours are described by their modules
    yield f"\n{inspect.cleandoc((cls if is_foreign(cls) else sys.modules[cls.__module__]).__doc__ or '')}"
    yield f"\noptions (--layout NAME=VALUE, --to-layout NAME=VALUE):{'' if settable else ' none'}"
    yield from _parameter_lines(settable)


# -------------------------------------------------------------------------------------------------------------- filters


def _filter_record(name: str) -> dict[str, Any]:
    cls = FILTERS[name]
    described = {"name": name, "summary": cls.summary, "class": cls.__name__, "reasons": cls.reasons}
    return {**described, "parameters": _defaults(cls)}


def _filter(name: str) -> Iterator[str]:
    cls = FILTERS[name]
    yield f"{name} ({_place(cls, 'entaug.filters')}): {cls.summary}\n\n{_described(cls)}\n\nparameters:"
    yield from _parameter_lines(parameters(cls))
    yield "\nreasons:"
    yield from (f"  {reason}" for reason in cls.reasons)


def _text_form(name: str, cls: type[Filter]) -> str:
    """Return a filter with its default parameters, in the syntax of ``--filter``."""
    defaults = [f"{p.name}={str(p.default).lower()}" for p in parameters(cls) if "given" not in p.metadata]
    return f"{name}:{','.join(defaults)}"


# ----------------------------------------------------------------------------------- measures, models, prompts, scales


def _measure_record(name: str) -> dict[str, Any]:
    measure = MEASURES[name]
    fields = ("title", "description", "unit", "higher", "needs")
    return {"name": name, **{field: getattr(measure, field) for field in fields}}


def _measure_short(name: str) -> tuple[str, str]:
    measure = MEASURES[name]
    facts = [f"unit: {measure.unit}"] if measure.unit else []
    facts += [f"higher: {measure.higher}"] if measure.higher != "neutral" else []
    facts.append(f"needs {describe_backend(measure.needs)}" if measure.needs else "needs no model")
    return f"{measure.title}: {measure.description}", "; ".join(facts)


def _model_record(name: str) -> dict[str, Any]:
    [model] = list_models([name])
    return {field: getattr(model, field) for field in _MODEL_FIELDS} | {"used_by": methods_using(name)}


def _model_short(name: str) -> tuple[str, str]:
    [model] = list_models([name])
    state = "installed" if model.installed else "not installed" if model.by_default else "optional"
    facts = [state, model.size, model.licence, f"languages: {' '.join(model.languages) or 'any'}"]
    used_by = ", ".join(methods_using(name))
    return model.title, "; ".join([*facts, f"used by {used_by}"] if used_by else facts)


def _placeholders(name: str) -> tuple[str, str]:
    return ", ".join(f"{{{placeholder}}}" for placeholder in PLACEHOLDERS[name]), ""


def _scale(name: str) -> tuple[str, str]:
    scale = packaged_scales()[name]
    return scale.question, ", ".join(scale.anchors)


def _both(short: Callable[[str], tuple[str, str]]) -> Callable[[str], Iterator[str]]:
    """A description that says no more than the overview."""
    return lambda name: iter([f"{name}: {short(name)[0]}", *filter(None, short(name)[1:])])


_KINDS = {
    "methods": _Kind(
        METHODS.usable,
        _method_record,
        lambda name: (METHODS[name].info.summary, _properties(METHODS[name].info)),
        _method,
        "Description of a method: entaug list methods NAME. Its options: entaug augment --method NAME --help",
        METHODS,
    ),
    "formats": _Kind(FORMATS.usable, _format_record, _format_short, _format, registry=FORMATS),
    "filters": _Kind(
        FILTERS.usable,
        _filter_record,
        lambda name: (FILTERS[name].summary, _text_form(name, FILTERS[name])),
        _filter,
        "Description of a filter: entaug list filters NAME. To use it: entaug augment --filter NAME",
        FILTERS,
    ),
    "measures": _Kind(MEASURES.usable, _measure_record, _measure_short, _both(_measure_short), registry=MEASURES),
    "models": _Kind(lambda: [model.name for model in list_models()], _model_record, _model_short, _both(_model_short)),
    "prompts": _Kind(
        lambda: PLACEHOLDERS,
        lambda name: {"name": name, "placeholders": PLACEHOLDERS[name]},
        _placeholders,
        lambda name: iter([prompt_text(name).rstrip("\n")]),
        "To replace one: entaug list prompts NAME -o mine.toml, change it, and give --prompt mine.toml",
    ),
    "scales": _Kind(
        packaged_scales, lambda name: vars(packaged_scales()[name]), _scale, _both(_scale), text=packaged_scales_text
    ),
}


COMMAND = Command(
    _list,
    {
        "kind": {"choices": tuple(_KINDS), "metavar": "KIND", "help": f"one of: {', '.join(_KINDS)}"},
        "name": {"flags": (), "nargs": "?"},
    },
    (FORCE,),
    show=lambda *_: (),
)
