"""A disk that is full, read only or failing: no report without its charge, and nothing raises."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from client_sdk.client import Client
from client_sdk.storage.database import RESERVE_SIZE
from client_sdk.storage.schema import RESERVE_FILE
from tests.support.device.clock import FakeClock
from tests.support.device.device import changed, make_client, metric_text, registry_of, rows
from tests.support.device.device_transport import ScriptedTransport
from tests.support.device.small_disk import fill, remount, small_disk
from tests.support.patience import PATIENCE

METRICS = 400
KIND = 'type = "boolean"\nmechanism = "grr"'  # the choice of 400 mechanisms would take a while
REGISTRY = registry_of(*(metric_text(f"m{i}", KIND, epsilon="0.001") for i in range(METRICS)))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as folder:
        yield folder


def client_on(disk: Path, transport: ScriptedTransport | None = None) -> Client:
    clock = FakeClock()
    return make_client(
        disk / "data", registry=REGISTRY, transport=transport, clock=clock, mode="manual"
    )


def record_until_refused(client: Client, first: int = 0) -> int:
    """Record one metric after the other until the store fails; return the next one's number."""
    for number in range(first, METRICS):
        client.record(f"m{number}", True)
        if client.stats()["store"]:
            return number + 1
    pytest.fail("the disk was never full")


def counted(disk: Path) -> tuple[int, int]:
    """Return how many charges and how many waiting reports there are."""
    [(charges,)] = rows(disk / "data", "SELECT count(*) FROM charges")
    [(reports,)] = rows(disk / "data", "SELECT count(*) FROM reports")
    return charges, reports


def test_on_a_full_disk_nothing_is_reported_without_its_charge(disk: Path) -> None:
    """Law: what is refused for want of room is counted, and left neither charge nor report."""
    client = client_on(disk)
    client.record("m0", True)
    fill(disk)

    record_until_refused(client, first=1)

    assert counted(disk) == (client.stats()["recorded"],) * 2
    assert client.stats()["store"] == 1


def test_on_a_full_disk_what_waits_still_leaves(disk: Path) -> None:
    """Law: the reserve file makes the room that sending and deleting need."""
    client = client_on(disk, transport := ScriptedTransport())
    client.record("m0", True)
    fill(disk)
    record_until_refused(client, first=1)

    client.flush()

    assert client.stats()["uploaded"] == client.stats()["recorded"] > 0
    assert (counted(disk)[1], len(transport.sent)) == (0, 1)


def test_without_the_reserve_file_a_full_disk_keeps_all_that_waits(disk: Path) -> None:
    """Control: with the reserve file taken away first, the same flush deletes nothing."""
    client = client_on(disk)
    client.record("m0", True)
    (disk / "data" / RESERVE_FILE).unlink()
    fill(disk)
    client.record("m1", True)

    client.flush()

    assert client.stats()["store"] == 2
    assert counted(disk)[1] == 1


def test_a_denial_is_obeyed_on_a_full_disk(disk: Path) -> None:
    """Law: a user who withdraws is not told to make room first."""
    client = client_on(disk)
    client.record("m0", True)
    fill(disk)
    record_until_refused(client, first=1)

    client.set_consent("denied")

    assert client.stats()["revoked"] == client.stats()["recorded"] > 0
    assert counted(disk)[1] == 0


def test_when_there_is_room_again_reserve_file_and_reports_come_back(disk: Path) -> None:
    """Law: after a full disk everything is as before."""
    client = client_on(disk)
    client.record("m0", True)
    filler = fill(disk)
    following = record_until_refused(client, first=1)
    client.record(f"m{following}", True)
    refused, recorded = client.stats()["store"], client.stats()["recorded"]

    filler.unlink()
    client.record(f"m{following}", True)

    assert refused == 2
    assert client.stats()["recorded"] == recorded + 1
    assert (disk / "data" / RESERVE_FILE).stat().st_size == RESERVE_SIZE


def test_a_disk_without_room_for_a_reserve_file_takes_no_report(disk: Path) -> None:
    """Law: there is never a report that could not be deleted again."""
    filler = fill(disk)
    filler.write_bytes(bytes(700 * 1024))
    client = client_on(disk)

    client.record("m0", True)

    assert changed(client) == {"store": 1}


def test_a_read_only_disk_is_counted_and_harms_nothing(disk: Path) -> None:
    """Law: nothing is reported while nothing can be charged; afterwards all goes on."""
    client = client_on(disk)
    client.record("m0", True)
    client.close()
    remount(disk, "ro")
    hindered = client_on(disk)
    hindered.record("m1", True)
    hindered.flush()
    remount(disk, "rw")

    hindered.record("m1", True)

    assert hindered.stats()["recorded"] == 1
    assert hindered.stats()["store"] == 2
    assert counted(disk)[0] == 2


CHILD = """
import resource, sys
from pathlib import Path
from tests.support.device.device import changed, make_client, metric_text, registry_of

registry = registry_of(*map(metric_text, ("m0", "m1", "m2")))
client = make_client(Path(sys.argv[1]), registry=registry, mode="manual")
client.record("m0", True)
written = (Path(sys.argv[1]) / "hearsay.sqlite3-wal").stat().st_size
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (written, hard))  # the next page is an I/O error
client.record("m1", True)
client.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
client.record("m2", True)
print(changed(client))
"""


def test_an_error_of_the_disk_is_counted_and_harms_nothing(tmp_path: Path) -> None:
    """Law: a write that fails leaves neither charge nor report, and does not raise."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, tmp_path], capture_output=True, text=True, timeout=PATIENCE
    )

    [(charges,)] = rows(tmp_path, "SELECT count(*) FROM charges")
    assert (done.stdout, done.stderr) == ("{'recorded': 2, 'store': 2}\n", "")
    assert charges == 2
