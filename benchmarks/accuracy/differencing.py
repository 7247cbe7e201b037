"""The differencing attack: two means, one person more, and what the newcomer spent.

A hundred people spent 10,000 each; then there are 101, and the mean is 20,000.  Who subtracts one
sum from the other has isolated the newcomer.  That is always possible; what it yields is measured
here for exact answers, for answers with noise of the server's, and for Hearsay, with the device as
it is shipped.

Run: ``python -m benchmarks differencing``; half a minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import SystemRandom
from typing import Any, Final, cast

import numpy as np

from benchmarks.lib.slips import Slip, laplace, slips
from client_sdk.core.randomness import Randomness, system_randomness
from client_sdk.mechanisms import load
from client_sdk.privacy.caps import Caps
from client_sdk.registry.contract import Registry
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.numbers import NumberDomain
from client_sdk.testing import FrozenClock, MemoryClient, MemoryTransport
from collector.core.text_tables import table_lines
from collector.estimation.estimate import mean
from collector.estimation.isolation import (
    EACH,
    EPSILON,
    MEAN_AFTER,
    MECHANISM,
    NEWCOMER,
    PEOPLE,
    RANGE,
    STEP,
    TIMES,
    of_exact,
    of_server,
)

EPSILONS: Final = (1.0, 0.5)  # of guesses
ATTACKS: Final = 100_000
DAYS: Final = 14  # on which somebody asks again
WEEKLY: Final = "3"  # ε that the device may be charged in any seven days
_ALPHA: Final = 0.05
_NORMAL: Final = 1.959963984540054  # standard errors of an interval of 95 %

METRIC: Final = f"""
title = "Spent"
question = "How much do people spend?"
type = "number"
min = 0
max = {RANGE}
step = {STEP}
unit = "EUR"
mechanism = "{MECHANISM}"
epsilon = "{EPSILON}"
every = "%s"
longitudinal = "fresh"
expected_devices = 5000
min_reports = 100
owner = "the demo"
expires = 2100-01-01
"""
REGISTRY: Final = f"""
schema = 1
app = "differencing"
[metrics.weekly]
{METRIC % "7d"}
[metrics.daily]
{METRIC % "1d"}
"""


@dataclass(frozen=True)
class Isolation:
    """What an attacker gets to know of what the newcomer spent."""

    answers: str
    queries: int
    epsilon: float  # that the newcomer has lost, in nats; infinite without noise
    estimate: float
    half_width: float  # of the interval of 95 %, by what is known of the noise

    @property
    def off(self) -> float:
        """How far the estimate is from the truth."""
        return abs(self.estimate - NEWCOMER)


@dataclass(frozen=True)
class Guesses:
    """How often the best guess between two answers is right, by a report of *epsilon*."""

    epsilon: float
    attacks: int
    right: int

    @property
    def most(self) -> float:
        """The share that no guess can pass: e^ε/(1 + e^ε)."""
        return 1 / (1 + math.exp(-self.epsilon))


@dataclass(frozen=True)
class Repeats:
    """What asking again yields."""

    retries: int  # uploads of one report that was not acknowledged
    different: int  # bodies among them
    days: int
    reports: int  # of these days, within the cap
    charged: float  # ε in the ledger


@dataclass(frozen=True)
class Differencing:
    """All that is measured."""

    isolations: list[Isolation]
    guesses: list[Guesses]
    repeats: Repeats
    slips: list[Slip] = field(default_factory=list)


def measure(attacks: int = ATTACKS) -> Differencing:
    """Attack exact answers, noise of a server, and Hearsay."""
    chance, randomness = SystemRandom(), system_randomness()
    return Differencing(
        [exact(), *(central(times, chance) for times in TIMES), *locally()],
        [guessed(epsilon, attacks, randomness) for epsilon in EPSILONS],
        repeated(),
        list(slips(chance, randomness)),
    )


def exact() -> Isolation:
    """Attack means as they are."""
    first = [EACH] * PEOPLE
    second = [*first, NEWCOMER]
    means = (sum(first) / len(first), sum(second) / len(second))
    known = of_exact()
    return Isolation(
        "exact means", known.queries, known.epsilon, _difference(*means), known.half_width
    )


def central(times: int, chance: SystemRandom) -> Isolation:
    """Attack means with Laplace noise of ε 1 that is drawn anew for every answer, without a budget.

    The server knows all values; its noise is right for one answer.
    """
    first, second = EACH, (EACH * PEOPLE + NEWCOMER) / (PEOPLE + 1)
    total = 0.0
    for _ in range(times):
        before = first + laplace(RANGE / PEOPLE, chance)
        after = second + laplace(RANGE / (PEOPLE + 1), chance)
        total += _difference(before, after)
    known = of_server(times)
    return Isolation(
        f"noise of a server, ε {EPSILON} an answer", known.queries, known.epsilon, total / times,
        known.half_width,
    )  # fmt: skip


def locally() -> Iterator[Isolation]:
    """Attack Hearsay: both answers, and then the newcomer's report by itself."""
    clock = FrozenClock()
    people = [_Device(clock) for _ in range(PEOPLE)]
    before = [device.reported(EACH) for device in people]
    clock.advance(days=7)
    newcomer = _Device(clock)
    after = [device.reported(EACH) for device in people]
    own = newcomer.reported(NEWCOMER)
    means = (_mean(before), _mean([*after, own]))
    sums = (means[0][0] * PEOPLE, means[1][0] * (PEOPLE + 1))
    errors = (means[0][1] * PEOPLE, means[1][1] * (PEOPLE + 1))
    yield Isolation(
        "Hearsay, both answers", 2, 1.0, sums[1] - sums[0], _NORMAL * math.hypot(*errors)
    )
    alone, error = _mean([own])
    yield Isolation("Hearsay, the report itself", 1, 1.0, alone, _NORMAL * error)


