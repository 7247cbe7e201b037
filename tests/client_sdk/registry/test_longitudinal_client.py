"""Metrics that are asked again: what repeats, what is charged, and what is left on the device."""

from __future__ import annotations

import sqlite3
from itertools import product
from pathlib import Path

import pytest

from client_sdk.core.dataclass import replace
from client_sdk.core.errors import StoreError
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import Consent, ConsentSwitch
from client_sdk.recording.inbox import ReportView
from client_sdk.recording.recorder import Recorder
from client_sdk.registry import Registry
from client_sdk.registry.longitudinal import encode_item
from client_sdk.storage.ledger import Ledger, tag_of
from client_sdk.storage.outbox import Outbox
from client_sdk.storage.schema import FILE_NAME
from client_sdk.storage.secret import SECRET_FILE
from client_sdk.storage.store import Store
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    CANARY,
    bytes_on_disk,
    changed,
    collecting,
    make_client,
    rows,
)
from tests.support.device.device_transport import NoEntropy
from tests.support.device.registries import CATEGORY, TWO_LAYER, file_with
from tests.support.enumeration.populations import metric_of
from tests.support.enumeration.seeded import SeededRandomness

VALUES = f'["plain", "dark", "{CANARY}"]'
PERMANENT = {**CATEGORY, "values": VALUES, "longitudinal": '"permanent"', "every": '"1d"'}
LAYERED = {**TWO_LAYER, "values": VALUES, "every": '"1d"'}
LEDGER = "charges", "costs", "totals"
NANOS = "SELECT nano FROM costs ORDER BY first"


def payloads_of(folder: Path | None, fields: dict[str, str], values: list[str]) -> list[bytes]:
    """Record *values* on consecutive days, restarting after each, and return the payloads."""
    registry, clock = Registry.from_text(file_with(fields)), FakeClock()
    seen: list[ReportView] = []
    for value in values:
        client = make_client(
            *(folder,),
            registry=registry,
            clock=clock,
            caps=Caps(week="900"),
            on_report=collecting(seen),
        )
        client.record("m", value)
        client.close()
        assert client.stats()["recorded"] == 1
        clock.advance(days=1)
    return [view.payload for view in seen]


def test_a_constant_value_gives_one_permanent_payload_across_restarts(tmp_path: Path) -> None:
    payloads = payloads_of(tmp_path, PERMANENT, ["dark"] * 4)

    assert len(set(payloads)) == 1


def test_a_permanent_response_is_charged_once_a_value(tmp_path: Path) -> None:
    """A value that comes back costs nothing more; it gives the payload that it had."""
    values = ["dark", "dark", "plain", "dark", "plain", CANARY]
    spent = metric_of(PERMANENT).mechanism.spent_nano

    payloads = payloads_of(tmp_path, PERMANENT, values)

    charged = [nano for (nano,) in rows(tmp_path, NANOS)]
    assert charged == [spent, 0, spent, 0, 0, spent]
    assert payloads[0] == payloads[1] == payloads[3]
    assert payloads[2] == payloads[4]


