"""The plan of a registry says what each metric costs and tells."""

from __future__ import annotations

from client_sdk.mechanisms import ItemMechanism
from client_sdk.registry import Registry
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import choose, fitting_names
from collector.estimation.estimate import expected_half_width
from collector.planning.registry_report import (
    compare_mechanisms,
    describe_metrics,
    pinned,
    plus_minus,
    privacy,
)
from tests.support.crowds.uploads import registry
from tests.support.device.registries import CATEGORY, NUMBER, file_with

REGISTRY = registry()


def test_every_metric_has_a_line_with_what_it_costs() -> None:
    first, *lines = describe_metrics(REGISTRY)

    assert first == "test: 5 metrics"
    assert [line.split(":")[0].strip() for line in lines] == list(REGISTRY.metrics)
    assert all("ε 1 a report, one " in line and "digest " in line for line in lines)


def test_a_delta_is_stated_beside_epsilon_only_where_there_is_one() -> None:
    text = file_with(NUMBER, mechanism='"discrete_gaussian"', epsilon='"1.0"')
    loose = Registry.from_text(text).metric("m")

    assert privacy(loose) == "ε 1 and δ 1e-06"
    assert not any("δ" in line for line in describe_metrics(REGISTRY))


def test_an_aggregate_is_told_beside_what_it_costs() -> None:
    """Law: a reader sees that many values make one report, and what silence says."""
    texts = [
        file_with(NUMBER, aggregate='"sum"'),
        file_with(NUMBER, aggregate='"max"', otherwise="0.5"),
    ]

    plain, silent = (list(describe_metrics(Registry.from_text(text)))[1] for text in texts)

    assert ", ε 1 a report, one a week: the sum, 2 bytes" in plain
    assert ", one a week: the largest, or else 0.5 minutes, 2 bytes" in silent
    assert not any(", of " in line for line in describe_metrics(REGISTRY))


def test_an_item_is_planned_in_points() -> None:
    metric = REGISTRY.metric("page")

    points = 100 * expected_half_width(metric.mechanism, metric.expected_devices, 0.05, 1.0)

    assert plus_minus(metric) == f"±{points:.2g} points per item"


def test_a_number_is_planned_in_its_unit() -> None:
    assert plus_minus(REGISTRY.metric("age")) == "±2.2 years"


def test_a_wide_interval_is_planned_without_powers_of_ten() -> None:
    wide = file_with(NUMBER, max="5000", step="10", unit='"ms"', expected_devices="5000")

    words = plus_minus(Registry.from_text(wide).metric("m"))

    number = words.removeprefix("±").removesuffix(" ms")
    assert number.isdecimal()
    assert 100 <= int(number) < 1_000
    assert number.endswith("0")


def test_the_plan_lists_every_mechanism_of_the_family_and_one_that_auto_takes() -> None:
    metric = REGISTRY.metric("page")

    head, in_use, *rows = compare_mechanisms(metric, 8)

    assert head == f"page: {metric.domain.size} items, ε {metric.epsilon}"
    assert in_use.startswith(f"  in use: {pinned(metric)}; with ")
    assert sorted(row.split(":")[0].strip() for row in rows) == fitting_names(ItemMechanism)
    assert len([row for row in rows if "auto takes it" in row]) == 1


def test_the_plan_takes_the_smallest_error_and_says_so() -> None:
    metric = REGISTRY.metric("page")

    (taken,) = [row for row in compare_mechanisms(metric, 8) if "auto takes it" in row]

    name, _ = choose(AUTO, ItemMechanism, metric.epsilon, metric.domain.size)
    assert taken.startswith(f"  {name}: error ")


def test_a_payload_limit_rules_out_what_is_longer() -> None:
    rows = list(compare_mechanisms(REGISTRY.metric("page"), 1))[2:]

    too_long = {row.split(":")[0].strip() for row in rows if row.endswith("; too long")}
    assert "olh" in too_long
    assert "grr" not in too_long


def test_a_mechanism_with_parameters_is_pinned_with_them() -> None:
    metric = Registry.from_text(
        file_with(CATEGORY, mechanism='"pgr"', parameters="{ order = 5 }")
    ).metric("m")

    assert pinned(metric) == 'mechanism = "pgr" and parameters = { order = 5 }'


def test_what_auto_chose_for_a_number_is_the_same_metric_when_it_is_pinned() -> None:
    """Law: whoever writes down what is in use keeps the digest, however long a parameter is."""
    chosen = Registry.from_text(file_with(NUMBER, mechanism=f'"{AUTO}"')).metric("m")
    mechanism, own = pinned(chosen).split(" and parameters = ")

    text = file_with(NUMBER, mechanism=mechanism.partition(" = ")[2], parameters=own)

    assert chosen.mechanism_name == "minimax"
    assert "distances = 0xff" in own
    assert Registry.from_text(text).metric("m").digest == chosen.digest


def test_numbers_that_never_tell_quantiles_say_so_before_anything_is_collected() -> None:
    """Law: of a mean alone, and of nothing else."""
    texts = {
        "mean": file_with(NUMBER, mechanism='"auto"'),
        "quantiles": file_with(NUMBER, mechanism='"auto"', ask='["mean", "quantiles"]'),
        "items": file_with(CATEGORY),
    }

    said = {name: list(describe_metrics(Registry.from_text(t)))[1] for name, t in texts.items()}

    assert [name for name, line in said.items() if "not quantiles" in line] == ["mean"]
    (metric,) = Registry.from_text(texts["quantiles"])
    assert any("unless ask names quantiles" in line for line in compare_mechanisms(metric, 8))
