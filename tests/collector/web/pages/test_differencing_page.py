"""The page of the differencing attack shows what the command measures, and draws nothing."""

from __future__ import annotations

import re
from math import exp
from random import SystemRandom

import pytest
from flask.testing import FlaskClient

from benchmarks.accuracy.differencing import central, exact, locally
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.estimation.isolation import NEWCOMER, TIMES
from tests.collector.web.pages.conftest import BROWSER, ONE_METRIC, Visit, token_of
from tests.support.device.every_type import NAMES, registry_text

PATH = "/privacy/differencing"
EVERY_TYPE = Registry.from_text(registry_text())
SHOWN = re.compile(r"± ([\d,]+)")


def cells(text: str, head: str) -> list[str]:
    """Return the cells of the row of *head*."""
    (row,) = re.findall(rf'<tr><th scope="row">{re.escape(head)}</th>(.*?)</tr>', text)
    return re.findall(r"<td>(.*?)</td>", row)


def epsilon_of(metric: Metric) -> float:
    """Return what a device is charged for a report of *metric* at most."""
    return metric.most_nano / 1e9


def test_each_column_has_the_interval_that_the_attack_has(visit: Visit) -> None:
    """Exact, of a server however often it is asked, and of Hearsay, whose figure stays."""
    text = visit(PATH).text
    both, alone = locally()

    for times in TIMES:
        shown = [SHOWN.findall(cell)[0] for cell in cells(text, f"After {2 * times:,} answers")]
        first, server, ours = (int(number.replace(",", "")) for number in shown)
        assert first == exact().half_width
        assert server == round(central(times, SystemRandom()).half_width)
        assert ours == pytest.approx(both.half_width, rel=1e-3)
    own = SHOWN.findall(cells(text, "From the newcomer's report by itself")[2])
    assert int(own[0].replace(",", "")) == pytest.approx(alone.half_width, rel=1e-3)
    assert f"{NEWCOMER:,}" in text


def test_two_visits_show_the_same_since_nothing_is_drawn(visit: Visit) -> None:
    assert visit(PATH).text == visit(PATH).text


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_the_best_guess_from_an_isolated_report_of_each_metric(
    visit: Visit, name: str
) -> None:
    text, metric = visit(PATH).text, EVERY_TYPE.metric(name)
    row = text[text.index(f'/metric/{name}"') :].split("</tr>")[0]
    ours, server = re.findall(r"(\d+) in 100", row)
    least, most = (
        1 / (1 + exp(-amount)) for amount in (metric.mechanism.spent, epsilon_of(metric))
    )

    assert least <= int(ours) / 100 < most + 0.02
    assert int(server) == 100


def test_a_number_has_the_interval_of_a_report_and_its_range(visit: Visit) -> None:
    text = visit(PATH).text
    row = text[text.index('/metric/mean"') :].split("</tr>")[0]
    domain = EVERY_TYPE.metric("mean").domain

    found = re.search(r"± ([\d,.]+) \S+, of a range of ([\d,]+)", row)
    assert found is not None
    assert float(found[2].replace(",", "")) == domain.extent
    assert float(found[1].replace(",", "")) > domain.extent / 2


def test_who_sees_part_of_the_metrics_sees_them_alone(browser: FlaskClient) -> None:
    browser.set_cookie("hearsay", token_of(ONE_METRIC))

    text = browser.get(PATH, headers=BROWSER).text

    assert f'/metric/{ONE_METRIC}"' in text
    assert not [name for name in NAMES if name != ONE_METRIC and f'/metric/{name}"' in text]


def test_without_a_token_the_page_asks_to_log_in(browser: FlaskClient) -> None:
    assert browser.get(PATH, headers=BROWSER).status_code in (302, 303)
