"""Intake keeps what can be counted, counts what cannot by reason, and never judges a retry anew."""

from __future__ import annotations

import tracemalloc

import pytest

from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE
from client_sdk.wire.reports import Column
from collector.core.catalog import Catalog
from collector.core.cells import ATTESTED, RELAYED, Cell, segment_text, split_source
from collector.core.entry import AcceptedColumn, encode
from collector.intake.validation import Verdict, judge
from collector.intake.wire import Upload
from tests.support.crowds.uploads import TODAY, UPLOAD_ID, registry

REGISTRY = registry()
CATALOG = Catalog([REGISTRY])
EVERY = {"page": "1d", "opted_in": "once", "crashed": "1h", "theme": "7d"}
HOME, SHOP, NO_ITEM = b"\0", b"\2", b"\3"


def column(name: str, payloads: bytes = HOME, epoch: int | None = None) -> Column:
    metric = REGISTRY.metric(name)
    at = epoch_of(metric.every, TODAY * DAY) if epoch is None else epoch
    return Column(metric.digest, at, payloads)


def upload(*columns: Column, sealed: int = TODAY) -> Upload:
    return Upload(UPLOAD_ID, sealed, {}, columns)


def verdict_on(*columns: Column, **segment: str) -> Verdict:
    return judge(Upload(UPLOAD_ID, TODAY, segment, columns), CATALOG, TODAY)


def reasons(verdict: Verdict) -> list[tuple[str, int]]:
    return [(rejection.reason, rejection.count) for rejection in verdict.rejected]


@pytest.mark.parametrize("name", EVERY)
def test_a_report_of_the_present_epoch_is_accepted(name: str) -> None:
    sent = column(name, b"\0\1")

    verdict = verdict_on(sent)

    text = segment_text(REGISTRY.metric(name), {})
    cell = Cell(sent.metric, sent.epoch, text)
    accepted = AcceptedColumn(cell, b"\0\1")
    assert verdict == Verdict((accepted,), encode([accepted]), 2, (), steps=2)


def test_accepted_reports_go_to_the_cell_of_their_segment() -> None:
    verdict = verdict_on(column("page"), platform="mac")

    assert verdict.accepted[0].cell.segment == segment_text(
        REGISTRY.metric("page"), {"platform": "mac"}
    )


AGE_SIZE = REGISTRY.metric("age").mechanism.payload_size


@pytest.mark.parametrize(
    ("columns", "platform", "rejected", "kept"),
    [
        ([Column(b"nobody", TODAY, bytes(7))], "mac", [(0, "unknown_metric", 1)], 0),
        ([column("age", bytes(AGE_SIZE + 1))], "mac", [(0, "payload_size", 2)], 0),
        ([column("page", b"")], "mac", [(0, "empty_column", 1)], 0),
        ([column("page", NO_ITEM * 3)], "mac", [(0, "item_out_of_range", 3)], 0),
        ([column("page", HOME * 3)], "amiga", [(0, "unknown_segment", 3)], 0),
        (
            [column("page"), column("page", b""), column("page", NO_ITEM)],
            "mac",
            [(1, "empty_column", 1), (2, "item_out_of_range", 1)],
            1,
        ),
        *(
            ([column("opted_in", epoch=epoch)], "mac", [(0, "epoch_in_future", 1)], 0)
            for epoch in (-1, 1, TODAY)
        ),
    ],
)
def test_what_is_rejected_is_named_by_column_and_reason(
    columns: list[Column], platform: str, rejected: list[tuple[int, str, int]], kept: int
) -> None:
    """A metric asked once has only epoch 0; nothing is left to fold of what is rejected whole."""
    verdict = verdict_on(*columns, platform=platform)

    assert [(each.column, each.reason, each.count) for each in verdict.rejected] == rejected
    assert (verdict.reports, len(verdict.accepted)) == (kept, kept)


@pytest.mark.parametrize("times", [1, 1_000])
def test_good_payloads_of_a_mixed_column_are_kept_and_bad_ones_counted(times: int) -> None:
    verdict = verdict_on(column("page", (HOME + NO_ITEM + SHOP) * times))

    assert (verdict.accepted[0].payloads, verdict.reports) == ((HOME + SHOP) * times, 2 * times)
    assert reasons(verdict) == [("item_out_of_range", times)]


def test_what_no_registry_declares_is_not_kept() -> None:
    """A write key is public: who has it may send any text, and as much as fits."""
    judged = verdict_on(column("page"), platform="mac")
    tracemalloc.start()
    try:
        for number in range(500):
            junk = {f"{number}-{i}": f"{number}" * 20 for i in range(16)}
            assert verdict_on(column("page"), platform="mac", **junk) == judged
            assert reasons(verdict_on(column("page"), platform=f"{number}" * 20)) == [
                ("unknown_segment", 1)
            ]
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 500 * 200


