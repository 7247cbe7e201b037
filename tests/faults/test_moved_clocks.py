"""Clocks of the store and of its machine that jump and come back: nothing is lost or doubled."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from client_sdk.core.epoch import DAY
from client_sdk.core.limits import MAX_REPORT_AGE
from tests.faults.conftest import Tell
from tests.support.device.movable_clock import MovableClock, needs_movable_clock
from tests.support.faults.fleet import Fleet, post
from tests.support.faults.reports import upload_of
from tests.support.faults.site import FaultSite, fault_site
from tests.support.patience import PATIENCE
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real, needs_movable_clock]

JUMP_S = 2.0  # seconds for which a clock is wrong
NOTICED_S = 3.0  # seconds after which web processes take uploads again


def uploads_of(chance: random.Random, count: int) -> dict[bytes, bytes]:
    """Return uploads sealed on every day from which one is still taken."""
    now = time.time()
    return dict(
        upload_of(serial, chance, now=now - (serial % MAX_REPORT_AGE) * DAY)
        for serial in range(count)
    )


def send(site: FaultSite, bodies: dict[bytes, bytes]) -> Counter[object]:
    """Send each body until it is taken or refused for good; return what was said."""
    said: Counter[object] = Counter()
    for body in bodies.values():
        deadline = time.monotonic() + PATIENCE
        while True:
            status, answer = post(site.ports[0], body)
            if status not in (0, 503):
                break
            assert time.monotonic() < deadline
            time.sleep(0.05)
        said[json.loads(answer)["duplicate"] if status == 202 else status] += 1
    return said


@pytest.mark.parametrize(
    ("days", "count"),
    [
        pytest.param(20, 60, id="small"),
        *(
            pytest.param(days, 1_000, id=f"full{days:+}", marks=pytest.mark.faults)
            for days in (1, 2.5, 20, -3)
        ),
    ],
)
def test_a_jump_of_the_stores_clock_doubles_nothing_and_loses_nothing(
    days: float, count: int, chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """Uploads of all days are known again afterwards, and those that waited are of their class."""
    clock = MovableClock(tmp_path / "clock")
    with fault_site(tmp_path, collectors=1, workers=1, clock=clock) as site:
        sent = uploads_of(chance, count)
        first = send(site, sent)
        site.wait_until_folded()
        site.wait_for_worker(site.workers[0])
        with clock.ahead(days * DAY):
            time.sleep(JUMP_S)
            refused = post(site.ports[0], next(iter(sent.values())))[0]
        again = send(site, sent)
        found = site.compared(sent)

    tell(f"store's clock {days:+} days for {JUMP_S} s: {found}; sent again {dict(again)}")
    assert first == {False: count}
    assert refused == 503
    assert again == {True: count}
    assert found.equal, found


@pytest.mark.parametrize("count", [60, pytest.param(1_500, id="full", marks=pytest.mark.faults)])
def test_what_waits_while_the_stores_clock_is_wrong_is_filed_under_its_own_class(
    count: int, chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """A worker that starts then folds nothing until the clocks agree."""
    clock = MovableClock(tmp_path / "clock")
    with fault_site(tmp_path, collectors=1, workers=0, clock=clock) as site:
        sent = dict(upload_of(serial, chance, now=time.time()) for serial in range(count))
        send(site, sent)
        with clock.ahead(40 * DAY):
            site.add_worker()
            site.wait_for_worker(site.workers[0])
            time.sleep(JUMP_S)
            waited = site.storage.backlog()
        found = site.compared(sent)
        late = sum(one.late_reports for one in site.storage.counters())

    tell(f"folded 40 days ahead: {found}; {waited} waited, {late} reports late")
    assert waited == count
    assert found.equal, found
    assert late == 0


@pytest.mark.parametrize(
    ("days", "jumps"),
    [
        pytest.param([20], 1, id="small"),
        pytest.param([20, -2, 400], 5, id="full", marks=pytest.mark.faults),
    ],
)
def test_a_jump_of_a_web_process_clock_refuses_nothing_for_good(
    days: list[int], jumps: int, seed: int, tmp_path: Path, tell: Tell
) -> None:
    """Under load: what a device is told to be too old it deletes."""
    clock = MovableClock(tmp_path / "clock")
    with fault_site(tmp_path, collectors=0, workers=1) as site:
        site.add_collector(prefix=clock.prefix)
        fleet = Fleet(lambda: site.ports, seed)
        with fleet.sending() as log:
            for step in days * jumps:
                fleet.wait_for(len(log.acknowledged) + 20)
                with clock.ahead(step * DAY):
                    time.sleep(JUMP_S)
        found = site.compared(log.enqueued)

    tell(f"web process' clock {days} days for {JUMP_S} s: {found}; {dict(log.answers)}")
    assert found.equal, found
    assert log.final == {}
    assert log.answers[503]
