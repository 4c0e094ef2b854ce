"""``python -m entaug``."""

import sys

from entaug.cli import main

sys.exit(main())
