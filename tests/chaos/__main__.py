"""``python -m tests.chaos``: the modules of the tests import each other without the name of their folder."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]

if __name__ == "__main__":
    from chaos.harness import main

    sys.exit(main())
