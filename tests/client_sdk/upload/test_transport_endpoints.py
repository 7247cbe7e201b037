"""Which endpoints and keys a transport takes, and what it shows of them."""

from __future__ import annotations

import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.upload.transport import RequestsTransport
from tests.support.device.device import KEY
from tests.support.device.slow_collector import slow_collector

UPLOAD = b"{}"


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://collector.example",
        "https://collector.example:8443/telemetry/",
        "http://localhost:8000",
        "http://127.0.0.1:8000",
        "http://127.9.9.9",
        "http://[::1]:8000",
    ],
)
def test_https_and_this_machine_are_accepted(endpoint: str) -> None:
    assert isinstance(RequestsTransport(endpoint, KEY), RequestsTransport)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://collector.example",
        "http://localhost.example",
        "http://127.0.0.1.example",
        "http://10.0.0.1",
        "ftp://collector.example",
        "collector.example",
        "https://",
        "https://collector.example?key=1",
        "https://collector.example#part",
        "https://user:password@collector.example",
        "https://collector.example:port",
        "https://[::1",
        "https://collector.example/\r\nX: y",
        "",
        None,
    ],
)
def test_other_endpoints_are_refused_without_showing_a_secret(endpoint: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"^endpoint=") as caught:
        RequestsTransport(endpoint, KEY)

    assert not any(secret in str(caught.value) for secret in ("password", "key=1"))


@pytest.mark.parametrize("end", ["", "/", "/v1/reports", "/v1/reports/"])
@pytest.mark.parametrize("path", ["", "/telemetry"])
def test_an_endpoint_with_the_path_of_uploads_is_understood(path: str, end: str) -> None:
    """Law: who copies the whole address of an upload posts there, and not below it."""
    with slow_collector(lambda body: 0.0) as collector:
        RequestsTransport(collector.url + path + end, KEY).send(UPLOAD, 30.0)

    assert collector.paths == [f"{path}/v1/reports"]


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "schlüssel", "x" * 513, None])
def test_a_key_that_cannot_be_a_header_is_refused_unseen(key: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"^write_key=\(hidden\): must be"):
        RequestsTransport("https://collector.example", key)


def test_a_key_is_in_no_repr() -> None:
    transport = RequestsTransport("https://collector.example", KEY)

    assert KEY not in repr(transport) + repr(vars(transport))
