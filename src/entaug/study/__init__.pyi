# The public names of `entaug.study` and where they are; `__init__` imports each on first use.

from .advise import advise
from .auto import auto
from .records import read_run_records

__all__ = [
    "advise",
    "auto",
    "read_run_records",
]
