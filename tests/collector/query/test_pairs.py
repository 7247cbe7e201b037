"""No two answers about segments of a window tell, by their difference, of a few reports."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from random import Random
from typing import Any, Final

import pytest

from client_sdk.registry import Registry
from collector.analytics.slices import FLOOR, Slice
from collector.analytics.verbs.segments import with_others
from collector.catalog import Catalog
from collector.query import plan, read
from collector.query.reading import slices_of
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
PLACES: Final = list(product(PLATFORMS, CHANNELS))
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


def answered(counts: Mapping[Place, int]) -> Iterator[list[frozenset[Place]]]:
    """Yield, for each question, the segments that each of its numbers rests on.

    Where groups are asked for, the row of those that are told together is among them.
    """
    storage = store_of(counts)
    for filters, dimensions in QUESTIONS:
        fields = {"metrics": ["page"], "filters": filters, "dimensions": dimensions}
        made = plan(read(json.dumps(fields).encode()), CATALOG, NOON)
        slices = slices_of(made, made.readings[0], PAGE, storage)
        inside = [frozenset(segments_of(counts, filters, one.dimensions)) for one in slices]
        pairs = list(zip(slices, inside, strict=True))
        assert all(sum(counts[place] for place in places) == one.n for one, places in pairs)
        told = [places for one, places in pairs if one.refusal is None]
        others = with_others(slices)[len(slices) :] if dimensions and slices else []
        told += [together(counts, slices, inside, one) for one in others]
        yield told


def together(
    counts: Mapping[Place, int],
    slices: Sequence[Slice],
    inside: Sequence[frozenset[Place]],
    other: Slice,
) -> frozenset[Place]:
    """Return the segments of the row that holds all refused ones of *slices*."""
    pairs = zip(slices, inside, strict=True)
    found = frozenset[Place]().union(*(places for one, places in pairs if one.refusal is not None))
    assert sum(counts[place] for place in found) == other.n
    return found


def segments_of(
    counts: Mapping[Place, int], filters: list[Any], group: Mapping[str, str]
) -> Iterator[Place]:
    """Yield the segments of a group: all of them, or where they are told apart none of the few."""
    whole = whole_of(counts)
    for place, n in counts.items():
        values = dict(zip(("platform", "channel"), place, strict=True))
        taken = all(
            values[name] != "" and (values[name] in chosen) == (kind == "is")
            for kind, name, chosen in filters
        )
        own = all((values[name] or "(not said)") == value for name, value in group.items())
        if taken and own and n and (n >= FLOOR or (place in whole and not (filters or group))):
            yield place


def whole_of(counts: Mapping[Place, int]) -> frozenset[Place]:
    """Return the segments that the whole holds: without small ones that are few together."""
    small = {place: n for place, n in counts.items() if 0 < n < FLOOR}
    is_few = 0 < sum(small.values()) < FLOOR and sum(small.values()) < sum(counts.values())
    return frozenset(counts) - (small.keys() if is_few else set())


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
        told = sorted({one for answer in answered(counts) for one in answer}, key=sorted)
        pairs = list(combinations(told, 2))
        compared += len(pairs)
        assert [pair for pair in pairs if few_between(counts, *pair)] == []
    assert compared * 5 >= PAIRS


@pytest.mark.parametrize("seed", range(5))
def test_no_combination_of_answers_tells_of_a_few_reports(seed: int) -> None:
    """However many are added and subtracted: segments that no answer parts are FLOOR together."""
    random = Random(seed)
    for _ in range(TALLIES):
        counts = tallies(random)
        told = sorted({one for answer in answered(counts) for one in answer}, key=sorted)
        parts: Counter[frozenset[int]] = Counter()
        for place, n in counts.items():
            parts[frozenset(i for i, one in enumerate(told) if place in one)] += n
        del parts[frozenset()]  # in no answer
        assert [n for n in parts.values() if 0 < n < FLOOR] == []


@pytest.mark.parametrize("seed", range(5))
def test_all_numbers_of_an_answer_leave_no_few_reports_of_the_whole(seed: int) -> None:
    """Groups beside one another, and those told together: the whole less all of them."""
    random, added = Random(seed), 0
    for _ in range(TALLIES):
        counts = tallies(random)
        for told in answered(counts):
            whole = sum(counts[place] for place in whole_of(counts))
            left = whole - sum(counts[place] for place in frozenset().union(*told))
            assert not (told and 0 < left < FLOOR)
            added += len(told) > 2
    assert added >= TALLIES


def test_segments_are_told_together_whatever_few_reports_are_beside_them() -> None:
    """Two refused segments have enough together, and the few are in no answer at all."""
    few = {("linux", "beta"): 400, ("mac", "beta"): 110, ("", "beta"): 115}
    beside = {**few, ("mac", "stable"): FLOOR - 1}

    def most(counts: dict[Place, int]) -> int:
        return max(len(told) for told in answered(dict.fromkeys(PLACES, 0) | counts))

    assert most(few) == 2
    assert most(beside) == 2


def test_a_rule_that_is_left_out_would_be_seen() -> None:
    """The control: as if what is left of the whole were not looked at."""
    counts = dict.fromkeys(product(PLATFORMS, CHANNELS), 400) | {("mac", ""): 3}
    whole = frozenset(counts)

    assert few_between(counts, whole, whole - {("mac", "")})
    assert not few_between(counts, whole, whole - {("mac", "beta")})
