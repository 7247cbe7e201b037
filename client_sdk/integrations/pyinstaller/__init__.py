"""For PyInstaller, which finds this by the package's entry point when it bundles an application."""

from __future__ import annotations

import os


def hook_dirs() -> list[str]:
    """Return the folder of the hooks: what is imported by name only, and what runs first."""
    return [os.path.dirname(__file__)]
