"""The colour and the symbol of each method on a page: the same in its plots, tables and examples."""

from __future__ import annotations

from typing import NamedTuple

from entaug.formats.augmented import AugmentedCorpus
from entaug.methods import METHODS

COLOURS = 18
"""The number of colours of methods in ``page.css``."""
SYMBOLS = "●■▲◆▼✚✖★◀▶"


class MethodMark(NamedTuple):
    """The number of a colour, and a symbol for those who cannot tell it from the others."""

    colour: int
    symbol: str


def method_marks(corpus: AugmentedCorpus) -> dict[str, MethodMark]:
    """Return the mark of each method: its own colour in all reports, or one that is free if that is taken."""
    own = {name: number % COLOURS for number, name in enumerate(METHODS)}
    marks: dict[str, MethodMark] = {}
    taken: set[int] = set()
    wanted = {name: pairs[0].provenance.method if pairs else name for name, pairs in corpus.methods.items()}
    # Methods with a colour of their own come before others.
    for name in sorted(wanted, key=lambda name: wanted[name] not in own):
        free = [number for number in range(COLOURS) if number not in taken] or [len(marks) % COLOURS]
        colour = own.get(wanted[name], free[0])
        marks[name] = MethodMark(colour if colour in free else free[0], "")
        taken.add(marks[name].colour)
    return {name: marks[name]._replace(symbol=SYMBOLS[k % len(SYMBOLS)]) for k, name in enumerate(corpus.methods)}
