"""What a pass sends first, and what it must not send at all."""

from __future__ import annotations

import json

import pytest

from client_sdk.core.epoch import DAY
from client_sdk.privacy.consent import Consent
from client_sdk.testing import answer_of
from client_sdk.upload.schedule import MAX_BACKOFF
from client_sdk.upload.sealing import MAX_SEALED
from client_sdk.upload.transport import Answer
from tests.support.device.device_desk import Desk
from tests.support.device.device_transport import ScriptedTransport
from tests.support.enumeration.seeded import SeededRandomness


class FailingAt:
    """A collector that fails at the uploads of one platform, and accepts all others."""

    def __init__(self, platform: str, status: int = 500) -> None:
        self._platform, self._status = platform, status
        self.seen: list[tuple[str, bytes]] = []

    def send(self, body: bytes, timeout: float) -> Answer:
        platform = json.loads(body)["segment"]["platform"]
        self.seen.append((platform, body))
        return answer_of(self._status if platform == self._platform else 202)


def flush_later(desk: Desk, times: int = 1) -> None:
    for _ in range(times):
        desk.clock.advance(seconds=MAX_BACKOFF)
        desk.flush()


@pytest.mark.parametrize("status", [500, 503, 429, 401, 302])
def test_an_upload_that_always_fails_blocks_no_other(status: int) -> None:
    desk = Desk(collector := FailingAt("mac", status))
    for platform in ("mac", "linux", "other"):
        desk.put(1, platform)

    flush_later(desk, 2)
    desk.put(1, "linux")
    flush_later(desk, 2)

    assert desk.waiting() == 1
    assert desk.counts()["uploaded"] == 3
    assert len({body for platform, body in collector.seen if platform == "mac"}) == 1


def test_a_long_outage_does_not_seal_every_report_by_itself() -> None:
    desk = Desk(transport := ScriptedTransport([503] * 36))
    for _ in range(36):
        desk.put(1)
        flush_later(desk)

    flush_later(desk, 20)

    days = 36 * MAX_BACKOFF // DAY + 1
    assert len(set(transport.sent)) <= MAX_SEALED + days
    assert desk.counts() == {"postponed": 36, "uploaded": 36}


def test_uploads_that_always_fail_keep_none_from_being_sent_however_many() -> None:
    """Law: also when more are stuck than are sealed during an outage."""
    desk = Desk(collector := FailingAt("mac"))
    for _ in range(40):
        desk.put(1, "mac")
        flush_later(desk)
    stuck = len({body for _, body in collector.seen})
    desk.put(1, "linux")

    flush_later(desk, 60)

    assert stuck > MAX_SEALED
    assert desk.counts()["uploaded"] == 1


class RevokingRandomness(SeededRandomness):
    """A draw during which the user says no: after the upload was chosen, before it is sent."""

    desk: Desk

    def uniform(self, n: int) -> int:
        self.desk.switch.consent = Consent.DENIED
        return super().uniform(n)


def test_a_revocation_between_sealing_and_sending_is_obeyed() -> None:
    randomness = RevokingRandomness(b"no")
    desk = randomness.desk = Desk(transport := ScriptedTransport(), randomness)
    desk.put(1)

    desk.flush()

    assert (transport.sent, desk.waiting(), desk.counts()) == ([], 1, {})
