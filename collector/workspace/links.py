"""Shared links: anyone with the address can open their questions, without an account.

An address holds the name of a grant, when it ends, and a digest of all that it opens, under an
HMAC whose secret is in the store.  So no address can be made up, prolonged or widened, not even by
changing the stored grant: its digest would differ.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from struct import Struct as Layout
from threading import Lock
from typing import Final, NamedTuple

import msgspec

from ..core.catalog import Catalog
from ..core.errors import (
    QueryError,
    TooFastError,
    UnknownDocumentError,
    UnknownLinkError,
)
from ..storage.documents import DocumentStore
from .documents import Author, Document, Grant, Panel, plain
from .shelf import Shelf, place_of

DAYS: Final = (1, 7, 30, 90)  # for which a link can be good; a forgotten one must end by itself
OPENINGS: Final = 60  # a minute, of one link in one process
_MINUTE: Final = 60.0  # seconds
_DAY: Final = 86_400  # seconds
_PURPOSE: Final = "links"
_SECRET_BYTES: Final = 32
_CONTEXT: Final = b"hearsay shared link 1\0"
_LAYOUT: Final = Layout(">Q16s")  # end, digest of the grant
_MAC_BYTES: Final = 32
_MOST_CHARACTERS: Final = 128  # of an address


class Opened(NamedTuple):
    """A grant that an address opens, and the metrics that it may read."""

    document: Document[Grant]
    catalog: Catalog


class Links:
    """Makes addresses and opens them."""

    def __init__(
        self,
        shelf: Shelf[Grant],
        store: DocumentStore,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        """Keep grants on *shelf*, and the secret in *store*."""
        self._shelf, self._store, self._clock = shelf, store, clock
        self._pace = _Pace(monotonic)

    def share(
        self,
        title: str,
        panels: list[Panel],
        days: int,
        view: Catalog,
        *,
        author: Author,
        board: str = "",
        app: str = "",
        about: str = "",
    ) -> tuple[str, Document[Grant]]:
        """Grant *panels* about metrics of *view* for *days*; return the end of an address.

        Raises: QueryError, UnknownMetricError: *view* does not have what is asked.
        """
        if days not in DAYS:
            raise QueryError("days", f"must be one of {', '.join(map(str, DAYS))}")
        names = dict.fromkeys(name for panel in panels for name in panel.metrics)
        grant = Grant(
            title=title,
            panels=panels,
            reads=[place_of(view, name) for name in names],
            expires=int(self._clock()) + days * _DAY,
            board=board,
            app=app,
            about=about,
        )
        document = self._shelf.add(grant, author)
        return self.address(document), document

    def address(self, document: Document[Grant]) -> str:
        """Return the end of the address that opens *document*."""
        payload = _LAYOUT.pack(document.content.expires, _digest(document.content))
        token = urlsafe_b64encode(payload + self._mac(document.name, payload))
        return f"{document.name}.{token.decode().rstrip('=')}"

    def open(self, address: str, catalog: Catalog) -> Opened:
        """Return what *address* opens, with a catalog of nothing else.

        Raises: UnknownLinkError: it was not made here, is cut off, too old, or revoked.
                TooFastError: it is opened too often.
        """
        name, _, text = address.partition(".")
        payload, mac = _parts(text)
        if not hmac.compare_digest(mac, self._mac(name, payload)):
            raise UnknownLinkError
        expires, digest = _LAYOUT.unpack(payload)
        if self._clock() >= expires:
            raise UnknownLinkError
        self._pace.take(name)
        try:
            document = self._shelf.document(name)
        except UnknownDocumentError:  # deleted so long ago that it made room
            raise UnknownLinkError from None
        grant = document.content
        if document.deleted or grant.expires != expires or _digest(grant) != digest:
            raise UnknownLinkError
        reads = set(grant.reads)
        return Opened(document, catalog.only(lambda app, metric: (app, metric) in reads))

    def is_good(self, document: Document[Grant]) -> bool:
        """Return whether its address still opens *document*."""
        return not document.deleted and self._clock() < document.content.expires

    def _mac(self, name: str, payload: bytes) -> bytes:
        message = _CONTEXT + name.encode() + b"\0" + payload
        return hmac.digest(self._secret(), message, "sha256")

    def _secret(self) -> bytes:
        return self._store.secret(_PURPOSE, secrets.token_bytes(_SECRET_BYTES))


class _Pace:
    """How often each link was opened in this minute: only signed ones are counted, so few."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic, self._lock = monotonic, Lock()
        self._since, self._counts = float("-inf"), dict[str, int]()

    def take(self, name: str) -> None:
        """Count an opening.  Raises TooFastError."""
        with self._lock:
            now = self._monotonic()
            if now - self._since >= _MINUTE:
                self._since, self._counts = now, {}
            self._counts[name] = self._counts.get(name, 0) + 1
            if self._counts[name] > OPENINGS:
                raise TooFastError(f"link: is opened more than {OPENINGS} times a minute")


def _digest(grant: Grant) -> bytes:
    return hashlib.sha256(msgspec.json.encode(plain(grant), order="sorted")).digest()[:16]


def _parts(text: str) -> tuple[bytes, bytes]:
    """Return payload and signature in *text*; zeros if it is no address."""
    nothing = bytes(_LAYOUT.size), bytes(_MAC_BYTES)
    if not text.isascii() or len(text) > _MOST_CHARACTERS:
        return nothing
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return nothing
    if len(raw) != _LAYOUT.size + _MAC_BYTES or urlsafe_b64encode(raw).decode().rstrip("=") != text:
        return nothing  # the same bytes must not have two addresses
    return raw[: _LAYOUT.size], raw[_LAYOUT.size :]
