"""The capacity model, and ``docs/evidence/scale.md``: its plans follow from its measurements."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from importlib.resources import files
from math import ceil
from pathlib import Path

import pytest
from redis.crc import key_slot

from benchmarks.lib.capacity import (
    FEWEST,
    FLEETS,
    FULL,
    GIB,
    IDS_A_SET,
    PLANNED,
    SERVERS,
    SLOTS,
    Costs,
    Fleet,
    costs_table,
    counter_bytes,
    fullest_share,
    memory,
    most_uploads,
    plan,
    plan_table,
    servers_table,
    shards_for,
    wrong_repeats,
)
from benchmarks.speed.scale import BAR, SAMPLE
from collector.core.config import MAX_SHARDS
from collector.intake.backpressure import ALARM_MEMORY
from collector.intake.memory_quota import BYTES_PER_ID
from collector.storage.keys import Keys

PAGE = (Path(__file__).parents[3] / "docs" / "evidence" / "scale.md").read_text("utf-8")


def costs_of_page() -> Costs:
    """Return the costs that the page's table states."""
    found = dict(re.findall(r"^\| (\w+) \| ([\d.,]+) \| ", PAGE, re.MULTILINE))
    return Costs(**{f.name: float(found[f.name].replace(",", "")) for f in fields(Costs)})


def checks_of_page() -> list[tuple[float, float, str, str]]:
    """Return the rows of the page on what was predicted, found, and how far off that is."""
    number = r"([\d,.]+)"
    row = rf"^\| .+ \| {number} \| {number} \| ([+-][\d.]+)% \| (pass|FAIL) \|$"
    return [
        (float(said.replace(",", "")), float(seen.replace(",", "")), error, verdict)
        for said, seen, error, verdict in re.findall(row, PAGE, re.MULTILINE)
    ]


def test_every_table_of_the_page_follows_from_its_costs() -> None:
    """Who changes a cost or the model must print the page's tables again."""
    costs = costs_of_page()

    for table in (costs_table, plan_table, servers_table):
        assert "\n".join(table(costs)) in PAGE


def test_a_plan_changes_with_its_costs() -> None:
    """The law above would notice a cost that is 15 % off."""
    costs = costs_of_page()

    assert "\n".join(plan_table(replace(costs, id=costs.id * (1 + BAR)))) not in PAGE


def test_the_page_says_how_far_the_model_was_off() -> None:
    """Memory, log, web process, store and worker are each checked against the larger store."""
    rows = checks_of_page()

    assert len(rows) == 8
    for said, seen, error, verdict in rows:
        assert abs(said / seen - 1 - float(error) / 100) < 0.005
        assert (verdict == "pass") == (abs(float(error)) <= 100 * BAR)


def test_the_example_of_the_page_is_the_plan_of_the_model() -> None:
    """Shards, servers and the settings that differ from the defaults."""
    costs, fleet = costs_of_page(), FLEETS[1]

    found = plan(costs, fleet)

    assert (found.primaries, f"**{found.shards} shards on one server**" in PAGE) == (1, True)
    assert f"`HEARSAY_SHARDS={found.shards}`" in PAGE
    (backlog,) = map(int, re.findall(r"`HEARSAY_MAX_BACKLOG=(\d+)`", PAGE))
    assert backlog > fleet.devices * fleet.uploads / 24 * fleet.outage_h
    (rate,) = map(int, re.findall(r"`HEARSAY_KEY_RATE=(\d+)`", PAGE))
    assert rate > found.rate * fleet.peak / 2


def test_the_doctor_reckons_with_an_id_as_it_was_measured() -> None:
    """Its constant has room for a day that has just outgrown its plan, and for no more."""
    entry = costs_of_page().id

    assert entry + 1 <= BYTES_PER_ID <= entry + 3


def test_the_model_reckons_with_buckets_as_the_library_has_them() -> None:
    library = files("collector.storage").joinpath("hearsay.lua").read_text(encoding="utf-8")
    names = "FEWEST, MOST_BUCKETS, PLANNED, FULL, SAMPLE = "

    assert f"local {names}{FEWEST}, 2 ^ 24, {PLANNED}, {FULL}, {SAMPLE}\n" in library


