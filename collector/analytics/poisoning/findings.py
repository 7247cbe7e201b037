"""What of poisoning an answer says: the influence of fakes on each row, and what looks like fakes.

Influence is how far a share FAKES of all reports could move a number.  A suspicion is a remark on
a slice that does not look like honest reports.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Final

import numpy as np
from msgspec.structs import replace

from client_sdk.mechanisms import (
    Channel,
    DistributionMechanism,
    KeyValueMechanism,
    VectorMechanism,
)
from client_sdk.registry.domain import NumberGrid
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.items import MEAN_OF

from ...core.remarks import Code, Remark, remark
from ...estimation.arrays import Ints
from ...estimation.estimate import is_pure, mean
from ...estimation.significance import binomial_tail
from ..answer import QUANTILES
from ..rows import ITEM, SHARE, TIME, Row
from ..verb import Slice, repeats_of
from .anomaly import CHANGE, FALSE_ALARM, REPORTS, Anomaly, anomalies_after
from .checks import EpochEstimates, epoch_estimates
from .influence import FAKES, key_mean_reach, mean_reach, moved, mover, quantiles_moved, weight

MEANS: Final = ("mean", "")  # what the mean of numbers is called in answers
BEYOND: Final = 5  # standard errors outside of 0 to 1: by chance once in 3 million shares
SELDOM: Final = 1 / 3_000_000  # the same of shares, exactly: few supports are not normal
_MOST_LOOKED_AT: Final = 60  # slices; of more, those that come last


def with_influence(
    rows: Sequence[Row], metric: Metric, tally: Ints | None = None
) -> tuple[Row, ...]:
    """Return *rows* of estimates with how far FAKES of all reports could move each.

    Args: tally: of the one slice that all rows are of, for the quantiles of a distribution;
          without it, and where no bound is known, a row has none.
    """
    grid = metric.domain.grid
    influences = dict(_of_numbers(rows, metric, grid, tally) if grid else _of_items(rows, metric))
    return tuple(replace(row, influence=influences.get(i)) for i, row in enumerate(rows))


def _of_numbers(
    rows: Sequence[Row], metric: Metric, domain: NumberGrid, tally: Ints | None
) -> Iterator[tuple[int, float]]:
    """Yield the place and the influence of means, and of quantiles if there is a tally."""
    mechanism, quantiles = metric.mechanism, dict[str, float]()
    has_quantiles = any(row.value is not None and row.item in QUANTILES for row in rows)
    if has_quantiles and tally is not None and isinstance(mechanism, DistributionMechanism):
        steps = quantiles_moved(mechanism, tally, int(np.sum(tally)), tuple(QUANTILES.values()))
        quantiles = dict(zip(QUANTILES, (float(domain.step) * s for s in steps), strict=True))
    reach = mean_reach(mechanism, domain)
    for i, row in enumerate(rows):
        if row.value is None:
            continue
        if row.item in quantiles:
            yield i, quantiles[row.item]
        elif row.item in MEANS and reach is not None:
            yield i, moved(reach, row.value)


def _of_items(rows: Sequence[Row], metric: Metric) -> Iterator[tuple[int, float]]:
    """Yield the place and the influence of shares, and of the means of keys."""
    domain, mechanism = metric.domain, metric.mechanism
    numbers = domain.numbers
    held = {_place(row): row.value for row in rows if row.unit == SHARE} if numbers else {}
    places = {label: place for place, label in enumerate(domain.labels)}
    unit, factor, offset = domain.unit, domain.extent, domain.least
    move_of = cache(lambda reach: mover(reach.in_unit(factor, offset)))  # items mostly share one
    reach_of = cache(partial(mechanism.share_reach, np=np))
    for i, row in enumerate(rows):
        if row.value is None:
            continue
        place = places.get(row.item) if row.unit == unit else None
        if place is not None:
            if reach := reach_of(place):
                yield i, move_of(reach)(row.value)
        elif numbers and isinstance(mechanism, KeyValueMechanism):
            share = held.get(_place(row, row.item.removeprefix(MEAN_OF))) or 0.0
            yield i, _of_key_mean(row.value, mechanism, numbers, share)


def _place(row: Row, item: str | None = None) -> frozenset[tuple[str, str]]:
    """Return the dimensions of *row*, or those of *item* in the same slice."""
    return frozenset({**row.dimensions, ITEM: row.item if item is None else item}.items())


def _of_key_mean(
    value: float, mechanism: KeyValueMechanism, numbers: NumberGrid, share: float
) -> float:
    """Return the influence on the mean of a key, which is cut off at the range as the mean is."""
    low, high = float(numbers.minimum), float(numbers.maximum)
    reach = key_mean_reach(mechanism, numbers, share)
    if reach is None:  # nobody holds the key: fakes alone make the mean
        return max(high - value, value - low)
    part = weight(reach, FAKES)
    ends = (value + part * (end - value) for end in (reach.low, reach.high))
    return max(abs(min(max(end, low), high) - value) for end in ends)


def suspicions(slices: Sequence[Slice]) -> Iterator[Remark]:
    """Yield a remark for each check that a slice fails.

    Slices that follow one another in time are compared with those before: whole ones with whole
    ones, and those of which an operator has taken something out with their like, as nothing
    changed suddenly but that.  Where devices repeat their noise, the tally of several epochs
    scatters more than the checks know, and is left out.
    """
    in_time = all(set(part.dimensions) == {TIME} for part in slices)
    # Estimated once: the comparisons are many more.  By whether something was taken out.
    pasts: Mapping[bool, list[EpochEstimates]] = {False: [], True: []}
    for part in slices[-_MOST_LOOKED_AT:]:
        if part.refusal is not None or repeats_of(part) > 1:
            continue
        place, past = ", ".join(part.dimensions.values()), pasts[part.excluded > 0]
        known = epoch_estimates(part.metric.mechanism, part.tally, part.n) if in_time else None
        for each in suspicions_of(part, past, known):
            yield replace(each, metric=part.metric.address, group=place)
        if known is not None:
            past.append(known)


def suspicions_of(
    part: Slice, past: Sequence[EpochEstimates], known: EpochEstimates | None = None
) -> Iterator[Remark]:
    """Yield a remark for each check that a slice fails, after those of the *past*; it names none.

    Args: known: the estimates of the slice, if somebody has them.
    """
    for anomaly in anomalies_after(part.metric, part.tally, part.n, past, known=known):
        yield _remark(anomaly)
    yield from impossible(part, known)
    yield from _impossible_mean(part)


def impossible(part: Slice, known: EpochEstimates | None = None) -> Iterator[Remark]:
    """Yield a remark for each share of a slice that no honest devices have, as noise goes.

    The error is that of a share of 0 or of 1, whose devices all lie alike; a share must be exactly
    as unlikely, too.
    """
    domain, mechanism = part.metric.domain, part.metric.mechanism
    is_share = is_pure(mechanism)
    if not domain.labels or not (is_share or isinstance(mechanism, VectorMechanism)):
        return
    values, variances, _ = known or epoch_estimates(mechanism, part.tally, part.n)
    errors = np.sqrt(variances)
    for place in np.flatnonzero(np.maximum(-values, values - 1) > BEYOND * errors).tolist():
        value, what = values[place], "share" if is_share else "mean"
        if is_pure(mechanism) and _chance(mechanism.channel, value, part.n) > SELDOM:
            continue
        off = (-value if value < 0 else value - 1) / errors[place]
        end = domain.least + domain.extent * (value > 0)
        side = f"{'below' if value < 0 else 'above'} {end:g}"
        name = repr(domain.labels[place]) if place < len(domain.labels) else "two items together"
        far = f"the {what} of {name} is {off:.1f} standard errors {side}"
        yield remark(Code.IMPOSSIBLE, what=far)


def _chance(channel: Channel, share: float, n: int) -> float:
    """Return the chance of a *share* so far outside of 0 to 1, were the truth the nearer end."""
    p, q = float(channel.p), float(channel.q)
    supports = round(n * (q + share * (p - q)))
    return binomial_tail(supports, n, p) if share > 1 else binomial_tail(n - supports, n, 1 - q)


def _impossible_mean(part: Slice) -> Iterator[Remark]:
    """Yield a remark if the mean of a slice lies outside of the range, as noise goes."""
    domain, mechanism = part.metric.domain.grid, part.metric.mechanism
    if domain is None or part.n < 1:
        return
    estimate = mean(mechanism, domain, part.tally, part.n, 1 / 2)
    low, high = float(domain.minimum), float(domain.maximum)
    off = max(low - estimate.value, estimate.value - high)
    if off > BEYOND * estimate.std_error:
        side = f"below {low:g}" if estimate.value < low else f"above {high:g}"
        what = f"the mean of {estimate.value:.4g} lies"
        yield remark(Code.IMPOSSIBLE, what=f"{what} {_far(off, estimate.std_error)}{side}")


def missed(rows: Iterable[Row], metric: Metric) -> Iterator[Remark]:
    """Yield a remark for each number far outside of its own interval: no truth gives it."""
    for row in rows:
        value = row.value if row.raw is None else row.raw
        if value is None or row.ci_low is None or row.ci_high is None or row.std_error is None:
            continue
        off = max(row.ci_low - value, value - row.ci_high)
        if off > BEYOND * row.std_error:
            side = f"outside of its own interval, {row.ci_low:.4g} to {row.ci_high:.4g}"
            group = ", ".join(row.dimensions.values())
            what = f"the number {value:.4g} {row.unit} lies {_far(off, row.std_error)}{side}"
            yield remark(Code.IMPOSSIBLE, metric.address, group, what=what)


def _far(off: float, error: float) -> str:
    return f"{off / error:.1f} standard errors " if error > 0 else ""


def _remark(anomaly: Anomaly) -> Remark:
    """Return what was found; of a change no chance is told, as the truth can have changed."""
    if anomaly.check in (CHANGE, REPORTS):
        return remark(Code.CHANGED_SUDDENLY, what=anomaly.text)
    return remark(Code.NOT_HONEST, what=anomaly.text, epochs=1 / FALSE_ALARM)
