"""The designs of `minimax`: where its outputs lie, by the ε from which each is used.

The variance of a report of input i, as a part of what inputs span, is convex in the places of the
outputs once the last window's sum is 1: sum over outputs of (floor + inside) t^2 / gain^2 - T(i)^2.
So the largest over all inputs, and over places half way between two, has one minimum, found by
Newton steps with a logarithmic barrier.  A design is the best for both ends of its row at once, and
a row ends where rounded to bytes it errs by more than SLACK beside the best of each ε.

Run: ``python -m benchmarks minimax_table``; a minute.  client_sdk/mechanisms/numbers/minimax.py has
what it prints.  Any row is private and unbiased, so the last bit of a processor, which may change a
byte, changes neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any, Final

import numpy as np

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms.numbers.minimax import Minimax

OUTPUTS: Final = 64  # with 128 the largest variance falls by less than 1 % up to epsilon 8
HALF: Final = OUTPUTS // 2
FIRST, LAST, STEP = 100, 8_200, 50  # of epsilon, in thousandths
FINE: Final = 5_000  # up to which a row keeps to the smaller slack
SLACK: Final = (1.01, 1.02)  # of the variance, beside a design for one epsilon alone
POINTS: Final = 101  # grid points
# The width at some epsilon, near which the best one is searched.
NEAR: Final = ((0.5, 1, 2, 3, 4, 5, 6, 7.5, 9), (32, 31, 25.5, 21, 17, 13, 10, 6, 4))


def rows() -> Iterator[tuple[int, int, str]]:
    """Yield from which thousandth of ε on, width, and distances as hexadecimal."""
    first = FIRST
    while first < LAST - 4 * STEP:
        slack, last = SLACK[first >= FINE], first + STEP
        row = best_of(first, last)
        while last + STEP <= LAST and (wider := best_of(first, last + STEP))[0] <= slack:
            row, last = wider, last + STEP
        yield first, row[1], row[2]
        first = last


def best_of(first: int, last: int) -> tuple[float, int, str]:
    """Return how far the best design for both ends errs beside the best of each, and the design."""
    ends = (first, last)
    designs = []
    for width in widths((first + last) // 2, 1):
        _, places = design(ends, width, [alone(end) for end in ends])
        distances = bytes(np.round(places / places.max() * 255).astype(np.uint8)).hex()
        among = (first, (first + last) // 2, last)
        worst = max(variance(e, width, int(distances, 16)) / alone(e) for e in among)
        designs.append((worst, width, distances))
    return min(designs)


@cache
def alone(thousandths: int) -> float:
    """Return the least largest variance at this ε, in half ranges squared."""
    return min(design((thousandths,), width, [1.0])[0] for width in widths(thousandths, 2))


def widths(thousandths: int, around: int) -> range:
    """Return the widths that are tried."""
    near = round(float(np.interp(thousandths / 1000, *NEAR)))
    return range(max(2, near - around), min(HALF, near + around) + 1)


def variance(thousandths: int, width: int, distances: int) -> float:
    """Return the largest variance of the mechanism of a design, in half ranges squared."""
    epsilon = Fraction(thousandths, 1000)
    try:
        mechanism = Minimax(epsilon, POINTS, width=width, distances=distances)
    except InvalidParameterError:  # rounded to bytes, two windows have one sum
        return math.inf
    return mechanism.worst_variance * (2 / mechanism.top) ** 2


def design(ends: tuple[int, ...], width: int, units: list[float]) -> tuple[float, Any]:
    """Return the least largest variance in *units* of each end, and the places it is reached by."""
    inside = np.lib.stride_tricks.sliding_window_view(np.arange(OUTPUTS), width)
    held = np.zeros((len(inside), OUTPUTS))
    np.put_along_axis(held, inside, 1, axis=1)
    between = (held[:-1] + held[1:]) / 2
    held = np.vstack([held[len(held) // 2 :], between[len(between) // 2 :]])  # the others mirror
    sums = held[:, ::-1][:, :HALF] - held[:, :HALF]
    squares, lines = [], []
    for end, unit in zip(ends, units, strict=True):
        odds = math.exp(end / 1000)
        floor = 1 / (odds * width + OUTPUTS - width)
        gain = (odds - 1) * floor
        law = floor + gain * held
        squares.append((law[:, :HALF] + law[:, ::-1][:, :HALF]) / gain**2 / unit)
        lines.append(sums / math.sqrt(unit))
    top = (np.arange(HALF) < width).astype(float)  # the last window's sum; they do not cross
    return minimize(np.vstack(squares), np.vstack(lines), top)


def minimize(squares: Any, lines: Any, top: Any) -> tuple[float, Any]:
    """Return the least of max over r of squares[r] @ z^2 - (lines[r] @ z)^2 for top @ z = 1."""
    z = np.linspace(1, 0, HALF) + 0.01
    z /= top @ z
    worst = float(_forms(squares, lines, z).max()) * 1.1
    weight = 1.0
    while True:
        slack = worst - _forms(squares, lines, z)
        slopes = 2 * squares * z - 2 * (lines @ z)[:, None] * lines
        gradient = np.append(slopes.T @ (1 / slack), 1 / weight - (1 / slack).sum())
        matrix = np.zeros((HALF + 2, HALF + 2))
        curve = np.diag((2 * squares.T) @ (1 / slack)) - 2 * (lines / slack[:, None]).T @ lines
        matrix[:HALF, :HALF] = curve + (slopes / slack[:, None] ** 2).T @ slopes
        matrix[:HALF, HALF] = matrix[HALF, :HALF] = -(slopes.T @ slack**-2.0)
        matrix[HALF, HALF] = (slack**-2.0).sum()
        matrix[:HALF, -1] = matrix[-1, :HALF] = top
        step = np.linalg.solve(matrix, -np.append(gradient, 0))[:-1]
        fall = -float(step @ gradient)
        part, before = 1.0, worst / weight - np.log(slack).sum()
        while part > 1e-12:
            moved, bound = z + part * step[:-1], worst + part * float(step[-1])
            left = bound - _forms(squares, lines, moved)
            if left.min() > 0:
                after = bound / weight - np.log(left).sum()
                if after <= before - 1e-4 * part * fall:
                    z, worst = moved, bound
                    break
            part /= 2
        if fall < 1e-3 or part <= 1e-12:
            if weight * len(squares) < 1e-5 * worst:
                return worst, z
            weight /= 8


def _forms(squares: Any, lines: Any, z: Any) -> Any:
    return squares @ (z * z) - (lines @ z) ** 2


def main() -> None:
    """Print the rows as they stand in the mechanism's file."""
    for first, width, distances in rows():
        print(f'    ({first}, {width}, "{distances}"),', flush=True)
