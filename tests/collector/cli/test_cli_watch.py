"""``hearsay watch``: on a real server, from a file to a message and an exit status for cron."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from client_sdk.core.epoch import day_of
from collector.cli import main
from collector.core.catalog import Catalog
from collector.demo.embedded import EmbeddedStore
from collector.storage.connect import open_connection, open_storage
from collector.storage.hashes import RedisHashes
from collector.storage.records import WatchStore
from tests.support.device.registries import BOOLEAN, file_with
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.watched import fold

CLEAN: Final = {
    name: None for name in os.environ if name.startswith("HEARSAY_") or name == "REDIS_URL"
}
WATCH: Final = '[[watch]]\nname = "dark"\nmetric = "m"\n'


class Deployment:
    """Settings of a store on the shared server, and files in a folder."""

    def __init__(self, url: str, folder: Path) -> None:
        self.folder, self.url, self.keys = folder, url, own_keys(2)
        self.registry = folder / "metrics.toml"
        self.registry.write_text(file_with({**BOOLEAN, "every": '"1d"'}), encoding="utf-8")
        self.catalog = Catalog.from_files([str(self.registry)])

    def hearsay(self, *arguments: str, **env: str) -> Result:
        settings = {
            "HEARSAY_REGISTRY": str(self.registry),
            "REDIS_URL": self.url,
            "HEARSAY_PREFIX": self.keys.prefix,
            "HEARSAY_SHARDS": "2",
        }
        return CliRunner().invoke(main, arguments, env={**CLEAN, **settings, **env})

    def watches(self, text: str) -> str:
        path = self.folder / "watches.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)


@pytest.fixture
def deployment(real_store: EmbeddedStore, tmp_path: Path) -> Deployment:
    return Deployment(real_store.url, tmp_path)


@pytest.mark.real
@needs_real
@pytest.mark.parametrize(
    ("rule", "status"), [("above = 0.5", 2), ("below = 0.5", 0), ('above = 1\nitem = "x"', 3)]
)
def test_one_round_tells_cron_by_its_status(deployment: Deployment, rule: str, status: int) -> None:
    store = open_storage(deployment.url, deployment.keys.prefix, 2, "standard")
    store.prepare()
    for back in (2, 3):
        fold(store, deployment.catalog, day_of(time.time()) - back, 20_000, 0.9)
    path = deployment.watches(WATCH + rule)
    try:
        first = deployment.hearsay("watch", path, "--once")
        again = deployment.hearsay("watch", "--once", HEARSAY_WATCHES=path)
    finally:
        store.destroy()

    assert (first.exit_code, again.exit_code) == (status, status), first.output
    assert "messages that wait: 0" in first.output
    assert ("dark: unable: m: cannot be computed: " in first.output) == (status == 3)


@pytest.mark.real
@needs_real
def test_a_round_names_what_is_unknown_and_why_and_fails_beside_another_process(
    deployment: Deployment,
) -> None:
    store = open_storage(deployment.url, deployment.keys.prefix, 2, "standard")
    store.prepare()
    path = deployment.watches(WATCH + "above = 0.5")
    try:
        alone = deployment.hearsay("watch", path, "--once")
        watches = WatchStore(RedisHashes(open_connection(deployment.url), deployment.keys.prefix))
        read, ledger = watches.ledger()
        watches.replace(read, replace(ledger, holder="another", until=watches.now() + 60))
        beside = deployment.hearsay("watch", path, "--once")
    finally:
        store.destroy()

    assert alone.exit_code == 0, alone.output
    assert "dark: unknown: Dark mode: not enough reports" in alone.output
    assert beside.exit_code == 1
    assert "another process evaluates the watches and sends their messages" in beside.output


@pytest.mark.real
@needs_real
def test_a_report_of_a_store_without_reports_is_an_error_and_no_file(
    deployment: Deployment,
) -> None:
    store = open_storage(deployment.url, deployment.keys.prefix, 2, "standard")
    store.prepare()
    out = deployment.folder / "week.html"
    try:
        result = deployment.hearsay("report", "--output", str(out))
    finally:
        store.destroy()

    assert result.exit_code == 1
    assert f"HEARSAY_PREFIX={deployment.keys.prefix}: has no report of these" in result.output
    assert "set REDIS_URL, HEARSAY_PREFIX and HEARSAY_REGISTRY" in result.output
    assert not out.exists()


def test_a_check_says_how_often_each_watch_may_err(deployment: Deployment) -> None:
    result = deployment.hearsay("watch", "--check", deployment.watches(WATCH + "above = 0.5"))

    assert result.output.splitlines() == [
        "dark: Dark mode: above 50 %; errs in at most 0.00014 of its evaluations",
        "all together: a false alarm in any 365 days with a chance of at most 0.05",
    ]
    assert result.exit_code == 0


def test_the_example_is_right_for_the_example_of_a_registry(deployment: Deployment) -> None:
    result = deployment.hearsay(
        "watch", "--check", "examples/watches.toml", HEARSAY_REGISTRY="examples/metrics.toml"
    )

    assert result.exit_code == 0, result.output
    assert [line.partition(":")[0] for line in result.output.splitlines()] == [
        *("slow-start", "theme-changed", "silent", "all together")
    ]


def test_a_check_fails_for_a_metric_that_is_gone(deployment: Deployment) -> None:
    text = WATCH.replace('"m"', '"gone"') + "above = 1"

    result = deployment.hearsay("watch", "--check", deployment.watches(text))

    assert "dark: gone is no metric of the registries" in result.output
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("text", "what"), [("", "HEARSAY_WATCHES=: must name"), (WATCH, "must have exactly one of")]
)
def test_what_is_wrong_with_the_file_is_said_in_a_line(
    deployment: Deployment, text: str, what: str
) -> None:
    arguments = [deployment.watches(text)] if text else []

    result = deployment.hearsay("watch", *arguments)

    assert result.exit_code == 1
    assert what in result.output
    assert "Traceback" not in result.output


@pytest.mark.real
@needs_real
def test_a_report_is_written_to_a_file(deployment: Deployment) -> None:
    store = open_storage(deployment.url, deployment.keys.prefix, 2, "standard")
    store.prepare()
    for back in range(2, 9):
        fold(store, deployment.catalog, day_of(time.time()) - back, 20_000, 0.9)
    out = deployment.folder / "week.html"
    try:
        result = deployment.hearsay("report", "--output", str(out))
    finally:
        store.destroy()

    assert result.exit_code == 0, result.output
    assert "<h3>Dark mode</h3>" in out.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "--output=: must name a file"),
        (["--mail", "team"], "HEARSAY_WATCHES=: must name the file"),
        (["--mail", "team", "--watches", "examples/watches.toml"], "these are: none"),
    ],
)
def test_a_report_that_goes_nowhere_is_refused(
    deployment: Deployment, arguments: list[str], what: str
) -> None:
    result = deployment.hearsay("report", *arguments)

    assert result.exit_code == 1
    assert what in result.output
