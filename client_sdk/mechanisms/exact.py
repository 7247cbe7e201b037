"""Exact arithmetic for channels: bounds of e^x and ln x, the threshold grid, randomized response.

Floats never decide a probability.  Transcendental numbers are bounded by decimals of DIGITS digits,
whose functions ``exp`` and ``ln`` are correctly rounded (General Decimal Arithmetic Specification),
and every bound is widened by far more than their error.

Randomized response (``respond``) tells one of n symbols truly, or any of the others.

Source: Warner, JASA 1965 (two symbols); Kairouz, Bonawitz, Ramage, ICML 2016 (n symbols).
Proof: a symbol is told by its holders with p and by anybody else with (1-p)/(n-1), so the ratio is
    p (n-1)/(1-p).  It is at most the odds o if p is at most o/(o+n-1): truths are rounded down to
    the grid, and flips, which are 1-p for two symbols, up.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction

from ..core.errors import InvalidParameterError
from ..core.randomness import Randomness
from ..core.typing import Final

THRESHOLD_BITS: Final = 128  # bits of a probability; the loss of epsilon stays below 2**-40
_MAX_EPSILON: Final = 16  # nats per report; above it a single report is close to the truth
LEAST_EPSILON: Final = Fraction(1, 10**9)  # nats per report; the ledger counts in this unit

DIGITS: Final = 100  # decimal digits of the bounds
_EPSILON: Final = re.compile(rf"[0-9]{{1,3}}(\.[0-9]{{1,{DIGITS}}})?([eE][+-]?[0-9]{{1,3}})?")
_SLACK: Final = Fraction(1, 10**90)  # relative; the error of a DIGITS-digit result is below 10**-97


def parse_epsilon(epsilon: object) -> Fraction:
    """Return *epsilon*, given as decimal string, int, Decimal, Fraction or float, as a Fraction.

    A float stands for the decimal that Python prints for it: 0.1 means one tenth.  A string has
    ASCII digits only, without sign, space or underscore, and may end in an exponent.
    Raises: InvalidParameterError: not a number, not in [LEAST_EPSILON, MAX_EPSILON].
    """
    rule = f"must be a decimal from 1e-9 to {_MAX_EPSILON}"
    if isinstance(epsilon, bool) or not isinstance(epsilon, str | int | float | Decimal | Fraction):
        raise InvalidParameterError("epsilon", epsilon, rule)
    if isinstance(epsilon, str) and not _EPSILON.fullmatch(epsilon):
        raise InvalidParameterError("epsilon", epsilon, rule)
    try:
        exact = epsilon if isinstance(epsilon, Fraction) else _from_decimal(Decimal(str(epsilon)))
    except (InvalidOperation, ValueError):
        raise InvalidParameterError("epsilon", epsilon, rule) from None
    if not LEAST_EPSILON <= exact <= _MAX_EPSILON:
        raise InvalidParameterError("epsilon", epsilon, rule)
    return exact


def exp_floor(x: Fraction) -> Fraction:
    """Return a rational at most e^x, within a relative 2e-90 of it; needs 0 <= x <= 64."""
    return _exp(x) * (1 - _SLACK)


def exp_ceil(x: Fraction) -> Fraction:
    """Return a rational at least e^x, within a relative 2e-90 of it; needs 0 <= x <= 64."""
    return _exp(x) * (1 + _SLACK)


def ln_ceil(ratio: Fraction) -> Fraction:
    """Return a rational at least ln(ratio), within 2e-80 of it; needs 1 <= ratio <= e^64."""
    context = Context(prec=DIGITS)
    quotient = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    return Fraction(context.ln(quotient)) + Fraction(1, 10**80)


def require_ratio(ratio: Fraction, epsilon: Fraction) -> None:
    """Refuse a channel whose likelihood *ratio* is above a rational just below e^*epsilon*.

    Raises: InvalidParameterError: the channel says more than *epsilon* allows.
    """
    if ratio > exp_floor(epsilon):
        raise InvalidParameterError("epsilon", epsilon, "must be at least what the channel spends")


def spent_by(ratio: Fraction, epsilon: Fraction) -> Fraction:
    """Return ln(ratio), rounded up but not above *epsilon*, which is a bound of it too.

    Raises: InvalidParameterError: the channel says more than *epsilon* allows.
    """
    require_ratio(ratio, epsilon)
    return min(ln_ceil(ratio), epsilon)


def floor_to_grid(p: Fraction, bits: int = THRESHOLD_BITS) -> Fraction:
    """Return the largest multiple of 2**-bits that is at most *p*."""
    return Fraction((p.numerator << bits) // p.denominator, 1 << bits)


def ceil_to_grid(p: Fraction, bits: int = THRESHOLD_BITS) -> Fraction:
    """Return the smallest multiple of 2**-bits that is at least *p*."""
    return Fraction(-((-p.numerator << bits) // p.denominator), 1 << bits)


def truth_chance(odds: Fraction, others: int, precision: int) -> Fraction:
    """Return odds/(odds + others), rounded down: the chance of the truth among *others* lies."""
    return floor_to_grid(odds / (odds + others), precision)


def flip_chance(epsilon: Fraction, precision: int) -> Fraction:
    """Return 1/(e^ε + 1), rounded up: the chance that a bit is flipped."""
    return ceil_to_grid(1 / (exp_floor(epsilon) + 1), precision)


def respond(symbol: int, symbols: int, truth: Fraction, randomness: Randomness) -> int:
    """Return *symbol*, one of 0 … symbols - 1, with probability *truth*, else another."""
    if randomness.bernoulli(truth):
        return symbol
    other = randomness.uniform(symbols - 1)
    return other + (other >= symbol)  # skips the symbol


def _from_decimal(epsilon: Decimal) -> Fraction:
    """Return *epsilon* as a Fraction; ValueError if it is not finite or absurdly large or small.

    The exponent is looked at first: as a fraction, 1e999999999 would fill the memory.
    """
    if not epsilon.is_finite() or abs(epsilon.adjusted()) > DIGITS:
        raise ValueError("must be finite")
    return Fraction(epsilon)


def _exp(x: Fraction) -> Fraction:
    context = Context(prec=DIGITS)
    return Fraction(context.exp(context.divide(Decimal(x.numerator), Decimal(x.denominator))))
