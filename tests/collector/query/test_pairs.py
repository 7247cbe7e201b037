"""No two answers about segments of a window tell, by their difference, of a few reports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import combinations, product
from random import Random
from typing import Any, Final

import pytest

from client_sdk.registry import Registry
from collector.catalog import Catalog
from collector.query import plan, read
from collector.query.reading import FLOOR, slices_of
from collector.segments import segment_text
from collector.storage.values import Cell
from tests.support.memory_storage import MemoryStorage
from tests.support.uploads import NOON, TODAY, registry_text

LEAST: Final = 120
CATALOG: Final = Catalog(
    [
        Registry.from_text(
            registry_text(min_reports=LEAST).replace(
                'segments = ["platform"]', 'segments = ["platform", "channel"]'
            )
        )
    ]
)
PAGE: Final = CATALOG.metric("page")
PLATFORMS: Final = ("linux", "mac", "")  # "" is a device that did not say
CHANNELS: Final = ("beta", "stable", "")
SIZES: Final = (0, 1, 40, 99, 100, 130, 150, 400)
TALLIES: Final = 20  # of each seed
PAIRS: Final = 2_000  # that must be compared, all seeds together
QUESTIONS: Final = [
    ([*by_platform, *by_channel], dimensions)
    for by_platform, by_channel, dimensions in product(
        ([], [["is", "platform", ["linux"]]], [["is_not", "platform", ["linux"]]]),
        ([], [["is", "channel", ["beta"]]], [["is", "channel", ["beta", "stable"]]]),
        ([], ["platform"], ["channel"], ["platform", "channel"]),
    )
]
Place = tuple[str, str]


def tallies(random: Random) -> dict[Place, int]:
    """Return the reports of each segment, many of them few."""
    return {place: random.choice(SIZES) for place in product(PLATFORMS, CHANNELS)}


def store_of(counts: Mapping[Place, int]) -> MemoryStorage:
    storage = MemoryStorage()
    for (platform, channel), n in counts.items():
        said = {"platform": platform, "channel": channel}
        segment = segment_text(PAGE, {name: value for name, value in said.items() if value})
        if n:
            storage.fold(0, [], {Cell(PAGE.digest, TODAY, segment): [(0, n), (1, n)]})
    return storage


def answered(counts: Mapping[Place, int]) -> Iterator[frozenset[Place]]:
    """Yield the segments that each number of each question rests on."""
    storage = store_of(counts)
    for filters, dimensions in QUESTIONS:
        fields = {"metrics": ["page"], "filters": filters, "dimensions": dimensions}
        made = plan(read(json.dumps(fields).encode()), CATALOG, NOON)
        for one in slices_of(made, made.readings[0], PAGE, storage):
            inside = frozenset(segments_of(counts, filters, one.dimensions))
            assert sum(counts[place] for place in inside) == one.n
            if one.refusal is None:
                yield inside


def segments_of(
    counts: Mapping[Place, int], filters: list[Any], group: Mapping[str, str]
) -> Iterator[Place]:
    """Yield the segments of a group: all of them, or where they are told apart none of the few."""
    for place, n in counts.items():
        values = dict(zip(("platform", "channel"), place, strict=True))
        taken = all(
            values[name] != "" and (values[name] in chosen) == (kind == "is")
            for kind, name, chosen in filters
        )
        own = all((values[name] or "(not said)") == value for name, value in group.items())
        if taken and own and n and (n >= FLOOR or not (filters or group)):
            yield place


def few_between(
    counts: Mapping[Place, int], one: frozenset[Place], other: frozenset[Place]
) -> bool:
    """Whether one answer holds all of the other, and a few reports besides."""
    if not (one <= other or other <= one):
        return False
    return 0 < sum(counts[place] for place in one ^ other) < FLOOR


@pytest.mark.parametrize("seed", range(5))
def test_no_pair_of_answers_differs_by_a_few_reports(seed: int) -> None:
    """Two dimensions, filters and groups in any combination, over random tallies."""
    random, compared = Random(seed), 0
    for _ in range(TALLIES):
        counts = tallies(random)
        told = sorted(set(answered(counts)), key=sorted)
        pairs = list(combinations(told, 2))
        compared += len(pairs)
        assert [pair for pair in pairs if few_between(counts, *pair)] == []
    assert compared * 5 >= PAIRS


def test_a_rule_that_is_left_out_would_be_seen() -> None:
    """The control: as if what is left of the whole were not looked at."""
    counts = dict.fromkeys(product(PLATFORMS, CHANNELS), 400) | {("mac", ""): 3}
    whole = frozenset(counts)

    assert few_between(counts, whole, whole - {("mac", "")})
    assert not few_between(counts, whole, whole - {("mac", "beta")})
