"""The keys ``aggregate``, ``otherwise``, ``need`` and ``shape`` of a registry."""

from __future__ import annotations

from fractions import Fraction

import pytest

from client_sdk.core.errors import RegistryError
from client_sdk.registry import Registry
from client_sdk.registry.keys import AGGREGATES, ANY, GRID, SHAPES
from client_sdk.registry.metric import Metric
from tests.support.device.registries import BOOLEAN, CATEGORY, KEY_VALUE, NUMBER, SET, file_with

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


def metric(fields: dict[str, str], **changes: str | None) -> Metric:
    return Registry.from_text(file_with(fields, **changes)).metric("m")


@pytest.mark.parametrize("kind", FITTING)
@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_fits_some_types_and_no_other(kind: str, name: str) -> None:
    """Law: an unknown combination is an error that names those that fit."""
    fields, fitting = FITTING[kind]

    if name in fitting:
        assert metric(fields, aggregate=f'"{name}"').aggregate == name
    else:
        with pytest.raises(RegistryError, match=r"^metrics\.m\.aggregate: must be one of .*last"):
            metric(fields, aggregate=f'"{name}"')


@pytest.mark.parametrize("kind", OTHERWISE)
def test_what_is_otherwise_reported_is_a_value_of_the_metric(kind: str) -> None:
    """Law: it is encoded as a recorded value would be, and part of the meaning of a report."""
    fields, values = FITTING[kind][0], OTHERWISE[kind]
    digests = {metric(fields, aggregate='"last"', otherwise=text).digest for text in values}

    assert len(digests | {metric(fields).digest, metric(fields, aggregate='"last"').digest}) == 4


@pytest.mark.parametrize(
    ("fields", "changes", "problem"),
    [
        (BOOLEAN, {"otherwise": "true"}, "otherwise: needs an aggregate"),
        (BOOLEAN, {"aggregate": '"any"', "otherwise": '"yes"'}, "otherwise: takes True or False"),
        (CATEGORY, {"aggregate": '"last"', "otherwise": '"none"'}, "otherwise: takes one of its 3"),
        (NUMBER, {"aggregate": '"sum"', "otherwise": "11"}, "otherwise: must be from min to max"),
        (NUMBER, {"aggregate": '"sum"', "otherwise": "nan"}, "otherwise: takes a finite number"),
        (NUMBER, {"aggregate": '"sum"', "otherwise": "1979-05-27"}, "otherwise: takes a number"),
        (
            KEY_VALUE,
            {"aggregate": '"last"', "otherwise": "{ video = 31 }"},
            "otherwise: must be from min to max",
        ),
        (BOOLEAN, {"aggregate": "7"}, "aggregate: must be one of last, any"),
        (BOOLEAN, {"aggregate": '["any"]'}, "aggregate: must be one of last, any"),
        (BOOLEAN, {"aggregate": '"any"', "every": '"once"'}, "aggregate: needs an epoch that ends"),
        (
            KEY_VALUE,
            {
                "aggregate": '"last"',
                "values": "[" + ", ".join(f'"k{i}"' for i in range(456)) + "]",
            },
            "aggregate: takes a domain that fits 4096 bytes, not 4104",
        ),
    ],
)
def test_what_does_not_fit_is_a_problem(
    fields: dict[str, str], changes: dict[str, str], problem: str
) -> None:
    with pytest.raises(RegistryError) as caught:
        metric(fields, **changes)

    assert caught.value.problems[0].startswith(f"metrics.m.{problem}")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"aggregate": '"sum"'}, "the sum"),
        ({"aggregate": '"max"', "otherwise": "1.5"}, "the largest, or else 1.5 minutes"),
    ],
)
def test_an_aggregation_is_told_in_words(changes: dict[str, str], words: str | None) -> None:
    assert metric(NUMBER, **changes).aggregation == words


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
    assert Registry.from_text(file_with(fields, need=need)).metric("m").need == exact


def test_a_metric_without_a_need_has_none() -> None:
    assert Registry.from_text(file_with(CATEGORY)).metric("m").need is None


def test_a_need_is_no_part_of_the_digest() -> None:
    """Law: it changes what is shown, and nothing of what a report means."""
    plain, needy = (
        Registry.from_text(file_with(CATEGORY, need=need)).metric("m") for need in (None, "0.02")
    )

    assert plain.digest == needy.digest


@pytest.mark.parametrize(
    ("fields", "need", "rule"),
    [
        (CATEGORY, "0", "must be above 0 and at most 1"),
        (CATEGORY, "-0.1", "must be above 0 and at most 1"),
        (CATEGORY, "5", "must be above 0 and at most 1"),
        (NUMBER, "11", "must be above 0 and at most 10.5"),
        (CATEGORY, '"0.02"', "must be a finite number"),
        (CATEGORY, "nan", "must be a finite number"),
    ],
)
def test_a_need_that_no_interval_can_have_is_refused(
    fields: dict[str, str], need: str, rule: str
) -> None:
    with pytest.raises(RegistryError) as refused:
        Registry.from_text(file_with(fields, need=need))

    (problem,) = refused.value.problems
    assert problem.startswith(f"metrics.m.need: {rule}; found ")


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
