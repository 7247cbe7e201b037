"""Devices that are seen now and then, counted by months of 28 days: exactly, and without an id.

Each device keeps pauses of up to two weeks, and a third of its visits find no network.  The truth
is a list of visits that no device and no collector sees.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from flask.testing import FlaskClient

from client_sdk.client import Client
from client_sdk.core.epoch import DAY, epoch_label, epoch_of, epoch_start
from client_sdk.core.errors import TransportError
from client_sdk.core.limits import MAX_REPORT_AGE
from client_sdk.core.stats import Reason
from client_sdk.privacy.caps import Caps
from client_sdk.registry import Registry
from client_sdk.upload.transport import Answer
from collector.analytics.rows import ALL
from collector.core.cells import LAST_DAYS, LAST_VERSION
from tests.support.crowds.asked import post as ask
from tests.support.crowds.uploads import READ_TOKEN
from tests.support.device.clock import FakeClock
from tests.support.device.device import make_client, metric_text
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.sites.in_memory import in_memory
from tests.support.sites.page import Page
from tests.support.sites.posting import fold, post
from tests.support.store.memory_storage import MemoryStorage

DEVICES: Final = 120
PLATFORMS: Final = ("linux", "mac")
PAUSE: Final = MAX_REPORT_AGE  # days between two visits at most
FIRST: Final = epoch_of("28d", 20_550 * DAY)
EPOCHS: Final = range(FIRST, FIRST + 3)
START: Final = epoch_start("28d", FIRST)
DAYS: Final = 28 * len(EPOCHS)
MONTHS: Final = ["month 0", "month 1", "month 2"]
_SUM: Final = 'type = "count"\naggregate = "sum"\nmin = 0\nmax = 50\nstep = 1\nunit = "runs"'
TEXT: Final = 'schema = 1\napp = "seldom"\n[segments]\nplatform = ["linux", "mac"]\n' + "".join(
    metric_text(
        name, f'{kind}\nmin_reports = 100\nsegments = ["platform"]', epsilon="5", every=every
    )
    for name, kind, every in (
        ("active", 'type = "boolean"', "28d"),
        ("runs", _SUM, "28d"),
        ("week", 'type = "boolean"', "7d"),
        ("months", f'type = "retention"\nperiods = {json.dumps(MONTHS)}', "28d"),
    )
)
WIDE: Final = Caps(report="9", metric_week="99", week="99", lifetime="999")
REGISTRY: Final = Registry.from_text(TEXT)


@dataclass
class Network:
    """What carries uploads to a collector, if it is there."""

    site: FlaskClient
    up: bool = True

    def send(self, body: bytes, timeout: float) -> Answer:
        if not self.up:
            raise TransportError("no network")
        reply = post(self.site, body)
        assert reply.status_code == 202, reply.text
        return Answer(202, None, reply.data)


@dataclass
class World:
    """A collector, and by metric and epoch the devices that visited in it."""

    site: FlaskClient
    clock: FakeClock
    truth: dict[str, dict[int, set[int]]]

    def use(self, client: Client, device: int) -> None:
        for metric in REGISTRY:
            if metric.name != "months":
                self.truth[metric.name][epoch_of(metric.every, self.clock())].add(device)
                client.record(metric.name, 1 if metric.name == "runs" else True)

    def look_back(self, client: Client, device: int) -> None:
        """Report the months of *device*, which an application keeps beside its settings."""
        months = zip(MONTHS, EPOCHS, strict=True)
        client.record("months", [m for m, epoch in months if device in self.truth["active"][epoch]])

    def ask(self, metric: str, verb: str = "actives", **fields: Any) -> list[dict[str, Any]]:
        reply = ask(self.site, {"metrics": [metric], "verb": verb, **fields})
        assert reply.status_code == 200, reply.text
        rows: list[dict[str, Any]] = reply.get_json()["rows"]
        return rows


def visits(draw: random.Random) -> Iterator[tuple[int, bool, bool]]:
    """Yield the days of one device, whether it is used, and whether it has a network.

    It comes and goes, and is never without a network twice in a row.
    """
    begin, used_for = draw.randrange(DAYS - 28), draw.randrange(1, DAYS)
    day, was_up = begin, True
    while day < DAYS + 2 * PAUSE:
        up = not was_up or draw.random() < 0.67
        yield day, day < min(begin + used_for, DAYS), up
        day, was_up = day + draw.choice((1, 2, 5, 9, 13, PAUSE)), up


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    storage, clock = MemoryStorage(), FakeClock(START + DAY // 2)
    app = in_memory(tmp_path_factory.mktemp("monthly"), TEXT, storage=storage, clock=clock)
    return simulated(storage, app.test_client(), clock)


def simulated(storage: MemoryStorage, site: FlaskClient, clock: FakeClock) -> World:
    draw, world = random.Random(28), World(site, clock, defaultdict(lambda: defaultdict(set)))
    calendar: dict[int, list[tuple[int, bool, bool]]] = defaultdict(list)
    for device in range(DEVICES):
        for day, is_used, up in visits(draw):
            calendar[day].append((device, is_used, up))
    network = Network(site)
    crowd = [
        make_client(
            registry=REGISTRY,
            clock=clock,
            transport=network,
            caps=WIDE,
            segment={"platform": PLATFORMS[device % 2]},
            randomness=SeededRandomness(b"monthly %d" % device),
        )
        for device in range(DEVICES)
    ]
    for day in range(DAYS + 2 * PAUSE):
        for device, is_used, network.up in calendar[day]:
            if is_used:
                world.use(crowd[device], device)
            if day >= DAYS:
                world.look_back(crowd[device], device)
            send(crowd[device], network.up)
        storage.clock = int(clock())
        while storage.entries:
            fold(storage, REGISTRY)
        clock.advance(days=1)
    for client in crowd:
        stats = client.stats()
        assert not any(stats[why] for why in (Reason.TOO_OLD, Reason.WINDOW_DROPPED, Reason.BUDGET))
        client.close(0)
    clock.advance(days=LAST_DAYS[-1] + 1)
    return world


def send(client: Client, up: bool) -> None:
    """Send all; an upload that was tried before is repeated in a flush of its own."""
    complete = any(client.flush().complete for _ in range(4 if up else 1))
    assert complete or not up


def exact(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the number of each stretch of time that has one, which must be exact."""
    numbers = {}
    for row in rows:
        if row["value"] is not None:
            assert row["value"] == row["ci_low"] == row["ci_high"]
            numbers[row["dimensions"]["time"]] = row["value"]
    return numbers


