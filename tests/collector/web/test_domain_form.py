"""The domain of every type of metric as JSON: by the keys of its registry, as documented."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from client_sdk.registry import Registry
from client_sdk.registry.kinds import kinds
from collector.web.api.query import describe
from collector.web.api.schemas import Metric
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    FUNNEL,
    KEY_VALUE,
    LOCATION,
    NUMBER,
    PAIR,
    RETENTION,
    SET,
    STRING,
    file_with,
)

FORMS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "boolean": (BOOLEAN, {"values": ["false", "true"]}),
    "category": (CATEGORY, {"values": ["free", "pro", "team"]}),
    "set": (SET, {"values": ["a", "b", "c"]}),
    "number": (NUMBER, {"min": 0, "max": 10.5, "step": 0.5, "unit": "minutes"}),
    "key_value": (
        KEY_VALUE,
        {
            "values": ["video", "music", "chess"],
            "min": -10,
            "max": 30,
            "unit": "minutes",
            "most": 2,
        },
    ),
    "string": (STRING, {"length": 8}),
    "location": (LOCATION, {"min": [-10, 45.5], "max": [30, 47.5], "cells": [4, 2]}),
    "pair": (
        PAIR,
        {
            "parts": [
                {"name": "sex", "values": ["female", "male"]},
                {"name": "income", "values": ["low", "middle", "high"]},
            ]
        },
    ),
    "funnel": (FUNNEL, {"values": ["visit", "cart", "paid"]}),
    "retention": (RETENTION, {"periods": ["week 0", "week 1", "week 2", "week 3"]}),
}


@pytest.mark.parametrize("kind", FORMS)
def test_a_domain_is_told_by_the_keys_of_its_registry(kind: str) -> None:
    """Who reads the JSON needs no other names than who wrote the registry."""
    fields, form = FORMS[kind]
    (metric,) = Registry.from_text(file_with(fields))

    told = json.loads(json.dumps(metric.domain.as_json()))

    assert told == form
    of_answers = {"shape"}  # which tells nothing of values
    assert set(told) == kinds()[kind].table_keys - of_answers or kind == "boolean"


@pytest.mark.parametrize("kind", FORMS)
def test_a_metric_of_every_type_is_as_the_document_says(kind: str) -> None:
    """No key is missing in the OpenAPI document, and none has another type."""
    (metric,) = Registry.from_text(file_with(FORMS[kind][0]))
    body = json.dumps(describe(metric)).encode()

    told = msgspec.json.decode(body, type=Metric)

    assert told.type == kind


def test_what_is_assumed_of_numbers_is_told_beside_their_domain() -> None:
    """Of other values nothing is."""
    shapes = [
        describe(metric).get("shape")
        for fields in ({**NUMBER, "shape": '"smooth"'}, NUMBER, SET)
        for metric in Registry.from_text(file_with(fields))
    ]

    assert shapes == ["smooth", "any", None]
