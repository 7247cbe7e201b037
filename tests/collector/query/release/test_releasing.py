"""``hearsay release``: whole files, a data sheet that is true, and nothing from too few reports."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from client_sdk.core.errors import UnknownMetricError
from client_sdk.core.limits import DIGEST_SIZE
from collector.cli import main
from collector.core.catalog import Catalog
from collector.core.cells import ATTESTED, RELAYED, Cell
from collector.core.errors import (
    ConfigError,
    DamagedTallyError,
    QueryError,
    StorageUnavailableError,
)
from collector.demo.embedded import EmbeddedStore
from collector.query.release.publish import PARQUET, ReleaseRequest, release
from collector.storage.connection import Connection
from collector.storage.redis import RedisStorage
from tests.support.crowds.releases import (
    MIN_REPORTS,
    REGISTRY,
    REGISTRY_TEXT,
    fold,
    stored,
    tally_of,
    values_of,
)
from tests.support.crowds.uploads import NOON, epoch_today
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import queue_one

CATALOG: Final = Catalog([REGISTRY])
DRAWN: Final = ("page", "dark", "plan", "age", "wait", "place")


def released(wanted: ReleaseRequest, storage: MemoryStorage, folder: Path) -> dict[str, Path]:
    """Release and return the files by the part of their name after that of the metric."""
    paths = release(wanted, CATALOG, storage, NOON, folder)
    return {path.name.removeprefix(f"{wanted.metric}."): path for path in paths}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sheet(files: Mapping[str, Path]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files["sheet.json"].read_text("utf-8"))
    return found


@pytest.mark.parametrize("name", DRAWN)
def test_a_release_is_a_histogram_records_and_a_sheet_in_two_forms(
    name: str, tmp_path: Path
) -> None:
    """For every kind of domain, with as many records as asked."""
    files = released(ReleaseRequest(name, size=321), stored(name), tmp_path / "new" / "folder")

    assert list(files) == ["histogram.csv", "records.csv", "sheet.json", "sheet.md"]
    counts = [int(row["count"]) for row in rows(files["histogram.csv"])]
    assert min(counts) >= 0
    assert sum(counts) == sheet(files)["reports"]
    assert len(rows(files["records.csv"])) == 321
    assert sorted(tmp_path.rglob(".*")) == []


def test_a_set_is_released_as_a_histogram_only(tmp_path: Path) -> None:
    files = released(ReleaseRequest("tools"), stored("tools"), tmp_path / "histogram")

    assert list(files) == ["histogram.csv", "sheet.json", "sheet.md"]


def test_the_sheet_says_how_reports_came_where_it_is_known(tmp_path: Path) -> None:
    """And nothing of it where it is not."""
    storage = stored("plan")
    plain = released(ReleaseRequest("plan"), storage, tmp_path / "plain")
    fold(storage, "plan", values_of("plan", 30), source=frozenset({RELAYED, ATTESTED}))
    mixed = released(ReleaseRequest("plan"), storage, tmp_path / "mixed")

    assert "sources" not in sheet(plain)
    assert sheet(mixed)["reports"] == 430
    assert sheet(mixed)["sources"] == {"relayed": 30, "attested": 30}
    assert "30 relayed, 30 attested" in mixed["sheet.md"].read_text("utf-8")


def test_the_sheet_says_what_the_numbers_rest_on(tmp_path: Path) -> None:
    """ε of a report as built, definition, window, version, reports, seed, and what not to do."""
    metric = REGISTRY.metric("plan")
    files = released(ReleaseRequest("plan", size=50, seed=17), stored("plan"), tmp_path)

    found, page = sheet(files), files["sheet.md"].read_text("utf-8")

    assert found["epsilon_per_report"] == float(metric.mechanism.spent)
    assert found["digest"] == metric.digest.hex()
    assert len(found["digest"]) == 2 * DIGEST_SIZE
    assert (found["reports"], found["records"], found["seed"]) == (400, 50, 17)
    assert found["window"] == {"from": "once", "to": "once", "epochs": 1}
    assert (found["version"], found["window_open"]) == (None, True)
    assert set(found["files"]) == {"plan.histogram.csv", "plan.records.csv"}
    assert list(found["columns"])[:2] == ["system", "plan"]
    for text in (metric.question, metric.mechanism_name, metric.digest.hex(), "seed 17", "ε = "):
        assert text in page
    assert all(text in page for text in (*found["limits"], *found["uses"], *found["method"]))
    assert "No row is a person" in page


def test_the_sheet_of_numbers_has_their_quantiles_with_intervals(tmp_path: Path) -> None:
    """A histogram that was decoded has no intervals around its counts; the quantiles have."""
    files = released(ReleaseRequest("age"), stored("age"), tmp_path)

    (part,) = sheet(files)["parts"]

    assert list(part["quantiles"]) == ["p10", "p25", "p50", "p75", "p90"]
    assert all(q["ci_low"] <= q["value"] <= q["ci_high"] for q in part["quantiles"].values())
    assert "p50 " in files["sheet.md"].read_text("utf-8")


def test_segments_become_a_column_if_asked(tmp_path: Path) -> None:
    """Of the histogram and of the records; the sheet lists each part."""
    files = released(ReleaseRequest("page", by=("platform",), size=80), stored("page"), tmp_path)

    assert {row["platform"] for row in rows(files["histogram.csv"])} == {"linux", "mac"}
    assert [row["platform"] for row in rows(files["records.csv"])].count("mac") == 40
    assert [part["of"] for part in sheet(files)["parts"]] == [
        {"platform": "linux"},
        {"platform": "mac"},
    ]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """A release can be made again by anybody who has the tallies."""
    storage, wanted = stored("wait"), ReleaseRequest("wait", size=100, seed=5)

    other = ReleaseRequest("wait", size=100, seed=6)
    first, again, changed = (
        {file: path.read_bytes() for file, path in released(one, storage, tmp_path / name).items()}
        for name, one in (("a", wanted), ("b", wanted), ("c", other))
    )

    assert first == again
    assert first["records.csv"] != changed["records.csv"]


def test_parquet_holds_the_same_columns_and_the_sheet(tmp_path: Path) -> None:
    """Types are kept, and the sheet cannot get lost."""
    storage = stored("age")
    files = released(ReleaseRequest("age", size=100, seed=5, form=PARQUET), storage, tmp_path / "a")
    texts = released(ReleaseRequest("age", size=100, seed=5), storage, tmp_path / "b")

    found = pq.read_table(files["records.parquet"])

    assert json.loads(found.schema.metadata[b"hearsay"]) == sheet(files)
    assert str(found.schema.field("age").type) == "int64"
    assert found["age"].to_pylist() == [int(row["age"]) for row in rows(texts["records.csv"])]


def test_nothing_is_released_from_a_group_that_is_small_alone(tmp_path: Path) -> None:
    uneven = stored()
    fold(uneven, "page", values_of("page", 300), {"platform": "linux"})
    fold(uneven, "page", values_of("page", 30), {"platform": "mac"})

    with pytest.raises(QueryError, match=r"^metric=page of mac: not enough .*withhold"):
        released(ReleaseRequest("page", by=("platform",)), uneven, tmp_path / "few")
    assert not (tmp_path / "few").exists()


def test_small_groups_are_released_together(tmp_path: Path) -> None:
    """No report is missing, and the sheet says what the group is."""
    uneven = stored()
    fold(uneven, "page", values_of("page", 300), {"platform": "linux"})
    fold(uneven, "page", values_of("page", 60), {"platform": "mac"})
    fold(uneven, "page", values_of("page", 70))

    files = released(ReleaseRequest("page", by=("platform",)), uneven, tmp_path)

    counts = Counter[str]()
    for row in rows(files["histogram.csv"]):
        counts[row["platform"]] += int(row["count"])
    assert counts == {"linux": 300, "(other)": 130}
    assert (sheet(files)["reports"], sheet(files)["left_out_reports"]) == (430, 0)
    assert "(other) is groups with too few reports" in sheet(files)["columns"]["platform"]


def test_small_groups_are_left_out_of_a_release_on_demand_and_the_sheet_says_it(
    tmp_path: Path,
) -> None:
    uneven = stored()
    fold(uneven, "page", values_of("page", 300), {"platform": "linux"})
    fold(uneven, "page", values_of("page", 30), {"platform": "mac"})
    wanted = ReleaseRequest("page", by=("platform",), small_cells="withhold")

    files = released(wanted, uneven, tmp_path)

    assert {row["platform"] for row in rows(files["histogram.csv"])} == {"linux"}
    assert (sheet(files)["reports"], sheet(files)["left_out_reports"]) == (300, 30)
    assert "30 reports (9.1 %) of groups with fewer than that" in files["sheet.md"].read_text()


def damaged() -> MemoryStorage:
    """Return a store with more supports than reports."""
    metric, storage = REGISTRY.metric("dark"), MemoryStorage()
    cell = Cell(metric.digest, epoch_today(metric), "")
    storage.put({cell: list(enumerate([200, *[300] * metric.mechanism.tally_size]))})
    return storage


def away() -> MemoryStorage:
    storage = MemoryStorage()
    storage.failure = StorageUnavailableError("store: does not answer")
    return storage


@pytest.mark.parametrize(
    ("wanted", "storage", "error", "message"),
    [
        # A wrong parameter is named as the option is called.
        *(
            (ReleaseRequest("page", parameters), stored("page"), QueryError, rf"^{place}\b")
            for parameters, place in (
                ({"from": "yesterday"}, "from"),
                ({"to": "2026-13-01"}, "to"),
                ({"from": "2026-02-02", "to": "2026-02-01"}, "from"),
                ({"alpha": "2"}, "alpha"),
                ({"version": "9"}, "version"),
            )
        ),
        (ReleaseRequest("pagee"), stored(), UnknownMetricError, "pagee"),
        (ReleaseRequest("page", by=("flavour",)), stored("page"), QueryError, "platform"),
        (ReleaseRequest("price"), stored("price"), QueryError, "^metric=price: tells a mean only"),
        (
            ReleaseRequest("games", size=10),
            stored("games"),
            QueryError,
            r"^metric=games: .*key_values",
        ),
        (ReleaseRequest("tools", size=10), stored("tools"), QueryError, "^metric=tools: is a set"),
        (
            ReleaseRequest("dark", size=10),
            stored("dark", devices=MIN_REPORTS - 1),
            QueryError,
            "^metric=dark: not enough reports",
        ),
        (
            ReleaseRequest("page", by=("platform",)),
            stored(),
            QueryError,
            "^metric=page: no reports in this window$",
        ),
        (ReleaseRequest("dark"), damaged(), DamagedTallyError, "hearsay fsck"),
        (ReleaseRequest("dark"), away(), StorageUnavailableError, "does not answer"),
    ],
)
def test_what_cannot_be_released_is_refused_by_name_and_nothing_is_written(
    wanted: ReleaseRequest,
    storage: MemoryStorage,
    error: type[Exception],
    message: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(error, match=message):
        released(wanted, storage, tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "taken").write_text("")

    with pytest.raises(ConfigError, match=r"^out=.*taken: cannot be written"):
        released(ReleaseRequest("dark"), stored("dark"), tmp_path / "taken")


def test_a_release_replaces_an_older_one_whole(tmp_path: Path) -> None:
    """No half of a file is ever in its place, and no other file is touched."""
    (tmp_path / "other.txt").write_text("mine")
    small = released(ReleaseRequest("dark", size=10), stored("dark"), tmp_path)

    large = released(ReleaseRequest("dark", size=20), stored("dark"), tmp_path)

    assert small == large
    assert len(rows(large["records.csv"])) == 20
    assert (tmp_path / "other.txt").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 5


@needs_real
@pytest.mark.real
def test_the_command_releases_from_a_store(real_store: EmbeddedStore, tmp_path: Path) -> None:
    """From settings to files; a wrong format or too few reports end with one line."""
    keys = own_keys(shards=4)
    storage = RedisStorage(Connection.open(real_store.url), keys)
    storage.prepare()
    metric = REGISTRY.metric("dark")
    n, tally = tally_of(metric, values_of("dark", 400))
    shard, entry = queue_one(storage)
    cell = Cell(metric.digest, epoch_today(metric), "")
    storage.fold(shard, [entry], {cell: list(enumerate([n, *tally.tolist()]))})
    registry = tmp_path / "metrics.toml"
    registry.write_text(REGISTRY_TEXT, encoding="utf-8")
    environment = {
        "HEARSAY_REGISTRY": str(registry),
        "REDIS_URL": real_store.url,
        "HEARSAY_PREFIX": keys.prefix,
    }

    def hearsay(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["release", *arguments], env=environment)

    out = str(tmp_path / "out")
    made = hearsay("dark", "--synthetic", "400", "--seed", "1", "--output", out)
    drawn = hearsay("dark", "--synthetic", "400", "--format", "parquet", "--output", out)
    refused = hearsay("age", "--output", out)

    assert made.output.splitlines() == [
        str(tmp_path / "out" / f"dark.{name}")
        for name in ("histogram.csv", "records.csv", "sheet.json", "sheet.md")
    ]
    assert drawn.exit_code == 0
    assert refused.exit_code == 1
    assert refused.output.startswith("Error: metric=age: not enough reports")
    storage.destroy()
