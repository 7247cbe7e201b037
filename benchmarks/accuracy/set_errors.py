"""What a set of a large vocabulary costs: half of an interval, by mechanism.

The items are many, each device holds a few, and the item that is asked about is rare, as most are.

Run: ``python -m benchmarks set_errors``; a few seconds.
"""

from __future__ import annotations

import math
from typing import Final

from benchmarks.lib import page
from client_sdk.mechanisms import SetMechanism, load
from client_sdk.registry.selection import AUTO, choose

SETTINGS: Final = ((3_340, 6, 1_000_000), (200, 3, 100_000))  # items, held by a device, devices
EPSILONS: Final = ("1", "2", "4")
MECHANISMS: Final = ("sampled_item", "padding_sampling", "privset")
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


def table() -> str:
    """Return the errors as Markdown, with what ``auto`` takes without and with the held items."""
    rows = []
    for setting in SETTINGS:
        items, held, devices = setting
        for epsilon in EPSILONS:
            cells = (f"±{error(name, epsilon, setting):.2f}" for name in MECHANISMS)
            alone = choose(AUTO, SetMechanism, epsilon, items)[0]
            name, taken = choose(AUTO, SetMechanism, epsilon, items, fixed={"pad": held})
            size = taken.payload_size
            told = f"`{name}`, {size} byte{'s' if size > 1 else ''}"
            rows.append((f"{items:,}", held, f"{devices:,}", epsilon, *cells, f"`{alone}`", told))
    columns = (f"`{name}`" for name in MECHANISMS)
    heads = ("items", "held", "devices", "ε", *columns, "`auto`", "`auto` with `expected_size`")
    return page.table(heads, rows)


def main() -> None:
    """Print the table."""
    print(table())
