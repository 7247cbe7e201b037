"""The way from the relay to the gateway: a sealed message goes, a sealed answer comes back.

A request holds the message and nothing that came with it: no header of the device, no cookie, no
address.  An answer is one only if it is 200 and of the right type.  Everything else, whatever the
gateway says and whyever it says nothing, is the same for a device: it keeps its upload.

Nothing is sent twice: a device may have a new message sealed, a relay may not repeat one.

Source: RFC 9458, sections 5.1, 6.2 (what is passed on) and 6.5 (a relay does not retry).
"""

from __future__ import annotations

import http.client
import logging
import time
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from client_sdk.core.limits import MAX_ANSWER
from client_sdk.wire.oblivious import ANSWER_TYPE, PATH, REQUEST_TYPE

from ..core.deadline import Deadline
from ..core.errors import ConfigError
from ..core.logs import Incidents

_PART: Final = 16_384  # bytes read at a time, between two looks at the clock
_log = logging.getLogger("hearsay.relay")


class Carrier:
    """Carries messages to one gateway.  Safe among threads."""

    def __init__(self, to: str) -> None:
        """Carry to *to*, the address of a collector, or of any gateway with its path.

        Raises: ConfigError: it is no http or https address.
        """
        try:
            url = urlsplit(to)
            port = url.port
        except ValueError:
            raise ConfigError("--to", "(hidden)", "is no address") from None
        if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc:
            rule = "must be the address of a collector, such as https://t.example.org"
            raise ConfigError("--to", to.rpartition("@")[2], rule)
        self._host, self._port, self._secure = url.hostname, port, url.scheme == "https"
        self._path = url.path.rstrip("/") or PATH  # a collector's, where none is named
        self._incidents = Incidents(time.monotonic)

    @property
    def is_plain(self) -> bool:
        """Whether messages leave this machine without TLS, against section 6 of the RFC."""
        return not self._secure and self._host not in ("localhost", "127.0.0.1", "::1")

    def carry(self, messages: Sequence[bytes], until: float) -> list[bytes | None]:
        """Send *messages*, one after another, and return the answer to each; None for no answer.

        Args: until: monotonic time after which nothing is sent and no answer awaited.
        """
        answers: list[bytes | None] = []
        connection: http.client.HTTPConnection | None = None
        with Deadline(until - time.monotonic()) as deadline:
            for message in messages:
                try:
                    connection = connection or self._connection()
                    answers.append(self._exchange(connection, message, deadline, until))
                except Exception as error:  # noqa: BLE001  # whatever it is, devices are answered
                    self._tell(type(error).__name__)
                    answers.append(None)
                    if connection is not None:
                        connection.close()
                        connection = None
        if connection is not None:
            connection.close()
        return answers

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port)
        return http.client.HTTPConnection(self._host, self._port)

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        message: bytes,
        deadline: Deadline,
        until: float,
    ) -> bytes | None:
        """Return the answer to *message*.  Raises OSError, HTTPException: there is none."""
        _patience(connection, until)
        if connection.sock is None:
            connection.connect()
        deadline.watch(connection.sock)
        _patience(connection, until)
        connection.request("POST", self._path, message, {"Content-Type": REQUEST_TYPE})
        _patience(connection, until)
        read = bytearray()
        with connection.getresponse() as response:  # read1 alone does not note the end of one
            while part := response.read1(_PART):
                read += part
                if len(read) > MAX_ANSWER:
                    raise ValueError("too long")
                _patience(connection, until)
        deadline.require()
        if response.status != http.client.OK or response.headers.get_content_type() != ANSWER_TYPE:
            self._tell(f"status {response.status}")
            return None
        return bytes(read)

    def _tell(self, what: str) -> None:
        """Tell the operator of the relay, once a minute for each kind."""
        text = "the gateway gave no answer to a message; its device keeps it and sends it again"
        self._incidents.tell(_log, what, text)


def _patience(connection: http.client.HTTPConnection, until: float) -> None:
    """Let the next wait of *connection* end at *until*.  Raises TimeoutError: that is over."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    connection.timeout = left
    if connection.sock is not None:
        connection.sock.settimeout(left)
