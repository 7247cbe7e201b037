"""Make what vector files expect: ``python -m tests.support.enumeration.make_vectors [name …]``.

Payloads and tallies come from the shipped code over ``SeededRandomness``; totals and variances come
from the textbook formulas in ``decimal`` and share no arithmetic with the mechanism.
"""

from __future__ import annotations

import json
import re
import sys
from decimal import Decimal
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import FrequencyOracle, Mechanism, SetMechanism, TextMechanism, names
from client_sdk.mechanisms.composite.pem import PEM
from client_sdk.mechanisms.items.exponential import Exponential
from tests.support.enumeration.estimates import stated
from tests.support.enumeration.formula import digits
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import FOLDER, build, path_of, read, textbook, values_of
from tests.support.references.estimate_reference import estimates
from tests.support.references.key_value_reference import HeldPairs
from tests.support.references.prefix_reference import cells_of

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
        **_estimates(mechanism, payloads, tally.tolist(), _held(mechanism, values), numbers),
    }


def _channel(mechanism: Mechanism[Any]) -> dict[str, Any]:
    if not isinstance(mechanism, FrequencyOracle | SetMechanism | TextMechanism):
        return {}
    return {"channel": {"p": str(mechanism.channel.p), "q": str(mechanism.channel.q)}}


def _held(mechanism: Mechanism[Any], values: list[Any]) -> list[Any]:
    """Return what some value is, holds if values are sets or pairs, or has as cells, in order."""
    if isinstance(mechanism, PEM):
        return sorted({cell for value in values for cell in cells_of(mechanism, value)})
    sets = [value if isinstance(value, frozenset | HeldPairs) else {value} for value in values]
    return sorted(set().union(*sets))


def _estimates(
    mechanism: Mechanism[Any],
    payloads: list[bytes],
    tally: list[int],
    items: list[Any],
    numbers: dict[str, Decimal],
) -> dict[str, Any]:
    """Return totals and variances by the textbook; of items or cells, only *items*."""
    totals, variances = estimates(mechanism, payloads, tally, numbers)
    counted = isinstance(mechanism, FrequencyOracle | SetMechanism | Exponential | PEM)
    wanted = items if counted else range(len(totals))
    return {
        "totals": {str(i): stated(totals[i]) for i in wanted},
        "variances": {str(i): stated(variances[i]) for i in wanted},
    }


def main(wanted: list[str]) -> None:
    """Write the vector files of the *wanted* mechanisms, or of all."""
    for name in wanted or names():
        if not path_of(name).exists():
            sys.exit(f"{path_of(name)}: is missing; begin with a copy of one of its family")
        text = regenerate(name)
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
