"""A number that changed is told as it is now and as it was, beside the average over both."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

import pytest
from flask.testing import FlaskClient

from client_sdk.core.epoch import epoch_label, epoch_of
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.registry import Registry
from collector.core.cells import Cell
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import BROWSER
from tests.support.crowds.uploads import NOON, READ_TOKEN
from tests.support.store.memory_storage import MemoryStorage

N: Final = 4_000  # reports of a day or a week
BEFORE: Final = 0.39  # the share that says yes
NOW: Final = 0.16
EPOCHS: Final = 6  # with reports; the last is running
AT: Final = 3  # the first of them after the step
TODAY: Final = datetime.fromtimestamp(NOON, UTC).date().isoformat()
FORM: Final = """
[metrics.{name}]
title = "{name} metric"
question = "Did they {name}?"
type = "boolean"
epsilon = "1"
every = "{every}"
longitudinal = "fresh"
expected_devices = 10000
min_reports = 100
owner = "tests"
expires = 2027-12-31
"""
TEXT: Final = 'schema = 1\napp = "levels"\n' + "".join(
    FORM.format(name=name, every=every)
    for name, every in (("daily", "1d"), ("weekly", "7d"), ("steady", "1d"))
)


def said_yes(share: float, mechanism: GRR) -> int:
    """Return how many of N reports say yes where *share* of the devices do."""
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    return round(N * (share * p + (1 - share) * q))


@pytest.fixture
def stepped(make_app: MakeApp, storage: MemoryStorage) -> FlaskClient:
    """Pages of metrics that fell from BEFORE to NOW, and of one that did not."""
    for metric in Registry.from_text(TEXT):
        assert isinstance(metric.mechanism, GRR)
        for i in range(EPOCHS):
            share = BEFORE if i < AT or metric.name == "steady" else NOW
            yes = said_yes(share, metric.mechanism)
            epoch = epoch_of(metric.every, NOON) - (EPOCHS - 1) + i
            storage.put({Cell(metric.digest, epoch, ""): [(0, N), (1, N - yes), (2, yes)]})
    client = make_app(TEXT).test_client()
    client.set_cookie("hearsay", READ_TOKEN)
    return client


def page(client: FlaskClient, path: str) -> str:
    """Return the words of a page, without its charts."""
    response = client.get(path, headers=BROWSER)
    assert response.status_code == 200, response.text
    text = re.sub(r"<svg.*?</svg>", "", response.text, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def label(every: str, back: int) -> str:
    """Return the first day of the epoch *back* before the running one."""
    return epoch_label(every, epoch_of(every, NOON) - back)


def test_the_page_of_a_metric_tells_the_level_since_a_change_and_that_before(
    stepped: FlaskClient,
) -> None:
    """Law: the average over a step is shown as an average, beside both levels and their days.

    The running day is in neither, as it is no evidence of the change.
    """
    text = page(stepped, "/metric/daily")
    changed, yesterday, before = (label("1d", back) for back in (EPOCHS - 1 - AT, 1, EPOCHS - AT))

    assert f"Now: yes, since {changed} 16 % ±" in text
    average = f"The average of {label('1d', EPOCHS - 1)} to {TODAY}, across a change."
    ends = r"\([\d.]+ % to [\d.]+ %\) from"
    now = f"yes: 16 % {ends} {changed} to {yesterday}; before, 39.0 % {ends}"
    first = label("1d", EPOCHS - 1)
    assert re.search(f"{re.escape(average)} {now} {first} to {before}", text)


def test_a_change_of_a_weekly_metric_is_said_of_the_week(stepped: FlaskClient) -> None:
    """Law: the first day of the week of a change is not said to be its day."""
    week = label("7d", EPOCHS - 1 - AT)

    assert f"Now: yes, since the week of {week} 16 % ±" in page(stepped, "/metric/weekly")
    overview = page(stepped, "/")
    assert f"yes, on average lower since the week of {week}: 16 % ±" in overview
    assert f"lower since {label('1d', EPOCHS - 1 - AT)}: 16 % ±" in overview


def test_where_nothing_changed_the_average_is_said_to_be_one(stepped: FlaskClient) -> None:
    """Law: no level is told of a step that was not detected."""
    text = page(stepped, "/metric/steady")

    average = f"The average of {label('1d', EPOCHS - 1)} to {TODAY}; no change was detected"
    assert average in text
    assert "Now:" not in text


def test_a_comparison_names_its_metric_and_marks_a_week_that_is_running(
    stepped: FlaskClient,
) -> None:
    """Law: no row is called "yes" alone, and no days to come are said to be compared."""
    monday = label("7d", 0)
    path = f"/compare?metric=weekly&range=dates&from={monday}&to={TODAY}"
    drawn = stepped.get(path, headers=BROWSER).text

    assert 'aria-label="Chart: weekly metric: difference' in drawn
    assert re.search(r'<th scope="row">weekly metric: yes</th>', drawn)
    assert re.search(r"\w+ \(in progress\) against 23 Feb to 1 Mar\.", drawn)
    assert "(in progress)" not in page(stepped, "/compare?metric=weekly")


def test_the_window_of_a_running_week_ends_today(stepped: FlaskClient) -> None:
    """Law: no page tells a last day that is yet to come."""
    text = page(stepped, "/metric/weekly")

    first, last = re.findall(r"\d{4}-\d\d-\d\d", text[text.index("Window (UTC)") :])[:2]
    assert last == TODAY
    assert first < last
    assert f"{last} in progress" in text
