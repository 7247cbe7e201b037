"""The budget of a registry is what the ledger would be charged at most."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from client_sdk.registry import Registry
from collector.budget import budget_lines, cost_of
from tests.support.registries import CATEGORY, NUMBER, TWO_LAYER, file_with


def metric_of(fields: dict[str, str], **changes: str | None) -> Any:
    return Registry.from_text(file_with(fields, **changes)).metric("m")


def test_a_fresh_metric_is_charged_for_every_window_without_end() -> None:
    """Law: ε of a report times the windows of a week and of a year; no bound for life."""
    cost = cost_of(metric_of(CATEGORY, every='"1d"', epsilon='"0.5"'))

    assert (cost.report, cost.week, cost.life) == (Fraction(1, 2), Fraction(7, 2), None)
    assert cost.year == 365 * Fraction(1, 2)


def test_what_is_asked_once_is_charged_once() -> None:
    """Law: a week, a year and a life cost the one report."""
    cost = cost_of(metric_of(CATEGORY, every='"once"'))

    assert cost.report == cost.week == cost.year == cost.life == 1


def test_two_layers_are_charged_for_values_and_not_for_time() -> None:
    """Law: every value for life at most, so a year costs no more than the life does."""
    metric = metric_of(TWO_LAYER, every='"1d"')
    life = metric.policy.spent_for_life()

    cost = cost_of(metric)

    assert life is not None
    assert cost.life == life
    assert cost.year == life <= 3 * 3
    assert cost.report == Fraction(metric.most_nano, 10**9)


def test_the_page_adds_up_and_names_the_caps() -> None:
    """Law: one line a metric, the sums below, rounded up and never down."""
    text = file_with(CATEGORY, epsilon='"0.333333333"', every='"1d"')

    lines = list(budget_lines(Registry.from_text(text)))

    assert lines[2].split() == ["m", "fresh", "1d", "0.334", "2.334", "121.667", "no", "bound"]
    assert lines[-2].startswith("all together 2.334 a week; the SDK's default cap is 8")


def test_a_delta_is_told() -> None:
    """Law: what is not purely private says so."""
    text = file_with({**NUMBER, "mechanism": '"discrete_gaussian"'})

    assert any(
        "also costs δ 1e-06 a report" in line for line in budget_lines(Registry.from_text(text))
    )
