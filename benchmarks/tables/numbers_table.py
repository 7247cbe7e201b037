"""What a mean costs: the error of every number mechanism, and the scales of Laplace and Gauss.

Run: ``python -m benchmarks numbers_table``; docs/ask/numbers.md holds its output, and a test
compares them.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

from benchmarks.lib.page import table
from client_sdk.mechanisms import MeanMechanism, load, names
from client_sdk.mechanisms.numbers.discrete_gaussian import DiscreteGaussian
from client_sdk.registry.encodings import NUMBERS
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import choose

EPSILONS: Final = ("0.5", "1.0", "2.0", "4.0")  # nats per report
DEVICES: Final = 10_000
POINTS: Final = 101  # of the grid, such as 0 to 100 in steps of 1
Z: Final = NormalDist().inv_cdf(0.975)
GAUSS: Final = (("0.5", "1e-5"), ("1.0", "1e-5"), ("4.0", "1e-5"), ("1.0", "1e-9"))
SMALLEST: Final = 1e-12  # relative width at which a bisection ends


def error_table() -> str:
    """Return the 95 % half-widths of a mean as Markdown, in percent of the range."""
    able = [name for name in names() if issubclass(load(name), MeanMechanism)]
    rows = []
    for epsilon in EPSILONS:
        reach = [Z * load(name)(epsilon, POINTS).predict(DEVICES) for name in able]
        chosen, mechanism = choose(AUTO, NUMBERS, epsilon, POINTS)
        cells = (f"±{100 * part:.2f} %" for part in reach)
        rows.append((epsilon, *cells, f"`{chosen}`, {mechanism.payload_size} byte"))
    return table(("ε per report", *(f"`{name}`" for name in able), "`auto` takes"), rows)


def laplace_example() -> str:
    """Return the worked example of local Laplace noise."""
    low, high, epsilon = 0, 100, 1.0
    delta = high - low
    scale = delta / epsilon
    one = math.sqrt(2) * scale
    error = one / math.sqrt(DEVICES)
    return "\n".join(
        [
            f"range {low} to {high}:  Δ = {high} - {low} = {delta}",
            f"ε = {epsilon}:  b = Δ/ε = {scale:g}",
            f"one report:  standard deviation √2·b = {one:.1f}",
            f"mean of {DEVICES:,} devices:  {one:.1f} / √{DEVICES:,} = {error:.2f}",
            f"95 % interval:  ±{Z:.2f} · {error:.2f} = ±{Z * error:.2f}",
        ]
    )


def gauss_table() -> str:
    """Return the classical, the analytic and the shipped σ for Δ = 1 as Markdown."""
    heads = ("ε", "δ", "classical σ", "analytic σ", "`discrete_gaussian`", "Laplace √2·b")
    rows = []
    for epsilon, delta in GAUSS:
        e, d = float(epsilon), float(delta)
        classical = f"{classical_sigma(e, d):.2f}" if e <= 1 else "not valid above ε = 1"
        exponent = int(delta.removeprefix("1e-"))
        shipped = DiscreteGaussian(epsilon, 2, delta_exponent=exponent).noise_variance ** 0.5
        sigmas = (f"{sigma:.2f}" for sigma in (analytic_sigma(e, d), shipped, math.sqrt(2) / e))
        rows.append((epsilon, delta, classical, *sigmas))
    return table(heads, rows)


def classical_sigma(epsilon: float, delta: float) -> float:
    """Return √(2 ln(1.25/δ))/ε, for a sensitivity of 1; valid for ε up to 1."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def analytic_sigma(epsilon: float, delta: float) -> float:
    """Return the smallest σ of continuous Gaussian noise for a sensitivity of 1.

    Source: Balle, Wang, ICML 2018, Theorem 8.
    """
    low, high = 1e-3, 1e6
    while high - low > SMALLEST * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _delta(epsilon, middle) > delta else (low, middle)
    return high


def _delta(epsilon: float, sigma: float) -> float:
    """Return Φ(1/2σ - εσ) - e^ε Φ(-1/2σ - εσ)."""
    first, second = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
    return _normal(first) - math.exp(epsilon) * _normal(second)


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def main() -> None:
    """Print the tables."""
    print(error_table(), laplace_example(), gauss_table(), sep="\n\n")
