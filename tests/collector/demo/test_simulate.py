"""Simulated people are drawn without replacement from the published counts, and known exactly."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

from client_sdk.registry import Registry
from client_sdk.upload.transport import MESSAGEPACK, Answer
from collector.demo.fleet import (
    ARMS,
    DEMO_REGISTRY,
    INCOMES,
    MOST_VIEWS,
    REDESIGNED,
    RELEASED,
    VERSIONS,
    Person,
    drive,
    drive_gateways,
    population,
    truth_of,
)
from collector.intake.wire import JSON, decode

REGISTRY = Registry.from_file(str(DEMO_REGISTRY))
SURVEYED = 48_842  # persons in age_income.csv
VISITORS = 989_818  # in first_page.csv
EXAMPLES = Path(__file__).parents[3] / "examples"


class Recording:
    """A transport that acknowledges everything and keeps the bodies."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def send(self, body: bytes, timeout: float) -> Answer:
        self.bodies.append(body)
        return Answer(202, None, b'{"accepted": 3, "duplicate": false, "rejected": []}')


def published(name: str) -> list[dict[str, str]]:
    text = (files("collector.demo") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def is_rich(person: Person) -> bool:
    household = person.values["household"]
    assert isinstance(household, dict)
    return bool(household["income"] == INCOMES[True])


def test_the_published_counts_are_whole() -> None:
    assert sum(int(row["persons"]) for row in published("age_income.csv")) == SURVEYED
    assert sum(int(row["visitors"]) for row in published("first_page.csv")) == VISITORS


def test_everybody_surveyed_is_drawn_exactly_once() -> None:
    people = population(SURVEYED, random.Random(1))

    drawn = Counter((person.values["age"], is_rich(person)) for person in people)
    assert drawn == {
        (int(row["age"]), row["income_over_50k"] == "true"): int(row["persons"])
        for row in published("age_income.csv")
    }


def test_nobody_is_drawn_twice_before_everybody_is_drawn_once() -> None:
    people = population(SURVEYED - 1, random.Random(2))

    drawn = Counter((person.values["age"], is_rich(person)) for person in people)
    missing = [
        int(row["persons"]) - drawn[int(row["age"]), row["income_over_50k"] == "true"]
        for row in published("age_income.csv")
    ]
    assert (min(missing), max(missing), sum(missing)) == (0, 1, 1)


def test_beyond_everybody_the_survey_is_used_again() -> None:
    people = population(SURVEYED + 5, random.Random(3))

    ages = Counter(person.values["age"] for person in people)
    assert len(people) == SURVEYED + 5
    assert ages[17] >= 595


def test_first_pages_are_drawn_from_the_visitors() -> None:
    people = population(5_000, random.Random(4))

    visitors = {row["first_page"]: int(row["visitors"]) for row in published("first_page.csv")}
    drawn = Counter(str(person.values["first_page"]) for person in people)
    assert drawn.keys() <= visitors.keys()
    assert all(count <= visitors[page] for page, count in drawn.items())


def test_the_counts_of_the_demo_are_those_of_the_examples() -> None:
    shared = {"page_views.csv": "visits_page_views.csv"}
    shared |= {name: name for name in ("marital_income.csv", "accidents_grid.csv")}

    for ours, theirs in shared.items():
        example = EXAMPLES / "data" / theirs
        assert (files("collector.demo") / "data" / ours).read_bytes() == example.read_bytes()


def test_what_a_person_says_of_one_visit_agrees() -> None:
    people = population(2_000, random.Random(8))

    views = Counter(int(str(person.values["page_views"])) for person in people)
    assert (min(views), max(views)) == (1, MOST_VIEWS)
    assert views[1] == sum(person.values["one_page"] is True for person in people)


def test_people_have_every_declared_platform_and_version() -> None:
    people = population(2_000, random.Random(9))

    found = {(person.segment["platform"], person.segment["version"]) for person in people}
    declared = REGISTRY.segments
    assert found == set(product(declared["platform"], declared["version"]))


def test_the_new_version_spreads_from_day_to_day() -> None:
    shares = [
        sum(one.segment["version"] == VERSIONS[1] for one in population(2_000, chance, days_ago))
        for chance in [random.Random(10)]
        for days_ago in (13, 6, 0)
    ]

    assert shares == sorted(shares)
    assert shares[0] < 1_000 < shares[-1]


def test_the_new_version_is_seen_first_on_the_day_of_its_release() -> None:
    chance = random.Random(12)

    before, first = (population(2_000, chance, ago) for ago in (RELEASED + 1, RELEASED))

    assert {person.segment["version"] for person in before} == {VERSIONS[0]}
    assert {person.segment["version"] for person in first} == set(VERSIONS)


def test_since_the_new_front_page_fewer_leave_after_one_page() -> None:
    chance = random.Random(13)

    days = [population(5_000, chance, ago) for ago in (REDESIGNED + 1, REDESIGNED)]

    before, after = (sum(one.values["one_page"] is True for one in people) for people in days)
    assert before / 5_000 == pytest.approx(0.367, abs=0.02)
    assert after / before == pytest.approx(0.5, abs=0.05)


def test_the_truth_is_counted_from_the_people() -> None:
    people = population(2_000, random.Random(5))

    truth = truth_of(people, REGISTRY)

    pages = Counter(str(person.values["first_page"]) for person in people)
    assert truth["first_page"] == {label: pages[label] / 2_000 for label in truth["first_page"]}
    assert sum(truth["first_page"].values()) == pytest.approx(1)
    rich = sum(map(is_rich, people))
    ages = [person.values["age"] for person in people]
    assert truth["age"] == {"mean": pytest.approx(sum(map(int, map(str, ages))) / 2_000)}
    assert sum(truth["household"].values()) == pytest.approx(1)
    over = (share for item, share in truth["household"].items() if item.endswith("| over 50K"))
    assert sum(over) == pytest.approx(rich / 2_000)


ALWAYS = {metric.digest for metric in REGISTRY if not metric.panel}


def test_each_device_sends_an_upload_a_set_of_dimensions_with_the_metrics_of_its_panel() -> None:
    transport = Recording()

    traffic = drive(population(20, random.Random(6)), REGISTRY, transport)

    uploads = [decode(body, JSON) for body in transport.bodies]
    sent = [column.metric for upload in uploads for column in upload.columns]
    assert len({upload.id for upload in uploads}) == len(uploads)
    assert 20 < len(uploads) <= 40  # with the arm of the experiment, and with the version
    assert all(sent.count(digest) == 20 for digest in ALWAYS)
    assert traffic.reports == traffic.uploaded == len(sent)
    assert traffic.uploaded + traffic.left_out == 20 * len(REGISTRY.metrics)
    assert 0 < traffic.left_out < 20 * (len(REGISTRY.metrics) - len(ALWAYS))
    assert (traffic.devices, traffic.lost(REGISTRY)) == (20, 0)


def test_a_report_that_no_panel_left_out_and_nobody_acknowledged_is_lost() -> None:
    whole = drive(population(2, random.Random(6)), REGISTRY, Recording())

    assert replace(whole, uploaded=whole.uploaded - 1).lost(REGISTRY) == 1
    assert (whole + whole).devices == 4


def test_devices_behind_gateways_send_their_reports_in_an_upload_a_segment() -> None:
    people, transport = population(200, random.Random(14)), Recording()

    traffic = drive_gateways(people, REGISTRY, transport)

    uploads = [decode(body, MESSAGEPACK) for body in transport.bodies]
    segments = Counter(segment_of(person.segment) for person in people)
    sent, always = 0, Counter[tuple[str, str]]()
    for upload in uploads:
        for column in upload.columns:
            size = REGISTRY.by_digest[column.metric].mechanism.payload_size
            reports = len(column.payloads) // size
            sent += reports
            if column.metric in ALWAYS:
                always[segment_of(upload.segment or {})] += reports
    assert always == {segment: n * len(ALWAYS) for segment, n in segments.items()}
    assert traffic.reports == traffic.uploaded == sent
    assert (traffic.devices, traffic.lost(REGISTRY)) == (200, 0)


def segment_of(segment: Mapping[str, str]) -> tuple[str, str]:
    return segment["platform"], segment.get("version", "")


def test_a_lot_puts_people_into_the_arms_and_the_short_form_keeps_more() -> None:
    """10,000 an arm; a fair lot is off by 400 once in 10^7 runs, and the seed is fixed."""
    people = population(20_000, random.Random(15))

    arms = Counter(person.segment["experiment"] for person in people)
    subscribed = Counter(
        person.segment["experiment"]
        for person in people
        if person.values["sign_up"] == "subscribed"
    )
    assert all(abs(arms[arm] - 10_000) < 400 for arm in ARMS)
    assert subscribed[ARMS[0]] / arms[ARMS[0]] == pytest.approx(0.07, abs=0.015)
    assert subscribed[ARMS[1]] / arms[ARMS[1]] == pytest.approx(0.16, abs=0.02)


def test_places_are_those_of_the_published_squares() -> None:
    people = population(5_000, random.Random(16))

    published_rows = {
        (int(row["row"]), int(row["column"])) for row in published("accidents_grid.csv")
    }
    places = {person.values["region"] for person in people}
    middles = {
        (-8 + (column + 0.5) * 10 / 32, 49.5 + (row + 0.5) * 11.5 / 32)
        for row, column in published_rows
    }
    assert len(places) > 100
    assert places <= middles


def test_progress_is_told_and_ends_with_everybody() -> None:
    told: list[int] = []

    drive(population(401, random.Random(7)), REGISTRY, Recording(), told.append)

    assert told == [200, 400, 401]
