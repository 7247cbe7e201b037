"""Copies, restores and damage: the ledger is doubted and closed for a week; nothing is repeated."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import nullcontext
from pathlib import Path

import pytest

from client_sdk.privacy.caps import Caps
from client_sdk.registry import Registry
from client_sdk.storage.rollback import GENERATION_FILE, identity_of
from client_sdk.storage.schema import FILE_NAME, RESERVE_FILE
from client_sdk.storage.secret import DAMAGED_SUFFIX, NAMES_FILE, SECRET_FILE
from tests.client_sdk.test_gateway import make_gateway
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    alter,
    bytes_on_disk,
    changed,
    crashing,
    make_client,
    metric_text,
    registry_of,
    rows,
)
from tests.support.device.device_transport import ScriptedTransport

NANO = 10**9
OWN_FILES = [SECRET_FILE, RESERVE_FILE, GENERATION_FILE]
WAITING = "SELECT (SELECT count(*) FROM reports), (SELECT count(*) FROM uploads)"
WEEK = "SELECT coalesce(sum(nano), 0) FROM totals"


def registry(count: int = 6) -> Registry:
    """Return boolean metrics m0, m1, … of one epsilon, the first of them permanent."""
    texts = [metric_text(f"m{i}") for i in range(count)]
    texts[0] = texts[0].replace('"fresh"', '"permanent"')
    return registry_of(*texts)


def used(folder: Path, clock: FakeClock, *, crash: bool = False) -> None:
    """Leave in *folder* what a client had that recorded two values and could not send them.

    Args: crash: whether the log is left as it was, rather than folded in.
    """
    transport = ScriptedTransport([503] * 9)
    client = make_client(folder, registry=registry(), clock=clock, transport=transport)
    client.record("m0", True)
    client.flush()
    client.record("m1", True)
    with crashing(folder) if crash else nullcontext():
        client.close()


def record_all(folder: Path, clock: FakeClock) -> tuple[dict[str, int], list[bytes]]:
    """Record every metric with the data in *folder*; return the counts and what was sent."""
    transport = ScriptedTransport()
    client = make_client(folder, registry=registry(), clock=clock, transport=transport)
    for i in range(6):
        client.record(f"m{i}", True)
    client.flush()
    client.close()
    return changed(client), transport.sent


def put_back(folder: Path, saved: dict[str, bytes]) -> None:
    """Write the *saved* files over those in *folder*, as a restore in place does."""
    for name, content in saved.items():
        (folder / name).write_bytes(content)


def test_the_original_of_a_copy_goes_on(tmp_path: Path) -> None:
    clock = FakeClock()
    used(tmp_path / "first", clock)
    shutil.copytree(tmp_path / "first", tmp_path / "copy")

    counts, _ = record_all(tmp_path / "first", clock)

    assert counts == {"recorded": 4, "already_reported": 2}
    assert rows(tmp_path / "first", WAITING) == [(5, 1)]


def test_a_copy_has_no_token_of_its_original(tmp_path: Path) -> None:
    """Two uploads with one token would be one: the second would be taken for a repetition."""
    clock = FakeClock()
    used(tmp_path / "first", clock)
    alter(tmp_path / "first", "INSERT INTO tokens VALUES (x'01', 1, x'02', 0)")
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    for name in ("first", "copy"):
        record_all(tmp_path / name, clock)

    kept = [rows(tmp_path / name, "SELECT count(*) FROM tokens") for name in ("first", "copy")]

    assert kept == [[(1,)], [(0,)]]


def test_a_copy_counts_no_time_that_passed_elsewhere(tmp_path: Path) -> None:
    """How long the copy's machine has run is no measure of the time since the copy was made."""
    used(tmp_path / "first", FakeClock())
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    elsewhere = FakeClock()
    elsewhere.advance(days=400)

    record_all(tmp_path / "copy", elsewhere)

    days = rows(tmp_path / "copy", "SELECT DISTINCT last FROM costs")
    assert days == rows(tmp_path / "first", "SELECT DISTINCT last FROM costs")


def test_a_copy_does_not_tell_at_which_reports_a_value_was_new(tmp_path: Path) -> None:
    """Its memo is dropped, so the rows of a repeated metric would be all that tells."""
    clock = FakeClock()
    for value in (True, False, False):
        client = make_client(tmp_path / "first", registry=registry(1), clock=clock)
        client.record("m0", value)
        client.close()
        clock.advance(days=1)
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    make_client(tmp_path / "copy", registry=registry(1), clock=clock).record("m0", True)

    charged = rows(tmp_path / "copy", "SELECT nano FROM costs WHERE digest <> x'' ORDER BY first")

    assert charged == [(2 * NANO,)]


