"""Means of vectors: the codebook beside the best possible mechanism and Gaussian noise.

Run: ``python -m benchmarks vectors``; docs/ask/vectors.md holds the first table, and a test
compares it with ``table``.  C is the variance of a report in every coordinate, in squares of the
bound.  That of the best is PrivUnitG's program, by Asi, Feldman and Talwar (ICML 2022); that of
Gaussian noise is calibrated by Balle and Wang (ICML 2018) to two vectors at opposite ends of the
ball.  Both are computed; in the second table real reports and real noise of the same run are
measured, and the bars are held against it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import cache
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from benchmarks.lib import page
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import UNIT
from client_sdk.mechanisms.numbers.codebook import Codebook

EPSILONS: Final = ("0.5", "1", "2", "3", "4", "5")  # nats per report
DELTA: Final = 1e-5  # of Gaussian noise
BAR: Final = 1.03  # times the optimum, at most
GAUSSIAN_BAR: Final = 7.0  # times ours, at least
DRAWN: Final = {256: 1_000, 1_024: 300}  # reports that are measured, by the length of the vector
DEVICE_BARS: Final = {100: 2.0, 1_000: 15.0}  # milliseconds a report
FOLD_BAR: Final = 2.0  # microseconds a report of 100 numbers
_STEPS: Final = 20_000


@cache
def optimum(epsilon: float) -> float:
    """Return C of PrivUnitG: the least over q of (q (1-q) / (φ(z_q) (P_q - q)))^2."""
    normal, odds = NormalDist(), math.exp(epsilon)
    gains = []
    for step in range(1, _STEPS):
        q = step / _STEPS
        truth = q * odds / (q * odds + 1 - q)
        gains.append(normal.pdf(normal.inv_cdf(q)) * (truth - q) / (q * (1 - q)))
    return 1 / max(gains) ** 2


@cache
def gaussian(epsilon: float, delta: float = DELTA) -> float:
    """Return the least variance of noise that is (ε, δ) for vectors at most 2 apart."""
    normal = NormalDist()

    def spent(deviation: float) -> float:
        near, far = 1 / deviation, epsilon * deviation / 2
        return normal.cdf(near - far) - math.exp(epsilon) * normal.cdf(-near - far)

    low, high = 1e-3, 1e3
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spent(middle) > delta else (low, middle)
    return high**2


def table() -> str:
    """Return what is computed, as rows of Markdown."""
    rows = []
    for epsilon in EPSILONS:
        ours, best = Codebook(epsilon, 1_024).noise, optimum(float(epsilon))
        noise = gaussian(float(epsilon))
        rows.append(
            page.row(
                epsilon,
                f"{ours:.4g} ({ours / best:.3f} times the best)",
                f"{best:.4g}",
                f"{noise:.4g} ({noise / ours:.1f} times ours)",
            )
        )
    return "\n".join(rows)


def measured() -> Iterator[tuple[object, ...]]:
    """Yield C as real reports of a random unit vector and real noise scatter, and the error."""
    dice = np.random.default_rng(1)
    for length, n in DRAWN.items():
        drawn = dice.standard_normal(length)
        unit = drawn / np.linalg.norm(drawn)
        value = tuple(int(x * UNIT * (1 - 1e-9)) for x in unit)
        for epsilon in EPSILONS:
            mechanism, randomness = Codebook(epsilon, length), system_randomness()
            reports = b"".join(mechanism.randomize(value, randomness) for _ in range(n))
            totals, variances = mechanism.debias(mechanism.tally(reports, np), n, np)
            own = n * n * mechanism.codebook_variance
            ours = 4 * float((variances - own).mean()) / n
            off = n * float(((2 * totals / n - 1 - unit) ** 2).mean())
            noise = dice.standard_normal((n, length)) * math.sqrt(gaussian(float(epsilon)))
            theirs = float(noise.var(axis=0, ddof=1).mean())
            best = optimum(float(epsilon))
            yield (
                *(length, epsilon, f"{ours:.4g}", f"{ours / best:.3f}", f"{off:.4g}"),
                *(f"{theirs:.4g}", f"{theirs / ours:.1f}"),
            )


def costs() -> Iterator[tuple[object, ...]]:
    """Yield what a report costs the device and the collector, on this machine."""
    randomness = system_randomness()
    for length, bar in DEVICE_BARS.items():
        mechanism = Codebook("1", length)
        value = (UNIT // length,) * length
        repeats = 2_000 // length
        took = _least(lambda m=mechanism, v=value: m.randomize(v, randomness), repeats)
        yield (
            f"device, {length} numbers",
            f"{1e3 * took:.2f} ms",
            f"≤ {bar:g} ms",
            _met(took * 1e3, bar),
        )
    mechanism = Codebook("1", 100)
    numbers = np.random.default_rng(2).integers(0, mechanism.payload_count, 20_000)
    column = numbers.astype(">u4").tobytes()
    took = 1e6 * _least(lambda: mechanism.tally(column, np), 5) / 20_000
    yield "collector, 100 numbers", f"{took:.2f} µs", f"≤ {FOLD_BAR:g} µs", _met(took, FOLD_BAR)


def _least(call: Any, repeats: int) -> float:
    """Return the least seconds of processor time that a call takes."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def _met(number: float, bar: float) -> str:
    return page.verdict(number <= bar)


def main() -> None:
    """Print what is computed, what is measured, what it costs, and the verdicts."""
    print(page.head("ε", "codebook", "best", "Gaussian, δ = 10⁻⁵"), table(), sep="\n", end="\n\n")
    heads = ("numbers", "ε", "C", "of the best", "n error²", "Gaussian", "of ours")
    page.show(heads, measured())
    print()
    page.show(("what", "found", "bar", "verdict"), costs())
    ratios = [Codebook(e, 1_024).noise / optimum(float(e)) for e in EPSILONS]
    apart = [gaussian(float(e)) / Codebook(e, 1_024).noise for e in EPSILONS]
    print(f"\nwithin {BAR} of the best: {_met(max(ratios), BAR)}, at most {max(ratios):.3f}")
    verdict = page.verdict(min(apart) >= GAUSSIAN_BAR)
    print(f"Gaussian noise at least {GAUSSIAN_BAR:g} times ours: {verdict}, {min(apart):.2f}")
