"""``hearsay doctor`` and ``hearsay check-config`` as people run them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from click.testing import CliRunner, Result

from client_sdk.core.epoch import day_of
from client_sdk.wire.private_token import week_of
from collector.cli import main
from collector.demo.embedded import EmbeddedStore
from collector.issuer.keys import make_keys as make_issuer_keys
from collector.issuer.keys import write_keys
from collector.operations.telemetry.activity import WORKER
from collector.storage.connect import open_storage
from collector.storage.connection import Connection
from collector.storage.hashes import RedisHashes
from collector.storage.records import ActivityRecord, ActivityStore
from tests.support.crowds.uploads import READ_TOKEN, WRITE_KEY, registry_text
from tests.support.sites.capsules import make_keys
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import DAY

NOBODY_THERE = "redis://127.0.0.1:1/0"
PASSWORD = "canary-of-a-password"

Run: TypeAlias = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs ``hearsay`` with arguments and settings."""
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(expires="2099-12-31"), encoding="utf-8")

    def hearsay(*arguments: str, **settings: str) -> Result:
        environment = {"HEARSAY_REGISTRY": str(path), "HEARSAY_WRITE_KEY": WRITE_KEY, **settings}
        return CliRunner().invoke(main, arguments, env=environment)

    return hearsay


def test_good_settings_are_shown_without_their_secrets_and_nobody_is_asked(run: Run) -> None:
    """It runs where there is no store, and what it prints may be pasted into a ticket."""
    url = f"redis://someone:{PASSWORD}@127.0.0.1:1/0"
    done = run("check-config", REDIS_URL=url, HEARSAY_READ_TOKEN=READ_TOKEN)

    assert done.exit_code == 0
    assert "profile = standard\n" in done.output
    assert "redis_url = ***\n" in done.output
    assert [s for s in (PASSWORD, WRITE_KEY, READ_TOKEN) if s in done.output] == []


