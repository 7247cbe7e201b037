"""What is wrong with a page for people who do not see it, or see it badly."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from playwright.sync_api import Page

_CHECKS: Final = Path(__file__).parents[2] / "browser" / "checks.js"


def faults_of(page: Page) -> list[str]:
    """Return what breaks a rule of WCAG that a program can decide, as "rule: where"."""
    found: list[str] = page.evaluate(_CHECKS.read_text(encoding="utf-8"))
    return found
