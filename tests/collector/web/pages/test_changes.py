"""Pages tell changes that are more than noise among all tiles, and counts as counts."""

from __future__ import annotations

from typing import Any, Final

import pytest

from client_sdk.registry import Registry
from collector.core.cells import Cell
from tests.collector.web.conftest import MakeApp
from tests.support.crowds.asked import post
from tests.support.crowds.uploads import READ_TOKEN, TODAY
from tests.support.device.registries import BOOLEAN, table
from tests.support.store.memory_storage import MemoryStorage

TILES: Final = 11
DAYS: Final = 14
REPORTS: Final = 4_000  # a day
TEXT: Final = 'schema = 1\napp = "tiles"\n' + "\n".join(
    table(f"m{i}", BOOLEAN, every='"1d"', mechanism='"grr"', min_reports="1000", segments=None)
    for i in range(TILES)
)
REGISTRY: Final = Registry.from_text(TEXT)
WINDOW: Final = {"date_range": "14d", "dimensions": ["time:day"]}


def fill(storage: MemoryStorage, name: str, before: float, after: float) -> None:
    """Store what devices send on average, with another share in the second week."""
    metric = REGISTRY.metric(name)
    channel: Any = metric.mechanism.channel  # type: ignore[attr-defined]  # grr has one
    p, q = float(channel.p), float(channel.q)
    for day in range(DAYS):
        share = after if day >= DAYS // 2 else before
        said = round(REPORTS * (q + (p - q) * share))
        cell = Cell(metric.digest, TODAY - DAYS + 1 + day, "")
        storage.put({cell: [(0, REPORTS), (1, REPORTS - said), (2, said)]})


@pytest.mark.parametrize(("after", "is_told"), [(0.329, False), (0.36, True)])
def test_a_change_is_told_if_it_stands_out_of_all_tiles(
    make_app: MakeApp, storage: MemoryStorage, after: float, is_told: bool
) -> None:
    """Both are found by a question about this metric alone; of eleven only one stands out."""
    for i in range(TILES):
        fill(storage, f"m{i}", 0.3, after if i == 0 else 0.3)
    client = make_app(TEXT).test_client()

    answer = post(client, {"metrics": ["m0"], "verb": "trend", **WINDOW}).get_json()
    (change,) = answer["meta"]["facts"]["changes"]
    client.post("/login", data={"token": READ_TOKEN})
    page = client.get("/?range=14d").text

    assert page.count('class="tile') >= TILES or page.count("/metric/m") >= TILES
    assert change["detected"]
    assert (change["p_value"] * TILES <= 0.05) == is_told
    assert page.count('class="change"') == is_told
    assert ("higher since" in page) == is_told


@pytest.mark.parametrize("words", ["14d", "12mo"])
def test_a_page_counts_devices_by_day_however_long_its_time_is(
    make_app: MakeApp, storage: MemoryStorage, words: str
) -> None:
    """Of weeks no more than bounds would be known; no count has a reason, or needs more reports."""
    fill(storage, "m0", 0.3, 0.3)
    client = make_app(TEXT).test_client()
    client.post("/login", data={"token": READ_TOKEN})

    told = client.get(f"/metric/m0/devices.csv?range={words}").text.splitlines()
    heads = told[0].split(",")
    rows = [dict(zip(heads, line.split(","), strict=False)) for line in told[1:]]

    days = [row for row in rows if row["time"] != "(all)"]
    assert [row["value"] for row in days] == [f"{REPORTS}.0"] * DAYS
    assert rows[-1]["ci_low"] == f"{REPORTS}.0"
    assert rows[-1]["value"] == ""
