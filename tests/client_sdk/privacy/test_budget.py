"""What is told of epsilon: never less than a ledger is charged, and no more where that is reached.

A client records at every chance for more than a year.  Its ledger is then searched for the dearest
seven dates and the dearest year, and what the notice, the commands and the pages say is read from
their texts.
"""

from __future__ import annotations

import random
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from benchmarks.tables.epsilon_table import table
from client_sdk.core.epoch import DAY, HOUR
from client_sdk.privacy.budget import (
    NANO,
    chance,
    cost_of,
    epsilon,
    guesses,
    guesses_in_words,
    odds,
    percent,
    shift,
)
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.wording import explain
from client_sdk.registry import Registry
from client_sdk.testing import FrozenClock, MemoryClient
from collector.cli import main
from tests.collector.web.conftest import MakeApp, config, credentials, make_app, storage
from tests.collector.web.pages.conftest import BROWSER
from tests.support.crowds.uploads import READ_TOKEN
from tests.support.device.device import dearest_span, metric_text
from tests.support.sites.page import Page

__all__ = ["config", "credentials", "make_app", "storage"]  # fixtures of the web process

WIDE: Final = Caps(report="999", metric_week="9999", week="99999", lifetime="999999")
DAYS: Final = 372
# Unix time, midnight, the last day of a week and of four: 365 days touch 53 and 14 of them.
SUNDAY: Final = 20_016 * DAY
HEAD: Final = 'schema = 1\napp = "demo"\n'
CATEGORY: Final = 'type = "category"\nvalues = ["a", "b", "c"]'
AGGREGATE: Final = 'type = "boolean"\naggregate = "any"\notherwise = false'

FRESH: Final = {
    every: metric_text(f"m{every}", every=every, epsilon="0.5")
    for every in ("1h", "1d", "7d", "28d", "once")
}
PERMANENT: Final = metric_text("permanent", CATEGORY).replace('"fresh"', '"permanent"')
TWO_LAYER: Final = metric_text("two_layer", CATEGORY).replace(
    '"fresh"', '"two_layer"\nepsilon_permanent = "3"'
)
CASES: Final = {
    **{
        every: [FRESH[every]] for every in ("1d", "7d", "28d", "once")
    },  # 1h is slow, and among several
    "several": [*FRESH.values(), metric_text("more", every="7d", epsilon="1.25")],
    "permanent": [PERMANENT],
    "two_layer": [TWO_LAYER],
    "daily aggregate": [metric_text("used", AGGREGATE)],
    "weekly aggregate": [metric_text("used", AGGREGATE, every="7d")],
    "monthly aggregate": [metric_text("used", AGGREGATE, every="28d")],
}


def spend_at_every_chance(registry: Registry) -> MemoryClient:
    """Return a client that recorded all metrics in every hour, each value twice in a row."""
    client = MemoryClient(registry, caps=WIDE, clock=FrozenClock(SUNDAY))
    values = {
        metric.name: cycle("aabbcc" if metric.type == "category" else [True]) for metric in registry
    }
    hourly = [metric.name for metric in registry if metric.every == "1h"]
    for _ in range(DAYS):
        for name in registry.metrics:
            client.record(name, next(values[name]))
        for _ in range(23 if hourly else 0):
            client.clock.advance(seconds=HOUR)
            for name in hourly:
                client.record(name, next(values[name]))
        client.clock.advance(seconds=HOUR if hourly else 24 * HOUR)
    return client


def told_by_the_notice(client: MemoryClient) -> tuple[str, str]:
    text = " ".join(client.notice().split())
    found = re.search(
        r"any seven days it is at most ε (\S+), in any 365 days at most ε (\S+),", text
    )
    assert found is not None
    return found[1], found[2]


def told_by_the_command(path: Path) -> tuple[str, str]:
    printed = CliRunner().invoke(main, ["registry", "budget", str(path)])
    (total,) = [line for line in printed.output.splitlines() if "all together" in line[:16]]
    week, year = total.removeprefix("  all together").split()[:2]
    return week, year


def told_by_the_pages(app: MakeApp, text: str) -> list[tuple[str, str]]:
    client = app(text).test_client()
    client.set_cookie("hearsay", READ_TOKEN)
    found = []
    for path, pattern in (
        ("/privacy", r"any seven days ?ε (\S+) and any 365 days ?ε (\S+)"),
        ("/privacy/people", r"together cost at most ε (\S+) in any seven days and ε (\S+) in any"),
    ):
        page = " ".join(Page(client.get(path, headers=BROWSER).text).text.split())
        match = re.search(pattern, page)
        assert match is not None, page
        found.append((match[1], match[2]))
    return found