def label(epoch: int, every: str = "28d") -> str:
    return epoch_label(every, epoch)


@pytest.mark.parametrize("metric", ["active", "runs"])
def test_monthly_actives_are_exact_without_an_id(world: World, metric: str) -> None:
    """Law: integer for integer, of single values and of aggregates, with nothing of them noisy."""
    rows = world.ask(metric)

    months = {label(epoch): len(world.truth[metric][epoch]) for epoch in EPOCHS}
    assert exact(rows) == months
    assert max(months.values()) < DEVICES  # devices come and go


def test_a_month_is_no_sum_of_its_weeks(world: World) -> None:
    """Law: weekly reports bound the month, and the bounds hold what the monthly metric counts."""
    month = [label(FIRST), datetime.fromtimestamp(START + 27 * DAY, UTC).date().isoformat()]
    (whole,) = [
        row for row in world.ask("week", date_range=month) if row["dimensions"]["time"] == ALL
    ]

    truth = len(world.truth["active"][FIRST])
    weeks = [len(world.truth["week"][epoch]) for epoch in range(4 * FIRST, 4 * FIRST + 4)]
    assert (whole["value"], whole["ci_low"], whole["ci_high"]) == (None, max(weeks), sum(weeks))
    assert max(weeks) < truth < sum(weeks)


