"""What is claimed of reports that came through a relay: by hand-given counts, rule by rule."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest
from msgspec import UNSET

from client_sdk.registry.metric import Metric
from collector.analytics.verb import Origin, Slice
from collector.core.cells import ATTESTED, RELAYED
from collector.core.config import RelayTerms
from collector.planning.amplification import reached
from collector.planning.shuffling import DELTA, crossing_of, epsilon_of, shuffled_of
from collector.query.basis import NO_OPERATOR, NONE_RELAYED, EpsilonShuffled
from collector.query.basis import shuffled_of as claim_of
from tests.support.device.registries import CATEGORY, STRING, TWO_LAYER
from tests.support.enumeration.populations import metric_of

TERMS: Final = RelayTerms("Example Relays", Fraction(0))
BY_RELAY: Final = frozenset({RELAYED})
WITH_TOKEN: Final = frozenset({RELAYED, ATTESTED})
WEEK: Final = 2_900


def slice_of(metric: Metric, origins: Mapping[Origin, int], direct: int = 0) -> Slice:
    n = sum(origins.values()) + direct
    tally = np.zeros(metric.mechanism.tally_size, dtype=np.int64)
    return Slice(metric, {}, n, tally, (WEEK,), origins=origins)


def claimed(*slices: Slice, terms: RelayTerms = TERMS) -> EpsilonShuffled:
    claim = claim_of([slices], terms)
    assert isinstance(claim, EpsilonShuffled)
    return claim


def in_weeks(*sizes: int, segment: str = "", source: frozenset[str] = BY_RELAY) -> Any:
    return {Origin(source, WEEK + i, segment): n for i, n in enumerate(sizes)}


def test_one_period_is_told_as_the_calculator_has_it_and_above_what_an_attack_reaches() -> None:
    metric = metric_of(CATEGORY)

    claim = claimed(slice_of(metric, in_weeks(2**16), direct=500))

    assert claim.epsilon == pytest.approx(shuffled_of(metric, 2**16).epsilon)
    assert (claim.delta, claim.n, claim.because) == (DELTA, 2**16, UNSET)
    crossing = crossing_of(metric)
    assert crossing
    assert isinstance(claim.epsilon, float)
    assert claim.epsilon >= reached(crossing, 2**16, DELTA)


def test_it_is_never_less_than_that_of_the_honest_devices_there_are() -> None:
    metric = metric_of(CATEGORY)
    for n in (777, 5_001, 123_456):
        for colluding in (Fraction(0), Fraction(1, 3)):
            claim = claimed(
                slice_of(metric, in_weeks(n)), terms=RelayTerms("Example Relays", colluding)
            )
            assert claim.n == n - -(-n * colluding // 1)
            assert isinstance(claim.n, int)
            alone = shuffled_of(metric, claim.n).epsilon
            assert isinstance(claim.epsilon, float)
            assert alone <= claim.epsilon * (1 + 1e-9) <= 1.06 * alone


@pytest.mark.parametrize(
    "smaller",
    [
        in_weeks(900, segment='{"platform":"mac"}'),
        in_weeks(900, source=WITH_TOKEN),
    ],
    ids=["segment", "token"],
)
def test_a_device_hides_only_among_those_that_look_like_it(smaller: Any) -> None:
    metric = metric_of(CATEGORY)

    claim = claimed(slice_of(metric, in_weeks(50_000, segment='{"platform":"win"}') | smaller))

    alone = claimed(slice_of(metric, smaller))
    assert claim.n == 900
    assert claim.epsilon == alone.epsilon


def test_groups_are_whole_whatever_a_question_groups_by() -> None:
    metric, sizes = metric_of(CATEGORY), in_weeks(4_000, 5_000, 6_000)
    together = claimed(slice_of(metric, sizes))

    apart = claimed(*(slice_of(metric, {origin: n}) for origin, n in sizes.items()))

    assert apart == together


def test_periods_add_up_and_so_do_definitions() -> None:
    metric, other = metric_of(CATEGORY), metric_of(CATEGORY, epsilon='"2"')
    one = claimed(slice_of(metric, in_weeks(8_000)))

    three = claimed(slice_of(metric, in_weeks(8_000, 9_000, 8_500)))
    both = claim_of(
        [[slice_of(metric, in_weeks(8_000))], [slice_of(other, in_weeks(8_000))]], TERMS
    )

    assert isinstance(one.epsilon, float)
    assert isinstance(three.epsilon, float)
    assert isinstance(both, EpsilonShuffled)
    assert isinstance(both.epsilon, float)
    assert 1.6 * one.epsilon < three.epsilon < 2.1 * one.epsilon
    assert three.delta == both.delta == DELTA
    assert both.epsilon > shuffled_of(other, 8_000).epsilon


def test_nothing_is_said_where_no_relay_is_in_use_and_the_reason_where_none_is_declared() -> None:
    metric = metric_of(CATEGORY)
    direct = slice_of(metric, {}, direct=1_000)

    assert claim_of([[direct]], RelayTerms()) is UNSET
    undeclared = claimed(slice_of(metric, in_weeks(50_000)), terms=RelayTerms())
    assert undeclared == EpsilonShuffled(because=NO_OPERATOR)
    assert claimed(direct) == EpsilonShuffled(because=NONE_RELAYED)
    assert claimed(slice_of(metric, in_weeks(9_000, source=frozenset({ATTESTED})))) == (
        EpsilonShuffled(because=NONE_RELAYED)
    )


@pytest.mark.parametrize("registry", [TWO_LAYER, STRING])
def test_metrics_whose_reports_are_linked_or_public_in_part_have_a_reason(
    registry: dict[str, str],
) -> None:
    claim = claimed(slice_of(metric_of(registry), in_weeks(50_000)))

    assert claim.epsilon is UNSET
    assert claim.because


@pytest.mark.parametrize(("n", "colluding"), [(1, 0), (3, 0), (40, Fraction(99, 100))])
def test_too_few_hide_nobody(n: int, colluding: Fraction) -> None:
    metric = metric_of(CATEGORY)

    claim = claimed(
        slice_of(metric, in_weeks(n)), terms=RelayTerms("Example Relays", Fraction(colluding))
    )

    assert claim.epsilon is UNSET
    assert "too few relayed reports" in str(claim.because)


def test_every_assumption_is_said() -> None:
    metric = metric_of(CATEGORY)

    claim = claimed(
        slice_of(metric, in_weeks(50_000), direct=9), terms=RelayTerms("Example", Fraction(1, 20))
    )

    assert isinstance(claim.assumes, list)
    told = "; ".join(claim.assumes)
    for part in ("is run by Example", "does not work with the collector", "at most 5 %",
                 "in which batch, on which day", "alone in its upload", "50,000 of 50,009",
                 "other metrics", f"ε {epsilon_of(metric):.3g} a report"):  # fmt: skip
        assert part in told
    honest = claimed(slice_of(metric, in_weeks(50_000))).assumes
    assert "no relayed report is forged" in str(honest)
