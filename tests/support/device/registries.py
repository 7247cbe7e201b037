"""Registry files for tests: a good one, and good ones with one thing changed."""

from __future__ import annotations

from typing import Final

HEAD: Final = """
schema = 1
app = "notes"

[segments]
platform = ["linux", "mac"]
"""

BOOLEAN: Final = {
    "title": '"Dark mode"',
    "question": '"Is dark mode worth maintaining?"',
    "type": '"boolean"',
    "epsilon": '"1.0"',
    "every": '"7d"',
    "longitudinal": '"fresh"',
    "mechanism": '"grr"',
    "segments": '["platform"]',
    "expected_devices": "20000",
    "min_reports": "500",
    "owner": '"team-ui"',
    "expires": "2099-12-31",
}
CATEGORY: Final = {**BOOLEAN, "type": '"category"', "values": '["free", "pro", "team"]'}
TWO_LAYER: Final = {
    **CATEGORY,
    "longitudinal": '"two_layer"',
    "epsilon_permanent": '"3"',
    "mechanism": '"auto"',
}
SET: Final = {**BOOLEAN, "type": '"set"', "values": '["a", "b", "c"]', "mechanism": '"auto"'}
NUMBER: Final = {
    **BOOLEAN,
    "type": '"number"',
    "mechanism": '"discrete_laplace"',
    "min": "0",
    "max": "10.5",
    "step": "0.5",
    "unit": '"minutes"',
}
KEY_VALUE: Final = {
    **BOOLEAN,
    "type": '"key_value"',
    "mechanism": '"auto"',
    "values": '["video", "music", "chess"]',
    "min": "-10",
    "max": "30",
    "unit": '"minutes"',
    "most": "2",
}
LOCATION: Final = {
    **BOOLEAN,
    "type": '"location"',
    "mechanism": '"auto"',
    "min": "[-10, 45.5]",
    "max": "[30, 47.5]",
    "cells": "[4, 2]",
}
PAIR: Final = {
    **BOOLEAN,
    "type": '"pair"',
    "mechanism": '"auto"',
    "parts": '{ sex = ["female", "male"], income = ["low", "middle", "high"] }',
}
STRING: Final = {**BOOLEAN, "type": '"string"', "mechanism": '"auto"', "length": "8"}
FUNNEL: Final = {
    **BOOLEAN,
    "type": '"funnel"',
    "mechanism": '"auto"',
    "values": '["visit", "cart", "paid"]',
}
RETENTION: Final = {
    **BOOLEAN,
    "type": '"retention"',
    "mechanism": '"auto"',
    "periods": '["week 0", "week 1", "week 2", "week 3"]',
}
RECORD: Final = {
    **BOOLEAN,
    "type": '"record"',
    "mechanism": '"auto"',
    "label": '["stayed", "left"]',
    "attributes": '{ plan = ["free", "pro", "team"], age = { edges = [30, 50.5] } }',
}
VECTOR: Final = {
    **BOOLEAN,
    "type": '"vector"',
    "mechanism": '"auto"',
    "length": "3",
    "unit": '"points"',
}
TASTE: Final = {
    **BOOLEAN,
    "type": '"taste"',
    "mechanism": '"auto"',
    "values": '["news", "chess", "sport"]',
    "every": '"once"',
}


def table(name: str, fields: dict[str, str], **changes: str | None) -> str:
    """Return a metric's table with fields changed, or left out where the change is None."""
    merged = {**fields, **changes}
    lines = [f"{key} = {text}" for key, text in merged.items() if text is not None]
    return "\n".join([f'[metrics."{name}"]', *lines, ""])


def file_with(fields: dict[str, str], **changes: str | None) -> str:
    """Return a registry of the one metric ``m``."""
    return HEAD + table("m", fields, **changes)
