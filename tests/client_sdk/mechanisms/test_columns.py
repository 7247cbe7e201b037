"""Whole columns: vectorised equals generic, tallies add, and bad tallies are refused."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any, Final, cast

import numpy as np
import pytest

from client_sdk.core.errors import InvalidTallyError
from client_sdk.mechanisms import FrequencyOracle, Mechanism, SetMechanism, starts_of
from client_sdk.mechanisms.composite.padding_sampling import PaddingSampling
from client_sdk.mechanisms.composite.privset import PrivSet
from client_sdk.mechanisms.composite.sampled_attribute import SampledAttribute
from client_sdk.mechanisms.composite.sampled_item import SampledItem
from client_sdk.mechanisms.deployed.dbitflip import DBitFlip
from client_sdk.mechanisms.deployed.hcms import HCMS
from client_sdk.mechanisms.deployed.rappor import RAPPOR
from client_sdk.mechanisms.items.block_design import BlockDesign
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.pgr import PGR
from client_sdk.mechanisms.numbers._sums import SQUARE_BITS, SumReports
from client_sdk.mechanisms.numbers.codebook import Codebook
from client_sdk.mechanisms.numbers.sampled_number import SampledNumber
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import build, cases, every_case, is_pure, values_of
from tests.support.loops import in_turn, per_mechanism

every_oracle_case = per_mechanism("name,case", cases, is_pure)


def column(mechanism: Mechanism[Any], case: dict[str, Any], n: int, seed: str) -> list[bytes]:
    """Return *n* honest payloads of the values of a case."""
    randomness = SeededRandomness(seed.encode())
    values = values_of(mechanism, case)
    return [mechanism.randomize(values[i % len(values)], randomness) for i in range(n)]


def mixed(mechanism: Mechanism[Any], case: dict[str, Any], n: int) -> list[bytes]:
    """Return honest, listed bad and random payloads in random order."""
    bad = [bytes.fromhex(entry["payload"]) for entry in case["bad"]]
    dice = random.Random(n)
    noise = [dice.randbytes(mechanism.payload_size) for _ in range(n)]
    rows = column(mechanism, case, n, "mixed") + bad + noise
    dice.shuffle(rows)
    return rows


def without_reason(mechanism: Mechanism[Any]) -> Mechanism[Any]:
    """Return *mechanism*, unable to look at a report alone."""

    class Blind(type(mechanism)):  # type: ignore[misc]  # whatever class it is
        def reason(self, payload: bytes) -> str | None:
            raise AssertionError("a report was looked at alone")

    blind: Mechanism[Any] = object.__new__(Blind)
    blind.__dict__.update(mechanism.__dict__)
    return blind


@every_case()
@in_turn("n", [0, 3, 40])
def test_check_keeps_the_good_in_order_and_counts_the_bad_by_reason(
    name: str, case: dict[str, Any], n: int
) -> None:
    """One by one and by numpy, which looks at no report of a large column alone.

    Otherwise a column of invalid ones would cost a hundred times an honest one.
    """
    mechanism = build(name, case)
    rows = mixed(mechanism, case, n)
    reasons = [mechanism.reason(row) for row in rows]

    one_by_one = mechanism.check(b"".join(rows))
    whole = (without_reason(mechanism) if n == 40 else mechanism).check(b"".join(rows), np)

    good = b"".join(row for row, reason in zip(rows, reasons, strict=True) if reason is None)
    assert one_by_one == whole == (good, Counter(filter(None, reasons)))


@every_oracle_case
def test_the_tally_gives_the_sum_of_supports(name: str, case: dict[str, Any]) -> None:
    oracle = cast("FrequencyOracle", build(name, case))
    rows = column(oracle, case, 300, "supports")  # more than one block of any vectorised tally
    supported = Counter(item for row in rows for item in set(oracle.supports(row)))

    tally = oracle.tally(b"".join(rows), np)

    counts = oracle.support_counts(tally, len(rows), np)
    assert tally.dtype == np.int64
    assert counts.tolist() == [supported[item] for item in range(oracle.domain_size)]


# Mechanisms whose tally changes its way with reports, items or bits; and how many reports it takes.
FOLDED: Final[list[tuple[Any, int]]] = [
    *((OLH(epsilon, 10), 20_000) for epsilon in ("1.5", "9", "16")),
    *((BlockDesign(*settings), 400) for settings in (("1", 10), ("1", 700), ("9", 63_460))),
    *((PrivSet("1", d, pad=pad), 400) for d, pad in ((2, 1), (40, 8), (300, 32))),
    (PrivSet("1", 70_000, pad=3), 80),
    *((PaddingSampling("1", d, pad=3, unary=u), 400) for d in (5, 300) for u in (0, 1)),
]


@pytest.mark.parametrize(("mechanism", "most"), FOLDED, ids=lambda m: str(getattr(m, "name", m)))
@in_turn("few", [5, 9, 10, 11, 64, 65])
def test_few_and_many_reports_are_tallied_as_their_supports(
    mechanism: Any, most: int, few: int
) -> None:
    """A few as they support items, many as they are tallied by few."""
    randomness = SeededRandomness(b"folded")
    items = (i * 7 % mechanism.domain_size for i in range(most))
    values = [frozenset({i}) if isinstance(mechanism, SetMechanism) else i for i in items]
    rows = [mechanism.randomize(value, randomness) for value in values]
    supported = Counter(item for row in rows[:5] for item in mechanism.supports(row))

    parts = (b"".join(rows[start : start + few]) for start in range(0, most, few))
    tallies = [mechanism.tally(part, np) for part in parts]
    first = mechanism.tally(b"".join(rows[:5]), np)
    whole = mechanism.tally(b"".join(rows), np)

    assert whole.dtype == np.int64
    assert first.tolist() == [supported[item] for item in range(mechanism.domain_size)]
    assert whole.tolist() == sum(tallies).tolist()


@every_case(SumReports)
def test_the_tally_holds_the_exact_sum_and_sum_of_squares(name: str, case: dict[str, Any]) -> None:
    mechanism = cast("SumReports", build(name, case))
    rows = column(mechanism, case, 200, "squares")
    positions = [mechanism.decode(row) / mechanism.unit for row in rows]

    total, low, high = mechanism.tally(b"".join(rows), np).tolist()

    assert total == sum(positions)
    assert (high << SQUARE_BITS) + low == sum(x * x for x in positions)


@every_case()
def test_tallies_add_for_any_split_and_order(name: str, case: dict[str, Any]) -> None:
    mechanism = build(name, case)
    n = 90 if mechanism.tally_size < 100_000 else 6  # so wide a report costs a quarter of a second
    rows = column(mechanism, case, n, "merge")
    whole = mechanism.tally(b"".join(rows), np)
    dice = random.Random(7)

    for cut in (0, 1, n // 3, n - 1, n):
        dice.shuffle(rows)
        a, b = (mechanism.tally(b"".join(part), np) for part in (rows[:cut], rows[cut:]))
        assert (a + b).tolist() == whole.tolist() == (b + a).tolist()


@every_case()
def test_the_tally_of_no_reports_is_zero_and_of_fixed_size(name: str, case: dict[str, Any]) -> None:
    mechanism = build(name, case)

    tally = mechanism.tally(b"", np)

    assert tally.dtype == np.int64
    assert tally.tolist() == [0] * mechanism.tally_size


@every_case()
def test_debias_refuses_a_tally_of_another_shape_or_kind(name: str, case: dict[str, Any]) -> None:
    mechanism = build(name, case)
    size = mechanism.tally_size
    wrong = [np.zeros(size - 1, int), np.zeros(size + 1, int), np.zeros((1, size), int), []]

    for tally in [*wrong, np.zeros(size, float), np.zeros(size, bool)]:
        with pytest.raises(InvalidTallyError, match=f"tally: must be {size} integers"):
            mechanism.debias(tally, 1, np)
    with pytest.raises(InvalidTallyError):  # not wrapped round to small ones
        mechanism.debias(np.full(size, 1 << 63, dtype=np.uint64), 1, np)


@every_case()
@in_turn("n", [-1, True, 1.0, (1 << 31) + 1])
def test_debias_refuses_an_impossible_number_of_reports(
    name: str, case: dict[str, Any], n: int
) -> None:
    mechanism = build(name, case)

    with pytest.raises(InvalidTallyError, match="n: must be an integer"):
        mechanism.debias(np.zeros(mechanism.tally_size, dtype=np.int64), n, np)


def refuses_in_any_cell(mechanism: Mechanism[Any], case: dict[str, Any], *entries: int) -> None:
    """Hold *mechanism* to refuse each of *entries* in a tally of 10 honest reports."""
    tally = mechanism.tally(b"".join(column(mechanism, case, 10, "honest")), np)
    for place, entry in product((0, tally.size // 2, -1), entries):
        wrong = tally.copy()
        wrong[place] = entry

        with pytest.raises(InvalidTallyError):
            mechanism.debias(wrong, 10, np)


@per_mechanism(
    "name,case", cases, lambda mechanism: not issubclass(mechanism, SumReports | Codebook)
)
def test_an_entry_that_the_reports_cannot_give_is_refused_in_any_cell(
    name: str, case: dict[str, Any]
) -> None:
    """No cell that counts reports can exceed their number, wherever it stands."""
    negative = -11 if name == "hcms" else -1  # whose cells are sums of signs
    entries = (11, 1 << 40, (1 << 63) - 1, negative, -(1 << 63))

    refuses_in_any_cell(build(name, case), case, *entries)


@every_case(SumReports)
def test_sums_that_the_reports_cannot_have_are_refused_in_any_cell(
    name: str, case: dict[str, Any]
) -> None:
    """A sum must fit its squares, and both halves of the squares the number of reports."""
    refuses_in_any_cell(build(name, case), case, 1 << 62, (1 << 63) - 1, -(1 << 63))


@every_case()
def test_debias_leaves_the_tally_as_it_was(name: str, case: dict[str, Any]) -> None:
    mechanism = build(name, case)
    tally = mechanism.tally(b"".join(column(mechanism, case, 20, "kept")), np)
    before = tally.copy()

    mechanism.debias(tally, 20, np)

    assert tally.tolist() == before.tolist()


@every_case(SumReports)
def test_debias_refuses_squares_of_reports_that_do_not_exist(
    name: str, case: dict[str, Any]
) -> None:
    mechanism = build(name, case)

    with pytest.raises(InvalidTallyError, match="squares"):
        mechanism.debias(np.array([0, 5, 0]), 0, np)


RAPPOR_COHORTS: Final = [10, *[0] * 17]  # reports and bits of two cohorts
RECORDS: Final = SampledAttribute("1", 6, starts=starts_of((2, 4)))
SUBSETS: Final = SampledAttribute("0.1", 10, starts=starts_of((2, 8)))  # of 4 of 8 items


def altered(tally: list[int], place: int, entry: int) -> list[int]:
    """Return a copy of *tally* with another *entry*."""
    return [*tally[:place], entry, *tally[place + 1 :]]


@pytest.mark.parametrize(
    ("mechanism", "tally", "n", "rule"),
    [
        (GRR("1", 2), [4, 0], 3, "every entry must be between 0 and n=3"),
        *(
            (HCMS("1", 3, rows=2, columns=2), signs, 2, "signs of n=2")
            for signs in ([3, 0, 0, 0], [1, 0, 0, 0], [-2, 1, 0, 0])
        ),
        *(
            (
                RAPPOR("1", 3, bits=8, cohorts=2),
                altered(RAPPOR_COHORTS, place, entry),
                10,
                "cohorts and bits of n=10",
            )
            for place, entry in ((1, -1), (10, 1), (9, 1))
        ),
        *(
            (DBitFlip("1", 2, sampled=1), altered([5, 5, 2, 2], place, entry), 10, "")
            for place, entry in ((0, 11), (0, -1), (2, 9), (0, 3))
        ),
        (PGR("1", 13, order=3), [*[1 << 62] * 4, *[0] * 9], 0, "add up to n=0"),
        *((SampledItem("1", 2), [4, 6, 0, 0], n, "add up to n=") for n in (9, 11)),
        *((RECORDS, [7, 3, 0, 0, 0, 0], n, "") for n in (9, 11)),
        (RECORDS, [-1, 10, 1, 0, 0, 0], 10, ""),
        (SUBSETS, [1, 0, 1, 1, 1, *[0] * 5], 2, "supports of 4 items a report"),
        (SUBSETS, [1, 0, 4, *[0] * 7], 2, "supports of 4 items a report"),
    ],
)
def test_a_tally_that_no_reports_can_leave_is_refused_by_what_it_breaks(
    mechanism: Mechanism[Any], tally: list[int], n: int, rule: str
) -> None:
    with pytest.raises(InvalidTallyError, match=f"^tally: .*{rule}"):
        mechanism.debias(np.array(tally), n, np)


@pytest.mark.parametrize(
    ("mechanism", "tally", "middle"),
    [
        (SampledItem("1", 2), [4, 6, 0, 0], [5]),
        (RECORDS, [7, 3, 0, 0, 0, 0], [2.5] * 4),
        (SampledNumber("1", 3, cube=1), [10], [5, 5]),
    ],
    ids=lambda m: getattr(m, "name", ""),
)
def test_what_no_report_is_about_is_in_the_middle_and_unknown(
    mechanism: Mechanism[Any], tally: list[int], middle: list[float]
) -> None:
    """Two standard errors around it reach below none and beyond all of 10 devices."""
    cells = np.array(tally + [0] * (mechanism.tally_size - len(tally)))

    totals, variances = mechanism.debias(cells, 10, np)

    assert totals[-len(middle) :].tolist() == middle
    assert (2 * np.sqrt(variances[-len(middle) :]) > 10).all()