@pytest.mark.parametrize("count", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_copies_share_no_report_no_memo_and_no_budget(tmp_path: Path, count: int) -> None:
    """A copy spends nothing for a week and sends nothing twice; its charges alone are kept."""
    clock = FakeClock()
    used(tmp_path / "first", clock)
    secrets = {(tmp_path / "first" / SECRET_FILE).read_bytes()}
    for i in range(count):
        copy = tmp_path / f"copy {i}"
        shutil.copytree(tmp_path / "first", copy)

        counts, sent = record_all(copy, clock)

        assert (counts, sent) == ({"already_reported": 2, "budget": 4, "store": 1}, [])
        assert rows(copy, "SELECT count(*) FROM memo") == [(0,)]
        assert rows(copy, WEEK) == [(8 * NANO,)]
        clock.advance(days=7)
        assert record_all(copy, clock)[0]["recorded"] == 6
        secrets.add((copy / SECRET_FILE).read_bytes())
        clock.advance(days=-7)
    assert len(secrets) == count + 1


def test_a_database_put_back_in_place_is_doubted(tmp_path: Path) -> None:
    """Its inode tells nothing, but the generation file knows that there were more charges."""
    clock = FakeClock()
    used(tmp_path, clock)
    saved = {FILE_NAME: (tmp_path / FILE_NAME).read_bytes()}
    record_all(tmp_path, clock)

    put_back(tmp_path, saved)
    counts, sent = record_all(tmp_path, clock)

    assert (counts, sent) == ({"already_reported": 2, "budget": 4, "store": 1}, [])


@pytest.mark.parametrize("left", [*([name] for name in OWN_FILES), OWN_FILES], ids=str)
def test_a_deleted_database_is_doubted_by_whatever_is_left_beside_it(
    tmp_path: Path, left: list[str]
) -> None:
    """Law: only a folder without any of its files begins with a full budget."""
    clock = FakeClock()
    used(tmp_path, clock)
    for path in tmp_path.iterdir():
        if path.name not in left:
            path.unlink()

    counts, sent = record_all(tmp_path, clock)

    assert (counts, sent) == ({"budget": 6, "store": 1}, [])
    clock.advance(days=7)
    assert record_all(tmp_path, clock)[0]["recorded"] == 6


def test_a_gateway_without_its_database_is_doubted_by_the_secret_of_its_names(
    tmp_path: Path,
) -> None:
    """Law: it outlives a denial, and so does the sign."""
    clock = FakeClock()
    for expected in ({"recorded": 1}, {"budget": 1, "store": 1}):
        gateway = make_gateway(tmp_path, registry=registry(), clock=clock)
        gateway.record("machine", "m1", True)
        gateway.close()
        assert {reason: n for reason, n in gateway.stats().items() if n} == expected
        for path in tmp_path.iterdir():
            if path.name != NAMES_FILE:
                path.unlink()


def test_an_empty_folder_begins_with_a_full_budget(tmp_path: Path) -> None:
    """What is not promised: a reinstall, or deleting the whole folder."""
    clock = FakeClock()
    used(tmp_path, clock)
    shutil.rmtree(tmp_path)

    assert record_all(tmp_path, clock)[0]["recorded"] == 6


def test_a_database_replaced_under_a_running_client_is_opened_anew(tmp_path: Path) -> None:
    clock = FakeClock()
    used(tmp_path, clock)
    shutil.copy(tmp_path / FILE_NAME, tmp_path / "backup")
    client = make_client(tmp_path, registry=registry(), clock=clock)
    client.record("m2", True)

    os.replace(tmp_path / "backup", tmp_path / FILE_NAME)
    client.record("m3", True)

    assert changed(client)["store"] == changed(client)["budget"] == 1
    client.close()


def test_a_folder_that_was_renamed_is_not_doubted(tmp_path: Path) -> None:
    clock = FakeClock()
    used(tmp_path / "first", clock)
    (tmp_path / "first").rename(tmp_path / "second")

    counts, _ = record_all(tmp_path / "second", clock)

    assert "store" not in counts
    assert counts["recorded"] == 4


def test_an_identity_tells_files_apart_and_stays(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()

    first, other = identity_of(str(tmp_path / "a")), identity_of(str(tmp_path / "b"))
    (tmp_path / "a").write_bytes(b"changed")

    assert first != other
    assert identity_of(str(tmp_path / "a")) == first


def test_a_damaged_database_is_set_aside_and_the_next_begins_in_doubt(tmp_path: Path) -> None:
    clock = FakeClock()
    used(tmp_path, clock)
    whole = damage(tmp_path)

    counts, sent = record_all(tmp_path, clock)

    assert (counts, sent) == ({"budget": 6, "store": 1}, [])
    assert (tmp_path / (FILE_NAME + DAMAGED_SUFFIX)).read_bytes() == whole
    clock.advance(days=7)
    assert record_all(tmp_path, clock)[0]["recorded"] == 6


def damage(folder: Path) -> bytes:
    """Overwrite the beginning of the database in *folder*; return what it is now."""
    whole = bytearray((folder / FILE_NAME).read_bytes())
    whole[:1024] = b"\xa5" * 1024
    (folder / FILE_NAME).write_bytes(whole)
    return bytes(whole)


def test_the_secret_is_gone_before_a_damaged_database_is_set_aside(tmp_path: Path) -> None:
    """Also before the first charge: with it, what is in the file's windows could be read."""
    summing = registry_of(metric_text("m", 'type = "boolean"\naggregate = "any"'))
    client = make_client(tmp_path, registry=summing)
    client.record("m", True)
    client.close()
    secret = (tmp_path / SECRET_FILE).read_bytes()
    damage(tmp_path)

    client = make_client(tmp_path, registry=summing)
    client.record("m", True)

    client.close()
    assert (tmp_path / (FILE_NAME + DAMAGED_SUFFIX)).exists()
    assert secret not in bytes_on_disk(tmp_path)
    assert changed(client) == {"aggregated": 1, "window_opened": 1, "store": 1}


@pytest.mark.parametrize("consent", ["denied", "granted"])
def test_a_denial_takes_away_what_was_set_aside(tmp_path: Path, consent: str) -> None:
    """What waited is in it, perturbed and true to the byte."""
    clock = FakeClock()
    used(tmp_path, clock)
    damage(tmp_path)
    record_all(tmp_path, clock)
    (tmp_path / (FILE_NAME + DAMAGED_SUFFIX + "-wal")).write_bytes(b"of somebody who looked")

    make_client(tmp_path, clock=clock, consent=consent).close()

    left = [path.name for path in tmp_path.iterdir() if DAMAGED_SUFFIX in path.name]
    assert len(left) == (0 if consent == "denied" else 2)


def test_a_denial_takes_the_secret_away_where_the_database_is_gone(tmp_path: Path) -> None:
    used(tmp_path, FakeClock())
    (tmp_path / FILE_NAME).unlink()

    make_client(tmp_path, consent="denied").close()

    assert not (tmp_path / SECRET_FILE).exists()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM charges",
        "UPDATE charges SET epoch = epoch - 1",
        "UPDATE costs SET first = first - 30, last = last - 30",
        "UPDATE costs SET nano = 0; UPDATE totals SET nano = 0",
        "UPDATE totals SET nano = nano / 2",
        "DELETE FROM totals",
        "UPDATE meta SET value = 0 WHERE key = 'checksum'",
        "UPDATE meta SET value = 'x' WHERE key = 'generation'",
    ],
)
def test_a_ledger_that_was_changed_behind_its_back_is_damaged(tmp_path: Path, sql: str) -> None:
    """The checksum and the sums tell, even where every page is sound and every rule stands."""
    clock = FakeClock()
    used(tmp_path, clock)
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    triggers = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    rules = connection.execute(triggers).fetchall()
    for name, _ in rules:
        connection.execute(f"DROP TRIGGER {name}")
    connection.executescript(sql)
    for _, rule in rules:
        connection.execute(rule)
    connection.commit()
    connection.close()

    counts, _ = record_all(tmp_path, clock)

    assert counts == {"budget": 6, "store": 1}


