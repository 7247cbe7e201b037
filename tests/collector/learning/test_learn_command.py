"""The command ``hearsay learn naive-bayes``, from a store to a file and to a device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from client_sdk.core.randomness import system_randomness
from client_sdk.learning.naive_bayes import load
from client_sdk.registry import Registry
from collector.cli import main
from collector.core.cells import Cell
from collector.demo.embedded import EmbeddedStore
from collector.storage.connection import Connection
from collector.storage.redis import RedisStorage
from tests.support.crowds.uploads import epoch_today
from tests.support.device.registries import HEAD, RECORD, table
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import queue_one

TEXT = (
    HEAD
    + table("m", RECORD, epsilon='"4"', every='"once"')
    + table("few", RECORD, min_reports="50000")
)


@needs_real
@pytest.mark.real
def test_the_command_learns_from_a_store_what_a_device_predicts_by(
    real_store: EmbeddedStore, tmp_path: Path
) -> None:
    keys, metric = own_keys(shards=4), Registry.from_text(TEXT).metric("m")
    storage, randomness = RedisStorage(Connection.open(real_store.url), keys), system_randomness()
    storage.prepare()
    kinds = [("free", 20, "left"), ("free", 40, "stayed"), ("pro", 60, "stayed")]
    rows = [dict(zip(("plan", "age", "label"), kind, strict=True)) for kind in kinds * 700]
    column = b"".join(metric.mechanism.randomize(metric.encode(row), randomness) for row in rows)
    tally = metric.mechanism.tally(column, np)
    shard, entry = queue_one(storage)
    cell = Cell(metric.digest, epoch_today(metric), "")
    storage.fold(shard, [entry], {cell: list(enumerate([len(rows), *tally.tolist()]))})
    path, file = tmp_path / "metrics.toml", tmp_path / "churn.json"
    path.write_text(TEXT, encoding="utf-8")
    environment = {
        "HEARSAY_REGISTRY": str(path),
        "REDIS_URL": real_store.url,
        "HEARSAY_PREFIX": keys.prefix,
    }

    def hearsay(*words: str) -> Result:
        return CliRunner().invoke(main, ["learn", "naive-bayes", *words], env=environment)

    written, printed = hearsay("m", "--output", str(file)), hearsay("m", "--label", "left")
    day = "2020-01-01"
    refused = [
        hearsay("few"),
        hearsay("m", "--label", "moved"),
        hearsay("m", "--from", day, "--to", day),
    ]

    assert written.exit_code == 0, written.output
    assert written.output.startswith("the chance of 'left', from 2,100 reports at ε 4\n")
    assert "age: below 30" in written.output
    assert printed.output == file.read_text(encoding="utf-8")
    model = load(file, metric)
    likely, unlikely = ({"plan": p, "age": a} for p, a in (("free", 20), ("pro", 60)))
    assert model.probability(likely) > 0.6 > 0.2 > model.probability(unlikely)
    assert [each.exit_code for each in refused] == [1, 1, 1]
    assert "no reports" in refused[0].output
    assert "label: must be one of" in refused[1].output
    assert "metric=m is asked once, so its reports have no days" in refused[2].output
    storage.destroy()
