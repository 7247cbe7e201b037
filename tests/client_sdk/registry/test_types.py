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
from client_sdk.registry.types import kinds
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
    TWO_LAYER,
    VECTOR,
    file_with,
)
from tests.support.enumeration.populations import metric_of

CANARY: Final = 73_917_391
GRR: Final = {"mechanism": '"grr"'}
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
        [
            *(SECRET, ["video"], {SECRET: 1}, {"video": SECRET}, [(SECRET, 1)], None, 0, True),
            *("video", {"video"}, [("video", 1)], ("video", 1), iter({"video": 1}), object()),
            *(
                {"music": 1, key: 1}
                for key in ("Video", "", 0, None, b"video", ("video",), float("nan"))
            ),
            *({"music": 1, "video": number} for number in (float("nan"), float("inf"), True, "1")),
            *({"music": 1, "video": number} for number in (None, [1], Decimal("1e999999999"), 1j)),
        ],
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
    "no text": Taken(STRING, "", []),
    "a text of zeros": Taken(STRING, "\0\0", []),
    "a text of full length": Taken(STRING, "12345678", []),
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


def test_every_class_of_values_is_in_the_table() -> None:
    tried = {kinds()[json.loads(kind.fields["type"])] for kind in TYPES.values()}

    assert tried == {kind for kind in kinds().values() if kind.__module__.startswith("client_sdk.")}


@each
def test_what_a_type_does_not_take_is_refused_and_not_shown(kind: Taken) -> None:
    """Wrong types, missing parts and huge collections: no error has a value of a user."""
    of = metric_of(kind.fields)

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
    of = metric_of(kind.fields)
    encoding, encoded = of.domain.encoding, of.encode(kind.good)

    kept, written = encoding.dump(encoded), json.dumps(encoding.as_json(encoded))

    assert len(kept) == encoding.size
    assert encoding.load(kept) == encoding.from_json(json.loads(written)) == encoded
    of.mechanism.require_value(encoding.load(kept))


@pytest.mark.parametrize(
    ("fields", "meant", "digest"),
    [
        (BOOLEAN, '{"values":["false","true"]}', "c1eeb56a5252"),
        (CATEGORY, '{"values":["free","pro","team"]}', "fcd5dcf60383"),
        (NUMBER, '{"max":"21/2","min":"0","step":"1/2","unit":"minutes"}', "58e4627caf97"),
        (
            {**LOCATION, **GRR},
            '{"cells":[4,2],"max":["30","95/2"],"min":["-10","91/2"]}',
            "6a88b227b68c",
        ),
        (
            {**PAIR, **GRR},
            '{"parts":[["sex",["female","male"]],["income",["low","middle","high"]]]}',
            "383e020823d5",
        ),
        ({**FUNNEL, **GRR}, '{"values":["visit","cart","paid"]}', "3f7a76ec9e27"),
        ({**RETENTION, **GRR}, '{"periods":["week 0","week 1","week 2","week 3"]}', "f8f1b9506276"),
        (
            KEY_VALUE,
            '{"max":"30","min":"-10","unit":"minutes","values":["video","music","chess"]}',
            "770d7238bdf3",
        ),
    ],
)
def test_the_meaning_holds_the_domain_exactly_and_its_digest_never_changes(
    fields: dict[str, str], meant: str, digest: str
) -> None:
    found = metric_of(fields)

    assert f'"domain":{meant},' in found.meaning
    assert found.digest.hex() == digest


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
    assert metric_of(fields, **change).digest != metric_of(fields).digest


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
    assert metric_of(fields, **change).digest == metric_of(fields).digest


_CORNER = "must be [longitude, latitude] in degrees, from [-180, -90] to [180, 90]"
_CELLS = f"must be [columns, rows], integers of 2 to {MAX_JOINT} cells together"
_PARTS = "must be a table of two names, each with a list of values"
_LABELS = "must be a list of at least 2 different printable texts"


