"""``hearsay prune`` as people run it, and what is answered afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import TypeAlias

import pytest
from click.testing import CliRunner, Result

from client_sdk.core.epoch import DAY, epoch_label, epoch_of
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.cli import main
from collector.core.cells import Cell
from collector.demo.embedded import EmbeddedStore
from collector.storage.connect import open_storage
from collector.storage.redis import RedisStorage
from tests.support.crowds.uploads import WRITE_KEY, registry, registry_text
from tests.support.device.device import metric_text
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import DAY as SEALED
from tests.support.store.stored import NOBODY_LEFT_IT, tallies

pytestmark = [pytest.mark.real, needs_real]

Run: TypeAlias = Callable[..., Result]

NOW = time.time()
PAGE, OPTED_IN, CRASHED = (registry().metric(name) for name in ("page", "opted_in", "crashed"))
RETIRED = b"\x09" * 6


def epoch(metric: Metric, days_ago: int) -> int:
    return epoch_of(metric.every, NOW - days_ago * DAY)


@pytest.fixture
def store(real_store: EmbeddedStore) -> Iterator[RedisStorage]:
    """A store with reports of today and of 500 days ago, and of a metric that nobody knows."""
    storage = open_storage(real_store.url, own_keys().prefix, 2, "standard")
    storage.prepare()
    cells = [
        *(Cell(PAGE.digest, epoch(PAGE, days), "platform=mac") for days in (500, 499, 0)),
        *(Cell(CRASHED.digest, epoch(CRASHED, days), "") for days in (500, 0)),
        Cell(OPTED_IN.digest, 0, ""),
        Cell(RETIRED, 77, ""),
    ]
    for shard in range(2):
        storage.append(shard.to_bytes(8, "big") + bytes(8), SEALED, b"entry", 2 * len(cells))
        [claimed] = storage.claim(shard, "any", 1, NOBODY_LEFT_IT)
        storage.fold(shard, [claimed.id], {cell: [(0, 2), (1, 2)] for cell in cells})
    yield storage
    storage.destroy()


@pytest.fixture
def run(tmp_path: Path, real_store: EmbeddedStore, store: RedisStorage) -> Run:
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(expires="2099-12-31"), encoding="utf-8")
    environment = {
        "HEARSAY_REGISTRY": str(path),
        "HEARSAY_WRITE_KEY": WRITE_KEY,
        "HEARSAY_SHARDS": "2",
        "HEARSAY_PREFIX": store._keys.prefix,
        "REDIS_URL": real_store.url,
    }

    def hearsay(*arguments: str, **settings: str) -> Result:
        return CliRunner().invoke(main, arguments, env={**environment, **settings})

    return hearsay


def epochs_of(store: RedisStorage, digest: bytes) -> list[int]:
    wanted = [*range(epoch(PAGE, 501), epoch(PAGE, -1)), 0, 77]
    wanted += [epoch(CRASHED, 500), epoch(CRASHED, 0)]
    return sorted(cell.epoch for cell in tallies(store, digest, dict.fromkeys(wanted)))


def test_it_says_what_it_would_delete_and_deletes_nothing(run: Run, store: RedisStorage) -> None:
    done = run("prune", "--older-than", "400d")

    days = [epoch_label("1d", epoch(PAGE, ago)) for ago in (500, 499)]
    assert done.exit_code == 0
    assert f"page ({PAGE.digest.hex()}): 2 epochs, {days[0]} to {days[1]}, 8 reports" in done.output
    assert "would be deleted: 3 epochs, 12 reports, " in done.output
    assert len(epochs_of(store, PAGE.digest)) == 3
    assert store.pruned([PAGE.digest]) == {}


def test_what_is_older_goes_whole_and_is_counted_and_the_store_is_sound(
    run: Run, store: RedisStorage
) -> None:
    done = run("prune", "--older-than", "400d", "--yes")
    again = run("prune", "--older-than", "400d", "--yes")
    checked = run("fsck")

    assert done.exit_code == 0, done.output
    assert "\ndeleted: 3 epochs, 12 reports, " in done.output
    assert again.output == "deleted: 0 epochs, 0 reports, 0 bytes\n"
    assert epochs_of(store, PAGE.digest) == [epoch(PAGE, 0)]
    assert epochs_of(store, CRASHED.digest) == [epoch(CRASHED, 0)]
    assert epochs_of(store, OPTED_IN.digest) == [0]  # once has no date
    assert checked.exit_code == 0, checked.output
    assert checked.output.count("6 pruned, 0 lost") == 2
    assert [one.drift for one in store.counters()] == [0, 0]


def test_the_setting_says_how_long_tallies_are_kept(run: Run, store: RedisStorage) -> None:
    unsaid = run("prune", "--yes")
    done = run("prune", "--yes", HEARSAY_KEEP_DAYS="400")
    short = run("prune", "--yes", HEARSAY_KEEP_DAYS="20")

    assert unsaid.exit_code == 1
    assert "HEARSAY_KEEP_DAYS=0: keeps all tallies; name --older-than" in unsaid.output
    assert "deleted: 3 epochs, 12 reports" in done.output
    assert "HEARSAY_KEEP_DAYS=20: must be 0 for ever, or above 29" in short.output
    assert epochs_of(store, PAGE.digest) == [epoch(PAGE, 0)]


def test_one_metric_can_go_with_all_that_still_comes_for_it(run: Run, store: RedisStorage) -> None:
    """Today's epoch too: so what is folded for it until it is over counts as pruned."""
    done = run("prune", "--metric", "page", "--yes")

    store.append(bytes(7) + b"\0" + b"b" * 8, SEALED, b"entry", 1)
    [claimed] = store.claim(0, "any", 1, NOBODY_LEFT_IT)
    store.fold(0, [claimed.id], {Cell(PAGE.digest, epoch(PAGE, 0), ""): [(0, 1)]})

    assert "reports may still come" in done.output
    assert "deleted: 3 epochs, 12 reports" in done.output
    assert epochs_of(store, PAGE.digest) == []
    assert len(epochs_of(store, CRASHED.digest)) == 2
    assert [one.pruned_reports for one in store.counters()] == [7, 6]
    assert run("fsck").exit_code == 0


