"""A Randomness that can be rewound: what a permanent response draws, drawn again the same."""

from __future__ import annotations

from fractions import Fraction

from client_sdk.core.randomness import Randomness


class Replay:
    """Draws from *source* the first time, and returns the same draws after ``rewind``."""

    def __init__(self, source: Randomness) -> None:
        self._source, self._position = source, 0
        self._drawn: list[int] = []

    def rewind(self) -> None:
        """Begin again at the first draw."""
        self._position = 0

    def bernoulli(self, p: Fraction) -> bool:
        """Return the next draw, taking it from the source if it is new."""
        return bool(self._next() if self._is_old() else self._new(self._source.bernoulli(p)))

    def bernoulli_ratio(self, numerator: int, denominator: int) -> bool:
        """Return the next draw, taking it from the source if it is new."""
        return self.bernoulli(Fraction(numerator, denominator))

    def bernoulli_bits(self, p: Fraction, n: int) -> int:
        """Return the next draw, taking it from the source if it is new."""
        return self._next() if self._is_old() else self._new(self._source.bernoulli_bits(p, n))

    def uniform(self, n: int) -> int:
        """Return the next draw, taking it from the source if it is new."""
        return self._next() if self._is_old() else self._new(self._source.uniform(n))

    def _is_old(self) -> bool:
        return self._position < len(self._drawn)

    def _next(self) -> int:
        self._position += 1
        return self._drawn[self._position - 1]

    def _new(self, drawn: int) -> int:
        self._drawn.append(drawn)
        return self._next()
