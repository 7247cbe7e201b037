"""docs/guide/relay.md: its command and its program, from a new key to what the collector has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from click.testing import CliRunner

import client_sdk
from client_sdk.client import Client
from collector.cli import main
from tests.docs.pages import blocks
from tests.support.device.device import metric_text
from tests.support.patience import PATIENCE
from tests.support.sites.relayed import Relay, running_relay
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

PAGE: Final = "docs/guide/relay.md"
KEY, TOKEN = "a-write-key-of-your-own", "a-read-token-of-your-own"
NEW: Final = re.compile(r"\$ hearsay (oblivious-key new) (\S+)")


@pytest.fixture
def relay_key(tmp_path: Path) -> str:
    """What the first command of the page prints, run in an empty folder."""
    [found] = [
        match for kind, text in blocks(PAGE) if kind == "console" for match in NEW.finditer(text)
    ]
    file = str(tmp_path / found[2])
    done = CliRunner().invoke(main, [*found[1].split(), file])
    assert done.exit_code == 0
    return done.stdout.strip()


@pytest.fixture
def site(tmp_path: Path, relay_key: str) -> Iterator[Site]:
    registry = tmp_path / "metrics.toml"
    names = [metric_text(f"m{number}") for number in range(3)]
    registry.write_text('schema = 1\napp = { name = "demo" }\n' + "".join(names), encoding="utf-8")
    settings = {"HEARSAY_OBLIVIOUS_KEYS": str(tmp_path / "oblivious.json")}
    with running_site(tmp_path / "store", registry, KEY, TOKEN, settings=settings) as running:
        yield running


@pytest.fixture
def relay(tmp_path: Path, site: Site) -> Iterator[Relay]:
    with running_relay(tmp_path, site.url, batch=1, within=1.0) as running:
        yield running


def options_of_page() -> set[str]:
    """Return the names of what the page's program gives a client."""
    [program] = [text for kind, text in blocks(PAGE) if kind == "python"]
    [call] = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Call)]
    return {keyword.arg for keyword in call.keywords if keyword.arg}


def test_what_the_page_says_brings_reports_through_a_relay(
    tmp_path: Path, relay_key: str, site: Site, relay: Relay
) -> None:
    given: dict[str, Any] = {
        "consent": "granted",
        "data_dir": tmp_path / "data",
        "relay": relay.url,
        "relay_key": relay_key,
    }
    assert set(given) == options_of_page()
    assert client_sdk.Client is Client
    client = Client(site.url, KEY, tmp_path / "metrics.toml", mode="manual", **given)
    for number in range(3):
        client.record(f"m{number}", True)

    assert client.flush(PATIENCE).complete
    client.close()

    assert client.stats()["uploaded"] == 3
    site.wait_until_folded()
    for number in range(3):
        [told] = estimate(site, f"m{number}")["meta"]["metrics"]
        assert told["sources"] == {"relayed": 1, "attested": 0, "of": 1}


def estimate(site: Site, metric: str) -> Any:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    url = f"{site.url}/v1/metrics/{metric}/estimate"
    return requests.get(url, headers=headers, timeout=PATIENCE).json()
