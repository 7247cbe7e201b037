"""What a channel says is what the code does, of every family, and debiasing undoes it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias, cast

import numpy as np
import pytest

from client_sdk.mechanisms import (
    DistributionMechanism,
    FrequencyOracle,
    MeanMechanism,
    Mechanism,
    SetMechanism,
    load,
    names,
)
from client_sdk.mechanisms.numbers._symbols import SymbolReports
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from tests.support.enumeration.coverage import covered
from tests.support.enumeration.enumeration import Law, distribution
from tests.support.enumeration.vectors import (
    Small,
    every_of,
    every_small,
    is_pure,
    laws,
    small_parameters,
    smalls,
)
from tests.support.loops import in_turn

ROUNDING = 1e-9  # relative; double precision from debias on


def counts_supports(mechanism: type[Mechanism[Any]]) -> bool:
    """Whether the supports of a mechanism's reports and its channel alone give the estimate."""
    asks_of_one = mechanism.name == "sampled_item"  # the others are no part of the report
    return is_pure(mechanism) or (issubclass(mechanism, SetMechanism) and not asks_of_one)


Supporting: TypeAlias = FrequencyOracle | SetMechanism
every_channel = every_of(smalls, counts_supports)
every_kind = pytest.mark.parametrize("kind", [n for n in names() if counts_supports(load(n))])


def items_of(value: int | frozenset[int]) -> frozenset[int]:
    """Return the items that a device holds."""
    return frozenset({value}) if isinstance(value, int) else value


def support_probabilities(mechanism: Supporting, law: Law) -> list[Fraction]:
    """Return the probability that a report following *law* supports each item."""
    found = [Fraction(0)] * mechanism.domain_size
    for payload, mass in law.pmf.items():
        for item in set(mechanism.supports(cast("bytes", payload))):
            found[item] += mass
    return found


def column_following(mechanism: Mechanism[Any], law: Law) -> bytes:
    """Return a column in which every payload has exactly its share."""
    n = math.lcm(*(mass.denominator for mass in law.pmf.values()))
    return b"".join(cast("bytes", payload) * int(mass * n) for payload, mass in law.pmf.items())


@every_channel
def test_the_channel_is_the_enumerated_probability_of_support(small: Small) -> None:
    """An item of a set that is cut is supported as much less as it is left out."""
    mechanism = cast("Supporting", small.mechanism)
    p, q = mechanism.channel.p, mechanism.channel.q
    most = getattr(mechanism, "most", 1)

    for value, law in zip(small.values, laws(small), strict=True):
        held = items_of(value)
        own = q + (p - q) * Fraction(most, max(most, len(held)))
        expected = [own if item in held else q for item in range(mechanism.domain_size)]
        assert support_probabilities(mechanism, law) == expected


@every_kind
@in_turn("value", [0, 1, 2])
def test_a_column_that_follows_the_law_exactly_is_debiased_to_the_truth(
    kind: str, value: int
) -> None:
    coarse: Any = load(kind)("2", 3, precision=4, **small_parameters(kind))
    held = frozenset({value, (value + 1) % 3}) if isinstance(coarse, SetMechanism) else value
    law = distribution(lambda randomness: coarse.randomize(held, randomness))
    column = column_following(coarse, law)
    n = len(column) // coarse.payload_size

    totals, variances = coarse.debias(coarse.tally(column, np), n, np)

    p, q = float(coarse.channel.p), float(coarse.channel.q)
    holds = [item in items_of(held) for item in range(3)]
    spread = [p * (1 - p) if own else q * (1 - q) for own in holds]
    assert totals == pytest.approx([n * own for own in holds], abs=n * ROUNDING)
    assert variances == pytest.approx([n * s / (p - q) ** 2 for s in spread], rel=ROUNDING)


@every_channel
def test_predict_is_the_root_mean_square_of_the_enumerated_errors(small: Small) -> None:
    """Of devices that hold an item, or as many as a report can be about."""
    mechanism = cast("Supporting", small.mechanism)
    p, q = mechanism.channel.p, mechanism.channel.q
    most = getattr(mechanism, "most", 1)
    full = next(place for place, v in enumerate(small.values) if len(items_of(v)) == most)
    probabilities = support_probabilities(mechanism, laws(small)[full])
    square = sum(s * (1 - s) for s in probabilities) / (p - q) ** 2 / mechanism.domain_size

    predicted = mechanism.predict(400)

    assert predicted == pytest.approx(math.sqrt(square / 400), rel=ROUNDING)


every_distribution = every_small(DistributionMechanism)


def mechanism_of(small: Small) -> DistributionMechanism:
    """Return the mechanism as the distribution mechanism that it is."""
    return cast("DistributionMechanism", small.mechanism)


