"""What metrics can cost a person, in epsilon and in words.  Pure, exact, and rounded up only.

The one home of what anybody is told: the notice and the explanations of the device, the commands
and the pages of the collector.  A day, a week and a year are any 1, 7 and 365 dates that follow one
another.  Epochs do not begin with them, so seven dates can touch two epochs of a week.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from ..core.dataclass import dataclass
from ..core.epoch import ONCE
from ..core.epoch import epochs_in as epochs_in
from ..core.typing import Final
from ..registry.contract import Registry
from ..registry.metric import Metric
from ..registry.seats import Price
from .caps import NANO_DECIMALS, PICO_DECIMALS, Caps
from .time_off import FORGED_WEEKS as FORGED_WEEKS

NANO: Final = 10**NANO_DECIMALS  # nano-epsilon of one epsilon
WEEK: Final = 7  # dates
YEAR: Final = 365  # dates

_UP: Final = Context(prec=40, rounding=ROUND_CEILING)
_WHOLE: Final = 100  # odds from here on are told without a decimal
_HUGE: Final = 10**8  # odds from here on are told as a power of ten
_SURE: Final = 100 * NANO  # nano-epsilon; a guess after so much is always right


_WEEKS: Final = -(-YEAR // WEEK)  # that hold any year, each within its caps


@dataclass(frozen=True)
class Cost:
    """The most that is charged, in nano-epsilon."""

    day: int  # any date
    week: int  # any seven dates
    year: int  # any 365 dates
    life: int | None  # None: reports add up for ever

    def within(self, panel_week: int | None) -> Cost:
        """Return what is left of this cost by the week of a panel, which ledgers enforce.

        A date can cost as much as the week: a secret that is drawn anew draws again.
        """
        if panel_week is None:
            return self
        week = min(self.week, panel_week)
        return Cost(min(self.day, week), week, min(self.year, _WEEKS * week), self.life)


def cost_of(metric: Metric) -> Cost:
    """Return the most that *metric* is charged, before any caps."""
    day, week, year = (cost_of_dates(metric, dates) for dates in (1, WEEK, YEAR))
    return Cost(day, week, year, _cost_for_life(metric))


def cost_of_dates(metric: Metric, dates: int) -> int:
    """Return the most nano-epsilon that *metric* is charged for *dates* dates, before any caps."""
    return price_of(metric).of_dates(dates)


def costs_together(metrics: Iterable[Metric], panel_week: int | None = None) -> Cost:
    """Return the most that *metrics*, with their panel, are charged, before any caps."""
    return added(cost_of(metric) for metric in metrics).within(panel_week)


def added(parts: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    costs = list(parts)
    lives = [cost.life for cost in costs if cost.life is not None]
    return Cost(
        sum(cost.day for cost in costs),
        sum(cost.week for cost in costs),
        sum(cost.year for cost in costs),
        sum(lives) if len(lives) == len(costs) else None,
    )


def delta_of_a_year(metrics: Iterable[Metric]) -> Fraction:
    """Return the most delta that *metrics* are charged together in any 365 dates."""
    whole = sum(epochs_in(metric.every, YEAR) * metric.whole_delta for metric in metrics)
    return Fraction(whole, 10**PICO_DECIMALS)


def reports(metric: Metric, caps: Caps) -> bool:
    """Whether *metric* ever reports within *caps*."""
    least = min(caps.report, caps.metric_week, caps.week, caps.lifetime)
    return metric.most_nano <= least and metric.whole_delta <= caps.delta


def why_refused(metric: Metric, registry: Registry, caps: Caps) -> tuple[str, str] | None:
    """Return what keeps *metric* of *registry* from ever being reported, and that in words.

    None: nothing does; its budget is spent for now, as it may be.
    """
    if (name := caps.below(metric.most_nano)) is not None:
        rule = f"costs more than caps.{name} allows, so that it is never reported"
        return f"{metric.name}, caps", f"metrics.{metric.name}: {rule}"
    others = [other for other in registry if other.digest != metric.digest]
    week = sum(min(cost_of(other).week, caps.metric_week) for other in others)
    if registry.panel_week is not None or week + metric.most_nano <= caps.week:
        return None
    rule = f"the others can cost ε {epsilon(week)} in any seven days, and caps.week"
    order = f"is ε {epsilon(caps.week)}: who comes last is never reported; a [panel] draws instead"
    return f"{metric.name}, caps", f"metrics.{metric.name}: {rule} {order}"


def most(metrics: Iterable[Metric], caps: Caps) -> Cost:
    """Return what *metrics* together can cost at most within *caps*."""
    costs = [cost_of(metric) for metric in metrics if reports(metric, caps)]
    year = sum(min(cost.year, _WEEKS * caps.metric_week) for cost in costs)
    week = min(caps.week, caps.lifetime, sum(min(cost.week, caps.metric_week) for cost in costs))
    day = min(week, sum(min(cost.day, caps.metric_week) for cost in costs))
    lives = [caps.lifetime if cost.life is None else cost.life for cost in costs]
    return Cost(
        day, week, min(year, _WEEKS * caps.week, caps.lifetime), min(caps.lifetime, sum(lives))
    )


def forged_week(metrics: Iterable[Metric], caps: Caps) -> int:
    """Return the most that seven days of *metrics* cost of a device whose clock is set.

    And that is restarted over and over: else less.
    """
    life = most(metrics, caps).life
    return min(FORGED_WEEKS * caps.week, caps.lifetime if life is None else life)


def nano_of(amount: Fraction) -> int:
    """Return an epsilon in whole nano-epsilon, rounded up."""
    return -(-amount * NANO // 1)


def epsilon(nano: int | None) -> str:
    """Return nano-epsilon as people read it: rounded up to a thousandth; of None, "no bound"."""
    if nano is None:
        return "no bound"
    thousandths = -(-nano * 1_000 // NANO)
    return f"{thousandths // 1_000:,}.{thousandths % 1_000:03}".rstrip("0").rstrip(".")


def shift(nano: int) -> str:
    """Return e^epsilon, the factor by which odds can shift, rounded up; such as "2.8"."""
    ratio = _ratio(nano)
    if ratio >= _HUGE:
        return f"10^{int(ratio.log10(_UP).to_integral_value(ROUND_CEILING))}"
    step = Decimal(1) if ratio >= _WHOLE else Decimal("0.1")
    return f"{ratio.quantize(step, ROUND_CEILING):,}"


def odds(nano: int, delta: Fraction = Fraction(0)) -> str:
    """Return by how much anybody's odds can shift at most, with δ if privacy is not pure."""
    but = f", but for a chance of {chance(delta)} of saying more" if delta else ""
    return f"{shift(nano)} to 1{but}"


