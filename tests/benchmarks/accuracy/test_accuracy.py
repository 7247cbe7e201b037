"""Errors stay within their bars: of items, of numbers and of channels."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Final

import pytest

from benchmarks.accuracy import coverage
from benchmarks.accuracy.accuracy import (
    BAR,
    DOMAIN_SIZES,
    EPSILONS,
    LARGE_EPSILONS,
    heading,
    large_sizes,
    optimum,
    population,
    predicted,
)
from benchmarks.accuracy.coverage import HIGH, LOW, SHARES, oracles
from benchmarks.accuracy.exactness import bits_left, exceeds, met
from benchmarks.speed.speed import DECODES, RANDOMIZE, TALLIES
from client_sdk.mechanisms import Channel, MeanMechanism, load, names
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.registry.selection import MAX_AUTO_PAYLOAD

SETTINGS: Final = [
    *((epsilon, DOMAIN_SIZES) for epsilon in EPSILONS),
    *((epsilon, large_sizes(epsilon)) for epsilon in LARGE_EPSILONS),
]


@pytest.mark.parametrize(("epsilon", "sizes"), SETTINGS)
def test_auto_is_within_the_bar_of_the_optimum_and_of_the_payload_at_every_domain_size(
    epsilon: str, sizes: Sequence[int]
) -> None:
    choices = {size: predicted(epsilon, size) for size in sizes}

    assert {size: ratio for size, (_, ratio) in choices.items() if ratio > BAR} == {}
    assert min(ratio for _, ratio in choices.values()) > 1 - 1e-9
    assert all(8 * taken.payload_size <= MAX_AUTO_PAYLOAD for taken, _ in choices.values())


@pytest.mark.parametrize(
    ("epsilon", "domain_size", "stated"),
    [(1, 16, 3.186), (1, 128, 3.618), (2, 16, 0.5783), (2, 1024, 0.7217), (4, 128, 0.0675)],
)
def test_the_optimum_is_the_one_computed_by_hand(
    epsilon: float, domain_size: int, stated: float
) -> None:
    assert optimum(epsilon, domain_size) == pytest.approx(stated, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "domain_size"), [("1", 128), ("4", 1024)])
def test_randomized_response_alone_would_break_the_bar(epsilon: str, domain_size: int) -> None:
    ratio = load("grr")(epsilon, domain_size).predict(1) ** 2 / optimum(float(epsilon), domain_size)

    assert ratio > BAR


@pytest.mark.parametrize("domain_size", [2, 16, 1024])
def test_the_population_has_everybody_and_holds_common_items_first(domain_size: int) -> None:
    people = population(domain_size, 1_000)

    counts = [people.count(item) for item in range(domain_size)]
    assert len(people) == sum(counts) == 1_000
    assert counts[0] == max(counts)


class _RoundedUp(GRR):
    """Planted fault: p is one step of the grid too large, and nobody refuses it."""

    def validate(self) -> None:
        return None

    @cached_property
    def channel(self) -> Channel:
        p = super().channel.p + Fraction(1, 1 << 128)
        return Channel(p, (1 - p) / (self.domain_size - 1))


def test_no_channel_exceeds_epsilon_or_leaves_more_than_the_bar() -> None:
    """The likelihood ratio never exceeds e^ε, and at most 2^-40 nats of ε are left."""
    assert met()


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_a_threshold_rounded_up_by_one_step_exceeds(epsilon: str) -> None:
    """The check sees 2^-128, though ``spent`` is never shown above epsilon."""
    assert not exceeds(GRR(epsilon, 16))
    assert exceeds(_RoundedUp(epsilon, 16))


@pytest.mark.parametrize("bits", [0, 1, 7, 104])
def test_the_bits_left_are_the_largest_power_of_two_above(bits: int) -> None:
    """Exact powers keep their own exponent; anything more drops to the next."""
    assert bits_left(Fraction(1, 1 << bits)) == bits
    assert bits_left(Fraction(3, 1 << (bits + 2))) == bits
    assert bits_left(Fraction(5, 1 << (bits + 2))) == bits - 1


EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"
PAGE = (EVIDENCE / "accuracy.md").read_text("utf-8")
DEVIATIONS = 5.5  # standard errors; a table of 200 cells passes them with a chance below 1e-5
ONE_BIT = ("duchi", "hybrid", "one_bit_mean")  # whose intervals assume devices that agree


def text_of(name: str) -> str:
    return (EVIDENCE / "tables" / f"{name}.md").read_text("utf-8")


def cells_of(name: str) -> list[list[str]]:
    """Return the rows of all tables of a page of tables."""
    lines = [line for line in text_of(name).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def deviations(cell: str, expected: float) -> float:
    """Return how many of its own standard errors a cell ``ratio (error)`` is from *expected*."""
    ratio, error = map(float, cell.rstrip(")").split(" ("))
    return abs(ratio - expected) / error


def test_the_measured_ratios_are_within_their_noise_of_the_predicted_ones() -> None:
    """Every setting of the table was measured, and none contradicts today's formulas."""
    measured = [row for row in cells_of("accuracy") if " (" in row[-1]]

    assert text_of("accuracy").count(heading()) == 2
    assert [row[0] for row in measured] == [f"{size:,}" for size in DOMAIN_SIZES]
    for size, row in zip(DOMAIN_SIZES, measured, strict=True):
        for epsilon, cell in zip(EPSILONS, row[1:], strict=True):
            assert deviations(cell, predicted(epsilon, size)[1]) < DEVIATIONS


