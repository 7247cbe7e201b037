"""Count mean sketch: the one-hot bits of the item's cell in a random row, each flipped on its own.

Source: Apple Differential Privacy Team, *Learning with Privacy at Scale*, 2017 (CMS).
Proof: the row is drawn without looking at the item; given it, the bits of two items differ in two
    places at most.  A bit is kept with probability p and flipped with q = 1 - p, so the ratio of
    any report is at most (p/q)^2.  q is 1/(√e^ε+1) rounded up to the grid.

Hash functions, estimate and variance: ``_sketch.py``.  A report is the row, in 4 bytes, and m bits.

Draws: uniform(rows); bits(flip, m), which flip the one-hot bits.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...core.errors import InvalidTallyError
from ...core.randomness import Randomness
from ...core.typing import ClassVar, Final
from ..base import Array, Coins, Draws, NoiseLaw, Numpy
from ..bits import FlippedBits
from ._sketch import Sketch

_ROW_SIZE: Final = 4  # bytes
_CHUNK: Final = 1 << 22  # bits unpacked at once: 4 MiB


class CMS(FlippedBits, Sketch):
    """Count mean sketch.  A tally is, row by row, the reports and the ones of each column."""

    name: ClassVar[str] = "cms"

    @property
    def noise(self) -> float:
        """q(1-q)/(p-q)^2 = √e^ε/(√e^ε-1)^2."""
        p, q = float(self.channel.p), float(self.channel.q)
        return p * q / (p - q) ** 2

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Every device draws its row evenly, and sends one bit a column, on their own."""
        rows = tally.reshape(*tally.shape[:-1], self.rows, -1)
        coins = Coins(rows[..., 1:].sum(axis=(-2, -1)), *self.chances, self.columns - 1)
        return NoiseLaw(coins, Draws(rows[..., 0], 1 / self.rows))

    @property
    def payload_size(self) -> int:
        """The row and the bits."""
        return _ROW_SIZE + (self.columns + 7) // 8

    @property
    def _padding(self) -> int:
        return -self.columns % 8

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return a fresh row, and the noisy bits of the cell of *value* there."""
        self.require_value(value)
        row = randomness.uniform(self.rows)
        flips = randomness.bernoulli_bits(self.channel.q, self.columns)
        bits = flips ^ 1 << (self.columns - 1 - self.cell_of(row, value))
        size = self.payload_size - _ROW_SIZE
        return row.to_bytes(_ROW_SIZE, "big") + (bits << self._padding).to_bytes(size, "big")

    def reason(self, payload: bytes) -> str | None:
        """Refuse a row beyond the sketch, and bits beyond the columns."""
        if int.from_bytes(payload[:_ROW_SIZE], "big") >= self.rows:
            return "row_out_of_range"
        return "bits_beyond_row" if payload[-1] & ((1 << self._padding) - 1) else None

    def _split(self, payloads: bytes, np: Numpy) -> tuple[Array, Array]:
        """Return the rows, shape (n,), and the bytes of the bits."""
        table = np.frombuffer(payloads, dtype=np.uint8).reshape(-1, self.payload_size)
        rows = np.ascontiguousarray(table[:, :_ROW_SIZE]).view(">u4").reshape(-1)
        return rows.astype(np.int64), table[:, _ROW_SIZE:]

    def faults(self, payloads: bytes, np: Numpy) -> dict[str, Array]:
        """Look at the row and the last byte of every report."""
        rows, bits = self._split(payloads, np)
        beyond = (bits[:, -1] & ((1 << self._padding) - 1)) != 0
        return {"row_out_of_range": rows >= self.rows, "bits_beyond_row": beyond}

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items whose cell is 1 in its row."""
        row = int.from_bytes(payload[:_ROW_SIZE], "big")
        bits = int.from_bytes(payload[_ROW_SIZE:], "big") >> self._padding
        last = self.columns - 1
        return [x for x in range(self.domain_size) if bits >> (last - self.cell_of(row, x)) & 1]

    @property
    def tally_size(self) -> int:
        """For each row its reports and the ones of each column."""
        return self.rows * (self.columns + 1)

    @property
    def fold_steps(self) -> int:
        """Every column has a bit."""
        return self.columns

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Add up the bits of the column by row, in chunks of bounded memory."""
        rows, packed = self._split(payloads, np)
        cells = np.zeros((self.rows, self.columns + 1), dtype=np.int64)
        cells[:, 0] = np.bincount(rows, minlength=self.rows)
        step = max(1, _CHUNK // self.columns)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            bits = np.unpackbits(packed[part], axis=1)[:, : self.columns]
            np.add.at(cells[:, 1:], rows[part], bits.astype(np.int64))
        return cells.reshape(-1)

    def cells(self, tally: Array, n: int, np: Numpy) -> Array:
        """Debias the ones of every column by the reports of the row."""
        table = tally.reshape(self.rows, -1)
        reports = table[:, :1]
        if tally.min() < 0 or (table > np.clip(reports, 0, n)).any() or int(reports.sum()) != n:
            raise InvalidTallyError(f"tally: must be the rows and bits of n={n} reports")
        p, q = float(self.channel.p), float(self.channel.q)
        return (table[:, 1:] - q * reports) / (p - q)


MECHANISM: Final = CMS
