# The public names of `entaug.study` and where they are; `__init__` imports each on first use.

from .planned import read_known_plan
from .records import read_run_records

__all__ = ["read_known_plan", "read_run_records"]
