"""Laws of refolding: the archive gives the tallies of the store again, integer for integer."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from client_sdk.core.epoch import DAY, day_of, epoch_of, epoch_start
from collector.cli import main
from collector.core.cells import BEYOND, Cell, ends
from collector.core.config import STANDARD, VOLATILE, Config
from collector.core.errors import ArchiveError
from collector.demo.embedded import EmbeddedStore
from collector.storage.connect import connect
from collector.storage.connection import Connection
from collector.storage.documents import ExclusionStore
from collector.storage.hashes import RedisHashes
from collector.storage.keys import Keys
from collector.storage.preparation import generation_of
from collector.storage.redis import RedisStorage
from collector.storage.values import ArchiveProgress
from collector.worker.archive.dask import refold
from collector.worker.archive.drain import drain
from collector.worker.archive.files import Folder, encode_rows
from collector.worker.archive.refold import Scope, restore, scope_of, tallies_of
from collector.worker.fsck import fsck
from tests.support.crowds.uploads import TODAY, registry_text
from tests.support.patience import PATIENCE
from tests.support.store.archive_killing import UPLOADS
from tests.support.store.archives import METRICS, OPTED_IN, PAGE, Desk, in_this_process
from tests.support.store.servers import SHARDS, needs_real, own_keys, profile_of

KILLS = 12
_ADD_ONE = ("INCRBY", "i64", "#1", 1)


@pytest.fixture
def desk(server: Connection, keys: Keys, server_kind: str, store: object, tmp_path: Path) -> Desk:
    """A store with an archive of several files."""
    made = Desk(server, keys, profile_of(server_kind), tmp_path / "archive")
    made.upload(random.Random(1), 60)
    made.work()
    made.drain(size=1)
    return made


@pytest.fixture
def killed(real_store: EmbeddedStore, tmp_path: Path) -> Desk:
    """A store whose workers and drains were killed many times while uploads came in."""
    keys = own_keys()
    connection = Connection.open(real_store.url)
    RedisStorage(connection, keys).prepare()
    path = tmp_path / "archive"
    words = ["-m", "tests.support.store.archive_killing", real_store.url, keys.prefix, str(path)]
    subprocess.run([sys.executable, *words, str(KILLS)], check=True, timeout=PATIENCE)
    return Desk(connection, keys, STANDARD, path)


def settings(desk: Desk, url: str, prefix: str, folder: Path) -> dict[str, str]:
    registry = folder / "metrics.toml"
    registry.write_text(registry_text(), encoding="utf-8")
    return {
        "HEARSAY_REGISTRY": str(registry),
        "HEARSAY_PREFIX": prefix,
        "HEARSAY_SHARDS": str(SHARDS),
        "HEARSAY_ARCHIVE": str(desk.path),
        "HEARSAY_PROFILE": VOLATILE,  # nothing to wait for
        "REDIS_URL": url,
    }


@needs_real
@pytest.mark.real
def test_an_archive_equals_the_tallies_whoever_was_killed_when(killed: Desk) -> None:
    """Workers and drains die at any moment; each acknowledged report is in both, once."""
    found = killed.compare(lambda files, held: refold(files, held, None, 2))

    reports = sum(one.archived for one in killed.queue.archiving())
    assert reports == 3 * UPLOADS * KILLS
    assert found.differences == ()
    assert (found.left_out, found.unarchived) == (0, 0)
    assert found.compared > 10
    killed.storage.destroy()


def test_the_engine_gives_what_one_process_gives(desk: Desk) -> None:
    """In whatever order and tree it adds."""
    files = [file.path for file in Folder(desk.path).files()]
    mechanisms = {digest: metric.mechanism for digest, metric in METRICS.items()}

    assert len(files) > 8
    assert refold(files, mechanisms, None, 2) == in_this_process(files, mechanisms)


_BOUND: Final = """
import sys
from pathlib import Path
ports = []
sys.addaudithook(lambda event, arguments: event == "socket.bind" and ports.append(arguments[1]))
from collector.worker.archive.dask import refold
{control}
tallies = refold([Path(name) for name in sys.argv[1:]], {{}}, None, 2)
print(tallies, len(ports))
"""
_CLUSTER: Final = """
from distributed import LocalCluster
LocalCluster(n_workers=1, processes=False, protocol="inproc://", dashboard_address=None).close()
"""


@pytest.mark.parametrize(("control", "is_quiet"), [("", True), (_CLUSTER, False)])
def test_a_refold_on_threads_opens_no_port(desk: Desk, control: str, is_quiet: bool) -> None:
    """A local cluster listens on all interfaces, whatever it is told, and shows what it does."""
    files = [str(file.path) for file in Folder(desk.path).files()]
    command = [sys.executable, "-W", "ignore", "-c", _BOUND.format(control=control), *files]

    done = subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True, text=True)

    tallies, ports = done.stdout.split()
    assert tallies == "{}"
    assert (ports == "0") is is_quiet


def test_a_damaged_file_is_named_by_the_engine(desk: Desk) -> None:
    """Not by a traceback of another process."""
    files = [file.path for file in Folder(desk.path).files()]
    files[3].write_bytes(b"PAR1")

    with pytest.raises(ArchiveError, match=files[3].name):
        refold(files, {}, None, 1)


def test_a_lost_store_is_restored_into_its_successor_once(
    desk: Desk,
) -> None:
    """Beside what the successor has folded meanwhile, under counts that still add up."""
    archived = tallies_of(Folder(desk.path), METRICS, in_this_process)
    desk.plain.destroy()
    desk.plain.prepare()
    desk.storage.prepare()  # as a process that is started again
    desk.upload(random.Random(2), 10)
    desk.work(desk.plain)

    before = str(generation_of(desk.server, desk.keys))
    records = ExclusionStore(RedisHashes(desk.server, desk.keys.prefix))
    first = restore(desk.queue, records, Folder(desk.path), METRICS, in_this_process)
    assert (
        str(generation_of(desk.server, desk.keys)) != before
    )  # so no answer from before is given again
    again = restore(desk.queue, records, Folder(desk.path), METRICS, in_this_process)

    assert (first, again) == ((len(archived), 0, 0, 0), (0, len(archived), 0, 0))
    assert sum(one.folded.reports for one in desk.storage.counters()) == 3 * 70
    assert list(fsck(desk.inspection, METRICS)) == []


@pytest.mark.parametrize("name", ["its own", "edited"])
def test_a_store_that_is_alive_is_not_restored(desk: Desk, name: str) -> None:
    """Everything in it would be counted twice; its folds are known, whatever the folder's name."""
    records = ExclusionStore(RedisHashes(desk.server, desk.keys.prefix))
    manifest = desk.path / "archive.json"
    if name == "edited":
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"name": "0" * 16}))
    desk.storage.prepare()  # as hearsay init, which may run at any time

    with pytest.raises(ArchiveError, match="has counted these reports"):
        restore(desk.queue, records, Folder(desk.path), METRICS, in_this_process)

    assert sum(one.folded.reports for one in desk.storage.counters()) == 3 * 60


