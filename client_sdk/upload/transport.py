"""The way to the collector: bytes out, an answer back.  The only module that knows HTTP.

What an answer means for the upload it answers is decided without I/O.  Only the collector can say
that it has an upload, by its acknowledgement, or that it will never take it, by a problem document
of its own.  A proxy or a captive portal speaks for the way, not for the upload: nothing is deleted
on its word.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from enum import Enum, auto

from ..core.dataclass import dataclass, field, replace
from ..core.errors import TransportError
from ..core.limits import MAX_ANSWER
from ..core.locks import QuietLock, fork_waits_first
from ..core.typing import TYPE_CHECKING, Final, Protocol
from .connections import Connections, Exchange
from .endpoint import MAX_KEY, base_of, require_header
from .endpoint import PATH as PATH

if TYPE_CHECKING:
    import requests

ACCEPTED: Final = 202
OK: Final = 200
TOO_LARGE: Final = 413
PROBLEM: Final = "application/problem+json"  # RFC 9457
PROBLEM_TYPE: Final = "urn:hearsay:problem:"  # how the type of every problem of a collector begins
_TRANSIENT: Final = (408, 425, 429)  # every 5xx is transient too
_OF_KEY: Final = (401, 403)
_BETWEEN: Final = "endpoint, and what stands between: a proxy, or a network that asks to log in"
_PERMANENT: Final = (400, 409, 410, 413, 415, 422)  # these blame the body, nothing else does

MAX_WITHHELD: Final = 100  # uploads; a developer reads the last few

RETIRED_PATH: Final = "/v1/retired"
USER_AGENT: Final = "hearsay/1"  # the wire version; the same for every device and release
TIMEOUT: Final = (3.05, 10.0)  # seconds to connect (past one TCP retry) and between bytes
MAX_EXCHANGE: Final = 60.0  # seconds for one upload in all, however long the caller would wait
_GRACE: Final = 0.5  # seconds that a request has to end after it was cut; it takes a millisecond
_LOADING: Final = 5.0  # seconds that a fork waits for the imports; from a cold disk they take one
_PART: Final = 256  # bytes; an acknowledgement is shorter, and a read waits for all of its part
JSON: Final = "application/json"
MESSAGEPACK: Final = "application/msgpack"

# all that a request imports, also inside requests: a host name is encoded by encodings.idna
NEEDED: Final = (
    *("requests", "urllib3.exceptions", "http.cookiejar"),
    *("email.utils", "encodings.idna"),
)
NO_HEADERS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class Answer:
    """What was answered, by the collector or by whatever stands before it."""

    status: int
    retry_after: float | None = None  # seconds
    body: bytes = b""
    content_type: str = ""


class Outcome(Enum):
    """What an answer means for the upload."""

    ACCEPTED = auto()  # durable at the collector: delete
    TRANSIENT = auto()  # keep, and send the same bytes later
    PERMANENT = auto()  # never accepted as it is, by the collector's own word: drop
    INCAPABLE = auto()  # this key, address or proxy cannot take it now: keep, as if transient


def outcome_of(answer: Answer) -> Outcome:
    """Return what *answer* means."""
    status = answer.status
    # an acknowledgement of the collector, come whole
    if status == ACCEPTED and type(_object_in(answer.body).get("accepted")) is int:
        return Outcome.ACCEPTED
    if status in _TRANSIENT or 500 <= status <= 599:
        return Outcome.TRANSIENT
    return Outcome.PERMANENT if status in _PERMANENT and is_ours(answer) else Outcome.INCAPABLE


def why_turned_away(status: int) -> str:
    """Return what a developer may look for where an upload was answered with *status*."""
    check = "write_key" if status in _OF_KEY else _BETWEEN
    return f"uploads are turned away with status {status}: check {check}; reports are kept"


def read_acknowledgement(body: bytes) -> tuple[int, bool]:
    """Return how many reports were rejected and whether the upload was known, from a 202's body.

    It only feeds the counts, so anything unexpected reads as nothing rejected, not known.
    """
    answer = _object_in(body)
    entries = answer.get("rejected")
    counts = [
        entry.get("count")
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
    ]
    rejected = sum(count for count in counts if type(count) is int and count > 0)
    return rejected, answer.get("duplicate") is True


def is_ours(answer: Answer) -> bool:
    """Whether the collector itself answered, and its document came whole."""
    if answer.content_type.partition(";")[0].strip().lower() != PROBLEM:
        return False
    document = _object_in(answer.body)
    kind = document.get("type")
    ours = isinstance(kind, str) and kind.startswith(PROBLEM_TYPE)
    return ours and document.get("status") == answer.status


def _object_in(body: bytes) -> dict[str, object]:
    """Return the JSON object that *body* is; an empty one if it is none."""
    import json

    if len(body) > MAX_ANSWER:
        return {}
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


class Transport(Protocol):
    """Delivers uploads.  ``send`` is called by one thread at a time.

    It may have a method ``hang_up()``: called after each upload, so that no two share a connection,
    and when the client is closed, by any thread, it ends all connections at once; a later ``send``
    makes new ones.  And a method ``fetch(path, timeout)``, which asks for what is the same for
    everybody: without key and cookie, and without a word on what was fetched before.  With one-time
    tokens, ``send`` takes ``headers`` that go beside the body.
    """

    def send(self, body: bytes, timeout: float) -> Answer:
        """Deliver *body* and return the answer.

        Args:   timeout: seconds, positive, after which the caller is to be let go.
        Raises: TransportError: no answer; *body* may or may not have arrived, unless ``unseen``.
        """


class WithheldUploads:
    """A transport that keeps the last uploads and says that they have arrived."""

    def __init__(self) -> None:
        """Begin empty."""
        self.bodies: deque[bytes] = deque(maxlen=MAX_WITHHELD)  # oldest first

    def send(self, body: bytes, timeout: float) -> Answer:
        """Keep *body*; nothing leaves."""
        self.bodies.append(body)
        return Answer(ACCEPTED, None, b'{"accepted": 0}')  # it names no rejected report


@dataclass(frozen=True)
class _Bearer:
    """The authorization of a request.  As an ``auth`` it keeps .netrc from replacing the key."""

    key: str = field(repr=False)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self.key}"
        return request


class RequestsTransport:
    """POST over HTTPS: no cookies, no redirects, and headers that are the same on every device."""

    accept: str = JSON  # what is answered
    silence: float = TIMEOUT[1]  # seconds
    longest: float = MAX_EXCHANGE

    def __init__(
        self,
        endpoint: str,
        write_key: str,
        session: requests.Session | None = None,
        content_type: str = JSON,
    ) -> None:
        """Send to *endpoint*, the base URL of a collector, with *write_key*.

        Args:   session: for adapters of your own; its idle connections are closed after each one,
                but a request that was given up runs on in it until the collector ends it.
        Raises: InvalidParameterError: not https (plain http only to this machine), or a key that
                cannot be a header; neither is shown where it could hold a secret.
        """
        self._base = base_of(endpoint)
        require_header("write_key", write_key, MAX_KEY)
        self._auth: Callable[[requests.PreparedRequest], requests.PreparedRequest]
        self._auth = _Bearer(write_key)
        self._session_of_caller, self._content_type = session, content_type
        self._own: dict[int, requests.Session] = {}  # by process id: children share no connection
        self._connections, self._loading = Connections(), QuietLock(_LOADING)
        self._last: Exchange[Answer] | None = None

    def send(self, body: bytes, timeout: float, headers: Mapping[str, str] = NO_HEADERS) -> Answer:
        """POST *body*.  A status that arrived in time counts, whatever became of its body.

        Raises: TransportError: no status within *timeout* seconds, the search for the address
                included, or an earlier request that was given up has not ended yet.
        """
        return self.exchange(PATH, body, timeout, headers)

    def fetch(self, path: str, timeout: float) -> Answer:
        """GET *path* of the collector, without the key.  Raises TransportError, as ``send``."""
        return self.exchange(path, None, timeout)

    def exchange(
        self, path: str, body: bytes | None, timeout: float, more: Mapping[str, str] = NO_HEADERS
    ) -> Answer:
        """POST *body* to *path*, or GET it, with *more* headers.  Raises TransportError."""
        if self._last is not None and not self._last.ended_within(min(timeout, _GRACE)):
            raise TransportError("no answer: an earlier request still runs")
        limit = min(timeout, self.longest)
        self._connections.allow()
        self._last = Exchange(self._request(path, body, limit, more))
        answer = self._last.latest_within(limit)
        # the peer could hold its thread; and no other request may meet a connection that it ends
        self._connections.cut()
        if answer is None:
            raise TransportError("no answer: timeout")
        return answer

    def hang_up(self) -> None:
        """End all connections; one kept open would show the collector when the process ends."""
        self._connections.cut()
        session = self._session_of_caller or self._own.get(os.getpid())
        if session is not None:
            session.close()

    def _request(
        self, path: str, body: bytes | None, limit: float, more: Mapping[str, str]
    ) -> Generator[Answer, None, None]:
        """Yield the answer as soon as there is a status, and again as its body comes.

        Args: body: of a POST with the key; None: a GET without.
        """
        self._load(NEEDED)
        yield from self._answers(path, body, limit, more)

    def _answers(
        self, path: str, body: bytes | None, limit: float, more: Mapping[str, str] = NO_HEADERS
    ) -> Generator[Answer, None, None]:
        import requests

        session = self._session()
        headers = {"User-Agent": USER_AGENT, "Accept": self.accept, "Accept-Encoding": "identity"}
        if body is not None:
            headers = {"Content-Type": self._content_type, **headers}
        headers |= more  # no "Connection: close": servers in Go then reset a body that they refuse
        try:
            response = session.request(
                "GET" if body is None else "POST",
                self._base + path,
                data=body,
                headers=headers,
                auth=no_key if body is None or "Authorization" in more else self._auth,
                timeout=(min(TIMEOUT[0], limit), min(self.silence, limit)),
                allow_redirects=False,
                stream=True,
            )
        except requests.RequestException as error:
            kind, unseen = type(error).__name__, _never_connected(error)
            # the cause is left out, as its request holds the key
            raise TransportError(f"no answer: {kind}", unseen=unseen) from None
        with response:
            status, said = response.status_code, response.headers.get
            wait = wait_of(status, said("Retry-After"), said("Date"))
            answer = Answer(status, wait, content_type=said("Content-Type", ""))
            read = bytearray()
            yield answer
            for part in _body(response):
                read += part
                yield answer
            yield replace(answer, body=bytes(read))

    def _load(self, names: Iterable[str]) -> None:
        """Import *names*, which a request needs, while no fork can take place.

        In a child that was forked in the middle of an import, the module would stay locked.
        """
        with self._loading:
            __import__("logging")  # the others depend on it, and it has a hook at forks
            fork_waits_first()
            for name in names:
                __import__(name)

    def _session(self) -> requests.Session:
        from http.cookiejar import DefaultCookiePolicy

        import requests

        session = self._session_of_caller or self._own.get(os.getpid())
        if session is None:
            session = self._own[os.getpid()] = requests.Session()
            # a proxy of the environment would carry plain text off this machine
            session.trust_env = self._base.startswith("https:")
            for scheme in ("https://", "http://"):
                session.mount(scheme, self._connections.adapter())
        session.cookies.clear()
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        return session


def no_key(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Leave *request* without authorization; as an ``auth`` it keeps .netrc from giving one."""
    return request


