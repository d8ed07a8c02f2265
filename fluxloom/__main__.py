"""``python -m fluxloom``: the command line."""

from __future__ import annotations

import sys

from fluxloom.app.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
