"""What fake devices can do, and which of them the checks of an epoch find.

Gains are of real payloads: honest ones by the mechanisms' own code and the system's entropy, fakes
made up by three attackers, all tallied and debiased as a collector does.  Alarms are counted over
epochs whose honest tallies are drawn by their law.

Run: ``python -m benchmarks poisoning``; about two minutes.  Its output is on
docs/operate/poisoning.md and docs/evidence/tables/poisoning.md.

An attacker sends valid payloads that were made up.  *best* supports all targets at once, padded so
that it has as many ones as an honest report, to the nearest whole number; *exact* draws that number
so that its mean is an honest report's; *unpadded* has no others; *honest* randomizes a target as a
device would; *random* is any valid payload.

Source: Cao, Jia, Gong, USENIX Security 2021: maximal gain, random item and random perturbed value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import sqrt
from typing import Any, Final

import numpy as np

from benchmarks.lib.page import head, row
from benchmarks.lib.tallies import law_of
from client_sdk.core.randomness import Randomness, system_randomness
from client_sdk.mechanisms import DistributionMechanism, FrequencyOracle, Mechanism, load
from client_sdk.mechanisms.bits import BitReports
from client_sdk.mechanisms.composite.sampled_item import SampledItem
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard, is_positive
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.pgr import PGR
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.numbers import NumberDomain
from collector.analytics.poisoning.anomaly import CHECKS, FALSE_ALARM
from collector.analytics.poisoning.checks import SINGLE, change, epoch_estimates
from collector.analytics.poisoning.influence import mean_reach, moved
from tests.support.device.registries import CATEGORY, file_with

BEST, EXACT, UNPADDED, HONEST, RANDOM = "best", "exact", "unpadded", "honest", "random"
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
    mean = p + (size - 1) * q
    more = chance.bernoulli(Fraction(mean % 1)) if attack == EXACT else mean % 1 > 0.5
    usual = int(mean) + more - len(targets)
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


EPSILONS: Final = ("0.5", "1", "2", "4")
SIZES: Final = (4, 16, 64, 1_024)
ITEMS: Final = 64
TARGETS: Final = (50, 53, 57, 60)
PROMOTED: Final = (*TARGETS, 51, 55, 58, 62)
COUNTS: Final = (1, 4, 8)  # of them; fakes of numbers send one symbol, and have no targets
# ``grr`` serves few items: of 64 at ε = 1 its variance is six times that of ``oue``.
DETECTED: Final = (
    ("grr", 16, BEST),
    ("grr", ITEMS, BEST),
    ("oue", ITEMS, UNPADDED),
    ("oue", ITEMS, BEST),
    ("oue", ITEMS, EXACT),
    ("sue", ITEMS, BEST),
    ("sue", ITEMS, EXACT),
    ("hadamard", ITEMS, BEST),
    ("sampled_item", ITEMS, BEST),
    ("pgr", ITEMS, BEST),
    ("square_wave", ITEMS, BEST),
)
HONEST_DEVICES: Final = 19_000
FAKE_DEVICES: Final = 1_000  # 5 %
PROTOCOLS: Final = ("grr", "oue", "sue", "olh", "blh", "hadamard")
REPORTS: Final = 100_000  # of an epoch, for the alarms
SHARES: Final = (0.01, 0.05)  # of fakes
CLEAN: Final = 10_000  # epochs
ATTACKED: Final = 1_000  # epochs
BEGINNINGS: Final = 200  # epochs
BEFORE: Final = (7, 14, 30)  # epochs that ``change`` has seen
DRAWS: Final = 20261121  # seed of the honest crowds
NUMBERS: Final = ("duchi", "piecewise", "hybrid", "minimax", "one_bit_mean", "square_wave",
                  "discrete_gaussian", "discrete_laplace")  # fmt: skip


def worth() -> Iterator[str]:
    """Yield how many honest devices one fake adds to a count at most, by mechanism."""
    heads = ["ε", "oue", "olh", "sue", "hadamard", *(f"grr, {size:,} items" for size in SIZES)]
    yield head(*heads)
    for epsilon in EPSILONS:
        oracles = [load(name)(epsilon, ITEMS) for name in heads[1:5]]
        oracles += [load("grr")(epsilon, size) for size in SIZES]
        reaches = [oracle.share_reach(0, np) for oracle in oracles]
        yield row(epsilon, *(f"{reach.high:.2f}" for reach in reaches if reach))


def gains() -> Iterator[str]:
    """Yield what 5 % of fakes add to four of 64 items together: as stated, and as simulated."""
    heads = ["protocol", "ε", *(f"{attack}: stated, found" for attack in (RANDOM, HONEST, BEST))]
    yield head(*heads)
    for name in PROTOCOLS:
        for epsilon in EPSILONS[:3]:
            oracle = OLH(epsilon, ITEMS, buckets=2) if name == "blh" else load(name)(epsilon, ITEMS)
            assert isinstance(oracle, FrequencyOracle)
            cells = [_simulated(oracle, attack) for attack in (RANDOM, HONEST, BEST)]
            yield row(name, epsilon, *cells)


def means() -> Iterator[str]:
    """Yield how far 1 % of fakes move a mean that lies in the middle, in percent of the range."""
    domain = NumberDomain(Fraction(0), Fraction(100), Fraction(1), "%")
    yield head("mechanism", *(f"ε = {epsilon}" for epsilon in EPSILONS))
    for name in NUMBERS:
        reaches = [mean_reach(load(name)(epsilon, domain.size), domain) for epsilon in EPSILONS]
        yield row(name, *(f"±{moved(reach, 50):.2g}" for reach in reaches if reach))


def false_alarms() -> Iterator[str]:
    """Yield how many of the clean epochs raise an alarm, check by check."""
    yield head("mechanism", "checks", "alarms in 10,000 clean epochs")
    held = np.zeros(ITEMS, dtype=int)
    held[:3] = REPORTS // 2, REPORTS // 4, REPORTS // 4
    draw = np.random.default_rng(DRAWS)
    for name in ("grr", "oue", "sue", "hadamard", "sampled_item", "pgr", "square_wave"):
        mechanism = load(name)("1", ITEMS)
        found = _alarms(mechanism, crowd(mechanism, held, CLEAN, draw))
        yield row(name, ", ".join(found), str(int(np.any(list(found.values()), axis=0).sum())))
    for before in BEFORE:
        yield row("grr, 8 items", f"change, after {before}", str(_changes(draw, before)))


def detection() -> Iterator[str]:
    """Yield in what part of attacked epochs of 100,000 reports each check raises an alarm."""
    targets = ", ".join(map(str, COUNTS))
    heads = (f"{share:.0%} of fakes: {targets} targets" for share in SHARES)
    yield head("mechanism", "items", "fakes", "crowd", *heads)
    for name, items, attack in DETECTED:
        mechanism = load(name)("1", items)
        for shape in ("steep", "flat"):
            rates = [_rates(mechanism, attack, shape, share) for share in SHARES]
            yield row(name, str(items), attack, shape, *rates)


def beginnings() -> Iterator[str]:
    """Yield in what part of epochs ``change`` finds fakes that were not in those before."""
    heads = [f"{share:.0%} after {before}" for share in SHARES for before in BEFORE]
    yield head("mechanism", "targets", *heads)
    for name in ("grr", "oue", "sue", "hadamard"):
        for targets in (TARGETS[:1], TARGETS):
            rates = [_sudden(name, targets, share, before) for share in SHARES for before in BEFORE]
            yield row(name, str(len(targets)), *rates)


def _simulated(oracle: FrequencyOracle, attack: str) -> str:
    """Return the stated gain, that of one run, and how many standard errors they are apart."""
    chance, n = system_randomness(), HONEST_DEVICES + FAKE_DEVICES
    honest = b"".join(oracle.randomize(i % ITEMS, chance) for i in range(HONEST_DEVICES))
    fakes = payloads(oracle, attack, TARGETS, FAKE_DEVICES, chance)
    held = sum(i % ITEMS in TARGETS for i in range(HONEST_DEVICES)) / HONEST_DEVICES
    totals = oracle.debias(oracle.tally(honest + fakes, np), n, np).totals
    found = float(totals[list(TARGETS)].sum()) / n - held
    stated = gain(oracle, attack, len(TARGETS), held, FAKE_DEVICES / n)
    spread = HONEST_DEVICES * _supports(oracle, honest) + FAKE_DEVICES * _supports(oracle, fakes)
    error = sqrt(spread) / float(oracle.channel.p - oracle.channel.q) / n
    return f"{stated:+.3f}, {found:+.3f} ({(found - stated) / error:+.1f} s.e.)"


def _supports(oracle: FrequencyOracle, column: bytes) -> float:
    """Return the variance of how many targets a report supports, from the first 4,000."""
    reports = oracle.split(column)[:4_000]
    return float(np.var([len(set(oracle.supports(one)) & set(TARGETS)) for one in reports]))


def _held(shape: str, n: int, items: int = ITEMS) -> Any:
    """Return holders by item: alike for ``flat``, falling as 1/rank for ``steep``."""
    law = np.ones(items) if shape == "flat" else 1 / np.arange(1, items + 1)
    held = np.floor(law / law.sum() * n).astype(int)
    held[0] += n - held.sum()
    return held


def _alarms(mechanism: Mechanism[Any], tallies: Any) -> dict[str, Any]:
    """Return which epochs each check that applies finds, shape (epochs,)."""
    level = FALSE_ALARM / CHECKS
    scores = {name: check(mechanism, tallies, REPORTS, level) for name, check in SINGLE.items()}
    return {name: score.statistic > score.limit for name, score in scores.items() if score}


def _changes(draw: np.random.Generator, before: int) -> int:
    """Return how many clean epochs seem to differ from so many *before* them."""
    metric, level = _metric("grr", 8), FALSE_ALARM / CHECKS
    tallies = crowd(metric.mechanism, np.full(8, REPORTS // 8), CLEAN + before, draw)
    past = [epoch_estimates(metric.mechanism, tally, REPORTS) for tally in tallies]
    scores = [
        change(metric, tallies[i], REPORTS, past[i - before : i], level)
        for i in range(before, len(past))
    ]
    return sum(bool((score.statistic > score.limit).any()) for score in scores if score)


def _sudden(name: str, targets: Sequence[int], share: float, before: int) -> str:
    """Return the part of epochs in which fakes that have just begun are a change."""
    metric, draw = _metric(name, ITEMS), np.random.default_rng(DRAWS)
    mechanism, level, m = metric.mechanism, FALSE_ALARM / CHECKS, round(share * REPORTS)
    fakes = fakes_of(mechanism, BEST, targets, m, system_randomness())
    found = 0
    for _ in range(BEGINNINGS):
        earlier = crowd(mechanism, _held("steep", REPORTS), before, draw)
        past = [epoch_estimates(mechanism, tally, REPORTS) for tally in earlier]
        attacked = crowd(mechanism, _held("steep", REPORTS - m), 1, draw)[0] + fakes
        score = change(metric, attacked, REPORTS, past, level)
        found += score is not None and bool((score.statistic > score.limit).any())
    return f"{100 * found / BEGINNINGS:.0f} %"


def _metric(name: str, items: int) -> Metric:
    """Return a metric of *items* items by mechanism *name* at ε = 1."""
    values = ", ".join(f'"{item}"' for item in range(items))
    text = file_with(CATEGORY, values=f"[{values}]", mechanism=f'"{name}"')
    return Registry.from_text(text).metric("m")


def _rates(mechanism: Mechanism[Any], attack: str, shape: str, share: float) -> str:
    """Return the parts of epochs in which some check finds fakes, by targets, and the best one."""
    counts = COUNTS[:1] if isinstance(mechanism, DistributionMechanism) else COUNTS
    found = [_rate(mechanism, attack, shape, count, share) for count in counts]
    best = max(found)[1] if max(found)[0] > 0.01 else ""
    return ", ".join(f"{100 * rate:.0f}" for rate, _ in found) + " %" + f" ({best})" * bool(best)


def _rate(
    mechanism: Mechanism[Any], attack: str, shape: str, count: int, share: float
) -> tuple[float, str]:
    """Return the part of epochs in which some check finds a *share* of fakes, and the best one."""
    size, draw = mechanism.domain_size, np.random.default_rng(DRAWS)
    m, targets = round(share * REPORTS), [target - ITEMS + size for target in PROMOTED[:count]]
    fakes = fakes_of(mechanism, attack, targets, m, system_randomness())
    honest = crowd(mechanism, _held(shape, REPORTS - m, size), ATTACKED, draw)
    found = _alarms(mechanism, honest + fakes)
    rate = float(np.any(list(found.values()), axis=0).mean())
    best = max(found, key=lambda check: float(found[check].mean()))
    return rate, best


def main() -> None:
    """Print all tables."""
    for heading, table in (
        ("What one fake is worth", worth),
        ("What fakes gain", gains),
        ("How far 1 % of fakes move a mean", means),
        ("False alarms", false_alarms),
        ("What is found", detection),
        ("What is found when it begins", beginnings),
    ):
        print(f"### {heading}\n")
        for line in table():
            print(line, flush=True)
        print()