def test_a_successor_that_has_an_archive_of_its_own_takes_over_the_lost_one(
    desk: Desk, tmp_path: Path
) -> None:
    """The folds of two stores never have the same numbers."""
    desk.plain.destroy()
    desk.plain.prepare()
    desk.storage.prepare()
    desk.upload(random.Random(2), 10)
    desk.work()
    mechanisms = {digest: metric.mechanism for digest, metric in METRICS.items()}
    assert drain(desk.queue, Folder(tmp_path / "new"), mechanisms, lambda: None)

    records = ExclusionStore(RedisHashes(desk.server, desk.keys.prefix))
    done = restore(desk.queue, records, Folder(desk.path), METRICS, in_this_process)

    assert done.added > 0
    assert sum(one.folded.reports for one in desk.storage.counters()) == 3 * 70


def test_a_cell_is_judged_only_if_the_archive_must_hold_all_of_it() -> None:
    """By the days on which its first and its last fold can be; `once` has no such days."""
    late = Cell(PAGE.digest, TODAY, "", 1)
    first_day, end = TODAY + 2, ends("1d", TODAY)[1] // DAY

    assert Scope(None, None).holds(Cell(OPTED_IN.digest, 0, ""), "once")
    assert not Scope(0, None).holds(Cell(OPTED_IN.digest, 0, ""), "once")
    assert Scope(first_day, end).holds(late, "1d")
    assert not Scope(first_day + 1, None).holds(late, "1d")
    assert not Scope(None, end - 1).holds(late, "1d")
    month = epoch_of("28d", TODAY * DAY)  # its folds begin with it, and end two weeks after it
    assert Scope(day_of(epoch_start("28d", month)) - 1, None).holds(Cell(b"m", month, ""), "28d")
    assert not Scope(day_of(epoch_start("28d", month)), None).holds(Cell(b"m", month, ""), "28d")
    assert not Scope(None, end + 99).holds(Cell(PAGE.digest, TODAY, "", BEYOND), "1d")


