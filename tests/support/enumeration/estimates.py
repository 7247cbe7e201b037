"""How vector files state estimates, and when a decoder's number counts as the stated one.

``tests/vectors/README.md`` says the same to those who write an SDK in another language.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from tests.support.enumeration.formula import CONTEXT, digits

PLACES: Final = 12  # significant digits, and at most as many decimals
TOLERANCE: Final = Decimal("1e-9")  # of the stated number, or of 1 if that is more
_LEAST: Final = Decimal(1).scaleb(-PLACES)


def stated(number: Decimal) -> str:
    """Return *number* to PLACES significant digits and decimals, without an exponent."""
    rounded = Decimal(digits(number, PLACES)).quantize(_LEAST, ROUND_HALF_EVEN, CONTEXT)
    text = f"{rounded:f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def agree(found: float, wanted: str) -> bool:
    """Return whether *found* is the number that *wanted* states."""
    number = Decimal(wanted)
    return abs(Decimal(float(found)) - number) <= TOLERANCE * max(abs(number), Decimal(1))
