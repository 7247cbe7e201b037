"""The keys ``aggregate`` and ``otherwise`` of a registry."""

from __future__ import annotations

import pytest

from client_sdk.core.errors import RegistryError
from client_sdk.registry import Registry
from client_sdk.registry.metric import AGGREGATES, Metric
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
        (BOOLEAN, {"otherwise": "true"}, "otherwise: needs an aggregate beside it"),
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
