"""Segments keep tallies apart by the dimensions that a metric declares, and by no others."""

from __future__ import annotations

import pytest

from client_sdk.registry import Registry
from collector.core.cells import is_declared, matches, segment_text
from tests.support.crowds.uploads import registry, registry_text

REGISTRY = registry()
PAGE = REGISTRY.metric("page")  # has the dimension platform
AGE = REGISTRY.metric("age")  # has none


@pytest.mark.parametrize(
    "segment", [{}, {"platform": "mac"}, {"platform": "linux", "channel": "beta"}]
)
def test_a_segment_of_registered_values_is_declared(segment: dict[str, str]) -> None:
    assert is_declared(segment, PAGE)


@pytest.mark.parametrize(
    "segment", [{"platform": "amiga"}, {"platform": ""}, {"platform": "amiga", "channel": "beta"}]
)
def test_a_segment_with_any_other_value_is_not_declared(segment: dict[str, str]) -> None:
    assert not is_declared(segment, PAGE)


def test_a_metric_without_dimensions_has_one_tally_for_everybody() -> None:
    assert segment_text(AGE, {"platform": "mac", "channel": "beta"}) == ""


def test_dimensions_that_a_metric_does_not_keep_apart_leave_no_trace() -> None:
    with_channel = segment_text(PAGE, {"platform": "mac", "channel": "beta"})

    assert with_channel == segment_text(PAGE, {"platform": "mac"})


def test_a_device_that_did_not_say_has_a_tally_of_its_own() -> None:
    said = {segment_text(PAGE, {"platform": value}) for value in ("linux", "mac")}

    assert segment_text(PAGE, {}) not in said


def test_a_question_about_everybody_matches_every_segment() -> None:
    texts = [segment_text(PAGE, {}), segment_text(PAGE, {"platform": "mac"})]

    assert all(matches(text, {}) for text in texts)


def test_a_question_about_a_segment_matches_only_that_segment() -> None:
    found = [
        value
        for value in ("linux", "mac", None)
        if matches(segment_text(PAGE, {"platform": value} if value else {}), {"platform": "mac"})
    ]

    assert found == ["mac"]


def test_a_segment_text_of_another_time_without_dimensions_matches_no_segment() -> None:
    assert not matches("", {"platform": "mac"})


def test_what_was_stored_keeps_its_meaning_when_a_dimension_comes_or_goes() -> None:
    wider = Registry.from_text(
        registry_text().replace('segments = ["platform"]', 'segments = ["channel", "platform"]')
    ).metric("page")
    before = segment_text(PAGE, {"platform": "mac"})
    after = segment_text(wider, {"platform": "mac", "channel": "beta"})

    assert wider.digest == PAGE.digest
    assert matches(before, {"platform": "mac"})
    assert not matches(before, {"channel": "beta"})
    assert matches(after, {"platform": "mac"})
    assert matches(after, {"channel": "beta"})


def test_dimensions_that_a_metric_does_not_keep_apart_refuse_no_report() -> None:
    assert is_declared({"platform": "mac", "colour": "unheard of"}, PAGE)