def test_a_definition_that_no_registry_has_any_more_goes_by_its_digest(
    run: Run, store: RedisStorage
) -> None:
    dated = run("prune", "--metric", RETIRED.hex(), "--older-than", "400d", "--yes")
    done = run("prune", "--metric", RETIRED.hex(), "--yes")
    unknown = run("prune", "--metric", "pages", "--yes")

    assert "so its epochs have no dates" in dated.output
    assert "deleted: 1 epoch, 4 reports" in done.output
    assert epochs_of(store, RETIRED) == []
    assert unknown.exit_code == 1
    assert "metric=pages: must be a metric of the registries, or a digest" in unknown.output


def test_all_of_an_app_can_go(run: Run, store: RedisStorage) -> None:
    wrong = run("prune", "--app", "tests", "--yes")
    done = run("prune", "--app", "test", "--yes")

    assert "app=tests: no registry here is of this app" in wrong.output
    assert "deleted: 6 epochs, 24 reports" in done.output
    assert epochs_of(store, RETIRED) == [77]
    assert run("fsck").exit_code == 0


def test_a_loss_by_hand_is_one_line_of_fsck_and_can_be_accepted(
    run: Run, store: RedisStorage
) -> None:
    cell = Cell(PAGE.digest, epoch(PAGE, 500), "platform=mac")
    store._call("DEL", store._keys.tally(0, cell))

    found = run("fsck")
    accepted = run("fsck", "--accept-missing")
    after = run("fsck")

    assert found.exit_code == 1
    assert found.output.count("fault  ") == 1
    assert "its tally is gone, and 2 reports with it" in found.output
    assert accepted.output.startswith("2 reports counted as lost\n")
    assert (accepted.exit_code, after.exit_code) == (0, 0)
    assert "0 pruned, 2 lost" in after.output


def test_who_goes_on_pruning_must_say_that_it_deletes(run: Run, store: RedisStorage) -> None:
    """Nobody is there to read what would be deleted."""
    bare = run("prune", "--older-than", "400", "--yes")
    done = run("prune", "--older-than", "400d", "--every", "60")
    both = run("prune", "--older-than", "400d", "--before", "2026-01-01", "--yes")
    wrong = run("prune", "--older-than", "a year", "--yes")

    assert "--every=60: needs --yes" in done.output
    assert "--older-than=400d: and --before must not both be given" in both.output
    assert "must be a number of days and a d, such as 400d" in wrong.output
    assert "such as 400d" in bare.output
    assert [one.exit_code for one in (bare, done, both, wrong)] == [2, 1, 1, 2]
    assert len(epochs_of(store, PAGE.digest)) == 3


def test_four_weeks_go_when_their_last_day_is_old(
    run: Run, store: RedisStorage, tmp_path: Path
) -> None:
    """Law: an epoch that ended on the day before the limit goes, one that ends on it stays."""
    path = tmp_path / "monthly.toml"
    path.write_text(f'schema = 1\napp = "test"\n{metric_text("monthly", every="28d")}')
    monthly = Registry.from_file(path).metric("monthly")
    last = epoch(monthly, 200)
    for number in (last - 1, last):
        storage_id = number.to_bytes(8, "big") + bytes(8)
        shard = store.shard_of(storage_id)
        store.append(storage_id, SEALED, b"entry", 2)
        [claimed] = store.claim(shard, "any", 1, NOBODY_LEFT_IT)
        cell = Cell(monthly.digest, number, "")
        store.fold(shard, [claimed.id], {cell: [(0, 2), (1, 2)]})
    end = epoch_label("28d", last + 1)

    day_before = date.fromisoformat(end) - timedelta(days=1)
    early = run("prune", "--before", str(day_before), "--yes", HEARSAY_REGISTRY=str(path))
    on_time = run("prune", "--before", end, "--yes", HEARSAY_REGISTRY=str(path))

    assert f"{epoch_label('28d', last - 1)}, 2 reports" in early.output
    assert "deleted: 1 epoch, 2 reports" in early.output
    assert f"{epoch_label('28d', last)}, 2 reports" in on_time.output
