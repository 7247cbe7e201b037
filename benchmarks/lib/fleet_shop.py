"""The shop within the default cap: devices that stay, whose reports are those of the real SDK.

Four weeks of 5,000 devices, each a client with a ledger, caps, a panel and an outbox of its own.
Everything has a fixed seed but the noise, which no device takes from anywhere but its system.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from flask.testing import FlaskClient

from benchmarks.lib.shop import (
    Device,
    Shop,
    any_arm,
    any_platform,
    asker,
    earlier_version,
    values_of,
    weeks_of,
)
from client_sdk.core.dataclass import replace
from client_sdk.storage.outbox import Outbox
from collector.testing import Fleet, FleetDevice

REGISTRY: Final = Path(__file__).parents[1] / "fleet_shop.toml"
DEVICES: Final = 5_000
WEEKS: Final = 4
FIRST: Final = date(2026, 10, 19)  # a Monday, on which an epoch of four weeks begins
TODAY: Final = FIRST + timedelta(days=7 * WEEKS - 1)
RELEASED: Final = date(2026, 11, 3)  # of version 1.3, in the third week
_HOURS_ON: Final = 12  # a day: machines are switched off in the evening, and asked about then
_PACE: Final = 1 / 10  # of updates: a tenth of the devices that wait, on each day
_OF_ALL: Final = ("weeks", "active_days")  # recorded when four weeks are over, by every device

# How questions differ where most metrics are reported by the week, by a sample of the devices.
DIFFERENCES: Final[Mapping[int, Mapping[str, Any]]] = {
    8: {"says": ()},  # whether noise hides the change is a matter of luck
    9: {"rows": 7 * WEEKS},  # a rare version may have nobody on a day
    10: {"page": "/ask?metric=daily&verb=adoption"},  # the page of a count has none
    27: {"rows": 1},  # the common words that so few reports show
}


@dataclass(frozen=True)
class Person:
    """What somebody does on each day, and the device that it is done on."""

    segment: Mapping[str, str]  # until the update
    updates: int  # the number of the day from which on the version is 1.3
    days: Mapping[int, Mapping[str, Any]]  # by the number of the day: what is recorded on it

    def segment_of(self, day: int) -> Mapping[str, str]:
        """Return the segment on a day."""
        return {**self.segment, "version": "1.3"} if day >= self.updates else self.segment


@cache
def people(devices: int) -> tuple[Person, ...]:
    """Return so many people, whose every day is drawn from a seed of their own."""
    return tuple(_person(random.Random(f"shop {number}")) for number in range(devices))


def _person(chance: random.Random) -> Person:
    segment = {
        "platform": any_platform(chance),
        "version": earlier_version(chance),
        "arm": any_arm(chance),
    }
    updates = (RELEASED - FIRST).days + int(chance.expovariate(_PACE))
    weeks = weeks_of(0.95 if segment["arm"] == "treated" else 0.85, chance)
    habit = chance.uniform(0.2, 0.9)  # the part of the days of a week of use
    used = [day for day in range(7 * WEEKS) if f"week {day // 7}" in weeks]
    days = [day for day in used if chance.random() < habit]
    days = sorted({*days, *(7 * int(week.split()[1]) + chance.randrange(7) for week in weeks)})
    held: dict[int, dict[str, Any]] = {day: {"daily": True} for day in days}
    held[days[0]]["monthly"] = True
    person = Person(segment, updates, held)
    for day in sorted({day // 7: day for day in reversed(days)}.values()):  # the first of a week
        held[day] |= {"weekly": True, **values_of(person.segment_of(day), chance)}
        del held[day]["weeks"]  # is asked once, of all four
    held.setdefault(7 * WEEKS - 1, {}).update(weeks=weeks, active_days=len(days))
    return person


@cache
def fleet_shop(devices: int = DEVICES) -> Shop:
    """Return what is true of so many devices, each once in every period that it reports of."""
    every = {"daily": 1, "monthly": 7 * WEEKS, **dict.fromkeys(_OF_ALL, 7 * WEEKS)}
    known = tuple(
        Device(
            FIRST + timedelta(days=day - day % every.get(name, 7)),
            person.segment_of(day),
            {name: value},
        )
        for person in people(devices)
        for day, values in person.days.items()
        for name, value in values.items()
    )
    return Shop(REGISTRY, known, FIRST, TODAY, RELEASED, "daily", WEEKS)


@contextmanager
def asked_fleet(devices: int = DEVICES) -> Iterator[FlaskClient]:
    """Run so many devices for four weeks; their collector is asked on the last evening."""
    known = people(devices)

    def behave(device: FleetDevice) -> None:
        day = int(device.clock.now // 86_400) - (FIRST - date(1970, 1, 1)).days
        person = known[device.number]
        if day == person.updates:
            _update(device, person.segment_of(day))
        for name, value in person.days.get(day, {}).items():
            device.record(name, value)

    with Fleet(
        REGISTRY,
        devices=devices,
        hours_on=_HOURS_ON,
        begin=FIRST,
        segment=lambda number: known[number].segment,
    ) as fleet:
        counts = fleet.run(behave, weeks=WEEKS)
        if lost := {reason: counts[reason] for reason in ("budget", "invalid") if counts[reason]}:
            raise RuntimeError(f"{lost}: devices refused what was planned")
        yield asker(fleet.app, fleet.read_token)


def _update(device: FleetDevice, segment: Mapping[str, str]) -> None:
    """Do what an update of the program does: its database stays, and its segment is another."""
    engine = device.client._engine
    engine.recorder = replace(engine.recorder, outbox=Outbox(segment))
