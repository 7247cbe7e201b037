"""``hearsay query`` about numbers: ends as they are meant, signs are kept."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.lib.tallies import law_of
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.cli import main
from collector.core.cells import Cell, segment_text
from collector.core.config import Config
from collector.web import create_app
from tests.support.crowds.asked import JANUARY, JANUARY_5
from tests.support.crowds.uploads import NOON, READ_TOKEN
from tests.support.sites.served import served
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

TEXT: Final = """
schema = 1
app = "shop"

[segments]
arm = ["old", "new"]

[metrics.startup]
title = "Start-up"
question = "How long do people wait?"
type = "number"
mechanism = "square_wave"
min = 0
max = 10000
step = 250
unit = "ms"
{common}

[metrics.basket]
title = "Basket"
question = "How much do people buy?"
type = "number"
mechanism = "hybrid"
min = 0
max = 40
step = 1
unit = "EUR"
segments = ["arm"]
{common}

[metrics.deals]
title = "Deals"
question = "Do people look at deals?"
type = "boolean"
mechanism = "grr"
segments = ["arm"]
{common}
"""
COMMON: Final = """
epsilon = "1"
every = "1d"
longitudinal = "fresh"
expected_devices = 10000
min_reports = 100
owner = "shop"
expires = 2027-12-31
"""
WINDOW: Final = ("--from", JANUARY[0], "--to", JANUARY[1])
DEVICES: Final = 4_000  # an arm
BUYERS: Final = 500  # so few that the interval of their difference almost reaches 0
LIFT: Final = ("--verb", "lift", "--dimension", "arm", "--option", "dimension=arm")


def put(storage: MemoryStorage, metric: Metric, held: Any, seed: int, **segment: str) -> None:
    """Fold the reports of devices of which so many hold each value."""
    chance = np.random.default_rng(seed)
    tally = law_of(metric.mechanism).drawn(held, 1, chance)[0]
    cells = [(0, int(np.sum(held))), *((i + 1, int(k)) for i, k in enumerate(tally) if k)]
    storage.put({Cell(metric.digest, JANUARY_5, segment_text(metric, segment)): cells})


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A shop whose new arm sells a little more."""
    path = tmp_path_factory.mktemp("registry") / "shop.toml"
    path.write_text(TEXT.format(common=COMMON), encoding="utf-8")
    registry = Registry.from_text(path.read_text(encoding="utf-8"))
    storage = MemoryStorage()
    startup = registry.metric("startup")
    put(storage, startup, np.full(41, 300), 1)
    for arm, most, yes in (("old", 12, 1_200), ("new", 24, 1_700)):
        basket = np.bincount(np.arange(BUYERS) % most, minlength=41)
        put(storage, registry.metric("basket"), basket, 12, arm=arm)  # 5.6, from 0.4 to 10.7
        put(storage, registry.metric("deals"), np.array([DEVICES - yes, yes]), 3, arm=arm)
    config = Config.from_env({"HEARSAY_REGISTRY": str(path), "HEARSAY_READ_TOKEN": READ_TOKEN})
    app = create_app(config, storage, lambda: NOON, MemoryCredentials())
    with served(app) as address:
        yield address


def printed(url: str, *arguments: str) -> str:
    known = {"HEARSAY_URL": url, "HEARSAY_READ_TOKEN": READ_TOKEN}
    result = CliRunner().invoke(main, ["query", *arguments, *WINDOW], env=known)
    assert result.exit_code == 0, result.output
    return result.output


def lines(url: str, *arguments: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(printed(url, *arguments, "--format", "csv"))))


def test_the_ends_of_a_range_of_numbers_are_typed_as_numbers(url: str) -> None:
    """Half of the people wait between 2.5 and 7.5 seconds."""
    ends = ("--option", "low=2500", "--option", "high=7500")

    (line,) = lines(url, "startup", "--verb", "range", *ends)
    (listed,) = lines(url, "startup", "--verb", "range", "--option", "ranges=[[2500,7500]]")

    assert float(line["ci_low"]) <= 21 / 41 <= float(line["ci_high"])
    assert {**line, "item": ""} == {**listed, "item": ""}


def test_an_end_that_is_no_number_is_refused_with_what_it_must_be(url: str) -> None:
    known = {"HEARSAY_URL": url, "HEARSAY_READ_TOKEN": READ_TOKEN}
    for end in ("low=soon", "low=nan", "high=1e999"):
        asked = ["query", "startup", "--verb", "range", "--option", end, *WINDOW]
        result = CliRunner().invoke(main, asked, env=known)

        assert result.exit_code == 1
        assert "options.ranges.0: must have numbers for ends" in result.output


@pytest.mark.parametrize("metric", ["basket", "deals"])
def test_what_a_lift_prints_has_the_sign_that_its_interval_has(url: str, metric: str) -> None:
    """In the table as in the file: an interval beside 0 is not rounded across it."""
    asked = (metric, *LIFT, "--option", "control=old")

    found = lines(url, *asked)[0]
    table = printed(url, *asked).splitlines()

    assert 0 < float(found["ci_low"]) < 1 or metric == "deals"
    (shown,) = [line for line in table if " difference " in line]
    value, _, reach = shown.partition(found["measure"])[2].split()[:3]
    assert float(value) > float(reach.strip("()"))


def test_a_difference_of_shares_is_printed_in_points(url: str) -> None:
    """Beside the lift, which is in percent of the control."""
    table = printed(url, "deals", *LIFT, "--option", "control=old").splitlines()

    (difference,) = [line for line in table if " difference " in line]
    (lift,) = [line for line in table if " lift " in line]
    assert " points " in difference
    assert "%" not in difference
    assert " % " in lift
