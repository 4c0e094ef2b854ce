"""The files that `entaug.auto` writes: the folder of the result with its summary, and the plan that repeats it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from entaug.config.toml_lines import read_toml
from entaug.core.corpus import with_keys
from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.files.atomic import atomic_folder
from entaug.files.mention_lists import parse_specification
from entaug.formats import write
from entaug.formats.augmented import read_augmented
from entaug.metrics.quality import measure_corpus
from entaug.report.html.page import render_html_report
from entaug.study.choice import GOLD, LEAST_GAIN, RISK, TOLERATED_LOSS, Gain, SearchSize
from entaug.study.data import file_digest

_DIGESTS = "digests"
_FILES = {"train": False, "dev": False, "unlabelled": True, "held_out": True, "mentions": True}
"""The arguments that name files, and whether they are lists."""
PLAN_KEYS = (
    *("train", "unlabelled", "dev", "held_out", "drop_held_out", "mentions", "encoder", "teacher_encoder", "tagger"),
    *("recipes", "folds", "repeats", "steps", "seed", "repair", "from_format", "read_options"),
)


@dataclass
class AutoSummary:
    """Result of `entaug.auto`."""

    input: str
    output: str
    sentences: int
    augmented: int = 0
    recipe: str = GOLD
    size: SearchSize = field(default_factory=lambda: SearchSize(1, 0, 1))
    measured_on: str = "cross-validation"
    steps: int = 0
    gold_f1: float | None = None
    teacher_f1: float | None = None
    gains: Sequence[Gain] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def chosen(self) -> Gain | None:
        """The gain of the chosen recipe; None for gold alone."""
        return next((gain for gain in self.gains if gain.recipe == self.recipe), None)

    @property
    def how(self) -> str:
        """The way in which gains were measured."""
        repeats = self.size.repeats
        if self.measured_on == "nothing":
            return "on other corpora; nothing was measured on this one"
        if self.measured_on == "dev":
            return f"on the dev sentences with {repeats} seed{'' if repeats == 1 else 's'}"
        again = f", repeated {repeats} times" if repeats > 1 else ""
        return f"by {self.size.folds}-fold cross-validation{again}"

    def lines(self) -> list[str]:
        """Return what to expect, in plain words."""
        if not self.gains:
            return ["nothing was measured: the tagger is trained on gold alone"]
        if self.gold_f1 is None:
            lines = ["nothing was measured: gains to expect are those on other corpora"]
        else:
            lines = [f"gold alone: F1 {self.gold_f1:.1f}, measured {self.how}"]
        if self.teacher_f1 is not None:
            lines.append(f"the teacher, with its own encoder: F1 {self.teacher_f1:.1f}")
        for gain in sorted(self.gains, key=lambda gain: -gain.expected):
            line = f"  {gain.recipe:<14} expect {gain.expected:+.1f} ({gain.low:.1f} to {gain.high:.1f})"
            if gain.measured is not None:
                line += f"; measured {gain.measured:+.1f} with a standard error of {gain.standard_error:.1f}"
            lines.append(line)
        if (chosen := self.chosen) is not None:
            expected = f"{chosen.expected:+.1f} F1 ({chosen.low:.1f} to {chosen.high:.1f})"
            lines.append(f"chosen: {chosen.recipe}; expect {expected} over gold alone, measured {self.how}")
        else:
            lines.append(
                "chosen: gold alone; no recipe shows a gain that is credible (an expected gain of at least "
                f"{LEAST_GAIN:g}, and at most {100 * RISK:g} % likely to lose more than {TOLERATED_LOSS:g} point)"
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON; without the duration and the folder of the output."""
        chosen = self.chosen
        found = {"on": self.measured_on, **asdict(self.size), "gold_f1": self.gold_f1, "teacher_f1": self.teacher_f1}
        return {
            "input": self.input,
            "sentences": self.sentences,
            "recipe": self.recipe,
            "augmented": self.augmented,
            "steps": self.steps,
            "expected_gain": None if chosen is None else chosen.expected,
            "interval": None if chosen is None else [chosen.low, chosen.high],
            "measured": found,
            "gains": [asdict(gain) for gain in self.gains],
            "files": dict(self.files),
            "notes": self.notes,
            "text": self.lines(),
        }


