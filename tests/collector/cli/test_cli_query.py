"""``hearsay query`` asks a running collector; what it prints says how sure each number is."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner, Result

from benchmarks.lib.tallies import law_of
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.cli import main
from collector.core.cells import Cell, segment_text
from collector.core.config import Config
from collector.web import create_app
from tests.support.crowds.asked import JANUARY, JANUARY_5, store
from tests.support.crowds.uploads import NOON, READ_TOKEN, registry, registry_text
from tests.support.curl import needs_curl
from tests.support.patience import PATIENCE
from tests.support.sites.served import served
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

PAGE: Final = registry().metric("page")
WINDOW: Final = ("--from", JANUARY[0], "--to", JANUARY[1])
ENVIRONMENT: Final = {name: None for name in os.environ if name.startswith("HEARSAY_")}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A collector with reports of two platforms; one of them is too few for a number."""
    path = tmp_path_factory.mktemp("registry") / "metrics.toml"
    path.write_text(registry_text(min_reports=150), encoding="utf-8")
    metric = registry(min_reports=150).metric("page")
    storage = MemoryStorage()
    for platform, n in (("linux", 4_000), ("mac", 2_000)):
        store(storage, metric, JANUARY_5, n, platform=platform)
    store(storage, metric, JANUARY_5 + 7, 120, platform="mac")
    config = Config.from_env({"HEARSAY_REGISTRY": str(path), "HEARSAY_READ_TOKEN": READ_TOKEN})
    app = create_app(config, storage, lambda: NOON, MemoryCredentials())
    with served(app) as address:
        yield address


def ask(url: str, *arguments: str, **env: str) -> Result:
    known = {**ENVIRONMENT, "HEARSAY_URL": url, "HEARSAY_READ_TOKEN": READ_TOKEN, **env}
    return CliRunner().invoke(main, ["query", *arguments], env=known)


