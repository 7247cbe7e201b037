"""The Sylvester matrix, a Hadamard matrix of order 2^t: its signs, and products with it.

H[i, j] is -1 where i AND j has an odd number of ones, else +1.
"""

from __future__ import annotations

from ._base import Array, Numpy


def is_positive(i: int, j: int) -> bool:
    """Return whether H[i, j] is +1."""
    return (i & j).bit_count() % 2 == 0


def transform(rows: Array, np: Numpy) -> Array:
    """Return *rows* times H by the fast Walsh-Hadamard transform; exact for integers.

    Args: rows: shape (m, 2^t).
    """
    count, order = rows.shape
    width = 1
    while width < order:
        pairs = rows.reshape(count, -1, 2, width)
        low, high = pairs[:, :, 0], pairs[:, :, 1]
        rows = np.stack((low + high, low - high), axis=2).reshape(count, -1)
        width *= 2
    return rows
