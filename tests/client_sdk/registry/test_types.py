"""Every type of values: what a registry refuses of it, what is in its digest, what it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

from client_sdk.core.errors import InvalidValueError, RegistryError
from client_sdk.core.stats import Reason
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.joint import MAX_JOINT
from client_sdk.registry.types.vector import MAX_TASTE
from tests.support.device.device import make_client
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    FUNNEL,
    KEY_VALUE,
    LOCATION,
    NUMBER,
    PAIR,
    RECORD,
    RETENTION,
    SET,
    STRING,
    TASTE,
    VECTOR,
    file_with,
)

CANARY: Final = 73_917_391
SECRET: Final = f"secret-{CANARY}"
GOOD: Final = {"plan": "pro", "age": 41, "label": "left"}


class Endless(list[str]):
    """A list that fails the test if it is read on after what is no period."""

    def __iter__(self) -> Iterator[str]:
        yield from ("week 0", SECRET)
        raise AssertionError("read on")


class Taken(NamedTuple):
    """What a type is declared by, what it takes, and what it refuses."""

    fields: dict[str, str]
    good: Any
    refused: list[Any]


TYPES: Final = {
    "boolean": Taken(BOOLEAN, True, [0, 1, 1.0, "true", None, [], Fraction(1)]),
    "category": Taken(
        CATEGORY, "pro", ["Free", "", 1, True, None, b"free", ["free"], float("nan"), SECRET]
    ),
    "set": Taken(
        SET,
        ["a", "c"],
        [
            *("a", "", "1", None, 0, True, b"a", {"a": 1}, iter(["a"]), object()),
            *(["A"], [1], ["a", None], ["a", "bird"], [["a"]], [b"a"], [float("nan")]),
        ],
    ),
    "number": Taken(
        NUMBER,
        2.5,
        [
            *(
                float("nan"),
                float("inf"),
                -float("inf"),
                Decimal("NaN"),
                Decimal("sNaN"),
                True,
                False,
            ),
            *(Decimal("Infinity"), "1", b"1", None, [], 1j, Decimal("1e999999999")),
            *(Decimal("-1e-999999999"), Decimal("0e999999999")),
        ],
    ),
    "location": Taken(
        LOCATION,
        (8.5, 47.3),
        [
            *(None, 8, "8,47", (), (8,), (8, 47, 0), {"lng": 8, "lat": 47}, {8, 47}, iter((8, 47))),
            *((float("nan"), 47), (8, float("nan")), (float("inf"), 47), (8, -float("inf"))),
            *((True, 47), (8, "47"), (8, None), ([8], [47]), (1j, 47), (Decimal("sNaN"), 47)),
            *((Decimal("1e999999999"), 47), "8", b"87", range(2_000_000), [47.0] * 1_000_000),
        ],
    ),
    "pair": Taken(
        PAIR,
        {"sex": "male", "income": "low"},
        [
            *(None, "male", ("male", "low"), [("sex", "male"), ("income", "low")], {"male", "low"}),
            *({}, {"sex": "male"}, {"income": "low"}, {"sex": "male", "age": "low"}),
            *({"sex": "male", "income": "low", "age": "old"}, {"sex": "low", "income": "male"}),
            *({"sex": "Male", "income": "low"}, {"sex": None, "income": "low"}, "male | low"),
            *({"sex": ["male"], "income": "low"}, {"sex": 1, "income": 0}, {0: "male", 1: "low"}),
            {str(i): "male" for i in range(100_000)},
        ],
    ),
    "funnel": Taken(
        FUNNEL,
        None,
        ["Visit", "", 0, 1, True, ["visit"], ("visit",), b"visit", float("nan"), object()],
    ),
    "retention": Taken(
        RETENTION,
        ["week 0", "week 2"],
        [
            *(
                None,
                "week 0",
                "1011",
                11,
                True,
                {"week 0": True},
                iter(["week 0"]),
                ["week 0", "Week 1"],
                ["week 0", None],
            ),
            *(
                [True, False, True, True],
                [0, 2],
                [["week 0"]],
                [b"week 0"],
                [float("nan")],
                Endless(),
            ),
            *({"week 0", 1}, ["x"] * 1_000_000),
        ],
    ),
    "key_value": Taken(
        KEY_VALUE,
        {"video": 10, "music": 0},
        [SECRET, ["video"], {SECRET: 1}, {"video": SECRET}, [(SECRET, 1)]],
    ),
    "string": Taken(
        STRING, "crash", [None, CANARY, b"bytes", [SECRET], "\ud800", SECRET.encode(), True]
    ),
    "vector": Taken(
        VECTOR,
        [0.5, -0.25, 0],
        [
            *(None, 1, "abc", b"abc", bytearray(b"abc"), {"a": 1, "b": 2, "c": 3}, {1, 2, 3}),
            *([], [CANARY, 0], [CANARY, 0, 0, 0], iter([1, 2, 3]), range(2_000_000)),
            *(
                [float("nan"), 0, CANARY],
                [0, float("inf"), CANARY],
                [True, 0, CANARY],
                ["1", 0, CANARY],
            ),
            *(
                [None, 0, 0],
                [[1], 0, 0],
                [1j, 0, 0],
                [Decimal("sNaN"), 0, 0],
                [Decimal("1e9999999"), 0, 0],
            ),
            *(np.zeros((3, 3)), np.array(["1", "2", "3"]), np.array([np.nan, 0, 0]), np.float64(3)),
        ],
    ),
    "taste": Taken(
        TASTE,
        ["news"],
        [
            *(None, 1, "news", b"news", {"news": True}, iter(["news"]), range(2)),
            *(["news", SECRET], [SECRET], ["news", 7], [["news"]], [None], [b"news"], [("news",)]),
            *(["news"] * 4, [SECRET] * 1_000_000, {str(i) for i in range(100_000)}),
        ],
    ),
    "taste of nothing": Taken(TASTE, [], []),
    "no pairs": Taken(KEY_VALUE, {}, []),
    "record": Taken(
        RECORD,
        GOOD,
        [
            *(None, 1, "abc", [("plan", "pro")], {"plan": "pro"}, {}, {**GOOD, "more": CANARY}),
            *({**GOOD, "plan": CANARY}, {**GOOD, "plan": None}, {**GOOD, "plan": f"{CANARY}"}),
            *({**GOOD, "age": None}, {**GOOD, "age": float("nan")}, {**GOOD, "age": float("-inf")}),
            *({**GOOD, "age": True}, {**GOOD, "age": f"{CANARY}"}, {**GOOD, "age": [CANARY]}),
            *({**GOOD, "label": None}, {**GOOD, "label": f"{CANARY}"}, {**GOOD, "label": ["left"]}),
            {"plan": "pro", "age": 41, "Label": "left"},
        ],
    ),
}
SECRETS: Final[list[Any]] = [
    *(SECRET, SECRET.encode(), (SECRET, 47), (8, SECRET), (CANARY + 0.5, float("nan")), [SECRET]),
    *({SECRET}, {SECRET: 1}, {"sex": SECRET, "income": "low"}, {SECRET: "male", "income": "low"}),
    [Decimal(f"NaN{CANARY}"), 1],
]  # which no type takes, but one of texts
each = pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)


def metric(fields: dict[str, str], **changes: str | None) -> Metric:
    """Return the metric of *fields* with *changes*."""
    return Registry.from_text(file_with(fields, **changes)).metric("m")


@each
def test_what_a_type_does_not_take_is_refused_and_not_shown(kind: Taken) -> None:
    """Wrong types, missing parts and huge collections: no error has a value of a user."""
    of = metric(kind.fields)

    for value in (*kind.refused, *(SECRETS if kind.fields is not STRING else ())):
        with pytest.raises(InvalidValueError, match=r"^m(, \w+)?: takes ") as caught:
            of.encode(value)
        assert str(CANARY) not in f"{caught.value} {caught.value!r} {vars(caught.value)}"
        assert caught.value.__cause__ is None


@each
def test_what_is_refused_is_counted_and_a_good_value_is_not_lost_for_it(kind: Taken) -> None:
    with make_client(registry=Registry.from_text(file_with(kind.fields))) as client:
        for value in (*kind.refused, kind.good):
            client.record("m", value)

    assert client.stats()[Reason.INVALID_VALUE] == len(kind.refused)
    assert client.stats()[Reason.RECORDED] == 1


@each
def test_a_value_is_kept_in_one_length_and_written_as_it_is(kind: Taken) -> None:
    of = metric(kind.fields)
    encoding, encoded = of.domain.encoding, of.encode(kind.good)

    kept, written = encoding.dump(encoded), json.dumps(encoding.as_json(encoded))

    assert len(kept) == encoding.size
    assert encoding.load(kept) == encoding.from_json(json.loads(written)) == encoded
    of.mechanism.require_value(encoding.load(kept))


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        (BOOLEAN, {"epsilon": '"1.000000001"'}),
        (BOOLEAN, {"every": '"1d"'}),
        (BOOLEAN, {"type": '"category"', "values": '["false", "true"]'}),
        (CATEGORY, {"values": '["pro", "free", "team"]'}),
        (CATEGORY, {"values": '["free", "pro", "team", "x"]'}),
        (CATEGORY, {"mechanism": '"sue"'}),
        (CATEGORY, {"type": '"set"', "mechanism": '"auto"'}),
        (SET, {"mechanism": '"padding_sampling"', "parameters": "{ pad = 2 }"}),
        (NUMBER, {"type": '"duration"'}),
        (NUMBER, {"unit": '"hours"'}),
        (NUMBER, {"min": "-0.5"}),
        (NUMBER, {"max": "11.0"}),
        (NUMBER, {"step": "0.25"}),
        (LOCATION, {"min": "[-10.5, 45.5]"}),
        (LOCATION, {"max": "[30, 47.6]"}),
        (LOCATION, {"cells": "[2, 4]"}),
        (PAIR, {"parts": '{ income = ["low", "middle", "high"], sex = ["female", "male"] }'}),
        (PAIR, {"parts": '{ sex = ["male", "female"], income = ["low", "middle", "high"] }'}),
        (PAIR, {"parts": '{ sex = ["female", "male"], wage = ["low", "middle", "high"] }'}),
        (FUNNEL, {"values": '["cart", "visit", "paid"]'}),
        (FUNNEL, {"type": '"category"'}),
        (RETENTION, {"periods": '["week 0", "week 1", "week 2"]'}),
        (RETENTION, {"periods": '["week 1", "week 0", "week 2", "week 3"]'}),
        *(
            (KEY_VALUE, change)
            for change in (
                *(
                    {"values": '["music", "video", "chess"]'},
                    {"values": '["video", "music", "go"]'},
                ),
                *({"min": "-11"}, {"max": "31"}, {"unit": '"hours"'}, {"most": "3"}, {"most": "1"}),
                *({"mechanism": '"pckv_ue"'}, {"epsilon": '"2"'}),
            )
        ),
        (STRING, {"length": "9"}),
        (STRING, {"mechanism": '"pem"', "parameters": "{ step = 1 }"}),
        (VECTOR, {"length": "4"}),
        (VECTOR, {"values": '["a", "b", "c"]'}),
        (VECTOR, {"norm": '"max"'}),
        (VECTOR, {"bound": "2"}),
        (VECTOR, {"unit": '"ms"'}),
        (RECORD, {"label": '["left", "stayed"]'}),
        *(
            (RECORD, {"attributes": f"{{ {attributes} }}"})
            for attributes in (
                'plan = ["free", "pro", "team"], age = { edges = [30, 50] }',
                'plan = ["free", "pro", "club"], age = { edges = [30, 50.5] }',
                'plans = ["free", "pro", "team"], age = { edges = [30, 50.5] }',
                'age = { edges = [30, 50.5] }, plan = ["free", "pro", "team"]',
            )
        ),
    ],
    ids=repr,
)
def test_what_changes_the_meaning_changes_the_digest(
    fields: dict[str, str], change: dict[str, str]
) -> None:
    """Every key of the domain is in the digest, and so is every order."""
    assert metric(fields, **change).digest != metric(fields).digest


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        *(
            (BOOLEAN, change)
            for change in (
                *(
                    {"title": '"Other"'},
                    {"question": '"Why?"'},
                    {"owner": '"x"'},
                    {"min_reports": "100"},
                ),
                *({"expires": "2050-01-01"}, {"expected_devices": "1"}, {"segments": "[]"}),
                *({"epsilon": '"1"'}, {"epsilon": '"1.00"'}, {"epsilon": '"001.000000000"'}),
            )
        ),
        (NUMBER, {"min": "0.0", "max": "10.50", "step": "5e-1"}),
        (KEY_VALUE, {"min": "-10.0", "max": "3e1"}),
        (LOCATION, {"min": "[-10.0, 455e-1]", "max": "[30, 47.50]"}),
        (VECTOR, {"values": '["1", "2", "3"]', "length": None}),
    ],
    ids=repr,
)
def test_what_does_not_change_the_meaning_keeps_the_digest(
    fields: dict[str, str], change: dict[str, str | None]
) -> None:
    """The digest is of what a report means, of numbers and not of their texts."""
    assert metric(fields, **change).digest == metric(fields).digest


_CORNER = "must be [longitude, latitude] in degrees, from [-180, -90] to [180, 90]"
_CELLS = f"must be [columns, rows], integers of 2 to {MAX_JOINT} cells together"
_PARTS = "must be a table of two names, each with a list of values"
_LABELS = "must be a list of at least 2 different printable texts"


@pytest.mark.parametrize(
    ("fields", "changes", "rule"),
    [
        (VECTOR, {"length": "1"}, "length: must be how many numbers, from 2 to 4096"),
        (VECTOR, {"length": "4097"}, "length: must be how many"),
        (VECTOR, {"length": "true"}, "length: must be how many"),
        (VECTOR, {"length": None}, "length: must be how many"),
        (VECTOR, {"values": '["a", "b"]'}, "length: must be absent, or the number of values"),
        (VECTOR, {"values": '["a"]', "length": None}, "values: must be a list of at least 2"),
        (VECTOR, {"norm": '"l1"'}, "norm: must be one of l2, max"),
        (VECTOR, {"bound": "0"}, "bound: must be positive"),
        (VECTOR, {"bound": "nan"}, "bound: must be a finite number"),
        (VECTOR, {"unit": None}, "unit: must be a non-empty text"),
        (VECTOR, {"longitudinal": '"permanent"'}, "longitudinal: must be fresh for a vector"),
        (
            VECTOR,
            {"mechanism": '"grr"'},
            "does not fit this type; fitting: auto, codebook, sampled_number",
        ),
        (
            VECTOR,
            {"mechanism": '"codebook"', "parameters": "{ cube = 1 }"},
            "follows from the metric's",
        ),
        (TASTE, {"every": '"7d"'}, "every: must be once for a taste: each report"),
        (TASTE, {"values": None}, "values: must be a list of at least 2"),
        (TASTE, {"values": '["a"]'}, "values: must be a list of at least 2"),
        (
            TASTE,
            {"values": json.dumps([str(place) for place in range(MAX_TASTE + 1)])},
            "values: must be at most 90: a report of K items has K(K+1)/2 numbers",
        ),
        (TASTE, {"length": "3"}, "length: is not a known key"),
        (TASTE, {"other": '"rest"'}, "other: is not a known key"),
        (TASTE, {"longitudinal": '"permanent"'}, "longitudinal: must be fresh for a taste"),
        (TASTE, {"aggregate": '"last"'}, "aggregate: needs an epoch that ends"),
        (TASTE, {"mechanism": '"grr"'}, "does not fit this type; fitting: auto, codebook"),
        (RECORD, {"label": None}, "label: must be a list of at least 2"),
        (RECORD, {"label": '["a"]'}, "label: must be a list of at least 2"),
        (RECORD, {"label": '["a|b", "c"]'}, 'label: must not hold "|"'),
        (RECORD, {"attributes": None}, "attributes: must be a table of 1 to 64 names"),
        (RECORD, {"attributes": "{}"}, "attributes: must be a table"),
        (RECORD, {"attributes": '["a", "b"]'}, "attributes: must be a table"),
        (RECORD, {"attributes": '{ a = ["x"] }'}, "attributes.a: must be a list of at least 2"),
        (
            RECORD,
            {"attributes": '{ label = ["x", "y"] }'},
            "attributes.label: must have another name",
        ),
        (RECORD, {"attributes": '{ Age = ["x", "y"] }'}, "attributes.Age: must be"),
        (RECORD, {"attributes": "{ a = { edges = [] } }"}, "a.edges: must be a list of numbers"),
        (
            RECORD,
            {"attributes": "{ a = { edges = [2, 1] } }"},
            "a.edges: must be a list of numbers",
        ),
        (
            RECORD,
            {"attributes": "{ a = { edges = [1, 1] } }"},
            "a.edges: must be a list of numbers",
        ),
        (RECORD, {"attributes": '{ a = { edges = ["1"] } }'}, "a.edges: must be a finite number"),
        (RECORD, {"attributes": "{ a = { edges = [nan] } }"}, "a.edges: must be a finite number"),
        (RECORD, {"attributes": "{ a = { edges = [1], values = 2 } }"}, "a.edges: must be a list"),
        (
            RECORD,
            {"attributes": f"{{ a = {{ edges = {list(range(2_048))} }} }}"},
            "attributes: must have at most 4096 values, times the labels, not 4098",
        ),
        (RECORD, {"longitudinal": '"permanent"'}, "longitudinal: must be fresh for a record"),
        (
            RECORD,
            {"mechanism": '"grr"'},
            "does not fit this type; fitting: auto, sampled_attribute",
        ),
        (
            RECORD,
            {"mechanism": '"sampled_attribute"', "parameters": "{ starts = 1 }"},
            "follows from the metric's",
        ),
        (KEY_VALUE, {"most": "0"}, "most: must be an integer from 1 to 3"),
        (KEY_VALUE, {"most": "4"}, "most: must be an integer from 1 to 3"),
        (KEY_VALUE, {"most": "true"}, "most: must be an integer from 1 to 3"),
        (KEY_VALUE, {"most": "2.0"}, "most: must be an integer from 1 to 3"),
        (KEY_VALUE, {"values": '["a"]'}, "values: must be a list of at least 2"),
        (KEY_VALUE, {"values": None}, "values: must be a list of at least 2"),
        (KEY_VALUE, {"values": '["a", "mean of a"]'}, "values: must not hold both a key and"),
        (KEY_VALUE, {"max": "-10"}, "max: must be above min"),
        (KEY_VALUE, {"max": "nan"}, "max: must be a finite number"),
        (KEY_VALUE, {"min": None}, "min: must be a finite number"),
        (KEY_VALUE, {"unit": '""'}, "unit: must be a non-empty text"),
        (KEY_VALUE, {"step": "1"}, "step: is not a known key"),
        (KEY_VALUE, {"mechanism": '"grr"'}, "mechanism=grr: does not fit this type; fitting: auto"),
        (
            KEY_VALUE,
            {"mechanism": '"pckv_ue"', "parameters": "{ pad = 2 }"},
            "pad=2: follows from the metric's domain",
        ),
        (
            KEY_VALUE,
            {"mechanism": '"pckv_ue"', "parameters": "{ top = 9 }"},
            "top=9: follows from the metric's domain",
        ),
        (
            KEY_VALUE,
            {"mechanism": '"pckv_ue"', "parameters": "{ order = 9 }"},
            "order=9: is not a parameter of pckv_ue",
        ),
        (KEY_VALUE, {"parameters": "{ pad = 2 }"}, "parameters=pad: needs a mechanism by name"),
        (LOCATION, {"min": None}, f"min: {_CORNER}"),
        (LOCATION, {"min": "5"}, f"min: {_CORNER}"),
        (LOCATION, {"min": "[5]"}, f"min: {_CORNER}"),
        (LOCATION, {"min": "[5, 46, 0]"}, f"min: {_CORNER}"),
        (LOCATION, {"min": "[nan, 46]"}, f"min: {_CORNER}"),
        (LOCATION, {"min": "[-inf, 46]"}, f"min: {_CORNER}"),
        (LOCATION, {"min": "[true, 46]"}, f"min: {_CORNER}"),
        (LOCATION, {"min": '["5", "46"]'}, f"min: {_CORNER}"),
        (LOCATION, {"min": "{ lng = 5, lat = 46 }"}, f"min: {_CORNER}"),
        (LOCATION, {"min": "[-180.5, 46]"}, f"min: {_CORNER}"),
        (LOCATION, {"max": "[8, 90.1]"}, f"max: {_CORNER}"),
        (LOCATION, {"max": "[1e999999999, 47]"}, f"max: {_CORNER}"),
        (LOCATION, {"max": "[-10, 47.5]"}, "max: must be east and north of min"),
        (LOCATION, {"max": "[30, 45]"}, "max: must be east and north of min"),
        (LOCATION, {"cells": None}, f"cells: {_CELLS}"),
        (LOCATION, {"cells": "16"}, f"cells: {_CELLS}"),
        (LOCATION, {"cells": "[1, 1]"}, f"cells: {_CELLS}"),
        (LOCATION, {"cells": "[0, 9]"}, f"cells: {_CELLS}"),
        (LOCATION, {"cells": "[-2, -2]"}, f"cells: {_CELLS}"),
        (LOCATION, {"cells": "[4.0, 2]"}, f"cells: {_CELLS}"),
        (LOCATION, {"cells": "[true, 4]"}, f"cells: {_CELLS}"),
        (LOCATION, {"cells": "[17, 241]"}, f"cells: {_CELLS}"),
        (LOCATION, {"cells": "[1_000_000_000, 1_000_000_000]"}, f"cells: {_CELLS}"),
        (LOCATION, {"unit": '"degrees"'}, "unit: is not a known key"),
        (PAIR, {"parts": None}, f"parts: {_PARTS}"),
        (PAIR, {"parts": '["sex", "income"]'}, f"parts: {_PARTS}"),
        (PAIR, {"parts": '{ sex = ["a", "b"] }'}, f"parts: {_PARTS}"),
        (PAIR, {"parts": "{ a = [], b = [], c = [] }"}, f"parts: {_PARTS}"),
        (PAIR, {"parts": '{ a = ["x", "y"], b = ["z"] }'}, f"parts.b: {_LABELS}"),
        (PAIR, {"parts": '{ a = "xy", b = ["x", "y"] }'}, f"parts.a: {_LABELS}"),
        (PAIR, {"parts": '{ A = ["x", "y"], b = ["x", "y"] }'}, "parts.A: must be"),
        (PAIR, {"parts": '{ a = ["x|y", "z"], b = ["x", "y"] }'}, 'parts.a: must not hold "|"'),
        (FUNNEL, {"values": None}, f"values: {_LABELS}"),
        (FUNNEL, {"values": '["visit"]'}, f"values: {_LABELS}"),
        (FUNNEL, {"values": '["visit", "none"]'}, 'values: must not hold "none", the item of no'),
        (RETENTION, {"periods": None}, f"periods: {_LABELS}"),
        (RETENTION, {"periods": "4"}, f"periods: {_LABELS}"),
        (RETENTION, {"periods": '["a", "a"]'}, f"periods: {_LABELS}"),
        (
            RETENTION,
            {"periods": f"[{', '.join(repr(str(i)) for i in range(9))}]"},
            "periods: must hold 2 to 8 periods",
        ),
        (
            RETENTION,
            {"mechanism": '"discrete_laplace"'},
            "mechanism=discrete_laplace: does not fit",
        ),
        *(
            (STRING, {"length": length}, "length: must be the bytes that count")
            for length in ("1", "129", "true", '"8"', "8.0", None)
        ),
        (STRING, {"longitudinal": '"permanent"'}, "must be fresh for a string"),
        (STRING, {"longitudinal": '"two_layer"'}, "must be fresh for a string"),
        (STRING, {"mechanism": '"grr"'}, "fitting: auto, pem"),
    ],
    ids=repr,
)
def test_a_broken_rule_is_named_with_its_place(
    fields: dict[str, str], changes: dict[str, str | None], rule: str
) -> None:
    """Each rule of each type has a line of its own."""
    with pytest.raises(RegistryError) as caught:
        metric(fields, **changes)

    problems = [problem for problem in caught.value.problems if problem.startswith("metrics.m")]
    assert [problem for problem in problems if rule in problem]
