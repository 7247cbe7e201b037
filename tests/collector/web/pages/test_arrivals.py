"""How reports arrive, on the overview: how many are missing, and that none come any more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from flask.testing import FlaskClient

from client_sdk.core.epoch import epoch_of
from client_sdk.registry import Registry
from collector.core.cells import Cell
from collector.query.headline import is_listed
from tests.collector.web.conftest import MakeApp
from tests.support.crowds.asked import post
from tests.support.crowds.uploads import NOON, READ_TOKEN
from tests.support.device.every_type import registry_text
from tests.support.device.registries import BOOLEAN, file_with
from tests.support.store.memory_storage import MemoryStorage

LEAST: Final = 3_000
ENOUGH: Final = 4_000
TODAY: Final = datetime.fromtimestamp(NOON, UTC).date()


class Site:
    """A collector of one metric, with as many reports of it as are given."""

    def __init__(self, make_app: MakeApp, storage: MemoryStorage) -> None:
        self._make_app, self._storage = make_app, storage

    def of(self, reports: Mapping[int, int], every: str = "1d", **more: str) -> FlaskClient:
        """Return a browser of it, where so many periods ago there were so many *reports*."""
        form = {"every": f'"{every}"', "min_reports": str(LEAST), "segments": "[]", **more}
        text = file_with({**BOOLEAN, **form})
        metric = Registry.from_text(text).metric("m")
        for back, n in reports.items():
            cell = Cell(metric.digest, epoch_of(every, NOON) - back, "")
            self._storage.put({cell: [(0, n), (1, n // 2), (2, n - n // 2)]})
        client = self._make_app(text).test_client()
        client.set_cookie("hearsay", READ_TOKEN)
        return client


@pytest.fixture
def site(make_app: MakeApp, storage: MemoryStorage) -> Site:
    return Site(make_app, storage)


def main_of(client: FlaskClient, address: str = "/") -> str:
    reply = client.get(address, headers={"Accept": "text/html"})
    assert reply.status_code == 200, reply.text
    return reply.text.partition("<main")[2]


def progress(page: str) -> list[str]:
    return re.findall(r"[\d,]+ of [\d,]+ reports[^<]*", page)


@pytest.mark.parametrize(
    ("reports", "words"),
    [
        ({0: 100, 1: 200, 2: 200, 3: 200}, "700 of 3,000 reports, about 12 days"),
        ({1: 800, 2: 0, 3: 400}, "1,200 of 3,000 reports, about 5 days"),
        ({1: 2_999}, "2,999 of 3,000 reports, about 1 day"),
    ],
)
def test_too_few_reports_are_progress_with_the_days_at_the_rate_of_the_last(
    site: Site, reports: Mapping[int, int], words: str
) -> None:
    """Law: the reports are those of the API; the days are a rate of whole days that are over."""
    client = site.of(reports)

    page = main_of(client)

    (row,) = post(client, {"metrics": ["m"]}).get_json()["rows"]
    assert progress(page) == [words]
    assert row["reason"]["code"] == "too_few"
    assert f'<progress value="{row["n"]}" max="{LEAST}"' in page
    assert row["n"] == sum(reports.values())
    assert "not enough" not in page


@pytest.mark.parametrize(
    "reports",
    [
        {0: 300},  # no day is over
        {2: 300, 3: 300},  # none came yesterday
        {1: 90, 2: 90, 3: 90},  # thirty days never hold enough
    ],
)
def test_days_are_left_out_where_the_rate_does_not_tell_them(
    site: Site, reports: Mapping[int, int]
) -> None:
    page = main_of(site.of(reports))

    assert progress(page) == [f"{sum(reports.values()):,} of 3,000 reports"]


def test_weeks_give_a_rate_as_days_do(site: Site) -> None:
    client = site.of({1: 800, 2: 800, 3: 800}, every="7d")

    assert progress(main_of(client)) == ["2,400 of 3,000 reports, about 6 days"]
    assert progress(main_of(client, "/?from=2026-02-01&to=2026-02-28")) == [
        "2,400 of 3,000 reports"
    ]


def test_every_type_says_its_progress(make_app: MakeApp) -> None:
    """Law: no tile shows the text of an error; one of strings says where they are looked for."""
    client = make_app(registry_text()).test_client()
    client.set_cookie("hearsay", READ_TOKEN)

    page = main_of(client)

    assert "not enough" not in page
    registry = Registry.from_text(registry_text())
    assert len(progress(page)) == sum(map(is_listed, registry))


@pytest.mark.parametrize(
    ("reports", "said"),
    [
        ({3: ENOUGH, 4: ENOUGH}, []),
        ({4: ENOUGH, 5: ENOUGH}, ["No reports since 28 Feb 2026."]),
        ({0: ENOUGH, 9: ENOUGH}, []),
    ],
)
def test_reports_that_stopped_are_said_in_red(
    site: Site, reports: Mapping[int, int], said: list[str]
) -> None:
    """Law: a pause of three days may be a weekend; a longer one is a fault."""
    page = main_of(site.of(reports))

    assert re.findall(r'<p class="fault">(.*?)</p>', page) == said


def test_a_past_that_was_asked_for_is_no_silence(site: Site) -> None:
    client = site.of({20: ENOUGH, 21: ENOUGH})
    first, last = (TODAY - timedelta(days=days) for days in (25, 15))

    assert "No reports since" in main_of(client)
    assert "No reports since" not in main_of(client, f"/?from={first}&to={last}")


def test_a_metric_that_has_expired_is_not_silent(site: Site) -> None:
    client = site.of({9: ENOUGH, 10: ENOUGH}, expires=(TODAY - timedelta(days=2)).isoformat())

    assert "No reports since" not in main_of(client)
