"""Make the ``expected`` part of vector files: ``python -m tests.support.make_vectors [name …]``.

Payloads come from the shipped code over ``SeededRandomness``; p, q, counts, totals and variances
come from the textbook formulas in ``decimal`` and share no code with the mechanism.
Only for oracles that are not pure, totals and variances are those of the shipped decoder.
"""

from __future__ import annotations

import json
import re
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import (
    DistributionMechanism,
    FrequencyOracle,
    KeyValueMechanism,
    MeanMechanism,
    Mechanism,
    SetMechanism,
    names,
)
from client_sdk.mechanisms._symbols import SymbolReports
from client_sdk.mechanisms.exponential import Exponential

from .distribution_reference import sum_and_variance
from .exponential_reference import counts_and_variances
from .formula import CONTEXT, digits
from .key_value_reference import HeldPairs, totals_and_variances
from .seeded import SeededRandomness
from .vectors import FOLDER, build, read, textbook, values_of

_FLAT: Final = re.compile(r"[\[{][^\[\]{}]*[\]}]")  # innermost lists and objects: one line each


def regenerate(name: str) -> str:
    """Return the text of the vector file of *name* with every ``expected`` made anew."""
    vectors = read(name)
    for case in vectors["cases"]:
        case["expected"] = _expected(name, case)
    text = json.dumps(vectors, indent=2, ensure_ascii=True)
    return _FLAT.sub(lambda block: " ".join(block[0].split()), text) + "\n"


def _expected(name: str, case: dict[str, Any]) -> dict[str, Any]:
    mechanism = build(name, case)
    randomness = SeededRandomness(bytes.fromhex(case["seed"]))
    values = values_of(mechanism, case)
    payloads = [mechanism.randomize(value, randomness) for value in values]
    tally = mechanism.tally(b"".join(payloads), np)
    numbers = textbook(name, mechanism)
    return {
        "spent_nano": mechanism.spent_nano,
        "payload_size": mechanism.payload_size,
        "textbook": {key: digits(number) for key, number in numbers.items()},
        **_channel(mechanism),
        "payloads": [payload.hex() for payload in payloads],
        "tally": {str(i): int(tally[i]) for i in np.flatnonzero(tally)},
        **_decoded(mechanism, payloads, _held(values), numbers),
    }


def _channel(mechanism: Mechanism[Any]) -> dict[str, Any]:
    if not isinstance(mechanism, FrequencyOracle | SetMechanism):
        return {}
    return {"channel": {"p": str(mechanism.channel.p), "q": str(mechanism.channel.q)}}


def _held(values: list[Any]) -> list[Any]:
    """Return what some value is, or holds if values are sets or pairs, in order."""
    sets = [value if isinstance(value, frozenset | HeldPairs) else {value} for value in values]
    return sorted(set().union(*sets))


def _decoded(
    mechanism: Mechanism[Any], payloads: list[bytes], items: list[Any], numbers: dict[str, Decimal]
) -> dict[str, Any]:
    """Return totals and variances by the textbook, to 12 digits; only of the *items* held."""
    n = len(payloads)
    if isinstance(mechanism, MeanMechanism):
        reports = [_decimal(mechanism.decode(payload)) for payload in payloads]
        return {
            "totals": {"0": digits(sum(reports, Decimal(0)), 12)},
            "variances": {"0": digits(_variance_of_sum(mechanism, reports, numbers), 12)},
        }
    if isinstance(mechanism, DistributionMechanism):
        symbols = [int.from_bytes(payload, "big") for payload in payloads]
        total, variance = sum_and_variance(mechanism, symbols, numbers)
        return {"totals": {"0": digits(total, 12)}, "variances": {"0": digits(variance, 12)}}
    if isinstance(mechanism, Exponential):
        named = [int.from_bytes(payload, "big") for payload in payloads]
        found = counts_and_variances(numbers["decay"], mechanism.domain_size, named)
        counts, spreads = ({str(i): digits(column[i], 12) for i in items} for column in found)
        return {"totals": counts, "variances": spreads}
    if isinstance(mechanism, KeyValueMechanism):
        return _of_pairs(mechanism, payloads, numbers)
    assert isinstance(mechanism, FrequencyOracle | SetMechanism)
    if isinstance(mechanism, FrequencyOracle) and not mechanism.pure:
        return _regressed(mechanism, payloads, items)
    p, q = numbers["p"], numbers["q"]
    supported = [frozenset(mechanism.supports(payload)) for payload in payloads]
    totals, variances = {}, {}
    for item in items:
        count = sum(item in support for support in supported)
        total = CONTEXT.divide(count - n * q, p - q)
        holders = min(max(total, Decimal(0)), Decimal(n))
        spread = holders * p * (1 - p) + (n - holders) * q * (1 - q)
        totals[str(item)] = digits(total, 12)
        variances[str(item)] = digits(CONTEXT.divide(spread, (p - q) ** 2), 12)
    return {"totals": totals, "variances": variances}


def _of_pairs(
    mechanism: KeyValueMechanism, payloads: list[bytes], numbers: dict[str, Decimal]
) -> dict[str, Any]:
    """Return holders and sums of positions by the textbook, to 12 digits, of every key."""
    supported = [mechanism.supports(payload) for payload in payloads]
    found = totals_and_variances(
        numbers, mechanism.domain_size, mechanism.pad, mechanism.top, supported
    )
    totals, spreads = ({str(i): digits(x, 12) for i, x in enumerate(c)} for c in found)
    return {"totals": totals, "variances": spreads}


def _regressed(
    mechanism: FrequencyOracle, payloads: list[bytes], items: list[Any]
) -> dict[str, Any]:
    """Return what the shipped decoder gives, to 6 digits: its laws are tested elsewhere."""
    found = mechanism.debias(mechanism.tally(b"".join(payloads), np), len(payloads), np)
    return {
        name: {str(item): f"{row[item]:.6g}" for item in items}
        for name, row in (("totals", found.totals), ("variances", found.variances))
    }


def _decimal(number: Fraction) -> Decimal:
    return CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))


def _variance_of_sum(
    mechanism: MeanMechanism, reports: list[Decimal], numbers: dict[str, Decimal]
) -> Decimal:
    """Return the variance of the sum of *reports* as the docstrings of ``debias`` derive it.

    Of symbols ``end`` is E[(y - 1/2)^2] at an end of the range, which is taken as the unit.
    """
    n = len(reports)
    if not isinstance(mechanism, SymbolReports):
        return n * numbers["variance"]
    centred = [CONTEXT.divide(y, Decimal(mechanism.top)) - Decimal("0.5") for y in reports]
    mean = CONTEXT.divide(sum(centred, Decimal(0)), Decimal(n))
    least = n * min(max(mean, Decimal("-0.5")), Decimal("0.5")) ** 2
    if mechanism.symbols == 2:
        return (n * numbers["end"] - least) * mechanism.top**2
    square, steps = numbers["square"], mechanism.moments.steps
    constant = numbers["end"] - square / 4
    squares = sum((y * y for y in centred), Decimal(0))
    spread = CONTEXT.divide(squares - n * constant, square)
    spread = min(max(spread, least), Decimal(n) / 4)
    rounding = CONTEXT.divide(Decimal(n), Decimal(4 * steps**2))
    stated = n * constant + (square - 1) * spread + rounding
    return min(stated * mechanism.top**2, n * Decimal(mechanism.worst_variance))


def main(wanted: list[str]) -> None:
    """Write the vector files of the *wanted* mechanisms, or of all."""
    for name in wanted or names():
        text = regenerate(name)
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
