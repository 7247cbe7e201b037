"""What the release workflow asks of the repository, by the standard library alone.

``python -m tests.support.release check v0.1.0`` refuses a tag that is not this version, or whose
section of the changelog is missing, undated or empty; ``… notes v0.1.0`` prints that section.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from client_sdk import __version__

CHANGELOG: Final = Path(__file__).parents[2] / "CHANGELOG.md"
_SECTION: Final = re.compile(r"^## \[(\S+)\] - (\S+)\n(.*?)(?=^## \[|\Z)", re.DOTALL | re.MULTILINE)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


def problems(tag: str, version: str, changelog: str) -> Iterator[str]:
    """Yield why *tag* is no release of *version*, each as ``name=value: rule``."""
    if tag != f"v{version}":
        yield f"tag={tag}: must be v{version}, as client_sdk.__version__ says"
    sections = _SECTION.findall(changelog)
    if not sections or sections[0][0] != version:
        yield f"CHANGELOG.md={sections[0][0] if sections else None}: must begin with {version}"
        return
    _, date, text = sections[0]
    if not _DATE.fullmatch(date):
        yield f"CHANGELOG.md={version} - {date}: needs the day of the release, as 2026-12-31"
    if not text.strip():
        yield f"CHANGELOG.md={version}: must say what has changed"


def notes(version: str, changelog: str) -> str:
    """Return what *changelog* says of *version*.

    Raises: LookupError: it has no such section.
    """
    for name, _, text in _SECTION.findall(changelog):
        if name == version:
            return str(text).strip()
    raise LookupError(f"CHANGELOG.md={version}: has no such section")


def main(arguments: Sequence[str]) -> int:
    """Run ``check TAG`` or ``notes TAG``; return the exit status."""
    command, tag = arguments
    changelog = CHANGELOG.read_text(encoding="utf-8")
    if command == "notes":
        print(notes(tag.removeprefix("v"), changelog))
        return 0
    faults = list(problems(tag, __version__, changelog))
    print("\n".join(faults) or f"{tag}: tag, version and changelog agree", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
