"""A page for every method, and the tables that help to choose one: from class info and from what was measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import entaug
from entaug import Augmenter
from entaug.augmented import AugmentedPair, read_augmented
from entaug.augmenters import METHODS
from entaug.augmenters.base import MethodInfo
from entaug.cli.methods import describe_needs
from entaug.params import argument_descriptions
from site_shown import pairs
from site_text import MEASURED, ROOT, options_table, readme, rows_of, table

__all__ = ["CORPUS", "RECORDED", "SEED", "choosing", "measured", "method_pages", "shown", "verdicts"]

CORPUS = ROOT / "examples" / "corpus" / "train.conll"
RECORDED = ROOT / "docs" / "recorded"
SEED, _SHOWN = 13, 3
_SHORT, _LONG = 7, 25  # tokens of a sentence that is easy to take in


def shown(made: list[AugmentedPair], wanted: int = _SHOWN) -> list[AugmentedPair]:
    """Some of what a method made, none of it chosen by hand: of sentences of middling length every so many-th.

    Args:
        made: all of it.
        wanted: how many.
    """
    fit = [
        pair
        for pair in made
        if pair.source
        and pair.source.mentions
        and all(_SHORT <= len(s) <= _LONG for s in (pair.source, pair.augmented))
    ]
    return fit[:: max(1, len(fit) // wanted)][:wanted]


@cache
def examples(name: str) -> tuple[tuple[AugmentedPair, ...], str]:
    """What a method makes of the example corpus, and how it came here: rules run now, the others were recorded."""
    if METHODS[name].info.needs:
        made = next(iter(read_augmented([RECORDED / f"{name}.jsonl"]).methods.values()))
        signature = made[0].augmented.fields["entaug"]["signature"]
        return tuple(made), f"Recorded by `docs/record.py` on the example corpus:\n`{signature}`"
    gold = list(entaug.read(CORPUS))
    by_key = {sentence.key: sentence for sentence in gold}
    augmenter = entaug.create_augmenter(name, seed=SEED).fit(gold)
    new = [AugmentedPair(made, by_key[made.fields["entaug"]["sources"][0]]) for made in augmenter.augment(gold)]
    told = f"entaug augment {CORPUS.relative_to(ROOT)} -m {name} --seed {SEED}"
    return tuple(shown(new)), f"Made when these pages were, by\n`{told}`"


@cache
def measured() -> dict[str, dict[str, str]]:
    """Each method's row of the table that has them all on the same sentences; gold's too."""
    return {row["method"]: row for row in rows_of(MEASURED["methods"].read_text("utf-8"))}


def measured_on() -> str:
    """What these sentences are."""
    found = re.search(r"`benchmarks/methods.py`: (.*?),\n", MEASURED["methods"].read_text("utf-8"))
    return found[1] if found else "the same sentences"


@cache
def verdicts() -> dict[str, list[tuple[str, list[int]]]]:
    """For each method that was in a study: the study, and in how many cells it helped, of how many, hurt."""
    found: dict[str, list[tuple[str, list[int]]]] = {}
    line = re.compile(r"^- `(.+?)` helped in (\d+) of (\d+) cells?, hurt in (\d+)", re.MULTILINE)
    for study, path in MEASURED.items():
        for name, *counts in line.findall(path.read_text("utf-8")):
            if name in METHODS:
                found.setdefault(name, []).append((study, [int(count) for count in counts]))
    return found


def method_pages() -> dict[str, str]:
    """The pages of the methods, and the page that lists them, by path."""
    rows = []
    for name in METHODS:
        info = METHODS[name].info
        kinds = ["yes" if works else "no" for works in (info.nested, info.discontinuous)]
        rows.append((f"[`{name}`]({name}.md)", info.summary, *kinds, describe_needs(info)))
    index = [
        "# Methods\n",
        "Each page says what a method does, keeps, needs and costs, and shows what it makes of the example corpus.",
        "Which one to take: [](/choose.md). What they make can be [filtered](/filters/index.md).\n",
        table(("name", "what it does", "nested", "discontinuous", "needs"), rows),
        "```{toctree}\n:hidden:\n",
        *METHODS,
        "```\n",
    ]
    return {"methods/index.md": "\n".join(index), **{f"methods/{name}.md": _method_page(name) for name in METHODS}}


def _method_page(name: str) -> str:
    cls = METHODS[name]
    info = cls.info
    made, origin = examples(name)
    parts = [
        f"# `{name}`: {info.long_name.replace('-', ' ')}\n",
        f"{info.summary[0].upper()}{info.summary[1:]}.\n",
        f"{pairs(made)}\n",
        f"{origin}.\n",
        "## MethodInfo\n",
        table(("", ""), _facts_rows(cls)),
        "## What it does\n",
        f"```{{eval-rst}}\n.. autoclass:: entaug.{cls.__name__}\n```\n",
        "## On the command line\n",
        "\n".join(["```sh", *_commands(name), "```\n"]),
        "## Parameters\n",
        "In Python they have the same names, with `_` for `-`.\n",
        options_table(cls, "--", base=Augmenter),
    ]
    if cls.presets:
        fields = sorted({field for preset in cls.presets.values() for field in preset})
        rows = [[f"`{field}`", *(f"`{preset.get(field)!r}`" for preset in cls.presets.values())] for field in fields]
        parts += ["### Presets\n", "What each settles where you say nothing.\n"]
        parts.append(table(("", *(f"`{preset}`" for preset in cls.presets)), rows))
    return "\n".join([*parts, *_measured_part(name)])


def _facts_rows(cls: type[Augmenter]) -> list[tuple[str, str]]:
    info, told = cls.info, argument_descriptions(MethodInfo)
    kinds = ["flat", *["nested"] * info.nested, *["discontinuous"] * info.discontinuous]
    kept = [text.rstrip(".") for name, text in told.items() if name.startswith("keeps_") and getattr(info, name)]
    rows = [
        ("works on", f"{', '.join(kinds)} mentions"),
        ("keeps", "; ".join(kept) or "labels right, and nothing else"),
        ("needs", describe_needs(info)),
        ("with some options", ", ".join(kind.replace("_", " ").replace(" lm", " LM") for kind in info.may_need)),
        ("costs", info.cost),
        ("from", info.paper),
        ("seed", "" if info.draws else "makes the same of a sentence with every seed"),
    ]
    return [row for row in rows if row[1]]


def _commands(name: str) -> list[str]:
    """The README's commands for a method, what is said of each above it, or the plainest command there is."""
    lines = re.findall(rf"^entaug augment .*(?:-m|--method) {name} .*$", readme(), re.MULTILINE)
    told = [part for line in lines for part in reversed(re.split(r"\s+(?=# )", line, maxsplit=1))]
    return told or [f"entaug augment train.conll -m {name} --copies 3 -o bigger.conll"]


