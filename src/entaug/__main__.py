"""``python -m entaug``."""

import sys

from entaug.cli.main import main

sys.exit(main())
