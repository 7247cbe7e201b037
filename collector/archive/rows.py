"""Rows of the archive as Parquet: one a cell and file, its payloads end to end."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from client_sdk.core.limits import DIGEST_SIZE

from ..core.cells import Cell
from ..core.entry import Accepted
from ..core.errors import ArchiveError

_COLUMNS: Final[tuple[tuple[str, Any], ...]] = (
    ("metric", pa.binary(DIGEST_SIZE)),
    ("epoch", pa.int64()),
    ("segment", pa.string()),
    ("lateness", pa.int8()),
    ("shard", pa.int32()),
    ("payloads", pa.large_binary()),
)
SCHEMA: Final = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _COLUMNS])


def encode_rows(shard: int, payloads: Mapping[Cell, bytes]) -> bytes:
    """Return a Parquet file of a row a cell, in the order of the cells."""
    cells = sorted(payloads)
    columns = {
        "metric": [cell.metric for cell in cells],
        "epoch": [cell.epoch for cell in cells],
        "segment": [cell.segment for cell in cells],
        "lateness": [cell.lateness for cell in cells],
        "shard": [shard] * len(cells),
        "payloads": [payloads[cell] for cell in cells],
    }
    sink = io.BytesIO()
    # The page's checksum: a flipped bit inside a payload would otherwise be counted.
    pq.write_table(
        pa.table(columns, schema=SCHEMA),
        sink,
        compression="zstd",
        use_dictionary=False,
        write_statistics=["metric", "epoch"],
        write_page_checksum=True,
    )
    return sink.getvalue()


def read_rows(path: Path) -> Iterator[tuple[int, Accepted]]:
    """Yield shard, cell and payloads of each row.

    Raises: ArchiveError: the file is damaged, or of another form.
    """
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        if not file.schema_arrow.equals(SCHEMA):
            raise ArchiveError(f"archive.file={path}: must have the columns of an archive")
        for group in range(file.num_row_groups):
            for row in file.read_row_group(group).to_pylist():
                cell = Cell(row["metric"], row["epoch"], row["segment"], row["lateness"])
                yield row["shard"], Accepted(cell, row["payloads"])
    except (OSError, pa.ArrowException) as error:
        raise ArchiveError(f"archive.file={path}: cannot be read") from error
