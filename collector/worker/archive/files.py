"""The folder of an archive: its files, their folds, and the lock of its writer.

A file is Parquet: one row a cell, its payloads end to end.  Next to the files is what operators
have taken out of answers, so that a store that is restored answers as the lost one did.
"""

from __future__ import annotations

import io
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from client_sdk.core.limits import DIGEST_SIZE

from ...core.cells import BEYOND, Cell
from ...core.entry import AcceptedColumn
from ...core.errors import ArchiveError, StorageUnavailableError
from ...core.exclusions import Exclusion, in_order, latest, read_all

VERSION: Final = 1  # of the folder's form; a file that is read by other rules gets another
_MANIFEST: Final = "archive.json"
_EXCLUSIONS: Final = "exclusions.json"
_LOCK: Final = "lock"
_NEW: Final = ".new"  # ends the name of a file that is not whole yet
_FILE: Final = re.compile(r"folded=(\d{4}-\d{2}-\d{2})/(\d+)-(\d+)-(\d+)\.parquet")
_NAME_SIZE: Final = 16  # bytes of chance in an archive's name
_EPOCH_DAY: Final = date(1970, 1, 1)
_COLUMNS: Final[tuple[tuple[str, Any], ...]] = (
    ("metric", pa.binary(DIGEST_SIZE)),
    ("epoch", pa.int64()),
    ("segment", pa.string()),
    ("lateness", pa.int8()),
    ("shard", pa.int32()),
    ("payloads", pa.large_binary()),
)
SCHEMA: Final = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _COLUMNS])


class _Manifest(msgspec.Struct, omit_defaults=True):
    """What the folder says of itself."""

    v: int
    name: str  # by chance
    pruned: int | None = None  # last epoch day whose folds were deleted


class File(NamedTuple):
    """A file of folds *first* to *last* of one shard and day."""

    path: Path
    day: int  # epoch day
    shard: int
    first: int
    last: int


class Folder:
    """An archive, on a file system with atomic renames and with locks."""

    def __init__(self, path: Path) -> None:
        """Open the archive in *path*; an empty folder becomes one.

        Raises: ArchiveError: the folder holds something else, or cannot be used.
        """
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._is_new():
                with self.locked():
                    if self._is_new():
                        name = secrets.token_hex(_NAME_SIZE)
                        self._write_manifest(_Manifest(VERSION, name))
        except OSError as error:
            raise ArchiveError(f"archive={path}: {error.strerror}") from error
        self._manifest()

    @property
    def name(self) -> str:
        """The random name by which a store knows its archive."""
        return self._manifest().name

    @property
    def pruned(self) -> int | None:
        """The last epoch day of folds that were pruned; None if none were."""
        return self._manifest().pruned

    def files(self) -> list[File]:
        """Return the files, by day, shard and fold.  Raises ArchiveError: a day is none."""
        matches = (
            (match, path)
            for path in self.path.glob("folded=*/*.parquet")
            if (match := _FILE.fullmatch(path.relative_to(self.path).as_posix()))
        )
        try:
            files = [
                File(
                    path,
                    (date.fromisoformat(match[1]) - _EPOCH_DAY).days,
                    *map(int, match.groups()[1:]),
                )
                for match, path in matches
            ]
        except ValueError as error:
            raise ArchiveError(f"archive={self.path}: must have folders of days") from error
        return sorted(files, key=lambda file: file[1:])

    def mark(self, shard: int) -> int:
        """Return the number of the last fold of *shard* that is in a file, 0 without files."""
        return max((file.last for file in self.files() if file.shard == shard), default=0)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the archive for writing.  Raises ArchiveError: another process has the lock."""
        import fcntl  # not on Windows, where no collector runs

        with (self.path / _LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise ArchiveError(f"archive={self.path}: another process writes to it") from error
            for path in self.path.glob(f"*/*{_NEW}"):
                path.unlink()  # left by a process that died
            yield

    def commit(self, day: int, shard: int, first: int, last: int, data: bytes) -> Path:
        """Make *data* the file of these folds: durable, and whole or not at all."""
        folder = self.path / f"folded={date.fromordinal(_EPOCH_DAY.toordinal() + day)}"
        if not folder.exists():
            folder.mkdir(mode=0o700)
            _sync(self.path)
        path = folder / f"{shard}-{first}-{last}.parquet"
        _write(path, data)
        return path

    def exclusions(self) -> list[Exclusion]:
        """Return what was taken out of answers, in the order in which that was done.

        Raises: ArchiveError: the file is damaged, or a newer release wrote it.
        """
        path = self.path / _EXCLUSIONS
        try:
            records = msgspec.json.decode(path.read_bytes(), type=list[msgspec.Raw])
            return read_all({str(place): bytes(record) for place, record in enumerate(records)})
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError, RecursionError, StorageUnavailableError) as error:
            rule = "cannot be read; perhaps a newer release wrote it: start that release"
            raise ArchiveError(f"archive.file={path}: {rule}") from error

    def keep_exclusions(self, exclusions: Sequence[Exclusion]) -> None:
        """Add *exclusions* to the kept ones; none is ever deleted here."""
        before = self.exclusions()
        known = {each.id: each for each in before}
        for exclusion in exclusions:
            known[exclusion.id] = latest(known.get(exclusion.id), exclusion)
        merged = in_order(known.values())
        if merged != before:
            text = msgspec.json.format(msgspec.json.encode(merged))
            _write(self.path / _EXCLUSIONS, text + b"\n")

    def prune(self, before: int) -> int:
        """Delete what was folded before epoch day *before*; return the number of files."""
        old = [file for file in self.files() if file.day < before]
        if old:  # said first: a refold must not expect what is about to go
            pruned = max(file.day for file in old)
            manifest = self._manifest()
            last = max(pruned, manifest.pruned or 0)
            self._write_manifest(msgspec.structs.replace(manifest, pruned=last))
        for file in old:
            file.path.unlink()
            if not any(file.path.parent.iterdir()):
                file.path.parent.rmdir()
        return len(old)

    def _is_new(self) -> bool:
        """Return whether nothing is here but what we leave when we die in the very first step."""
        return {path.name for path in self.path.iterdir()} <= {_LOCK, _MANIFEST + _NEW}

    def _manifest(self) -> _Manifest:
        try:
            text = (self.path / _MANIFEST).read_bytes()
            manifest = msgspec.json.decode(text, type=_Manifest)
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            rule = f"must be empty, or an archive with {_MANIFEST}"
            raise ArchiveError(f"archive={self.path}: {rule}") from error
        if manifest.v != VERSION:
            raise ArchiveError(f"archive={self.path}: must have version {VERSION}")
        return manifest

    def _write_manifest(self, manifest: _Manifest) -> None:
        _write(self.path / _MANIFEST, msgspec.json.encode(manifest))


def _write(path: Path, data: bytes) -> None:
    """Write *data* to a temporary file, sync it, and rename it to *path*."""
    new = path.with_name(path.name + _NEW)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


def read_rows(path: Path) -> Iterator[tuple[int, AcceptedColumn]]:
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
                if not 0 <= cell.lateness <= BEYOND:
                    raise ArchiveError(f"archive.file={path}: must have lateness 0 to {BEYOND}")
                yield row["shard"], AcceptedColumn(cell, row["payloads"])
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise ArchiveError(f"archive.file={path}: cannot be read") from error
