"""Cells of prefixes, and the devices in them, as the documentation tells it, in decimals."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from client_sdk.mechanisms.composite.pem import PEM
from tests.support.references.support_reference import of_supports

PRIME = 2**31 - 1


def cells_of(mechanism: PEM, text: bytes) -> list[int]:
    """Return the places of the cells of *text* in the debiased totals, one a level and row."""
    places = []
    for level, length in enumerate(mechanism.lengths):
        prefix = [byte + 1 for byte in text] + [257]
        for row in range(mechanism.rows):
            group = level * mechanism.rows + row
            column = column_of(level, row, prefix[:length], mechanism.columns)
            places.append(group * mechanism.columns + column)
    return places


def column_of(level: int, row: int, prefix: Sequence[int], columns: int) -> int:
    """Return the column of a sequence of symbols."""
    factor = _number(0, row)
    value: int = sum(s * factor ** (len(prefix) - 1 - i) for i, s in enumerate(prefix)) % PRIME
    shift, offset = (_number(part, row, level + 1) for part in (1, 2))
    return (value**2 + shift * value + offset) % PRIME * columns // 2**31


def of_cells(
    mechanism: PEM, payloads: list[bytes], p: Decimal, q: Decimal
) -> tuple[list[Decimal], list[Decimal]]:
    """Return the devices of every cell and their variances: a pure protocol in each row."""
    oracle = mechanism.oracle
    groups = defaultdict(list)
    for payload in payloads:
        group, point = divmod(int.from_bytes(payload, "big"), oracle.points)
        groups[group].append(oracle.supports(point.to_bytes(oracle.payload_size, "big")))
    totals, variances = [], []
    for group in range(mechanism.levels * mechanism.rows):
        found = of_supports(mechanism.columns, groups[group], p, q)
        totals += found[0]
        variances += found[1]
    return totals, variances


def _number(part: int, *places: int) -> int:
    public = b"hearsay prefix" + b"".join(place.to_bytes(4, "big") for place in places)
    return int.from_bytes(hashlib.sha256(public).digest()[8 * part : 8 * part + 8], "big") % PRIME
