"""Recommendations on a device: by a file, from the likes of the call, and nothing of it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.core.errors import InvalidParameterError, InvalidValueError, UnknownMetricError
from client_sdk.core.stats import Reason
from client_sdk.learning.factors import KIND, Factors
from client_sdk.learning.model import Model
from client_sdk.registry import Registry
from client_sdk.testing import MemoryClient, MemoryTransport
from tests.support.device.registries import TASTE, file_with

VALUES: Final = '["news", "chess", "sport", "films"]'
REGISTRY: Final = Registry.from_text(file_with(TASTE, values=VALUES))
METRIC: Final = REGISTRY.metric("m")
HALF: Final = 0.5**0.5
# news goes with chess, and sport with films, which fewer like
PARTS: Final[dict[str, Any]] = {
    "items": list(METRIC.domain.labels),
    "rank": 2,
    "eigenvalues": [[0.6, 0.5, 0.7], [0.4, 0.3, 0.5]],
    "factors": [[HALF, 0.0], [HALF, 0.0], [0.0, HALF], [0.0, HALF]],
    "shares": [[0.35, 0.3, 0.4], [0.25, 0.2, 0.3], [0.22, 0.2, 0.24], [0.18, 0.1, 0.2]],
}
MODEL: Final = Model.of(KIND, METRIC, 50_000, PARTS)


def changed(**parts: object) -> bytes:
    return Model.of(KIND, METRIC, 50_000, {**PARTS, **parts}).text().encode()


@pytest.mark.parametrize(
    ("likes", "best"),
    [
        (["news"], "chess"),
        (["chess"], "news"),
        (["films"], "sport"),
        (["sport"], "films"),
        (["news", "chess", "sport"], "films"),
        ([], "news"),  # the most liked of all
    ],
)
def test_the_best_item_goes_with_what_is_liked(likes: list[str], best: str) -> None:
    with MemoryClient(REGISTRY) as client:
        ranked = client.recommend("m", MODEL, likes=likes)

    assert ranked[0] == best
    assert not set(ranked) & set(likes)
    assert len(ranked) == 4 - len(likes)


def test_scores_are_the_low_rank_matrix_times_the_likes() -> None:
    factors = Factors.of(MODEL)

    scores = factors.scores([0, 2])

    rows, values = factors.rows, factors.eigenvalues
    matrix = [[sum(v * a[k] * b[k] for k, v in enumerate(values)) for b in rows] for a in rows]
    assert scores == pytest.approx([row[0] + row[2] for row in matrix])


def test_at_most_as_many_as_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "factors.json"
    path.write_text(MODEL.text(), "utf-8")

    with MemoryClient(REGISTRY) as client:
        assert client.recommend("m", path, 2, likes=["news"]) == ["chess", "sport"]
        assert client.recommend("m", path.read_bytes(), 9, likes={"news", "chess", "sport"}) == [
            "films"
        ]


def test_nothing_is_recorded_charged_or_sent_for_a_recommendation() -> None:
    """Nor is a yes needed: it stays where it is."""
    transport = MemoryTransport()
    with MemoryClient(REGISTRY, transport=transport) as client:
        for _ in range(3):
            client.recommend("m", MODEL, likes=["news"])
        counts = client.stats()
        client.flush()
        client.set_consent("denied")
        assert client.recommend("m", MODEL, 1, likes=["news"]) == ["chess"]

    assert transport.uploads == []
    assert not any(counts.values())
    assert counts[Reason.RECORDED] == 0


@pytest.mark.parametrize(
    "parts",
    [
        {"rank": 0},
        {"rank": 5},
        {"rank": True},
        {"rank": 1},
        {"items": ["news", "chess", "sport"]},
        {"items": ["news", "chess", "sport", "opera"]},
        {"items": ["chess", "news", "sport", "films"]},
        {"items": None},
        {"eigenvalues": [[0.6, 0.5, 0.7]]},
        {"eigenvalues": [[0.6, 0.5, 0.7], [1e9, 0.3, 0.5]]},
        {"eigenvalues": [0.6, 0.4]},
        {"factors": [[HALF, 0.0]] * 3},
        {"factors": [[HALF, "0"]] * 4},
        {"factors": [[HALF, 2.0]] * 4},
        {"shares": None},
        {"shares": [[8.1, 0.3, 0.5]] * 4},
    ],
)
def test_a_file_that_does_not_hold_together_is_refused(parts: dict[str, Any]) -> None:
    with MemoryClient(REGISTRY) as client, pytest.raises(InvalidParameterError, match="model="):
        client.recommend("m", changed(**parts), likes=[])


def test_factors_of_another_metric_definition_or_kind_are_refused() -> None:
    other = Registry.from_text(file_with(TASTE, values=VALUES, epsilon='"2"'))
    with MemoryClient(other) as client:
        with pytest.raises(InvalidParameterError, match="as this registry defines it"):
            client.recommend("m", MODEL, likes=[])
        with pytest.raises(InvalidParameterError, match="of kind factors"):
            client.recommend("m", Model.of("rounds", METRIC, 9, PARTS), likes=[])
        with pytest.raises(UnknownMetricError):
            client.recommend("n", MODEL, likes=[])


@pytest.mark.parametrize("count", [0, -1, True, "5", None])
def test_a_count_that_is_none_is_refused(count: Any) -> None:
    with MemoryClient(REGISTRY) as client, pytest.raises(InvalidParameterError, match="count="):
        client.recommend("m", MODEL, count, likes=[])


@pytest.mark.parametrize("likes", [None, "news", ["secret-7391"], ["news"] * 1_000_000])
def test_likes_that_are_no_value_are_refused_and_not_shown(likes: Any) -> None:
    with MemoryClient(REGISTRY) as client, pytest.raises(InvalidValueError) as refusal:
        client.recommend("m", MODEL, likes=likes)

    assert "7391" not in str(refusal.value)
