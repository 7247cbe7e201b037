"""What stands beside a chart in words: which segments are higher, and who counts longer periods."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from flask import Flask

from client_sdk.registry import Registry
from collector.analytics.rows import GOOD, SHARE, Row, empty_row
from collector.web.pages.beside import order_text
from collector.web.pages.devices import longer

LENGTHS = ("1h", "1d", "7d", "28d", "once")
ENTRY = (
    '[metrics.m{every}]\ntitle = "Of {every}"\nquestion = "Really?"\ntype = "boolean"\n'
    'epsilon = "1"\nevery = "{every}"\nlongitudinal = "fresh"\nexpected_devices = 10000\n'
    'min_reports = 100\nowner = "team"\nexpires = 2027-12-31\n'
)
TEXT = 'schema = 1\napp = "app"\n' + "".join(ENTRY.format(every=every) for every in LENGTHS)


def rows(*ends: tuple[str, float, float]) -> Sequence[Row]:
    """Return a row a segment, each in the middle of its interval."""
    return [
        Row({"platform": name, "item": "yes"}, (low + high) / 2, low, high, 0.01, 900, 0.05, GOOD)
        for name, low, high in ends
    ]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (
            [("a", 0.1, 0.2), ("b", 0.5, 0.6), ("c", 0.3, 0.4)],
            "More than noise: b is higher than c and a; c is higher than a.",
        ),
        ([("a", 0.1, 0.3), ("b", 0.3, 0.5), ("c", 0.31, 0.6)],
         "More than noise: c is higher than a."),
        ([("a", -0.3, -0.2), ("b", -0.1, 0.1)], "More than noise: b is higher than a."),
        ([("a", 0.1, 0.3), ("b", 0.2, 0.4)], ""),
    ],
)  # fmt: skip
def test_segments_are_higher_only_where_intervals_are_apart(
    ends: list[tuple[str, float, float]], said: str
) -> None:
    assert order_text(rows(*ends)) == said


def test_a_segment_without_a_number_is_higher_than_none() -> None:
    blank = empty_row({"platform": "z", "item": "yes"}, 3, 0.05, SHARE, "too few")

    assert order_text([*rows(("a", 0.1, 0.2), ("b", 0.5, 0.6)), blank]) == (
        "More than noise: b is higher than a."
    )


@pytest.mark.parametrize(
    ("own", "others"),
    [("m1h", ["Of 1d", "Of 7d", "Of 28d"]), ("m1d", ["Of 7d", "Of 28d"]), ("m28d", [])],
)
def test_who_counts_devices_is_led_to_those_of_longer_periods(
    site: Flask, own: str, others: list[str]
) -> None:
    """Law: of reports of days a week has bounds only; a metric of weeks counts its devices."""
    with site.test_request_context():
        notices = list(longer(own, list(Registry.from_text(TEXT))))

    assert [notice.words for notice in notices] == others
    assert all(f"metric=m{each[3:]}&" in n.url for each, n in zip(others, notices, strict=True))
