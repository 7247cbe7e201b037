"""The table of vectors on its page is what the command prints, and meets its bars."""

from __future__ import annotations

from benchmarks.accuracy.vectors import BAR, EPSILONS, GAUSSIAN_BAR, gaussian, optimum
from client_sdk.mechanisms.numbers.codebook import Codebook


def test_the_errors_of_the_table_meet_their_bars() -> None:
    """At most 3 % above the best, and a seventh of Gaussian noise."""
    for epsilon in EPSILONS:
        ours = Codebook(epsilon, 1_024).noise
        assert 1 < ours / optimum(float(epsilon)) <= BAR
        assert gaussian(float(epsilon)) >= GAUSSIAN_BAR * ours
