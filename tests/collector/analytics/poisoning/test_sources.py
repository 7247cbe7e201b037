"""Sources that begin to differ are told of, and few of them cannot move a trimmed mean far."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.registry import Registry
from collector.analytics.poisoning.anomaly import FALSE_ALARM
from collector.analytics.poisoning.checks import LEAST_EARLIER, EpochEstimates
from collector.analytics.poisoning.sources import (
    LEAST,
    LEAST_KEPT,
    Tallied,
    _trimmed_mean,
    differences,
    least_sources,
    source_findings,
    trimmed,
)
from tests.support.device.registries import CATEGORY, file_with
from tests.support.known import known

ITEMS: Final = 64
VALUES: Final = ", ".join(f'"{item}"' for item in range(ITEMS))
METRIC: Final = Registry.from_text(
    file_with({**CATEGORY, "values": f"[{VALUES}]", "mechanism": '"oue"'})
).metric("m")
CHANNEL: Final[Any] = METRIC.mechanism
P, Q = float(CHANNEL.channel.p), float(CHANNEL.channel.q)
LAW: Final = 1 / np.arange(1, ITEMS + 1) / (1 / np.arange(1, ITEMS + 1)).sum()
TARGET: Final = 60
EPOCHS: Final = 200
# Of EPOCHS with a chance of FALSE_ALARM each, so many or more alarms have one below 1e-9.
MOST_ALARMS: Final = 5


def epoch(
    draw: np.random.Generator,
    sources: int = 4,
    n: int = 1_560,
    fakes: Mapping[int, int] | None = None,
    laws: Mapping[int, Any] | None = None,
) -> dict[str | None, Tallied]:
    """Return an epoch: *fakes*, by source, always support the target, and else a random item."""
    parts: dict[str | None, Tallied] = {}
    for place in range(sources):
        false = (fakes or {}).get(place, 0)
        held = draw.multinomial(n - false, (laws or {}).get(place, LAW))
        tally = draw.binomial(held, P) + draw.binomial(n - false - held, Q)
        made = draw.binomial(false, Q, ITEMS)
        made[TARGET] = false
        parts[f"key{place}"] = Tallied(tally + made, n)
    return parts


def series(count: int, seed: int = 1, **fields: Any) -> list[dict[str, EpochEstimates]]:
    draw = np.random.default_rng(seed)
    return [differences(METRIC, epoch(draw, **fields)) for _ in range(count)]


def alarms(alpha: float) -> int:
    known = series(EPOCHS + 7)
    return sum(
        bool(list(source_findings(METRIC, known[place], known[place - 7 : place], alpha)))
        for place in range(7, len(known))
    )


def test_a_source_raises_a_false_alarm_in_one_of_ten_thousand_epochs_at_most() -> None:
    assert alarms(FALSE_ALARM) < MOST_ALARMS


def test_that_rate_is_broken_where_the_number_of_comparisons_is_forgotten() -> None:
    """The planted bug: each comparison alone has the chance that all together may have."""
    assert alarms(FALSE_ALARM * ITEMS * 4 * 4) >= MOST_ALARMS


@pytest.mark.parametrize(("sources", "n", "fakes"), [(64, 1_560, 300), (4, 25_000, 1_000)])
def test_fakes_in_one_source_are_seen_and_it_is_named(sources: int, n: int, fakes: int) -> None:
    """300 fakes are 1.5 times what the noise of one source of 1,560 hides: 10 standard errors."""
    past = series(14, sources=sources, n=n)
    draw = np.random.default_rng(2)

    for _ in range(5):
        now = differences(METRIC, epoch(draw, sources, n, {1: fakes}))
        (said,) = source_findings(METRIC, now, past)
        assert said.startswith("key key1 differs from all other keys as it did not before: '60'")


def test_what_all_sources_do_together_is_of_none_of_them() -> None:
    past, draw = series(14), np.random.default_rng(3)
    turned = dict.fromkeys(range(4), LAW[::-1])

    assert not list(source_findings(METRIC, differences(METRIC, epoch(draw, laws=turned)), past))


def test_a_source_that_always_differed_is_not_told_of_until_it_changes() -> None:
    past, draw = series(14, n=8_000, laws={0: LAW[::-1]}), np.random.default_rng(4)

    as_ever = differences(METRIC, epoch(draw, n=8_000, laws={0: LAW[::-1]}))
    now_alike = differences(METRIC, epoch(draw, n=8_000))

    assert not list(source_findings(METRIC, as_ever, past))
    assert any("key key0" in text for text in source_findings(METRIC, now_alike, past))


def test_a_source_that_drifted_from_epoch_to_epoch_is_held_against_its_drift() -> None:
    draw = np.random.default_rng(5)
    swings = [
        {0: LAW * (1 + 0.9 * side * (np.arange(ITEMS) == 0)) } for side in (-1, 1, -1, 1, -1, 1, -1)
    ]  # fmt: skip
    laws = [{0: law[0] / law[0].sum()} for law in swings]
    past = [differences(METRIC, epoch(draw, n=20_000, laws=law)) for law in laws]
    now = differences(METRIC, epoch(draw, n=20_000, laws=laws[1]))

    assert not list(source_findings(METRIC, now, past))
    steady = series(7, n=20_000)
    assert list(source_findings(METRIC, now, steady))


def test_few_reports_few_epochs_and_unknown_keys_are_not_judged() -> None:
    draw = np.random.default_rng(6)
    few = epoch(draw, n=LEAST - 1)
    alone: dict[str | None, Tallied] = {"key0": epoch(draw)["key0"]}
    unknown: dict[str | None, Tallied] = {**alone, None: epoch(draw)["key1"]}

    assert differences(METRIC, few) == differences(METRIC, alone) == {}
    assert set(differences(METRIC, unknown)) == {"key0"}
    past = series(LEAST_EARLIER - 1)
    assert not list(
        source_findings(METRIC, differences(METRIC, epoch(draw, fakes={0: 1_000})), past)
    )


ALPHA: Final = 0.05
PART: Final = 0.1


def sources(seed: int, count: int = 20, **fields: Any) -> list[Tallied]:
    return list(epoch(np.random.default_rng(seed), sources=count, **fields).values())


def test_a_wrong_source_for_each_that_is_dropped_cannot_move_it_beyond_the_others() -> None:
    honest = sources(1)
    wrong = [Tallied(np.full_like(part.tally, end), part.n) for part, end in
             zip(honest[:2], (0, honest[1].n), strict=True)]  # fmt: skip
    own = np.array([METRIC.mechanism.debias(p.tally, p.n, np).totals / p.n for p in honest[2:]])

    mean = known(trimmed(METRIC, [*wrong, *honest[2:]], PART, ALPHA))

    assert (mean.dropped, mean.of) == (2, 20)
    assert (mean.values >= own.min(axis=0)).all()
    assert (mean.values <= own.max(axis=0)).all()


def test_one_more_wrong_source_than_are_dropped_moves_it() -> None:
    """It breaks down: said on the page, and true."""
    honest = sources(1)
    wrong = [Tallied(np.full_like(part.tally, part.n), part.n) for part in honest[:3]]
    own = np.array([METRIC.mechanism.debias(p.tally, p.n, np).totals / p.n for p in honest[3:]])

    mean = known(trimmed(METRIC, [*wrong, *honest[3:]], PART, ALPHA))

    assert (mean.values > own.mean(axis=0) + 0.1).all()


def test_fakes_under_one_key_move_the_mean_of_all_and_hardly_the_trimmed_one() -> None:
    attacked = sources(2, fakes={0: 1_400})
    whole = Tallied(
        np.asarray(sum(part.tally for part in attacked)), sum(part.n for part in attacked)
    )
    truth = LAW[TARGET]
    plain = METRIC.mechanism.debias(whole.tally, whole.n, np).totals[TARGET] / whole.n

    mean = known(trimmed(METRIC, attacked, PART, ALPHA))

    assert plain - truth > 0.1
    assert abs(mean.values[TARGET] - truth) < 0.05
    assert mean.low[TARGET] < truth < mean.high[TARGET]


def test_its_interval_holds_the_truth_as_often_as_it_says_and_costs_as_much_as_is_said() -> None:
    """Law: 20,000 rounds of 20 normal sources.  A level of 0.95 falls below 0.94, or rises above
    0.96, with a chance below 1e-9; a winsorized variance without its factor is the planted bug.
    """
    draws = np.random.default_rng(3).normal(0.0, 1.0, (20, 20_000))

    mean = _trimmed_mean(draws, PART, ALPHA)

    held = ((mean.low < 0) & (mean.high > 0)).mean()
    assert 0.94 < held < 0.96
    reach = (mean.high - mean.values) * (1 - 2 * PART)
    assert (np.abs(mean.values) < reach).mean() < 0.94
    cost = mean.values.var() * 20
    assert 1 < cost < 1 / (1 - 2 * PART)


@pytest.mark.parametrize(("part", "count"), [(0.1, 10), (0.05, 20), (0.25, 8), (0.4, 20)])
def test_a_mean_of_too_few_sources_is_none(part: float, count: int) -> None:
    assert least_sources(part) <= count
    assert trimmed(METRIC, sources(4, least_sources(part)), part, ALPHA) is not None
    assert trimmed(METRIC, sources(4, least_sources(part) - 1), part, ALPHA) is None


@pytest.mark.parametrize("part", [0.0, -0.1, 0.5, 0.9, float("nan")])
def test_a_part_that_leaves_nothing_or_drops_nothing_is_refused(part: float) -> None:
    with pytest.raises(ValueError, match=rf"^must be .* leave {LEAST_KEPT} of"):
        least_sources(part)


def test_the_standard_error_of_equal_sources_is_that_of_their_spread() -> None:
    """By hand: 10 sources, one dropped at each end, winsorized to 1 … 8 with both ends twice."""
    mean = _trimmed_mean(np.arange(10.0)[:, None], PART, ALPHA)

    winsorized = np.array([1.0, 1, 2, 3, 4, 5, 6, 7, 8, 8])
    error = winsorized.std(ddof=1) * sqrt(10) / 8
    assert mean.values[0] == 4.5
    assert mean.high[0] - 4.5 == pytest.approx(2.364624 * error, rel=1e-5)  # Student, 7 degrees
