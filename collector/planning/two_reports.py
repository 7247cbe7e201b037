"""What shuffled reports reveal where a report is one of two: two binomials, the worst crowd.  Pure.

A collector sees how many of n reports are the second one.  The device sends it with chance p or
q = 1 - p, p/q = E = e^ε0; j of the others with p, and n - 1 - j with q.  With R the number among
the others, r its law and B = e^ε, what the law of one value exceeds B times the other's by is

    (p - B q) r(m) + (1 - B) Pr[R > m] = c E[t^R] Σ_{i>m} (law(i-1) - law(i)) t^-i,

c = (B E - 1)/(E + 1), t = (B E - 1)/(E - B), law that of R tilted by t (its chances times t^R, of
sum 1), and m its mode: of a sum of independent coins it is within 1 of the mean (Darroch).  So the
sum is of what is there, and is made over the frequencies of the law: some hundred terms for any n.

Others that hold neither extreme, and any other channel of two reports and this ε, are mixtures and
garblings of this one, so they reveal no more.  What others hold beyond some is one more garbling:
j of low to high reveal at most what low and n - 1 - high others leave.  So every j is bounded, by
halving the stretch from 0 to n - 1 until no part of it exceeds the largest that was found by SPARE.
The worst is where all others hold the value of the device, or a few less, as counts are whole.

Rounding: by the number of its terms and the size of their phases a law is right to 1e-11 of its
largest chance, and so the sum to 2e-11 of that (by parts it is one chance less a mean of others).
It is that chance over z^2 and more, z being how many deviations the tilt moves the mean: below 12
for a divergence of 1e-30.  What callers keep back, 1e-6, is more than that.

Source: Darroch, Annals of Mathematical Statistics 1964; the rest is derived here.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

SPARE: Final = 1 / 32  # of the divergence: some 0.2 % of ε, and a few hundred sums at most
ROUGH: Final = 1 / 8  # where many are needed
_REACH: Final = 10.0  # standard deviations on either side, and as much as _MORE, that a law has
_MORE: Final = 40  # counts
_NATS: Final = 42.0  # a frequency whose part is below e^-42 is left out


class TwoReports:
    """The divergence at *epsilon* of shuffled reports, each one of two by *report* nats."""

    def __init__(self, report: float, devices: int, epsilon: float) -> None:
        """Take the ε of a report, how many *devices* report, and the ε to look at, below that."""
        odds, bound = math.exp(report), math.exp(epsilon)
        self.others = devices - 1
        self.scale = (bound * odds - 1) / (odds + 1)
        self.tilt = (bound * odds - 1) / (odds - bound)
        # of the second report, tilted: where a device sends it with p, and where with q
        self.chances = odds * self.tilt / (odds * self.tilt + 1), self.tilt / (self.tilt + odds)
        self.nats = (
            math.log((odds * self.tilt + 1) / (odds + 1)),
            math.log((odds + self.tilt) / (odds + 1)),
        )

    def alike(self) -> float:
        """Return the divergence where all others hold the value of the device: a lower bound."""
        return self.of(self.others, 0)

    def most(self, spare: float = SPARE) -> float:
        """Return a bound of the divergence whatever others hold: too large by *spare* at most."""
        largest, open_parts = self.alike(), [(0, self.others)]
        while open_parts:
            low, high = open_parts.pop()
            bound = self.of(low, self.others - high)
            if bound > largest * (1 + spare):
                if low == high:
                    largest = bound
                    continue
                middle = (low + high) // 2
                open_parts += [(low, middle), (middle + 1, high)]  # the upper one is worse
        return largest * (1 + spare)

    def of(self, same: int, opposite: int) -> float:
        """Return the divergence if *same* others hold the value of the device, and no more report.

        Args: opposite: how many hold the other value.
        """
        (p, q), tilt = self.chances, self.tilt
        mean = same * p + opposite * q
        deviation = math.sqrt(same * p * (1 - p) + opposite * q * (1 - q))
        half = math.ceil(_REACH * deviation + _MORE)  # counts on either side of the mean
        size, first = 2 * half + 1, math.floor(mean)
        # |E e^(iwR)| <= exp(-2 deviation^2 sin^2(w/2))
        sine = math.sqrt(_NATS / 2) / max(deviation, 1e-9)
        last = half if sine >= 1 else min(half, math.ceil(size / math.pi * math.asin(sine)))
        waves = 2j * math.pi / size * np.arange(1, last + 1)
        turns, steps = np.expm1(waves), np.exp(-waves) / tilt
        falls = turns * steps * (1 - steps**half) / (1 - steps)
        laws = np.exp(same * np.log1p(p * turns) + opposite * np.log1p(q * turns) - waves * first)
        nats = same * self.nats[0] + opposite * self.nats[1] - first * math.log(tilt)
        sums = (float((falls * laws * np.exp(-waves * i)).real.sum()) / tilt**i for i in (0, 1))
        return max(0.0, *sums) * self.scale * math.exp(nats) * 2 / size
