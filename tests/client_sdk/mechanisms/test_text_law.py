"""Text mechanisms: unbiased cells, and the one hash of device and collector."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, cast

import numpy as np
import pytest

from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import END, TextMechanism
from client_sdk.mechanisms.composite.pem import (
    PEM,
    column_of,
    columns_of,
    fingerprint,
    joined,
    symbols,
)
from tests.client_sdk.mechanisms.test_privacy_law import likelihood_bound_holds
from tests.support.enumeration.enumeration import exp_below
from tests.support.enumeration.vectors import Small, every_small, laws
from tests.support.references.prefix_reference import cells_of

SMALL: Final = {"rows": 2, "columns": 7, "order": 2}


@every_small(TextMechanism)
def test_the_expected_holders_are_the_cells_of_the_string(small: Small) -> None:
    """A device is expected once in its cell of each row and level, and nowhere else."""
    mechanism = cast("PEM", small.mechanism)
    groups = mechanism.levels * mechanism.rows

    for text, law in zip(small.values, laws(small), strict=True):
        mean = np.zeros(groups * mechanism.columns)
        for payload, mass in law.pmf.items():
            tally = mechanism.tally(cast("bytes", payload), np)
            mean += float(mass) * mechanism.debias(tally, 1, np).totals

        expected = np.zeros_like(mean)
        expected[cells_of(mechanism, text)] = 1 / groups
        assert mean == pytest.approx(expected, abs=1e-9 * float(mechanism.noise**0.5 + 1))


@every_small(TextMechanism)
def test_a_report_agrees_with_its_own_string_with_p_and_with_another_with_q(small: Small) -> None:
    """The channel holds for every string, whatever its level and row."""
    mechanism = cast("PEM", small.mechanism)
    law = laws(small)[1]
    other = next(
        text
        for text in (bytes([x, y]) for x in range(256) for y in range(256))
        if not set(cells_of(mechanism, text)) & set(cells_of(mechanism, small.values[1]))
    )

    def chance(text: bytes) -> Fraction:
        agreeing = (m for r, m in law.pmf.items() if mechanism.agrees(cast("bytes", r), text))
        return sum(agreeing, Fraction(0))

    assert chance(small.values[1]) == mechanism.channel.p
    assert chance(other) == mechanism.channel.q


@pytest.mark.parametrize("domain_size", [2, 3, 4, 16, 17, 128])
@pytest.mark.parametrize("step", [1, 2, 3, 8])
def test_prefixes_grow_by_the_step_and_the_last_level_tells_of_every_string(
    domain_size: int, step: int
) -> None:
    """The last prefix has room for the longest string and its END."""
    mechanism = PEM("1", domain_size, step=step, rows=1, columns=7, order=2)
    grown = np.diff(mechanism.lengths)

    assert mechanism.lengths[0] == min(step, domain_size) + 1
    assert mechanism.lengths[-1] == domain_size + 1
    assert all(0 < more <= step for more in grown)
    assert all(
        mechanism.lengths[mechanism.first_level(length)] > length
        and (level == 0 or mechanism.lengths[level - 1] <= length)
        for length in range(domain_size + 1)
        for level in (mechanism.first_level(length),)
    )


def test_strings_share_a_cell_until_their_prefixes_differ() -> None:
    """What is the same so far is the same cell in every row; what differs is not in all."""
    mechanism = PEM("2", 8)
    rows = range(mechanism.rows)

    def is_shared(level: int, text: bytes) -> bool:
        cells = ([mechanism.cell_of(level, r, t) for r in rows] for t in (b"telemetr", text))
        return next(cells) == next(cells)

    assert mechanism.lengths == (3, 5, 7, 9)
    assert is_shared(0, b"tel...")
    assert is_shared(1, b"telemark")
    assert not is_shared(2, b"telemark")
    assert is_shared(2, b"telemet!")
    assert not is_shared(3, b"telemet")


def test_a_string_and_its_beginning_differ_where_the_end_is_told() -> None:
    """END is a symbol of its own, so that no string is taken for a longer one."""
    assert symbols(b"ab", 3) == [98, 99, END]
    assert symbols(b"ab", 2) == [98, 99]
    assert symbols(b"\0", 3) == [1, END] != symbols(b"", 3)


def test_the_hash_by_numpy_is_that_of_the_device_and_of_the_page() -> None:
    """Three computations of the columns agree: one by one, by numpy, and from the definition."""
    mechanism = PEM("2", 6)
    texts = [b"", b"a", b"telemetry"[:6], b"\xff" * 6, b"\0"]

    for place, (level, row) in enumerate(
        (level, row) for level in range(mechanism.levels) for row in range(mechanism.rows)
    ):
        prefixes = [symbols(text, mechanism.lengths[level]) for text in texts]
        found = []
        for prefix in prefixes:
            one = np.zeros(1, dtype=np.int64)
            for symbol in prefix:
                one = joined(row, one, np.array([symbol]), 1)
            assert one.tolist() == [fingerprint(row, prefix)]
            found.append(int(columns_of(level, row, one, mechanism.columns)[0]))

        alone = [mechanism.cell_of(level, row, text) for text in texts]
        page = [cells_of(mechanism, text)[place] % mechanism.columns for text in texts]
        assert found == alone == page


def test_tails_hashed_alone_continue_any_prefix() -> None:
    """The collector hashes all extensions once: prefix times a^length, plus the tail."""
    whole = fingerprint(3, symbols(b"abcd", 4))
    tail = np.array([fingerprint(3, symbols(b"cd", 2))])

    together = joined(3, np.array([fingerprint(3, symbols(b"ab", 2))]), tail, 2)

    assert together.tolist() == [whole]


def test_different_strings_meet_in_about_one_column_in_m() -> None:
    """Pairs of 400 similar strings share a column as often as chance has it, within 2 %."""
    mechanism = PEM("2", 8, rows=64, columns=57)
    found = [symbols(b"item%d" % i, 9) for i in range(400)]
    columns = np.array(
        [[column_of(3, r, fingerprint(r, one), 57) for r in range(64)] for one in found]
    )

    shared = (columns[:, None] == columns[None]).mean(axis=2)

    assert mechanism.columns == 57
    assert shared[~np.eye(400, dtype=bool)].mean() == pytest.approx(1 / 57, rel=0.02)


class _TellingLevel(PEM):
    """Planted fault: the level is drawn among those that the string reaches."""

    def randomize(self, value: bytes, randomness: Randomness) -> bytes:
        level = randomness.uniform(self.first_level(len(value)) + 1)
        row = randomness.uniform(self.rows)
        told = self.oracle.randomize(self.cell_of(level, row, value), randomness)
        report = (level * self.rows + row) * self.oracle.points + int.from_bytes(told, "big")
        return report.to_bytes(self.payload_size, "big")


class _TellingRow(PEM):
    """Planted fault: the row is that in which the string has the lower column."""

    def randomize(self, value: bytes, randomness: Randomness) -> bytes:
        level = randomness.uniform(self.levels)
        cells = [self.cell_of(level, row, value) for row in range(self.rows)]
        row = cells.index(min(cells))
        told = self.oracle.randomize(cells[row], randomness)
        report = (level * self.rows + row) * self.oracle.points + int.from_bytes(told, "big")
        return report.to_bytes(self.payload_size, "big")


class _TwoReports(PEM):
    """Planted fault: all of epsilon is spent twice, on two tries for the own cell."""

    def randomize(self, value: bytes, randomness: Randomness) -> bytes:
        first, second = (super(_TwoReports, self).randomize(value, randomness) for _ in range(2))
        return first if self.agrees(first, value) else second


@pytest.mark.parametrize("planted", [_TellingLevel, _TellingRow, _TwoReports])
def test_a_planted_fault_breaks_the_likelihood_bound(planted: type[PEM]) -> None:
    """The enumerated law sees what level, row or a second try tell of the string."""
    small = Small("planted", planted("1", 4, **SMALL), Fraction(0))
    bound = exp_below(small.mechanism.spent)

    assert not likelihood_bound_holds(laws(small), bound)
    assert likelihood_bound_holds(laws(Small("pem", PEM("1", 4, **SMALL), Fraction(0))), bound)
