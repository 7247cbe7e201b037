"""An analyst saves boards without end: uploads go on, and one command frees what was filled."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner
from werkzeug.test import TestResponse

from client_sdk.core.epoch import day_of
from client_sdk.registry import Registry
from client_sdk.wire.reports import Column
from collector.cli import main
from collector.core.config import VOLATILE, Config
from collector.core.credentials import ANALYST, READ, WRITE, Credential
from collector.intake.backpressure import ALARM_MEMORY
from collector.storage.connect import connect
from collector.storage.connection import Connection
from collector.storage.documents import DocumentStore
from collector.web import create_app
from collector.web.auth import WRITES_BURST_S
from collector.web.services import services_of
from collector.workspace.budget import MOST_BYTES
from tests.support.crowds.uploads import COMMON, as_json, upload
from tests.support.device.clock import FakeClock
from tests.support.sites.posting import post
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.servers import needs_real, real_server

pytestmark = [needs_real, pytest.mark.real]

MIB: Final = 1 << 20
APPS: Final = ("blog", "shop")
EVE, BOB, DEVICE = (f"{name}-for-tests-0123456789" for name in ("eve", "bob", "device"))
OURS: Final = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
TODAY: Final = day_of(time.time())
BUILDS: Final = [f"build-{number:04}" for number in range(500)]
METRIC: Final = """
schema = 1
app = "{app}"

[segments]
build = {builds}

[metrics.{app}_item]
title = "Item"
question = "Which?"
type = "category"
values = ["a", "b"]
segments = ["build"]
every = "1d"
{common}
"""


class Kept:
    """A collector of two apps on a server of 64 MiB, an analyst of each, and devices."""

    def __init__(self, url: str, folder: Path) -> None:
        common = COMMON.format(epsilon="1.0", min_reports=100, expires="2052-12-31")
        texts = {app: METRIC.format(app=app, builds=BUILDS, common=common) for app in APPS}
        for app, text in texts.items():
            (folder / f"{app}.toml").write_text(text, encoding="utf-8")
        self.environment = {
            "REDIS_URL": url,
            "HEARSAY_REGISTRY": os.pathsep.join(str(folder / f"{app}.toml") for app in APPS),
            "HEARSAY_PROFILE": VOLATILE,
        }
        Connection.open(url).call("CONFIG", "SET", "maxmemory", 64 * MIB)
        assert CliRunner().invoke(main, ["init"], env=self.environment).exit_code == 0
        config = Config.from_env(self.environment)
        credentials = MemoryCredentials()
        credentials.add(DEVICE, Credential(WRITE))
        for token, app in ((EVE, "shop"), (BOB, "blog")):
            credential = Credential(READ, app=app, role=ANALYST, expires=TODAY + 9, label=token[:3])
            credentials.add(token, credential)
        self.metrics = [
            Registry.from_text(text).metric(f"{app}_item") for app, text in texts.items()
        ]
        self.storage, self.ran = connect(config), FakeClock(0)
        self.documents = DocumentStore.of(config)
        self.app = create_app(
            config, self.storage, time.time, credentials, self.ran, documents=self.documents
        )
        self.look()

    def run(self, *arguments: str) -> str:
        result = CliRunner().invoke(main, ["documents", *arguments], env=self.environment)
        assert result.exit_code == 0, result.output
        return result.output

    def look(self) -> None:
        self.ran.advance(seconds=1)
        services_of(self.app).pressure.poll()

    @property
    def memory(self) -> float:
        return float(self.storage.health().memory or 0.0)

    def save(self, token: str, path: str, **form: str) -> TestResponse:
        client = self.app.test_client()
        client.set_cookie("hearsay", token)
        return client.post(path, data=form, headers=OURS)

    def send(self) -> set[int]:
        """Return the answers to an upload for each app."""
        uploads = (
            upload(
                [Column(metric.digest, TODAY, bytes(metric.mechanism.payload_size))],
                upload_id=secrets.token_bytes(16),
                sealed=TODAY,
            )
            for metric in self.metrics
        )
        client = self.app.test_client()
        return {post(client, as_json(each), key=DEVICE).status_code for each in uploads}


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    with real_server() as embedded:
        yield Kept(embedded.url, tmp_path)


def wide_question(app: str) -> str:
    """Return a question of some 7 kB."""
    return json.dumps({"metrics": [f"{app}_item"], "filters": [["is", "build", BUILDS[1:]]]})


def test_boards_of_an_analyst_stop_no_upload_and_one_command_frees_them(kept: Kept) -> None:
    before, answers, refusals, saved = kept.memory, set[int](), set[int](), 0
    question = wide_question("shop")
    for number in range(200):
        kept.look()
        made = kept.save(EVE, "/pin", q=question, title="x", board="new", new=f"b{number}")
        if made.status_code != 303:
            refusals.add(made.status_code)
            break
        board = made.headers["Location"].removeprefix("/board/")
        for panel in range(12):
            kept.look()
            saved += (
                kept.save(EVE, "/pin", q=question, title=f"{panel}", board=board).status_code == 303
            )
        answers |= kept.send()
    filled = kept.memory
    theirs = kept.save(BOB, "/notes", at="2026-11-20", text="A release")

    listed = json.loads(kept.run("--json"))
    tried = kept.run("delete", "--author", "eve")
    freed = kept.run("delete", "--app", "shop", "--author", "eve", "--yes")

    assert (saved > 100, refusals) == (True, {400})
    assert answers == {202}
    assert filled < before + 1.5 * MOST_BYTES / 3 / (64 * MIB) < ALARM_MEMORY
    assert theirs.status_code == 303
    [shop] = [row for row in listed["documents"] if row["app"] == "shop"]
    assert (shop["kind"], shop["author"]) == ("boards", "eve")
    assert shop["bytes"] <= MOST_BYTES / 3
    assert "--yes deletes them" in tried
    assert freed.startswith("deleted: ")
    assert [place.kind for place in kept.documents.index()] == ["notes"]
    assert kept.memory < before + 0.02
    print(f"{saved} saved; {before:.0%} to {filled:.0%}, {kept.memory:.0%} once freed")


def test_a_token_saves_no_faster_than_it_may_and_another_is_not_in_its_way(kept: Kept) -> None:
    answers = [
        kept.save(EVE, "/notes", at="2026-11-20", text=f"note {number}").status_code
        for number in range(int(WRITES_BURST_S) + 5)
    ]
    refused = kept.save(EVE, "/notes", at="2026-11-20", text="one more")

    assert answers == [303] * int(WRITES_BURST_S) + [429] * 5
    assert "one a second" in refused.text
    assert kept.save(BOB, "/notes", at="2026-11-20", text="of another").status_code == 303
    kept.ran.advance(seconds=2)
    assert kept.save(EVE, "/notes", at="2026-11-20", text="later").status_code == 303
