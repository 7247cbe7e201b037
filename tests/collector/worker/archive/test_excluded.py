"""What is excluded is as if it had never been sent: through store, archive, refold and restore."""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from msgspec import structs

from collector.core.catalog import Catalog
from collector.core.cells import Cell, key_in, key_source, segment_text, split_source
from collector.core.entry import AcceptedColumn, encode
from collector.core.errors import ArchiveError, StorageUnavailableError
from collector.core.exclusions import Exclusion, Inclusion, read_all, to_json
from collector.query import plan, read
from collector.query.reading import slices_of, without_pruned
from collector.storage.connection import Connection
from collector.storage.documents import ExclusionStore
from collector.storage.hashes import RedisHashes
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from collector.worker.archive.files import Folder
from collector.worker.archive.refold import Restored, restore
from tests.support.crowds.uploads import registry
from tests.support.store.archives import METRICS, PAGE, SEALED, Desk, in_this_process
from tests.support.store.servers import own_keys, profile_of

CATALOG: Final = Catalog([registry()])
BAD, GOOD = "badbadbadbad", "goodgoodgood"
NOW: Final = time.time()
DAYS: Final = (int(NOW) // 86_400 - 1, int(NOW) // 86_400)  # by the store's own clock
PLATFORMS: Final[tuple[dict[str, str], ...]] = ({"platform": "mac"}, {"platform": "linux"})
SMALL, LARGE = 20_000, 1_000_000  # reports


class Fleet(NamedTuple):
    """Uploads of gateways, and which of them were never sent in the world without the bad key."""

    uploads: list[AcceptedColumn]

    @classmethod
    def of(cls, reports: int) -> Fleet:
        chance = random.Random(1)
        size = min(reports // 40, 5_000)
        return cls([
            AcceptedColumn(
                Cell(PAGE.digest, day, segment_text(PAGE, platform, key_source(key))),
                bytes(chance.choices(range(3), k=size)),
            )
            for place in range(reports // size)
            for key in [(BAD, GOOD)[place % 2]]
            for day in [DAYS[place // 2 % 2]]
            for platform in [PLATFORMS[place // 4 % 2]]
        ])  # fmt: skip

    def without(self, key: str, day: int) -> list[AcceptedColumn]:
        return [
            column
            for column in self.uploads
            if (column.cell.epoch, key_in(split_source(column.cell.segment)[0])) != (day, key)
        ]


def send(storage: RedisStorage, columns: Iterable[AcceptedColumn]) -> None:
    sealed = [
        SealedUpload(secrets.token_bytes(16), SEALED, encode([c]), len(c.payloads)) for c in columns
    ]
    for first in range(0, len(sealed), 50):
        storage.append_many(sealed[first : first + 50])


def integers(storage: RedisStorage, **fields: Any) -> list[Any]:
    ends = [(date(1970, 1, 1) + timedelta(days=day)).isoformat() for day in DAYS]
    query = {"metrics": ["page"], "date_range": ends, **fields}
    made = without_pruned(plan(read(json.dumps(query).encode()), CATALOG, NOW), storage)
    return [
        (dict(part.dimensions), part.n, part.tally.tolist(), dict(part.reports))
        for part in slices_of(made, made.readings[0], PAGE, storage)
    ]


def exclude(server: Connection, keys: Keys) -> None:
    day = (date(1970, 1, 1) + timedelta(days=DAYS[0])).isoformat()
    exclusion = Exclusion(
        id="5f0a91c2", by="key", name=BAD, first=day, last=day, author="ada", because="why", at=1
    )
    records = ExclusionStore(RedisHashes(server, keys.prefix))
    assert records.put(exclusion.id, to_json(exclusion))
    assert records.put(exclusion.id, to_json(exclusion))  # a command may be repeated
    assert not records.put(exclusion.id, b"{}")


def everything(storage: RedisStorage) -> list[Any]:
    return [integers(storage), integers(storage, dimensions=["time", "platform"])]


@pytest.fixture
def make(
    server: Connection, server_kind: str, store: object, tmp_path: Path
) -> Iterable[Callable[[], Desk]]:
    """Make deployments of their own on the same server."""
    desks: list[Desk] = []

    def made() -> Desk:
        keys = own_keys()
        RedisStorage(server, keys, profile_of(server_kind)).prepare()
        desks.append(Desk(server, keys, profile_of(server_kind), tmp_path / keys.prefix))
        return desks[-1]

    yield made
    for desk in desks:
        desk.storage.destroy()


@pytest.mark.parametrize("reports", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)])
def test_excluded_is_never_sent_in_store_archive_refold_and_restore(
    make: Callable[[], Desk], reports: int
) -> None:
    fleet = Fleet.of(reports)
    bad, clean = make(), make()
    send(bad.storage, fleet.uploads)
    send(clean.storage, fleet.without(BAD, DAYS[0]))
    for desk in (bad, clean):
        desk.work()
    bad.drain()
    assert everything(bad.plain) != everything(clean.plain)
    exclude(bad.server, bad.keys)
    bad.drain()

    assert everything(bad.plain) == everything(clean.plain)
    assert bad.compare().differences == ()  # an archive holds what was folded, excluded or not

    everywhere, records = everything(bad.plain), bad.queue.exclusions()
    lose(bad)
    restored = take_over(bad)
    assert restored.added
    assert restored.exclusions == 1
    assert bad.queue.exclusions() == records  # author, reason and days
    assert everything(bad.plain) == everywhere
    assert take_over(bad) == (0, restored.added, 0, 0)


def test_an_archive_that_forgets_exclusions_is_caught(make: Callable[[], Desk]) -> None:
    """The control: a folder of a release before exclusions were kept in it."""
    fleet, desk = Fleet.of(SMALL), make()
    send(desk.storage, fleet.uploads)
    desk.work()
    exclude(desk.server, desk.keys)
    desk.drain()
    everywhere = everything(desk.plain)
    (desk.path / "exclusions.json").unlink()

    lose(desk)

    assert take_over(desk).exclusions == 0
    assert everything(desk.plain) != everywhere


@pytest.mark.parametrize("is_later", [False, True], ids=["archive is later", "store is later"])
def test_what_was_taken_back_stays_so_whoever_knows_it(
    make: Callable[[], Desk], is_later: bool
) -> None:
    desk = make()
    exclude(desk.server, desk.keys)
    (record,) = desk.queue.exclusions().values()
    back = to_json(structs.replace(record_of(record), included=Inclusion("bob", "right", 2)))
    records = ExclusionStore(RedisHashes(desk.server, desk.keys.prefix))
    if is_later:
        desk.drain()
        assert records.put("5f0a91c2", back, record)
    else:
        assert records.put("5f0a91c2", back, record)
        desk.drain()
        lose(desk)
        exclude(desk.server, desk.keys)
    if is_later:  # the archive is of another store now
        desk.server.call("DEL", desk.keys.archive_name)

    assert take_over(desk).exclusions == (not is_later)

    assert desk.queue.exclusions() == {"5f0a91c2": back}


def test_an_archive_forgets_no_exclusion_that_its_store_has_lost(make: Callable[[], Desk]) -> None:
    """As after a backup of before it was put back; and it names each with its author."""
    desk = make()
    exclude(desk.server, desk.keys)
    desk.drain()
    before = (desk.path / "exclusions.json").read_bytes()
    desk.server.call("DEL", desk.keys.exclusions)
    desk.drain()

    assert (desk.path / "exclusions.json").read_bytes() == before
    assert json.loads(before)[0]["author"] == "ada"


@pytest.mark.parametrize("text", ["{}", "[{}]", '[{"id": "x", "of": "a newer release"}]', "["])
def test_a_file_of_exclusions_that_cannot_be_read_restores_nothing(
    make: Callable[[], Desk], text: str
) -> None:
    """Else reports would come back into answers without anybody being told."""
    desk = make()
    send(desk.storage, Fleet.of(2_000).uploads)
    desk.work()
    desk.drain()
    lose(desk)
    (desk.path / "exclusions.json").write_text(text)

    with pytest.raises(ArchiveError, match=r"exclusions\.json: cannot be read; perhaps"):
        take_over(desk)

    assert sum(one.folded.reports for one in desk.plain.counters()) == 0


def test_exclusions_that_cannot_be_read_stop_no_fold_from_being_archived(
    make: Callable[[], Desk],
) -> None:
    desk = make()
    send(desk.storage, Fleet.of(2_000).uploads)
    desk.work()
    assert desk.server.call("HSET", desk.keys.exclusions, "x", b"{}")

    with pytest.raises(StorageUnavailableError, match="an exclusion cannot be read"):
        desk.drain()

    assert Folder(desk.path).files()
    assert not any(progress.waiting for progress in desk.queue.archiving())


def lose(desk: Desk) -> None:
    """Empty the store, and prepare its successor."""
    desk.plain.destroy()
    desk.plain.prepare()
    desk.storage.prepare()  # as a process that is started again


def take_over(desk: Desk) -> Restored:
    records = ExclusionStore(RedisHashes(desk.server, desk.keys.prefix))
    return restore(desk.queue, records, Folder(desk.path), METRICS, in_this_process)


def record_of(record: bytes) -> Exclusion:
    (exclusion,) = read_all({"": record})
    return exclusion
