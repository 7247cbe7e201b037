"""What the doctor says of the list of retired metrics."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.privacy.retirement import Retirement
from client_sdk.registry import Registry
from client_sdk.wire.ed25519 import public_of
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.core.config import Config
from collector.operations.doctor.findings import FAULT, GOOD, WARNING
from collector.operations.doctor.retirement import GRACE, look_at, retired
from tests.collector.operations.doctor.test_examine import STATE
from tests.support.crowds.uploads import NOON, WRITE_KEY
from tests.support.device.device import metric_text
from tests.support.store.memory_storage import MemoryStorage

SEED: Final = bytes(range(32))
METRICS: Final = metric_text("first") + metric_text("second") + metric_text("third", every="once")


class Place:
    """A collector of three metrics, with a list of retired ones."""

    def __init__(self, folder: Path, key: str | None) -> None:
        self.path, self.list = folder / "metrics.toml", folder / "retired.json"
        app = '"demo"' if key is None else f'{{ name = "demo", retire_key = "{key}" }}'
        self.path.write_text(f"schema = 1\napp = {app}\n{METRICS}")
        self.registry = Registry.from_file(self.path)
        self.storage = MemoryStorage()

    def write(self, *names: str, seed: bytes = SEED, issued: float = NOON) -> None:
        digests = frozenset(self.registry.metric(name).digest for name in names)
        self.list.write_bytes(Retirement(int(issued), digests).text(seed))

    def report(self, name: str, moment: float) -> None:
        metric = self.registry.metric(name)
        cell = Cell(metric.digest, epoch_of(metric.every, moment), "")
        self.storage.tallied[cell] = {0: 1}

    def findings(self, now: float = NOON, retired_path: str | None = None) -> list[tuple[str, str]]:
        """Return level and words of what the doctor finds at Unix time *now*."""
        settings = {
            "HEARSAY_REGISTRY": str(self.path),
            "HEARSAY_WRITE_KEY": WRITE_KEY,
            "HEARSAY_RETIRED": str(self.list) if retired_path is None else retired_path,
        }
        config = Config.from_env(settings)
        listed = look_at(config, Catalog.from_files([str(self.path)]), self.storage, now)
        state = replace(STATE, now=now, retired=listed)
        return [(finding.level, finding.what) for finding in retired(config, state)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A collector whose registry names the key of the list."""
    return Place(tmp_path, public_of(SEED).hex())


def test_a_list_that_devices_heed_is_good_and_none_is_nothing(place: Place) -> None:
    place.write("first", "second")
    day = datetime.fromtimestamp(NOON, UTC).date().isoformat()

    assert place.findings() == [(GOOD, f"2 metrics, by a list of {day}")]
    assert place.findings(retired_path="") == []


def test_a_list_that_is_none_or_of_another_key_is_a_fault(place: Place) -> None:
    ((level, what),) = place.findings()
    assert (level, "cannot be read" in what) == (FAULT, True)

    place.list.write_text("{}")
    ((level, what),) = place.findings()
    assert (level, "must be a list" in what) == (FAULT, True)

    place.write("first", seed=b"\1" * 32)
    assert place.findings() == [(FAULT, "the list is signed by no key of a registry")]


def test_a_list_that_no_device_asks_for_is_a_warning(tmp_path: Path) -> None:
    place = Place(tmp_path, None)
    place.write("first")

    assert place.findings() == [(WARNING, "no registry has a retire_key")]


def test_a_list_of_a_day_to_come_is_a_warning(place: Place) -> None:
    place.write("first", issued=NOON + 3 * DAY)

    assert [level for level, _ in place.findings()] == [GOOD, WARNING]
    assert [level for level, _ in place.findings(now=NOON + 3 * DAY)] == [GOOD]


def test_a_retired_metric_that_still_reports_is_named_once_all_should_know(place: Place) -> None:
    """Law: what may still be on its way is no sign; nor are other metrics, nor ``once``."""
    place.write("first", "third")
    now = NOON + 40 * DAY
    place.report("second", now - DAY)
    place.report("third", now - DAY)
    place.report("first", NOON + (GRACE - 1) * DAY)
    assert [level for level, _ in place.findings(now)] == [GOOD]

    place.report("first", NOON + GRACE * DAY)

    assert place.findings(now)[1:] == [
        (WARNING, f"reported {GRACE} days after the list and later: first")
    ]
    assert [level for level, _ in place.findings(NOON + 100 * DAY)] == [GOOD]  # long ago
