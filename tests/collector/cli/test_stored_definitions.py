"""``init``, ``check-config`` and ``doctor``: no reports in the store are hidden by the registry."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from click.testing import CliRunner, Result

from client_sdk.registry import Registry
from collector.cli import main
from collector.core.cells import Cell
from collector.core.config import Config
from collector.demo.embedded import EmbeddedStore
from collector.operations.processes import run_worker
from collector.storage.connect import open_storage
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.crowds.uploads import WRITE_KEY
from tests.support.device.registries import BOOLEAN, NUMBER, file_with, table
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import DAY, claim_all

pytestmark = [pytest.mark.real, needs_real]

REPORTS = 5_000
AUTO = file_with({**NUMBER, "type": '"duration"', "mechanism": '"auto"'})
BEFORE = file_with({**NUMBER, "type": '"duration"', "mechanism": '"hybrid"'})
OTHER = table("ui.theme", BOOLEAN)
PIN = re.compile(r"mechanism = \"\w+\"(?:, parameters = \{.*?\})?(?= under \[metrics\.m\])")

Run: TypeAlias = Callable[..., Result]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.toml"


@pytest.fixture
def keys() -> Keys:
    return own_keys(4)


@pytest.fixture
def store(real_store: EmbeddedStore, keys: Keys) -> Iterator[RedisStorage]:
    storage = open_storage(real_store.url, keys.prefix, keys.shards, "standard")
    yield storage
    storage.destroy()


@pytest.fixture
def run(path: Path, real_store: EmbeddedStore, keys: Keys) -> Run:
    """Return a function that runs ``hearsay`` with a registry of the texts that are given."""

    def hearsay(command: str, *texts: str) -> Result:
        paths = [path.with_name(f"metrics{place or ''}.toml") for place in range(len(texts))]
        for own, text in zip(paths, texts, strict=True):
            own.write_text(text, encoding="utf-8")
        settings = {
            "HEARSAY_REGISTRY": ":".join(map(str, paths)),
            "HEARSAY_WRITE_KEY": WRITE_KEY,
            "REDIS_URL": real_store.url,
            "HEARSAY_PREFIX": keys.prefix,
        }
        return CliRunner().invoke(main, command.split(), env=settings)

    return hearsay


def digest_of(text: str, name: str = "m") -> str:
    return Registry.from_text(text).metric(name).digest.hex()


def fold(store: RedisStorage, digest: str) -> None:
    """Put reports of a definition into the store, as a worker does."""
    upload = secrets.token_bytes(16)
    store.append(upload, DAY, b"entry", REPORTS)
    (entry,) = claim_all(store)
    cell = Cell(bytes.fromhex(digest), 20_000, "")
    store.fold(store.shard_of(upload), [entry.id], {cell: [(0, REPORTS)]})


def findings(result: Result) -> list[str]:
    """Return what is found of definitions, a finding with its next step a text."""
    text = result.output.replace("\n         ", " ")
    return [line for line in text.splitlines() if "definitions: " in line]


@pytest.mark.parametrize("command", ["check-config", "init", "doctor"])
def test_reports_that_another_choice_of_auto_hides_are_named_with_the_lines_that_pin_it(
    run: Run, store: RedisStorage, command: str
) -> None:
    """As after an upgrade: the file is the same, and its digest is not."""
    run("init", BEFORE)
    fold(store, digest_of(BEFORE))

    (finding,) = findings(run(command, AUTO))

    assert finding.startswith(
        f"warning  definitions: m: 5,000 reports under definition {digest_of(BEFORE)}"
    )
    assert "the mechanism is minimax now" in finding
    (lines,) = PIN.findall(finding)
    pinned = AUTO.replace('mechanism = "auto"', lines.replace(", param", "\nparam"))
    assert digest_of(pinned) == digest_of(BEFORE)
    assert "warning" not in "".join(findings(run(command, pinned)))
    assert "warning" not in "".join(findings(run(command, AUTO, pinned)))


def test_a_strict_check_of_settings_stops_an_upgrade_that_would_hide_reports(
    run: Run, store: RedisStorage
) -> None:
    run("init", BEFORE)
    fold(store, digest_of(BEFORE))

    assert run("check-config --strict", BEFORE).exit_code == 0
    assert run("check-config --strict", AUTO).exit_code == 1


def test_definitions_without_reports_are_not_spoken_of(run: Run, store: RedisStorage) -> None:
    """Law: only what somebody would miss is named; a pruned definition is not."""
    run("init", BEFORE)
    empty = findings(run("doctor", AUTO))
    fold(store, digest_of(BEFORE))
    held = findings(run("doctor", AUTO))

    run(f"prune --metric {digest_of(BEFORE)} --yes", AUTO)

    assert "5,000 reports" in "".join(held)
    for found in (empty, findings(run("doctor", AUTO))):
        assert [line.split()[0] for line in found] == ["good"]


def test_a_change_by_hand_names_the_keys_and_a_metric_that_is_gone_names_both_ways_out(
    run: Run, store: RedisStorage
) -> None:
    """Notes, as they may be meant: an upgrade that is not to blame is not stopped."""
    run("init", BEFORE + OTHER)
    fold(store, digest_of(BEFORE))
    fold(store, digest_of(BEFORE + OTHER, "ui.theme"))

    changed, gone = sorted(findings(run("doctor", BEFORE.replace('"1.0"', '"2.0"'))))

    assert changed.startswith("note     definitions: m: 5,000 reports")
    assert "changed since then: epsilon" in changed
    assert 'mechanism = "hybrid", parameters = {' in changed
    assert "name the registry file of that time" in changed
    assert gone.startswith("note     definitions: notes/ui.theme: 5,000 reports")
    assert 'under [metrics."ui.theme"]' in gone
    assert f"hearsay prune --metric {digest_of(BEFORE + OTHER, 'ui.theme')}" in gone


def test_a_worker_records_what_it_folds_where_init_never_ran(
    run: Run, store: RedisStorage, keys: Keys, real_store: EmbeddedStore, path: Path
) -> None:
    path.write_text(BEFORE, encoding="utf-8")
    settings = {"HEARSAY_REGISTRY": str(path), "REDIS_URL": real_store.url}
    stop = threading.Event()
    stop.set()
    run_worker(Config.from_env({**settings, "HEARSAY_PREFIX": keys.prefix}), stop)
    fold(store, digest_of(BEFORE))

    assert "5,000 reports" in "".join(findings(run("check-config", AUTO)))


def test_a_record_that_is_not_ours_hides_no_other_and_ends_no_command(
    run: Run, store: RedisStorage, keys: Keys, real_store: EmbeddedStore
) -> None:
    run("init", BEFORE)
    fold(store, digest_of(BEFORE))
    connection, key = Connection.open(real_store.url), f"{keys.prefix}:definitions"
    planted = [
        "{",
        "{}",
        "[1]",
        "[1, 2, 3]",
        '["a/m", "\\u001b[2J", {}]',
        '["a/m", "p", {"\\n": ""}]',
    ]
    for place, record in enumerate(planted):
        connection.call("HSET", key, f"{place:012x}", record)
        fold(store, f"{place:012x}")
    connection.call("HSET", key, "x", "{}")

    result = run("doctor", AUTO)

    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert len(findings(result)) == 1
