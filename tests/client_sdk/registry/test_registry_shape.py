"""A metric of numbers may declare what answers may assume of how they are spread."""

from __future__ import annotations

import pytest

from client_sdk.core.errors import RegistryError
from client_sdk.registry import Registry
from client_sdk.registry.metric import ANY, GRID, SHAPES
from tests.support.device.registries import CATEGORY, KEY_VALUE, NUMBER, file_with


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_read_and_is_no_part_of_the_digest(shape: str) -> None:
    """Law: it changes answers, and nothing of what a report means."""
    plain = Registry.from_text(file_with(NUMBER)).metric("m")
    found = Registry.from_text(file_with(NUMBER, shape=f'"{shape}"')).metric("m")

    assert (found.shape, found.digest) == (shape, plain.digest)


@pytest.mark.parametrize(
    ("kind", "low", "step", "shape"),
    [
        ("number", "0", "1", ANY),
        ("duration", "0", "1", ANY),
        ("count", "0", "1", GRID),
        ("count", "0", "0.5", GRID),
        ("count", "0", "2", ANY),
        ("count", "0.5", "1", ANY),
    ],
)
def test_nothing_is_assumed_but_of_counts_whose_grid_has_all_whole_numbers(
    kind: str, low: str, step: str, shape: str
) -> None:
    """A count of 37 is not on a grid of tens."""
    fields = {**NUMBER, "type": f'"{kind}"', "min": low, "max": "20" if low == "0" else "20.5"}

    assert Registry.from_text(file_with(fields, step=step)).metric("m").shape == shape


@pytest.mark.parametrize("shape", ['"bell"', "1", "[]"])
def test_another_shape_is_a_problem(shape: str) -> None:
    with pytest.raises(RegistryError, match=r"metrics\.m\.shape: must be one of any, grid, smooth"):
        Registry.from_text(file_with(NUMBER, shape=shape))


@pytest.mark.parametrize("fields", [CATEGORY, KEY_VALUE], ids=["items", "keys"])
def test_a_shape_is_for_numbers(fields: dict[str, str]) -> None:
    with pytest.raises(RegistryError, match=r"metrics\.m\.shape: is not a known key"):
        Registry.from_text(file_with(fields, shape='"smooth"'))
