"""Pages of formats, filters, quality measures, models, measurements and the Python API, from their registries."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import pydoc
import re
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import entaug
from entaug.backends.models import catalogue as models
from entaug.commands.list import CAPABILITIES
from entaug.commands.models import methods_using
from entaug.core.languages import language_name
from entaug.errors import EntaugError
from entaug.filters import FILTERS
from entaug.formats.base import BaseFormat, FormatCapabilities
from entaug.formats.buffered import BufferedFormat
from entaug.formats.files import FORMATS, find_format
from entaug.methods import METHODS
from entaug.metrics.quality import MEASURES, Measure
from entaug.study.choice import RECIPES
from page_text import MEASURED, ROOMS, ROOT, first_sentence, links_to_pages, options_table, rows_of, table

__all__ = [
    "api_pages",
    "format_pages",
    "formats_table",
    "measured_pages",
    "models_table",
    "pages_of_registry",
    "recipes_table",
    "registry_pages",
]


def _public() -> dict[str, str]:
    """The full names of what is public, each once, and the modules that have them."""
    found: dict[tuple[str, str], str] = {}
    for room in ROOMS:
        stub = (ROOT / "src" / room.replace(".", "/") / "__init__.pyi").read_text("utf-8")
        for module, names in re.findall(r"^from (\.[\w.]+) import \(?([\w, \n]+)\)?(?:  # .*)?$", stub, re.MULTILINE):
            for name in filter(None, map(str.strip, names.split(","))):
                found.setdefault((name, room + module), f"{room}.{name}")
    return {full: module for (_, module), full in found.items()}


PUBLIC = _public()
"""The public names, and their modules."""
_NESTED = ROOT / "examples" / "corpus" / "nested.jsonl"
_MAX_CHARACTERS = 1500  # of a sample file


# ------------------------------------------------------------------------------------------------------------- formats


def format_pages() -> dict[str, str]:
    """The pages of the formats and their index, by path."""
    pages = {f"formats/{name}.md": _format_page(find_format(name)) for name in FORMATS}
    rows = [(f"[`{name}`]({name}.md)", find_format(name).title) for name in sorted(FORMATS)]
    contents = "\n".join(["```{toctree}", ":hidden:", "", *sorted(FORMATS), "```"])
    about = "What they carry, and how they are recognised: [formats](/formats.md)."
    index = f"# A page for each format\n\n{about}\n\n{table(('', ''), rows)}\n{contents}\n"
    return {**pages, "formats/index.md": index}


def formats_table() -> str:
    """The table of the formats."""
    names = [field.name for field in dataclasses.fields(FormatCapabilities)]
    rows = []
    for name in sorted(FORMATS):
        one = find_format(name)
        capabilities = ["yes" if getattr(one.carries, kind) else "" for kind in names]
        rows.append((f"`{name}`", one.title, _files(one), *capabilities))
    head = ("format", "what", "files", *(CAPABILITIES[kind].replace("ones", "mentions") for kind in names))
    return table(head, rows)


def _files(one: BaseFormat) -> str:
    folder = ["a folder"] if getattr(one, "folder", False) else []
    return ", ".join([*(f"`{extension}`" for extension in one.extensions), *folder]) or "any"


def _format_page(one: BaseFormat) -> str:
    as_stored = [CAPABILITIES[f.name] for f in dataclasses.fields(one.carries) if getattr(one.carries, f.name)]
    trip = next((row for row in rows_of(MEASURED["round-trips"].read_text("utf-8")) if row["format"] == one.name), None)
    rows = [
        ("files", _files(one)),
        ("carries", ", ".join(["flat mentions", *as_stored])),
        (
            "written",
            "in one piece at the end" if isinstance(one, BufferedFormat) else "sentence by sentence, also to a pipe",
        ),
    ]
    if trip:
        counts = f"{trip['files the same']} files and {trip['sentences the same']} sentences came back unchanged"
        rows.append(("round trips", f"{counts} ([all formats](/measured/round-trips.md))"))
    dialect = type(one.dialect())
    parts = [
        f"# `{one.name}`: {one.title}\n",
        table(("", ""), rows),
        f"```{{eval-rst}}\n.. automodule:: {type(one).__module__}\n   :no-index:\n```\n",
        *_sample(one),
        "## Options\n",
        "When reading: `--layout NAME=VALUE`; when writing: `--to-layout NAME=VALUE`; in Python: arguments of",
        "{py:func}`entaug.read` and {py:func}`entaug.write`. Options that are not given are detected from the file.\n",
        options_table(dialect),
    ]
    return "\n".join(parts)


def _sample(one: BaseFormat) -> list[str]:
    """A sentence of the example corpus in a text format."""
    sentences = [
        sentence
        for sentence in entaug.read(_NESTED)
        if one.carries.nested or sentence.is_flat
        if one.carries.discontinuous or all(mention.is_contiguous for mention in sentence.mentions)
    ]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "sample" + (one.extensions[0] if one.extensions and not _is_folder(one) else ""))
        texts = []
        with contextlib.suppress(EntaugError, UnicodeDecodeError):  # a missing extra, or a binary format
            entaug.write(sentences[:1], target, format=one.name)
            files = sorted(target.rglob("*")) if target.is_dir() else [target]
            texts = [(path.name, path.read_text("utf-8")) for path in files if path.is_file()]
    shown = [
        (f"`{name}`:\n\n" if len(texts) > 1 else "") + f"```text\n{text.rstrip()}\n```\n"
        for name, text in texts
        if text.strip() and len(text) <= _MAX_CHARACTERS
    ]
    return ["## A sentence of the example corpus\n", *shown] if shown and len(shown) == len(texts) else []


def _is_folder(one: BaseFormat) -> bool:
    return isinstance(one, BufferedFormat) and one.folder


# ------------------------------------------------------------------------------------------------- filters, measures


def registry_pages() -> dict[str, str]:
    """The pages of filters and quality measures, by path."""
    pages = pages_of_registry("filters", "Filters", FILTERS, "entaug.filters")
    return pages | pages_of_registry("measures", "Quality measures", MEASURES, "entaug.metrics.quality")


def pages_of_registry(folder: str, title: str, registry: Mapping[str, Any], module: str) -> dict[str, str]:
    """A page for each entry of a registry and their index, by path.

    Args:
        folder: the folder of the pages.
        title: the title of the index.
        registry: names to classes, functions, records with info, or ``"module:Class"``.
        module: the module whose docstring introduces the index.
    """
    entries = {name: _load(entry) for name, entry in registry.items()}
    rows = [(f"[`{name}`]({name}.md)", _summary(one)) for name, one in entries.items()]
    pages = {f"{folder}/{name}.md": _entry_page(folder, name, one) for name, one in entries.items()}
    about = f"```{{eval-rst}}\n.. automodule:: {module}\n   :no-index:\n```\n"
    lines = [f"# {title}\n", about, table(("name", "description"), rows), "```{toctree}\n:hidden:\n", *entries, "```\n"]
    return {f"{folder}/index.md": "\n".join(lines), **pages}


def _load(entry: Any) -> Any:
    """The object that an entry of a registry names."""
    if isinstance(entry, str):
        module, _, name = entry.partition(":")
        return getattr(import_module(module), name)
    return entry


def _summary(one: Any) -> str:
    info = getattr(one, "info", one)
    if isinstance(one, Measure):
        return f"{one.title}: {one.description}"
    own = None if inspect.isclass(one) or inspect.isfunction(one) else first_sentence(type(one).__doc__)
    return next((str(v) for k in ("summary", "title", "what") if (v := getattr(info, k, None))), own) or first_sentence(
        inspect.getdoc(one)
    )


def _entry_page(folder: str, name: str, one: Any) -> str:
    parts = [f"# `{name}`\n"]
    if inspect.isclass(one) or inspect.isroutine(one):
        kind = "class" if inspect.isclass(one) else "function"
        where = f"{one.__module__}.{one.__qualname__}"
        index = "   :no-index:\n" if _is_public(one) else ""
        parts.append(f"```{{eval-rst}}\n.. auto{kind}:: {where}\n{index}```\n")
    else:
        parts.append(f"{_summary(one)}\n")
    if isinstance(one, Measure):
        parts.append(_measure_page(one))
    if not inspect.isclass(one) and dataclasses.is_dataclass(one):
        values = {f.name: getattr(one, f.name) for f in dataclasses.fields(one)}
        info = [(key, value) for key, value in values.items() if value not in ("", None, ()) and not callable(value)]
        parts.append(table(("", ""), info))
    if inspect.isclass(one) and dataclasses.is_dataclass(one) and dataclasses.fields(one):
        if folder == "filters":
            given = [
                f" {f.metadata['given'].replace('FILE', 'test.conll')}" for f in dataclasses.fields(one) if f.metadata
            ]
            usage = f"entaug augment train.conll -m mr --filter {name}{''.join(given)} -o bigger.conll"
            parts.append(f"## On the command line\n\n```\n{usage}\n```\n")
            parts.append(f"Parameters follow a colon: `{name}:NAME=VALUE,NAME=VALUE`.\n")
        parts += ["## Parameters\n", options_table(one, head="parameter")]
    return "\n".join(parts)


def _measure_page(one: Measure) -> str:
    unit = {"share": "a share, from 0 to 1, shown in percent", "": "none"}.get(one.unit, one.unit)
    needs = f"{one.needs.replace('_', ' ')}" if one.needs else "nothing"
    info = [("unit", unit), ("a higher value means", one.higher), ("needs", needs)]
    where = f"{one.function.__module__}.{one.function.__qualname__}"
    return table(("", ""), info) + f"\n```{{eval-rst}}\n.. autofunction:: {where}\n   :no-index:\n```\n"


# ---------------------------------------------------------------------------------------------- models, measurements


def models_table() -> str:
    """The table of the starter models."""
    rows = [
        (
            f"`{one.name}`",
            one.title,
            one.size,
            one.licence,
            ", ".join(map(language_name, one.languages)) or "any",
            f"`entaug[{one.extra}]`",
            ", ".join(methods_using(one.name)),
            "yes" if one.by_default else "no",
        )
        for one in models.list_models()
    ]
    return table(("name", "model", "download", "licence", "languages", "extra", "used by", "by default"), rows)


def recipes_table() -> str:
    """The table of the recipes of `entaug auto`."""
    rows = [
        (f"`{r.name}`", r.summary, f"{r.prior_gain:g}", f"{r.prior(is_teacher_larger=True):g}")
        for r in RECIPES.values()
    ]
    return table(("recipe", "adds", "prior gain", "with a larger teacher"), rows)


def measured_pages() -> dict[str, str]:
    """A page for each file of results in ``benchmarks/`` and their index, by path."""
    pages, rows = {}, []
    for name, path in MEASURED.items():
        title, _, text = path.read_text("utf-8").partition("\n")
        plan = path.with_suffix(".toml")  # of an experiment, whose first line says more than the title of a report
        title = (plan.read_text("utf-8").partition("\n")[0] if plan.is_file() else title).strip("#. ")
        heading = title if title.lower() == name else f"{name}: {title}"
        pages[f"measured/{name}.md"] = links_to_pages(f"# {heading}\n{text}", path.parent)
        rows.append((f"[{name}]({name}.md)", title))
    lines = [
        "# Measurements\n",
        "All results of `benchmarks/` in the repository, each with the command that produced it.\n",
        table(("", ""), rows),
        "```{toctree}\n:hidden:\n",
        *MEASURED,
        "```\n",
    ]
    return {**pages, "measured/index.md": "\n".join(lines)}


# ----------------------------------------------------------------------------------------------------------------- API

# The heading of the public names of a module; the names of other modules get the name of their module.
_HEADINGS = {
    "entaug.core.data": "Values",
    "entaug.commands": "Commands",
    "entaug.formats": "Reading and writing",
    "entaug.config.registry": "Methods",
    "entaug.methods": "Methods",
    "entaug.backends": "Methods",
    "entaug.metrics.likelihood": "Scores of sentences",
    "entaug.metrics.bertscore": "Scores of sentences",
    "entaug.metrics.span_f1": "Scores of taggers",
    "entaug.metrics.significance": "Scores of taggers",
    "entaug.report": "Reports",
    "entaug.study": "Reports",
    "entaug.teacher": "Teachers",
    "entaug.errors": "Errors",
}
# Modules for authors of plug-ins, documented as a whole.
_PLUGIN_MODULES = {
    "entaug.methods.base": "Base class and runs of methods",
    "entaug.backends.protocols": "Protocols of backends",
    "entaug.backends.fakes": "Fake models for tests of plug-ins",
    "entaug.filters": "Filters",
    "entaug.teacher.relabel": "Relabelling",
    "entaug.formats.base": "Base class of formats",
    "entaug.taggers.base": "Taggers",
    "entaug.study.subsets": "Subsets",
    "entaug.errors": "All errors",
}


def api_pages() -> dict[str, str]:
    """The reference of the Python API, by path."""
    groups: dict[str, list[str]] = {}
    for name in PUBLIC:
        if name != "entaug.__version__":
            groups.setdefault(_heading(name), []).append(name)
    order = list(dict.fromkeys([*_HEADINGS.values(), *groups]))
    pages, slugs = {}, []
    for heading in (one for one in order if one in groups):
        slug = heading.lower().replace(" ", "-")
        slugs.append(slug)
        entries = [_entry(name) for name in sorted(groups[heading], key=_short)]
        pages[f"reference/{slug}.md"] = "\n".join([f"# {heading}\n", *(entry for entry in entries if entry)])
    for module, heading in _PLUGIN_MODULES.items():
        slug = module.removeprefix("entaug.").replace(".", "-") + "-module"
        slugs.append(slug)
        options = "   :members:\n   :exclude-members: " + ", ".join([*_public_in(module), "__init__"])
        pages[f"reference/{slug}.md"] = f"# {heading}\n\n```{{eval-rst}}\n.. automodule:: {module}\n{options}\n```\n"
    rows = [
        (f"{{py:obj}}`{name}`", first_sentence(inspect.getdoc(pydoc.locate(name))))
        for name in sorted(PUBLIC, key=_short)
        if name.rpartition(".")[2] not in ("METHODS", "FORMATS", "__version__")
    ]
    lines = [
        "# Python\n",
        "```{eval-rst}\n.. automodule:: entaug\n```\n",
        table(("name", "description"), rows),
        "```{toctree}\n:hidden:\n",
        *slugs,
        "```\n",
    ]
    return {**pages, "reference/index.md": "\n".join(lines)}


def _short(name: str) -> str:
    """The key of a full name in alphabetical lists."""
    return name.rpartition(".")[2].lower()


def _heading(name: str) -> str:
    module = PUBLIC[name]
    fitting = [one for one in _HEADINGS if module == one or module.startswith(one + ".")]
    return _HEADINGS[max(fitting, key=len)] if fitting else module.rpartition(".")[2].replace("_", " ").capitalize()


def _entry(name: str) -> str:
    """The documentation of a public name; methods have pages of their own."""
    one = pydoc.locate(name)
    for short in METHODS:
        if METHODS[short] is one:
            return f"- {{py:class}}`{name}`: see [`{short}`](/methods/{short}.md)"
    if inspect.isclass(one):
        options = (
            "   :members:\n   :inherited-members: object, tuple, Sequence\n" if not issubclass(one, Exception) else ""
        )
        return f"\n```{{eval-rst}}\n.. autoclass:: {name}\n{options}```\n"
    if inspect.isroutine(one):
        return f"\n```{{eval-rst}}\n.. autofunction:: {name}\n```\n"
    where = PUBLIC[name]  # the module that has its docstring
    return f"\n```{{eval-rst}}\n.. autodata:: {where}.{name.rpartition('.')[2]}\n   :no-value:\n```\n"


def _public_in(module: str) -> list[str]:
    """The public names of a module, which are documented elsewhere."""
    return [name.rpartition(".")[2] for name, where in PUBLIC.items() if where == module]


def _is_public(one: Any) -> bool:
    """Whether an object is documented elsewhere: under its public name, or with its module."""
    return any(f"{one.__module__}.".startswith(f"{module}.") for module in _PLUGIN_MODULES) or any(
        pydoc.locate(f"{room}.{one.__name__}") is one for room in ROOMS
    )
