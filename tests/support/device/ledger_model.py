"""What a device may spend and must hold, worked out a second time and in the plainest way."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

from client_sdk.core.epoch import DAY
from client_sdk.core.limits import MAX_REPORT_AGE
from client_sdk.privacy.caps import Caps
from client_sdk.registry.metric import Metric
from client_sdk.storage.trusted_clock import SAVE_EVERY
from client_sdk.upload.sealing import MAX_SEALED


@dataclass
class Sealed:
    """An upload whose outcome is unknown."""

    day: int  # by the wall clock, of sealing
    reports: int


@dataclass
class LedgerModel:
    """An oracle for a client with *caps*: epsilon in whole nano, time in seconds."""

    caps: Caps
    charges: list[tuple[str, int, int, int]] = field(default_factory=list)  # metric epoch nano day
    reports: dict[tuple[str, str], int] = field(default_factory=dict)  # of a metric's value
    unsealed: list[int] = field(default_factory=list)  # days of recording by the wall clock
    sealed: list[Sealed] = field(default_factory=list)  # the one tried longest ago first
    failing: bool = False  # whether the last try got no answer
    trusted: float | None = None
    anchor: tuple[float, float] = (0.0, 0.0)  # wall clock and uptime of the last kept reading

    def record(self, metric: Metric, value: str, epoch: int, wall: float, ran: float) -> str:
        """Return under what a value is counted, and do what that means."""
        day = self._day(wall, ran)
        if any((name, past) == (metric.name, epoch) for name, past, _, _ in self.charges):
            return "already_reported"
        dearest = max(self._cost(metric, seen) for seen in range(3))
        week = [(name, cost) for name, _, cost, past in self.charges if past > day - 7]
        own = sum(cost for name, cost in week if name == metric.name)
        total = sum(cost for _, _, cost, _ in self.charges)
        passes = (
            dearest > self.caps.report,
            own + dearest > self.caps.metric_week,
            sum(cost for _, cost in week) + dearest > self.caps.week,
            total + dearest > self.caps.lifetime,
        )
        if any(passes):
            return "budget"
        seen = self.reports.get((metric.name, value), 0)
        self.charges.append((metric.name, epoch, self._cost(metric, seen), day))
        if metric.longitudinal != "fresh":
            self.reports[metric.name, value] = seen + 1
        self.unsealed.append(int(wall // DAY))
        return "recorded"

    def send(self, wall: float, *, arrives: bool) -> int:
        """Return how many reports are acknowledged by a flush."""
        today = int(wall // DAY)
        self.unsealed = [day for day in self.unsealed if day >= today - MAX_REPORT_AGE]
        self.sealed = [upload for upload in self.sealed if upload.day >= today - MAX_REPORT_AGE]
        if self.waiting == 0:
            return 0
        crowded = len(self.sealed) >= MAX_SEALED and min(self.unsealed, default=today) >= today
        if self.sealed and (not self.failing or crowded or not self.unsealed):
            tried = self.sealed.pop(0)  # alone
        else:
            tried, self.unsealed = Sealed(today, len(self.unsealed)), []
        if not arrives:
            self.sealed.append(tried)
        self.failing = not arrives
        return tried.reports if arrives else 0

    @property
    def waiting(self) -> int:
        """How many reports are in the outbox."""
        return len(self.unsealed) + sum(upload.reports for upload in self.sealed)

    def revoke(self) -> None:
        """Forget all but what each metric has cost: of repeated ones, as if at the last report."""
        costs = {(name, nano) for name, _, nano, _ in self.charges}
        named = Counter(name for name, _ in costs)
        for name in {name for name, _ in self.reports} | {n for n in named if named[n] > 1}:
            own = [charge for charge in self.charges if charge[0] == name]
            last = max(own, key=lambda charge: (charge[3], charge[1]))
            total = sum(nano for _, _, nano, _ in own)
            self.charges = [
                charge if charge[0] != name else (*charge[:2], total * (charge is last), charge[3])
                for charge in self.charges
            ]
        self.unsealed, self.sealed, self.reports = [], [], {}

    def _cost(self, metric: Metric, seen: int) -> int:
        """Return what a report of a value costs that had *seen* before."""
        if metric.policy is None:
            return metric.mechanism.spent_nano
        spent = (Fraction(0), metric.policy.spent_after(1), metric.policy.spent_after(2))
        before, after = spent[min(seen, 2)], spent[min(seen + 1, 2)]
        return math.ceil(after * 10**9) - math.ceil(before * 10**9)

    def _day(self, wall: float, ran: float) -> int:
        """Return the trusted day: the least of what both clocks allow, kept every so often."""
        if self.trusted is None:
            self.trusted, self.anchor = wall, (wall, ran)
        passed = min(wall - self.anchor[0], ran - self.anchor[1])
        now = self.trusted + max(0.0, passed)
        if passed < 0 or passed >= SAVE_EVERY:
            self.trusted, self.anchor = now, (wall, ran)
        return int(now // DAY)
