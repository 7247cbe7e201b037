"""A running collector behind a proxy that names people: by whom a name is believed."""

from __future__ import annotations

import http.client
from typing import Final

import pytest

from tests.hostile.conftest import PROXY
from tests.support.crowds.uploads import READ_TOKEN, bearer
from tests.support.patience import PATIENCE
from tests.support.sites.attacked_site import AttackedSite

NAMED: Final = {
    "Accept": "text/html",
    "X-Forwarded-User": "ada@example.org",
    "X-Forwarded-Groups": "analysts",
}
# All that has been taken for the address of a socket somewhere.
PRETEXTS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"X-Forwarded-For": PROXY},
    {"X-Forwarded-For": f"{PROXY}, 127.0.0.1"},
    {"Forwarded": f"for={PROXY};by={PROXY}"},
    {"X-Real-IP": PROXY, "X-Client-IP": PROXY, "CF-Connecting-IP": PROXY},
    {"hearsay.peer": PROXY, "hearsay-peer": PROXY, "Remote-Addr": PROXY},
)


def status_of(site: AttackedSite, path: str, headers: dict[str, str], source: str) -> int:
    """Return the status of what a peer at the address *source* is answered."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", site.port, timeout=PATIENCE, source_address=(source, 0)
    )
    try:
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as response:
            return response.status
    finally:
        connection.close()


def test_a_name_is_believed_from_the_socket_of_the_proxy(site: AttackedSite) -> None:
    assert status_of(site, "/ask", NAMED, PROXY) == 200
    assert status_of(site, "/operations", NAMED, PROXY) == 403
    assert status_of(site, "/v1/metrics", NAMED, PROXY) == 401


@pytest.mark.parametrize("pretext", PRETEXTS)
def test_no_header_makes_another_socket_that_of_the_proxy(
    site: AttackedSite, pretext: dict[str, str]
) -> None:
    assert status_of(site, "/ask", {**NAMED, **pretext}, "127.0.0.1") == 403
    assert status_of(site, "/ask", {**NAMED, **pretext, **bearer(READ_TOKEN)}, "127.0.0.1") == 403


def test_a_header_with_underscores_is_none_of_the_proxy(site: AttackedSite) -> None:
    """Servers that write both as HTTP_X_FORWARDED_USER let visitors pass what proxies strip."""
    underscored = {
        "Accept": "text/html",
        "X_Forwarded_User": "root",
        "X_Forwarded_Groups": "analysts",
    }

    assert status_of(site, "/ask", underscored, PROXY) == 303