def printed(url: str, *arguments: str) -> str:
    result = ask(url, *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_an_answer_is_a_table_with_intervals_and_what_it_rests_on(url: str) -> None:
    """As many digits as the interval deserves."""
    lines = printed(url, "page", "--verb", "top_k", "--option", "k=2", *WINDOW).splitlines()

    assert lines[0] == "Page"
    assert lines[3].split() == ["item", "value", "±", "reports"]
    assert lines[4].split()[:3] == ["home", "100", "%"]  # 216 % are not possible
    assert lines[4].split()[-1] == "6,120"
    assert len(lines[4]) == len(lines[5])
    assert any(line.startswith("6,120 reports; 95 %, all intervals at once") for line in lines)
    assert any("2026-01-05 to 2026-01-18" in line for line in lines)


def test_a_count_is_shown_however_small_it_is(url: str) -> None:
    """Nothing is added to it, so it needs no least number of reports, and is exact."""
    output = printed(url, "page", "--verb", "actives", "--filter", "platform=mac", *WINDOW)

    lines = [line.split() for line in output.splitlines() if line.startswith("2026-01-")]
    assert lines == [
        ["2026-01-05", "2,000", "devices", "2,000"],
        ["2026-01-12", "120", "devices", "120"],
    ]
    assert "not enough reports" not in output
    assert "takes" not in output


def test_devices_of_a_longer_time_are_between_bounds_and_neither_is_the_answer(url: str) -> None:
    """A page shows the same words."""
    output = printed(url, "page", "--verb", "actives", *WINDOW)

    (line,) = [line for line in output.splitlines() if line.startswith("(all)")]
    assert " 6,000 to 6,120 devices " in line
    assert "no more than bounds is known" in line
    assert "asked every week counts the devices of a week" in output


def test_adoption_counts_every_report(url: str) -> None:
    """Shares of a week sum to 1, and a rare platform has its own."""
    output = printed(
        url, "page", "--verb", "adoption", "--dimension", "platform", "--range", "12mo"
    )

    lines = [line.split() for line in output.splitlines() if line.startswith("2026-01-")]
    assert lines == [
        ["2026-01-05", "linux", "66.67", "%", "4,000"],
        ["2026-01-05", "mac", "33.33", "%", "2,000"],
        ["2026-01-12", "mac", "100", "%", "120"],
    ]


def test_small_groups_are_withheld_on_demand_and_totals_say_how_far_they_are_off(url: str) -> None:
    """120 of all reports of the second week; of both weeks the platform has enough."""
    week = ("--from", "2026-01-12", "--to", "2026-01-18")
    output = printed(url, "page", "--dimension", "platform", "--small-cells", "withhold", *week)

    assert "120 of 120 reports are in groups with fewer than 150, which have no number" in output
    assert "off by at most 100 points" in output


def test_a_row_without_a_number_says_why(url: str) -> None:
    output = printed(url, "page", "--dimension", "time:week", *WINDOW)

    (line,) = [line for line in output.splitlines() if "2026-01-12  home" in line]
    assert "–" in line
    assert "not enough reports: 120 of at least 150 needed" in line


def test_filters_options_and_order_are_those_of_the_question(url: str) -> None:
    told = json.loads(
        printed(
            url,
            *("page", "--verb", "frequency", "--filter", "platform!=mac", "--order-by", "-value"),
            *("--alpha", "0.1", "--postprocess", "norm_sub", "--limit", "2", "--format", "json"),
            *("--dimension", "platform", *WINDOW),
        )
    )

    question = told["meta"]["query"]
    assert question["filters"] == [["is_not", "platform", ["mac"]]]
    assert question["order_by"] == [["value", "desc"]]
    assert (question["alpha"], question["postprocess"]) == (0.1, "norm_sub")
    assert question["pagination"]["limit"] == len(told["rows"]) == 2


@pytest.mark.parametrize(
    ("text", "values"), [("platform=linux", ["linux"]), ("platform=linux,mac", ["linux", "mac"])]
)
def test_a_filter_may_name_several_values(url: str, text: str, values: list[str]) -> None:
    told = json.loads(printed(url, "page", "--filter", text, *WINDOW, "--format", "json"))

    assert told["meta"]["query"]["filters"] == [["is", "platform", values]]


def test_an_answer_can_be_a_file(url: str) -> None:
    lines = list(csv.DictReader(io.StringIO(printed(url, "page", *WINDOW, "--format", "csv"))))

    assert [line["item"] for line in lines] == ["home", "news", "shop"]
    assert all(float(line["ci_low"]) < float(line["ci_high"]) for line in lines)


@pytest.mark.parametrize("form", ["table", "csv", "json", "svg"])
def test_what_is_printed_can_be_written_to_a_file(url: str, tmp_path: Path, form: str) -> None:
    file = tmp_path / "page"

    shown = ask(url, "page", *WINDOW, "--format", form)
    output = printed(url, "page", *WINDOW, "--format", form, "-o", str(file))

    assert file.read_bytes() == shown.stdout_bytes
    assert output == ""


def test_an_answer_can_be_a_picture(url: str) -> None:
    shown = printed(url, "page", *WINDOW, "--format", "svg")

    assert ElementTree.fromstring(shown).tag.endswith("svg")  # noqa: S314  # our own


def test_the_token_may_stand_in_a_file(url: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{READ_TOKEN}\n", encoding="utf-8")

    result = ask(url, "page", *WINDOW, "--token-file", str(file), HEARSAY_READ_TOKEN="")

    assert result.exit_code == 0


def test_what_cannot_be_answered_is_said_in_one_line(url: str) -> None:
    result = ask(url, "page", "--verb", "top_k", "--option", "k=0", *WINDOW)

    assert result.exit_code == 1
    assert "--option k=…: expected `int` >= 1" in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [("--alpha", "0"), ("--range", ""), ("--postprocess", "")],
)
def test_an_option_that_is_empty_or_0_is_refused_as_it_was_said(
    url: str, arguments: tuple[str, str]
) -> None:
    """Law: nothing that was said is left out; the default is another question."""
    window = () if "--range" in arguments else WINDOW

    result = ask(url, "page", *arguments, *window)

    assert result.exit_code == 1
    assert f"{arguments[0]}: " in result.output


def test_a_missing_token_or_collector_is_said_in_one_line(url: str) -> None:
    without = ask(url, "page", HEARSAY_READ_TOKEN="")
    nobody = ask("http://127.0.0.1:1", "page")

    assert "HEARSAY_READ_TOKEN" in without.output
    assert "did not answer" in nobody.output
    assert (without.exit_code, nobody.exit_code) == (1, 1)
    assert READ_TOKEN not in nobody.output


@pytest.mark.parametrize(
    "arguments",
    [
        *((flag, text) for flag in ("--filter", "--option") for text in ("platform", "=mac")),
        ("--filter", "!=mac"),
        ("--order-by", ""),
        ("--order-by", "-"),
        ("--from", "2026-01-01"),
        ("--range", "7d", *WINDOW),
        (),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused(url: str, arguments: tuple[str, ...]) -> None:
    metrics = ("page",) if arguments else ()

    assert ask(url, *metrics, *arguments).exit_code == 2


@needs_curl
def test_the_same_question_is_explained_as_curl_and_python(url: str) -> None:
    """Both run and get the same numbers; neither holds the token."""
    asked = ("page", "--verb", "top_k", "--option", "k=2", *WINDOW)
    output = printed(url, *asked, "--explain")
    command, _, program = output.partition("\n\n")
    environment = {**os.environ, "HEARSAY_READ_TOKEN": READ_TOKEN}
    wanted = json.loads(printed(url, *asked, "--format", "json"))["rows"]

    curl = subprocess.run(
        ["sh", "-c", command.replace("curl", "curl -s", 1)],
        capture_output=True, check=True, env=environment, timeout=PATIENCE,
    )  # fmt: skip
    found: dict[str, Any] = {}
    here = program.replace('os.environ["HEARSAY_READ_TOKEN"]', repr(READ_TOKEN))
    exec(here.partition("print(")[0], found)  # noqa: S102  # what was printed

    assert json.loads(curl.stdout)["rows"] == wanted
    assert list(found["answer"].rows) == wanted
    assert READ_TOKEN not in output
    assert shlex.split(command)[0] == "curl"


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
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
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


def printed_of_shop(shop: str, *arguments: str) -> str:
    known = {"HEARSAY_URL": shop, "HEARSAY_READ_TOKEN": READ_TOKEN}
    result = CliRunner().invoke(main, ["query", *arguments, *WINDOW], env=known)
    assert result.exit_code == 0, result.output
    return result.output


def lines(shop: str, *arguments: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(printed_of_shop(shop, *arguments, "--format", "csv"))))


def test_the_ends_of_a_range_of_numbers_are_typed_as_numbers(shop: str) -> None:
    """Half of the people wait between 2.5 and 7.5 seconds."""
    ends = ("--option", "low=2500", "--option", "high=7500")

    (line,) = lines(shop, "startup", "--verb", "range", *ends)
    (listed,) = lines(shop, "startup", "--verb", "range", "--option", "ranges=[[2500,7500]]")

    assert float(line["ci_low"]) <= 21 / 41 <= float(line["ci_high"])
    assert {**line, "item": ""} == {**listed, "item": ""}


def test_an_end_that_is_no_number_is_refused_with_what_it_must_be(shop: str) -> None:
    known = {"HEARSAY_URL": shop, "HEARSAY_READ_TOKEN": READ_TOKEN}
    for end in ("low=soon", "low=nan", "high=1e999"):
        asked = ["query", "startup", "--verb", "range", "--option", end, *WINDOW]
        result = CliRunner().invoke(main, asked, env=known)

        assert result.exit_code == 1
        assert "--option ranges=…: must have numbers for ends" in result.output


def difference_of(table: list[str]) -> str:
    """Return the only row of a difference; sentences below the table hold the word, too."""
    (row,) = [line for line in table if "  difference  " in line]
    return row


@pytest.mark.parametrize("metric", ["basket", "deals"])
def test_what_a_lift_prints_has_the_sign_that_its_interval_has(shop: str, metric: str) -> None:
    """In the table as in the file: an interval beside 0 is not rounded across it."""
    asked = (metric, *LIFT, "--option", "control=old")

    found = lines(shop, *asked)[0]
    table = printed_of_shop(shop, *asked).splitlines()

    assert 0 < float(found["ci_low"]) < 1 or metric == "deals"
    shown = difference_of(table)
    value, _, reach = shown.partition(found["measure"])[2].split()[:3]
    assert float(value) > float(reach.strip("()"))


def test_a_difference_of_shares_is_printed_in_points(shop: str) -> None:
    """Beside the lift, which is in percent of the control."""
    table = printed_of_shop(shop, "deals", *LIFT, "--option", "control=old").splitlines()

    difference = difference_of(table)
    (lift,) = [line for line in table if " lift " in line]
    assert " points " in difference
    assert "%" not in difference
    assert " % " in lift
