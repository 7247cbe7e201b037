"""The tables beside the peers: what a page holds is what the command prints from its own rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.peers.learn_peers import flags, places
from benchmarks.peers.peers import (
    IMPORTS,
    NAMES,
    OURS,
    PAGE,
    SIZES,
    Row,
    ahead,
    import_table,
    parse,
    size_of,
    table,
)
from client_sdk.registry import Registry
from tests.docs.pages import flowing
from tests.support.device.registries import HEAD, RECORD
from tests.support.device.registries import table as metric_table

ROWS = [
    Row("grr", 16, OURS, 3.0, 0.10, 1),
    Row("grr", 16, "quick", 0.5, 0.20, 8),
    Row("grr", 16, "same", 3.0, None, 8),
]


def test_the_page_holds_ours_at_every_size_and_every_peer() -> None:
    """Each of our mechanisms at each size, and each library with its import time."""
    rows, starts = parse(PAGE.read_text("utf-8"))

    ours = {(row.mechanism, row.items) for row in rows if row.library == OURS}
    assert ours == {(name, size) for name in NAMES for size in SIZES}
    assert {row.library for row in rows} == set(IMPORTS) == set(starts)


def test_the_tables_of_the_page_follow_from_its_own_rows() -> None:
    """Bold is recomputed: a peer that is ahead can not be left plain."""
    page = PAGE.read_text("utf-8")
    rows, starts = parse(page)

    assert table(rows) in page
    assert import_table(starts) in page


def test_both_pages_say_how_many_peer_rows_are_ahead() -> None:
    """With line ends or without."""
    readme, page = flowing("README.md"), flowing("docs/evidence/accuracy.md")
    rows = parse(PAGE.read_text("utf-8"))[0]
    peers = sum(row.library != OURS for row in rows)

    device, server, size = ahead(rows)

    assert f"ahead of ours in {device} of {peers} rows on the device, {server} on the" in readme
    assert f"ahead of ours in {device} rows on the device, {server} on the server" in page
    assert size == 0


def test_a_peer_is_bold_only_where_it_is_ahead() -> None:
    """Equal numbers and a server that does not exist are not ahead."""
    elsewhere = Row("olh", 16, OURS, 4.0, 0.30, 8)
    head, _, *lines = table([*ROWS, elsewhere]).splitlines()

    assert head == f"| mechanism | items | device µs: {OURS}; quick; same | server µs | bytes |"
    assert lines == [
        "| grr | 16 | 3.0; **0.5**; 3.0 | 0.10; 0.20; none | 1; 8; 8 |",
        "| olh | 16 | 4.0; –; – | 0.30; –; – | 8; –; – |",
    ]
    assert ahead(ROWS) == (1, 0, 0)


@pytest.mark.parametrize(("report", "size"), [(b"abc", 3), (7, 8), ((1, 2), 16), ([b"ab", 1], 10)])
def test_the_size_of_a_report_is_what_its_library_holds(report: object, size: int) -> None:
    """Bytes count as they are, numbers as 8 each."""
    assert size_of(report) == size


def test_the_values_of_a_record_are_numbers_from_0_without_the_label() -> None:
    metric = Registry.from_text(HEAD + metric_table("m", RECORD)).metric("m")
    domain: Any = metric.domain
    rows = [("free", 20, "left"), ("free", 20, "stayed"), ("team", 60, "left"), ("pro", 40, "left")]
    records = [metric.encode(dict(zip(("plan", "age", "label"), row, strict=True))) for row in rows]

    columns = places(records, domain.firsts[:-1], domain.outcome.size)

    assert columns.tolist() == [[0, 0], [0, 0], [2, 2], [1, 1]]


def test_each_value_of_each_attribute_has_a_flag() -> None:
    rows = flags(np.array([[0, 1], [2, 0]]), [3, 2])

    assert rows.tolist() == [[1, 0, 0, 0, 1], [0, 0, 1, 1, 0]]
