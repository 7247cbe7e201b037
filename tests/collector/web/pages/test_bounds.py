"""Every statement of what a report proves, on device and pages, is a bound that holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from math import exp
from typing import Final

import pytest

from client_sdk.privacy.caps import Caps
from client_sdk.privacy.wording import explain, why_deniable
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from tests.collector.web.pages.conftest import Visit
from tests.support.device.every_type import NAMES, registry_text
from tests.support.sites.page import Page

REGISTRY: Final = Registry.from_text(registry_text())
WIDE: Final = Caps(report="99", metric_week="9999", week="9999", lifetime="9999", delta="0.1")
ODDS: Final = re.compile(r"([\d,.]+) to 1\b")
GUESS: Final = re.compile(r"at most ([\d.]+\d) times in 100|([\d.]*\d) (?:times )?in 100")


def told(metric: Metric, visit: Visit) -> Iterator[str]:
    """Yield each text that says how much a report of *metric* proves."""
    yield explain(metric, WIDE)
    yield why_deniable(metric)
    people = Page(visit("/privacy/people").text).text
    section = people[people.index(metric.title) :]
    yield section[: section.index("Who asks, until when")]
    privacy = visit("/privacy").text
    row = re.search(rf'/metric/{metric.name}".*?</tr>', privacy, re.DOTALL)
    assert row is not None
    yield row[0]
    page = Page(visit(f"/metric/{metric.name}").text).text
    yield from re.findall(r"Odds shift by at most\s*\S+ to 1", page)


@pytest.mark.parametrize("name", NAMES)
def test_no_statement_of_odds_or_guesses_is_below_what_holds(name: str, visit: Visit) -> None:
    """Law: e^ε and the best guess of one report, exact to twelve digits, are never undercut."""
    metric = REGISTRY.metric(name)
    ratio = exp(metric.mechanism.spent)
    odds, guesses = 0, 0

    for text in told(metric, visit):
        for found in ODDS.findall(text):
            odds += 1
            assert float(Decimal(found.replace(",", ""))) >= ratio * (1 - 1e-12)
        for found in GUESS.findall(text):
            if (right := float(found[0] or found[1])) != 50:  # of a coin
                guesses += 1
                assert right >= 100 * ratio / (1 + ratio) * (1 - 1e-12)

    assert odds >= 6
    assert guesses >= 3


def test_a_plan_names_the_odds_of_each_epsilon_that_it_compares(visit: Visit) -> None:
    """Law: each row of the plan states a bound for its own ε."""
    rows = re.findall(r'<th scope="row">([\d.]+)</th>.*?</tr>', visit("/plan?metric=boolean").text)
    page = visit("/plan?metric=boolean").text

    for epsilon in rows:
        row = page[page.index(f'<th scope="row">{epsilon}</th>') :]
        (shown, *_) = ODDS.findall(row)
        assert float(shown.replace(",", "")) >= exp(float(epsilon)) * (1 - 1e-12)
    assert len(rows) >= 3
