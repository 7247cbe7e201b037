"""Shares of strings that somebody names: unbiased, covered, and free of the company they keep."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import sqrt
from typing import Final

import numpy as np
import pytest

from benchmarks.accuracy.heavy_hitters import tally_of
from client_sdk.core.errors import InvalidTallyError
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms.composite.pem import PEM, symbols
from collector.analytics.text.sketches import (
    law_of,
    peel,
    prefixes,
    shares_of,
    sketches_of,
    without,
)
from tests.support.enumeration.enumeration import distribution

N: Final = 200_000  # devices
ALPHA_Z: Final = 1.959963984540054  # 95 %
FALSE_ALARM: Final = 1e-9


def crowd(strings: int) -> dict[bytes, int]:
    """Return N devices: the i-th string has a share in proportion to 1/(i + 5)."""
    weights = [1 / (i + 5) for i in range(strings)]
    counts = [round(N * weight / sum(weights)) for weight in weights]
    counts[0] += N - sum(counts)
    return {b"item%d" % i: count for i, count in enumerate(counts)}


def test_the_numpy_fleet_follows_the_law_of_randomize() -> None:
    """Each payload of 200,000 drawn reports is as common as enumeration says (Hoeffding)."""
    mechanism = PEM("1", 3, rows=2, columns=7, order=2)
    law = distribution(lambda randomness: mechanism.randomize(b"ab", randomness)).pmf
    margin = sqrt(np.log(2 * mechanism.payload_count / FALSE_ALARM) / (2 * N))

    tally = tally_of(mechanism, [b"ab"], [N], seed=1)

    shares = {i.to_bytes(1, "big"): share for i, share in enumerate((tally / N).tolist())}
    assert tally.sum() == N
    assert set(law) == set(shares)
    assert all(shares[r] == pytest.approx(float(law[r]), abs=margin) for r in shares)


def test_the_numpy_fleet_and_real_devices_give_the_same_shares() -> None:
    """20,000 devices that randomize with the system's entropy are read as well as drawn ones."""
    mechanism, devices, randomness = PEM("4", 6), 20_000, system_randomness()
    texts = [b"crash", b"hang"]
    reports = (mechanism.randomize(texts[i % 4 == 0], randomness) for i in range(devices))

    real = mechanism.tally(b"".join(reports), np)
    drawn = tally_of(mechanism, texts, [devices * 3 // 4, devices // 4], seed=2)

    for tally in (real, drawn):
        found = shares_of(sketches_of(mechanism, tally, devices), texts, 6.5)
        assert found[0].ci_low < 0.75 < found[0].ci_high
        assert found[1].ci_low < 0.25 < found[1].ci_high
        assert found[0].ci_high - found[0].ci_low < 0.2


@pytest.mark.parametrize(("epsilon", "step"), [("1", 2), ("4", 2), ("2", 3)])
def test_intervals_hold_the_share_in_about_95_of_100_strings(epsilon: str, step: int) -> None:
    """Of 6 crowds and 100 strings each; the bounds allow for what strings have in common."""
    population = crowd(100)
    texts = list(population)
    mechanism = PEM(epsilon, 8, step=step)
    covered, errors = [], []
    for seed in range(6):
        tally = tally_of(mechanism, texts, list(population.values()), seed)
        shares = shares_of(sketches_of(mechanism, tally, N), texts, ALPHA_Z)
        for text, found in zip(texts, shares, strict=True):
            covered.append(found.ci_low <= population[text] / N <= found.ci_high)
            errors.append((found.value - population[text] / N) / found.std_error)

    assert 0.91 < np.mean(covered) < 0.985
    assert abs(np.mean(errors)) < 0.2
    assert 0.87 < np.std(errors) < 1.13


def test_a_string_that_nobody_has_is_not_made_common_by_one_that_everybody_has() -> None:
    """With 3 rows most of 20,000 strings that meet the only one in a cell would look common."""
    mechanism = PEM("4", 6, rows=3)
    tally = tally_of(mechanism, [b"common"], [N], seed=3)
    levels = sketches_of(mechanism, tally, N)
    others = [b"x%d" % i for i in range(20_000)]

    found = shares_of(levels, [*others, b"common"], 5.5)
    alone = shares_of(levels, others, 5.5)

    assert all(one.ci_low <= 0 for one in found[:-1])
    assert found[-1].value == pytest.approx(1, abs=0.02)
    assert all(one.ci_low <= 0 for one in alone)  # its cells stand out, whoever is in them


def test_peeling_takes_what_is_common_and_leaves_its_company() -> None:
    """A candidate in a cell of the common string keeps nothing once that is out of the sketch."""
    mechanism, population = PEM("4", 6, rows=3), {b"common": N}
    tally = tally_of(mechanism, list(population), list(population.values()), seed=4)
    last = sketches_of(mechanism, tally, N)[-1]
    texts = [b"common", *(b"x%d" % i for i in range(9_000))]
    *_, found = prefixes(mechanism, texts)
    cells = last.cells(found)
    company = (cells[:, 1:] == cells[:, :1]).any(axis=0).nonzero()[0] + 1

    rest, taken = peel(last, cells, N)

    before, after = last.shares(cells)[company], rest.shares(cells)[company]
    assert len(company) > 5
    assert before.min() > 0.25
    assert np.abs(after).max() < 6 * sqrt(law_of([rest], N).level)
    assert taken[0] == pytest.approx(1, abs=0.05)
    assert Counter(taken > 0) == {True: 1, False: len(texts) - 1}


def test_taking_nothing_out_changes_nothing() -> None:
    """A sketch without strings of share 0 is the sketch."""
    mechanism = PEM("2", 4, rows=2, columns=57)
    tally = tally_of(mechanism, [b"a"], [1000], seed=5)
    level = sketches_of(mechanism, tally, 1000)[0]

    same = without(level, np.zeros((2, 3), dtype=np.int64), np.zeros(3))

    assert same.counts.tolist() == level.counts.tolist()
    assert (same.mass, same.crowd) == (level.mass, level.crowd)


def test_the_crowd_is_the_sum_of_squared_shares() -> None:
    """It is what collisions are made of, estimated without knowing any string."""
    mechanism, population = PEM("4", 8), crowd(50)
    tally = tally_of(mechanism, list(population), list(population.values()), seed=6)
    truth = sum((count / N) ** 2 for count in population.values())

    levels = sketches_of(mechanism, tally, N)

    assert levels[-1].crowd == pytest.approx(truth, rel=0.15)
    assert levels[0].crowd == pytest.approx(1, rel=0.05)  # all begin with "ite"


def test_prefixes_are_hashed_as_the_device_hashes_them() -> None:
    """Growing prefixes level by level gives each its own fingerprint, short and long alike."""
    mechanism = PEM("2", 7)
    texts = [b"", b"a", b"ab", b"abc", b"abcdefg", b"\0\xff"]

    for level, found in enumerate(prefixes(mechanism, texts)):
        for place, text in enumerate(texts):
            prefix = symbols(text, mechanism.lengths[level])
            columns = [mechanism.cell_of(level, row, text) for row in range(mechanism.rows)]
            assert len(prefix) <= mechanism.lengths[level]
            tally = np.zeros(mechanism.tally_size, dtype=np.int64)
            sketch = sketches_of(mechanism, tally, 0)[level]
            assert sketch.cells(found)[:, place].tolist() == columns


def test_a_cell_put_aside_leaves_the_share_of_the_other_rows() -> None:
    mechanism = PEM("1", 3, rows=2, columns=7, order=2)
    level = sketches_of(mechanism, tally_of(mechanism, [b"ab"], [N], seed=7), N)[-1]
    *_, whole = prefixes(mechanism, [b"ab"])
    cells = level.cells(whole)
    clean = np.ones((2, 7), dtype=bool)
    clean[0, cells[0]] = False
    other = replace(level, counts=level.counts[1:], reports=level.reports[1:])

    shares, used = replace(level, clean=clean).read(cells)

    assert shares == pytest.approx(other.shares(cells[1:]))
    assert used.tolist() == [other.n]


def test_no_reports_give_no_share_and_no_fault() -> None:
    """A sketch of nobody has finite numbers."""
    mechanism = PEM("2", 4, rows=2, columns=57)

    (found,) = shares_of(sketches_of(mechanism, np.zeros(mechanism.tally_size, int), 0), [b"a"], 2)

    assert found.value == pytest.approx(0, abs=0.1)
    assert np.isfinite([found.ci_low, found.ci_high, found.std_error]).all()


def test_a_tally_of_other_reports_is_refused() -> None:
    """The cells must add up to n."""
    mechanism = PEM("2", 4, rows=2, columns=57)

    with pytest.raises(InvalidTallyError):
        sketches_of(mechanism, np.zeros(mechanism.tally_size, int), 1)
