"""POST /v1/reports over any carrier: check an upload, say what to append, acknowledge.

No HTTP library here: Flask's route and the server's own protocol both call these steps.  A
body is read within limits, compressed or not: a bomb costs no more than an honest body.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import IO, Final

import msgspec
from msgspec import Struct

from client_sdk.core.limits import MAX_INFLATION
from client_sdk.wire.private_token import HEADER

from ...core.cells import ATTESTED, RELAYED, UNKNOWN, Source
from ...core.entry import AcceptedColumn
from ...core.errors import (
    BodyTooLargeError,
    MalformedUploadError,
    ManyTalliesError,
    UnsupportedTypeError,
)
from ...intake.backpressure import Pressure
from ...intake.keyring import Keyring, WriteGrant
from ...intake.memory_quota import IdQuota
from ...intake.tally_quota import Beginning, TallyQuota
from ...intake.tokens import Tokens, token_of
from ...intake.validation import Verdict, judge
from ...intake.wire import JSON, MSGPACK, decode
from ...operations.telemetry.activity import Activity
from ...serving.bodies import require_size
from ...storage.values import SealedUpload

_GZIP_CODING: Final = 16 + zlib.MAX_WBITS  # zlib's way to say: a gzip header is expected
PATH: Final = "/v1/reports"
_TOKEN: Final = HEADER.lower()
_IDENTITY, _GZIP = "identity", "gzip"
_encode = msgspec.json.Encoder().encode


def read(stream: IO[bytes], limit: int) -> bytes:
    """Return the whole *stream*: one read may bring only what has arrived.

    Raises: BodyTooLargeError: it has more than *limit* bytes, and one more was read.
    """
    parts: list[bytes] = []
    left = limit + 1
    while left > 0 and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    require_size(limit + 1 - left, limit)
    return b"".join(parts)


def inflate(body: bytes, limit: int) -> bytes:
    """Return gzip *body* inflated, of at most *limit* bytes.

    Raises: BodyTooLargeError: it would be longer.  MalformedUploadError: not whole gzip.
    """
    inflater = zlib.decompressobj(_GZIP_CODING)
    try:
        inflated = inflater.decompress(body, limit + 1)
    except zlib.error:
        raise MalformedUploadError("the body is not valid gzip") from None
    if len(inflated) > limit:
        raise BodyTooLargeError(f"the body may inflate to at most {limit} bytes for this key")
    if not inflater.eof or inflater.unused_data:
        raise MalformedUploadError("the body is not one whole gzip stream")
    return inflated


class Head(Struct, frozen=True):
    """What the headers of an upload say; "" for one that is absent."""

    authorization: str
    content_type: str
    content_encoding: str
    length: int | None  # bytes on the wire, if they were announced
    source: Source = UNKNOWN  # what is known of how it came
    token: str | None = None  # as it stands in the request

    @classmethod
    def of(
        cls, said: Callable[[str], str | None], length: int | None, source: Source = UNKNOWN
    ) -> Head:
        """Return what the headers say that *said* gives by name, in small letters."""
        return cls(
            authorization=said("authorization") or "",
            content_type=said("content-type") or "",
            content_encoding=said("content-encoding") or "",
            length=length,
            source=source,
            token=said(_TOKEN),
        )


class Admission(Struct, frozen=True):
    """An upload whose body may be read: up to ``grant.limit`` bytes."""

    grant: WriteGrant
    media_type: str
    compressed: bool
    source: Source = UNKNOWN
    token: str | None = None


class Judgement(Struct, frozen=True):
    """What is to be appended, None if no report was accepted, and what is to be answered."""

    sealed: SealedUpload | None
    verdict: Verdict


class Observer:
    """Gets accepted reports, for developers; this one ignores them."""

    def accept(self, columns: Sequence[AcceptedColumn]) -> None:
        """See the reports of an upload that is stored, and was not seen before."""


class HotRoute:
    """The steps between headers and acknowledgement.  Safe to share between threads."""

    def __init__(
        self,
        keyring: Keyring,
        pressure: Pressure,
        id_quota: IdQuota,
        tally_quota: TallyQuota,
        activity: Activity,
        observer: Observer | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        """Judge by the clock of *pressure*; count in the quotas and *activity*."""
        self._observer, self._tokens = observer, tokens or Tokens({})
        self._keyring, self._pressure, self._activity = keyring, pressure, activity
        self._id_quota, self._tally_quota = id_quota, tally_quota

    def admit(self, head: Head) -> Admission:
        """Decide by its headers whether the body of an upload is worth reading.

        Raises: UnauthorizedError, QuotaExhaustedError, TooFastError, OverloadedError,
            StorageUnavailableError, StorageFullError, UnsafeStoreError, BodyTooLargeError.
            UnsupportedTypeError: another type, or another encoding.
        """
        self._pressure.require_room()
        grant = self._keyring.grant(head.authorization)
        self._id_quota.require(grant.key, self._pressure.load.health, grant.counted)
        media_type = head.content_type
        if media_type not in (JSON, MSGPACK):
            media_type = media_type.partition(";")[0].strip().lower()
            if media_type not in (JSON, MSGPACK):
                raise UnsupportedTypeError(f"Content-Type must be {JSON} or {MSGPACK}")
        encoding = head.content_encoding.lower() or _IDENTITY
        if encoding not in (_IDENTITY, _GZIP):
            raise UnsupportedTypeError("Content-Encoding must be gzip or absent")
        size = grant.limit if head.length is None else head.length
        require_size(size, grant.limit)
        self._pressure.charge(grant.key, size)
        # A gateway's key names the origin of its reports, so a relay cannot hide them.
        source = head.source if grant.is_public else head.source - {RELAYED}
        source |= grant.source
        return Admission(grant, media_type, encoding == _GZIP, source, head.token)

    def judge(self, admission: Admission, body: bytes) -> Judgement:
        """Decode and judge *body*, as it was on the wire.

        Raises: BodyTooLargeError, MalformedUploadError, ExpiredUploadError, FutureUploadError.
            ClockError: the day is in doubt, so no upload is refused for good as too old.
            StorageUnavailableError, StorageFullError, UnsafeStoreError: its shard takes none now.
            TokenError: a token is needed, and the device sent none or an invalid one.
        """
        limit = admission.grant.limit
        require_size(len(body), limit)
        if admission.compressed:
            body = inflate(body, limit * MAX_INFLATION)
        upload = decode(body, admission.media_type)
        grant, today = admission.grant, self._pressure.today()
        source, token = admission.source, token_of(admission.token, upload)
        if grant.is_public and self._tokens.is_attested(
            admission.token, token, upload, grant.catalog
        ):
            source |= {ATTESTED}
        verdict = judge(upload, grant.catalog, today, of_device=grant.is_public, source=source)
        if verdict.accepted:
            self._pressure.require_shard(upload.id)
        self._pressure.charge_fold(grant.key, verdict.steps)
        if not verdict.accepted:
            return Judgement(None, verdict)
        day = self._tokens.remembered_day(token, upload, of_device=grant.is_public)
        return Judgement(SealedUpload(upload.id, day, verdict.entry, verdict.reports), verdict)

    def beginning(self, admission: Admission, judgement: Judgement) -> Beginning | None:
        """Return what ``refusals`` must allow before an upload is appended; None if nothing."""
        if judgement.sealed is None or not admission.grant.is_public:
            return None
        upload_id, columns = judgement.sealed.upload_id, judgement.verdict.accepted
        if self._tally_quota.is_known(upload_id, columns):
            return None
        return Beginning(admission.grant.key, upload_id, columns)

    def refusals(self, beginnings: Sequence[Beginning]) -> list[ManyTalliesError | None]:
        """Return which of *beginnings* begin more tallies than their key may.  Asks the store."""
        return self._tally_quota.refusals(beginnings, self._pressure.load.health.memory_limit)

    def require_place(self, admission: Admission, judgement: Judgement) -> None:
        """Return if the key of an upload may begin the tallies in which it will be counted.

        Raises: ManyTalliesError.
        """
        beginning = self.beginning(admission, judgement)
        if beginning is not None and (refusal := self.refusals([beginning])[0]) is not None:
            raise refusal

    def count(self, admission: Admission, judgement: Judgement, first: bool) -> None:
        """Count a stored upload, even if its sender no longer waits.

        Args: first: False if its id had been seen before.
        """
        verdict = judgement.verdict
        if first and judgement.sealed is not None:
            self._activity.accept_upload()
            self._id_quota.count(admission.grant.key)
            self._keyring.count(admission.grant, verdict.reports)
            if self._observer is not None:
                self._observer.accept(verdict.accepted)
        self._activity.judged(verdict.rejected, first)


def acknowledgement(verdict: Verdict, first: bool) -> bytes:
    """Return the answer, JSON, to an upload that is stored.

    Args: first: False if its id had been seen before.
    """
    return _encode(
        {"accepted": verdict.reports, "duplicate": not first, "rejected": verdict.rejected}
    )
