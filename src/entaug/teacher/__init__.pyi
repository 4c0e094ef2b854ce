# The public names of `entaug.teacher` and where they are; `__init__` imports each on first use.

from .audit import ask_teachers
from .label import filter_by_confidence
from .relabel import Relabeller

__all__ = ["Relabeller", "ask_teachers", "filter_by_confidence"]
