"""Laws of the archive: a row is in a file or in the store if and only if its fold happened."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.core.cells import BEYOND, Cell
from collector.core.errors import ArchiveError, StorageUnavailableError
from collector.estimation.tally import reports_of
from collector.storage.archive_queue import RedisArchiveQueue
from collector.storage.connection import Connection
from collector.storage.documents import ExclusionStore
from collector.storage.hashes import RedisHashes
from collector.storage.keys import Keys
from collector.worker.archive import drain as draining
from collector.worker.archive.files import SCHEMA, Folder, encode_rows, read_rows
from collector.worker.archive.refold import restore, tallies_of
from tests.support.store.archives import MECHANISMS, METRICS, PAGE, Desk, in_this_process
from tests.support.store.servers import REAL, profile_of


@pytest.fixture
def desk(server: Connection, keys: Keys, server_kind: str, store: object, tmp_path: Path) -> Desk:
    """An empty store with an archive."""
    return Desk(server, keys, profile_of(server_kind), tmp_path / "archive")


class Killed(BaseException):
    """The end of a process."""


class Dying(RedisArchiveQueue):
    """A queue whose process is killed at some call of ``forget``, before or after it happened."""

    def __init__(self, server: Connection, keys: Keys, at: int, after: bool) -> None:
        super().__init__(server, keys)
        self._left, self._after = at, after

    def forget(self, shard: int, last: int) -> None:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise Killed
        super().forget(shard, last)
        if self._left == 0:
            raise Killed


def test_what_was_folded_is_in_the_archive_integer_for_integer(desk: Desk) -> None:
    """Over several drains and files, and whatever was folded late."""
    chance = random.Random(1)
    for _ in range(3):
        desk.upload(chance, 40)
        desk.work()
        assert desk.drain() > 0

    found = desk.compare()

    assert found.differences == ()
    assert (found.left_out, found.unarchived) == (0, 0)
    assert found.compared > 10
    assert desk.drain() == 0


@pytest.mark.parametrize("after", [False, True])
def test_a_drain_that_dies_anywhere_is_finished_by_the_next(
    desk: Desk, server: Connection, keys: Keys, after: bool
) -> None:
    """Nothing is lost and nothing is written twice: between the rename and the forgetting, too."""
    chance = random.Random(2)
    deaths = 0
    for at in count(1):
        desk.upload(chance, 12)
        desk.work()
        queue = Dying(server, keys, at, after)
        try:
            draining.drain(queue, Folder(desk.path), MECHANISMS, lambda: None, 200)
        except Killed:
            deaths += 1
        else:
            break
    desk.drain()

    assert deaths >= 4
    assert desk.compare().differences == ()
    assert all(one.waiting == 0 for one in desk.queue.archiving())


def test_an_empty_archive_holds_no_fold(tmp_path: Path) -> None:
    assert Folder(tmp_path / "new").mark(0) == 0


def test_a_drain_that_forgot_before_it_wrote_would_be_found_out(desk: Desk) -> None:
    """The planted bug: a process that dies between the two loses a file."""
    desk.upload(random.Random(3), 40)
    desk.work()
    desk.queue.forget(0, desk.queue.folds()[0].start + 1)
    desk.drain()

    assert desk.compare().differences != ()


def test_a_process_that_dies_while_it_writes_leaves_no_file(desk: Desk) -> None:
    """A file appears whole, by its rename; what was begun is removed."""
    desk.upload(random.Random(4), 20)
    desk.work()
    folder = Folder(desk.path)
    begun = desk.path / "folded=2026-03-04" / "0-1-9.parquet.new"
    begun.parent.mkdir()
    begun.write_bytes(b"PAR1")

    desk.drain()

    assert not begun.exists()
    assert all(pq.read_table(file.path).num_rows for file in folder.files())
    assert desk.compare().differences == ()


def test_a_store_that_is_away_costs_no_row(desk: Desk) -> None:
    """The next run writes what this one could not."""

    def fail() -> None:
        raise StorageUnavailableError("store: away")

    desk.upload(random.Random(5), 20)
    desk.work()
    with pytest.raises(StorageUnavailableError):
        draining.drain(desk.queue, Folder(desk.path), MECHANISMS, fail)

    desk.drain()

    assert desk.compare().differences == ()


def test_two_processes_never_write_to_one_archive(desk: Desk) -> None:
    """They would write the same folds."""
    folder = Folder(desk.path)

    with folder.locked(), pytest.raises(ArchiveError, match="another process writes"):
        desk.drain()


def test_a_store_never_goes_on_in_the_archive_of_another(desk: Desk, tmp_path: Path) -> None:
    """Its folds count from the beginning, so the files there would stand for them."""
    desk.upload(random.Random(6), 20)
    desk.work()
    desk.drain()
    desk.plain.destroy()
    desk.plain.prepare()
    desk.storage.prepare()  # as a process that is started again

    with pytest.raises(ArchiveError, match="this store began with"):
        desk.drain()
    desk.path = tmp_path / "new"
    desk.upload(random.Random(6), 20)
    desk.work()
    desk.drain()

    assert desk.compare().differences == ()


@pytest.mark.parametrize("server_kind", [REAL], indirect=True)
@pytest.mark.parametrize("inits", [0, 1, 3])
def test_an_archive_that_is_ahead_of_a_store_put_back_misses_no_fold_of_it(
    desk: Desk, inits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folds after the copy never have the numbers of those that only the archive knows.

    However often hearsay init has run since the copy, and though the copy is put back twice.
    """
    chance, now = random.Random(7), count(2_000_000_000, 3_600)
    monkeypatch.setattr("collector.storage.preparation.time.time", lambda: float(next(now)))

    def take(uploads: int) -> None:
        desk.upload(chance, uploads)
        desk.work()
        desk.drain()

    take(20)
    names = [*desk.server.call("KEYS", f"{desk.keys.prefix}:*")]
    copy = {name: desk.server.call("DUMP", name) for name in names}
    for _ in range(inits):
        desk.storage.prepare(renew=True)  # as hearsay init
    take(40)
    for _ in range(2):
        desk.server.call("DEL", *desk.server.call("KEYS", f"{desk.keys.prefix}:*"))
        for name, value in copy.items():
            desk.server.call("RESTORE", name, 0, value)
        desk.storage.prepare(renew=True)
        take(12)

    archived = tallies_of(Folder(desk.path), METRICS, in_this_process)
    assert sum(reports_of(vector) for vector in archived.values()) == 3 * (20 + 40 + 12 + 12)
    more = sum(each.archived - each.stored for each in desk.compare().differences)
    assert more == 3 * (40 + 12)
    records = ExclusionStore(RedisHashes(desk.server, desk.keys.prefix))
    with pytest.raises(ArchiveError, match="has counted these reports"):
        restore(desk.queue, records, Folder(desk.path), METRICS, in_this_process)


