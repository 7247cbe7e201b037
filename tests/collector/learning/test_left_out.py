"""What operators exclude is in no model, and every model and command says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from click.testing import CliRunner, Result

from client_sdk.core.randomness import system_randomness
from client_sdk.learning.naive_bayes import load
from client_sdk.registry import Registry
from collector.cli import main
from collector.core.cells import Cell, key_source, segment_text
from collector.core.credentials import digest_of, id_of
from collector.demo.embedded import EmbeddedStore
from collector.learning.publishing import CURRENT, STATE
from collector.storage.connection import Connection
from collector.storage.redis import RedisStorage
from tests.support.crowds.uploads import WRITE_KEY, epoch_today
from tests.support.device.learning import SEED, registry_text
from tests.support.device.registries import HEAD, RECORD, TASTE, table
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import queue_one

pytestmark = [needs_real, pytest.mark.real]

ONCE: Final = {"epsilon": '"4"', "every": '"once"'}
TEXT: Final = (
    HEAD
    + table("m", RECORD, **ONCE)
    + table("likes", TASTE, mechanism='"codebook"', parameters="{ words = 16 }", epsilon='"4"')
    + registry_text(features="age = { min = 20, max = 60 }", rounds=2).split('app = "shop"')[1]
)
FORGED: Final = id_of(digest_of(WRITE_KEY))  # the key that is excluded
OTHER: Final = "aaaaaaaaaaaa"
LEAVERS: Final = {"plan": "free", "age": 20, "label": "left"}
STAYERS: Final = {"plan": "pro", "age": 60, "label": "stayed"}


class Desk:
    """A store, a registry of all three kinds, and the command."""

    def __init__(self, url: str, folder: Path) -> None:
        keys, registry, secret = own_keys(shards=4), folder / "metrics.toml", folder / "ranker.key"
        registry.write_text(TEXT, encoding="utf-8")
        secret.write_text(SEED.hex())
        self.folder, self.site, self.secret = folder, folder / "site", secret
        self.registry = Registry.from_text(TEXT)
        self.storage = RedisStorage(Connection.open(url), keys)
        self.storage.prepare()
        self.environment = {
            "HEARSAY_REGISTRY": str(registry),
            "HEARSAY_PREFIX": keys.prefix,
            "HEARSAY_WRITE_KEY": WRITE_KEY,
            "REDIS_URL": url,
        }

    def fold(self, name: str, key: str, values: list[Any], **segment: str) -> None:
        """Put a real report of each of *values* into the store, as sent under *key*."""
        metric, randomness = self.registry.metric(name), system_randomness()
        mechanism: Any = metric.mechanism
        payloads = [mechanism.randomize(metric.encode(value), randomness) for value in values]
        tally = mechanism.tally(b"".join(payloads), np)
        text = segment_text(metric, segment, key_source(key))
        cell = Cell(metric.digest, epoch_today(metric), text)
        shard, entry = queue_one(self.storage)
        self.storage.fold(shard, [entry], {cell: list(enumerate([len(values), *map(int, tally)]))})

    def exclude(self) -> str:
        """Exclude the forged key, and return the id."""
        self.good("exclude", "--key", FORGED, "--because", "forged", "--author", "ada")
        (listed,) = json.loads(self.good("exclusions", "--json").stdout)["exclusions"]
        return str(listed["id"])

    def run(self, *words: object) -> Result:
        return CliRunner().invoke(main, list(map(str, words)), env=self.environment)

    def good(self, *words: object) -> Result:
        done = self.run(*words)
        assert done.exit_code == 0, done.output
        return done

    def step(self) -> list[str]:
        words = ("learn", "rounds", "step", "ranker", self.site, "--sign", self.secret)
        return self.good(*words).stdout.splitlines()


@pytest.fixture
def desk(real_store: EmbeddedStore, tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(real_store.url, tmp_path)
    yield desk
    desk.storage.destroy()


def notes(name: str, reports: str) -> list[str]:
    """Return how what is said of the exclusion begins."""
    return [f"{name}: reports of key {FORGED} are left out: forged (ada, ", f"{name}: {reports} "]


def begin(lines: list[str], beginnings: list[str]) -> bool:
    return len(lines) == len(beginnings) and all(map(str.startswith, lines, beginnings))


def test_naive_bayes_says_what_was_left_out(desk: Desk) -> None:
    """Forged reports turn the truth around; without them it stands, and the file says so."""
    file = desk.folder / "churn.json"
    desk.fold("m", OTHER, [LEAVERS, STAYERS, STAYERS] * 700)
    turned = [{**STAYERS, "label": "left"}, {**LEAVERS, "label": "stayed"}]
    desk.fold("m", FORGED, turned * 2_000)
    words = ("learn", "naive-bayes", "m", "--output", file)
    assert desk.good(*words).stderr == ""
    likely = {"plan": "free", "age": 20}
    assert load(file, desk.registry.metric("m")).probability(likely) < 0.5
    assert "excluded" not in json.loads(file.read_text())

    desk.exclude()
    done = desk.good(*words)

    form = json.loads(file.read_text())
    assert load(file, desk.registry.metric("m")).probability(likely) > 0.5
    assert (form["reports"], form["excluded"]["reports"]) == (2_100, 4_000)
    assert begin(form["excluded"]["notes"], notes("m", "4,000 reports left out"))
    assert done.stderr.splitlines() == form["excluded"]["notes"]


def test_what_is_left_out_is_said_where_nothing_can_be_learned(desk: Desk) -> None:
    desk.fold("m", FORGED, [LEAVERS, STAYERS] * 1_000)
    desk.exclude()

    refused = desk.run("learn", "naive-bayes", "m")

    assert refused.exit_code == 1
    assert "no reports in this window; m: reports of key" in refused.output
    assert "m: 2,000 reports left out by exclusions" in refused.output


def test_factors_say_what_was_left_out(desk: Desk) -> None:
    desk.fold("likes", OTHER, [["news", "chess"], ["sport"]] * 1_000)
    desk.fold("likes", FORGED, [["news", "sport"]] * 500)
    desk.exclude()

    done = desk.good("learn", "factors", "likes")
    words = desk.good("learn", "factors", "likes", "--output", desk.folder / "f.json").stdout

    form = json.loads(done.stdout)
    assert words.startswith(f"{form['rank']} factor")
    assert (form["reports"], form["excluded"]["reports"]) == (2_000, 500)
    assert begin(form["excluded"]["notes"], notes("likes", "500 reports left out"))
    assert done.stderr.splitlines() == form["excluded"]["notes"]


def test_rounds_say_what_was_left_out_and_which_steps_were_taken_before(desk: Desk) -> None:
    """Nothing that was published changes, and status counts every report once."""
    flat = {"gradient": [0.5, 0.0], "round": 1}
    desk.step()
    desk.fold("ranker", OTHER, [flat] * 120, round="1")
    desk.fold("ranker", FORGED, [flat] * 130, round="1")
    assert desk.step()[:1] == ["ranker: 1 step of 250 reports"]
    published = (desk.site / "round-0002.json").read_bytes()

    desk.exclude()
    desk.fold("ranker", OTHER, [{**flat, "round": 2}] * 110, round="2")
    desk.fold("ranker", FORGED, [{**flat, "round": 2}] * 140, round="2")
    status = desk.good("learn", "rounds", "status", "ranker", desk.site).stdout.splitlines()
    over = desk.step()

    said = notes("ranker", "270 reports left out")
    steps = "1 step of {} taken while other exclusions were in force"
    assert begin(
        status,
        ["ranker: 1 step of 250", "round 2: 110 of at least 100", *said, steps.format(1)],
    )
    assert over[0] == "ranker: 2 steps of 360 reports"
    assert begin(over[-3:], [*said, steps.format(2)])
    assert (desk.site / "round-0002.json").read_bytes() == published
    form = json.loads((desk.site / CURRENT).read_text())
    assert (form["reports"], form["excluded"]["reports"]) == (360, 270)
    assert form["steps_otherwise_excluded"] == 1
    (rows := desk.folder / "test.csv").write_text("age,buys\n" + "60,yes\n20,no\n" * 40)
    words = ("learn", "rounds", "evaluate", "ranker", desk.site, rows, "--label", "buys")
    figures = desk.good(*words).stdout.splitlines()
    assert figures[0].startswith("accuracy: ")
    assert figures[3:] == [
        *(f"when it was learned: {note}" for note in form["excluded"]["notes"]),
        "steps that were taken while other exclusions were in force: 1",
    ]


def test_reports_of_rounds_that_are_all_left_out_are_counted(desk: Desk) -> None:
    """No round has any, and each report that is gone is told."""
    desk.step()
    desk.fold("ranker", FORGED, [{"gradient": [0.5, 0.0], "round": 1}] * 130, round="1")
    desk.exclude()

    status = desk.good("learn", "rounds", "status", "ranker", desk.site).stdout.splitlines()

    assert begin(
        status,
        ["ranker: 0 steps of 0", "round 1: 0 of", *notes("ranker", "130 reports left out")],
    )


def test_a_round_counts_afresh_where_reports_that_came_early_are_excluded(desk: Desk) -> None:
    """They were to be taken off, and are no longer there: what is left is taken for early."""
    second = {"gradient": [0.5, 0.0], "round": 2}
    desk.step()
    desk.fold("ranker", OTHER, [{**second, "round": 1}] * 120, round="1")
    desk.fold("ranker", FORGED, [second] * 150, round="2")
    desk.step()
    desk.exclude()
    desk.fold("ranker", OTHER, [second] * 110, round="2")

    status = desk.good("learn", "rounds", "status", "ranker", desk.site).stdout.splitlines()
    afresh = desk.step()
    desk.fold("ranker", OTHER, [second] * 130, round="2")
    over = desk.step()

    counts = "round 2 counts afresh, as exclusions changed while reports came"
    assert status == afresh
    assert afresh[:3] == [
        "ranker: 1 step of 120 reports",
        "round 2: 0 of at least 100 reports",
        counts,
    ]
    assert afresh[3].startswith("in no step: 110 reports ")
    assert over[0] == "ranker: 2 steps of 250 reports"
    assert json.loads((desk.site / STATE).read_text())["left_early"] == 110
