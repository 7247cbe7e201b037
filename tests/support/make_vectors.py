"""Make the ``expected`` part of vector files: ``python -m tests.support.make_vectors [name …]``.

Payloads come from the shipped code over ``SeededRandomness``; p, q, counts, totals and variances
come from the textbook formulas in ``decimal`` and share no code with the mechanism.
"""

from __future__ import annotations

import json
import re
import sys
from decimal import Decimal
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import FrequencyOracle, MeanMechanism, Mechanism, names

from .formula import CONTEXT, digits
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
        **_decoded(mechanism, payloads, sorted(set(values)), numbers),
    }


def _channel(mechanism: Mechanism[Any]) -> dict[str, Any]:
    if not isinstance(mechanism, FrequencyOracle):
        return {}
    return {"channel": {"p": str(mechanism.channel.p), "q": str(mechanism.channel.q)}}


def _decoded(
    mechanism: Mechanism[Any], payloads: list[bytes], items: list[Any], numbers: dict[str, Decimal]
) -> dict[str, Any]:
    """Return totals and variances by the textbook, to 12 digits; only of the *items* held."""
    n = len(payloads)
    if isinstance(mechanism, MeanMechanism):
        position_sum = sum(map(mechanism.decode, payloads))
        variance = n * (numbers["variance"] + Decimal("0.25"))
        return {"totals": {"0": str(position_sum)}, "variances": {"0": digits(variance, 12)}}
    assert isinstance(mechanism, FrequencyOracle)
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


def main(wanted: list[str]) -> None:
    """Write the vector files of the *wanted* mechanisms, or of all."""
    for name in wanted or names():
        text = regenerate(name)
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
