"""What a device with a panel reports, spends and says of it, whatever is recorded."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import date
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from client_sdk.client import Client
from client_sdk.core.epoch import DAY, HOUR, epoch_of
from client_sdk.core.errors import InvalidParameterError
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.privacy.panel import Panel
from client_sdk.recording.child import serve
from client_sdk.recording.handover import Handover
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.registry.seats import WHOLE
from client_sdk.storage.secret import SECRET_FILE
from tests.support.device.clock import NOON, FakeClock
from tests.support.device.device import alter, dearest_span, make_client, metric_text, rows
from tests.support.device.panels import (
    panel,
    registry,
    secret_of,
    twelve,
    weekly,
)
from tests.support.device.programs import ROOT
from tests.support.patience import PATIENCE


def test_a_panel_above_the_caps_or_too_small_is_refused_when_the_client_is_made() -> None:
    for of, caps in ((twelve(), Caps(week="4")), (registry(weekly("m"), week="0.5"), Caps())):
        with pytest.raises(InvalidParameterError) as refusal:
            make_client(registry=of, caps=caps)
        assert refusal.value.name == "panel.week"


def test_a_device_reports_of_its_panel_alone_and_the_cap_is_not_met() -> None:
    """Twelve weekly metrics on the last day of a week and the first of the next."""
    for _ in range(5):
        clock = FakeClock((epoch_of("7d", NOON) + 1) * 7 * DAY - 3 * DAY - HOUR)
        client = make_client(registry=twelve(), clock=clock, mode="manual")
        for _ in range(2):
            for metric in twelve():
                client.record(metric.name, True)
            clock.advance(seconds=2 * HOUR)
        counts = client.stats()

        assert (counts["recorded"], counts["not_in_panel"], counts["budget"]) == (8, 16, 0)


def test_silence_is_reported_by_the_metrics_of_the_panel_only() -> None:
    silent = 'aggregate = "any"\notherwise = false'
    of = registry(*(weekly(f"metric_{i}", silent) for i in range(12)))
    clock = FakeClock()
    client = make_client(registry=of, clock=clock, mode="manual")
    client.watch()
    assert client.stats()["window_opened"] == 4

    for metric in of:
        client.record(metric.name, True)
    clock.advance(days=7)
    client.flush()

    counts = client.stats()
    assert (counts["aggregated"], counts["not_in_panel"]) == (4, 8)
    assert (counts["window_closed"], counts["recorded"]) == (4, 4)


def test_the_draw_knows_no_value(tmp_path: Path) -> None:
    """Law: secret and week alone decide, whatever is recorded and in whatever order."""
    of, clock = twelve(), FakeClock()
    drawn = panel(of)
    with make_client(tmp_path, registry=of, clock=clock) as client:
        for week in range(6):
            epoch = epoch_of("7d", clock())
            for metric in list(of)[:: 1 if week % 2 else -1]:
                client.record(metric.name, week % 3 == 0)
            secret = (tmp_path / SECRET_FILE).read_bytes()
            expected = sorted(m.digest for m in of if drawn.includes(m, epoch, secret))
            charged = rows(tmp_path, "SELECT digest, epoch FROM charges ORDER BY digest")
            assert [digest for digest, of_epoch in charged if of_epoch == epoch] == expected
            assert len(expected) == 4
            clock.advance(days=7)


def told_of(client: Client) -> tuple[Fraction, ...]:
    """Return what the notice says of any day, seven days and year, in nano-epsilon."""
    text = " ".join(client.notice().split())
    found = re.search(
        r"costs at most ε (\S+)\. .*? days it is at most ε (\S+), .*? at most ε (\S+),", text
    )
    assert found is not None, text
    return tuple(Fraction(amount.replace(",", "")) * 10**9 for amount in found.groups())


def test_what_is_told_of_a_week_is_what_the_dearest_seven_dates_of_a_panel_cost() -> None:
    """Law: a ledger reaches the panel's week, below the caps, and never passes what is told."""
    of = registry(*(weekly(f"metric_{i}") for i in range(12)), week="6")
    clock = FakeClock((epoch_of("7d", NOON) + 1) * 7 * DAY - 3 * DAY - HOUR)  # a Sunday
    client = make_client(registry=of, clock=clock, caps=Caps(week="20"))
    for visit in range(60):
        for metric in of:
            client.record(metric.name, True)
        clock.advance(days=13 if visit % 2 else 1)

    day, week, year = told_of(client)
    assert dearest_span(client, 7) == week == 6 * 10**9
    assert dearest_span(client, 1) <= day
    assert dearest_span(client, 365) <= year == 53 * week
    assert client.stats()["budget"] == 0


