"""Fakes for what a device depends on: networks that fail by script, and entropy that runs dry."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from client_sdk.core.base64url import from_base64url
from client_sdk.core.errors import EntropyError, TransportError
from client_sdk.testing import answer_of
from client_sdk.upload.transport import Answer
from tests.support.enumeration.enumeration import Untouchable


class ScriptedTransport:
    """Answers by a script of Answers, statuses and errors; when it ends, accepts everything.

    ``sent`` holds every body that a device tried to send, whatever became of it.
    """

    def __init__(self, script: Iterable[Answer | int | Exception] = ()) -> None:
        self._script = list(script)
        self.sent: list[bytes] = []

    def send(self, body: bytes, timeout: float) -> Answer:
        self.sent.append(body)
        step = self._script.pop(0) if self._script else 202
        if isinstance(step, Exception):
            raise step
        return answer_of(step) if isinstance(step, int) else step


class LossyCollector:
    """Folds each upload once, by its id, over a network that loses requests and responses.

    Args: losses: for each try: None, "request" or "response".
    """

    def __init__(self, losses: Iterable[str | None]) -> None:
        self._losses = list(losses)
        self.bodies: dict[str, set[bytes]] = {}  # by upload id: more than one is a broken promise

    def send(self, body: bytes, timeout: float) -> Answer:
        loss = self._losses.pop(0) if self._losses else None
        if loss == "request":
            raise TransportError("the request was lost")
        upload_id = json.loads(body)["id"]
        duplicate = upload_id in self.bodies
        self.bodies.setdefault(upload_id, set()).add(body)
        if loss == "response":
            raise TransportError("the response was lost")
        answer = {"accepted": reports_in(body), "duplicate": duplicate, "rejected": []}
        return Answer(202, None, json.dumps(answer).encode())

    def reports(self) -> int:
        """Return how many reports arrived, each upload counted once."""
        return sum(reports_in(min(bodies)) for bodies in self.bodies.values())


class HookedTransport:
    """Does something at each send, then accepts."""

    def __init__(self, hook: Callable[[], object]) -> None:
        self._hook = hook
        self.sent: list[bytes] = []
        self.timeouts: list[float] = []

    def send(self, body: bytes, timeout: float) -> Answer:
        self.sent.append(body)
        self.timeouts.append(timeout)
        self._hook()
        return answer_of(202)


class NoEntropy(Untouchable):
    """A Randomness of an operating system that has none."""

    error = EntropyError("no entropy")


def reports_in(body: bytes) -> int:
    """Return how many reports an upload holds, of metrics whose payload is one byte."""
    columns = json.loads(body)["columns"]
    return sum(len(from_base64url(column["payloads"])) for column in columns)
