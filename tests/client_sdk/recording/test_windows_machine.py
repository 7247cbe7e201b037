"""Windows against an oracle, over any history of values, clocks, restarts and revocations."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from client_sdk.client import Client
from client_sdk.core.epoch import DAY, HOUR
from client_sdk.core.limits import MAX_REPORT_AGE
from tests.support.device.clock import FakeClock
from tests.support.device.device import make_client, registry_of
from tests.support.device.windows import boolean, items, number

LENGTHS = {"edits": DAY, "crashes": DAY, "peak": HOUR, "tool": 7 * DAY, "used": HOUR}
OTHERWISE = {"crashes": "0 files", "used": "false"}
REGISTRY = registry_of(
    number("edits", "sum"),
    number("crashes", "sum", "otherwise = 0"),
    number("peak", "max", every="1h"),
    items("tool", "most_common", every="7d"),
    boolean("used", "otherwise = false", every="1h"),
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(
        ("edits", "crashes", "peak"),
        st.sampled_from([Fraction(quarters, 4) for quarters in (-480, -3, 0, 1, 10, 395)]),
    ),
    "tool": st.sampled_from("abc"),
    "used": st.booleans(),
}
TMPFS = "/dev/shm"  # noqa: S108 - thousands of commits need not wait for a disk

Window = tuple[str, int]


@dataclass
class Oracle:
    """What is open and what was told, worked out in the plainest way: all values are kept."""

    windows: dict[Window, list[Any]] = field(default_factory=dict)
    reported: dict[Window, str] = field(default_factory=dict)
    dropped: int = 0

    def epoch(self, name: str, now: float) -> int:
        """Return the epoch of *now*; weeks begin on Mondays, and 1970 on a Thursday."""
        return int((now + (3 * DAY if name == "tool" else 0)) // LENGTHS[name])

    def tick(self, now: float) -> None:
        """Tell what has ended, in any order, and open what is always told."""
        for name, epoch in list(self.windows):
            if epoch < self.epoch(name, now):
                values = self.windows.pop((name, epoch))
                shift = 3 * DAY if name == "tool" else 0
                last = ((epoch + 1) * LENGTHS[name] - shift - 1) // DAY
                if last < now // DAY - MAX_REPORT_AGE:
                    self.dropped += 1
                else:
                    self.reported[name, epoch] = truth(name, values)
        for name in OTHERWISE:
            window = name, self.epoch(name, now)
            if window not in self.reported:
                self.windows.setdefault(window, [])

    def record(self, name: str, value: Any, now: float) -> str:
        """Return under what a value is counted."""
        self.tick(now)
        window = name, self.epoch(name, now)
        if window not in self.windows and window in self.reported:
            return "already_reported"
        self.windows.setdefault(window, []).append(value)
        return "aggregated"


def truth(name: str, values: list[Any]) -> str:
    """Return what is to be told of *values*, in words."""
    if not values:
        return OTHERWISE[name]
    if name == "used":
        return str(any(values)).lower()
    if name == "tool":
        return str(min(set(values), key=lambda item: (-values.count(item), item)))
    number = max(values) if name == "peak" else sum(values)
    return f"{float(min(max(number, 0), 100)):,.6g} files"


class Device(RuleBasedStateMachine):
    """A client whose files outlive it, beside the oracle."""

    def __init__(self) -> None:
        super().__init__()
        place = TMPFS if Path(TMPFS).is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="hearsay-test-", dir=place))
        self.clock, self.oracle = FakeClock(), Oracle()
        self.told: dict[Window, str] = {}
        self.dropped = 0
        self.client = self._begin()

    def teardown(self) -> None:
        self.client._engine.close_store()
        shutil.rmtree(self.folder)

    @rule(name=st.sampled_from(list(VALUES)), count=st.integers(1, 4), data=st.data())
    def record(self, name: str, count: int, data: st.DataObject) -> None:
        for _ in range(count):
            self._record(name, data.draw(VALUES[name]))

    @rule(hours=st.sampled_from([0.1, 1, 5, 24, 168]), flush=st.booleans())
    def run_on(self, hours: float, flush: bool) -> None:
        self.clock.advance(seconds=hours * HOUR)
        if flush:
            self._flush()

    @rule(hours=st.sampled_from([-400 * 24, -24, -1, 1, 14 * 24, 20 * 24]), flush=st.booleans())
    def set_clock(self, hours: int, flush: bool) -> None:
        self.clock.now += hours * HOUR
        if flush:
            self._flush()

    @rule()
    def restart(self) -> None:
        self._leave()
        self.client = self._begin()

    @rule()
    def revoke(self) -> None:
        self.oracle.dropped += len(self.oracle.windows)
        self.oracle.windows = {}
        self._note()
        self.client.set_consent("denied")  # clears the history too
        self.client.set_consent("granted")
        self.oracle.tick(self.clock.now)

    @invariant()
    def what_was_told_and_what_is_open_are_what_the_oracle_has(self) -> None:
        self._note()
        with self.client._engine.store.transaction() as tx:
            rows = tx.execute("SELECT digest, epoch FROM windows").fetchall()
        open_now = {(REGISTRY.by_digest[digest].name, epoch) for digest, epoch in rows}
        counts = self.client.stats()
        assert open_now == set(self.oracle.windows)
        assert self.told == self.oracle.reported
        assert self.dropped + counts["window_dropped"] == self.oracle.dropped
        assert counts["window_closed"] == counts["recorded"]
        assert counts["budget"] == counts["internal"] == counts["store"] == 0

    def _record(self, name: str, value: Any) -> None:
        expected = self.oracle.record(name, value, self.clock.now)
        before = self.client.stats()[expected]

        self.client.record(name, value)

        assert self.client.stats()[expected] == before + 1

    def _flush(self) -> None:
        self.oracle.tick(self.clock.now)
        self.client.flush()

    def _note(self) -> None:
        for each in self.client.history():
            self.told[each.metric, each.epoch] = each.truth

    def _leave(self) -> None:
        self.dropped += self.client.stats()["window_dropped"]
        self._note()
        self.client._engine.close_store()

    def _begin(self) -> Client:
        self.oracle.tick(self.clock.now)
        client = make_client(self.folder, registry=REGISTRY, clock=self.clock, remember=True)
        client.watch()
        return client


@pytest.mark.parametrize(
    ("examples", "steps"), [(40, 30), pytest.param(250, 200, marks=pytest.mark.slow)]
)
def test_no_history_makes_the_windows_differ_from_the_oracle(examples: int, steps: int) -> None:
    """Law: each epoch tells exactly what was recorded in it, once."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Device, settings=chosen)