def compared(ids: int, planned: int) -> int:
    """Return twice the numbers with which the ids of a day are compared, if they spread evenly."""
    sizes = [max(FEWEST, ceil(planned / PLANNED))]
    filled = [0]
    total = 0
    for number in range(ids):
        if number >= FULL * sum(sizes):
            sizes.append(3 * sum(sizes))
            filled.append(0)
        total += sum(2 * n // size for n, size in zip(filled, sizes, strict=True))
        filled[-1] += 1
    return total


@pytest.mark.parametrize(("ids", "planned"), [(5_000, 5_000), (30_000, 0), (30_000, 12_000)])
def test_wrong_repeats_are_those_of_a_count_id_by_id(ids: int, planned: int) -> None:
    """Counted in halves, as numbers of a bucket are whole."""
    expected = compared(ids, planned) / 2 / 2**64

    assert wrong_repeats(ids, planned) == pytest.approx(expected, rel=0.02)


def test_fewer_than_one_in_a_million_years_is_taken_for_a_repeat() -> None:
    """Of 100 million devices a day, whether days are as planned or twice as large."""
    fleet, shards = FLEETS[1], 128
    ids = ceil(fleet.devices / shards)

    planned, doubled = (365 * shards * wrong_repeats(ids, ids // n) for n in (1, 2))
    first = shards * wrong_repeats(ids, 0)

    assert f"{planned:.1e}" == "2.8e-07"
    assert f"{doubled:.1e}" == "5.3e-07"
    assert f"{first:.0e}" == "8e-09"
    assert planned < doubled < 1e-6


def test_a_shard_is_where_its_keys_are() -> None:
    """The model cuts the slots as a cluster does: by the hash tag of the keys."""
    keys = Keys("hearsay", 128)
    counts = [0] * 7
    for shard in range(128):
        counts[key_slot(keys.stream(shard).encode()) * 7 // SLOTS] += 1

    assert fullest_share(128, 7) == max(counts) / 128
    assert fullest_share(128, 1) == 1


@pytest.mark.parametrize("uploads", [1.0, 1e6, 1e8, 3e8])
def test_the_shards_of_a_plan_keep_sets_small_and_may_be_set(uploads: float) -> None:
    """A power of two, no larger than needed, and within what the setting takes."""
    shards = shards_for(uploads)

    assert uploads / shards <= IDS_A_SET
    assert shards == 4 or uploads / (shards // 2) > IDS_A_SET
    assert shards <= MAX_SHARDS
    assert shards & (shards - 1) == 0


@pytest.mark.parametrize("fleet", FLEETS)
def test_no_server_of_a_plan_is_beyond_the_alarm_and_one_fewer_would_be(fleet: Fleet) -> None:
    """The fullest server decides."""
    costs, node = costs_of_page(), 32 * GIB

    found = plan(costs, fleet, node)

    total = sum(memory(costs, fleet, found.shards))
    fewer = found.primaries - 1
    assert found.fullest <= ALARM_MEMORY * node
    assert not fewer or total * fullest_share(found.shards, fewer) > ALARM_MEMORY * node


def test_a_fleet_that_no_number_of_servers_holds_is_refused() -> None:
    """Rather than planned without room."""
    with pytest.raises(ValueError, match="node="):
        plan(costs_of_page(), FLEETS[1], 1e6)


@pytest.mark.parametrize("node", SERVERS.values())
def test_a_single_server_carries_what_the_page_says(node: int) -> None:
    """That many uploads a day fit, and a twentieth more do not."""
    costs = costs_of_page()
    most = most_uploads(costs, node)

    needed = [sum(memory(costs, Fleet("", n), shards_for(n))) for n in (most, ceil(most * 1.05))]

    assert needed[0] <= ALARM_MEMORY * node < needed[1]


def test_counters_take_twice_their_bytes_and_a_step_of_the_allocator() -> None:
    """Never less than twice eight bytes each, never a quarter more."""
    for counters in range(4, 3_000):
        needed = 16 * counters + 6
        assert needed <= counter_bytes(counters) <= max(needed * 1.25, needed + 15)
