"""What published methods recover of shares that fakes have moved, and what they harm without any.

Research beside the product: nothing here changes an answer.  Each method takes the unbiased shares
of an epoch and a belief about the attack, and returns other shares.  No method knows whether there
was an attack, so each is measured with one and without.

Run: ``python -m benchmarks poisoning_recovery``; ten seconds.  Its output is on
docs/evidence/tables/poisoning.md.

Settings, fixed before anything was measured: 19,000 honest devices, 64 items that fall off as
1/rank, ε = 1, 1,000 fakes that promote four items by the report that gains most, RUNS seeds.

Source: *base-cut* and *norm-sub*: Wang, Lopuhaä-Zwakenberg, Li, Skoric, Li, NDSS 2020, by the code
    of ``collector.analytics.postprocess``.  *LDPRecover*: Sun, Ye, Hu, Duan, Wo, Xu, Yang, ICDE
    2024, as the public code of Li, Li, Wang, Sun 2025 has it (github.com/Marvin-huoshan/MDPA_LDP,
    post_process/LDPRecover.py): fakes stand for (1 - q d)/(p - q) in all, in equal parts of the d
    items; f = (1+η) f_all - η f_fakes; then the nearest shares that are not negative and sum to 1.
    A comment there tells items with positive estimates from others, and its code does not; *of
    positive items* gives the equal parts to these (derived).  *targets known*: fakes support one
    target each and nothing else (derived).  *attack known*: what the fakes really stand for, which
    no collector knows, and no projection: the bound of all such methods (derived).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.accuracy.poisoning import BEST, ITEMS, TARGETS, payloads
from benchmarks.lib.page import head, row
from client_sdk.mechanisms import FrequencyOracle, load
from collector.analytics.postprocess import base_cut, simplex_l2
from tests.support.enumeration.seeded import SeededRandomness

HONEST: Final = 19_000
FAKES: Final = 1_000
ETA: Final = FAKES / HONEST  # fakes an honest device
GUESS: Final = 0.2  # the same, where a collector does not know it
RUNS: Final = 20
MECHANISMS: Final = ("grr", "oue", "olh")
METHODS: Final = (
    "unbiased",
    "base-cut",
    "norm-sub",
    "LDPRecover, η known",
    f"LDPRecover, η = {GUESS}",
    "of positive items, η known",
    "targets and η known",
    "attack known",
)


class Epoch(NamedTuple):
    """The true shares of honest devices, their tally, and that of fakes."""

    truth: Any
    honest: Any
    fakes: Any


def epoch_of(oracle: FrequencyOracle, seed: int) -> Epoch:
    """Return reports by the mechanism's own code."""
    chance = SeededRandomness(f"{oracle.name} {seed}".encode())
    law = 1 / np.arange(1, ITEMS + 1)
    held = np.floor(law / law.sum() * HONEST).astype(int)
    held[0] += HONEST - held.sum()
    holders = np.repeat(np.arange(ITEMS), held).tolist()
    honest = b"".join(oracle.randomize(item, chance) for item in holders)
    fakes = payloads(oracle, BEST, TARGETS, FAKES, chance)
    return Epoch(held / HONEST, oracle.tally(honest, np), oracle.tally(fakes, np))


def recovered(shares: Any, eta: float, fakes: Any) -> Any:
    """Return the nearest possible shares to those without *eta* fakes an honest device."""
    return simplex_l2((1 + eta) * shares - eta * fakes)


def believed(oracle: FrequencyOracle, takers: Any) -> Any:
    """Return what LDPRecover takes fakes to stand for, in equal parts of the items *takers*."""
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    return np.where(takers, (1 - q * takers.size) / (p - q) / max(takers.sum(), 1), 0.0)


def methods(oracle: FrequencyOracle, epoch: Epoch, fakes: int) -> Sequence[Any]:
    """Return the shares of each of METHODS, of an epoch with so many *fakes*."""
    n, d = HONEST + fakes, ITEMS
    found = oracle.debias(epoch.honest + (epoch.fakes if fakes else 0), n, np)
    shares, errors = found.totals / n, np.sqrt(found.variances) / n
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    targets = np.isin(np.arange(d), TARGETS)
    everywhere = believed(oracle, np.ones(d, dtype=bool))
    stood = oracle.debias(epoch.fakes, FAKES, np).totals / FAKES
    return (
        shares,
        base_cut(shares, errors),
        simplex_l2(shares),
        recovered(shares, ETA, everywhere),
        recovered(shares, GUESS, everywhere),
        recovered(shares, ETA, believed(oracle, shares > 0)),
        recovered(shares, ETA, (targets / targets.sum() - q) / (p - q)),
        (1 + ETA) * shares - ETA * stood,
    )


def errors_of(shares: Sequence[Any], truths: Sequence[Any]) -> str:
    """Return the root mean square error of an item, and how far the targets' sum is off."""
    off = np.array(shares) - np.array(truths)
    return f"{100 * sqrt((off**2).mean()):.2f} %, {off[:, list(TARGETS)].sum(axis=1).mean():+.3f}"


def lines(runs: int = RUNS) -> Iterator[str]:
    """Yield of each mechanism, with fakes and without, the errors before and after each method."""
    yield head("mechanism", "fakes", *METHODS)
    for name in MECHANISMS:
        oracle = load(name)("1", ITEMS)
        assert isinstance(oracle, FrequencyOracle)
        epochs = [epoch_of(oracle, seed) for seed in range(runs)]
        truths = [epoch.truth for epoch in epochs]
        for fakes in (FAKES, 0):
            each = zip(*(methods(oracle, epoch, fakes) for epoch in epochs), strict=True)
            cells = [errors_of(shares, truths) for shares in each]
            yield row(name, "5 %" if fakes else "none", *cells)


def main() -> None:
    """Print the table."""
    for line in lines():
        print(line, flush=True)
