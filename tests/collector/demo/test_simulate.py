"""Simulated people are drawn without replacement from the published counts, and known exactly."""

from __future__ import annotations

import csv
import random
from collections import Counter
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

from client_sdk.registry import Registry
from client_sdk.upload.transport import MESSAGEPACK, Answer
from collector.demo.fleet import (
    DEMO_REGISTRY,
    MOST_VIEWS,
    REDESIGNED,
    RELEASED,
    VERSIONS,
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


def test_the_published_counts_are_whole() -> None:
    assert sum(int(row["persons"]) for row in published("age_income.csv")) == SURVEYED
    assert sum(int(row["visitors"]) for row in published("first_page.csv")) == VISITORS


def test_everybody_surveyed_is_drawn_exactly_once() -> None:
    people = population(SURVEYED, random.Random(1))

    drawn = Counter((person.values["age"], person.values["income_over_50k"]) for person in people)
    assert drawn == {
        (int(row["age"]), row["income_over_50k"] == "true"): int(row["persons"])
        for row in published("age_income.csv")
    }


def test_nobody_is_drawn_twice_before_everybody_is_drawn_once() -> None:
    people = population(SURVEYED - 1, random.Random(2))

    drawn = Counter((person.values["age"], person.values["income_over_50k"]) for person in people)
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
    shared = {"page_views.csv": "visits_page_views.csv", "marital_income.csv": "marital_income.csv"}

    for ours, theirs in shared.items():
        example = EXAMPLES / "data" / theirs
        assert (files("collector.demo") / "data" / ours).read_bytes() == example.read_bytes()


def test_what_a_person_says_of_one_visit_agrees() -> None:
    people = population(2_000, random.Random(8))

    views = Counter(int(str(person.values["page_views"])) for person in people)
    assert (min(views), max(views)) == (1, MOST_VIEWS)
    assert views[1] == sum(person.values["one_page"] is True for person in people)
    for person in people:
        household = person.values["household"]
        assert isinstance(household, dict)
        assert (household["income"] == "over 50K") is person.values["income_over_50k"]


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
    rich = sum(person.values["income_over_50k"] is True for person in people)
    assert truth["income_over_50k"] == {"true": rich / 2_000}
    ages = [person.values["age"] for person in people]
    assert truth["age"] == {"mean": pytest.approx(sum(map(int, map(str, ages))) / 2_000)}
    assert sum(truth["household"].values()) == pytest.approx(1)
    over = (share for item, share in truth["household"].items() if item.endswith("| over 50K"))
    assert sum(over) == pytest.approx(rich / 2_000)


def test_each_device_sends_one_upload_with_a_report_per_metric() -> None:
    transport = Recording()

    traffic = drive(population(20, random.Random(6)), REGISTRY, transport)

    uploads = [decode(body, JSON) for body in transport.bodies]
    assert len({upload.id for upload in uploads}) == 20
    assert all(
        {column.metric for column in upload.columns} == set(REGISTRY.by_digest)
        for upload in uploads
    )
    reports = 20 * len(REGISTRY.metrics)
    assert (traffic.devices, traffic.reports, traffic.uploaded) == (20, reports, reports)


def test_devices_behind_gateways_send_the_same_reports_in_an_upload_a_segment() -> None:
    people, transport = population(200, random.Random(14)), Recording()

    traffic = drive_gateways(people, REGISTRY, transport)

    uploads = [decode(body, MESSAGEPACK) for body in transport.bodies]
    segments = Counter(tuple(sorted(person.segment.items())) for person in people)
    sent = Counter[tuple[tuple[str, str], ...]]()
    for upload in uploads:
        for column in upload.columns:
            sent[tuple(sorted((upload.segment or {}).items()))] += (
                len(column.payloads) // REGISTRY.by_digest[column.metric].mechanism.payload_size
            )
    reports = 200 * len(REGISTRY.metrics)
    assert (traffic.devices, traffic.reports, traffic.uploaded) == (200, reports, reports)
    assert sent == {segment: n * len(REGISTRY.metrics) for segment, n in segments.items()}


def test_progress_is_told_and_ends_with_everybody() -> None:
    told: list[int] = []

    drive(population(401, random.Random(7)), REGISTRY, Recording(), told.append)

    assert told == [200, 400, 401]
