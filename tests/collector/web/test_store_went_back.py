"""A store that holds less than it held is noticed, and no answer from before is good for it."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from flask import Flask

from client_sdk.core.epoch import day_of
from collector.core.config import Config
from collector.operations.doctor.checkup import check_deployment
from collector.storage.connect import connect
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from collector.web import create_app
from collector.web.services import services_of
from tests.support.crowds.asked import JANUARY, post
from tests.support.crowds.uploads import ADMIN_TOKEN, bearer
from tests.support.store.cluster import Node
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

SETTLED: Final = {"metrics": ["page"], "date_range": JANUARY, "version": 0}
TODAY: Final = day_of(time.time())


class Store:
    """A server whose files can be exchanged, and what a new process makes of it."""

    def __init__(self, folder: Path, config: Config) -> None:
        self.folder = folder
        folder.mkdir()
        self.node = Node(folder, {"appendfsync": "always"})
        url = f"redis://{self.node.address}/0"
        self.config = replace(config, redis_url=url, query_url=url, shards=2)

    def start(self) -> RedisStorage:
        self.node.start()
        storage = connect(self.config)
        storage.prepare(renew=True)  # as hearsay init does
        return storage

    def process(self) -> Flask:
        """Return a web process that begins now."""
        app = create_app(self.config)
        services_of(app).pressure.poll()
        return app


def append(storage: RedisStorage, first: int, count: int) -> None:
    uploads = [
        SealedUpload((number << 64 | number).to_bytes(16, "big"), TODAY, b"entry", 1)
        for number in range(first, first + count)
    ]
    assert all(storage.append_many(uploads))


def asked(app: Flask, tag: str = "") -> tuple[int, str]:
    """Return status and ETag of the settled question; *tag* is what a browser has kept."""
    answer = post(app.test_client(), SETTLED, headers={"If-None-Match": tag} if tag else {})
    return answer.status_code, answer.headers["ETag"]


@pytest.fixture
def store(tmp_path: Path, config: Config) -> Iterator[Store]:
    store = Store(tmp_path / "store", config)
    yield store
    store.node.stop()
    store.node.connection.close()


def test_a_copy_that_is_put_back_answers_under_another_name(store: Store, tmp_path: Path) -> None:
    """As docs/operate/operate.md says: all processes are new.  Control: without it, 304."""
    append(store.start(), 0, 500)
    store.node.stop()
    shutil.copytree(store.folder, tmp_path / "copy")
    append(store.start(), 500, 700)
    _, tag = asked(store.process())
    assert asked(store.process(), tag) == (304, tag)

    store.node.stop()
    shutil.rmtree(store.folder)
    shutil.copytree(tmp_path / "copy", store.folder)
    back = store.start()
    status, other = asked(store.process(), tag)

    assert sum(shard.accepted.uploads for shard in back.counters()) == 500
    assert (status, other != tag) == (200, True)


def test_a_log_that_was_cut_is_told_by_number_wherever_an_operator_looks(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Of each shard, so that what came to the others meanwhile hides nothing."""
    storage = store.start()
    append(storage, 0, 1_000)
    app = store.process()
    _, tag = asked(app)
    store.node.stop()
    (log,) = store.folder.glob("appendonlydir/*.incr.aof")
    with log.open("rb+") as file:
        file.truncate(log.stat().st_size * 9 // 10)
    store.node.start()
    held = sum(shard.accepted.uploads for shard in storage.counters())
    assert 0 < held < 1_000

    with caplog.at_level(logging.CRITICAL, "hearsay.pressure"):
        for _ in range(3):
            services_of(app).pressure.poll()
    ready = app.test_client().get("/readyz")
    metrics = app.test_client().get("/metrics", headers=bearer(ADMIN_TOKEN))
    findings = [line for finding in check_deployment(store.config) for line in finding.lines()]

    lost = 1_000 - held
    [record] = caplog.records
    assert f"at least {lost} uploads that it had counted are gone" in record.getMessage()
    assert ready.status_code == 200
    assert ready.get_json()["lost"] == lost
    assert f"hearsay_store_lost_uploads {lost}.0" in metrics.get_data(as_text=True)
    assert any(f"at least {lost} uploads" in line for line in findings)
    assert asked(app, tag)[0] == asked(store.process(), tag)[0] == 200


def test_a_store_that_starts_again_whole_is_no_alarm(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """The control; also while it is away, and when it has taken more meanwhile."""
    storage = store.start()
    append(storage, 0, 100)
    app = store.process()
    append(storage, 100, 50)
    store.node.stop()
    services_of(app).pressure.poll()
    store.node.start()

    services_of(app).pressure.poll()

    assert not [record for record in caplog.records if record.levelno >= logging.CRITICAL]
    assert app.test_client().get("/readyz").get_json()["lost"] == 0
