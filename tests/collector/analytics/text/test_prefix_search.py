"""Search for strings that nobody listed: what is common is found, and what is found is there."""

from __future__ import annotations

from collections import Counter
from math import sqrt
from typing import Final

import numpy as np
import pytest

from benchmarks.accuracy.heavy_hitters import tally_of
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms.composite.pem import PEM
from collector.analytics.text.search import Plan, candidates
from collector.analytics.text.sketches import shares_of, sketches_of
from collector.estimation.estimate import Estimate

LOWER: Final = b"abcdefghijklmnopqrstuvwxyz"
N: Final = 300_000  # devices


def found_in(mechanism: PEM, tally: np.ndarray, n: int, plan: Plan) -> dict[bytes, Estimate]:
    """Return the strings that are common for sure, with their shares."""
    levels = sketches_of(mechanism, tally, n)
    texts = candidates(levels, plan).texts
    shares = dict(zip(texts, shares_of(levels, texts, plan.z), strict=True))
    return {text: share for text, share in shares.items() if share.ci_low > 0}


def crowd() -> Counter[bytes]:
    """Return N devices: a few common strings of all lengths, and 3,000 that one in 6,000 has."""
    dice = np.random.default_rng(1)
    rare = [bytes(dice.choice(list(LOWER), size=size).tolist()) for size in (4, 6, 8) * 1000]
    common = {b"a": 30_000, b"ab": 20_000, b"abacus": 40_000, b"abacuses": 15_000, b"zoo": 25_000}
    people: Counter[bytes] = Counter({b"": 20_000, **common})
    for text in rare:
        people[text] += (N - sum(common.values()) - 20_000) // len(rare)
    people[b"rest"] += N - people.total()
    return people


@pytest.mark.parametrize("step", [1, 2, 3])
def test_every_detectable_string_is_found_and_none_that_is_rare(step: int) -> None:
    """Short, long, one the beginning of another, and the empty one: all with honest intervals."""
    mechanism, people = PEM("4", 8, step=step), crowd()
    plan = Plan(mechanism, LOWER, 0.01)
    tally = tally_of(mechanism, list(people), list(people.values()), seed=2)

    found = found_in(mechanism, tally, N, plan)

    assert {b"", b"a", b"ab", b"abacus", b"abacuses", b"zoo"} == set(found)
    assert min(people[text] for text in found) / N > plan.detectable(N)
    assert all(one.ci_low <= people[text] / N <= one.ci_high for text, one in found.items())


def test_real_devices_are_searched_as_well() -> None:
    """20,000 devices with the system's entropy: two crash signatures come out, nothing else."""
    mechanism, randomness, devices = PEM("4", 12), system_randomness(), 20_000
    plan = Plan(mechanism, LOWER + b"_", 1e-9)
    texts = [b"null_pointer", b"out_of_disk"]
    reports = (mechanism.randomize(texts[i % 5 == 0], randomness) for i in range(devices))
    tally = mechanism.tally(b"".join(reports), np)

    found = found_in(mechanism, tally, devices, plan)

    assert set(found) == set(texts)
    assert found[b"null_pointer"].ci_low < 0.8 < found[b"null_pointer"].ci_high
    assert found[b"out_of_disk"].ci_low < 0.2 < found[b"out_of_disk"].ci_high


def test_a_crowd_without_common_strings_gives_none() -> None:
    """Whatever is looked up is noise, of 20 crowds without a false alarm at alpha 1e-9."""
    mechanism = PEM("2", 6)
    plan = Plan(mechanism, LOWER, 1e-9)
    dice = np.random.default_rng(3)
    texts = [bytes(dice.choice(list(LOWER), size=6).tolist()) for _ in range(5_000)]

    for seed in range(3):
        tally = tally_of(mechanism, texts, [20] * len(texts), seed)
        assert found_in(mechanism, tally, 100_000, plan) == {}


def test_common_strings_outside_the_alphabet_make_no_others_common() -> None:
    """Nobody looks for what 40 % hold, and what shares their cells is not taken for common."""
    mechanism = PEM("4", 8)
    unknown = {f"ÄÖ{i}".encode(): 20_000 for i in range(6)}
    people = {**unknown, b"known": 180_000}
    tally = tally_of(mechanism, list(people), list(people.values()), seed=5)

    found = found_in(mechanism, tally, N, Plan(mechanism, LOWER, 0.01))

    assert set(found) == {b"known"}


def test_no_reports_give_no_strings() -> None:
    """An empty tally is searched without fault."""
    mechanism = PEM("2", 6)

    assert (
        found_in(mechanism, np.zeros(mechanism.tally_size, int), 0, Plan(mechanism, LOWER, 0.05))
        == {}
    )


def test_a_string_with_bytes_outside_the_alphabet_is_not_looked_for() -> None:
    """The alphabet is the analyst's, and says where strings are looked for."""
    mechanism = PEM("4", 4)
    tally = tally_of(mechanism, [b"ab", "ü".encode()], [50_000, 50_000], seed=4)

    ascii_only = found_in(mechanism, tally, 100_000, Plan(mechanism, LOWER, 0.01))
    with_umlaut = found_in(mechanism, tally, 100_000, Plan(mechanism, LOWER + "ü".encode(), 0.01))

    assert set(ascii_only) == {b"ab"}
    assert set(with_umlaut) == {b"ab", "ü".encode()}


@pytest.mark.parametrize("alphabet", [LOWER, LOWER + LOWER.upper(), bytes(range(32, 127))])
@pytest.mark.parametrize(("epsilon", "length", "step"), [("1", 2, 2), ("2", 16, 2), ("4", 24, 1)])
def test_the_reports_needed_are_those_of_which_the_share_is_detectable(
    alphabet: bytes, epsilon: str, length: int, step: int
) -> None:
    """Fewer would not do, more find rarer strings, and some shares are out of reach."""
    plan = Plan(PEM(epsilon, length, step=step), alphabet, 0.05)

    needed = plan.reports_needed(0.02)

    assert needed is not None
    assert plan.detectable(needed) <= 0.02 * (1 + 1e-9)
    assert plan.detectable(needed - 2) > 0.02
    assert plan.detectable(4 * needed) < 0.011
    assert plan.reports_needed(1e-9) is None or length == 2


def test_the_detectable_share_falls_with_the_root_of_the_reports_and_with_epsilon() -> None:
    """It is a number of standard errors of one level: z times the root of 4EG/n, over E-1."""
    plan = Plan(PEM("2", 16), LOWER, 0.05)
    e, levels, n = 7.38905609893065, 8, 1_000_000

    textbook = sqrt(4 * e * levels / n) / (e - 1)

    assert 7.5 < plan.detectable(n) / textbook < 8.5
    assert plan.detectable(n) == pytest.approx(2 * plan.detectable(4 * n))
    assert Plan(PEM("4", 16), LOWER, 0.05).detectable(n) < plan.detectable(n) / 2


def test_more_tests_and_surer_answers_ask_for_more_standard_errors() -> None:
    """z counts every string that is looked up, and every level."""
    few, many = (Plan(PEM("2", 16), alphabet, 0.05) for alphabet in (b"ab", LOWER))

    assert few.z < many.z < Plan(PEM("2", 16), LOWER, 0.001).z
    assert few.tests < many.tests
