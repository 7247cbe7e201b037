"""What the release workflow asks of the repository, by the standard library alone.

``python -m tests.support.release check v0.1.0`` refuses a tag that is not this version, or whose
section of the changelog is missing, undated or empty; ``… notes v0.1.0`` prints that section.
``… links URL < README.md`` prints the README as a package index can show it: every link that is
relative there leads to the same file below *URL*.
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
_LINK: Final = re.compile(r"(!?)(\[[^\]]*\]\()(?!https?:)([^)\s]+)\)")
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


def with_links_below(url: str, page: str) -> str:
    """Return *page*, a README, with the files that it names by relative links below *url*.

    The file of a picture itself is asked for, where a forge has a page about it.
    """
    raw = {"!": "?raw=true", "": ""}
    return _LINK.sub(
        lambda link: f"{link[1]}{link[2]}{url.rstrip('/')}/{link[3]}{raw[link[1]]})", page
    )


def main(arguments: Sequence[str]) -> int:
    """Run ``check TAG``, ``notes TAG`` or ``links URL``; return the exit status."""
    command, tag = arguments
    if command == "links":
        sys.stdout.write(with_links_below(tag, sys.stdin.read()))
        return 0
    changelog = CHANGELOG.read_text(encoding="utf-8")
    if command == "notes":
        print(notes(tag.removeprefix("v"), changelog))
        return 0
    faults = list(problems(tag, __version__, changelog))
    print("\n".join(faults) or f"{tag}: tag, version and changelog agree", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
