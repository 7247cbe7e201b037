"""Few wide uploads and boards without end fill no store: honest keys go on."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
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
from collector.core.credentials import ANALYST, READ, WRITE, Credential, digest_of, id_of
from collector.intake.backpressure import ALARM_MEMORY, SHED_MEMORY
from collector.intake.day_counts import EXCHANGE_S
from collector.intake.tally_quota import BEGUN_CEILING, BEGUN_SHARE
from collector.storage.connect import connect
from collector.storage.connection import Connection
from collector.storage.documents import DocumentStore
from collector.storage.records import CredentialStore
from collector.web import create_app
from collector.web.auth import WRITES_BURST_S
from collector.web.services import services_of
from collector.worker.worker import Worker
from collector.workspace.budget import MOST_BYTES
from tests.support.crowds.uploads import COMMON, as_json, upload
from tests.support.device.clock import FakeClock
from tests.support.sites.posting import post
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.servers import needs_real, real_server

pytestmark = [needs_real, pytest.mark.real]

MIB: Final = 1 << 20
HONEST: Final = "honest-key-for-tests-0123456789"
ATTACKERS: Final = [f"attacker-{number}-for-tests-0123456789" for number in range(3)]
PLATFORMS: Final = [f"p{number}" for number in range(12)]
TODAY: Final = day_of(time.time())
PLACES: Final = [(day, name) for day in range(TODAY - 13, TODAY + 1) for name in PLATFORMS]
SHARDS: Final = 4
LAST: Final = 400  # refusals in a row after which an attack gives up
POLLED: Final = 6  # uploads of an attacker between two looks at the store
METRIC: Final = """
[metrics.{name}]
title = "Any"
question = "Which one?"
type = "category"
values = {values}
mechanism = "{mechanism}"
segments = ["platform"]
every = "1d"
{common}
"""


def registry_text(wide: int) -> str:
    common = COMMON.format(epsilon="1.0", min_reports=100, expires="2052-12-31")
    items = [f"i{number}" for number in range(10_000)]
    head = f'schema = 1\napp = "test"\n\n[segments]\nplatform = {PLATFORMS}\n'
    wides = (
        METRIC.format(name=f"wide{number}", values=items, mechanism="olh", common=common)
        for number in range(wide)
    )
    small = METRIC.format(name="small", values=["a", "b"], mechanism="grr", common=common)
    return head + "".join(wides) + small


class Filled:
    """A collector on a server of so many bytes, with an honest key and attackers."""

    def __init__(self, url: str, folder: Path, size: int, wide: int, begun_mb: int | None) -> None:
        path = folder / "metrics.toml"
        path.write_text(registry_text(wide), encoding="utf-8")
        self.environment = {
            "REDIS_URL": url,
            "HEARSAY_REGISTRY": str(path),
            "HEARSAY_PROFILE": VOLATILE,
            "HEARSAY_SHARDS": str(SHARDS),
        }
        self.size, self.server = size, Connection.open(url)
        self.server.call("CONFIG", "SET", "maxmemory", size)
        assert self.run("init")[0] == 0
        config = replace(Config.from_env(self.environment), new_tallies_mb=begun_mb)
        self.credentials = CredentialStore.of(config)
        for key in (HONEST, *ATTACKERS):
            self.credentials.put(digest_of(key), Credential(WRITE).to_json())
        self.registry = Registry.from_text(registry_text(wide))
        self.wide = [metric for metric in self.registry if metric.name != "small"]
        self.storage, self.ran = connect(config), FakeClock(0)
        self.app = create_app(config, self.storage, time.time, self.credentials, self.ran)
        self.client = self.app.test_client()
        digests = {metric.digest: metric for metric in self.registry}
        mechanisms = {digest: metric.mechanism for digest, metric in digests.items()}
        every = {digest: metric.every for digest, metric in digests.items()}
        self.worker = Worker(self.storage, mechanisms, every)
        self.look()

    def run(self, *arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, arguments, env=self.environment)
        return result.exit_code, result.output

    def look(self) -> None:
        """Do what a process does every few seconds, and fold what waits."""
        while self.worker.step():
            pass
        self.ran.advance(seconds=EXCHANGE_S)
        shared = services_of(self.app)
        for action in (shared.pressure.poll, shared.id_quota.exchange, shared.tally_quota.exchange):
            action()

    @property
    def memory(self) -> float:
        """The share of its memory that the server uses."""
        return float(self.storage.health().memory or 0.0)

    def send(self, key: str, metric: str, place: tuple[int, str], shard: int) -> int:
        """Return the answer to an upload of one report."""
        of = self.registry.metric(metric)
        day, platform = place
        payload = bytes(of.mechanism.payload_size)
        body = upload(
            [Column(of.digest, day, payload)],
            upload_id=bytes([*bytes(7), shard, *secrets.token_bytes(8)]),
            sealed=TODAY,
            segment={"platform": platform},
        )
        return post(self.client, as_json(body), key=key).status_code

    def revoke(self, key: str) -> str:
        """Revoke *key*; return its id."""
        name = id_of(digest_of(key))
        assert self.run("keys", "revoke", name)[0] == 0
        return name

    def attack(self, keys: list[str], enough: float = 1.0) -> tuple[set[int], set[int]]:
        """Return the answers to *keys*, and to the honest key, which sends beside them.

        Args: enough: the share of the memory from which on the attack ends.
        """
        of_keys, of_honest = set[int](), set[int]()
        number = refused = 0
        for shard in range(SHARDS):
            for metric in self.wide:
                for place in PLACES:
                    for key in keys:
                        answer = self.send(key, metric.name, place, shard)
                        of_keys.add(answer)
                        number += 1
                        refused = refused + 1 if answer == 429 else 0
                        if refused == LAST:
                            return of_keys, of_honest
                        if number % POLLED == 0:
                            self.look()
                            of_honest.add(self.send(HONEST, "small", place, shard))
                            if 503 in of_honest or self.memory > enough:
                                return of_keys, of_honest
        return of_keys, of_honest


@pytest.fixture
def server() -> Iterator[str]:
    with real_server() as embedded:
        yield embedded.url


ONE_DAY, MANY_DAYS = None, 100_000  # megabytes that a key may begin a day
ATTACKS: Final = [
    pytest.param(
        size * MIB,
        wide,
        begun_mb,
        attackers,
        id=f"{size}-{attackers}-{'one-day' if begun_mb is ONE_DAY else 'many-days'}",
        marks=[pytest.mark.slow] if size > 64 or (begun_mb is ONE_DAY) is (attackers > 1) else [],
    )
    for size, wide in ((64, 1), (256, 3), (768, 9))
    for begun_mb in (ONE_DAY, MANY_DAYS)
    for attackers in (1, 3)
]


@pytest.mark.parametrize(("size", "wide", "begun_mb", "attackers"), ATTACKS)
def test_the_honest_key_goes_on_while_others_fill_the_store(
    server: str, tmp_path: Path, size: int, wide: int, begun_mb: int | None, attackers: int
) -> None:
    """Within the limit of a day, and without it, as if the attack took weeks."""
    keys = ATTACKERS[:attackers]
    site = Filled(server, tmp_path, size, wide, begun_mb)
    before = site.memory

    of_keys, of_honest = site.attack(keys)
    filled = site.memory

    assert of_honest == {202}
    assert of_keys == {202, 429}
    part = BEGUN_SHARE if begun_mb is None else BEGUN_CEILING
    assert before < filled < min(SHED_MEMORY, before + 1.1 * attackers * part)
    freed = [site.run("prune", "--key", site.revoke(key), "--yes") for key in keys]
    assert {code for code, _ in freed} == {0}, freed
    assert site.memory < before + 0.05
    assert site.run("fsck")[0] == 0
    shares = f"{before:.0%} to {filled:.0%}, {site.memory:.0%} once freed"
    print(f"{size >> 20} MiB, {attackers} keys: {shares}")


def test_without_limits_the_same_attack_passes_the_alarm(server: str, tmp_path: Path) -> None:
    """The control: the attack is able to fill the store."""
    site = Filled(server, tmp_path, 64 * MIB, 1, 0)

    site.attack(ATTACKERS, ALARM_MEMORY)

    assert site.memory > ALARM_MEMORY


APPS: Final = ("blog", "shop")
EVE, BOB, DEVICE = (f"{name}-for-tests-0123456789" for name in ("eve", "bob", "device"))
OURS: Final = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
BUILDS: Final = [f"build-{number:04}" for number in range(500)]
BOARD_METRIC: Final = """
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
        texts = {app: BOARD_METRIC.format(app=app, builds=BUILDS, common=common) for app in APPS}
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
