"""Panels: which metrics a device reports is drawn, and what it spends and says of them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import date
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.client import Client
from client_sdk.core.epoch import DAY, HOUR, epoch_of
from client_sdk.core.errors import InvalidParameterError, RegistryError
from client_sdk.privacy.budget import cost_of_dates
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.privacy.panel import Panel
from client_sdk.recording.child import serve
from client_sdk.recording.handover import Handover
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.registry.seats import WHOLE, Seat
from client_sdk.storage.secret import SECRET_FILE
from tests.support.device.clock import NOON, FakeClock
from tests.support.device.device import alter, dearest_span, make_client, metric_text, rows
from tests.support.device.panels import (
    members,
    panel,
    registry,
    secret_of,
    twelve,
    weekly,
)
from tests.support.device.programs import ROOT
from tests.support.patience import PATIENCE

DEVICES: Final = 25_000
SIGMAS: Final = 6.5  # two-sided false alarms below 1e-10 a share, below 1e-9 for all of a test


def test_shares_of_devices_are_those_that_were_stated() -> None:
    """12 metrics of weights 1 to 3, on 25,000 devices."""
    of = registry(*(weekly(f"metric_{i}", f"weight = {1 + i % 3}") for i in range(12)))
    drawn = panel(of)
    counts: Counter[str] = Counter()
    for device in range(DEVICES):
        secret = secret_of(device)
        counts.update(m.name for m in of if drawn.includes(m, 2_900, secret))

    for metric in of:
        share = drawn.inclusion(metric)
        error = (share * (1 - share) / DEVICES) ** 0.5
        assert 0 < share < 1
        assert abs(counts[metric.name] / DEVICES - share) <= SIGMAS * error
    assert drawn.inclusion(of.metric("metric_2")) == 3 * drawn.inclusion(of.metric("metric_0"))


def test_a_device_draws_anew_each_week_and_alike_in_all_its_processes() -> None:
    of = twelve()

    assert members(of, 7, 2_900) == members(of, 7, 2_900)
    assert len({tuple(members(of, 7, epoch)) for epoch in range(2_900, 2_950)}) == 3
    assert len({tuple(members(of, device, 2_900)) for device in range(50)}) == 3


def test_twelve_metrics_under_a_cap_of_eight_have_four_seats_each_week() -> None:
    of = twelve()

    assert {len(members(of, device, epoch)) for device, epoch in product(range(50), (1, 2))} == {4}
    assert [panel(of).inclusion(metric) for metric in of] == [pytest.approx(1 / 3, abs=1e-9)] * 12


def test_hours_and_days_are_in_the_panel_of_their_week() -> None:
    names = [f"{every}_{i}" for every in ("1h", "1d", "7d") for i in range(3)]
    of = registry(*(weekly(f"metric_{n}", epsilon="0.02", every=n[:2]) for n in names), week="5")
    drawn, now = panel(of), NOON
    for metric in of:
        week = epoch_of("7d", now)
        inside = {
            drawn.includes(metric, epoch_of(metric.every, now + hours * HOUR), secret_of(3))
            for hours in range(7 * 24)
            if epoch_of("7d", now + hours * HOUR) == week
        }
        assert len(inside) == 1


def test_metrics_that_keep_what_they_told_are_drawn_for_life() -> None:
    kept = metric_text("kept").replace('longitudinal = "fresh"', 'longitudinal = "permanent"')
    of = registry(kept, weekly("first", every="once"), weekly("second", every="once"), week="2")
    drawn = panel(of)

    for device in range(20):
        secret = secret_of(device)
        told = {drawn.includes(of.metric("kept"), epoch, secret) for epoch in range(2_000, 2_100)}
        assert len(told) == 1
        answers = sum(drawn.includes(of.metric(name), 0, secret) for name in ("first", "second"))
        assert 2 * told.pop() + answers <= 2  # a yes and a no of the permanent one cost 1 each


def test_what_is_outside_of_the_panel_always_reports_and_is_paid_first() -> None:
    of = registry(
        weekly("always", "panel = false", epsilon="2"), *(weekly(f"m_{i}") for i in range(8))
    )
    drawn = panel(of)

    assert drawn.inclusion(of.metric("always")) == 1
    assert {len(members(of, device, 2_900)) for device in range(50)} == {1 + 2}


epsilons = st.sampled_from(["0.1", "0.5", "1", "2"])
kinds = st.tuples(epsilons, st.sampled_from(["1d", "7d", "28d", "once"]), st.integers(1, 4))


@given(st.lists(kinds, min_size=1, max_size=7), st.sampled_from(["4", "8", "20"]))
@settings(max_examples=60, deadline=None)
def test_no_seven_dates_cost_more_than_the_panel_allows(
    metrics: list[tuple[str, str, int]], week: str
) -> None:
    """By brute force: all pairs of draws at the ends of intervals, all seven dates around them."""
    of = registry(
        *(weekly(f"m_{i}", f"weight = {w}", e, every) for i, (e, every, w) in enumerate(metrics)),
        week=week,
    )
    try:
        drawn = panel(of)
    except InvalidParameterError:
        assert dearest_of(of) > Fraction(week) * 10**9  # not even one at a time
        return
    assert all(drawn.inclusion(metric) > 0 for metric in of)
    assert dearest_seven_dates(of, drawn) <= Fraction(week) * 10**9


def dearest_of(of: Registry) -> int:
    """Return what one metric for life, and one before and one after a new panel, can cost."""
    kept = [metric.most_nano for metric in of if metric.every == "once"]
    moved = [cost_of_dates(metric, 7) for metric in of if metric.every != "once"]
    return max(kept, default=0) + 2 * max(moved, default=0)


def dearest_seven_dates(of: Registry, drawn: Panel) -> int:
    """Return the most that is charged for seven dates, counted epoch by epoch."""
    start = epoch_of("28d", NOON) * 28 + 25  # some day in the middle of a panel of four weeks

    def cost(points: dict[str, list[int]], first: int) -> int:
        charged = set()
        for day in range(first, first + 7):
            for metric in of:
                seat = drawn.seats[metric.digest]
                number = 0 if seat.period == "life" else epoch_of(seat.period, day * DAY)
                point = points[seat.period][number % 2]
                if seat.holds(point):
                    charged.add((metric.name, epoch_of(metric.every, day * DAY)))
        return sum(of.metric(name).most_nano for name, _ in charged)

    ends: dict[str, set[int]] = {"life": {0}, "7d": {0}, "28d": {0}}
    for seat in drawn.seats.values():
        ends[seat.period] |= {seat.low % WHOLE, seat.high % WHOLE}
    period = "28d" if any(seat.period == "28d" for seat in drawn.seats.values()) else "7d"
    return max(
        cost({"life": [life, life], period: [even, odd]}, first)
        for life in ends["life"]
        for even, odd in product(ends[period], repeat=2)
        for first in range(start, start + 14)
    )


@pytest.mark.parametrize(
    ("low", "high", "inside"),
    [(0, 10, {0, 9}), (WHOLE - 5, WHOLE + 5, {0, 4, WHOLE - 5, WHOLE - 1}), (7, 7 + WHOLE, {0, 7})],
)
def test_a_seat_holds_the_points_of_its_interval(low: int, high: int, inside: set[int]) -> None:
    seat = Seat(low, high, "7d")
    outside = {10, 11, WHOLE - 6} if high - low < WHOLE else set()

    assert all(seat.holds(point) for point in inside)
    assert not any(seat.holds(point) for point in outside)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[panel]\nweek = 8\n", "panel.week"),
        ('[panel]\nweek = "0"\n', "panel.week"),
        ('[panel]\nweek = "8"\nmonth = "8"\n', "panel.month"),
        ("panel = 3\n", "panel"),
        ("", "metrics.m.weight"),
    ],
)
def test_a_wrong_panel_is_refused_by_its_place(text: str, problem: str) -> None:
    extra = "weight = 2" if problem == "metrics.m.weight" else ""
    with pytest.raises(RegistryError, match=problem):
        Registry.from_text(f'schema = 1\napp = "demo"\n{text}' + weekly("m", extra))


@pytest.mark.parametrize("weight", ["0", "1001", '"2"', "1.5"])
def test_an_unknown_weight_is_refused(weight: str) -> None:
    with pytest.raises(RegistryError, match=r"metrics\.m\.weight"):
        registry(weekly("m", f"weight = {weight}"))


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
