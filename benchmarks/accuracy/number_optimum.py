"""How far means are from the best that any unbiased randomizer of a bounded number could do.

A linear program finds the randomizer of the least worst-case variance among those of STEPS steps
and OUTPUTS evenly spaced outputs.  More outputs could do better; more steps would bind more.  So a
ratio is an estimate of the gap, and its second decimal depends on the grid.

Source: the constraints of local privacy are linear in the channel.  Written with a floor m(o) for
    every output, m(o) <= Pr[o | x] <= e^ε m(o), they are few.

Run: ``python -m benchmarks number_optimum`` in the environment of benchmarks/requirements.txt, for
scipy; a minute.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from benchmarks.lib import page
from client_sdk.mechanisms import load

# nats per report; those between whole numbers lie near the ends of a design of `minimax`
EPSILONS: Final = ("0.3", "0.5", "0.84", "1", "1.5", "2", "2.64", "3", "3.5", "4", "4.5", "5")
SHOWN: Final = ("hybrid", "minimax")
STEPS: Final = 41  # positions of the range at which the randomizer is found
OUTPUTS: Final = 161
POINTS: Final = 101  # grid points of the mechanisms


def optimum(epsilon: float, steps: int = STEPS, outputs: int = OUTPUTS) -> float:
    """Return the least worst-case variance, the range being -1 to 1.

    Raises: ImportError: there is no scipy.
    """
    from scipy.optimize import linprog  # type: ignore[import-untyped]  # it has no types
    from scipy.sparse import (  # type: ignore[import-untyped]  # it has no types
        block_array,
        csr_array,
        eye_array,
        kron,
    )

    reach = (math.exp(epsilon / 2) + 1) / (math.exp(epsilon / 2) - 1)  # of the piecewise mechanism
    places, told = np.linspace(-1, 1, steps), np.linspace(-reach, reach, outputs)
    cells = steps * outputs  # Pr[o | x], row by row, then the floors m(o), then the variance
    every, floors = eye_array(cells), kron(np.ones((steps, 1)), eye_array(outputs))

    def by_row(weights: Any) -> Any:
        return kron(eye_array(steps), weights[None, :])

    worst = -np.ones((steps, 1))
    below = block_array(
        [
            [-every, floors, None],
            [every, -math.exp(epsilon) * floors, None],
            [by_row(told**2), None, csr_array(worst)],
        ]
    )
    limits = np.concatenate([np.zeros(2 * cells), places**2])
    rest = csr_array((2 * steps, outputs + 1))
    equal = block_array([[by_row(np.ones(outputs))], [by_row(told)]])
    found = linprog(
        np.append(np.zeros(cells + outputs), 1.0),
        A_ub=below.tocsr(),
        b_ub=limits,
        A_eq=block_array([[equal, rest]]).tocsr(),
        b_eq=np.concatenate([np.ones(steps), places]),
        method="highs-ipm",
    )
    return float(found.fun)


def worst_variance(name: str, epsilon: str) -> float:
    """Return the worst variance of one report of mechanism *name*, the range being -1 to 1."""
    mechanism = load(name)(epsilon, POINTS)
    return float(mechanism.worst_variance * (2 / mechanism.top) ** 2)  # type: ignore[attr-defined]  # it is of numbers


def table() -> str:
    """Return the ratios as Markdown."""
    rows = []
    for epsilon in EPSILONS:
        best = optimum(float(epsilon))
        ours = [worst_variance(name, epsilon) for name in SHOWN]
        cells = [cell for worst in ours for cell in (f"{worst:.4g}", f"{worst / best:.3f}")]
        rows.append((epsilon, f"{best:.4g}", *cells))
    heads = [head for name in SHOWN for head in (f"`{name}`, worst variance", "ratio")]
    return page.table(("ε", "linear program", *heads), rows)


def main() -> None:
    """Print the table, or that it needs scipy."""
    try:
        print(table())
    except ImportError:
        print("needs scipy: run it in the environment of benchmarks/requirements.txt")
