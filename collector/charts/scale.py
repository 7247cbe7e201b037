"""Scales: from values to user units and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Final

_LEAST: Final = 1e-290  # ends nearer together are one


@dataclass(frozen=True)
class Linear:
    """Maps low..high onto start..end; ``end`` may be the smaller, as upwards on a screen."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return where *value* is, in user units."""
        part = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * part

    def inverse(self, place: float) -> float:
        """Return the value at *place*."""
        part = (place - self.start) / (self.end - self.start)
        return self.low + (self.high - self.low) * part

    def within(self, value: float) -> float:
        """Return where *value* is, or the nearer end if it is outside."""
        return self.at(min(max(value, self.low), self.high))


@dataclass(frozen=True)
class Log:
    """Maps low..high, both above 0, onto start..end: equal factors are equal distances."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return where *value* > 0 is, in user units."""
        return self._line().at(log10(value))

    def inverse(self, place: float) -> float:
        """Return the value at *place*."""
        return float(10 ** self._line().inverse(place))

    def _line(self) -> Linear:
        return Linear(log10(self.low), log10(self.high), self.start, self.end)


def nice_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Return round numbers from at most *low* to at least *high*, about *most* of them or fewer.

    They are multiples of 1, 2 or 5 times a power of ten.
    """
    low, high = apart(low, high)
    step = _nice_step((high - low) / max(most - 1, 1))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return tuple(i * step for i in range(first, last + 1))


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return powers of ten from at most *low* > 0 to at least *high*; 2 and 5 too if few."""
    first = floor(log10(low) + 1e-9)
    last = max(ceil(log10(high) - 1e-9), first + 1)
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    found = [factor * 10.0**power for power in range(first, last) for factor in factors]
    return (*found, 10.0**last)


def span(values: Iterable[float]) -> tuple[float, float]:
    """Return the least and the greatest of the finite *values*; 0 and 0 if there are none."""
    finite = [value for value in values if isfinite(value)]
    return (min(finite), max(finite)) if finite else (0.0, 0.0)


def apart(low: float, high: float) -> tuple[float, float]:
    """Return the ends, moved apart if there is no room between them."""
    if high - low > max(1e-12 * max(abs(low), abs(high)), _LEAST):
        return low, high
    reach = abs(low) / 2 or 1.0
    return low - reach, high + reach


def _nice_step(step: float) -> float:
    power = 10.0 ** floor(log10(step))
    return float(next(nice for nice in (1, 2, 5, 10) if nice * power >= step * 0.999) * power)
