"""Faults between a device and its collector, where a relay stands: nothing is lost or twice."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.conftest import Tell
from tests.support.device.loopback import running
from tests.support.faults.capsules import HostileRelay, by_relay
from tests.support.faults.fleet import Fleet
from tests.support.faults.site import fault_site
from tests.support.faults.supervisor import Supervised
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]


class Scale(NamedTuple):
    """How large a run is."""

    kills: int
    devices: int
    rate: float  # uploads a second and device


SMALL = pytest.param(Scale(2, 12, 2.5), id="small")
FULL = pytest.param(Scale(100, 100, 0.5), id="full", marks=pytest.mark.faults)


@pytest.mark.parametrize("scale", [SMALL, FULL])
def test_killing_each_party_on_the_way_loses_and_repeats_nothing(
    scale: Scale, seed: int, chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """Relay, web, worker and store, in turn: what is on its way then is sent again, sealed anew."""
    with fault_site(tmp_path, collectors=1, workers=1) as site:
        port, relay = site.add_relay(site.ports[0])
        parties: list[Supervised | None] = [relay, site.collectors[0], site.workers[0], None]
        send = by_relay(site.oblivious)
        fleet = Fleet(lambda: [port], seed, devices=scale.devices, rate=scale.rate, send=send)
        with fleet.sending() as log:
            for number in range(scale.kills):
                fleet.wait_for(len(log.acknowledged) + 5)
                time.sleep(0.3 * chance.random())
                party = parties[number % len(parties)]
                if party is not None:
                    party.kill()
                    site.wait_for_relay(port)
                else:
                    site.store.stop()
                    site.store.start()
        found = site.compared(log.enqueued)

    tell(f"relay, web, worker, store killed in turn, {scale.kills} x: {found}")
    assert found.equal, found
    assert log.final == {}


HOSTILE = [
    pytest.param(Scale(0, 12, 2.5), id="small"),
    pytest.param(Scale(0, 100, 2.0), id="full", marks=pytest.mark.faults),
]
_SECONDS = {12: 1.2, 100: 60.0}  # of a run, by the number of its devices


@pytest.mark.parametrize("scale", HOSTILE)
def test_a_relay_that_repeats_reorders_cuts_and_swaps_costs_nothing_and_adds_nothing(
    scale: Scale, seed: int, tmp_path: Path, tell: Tell
) -> None:
    """It replays every capsule afterwards, too.  An answer to somebody else's capsule is none."""
    with fault_site(tmp_path, collectors=1) as site:
        with running(HostileRelay(site.ports[0], seed)) as relay:
            send = by_relay(site.oblivious)
            fleet = Fleet(
                lambda: [relay.port], seed, devices=scale.devices, rate=scale.rate, send=send
            )
            with fleet.sending() as log:
                time.sleep(_SECONDS[scale.devices])
            replayed = relay.replay()
        found = site.compared(log.enqueued)

    counts = ", ".join(f"{n} {what}" for what, n in sorted(relay.counts.items()))
    tell(f"hostile relay: {found}; {counts}; {len(relay.kept)} replayed")
    assert found.equal, found
    assert len(relay.counts) == 4
    assert replayed == {200}
    assert log.final.keys() == {422}  # to what was cut; no device takes it for the collector's word
