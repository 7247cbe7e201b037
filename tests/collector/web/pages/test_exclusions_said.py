"""Everything that people are given of a metric with an exclusion says what is left out and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

import pytest
from flask.testing import FlaskClient

from client_sdk.core.epoch import DAY
from client_sdk.registry.contract import Registry
from collector.core.catalog import Catalog
from collector.core.credentials import OPERATOR
from collector.core.exclusions import Exclusion, Inclusion, to_json
from collector.query.release.publish import ReleaseRequest, release
from collector.workspace.watch.evaluation import evaluate
from collector.workspace.watch.report import report
from collector.workspace.watch.rules import parse
from tests.collector.web.pages.conftest import BROWSER, ONE_METRIC, Visit, token_of
from tests.support.crowds.uploads import NOON, READ_TOKEN, bearer
from tests.support.device.every_type import registry_text
from tests.support.sites.page import Page
from tests.support.sites.watch_states import watch_state
from tests.support.store.memory_storage import MemoryStorage

TODAY: Final = int(NOON // DAY)
BECAUSE: Final = "2.3 counted <twice> & more"
CATALOG: Final = Catalog([Registry.from_text(registry_text())])
SAID: Final = "reports of key badbadbadbad of 2026-02-23 to 2026-03-04 are left out"
QUESTION: Final = json.dumps({"metrics": [ONE_METRIC], "date_range": "7d"})


@pytest.fixture
def excluded(filled: MemoryStorage) -> Iterator[MemoryStorage]:
    """The store of all types, in which a key was excluded, whose reports are not known."""
    exclusion = Exclusion(
        id="5f0a91c2", by="key", name="badbadbadbad", first="2026-02-23", last="2026-03-04",
        author="ada", because=BECAUSE, at=int(NOON),
    )  # fmt: skip
    filled.excluded = {exclusion.id: to_json(exclusion)}
    yield filled
    filled.excluded = {}


@pytest.mark.parametrize(
    "path", ["/", f"/metric/{ONE_METRIC}", f"/ask?q={QUESTION}", f"/compare?metric={ONE_METRIC}"]
)
def test_a_page_says_it_beside_the_numbers_with_markup_as_text(
    visit: Visit, excluded: MemoryStorage, path: str
) -> None:
    text = visit(path).text

    assert SAID in text
    assert escape(BECAUSE) in text
    assert BECAUSE not in text
    excluded.excluded = {}
    assert SAID not in visit(path).text


def operations(browser: FlaskClient, holder: str) -> str:
    """Return the page of operations as the holder of a token sees it."""
    browser.set_cookie("hearsay", token_of(holder))
    return browser.get("/operations", headers=BROWSER).text


def test_operations_lists_what_is_left_out_and_what_was_put_back(
    browser: FlaskClient, excluded: MemoryStorage
) -> None:
    back = Inclusion(author="bob", because="it was right", at=int(NOON))
    put_back = Exclusion(
        id="0a0b0c0d", by="version", name="2.3", metrics=(f"types/{ONE_METRIC}",),
        first="2026-03-01", last="2026-03-01", author="eve", because="wrong", at=int(NOON) - 9,
        included=back,
    )  # fmt: skip
    before = operations(browser, OPERATOR)
    excluded.excluded["0a0b0c0d"] = to_json(put_back)

    text = operations(browser, OPERATOR)

    assert "key badbadbadbad" in before
    assert "2026-02-23 to 2026-03-04" in before
    assert escape(BECAUSE) in before
    assert BECAUSE not in before
    assert "bob, 2026-03-04: it was right" in text
    assert text.index("5f0a91c2") < text.index("0a0b0c0d")
    assert "bob" not in before


def test_operations_lists_nothing_of_metrics_that_its_reader_may_not_see(
    browser: FlaskClient, excluded: MemoryStorage
) -> None:
    other = Exclusion(
        id="0a0b0c0d", by="version", name="2.3", metrics=("types/boolean",),
        first="2026-03-01", last="2026-03-01", author="eve", because="wrong", at=int(NOON),
    )  # fmt: skip
    excluded.excluded["0a0b0c0d"] = to_json(other)

    assert "0a0b0c0d" in operations(browser, OPERATOR)
    assert "0a0b0c0d" not in operations(browser, ONE_METRIC)
    assert "5f0a91c2" in operations(browser, ONE_METRIC)


def test_operations_says_that_exclusions_cannot_be_read(
    browser: FlaskClient, excluded: MemoryStorage
) -> None:
    excluded.excluded["x"] = b"{}"

    assert "The exclusions cannot be read" in operations(browser, OPERATOR)


def test_the_page_of_a_metric_tells_what_is_in_no_number_of_it(visit: Visit) -> None:
    """Law: who asks what was left out gets an answer, also where it is nothing."""
    said = Page(visit(f"/metric/{ONE_METRIC}").text).text

    assert "Not in these numbers: devices without consent or out of budget" in said
    assert "reports that operators excluded: none." in said


@pytest.mark.parametrize("form", ["json", "csv", "rows"])
def test_a_file_says_it(browser: FlaskClient, excluded: MemoryStorage, form: str) -> None:
    asked_for = {"q": QUESTION, "format": form}
    body = browser.get("/v1/query", query_string=asked_for, headers=bearer(READ_TOKEN)).text

    assert SAID in body
    assert "2.3 counted" in body


def test_a_weekly_report_says_it(excluded: MemoryStorage) -> None:
    week = report(CATALOG, excluded, watch_state("set"), NOON)

    assert SAID in week.text
    assert SAID in week.html
    assert escape(BECAUSE) in week.html


def test_a_watch_says_it_although_it_asks_for_a_version(excluded: MemoryStorage) -> None:
    (metric,) = (each for each in CATALOG if each.name == "boolean")
    text = f'[[watch]]\nname = "w"\nmetric = "{metric.name}"\nabove = 0.5\n'
    watches = parse(text)

    said = evaluate(watches, watches.watch[0], CATALOG, excluded, TODAY - 2, NOON)

    assert SAID in said.text


def test_the_sheet_of_a_release_says_it(excluded: MemoryStorage, tmp_path: Path) -> None:
    days = {"from": "2026-02-25", "to": "2026-03-01"}
    paths = release(ReleaseRequest("boolean", days), CATALOG, excluded, NOON, tmp_path)
    before = release(
        ReleaseRequest("boolean", days | {"version": "0"}), CATALOG, excluded, NOON, tmp_path / "v"
    )

    sheets = [path.read_text("utf-8") for path in paths if "sheet" in path.name]
    stayed = [path.read_text("utf-8") for path in before if "sheet" in path.name]
    assert len(sheets) == len(stayed) == 2
    assert all(SAID in sheet for sheet in sheets)
    assert all("stays as it was" in sheet and SAID not in sheet for sheet in stayed)
