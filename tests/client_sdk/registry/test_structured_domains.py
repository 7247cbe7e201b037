"""Domains of joint values: which item a value is, what an item means, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.errors import InvalidValueError
from client_sdk.registry.types.items import ItemDomain
from client_sdk.registry.types.joint import FunnelDomain, PairDomain, RetentionDomain
from client_sdk.registry.types.numbers import NumberDomain
from client_sdk.registry.types.places import GridDomain


def axis(low: int | str, high: int | str, cells: int) -> NumberDomain:
    """Return the axis of a grid."""
    ends = Fraction(low), Fraction(high)
    return NumberDomain(*ends, (ends[1] - ends[0]) / cells, "degrees")


GRID: Final = GridDomain(axis(-10, 30, 4), axis("45.5", "47.5", 2))
PAIR: Final = PairDomain(
    ("sex", "income"), ItemDomain(("female", "male")), ItemDomain(("low", "middle", "high"))
)
FUNNEL: Final = FunnelDomain(("visit", "cart", "paid"))
RETENTION: Final = RetentionDomain(("w0", "w1", "w2", "w3"))
ALL: Final = (GRID, PAIR, FUNNEL, RETENTION)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ((-10, 45.5), "0,0"),
        ([29.9, 45.6], "0,3"),
        ((-0.001, 46.5), "1,0"),
        ((0, 46.499), "0,1"),
        ((10, Decimal("46.5")), "1,2"),
        ((Fraction(59, 3), 47), "1,2"),
        ((30, 47.5), "1,3"),  # both far ends of the box are in the last cells
        ((1e308, -(10**400)), "0,3"),
        ((-180, 90), "1,0"),
        ((10, 99), "1,2"),
    ],
)
def test_a_place_is_the_cell_that_it_lies_in_or_is_nearest_to(value: object, label: str) -> None:
    """A border belongs to the cell north and east of it, exactly, whatever the type."""
    assert GRID.labels[GRID.encode(value, "m")] == label


@given(st.floats(-200, 200), st.floats(-100, 100))
def test_a_place_within_the_box_lies_within_the_corners_of_its_cell(lng: float, lat: float) -> None:
    """The cell that is counted is the cell that a map draws."""
    west, south, east, north = GRID.corners(GRID.encode((lng, lat), "m"))

    if -10 <= lng <= 30 and 45.5 <= lat <= 47.5:
        assert west <= Fraction(lng) <= east
        assert south <= Fraction(lat) <= north


def test_the_cells_of_a_grid_tile_its_box() -> None:
    """Rows go from the south, columns from the west; a centre is in its own cell."""
    rows, columns = GRID.shape
    cells = [GRID.cell(row, column) for row, column in product(range(rows), range(columns))]

    assert (GRID.shape, GRID.size) == ((2, 4), 8)
    assert cells == list(range(GRID.size))
    assert [GRID.labels[cell] for cell in cells] == ["{},{}".format(*GRID.place(c)) for c in cells]
    assert [GRID.encode(GRID.centre(cell), "m") for cell in cells] == cells
    assert GRID.corners(0)[:2] + GRID.corners(7)[2:] == GRID.box
    assert [*map(str, GRID.corners(5))] == ["0", "93/2", "10", "95/2"]


@pytest.mark.parametrize("kind", [dict, MappingProxyType])
def test_a_pair_is_the_item_of_both_its_labels(
    kind: Callable[[dict[str, str]], object],
) -> None:
    """The order in which a mapping holds its parts says nothing."""
    item = PAIR.encode(kind({"income": "high", "sex": "male"}), "m")

    assert (item, PAIR.labels[item]) == (5, "male | high")
    assert item == PAIR.encode({"sex": "male", "income": "high"}, "m")


def test_the_items_of_a_pair_go_by_the_first_part_then_the_second() -> None:
    """A table of rows and columns is read off without looking at a label."""
    items = [PAIR.cell(first, second) for first, second in product(range(2), range(3))]

    assert PAIR.parts == {"sex": ("female", "male"), "income": ("low", "middle", "high")}
    assert list(PAIR.parts) == ["sex", "income"]
    assert items == list(range(PAIR.size))
    assert [PAIR.cell(*PAIR.place(item)) for item in items] == items
    assert PAIR.labels == tuple(f"{a} | {b}" for a, b in product(*PAIR.parts.values()))


def test_the_item_of_a_funnel_is_the_number_of_steps_taken() -> None:
    """None, or its label, stands for no step at all."""
    values = (None, "none", "visit", "cart", "paid")

    assert [FUNNEL.encode(value, "m") for value in values] == [0, 0, 1, 2, 3]
    assert FUNNEL.labels == ("none", *FUNNEL.steps)


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_the_item_of_a_retention_is_the_bitmap_of_its_periods(
    kind: Callable[[list[str]], object],
) -> None:
    """The first period is the first bit of the label, however a value is ordered."""
    values: list[list[str]] = [[], ["w3"], ["w0"], ["w3", "w0", "w2", "w0"]]
    items = [RETENTION.encode(kind(value), "m") for value in values]

    assert [RETENTION.labels[item] for item in items] == ["0000", "0001", "1000", "1011"]
    assert [RETENTION.bits(item) for item in items][3] == (1, 0, 1, 1)


@pytest.mark.parametrize("periods", range(2, 9))
def test_every_subset_of_the_periods_has_an_item_of_its_own(periods: int) -> None:
    """2 to 8 periods have 4 to 256 items, and bits and periods agree."""
    domain = RetentionDomain(tuple(f"p{i}" for i in range(periods)))
    held = [
        [name for name, bit in zip(domain.periods, domain.bits(item), strict=True) if bit]
        for item in range(domain.size)
    ]

    assert [domain.encode(names, "m") for names in held] == list(range(2**periods))


@pytest.mark.parametrize(
    ("domain", "value", "error"),
    [
        (GRID, "x", "m: takes a pair of longitude and latitude, in degrees"),
        (GRID, (float("nan"), 47), "m, longitude: takes a finite number"),
        (GRID, (8, "47"), "m, latitude: takes a number"),
        (PAIR, 1, "m: takes a mapping of sex and income to a registered value of each"),
        (PAIR, {"sex": "male"}, "m: takes a mapping of sex and income to a registered value of"),
        (PAIR, {"sex": "x", "income": "low"}, "m, sex: takes one of its 2 registered values"),
        (PAIR, {"sex": "male", "income": 1}, "m, income: takes one of its 3 registered values"),
        (FUNNEL, 2, "m: takes one of its 4 registered values"),
        (RETENTION, ["w4"], "m: takes a list or set of its 4 registered values"),
    ],
)
def test_an_error_names_the_part_that_is_wrong(
    domain: ItemDomain, value: object, error: str
) -> None:
    """A developer finds the fault without seeing the value."""
    with pytest.raises(InvalidValueError) as caught:
        domain.encode(value, "m")

    assert str(caught.value).startswith(error)


@pytest.mark.parametrize("domain", ALL, ids=lambda domain: type(domain).__name__)
def test_every_item_has_a_label_and_words_of_its_own(domain: ItemDomain) -> None:
    """No two values look alike to an analyst, or to the person who is shown them."""
    told = {domain.in_words(item) for item in range(domain.size)}

    assert len(domain.labels) == len(set(domain.labels)) == len(told) == domain.size
    assert [domain.index_of(label, "m") for label in domain.labels] == list(range(domain.size))
    assert [domain.as_given(item) for item in range(domain.size)] == list(domain.labels)


@pytest.mark.parametrize(
    ("domain", "item", "words"),
    [
        (GRID, 0, "from 0° to 10° west, 45.5° to 46.5° north"),
        (GRID, 5, "from 0° to 10° east, 46.5° to 47.5° north"),
        (GridDomain(axis(-3, 5, 1), axis(-2, 2, 2)), 0, "from 3° west to 5° east, 0° to 2° south"),
        (PAIR, 5, "sex: male, income: high"),
        (FUNNEL, 0, "no step"),
        (FUNNEL, 2, "as far as cart"),
        (RETENTION, 0, "never active"),
        (RETENTION, 11, "active in w0 and w2 and w3"),
    ],
)
def test_an_item_is_told_in_plain_words(domain: ItemDomain, item: int, words: str) -> None:
    """People are shown no row numbers, no signs of coordinates and no bitmaps."""
    assert domain.in_words(item) == words


@pytest.mark.parametrize(
    ("domain", "form"),
    [
        (
            GRID,
            "a place, as one of 8 areas, each about 770 km wide and 110 km high, of the map from"
            " 10° west to 30° east, 45.5° to 47.5° north",
        ),
        (
            PAIR,
            "two things together, sex (one of: female, male) and income (one of: low, middle,"
            " high)",
        ),
        (FUNNEL, "the furthest step that was reached, if any, of: visit, cart, paid"),
        (RETENTION, "in which of these periods there was activity, if any: w0, w1, w2, w3"),
    ],
)
def test_the_form_of_an_answer_is_told_in_plain_words(domain: ItemDomain, form: str) -> None:
    """A place says how large its areas are, which is what a person weighs."""
    assert domain.form == form


def test_domains_differ_by_what_their_items_mean() -> None:
    """Equal labels do not make equal domains: a row and a column mean nothing without the box."""
    grid = GridDomain(axis(-10, 30, 4), axis("45.5", "48.5", 2))
    pair = PairDomain(("sex", "wage"), PAIR.first, PAIR.second)

    assert (grid.labels, pair.labels) == (GRID.labels, PAIR.labels)
    assert grid != GRID
    assert pair != PAIR
    assert hash(cast("Any", GRID)) == hash(GridDomain(GRID.longitude, GRID.latitude))
