"""What a set of a large vocabulary costs: half of an interval, by mechanism.

The items are many, each device holds a few, and the item that is asked about is rare, as most are.
*Fixed size* is PrivSet as published, whose report is a subset of the best size of items and
dummies: ``privset`` draws each point of its subset almost alone, so its subsets are of many sizes.

Run: ``python -m benchmarks set_errors``; a few seconds.
"""

from __future__ import annotations

import math
from typing import Final

from benchmarks.lib import page
from client_sdk.mechanisms import SetMechanism, load
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import choose

SETTINGS: Final = (  # items, held by a device, devices
    (3_340, 6, 1_000_000),
    (200, 3, 100_000),
    (200, 6, 100_000),
    (50, 3, 100_000),
)
EPSILONS: Final = ("1", "2", "4")
MECHANISMS: Final = ("sampled_item", "padding_sampling", "privset")
MOST_SIZE: Final = 600  # of a subset; the best is about the points over e^ε + 1, and the slots
NORMAL: Final = 1.96  # standard errors in half of a 95 % interval


def error(name: str, epsilon: str, setting: tuple[int, int, int] = SETTINGS[0]) -> float:
    """Return half of a 95 % interval of the share of an item that hardly anybody has, in points."""
    items, held, devices = setting
    kind = load(name)
    mechanism = kind(epsilon, items, **({"pad": held} if "pad" in kind.parameter_names() else {}))
    assert isinstance(mechanism, SetMechanism)
    p, q = (float(chance) for chance in (mechanism.channel.p, mechanism.channel.q))
    variance = q * (1 - q) / (p - q) ** 2
    if not mechanism.pure:  # only the reports about an item count, and how many these are is known
        told, lied = p * items, q * items
        variance = items * lied * (1 - lied) / (told - lied) ** 2
    return 100 * NORMAL * math.sqrt(variance / devices)


def fixed_size(epsilon: str, setting: tuple[int, int, int]) -> tuple[float, int]:
    """Return the same of PrivSet as published, at its best size, and the bytes of a report."""
    items, slots, devices = setting
    points = items + slots
    most = min(points - slots, MOST_SIZE)
    best, size = min((_published(float(epsilon), points, slots, k), k) for k in range(1, most))
    bits = (math.comb(points, size) - 1).bit_length()
    return 100 * NORMAL * math.sqrt(best / devices), -(-bits // 8)


def _published(epsilon: float, points: int, slots: int, size: int) -> float:
    """Return the variance of the share of a rare item, times the reports, of subsets of *size*."""
    miss = math.prod((points - size - i) / (points - i) for i in range(slots))
    others = math.prod((points - size - i) / (points - 1 - i) for i in range(slots))
    odds = math.exp(epsilon)
    total = odds * (1 - miss) + miss
    p = odds * size / points / total
    q = size / points * (odds * (1 - others) + others) / total
    return q * (1 - q) / (p - q) ** 2 if p > q else math.inf


def table() -> str:
    """Return the errors as Markdown, with what ``auto`` takes that knows the held items."""
    rows = []
    for setting in SETTINGS:
        items, held, devices = setting
        for epsilon in EPSILONS:
            cells = [f"±{error(name, epsilon, setting):.2f}" for name in MECHANISMS]
            half, width = fixed_size(epsilon, setting)
            cells.append(f"±{half:.2f}, {_bytes(width)}")
            name, taken = choose(AUTO, SetMechanism, epsilon, items, fixed={"pad": held})
            told = f"`{name}`, {_bytes(taken.payload_size)}"
            rows.append((f"{items:,}", held, f"{devices:,}", epsilon, *cells, told))
    columns = (f"`{name}`" for name in MECHANISMS)
    heads = ("items", "held", "devices", "ε", *columns, "fixed size")
    return page.table((*heads, "`auto` with `expected_size`"), page.named_once(rows, 3))


def _bytes(size: int) -> str:
    return f"{size} byte{'s' if size > 1 else ''}"


def main() -> None:
    """Print the table."""
    print(table())
