"""Least squares with coefficients that may not be negative: the decoder of Bloom filters.

Source: Lawson, Hanson, *Solving Least Squares Problems*, 1974: the active set method, here on the
    normal equations.
"""

from __future__ import annotations

from typing import Final

from ._base import Array, Debiased, Numpy
from ._supports import Channel

_TOLERANCE: Final = 1e-10  # of the largest moment; below it a gradient is rounding
_RIDGE: Final = 1e-12  # of the largest norm; shared out where two candidates are the same
_ROUNDS: Final = 3  # times the columns; the method rarely needs more than one


def regress(cells: Array, design: Array, channel: Channel, np: Numpy) -> Debiased:
    """Regress debiased bits on candidates.

    Args: cells: reports and ones, shape (cohorts, 1 + bits).
          design: which bits each candidate has, shape (cohorts, bits, candidates).
    """
    one, zero = float(channel.p), float(channel.q)
    reports = cells[:, :1].astype(float)
    held = ((cells[:, 1:] - zero * reports) / (one - zero)).reshape(-1)
    share = (reports / max(float(reports.sum()), 1.0))[:, :, None]
    rows = (share * design).reshape(held.size, -1)
    gram, moments = rows.T @ rows, rows.T @ held
    totals = nnls(gram, moments, np)
    ones = np.clip(held.reshape(cells[:, 1:].shape), 0, reports)
    noise = (ones * one * (1 - one) + (reports - ones) * zero * (1 - zero)) / (one - zero) ** 2
    weighted = rows.T @ (noise.reshape(-1, 1) * rows)
    size = np.maximum(np.diag(gram), np.finfo(float).tiny)
    variances = np.diag(weighted) / size**2
    chosen = np.flatnonzero(totals > 0)
    inverse = np.linalg.pinv(gram[np.ix_(chosen, chosen)])
    variances[chosen] = np.diag(inverse @ weighted[np.ix_(chosen, chosen)] @ inverse)
    return Debiased(totals, variances)


def nnls(gram: Array, moments: Array, np: Numpy) -> Array:
    """Return x >= 0 that minimizes |Ax - y|^2, given AᵀA and Aᵀy.

    Args: gram: shape (k, k).  moments: shape (k,).
    """
    k = len(moments)
    x, free = np.zeros(k), np.zeros(k, dtype=bool)
    least = _TOLERANCE * np.abs(moments).max(initial=0)
    for _ in range(_ROUNDS * k):
        gradient = np.where(free, -np.inf, moments - gram @ x)
        best = int(gradient.argmax())
        if gradient[best] <= least:
            break
        free[best] = True
        x = _descend(x, free, gram, moments, np)
    return x


def _descend(x: Array, free: Array, gram: Array, moments: Array, np: Numpy) -> Array:
    """Return the best x over the *free* columns, fixing at 0 those that would turn negative."""
    ridge = _RIDGE * float(gram.diagonal().max())
    while True:
        chosen = np.flatnonzero(free)
        wanted = np.zeros_like(x)
        system = gram[np.ix_(chosen, chosen)]
        system[np.diag_indices(len(chosen))] += ridge
        wanted[chosen] = np.linalg.solve(system, moments[chosen])
        negative = free & (wanted <= 0)
        if not negative.any():
            return wanted
        steps = x[negative] / (x[negative] - wanted[negative])
        x = x + min(steps.min(), 1.0) * (wanted - x)
        stuck = negative & (x <= x[negative].min())
        free[stuck] = False
        x[stuck] = 0.0