def guesses(nano: int, delta: Fraction = Fraction(0)) -> int:
    """Return how often, of 100 times, the best guess between two answers is right at most.

    Source: Kairouz, Oh, Viswanath, ICML 2015: under (ε, δ) it is (e^ε + δ) / (1 + e^ε).
    """
    return int(-(-100 * _right(nano, delta) // 1))


def guesses_in_words(nano: int, delta: Fraction = Fraction(0)) -> str:
    """Return ``guesses``, above 99 with as many decimals, up to three, as tell it from 100."""
    right = _right(nano, delta)
    for decimals in range(4):
        times = -(-100 * 10**decimals * right // 1)
        if times < 100 * 10**decimals:
            return f"{times / 10**decimals:.{decimals}f}"
    return "100"


def _right(nano: int, delta: Fraction) -> Fraction:
    """Return the chance that the best guess is right, rounded up, as ``guesses`` has it."""
    if nano >= _SURE:
        return Fraction(1)
    ratio = Fraction(_ratio(nano))
    return min((ratio + delta) / (1 + ratio), Fraction(1))


def chance(delta: Fraction) -> str:
    """Return a small chance rounded up to one digit, such as "1e-06"."""
    exact = _UP.divide(Decimal(delta.numerator), Decimal(delta.denominator))
    return f"{float(Context(prec=1, rounding=ROUND_CEILING).plus(exact)):.0e}" if delta else "0"


def percent(part: Fraction, *, up: bool) -> str:
    """Return a chance in percent, to a tenth, rounded *up* or down: the way that says more."""
    tenths = -(-1_000 * part // 1) if up else 1_000 * part // 1
    return f"{tenths / 10:.1f} %"


def _ratio(nano: int) -> Decimal:
    """Return e^epsilon, by less than 1e-38 of it too large."""
    return _UP.next_plus(Decimal(nano).scaleb(-NANO_DECIMALS).exp(_UP)) if nano else Decimal(1)


def price_of(metric: Metric) -> Price:
    """Return what reports of *metric* are charged."""
    if (values := _values(metric)) is None:
        return Price(metric.every, metric.most_nano)
    first, second = _of_a_value(metric)
    return Price(metric.every, first, second, values)


def _cost_for_life(metric: Metric) -> int | None:
    """Return the most that *metric* is ever charged; None if that grows with every report."""
    if metric.every == ONCE:
        return metric.most_nano
    values = _values(metric)
    return None if values is None else values * sum(_of_a_value(metric))


def _values(metric: Metric) -> int | None:
    """Return for how many values a repeated metric is charged; None of a fresh one."""
    policy = metric.policy
    return None if policy is None else policy.oracle.domain_size


def _of_a_value(metric: Metric) -> Sequence[int]:
    """Return what the first report of a value costs, and what the second one does."""
    assert metric.policy is not None  # noqa: S101 - only those have values to count
    return metric.policy.nano_after(0), metric.policy.nano_after(1)