def guessed(
    epsilon: float,
    attacks: int,
    randomness: Randomness,
    report: Callable[[Any, int, Randomness], Sequence[bytes]] | None = None,
) -> Guesses:
    """Guess a yes or no from what a device sends of it, as often as *attacks* says.

    Args: report: what a device sends of an answer, retries included: a report, always the same.
    """
    mechanism = load("grr")(str(epsilon), 2)
    sends = report or (lambda grr, item, drawn: [grr.randomize(item, drawn)])
    right = 0
    for _ in range(attacks):
        truth = randomness.uniform(2)
        seen = sends(mechanism, truth, randomness)
        yes = sum(int.from_bytes(payload, "big") for payload in seen)
        right += (2 * yes > len(seen)) == bool(truth)
    return Guesses(epsilon, attacks, right)


def repeated(retries: int = 3) -> Repeats:
    """Ask for one report again and again, and for a new one every day under a cap."""
    clock = FrozenClock()
    device = _Device(clock, *[503] * (retries - 1))
    for _ in range(retries):
        device.client.record("weekly", NEWCOMER)  # the epoch has its report from the first on
        device.client.flush()
        clock.advance(seconds=3_600)
    capped = _Device(clock, caps=Caps(week=WEEKLY)).client
    for _ in range(DAYS):
        capped.record("daily", NEWCOMER)
        clock.advance(days=1)
    reports = len(capped.recorded)
    metric = _metric("daily")
    return Repeats(
        retries=len(device.transport.uploads),
        different=len(set(device.transport.uploads)),
        days=DAYS,
        reports=reports,
        charged=float(reports * metric.mechanism.spent),
    )


def lines_of(result: Differencing) -> Iterator[str]:
    """Yield what was measured as text."""
    after = f"Then there are {PEOPLE + 1}, who spent {MEAN_AFTER:,}."
    yield f"{PEOPLE} people spent {EACH:,} each. {after}"
    yield f"The newcomer spent {NEWCOMER:,}, of a declared range of 0 to {RANGE:,}."
    yield ""
    heads = ["who answers", "answers", "ε lost", "estimate of it", "95 % interval", "off by"]
    rows = [
        [row.answers, f"{row.queries:,}", f"{row.epsilon:,.0f}" if row.epsilon < math.inf else "∞",
         f"{row.estimate:,.0f}", f"± {row.half_width:,.0f}", f"{row.off:,.0f}"]
        for row in result.isolations
    ]  # fmt: skip
    yield from table_lines([heads, *rows], "<>>>>>", indent="  ")
    yield ""
    yield "Isolation is possible, and yields one deniable report."
    for guess in result.guesses:
        share = guess.right / guess.attacks
        margin = _NORMAL * math.sqrt(guess.most * (1 - guess.most) / guess.attacks)
        yield (
            f"- ε {guess.epsilon:g}: the best guess between two answers is right in "
            f"{100 * share:.2f} ± {100 * margin:.2f} % of {guess.attacks:,} attacks; its chance is "
            f"at most {100 * guess.most:.2f} %"
        )
    repeats = result.repeats
    answers = "answer" if repeats.different == 1 else "different answers"
    yield f"- asked {repeats.retries} times for one report: {repeats.different} {answers}"
    yield (
        f"- asked anew on {repeats.days} days under a cap of ε {WEEKLY} a week: {repeats.reports} "
        f"reports, ε {repeats.charged:.3g} in the ledger"
    )
    yield ""
    yield "What else goes wrong where noise is added by hand:"
    cells = [[slip.name, slip.measured, slip.right] for slip in result.slips]
    yield from table_lines([["slip", "measured", "without it"], *cells], "<<<", indent="  ")


def main() -> None:
    """Print what was measured."""
    print("\n".join(lines_of(measure())))


def _difference(before: float, after: float) -> float:
    """Return what the newcomer spent, by two means."""
    return after * (PEOPLE + 1) - before * PEOPLE


def _metric(name: str) -> Metric:
    return _registry().metrics[name]


@cache
def _registry() -> Registry:
    return Registry.from_text(REGISTRY)


class _Device:
    """A device as it is shipped, with entropy of the system, that sends into memory."""

    def __init__(self, clock: FrozenClock, *statuses: int, caps: Caps | None = None) -> None:
        """Answer its uploads with *statuses*, and accept everything after them."""
        self.transport = MemoryTransport(*statuses)
        self.client = MemoryClient(
            _registry(), transport=self.transport, clock=clock, caps=caps or Caps()
        )

    def reported(self, value: float) -> bytes:
        """Return what the collector gets of who spent *value* this week."""
        self.client.record("weekly", value)
        self.client.flush()
        return self.transport.reports()[-1].payload


def _mean(payloads: Sequence[bytes]) -> tuple[float, float]:
    """Return the mean and its standard error, as the collector estimates them."""
    metric = _metric("weekly")
    tally = metric.mechanism.tally(b"".join(payloads), np)
    domain = cast("NumberDomain", metric.domain)
    estimate = mean(metric.mechanism, domain, tally, len(payloads), _ALPHA)
    return float(estimate.value), float(estimate.std_error)
