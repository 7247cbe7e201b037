"""One law of all servers: a head that two readers could read differently is refused.

Bare line ends, and a coding beside another that it does not know, the HTTP server of all judges.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

import pytest

from client_sdk.core.epoch import day_of
from client_sdk.wire.oblivious import REQUEST_TYPE
from client_sdk.wire.private_token import week_of
from collector.issuer.allowance import Allowance
from collector.issuer.server import IssuerApp
from collector.relay.batches import Batches
from collector.relay.front import Front as RelayFront
from collector.relay.networks import Rates
from collector.web.ingest.front import Front
from tests.support.crowds.uploads import WRITE_KEY, bearer, registry_text
from tests.support.device.clock import NOON
from tests.support.device.issuing import MACHINES, keys_from
from tests.support.sites.in_memory import in_memory
from tests.support.sites.rsgi import Request, Response, answers

WEEK: Final = week_of(day_of(NOON))
SERVERS: Final = ("collector", "relay", "issuer")
HEADS: Final[dict[str, dict[str, Any]]] = {
    "no host": {"host": ""},
    "a host that is no name": {"host": "a b"},
    "two hosts in one": {"host": "a, b"},
    "two hosts": {"host": "localhost\nlocalhost"},
    "two other hosts": {"host": "localhost\nevil.example"},
    "a coding that is not read": {"transfer-encoding": "gzip, chunked"},
    "a coding that is none": {"transfer-encoding": "identity, chunked"},
    "identity": {"transfer-encoding": "identity"},
    "a coding twice": {"transfer-encoding": "chunked\nchunked"},
    "a coding twice in one": {"transfer-encoding": "chunked, chunked"},
    "two types": {"content-type": f"{REQUEST_TYPE}\ntext/plain"},
    "the same type twice": {"content-type": f"{REQUEST_TYPE}\n{REQUEST_TYPE}"},
}


@contextmanager
def server_of(name: str, folder: Path) -> Iterator[tuple[Any, Request]]:
    """Yield a server, and a request that it takes."""
    if name == "issuer":
        with (
            closing(Allowance(folder / "issuer.sqlite3", 1)) as allowance,
            closing(IssuerApp(keys_from(WEEK), MACHINES, allowance, lambda: NOON)) as issuer,
        ):
            yield issuer, Request("/livez", "GET")
    elif name == "relay":
        batches = Batches(lambda messages, _: list(messages), 1, 3_600.0, SystemRandom().shuffle)
        good = Request("/", headers={"content-type": REQUEST_TYPE}, parts=(b"message",))
        yield RelayFront(batches, Rates(100, lambda: 0.0)), good
    else:
        yield Front(in_memory(folder, registry_text())), Request("/livez", "GET", bearer(WRITE_KEY))


def ask(name: str, folder: Path, **changes: Any) -> Response:
    with server_of(name, folder) as (server, good):
        headers = {**good.headers, **changes.pop("headers", {})}
        [answer] = answers(server, good._replace(headers=headers, **changes))
    assert answer is not None
    return answer


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("server", SERVERS)
def test_a_head_that_two_readers_could_read_differently_is_refused(
    tmp_path: Path, server: str, head: dict[str, str]
) -> None:
    """And not by a problem document: a device keeps its upload, for another way."""
    answer = ask(server, tmp_path, headers=head)

    assert (answer.status, answer.headers["content-type"][:10]) == (400, "text/plain")


@pytest.mark.parametrize("changes", [{"method": "post"}, {"path": "livez"}], ids=str)
@pytest.mark.parametrize("server", SERVERS)
def test_a_line_that_two_readers_could_read_differently_is_refused(
    tmp_path: Path, server: str, changes: dict[str, str]
) -> None:
    assert ask(server, tmp_path, **changes).status == 400


@pytest.mark.parametrize("server", SERVERS)
def test_a_plain_head_is_taken(tmp_path: Path, server: str) -> None:
    """The control."""
    assert ask(server, tmp_path).status == 200
