"""What a device of its own reads of an entry of a compiled registry, and how it draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd
from typing import Any, NamedTuple

Ratio = tuple[int, int]  # numerator and denominator, in lowest terms


class Entry(NamedTuple):
    """What of an entry the draws need."""

    own: Mapping[str, int]  # parameters
    constants: Mapping[str, Any]
    d: int
    size: int  # bytes of a payload

    def ratio(self, name: str) -> Ratio:
        """Return a constant."""
        return ratio_of(self.constants[name])

    def number(self, report: int) -> bytes:
        """Return a payload that is a number."""
        return report.to_bytes(self.size, "big")

    def row(self, bits: int, count: int, before: bytes = b"") -> bytes:
        """Return a payload of *count* bits, filled up with zeros."""
        return before + (bits << -count % 8).to_bytes(self.size - len(before), "big")


def ratio_of(text: str) -> Ratio:
    """Return a number of a compiled registry."""
    top, slash, bottom = text.partition("/")
    num, den = int(top, 16), int(bottom, 16) if slash else 1 << 128
    return num // gcd(num, den), den // gcd(num, den)


class Draws:
    """The draws of the page over a source of bytes."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.read = read

    def word(self, bits: int) -> int:
        size = -(-bits // 8)
        return int.from_bytes(self.read(size), "big") >> 8 * size - bits

    def uniform(self, n: int) -> int:
        while (number := self.word((n - 1).bit_length())) >= n:
            pass
        return number

    def true(self, p: Ratio) -> bool:
        return self.uniform(p[1]) < p[0]

    def bits(self, p: Ratio, n: int) -> int:
        rest, opened, raised = p[0], (1 << n) - 1, 0
        while opened and rest:
            word, rest = self.word(n), 2 * rest
            if rest >= p[1]:
                rest -= p[1]
                raised, opened = raised | opened & ~word, opened & word
            else:
                opened &= ~word
        return raised

    def exp(self, n: int, d: int) -> bool:
        k = 1
        while self.uniform(d * k) < n:
            k += 1
        return k % 2 == 1

    def round(self, x: Ratio, m: int, top: int) -> int:
        shared = gcd(m, top)
        w = x[1] * (top // shared)
        below, rest = divmod(x[0] * (m // shared), w)
        return below + (1 if rest and self.uniform(w) < rest else 0)

    def respond(self, item: int, symbols: int, truth: Ratio) -> int:
        if self.true(truth):
            return item
        other = self.uniform(symbols - 1)
        return other + (other >= item)
