"""Facts about subset selection: ranks and bits name every subset once, and the best size."""

from __future__ import annotations

from itertools import combinations

import pytest

from client_sdk.mechanisms.items.subset_selection import SubsetSelection, best_size


@pytest.mark.parametrize(("k", "size"), [(5, 1), (5, 2), (8, 4), (9, 8)])
def test_ranks_name_every_subset_once(k: int, size: int) -> None:
    mechanism = SubsetSelection("1", k, subset_size=size)

    subsets = [list(subset) for subset in combinations(range(k), size)]
    payloads = [mechanism.pack_subset(subset) for subset in subsets]

    assert len(set(payloads)) == mechanism.subsets == len(subsets)
    assert [sorted(mechanism.supports(payload)) for payload in payloads] == subsets
    assert {mechanism.reason(payload) for payload in payloads} == {None}


def test_a_subset_too_large_for_a_rank_is_sent_as_bits() -> None:
    mechanism = SubsetSelection("1", 130)

    payload = mechanism.pack_subset([0, 7, 129, *range(10, 42)])

    assert mechanism.subset_size == 35
    assert mechanism.payload_size == 17
    assert sorted(mechanism.supports(payload)) == [0, 7, *range(10, 42), 129]
    assert mechanism.reason(payload) is None


@pytest.mark.parametrize("epsilon", ["0.1", "1", "2.5", "4"])
@pytest.mark.parametrize("k", [2, 3, 10, 40])
def test_no_other_subset_size_has_a_smaller_predicted_error(epsilon: str, k: int) -> None:
    best = SubsetSelection(epsilon, k)

    errors = [SubsetSelection(epsilon, k, subset_size=s).predict(1) for s in range(1, k)]

    assert best.subset_size == best_size(best.epsilon, k)
    assert best.predict(1) == pytest.approx(min(errors), rel=1e-12)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_fit_takes_the_best_size_whose_reports_fit(bits: int) -> None:
    fitted = SubsetSelection.fit("1", 100, bits)

    sizes = range(1, SubsetSelection("1", 100).subset_size + 1)
    able = [SubsetSelection("1", 100, subset_size=s) for s in sizes]
    short = [m for m in able if m.is_ranked and m.payload_size * 8 <= bits]
    assert fitted.payload_size * 8 <= bits
    assert fitted.predict(1) == min(m.predict(1) for m in short)
