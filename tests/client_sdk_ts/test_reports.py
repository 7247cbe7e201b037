"""From the same entropy both languages make the same report, of every type and mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from client_sdk.mechanisms import (
    FrequencyOracle,
    ItemMechanism,
    KeyValueMechanism,
    SetMechanism,
    TextMechanism,
    load,
)
from client_sdk.registry import Registry
from client_sdk.registry.encodings import NUMBERS, Family
from client_sdk.registry.selection import fitting_names
from tests.client_sdk_ts.channels import MECHANISMS
from tests.client_sdk_ts.device import SECRET, Device, device_of, payload, write
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    FUNNEL,
    HEAD,
    KEY_VALUE,
    LOCATION,
    NUMBER,
    PAIR,
    RETENTION,
    SET,
    STRING,
    TWO_LAYER,
    table,
)
from tests.support.node import Node

SEEDS: Final = 12  # of each value
_OTHER: Final = {**CATEGORY, "other": '"else"'}
_SAME: Final = {**CATEGORY, "longitudinal": '"permanent"'}
_KEYS: Final = {"hours": {"chess": -1, "video": 0.1, "music": 99}, "none": {}}
# Of each kind of metric: which mechanisms serve it, what it is, and values.
KINDS: Final[dict[str, tuple[Family, dict[str, str], tuple[Any, ...]]]] = {
    "boolean": (ItemMechanism, BOOLEAN, (True, False)),
    "category": (ItemMechanism, _OTHER, ("pro", "something else")),
    "funnel": (ItemMechanism, FUNNEL, (None, "paid")),
    "retention": (ItemMechanism, RETENTION, ({"week 0", "week 3"}, [])),
    "pair": (ItemMechanism, PAIR, ({"sex": "male", "income": "high"},)),
    "location": (ItemMechanism, LOCATION, ((13.4, 46.9), (-99, 99))),
    "number": (NUMBERS, NUMBER, (0.1, 3, 1e300, -0.0)),
    "count": (NUMBERS, {**NUMBER, "type": '"count"', "max": "1000"}, (999, 0.5)),
    "set": (SetMechanism, SET, (["a", "c"], [], ("a", "b", "c"))),
    "key_value": (KeyValueMechanism, KEY_VALUE, (*_KEYS.values(), {"chess": 7})),
    "string": (TextMechanism, STRING, ("", "überall", "abcdefghij")),
    "permanent": (FrequencyOracle, _SAME, ("free", "team")),
    "two_layer": (FrequencyOracle, TWO_LAYER, ("free", "team")),
}


def registry() -> Registry:
    """Return a registry of each mechanism with each kind of metric that it serves."""
    tables = [
        table(f"{kind}.{name}", {**fields, "mechanism": f'"{name}"'})
        for kind, (family, fields, _) in KINDS.items()
        for name in fitting_names(family)
        if name in MECHANISMS and (family is not FrequencyOracle or is_pure(name))
    ]
    return Registry.from_text(HEAD + "".join(tables))


def is_pure(name: str) -> bool:
    oracle = load(name)("1", 3)
    return isinstance(oracle, FrequencyOracle) and oracle.pure


@pytest.fixture(scope="module")
def every(
    node: Node, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Registry, Device]]:
    metrics = registry()
    with device_of(node, metrics, tmp_path_factory.mktemp("registry")) as device:
        yield metrics, device


def test_the_same_entropy_gives_the_same_report(every: tuple[Registry, Device]) -> None:
    metrics, device = every
    assert {metric.mechanism_name for metric in metrics} == set(MECHANISMS)
    lines, expected = [], []
    for metric in metrics:
        _, _, values = KINDS[metric.name.partition(".")[0]]
        for i, value in enumerate(values):
            for number in range(SEEDS):
                seed = metric.digest + bytes([i, number])
                line = {"metric": metric.name, "value": write(value), "entropy": seed.hex()}
                lines.append({**line, "secret": SECRET.hex()})
                expected.append(payload(metric, value, seed))

    answers = device.ask(lines)

    assert answers == expected
    assert (
        len(
            {
                (line["metric"], *answer.values())
                for line, answer in zip(lines, answers, strict=True)
            }
        )
        > len(lines) / 4
    )
