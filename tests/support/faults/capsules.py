"""Uploads in capsules: how a fleet sends them by a relay, and a relay that is hostile."""

from __future__ import annotations

import http.client
import random
import socketserver
import threading
import time
from collections import Counter
from http import HTTPStatus
from typing import Final

from client_sdk.upload.ohttp import Capsule, seal
from client_sdk.wire.binary_http import Request, decode_response, encode_request
from client_sdk.wire.oblivious import ANSWER_TYPE, PATH, REQUEST_TYPE, KeyConfiguration
from tests.support.crowds.uploads import WRITE_KEY
from tests.support.device.loopback import LoopbackServer

from .fleet import NO_ANSWER, TIMEOUT, Send
from .proxy import read_message

_FIELDS: Final = (("authorization", f"Bearer {WRITE_KEY}"), ("content-type", "application/json"))


def capsule_of(configuration: KeyConfiguration, body: bytes) -> Capsule:
    """Return upload *body* in a capsule of its own."""
    upload = Request("POST", "https", "t.example.org", "/v1/reports", _FIELDS, body)
    return seal(configuration, encode_request(upload))


def carry(port: int, message: bytes, path: str = "/") -> tuple[int, bytes]:
    """Send *message* over a connection of its own; return status and answer, or NO_ANSWER."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request("POST", path, message, {"Content-Type": REQUEST_TYPE})
        with connection.getresponse() as response:
            return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return NO_ANSWER, b""
    finally:
        connection.close()


def by_relay(configuration: KeyConfiguration) -> Send:
    """Return what a fleet sends by: a fresh capsule at each try, whose answer alone counts."""

    def send(port: int, body: bytes) -> tuple[int, bytes]:
        capsule = capsule_of(configuration, body)
        status, message = carry(port, capsule.message)
        if status != HTTPStatus.OK:
            return status, b""
        try:
            answer = decode_response(capsule.open_answer(message))
        except ValueError:
            return NO_ANSWER, b""
        return answer.status, answer.content

    return send


class HostileRelay(LoopbackServer):
    """Carries messages to *target* as a relay should not: twice, late, cut, or answered wrongly."""

    def __init__(self, target: int, seed: int) -> None:
        self.target, self.chance = target, random.Random(f"{seed} hostile relay")
        self.counts: Counter[str] = Counter()
        self.kept: list[bytes] = []  # messages to be sent again, long after
        self.answers: list[bytes] = []  # of others
        self.lock = threading.Lock()
        super().__init__(_Handler)

    def replay(self) -> set[int]:
        """Send everything once more, in another order; return the statuses of the answers."""
        again = [*self.kept]
        self.chance.shuffle(again)
        return {carry(self.target, message, PATH)[0] for message in again}


class _Handler(socketserver.BaseRequestHandler):
    server: HostileRelay

    def handle(self) -> None:
        relay = self.server
        message = read_message(self.request).partition(b"\r\n\r\n")[2]
        with relay.lock:
            whim, late, where = relay.chance.random(), relay.chance.random(), relay.chance.random()
            relay.kept.append(message)
        time.sleep(0.2 * late)  # so later messages overtake it
        if whim < 0.2:
            relay.counts["cut"] += 1
            cut = message[: int(len(message) * where)]
            return self._answer(*carry(relay.target, cut, PATH))
        if whim < 0.4:
            relay.counts["repeated"] += 1
            carry(relay.target, message, PATH)
        status, answer = carry(relay.target, message, PATH)
        if 0.4 <= whim < 0.6:
            relay.counts["answers lost"] += 1
            return None
        with relay.lock:
            relay.answers.append(answer)
            if 0.6 <= whim < 0.8:
                relay.counts["answers of others"] += 1
                answer = relay.chance.choice(relay.answers)
        return self._answer(status, answer)

    def _answer(self, status: int, answer: bytes) -> None:
        head = (
            f"HTTP/1.1 {status or 502} X\r\nContent-Type: {ANSWER_TYPE}\r\n"
            f"Content-Length: {len(answer)}\r\nConnection: close\r\n\r\n"
        )
        self.request.sendall(head.encode() + answer)
