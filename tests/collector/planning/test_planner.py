"""A plan tells the same both ways, and the same as lint and answers."""

from __future__ import annotations

import json
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from client_sdk.registry import Registry
from collector.cli import main
from collector.estimation.precision import half_width, reports_for, still_needed
from collector.planning.planner import (
    DEVICES,
    Line,
    PlanRequest,
    curves,
    data_of,
    least_epsilon,
    lines_of,
    mechanism_at,
    plan,
)
from collector.planning.registry_report import warnings
from collector.query.request import LEAST_ALPHA, MOST_ALPHA
from tests.support.device.registries import BOOLEAN, CATEGORY, NUMBER, SET, TWO_LAYER, file_with
from tests.support.enumeration.populations import metric_of

ONE = Fraction(1)


def line_of(metric: Any, asked: PlanRequest, epsilon: Fraction = ONE) -> Line:
    (line,) = plan(metric, asked, [epsilon])
    return line


@pytest.mark.parametrize("days", [7, 28])
def test_the_devices_of_a_plan_give_the_half_width_it_was_asked_for(days: int) -> None:
    """Law: put in as devices, the answer gives back the wish."""
    metric = metric_of(CATEGORY, every=f'"{days}d"')

    there = line_of(metric, PlanRequest(20_000, 0.01))
    assert there.devices is not None
    back = line_of(metric, PlanRequest(there.devices, 0.01))

    assert back.half_width == pytest.approx(0.01, rel=1e-4)
    assert there.windows == -(-there.devices // 20_000)
    assert there.days == days * there.windows


def test_a_segment_needs_as_many_more_devices_as_it_is_smaller() -> None:
    """Law: a fifth of the devices reports a fifth, so all of them must be five times as many."""
    metric = metric_of(CATEGORY)

    all_of_them = line_of(metric, PlanRequest(20_000, 0.01))
    segment = line_of(metric, PlanRequest(20_000, 0.01, share=0.2))

    assert all_of_them.devices is not None
    assert segment.devices == 5 * all_of_them.devices
    assert segment.half_width == pytest.approx(half_width(metric.mechanism, 4_000))


def test_a_plan_asks_for_no_fewer_devices_than_an_answer_does() -> None:
    """Law: below min_reports there is no number, however precise."""
    assert line_of(metric_of(CATEGORY, min_reports="900"), PlanRequest(20_000, 0.4)).devices == 900


def test_the_least_epsilon_gives_the_wish_and_a_hundredth_less_does_not() -> None:
    """Law: the hundredth is the least."""
    metric, asked = metric_of(CATEGORY), PlanRequest(20_000, 0.01)

    least = least_epsilon(metric, asked)

    assert least is not None
    widths = [
        half_width(mechanism_at(metric, epsilon), 20_000)
        for epsilon in (least, least - Fraction(1, 100))
    ]
    assert widths[0] <= 0.01 < widths[1]
    assert least_epsilon(metric, PlanRequest(100, 1e-7)) is None


def test_a_mechanism_that_cannot_serve_an_epsilon_says_why() -> None:
    """Law: a refusal is a line of the plan, not an error of it."""
    metric = metric_of(TWO_LAYER)

    line = line_of(metric, PlanRequest(20_000, 0.05), Fraction(20))

    assert line.refusal is not None
    assert line.half_width is None


def test_another_epsilon_keeps_the_parameters_that_are_no_matter_of_it() -> None:
    """Law: the slots of a set are what is counted in full, whatever ε is."""
    metric = metric_of(SET, mechanism='"padding_sampling"', parameters="{ pad = 2 }")

    assert mechanism_at(metric, Fraction(3)).parameters["pad"] == 2


def test_another_epsilon_keeps_the_table_that_was_made_for_the_question() -> None:
    table = {"mechanism": '"cover"', "parameters": "{ sets = 0x0300_01_0300_03 }"}
    metric = metric_of(CATEGORY, **table)

    assert mechanism_at(metric, Fraction(3)).parameters == metric.mechanism.parameters


def test_windows_that_repeat_their_noise_do_not_add_up() -> None:
    """Law: of two layers, and of what is asked once, one window is all there is."""
    for fields, changes in ((TWO_LAYER, {}), (CATEGORY, {"every": '"once"'})):
        metric = metric_of(fields, **changes)
        assert line_of(metric, PlanRequest(500, 0.01)).windows is None
        assert line_of(metric, PlanRequest(10**9, 0.01)).windows == 1


def test_a_curve_falls_with_devices_and_with_epsilon() -> None:
    """Law: in the unit of the answers, for every ε that can be served."""
    metric = metric_of(NUMBER)

    low, high = curves(metric, [Fraction(1), Fraction(2)])

    assert [n for n, _ in low.points] == list(DEVICES)
    assert [width for _, width in low.points] == sorted((w for _, w in low.points), reverse=True)
    assert all(b < a for (_, a), (_, b) in zip(low.points, high.points, strict=True))
    assert low.points[0][1] == pytest.approx(10.5 * half_width(metric.mechanism, 100))
    assert curves(metric_of(TWO_LAYER), [Fraction(20)]) == []


def test_lint_plan_and_answers_state_one_number() -> None:
    """Law: the devices that a need takes are the same wherever they are told."""
    registry = Registry.from_text(file_with(CATEGORY, need="0.005"))
    metric = registry.metric("m")
    needed = reports_for(metric.mechanism, 0.005)
    assert needed is not None

    planned = line_of(metric, PlanRequest(metric.expected_devices, 0.005)).devices
    (told,) = [line for line in warnings(registry, date(2026, 1, 1)) if "above its need" in line]

    assert planned == needed
    assert still_needed(metric, metric.expected_devices) == needed - metric.expected_devices
    assert f"above its need; ±0.5 points takes {needed - 20_000:,} more" in told


def test_texts_are_planned_as_shares_of_rare_ones() -> None:
    """Law: a metric without a list of items has no items in its plan."""
    metric = metric_of(BOOLEAN, type='"string"', length="32", mechanism='"auto"')
    asked = PlanRequest(20_000, 0.05)

    first, second, *_ = lines_of(metric, asked, list(plan(metric, asked, [ONE])), None)

    assert first.startswith("m: strings of up to 32 bytes, ")
    assert "of the share of a string" in second


def test_a_need_that_the_expected_devices_meet_is_not_warned_of() -> None:
    """Law: no warning where nothing is missing, nor where nothing was declared."""
    for need in ("0.2", None):
        registry = Registry.from_text(file_with(CATEGORY, need=need))
        assert not any("its need" in line for line in warnings(registry, date(2026, 1, 1)))


def test_the_table_and_the_data_of_a_plan_hold_the_same() -> None:
    """Law: what people read is what programs get, in points or in the unit."""
    metric, asked = metric_of(CATEGORY), PlanRequest(20_000, 0.01, effect=0.05)
    lines = list(plan(metric, asked, [ONE]))

    text = "\n".join(lines_of(metric, asked, lines, Fraction(3, 2)))
    (row,) = data_of(metric, asked, lines, Fraction(3, 2))["rows"]

    assert f"±{100 * row['half_width']:.2g} points" in text
    assert f" {row['devices']:,} " in text
    assert f" {row['to_detect']:,}" in text
    assert "±1 point from one window takes ε 1.5" in text
    assert "found with a chance of 80 %" in text


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "metrics.toml"
    file.write_text(file_with(NUMBER, need="0.5"), encoding="utf-8")
    return str(file)


def test_the_command_prints_the_plan_of_a_metric(path: str) -> None:
    """Law: with the declared need and the expected devices where nothing else is asked."""
    done = CliRunner().invoke(main, ["plan", path, "m", "--epsilon", "2", "--json"])

    found = json.loads(done.output)
    assert (found["unit"], found["devices"]) == ("minutes", 20_000)
    assert found["half_width"] == pytest.approx(0.5)
    assert [row["epsilon"] for row in found["rows"]] == [2.0]


def test_the_command_prints_how_many_buckets_suit_a_number(path: str) -> None:
    """Law: the best first, with what it smears and its noise."""
    done = CliRunner().invoke(main, ["plan", path, "m", "--buckets"])
    data = CliRunner().invoke(main, ["plan", path, "m", "--buckets", "--json"])

    best = json.loads(data.output)[0]
    assert done.output.splitlines()[2].split()[0] == str(best["buckets"])
    assert best["total"] == pytest.approx(best["bias"] + best["noise"])


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["other"], "must be one of m"),
        (["m", "--epsilon", "many"], "epsilon"),
        (["m", "--arms", "0.7", "0.7"], "more than all devices"),
        (["m", "--half-width", "0"], "0.0 is not in the range"),
        (["m", "--half-width", "1e400"], "inf is not in the range"),
        (["m", "--half-width", "nan"], "nan is not in the range"),
        (["m", "--effect", "inf"], "inf is not in the range"),
        (["m", "--alpha", "1e-300"], "1e-300 is not in the range 1e-06<=x<=0.5"),
        (["m", "--alpha", "nan"], "nan is not in the range"),
        (["m", "--power", "nan"], "nan is not in the range"),
        (["m", "--power", "1e-300"], "1e-300 is not in the range 0.5<=x<=0.999999"),
        (["m", "--arms", "nan", "0.5"], "nan is not in the range"),
        (["m", "--segment-share", "nan"], "nan is not in the range"),
        (["m", "--devices", f"{10**30}"], "is not in the range"),
    ],
)
def test_the_command_refuses_what_is_no_plan(path: str, arguments: list[str], rule: str) -> None:
    """Law: one line says what would do, and the exit status is not 0."""
    done = CliRunner().invoke(main, ["plan", path, *arguments])

    assert done.exit_code != 0
    assert rule in done.output
    assert "Traceback" not in done.output
    assert isinstance(done.exception, SystemExit)


@pytest.mark.parametrize(("level", "beyond"), [(LEAST_ALPHA, "5e-7"), (MOST_ALPHA, "0.51")])
@pytest.mark.parametrize("power", ["0.5", "0.999999"])
def test_the_ends_of_what_a_plan_takes_are_those_of_a_question(
    path: str, level: float, beyond: str, power: str
) -> None:
    """Law: they are planned, and finite; the levels are those that an answer can have."""
    asked = ["m", "--alpha", str(level), "--power", power, "--effect", "1", "--json"]

    done = CliRunner().invoke(main, ["plan", path, *asked])

    assert done.exit_code == 0
    assert "NaN" not in done.output
    assert "Infinity" not in done.output
    assert CliRunner().invoke(main, ["plan", path, "m", "--alpha", beyond]).exit_code == 2
