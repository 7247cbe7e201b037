"""A value and its report are the same in both languages, from the same registry and entropy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from client_sdk.mechanisms import (
    FrequencyOracle,
    ItemMechanism,
    KeyValueMechanism,
    SetMechanism,
    TextMechanism,
    load,
)
from client_sdk.mechanisms.items.cover import MAX_ITEMS, MAX_SETS, Cover
from client_sdk.registry import Registry
from client_sdk.registry.encodings import NUMBERS, Family
from client_sdk.registry.selection import fitting_names
from tests.client_sdk_ts.channels import MECHANISMS
from tests.client_sdk_ts.device import (
    SECRET,
    Answer,
    Device,
    Line,
    as_map,
    device_of,
    encoded,
    payload,
    write,
)
from tests.client_sdk_ts.registries import EVERY_TYPE
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

# Texts that languages take differently: keys of every object, numbers, halves of pairs, accents.
LABELS: Final = '["__proto__", "constructor", "10", "2", "😀", "\ufffd", "é", "e\u0301", "İ", "ß"]'
LONG_ORDER: Final = str([f"step {number}" for number in range(64)]).replace("'", '"')
STRANGE: Final = HEAD.replace('"notes"', '{ name = "strange", separate = true }') + "".join(
    (
        table("__proto__", BOOLEAN),
        table("constructor", {**CATEGORY, "values": LABELS}),
        table("open", {**CATEGORY, "values": LABELS, "other": '"ſ"', "mechanism": '"auto"'}),
        table("held", {**SET, "values": LABELS}, aggregate='"last"', otherwise='["😀", "\ufffd"]'),
        table("parts", {**PAIR, "parts": f'{{ __proto__ = {LABELS}, constructor = ["a", "b"] }}'}),
        table(
            "sums",
            {**KEY_VALUE, "values": LABELS, "min": "-1e-7", "max": "0.3"},
            aggregate='"last"',
            otherwise='{ "__proto__" = 0, "2" = 0.3, "10" = 0.1, "😀" = 0, "\ufffd" = 0 }',
        ),
        table("tenths", {**NUMBER, "min": "-0.3", "max": "0.7", "step": "0.1"}),
        table("far", {**NUMBER, "min": "-1e300", "max": "1e300", "step": "1e299"}),
        table("fine", {**NUMBER, "min": "0", "max": "1e-300", "step": "1e-301"}),
        table("map", {**LOCATION, "min": "[-180, -90]", "max": "[180, 90]", "cells": "[7, 11]"}),
        table("order", {**CATEGORY, "values": LONG_ORDER, "mechanism": '"cover"'}),  # 4 kB of sets
        table("short", {**STRING, "length": "2"}),
        table("long", {**STRING, "length": "128"}),
        table("steps", {**FUNNEL, "values": LABELS}),
        table("weeks", {**RETENTION, "periods": '["0", "1", "__proto__", "valueOf"]'}),
    )
)
REGISTRIES: Final = {
    name: Registry.from_text(t) for name, t in (("notes", EVERY_TYPE), ("strange", STRANGE))
}
SOME_NUMBERS: Final = (
    st.integers(-(1 << 70), 1 << 70) | st.integers(-20, 20) | st.floats() | st.floats(-20, 20)
)
CORNERS: Final = (
    *(0, -0.0, 0.1, 0.3, 0.7, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308),
    *(1e-300, 1e-301, 1e299, 2**53 - 1, 2**53, 10**400, -(10**400), 45.5, 90, 180, -180.0),
    *(float("nan"), float("inf"), -float("inf")),
)


@pytest.fixture(scope="module")
def devices(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Device]]:
    folder = tmp_path_factory.mktemp("registries")
    first, second = REGISTRIES.values()
    with device_of(node, first, folder) as notes, device_of(node, second, folder) as strange:
        yield {first.app: notes, second.app: strange}


def labels_of(registry: Registry) -> list[str]:
    labels = {label for metric in registry for label in metric.domain.value_labels()}
    return sorted(
        labels | {part for m in registry for p in m.domain.parts.items() for part in (p[0], *p[1])}
    )


def values_of(registry: Registry) -> st.SearchStrategy[Any]:
    """Return values of every kind, many of which some metric of *registry* takes."""
    texts = st.sampled_from(labels_of(registry)) | st.text(
        st.characters(exclude_categories=()), max_size=12
    )
    numbers = SOME_NUMBERS | st.sampled_from(CORNERS)
    plain = st.none() | st.booleans() | st.just(...) | numbers | texts
    names = [name for metric in registry for name in metric.domain.parts]
    answers = [
        st.fixed_dictionaries(dict.fromkeys(m.domain.parts, texts))
        for m in registry
        if m.domain.parts
    ]
    return st.one_of(
        plain,
        texts,
        numbers,
        st.tuples(numbers, numbers),
        st.lists(plain, max_size=3),
        st.lists(texts, max_size=5),
        st.frozensets(texts, max_size=5),
        st.dictionaries(texts, numbers, max_size=4),
        st.dictionaries(texts | st.sampled_from([*names, 1]), texts | plain, max_size=3),
        *answers,
    )


def is_writable(value: Any) -> bool:
    """Whether no halves of a pair meet in a text of *value*: Python keeps them apart."""
    return bool(json.loads(json.dumps(write(value))) == write(value))


def is_reordered(value: Any) -> bool:
    """Whether an object of JavaScript may hold *value* in another order: whole numbers go first."""
    return isinstance(value, Mapping) and any(str(key).isdecimal() for key in value)


def lines_of(registry: Registry, values: Sequence[Any]) -> tuple[list[Line], list[Answer]]:
    """Return every value of every metric as lines, and what Python answers."""
    lines, expected = [], []
    for metric, value in product(registry, values):
        forms = [] if is_reordered(value) else [write(value)]
        if isinstance(value, Mapping):
            forms.append(as_map(value))
        for form in forms:
            lines.append({"metric": metric.name, "value": form, "encode": True})
            expected.append(encoded(metric, value))
    return lines, expected


@pytest.mark.parametrize("app", REGISTRIES)
def test_values_of_every_kind_are_encoded_or_refused_alike(
    devices: dict[str, Device], app: str
) -> None:
    registry, device = REGISTRIES[app], devices[app]

    @settings(max_examples=100, suppress_health_check=list(HealthCheck))
    @given(st.lists(values_of(registry).filter(is_writable), min_size=1, max_size=4))
    def check(values: list[Any]) -> None:
        lines, expected = lines_of(registry, values)
        assert device.ask(lines) == expected

    check()


@pytest.mark.parametrize("app", REGISTRIES)
def test_every_metric_takes_some_of_the_corners_and_refuses_others(
    devices: dict[str, Device], app: str
) -> None:
    registry = REGISTRIES[app]
    labels = labels_of(registry)
    pairs = [
        {name: part[-1] for name, part in metric.domain.parts.items()}
        for metric in registry
        if metric.domain.parts
    ]
    values = [*CORNERS, *product(CORNERS, CORNERS[::3]), *labels, *map(tuple, [labels[:1]]), *pairs]
    values += [True, None, ..., [], {}, {labels[0]: 0.1}, {"chess": 1, "video": 2}]
    lines, expected = lines_of(registry, values)

    answers = devices[app].ask(lines)

    assert answers == expected
    outcomes = {(line["metric"], *answer) for line, answer in zip(lines, answers, strict=True)}
    assert outcomes >= {(name, kind) for name in registry.metrics for kind in ("encoded", "error")}


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


def test_the_largest_table_is_read_alike(node: Node, tmp_path: Path) -> None:
    """Law: what a registry may hold in Python does not end a device in TypeScript."""
    items, chance = MAX_ITEMS, Random(1)
    sets = [(65_535 - i, chance.getrandbits(items) | 1 << i % items) for i in range(MAX_SETS)]
    own = f"{{ sets = {hex(Cover.table_of(sets, items)['sets'])} }}"
    values = str([f"item {item}" for item in range(items)]).replace("'", '"')
    category = {**CATEGORY, "values": values, "mechanism": '"cover"', "parameters": own}
    registry = Registry.from_text(HEAD + table("many", category))
    metric = registry.metric("many")
    line = {"metric": "many", "value": "item 200", "entropy": "07", "secret": SECRET.hex()}

    with device_of(node, registry, tmp_path) as device:
        answers = device.ask([line])

    assert answers == [payload(metric, "item 200", b"\x07")]
