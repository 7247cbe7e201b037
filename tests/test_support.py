"""The instruments themselves: an enumeration or formula that is wrong would prove anything."""

from __future__ import annotations

import hashlib
import math
import signal
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import pytest

from client_sdk.core.randomness import Randomness
from tests.support import patience
from tests.support.enumeration.enumeration import Path, distribution, exp_below
from tests.support.enumeration.formula import digits, evaluate
from tests.support.enumeration.seeded import SeededRandomness, ShakeStream
from tests.support.store import processes

THIRD = Fraction(1, 3)


def test_distribution_multiplies_the_masses_along_a_path() -> None:
    def sample(randomness: Randomness) -> tuple[bool, int]:
        return randomness.bernoulli(THIRD), randomness.uniform(2)

    law = distribution(sample)

    half = Fraction(1, 2)
    assert law.rest == 0
    assert law.pmf == {
        (True, 0): THIRD * half,
        (True, 1): THIRD * half,
        (False, 0): (1 - THIRD) * half,
        (False, 1): (1 - THIRD) * half,
    }


def test_distribution_adds_the_paths_that_end_alike() -> None:
    law = distribution(lambda randomness: randomness.uniform(4) + randomness.uniform(4))

    assert law.pmf[3] == Fraction(4, 16)
    assert law.pmf[6] == Fraction(1, 16)


def test_distribution_of_bits_is_that_of_independent_bernoullis() -> None:
    bulk = distribution(lambda randomness: randomness.bernoulli_bits(THIRD, 3))
    single = distribution(
        lambda randomness: sum(randomness.bernoulli(THIRD) << i for i in range(3))
    )

    assert bulk == single


def test_distribution_puts_what_it_does_not_follow_into_the_rest() -> None:
    def tosses(randomness: Randomness) -> int:
        count = 0
        while randomness.bernoulli_ratio(1, 2):
            count += 1
        return count

    law = distribution(tosses, least_mass=Fraction(1, 1 << 20))

    assert law.pmf[5] == Fraction(1, 64)
    assert 0 < law.rest < Fraction(1, 1 << 19)
    assert sum(law.pmf.values()) + law.rest == 1


def test_distribution_never_follows_a_choice_that_cannot_happen() -> None:
    law = distribution(lambda randomness: randomness.bernoulli_ratio(1, 1))

    assert law.pmf == {True: 1}


@pytest.mark.parametrize("p", [0.5, 1, Fraction(3, 2), Fraction(-1, 2)])
def test_path_refuses_a_probability_that_is_not_an_exact_one(p: Fraction) -> None:
    with pytest.raises(TypeError, match="Fraction"):
        Path([]).bernoulli(p)


def test_path_refuses_a_float_number_of_parts() -> None:
    with pytest.raises(TypeError, match="integers"):
        Path([]).uniform(4.0)  # type: ignore[arg-type]  # the fault under test


@pytest.mark.parametrize("x", ["0", "0.01", "1", "7.3", "16"])
def test_exp_below_is_below_and_close(x: str) -> None:
    exact = Fraction(Decimal(x))

    below = exp_below(exact)

    assert below <= exp_below(exact / 2) ** 2 * (1 + Fraction(1, 10**100))
    assert math.isclose(float(below), math.exp(float(exact)), rel_tol=1e-14)
    assert below * exp_below(Fraction(1)) <= exp_below(exact + 1) * (1 + Fraction(1, 10**100))


def test_formula_computes_with_its_own_arithmetic() -> None:
    value = evaluate("sqrt(E) / (sqrt(E) + 1) - -d * 2 ** 3", {"E": Decimal(9), "d": Decimal(5)})

    assert digits(value, 6) == "40.75"


@pytest.mark.parametrize("formula", ["__import__('os')", "x", "1.5", "exp(1, 2)", "E.real", "[1]"])
def test_formula_refuses_all_but_arithmetic(formula: str) -> None:
    with pytest.raises(ValueError, match="formula"):
        evaluate(formula, {"E": Decimal(1)})


def test_seeded_bytes_are_shake_256_of_the_seed_in_order() -> None:
    stream = ShakeStream(b"seed")

    drawn = b"".join(stream.read(size) for size in (1, 0, 3, 2000, 7))

    assert drawn == hashlib.shake_256(b"seed").digest(2011)


def test_seeded_uniform_drops_the_low_bits_and_rejects() -> None:
    stream = hashlib.shake_256(b"\x07").digest(100)
    expected = [byte >> 5 for byte in stream if byte >> 5 < 5]

    randomness = SeededRandomness(b"\x07")

    assert [randomness.uniform(5) for _ in range(20)] == expected[:20]


STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3_600)"])
print(child.pid, flush=True)
time.sleep(3_600)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_that_does_not_end_is_killed_with_what_it_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.1)
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE)

    with processes.until_ended(process):
        assert process.stdout is not None
        child = int(process.stdout.readline())

    assert process.returncode == -signal.SIGKILL
    patience.wait_for(lambda: not processes.survivors({child}))


def test_a_wait_for_a_process_that_has_ended_is_in_vain() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()

        with pytest.raises(AssertionError, match="its log"):
            patience.wait_for(lambda: False, lambda: "its log", running=(process,))