def test_a_secret_that_is_drawn_anew_costs_no_more_than_was_told() -> None:
    """Law: whoever says no and yes in turn draws more often, and the ledger holds the week."""
    of, clock = twelve(), FakeClock()
    client = make_client(registry=of, clock=clock, caps=Caps(week="100", metric_week="100"))
    for _ in range(40):
        for metric in of:
            client.record(metric.name, True)
        client.set_consent("denied")
        client.set_consent("granted")
        clock.advance(days=2)

    day, week, _ = told_of(client)
    assert client.stats()["budget"] > 0  # without the ledger these would be charged, too
    assert dearest_span(client, 7) == week == 8 * 10**9
    assert dearest_span(client, 1) <= day


def test_a_registry_that_is_updated_costs_no_more_than_was_told(tmp_path: Path) -> None:
    """Law: another line of seats draws others, in the week of the first."""
    clock = FakeClock()
    for version in range(4):
        of = registry(*(weekly(f"metric_{version}_{i}") for i in range(12)))
        with make_client(tmp_path, registry=of, clock=clock, caps=Caps(week="100")) as client:
            for metric in of:
                client.record(metric.name, True)
            assert dearest_span(client, 7) <= told_of(client)[1] == 8 * 10**9
    assert client.stats()["budget"] > 0


def test_a_loop_that_records_outside_of_the_panel_queues_nothing() -> None:
    """Law: after the first refusal of an epoch, values are counted and go no further."""
    of, clock = twelve(), FakeClock()
    with make_client(registry=of, clock=clock, mode="background") as client:
        for _ in range(2):
            for metric in of:
                for _ in range(500):
                    client.record(metric.name, True)
            client.flush(PATIENCE)
        inbox = client._engine._state().inbox
        waiting = [inbox.put(metric.name, True, clock()) for metric in of]
        counts = client.stats()

        assert waiting == [False] * 12
        assert (counts["recorded"], counts["not_in_panel"]) == (4, 8 * 1_001)
        assert counts["already_reported"] == 4 * 1_000

        client.set_consent("denied")  # it erases the secret, and with it what was drawn
        client.flush(PATIENCE)
        client.set_consent("granted")
        waiting = [inbox.put(metric.name, True, clock()) for metric in of]
        assert sum(waiting) == 8


def test_a_program_that_ends_at_once_hands_over_nothing_that_was_not_drawn(tmp_path: Path) -> None:
    """Law: its child notes what the panel leaves out, up to the end of the week and no further."""
    path, folder = tmp_path / "metrics.toml", tmp_path / "data"
    head = 'schema = 1\napp = "demo"\n[panel]\nweek = "8"\n'
    names = [f"metric_{i}" for i in range(12)]
    path.write_text(head + "".join(map(weekly, names)), encoding="utf-8")
    clock = FakeClock()
    settings = {
        "data_dir": str(folder),
        "registry": str(path),
        "endpoint": "https://x.example",
        "write_key": "key",
        "caps": {},
        "consent": "granted",
    }
    counts = serve(
        [(name, True, clock()) for name in names],
        settings,
        sends=False,
        clock=clock,
        uptime=clock.uptime,
        opt_outs=NoOptOuts(),
    )
    later = Handover(settings, lambda: None)

    assert (counts["recorded"], counts["not_in_panel"]) == (4, 8)
    assert Counter(later.put(name, True, clock()) for name in names) == {
        "already_reported": 4,
        "not_in_panel": 8,
    }
    assert {later.put(name, True, clock() + 7 * DAY) for name in names} == {None}


def test_devices_of_a_gateway_draw_for_themselves() -> None:
    of = twelve()
    drawn = panel(of)
    secret = secret_of(1)
    panels = {
        tuple(m.name for m in of if drawn.includes(m, 2_900, secret, bytes([device]) * 16))
        for device in range(50)
    }

    assert len(panels) == 3


def every_kind() -> Registry:
    """Return metrics of every kind that draws differently, of weights 1 to 3, and one outside."""
    pair = 'type = "pair"\nparts = { first = ["a", "b"], second = ["c", "d"] }'
    kinds = (
        weekly("plain", "weight = 2"),
        weekly("used", 'aggregate = "any"\nweight = 3'),
        weekly("silent", 'aggregate = "any"\notherwise = false'),
        metric_text("both", f"{pair}\nweight = 2", every="7d"),
        metric_text("theme", 'type = "category"\nvalues = ["a", "b", "c"]', every="7d"),
        weekly("once", every="once"),
        metric_text("kept", every="7d").replace('"fresh"', '"permanent"'),
        metric_text("two", every="7d").replace('"fresh"', '"two_layer"\nepsilon_permanent = "2"'),
        weekly("outside", "panel = false", epsilon="0.5"),
    )
    return registry(*kinds, week="11")


VALUES: Final[tuple[dict[str, object], ...]] = tuple(
    {
        **dict.fromkeys(("plain", "used", "silent", "once", "kept", "two", "outside"), truth),
        "both": {"first": first, "second": "cd"[truth]},
        "theme": theme,
    }
    for truth, first, theme in ((True, "a", "a"), (False, "b", "b"), (True, "b", "c"))
)


