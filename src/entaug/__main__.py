"""``python -m entaug``."""

import sys

from entaug.commands.main import main

sys.exit(main())
