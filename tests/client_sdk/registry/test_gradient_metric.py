"""Metrics that learn: what a registry must say, what a row becomes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from client_sdk.core.errors import InvalidValueError, RegistryError
from client_sdk.registry import Registry
from client_sdk.registry.types.gradient import GradientDomain, learning_of
from tests.support.device.learning import registry, registry_text


def learned(**changes: Any) -> GradientDomain:
    domain = learning_of(registry(**changes).metric("ranker").domain)
    assert domain is not None
    return domain


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"every": "7d"}, "every: must be once beside learning"),
        ({"rounds": 1}, "rounds: must be an integer from 2 to 1000"),
        ({"rounds": 1_001}, "rounds: must be an integer from 2 to 1000"),
        ({"devices": 99}, "devices: must be an integer of at least 100"),
        ({"kind": "forest"}, "kind: must be one of logistic, linear"),
        ({"key": "ab"}, "key: must be a public key"),
        ({"more": "radius = 0"}, "radius: must be above 0"),
        ({"more": "clip = 1"}, "learning.clip: is not a known key"),
        ({"more": "label = { min = 0, max = 1 }"}, "label: is for kind=linear"),
        ({"kind": "linear", "more": "radius = 1"}, "label: must be a table with min and max"),
        ({"features": ""}, "features: must give 1 to 4095 coefficients"),
        ({"features": "age = { min = 3, max = 3 }"}, "age: must have a min below its max"),
        ({"features": "age = { min = 3 }"}, "age: must have a min below its max"),
        ({"features": "age = { min = 3, max = 4, zero = 5 }"}, "age.zero: must be from min to max"),
        ({"features": "age = 3"}, "features: must be a table of features"),
        ({"features": 'plan = { values = ["a", "a"] }'}, "plan.values: must be a list"),
        ({"features": '"a=b" = {min=0,max=1}\na = {values=["b", "c"]}'}, "each of another name"),
    ],
)
def test_what_cannot_be_learned_is_refused_by_name(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(RegistryError) as caught:
        registry(**changes)

    assert rule in str(caught.value)


def test_what_learning_settles_must_not_stand_beside_it() -> None:
    text = registry_text().replace('type = "vector"', 'type = "vector"\nlength = 3\nbound = 2')

    with pytest.raises(RegistryError, match="must be absent beside learning") as caught:
        Registry.from_text(text)
    assert len(caught.value.problems) == 2


def test_the_dimension_of_rounds_is_nobody_elses() -> None:
    text = registry_text().replace(
        "[metrics.ranker]", '[segments]\nround = ["1", "2"]\n[metrics.ranker]'
    )

    with pytest.raises(RegistryError, match=r"segments\.round: is what a metric with learning"):
        Registry.from_text(text)


@pytest.mark.parametrize(
    "row",
    [{}, {"age": 1e308}, {"age": -5, "plan": "paid"}, {"plan": "none of them"}, {"age": 40.0}],
)
def test_a_row_is_one_long_whatever_a_device_holds(row: dict[str, object]) -> None:
    numbers = learned().row(row)

    assert sum(x * x for x in numbers) == pytest.approx(1)
    assert numbers[0] > 0


def test_a_row_is_made_by_the_bounds_of_the_registry_alone() -> None:
    """A number beyond its end counts as the end, so no row makes another one smaller."""
    domain = learned()

    assert domain.row({"age": 1_000}) == domain.row({"age": 60})
    assert domain.row({"age": 60}) == pytest.approx([0.5**0.5, 0.5**0.5, 0, 0])
    assert domain.row({"age": 30, "plan": "paid"}) == pytest.approx(
        [x / 1.5 for x in (1, -0.5, 0, 1)]
    )


@pytest.mark.parametrize(
    "value",
    [
        [0.0, 0, 0, 0], None, {"gradient": [0, 0, 0, 0]}, {"round": 0, "gradient": [0] * 4},
        {"round": 5, "gradient": [0] * 4}, {"round": True, "gradient": [0] * 4},
        {"round": "1", "gradient": [0] * 4}, {"round": 1, "gradient": [0] * 3},
        {"round": 1, "gradient": [float("nan")] * 4}, {"round": 1, "gradient": [0] * 4, "x": 1},
    ],
    ids=repr,
)  # fmt: skip
def test_only_a_gradient_with_its_round_is_a_value(value: object) -> None:
    with pytest.raises(InvalidValueError):
        registry().metric("ranker").encode(value)


@pytest.mark.parametrize(("label", "target"), [(0, 0.0), (1, 1.0), (False, 0.0), (True, 1.0)])
def test_labels_that_are_truths_are_taken(label: object, target: float) -> None:
    assert learned().target(label) == target
