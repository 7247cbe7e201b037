"""Every report is in the answer to a question, whatever it tells apart, and intervals hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from flask.testing import FlaskClient

from client_sdk.wire.reports import Column
from collector.core.cells import Cell, segment_text
from tests.support.crowds.asked import JANUARY_5, post
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    TODAY,
    as_json,
    registry,
    registry_text,
    upload,
)
from tests.support.enumeration.coverage import fits_rate
from tests.support.sites.in_memory import SECRETS, in_memory
from tests.support.sites.posting import fold
from tests.support.sites.posting import post as send
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.segmented import (
    OTHER,
    PAGES,
    REGISTRY,
    SEGMENTS,
    TEXT,
    fleet,
    members,
    perturbed,
    reports_of,
)

from .conftest import MakeApp

DEVICES: Final = 40_000  # a day
DAYS: Final = 6
WINDOW: Final = ["2026-01-05", "2026-01-10"]
SEED: Final = 20261122
BY: Final = [
    [],
    ["platform"],
    ["version"],
    ["country"],
    ["platform", "version"],
    ["country", "platform"],
    ["version", "country"],
]
LEVEL: Final = 0.95
FEW: Final = 100  # reports of a segment that a rule of old would have left out
ITEMS: Final = {"crashed": ("false", "true"), "page": PAGES}


@pytest.fixture
def held(storage: MemoryStorage) -> dict[str, Any]:
    """Devices by metric: day, segment, item; their reports are in the store."""
    generator = np.random.default_rng(SEED)
    found = {}
    for metric in REGISTRY:
        days = [fleet(DEVICES, generator, metric) for _ in range(DAYS)]
        found[metric.name] = np.array(days)
        for day, devices in enumerate(days):
            tallies = perturbed(metric, devices, generator)
            for segment, n, tally in zip(SEGMENTS, devices.sum(axis=1), tallies, strict=True):
                cell = Cell(metric.digest, JANUARY_5 + day, segment_text(metric, segment))
                storage.put({cell: list(enumerate([int(n), *tally.tolist()]))})
    return found


@pytest.fixture
def asker(make_app: MakeApp) -> FlaskClient:
    """A collector of the fleet's registry."""
    return make_app(TEXT).test_client()


def ask(client: FlaskClient, **question: Any) -> list[dict[str, Any]]:
    whole = {"date_range": WINDOW, "pagination": {"limit": 10_000}, **question}
    answer = post(client, whole)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.get_json()["rows"]
    return rows


