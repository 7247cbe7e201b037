"""Reports of one number: big-endian, in as few whole bytes as hold the largest."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

from ..core.errors import InvalidTallyError
from ._base import Array, Mechanism, Numpy, Value, column, width_of


class NumberReports(Mechanism[Value]):
    """A mechanism whose payload is a number below ``payload_count``."""

    beyond: ClassVar[str] = "number_out_of_range"  # the reason to refuse a larger one

    @property
    @abstractmethod
    def payload_count(self) -> int:
        """How many different payloads there are."""

    @cached_property
    def payload_size(self) -> int:
        """1, 2, 4 or 8 bytes, the fewest that hold every report."""
        return width_of(self.payload_count)

    def reason(self, payload: bytes) -> str | None:
        """Refuse a number that no value gives."""
        return None if int.from_bytes(payload, "big") < self.payload_count else self.beyond

    def suspects(self, payloads: bytes, np: Numpy) -> Array:
        """Compare the whole column with the number of reports."""
        return column(payloads, self.payload_size, np) >= self.payload_count

    def count_reasons(self, invalid: bytes, np: Numpy) -> dict[str, int]:
        """There is one reason."""
        return {self.beyond: len(invalid) // self.payload_size}

    def report_counts(self, payloads: bytes, np: Numpy) -> Array:
        """Return how often each report occurs in the column, int64, shape (payload_count,)."""
        return np.bincount(column(payloads, self.payload_size, np), minlength=self.payload_count)


class CountedReports(NumberReports[Value]):
    """A mechanism whose tally is how often each report occurs."""

    @property
    def tally_size(self) -> int:
        """One cell a report."""
        return self.payload_count

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Count the reports of the whole column."""
        return self.report_counts(payloads, np)

    def require_sum(self, tally: Array, n: int) -> None:
        """Raise InvalidTallyError unless *tally* has n reports, each counted in one cell."""
        if tally.min() < 0 or tally.max() > n or int(tally.sum()) != n:
            raise InvalidTallyError(f"tally: entries must be at least 0 and add up to n={n}")

    def require_whole(self, tally: Array, n: int, np: Numpy) -> None:
        """Debiasing may not need the reports to add up, but they must."""
        self.debias(tally, n, np)
        self.require_sum(tally, n)
