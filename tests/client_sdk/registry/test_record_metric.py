"""Records in a registry: what is declared, what a value becomes, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.client import Client
from client_sdk.core.errors import InvalidValueError, RegistryError, TransportError
from client_sdk.mechanisms import Record
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.planning.codegen import module_of
from collector.planning.compilation import compiled
from tests.support.device.device import changed, make_client, metric_text, registry_of, rows
from tests.support.device.device_transport import ScriptedTransport
from tests.support.device.registries import RECORD, file_with

CANARY: Final = 73_917_391
GOOD: Final = {"plan": "pro", "age": 41, "label": "left"}
NO_RECORDS: Final[list[Any]] = [
    *(None, 1, "abc", [("plan", "pro")], {"plan": "pro"}, {}, {**GOOD, "more": CANARY}),
    *({**GOOD, "plan": CANARY}, {**GOOD, "plan": None}, {**GOOD, "plan": f"{CANARY}"}),
    *({**GOOD, "age": None}, {**GOOD, "age": float("nan")}, {**GOOD, "age": float("-inf")}),
    *({**GOOD, "age": True}, {**GOOD, "age": f"{CANARY}"}, {**GOOD, "age": [CANARY]}),
    *({**GOOD, "label": None}, {**GOOD, "label": f"{CANARY}"}, {**GOOD, "label": ["left"]}),
    {"plan": "pro", "age": 41, "Label": "left"},
]


def metric(**changes: str | None) -> Metric:
    return Registry.from_text(file_with(RECORD, **changes)).metric("m")


@pytest.mark.parametrize(
    ("age", "item"),
    [
        *((-1e300, 0), (29.999, 0), (30, 1), (Decimal("50.49"), 1), (np.float64(50.5), 2)),
        *((Fraction(101, 2), 2), (10**400, 2), ("30 to 50.5", 1), ("50.5 or more", 2)),
    ],
)
def test_a_number_is_of_the_range_that_begins_at_it_or_below(age: Any, item: int) -> None:
    of = metric()

    assert of.encode({**GOOD, "age": age}) == Record((3, 6 + 2 * item + 1))


@pytest.mark.parametrize("value", NO_RECORDS, ids=repr)
def test_what_is_no_record_is_refused_and_not_shown(value: Any) -> None:
    with pytest.raises(InvalidValueError) as caught:
        metric().encode(value)

    assert str(CANARY) not in f"{caught.value} {vars(caught.value)}"


def test_items_are_told_by_attribute_value_and_label() -> None:
    domain: Any = metric().domain

    assert domain.labels[3] == "plan: pro | left"
    assert domain.labels[6:8] == ("age: below 30 | stayed", "age: below 30 | left")
    assert domain.as_given(Record((3, 9))) == {"plan": "pro", "age": "30 to 50.5", "label": "left"}
    assert domain.in_words(Record((3, 9))) == "plan: pro, age: 30 to 50.5, label: left"


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"label": None}, "label: must be a list of at least 2"),
        ({"label": '["a"]'}, "label: must be a list of at least 2"),
        ({"label": '["a|b", "c"]'}, r'label: must not hold "\|"'),
        ({"attributes": None}, "attributes: must be a table of 1 to 64 names"),
        ({"attributes": "{}"}, "attributes: must be a table"),
        ({"attributes": '["a", "b"]'}, "attributes: must be a table"),
        ({"attributes": '{ a = ["x"] }'}, "attributes.a: must be a list of at least 2"),
        ({"attributes": '{ label = ["x", "y"] }'}, "attributes.label: must have another name"),
        ({"attributes": '{ Age = ["x", "y"] }'}, "attributes.Age: a name must be"),
        ({"attributes": "{ a = { edges = [] } }"}, "a.edges: must be a list of numbers"),
        ({"attributes": "{ a = { edges = [2, 1] } }"}, "a.edges: must be a list of numbers"),
        ({"attributes": "{ a = { edges = [1, 1] } }"}, "a.edges: must be a list of numbers"),
        ({"attributes": '{ a = { edges = ["1"] } }'}, "a.edges: must be a finite number"),
        ({"attributes": "{ a = { edges = [nan] } }"}, "a.edges: must be a finite number"),
        ({"attributes": "{ a = { edges = [1], values = 2 } }"}, "a.edges: must be a list"),
        (
            {"attributes": f"{{ a = {{ edges = {list(range(2_048))} }} }}"},
            "attributes: must have at most 4096 values, times the labels, not 4098",
        ),
        ({"longitudinal": '"permanent"'}, "longitudinal: must be fresh for a record"),
        ({"mechanism": '"grr"'}, "does not fit this type; fitting: auto, sampled_attribute"),
        (
            {"mechanism": '"sampled_attribute"', "parameters": "{ starts = 1 }"},
            "follows from the metric's",
        ),
    ],
)
def test_a_table_that_breaks_a_rule_is_refused_by_it(
    changes: dict[str, str | None], rule: str
) -> None:
    with pytest.raises(RegistryError, match=rf"metrics\.m\b.*{rule}"):
        metric(**changes)


def test_what_values_mean_is_in_the_digest() -> None:
    others = [
        metric(label='["left", "stayed"]'),
        metric(attributes='{ plan = ["free", "pro", "team"], age = { edges = [30, 50] } }'),
        metric(attributes='{ plan = ["free", "pro", "club"], age = { edges = [30, 50.5] } }'),
        metric(attributes='{ plans = ["free", "pro", "team"], age = { edges = [30, 50.5] } }'),
        metric(attributes='{ age = { edges = [30, 50.5] }, plan = ["free", "pro", "team"] }'),
    ]

    assert len({metric().digest, *(other.digest for other in others)}) == 6


def test_a_compiled_registry_gives_the_same_metric() -> None:
    registry = Registry.from_text(
        file_with(
            RECORD,
            aggregate='"last"',
            otherwise='{ plan = "free", age = 30, label = "stayed" }',
        )
    )

    (of,) = Registry.from_text(compiled(registry))

    assert of.meaning == registry.metric("m").meaning
    assert of.mechanism == registry.metric("m").mechanism
    assert of.otherwise == registry.metric("m").otherwise == Record((0, 8))
    assert of.domain == registry.metric("m").domain


def test_typed_handles_take_labels_as_they_are_declared_and_numbers() -> None:
    module = module_of(Registry.from_text(file_with(RECORD)))

    assert "class MValue(TypedDict):" in module
    assert "    age: float\n    label: Literal[" in module


def device(tmp_path: Path, transport: ScriptedTransport) -> Client:
    form = (
        'type = "record"\nlabel = ["stayed", "left"]\n'
        'attributes = { plan = ["free", "pro", "team"], age = { edges = [30, 50.5] } }'
    )
    registry = registry_of(metric_text("m", form, every="once"))
    return make_client(tmp_path, registry=registry, transport=transport)


def test_what_is_refused_is_counted_and_a_good_record_is_not_lost_for_it(tmp_path: Path) -> None:
    with device(tmp_path, ScriptedTransport()) as client:
        for value in NO_RECORDS:
            client.record("m", value)
        client.record("m", GOOD)
        client.flush()

        assert changed(client) == {"invalid_value": len(NO_RECORDS), "recorded": 1, "uploaded": 1}


def test_a_device_that_is_asked_twice_answers_once_and_repeats_its_bytes(tmp_path: Path) -> None:
    """Whatever is recorded later, also by a later run: one report and one charge."""
    transport = ScriptedTransport([TransportError("the network is down")])
    with device(tmp_path, transport) as client:
        client.record("m", GOOD)
        client.flush()
        client.record("m", {**GOOD, "plan": "free"})
        client.flush()
    with device(tmp_path, transport) as again:
        again.record("m", {**GOOD, "label": "stayed"})
        again.flush()

    assert len(set(transport.sent)) == 1
    (total,) = rows(tmp_path, "SELECT nano FROM totals")
    assert total == (metric().mechanism.spent_nano,)