def asked_of(
    client: FlaskClient, metric: str, by: list[str], days: Any, *, in_time: bool
) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Return the rows of each stretch of time, after the devices that they are about."""
    rows = ask(client, metrics=[metric], dimensions=[*(["time:day"] if in_time else []), *by])
    if not in_time:
        return [(days.sum(axis=0), rows)]
    labels = [f"2026-01-{5 + day:02}" for day in range(DAYS)]
    return [
        (devices, [row for row in rows if row["dimensions"]["time"] == label])
        for label, devices in zip(labels, days, strict=True)
    ]


@pytest.mark.parametrize("in_time", [False, True], ids=["all days", "day by day"])
@pytest.mark.parametrize("metric", ITEMS)
def test_every_report_is_in_the_answer(
    asker: FlaskClient, held: dict[str, Any], metric: str, in_time: bool
) -> None:
    """By no, one or two of three dimensions: each in one row, which has as many as its label says.

    Rows together are of small groups, and there are such.
    """
    together = 0
    for by in BY:
        for devices, rows in asked_of(asker, metric, by, held[metric], in_time=in_time):
            counts = reports_of(rows, by)
            truth = members(devices, by, counts)
            assert {place: int(part.sum()) for place, part in truth.items()} == counts
            assert sum(counts.values()) == DEVICES * (1 if in_time else DAYS)
            together += any(OTHER in place for place in counts)
    assert together >= len(BY) // 2


def test_intervals_hold_whatever_is_told_apart(asker: FlaskClient, held: dict[str, Any]) -> None:
    """Day by day, over all questions; and they would not, were small segments left out.

    Rows of one question are of different reports, or of bits that are independent; those of several
    are of the same.  So as many trials count as there are in one question on average.

    Source: Janson, Random Structures and Algorithms 2004: Hoeffding's bound for sums that fall into
        classes of independent terms.
    """
    inside = inside_without = total = 0
    for name, days in held.items():
        for by in BY:
            for devices, rows in asked_of(asker, name, by, days, in_time=True):
                places = reports_of(rows, by)
                truth = members(devices, by, places)
                many = devices * (devices.sum(axis=1) >= FEW)[:, None]
                without = members(many, by, places)
                for row in (row for row in rows if row["value"] is not None):
                    place = tuple(row["dimensions"][one] for one in by)
                    inside += holds(row, truth[place], name)
                    inside_without += holds(row, without[place], name)
                    total += 1
    assert total > 2_000
    assert fits_rate(inside // len(BY), total // len(BY), LEVEL), f"{inside} of {total}"
    assert not fits_rate(inside_without // len(BY), total // len(BY), LEVEL)


def holds(row: dict[str, Any], part: Any, metric: str) -> bool:
    """Return whether the interval of *row* holds the share among these devices."""
    share = part[ITEMS[metric].index(row["dimensions"]["item"])] / max(np.sum(part), 1)
    return bool(row["ci_low"] <= share <= row["ci_high"])


NOW, BEFORE = registry("2.0"), registry("1.0")  # what is asked, and how private each report is


@pytest.fixture
def client(storage: MemoryStorage, tmp_path: Path) -> FlaskClient:
    """A collector that knows both definitions of every metric."""
    texts = map(registry_text, ("2.0", "1.0"))
    settings = {**SECRETS, "HEARSAY_GATEWAY_KEY": GATEWAY_KEY}
    return in_memory(tmp_path, *texts, storage=storage, settings=settings).test_client()


def report(client: FlaskClient, storage: MemoryStorage, **epochs: tuple[int, int]) -> None:
    """Report of pages as said: by epoch so many times under each definition; then fold."""
    columns = [
        Column(definition.metric("page").digest, TODAY - int(ago[1:]), bytes(n))
        for ago, counts in epochs.items()
        for definition, n in zip((NOW, BEFORE), counts, strict=True)
        if n
    ]
    answer = send(client, as_json(upload(columns)), key=GATEWAY_KEY)
    assert answer.get_json()["accepted"] == sum(map(sum, epochs.values()))
    fold(storage, NOW, BEFORE)


def actives(client: FlaskClient, **more: Any) -> list[dict[str, Any]]:
    asked = {"metrics": ["page"], "verb": "actives", "date_range": "7d", **more}
    answer = post(client, asked)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.get_json()["rows"]
    return rows


def test_an_epoch_of_two_definitions_has_bounds_and_no_exact_number(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    """Each of 40 may be among the 30, or none: 40 to 70 devices."""
    report(client, storage, d1=(30, 40))

    (row,) = actives(client, dimensions=["time:day"])

    assert (row["value"], row["ci_low"], row["ci_high"], row["n"]) == (None, 40, 70, 70)
    assert row["reason"]["code"] == "bounds"
    assert [note["code"] for note in row["notes"]] == ["at_least"]


def test_an_epoch_of_one_definition_stays_exact_beside_one_of_two(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    report(client, storage, d1=(30, 40), d2=(0, 50), d3=(1, 1))

    *days, whole = actives(client, dimensions=["time:day"])

    found = {row["n"]: (row["value"], row["ci_low"], row["ci_high"]) for row in days}
    assert found == {2: (None, 1, 2), 50: (50, 50, 50), 70: (None, 40, 70)}
    assert (whole["ci_low"], whole["ci_high"]) == (50, 122)


def test_the_most_of_a_stretch_is_that_of_one_definition(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    """Two days under the old one, and one under the new: at least half of the 90 of the old."""
    report(client, storage, d1=(30, 0), d2=(0, 50), d3=(0, 40))

    rows = actives(client, dimensions=["time:month"])

    (row,) = [row for row in rows if row["n"] == 120]
    assert (row["value"], row["ci_low"], row["ci_high"]) == (None, 45, 120)