@pytest.mark.parametrize("case", CASES)
def test_what_is_told_is_what_the_dearest_week_and_year_of_a_ledger_cost(
    case: str, make_app: MakeApp, tmp_path: Path
) -> None:
    """Law: notice, command and both pages name the same bounds, and a ledger reaches them."""
    text = HEAD + "".join(CASES[case])
    path = tmp_path / "asked.toml"
    path.write_text(text, encoding="utf-8")

    client = spend_at_every_chance(Registry.from_text(text))
    charged = epsilon(dearest_span(client, 7)), epsilon(dearest_span(client, 365))

    assert told_by_the_notice(client) == charged
    assert told_by_the_command(path) == charged
    assert told_by_the_pages(make_app, text) == [charged, charged]


def test_commands_and_pages_tell_no_more_of_a_week_than_a_panel_lets_be_charged(
    make_app: MakeApp, tmp_path: Path
) -> None:
    """Law: of eight weekly metrics of ε 1 the panel of ε 4 draws two at a time."""
    metrics = [metric_text(f"m{i}", every="7d") for i in range(8)]
    text = HEAD + '[panel]\nweek = "4"\n' + "".join(metrics)
    path = tmp_path / "asked.toml"
    path.write_text(text, encoding="utf-8")
    client = spend_at_every_chance(Registry.from_text(text))

    week, year = told_by_the_notice(client)

    assert week == epsilon(dearest_span(client, 7)) == "4"
    assert dearest_span(client, 365) <= 53 * 4 * NANO
    assert told_by_the_command(path) == (week, year) == ("4", "212")
    assert told_by_the_pages(make_app, text) == [(week, year)] * 2


def test_caps_bound_a_year_by_its_weeks() -> None:
    """Law: 53 weeks, each within its cap, hold any year; the ledger spends no more."""
    registry = Registry.from_text(HEAD + FRESH["1d"])
    client = MemoryClient(registry, caps=Caps(week="1", metric_week="1"))
    for _ in range(DAYS):
        client.record("m1d", True)
        client.clock.advance(days=1)

    week, year = told_by_the_notice(client)

    assert (week, year) == ("1", "53")
    assert dearest_span(client, 7) == NANO
    assert dearest_span(client, 365) <= 53 * NANO


@pytest.mark.parametrize("every", ["1h", "1d", "7d", "28d"])
def test_an_explanation_names_the_week_and_the_year_of_its_metric(every: str) -> None:
    """Law: the words about one metric are of the same home as those about all."""
    metric = Registry.from_text(HEAD + FRESH[every]).metric(f"m{every}")

    said = explain(metric, WIDE)

    week, year = {
        "1h": ("84", "4,380"),
        "1d": ("3.5", "182.5"),
        "7d": ("1", "26.5"),
        "28d": ("1", "7"),
    }[every]
    assert f"ε {week} in any seven days, ε {year} in any 365 days" in said


@pytest.mark.parametrize(
    ("nano", "text"),
    [(1, "0.001"), (10**9, "1"), (1_230_000_001, "1.231"), (10**12, "1,000"), (0, "0")],
)
def test_epsilon_is_rounded_up(nano: int, text: str) -> None:
    """Law: no text understates what is spent."""
    assert epsilon(nano) == text


def test_odds_and_guesses_are_rounded_up_to_the_next_and_no_further() -> None:
    """Law: e^ε and 100 e^ε / (1 + e^ε), at 60 digits, for every hundredth of ε up to 20."""
    with localcontext(prec=60):
        for hundredths in range(1, 2_001):
            nano = hundredths * NANO // 100
            ratio = (Decimal(hundredths) / 100).exp()
            step = Decimal("0.1") if ratio < 100 else 1
            if ratio < 10**8:
                assert 0 <= Decimal(shift(nano).replace(",", "")) - ratio < step
            assert 0 <= guesses(nano) - 100 * ratio / (1 + ratio) < 1


def test_what_is_huge_is_bounded_too() -> None:
    """Law: a power of ten that is not below e^ε."""
    assert [shift(20 * NANO), shift(96 * NANO), guesses(96 * NANO)] == ["10^9", "10^42", 100]


