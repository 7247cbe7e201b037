"""Facts about the hierarchy: its least squares, how it errs, and what ranges gain."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pytest

from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.hierarchy import FANOUTS, Hierarchy, best_fanout, depth
from collector.analytics.sums import Shares
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.enumeration import distribution
from tests.support.references.hierarchy_reference import counts_and_variances

TRIALS = 1_000
ALPHA = 0.05
HELD = np.array([300, 0, 0, 150, 900, 600, 30, 0, 20, 400, 100, 500])  # by item
RANGES = np.array([[i < 6 for i in range(12)], [3 <= i < 10 for i in range(12)]])


def law_of(mechanism: Hierarchy, item: int) -> Any:
    """Return the enumerated chance of each report of *item*."""
    found = distribution(lambda rnd: mechanism.randomize(item, rnd)).pmf
    chances = np.zeros(mechanism.payload_count)
    for payload, mass in found.items():
        assert isinstance(payload, bytes)
        chances[int.from_bytes(payload, "big")] += float(mass)
    return chances / chances.sum()


@cache
def tallies(fanout: int) -> tuple[Hierarchy, Any]:
    """Return TRIALS tallies of devices that hold HELD, drawn from the enumerated law."""
    mechanism = Hierarchy("1", HELD.size, fanout=fanout)
    generator = np.random.default_rng(20261107)
    parts = (
        generator.multinomial(devices, law_of(mechanism, item), TRIALS)
        for item, devices in enumerate(HELD.tolist())
    )
    return mechanism, sum(parts)


@pytest.mark.parametrize(("fanout", "items"), [(2, 7), (4, 5), (4, 16), (8, 8), (16, 3)])
def test_the_closed_form_is_the_constrained_least_squares(fanout: int, items: int) -> None:
    """Against normal equations that are solved whole, for levels of unequal numbers of reports."""
    mechanism = Hierarchy("2", items, fanout=fanout)
    generator = np.random.default_rng(fanout * items)
    reports = generator.integers(0, mechanism.payload_count, 60)
    tally = np.bincount(reports, minlength=mechanism.payload_count)
    p = Decimal(float(mechanism.channel.p))

    found = mechanism.debias(tally, 60, np)

    counts, variances = counts_and_variances(p, items, fanout, reports.tolist())
    assert found.totals == pytest.approx([float(count) for count in counts], abs=1e-6)
    assert found.variances == pytest.approx([float(v) for v in variances], rel=1e-6)


@pytest.mark.parametrize("fanout", FANOUTS)
def test_the_counts_of_all_leaves_add_up_to_the_reports(fanout: int) -> None:
    """The whole is known, and least squares keep to it."""
    mechanism = Hierarchy("1", fanout**2, fanout=fanout)
    tally = np.arange(mechanism.payload_count)
    n = int(tally.sum())

    assert mechanism.debias(tally, n, np).totals.sum() == pytest.approx(n)


@pytest.mark.parametrize("fanout", [2, 4, 16])
@pytest.mark.parametrize("width", [1.0, 0.5])
def test_intervals_of_ranges_cover_at_their_level_and_half_of_them_would_not(
    fanout: int, width: float
) -> None:
    """Unbiased; the variance is at most the stated one, which leaves out squares of shares."""
    mechanism, drawn = tallies(fanout)
    truth = RANGES @ HELD / HELD.sum()
    hits = np.zeros(len(RANGES), dtype=int)

    for tally in drawn:
        groups = Shares.of(mechanism, tally, int(HELD.sum())).groups(RANGES, ALPHA)
        reach = [width * (group.ci_high - group.value) for group in groups]
        hits += np.abs([group.value for group in groups] - truth) <= reach

    enough = TRIALS * (1 - ALPHA)
    held = [found >= enough or fits_rate(int(found), TRIALS, 1 - ALPHA) for found in hits]
    assert all(held) == (width == 1)
    assert any(held) == (width == 1)


def test_one_level_is_hadamard_response_with_the_whole_known() -> None:
    """With as many children as items there is nothing above the leaves."""
    mechanism, flat = Hierarchy("1", 16, fanout=16), Hadamard("1", 16)

    assert mechanism.levels == 1
    assert mechanism.payload_count == flat.payload_count
    assert mechanism.predict(1_000) < flat.predict(1_000) * 1.02


@pytest.mark.parametrize("items", [64, 256, 1_024])
def test_ranges_of_many_items_err_less_than_sums_of_a_flat_response(items: int) -> None:
    """Half of the items: the error grows with the depth, not with the items."""
    tree, flat = Hierarchy("1", items), Hadamard("1", items)
    half = (np.arange(items) < items // 2 - 1)[None, :].astype(float)
    even = np.full(items, 1 / items)
    counts = np.concatenate(
        [
            np.full(end - start, 1_000)
            for start, end in zip(tree.starts, tree.starts[1:], strict=False)
        ]
    )
    n = int(counts.sum())

    of_tree = Shares(tree, counts, n, even).variances(half)
    of_flat = Shares(flat, np.zeros(1, dtype=np.int64), n, even).variances(half)

    assert of_tree < of_flat / 2


@pytest.mark.parametrize(("items", "fanout"), [(2, 2), (8, 8), (64, 4), (1_024, 2)])
def test_the_fanout_is_the_one_of_the_smallest_error_of_ranges(items: int, fanout: int) -> None:
    """Small domains are flat; large ones are halved at every level."""
    assert best_fanout(items) == fanout
    assert Hierarchy("1", items).fanout == fanout
    assert fanout ** (depth(items, fanout) - 1) < items <= fanout ** depth(items, fanout)


def test_a_level_without_reports_tells_nothing_and_breaks_nothing() -> None:
    """One report is of one level; errors are then larger than the whole."""
    mechanism = Hierarchy("1", 8, fanout=2)
    tally = np.zeros(mechanism.payload_count, dtype=np.int64)
    tally[0] = 1

    found = mechanism.debias(tally, 1, np)

    assert np.isfinite(found.totals).all()
    assert (found.variances > 1).all()
