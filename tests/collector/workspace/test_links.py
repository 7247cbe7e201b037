"""Shared links: forged, widened, expired, revoked; each opens nothing."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import msgspec
import pytest

from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry import Registry
from collector.core.catalog import Catalog
from collector.core.errors import (
    QueryError,
    TooFastError,
    UnknownLinkError,
)
from collector.query import Query
from collector.storage.documents import DocumentStore
from collector.storage.hashes import MemoryHashes
from collector.workspace.documents import Document, File, Grant, Panel, plain
from collector.workspace.links import OPENINGS, Links
from collector.workspace.shelf import Workspace
from tests.support.store.authors import ADA, EVE
from tests.support.store.credential_cases import METRICS, OURS, THEIRS, registry_text

DAY: Final = 86_400
NOW: Final = 1_790_000_000
ALPHA, BETA, GAMMA = METRICS[OURS][0], METRICS[OURS][1], METRICS[THEIRS][0]
CATALOG: Final = Catalog([Registry.from_text(registry_text(app)) for app in (OURS, THEIRS)])
PANELS: Final = [Panel("y", Query(metrics=[ALPHA]))]


class Desk:
    """Links over a store in memory, with clocks of its own."""

    def __init__(self) -> None:
        self.now, self.seconds = float(NOW), 0.0
        self.store = DocumentStore(MemoryHashes())
        self.links = self.another()

    def another(self) -> Links:
        """Return the links of another process."""
        workspace = Workspace(self.store, lambda: self.now, File(1))
        self.shelf = workspace.links
        return Links(self.shelf, self.store, lambda: self.now, lambda: self.seconds)

    def share(self, days: int = 7) -> tuple[str, Document[Grant]]:
        return self.links.share("x", PANELS, days, CATALOG, author=ADA, app=OURS)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_link_opens_what_was_shared_in_every_process_and_reads_nothing_else(desk: Desk) -> None:
    address, document = desk.share()

    opened = desk.another().open(address, CATALOG)

    assert opened.document == document
    assert list(opened.catalog.by_name) == [ALPHA]
    with pytest.raises(UnknownMetricError):
        opened.catalog.metric(BETA)
    assert desk.links.address(document) == address


def test_two_links_to_the_same_are_two(desk: Desk) -> None:
    assert desk.share()[0] != desk.share()[0]


def test_no_letter_of_an_address_can_be_changed(desk: Desk) -> None:
    """Law: whatever is changed, left out or added, it opens nothing."""
    address, _ = desk.share()
    forged = [address[:place] + "-" + address[place + 1 :] for place in range(len(address))]
    forged += [address[:place] + "A" + address[place + 1 :] for place in range(len(address))]
    forged += [address[:length] for length in range(len(address))]
    forged += [f"{address}=", f"{address}A", f" {address}", address.upper(), address.lower(), "."]
    forged += ["", "a.b.c", f"{address}.{address}", "é.é", "x" * 4_000]

    opened = []
    for text in set(forged) - {address}:
        try:
            opened.append(desk.links.open(text, CATALOG))
        except UnknownLinkError:
            continue

    assert opened == []


def test_an_end_that_is_put_off_is_not_believed(desk: Desk) -> None:
    address, _ = desk.share(1)
    name, _, text = address.partition(".")
    raw = bytearray(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    raw[0:8] = (NOW + 3650 * DAY).to_bytes(8, "big")
    prolonged = f"{name}.{urlsafe_b64encode(bytes(raw)).decode().rstrip('=')}"

    with pytest.raises(UnknownLinkError):
        desk.links.open(prolonged, CATALOG)


@pytest.mark.parametrize(
    "change",
    [
        {"panels": [Panel("y", Query(metrics=[GAMMA]))]},
        {"reads": [(OURS, ALPHA), (THEIRS, GAMMA)]},
        {"expires": NOW + 365 * DAY},
        {"panels": [Panel("y", Query(metrics=[ALPHA], date_range="year"))]},
    ],
)
def test_a_grant_that_is_widened_in_the_store_is_not_believed(
    desk: Desk, change: dict[str, object]
) -> None:
    """Law: who can write documents, and not read the secret, prolongs and widens nothing."""
    address, document = desk.share()
    wider = msgspec.structs.replace(document.content, **change)
    desk.shelf.replace(document.name, 1, wider, EVE)

    with pytest.raises(UnknownLinkError):
        desk.links.open(address, CATALOG)


def test_a_link_signed_with_another_secret_opens_nothing(desk: Desk) -> None:
    address, document = desk.share()
    other = DocumentStore(MemoryHashes())
    other.secret("links", secrets.token_bytes(32))
    record = desk.store.record("links", document.name)
    assert record is not None
    other.put("links", document.name, record)
    shelf = Workspace(other, lambda: NOW, File(1)).links

    with pytest.raises(UnknownLinkError):
        Links(shelf, other, lambda: NOW, lambda: 0.0).open(address, CATALOG)


def test_a_link_ends_by_itself(desk: Desk) -> None:
    address, document = desk.share(7)

    desk.now = NOW + 7 * DAY - 1
    assert desk.links.open(address, CATALOG)
    assert desk.links.is_good(document)
    desk.now = NOW + 7 * DAY
    assert not desk.links.is_good(document)
    with pytest.raises(UnknownLinkError):
        desk.links.open(address, CATALOG)


def test_a_link_that_is_revoked_opens_nothing_from_then_on(desk: Desk) -> None:
    address, document = desk.share()
    other, _ = desk.share()
    desk.shelf.delete(document.name, 1, ADA)

    with pytest.raises(UnknownLinkError):
        desk.links.open(address, CATALOG)
    assert desk.links.open(other, CATALOG)


def test_all_links_that_open_nothing_are_refused_alike(desk: Desk) -> None:
    """Law: an answer tells nobody whether a link ever was, has ended or was revoked."""
    revoked, document = desk.share()
    desk.shelf.delete(document.name, 1, ADA)
    ended, _ = desk.share(1)
    said = []
    for address, days in ((revoked, 0), (ended, 1), ("xyz", 0), (f"{ended}A", 0)):
        desk.now = float(NOW + days * DAY)
        with pytest.raises(UnknownLinkError) as refused:
            desk.links.open(address, CATALOG)
        said.append(str(refused.value))

    assert len(set(said)) == 1


def test_a_link_that_says_nothing_of_its_board_is_signed_as_ever(desk: Desk) -> None:
    """Law: what boards may say of themselves ends no link that was made before they could."""
    _, document = desk.share()

    assert "about" not in plain(document.content)
    about = msgspec.structs.replace(document.content, about="of all platforms")
    assert desk.links.address(document) != desk.links.address(
        msgspec.structs.replace(document, content=about)
    )


def test_a_link_is_opened_so_often_a_minute_and_then_again(desk: Desk) -> None:
    address, _ = desk.share()
    other, _ = desk.share()
    for _ in range(OPENINGS):
        desk.links.open(address, CATALOG)

    with pytest.raises(TooFastError, match="60 times a minute"):
        desk.links.open(address, CATALOG)
    assert desk.links.open(other, CATALOG)
    desk.seconds += 60
    assert desk.links.open(address, CATALOG)


@pytest.mark.parametrize("days", [0, -1, 2, 91, 3650])
def test_a_link_is_good_for_no_other_time_than_is_offered(desk: Desk, days: int) -> None:
    with pytest.raises(QueryError, match="days: must be one of 1, 7, 30, 90"):
        desk.links.share("x", PANELS, days, CATALOG, author=ADA)


def test_nobody_shares_what_is_not_theirs(desk: Desk) -> None:
    theirs = CATALOG.only(lambda app, _: app == THEIRS)

    with pytest.raises(UnknownMetricError):
        desk.links.share("x", PANELS, 7, theirs, author=EVE)


def test_a_metric_that_is_gone_since_is_not_opened(desk: Desk) -> None:
    address, _ = desk.share()
    without = CATALOG.only(lambda _, name: name != ALPHA)

    assert list(desk.links.open(address, without).catalog.by_name) == []
