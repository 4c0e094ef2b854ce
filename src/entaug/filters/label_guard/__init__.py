"""The label guard, which refuses sentences whose labels cannot be trusted; on by default for methods with a model.

Example:
    >>> from entaug import Mention, Sentence
    >>> gold = Sentence("She met Ada in Rome".split(), [Mention("PER", [(2, 3)]), Mention("LOC", [(4, 5)])])
    >>> new = Sentence("She met Ada in Oslo".split(), [Mention("PER", [(2, 3)])])
    >>> LabelGuard(word_cases=None, entity_recognizer=None).fit([gold]).judge([new], [gold])
    ['a name without a label']
"""

from __future__ import annotations

from entaug.filters.label_guard.filter import LabelGuard, name_knowledge

__all__ = ["LabelGuard", "name_knowledge"]
