"""docs/evidence/accuracy.md and its tables hold what the commands print.

What is drawn anew by every run is held to its shape, and to the formulas that it was measured
against.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.accuracy.accuracy import DOMAIN_SIZES, EPSILONS, heading, predicted
from benchmarks.accuracy.coverage import HIGH, LOW, SETTINGS, SHARES, oracles
from benchmarks.speed.speed import DECODES, RANDOMIZE, TALLIES
from client_sdk.mechanisms import MeanMechanism, load, names

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
    rows = [row for row in cells_of("coverage") if len(row) == 1 + len(SETTINGS) and ": " in row[1]]
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
