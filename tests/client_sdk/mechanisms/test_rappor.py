"""Facts about RAPPOR: the published epsilons, the published counts, and repeated reports."""

from __future__ import annotations

import csv
import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import Channel
from client_sdk.mechanisms.deployed.rappor import RAPPOR, nnls, regress
from client_sdk.registry.longitudinal import permanent_randomness
from tests.support.enumeration.enumeration import distribution, exp_below, largest_ratio
from tests.support.enumeration.replay import Replay
from tests.support.enumeration.seeded import SeededRandomness

DATA: Final = Path(__file__).parents[2] / "data" / "rappor"
COHORTS, BITS, CANDIDATES = 8, 128, 300


def published() -> tuple[Any, Any]:
    """Return the published cells, shape (cohorts, 1 + bits), and the design of the candidates."""
    with (DATA / "rappor_counts.csv").open() as file:
        cells = np.array([[int(cell) for cell in row] for row in csv.reader(file)])
    design = np.zeros((COHORTS * BITS, CANDIDATES))
    with (DATA / "rappor_map.csv").open() as file:
        for candidate, (_, *positions) in enumerate(csv.reader(file)):
            design[[int(position) - 1 for position in positions if position], candidate] = 1
    return cells, design.reshape(COHORTS, BITS, CANDIDATES)


def classical(f: int, p: int, q: int) -> RAPPOR:
    """Return a deployment of two hashes with rates in thousandths."""
    return RAPPOR("16", 4, f_mille=f, p_mille=p, q_mille=q)


@pytest.mark.parametrize(
    ("rates", "one_report", "all_reports"),
    [
        pytest.param((500, 500, 750), 1.0743, 4.3944, id="E1-paper"),
        pytest.param((450, 390, 610), 0.9728, 4.9471, id="E2-regression"),
        pytest.param((0, 225, 775), 4.9471, None, id="E2-no-permanent-noise"),
        pytest.param((500, 250, 750), 2.0433, 4.3944, id="E3-normal"),
        pytest.param((250, 250, 750), 3.1538, 7.7836, id="E3-sparse"),
    ],
)
def test_classical_rates_spend_the_published_epsilons(
    rates: tuple[int, int, int], one_report: float, all_reports: float | None
) -> None:
    mechanism = classical(*rates)

    assert float(mechanism.spent) == pytest.approx(one_report, abs=5e-5)
    if all_reports is None:
        assert mechanism.spent_value is None
    else:
        assert mechanism.spent_value is not None
        assert float(mechanism.spent_value) == pytest.approx(all_reports, abs=5e-5)


def test_the_channel_of_the_paper_is_exact() -> None:
    assert classical(500, 500, 750).channel == Channel(Fraction(11, 16), Fraction(9, 16))


@pytest.mark.parametrize(
    ("file", "digest"), [("counts", "977b2267a2a27de0"), ("map", "7a0fe28fbfcf0b26")]
)
def test_the_published_files_are_unchanged(file: str, digest: str) -> None:
    content = (DATA / f"rappor_{file}.csv").read_bytes()

    assert hashlib.sha256(content).hexdigest().startswith(digest)


def test_the_published_counts_hold_two_bits_a_report() -> None:
    cells, _ = published()
    reports = cells[:, :1]

    held = (cells[:, 1:] - 0.5 * reports) / 0.25

    assert held.sum() / reports.sum() == pytest.approx(2.0000076, abs=5e-8)