def _never_connected(error: requests.RequestException) -> bool:
    """Whether for certain nothing of the request left this machine."""
    from requests import ConnectTimeout
    from urllib3.exceptions import MaxRetryError, NewConnectionError

    cause = error.args[0] if error.args else None
    refused = isinstance(cause, MaxRetryError) and isinstance(cause.reason, NewConnectionError)
    return refused or isinstance(error, ConnectTimeout)


def _body(response: requests.Response) -> Iterator[bytes]:
    """Yield the beginning of the body; what is lost of it does not change the status."""
    from urllib3.exceptions import HTTPError

    try:
        for _ in range(MAX_ANSWER // _PART):
            part: bytes = response.raw.read(_PART, decode_content=False)
            if not part:
                return
            yield part
    except (HTTPError, OSError):
        return


def wait_of(status: int, text: str | None, sent: str | None) -> float | None:
    """Return for how long the collector wants to be left alone; a 202 asks for nothing.

    Args: text, sent: the headers Retry-After and Date.
    """
    return None if status == ACCEPTED else _retry_after(text, sent)


def _retry_after(text: str | None, sent: str | None) -> float | None:
    """Return the seconds of a Retry-After header: a number, or a date after that of *sent*.

    A date is compared with the collector's own Date, so a device's wrong clock does not matter.
    """
    from email.utils import parsedate_to_datetime

    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return (parsedate_to_datetime(text) - parsedate_to_datetime(sent or "")).total_seconds()
    except Exception:  # noqa: BLE001 - whatever a hostile date does to its parser
        return None
