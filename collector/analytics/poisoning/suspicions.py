"""What of the slices of an answer does not look like honest reports, in words.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from client_sdk.registry.metric import Metric

from ...estimation.estimate import is_pure, mean
from ..repeats import repeats_of
from ..rows import TIME, Row
from ..slices import Slice
from .anomaly import CHANGE, FALSE_ALARM, REPORTS, Anomaly, anomalies_after
from .change import Estimated, estimated

BEYOND: Final = 5  # standard errors outside of 0 to 1: by chance once in 3 million shares
MOST_LOOKED_AT: Final = 60  # slices; of more, those that come last


def suspicions(slices: Sequence[Slice]) -> Iterator[str]:
    """Yield a sentence for each check that a slice fails.

    Slices that follow one another in time are compared with those before.  Where devices repeat
    their noise, the tally of several epochs scatters more than the checks know, and is left out.
    """
    in_time = all(set(one.dimensions) == {TIME} for one in slices)
    past: list[Estimated] = []  # of each slice once: the comparisons are as many as their square
    for one in slices[-MOST_LOOKED_AT:]:
        if one.refusal is not None or repeats_of(one) > 1:
            continue
        place = ", ".join(one.dimensions.values())
        for text in found_in(one, past):
            yield f"{_named(one, place)}: {text}"
        if in_time:
            past.append(estimated(one.metric.mechanism, one.tally, one.n))


def found_in(one: Slice, past: Sequence[Estimated]) -> Iterator[str]:
    """Yield a sentence for each check that a slice fails, after those of the *past*."""
    for found in anomalies_after(one.metric, one.tally, one.n, past):
        yield _sentence(found)
    yield from impossible(one)
    yield from impossible_mean(one)


def _named(one: Slice, place: str) -> str:
    """Return what a slice is called."""
    return f"{one.metric.name} ({place})" if place else one.metric.name


def impossible(one: Slice) -> Iterator[str]:
    """Yield a sentence for each share of a slice that no honest devices have, as noise goes.

    The error is that of a share of 0 or of 1, whose devices all lie alike.
    """
    domain, mechanism = one.metric.domain, one.metric.mechanism
    if not domain.labels or not is_pure(mechanism):
        return
    values, variances, _ = estimated(mechanism, one.tally, one.n)
    errors = np.sqrt(variances)
    for place in np.flatnonzero(np.maximum(-values, values - 1) > BEYOND * errors).tolist():
        value, side = values[place], "below 0" if values[place] < 0 else "above 1"
        off = (-value if value < 0 else value - 1) / errors[place]
        yield (
            f"impossible for honest devices: the share of {domain.labels[place]!r} is "
            f"{off:.1f} standard errors {side}; see poisoning"
        )


def impossible_mean(one: Slice) -> Iterator[str]:
    """Yield a sentence if the mean of a slice lies outside of the range, as noise goes."""
    domain, mechanism = one.metric.domain.grid, one.metric.mechanism
    if domain is None or one.n < 1:
        return
    found = mean(mechanism, domain, one.tally, one.n, 1 / 2)
    low, high = float(domain.minimum), float(domain.maximum)
    off = max(low - found.value, found.value - high)
    if off > BEYOND * found.std_error:
        side = f"below {low:g}" if found.value < low else f"above {high:g}"
        yield _not_of_honest(f"the mean of {found.value:.4g} lies", off, found.std_error, side)


def missed(rows: Iterable[Row], metric: Metric) -> Iterator[str]:
    """Yield a sentence for each number far outside of its own interval: no truth gives it."""
    for row in rows:
        value = row.value if row.raw is None else row.raw
        if value is None or row.ci_low is None or row.ci_high is None or row.std_error is None:
            continue
        off = max(row.ci_low - value, value - row.ci_high)
        if off > BEYOND * row.std_error:
            side = f"outside of its own interval, {row.ci_low:.4g} to {row.ci_high:.4g}"
            place = ", ".join(row.dimensions.values())
            name = f"{metric.name} ({place})" if place else metric.name
            number = f"the number {value:.4g} {row.unit} lies"
            yield f"{name}: {_not_of_honest(number, off, row.std_error, side)}"


def _not_of_honest(what: str, off: float, error: float, side: str) -> str:
    errors = f"{off / error:.1f} standard errors " if error > 0 else ""
    return f"impossible for honest devices: {what} {errors}{side}; see poisoning"


def _sentence(found: Anomaly) -> str:
    """Return what was found; of a change no chance is told, as the truth can have changed."""
    if found.check in (CHANGE, REPORTS):
        return f"changed suddenly: {found.text}; the truth may have, or fakes began"
    chance = f"by chance once in {1 / FALSE_ALARM:,.0f} epochs"
    return f"not what honest devices send: {found.text}; {chance}"
