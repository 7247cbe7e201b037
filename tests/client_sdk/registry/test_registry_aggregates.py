"""The keys ``aggregate``, ``otherwise``, ``need`` and ``shape`` of a registry."""

from __future__ import annotations

from fractions import Fraction

import pytest

from client_sdk.core.errors import RegistryError
from client_sdk.registry.keys import AGGREGATES, ANY, GRID, SHAPES
from tests.support.device.registries import BOOLEAN, CATEGORY, KEY_VALUE, NUMBER, SET
from tests.support.enumeration.populations import metric_of

FITTING = {
    "boolean": (BOOLEAN, {"last", "any"}),
    "category": (CATEGORY, {"last", "most_common"}),
    "set": (SET, {"last"}),
    "number": (NUMBER, {"sum", "max", "last"}),
    "key_value": (KEY_VALUE, {"last"}),
}
OTHERWISE = {
    "boolean": ("false", "true"),
    "category": ('"free"', '"team"'),
    "set": ("[]", '["a", "c"]'),
    "number": ("0", "10.5"),
    "key_value": ("{}", "{ video = -10, chess = 1.5 }"),
}


@pytest.mark.parametrize("kind", FITTING)
@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_fits_some_types_and_no_other(kind: str, name: str) -> None:
    """Law: an unknown combination is an error that names those that fit."""
    fields, fitting = FITTING[kind]

    if name in fitting:
        assert metric_of(fields, aggregate=f'"{name}"').aggregate == name
    else:
        with pytest.raises(RegistryError, match=r"^metrics\.m\.aggregate: must be one of .*last"):
            metric_of(fields, aggregate=f'"{name}"')


@pytest.mark.parametrize("kind", OTHERWISE)
def test_what_is_otherwise_reported_is_a_value_of_the_metric(kind: str) -> None:
    """Law: it is encoded as a recorded value would be, and part of the meaning of a report."""
    fields, values = FITTING[kind][0], OTHERWISE[kind]
    digests = {metric_of(fields, aggregate='"last"', otherwise=text).digest for text in values}

    assert (
        len(digests | {metric_of(fields).digest, metric_of(fields, aggregate='"last"').digest}) == 4
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"aggregate": '"sum"'}, "the sum"),
        ({"aggregate": '"max"', "otherwise": "1.5"}, "the largest, or else 1.5 minutes"),
    ],
)
def test_an_aggregation_is_told_in_words(changes: dict[str, str], words: str | None) -> None:
    assert metric_of(NUMBER, **changes).aggregation == words


@pytest.mark.parametrize(
    ("fields", "need", "exact"),
    [
        (CATEGORY, "0.02", Fraction(1, 50)),
        (CATEGORY, "1", Fraction(1)),
        (NUMBER, "2.5", Fraction(5, 2)),
        (NUMBER, "10.5", Fraction(21, 2)),
        (KEY_VALUE, "0.1", Fraction(1, 10)),
    ],
)
def test_a_need_is_read_exactly(fields: dict[str, str], need: str, exact: Fraction) -> None:
    """Law: a share, or a part of the range in the metric's unit."""
    assert metric_of(fields, need=need).need == exact


def test_a_metric_without_a_need_has_none() -> None:
    assert metric_of(CATEGORY).need is None


def test_a_need_is_no_part_of_the_digest() -> None:
    """Law: it changes what is shown, and nothing of what a report means."""
    plain, needy = (metric_of(CATEGORY, need=need) for need in (None, "0.02"))

    assert plain.digest == needy.digest


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_read_and_is_no_part_of_the_digest(shape: str) -> None:
    """Law: it changes answers, and nothing of what a report means."""
    plain = metric_of(NUMBER)
    found = metric_of(NUMBER, shape=f'"{shape}"')

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

    assert metric_of(fields, step=step).shape == shape