def test_a_fold_below_those_in_files_is_written_and_not_forgotten(desk: Desk) -> None:
    """As where a store went back, and nobody ran hearsay init."""
    chance = random.Random(8)
    for _ in range(2):
        desk.upload(chance, 20)
        desk.work()
        desk.drain()
    desk.upload(chance, 20)
    desk.work()
    Folder(desk.path).commit(20_000, 0, 1 << 70, 1 << 70, encode_rows(0, {}))

    desk.drain()

    assert desk.compare().differences == ()


def test_a_file_has_no_id_and_no_time_finer_than_a_day(desk: Desk) -> None:
    """Six columns; the day is in the folder's name, and payloads are in their own order."""
    desk.upload(random.Random(7), 60)
    desk.work()
    desk.drain(10**9)

    file = Folder(desk.path).files()[0]
    table = pq.ParquetFile(file.path).read()
    names = [field.name for field in SCHEMA]
    payloads = [row["payloads"] for row in table.to_pylist()]
    assert names == ["metric", "epoch", "segment", "lateness", "shard", "payloads"]
    assert table.schema.names == names
    assert payloads == [bytes(sorted(column)) for column in payloads]
    assert file.path.relative_to(desk.path).as_posix().startswith("folded=20")


def _without_a_row(path: Path) -> None:
    table = pq.ParquetFile(path).read()
    pq.write_table(table.slice(1), path)


def _with_another_payload(path: Path) -> None:
    rows = pq.ParquetFile(path).read().to_pylist()
    cells = {
        Cell(row["metric"], row["epoch"], row["segment"], row["lateness"]): row["payloads"]
        for row in rows
    }
    cell = next(cell for cell in cells if cell.metric == PAGE.digest)
    cells[cell] = bytes([(cells[cell][0] + 1) % 3]) + cells[cell][1:]
    path.write_bytes(encode_rows(rows[0]["shard"], cells))


@pytest.mark.parametrize("change", [_without_a_row, _with_another_payload, Path.unlink])
def test_a_row_that_is_changed_or_removed_is_noticed(
    desk: Desk, change: Callable[[Path], None]
) -> None:
    """Also where the number of reports stays the same."""
    desk.upload(random.Random(8), 40)
    desk.work()
    desk.drain()

    change(Folder(desk.path).files()[0].path)

    found = desk.compare().differences
    assert found
    assert all(str(one).startswith(f"shard={one.shard} metric=") for one in found)


