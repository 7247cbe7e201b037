"""Behind a real proxy: what it says is not the collector's word, and nothing is dropped for it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from client_sdk.client import Client
from client_sdk.gateway import Gateway
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.upload.transport import MESSAGEPACK, RequestsTransport
from tests.support.crowds.uploads import GATEWAY_KEY, READ_TOKEN, WRITE_KEY
from tests.support.device.tls import TRUSTED
from tests.support.sites.caddy import needs_caddy, shipped_caddy
from tests.support.sites.nginx import bare_nginx, needs_nginx, shipped_nginx
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]
SHIPPED = [
    pytest.param(shipped_nginx, marks=needs_nginx, id="nginx"),
    pytest.param(shipped_caddy, marks=needs_caddy, id="caddy"),
]

DEVICES = 12_000  # of 128 bytes each: 1.5 MB, above nginx's own limit of 1 MiB
WIDE = 1_024  # items of an ``oue`` metric of 128 bytes
SMALL = 30  # metrics: more than 1 KiB of reports, of one device on one day
LATER = 86_400.0  # seconds; longer than the first wait after a failure

METRICS = f"""
schema = 1
app = "behind"

[metrics.wide]
title = "Wide"
question = "Does a large body arrive?"
type = "category"
values = {[f"v{number}" for number in range(WIDE)]}
mechanism = "oue"
epsilon = "1"
every = "1d"
longitudinal = "fresh"
expected_devices = 12000
owner = "tests"
expires = 2099-12-31
""" + "".join(
    f"""
[metrics.m{number}]
title = "Small"
question = "Does a small body arrive?"
type = "boolean"
mechanism = "grr"
epsilon = "0.01"
every = "1d"
longitudinal = "fresh"
expected_devices = 1000
owner = "tests"
expires = 2099-12-31
"""
    for number in range(SMALL)
)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("registry") / "metrics.toml"
    path.write_text(METRICS, encoding="utf-8")
    return path


@pytest.fixture
def site(tmp_path: Path, registry: Path) -> Iterator[Site]:
    (tmp_path / "store").mkdir()
    with running_site(tmp_path / "store", registry, WRITE_KEY, READ_TOKEN, GATEWAY_KEY) as running:
        yield running


def port_of(site: Site) -> int:
    return int(site.url.rpartition(":")[2])


def gateway_at(url: str, registry: Path, data_dir: Path) -> Gateway:
    session = requests.Session()
    session.verify, session.trust_env = str(TRUSTED), False
    return Gateway(
        "",
        "",
        registry,
        consent="granted",
        data_dir=data_dir,
        opt_outs=NoOptOuts(),
        transport=RequestsTransport(url, GATEWAY_KEY, session, MESSAGEPACK),
    )


def device_at(port: int, registry: Path, data_dir: Path, later: float = 0.0) -> Client:
    return Client(
        f"http://127.0.0.1:{port}",
        WRITE_KEY,
        registry,
        consent="granted",
        data_dir=data_dir,
        mode="manual",
        opt_outs=NoOptOuts(),
        clock=lambda: time.time() + later,
    )


def record_all(device: Client) -> None:
    for number in range(SMALL):
        device.record(f"m{number}", True)


def counts(stats: Mapping[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in stats.items() if count}


def folded(site: Site) -> int:
    """Return how many reports of the small metrics were folded."""
    site.wait_until_folded()
    return sum(site.reports(f"m{number}") for number in range(SMALL))


def deliver_wide(gateway: Gateway) -> dict[str, int]:
    """Let every device report 128 bytes; return what became of it, tries aside."""
    with gateway:
        gateway.record_many((f"d{i}", "wide", f"v{i % WIDE}") for i in range(DEVICES))
        assert gateway.flush().complete
        return counts(gateway.stats())


@needs_nginx
def test_a_gateway_behind_nginx_as_installed_delivers_all_in_smaller_uploads(
    site: Site, registry: Path, tmp_path: Path
) -> None:
    """Law: a body limit that nobody told us of costs no report, and none is counted twice."""
    with bare_nginx(tmp_path / "nginx", port_of(site)) as nginx:
        stats = deliver_wide(gateway_at(nginx.url, registry, tmp_path / "data"))

    assert stats == {"recorded": DEVICES, "uploaded": DEVICES, "refused": 1}
    site.wait_until_folded()
    assert site.reports("wide") == DEVICES


@pytest.mark.parametrize("shipped", SHIPPED)
@pytest.mark.parametrize(("path", "refused"), [("/gateway", 0), ("", 2)])
def test_a_gateway_behind_the_file_that_ships_delivers_all(
    site: Site, registry: Path, tmp_path: Path, shipped: Any, path: str, refused: int
) -> None:
    """Law: whole at the address of gateways, and in pieces of 64 KiB at that of devices."""
    with shipped(tmp_path / "proxy", port_of(site)) as proxy:
        stats = deliver_wide(gateway_at(proxy.url + path, registry, tmp_path / "data"))

    assert stats.pop("refused", 0) == refused
    assert stats == {"recorded": DEVICES, "uploaded": DEVICES}
    site.wait_until_folded()
    assert site.reports("wide") == DEVICES


@needs_nginx
def test_plain_http_at_the_port_for_tls_drops_nothing(
    site: Site, registry: Path, tmp_path: Path
) -> None:
    """Law: nginx's 400 is about the way; the same upload arrives once the address is right."""
    with shipped_nginx(tmp_path / "nginx", port_of(site)) as nginx:
        device = device_at(nginx.port, registry, tmp_path / "data")
        record_all(device)
        device.flush()
        before = counts(device.stats())
        device.close()
    with device_at(port_of(site), registry, tmp_path / "data", LATER) as device:
        delivery = device.flush()

    assert before == {"recorded": SMALL, "refused": 1}
    assert delivery.complete
    assert folded(site) == SMALL


@needs_nginx
def test_a_device_behind_a_narrow_proxy_sends_smaller_uploads(
    site: Site, registry: Path, tmp_path: Path
) -> None:
    """Law: the length classes of a device are kept; its pieces are padded as any upload is."""
    limit = "client_max_body_size 1k;"
    with bare_nginx(tmp_path / "nginx", port_of(site), limit) as nginx:
        device = device_at(nginx.port, registry, tmp_path / "data")
        record_all(device)
        delivery = device.flush()
        stats = counts(device.stats())
        device.close()

    assert stats == {"recorded": SMALL, "uploaded": SMALL, "refused": 1}
    assert delivery.complete
    assert folded(site) == SMALL


@needs_nginx
def test_what_cannot_be_made_smaller_waits_until_the_proxy_takes_it(
    site: Site, registry: Path, tmp_path: Path
) -> None:
    """Law: without an answer of the collector nothing is dropped, however often a proxy refuses."""
    limit = "client_max_body_size 100;"
    with bare_nginx(tmp_path / "nginx", port_of(site), limit) as nginx:
        device = device_at(nginx.port, registry, tmp_path / "data")
        record_all(device)
        refused = device.flush()
        before = counts(device.stats())
        device.close()
    later, arrived = LATER, False
    while not arrived and later < 10 * LATER:
        with device_at(port_of(site), registry, tmp_path / "data", later) as device:
            arrived = device.flush().complete
        later += LATER

    assert (before["recorded"], before.get("rejected", 0)) == (SMALL, 0)
    assert refused.waiting == SMALL
    assert folded(site) == SMALL
