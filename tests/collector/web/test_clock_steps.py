"""A clock that is set says nothing final: a device deletes what it is told to be too old."""

from __future__ import annotations

import pytest
from flask import Flask

from client_sdk.wire.reports import Column
from collector.core.cells import MARGIN
from collector.core.config import Config
from collector.core.steady_clock import LASTING_S
from collector.web import create_app
from collector.web.services import services_of
from tests.support.crowds.uploads import NOON, TODAY, as_json, registry, upload
from tests.support.device.clock import FakeClock
from tests.support.sites.posting import post
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

THEME = registry().metric("theme")
COLUMN = Column(THEME.digest, (TODAY + 3) // 7, b"\0\1\1")


class Machine:
    """A machine that serves: its clock may be set, its monotonic clock may not."""

    def __init__(self, config: Config, storage: MemoryStorage) -> None:
        self.wall, self.ran, self.storage = FakeClock(NOON), FakeClock(0), storage
        self.app: Flask = create_app(config, storage, self.wall, MemoryCredentials(), self.ran)
        self.poll()

    def poll(self) -> None:
        services_of(self.app).pressure.poll()

    def wait(self, seconds: float) -> None:
        """Let true time pass, with polls."""
        for _ in range(2):
            self.wall.advance(seconds=seconds / 2)
            self.ran.advance(seconds=seconds / 2)
            self.poll()

    def send(self, sealed: int = TODAY) -> int:
        return post(self.app.test_client(), as_json(upload([COLUMN], sealed=sealed))).status_code


@pytest.fixture
def machine(config: Config, storage: MemoryStorage) -> Machine:
    return Machine(config, storage)


@pytest.mark.parametrize("days", [20, -2, 400, -400])
def test_a_step_of_the_clock_refuses_nothing_for_good(machine: Machine, days: int) -> None:
    """Neither before the next poll nor, where the store's clock was set with it, after that."""
    before = machine.send()
    machine.wall.advance(days=days)
    at_once = machine.send()
    machine.storage.times = (machine.wall(),)
    machine.poll()
    polled = [machine.send()]
    machine.wait(LASTING_S * 0.9)
    polled.append(machine.send())
    machine.wall.advance(days=-days)
    machine.storage.times = (machine.wall(),)
    machine.poll()

    assert (before, at_once, polled) == (202, 503, [503, 503])
    assert machine.send() == 202


def test_a_clock_that_was_corrected_is_believed_after_a_while(machine: Machine) -> None:
    machine.wall.advance(days=-20)
    machine.poll()
    machine.wait(LASTING_S)
    machine.poll()

    assert machine.send(TODAY - 20) == 202
    assert machine.send(TODAY) == 422


def test_a_correction_below_an_hour_stops_nothing(machine: Machine) -> None:
    machine.wall.advance(seconds=MARGIN - 60)

    assert machine.send() == 202
