"""A storage that times its folds: from the end of a claim, decoding and tallying included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from ..storage.protocols import MAX_CLAIM, Storage
from ..storage.values import ClaimedEntry, Increments


def observe(
    inner: Storage, tell: Callable[[float], None], monotonic: Callable[[], float]
) -> Storage:
    """Return *inner*; *tell* is called with the seconds of each fold, by *monotonic*."""
    return cast(Storage, _Observed(inner, tell, monotonic))  # what it lacks, it has from inner


class _Observed:
    def __init__(
        self, inner: Storage, tell: Callable[[float], None], monotonic: Callable[[], float]
    ) -> None:
        self._inner, self._tell, self._monotonic = inner, tell, monotonic
        self._begun = monotonic()

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def claim(
        self, shard: int, consumer: str, count: int, min_idle_ms: int, size: int = MAX_CLAIM
    ) -> list[ClaimedEntry]:
        """Claim, and note when."""
        claimed = self._inner.claim(shard, consumer, count, min_idle_ms, size)
        self._begun = self._monotonic()
        return claimed

    def fold(
        self, shard: int, ids: Sequence[str], increments: Increments, ending: int | None = None
    ) -> tuple[str, ...]:
        """Fold, and tell how long after the claim, or after the fold before, it was done."""
        missing = self._inner.fold(shard, ids, increments, ending)
        now = self._monotonic()
        if ids and not missing:
            self._tell(now - self._begun)
        self._begun = now
        return missing
