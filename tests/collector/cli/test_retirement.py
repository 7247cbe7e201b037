"""``hearsay registry retire`` and GET /v1/retired: from a developer's key to the devices."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from client_sdk.privacy.retirement import read
from client_sdk.registry import Registry
from collector.cli import main
from collector.core.config import Config
from collector.core.errors import ConfigError
from collector.web import create_app
from tests.support.crowds.uploads import NOON, WRITE_KEY
from tests.support.device.device import metric_text
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

METRICS: Final = metric_text("first") + metric_text("second")


class Desk:
    """A folder with a registry, a key that it names, and what ``retire`` writes."""

    def __init__(self, folder: Path) -> None:
        self.key, self.output = folder / "retire.key", folder / "retired.json"
        self.metrics = folder / "metrics.toml"
        self.metrics.write_text('schema = 1\napp = "demo"\n' + METRICS)
        self.printed = self.run("--new-key").output
        self.public = self.printed.split('"')[1]
        head = f'schema = 1\napp = {{ name = "demo", retire_key = "{self.public}" }}\n'
        self.metrics.write_text(head + METRICS)

    def run(self, *arguments: str) -> Result:
        """Run ``hearsay registry retire`` with these *arguments*."""
        place = ("--sign", str(self.key), "-o", str(self.output))
        return CliRunner().invoke(
            main, ["registry", "retire", str(self.metrics), *arguments, *place]
        )

    def retired(self) -> set[str]:
        """Return the names that the list of this desk retires, as a device reads it."""
        registry = Registry.from_file(self.metrics)
        retirement = read(self.output.read_bytes(), bytes.fromhex(self.public))
        assert retirement is not None
        return {registry.by_digest[digest].name for digest in retirement.digests}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_lists_only_grow_and_each_is_newer(desk: Desk) -> None:
    """Law: a second run adds to the first, and a device that has the first takes it."""
    issued = []
    for name in ("first", "second"):
        assert desk.run(name).exit_code == 0
        retirement = read(desk.output.read_bytes(), bytes.fromhex(desk.public))
        assert retirement is not None
        issued.append(retirement.issued)

    assert desk.retired() == {"first", "second"}
    assert issued[0] < issued[1]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_key_is_its_owners_alone_and_never_replaced(desk: Desk) -> None:
    secret = desk.key.read_text()

    again = desk.run("--new-key")

    assert stat.S_IMODE(desk.key.stat().st_mode) == 0o600
    assert again.exit_code == 1
    assert "is there and stays as it is" in again.output
    assert desk.key.read_text() == secret
    assert secret.strip() not in desk.printed + again.output


def test_what_no_device_would_heed_is_not_written(desk: Desk, tmp_path: Path) -> None:
    """Law: another key than the registry's, an unknown name, and another's list are refused."""
    desk.key.write_text("11" * 32)
    other_key = desk.run("first")
    desk.key.write_text("short")
    no_key = desk.run("first")
    assert "app.retire_key=" in other_key.output
    assert "must hold 64 hexadecimal digits" in no_key.output
    assert not desk.output.exists()

    (tmp_path / "other").mkdir()
    other = Desk(tmp_path / "other")
    assert "is not known" in other.run("third").output
    other.output.write_text("{}")
    foreign = other.run("first")
    assert "must be a list that this key has signed" in foreign.output
    assert other.output.read_text() == "{}"
    assert {result.exit_code for result in (other_key, no_key, foreign)} == {1}
    assert other.run().exit_code == 2


def settings(desk: Desk, **more: str) -> Config:
    """Return the settings of a collector of the desk's registry."""
    own = {"HEARSAY_REGISTRY": str(desk.metrics), "HEARSAY_WRITE_KEY": WRITE_KEY}
    return Config.from_env(own | more)


def test_the_collector_gives_everybody_the_same_list(desk: Desk) -> None:
    """Law: without a key, with a tag and for an hour; a newer file is served at once."""
    desk.run("first")
    config = settings(desk, HEARSAY_RETIRED=str(desk.output))
    app = create_app(config, MemoryStorage(), lambda: NOON, MemoryCredentials())
    client = app.test_client()

    answer = client.get("/v1/retired")
    known = client.get("/v1/retired", headers={"If-None-Match": answer.headers["ETag"]})
    desk.run("second")
    newer = client.get("/v1/retired", headers={"If-None-Match": answer.headers["ETag"]})

    assert (answer.status_code, known.status_code, newer.status_code) == (200, 304, 200)
    assert answer.headers["Cache-Control"] == "public, max-age=3600"
    assert "Set-Cookie" not in answer.headers
    assert newer.data == desk.output.read_bytes() != answer.data


def test_a_collector_without_a_list_says_so_and_a_wrong_one_does_not_start(desk: Desk) -> None:
    bare = create_app(settings(desk), MemoryStorage(), lambda: NOON, MemoryCredentials())
    desk.output.write_text("{}")
    wrong = settings(desk, HEARSAY_RETIRED=str(desk.output))

    assert bare.test_client().get("/v1/retired").status_code == 404
    with pytest.raises(ConfigError, match=r"HEARSAY_RETIRED=.*: must be a list"):
        create_app(wrong, MemoryStorage(), lambda: NOON, MemoryCredentials())
    desk.output.unlink()
    with pytest.raises(ConfigError, match=r"HEARSAY_RETIRED=.*: cannot be read"):
        create_app(wrong, MemoryStorage(), lambda: NOON, MemoryCredentials())
