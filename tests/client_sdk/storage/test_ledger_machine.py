"""Ledger, memo and outbox together, against an oracle, over any history that Hypothesis finds."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from client_sdk.client import Client
from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.core.errors import EntropyError, TransportError
from client_sdk.core.limits import MAX_REPORT_AGE
from client_sdk.privacy.caps import Caps
from client_sdk.recording.inbox import ReportView
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.storage.trusted_clock import SAVE_EVERY, Uptime
from client_sdk.testing import answer_of
from client_sdk.upload.sealing import MAX_SEALED
from client_sdk.upload.transport import Answer
from tests.support.device.clock import FakeClock
from tests.support.device.device import make_client
from tests.support.device.registries import BOOLEAN, CATEGORY, HEAD, TWO_LAYER, table
from tests.support.enumeration.seeded import SeededRandomness


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
    today: float = 0  # trusted day
    credit: float = 0.0  # seconds of time off
    anchor: tuple[float, Uptime] = (0.0, Uptime("", 0))  # clocks of the last kept reading

    def record(self, metric: Metric, value: str, epoch: int, wall: float, up: Uptime) -> str:
        """Return under what a value is counted, and do what that means."""
        day = self.day(wall, up)
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

    def day(self, wall: float, up: Uptime) -> int:
        """Return the trusted day: the least of what both clocks allow, kept every so often."""
        if self.trusted is None:
            self.trusted, self.today, self.anchor = wall, wall // DAY, (wall, up)
        shown, before = wall - self.anchor[0], self.anchor[1]
        ran, off = up.seconds, 0.0
        if up.boot == before.boot:
            ran -= before.seconds
        else:
            off = min(self.credit, max(0.0, shown - ran))
        now = self.trusted + max(0.0, min(shown, ran + off))
        today = max(self.today, wall // DAY - math.ceil((wall - now) / DAY))
        if up.boot != before.boot or today > self.today or shown < 0 or shown >= SAVE_EVERY:
            self.trusted, self.today, self.anchor = now, today, (wall, up)
            self.credit = min(3.0 * DAY, self.credit - off + 3.25 * ran)
        return int(today)


VALUES = '["a", "b", "c"]'
REGISTRY = Registry.from_text(
    HEAD
    + table("daily", CATEGORY, values=VALUES, every='"1d"')
    + table("hourly", CATEGORY, values=VALUES, every='"1h"', epsilon='"0.1"')
    + table("weekly", BOOLEAN, type='"category"', values=VALUES)
    + table("kept", CATEGORY, values=VALUES, every='"1h"', longitudinal='"permanent"')
    + table("blurred", TWO_LAYER, values=VALUES, every='"1d"', epsilon='"0.3"')
)
CAPS = Caps(report="2.8", metric_week="3.5", week="5", lifetime="25")
NAMES, LABELS = st.sampled_from(list(REGISTRY.metrics)), st.sampled_from(["a", "b", "c"])
COUNTS = "SELECT (SELECT count(*) FROM charges), (SELECT coalesce(sum(nano), 0) FROM totals)"
WAITING = "SELECT (SELECT count(*) FROM reports) + (SELECT coalesce(sum(reports), 0) FROM uploads)"
TMPFS = "/dev/shm"  # noqa: S108 - ten thousand commits need not wait for a disk


class Faucet(SeededRandomness):
    """Randomness that can run dry."""

    dry = False

    def uniform(self, n: int) -> int:
        if self.dry:
            raise EntropyError("dry")
        return super().uniform(n)


class Network:
    """A transport that is up or down."""

    def __init__(self) -> None:
        self.up = True

    def send(self, body: bytes, timeout: float) -> Answer:
        if not self.up:
            raise TransportError("down")
        return answer_of(202)


class Device(RuleBasedStateMachine):
    """A client whose files outlive it, beside the oracle."""

    outcomes: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        place = TMPFS if Path(TMPFS).is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="hearsay-test-", dir=place))
        self.clock, self.model, self.network = FakeClock(), LedgerModel(CAPS), Network()
        self.randomness = Faucet(b"machine")
        self.last: ReportView | None = None
        self.permanent: dict[str, bytes] = {}  # payloads by value, of the metric ``kept``
        self.client = self._begin()

    def teardown(self) -> None:
        self.client._engine.close_store()
        shutil.rmtree(self.folder)

    @rule(entries=st.lists(st.tuples(NAMES, LABELS), min_size=1, max_size=8))
    def record(self, entries: list[tuple[str, str]]) -> None:
        for entry in entries:
            self._record(*entry)

    @rule(value=LABELS, days=st.integers(1, 9), name=NAMES)
    def record_daily(self, name: str, value: str, days: int) -> None:
        for _ in range(days):
            self._record(name, value)
            self.clock.advance(days=1)

    def _record(self, name: str, value: str) -> None:
        metric = REGISTRY.metric(name)
        epoch = epoch_of(metric.every, self.clock.now)
        expected = self.model.record(metric, value, epoch, self.clock.now, self.clock.uptime())
        self.outcomes[expected] += 1
        before = dict(self.client.stats())

        self.client.record(name, value)

        counts = self.client.stats()
        assert {key: counts[key] - before[key] for key in counts if counts[key] != before[key]} == {
            expected: 1
        }
        if (name, expected) == ("kept", "recorded"):
            assert self.last is not None
            assert self.permanent.setdefault(value, self.last.payload) == self.last.payload

    @rule(hours=st.sampled_from([0.01, 1, 5, 24, 72, 240]))
    def run_on(self, hours: float) -> None:
        self.clock.advance(days=hours / 24)

    @rule(days=st.sampled_from([-400, -30, -5, 5, 30, 400]))
    def set_clock(self, days: int) -> None:
        self.clock.now += days * DAY

    @rule(hours=st.sampled_from([0, 1, 16, 64, 400]), days=st.sampled_from([0, 0, 30]))
    def reboot(self, hours: int, days: int) -> None:
        self.clock.now += days * DAY
        self.clock.turn_off(days=hours / 24)
        self.restart()

    @rule()
    def restart(self) -> None:
        self.client._engine.close_store()
        self.client = self._begin()

    @rule(arrives=st.booleans())
    def flush(self, arrives: bool) -> None:
        self.clock.advance(days=1)  # past any waiting time of an earlier failure …
        wait = self.client._engine.uploader.delivery().wait
        if wait:  # the clock may have been set back, and have just come there again
            self.clock.advance(seconds=wait + 1)
        self.network.up = arrives
        if self.client._engine.store.exists:  # it is open, and trusted time is kept
            self.model.day(self.clock.now, self.clock.uptime())
        sent = self.model.send(self.clock.now, arrives=arrives)
        before = self.client.stats()["uploaded"]

        self.client.flush()

        assert self.client.stats()["uploaded"] - before == sent

    @rule()
    def revoke(self) -> None:
        self.model.revoke()
        self.permanent.clear()

        self.client.set_consent("denied")
        self.client.set_consent("granted")

    @rule(name=st.sampled_from(["daily", "weekly"]))
    def run_dry(self, name: str) -> None:
        """Without entropy what would be recorded is not, and nothing of it stays."""
        metric, after = REGISTRY.metric(name), deepcopy(self.model)
        epoch = epoch_of(metric.every, self.clock.now)
        refusal = after.record(metric, "a", epoch, self.clock.now, self.clock.uptime())
        if refusal == "recorded":
            refusal, after = "entropy", self.model
        self.model, self.randomness.dry = after, True
        before = self.client.stats()[refusal]

        self.client.record(name, "a")

        self.randomness.dry = False
        assert self.client.stats()[refusal] == before + 1

    @invariant()
    def what_is_held_is_what_the_oracle_holds(self) -> None:
        if not self.client._engine.store.exists:
            return
        with self.client._engine.store.transaction() as tx:
            charges = tx.execute(COUNTS).fetchone()
            waiting = tx.execute(WAITING).fetchone()
            memo = tx.execute("SELECT count(*) FROM memo").fetchone()
        assert charges == (len(self.model.charges), sum(c[2] for c in self.model.charges))
        assert waiting == (self.model.waiting,)
        assert memo == (len(self.model.reports),)

    def _begin(self) -> Client:
        return make_client(
            self.folder,
            registry=REGISTRY,
            clock=self.clock,
            caps=CAPS,
            transport=self.network,
            randomness=self.randomness,
            on_report=self._see,
        )

    def _see(self, view: ReportView) -> bool:
        self.last = view
        return True


@pytest.mark.parametrize(
    ("examples", "steps"), [(30, 30), pytest.param(400, 100, marks=pytest.mark.slow)]
)
def test_no_history_makes_the_device_differ_from_the_oracle(examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    Device.outcomes.clear()
    run_state_machine_as_test(Device, settings=chosen)
    assert min(Device.outcomes[key] for key in ("recorded", "already_reported", "budget")) > 100