def test_segments_of_a_month_add_up_to_it(world: World) -> None:
    rows = world.ask("active", dimensions=["time", "platform"])

    for place, platform in enumerate(PLATFORMS):
        part = [row for row in rows if row["dimensions"]["platform"] == platform]
        assert exact(part) == {
            label(epoch): sum(device % 2 == place for device in world.truth["active"][epoch])
            for epoch in EPOCHS
        }


def test_the_page_counts_the_same_over_six_months_by_itself(world: World) -> None:
    """Law: its default window holds whole epochs of 28 days, and no panel refuses it."""
    world.site.set_cookie("hearsay", READ_TOKEN)

    page = world.site.get("/metric/active", headers={"Accept": "text/html"}).text
    file = world.site.get("/metric/active/devices.csv").text

    counted = {row["time"]: row["value"] for row in csv.DictReader(io.StringIO(file))}
    for epoch in EPOCHS:
        assert float(counted[label(epoch)]) == len(world.truth["active"][epoch])
    assert "leaves no whole epoch" not in page
    assert "This cannot be answered" not in page
    assert '<option value="6mo" selected>' in page
    assert '<option value="7d"' not in page


def test_the_overview_tells_of_how_long_a_monthly_tile_is(world: World) -> None:
    world.site.set_cookie("hearsay", READ_TOKEN)

    text = Page(world.site.get("/", headers={"Accept": "text/html"}).text).text

    months = sum(len(world.truth["active"][epoch]) for epoch in EPOCHS)
    assert text.count(f"{months:,} reports in 6 months") == 2  # active and runs
    assert "leaves no whole epoch" not in text


def test_every_page_takes_a_monthly_metric_by_default(world: World) -> None:
    world.site.set_cookie("hearsay", READ_TOKEN)
    for address in ("/compare?metric=active", "/ask?metric=active&verb=actives", "/privacy"):
        answer = world.site.get(address, headers={"Accept": "text/html"})

        assert answer.status_code == 200, address
        assert "leaves no whole epoch" not in answer.text, address


def test_a_range_that_may_hold_no_month_is_refused_with_one_that_does(world: World) -> None:
    """Law: nobody is given a part of a month for a month."""
    days = [datetime.fromtimestamp(START + day * DAY, UTC).date().isoformat() for day in (1, 27)]
    reply = ask(world.site, {"metrics": ["active"], "verb": "actives", "date_range": days})

    assert reply.status_code == 400
    assert "28 days always hold the start of one" in reply.get_json()["detail"]


def test_versions_of_a_month_grow_to_all_of_it_and_stay(world: World) -> None:
    """Law: what came up to two weeks after its month is in the last version, and in no earlier.

    Of an aggregate nothing comes before the month is over.
    """
    month = [label(FIRST), label(FIRST)]
    versions = [
        exact(world.ask("runs", date_range=month, version=version)).get(label(FIRST), 0)
        for version in range(LAST_VERSION + 1)
    ]

    assert versions == sorted(versions)
    assert versions[-1] == len(world.truth["runs"][FIRST])
    assert versions[0] < versions[-2] < versions[-1]


def test_retention_over_months_has_intervals_that_hold_the_truth(world: World) -> None:
    """Law: a period may be a month; randomness is seeded, so this one answer is judged."""
    rows = world.ask("months", "retention")

    active = world.truth["active"]
    first, members = active[FIRST], set().union(*(active[epoch] for epoch in EPOCHS))
    truth = [
        *(len(active[epoch]) / len(members) for epoch in EPOCHS),
        *(len(active[epoch] & first) / len(first) for epoch in EPOCHS[1:]),
    ]
    assert [row["dimensions"]["item"] for row in rows] == [*MONTHS, *MONTHS[1:]]
    for row, share in zip(rows, truth, strict=True):
        assert row["ci_low"] <= share <= row["ci_high"]
        assert row["ci_high"] - row["ci_low"] > 0
    page = world.site.get("/metric/months", headers={"Accept": "text/html"})
    assert "leaves no whole epoch" not in page.text
