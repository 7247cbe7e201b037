"""What leaves keys out of answers, and tells of keys, on a real store, as an operator types it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from client_sdk.registry.metric import Metric
from collector.cli import main
from collector.core.cells import Cell, key_source, segment_text
from collector.core.config import VOLATILE
from collector.core.credentials import digest_of, id_of
from collector.core.entry import AcceptedColumn, encode
from collector.demo.embedded import EmbeddedStore
from collector.storage.connection import Connection
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from tests.support.crowds.uploads import WRITE_KEY, registry, registry_text
from tests.support.store.archives import PAGE, SEALED, Desk
from tests.support.store.servers import SHARDS, needs_real, own_keys

from .test_cli import ENVIRONMENT

pytestmark = [needs_real, pytest.mark.real]

BAD: Final = "badbadbadbad"
CRASHED, THEME = (registry().metric(name) for name in ("crashed", "theme"))
OWN: Final = id_of(digest_of(WRITE_KEY))
TODAY: Final = int(time.time()) // 86_400


def day(epoch: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=epoch)).isoformat()


class Console:
    """A store with reports of two keys, yesterday and today, and a shell beside it."""

    def __init__(self, url: str, folder: Path) -> None:
        registry, keys = folder / "metrics.toml", own_keys()
        registry.write_text(registry_text(), encoding="utf-8")
        connection = Connection.open(url)
        self.storage = RedisStorage(connection, keys, VOLATILE)
        self.storage.prepare()
        self._desk = Desk(connection, keys, VOLATILE, folder)
        for key in (BAD, OWN):
            self.send(PAGE, key, [TODAY - 1, TODAY])
        self.env = {
            **ENVIRONMENT,
            "HEARSAY_REGISTRY": str(registry),
            "HEARSAY_PREFIX": keys.prefix,
            "HEARSAY_SHARDS": str(SHARDS),
            "HEARSAY_PROFILE": VOLATILE,
            "HEARSAY_WRITE_KEY": WRITE_KEY,
            "REDIS_URL": url,
        }

    def send(self, metric: Metric, key: str, epochs: Iterable[int]) -> None:
        """Have 300 reports of each of *epochs* counted."""
        text = segment_text(metric, {}, key_source(key))
        payloads = bytes(300 * metric.mechanism.payload_size)
        for epoch in epochs:
            column = AcceptedColumn(Cell(metric.digest, epoch, text), payloads)
            self.storage.append_many(
                [SealedUpload(secrets.token_bytes(16), SEALED, encode([column]), 300)]
            )
        self._desk.work(self.storage)

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, list(arguments), env=self.env)


@pytest.fixture
def console(real_store: EmbeddedStore, tmp_path: Path) -> Iterator[Console]:
    console = Console(real_store.url, tmp_path)
    yield console
    console.storage.destroy()


def excluding(*more: str) -> list[str]:
    days = "--from", day(TODAY - 1), "--to", day(TODAY - 1)
    return ["exclude", "--key", OWN, *days, "--because", "2.3 counted twice", *more]


def test_a_build_was_wrong_for_two_days_and_one_command_repairs_it(console: Console) -> None:
    tried = console.run(*excluding("--dry-run"))
    nothing = console.run("exclusions", "--json")
    done = console.run(*excluding("--author", "ada"))
    (listed,) = json.loads(console.run("exclusions", "--json").stdout)["exclusions"]
    back = console.run("include", listed["id"], "--because", "it was right", "--author", "bob")
    table = console.run("exclusions").stdout

    assert "test/page: 300 of 600 reports" in tried.stdout or "page: 300 of 600" in tried.stdout
    assert tried.stdout.endswith("nothing was changed\n")
    assert json.loads(nothing.stdout) == {"exclusions": []}
    assert f"excluded: key {OWN}, {listed['id']}" in done.stdout
    assert f"hearsay include {listed['id']} --because WHY puts it back" in done.stdout
    assert f"of {day(TODAY - 1)} are left out" in done.stdout
    assert (listed["first"], listed["because"], listed["author"]) == (
        day(TODAY - 1), "2.3 counted twice", "ada",
    )  # fmt: skip
    assert f"included again: key {OWN}" in back.stdout
    assert f"{datetime.now(UTC).date()} by bob: it was right" in table


def test_what_a_revoked_key_sent_is_deleted_and_the_rest_stays_and_answers_say_it(
    console: Console,
) -> None:
    days = "--from", day(TODAY - 1), "--to", day(TODAY)
    tried = console.run("prune", "--key", BAD)
    before = json.loads(console.run("sources", "page", *days, "--json").stdout)
    done = console.run("prune", "--key", BAD, "--yes")
    again = console.run("prune", "--key", BAD, "--yes")
    after = json.loads(console.run("sources", "page", *days, "--json").stdout)
    checked = console.run("fsck")
    (listed,) = json.loads(console.run("exclusions", "--json").stdout)["exclusions"]

    assert "would be deleted: 2 epochs, 600 reports" in tried.stdout
    assert before["sources"] == {BAD: 600, OWN: 600}
    assert "\ndeleted: 2 epochs, 600 reports" in done.stdout
    assert after["sources"] == {OWN: 600}
    [note] = after["notes"]
    assert f"reports of key {BAD} of {day(TODAY - 1)} to {day(TODAY)} are deleted" in note
    assert checked.exit_code == 0, checked.output
    assert f"--key={BAD}: has no tallies" in again.output
    assert "can be put back" in console.run("include", listed["id"], "--because", "no").output


def test_a_record_of_what_is_deleted_names_the_metrics_that_lose_something(
    console: Console,
) -> None:
    """Of hours their whole days; and nothing of a metric to which the key sent nothing."""
    hours = [24 * (TODAY - 3) + 23, 24 * (TODAY - 2), 24 * (TODAY - 2) + 7]
    console.send(CRASHED, BAD, hours)
    console.send(CRASHED, OWN, hours)
    console.send(THEME, OWN, [(TODAY + 3) // 7])
    days = "--from", day(TODAY - 3), "--to", day(TODAY - 2)

    done = console.run("prune", "--key", BAD, "--yes")
    (listed,) = json.loads(console.run("exclusions", "--json").stdout)["exclusions"]
    crashed = json.loads(console.run("sources", "crashed", *days, "--json").stdout)
    checked = console.run("fsck")

    assert "\ndeleted: 5 epochs, 1,500 reports" in done.stdout
    assert listed["metrics"] == ["test/crashed", "test/page"]
    assert (listed["first"], listed["last"]) == (day(TODAY - 3), day(TODAY))
    assert crashed["sources"] == {OWN: 900}
    assert len(console.storage.index(CRASHED.digest, hours).cells) == 3
    assert checked.exit_code == 0, checked.output


def test_what_is_folded_after_a_key_was_pruned_is_recorded_only_where_no_record_says_it(
    console: Console,
) -> None:
    console.run("prune", "--key", BAD, "--yes")
    console.send(PAGE, BAD, [TODAY])
    again = console.run("prune", "--key", BAD, "--yes")
    once = json.loads(console.run("exclusions", "--json").stdout)["exclusions"]
    console.send(PAGE, BAD, [TODAY])
    console.send(CRASHED, BAD, [24 * TODAY])
    console.run("prune", "--key", BAD, "--yes")
    twice = json.loads(console.run("exclusions", "--json").stdout)["exclusions"]

    assert "\ndeleted: 1 epoch, 300 reports" in again.stdout
    assert [each["metrics"] for each in once] == [["test/page"]]
    assert sorted(each["metrics"] for each in twice) == [["test/crashed"], ["test/page"]]


def test_tallies_that_no_registry_file_defines_stay_as_nothing_could_say_that_they_are_gone(
    console: Console,
) -> None:
    """A file of an app is missing; with it in place the same command deletes them."""
    registry = Path(str(console.env["HEARSAY_REGISTRY"]))
    whole = registry.read_text(encoding="utf-8")
    registry.write_text(registry_text(epsilon="2.0"), encoding="utf-8")

    kept = console.run("prune", "--key", BAD, "--yes")
    left = len(console.storage.index(PAGE.digest, [TODAY - 1, TODAY]).cells)
    registry.write_text(whole, encoding="utf-8")
    done = console.run("prune", "--key", BAD, "--yes")

    assert f"1 definition of key {BAD} no registry file has; they stay" in kept.output
    assert left == 4
    assert "\ndeleted: 2 epochs, 600 reports" in done.output


def test_a_key_that_still_works_is_revoked_before_its_reports_are_deleted(
    console: Console,
) -> None:
    refused = console.run("prune", "--key", OWN, "--yes")
    mixed = console.run("prune", "--key", BAD, "--metric", "page")

    assert f"--key={OWN}: still works" in refused.output
    assert "hearsay keys revoke" in refused.output
    assert mixed.exit_code == 2
    assert len(console.storage.index(PAGE.digest, [TODAY - 1, TODAY]).cells) == 4


def test_an_overlap_says_what_was_left_out_already(console: Console) -> None:
    console.run(*excluding())

    again = console.run(*excluding("--to", day(TODAY), "--dry-run"))

    assert "600 of 1,200 reports" in again.stdout
    assert "300 of them by earlier exclusions already" in again.stdout


def test_a_key_of_the_environment_has_the_id_that_the_list_shows(console: Console) -> None:
    assert OWN in console.run("keys", "list").stdout
    assert WRITE_KEY not in console.run("keys", "list").stdout


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        (("--version", "2.3"), "give --key or --version"),
        (("--metric", "nothing"), "nothing"),
        (("--to", day(TODAY + 3)), "today by the store's clock"),
        (("--because", ""), "because: must be 1 to 200"),
    ],
)
def test_a_refusal_is_one_line_and_changes_nothing(
    console: Console, more: tuple[str, ...], rule: str
) -> None:
    refused = console.run(*excluding(*more))

    assert refused.exit_code
    assert rule in refused.output
    assert "Traceback" not in refused.output
    assert json.loads(console.run("exclusions", "--json").stdout) == {"exclusions": []}


def test_sources_tell_which_key_sent_how_much_and_refuse_to_trim_two(console: Console) -> None:
    days = "--from", day(TODAY - 1), "--to", day(TODAY)
    told = console.run("sources", "page", *days)
    document = json.loads(console.run("sources", "page", *days, "--json").stdout)
    refused = console.run("sources", "page", *days, "--trim", "0.1")
    console.run(*excluding())
    left = json.loads(console.run("sources", "page", *days, "--json").stdout)

    assert told.stdout.splitlines()[1:] == [
        "key           reports  of all",
        *(f"{key}      600  50.0 %" for key in sorted((BAD, OWN))),
    ]
    assert document["sources"] == {BAD: 600, OWN: 600}
    assert refused.exit_code
    assert "trim=0.1: needs 10 sources of 500 reports or more, and there are 2" in refused.output
    assert left["sources"] == {BAD: 600, OWN: 300}
    assert any("2.3 counted twice" in note for note in left["notes"])
