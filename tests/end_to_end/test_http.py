"""What a device takes for the final answer of a real collector."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from client_sdk.core.limits import MAX_DEVICE_BODY
from client_sdk.upload.transport import JSON, Outcome, RequestsTransport, outcome_of
from client_sdk.wire.reports import seal
from tests.support.crowds.uploads import (
    READ_TOKEN,
    WRITE_KEY,
    registry_text,
)
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    path = folder / "metrics.toml"
    path.write_text(registry_text(expires="2999-12-31"), encoding="utf-8")
    with running_site(folder / "store", path, WRITE_KEY, READ_TOKEN) as running:
        yield running


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{", JSON, 400),
        (seal(b"\x12" * 16, 3, {}, []), JSON, 410),
        (bytes(2 * MAX_DEVICE_BODY), JSON, 413),
        (b"{}", "text/plain", 415),
        (seal(b"\x13" * 16, 40_000, {}, []), JSON, 422),
    ],
)
def test_a_device_knows_a_final_answer_of_the_collector(
    site: Site, body: bytes, content_type: str, status: int
) -> None:
    """Law: what the collector says of an upload, the device takes for the collector's word."""
    transport = RequestsTransport(site.url, WRITE_KEY, content_type=content_type)

    answer = transport.send(body, 10.0)

    assert (answer.status, outcome_of(answer)) == (status, Outcome.PERMANENT)


def test_a_refused_key_is_no_final_answer(site: Site) -> None:
    answer = RequestsTransport(site.url, "another-key").send(b"{}", 10.0)

    assert (answer.status, outcome_of(answer)) == (401, Outcome.INCAPABLE)