def test_a_chance_is_rounded_away_from_what_it_would_hide() -> None:
    """Law: δ and the chance of the truth go up, the chance of anything else goes down."""
    assert [chance(Fraction(1, 10**6)), chance(Fraction(11, 10**7))] == ["1e-06", "2e-06"]
    assert percent(Fraction(7_311, 10_000), up=True) == "73.2 %"
    assert percent(Fraction(2_689, 10_000), up=False) == "26.8 %"
    assert odds(NANO, Fraction(15, 10**7)) == "2.8 to 1, but for a chance of 2e-06 of saying more"
    assert odds(NANO) == "2.8 to 1"
    assert guesses(NANO, Fraction(1, 10)) == 76
    for nano, words in ((NANO, "74"), (4 * NANO, "99"), (5 * NANO, "99.4"), (10 * NANO, "99.996")):
        assert guesses_in_words(nano) == words  # 100 times would be certain, and it is not
    assert guesses_in_words(96 * NANO) == "100"


def test_the_table_of_the_readme_bounds_what_it_tells() -> None:
    """Law: e^ε and the best guess stand there rounded up: never below, and by less than a step."""
    rows = [row.split(" | ") for row in table().splitlines()[2:]]

    for name, right, ratio, *_ in rows:
        exact = Decimal(name.removeprefix("| ")).exp()
        assert 0 <= Decimal(ratio.removesuffix(" : 1")) - exact < Decimal("0.1")
        assert 0 <= Decimal(right.removesuffix(" %")) - 100 * exact / (1 + exact) < 1


@pytest.mark.parametrize("seed", range(4))
def test_no_way_to_use_an_application_costs_more_than_is_told(seed: int) -> None:
    """Law: at chance hours, with hours or weeks between, of metrics of every kind at once."""
    weekly = metric_text("weekly_use", 'type = "boolean"\naggregate = "any"', every="7d")
    scheduled = metric_text("scheduled_use", AGGREGATE, every="7d", epsilon="0.7")
    monthly = metric_text("monthly_use", AGGREGATE, every="28d", epsilon="0.9")
    texts = [*FRESH.values(), PERMANENT, TWO_LAYER, weekly, scheduled, monthly]
    texts += CASES["daily aggregate"]
    registry, chance = Registry.from_text(HEAD + "".join(texts)), random.Random(seed)
    client = MemoryClient(registry, caps=WIDE, clock=FrozenClock(SUNDAY + seed * DAY))

    for _ in range(300):
        for metric in registry:
            if chance.random() < 0.6:
                client.record(
                    metric.name, chance.choice("abc") if metric.type == "category" else True
                )
        client.clock.advance(seconds=chance.choice((1, 5, 13, 24, 47, 90, 200)) * HOUR)

    for metric in registry:
        cost = cost_of(metric)
        charged = [dearest_span(client, dates, metric.digest) for dates in (1, 7, 365)]
        told = (cost.day, cost.week, cost.year)
        assert all(c <= t for c, t in zip(charged, told, strict=True)), metric.name
        assert charged[0] > 0


@pytest.mark.parametrize("panel", [False, True], ids=["caps", "panel"])
def test_what_a_clock_set_at_every_restart_can_cost_is_told_everywhere(
    make_app: MakeApp, tmp_path: Path, *, panel: bool
) -> None:
    """Law: one number, five weeks of what ledgers enforce; an attack passes one, and never it."""
    head = f'{HEAD}[panel]\nweek = "4"\n' if panel else HEAD
    text = head + FRESH["1d"].replace('epsilon = "0.5"', 'epsilon = "0.25"')
    path = tmp_path / "asked.toml"
    path.write_text(text, encoding="utf-8")
    client, week = MemoryClient(path), (4 if panel else 8)
    spent = [0]
    for _ in range(14 * 24):
        client.record("m1d", True)
        client.clock.now += 30 * DAY
        client.clock.turn_off()
        client.record("m1d", True)
        client.clock.advance(seconds=HOUR)
        spent.append(dearest_span(client, 10**6))
    most = max(late - early for early, late in zip(spent, spent[7 * 24 :], strict=False))

    told = f"any seven days can cost at most ε {5 * week}"
    assert 2 * week * NANO <= most <= 5 * week * NANO
    assert told in " ".join(client.notice().split())
    assert "any seven days can cost at most 5 times the cap" in client.explain("m1d")
    assert told in CliRunner().invoke(main, ["registry", "budget", str(path)]).output
    site = make_app(text).test_client()
    site.set_cookie("hearsay", READ_TOKEN)
    for page in ("/privacy", "/privacy/people"):
        assert f"ε {5 * week}" in site.get(page, headers=BROWSER).text
