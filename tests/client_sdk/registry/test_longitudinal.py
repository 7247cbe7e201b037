"""Reporting again: what one report, two reports of one value and two of two values give away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import TypeAlias, cast

import pytest

from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import FrequencyOracle
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.subset_selection import SubsetSelection
from client_sdk.mechanisms.items.sue import SUE
from client_sdk.registry.longitudinal import Longitudinal, Permanent, TwoLayer
from tests.support.enumeration.enumeration import distribution, exp_below
from tests.support.enumeration.replay import Replay

UNSPENT = Fraction(1, 1 << 40)  # nats

ORACLES: list[Callable[[str], FrequencyOracle]] = [
    lambda epsilon: GRR(epsilon, 3),
    lambda epsilon: GRR(epsilon, 2),
    lambda epsilon: OUE(epsilon, 3),
    lambda epsilon: SUE(epsilon, 3),
    lambda epsilon: SubsetSelection(epsilon, 4, subset_size=2),
    lambda epsilon: Hadamard(epsilon, 4),
]
BUDGETS = [("0.2", "0.1"), ("2", "0.5"), ("16", "4")]

every_two_layer = pytest.mark.parametrize(
    "policy",
    [TwoLayer(make(whole), part) for make, (whole, part) in product(ORACLES, BUDGETS)],
    ids=lambda policy: f"{policy.oracle.name}-{policy.oracle.domain_size}-{policy.epsilon_report}",
)


Pmf: TypeAlias = dict[tuple[bytes, ...], Fraction]


def joint(policy: Longitudinal, values: Sequence[int]) -> Pmf:
    """Return the exact law of the payloads of a device that reports *values* in turn."""

    def sample(randomness: Randomness) -> tuple[bytes, ...]:
        memo = {value: Replay(randomness) for value in values}
        payloads = []
        for value in values:
            memo[value].rewind()
            payloads.append(policy.randomize(value, memo[value], randomness))
        return tuple(payloads)

    return cast("Pmf", distribution(sample).pmf)


def worst_ratio(laws: Sequence[Pmf]) -> Fraction | None:
    """Return the largest likelihood ratio between *laws*; None if it has no bound."""
    outcomes = {outcome for law in laws for outcome in law}
    if any(outcome not in law for outcome in outcomes for law in laws):
        return None
    return max(max(w[o] for w in laws) / min(w[o] for w in laws) for o in outcomes)


@every_two_layer
def test_one_two_layer_report_is_bounded_by_the_report_epsilon_and_reaches_it(
    policy: TwoLayer,
) -> None:
    laws = [joint(policy, [value]) for value in range(policy.oracle.domain_size)]

    ratio = worst_ratio(laws)

    assert ratio is not None
    assert ratio <= exp_below(policy.spent_report)
    least_is_reached = policy.oracle.name != "hadamard"  # whose payloads support half the items
    assert (ratio == policy.mechanism.likelihood_ratio) == least_is_reached


@every_two_layer
def test_the_chance_to_send_the_permanent_payload_is_the_largest_allowed(policy: TwoLayer) -> None:
    left = policy.mechanism.epsilon - policy.spent_report

    assert policy.mixture.kept.denominator <= 1 << 128
    assert 0 <= left < UNSPENT


@every_two_layer
def test_two_reports_of_an_unchanged_value_are_bounded_by_the_epsilon_of_the_value(
    policy: TwoLayer,
) -> None:
    laws = [joint(policy, [value, value]) for value in range(policy.oracle.domain_size)]

    ratio = worst_ratio(laws)

    assert ratio is not None
    assert policy.spent_value is not None
    assert ratio <= exp_below(policy.spent_value)
    assert policy.spent_after(2) == policy.spent_value


@every_two_layer
def test_reports_of_two_different_values_are_independent_and_add_up(policy: TwoLayer) -> None:
    pairs = [(0, 1), (1, 0)]
    single = {value: joint(policy, [value]) for value in (0, 1)}

    laws = [joint(policy, pair) for pair in pairs]

    for (first, second), law in zip(pairs, laws, strict=True):
        assert law == {
            (a[0], b[0]): single[first][a] * single[second][b]
            for a in single[first]
            for b in single[second]
        }
    ratio = worst_ratio(laws)
    assert ratio is not None
    assert ratio <= exp_below(policy.spent_report) ** 2


def test_two_reports_of_one_value_can_cost_more_than_twice_one_report() -> None:
    policy = TwoLayer(OUE("8", 3), "0.5")

    ratio = worst_ratio([joint(policy, [value, value]) for value in range(3)])

    assert ratio is not None
    assert ratio > exp_below(2 * policy.mechanism.epsilon) * 2


def test_three_reports_of_one_value_stay_within_the_epsilon_of_the_value() -> None:
    policy = TwoLayer(GRR("1", 3), "0.5")

    ratio = worst_ratio([joint(policy, [value] * 3) for value in range(3)])

    assert ratio is not None
    assert exp_below(Fraction(1, 2)) < ratio <= exp_below(Fraction(1))


def test_a_value_that_returns_has_its_old_permanent_payload() -> None:
    policy = TwoLayer(GRR("1", 2), "0.5")

    laws = [joint(policy, history) for history in ([0, 1, 0], [1, 0, 1])]

    ratio = worst_ratio(laws)
    assert ratio is not None
    assert ratio <= exp_below(Fraction(2))  # two distinct values, however many reports


def test_a_permanent_payload_shows_that_a_value_changed_and_a_two_layer_one_blurs_it() -> None:
    kept, changed = [0, 0], [0, 1]
    permanent, two_layer = Permanent(GRR("1", 2)), TwoLayer(GRR("1", 2), "0.5")

    assert worst_ratio([joint(permanent, kept), joint(permanent, changed)]) is None
    assert worst_ratio([joint(two_layer, kept), joint(two_layer, changed)]) is not None


@pytest.mark.parametrize(
    ("first", "other"),
    [([0, 1, 0], [0, 1, 2]), ([0, 1, 2, 0], [0, 1, 2, 1])],
    ids=["an old value or a new one", "one old value or another"],
)
def test_histories_that_change_at_the_same_reports_have_no_bound_if_they_repeat_differently(
    first: list[int], other: list[int]
) -> None:
    """The limit of the bound: when values change is not enough, what comes back counts as well."""
    permanent = Permanent(GRR("1", 3))

    assert worst_ratio([joint(permanent, first), joint(permanent, other)]) is None


def test_histories_that_repeat_alike_cost_one_epsilon_a_distinct_value() -> None:
    """The bound at its limit: any two values, the first of which comes back."""
    permanent = Permanent(GRR("1", 3))
    histories = [[a, b, a] for a, b in permutations(range(3), 2)]

    ratio = worst_ratio([joint(permanent, history) for history in histories])

    assert ratio == permanent.oracle.likelihood_ratio**2


@every_two_layer
def test_the_channel_of_the_mixture_is_the_enumerated_one(policy: TwoLayer) -> None:
    channel, size = policy.mechanism.channel, policy.oracle.domain_size

    for value in range(size):
        found = [Fraction(0)] * size
        for (payload,), mass in joint(policy, [value]).items():
            for item in policy.mechanism.supports(payload):
                found[item] += mass
        assert found == [channel.p if item == value else channel.q for item in range(size)]


@every_two_layer
def test_the_view_of_the_collector_randomizes_as_the_device_does(policy: TwoLayer) -> None:
    view = policy.mechanism

    for value in range(policy.oracle.domain_size):
        device = {outcome[0]: mass for outcome, mass in joint(policy, [value]).items()}
        assert distribution(lambda rnd, v=value: view.randomize(v, rnd)).pmf == device  # type: ignore[misc]  # bound now


@pytest.mark.parametrize("make", ORACLES)
def test_a_permanent_policy_sends_one_payload_a_value_and_spends_once(
    make: Callable[[str], FrequencyOracle],
) -> None:
    policy = Permanent(make("1"))

    laws = [joint(policy, [value] * 3) for value in range(policy.oracle.domain_size)]

    assert all(len(set(outcome)) == 1 for law in laws for outcome in law)
    ratio = worst_ratio(laws)
    assert ratio is not None
    assert ratio <= exp_below(policy.spent_value or Fraction(0))
    assert policy.spent_after(3) == policy.spent_report == policy.spent_value