def test_a_bit_that_flips_in_a_file_is_refused(desk: Desk) -> None:
    """Each page has a checksum."""
    desk.upload(random.Random(9), 40)
    desk.work()
    desk.drain(10**9)
    path = Folder(desk.path).files()[0].path
    data = bytearray(path.read_bytes())
    place = pq.ParquetFile(path).metadata.row_group(0).column(5).data_page_offset
    data[place + 40] ^= 1
    path.write_bytes(data)

    with pytest.raises(ArchiveError, match="cannot be read"):
        desk.compare()


def test_what_is_pruned_is_gone_and_not_missed(desk: Desk) -> None:
    """A refold expects only what was folded later."""
    desk.upload(random.Random(10), 20)
    desk.work()
    desk.drain()
    today = desk.storage.now(0) // 86_400
    folder = Folder(desk.path)

    kept, deleted = folder.prune(today), folder.prune(today + 2)

    assert (kept, folder.files()) == (0, [])
    assert deleted > 0
    assert list(desk.path.glob("folded=*")) == []
    found = desk.compare()
    assert (found.compared, found.differences) == (0, ())
    assert found.left_out > 0


def test_folds_without_an_archive_are_counted_and_not_missed(desk: Desk) -> None:
    """Nobody knows which cells they went to, unless somebody says since when there were none."""
    desk.upload(random.Random(11), 10)
    desk.work(desk.plain)
    desk.upload(random.Random(12), 10)
    desk.work()
    desk.drain()

    found, judged = desk.compare(), desk.compare(since=0)

    assert (found.compared, found.unarchived) == (0, 30)
    assert judged.differences != ()


def test_what_waits_in_the_store_is_not_missed(desk: Desk) -> None:
    """Cells that are still open are left out while folds wait."""
    desk.upload(random.Random(13), 20)
    desk.work()
    desk.drain()
    desk.upload(random.Random(14), 20)
    desk.work()

    found = desk.compare()

    assert found.differences == ()
    assert found.left_out > 0


def test_a_folder_whose_maker_died_at_once_is_made_again(tmp_path: Path) -> None:
    """What it left is no archive yet."""
    for name in ("lock", "archive.json.new"):
        (tmp_path / name).write_bytes(b"")

    assert Folder(tmp_path).name == Folder(tmp_path).name != ""


@pytest.mark.parametrize("name", ["notes.txt", "archive.json"])
def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path, name: str) -> None:
    """It might be somebody's home."""
    (tmp_path / name).write_text("[]", encoding="utf-8")

    with pytest.raises(ArchiveError, match="archive="):
        Folder(tmp_path)


@pytest.mark.parametrize(
    "manifest", [{"v": 1}, {"v": 1, "name": []}, {"v": 1, "name": "x", "pruned": "x"}, {"v": 2}]
)
def test_a_manifest_of_another_form_is_refused(tmp_path: Path, manifest: object) -> None:
    (tmp_path / "archive.json").write_text(json.dumps(manifest))

    with pytest.raises(ArchiveError, match="archive="):
        Folder(tmp_path)


@pytest.mark.parametrize("day", ["2026-13-01", "2026-02-30", "٢٠٢٦-٠١-٠١"])
def test_a_file_of_no_day_is_refused(tmp_path: Path, day: str) -> None:
    folder = Folder(tmp_path)
    (tmp_path / f"folded={day}").mkdir()
    (tmp_path / f"folded={day}" / "0-1-1.parquet").touch()

    with pytest.raises(ArchiveError, match="folders of days"):
        folder.files()


@pytest.mark.parametrize(
    ("segment", "lateness"),
    [(b"", BEYOND + 1), (b"", -1), (b"\xff", 0)],
)
def test_a_row_of_no_cell_is_refused(tmp_path: Path, segment: bytes, lateness: int) -> None:
    """Where the file is read: what is done with its rows later has faults of its own."""
    path = tmp_path / "0-1-1.parquet"
    path.write_bytes(encode_rows(0, {Cell(PAGE.digest, 0, "", lateness): b"\0"}))
    segments = pa.array([segment], pa.binary()).view(pa.string())  # of any bytes
    table = pq.ParquetFile(path).read()
    place = table.schema.get_field_index("segment")
    pq.write_table(table.set_column(place, SCHEMA.field("segment"), segments), path)

    with pytest.raises(ArchiveError, match=r"file=.*(lateness|read)"):
        list(read_rows(path))
