"""Slips of those who add noise by hand, each measured: how far an attack gets beyond the claim."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import SystemRandom
from typing import Final

from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import load

_TRIALS: Final = 2_000
_USUAL: Final = (9_000, 11_000)  # what everybody else spent, evenly
_RICH: Final = 1_020_000
_RANGE: Final = 2_000_000
_PEOPLE: Final = 101
_CELLS: Final = 100  # of a matrix; films or products
_USERS: Final = 100
_BUDGET: Final = 10.0  # "remaining ε" of a service, of which a difference of two answers takes 2
_RESETS: Final = 2_000
_BITS: Final = 53  # of a double between 0 and 1
_NEAR: Final = 8  # doubles beside the one that should give an output


@dataclass(frozen=True)
class Slip:
    """A slip, what was measured of it, and what would hold without it."""

    name: str
    measured: str
    right: str
    number: float  # that was measured


def slips(chance: SystemRandom, randomness: Randomness) -> Iterator[Slip]:
    """Yield all slips."""
    most = f"at most {100 / (1 + math.exp(-1)):.1f} %"
    share = told_by_scale(chance)
    yield Slip("sensitivity taken from the data", _right(share), most, share)
    off = told_by_density()
    yield Slip(
        "the density added, not a sample", f"the newcomer's amount, off by {off:.2g}",
        "a sample, drawn anew", off,
    )  # fmt: skip
    share = impossible_share(chance)
    yield Slip(
        "Laplace noise of floats", f"{100 * share:.1f} % of answers are impossible for a neighbour",
        "0 %: exact integers", share,
    )  # fmt: skip
    rows = told_by_row(randomness)
    yield Slip(f"ε 1 for each of {_CELLS} cells of a row", _right(rows), most, rows)
    left = told_after_resets(chance)
    yield Slip(
        f'"remaining ε" {_BUDGET:g} that a restart resets',
        f"the newcomer's amount, off by {left:,.0f}", "a ledger that is never reset", left,
    )  # fmt: skip


def laplace(scale: float, chance: SystemRandom) -> float:
    """Return noise as tutorials draw it: good enough for a demonstration, and for nothing else."""
    return scale * (chance.expovariate(1) - chance.expovariate(1))


def told_by_scale(chance: SystemRandom, *, is_declared: bool = False) -> float:
    """Return how often it is guessed whether somebody rich is there, of a mean with noise of ε 1.

    The noise fits the range of the data, as they are; or that which was declared.
    """
    right = 0
    for _ in range(_TRIALS):
        is_rich = chance.random() < 0.5
        spent = [chance.uniform(*_USUAL) for _ in range(_PEOPLE - 1)]
        spent.append(_RICH if is_rich else _USUAL[0])
        width = _RANGE if is_declared else max(spent) - min(spent)
        answer = sum(spent) / _PEOPLE + laplace(width / _PEOPLE, chance)
        right += (answer > sum(_USUAL) / 2 + 1_000 or answer < 0) == is_rich
    return right / _TRIALS


def told_by_density() -> float:
    """Return how far off a difference is if the law's density at the answer is added as noise."""

    def noisy(total: float, people: int) -> float:
        scale = _RANGE / people
        mean = total / people
        return mean + math.exp(-abs(mean) / scale) / (2 * scale)

    usual = sum(_USUAL) / 2 * (_PEOPLE - 1)
    after = noisy(usual + _RICH, _PEOPLE) * _PEOPLE
    return abs(after - noisy(usual, _PEOPLE - 1) * (_PEOPLE - 1) - _RICH)


def impossible_share(chance: SystemRandom) -> float:
    """Return of how many answers about 0 no draw gives the same about 1, of scale 1.

    The textbook's sampler: a sign, and the logarithm of a double between 0 and 1.
    """
    impossible = 0
    for _ in range(_TRIALS):
        drawn = chance.getrandbits(_BITS) or 1
        answer = math.copysign(math.log(drawn / 2**_BITS), chance.random() - 0.5)
        impossible += not _is_possible(answer, 1.0)
    return impossible / _TRIALS


def _is_possible(answer: float, value: float) -> bool:
    """Return whether the sampler can give *answer* about *value*: the doubles that come near."""
    sign = math.copysign(1.0, answer - value)
    drawn = round(math.exp(-abs(answer - value)) * 2**_BITS)
    return any(
        value - sign * math.log(near / 2**_BITS) == answer
        for near in range(max(1, drawn - _NEAR), min(2**_BITS, drawn + _NEAR) + 1)
    )


def told_by_row(randomness: Randomness) -> float:
    """Return how often it is guessed which of two rows somebody has, whose cells all differ."""
    mechanism = load("grr")("1", 2)
    right = 0
    for _ in range(_USERS):
        liked = randomness.uniform(2)
        cells = [mechanism.randomize(liked, randomness) for _ in range(_CELLS)]
        yes = sum(int.from_bytes(cell, "big") for cell in cells)
        right += (2 * yes > _CELLS) == bool(liked)
    return right / _USERS


def told_after_resets(chance: SystemRandom) -> float:
    """Return how far off the newcomer's amount is, if the budget is full after each restart."""
    total, differences = 0.0, 0
    for _ in range(_RESETS):
        remaining = _BUDGET
        while remaining >= 2:
            remaining -= 2
            differences += 1
            total += _RICH + laplace(_RANGE, chance) - laplace(_RANGE, chance)
    return abs(total / differences - _RICH)


def _right(share: float) -> str:
    return f"guessed rightly in {100 * share:.1f} % of trials"
