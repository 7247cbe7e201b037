"""Times, buckets and cells are read from the labels that answers have."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.epoch import epoch_label, epoch_start
from collector.analytics.rows import Period
from collector.rendering.charts.distribution import adjoining, cell_of, edges_of, threshold_of
from collector.rendering.charts.scale import (
    Linear,
    Log,
    is_gap,
    log_ticks,
    nice_ticks,
    ticks,
    usual_step,
)
from collector.rendering.letters import shortened, width_of, wrapped


@given(st.sampled_from(["1h", "1d", "7d"]), st.integers(0, 20_000))
def test_the_labels_of_epochs_are_read_as_their_beginnings(every: str, epoch: int) -> None:
    period = Period.read(epoch_label(every, epoch))

    assert period is not None
    assert period.hours == epoch_start(every, epoch) / 3600


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-11-02", "2026-11-02"),
        ("2026-W45", "2026-11-02"),
        ("2026-11", "2026-11-01"),
        ("2026-11-02/2026-11-08", "2026-11-02"),
        ("2026-11-02T00:00+00:00", "2026-11-02"),
    ],
)
def test_times_are_read_in_many_forms(text: str, day: str) -> None:
    period, begins = Period.read(text), Period.read(day)

    assert period is not None
    assert begins is not None
    assert period.begin == begins.begin


@pytest.mark.parametrize(
    "text", ["", "once", "2026-13-01", "yesterday", "9999999-01-01", "2026-13"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert Period.read(text) is None


def test_a_gap_is_more_than_the_usual_step() -> None:
    step = usual_step([0, 24, 48, 96])

    assert step == 24
    assert is_gap(48, 96, step)
    assert not is_gap(24, 48, step)


@given(st.integers(0, 1_000_000), st.integers(1, 1_000_000), st.integers(2, 12))
def test_ticks_of_time_are_few_and_within_their_ends(low: int, length: int, most: int) -> None:
    found = ticks(low, low + length, most)

    assert len(found) <= most + 1
    assert all(low <= tick.hours <= low + length for tick in found)
    assert all(a.hours < b.hours for a, b in pairwise(found))


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.integers(3, 8))
def test_ticks_reach_over_their_ends_and_are_round(low: float, length: float, most: int) -> None:
    found = nice_ticks(low, low + length, most)

    slack = 1e-6 * (found[1] - found[0])
    assert found[0] <= low + slack
    assert found[-1] >= low + length - slack
    assert 2 <= len(found) <= most + 2


@given(st.floats(1e-6, 1e6), st.floats(1, 1e6))
def test_logarithmic_ticks_reach_over_their_ends(low: float, factor: float) -> None:
    found = log_ticks(low, low * factor)

    assert found[0] <= low * 1.001
    assert found[-1] >= low * factor * 0.999
    assert len(found) <= 20


@given(st.floats(0, 1))
def test_scales_are_undone_by_their_inverse(part: float) -> None:
    line, log = Linear(-3, 8, 400, 20), Log(0.01, 1e4, 30, 600)
    place = 400 - 380 * part

    assert line.at(line.inverse(place)) == pytest.approx(place)
    assert log.at(log.inverse(30 + 570 * part)) == pytest.approx(30 + 570 * part)


@pytest.mark.parametrize(
    ("item", "edges"),
    [
        ("10–20", (10, 20)),
        ("10-20", (10, 20)),
        ("-5–0", (-5, 0)),
        ("−5..−1", (-5, -1)),
        ("[0, 10)", (0, 10)),
        ("[0,10)", (0, 10)),
        ("1,000–2,000 ms", (1000, 2000)),
        ("0.5 to 1.5", (0.5, 1.5)),
        ("1e3…1e4", (1000, 10000)),
        ("20–10", None),
        ("light", None),
        ("", None),
        ("10", None),
    ],
)
def test_the_edges_of_buckets_are_read(item: str, edges: tuple[float, float] | None) -> None:
    assert edges_of(item) == edges


def test_buckets_adjoin_only_if_each_begins_where_one_ends() -> None:
    assert adjoining(["0–10", "10–20"]) == ((0, 10), (10, 20))
    assert adjoining(["0–10", "20–30"]) is None
    assert adjoining(["0–10", "more"]) is None
    assert adjoining([]) is None


@pytest.mark.parametrize(
    ("item", "number"),
    [("20", 20), ("≤ 20 ms", 20), ("10–20", 20), ("-3.5", -3.5), ("p50", 50), ("never", None)],
)
def test_thresholds_are_read(item: str, number: float | None) -> None:
    assert threshold_of(item) == number


@pytest.mark.parametrize(
    ("item", "cell"), [("3,4", (3, 4)), ("0,0", (0, 0)), ("3", None), ("a,b", None), ("-1,2", None)]
)
def test_cells_are_read(item: str, cell: tuple[int, int] | None) -> None:
    assert cell_of(item) == cell


@given(st.text(max_size=80), st.floats(10, 300))
def test_a_shortened_text_fits(text: str, room: float) -> None:
    assert width_of(shortened(text, 12, room), 12) <= room + 12


@given(st.text(max_size=200))
def test_a_wrapped_text_fits(text: str) -> None:
    assert all(width_of(line, 11) <= 200 for line in wrapped(text, 11, 200))
