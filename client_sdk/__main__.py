"""``python -m client_sdk``: what a user can see, and switch off, of an application's telemetry."""

from __future__ import annotations

import sys

from .cli import main as main

if __name__ == "__main__":
    sys.exit(main())
