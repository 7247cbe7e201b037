"""What is told of a relay for a metric: nothing where a rule fails, and never less than can be."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any, Final

import pytest
from click.testing import CliRunner

from client_sdk.core.errors import InvalidParameterError
from collector.cli import main
from collector.core.text_tables import above
from collector.planning.amplification import reached, shuffled
from collector.planning.shuffling import (
    DELTA,
    crossing_of,
    epsilon_of,
    honest_of,
    refusal,
    rounded_down,
    shuffled_data,
    shuffled_lines,
    shuffled_of,
    together,
)
from tests.support.device.registries import CATEGORY, NUMBER, STRING, TWO_LAYER, file_with
from tests.support.enumeration.populations import metric_of

FAMILIES: Final = ("grr", "oue", "hadamard", "subset_selection", "sue", "pgr", "olh")


def test_nothing_is_claimed_where_reports_are_linked_or_the_bound_is_for_none() -> None:
    linked, text = metric_of(TWO_LAYER), metric_of(STRING)

    assert refusal(metric_of(CATEGORY)) is None
    for metric in (linked, text):
        assert refusal(metric)
        assert shuffled_data(metric, 10_000)["windows"] == []
        assert "no claim" in "".join(shuffled_lines(metric, 10_000))
        with pytest.raises(InvalidParameterError, match="metric"):
            shuffled_of(metric, 10_000)
    rough = metric_of(NUMBER, mechanism='"discrete_gaussian"')
    assert "delta" in (refusal(rough) or "")
    assert shuffled_data(metric_of(CATEGORY), 10, Fraction(19, 20))["windows"] == []


def test_devices_that_collude_hide_nobody() -> None:
    metric = metric_of(CATEGORY)

    data = shuffled_data(metric, 10_000, Fraction(2, 5))

    assert data["windows"][0]["devices"] == 6_000
    alone = shuffled_of(metric, 6_000).epsilon
    assert data["windows"][0]["epsilon"] == pytest.approx(alone, rel=1e-9)
    assert honest_of(10, Fraction(1, 3)) == 6  # never one too many
    assert len(shuffled_data(metric_of(CATEGORY, every='"once"'), 100)["windows"]) == 1


@pytest.mark.parametrize("number", [0.02151, 1.0, 0.999999, 3.0000001e-8, 12.3456, 1e-8])
def test_a_bound_is_never_told_smaller_than_it_is(number: float) -> None:
    assert number * (1 - 1e-9) <= float(above(number)) <= number * 1.0101


def test_the_command_tells_the_same_as_text_and_as_json(tmp_path: Any) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(file_with(CATEGORY), "utf-8")

    text = CliRunner().invoke(main, ["plan", str(path), "m", "--shuffled", "--devices", "50000"])
    plain = CliRunner().invoke(
        main, ["plan", str(path), "m", "--shuffled", "--devices", "50000", "--json"]
    )

    first = json.loads(plain.output)["windows"][0]
    assert (text.exit_code, plain.exit_code) == (0, 0)
    assert first["devices"] == 50_000
    assert above(first["epsilon"]) in text.output
    assert "does not work with the collector" in " ".join(text.output.split())


@pytest.mark.parametrize("name", FAMILIES)
def test_no_attack_on_a_mechanism_reaches_more_than_is_told_of_it(name: str) -> None:
    metric = metric_of(CATEGORY, mechanism=f'"{name}"')

    bound, crossing = shuffled_of(metric, 5_000), crossing_of(metric)

    assert 0 < bound.epsilon < epsilon_of(metric) / 5
    if crossing is not None:
        assert 0.6 * bound.epsilon < reached(crossing, 5_000, DELTA) <= bound.epsilon


@pytest.mark.parametrize("name", ["duchi", "square_wave", "piecewise", "hybrid"])
def test_no_attack_on_numbers_reaches_more_than_is_told(name: str) -> None:
    metric = metric_of(NUMBER, mechanism=f'"{name}"')

    bound, crossing = shuffled_of(metric, 5_000), crossing_of(metric)

    assert crossing is None or 0 < reached(crossing, 5_000, DELTA) <= bound.epsilon


def test_groups_together_are_never_told_less_than_any_of_them() -> None:
    metric, other = metric_of(CATEGORY), metric_of(CATEGORY, epsilon='"2"')

    both = together([(metric, 40_000), (metric, 41_000), (other, 300)])

    assert (both.delta, both.devices) == (DELTA, 300)
    assert shuffled_of(other, 300).epsilon < both.epsilon < 4
    alone = shuffled_of(metric, 5_000).epsilon
    assert together([(metric, 5_000)]).epsilon == pytest.approx(alone, rel=1e-9)
    assert together([(metric, 2)] * 3).epsilon == 3 * epsilon_of(metric)
    with pytest.raises(InvalidParameterError, match="metric"):
        together([(metric, 5_000), (metric_of(TWO_LAYER), 5_000)])


@pytest.mark.parametrize("devices", [*range(1, 40), 255, 256, 257, 99_999, 10**7])
def test_a_number_of_devices_is_rounded_down_and_little(devices: int) -> None:
    assert 0.91 * devices - 1 < rounded_down(devices) <= devices
    assert rounded_down(rounded_down(devices)) == rounded_down(devices)


def test_the_epsilon_of_a_report_is_not_rounded_down() -> None:
    for name in FAMILIES:
        metric = metric_of(CATEGORY, mechanism=f'"{name}"')
        assert Fraction(epsilon_of(metric)) >= metric.mechanism.spent
        assert epsilon_of(metric) == pytest.approx(float(metric.mechanism.spent))
        assert shuffled(epsilon_of(metric), 1, DELTA).epsilon <= epsilon_of(metric)
