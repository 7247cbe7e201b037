"""The commands of ``hearsay learn rounds``, from a key to a model; mistakes are said in a line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from click.testing import CliRunner

from client_sdk.core.randomness import system_randomness
from client_sdk.learning.model import Model
from client_sdk.learning.rounds import FINAL, Round, State, gradient, learning, signed
from client_sdk.registry import Registry
from client_sdk.testing import MemoryClient
from client_sdk.wire.ed25519 import public_of
from collector.cli import main
from collector.core.cells import Cell, segment_text
from collector.demo.embedded import EmbeddedStore
from collector.learning.publishing import CURRENT, STATE
from collector.storage.connection import Connection
from collector.storage.redis import RedisStorage
from tests.support.crowds.uploads import epoch_today
from tests.support.device.learning import SEED, registry_text
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import queue_one

FEATURES: Final = "age = { min = 20, max = 60, zero = 40 }"


class Desk:
    """A registry, a folder, and the command."""

    def __init__(self, folder: Path, text: str, **environment: str) -> None:
        self.folder, self.site = folder, folder / "site"
        self.registry = Registry.from_text(text)
        self.metric = self.registry.metric("ranker")
        (folder / "metrics.toml").write_text(text, encoding="utf-8")
        self.environment = {"HEARSAY_REGISTRY": str(folder / "metrics.toml"), **environment}

    def run(self, *words: object) -> str:
        """Return what is printed by a command that does its work."""
        done = CliRunner().invoke(main, self._words(words), env=self.environment)
        assert done.exit_code == 0, done.output
        return done.output

    def refused(self, *words: object) -> str:
        """Return the only line of a command that does not."""
        done = CliRunner().invoke(main, self._words(words), env=self.environment)
        assert done.exit_code == 1
        assert isinstance(done.exception, SystemExit), done.exception
        (line,) = done.output.splitlines()
        return line.removeprefix("Error: ")

    def _words(self, words: tuple[object, ...]) -> list[str]:
        return ["learn", "rounds", *map(str, words)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, registry_text())


def test_a_key_is_made_once_and_never_replaced(desk: Desk) -> None:
    path = desk.folder / "ranker.key"

    printed = desk.run("key", path)
    secret = path.read_text()
    again = desk.refused("key", path)

    public = public_of(bytes.fromhex(secret.strip())).hex()
    assert printed == f'key = "{public}"\n'
    assert Registry.from_text(registry_text(key=public))
    assert "is there and stays as it is" in again
    assert path.read_text() == secret
    assert "cannot be written: No such file" in desk.refused("key", desk.folder / "no" / "key")
    assert "is there and stays as it is" in desk.refused("key", desk.folder)


def test_a_folder_without_a_pass_is_not_one_of_no_steps(desk: Desk) -> None:
    """It is mistyped, most likely."""
    line = desk.refused("status", "ranker", desk.folder / "stie")

    assert line.startswith(f"folder={desk.folder / 'stie'}: has no pass.json")
    assert list(desk.folder.iterdir()) == [desk.folder / "metrics.toml"]


@pytest.mark.parametrize(
    "change",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        {"steps": 7},
        {"steps": [[1]]},
        {"steps": [[100, 0.1, [0, 0, 0, 0], [0, 0, 0]]]},
        {"steps": [[100, float("nan"), [0, 0, 0, 0], [0, 0, 0, 0]]]},
        {"steps": [[100, 0.1, [0, 0, 0, 0], [0, 0, 0, "1"]]]},
        {"steps": [["100", 0.1, [0, 0, 0, 0], [0, 0, 0, 0]]]},
        {"steps": [[100, 0.1, [0, 0, 0, 0], [0, 0, 0, 0]]] * 5},
        {"early": [1, 2]},
        {"early": [3, 0, 0, 0, 0.5]},
        {"left_early": -1},
        {"left_early": None},
        {"exclusions": "1f"},
        {"exclusions": [7]},
        {"steps": [[100, 0.1, [0, 0, 0, 0], [0, 0, 0, 0], ["1f"], -1, []]]},
        {"steps": [[100, 0.1, [0, 0, 0, 0], [0, 0, 0, 0], ["1f"], 1, [], 0]]},
        {"hearsay_pass": 2},
    ],
    ids=range(21),
)
def test_a_damaged_state_is_said_in_a_line(desk: Desk, change: Any) -> None:
    form = {
        "hearsay_pass": 1, "metric": "ranker", "definition": desk.metric.digest.hex(), "steps": [],
        "early": None, "left_early": 0,
    }  # fmt: skip
    desk.site.mkdir()
    body = change if isinstance(change, bytes) else json.dumps({**form, **change}).encode()
    (desk.site / STATE).write_bytes(body)

    assert "the state of the pass is damaged" in desk.refused("status", "ranker", desk.site)


def test_an_evaluation_of_what_is_not_there_is_said_in_a_line(desk: Desk) -> None:
    table = desk.folder / "test.csv"
    table.write_bytes(b"age,plan,buys\n30,caf\xe9,yes\n")
    words = ("evaluate", "ranker", desk.site, table, "--label", "buys")

    assert "cannot be read: No such file" in desk.refused(*words)
    desk.site.mkdir()
    model = Model.of(FINAL, desk.metric, 400, {"theta": [0.0, 1.0, 0.0, 2.0]})
    (desk.site / CURRENT).write_text(signed(model, SEED).text())
    assert "must be text in UTF-8" in desk.refused(*words)
    table.write_text("age,plan,buys\n30,paid\n")
    assert "line 2 has another number of fields" in desk.refused(*words)
    table.write_text("age,plan,buys\n" + "60,paid,yes\n20,,no\n" * 29)
    lines = desk.run(*words).splitlines()
    assert lines[0].startswith("accuracy: 1.0000 (95 %: 0.9")
    assert lines[2].startswith("AUC: not enough rows: 29 true and 29 false")


def test_a_step_into_what_is_no_folder_is_said_in_a_line(desk: Desk) -> None:
    from collector.learning.publishing import Folder

    desk.site.write_text("a file")

    with pytest.raises(ValueError, match=r"folder=.*cannot be written: "):
        Folder(desk.site, desk.metric).step({}, SEED)


@needs_real
@pytest.mark.real
def test_a_pass_from_a_key_to_a_model(real_store: EmbeddedStore, tmp_path: Path) -> None:
    """Two rounds of real reports; the second is at what came of the first."""
    keys = own_keys(shards=4)
    secret = tmp_path / "ranker.key"
    secret.write_text(SEED.hex())
    desk = Desk(
        tmp_path, registry_text(features=FEATURES, rounds=2),
        REDIS_URL=real_store.url, HEARSAY_PREFIX=keys.prefix,
    )  # fmt: skip
    storage = RedisStorage(Connection.open(real_store.url), keys)
    storage.prepare()
    printed = [desk.run("step", "ranker", desk.site, "--sign", secret)]
    printed.append(desk.run("status", "ranker", desk.site))
    for number in (1, 2):
        _report(storage, desk, number)
        printed.append(desk.run("status", "ranker", desk.site))
        printed.append(desk.run("step", "ranker", desk.site, "--sign", secret))

    begun, empty, full, stepped, _, over = (text.splitlines() for text in printed)
    assert begun[:2] == [f"a new pass begins in {desk.site}", "ranker: 0 steps of 0 reports"]
    assert empty == ["ranker: 0 steps of 0 reports", "round 1: 0 of at least 100 reports"]
    assert full[1] == "round 1: 120 of at least 100 reports"
    assert stepped[:2] == ["ranker: 1 step of 120 reports", "round 2: 0 of at least 100 reports"]
    assert over[0] == "ranker: 2 steps of 240 reports"
    assert re.fullmatch(r"  age: [+-]\d\.\d{3} \(-?.*\)", over[3])
    assert Round(MemoryClient(desk.registry), "ranker", desk.site / CURRENT).state is State.OVER
    assert "every round had its step" in desk.refused("step", "ranker", desk.site, "--sign", secret)
    storage.destroy()


def _report(storage: RedisStorage, desk: Desk, number: int) -> None:
    """Fold the reports of 120 devices whose older half says yes."""
    metric, domain = desk.metric, learning(desk.metric)
    current = Round(MemoryClient(desk.registry), "ranker", desk.site / CURRENT)
    assert current.model is not None
    assert current.model.number == number
    payloads = []
    for device in range(120):
        row = domain.row({"age": 25 if device % 2 else 55})
        slope = gradient(domain, row, float(device % 2 == 0), current.model.theta)
        encoded: Any = metric.encode({"round": number, "gradient": slope})
        payloads.append(metric.mechanism.randomize(encoded, system_randomness()))
    tally = metric.mechanism.tally(b"".join(payloads), np)
    shard, entry = queue_one(storage)
    cell = Cell(metric.digest, epoch_today(metric), segment_text(metric, {"round": str(number)}))
    storage.fold(shard, [entry], {cell: list(enumerate([120, *map(int, tally)]))})
