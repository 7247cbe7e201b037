"""Issuer, collector and device as they are run: a token from one is spent at the other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import requests

from client_sdk import Client, Issuer
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.wire.private_token import Plan, read_plan
from tests.support.crowds.uploads import READ_TOKEN, WRITE_KEY, bearer, registry_text
from tests.support.device.issuing import SECRET
from tests.support.patience import PATIENCE, wait_for
from tests.support.sites.site import Site, running_site
from tests.support.store.cluster import free_port
from tests.support.store.processes import ended
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real, pytest.mark.slow]  # beside test_relay_and_issuer

HEARSAY: Final = (sys.executable, "-m", "collector")
MACHINE: Final = "canary-laptop-7"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the keys and the secret of an issuer, and a registry, as their pages say."""
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "metrics.toml").write_text(registry_text(expires="2999-12-31"), encoding="utf-8")
    (folder / "machines.secret").write_bytes(SECRET)
    new = ("issuer-keys", "new", "issuer.json", "--name", "issuer.example.org", "--weeks", "2")
    subprocess.run((*HEARSAY, *new), cwd=folder, check=True, capture_output=True, timeout=PATIENCE)
    return folder


def plan_in(folder: Path) -> Plan:
    return read_plan(json.loads((folder / "issuer.json").read_text("ascii"))["plan"])


@contextmanager
def running_issuer(folder: Path) -> Iterator[str]:
    """Run ``hearsay issuer`` and yield its address; it ends in good order at SIGTERM."""
    port = free_port()
    options = ("issuer.json", "--attest", "secret=machines.secret", "--port", str(port))
    with (folder / "issuer.log").open("wb") as log:
        process = subprocess.Popen((*HEARSAY, "issuer", *options), cwd=folder, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(lambda: _lives(url), running=(process,))
            yield url
        finally:
            assert ended(process) == 0


def _lives(url: str) -> bool:
    try:
        return requests.get(f"{url}/livez", timeout=PATIENCE).status_code == 200
    except requests.ConnectionError:
        return False


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Site]:
    settings = {
        "HEARSAY_ISSUER_KEYS": str(folder / "issuer.json.public"),
        "HEARSAY_REQUIRE_TOKEN": "1",
    }
    registry = folder / "metrics.toml"
    with running_site(
        folder / "store", registry, WRITE_KEY, READ_TOKEN, settings=settings
    ) as running:
        yield running


def device(site: Site, folder: Path, issuer: Issuer | None, data_dir: Path) -> Client:
    return Client(
        site.url,
        WRITE_KEY,
        folder / "metrics.toml",
        consent="granted",
        data_dir=data_dir,
        mode="manual",
        tokens=issuer,
        opt_outs=NoOptOuts(),
    )


def attested(site: Site, metric: str) -> dict[str, Any]:
    url = f"{site.url}/v1/metrics/{metric}/estimate"
    answer = requests.get(url, headers=bearer(READ_TOKEN), timeout=PATIENCE)
    [basis] = answer.json()["meta"]["metrics"]
    sources: dict[str, Any] = basis["sources"]
    return sources


def test_a_report_that_spends_a_token_is_counted_as_attested_and_no_other_is_taken(
    site: Site, folder: Path
) -> None:
    said = subprocess.run(
        (*HEARSAY, "issuer-keys", "attestation", "machines.secret", MACHINE),
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    ).stdout.strip()
    with running_issuer(folder) as url:
        issuer = Issuer(url, plan_in(folder).digest, said)
        with device(site, folder, issuer, folder / "device") as client:
            client.record("opted_in", True)
            fetched = client.flush()
            sent = client.flush()
            counts = client.stats()
        with device(site, folder, None, folder / "stranger") as client:
            client.record("opted_in", True)
            client.flush()
            refused = client.stats()
    site.wait_for_reports("opted_in", 1)

    assert (fetched.waiting, sent.waiting, counts["uploaded"]) == (1, 0, 1)
    assert (refused["uploaded"], refused["refused"]) == (0, 1)
    assert attested(site, "opted_in") == {"relayed": 0, "attested": 1, "of": 1}
    kept = b"".join(path.read_bytes() for path in folder.glob("issuer.*") if path.is_file())
    assert MACHINE.encode() not in kept  # neither state nor log knows who asked
