"""Recommendations by factors of many devices' tastes, computed where the taste is known.

With M the mean over all devices of y yᵀ, y being a device's likes as a vector of length 1, the
file has the largest eigenvalues λ of M and their eigenvectors V, as far as they are above the
noise.  M x adds up, for each item, how often it is liked together with what the device likes, and
V diag(λ) Vᵀ is the matrix of its rank that is nearest to M.  So the scores are V diag(λ) Vᵀ x: the
device has the factors λ^½ Vᵀ x, an item its row of V λ^½, and a score is their product.

Without the eigenvalues, V Vᵀ x would score nothing but the device's own items once V is whole.

Nothing is sent, and the device does not keep the likes of a call.
"""

from __future__ import annotations

from collections.abc import Collection

from ..core.dataclass import dataclass
from ..core.errors import InvalidParameterError
from ..core.typing import TYPE_CHECKING, Final
from ..mechanisms import UNIT
from .model import Model, ModelSource, read, wrong

if TYPE_CHECKING:
    from ..registry.metric import Metric

KIND: Final = "factors"


@dataclass(frozen=True)
class Factors:
    """The eigenvalues, falling, with a row of factors for each of *items*.

    ``shares`` are the parts of all likes that the items have: who likes nothing yet gets the
    largest.
    """

    items: tuple[str, ...]
    eigenvalues: tuple[float, ...]
    rows: tuple[tuple[float, ...], ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, model: Model) -> Factors:
        """Return what a *model* of this kind says.  Raises InvalidParameterError."""
        model.require(KIND)
        items, rank = model.labels("items"), model.parts.get("rank")
        if type(rank) is not int or not 1 <= rank <= len(items):
            raise wrong("rank must be from 1 to the number of items")
        eigenvalues = model.table("eigenvalues", rank, 3, -8, 8)
        shares = model.table("shares", len(items), 3, -8, 8)
        return cls(
            items,
            tuple(value for value, _, _ in eigenvalues),
            model.table("factors", len(items), rank, -1, 1),
            tuple(value for value, _, _ in shares),
        )

    def scores(self, liked: Collection[int]) -> tuple[float, ...]:
        """Return the score of every item for who likes the items at these places."""
        if not liked:
            return self.shares
        pulls = [
            value * sum(self.rows[item][place] for item in liked)
            for place, value in enumerate(self.eigenvalues)
        ]
        return tuple(sum(x * pull for x, pull in zip(row, pulls, strict=True)) for row in self.rows)

    def best(self, liked: Collection[int], count: int) -> list[str]:
        """Return at most *count* items that are not *liked*, the highest score first."""
        scores = self.scores(liked)
        others = [item for item in range(len(self.items)) if item not in liked]
        others.sort(key=lambda item: -scores[item])
        return [self.items[item] for item in others[:count]]


def recommend(metric: Metric, source: ModelSource, count: int, likes: object) -> list[str]:
    """Return at most *count* items of *metric* for who *likes* these, the best first.

    Raises: InvalidParameterError: *count* is no number of items, or the model is not one of this
            metric.  InvalidValueError: *likes* are no value of it; they are not shown.
    """
    if type(count) is not int or count < 1:
        raise InvalidParameterError("count", count, "must be how many items, at least 1")
    model = read(source)
    model.require(KIND, metric)
    factors = Factors.of(model)
    if factors.items != metric.domain.labels:
        raise wrong(f"items must match {metric.name}")
    encoded = metric.encode(likes)
    assert isinstance(encoded, tuple)  # noqa: S101 - a model of it says that it has factors
    liked = {item for item in range(len(factors.items)) if 0 < encoded[item] <= UNIT}
    return factors.best(liked, count)
