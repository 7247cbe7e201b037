"""Naive Bayes on the device: what a model makes of records, and models that are refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import log
from typing import Any, Final

import pytest

from client_sdk.core.dataclass import replace
from client_sdk.core.errors import InvalidParameterError, InvalidValueError
from client_sdk.learning.model import Model
from client_sdk.learning.naive_bayes import NaiveBayes, load
from client_sdk.registry import Registry
from tests.support.device.registries import RECORD, file_with

METRIC: Final = Registry.from_text(file_with(RECORD)).metric("m")
CANARY: Final = 73_917_391
PLAN: Final = {
    "name": "plan",
    "values": ["free", "pro", "team"],
    "weights": [0.5, -1, 0],
    "low": [None, -2, -1],
    "high": [None, -0.5, 1],
    "centre": 0.25,
}
AGE: Final = {
    "name": "age",
    "values": ["below 30", "30 to 50.5", "50.5 or more"],
    "edges": [30, 50.5],
    "weights": [1, 0, -2],
    "centre": 0,
}


def model(**changes: Any) -> Model:
    parts = {"label": "left", "prior": 0.2, "slope": 0.5, "attributes": [PLAN, AGE], **changes}
    return Model.of("naive-bayes", METRIC, 20_000, parts)


def test_the_log_odds_are_those_of_the_share_and_of_each_known_attribute() -> None:
    of = load(model(), METRIC)
    start = log(0.2 / 0.8)

    assert of.log_odds({}) == pytest.approx(start)
    assert of.log_odds({"plan": "free"}) == pytest.approx(start + 0.5 * 0.25)
    assert of.log_odds({"age": 29.9, "plan": None}) == pytest.approx(start + 0.5)
    assert of.log_odds({"age": 50.5, "plan": "pro", "label": "left"}) == pytest.approx(
        start + 0.5 * (-1.25 - 2)
    )
    assert of.log_odds({"age": "below 30"}) == of.log_odds({"age": 0})
    assert of.probability({}) == pytest.approx(0.2)


def test_chances_lie_between_zero_and_one_whatever_the_weights() -> None:
    heavy = {**PLAN, "weights": [1e3, -1e3, 0], "centre": 0}
    of = load(model(attributes=[heavy], slope=1))

    assert of.probability({"plan": "free"}) == pytest.approx(1)
    assert 0 <= of.probability({"plan": "pro"}) < 1e-300


class Hostile:
    """Raises whatever is done with it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(CANARY)

    def __hash__(self) -> int:
        raise RuntimeError(CANARY)


class HostileText(str):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError(CANARY)

    def __hash__(self) -> int:
        raise RuntimeError(CANARY)

    def __str__(self) -> str:
        raise RuntimeError(CANARY)


class HostileName(HostileText):
    __hash__ = str.__hash__


class HostileNumber(float):
    def __float__(self) -> float:
        raise RuntimeError(CANARY)

    def __lt__(self, other: object) -> bool:
        raise RuntimeError(CANARY)

    def as_integer_ratio(self) -> Any:
        raise RuntimeError(CANARY)


class HostileMapping(dict[str, object]):
    def get(self, name: str, default: object = None) -> Any:
        raise RuntimeError(CANARY)


def test_numbers_of_any_size_and_kind_count_as_they_do_in_a_report() -> None:
    of = load(model(), METRIC)
    heavy, middle = of.log_odds({"age": 60}), of.log_odds({"age": 30})

    for age in (10**400, Fraction(101, 2), Decimal("1e300"), "50.5 or more"):
        assert of.log_odds({"age": age}) == heavy
    for age in (-(10**400), 29, HostileText("below 30")):
        assert of.log_odds({"age": age}) == of.log_odds({"age": 0}) != middle
    assert of.log_odds({"plan": HostileText("free")}) == of.log_odds({"plan": "free"})


def test_an_edge_is_the_decimal_that_the_registry_has() -> None:
    """A tenth is an edge, and lies in the range above it; the float 0.1 is a little more."""
    text = file_with({**RECORD, "attributes": "{ size = { edges = [0.1, 0.3] } }"})
    metric, values = (
        Registry.from_text(text).metric("m"),
        ["below 0.1", "0.1 to 0.3", "0.3 or more"],
    )
    size = {**AGE, "name": "size", "edges": [0.1, 0.3], "values": values}
    parts = {"label": "left", "prior": 0.2, "slope": 0.5, "attributes": [size]}
    of = load(Model.of("naive-bayes", metric, 20_000, parts), metric)

    for value in (Decimal("0.1"), 0.1, Fraction(1, 10), Decimal("0.3"), 0.3, Fraction(3, 10), 0.2):
        encoded: Any = metric.encode({"size": value, "label": "left"})
        place = (encoded[0] - 1) // 2
        assert of.log_odds({"size": value}) == of.log_odds({"size": values[place]})


