"""Attackers of frequency oracles, and honest crowds by the law of their tallies.

An attacker sends valid payloads that were made up.  *best* supports all targets at once, padded so
that it has as many ones as an honest report; *unpadded* has no others; *honest* randomizes a
target as a device would; *random* is any valid payload.

Source: Cao, Jia, Gong, USENIX Security 2021: maximal gain, random item and random perturbed value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import numpy as np

from benchmarks.lib.tallies import law_of
from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import DistributionMechanism, FrequencyOracle, Mechanism
from client_sdk.mechanisms.bits import BitReports
from client_sdk.mechanisms.composite.sampled_item import SampledItem
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard, is_positive
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.pgr import PGR

BEST, UNPADDED, HONEST, RANDOM = "best", "unpadded", "honest", "random"
POOL: Final = 8  # seeds that suit all targets: they are rare, so an attacker repeats them


def payloads(
    mechanism: FrequencyOracle, attack: str, targets: Sequence[int], m: int, chance: Randomness
) -> bytes:
    """Return the payloads of *m* fake devices that promote *targets*."""
    if attack == HONEST:
        told = (targets[chance.uniform(len(targets))] for _ in range(m))
        return b"".join(mechanism.randomize(item, chance) for item in told)
    if attack == RANDOM:
        return b"".join(_random(mechanism, chance) for _ in range(m))
    if isinstance(mechanism, OLH | Hadamard | PGR):
        suited = _suited(mechanism, targets, chance)
        return b"".join(suited[chance.uniform(len(suited))] for _ in range(m))
    return b"".join(_best(mechanism, targets, chance, attack) for _ in range(m))


def gain(mechanism: FrequencyOracle, attack: str, targets: int, held: float, fakes: float) -> float:
    """Return what the shares of *targets* items, *held* by devices in all, gain from *fakes*."""
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    if attack == HONEST:
        return fakes * (1 - held)
    if attack == RANDOM:
        supported = targets * _random_support(mechanism)
        return fakes * ((supported - targets * q) / (p - q) - held)
    reach = mechanism.group_reach(targets)
    assert reach is not None
    return fakes * (reach.high - held)


def crowd(mechanism: Mechanism[Any], held: Any, epochs: int, draw: np.random.Generator) -> Any:
    """Return tallies of honest devices of which *held* hold each item, shape (epochs, cells)."""
    n = int(held.sum())
    if isinstance(mechanism, GRR):
        p, q = float(mechanism.channel.p), float(mechanism.channel.q)
        truths = draw.binomial(held, p - q, (epochs, held.size))
        lies = np.full(held.size, 1 / held.size)
        return truths + draw.multinomial(n - truths.sum(axis=1), lies)
    if isinstance(mechanism, BitReports | DistributionMechanism):
        return law_of(mechanism).drawn(held, epochs, draw)
    if isinstance(mechanism, SampledItem):
        q, items = float(mechanism.flip), held.size
        drawn = draw.multinomial(n, np.full(items, 1 / items), epochs)
        yes = draw.binomial(drawn, q + held / n * (1 - 2 * q))
        return np.stack([drawn - yes, yes], axis=-1).reshape(epochs, -1)
    tallies = np.zeros((epochs, mechanism.tally_size), dtype=int)
    for item in np.flatnonzero(held).tolist():
        tallies += draw.multinomial(int(held[item]), _law(mechanism, item), epochs)
    return tallies


def _law(mechanism: Mechanism[Any], item: int) -> Any:
    """Return the chance of every report of a device that holds *item*."""
    assert isinstance(mechanism, Hadamard | PGR)
    own, p = _supporting(mechanism, item), float(mechanism.channel.p)
    law = np.where(own, p / own.sum(), (1 - p) / (~own).sum())
    return law / law.sum()


@lru_cache(maxsize=256)
def _supporting(mechanism: Hadamard | PGR, item: int) -> Any:
    """Return which reports support *item*."""
    if isinstance(mechanism, Hadamard):
        signs = np.array([is_positive(row, item) for row in range(mechanism.rows)])
        return np.stack([~signs, signs], axis=1).reshape(-1)
    rows = (_row(mechanism, number) for number in range(mechanism.payload_count))
    return np.array([item in set(mechanism.supports(payload)) for payload in rows])


def fakes_of(
    mechanism: Mechanism[Any], attack: str, targets: Sequence[int], m: int, chance: Randomness
) -> Any:
    """Return the tally of *m* fakes.

    Of sampled items they say yes to the targets in turn, of numbers they send the highest symbol.
    """
    if isinstance(mechanism, DistributionMechanism):
        return m * np.eye(mechanism.symbols, dtype=np.int64)[-1]
    if isinstance(mechanism, SampledItem):
        tally = np.zeros(mechanism.tally_size, dtype=np.int64)
        for i, item in enumerate(targets):
            tally[2 * item + 1] = (m + i) // len(targets)
        return tally
    assert isinstance(mechanism, FrequencyOracle)
    return mechanism.tally(payloads(mechanism, attack, targets, m, chance), np)


def _best(
    mechanism: FrequencyOracle, targets: Sequence[int], chance: Randomness, attack: str
) -> bytes:
    """Return a payload that supports as many *targets* as one can."""
    if isinstance(mechanism, GRR):
        return targets[chance.uniform(len(targets))].to_bytes(mechanism.payload_size, "big")
    assert isinstance(mechanism, BitReports)
    return _bits(mechanism, targets, chance, attack)


def _suited(
    mechanism: OLH | Hadamard | PGR, targets: Sequence[int], chance: Randomness
) -> list[bytes]:
    """Return payloads that support all *targets*, or as many as any does: POOL seeds, or all."""
    if isinstance(mechanism, OLH):
        tried = iter(lambda: _random(mechanism, chance), b"")
        found = (one for one in tried if set(targets) <= set(mechanism.supports(one)))
        return list(islice(found, POOL))
    supported = np.sum([_supporting(mechanism, item) for item in targets], axis=0)
    best = np.flatnonzero(supported == supported.max()).tolist()
    return [_row(mechanism, number) for number in best]


def _bits(mechanism: BitReports, targets: Sequence[int], chance: Randomness, attack: str) -> bytes:
    """Return bits of the targets and, unless *unpadded*, of as many others as are usual."""
    p, q, size = float(mechanism.channel.p), float(mechanism.channel.q), mechanism.domain_size
    others = [item for item in range(size) if item not in targets]
    usual = round(p + (size - 1) * q) - len(targets)
    bits = sum(mechanism.one_hot(item) for item in targets)
    for _ in range(0 if attack == UNPADDED else min(max(usual, 0), len(others))):
        bits |= mechanism.one_hot(others.pop(chance.uniform(len(others))))
    return mechanism.pack(bits)


def _random(mechanism: FrequencyOracle, chance: Randomness) -> bytes:
    """Return any valid payload, all alike."""
    if isinstance(mechanism, BitReports):
        return mechanism.pack(chance.uniform(1 << mechanism.domain_size))
    assert isinstance(mechanism, GRR | OLH | Hadamard | PGR)
    return _row(mechanism, chance.uniform(mechanism.payload_count))


def _random_support(mechanism: FrequencyOracle) -> float:
    """Return the chance that any valid payload supports an item."""
    if isinstance(mechanism, GRR):
        return 1 / mechanism.domain_size
    return 1 / mechanism.buckets if isinstance(mechanism, OLH) else 1 / 2


def _row(mechanism: GRR | OLH | Hadamard | PGR, number: int) -> bytes:
    return number.to_bytes(mechanism.payload_size, "big")
