"""What is kept beside the answers, listed and deleted from a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from collector.cli import main
from collector.core.config import VOLATILE, Config
from collector.demo.embedded import EmbeddedStore
from collector.storage.documents import DocumentStore, Entry, Version
from collector.storage.keys import Keys
from tests.support.device.registries import CATEGORY, file_with
from tests.support.store.servers import needs_real

BOARDS: Final = "boards"
pytestmark = [pytest.mark.real, needs_real]


@pytest.fixture
def environment(real_store: EmbeddedStore, keys: Keys, tmp_path: Path) -> dict[str, str]:
    """The settings of a store that keeps one board."""
    registry = tmp_path / "metrics.toml"
    registry.write_text(file_with(CATEGORY), encoding="utf-8")
    settings = {
        "REDIS_URL": real_store.url,
        "HEARSAY_PREFIX": keys.prefix,
        "HEARSAY_PROFILE": VOLATILE,
        "HEARSAY_REGISTRY": str(registry),
    }
    entry = Entry("test", "ada", 1, (Version(1, 14, "token:ada"),))
    DocumentStore.of(Config.from_env(settings)).put(BOARDS, "first", b"{}", entry=entry)
    return settings


def run(environment: dict[str, str], *arguments: str) -> str:
    result = CliRunner().invoke(main, ["documents", *arguments], env=environment)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_alone_lists_what_is_kept_with_its_bytes(environment: dict[str, str]) -> None:
    [row] = json.loads(run(environment, "--json"))["documents"]
    lines = run(environment).splitlines()

    assert (row["author"], row["kind"], row["documents"], row["deleted"]) == ("ada", BOARDS, 1, 0)
    assert row["bytes"] > 14
    assert lines[1].split()[:3] == ["test", BOARDS, "ada"]
    assert lines[-1].startswith(f"{row['bytes']} bytes of at most ")


def test_only_a_yes_deletes_and_only_what_is_named(environment: dict[str, str]) -> None:
    run(environment, "delete", "--kind", "notes", "--yes")
    before = run(environment, "delete", "--name", "first")
    deleted = run(environment, "delete", "--name", "first", "--yes")

    assert before.startswith("would be deleted: 1 document,")
    assert deleted.startswith("deleted: 1 document,")
    assert json.loads(run(environment, "--json"))["documents"] == []
