"""The uploader over any history: what leaves, when, and what becomes of it."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from client_sdk.core.epoch import DAY, HOUR, day_of
from client_sdk.core.errors import TransportError
from client_sdk.core.limits import MAX_ACKNOWLEDGED
from client_sdk.privacy.consent import Consent
from client_sdk.storage import outbox
from client_sdk.storage.outbox import Outbox, acknowledged_reports
from client_sdk.testing import answer_of
from client_sdk.upload.schedule import MAX_RETRY_AFTER
from client_sdk.upload.transport import Answer
from client_sdk.wire.reports import DEVICE, RELAYED, Bounds, Report
from tests.support.device.device_desk import Desk
from tests.support.enumeration.seeded import SeededRandomness

FLUSH_SECONDS = 60.0
LOST, UNSEEN = TransportError("lost"), TransportError("no connection", unseen=True)
TOO_LARGE = Answer(413, None, b"<html>413 Request Entity Too Large</html>", "text/html")
# what becomes of a try, and under what it is counted; None: by what it settles
ENDS: dict[str, tuple[Answer | Exception, str | None]] = {
    "taken": (answer_of(202), None),
    "dropped": (answer_of(400), None),
    "too large for a proxy": (TOO_LARGE, "refused"),
    "too large": (answer_of(413), "refused"),  # or dropped, if it cannot be made smaller
    "lost request": (LOST, "network"),
    "lost answer": (LOST, "network"),
    "unseen": (UNSEEN, "network"),
    "broken": (ValueError("label too long"), "internal"),
    "away": (answer_of(503), "postponed"),
    "away for hours": (Answer(429, 7 * HOUR), "postponed"),
    "away for ever": (Answer(503, 1e300), "postponed"),
    "no key": (answer_of(401), "refused"),
    "captive portal": (Answer(202, None, b"OK"), "refused"),
}
SMALLER = ("too large for a proxy", "too large")
# what happens beside, while the collector is asked
MEANWHILE = ("nothing", "a denial", "a clock set back", "a minute")


class Collector:
    """Ends each try by a script, and holds it against what is promised of all tries."""

    def __init__(self, machine: Uploads) -> None:
        self.machine = machine
        self.script: list[tuple[str, str]] = []
        self.bodies: dict[str, bytes] = {}  # by id: what was tried
        self.seen: set[int] = set()  # reports that somebody has read
        self.perhaps: dict[int, str] = {}  # reports, by the upload in which they may have arrived
        self.arrived: list[int] = []
        self.ends: list[str] = []  # of this pass
        self.taken = 0  # reports of this pass that are acknowledged, and still here to be
        self.retried = False  # whether an upload of this pass had been tried before
        self.not_before = -float("inf")

    def send(self, body: bytes, timeout: float) -> Answer:
        machine, clock = self.machine, self.machine.clock
        upload = json.loads(body)
        upload_id, reports = upload["id"], [column["epoch"] for column in upload["columns"]]

        assert machine.desk.switch.may_send
        assert clock() < machine.deadline
        assert timeout == min(FLUSH_SECONDS, machine.deadline - clock())
        assert clock() >= self.not_before
        assert self.bodies.setdefault(upload_id, body) == body
        assert {machine.platforms[report] for report in reports} == {upload["segment"]["platform"]}
        assert all(self.perhaps.get(report, upload_id) == upload_id for report in reports)
        assert not set(self.arrived) & set(reports) or upload_id in self.perhaps.values()
        assert set(reports) <= self.seen or not set(reports) & self.seen
        assert not self.ends or self.ends[-1] in SMALLER or machine.may_send_more(upload_id)
        return self._end(upload_id, reports)

    def _end(self, upload_id: str, reports: list[int]) -> Answer:
        machine = self.machine
        end, meanwhile = self.script.pop(0) if self.script else ("taken", "nothing")
        machine.ends[end] += 1
        self.ends.append(end)
        self.retried |= upload_id in machine.tried
        if end != "unseen":
            self.seen.update(reports)
        if end not in ("unseen", *SMALLER, "taken", "dropped"):
            self.perhaps.update(dict.fromkeys(reports, upload_id))
        if (end, meanwhile) != ("taken", "a denial"):
            self.taken += len(reports) * (end == "taken")
        if end in ("taken", "lost answer"):
            self.arrived += [report for report in reports if report not in self.arrived]
        answer, _ = ENDS[end]
        if isinstance(answer, Answer) and answer.retry_after:
            self.not_before = machine.clock() + min(answer.retry_after, MAX_RETRY_AFTER)
        machine.meanwhile(meanwhile)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Uploads(RuleBasedStateMachine):
    """A device that puts down reports, restarts and sends, and what is to hold of it."""

    bounds: ClassVar[Bounds] = DEVICE
    ends: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.collector = Collector(self)
        self.desk = Desk(self.collector, bounds=self.bounds)
        self.clock = self.desk.clock
        self.numbers, self.platforms = count(), dict[int, str]()
        self.deadline, self.scheduled, self.removed = 0.0, False, 0
        self.tried: set[str] = set()  # before this pass
        self.counts: Counter[str] = Counter()  # of processes that have ended

    @rule()
    def restart(self) -> None:
        """Begin another process, with the user's yes."""
        self.counts.update(self.desk.counts())
        seed = SeededRandomness(b"%d" % next(self.numbers))
        self.desk = Desk(self.collector, seed, self.desk.store, self.clock, self.bounds)

    @rule(
        reports=st.integers(0, 60),
        platform=st.sampled_from(["mac", "linux"]),
        hours=st.sampled_from([0, 0.01, 7, 24, 24, 15 * 24]),
        scheduled=st.booleans(),
        ends=st.lists(st.sampled_from(list(ENDS)), min_size=1, max_size=4),
        meanwhile=st.sampled_from(["nothing", *MEANWHILE]),
        seconds=st.sampled_from([FLUSH_SECONDS] * 5 + [0.0]),
    )
    def send(
        self,
        reports: int,
        platform: str,
        hours: float,
        scheduled: bool,
        ends: list[str],
        meanwhile: str,
        seconds: float,
    ) -> None:
        self._put(reports, platform)
        self.clock.advance(seconds=hours * HOUR)
        if scheduled:
            self.clock.advance(seconds=min(self.desk.uploader.wait(self.clock()), DAY))
        self.scheduled = scheduled
        script = [*((end, "nothing") for end in ends[:-1]), (ends[-1], meanwhile)]
        self._pass(script, seconds)

    def _put(self, reports: int, platform: str) -> None:
        day = day_of(self.clock())
        with self.desk.store.transaction() as tx:
            for _ in range(reports):
                number = next(self.numbers)
                self.platforms[number] = platform
                report = Report(b"digest", number, b"\x01")
                box = Outbox({"platform": platform}, self.bounds)
                self.removed += box.put(tx, report, day, ["platform"])

    def _pass(self, script: list[tuple[str, str]], seconds: float) -> None:
        collector, before = self.collector, Counter(self.desk.counts())
        collector.script, collector.ends = script, []
        collector.taken, collector.retried, self.tried = 0, False, set(collector.bodies)
        self.deadline = self.clock() + seconds

        (self.desk.uploader.run if self.scheduled else self.desk.flush)(seconds)

        counted = Counter(self.desk.counts()) - before
        expected = Counter(name for end in collector.ends if (name := ENDS[end][1]))
        dropped = expected["refused"] - counted["refused"]  # of one report, by the collector
        assert 0 <= dropped <= collector.ends.count("too large")
        assert counted["uploaded"] == collector.taken
        for name in ("network", "internal", "postponed"):
            assert counted[name] == expected[name]

    def may_send_more(self, upload_id: str) -> bool:
        """Whether another upload may follow in this pass: a first try after first tries."""
        settled = self.collector.ends[-1] in ("taken", "dropped")
        first = not self.collector.retried and upload_id not in self.tried
        return settled and first and not self.scheduled

    def meanwhile(self, what: str) -> None:
        if what == "a denial":
            self.desk.switch.consent = Consent.DENIED
            with self.desk.store.transaction() as tx:
                self.removed += outbox.clear(tx)
        if what == "a clock set back":
            self.clock.advance(days=-3)
            self.collector.not_before = -float("inf")
        if what == "a minute":
            self.clock.advance(seconds=FLUSH_SECONDS)

    @invariant()
    def every_report_is_in_one_place(self) -> None:
        counts = self.counts + Counter(self.desk.counts())
        gone = sum(counts[name] for name in ("uploaded", "rejected", "too_old"))

        assert len(self.platforms) == gone + self.removed + self.desk.waiting()

    @invariant()
    def what_was_acknowledged_last_is_kept(self) -> None:
        with self.desk.store.transaction() as tx:
            kept = [entry.report.epoch for entry in acknowledged_reports(tx)]

        assert len(kept) <= MAX_ACKNOWLEDGED
        assert set(kept) <= set(self.collector.arrived)

    def teardown(self) -> None:
        """Deliver all that waits: nothing stays behind, and nothing arrives twice."""
        self.desk.switch.consent = Consent.GRANTED
        self.scheduled = False
        for _ in range(500):
            if not self.desk.waiting():
                break
            self.clock.advance(seconds=self.desk.uploader.delivery().wait)
            self._pass([], FLUSH_SECONDS)

        assert self.desk.waiting() == 0


class RelayedUploads(Uploads):
    """The same by a relay, where each report goes alone."""

    bounds = RELAYED


@pytest.mark.parametrize(
    ("machine", "examples", "steps"),
    [
        (Uploads, 120, 60),
        (RelayedUploads, 30, 40),
        pytest.param(Uploads, 1_000, 100, marks=pytest.mark.slow),
        pytest.param(RelayedUploads, 300, 100, marks=pytest.mark.slow),
    ],
)
def test_no_history_breaks_a_promise_of_uploads(
    machine: type[Uploads], examples: int, steps: int
) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    machine.ends.clear()

    run_state_machine_as_test(machine, settings=chosen)

    assert set(machine.ends) == set(ENDS)