@pytest.mark.parametrize("rule", ["costs_never_fall", "costs_are_carried", "totals_never_fall"])
def test_a_ledger_without_one_of_its_rules_is_damaged(tmp_path: Path, rule: str) -> None:
    """Law: what is sound now could be changed by the next statement."""
    clock = FakeClock()
    used(tmp_path, clock)
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute(f"DROP TRIGGER {rule}")
    connection.close()

    counts, _ = record_all(tmp_path, clock)

    assert counts == {"budget": 6, "store": 1}


def overwritten(folder: Path, chance: random.Random) -> None:
    """Overwrite a random stretch of a random file of the database."""
    names = [name for name in (FILE_NAME, f"{FILE_NAME}-wal") if (folder / name).exists()]
    path = folder / chance.choice(names)
    content = bytearray(path.read_bytes())
    length = min(len(content), 1 << chance.randrange(12))
    begin = chance.randrange(len(content) - length + 1)
    content[begin : begin + length] = chance.randbytes(length)
    path.write_bytes(content)


@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_no_overwriting_frees_a_budget_or_is_seen_by_the_app(tmp_path: Path, count: int) -> None:
    """Law: whatever is overwritten, the app sees no error and no cap is passed."""
    chance, clock = random.Random(7), FakeClock()
    closed = 0
    for i in range(count):
        data = tmp_path / str(i)
        used(data, clock, crash=bool(i % 2))
        overwritten(data, chance)

        client = make_client(data, registry=registry(), clock=clock, caps=Caps(week="3"))
        for j in range(6):
            client.record(f"m{j}", True)
        client.close()

        counts = changed(client)
        assert "internal" not in counts
        assert sum(counts.values()) >= 6
        assert counts.get("recorded", 0) <= 3 - 2
        closed += "recorded" not in counts
    assert closed > count // 20  # the damage was felt at times


def test_the_generation_file_holds_a_number_and_nothing_else(tmp_path: Path) -> None:
    used(tmp_path, FakeClock())

    assert (tmp_path / GENERATION_FILE).read_bytes() == b"2".rjust(20, b"0")
