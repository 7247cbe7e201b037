"""Key-value mechanisms: unbiased totals and their variances, from enumerated laws."""

from __future__ import annotations

from math import sqrt
from typing import Any, Final, cast

import numpy as np
import pytest

from client_sdk.mechanisms import KeyValueMechanism, load, names
from tests.support.enumeration.enumeration import Law, distribution
from tests.support.enumeration.vectors import Small, every_small, laws
from tests.support.references.key_value_reference import HeldPairs, parse_pairs

FAMILY: Final = [name for name in names() if issubclass(load(name), KeyValueMechanism)]
COUNTS: Final = 10  # devices squared; what rounding an expected tally to integers may change
Z: Final = 1.959963984540054  # 95 %

every_name = pytest.mark.parametrize("name", FAMILY)


def mechanism_of(name: str, epsilon: str, keys: int, **own: int) -> KeyValueMechanism:
    """Return a mechanism of the family."""
    return cast("KeyValueMechanism", load(name)(epsilon, keys, **own))


def moments(mechanism: KeyValueMechanism, law: Law) -> tuple[Any, Any]:
    """Return mean and variance of what one report adds to each total."""
    mean, square = np.zeros(mechanism.tally_size), np.zeros(mechanism.tally_size)
    for payload, mass in law.pmf.items():
        tally = mechanism.tally(cast("bytes", payload), np)
        added = mechanism.debias(tally, 1, np).totals
        mean += float(mass) * added
        square += float(mass) * added**2
    return mean, square - mean**2


def expected_tally(mechanism: KeyValueMechanism, parts: list[tuple[Law, int]]) -> Any:
    """Return the expected tally of as many reports of each law, rounded to integers."""
    cells = np.zeros(mechanism.tally_size)
    for law, reports in parts:
        for payload, mass in law.pmf.items():
            cells += float(mass) * reports * mechanism.tally(cast("bytes", payload), np)
    return np.rint(cells).astype(np.int64)


@every_small(KeyValueMechanism)
def test_counts_and_sums_of_positions_are_unbiased_up_to_the_pad(small: Small) -> None:
    mechanism = cast("KeyValueMechanism", small.mechanism)
    size = mechanism.domain_size

    for value, law in zip(small.values, laws(small), strict=True):
        mean, variance = moments(mechanism, law)

        weight = mechanism.pad / max(len(value), mechanism.pad)  # 1 up to the pad
        close = 1e-9 * (1 + float(np.sqrt(variance.max())))
        held = [weight * (key in value) for key in range(size)]
        sums = [weight * float(value.get(key, 0)) for key in range(size)]
        assert mean.tolist() == pytest.approx([*held, *sums], abs=close)


@every_small(KeyValueMechanism)
@pytest.mark.parametrize("held", ["0:0", "0:1", "0:1/3 1:1", "0:1 1:1"])
def test_the_stated_variance_is_that_of_holders_who_all_hold_the_same(
    small: Small, held: str
) -> None:
    mechanism, value = cast("KeyValueMechanism", small.mechanism), parse_pairs(held)
    if len(value) > mechanism.pad:  # it is cut, so that holders do not report the same
        return
    by_value = dict(zip(small.values, laws(small), strict=True))
    parts = [(by_value[value], 2 * 10**8), (by_value[HeldPairs()], 10**9)]
    n = sum(reports for _, reports in parts)

    stated = mechanism.debias(expected_tally(mechanism, parts), n, np).variances

    exact = sum(moments(mechanism, law)[1] * reports for law, reports in parts)
    assert stated.tolist() == pytest.approx(exact.tolist(), rel=1e-4, abs=COUNTS)


@every_small(KeyValueMechanism)
def test_the_stated_variance_is_never_too_small_for_holders_who_differ(small: Small) -> None:
    mechanism = cast("KeyValueMechanism", small.mechanism)
    by_value = dict(zip(small.values, laws(small), strict=True))
    parts = [(by_value[parse_pairs(held)], 5 * 10**8) for held in ("0:1", "0:0")]

    stated = mechanism.debias(expected_tally(mechanism, parts), 10**9, np).variances

    exact = sum(moments(mechanism, law)[1] * reports for law, reports in parts)
    assert (stated >= exact * (1 - 1e-4)).all()


@every_small(KeyValueMechanism)
def test_the_mean_among_holders_is_the_ratio_of_the_expected_totals(small: Small) -> None:
    mechanism = cast("KeyValueMechanism", small.mechanism)
    by_value = dict(zip(small.values, laws(small), strict=True))
    parts = [(by_value[parse_pairs(held)], 10**9) for held in ("0:1/3", "1:1")]

    found = mechanism.means(expected_tally(mechanism, parts), 2 * 10**9, np)

    assert found.totals[:2].tolist() == pytest.approx([1 / 3, 1], abs=1e-4)


@every_name
def test_a_key_without_an_estimated_holder_has_no_mean(name: str) -> None:
    mechanism = mechanism_of(name, "1", 3)

    found = mechanism.means(np.zeros(6, dtype=np.int64), 100, np)

    assert np.isnan(found.totals).all()
    assert np.isnan(found.variances).all()


def test_intervals_of_counts_sums_and_means_hold_the_truth_in_95_of_100_replications() -> None:
    keys, n, holders, place = 20_000, 200_000, 60_000, 0.7  # every key is one replication
    mechanism = mechanism_of("pckv_ue", "2", keys, pad=2, top=10)
    same, opposite, foreign = map(float, mechanism.channel)
    dice = np.random.default_rng(20)
    plus, minus = (
        (x * same + (1 - x) * opposite + foreign) / mechanism.pad for x in (place, 1 - place)
    )
    shown = dice.multinomial(holders, [plus, minus, 1 - plus - minus], keys)
    shown = shown + dice.multinomial(n - holders, [foreign, foreign, 1 - 2 * foreign], keys)
    tally = np.concatenate([shown[:, 0], shown[:, 1]])

    totals, variances = mechanism.debias(tally, n, np)
    means, spreads = mechanism.means(tally, n, np)

    truth = np.repeat([holders, holders * place * 10], keys)
    covered = (np.abs(totals - truth) <= Z * np.sqrt(variances)).reshape(2, keys).mean(axis=1)
    assert ((covered > 0.94) & (covered < 0.96)).all()
    assert 0.94 < (np.abs(means - place * 10) <= Z * np.sqrt(spreads)).mean() < 0.96


@every_name
def test_the_predicted_error_is_that_of_counts_when_every_device_fills_the_pad(name: str) -> None:
    mechanism = mechanism_of(name, "1", 3, pad=2)
    full = parse_pairs("0:1 2:0")

    law = distribution(lambda randomness: mechanism.randomize(full, randomness))

    spread = moments(mechanism, law)[1][:3].mean()
    assert mechanism.predict(1) == pytest.approx(sqrt(spread))


def test_sampling_pays_for_itself_in_pckv_grr() -> None:
    plain, padded = mechanism_of("pckv_grr", "1", 8, pad=1), mechanism_of("pckv_grr", "1", 8)
    odds = [m.channel.same / m.channel.foreign for m in (plain, padded)]

    assert odds[1] - 1 == pytest.approx(float(8 * (odds[0] - 1)))