def test_the_decoder_explains_the_published_counts() -> None:
    cells, design = published()
    reports = cells[:, :1]
    n = int(reports.sum())

    totals, variances = regress(cells, design, Channel(Fraction(3, 4), Fraction(1, 2)), np)

    held = (cells[:, 1:] - 0.5 * reports) / 0.25
    fitted = (design @ totals) * reports / n
    shares = 100 * totals / totals.sum()
    head = [3.24, 3.16, 3.07, 2.91, 2.85, 2.77, 2.65, 2.60, 2.54, 2.42]
    assert ((held - fitted) ** 2).sum() / ((held - held.mean()) ** 2).sum() == pytest.approx(
        0.0097, abs=5e-5
    )
    assert totals.sum() / n == pytest.approx(1.007, abs=5e-4)
    assert shares[:10] == pytest.approx(head, abs=0.01)
    assert shares[[49, 99]] == pytest.approx([0.60, 0.15], abs=0.01)
    assert shares[[149, 199]] == pytest.approx([0, 0], abs=0.01)
    assert abs(int((totals > 0).sum()) - 202) <= 1  # the last candidate lies at the edge of 0
    assert 100 * np.sqrt(variances).max() / n < 0.06


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_nnls_meets_the_conditions_of_an_optimum(seed: int, alike: bool) -> None:
    """Among columns that are alike, one taken early turns negative, and goes out again."""
    dice = np.random.default_rng(seed)
    matrix, goal = dice.random((40, 25)) - 0.3, dice.normal(size=40)
    if alike:
        matrix, goal = dice.random((10, 6)) + 1, dice.normal(size=10) + 1

    x = nnls(matrix.T @ matrix, matrix.T @ goal, np)

    gradient = matrix.T @ (goal - matrix @ x)
    assert (x >= 0).all()
    assert np.abs(gradient[x > 0]).max() < 1e-8
    assert gradient[x == 0].max() < 1e-8
    assert 0 < (x > 0).sum() < len(x)


def test_nnls_shares_out_what_two_equal_columns_explain() -> None:
    matrix = np.array([[1.0, 1.0], [1.0, 1.0]])

    x = nnls(matrix.T @ matrix, matrix.T @ np.array([3.0, 3.0]), np)

    assert x.sum() == pytest.approx(3.0)


def test_a_column_that_follows_the_law_exactly_is_decoded_to_the_truth() -> None:
    mechanism = RAPPOR("2", 12, bits=16, cohorts=4)
    p, q = mechanism.channel.p, mechanism.channel.q
    truth = np.array([0, 0, 0, 1, 2, 3, 4, 5, 5, 6, 7, 7]) * 10**6
    design = mechanism.design(np)
    reports = np.full((4, 1), truth.sum() // 4)
    held = design @ truth / 4
    ones = np.rint(held * float(p) + (reports - held) * float(q)).astype(int)
    tally = np.concatenate((reports, ones), axis=1).reshape(-1)

    totals, variances = mechanism.debias(tally, int(truth.sum()), np)

    assert totals == pytest.approx(truth, abs=20)
    assert (variances > 0).all()


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_two_reports_of_one_value_cost_at_most_the_epsilon_of_the_value(epsilon: str) -> None:
    mechanism = RAPPOR(epsilon, 3, bits=3, hashes=1, cohorts=1)

    def law(value: int) -> Any:
        def sample(randomness: Randomness) -> tuple[bytes, bytes]:
            memo = Replay(randomness)
            first = mechanism.respond(value, lambda _: memo, randomness)
            memo.rewind()
            return first, mechanism.respond(value, lambda _: memo, randomness)

        return distribution(sample).pmf

    ratio = largest_ratio([law(value) for value in range(3)])

    assert mechanism.spent_value is not None
    assert exp_below(mechanism.spent) < ratio <= exp_below(mechanism.spent_value)
    assert abs(mechanism.spent_value - 2 * mechanism.epsilon) < Fraction(1, 1 << 40)


def test_a_device_keeps_its_cohort_and_permanent_bits() -> None:
    mechanism = RAPPOR("8", 9, bits=64, permanent_percent=110)
    fresh = SeededRandomness(b"fresh")

    reports = [
        mechanism.respond(4, lambda key: permanent_randomness(bytes(32), b"metric", key), fresh)
        for _ in range(200)
    ]

    ones = np.unpackbits(np.frombuffer(b"".join(reports), np.uint8).reshape(200, -1)[:, 1:], axis=1)
    assert len({report[0] for report in reports}) == 1
    assert (np.abs(ones.mean(axis=0) - 0.5) > 0.3).all()  # p is about 3 %: every bit has a side