def write_output(
    output: Path,
    gold: Sequence[Sentence],
    augmented: Sequence[Sentence],
    tagger: Path,
    summary: AutoSummary,
    arguments: Mapping[str, Any],
    digests: Mapping[str, str],
) -> None:
    """Write the folder of a result; it appears when it is complete."""
    with atomic_folder(output) as folder:
        write([*(with_keys(gold) if augmented else gold), *augmented], folder / "train.jsonl")  # provenance names them
        if augmented:
            write(augmented, folder / "augmented.jsonl")
        shutil.copytree(tagger, folder / "tagger")
        corpus = read_augmented([folder / "train.jsonl"])
        page = render_html_report(
            corpus,
            qualities=measure_corpus(corpus, causal_lm=None, encoder=None) if corpus.methods else [],
            title=f"Augmentation of {Path(summary.input).name}",
            notes=[line.strip() for line in [*summary.lines(), *summary.notes]],
        )
        (folder / "report.html").write_text(page, encoding="utf-8")
        plan = _plan_text(arguments, digests, output, summary.recipe)
        (folder / "plan.toml").write_text(plan, encoding="utf-8")
        text = orjson.dumps(summary.to_dict(), option=orjson.OPT_INDENT_2)
        (folder / "summary.json").write_bytes(text + b"\n")


# ------------------------------------------------------------------------------------------------------------- the plan


def _plan_text(arguments: Mapping[str, Any], digests: Mapping[str, str], folder: Path, recipe: str) -> str:
    """The plan of a finished choice, a TOML file from which the choice can be repeated."""

    def relative(path: str) -> str:
        return Path(os.path.relpath(path, folder)).as_posix()

    lines = [f"# To repeat this choice: entaug auto plan.toml -o NEW-FOLDER. It chose: {recipe}"]
    tables: dict[str, Mapping[str, Any]] = {}
    for name in PLAN_KEYS:
        value = arguments[name]
        if value is None or (name != "recipes" and (value is False or value in ([], {}))):
            continue
        if name == "read_options":
            tables[name] = value
            continue
        if name == "mentions":
            given = [parse_specification(specification) for specification in value]
            value = [
                relative(str(path)) + (f":{column}" if column else "") + (f"={label}" if label else "")
                for path, column, label in given
            ]
        elif name in _FILES:
            value = list(map(relative, value)) if _FILES[name] else relative(value)
        lines.append(f"{name} = {_to_toml(value)}")
    tables[_DIGESTS] = {relative(path): digest for path, digest in digests.items()}
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{_to_toml(str(key))} = {_to_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _to_toml(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_to_toml, value))}]"
    # A JSON string is a TOML string, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def read_plan_file(path: str | Path) -> dict[str, Any]:
    """Read the plan of a finished choice: arguments of `entaug.auto`."""
    path = Path(path)
    fault = partial(InputError, path=str(path))
    table, _ = read_toml(path, "name a training file, or a plan")
    digests = table.pop(_DIGESTS, {})
    if unknown := sorted(table.keys() - set(PLAN_KEYS)):
        raise fault(f"unknown key {unknown[0]!r}", remedy=f"there are: {', '.join(PLAN_KEYS)}")
    if not isinstance(table.get("train"), str) or not isinstance(digests, dict):
        raise fault("names no training file", remedy='add train = "FILE"')
    for name in ("unlabelled", "held_out", "mentions", "recipes"):
        value = table.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise fault(f"{name} must be a list of strings", remedy="correct the plan")
    for name, digest in digests.items():
        file = path.parent / name
        if not file.exists() or file_digest(file) != digest:
            what = "has changed since the plan was written" if file.exists() else "does not exist"
            raise fault(f"{file} {what}", remedy="restore it, or delete its line to use it as it is")
    for key in _FILES.keys() & table.keys():
        value = table[key]
        table[key] = [str(path.parent / name) for name in value] if _FILES[key] else str(path.parent / value)
    return table