@pytest.mark.parametrize("name", ["page", "crashed", "theme"])
def test_the_epochs_accepted_are_those_that_touch_the_days_allowed(name: str) -> None:
    every = EVERY[name]
    earliest = epoch_of(every, (TODAY - MAX_REPORT_AGE) * DAY)
    latest = epoch_of(every, (TODAY + MAX_CLOCK_SKEW + 1) * DAY - 1)

    found = {
        epoch: reasons(verdict_on(column(name, epoch=epoch)))
        for epoch in (earliest - 1, earliest, latest, latest + 1)
    }

    assert list(found.values()) == [
        [("epoch_too_old", 1)],
        [],
        [],
        [("epoch_in_future", 1)],
    ]


def test_reports_about_days_after_the_last_day_of_a_metric_are_rejected() -> None:
    catalog = Catalog([registry(expires="2026-03-02")])  # two days before TODAY

    found = [
        reasons(judge(upload(column("page", epoch=epoch)), catalog, TODAY))
        for epoch in (TODAY - 2, TODAY - 1)
    ]

    assert found == [[], [("metric_expired", 1)]]


def test_a_metric_asked_once_takes_late_reports_as_long_as_any_metric() -> None:
    catalog = Catalog([registry(expires="2026-03-02")])
    last = TODAY - 2 + MAX_REPORT_AGE

    found = [
        reasons(judge(upload(column("opted_in"), sealed=day), catalog, day))
        for day in (last, last + 1)
    ]

    assert found == [[], [("metric_expired", 1)]]


def test_a_retry_gets_the_same_verdict_on_every_day_on_which_it_is_taken() -> None:
    epochs = range(TODAY - MAX_REPORT_AGE - 2, TODAY + MAX_CLOCK_SKEW + 3)
    sent = upload(
        *(column("page", HOME + NO_ITEM, epoch) for epoch in epochs),
        *(column("crashed", epoch=24 * epoch) for epoch in epochs),
        *(column("theme", epoch=epoch // 7) for epoch in epochs),
        Column(b"nobody", TODAY, HOME),
    )

    days = range(TODAY - MAX_CLOCK_SKEW, TODAY + MAX_REPORT_AGE + 1)
    verdicts = {judge(sent, CATALOG, today) for today in days}

    assert len(verdicts) == 1


def test_a_verdict_that_looked_at_the_clock_would_differ_between_days() -> None:
    def judged_by_the_clock(today: int) -> Verdict:
        sent = upload(column("page", epoch=TODAY), sealed=today)
        return judge(sent, CATALOG, today)

    days = (TODAY, TODAY + MAX_REPORT_AGE, TODAY + MAX_REPORT_AGE + 1)

    assert len({judged_by_the_clock(today) for today in days}) == 2


def source_of(verdict: Verdict) -> set[str]:
    """Return the facts by which the accepted reports are kept apart."""
    return {fact for column in verdict.accepted for fact in split_source(column.cell.segment)[0]}


def verdict_by_relay(*columns: Column) -> Verdict:
    source = frozenset({RELAYED, ATTESTED})
    return judge(Upload(UPLOAD_ID, TODAY, {}, columns), CATALOG, TODAY, source=source)


def test_a_report_alone_in_its_upload_is_counted_as_relayed() -> None:
    assert source_of(verdict_by_relay(column("page"))) == {RELAYED, ATTESTED}


@pytest.mark.parametrize(
    "columns",
    [
        (column("page"), column("theme")),
        (column("page"), Column(b"nobody", TODAY, b"\0")),  # refused, yet linked to the other
        (column("page"), column("theme", b"")),
        (column("page", HOME + SHOP),),
        (column("page", HOME + NO_ITEM),),
    ],
    ids=["two metrics", "beside an unknown one", "beside nothing", "two", "beside a wrong one"],
)
def test_a_report_that_came_with_another_is_not_counted_as_relayed(
    columns: tuple[Column, ...],
) -> None:
    """Whoever sees one sees both; that it is attested is true of each."""
    verdict = verdict_by_relay(*columns)

    assert verdict.reports >= 1
    assert source_of(verdict) == {ATTESTED}


def test_a_source_changes_nothing_of_the_verdict_but_the_cell() -> None:
    columns = column("page"), Column(b"nobody", TODAY, b"\0")
    plain, relayed = verdict_on(*columns), verdict_by_relay(*columns)

    assert (plain.reports, plain.rejected, plain.steps) == (
        relayed.reports,
        relayed.rejected,
        relayed.steps,
    )
    assert [c.payloads for c in plain.accepted] == [c.payloads for c in relayed.accepted]
