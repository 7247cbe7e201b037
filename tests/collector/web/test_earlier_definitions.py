"""Questions about earlier definitions, and about experiments with joint answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any, Final

import numpy as np
import pytest
from click.testing import CliRunner
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.registry import Registry
from collector.cli import main
from collector.client import Client
from collector.core.cells import Cell, segment_text
from collector.core.errors import AnswerError
from tests.support.crowds.asked import JANUARY_5, post
from tests.support.crowds.uploads import READ_TOKEN, TODAY, bearer
from tests.support.device.registries import CATEGORY, NUMBER, file_with, table
from tests.support.sites.in_memory import in_memory
from tests.support.sites.served import served
from tests.support.store.memory_storage import MemoryStorage

from .conftest import MakeApp

DURATION: Final = {**NUMBER, "type": '"duration"', "every": '"1d"', "min_reports": "100"}
NOW: Final = file_with({**DURATION, "mechanism": '"minimax"'}) + table("c", CATEGORY)
BEFORE: Final = file_with({**DURATION, "mechanism": '"hybrid"', "max": "20"})
TYPE: Final = file_with({**CATEGORY, "every": '"1d"', "min_reports": "100"})
IN_USE, EARLIER, OTHER_TYPE = (
    Registry.from_text(text).metric("m").digest.hex() for text in (NOW, BEFORE, TYPE)
)
REPORTS: Final = {NOW: 1_000, BEFORE: 5_000, TYPE: 300}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """A collector whose metric had another mechanism, and once another type."""
    storage = MemoryStorage()
    for text, n in REPORTS.items():
        metric = Registry.from_text(text).metric("m")
        share, rest = divmod(n, metric.mechanism.tally_size)
        counts = [share + (place < rest) for place in range(metric.mechanism.tally_size)]
        storage.put({Cell(metric.digest, TODAY - 2, ""): list(enumerate([n, *counts]))})
    return in_memory(tmp_path_factory.mktemp("registries"), *REPORTS, storage=storage)


@pytest.fixture(scope="module")
def url(site: Flask) -> Iterator[str]:
    with served(site) as address:
        yield address


def ask(site: Flask, **fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = post(site.test_client(), {"metrics": ["m"], **fields}).json or {}
    return answer


def test_what_is_left_out_names_the_definition_that_asks_for_it(site: Flask) -> None:
    meta = ask(site, verb="mean")["meta"]

    said = "5000 reports under earlier definitions are left out; ask for them by their definition:"
    remark = {"code": "earlier_left_out", "text": f"{said} {EARLIER}", "metric": "m"}
    assert remark in meta["warnings"]


@pytest.mark.parametrize(
    ("definition", "verb", "n"),
    [(IN_USE, "mean", 1_000), (EARLIER, "mean", 5_000), (OTHER_TYPE, "frequency", 300)],
)
def test_a_definition_is_answered_alone_by_its_own_mechanism_and_says_so(
    site: Flask, definition: str, verb: str, n: int
) -> None:
    answer = ask(site, verb=verb, definition=definition)

    (basis,) = answer["meta"]["metrics"]
    assert {row["n"] for row in answer["rows"]} == {n}
    assert [basis["digest"], *(d["digest"] for d in basis["definitions"])] == [definition] * 2
    (said,) = [each for each in answer["meta"]["warnings"] if each["code"] == "definition"]
    assert said["metric"] == "m"
    assert f"only reports under definition {definition} are counted" in said["text"]
    assert answer["meta"]["query"]["definition"] == definition


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"definition": "0" * 12}, f"definition: of m {IN_USE} is in use, earlier are {EARLIER}"),
        ({"definition": EARLIER, "metrics": ["c"]}, "definition: of c "),
        (
            {"definition": EARLIER, "metrics": ["m", "c"], "verb": "crosstab"},
            "definition: is of one metric",
        ),
        ({"definition": OTHER_TYPE, "verb": "mean"}, "m"),
    ],
)
def test_a_definition_that_the_metric_never_had_is_refused_with_those_it_has(
    site: Flask, fields: dict[str, Any], words: str
) -> None:
    answer = ask(site, **{"verb": "mean", **fields})

    assert answer["status"] == 400
    assert words in answer["detail"]


def test_the_command_and_the_client_ask_for_an_earlier_definition(url: str) -> None:
    known = {"HEARSAY_URL": url, "HEARSAY_READ_TOKEN": READ_TOKEN}
    arguments = ["query", "m", "--verb", "mean", "--definition", EARLIER]
    printed = CliRunner().invoke(main, arguments, env=known)
    with Client(url, READ_TOKEN) as client:
        result = client.query("m", verb="mean", definition=EARLIER)
        with pytest.raises(AnswerError, match="is in use, earlier are"):
            client.query("m", verb="mean", definition="x")

    assert printed.exit_code == 0, printed.output
    assert "5,000" in printed.output
    assert f"only reports under definition {EARLIER}" in printed.output
    assert [row["n"] for row in result] == [5_000]


@pytest.mark.parametrize("address", ["/ask?metric=m&verb=mean", "/metric/m"])
def test_a_page_links_what_is_left_out_to_its_own_answer(site: Flask, address: str) -> None:
    visitor = site.test_client()
    headers = bearer(READ_TOKEN)
    page = visitor.get(address, headers=headers).text
    words = "Only the 5,000 reports of the earlier hybrid, ε 1"
    links = re.findall(rf'<a href="([^"]+)">{words}</a>', page)

    assert links
    answer = visitor.get(unescape(links[0]), headers=headers)

    assert answer.status_code == 200
    assert f"Only reports under definition {EARLIER} are counted" in answer.text
    assert "Only the 5,000 reports" not in answer.text


_METRIC: Final = """
[metrics.{name}]
title = "{name}"
question = "How far?"
mechanism = "grr"
epsilon = "1.0"
every = "7d"
longitudinal = "fresh"
expected_devices = 100000
min_reports = 1000
segments = ["arm"]
owner = "tests"
expires = 2027-12-31
"""
TEXT: Final = (
    'schema = 1\napp = "shop"\n[segments]\narm = ["control", "treated"]\n'
    + _METRIC.format(name="steps")
    + 'type = "funnel"\nvalues = ["visit", "cart", "buy"]\n'
    + _METRIC.format(name="back")
    + 'type = "retention"\nperiods = ["week 0", "week 1", "week 2"]\n'
)
REGISTRY: Final = Registry.from_text(TEXT)
N: Final = 60_000  # reports of an arm
STEPS: Final = {"control": (0.2, 0.4, 0.3, 0.1), "treated": (0.2, 0.2, 0.3, 0.3)}  # furthest step
BACK: Final = {
    # of 000, 001 … 111: week 0 is the highest bit, and 80 % were active in it
    "control": (0.1, 0.05, 0.03, 0.02, 0.4, 0.16, 0.08, 0.16),
    "treated": (0.1, 0.05, 0.03, 0.02, 0.2, 0.20, 0.20, 0.20),
}
WINDOW: Final = {"date_range": ["2026-01-05", "2026-01-11"]}


@pytest.fixture
def asker(make_app: MakeApp, storage: MemoryStorage) -> FlaskClient:
    for name, arms in (("steps", STEPS), ("back", BACK)):
        metric = REGISTRY.metric(name)
        channel: Any = metric.mechanism.channel  # type: ignore[attr-defined]  # grr has one
        p, q = float(channel.p), float(channel.q)
        for arm, shares in arms.items():
            said = np.rint(N * (q + (p - q) * np.array(shares))).astype(int).tolist()
            cell = Cell(
                metric.digest, epoch_of("7d", JANUARY_5 * DAY), segment_text(metric, {"arm": arm})
            )
            storage.put({cell: list(enumerate([sum(said), *said]))})
    return make_app(TEXT).test_client()


def rows_of(client: FlaskClient, metric: str, verb: str, **more: Any) -> list[dict[str, Any]]:
    answer = post(client, {"metrics": [metric], "verb": verb, **WINDOW, **more})
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.get_json()["rows"]
    return rows


def lifts_of(client: FlaskClient, metric: str) -> Mapping[str, dict[str, Any]]:
    """Return the differences of the treated arm by item."""
    options = {"dimension": "arm", "control": "control"}
    rows = rows_of(client, metric, "lift", dimensions=["arm"], options=options)
    differences = [row for row in rows if row["dimensions"]["measure"] == "difference"]
    return {row["dimensions"]["item"]: row for row in differences}


@pytest.mark.parametrize(
    ("metric", "differences"),
    [
        # as many as before visit and as many go no further than the cart; more go on
        ("steps", {"visit": 0.0, "cart": 0.2, "buy": 0.2}),
        # of those active in week 0: 0.24 of 0.8 and then 0.4 in week 1
        ("back", {"week 1": 0.2, "week 2": 0.1}),
    ],
)
def test_an_experiment_tells_who_reached_each_step_and_who_came_back(
    asker: FlaskClient, metric: str, differences: dict[str, float]
) -> None:
    found = {item: row["value"] for item, row in lifts_of(asker, metric).items()}

    assert list(found) == list(differences)
    assert found == pytest.approx(differences, abs=1e-3)


@pytest.mark.parametrize(("metric", "verb"), [("steps", "funnel"), ("back", "retention")])
def test_every_verb_across_arms_means_by_an_item_what_the_verb_of_the_type_does(
    asker: FlaskClient, metric: str, verb: str
) -> None:
    """Segment by segment and over time; what was reached, and who came back."""
    measure = {"funnel": "reached", "retention": "of the first period"}[verb]
    own = {
        (row["dimensions"]["arm"], row["dimensions"]["item"]): row["value"]
        for row in rows_of(asker, metric, verb, dimensions=["arm"])
        if row["dimensions"]["measure"] == measure
    }
    items = dict.fromkeys(item for _, item in own)
    by_segment = [
        row
        for item in items
        for row in rows_of(asker, metric, "segments", dimensions=["arm"], options={"item": item})
    ]
    over_time = rows_of(asker, metric, "trend", dimensions=["arm"])

    for rows in (by_segment, over_time):
        found = {(r["dimensions"]["arm"], r["dimensions"]["item"]): r["value"] for r in rows}
        assert len(found) >= 4
        assert found == pytest.approx(own)


@pytest.mark.parametrize("verb", ["estimate", "frequency", "top_k"])
def test_a_table_of_furthest_steps_says_that_it_is_one(asker: FlaskClient, verb: str) -> None:
    """There a step is that of devices which went no further; elsewhere nothing is said."""
    asked = {"metrics": ["steps"], "verb": verb, **WINDOW}

    told = post(asker, asked).get_json()["meta"]["warnings"]
    reached = post(asker, {**asked, "verb": "funnel"}).get_json()["meta"]["warnings"]

    assert "furthest_step" in [remark["code"] for remark in told]
    assert "furthest_step" not in [remark["code"] for remark in reached]


@pytest.mark.parametrize(
    ("metric", "title", "chosen", "item"),
    [
        ("steps", "Reached buy by arm", "reached cart", "cart"),
        ("back", "Came back in week 2 by arm", "came back in week 1", "week 1"),
    ],
)
def test_a_page_says_what_its_numbers_of_segments_are_of(
    asker: FlaskClient, metric: str, title: str, chosen: str, item: str
) -> None:
    """The last step, or period, unless another was chosen; an experiment is on all, or on that."""
    asker.post("/login", data={"token": READ_TOKEN})
    days = f"/metric/{metric}?from=2026-01-05&to=2026-01-11"
    page = unescape(asker.get(days).text)
    of_one = unescape(asker.get(f"{days}&item={item}").text)

    assert title in page
    assert re.findall(r"Experiment: [^<]*", page)[0] == "Experiment: treated vs control"
    assert title not in of_one
    assert chosen in re.findall(r"Experiment: [^<]*", of_one)[0]