def secrets_of_every_sample(of: Registry, epoch: int) -> dict[frozenset[str], bytes]:
    """Return a secret for each sample that a panel draws, by the metrics that are in it.

    Left out are samples between ends that only rounding keeps apart.
    """
    drawn = panel(of)
    lines: defaultdict[str, set[int]] = defaultdict(set)
    for seat in drawn.seats.values():
        lines[seat.period] |= {seat.low % WHOLE, seat.high % WHOLE}
    samples = {
        frozenset(m.name for m in of if _holds(drawn, m, dict(zip(lines, points, strict=True))))
        for points in product(*map(_wide, lines.values()))  # between two ends nothing changes
    }
    found: dict[frozenset[str], bytes] = {}
    for device in range(1, 100_000):
        secret = secret_of(device)
        sample = frozenset(m.name for m in of if drawn.includes(m, _epoch(m, epoch), secret))
        found.setdefault(sample, secret)
        if len(found) == len(samples):
            break
    assert found.keys() == samples
    return found


def _wide(ends: set[int]) -> list[int]:
    """Return those ends that are far before the next one, on a circle."""
    order = sorted(ends)
    after = [*order[1:], order[0] + WHOLE]
    return [end for end, next_end in zip(order, after, strict=True) if next_end - end > WHOLE >> 6]


def _holds(drawn: Panel, metric: Metric, points: dict[str, int]) -> bool:
    seat = drawn.seats.get(metric.digest)
    return seat is None or seat.holds(points[seat.period])


def _epoch(metric: Metric, week: int) -> int:
    return 0 if metric.every == "once" else week


def test_every_sample_is_drawn_alike_whatever_the_values_and_their_order(tmp_path: Path) -> None:
    """Law: all samples that there are × values × orders; what is refused leaves no trace.

    So neither a value nor who came first decides, and silence is no exception.
    """
    of, clock = every_kind(), FakeClock(NOON - 2 * DAY)
    week = epoch_of("7d", clock())
    samples = secrets_of_every_sample(of, week)
    assert len(samples) == 9
    cases = product(samples.items(), enumerate(VALUES), (1, -1))
    for (sample, secret), (place, values), order in cases:
        folder = tmp_path / f"{secret.hex()}{place}{order}"
        with make_client(folder, registry=of, clock=clock, caps=Caps(week="11")) as client:
            client.record("outside", values["outside"])  # the database is there now
            (folder / SECRET_FILE).write_bytes(secret)
            alter(folder, "DELETE FROM windows")  # those that the secret before had opened
            for name in list(of.metrics)[::order]:
                client.record(name, values[name])
            held = {
                of.by_digest[digest].name
                for table in ("charges", "windows")
                for (digest,) in rows(folder, f"SELECT digest FROM {table}")  # noqa: S608
            }
            traces = {d for (d,) in rows(folder, "SELECT digest FROM memo")}
            counts = client.stats()
        assert held == sample
        assert {of.by_digest[digest].name for digest in traces} == sample & {"kept", "two"}
        assert counts["not_in_panel"] == len(of.metrics) - len(sample)
        assert counts["already_reported"] == 1  # the metric outside
        assert counts["budget"] == 0


def test_an_expired_metric_keeps_its_seat_until_a_registry_without_it() -> None:
    """Law: docs/ask/registry.md says so; nobody's share grows by the calendar alone."""
    text = " ".join((ROOT / "docs/ask/registry.md").read_text(encoding="utf-8").split())
    assert "A metric that has expired keeps its seat, and no other gets its share, until" in text
    clock = FakeClock()
    names = [f"metric_{i}" for i in range(12)]
    metrics = [weekly(name) for name in names]
    last = date.fromordinal(date(1970, 1, 8).toordinal() + int(clock() // DAY)).isoformat()
    metrics[5] = re.sub("expires = .*", f"expires = {last}", metrics[5])
    of, without = registry(*metrics), registry(*metrics[:5], *metrics[6:])
    counts = {"before": 0, "after": 0}
    for device in range(20):
        for when, days in (("before", 0), ("after", 21)):
            client = make_client(registry=of, clock=FakeClock(clock() + days * DAY))
            for name in [*names[:5], *names[6:], names[5]]:
                client.record(name, True)
            counted = client.stats()
            assert counted["expired"] == (when == "after")
            counts[when] += counted["recorded"]
        in_seats = [m.name for m in of if panel(of).includes(m, 2_900, secret_of(device))]
        assert len(in_seats) == 4

    assert counts["before"] == 20 * 4
    assert 20 * 3 <= counts["after"] < 20 * 4  # where it was drawn, its place stays empty
    assert sum(panel(without).inclusion(metric) for metric in without) == pytest.approx(4)
