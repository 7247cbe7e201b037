"""Records in a registry: what is declared, what a value becomes, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.client import Client
from client_sdk.core.errors import TransportError
from client_sdk.mechanisms import Record
from client_sdk.registry import Registry
from collector.planning.codegen import module_of
from tests.support.device.device import make_client, metric_text, registry_of, rows
from tests.support.device.device_transport import ScriptedTransport
from tests.support.device.registries import RECORD, file_with
from tests.support.enumeration.populations import metric_of

GOOD: Final = {"plan": "pro", "age": 41, "label": "left"}


@pytest.mark.parametrize(
    ("age", "item"),
    [
        *((-1e300, 0), (29.999, 0), (30, 1), (Decimal("50.49"), 1), (np.float64(50.5), 2)),
        *((Fraction(101, 2), 2), (10**400, 2), ("30 to 50.5", 1), ("50.5 or more", 2)),
    ],
)
def test_a_number_is_of_the_range_that_begins_at_it_or_below(age: Any, item: int) -> None:
    of = metric_of(RECORD)

    assert of.encode({**GOOD, "age": age}) == Record((3, 6 + 2 * item + 1))


def test_items_are_told_by_attribute_value_and_label() -> None:
    domain: Any = metric_of(RECORD).domain

    assert domain.labels[3] == "plan: pro | left"
    assert domain.labels[6:8] == ("age: below 30 | stayed", "age: below 30 | left")
    assert domain.as_given(Record((3, 9))) == {"plan": "pro", "age": "30 to 50.5", "label": "left"}
    assert domain.in_words(Record((3, 9))) == "plan: pro, age: 30 to 50.5, label: left"


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
    assert total == (metric_of(RECORD).mechanism.spent_nano,)
