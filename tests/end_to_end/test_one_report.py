"""A device makes one report of a metric and epoch, however often it records and fails to send."""

from __future__ import annotations

from client_sdk.client import Client
from client_sdk.core.errors import TransportError
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.registry import Registry
from client_sdk.upload.transport import Answer
from collector.core.catalog import Catalog
from collector.intake.validation import Verdict, judge
from collector.intake.wire import JSON, decode
from tests.support.crowds.uploads import COMMON, NOON, TODAY
from tests.support.device.clock import FakeClock
from tests.support.device.every_type import VALUES, registry_text

DAYS = 3
MOST = "100000"  # ε; the caps are not what this is about
COMMONS = COMMON.format(epsilon="2.0", min_reports=200, expires="2027-12-31")
REGISTRY = Registry.from_text(
    registry_text()
    + f"""
[metrics.kept]
title = "Kept"
question = "Which one?"
type = "boolean"
every = "1d"
{COMMONS.replace('"fresh"', '"permanent"')}
[metrics.silent]
title = "Silent"
question = "How often?"
type = "count"
mechanism = "hybrid"
aggregate = "sum"
otherwise = 0
min = 0
max = 20
step = 1
unit = "x"
every = "1d"
{COMMONS}
"""
)


class Judging:
    """A transport to a collector that is away at first, and judges as under a write key."""

    def __init__(self) -> None:
        self.is_away, self.verdicts = True, list[Verdict]()

    def send(self, body: bytes, timeout: float) -> Answer:
        if self.is_away:
            raise TransportError("away")
        upload = decode(body, JSON)
        verdict = judge(upload, Catalog([REGISTRY]), TODAY + DAYS, of_device=True)
        self.verdicts.append(verdict)
        return Answer(202, None, b'{"accepted": 1, "duplicate": false, "rejected": []}')


def test_no_device_makes_a_column_of_several_reports() -> None:
    clock, transport = FakeClock(NOON), Judging()
    with Client(
        "http://127.0.0.1",
        "",
        REGISTRY,
        consent="granted",
        data_dir=None,
        segment={"platform": "mac", "arm": "new", "version": "1"},
        caps=Caps(report="4", metric_week=MOST, week=MOST, lifetime=MOST),
        mode="manual",
        transport=transport,
        opt_outs=NoOptOuts(),
        clock=clock,
        uptime=clock.uptime,
    ) as client:
        for _ in range(DAYS):
            for values in zip(*(VALUES[name][:2] for name in VALUES), strict=True):
                for name, value in zip(VALUES, values, strict=True):
                    client.record(name, value)
            client.record("kept", True)
            client.record("kept", False)
            client.flush()
            clock.advance(days=1)
        transport.is_away = False
        for _ in range(30):
            client.flush()
            clock.advance(seconds=60)
        recorded = client.stats()

    reports = sum(verdict.reports for verdict in transport.verdicts)
    assert reports == recorded["uploaded"] == DAYS * len(REGISTRY.metrics), recorded
    assert [verdict.rejected for verdict in transport.verdicts if verdict.rejected] == []
