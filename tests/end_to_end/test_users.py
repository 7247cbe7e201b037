"""The collector of docker-compose.yml works with a user of the store for each of its processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import requests

from client_sdk.wire.reports import Column
from collector.demo.demo import Children
from collector.intake.keyring import TRUST_S
from collector.storage.access import INGEST, QUERY, WORKER
from tests.collector.web.test_browsers import HEADERS
from tests.support import patience
from tests.support.crowds.uploads import as_json, bearer, registry, upload
from tests.support.patience import PATIENCE
from tests.support.sites.guarded_site import GuardedSite, guarded_store
from tests.support.store.processes import descendants
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

_POLL: Final = 0.1  # seconds between two looks
ESTIMATE: Final = "/v1/metrics/opted_in/estimate"


class Running:
    """A site with its children, and what they have written."""

    def __init__(self, site: GuardedSite, children: Children) -> None:
        self.site, self.children = site, children

    def report(self) -> requests.Response:
        today = int(time.time() // 86_400)
        columns = [Column(registry().metric("opted_in").digest, 0, b"\0")]
        body = as_json(upload(columns, sealed=today))
        headers = {**bearer(self.site.keys["write_key"]), "Content-Type": "application/json"}
        return requests.post(
            f"{self.site.url}/v1/reports", data=body, headers=headers, timeout=PATIENCE
        )

    def log(self) -> str:
        return str(self.children.failure(""))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with guarded_store(tmp_path_factory.mktemp("s")) as site, Children() as children:
        done = site.run("init")
        assert done.returncode == 0, done.stderr
        children.start("serve", site.environment(INGEST))
        children.start("worker", site.environment(WORKER))
        site.wait_until_ready(children)
        yield Running(site, children)
        children.stop()


SAFE_HEADERS: Final = {name.lower(): value for name, value in HEADERS.items()}


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
def test_the_server_itself_says_the_same_to_browsers_as_its_application(
    running: Running, method: str
) -> None:
    """Uploads are answered before Flask is reached, so the headers have two ways to go missing."""
    secrets = ("", running.site.keys["write_key"], running.site.keys["admin_token"])
    for path in ("/", "/v1/reports", "/v1/reports/", "/v1/metrics", "/metrics", "/livez", "/no"):
        for secret in secrets:
            answer = requests.request(
                method,
                running.site.url + path,
                headers={**bearer(secret), "Origin": "https://example.org"},
                timeout=PATIENCE,
            )

            told = {name.lower(): value for name, value in answer.headers.items()}
            assert SAFE_HEADERS.items() <= told.items(), path
            assert told["cache-control"] in ("no-store", "no-cache"), path
            assert not [name for name in told if name.startswith("access-control")]
            assert not {"set-cookie", "x-powered-by"} & set(told)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedSite]:
    """A store with its users, on which nobody has run hearsay init."""
    with guarded_store(tmp_path_factory.mktemp("b")) as site:
        yield site


def wait_for(site: GuardedSite, path: str, secret: str, status: int) -> float:
    """Return the seconds until *path* answers with *status*, or fail when patience ends."""
    started = time.monotonic()
    patience.wait_for(lambda: site.get(path, secret).status_code == status)
    return time.monotonic() - started


def test_a_report_becomes_an_answer_though_each_process_has_the_least_rights(
    running: Running,
) -> None:
    site = running.site
    made = site.run("keys", "create", "read", "--role", "analyst", "--label", "Ann")
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    assert wait_for(site, "/v1/metrics", token, 200) <= TRUST_S

    accepted = running.report()

    assert accepted.status_code == 202, accepted.text + running.log()
    n = patience.wait_for(lambda: site.get(ESTIMATE, token).json()["meta"]["n"], running.log)
    assert n == 1
    for secret in (*site.secrets(), token):
        assert secret not in running.log()
    assert token not in site.run("keys", "list").stdout


def test_a_worker_looks_at_closed_epochs_and_a_scrape_tells_what_it_found(
    running: Running,
) -> None:
    """With the rights of the store's users, which are the least that each needs."""
    wanted, key = 'hearsay_suspicious_epochs{metric="page"} 0.0', running.site.keys["admin_token"]

    patience.wait_for(lambda: wanted in running.site.get("/metrics", key).text, running.log)


def test_the_store_refuses_nothing_that_the_work_needs(running: Running) -> None:
    """What is tried without need: the name of the driver, and what only hearsay init may do."""
    needless = {"client|setinfo", "client|setname", "config|get", "xgroup|create"}
    needless |= {"acl|dryrun", "persist"}
    site = running.site
    token = site.run("keys", "create", "read", "--role", "operator").stdout.strip()
    wait_for(site, "/v1/metrics", token, 200)

    running.report()
    statuses = [site.get(path, token).status_code for path in ("/", ESTIMATE, "/metrics")]
    commands = [site.run(name).returncode for name in ("doctor", "fsck")]

    assert (statuses, commands) == ([200] * 3, [0] * 2), running.log()
    assert {one for one in site.refused() if one[1] not in needless} == set()


def test_no_secret_is_in_a_command_line(running: Running) -> None:
    lines = b"".join(
        Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(os.getpid())
    ).decode(errors="replace")

    assert "collector" in lines
    assert not [secret for secret in running.site.secrets() if secret in lines]


@pytest.mark.parametrize(("user", "command"), [(INGEST, "serve"), (WORKER, "worker")])
def test_a_start_without_init_names_what_to_run(bare: GuardedSite, user: str, command: str) -> None:
    done = bare.run(command, user=user)

    assert done.returncode == 1
    assert "hearsay init" in done.stderr
    assert not [secret for secret in bare.secrets() if secret in done.stderr]


@pytest.mark.parametrize("user", [INGEST, WORKER, QUERY])
def test_a_process_of_the_application_cannot_make_keys(bare: GuardedSite, user: str) -> None:
    made = bare.run("keys", "create", "read", user=user)

    assert made.returncode == 1
    assert made.stdout == ""
    assert made.stderr == "Error: store: answers NOPERM\n"


@pytest.mark.slow
def test_a_revoked_token_stops_within_five_seconds(running: Running) -> None:
    site = running.site
    made = site.run("keys", "create", "read")
    token, name = made.stdout.strip(), made.stderr.split()[1].rstrip(";")
    wait_for(site, "/v1/metrics", token, 200)

    revoked = site.run("keys", "revoke", name)

    assert revoked.stdout == f"revoked: read {name}\n"
    assert wait_for(site, "/v1/metrics", token, 401) <= TRUST_S
