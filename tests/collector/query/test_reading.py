"""Slices add up what is stored, and no two answers differ by fewer reports than the floor."""

from __future__ import annotations

import json
from itertools import combinations
from random import Random
from typing import Any

import pytest

from collector.analytics.slices import FLOOR
from collector.catalog import Catalog
from collector.query import plan, read, run
from collector.query.reading import NOT_SAID, slices_of
from collector.segments import segment_text
from collector.storage.values import Cell
from tests.support.memory_storage import MemoryStorage
from tests.support.uploads import NOON, TODAY, registry

LEAST = 150
CATALOG = Catalog([registry(min_reports=LEAST)])
PAGE = CATALOG.metric("page")
PLATFORMS = ("linux", "mac", "")  # "" is a device that did not say
FILTERS: tuple[list[Any], ...] = (
    [],
    [["is", "platform", ["linux"]]],
    [["is", "platform", ["mac"]]],
    [["is_not", "platform", ["mac"]]],
    [["is", "platform", ["linux", "mac"]]],
)


def stored(counts: dict[tuple[int, str], int]) -> MemoryStorage:
    storage = MemoryStorage()
    for (epoch, platform), n in counts.items():
        if not n:
            continue
        segment = segment_text(PAGE, {"platform": platform} if platform else {})
        storage.fold(0, [], {Cell(PAGE.digest, epoch, segment): [(0, n), (1, n)]})
    return storage


def asked(storage: MemoryStorage, **fields: Any) -> list[Any]:
    made = plan(read(json.dumps({"metrics": ["page"], **fields}).encode()), CATALOG, NOON)
    return slices_of(made, made.readings[0], PAGE, storage)


def test_groups_stand_in_the_order_of_time_and_vocabulary() -> None:
    storage = stored({(TODAY - day, platform): 200 for day in (0, 1) for platform in PLATFORMS})

    found = asked(storage, dimensions=["time", "platform"])

    assert [one.dimensions["platform"] for one in found] == ["linux", "mac", NOT_SAID] * 2
    assert [one.n for one in found] == [200] * 6
    assert len({one.dimensions["time"] for one in found}) == 2


def test_stretches_of_time_hold_whole_epochs() -> None:
    storage = stored({(TODAY - day, "mac"): 100 + day for day in range(20)})

    found = asked(storage, dimensions=["time:week"])

    assert sum(one.n for one in found) == sum(100 + day for day in range(20))
    assert all(one.epochs[-1] - one.epochs[0] < 7 for one in found)


def test_a_group_without_reports_is_left_out_but_the_whole_never_is() -> None:
    assert asked(MemoryStorage(), dimensions=["platform"]) == []
    (whole,) = asked(MemoryStorage())
    assert whole.n == 0
    assert (whole.refusal or "").startswith(f"not enough reports: 0 of at least {LEAST} needed")


def test_segments_of_a_few_reports_together_are_left_out_of_everything() -> None:
    """Also of the whole: less the others it would tell what they said."""
    storage = stored({(TODAY, "linux"): 900, (TODAY, "mac"): 60, (TODAY, ""): FLOOR - 61})

    (whole,) = asked(storage)
    (grouped,) = asked(storage, dimensions=["platform"])

    assert (whole.n, whole.refusal) == (900, None)
    assert (grouped.dimensions["platform"], grouped.n) == ("linux", 900)


def test_segments_of_a_few_reports_that_are_many_together_are_in_the_whole() -> None:
    """A fleet of many small segments still has an answer."""
    storage = stored({(TODAY, "linux"): 900, (TODAY, "mac"): 60, (TODAY, ""): FLOOR - 60})

    (whole,) = asked(storage)

    assert whole.n == 900 + FLOOR


def test_a_rare_segment_does_not_keep_others_from_being_compared() -> None:
    storage = stored({(TODAY, "linux"): 900, (TODAY, "mac"): 800, (TODAY, ""): 3})

    found = asked(storage, dimensions=["platform"])

    assert [(one.n, one.refusal) for one in found] == [(900, None), (800, None)]


def test_what_is_left_out_is_said() -> None:
    storage = stored({(TODAY, "linux"): 900, (TODAY, "mac"): 3})
    made = plan(read(b'{"metrics":["page"]}'), CATALOG, NOON)

    warnings = run(made, storage).meta["warnings"]

    assert "page: 3 reports of segments with fewer than 100 are left out" in warnings


@pytest.mark.parametrize("seed", range(40))
def test_no_two_answers_differ_by_fewer_reports_than_the_floor(seed: int) -> None:
    """Over random tallies with many small groups: filters and groups of one window, in pairs."""
    random = Random(seed)
    storage = stored(
        {(TODAY, platform): random.choice((0, 3, 40, 99, 100, 400)) for platform in PLATFORMS}
    )
    told = told_by(storage)

    assert [pair for pair in combinations(told, 2) if too_close(*pair)] == []


def test_without_the_rules_a_difference_would_tell_a_few() -> None:
    """The control: as if every group had a number."""
    storage = stored({(TODAY, "linux"): 900, (TODAY, "mac"): 500, (TODAY, ""): 3})

    told = [{"linux": 900, "mac": 500}, {"linux": 900, "mac": 500, NOT_SAID: 3}]

    assert too_close(*told)
    assert told_by(storage) != []


def told_by(storage: MemoryStorage) -> list[dict[str, int]]:
    """Return of each number that is answered the reports it rests on, by platform.

    They are found by the number of reports alone: which segments were left out is not told.
    """
    known = {
        json.loads(cell.segment)["platform"] or NOT_SAID: counts[0]
        for cell, counts in storage.tallied.items()
        if counts[0]
    }
    told = []
    for filters in FILTERS:
        for grouped in (False, True):
            fields = {"filters": filters, "dimensions": ["platform"] if grouped else []}
            for one in asked(storage, **fields):
                group = [one.dimensions["platform"]] if grouped else list(known)
                inside = {name: known[name] for name in group if in_filter(filters, name)}
                if sum(inside.values()) != one.n:
                    inside = {name: n for name, n in inside.items() if n >= FLOOR}
                assert sum(inside.values()) == one.n
                if one.refusal is None:
                    told.append(inside)
    return told


def in_filter(filters: list[Any], name: str) -> bool:
    for kind, _, values in filters:
        if name == NOT_SAID or (name in values) != (kind == "is"):
            return False
    return True


def too_close(one: dict[str, int], other: dict[str, int]) -> bool:
    """Whether one holds all of the other, and fewer than FLOOR reports besides."""
    for whole, part in ((one, other), (other, one)):
        if part.items() <= whole.items():
            besides = sum(whole.values()) - sum(part.values())
            return 0 < besides < FLOOR
    return False


def test_a_whole_answer_says_what_it_rests_on() -> None:
    storage = stored({(TODAY, "linux"): 900})
    made = plan(read(b'{"metrics":["page"],"include":["total_rows"]}'), CATALOG, NOON)

    meta = run(made, storage).meta

    assert (meta["n"], meta["total_rows"], meta["intervals"]) == (900, 3, "pointwise")
    assert meta["query"]["verb"] == "estimate"
    assert meta["warnings"][0] == (
        "page: the window is still running; its last epoch is counted so far"
    )
