"""What a check has found: how bad, what, why it matters, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

GOOD: Final = "good"
NOTE: Final = "note"  # worth knowing; nothing is wrong
WARNING: Final = "warning"  # works now, and will not for ever
FAULT: Final = "fault"  # reports or answers are at risk, or already missing
LEVELS: Final = (GOOD, NOTE, WARNING, FAULT)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    level: str
    check: str
    what: str
    why: str = ""
    next: str = ""  # a command or an action; empty if none is needed

    def lines(self) -> list[str]:
        """Return it as people read it."""
        shown = [f"{self.level:7}  {self.check}: {self.what}"]
        if self.why:
            shown.append(f"         why:  {self.why}")
        if self.next:
            shown.append(f"         next: {self.next}")
        return shown

    def row(self) -> dict[str, str]:
        """Return it as JSON has it."""
        return asdict(self)


def worst(findings: Iterable[Finding]) -> str:
    """Return the worst level among *findings*."""
    return max((one.level for one in findings), key=LEVELS.index, default=GOOD)
