"""A value becomes the same in both languages: exactly what a mechanism takes, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from client_sdk.registry import Registry
from tests.client_sdk_ts.device import Answer, Device, Line, as_map, device_of, encoded, write
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
    table,
)
from tests.support.node import Node

# Texts that languages take differently: keys of every object, numbers, halves of pairs, accents.
LABELS: Final = '["__proto__", "constructor", "10", "2", "😀", "\ufffd", "é", "e\u0301", "İ", "ß"]'
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
        table("short", {**STRING, "length": "2"}),
        table("long", {**STRING, "length": "128"}),
        table("steps", {**FUNNEL, "values": LABELS}),
        table("weeks", {**RETENTION, "periods": '["0", "1", "__proto__", "valueOf"]'}),
    )
)
REGISTRIES: Final = {
    name: Registry.from_text(t) for name, t in (("notes", EVERY_TYPE), ("strange", STRANGE))
}
NUMBERS: Final = (
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
    numbers = NUMBERS | st.sampled_from(CORNERS)
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