@pytest.mark.parametrize("record", [None, 3, "plan", ["plan"], [("plan", "free")]])
def test_what_is_no_mapping_is_refused(record: Any) -> None:
    with pytest.raises(InvalidValueError, match="record: takes a mapping"):
        load(model()).probability(record)


def test_a_name_that_is_no_attribute_is_refused_and_not_taken_for_a_missing_one() -> None:
    of = load(model(attributes=[AGE], left_out=["plan"]), METRIC)

    with pytest.raises(InvalidValueError, match="takes no other names than age, plan") as caught:
        of.probability({f"agee{CANARY}": 20})

    assert str(CANARY) not in str(caught.value)
    assert of.probability({"plan": "free", "label": "left"}) == pytest.approx(0.2)


@pytest.mark.parametrize(
    "record",
    [
        {"plan": Hostile()},
        {"age": Hostile()},
        {"age": HostileNumber(3)},
        {"age": Decimal("nan")},
        {"age": Decimal("1e1000000")},
        {"age": complex(1, CANARY)},
        {"plan": HostileText(CANARY)},
        {HostileName("plan"): "free", "age": 3},
        HostileMapping(plan="free"),
        {"plan": b"free"},
        {7: "free"},
        {"plan": CANARY},
        {"plan": f"{CANARY}"},
        {"plan": True},
        {"plan": ["free"]},
        {"age": float("nan")},
        {"age": float("inf")},
        {"age": True},
        {"age": f"{CANARY}"},
        {"age": {"a": CANARY}},
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_value_that_the_model_does_not_know_is_refused_and_not_shown(record: Any) -> None:
    with pytest.raises(InvalidValueError) as caught:
        load(model()).probability(record)

    assert str(CANARY) not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"label": 1}, "label must be a text"),
        ({"attributes": {}}, "attributes a list"),
        ({"attributes": []}, "attributes must differ"),
        ({"attributes": [PLAN, PLAN]}, "attributes must differ"),
        ({"attributes": ["plan"]}, "attributes must be objects"),
        ({"attributes": [{**PLAN, "weights": [1, 2]}]}, "weights must have 3 finite numbers"),
        ({"attributes": [{**PLAN, "weights": [1, 2, "3"]}]}, "weights must have 3 finite"),
        ({"attributes": [{**PLAN, "values": ["a", "a", "b"]}]}, "values must differ"),
        ({"attributes": [{**PLAN, "centre": None}]}, "centre must have 1 finite"),
        ({"attributes": [{**AGE, "edges": [50.5, 30]}]}, "ascending"),
        ({"attributes": [{**AGE, "edges": [30]}]}, "one more than edges"),
        ({"attributes": [{**AGE, "edges": 30}]}, "edges must be"),
        ({"prior": 0}, "prior must have 1 finite numbers from"),
        ({"prior": "0.5"}, "prior must have"),
        ({"slope": -0.1}, "slope must have"),
        ({"slope": 1.1}, "slope must have"),
        ({"left_out": "plan"}, "left_out must be a list"),
        ({"left_out": [1]}, "left_out must be a list"),
    ],
)
def test_a_model_that_breaks_a_rule_is_refused(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidParameterError, match=rule):
        NaiveBayes.of(model(**changes))


def test_a_model_of_another_definition_or_kind_is_refused() -> None:
    other = Registry.from_text(file_with(RECORD, epsilon='"2"')).metric("m")

    with pytest.raises(InvalidParameterError, match="as this registry defines it"):
        load(model(), other)
    with pytest.raises(InvalidParameterError, match="as this registry defines it"):
        load(replace(model(), metric="n"), METRIC)
    with pytest.raises(InvalidParameterError, match="of kind naive-bayes"):
        load(Model.of("factors", METRIC, 1, {}))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"label": "moved"}, "label and attributes must match m"),
        ({"attributes": [AGE]}, "label and attributes must match m"),
        ({"attributes": [{**PLAN, "name": "plam"}, AGE]}, "label and attributes"),
        ({"left_out": ["colour"]}, "label and attributes"),
        ({"attributes": [{**PLAN, "values": ["free", "pro", "Team"]}, AGE]}, "edges of plan must"),
        ({"attributes": [{**PLAN, "values": ["pro", "free", "team"]}, AGE]}, "edges of plan must"),
        ({"attributes": [PLAN, {**AGE, "edges": [30, 50]}]}, "edges of age must match m"),
        ({"attributes": [PLAN, {**AGE, "edges": []}]}, "edges of age must match m"),
    ],
)
def test_a_model_whose_parts_are_not_the_metrics_is_refused(
    changes: dict[str, Any], rule: str
) -> None:
    """Law: the digest alone does not vouch for what stands beside it."""
    load(model(), METRIC)

    with pytest.raises(InvalidParameterError, match=rule):
        load(model(**changes), METRIC)