def enumerated(mechanism: Any, value: Fraction | int) -> list[Fraction]:
    """Return the probability of every report for *value*, by enumeration."""
    law = distribution(lambda randomness: mechanism.randomize(value, randomness))
    size = mechanism.payload_size
    return [
        law.pmf.get(symbol.to_bytes(size, "big"), Fraction(0))
        for symbol in range(mechanism.payload_count)
    ]


@every_of(smalls, lambda mechanism: hasattr(mechanism, "channel_law"))
def test_the_stated_law_of_every_item_or_bin_is_the_enumerated_one(small: Small) -> None:
    mechanism: Any = small.mechanism
    values: list[Fraction | int] = list(range(mechanism.domain_size))
    if isinstance(mechanism, DistributionMechanism):
        values = [Fraction(i * mechanism.top, mechanism.bins - 1) for i in range(mechanism.bins)]

    for place, value in enumerate(values):
        law = list(mechanism.channel_law(place))
        assert law == enumerated(mechanism, value)
        assert sum(law) == 1


def test_a_position_between_two_bins_has_the_mixture_of_their_laws() -> None:
    mechanism = SquareWave("1", 9, bins=3, precision=8)
    value = Fraction(5)  # bins stand for 0, 4 and 8

    law = enumerated(mechanism, value)

    below, above = mechanism.channel_law(1), mechanism.channel_law(2)
    assert law == [Fraction(3, 4) * b + Fraction(1, 4) * a for b, a in zip(below, above)]  # noqa: B905  # equal lengths by construction


@every_distribution
def test_spread_and_gather_are_the_channel_matrix_and_its_transpose(small: Small) -> None:
    mechanism = mechanism_of(small)
    matrix = mechanism.channel_matrix(np)
    generator = np.random.default_rng(1)
    shares = generator.dirichlet(np.ones(mechanism.bins), size=3)
    weights = generator.random((3, mechanism.symbols))

    spread, gathered = mechanism.spread(shares, np), mechanism.gather(weights, np)

    assert spread == pytest.approx(DistributionMechanism.spread(mechanism, shares, np), rel=1e-12)
    assert gathered == pytest.approx(
        DistributionMechanism.gather(mechanism, weights, np), rel=1e-12
    )
    assert spread[0] == pytest.approx(matrix @ shares[0])
    assert matrix.sum(axis=0) == pytest.approx(np.ones(mechanism.bins))


@pytest.mark.parametrize("position", [0, 3, 9])
def test_a_tally_that_follows_the_law_exactly_gives_the_position_and_its_variance(
    position: int,
) -> None:
    mechanism = SquareWave("1", 10, precision=12)
    law = mechanism.channel_law(position)
    n = math.lcm(*(mass.denominator for mass in law))
    reports = [symbol - mechanism.reach for symbol in range(mechanism.symbols)]
    slope = float(mechanism.window * (mechanism.near - mechanism.far))
    mean = sum(p * y for p, y in zip(law, reports, strict=True))
    square = sum(p * y * y for p, y in zip(law, reports, strict=True))

    totals, variances = mechanism.debias(np.array([int(p * n) for p in law]), n, np)

    assert totals == pytest.approx([n * position], abs=n * 1e-9)
    assert variances == pytest.approx([n * (float(square - mean**2) / slope**2 + 1 / 4)])


@every_distribution
def test_no_position_has_a_larger_variance_than_the_worst(small: Small) -> None:
    mechanism = cast("SquareWave", small.mechanism)
    slope = float(mechanism.window * (mechanism.near - mechanism.far))
    reports = range(-mechanism.reach, mechanism.bins + mechanism.reach)

    found = []
    for position in range(mechanism.bins):
        law = mechanism.channel_law(position)
        mean = sum(p * y for p, y in zip(law, reports, strict=True))
        found.append(sum(p * (y - mean) ** 2 for p, y in zip(law, reports, strict=True)))

    worst = float(max(found)) / slope**2 + 1 / 4  # bins are grid steps at these sizes
    assert worst <= mechanism.worst_variance * (1 + 1e-12)
    assert mechanism.worst_variance <= worst * 1.25
    squared = (mechanism.predict(50) * mechanism.top) ** 2 * 50
    assert squared == pytest.approx(mechanism.worst_variance)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 16.0])
def test_the_half_width_is_the_optimum_of_the_source(epsilon: float) -> None:
    mechanism = SquareWave(epsilon, 1000, bins=1000)

    e = math.exp(epsilon)
    optimum = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    assert abs(mechanism.reach - 1000 * optimum) < 0.5


def test_the_half_width_tends_to_half_the_range_as_epsilon_tends_to_0() -> None:
    assert SquareWave("0.000001", 1000, bins=1000).reach == 500


