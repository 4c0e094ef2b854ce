"""The folder that `entaug.auto` writes: its summary, its files, and the plan that repeats it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from entaug.core.corpus import with_keys
from entaug.core.data import Sentence
from entaug.files.atomic import atomic_folder
from entaug.files.mention_lists import parse_specification
from entaug.formats import write
from entaug.formats.augmented import read_augmented
from entaug.formats.exchange import is_in_memory, named_path
from entaug.metrics.quality import measure_corpus
from entaug.metrics.tables import quantity
from entaug.report.html.page import render_html_report
from entaug.study.choice import GOLD, LEAST_GAIN, RECIPES, RISK, TOLERATED_LOSS, Gain, SearchSize

DIGESTS = "digests"
"""The table of a plan with the digests of the files."""
FILE_ARGUMENTS = {"train", "dev", "unlabelled", "held_out", "mentions", "sources"}
"""The arguments of `entaug.auto` that name files."""
SMALL, LARGER, LARGER_GAIN = "minilm", "mpnet", 11.8
"""A starter encoder, a larger one, and by how much it is better on gold alone, see benchmarks/results/gains.md."""
MULTILINGUAL = "multilingual-e5"
"""The starter encoder to advise where these two, which are English, are of another language than the corpus."""


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
    encoder: str = SMALL
    teacher_encoder: str | None = None
    is_english: bool = True  # or nothing says that it is another language
    unlabelled: int = 0
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
            return f"on the dev sentences with {quantity(repeats, 'seed')}"
        again = f", repeated {repeats} times" if repeats > 1 else ""
        return f"by {self.size.folds}-fold cross-validation{again}"

    def lines(self) -> list[str]:
        """Return what to expect, in plain words."""
        if not self.sentences:
            how = f"trained on {self.augmented:,} sentences with joined labels of sources alone; nothing was measured"
            return [how, "next: label at least 20 sentences with mentions, and name them as the training file"]
        lines = []
        if self.gains:
            lines = [f"gains over gold alone, measured {self.how}:"]
            for gain in sorted(self.gains, key=lambda gain: -gain.expected):
                line = f"  {gain.recipe:<14} expect {gain.expected:+.1f} ({gain.low:.1f} to {gain.high:.1f})"
                if gain.measured is not None:
                    line += f"; measured {gain.measured:+.1f} with a standard error of {gain.standard_error:.1f}"
                lines.append(line)
            if self.chosen is None:
                lines.append(
                    "chosen: gold alone; no recipe shows a gain that is credible (an expected gain of at least "
                    f"{LEAST_GAIN:g}, and at most {100 * RISK:g} % likely to lose more than {TOLERATED_LOSS:g} point)"
                )
            else:
                lines.append(f"chosen: {self.recipe}")
        return [*lines, *self._results(), f"next: {self._advice()}"]

    def _results(self) -> list[str]:
        """Gold alone with this encoder, with the other one, and the result, a line each."""

        def shown(f1: float | None) -> str:
            return "not measured" if f1 is None else f"F1 {f1:.1f}"

        lines = [f"gold alone with {self.encoder}: {shown(self.gold_f1)}"]
        if self.teacher_encoder is not None:
            lines.append(f"gold alone with {self.teacher_encoder}, the teacher: {shown(self.teacher_f1)}")
        elif self.encoder == SMALL and not self.is_english:
            lines.append(f"gold alone with {MULTILINGUAL}: not measured")
        elif self.encoder == SMALL:
            others = f"{LARGER_GAIN:+.1f} points over gold alone with {SMALL} on other corpora"
            lines.append(f"gold alone with {LARGER}: not measured; {others}")
        else:
            lines.append("gold alone with a larger encoder: not measured")
        if (chosen := self.chosen) is None:
            lines.append(f"result: gold alone with {self.encoder}: {shown(self.gold_f1)}")
        else:
            about = "" if self.gold_f1 is None else f"about F1 {self.gold_f1 + chosen.expected:.1f}, "
            interval = f"{chosen.expected:+.1f} ({chosen.low:.1f} to {chosen.high:.1f})"
            lines.append(f"result: {chosen.recipe} with {self.encoder}: {about}{interval} over gold alone")
        return lines

    def _advice(self) -> str:
        """Return the one or two things to do next that promise most."""
        advice = []
        expected = 0.0 if self.chosen is None else self.chosen.expected
        if self.gold_f1 is not None and self.teacher_f1 is not None:
            if (difference := self.teacher_f1 - self.gold_f1 - expected) > 0:
                larger = self.teacher_encoder
                advice.append(f"{larger} alone is {difference:.1f} points above this result: `encoder={larger}`")
        elif self.encoder == SMALL and not self.is_english:
            advice.append(f"name an encoder of the language of the corpus: `encoder={MULTILINGUAL}`")
        elif self.encoder == SMALL:
            advice.append(f"if a larger tagger is not too slow for you, `encoder={LARGER}`")
        of_self = RECIPES["self"]
        if not self.unlabelled:
            gain = f"{of_self.prior_gain:+.1f} points on other corpora"
            advice.append(f"name unlabelled text of the same kind ({gain}): `unlabelled=FILE`")
        elif self.teacher_encoder is None:
            gains = f"{of_self.prior_gain_larger:+.1f} points on other corpora in place of {of_self.prior_gain:+.1f}"
            advice.append(f"let a larger encoder label the text ({gains}): `teacher_encoder=NAME`")
        else:
            advice.append("label more sentences: entaug suggest finds those that the teacher is least sure of")
        return "; ".join(advice)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {**asdict(self), "chosen": self.chosen, "text": self.lines()}


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
        values = {name: value for name, value in summary.to_dict().items() if name not in ("output", "seconds")}
        (folder / "summary.json").write_bytes(orjson.dumps(values, option=orjson.OPT_INDENT_2) + b"\n")


# ------------------------------------------------------------------------------------------------------------- the plan


def _plan_text(arguments: Mapping[str, Any], digests: Mapping[str, str], folder: Path, recipe: str) -> str:
    """The plan of a finished choice, a TOML file from which the choice can be repeated."""

    def relative(given: str) -> str:
        path, column, label = parse_specification(given)
        name = Path(os.path.relpath(path, folder)).as_posix()
        return name + (f":{column}" if column else "") + (f"={label}" if label else "")

    lines = [f"# To repeat this choice: entaug auto plan.toml -o NEW-FOLDER. It chose: {recipe}"]
    if any(map(is_in_memory, digests)):
        lines.append(
            "# Write what was given in memory to the files of these names, beside this one: entaug.write(corpus, path)"
        )
    tables: dict[str, Mapping[str, Any]] = {}
    for name, value in arguments.items():
        if name == "mentions":
            value = list(map(relative, value))  # noqa: PLW2901
        elif name in FILE_ARGUMENTS and value:
            value = _relative(value, folder)  # noqa: PLW2901
        if isinstance(value, Mapping):
            tables |= {name: value} if value else {}
        elif value is not None and (name == "recipes" or (value is not False and value != [])):
            lines.append(f"{name} = {_to_toml(value)}")
    tables[DIGESTS] = {_relative(path, folder): digest for path, digest in digests.items()}
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{_to_toml(str(key))} = {_to_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _relative(path: Any, folder: Path) -> Any:
    if isinstance(path, list):
        return [_relative(one, folder) for one in path]
    return (named_path(path) if is_in_memory(path) else Path(os.path.relpath(path, folder))).as_posix()


def _to_toml(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_to_toml, value))}]"
    # A JSON string is a TOML string, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
