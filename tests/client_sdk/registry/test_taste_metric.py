"""Tastes in a registry: what is declared, what a set becomes, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import partial
from itertools import chain, combinations
from math import sqrt
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.core.errors import InvalidValueError
from client_sdk.core.randomness import Randomness
from client_sdk.core.stats import Reason
from client_sdk.mechanisms import UNIT, Vector
from client_sdk.mechanisms.exact import exp_floor
from client_sdk.mechanisms.numbers.codebook import Codebook
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.vector import MAX_TASTE
from client_sdk.testing import MemoryClient, MemoryTransport
from tests.support.device.registries import TASTE, file_with
from tests.support.enumeration.enumeration import distribution, largest_ratio
from tests.support.enumeration.populations import metric_of
from tests.support.enumeration.seeded import SeededRandomness

FROZEN: Final = Path(__file__).parents[2] / "data" / "taste.json"


def of_items(count: int) -> Metric:
    return metric_of(TASTE, values=json.dumps([f"item {place}" for place in range(count)]))


def subsets(count: int) -> list[list[str]]:
    items = [f"item {place}" for place in range(count)]
    return [list(s) for s in chain(*(combinations(items, size) for size in range(count + 1)))]


def test_a_set_becomes_the_moment_of_its_scaled_likes() -> None:
    half = UNIT / 2 / UNIT

    assert metric_of(TASTE).encode(["chess"]) == (0, UNIT, 0, 0, 0, 0)
    likes = [part / UNIT for part in metric_of(TASTE).encode(("news", "chess"))]  # type: ignore[union-attr]
    assert likes == pytest.approx([half, half, 0, half * sqrt(2), 0, 0], abs=1 / UNIT)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_moment_is_that_of_the_definition_and_of_length_1(count: int) -> None:
    """Rounded down, so that the mechanism takes every one of them."""
    of = of_items(count)
    for likes in subsets(count):
        held = [int(f"item {place}" in likes) for place in range(count)]
        scale = max(sum(held), 1)
        diagonal = [Fraction(x, scale) for x in held]
        above = [held[i] * held[j] / scale for i in range(count) for j in range(i + 1, count)]

        encoded: Any = of.encode(likes)

        exact = [*map(float, diagonal), *(x * sqrt(2) for x in above)]
        assert [part / UNIT for part in encoded] == pytest.approx(exact, abs=1 / UNIT)
        length = sqrt(sum(part * part for part in encoded)) / UNIT
        assert length <= 1
        assert length == pytest.approx(float(bool(likes)), abs=count**2 / UNIT)
        of.mechanism.randomize(encoded, SeededRandomness(b"taken"))
        assert of.domain.as_given(encoded) == likes


def test_one_report_of_a_taste_is_of_the_codebook() -> None:
    for count in (2, 17, MAX_TASTE):
        of = of_items(count)
        assert (of.mechanism_name, of.mechanism.payload_size) == ("codebook", 4)
        assert of.domain.size == of.mechanism.domain_size == count * (count + 1) // 2


def test_a_like_counts_once_however_often_it_is_named() -> None:
    assert metric_of(TASTE).encode(["news", "news"]) == metric_of(TASTE).encode({"news"})


def test_a_device_that_is_asked_twice_answers_once() -> None:
    registry = Registry.from_text(file_with(TASTE))
    transport = MemoryTransport()
    with MemoryClient(registry, transport=transport) as client:
        for likes in (["news"], ["chess"], [], ["no such item"], 7):
            client.record("m", likes)
        counts = client.stats()
        client.flush()

    assert counts[Reason.RECORDED] == 1
    assert counts[Reason.INVALID_VALUE] == 2
    (body,) = transport.uploads
    (column,) = json.loads(body)["columns"]
    assert len(column["payloads"]) == 6  # of 4 bytes


def worst_of(kind: type[Codebook], count: int, epsilon: str, size: int) -> Fraction:
    """Return the largest ratio of the chances of a report under two tastes of so many items."""
    domain: Any = of_items(count).domain
    mechanism = kind(epsilon, domain.size, words=4, subset_size=size, seeds=2)
    values = [domain.encode(likes, "m") for likes in subsets(count)]
    return largest_ratio([distribution(partial(mechanism.randomize, v)).pmf for v in values])


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("epsilon", ["0.5", "2", "8"])
@pytest.mark.parametrize("count", [2, 3])
def test_no_report_is_likelier_by_more_than_epsilon_whatever_is_liked(
    count: int, epsilon: str, size: int
) -> None:
    """Enumerated, for every pair of tastes: the slack is 0."""
    assert worst_of(Codebook, count, epsilon, size) <= exp_floor(Fraction(epsilon))


class _Peeking(Codebook):
    """One word less is near for who likes the first item."""

    def randomize(self, value: Vector, randomness: Randomness) -> bytes:
        first = randomness.uniform(self.seeds) * self.words
        near = self.subset_size - (value[0] > 0)
        ranked = self.ranked(first, value)
        taken = ranked[:near] if randomness.bernoulli(self.truth) else ranked[near:]
        return (first + taken[randomness.uniform(len(taken))]).to_bytes(self.payload_size, "big")


def test_a_number_of_near_words_that_depends_on_the_likes_would_be_caught() -> None:
    assert worst_of(_Peeking, 2, "2", 2) > exp_floor(Fraction(2))


def frozen(likes: list[str], seed: bytes) -> dict[str, object]:
    of = metric_of(TASTE, epsilon='"2"')
    encoded: Any = of.encode(likes)
    payload = of.mechanism.randomize(encoded, SeededRandomness(seed))
    return {
        "likes": likes,
        "encoded": list(encoded),
        "seed": seed.hex(),
        "payload": payload.hex(),
    }


def test_what_devices_make_of_a_taste_never_changes() -> None:
    """The file is frozen: an SDK in another language must give the same bytes."""
    document = json.loads(FROZEN.read_text("utf-8"))

    assert document["values"] == list(metric_of(TASTE).domain.labels)
    for case in document["cases"]:
        assert frozen(case["likes"], bytes.fromhex(case["seed"])) == case
    for likes in document["refused"]:
        with pytest.raises(InvalidValueError):
            metric_of(TASTE).encode(likes)
