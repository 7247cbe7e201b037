"""Relay, issuer and collector as they are run: the walk of a newcomer, and a token spent."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import requests

from client_sdk import Client, Issuer
from client_sdk.core.base64url import base64url
from client_sdk.core.epoch import HOUR
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.registry import Registry
from client_sdk.upload.tokens import MAX_RETRY
from client_sdk.wire.private_token import Plan, read_plan
from tests.support.crowds.uploads import READ_TOKEN, WRITE_KEY, bearer, registry_text
from tests.support.device.issuing import SECRET
from tests.support.device.loopback import running
from tests.support.patience import PATIENCE, wait_for
from tests.support.sites.relayed import Relay, started
from tests.support.sites.site import Site, running_site
from tests.support.sites.watching import Tap, has
from tests.support.store.cluster import free_port
from tests.support.store.processes import ended
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real, pytest.mark.slow]

ROOT: Final = Path(__file__).parents[2]
REGISTRY: Final = ROOT / "examples" / "metrics.toml"
OPERATOR: Final = "Example Relay e.V."
DEVICES: Final = 3
TOKENS: Final = 9  # of an identity and week
LATER: Final = 120.0  # seconds; longer than the first wait after a failure
ASK_AGAIN: Final = MAX_RETRY + 2 * HOUR  # seconds until an issuer that was away is asked again


class Walk(NamedTuple):
    """Where everything is."""

    site: Site
    folder: Path
    relay_key: str
    plan: str
    issuer: Tap
    relay_port: int

    @contextmanager
    def issuing(self) -> Iterator[Relay]:
        """Run the issuer until the block ends; it keeps its count of tokens."""
        port = self.issuer.target
        words = ["-m", "collector", "issuer", str(self.folder / "issuer-keys"), "--port", str(port)]
        words += ["--attest", f"secret={self.folder / 'machines.secret'}"]
        words += ["--state", str(self.folder / "issued.sqlite3")]
        with started(words, port, self.folder / "issuer.log") as running_one:
            yield running_one

    @contextmanager
    def relay(self) -> Iterator[Relay]:
        """Run the relay until the block ends."""
        words = ["-m", "collector", "relay", "--to", self.site.url, "--within", "1s"]
        words += ["--port", str(self.relay_port)]
        with started(words, self.relay_port, self.folder / "relay.log") as running_one:
            yield running_one

    def device(self, number: int, later: float = 0.0) -> Client:
        """Return the client of device *number*, by the documented settings."""
        return Client(
            self.site.url,
            WRITE_KEY,
            REGISTRY,
            consent="granted",
            data_dir=self.folder / f"device {number}",
            mode="manual",
            opt_outs=NoOptOuts(),
            clock=lambda: time.time() + later,
            relay=f"http://127.0.0.1:{self.relay_port}",
            relay_key=self.relay_key,
            tokens=Issuer(
                f"http://127.0.0.1:{self.issuer.port}",
                plan=self.plan,
                attestation=hearsay(
                    self.folder, "issuer-keys", "attestation", "machines.secret", f"n{number}"
                ).strip(),
            ),
        )

    def ask(self, path: str) -> requests.Response:
        answer = requests.get(
            f"{self.site.url}{path}", headers=bearer(READ_TOKEN), timeout=PATIENCE
        )
        answer.raise_for_status()
        return answer


def hearsay(folder: Path, *words: str) -> str:
    """Return what a command prints that is run in *folder*."""
    command = [sys.executable, "-m", "collector", *words]
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return done.stdout


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    folder = tmp_path_factory.mktemp("walk")
    (folder / "store").mkdir()
    relay_key = hearsay(folder, "oblivious-key", "new", "oblivious-keys").strip()
    name = ("--name", "localhost", "--weeks", "2", "--tokens", str(TOKENS))
    said = hearsay(folder, "issuer-keys", "new", "issuer-keys", *name)
    (folder / "machines.secret").write_text(secrets.token_hex(32))
    (folder / "machines.secret").chmod(0o600)
    settings = {
        "HEARSAY_OBLIVIOUS_KEYS": str(folder / "oblivious-keys"),
        "HEARSAY_ISSUER_KEYS": str(folder / "issuer-keys.public"),
        "HEARSAY_REQUIRE_TOKEN": "1",
        "HEARSAY_RELAY_OPERATOR": OPERATOR,
    }
    with ExitStack() as stack:
        enter = stack.enter_context
        store = folder / "store"
        site = enter(running_site(store, REGISTRY, WRITE_KEY, READ_TOKEN, settings=settings))
        tap = enter(running(Tap(free_port())))
        plan = re.findall(r"^plan (\S+):", said, re.MULTILINE)[0]
        yield Walk(site, folder, relay_key, plan, tap, free_port())


def test_reports_reach_the_pages_through_relay_and_issuer_though_the_relay_dies(
    walk: Walk,
) -> None:
    """The first by the documented commands; the second dies on its way, and counts once."""
    for number in range(DEVICES):
        with walk.issuing(), walk.relay(), walk.device(number) as client:
            client.record("theme", "dark")
            client.flush()  # fetches tokens; what follows, or the end, sends
            assert client.flush().complete
            assert client.stats()["uploaded"] == 1
    with walk.relay() as relay, walk.device(0, LATER) as client:
        client.record("uses_plugins", True)
        relay.process.kill()
        assert not client.flush().complete
    with walk.relay(), walk.device(0, 2 * LATER) as client:
        assert client.flush().complete
        assert client.stats()["uploaded"] == 1

    assert walk.site.wait_for_reports("theme", DEVICES) == DEVICES
    assert walk.site.wait_for_reports("uses_plugins", 1) == 1
    meta: dict[str, Any] = walk.ask("/v1/metrics/theme/estimate").json()["meta"]
    [metric] = meta["metrics"]
    assert metric["sources"] == {"relayed": DEVICES, "attested": DEVICES, "of": DEVICES}
    assert metric["epsilon_per_report"] == 1
    assert metric["epsilon_shuffled"]["because"].startswith("too few relayed reports")
    page = " ".join(re.sub(r"<[^>]+>", " ", walk.ask("/metric/theme").text).split())
    assert page.count(f"{DEVICES} of {DEVICES} reports") == 2  # relayed, and attested
    assert "Shuffled ε: none is stated" in page
    assert OPERATOR in walk.ask("/privacy/people").text


def test_an_issuer_that_dies_costs_no_report_and_gives_nobody_more_tokens(walk: Walk) -> None:
    """While it is away the report waits; when it is back it knows what it gave before it died."""
    with walk.relay(), walk.device(DEVICES) as client:
        client.record("theme", "light")
        with walk.issuing() as issuer:
            issuer.process.kill()
            assert not client.flush().complete
    with walk.issuing() as issuer, walk.relay(), walk.device(DEVICES, ASK_AGAIN) as client:
        client.flush()  # fetches
        issuer.process.kill()
        assert client.flush().complete

    assert walk.site.wait_for_reports("theme", DEVICES + 1) == DEVICES + 1
    [path] = walk.folder.glob(f"device {DEVICES}/*.sqlite3")
    assert len(kept(path)) == TOKENS - 1


def test_an_issuer_learns_nothing_of_reports_and_would_know_no_token_again(walk: Walk) -> None:
    """In all that it was told and has answered: who asks, and neither key, metric nor token."""
    reached = b"".join((*walk.issuer.inward, *walk.issuer.outward))
    digest = Registry.from_file(REGISTRY).metrics["theme"].digest
    tokens = [token for path in walk.folder.glob("device */*.sqlite3") for token in kept(path)]

    assert len(tokens) >= DEVICES
    assert has(reached, [b"n0.", b"n1."])  # who asks: the names of the machines
    assert not has(reached, [WRITE_KEY.encode(), digest, base64url(digest).encode()])
    for token in tokens:
        assert not has(reached, [token[2:34], token[98:], base64url(token[2:34]).encode()])


def kept(path: Path) -> list[bytes]:
    """Return the tokens that a device has still to spend."""
    with closing(sqlite3.connect(path)) as database:
        return [row[0] for row in database.execute("SELECT token FROM tokens")]


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
