"""`python -m pinnace.cli` is the command `pinnace`."""

import sys

from pinnace.cli import main

sys.exit(main())
