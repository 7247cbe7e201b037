"""What a relay leaves of ε: never below what shuffled reports tell, by enumeration of both."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, Final

import pytest
from click.testing import CliRunner

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import Mechanism, load
from collector.cli import main
from collector.planning.amplification import (
    DELTA,
    above,
    closed_form,
    composed,
    divergence,
    refusal,
    shuffled,
    shuffled_data,
    shuffled_lines,
    shuffled_of,
)
from tests.support.device.registries import CATEGORY, NUMBER, STRING, TWO_LAYER, file_with
from tests.support.enumeration.enumeration import distribution
from tests.support.enumeration.populations import metric_of

EPSILONS: Final = (0.1, 0.7, 2.0, 5.0)
Law = Mapping[Hashable, Fraction]


def summed(epsilon_shuffled: float, epsilon: float, devices: int, beta: float) -> float:
    """Return the mean positive part over every number of each kind, by the definition."""
    odds, bound = math.exp(epsilon), math.exp(epsilon_shuffled)
    alpha = beta / (odds - 1)
    third = max(0.0, 1 - alpha * (odds + 1)) / odds
    total = 0.0
    for a, b in product(range(devices + 1), repeat=2):
        for c in range(devices + 1 - a - b):
            ways = math.comb(devices, a) * math.comb(devices - a, b) * math.comb(devices - a - b, c)
            rest = max(0.0, 1 - 2 * alpha - third) ** (devices - a - b - c)
            added = a * (odds - bound) + b * (1 - bound * odds) + c * odds * (1 - bound)
            total += float(ways * alpha ** (a + b) * third**c * rest) * max(0.0, added)
    return total / devices


def shuffle(laws: Sequence[Law]) -> dict[Hashable, Fraction]:
    """Return the law of the reports of all devices whose order is lost, by enumeration."""
    reached: Counter[Hashable] = Counter()
    for reports in product(*(law.items() for law in laws)):
        order = tuple(sorted(repr(payload) for payload, _ in reports))
        reached[order] += math.prod((mass for _, mass in reports), start=Fraction(1))  # type: ignore[assignment]
    return dict(reached)  # type: ignore[arg-type]


def excess(one: Law, other: Law, epsilon: float) -> float:
    """Return the largest Pr[S | one] - e^epsilon Pr[S | other] over sets S."""
    bound = math.exp(epsilon)
    return sum(max(0.0, float(mass) - bound * float(other.get(at, 0))) for at, mass in one.items())


def laws_of(mechanism: Mechanism[Any], values: Sequence[Any]) -> list[Law]:
    def reports(value: Any) -> Law:
        return distribution(lambda randomness: mechanism.randomize(value, randomness)).pmf

    return [reports(value) for value in values]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("devices", [1, 2, 3, 24])
@pytest.mark.parametrize("part", [1.0, 0.4, 0.01])
def test_the_divergence_is_that_of_all_counts_and_no_less(
    epsilon: float, devices: int, part: float
) -> None:
    beta = part * math.tanh(epsilon / 2)

    for least in (0.0, 0.03 * epsilon, 0.5 * epsilon, 0.95 * epsilon):
        exact = summed(least, epsilon, devices, beta)
        stated = divergence(least, epsilon, devices, beta)
        assert exact * (1 - 1e-9) - 1e-15 <= stated
        assert stated == pytest.approx(exact, 1e-6, 1e-9) if part == 1.0 else stated < exact + 0.02


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
@pytest.mark.parametrize(
    ("name", "size"),
    [("grr", 2), ("grr", 4), ("sue", 3), ("oue", 3), ("subset_selection", 4), ("hadamard", 3),
     ("exponential", 4), ("hierarchy", 4)],
)  # fmt: skip
def test_no_neighbours_are_told_apart_by_more_than_is_said(
    name: str, size: int, epsilon: str
) -> None:
    """Of four devices any one changes its item to any other, whatever the rest hold."""
    import numpy as np

    mechanism = load(name)(epsilon, size)
    laws = laws_of(mechanism, range(size))
    told, beta = float(mechanism.spent), mechanism.variation(np)

    for others in ((0, 0, 0), (0, 1, size - 1), (size - 1,) * 3):
        rest = [laws[item] for item in others]
        neighbours = [shuffle([own, *rest]) for own in (laws[0], laws[1], laws[size - 1])]
        for least in (0.0, 0.2 * told, 0.7 * told):
            bound = divergence(least, told, 4, beta)
            for one, other in product(neighbours, repeat=2):
                assert excess(one, other, least) <= bound + 1e-9


def test_of_grr_little_less_would_do() -> None:
    """The bound is near what is seen where all others hold a third item; a smaller is passed."""
    mechanism = load("grr")("1", 4)
    own, other, third, _ = laws_of(mechanism, range(4))
    told, beta = float(mechanism.spent), mechanism.variation(None)
    one, two = shuffle([own, *[third] * 4]), shuffle([other, *[third] * 4])

    for least in (0.0, 0.1, 0.5):
        exact = excess(one, two, least)
        assert exact - 1e-12 <= divergence(least, told, 5, beta) < exact + 0.02
    assert divergence(0.0, told, 5, 0.9 * beta) < excess(one, two, 0.0)


def test_a_mean_in_the_place_of_the_third_would_be_too_little() -> None:
    """The control of the above: what is published as the reduction of GRR is passed by GRR."""
    mechanism = load("grr")("1", 4)
    own, other, third, _ = laws_of(mechanism, range(4))
    exact = excess(shuffle([own, *[third] * 4]), shuffle([other, *[third] * 4]), 0.5)

    assert 0.03241 < 0.0325 < exact < divergence(0.5, 1.0, 5, mechanism.variation(None))


def test_it_stays_below_the_closed_form_and_less_variation_helps() -> None:
    for epsilon, devices in product((0.5, 1.0, 4.0), (100, 3_000)):
        bound = shuffled(epsilon, devices, DELTA).epsilon
        assert 0 < bound <= min(epsilon, closed_form(epsilon, devices, DELTA))
        beta = math.expm1(epsilon) / (math.exp(epsilon) + 15)
        less = shuffled(epsilon, devices, DELTA, beta).epsilon
        assert less < bound or bound > 0.99 * epsilon


@pytest.mark.parametrize(
    ("devices", "epsilon", "any_mechanism", "grr_of_16"),
    [(1_000, 1, 0.149, 0.065), (1_000, 2, 0.398, 0.231), (1_000, 4, 1.85, 1.38),
     (10_000, 1, 0.0435, 0.0190), (10_000, 2, 0.115, 0.068), (10_000, 4, 0.412, 0.363)],
)  # fmt: skip
def test_it_is_as_others_compute_it(
    devices: int, epsilon: int, any_mechanism: float, grr_of_16: float
) -> None:
    """Source: the numbers of wangsw/PrivacyAmplification at δ = 10^-6.

    Its second column puts a mean in the place of a number that varies, so that ours is larger.
    """
    beta = math.expm1(epsilon) / (math.exp(epsilon) + 15)

    assert shuffled(epsilon, devices, 1e-6).epsilon == pytest.approx(any_mechanism, rel=0.01)
    ours = shuffled(epsilon, devices, 1e-6, beta).epsilon
    assert 0.975 * grr_of_16 <= ours <= 1.25 * grr_of_16


def test_more_devices_hide_more_and_one_hides_nothing() -> None:
    bounds = [shuffled(1.0, 10**k, DELTA).epsilon for k in range(5)]

    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == pytest.approx(1.0, abs=1e-6)
    assert shuffled(1.0, 1_000, 1e-6).epsilon < shuffled(1.0, 1_000, 1e-9).epsilon
    assert shuffled(0.5, 1_000, 1e-6).epsilon < shuffled(1.0, 1_000, 1e-6).epsilon


def test_windows_add_up_and_never_to_less_than_one_of_them() -> None:
    one = shuffled(1.0, 10_000, DELTA)

    several = [composed(one, k, DELTA) for k in (1, 4, 52, 1_000)]

    assert all(
        both.epsilon <= k * one.epsilon for both, k in zip(several, (1, 4, 52, 1_000), strict=True)
    )
    assert [both.epsilon for both in several] == sorted(both.epsilon for both in several)
    assert several[-1].epsilon < 1_000 * one.epsilon / 2
    assert several[1].delta == pytest.approx(5 * DELTA)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("epsilon", (0.0, 10, 1e-6)),
        ("epsilon", (65.0, 10, 1e-6)),
        ("devices", (1.0, 0, 1e-6)),
        ("delta", (1.0, 10, 1.0)),
        ("delta", (1.0, 10, 0.0)),
        ("variation", (1.0, 10, 1e-6, 0.0)),
    ],
)
def test_a_number_that_means_nothing_is_refused(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidParameterError, match=name):
        shuffled(*arguments)
    with pytest.raises(InvalidParameterError, match="epochs"):
        composed(shuffled(1.0, 10, 1e-6), 0, 1e-6)


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
    assert shuffled_data(metric_of(CATEGORY), 10, colluding=0.95)["windows"] == []


def test_devices_that_collude_hide_nobody() -> None:
    metric = metric_of(CATEGORY)

    data = shuffled_data(metric, 10_000, colluding=0.4)

    assert data["windows"][0]["devices"] == 6_000
    assert data["windows"][0]["epsilon"] == shuffled_of(metric, 6_000).epsilon
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
    assert "does not collude" in " ".join(text.output.split())
