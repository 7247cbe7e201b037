"""A mechanism that only the tests have is served by every verb, check, bound and page.

It is one source file and one vector file, in a folder added to the path of the package, and it
overrides nothing that its family answers.  A module that knows mechanisms by name fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import unwrap
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from flask import Flask

from client_sdk.core.epoch import DAY
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import FrequencyOracle, _modules, items, load, names
from client_sdk.mechanisms.frequency import PairLaw
from client_sdk.registry import Registry
from client_sdk.testing import FrozenClock, MemoryClient, MemoryTransport
from collector.analytics.poisoning.anomaly import anomalies
from collector.analytics.sums import Shares
from collector.audit.audit import FAILS, audit
from collector.core.catalog import Catalog
from collector.core.cells import Cell, segment_text
from collector.core.config import Config
from collector.core.credentials import OPERATOR, READ, Credential
from collector.core.remarks import WORDS, Code
from collector.estimation.tally import fault_of, vector_of
from collector.planning.compilation import compiled
from collector.planning.planner import PlanRequest, plan
from collector.query.release.publish import ReleaseRequest, release
from collector.web import create_app
from collector.worker.worker import Worker
from tests.client_sdk.mechanisms import test_vectors as conformance
from tests.support import mechanism as folder
from tests.support.crowds.uploads import NOON, READ_TOKEN, TODAY, WRITE_KEY, bearer
from tests.support.device.registries import (
    CATEGORY,
    FUNNEL,
    HEAD,
    LOCATION,
    PAIR,
    RETENTION,
    TWO_LAYER,
    table,
)
from tests.support.enumeration.enumeration import distribution
from tests.support.enumeration.make_vectors import regenerate
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import path_of, read
from tests.support.sites.posting import post as upload
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

NAME: Final = "erasure_response"
OPERATOR_TOKEN: Final = "hsr_token-of-an-operator"
N: Final = 4_000  # reports of a day and platform
DAYS: Final = (TODAY - 4, TODAY - 3, TODAY - 2, TODAY - 1)
KINDS: Final = {
    "theme": CATEGORY,
    "kept": {**TWO_LAYER, "values": CATEGORY["values"]},
    "people": PAIR,
    "shop": FUNNEL,
    "visits": RETENTION,
    "place": LOCATION,
}
QUESTIONS: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("estimate", "theme", {}),
    ("frequency", "theme", {"postprocess": "norm_sub"}),
    ("frequency", "kept", {}),
    ("top_k", "theme", {"options": {"k": 2}}),
    ("range", "theme", {"options": {"low": "free", "high": "pro"}}),
    ("crosstab", "people", {"options": {"simultaneous": True}}),
    ("funnel", "shop", {}),
    ("retention", "visits", {}),
    ("map", "place", {"options": {"coarsen": 2}}),
    ("segments", "theme", {"options": {"item": "pro"}, "dimensions": ["platform"]}),
    (
        "compare",
        "theme",
        {"dimensions": ["time:period"], "date_range": ["2026-03-02", "2026-03-03"]},
    ),
    ("trend", "theme", {}),
]


@pytest.fixture(scope="module", autouse=True)
def added() -> Iterator[None]:
    """The package with one more folder of mechanisms."""
    path = str(Path(str(folder.__file__)).parent)
    items.__path__.append(path)
    for cached in (_modules, names, load):
        cached.cache_clear()
    yield
    items.__path__.remove(path)
    for cached in (_modules, names, load):
        cached.cache_clear()


@pytest.fixture(scope="module")
def text(added: None) -> str:
    changes = {"mechanism": f'"{NAME}"', "every": '"1d"', "min_reports": "100"}
    return HEAD + "".join(table(name, fields, **changes) for name, fields in KINDS.items())


@pytest.fixture(scope="module")
def registry(text: str) -> Registry:
    return Registry.from_text(text)


def test_its_metrics_compile(registry: Registry) -> None:
    again = Registry.from_text(compiled(registry))

    assert [m.mechanism for m in again] == [m.mechanism for m in registry]
    assert [m.digest for m in again] == [m.digest for m in registry]


@pytest.fixture(scope="module")
def storage(registry: Registry) -> MemoryStorage:
    """Reports of two platforms on four days of every metric."""
    store = MemoryStorage()
    for metric in registry:
        for day in DAYS:
            for platform in ("linux", "mac"):
                chance = SeededRandomness(f"{metric.name} {day} {platform}".encode())
                size = metric.mechanism.domain_size
                held = [0 if i % 2 else i % size for i in range(N)]
                tally = metric.mechanism.tally(
                    b"".join(metric.mechanism.randomize(item, chance) for item in held), np
                )
                cell = Cell(metric.digest, day, segment_text(metric, {"platform": platform}))
                store.put({cell: [(0, N), *enumerate(tally.tolist(), 1)]})
    return store


@pytest.fixture(scope="module")
def site(storage: MemoryStorage, text: str, tmp_path_factory: pytest.TempPathFactory) -> Flask:
    return _site(text, storage, tmp_path_factory.mktemp("added"))


def _site(text: str, storage: MemoryStorage, place: Path) -> Flask:
    path = place / "metrics.toml"
    path.write_text(text, encoding="utf-8")
    settings = {
        "HEARSAY_REGISTRY": str(path),
        "HEARSAY_WRITE_KEY": WRITE_KEY,
        "HEARSAY_READ_TOKEN": READ_TOKEN,
    }
    credentials = MemoryCredentials()
    credentials.add(OPERATOR_TOKEN, Credential(READ, role=OPERATOR, expires=TODAY + 9))
    return create_app(Config.from_env(settings), storage, lambda: NOON, credentials)


def test_it_passes_the_conformance_tests_on_its_vector() -> None:
    (case,) = read(NAME)["cases"]

    assert regenerate(NAME) == path_of(NAME).read_text("utf-8")
    for law in (
        conformance.test_the_textbook_numbers_of_a_case_are_its_formulas_to_30_digits,
        conformance.test_a_seed_gives_the_payloads_of_the_case,
        conformance.test_the_payloads_of_a_case_give_its_tally_and_its_textbook_estimates,
        conformance.test_the_bad_payloads_of_a_case_are_refused_for_the_stated_reason,
    ):
        unwrap(law)(NAME, case)


def test_no_report_is_more_likely_than_its_epsilon_allows() -> None:
    mechanism = load(NAME)("1", 3)
    laws = [distribution(lambda rnd, v=v: mechanism.randomize(v, rnd)).pmf for v in range(3)]  # type: ignore[misc]

    assert all(
        law[payload] <= mechanism.likelihood_ratio * other[payload]  # type: ignore[attr-defined]
        for law in laws
        for other in laws
        for payload in law
    )


def test_a_value_is_recorded_uploaded_and_folded(
    text: str, registry: Registry, tmp_path: Path
) -> None:
    store, clock = MemoryStorage(), FrozenClock(NOON - DAY)
    client = MemoryClient(registry, clock=clock)
    client.record("theme", "pro")
    clock.advance(days=1)
    client.flush()
    metric = registry.metric("theme")
    assert isinstance(client.transport, MemoryTransport)
    app = _site(text, store, tmp_path).test_client()

    answers = [upload(app, body).status_code for body in client.transport.uploads]

    assert answers == [202]
    catalog = Catalog([registry]).by_digest
    kinds = {digest: known.mechanism for digest, known in catalog.items()}
    worker = Worker(store, kinds, {digest: known.every for digest, known in catalog.items()})
    assert worker.step() == 1
    assert [cell.metric for cell in store.tallied] == [metric.digest]


@pytest.mark.parametrize(("verb", "metric", "more"), QUESTIONS, ids=lambda part: str(part)[:12])
def test_every_verb_answers_with_intervals_and_no_wider_bound(
    site: Flask, verb: str, metric: str, more: dict[str, Any]
) -> None:
    window = ["2026-02-28", "2026-03-03"]
    question = {"metrics": [metric], "verb": verb, "date_range": window, **more}

    answer = site.test_client().post("/v1/query", json=question, headers=bearer(READ_TOKEN))

    assert answer.status_code == 200, answer.text
    numbers = [row for row in answer.get_json()["rows"] if row.get("value") is not None]
    assert numbers
    assert WORDS[Code.BOUND] not in answer.text
    assert all(row["ci_low"] <= row["ci_high"] for row in numbers if row.get("ci_low") is not None)


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/plan", "/privacy", "/privacy/people", "/operations", "/compare", "/ask"),
        *(f"/metric/{name}" for name in KINDS),
        "/ask?metric=theme&verb=frequency",
    ],
)
def test_every_page_shows_it(site: Flask, path: str) -> None:
    browser = site.test_client()
    browser.set_cookie("hearsay", OPERATOR_TOKEN)

    page = browser.get(path, headers={"Accept": "text/html"})

    assert page.status_code == 200
    assert 'class="fault"' not in page.text


def test_its_sums_have_the_variance_that_a_law_of_pairs_would_give(registry: Registry) -> None:
    """Law: no report tells two items, and enumeration finds that without being told."""
    mechanism = load(NAME)("1", 5)
    assert isinstance(mechanism, FrequencyOracle)

    class Told(type(mechanism)):  # type: ignore[misc]  # a class found by name
        def pair_law(self) -> PairLaw:
            return PairLaw(0.0, 0.0)

    weights = np.array([[1, 1, 0, 0, 0], [1, -0.5, 0, 2, 0]])
    tally, n = np.array([300, 200, 150, 60, 40]), 1_000

    found = Shares.of(mechanism, tally, n).variances(weights)

    assert found == pytest.approx(Shares.of(Told("1", 5), tally, n).variances(weights))
    assert Shares.of(mechanism, tally, n).notes == ()


def test_its_reports_have_a_reach_and_a_group_of_them_a_bound() -> None:
    mechanism = load(NAME)("1", 5)
    p, q = mechanism.channel.p, mechanism.channel.q  # type: ignore[attr-defined]

    reach, group = mechanism.share_reach(3, np), mechanism.group_reach(2)

    assert reach is not None
    assert (reach.low, reach.high) == pytest.approx((-q / (p - q), (1 - q) / (p - q)))
    assert group is not None
    assert group.high >= reach.high + reach.low


def test_rows_say_how_far_fakes_could_move_them(site: Flask) -> None:
    window = ["2026-03-01", "2026-03-03"]
    question = {"metrics": ["theme"], "verb": "frequency", "date_range": window}

    answer = site.test_client().post("/v1/query", json=question, headers=bearer(READ_TOKEN))

    assert all(row["influence"] > 0 for row in answer.get_json()["rows"])


@pytest.mark.parametrize(
    ("tally", "checks"),
    [
        ([1_430, 524, 525, 521], set()),  # what honest devices of the first item send
        ([3_500, 100, 100, 100], {"ceiling", "floor"}),
        ([1_430, 1_000, 1_000, 0], {"floor"}),
    ],
)
def test_fakes_of_it_are_found_and_honest_reports_are_not(
    tally: list[int], checks: set[str]
) -> None:
    changes = {"mechanism": f'"{NAME}"', "values": '["a", "b", "c", "d"]'}
    metric = Registry.from_text(HEAD + table("m", CATEGORY, **changes)).metric("m")

    found = anomalies(metric, np.array(tally), 4_000)

    assert {anomaly.check for anomaly in found} == checks


def test_a_tally_that_tells_more_than_its_reports_is_damaged() -> None:
    mechanism = load(NAME)("1", 4)
    whole = vector_of([(0, 10), (1, 5), (2, 5)], 4)
    torn = vector_of([(0, 10), (1, 9), (2, 9)], 4)

    assert fault_of(mechanism, whole) == ""
    assert "add up" in fault_of(mechanism, torn)


def test_it_is_planned_released_and_audited(
    registry: Registry, storage: MemoryStorage, tmp_path: Path
) -> None:
    metric = registry.metric("theme")

    (line,) = plan(metric, PlanRequest(20_000, 0.01), [metric.epsilon])
    files = release(ReleaseRequest("theme", size=100), Catalog([registry]), storage, NOON, tmp_path)
    verdict = audit(load(NAME)("1", 5), system_randomness(), 4_000).verdict

    assert line.devices is not None
    assert len(files) >= 3
    assert verdict != FAILS
