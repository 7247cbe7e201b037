"""TLS: a device says nothing to a server that cannot prove who it is, with or without a proxy."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import requests

from client_sdk.core.errors import TransportError
from client_sdk.upload.transport import RequestsTransport
from tests.support.device.device import KEY
from tests.support.device.loopback import running
from tests.support.device.tls import TRUSTED, Proxy, TlsCollector

BODY = b'{"v":1}'

CHILD = f"""
import sys
from client_sdk.upload.transport import RequestsTransport
print(RequestsTransport(sys.argv[1], {KEY!r}).send({BODY!r}, 30.0).status)
"""


def send(server: TlsCollector, *, trusting: bool) -> int | str:
    """Send BODY to *server*, with the tests' authority trusted or not."""
    with requests.Session() as session:
        session.trust_env = False  # a bundle of the environment would be trusted instead
        if trusting:
            session.verify = str(TRUSTED)
        transport = RequestsTransport(f"https://localhost:{server.port}", KEY, session)
        try:
            return transport.send(BODY, 30.0).status
        except TransportError as error:
            return str(error)


def test_a_server_that_proves_its_name_is_spoken_to() -> None:
    """Control: the certificate that differs from the refused ones only in being right."""
    server = TlsCollector("good")
    with running(server):
        status = send(server, trusting=True)

    assert status == 202
    assert server.received.endswith(BODY)


@pytest.mark.parametrize("certificate", ["expired", "wrong_host", "self_signed", "sha1"])
def test_a_server_that_does_not_hears_nothing(certificate: str) -> None:
    """Law: not a byte of the request, neither key nor body, goes to a server with that flaw."""
    server = TlsCollector(certificate)
    with running(server):
        status = send(server, trusting=True)

    assert (status, server.received) == ("no answer: SSLError", b"")


def test_an_unknown_authority_is_not_believed() -> None:
    """Law: without being told, a device trusts only the authorities of its system."""
    server = TlsCollector("good")
    with running(server):
        status = send(server, trusting=False)

    assert (status, server.received) == ("no answer: SSLError", b"")


def test_a_proxy_of_the_environment_carries_an_upload_and_learns_nothing() -> None:
    """Law: HTTPS_PROXY and REQUESTS_CA_BUNDLE are obeyed; what passes the proxy is encrypted."""
    server, proxy = TlsCollector("good"), Proxy()
    environment = {
        **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        "HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}",
        "REQUESTS_CA_BUNDLE": str(TRUSTED),
    }
    with running(server), running(proxy):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, f"https://localhost:{server.port}"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert (done.stdout, done.stderr) == ("202\n", "")
    assert server.received.endswith(BODY)
    assert proxy.received.startswith(b"CONNECT localhost:")
    assert not any(said in proxy.received for said in (BODY, KEY.encode(), b"/v1/reports"))
