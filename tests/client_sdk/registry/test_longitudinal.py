"""Reporting again: what reports of one value and of two give away, and whence the randomness."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import TypeAlias, cast

import numpy as np
import pytest

from client_sdk.core.errors import InvalidParameterError, InvalidValueError
from client_sdk.core.limits import SECRET_SIZE
from client_sdk.core.randomness import ByteRandomness, Randomness
from client_sdk.mechanisms import FrequencyOracle
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.pgr import PGR
from client_sdk.mechanisms.items.subset_selection import SubsetSelection
from client_sdk.mechanisms.items.sue import SUE
from client_sdk.registry.keys import LONGITUDINAL
from client_sdk.registry.longitudinal import (
    Longitudinal,
    Permanent,
    TwoLayer,
    encode_item,
    permanent_randomness,
)
from tests.support.enumeration.enumeration import (
    UNBOUNDED,
    Untouchable,
    distribution,
    exp_below,
    largest_ratio,
)
from tests.support.enumeration.replay import Replay
from tests.support.enumeration.seeded import SeededRandomness

UNSPENT = Fraction(1, 1 << 40)  # nats

ORACLES: list[Callable[[str], FrequencyOracle]] = [
    lambda epsilon: GRR(epsilon, 3),
    lambda epsilon: GRR(epsilon, 2),
    lambda epsilon: OUE(epsilon, 3),
    lambda epsilon: SUE(epsilon, 3),
    lambda epsilon: SubsetSelection(epsilon, 4, subset_size=2),
    lambda epsilon: Hadamard(epsilon, 4),
    lambda epsilon: OLH(epsilon, 3, buckets=2, prime=3),
    lambda epsilon: PGR(epsilon, 4, order=2),
]
BUDGETS = [("2", "0.5"), ("0.2", "0.1"), ("16", "4")]

every_two_layer = pytest.mark.parametrize(
    "policy",
    [
        pytest.param(
            TwoLayer(make(whole), part),
            marks=[] if (whole, part) == BUDGETS[0] else pytest.mark.whole,
        )
        for make, (whole, part) in product(ORACLES, BUDGETS)
    ],
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


@every_two_layer
def test_one_two_layer_report_is_bounded_by_the_report_epsilon_and_reaches_it(
    policy: TwoLayer,
) -> None:
    laws = [joint(policy, [value]) for value in range(policy.oracle.domain_size)]

    ratio = largest_ratio(laws)

    assert ratio <= exp_below(policy.spent_report)
    least_is_reached = policy.oracle.name != "hadamard"  # whose payloads support half the items
    assert (ratio == policy.mechanism.likelihood_ratio) == least_is_reached


@every_two_layer
def test_the_chance_to_send_the_permanent_payload_is_the_largest_allowed(policy: TwoLayer) -> None:
    left = policy.mechanism.epsilon - policy.spent_report

    assert policy.mechanism.kept.denominator <= 1 << 128
    assert 0 <= left < UNSPENT


@every_two_layer
def test_two_reports_of_an_unchanged_value_are_bounded_by_the_epsilon_of_the_value(
    policy: TwoLayer,
) -> None:
    laws = [joint(policy, [value, value]) for value in range(policy.oracle.domain_size)]

    ratio = largest_ratio(laws)

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
    ratio = largest_ratio(laws)
    assert ratio <= exp_below(policy.spent_report) ** 2


def test_two_reports_of_one_value_can_cost_more_than_twice_one_report() -> None:
    policy = TwoLayer(OUE("8", 3), "0.5")

    ratio = largest_ratio([joint(policy, [value, value]) for value in range(3)])

    assert ratio > exp_below(2 * policy.mechanism.epsilon) * 2


def test_three_reports_of_one_value_stay_within_the_epsilon_of_the_value() -> None:
    policy = TwoLayer(GRR("1", 3), "0.5")

    ratio = largest_ratio([joint(policy, [value] * 3) for value in range(3)])

    assert exp_below(Fraction(1, 2)) < ratio <= exp_below(Fraction(1))


def test_a_value_that_returns_has_its_old_permanent_payload() -> None:
    policy = TwoLayer(GRR("1", 2), "0.5")

    laws = [joint(policy, history) for history in ([0, 1, 0], [1, 0, 1])]

    ratio = largest_ratio(laws)
    assert ratio <= exp_below(Fraction(2))  # two distinct values, however many reports


def test_a_permanent_payload_shows_that_a_value_changed_and_a_two_layer_one_blurs_it() -> None:
    kept, changed = [0, 0], [0, 1]
    permanent, two_layer = Permanent(GRR("1", 2)), TwoLayer(GRR("1", 2), "0.5")

    assert largest_ratio([joint(permanent, kept), joint(permanent, changed)]) == UNBOUNDED
    assert largest_ratio([joint(two_layer, kept), joint(two_layer, changed)]) < UNBOUNDED


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

    assert largest_ratio([joint(permanent, first), joint(permanent, other)]) == UNBOUNDED


def test_histories_that_repeat_alike_cost_one_epsilon_a_distinct_value() -> None:
    """The bound at its limit: any two values, the first of which comes back."""
    permanent = Permanent(GRR("1", 3))
    histories = [[a, b, a] for a, b in permutations(range(3), 2)]

    ratio = largest_ratio([joint(permanent, history) for history in histories])

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
    ratio = largest_ratio(laws)
    assert ratio <= exp_below(policy.spent_value)
    assert policy.spent_after(3) == policy.spent_report == policy.spent_value


SECRET = bytes(range(SECRET_SIZE))
DIGEST = b"metric"


def test_the_collector_folds_the_same_tally_and_debiases_by_the_mixture() -> None:
    policy = TwoLayer(Hadamard("2", 5), "1")
    values = [0] * 3000 + [3] * 1000
    fresh = SeededRandomness(b"fresh")
    rows = [
        policy.randomize(
            v, permanent_randomness(SECRET, i.to_bytes(6, "big"), encode_item(v)), fresh
        )
        for i, v in enumerate(values)
    ]
    column = b"".join(rows)

    checked = policy.mechanism.check(column, np)
    tally = policy.mechanism.tally(checked.payloads, np)

    totals, variances = policy.mechanism.debias(tally, len(values), np)
    errors = (totals - np.array([3000, 0, 0, 1000, 0])) / np.sqrt(variances)
    assert checked.rejected == policy.oracle.check(column, np).rejected == {}
    assert tally.tolist() == policy.oracle.tally(column, np).tolist()
    assert len(tally) == policy.mechanism.tally_size
    assert np.abs(errors).max() < 6.5  # false alarm below 1e-9
    assert policy.mechanism.predict(4000) > policy.oracle.predict(4000)


def test_permanent_randomness_is_shake_256_of_secret_digest_and_value() -> None:
    stream = hashlib.shake_256(SECRET + DIGEST + b"\x00\x00\x00\x07").digest(4000)

    randomness = permanent_randomness(SECRET, DIGEST, encode_item(7))

    drawn = b"".join(randomness.uniform(1 << 64).to_bytes(8, "big") for _ in range(500))
    assert drawn == stream


def test_permanent_randomness_differs_by_secret_metric_and_value() -> None:
    other = bytes(SECRET_SIZE)
    seeds = list(product((SECRET, other), (DIGEST, b"second"), (encode_item(0), encode_item(1))))

    drawn = {permanent_randomness(*seed).uniform(1 << 128) for seed in seeds}

    assert len(drawn) == len(seeds)


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_secret_of_another_size_is_refused_and_not_shown(size: int) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        permanent_randomness(b"S" * size, DIGEST, b"")

    assert caught.value.name == "secret"
    assert "S" not in str(caught.value)


@pytest.mark.parametrize("policy", [Permanent, lambda o: TwoLayer(o, "0.5")])
def test_a_value_outside_the_domain_is_refused_before_any_draw(
    policy: Callable[[FrequencyOracle], Longitudinal],
) -> None:
    for value in (-1, 4, True, None):
        with pytest.raises(InvalidValueError):
            policy(GRR("1", 4)).randomize(value, Untouchable(), Untouchable())  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("epsilon_report", ["1", "1.5", "0", "nan", "-1"])
def test_a_report_epsilon_that_is_not_below_that_of_the_value_is_refused(
    epsilon_report: str,
) -> None:
    with pytest.raises(InvalidParameterError, match=r"^epsilon"):
        TwoLayer(GRR("1", 4), epsilon_report)


class _Impure(GRR):
    pure = False


def test_an_oracle_without_a_pure_channel_has_no_two_layer_policy() -> None:
    with pytest.raises(InvalidParameterError, match=r"^mechanism=grr: has no pure channel"):
        TwoLayer(_Impure("1", 4), "0.5")


def test_the_parameters_of_a_mixture_tell_mixtures_apart() -> None:
    parameters = [
        TwoLayer(SubsetSelection("4", 9), part).mechanism.parameters for part in ("0.5", "1", "2")
    ]

    assert all(a["kept"] < b["kept"] for a, b in pairwise(parameters))
    assert all("subset_size" in each for each in parameters)


def test_every_policy_says_in_one_sentence_what_it_reveals() -> None:
    policies: list[type[Longitudinal]] = [Permanent, TwoLayer]

    assert [policy.name for policy in policies] == ["permanent", "two_layer"]
    assert all(policy.leak.endswith(".") and policy.leak.count(". ") == 0 for policy in policies)


def test_a_failing_source_gives_no_report() -> None:
    def fail(count: int) -> bytes:
        raise OSError

    with pytest.raises(OSError, match="no report was made"):
        TwoLayer(GRR("1", 4), "0.5").randomize(0, Untouchable(), ByteRandomness(fail))


def test_a_registry_knows_every_policy_by_its_name() -> None:
    assert ("fresh", Permanent.name, TwoLayer.name) == LONGITUDINAL