def _measured_part(name: str) -> list[str]:
    parts = []
    if row := measured().get(name):
        gold = measured()["gold"]
        parts += [
            f"Of {measured_on()}: {row['made']} made, {row['yield']} of the drafts kept;",
            f"perplexity {row['perplexity']} (gold: {gold['perplexity']}); {row['learning']} s to learn and",
            f"{row['making']} s to make on one thread ([all methods](/measured/methods.md)).\n",
        ]
    for study, (helped, of, hurt) in verdicts().get(name, []):
        parts.append(
            f"- [{study}](/measured/{study}.md): helped in {helped} of {of} cells, hurt in {hurt}, against gold alone"
        )
        parts.append("  with as many training steps.")
    return ["## Measured\n", *parts, ""] if parts else []


# ------------------------------------------------------------------------------------------------------------ choosing

_COSTS: dict[str, Callable[[MethodInfo], bool]] = {
    "seconds: rules": lambda info: info.cost.startswith("rules"),
    "seconds to minutes: a parser or a translator, or a model pass a word": lambda info: info.cost.startswith(
        ("parsing", "one pass", "two translations")
    ),
    "seconds a sentence, better with a GPU: a model passes over many candidates": lambda info: info.cost.startswith(
        "a few hundred rows"
    ),
    "minutes and more, better with a GPU: a model learns your corpus first": lambda info: info.cost.startswith(
        ("fine-tuning", "learning")
    ),
}
_LANGUAGES: dict[str, set[str]] = {
    "any language, nothing to fetch": set(),
    "any that has a spaCy pipeline with a parser (or trees of your own)": {"dependency_parser", "constituency_parser"},
    "any that has a translator there and back": {"translator"},
    "any that has a language model": {"masked_lm", "generator", "tagger", "encoder", "token_lm", "dependency_parser"},
    "English": {"lexicon"},
}


def language_of(info: MethodInfo) -> str:
    """In which languages a method works: the first row that has all it needs.

    A model of the corpus itself (a token LM) speaks its language.
    """
    needs = set(info.needs) - {"token_lm"}
    return next(told for told, kinds in _LANGUAGES.items() if needs <= kinds)


def cost_of(info: MethodInfo) -> str:
    """What a method asks of the machine: the row that its cost, in words, belongs to."""
    return next(told for told, fits in _COSTS.items() if fits(info))


def choosing() -> dict[str, str]:
    """The tables of the page that helps to choose, by path."""
    info = {name: METHODS[name].info for name in METHODS}

    def those(names: Iterable[str]) -> str:
        return ", ".join(f"[`{name}`](/methods/{name}.md)" for name in names) or "none"

    rows = [("**mentions**", ""), ("flat", "all")]
    rows.append(("nested", those(name for name in info if info[name].nested)))
    rows.append(("discontinuous", those(name for name in info if info[name].discontinuous)))
    rows.append(("**language**", ""))
    rows += [(told, those(name for name in info if language_of(info[name]) == told)) for told in _LANGUAGES]
    rows.append(("**hardware and time**", ""))
    rows += [(told, those(name for name in info if cost_of(info[name]) == told)) for told in _COSTS]
    rows.append(("**what must stay**", ""))
    for field, text in argument_descriptions(MethodInfo).items():
        if field.startswith("keeps_"):
            rows.append((text.rstrip("."), those(name for name in info if getattr(info[name], field))))
    costs = []
    for name in ("gold", *METHODS):
        if row := measured().get(name):
            told = (
                row["yield"],
                row["perplexity"],
                row["diversity-E"],
                row["diversity-N"],
                row["learning"],
                row["making"],
            )
            costs.append((f"[`{name}`](/methods/{name}.md)" if name in METHODS else name, *told))
    helped = [
        (
            f"[`{name}`](/methods/{name}.md)",
            f"[{study}](/measured/{study}.md)",
            f"{counts[0]} of {counts[1]}",
            counts[2],
        )
        for name, studies in verdicts().items()
        for study, counts in studies
    ]
    head = ("method", "kept", "perplexity", "new words in mentions, %", "outside, %", "learning, s", "making, s")
    return {
        "_made/choose-info.md": table(("you have", "methods"), rows),
        "_made/choose-costs.md": f"Of {measured_on()}:\n\n{table(head, costs)}",
        "_made/choose-helped.md": table(("method", "study", "helped in", "hurt in"), helped),
    }


def first_shown() -> str:
    """One sentence before and after, for the first page."""
    made, _ = examples("mr")
    return pairs(made[:1])


def recorded() -> list[Path]:
    """The files of recorded examples."""
    return sorted(RECORDED.glob("*.jsonl"))
