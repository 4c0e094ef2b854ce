"""Where the repository and the real corpora are."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("ENTAUG_DATA", ROOT.parent / "shared" / "data"))