def test_a_two_layer_response_is_charged_as_its_policy_says(tmp_path: Path) -> None:
    """Together, the charges of n reports of a value are what n reports spend."""
    metric = metric_of(LAYERED)
    assert metric.policy is not None
    values = ["dark", "dark", "plain", "dark", "plain", "plain"]
    counts = [0, 1, 0, 2, 1, 2]

    payloads_of(tmp_path, LAYERED, values)

    charged = [nano for (nano,) in rows(tmp_path, NANOS)]
    assert charged == [metric.policy.nano_after(count) for count in counts]
    of_dark = charged[0] + charged[1] + charged[3]
    assert of_dark == -(-metric.policy.spent_after(3) * 10**9 // 1)


def test_a_new_secret_makes_new_responses_and_new_charges(tmp_path: Path) -> None:
    registry, clock = Registry.from_text(file_with(PERMANENT)), FakeClock()
    for _ in range(2):
        client = make_client(tmp_path, registry=registry, clock=clock)
        client.record("m", "dark")
        client.close()
        (tmp_path / SECRET_FILE).unlink()
        clock.advance(days=1)

    spent = metric_of(PERMANENT).mechanism.spent_nano
    assert rows(tmp_path, NANOS) == [(spent,), (spent,)]
    assert rows(tmp_path, "SELECT count(*) FROM memo") == [(2,)]


def test_a_revocation_forgets_memo_and_secret_and_keeps_the_charges(tmp_path: Path) -> None:
    client = make_client(tmp_path, registry=Registry.from_text(file_with(PERMANENT)))
    client.record("m", "dark")
    secret = (tmp_path / SECRET_FILE).read_bytes()

    client.set_consent("denied")

    client.close()
    assert not (tmp_path / SECRET_FILE).exists()
    assert secret not in bytes_on_disk(tmp_path)
    assert rows(tmp_path, "SELECT (SELECT count(*) FROM memo), (SELECT count(*) FROM charges)") == [
        (0, 1)
    ]


def test_the_memo_remembers_no_more_than_that_a_value_came_twice(tmp_path: Path) -> None:
    """How often each value was reported is nobody's business, not even the file's."""
    payloads_of(tmp_path, LAYERED, ["dark"] * 5 + ["plain"] * 2)

    assert rows(tmp_path, "SELECT reports FROM memo") == [(2,), (2,)]


DRAWN = {"tag", "payload", "id", "body", "sealed"}  # with the secret, or by chance
OWN = {"identity", "next_upload", "checksum"}  # of the file, of chance, and of the other rows


def told_without_the_secret(folder: Path, values: list[str]) -> dict[str, list[object]]:
    """Record *values* and return every cell of the database but what is drawn, of which the size.

    What is drawn is checked, with the other bytes of all files, for what the values are called.
    """
    payloads_of(folder, PERMANENT, values)
    held = bytes_on_disk(folder)
    assert not any(value.encode() in held for value in values)
    connection = sqlite3.connect(folder / FILE_NAME)
    connection.row_factory = sqlite3.Row
    cells: dict[str, list[object]] = {}
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608 - of the schema
            if table == "meta" and row["key"] in OWN:
                continue
            for key in row.keys():  # noqa: SIM118 - a Row iterates over values
                cell = len(row[key]) if key in DRAWN else row[key]
                cells.setdefault(f"{table}.{key}", []).append(cell)
    connection.close()
    return {name: sorted(column, key=repr) for name, column in cells.items()}  # tags are an order


def test_the_database_without_the_secret_is_the_same_for_histories_that_repeat_alike(
    tmp_path: Path,
) -> None:
    """Only tags and payloads differ, and those depend on a secret that is not in it."""
    first = told_without_the_secret(tmp_path / "a", [CANARY, CANARY, "plain", CANARY])
    second = told_without_the_secret(tmp_path / "b", ["dark", "dark", CANARY, "dark"])

    assert first == second
    assert first["costs.nano"].count(0) == 2  # that they repeat shows, and is not secret
    (tmp_path / "c").mkdir()
    assert first != told_without_the_secret(tmp_path / "c", [CANARY] * 4)


def test_no_tag_comes_back_under_another_secret(tmp_path: Path) -> None:
    tags = set()
    for name in "ab":
        payloads_of(tmp_path / name, PERMANENT, ["dark", "plain"])
        tags |= {tag for (tag,) in rows(tmp_path / name, "SELECT tag FROM memo")}

    assert len(tags) == 4


@pytest.mark.parametrize("fields", [PERMANENT, LAYERED], ids=["permanent", "two_layer"])
def test_a_denial_leaves_what_was_spent_and_not_when_values_were_new(
    tmp_path: Path, fields: dict[str, str]
) -> None:
    """The epochs stay, so none is reported twice; the sum is charged to the latest of them."""
    registry = Registry.from_text(file_with(fields))
    payloads_of(tmp_path, fields, ["dark", "dark", "plain", "dark", CANARY])
    before = rows(tmp_path, "SELECT * FROM charges")
    charged = rows(tmp_path, "SELECT last, nano FROM costs ORDER BY last")
    ((total,),) = rows(tmp_path, "SELECT nano FROM totals")

    make_client(tmp_path, registry=registry, consent="denied").close()

    assert rows(tmp_path, "SELECT * FROM charges") == before
    assert len(charged) == len(before) == 5
    assert rows(tmp_path, "SELECT last, nano FROM costs") == [(charged[-1][0], total)]
    assert total == sum(nano for _, nano in charged)
    again = make_client(tmp_path, registry=registry)
    again.record("m", "dark")
    again.close()
    assert changed(again) == {"already_reported": 1}


def test_after_a_denial_the_ledger_is_sound_and_append_only(tmp_path: Path) -> None:
    """Forgetting is within the laws of the tables, and the checksum still finds damage."""
    payloads_of(tmp_path, PERMANENT, ["dark", "plain", "dark"])
    make_client(tmp_path, consent="denied").close()

    store = Store(tmp_path)
    with pytest.raises(StoreError, match="append only"), store.transaction() as tx:
        tx.execute("UPDATE costs SET nano = 0")

    assert store.take_doubts() == 0
    store.close()


def test_a_denial_takes_no_law_of_the_ledger_away_meanwhile(tmp_path: Path) -> None:
    """A trigger that was dropped and made anew would have another row in the schema."""
    payloads_of(tmp_path, PERMANENT, ["dark", "plain", "dark"])
    laws = "SELECT rowid, name FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
    before = rows(tmp_path, laws)

    make_client(tmp_path, consent="denied").close()

    assert len(before) > 5
    assert rows(tmp_path, laws) == before


def test_a_denial_leaves_the_charges_of_fresh_metrics_as_they_are(tmp_path: Path) -> None:
    """They tell nothing of any value, and moved together they would close the week."""
    payloads_of(tmp_path, {**PERMANENT, "longitudinal": '"fresh"'}, ["dark"] * 3)
    before = [rows(tmp_path, f"SELECT * FROM {table}") for table in LEDGER]  # noqa: S608

    make_client(tmp_path, consent="denied").close()

    assert [rows(tmp_path, f"SELECT * FROM {table}") for table in LEDGER] == before  # noqa: S608


def counts_of(fields: dict[str, str], values: list[str], caps: Caps) -> list[int]:
    """Record *values* on consecutive days; return how many reports there were after each."""
    clock, counts = FakeClock(), []
    with make_client(
        registry=Registry.from_text(file_with(fields)), clock=clock, caps=caps
    ) as client:
        for value in values:
            client.record("m", value)
            counts.append(client.stats()["recorded"])
            clock.advance(days=1)
    return counts


@pytest.mark.parametrize("fields", [PERMANENT, LAYERED], ids=["permanent", "two_layer"])
def test_where_the_budget_ends_the_next_report_does_not_depend_on_its_value(
    fields: dict[str, str],
) -> None:
    """A repeat that costs nothing is refused where a new value would be."""
    metric = metric_of(fields)
    caps = Caps(week=f"{metric.most_nano / 10**9 + 1.5:.9f}")
    before = ["dark", "dark"]

    told = {tuple(counts_of(fields, [*before, value], caps)) for value in ("dark", "plain", CANARY)}

    assert len(told) == 1


def test_tags_differ_by_secret_device_metric_and_value() -> None:
    secrets, devices = (b"a" * 32, b"b" * 32), (b"", b"d" * 16)
    seeds = list(product(secrets, devices, (b"metric", b"second"), (0, 1)))

    tags = {
        tag_of(secret, device, digest, encode_item(item)) for secret, device, digest, item in seeds
    }

    assert len(tags) == len(seeds)


def test_devices_of_a_gateway_have_responses_of_their_own() -> None:
    """One secret, yet the same value gives each device its own permanent payload."""
    fields = {**PERMANENT, "mechanism": '"olh"'}
    seen: list[ReportView] = []
    maker = Recorder(
        *(Registry.from_text(file_with(fields)), Store(None), Ledger(Caps()), Outbox({})),
        *(SeededRandomness(b"seed"), ConsentSwitch(Consent.GRANTED), FakeClock().uptime),
        collecting(seen),
    )
    pending = maker.prepare("m", "dark", FakeClock()())

    maker.commit([replace(pending, device=bytes([i]) * 16) for i in range(8)])

    assert len({view.payload for view in seen}) == 8


@pytest.mark.parametrize("fields", [PERMANENT, LAYERED], ids=["permanent", "two_layer"])
def test_a_repeat_that_fails_is_not_charged(tmp_path: Path, fields: dict[str, str]) -> None:
    registry = Registry.from_text(file_with(fields))
    client = make_client(tmp_path, registry=registry, randomness=NoEntropy())

    client.record("m", "dark")

    client.close()
    recorded = 1 if fields is PERMANENT else 0  # whose only randomness is the secret
    assert rows(tmp_path, "SELECT count(*) FROM charges") == [(recorded,)]
    assert rows(tmp_path, "SELECT count(*) FROM memo") == [(recorded,)]
