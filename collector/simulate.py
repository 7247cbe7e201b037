"""Simulated devices: people drawn from published counts, each reporting through the real SDK."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, repeat
from typing import Final, TypeAlias, TypeVar

from client_sdk.client import Client
from client_sdk.consent import Consent
from client_sdk.opt_out import NoOptOuts
from client_sdk.registry import Registry
from client_sdk.transport import Transport

from .analytics.answer import label_truth

T = TypeVar("T")
Person: TypeAlias = Mapping[str, object]  # metric name to true value
Truth: TypeAlias = Mapping[str, Mapping[str, float]]  # metric name to row to true answer

DEMO_REGISTRY: Final = files("collector") / "demo_data" / "metrics.toml"
_PROGRESS_EVERY: Final = 200  # devices between two reports of progress


@dataclass(frozen=True)
class Traffic:
    """What a fleet did: devices driven, reports recorded, uploads acknowledged."""

    devices: int
    reports: int
    uploads: int


def population(devices: int, chance: random.Random) -> list[Person]:
    """Draw *devices* people without replacement from the shipped counts, as far as these reach.

    A first page and a person's age and income come from different surveys, so they are paired at
    random; each keeps its own distribution.
    """
    pages = _draw(_first_pages(), devices, chance)
    persons = _draw(_ages_and_incomes(), devices, chance)
    return [
        {"first_page": page, "age": age, "income_over_50k": income}
        for page, (age, income) in zip(pages, persons, strict=True)
    ]


def truth_of(people: Sequence[Person], registry: Registry) -> Truth:
    """Return the exact answer of every metric for *people*: what a query should cover."""
    return {
        metric.name: label_truth(metric, Counter(person[metric.name] for person in people))
        for metric in registry
    }


def drive(
    people: Sequence[Person],
    registry: Registry,
    transport: Transport,
    progress: Callable[[int], None] = lambda done: None,
) -> Traffic:
    """Let each person's device record and upload once, one device after another.

    Every device has a ledger, an outbox and noise of its own; only the connection is shared.
    """
    reports = uploads = 0
    for done, person in enumerate(people, 1):
        client = Client(
            "http://127.0.0.1", "", registry, consent=Consent.GRANTED, data_dir=None,
            transport=transport, mode="manual", opt_outs=NoOptOuts(),
        )  # fmt: skip
        with client:
            for name, value in person.items():
                client.record(name, value)
            client.flush()
            stats = client.stats()
        reports += stats["recorded"]
        uploads += stats["uploaded"] > 0  # one pass seals all of a device into one upload
        if done % _PROGRESS_EVERY == 0 or done == len(people):
            progress(done)
    return Traffic(len(people), reports, uploads)


def _draw(counts: Mapping[T, int], k: int, chance: random.Random) -> list[T]:
    """Draw *k* holders without replacement; beyond the whole population it is used again."""
    values, weights = list(counts), list(counts.values())
    total = sum(weights)
    whole, rest = divmod(k, total)
    drawn = chance.sample(values, rest, counts=weights)
    everybody: Iterator[T] = chain.from_iterable(map(repeat, values, weights))
    drawn += list(everybody) * whole
    chance.shuffle(drawn)
    return drawn


def _first_pages() -> dict[str, int]:
    return {row["first_page"]: int(row["visitors"]) for row in _rows("first_page.csv")}


def _ages_and_incomes() -> dict[tuple[int, bool], int]:
    return {
        (int(row["age"]), row["income_over_50k"] == "true"): int(row["persons"])
        for row in _rows("age_income.csv")
    }


def _rows(name: str) -> list[dict[str, str]]:
    text = (files("collector") / "demo_data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