def test_the_errors_of_every_mechanism_are_those_stated_or_explained() -> None:
    """Every mechanism has a row; only the decoder that keeps counts above 0 errs less."""
    rows = {row[0]: row[1] for row in cells_of("variance") if " (" in row[1]}

    assert list(rows) == list(names())
    assert {name for name in rows if deviations(rows[name], 1) >= DEVIATIONS} == {"rappor"}
    assert float(rows["rappor"].split(" (")[0]) < 1


def test_the_intervals_of_items_cover_as_the_bar_says() -> None:
    """Every oracle at every setting has a cell, and no chance leaves the band."""
    columns = 1 + len(coverage.SETTINGS)
    rows = [row for row in cells_of("coverage") if len(row) == columns and ": " in row[1]]
    cells = [cell.split(": ")[1].split(", ") for row in rows for cell in row[1:]]

    assert [len(cell) for cell in cells] == [len(SHARES)] * len(oracles())
    assert all(LOW <= float(chance) / 100 <= HIGH for cell in cells for chance in cell)


def test_the_intervals_of_means_cover_as_the_bar_says_or_more_for_one_bit() -> None:
    """Devices that agree are covered at the level; others may be covered more by one bit."""
    rows = [row for row in cells_of("coverage") if len(row) == 4][1:]

    assert {row[0] for row in rows} == {n for n in names() if issubclass(load(n), MeanMechanism)}
    assert all(LOW <= float(row[2]) / 100 <= HIGH for row in rows)
    assert all(float(row[3]) / 100 >= LOW for row in rows)
    assert {row[0] for row in rows if float(row[3]) / 100 > HIGH} <= set(ONE_BIT)


def test_the_speeds_name_every_bar_and_say_which_is_missed() -> None:
    """A row that misses its bar says FAIL, and no other does."""
    rows = [row for row in cells_of("speed") if row[-1] in ("pass", "FAIL")]

    assert len(rows) == len(RANDOMIZE) + 2 * len(TALLIES) + len(DECODES)
    for _, found, bar, verdict in rows:
        least, limit = bar.startswith("≥"), float(bar.split()[1])
        number = float(found.split()[0].replace(",", ""))
        assert (verdict == "pass") == (number >= limit if least else number <= limit)