def test_the_file_of_watches_is_read_and_what_can_never_be_computed_is_named(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "watches.toml"
    watch = '[[watch]]\nname = "{}"\nmetric = "{}"\nabove = 0.5\nitem = "home"\n'
    path.write_text(watch.format("good", "page"), encoding="utf-8")
    good = run("check-config", "--strict", HEARSAY_WATCHES=str(path))
    path.write_text(watch.format("good", "page") + watch.format("lost", "nowhere"), "utf-8")
    lost = run("check-config", HEARSAY_WATCHES=str(path))
    path.write_text("[[watch]]\nname = 1\n", encoding="utf-8")
    broken = run("check-config", HEARSAY_WATCHES=str(path))

    assert "1 watch" in good.output
    assert "can never be computed" not in good.output
    assert (lost.exit_code, "can never be computed: lost" in lost.output) == (0, True)
    assert (broken.exit_code, "watch" in broken.output) == (1, True)


def test_a_heartbeat_that_cannot_be_written_is_named_with_status_1(run: Run) -> None:
    done = run("check-config", HEARSAY_HEARTBEAT="/nowhere/beat")

    assert done.exit_code == 1
    assert "HEARSAY_HEARTBEAT=/nowhere/beat" in done.output


def test_the_keys_of_capsules_are_named_and_a_wrong_file_of_them_is_status_1(
    run: Run, tmp_path: Path
) -> None:
    keys = make_keys(tmp_path)
    done = run("check-config", HEARSAY_OBLIVIOUS_KEYS=keys.path)
    Path(keys.path).chmod(0o644)
    open_to_all = run("check-config", HEARSAY_OBLIVIOUS_KEYS=keys.path)
    missing = run("check-config", HEARSAY_OBLIVIOUS_KEYS="/nowhere")

    assert (done.exit_code, "opened by key " in done.output) == (0, True)
    assert [wrong.exit_code for wrong in (open_to_all, missing)] == [1, 1]
    assert "chmod 600" in open_to_all.output
    assert "HEARSAY_OBLIVIOUS_KEYS=/nowhere: cannot be read" in missing.output


def test_two_apps_that_define_a_metric_alike_are_named_with_status_1(
    run: Run, tmp_path: Path
) -> None:
    """As at the start: reports of one would be counted among those of the other."""
    paths = [tmp_path / f"{app}.toml" for app in ("test", "other")]
    for path in paths:
        text = registry_text(expires="2099-12-31").replace('app = "test"', f'app = "{path.stem}"')
        path.write_text(text, encoding="utf-8")

    done = run("check-config", HEARSAY_REGISTRY=os.pathsep.join(map(str, paths)))

    assert done.exit_code == 1
    assert "is defined alike in test and other" in done.output


def test_what_is_legal_and_hardly_meant_is_status_1_only_if_strict(run: Run) -> None:
    risky = {"HEARSAY_PROFILE": "volatile"}

    assert run("check-config", **risky).exit_code == 0
    assert run("check-config", "--strict", **risky).exit_code == 1


def test_a_store_that_does_not_answer_is_a_finding_with_a_next_step(run: Run) -> None:
    """The doctor itself never fails of what it is there to find."""
    done = run("doctor", "--json", REDIS_URL=NOBODY_THERE)

    document = json.loads(done.output)
    assert done.exit_code == 1
    assert document["worst"] == "fault"
    assert [one["check"] for one in document["findings"]] == ["store"]
    assert document["findings"][0]["next"]


@pytest.mark.real
@needs_real
def test_the_doctor_of_a_real_store_sees_what_it_lacks_and_then_that_it_has_it(
    run: Run, real_store: EmbeddedStore
) -> None:
    """Before and after hearsay init; a worker is still missing."""
    keys = own_keys(4)
    settings = {"REDIS_URL": real_store.url, "HEARSAY_PREFIX": keys.prefix}

    before = run("doctor", **settings)
    prepared = run("init", **settings)
    after = run("doctor", **settings)
    strict = run("doctor", "--strict", **settings)
    open_storage(real_store.url, keys.prefix, 4, "standard").destroy()

    assert (before.exit_code, prepared.exit_code) == (1, 0)
    assert "fault    shards: none are recorded\n" in before.output
    assert "next: run hearsay init" in before.output
    assert (after.exit_code, strict.exit_code) == (0, 1)
    assert "warning  workers: none lives\n" in after.output
    assert "good     conservation: 0 accepted uploads, all accounted for\n" in after.output


@pytest.mark.real
@needs_real
def test_the_doctor_sees_uploads_that_workers_hold_and_do_not_fold(
    run: Run, real_store: EmbeddedStore
) -> None:
    """As one leaves them whose registry lacks their metric; what waits for a worker is no such."""
    keys = own_keys(1)
    settings = {
        "REDIS_URL": real_store.url,
        "HEARSAY_PREFIX": keys.prefix,
        "HEARSAY_SHARDS": "1",
    }
    run("init", **settings)
    connection = Connection.open(real_store.url)
    store = open_storage(real_store.url, keys.prefix, 1, "standard")
    sign = ActivityRecord(WORKER, "0a", {}, int(time.time()))
    ActivityStore(RedisHashes(connection, keys.prefix)).put(day_of(time.time()), sign)
    store.append(bytes(16), DAY, b"entry", 1)

    waiting = run("doctor", **settings)
    store.claim(0, "one", 9, 0)
    held = run("doctor", **settings)
    store.destroy()

    assert "are not folded" not in waiting.output
    assert "warning  workers: 1 upload given to workers" in held.output


def test_a_release_is_asked_for_before_the_keys_of_tokens_end(run: Run, tmp_path: Path) -> None:
    said = {}
    for weeks in (9, 3):
        secret = tmp_path / f"issuer-{weeks}"
        write_keys(
            make_issuer_keys("a.example", this_week(), weeks, 1), secret, tmp_path / "public"
        )
        said[weeks] = run("check-config", HEARSAY_ISSUER_KEYS=str(tmp_path / "public"))
        (tmp_path / "public").unlink()
    past = make_issuer_keys("a.example", this_week() - 3, 2, 1)
    write_keys(past, tmp_path / "issuer-past", tmp_path / "public")
    ended = run("check-config", "--strict", HEARSAY_ISSUER_KEYS=str(tmp_path / "public"))
    broken = run("check-config", HEARSAY_ISSUER_KEYS=str(tmp_path / "issuer-past"))
    alone = run("check-config", HEARSAY_REQUIRE_TOKEN="1")

    assert "make new keys" not in said[9].output
    assert "make new keys" in said[3].output
    assert (ended.exit_code, "answered 403" in ended.output) == (1, True)
    assert (broken.exit_code, "must be the public file" in broken.output) == (1, True)
    assert (alone.exit_code, "needs HEARSAY_ISSUER_KEYS" in alone.output) == (1, True)


def this_week() -> int:
    return week_of(day_of(time.time()))
