"""The whole channel of a small mechanism: its ``randomize`` replayed along every choice.

``Choices`` is a Randomness whose choices are fixed in advance.  Where they run out, every next
choice is followed in turn.  So the answers hold for the code as it stands, whatever it overrides.
Only the collector asks; no device loads this.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ..core.typing import Final, NamedTuple
from .base import Array, Mechanism, Numpy

_MOST_RUNS: Final = 1 << 14  # of ``randomize``, over all items: less than a second
_MOST_CELLS: Final = 1 << 22  # payloads times cells of the tally; 32 MiB


class Enumerated(NamedTuple):
    """The law of every payload, and what it adds to the tally.

    ``chances`` has the shape (items, payloads), ``cells`` the shape (payloads, tally_size).
    """

    payloads: tuple[bytes, ...]
    chances: Array
    cells: Array


class _Fork(BaseException):  # no ``except Exception`` of a mechanism may stop it
    """The choices end where the next has these *forks*."""

    def __init__(self, forks: Sequence[Fraction]) -> None:
        """Keep the chances of every next choice."""
        self.forks = forks


class _TooManyError(Exception):
    """There are too many choices to be followed."""


class Choices:
    """A Randomness that replays *choices*, each an index of what could be drawn."""

    def __init__(self, choices: Sequence[int]) -> None:
        """Take the choices in the order in which they are drawn."""
        self._next = iter(choices)

    def _choose(self, forks: Sequence[Fraction]) -> int:
        for choice in self._next:
            return choice
        raise _Fork(forks)

    def bernoulli(self, p: Fraction) -> bool:
        """Fork into False and True."""
        return bool(self._choose((1 - p, p)))

    def bernoulli_ratio(self, numerator: int, denominator: int) -> bool:
        """Fork into False and True."""
        return self.bernoulli(Fraction(numerator, denominator))

    def bernoulli_bits(self, p: Fraction, n: int) -> int:
        """Fork into all words of n independent bits."""
        if n >= _MOST_RUNS.bit_length():
            raise _TooManyError
        by_ones = [p**ones * (1 - p) ** (n - ones) for ones in range(n + 1)]
        return self._choose([by_ones[word.bit_count()] for word in range(1 << n)])

    def uniform(self, n: int) -> int:
        """Fork into n equal parts."""
        if n > _MOST_RUNS:
            raise _TooManyError
        return self._choose((Fraction(1, n),) * n)


def enumerate_items(mechanism: Mechanism[int], np: Numpy) -> Enumerated | None:
    """Return the law of a mechanism over items; None if it has too many choices or cells."""
    runs, columns = 0, dict[bytes, int]()
    entries: list[tuple[int, int, float]] = []
    for item in range(min(mechanism.domain_size, _MOST_RUNS)):
        todo: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
        while todo:
            runs += 1
            if runs > _MOST_RUNS:
                return None
            choices, mass = todo.pop()
            try:
                payload = mechanism.randomize(item, Choices(choices))
            except _Fork as fork:
                todo += [((*choices, i), mass * w) for i, w in enumerate(fork.forks) if w]
                continue
            except _TooManyError:
                return None
            entries.append((item, columns.setdefault(payload, len(columns)), float(mass)))
    if len(columns) * mechanism.tally_size > _MOST_CELLS:
        return None
    chances = np.zeros((mechanism.domain_size, len(columns)))
    for item, place, mass_of_run in entries:
        chances[item, place] += mass_of_run
    cells = np.array([mechanism.tally(payload, np) for payload in columns])
    return Enumerated(tuple(columns), chances, cells)
