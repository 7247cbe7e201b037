"""What a collector can learn of a device from connections, answers and times: nothing that links.

The same adversaries are shown the old behaviour, in which a pass sends all that waits over one
connection and a pass that is overdue is made at once.  They must see through it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import groupby, pairwise
from math import comb
from operator import itemgetter
from pathlib import Path

import pytest

from client_sdk.core.dataclass import replace
from client_sdk.core.epoch import DAY, HOUR
from client_sdk.core.errors import TransportError
from client_sdk.testing import answer_of
from client_sdk.upload.schedule import FIRST_REST, MOST_LOTS, UPLOAD_EVERY
from client_sdk.upload.transport import Answer, RequestsTransport, Transport
from client_sdk.wire.reports import DEVICE, Bounds
from tests.support.device.clock import FakeClock
from tests.support.device.device import KEY, make_client, metric_text, registry_of
from tests.support.device.device_desk import Desk
from tests.support.device.device_transport import ScriptedTransport
from tests.support.device.slow_collector import slow_collector
from tests.support.enumeration.seeded import SeededRandomness

REFUSED_DAYS = (8, 9)  # of every ten: no upload is taken, so that new ones lie behind old ones


class Links:
    """Groups of upload ids that the collector takes for those of one device."""

    def __init__(self) -> None:
        self._group: dict[str, set[str]] = {}

    def join(self, one: str, other: str) -> None:
        """Take two uploads for those of one device."""
        merged = self._group.setdefault(one, {one}) | self._group.setdefault(other, {other})
        for upload_id in merged:
            self._group[upload_id] = merged

    def largest(self) -> int:
        """Return how many uploads the largest group holds; 1 if nothing was linked."""
        return max(map(len, self._group.values()), default=1)

    def groups(self) -> list[set[str]]:
        """Return each group once."""
        return [set(ids) for ids in {frozenset(ids) for ids in self._group.values()}]


class LinkingCollector:
    """Answers 503 to one upload of a device for days: whatever comes beside it is of that device.

    To be sure of a next one it refuses all for two days of ten, takes the old one back, and refuses
    what comes after it on the same connection.
    """

    def __init__(self, begin: float) -> None:
        self._begin = begin
        self._refused: dict[str, int] = {}  # upload id to the day
        self.links = Links()
        self.accepted: list[str] = []

    def connection(self, clock: Callable[[], float]) -> Connection:
        """Return the end of a device's transport."""
        return Connection(self, clock)

    def answer(self, connection: Connection, upload_id: str, now: float) -> int:
        """Return the status for an upload."""
        day = int((now - self._begin) // DAY)
        if connection.last:
            self.links.join(upload_id, connection.last)
        is_first, connection.last = not connection.last, upload_id
        if upload_id in self._refused:
            if day % 10 != max(REFUSED_DAYS) or day - self._refused[upload_id] < 3:
                return 503
            del self._refused[upload_id]
            connection.swaps = True
            return 202
        if connection.swaps or (is_first and (day % 10 in REFUSED_DAYS or day == 0)):
            self._refused[upload_id] = day
            return 503
        self.accepted.append(upload_id)
        return 202


class Connection:
    """A transport of one device: uploads share a connection until it hangs up."""

    def __init__(self, collector: LinkingCollector, clock: Callable[[], float]) -> None:
        self._collector, self._clock = collector, clock
        self.last, self.swaps = "", False

    def send(self, body: bytes, timeout: float) -> Answer:
        """Ask the collector."""
        upload_id = str(json.loads(body)["id"])
        return answer_of(self._collector.answer(self, upload_id, self._clock()))

    def hang_up(self) -> None:
        """End the connection."""
        self.last, self.swaps = "", False


class KeptConnection(Connection):
    """The planted bug: a connection that lasts as long as its pass."""

    def hang_up(self) -> None:
        """Keep it."""

    def end_pass(self) -> None:
        """End it after all."""
        super().hang_up()


def best_guess(delays: Iterable[float], width: float) -> int:
    """Return how often whoever guesses one delay, to within *width* seconds in all, is right."""
    bins = sorted(int(delay // width) for delay in delays)
    return max(len(list(same)) for _, same in groupby(bins))


DEVICES, DAYS, FLUSHES = 20, 60, 6  # flushes a day
TOGETHER: Bounds = replace(DEVICE, apart=False)  # a pass sends all that waits, as a gateway's does
MINUTE = 60  # seconds
FALSE_ALARM = 1e-9
TWO_SEGMENTS = registry_of(  # reports of the two never share an upload
    metric_text("m0"), metric_text("m1", 'type = "boolean"\nsegments = ["platform"]')
)


def besieged(collector: LinkingCollector, bounds: Bounds, kind: type[Connection]) -> int:
    """Let a fleet report for DAYS; return how many uploads the busiest device made."""
    most = 0
    for number in range(DEVICES):
        clock, before = FakeClock(), len(collector.accepted)
        connection = kind(collector, clock)
        desk = Desk(connection, SeededRandomness(b"%d" % number), clock=clock, bounds=bounds)
        for turn in range(DAYS * FLUSHES):
            if turn % FLUSHES == 0:
                desk.put(5)
            desk.flush()
            if isinstance(connection, KeptConnection):
                connection.end_pass()
            clock.advance(seconds=DAY / FLUSHES)
        most = max(most, len(collector.accepted) - before)
    return most


def test_an_upload_that_is_refused_for_days_is_no_cookie() -> None:
    """Law: a collector that answers 503 as it likes links no two uploads of a device."""
    collector = LinkingCollector(FakeClock()())

    most = besieged(collector, DEVICE, Connection)

    assert most >= DAYS // 2
    assert collector.links.largest() <= 2


def test_the_adversary_links_what_shares_a_pass_and_a_connection() -> None:
    """Law: the planted bug is caught, so the law above could fail."""
    collector = LinkingCollector(FakeClock()())

    most = besieged(collector, TOGETHER, KeptConnection)

    assert collector.links.largest() > most // 2


class Unsteady:
    """A network and a collector that fail by chance; remembers when each upload came."""

    def __init__(self, clock: FakeClock, seed: bytes) -> None:
        self._clock, self._chance = clock, SeededRandomness(seed)
        self.seen: list[tuple[float, bytes]] = []

    def send(self, body: bytes, timeout: float) -> Answer:
        self.seen.append((self._clock(), body))
        turn = self._chance.uniform(10)
        if turn < 2:
            raise TransportError("lost")
        return Answer(503, retry_after=900.0 if turn < 4 else None) if turn < 6 else answer_of(202)


def least_gap(seen: list[tuple[float, bytes]]) -> float:
    """Return the least seconds from an upload to the next other one.

    Repeats in between say nothing of either: their times do not depend on that of the next.
    """
    firsts = [next(tries)[0] for _, tries in groupby(seen, key=itemgetter(1))]
    return min(later - sooner for sooner, later in pairwise(firsts))


def reports_for_weeks(transport: Unsteady, clock: FakeClock, bounds: Bounds, seed: bytes) -> Desk:
    """Let a device that never ends report of three segments a day, by its schedule."""
    desk = Desk(transport, SeededRandomness(seed), clock=clock, bounds=bounds)
    for _ in range(40):
        for platform in ("mac", "linux", "other"):
            desk.put(1, platform)
        end = clock() + DAY
        while clock() < end:
            clock.advance(seconds=min(desk.uploader.wait(clock()), end - clock()) + 0.001)
            desk.uploader.run(60)
    return desk


@pytest.mark.parametrize("seed", [b"one", b"two", b"three"])
def test_two_uploads_of_a_device_are_never_near_in_time(seed: bytes) -> None:
    """Law: whatever fails, only the same bytes come again soon; and all arrives."""
    clock = FakeClock()
    transport = Unsteady(clock, seed)

    desk = reports_for_weeks(transport, clock, DEVICE, seed)

    assert least_gap(transport.seen) >= UPLOAD_EVERY / 2 / MOST_LOTS
    assert desk.counts()["uploaded"] >= 3 * 38
    assert desk.counts().get("too_old", 0) == 0


def test_uploads_of_one_pass_would_be_near_in_time() -> None:
    """Law: the planted bug is caught."""
    clock = FakeClock()
    transport = Unsteady(clock, b"one")

    reports_for_weeks(transport, clock, TOGETHER, b"one")

    assert least_gap(transport.seen) < MINUTE


def test_no_two_uploads_share_a_connection(tmp_path: Path) -> None:
    """Law: also those that a flush sends one after another, on a real socket."""
    with slow_collector(lambda body: 0.0) as collector:
        report_of_two_segments(tmp_path, RequestsTransport(collector.url, KEY))

    assert len(set(collector.connections)) == len(collector.bodies) == 2


def test_a_session_of_the_application_keeps_no_connection_either(tmp_path: Path) -> None:
    import requests

    with slow_collector(lambda body: 0.0) as collector, requests.Session() as session:
        report_of_two_segments(tmp_path, RequestsTransport(collector.url, KEY, session))

    assert len(set(collector.connections)) == len(collector.bodies) == 2


def report_of_two_segments(folder: Path, transport: Transport) -> None:
    client = make_client(
        folder, registry=TWO_SEGMENTS, transport=transport, segment={"platform": "mac"}
    )
    client.record("m0", True)
    client.record("m1", True)
    client.flush()
    client.close()


def delays_after_starts(*, planted: bool) -> list[float]:
    """Return how long after the start of a daily session of three hours each upload left."""
    delays: list[float] = []
    for number in range(DEVICES):
        chance, clock = SeededRandomness(b"start %d" % number), FakeClock()
        transport = ScriptedTransport()
        desk = Desk(transport, clock=clock, randomness=chance)
        desk.put(1)
        desk.uploader.wait(clock())
        for day in range(1, 16):
            # between six hours after the last pass of yesterday's session and tomorrow's first
            clock.now = FakeClock().now + day * DAY + chance.uniform(6 * HOUR)
            start = clock()
            desk = Desk(transport, clock=clock, randomness=chance, store=desk.store)
            desk.put(1)
            wait = 0.0 if planted else desk.uploader.wait(clock())
            assert wait <= 3 * HOUR
            clock.advance(seconds=wait)
            before = len(transport.sent)
            desk.uploader.run(60, last=planted)
            if len(transport.sent) > before:
                delays.append(clock() - start)
    return delays


def tail(n: int, p: float, least: int) -> float:
    """Return the chance of *least* or more successes in *n* tries."""
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(least, n + 1))


def test_an_upload_does_not_tell_when_the_application_began() -> None:
    """Law: whoever guesses the start to within two minutes is right by chance only."""
    delays = delays_after_starts(planted=False)

    width, guesses = 2 * MINUTE, FIRST_REST // (2 * MINUTE)
    right = best_guess(delays, width)
    assert len(delays) == DEVICES * 15
    assert guesses * tail(len(delays), 1 / guesses, right) > FALSE_ALARM


def test_an_overdue_pass_that_is_made_at_once_tells_the_start() -> None:
    """Law: the planted bug is caught."""
    delays = delays_after_starts(planted=True)

    width, guesses = 2 * MINUTE, FIRST_REST // (2 * MINUTE)
    assert guesses * tail(len(delays), 1 / guesses, best_guess(delays, width)) < FALSE_ALARM


@pytest.mark.parametrize("minutes", [1, 5, 30])
def test_short_sessions_are_heard_within_a_week_and_not_at_their_ends(minutes: int) -> None:
    """Law: the wait after a start becomes as short as the sessions are."""
    for number in range(30):
        clock, transport = FakeClock(), ScriptedTransport()
        chance = SeededRandomness(b"session %d" % number)
        desk = Desk(transport, chance, clock=clock)
        desk.put(1)
        desk.uploader.wait(clock())
        sessions, inside = 0, True
        while not transport.sent:
            sessions += 1
            clock.advance(days=1)
            end = clock() + minutes * MINUTE
            desk = Desk(transport, chance, desk.store, clock)
            wait = desk.uploader.wait(clock())
            inside = 0 <= wait <= minutes * MINUTE
            clock.advance(seconds=min(wait, minutes * MINUTE))
            desk.uploader.run(60)
            clock.advance(seconds=max(0.0, end - clock()))

        assert sessions <= 7
        assert inside


def test_a_client_that_lived_long_sends_nothing_at_its_end(tmp_path: Path) -> None:
    """Law: the end of an application does not show, unless it is all there was of it."""
    clock = FakeClock()
    make_client(tmp_path, clock=clock, transport=ScriptedTransport([503])).record("theme", "plain")
    sent = []
    for lived in (3_600.0, 0.0):
        transport = ScriptedTransport()
        with make_client(tmp_path, mode="background", clock=clock, transport=transport) as client:
            client.record("dark_mode", True)
            client.flush(0.0)  # writes down what was recorded, and sends nothing
            client._engine.uploader.wait(clock())
            clock.advance(days=1)
            client._engine._started_at -= lived
        sent.append(len(transport.sent))

    assert sent == [0, 1]


def test_a_short_life_sends_one_upload_however_many_wait(tmp_path: Path) -> None:
    """Law: two within a second would be known to be of one device; the others come later."""
    clock, sent = FakeClock(), []
    for _ in range(14):
        transport = ScriptedTransport()
        with make_client(
            tmp_path,
            mode="background",
            clock=clock,
            transport=transport,
            registry=TWO_SEGMENTS,
            segment={"platform": "mac"},
        ) as client:
            client.record("m0", True)
            client.record("m1", True)
        sent.append(len(transport.sent))
        clock.advance(seconds=5 * HOUR)

    assert max(sent) == 1
    assert sum(sent) >= 4
