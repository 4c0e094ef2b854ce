"""A page for every method, and the tables that help to choose one: from `MethodInfo` and from measurements."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import entaug
from atlas_pages import verdicts_of_atlas
from entaug.commands.list import describe_labels, describe_needs
from entaug.config.params import argument_descriptions, parameters
from entaug.core.html import versions_to_html
from entaug.formats.augmented import AugmentedPair, pair_with_sources, read_augmented
from entaug.methods import METHODS, Augmenter
from entaug.methods.types import MethodInfo
from page_text import MEASURED, ROOT, options_table, rows_of, table

__all__ = [
    "CORPUS",
    "RECORDED",
    "SEED",
    "choosing_tables",
    "first_example",
    "measurements",
    "method_pages",
    "readme_table",
    "select_examples",
    "verdicts",
]

CORPUS = ROOT / "examples" / "corpus" / "train.conll"
RECORDED = ROOT / "docs" / "recorded"
SEED = 13
_EXAMPLES = 3
_MIN_TOKENS, _MAX_TOKENS = 7, 25  # length of the sentences that are shown


def select_examples(augmented: list[AugmentedPair], count: int = _EXAMPLES) -> list[AugmentedPair]:
    """Select examples at regular intervals among the sentences of moderate length; none is chosen by hand.

    Args:
        augmented: all augmented sentences.
        count: how many to select.

    Returns:
        The selected ones.
    """
    candidates = [
        pair
        for pair in augmented
        if pair.source
        and pair.source.mentions
        and all(_MIN_TOKENS <= len(s) <= _MAX_TOKENS for s in (pair.source, pair.augmented))
    ]
    return candidates[:: max(1, len(candidates) // count)][:count]


@cache
def examples(name: str) -> tuple[tuple[AugmentedPair, ...], str]:
    """Examples of a method on the example corpus, and how they were made: rules run now, others were recorded."""
    if METHODS[name].info.needs:
        recorded = next(iter(read_augmented([RECORDED / f"{name}.jsonl"]).methods.values()))
        provenance = recorded[0].augmented.provenance
        signature = provenance.signature if provenance else ""
        return tuple(recorded), f"Recorded by `docs/record.py` on the example corpus:\n`{signature}`"
    gold = list(entaug.read(CORPUS))
    augmented = entaug.create_augmenter(name, seed=SEED).fit(gold).augment(gold)
    new = [pair for pair in pair_with_sources([*gold, *augmented]) if pair]
    command = f"entaug augment {CORPUS.relative_to(ROOT)} -m {name} --seed {SEED}"
    return tuple(select_examples(new)), f"Generated with this documentation, by\n`{command}`"


@cache
def measurements() -> dict[str, dict[str, str]]:
    """The row of each method, and of gold, in the table that compares all methods on the same sentences."""
    return {row["method"]: row for row in rows_of(MEASURED["methods"].read_text("utf-8"))}


def measured_sentences() -> str:
    """The sentences of that table, in words."""
    match = re.search(r"`benchmarks/methods.py`: (.*?),\n", MEASURED["methods"].read_text("utf-8"))
    return match[1] if match else "the same sentences"


_UNITS = (("years", 365.25 * 86400), ("days", 86400), ("h", 3600), ("min", 60), ("s", 1))
_MANY = {"10⁴": 1e4, "10⁵": 1e5, "10⁶": 1e6, "10⁷": 1e7, "10⁸": 1e8, "10⁹": 1e9}


def durations_table() -> str:
    """How long each method takes for so many gold sentences, by the same measurements, fastest first."""
    rates = [
        (int(row["made"].split(" of ")[1]) / float(row["making"]), name)
        for name, row in measurements().items()
        # Shorter than half a second says more of the start of a program than of the method.
        if name in METHODS and float(row["making"]) > 0.5
    ]
    rows = []
    for rate, name in sorted(rates, reverse=True):
        training = _duration(float(measurements()[name]["learning"]))
        durations = (_duration(n / rate) for n in _MANY.values())
        rows.append((f"`{name}`", _rounded(rate), training, *durations, measurements()[name]["version"]))
    return table(("method", "gold sentences a second", "training", *_MANY, "entaug"), rows)


def _duration(seconds: float) -> str:
    unit, length = next((one for one in _UNITS if seconds >= 2 * one[1]), _UNITS[-1])
    return f"{_rounded(seconds / length)} {unit}"


def _rounded(value: float) -> str:
    return f"{float(f'{value:.2g}'):g}"


@cache
def verdicts() -> dict[str, list[tuple[str, str, list[int]]]]:
    """The studies in which each method took part: the arm; in how many settings it helped, of how many, and hurt."""
    results: dict[str, list[tuple[str, str, list[int]]]] = {}
    line = re.compile(r"^- `(.+?)` helped in (\d+) of (\d+) settings?, hurt in (\d+)", re.MULTILINE)
    for study, path in MEASURED.items():
        plan = path.with_suffix(".toml")
        tables = tomllib.loads(plan.read_text("utf-8")).get("methods", []) if plan.is_file() else []
        names = {table.get("label", table.get("name")): table.get("name") for table in tables}
        for arm, *counts in line.findall(path.read_text("utf-8")):
            name = names.get(arm, arm)
            if name in METHODS:
                results.setdefault(name, []).append((study, arm, [int(count) for count in counts]))
    for name, (arm, numbers) in verdicts_of_atlas().items():
        results.setdefault(name, []).append(("atlas", arm, numbers))
    return results


# --------------------------------------------------------------------------------------------------------------- pages


def method_pages() -> dict[str, str]:
    """The pages of the methods and their index, by path."""
    rows = []
    for name in METHODS:
        info = METHODS[name].info
        kinds = ["yes" if works else "no" for works in (info.nested, info.discontinuous)]
        rows.append((f"[`{name}`]({name}.md)", info.summary, *kinds, describe_needs(info)))
    index = [
        "# Methods\n",
        "Each page says what a method does, keeps, needs and costs, and shows examples on the example corpus.",
        "See also [how to choose a method](/choose.md), [commands for each](/guide.md) and",
        "[filters](/filters/index.md).\n",
        table(("name", "what it does", "nested", "discontinuous", "needs"), rows),
        "```{toctree}\n:hidden:\n",
        *METHODS,
        "```\n",
    ]
    return {"methods/index.md": "\n".join(index), **{f"methods/{name}.md": _method_page(name) for name in METHODS}}


def _shown(pairs: Sequence[AugmentedPair]) -> str:
    """Sentences before and after augmentation as HTML."""
    return versions_to_html((pair.augmented, pair.sources) for pair in pairs)


def _method_page(name: str) -> str:
    cls = METHODS[name]
    info = cls.info
    shown, origin = examples(name)
    parts = [
        f"# `{name}`: {info.long_name.replace('-', ' ')}\n",
        f"{info.summary[0].upper()}{info.summary[1:]}.\n",
        f"{_shown(shown)}\n",
        f"{origin}.\n",
        "## Properties\n",
        table(("", ""), _properties(cls)),
        "## Description\n",
        f"```{{eval-rst}}\n.. autoclass:: entaug.methods.{cls.__name__}\n```\n",
        "## On the command line\n",
        "\n".join(["```sh", *_commands(name), "```\n"]),
        "## Parameters\n",
        "In Python they have the same names, with `_` instead of `-`.\n",
        options_table(cls, "--", base=Augmenter),
    ]
    if cls.presets:
        fields = sorted({field for preset in cls.presets.values() for field in preset})
        defaults = {parameter.name: parameter.default for parameter in parameters(cls)}
        rows = [
            [f"`{field}`", *(f"`{preset.get(field, defaults[field])!r}`" for preset in cls.presets.values())]
            for field in fields
        ]
        parts += ["### Presets\n", "The values of parameters that are not given; [where papers say so](/presets.md).\n"]
        parts.append(table(("", *(f"`{preset}`" for preset in cls.presets)), rows))
    return "\n".join([*parts, *_measured_part(name)])


def _properties(cls: type[Augmenter]) -> list[tuple[str, str]]:
    info, descriptions = cls.info, argument_descriptions(MethodInfo)
    kinds = ["flat", *["nested"] * info.nested, *["discontinuous"] * info.discontinuous]
    kept = [
        text.rstrip(".") for name, text in descriptions.items() if name.startswith("keeps_") and getattr(info, name)
    ]
    rows = [
        ("works on", f"{', '.join(kinds)} mentions"),
        ("keeps", "; ".join(kept) or "only the labels"),
        ("labels", describe_labels(info)),
        ("needs", describe_needs(info)),
        ("with some parameters", ", ".join(kind.replace("_", " ").replace(" lm", " LM") for kind in info.may_need)),
        ("cost", info.cost),
        ("paper", info.paper),
        ("seed", "" if info.draws else "has no effect: the method is deterministic"),
    ]
    return [row for row in rows if row[1]]


def _commands(name: str) -> list[str]:
    """The commands for a method in the guide, each below its comment; by default the plainest command."""
    guide = (ROOT / "docs" / "guide.md").read_text("utf-8")
    lines = re.findall(rf"^entaug augment .*(?:-m|--method) {name} .*$", guide, re.MULTILINE)
    parts = [part for line in lines for part in reversed(re.split(r"\s+(?=# )", line, maxsplit=1))]
    return parts or [f"entaug augment train.conll -m {name} --copies 3 -o bigger.conll"]


def _measured_part(name: str) -> list[str]:
    parts = []
    if row := measurements().get(name):
        parts += [
            f"On {measured_sentences()}: {row['made']} sentences made, yield {row['yield']} of the drafts;",
            f"perplexity {row['perplexity']} (gold: {measurements()['gold']['perplexity']}); {row['learning']} s for",
            f"training and {row['making']} s for augmenting on one thread ([all methods](/measured/methods.md)).\n",
        ]
    for study, arm, (helped, settings, hurt) in verdicts().get(name, []):
        which = "" if arm == name else f" ({arm})"
        parts.append(
            f"- [{study}](/measured/{study}.md){which}: helped in {helped} of {settings} settings and hurt in {hurt},"
        )
        parts.append("  compared with gold alone for as many training steps.")
    return ["## Measured\n", *parts, ""] if parts else []


# ------------------------------------------------------------------------------------------------------------ choosing

# Short words for the README and a heading for the choosing page, by the beginning of `MethodInfo.cost`.
_COSTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "seconds": ("seconds: rules", ("rules",)),
    "seconds to minutes": (
        "seconds to minutes: a parser, a translator, or one model pass per word",
        ("parsing", "one pass", "two translations"),
    ),
    "requests": ("a request to a language model for each text: as fast and as expensive as that is", ("a request",)),
    "minutes of training": (
        "minutes and more, less with a GPU: a model is trained on your corpus first",
        ("fine-tuning", "training"),
    ),
}
# The same for the backends that a method needs.
_LANGUAGES: dict[str, tuple[str, set[str]]] = {
    "any": ("any language, no model needed", set()),
    "any with a parser": (
        "any with a spaCy pipeline that has a parser (or your own trees); some also need an encoder",
        {"dependency_parser", "constituency_parser", "encoder"},
    ),
    "any with translators": (
        "any with translators there and back, an encoder and a language model",
        {"translator", "encoder", "causal_lm"},
    ),
    "any with a language model": (
        "any with a language model",
        {"masked_lm", "generator", "tagger", "encoder", "token_lm"},
    ),
    "English": ("English", {"lexicon"}),
}
_OF_VARIANTS = {"nearest": "--donors nearest", "best of 8": "--candidates 8"}
_WRITES_LABELS = {"generator", "token_lm"}  # backends that write text whose mentions are then located


def language_of(info: MethodInfo) -> str:
    """The languages of a method, in short: the first entry whose backends are all that it needs."""
    needs = set(info.needs) - {"token_lm"}  # a model of the corpus itself speaks its language
    return next(short for short, (_, kinds) in _LANGUAGES.items() if needs <= kinds)


def cost_of(info: MethodInfo) -> str:
    """The cost of a method, in short."""
    return next(short for short, (_, beginnings) in _COSTS.items() if info.cost.startswith(beginnings))


def reading_of(name: str, rows: list[dict[str, str]] | None = None) -> str:
    """How many sentences of a method read well: the lower count of two blind readers; a dash where none has read.

    Where a variant of the method reads better, its count follows.

    Args:
        name: the method.
        rows: the table of counts; by default the committed one.
    """
    rows = rows_of(MEASURED["readability"].read_text("utf-8")) if rows is None else rows
    counts = {row["method"].strip("`"): row["good after"] for row in rows}
    of_arms = {}
    for arm, cell in counts.items():
        good, _, total = cell.partition(" of ")
        if total and arm.partition(", ")[0] == name:
            of_arms[arm] = min(map(int, re.findall(r"[0-9]+", good))), total
    if name not in of_arms:
        return "-"
    plain, total = of_arms.pop(name)
    best = max(of_arms, key=lambda arm: of_arms[arm][0], default=name)
    if best == name or of_arms[best][0] <= plain:
        return f"{plain} of {total}"
    options = " ".join(_OF_VARIANTS.get(variant, variant) for variant in best.split(", ")[1:])
    return f"{plain} of {total}; {of_arms[best][0]} with `{options}`"


def labels_of(info: MethodInfo) -> str:
    """How labels are kept: ``kept`` within known spans, ``matched`` in text that a model writes, or ``predicted``."""
    if not info.has_labels:
        return "predicted"
    writes = _WRITES_LABELS & set(info.needs) or (not info.keeps_mention_words and info.needs == ("masked_lm",))
    return "matched" if writes else "kept"


def readme_table() -> str:
    """The table of methods in the README."""
    head = ("name", "what it does", "reads well", "labels", "languages", "cost")
    rows = []
    for name in METHODS:
        info = METHODS[name].info
        rows.append((f"`{name}`", info.summary, reading_of(name), labels_of(info), language_of(info), cost_of(info)))
    return table(head, rows).rstrip()


def choosing_tables() -> dict[str, str]:
    """The tables of the page that helps to choose a method, by name."""
    infos = {name: METHODS[name].info for name in METHODS}

    def methods_where(condition: Callable[[MethodInfo], object]) -> str:
        return _names(name for name, info in infos.items() if condition(info)) or "none"

    rows = [("**mentions**", ""), ("flat", "all")]
    rows.append(("nested", methods_where(lambda info: info.nested)))
    rows.append(("discontinuous", methods_where(lambda info: info.discontinuous)))
    rows.append(("**language**", ""))
    for short, (text, _) in _LANGUAGES.items():
        rows.append((text, methods_where(lambda info, short=short: language_of(info) == short)))  # type: ignore[misc]
    rows.append(("**hardware and time**", ""))
    for short, (text, _) in _COSTS.items():
        rows.append((text, methods_where(lambda info, short=short: cost_of(info) == short)))  # type: ignore[misc]
    rows.append(("**what must stay the same**", ""))
    for field, text in argument_descriptions(MethodInfo).items():
        if field.startswith("keeps_"):
            rows.append((text.rstrip("."), methods_where(lambda info, field=field: getattr(info, field))))  # type: ignore[misc]
    columns = ("made", "yield", "perplexity", "diversity-E", "diversity-N", "learning", "making", "version")
    costs = [
        (f"`{name}`" if name in METHODS else name, *(measurements()[name][column] for column in columns))
        for name in ("gold", *METHODS)
        if name in measurements()
    ]
    gains = [
        (f"`{name}`", arm, _study(study), f"{helped} of {settings}", hurt)
        for name, studies in verdicts().items()
        for study, arm, (helped, settings, hurt) in studies
    ]
    shares = ("new words in mentions, %", "elsewhere, %")
    head = ("method", "made", "yield", "perplexity", *shares, "training, s", "augmenting, s", "entaug")
    return {
        "facts": table(("you have", "methods"), rows),
        "costs": f"On {measured_sentences()}:\n\n{table(head, costs)}",
        "gains": table(("method", "arm", "study", "helped in", "hurt in"), gains),
    }


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _study(name: str) -> str:
    return f"[{name}](../{MEASURED[name].relative_to(ROOT)})"


def first_example() -> str:
    """One sentence before and after augmentation, for the first page."""
    shown, _ = examples("mr")
    return _shown(shown[:1])
