"""Analyses as an analyst would run them on records: a regression and a clustering.  numpy only."""

from __future__ import annotations

from typing import Any

import numpy as np

_ROUNDS = 200


def slope(x: Any, y: Any, weights: Any = None) -> float:
    """Return by how much *y* rises with one of *x*: least squares with an intercept."""
    trust = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    x, y = (np.asarray(each, dtype=np.float64) for each in (x, y))
    centred = x - (trust @ x) / trust.sum()
    return float(trust @ (centred * y) / (trust @ centred**2))


def two_means(values: Any, weights: Any = None) -> tuple[float, float, float]:
    """Return the lower and the upper centre of two clusters, and the part in the lower one.

    k-means by Lloyd's steps from the quartiles, on distinct values with how often each occurs.
    """
    trust = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    points, places = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
    held = np.bincount(places.ravel(), weights=trust)
    parts = np.cumsum(held) / held.sum()
    centres = points[np.searchsorted(parts, (0.25, 0.75))]
    for _ in range(_ROUNDS):
        lower = points <= centres.mean()
        moved = np.array([np.average(points[side], weights=held[side]) for side in (lower, ~lower)])
        if np.array_equal(moved, centres):
            break
        centres = moved
    return float(centres[0]), float(centres[1]), float(held[lower].sum() / held.sum())