@pytest.mark.parametrize(("shrunk", "least", "most"), [(1.0, 0.94, 0.96), (0.5, 0.5, 0.9)])
def test_intervals_of_the_mean_cover_at_the_stated_rate_and_of_half_the_variance_would_not(
    shrunk: float, least: float, most: float
) -> None:
    mechanism, chance, trials = SquareWave("2", 50), np.random.default_rng(20260603), 20_000
    people = {0: 400, 7: 900, 20: 700, 49: 100}
    truth = sum(position * held for position, held in people.items())
    laws = {i: np.array([float(p) for p in mechanism.channel_law(i)]) for i in people}
    tallies = np.sum(
        [chance.multinomial(n, laws[i] / laws[i].sum(), size=trials) for i, n in people.items()],
        axis=0,
    )

    (share,) = covered(mechanism, tallies, sum(people.values()), truth, shrunk=shrunk)

    assert least <= share <= most


every_mean = every_small(MeanMechanism)


def mean_of(small: Small) -> MeanMechanism:
    """Return the mechanism as the mean mechanism that it is."""
    return cast("MeanMechanism", small.mechanism)


@cache
def farthest(mechanism: MeanMechanism) -> Fraction:
    """Return a bound of how far a report can lie from a position, in grid steps."""
    every = range(256**mechanism.payload_size)
    return max(
        abs(mechanism.decode(payload)) + mechanism.domain_size
        for payload in (number.to_bytes(mechanism.payload_size, "big") for number in every)
        if mechanism.reason(payload) is None
    )


@cache
def sums(small: Small, place: int) -> tuple[Fraction, Fraction]:
    """Return the sums of mass times report and times its square, of the value at *place*."""
    pmf = laws(small)[place].pmf
    whole = math.lcm(*(mass.denominator for mass in pmf.values()))
    parts = [
        (mean_of(small).decode(cast("bytes", r)), m.numerator * (whole // m.denominator))
        for r, m in pmf.items()
    ]
    first, second = sum(x * m for x, m in parts), sum(x * x * m for x, m in parts)
    return Fraction(first) / whole, Fraction(second) / whole


def moments(small: Small, place: int, centre: Fraction) -> tuple[Fraction, Fraction]:
    """Return the mean and mean square of (report - centre), over the mass that was reached."""
    reached = 1 - laws(small)[place].rest
    first, second = sums(small, place)
    return first - centre * reached, second - 2 * centre * first + centre**2 * reached


@every_mean
def test_the_mean_report_is_the_position_up_to_the_mass_not_reached(small: Small) -> None:
    mechanism = mean_of(small)
    reach = farthest(mechanism)

    assert not isinstance(mechanism, SymbolReports) or not any(law.rest for law in laws(small))
    for place, (value, law) in enumerate(zip(small.values, laws(small), strict=True)):
        bias, _ = moments(small, place, value)
        assert abs(bias) <= law.rest * reach
        assert law.rest * reach < Fraction(1, 10_000)


@every_mean
def test_the_variance_of_a_report_is_the_stated_one(small: Small) -> None:
    mechanism = mean_of(small)

    for place, (value, law) in enumerate(zip(small.values, laws(small), strict=True)):
        _, square = moments(small, place, value)
        stated = Fraction(mechanism.variance_of(value))
        unreached = law.rest * farthest(mechanism) ** 2
        assert abs(square - stated) <= unreached + (1 + stated) / 10**9
        assert unreached < Fraction(1, 100)


@every_mean
def test_no_position_has_a_larger_variance_than_the_worst_and_one_comes_close(small: Small) -> None:
    mechanism = mean_of(small)

    found = [mechanism.variance_of(Fraction(i * mechanism.top, 1000)) for i in range(1001)]

    assert 0.99 * mechanism.worst_variance <= max(found)
    assert max(found) <= mechanism.worst_variance * (1 + 1e-12)


@every_mean
def test_debias_states_the_sum_and_a_variance_of_at_most_the_worst(small: Small) -> None:
    mechanism = mean_of(small)
    payloads = [cast("bytes", payload) for payload in laws(small)[1].pmf]

    totals, variances = mechanism.debias(mechanism.tally(b"".join(payloads), np), len(payloads), np)

    assert totals == pytest.approx([float(sum(map(mechanism.decode, payloads)))], abs=1e-9)
    assert 0 < variances[0] <= len(payloads) * mechanism.worst_variance * (1 + 1e-12)


@every_mean
def test_predict_is_the_stated_error_of_the_mean_as_a_part_of_the_range(small: Small) -> None:
    mechanism = mean_of(small)

    predicted = mechanism.predict(100)

    squared = (predicted * mechanism.top) ** 2 * 100
    assert squared == pytest.approx(mechanism.worst_variance)


@every_mean
def test_a_column_of_reports_shifted_by_one_step_is_not_unbiased(small: Small) -> None:
    mechanism = mean_of(small)
    law = laws(small)[0]

    bias, _ = moments(small, 0, small.values[0] - 1)

    assert abs(bias) > law.rest * farthest(mechanism)