def labels(count: int) -> str:
    """Return a list of as many labels."""
    return json.dumps([str(place) for place in range(count)])


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
            {"values": labels(MAX_TASTE + 1)},
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
        (BOOLEAN, {"title": None}, "metrics.m.title: must be a non-empty text"),
        (BOOLEAN, {"question": '" "'}, "metrics.m.question: must be a non-empty text"),
        (
            BOOLEAN,
            {"title": '"two\\nlines"'},
            "metrics.m.title: must be a non-empty text of printable",
        ),
        (BOOLEAN, {"question": '"\\u001b[2J?"'}, "metrics.m.question: must be a non-empty text of"),
        (BOOLEAN, {"owner": '"\\u202eteam"'}, "metrics.m.owner: must be a non-empty text of print"),
        (NUMBER, {"unit": '"\\u2066s"'}, "metrics.m.unit: must be a non-empty text of printable"),
        (BOOLEAN, {"owner": "7"}, "metrics.m.owner: must be a non-empty text"),
        (BOOLEAN, {"type": '"bool"'}, "metrics.m.type: must be one of boolean, category"),
        (BOOLEAN, {"type": None}, "metrics.m.type: must be one of"),
        (BOOLEAN, {"every": '"2d"'}, "metrics.m.every: must be one of 1h, 1d, 7d, 28d, once"),
        (BOOLEAN, {"longitudinal": '"often"'}, "metrics.m.longitudinal: must be one of fresh, "),
        (NUMBER, {"longitudinal": '"permanent"'}, "metrics.m.longitudinal: must be fresh for a"),
        (SET, {"longitudinal": '"permanent"'}, "metrics.m.longitudinal: must be fresh for a set"),
        (
            BOOLEAN,
            {"longitudinal": '"two_layer"'},
            "metrics.m.epsilon_permanent: must be a decimal",
        ),
        (TWO_LAYER, {"epsilon_permanent": '"1e3"'}, "metrics.m.epsilon_permanent: must be a dec"),
        (TWO_LAYER, {"epsilon_permanent": '"1.00"'}, "metrics.m.epsilon_permanent: must be above"),
        (TWO_LAYER, {"longitudinal": '"fresh"'}, "metrics.m.epsilon_permanent: is for longitudi"),
        (TWO_LAYER, {"epsilon_permanent": '"99"'}, "metrics.m: epsilon=99: must be"),
        (TWO_LAYER, {"mechanism": '"rappor"'}, "metrics.m: mechanism=rappor: has no pure channel"),
        (TWO_LAYER, {"mechanism": '"exponential"'}, "metrics.m: mechanism=exponential: has no pur"),
        (BOOLEAN, {"mechanism": "1"}, 'metrics.m.mechanism: must be "auto" or'),
        (BOOLEAN, {"mechanism": '"magic"'}, "metrics.m: mechanism=magic: is not known"),
        (
            BOOLEAN,
            {"mechanism": '"discrete_laplace"'},
            "metrics.m: mechanism=discrete_laplace: does",
        ),
        (NUMBER, {"mechanism": '"grr"'}, "metrics.m: mechanism=grr: does not fit this type"),
        (SET, {"mechanism": '"grr"'}, "metrics.m: mechanism=grr: does not fit this type"),
        (
            CATEGORY,
            {"mechanism": '"padding_sampling"'},
            "metrics.m: mechanism=padding_sampling: do",
        ),
        (
            SET,
            {"parameters": "{ pad = 2 }"},
            "metrics.m: parameters=pad: needs a mechanism by name",
        ),
        (SET, {"values": '["a"]'}, "metrics.m.values: must be a list of at least 2"),
        (CATEGORY, {"parameters": "3"}, "metrics.m.parameters: must be a table of integers"),
        (CATEGORY, {"parameters": "{ order = 5.0 }"}, "metrics.m.parameters: must be a table of"),
        (CATEGORY, {"parameters": "{ order = true }"}, "metrics.m.parameters: must be a table of"),
        (
            CATEGORY,
            {"parameters": "{ order = 5 }"},
            "metrics.m: order=5: is not a parameter of grr",
        ),
        (BOOLEAN, {"segments": '["country"]'}, "metrics.m.segments: must be a list of dimensions"),
        (BOOLEAN, {"segments": '"platform"'}, "metrics.m.segments: must be a list of dimensions"),
        (
            BOOLEAN,
            {"expected_devices": "0"},
            "metrics.m.expected_devices: must be an integer of at",
        ),
        (BOOLEAN, {"expected_devices": "true"}, "metrics.m.expected_devices: must be an integer"),
        (
            BOOLEAN,
            {"min_reports": "99"},
            "metrics.m.min_reports: must be an integer of at least 100",
        ),
        (BOOLEAN, {"expires": '"2099-12-31"'}, "metrics.m.expires: must be a date such as"),
        (BOOLEAN, {"expires": "2099-12-31T00:00:00"}, "metrics.m.expires: must be a date such as"),
        (BOOLEAN, {"expires": None}, "metrics.m.expires: must be a date such as"),
        (BOOLEAN, {"values": '["a", "b"]'}, "metrics.m.values: is not a known key; known: "),
        (
            BOOLEAN,
            {"epsilom": '"1"'},
            "metrics.m.epsilom: is not a known key (did you mean epsilon?)",
        ),
        (CATEGORY, {"values": '["a"]'}, "metrics.m.values: must be a list of at least 2"),
        (CATEGORY, {"values": '["a", "a"]'}, "metrics.m.values: must be a list of at least 2"),
        (CATEGORY, {"values": '["a", 1]'}, "metrics.m.values: must be a list of at least 2"),
        (CATEGORY, {"values": '["a", "\\u202eb"]'}, "metrics.m.values: must be a list of at least"),
        (CATEGORY, {"values": f'["a", "{"b" * 101}"]'}, "metrics.m.values: must be a list of at"),
        (CATEGORY, {"min": "1"}, "metrics.m.min: is not a known key"),
        (NUMBER, {"step": "0.4"}, "metrics.m.step: must be positive and divide max - min"),
        (NUMBER, {"step": "0"}, "metrics.m.step: must be positive and divide max - min"),
        (NUMBER, {"step": "-0.5"}, "metrics.m.step: must be positive and divide max - min"),
        (NUMBER, {"max": "0"}, "metrics.m.min: must be below max, which is 0"),
        (NUMBER, {"max": "nan"}, "metrics.m.max: must be a finite number"),
        (NUMBER, {"min": "-inf"}, "metrics.m.min: must be a finite number"),
        (NUMBER, {"max": "1e999999999"}, "metrics.m.max: must be a finite number"),
        (NUMBER, {"min": "true"}, "metrics.m.min: must be a finite number"),
        (NUMBER, {"step": None}, "metrics.m.step: must be a finite number"),
        (NUMBER, {"unit": None}, "metrics.m.unit: must be a non-empty text"),
        (NUMBER, {"max": "16777216"}, "metrics.m.step: must leave fewer than 16777216 grid points"),
        (
            CATEGORY,
            {"mechanism": '"pgr"', "parameters": "{ order = 4 }"},
            "metrics.m: order=4: must be a prime up to 257",
        ),
        (
            CATEGORY,
            {"mechanism": '"olh"', "parameters": "{ buckets = 1 }"},
            "metrics.m: buckets=1: must be from 2 to 256",
        ),
        (
            CATEGORY,
            {"mechanism": '"olh"', "parameters": "{ order = 5 }"},
            "metrics.m: order=5: is not a parameter of olh; known: buckets",
        ),
        (
            CATEGORY,
            {"mechanism": '"auto"', "parameters": "{ order = 5 }"},
            "metrics.m: parameters=order: needs a mechanism by name",
        ),
        (
            CATEGORY,
            {"mechanism": '"grr"', "parameters": "{ precision = 8 }"},
            "metrics.m: precision=8: is not a parameter of grr",
        ),
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
                "values": labels(456),
            },
            "aggregate: takes a domain that fits 4096 bytes, not 4104",
        ),
        (CATEGORY, {"need": "0"}, "need: must be above 0 and at most 1; found "),
        (CATEGORY, {"need": "-0.1"}, "need: must be above 0 and at most 1; found "),
        (CATEGORY, {"need": "5"}, "need: must be above 0 and at most 1; found "),
        (NUMBER, {"need": "11"}, "need: must be above 0 and at most 10.5; found "),
        (CATEGORY, {"need": '"0.02"'}, "need: must be a finite number; found "),
        (CATEGORY, {"need": "nan"}, "need: must be a finite number; found "),
        *(
            (NUMBER, {"shape": s}, "shape: must be one of any, grid, smooth")
            for s in ('"bell"', "1", "[]")
        ),
        *((f, {"shape": '"smooth"'}, "shape: is not a known key") for f in (CATEGORY, KEY_VALUE)),
        (CATEGORY, {"other": "7"}, "metrics.m.other: must be a text"),
        (CATEGORY, {"other": '""'}, "metrics.m.other: must be a printable text"),
        (CATEGORY, {"other": '"a\\nb"'}, "metrics.m.other: must be a printable text"),
        (CATEGORY, {"other": f'"{"x" * 101}"'}, "metrics.m.other: must be a printable text"),
        *(
            (f, {"other": '"rest"'}, "other: is not a known key")
            for f in (BOOLEAN, NUMBER, KEY_VALUE, FUNNEL)
        ),
        (
            CATEGORY,
            {"other": '"rest"', "aggregate": '"last"', "otherwise": '"tame"'},
            "otherwise: must be of the registered values",
        ),
        (
            SET,
            {"other": '"rest"', "aggregate": '"last"', "otherwise": '["a", "d"]'},
            "otherwise: must be of the registered values",
        ),
        *(
            (SET, {"expected_size": n}, "expected_size: must be how many")
            for n in ("0", "4", "-1", "2.5", "true", '"2"')
        ),
        (
            SET,
            {"expected_size": "2", "mechanism": '"privset"', "parameters": "{ pad = 3 }"},
            "pad=3: follows from the metric's domain",
        ),
        (CATEGORY, {"expected_size": "2"}, "expected_size: is not a known key"),
        (CATEGORY, {"values": "2147483648"}, "values: must be a list of at least 2"),
        *(
            (NUMBER, {"ask": a}, 'ask: must be a list of "mean" and "quantiles"')
            for a in ('["median"]', "[]", '"quantiles"')
        ),
        (NUMBER, {"ask": '["quantiles"]', "mechanism": '"hybrid"'}, "ask=quantiles: "),
        (BOOLEAN, {"ask": '["mean"]'}, "ask: is not a known key"),
        *(
            (
                PAIR,
                {"parts": f"{{ a = {labels(a)}, b = {labels(b)} }}"},
                "parts: must have at most 4096 pairs of values, not",
            )
            for a, b in ((17, 241), (20_000, 20_000))
        ),
        *(
            (
                f,
                {"aggregate": '"sum"'},
                "aggregate: must be one of last, most_common for values of this type",
            )
            for f in (LOCATION, PAIR, RETENTION)
        ),
        (
            FUNNEL,
            {"aggregate": '"sum"'},
            "aggregate: must be one of max, last, most_common for values of this type",
        ),
    ],
    ids=repr,
)
def test_a_broken_rule_is_named_with_its_place(
    fields: dict[str, str], changes: dict[str, str | None], rule: str
) -> None:
    """Each rule of each type has a line of its own."""
    with pytest.raises(RegistryError) as caught:
        metric_of(fields, **changes)

    problems = [problem for problem in caught.value.problems if problem.startswith("metrics.m")]
    assert [problem for problem in problems if rule in problem]
