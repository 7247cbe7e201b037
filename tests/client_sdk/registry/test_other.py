"""``other``: every text that is not listed is one item, and that is all a report can tell of it."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction

import pytest

from client_sdk.core.errors import InvalidValueError
from client_sdk.core.randomness import Randomness
from client_sdk.privacy.caps import DEFAULT_CAPS
from client_sdk.privacy.wording import explain
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.testing import MemoryClient
from tests.support.device.registries import (
    CATEGORY,
    SET,
    file_with,
)
from tests.support.enumeration.enumeration import distribution, exp_below, largest_ratio

UNLISTED = ("emacs", "", "PRO", "\ud800", "x" * 10_000)
MECHANISMS = ("grr", "oue", "sue", "subset_selection", "hadamard")


class Terminal(StrEnum):
    KITTY = "kitty"


def metric_of(fields: dict[str, str], **changes: str | None) -> Metric:
    (metric,) = Registry.from_text(file_with(fields, **{"other": '"other"', **changes}))
    return metric


def law(metric: Metric, value: object) -> dict[object, Fraction]:
    """Return the exact law of the reports of a device that records *value*."""
    return distribution(
        lambda randomness: metric.mechanism.randomize(metric.encode(value), randomness)
    ).pmf


@pytest.mark.parametrize("value", [*UNLISTED, Terminal.KITTY, "other"])
def test_a_text_that_is_not_listed_is_the_item(value: str) -> None:
    assert metric_of(CATEGORY).encode(value) == 3
    assert metric_of(SET).encode(["b", value, "zzz"]) == {1, 3}


def test_a_listed_text_is_itself() -> None:
    assert metric_of(CATEGORY).encode("pro") == 1
    assert metric_of(SET).encode(["a"]) == {0}


@pytest.mark.parametrize("value", [None, 7, b"pro", ["pro"], True])
def test_what_is_no_text_is_refused_as_before(value: object) -> None:
    """Law: a mistake of the program is not counted as a rare answer."""
    with pytest.raises(InvalidValueError, match="takes a text"):
        metric_of(CATEGORY).encode(value)
    with pytest.raises(InvalidValueError, match="takes a list or set of texts"):
        metric_of(SET).encode(value if isinstance(value, str) else [value])


def test_it_is_the_last_item_unless_it_is_listed() -> None:
    """Law: both ways to write the same domain are one metric."""
    appended = metric_of(CATEGORY, values='["free", "pro"]', other='"none of these"')
    listed = metric_of(CATEGORY, values='["free", "pro", "none of these"]', other='"none of these"')
    first = metric_of(CATEGORY, values='["other", "free", "pro"]')

    assert appended.domain.labels == ("free", "pro", "none of these")
    assert appended.digest == listed.digest
    assert first.encode("emacs") == 0


def test_the_digest_tells_whether_unlisted_texts_count() -> None:
    """Law: reports of both are never added; without the key nothing is as it was not."""
    values = '["free", "pro", "other"]'
    (without,) = Registry.from_text(file_with(CATEGORY, values=values))

    assert without.domain.canonical() == {"values": ["free", "pro", "other"]}
    assert metric_of(CATEGORY, values=values).digest != without.digest


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_reports_of_unlisted_texts_have_one_law_and_no_more_than_epsilon(mechanism: str) -> None:
    """Law: exactly that of the item, whatever the text, within e^ε of every other answer."""
    metric = metric_of(CATEGORY, mechanism=f'"{mechanism}"')
    laws = [law(metric, value) for value in ("free", "pro", "team", "other")]

    assert {law(metric, text) == laws[3] for text in UNLISTED} == {True}
    assert largest_ratio(laws) <= exp_below(metric.mechanism.spent) * (1 + Fraction(1, 10**90))


def test_reports_of_sets_with_unlisted_texts_have_the_law_of_the_item() -> None:
    metric = metric_of(SET, mechanism='"sampled_item"')
    sets: list[list[str]] = [[], ["a"], ["b", "other"], ["a", "b", "c", "other"]]
    laws = [law(metric, held) for held in sets]

    assert law(metric, ["emacs", "b", "vi"]) == laws[2]
    assert largest_ratio(laws) <= exp_below(metric.mechanism.spent) * (1 + Fraction(1, 10**90))


def test_a_device_that_treats_unlisted_texts_apart_would_be_caught() -> None:
    """The control: one that sends the item without randomizing it, or once more by a coin."""
    metric = metric_of(CATEGORY)

    def bare(randomness: Randomness) -> bytes:
        return bytes([3])

    def again(randomness: Randomness) -> bytes:
        report = metric.mechanism.randomize(3, randomness)
        return metric.mechanism.randomize(3, randomness) if report != bytes([3]) else report

    laws = [law(metric, value) for value in ("free", "pro", "team")]

    bound = exp_below(metric.mechanism.spent) * (1 + Fraction(1, 10**90))
    assert largest_ratio([*laws, distribution(bare).pmf]) > bound
    assert largest_ratio([*laws, distribution(again).pmf]) > bound


def test_silence_is_reported_as_a_registered_value() -> None:
    kept = metric_of(CATEGORY, aggregate='"last"', otherwise='"other"')

    assert kept.otherwise == 3


@pytest.mark.parametrize("fields", [CATEGORY, SET])
def test_people_are_told_what_else_counts(fields: dict[str, str]) -> None:
    assert "; anything else counts as other." in explain(metric_of(fields), DEFAULT_CAPS)


def test_a_device_records_it_and_refuses_nothing() -> None:
    client = MemoryClient(Registry.from_text(file_with(CATEGORY, other='"other"')))

    client.record("m", "emacs")

    assert client.stats()["recorded"] == 1
    assert client.refused == []