def test_the_scope_is_everything_only_where_all_was_archived_and_nothing_moves() -> None:
    """Else it begins after what is missing, and ends before what moves."""
    still, waiting, partly = (
        [ArchiveProgress(9, 9, 0, None)],
        [ArchiveProgress(9, 9, 2, 5)],
        [ArchiveProgress(9, 4, 0, None)],
    )

    assert scope_of(still, still, None, None, 20) == Scope(None, None)
    assert scope_of(waiting, still, None, None, 20) == Scope(None, 5)
    assert scope_of(still, [ArchiveProgress(10, 10, 1, 20)], None, None, 20) == Scope(None, 20)
    assert scope_of(partly, partly, None, None, 20) == Scope(21, None)
    assert scope_of(partly, partly, 7, None, 20) == Scope(21, None)
    assert scope_of(partly, partly, 7, 3, 20) == Scope(8, None)
    assert scope_of(still, still, 7, None, 20) == Scope(8, None)


def test_without_the_extra_the_commands_say_what_to_install() -> None:
    """No traceback, and nothing else of the command line needs it."""
    without = "import sys; sys.modules['pyarrow'] = None"
    program = f"{without}; from collector.cli import main; main(['refold'])"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert done.stderr == "Error: pyarrow=missing: needs pip install 'hearsay-collector[archive]'\n"


@needs_real
@pytest.mark.real
def test_the_commands_archive_compare_print_and_prune(
    real_store: EmbeddedStore, tmp_path: Path
) -> None:
    """With exit status 1 and the cell as soon as the two differ."""
    keys = own_keys()
    connection = Connection.open(real_store.url)
    desk = Desk(connection, keys, STANDARD, tmp_path / "archive")
    desk.storage.prepare()
    environment = settings(desk, real_store.url, keys.prefix, tmp_path)
    desk.upload(random.Random(3), 30)
    desk.work(connect(Config.from_env(environment)))

    def hearsay(*arguments: str) -> Result:
        return CliRunner().invoke(main, arguments, env=environment)

    written, equal = hearsay("archive"), hearsay("refold", "--threads", "1")
    rows = [json.loads(line) for line in hearsay("refold", "--print").output.splitlines()]
    connection.call("BITFIELD", keys.tally(0, Cell(OPTED_IN.digest, 0, "")), *_ADD_ONE)
    differs, refused = hearsay("refold"), hearsay("refold", "--restore")
    elsewhere = hearsay("refold", "--scheduler", "nowhere://x")
    pruned = hearsay("archive", "prune", "--days", "0")
    foreign = encode_rows(0, {Cell(PAGE.digest, TODAY, "", lateness=77): b"\0"})
    Folder(desk.path).commit(TODAY, 0, 90, 90, foreign)
    another_form = hearsay("refold", "--threads", "1")
    desk.storage.destroy()
    connection.close()

    assert written.output == "2 files written, 0 deleted\n"
    assert (equal.exit_code, equal.output.split(" cells")[0]) == (0, str(len(rows)))
    assert sum(row["n"] for row in rows) == 90
    assert differs.exit_code == refused.exit_code == 1
    assert "shard=0 metric=opted_in" in differs.output
    assert "differences: 1" in differs.output
    assert pruned.output == "0 files deleted\n"
    assert another_form.exit_code == 1
    assert "must have lateness 0 to 4" in another_form.output
    assert elsewhere.exit_code == 1
    assert "--scheduler=nowhere://x: must be a Dask scheduler" in elsewhere.output
